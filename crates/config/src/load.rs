//! The configuration at start: files, standard input and the command line.
//!
//! All three give the same text, a directive per line. They are read in this order, and of a
//! directive that is given twice the later value wins (`save` and `client-output-buffer-limit` add
//! up). Settings that come from elsewhere, such as secrets from the service manager, are read after
//! the files. Nothing here touches a file: a [`LoadEnvironment`] answers questions about the world
//! outside.

use std::fmt;

use base::limits::{CONFIG_INCLUDE_DEPTH, CONFIG_INCLUDED_FILES};

use super::directive::Effect;
use super::names::{DirectiveId, Found};
use super::spelling::nearest;
use super::table::Config;
use super::values::RenamedCommand;
use super::words::{quote, split_words};

/// Directives that older files may contain and that no longer mean anything.
const FORGOTTEN: [&[u8]; 3] =
    [b"list-max-ziplist-entries", b"list-max-ziplist-value", b"io-threads-do-reads"];

/// Directives of Valkey that mean nothing here, with their defaults: files that state those are
/// accepted.
const FOREIGN: [(&[u8], &[u8]); 27] = [
    (b"active-defrag-cycle-us", b"500"),
    (b"cluster-announce-client-ipv4", b""),
    (b"cluster-announce-client-ipv6", b""),
    (b"cluster-announce-client-port", b"0"),
    (b"cluster-announce-client-tls-port", b"0"),
    (b"cluster-blacklist-ttl", b"60"),
    (b"cluster-config-save-behavior", b"sync"),
    (b"cluster-manual-failover-timeout", b"5000"),
    (b"cluster-slot-migration-log-max-len", b"1000"),
    (b"dual-channel-replication-enabled", b"no"),
    (b"extended-redis-compatibility", b"no"),
    (b"hash-seed", b""),
    (b"log-format", b"legacy"),
    (b"log-timestamp-format", b"legacy"),
    (b"mptcp", b"no"),
    (b"prefetch-batch-max-size", b"16"),
    (b"primaryauth", b""),
    (b"primaryuser", b""),
    (b"rdb-version-check", b"strict"),
    (b"rdma-bind", b""),
    (b"rdma-completion-vector", b"-1"),
    (b"rdma-port", b"0"),
    (b"rdma-rx-size", b"1048576"),
    (b"repl-mptcp", b"no"),
    (b"slot-migration-max-failover-repl-bytes", b"0"),
    (b"tls-auto-reload-interval", b"0"),
    (b"unixsocketgroup", b""),
];

const BAD_DIRECTIVE: &str = "Bad directive or wrong number of arguments";
const UNBALANCED: &str = "Unbalanced quotes in configuration line";

/// What loading must ask of the world outside. Errors are the reason in words, such as `No such
/// file or directory`.
pub trait LoadEnvironment {
    /// The contents of a file.
    fn read(&self, path: &[u8]) -> Result<Vec<u8>, String>;
    /// The paths that match a pattern with `*`, `?` or `[`, sorted.
    fn glob(&self, pattern: &[u8]) -> Vec<Vec<u8>>;
    /// The absolute path of a directory, which must exist.
    fn directory(&self, path: &[u8]) -> Result<Vec<u8>, String>;
    /// Whether there is a command of this name, before any renaming.
    fn has_command(&self, name: &[u8]) -> bool;
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The configuration file, which is the first argument when that starts with no dash.
    pub config_file: Option<Vec<u8>>,
    /// Whether standard input is read, which `-` as the first or last argument asks for.
    pub reads_stdin: bool,
    /// The options as the text of a configuration file, one option per line.
    pub options: Vec<u8>,
}

