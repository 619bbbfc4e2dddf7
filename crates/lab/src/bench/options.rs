//! The command line of `dunlin bench`: the options of redis-benchmark, and further ones.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use super::url;
use crate::load::{Address, Encryption, Keys, Mix, Schedule, Sizes, TESTS, Test};

/// All that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub(super) address: Address,
    /// How connections are encrypted, if they are to be; [`parse`] puts it into the address.
    encryption: Encryption,
    pub(super) clients: usize,
    /// `-n`, if it was given.
    pub(super) requests: Option<u64>,
    pub(super) threads: Option<usize>,
    pub(super) pipeline: usize,
    pub(super) keep_alive: bool,
    pub(super) data: Option<usize>,
    pub(super) random: Option<u64>,
    pub(super) tests: Vec<&'static Test>,
    pub(super) command: Vec<String>,
    pub(super) last_from_input: bool,
    pub(super) protocol: u8,
    pub(super) tracking: bool,
    pub(super) quiet: bool,
    pub(super) shows_errors: bool,
    pub(super) csv: bool,
    pub(super) precision: usize,
    pub(super) repeat: bool,
    pub(super) idle: bool,
    pub(super) seed: u64,
    // Options that redis-benchmark does not have.
    pub(super) rate: Option<f64>,
    pub(super) schedule: Option<Schedule>,
    pub(super) seconds: Option<f64>,
    pub(super) warmup: f64,
    pub(super) think: Option<f64>,
    pub(super) mix: Option<(String, Mix)>,
    pub(super) keys: Option<Keys>,
    pub(super) sizes: Option<Sizes>,
    pub(super) ttl: Option<f64>,
    pub(super) reconnect: bool,
    pub(super) cluster: bool,
    pub(super) urls: Vec<url::Http>,
    pub(super) method: Option<String>,
    pub(super) body: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) json: Option<PathBuf>,
    pub(super) hlog: Option<PathBuf>,
    pub(super) agents: Vec<String>,
    pub(super) token_file: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            address: Address::default(),
            encryption: Encryption::default(),
            clients: 50,
            requests: None,
            threads: None,
            pipeline: 1,
            keep_alive: true,
            data: None,
            random: None,
            tests: Vec::new(),
            command: Vec::new(),
            last_from_input: false,
            protocol: 2,
            tracking: false,
            quiet: false,
            shows_errors: false,
            csv: false,
            precision: 3,
            repeat: false,
            idle: false,
            seed: 1,
            rate: None,
            schedule: None,
            seconds: None,
            warmup: 0.0,
            think: None,
            mix: None,
            keys: None,
            sizes: None,
            ttl: None,
            reconnect: false,
            cluster: false,
            urls: Vec::new(),
            method: None,
            body: None,
            headers: BTreeMap::new(),
            json: None,
            hlog: None,
            agents: Vec::new(),
            token_file: None,
        }
    }
}

/// A parsed command line.
#[derive(Debug, PartialEq)]
pub(super) enum Invocation {
    Help,
    Version,
    Bench(Box<Options>),
}

/// The words after an option.
struct Words<'a> {
    words: std::iter::Peekable<std::slice::Iter<'a, String>>,
    option: &'a str,
}

impl<'a> Words<'a> {
    fn text(&mut self) -> Result<&'a str, String> {
        match self.words.next() {
            Some(word) => Ok(word),
            None => Err(format!("Invalid option \"{}\" or option argument missing", self.option)),
        }
    }

    /// A value with a short form.
    fn value<T: FromStr<Err: std::fmt::Display>>(&mut self) -> Result<T, String> {
        let option = self.option;
        self.text()?.parse().map_err(|error| format!("{option}: {error}"))
    }

    fn number<T: FromStr + PartialOrd>(&mut self, from: T, what: &str) -> Result<T, String> {
        let (option, text) = (self.option, self.text()?);
        let number = text.parse().ok().filter(|number| *number >= from);
        number.ok_or_else(|| format!("{option}: '{text}' is not {what}"))
    }

    /// Seconds, which may have a unit: `2`, `0.5`, `100ms`, `3m`.
    fn seconds(&mut self) -> Result<f64, String> {
        let (option, text) = (self.option, self.text()?);
        crate::load::duration::parse(text)
            .ok_or_else(|| format!("{option}: '{text}' is no time: use 10, 2.5s, 100ms or 5m"))
    }
}

