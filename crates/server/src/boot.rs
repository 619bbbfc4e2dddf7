//! The start and the stop of a server, each a list of steps in order.

use std::cell::{Cell, OnceCell};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use config::{Config, Invocation, LoadError, PrimaryAddress, Provided, ShutdownOptions};
use engine::engine::Engine;
use engine::host::{ProcessInfo, Shutdown};
use engine::journal::backlog::Position;
use engine::session::replicas::Replica;
use parking_lot::Mutex;
use views::Views;

use crate::credentials::Credentials;
use crate::encryption;
use crate::files::ConfigFiles;
use crate::host::{Outside, StopRequest};
use crate::listen::{Inherited, Listening, NotListening};
use crate::net::{ChangeEvents, Speaks, Wakers, Workers};
use crate::primary::ReplicaThread;
use crate::primary::term::Means;
use crate::threads::changes::ChangeDelivery;
use crate::threads::cluster::kept::KeptFile;
use crate::threads::cluster::{self, ClusterThread};
use crate::threads::cron::Cron;
use crate::threads::freeing::Freeing;
use crate::threads::moving::Movers;
use crate::threads::slots::SlotMovers;
use crate::threads::supervision::Supervision;
use crate::threads::views::Keeper;
use crate::threads::{background, node_reader};
use crate::users;
use crate::watched_files::{SecretFile, WatchedFiles};
use persist::aof::append_only::AppendOnly;
use persist::cuts::{Cuts, Recall};
use persist::disk::{Disk, RealDisk};
use persist::load::{self, Load};
use persist::rdb::saver::Saver;
use process::announce::{Served, announce};
use process::daemon::{self, OomScore, PidFile};
use process::log::Log;
use process::memory;
use process::paths::{path, reason};
use process::signal::{self, Caught};
use process::supervisor::{self, Supervisor};
use process::system::TitleArea;
use process::title::Title;
use process::{crash, descriptors, log, permissions, thread};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bytes of data that are loaded before clients are accepted: as many as Redis reads before it
/// looks at its sockets.
const LOADED_BEFORE_CLIENTS: u64 = 2 * 1024 * 1024;
/// Between two looks at the replicas that a stop waits for.
const REPLICAS_PAUSE: Duration = Duration::from_millis(50);
/// Milliseconds for which clients wait at most: a slow disk must not leave them without an answer.
const LOADING_BEFORE_CLIENTS_MS: u64 = 1000;

/// What an operator reads who has said neither that there is a password nor that there is none.
const HOW_OTHERS_COME_IN: &str = "There is no password, so that all clients of other machines would \
    be refused. Set one with REDIS_PASSWORD, REDIS_PASSWORD_FILE or --requirepass, or users with an \
    aclfile. Where nobody can reach this server who may not, say ALLOW_EMPTY_PASSWORD=yes or \
    --protected-mode no. Or let only this machine in with --bind 127.0.0.1. Exiting.";

/// Why the server did not start. The reason was written to the log or to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// How a server is started.
#[derive(Default)]
pub struct Start {
    /// The name of the program.
    pub program: Vec<u8>,
    /// Arguments as for `redis-server`: a configuration file, options, `-`.
    pub arguments: Vec<Vec<u8>>,
    /// Settings that a configuration file changes.
    pub defaults: Vec<Provided>,
    /// Settings that change those of a configuration file, besides the secrets that the service
    /// manager hands over.
    pub provided: Vec<Provided>,
    /// Other machines shall reach it: it does not start while all of them would be refused because
    /// nobody has said how they come in.
    pub is_public: bool,
    /// Files whose text is the value of a setting. With a list, also an empty one, the server
    /// looks whether these files, and those of certificates and users, were replaced.
    pub watched: Option<Vec<SecretFile>>,
}

/// Serves until the server is told to stop.
///
/// # Errors
/// The server cannot start.
pub fn serve(start: Start) -> Result<(), Failed> {
    let Start { program, arguments, defaults, provided, is_public, watched } = start;
    permissions::choose();
    let Configured { config, config_file, unknown_credentials } =
        configure(&arguments, (&defaults, provided)).map_err(|error| complain(&error))?;
    let log = open_log(&config)?;
    let supervisor = supervisor::find(&config, &log);
    if is_daemon(&config, supervisor) {
        daemon::daemonize().map_err(|error| {
            log.warning(format!("Cannot go into the background: {}", reason(&error)));
            Failed
        })?;
    }
    crash::install(Arc::clone(&log), &config, command_line(&program, &arguments));
    signal::prepare();
    greet(&config, &log);
    for name in unknown_credentials {
        log.notice(format!("The credential {name} is no setting's"));
    }
    let surroundings = (supervisor, is_public);
    let served =
        Running::start(config, config_file, &program, surroundings, &log).and_then(|running| {
            running.load()?;
            running.watch_files(watched)?;
            running.wait();
            running.stop();
            Ok(())
        });
    // Lines about a start that has failed.
    log.drain();
    served
}

