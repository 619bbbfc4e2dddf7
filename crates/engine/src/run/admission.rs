//! Whether a command may run, and when: the checks, in the order in which Redis makes them.

use resp::args::Arguments;
use store::gate::Presence;

use crate::command::{self, Spec};
use crate::engine::{Engine, Row};
use crate::handler::error::{CommandError, CommandResult, printable};
use crate::persistence::{durability, saving};
use crate::reclaim::eviction;
use crate::run::consists::{all_have, any_has, each_request, lacks_subcommand};
use crate::run::request::Request;
use crate::run::turn::Turn;
use crate::session::Session;
use config::Permission;

/// The result of the checks.
pub(super) enum Admission {
    Run(&'static Row),
    Queue(&'static Row),
    Pause(u64),
}

impl Engine {
    /// The checks, in the order in which Redis makes them.
    pub(super) fn admit(
        &self,
        presence: Presence<'_>,
        turn: &mut Turn,
        session: &Session,
        request: &Request<'_>,
    ) -> Result<Admission, CommandError> {
        let row = known_command(request)?;
        right_arity(row.command, request.argv)?;
        permitted(turn, session, row.command)?;
        authenticated(turn, session, row.command)?;
        eviction::admit(self, presence, turn, session, row.command)?;
        durability::admit(self, turn, session, row.command)?;
        self.may_write(turn, session, row.command)?;
        allowed_while_subscribed(session, row.command)?;
        allowed_while_monitoring(session, row.command)?;
        self.allowed_while_loading(session, row.command)?;
        if let Some(until) = self.paused(turn, session, row.command, request.argv) {
            return Ok(Admission::Pause(until));
        }
        if let Some(until) = durability::delayed_until(self, turn, session, row.command) {
            return Ok(Admission::Pause(until));
        }
        if session.transaction.is_some() && !row.command.has(command::NEVER_QUEUED) {
            if row.command.has(command::NO_MULTI) {
                return Err(CommandError::text("ERR Command not allowed inside a transaction"));
            }
            return Ok(Admission::Queue(row));
        }
        Ok(Admission::Run(row))
    }

    /// Replayed commands come from the load itself.
    #[inline]
    fn allowed_while_loading(&self, session: &Session, command: &Spec) -> CommandResult {
        if !self.loading.is_on() || session.replays || all_have(command, session, command::LOADING)
        {
            return Ok(());
        }
        Err(CommandError::LOADING)
    }

    /// Whether saving allows writes. PING is refused as well: see
    /// [`crate::persistence::durability::admit`].
    fn may_write(&self, turn: &Turn, session: &Session, command: &Spec) -> CommandResult {
        if !self.saving.stops_writes(&turn.config) {
            return Ok(());
        }
        let concerned = command.name == "ping" || any_has(command, session, command::WRITE);
        if concerned { Err(saving::refusal()) } else { Ok(()) }
    }

    fn paused(
        &self,
        turn: &Turn,
        session: &Session,
        command: &Spec,
        argv: Arguments<'_>,
    ) -> Option<u64> {
        if session.replays {
            return None;
        }
        self.pause.suspends(turn.steady, || {
            each_request(command, argv, session).any(|(own, argv)| {
                own.has(command::WRITE | command::MAY_REPLICATE)
                    && !self.declares_no_writes(own, argv)
            })
        })
    }
}

fn known_command(request: &Request<'_>) -> Result<&'static Row, CommandError> {
    let row = request.row.ok_or_else(|| unknown_command(request.argv))?;
    if !lacks_subcommand(row, request.argv) {
        return Ok(row);
    }
    Err(CommandError::quoting(
        "ERR unknown subcommand '",
        cut(request.argv.at(1), LONGEST_WORD),
        &format!("'. Try {} HELP.", row.command.name.to_ascii_uppercase()),
    ))
}

fn unknown_command(argv: Arguments<'_>) -> CommandError {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(printable(cut(argv.at(0), LONGEST_WORD)));
    text.extend_from_slice(b"', with args beginning with: ");
    let begin = text.len();
    for argument in argv.skip(1).iter() {
        let shown = text.len() - begin;
        if shown >= LONGEST_WORD {
            break;
        }
        text.push(b'\'');
        text.extend_from_slice(printable(cut(argument, LONGEST_WORD - shown)));
        text.extend_from_slice(b"' ");
    }
    CommandError::line(text)
}

/// An error shows at most this many bytes of a client's words.
const LONGEST_WORD: usize = 128;

/// The first `room` bytes.
fn cut(bytes: &[u8], room: usize) -> &[u8] {
    &bytes[..bytes.len().min(room)]
}

fn right_arity(command: &Spec, argv: Arguments<'_>) -> CommandResult {
    if command.accepts(argv.len()) {
        return Ok(());
    }
    Err(CommandError::wrong_arity(&command.full_name()))
}

fn permitted(turn: &Turn, session: &Session, command: &Spec) -> CommandResult {
    if !command.has(command::PROTECTED) {
        return Ok(());
    }
    if command.parent == Some("module") {
        // No setting allows what there is not.
        return Err(CommandError::MODULES_NOT_ALLOWED);
    }
    let allowed = match turn.config.enable_debug_command {
        Permission::Yes => true,
        Permission::Local => session.client.is_local(),
        Permission::No => false,
    };
    if allowed { Ok(()) } else { Err(CommandError::DEBUG_NOT_ALLOWED) }
}

fn authenticated(turn: &Turn, session: &Session, command: &Spec) -> CommandResult {
    let admitted = session.authenticated || command.has(command::NO_AUTH);
    if admitted || turn.config.requirepass.is_empty() {
        return Ok(());
    }
    Err(CommandError::NO_AUTH)
}

fn allowed_while_subscribed(session: &Session, command: &Spec) -> CommandResult {
    const ALLOWED: [&str; 9] = [
        "ping",
        "subscribe",
        "ssubscribe",
        "unsubscribe",
        "sunsubscribe",
        "psubscribe",
        "punsubscribe",
        "quit",
        "reset",
    ];
    if !session.in_pubsub_mode() || (command.parent.is_none() && ALLOWED.contains(&command.name)) {
        return Ok(());
    }
    Err(CommandError::owned(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
         allowed in this context",
        command.full_name()
    )))
}

/// A connection that monitors others may not run commands like theirs.
fn allowed_while_monitoring(session: &Session, command: &Spec) -> CommandResult {
    if session.monitor && command.has(command::READONLY | command::WRITE | command::MAY_REPLICATE) {
        return Err(CommandError::text("ERR Replica can't interact with the keyspace"));
    }
    Ok(())
}
