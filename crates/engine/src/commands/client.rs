//! CLIENT: what connections say about themselves and do to each other.
//!
//! There is no client-side caching yet, so TRACKING, CACHING and TRACKINGINFO are not there, and
//! GETREDIR always says that nothing is redirected.

use std::sync::Arc;

use resp::output::Output;
use resp::reply::Reply;

use crate::command::{
    ADMIN, Argument, ArgumentKind, CLOSES_GATES, Command, Group, LOADING, NOSCRIPT, STALE,
    argument, block, one_of, word,
};
use crate::handler::args::Args;
use crate::handler::context::Context;
use crate::handler::error::{CommandError, CommandResult};
use crate::session::ReplyMode;
use crate::session::client::{Client, ClientClass, flag, is_one_word, valid_name};
use crate::wait::sync::Unblocking;

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

/// CLIENT, with a subcommand that does not exist: refused before it comes here.
fn container(_cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    Err(CommandError::SYNTAX)
}

/// CLIENT ID
fn id(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.reply.integer(cx.session.client.id as i64);
    Ok(())
}

/// CLIENT INFO
fn info(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    let mut line = cx.session.client.describe(cx.db.steady, cx.engine.commands);
    line.push(b'\n');
    cx.reply.verbatim(b"txt", &line);
    Ok(())
}

/// Which clients CLIENT LIST shows.
enum Listed {
    All,
    Class(ClientClass),
    Ids(Vec<i64>),
}

impl Listed {
    fn parse(args: &mut Args<'_>) -> Result<Listed, CommandError> {
        if args.is_empty() {
            Ok(Listed::All)
        } else if args.len() == 2 && args.word("type") {
            Ok(Listed::Class(class(args)?))
        } else if args.len() >= 2 && args.word("id") {
            let mut ids = Vec::with_capacity(args.len());
            while !args.is_empty() {
                ids.push(args.i64().map_err(|_| CommandError::text("ERR Invalid client ID"))?);
            }
            Ok(Listed::Ids(ids))
        } else {
            Err(CommandError::SYNTAX)
        }
    }
}

fn class(args: &mut Args<'_>) -> Result<ClientClass, CommandError> {
    let name = args.bytes()?;
    ClientClass::parse(name).ok_or_else(|| {
        CommandError::owned(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(name)))
    })
}

/// CLIENT LIST [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]
fn list(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    let listed = Listed::parse(args)?;
    let clients = &cx.engine.clients;
    let shown = match listed {
        Listed::All => clients.all(),
        Listed::Class(class) => {
            clients.all().into_iter().filter(|client| client.class() == class).collect()
        }
        Listed::Ids(ids) => {
            let ids = ids.into_iter().filter_map(|id| u64::try_from(id).ok());
            ids.filter_map(|id| clients.get(id)).collect()
        }
    };
    let mut lines = Vec::new();
    for client in shown {
        lines.extend_from_slice(&client.describe(cx.db.steady, cx.engine.commands));
        lines.push(b'\n');
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
        let attribute = String::from_utf8_lossy(attribute);
        return Err(CommandError::owned(format!("ERR Unrecognized option '{attribute}'")));
    }
    if !is_one_word(value) {
        return Err(CommandError::owned(format!(
            "ERR {} cannot contain spaces, newlines or special characters.",
            String::from_utf8_lossy(attribute)
        )));
    }
    let mut names = cx.session.client.names.lock();
    let place = if is_name { &mut names.library } else { &mut names.library_version };
    *place = value.to_vec();
    cx.reply.ok();
    Ok(())
}

/// Which clients CLIENT KILL ends.
struct Doomed<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    class: Option<ClientClass>,
    skip_me: bool,
}

