//! `/v2/keys` against etcd 3.4: the same requests to both, and answers that are the same but for
//! identifiers, times and where indexes begin.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::client::{Client, Reply};
use tests::etcd::{Etcd, Keys, told, without_times};
use tests::peers;
use tests::process::peak_resident_bytes;
use tests::random::{Random, Rounds};
use tests::server::Server;
use tests::web::Web;

/// How long something may take that happens at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// Dunlin and its judge.
struct Pair {
    server: Server,
    own: Keys,
    _etcd: Etcd,
    judge: Keys,
}

impl Pair {
    fn start() -> Result<Pair> {
        let (server, port) = start(&[])?;
        let etcd = Etcd::start()?;
        let (mut own, judge) = (Keys::connect(port)?, Keys::connect(etcd.port())?);
        own.catch_up_with(&judge)?;
        Ok(Pair { server, own, _etcd: etcd, judge })
    }

    /// Sends a request to both, and compares the answers.
    fn play(&mut self, line: &str) -> Result<String> {
        let (own, judged) = (self.own.ask(line)?, self.judge.ask(line)?);
        ensure!(own == judged, "{line}\n--- here\n{own}\n--- etcd\n{judged}");
        Ok(own)
    }
}

fn start(options: &[(&str, &str)]) -> Result<(Server, u16)> {
    Server::start_with_http(&[&[("threads", "2")], options].concat())
}

/// Bodies that no member can be made of.
const MEMBERS: [&str; 24] = [
    "",
    "x",
    "null",
    "[]",
    "{}",
    "\"x\"",
    "{\"peerURLs\":[\"http://x:1/\"]} trailing",
    "{\"peerURLs\":{\"peerURLs\":[1]}}",
    "{\"peerURLs\":[1,true]}",
    "{\"peerURLs\":[[\"a\"]]}",
    "{\"other\":[1],\"PeerUrls\":[null]}",
    "{\"peerURLs\":[\"http://x:1\"],\"peerURLs\":[]}",
    "{\"peerURLs\":[\"http://x:1\",\" http://x \\n\"]}",
    "{\"peerURLs\":[\"http://x:1/<p>\"]}",
    "{\"peerURLs\":[\"\\u0068ttp://\\ud83d\\ude00:1/\"]}",
    "{\"peerURLs\":[\"http://a b:1\"]}",
    "{\"peerURLs\":[\"http://x\\u0000:1\"]}",
    "{\"peerURLs\":[\"://x:1\"]}",
    "{\"peerURLs\":[\"x:1\"]}",
    "{\"peerURLs\":[\"1.2.3.4:5\"]}",
    "{\"peerURLs\":[\"http://x:1:2\"]}",
    "{\"peerURLs\":[\"http://x:port\"]}",
    "{\"peerURLs\":[\"http://u^@x:1\"]}",
    "{\"peerURLs\":[\"http://x%41:1\"]}",
];