/// Whether the server should go into the background: a supervisor waits for the process that it has
/// started.
fn is_daemon(config: &Config, supervisor: Option<Supervisor>) -> bool {
    config.daemonize && supervisor.is_none()
}

/// A configuration, from all its sources.
struct Configured {
    config: Config,
    /// The absolute path of its file.
    config_file: Option<PathBuf>,
    /// Names of credentials that no directive has.
    unknown_credentials: Vec<String>,
}

/// Reads the configuration, and goes to its directory.
fn configure(
    arguments: &[Vec<u8>],
    (defaults, mut provided): (&[Provided], Vec<Provided>),
) -> Result<Configured, LoadError> {
    let failed = |message| LoadError { location: None, message };
    let invocation = Invocation::parse(arguments);
    let mut stdin = Vec::new();
    if invocation.reads_stdin {
        io::Read::read_to_end(&mut io::stdin().lock(), &mut stdin)
            .map_err(|error| failed(format!("Standard input: {}", reason(&error))))?;
    }
    let credentials = Credentials::read()?;
    provided.extend(credentials.settings);
    let config = config::load(&invocation, (defaults, &provided), &stdin, &ConfigFiles)?;
    let file = invocation.config_file.map(|file| path(&file).to_owned());
    let file = file.map(|file| std::path::absolute(&file).unwrap_or(file));
    std::env::set_current_dir(path(&config.dir)).map_err(|error| {
        let directory = String::from_utf8_lossy(&config.dir);
        failed(format!("Can't chdir to '{directory}': {}", reason(&error)))
    })?;
    Ok(Configured { config, config_file: file, unknown_credentials: credentials.others })
}

fn open_log(config: &Config) -> Result<Arc<Log>, Failed> {
    Log::open(config).map(Arc::new).map_err(|error| {
        let message = format!("Can't open the log file: {}", reason(&error));
        complain(&LoadError { location: None, message })
    })
}

/// Tells the user at the terminal; there is no log yet.
fn complain(error: &LoadError) -> Failed {
    // If this fails, nobody else can be told.
    let text = format!("\n{error}\n");
    let _ = io::stderr().write_all(log::complaint(&text).as_bytes());
    Failed
}

fn command_line(program: &[u8], arguments: &[Vec<u8>]) -> String {
    let words: Vec<_> = arguments.iter().map(|word| String::from_utf8_lossy(word)).collect();
    format!("{} serve {}", String::from_utf8_lossy(program), words.join(" "))
}

fn greet(config: &Config, log: &Log) {
    let pid = std::process::id();
    log.warning("Dunlin is starting");
    log.warning(format!("Dunlin version={VERSION}, bits=64, pid={pid}, just started"));
    log.warning("Configuration loaded");
    for note in config::notes(config) {
        log.notice(note.to_string());
    }
}

/// What the process sets up with the system before it has threads.
struct Surroundings {
    supervisor: Option<Supervisor>,
    title: Title,
    oom_score: OomScore,
    views: Views,
}

impl Surroundings {
    /// The server can serve without any of it: failures are logged.
    fn arrange(
        config: &Config,
        program: &[u8],
        config_file: Option<&Path>,
        supervisor: Option<Supervisor>,
        views: Views,
        log: &Log,
    ) -> Surroundings {
        let area = if config.set_proc_title { TitleArea::claim() } else { None };
        let config_file = config_file.map_or(&b""[..], |file| file.as_os_str().as_bytes());
        let title = Title::new(area, program, config_file);
        if title.show(config).is_none() {
            log.warning("The process title is unchanged: its template has no meaning here");
        }
        let oom_score = OomScore::read();
        if let Err(error) = oom_score.apply(config) {
            log.warning(format!("Unable to write oom_score_adj: {}", reason(&error)));
        }
        daemon::apply_huge_pages(config, log);
        Surroundings { supervisor, title, oom_score, views }
    }
}

