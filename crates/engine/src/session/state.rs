//! A connection as its worker sees it: the state that earlier commands on it have set.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits;
use hashbrown::HashSet;
use resp::args::OwnedArguments;
use resp::output::Output;

use crate::command::{RowId, Spec};
use crate::session::attachment::Waiter;
use crate::session::choice::{Durability, Owed, ReadAfter};
use crate::session::client::{Client, flag};
use crate::session::pubsub::Kind;
use crate::session::replicas::introduction::{Introduction, SyncRequest};
use crate::session::slot_moves::Importing;
use crate::session::user::User;
use crate::session::watcher::Watch;
use config::Config;

/// A command that waits for EXEC.
pub struct QueuedCommand {
    /// The place of its row.
    pub row: RowId,
    /// The command.
    pub command: &'static Spec,
    /// Its arguments.
    pub argv: OwnedArguments,
}

/// A transaction that is being queued.
#[derive(Default)]
pub struct Transaction {
    /// The queued commands.
    pub commands: Vec<QueuedCommand>,
    /// Bytes of the commands.
    pub bytes: usize,
    /// A command was refused: EXEC will be too.
    pub aborted: bool,
    /// The database that its last queued SELECT names.
    pub selected: Option<usize>,
}

/// CLIENT REPLY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyMode {
    /// Replies are sent.
    On,
    /// Replies are not sent.
    Off,
    /// The reply of the next command is not sent.
    SkipNext,
    /// The reply of this command is not sent.
    Skip,
}

/// The subscriptions of a client.
#[derive(Default)]
pub struct Subscriptions {
    /// SUBSCRIBE.
    pub channels: HashSet<Vec<u8>>,
    /// PSUBSCRIBE.
    pub patterns: HashSet<Vec<u8>>,
    /// SSUBSCRIBE.
    pub shard_channels: HashSet<Vec<u8>>,
    /// Bytes of memory that the names take.
    bytes: usize,
}

/// Bytes of memory that a name takes besides itself, here and in the table of publishers, with the
/// table of its subscribers there. Measured with a hundred thousand names.
const NAME_FRAME: usize = 240;

/// Bytes of memory that a name takes.
fn memory_of(name: &[u8]) -> usize {
    2 * name.len() + NAME_FRAME
}

impl Subscriptions {
    /// Adds a name. Whether it is new.
    pub fn add(&mut self, kind: Kind, name: &[u8]) -> bool {
        let new = self.of(kind).insert(name.to_vec());
        if new {
            self.bytes += memory_of(name);
        }
        new
    }

    /// Removes a name. Whether it was there.
    pub fn remove(&mut self, kind: Kind, name: &[u8]) -> bool {
        let removed = self.of(kind).remove(name);
        if removed {
            self.bytes -= memory_of(name);
        }
        removed
    }

    /// The names of one kind.
    pub fn of(&mut self, kind: Kind) -> &mut HashSet<Vec<u8>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shard_channels,
        }
    }

    /// Channels and patterns together: the number in replies to SUBSCRIBE.
    pub fn count(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// Whether there is any, shard channels included.
    pub fn any(&self) -> bool {
        self.count() + self.shard_channels.len() > 0
    }
}

/// The keys that KEYS has found before it met a locked slot, for the next attempt.
pub struct KeysSoFar {
    /// Where to continue, as a cursor of SCAN.
    pub cursor: u64,
    /// The keys as they are sent.
    pub reply: Vec<u8>,
    /// How many they are.
    pub count: usize,
}

