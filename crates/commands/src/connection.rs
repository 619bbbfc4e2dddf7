//! The connection itself: PING, ECHO, SELECT, AUTH, HELLO, QUIT and RESET.

use resp::args::Arguments;

use engine::REDIS_VERSION;
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ALLOW_BUSY, ArgumentKind, Docs, FAST, Flags, Group, IN_STREAM, LOADING, NEVER_QUEUED, NO_AUTH,
    NO_KEYS, NOSCRIPT, OF_CONNECTION, REFUSED_LIKE_WRITES, SELECTS, STALE, WHILE_SUBSCRIBED,
    argument, block, docs,
};
use engine::engine::{Command, Context, Family, row};
use engine::session::choice::Durability;
use engine::session::client::flag;
use engine::session::{ReplyMode, User};
use engine::users::DEFAULT_USER;
use engine::users::log::{Reason, Refusal, RefusalContext};

/// PING [message]
fn ping(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let message = args.peek();
    if args.len() > 1 {
        return Err(CommandError::wrong_arity("ping"));
    }
    if cx.session.in_pubsub_mode() {
        // A client that reads messages expects an array.
        cx.reply.array(2);
        cx.reply.bulk(b"pong");
        cx.reply.bulk(message.unwrap_or_default());
    } else if let Some(message) = message {
        cx.reply.bulk(message);
    } else {
        cx.reply.simple(b"PONG");
    }
    Ok(())
}

/// ECHO message
fn echo(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let message = args.bytes()?;
    cx.reply.bulk(message);
    Ok(())
}

/// SELECT index
fn select(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let index = args.i64()?;
    let Ok(index) = i32::try_from(index) else {
        return Err(CommandError::text(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ));
    };
    let databases = cx.engine.keyspace.databases();
    if index != 0 && databases == 1 && cx.db.cluster.is_some() {
        return Err(CommandError::text("ERR SELECT is not allowed in cluster mode"));
    }
    let known = usize::try_from(index).ok().filter(|index| *index < databases);
    let index = known.ok_or(CommandError::DB_OUT_OF_RANGE)?;
    cx.session.select(index);
    cx.db.index = index;
    cx.reply.ok();
    Ok(())
}

/// The database of SELECT.
fn selected(_argv: Arguments<'_>, visit: &mut dyn FnMut(Option<usize>)) {
    visit(Some(1));
}

/// AUTH [username] password
fn auth(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let first = args.bytes()?;
    let second = args.bytes().ok();
    args.end()?;
    let (user, password) = match second {
        Some(password) => (first, password),
        None if cx.engine.users.default_user().takes_any_password => {
            return Err(CommandError::text(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            ));
        }
        None => (DEFAULT_USER, first),
    };
    if let Err(error) = authenticate(cx, args.argv(), (user, password)) {
        return refuse(cx, error);
    }
    cx.reply.ok();
    Ok(())
}

/// Refuses a login, after a while if the settings say so.
fn refuse(cx: &mut Context<'_>, error: CommandError) -> CommandResult {
    let delay = u64::from(cx.db.config.auth_failure_delay);
    cx.refuse_later(error, delay)
}

fn authenticate(
    cx: &mut Context<'_>,
    argv: Arguments<'_>,
    (name, password): (&[u8], &[u8]),
) -> CommandResult {
    let Some(user) = User::log_in(&cx.engine.users, name, password) else {
        let context = if cx.nested { RefusalContext::Multi } else { RefusalContext::TopLevel };
        let object = argv.at(0).to_vec();
        cx.note_refusal(Refusal { reason: Reason::Login, context, object, user: name.to_vec() });
        return Err(CommandError::WRONG_PASS);
    };
    cx.session.set_user(user);
    Ok(())
}

/// The arguments of HELLO.
#[derive(Default)]
struct Greeting<'a> {
    protocol: Option<i64>,
    /// User and password.
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

impl<'a> Greeting<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Greeting<'a>, CommandError> {
        let mut greeting = Greeting::default();
        if args.is_empty() {
            return Ok(greeting);
        }
        let protocol = args.i64().map_err(|_| {
            CommandError::text("ERR Protocol version is not an integer or out of range")
        })?;
        if !matches!(protocol, 2 | 3) {
            return Err(CommandError::text("NOPROTO unsupported protocol version"));
        }
        greeting.protocol = Some(protocol);
        while let Some(option) = args.peek() {
            if args.len() >= 3 && args.word("auth") {
                greeting.login = Some((args.bytes()?, args.bytes()?));
            } else if args.len() >= 2 && args.word("setname") {
                greeting.name = Some(engine::session::client::valid_name(args.bytes()?)?);
            } else {
                return Err(CommandError::quoting(
                    "ERR Syntax error in HELLO option '",
                    option,
                    "'",
                ));
            }
        }
        Ok(greeting)
    }
}

/// AUTH [username] password: all but the name of the command.
fn is_secret_of_auth(_argv: Arguments<'_>, index: usize) -> bool {
    index > 0
}

