//! Requests for nodes of the tree: see [`engine::nodes`].
//!
//! A thread of the host does reads with long answers, and removals of many nodes, because a
//! worker's other clients would wait meanwhile. A worker finds that an answer is long when it has
//! written a bounded part of it. It finds that a removal is long before it removes anything.
//!
//! A reply consists of the status of HTTP, the index of the tree, the index of the event if the
//! request waited for one, and the body.

use std::borrow::Cow;
use std::sync::Arc;

use base::limits;
use etcd::change;
use etcd::error::{Code, Error};
use etcd::event::Event;
use etcd::form::Form;
use etcd::listing;
use etcd::request::{Method, Request};
use etcd::tree::Tree;
use etcd::watch;

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::nodes::hub::reply_event;
use engine::nodes::kept::Kept;

/// Which word of a request is its method.
const METHOD: usize = 2;

/// How much a thread does itself.
#[derive(Clone, Copy)]
struct Share {
    /// Bytes of the answer to a read.
    listed: usize,
    /// Nodes that are removed with one node.
    removed: usize,
}

/// A request: the key of a directory, which gives the slot; the method; the path; and fields of the
/// form, names and values.
pub(super) fn request(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (listed, removed) = (limits::ETCD_LISTED_BY_WORKER, limits::ETCD_REMOVED_BY_WORKER);
    run(cx, args, Share { listed, removed })
}

/// The same, by a thread that may take its time.
pub(super) fn list(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let removes = args.argv().get(METHOD) != Some(b"GET");
    // It was a primary when it accepted that.
    if removes && cx.engine.replication.is_replica() && cx.db.config.replicas_are_read_only() {
        return Err(CommandError::READ_ONLY_REPLICA);
    }
    run(cx, args, Share { listed: usize::MAX, removed: usize::MAX })
}

/// Runs a request, or leaves it to the thread that may take its time if it is more than this
/// thread's share.
fn run(cx: &mut Context<'_>, args: &mut Args<'_>, share: Share) -> CommandResult {
    // The effects that the tree gives are what the journal gets.
    cx.propagate_nothing();
    let _slot = args.key()?;
    let (method, path) = (args.bytes()?, args.bytes()?);
    let mut form = Form::default();
    while !args.is_empty() {
        form.add(args.bytes()?, Cow::Borrowed(args.bytes()?));
    }
    let mut body = Vec::new();
    let done = Request::read(method, path, &form).and_then(|request| {
        let operation = request.operation();
        let done = match request.method {
            Method::Get => read(cx, &request, share, &mut body),
            _ => write(cx, &request, share, &mut body),
        };
        if !matches!(done, Ok(None)) {
            cx.engine.nodes.count(operation, done.is_ok());
        }
        done
    });
    match done {
        Ok(Some((status, index))) => answer(cx, status, index, body),
        Ok(None) => {
            let waiter = match method == b"GET" {
                true => cx.wait_for_reading(args.argv()),
                // What was accepted is done.
                false => cx.wait_for_host(),
            };
            let term = cx.engine.replication.term();
            cx.engine.host.list_nodes(args.argv().into(), waiter, term);
        }
        Err(error) => refuse(cx, &error),
    }
    Ok(())
}

/// Says nothing where it would be more than the thread's share.
fn read(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    share: Share,
    body: &mut Vec<u8>,
) -> Result<Option<(u16, u64)>, Error> {
    let tree = Kept { db: &mut cx.db, hub: &cx.engine.nodes };
    let how = (request.recursive, request.sorted);
    let is_whole = listing::write_node(&tree, request.path, how, (tree.now(), share.listed), body)?;
    Ok(if is_whole { Some((200, tree.index()?)) } else { None })
}

