//! The outside world, as the engine asks for it: connects the engine with the other modules of this
//! crate.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use config::{Apply, ApplyError, Config, DirectiveId};
use engine::engine::{AppendOnlyFile, Aside, Engine, Errand, Loader, Snapshots};
use engine::host::{
    ConfigFile, CpuSeconds, LogLevel, LongReads, MemoryFigures, MemorySource, Process,
    ProcessFacts, Shutdown, Tell, ViewRequest, ViewSource,
};
use engine::persistence::append_only::{self, RewriteAnswer};
use engine::persistence::loading::{LoadFailed, Source};
use engine::persistence::saving::{Accepted, Refusal, SaveFailed, SaveRequest};
use engine::session::client::Client;
use engine::wait::waiting::Waiter;
use parking_lot::Mutex;
use resp::args::OwnedArguments;
use store::gate::Closed;

use crate::errands::Errands;
use crate::freeing::Freeing;
use crate::listen::Listening;
use crate::listings::Listings;
use crate::net::{Wakers, Workers};
use crate::persist::aof::append_only::{AppendOnly, Waiting};
use crate::persist::config_file;
use crate::persist::cuts::Cuts;
use crate::persist::disk::Disk;
use crate::persist::load::Load;
use crate::persist::rdb::saver::Saver;
use crate::process::daemon::OomScore;
use crate::process::log::Log;
use crate::process::title::Title;
use crate::process::{crash, descriptors, paths, system};
use crate::views::Keeper;
use crate::{files, memory};

/// A request to stop the server.
pub struct StopRequest {
    /// How.
    pub request: Shutdown,
    /// The client that waits for it; it is answered only when the server goes on.
    pub client: Option<Waiter>,
    /// A signal asked for it.
    pub by_signal: bool,
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
    pub facts: ProcessFacts,
    /// The process title.
    pub title: Title,
    /// The thread that frees.
    pub freeing: Freeing,
    /// The thread for work that a disk may make slow.
    pub errands: Errands,
    /// The thread that answers long reads of nodes.
    pub listings: Listings,
    /// The threads that ask databases.
    pub views: Keeper,
    /// The directive at which a change of settings has failed: the next change undoes that one.
    pub failed: Mutex<Option<DirectiveId>>,
    /// The out-of-memory score.
    pub oom_score: OomScore,
}

impl Tell for Outside {
    fn wake(&self, client: &Client) {
        self.wakers.wake(client.worker, client.id);
    }