/// Requests in a row. What is in braces is an index, counted from the first event.
const TRANSCRIPT: &str = "
GET /
GET / recursive=true&sorted=true
GET /a
GET /a/b/c
PUT /a value=one
GET /a
HEAD /a
HEAD /none
PUT /a value=two
PUT /a
GET /a quorum=true
GET /a quorum=true&wait=true
GET /a quorum=true&wait=true&stream=true&waitIndex=1
PUT /a/b value=x
PUT /a/b/c value=x
GET /a/b
DELETE /a/b
PUT /dir dir=true
PUT /dir dir=true
PUT /dir value=x
PUT /dir dir=true&prevExist=true&ttl=1000
PUT /dir prevExist=true
PUT /dir value=x&prevExist=true
PUT /dir/x/y/z value=deep
PUT /dir/x/_hidden value=h
PUT /dir/_h/k value=h
GET /dir sorted=true
GET /dir recursive=true&sorted=true
GET /dir/_h
GET /dir/x/y/z/none
DELETE /dir
DELETE /dir dir=true
DELETE /none
DELETE /none recursive=true
DELETE /dir/x recursive=true
GET /dir/x
PUT /a value=1&prevValue=2
PUT /a value=1&prevIndex={99}
PUT /a value=1&prevValue=2&prevIndex={99}
PUT /a value=3&prevValue=
PUT /a value=3&prevIndex=0
PUT /a value=4&prevValue=3
PUT /a value=5&prevExist=true&prevValue=4
PUT /a value=6&prevExist=false
PUT /new value=6&prevExist=false
PUT /new2 value=6&prevExist=true
PUT /new2 value=6&prevValue=x
PUT /dir value=6&prevValue=x
PUT /dir dir=true&prevExist=false
DELETE /new prevValue=x
DELETE /new prevIndex={1}
DELETE /dir prevValue=x
DELETE /none prevValue=x
DELETE / prevValue=x
DELETE /new prevValue=6
DELETE / recursive=true
PUT / value=x
PUT / dir=true
PUT / dir=true&prevExist=true
PUT / value=x&prevValue=y
POST /queue value=first
POST /queue value=second
POST /queue dir=true
POST /queue value=gone&ttl=1000
POST /a value=x
POST / value=x
GET /queue sorted=true
GET /queue sorted=true&recursive=true
PUT /t value=x&ttl=1000
PUT /t value=y&ttl=1000&prevExist=true
PUT /t ttl=1000&refresh=true&prevExist=true
PUT /t ttl=1000&refresh=true
PUT /t ttl=1000&refresh=true&prevValue=y
PUT /t ttl=1000&refresh=true&value=z
PUT /t refresh=true
PUT /t refresh=true&ttl=
PUT /none refresh=true&ttl=1000
PUT /none refresh=true&ttl=1000&prevExist=true
PUT /dir refresh=true&ttl=1000
PUT /dir refresh=true&ttl=1000&prevExist=true
PUT /t value=z&ttl=
GET /t
PUT /t value=z&ttl=9300000000
PUT /quiet value=x&noValueOnSuccess=true
PUT /quiet value=y&noValueOnSuccess=true&prevValue=x
POST /quiets value=y&noValueOnSuccess=1
DELETE /quiet noValueOnSuccess=true
GET /a noValueOnSuccess=true
PUT /a value=x&ttl=x
PUT /a value=x&ttl=-1
PUT /a value=x&prevIndex=x
PUT /a value=x&dir=x
PUT /a value=x&dir=
PUT /a value=x&prevExist=x
PUT /a value=x&refresh=x
PUT /a value=x&recursive=x
PUT /a value=x&sorted=x
PUT /a value=x&stream=x
PUT /a value=x&quorum=x
PUT /a value=x&noValueOnSuccess=x
PUT /a value=x&wait=true
DELETE /a wait=true
GET /a wait=x
GET /a waitIndex=x
GET /a recursive=T&sorted=1
PUT /a?value=query value=body
PUT /a?value=query
PUT /a value=%zz
PUT /a value=%4
PUT /a?x=%zz value=1
PUT /a value=1;ttl=5
PUT /a value=%zz&a;b
PUT /a value=%\"a
PUT /a value=%é
PUT /a?%4 value=%5
GET /a?recursive;x=1
PUT /a value=a+b%2B%26%3D%20c
PUT /a value=%3Ca%3E%26%22%5C%0A%09%01%7F
PUT /a value=%E2%80%A8%C3%A9%FF%E2%82x
PUT /caf%C3%A9%20x value=1
GET /caf%C3%A9%20x
PUT /%FFx value=1
GET /%FFx
PUT /slash%2Fed value=1
GET /slash
PUT /trailing/ value=1
GET /trailing/
GET //double//slash
GET /dots/../a
GET /dots/./a?recursive=true
PATCH /a value=1
GET /v2/none
GET /v2/stats/none
POST /v2/stats/store
POST /version
GET /version
GET /v2/members/none
DELETE /v2/members
DELETE /v2/members/xyz
GET / sorted=true
GET / sorted=true&recursive=true
";

#[test]
fn answers_are_those_of_etcd() -> Result<()> {
    let mut pair = Pair::start()?;
    for line in TRANSCRIPT.lines().filter(|line| !line.is_empty()) {
        pair.play(line)?;
    }
    ensure!(pair.server.is_running(), "{}", pair.server.log_tail());
    Ok(())
}

