//! The outside world, as the engine asks for it: connects the engine with the other modules of this
//! crate.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::time::Duration;

use config::{Action, Apply, ApplyError, Config, DirectiveId};
use engine::engine::Engine;
use engine::engine::storage::{AppendOnlyFile, Background, BackgroundJob, Loader, Snapshots};
use engine::files::append_only::{self, RewriteAnswer};
use engine::files::saving::{Accepted, Refusal, SaveFailed, SaveRequest};
use engine::host::{
    CertificateMetrics, ClusterControl, ClusterRequest, ConfigFile, CpuSeconds, Frequent, LogLevel,
    LongReads, MemoryMetrics, MemorySource, Migration, Migrations, Notify, Process, ProcessInfo,
    Shutdown, SlotMove, UsersFile, ViewRequest, ViewSource, Wake,
};
use engine::persistence::loading::{LoadFailed, Source};
use engine::session::attachment::Waiter;
use engine::session::client::Client;
use engine::session::pubsub::Kind;
use parking_lot::Mutex;
use resp::args::OwnedArguments;
use store::gate::StoppedWorld;

use crate::encryption;
use crate::files;
use crate::listen::Listening;
use crate::net::{Speaks, Wakers, Workers};
use crate::threads::background::BackgroundJobs;
use crate::threads::cluster::{self, ClusterThread};
use crate::threads::freeing::Freeing;
use crate::threads::moving::Movers;
use crate::threads::node_reader::NodeReader;
use crate::threads::slots::SlotMovers;
use crate::threads::views::{Keeper, Next};
use persist::aof::append_only::{AppendOnly, DeferredReplies};
use persist::config_file;
use persist::cuts::Cuts;
use persist::disk::Disk;
use persist::load::Load;
use persist::rdb::saver::Saver;
use process::daemon::OomScore;
use process::log::{Log, LogThread};
use process::memory;
use process::title::Title;
use process::{crash, descriptors, paths, system};

/// A request to stop the server.
pub struct StopRequest {
    /// How.
    pub request: Shutdown,
    /// The client that waits for it; it is answered only when the server goes on.
    pub client: Option<Waiter>,
    /// A signal asked for it.
    pub by_signal: bool,
    /// That signal was the service manager's.
    pub by_supervisor: bool,
}

/// See the module's text.
pub struct Outside {
    /// The log.
    pub log: Arc<Log>,
    /// How workers are reached.
    pub wakers: Arc<Wakers>,
    /// The workers, while they run.
    pub workers: Mutex<Option<Workers>>,
    /// The sockets that the server listens on.
    pub listening: Mutex<Listening>,
    /// What encrypts connections.
    pub active: Arc<tls::Active>,
    /// Where requests to stop go.
    pub stop: Sender<StopRequest>,
    /// The disk with the data files.
    pub disk: Arc<dyn Disk>,
    /// Who may read a cut.
    pub cuts: Arc<Cuts>,
    /// Saves data to files.
    pub saver: Arc<Saver>,
    /// The append-only file.
    pub append_only: Arc<AppendOnly>,
    /// The file that the server was configured from, as an absolute path.
    pub config_file: Option<PathBuf>,
    /// Facts about the process for INFO.
    pub facts: ProcessInfo,
    /// The process title.
    pub title: Title,
    /// The thread that frees.
    pub freeing: Freeing,
    /// The thread that writes queued lines of the log.
    pub log_thread: Mutex<Option<LogThread>>,
    /// The thread for work that a disk may make slow.
    pub background: BackgroundJobs,
    /// The thread that answers long reads of nodes.
    pub node_reader: NodeReader,
    /// The threads that move keys to other servers.
    pub movers: Movers,
    /// The threads that move slots to other servers.
    pub slot_movers: SlotMovers,
    /// The threads that ask databases.
    pub views: Keeper,
    /// The thread that makes the server a node of a cluster.
    pub cluster: ClusterThread,
    /// The directive at which a change of settings has failed: the next change undoes that one.
    pub failed: Mutex<Option<DirectiveId>>,
    /// The out-of-memory score.
    pub oom_score: OomScore,
}

impl Wake for Outside {
    fn wake(&self, client: &Client) {
        self.wakers.wake(client.worker.load(Relaxed), client.id);
    }
}

impl Notify for Outside {
    fn log(&self, level: LogLevel, line: &str) {
        self.log.write_for_client(level, line);
    }

    fn log_frequent(&self, kind: Frequent, level: LogLevel, line: &dyn Fn() -> String) {
        self.log.write_frequent(kind, level, line);
    }
}