impl Invocation {
    /// Reads the arguments that follow the program's name.
    ///
    /// `--name value...` takes all that follows up to the next argument with two dashes; the first
    /// value may itself have them. `"--name value"` in one argument works as well, and `--save`
    /// alone stands for `--save ""`.
    pub fn parse(arguments: &[Vec<u8>]) -> Self {
        let mut invocation = Self::default();
        let mut at = 0;
        if let Some(first) = arguments.first().filter(|first| !first.starts_with(b"-")) {
            invocation.config_file = Some(first.clone());
            at = 1;
        }
        let mut needs_value = false;
        while let Some(argument) = arguments.get(at) {
            let next = arguments.get(at + 1);
            let at_an_end = at == 0 || next.is_none();
            if argument == b"-" && at_an_end {
                invocation.reads_stdin = true;
            } else if let Some(option) = option_text(argument).filter(|_| !needs_value) {
                needs_value = invocation.push_option(option, next);
            } else {
                invocation.options.extend(quote(argument));
                invocation.options.push(b' ');
                needs_value = false;
            }
            at += 1;
        }
        invocation
    }

    /// Starts the line of an option; returns whether the next argument is a value in any case.
    fn push_option(&mut self, option: &[u8], next: Option<&Vec<u8>>) -> bool {
        if !self.options.is_empty() {
            self.options.push(b'\n');
        }
        self.options.extend_from_slice(option);
        self.options.push(b' ');
        let name_only = split_words(option).is_some_and(|words| words.len() <= 1);
        let no_value = next.is_none_or(|next| option_text(next).is_some());
        if name_only && no_value && option.eq_ignore_ascii_case(b"save") {
            self.options.extend_from_slice(b"\"\"");
            return false;
        }
        name_only
    }
}

fn option_text(argument: &[u8]) -> Option<&[u8]> {
    argument.strip_prefix(b"--")
}

/// Where a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In a file of this path.
    File(Vec<u8>),
    /// In standard input.
    Stdin,
    /// In the options of the command line, one per line.
    CommandLine,
    /// In a file of this path that the service manager has made for a secret.
    Credential(Vec<u8>),
    /// In the variable of this name.
    Variable(String),
    /// In the program: a default for where it runs.
    Usual,
}

/// A setting that comes neither from a configuration file nor from the command line. CONFIG REWRITE
/// leaves it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provided {
    /// Where it stands.
    pub origin: Origin,
    /// What it sets.
    pub directive: DirectiveId,
    /// The values, as a line of a file has them.
    pub words: Vec<Vec<u8>>,
}

/// A line of configuration text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Where the text comes from.
    pub origin: Origin,
    /// Number of the line, from 1.
    pub line: usize,
    /// The line, without white space around it.
    pub text: Vec<u8>,
}

/// Why a configuration cannot be loaded. Its display is the block for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The line at fault, if it is one line's.
    pub location: Option<Location>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "*** FATAL CONFIG FILE ERROR (Dunlin {}) ***", env!("CARGO_PKG_VERSION"))?;
        if let Some(location) = &self.location {
            write!(f, "{location}")?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, text) = (self.line, String::from_utf8_lossy(&self.text));
        let place = match &self.origin {
            Origin::File(path) => String::from_utf8_lossy(path),
            Origin::Stdin => "standard input".into(),
            Origin::CommandLine => "the command line's options".into(),
            // Its text is a secret.
            Origin::Credential(path) => {
                return writeln!(f, "Reading the credential {}", String::from_utf8_lossy(path));
            }
            Origin::Variable(name) => {
                return writeln!(f, "Reading the environment variable {name}");
            }
            Origin::Usual => return writeln!(f, "Setting what is usual here"),
        };
        writeln!(f, "Reading the configuration file, at line {line} of {place}")?;
        writeln!(f, ">>> '{text}'")
    }
}

impl std::error::Error for LoadError {}

/// A directive that was given a value and has no effect; to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Which one.
    pub directive: DirectiveId,
    /// Why it has no effect.
    pub reason: &'static str,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no effect: {}", self.directive.name(), self.reason)
    }
}

/// The notes about a configuration: one for each directive that differs from its default without
/// effect.
pub fn notes(config: &Config) -> Vec<Note> {
    DirectiveId::all()
        .filter(|id| !id.directive().is_default(config))
        .filter_map(|directive| match directive.directive().effect() {
            Effect::None(reason) => Some(Note { directive, reason }),
            Effect::Full => None,
        })
        .collect()
}

