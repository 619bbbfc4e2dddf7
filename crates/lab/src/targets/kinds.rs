//! The servers that the lab knows how to start, and whether they are on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::target::{Origin, Probe};

/// A server that the lab knows how to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its name in files.
    pub(crate) name: &'static str,
    /// Its name in tables.
    pub(crate) title: &'static str,
    /// Its program; `None` for this binary itself.
    program: Option<&'static str>,
    /// The words between the program and its options.
    words: &'static [&'static str],
    /// The options with which each is started by default.
    usual: &'static [(&'static str, &'static str)],
    /// How an option is written.
    form: Form,
    /// How to find out that it is ready, by default.
    pub(crate) probe: Probe,
    /// The option for the port of its HTTP, if HTTP has its own port.
    pub(crate) http: Option<&'static str>,
    /// The same for HTTP over TLS.
    pub(crate) https: Option<&'static str>,
    /// The options with which each is started so that it speaks TLS alone; none if the lab does not
    /// know how.
    pub(crate) tls: &'static [(&'static str, &'static str)],
    /// The option that sets how many threads serve clients.
    threads: &'static str,
    /// Further default options with several threads, so that they share as much of a client's work
    /// as they can.
    several: &'static [(&'static str, &'static str)],
}

/// How a server takes its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `--name value`
    TwoWords,
    /// `--name=value`
    OneWord,
}

/// The threads of Redis and Valkey only write replies, unless they are told to read too.
const READ_TOO: &[(&str, &str)] = &[("io-threads-do-reads", "yes")];

/// Persistence is off and the loopback interface is enough; each experiment turns on what it
/// measures.
const USUAL: &[(&str, &str)] = &[
    ("bind", "127.0.0.1"),
    ("dir", "{directory}"),
    ("port", "{port}"),
    ("save", ""),
    ("appendonly", "no"),
];

/// Dunlin serves HTTP too, on one port for all servers by default; with the probe `http` it has a
/// port of its own.
const USUAL_OF_DUNLIN: &[(&str, &str)] = &[
    ("bind", "127.0.0.1"),
    ("dir", "{directory}"),
    ("port", "{port}"),
    ("http-port", "0"),
    ("save", ""),
    ("appendonly", "no"),
];

/// The certificates are those that the lab has made.
const TLS: &[(&str, &str)] = &[
    ("port", "0"),
    ("tls-port", "{port}"),
    ("tls-replication", "yes"),
    ("tls-cert-file", "{tls_directory}/server.crt"),
    ("tls-key-file", "{tls_directory}/server.key"),
    ("tls-ca-cert-file", "{tls_directory}/ca.crt"),
];

/// All of them, in the order of tables.
pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "dunlin",
        title: "dunlin",
        program: None,
        words: &["serve"],
        usual: USUAL_OF_DUNLIN,
        form: Form::TwoWords,
        probe: Probe::Ping,
        http: Some("http-port"),
        https: Some("https-port"),
        tls: TLS,
        threads: "threads",
        several: &[],
    },
    Kind {
        name: "redis",
        title: "redis-server",
        program: Some("redis-server"),
        words: &[],
        usual: USUAL,
        form: Form::TwoWords,
        probe: Probe::Ping,
        http: None,
        https: None,
        tls: TLS,
        threads: "io-threads",
        several: READ_TOO,
    },
    Kind {
        name: "valkey",
        title: "valkey-server",
        program: Some("valkey-server"),
        words: &[],
        usual: USUAL,
        form: Form::TwoWords,
        probe: Probe::Ping,
        http: None,
        https: None,
        tls: TLS,
        threads: "io-threads",
        several: READ_TOO,
    },
    Kind {
        name: "keydb",
        title: "keydb-server",
        program: Some("keydb-server"),
        words: &[],
        usual: USUAL,
        form: Form::TwoWords,
        probe: Probe::Ping,
        http: None,
        https: None,
        tls: TLS,
        threads: "server-threads",
        several: &[],
    },
    Kind {
        name: "dragonfly",
        title: "dragonfly",
        program: Some("dragonfly"),
        words: &[],
        usual: &[
            ("bind", "127.0.0.1"),
            ("dir", "{directory}"),
            ("port", "{port}"),
            ("dbfilename", ""),
        ],
        form: Form::OneWord,
        probe: Probe::Ping,
        http: None,
        https: None,
        tls: &[],
        threads: "proactor_threads",
        several: &[],
    },
    Kind {
        name: "limit",
        title: "limit",
        program: None,
        words: &["lab", "limit"],
        usual: &[("port", "{port}")],
        form: Form::TwoWords,
        probe: Probe::Ping,
        http: None,
        https: None,
        tls: &[],
        threads: "threads",
        several: &[],
    },
    // A database behind other servers: it speaks no protocol that loads speak.
    Kind {
        name: "mariadb",
        title: "mariadb",
        program: Some("mariadbd"),
        words: &["--no-defaults", "--skip-grant-tables", "--skip-log-bin"],
        usual: &[
            ("user", "root"),
            ("bind-address", "127.0.0.1"),
            ("port", "{port}"),
            ("datadir", "{directory}"),
            ("socket", "{directory}/socket"),
            ("pid-file", "{directory}/pid"),
            // It starts and ends many times, and its directory goes with it.
            ("innodb-log-file-size", "16M"),
            ("innodb-fast-shutdown", "2"),
            ("thread-handling", "pool-of-threads"),
        ],
        form: Form::OneWord,
        probe: Probe::Connect,
        http: None,
        https: None,
        tls: &[],
        threads: "thread-pool-size",
        several: &[],
    },
];

