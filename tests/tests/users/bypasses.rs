//! Ways around rights that other servers had: the key that is checked is not the key that is used,
//! or what is asked is not checked at all.

use anyhow::{Result, ensure};
use tests::client::{Received, Reply};
use tests::server::{Server, Target};
use tests::web::Web;

use super::{NO_KEY, connect_as, expect, said};

/// A server with some keys, and a user with rules of its own and everything else.
fn with_user(rules: &str) -> Result<Server> {
    let server = Server::start(Target::Dunlin, &[])?;
    let mut admin = server.connect()?;
    for command in [
        "SET secret s",
        "SET weight_1 s",
        "RPUSH list 1 2",
        "GEOADD geo 1 1 a",
        "XADD stream 1-1 f v",
        "SET own x",
        "RPUSH store 1",
        "GEOADD own_geo 1 1 a",
    ] {
        ensure!(!admin.call_text(command)?.is_error(), "{command}");
    }
    expect(&mut admin, &format!("ACL SETUSER u on nopass +@all {rules}"), "OK")?;
    Ok(server)
}

#[test]
fn option_words_that_are_names_of_keys_hide_no_key() -> Result<()> {
    let server = with_user("~own* ~store ~by ~streams ~storedist ~limit ~get")?;
    let mut client = connect_as(&server, "u")?;
    for command in [
        "SORT store STORE own STORE secret",
        "SORT store BY store STORE secret",
        "SORT store LIMIT 0 STORE STORE secret",
        "GEORADIUS own_geo 0 0 1 m STORE STORE STORE secret",
        "GEORADIUS own_geo 0 0 1000 km STORE own STOREDIST secret",
        "GEORADIUS own_geo 0 0 1000 km STORE own STORE secret",
        "GEORADIUSBYMEMBER own_geo a 1 m STOREDIST secret",
        "GEOSEARCHSTORE own secret FROMMEMBER a BYRADIUS 1 m",
        "XREAD COUNT 1 STREAMS own stream 0 0",
        "XREAD STREAMS streams stream 0 0",
        "XREADGROUP GROUP streams streams STREAMS stream >",
        "MSETNX own 1 secret 2",
        "MSET own 1 secret 2",
        "ZADD secret NX 1 m",
        "ZUNIONSTORE own 2 own secret",
        "ZINTERSTORE secret 1 own",
        "SINTERCARD 2 own secret",
        "LMPOP 2 own secret LEFT",
        "EVAL return 2 own secret",
        "MIGRATE 127.0.0.1 1 secret 0 10",
        "OBJECT ENCODING secret",
        "MEMORY USAGE secret",
        "RESTORE secret 0 x",
        "BITOP AND own own secret",
        "BITFIELD secret GET u8 0",
        "BITFIELD_RO secret GET u8 0",
        "COPY secret own",
        "COPY own secret",
        "RENAME own secret",
        "RENAME secret own",
        "WATCH own secret",
        "TOUCH own secret",
        "DUMP secret",
        "LCS own secret",
        "CHANGES SINCE $ KEY secret",
        "CHANGES SINCE $ PREFIX o",
        "CHANGES SINCE $",
        "CONTENTTYPE secret",
    ] {
        expect(&mut client, command, NO_KEY)?;
    }
    // The same words do no harm where they are allowed.
    expect(&mut client, "SORT store BY store STORE own", "1")?;
    expect(&mut client, "CHANGES SINCE $ PREFIX own", "Array")?;
    expect(&mut client, "CHANGES SINCE $ KEY own", "Array")?;
    Ok(())
}