#[test]
fn addresses_and_types_of_bodies_are_read_as_by_etcd() -> Result<()> {
    let mut pair = Pair::start()?;
    let mut both = |line: &str, headers: &[&str], body: &[u8]| -> Result<()> {
        let ask = |keys: &mut Keys| -> Result<String> {
            let head = line.starts_with("HEAD ");
            keys.web.request(line, headers, body)?;
            Ok(told(&keys.web.answer(head)?))
        };
        let (own, judged) = (ask(&mut pair.own)?, ask(&mut pair.judge)?);
        ensure!(own == judged, "{line} {headers:?}\n--- here\n{own}\n--- etcd\n{judged}");
        Ok(())
    };
    for line in [
        "GET //v2/keys/a",
        "GET ///v2//keys/a//b/?x=%zz",
        "GET //v2/stats/none",
        "HEAD //v2/keys",
        "GET /v2/keys/../keys/a",
        "GET /v2/keys/%2e%2e/%2E/x",
        "GET /v2/keys//a%20b%3Fc%23d%25e'(*)!;~[x]",
        "GET /v2/keys/a%00b",
        "GET /v2/keys#fragment",
        "GET /v2/keysx",
        "GET /v2/",
        "GET /v2//keys/a?x=%3C&y='2'&z",
        "PUT /v2//keys/a?x=1",
        "GET /health",
    ] {
        both(line, &[], b"")?;
    }
    let form = "application/x-www-form-urlencoded";
    for media in [
        "",
        "text/plain",
        form,
        &form.to_uppercase(),
        &format!("{form}; charset=utf-8"),
        &format!("{form}; charset"),
        &format!("{form};"),
        &format!("{form};;"),
        &format!("{form}; a=b; A=c"),
        &format!("{form}; a=\"b\\\"\"; a=c"),
        "multipart/form-data; boundary=x",
        "/",
        "x y",
        "x/",
        "x/y z",
        "; a=b",
    ] {
        both("PUT /v2/keys/media", &[&format!("Content-Type: {media}")], b"value=1")?;
        both("PUT /v2/keys/media?value=%", &[&format!("Content-Type: {media}")], b"value=1;")?;
    }
    // None of these changes its members: what would is refused here alone.
    for place in ["", "/", "/x", "/1234", "/0ABC", "/ffffffffffffffff1", "/leader", "/a/b"] {
        for method in ["HEAD", "PATCH", "DELETE"] {
            both(&format!("{method} /v2/members{place}"), &[], b"")?;
        }
        for method in ["PUT", "POST"] {
            let line = format!("{method} /v2/members{place}");
            for media in ["", "text/plain", "application/json", "application/json;q=1"] {
                both(&line, &[&format!("Content-Type: {media}")], b"{")?;
            }
            for body in MEMBERS {
                both(&line, &["Content-Type: application/json"], body.as_bytes())?;
            }
        }
    }
    // The last, since etcd writes to its store when it is asked about users for the first time.
    for place in [
        "enable",
        "roles",
        "users",
        "roles/root",
        "roles/x",
        "users/x",
        "roles/x/y",
        "users/",
        "x",
        "",
    ] {
        for method in ["GET", "HEAD", "POST", "DELETE"] {
            both(&format!("{method} /v2/auth/{place}"), &["Content-Length: 0"], b"")?;
        }
    }
    Ok(())
}

/// A path of few, so that requests meet.
fn any_path(random: &mut Random) -> String {
    let names = ["a", "b", "_h", "c"];
    let depth = *random.pick(&[0, 1, 1, 1, 2, 2, 2, 3, 3, 4]);
    let path: String = (0..depth).map(|_| format!("/{}", random.pick(&names))).collect();
    if path.is_empty() { "/".to_owned() } else { path }
}

fn any_flag(random: &mut Random, name: &str, fields: &mut Vec<String>, chance: usize) {
    if random.percent(chance) {
        fields.push(format!("{name}={}", random.pick(&["true", "true", "false", "1", "F"])));
    }
}

/// A request, while the last event had this index.
fn any_request(random: &mut Random, index: u64) -> String {
    let path = any_path(random);
    let mut fields: Vec<String> = Vec::new();
    let method =
        *random.pick(&["PUT", "PUT", "PUT", "PUT", "POST", "DELETE", "DELETE", "GET", "GET"]);
    let some_index = |random: &mut Random| {
        let back = random.below(12) as u64;
        index.saturating_sub(back).to_string()
    };
    if method == "GET" {
        fields.push("sorted=true".into());
        any_flag(random, "recursive", &mut fields, 50);
        any_flag(random, "quorum", &mut fields, 20);
        return format!("GET {path} {}", fields.join("&"));
    }
    if method != "DELETE" && random.percent(75) {
        fields.push(format!("value={}", random.below(3)));
    }
    if method != "DELETE" && random.percent(15) {
        fields.push("ttl=1000".into());
        any_flag(random, "refresh", &mut fields, 40);
    }
    any_flag(random, "dir", &mut fields, 25);
    any_flag(random, "recursive", &mut fields, if method == "DELETE" { 40 } else { 5 });
    any_flag(random, "prevExist", &mut fields, 20);
    any_flag(random, "noValueOnSuccess", &mut fields, 10);
    if random.percent(15) {
        fields.push(format!("prevValue={}", random.below(3)));
    }
    if random.percent(15) {
        fields.push(format!("prevIndex={}", some_index(random)));
    }
    format!("{method} {path} {}", fields.join("&"))
}

#[test]
fn random_requests_are_answered_as_by_etcd() -> Result<()> {
    let rounds = Rounds::from_environment(Duration::from_secs(8));
    let mut pair = Pair::start()?;
    let mut random = Random::new(rounds.first);
    let (begun, mut lines) = (Instant::now(), Vec::new());
    let mut index = pair.own.index()?;
    while begun.elapsed() < rounds.patience {
        let line = any_request(&mut random, index);
        lines.push(line.clone());
        let own = pair.own.ask(&line)?;
        let judged = pair.judge.ask(&line)?;
        let last = lines.len().saturating_sub(40);
        ensure!(
            own == judged,
            "seed {}, request {}: {}\n--- here\n{own}\n--- etcd\n{judged}",
            rounds.first,
            lines.len(),
            lines[last..].join("\n")
        );
        let number = own.lines().find_map(|line| line.strip_prefix("x-etcd-index: "));
        index = number.and_then(|number| number.parse().ok()).unwrap_or(index);
    }
    ensure!(index > 100, "only {index} events in {} requests", lines.len());
    Ok(())
}