/// A server between start and stop.
struct Running {
    engine: Arc<Engine>,
    outside: Arc<Outside>,
    cron: Cron,
    change_delivery: ChangeDelivery,
    /// Follows the primary. Started when the data of the files is there.
    replica: OnceCell<ReplicaThread>,
    /// Started when the data is there, in a container.
    watched_files: OnceCell<WatchedFiles>,
    /// What a node of a cluster knows after a start.
    kept: Cell<Option<KeptFile>>,
    /// Written when the files of the data are this server's.
    pid_file: OnceCell<PidFile>,
    supervisor: Option<Supervisor>,
    supervision: Arc<Supervision>,
    stop: Stop,
    /// Clients are accepted.
    accepts: Cell<bool>,
    /// When it began, in milliseconds of the monotonic clock.
    begun: u64,
}

/// How the server learns that it should stop.
struct Stop {
    requests: Receiver<StopRequest>,
    /// A request has come.
    seen: Cell<bool>,
    /// How many requests of signals were not yet refused.
    signals: Arc<AtomicUsize>,
}

impl Stop {
    fn is_requested(&self) -> bool {
        if self.requests.try_recv().is_ok() {
            self.seen.set(true);
        }
        self.seen.get()
    }
}

impl Running {
    /// Starts everything and serves.
    fn start(
        mut config: Config,
        config_file: Option<PathBuf>,
        program: &[u8],
        (supervisor, is_public): (Option<Supervisor>, bool),
        log: &Arc<Log>,
    ) -> Result<Running, Failed> {
        let inherited = Inherited::take(&mut config, log).map_err(|error| {
            log.warning(format!("Cannot use the service manager's sockets: {}", reason(&error)));
            Failed
        })?;
        if config.cluster_enabled {
            // It learns whom to follow; until then its data stay what they are.
            config.replicaof = Some(PrimaryAddress { host: Vec::new(), port: 0 });
        }
        let threads = thread_count(&config);
        config.maxclients = room_for_clients(&config, threads, log)?;
        let active = Arc::new(tls::Active::default());
        if encryption::is_wanted(&config) {
            let ends = encryption::read(&config).map_err(|error| {
                log.warning(error);
                log.warning("Failed to configure TLS. Check logs for more info.");
                Failed
            })?;
            active.replace(Some(Arc::new(ends)));
        }
        let listening = Listening::open(&config, inherited, log, &active);
        let listening = listening.map_err(|NotListening| Failed)?;
        if is_public && refuses_all_others(&config, &listening) {
            log.warning(HOW_OTHERS_COME_IN);
            return Err(Failed);
        }
        let views = Keeper::read(&config).map_err(|error| {
            let file = path(&config.views_file);
            log.warning(format!("Fatal error: views-file {}: {error}. Exiting.", file.display()));
            Failed
        })?;
        let file = config_file.as_deref();
        let surroundings = Surroundings::arrange(&config, program, file, supervisor, views, log);
        base::clock::calibrate();
        if let Err(error) = memory::start_background_return() {
            log.warning(format!(
                "Threads that serve clients return unused memory themselves: {error}"
            ));
        }
        let sockets = (listening, active);
        Running::start_threads(config, config_file, sockets, surroundings, threads, log).map_err(
            |error| {
                log.warning(format!("A thread cannot be started: {}", reason(&error)));
                Failed
            },
        )
    }

    /// From here on the append-only file gets all writes, if the settings ask for one.
    fn keep_writes(&self) -> Result<(), Failed> {
        self.outside.append_only.start(&self.engine).map_err(|reason| {
            self.outside.log.warning(reason);
            Failed
        })
    }

