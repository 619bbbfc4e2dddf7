//! What the user wants: the options of redis-cli, and a few of our own.

use std::io::{self, IsTerminal};
use std::time::Duration;

use lab::bench::redis_address;
use lab::load::{Address, Encryption};

use crate::format::{Delimiters, Form};
use crate::quote::unquoted;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One command, or those that are typed.
    Commands,
    /// Raw commands from standard input.
    Pipe,
    /// The names of keys.
    Scan,
    /// The keys with the most elements.
    BigKeys,
    /// The keys that take the most memory.
    MemoryKeys,
    /// Both, with distributions.
    KeyStats,
    /// The keys that are used most often.
    HotKeys,
    /// A line of figures again and again.
    Stat,
    /// How long a PING takes.
    Latency,
    /// The same in spans of time.
    LatencyHistory,
    /// The same as a spectrum.
    LatencySpectrum,
    /// All data, or all functions, as an RDB file.
    Dump { file: Vec<u8>, functions: bool },
    /// What a primary sends to its replicas.
    Replica,
    /// A script.
    Eval(Vec<u8>),
    /// The commands of other clients; those that these patterns admit.
    Monitor,
}

/// Which addresses of a name are tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    V4,
    V6,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) address: Address,
    pub(crate) preference: Option<Preference>,
    /// For a connection to open; none if it may take as long as the system lets it.
    pub(crate) timeout: Option<Duration>,
    /// How often the command is run; below zero without an end.
    pub(crate) repeat: i64,
    pub(crate) interval: Duration,
    /// The protocol that HELLO asks for.
    pub(crate) protocol: Option<u8>,
    /// The protocol is not asked for by name, so that a server without it is no problem.
    pub(crate) protocol_is_implied: bool,
    pub(crate) form: Form,
    pub(crate) delimiters: Delimiters,
    pub(crate) colors: bool,
    pub(crate) last_from_input: bool,
    pub(crate) tag_from_input: Option<Vec<u8>>,
    pub(crate) quoted_input: bool,
    pub(crate) cluster: bool,
    pub(crate) fails_with_command: bool,
    pub(crate) verbose: bool,
    pub(crate) shows_pushes: bool,
    pub(crate) asks_password: bool,
    pub(crate) warns_of_password: bool,
    pub(crate) keeps_history: bool,
    pub(crate) mode: Mode,
    pub(crate) pattern: Option<Vec<u8>>,
    pub(crate) count: u64,
    pub(crate) cursor: u64,
    pub(crate) top: usize,
    pub(crate) memory_samples: Option<u64>,
    /// None: without an end.
    pub(crate) pipe_timeout: Option<Duration>,
    /// What stands after the options.
    pub(crate) words: Vec<Vec<u8>>,
}

/// A parsed command line.
#[derive(Debug)]
pub(crate) enum Invocation {
    Help,
    Version,
    Run(Box<Options>),
}

impl Default for Options {
    fn default() -> Self {
        let is_terminal = io::stdout().is_terminal();
        Options {
            address: Address::default(),
            preference: None,
            timeout: None,
            repeat: 1,
            interval: Duration::ZERO,
            protocol: None,
            protocol_is_implied: false,
            form: if is_terminal { Form::Standard } else { Form::Raw },
            delimiters: Delimiters { elements: b"\n".to_vec(), replies: b"\n".to_vec() },
            colors: is_terminal
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && std::env::var_os("TERM").is_none_or(|value| value != "dumb"),
            last_from_input: false,
            tag_from_input: None,
            quoted_input: false,
            cluster: false,
            fails_with_command: false,
            verbose: false,
            shows_pushes: is_terminal,
            asks_password: false,
            warns_of_password: true,
            keeps_history: true,
            mode: Mode::Commands,
            pattern: None,
            count: 10,
            cursor: 0,
            top: 10,
            memory_samples: None,
            pipe_timeout: Some(Duration::from_secs(30)),
            words: Vec::new(),
        }
    }
}

/// What redis-cli has and this tool has not, and what to use.
const ABSENT: &[(&str, &str)] = &[
    ("--cluster", "redis-cli --cluster; -c follows redirections"),
    ("--intrinsic-latency", "redis-cli --intrinsic-latency on the server's machine"),
    ("--lru-test", "dunlin bench --mix get:80,set:20 --keys zipf:1000000:0.99"),
    ("--ldb", "redis-cli --ldb, and a Redis for the trial"),
    ("--ldb-sync-mode", "redis-cli --ldb-sync-mode, and a Redis for the trial"),
    ("--test_hint", "the prompt, which shows hints"),
    ("--test_hint_file", "the prompt, which shows hints"),
];

/// The words after an option.
struct Words<'a> {
    words: std::slice::Iter<'a, Vec<u8>>,
    option: String,
}

impl<'a> Words<'a> {
    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let missing =
            || format!("Unrecognized option or bad number of args for: '{}'", self.option);
        self.words.next().map(Vec::as_slice).ok_or_else(missing)
    }

    fn text(&mut self) -> Result<String, String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, String> {
        let text = self.text()?;
        text.trim().parse().map_err(|_| format!("{}: '{text}' is not {what}", self.option))
    }

    fn seconds(&mut self) -> Result<Duration, String> {
        let (text, option) = (self.text()?, &self.option);
        let seconds = text.trim().parse().ok();
        let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        duration.ok_or_else(|| format!("Invalid number of seconds for {option}: '{text}'"))
    }
}