#[test]
fn the_first_word_keys_of_migrate_counts() -> Result<()> {
    // The key is empty, which some pattern may allow.
    for rules in ["~own* ~KEYS", "~own* ~KEYS ~"] {
        let server = with_user(rules)?;
        let mut client = connect_as(&server, "u")?;
        for options in [
            "KEYS own secret",
            "KEYS secret KEYS own",
            "COPY AUTH2 KEYS x KEYS secret keys own",
            "AUTH KEYS KEYS secret keys own",
        ] {
            let command = ["MIGRATE", "127.0.0.1", "1", "", "0", "10"].into_iter();
            let words: Vec<&str> = command.chain(options.split(' ')).collect();
            let reply = said(&client.call(&words)?);
            ensure!(reply == NO_KEY, "{rules}: {options} answers {reply}");
        }
        let own = ["MIGRATE", "127.0.0.1", "1", "", "0", "10", "KEYS", "own8", "own9"];
        let reply = said(&client.call(&own)?);
        ensure!(reply == "NOKEY", "{rules}: {reply}");
    }
    // A password is no word of the command.
    let server = with_user("~own*")?;
    let mut client = connect_as(&server, "u")?;
    let command = ["MIGRATE", "127.0.0.1", "1", "", "0", "10", "AUTH", "KEYS", "KEYS", "own8"];
    let reply = said(&client.call(&command)?);
    ensure!(reply == "NOKEY", "{reply}");
    Ok(())
}

#[test]
fn reads_and_writes_are_told_apart() -> Result<()> {
    let server = with_user("%W~*")?;
    let mut client = connect_as(&server, "u")?;
    for command in [
        "GET secret",
        "GEOSEARCHSTORE own geo FROMMEMBER a BYRADIUS 1 m",
        "COPY secret own",
        "BITFIELD secret SET u8 0 1",
        "SET secret x GET",
        "GETEX secret",
        "GETDEL secret",
        "SORT list STORE own",
        "EVAL return 1 secret",
        "EVAL_RO return 1 secret",
        "CHANGES SINCE $",
    ] {
        expect(&mut client, command, NO_KEY)?;
    }
    expect(&mut client, "SET secret x", "OK")?;
    expect(&mut client, "EXISTS secret", "1")
}

/// What was found for one key of a pipeline counts for others: only for those it was found for.
#[test]
fn commands_that_come_together_are_judged_each() -> Result<()> {
    let server =
        with_user("~own* ~exactly %R~read* %W~out* -append (~longer-than-a-word-* +@all -get)")?;
    let mut client = connect_as(&server, "u")?;
    let commands = [
        ("SET own1 1", true),
        ("SET own2 1", true),
        ("SET ow 1", false),
        ("GET own1", true),
        ("APPEND own1 1", false),
        ("GET read1", true),
        ("SET read1 1", false),
        ("GET read2", true),
        ("SET read1 1 GET", false),
        ("SET out1 1", true),
        ("SET out1 1 GET", false),
        ("SET out2 1", true),
        ("GET exactly", true),
        ("GET exactly1", false),
        ("GET exactl", false),
        ("SET longer-than-a-word-1 1", true),
        ("SET longer-than-a-word-2 1", true),
        ("SET longer-than-a-wor 1", false),
        ("SET longer-than-b-word-1 1", false),
        ("GET longer-than-a-word-1", false),
        ("SET own3 1", true),
        ("SET secret 1", false),
    ];
    let lines: Vec<_> = commands.iter().map(|(line, _)| format!("{line}\r\n")).collect();
    client.send_raw(lines.concat().as_bytes())?;
    for (command, is_allowed) in commands {
        let Received::Reply(reply) = client.receive()? else { anyhow::bail!("it was closed") };
        ensure!(said(&reply).starts_with("-NOPERM") != is_allowed, "{command}: {reply:?}");
    }
    Ok(())
}

#[test]
fn a_pattern_of_channels_is_allowed_as_it_is_and_no_other() -> Result<()> {
    let server = with_user("~* &news* &one")?;
    for (command, is_allowed) in [
        ("SUBSCRIBE news1", true),
        ("PSUBSCRIBE news*", true),
        ("PSUBSCRIBE one", true),
        ("PSUBSCRIBE news1*", false),
        ("PSUBSCRIBE news1", false),
        ("PSUBSCRIBE *", false),
        ("PSUBSCRIBE news* news1*", false),
    ] {
        let told = said(&connect_as(&server, "u")?.call_text(command)?);
        let is_refused = told.starts_with("-NOPERM No permissions to access a channel");
        ensure!(is_refused != is_allowed, "{command}: {told}");
    }
    Ok(())
}