/// Reads the event for which a client has waited.
fn event(keys: &mut Keys) -> Result<String> {
    let answer = keys.web.answer(false)?;
    ensure!(answer.header("transfer-encoding") == Some("chunked"), "{answer:?}");
    let head = told(&answer);
    let event = keys.web.chunk()?.context("an event")?;
    ensure!(keys.web.chunk()?.is_none(), "there is one event");
    Ok(head + &without_times(&String::from_utf8(event)?))
}

#[test]
fn events_of_the_past_are_told_as_by_etcd() -> Result<()> {
    let mut pair = Pair::start()?;
    for line in [
        "PUT /a/b value=1",
        "PUT /a/_h value=2",
        "PUT /a/b ttl=1000&refresh=true&prevExist=true",
        "PUT /a/b value=3&prevValue=1",
        "PUT /d/x/y value=4",
        "DELETE /d recursive=true",
        "POST /q value=5",
        "PUT /a value=x",
        "PUT /ab value=6",
        "DELETE /ab",
    ] {
        pair.play(line)?;
    }
    for line in [
        "GET /a/b wait=true&waitIndex={1}",
        "GET /a/b wait=true&waitIndex={2}",
        "GET / wait=true&waitIndex={2}&recursive=true",
        "GET /a wait=true&waitIndex={1}&recursive=true",
        "GET /a wait=true&waitIndex={2}&recursive=true",
        "GET /d/x wait=true&waitIndex={2}",
        "GET /d/x/y wait=true&waitIndex={6}",
        "GET /dd wait=true&waitIndex={2}",
        "GET /q wait=true&waitIndex={1}&recursive=true",
        "GET /ab wait=true&waitIndex={9}",
    ] {
        pair.own.send(line)?;
        pair.judge.send(line)?;
        let (own, judged) = (event(&mut pair.own)?, event(&mut pair.judge)?);
        ensure!(own == judged, "{line}\n--- here\n{own}\n--- etcd\n{judged}");
    }
    // A thousand are kept.
    for number in 0..1010 {
        let line = format!("PUT /many value={number}");
        pair.own.ask(&line)?;
        pair.judge.ask(&line)?;
    }
    pair.play("GET /a wait=true&waitIndex={3}")?;
    pair.play("GET /many wait=true&waitIndex=1&recursive=true")?;
    Ok(())
}

/// Reads the event for which a client waits, if there is one soon.
fn hear(keys: &mut Keys, patience: Duration) -> Result<Option<String>> {
    keys.web.set_patience(patience)?;
    let event = keys.web.chunk().ok().flatten();
    Ok(event.map(|event| without_times(&String::from_utf8_lossy(&event))))
}

/// Reads the head of such an answer too.
fn listen(keys: &mut Keys, patience: Duration) -> Result<(Option<String>, Option<String>)> {
    keys.web.set_patience(PATIENCE)?;
    let head = told(&keys.web.answer(false)?);
    Ok((Some(head), hear(keys, patience)?))
}

#[test]
fn waiting_clients_get_the_answers_of_etcd() -> Result<()> {
    let rounds = Rounds::from_environment(Duration::from_secs(8));
    let mut pair = Pair::start()?;
    let mut random = Random::new(rounds.first);
    let (begun, mut heard_of) = (Instant::now(), 0);
    let mut index = pair.own.index()?;
    while begun.elapsed() < rounds.patience {
        let mut watches = Vec::new();
        for _ in 0..12 {
            let recursive = random.percent(60);
            let mut line = format!("GET {} wait=true&recursive={recursive}", any_path(&mut random));
            if random.percent(25) {
                line += &format!("&waitIndex={}", index + 1 + random.below(4) as u64);
            }
            let mut both = [pair.own.again()?, pair.judge.again()?];
            both.iter_mut().try_for_each(|keys| keys.send(&line))?;
            watches.push((line, both));
        }
        pair.own.await_watchers(watches.len())?;
        pair.judge.await_watchers(watches.len())?;
        let mut lines = Vec::new();
        for _ in 0..4 {
            let line = any_request(&mut random, index);
            let (own, judged) = (pair.own.ask(&line)?, pair.judge.ask(&line)?);
            ensure!(own == judged, "{line}\n--- here\n{own}\n--- etcd\n{judged}");
            let number = own.lines().find_map(|line| line.strip_prefix("x-etcd-index: "));
            index = number.and_then(|number| number.parse().ok()).unwrap_or(index);
            lines.push(line);
        }
        for (line, [own, judge]) in &mut watches {
            let soon = Duration::from_millis(30);
            let mut heard = [listen(own, soon)?, listen(judge, soon)?];
            let heads = [heard[0].0.take(), heard[1].0.take()];
            // One of them may have been slower.
            if heard[0].1.is_none() && heard[1].1.is_some() {
                heard[0].1 = hear(own, PATIENCE)?;
            } else if heard[1].1.is_none() && heard[0].1.is_some() {
                heard[1].1 = hear(judge, PATIENCE)?;
            }
            ensure!(heads[0] == heads[1], "{line}: {heads:?}");
            heard_of += usize::from(heard[0].1.is_some());
            ensure!(
                heard[0] == heard[1],
                "seed {}: {line} during {lines:?}\n--- here\n{:?}\n--- etcd\n{:?}",
                rounds.first,
                heard[0],
                heard[1]
            );
        }
        drop(watches);
        pair.own.await_watchers(0)?;
    }
    ensure!(heard_of > 3, "{heard_of} events were waited for");
    Ok(())
}

