//! Views of databases over HTTP: the example with SQLite, MariaDB and PostgreSQL, and what happens
//! when the database is slow, gone, or changed meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tests::certificates::Certificates;
use tests::client::{Client, Received, Reply};
use tests::mariadb::Mariadb;
use tests::observe::wait_until;
use tests::postgresql::Postgresql;
use tests::server::{Server, Target, repository};
use tests::web::{Answer, Web};

fn start(views: &str, options: &[(&str, &str)]) -> Result<(Server, u16, TempDir)> {
    let directory = tempfile::Builder::new().prefix("dunlin-views-").tempdir()?;
    let file = directory.path().join("views.toml");
    fs::write(&file, views.replace("DIRECTORY", &directory.path().display().to_string()))?;
    let file = file.display().to_string();
    let own = [("threads", "2"), ("views-file", &*file), ("loglevel", "verbose")];
    let (server, port) = Server::start_with_http(&[&own, options].concat())?;
    Ok((server, port, directory))
}

/// The example, with another address of its database.
fn example(url: &str) -> Result<String> {
    let text = fs::read_to_string(repository().join("examples/departments/views.toml"))?;
    let own = "sqlite:departments.db";
    ensure!(text.contains(own));
    Ok(text.replace(own, url))
}

fn text(reply: &Reply) -> Result<String> {
    Ok(String::from_utf8_lossy(reply.text().context("a text")?).into_owned())
}

/// The key of the only result of a view that is kept.
fn kept_key(control: &mut Client, view: &str) -> Result<String> {
    let keys = control.call_text(&format!("KEYS view:{view}@*"))?;
    let keys = keys.elements().context("an array")?;
    let [key] = &*keys else { bail!("not one key: {keys:?}") };
    text(key)
}

/// A view of SQLite with one statement.
fn one(select: &str, rest: &str) -> String {
    format!(
        "[databases.main]\nurl = \"sqlite:DIRECTORY/data.db\"\n\
         [views.v]\nselect = \"{select}\"\n{rest}\n"
    )
}

fn get(web: &mut Web, path: &str) -> Result<Answer> {
    web.ask(&format!("GET /v1/views/{path}"), &[], b"")
}

/// Asks for a view, and expects how its result was had. Returns that.
#[track_caller]
fn had(web: &mut Web, path: &str, how: &str) -> String {
    let answer = get(web, path).expect("an answer");
    assert_eq!((answer.status, answer.header("x-cache")), (200, Some(how)), "{path}: {answer:?}");
    answer.text()
}

