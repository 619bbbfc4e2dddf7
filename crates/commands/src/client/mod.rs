//! CLIENT: what connections tell about themselves and do to each other.
//!
//! There is no client-side caching yet, so TRACKING, CACHING and TRACKINGINFO are missing, and
//! GETREDIR always says that nothing is redirected.

use std::sync::Arc;

use resp::output::Output;
use resp::reply::Reply;

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::session::ReplyMode;
use engine::session::awaited::Unblocking;
use engine::session::client::{Client, Served, flag, is_one_word, valid_name};

mod choice;
mod filter;
mod rows;

use choice::{durability, position, readafter};
use filter::{Filter, Reader};
pub(crate) use rows::FAMILY;

/// Reads ON or OFF, the last argument.
fn on_or_off(args: &mut Args<'_>) -> Result<bool, CommandError> {
    if args.word("on") {
        Ok(true)
    } else if args.word("off") {
        Ok(false)
    } else {
        Err(CommandError::SYNTAX)
    }
}

/// CLIENT ID
fn id(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.reply.integer(cx.session.client.id as i64);
    Ok(())
}

/// CLIENT INFO
fn info(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let mut line = cx.session.client.describe(cx.db.monotonic, cx.engine.commands);
    line.push(b'\n');
    cx.reply.verbatim(b"txt", &line);
    Ok(())
}

/// CLIENT LIST [filter value [filter value ...]]
fn list(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let filter = Filter::parse(args, Reader::List, cx.engine)?;
    let (me, now) = (cx.session.client.id, cx.db.monotonic);
    let mut lines = Vec::new();
    for client in cx.engine.clients.all() {
        // A client that was killed is gone, though its worker may not have closed it yet.
        let is_left_out = client.is_killed() || filter.skip_me && client.id == me;
        if !is_left_out && filter.includes(&client, now) {
            lines.extend_from_slice(&client.describe(now, cx.engine.commands));
            lines.push(b'\n');
        }
    }
    cx.reply.verbatim(b"txt", &lines);
    Ok(())
}

/// CLIENT GETNAME
fn getname(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let names = cx.session.client.names.lock();
    if names.name.is_empty() {
        cx.reply.null();
    } else {
        cx.reply.bulk(&names.name);
    }
    Ok(())
}

/// CLIENT SETNAME connection-name
fn setname(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let name = valid_name(args.bytes()?)?;
    cx.session.client.names.lock().name = name.to_vec();
    cx.reply.ok();
    Ok(())
}

/// CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>
fn setinfo(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let (attribute, value) = (args.bytes()?, args.bytes()?);
    let is_name = attribute.eq_ignore_ascii_case(b"lib-name");
    if !is_name && !attribute.eq_ignore_ascii_case(b"lib-ver") {
        return Err(CommandError::quoting("ERR Unrecognized option '", attribute, "'"));
    }
    if !is_one_word(value) {
        return Err(CommandError::quoting(
            "ERR ",
            attribute,
            " cannot contain spaces, newlines or special characters.",
        ));
    }
    let mut names = cx.session.client.names.lock();
    let place = if is_name { &mut names.library } else { &mut names.library_version };
    *place = value.to_vec();
    cx.reply.ok();
    Ok(())
}

/// CLIENT KILL address, or CLIENT KILL filter value [filter value ...]
fn kill(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    if args.len() == 1 {
        let address = args.bytes()?;
        let all = cx.engine.clients.all();
        let found = all.into_iter().find(|client| client.address.as_bytes() == address);
        end(cx, vec![found.ok_or(CommandError::text("ERR No such client"))?]);
        cx.reply.ok();
        return Ok(());
    }
    let filter = Filter::parse(args, Reader::Kill, cx.engine)?;
    let (me, now) = (cx.session.client.id, cx.db.monotonic);
    let mut meant = cx.engine.clients.all();
    meant.retain(|client| filter.includes(client, now) && !(filter.skip_me && client.id == me));
    // A client that was killed before does not count, but may still be in the middle of a command.
    let killed = meant.iter().filter(|client| !client.is_killed()).count();
    cx.reply.integer(killed as i64);
    end(cx, meant);
    Ok(())
}

/// Closes connections. The others are closed when the reply is sent; a client's own one closes
/// after it.
fn end(cx: &mut Context<'_>, mut clients: Vec<Arc<Client>>) {
    let me = cx.session.client.id;
    if let Some(own) = clients.iter().position(|client| client.id == me) {
        clients.remove(own).set_flag(flag::CLOSING, true);
        cx.session.close = true;
    }
    cx.kill(&clients);
}