/// See the module's text.
pub struct Session {
    /// The part that others see.
    pub client: Arc<Client>,
    /// The selected database.
    pub database: usize,
    /// Whether replies are RESP3.
    pub resp3: bool,
    /// Who it acts for.
    pub user: User,
    /// MULTI.
    pub transaction: Option<Box<Transaction>>,
    /// WATCH.
    pub watch: Option<Box<Watch>>,
    /// Subscriptions; absent until the first.
    pub subscriptions: Option<Box<Subscriptions>>,
    /// CLIENT REPLY.
    pub reply_mode: ReplyMode,
    /// The reply that is being written consists of messages, which CLIENT REPLY does not affect.
    pub pushes: bool,
    /// CLIENT NO-TOUCH.
    pub no_touch: bool,
    /// CLIENT IMPORT-SOURCE.
    pub import_source: bool,
    /// READONLY: a replica serves its reads.
    pub reads_from_replica: bool,
    /// MONITOR.
    pub monitor: bool,
    /// It replays commands from a file: see [`crate::persistence::loading`].
    pub replays: bool,
    /// It runs the commands of the primary, over the link of this term: see
    /// [`crate::replication`].
    pub link: Option<u64>,
    /// The journal's offset that the replies so far depend on: see
    /// [`crate::persistence::durability`].
    pub depends_on: u64,
    /// The journal's offset after its last write; 0 before the first.
    pub write_offset: u64,
    /// CLIENT DURABILITY.
    pub durability: Durability,
    /// What the reply of its last command waits for, as long as nobody has taken it.
    pub owed: Option<Owed>,
    /// Replies of earlier commands are held until they are as durable as the client has chosen.
    pub holds_replies: bool,
    /// CLIENT READAFTER, until the server has applied as much.
    pub read_after: Option<Box<ReadAfter>>,
    /// Its next command waits for the next primary of its slot, if that has none: until this
    /// millisecond of the monotonic clock.
    pub primary_awaited_until: Option<u64>,
    /// CLIENT PAUSE suspends its next command.
    pub paused: bool,
    /// How far its next command has come already: KEYS, after it found a slot locked.
    pub keys_so_far: Option<Box<KeysSoFar>>,
    /// Its commands are called by a script.
    pub(crate) script: bool,
    /// The requirements for the next attempt of its next command, which runs a script.
    pub script_needs: Option<ScriptNeeds>,
    /// How often that script has begun in vain.
    pub(crate) script_tries: u32,
    /// What it has said of itself as a replica: REPLCONF.
    pub introduction: Option<Box<Introduction>>,
    /// It brings slots from another server.
    pub import: Option<Box<Importing>>,
    /// It becomes a replica: another thread takes its connection over.
    pub sync_request: Option<Box<SyncRequest>>,
    /// Close when the output is sent.
    pub close: bool,
}

/// The requirements of a script after an attempt that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScriptNeeds {
    /// All slots, from the start.
    AllSlots,
    /// A stopped world.
    StoppedWorld,
}

impl Session {
    /// A fresh connection.
    pub fn new(client: Arc<Client>, user: User) -> Session {
        Session {
            client,
            database: 0,
            resp3: false,
            user,
            transaction: None,
            watch: None,
            subscriptions: None,
            reply_mode: ReplyMode::On,
            pushes: false,
            no_touch: false,
            import_source: false,
            reads_from_replica: false,
            monitor: false,
            replays: false,
            link: None,
            depends_on: 0,
            write_offset: 0,
            durability: Durability::Default,
            owed: None,
            holds_replies: false,
            read_after: None,
            primary_awaited_until: None,
            paused: false,
            keys_so_far: None,
            script: false,
            script_needs: None,
            script_tries: 0,
            introduction: None,
            import: None,
            sync_request: None,
            close: false,
        }
    }

    /// A session of the server itself. It is not a client, and no command shows it.
    pub fn internal() -> Session {
        Session::internal_for(String::new())
    }

    /// The same, for whoever is at this address: the primary of a replica.
    pub fn internal_for(address: String) -> Session {
        let client = Client::new(0, 0, address, String::new(), 0, base::clock::monotonic_ms());
        Session::new(Arc::new(client), User::server())
    }