    fn log(&self, level: LogLevel, line: &str) {
        self.log.write(level, line);
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

    fn memory(&self) -> MemoryFigures {
        memory::figures()
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

impl Process for Outside {
    fn cpu_seconds(&self) -> CpuSeconds {
        system::cpu_seconds()
    }

    fn listens_at(&self) -> Vec<String> {
        self.listening.lock().words()
    }

    fn process(&self) -> ProcessFacts {
        self.facts.clone()
    }

    fn shut_down(&self, request: Shutdown, client: Option<Waiter>) {
        // Sending fails only when the server is stopping already.
        let _ = self.stop.send(StopRequest { request, client, by_signal: false });
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
    fn list_nodes(&self, argv: OwnedArguments, waiter: Waiter) {
        self.listings.add((argv, waiter));
    }
}

impl Snapshots for Outside {
    fn save(&self, request: SaveRequest) -> Result<Accepted, Refusal> {
        self.saver.save(request, &self.saver)
    }

    fn save_standing(&self, engine: &Engine, closed: &Closed<'_>) -> Result<(), SaveFailed> {
        self.saver.save_standing(engine, closed)
    }

    fn note_emptied(&self, engine: &Engine, changes: u64, closed: &Closed<'_>) -> bool {
        self.saver.note_emptied(engine, changes, closed)
    }

    fn save_emptied(&self, waiter: Waiter) {
        let saver = Arc::clone(&self.saver);
        let errand = move |engine: &Engine| {
            saver.save_emptied(engine);
            Vec::new()
        };
        self.do_aside(waiter, Box::new(errand));
    }
}

impl AppendOnlyFile for Outside {
    fn rewrite_append_only(&self, soon: bool) -> RewriteAnswer {
        self.append_only.rewrite(soon)
    }

    fn append_only(&self) -> append_only::Figures {
        self.append_only.figures()
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
        closed: &Closed<'_>,
    ) -> Result<(), LoadFailed> {
        // The files then have everything that was written. If they cannot, the load reports or shows
        // it.
        let _ = self.append_only.journal().flush();
        let _files = self.append_only.hold_files();
        Load::within(engine, Arc::clone(&self.disk), closed).from(source).map_err(|error| {
            self.log.warning(format!("Loading failed: {error}"));
            LoadFailed
        })
    }
}

impl Aside for Outside {
    fn do_aside(&self, waiter: Waiter, errand: Errand) {
        self.errands.add((waiter, errand));
    }
}

impl Waiting for Wakers {
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
            // What failed has undone itself, and what would have followed has not happened.
            let done = changes.iter().take_while(|change| **change != failed);
            done.for_each(|&change| drop(self.apply_one(change.name(), old, new)));
            return Ok(());
        }
        for &directive in &changes {
            if let Err(message) = self.apply_one(directive.name(), old, new) {
                let name = directive.name();
                self.log.warning(format!(
                    "Failed applying new configuration. Possibly related to new {name} setting. \
                     Restoring previous settings."
                ));
                *failed = Some(directive);
                return Err(ApplyError { directive, message });
            }
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
    /// Serves the views that the file names now.
    fn read_views(&self, new: &Config) -> Result<(), Refused> {
        let views = Keeper::read(new).and_then(|views| {
            let count = views.views.len();
            self.views.replace(views).map_err(|error| paths::reason(&error))?;
            Ok(count)
        });
        let file = paths::path(&new.views_file).display();
        match views {
            Ok(count) => {
                self.log.notice(format!("Serving the views of views-file {file}: {count}"));
                Ok(())
            }
            Err(error) => {
                self.log.warning(format!("The views are unchanged: views-file {file}: {error}"));
                // The rest may show details that only the operator may see.
                Err(error.lines().next().unwrap_or_default().to_owned())
            }
        }
    }

    fn apply_one(&self, name: &str, old: &Config, new: &mut Config) -> Result<(), Refused> {
        match name {
            "port" | "http-port" => self
                .listen_again(old, new)
                .ok_or_else(|| "Unable to listen on this port. Check server logs.".to_owned()),
            "bind" => self
                .listen_again(old, new)
                .ok_or_else(|| "Failed to bind to specified addresses.".to_owned()),
            "maxclients" => self.make_room(old, new),
            "dir" => change_directory(new),
            "proc-title-template" => {
                self.title.show(new).ok_or_else(|| "failed to set process title".to_owned())
            }
            "appendonly" | "appendfsync" | "aof-timestamp-enabled" => {
                self.append_only.apply(name, new)
            }
            "oom-score-adj" | "oom-score-adj-values" => self.adjust_oom_score(new),
            "views-file" => self.read_views(new),
            _ => {
                self.apply_what_cannot_fail(name, new);
                Ok(())
            }
        }
    }

    fn apply_what_cannot_fail(&self, name: &str, new: &Config) {
        match name {
            "loglevel" => self.log.set_level(new),
            "crash-log-enabled" | "hide-user-data-from-log" => crash::apply(new),
            "maxmemory" => self.warn_about_maxmemory(new),
            _ => {}
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

/// The directives in the order in which they take effect.
fn in_order(changed: &[DirectiveId]) -> Vec<DirectiveId> {
    let (mut ordered, mut listens) = (Vec::with_capacity(changed.len()), false);
    for &directive in changed {
        // Ports and addresses change together, whichever comes first.
        let addresses = matches!(directive.name(), "port" | "http-port" | "bind");
        if !addresses || !std::mem::replace(&mut listens, true) {
            ordered.push(directive);
        }
    }
    ordered.sort_by_key(|directive| match directive.name() {
        // After everything else that may fail: what is written while the append-only file is off is not
        // in it when it is on again.
        "appendonly" => 1,
        // The last one, so that no view is served for a moment that is then undone. A relative path is
        // below the new directory.
        "views-file" => 2,
        _ => 0,
    });
    ordered
}

fn change_directory(new: &mut Config) -> Result<(), Refused> {
    let directory = config::Host::directory(&files::ConfigFiles, &new.dir)?;
    std::env::set_current_dir(paths::path(&directory)).map_err(|error| paths::reason(&error))?;
    new.dir = directory;
    Ok(())
}
