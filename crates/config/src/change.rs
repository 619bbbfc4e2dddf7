//! CONFIG GET and CONFIG SET.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::directive::Change;
use super::names::{DirectiveId, Found};
use super::table::Config;
use super::values::Permission;

/// The settings that `patterns` ask for, each once, by the name under which it matched.
///
/// A pattern without wildcards finds the directive of that name, hidden ones too, and answers it
/// as it was typed; with wildcards it finds both names of a directive, in lower case.
pub fn get(config: &Config, patterns: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen: Vec<Found> = Vec::new();
    let mut answers = Vec::new();
    for pattern in patterns {
        let has_wildcards = pattern.iter().any(|byte| b"[*?".contains(byte));
        for found in Found::all() {
            let name = found.name.as_bytes();
            let matches = if has_wildcards {
                let hidden = found.id.directive().is_hidden();
                !hidden && base::glob::matches_ignoring_case(pattern, name)
            } else {
                pattern.eq_ignore_ascii_case(name)
            };
            if !matches || seen.contains(&found) {
                continue;
            }
            seen.push(found);
            let answered = if has_wildcards { name } else { pattern };
            answers.push((answered.to_vec(), found.id.directive().value(config)));
        }
    }
    answers
}

/// Facts of the moment that CONFIG SET must know.
#[derive(Clone, Copy, Debug, Default)]
pub struct SetContext {
    /// Whether the client is on this machine.
    pub client_is_local: bool,
    /// Whether the data set is being loaded.
    pub loading: bool,
}

/// Why CONFIG SET fails. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// A name without a value.
    Syntax,
    /// The directive does not exist.
    Unknown {
        /// The name as it was given.
        name: Vec<u8>,
    },
    /// A directive cannot have that value, or cannot have it now.
    Failed {
        /// The name as it was given, or the directive's.
        name: Vec<u8>,
        /// What is wrong.
        reason: String,
    },
    /// A directive cannot be changed while the data set is being loaded.
    Loading,
}

impl SetError {
    fn failed(name: impl AsRef<[u8]>, reason: impl Into<String>) -> Self {
        Self::Failed { name: name.as_ref().to_vec(), reason: reason.into() }
    }
}

impl fmt::Display for SetError {
    /// The error as the client is answered, with its code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.line()))
    }
}

impl SetError {
    /// The error as the client is answered, with its code and the name as it came, up to a zero
    /// byte as C prints strings.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let quoting = |before: &str, name: &[u8], after: &str| {
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            [before.as_bytes(), name, after.as_bytes()].concat()
        };
        match self {
            Self::Syntax => b"ERR syntax error".to_vec(),
            Self::Unknown { name } => {
                quoting("ERR Unknown option or number of arguments for CONFIG SET - '", name, "'")
            }
            Self::Failed { name, reason } => quoting(
                "ERR CONFIG SET failed (possibly related to argument '",
                name,
                &format!("') - {reason}"),
            ),
            Self::Loading => b"LOADING Redis is loading the dataset in memory".to_vec(),
        }
    }
}

impl std::error::Error for SetError {}

/// The result of CONFIG SET on a configuration.
#[derive(Debug)]
pub struct Changed {
    /// The new one.
    pub config: Config,
    /// The directives to be applied, in the order given: those whose value has changed, and those
    /// that may have an effect even with the same value.
    pub directives: Vec<DirectiveId>,
}