#[test]
fn patterns_of_sort_read_no_foreign_keys() -> Result<()> {
    let server = with_user("~list ~own")?;
    let mut client = connect_as(&server, "u")?;
    for (command, option) in [
        ("SORT_RO list BY weight_* GET #", "BY"),
        ("SORT list GET weight_*", "GET"),
        ("SORT_RO list GET weight_*", "GET"),
        ("SORT list BY nosort GET #", "GET"),
    ] {
        let denied = format!("-ERR {option} option of SORT denied due to insufficient ACL");
        expect(&mut client, command, &denied)?;
    }
    let script = "return redis.call('SORT', 'list', 'GET', 'weight_*')";
    let reply = said(&client.call(&["EVAL", script, "0"])?);
    ensure!(reply.contains("denied due to insufficient ACL permissions"), "{reply}");
    expect(&mut client, "SORT list", "Array")
}

#[test]
fn keys_that_are_revoked_after_queueing_are_not_used() -> Result<()> {
    let server = with_user("~*")?;
    let (mut admin, mut client) = (server.connect()?, connect_as(&server, "u")?);
    for command in ["MULTI", "GET own", "GET secret", "SET secret changed"] {
        ensure!(!client.call_text(command)?.is_error(), "{command}");
    }
    expect(&mut admin, "ACL SETUSER u resetkeys ~own", "OK")?;
    let replies = client.call_text("EXEC")?.elements().unwrap_or_default();
    let replies: Vec<String> = replies.iter().map(said).collect();
    ensure!(replies[0] == "x" && replies.len() == 3, "{replies:?}");
    for refused in &replies[1..] {
        ensure!(refused.starts_with("-NOPERM ACLs rules changed"), "{refused}");
        ensure!(refused.ends_with("no permission to touch the specified keys"), "{refused}");
    }
    expect(&mut admin, "GET secret", "s")
}

#[test]
fn databases_are_kept_apart() -> Result<()> {
    let server = with_user("~* resetchannels db=1,2")?;
    let (mut admin, mut client) = (server.connect()?, connect_as(&server, "u")?);
    const NO_DATABASE: &str = "-NOPERM No permissions to access database";
    for command in ["GET own", "SELECT 0", "SELECT 3", "FLUSHALL", "CHANGES SINCE $"] {
        let reply = said(&client.call_text(command)?);
        ensure!(reply.starts_with("-NOPERM"), "{command}: {reply}");
    }
    expect(&mut client, "SELECT 1", "OK")?;
    expect(&mut client, "SET k v", "OK")?;
    for command in ["MOVE k 0", "COPY k l DB 0", "SWAPDB 1 0", "SWAPDB 0 1", "FLUSHALL", "SELECT 3"]
    {
        expect(&mut client, command, NO_DATABASE)?;
    }
    let script = "redis.call('SELECT', 0) return redis.call('GET', 'own')";
    let reply = said(&client.call(&["EVAL", script, "0"])?);
    ensure!(reply.contains("No permissions to access database"), "{reply}");
    expect(&mut client, "COPY k l DB 2", "1")?;
    expect(&mut client, "MOVE k 2", "1")?;
    expect(&mut client, "FLUSHDB", "OK")?;
    expect(&mut admin, "GET own", "x")?;
    // Its database is taken away while it is selected.
    expect(&mut admin, "ACL SETUSER u db=2", "OK")?;
    expect(&mut client, "SET k v", NO_DATABASE)?;
    expect(&mut client, "SELECT 2", "OK")?;
    expect(&mut client, "GET l", "v")
}