/// Parses a command line, without the words `dunlin cli`.
pub(crate) fn parse(arguments: &[Vec<u8>]) -> Result<Invocation, String> {
    let mut options = Options::default();
    let mut encryption = Encryption::default();
    let mut words = Words { words: arguments.iter(), option: String::new() };
    let mut begun = words.words.clone();
    while let Some(word) = words.words.next() {
        if !word.starts_with(b"-") {
            options.words = begun.cloned().collect();
            break;
        }
        words.option = String::from_utf8_lossy(word).into_owned();
        match &*words.option {
            "--help" => return Ok(Invocation::Help),
            "-h" if words.words.len() == 0 => return Ok(Invocation::Help),
            "-v" | "--version" => return Ok(Invocation::Version),
            _ => {}
        }
        let option = words.option.clone();
        let is_known = connecting(&mut options, &mut words)?
            || encryption.take_option(&option, || words.text())?
            || running(&mut options, &mut words)?
            || modes(&mut options, &mut words)?;
        if !is_known {
            if let Some((_, instead)) = ABSENT.iter().find(|(name, _)| *name == option) {
                return Err(format!("'{option}' is not part of dunlin cli: use {instead}"));
            }
            return Err(format!("Unrecognized option or bad number of args for: '{option}'"));
        }
        begun = words.words.clone();
    }
    settle(&mut options, encryption)?;
    Ok(Invocation::Run(Box::new(options)))
}

/// Where the server is and how to enter.
fn connecting(options: &mut Options, words: &mut Words<'_>) -> Result<bool, String> {
    let address = &mut options.address;
    match &*words.option {
        "-h" => address.host = words.text()?,
        "-p" => {
            let port = words.text()?.parse().map_err(|_| "Invalid server port.".to_owned());
            address.port = port?;
        }
        "-t" => {
            let invalid = |_| "Invalid connection timeout for -t.".to_owned();
            let timeout = words.seconds().map_err(invalid)?;
            options.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        }
        "-s" => address.socket = Some(words.text()?),
        "-a" | "--pass" => address.password = Some(words.text()?),
        "--user" => address.user = Some(words.text()?),
        "--askpass" => options.asks_password = true,
        "--no-auth-warning" => options.warns_of_password = false,
        "-u" => {
            let own = redis_address(&words.text()?)?;
            address.host = own.host;
            address.port = own.port;
            address.database = own.database;
            address.user = own.user.or_else(|| address.user.take());
            address.password = own.password.or_else(|| address.password.take());
            address.encryption = own.encryption.or_else(|| address.encryption.take());
        }
        "-n" => address.database = words.number("the number of a database")?,
        "-4" => options.preference = Some(Preference::V4),
        "-6" => options.preference = Some(Preference::V6),
        "-2" => options.protocol = Some(2),
        "-3" => options.protocol = Some(3),
        "-c" => options.cluster = true,
        "--tls" => drop(address.encryption.get_or_insert_default()),
        _ => return Ok(false),
    }
    Ok(true)
}

/// How commands are run and replies printed.
fn running(options: &mut Options, words: &mut Words<'_>) -> Result<bool, String> {
    match &*words.option {
        "-r" => options.repeat = words.number("a number of times")?,
        "-i" => options.interval = words.seconds()?,
        "-x" => options.last_from_input = true,
        "-X" => options.tag_from_input = Some(words.bytes()?.to_vec()),
        "-d" => options.delimiters.elements = words.bytes()?.to_vec(),
        "-D" => options.delimiters.replies = words.bytes()?.to_vec(),
        "-e" => options.fails_with_command = true,
        "--verbose" => options.verbose = true,
        "--quoted-input" => options.quoted_input = true,
        "--raw" => options.form = Form::Raw,
        "--no-raw" => options.form = Form::Standard,
        "--csv" => options.form = Form::Csv,
        "--json" | "--quoted-json" => {
            options.form = if words.option == "--json" { Form::Json } else { Form::QuotedJson };
        }
        "--show-pushes" => {
            let text = words.text()?;
            options.shows_pushes = match text.chars().next() {
                Some('y' | 'Y') => true,
                Some('n' | 'N') => false,
                _ => {
                    return Err(format!(
                        "Unknown --show-pushes value '{text}' (valid: '[y]es', '[n]o')"
                    ));
                }
            };
        }
        "--no-history" => options.keeps_history = false,
        "--no-color" => options.colors = false,
        _ => return Ok(false),
    }
    Ok(true)
}