/// Loads the configuration that `invocation` asks for. `stdin` is the contents of standard input,
/// which the caller has read if [`Invocation::reads_stdin`] says so. Files go before the first list
/// of what is `provided`, and the second goes before files.
pub fn load(
    invocation: &Invocation,
    provided: (&[Provided], &[Provided]),
    stdin: &[u8],
    environment: &dyn LoadEnvironment,
) -> Result<Config, LoadError> {
    let mut loader = Loader::new(environment);
    let (defaults, provided) = provided;
    defaults.iter().try_for_each(|own| loader.provided(own))?;
    if let Some(path) = &invocation.config_file {
        loader.file_or_pattern(path).map_err(|failure| failure.at(None))?;
    }
    provided.iter().try_for_each(|own| loader.provided(own))?;
    loader.text(&Origin::Stdin, stdin)?;
    loader.text(&Origin::CommandLine, &invocation.options)?;
    loader.finish()
}

/// Looks for all that is wrong with a file, where [`load`] ends at the first error. Also gives the
/// configuration of the lines that are right.
pub fn check(path: &[u8], environment: &dyn LoadEnvironment) -> (Config, Vec<LoadError>) {
    let mut loader = Loader::new(environment);
    loader.problems = Some(Vec::new());
    let read = loader.file(path).map_err(|failure| failure.at(None));
    let mut problems = loader.problems.take().unwrap_or_default();
    problems.extend(read.err());
    if loader.config.cluster_enabled
        && let Err(message) = check_cluster(&loader.config)
    {
        problems.push(LoadError { location: None, message: message.to_owned() });
    }
    (loader.config, problems)
}

struct Loader<'a> {
    environment: &'a dyn LoadEnvironment,
    config: Config,
    /// What is wrong, if that is all that is wanted: then reading goes on.
    problems: Option<Vec<LoadError>>,
    /// By index of the directive: whether it was given.
    given: Vec<bool>,
    depth: usize,
    included_files: usize,
}

/// Why a line fails: the line itself is wrong, or a line of a file that it includes.
enum Failure {
    Itself(String),
    Included(LoadError),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Itself(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::Itself(message.to_owned())
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::Included(error)
    }
}

impl Failure {
    /// The error of a line at `location`.
    fn at(self, location: Option<Location>) -> LoadError {
        match self {
            Self::Itself(message) => LoadError { location, message },
            Self::Included(error) => error,
        }
    }
}

/// A line as an error shows it: without what follows the name of a secret, or of a user.
fn without_secrets(line: &[u8]) -> Vec<u8> {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let name = &line[..end];
    let is_secret = match Found::find(name) {
        Some(found) => found.id.directive().is_secret(),
        None => name.eq_ignore_ascii_case(b"user"),
    };
    if is_secret { [name, b" (redacted)"].concat() } else { line.to_vec() }
}

/// Checks what a node of a cluster needs, and what it may not have.
fn check_cluster(config: &Config) -> Result<(), &'static str> {
    if config.replicaof.is_some() {
        return Err("replicaof directive not allowed in cluster mode");
    }
    if config.cluster_etcd.is_empty() {
        return Err("cluster-enabled needs cluster-etcd, the addresses of etcd's members");
    }
    Ok(())
}

impl<'a> Loader<'a> {
    fn new(environment: &'a dyn LoadEnvironment) -> Self {
        Self {
            environment,
            config: Config::default(),
            problems: None,
            given: vec![false; DirectiveId::all().count()],
            depth: 0,
            included_files: 0,
        }
    }

    /// Checks conditions between directives, and fills in defaults that depend on others.
    fn finish(mut self) -> Result<Config, LoadError> {
        let fail = |message| LoadError { location: None, message };
        self.config.dir = self.environment.directory(&self.config.dir).map_err(fail)?;
        if self.config.cluster_enabled {
            check_cluster(&self.config).map_err(|reason| fail(reason.to_owned()))?;
        }
        Ok(self.config)
    }