    /// Stands in for a connection whose command is served: that is with another worker, and the
    /// command needs only this part of it.
    pub(crate) fn of_waiter(waiter: &Waiter) -> Session {
        let mut session = Session::new(Arc::clone(&waiter.client), waiter.wait.user.clone());
        session.resp3 = waiter.wait.resp3;
        session.database = waiter.wait.database;
        session
    }

    /// Stands in for a connection while a script calls commands.
    pub(crate) fn of_script(caller: &Session) -> Session {
        let mut session = Session::new(Arc::clone(&caller.client), caller.user.clone());
        session.database = caller.database;
        session.no_touch = caller.no_touch;
        session.import_source = caller.import_source;
        session.reads_from_replica = caller.reads_from_replica;
        session.replays = caller.replays;
        session.link = caller.link;
        session.script = true;
        session
    }

    /// Whether what it runs was carried out before, here or by another server. It is carried out
    /// as it was, whatever the settings of this server allow its clients.
    #[inline]
    pub fn repeats(&self) -> bool {
        self.replays || self.link.is_some() || self.import.is_some()
    }

    /// Whether it is a link of another node of the cluster, which has said so.
    pub fn speaks_for_node(&self) -> bool {
        self.introduction.as_ref().is_some_and(|own| own.node.is_some())
    }

    /// The command that runs a script has ended, in one way or another.
    #[inline]
    pub(crate) fn forget_script_needs(&mut self) {
        self.script_needs = None;
        self.script_tries = 0;
    }

    /// It brings these slots from another server from now on, or none any more.
    pub fn bring_slots(&mut self, import: Option<Box<Importing>>) {
        self.client.set_flag(flag::BRINGS_SLOTS, import.is_some());
        self.import = import;
    }

    /// It acts for another user from now on, and for no node of a cluster: it brings no slots any
    /// more.
    pub fn set_user(&mut self, user: User) {
        self.bring_slots(None);
        if self.speaks_for_node()
            && let Some(own) = &mut self.introduction
        {
            own.node = None;
            self.client.set_flag(flag::SPEAKS_FOR_NODE, false);
        }
        if user.name() != self.user.name() {
            self.client.names.lock().user = Some(user.name().into());
        }
        self.user = user;
    }

    /// Selects a database. A script selects it for itself alone.
    pub fn select(&mut self, database: usize) {
        self.database = database;
        if self.script {
            return;
        }
        self.client.database.store(database as u32, Relaxed);
    }

    /// The database in which a command runs that comes now; if it is queued, as far as that is
    /// known when it is queued.
    #[inline]
    pub(crate) fn database_of_next(&self) -> usize {
        let transaction = self.transaction.as_ref().filter(|own| !own.aborted);
        let selected = transaction.and_then(|own| own.selected);
        selected.unwrap_or(self.database)
    }

    /// Chooses the protocol.
    pub fn set_resp3(&mut self, resp3: bool) {
        self.resp3 = resp3;
        self.client.protocol.store(if resp3 { 3 } else { 2 }, Relaxed);
    }

    /// CLIENT NO-TOUCH.
    pub fn set_no_touch(&mut self, on: bool) {
        self.no_touch = on;
        self.client.set_flag(flag::NO_TOUCH, on);
    }

    /// READONLY, and READWRITE.
    pub fn set_reads_from_replica(&mut self, on: bool) {
        self.reads_from_replica = on;
        self.client.set_flag(flag::READS_FROM_REPLICA, on);
    }

    /// CLIENT IMPORT-SOURCE.
    pub fn set_import_source(&mut self, on: bool) {
        self.import_source = on;
        self.client.set_flag(flag::IMPORT_SOURCE, on);
    }

    /// The subscriptions, made at first use.
    pub fn subscriptions_mut(&mut self) -> &mut Subscriptions {
        self.subscriptions.get_or_insert_default()
    }