    fn start_threads(
        config: Config,
        config_file: Option<PathBuf>,
        (listening, active): (Listening, Arc<tls::Active>),
        surroundings: Surroundings,
        threads: usize,
        log: &Arc<Log>,
    ) -> io::Result<Running> {
        let Surroundings { supervisor, title, oom_score, views } = surroundings;
        let (stop_sender, stop) = mpsc::channel();
        let (wakers, disk) = (Arc::new(Wakers::new()), Arc::new(RealDisk) as Arc<dyn Disk>);
        let cuts = Arc::<Cuts>::default();
        let saver = Arc::new(Saver::new(Arc::clone(&disk), Arc::clone(&cuts)));
        let waiting = Arc::clone(&wakers) as _;
        let append_only =
            AppendOnly::new(&config, log, &waiting, Arc::clone(&cuts), Arc::clone(&disk))?;
        let append_only = Arc::new(append_only);
        let journal = Arc::clone(append_only.journal());
        let movers = Movers::new(&active);
        let slot_movers = SlotMovers::new(&cuts, &active);
        let outside = Arc::new(Outside {
            log: Arc::clone(log),
            wakers,
            workers: Mutex::new(None),
            listening: Mutex::new(listening),
            active,
            stop: stop_sender.clone(),
            disk,
            cuts,
            saver,
            append_only,
            facts: facts(config_file.as_deref(), supervisor, threads),
            config_file,
            title,
            freeing: Freeing::start()?,
            log_thread: Mutex::new(Some(log.start_thread()?)),
            background: background::start()?,
            node_reader: node_reader::start()?,
            movers,
            slot_movers,
            views: Keeper::start(views, log)?,
            cluster: ClusterThread::default(),
            failed: Mutex::default(),
            oom_score,
        });
        let engine = Engine::new(
            config,
            commands::registry(),
            Arc::clone(&outside) as _,
            Arc::clone(&outside) as _,
            journal,
        );
        let engine = Arc::new(engine.with_interpreter(Arc::new(script::Lua::default())));
        outside.saver.connect(&engine);
        outside.background.connect(&engine);
        outside.node_reader.connect(&engine);
        outside.movers.connect(&engine);
        outside.slot_movers.connect(&engine);
        outside.views.connect(&engine);
        outside.append_only.connect(&engine);
        let signals = Arc::<AtomicUsize>::default();
        let supervision = Supervision::start(supervisor, &engine, log)?;
        let to = SignalThread {
            engine: Arc::clone(&engine),
            supervision: Arc::clone(&supervision),
            log: Arc::clone(log),
            outside: Arc::clone(&outside),
            stop: stop_sender,
            signals: Arc::clone(&signals),
        };
        to.start()?;
        let (saver, append_only) = (Arc::clone(&outside.saver), Arc::clone(&outside.append_only));
        let cron = Cron::start(Arc::clone(&engine), saver, append_only)?;
        let change_delivery = ChangeDelivery::start(Arc::clone(&engine), &ChangeEvents)?;
        let (wakers, offer) = (Arc::clone(&outside.wakers), outside.views.offer());
        let workers = Workers::start(Arc::clone(&engine), wakers, offer, &outside.cuts, threads)?;
        memory::publish();
        engine.note_startup();
        let stop = Stop { requests: stop, seen: Cell::new(false), signals };
        let running = Running {
            engine,
            outside,
            cron,
            change_delivery,
            replica: OnceCell::new(),
            watched_files: OnceCell::new(),
            kept: Cell::new(None),
            pid_file: OnceCell::new(),
            supervisor,
            supervision,
            stop,
            accepts: Cell::new(false),
            begun: base::clock::monotonic_ms(),
        };
        // From the first client on: the amount of data to load shows later.
        running.engine.loading.begin(0);
        running.open(workers, &running.engine.config.load());
        Ok(running)
    }

    /// Says that the server runs. It accepts no client yet: see [`Running::accept_clients`].
    fn open(&self, workers: Workers, config: &Config) {
        let log = &self.outside.log;
        let (port, pid) = (config.port, std::process::id());
        let mode = if config.cluster_enabled { "cluster" } else { "standalone" };
        log.notice(format!("Running mode={mode}, port={port}."));
        log.notice(format!("Port: {port}, PID: {pid}, threads: {}", self.outside.facts.workers));
        log.warning("Server initialized");
        let listening = self.outside.listening.lock();
        let at = |speaks| listening.addresses(speaks).collect::<Vec<_>>();
        let open = Served { resp: at(Speaks::RESP), http: at(Speaks::HTTP) };
        let encrypted = Served { resp: at(Speaks::RESP_OVER_TLS), http: at(Speaks::HTTPS) };
        let is_open = self.engine.users.is_open();
        announce(config, is_open, (&open, &encrypted), log);
        *self.outside.workers.lock() = Some(workers);
    }

    /// Begins to accept clients, if that has not begun yet. While data is loaded they are told to
    /// wait. A small amount is loaded before that, as in Redis, so that nobody is told to wait for
    /// it; clients that connect meanwhile are in the queue of the socket.
    fn accept_clients(&self) {
        let listening = self.outside.listening.lock();
        if !self.accepts.replace(true)
            && let Some(workers) = &*self.outside.workers.lock()
        {
            workers.listen(listening.handles());
        }
    }

    /// Begins to accept clients if much has been loaded, or for long.
    fn accept_if_load_is_long(&self) {
        let loaded = self.engine.loading.progress().map_or(0, |progress| progress.loaded_bytes);
        if loaded > LOADED_BEFORE_CLIENTS
            || base::clock::monotonic_ms() > self.begun + LOADING_BEFORE_CLIENTS_MS
        {
            self.accept_clients();
        }
    }

