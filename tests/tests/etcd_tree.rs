//! The keys of the tree of `/v2/keys`, changed by Redis clients: no client gets a wrong index,
//! nothing crashes, and the tree after a restart is the one before it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Reply};
use tests::etcd::Keys;
use tests::observe::wait_until;
use tests::random::{Random, Rounds};
use tests::server::Server;
use tests::web::Web;

/// A server that journals, and that removes an expired node only when a request meets it.
struct Subject {
    server: Server,
    keys: Keys,
    control: Client,
}

impl Subject {
    fn start() -> Result<Subject> {
        let options = [("threads", "2"), ("appendonly", "yes"), ("appendfsync", "always")];
        let (server, port) = Server::start_with_http(&options)?;
        let (keys, control) = (Keys::connect(port)?, server.connect()?);
        Ok(Subject { server, keys, control })
    }

    fn raw(&mut self, command: &str) -> Result<Reply> {
        let reply = self.control.call_text(command)?;
        ensure!(!reply.is_error(), "{command}: {reply:?}");
        Ok(reply)
    }

    /// Sends a request. What is answered has to begin with this status.
    fn expect(&mut self, line: &str, status: &str) -> Result<String> {
        let told = self.keys.ask(line)?;
        ensure!(told.starts_with(status), "{line}: not {status} but {told}");
        Ok(told)
    }

