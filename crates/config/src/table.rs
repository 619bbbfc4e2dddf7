//! The table of directives, and with it `struct Config`.
//!
//! Each row is written once: documentation, field, type, default, names, properties, kind of
//! value. The macro makes of it a field of [`Config`], its default, and a row of [`DIRECTIVES`].

use std::sync::LazyLock;

use super::directive::{self, Action, Configurable, named};
use super::kinds::{
    ANY_MEMORY, Clamped, Field, FileMode, INT_MAX, LONG_MAX, MemoryOrPercent, OPTIONAL_TEXT, OneOf,
    Setting, TEXT, YesNo, integer, memory,
};
use super::special::{
    BindAddresses, ClientOutputLimits, Directory, EventLetters, FollowPrimary, OnSignal, OomScores,
    Percentiles, SaveRules, Words, check_announced_address, check_appenddirname,
    check_appendfilename, check_cluster_name, check_dbfilename, check_etcd_addresses,
    check_hostname, check_locale, check_node_name, check_title,
};
use super::values::{
    AppendFsync, ClusterDurability, DisklessLoad, EndpointType, LogLevel, MaxmemoryPolicy,
    MemoryLimit, NotifyEvents, OomScoreAdj, OutputLimit, OutputLimits, Permission, PrimaryAddress,
    PropagationError, PubsubDefault, RenamedCommand, SanitizePayload, SaveRule, ShutdownOptions,
    Supervised, SyslogFacility, TlsAuthClients, TlsAuthClientsUser,
};

const ALL_CORES: &str = "every thread serves clients already; see `threads`";
const OWN_HANDSHAKES: &str = "workers shake no hands";
const NO_FORK: &str = "nothing forks here";
const NO_DEFRAG: &str = "memory is not defragmented in the background";
const NO_MODULES: &str = "modules cannot be loaded";
const NO_PINNING: &str = "threads are not pinned by the server; use taskset or a cpuset";
const NO_DH: &str = "keys are agreed on by elliptic curves only";
const GOES_ON: &str = "a replica goes on, and says so in the log";
const NO_SECOND_LINK: &str = "the primary keeps the stream during a full sync";
const NO_SYNC_FILES: &str = "no file of a full sync stays";
const NO_BUS: &str = "nodes find each other by etcd, and have no bus of their own";
const FURTHEST: &str = "the replica with the most data of the last primary takes over";
const STAYS: &str = "a replica stays in its shard; `dunlin cluster` moves nodes";
const NOT_SAMPLED: &str = "commands are not checked for this";
const NO_DEPRECATED_LUA: &str = "the deprecated parts of the Lua interface are not offered";
const ALWAYS_LAZY: &str = "large values are always freed in the background";

const MEGABYTE: u64 = 1 << 20;

/// A directive of the configuration.
pub type Directive = directive::Directive<Config>;

impl Configurable for Config {
    fn defaults() -> &'static Config {
        static DEFAULTS: LazyLock<Config> = LazyLock::new(Config::default);
        &DEFAULTS
    }
}

macro_rules! directives {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $default:expr => $row:expr, $kind:expr;
    )+) => {
        /// Every setting of the server, as plain fields.
        ///
        /// Texts are bytes as they were given. A running server shares one immutable `Config` at
        /// a time and replaces it as a whole.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $( $(#[doc = $doc])+ pub $field: $type, )+
            /// Commands that answer to another name or to none, in the order of the file.
            pub renamed_commands: Vec<RenamedCommand>,
            /// The lines of users and roles: `user` or `role`, the name, and the rules.
            pub users: Vec<Vec<Vec<u8>>>,
            /// The names of directives that no file sets, with the values that they were given: see
            /// [`Provided`](super::load::Provided).
            pub provided: Vec<(&'static str, Vec<u8>)>,
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $( $field: $default, )+
                    renamed_commands: Vec::new(),
                    users: Vec::new(),
                    provided: Vec::new(),
                }
            }
        }

        /// The rows.
        pub(super) static DIRECTIVES: &[Directive] = &[ $(
            $row.with(concat!($($doc),+), &Setting {
                field: Field::<Config, $type> {
                    of: |config| &config.$field,
                    of_mut: |config| &mut config.$field,
                },
                kind: $kind,
            }),
        )+ ];
    };
}