/// CLIENT PAUSE timeout [WRITE | ALL]
fn pause(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let name = args.bytes()?;
    if args.len() > 2 {
        return Err(CommandError::subcommand_syntax("client", name));
    }
    let timeout = args.bytes()?;
    let writes_only = args.word("write");
    if !writes_only && !args.word("all") && !args.is_empty() {
        return Err(CommandError::text("ERR CLIENT PAUSE mode must be WRITE or ALL"));
    }
    let timeout = base::num::parse_i64(timeout)
        .ok_or(CommandError::text("ERR timeout is not an integer or out of range"))?;
    let length = u64::try_from(timeout).map_err(|_| CommandError::TIMEOUT_NEGATIVE)?;
    // The end is a time that has to be in range too.
    if timeout.checked_add_unsigned(cx.db.now).is_none() {
        return Err(CommandError::text("ERR timeout is out of range"));
    }
    // The world is stopped, so every command after this one sees the pause.
    cx.engine.pause.extend(cx.db.monotonic, length, writes_only);
    cx.reply.ok();
    Ok(())
}

/// CLIENT UNPAUSE
fn unpause(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.engine.pause.end();
    cx.engine.wake_all_clients();
    cx.reply.ok();
    Ok(())
}

/// CLIENT REPLY <ON | OFF | SKIP>
fn reply(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    if args.word("on") {
        cx.session.reply_mode = ReplyMode::On;
        cx.reply.ok();
    } else if args.word("off") {
        cx.session.reply_mode = ReplyMode::Off;
    } else if args.word("skip") {
        if cx.session.reply_mode != ReplyMode::Off {
            cx.session.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::SYNTAX);
    }
    Ok(())
}

/// CLIENT NO-EVICT <ON | OFF>
fn no_evict(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let on = on_or_off(args)?;
    cx.session.client.set_flag(flag::NO_EVICT, on);
    cx.reply.ok();
    Ok(())
}

/// CLIENT NO-TOUCH <ON | OFF>
fn no_touch(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let on = on_or_off(args)?;
    cx.session.set_no_touch(on);
    cx.reply.ok();
    Ok(())
}

/// CLIENT IMPORT-SOURCE <ON | OFF>
fn import_source(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    // One may always stop.
    let stops = args.clone().word("off");
    if !stops && !cx.db.config.import_mode {
        return Err(CommandError::text("ERR Server is not in import mode"));
    }
    let on = on_or_off(args)?;
    cx.session.set_import_source(on);
    cx.reply.ok();
    Ok(())
}

/// CLIENT CAPA capability [capability ...]
fn capa(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    // An unknown option is ignored, so that newer clients may ask for more.
    if args.rest().iter().any(|word| word.eq_ignore_ascii_case(b"redirect")) {
        cx.session.client.set_flag(flag::REDIRECT, true);
    }
    cx.reply.ok();
    Ok(())
}