/// What the example does on any database.
fn try_the_example(port: u16) -> Result<()> {
    let mut web = Web::connect(port)?;
    let three = r#"[{"dept_no":"d1","dept_name":"Department 1"},{"dept_no":"d10","dept_name":"Department 10"},{"dept_no":"d100","dept_name":"Department 100"}]"#;
    assert_eq!(had(&mut web, "departments?rows=3", "miss"), three);
    assert_eq!(had(&mut web, "departments?rows=3", "hit"), three);
    let all: serde_json::Value =
        serde_json::from_str(&had(&mut web, "departments?rows=2000", "miss"))?;
    ensure!(all.as_array().is_some_and(|rows| rows.len() == 1000));
    had(&mut web, "departments", "miss");
    had(&mut web, "departments?rows=10", "hit");
    had(&mut web, "department?dept_no=d7", "miss");
    // What is bound is never a part of the statement.
    assert_eq!(had(&mut web, "department?dept_no=%27OR%271", "miss"), "[]");
    for wrong in
        ["departments?rows=0", "departments?rows=1%20OR%201", "departments?x=1", "department"]
    {
        let answer = get(&mut web, wrong)?;
        ensure!(answer.status == 400, "{wrong}: {answer:?}");
    }
    ensure!(get(&mut web, "other")?.status == 404);
    let body = br#"{"dept_no":"a'\"","dept_name":"Robert'); DROP TABLE departments; --"}"#;
    let written = web.ask("POST /v1/views/departments", &[], body)?;
    ensure!((written.status, written.text()) == (200, r#"{"changed":1}"#.into()), "{written:?}");
    // What was kept of any view with one of its tags is forgotten.
    let first = had(&mut web, "departments?rows=1", "miss");
    assert_eq!(first, r#"[{"dept_no":"a'\"","dept_name":"Robert'); DROP TABLE departments; --"}]"#);
    had(&mut web, "departments?rows=3", "miss");
    had(&mut web, "department?dept_no=d7", "miss");
    // The database refuses the same number again, and says why in the log alone.
    let again = web.ask("POST /v1/views/departments", &[], body)?;
    ensure!(again.status == 409 && again.text().contains("REFUSED"), "{again:?}");
    ensure!(!again.text().to_lowercase().contains("unique"), "{again:?}");
    ensure!(web.ask("POST /v1/views/departments", &[], b"{}")?.status == 400);
    ensure!(web.ask("POST /v1/views/department", &[], b"{}")?.status == 405);
    had(&mut web, "department?dept_no=d7", "miss");
    let forgotten = web.ask("DELETE /v1/views?tag=company", &[], b"")?;
    ensure!(forgotten.text() == r#"{"forgotten":1}"#, "{forgotten:?}");
    had(&mut web, "department?dept_no=d7", "miss");
    ensure!(web.ask("DELETE /v1/views/department", &[], b"")?.text() == r#"{"forgotten":1}"#);
    had(&mut web, "department?dept_no=d7", "miss");
    let names = web.ask("GET /v1/views", &[], b"")?;
    ensure!(names.text().starts_with(r#"{"views":["department","departments""#), "{names:?}");
    Ok(())
}

#[test]
fn the_example_works_with_sqlite() -> Result<()> {
    let (server, port, _directory) = start(&example("sqlite:DIRECTORY/departments.db")?, &[])?;
    try_the_example(port)?;
    ensure!(server.log().contains("UNIQUE constraint failed"), "{}", server.log_tail());
    Ok(())
}

#[test]
fn the_example_works_with_mariadb() -> Result<()> {
    let mut mariadb = Mariadb::start()?;
    let types = "\n[views.types]\nselect = \"SELECT :n + 1 AS whole, 0.5e0 AS half, 1.10 AS exact, \
                 NULL AS none, DATE '2026-02-03' AS day, TIMESTAMP '2026-02-03 04:05:06' AS moment, \
                 X'FF00' AS bytes, 18446744073709551615 AS large\"\nttl = 0.2\nstale = 100\n\
                 parameters = { n = { type = \"integer\" } }\n\
                 [views.midnight]\nttl = 1\nselect = \"SELECT TIMESTAMP '2026-02-03 00:00:00' AS moment, \
                 CAST('2026-02-03' AS DATETIME(3)) AS exact, TIME '00:00:00' AS time, \
                 CAST('01:02:03.25' AS TIME(2)) AS part, CAST(0.1 AS FLOAT) AS tenth, \
                 CAST(1e-7 AS FLOAT) AS small\"\n\
                 [views.slow]\nselect = \"SELECT SLEEP(20) AS slept\"\nttl = 1\n";
    let file = example(&format!("{}\"\ntimeout = 2 #", mariadb.url()))? + types;
    let (server, port, _directory) = start(&file, &[])?;
    try_the_example(port)?;
    let mut web = Web::connect(port)?;
    let row = r#"[{"whole":8,"half":0.5,"exact":"1.10","none":null,"day":"2026-02-03","moment":"2026-02-03 04:05:06","bytes":{"base64":"/wA="},"large":18446744073709551615}]"#;
    assert_eq!(had(&mut web, "types?n=7", "miss"), row);
    let midnight = r#"[{"moment":"2026-02-03 00:00:00","exact":"2026-02-03 00:00:00.000","time":"00:00:00","part":"01:02:03.25","tenth":0.1,"small":1e-7}]"#;
    assert_eq!(had(&mut web, "midnight", "miss"), midnight);
    let begun = Instant::now();
    assert_eq!(get(&mut web, "slow")?.status, 502);
    ensure!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    // Without the database, kept results are served, and others fail.
    mariadb.kill();
    sleep(Duration::from_millis(300));
    for _ in 0..10 {
        assert_eq!(had(&mut web, "types?n=7", "stale"), row);
    }
    ensure!(get(&mut web, "types?n=8")?.status == 502);
    ensure!(server.log().contains("View types: "), "{}", server.log_tail());
    mariadb.start_again()?;
    let begun = Instant::now();
    while get(&mut web, "types?n=9")?.status != 200 {
        ensure!(begun.elapsed() < Duration::from_secs(20), "{}", server.log_tail());
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

#[test]
fn the_example_works_with_postgresql() -> Result<()> {
    let Some(mut postgresql) = Postgresql::start()? else {
        eprintln!("Not tried: PostgreSQL refuses root, and no program runs as somebody else here.");
        return Ok(());
    };
    let types = "\n[views.types]\nselect = \"SELECT :n::int + 1 AS whole, 0.5::float8 AS half, 1.10 AS exact, \
                 NULL AS none, DATE '2026-02-03' AS day, TIMESTAMP '2026-02-03 04:05:06' AS moment -- end\"\n\
                 ttl = 0.2\nstale = 100\nparameters = { n = { type = \"integer\" } }\n\
                 [views.slow]\nselect = \"SELECT pg_sleep(20)\"\nttl = 1\n";
    let file = example(&format!("{}\"\ntimeout = 2 #", postgresql.url()))? + types;
    let (server, port, _directory) = start(&file, &[])?;
    try_the_example(port)?;
    ensure!(server.log().contains("duplicate key"), "{}", server.log_tail());
    let mut web = Web::connect(port)?;
    let row = r#"[{"whole":8,"half":0.5,"exact":1.10,"none":null,"day":"2026-02-03","moment":"2026-02-03T04:05:06"}]"#;
    assert_eq!(had(&mut web, "types?n=7", "miss"), row);
    let begun = Instant::now();
    assert_eq!(get(&mut web, "slow")?.status, 502);
    ensure!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    ensure!(server.log().contains("statement timeout"), "{}", server.log_tail());
    // A number outside of the database's range is the request's fault.
    assert_eq!(get(&mut web, "types?n=99999999999")?.status, 409);
    assert_eq!(had(&mut web, "types?n=8", "miss"), row.replace("8,", "9,"));
    postgresql.stop();
    sleep(Duration::from_millis(300));
    assert_eq!(had(&mut web, "types?n=7", "stale"), row);
    assert_eq!(get(&mut web, "types?n=9")?.status, 502);
    Ok(())
}

#[test]
fn requests_for_a_database_that_is_gone_fail_without_a_queue() -> Result<()> {
    // Nobody listens there: the port was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let file = format!(
        "[databases.main]\nurl = \"mariadb://u:p@127.0.0.1:{port}/x\"\n[views.v]\nttl = 60\n\
         select = \"SELECT :n AS n\"\nparameters = {{ n = {{ type = \"integer\" }} }}\n"
    );
    let (server, port, _directory) = start(&file, &[])?;
    let mut web = Web::connect(port)?;
    let begun = Instant::now();
    for number in 0..200 {
        assert_eq!(get(&mut web, &format!("v?n={number}"))?.status, 502);
    }
    let tries = server.log().matches("View v: ").count() as u64;
    ensure!((1..=4 * (2 + begun.elapsed().as_secs())).contains(&tries), "tried {tries} times");
    Ok(())
}

/// A database that accepts connections, and does not answer: at all, or as PostgreSQL beyond the
/// beginning of a connection.
fn hangs(begins: bool) -> Result<u16> {
    /// Any client may come in, and a statement may follow.
    const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    /// A statement has run, and the next one may follow.
    const SET: &[u8] = b"C\0\0\0\x08SET\0Z\0\0\0\x05I";
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for client in listener.incoming() {
            let Ok(mut client) = client else { continue };
            let mut bytes = [0; 4096];
            if begins && matches!(client.read(&mut bytes), Ok(1..)) {
                let _ = client.write_all(WELCOME);
                let _ = client.read(&mut bytes).and_then(|_| client.write_all(SET));
            }
            kept.push(client);
        }
    });
    Ok(port)
}

#[test]
fn a_database_that_hangs_is_given_up() -> Result<()> {
    let databases = [
        ("silent", format!("postgres://u:p@127.0.0.1:{}/x?connect_timeout=1", hangs(false)?)),
        ("begun", format!("postgres://u:p@127.0.0.1:{}/x", hangs(true)?)),
        ("mariadb", format!("mariadb://u:p@127.0.0.1:{}/x", hangs(false)?)),
    ];
    let mut file = String::new();
    for (name, url) in &databases {
        file += &format!(
            "[databases.{name}]\nurl = \"{url}\"\ntimeout = 0.5\nconnections = 1\n\
             [views.{name}]\ndatabase = \"{name}\"\nttl = 60\nselect = \"SELECT 1 AS n\"\n"
        );
    }
    let (server, port, _directory) = start(&file, &[])?;
    scope(|scope| {
        let ask = |name: &str| {
            let answer = get(&mut Web::connect(port)?, name)?;
            ensure!(answer.status == 502, "{name}: {answer:?}\n{}", server.log_tail());
            Ok(())
        };
        let asking: Vec<_> =
            databases.iter().map(|(name, _)| scope.spawn(move || ask(name))).collect();
        asking.into_iter().try_for_each(|asking| asking.join().expect("it does not panic"))
    })?;
    let log = server.log();
    ensure!(log.contains("View silent: no answer within 2 seconds"), "{log}");
    ensure!(log.contains("View begun: no answer within 5.5 seconds"), "{log}");
    Ok(())
}

/// Passes on what a client of MariaDB sends, and what it is answered: but once, when it is told to,
/// not the answer to a statement. Then it ends the connection.
fn lose_an_answer(upstream: u16, told: &'static AtomicBool) -> Result<u16> {
    /// A statement that was prepared is to run.
    const EXECUTE: u8 = 0x17;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(mut client), Ok(mut database)) =
                (client, TcpStream::connect(("127.0.0.1", upstream)))
            else {
                continue;
            };
            let (Ok(mut to), Ok(mut from)) = (client.try_clone(), database.try_clone()) else {
                continue;
            };
            let loses = Arc::new(AtomicBool::new(false));
            let armed = Arc::clone(&loses);
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = client.read(&mut bytes) {
                    if bytes[4] == EXECUTE && told.swap(false, SeqCst) {
                        armed.store(true, SeqCst);
                    }
                    if database.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
            });
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut bytes) {
                    if loses.load(SeqCst) || to.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
                // Either may be closed already.
                let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
            });
        }
    });
    Ok(port)
}

