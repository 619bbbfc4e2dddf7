//! One thread has many connections that pipeline, and a slow script in each turn: every command is
//! answered once, in order, and acknowledged writes are there.

use anyhow::{Result, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::server::{Server, Target};

use super::{Gust, done, is_busy, together, with_server};

/// Threads of clients, and the connections of each.
const GROUPS: usize = 4;
const CONNECTIONS: usize = 25;
/// Keys of each connection that hold short values, and those that hold long ones.
const SHORT: usize = 5;
const LONG: usize = 2;
const KEYS: usize = SHORT + LONG;
/// The most bytes of a long value: with these, turns are so long that connections are left for the
/// next one.
const LARGEST: usize = 300_000;

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let options = [("threads", "1"), ("busy-reply-threshold", "1")];
    let mut server = Server::start(Target::Dunlin, &options)?;
    let mut groups: Vec<Group> = (0..GROUPS).map(Group::new).collect();
    let mut slow = gust.branch();
    let mut parts: Vec<super::Part<'_>> = vec![Box::new(|| be_slow(&server, &mut slow))];
    for group in &mut groups {
        let (server, branch) = (&server, gust.branch());
        parts.push(Box::new(move || group.work(server, branch)));
    }
    let result = together(parts);
    let result = result.and_then(|()| {
        let mut client = server.connect()?;
        groups.iter().try_for_each(|group| group.judge(&mut client))
    });
    with_server(result, &mut server)
}

/// Runs scripts that take 30 ms, alone or behind other commands of the same pipeline.
fn be_slow(server: &Server, gust: &mut Gust) -> Result<()> {
    const SPIN: &str = "local t=os.clock()+tonumber(ARGV[1]) while os.clock()<t do end ";
    let mut client = server.connect()?;
    while gust.goes_on() {
        let look = *gust.random.pick(&["", "redis.call('get',KEYS[1]) "]);
        let script = format!("{look}{SPIN}return 1");
        let seconds = (gust.random.between(5, 40) as f64 / 1000.0).to_string();
        let reply = client.call(&["EVAL", &script, "1", "held", &seconds])?;
        ensure!(reply == Reply::Integer(1) || is_busy(&reply), "a script answers {reply:?}");
        gust.rest(2000);
    }
    Ok(())
}

/// Connections that one thread plays.
struct Group {
    number: usize,
    /// What was acknowledged last, for each connection and key.
    values: Vec<[u64; KEYS]>,
}

impl Group {
    fn new(number: usize) -> Group {
        Group { number, values: vec![[0; KEYS]; CONNECTIONS] }
    }

    fn key(&self, connection: usize, key: usize) -> String {
        format!("{}:{connection}:{key}", self.number)
    }

    fn work(&mut self, server: &Server, mut gust: Gust) -> Result<()> {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(server.connect()?);
        }
        let mut value = 0;
        while gust.goes_on() {
            // So much that a turn of the server leaves most of it in the sockets: then all
            // connections are ready when a script begins, and again in each turn beside it.
            let values = value + 1..=value + 1 + gust.random.below(8) as u64;
            for (connection, client) in clients.iter_mut().enumerate() {
                for value in values.clone() {
                    client.send_raw(&self.request(connection, value, &mut gust))?;
                }
            }
            for (connection, client) in clients.iter_mut().enumerate() {
                for value in values.clone() {
                    self.collect(connection, value, client)?;
                }
            }
            value = *values.end();
        }
        Ok(())
    }

    /// SETs of the short values and an MSET of the long ones.
    fn request(&self, connection: usize, value: u64, gust: &mut Gust) -> Vec<u8> {
        let mut request = Vec::new();
        let short = value.to_string();
        for key in 0..SHORT {
            encode(&["SET", &self.key(connection, key), &short], &mut request);
        }
        let long = format!("{value}:{}", ".".repeat(gust.random.below(LARGEST)));
        let keys = [SHORT, SHORT + 1].map(|key| self.key(connection, key));
        encode(&["MSET", &keys[0], &long, &keys[1], &long], &mut request);
        request
    }

    fn collect(&mut self, connection: usize, value: u64, client: &mut Client) -> Result<()> {
        for command in 0..=SHORT {
            let reply = match client.receive()? {
                Received::Reply(reply) => reply,
                Received::Closed => anyhow::bail!("a connection was closed"),
            };
            if is_busy(&reply) {
                continue;
            }
            ensure!(reply == Reply::Status(b"OK".to_vec()), "a SET was answered {reply:?}");
            let keys = if command < SHORT { command..command + 1 } else { SHORT..KEYS };
            self.values[connection][keys].fill(value);
        }
        Ok(())
    }

    /// Each key has one writer, so it holds what that was told last.
    fn judge(&self, client: &mut Client) -> Result<()> {
        for (connection, values) in self.values.iter().enumerate() {
            for (key, wanted) in values.iter().enumerate().filter(|(_, value)| **value > 0) {
                let name = self.key(connection, key);
                let reply = done(client, &["GETRANGE", &name, "0", "20"])?;
                let found = super::text(&reply);
                let number = found.split(':').next().unwrap_or_default();
                ensure!(
                    number == wanted.to_string(),
                    "{name} was acknowledged as {wanted} and holds {found:?}"
                );
            }
        }
        Ok(())
    }
}