impl Kind {
    /// The kind that a file means.
    pub(crate) fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// How to start one with these options, which may contain placeholders; or that it is missing.
    pub(crate) fn origin(
        &self,
        options: &BTreeMap<String, String>,
        threads: Option<&str>,
    ) -> Origin {
        let program = match self.program {
            None => std::env::current_exe().map_err(|error| format!("this program: {error}")),
            Some(name) => {
                find(name).ok_or_else(|| format!("{name} is not installed on this machine"))
            }
        };
        match program {
            Ok(program) => Origin::Command { program, arguments: self.arguments(options, threads) },
            Err(reason) => Origin::Missing(reason),
        }
    }

    fn arguments(&self, options: &BTreeMap<String, String>, threads: Option<&str>) -> Vec<String> {
        let usual = self.usual.iter().filter(|(name, _)| !options.contains_key(*name));
        let usual = usual.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let threads = threads.map(|count| (self.threads.to_owned(), count.to_owned()));
        let is_one = threads.as_ref().is_none_or(|(_, count)| count == "1");
        let several = self.several.iter().filter(|_| !is_one);
        let several = several.filter(|(name, _)| !options.contains_key(*name));
        let several = several.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let options = options.iter().map(|(name, value)| (name.clone(), value.clone()));
        let mut arguments: Vec<String> = self.words.iter().map(|word| (*word).to_owned()).collect();
        for (name, value) in usual.chain(options).chain(threads).chain(several) {
            match self.form {
                Form::OneWord => arguments.push(format!("--{name}={value}")),
                Form::TwoWords => arguments.extend([format!("--{name}"), value]),
            }
        }
        arguments
    }
}

/// A program of the PATH, or of where Debian puts servers, which the PATH of users may lack.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::split_paths(&path);
    let all = own.chain(["/usr/local/sbin", "/usr/sbin"].map(PathBuf::from));
    all.map(|directory| directory.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_file_replace_the_usual_ones() {
        let options = [("appendonly".to_owned(), "yes".to_owned())].into();
        let kind = Kind::named("dunlin").expect("it is in the table");
        let Origin::Command { arguments, .. } = kind.origin(&options, Some("2")) else {
            panic!("this program is there")
        };
        let text = arguments.join(" ");
        assert!(
            text.starts_with("serve --bind 127.0.0.1 --dir {directory} --port {port}"),
            "{text}"
        );
        assert!(text.ends_with("--appendonly yes --threads 2"), "{text}");
        assert!(!text.contains("--appendonly no"), "{text}");
    }

    #[test]
    fn several_threads_share_out_reading_too() {
        let words = |threads, options: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let kind = Kind::named("redis").expect("it is in the table");
            kind.arguments(&options.iter().map(own).collect(), threads).join(" ")
        };
        let several = words(Some("4"), &[]);
        assert!(several.ends_with("--io-threads 4 --io-threads-do-reads yes"), "{several}");
        assert!(!words(Some("1"), &[]).contains("do-reads"));
        assert!(!words(None, &[]).contains("do-reads"));
        let own = words(Some("4"), &[("io-threads-do-reads", "no")]);
        assert_eq!(own.matches("do-reads").count(), 1, "{own}");
    }

    #[test]
    fn a_missing_program_says_so() {
        assert_eq!(find("a-server-that-nobody-wrote"), None);
        assert!(find("sh").is_some());
    }
}