#[test]
fn a_stream_goes_on_from_event_to_event() -> Result<()> {
    let (server, port) = start(&[])?;
    let mut keys = Keys::connect(port)?;
    let mut stream = keys.again()?;
    keys.ask("PUT /s/0 value=before")?;
    stream.send("GET /s wait=true&stream=true&recursive=true&waitIndex={1}")?;
    let head = stream.web.answer(false)?;
    ensure!(head.status == 200 && head.header("x-etcd-index") == Some("1"), "{head:?}");
    keys.await_watchers(1)?;
    // More than the socket takes at once, and the client does not read.
    let value = "x".repeat(20_000);
    for number in 1..=600 {
        keys.ask(&format!("PUT /s/{number} value={number}{value}"))?;
        keys.ask("PUT /elsewhere value=1&ttl=5")?;
        keys.ask(&format!("PUT /s/_hidden value={number}"))?;
        if number == 1 {
            // It has something to send, and goes on behind it.
            sleep(Duration::from_millis(50));
        }
        if number > 300 {
            let _ = stream.web.chunk()?.context("an event")?;
        }
    }
    // It has read three hundred, and three times as many have happened since: not too many to go
    // on.
    for number in 301..=600 {
        let event = String::from_utf8(stream.web.chunk()?.context("an event")?)?;
        let expected = format!("\"key\":\"/s/{}\"", number - 1);
        ensure!(event.contains(&expected), "{} not in {}", expected, &event[..120]);
    }
    let mut control = server.connect()?;
    let list = text_of(&control.call_text("CLIENT LIST")?);
    ensure!(list.contains("cmd=http|nodewait"), "{list}");
    // A client that does not read is too late for events that are not kept any more, and the stream
    // ends.
    let mut slow = keys.again()?;
    slow.send("GET /s wait=true&stream=true&recursive=true")?;
    ensure!(slow.web.answer(false)?.status == 200);
    keys.await_watchers(2)?;
    for number in 0..3000 {
        keys.ask(&format!("PUT /s/{} value={number}{value}", number % 7))?;
    }
    let mut events = 0;
    while slow.web.chunk()?.is_some() {
        events += 1;
    }
    ensure!((1..3000).contains(&events), "{events} events");
    Ok(())
}

#[test]
fn nodes_expire_though_no_request_looks() -> Result<()> {
    let mut pair = Pair::start()?;
    pair.play("PUT /d dir=true&ttl=3")?;
    pair.play("PUT /d/x value=1")?;
    pair.play("PUT /stays value=1&ttl=1000")?;
    let line = "GET /d/x wait=true";
    let mut watches = [pair.own.again()?, pair.judge.again()?];
    watches.iter_mut().try_for_each(|keys| keys.send(line))?;
    let begun = Instant::now();
    let [own, judge] = &mut watches;
    let own = event(own)?;
    let waited = begun.elapsed();
    let judged = event(judge)?;
    ensure!(own == judged, "--- here\n{own}\n--- etcd\n{judged}");
    ensure!(own.contains("\"action\":\"expire\""), "{own}");
    ensure!(waited < Duration::from_secs(10), "{waited:?}");
    let early = own.contains("\"ttl\"");
    ensure!(!early, "nothing was left of its time: {own}");
    pair.play("GET / recursive=true&sorted=true")?;
    pair.play("GET /d")?;
    Ok(())
}

/// All that is there, the index, and what is told of the past.
fn picture(keys: &mut Keys) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for line in [
        "GET / recursive=true&sorted=true",
        "GET /_h sorted=true&recursive=true",
        "GET /_h/t",
        "GET /q sorted=true",
    ] {
        keys.send(line)?;
        let answer = keys.web.answer(false)?;
        let text = answer.text();
        // Seconds that are left are fewer each time, dates are not.
        let parts: Vec<&str> = text.split("\"ttl\":").collect();
        let without: String = parts
            .iter()
            .map(|part| part.trim_start_matches(|letter: char| letter.is_ascii_digit()))
            .collect();
        all.push(format!("{:?} {without}", answer.header("x-etcd-index")));
    }
    for index in [1, 5, 20] {
        let mut keys = keys.again()?;
        keys.send(&format!("GET / wait=true&recursive=true&waitIndex={index}"))?;
        let head = keys.web.answer(false)?;
        let event = keys.web.chunk()?.context("an event")?;
        all.push(format!("{} {}", head.status, String::from_utf8(event)?));
    }
    Ok(all)
}

