//! The client of etcd, at a real one: what it asks and hears, and what it does when members are
//! killed, stopped and started again.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, mpsc};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use cluster::store::{
    Answer, Compare, Failure, LeaseId, Operation, Pair, Request, Revision, Transaction, WatchEvent,
};
use gateway::{Config, Gateway, Stop, WatchEnd, Watched};
use tests::etcd_members::EtcdMembers;
use tls::ClientSettings;

/// What a call may take, with all attempts.
const LIMIT: Duration = Duration::from_secs(5);
/// How long a test waits for what is to happen.
const PATIENCE: Duration = Duration::from_secs(20);

fn gateway(endpoints: Vec<String>) -> Result<Gateway> {
    // Stopped members are noticed sooner than usual.
    let config = Config { endpoints, attempt_ms: 500, silence_ms: 500, ..Config::default() };
    Gateway::open(config).map_err(anyhow::Error::msg)
}

fn ask(gateway: &Gateway, request: Request) -> Result<Answer> {
    gateway.ask(&request, LIMIT).map_err(|failure| anyhow::anyhow!("{failure:?}"))
}

fn put(key: &str, value: &str, lease: LeaseId) -> Operation {
    Operation::Put { key: key.to_owned(), value: value.as_bytes().to_vec(), lease }
}

fn transaction(compares: Vec<Compare>, operations: Vec<Operation>) -> Request {
    Request::Transaction(Transaction { compares, operations })
}

/// Writes a key, and returns the revision of that.
fn write(gateway: &Gateway, key: &str, value: &str) -> Result<Revision> {
    match ask(gateway, transaction(vec![], vec![put(key, value, 0)]))? {
        Answer::Transaction { succeeded: true, revision } => Ok(revision),
        other => bail!("{other:?}"),
    }
}

fn read(gateway: &Gateway, prefix: &str) -> Result<(Revision, Vec<Pair>)> {
    match ask(gateway, Request::Read { prefix: prefix.to_owned() })? {
        Answer::Pairs { revision, pairs } => Ok((revision, pairs)),
        other => bail!("{other:?}"),
    }
}

/// Asks again until it succeeds, as a user does while members choose a leader.
fn write_at_last(gateway: &Gateway, key: &str, value: &str) -> Result<Revision> {
    let begun = Instant::now();
    loop {
        match write(gateway, key, value) {
            Err(error) if begun.elapsed() > PATIENCE => return Err(error),
            Err(_) => sleep(Duration::from_millis(20)),
            written => return written,
        }
    }
}

/// A watch in a thread of its own.
struct Watching {
    told: Receiver<Watched>,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<WatchEnd>>,
    /// Events that have come and were not taken.
    events: VecDeque<WatchEvent>,
}

impl Watching {
    fn start(gateway: &Arc<Gateway>, prefix: &str, from: Revision) -> Watching {
        let (tell, told) = channel();
        let stop = Arc::new(Stop::default());
        let (gateway, own, prefix) = (Arc::clone(gateway), Arc::clone(&stop), prefix.to_owned());
        let thread = std::thread::spawn(move || {
            gateway.watch(&prefix, from, &own, &mut |watched| {
                // Nobody listens any more at the end of a test.
                let _: Result<(), mpsc::SendError<Watched>> = tell.send(watched);
            })
        });
        Watching { told, stop, thread: Some(thread), events: VecDeque::new() }
    }

    fn next(&mut self) -> Result<WatchEvent> {
        while self.events.is_empty() {
            if let Watched::Events { events, .. } = self.told.recv_timeout(PATIENCE)? {
                self.events.extend(events);
            }
        }
        self.events.pop_front().context("an event")
    }

    fn end(&mut self) -> Result<WatchEnd> {
        let begun = Instant::now();
        while !matches!(self.told.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected)) {
            ensure!(begun.elapsed() < PATIENCE, "the watch does not end");
        }
        let thread = self.thread.take().context("it has ended")?;
        thread.join().map_err(|_| anyhow::anyhow!("the watch has panicked"))
    }

    fn stop(mut self) -> Result<()> {
        self.stop.stop();
        let end = self.end()?;
        ensure!(end == WatchEnd::Stopped, "{end:?}");
        Ok(())
    }
}