/// Computes the configuration that CONFIG SET with `arguments`, names and values in turn, leads to.
///
/// All names are looked at before any value is, as clients see in which error they get.
pub fn set(old: &Config, arguments: &[&[u8]], context: SetContext) -> Result<Changed, SetError> {
    let (pairs, rest) = arguments.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(SetError::Syntax);
    }
    let mut targets: Vec<Found> = Vec::with_capacity(pairs.len());
    for &[name, _] in pairs {
        let found = Found::find(name).ok_or_else(|| SetError::Unknown { name: name.to_vec() })?;
        check_permission(old, found.id, context).map_err(|denied| denied.about(name))?;
        if targets.contains(&found) {
            return Err(SetError::failed(name, "duplicate parameter"));
        }
        targets.push(found);
    }
    let mut config = old.clone();
    for (target, &[_, value]) in targets.iter().zip(pairs) {
        let directive = target.id.directive();
        directive
            .set(&mut config, value)
            .map_err(|reason| SetError::failed(target.name, reason))?;
    }
    let mut directives: Vec<DirectiveId> = Vec::new();
    for Found { id, name } in targets {
        let directive = id.directive();
        let is_reread = directive.change() == Change::Reread && directive.same(old, &config);
        if directive.change() == Change::Reread && !is_reread && !allows_protected(old, context) {
            return Err(SetError::failed(name, PROTECTED));
        }
        let applied = directive.is_always_applied() || !directive.same(old, &config);
        if applied && !directives.contains(&id) {
            directives.push(id);
        }
    }
    Ok(Changed { config, directives })
}

/// Why a directive may not be changed.
enum Denied {
    Because(&'static str),
    Loading,
}

impl Denied {
    fn about(self, name: &[u8]) -> SetError {
        match self {
            Self::Because(reason) => SetError::failed(name, reason),
            Self::Loading => SetError::Loading,
        }
    }
}

/// The error for directives that the client may not change.
const PROTECTED: &str = "can't set protected config";

fn allows_protected(config: &Config, context: SetContext) -> bool {
    match config.enable_protected_configs {
        Permission::Yes => true,
        Permission::Local => context.client_is_local,
        Permission::No => false,
    }
}

fn check_permission(config: &Config, id: DirectiveId, context: SetContext) -> Result<(), Denied> {
    let directive = id.directive();
    let protected_allowed = allows_protected(config, context);
    match directive.change() {
        Change::Immutable => return Err(Denied::Because("can't set immutable config")),
        Change::Protected if !protected_allowed => {
            return Err(Denied::Because(PROTECTED));
        }
        Change::Protected | Change::Modifiable | Change::Reread => {}
    }
    if context.loading && directive.is_denied_while_loading() {
        return Err(Denied::Loading);
    }
    Ok(())
}

/// Why a new configuration could not take effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyError {
    /// The directive at fault.
    pub directive: DirectiveId,
    /// What is wrong, for the client.
    pub message: String,
}

/// What the server does when settings change: it listens on another port, for instance.
pub trait Apply {
    /// Makes the settings `changed` from `old` to `new` take effect, or does nothing.
    ///
    /// It may complete `new`, such as a relative path. After an error it is called once more with
    /// the configurations exchanged, to undo what had taken effect; the result of that call is
    /// ignored.
    fn apply(
        &self,
        old: &Config,
        new: &mut Config,
        changed: &[DirectiveId],
    ) -> Result<(), ApplyError>;
}

/// The configuration of a running server: readers take the current one without waiting, and one
/// writer at a time replaces it.
#[derive(Debug)]
pub struct SharedConfig {
    current: ArcSwap<Config>,
    /// Configurations so far, this one included.
    generation: AtomicU64,
    writer: Mutex<()>,
}

impl SharedConfig {
    /// Shares `config`.
    pub fn new(config: Config) -> Self {
        Self {
            current: ArcSwap::from_pointee(config),
            generation: AtomicU64::new(1),
            writer: Mutex::new(()),
        }
    }

