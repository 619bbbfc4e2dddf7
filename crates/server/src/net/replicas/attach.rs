//! A connection that has asked to be a replica begins: with what it lacks, or with a copy.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use engine::host::LogLevel;
use engine::journal::backlog::{Position, Since};
use engine::session::client::flag;
use engine::session::replicas::Replica;
use engine::session::replicas::introduction::{SyncRequest, capability};
use mio::Token;

use super::Serving;
use super::link::Link;
use crate::net::arrival::Handover;
use crate::net::transport::Transport;

impl Serving {
    /// Takes over a connection.
    pub(super) fn adopt(&mut self, handover: Handover) {
        let Handover { mut transport, client, input, request } = handover;
        let index = self.links.iter().position(Option::is_none).unwrap_or(self.links.len());
        client.worker.store(self.number, Relaxed);
        client.set_flag(flag::REPLICA, true);
        if let Err(error) = transport.register(self.poll.registry(), Token(index)) {
            let line = format!("The connection of a replica cannot be used: {error}");
            self.engine.host.log(LogLevel::Warning, &line);
            self.engine.clients.remove(client.id);
            self.engine.note_closed(&client);
            self.mailbox.connections.fetch_sub(1, Relaxed);
            return;
        }
        if self.engine.config.load().repl_disable_tcp_nodelay {
            transport.gather();
        }
        let SyncRequest { from, introduction } = request;
        let now = base::clock::monotonic_ms();
        let replica = Arc::new(Replica::new(client, introduction, from.is_none(), now));
        // In this order: no link stays whose replica was left behind.
        let breaks = self.engine.replication.breaks();
        self.engine.replicas.add(&replica);
        let is_wrong_here = self.engine.is_wrong_here(&replica);
        let mut link = Link::new(transport, replica, input, breaks);
        self.log(LogLevel::Notice, &format!("Replica {} asks for synchronization", link.name()));
        match from {
            _ if is_wrong_here => link.close("it has no right to that, or wants another primary"),
            Some((history, offset)) if self.go_on(&mut link, &history, offset) => {
                self.engine.replicas.counts.partial.fetch_add(1, Relaxed);
                // Clients may have asked how far replicas are when it was not there.
                if self.engine.choices.holding.load(Relaxed) > 0 {
                    self.engine.replicas.ask();
                }
            }
            from => {
                if from.is_some_and(|(history, _)| history != b"?") {
                    self.engine.replicas.counts.refused_partial.fetch_add(1, Relaxed);
                }
                self.engine.replicas.counts.full.fetch_add(1, Relaxed);
            }
        }
        if let Some(backlog) = self.engine.journal.changes() {
            backlog.note_use(base::clock::monotonic_ms());
        }
        if index == self.links.len() {
            self.links.push(None);
        }
        self.links[index] = Some(Box::new(link));
        self.pin();
    }

    /// Lets a replica go on where it was, if what follows is kept. `offset` is that of the first
    /// byte that it lacks, counted from 1.
    fn go_on(&self, link: &mut Link, history: &[u8], offset: i64) -> bool {
        let Some(backlog) = self.engine.journal.changes().filter(|own| own.is_on()) else {
            return false;
        };
        let Some(before) = offset.checked_sub(1).and_then(|before| u64::try_from(before).ok())
        else {
            return false;
        };
        let history = String::from_utf8_lossy(history).to_ascii_lowercase();
        let position = Position { history, offset: before };
        let Ok(at) = backlog.resolve(&Since::Position(position), u64::MAX) else {
            let why = "what follows the position that it has is not kept, or was never there";
            self.log(
                LogLevel::Notice,
                &format!("Replica {} cannot go on where it was: {why}", link.name()),
            );
            return false;
        };
        let present = backlog.histories().map(|own| own.present).unwrap_or_default();
        let missing = backlog.newest().saturating_sub(at);
        let introduction = link.introduction();
        let answer = match introduction.has(capability::NAMED_CONTINUE) {
            // It has lost nothing that it has ever confirmed when it has come so far.
            true if introduction.has(capability::NAMED_END) => {
                format!("+CONTINUE {present} {}\r\n", before + missing)
            }
            true => format!("+CONTINUE {present}\r\n"),
            false => "+CONTINUE\r\n".to_owned(),
        };
        link.say(answer.as_bytes());
        link.begin_to_follow(at);
        self.log(
            LogLevel::Notice,
            &format!("Replica {} goes on at {before}, {missing} bytes behind", link.name()),
        );
        true
    }
}