#[test]
fn keys_leases_and_watches() -> Result<()> {
    let etcd = EtcdMembers::start(1)?;
    let gateway = Arc::new(gateway(etcd.urls())?);

    // A transaction does all or nothing, and says at which revision.
    let created = write(&gateway, "/a/1", "one")?;
    let mut watching = Watching::start(&gateway, "/a/", created + 1);
    let absent = |key: &str| Compare::is_absent(key);
    let refused = transaction(vec![absent("/a/1")], vec![put("/a/2", "two", 0)]);
    let answer = ask(&gateway, refused)?;
    ensure!(answer == Answer::Transaction { succeeded: false, revision: created }, "{answer:?}");
    let modified = |revision| Compare::Modified { key: "/a/1".to_owned(), revision };
    let compares = vec![
        absent("/a/2"),
        modified(created),
        Compare::Created { key: "/a/1".into(), revision: created },
    ];
    let operations = vec![put("/a/1", "", 0), put("/a/2", "two \u{e9}\n", 0), put("/b/1", "b", 0)];
    let answer = ask(&gateway, transaction(compares, operations))?;
    let second = created + 1;
    ensure!(answer == Answer::Transaction { succeeded: true, revision: second }, "{answer:?}");
    let (revision, pairs) = read(&gateway, "/a/")?;
    let pair = |key: &str, value: &str, created, modified, lease| Pair {
        key: key.to_owned(),
        value: value.as_bytes().to_vec(),
        created,
        modified,
        lease,
    };
    let first = pair("/a/1", "", created, second, 0);
    let expected = vec![first.clone(), pair("/a/2", "two \u{e9}\n", second, second, 0)];
    ensure!((revision, &pairs) == (second, &expected), "{revision} {pairs:?}");
    // The watch tells of the keys with its prefix alone.
    ensure!(watching.next()? == WatchEvent::Put(first));
    ensure!(watching.next()? == WatchEvent::Put(expected[1].clone()));
    let delete = Operation::Delete { key: "/a/2".to_owned() };
    ask(&gateway, transaction(vec![], vec![delete]))?;
    let deleted = WatchEvent::Delete { key: "/a/2".to_owned(), revision: second + 1 };
    ensure!(watching.next()? == deleted);

    // Keys end with their lease, whether it is revoked or not renewed.
    let granted = ask(&gateway, Request::Grant { ttl_s: 1 })?;
    let Answer::Granted { lease, ttl_s } = granted else { bail!("{granted:?}") };
    ensure!(ttl_s >= 1, "{ttl_s}");
    ensure!(ask(&gateway, Request::KeepAlive { lease })? == Answer::KeptAlive { ttl_s });
    ask(&gateway, transaction(vec![], vec![put("/a/leased", "", lease)]))?;
    let WatchEvent::Put(leased) = watching.next()? else { bail!("no write") };
    ensure!(leased.lease == lease, "{leased:?}");
    let WatchEvent::Delete { key, .. } = watching.next()? else { bail!("no deletion") };
    ensure!(key == "/a/leased", "{key}");
    ensure!(ask(&gateway, Request::KeepAlive { lease })? == Answer::KeptAlive { ttl_s: 0 });
    let granted = ask(&gateway, Request::Grant { ttl_s: 60 })?;
    let Answer::Granted { lease, .. } = granted else { bail!("{granted:?}") };
    ask(&gateway, transaction(vec![], vec![put("/a/leased", "", lease)]))?;
    ensure!(ask(&gateway, Request::Revoke { lease })? == Answer::Revoked);
    ensure!(matches!(watching.next()?, WatchEvent::Put(_)));
    ensure!(matches!(watching.next()?, WatchEvent::Delete { .. }));
    ensure!(
        ask(&gateway, Request::Revoke { lease })? == Answer::Revoked,
        "twice is as good as once"
    );
    let gone = gateway.ask(&transaction(vec![], vec![put("/a/x", "", lease)]), LIMIT);
    ensure!(
        matches!(&gone, Err(Failure::NotDone(text)) if text.contains("lease not found")),
        "{gone:?}"
    );

    // What is forgotten cannot be watched, and is not passed over in silence.
    let last = write(&gateway, "/a/3", "three")?;
    etcd.control(&["compaction", &last.to_string()])?;
    let mut late = Watching::start(&gateway, "/a/", created);
    let end = late.end()?;
    ensure!(end == WatchEnd::Compacted { revision: last }, "{end:?}");
    // The watch that has been told of it all is not concerned.
    ensure!(watching.next()?.revision() == last);
    watching.stop()
}

