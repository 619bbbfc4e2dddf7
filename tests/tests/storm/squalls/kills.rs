//! CLIENT KILL is a fence: once it has been answered, nothing of that client is run, served or
//! delivered.

use anyhow::{Result, ensure};
use tests::client::{Client, Reply, encode};
use tests::server::{Server, Target};

use super::{Gust, done, integer, text, together, with_server};

/// Threads that kill clients, each with keys of its own.
const KILLERS: usize = 3;

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let mut server = Server::start(Target::Dunlin, &[("threads", "3")])?;
    let mut parts: Vec<super::Part<'_>> = Vec::new();
    for number in 0..KILLERS {
        let (server, branch) = (&server, gust.branch());
        parts.push(Box::new(move || kill_clients(server, number, branch)));
    }
    let result = together(parts);
    with_server(result, &mut server)
}

fn kill_clients(server: &Server, number: usize, mut gust: Gust) -> Result<()> {
    // Connections of several threads of the server, of which one kills and another looks.
    let mut own = Vec::new();
    for _ in 0..4 {
        own.push(server.connect()?);
    }
    while gust.goes_on() {
        let mut victim = server.connect()?;
        let id = integer(&mut victim, "CLIENT ID")?;
        let killer = gust.random.below(own.len());
        let looker = gust.random.below(own.len());
        match gust.random.below(3) {
            0 => {
                let wait = Wait::new(number, &mut gust);
                wait.begin(&mut victim, &mut own[looker])?;
                gust.rest(300);
                kill(&mut own[killer], id)?;
                wait.judge(&mut own[looker])?;
            }
            1 => {
                send_many_writes(&mut victim, number, &mut gust)?;
                gust.rest(1500);
                kill(&mut own[killer], id)?;
                judge_writes(&mut own[looker], number, &mut gust)?;
            }
            _ => {
                let channel = format!("channel:{number}");
                done(&mut victim, &["SUBSCRIBE", &channel])?;
                kill(&mut own[killer], id)?;
                let receivers = integer(&mut own[looker], &format!("PUBLISH {channel} x"))?;
                ensure!(receivers == 0, "a message was delivered to a client that was killed");
            }
        }
    }
    Ok(())
}

fn kill(killer: &mut Client, id: i64) -> Result<()> {
    let killed = integer(killer, &format!("CLIENT KILL ID {id}"))?;
    ensure!(killed == 1, "CLIENT KILL found {killed} clients of an ID");
    Ok(())
}

/// A command that waits for an element, what gives it one, and how many are left when nobody took
/// it.
struct Wait {
    wait: String,
    give: String,
    look: String,
    key: String,
}

impl Wait {
    fn new(number: usize, gust: &mut Gust) -> Wait {
        let key = format!("waited:{number}");
        let list = |wait: String| Wait {
            wait,
            give: format!("RPUSH {key} element"),
            look: format!("LLEN {key}"),
            key: key.clone(),
        };
        match gust.random.below(5) {
            0 | 1 => list(format!("BLPOP {key} 0")),
            2 => list(format!("BLMOVE {key} gone:{number} LEFT RIGHT 0")),
            3 => Wait {
                wait: format!("BZPOPMIN {key} 0"),
                give: format!("ZADD {key} 1 element"),
                look: format!("ZCARD {key}"),
                key,
            },
            _ => Wait {
                wait: format!("XREADGROUP GROUP group consumer BLOCK 0 STREAMS {key} >"),
                give: format!("XADD {key} * field element"),
                look: "pending".to_owned(),
                key,
            },
        }
    }

    fn is_of_stream(&self) -> bool {
        self.look == "pending"
    }

    fn begin(&self, victim: &mut Client, other: &mut Client) -> Result<()> {
        done(other, &["DEL", &self.key])?;
        if self.is_of_stream() {
            done(other, &["XGROUP", "CREATE", &self.key, "group", "0", "MKSTREAM"])?;
        }
        victim.send(&self.wait.split(' ').collect::<Vec<_>>())
    }

    /// Gives an element after the kill: it must stay.
    fn judge(&self, other: &mut Client) -> Result<()> {
        done(other, &self.give.split(' ').collect::<Vec<_>>())?;
        let left = if self.is_of_stream() {
            match other.call_text(&format!("XPENDING {} group", self.key))? {
                Reply::Array(parts) if parts.first() == Some(&Reply::Integer(0)) => 1,
                _ => 0,
            }
        } else {
            integer(other, &self.look)?
        };
        ensure!(left == 1, "{} of a client that was killed took an element", self.wait);
        Ok(())
    }
}

/// A long pipeline, in parts as transactions or scripts.
fn send_many_writes(victim: &mut Client, number: usize, gust: &mut Gust) -> Result<()> {
    let key = format!("written:{number}");
    let mut request = Vec::new();
    for _ in 0..gust.random.between(100, 3000) {
        match gust.random.below(20) {
            0 => {
                for words in [&["MULTI"][..], &["INCR", &key], &["INCR", &key], &["EXEC"]] {
                    encode(words, &mut request);
                }
            }
            1 => encode(&["EVAL", "redis.call('incr',KEYS[1])", "1", &key], &mut request),
            _ => encode(&["INCR", &key], &mut request),
        }
    }
    victim.send_raw(&request)
}

/// What the client had written when the kill was answered stays as it is.
fn judge_writes(other: &mut Client, number: usize, gust: &mut Gust) -> Result<()> {
    let key = format!("written:{number}");
    let mut first = None;
    for _ in 0..4 {
        let value = text(&other.call(&["GET", &key])?);
        let first = first.get_or_insert_with(|| value.clone());
        ensure!(
            *first == value,
            "a client that was killed went on writing: from {first} to {value}"
        );
        gust.rest(700);
    }
    Ok(())
}
