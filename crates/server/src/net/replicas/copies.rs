//! Which replicas wait for a copy, who gets the next one, and how far it is.

use std::sync::Arc;

use config::Config;
use engine::host::LogLevel;
use engine::journal::backlog::Backlog;
use engine::session::replicas::Standing;
use engine::session::replicas::introduction::Loads;
use persist::cuts;
use persist::full_copy::{Begun, NoCopy, Wanted};

use super::Serving;
use super::copy::{Copy, Form};
use super::link::{Link, Source, Stage};

/// The pause after a copy that could not even begin: the next one would most likely fail as well,
/// and each stops the world for a moment.
const PAUSE_MS: u64 = 2000;

impl Serving {
    /// The form in which a replica gets its copy.
    fn form_of(link: &Link, config: &Config, has_expiring_fields: bool) -> Form {
        let introduction = link.introduction();
        Form {
            wanted: Wanted {
                // It makes a difference only where there are such fields.
                version_with_expiring_fields: match introduction.loads() {
                    Loads::Redis12 if has_expiring_fields => {
                        Some(rdb::FILE_VERSION_WITH_EXPIRING_FIELDS)
                    }
                    Loads::Valkey80 if has_expiring_fields => Some(rdb::FILE_VERSION_OF_VALKEY),
                    _ => None,
                },
                without_data: introduction.without_data,
                without_functions: introduction.without_functions,
            },
            spooled: !link.finds_end() || !config.repl_diskless_sync && !introduction.filters(),
        }
    }

    /// Whether the data has something that the reader of such a copy does not know. Then it waits:
    /// a copy that it cannot load would only be asked for again.
    fn cannot_be_told(form: Form, has_expiring_fields: bool) -> bool {
        let knows = form.wanted.version_with_expiring_fields.is_some();
        has_expiring_fields && !(knows || form.wanted.without_data)
    }

    /// Begins a copy for the replicas that wait for one, when it is time.
    pub(super) fn begin_copy(&mut self, now: u64) {
        if self.copy.is_some() || now < self.no_copy_before {
            return;
        }
        let (config, keyspace) = (self.engine.config.snapshot(), &self.engine.keyspace);
        let waits = |link: &Link| matches!(link.stage, Stage::Waits) && link.close_reason.is_none();
        let all = self.links.iter().enumerate();
        let waiting = all.filter_map(|(index, own)| own.as_ref().map(|link| (link, index)));
        let mut waiting: Vec<(u64, usize)> =
            waiting.filter(|(own, _)| waits(own)).map(|(own, index)| (own.id(), index)).collect();
        if waiting.is_empty() {
            self.waits_since = None;
            return;
        }
        // The next copy has the form of the one that has waited for the longest time.
        waiting.sort_unstable();
        let expire = keyspace.has_expiring_fields(None);
        let mut form = None;
        let mut members = Vec::new();
        for (id, index) in waiting {
            let Some(link) = &self.links[index] else { continue };
            let own = Serving::form_of(link, &config, expire);
            if Serving::cannot_be_told(own, expire) {
                self.tell_once(index);
            } else if *form.get_or_insert(own) == own {
                members.push(id);
            }
        }
        let Some(form) = form else {
            self.waits_since = None;
            return;
        };
        let since = *self.waits_since.get_or_insert(now);
        let delay = u64::from(config.repl_diskless_sync_delay) * 1000;
        let enough = config.repl_diskless_sync_max_replicas as usize;
        let is_time = form.spooled
            || now.saturating_sub(since) >= delay
            || enough > 0 && members.len() >= enough;
        // A snapshot or a rewrite comes to its end first.
        let Some(right) =
            is_time.then(|| self.cuts.try_take(cuts::Reader::Replicas).ok()).flatten()
        else {
            return;
        };
        self.waits_since = None;
        let mailbox = Arc::clone(&self.mailbox);
        let made = Copy::new((&self.engine, &self.cuts), form, members, move || mailbox.wake());
        let started = made.and_then(|copy| {
            let copy = Arc::new(copy);
            // From before the cut on.
            self.copy_pin = self.engine.journal.changes().map(Backlog::newest);
            self.pin();
            copy.start(&self.engine, right).map(|()| copy)
        });
        match started {
            Ok(copy) => {
                let names: Vec<_> = self.members(&copy.members).map(|link| link.name()).collect();
                let how = if form.spooled { "by way of a file" } else { "into their sockets" };
                self.log(
                    LogLevel::Notice,
                    &format!("A full copy begins for {}, {how}", names.join(", ")),
                );
                self.copy = Some(copy);
            }
            Err(error) => {
                self.copy_pin = None;
                let line = format!("A full copy for replicas cannot begin: {error}");
                self.log(LogLevel::Warning, &line);
                self.no_copy_before = now + PAUSE_MS;
            }
        }
    }