fn fill(keys: &mut Keys) -> Result<()> {
    for number in 0..30 {
        keys.ask(&format!("PUT /a/{number} value={number}"))?;
        keys.ask("POST /q value=x")?;
    }
    for line in [
        "PUT /_h/t value=1&ttl=1000",
        "PUT /a/dir dir=true&ttl=2000",
        "PUT /a/1 value=2&prevIndex=3",
        "DELETE /a/2",
        "PUT /soon value=1&ttl=9",
        "PUT /a/dir/x value=1",
        "PUT /a/dir ttl=500&prevExist=true&refresh=true",
    ] {
        let told = keys.ask(line)?;
        ensure!(told.starts_with('2'), "{line}: {told}");
    }
    Ok(())
}

#[test]
fn the_tree_outlives_a_crash() -> Result<()> {
    outlives(("appendonly", "yes"), |_| Ok(()))
}

#[test]
fn the_tree_outlives_a_rewrite() -> Result<()> {
    outlives(("appendonly", "yes"), |control| {
        control.call_text("BGREWRITEAOF")?;
        await_reply(control, "aof_rewrite_in_progress:0")
    })
}

#[test]
fn the_tree_is_in_a_snapshot() -> Result<()> {
    outlives(("appendonly", "no"), |control| {
        let saved = control.call_text("SAVE")?;
        ensure!(saved == Reply::Status(b"OK".to_vec()), "{saved:?}");
        Ok(())
    })
}

/// The process is killed after `prepare`, and goes on with what it had.
fn outlives(option: (&str, &str), prepare: impl FnOnce(&mut Client) -> Result<()>) -> Result<()> {
    let (mut server, port) = start(&[option, ("appendfsync", "always")])?;
    let mut keys = Keys::connect(port)?;
    fill(&mut keys)?;
    let before = picture(&mut keys)?;
    prepare(&mut server.connect()?)?;
    server.start_again()?;
    let mut keys = Keys::connect(port)?;
    let after = picture(&mut keys)?;
    ensure!(before == after, "--- before\n{before:#?}\n--- after\n{after:#?}");
    // Indexes go on, and what expires goes on to do so.
    let next = keys.web.ask("PUT /v2/keys/next?value=1", &["Content-Length: 0"], b"")?;
    ensure!(next.header("x-etcd-index") == Some("68"), "{next:?}");
    keys.send("GET /soon wait=true")?;
    let event = event(&mut keys)?;
    ensure!(event.contains("\"action\":\"expire\""), "{event}");
    Ok(())
}

fn text_of(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

fn await_reply(control: &mut Client, text: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        sleep(Duration::from_millis(20));
        let info = text_of(&control.call_text("INFO persistence")?);
        if info.contains(text) {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "{text}");
    }
}

#[test]
fn parallel_writers_lose_nothing() -> Result<()> {
    const WRITERS: usize = 6;
    const TURNS: usize = 60;
    let (_server, port) = start(&[])?;
    let mut keys = Keys::connect(port)?;
    keys.ask("PUT /counter value=0")?;
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            thread::spawn(move || -> Result<Vec<u64>> {
                let mut web = Web::connect(port)?;
                let mut indexes = Vec::new();
                let field = |answer: &str, name: &str| -> Result<String> {
                    let behind = answer.split_once(&format!("\"{name}\":")).context("a field")?.1;
                    let end = behind.find([',', '}']).context("an end")?;
                    Ok(behind[..end].trim_matches('"').to_owned())
                };
                while indexes.len() < 2 * TURNS {
                    let now = web.ask("GET /v2/keys/counter", &[], b"")?.text();
                    let value: u64 = field(&now, "value")?.parse()?;
                    let index = field(&now, "modifiedIndex")?;
                    let line =
                        format!("PUT /v2/keys/counter?prevIndex={index}&value={}", value + 1);
                    let done = web.ask(&line, &[], b"")?;
                    if done.status == 412 {
                        continue;
                    }
                    indexes.push(done.header("x-etcd-index").context("an index")?.parse()?);
                    let posted = web.ask("POST /v2/keys/queue?value=x", &[], b"")?;
                    ensure!(posted.status == 201, "{posted:?}");
                    indexes.push(field(&posted.text(), "createdIndex")?.parse()?);
                }
                Ok(indexes)
            })
        })
        .collect();
    let mut all = BTreeSet::new();
    for writer in writers {
        for index in writer.join().expect("a writer ends")? {
            ensure!(all.insert(index), "two have the index {index}");
        }
    }
    let done = keys.ask("GET /counter")?;
    ensure!(done.contains(&format!("\"value\":\"{}\"", WRITERS * TURNS)), "{done}");
    ensure!(all.len() == 2 * WRITERS * TURNS && all.last() == Some(&(all.len() as u64 + 1)));
    Ok(())
}

