//! Commands about many channels, which run in parts.
//!
//! A client may subscribe to a hundred thousand patterns with one command. Each of them has a reply
//! of its own, so nobody can tell such a command from several with fewer names: it is run as these,
//! and others are served in between. A transaction stays one command.

use resp::args::{Arguments, OwnedArguments};

use crate::admission::asked;
use crate::command::{PUBSUB, WHILE_SUBSCRIBED};
use crate::engine::{Engine, Row};
use crate::session::client::flag;
use crate::session::pubsub::{CHANNELS_AT_ONCE, Kind};
use crate::session::{ReplyMode, Session};

impl Engine {
    /// The commands that are to run in place of one that names too many channels, or ends too many
    /// subscriptions, in their order. None if it runs as it is.
    #[inline]
    pub fn parts_of(
        &self,
        session: &mut Session,
        row: Option<&Row>,
        argv: Arguments<'_>,
    ) -> Option<Vec<OwnedArguments>> {
        let row = row.filter(|row| row.command.has(WHILE_SUBSCRIBED))?;
        if argv.len() <= CHANNELS_AT_ONCE && session.subscriptions.is_none() {
            return None;
        }
        self.divide(session, row, argv)
    }

    #[cold]
    fn divide(
        &self,
        session: &mut Session,
        row: &Row,
        argv: Arguments<'_>,
    ) -> Option<Vec<OwnedArguments>> {
        let speaks_http = session.client.has_flag(flag::HTTP);
        let skips_one = matches!(session.reply_mode, ReplyMode::SkipNext | ReplyMode::Skip);
        if session.transaction.is_some() || speaks_http || skips_one {
            return None;
        }
        if row.command.spec.name == "reset" {
            return self.drop_some_subscriptions(session).then(|| vec![argv.into()]);
        }
        if !row.command.has(PUBSUB) {
            return None;
        }
        let own: Vec<Vec<u8>>;
        let names: Vec<&[u8]> = if argv.len() > 1 {
            argv.skip(1).iter().collect()
        } else {
            let kind = match row.command.spec.name {
                "unsubscribe" => Kind::Channel,
                "punsubscribe" => Kind::Pattern,
                "sunsubscribe" => Kind::Shard,
                _ => return None,
            };
            own = session.subscriptions.as_mut()?.of(kind).iter().cloned().collect();
            own.iter().map(Vec::as_slice).collect()
        };
        if names.len() <= CHANNELS_AT_ONCE {
            return None;
        }
        // Who may not use one of the channels gets none.
        session.user.look(&self.users);
        let user = &session.user;
        if !user.is_admitted() || user.check(asked(session, row, argv)).is_err() {
            return None;
        }
        let command = argv.at(0);
        let part = |names: &[&[u8]]| std::iter::once(&command).chain(names).copied().collect();
        Some(names.chunks(CHANNELS_AT_ONCE).map(part).collect())
    }
}