    /// Whether only commands about subscriptions are allowed: true for RESP2 clients with
    /// subscriptions.
    pub fn in_pubsub_mode(&self) -> bool {
        !self.resp3 && self.subscriptions.as_ref().is_some_and(|own| own.any())
    }

    /// Whether replies are sent, or CLIENT REPLY suppresses them.
    pub fn hears_replies(&self) -> bool {
        matches!(self.reply_mode, ReplyMode::On | ReplyMode::SkipNext)
    }

    /// Whether no earlier command of the connection changes the way of the next one: see
    /// `run/fast_path.rs`. The stream has had so many breaks, and the users are of this generation.
    #[inline]
    pub(crate) fn is_usual(&self, breaks: u64, users: u64) -> bool {
        let state = self.transaction.is_some()
            || self.subscriptions.is_some()
            || self.script_needs.is_some()
            || self.monitor
            || self.replays
            || self.paused
            || self.pushes
            || self.import_source
            || self.durability.holds_replies()
            || self.read_after.as_ref().is_some_and(|own| own.is_open(breaks));
        !state && self.user.is_current(users) && self.reply_mode == ReplyMode::On
    }

    /// Whether data that is new enough is not there yet, as far as the connection knows.
    pub fn waits_to_read(&self) -> bool {
        self.read_after.as_ref().is_some_and(|own| own.reached.is_none())
    }

    /// A reply has ended. Returns whether it is sent; then CLIENT REPLY SKIP has had its effect.
    pub fn end_reply(&mut self) -> bool {
        let (heard, next) = match self.reply_mode {
            ReplyMode::On => (true, ReplyMode::On),
            ReplyMode::Off => (false, ReplyMode::Off),
            ReplyMode::SkipNext => (true, ReplyMode::Skip),
            ReplyMode::Skip => (false, ReplyMode::On),
        };
        self.reply_mode = next;
        std::mem::take(&mut self.pushes) || heard
    }

    /// Bounds the output to the limit of its class of clients, and lets publishers know. Must be
    /// called when the settings or the class may have changed.
    pub fn limit_output(&self, config: &Config, output: &mut Output) {
        let subscribed = self.subscriptions.as_ref().is_some_and(|own| own.any());
        let limits = &config.client_output_buffer_limits;
        let class = if subscribed { limits.pubsub } else { limits.normal };
        let limit = match usize::try_from(class.hard_bytes) {
            _ if !self.user.is_admitted() => limits::UNAUTHENTICATED_OUTPUT,
            Ok(0) | Err(_) => usize::MAX,
            Ok(limit) => limit,
        };
        output.set_limit(limit);
        if self.client.output_limit.load(Relaxed) != limit {
            self.client.output_limit.store(limit, Relaxed);
        }
    }

    /// Marks the client as blocked or not, for CLIENT LIST.
    pub(crate) fn show_blocked(&self, blocked: bool) {
        self.client.set_flag(flag::BLOCKED, blocked);
    }

    /// Shows the state of MULTI and of subscriptions to other clients.
    pub fn publish_state(&self) {
        let client = &self.client;
        let transaction = self.transaction.as_deref();
        let queued = transaction.map_or(0, |own| own.commands.len() as u32 + 1);
        client.queued.store(queued, Relaxed);
        client.queued_bytes.store(transaction.map_or(0, |own| own.bytes), Relaxed);
        client.set_flag(flag::MULTI, transaction.is_some());
        let own = self.subscriptions.as_deref();
        client.channels.store(own.map_or(0, |own| own.channels.len() as u32), Relaxed);
        client.patterns.store(own.map_or(0, |own| own.patterns.len() as u32), Relaxed);
        client.shard_channels.store(own.map_or(0, |own| own.shard_channels.len() as u32), Relaxed);
        client.subscription_bytes.store(own.map_or(0, |own| own.bytes), Relaxed);
        client.set_flag(flag::PUBSUB, own.is_some_and(Subscriptions::any));
        client.set_flag(flag::MONITOR, self.monitor);
    }
}