#[test]
fn etcdctl_works() -> Result<()> {
    let pair = Pair::start()?;
    let mut outputs = Vec::new();
    for keys in [&pair.own, &pair.judge] {
        let endpoint = format!("http://127.0.0.1:{}", keys.port());
        let run = |words: &str| -> Result<String> {
            let output = etcdctl(&endpoint).args(words.split(' ')).output()?;
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            Ok(format!(
                "{} {}{}",
                output.status.success(),
                text(&output.stdout),
                text(&output.stderr)
            ))
        };
        let mut all = String::new();
        for words in [
            "set /x/y one",
            "get /x/y",
            "mk /x/y two",
            "mk /x/z two",
            "mkdir /d",
            "mkdir /d",
            "setdir --ttl 100 /e",
            "update /x/z three",
            "update /x/none three",
            "set --swap-with-value three /x/z four",
            "ls --sort -r /",
            "ls --sort -p /x",
            "rm /x",
            "rm --recursive /x",
            "rmdir /d",
            "rm /none",
            "get /none",
            "cluster-health-is-none",
        ] {
            all += &format!("{words}: {}", run(words)?);
        }
        let mut watch = etcdctl(&endpoint)
            .args(["watch", "--recursive", "/w"])
            .stdout(std::process::Stdio::piped())
            .spawn()?;
        keys.await_watchers(1)?;
        run("set /w/key value")?;
        let mut heard = String::new();
        std::io::Read::read_to_string(&mut watch.stdout.take().context("its output")?, &mut heard)?;
        ensure!(watch.wait()?.success());
        let mut exec = etcdctl(&endpoint)
            .args(["exec-watch", "--recursive", "/w", "--", "sh", "-c"])
            .arg("echo $ETCD_WATCH_ACTION $ETCD_WATCH_KEY $ETCD_WATCH_VALUE")
            .stdout(std::process::Stdio::piped())
            .spawn()?;
        keys.await_watchers(1)?;
        run("set /w/other two")?;
        let mut line = String::new();
        let mut output = std::io::BufReader::new(exec.stdout.take().context("its output")?);
        std::io::BufRead::read_line(&mut output, &mut line)?;
        exec.kill()?;
        exec.wait()?;
        let members = run("member list")?;
        ensure!(members.contains("isLeader=true"), "{members}");
        outputs.push(format!("{all}{heard}{line}"));
    }
    ensure!(outputs[0] == outputs[1], "--- here\n{}\n--- etcd\n{}", outputs[0], outputs[1]);
    ensure!(outputs[0].contains("set /w/other two"), "{}", outputs[0]);
    Ok(())
}

#[test]
fn a_large_event_is_kept_once_for_all_waiting_clients() -> Result<()> {
    const WAITERS: usize = 40;
    let value = vec![b'v'; 6 << 20];
    for (waits, writes) in [
        ("GET /v2/keys/a?wait=true", "PUT /v2/keys/a"),
        ("GET /v1/keys/a?wait=true", "PUT /v1/keys/a"),
    ] {
        let (server, port) = start(&[])?;
        let mut waiters = Vec::new();
        for _ in 0..WAITERS {
            let mut web = Web::connect(port)?;
            web.request(waits, &[], b"")?;
            waiters.push(web);
        }
        let mut control = server.connect()?;
        let begun = Instant::now();
        loop {
            let Reply::Bulk(clients) = control.call_text("INFO clients")? else { continue };
            if String::from_utf8_lossy(&clients).contains(&format!("blocked_clients:{WAITERS}\r")) {
                break;
            }
            ensure!(begun.elapsed() < PATIENCE, "{}", String::from_utf8_lossy(&clients));
        }
        let mut web = Web::connect(port)?;
        let form = "Content-Type: application/x-www-form-urlencoded";
        let body = match writes.contains("/v2/") {
            true => [b"value=", &value[..]].concat(),
            false => value.clone(),
        };
        ensure!(web.ask(writes, &[form], &body)?.status < 300);
        for web in &mut waiters {
            ensure!(web.answer(false)?.status == 200);
        }
        let peak = peak_resident_bytes(server.pid())?;
        // A copy for each would be 240 MiB, and the value is there some times while it is on its
        // way.
        ensure!(peak < 160 << 20, "{waits}: {peak}");
    }
    Ok(())
}

fn etcdctl(endpoint: &str) -> Command {
    let mut command = Command::new(peers::etcd("etcdctl"));
    command.env("ETCDCTL_API", "2").args(["--endpoints", endpoint]);
    command
}

