//! Whether a command may run, and when: the checks, in the order in which Redis makes them.
//!
//! Commands come from several places, and each kind of caller has one entry here:
//!
//! | what asks | entry |
//! |---|---|
//! | a connection, for each command | [`Engine::admit`] |
//! | the fast path, for commands that `admit` would let run | [`Engine::admits_shortly`] |
//! | EXEC, for each queued command | [`admit_queued`] |
//! | EVAL and FCALL, for the script | [`admit_script`] |
//! | a script, for each command that it calls | [`known_to_script`], [`admit_called`] |
//! | a thread that serves a waiting client | [`admit_served`] |
//! | HTTP, for a command that a request names | [`is_about_connection`], [`may_be_sent_by_any_page`] |
//!
//! `slots` has the checks of a node of a cluster.

pub mod slots;

use resp::args::Arguments;
use store::gate::Pinned;

use crate::command::args::KeyAt;
use crate::command::error::{CommandError, CommandResult, printable};
use crate::command::keys::collect_keys;
use crate::command::{self, RowId, SCRIPT_BY_DIGEST, SCRIPT_BY_TEXT, Spec};
use crate::engine::{Context, Engine, Row};
use crate::files::saving;
use crate::host::{Frequent, LogLevel};
use crate::journal::filter::{Filter, Keys};
use crate::persistence::durability;
use crate::reclaim::eviction;
use crate::script::shebang::{
    self, ALLOW_CROSS_SLOT, ALLOW_OOM, ALLOW_STALE, COMPATIBLE, NO_CLUSTER, NO_WRITES, ScriptFlags,
};
use crate::session::Session;
use crate::session::awaited::Wait;
use crate::session::client::Client;
use crate::session::slot_moves::Passage;
use crate::turn::Turn;
use crate::turn::expansion::{all_have, any_has, each_request, lacks_subcommand, stops_the_world};
use crate::turn::request::Request;
use crate::users::log::{Reason, Refusal, RefusalContext};
use crate::users::refusing;
use crate::users::verdict::{CheckedCommand, Known, Lack};
use crate::users::{Account, OF_NODES};
use config::{Config, Permission};

/// Milliseconds after which a command that would change a held key tries again.
const PAUSE_OF_HELD: u64 = 2;
/// Milliseconds after which a command for a slot that is being handed over tries again.
const PAUSE_OF_HAND_OVER: u64 = 5;
/// Milliseconds after which a command for slots that change their owner tries again.
const PAUSE_OF_SLOTS: u64 = 1;