impl MemorySource for Outside {
    fn drop_later(&self, garbage: Box<dyn Send>) {
        self.freeing.free_later(garbage);
    }

    fn used_memory(&self) -> usize {
        memory::publish();
        memory::used()
    }

    fn counted_memory(&self) -> usize {
        memory::publish();
        memory::counted()
    }

    fn memory_balance(&self) -> i64 {
        memory::balance()
    }

    fn retired_memory(&self) -> usize {
        store::table::retire::waiting_bytes()
    }

    fn memory(&self) -> MemoryMetrics {
        memory::metrics()
    }

    fn purge_memory(&self) {
        system::purge_allocator();
    }
}

impl ConfigFile for Outside {
    fn read_config_file(&self) -> Result<Vec<u8>, String> {
        let file = self.config_file.as_ref().ok_or("there is no configuration file")?;
        match std::fs::read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(|error| paths::reason(&error)),
        }
    }

    fn write_config_file(&self, text: &[u8]) -> Result<(), String> {
        let file = self.config_file.as_ref().ok_or("there is no configuration file")?;
        config_file::replace(file, text).map_err(|error| paths::reason(&error))
    }
}

impl UsersFile for Outside {
    fn read_users(&self, path: &[u8]) -> Result<Vec<u8>, String> {
        std::fs::read(paths::path(path)).map_err(|error| paths::reason(&error))
    }

    fn write_users(&self, path: &[u8], text: &[u8]) -> Result<(), String> {
        config_file::replace(paths::path(path), text).map_err(|error| paths::reason(&error))
    }
}

impl Process for Outside {
    fn cpu_seconds(&self) -> CpuSeconds {
        system::cpu_seconds()
    }

    fn listens_at(&self, encrypted: bool) -> Vec<String> {
        let speaks = if encrypted { Speaks::RESP_OVER_TLS } else { Speaks::RESP };
        self.listening.lock().words(speaks)
    }

    fn certificates(&self) -> Vec<CertificateMetrics> {
        let metrics = |tls::Expiry { kind, serial, not_after }| CertificateMetrics {
            kind,
            serial,
            not_after,
        };
        self.active.expiries().into_iter().map(metrics).collect()
    }

    fn process(&self) -> ProcessInfo {
        self.facts.clone()
    }

    fn shut_down(&self, request: Shutdown, client: Option<Waiter>) {
        // Sending fails only when the server is stopping already.
        let asked = StopRequest { request, client, by_signal: false, by_supervisor: false };
        let _ = self.stop.send(asked);
    }

    fn crash(&self, reason: &str) -> ! {
        crash::crash(reason)
    }
}

impl ViewSource for Outside {
    fn ask_view(&self, request: ViewRequest, waiter: Option<Waiter>) {
        self.views.ask(request, waiter);
    }
}

impl LongReads for Outside {
    fn list_nodes(&self, argv: OwnedArguments, waiter: Waiter, term: u64) {
        self.node_reader.add((argv, waiter, term));
    }
}

impl Migrations for Outside {
    fn move_slots(&self, slots: SlotMove, waiter: Waiter) {
        self.slot_movers.move_alone(slots, waiter);
    }

    fn migrate(&self, migration: Migration, waiter: Waiter) {
        self.movers.add(migration, waiter);
    }
}

impl ClusterControl for Outside {
    fn ask_cluster(&self, request: ClusterRequest, waiter: Waiter) {
        self.cluster.ask(request, waiter);
    }

    fn publish_to_cluster(&self, kind: Kind, channel: &[u8], message: &[u8]) {
        self.cluster.publish(kind, channel, message);
    }
}

impl Snapshots for Outside {
    fn save(&self, request: SaveRequest) -> Result<Accepted, Refusal> {
        self.saver.save(request, &self.saver)
    }

    fn save_standing(&self, engine: &Engine, stopped: &StoppedWorld<'_>) -> Result<(), SaveFailed> {
        self.saver.save_standing(engine, stopped)
    }

    fn note_emptied(&self, engine: &Engine, changes: u64, stopped: &StoppedWorld<'_>) -> bool {
        self.saver.note_emptied(engine, changes, stopped)
    }

    fn save_emptied(&self, waiter: Waiter) {
        let saver = Arc::clone(&self.saver);
        let job = move |engine: &Engine| {
            saver.save_emptied(engine);
            Vec::new()
        };
        self.run_in_background(waiter, Box::new(job));
    }
}

impl AppendOnlyFile for Outside {
    fn rewrite_append_only(&self, soon: bool) -> RewriteAnswer {
        self.append_only.rewrite(soon)
    }

    fn append_only(&self) -> append_only::Metrics {
        self.append_only.metrics()
    }