fn modes(options: &mut Options, words: &mut Words<'_>) -> Result<bool, String> {
    options.mode = match &*words.option {
        "--pipe" => Mode::Pipe,
        "--scan" => Mode::Scan,
        "--bigkeys" => Mode::BigKeys,
        "--memkeys" => Mode::MemoryKeys,
        "--memkeys-samples" => {
            options.memory_samples = Some(words.number("a number of elements")?);
            Mode::MemoryKeys
        }
        "--keystats" => Mode::KeyStats,
        "--keystats-samples" => {
            options.memory_samples = Some(words.number("a number of elements")?);
            Mode::KeyStats
        }
        "--hotkeys" => Mode::HotKeys,
        "--stat" => Mode::Stat,
        "--latency" => Mode::Latency,
        "--latency-history" => Mode::LatencyHistory,
        "--latency-dist" => Mode::LatencySpectrum,
        "--rdb" => Mode::Dump { file: words.bytes()?.to_vec(), functions: false },
        "--functions-rdb" => Mode::Dump { file: words.bytes()?.to_vec(), functions: true },
        "--replica" | "--slave" => Mode::Replica,
        "--eval" => Mode::Eval(words.bytes()?.to_vec()),
        "--monitor" => Mode::Monitor,
        _ => return refinements(options, words),
    };
    Ok(true)
}

/// What a mode is to be done with.
fn refinements(options: &mut Options, words: &mut Words<'_>) -> Result<bool, String> {
    match &*words.option {
        "--pattern" => options.pattern = Some(words.bytes()?.to_vec()),
        "--quoted-pattern" => {
            let pattern = unquoted(words.bytes()?);
            options.pattern =
                Some(pattern.ok_or("Invalid quoted string specified for --quoted-pattern.")?);
        }
        "--count" => options.count = words.number("a number of keys")?,
        "--cursor" => options.cursor = words.number("a cursor")?,
        "--top" => options.top = words.number("a number of keys")?,
        "--pipe-timeout" => {
            let timeout = words.seconds()?;
            options.pipe_timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// What follows from several options together, and what excludes each other.
fn settle(options: &mut Options, encryption: Encryption) -> Result<(), String> {
    let address = &mut options.address;
    if options.last_from_input && options.tag_from_input.is_some() {
        return Err("Options -x and -X are mutually exclusive.".to_owned());
    }
    if options.cluster && address.socket.is_some() {
        return Err("Options -c and -s are mutually exclusive.".to_owned());
    }
    match &mut address.encryption {
        Some(_) if address.socket.is_some() => {
            return Err("Options --tls and -s are mutually exclusive.".to_owned());
        }
        Some(own) => *own = encryption,
        None if encryption == Encryption::default() => {}
        None => return Err("Certificates need --tls or a rediss:// URI.".to_owned()),
    }
    let is_json = matches!(options.form, Form::Json | Form::QuotedJson);
    if is_json && options.protocol.is_none() {
        options.protocol = Some(3);
        options.protocol_is_implied = true;
    }
    options.colors &= options.form == Form::Standard;
    let takes_words = matches!(options.mode, Mode::Commands | Mode::Eval(_) | Mode::Monitor);
    if let Some(word) = options.words.first().filter(|_| !takes_words) {
        let word = String::from_utf8_lossy(word);
        return Err(format!("this mode takes no command, but there is '{word}'"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        match parse(&words)? {
            Invocation::Run(options) => Ok(*options),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn options_end_where_the_command_begins() {
        let options = parsed("-h there -p 7 -n 2 -r 3 -i 0.5 -3 set -x 1").unwrap();
        assert_eq!((&*options.address.host, options.address.port), ("there", 7));
        assert_eq!((options.address.database, options.repeat), (2, 3));
        assert_eq!((options.interval, options.protocol), (Duration::from_millis(500), Some(3)));
        assert_eq!(options.words, [&b"set"[..], b"-x", b"1"]);
        assert!(!options.last_from_input);
    }

    #[test]
    fn json_implies_a_protocol_that_others_name() {
        let options = parsed("--json get k").unwrap();
        assert_eq!((options.protocol, options.protocol_is_implied), (Some(3), true));
        let options = parsed("-2 --quoted-json get k").unwrap();
        assert_eq!((options.protocol, options.protocol_is_implied), (Some(2), false));
    }

    #[test]
    fn uris_and_certificates() {
        let options = parsed("-u rediss://ann:pw@h:7/3 --cacert ca.pem ping").unwrap();
        let address = options.address;
        assert_eq!((&*address.host, address.port, address.database), ("h", 7, 3));
        assert_eq!(address.user.as_deref(), Some("ann"));
        assert_eq!(address.encryption.unwrap().authority.as_deref(), Some("ca.pem"));
        assert!(parsed("--cacert ca.pem ping").is_err());
    }

    #[test]
    fn what_is_refused_says_why() {
        for (line, why) in [
            ("--zz", "Unrecognized option"),
            ("-p", "bad number of args"),
            ("-p x", "Invalid server port."),
            ("-x -X tag set k tag", "mutually exclusive"),
            ("-c -s /x ping", "mutually exclusive"),
            ("--show-pushes maybe", "'maybe'"),
            ("--cluster info", "redis-cli --cluster"),
            ("--lru-test 100", "dunlin bench"),
            ("--scan get k", "'get'"),
            ("-t x ping", "Invalid connection timeout"),
            ("--quoted-pattern \"a", "--quoted-pattern"),
        ] {
            let error = parsed(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