#[test]
fn scripts_and_functions_run_as_their_caller() -> Result<()> {
    let server = with_user("~own")?;
    let (mut admin, mut client) = (server.connect()?, connect_as(&server, "u")?);
    let library = "#!lua name=lib\nredis.register_function('read', function(keys, args) \
                   return redis.call('GET', args[1]) end)";
    ensure!(!admin.call(&["FUNCTION", "LOAD", library])?.is_error());
    let inner = "ACL failure in script: No permissions to access a key";
    let reply = said(&client.call(&["FCALL", "read", "0", "secret"])?);
    ensure!(reply.contains(inner), "{reply}");
    ensure!(said(&client.call(&["FCALL", "read", "0", "own"])?) == "x");
    // One that an administrator has run before runs with the rights of who runs it now.
    let text = "return redis.call('GET', ARGV[1])";
    ensure!(said(&admin.call(&["EVAL", text, "0", "secret"])?) == "s");
    let reply = said(&client.call(&["EVAL", text, "0", "secret"])?);
    ensure!(reply.contains(inner), "{reply}");
    ensure!(said(&admin.call(&["EVAL", text, "0", "secret"])?) == "s");
    let reply = client.call(&["EVAL", "return redis.acl_check_cmd('GET', 'secret')", "0"])?;
    ensure!(reply == Reply::Nil, "{reply:?}");
    let log = admin.call_text("ACL LOG 1")?;
    ensure!(format!("{log:?}").contains(&format!("{:?}", Reply::Bulk(b"lua".to_vec()))), "{log:?}");
    Ok(())
}

#[test]
fn a_blocked_client_gets_nothing_that_it_may_no_longer_have() -> Result<()> {
    let server = with_user("~*")?;
    let (mut admin, mut client) = (server.connect()?, connect_as(&server, "u")?);
    client.send(&["BLPOP", "queue", "0"])?;
    tests::observe::wait_until("it waits", || {
        Ok(tests::observe::number(&mut admin, "blocked_clients")? == 1)
    })?;
    expect(&mut admin, "ACL SETUSER u resetkeys ~own", "OK")?;
    expect(&mut admin, "RPUSH queue element", "1")?;
    let Received::Reply(reply) = client.receive()? else { anyhow::bail!("it was closed") };
    ensure!(said(&reply) == NO_KEY, "{reply:?}");
    expect(&mut admin, "LLEN queue", "1")
}