/// Parses a command line, without the words `dunlin bench`.
pub(super) fn parse(arguments: &[String]) -> Result<Invocation, String> {
    let mut options = Options::default();
    let mut words = Words { words: arguments.iter().peekable(), option: "" };
    while let Some(word) = words.words.next_if(|word| word.starts_with('-')) {
        words.option = word;
        match &word[..] {
            "--help" => return Ok(Invocation::Help),
            "--version" | "-v" => return Ok(Invocation::Version),
            _ => {}
        }
        let is_known = compatible(&mut options, &mut words)? || own(&mut options, &mut words)?;
        if !is_known {
            return Err(format!("Invalid option \"{word}\" or option argument missing"));
        }
    }
    options.command = words.words.cloned().collect();
    refuse_contradictions(&options)?;
    if options.urls.iter().any(|url| url.encrypted) {
        options.address.encryption.get_or_insert_default();
    }
    if let Some(encryption) = &mut options.address.encryption {
        encryption.clone_from(&options.encryption);
    } else if options.encryption != Encryption::default() {
        return Err("certificates need --tls, rediss:// or https://".to_owned());
    }
    Ok(Invocation::Bench(Box::new(options)))
}

/// The options of redis-benchmark.
fn compatible(options: &mut Options, words: &mut Words) -> Result<bool, String> {
    let address = &mut options.address;
    match words.option {
        "-h" => words.text()?.clone_into(&mut address.host),
        "-p" => address.port = words.number(0, "a port")?,
        "-s" => address.socket = Some(words.text()?.to_owned()),
        "-a" | "--pass" => address.password = Some(words.text()?.to_owned()),
        "--user" => address.user = Some(words.text()?.to_owned()),
        "-u" => url::redis(words.text()?, address)?,
        "--dbnum" => address.database = words.number(0, "the number of a database")?,
        "-c" => options.clients = words.number(1, "a number of connections")?,
        "-n" => options.requests = Some(words.number(1, "a number of requests")?),
        "-d" => {
            let size: usize = words.number(0, "a size in bytes")?;
            options.data = Some(size.clamp(1, 1 << 30));
        }
        "-3" => options.protocol = 3,
        "--threads" => {
            options.threads = Some(words.number(0, "a number of threads")?).filter(|&n| n > 0);
        }
        "--enable-tracking" => options.tracking = true,
        "-k" => options.keep_alive = words.number(0u64, "0 or 1")? != 0,
        "-r" => {
            // As in redis-benchmark: with no keys, or fewer, the first is the only one.
            let count = words.number(i64::MIN, "a number of keys")?;
            options.random = Some(u64::try_from(count).unwrap_or(0).max(1));
        }
        "-P" => options.pipeline = words.number(1, "a number of requests")?,
        "-q" => options.quiet = true,
        // redis-benchmark accepts it and ignores it.
        "-e" => options.shows_errors = true,
        "--precision" => options.precision = words.number(0, "a number of digits")?.clamp(3, 6),
        "--csv" => options.csv = true,
        "-l" => options.repeat = true,
        "-t" => {
            for name in words.text()?.split(',').filter(|name| !name.is_empty()) {
                let before = options.tests.len();
                options.tests.extend(Test::named(name));
                if options.tests.len() == before {
                    return Err(format!(
                        "-t: there is no test '{name}'. The tests are {}",
                        tests()
                    ));
                }
            }
        }
        "-I" => options.idle = true,
        "-x" => options.last_from_input = true,
        "--seed" => options.seed = words.number(0, "a number")?,
        "--tls" => {
            address.encryption.get_or_insert_default();
        }
        "--cluster" => options.cluster = true,
        option => return options.encryption.take_option(option, || words.text()),
    }
    Ok(true)
}

/// The names of all tests, as `-t` takes them.
fn tests() -> String {
    let mut names: Vec<&str> = Vec::new();
    for test in TESTS {
        for name in test.groups.iter().chain([&test.name]) {
            if !names.contains(name) {
                names.push(name);
            }
        }
    }
    names.join(", ")
}