impl<'a> Doomed<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Doomed<'a>, CommandError> {
        let mut doomed =
            Doomed { id: None, address: None, local_address: None, class: None, skip_me: true };
        while !args.is_empty() {
            if args.len() < 2 {
                return Err(CommandError::SYNTAX);
            }
            if args.word("id") {
                doomed.id = Some(positive_id(args)?);
            } else if args.word("type") {
                doomed.class = Some(class(args)?);
            } else if args.word("addr") {
                doomed.address = Some(args.bytes()?);
            } else if args.word("laddr") {
                doomed.local_address = Some(args.bytes()?);
            } else if args.word("user") {
                known_user(args.bytes()?)?;
            } else if args.word("skipme") {
                doomed.skip_me = yes_or_no(args)?;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(doomed)
    }

    fn includes(&self, client: &Client) -> bool {
        self.id.is_none_or(|id| id == client.id)
            && self.address.is_none_or(|address| address == client.address.as_bytes())
            && self.local_address.is_none_or(|own| own == client.local_address.as_bytes())
            && self.class.is_none_or(|class| class == client.class())
    }
}

fn positive_id(args: &mut Args<'_>) -> Result<u64, CommandError> {
    let id = args.i64().ok().and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
    id.ok_or(CommandError::text("ERR client-id should be greater than 0"))
}

/// All clients are of the one user that there is, so naming it narrows nothing.
fn known_user(name: &[u8]) -> CommandResult {
    if name == b"default" {
        return Ok(());
    }
    let name = String::from_utf8_lossy(name);
    Err(CommandError::owned(format!("ERR No such user '{name}'")))
}

fn yes_or_no(args: &mut Args<'_>) -> Result<bool, CommandError> {
    if args.word("yes") {
        Ok(true)
    } else if args.word("no") {
        Ok(false)
    } else {
        Err(CommandError::SYNTAX)
    }
}

/// CLIENT KILL address, or CLIENT KILL filter value [filter value ...]
fn kill(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    args.skip(1);
    if args.len() == 1 {
        let address = args.bytes()?;
        let all = cx.engine.clients.all();
        let found = all.iter().find(|client| client.address.as_bytes() == address);
        end(cx, found.ok_or(CommandError::text("ERR No such client"))?);
        cx.reply.ok();
        return Ok(());
    }
    let doomed = Doomed::parse(args)?;
    let mut killed = 0;
    for client in cx.engine.clients.all() {
        let is_me = client.id == cx.session.client.id;
        if doomed.includes(&client) && !(is_me && doomed.skip_me) {
            end(cx, &client);
            killed += 1;
        }
    }
    cx.reply.integer(killed);
    Ok(())
}

/// Closes a connection; one's own when the reply is sent.
fn end(cx: &mut Context<'_>, client: &Client) {
    if client.id == cx.session.client.id {
        cx.session.close = true;
        client.set_flag(flag::CLOSING, true);
    } else {
        client.kill();
        cx.engine.host.wake(client);
    }
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
    let timeout = u64::try_from(timeout).map_err(|_| CommandError::TIMEOUT_NEGATIVE)?;
    // All gates are closed: whoever runs a command after this one sees the pause.
    cx.engine.pause.extend(cx.db.steady, timeout, writes_only);
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
/// blocked, or somebody else was quicker.
fn end_wait_of(cx: &Context<'_>, client: &Client, how: Unblocking) -> bool {
    if client.sync_wait.unblock(how) {
        cx.engine.host.wake(client);
        return true;
    }
    let waiter = client.waiter.lock().as_ref().map(Arc::clone);
    let Some(waiter) = waiter.filter(|waiter| waiter.awaits_keys() && waiter.claim()) else {
        return false;
    };
    let mut output = Output::new();
    let mut reply = Reply::new(&mut output, waiter.resp3);
    match how {
        Unblocking::Error => reply.error(Unblocking::ERROR),
        Unblocking::Timeout => waiter.reply_timed_out(&mut reply),
    }
    client.inbox.lock().served = Some(output.to_vec());
    cx.engine.host.wake(client);
    true
}

/// CLIENT GETREDIR
fn getredir(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    // Tracking is off.
    cx.reply.integer(-1);
    Ok(())
}

const ON_OR_OFF: &[Argument] = &[word("on", "ON"), word("off", "OFF")];

const CLASSES: &[Argument] = &[
    word("normal", "NORMAL"),
    word("master", "MASTER"),
    word("replica", "REPLICA"),
    word("pubsub", "PUBSUB"),
];

const KILL_ARGUMENTS: &[Argument] = &[one_of(
    "filter",
    &[
        argument("ip:port", ArgumentKind::String).deprecated_since("2.8.12"),
        one_of(
            "new-format",
            &[
                argument("client-id", ArgumentKind::Integer).token("ID").optional().since("2.8.12"),
                one_of(
                    "normal_master_slave_pubsub",
                    &[
                        word("normal", "NORMAL"),
                        word("master", "MASTER").since("3.2.0"),
                        word("slave", "SLAVE"),
                        word("replica", "REPLICA").since("5.0.0"),
                        word("pubsub", "PUBSUB"),
                    ],
                )
                .token("TYPE")
                .optional()
                .since("2.8.12"),
                argument("username", ArgumentKind::String).token("USER").optional(),
                argument("ip:port", ArgumentKind::String).token("ADDR").optional(),
                argument("ip:port", ArgumentKind::String).token("LADDR").optional().since("6.2.0"),
                argument("yes/no", ArgumentKind::String).token("SKIPME").optional(),
            ],
        )
        .multiple(),
    ],
)];

/// Flags of what a connection does to itself.
const OWN: u32 = NOSCRIPT | LOADING | STALE;
/// Flags of what a connection does to others.
const OTHERS: u32 = ADMIN | OWN;

/// A subcommand of CLIENT.
const fn sub(
    name: &'static str,
    handler: crate::command::Handler,
    arity: i32,
    flags: u32,
    since: &'static str,
) -> Command {
    Command::sub("client", name, handler, arity, Group::Connection, since).flags(flags)
}

const SUBCOMMANDS: &[Command] = &[
    sub("getname", getname, 2, OWN, "2.6.9").docs("O(1)", "Returns the connection's name."),
    sub("getredir", getredir, 2, OWN, "6.0.0")
        .docs("O(1)", "Returns the client that gets this connection's invalidations."),
    Command::help("client", Group::Connection, "5.0.0"),
    sub("id", id, 2, OWN, "5.0.0").docs("O(1)", "Returns the connection's number."),
    sub("info", info, 2, OWN, "6.2.0")
        .docs("O(1)", "Describes the connection in one line.")
        .tips(&["nondeterministic_output"]),
    sub("kill", kill, -3, OTHERS, "2.4.0")
        .docs(
            "O(N) for N connections.",
            "Closes connections: the one of an address, or all that match the filters.",
        )
        .history(&[
            ("2.8.12", "Takes filters."),
            ("2.8.12", "The filter `ID`."),
            ("3.2.0", "The type `master`."),
            ("5.0.0", "The type `replica`, which was `slave`; the old word is still understood."),
            ("6.2.0", "The filter `LADDR`."),
        ])
        .arguments(KILL_ARGUMENTS),
    sub("list", list, -2, OTHERS, "2.4.0")
        .docs(
            "O(N) for N connections.",
            "Describes all connections, or some of them, in a line each.",
        )
        .tips(&["nondeterministic_output"])
        .history(&[
            ("2.8.12", "The field `id`."),
            ("5.0.0", "The filter `TYPE`."),
            ("6.0.0", "The field `user`."),
            ("6.2.0", "The fields `argv-mem`, `tot-mem`, `laddr` and `redir`, the filter `ID`."),
            ("7.0.0", "The fields `resp`, `multi-mem`, `rbs` and `rbp`."),
            ("7.0.3", "The field `ssub`."),
        ])
        .arguments(&[
            one_of("normal_master_replica_pubsub", CLASSES).token("TYPE").optional().since("5.0.0"),
            block("id", &[argument("client-id", ArgumentKind::Integer).multiple()])
                .token("ID")
                .optional()
                .since("6.2.0"),
        ]),
    sub("no-evict", no_evict, 3, OTHERS, "7.0.0")
        .docs("O(1)", "Exempts the connection from maxmemory-clients.")
        .arguments(&[one_of("enabled", ON_OR_OFF)]),
    sub("no-touch", no_touch, 3, OWN, "7.2.0")
        .docs("O(1)", "Lets the connection read without making keys look recently used.")
        .arguments(&[one_of("enabled", ON_OR_OFF)]),
    sub("pause", pause, -3, OTHERS | CLOSES_GATES, "2.9.50")
        .docs("O(1)", "Holds commands back for a time: all, or those that write.")
        .history(&[("6.2.0", "The mode, and with it `WRITE`.")])
        .arguments(&[
            argument("timeout", ArgumentKind::Integer),
            one_of("mode", &[word("write", "WRITE"), word("all", "ALL")]).optional().since("6.2.0"),
        ]),
    sub("reply", reply, 3, OWN, "3.2.0")
        .docs("O(1)", "Chooses whether the connection gets replies.")
        .arguments(&[one_of(
            "on_off_skip",
            &[word("on", "ON"), word("off", "OFF"), word("skip", "SKIP")],
        )]),
    sub("setinfo", setinfo, 4, OWN, "7.2.0")
        .docs("O(1)", "Tells the client library's name or version.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[one_of(
            "attr",
            &[
                argument("libname", ArgumentKind::String).token("LIB-NAME"),
                argument("libver", ArgumentKind::String).token("LIB-VER"),
            ],
        )]),
    sub("setname", setname, 3, OWN, "2.6.9")
        .docs("O(1)", "Names the connection.")
        .arguments(&[argument("connection-name", ArgumentKind::String)]),
    sub("unblock", unblock, -3, OTHERS, "5.0.0")
        .docs(
            "O(log(N)) for N connections.",
            "Ends the waiting of a connection in a blocking command.",
        )
        .arguments(&[
            argument("client-id", ArgumentKind::Integer),
            one_of("timeout_error", &[word("timeout", "TIMEOUT"), word("error", "ERROR")])
                .optional(),
        ]),
    sub("unpause", unpause, 2, OTHERS, "6.2.0")
        .docs("O(N) for N clients that are held up.", "Ends CLIENT PAUSE."),
];

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] =
    &[Command::new("client", container, -2, Group::Connection, "2.4.0")
        .docs("Depends on subcommand.", "Commands about connections.")
        .subcommands(SUBCOMMANDS)];

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use crate::testing::TestServer;

    #[test]
    fn killing_asks_the_others_and_closes_oneself_after_the_reply() {
        let mut server = TestServer::new();
        let other = server.connect();
        assert_eq!(server.text("CLIENT KILL SKIPME no TYPE normal USER default"), ":2\r\n");
        assert!(other.client.killed.load(Relaxed));
        assert!(server.session.close && !server.session.client.killed.load(Relaxed));
    }

    #[test]
    fn unblocking_answers_once() {
        let mut server = TestServer::new();
        let mut other = server.connect();
        assert_eq!(server.text_as(&mut other, "BLPOP k 0"), "");
        let unblock = format!("CLIENT UNBLOCK {} ERROR", other.client.id);
        assert_eq!(server.text(&unblock), ":1\r\n");
        let served = other.client.inbox.lock().served.take();
        let expected = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n".to_vec();
        assert_eq!(served, Some(expected));
        assert_eq!(server.text(&unblock), ":0\r\n");
        assert_eq!(server.text("RPUSH k a"), ":1\r\n");
        assert_eq!(server.text("LLEN k"), ":1\r\n", "nobody was served");
    }

    #[test]
    fn a_pause_becomes_neither_shorter_nor_weaker_while_it_lasts() {
        let mut server = TestServer::new();
        server.now = Some(1000);
        let pause = &server.engine.pause;
        let held = |writes| pause.holds(1000, || writes);
        pause.extend(1000, 100, true);
        assert_eq!((held(true), held(false)), (Some(1100), None));
        pause.extend(1000, 50, false);
        assert_eq!((held(true), held(false)), (Some(1100), Some(1100)));
        pause.extend(1000, 200, true);
        assert_eq!((held(true), held(false)), (Some(1200), Some(1200)));
        pause.extend(1200, 10, true);
        assert_eq!((held(true), held(false)), (Some(1210), None));
        pause.end();
        assert!(!server.engine.is_paused(1000));
    }

    #[test]
    fn a_stop_and_a_pause_end_by_themselves_alone() {
        let server = TestServer::new();
        let pause = &server.engine.pause;
        let held = |now, writes| pause.holds(now, || writes);
        pause.extend(1000, 100, false);
        server.engine.hold_writes();
        assert_eq!((held(1050, true), held(1050, false)), (Some(u64::MAX), Some(1100)));
        // The pause has expired: reads go on, and writes wait for the stop.
        assert_eq!((held(1100, true), held(1100, false)), (Some(u64::MAX), None));
        pause.end();
        assert_eq!((held(1050, true), held(1050, false)), (Some(u64::MAX), None));
        pause.extend(1200, 100, true);
        assert_eq!((held(1200, true), held(1200, false)), (Some(u64::MAX), None));
        server.engine.let_writes_go_on();
        assert_eq!((held(1200, true), held(1200, false)), (Some(1300), None));
        assert!(server.engine.is_paused(1200) && !server.engine.is_paused(1300));
    }

    #[test]
    fn a_library_is_shown_when_it_has_said_its_name() {
        let mut server = TestServer::new();
        assert!(server.text("CLIENT INFO").ends_with(" resp=2\n\r\n"));
        assert_eq!(server.text("CLIENT SETINFO LIB-NAME own"), "+OK\r\n");
        assert_eq!(server.text("CLIENT SETINFO lib-ver 1.2"), "+OK\r\n");
        assert!(server.text("CLIENT INFO").ends_with(" resp=2 lib-name=own lib-ver=1.2\n\r\n"));
        assert_eq!(server.text("CLIENT SETINFO lib-os x"), "-ERR Unrecognized option 'lib-os'\r\n");
    }
}