#[test]
fn a_member_alone_is_killed_stopped_and_started_again() -> Result<()> {
    let mut etcd = EtcdMembers::start(1)?;
    let gateway = Arc::new(gateway(etcd.urls())?);
    let first = write(&gateway, "/k", "1")?;
    let mut watching = Watching::start(&gateway, "/", first);
    ensure!(watching.next()?.revision() == first);

    // A request that cannot have arrived says so.
    etcd.kill(0);
    let write_of = |value: &str| transaction(vec![], vec![put("/k", value, 0)]);
    let unsent = gateway.ask(&write_of("2"), LIMIT);
    ensure!(matches!(unsent, Err(Failure::NotDone(_))), "{unsent:?}");
    let end = watching.end()?;
    ensure!(matches!(end, WatchEnd::Lost(_)), "{end:?}");
    etcd.start_again(&[0])?;
    ensure!(write(&gateway, "/k", "3")? == first + 1, "the second write was not carried out");

    // One that is not answered may have been carried out or not, and what comes later is told of.
    let mut watching = Watching::start(&gateway, "/", first + 1);
    ensure!(watching.next()?.revision() == first + 1);
    etcd.stop(0)?;
    let unknown = gateway.ask(&write_of("4"), Duration::from_millis(300));
    ensure!(matches!(unknown, Err(Failure::Unknown(_))), "{unknown:?}");
    etcd.go_on(0)?;
    let last = write_at_last(&gateway, "/k", "5")?;
    let mut told = watching.next()?;
    while told.revision() < last {
        let WatchEvent::Put(pair) = &told else { bail!("{told:?}") };
        ensure!(pair.value == b"4", "{pair:?}");
        told = watching.next()?;
    }
    watching.stop()
}

#[test]
fn other_members_take_over() -> Result<()> {
    let mut etcd = EtcdMembers::start(3)?;
    let gateway = Arc::new(gateway(etcd.urls())?);
    let first = write_at_last(&gateway, "/k", "0")?;
    let granted = ask(&gateway, Request::Grant { ttl_s: 60 })?;
    let Answer::Granted { lease, .. } = granted else { bail!("{granted:?}") };
    let mut watching = Watching::start(&gateway, "/", first);
    ensure!(watching.next()?.revision() == first);

    // Each is killed once, so the leader is, too. Every write is told of, in order, and once.
    for number in 0..3 {
        etcd.kill(number);
        let value = format!("killed {number}");
        let revision = write_at_last(&gateway, "/k", &value)?;
        loop {
            let event = watching.next()?;
            let WatchEvent::Put(pair) = &event else { bail!("{event:?}") };
            if pair.modified == revision {
                ensure!(pair.value == value.as_bytes(), "{pair:?}");
                break;
            }
            ensure!(pair.modified < revision, "{pair:?} comes before {revision}");
        }
        let kept = ask(&gateway, Request::KeepAlive { lease })?;
        ensure!(kept == Answer::KeptAlive { ttl_s: 60 }, "{kept:?}");
        etcd.start_again(&[number])?;
    }

    // A member that stands still has all connections, and answers none.
    etcd.wait_until_served()?;
    for number in 0..3 {
        etcd.stop(number)?;
        let revision = write_at_last(&gateway, "/k", "stopped")?;
        while watching.next()?.revision() != revision {}
        etcd.go_on(number)?;
    }

    // Without a majority nothing is promised; the member that is left refuses or is silent.
    etcd.kill(0);
    etcd.kill(1);
    let alone = gateway.ask(&Request::Read { prefix: "/".to_owned() }, LIMIT);
    ensure!(alone.is_err(), "{alone:?}");
    etcd.start_again(&[0, 1])?;
    let revision = write_at_last(&gateway, "/k", "again")?;
    let (_, pairs) = read(&gateway, "/k")?;
    ensure!(pairs.len() == 1 && pairs[0].modified == revision, "{pairs:?}");
    Ok(())
}

/// Answers everything as a web server does that has no such page. Returns its address.
fn stranger() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok() {
                let answer = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\
                    Content-Length: 9\r\n\r\nNot Found";
                // Whoever asks may have gone.
                let _ = stream.write_all(answer);
            }
        }
    });
    Ok(url)
}

#[test]
fn a_stranger_among_the_members_is_passed_over() -> Result<()> {
    let etcd = EtcdMembers::start(1)?;
    let stranger = stranger()?;
    let gateway = Arc::new(gateway(vec![stranger.clone(), etcd.url(0)])?);
    let first = write(&gateway, "/k", "1")?;
    gateway.ask_another();
    ensure!(read(&gateway, "/k")?.0 == first);
    gateway.ask_another();
    let mut watching = Watching::start(&gateway, "/", first);
    ensure!(watching.next()?.revision() == first);
    watching.stop()?;
    // Alone, it has done nothing for certain.
    let alone = self::gateway(vec![stranger])?.ask(&Request::Grant { ttl_s: 5 }, LIMIT);
    ensure!(
        matches!(&alone, Err(Failure::NotDone(text)) if text.contains("not etcd's gateway")),
        "{alone:?}"
    );
    Ok(())
}

