//! An experiment's file as it is written: every value that may contain a placeholder is still text,
//! and knows its place, so that a mistake is reported with its line.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use toml::Spanned;

use super::error::FileError;

/// A text, a number or a truth value that may contain placeholders: `{connections}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(pub String);

/// A template and where it stands in the file.
pub type Field = Spanned<Template>;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// A word.
    pub name: Spanned<String>,
    /// One line.
    pub title: String,
    /// The question that the experiment answers.
    pub question: String,
    /// The published experiment that it answers.
    pub answers: Option<String>,
    /// The charts and tables that the report shows; none: those that fit.
    pub views: Option<Spanned<Vec<String>>>,
    /// The figures that the page for a repository shows side by side; none: the most important one.
    pub columns: Option<Spanned<Vec<String>>>,
    /// How often each point is measured.
    pub repetitions: Option<Field>,
    /// The values of placeholders.
    #[serde(default)]
    pub values: BTreeMap<String, Spanned<Value>>,
    /// The swept parameters.
    #[serde(default)]
    pub matrix: BTreeMap<String, Spanned<Axis>>,
    /// The differences of the quick size, which is the usual one.
    #[serde(default)]
    pub quick: SizeSection,
    /// The differences with `--full`.
    #[serde(default)]
    pub full: SizeSection,
    /// The targets.
    #[serde(default, rename = "target")]
    pub targets: Vec<Spanned<TargetSection>>,
    /// The loads.
    #[serde(default, rename = "load")]
    pub loads: Vec<Spanned<LoadSection>>,
    /// The events at the target.
    #[serde(default, rename = "event")]
    pub events: Vec<Spanned<EventSection>>,
    /// What is read from the target meanwhile.
    #[serde(default)]
    pub sample: SampleSection,
    /// When to give up.
    #[serde(default)]
    pub stop: StopSection,
    /// Looks for the largest good rate.
    pub knee: Option<Spanned<KneeSection>>,
    /// Writes with sequence numbers and looks for lost writes.
    pub check: Option<Spanned<CheckSection>>,
    /// Measures how old the data of a replica is.
    pub lag: Option<Spanned<LagSection>>,
}

/// The values of one swept parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Axis {
    /// Each in turn.
    List(Vec<Template>),
    /// `1..8`: from the first to the last, doubling.
    Range(Template),
}

/// The value of a placeholder.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Always the same.
    Plain(Template),
    /// It depends on a swept parameter: `{ by = "fsync", none = "no", else = "yes" }`.
    By(BTreeMap<String, Template>),
}

/// The values with which one size replaces the file's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeSection {
    /// How often each point is measured.
    pub repetitions: Option<Field>,
    /// The values of placeholders.
    #[serde(default)]
    pub values: BTreeMap<String, Spanned<Value>>,
    /// The swept parameters.
    #[serde(default)]
    pub matrix: BTreeMap<String, Spanned<Axis>>,
}

/// A server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSection {
    /// Its name in tables; by default its kind.
    pub name: Option<Spanned<String>>,
    /// False at points of the matrix where it is not measured, or does not stand beside the target.
    pub on: Option<Field>,
    /// A server that the lab knows how to start.
    pub kind: Option<Spanned<String>>,
    /// Several of these, each a target.
    pub kinds: Option<Spanned<Vec<String>>>,
    /// The words of a command that starts another.
    pub command: Option<Vec<Field>>,
    /// A server that is running: `host:port`.
    pub address: Option<Field>,
    /// The server's own options.
    #[serde(default)]
    pub options: BTreeMap<String, Field>,
    /// How many threads serve clients.
    pub threads: Option<Field>,
    /// The processors it may use, as of taskset; a share of one, as `0.1`; or both: `0.1 of 0`.
    pub cpus: Option<Field>,
    /// How much memory it may use: `256mb`.
    pub memory: Option<Field>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, Field>,
    /// Files that are put into its directory: names and texts.
    #[serde(default)]
    pub files: BTreeMap<String, Field>,
    /// The password that clients send.
    pub password: Option<Field>,
    /// True: others reach it over `{NAME.link_port}`, and that way can be cut.
    pub link: Option<Field>,
    /// Whether connections to it are encrypted, or how.
    pub tls: Option<Spanned<TlsSection>>,
    /// `ping`, `replica`, `http` or `connect`: how to find out that it is ready.
    pub probe: Option<Field>,
    /// Processes that belong to it and are started before it.
    #[serde(default)]
    pub beside: Vec<Spanned<TargetSection>>,
    /// Which of these keeps the data.
    pub store: Option<Spanned<String>>,
    /// It is a cluster of such servers.
    pub cluster: Option<Spanned<ClusterSection>>,
}