    fn reset_append_only_stats(&self) {
        self.append_only.reset_stats();
    }

    fn delay_append_only(&self, delay: Duration) {
        self.append_only.journal().set_write_delay(delay);
    }
}

impl Loader for Outside {
    fn load_data(
        &self,
        engine: &Engine,
        source: Source,
        stopped: &StoppedWorld<'_>,
    ) -> Result<(), LoadFailed> {
        // The files then have everything that was written. If they cannot, the load reports or
        // shows it.
        let _ = self.append_only.journal().flush();
        let _files = self.append_only.hold_files();
        Load::within(engine, Arc::clone(&self.disk), stopped).from(source).map_err(|error| {
            self.log.warning(format!("Loading failed: {error}"));
            LoadFailed
        })
    }
}

impl Background for Outside {
    fn run_in_background(&self, waiter: Waiter, job: BackgroundJob) {
        self.background.add((waiter, job));
    }
}

impl DeferredReplies for Wakers {
    fn note_progress(&self) {
        self.note_journal_progress();
    }

    fn note_failure(&self) {
        self.note_journal_failure();
    }
}

/// Why a directive does not take effect, for the client.
type Refused = String;

impl Apply for Outside {
    fn apply(
        &self,
        old: &Config,
        new: &mut Config,
        changed: &[DirectiveId],
    ) -> Result<(), ApplyError> {
        let changes = in_order(changed);
        let mut failed = self.failed.lock();
        if let Some(failed) = failed.take() {
            // What failed has undone itself, and what would have followed has not happened. Neither
            // were other views served, and the certificates are what they were.
            let done = changes.iter().take_while(|change| **change != failed);
            let done =
                done.filter(|change| !matches!(action_of(**change), Action::Views | Action::Tls));
            done.for_each(|&change| drop(self.apply_one(action_of(change), old, new)));
            return Ok(());
        }
        let (limit, mut views) = (descriptors::limit(), None);
        let encrypted_by = self.active.ends();
        for &directive in &changes {
            let applied = match action_of(directive) {
                Action::Views => self.read_views(new).map(|read| views = Some(read)),
                action => self.apply_one(action, old, new),
            };
            if let Err(message) = applied {
                let name = directive.name();
                descriptors::put_back(limit);
                self.active.replace(encrypted_by);
                self.log.warning(format!(
                    "Failed applying new configuration. Possibly related to new {name} setting. \
                     Restoring previous settings."
                ));
                *failed = Some(directive);
                return Err(ApplyError { directive, message });
            }
        }
        if let Some(views) = views {
            let file = paths::path(&new.views_file).display();
            let line = format!("Serving the views of views-file {file}: {}", views.count());
            self.views.replace(views);
            self.log.notice(line);
        }
        for note in config::notes(new) {
            if changed.contains(&note.directive) {
                self.log.notice(note.to_string());
            }
        }
        Ok(())
    }
}

impl Outside {
    /// Prepares the views that the file names now.
    fn read_views(&self, new: &Config) -> Result<Next, Refused> {
        let prepare = |views| self.views.prepare(views).map_err(|error| paths::reason(&error));
        Keeper::read(new).and_then(prepare).map_err(|error| {
            let file = paths::path(&new.views_file).display();
            self.log.warning(format!("The views are unchanged: views-file {file}: {error}"));
            // The rest may show details that only the operator may see.
            error.lines().next().unwrap_or_default().to_owned()
        })
    }

    fn apply_one(&self, action: Action, old: &Config, new: &mut Config) -> Result<(), Refused> {
        match action {
            // Views are read before, and served when everything else has taken effect.
            Action::None | Action::Views => {}
            Action::Tls => self.encrypt_anew(new)?,
            // What changes together does so with the one that comes first.
            action @ (Action::Ports | Action::Addresses) => {
                let takes_clients = new.tls_port != 0 || new.https_port != 0;
                if takes_clients && !self.active.takes_clients() {
                    self.encrypt_anew(new)?;
                }
                self.listen_again(old, new).ok_or(match action {
                    Action::Ports => "Unable to listen on this port. Check server logs.",
                    _ => "Failed to bind to specified addresses.",
                })?;
            }
            Action::Descriptors => self.make_room(old, new)?,
            Action::Directory => change_directory(new)?,
            Action::Title => self.title.show(new).ok_or("failed to set process title")?,
            Action::SyncTimes => self.append_only.journal().set_policy(new.appendfsync),
            Action::Timestamps => {
                self.append_only.journal().set_timestamps(new.aof_timestamp_enabled);
            }
            Action::OomScore => self.adjust_oom_score(new)?,
            Action::LogLevel => self.log.set_level(new),
            Action::CrashLog => crash::apply(new),
            Action::MemoryLimit => self.warn_about_maxmemory(new),
            Action::Etcd if new.cluster_enabled => {
                cluster::check_etcd(new)?;
                self.cluster.name_etcd();
            }
            Action::Etcd => {}
            Action::AppendOnly if new.appendonly => self.append_only.turn_on(new)?,
            Action::AppendOnly => self.append_only.turn_off(),
        }
        Ok(())
    }