/// The result of the checks.
pub(crate) enum Admission {
    Run(&'static Row),
    Queue(&'static Row),
    Pause(u64),
}

impl Engine {
    /// The checks before a command of a connection.
    pub(crate) fn admit(
        &self,
        pinned: Pinned<'_>,
        turn: &mut Turn,
        session: &mut Session,
        request: &Request<'_>,
    ) -> Result<Admission, CommandError> {
        let row = known_command(request)?;
        right_arity(row.command, request.argv)?;
        if let Some(term) = session.link {
            return self.admit_replicated(turn, session, (row, request.argv), term);
        }
        if session.replays {
            stands_in_stream(row.command)?;
        }
        permitted(turn, session, row.command)?;
        session.user.look(&self.users);
        self.allowed_to_import(session, row.command, request.keys)?;
        self.authenticated(session, row.command)?;
        self.allowed_to_user(turn, session, (row, request.argv))?;
        let own = (&row.command.spec, request.argv, request.keys);
        if let Err(error) = self.serves_slots(turn, session, own) {
            // The next primary is about to be known.
            if self.pause.is_handing_over() && error.says_cluster_is_down() {
                return Ok(Admission::Pause(turn.monotonic + PAUSE_OF_HAND_OVER));
            }
            let until = self.await_primary(turn, session, request.keys, error)?;
            return Ok(Admission::Pause(until));
        }
        // What was suspended before a FAILOVER made a replica of this server may still go on.
        if session.paused
            && self.failover.is_on()
            && let Some(until) = self.paused(turn, session, row.command, request.argv)
        {
            return Ok(Admission::Pause(until));
        }
        eviction::admit(self, pinned, turn, session, row.command)?;
        durability::admit(self, turn, session, row.command)?;
        self.may_write(turn, session, row.command)?;
        self.replicas_suffice(turn, session, row.command)?;
        self.allowed_on_replica(turn, session, row.command, request.argv)?;
        allowed_while_subscribed(session, row.command)?;
        allowed_while_monitoring(session, row.command)?;
        self.allowed_while_stale(turn, session, row.command)?;
        self.allowed_while_loading(session, row.command)?;
        if let Some(until) = self.paused(turn, session, row.command, request.argv) {
            return Ok(Admission::Pause(until));
        }
        if self.held_keys.are_any() && self.changes_held(session, row.command, request.argv) {
            return Ok(Admission::Pause(turn.monotonic + PAUSE_OF_HELD));
        }
        if self.slot_moves.are_any() {
            match self.passage(&turn.config, session, row.command, request.argv) {
                Passage::Free => {}
                Passage::Waits => return Ok(Admission::Pause(turn.monotonic + PAUSE_OF_SLOTS)),
                Passage::Moved(slot, to) => {
                    return Err(CommandError::owned(format!("MOVED {slot} {to}")));
                }
            }
        }
        if session.transaction.is_some() && !row.command.has(command::NEVER_QUEUED) {
            if row.command.has(command::NO_MULTI) {
                return Err(CommandError::text("ERR Command not allowed inside a transaction"));
            }
            return Ok(Admission::Queue(row));
        }
        let command = (&row.command.spec, request.argv);
        if let Some(until) = durability::delayed_until(self, turn, session, command) {
            return Ok(Admission::Pause(until));
        }
        Ok(Admission::Run(row))
    }

    /// The checks before a command of the primary, over the link of this term. What holds for
    /// clients does not concern it, but it is no administrator.
    fn admit_replicated(
        &self,
        turn: &mut Turn,
        session: &Session,
        (row, argv): (&'static Row, Arguments<'_>),
        term: u64,
    ) -> Result<Admission, CommandError> {
        if self.replication.term() != term {
            return Err(CommandError::PRIMARY_CHANGED);
        }
        stands_in_stream(row.command)?;
        if self.pause.is_stopping() {
            return Ok(Admission::Pause(turn.monotonic + durability::PRESSURE_PAUSE));
        }
        turn.effects.short_of_memory = false;
        if session.transaction.is_some() && !row.command.has(command::NEVER_QUEUED) {
            return Ok(Admission::Queue(row));
        }
        let command = (&row.command.spec, argv);
        let delayed = durability::delayed_until(self, turn, session, command);
        Ok(delayed.map_or(Admission::Run(row), Admission::Pause))
    }

    /// Whether a replica whose link is down answers: from old data only if the settings allow it.
    fn allowed_while_stale(&self, turn: &Turn, session: &Session, command: &Spec) -> CommandResult {
        let serves = turn.config.replica_serve_stale_data || !self.replication.is_stale();
        if serves || session.replays || all_have(command, session, command::STALE) {
            return Ok(());
        }
        Err(CommandError::PRIMARY_DOWN)
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

    /// Whether saving allows writes.
    fn may_write(&self, turn: &Turn, session: &Session, command: &Spec) -> CommandResult {
        if !self.saving.stops_writes(&turn.config) {
            return Ok(());
        }
        let concerned = durability::is_refused_like_writes(session, command);
        if concerned { Err(saving::refusal()) } else { Ok(()) }
    }

    /// Whether a replica lets clients write. A script that says of itself that it may write counts
    /// as a write.
    fn allowed_on_replica(
        &self,
        turn: &Turn,
        session: &Session,
        command: &Spec,
        argv: Arguments<'_>,
    ) -> CommandResult {
        if !turn.refuses_writes || session.replays {
            return Ok(());
        }
        let may_write = any_has(command, session, command::WRITE)
            || each_request(command, argv, session)
                .any(|(own, argv)| self.says_it_writes(own, argv));
        if may_write { Err(CommandError::READ_ONLY_REPLICA) } else { Ok(()) }
    }

    /// Whether as many replicas keep up as the settings ask of a primary.
    fn has_replicas(&self, config: &Config, monotonic: u64) -> bool {
        self.replication.is_replica() || self.replicas.are_enough(config, monotonic)
    }

    /// Whether replicas enough keep up for a write.
    fn replicas_suffice(&self, turn: &Turn, session: &Session, command: &Spec) -> CommandResult {
        let suffice = session.replays || self.has_replicas(&turn.config, turn.monotonic);
        if suffice || !any_has(command, session, command::WRITE) {
            return Ok(());
        }
        Err(CommandError::NOT_ENOUGH_REPLICAS)
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
        self.pause.suspends(turn.monotonic, || {
            each_request(command, argv, session).any(|(own, argv)| {
                own.has(command::WRITE | command::MAY_REPLICATE)
                    && !self.declares_no_writes(own, argv)
            })
        })
    }
}

impl Engine {
    /// Whether [`Engine::admit`] would let a command run that may take the fast path, as far as
    /// that holds for those behind it. It makes room if memory is short.
    #[inline]
    pub(crate) fn admits_shortly(
        &self,
        pinned: Pinned<'_>,
        turn: &mut Turn,
        session: &Session,
        command: &Spec,
    ) -> bool {
        if !(turn.usual && session.is_usual(turn.breaks, turn.users)) {
            return false;
        }
        // Nothing is evicted for a primary.
        let limited = turn.config.maxmemory > 0 && session.link.is_none();
        !limited || eviction::admit(self, pinned, turn, session, command).is_ok()
    }

    /// Whether the server is in no state that makes commands be refused or wait, as far as that
    /// does not change within a turn.
    pub(crate) fn is_usual(&self, turn: &Turn) -> bool {
        let effects = &turn.effects;
        let stands_still = self.loading.is_on() || self.saving.stops_writes(&turn.config);
        let is_silent = !turn.config.replica_serve_stale_data && self.replication.is_stale();
        let suffice = self.has_replicas(&turn.config, turn.monotonic);
        let is_down = turn.cluster.as_ref().is_some_and(|view| !view.is_up(&turn.config));
        !(stands_still
            || is_silent
            || is_down
            || !suffice
            || effects.journal_failed
            || turn.writes_wait
            || turn.beside_script
            || self.held_keys.are_any()
            || self.slot_moves.are_any())
    }

    /// Whether a command may change a key that MIGRATE holds. What MIGRATE itself does may.
    fn changes_held(&self, session: &Session, command: &Spec, argv: Arguments<'_>) -> bool {
        if session.replays || session.user.is_server() {
            return false;
        }
        let mut keys = Vec::new();
        each_request(command, argv, session).any(|(own, argv)| {
            keys.clear();
            if own.has(command::WRITE | command::MAY_REPLICATE | command::SCRIPT) {
                collect_keys(own, argv, &mut keys);
            }
            self.held_keys.have_any(keys.iter().map(|key| argv.at(key.index as usize)))
        })
    }

    /// What a command, and those of the transaction that it executes, have to do because of slots
    /// that are on their way to another server. What may write into slots that it does not name
    /// waits for all of them: scripts (see [`Engine::may_reach_anywhere`]), what empties databases,
    /// and, where commands may use keys of several slots, each write, because it may serve a client
    /// that waits to move an element on: [`slots::serves_waiter`] goes by the same settings.
    /// What comes from another server serves nobody: two that give each other slots do not wait for
    /// one another.
    #[cold]
    fn passage(
        &self,
        config: &Config,
        session: &Session,
        command: &Spec,
        argv: Arguments<'_>,
    ) -> Passage {
        if session.replays {
            return Passage::Free;
        }
        let mut slots: Vec<u16> = Vec::new();
        let crosses = session.import.is_none()
            && (!self.cluster.is_enabled() || config.cluster_allow_cross_slot);
        for (own, argv) in each_request(command, argv, session) {
            let mut keys = Vec::new();
            collect_keys(own, argv, &mut keys);
            let empties = || keys.is_empty() && stops_the_world(own, argv);
            let reaches_anywhere = match own.has(command::SCRIPT) {
                true => crosses || self.may_reach_anywhere(session, own, argv, !keys.is_empty()),
                false => own.has(command::WRITE) && (crosses || empties()),
            };
            if reaches_anywhere && self.slot_moves.holds_any() {
                return Passage::Waits;
            }
            slots.extend(keys.iter().map(|key| key.slot));
        }
        self.slot_moves.passage(slots.iter().copied())
    }

    /// Whether the script that a command runs may use a slot that its keys do not name, as far as
    /// that matters to slots which change their owner. Two kinds of scripts may not:
    ///
    /// - One that only reads begins again when it meets a held slot. It has then said what it
    ///   needs, and waits.
    /// - One that declares keys, and says of itself what it needs, uses no other slot, unless it
    ///   says that it crosses slots, or empties databases.
    ///
    /// A script within EXEC cannot begin again.
    fn may_reach_anywhere(
        &self,
        session: &Session,
        command: &Spec,
        argv: Arguments<'_>,
        has_keys: bool,
    ) -> bool {
        let is_bound = !session.user.is_server()
            && session.transaction.is_none()
            && session.script_needs.is_none();
        let only_reads =
            || command.has(command::READONLY) || self.declares_no_writes(command, argv);
        let keeps_to_keys = || {
            let flags = self.script_flags(command, argv);
            has_keys
                && flags.is_some_and(|flags| flags & (COMPATIBLE | ALLOW_CROSS_SLOT) == 0)
                && !self.may_empty(command, argv)
        };
        !(is_bound && (only_reads() || keeps_to_keys()))
    }

    /// Whether a command runs a script that says of itself that it writes nothing.
    pub(crate) fn declares_no_writes(&self, command: &Spec, argv: Arguments<'_>) -> bool {
        self.script_flags(command, argv).is_some_and(|flags| flags & NO_WRITES != 0)
    }

    /// What a script says of itself that a command runs, if it runs one and the script is known.
    fn script_flags(&self, command: &Spec, argv: Arguments<'_>) -> Option<ScriptFlags> {
        if !command.has(command::SCRIPT) {
            return None;
        }
        let name = argv.get(1)?;
        match command.flags & command::SCRIPT {
            SCRIPT_BY_TEXT => shebang::parse(name).ok().map(|(flags, _)| flags),
            SCRIPT_BY_DIGEST => self.scripts.cache.find(name).map(|script| script.flags),
            _ => self.scripts.functions.find(name).map(|(own, at)| own.functions[at].flags),
        }
    }
}

fn known_command(request: &Request<'_>) -> Result<&'static Row, CommandError> {
    let row = request.row.ok_or_else(|| unknown_command(request.argv))?;
    if !lacks_subcommand(row, request.argv) {
        return Ok(row);
    }
    let name = request.argv.at(0);
    Err(CommandError::quoting(
        "ERR unknown subcommand '",
        cut(request.argv.at(1), LONGEST_WORD),
        &format!("'. Try {} HELP.", String::from_utf8_lossy(&name.to_ascii_uppercase())),
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

/// Whether a write of a connection that brings slots needs no right of its user to the command: it
/// is one of those that a source sends, which wait for nothing and change keys of these slots alone
/// ([`Engine::allowed_to_import`]). MIGRATE, which sends values to other servers, is none.
#[inline]
pub(crate) fn brings(session: &Session, command: &Spec) -> bool {
    session.import.is_some()
        && session.transaction.is_none()
        && command.has(command::WRITE)
        && !command.has(command::NOSCRIPT | command::BLOCKING)
}

fn right_arity(command: &Spec, argv: Arguments<'_>) -> CommandResult {
    if command.accepts(argv.len()) {
        return Ok(());
    }
    Err(CommandError::wrong_arity(&command.full_name()))
}

fn permitted(turn: &Turn, session: &Session, command: &Spec) -> CommandResult {
    if command.has(command::NEEDS_MODULES) {
        return Err(CommandError::MODULES_NOT_ALLOWED);
    }
    if !command.has(command::PROTECTED) {
        return Ok(());
    }
    let allowed = match turn.config.enable_debug_command {
        Permission::Yes => true,
        Permission::Local => session.client.is_local(),
        Permission::No => false,
    };
    if allowed { Ok(()) } else { Err(CommandError::DEBUG_NOT_ALLOWED) }
}

/// Whether the stream of a primary, or an append-only file, may have a command: what is about data.
/// A primary that sends anything else wants to command this server, not its data; and the file of a
/// replica has the stream as it came.
fn stands_in_stream(command: &Spec) -> CommandResult {
    const ABOUT_DATA: command::Flags = command::WRITE
        | command::READONLY
        | command::MAY_REPLICATE
        | command::SCRIPT
        | command::IN_STREAM;
    // Nobody can name an internal one: the server itself runs it.
    if command.has(ABOUT_DATA | command::INTERNAL) && !command.has(command::SET_ASIDE) {
        return Ok(());
    }
    Err(CommandError::text("ERR no stream of a primary contains this command"))
}

fn allowed_while_subscribed(session: &Session, command: &Spec) -> CommandResult {
    if !session.in_pubsub_mode() || command.has(command::WHILE_SUBSCRIBED) {
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

impl Engine {
    /// Whether a connection that brings slots may send a command: one that writes in these slots
    /// alone, as long as the import goes on and the user may bring slots, or one that writes
    /// nothing.
    #[inline]
    fn allowed_to_import(
        &self,
        session: &Session,
        command: &Spec,
        keys: &[KeyAt],
    ) -> CommandResult {
        let Some(own) = &session.import else { return Ok(()) };
        if !command.has(command::WRITE | command::MAY_REPLICATE | command::SCRIPT) {
            return Ok(());
        }
        let slots = keys.iter().map(|key| key.slot);
        let goes_on = || own.import.admits(slots) && self.is_of_nodes(session.user.account());
        if !keys.is_empty() && goes_on() { Ok(()) } else { Err(CommandError::IMPORT_OVER) }
    }

    /// Whether a client has shown who it is, where it must.
    #[inline]
    fn authenticated(&self, session: &Session, command: &Spec) -> CommandResult {
        if session.user.is_admitted() || command.has(command::NO_AUTH) {
            return Ok(());
        }
        Err(CommandError::NO_AUTH)
    }

    /// Whether the client's user may run a command.
    #[inline]
    fn allowed_to_user(
        &self,
        turn: &Turn,
        session: &Session,
        (row, argv): (&Row, Arguments<'_>),
    ) -> CommandResult {
        // Whoever may bring slots may write what is in them.
        let is_free = session.replays || brings(session, row.command);
        if session.user.restricted().is_none() || is_free {
            return Ok(());
        }
        let asked = asked(session, row, argv);
        let Err(lack) = session.user.check(asked) else { return Ok(()) };
        let in_multi = session.transaction.is_some();
        let context = if in_multi { RefusalContext::Multi } else { RefusalContext::TopLevel };
        self.note_lack((&turn.config, turn.now, turn.monotonic), session, asked, lack, context);
        let text = refusing::text(session.user.account(), asked, lack, false);
        Err(CommandError::line([b"NOPERM ", &*text].concat()))
    }

    /// Whether a client may still have what the host has prepared for it.
    ///
    /// # Errors
    /// Its user has lost the right to that while it waited.
    pub fn may_read_prepared(
        &self,
        turn: &Turn,
        session: &mut Session,
        wait: &Wait,
    ) -> CommandResult {
        let Some(row) = wait.reads else { return Ok(()) };
        session.user.look(&self.users);
        self.allowed_to_user(turn, session, (&self.commands.rows()[row], wait.argv.view()))
    }

    /// Puts a refusal into the log of users.
    #[cold]
    fn note_lack(
        &self,
        (config, now, monotonic): (&Config, u64, u64),
        session: &Session,
        asked: CheckedCommand<'_>,
        lack: Lack,
        context: RefusalContext,
    ) {
        let object = match lack {
            Lack::Command => refusing::shown_name(asked.spec).into_bytes(),
            _ => asked.argv.get(lack.argument()).unwrap_or_default().to_vec(),
        };
        let user = session.user.name().to_vec();
        let refusal = Refusal { reason: Reason::from(lack), context, object, user };
        self.note_refusal((config, now, monotonic), &session.client, refusal);
    }

    /// Puts a refusal to a client into the log of users, with the settings and the time: the
    /// milliseconds of Unix time, and of the monotonic clock. The log of the server has failed
    /// logins too: whoever guesses passwords need not be a user.
    pub fn note_refusal(
        &self,
        (config, now, monotonic): (&Config, u64, u64),
        client: &Client,
        refusal: Refusal,
    ) {
        if refusal.reason == Reason::Login {
            self.host.log_frequent(Frequent::Login, LogLevel::Warning, &|| {
                let Client { address, local_address, .. } = client;
                format!("A login failed (addr={address} laddr={local_address})")
            });
        }
        let line = client.describe(monotonic, self.commands);
        let most = usize::try_from(config.acllog_max_len).unwrap_or(usize::MAX);
        self.users.note_refusal(refusal, line, now, most);
    }
}

/// Whether the session's user may run a command that takes the fast path. Between calls with the
/// same `known` the user, its rights and the database stay the same.
#[inline]
pub(crate) fn allowed_shortly(
    session: &Session,
    row: &Row,
    request: &Request<'_>,
    known: &mut Option<Known>,
) -> bool {
    // Most commands of a pipeline are like the one before. The arguments are looked at where they
    // are: a copy, right after they were put together, would wait for that.
    if let (Some(known), [key], Some(rule)) = (&*known, request.keys, row.access)
        && known.covers(row.id, rule.access(&request.argv), request.argv.at(key.index as usize))
    {
        return true;
    }
    is_allowed(session, row, request, known)
}

/// [`allowed_shortly`] of a command that is not like the one before.
#[inline(never)]
fn is_allowed(
    session: &Session,
    row: &Row,
    request: &Request<'_>,
    known: &mut Option<Known>,
) -> bool {
    let (asked, account) = (asked(session, row, request.argv), session.user.account());
    let is_sure = row.access.is_some_and(|rule| {
        let access = rule.access(&request.argv);
        let [key] = request.keys else {
            return account.surely_allows(asked, access, request.keys);
        };
        let (is_sure, found) =
            account.surely_allows_key(asked, access, request.argv.at(key.index as usize));
        *known = found;
        is_sure
    });
    is_sure || account.check(asked).is_ok()
}

/// A command of a session, as the rights of users see it.
#[inline]
pub(crate) fn asked<'a>(session: &Session, row: &Row, argv: Arguments<'a>) -> CheckedCommand<'a> {
    CheckedCommand {
        id: row.id,
        spec: &row.command.spec,
        argv,
        database: session.database_of_next(),
    }
}

/// Whether a command may tell a user of the changes that a filter admits.
pub fn may_follow(account: &Account, id: RowId, filter: &Filter) -> bool {
    match &filter.keys {
        Keys::One(key) => account.reads_key(id, key, filter.database),
        Keys::Prefix(prefix) => account.reads_keys_below(id, prefix, filter.database),
    }
}

impl Context<'_> {
    /// Puts a refusal to the client into the log of users.
    pub fn note_refusal(&self, refusal: Refusal) {
        let at = (self.db.config, self.db.now, self.db.monotonic);
        self.engine.note_refusal(at, &self.session.client, refusal);
    }

    /// Whether the command that runs may tell the client's user of what a filter admits.
    ///
    /// # Errors
    /// It may not. The log of users has it.
    pub fn may_follow(&self, filter: &Filter) -> CommandResult {
        if may_follow(self.session.user.account(), self.row.id, filter) {
            return Ok(());
        }
        let (Keys::One(object) | Keys::Prefix(object)) = &filter.keys;
        self.refuse_key(object)
    }

    /// Whether this node of a cluster has the key that a filter names.
    ///
    /// # Errors
    /// It has not: where the client finds it.
    pub fn serves_followed(&self, filter: &Filter) -> CommandResult {
        let refusal = self.engine.refusal_of_follower(&self.session.client, filter);
        refusal.map_or(Ok(()), Err)
    }

    /// Whether the client's user may run the command that runs, with these arguments, and also read
    /// keys that it does not name.
    pub fn may_read_unnamed(&self, argv: Arguments<'_>) -> bool {
        let session = &*self.session;
        session.replays || session.user.account().may_read_unnamed(asked(session, self.row, argv))
    }

    /// The client's user may not use a key, or the keys that begin so.
    ///
    /// # Errors
    /// Always: what the client is told. The log of users has it.
    pub fn refuse_key(&self, key: &[u8]) -> CommandResult {
        let (object, user) = (key.to_vec(), self.session.user.name().to_vec());
        let context = match () {
            () if self.session.script => RefusalContext::Script,
            () if self.nested => RefusalContext::Multi,
            () => RefusalContext::TopLevel,
        };
        self.note_refusal(Refusal { reason: Reason::Key, context, object, user });
        Err(CommandError::text("NOPERM No permissions to access a key"))
    }

    /// Whether the client may speak for a node of the cluster, with this option of the command that
    /// runs.
    ///
    /// # Errors
    /// Its user has not the right to that. The log of users has it.
    pub fn may_speak_for_nodes(&self, option: &str) -> CommandResult {
        if self.engine.is_of_nodes(self.session.user.account()) {
            return Ok(());
        }
        let (object, user) = (OF_NODES.into(), self.session.user.name().to_vec());
        let context = RefusalContext::TopLevel;
        self.note_refusal(Refusal { reason: Reason::Command, context, object, user });
        let (user, command) = (self.session.user.name(), self.row.command.full_name());
        let why = format!(
            " may not speak for a node of the cluster: {command} {option} needs the right to run \
             the '{OF_NODES}' command"
        );
        Err(CommandError::line([b"NOPERM User ", user, why.as_bytes()].concat()))
    }

    /// Whether the client's user may run a command of this name with the keys of the command that
    /// runs, which has these arguments.
    ///
    /// # Errors
    /// It may not. The log of users has it.
    pub fn may_act_as(&self, name: &str, argv: Arguments<'_>) -> CommandResult {
        let row = self.engine.commands.find(name.as_bytes());
        let own = asked(self.session, self.row, argv);
        if row.is_some_and(|row| {
            self.session.user.check(CheckedCommand { id: row.id, ..own }).is_ok()
        }) {
            return Ok(());
        }
        let (object, user) = (name.as_bytes().to_vec(), self.session.user.name().to_vec());
        let refusal =
            Refusal { reason: Reason::Command, context: RefusalContext::TopLevel, object, user };
        self.note_refusal(refusal);
        let user = self.session.user.name();
        let name = name.as_bytes();
        let parts = [&b"NOPERM User "[..], user, b" has no permissions to run the '", name];
        Err(CommandError::line([&*parts.concat(), b"' command"].concat()))
    }
}

/// The command of a nested call, if the client's user may not run it: what the user lacks. It is in
/// the log then.
fn lack_of(
    cx: &mut Context<'_>,
    row: &Row,
    argv: Arguments<'_>,
    context: RefusalContext,
) -> Option<Lack> {
    if cx.session.replays || cx.session.link.is_some() {
        return None;
    }
    cx.session.user.look(&cx.engine.users);
    cx.session.user.restricted()?;
    let asked = asked(cx.session, row, argv);
    let lack = cx.session.user.check(asked).err()?;
    let times = (cx.db.config, cx.db.now, cx.db.monotonic);
    cx.engine.note_lack(times, cx.session, asked, lack, context);
    Some(lack)
}

/// Whether a transaction may run a command that was admitted when it was queued. A command before
/// it in the same transaction may have made this server a replica, the rights of the user may be
/// others, and slots that the connection brings may have come to an end.
pub fn admit_queued(
    cx: &mut Context<'_>,
    row: &Row,
    argv: Arguments<'_>,
    keys: &[KeyAt],
) -> CommandResult {
    let command = &row.command.spec;
    cx.session.user.look(&cx.engine.users);
    cx.engine.allowed_to_import(cx.session, command, keys)?;
    cx.engine.authenticated(cx.session, command)?;
    if let Some(lack) = lack_of(cx, row, argv, RefusalContext::Multi) {
        let reason = refusing::reason_at_exec(lack);
        return Err(CommandError::owned(format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
             EXEC call. This command is no longer allowed for the following reason: {reason}"
        )));
    }
    if command.has(command::WRITE) && refuses_writes_now(cx) {
        return Err(CommandError::READ_ONLY_REPLICA);
    }
    Ok(())
}

/// Whether this is a replica at the moment that lets its clients write nothing.
fn refuses_writes_now(cx: &Context<'_>) -> bool {
    cx.engine.replication.is_replica()
        && cx.db.config.replicas_are_read_only()
        && !cx.session.replays
        && cx.session.link.is_none()
}

/// Whether a client that has waited in a command may be served: as if its command began now, with
/// as much memory as the command found that serves the client.
pub(crate) fn admit_served(cx: &mut Context<'_>, row: &Row, argv: Arguments<'_>) -> CommandResult {
    let command = &row.command.spec;
    cx.session.user.look(&cx.engine.users);
    cx.engine.authenticated(cx.session, command)?;
    if let Some(lack) = lack_of(cx, row, argv, RefusalContext::TopLevel) {
        let asked = asked(cx.session, row, argv);
        let text = refusing::text(cx.session.user.account(), asked, lack, false);
        return Err(CommandError::line([b"NOPERM ", &*text].concat()));
    }
    if command.has(command::DENYOOM) && cx.db.effects.short_of_memory {
        return Err(CommandError::OUT_OF_MEMORY);
    }
    if command.has(command::WRITE) && refuses_writes_now(cx) {
        return Err(CommandError::READ_ONLY_REPLICA);
    }
    slots::serves_waiter(cx, command, argv)
}

/// The checks before a script runs that declares what it needs. Other scripts' commands are checked
/// one by one.
pub fn admit_script(cx: &Context<'_>, flags: ScriptFlags, read_only: bool) -> CommandResult {
    if flags & NO_CLUSTER != 0 && cx.db.cluster.is_some() {
        let text = "ERR Can not run script on cluster, 'no-cluster' flag is set.";
        return Err(CommandError::text(text));
    }
    if flags & ALLOW_STALE == 0 && is_silent(cx) {
        return Err(CommandError::PRIMARY_DOWN);
    }
    if flags & COMPATIBLE != 0 {
        return Ok(());
    }
    if cx.db.effects.short_of_memory && flags & (NO_WRITES | ALLOW_OOM) == 0 {
        return Err(CommandError::OUT_OF_MEMORY);
    }
    if flags & NO_WRITES != 0 {
        return Ok(());
    }
    if read_only {
        let text = "ERR Can not execute a script with write flag using *_ro command.";
        return Err(CommandError::text(text));
    }
    script_may_write(cx)
}

/// What a script may do at the moment.
pub(crate) struct ScriptRights {
    /// It only reads.
    pub(crate) read_only: bool,
    /// It may take memory that there is not.
    pub(crate) over_memory: bool,
}

/// The row of a command that a script calls.
pub(crate) fn known_to_script(
    cx: &Context<'_>,
    argv: Arguments<'_>,
) -> Result<&'static Row, CommandError> {
    let row = cx.engine.client_names.resolve(argv).filter(|row| !lacks_subcommand(row, argv));
    row.ok_or(CommandError::text("ERR Unknown Redis command called from script"))
}

/// The checks before a command that a script calls.
pub(crate) fn admit_called(
    cx: &mut Context<'_>,
    row: &Row,
    argv: Arguments<'_>,
    rights: &ScriptRights,
) -> CommandResult {
    let command = &row.command.spec;
    if !command.accepts(argv.len()) {
        let text = "ERR Wrong number of args calling Redis command from script";
        return Err(CommandError::text(text));
    }
    if command.has(command::NOSCRIPT) {
        return Err(CommandError::text("ERR This Redis command is not allowed from script"));
    }
    if !command.has(command::STALE) && is_silent(cx) {
        return Err(CommandError::text("ERR Can not execute the command on a stale replica"));
    }
    if let Some(lack) = lack_of(cx, row, argv, RefusalContext::Script) {
        let asked = asked(cx.session, row, argv);
        let text = refusing::text(cx.session.user.account(), asked, lack, false);
        return Err(CommandError::line([b"ERR ACL failure in script: ", &*text].concat()));
    }
    // Messages to other clients count as writes.
    if rights.read_only && command.has(command::WRITE | command::MAY_REPLICATE) {
        let text = "ERR Write commands are not allowed from read-only scripts.";
        return Err(CommandError::text(text));
    }
    if command.has(command::WRITE) {
        script_may_write(cx)?;
    }
    let short = cx.db.effects.short_of_memory && !rights.over_memory;
    if command.has(command::DENYOOM) && short {
        return Err(CommandError::OUT_OF_MEMORY);
    }
    Ok(())
}

/// Whether this is a replica whose link is down, and which may not answer from old data.
fn is_silent(cx: &Context<'_>) -> bool {
    let serves = cx.db.config.replica_serve_stale_data || !cx.engine.replication.is_stale();
    !(serves || cx.session.replays || cx.session.link.is_some())
}

/// Whether replication and persistence allow a script's writes.
fn script_may_write(cx: &Context<'_>) -> CommandResult {
    if refuses_writes_now(cx) {
        return Err(CommandError::READ_ONLY_REPLICA);
    }
    if cx.session.repeats() {
        return Ok(());
    }
    if cx.db.effects.journal_failed
        && let Some(reason) = cx.engine.journal.failure()
    {
        let text = format!("MISCONF Errors writing to the AOF file: {reason}");
        return Err(CommandError::owned(text));
    }
    if cx.engine.saving.stops_writes(cx.db.config) {
        return Err(saving::refusal());
    }
    if !cx.engine.has_replicas(cx.db.config, cx.db.monotonic) {
        return Err(CommandError::NOT_ENOUGH_REPLICAS);
    }
    Ok(())
}

/// Whether a command concerns the connection that it arrives on, so that requests which share none
/// cannot send it.
pub fn is_about_connection(command: &Spec) -> bool {
    command.has(command::OF_CONNECTION)
}

/// Whether any web page may make a browser send this command: it changes nothing, and it ends by
/// itself. A script that only reads may still never end.
pub fn may_be_sent_by_any_page(command: &Spec) -> bool {
    command.has(command::READONLY) && !command.has(command::SCRIPT | command::BLOCKING)
}