    fn members<'s>(&'s self, ids: &'s [u64]) -> impl Iterator<Item = &'s Link> {
        let links = self.links.iter().flatten().map(|link| &**link);
        links.filter(|link| ids.contains(&link.id()))
    }

    /// Says in the log why a replica waits, once.
    fn tell_once(&mut self, index: usize) {
        let Some(link) = &mut self.links[index] else { return };
        if !std::mem::replace(&mut link.was_told, true) {
            let line = format!(
                "Replica {} waits: fields of hashes expire, and it has not said that it knows such \
                 fields. It gets its copy when no field expires any more",
                link.name()
            );
            self.engine.host.log(LogLevel::Warning, &line);
        }
    }

    /// Looks how far the copy is that is being made.
    pub(super) fn look_at_copy(&mut self) {
        let Some(copy) = self.copy.clone() else { return };
        if let Some(begun) = copy.take_begun() {
            self.note_begun(&copy, &begun);
        }
        if let Some(ended) = copy.take_ended() {
            self.note_ended(&copy, ended);
            self.copy = None;
            self.copy_pin = None;
        }
        let is_wanted = self.members(&copy.members).any(|link| link.close_reason.is_none());
        if !is_wanted {
            copy.give_up();
        }
    }

    fn note_begun(&mut self, copy: &Copy, begun: &Begun) {
        let shown = begun.offset.wrapping_add(self.ahead());
        for link in self.links.iter_mut().flatten().filter(|own| copy.members.contains(&own.id())) {
            if !link.replica.is_silent {
                link.say(format!("+FULLRESYNC {} {shown}\r\n", begun.history).as_bytes());
            }
            let source = match &copy.fan_out {
                Some(from) => {
                    link.say(b"$EOF:");
                    link.say(&copy.mark);
                    link.say(b"\r\n");
                    Source::Chunks { from: Arc::clone(from), at: 0, mark: copy.mark }
                }
                None => Source::Unfinished,
            };
            link.stage = Stage::Copy { source, then: begun.offset };
            link.moved_at = base::clock::monotonic_ms();
            link.replica.stand(Standing::GetsCopy);
        }
        self.copy_pin = None;
        self.pin();
    }

    fn note_ended(&mut self, copy: &Copy, ended: Result<u64, NoCopy>) {
        let length = match ended {
            Ok(length) => {
                let line = format!("The full copy for replicas is complete: {} MB", length >> 20);
                self.log(LogLevel::Notice, &line);
                length
            }
            // They wait on: fields have begun to expire meanwhile.
            Err(NoCopy::CannotBeTold) => return,
            Err(NoCopy::Failed(error)) => {
                self.log(LogLevel::Warning, &format!("A full copy for replicas failed: {error}"));
                let of_copy = |own: &Link| copy.members.contains(&own.id());
                for link in self.links.iter_mut().flatten().filter(|link| of_copy(link)) {
                    match link.stage {
                        Stage::Copy { .. } => link.close("its copy failed"),
                        Stage::Waits => {
                            self.no_copy_before = base::clock::monotonic_ms() + PAUSE_MS;
                        }
                        _ => {}
                    }
                }
                return;
            }
        };
        let Some(own) = &copy.file else { return };
        for link in self.links.iter_mut().flatten().filter(|own| copy.members.contains(&own.id())) {
            let Stage::Copy { source, .. } = &mut link.stage else { continue };
            *source = Source::File { file: Arc::clone(own), at: 0, length };
            link.say(format!("${length}\r\n").as_bytes());
        }
    }
}