    /// A number that rises with each change, after the change: a reader that sees the same number
    /// as before may go on with the configuration that it took then.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The caller is the one writer.
    fn replace(&self, config: Config) {
        self.current.store(Arc::new(config));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The current configuration, for a short while.
    pub fn load(&self) -> Guard<Arc<Config>> {
        self.current.load()
    }

    /// The current configuration, to keep.
    pub fn snapshot(&self) -> Arc<Config> {
        self.current.load_full()
    }

    /// Carries out CONFIG SET: all of `arguments` take effect, or none. Returns the changes.
    pub fn set(
        &self,
        arguments: &[&[u8]],
        context: SetContext,
        hook: &dyn Apply,
    ) -> Result<Vec<DirectiveId>, SetError> {
        let _writing = self.writer.lock();
        let old = self.current.load_full();
        let changed = set(&old, arguments, context)?;
        self.carry_out(&old, changed, hook)
    }

    /// The same where the caller may not wait. `None` if it would have to: for the world outside,
    /// or for another change. Then nothing has changed.
    pub fn set_at_once(
        &self,
        arguments: &[&[u8]],
        context: SetContext,
        hook: &dyn Apply,
    ) -> Option<Result<Vec<DirectiveId>, SetError>> {
        let _writing = self.writer.try_lock()?;
        let old = self.current.load_full();
        let changed = match set(&old, arguments, context) {
            Ok(changed) => changed,
            Err(error) => return Some(Err(error)),
        };
        let waits = changed.directives.iter().any(|id| id.directive().action().waits());
        (!waits).then(|| self.carry_out(&old, changed, hook))
    }

    /// The caller is the one writer.
    fn carry_out(
        &self,
        old: &Config,
        changed: Changed,
        hook: &dyn Apply,
    ) -> Result<Vec<DirectiveId>, SetError> {
        let Changed { mut config, directives } = changed;
        if directives.is_empty() {
            return Ok(directives);
        }
        if let Err(error) = hook.apply(old, &mut config, &directives) {
            let _ = hook.apply(&config, &mut Config::clone(old), &directives);
            return Err(SetError::failed(error.directive.name(), error.message));
        }
        self.replace(config);
        Ok(directives)
    }

    /// Changes settings on the server's own account, as REPLICAOF does.
    pub fn update(&self, change: impl FnOnce(&mut Config)) {
        let _writing = self.writer.lock();
        let mut config = Config::clone(&self.current.load());
        change(&mut config);
        self.replace(config);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::values::MaxmemoryPolicy;
    use super::*;

    fn words<'a>(texts: &[&'a str]) -> Vec<&'a [u8]> {
        texts.iter().map(|text| text.as_bytes()).collect()
    }

    fn try_set(arguments: &[&str]) -> Result<Changed, SetError> {
        set(&Config::default(), &words(arguments), SetContext::default())
    }

    /// The error of CONFIG SET, without the part that all failures share.
    fn error(arguments: &[&str]) -> String {
        let error = try_set(arguments).expect_err("refused").to_string();
        error.replace("ERR CONFIG SET failed (possibly related to argument ", "~")
    }

    fn names_of(config: &Config, patterns: &[&str]) -> Vec<String> {
        let answers = get(config, &words(patterns));
        answers.into_iter().map(|(name, _)| String::from_utf8(name).unwrap()).collect()
    }

    #[test]
    fn get_finds_names_and_patterns() {
        let config = Config::default();
        assert_eq!(names_of(&config, &["MAXMEMORY"]), ["MAXMEMORY"]);
        assert_eq!(names_of(&config, &["[m]axmemory", "Maxmemory", "maxmemory"]), ["maxmemory"]);
        assert_eq!(names_of(&config, &["SLAVEOF"]), ["SLAVEOF"]);
        assert_eq!(
            names_of(&config, &["LIST-MAX*"]),
            ["list-max-listpack-size", "list-max-ziplist-size"]
        );
        assert!(names_of(&config, &["key-load-dela?", "nope", ""]).is_empty());
        assert_eq!(names_of(&config, &["key-load-delay"]), ["key-load-delay"]);
        assert_eq!(names_of(&config, &["m*-policy", "max*-policy"]), ["maxmemory-policy"]);
    }

    #[test]
    fn errors_are_those_of_the_reference() {
        for (arguments, expected) in [
            (&["maxmemory", "1", "port"][..], "ERR syntax error"),
            (
                &["BoGus", "1", "port", "xx"],
                "ERR Unknown option or number of arguments for CONFIG SET - 'BoGus'",
            ),
            (
                &["port", "xx", "bogus", "1"],
                "ERR Unknown option or number of arguments for CONFIG SET - 'bogus'",
            ),
            (&["DaTabases", "3", "bogus", "1"], "~'DaTabases') - can't set immutable config"),
            (&["dbfilename", "3", "databases", "1"], "~'dbfilename') - can't set protected config"),
            (&["hz", "7", "HZ", "8", "bogus", "1"], "~'HZ') - duplicate parameter"),
            (
                &["Slave-Priority", "xx"],
                "~'slave-priority') - argument couldn't be parsed into an integer",
            ),
            (
                &["maxmemory-samples", "0"],
                "~'maxmemory-samples') - argument must be between 1 and 64 inclusive",
            ),
            (
                &["client-query-buffer-limit", "1"],
                "~'client-query-buffer-limit') - argument must be between 1048576 and \
                 9223372036854775807 inclusive",
            ),
            (&["maxmemory", "-1"], "~'maxmemory') - argument must be a memory value"),
            (
                &["maxmemory-clients", "101%"],
                "~'maxmemory-clients') - percentage argument must be less or equal to 100",
            ),
            (
                &["maxmemory-clients", "5.5%"],
                "~'maxmemory-clients') - argument must be a memory or percent value",
            ),
            (&["appendonly", "true"], "~'appendonly') - argument must be 'yes' or 'no'"),
            (
                &["appendfsync", "x"],
                "~'appendfsync') - argument(s) must be one of the following: everysec, always, no",
            ),
            (
                &["shutdown-on-sigterm", "now  force"],
                "~'shutdown-on-sigterm') - argument(s) must be one of the following: default, \
                 save, nosave, now, force",
            ),
            (
                &["shutdown-on-sigint", "save now nosave"],
                "~'shutdown-on-sigint') - shutdown options SAVE and NOSAVE can't be used \
                 simultaneously",
            ),
            (&["save", "3600  1"], "~'save') - Invalid save parameters"),
            (&["save", "0 1"], "~'save') - Invalid save parameters"),
            (
                &["client-output-buffer-limit", "normal 1 2"],
                "~'client-output-buffer-limit') - Wrong number of arguments in buffer limit \
                 configuration.",
            ),
            (
                &["client-output-buffer-limit", "master 1 1 1"],
                "~'client-output-buffer-limit') - Invalid client class specified in buffer limit \
                 configuration.",
            ),
            (
                &["client-output-buffer-limit", "normal 1 1 -1"],
                "~'client-output-buffer-limit') - Error in hard, soft or soft_seconds setting in \
                 buffer limit configuration.",
            ),
            (
                &["oom-score-adj-values", "1 2"],
                "~'oom-score-adj-values') - wrong number of arguments",
            ),
            (
                &["oom-score-adj-values", "1 2 2001"],
                "~'oom-score-adj-values') - Invalid oom-score-adj-values, elements must be between \
                 -2000 and 2000.",
            ),
            (
                &["notify-keyspace-events", "KEq"],
                "~'notify-keyspace-events') - Invalid event class character. Use \
                 'Ag$lshzxeKEtmdn'.",
            ),
            (
                &["latency-tracking-info-percentiles", "50 nan"],
                "~'latency-tracking-info-percentiles') - Invalid latency-tracking-info-percentiles \
                 parameters",
            ),
            (
                &["latency-tracking-info-percentiles", "inf"],
                "~'latency-tracking-info-percentiles') - latency-tracking-info-percentiles \
                 parameters should sit between [0.0,100.0]",
            ),
            (&["bind", &"a ".repeat(17)], "~'bind') - Too many bind addresses specified."),
            (
                &["cluster-announce-hostname", "a_b"],
                "~'cluster-announce-hostname') - Hostnames may only contain alphanumeric \
                 characters, hyphens or dots",
            ),
            (
                &["cluster-announce-hostname", &"a".repeat(256)],
                "~'cluster-announce-hostname') - Hostnames must be less than 256 characters",
            ),
            (
                &["proc-title-template", "{bad}"],
                "~'proc-title-template') - template format is invalid or contains unknown \
                 variables",
            ),
        ] {
            assert_eq!(error(arguments), expected, "{arguments:?}");
        }
    }

    #[test]
    fn values_are_shown_as_the_reference_does() {
        for (name, given, shown) in [
            ("maxmemory", "1GB", "1073741824"),
            ("maxmemory", "18446744073709551615", "18446744073709551615"),
            ("maxmemory", "", "0"),
            ("maxmemory-clients", "5%", "5%"),
            ("maxmemory-clients", "0%", "0"),
            ("maxmemory-clients", "100mb", "104857600"),
            ("hash-max-ziplist-value", "1kb", "1024"),
            ("activerehashing", "NO", "no"),
            ("maxmemory-policy", "AllKeys-LRU", "allkeys-lru"),
            ("shutdown-on-sigterm", "force now SAVE", "save now force"),
            ("shutdown-on-sigterm", "default", "default"),
            ("save", "", ""),
            ("save", "+5 01 3600 0", "5 1 3600 0"),
            (
                "client-output-buffer-limit",
                "pubsub 1 2 3 REPLICA 1kb 1mb 1",
                "normal 0 0 0 slave 1024 1048576 1 pubsub 1 2 3",
            ),
            ("oom-score-adj-values", "-2000 0 +2000", "-2000 0 2000"),
            ("notify-keyspace-events", "nmKE", "nKEm"),
            (
                "latency-tracking-info-percentiles",
                "1e1 99.123456789012 0.001 5.",
                "10 99.123457 0.001 5",
            ),
            ("latency-tracking-info-percentiles", "", ""),
            ("bind", "* -::*", "* -::*"),
            ("bind", "", ""),
            ("hz", "1000", "500"),
            ("hz", "0", "1"),
            ("repl-backlog-size", "1", "16384"),
            ("list-max-listpack-size", "-7", "-7"),
            ("masteruser", "a b\0c", "a b\0c"),
        ] {
            let config = try_set(&[name, given]).unwrap_or_else(|error| panic!("{error}")).config;
            let value = get(&config, &[name.as_bytes()]).remove(0).1;
            assert_eq!(String::from_utf8(value).unwrap(), shown, "{name} {given}");
        }
    }

    #[test]
    fn only_real_changes_are_reported() {
        let arguments = ["slave-priority", "7", "maxmemory", "0", "replica-priority", "8"];
        let changed = try_set(&arguments).unwrap();
        assert_eq!(changed.directives, [DirectiveId::find(b"replica-priority").unwrap()]);
        assert_eq!(changed.config.replica_priority, 8);
    }

    #[test]
    fn protection_and_loading_depend_on_the_moment() {
        let local = SetContext { client_is_local: true, loading: false };
        let mut config = Config::default();
        let rename = |config: &Config, context| set(config, &[b"dbfilename", b"x"], context);
        assert!(rename(&config, local).is_err());
        config.enable_protected_configs = Permission::Local;
        assert!(rename(&config, SetContext::default()).is_err());
        assert_eq!(rename(&config, local).unwrap().config.dbfilename, b"x");
        config.enable_protected_configs = Permission::Yes;
        assert!(rename(&config, SetContext::default()).is_ok());
        let reason = set(&config, &[b"dbfilename", b"a/b"], local).unwrap_err().to_string();
        assert!(reason.ends_with("dbfilename can't be a path, just a filename"));

        let loading = SetContext { client_is_local: true, loading: true };
        for name in ["appendonly", "dir", "repl-diskless-load"] {
            let error = set(&config, &[name.as_bytes(), b"?"], loading).unwrap_err();
            assert_eq!(error.to_string(), "LOADING Redis is loading the dataset in memory");
        }
        assert!(set(&config, &[b"hz", b"20"], loading).is_ok());
    }

    /// Accepts changes of `hz` only, and notes each call.
    #[derive(Default)]
    struct OnlyHz(RefCell<Vec<(u32, u32)>>);

    impl Apply for OnlyHz {
        fn apply(
            &self,
            old: &Config,
            new: &mut Config,
            changed: &[DirectiveId],
        ) -> Result<(), ApplyError> {
            self.0.borrow_mut().push((old.hz, new.hz));
            match changed.iter().find(|id| id.name() != "hz") {
                Some(&directive) => Err(ApplyError { directive, message: "no".to_owned() }),
                None => Ok(()),
            }
        }
    }

    #[test]
    fn set_at_once_refuses_settings_that_have_to_wait() {
        let shared = SharedConfig::new(Config::default());
        let hook = OnlyHz::default();
        let set = |arguments: &[&str]| {
            let changed = shared.set_at_once(&words(arguments), SetContext::default(), &hook)?;
            Some(changed.map(|directives| directives.len()))
        };
        assert_eq!(set(&["hz", "20"]), Some(Ok(1)));
        assert_eq!(set(&["hz", "30", "port", "1"]), None, "a socket");
        assert!(set(&["port", "x"]).is_some_and(|refused| refused.is_err()));
        assert_eq!(shared.load().hz, 20);
        let other = shared.writer.lock();
        assert_eq!(set(&["hz", "40"]), None, "another change is under way");
        drop(other);
        assert_eq!(set(&["hz", "40"]), Some(Ok(1)));
        assert_eq!(*hook.0.borrow(), [(10, 20), (20, 40)]);
    }

    #[test]
    fn a_protected_file_may_be_set_to_its_present_path() {
        let config = Config { views_file: b"a.toml".to_vec(), ..Config::default() };
        let try_set = |arguments: &[&str], context| {
            set(&config, &words(arguments), context).map(|changed| changed.directives.len())
        };
        let context = SetContext::default();
        assert_eq!(try_set(&["views-file", "a.toml"], context), Ok(1));
        let refused = try_set(&["views-file", "b.toml"], context).unwrap_err().to_string();
        assert!(refused.ends_with("'views-file') - can't set protected config"), "{refused}");
        let config = Config { enable_protected_configs: Permission::Yes, ..config.clone() };
        let other = set(&config, &words(&["views-file", "b.toml"]), context).unwrap();
        assert_eq!(other.config.views_file, b"b.toml");
        let context = SetContext { loading: true, ..context };
        assert_eq!(
            set(&config, &words(&["views-file", "a.toml"]), context).err(),
            Some(SetError::Loading)
        );
    }

    #[test]
    fn what_cannot_take_effect_is_undone() {
        let shared = SharedConfig::new(Config::default());
        let hook = OnlyHz::default();
        let context = SetContext::default();
        let changed = shared.set(&[b"hz", b"20"], context, &hook).unwrap();
        assert_eq!(changed, [DirectiveId::find(b"hz").unwrap()]);
        let arguments: &[&[u8]] = &[b"hz", b"30", b"maxmemory-policy", b"allkeys-lru"];
        let error = shared.set(arguments, context, &hook).unwrap_err();
        assert_eq!(error, SetError::failed("maxmemory-policy", "no"));
        assert_eq!(hook.0.take(), [(10, 20), (20, 30), (30, 20)]);
        assert_eq!(shared.load().hz, 20);
        assert_eq!(shared.snapshot().maxmemory_policy, MaxmemoryPolicy::NoEviction);
        assert!(shared.set(&[b"hz", b"20"], context, &hook).unwrap().is_empty());
        assert!(hook.0.take().is_empty(), "nothing changed, so nothing is to be done");
        shared.update(|config| config.hz = 5);
        assert_eq!(shared.load().hz, 5);
    }
}