/// What it says of leases and changes is not what has become of those of the first.
#[test]
fn another_etcd_among_the_members_does_not_go_on_for_the_first() -> Result<()> {
    let (mut etcd, other) = (EtcdMembers::start(1)?, EtcdMembers::start(1)?);
    let gateway = Arc::new(gateway(vec![etcd.url(0), other.url(0)])?);
    let first = write(&gateway, "/k", "1")?;
    ensure!(read(&gateway, "/k")?.0 == first);
    let granted = ask(&gateway, Request::Grant { ttl_s: 60 })?;
    let Answer::Granted { lease, .. } = granted else { bail!("{granted:?}") };
    let mut watching = Watching::start(&gateway, "/", first);
    ensure!(watching.next()?.revision() == first);
    etcd.kill(0);
    let end = watching.end()?;
    ensure!(matches!(&end, WatchEnd::Lost(text) if text.contains("another etcd")), "{end:?}");
    let kept = gateway.ask(&Request::KeepAlive { lease }, LIMIT);
    ensure!(kept.is_err(), "{kept:?}");
    etcd.start_again(&[0])?;
    let kept = ask(&gateway, Request::KeepAlive { lease })?;
    ensure!(kept == Answer::KeptAlive { ttl_s: 60 }, "{kept:?}");
    // Once it is read, it counts.
    etcd.kill(0);
    ensure!(read(&gateway, "/k")?.1.is_empty());
    ensure!(ask(&gateway, Request::KeepAlive { lease })? == Answer::KeptAlive { ttl_s: 0 });
    Ok(())
}

#[test]
fn encryption_and_users() -> Result<()> {
    let mut etcd = EtcdMembers::start_encrypted()?;
    let (certificates, client) = etcd.encryption().context("it is encrypted")?;
    let name = |path: &std::path::Path| path.display().to_string();
    let own = (name(&client.certificate), name(&client.key));
    let (authority, own) = (name(&certificates.authority()), Some((&*own.0, &*own.1)));
    let endpoints = etcd.urls();
    let open = |tls: ClientSettings, user: Option<(&str, &str)>| {
        let user = user.map(|(name, password)| (name.to_owned(), password.to_owned()));
        let endpoints = endpoints.clone();
        let config = Config { endpoints, tls, user, attempt_ms: 2000, ..Config::default() };
        Gateway::open(config).map_err(anyhow::Error::msg)
    };
    let trusted = ClientSettings::of_options(Some(&authority), own);
    let gateway = open(trusted.clone(), None)?;
    write(&gateway, "/k", "1")?;

    let refused = |gateway: &Gateway| gateway.ask(&Request::Read { prefix: "/".into() }, LIMIT);
    // Neither a stranger's server nor a client without a certificate comes in.
    let stranger = refused(&open(ClientSettings::of_options(None, own), None)?);
    ensure!(
        matches!(&stranger, Err(Failure::NotDone(text)) if text.contains("certificate")),
        "{stranger:?}"
    );
    let nobody = refused(&open(ClientSettings::of_options(Some(&authority), None), None)?);
    ensure!(nobody.is_err(), "{nobody:?}");

    for line in [
        "user add root:secret",
        "user grant-role root root",
        "user add dunlin:word",
        "role add own",
        "role grant-permission own readwrite --prefix=true /dunlin/",
        "user grant-role dunlin own",
        "auth enable",
    ] {
        etcd.control(&line.split(' ').collect::<Vec<_>>())?;
    }
    let anonymous = gateway.ask(&transaction(vec![], vec![put("/k", "2", 0)]), LIMIT);
    ensure!(matches!(anonymous, Err(Failure::NotDone(_))), "{anonymous:?}");
    let wrong = refused(&open(trusted.clone(), Some(("dunlin", "worse")))?);
    ensure!(
        matches!(&wrong, Err(Failure::NotDone(text)) if text.contains("password")),
        "{wrong:?}"
    );
    let user = Arc::new(open(trusted, Some(("dunlin", "word")))?);
    let revision = write(&user, "/dunlin/k", "1")?;
    let mut watching = Watching::start(&user, "/dunlin/", revision);
    ensure!(watching.next()?.revision() == revision);
    let beyond = refused(&user);
    ensure!(
        matches!(&beyond, Err(Failure::NotDone(text)) if text.contains("permission")),
        "{beyond:?}"
    );
    let end = Watching::start(&user, "/", revision).end()?;
    ensure!(matches!(end, WatchEnd::Lost(_)), "{end:?}");

    // A member that was started again knows no token, and gives new ones.
    etcd.start_again(&[0])?;
    let revision = write(&user, "/dunlin/k", "2")?;
    match watching.next() {
        Ok(event) => ensure!(event.revision() == revision, "{event:?}"),
        // It may have given up before the member was back.
        Err(_) => {
            watching = Watching::start(&user, "/dunlin/", revision);
            ensure!(watching.next()?.revision() == revision);
        }
    }
    watching.stop()
}
