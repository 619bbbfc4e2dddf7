//! HTTP: each request is one of a user, and has that user's rights.

use anyhow::{Result, ensure};
use tests::observe::{number, wait_until};
use tests::server::Server;
use tests::web::{Answer, Web};

use super::expect;

fn basic(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}", base64(format!("{user}:{password}").as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - part.len()));
        for place in 0..4 {
            let sign = SIGNS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= part.len() { char::from(sign) } else { '=' });
        }
    }
    text
}

fn ask(web: &mut Web, line: &str, credentials: &str, body: &str) -> Result<Answer> {
    web.ask_whole(line, &[credentials], body.as_bytes())
}

fn with_users() -> Result<(Server, u16)> {
    let (server, port) = Server::start_with_http(&[("requirepass", "root")])?;
    let mut admin = server.connect()?;
    expect(&mut admin, "AUTH root", "OK")?;
    for command in [
        "SET app:1 one",
        "SET secret s",
        "HSET app:h f v",
        "RPUSH app:l a",
        "ACL SETUSER app on >pw ~app:* +@read +@write +@connection -hgetall -lpush",
        "ACL SETUSER reader on >pw %R~* +@all",
        "ACL SETUSER off off >pw ~* +@all",
    ] {
        ensure!(!admin.call_text(command)?.is_error(), "{command}");
    }
    Ok((server, port))
}