/// The options that redis-benchmark does not have.
fn own(options: &mut Options, words: &mut Words) -> Result<bool, String> {
    match words.option {
        "--rate" => options.rate = Some(words.number(0.001, "a number of requests a second")?),
        "--schedule" => options.schedule = Some(words.value()?),
        "--duration" => options.seconds = Some(words.seconds()?),
        "--warmup" => options.warmup = words.seconds()?,
        "--think" => options.think = Some(words.seconds()?),
        "--mix" => {
            let text = words.text()?;
            let mix = text.parse().map_err(|error| format!("--mix: {error}"))?;
            options.mix = Some((text.to_owned(), mix));
        }
        "--keys" => options.keys = Some(words.value()?),
        "--size" => options.sizes = Some(words.value()?),
        "--ttl" => options.ttl = Some(words.seconds()?).filter(|seconds| *seconds > 0.0),
        "--reconnect" => options.reconnect = true,
        "--http" => {
            let is_url = |word: &&String| !word.starts_with('-');
            while let Some(url) = words.words.next_if(is_url) {
                options.urls.push(url::http(url)?);
            }
            if options.urls.is_empty() {
                return Err("--http: give one or more URLs".to_owned());
            }
        }
        "--method" => options.method = Some(words.text()?.to_uppercase()),
        "--body" => options.body = Some(words.text()?.to_owned()),
        "--header" => {
            let text = words.text()?;
            let Some((name, value)) = text.split_once(':') else {
                return Err(format!("--header: '{text}' is no header: use 'Name: value'"));
            };
            options.headers.insert(name.trim().to_owned(), value.trim().to_owned());
        }
        "--json" => options.json = Some(words.text()?.into()),
        "--hlog" => options.hlog = Some(words.text()?.into()),
        "--agents" => {
            let names = words.text()?.split(',').filter(|name| !name.is_empty());
            options.agents = names.map(str::to_owned).collect();
        }
        "--token-file" => options.token_file = Some(words.text()?.into()),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Options that exclude each other, or mean nothing without another.
fn refuse_contradictions(options: &Options) -> Result<(), String> {
    let is_http = !options.urls.is_empty();
    let has_command = !options.command.is_empty();
    let rules = [
        (options.random.is_some() && options.keys.is_some(), "-r and --keys both say which keys"),
        (options.data.is_some() && options.sizes.is_some(), "-d and --size both say which sizes"),
        (options.rate.is_some() && options.think.is_some(), "--think has no meaning with --rate"),
        (options.schedule.is_some() && options.rate.is_none(), "--schedule needs --rate"),
        (options.mix.is_some() && has_command, "--mix and a command exclude each other"),
        (options.mix.is_some() && !options.tests.is_empty(), "--mix and -t exclude each other"),
        (is_http && has_command, "--http and a command exclude each other"),
        (is_http && options.mix.is_some(), "--http and --mix exclude each other"),
        (is_http && !options.tests.is_empty(), "--http and -t exclude each other"),
        (
            is_http && options.address.password.is_some(),
            "-a is for the Redis protocol: use --header",
        ),
        (is_http && options.protocol == 3, "-3 is for the Redis protocol"),
        (is_http && options.tracking, "--enable-tracking is for the Redis protocol"),
        (is_http && options.cluster, "--cluster is for the Redis protocol"),
        (options.idle && options.cluster, "-I opens connections to one server"),
        (is_http && options.ttl.is_some(), "--ttl is for the Redis protocol"),
        (!is_http && options.method.is_some(), "--method needs --http"),
        (!is_http && options.body.is_some(), "--body needs --http"),
        (!is_http && !options.headers.is_empty(), "--header needs --http"),
        (
            options.repeat && options.json.is_some(),
            "-l never ends, so that --json is never written",
        ),
        (
            options.repeat && options.hlog.is_some(),
            "-l never ends, so that --hlog is never written",
        ),
        (options.last_from_input && !has_command, "-x needs a command, which the input completes"),
        (options.token_file.is_some() && options.agents.is_empty(), "--token-file needs --agents"),
        (
            options.address.encryption.is_some() && options.address.socket.is_some(),
            "-s and --tls exclude each other",
        ),
        (
            is_http && options.address.encryption.is_some(),
            "--tls is for the Redis protocol: use https://",
        ),
        (options.idle && !options.agents.is_empty(), "-I and --agents exclude each other"),
    ];
    match rules.iter().find(|(applies, _)| *applies) {
        Some((_, text)) => Err((*text).to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match parse(&words)? {
            Invocation::Bench(options) => Ok(*options),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn options_end_where_the_command_begins() {
        let options = parsed("-h there -p 7 -n 10 -c 2 -P 3 -r 100 set -x __rand_int__").unwrap();
        assert_eq!(options.address.host, "there");
        assert_eq!((options.address.port, options.requests), (7, Some(10)));
        assert_eq!((options.clients, options.pipeline, options.random), (2, 3, Some(100)));
        assert_eq!(options.command, ["set", "-x", "__rand_int__"]);
        assert!(!options.last_from_input);
    }

    #[test]
    fn tests_are_found_by_name_and_unknown_ones_are_refused() {
        let options = parsed("-t ping,SET").unwrap();
        let names: Vec<&str> = options.tests.iter().map(|test| test.name).collect();
        assert_eq!(names, ["ping_inline", "ping_mbulk", "set"]);
        let refused = parsed("-t set,nothing").unwrap_err();
        assert!(
            refused.starts_with("-t: there is no test 'nothing'. The tests are ping"),
            "{refused}"
        );
        assert!(refused.contains(", tls_resume"), "{refused}");
    }

    #[test]
    fn what_is_not_there_is_refused() {
        assert!(parsed("--cluster --http http://a/").unwrap_err().contains("Redis protocol"));
        assert!(parsed("-zz").unwrap_err().starts_with("Invalid option \"-zz\""));
        assert!(parsed("-n").unwrap_err().contains("option argument missing"));
    }

    #[test]
    fn connections_are_encrypted_as_is_asked_for() {
        let options = parsed("--tls --cacert ca.pem --cert c --key k --sni other").unwrap();
        let own = options.address.encryption.unwrap();
        assert_eq!(
            (own.authority.as_deref(), own.name.as_deref()),
            (Some("ca.pem"), Some("other"))
        );
        assert!(!own.insecure);
        let options = parsed("--insecure -u rediss://h").unwrap();
        assert!(options.address.encryption.unwrap().insecure);
        let options = parsed("--cacert ca.pem --http https://h/").unwrap();
        assert!(options.address.encryption.unwrap().authority.is_some());
        for line in ["--cacert ca.pem", "--tls -s socket", "--tls --http http://h/"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for line in [
            "-r 5 --keys uniform:5",
            "-d 5 --size 5",
            "--rate 5 --think 1",
            "--schedule constant",
            "--mix get:1 ping",
            "--mix get:1 -t get",
            "--http http://h/ ping",
            "--http http://h/ -a x",
            "--method GET",
            "-x -t get",
            "-l --json x",
            "-c 0",
            "-n x",
            "-P 0",
        ] {
            // A URL takes the words after it, which are then not URLs.
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn our_own_options_are_understood() {
        let line = "--rate 1000 --schedule constant --duration 10 --warmup 500ms --mix get:8,set:2 \
                    --keys zipf:1000:0.99 --size 100:99,2mb:1 --ttl 1m --seed 9";
        let options = parsed(line).unwrap();
        assert_eq!(options.rate, Some(1000.0));
        assert_eq!((options.seconds, options.warmup), (Some(10.0), 0.5));
        assert_eq!(options.ttl, Some(60.0));
        assert_eq!(options.keys, Some(Keys::Zipf { count: 1000, exponent: 0.99 }));
        assert_eq!(options.seed, 9);
    }

    #[test]
    fn urls_end_at_the_next_option() {
        let line = "--http http://h:8/a http://h:8/b --method post --body x --header A:b -c 3";
        let options = parsed(line).unwrap();
        assert_eq!(options.urls.len(), 2);
        assert_eq!(options.method.as_deref(), Some("POST"));
        assert_eq!(options.headers["A"], "b");
        assert_eq!(options.clients, 3);
    }
}