/// How large a cluster is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSection {
    /// How many shards share the slots.
    pub shards: usize,
    /// How many replicas each primary has.
    #[serde(default)]
    pub replicas: usize,
    /// How many members etcd has, if the nodes need it.
    #[serde(default = "one")]
    pub etcd: usize,
}

fn one() -> usize {
    1
}

/// How connections to a target are encrypted.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "tls is true, false, or a table of cacert, cert, key, sni, insecure")]
pub enum TlsSection {
    /// True or false.
    Plain(Template),
    /// By these files.
    By(TlsFiles),
}

/// The words of a command line, without their dashes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The authorities that are believed.
    pub cacert: Option<Template>,
    /// The certificate of the lab.
    pub cert: Option<Template>,
    /// Its key.
    pub key: Option<Template>,
    /// The name that the target's certificate is for.
    pub sni: Option<Template>,
    /// True: any certificate is believed.
    pub insecure: Option<Template>,
}

/// A load, or data that is filled in before.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSection {
    /// Its name in tables.
    pub name: Spanned<String>,
    /// False at points of the matrix where the load does not take part.
    pub on: Option<Field>,
    /// It runs before anything is measured, to put data there.
    #[serde(default)]
    pub prefill: bool,
    /// The process beside the target that it goes to. A target without such a process gets it.
    pub to: Option<Spanned<String>>,
    /// Processes that serve the same over HTTP, with commas between their names.
    pub members: Option<Field>,
    /// Operations and their weights: `get:80,set:20`.
    pub mix: Option<Field>,
    /// One command's words, in place of a mix.
    pub command: Option<Vec<Field>>,
    /// HTTP requests, in place of commands.
    #[serde(default)]
    pub http: Vec<Spanned<HttpSection>>,
    /// Which keys: `uniform:1000000`.
    pub keys: Option<Field>,
    /// Which sizes: `100:99,2mb:1`.
    pub size: Option<Field>,
    /// Connections in all.
    pub connections: Option<Field>,
    /// Threads that send.
    pub threads: Option<Field>,
    /// Requests that a connection sends at once.
    pub pipeline: Option<Field>,
    /// Requests a second, due whether or not the server keeps up.
    pub rate: Option<Field>,
    /// `constant` or `poisson`: how the due times are spread.
    pub schedule: Option<Field>,
    /// The pause between a reply and the next request, in milliseconds.
    pub think_ms: Option<Field>,
    /// Ends after this many seconds.
    pub seconds: Option<Field>,
    /// Ends after this many requests.
    pub requests: Option<Field>,
    /// Seconds of load before anything is recorded.
    pub warmup: Option<Field>,
    /// 2 or 3.
    pub protocol: Option<Field>,
    /// False opens a connection for each request.
    pub keep_alive: Option<Field>,
    /// A lost connection is opened again.
    pub reconnect: Option<Field>,
    /// The processors that the sending threads may use.
    pub cpus: Option<Field>,
    /// Begins this many seconds after the others.
    pub start: Option<Field>,
}

/// An HTTP request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSection {
    /// Its name in tables; by default method and path.
    pub name: Option<String>,
    /// Its share.
    pub weight: Option<Field>,
    /// By default GET.
    pub method: Option<Field>,
    /// Path and query.
    pub path: Field,
    /// Headers besides Host, Content-Length and Connection.
    #[serde(default)]
    pub headers: BTreeMap<String, Field>,
    /// The body, if any.
    pub body: Option<Field>,
}

/// Something that is done to the target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSection {
    /// False at points of the matrix where it does not happen.
    pub on: Option<Field>,
    /// Seconds after the loads began.
    pub at: Field,
    /// A command for the server, or `kill`, `stop`, `continue`, `cut`, `attach`, `move`,
    /// `move slots`, `connection storm`, `hot-key burst`.
    #[serde(rename = "do")]
    pub action: Field,
    /// The process that is killed, stopped or continued; without it the store, or in a cluster the
    /// primary of slot 0.
    pub of: Option<Spanned<String>>,
    /// How often it happens; once, unless it is said.
    pub times: Option<Field>,
    /// The seconds from one time to the next.
    pub every: Option<Field>,
    /// How many slots are moved.
    pub slots: Option<Field>,
    /// After a kill: starts it again this many seconds later.
    pub restart_after: Option<Field>,
    /// The process beside the target that attaches to it as a replica.
    pub replica: Option<Spanned<String>>,
    /// How long a stop, a cut, a storm or a burst lasts.
    pub seconds: Option<Field>,
    /// How many connections a storm or a burst opens.
    pub connections: Option<Field>,
    /// The requests a second of a burst; without it, as many as are answered.
    pub rate: Option<Field>,
    /// What a burst sends: `get:80,set:20`.
    pub mix: Option<Field>,
}