directives! {
    // ---- Threads and network --------------------------------------------------------------

    /// Threads that serve clients; 0 takes one per core.
    threads: usize = 0 => named("threads").immutable(), integer(0, 1024);
    /// TCP port for clients; 0 listens on none.
    port: u16 = 6379 => named("port").then(Action::Ports), integer(0, 65535);
    /// TCP port for HTTP; 0 turns HTTP off. When another server has the default port, this one
    /// starts all the same: it does not serve HTTP then, and logs that.
    http_port: u16 = 8379 => named("http-port").then(Action::Ports), integer(0, 65535);
    /// Origins of web pages that may send requests and read the answers; `*` for all.
    http_cors_origins: Vec<Vec<u8>> = Vec::new() => named("http-cors-origins"), Words("origins such as https://app.example; `*` for all");
    /// Names that this server goes by in HTTP, besides `localhost` and its addresses; `*` for any.
    /// A request to another name is refused unless it shows the password.
    http_host_names: Vec<Vec<u8>> = Vec::new() => named("http-host-names"), Words("host names; `*` for any");
    /// Refuse HTTP requests that change an existing key without If-Match or If-None-Match.
    http_require_match: bool = false => named("http-require-match"), YesNo;
    /// Bytes of the last changes that are kept in memory for followers (CHANGES, and `/v1/changes`
    /// of HTTP), from the first time that a client follows.
    changes_backlog_size: u64 = base::limits::DEFAULT_CHANGES_BACKLOG => named("changes-backlog-size"), memory(0);
    /// Seconds for which they are kept after the last client has stopped following.
    changes_backlog_ttl: u32 = 3600 => named("changes-backlog-ttl"), integer(0, INT_MAX);
    /// Milliseconds for which the reply of a write waits for the durability that its client has
    /// chosen (CLIENT DURABILITY, and `Dunlin-Durability` of HTTP). After that it is an error.
    durability_timeout: u64 = 5000 => named("durability-timeout"), integer(1, INT_MAX);
    /// TOML file with databases and views of them, whose results HTTP answers and keeps; relative
    /// to `dir`. CONFIG SET reads it anew, also when the path stays the same.
    views_file: Vec<u8> = Vec::new() => named("views-file").then(Action::Views).reread().denied_while_loading(), OPTIONAL_TEXT;
    /// Addresses to listen on. The default is the loopback interface only, so that a server
    /// without a configuration is not reachable from outside; `* -::*` opens it to all.
    bind: Vec<Vec<u8>> = vec![b"127.0.0.1".to_vec(), b"-::1".to_vec()]
        => named("bind").then(Action::Addresses), BindAddresses;
    /// Local address of the connection to the primary.
    bind_source_addr: Vec<u8> = Vec::new() => named("bind-source-addr"), OPTIONAL_TEXT;
    /// Refuse clients from other machines while no password is set.
    protected_mode: bool = true => named("protected-mode"), YesNo;
    /// Connections that the kernel queues until they are accepted.
    tcp_backlog: u32 = 511 => named("tcp-backlog").immutable(), integer(0, INT_MAX);
    /// Path of a Unix socket to listen on as well.
    unixsocket: Vec<u8> = Vec::new() => named("unixsocket").immutable(), OPTIONAL_TEXT;
    /// Permissions of that socket; 0 leaves them to the umask.
    unixsocketperm: u32 = 0 => named("unixsocketperm").immutable(), FileMode;
    /// Seconds after which an idle client is closed; 0 never.
    timeout: u32 = 0 => named("timeout"), integer(0, INT_MAX);
    /// Seconds between probes of idle TCP connections; 0 sends none.
    tcp_keepalive: u32 = 300 => named("tcp-keepalive"), integer(0, INT_MAX);
    /// Mark that the kernel puts on the packets of the listening sockets; 0 for none.
    socket_mark_id: u32 = 0 => named("socket-mark-id").immutable(), integer(0, u32::MAX as i64);
    /// Most clients at a time.
    maxclients: u32 = 10_000 => named("maxclients").then(Action::Descriptors), integer(1, u32::MAX as i64);
    /// Memory for all clients' buffers together; beyond it the largest are closed. 0 for no bound.
    maxmemory_clients: MemoryLimit = MemoryLimit::Bytes(0)
        => named("maxmemory-clients"), MemoryOrPercent;
    /// Bytes of input that may wait in one connection.
    client_query_buffer_limit: u64 = 1024 * MEGABYTE
        => named("client-query-buffer-limit"), memory(MEGABYTE);
    /// Bytes of output that may wait for a client that does not read, by class of client.
    client_output_buffer_limits: OutputLimits = OutputLimits {
        normal: OutputLimit { hard_bytes: 0, soft_bytes: 0, soft_seconds: 0 },
        replica: OutputLimit {
            hard_bytes: 256 * MEGABYTE,
            soft_bytes: 64 * MEGABYTE,
            soft_seconds: 60,
        },
        pubsub: OutputLimit {
            hard_bytes: 32 * MEGABYTE,
            soft_bytes: 8 * MEGABYTE,
            soft_seconds: 60,
        },
    } => named("client-output-buffer-limit"), ClientOutputLimits;
    /// Longest single argument of a command, and longest string value, in bytes.
    proto_max_bulk_len: u64 = 512 * MEGABYTE => named("proto-max-bulk-len"), memory(MEGABYTE);
    /// Additional threads for reading and writing sockets.
    io_threads: u32 = 1
        => named("io-threads").immutable().without_effect(ALL_CORES), integer(1, 128);
    /// New connections that a thread takes, and clients to which it gives their first answer,
    /// between two looks at the others.
    max_new_connections_per_cycle: u32 = 10
        => named("max-new-connections-per-cycle"), integer(1, 1000);
    /// The same for encrypted connections.
    max_new_tls_connections_per_cycle: u32 = 1
        => named("max-new-tls-connections-per-cycle").without_effect(OWN_HANDSHAKES),
        integer(1, 1000);

    // ---- TLS ------------------------------------------------------------------------------

    /// TCP port for encrypted connections; 0 listens on none. With `port 0` it is the only one.
    tls_port: u16 = 0 => named("tls-port").then(Action::Ports), integer(0, 65535);
    /// TCP port for encrypted HTTP; 0 listens on none.
    https_port: u16 = 0 => named("https-port").then(Action::Ports), integer(0, 65535);
    /// Encrypt the connections that MIGRATE opens, as the nodes of a cluster do.
    tls_cluster: bool = false => named("tls-cluster").then(Action::Tls), YesNo;
    /// Encrypt the connection to the primary.
    tls_replication: bool = false => named("tls-replication").then(Action::Tls), YesNo;
    /// Connect only to servers whose certificates are for the name or address by which the server
    /// knows them: primaries and targets of MIGRATE. As in Redis, it is enough by default that an
    /// authority vouches for them.
    tls_verify_names: bool = false => named("tls-verify-names").then(Action::Tls), YesNo;
    /// Whether clients must show a certificate.
    tls_auth_clients: TlsAuthClients = TlsAuthClients::Yes
        => named("tls-auth-clients").then(Action::Tls), OneOf;
    /// What of a client's certificate is the name of its user, who then needs no password: the
    /// common name of its subject, or the first URI among its other names that a user has. As in
    /// Redis 8.6 and Valkey 9.1.
    tls_auth_clients_user: TlsAuthClientsUser = TlsAuthClientsUser::Off
        => named("tls-auth-clients-user"), OneOf;
    /// Certificate of the server, with those between it and its authority. CONFIG SET reads it
    /// anew, also when the path stays the same; so does SIGHUP, with all files of TLS.
    tls_cert_file: Vec<u8> = Vec::new()
        => named("tls-cert-file").then(Action::Tls).always_applied(), OPTIONAL_TEXT;
    /// Private key of the server.
    tls_key_file: Vec<u8> = Vec::new()
        => named("tls-key-file").then(Action::Tls).always_applied(), OPTIONAL_TEXT;
    /// Password of that key.
    tls_key_file_pass: Vec<u8> = Vec::new()
        => named("tls-key-file-pass").secret().then(Action::Tls), OPTIONAL_TEXT;
    /// Further certificates, for clients that ask for another name: pairs of a certificate file and
    /// a key file. The password is that of the first key.
    tls_sni_cert_files: Vec<Vec<u8>> = Vec::new()
        => named("tls-sni-cert-files").then(Action::Tls).always_applied(), Words("pairs of a certificate file and a key file");
    /// Certificate for connections that the server opens; its own if none is set.
    tls_client_cert_file: Vec<u8> = Vec::new()
        => named("tls-client-cert-file").then(Action::Tls).always_applied(), OPTIONAL_TEXT;
    /// Private key for connections that the server opens.
    tls_client_key_file: Vec<u8> = Vec::new()
        => named("tls-client-key-file").then(Action::Tls).always_applied(), OPTIONAL_TEXT;
    /// Password of that key.
    tls_client_key_file_pass: Vec<u8> = Vec::new()
        => named("tls-client-key-file-pass").secret().then(Action::Tls), OPTIONAL_TEXT;
    /// Diffie-Hellman parameters.
    tls_dh_params_file: Vec<u8> = Vec::new()
        => named("tls-dh-params-file").without_effect(NO_DH), OPTIONAL_TEXT;
    /// Certificates of the authorities that are trusted.
    tls_ca_cert_file: Vec<u8> = Vec::new()
        => named("tls-ca-cert-file").then(Action::Tls).always_applied(), OPTIONAL_TEXT;
    /// Directory of such certificates.
    tls_ca_cert_dir: Vec<u8> = Vec::new()
        => named("tls-ca-cert-dir").then(Action::Tls).always_applied(), OPTIONAL_TEXT;
    /// Versions of the protocol to offer, of `TLSv1.2` and `TLSv1.3`; both if none is set.
    tls_protocols: Vec<u8> = Vec::new()
        => named("tls-protocols").then(Action::Tls), OPTIONAL_TEXT;
    /// Ciphers up to TLS 1.2, as OpenSSL names them. What is not offered is refused.
    tls_ciphers: Vec<u8> = Vec::new()
        => named("tls-ciphers").then(Action::Tls), OPTIONAL_TEXT;
    /// Cipher suites of TLS 1.3.
    tls_ciphersuites: Vec<u8> = Vec::new()
        => named("tls-ciphersuites").then(Action::Tls), OPTIONAL_TEXT;
    /// Follow the server's order of ciphers rather than the client's: that of `tls-ciphersuites`
    /// and `tls-ciphers`, or AES with 128 bits first if they name none.
    tls_prefer_server_ciphers: bool = true
        => named("tls-prefer-server-ciphers").then(Action::Tls), YesNo;
    /// Let clients resume sessions.
    tls_session_caching: bool = true
        => named("tls-session-caching").then(Action::Tls), YesNo;
    /// Sessions kept for that; 0 without bound.
    tls_session_cache_size: u32 = 20_480
        => named("tls-session-cache-size").then(Action::Tls), integer(0, INT_MAX);
    /// Seconds for which they are kept.
    tls_session_cache_timeout: u32 = 300
        => named("tls-session-cache-timeout").then(Action::Tls), integer(0, INT_MAX);

    // ---- Process --------------------------------------------------------------------------

    /// Number of databases that SELECT reaches.
    databases: usize = 16 => named("databases").immutable(), integer(1, INT_MAX);
    /// Run in the background.
    daemonize: bool = false => named("daemonize").immutable(), YesNo;
    /// Service manager that is told when the server is ready.
    supervised: Supervised = Supervised::No => named("supervised").immutable(), OneOf;
    /// File with the process id while the server runs.
    pidfile: Vec<u8> = Vec::new() => named("pidfile").immutable(), OPTIONAL_TEXT;
    /// How much is logged.
    loglevel: LogLevel = LogLevel::Notice => named("loglevel").then(Action::LogLevel), OneOf;
    /// File that the log is appended to; empty for standard output.
    logfile: Vec<u8> = Vec::new() => named("logfile").immutable(), TEXT;
    /// Log to the system log too.
    syslog_enabled: bool = false
        => named("syslog-enabled").immutable(), YesNo;
    /// Keep what clients have sent out of the log and of crash reports.
    hide_user_data_from_log: bool = false => named("hide-user-data-from-log").then(Action::CrashLog), YesNo;
    /// Name that messages carry there.
    syslog_ident: Vec<u8> = b"redis".to_vec()
        => named("syslog-ident").immutable(), TEXT;
    /// Facility that messages carry there.
    syslog_facility: SyslogFacility = SyslogFacility::Local0
        => named("syslog-facility").immutable(), OneOf;
    /// Write a report to the log when the process crashes.
    crash_log_enabled: bool = true => named("crash-log-enabled").then(Action::CrashLog), YesNo;
    /// Test the memory when the process crashes.
    crash_memcheck_enabled: bool = true
        => named("crash-memcheck-enabled").without_effect("a crash report contains no memory test"),
        YesNo;
    /// End the process normally, rather than abort it, on a failed assertion.
    use_exit_on_panic: bool = false
        => named("use-exit-on-panic").hidden()
            .without_effect("a failed assertion always aborts, after its report"),
        YesNo;
    /// Milliseconds after which a command that still runs is reported.
    watchdog_period: u32 = 0
        => named("watchdog-period").hidden()
            .without_effect("slow commands are in the slow log and the latency monitor"),
        integer(0, INT_MAX);
    /// Show the logo even when the log is no terminal.
    always_show_logo: bool = false
        => named("always-show-logo").immutable().without_effect("there is no logo"), YesNo;
    /// Change the process title.
    set_proc_title: bool = true => named("set-proc-title").immutable(), YesNo;
    /// Template of the process title.
    proc_title_template: Vec<u8> = b"{title} {listen-addr} {server-mode}".to_vec()
        => named("proc-title-template").then(Action::Title), TEXT.checked("text with variables in braces", check_title);
    /// Directory of the data files, and the one that relative paths start from.
    dir: Vec<u8> = b".".to_vec()
        => named("dir").then(Action::Directory).protected().denied_while_loading().always_applied(), Directory;
    /// SHUTDOWN options for SIGINT.
    shutdown_on_sigint: ShutdownOptions = ShutdownOptions::default()
        => named("shutdown-on-sigint"), OnSignal;
    /// SHUTDOWN options for SIGTERM.
    shutdown_on_sigterm: ShutdownOptions = ShutdownOptions::default()
        => named("shutdown-on-sigterm"), OnSignal;
    /// Seconds for which a shutdown waits for replicas that lag behind.
    shutdown_timeout: u32 = 10 => named("shutdown-timeout"), integer(0, INT_MAX);
    /// Adjust the score by which the kernel picks a process to end when memory is out.
    oom_score_adj: OomScoreAdj = OomScoreAdj::No
        => named("oom-score-adj").then(Action::OomScore), OneOf;
    /// Scores as primary, as replica, and of background processes.
    oom_score_adj_values: [i32; 3] = [0, 200, 800]
        => named("oom-score-adj-values").then(Action::OomScore), OomScores;
    /// Switch huge pages off for the process.
    disable_thp: bool = true => named("disable-thp").immutable(), YesNo;
    /// Locale by which SORT with ALPHA compares: only that of C.
    locale_collate: Vec<u8> = Vec::new()
        => named("locale-collate").without_effect("SORT with ALPHA compares bytes"), OPTIONAL_TEXT.checked("empty, C or POSIX", check_locale);
    /// Names of start-up warnings that do not prevent the start.
    ignore_warnings: Vec<u8> = Vec::new()
        => named("ignore-warnings").without_effect("no warning prevents the start"), TEXT;
    /// Cores for the threads that serve clients.
    server_cpulist: Vec<u8> = Vec::new()
        => named("server-cpulist").alias("server_cpulist").immutable().without_effect(NO_PINNING), OPTIONAL_TEXT;
    /// Cores for background threads.
    bio_cpulist: Vec<u8> = Vec::new()
        => named("bio-cpulist").alias("bio_cpulist").immutable().without_effect(NO_PINNING), OPTIONAL_TEXT;
    /// Cores for the process that rewrites the append-only file.
    aof_rewrite_cpulist: Vec<u8> = Vec::new()
        => named("aof-rewrite-cpulist").alias("aof_rewrite_cpulist").immutable().without_effect(NO_FORK), OPTIONAL_TEXT;
    /// Cores for the process that saves.
    bgsave_cpulist: Vec<u8> = Vec::new()
        => named("bgsave-cpulist").alias("bgsave_cpulist").immutable().without_effect(NO_FORK), OPTIONAL_TEXT;
    /// How often per second background work runs.
    hz: u32 = 10 => named("hz"), Clamped { kind: integer(0, INT_MAX), min: 1, max: 500 };
    /// Run it more often while many clients are connected.
    dynamic_hz: bool = true
        => named("dynamic-hz")
            .without_effect("upkeep of connections is bounded per turn of a worker"),
        YesNo;

    // ---- Access ---------------------------------------------------------------------------

    /// Password that clients must give; empty for none.
    requirepass: Vec<u8> = Vec::new() => named("requirepass").secret(), OPTIONAL_TEXT;
    /// File of users and their rights, a line for each as ACL LIST shows them.
    aclfile: Vec<u8> = Vec::new() => named("aclfile").immutable(), OPTIONAL_TEXT;
    /// Seconds within which a client shows its password, where one is needed; 0 for any time.
    authentication_timeout: u32 = 60 => named("authentication-timeout"), integer(0, INT_MAX);
    /// Milliseconds for which the answer to a wrong password waits.
    auth_failure_delay: u32 = 0 => named("auth-failure-delay"), integer(0, 60_000);
    /// Entries of the log of refused commands.
    acllog_max_len: u64 = 128 => named("acllog-max-len"), integer(0, LONG_MAX);
    /// Which channels new users may use.
    acl_pubsub_default: PubsubDefault = PubsubDefault::ResetChannels
        => named("acl-pubsub-default"), OneOf;
    /// Which clients may change protected directives at run time.
    enable_protected_configs: Permission = Permission::No
        => named("enable-protected-configs").immutable(), OneOf;
    /// Which clients may use DEBUG.
    enable_debug_command: Permission = Permission::No
        => named("enable-debug-command").immutable(), OneOf;
    /// Check assumptions that only tests of Valkey itself ask about.
    enable_debug_assert: bool = false
        => named("enable-debug-assert").immutable().hidden().without_effect("the assertions were chosen when the server was built"), YesNo;
    /// Which clients may use MODULE.
    enable_module_command: Permission = Permission::No
        => named("enable-module-command").immutable().without_effect(NO_MODULES), OneOf;

    // ---- Snapshots ------------------------------------------------------------------------

    /// When the data is saved by itself: seconds and number of writes, any number of pairs.
    save: Vec<SaveRule> = vec![
        SaveRule { seconds: 3600, changes: 1 },
        SaveRule { seconds: 300, changes: 100 },
        SaveRule { seconds: 60, changes: 10_000 },
    ] => named("save"), SaveRules;
    /// Name of the snapshot file.
    dbfilename: Vec<u8> = b"dump.rdb".to_vec()
        => named("dbfilename").protected(), TEXT.checked("file name", check_dbfilename);
    /// Compress strings in snapshots.
    rdbcompression: bool = true => named("rdbcompression"), YesNo;
    /// End snapshots with a checksum, and check it when loading.
    rdbchecksum: bool = true => named("rdbchecksum").immutable(), YesNo;
    /// Newest version of the format that snapshots may have: 12 for Redis 7.4, which is needed only
    /// if fields of hashes expire; 11 for Redis 7.2 and Valkey 7.2, 10 for Redis 7.0.
    rdb_version: u16 = 12 => named("rdb-version"), integer(10, 12);
    /// Sync a snapshot piece by piece while it is written.
    rdb_save_incremental_fsync: bool = true => named("rdb-save-incremental-fsync"), YesNo;
    /// Remove the files of a full sync when nothing else needs them.
    rdb_del_sync_files: bool = false => named("rdb-del-sync-files").without_effect(NO_SYNC_FILES), YesNo;
    /// Refuse writes after a snapshot failed.
    stop_writes_on_bgsave_error: bool = true => named("stop-writes-on-bgsave-error"), YesNo;
    /// Check payloads from outside in full before they are used.
    sanitize_dump_payload: SanitizePayload = SanitizePayload::No
        => named("sanitize-dump-payload").without_effect("every payload is always checked"), OneOf;
    /// Microseconds to wait after each saved key; -N waits one microsecond per N keys.
    rdb_key_save_delay: i32 = 0
        => named("rdb-key-save-delay").hidden(),
        integer(i32::MIN as i64, INT_MAX);
    /// The same after each key or command that is loaded.
    key_load_delay: i32 = 0
        => named("key-load-delay").hidden(),
        integer(i32::MIN as i64, INT_MAX);
    /// Bytes loaded between two looks at the clients.
    loading_process_events_interval_bytes: u32 = 512 << 10
        => named("loading-process-events-interval-bytes").hidden()
            .without_effect("clients are served by other threads while data is loaded"),
        integer(1024, INT_MAX);

    // ---- Append-only file -----------------------------------------------------------------

    /// Log every write to the append-only file.
    appendonly: bool = false => named("appendonly").then(Action::AppendOnly).denied_while_loading(), YesNo;
    /// Base of the names of those files.
    appendfilename: Vec<u8> = b"appendonly.aof".to_vec()
        => named("appendfilename").immutable(), TEXT.checked("file name", check_appendfilename);
    /// Directory of those files, inside `dir`.
    appenddirname: Vec<u8> = b"appendonlydir".to_vec()
        => named("appenddirname").immutable(), TEXT.checked("directory name", check_appenddirname);
    /// When the file is synced to the disk.
    appendfsync: AppendFsync = AppendFsync::EverySecond => named("appendfsync").then(Action::SyncTimes), OneOf;
    /// Do not sync while a snapshot or rewrite is under way.
    no_appendfsync_on_rewrite: bool = false => named("no-appendfsync-on-rewrite"), YesNo;
    /// Growth in percent since the last rewrite that starts a new one; 0 never.
    auto_aof_rewrite_percentage: u32 = 100
        => named("auto-aof-rewrite-percentage"), integer(0, INT_MAX);
    /// Size below which no rewrite starts by itself.
    auto_aof_rewrite_min_size: u64 = 64 * MEGABYTE => named("auto-aof-rewrite-min-size"), memory(0);
    /// Load a file whose last command is incomplete, without that command.
    aof_load_truncated: bool = true => named("aof-load-truncated"), YesNo;
    /// Begin a rewritten file with a snapshot.
    aof_use_rdb_preamble: bool = true => named("aof-use-rdb-preamble"), YesNo;
    /// Note the time in the file now and then.
    aof_timestamp_enabled: bool = false => named("aof-timestamp-enabled").then(Action::Timestamps), YesNo;
    /// Sync a rewritten file piece by piece while it is written.
    aof_rewrite_incremental_fsync: bool = true => named("aof-rewrite-incremental-fsync"), YesNo;
    /// Keep files that a rewrite has made superfluous.
    aof_disable_auto_gc: bool = false => named("aof-disable-auto-gc").hidden(), YesNo;

    // ---- Replication ----------------------------------------------------------------------

    /// Server to replicate; none for a primary.
    replicaof: Option<PrimaryAddress> = None
        => named("replicaof").alias("slaveof").immutable(), FollowPrimary;
    /// Password for the primary.
    masterauth: Vec<u8> = Vec::new() => named("masterauth").secret(), OPTIONAL_TEXT;
    /// User name for the primary.
    masteruser: Vec<u8> = Vec::new() => named("masteruser").secret(), OPTIONAL_TEXT;
    /// Answer from old data while the primary is out of reach.
    replica_serve_stale_data: bool = true
        => named("replica-serve-stale-data").alias("slave-serve-stale-data"), YesNo;
    /// Refuse writes of clients on a replica.
    replica_read_only: bool = true => named("replica-read-only").alias("slave-read-only"), YesNo;
    /// Do not evict on a replica: the primary's deletions suffice.
    replica_ignore_maxmemory: bool = true
        => named("replica-ignore-maxmemory").alias("slave-ignore-maxmemory"), YesNo;
    /// Carry on as a replica when a write cannot be stored on disk.
    replica_ignore_disk_write_errors: bool = false
        => named("replica-ignore-disk-write-errors").without_effect(GOES_ON), YesNo;
    /// Free the old data in the background when a full sync replaces it.
    replica_lazy_flush: bool = false
        => named("replica-lazy-flush").alias("slave-lazy-flush").without_effect(ALWAYS_LAZY), YesNo;
    /// Rank for promotion: lower goes first, 0 never.
    replica_priority: u32 = 100
        => named("replica-priority").alias("slave-priority"), integer(0, INT_MAX);
    /// Whether monitors may report this replica.
    replica_announced: bool = true => named("replica-announced"), YesNo;
    /// Address that a replica announces instead of its own.
    replica_announce_ip: Vec<u8> = Vec::new()
        => named("replica-announce-ip").alias("slave-announce-ip"), OPTIONAL_TEXT;
    /// Port that a replica announces instead of its own.
    replica_announce_port: u16 = 0
        => named("replica-announce-port").alias("slave-announce-port"), integer(0, 65535);
    /// Send a full sync without a file in between.
    repl_diskless_sync: bool = true
        => named("repl-diskless-sync"), YesNo;
    /// Seconds to wait for more replicas before a full sync starts.
    repl_diskless_sync_delay: u32 = 5 => named("repl-diskless-sync-delay"), integer(0, INT_MAX);
    /// Replicas that end this wait; 0 for no such number.
    repl_diskless_sync_max_replicas: u32 = 0
        => named("repl-diskless-sync-max-replicas"), integer(0, INT_MAX);
    /// How a replica takes in a full sync.
    repl_diskless_load: DisklessLoad = DisklessLoad::Disabled
        => named("repl-diskless-load").denied_while_loading(), OneOf;
    /// Let the kernel gather small packets to replicas.
    repl_disable_tcp_nodelay: bool = false => named("repl-disable-tcp-nodelay"), YesNo;
    /// Seconds between the primary's pings.
    repl_ping_replica_period: u32 = 10
        => named("repl-ping-replica-period").alias("repl-ping-slave-period"), integer(1, INT_MAX);
    /// Seconds of silence after which the other side counts as lost.
    repl_timeout: u32 = 60 => named("repl-timeout"), integer(1, INT_MAX);
    /// Bytes that a replica keeps of the stream of writes during a full sync; 0 takes its output
    /// limit.
    replica_full_sync_buffer_limit: u64 = 0
        => named("replica-full-sync-buffer-limit").without_effect(NO_SECOND_LINK), memory(0);
    /// Bytes of the stream of writes that are kept for replicas that come back.
    repl_backlog_size: u64 = MEGABYTE
        => named("repl-backlog-size"), Clamped { kind: memory(1), min: 16 << 10, max: u64::MAX };
    /// Seconds without replicas after which they are let go; 0 never.
    repl_backlog_ttl: u64 = 3600 => named("repl-backlog-ttl"), integer(0, LONG_MAX);
    /// Replicas without which writes are refused.
    min_replicas_to_write: u32 = 0
        => named("min-replicas-to-write").alias("min-slaves-to-write"), integer(0, INT_MAX);
    /// Seconds that such a replica may lag behind.
    min_replicas_max_lag: u32 = 10
        => named("min-replicas-max-lag").alias("min-slaves-max-lag"), integer(0, INT_MAX);
    /// What happens when a write from the primary or the append-only file fails.
    propagation_error_behavior: PropagationError = PropagationError::Ignore
        => named("propagation-error-behavior").without_effect(GOES_ON), OneOf;

    // ---- Cluster --------------------------------------------------------------------------

    /// Be a node of a cluster, whose slots and primaries are kept in etcd: see `cluster-etcd`.
    cluster_enabled: bool = false => named("cluster-enabled").immutable(), YesNo;
    /// Addresses of etcd's members, separated by commas, such as `http://10.0.0.1:2379`.
    cluster_etcd: Vec<u8> = Vec::new()
        => named("cluster-etcd").then(Action::Etcd).always_applied(), OPTIONAL_TEXT.checked("addresses, separated by commas", check_etcd_addresses);
    /// User of etcd; empty if etcd asks for none.
    cluster_etcd_user: Vec<u8> = Vec::new() => named("cluster-etcd-user").immutable(), OPTIONAL_TEXT;
    /// Password of that user.
    cluster_etcd_password: Vec<u8> = Vec::new()
        => named("cluster-etcd-password").immutable().secret(), OPTIONAL_TEXT;
    /// Certificates of the authorities that vouch for etcd; empty takes `tls-ca-cert-file`.
    cluster_etcd_ca_file: Vec<u8> = Vec::new() => named("cluster-etcd-ca-file").immutable(), OPTIONAL_TEXT;
    /// Certificate that is shown to etcd; empty shows none.
    cluster_etcd_cert_file: Vec<u8> = Vec::new()
        => named("cluster-etcd-cert-file").immutable(), OPTIONAL_TEXT;
    /// Private key of that certificate.
    cluster_etcd_key_file: Vec<u8> = Vec::new() => named("cluster-etcd-key-file").immutable(), OPTIONAL_TEXT;
    /// Name of the cluster: its keys in etcd are under `/dunlin/NAME/`.
    cluster_name: Vec<u8> = b"dunlin".to_vec()
        => named("cluster-name").immutable(), TEXT.checked("letters, digits, dots, hyphens and underscores", check_cluster_name);
    /// File in which the node keeps its name and what it last knew of the cluster, in `dir`.
    cluster_config_file: Vec<u8> = b"nodes.conf".to_vec()
        => named("cluster-config-file").immutable(), TEXT;
    /// Databases of a node of a cluster, in place of `databases`.
    cluster_databases: usize = 1 => named("cluster-databases").immutable(), integer(1, INT_MAX);
    /// How durable a write is before it is acknowledged, unless its client chooses (CLIENT
    /// DURABILITY): in the primary's memory, on its disk, or in the memory of more than half of the
    /// shard's nodes. A failover loses no write of the last kind.
    cluster_durability: ClusterDurability = ClusterDurability::Memory
        => named("cluster-durability"), OneOf;
    /// Let a command, a script or a transaction use keys of several slots, if this node has all of
    /// these slots. Clients of Redis Cluster send no such commands by themselves, and the slots may
    /// come to lie on different nodes.
    cluster_allow_cross_slot: bool = false => named("cluster-allow-cross-slot"), YesNo;
    /// Count processor time and bytes for each slot: CLUSTER SLOT-STATS.
    cluster_slot_stats_enabled: bool = false => named("cluster-slot-stats-enabled"), YesNo;
    /// Port of the connections between nodes; 0 adds 10000 to the port for clients.
    cluster_port: u16 = 0 => named("cluster-port").immutable().without_effect(NO_BUS), integer(0, 65535);
    /// Bytes a second that a node sends at most when it copies slots to another shard; 0 for as
    /// many as possible. What is written to the slots meanwhile is sent as it comes.
    cluster_migration_bandwidth: u64 = 0 => named("cluster-migration-bandwidth"), ANY_MEMORY;
    /// Milliseconds for which etcd lets a node be primary each time that it asks. A primary that is
    /// silent for so long is replaced.
    cluster_node_timeout: u64 = 5_000 => named("cluster-node-timeout").immutable(), integer(0, LONG_MAX);
    /// Node timeouts without its primary after which a replica's data is too old for promotion.
    cluster_replica_validity_factor: u32 = 10
        => named("cluster-replica-validity-factor").alias("cluster-slave-validity-factor").without_effect(FURTHEST),
        integer(0, INT_MAX);
    /// Replicas that a primary keeps when one moves to a primary without.
    cluster_migration_barrier: u32 = 1 => named("cluster-migration-barrier").without_effect(STAYS), integer(0, INT_MAX);
    /// Let replicas move to primaries without.
    cluster_allow_replica_migration: bool = true => named("cluster-allow-replica-migration").without_effect(STAYS), YesNo;
    /// Never promote this replica by itself.
    cluster_replica_no_failover: bool = false
        => named("cluster-replica-no-failover").alias("cluster-slave-no-failover").without_effect(FURTHEST), YesNo;
    /// Refuse commands while some slot has no node.
    cluster_require_full_coverage: bool = true => named("cluster-require-full-coverage"), YesNo;
    /// Answer reads while the cluster is down, or while this node may not be primary.
    cluster_allow_reads_when_down: bool = false => named("cluster-allow-reads-when-down"), YesNo;
    /// Serve sharded channels while the cluster is down.
    cluster_allow_pubsubshard_when_down: bool = true
        => named("cluster-allow-pubsubshard-when-down"), YesNo;
    /// Bytes that may wait for another node; 0 without bound.
    cluster_link_sendbuf_limit: u64 = 0 => named("cluster-link-sendbuf-limit").without_effect(NO_BUS), ANY_MEMORY;
    /// Address that the node announces; empty announces the one by which it reaches etcd.
    cluster_announce_ip: Vec<u8> = Vec::new()
        => named("cluster-announce-ip"),
        OPTIONAL_TEXT.checked("letters, digits and .:-_%; empty for none", check_announced_address);
    /// Host name that the node announces.
    cluster_announce_hostname: Vec<u8> = Vec::new()
        => named("cluster-announce-hostname"),
        OPTIONAL_TEXT.checked("host name; empty for none", check_hostname);
    /// Where the node stands: copies of a shard are to stand in different zones.
    availability_zone: Vec<u8> = Vec::new()
        => named("availability-zone"),
        OPTIONAL_TEXT.checked("printable text without quotes; empty for none", check_node_name);
    /// Name for people that the node announces.
    cluster_announce_human_nodename: Vec<u8> = Vec::new()
        => named("cluster-announce-human-nodename"),
        OPTIONAL_TEXT.checked("printable text without quotes; empty for none", check_node_name);
    /// Share of commands that are checked for anything that a cluster would refuse, in percent.
    cluster_compatibility_sample_ratio: u32 = 0
        => named("cluster-compatibility-sample-ratio").without_effect(NOT_SAMPLED), integer(0, 100);
    /// Port for clients that the node announces; 0 announces the one that it listens on.
    cluster_announce_port: u16 = 0 => named("cluster-announce-port"), integer(0, 65535);
    /// Port for encrypted connections that the node announces; 0 announces the one that it listens
    /// on.
    cluster_announce_tls_port: u16 = 0 => named("cluster-announce-tls-port"), integer(0, 65535);
    /// Port of the connections between nodes that the node announces.
    cluster_announce_bus_port: u16 = 0 => named("cluster-announce-bus-port").without_effect(NO_BUS), integer(0, 65535);
    /// How redirections name a node: by IP address, by host name, or not at all.
    cluster_preferred_endpoint_type: EndpointType = EndpointType::Ip
        => named("cluster-preferred-endpoint-type"), OneOf;

    // ---- Memory ---------------------------------------------------------------------------

    /// Bytes of memory beyond which keys are evicted or writes refused; 0 without bound.
    maxmemory: u64 = 0 => named("maxmemory").then(Action::MemoryLimit), ANY_MEMORY;
    /// Which keys are evicted.
    maxmemory_policy: MaxmemoryPolicy = MaxmemoryPolicy::NoEviction
        => named("maxmemory-policy"), OneOf;
    /// Keys that are compared for each eviction.
    maxmemory_samples: u32 = 5 => named("maxmemory-samples"), integer(1, 64);
    /// How much time eviction may take: 0 the least, 100 without bound.
    maxmemory_eviction_tenacity: u32 = 10 => named("maxmemory-eviction-tenacity"), integer(0, 100);
    /// How slowly the counter of accesses grows.
    lfu_log_factor: u32 = 10 => named("lfu-log-factor"), integer(0, INT_MAX);
    /// Minutes after which that counter loses one; 0 never.
    lfu_decay_time: u32 = 1 => named("lfu-decay-time"), integer(0, INT_MAX);
    /// Effort of looking for expired keys, from 1 to 10.
    active_expire_effort: u32 = 1 => named("active-expire-effort"), integer(1, 10);
    /// Data is being copied from another server: nothing expires by itself, no read removes an
    /// expired key, and nothing is evicted. CLIENT IMPORT-SOURCE lets a connection find expired
    /// keys.
    import_mode: bool = false => named("import-mode"), YesNo;
    /// Free evicted values in the background.
    lazyfree_lazy_eviction: bool = false => named("lazyfree-lazy-eviction").without_effect(ALWAYS_LAZY), YesNo;
    /// Free expired values in the background.
    lazyfree_lazy_expire: bool = false => named("lazyfree-lazy-expire").without_effect(ALWAYS_LAZY), YesNo;
    /// Free values that a command replaces in the background.
    lazyfree_lazy_server_del: bool = false => named("lazyfree-lazy-server-del").without_effect(ALWAYS_LAZY), YesNo;
    /// Let DEL free in the background, as UNLINK does.
    lazyfree_lazy_user_del: bool = false => named("lazyfree-lazy-user-del").without_effect(ALWAYS_LAZY), YesNo;
    /// Let FLUSHALL, FLUSHDB, SCRIPT FLUSH and FUNCTION FLUSH free in the background by default.
    lazyfree_lazy_user_flush: bool = false => named("lazyfree-lazy-user-flush").without_effect(ALWAYS_LAZY), YesNo;
    /// Move the entries of growing tables in the background.
    activerehashing: bool = true
        => named("activerehashing").without_effect("tables grow one bucket at a time"), YesNo;
    /// Defragment memory in the background.
    activedefrag: bool = false => named("activedefrag").without_effect(NO_DEFRAG), YesNo;
    /// Bytes of waste below which that does not start.
    active_defrag_ignore_bytes: u64 = 100 * MEGABYTE
        => named("active-defrag-ignore-bytes").without_effect(NO_DEFRAG), memory(1);
    /// Percent of waste from which it starts.
    active_defrag_threshold_lower: u32 = 10
        => named("active-defrag-threshold-lower").without_effect(NO_DEFRAG), integer(0, 1000);
    /// Percent of waste from which it makes its greatest effort.
    active_defrag_threshold_upper: u32 = 100
        => named("active-defrag-threshold-upper").without_effect(NO_DEFRAG), integer(0, 1000);
    /// Its least share of processor time, in percent.
    active_defrag_cycle_min: u32 = 1
        => named("active-defrag-cycle-min").without_effect(NO_DEFRAG), integer(1, 99);
    /// Its greatest share of processor time, in percent.
    active_defrag_cycle_max: u32 = 25
        => named("active-defrag-cycle-max").without_effect(NO_DEFRAG), integer(1, 99);
    /// Members of a collection that it moves at once.
    active_defrag_max_scan_fields: u64 = 1000
        => named("active-defrag-max-scan-fields").without_effect(NO_DEFRAG), integer(1, LONG_MAX);
    /// Let the allocator return memory in a thread of its own.
    jemalloc_bg_thread: bool = true
        => named("jemalloc-bg-thread")
            .without_effect("the allocator's background threads always run"),
        YesNo;

    // ---- Data types -----------------------------------------------------------------------

    /// Fields up to which a hash is packed.
    hash_max_listpack_entries: usize = 512
        => named("hash-max-listpack-entries").alias("hash-max-ziplist-entries"),
        integer(0, LONG_MAX);
    /// Bytes of a field or value up to which a hash is packed.
    hash_max_listpack_value: usize = 64
        => named("hash-max-listpack-value").alias("hash-max-ziplist-value"), memory(0);
    /// Size of a list's packed blocks: elements, or with a minus sign -1 to -5 for 4 to 64 kB.
    list_max_listpack_size: i32 = -2
        => named("list-max-listpack-size").alias("list-max-ziplist-size"),
        integer(i32::MIN as i64, INT_MAX);
    /// Blocks at each end of a list that are not compressed; 0 compresses none.
    list_compress_depth: u32 = 0 => named("list-compress-depth").without_effect("the blocks of a list are not compressed in memory"), integer(0, INT_MAX);
    /// Members up to which a set of integers is packed.
    set_max_intset_entries: usize = 512 => named("set-max-intset-entries"), integer(0, LONG_MAX);
    /// Members up to which a set of any members is packed.
    set_max_listpack_entries: usize = 128 => named("set-max-listpack-entries"), integer(0, LONG_MAX);
    /// Bytes of a member up to which a set is packed.
    set_max_listpack_value: usize = 64 => named("set-max-listpack-value"), integer(0, LONG_MAX);
    /// Members up to which a sorted set is packed.
    zset_max_listpack_entries: usize = 128
        => named("zset-max-listpack-entries").alias("zset-max-ziplist-entries"),
        integer(0, LONG_MAX);
    /// Bytes of a member up to which a sorted set is packed.
    zset_max_listpack_value: usize = 64
        => named("zset-max-listpack-value").alias("zset-max-ziplist-value"), memory(0);
    /// Bytes up to which a HyperLogLog is sparse.
    hll_sparse_max_bytes: usize = 3000 => named("hll-sparse-max-bytes"), memory(0);
    /// Bytes of a stream's packed block; 0 without bound.
    stream_node_max_bytes: usize = 4096 => named("stream-node-max-bytes"), memory(0);
    /// Entries of a stream's packed block; 0 without bound.
    stream_node_max_entries: u64 = 100 => named("stream-node-max-entries"), integer(0, LONG_MAX);

    // ---- Scripts --------------------------------------------------------------------------

    /// Milliseconds after which a script answers others with BUSY; 0 never.
    busy_reply_threshold: u64 = 5000
        => named("busy-reply-threshold").alias("lua-time-limit"), integer(0, LONG_MAX);
    /// Bytes that the scripts of a thread may take; one that needs more ends with an error. 0
    /// without bound.
    lua_memory_limit: usize = 256 << 20 => named("lua-memory-limit"), memory(0);
    /// Offer scripts the parts of the Lua interface that are deprecated.
    lua_enable_deprecated_api: bool = false
        => named("lua-enable-deprecated-api").immutable().hidden().without_effect(NO_DEPRECATED_LUA), YesNo;

    // ---- Notifications and observation ----------------------------------------------------

    /// Classes of keyspace events that are published.
    notify_keyspace_events: NotifyEvents = NotifyEvents::default()
        => named("notify-keyspace-events"), EventLetters;
    /// Keys that are remembered for client-side caching; 0 without bound.
    tracking_table_max_keys: u64 = 1_000_000
        => named("tracking-table-max-keys").without_effect("client-side caching is not offered yet"), integer(0, LONG_MAX);
    /// Microseconds from which a command enters the slow log; -1 none, 0 every one.
    slowlog_log_slower_than: i64 = 10_000
        => named("slowlog-log-slower-than").alias("commandlog-execution-slower-than"), integer(-1, LONG_MAX);
    /// Entries of the slow log.
    slowlog_max_len: u64 = 128
        => named("slowlog-max-len").alias("commandlog-slow-execution-max-len"), integer(0, LONG_MAX);
    /// Bytes from which a request enters the log of large requests; -1 none, 0 every one.
    commandlog_request_larger_than: i64 = 1 << 20
        => named("commandlog-request-larger-than"), integer(-1, LONG_MAX);
    /// Entries of the log of large requests.
    commandlog_large_request_max_len: u64 = 128
        => named("commandlog-large-request-max-len"), integer(0, LONG_MAX);
    /// Bytes from which a reply enters the log of large replies; -1 none, 0 every one.
    commandlog_reply_larger_than: i64 = 1 << 20
        => named("commandlog-reply-larger-than"), integer(-1, LONG_MAX);
    /// Entries of the log of large replies.
    commandlog_large_reply_max_len: u64 = 128
        => named("commandlog-large-reply-max-len"), integer(0, LONG_MAX);
    /// Milliseconds from which the latency monitor records an event; 0 switches it off.
    latency_monitor_threshold: u64 = 0 => named("latency-monitor-threshold"), integer(0, LONG_MAX);
    /// Keep a histogram of latencies for each command.
    latency_tracking: bool = true => named("latency-tracking"), YesNo;
    /// Percentiles that INFO shows of it.
    latency_tracking_info_percentiles: Vec<f64> = vec![50.0, 99.0, 99.9]
        => named("latency-tracking-info-percentiles"), Percentiles;
}