#[test]
fn refusals_have_the_form_of_etcd() -> Result<()> {
    let (server, port) = start(&[("requirepass", "secret")])?;
    let mut web = Web::connect(port)?;
    let refused = web.ask("GET /v2/keys/a", &[], b"")?;
    ensure!(
        refused.status == 401 && refused.text().starts_with("{\"errorCode\":110,"),
        "{refused:?}"
    );
    ensure!(refused.header("www-authenticate").is_some());
    ensure!(web.ask("GET /health", &[], b"")?.text() == "{\"health\":\"true\"}");
    ensure!(web.ask("GET /version", &[], b"")?.status == 401);
    let bearer = "Authorization: Bearer secret";
    ensure!(web.ask("PUT /v2/keys/a?value=1", &[bearer], b"")?.status == 201);
    let basic = "Authorization: Basic ZGVmYXVsdDpzZWNyZXQ=";
    ensure!(web.ask("GET /v2/keys/a", &[basic], b"")?.status == 200);
    let foreign = web.ask("GET /v2/keys/a", &["Origin: http://evil.example"], b"")?;
    ensure!(foreign.status == 403 || foreign.status == 401, "{foreign:?}");
    let mut control = server.connect()?;
    control.call_text("AUTH secret")?;
    control.call_text("CONFIG SET maxmemory 1")?;
    let full = web.ask("PUT /v2/keys/a?value=2", &[bearer], b"")?;
    ensure!(full.status == 500 && full.text().starts_with("{\"errorCode\":300,"), "{full:?}");
    ensure!(full.text().contains("OOM command not allowed"), "{full:?}");
    ensure!(web.ask("DELETE /v2/keys/a", &[bearer], b"")?.status == 200, "that makes room");
    let long = format!("Content-Length: {}", 11 << 20);
    web.send(
        format!("PUT /v2/keys/a HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\n{long}\r\n\r\n")
            .as_bytes(),
    )?;
    let refused = web.answer(false)?;
    ensure!(
        refused.status == 413 && refused.text().starts_with("{\"errorCode\":210,"),
        "{refused:?}"
    );
    Ok(())
}

/// Others change the keys that the tree is kept in, in all ways.
#[test]
fn raw_keys_may_be_anything() -> Result<()> {
    let (mut server, port) = start(&[("appendonly", "yes")])?;
    let mut keys = Keys::connect(port)?;
    let mut control = server.connect()?;
    let requests = [
        "GET / recursive=true&sorted=true",
        "GET /a/b",
        "PUT /a/b value=1",
        "PUT /a/b value=1&ttl=1",
        "PUT /a dir=true&prevExist=true&ttl=1",
        "PUT /a/c/d value=2",
        "POST /a/q value=3",
        "DELETE /a/b",
        "DELETE /a recursive=true",
        "GET / wait=true&recursive=true&waitIndex=1",
    ];
    for raw in [
        "PING",
        "SET {etcd}/ x",
        "SET {etcd}/a/ x",
        "SET {etcd}:events x",
        "SET {etcd}:expiries x",
        "DEL {etcd}/",
        "DEL {etcd}/a/",
        "DEL {etcd}:events",
        "DEL {etcd}:expiries",
        "HSET {etcd}/ a x b 7 c 1-2",
        "HSET {etcd}/a/ b =1",
        "ZADD {etcd}:expiries 1 /a/b 2 x 3 /a/c/d/e -inf / inf /a nan",
        "ZADD {etcd}:expiries 1 /a/b 2 x 3 /a/c/d/e -inf / inf /a",
        "XADD {etcd}:events * a b",
        "XADD {etcd}:events * action set key 7 node 1 at 5",
        "XSETID {etcd}:events 18446744073709551615-18446744073709551615",
        "XTRIM {etcd}:events MAXLEN 0",
        "RENAME {etcd}/a/ {etcd}/",
        "SWAPDB 0 1",
        "EXPIRE {etcd}/ 1",
        "FLUSHALL",
    ] {
        for line in ["PUT /a/b value=1&ttl=1000", "PUT /a/c/d value=2"] {
            keys.ask(line)?;
        }
        control.call_text(raw)?;
        let mut last = 0;
        for line in requests {
            let mut keys = keys.again()?;
            keys.send(line)?;
            let answer = keys.web.answer(false)?;
            ensure!(answer.status <= 500 && answer.status != 301, "{raw}: {line}: {answer:?}");
            let index = answer.header("x-etcd-index").unwrap_or("0").parse::<u64>()?;
            ensure!(index == 0 || index >= last, "{raw}: {line}: {index} behind {last}");
            last = last.max(index);
        }
        control.call_text("FLUSHALL")?;
        ensure!(server.is_running(), "{raw}: {}", server.log_tail());
        if keys.ask("PUT /x value=1")?.starts_with("500") {
            // The index is at its end for as long as the process lasts.
            server.start_again()?;
            keys = keys.again()?;
            control = server.connect()?;
        }
    }
    Ok(())
}
