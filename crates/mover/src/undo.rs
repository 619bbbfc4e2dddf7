//! How everything is put back after a failure before the promotion, and how the servers stand then.
//!
//! The old server's writes go on before the new one leaves its stream. A new server that has left
//! it, and an old one that holds its writes, look like a move that has ended after the promotion,
//! so where nobody knows whether they go on, the new one stays what it is.

use std::time::Duration;

use crate::check;
use crate::clock::Moment;
use crate::failure::Failure;
use crate::options::Options;
use crate::server::{Info, LONG_PAUSE, REPLICA_SETTINGS, Server, Writes};

/// What the new server was before the move.
pub(crate) struct Before<'o> {
    pub(crate) role: Role<'o>,
    settings: [Option<Vec<u8>>; 4],
}

pub(crate) enum Role<'o> {
    /// A replica of the old server. A move does not change that before the promotion.
    Replica,
    Primary {
        /// The pause of its writes.
        pause: Option<PauseOfOthers>,
        /// Where it finds the old server.
        place: &'o (String, u16),
    },
}

/// A pause that was there before the move.
pub(crate) struct PauseOfOthers {
    seen: Moment,
    /// How long it was to last then, or longer where the server does not tell that.
    length: Duration,
}

impl PauseOfOthers {
    fn of(server: &mut Server) -> Result<Option<PauseOfOthers>, String> {
        if !matches!(server.writes()?, Writes::Waiting) {
            return Ok(None);
        }
        let seen = Moment::now();
        let length = server.length_of_pause()?.unwrap_or(LONG_PAUSE);
        Ok(Some(PauseOfOthers { seen, length }))
    }

    /// What is left of it.
    fn left(&self) -> Option<Duration> {
        self.length.checked_sub(self.seen.elapsed()).filter(|left| !left.is_zero())
    }
}

impl Before<'_> {
    pub(crate) fn of<'o>(to: &mut Server, options: &'o Options) -> Result<Before<'o>, String> {
        let place = &options.seen_from;
        let role = match check::follows(&to.info("replication")?, place) {
            true => Role::Replica,
            false => Role::Primary { pause: PauseOfOthers::of(to)?, place },
        };
        Ok(Before { role, settings: to.replica_settings() })
    }

    /// Gives the new server the settings back with which it has followed.
    pub(crate) fn put_back_settings(&self, to: &mut Server) -> Result<(), String> {
        let present = to.replica_settings();
        for ((name, value), present) in REPLICA_SETTINGS.iter().zip(&self.settings).zip(&present) {
            // A server that has refused to be asked has not been changed either.
            if let Some(value) = value
                && Some(value) != present.as_ref()
            {
                to.call::<&[u8]>(&[b"CONFIG", b"SET", name.as_bytes(), value])?;
            }
        }
        Ok(())
    }

    /// Takes back what the move has changed. Somebody else may have given the new server another
    /// part meanwhile, with writes that it would lose: it keeps that.
    fn put_back_role(&self, to: &mut Server) -> Result<(), String> {
        let Role::Primary { pause, place } = &self.role else { return Ok(()) };
        to.wait_until_loaded()?;
        let pause = pause.as_ref().and_then(PauseOfOthers::left);
        if check::follows(&to.info("replication")?, place) {
            if let Some(left) = pause {
                to.pause_writes(left)?;
            }
            to.call(&["REPLICAOF", "NO", "ONE"])?;
        }
        if to.has_paused() && pause.is_none() { to.let_write() } else { Ok(()) }
    }
}

/// Lets the old server's writes go on, if this tool has paused them, and makes the new one what it
/// was. Returns the failure, with how both stand then.
pub(crate) fn undo(
    from: &mut Server,
    to: &mut Server,
    before: &Before<'_>,
    problem: &str,
) -> Failure {
    // Connections may wait for replies that never come.
    let goes_on = from.renew_if_it_can().and_then(|()| {
        if !from.has_paused() {
            return Ok(());
        }
        from.check_alone()?;
        from.let_write()
    });
    let old = stand_of_old(from);
    let is_held = match &old {
        Ok(stand) => stand.holds_writes,
        Err(_) => from.has_paused(),
    };
    let put_back = to.renew_if_it_can().and_then(|()| {
        if is_held && primary_of(&to.info("replication")?).is_some() {
            return Ok(());
        }
        to.check_alone()?;
        before.put_back_role(to)?;
        before.put_back_settings(to)
    });
    let mut text = problem.to_owned();
    let is_left = put_back.is_err() && matches!(before.role, Role::Primary { .. });
    if let Err(other) = goes_on.and(put_back) {
        text.push_str(&format!("\nThis could not be put back: {other}"));
    }
    if is_left {
        let settings = REPLICA_SETTINGS.join(", ");
        text.push_str(&format!(
            "\nUnless another move does that, the new server needs REPLICAOF NO ONE, and CONFIG SET \
             of what it had before as {settings}."
        ));
    }
    let unknown = |other: String| format!("Nobody knows more: {other}.");
    let old = old.map_or_else(unknown, |stand| stand.text);
    let new = stand_of_new(to, before).unwrap_or_else(unknown);
    text.push_str(&format!("\n{old} {new}"));
    if !is_held {
        return Failure::Unmoved(text);
    }
    text.push_str(match from.has_paused() {
        true => {
            "\nCLIENT UNPAUSE at the old server, or the same command with --unpause, lets writes go on."
        }
        false => {
            "\nSomebody else has paused them, so another server may lead: only if none does, CLIENT \
             UNPAUSE at the old server, or the same command with --unpause, may let them go on."
        }
    });
    Failure::Unfinished(text)
}

/// How the old server stands.
pub(crate) struct Stand {
    pub(crate) holds_writes: bool,
    pub(crate) text: String,
}

pub(crate) fn stand_of_old(from: &mut Server) -> Result<Stand, String> {
    if let Some(place) = primary_of(&from.info("replication")?) {
        let text = format!("The old server is a replica of {place}.");
        return Ok(Stand { holds_writes: false, text });
    }
    let writes = from.writes()?;
    let text = match &writes {
        Writes::Taken => "The old server leads on.".to_owned(),
        Writes::Waiting => "The old server holds its writes.".to_owned(),
        Writes::Unknown(answer) => format!("The old server answers to a write: {answer}."),
    };
    let holds_writes = match writes {
        Writes::Taken => false,
        Writes::Waiting => true,
        Writes::Unknown(_) => from.has_paused(),
    };
    Ok(Stand { holds_writes, text })
}

fn stand_of_new(to: &mut Server, before: &Before<'_>) -> Result<String, String> {
    if let Some(place) = primary_of(&to.info("replication")?) {
        return Ok(format!("The new one follows {place}."));
    }
    if matches!(before.role, Role::Replica) {
        return Ok(
            "The new one leads: somebody else has promoted it, and that stays so.".to_owned()
        );
    }
    let keys: u64 = to.sizes()?.values().sum();
    let held = match to.writes()? {
        Writes::Waiting => {
            " It holds its writes as before: CLIENT UNPAUSE there ends that if no other one leads."
        }
        _ => "",
    };
    Ok(format!("The new one is a primary of its own, with {keys} keys.{held}"))
}

/// Whom a replica follows, by its INFO.
fn primary_of(state: &Info) -> Option<String> {
    let is_replica = state.get("role").is_some_and(|role| role == "slave");
    let part = |name| state.get(name).map(String::as_str).unwrap_or_default();
    is_replica.then(|| format!("{}:{}", part("master_host"), part("master_port")))
}