#[test]
fn connections_that_begin_at_once_do_not_get_in_each_others_way() -> Result<()> {
    let mariadb = Mariadb::start()?;
    let file = example(&mariadb.url())?.replace("connections = 4", "connections = 8");
    let (server, port, _directory) = start(&file, &[])?;
    let statuses = scope(|scope| {
        let write = |number: usize| -> Result<u16> {
            let body = format!("{{\"dept_no\":\"n{number}\",\"dept_name\":\"New\"}}");
            let answer =
                Web::connect(port)?.ask("POST /v1/views/departments", &[], body.as_bytes());
            Ok(answer?.status)
        };
        let writers: Vec<_> = (0..16).map(|number| scope.spawn(move || write(number))).collect();
        let statuses = writers.into_iter().map(|writer| writer.join().expect("it does not panic"));
        statuses.collect::<Result<Vec<u16>>>()
    })?;
    ensure!(statuses == [200; 16], "{statuses:?}: {}", server.log_tail());
    Ok(())
}

#[test]
fn a_change_is_not_made_twice_when_its_answer_is_lost() -> Result<()> {
    static LOSES: AtomicBool = AtomicBool::new(false);
    let mut mariadb = Mariadb::start()?;
    let through = lose_an_answer(mariadb.port(), &LOSES)?;
    let url = mariadb.url().replace(&mariadb.port().to_string(), &through.to_string());
    let file = format!(
        "[databases.main]\nurl = \"{url}\"\nconnections = 1\n\
         begin = [\"CREATE TABLE IF NOT EXISTS t (n INT)\"]\n[views.v]\nttl = 60\n\
         select = \"SELECT count(*) AS count FROM t\"\nwrite = \"INSERT INTO t VALUES (1)\"\n"
    );
    let (server, port, _directory) = start(&file, &[])?;
    let mut web = Web::connect(port)?;
    let mut write = || Ok::<_, anyhow::Error>(web.ask("POST /v1/views/v", &[], b"{}")?.status);
    ensure!(write()? == 200, "{}", server.log_tail());
    LOSES.store(true, SeqCst);
    ensure!(write()? == 502);
    // A connection that has ended since is no reason to refuse.
    ensure!(write()? == 200, "{}", server.log_tail());
    mariadb.start_again()?;
    ensure!(write()? == 200, "{}", server.log_tail());
    let told = had(&mut Web::connect(port)?, "v", "miss");
    ensure!(told == "[{\"count\":4}]", "{told}");
    Ok(())
}