#[test]
fn rights_of_several_selectors_do_not_add_up() -> Result<()> {
    let (server, port) = Server::start_with_http(&[])?;
    let mut admin = server.connect()?;
    for command in [
        "SET own x",
        "SET secret s",
        "HSET hash f v",
        // Each time, one set of rights has the command and another one the key.
        "ACL SETUSER u on >pw +@connection +hgetall +sadd +changes ~other %R~shown* (+get +rpush ~own) \
         (%R~secret* +set)",
    ] {
        ensure!(!admin.call_text(command)?.is_error(), "{command}");
    }
    let mut client = server.connect()?;
    expect(&mut client, "AUTH u pw", "OK")?;
    expect(&mut client, "GET secret", NO_KEY)?;
    for command in ["CHANGES SINCE $ KEY secret", "CHANGES SINCE $ PREFIX secret"] {
        expect(&mut client, command, NO_KEY)?;
    }
    expect(&mut client, "CHANGES SINCE $ PREFIX shown", "Array")?;
    let bearer = ["Authorization: Bearer u:pw"];
    for (line, body, status) in [
        ("GET /v1/keys/own", "", 200),
        ("GET /v1/keys/secret", "", 403),
        ("GET /v1/keys/other", "", 404),
        ("POST /v1/keys/own2", r#"["x"]"#, 403),
        ("POST /v1/keys/other", r#"["x"]"#, 403),
        ("GET /v1/changes?prefix=secret", "", 403),
        ("GET /v1/changes?key=secret", "", 403),
        ("GET /v1/keys/secret?wait=true&timeout=1", "", 403),
    ] {
        let answer = Web::connect(port)?.ask_whole(line, &bearer, body.as_bytes())?;
        ensure!(answer.status == status, "{line}: {} {}", answer.status, answer.text());
    }
    // It follows as long as one set of rights has both.
    client.send(&["CHANGES", "SINCE", "$", "PREFIX", "shown", "BLOCK", "0"])?;
    tests::observe::wait_until("it waits", || {
        Ok(tests::observe::number(&mut admin, "blocked_clients")? == 1)
    })?;
    expect(&mut admin, "ACL SETUSER u resetkeys ~other (+get %R~shown*)", "OK")?;
    expect(&mut admin, "SET shown1 x", "OK")?;
    ensure!(matches!(client.receive()?, Received::Closed));
    Ok(())
}

#[test]
fn hot_keys_of_other_databases_are_not_shown() -> Result<()> {
    let (server, port) = Server::start_with_http(&[])?;
    let mut admin = server.connect()?;
    expect(&mut admin, "ACL SETUSER all on >pw +info ~*", "OK")?;
    expect(&mut admin, "ACL SETUSER one on >pw +info ~* db=0", "OK")?;
    for (user, status) in [("all", 200), ("one", 403)] {
        let bearer = format!("Authorization: Bearer {user}:pw");
        let answer = Web::connect(port)?.ask_whole("GET /v1/hotkeys", &[&bearer], b"")?;
        ensure!(answer.status == status, "{user}: {}", answer.status);
    }
    Ok(())
}

#[test]
fn a_queued_select_is_heeded_by_what_is_queued_after_it() -> Result<()> {
    let server = with_user("~* db=1,2")?;
    let (mut admin, mut client) = (server.connect()?, connect_as(&server, "u")?);
    const NO_DATABASE: &str = "-NOPERM No permissions to access database";
    for (command, beginning) in [
        ("MULTI", "OK"),
        ("SELECT 1", "QUEUED"),
        ("SET k v", "QUEUED"),
        ("MOVE k 2", "QUEUED"),
        ("SELECT 2", "QUEUED"),
        ("GET k", "QUEUED"),
    ] {
        expect(&mut client, command, beginning)?;
    }
    let replies = client.call_text("EXEC")?.elements().unwrap_or_default();
    let replies: Vec<String> = replies.iter().map(said).collect();
    ensure!(replies == ["OK", "OK", "1", "OK", "v"], "{replies:?}");
    // What it selects in vain leaves it where it is, and so does a transaction that is given up.
    expect(&mut admin, "ACL SETUSER u db=0,1", "OK")?;
    expect(&mut client, "MULTI", "OK")?;
    expect(&mut client, "GET k", NO_DATABASE)?;
    expect(&mut client, "DISCARD", "OK")?;
    for command in ["SELECT 99", "SELECT x"] {
        expect(&mut admin, "ACL SETUSER u db=0,1,99", "OK")?;
        expect(&mut client, "MULTI", "OK")?;
        expect(&mut client, command, "QUEUED")?;
        expect(&mut client, "GET k", NO_DATABASE)?;
        expect(&mut client, "DISCARD", "OK")?;
    }
    // EXEC asks again, with the database that is selected then.
    expect(&mut admin, "SET k zero", "OK")?;
    for command in ["MULTI", "SELECT 0", "GET k"] {
        ensure!(!client.call_text(command)?.is_error(), "{command}");
    }
    expect(&mut admin, "ACL SETUSER u db=2", "OK")?;
    let replies = client.call_text("EXEC")?.elements().unwrap_or_default();
    let replies: Vec<String> = replies.iter().map(said).collect();
    ensure!(replies[0].starts_with("-NOPERM ACLs rules changed"), "{replies:?}");
    ensure!(replies[1] == "v", "it is in database 2 still: {replies:?}");
    Ok(())
}