    /// Makes sure that the files are this server's own, and removes unfinished files of others.
    fn claim_files(&self) -> Result<(), Failed> {
        let (config, outside) = (self.engine.config.load(), &self.outside);
        let claimed = outside.append_only.claim(&config);
        claimed.and_then(|()| outside.saver.claim_file(&config)).map_err(|in_use| {
            outside.log.warning(format!(
                "Fatal error: {in_use}. Give each server its own `dir`, or its own \
                 `appenddirname` and `dbfilename`. Exiting."
            ));
            Failed
        })?;
        for path in outside.saver.remove_stale(&config) {
            outside.log.notice(format!("Removed the unfinished file {}", path.display()));
        }
        Ok(())
    }

    /// Loads the data, and logs that it is there.
    fn load(&self) -> Result<(), Failed> {
        let log = &self.outside.log;
        users::set(&self.engine, &*self.outside).map_err(|reason| {
            log.warning(format!("Aborting because of the users: {reason}"));
            Failed
        })?;
        self.claim_files()?;
        self.name_node()?;
        // Not before: another server that uses the files has one of its own.
        let config = self.engine.config.load();
        if let Some(file) = PidFile::write(&config, is_daemon(&config, self.supervisor), log) {
            let _ = self.pid_file.set(file);
        }
        let stopped = || {
            self.accept_if_load_is_long();
            self.stop.is_requested()
        };
        match Load::new(&self.engine, Arc::clone(&self.outside.disk), &stopped).all() {
            Ok(loaded) => {
                self.keep_writes()?;
                {
                    // A thread that looked at the journal before it listened has found the load
                    // still going on.
                    let _stopped = self.engine.gates.stop_the_world();
                    self.go_on_after(loaded.position);
                    self.engine.loading.end();
                }
                self.accept_clients();
                self.follow_primary()?;
                self.join_cluster()?;
                self.ready();
            }
            Err(load::LoadError::Stopped) => log.warning("Stopping while the data is being loaded"),
            Err(error) => {
                log.warning(format!("Fatal error loading the DB: {error}. Exiting."));
                return Err(Failed);
            }
        }
        Ok(())
    }

    /// Has the history of the loaded data go on. An RDB file has its position; an append-only file
    /// has told the journal, and a primary has gone on from there already.
    fn go_on_after(&self, of_snapshot: Option<(Position, Option<usize>)>) {
        let of_journal = || match self.engine.replication.is_replica() {
            true => {
                let kept = self.kept.take();
                let noted = kept.as_ref().and_then(KeptFile::stopped_at);
                self.kept.set(kept);
                self.engine.loaded_position(noted.as_ref())
            }
            false => None,
        };
        if let Some((position, selected)) = of_snapshot.or_else(of_journal) {
            self.engine.go_on_after(position, selected);
        }
    }

    /// Starts the thread that follows a primary while there is one.
    fn follow_primary(&self) -> Result<(), Failed> {
        let outside = &self.outside;
        let started = ReplicaThread::start(Means {
            engine: Arc::clone(&self.engine),
            log: Arc::clone(&outside.log),
            cuts: Arc::clone(&outside.cuts),
            append_only: Arc::clone(&outside.append_only),
            active: Arc::clone(&outside.active),
            disk: Arc::clone(&outside.disk),
        });
        let thread = started.map_err(|error| {
            outside.log.warning(format!("A thread cannot be started: {}", reason(&error)));
            Failed
        })?;
        let _ = self.replica.set(thread);
        Ok(())
    }

    /// Finds the name of a node of a cluster, and what it knows of the cluster: clients that come
    /// while data is loaded are sent on. It may serve nothing yet.
    fn name_node(&self) -> Result<(), Failed> {
        let (engine, log) = (&self.engine, &self.outside.log);
        if !engine.cluster.is_enabled() {
            return Ok(());
        }
        let config = engine.config.load();
        let kept = KeptFile::open(&config.cluster_config_file).map_err(|reason| {
            let file = path(&config.cluster_config_file).display();
            log.warning(format!("Fatal error: cluster-config-file {file}: {reason}. Exiting."));
            Failed
        })?;
        engine.cluster.serve_until(0);
        engine.cluster.set_own(kept.node());
        if let Some(known) = kept.known(&config.cluster_name) {
            engine.follow_topology(known);
        }
        self.kept.set(Some(kept));
        Ok(())
    }

    /// Starts the thread that makes the server a node of a cluster, if it is to be one.
    fn join_cluster(&self) -> Result<(), Failed> {
        let Some(kept) = self.kept.take() else { return Ok(()) };
        let outside = &self.outside;
        let means = cluster::Means {
            engine: Arc::clone(&self.engine),
            log: Arc::clone(&outside.log),
            active: Arc::clone(&outside.active),
            replies: Arc::clone(&outside.wakers) as _,
            movers: outside.slot_movers.clone(),
        };
        outside.cluster.start(means, kept).map_err(|reason| {
            outside.log.warning(format!("Fatal error: no node of a cluster: {reason}. Exiting."));
            Failed
        })
    }