/// Asks a database, over connections that are encrypted in each way, what it knows of them.
fn try_encryption(
    address: impl Fn(&str) -> String,
    select: &str,
    encrypted: &str,
    (authority, any_name): (&Path, bool),
) -> Result<()> {
    let by = format!("sslrootcert={}", authority.display());
    let ways = [
        ("plain", "127.0.0.1", "sslmode=disable".to_owned(), Some(false)),
        ("anybody", "127.0.0.1", "sslmode=require".to_owned(), Some(true)),
        ("signed", "127.0.0.1", format!("sslmode=verify-ca&{by}"), Some(true)),
        ("renamed", "localhost", format!("sslmode=verify-ca&{by}"), any_name.then_some(true)),
        ("host", "127.0.0.1", format!("sslmode=verify-full&{by}"), Some(true)),
        ("stranger", "127.0.0.1", "sslmode=verify-full".to_owned(), None),
        ("other", "localhost", format!("sslmode=verify-full&{by}"), None),
    ];
    let mut file = String::new();
    for (name, host, query, _) in &ways {
        let url = address(host);
        file += &format!("[databases.{name}]\nurl = \"{url}?{query}\"\nconnections = 1\n");
        file +=
            &format!("[views.{name}]\ndatabase = \"{name}\"\nttl = 60\nselect = \"{select}\"\n");
    }
    let (server, port, _directory) = start(&file, &[])?;
    let mut web = Web::connect(port)?;
    for (name, _, _, expected) in &ways {
        let answer = get(&mut web, name)?;
        let told = (answer.status == 200).then(|| answer.text().contains(encrypted));
        ensure!(told == *expected, "{name}: {answer:?}\n{}", server.log_tail());
    }
    let log = server.log();
    ensure!(log.contains("UnknownIssuer") && log.contains("not valid for name"), "{log}");
    Ok(())
}

#[test]
fn connections_to_mariadb_may_be_encrypted() -> Result<()> {
    let certificates = Certificates::make()?;
    let mariadb = Mariadb::start_encrypted(&certificates)?;
    let select = "SELECT variable_value <> '' AS encrypted FROM information_schema.session_status \
                  WHERE variable_name = 'Ssl_cipher'";
    let address = |host: &str| mariadb.url().replace("127.0.0.1", host);
    // Its library looks at the name all the same.
    try_encryption(address, select, "\"encrypted\":1", (&certificates.authority(), false))
}