/// Says nothing where it would be more than the thread's share. Nodes may have expired then, but
/// nothing of the request itself was done.
fn write(
    cx: &mut Context<'_>,
    request: &Request<'_>,
    share: Share,
    body: &mut Vec<u8>,
) -> Result<Option<(u16, u64)>, Error> {
    let mut tree = Kept { db: &mut cx.db, hub: &cx.engine.nodes };
    let now = tree.now();
    // A node that has expired by the clock is gone for the rest of the command.
    for _ in 0..limits::ETCD_EXPIRED_PER_WRITE {
        if change::expires_many(&tree, now, share.removed)? {
            return Ok(None);
        }
        if tree.expire(1)? == 0 {
            break;
        }
    }
    if change::removes_many(&tree, request, share.removed) {
        return Ok(None);
    }
    let change = change::apply(&mut tree, request, now)?;
    tree.publish(&change);
    let event = &change.event;
    if request.no_value {
        event.write_outcome(body)
    } else {
        event.write(body)
    }
    Ok(Some((if event.is_created() { 201 } else { 200 }, event.index())))
}

/// A client that waits: the key of a directory, the path, `ALL` for the nodes below too or else
/// `ONE`, an index, and `FIND` or `NEXT`. FIND answers an event of the past, if there is one; with
/// the index 0 there is none. NEXT waits until there is one.
pub(super) fn wait(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let _slot = args.key()?;
    let path = args.bytes()?;
    let recursive = args.word("ALL") || !args.word("ONE");
    let since = base::num::parse_u64(args.bytes()?).ok_or(CommandError::OUT_OF_RANGE)?;
    let waits = args.word("NEXT");
    let found = find(cx, path, recursive, since, waits);
    match found {
        Err(error) => refuse(cx, &error),
        Ok(Some(())) => {}
        Ok(None) if waits => {
            if !cx.may_block() {
                return Err(CommandError::text("ERR an event is waited for in no transaction"));
            }
            let client = &cx.session.client;
            cx.block = Some(cx.engine.nodes.add(client, path, recursive, since));
        }
        Ok(None) => {
            let tree = Kept { db: &mut cx.db, hub: &cx.engine.nodes };
            match tree.index() {
                Ok(index) => {
                    cx.reply.array(4);
                    cx.reply.integer(200);
                    cx.reply.integer(index.cast_signed());
                    cx.reply.integer(0);
                    cx.reply.null();
                }
                Err(error) => refuse(cx, &error),
            }
        }
    }
    Ok(())
}

/// Answers the first kept event for which a client is waiting, if there is one.
fn find(
    cx: &mut Context<'_>,
    path: &[u8],
    recursive: bool,
    since: u64,
    waits: bool,
) -> Result<Option<()>, Error> {
    if since == 0 {
        return Ok(None);
    }
    let tree = Kept { db: &mut cx.db, hub: &cx.engine.nodes };
    let index = tree.index()?;
    // When all events were removed, those of the past are gone too.
    let oldest = tree.oldest()?.unwrap_or(index.saturating_add(1));
    if since < oldest {
        let cause = format!("the requested history has been cleared [{oldest}/{since}]");
        return Err(Error::new(Code::EventIndexCleared, cause.as_bytes(), index));
    }
    // A client that goes on from event to event gets the events that it would have been sent at
    // once.
    let is_wanted: fn(&Event<'_>, &[u8], bool) -> bool =
        if waits { watch::concerns } else { watch::is_found };
    let event = tree.first_event(since, |event| is_wanted(event, path, recursive))?;
    Ok(event.map(|event| reply_event(&mut cx.reply, index, &event)))
}

fn answer(cx: &mut Context<'_>, status: u16, index: u64, body: Vec<u8>) {
    cx.reply.array(4);
    cx.reply.integer(i64::from(status));
    cx.reply.integer(index.cast_signed());
    cx.reply.integer(0);
    cx.reply.bulk_shared(&Arc::new(body));
}

fn refuse(cx: &mut Context<'_>, error: &Error) {
    let mut body = Vec::new();
    error.write(&mut body);
    answer(cx, error.code.status(), error.index, body);
}