/// HELLO version [AUTH user password] [SETNAME name]: the two arguments after AUTH, also where the
/// version was forgotten.
fn is_secret_of_hello(argv: Arguments<'_>, wanted: usize) -> bool {
    let mut index = 1;
    while index < argv.len() {
        if argv.at(index).eq_ignore_ascii_case(b"auth") {
            if wanted == index + 1 || wanted == index + 2 {
                return true;
            }
            index += 3;
        } else if argv.at(index).eq_ignore_ascii_case(b"setname") {
            index += 2;
        } else {
            index += 1;
        }
    }
    false
}

/// HELLO [protover [AUTH username password] [SETNAME clientname]]
fn hello(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let greeting = Greeting::parse(args)?;
    if let Some((user, password)) = greeting.login
        && let Err(error) = authenticate(cx, args.argv(), (user, password))
    {
        return refuse(cx, error);
    }
    if !cx.session.user.is_admitted() {
        return Err(CommandError::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the \
             RESP protocol version at the same time",
        ));
    }
    if let Some(name) = greeting.name {
        cx.session.client.names.lock().name = name.to_vec();
    }
    if let Some(protocol) = greeting.protocol {
        cx.set_resp3(protocol == 3);
    }
    reply_hello(cx);
    Ok(())
}

fn reply_hello(cx: &mut Context<'_>) {
    let (protocol, id) = (if cx.session.resp3 { 3 } else { 2 }, cx.session.client.id);
    let is_node = cx.db.cluster.is_some();
    let leads = !cx.engine.replication.is_replica();
    let reply = &mut cx.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(protocol);
    reply.bulk(b"id");
    reply.integer(id as i64);
    reply.bulk(b"mode");
    reply.bulk(if is_node { b"cluster" } else { b"standalone" });
    reply.bulk(b"role");
    reply.bulk(if leads { b"master" } else { b"replica" });
    reply.bulk(b"modules");
    reply.array(0);
}

/// QUIT
fn quit(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.session.close = true;
    cx.reply.ok();
    Ok(())
}

/// RESET
fn reset(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.end_transaction();
    cx.engine.drop_subscriptions(cx.session);
    // Messages that have arrived until now come before the reply.
    cx.set_resp3(false);
    let session = &mut *cx.session;
    session.select(0);
    session.set_user(User::at_first(&cx.engine.users));
    // CLIENT REPLY SKIP concerns this reply.
    if session.reply_mode != ReplyMode::Skip {
        session.reply_mode = ReplyMode::On;
    }
    session.set_no_touch(false);
    session.set_import_source(false);
    session.set_reads_from_replica(false);
    (session.durability, session.read_after) = (Durability::Default, None);
    session.client.set_flag(flag::NO_EVICT, false);
    session.client.names.lock().name.clear();
    cx.reply.simple(b"RESET");
    Ok(())
}

/// Flags of commands that a connection may need at any time.
const ALWAYS: Flags = OF_CONNECTION | NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY;

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Connection.rows([
    row("ping", ping, -1, FAST | WHILE_SUBSCRIBED | REFUSED_LIKE_WRITES | IN_STREAM, NO_KEYS),
    row("echo", echo, 2, LOADING | STALE | FAST, NO_KEYS),
    row("select", select, 2, OF_CONNECTION | SELECTS | LOADING | STALE | FAST | IN_STREAM, NO_KEYS)
        .databases(selected),
    row("auth", auth, -2, ALWAYS, NO_KEYS).secrets(is_secret_of_auth),
    row("hello", hello, -1, ALWAYS, NO_KEYS).secrets(is_secret_of_hello),
    row("quit", quit, -1, ALWAYS | NEVER_QUEUED | WHILE_SUBSCRIBED, NO_KEYS),
    row("reset", reset, 1, ALWAYS | NEVER_QUEUED | WHILE_SUBSCRIBED, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[
    docs("ping", "1.0.0", "Answers PONG, or with the given message.")
        .cost("O(1)")
        .arguments(&[argument("message", ArgumentKind::String).optional()])
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    docs("echo", "1.0.0", "Answers with the given message.")
        .cost("O(1)")
        .arguments(&[argument("message", ArgumentKind::String)]),
    docs("select", "1.0.0", "Selects the connection's database.")
        .cost("O(1)")
        .arguments(&[argument("index", ArgumentKind::Integer)]),
    docs("auth", "1.0.0", "Tells the server the password.")
        .cost("O(N) for N passwords of the user.")
        .arguments(&[
            argument("username", ArgumentKind::String).optional().since("6.0.0"),
            argument("password", ArgumentKind::String),
        ])
        .history(&[("6.0.0", "Takes a user name too.")]),
    docs("hello", "6.0.0", "Chooses the protocol and describes the server.")
        .cost("O(1)")
        .arguments(&[block(
            "arguments",
            &[
                argument("protover", ArgumentKind::Integer),
                block(
                    "auth",
                    &[
                        argument("username", ArgumentKind::String),
                        argument("password", ArgumentKind::String),
                    ],
                )
                .token("AUTH")
                .optional(),
                argument("clientname", ArgumentKind::String).token("SETNAME").optional(),
            ],
        )
        .optional()])
        .history(&[(
            "6.2.0",
            "Without arguments it answers in the protocol that the connection has.",
        )]),
    docs("quit", "1.0.0", "Closes the connection when all replies are sent.")
        .cost("O(1)")
        .deprecated("7.2.0", "just closing the connection"),
    docs("reset", "6.2.0", "Brings the connection back to the state of a new one.").cost("O(1)"),
];