    /// Has new connections go by the certificates, keys and settings as they are now.
    fn encrypt_anew(&self, new: &Config) -> Result<(), Refused> {
        if !encryption::is_wanted(new) {
            self.active.replace(None);
            return Ok(());
        }
        let ends = encryption::read(new).map_err(|error| {
            self.log.warning(error);
            // The rest may show details that only the operator may see.
            "Unable to update TLS configuration. Check server logs.".to_owned()
        })?;
        self.active.replace(Some(Arc::new(ends)));
        Ok(())
    }

    /// Reads certificates and keys again, because the operator asks for it by a signal. If that
    /// fails, those that were read before stay.
    pub fn reload_certificates(&self, config: &Config) {
        match self.encrypt_anew(config) {
            Ok(()) if self.active.is_on() => self.log.notice("Certificates and keys read again"),
            Ok(()) => self.log.notice("There are no certificates to be read again"),
            Err(_) => self.log.warning("Certificates and keys are unchanged"),
        }
    }

    /// Listens where the new settings say. The process title names the first address.
    fn listen_again(&self, old: &Config, new: &Config) -> Option<()> {
        let give = |handles| {
            if let Some(workers) = &*self.workers.lock() {
                workers.listen(handles);
            }
        };
        if self.listening.lock().change(old, new, &self.log, &give).is_err() {
            self.log.warning("Failed to bind");
            return None;
        }
        self.title.show(new).or_else(|| self.title.show(old))
    }

    fn make_room(&self, old: &Config, new: &Config) -> Result<(), Refused> {
        if new.maxclients <= old.maxclients {
            return Ok(());
        }
        let granted = descriptors::make_room(new.maxclients, self.facts.workers);
        granted.warnings.iter().for_each(|line| self.log.warning(line));
        if granted.clients == new.maxclients {
            return Ok(());
        }
        Err(format!(
            "The operating system is not able to handle the specified number of clients, try with \
             {}",
            granted.clients
        ))
    }

    fn warn_about_maxmemory(&self, new: &Config) {
        let (limit, used) = (new.maxmemory, memory::used() as u64);
        if limit != 0 && limit < used {
            self.log.warning(format!(
                "WARNING: the new maxmemory value set via CONFIG SET ({limit}) is smaller than the \
                 current memory usage ({used}). Keys will be evicted or writes refused, \
                 depending on maxmemory-policy."
            ));
        }
    }

    fn adjust_oom_score(&self, new: &Config) -> Result<(), Refused> {
        self.oom_score.apply(new).map_err(|error| {
            self.log.warning(format!("Unable to write oom_score_adj: {}", paths::reason(&error)));
            "Failed to apply new oom_score_adj configuration, check server logs.".to_owned()
        })
    }
}

fn action_of(changed: DirectiveId) -> Action {
    changed.directive().action()
}

/// The directives in the order in which they take effect.
fn in_order(changed: &[DirectiveId]) -> Vec<DirectiveId> {
    let mut ordered = Vec::with_capacity(changed.len());
    let (mut listens, mut encrypts) = (false, false);
    for &directive in changed {
        // What changes together does so with whichever comes first.
        let is_done = match action_of(directive) {
            Action::Ports | Action::Addresses => std::mem::replace(&mut listens, true),
            Action::Tls => std::mem::replace(&mut encrypts, true),
            _ => false,
        };
        if !is_done {
            ordered.push(directive);
        }
    }
    ordered.sort_by_key(|&directive| match action_of(directive) {
        // A relative path is below the new directory.
        Action::Directory => -2,
        // Whoever connects to a new port needs them.
        Action::Tls => -1,
        Action::Views => 1,
        // After everything else that may fail: what is written while the append-only file is off is
        // not in it when it is on again.
        Action::AppendOnly => 2,
        _ => 0,
    });
    ordered
}

fn change_directory(new: &mut Config) -> Result<(), Refused> {
    let directory = config::LoadEnvironment::directory(&files::ConfigFiles, &new.dir)?;
    std::env::set_current_dir(paths::path(&directory)).map_err(|error| paths::reason(&error))?;
    new.dir = directory;
    Ok(())
}