    fn text(&mut self, origin: &Origin, text: &[u8]) -> Result<(), LoadError> {
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let Err(failure) = self.line(line) else { continue };
            let origin = origin.clone();
            let location = Location { origin, line: index + 1, text: without_secrets(line) };
            let error = failure.at(Some(location));
            match &mut self.problems {
                Some(problems) => problems.push(error),
                None => return Err(error),
            }
        }
        Ok(())
    }

    fn provided(&mut self, own: &Provided) -> Result<(), LoadError> {
        let words: Vec<&[u8]> = own.words.iter().map(Vec::as_slice).collect();
        self.directive(own.directive, &words).map_err(|message| {
            let location = Location { origin: own.origin.clone(), line: 1, text: Vec::new() };
            LoadError { location: Some(location), message }
        })?;
        let value = own.directive.directive().value(&self.config);
        self.config.provided.push((own.directive.name(), value));
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Failure> {
        let words = split_words(line).ok_or(UNBALANCED)?;
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let Some((name, values)) = words.split_first() else { return Ok(()) };
        match Found::find(name) {
            Some(Found { id, .. }) => Ok(self.directive(id, values)?),
            None => self.keyword(&name.to_ascii_lowercase(), values),
        }
    }

    fn directive(&mut self, id: DirectiveId, values: &[&[u8]]) -> Result<(), String> {
        let first = !std::mem::replace(&mut self.given[id.index()], true);
        let directory = self.config.dir.clone();
        id.directive().load(&mut self.config, values, first)?;
        if id.name() == "dir" {
            self.config.dir =
                self.environment.directory(&join_path(&directory, &self.config.dir))?;
        }
        Ok(())
    }

    /// A line of a file that is not a directive.
    fn keyword(&mut self, name: &[u8], values: &[&[u8]]) -> Result<(), Failure> {
        match (name, values) {
            (b"include", [path]) => {
                let path = join_path(&self.config.dir, path);
                self.file_or_pattern(&path)
            }
            (b"rename-command", [from, to]) => self.rename_command(from, to),
            (b"user" | b"role", [_, ..]) => {
                let words = std::iter::once(&name).chain(values);
                self.config.users.push(words.map(|word| word.to_vec()).collect());
                Ok(())
            }
            (b"loadmodule", [_, ..]) => Err("modules cannot be loaded".into()),
            (b"sentinel", _) => Err("there is no sentinel mode".into()),
            (_, [_]) if FORGOTTEN.contains(&name) => Ok(()),
            (_, [value]) if let Some((_, usual)) = FOREIGN.iter().find(|own| own.0 == name) => {
                if value.eq_ignore_ascii_case(usual) {
                    return Ok(());
                }
                let usual = String::from_utf8_lossy(usual);
                Err(format!("it is not offered: only its default '{usual}' is accepted").into())
            }
            _ => Err(unknown(name).into()),
        }
    }

    fn file_or_pattern(&mut self, path: &[u8]) -> Result<(), Failure> {
        if path.iter().any(|byte| b"*?[".contains(byte)) {
            self.environment.glob(path).iter().try_for_each(|path| self.file(path))
        } else {
            self.file(path)
        }
    }

    fn file(&mut self, path: &[u8]) -> Result<(), Failure> {
        if self.depth == CONFIG_INCLUDE_DEPTH {
            let message = format!("files include each other more than {CONFIG_INCLUDE_DEPTH} deep");
            return Err(message.into());
        }
        if self.included_files == CONFIG_INCLUDED_FILES {
            return Err(format!("more than {CONFIG_INCLUDED_FILES} files are included").into());
        }
        let text = self.environment.read(path).map_err(|reason| {
            let path = String::from_utf8_lossy(path);
            format!("Fatal error, can't open config file '{path}': {reason}")
        })?;
        self.depth += 1;
        self.included_files += 1;
        let result = self.text(&Origin::File(path.to_vec()), &text);
        self.depth -= 1;
        Ok(result?)
    }

    fn rename_command(&mut self, from: &[u8], to: &[u8]) -> Result<(), Failure> {
        if !self.answers_to(from) {
            return Err("No such command in rename-command".into());
        }
        if !to.is_empty() && self.answers_to(to) {
            return Err("Target command name already exists".into());
        }
        self.config.renamed_commands.push(RenamedCommand { from: from.to_vec(), to: to.to_vec() });
        Ok(())
    }

    /// Whether some command has this name, after the renamings so far.
    fn answers_to(&self, name: &[u8]) -> bool {
        let mut renamings = self.config.renamed_commands.iter().rev();
        let last = renamings.find_map(|renamed| {
            let given = renamed.to.eq_ignore_ascii_case(name).then_some(true);
            given.or_else(|| renamed.from.eq_ignore_ascii_case(name).then_some(false))
        });
        last.unwrap_or_else(|| self.environment.has_command(name))
    }
}