#[test]
fn connections_to_postgresql_may_be_encrypted() -> Result<()> {
    let certificates = Certificates::make()?;
    let Some(postgresql) = Postgresql::start_encrypted(&certificates)? else {
        eprintln!("Not tried: PostgreSQL refuses root, and no program runs as somebody else here.");
        return Ok(());
    };
    let select = "SELECT ssl AS encrypted FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let address = |host: &str| postgresql.url().replace("127.0.0.1", host);
    try_encryption(address, select, "\"encrypted\":true", (&certificates.authority(), true))
}

#[test]
fn a_statement_ends_when_its_time_is_up() -> Result<()> {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n \
                   WHERE i < :least";
    let views = one(endless, "ttl = 60\nparameters.least = { type = \"integer\" }")
        .replace("data.db\"", "data.db\"\ntimeout = 0.5\nconnections = 1");
    let (server, port, _directory) = start(&views, &[])?;
    let mut web = Web::connect(port)?;
    for number in 0..2 {
        let begun = Instant::now();
        assert_eq!(get(&mut web, &format!("v?least={number}"))?.status, 502);
        ensure!((0.4..10.0).contains(&begun.elapsed().as_secs_f64()), "{:?}", begun.elapsed());
    }
    ensure!(server.log().contains("took too long"), "{}", server.log_tail());
    Ok(())
}

#[test]
fn a_tag_forgets_what_has_expired() -> Result<()> {
    let views = one("SELECT :n AS n", "ttl = 0.2\nparameters.n = { type = \"integer\" }");
    let (server, port, _directory) = start(&views, &[])?;
    let mut web = Web::connect(port)?;
    for n in 0..100 {
        had(&mut web, &format!("v?n={n}"), "miss");
    }
    sleep(Duration::from_millis(300));
    had(&mut web, "v?n=1000", "miss");
    // Where results never end, their names would fill the memory.
    let names = server.connect()?.call_text("ZRANGE view-tag:v 0 -1")?;
    let names = names.elements().context("an array")?;
    ensure!(names.len() == 1, "{names:?}");
    Ok(())
}

/// A statement that takes some tenths of a second and has another result each time.
const SLOW: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500000) \
                    SELECT random() AS chance, count(*) AS n FROM n";