#[test]
fn requests_have_the_rights_of_their_user() -> Result<()> {
    let (_server, port) = with_users()?;
    let (app, bearer) = (basic("app", "pw"), "Authorization: Bearer app:pw".to_owned());
    for credentials in [&app, &bearer] {
        for (line, body, status) in [
            ("GET /v1/keys/app:1", "", 200),
            ("GET /v1/keys/secret", "", 403),
            ("HEAD /v1/keys/app:l", "", 200),
            ("GET /v1/keys/app:h", "", 403),
            ("PUT /v1/keys/app:2", "x", 201),
            ("PUT /v1/keys/app:2", "x", 204),
            ("PUT /v1/keys/secret", "x", 403),
            ("DELETE /v1/keys/secret", "", 403),
            ("DELETE /v1/keys/app:2", "", 204),
            ("POST /v1/command", r#"["GET","app:1"]"#, 200),
            ("POST /v1/command", r#"["GET","secret"]"#, 403),
            ("POST /v1/command", r#"["CONFIG","GET","port"]"#, 403),
            ("POST /v1/command", r#"["ACL","WHOAMI"]"#, 403),
            ("GET /get/app:1", "", 200),
            ("GET /get/secret", "", 403),
            ("GET /v1/changes", "", 403),
            ("GET /v1/changes?prefix=sec", "", 403),
            ("GET /v1/changes?key=secret", "", 403),
            ("GET /v1/keys/secret?wait=true&timeout=1", "", 403),
            ("GET /v1/memory", "", 403),
            ("GET /v1/memory?cursor=0", "", 403),
            ("GET /v1/overview", "", 403),
            ("GET /v1/hotkeys", "", 403),
            ("GET /metrics", "", 403),
            // As etcd answers who may not.
            ("GET /v2/keys/a", "", 401),
            ("PUT /v2/keys/a?value=x", "", 401),
            ("DELETE /v2/keys/a", "", 401),
            ("GET /v2/keys/a?wait=true", "", 401),
        ] {
            // A request for a stream ends its connection, whatever the answer is.
            let answer = ask(&mut Web::connect(port)?, line, credentials, body)?;
            let told = answer.text();
            ensure!(answer.status == status, "{line} {body}: {} {told}", answer.status);
        }
        let mut web = Web::connect(port)?;
        let patch = [&**credentials, "Content-Type: application/merge-patch+json"];
        let answer = web.ask_whole("PATCH /v1/keys/secret", &patch, b"{}")?;
        ensure!(answer.status == 403, "{}", answer.status);
        let pipeline = r#"[["GET","app:1"],["GET","secret"],["SET","app:3","x"]]"#;
        let answer = ask(&mut web, "POST /v1/pipeline", credentials, pipeline)?;
        let told = answer.text();
        ensure!(answer.status == 200 && told.contains("one") && told.contains("NOPERM"), "{told}");
        ensure!(!told.contains("\"s\""), "{told}");
        // It may not run EXEC.
        let transaction = r#"[["GET","app:1"]]"#;
        let answer = ask(&mut web, "POST /v1/transaction", credentials, transaction)?;
        ensure!(answer.status == 403 && answer.text().contains("'exec'"), "{answer:?}");
    }
    Ok(())
}

#[test]
fn metrics_name_keys_only_to_who_may_read_all() -> Result<()> {
    let (server, port) = with_users()?;
    let mut admin = server.connect()?;
    expect(&mut admin, "AUTH root", "OK")?;
    expect(&mut admin, "ACL SETUSER scraper on >pw ~app:* +@all", "OK")?;
    for (user, names_keys) in [("reader", true), ("scraper", false)] {
        let credentials = basic(user, "pw");
        let answer = ask(&mut Web::connect(port)?, "GET /metrics", &credentials, "")?;
        ensure!(answer.status == 200, "{user}: {}", answer.status);
        let has = answer.text().contains("dunlin_hot_key_commands_per_second");
        ensure!(has == names_keys, "{user}");
    }
    Ok(())
}

#[test]
fn requests_of_several_users_share_a_connection() -> Result<()> {
    let (_server, port) = with_users()?;
    let mut web = Web::connect(port)?;
    let (root, app) = ("Authorization: Bearer root".to_owned(), basic("app", "pw"));
    // The headers of a request may be remembered, but not for another one.
    for _ in 0..3 {
        for (credentials, secret) in [(&root, 200), (&app, 403), (&app, 403), (&root, 200)] {
            for (line, status) in [("GET /v1/keys/secret", secret), ("GET /v1/keys/app:1", 200)] {
                let answer = ask(&mut web, line, credentials, "")?;
                ensure!(answer.status == status, "{credentials} {line}: {}", answer.status);
            }
        }
        ensure!(ask(&mut web, "PUT /v1/keys/app:1", &app, "one")?.status == 204);
        ensure!(ask(&mut web, "GET /v1/keys/secret", &root, "")?.status == 200);
        ensure!(ask(&mut web, "PUT /v1/keys/secret", &root, "s")?.status == 204);
        ensure!(ask(&mut web, "GET /v1/keys/secret", &app, "")?.status == 403);
    }
    // Several at once.
    let one = |credentials: &str| {
        format!("GET /v1/keys/secret HTTP/1.1\r\nHost: localhost\r\n{credentials}\r\n\r\n")
    };
    let wanted = [200, 403, 403, 200, 403];
    let text: String =
        wanted.iter().map(|status| one(if *status == 200 { &root } else { &app })).collect();
    web.send(text.as_bytes())?;
    for status in wanted {
        ensure!(web.answer(false)?.status == status);
    }
    Ok(())
}

#[test]
fn wrong_credentials_are_refused_and_logged() -> Result<()> {
    let (server, port) = with_users()?;
    let mut web = Web::connect(port)?;
    for credentials in [
        basic("app", "wrong"),
        basic("off", "pw"),
        basic("nosuch", "pw"),
        basic("default", "pw"),
        "Authorization: Bearer app:wrong".to_owned(),
        "Authorization: Bearer pw".to_owned(),
        "X: none".to_owned(),
    ] {
        let answer = ask(&mut web, "GET /v1/keys/app:1", &credentials, "")?;
        ensure!(answer.status == 401, "{credentials}: {}", answer.status);
        let answer = ask(&mut web, "GET /healthz", &credentials, "")?;
        ensure!(answer.status == 200, "{credentials}: {}", answer.status);
    }
    let mut admin = server.connect()?;
    expect(&mut admin, "AUTH root", "OK")?;
    ensure!(tests::observe::number(&mut admin, "acl_access_denied_auth")? >= 6);
    Ok(())
}

#[test]
fn rights_that_shrink_end_streams_and_remembered_requests() -> Result<()> {
    let (server, port) = with_users()?;
    let mut admin = server.connect()?;
    expect(&mut admin, "AUTH root", "OK")?;
    let (mut web, mut stream) = (Web::connect(port)?, Web::connect(port)?);
    let reader = basic("reader", "pw");
    ensure!(ask(&mut web, "GET /v1/keys/secret", &reader, "")?.status == 200);
    ensure!(ask(&mut web, "GET /v1/keys/secret", &reader, "")?.status == 200);
    stream.request("GET /v1/changes", &[&reader], b"")?;
    ensure!(stream.answer(true)?.status == 200);
    expect(&mut admin, "ACL SETUSER reader resetkeys %R~app:*", "OK")?;
    expect(&mut admin, "SET secret changed", "OK")?;
    let rest = String::from_utf8_lossy(&stream.rest()?).into_owned();
    ensure!(!rest.contains("secret"), "{rest}");
    ensure!(ask(&mut web, "GET /v1/keys/secret", &reader, "")?.status == 403);
    ensure!(ask(&mut web, "GET /v1/keys/app:1", &reader, "")?.status == 200);
    expect(&mut admin, "ACL DELUSER reader", "1")?;
    let mut web = Web::connect(port)?;
    ensure!(ask(&mut web, "GET /v1/keys/app:1", &reader, "")?.status == 401);
    Ok(())
}

#[test]
fn remembered_requests_show_their_password_anew() -> Result<()> {
    let (server, port) = with_users()?;
    let mut admin = server.connect()?;
    expect(&mut admin, "AUTH root", "OK")?;
    let (mut web, credentials) = (Web::connect(port)?, basic("app", "pw"));
    for (rules, status) in [
        ("resetpass >other", 401),
        (">pw", 200),
        ("off", 401),
        ("on", 200),
        ("!30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4", 401),
    ] {
        expect(&mut admin, &format!("ACL SETUSER app {rules}"), "OK")?;
        for _ in 0..2 {
            let answer = ask(&mut web, "GET /v1/keys/app:1", &credentials, "")?;
            ensure!(answer.status == status, "{rules}: {}", answer.status);
        }
    }
    Ok(())
}

#[test]
fn an_open_server_takes_users_too() -> Result<()> {
    let (server, port) = Server::start_with_http(&[])?;
    let mut admin = server.connect()?;
    expect(&mut admin, "SET k v", "OK")?;
    expect(&mut admin, "ACL SETUSER app on >pw ~app:* +@all", "OK")?;
    let mut web = Web::connect(port)?;
    ensure!(ask(&mut web, "GET /v1/keys/k", "X: y", "")?.status == 200);
    ensure!(ask(&mut web, "GET /v1/keys/k", "Authorization: Bearer any", "")?.status == 200);
    ensure!(ask(&mut web, "GET /v1/keys/k", &basic("app", "pw"), "")?.status == 403);
    ensure!(ask(&mut web, "GET /v1/keys/k", &basic("app", "wrong"), "")?.status == 401);
    expect(&mut admin, "ACL SETUSER default off", "OK")?;
    ensure!(ask(&mut web, "GET /v1/keys/k", "X: y", "")?.status == 401);
    Ok(())
}

#[test]
fn views_ask_for_rights() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("views.toml");
    let text = "[databases.main]\nurl = \"sqlite:DIRECTORY/data.db\"\n\
                begin = [\"CREATE TABLE IF NOT EXISTS t (n INTEGER)\"]\n\
                [views.v]\nselect = \"SELECT 7 AS n\"\n\
                write = \"INSERT INTO t (n) VALUES (1)\"\nttl = 60\ntags = [\"t\"]\n";
    let place = directory.path().to_string_lossy();
    std::fs::write(&file, text.replace("DIRECTORY", &place))?;
    let (server, port) = Server::start_with_http(&[("views-file", &file.to_string_lossy())])?;
    let mut admin = server.connect()?;
    for (user, rules) in [
        ("all", "~* +@all"),
        ("reader", "~view:* +@all"),
        ("getter", "%R~* +get"),
        ("other", "~other* +@all"),
        ("nothing", "~* +@all -get -set -del"),
        ("elsewhere", "~* +@all db=1"),
        ("apart", "~other* +get (~view:* +set +del)"),
    ] {
        expect(&mut admin, &format!("ACL SETUSER {user} on >pw {rules}"), "OK")?;
    }
    // A result that is kept is asked for like one that is not.
    for _ in 0..2 {
        for (user, get, post, delete) in [
            ("other", 403, 403, 403),
            ("nothing", 403, 403, 403),
            ("elsewhere", 403, 403, 403),
            ("apart", 403, 403, 403),
            ("getter", 200, 403, 403),
            ("reader", 200, 403, 403),
            ("all", 200, 200, 200),
        ] {
            let credentials = basic(user, "pw");
            for (line, status) in [
                ("POST /v1/views/v", post),
                ("DELETE /v1/views/v", delete),
                ("DELETE /v1/views?tag=t", delete),
                ("GET /v1/views/v", get),
            ] {
                let body = if line.starts_with("POST") { "{}" } else { "" };
                let answer = ask(&mut Web::connect(port)?, line, &credentials, body)?;
                ensure!(answer.status == status, "{user} {line}: {answer:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_result_that_takes_long_reaches_nobody_who_has_lost_the_right_meanwhile() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("views.toml");
    // It takes about a second.
    let text = "[databases.main]\nurl = \"sqlite:DIRECTORY/data.db\"\n[views.v]\nselect = \"WITH \
                RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3000000) SELECT \
                max(n) AS n FROM c\"\nttl = 60\n";
    let place = directory.path().to_string_lossy();
    std::fs::write(&file, text.replace("DIRECTORY", &place))?;
    let (server, port) = Server::start_with_http(&[("views-file", &file.to_string_lossy())])?;
    let mut admin = server.connect()?;
    let mut webs = Vec::new();
    for user in ["loses", "keeps"] {
        expect(&mut admin, &format!("ACL SETUSER {user} on >pw ~view:* +get"), "OK")?;
        let mut web = Web::connect(port)?;
        web.request("GET /v1/views/v", &[&basic(user, "pw")], b"")?;
        webs.push(web);
    }
    wait_until("both wait", || Ok(number(&mut admin, "blocked_clients")? == 2))?;
    expect(&mut admin, "ACL SETUSER loses resetkeys ~other", "OK")?;
    let (lost, kept) = (webs[0].answer(false)?, webs[1].answer(false)?);
    ensure!(kept.status == 200 && kept.text().contains("3000000"), "{kept:?}");
    ensure!(lost.status == 403 && !lost.text().contains("3000000"), "{lost:?}");
    ensure!(number(&mut admin, "acl_access_denied_key")? == 1);
    Ok(())
}