/// The error about a line that begins with this word.
fn unknown(name: &[u8]) -> String {
    const KEYWORDS: [&str; 5] = ["include", "loadmodule", "rename-command", "sentinel", "user"];
    let name = String::from_utf8_lossy(name);
    let directives = DirectiveId::all().map(|id| id.name());
    match nearest(&name, directives.chain(KEYWORDS)) {
        Some(meant) if *meant != name => format!("{BAD_DIRECTIVE}. Did you mean '{meant}'?"),
        _ => BAD_DIRECTIVE.to_owned(),
    }
}

/// `path`, taken from `dir` when it is relative and `dir` is not simply the current directory.
fn join_path(dir: &[u8], path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") || path.is_empty() || dir == b"." {
        return path.to_vec();
    }
    [dir, b"/", path].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::values::{LogLevel, SaveRule};
    use super::*;
    use proptest::prelude::*;

    const NO_ETCD: &str =
        "etcd's addresses begin with http:// or https://, and have no password in them";

    /// A world of a few files.
    #[derive(Default)]
    struct Files(BTreeMap<&'static str, &'static str>);

    impl LoadEnvironment for Files {
        fn read(&self, path: &[u8]) -> Result<Vec<u8>, String> {
            let text = std::str::from_utf8(path).ok().and_then(|path| self.0.get(path));
            let text = text.ok_or_else(|| "No such file or directory".to_owned())?;
            Ok(text.as_bytes().to_vec())
        }

        fn glob(&self, pattern: &[u8]) -> Vec<Vec<u8>> {
            let paths = self.0.keys().map(|path| path.as_bytes());
            paths.filter(|path| base::glob::matches(pattern, path)).map(<[u8]>::to_vec).collect()
        }

        fn directory(&self, path: &[u8]) -> Result<Vec<u8>, String> {
            if path.starts_with(b"/nowhere") {
                return Err("No such file or directory".to_owned());
            }
            Ok(if path == b"." { b"/here".to_vec() } else { path.to_vec() })
        }

        fn has_command(&self, name: &[u8]) -> bool {
            [&b"get"[..], b"set", b"config"].iter().any(|known| known.eq_ignore_ascii_case(name))
        }
    }

    fn from_arguments(arguments: &[&str]) -> Result<Config, LoadError> {
        from_arguments_and(arguments, &Files::default())
    }

    fn from_arguments_and(arguments: &[&str], files: &Files) -> Result<Config, LoadError> {
        let arguments: Vec<Vec<u8>> =
            arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        let invocation = Invocation::parse(&arguments);
        let stdin: &[u8] = if invocation.reads_stdin { b"save 77 7\nhz 33\n" } else { b"" };
        load(&invocation, (&[], &[]), stdin, files)
    }

    #[test]
    fn all_problems_of_a_file_are_found_at_once() {
        let text = "maxmemroy 1gb\ninclude more\nport 7000\nport x\nrdb-version-check relaxed\n";
        let more = "hz many\nrdb-version-check strict\ninclude none\n";
        let files = Files([("x.conf", text), ("more", more)].into());
        let (config, problems) = check(b"x.conf", &files);
        assert_eq!(config.port, 7000);
        let places = problems.iter().map(|problem| {
            let Location { origin, line, .. } = problem.location.clone().unwrap();
            let Origin::File(file) = origin else { panic!("it is in a file") };
            (String::from_utf8(file).unwrap(), line)
        });
        let expected = [("x.conf", 1), ("more", 1), ("more", 3), ("x.conf", 4), ("x.conf", 5)];
        assert!(places.eq(expected.map(|(file, line)| (file.to_owned(), line))), "{problems:?}");
        assert!(problems[0].message.ends_with("Did you mean 'maxmemory'?"));
        assert_eq!(check(b"nowhere.conf", &files).1.len(), 1);
    }

    fn from_text(text: &'static str) -> Result<Config, LoadError> {
        from_arguments_and(&["x.conf"], &Files([("x.conf", text)].into()))
    }

    fn message(text: &'static str) -> String {
        from_text(text).expect_err(text).message
    }

    #[test]
    fn an_empty_command_line_gives_the_defaults() {
        let config = from_arguments(&[]).unwrap();
        assert_eq!(config, Config { dir: b"/here".to_vec(), ..Config::default() });
        assert_eq!(notes(&config), []);
    }

    #[test]
    fn options_take_words_up_to_the_next_option() {
        let rule = |seconds, changes| SaveRule { seconds, changes };
        for (arguments, expected) in [
            (&["--save", ""][..], vec![]),
            (&["--save"], vec![]),
            (&["--save", "--hz", "5"], vec![]),
            (&["--SAVE", "--hz", "5"], vec![]),
            (&["--save", "100", "10", "200", "20"], vec![rule(100, 10), rule(200, 20)]),
            (&["--save", "100 10"], vec![rule(100, 10)]),
            (&["--save 100 10"], vec![rule(100, 10)]),
            (&["--save", "100 10", "--save", "200", "20"], vec![rule(100, 10), rule(200, 20)]),
            (&["--hz", "5", "-"], vec![rule(77, 7)]),
            (&["-", "--hz", "5"], vec![rule(77, 7)]),
            (&["--#", "x", "--save", "1", "1", "--"], vec![rule(1, 1)]),
        ] {
            assert_eq!(from_arguments(arguments).unwrap().save, expected, "{arguments:?}");
        }
        assert_eq!(from_arguments(&["--requirepass", "--abc"]).unwrap().requirepass, b"--abc");
        assert_eq!(from_arguments(&["--requirepass", "-x"]).unwrap().requirepass, b"-x");
        assert_eq!(from_arguments(&["--requirepass", "a b"]).unwrap().requirepass, b"a b");
        assert_eq!(from_arguments(&["--requirepass", "\"a"]).unwrap().requirepass, b"\"a");
        assert_eq!(from_arguments(&["--requirepass", "a\nb"]).unwrap().requirepass, b"a\nb");
        let config = from_arguments(&["--slaveof", "no", "one", "--port", "6380"]).unwrap();
        assert_eq!((config.port, config.replicaof), (6380, None));
    }

    #[test]
    fn wrong_options_are_reported_as_lines() {
        for (arguments, line, text, message) in [
            (&["--port", "1", "--hz"][..], 2, "hz", "wrong number of arguments"),
            (&["--port", "1", "--hz", "7", "8"], 2, r#"hz "7" "8""#, "wrong number of arguments"),
            (&["--port", "1", "x"], 1, r#"port "1" "x""#, "wrong number of arguments"),
            (&["--port=1"], 1, "port=1", BAD_DIRECTIVE),
            (&["--bogus", "1"], 1, r#"bogus "1""#, BAD_DIRECTIVE),
            (&["-", "x.conf"], 1, r#""x.conf""#, BAD_DIRECTIVE),
            (&["--port", "1", "-", "--hz", "1"], 1, r#"port "1" "-""#, "wrong number of arguments"),
            (&["--port", ""], 1, r#"port """#, "argument couldn't be parsed into an integer"),
            (
                &["--loglevel", "--hz", "5"],
                1,
                r#"loglevel "--hz" "5""#,
                "wrong number of arguments",
            ),
            (&["--", "--hz", "5"], 1, r#""--hz" "5""#, BAD_DIRECTIVE),
            (&["--requirepass \"a b"], 1, "requirepass (redacted)", UNBALANCED),
            (&["--loglevel \"a b"], 1, "loglevel \"a b", UNBALANCED),
            (&["--save", "a", "--hz"], 1, r#"save "a""#, "Invalid save parameters"),
            (&["--save ", "--hz", "5"], 1, r#"save  "--hz" "5""#, "Invalid save parameters"),
        ] {
            let location =
                Location { origin: Origin::CommandLine, line, text: text.as_bytes().to_vec() };
            let error = LoadError { location: Some(location), message: message.to_owned() };
            assert_eq!(from_arguments(arguments), Err(error), "{arguments:?}");
        }
    }

    #[test]
    fn a_file_comes_first_then_stdin_then_options() {
        let files = Files([("x.conf", "save 100 10\nhz 11\nport 1\n")].into());
        let config = from_arguments_and(&["x.conf", "-"], &files).unwrap();
        assert_eq!((config.hz, config.port, config.save.len()), (33, 1, 2));
        let config =
            from_arguments_and(&["x.conf", "--hz", "44", "--save", "1 1"], &files).unwrap();
        assert_eq!((config.hz, config.save.len()), (44, 2));
        let config = from_arguments_and(&["x.conf", "hz", "7"], &files).unwrap();
        assert_eq!(config.hz, 7);
        let error = from_arguments_and(&["y.conf"], &files).unwrap_err();
        assert_eq!(
            error.message,
            "Fatal error, can't open config file 'y.conf': No such file or directory"
        );
    }

    #[test]
    fn files_include_files() {
        let files = Files(
            [
                ("a.conf", "# one\n\ninclude sub/*.conf\nhz 7\ninclude /etc/b.conf\n"),
                ("/etc/b.conf", "port 7\nloglevel WARNING\n"),
                ("sub/1.conf", "maxmemory 5mb\nhz 99"),
                ("sub/2.conf", "maxmemory 6mb\r\n"),
                ("self.conf", "include self.conf"),
                ("bad.conf", "include none/*.conf\ninclude sub/3.conf"),
                ("sub/3.conf", "dir /data\n  zzz  1\n"),
                ("moved.conf", "dir /data\ninclude c.conf"),
                ("/data/c.conf", "port 9\ndir sub"),
            ]
            .into(),
        );
        let config = from_arguments_and(&["a.conf"], &files);
        // sub/3.conf is among the files of the pattern, and wrong.
        let location = Location {
            origin: Origin::File(b"sub/3.conf".to_vec()),
            line: 2,
            text: b"zzz  1".to_vec(),
        };
        let error = LoadError { location: Some(location), message: BAD_DIRECTIVE.to_owned() };
        assert_eq!(config, Err(error.clone()));
        assert_eq!(from_arguments_and(&["bad.conf"], &files), Err(error.clone()));
        assert_eq!(
            error.to_string(),
            format!(
                "*** FATAL CONFIG FILE ERROR (Dunlin {}) ***\n\
                 Reading the configuration file, at line 2 of sub/3.conf\n\
                 >>> 'zzz  1'\n\
                 Bad directive or wrong number of arguments",
                env!("CARGO_PKG_VERSION")
            )
        );
        let config = from_arguments_and(&["/etc/b.conf", "--include", "sub/[12].conf"], &files);
        let config = config.unwrap();
        assert_eq!((config.maxmemory, config.hz, config.port), (6 << 20, 99, 7));
        assert_eq!(config.loglevel, LogLevel::Warning);
        let deep = from_arguments_and(&["self.conf"], &files).unwrap_err();
        assert_eq!(deep.message, "files include each other more than 16 deep");
        let moved = from_arguments_and(&["moved.conf"], &files).unwrap();
        assert_eq!((moved.port, moved.dir.as_slice()), (9, &b"/data/sub"[..]));
    }

    #[test]
    fn lines_are_read_as_the_reference_does() {
        let text = "PORT 77\n\t\"hz\"\t5 \r\n # comment\n#\nslowlog-max-len '7'\n\
                    requirepass \"\\x41 b\"\nlist-max-ziplist-entries 3\nslave-priority 7\n\
                    save\nbind\nclient-output-buffer-limit\nsave 1 1\nsave \"2 2\"\n\
                    user default on nopass sanitize-payload ~* &* +@all\nunixsocketperm 0755";
        let config = from_text(text).unwrap();
        assert_eq!((config.port, config.hz, config.slowlog_max_len), (77, 5, 7));
        assert_eq!(config.requirepass, b"A b");
        assert_eq!(config.replica_priority, 7);
        assert_eq!((config.save.len(), config.bind.len()), (2, 0));
        assert_eq!(config.unixsocketperm, 0o755);
        for (text, error) in [
            ("port \"77", UNBALANCED),
            ("port 77 # comment", "wrong number of arguments"),
            ("port", "wrong number of arguments"),
            ("port 77;", "argument couldn't be parsed into an integer"),
            ("\"\" a", BAD_DIRECTIVE),
            ("foo.bar 1", BAD_DIRECTIVE),
            ("include", BAD_DIRECTIVE),
            ("rename-command get", BAD_DIRECTIVE),
            ("user", BAD_DIRECTIVE),
            ("vm-enabled no", BAD_DIRECTIVE),
            ("save 3600 1 \"\"", "Invalid save parameters"),
            ("dir /nowhere", "No such file or directory"),
            ("replicaof 127.0.0.1 x", "Invalid master port"),
            (
                "cluster-enabled yes",
                "cluster-enabled needs cluster-etcd, the addresses of etcd's members",
            ),
            (
                "cluster-enabled yes\ncluster-etcd http://a:1\nreplicaof h 1",
                "replicaof directive not allowed in cluster mode",
            ),
            ("cluster-etcd a:2379", NO_ETCD),
            ("cluster-etcd http://a:1,", NO_ETCD),
            ("cluster-etcd http://u:secret@a:1", NO_ETCD),
            (
                "cluster-name a/b",
                "a cluster's name consists of letters, digits, dots, hyphens and underscores",
            ),
            ("databases 0", "argument must be between 1 and 2147483647 inclusive"),
            ("loadmodule /x.so", "modules cannot be loaded"),
        ] {
            assert_eq!(message(text), error, "{text}");
        }
    }

    #[test]
    fn commands_are_renamed_in_order() {
        let text = "rename-command GET fetch\nrename-command set get\nrename-command config \"\"";
        let names: Vec<_> = from_text(text).unwrap().renamed_commands;
        assert_eq!(names.len(), 3);
        assert_eq!(names[2], RenamedCommand { from: b"config".to_vec(), to: Vec::new() });
        assert_eq!(message("rename-command nosuch x"), "No such command in rename-command");
        assert_eq!(message("rename-command get SET"), "Target command name already exists");
        assert_eq!(
            message("rename-command get a\nrename-command get b"),
            "No such command in rename-command"
        );
    }

    #[test]
    fn directives_without_effect_are_noted() {
        let config = from_text("io-threads 4\nalways-show-logo yes\nactivedefrag no").unwrap();
        let notes: Vec<String> = notes(&config).iter().map(ToString::to_string).collect();
        assert_eq!(notes.len(), 2);
        assert_eq!(
            notes[0],
            "io-threads has no effect: every thread serves clients already; see `threads`"
        );
    }

    proptest! {
        #[test]
        fn any_text_loads_or_is_refused(stdin: Vec<u8>, arguments: Vec<Vec<u8>>) {
            let _ = load(&Invocation::parse(&arguments), (&[], &[]), &stdin, &Files::default());
        }

        #[test]
        fn any_value_loads_or_is_refused(
            index in 0..DirectiveId::all().count(),
            words in prop::collection::vec("[-+%0-9a-z. \"]{0,9}", 0..5),
        ) {
            let id = DirectiveId::all().nth(index).unwrap();
            let stdin = format!("{} {}", id.name(), words.join(" "));
            let _ = load(&Invocation::default(), (&[], &[]), stdin.as_bytes(), &Files::default());
        }
    }
}