#[test]
fn concurrent_requests_for_a_view_share_one_statement() -> Result<()> {
    let (_server, port, _directory) = start(&one(SLOW, "ttl = 60"), &[])?;
    let results: Result<BTreeSet<String>> = scope(|scope| {
        let ask = || -> Result<String> { Ok(had(&mut Web::connect(port)?, "v", "miss")) };
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let results = results?;
    ensure!(results.len() == 1, "{results:?}");
    assert_eq!(had(&mut Web::connect(port)?, "v", "hit"), *results.first().context("one")?);
    Ok(())
}

#[test]
fn a_stale_result_is_served_while_another_one_is_fetched() -> Result<()> {
    let views = one("SELECT random() AS chance", "ttl = 0.3\nstale = 60");
    let (_server, port, _directory) = start(&views, &[])?;
    let mut web = Web::connect(port)?;
    let first = had(&mut web, "v", "miss");
    assert_eq!(had(&mut web, "v", "hit"), first);
    sleep(Duration::from_millis(400));
    let stale = get(&mut web, "v")?;
    ensure!(stale.header("x-cache") == Some("stale") && stale.text() == first, "{stale:?}");
    ensure!(stale.header("warning") == Some("110 - \"Response is Stale\""), "{stale:?}");
    let begun = Instant::now();
    while get(&mut web, "v")?.text() == first {
        ensure!(begun.elapsed() < Duration::from_secs(10), "it is fetched");
    }
    Ok(())
}

#[test]
fn a_result_fetched_before_its_tag_was_forgotten_is_not_kept() -> Result<()> {
    let (_server, port, _directory) = start(&one(SLOW, "ttl = 60\ntags = [\"t\"]"), &[])?;
    let before = scope(|scope| {
        let asks = scope.spawn(|| Ok(had(&mut Web::connect(port)?, "v", "miss")));
        sleep(Duration::from_millis(50));
        let forgotten = Web::connect(port)?.ask("DELETE /v1/views?tag=t", &[], b"")?;
        ensure!(forgotten.status == 200, "{forgotten:?}");
        asks.join().expect("no panic")
    })?;
    ensure!(had(&mut Web::connect(port)?, "v", "miss") != before);
    Ok(())
}

/// The list of a tag's results is a key as any other, so it may be evicted before they are.
#[test]
fn a_forgotten_result_is_not_answered_when_the_list_of_its_tag_is_gone() -> Result<()> {
    let views = one("SELECT random() AS chance", "ttl = 60\ntags = [\"t\"]");
    let (server, port, _directory) = start(&views, &[])?;
    let mut web = Web::connect(port)?;
    let first = had(&mut web, "v", "miss");
    assert_eq!(had(&mut web, "v", "hit"), first);
    ensure!(server.connect()?.call_text("DEL view-tag:t")? == Reply::Integer(1));
    sleep(Duration::from_millis(10));
    let forgotten = web.ask("DELETE /v1/views?tag=t", &[], b"")?;
    ensure!(forgotten.text() == "{\"forgotten\":0}", "{forgotten:?}");
    let second = had(&mut web, "v", "miss");
    ensure!(second != first);
    assert_eq!(had(&mut web, "v", "hit"), second);
    Ok(())
}

#[test]
fn forgetting_a_tag_fails_when_results_cannot_be_deleted() -> Result<()> {
    let views = one("SELECT random() AS chance", "ttl = 60\ntags = [\"t\"]");
    let (server, port, _directory) = start(&views, &[("busy-reply-threshold", "50")])?;
    let (mut web, mut control) = (Web::connect(port)?, server.connect()?);
    let mut script = server.connect()?;
    for locks_the_list in [false, true] {
        let first = had(&mut web, "v", "miss");
        let result = kept_key(&mut control, "v")?;
        // A script keeps a key, and nobody else gets at it.
        let key = if locks_the_list { "view-tag:t" } else { &*result };
        let type_of = format!("TYPE {key}");
        script.send(&["EVAL", "while true do end", "1", key])?;
        wait_until("a script that runs for long", || Ok(control.call_text(&type_of)?.is_error()))?;
        let refused = web.ask("DELETE /v1/views?tag=t", &[], b"")?;
        ensure!(refused.status == 503 && refused.text().contains("BUSY"), "{key}: {refused:?}");
        ensure!(control.call_text("SCRIPT KILL")? == Reply::Status(b"OK".to_vec()));
        wait_until("the end of the script", || Ok(!control.call_text(&type_of)?.is_error()))?;
        ensure!(matches!(script.receive()?, Received::Reply(reply) if reply.is_error()));
        // It is not answered all the same, and can be deleted still.
        ensure!(control.call_text(&format!("EXISTS {result} view-tag:t"))? == Reply::Integer(2));
        ensure!(had(&mut web, "v", "miss") != first);
        let forgotten = web.ask("DELETE /v1/views?tag=t", &[], b"")?;
        ensure!(forgotten.text() == "{\"forgotten\":1}", "{forgotten:?}");
    }
    Ok(())
}

#[test]
fn no_statement_runs_for_clients_that_have_gone() -> Result<()> {
    let views = one(SLOW, "ttl = 60\nparameters.n = { type = \"integer\", default = 0 }")
        .replace("random() AS chance", ":n AS n")
        .replace("data.db\"", "data.db\"\nconnections = 1");
    let (server, port, _directory) = start(&views, &[])?;
    let mut web = Web::connect(port)?;
    let mut control = server.connect()?;
    let mut gone: Vec<TcpStream> = Vec::new();
    for n in 1..=6 {
        let mut own = TcpStream::connect(("127.0.0.1", port))?;
        own.write_all(
            format!("GET /v1/views/v?n={n} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes(),
        )?;
        gone.push(own);
        // Its statement begins, whichever of the others is first.
        if n == 1 {
            wait_until("the first request", || {
                Ok(text(&control.call_text("INFO clients")?)?.contains("blocked_clients:1"))
            })?;
        }
    }
    wait_until("six requests", || {
        Ok(text(&control.call_text("INFO clients")?)?.contains("blocked_clients:6"))
    })?;
    drop(gone);
    wait_until("that they have gone", || {
        Ok(text(&control.call_text("INFO clients")?)?.contains("blocked_clients:0"))
    })?;
    // After them in the queue of the one connection.
    had(&mut web, "v?n=7", "miss");
    let kept = control.call_text("KEYS view:v@*")?;
    let kept = kept.elements().context("an array")?.len();
    ensure!(kept <= 2, "the first statement had begun, the last one was asked for: {kept}");
    // A client that comes after all gets its answer.
    had(&mut web, "v?n=6", "miss");
    Ok(())
}

#[test]
fn a_slot_that_is_locked_for_long_delays_no_result() -> Result<()> {
    let views = one("SELECT :n AS n", "ttl = 60\nparameters.n = { type = \"integer\" }")
        + "[views.w]\nselect = \"SELECT 1 AS n\"\nttl = 60\n";
    let (server, port, _directory) = start(&views, &[("busy-reply-threshold", "600000")])?;
    let mut script = server.connect()?;
    // Three seconds of its processor's time.
    let text = "local from = os.clock() while os.clock() - from < 3 do end";
    script.send(&["EVAL", text, "1", "view-tag:v"])?;
    sleep(Duration::from_millis(200));
    // A connection of the other worker.
    let mut web = None;
    while web.is_none() {
        let mut own = Web::connect(port)?;
        own.set_patience(Duration::from_millis(300))?;
        web = own.ask("GET /healthz", &[], b"").is_ok().then_some(own);
    }
    let mut web = web.context("a connection")?;
    web.set_patience(Duration::from_secs(30))?;
    // None of them can be kept. Each would take a second if it waited for that.
    for n in 0..4 {
        had(&mut web, &format!("v?n={n}"), "miss");
    }
    had(&mut web, "w", "miss");
    had(&mut web, "w", "hit");
    ensure!(!script.is_readable()?, "the script runs still");
    while !script.has_input(Duration::from_secs(1))? {}
    ensure!(script.receive()? == Received::Reply(Reply::Nil));
    had(&mut web, "v?n=0", "miss");
    had(&mut web, "v?n=0", "hit");
    Ok(())
}

#[test]
fn a_restart_with_another_file_brings_no_result_of_the_earlier_one() -> Result<()> {
    let (mut server, port, directory) =
        start(&one("SELECT 'x' AS secret, 1 AS n", "ttl = 600"), &[("appendonly", "yes")])?;
    let first = had(&mut Web::connect(port)?, "v", "miss");
    ensure!(first.contains("secret"), "{first}");
    ensure!(server.terminate()? == Some(0), "{}", server.log_tail());
    let file = directory.path().join("views.toml");
    let text = fs::read_to_string(&file)?;
    fs::write(&file, text.replace("'x' AS secret, ", ""))?;
    server.start_again()?;
    assert_eq!(had(&mut Web::connect(port)?, "v", "miss"), "[{\"n\":1}]");
    ensure!(server.terminate()? == Some(0), "{}", server.log_tail());
    // With the first file again, its result is there still.
    fs::write(&file, text)?;
    server.start_again()?;
    assert_eq!(had(&mut Web::connect(port)?, "v", "hit"), first);
    Ok(())
}

#[test]
fn a_result_says_how_old_it_is_and_outlives_a_restart() -> Result<()> {
    let views = one("SELECT random() AS chance", "ttl = 60");
    let (mut server, port, _directory) = start(&views, &[("appendonly", "yes")])?;
    let mut web = Web::connect(port)?;
    let first = had(&mut web, "v", "miss");
    sleep(Duration::from_millis(1100));
    let kept = get(&mut web, "v")?;
    ensure!(kept.header("age") == Some("1") && !kept.tag().is_empty(), "{kept:?}");
    ensure!(kept.header("cache-control") == Some("max-age=60"), "{kept:?}");
    let condition = format!("If-None-Match: {}", kept.tag());
    let same = web.ask("GET /v1/views/v", &[&condition], b"")?;
    ensure!(same.status == 304 && same.body.is_empty(), "{same:?}");
    let head = web.ask("HEAD /v1/views/v", &[], b"")?;
    ensure!(head.status == 200 && head.header("content-length") == kept.header("content-length"));
    // It is a key like any other.
    let key = kept_key(&mut server.connect()?, "v")?;
    let value = web.ask(&format!("GET /v1/keys/{}", key.replace(':', "%3A")), &[], b"")?;
    ensure!(value.text() == first && value.header("content-type") == Some("application/json"));
    ensure!(server.terminate()? == Some(0), "{}", server.log_tail());
    server.start_again()?;
    assert_eq!(had(&mut Web::connect(port)?, "v", "hit"), first);
    Ok(())
}

#[test]
fn a_wrong_file_keeps_the_server_from_starting() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("views.toml");
    fs::write(&file, one("SELECT :rows", "ttl = 1"))?;
    for (path, reason) in [(&*file, "no parameter rows"), (Path::new("/none"), "No such file")] {
        let path = path.display().to_string();
        let error = Server::start(Target::Dunlin, &[("views-file", &path)]).expect_err("it ends");
        let text = format!("{error:#}");
        ensure!(text.contains("views-file") && text.contains(reason), "{text}");
    }
    Ok(())
}

/// Has the server read its file of views anew.
fn read_anew(server: &Server, path: &Path) -> Result<String> {
    let path = path.display().to_string();
    let reply = server.connect()?.call(&["CONFIG", "SET", "views-file", &path])?;
    Ok(String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned())
}

#[test]
fn the_file_is_read_anew() -> Result<()> {
    let two = |first: &str| {
        one(first, "ttl = 60\ntags = [\"both\"]")
            + "[views.stays]\nselect = \"SELECT random() AS chance\"\nttl = 60\ntags = [\"both\"]\n"
    };
    let (mut server, port, directory) = start(&two("SELECT 1 AS n"), &[("appendonly", "yes")])?;
    let file = directory.path().join("views.toml");
    let write = |text: String| {
        fs::write(&file, text.replace("DIRECTORY", &directory.path().display().to_string()))
    };
    let mut web = Web::connect(port)?;
    let stays = had(&mut web, "stays", "miss");
    assert_eq!(had(&mut web, "v", "miss"), "[{\"n\":1}]");
    // With nothing changed, everything is kept.
    assert_eq!(read_anew(&server, &file)?, "OK");
    assert_eq!(had(&mut web, "v", "hit"), "[{\"n\":1}]");
    write(two("SELECT 2 AS n"))?;
    assert_eq!(had(&mut web, "v", "hit"), "[{\"n\":1}]", "nobody has said so");
    assert_eq!(read_anew(&server, &file)?, "OK");
    assert_eq!(had(&mut web, "v", "miss"), "[{\"n\":2}]");
    assert_eq!(had(&mut web, "stays", "hit"), stays);
    // A file with a mistake changes nothing, also of what comes with it, and the mistake is told.
    let path = file.display().to_string();
    let mut control = server.connect()?;
    let manifest = server.directory().join("appendonlydir/appendonly.aof.manifest");
    let files = fs::read_to_string(&manifest)?;
    for (text, told) in [
        ("[views.v]\nselect = \"a secret\"\nttl = nonsense", "TOML parse error at line 3"),
        ("[views.v]\nselect = \"SELECT 1\"\nttl = 1", "there are views, and no database"),
    ] {
        write(text.to_owned())?;
        let error = read_anew(&server, &file)?;
        ensure!(error.contains("'views-file') - ") && error.contains(told), "{error}");
        ensure!(!error.contains("secret"), "{error}");
        ensure!(get(&mut web, "v")?.text() == "[{\"n\":2}]");
        let both = control.call(&["CONFIG", "SET", "appendonly", "no", "views-file", &path])?;
        ensure!(both.is_error(), "{both:?}");
        ensure!(!server.log().contains("rewriting started"), "{}", server.log_tail());
        ensure!(fs::read_to_string(&manifest)? == files);
    }
    ensure!(server.log().contains("The views are unchanged: "), "{}", server.log_tail());
    // Only clients that may change such settings may set another path.
    let other = directory.path().join("other.toml");
    fs::write(&other, "")?;
    let error = read_anew(&server, &other)?;
    ensure!(error.contains("can't set protected config"), "{error}");
    // With others that fail, nothing changes at all.
    write(two("SELECT 3 AS n"))?;
    let port_text = port.to_string();
    let both = control.call(&["CONFIG", "SET", "views-file", &path, "port", &port_text])?;
    ensure!(both.is_error(), "{both:?}");
    ensure!(get(&mut web, "v")?.text() == "[{\"n\":2}]", "the port is taken, and the views stay");
    assert_eq!(read_anew(&server, &file)?, "OK");
    assert_eq!(get(&mut web, "v")?.text(), "[{\"n\":3}]");
    // A view that is gone leaves nothing behind, whatever was kept of it.
    write(one("SELECT 3 AS n", "ttl = 60").replace("views.v", "views.w"))?;
    assert_eq!(read_anew(&server, &file)?, "OK");
    ensure!(get(&mut web, "v")?.status == 404 && get(&mut web, "stays")?.status == 404);
    had(&mut web, "w", "miss");
    let begun = Instant::now();
    loop {
        let left = control.call_text("KEYS view*")?;
        let names = left.clone().elements().context("an array")?;
        let names = names.iter().map(text).collect::<Result<Vec<_>>>()?;
        let is_new = |name: &String| name.contains(":w") || name == "view-tag:both";
        if names.iter().all(is_new) {
            break;
        }
        ensure!(begun.elapsed() < Duration::from_secs(10), "{left:?}");
        sleep(Duration::from_millis(10));
    }
    let described = web.ask("GET /v1/openapi.json", &[], b"")?.text();
    ensure!(described.contains("/v1/views/w") && !described.contains("/v1/views/v"));
    server.start_again()?;
    had(&mut Web::connect(port)?, "w", "hit");
    Ok(())
}

/// One client reads while others have the file read anew, which alternates between two statements.
#[test]
fn nobody_gets_a_result_of_an_earlier_file() -> Result<()> {
    let (server, port, directory) = start(&one("SELECT 0 AS n", "ttl = 60"), &[])?;
    let file = directory.path().join("views.toml");
    let text = fs::read_to_string(&file)?;
    scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let mut web = Web::connect(port)?;
                    let mut last = 0;
                    while last < 60 {
                        let answer = get(&mut web, "v")?;
                        ensure!(answer.status == 200, "{answer:?}");
                        let text = answer.text();
                        let number = text.trim_matches(|c: char| !c.is_ascii_digit()).parse()?;
                        ensure!(number >= last, "{number} behind {last}");
                        last = number;
                    }
                    Ok(())
                })
            })
            .collect();
        let mut web = Web::connect(port)?;
        for number in 1..=60 {
            fs::write(&file, text.replace("SELECT 0", &format!("SELECT {number}")))?;
            assert_eq!(read_anew(&server, &file)?, "OK");
            ensure!(get(&mut web, "v")?.text() == format!("[{{\"n\":{number}}}]"));
        }
        readers.into_iter().try_for_each(|reader| reader.join().expect("no panic"))
    })?;
    let begun = Instant::now();
    loop {
        let threads = fs::read_dir(format!("/proc/{}/task", server.pid()))?.count();
        if threads < 40 {
            return Ok(());
        }
        ensure!(begun.elapsed() < Duration::from_secs(10), "{threads} threads after sixty files");
        sleep(Duration::from_millis(20));
    }
}