    /// All that is there.
    fn picture(&mut self) -> Result<String> {
        let told = self.keys.ask("GET / recursive=true&sorted=true")?;
        // After a restart the index is that of the last event that is kept.
        let lines = told.lines().filter(|line| !line.starts_with("x-etcd-index"));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    /// The process is killed, and begins again with what it had written.
    fn restart(&mut self) -> Result<()> {
        self.server.start_again()?;
        self.keys = self.keys.again()?;
        self.control = self.server.connect()?;
        Ok(())
    }
}

#[test]
fn times_of_fields_take_nodes_away() -> Result<()> {
    let mut subject = Subject::start()?;
    subject.raw("DEBUG SET-ACTIVE-EXPIRE 0")?;
    for line in ["PUT /a value=1", "PUT /b value=1", "PUT /c value=1", "PUT /d/only value=1"] {
        subject.expect(line, "201")?;
    }
    subject.raw("HPEXPIRE {etcd}/ 1 FIELDS 2 a b")?;
    subject.raw("HEXPIRE {etcd}/ 1000 FIELDS 1 c")?;
    subject.raw("HPEXPIRE {etcd}/d/ 1 FIELDS 1 only")?;
    sleep(Duration::from_millis(20));
    subject.expect("GET /a", "404")?;
    subject.expect("DELETE /a", "404")?;
    subject.expect("PUT /a value=2&prevExist=true", "404")?;
    // It is made anew, and stays: what writes a field takes its time away.
    let told = subject.expect("PUT /a value=2", "201")?;
    ensure!(!told.contains("prevNode"), "{told}");
    subject.expect("PUT /b value=2&prevExist=false", "201")?;
    subject.expect("PUT /c value=2", "200")?;
    for name in ["a", "b", "c"] {
        let left = subject.raw(&format!("HPTTL {{etcd}}/ FIELDS 1 {name}"))?;
        ensure!(left == Reply::Array(vec![Reply::Integer(-1)]), "{name}: {left:?}");
    }
    // No request sees the only child of this directory, so it has none.
    let listing = subject.expect("GET /d", "200")?;
    ensure!(!listing.contains("nodes"), "{listing}");
    subject.expect("DELETE /d dir=true", "200")?;
    let before = subject.picture()?;
    subject.restart()?;
    let after = subject.picture()?;
    ensure!(before == after, "--- before\n{before}\n--- after\n{after}");
    Ok(())
}

#[test]
fn waiting_for_removed_events_is_an_error() -> Result<()> {
    for emptied in [
        "FLUSHALL",
        "FLUSHDB ASYNC",
        "SWAPDB 0 1",
        "DEL {etcd}:events",
        "MOVE {etcd}:events 1",
        "RENAME {etcd}:events {etcd}:past",
        "XTRIM {etcd}:events MAXLEN 0",
        "PEXPIRE {etcd}:events 1",
    ] {
        let mut subject = Subject::start()?;
        for number in 1..=5 {
            subject.expect(&format!("PUT /a/{number} value=1"), "201")?;
        }
        subject.raw(emptied)?;
        sleep(Duration::from_millis(5));
        let told = subject.expect("GET / wait=true&recursive=true&waitIndex=3", "400")?;
        ensure!(told.contains("\"errorCode\":401,") && told.contains("[6/3]"), "{emptied}: {told}");
        // Indexes go on, and a client that waits for the next event is told of it.
        let mut waits = subject.keys.again()?;
        waits.send("GET / wait=true&recursive=true&waitIndex=6")?;
        ensure!(waits.web.answer(false)?.status == 200);
        subject.keys.await_watchers(1)?;
        let told = subject.expect("PUT /next value=1", "201")?;
        ensure!(told.contains("\"modifiedIndex\":6,"), "{emptied}: {told}");
        let event = String::from_utf8(waits.web.chunk()?.context("an event")?)?;
        ensure!(event.contains("\"modifiedIndex\":6,"), "{emptied}: {event}");
    }
    Ok(())
}

/// What is noted about expiry names nodes in ways in which they are not called.
#[test]
fn wrong_names_in_the_expiry_index_are_ignored() -> Result<()> {
    let mut subject = Subject::start()?;
    subject.expect("PUT /due value=1&ttl=1", "201")?;
    subject.expect("PUT /dir/x value=1", "201")?;
    subject.expect("PUT /dir dir=true&prevExist=true&ttl=1", "200")?;
    for name in ["due", "/due/", "//due", "dir", "/dir/", "/dir/./", ""] {
        let added = subject.control.call(&["ZADD", "{etcd}:expiries", "2", name])?;
        ensure!(added == Reply::Integer(1), "{added:?}");
    }
    let begun = Instant::now();
    while subject.raw("EXISTS {etcd}:expiries")? == Reply::Integer(1) {
        ensure!(begun.elapsed() < Duration::from_secs(20), "nothing expires");
        sleep(Duration::from_millis(20));
    }
    let told = subject.expect("GET / recursive=true", "200")?;
    ensure!(told.contains("x-etcd-index: 5\n") && !told.contains("nodes"), "{told}");
    let events = subject.raw("XLEN {etcd}:events")?;
    ensure!(events == Reply::Integer(5), "three writes, and two ends: {events:?}");
    Ok(())
}

#[test]
fn a_recursive_deletion_takes_whatever_is_in_a_directorys_place() -> Result<()> {
    let mut subject = Subject::start()?;
    for line in ["PUT /a/b/c value=1", "PUT /a/x value=1", "PUT /a/y/z value=1&ttl=1000"] {
        subject.expect(line, "201")?;
    }
    subject.raw("SET {etcd}/a/b/ x")?;
    subject.expect("GET /a recursive=true", "500")?;
    subject.expect("GET /a/b/c", "500")?;
    subject.expect("DELETE /a recursive=true", "200")?;
    subject.expect("GET /a", "404")?;
    let left = subject.raw("KEYS {etcd}*")?;
    ensure!(left == Reply::Array(vec![Reply::Bulk(b"{etcd}:events".to_vec())]), "{left:?}");
    Ok(())
}

#[test]
fn paths_are_as_deep_as_memory_can_bear() -> Result<()> {
    let mut subject = Subject::start()?;
    let deepest = "/a".repeat(257);
    subject.expect(&format!("PUT {deepest} value=1"), "201")?;
    let told = subject.expect(&format!("PUT {deepest}/b value=1"), "400")?;
    ensure!(told.contains("\"errorCode\":209,"), "{told}");
    subject.expect(&format!("GET {deepest}"), "200")?;
    subject.expect(&format!("GET {}", "/a".repeat(4000)), "400")?;
    subject.expect("DELETE /a recursive=true", "200")?;
    Ok(())
}

/// One of all the ways in which a Redis client changes such keys.
fn any_command(random: &mut Random) -> String {
    let key = |random: &mut Random| {
        (*random.pick(&[
            "{etcd}/",
            "{etcd}/a/",
            "{etcd}/b/",
            "{etcd}/a/b/",
            "{etcd}:events",
            "{etcd}:expiries",
        ]))
        .to_owned()
    };
    let field = |random: &mut Random| *random.pick(&["a", "b", "c"]);
    let (one, other) = (key(random), key(random));
    match random.below(22) {
        0 => format!("HPEXPIRE {one} {} FIELDS 1 {}", random.below(3), field(random)),
        1 => format!("HEXPIRE {one} 1000 FIELDS 2 {} {}", field(random), field(random)),
        2 => format!("HSETEX {one} PX 1 FIELDS 1 {} 7", field(random)),
        3 => format!("HGETEX {one} PERSIST FIELDS 1 {}", field(random)),
        4 => format!("HGETDEL {one} FIELDS 1 {}", field(random)),
        5 => format!("HSET {one} {} {}", field(random), random.pick(&["x", "7", "=", "9-9---/"])),
        6 => format!("HDEL {one} {}", field(random)),
        7 => format!("DEL {one}"),
        8 => format!("RENAME {one} {other}"),
        9 => format!("COPY {one} {other} REPLACE"),
        10 => format!("MOVE {one} 1"),
        11 => "SWAPDB 0 1".to_owned(),
        12 => format!("PEXPIRE {one} {}", random.below(3)),
        13 => format!("SET {one} x"),
        14 => format!("ZADD {{etcd}}:expiries {} /{}", random.below(5), field(random)),
        15 => format!("ZADD {{etcd}}:expiries {} a/{}/", random.below(5), field(random)),
        16 => "XTRIM {etcd}:events MAXLEN 2".to_owned(),
        17 => "XADD {etcd}:events * action set key /a node 1 at 1ms".to_owned(),
        18 => format!("SUNIONSTORE {one} {other}"),
        19 => format!("HINCRBY {one} {} 1", field(random)),
        20 => "MULTI".to_owned(),
        _ => (*random.pick(&["FLUSHALL", "FLUSHDB"])).to_owned(),
    }
}

fn any_request(random: &mut Random) -> String {
    let path =
        (*random.pick(&["/a", "/b", "/c", "/a/a", "/a/b", "/a/b/c", "/b/a", "/"])).to_owned();
    let ttl = *random.pick(&["", "", "&ttl=0", "&ttl=1", "&ttl=1000"]);
    match random.below(9) {
        0 => format!("PUT {path} value=1{ttl}&prevExist={}", random.pick(&["true", "false"])),
        1 => format!("PUT {path} dir=true{ttl}"),
        2 => format!("DELETE {path} recursive=true"),
        3 => format!("DELETE {path} dir=true"),
        4 => format!("POST {path} value=1{ttl}"),
        5 => format!("GET {path} recursive=true"),
        6 => format!("PUT {path} refresh=true&ttl=1000&prevExist=true"),
        _ => format!("PUT {path} value=2{ttl}"),
    }
}

/// The index of an answer, if it has one.
fn index_of(told: &str) -> u64 {
    let line = told.lines().find_map(|line| line.strip_prefix("x-etcd-index: "));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn random_commands_beside_requests_break_nothing() -> Result<()> {
    let rounds = Rounds::from_environment(Duration::from_secs(8));
    let mut subject = Subject::start()?;
    let mut random = Random::new(rounds.first);
    let seed = rounds.first;
    let (begun, mut last, mut written) = (Instant::now(), 0, 0);
    while begun.elapsed() < rounds.patience {
        for _ in 0..60 {
            let command = any_command(&mut random);
            if command == "MULTI" {
                // What happens at once is in the journal at once.
                for line in ["MULTI", "DEL {etcd}/", "SWAPDB 0 1", "HSET {etcd}/ a =", "EXEC"] {
                    subject.control.call_text(line)?;
                }
            } else {
                subject.control.call_text(&command)?;
            }
            // Where the stream's last id is the time, it is far ahead of the others.
            if command.starts_with("XADD") {
                subject.raw("DEL {etcd}:events")?;
            }
            for _ in 0..3 {
                let line = any_request(&mut random);
                let told = subject.keys.ask(&line).with_context(|| {
                    format!("seed {seed}: {line} behind {command}: {}", subject.server.log_tail())
                })?;
                let index = index_of(&told);
                let created = told.starts_with('2') && !line.starts_with("GET");
                ensure!(!created || index > last, "seed {seed}: {line} behind {command}: {told}");
                last = last.max(index);
                written += usize::from(created);
            }
        }
        // What expires has done so by then, as far as anything says that it does.
        sleep(Duration::from_millis(1300));
        let before = subject.picture()?;
        subject.restart()?;
        let after = subject.picture()?;
        ensure!(before == after, "seed {seed}\n--- before\n{before}\n--- after\n{after}");
        subject.raw("FLUSHALL")?;
        subject.restart()?;
        last = subject.keys.index()?;
    }
    ensure!(written > 100, "{written} writes");
    Ok(())
}

/// A worker has other clients, who are not to wait while a long answer is made.
#[test]
fn a_long_answer_is_made_away_from_the_workers() -> Result<()> {
    const NODES: usize = 20_000;
    let mut subject = Subject::start()?;
    subject.expect("PUT /many/a value=x", "201")?;
    let mut fields = vec!["HSET".to_owned(), "{etcd}/many/".to_owned()];
    for number in 0..NODES {
        fields.extend([format!("n{number:05}"), format!("1 1 - =v{number}")]);
    }
    ensure!(subject.control.call(&fields)? == Reply::Integer(NODES as i64));
    let lists = |subject: &mut Subject| {
        let told = subject.raw("INFO commandstats")?;
        let told = String::from_utf8_lossy(told.text().unwrap_or_default()).into_owned();
        let own = told.lines().find_map(|line| line.strip_prefix("cmdstat_http|nodelist:calls="));
        let calls = own.and_then(|own| own.split(',').next()).unwrap_or("0");
        anyhow::Ok(calls.parse::<usize>()?)
    };
    ensure!(lists(&mut subject)? == 0);
    for (line, is_deep) in
        [("GET /many sorted=true", false), ("GET / sorted=true&recursive=true", true)]
    {
        let told = subject.expect(line, "200")?;
        let body = told.lines().last().context("a body")?;
        let body: serde_json::Value = serde_json::from_str(body)?;
        let many = if is_deep { &body["node"]["nodes"][0] } else { &body["node"] };
        let nodes = many["nodes"].as_array().context("nodes")?;
        ensure!(nodes.len() == NODES + 1 && nodes[0]["value"] == "x");
        ensure!(nodes[NODES]["key"] == "/many/n19999" && nodes[NODES]["value"] == "v19999");
    }
    ensure!(lists(&mut subject)? == 2, "a worker has made one");
    // What is short a worker answers, and each connection is answered in order.
    subject.expect("GET / ", "200")?;
    ensure!(subject.expect("GET /many/n00007", "200")?.contains("v7"));
    ensure!(lists(&mut subject)? == 2);
    Ok(())
}

/// How often the thread that does what takes long has stopped waiting for a job.
fn jobs_of_the_other_thread(server: &Server) -> Result<u64> {
    for task in std::fs::read_dir(format!("/proc/{}/task", server.pid()))? {
        let status = std::fs::read_to_string(task?.path().join("status"))?;
        let figure = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(|text| text.trim().to_owned()).context("a figure")
        };
        if figure("Name:")? == "listings" {
            return Ok(figure("voluntary_ctxt_switches:")?.parse()?);
        }
    }
    bail!("there is no such thread")
}

#[test]
fn a_large_directory_is_removed_beside_the_workers() -> Result<()> {
    let (server, port) = Server::start_with_http(&[("threads", "2")])?;
    let mut web = Web::connect(port)?;
    let ask = |web: &mut Web, line: &str| web.ask(line, &[], b"");
    // More than a worker removes at once.
    for number in 0..1100 {
        let path = format!("/v2/keys/large/{}/{number}", number % 3);
        ensure!(ask(&mut web, &format!("PUT {path}?value=1"))?.status == 201);
    }
    ensure!(ask(&mut web, "PUT /v2/keys/small/1?value=1")?.status == 201);
    let before = jobs_of_the_other_thread(&server)?;
    ensure!(ask(&mut web, "DELETE /v2/keys/small?recursive=true")?.status == 200);
    ensure!(jobs_of_the_other_thread(&server)? == before, "a worker does what is short itself");
    let answer = ask(&mut web, "DELETE /v2/keys/large?recursive=true")?;
    ensure!(answer.status == 200 && answer.text().contains("\"action\":\"delete\""), "{answer:?}");
    // It waits again a moment after the answer.
    wait_until("the job of the other thread", || Ok(jobs_of_the_other_thread(&server)? > before))?;
    ensure!(ask(&mut web, "GET /v2/keys/large")?.status == 404);
    let left = server.connect()?.call_text("KEYS {etcd}/large*")?;
    ensure!(left == Reply::Array(Vec::new()), "{left:?}");
    Ok(())
}