/// CLIENT UNBLOCK client-id [TIMEOUT | ERROR]
fn unblock(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let name = args.bytes()?;
    if args.len() > 2 {
        return Err(CommandError::subcommand_syntax("client", name));
    }
    let id = args.bytes()?;
    let with_error = args.word("error");
    if !with_error && !args.word("timeout") && !args.is_empty() {
        return Err(CommandError::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
    }
    let id = base::num::parse_i64(id).ok_or(CommandError::NOT_AN_INTEGER)?;
    let client = u64::try_from(id).ok().and_then(|id| cx.engine.clients.get(id));
    let how = if with_error { Unblocking::Error } else { Unblocking::Timeout };
    let unblocked = client.is_some_and(|client| end_wait_of(cx, &client, how));
    if unblocked && with_error {
        cx.db.stats.error_replies.add(1);
        cx.engine.stats.count_error("UNBLOCKED");
    }
    cx.reply.integer(i64::from(unblocked));
    Ok(())
}

/// Answers a blocked client as if its time were up, or with an error. Returns false when it is not
/// blocked, or another thread was quicker.
fn end_wait_of(cx: &Context<'_>, client: &Client, how: Unblocking) -> bool {
    let wait = client.wait.lock().clone();
    let Some(wait) = wait.filter(|wait| wait.unblock(how)) else { return false };
    if !wait.awaits_sync() {
        let mut output = Output::new();
        let mut reply = Reply::new(&mut output, wait.resp3);
        match how {
            Unblocking::Error => reply.error(Unblocking::ERROR),
            Unblocking::Timeout => wait.reply_timed_out(&mut reply),
        }
        client.inbox.lock().served =
            Some(Box::new(Served { wait, reply: output, write_offset: 0 }));
    }
    cx.engine.host.wake(client);
    true
}

/// CLIENT GETREDIR
fn getredir(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    // Tracking is off.
    cx.reply.integer(-1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[test]
    fn killing_asks_the_others_and_closes_oneself_after_the_reply() {
        let mut server = crate::testing::server();
        let other = server.connect();
        assert_eq!(server.text("CLIENT KILL SKIPME no TYPE normal USER default"), ":2\r\n");
        assert!(other.client.is_killed());
        assert_eq!(server.text("CLIENT LIST").matches("id=").count(), 1, "it is gone at once");
        assert_eq!(server.text("CLIENT KILL TYPE normal"), ":0\r\n");
        assert!(server.session.close && !server.session.client.is_killed());
    }

    #[test]
    fn a_killed_subscriber_hears_nothing_though_its_worker_has_not_closed_it() {
        let mut server = crate::testing::server();
        let mut other = server.connect();
        server.text_as(&mut other, "SUBSCRIBE one");
        server.text_as(&mut other, "PSUBSCRIBE o*");
        assert_eq!(server.text("PUBLISH one 1"), ":2\r\n");
        assert_eq!(server.text("CLIENT KILL TYPE pubsub"), ":1\r\n");
        assert_eq!(server.text("PUBLISH one 2"), ":0\r\n");
        assert_eq!(server.text("PUBSUB NUMSUB one"), "*2\r\n$3\r\none\r\n:0\r\n");
        assert_eq!(server.text("PUBSUB CHANNELS"), "*0\r\n");
        assert_eq!(server.text("PUBSUB NUMPAT"), ":0\r\n");
    }

    #[test]
    fn a_kill_is_answered_when_the_other_client_is_closed() {
        let mut server = crate::testing::server();
        let (mut other, mut third) = (server.connect(), server.connect());
        assert_eq!(server.text_as(&mut other, "BLPOP k 0"), "");
        assert_eq!(server.text(&format!("CLIENT KILL ID {}", other.client.id)), ":1\r\n");
        assert_eq!(server.text_as(&mut third, "RPUSH k a"), ":1\r\n");
        assert_eq!(server.text_as(&mut third, "LLEN k"), ":1\r\n", "nobody was served");
        let is_answered = |server: &TestServer| server.session.client.inbox.lock().served.is_some();
        assert!(!is_answered(&server));
        server.engine.close_session(server.gate.enter().pinned(), &mut other);
        server.engine.note_closed(&other.client);
        assert!(is_answered(&server));
    }

    #[test]
    fn unblocking_answers_once() {
        let mut server = crate::testing::server();
        let mut other = server.connect();
        assert_eq!(server.text_as(&mut other, "BLPOP k 0"), "");
        let unblock = format!("CLIENT UNBLOCK {} ERROR", other.client.id);
        assert_eq!(server.text(&unblock), ":1\r\n");
        let served = other.client.inbox.lock().served.take();
        let expected = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n".to_vec();
        assert_eq!(served.map(|served| served.reply.to_vec()), Some(expected));
        assert_eq!(server.text(&unblock), ":0\r\n");
        assert_eq!(server.text("RPUSH k a"), ":1\r\n");
        assert_eq!(server.text("LLEN k"), ":1\r\n", "nobody was served");
    }

    #[test]
    fn a_pause_becomes_neither_shorter_nor_weaker_while_it_lasts() {
        let mut server = crate::testing::server();
        server.now = Some(1000);
        let pause = &server.engine.pause;
        let suspended = |writes| pause.suspends(1000, || writes);
        pause.extend(1000, 100, true);
        assert_eq!((suspended(true), suspended(false)), (Some(1100), None));
        pause.extend(1000, 50, false);
        assert_eq!((suspended(true), suspended(false)), (Some(1100), Some(1100)));
        pause.extend(1000, 200, true);
        assert_eq!((suspended(true), suspended(false)), (Some(1200), Some(1200)));
        pause.extend(1200, 10, true);
        assert_eq!((suspended(true), suspended(false)), (Some(1210), None));
        pause.end();
        assert!(!server.engine.is_paused(1000));
    }

    #[test]
    fn a_stop_and_a_pause_end_by_themselves_alone() {
        let server = crate::testing::server();
        let pause = &server.engine.pause;
        let suspended = |now, writes| pause.suspends(now, || writes);
        pause.extend(1000, 100, false);
        server.engine.stop_writes(|| ());
        assert_eq!((suspended(1050, true), suspended(1050, false)), (Some(u64::MAX), Some(1100)));
        // The pause has expired: reads go on, and writes wait for the stop.
        assert_eq!((suspended(1100, true), suspended(1100, false)), (Some(u64::MAX), None));
        pause.end();
        assert_eq!((suspended(1050, true), suspended(1050, false)), (Some(u64::MAX), None));
        pause.extend(1200, 100, true);
        assert_eq!((suspended(1200, true), suspended(1200, false)), (Some(u64::MAX), None));
        server.engine.let_writes_go_on();
        assert_eq!((suspended(1200, true), suspended(1200, false)), (Some(1300), None));
        assert!(server.engine.is_paused(1200) && !server.engine.is_paused(1300));
    }

    /// A server in import mode where the key `k` and the field `f` of `h` have expired.
    fn importing() -> TestServer {
        let mut server = crate::testing::server();
        server.now = Some(1000);
        assert_eq!(server.text("CONFIG SET import-mode yes"), "+OK\r\n");
        server.text("SET k 1 PX 5");
        server.text("HSET h f 1 g 2");
        server.text("HPEXPIREAT h 1005 FIELDS 1 f");
        server.now = Some(1010);
        server
    }

    #[test]
    fn keys_that_expire_during_an_import_stay_for_the_importer() {
        let mut server = importing();
        server.journal.take();
        assert_eq!(server.text("GET k"), "$-1\r\n");
        assert_eq!(server.text("HGET h f"), "$-1\r\n");
        assert_eq!(server.text("KEYS *"), "*1\r\n$1\r\nh\r\n");
        assert_eq!(server.text("DBSIZE"), ":2\r\n");
        assert_eq!(server.journal.take(), [], "a read removes nothing");
        assert_eq!(server.text("CLIENT IMPORT-SOURCE on"), "+OK\r\n");
        assert!(server.text("CLIENT INFO").contains(" flags=I "));
        assert_eq!(server.text("HMGET h f g"), "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
        assert_eq!(server.text("TTL k"), ":0\r\n");
        assert_eq!(server.text("INCR k"), ":2\r\n");
        assert_eq!(server.text("PERSIST k"), ":1\r\n");
        assert_eq!(server.text("CLIENT IMPORT-SOURCE off"), "+OK\r\n");
        assert_eq!(server.text("GET k"), "$1\r\n2\r\n");
    }

    #[test]
    fn a_write_of_others_removes_what_has_expired_also_while_data_is_imported() {
        let mut server = importing();
        server.journal.take();
        assert_eq!(server.text("APPEND k x"), ":1\r\n");
        assert_eq!(server.text("GET k"), "$1\r\nx\r\n");
        let words: Vec<_> =
            server.journal.take().into_iter().map(|it| it.argv[0].clone()).collect();
        assert_eq!(words, [&b"MULTI"[..], b"DEL", b"APPEND", b"EXEC"]);
    }

    #[test]
    fn a_time_that_is_over_is_kept_while_data_is_imported() {
        let mut server = importing();
        server.text("CLIENT IMPORT-SOURCE on");
        server.text("SET gone 1");
        for (command, kept) in [("EXPIREAT gone -5", 0), ("PEXPIREAT gone 7", 7)] {
            assert_eq!(server.text(command), ":1\r\n");
            assert_eq!(server.text("GET gone"), "$1\r\n1\r\n");
            assert_eq!(server.text("PTTL gone"), ":0\r\n");
            assert_eq!(server.text("PEXPIRETIME gone"), format!(":{kept}\r\n"));
        }
        server.text("EXPIREAT gone 0");
        assert_eq!(server.text("EXPIREAT gone -7 LT"), ":0\r\n", "none is before the first time");
        server.text("CONFIG SET import-mode no");
        assert_eq!(server.text("GET gone"), "$-1\r\n");
    }

    #[test]
    fn one_may_always_stop_being_an_import_source() {
        let mut server = crate::testing::server();
        let refused = "-ERR Server is not in import mode\r\n";
        assert_eq!(server.text("CLIENT IMPORT-SOURCE on"), refused);
        assert_eq!(server.text("CLIENT IMPORT-SOURCE x"), refused);
        assert_eq!(server.text("CLIENT IMPORT-SOURCE off"), "+OK\r\n");
        server.text("CONFIG SET import-mode yes");
        assert_eq!(server.text("CLIENT IMPORT-SOURCE x"), "-ERR syntax error\r\n");
        server.text("CLIENT IMPORT-SOURCE on");
        server.text("CONFIG SET import-mode no");
        assert_eq!(server.text("CLIENT IMPORT-SOURCE off"), "+OK\r\n");
        assert!(server.text("CLIENT INFO").contains(" flags=N "));
        server.text("CONFIG SET import-mode yes");
        server.text("CLIENT IMPORT-SOURCE on");
        server.text("RESET");
        assert!(server.text("CLIENT INFO").contains(" flags=N "));
    }

    #[test]
    fn a_library_says_its_name() {
        let mut server = crate::testing::server();
        assert!(server.text("CLIENT INFO").contains(" resp=2 lib-name= lib-ver= io-thread="));
        assert_eq!(server.text("CLIENT SETINFO LIB-NAME own"), "+OK\r\n");
        assert_eq!(server.text("CLIENT SETINFO lib-ver 1.2"), "+OK\r\n");
        assert!(server.text("CLIENT INFO").contains(" resp=2 lib-name=own lib-ver=1.2 io-thread="));
        assert_eq!(server.text("CLIENT SETINFO lib-os x"), "-ERR Unrecognized option 'lib-os'\r\n");
    }
}