/// What is read from the target's process and from INFO.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSection {
    /// Seconds between two samples.
    pub every: Option<Field>,
    /// Fields of INFO whose values are numbers.
    #[serde(default)]
    pub info: Vec<String>,
    /// `all` or `store`: of which processes time and memory are.
    pub of: Option<Field>,
}

/// When to give up.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopSection {
    /// A run ends after more errors than this.
    pub max_errors: Option<Field>,
    /// A target whose 99th percentile was longer than this, in milliseconds, is not measured
    /// further.
    pub max_p99_ms: Option<Field>,
    /// No further run begins after the experiment has taken this many seconds.
    pub max_seconds: Option<Field>,
}

/// How the largest good rate is looked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KneeSection {
    /// The load whose rate is stepped; without it, the first.
    pub load: Option<Spanned<String>>,
    /// The longest response time that is good, in milliseconds.
    pub limit_ms: Field,
    /// The share of requests that must be within the limit; by default 0.99.
    pub quantile: Option<Field>,
    /// The first rate, in requests a second.
    pub start: Field,
    /// By how much each rate is larger than the last; by default 1.5.
    pub factor: Option<Field>,
    /// How long a rate is tried.
    pub seconds: Field,
    /// How often the interval between the largest good and the smallest bad rate is halved.
    pub bisections: Option<Field>,
}

/// The checker of writes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckSection {
    /// False leaves the checker out.
    pub on: Option<Field>,
    /// Connections that write.
    pub writers: Option<Field>,
    /// Connections that read.
    pub readers: Option<Field>,
    /// Keys of each writer.
    pub keys: Option<Field>,
    /// How long it writes, when no load decides that.
    pub seconds: Option<Field>,
    /// After so many seconds without a reply a connection is given up.
    pub timeout: Option<Field>,
    /// The Sentinels that say where clients write.
    pub sentinels: Option<Vec<Field>>,
    /// The servers among which clients go on when one refuses.
    pub servers: Option<Vec<Field>>,
    /// A command with which a writer's connection begins.
    pub greeting: Option<Field>,
    /// A command that follows each write, which counts if the answer is 1 or more.
    pub confirmation: Option<Field>,
}

/// The measurement of a replica's lag.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LagSection {
    /// The replica; without it, the target itself.
    pub replica: Option<Field>,
    /// Milliseconds from one marker to the next.
    pub every_ms: Option<Field>,
    /// The processors of the thread that looks.
    pub cpus: Option<Field>,
}

impl File {
    /// The views that it asks for.
    pub fn views(&self) -> &[String] {
        self.views.as_ref().map_or(&[], |views| views.get_ref().as_slice())
    }

    /// The figures that it wants side by side.
    pub fn columns(&self) -> &[String] {
        self.columns.as_ref().map_or(&[], |columns| columns.get_ref().as_slice())
    }

    /// Reads a file's text. `path` is its name in errors.
    ///
    /// # Errors
    /// The text is not TOML, or has fields that an experiment does not have.
    pub fn parse(path: &str, text: &str) -> Result<File, FileError> {
        toml::from_str(text).map_err(|error| FileError::from_toml(path, text, &error))
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl Visitor<'_> for Scalar {
            type Value = Template;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text, a number or a truth value")
            }

            fn visit_str<E>(self, value: &str) -> Result<Template, E> {
                Ok(Template(value.to_owned()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Template, E> {
                Ok(Template(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Template, E> {
                Ok(Template(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Template, E> {
                // `1.0` is a share of the processors, `1` the second of them.
                let is_whole = value.fract() == 0.0 && value.abs() < 1e15;
                Ok(Template(if is_whole { format!("{value:.1}") } else { value.to_string() }))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Template, E> {
                Ok(Template(value.to_string()))
            }
        }
        deserializer.deserialize_any(Scalar)
    }
}
