//! The commands that wait for a list.
//!
//! Each first tries at once to do what its counterpart without the B does. If there is nothing, it
//! begins to wait, unless it runs inside a transaction, where waiting would never end. A command
//! that makes one of the keys appear then runs the `serve` function of the waiting command's row.
//! Either way the journal gets what was done: a pop or a move.

use store::Key;
use store::pack::End;

use super::moving::{Ends, PopMany, end_word, move_element, pop_word};
use super::{Answer, pop_one};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::{Context, Serve, WaitFor};
use engine::session::awaited::AwaitedValue;

/// BLPOP key [key ...] timeout
pub(super) fn blpop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    pop_or_wait(cx, args, End::Front)
}

/// Serves BLPOP.
pub(super) const SERVE_BLPOP: Serve = |cx, key, _| pop_from(cx, key, End::Front);

/// BRPOP key [key ...] timeout
pub(super) fn brpop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    pop_or_wait(cx, args, End::Back)
}

/// Serves BRPOP.
pub(super) const SERVE_BRPOP: Serve = |cx, key, _| pop_from(cx, key, End::Back);

fn pop_or_wait(cx: &mut Context<'_>, args: &mut Args<'_>, end: End) -> CommandResult {
    let keys = args.keys(args.len() - 1)?;
    let timeout = args.timeout()?;
    let take = |cx: &mut Context<'_>, key: &Key<'_>| pop_from(cx, key, end);
    cx.take_or_wait((&keys, AwaitedValue::List), timeout, args.argv(), take)
}

/// Pops an element and answers it after its key's name; false when there is no such list.
fn pop_from(cx: &mut Context<'_>, key: &Key<'_>, end: End) -> Result<bool, CommandError> {
    if !pop_one(cx, key, end, Answer::KeyAndPopped)? {
        return Ok(false);
    }
    cx.propagate(&[pop_word(end), key.bytes]);
    Ok(true)
}

/// BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout
pub(super) fn blmove(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    Move::parse_blmove(args)?.run_or_wait(cx, args)
}

/// Serves BLMOVE.
pub(super) const SERVE_BLMOVE: Serve =
    |cx, _, argv| Move::parse_blmove(&mut Args::new(argv, &[]))?.run(cx);

/// BRPOPLPUSH source destination timeout
pub(super) fn brpoplpush(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    Move::parse_brpoplpush(args)?.run_or_wait(cx, args)
}

/// Serves BRPOPLPUSH.
pub(super) const SERVE_BRPOPLPUSH: Serve =
    |cx, _, argv| Move::parse_brpoplpush(&mut Args::new(argv, &[]))?.run(cx);

/// The arguments of BLMOVE and BRPOPLPUSH.
struct Move<'a> {
    source: Key<'a>,
    destination: Key<'a>,
    ends: Ends,
    /// The journal records it under the requested name: RPOPLPUSH instead of LMOVE.
    as_rpoplpush: bool,
}

impl<'a> Move<'a> {
    fn parse_blmove(args: &mut Args<'a>) -> Result<Move<'a>, CommandError> {
        let (source, destination) = (args.key()?, args.key()?);
        let ends = Ends::parse(args)?;
        Ok(Move { source, destination, ends, as_rpoplpush: false })
    }

    fn parse_brpoplpush(args: &mut Args<'a>) -> Result<Move<'a>, CommandError> {
        let (source, destination) = (args.key()?, args.key()?);
        Ok(Move { source, destination, ends: Ends::RPOPLPUSH, as_rpoplpush: true })
    }

    fn run(&self, cx: &mut Context<'_>) -> Result<bool, CommandError> {
        if !move_element(cx, &self.source, &self.destination, self.ends)? {
            return Ok(false);
        }
        let (source, destination) = (self.source.bytes, self.destination.bytes);
        if self.as_rpoplpush {
            cx.propagate(&[b"RPOPLPUSH", source, destination]);
        } else {
            let (from, to) = (end_word(self.ends.from), end_word(self.ends.to));
            cx.propagate(&[b"LMOVE", source, destination, from, to]);
        }
        Ok(true)
    }

    fn run_or_wait(&self, cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
        let timeout = args.timeout()?;
        if self.run(cx)? {
            return Ok(());
        }
        if !cx.may_block() {
            // No element, where the others answer no array.
            cx.reply.null();
            return Ok(());
        }
        cx.wait(&WaitFor {
            keys: std::slice::from_ref(&self.source),
            destination: Some(self.destination.bytes),
            wanted: AwaitedValue::List,
            timeout,
            again_in: None,
            argv: args.argv(),
        });
        Ok(())
    }
}

/// BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]
pub(super) fn blmpop(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let mut timeout = args.clone();
    args.skip(1);
    // The arguments after the timeout are looked at before it.
    let request = PopMany::parse(args)?;
    let timeout = timeout.timeout()?;
    let take = |cx: &mut Context<'_>, key: &Key<'_>| request.pop_from(cx, key);
    cx.take_or_wait((&request.keys, AwaitedValue::List), timeout, args.argv(), take)
}

/// Serves BLMPOP.
pub(super) const SERVE_BLMPOP: Serve = |cx, key, argv| {
    let mut args = Args::new(argv, &[]);
    args.skip(1);
    PopMany::parse(&mut args)?.pop_from(cx, key)
};