    /// Starts the thread that looks whether files were replaced, if that is wanted.
    fn watch_files(&self, watched: Option<Vec<SecretFile>>) -> Result<(), Failed> {
        let Some(secrets) = watched else { return Ok(()) };
        let started = WatchedFiles::start(&self.engine, &self.outside, secrets);
        let thread = started.map_err(|error| {
            let line = format!("A thread cannot be started: {}", reason(&error));
            self.outside.log.warning(line);
            Failed
        })?;
        let _ = self.watched_files.set(thread);
        Ok(())
    }

    /// Says that clients are served.
    fn ready(&self) {
        let log = &self.outside.log;
        let listening = self.outside.listening.lock();
        log.notice("Ready to accept connections");
        if let Some(path) = listening.unix_path() {
            let path = path.display();
            log.notice(format!("The server is now ready to accept connections at {path}"));
        }
        self.supervision.note_ready();
    }

    /// Waits until the server should stop, and the data is saved where it should be.
    fn wait(&self) {
        if self.stop.seen.get() {
            // While data was being loaded: there is nothing to save.
            return;
        }
        // The sending side lives in `outside`: it cannot be gone.
        while let Ok(request) = self.stop.requests.recv() {
            self.outside.log.warning("User requested shutdown...");
            if request.by_supervisor {
                self.tell_of_stop();
            }
            let mut asked = vec![request];
            if self.save_at_the_end(&mut asked) {
                return;
            }
            let signals = asked.iter().filter(|own| own.by_signal).count();
            self.stop.signals.fetch_sub(signals, Ordering::Relaxed);
            let log = &self.outside.log;
            self.engine.scripts.slow.go_on();
            self.outside.cluster.stay();
            self.supervision.note_serving_on();
            log.warning(
                "Errors trying to shut down the server. Check the logs for more information.",
            );
            for client in asked.into_iter().filter_map(|own| own.client) {
                self.engine.answer(&client, b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n");
            }
        }
    }

    /// Hands over what a node of a cluster leads, unless the request says NOW.
    fn leave_cluster(&self, asked: &[StopRequest]) {
        let seconds = match asked.iter().any(|own| own.request.now) {
            true => 1,
            false => u64::from(self.engine.config.load().shutdown_timeout).max(1),
        };
        self.outside.cluster.hand_over(Duration::from_secs(seconds));
    }

    /// Tells the service manager that the server stops. It ends one that does not. So a stop that
    /// is not its own wish, and that may be refused, is reported only when it is certain.
    fn tell_of_stop(&self) {
        let seconds = u64::from(self.engine.config.load().shutdown_timeout);
        self.supervision.note_stopping(Duration::from_secs(seconds));
    }

    /// Suspends writes, which waits for scripts that run. A request with NOSAVE ends them, also if
    /// it arrives meanwhile.
    fn stop_writes(&self, asked: &mut Vec<StopRequest>) {
        let mut look = || {
            asked.extend(self.stop.requests.try_iter());
            if without_saving(asked) {
                self.end_scripts();
            }
        };
        look();
        self.engine.stop_writes(look);
        asked.extend(self.stop.requests.try_iter());
    }

    /// Waits until the replicas that follow have everything, and until a FAILOVER is over, for
    /// `shutdown-timeout` at most. A request that says NOW ends that. Returns whether the server is
    /// to stop: SHUTDOWN ABORT says that it is not, and leaves what was asked for after it.
    fn wait_for_replicas(&self, asked: &mut Vec<StopRequest>) -> bool {
        let (engine, log) = (&self.engine, &self.outside.log);
        let end = engine.journal.end();
        let is_behind = |own: &Replica| own.acknowledged() < end;
        let any_is_behind = || {
            let all = engine.replicas.all();
            all.iter().any(|own| own.is_online() && !own.is_silent && is_behind(own))
        };
        let seconds = u64::from(engine.config.load().shutdown_timeout);
        let until = base::clock::monotonic_ms() + seconds * 1000;
        let mut said = false;
        engine.stop_wait.begin(until);
        while base::clock::monotonic_ms() < until
            && !engine.stop_wait.is_given_up()
            && !asked.iter().any(|own| own.request.now)
        {
            let some_lack_something = any_is_behind();
            if !some_lack_something && !engine.failover.is_on() {
                break;
            }
            if !std::mem::replace(&mut said, true) {
                log.notice("Waiting for replicas before shutting down.");
            }
            // What they are asked with is a part of the stream, which the one that is about to lead
            // has to have too. A node of a cluster that has handed over puts nothing there.
            if some_lack_something {
                engine.replicas.ask();
            }
            std::thread::sleep(REPLICAS_PAUSE);
            asked.extend(self.stop.requests.try_iter());
        }
        if let Some(given_up) = engine.stop_wait.end() {
            log.warning("Shutdown manually aborted.");
            let later = asked.extract_if(.., |own| own.request.given_up_before >= given_up);
            // They come up again. The receiving side is here.
            later.for_each(|own| drop(self.outside.stop.send(own)));
            return false;
        }
        let all = engine.replicas.all();
        let now = base::clock::monotonic_ms();
        let mut behind = 0;
        for own in all.iter().filter(|own| is_behind(own)) {
            behind += 1;
            log.notice(format!(
                "Lagging replica {}:{} reported offset {} behind master, lag={}, state={}.",
                own.address(),
                own.introduction.listening_port,
                end.saturating_sub(own.acknowledged()),
                own.lag(now),
                own.standing().name()
            ));
        }
        if !all.is_empty() {
            let (in_sync, all) = (all.len() - behind, all.len());
            log.notice(format!("{in_sync} of {all} replicas are in sync when shutting down."));
        }
        true
    }

    /// Ends scripts in the middle. No file gets what they leave in memory.
    fn end_scripts(&self) {
        self.outside.cuts.recall(Recall::Stop);
        self.outside.append_only.recall_rewrites();
        self.engine.end_scripts();
    }

    /// The server does not stop after all.
    fn let_writes_go_on(&self) {
        self.engine.let_writes_go_on();
        self.outside.append_only.let_rewrites_go_on();
        self.outside.cuts.go_on();
    }

    /// Saves the data, if the requests or the settings ask for it. Returns whether the server may
    /// stop; writes are suspended from then on.
    fn save_at_the_end(&self, asked: &mut Vec<StopRequest>) -> bool {
        let log = &self.outside.log;
        let is_forced = |asked: &[StopRequest]| asked.iter().any(|own| own.request.force);
        if self.outside.append_only.writes_its_first_file() {
            // Until that is complete, no file contains the data.
            if !is_forced(asked) {
                log.warning("Writing initial AOF, can't exit.");
                return false;
            }
            log.warning("Writing initial AOF. Exit anyway.");
        }
        self.leave_cluster(asked);
        self.stop_writes(asked);
        if !self.wait_for_replicas(asked) {
            self.let_writes_go_on();
            return false;
        }
        let force = is_forced(asked);
        self.outside.append_only.stop_rewrites();
        if let Err(reason) = self.outside.append_only.keep_all() {
            log.warning(format!("Error trying to complete the AOF: {reason}"));
            if !force {
                log.warning("Writes that were acknowledged would be lost, can't exit.");
                self.let_writes_go_on();
                return false;
            }
        }
        let is_wanted = asked.iter().any(|own| own.request.save == Some(true));
        let saves = is_wanted || !self.engine.config.load().save.is_empty();
        if without_saving(asked) || !saves {
            self.outside.cuts.end();
            return true;
        }
        log.notice("Saving the final RDB snapshot before exiting.");
        let saved = self.outside.saver.save_now(&self.engine).is_ok();
        if !saved {
            log.warning("Error trying to save the DB, can't exit.");
        }
        let stops = saved || force;
        if stops {
            // Nothing is saved after that, and before the process ends.
            self.outside.cuts.end();
        } else {
            self.let_writes_go_on();
        }
        stops
    }

    /// Stops accepting, finishes running commands, sends waiting replies, and removes what the
    /// server has left in the system.
    fn stop(self) {
        let log = &self.outside.log;
        self.tell_of_stop();
        // A worker may be changing the listening sockets: the lock must be free while they end.
        let workers = self.outside.workers.lock().take();
        if let Some(workers) = workers {
            self.engine.scripts.slow.stop();
            workers.stop();
        }
        if let Some(replica) = self.replica.get() {
            replica.stop();
        }
        if let Some(files) = self.watched_files.into_inner() {
            files.stop();
        }
        self.outside.cluster.stop();
        self.cron.stop();
        self.change_delivery.stop();
        self.outside.background.stop();
        self.outside.node_reader.stop();
        self.outside.movers.stop();
        self.outside.slot_movers.stop();
        self.outside.views.stop();
        self.outside.append_only.stop();
        if let Some(file) = self.pid_file.into_inner() {
            file.remove(log);
        }
        if let Err(error) = self.outside.listening.lock().remove_unix_socket() {
            log.warning(format!("Cannot remove the unix socket: {}", reason(&error)));
        }
        log.warning("Dunlin is now ready to exit, bye bye...");
        if let Some(thread) = self.outside.log_thread.lock().take() {
            thread.stop();
        }
    }
}

/// Whether one of the requests says NOSAVE.
fn without_saving(asked: &[StopRequest]) -> bool {
    asked.iter().any(|own| own.request.save == Some(false))
}

/// Whether protected mode refuses each client of another machine, although such clients are
/// expected.
fn refuses_all_others(config: &Config, listening: &Listening) -> bool {
    let has_users =
        !(config.requirepass.is_empty() && config.aclfile.is_empty() && config.users.is_empty());
    let mut addresses = Speaks::all().flat_map(|speaks| listening.addresses(speaks));
    config.protected_mode && !has_users && addresses.any(|address| !address.ip().is_loopback())
}

/// How many clients there are descriptors for; the settings may ask for more.
fn room_for_clients(config: &Config, threads: usize, log: &Log) -> Result<u32, Failed> {
    let granted = descriptors::make_room(config.maxclients, threads);
    granted.warnings.iter().for_each(|line| log.warning(line));
    if granted.clients == 0 {
        log.warning("The limit of open files leaves no room for clients. Exiting.");
        return Err(Failed);
    }
    Ok(granted.clients)
}

fn facts(
    config_file: Option<&Path>,
    supervisor: Option<Supervisor>,
    workers: usize,
) -> ProcessInfo {
    let system = rustix::system::uname();
    let words = [system.sysname(), system.release(), system.machine()];
    let text = |path: &Path| path.to_string_lossy().into_owned();
    ProcessInfo {
        os: words.map(|word| word.to_string_lossy().into_owned()).join(" "),
        multiplexing_api: "epoll",
        compiler: env!("DUNLIN_COMPILER"),
        monotonic_clock: "POSIX clock_gettime",
        process_id: std::process::id(),
        supervised: supervisor.map_or("no", Supervisor::name),
        executable: std::env::current_exe().map_or_else(|_| String::new(), |path| text(&path)),
        config_file: config_file.map_or_else(String::new, text),
        allocator: memory::allocator(),
        workers,
        ..ProcessInfo::default()
    }
}

/// Threads that serve clients: as set, or one per core.
fn thread_count(config: &Config) -> usize {
    match config.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        set => set,
    }
}

/// Receives the signals of an operator.
struct SignalThread {
    engine: Arc<Engine>,
    supervision: Arc<Supervision>,
    log: Arc<Log>,
    outside: Arc<Outside>,
    stop: Sender<StopRequest>,
    /// Signals whose request was not refused yet.
    signals: Arc<AtomicUsize>,
}

impl SignalThread {
    fn start(self) -> io::Result<()> {
        thread::start("signals", move || self.receive()).map(drop)
    }

    fn receive(&self) {
        loop {
            let (caught, by_supervisor) = signal::wait();
            if caught == Caught::HangUp {
                // Between two changes of settings.
                let change = || {
                    self.engine.config.update(|config| self.outside.reload_certificates(config));
                };
                self.supervision.reload(change);
                continue;
            }
            if self.signals.load(Ordering::Relaxed) > 0 && caught == Caught::Interrupt {
                self.log.warning("You insist... exiting now.");
                self.outside.saver.abandon();
                self.log.drain();
                std::process::exit(1);
            }
            self.signals.fetch_add(1, Ordering::Relaxed);
            self.log.warning(format!("Received {} scheduling shutdown...", caught.name()));
            let config = self.engine.config.load();
            let options = match caught {
                Caught::Interrupt => config.shutdown_on_sigint,
                Caught::Terminate | Caught::HangUp => config.shutdown_on_sigterm,
            };
            let request = shutdown(options, self.engine.stop_wait.ask());
            // Sending fails only when the server is stopping already.
            let asked = StopRequest { request, client: None, by_signal: true, by_supervisor };
            let _ = self.stop.send(asked);
        }
    }
}

fn shutdown(options: ShutdownOptions, given_up_before: u64) -> Shutdown {
    let save = match (options.save, options.nosave) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    Shutdown { save, now: options.now, force: options.force, given_up_before }
}

/// The words of a command line as bytes.
pub fn words(arguments: impl IntoIterator<Item = OsString>) -> Vec<Vec<u8>> {
    arguments.into_iter().map(OsString::into_vec).collect()
}
