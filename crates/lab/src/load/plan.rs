//! A plan is everything that a load generator must know, as plain data: the same plan comes from a
//! command line, from an experiment's file, or over a socket from another machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::client::Resumption;
use serde::{Deserialize, Serialize};
use tls::ClientSettings;
use tls::client::{Verification, server_name};

use super::sessions::Sessions;

/// One load on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// The server's address.
    pub address: Address,
    /// Connections in all, shared out over the threads.
    pub connections: usize,
    /// Threads that send; each has an event loop and its own histograms.
    pub threads: usize,
    /// Requests that a connection sends before it waits for their replies.
    pub pipeline: usize,
    /// When the next request leaves.
    pub pace: Pace,
    /// Ends after this many measured requests.
    pub requests: Option<u64>,
    /// Ends after this many measured seconds. With neither bound, it runs until it is told to stop.
    pub seconds: Option<f64>,
    /// Seconds of load before anything is recorded.
    pub warmup_seconds: f64,
    /// The requests.
    pub work: Work,
    /// An even schedule begins this share of the time between two requests later: agents that share
    /// one take turns.
    pub phase: f64,
    /// Makes the random choices repeatable.
    pub seed: u64,
    /// A lost connection is opened again, and its open requests count as errors; without it, the
    /// first loss ends the run.
    pub reconnect: bool,
    /// The server is a node of a cluster: each request goes to the node that has its key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cluster: bool,
    /// `HOST:PORT` of others that serve the same over HTTP. Connections begin with one after the
    /// other, go to the next when they are lost, and to the one that an answer names (307).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

/// A server's address and how to enter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Address {
    /// A name or an address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// A Unix socket's path, in place of host and port.
    pub socket: Option<String>,
    /// The user of AUTH; without it, the default user.
    pub user: Option<String>,
    /// The password of AUTH.
    pub password: Option<String>,
    /// The database to SELECT.
    pub database: u32,
    /// How connections are encrypted, if they are to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,
}

/// How connections are encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Encryption {
    /// A file, or a directory of files, with the authorities that are believed; without it, those
    /// that the public believes.
    pub authority: Option<String>,
    /// The file of the client's certificate.
    pub certificate: Option<String>,
    /// The file of its key.
    pub key: Option<String>,
    /// The password of the key. No report shows it.
    #[serde(skip)]
    pub key_password: Option<String>,
    /// The server's certificate is not looked at.
    pub insecure: bool,
    /// The name that the server's certificate is for, if it is not the host's.
    pub name: Option<String>,
    /// Ciphers up to TLS 1.2, as OpenSSL names them.
    pub ciphers: Option<String>,
    /// Cipher suites of TLS 1.3.
    pub ciphersuites: Option<String>,
    /// Each connection shakes hands in full, even if the server would let it resume a session.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_full: bool,
}

/// What an error may repeat of a word of a command line: the name of an option. Anything else may
/// be a secret, also what stands behind `=`.
pub fn name_of_option(word: &str) -> &str {
    let name = word.split('=').next().filter(|own| own.starts_with('-'));
    name.unwrap_or("without a name")
}

impl Encryption {
    /// Takes an option of a command line, if it is one of these. `value` gives what follows it.
    ///
    /// # Errors
    /// Those of `value`.
    pub fn take_option<V: Into<String>>(
        &mut self,
        option: &str,
        value: impl FnOnce() -> Result<V, String>,
    ) -> Result<bool, String> {
        let field = match option {
            "--insecure" => {
                self.insecure = true;
                return Ok(true);
            }
            "--sni" => &mut self.name,
            "--cacert" | "--cacertdir" => &mut self.authority,
            "--cert" => &mut self.certificate,
            "--key" => &mut self.key,
            "--tls-ciphers" => &mut self.ciphers,
            "--tls-ciphersuites" => &mut self.ciphersuites,
            _ => return Ok(false),
        };
        *field = Some(value()?.into());
        Ok(true)
    }

    /// The same as options.
    pub fn options(&self) -> Vec<&str> {
        let named = [
            ("--sni", &self.name),
            ("--cacert", &self.authority),
            ("--cert", &self.certificate),
            ("--key", &self.key),
            ("--tls-ciphers", &self.ciphers),
            ("--tls-ciphersuites", &self.ciphersuites),
        ];
        let given = named.into_iter().filter_map(|(name, value)| Some([name, value.as_deref()?]));
        given.flatten().chain(self.insecure.then_some("--insecure")).collect()
    }

    /// What the connections to a host go by, which offer to speak these protocols.
    ///
    /// # Errors
    /// A file cannot be read, or a word is not understood.
    pub fn read(
        &self,
        host: &str,
        protocols: Vec<Vec<u8>>,
    ) -> Result<(Arc<rustls::ClientConfig>, rustls::pki_types::ServerName<'static>), String> {
        let own = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((certificate.as_str(), key.as_str())),
            (None, None) => None,
            _ => return Err("a certificate and its key come together: --cert and --key".to_owned()),
        };
        let mut settings = ClientSettings::of_options(self.authority.as_deref(), own);
        if let (Some(identity), Some(password)) = (&mut settings.identity, &self.key_password) {
            identity.password = password.clone().into_bytes();
        }
        if self.insecure {
            settings.verification = Verification::None;
        }
        settings.choices.ciphers = self.ciphers.clone().unwrap_or_default();
        settings.choices.ciphersuites = self.ciphersuites.clone().unwrap_or_default();
        settings.alpn = protocols;
        let name = server_name(self.name.as_deref().unwrap_or(host))?;
        let mut config = settings.read()?.config;
        Arc::make_mut(&mut config).resumption = match self.in_full {
            true => Resumption::disabled(),
            false => Resumption::store(Arc::new(Sessions::default())),
        };
        Ok((config, name))
    }
}

/// When requests leave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pace {
    /// A connection sends its next requests when the last have been answered, after a pause: the
    /// load adapts to the server, as a fixed number of users would.
    Closed {
        /// The pause between a reply and the next request.
        think_seconds: f64,
    },
    /// Requests are due at times that do not depend on the server; latency is counted from then.
    Open {
        /// Requests a second, over all connections.
        rate: f64,
        /// How the times are spread.
        schedule: Schedule,
    },
}

/// How the due times of an open load are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Evenly.
    Constant,
    /// As independent users would: exponentially distributed gaps.
    Poisson,
}

/// The requests to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Commands over the Redis protocol.
    Resp(RespWork),
    /// Requests over HTTP/1.1.
    Http(HttpWork),
}

/// Commands over the Redis protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RespWork {
    /// The operations, each as often as its weight says.
    pub operations: Vec<Operation>,
    /// Where `__key__` and `__rand_int__` come from.
    pub keys: Keys,
    /// The sizes of `__data__` and their weights.
    pub sizes: Vec<Size>,
    /// 2 or 3.
    pub protocol: u8,
    /// False opens a new connection for each request (each pipeline of them); opening it is part
    /// of their time.
    pub keep_alive: bool,
    /// Connections ask the server to track the keys that they read.
    pub tracking: bool,
}

/// One command, as often as its weight says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Its name in tables: `SET`.
    pub name: String,
    /// Its share, against the sum of all weights.
    pub weight: f64,
    /// The words of the command. `__key__` is a whole key, `__rand_int__` twelve digits,
    /// `__data__` a value; each may stand within a word. A single word that ends with CR LF is
    /// sent as it is: an inline command.
    pub arguments: Vec<String>,
}

/// Which keys are chosen. A key is `key:` and twelve digits, as of redis-benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Keys {
    /// None: `__rand_int__` is sent as it is written, so that all requests share one key.
    /// redis-benchmark does this without `-r`.
    Literal,
    /// Each equally often.
    Uniform {
        /// How many there are.
        count: u64,
    },
    /// The k-th most popular key in proportion to 1 / k^exponent.
    Zipf {
        /// How many there are.
        count: u64,
        /// 0 is uniform; caches see 0.6 to 1.2.
        exponent: f64,
    },
    /// A few keys get most requests.
    Hot {
        /// How many there are.
        count: u64,
        /// How many of them are hot.
        hot: u64,
        /// The share of requests that goes to these, 0 to 1.
        share: f64,
    },
    /// One after the other, from the first again after the last.
    Sequential {
        /// How many there are.
        count: u64,
    },
}

/// A value's size and how often it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// The value's length.
    pub bytes: usize,
    /// Its share, against the sum of all weights.
    pub weight: f64,
}

/// Requests over HTTP/1.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpWork {
    /// The requests, each as often as its weight says.
    pub requests: Vec<HttpRequest>,
    /// Where `__key__` and `__rand_int__` in a path or body come from.
    pub keys: Keys,
    /// The sizes of `__data__` in a body, and their weights.
    pub sizes: Vec<Size>,
    /// False opens a new connection for each request.
    pub keep_alive: bool,
}

/// One HTTP request, as often as its weight says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpRequest {
    /// Its name in tables: `GET /keys`.
    pub name: String,
    /// Its share, against the sum of all weights.
    pub weight: f64,
    /// `GET`, `POST`, ...
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers besides Host, Content-Length and Connection.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body, if any.
    #[serde(default)]
    pub body: Option<String>,
}

impl Default for Plan {
    /// redis-benchmark's own defaults: 50 connections, 100 000 requests of PING, closed loop.
    fn default() -> Self {
        Plan {
            address: Address::default(),
            connections: 50,
            threads: 1,
            pipeline: 1,
            pace: Pace::Closed { think_seconds: 0.0 },
            requests: Some(100_000),
            seconds: None,
            warmup_seconds: 0.0,
            work: Work::Resp(RespWork::default()),
            phase: 0.0,
            seed: 1,
            reconnect: false,
            cluster: false,
            members: Vec::new(),
        }
    }
}

impl Default for Address {
    fn default() -> Self {
        Address {
            host: "127.0.0.1".to_owned(),
            port: 6379,
            socket: None,
            user: None,
            password: None,
            database: 0,
            encryption: None,
        }
    }
}

impl Default for RespWork {
    fn default() -> Self {
        RespWork {
            operations: vec![Operation {
                name: "PING".to_owned(),
                weight: 1.0,
                arguments: vec!["PING".to_owned()],
            }],
            keys: Keys::Uniform { count: 1 },
            sizes: vec![Size { bytes: 3, weight: 1.0 }],
            protocol: 2,
            keep_alive: true,
            tracking: false,
        }
    }
}

impl Default for HttpWork {
    fn default() -> Self {
        HttpWork {
            requests: Vec::new(),
            keys: Keys::Uniform { count: 1 },
            sizes: vec![Size { bytes: 3, weight: 1.0 }],
            keep_alive: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_has_no_secrets() {
        let headers = [
            ("Authorization", "Bearer hunter2"),
            ("X-Auth-Token", "x"),
            ("Accept", "text/html"),
            ("X-Trace", "hunter2"),
        ];
        let request = HttpRequest {
            name: "GET /".to_owned(),
            weight: 1.0,
            method: "GET".to_owned(),
            path: "/?token=y&page=1".to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            body: None,
        };
        let work = HttpWork { requests: vec![request], ..HttpWork::default() };
        let mut plan = Plan { work: Work::Http(work), ..Plan::default() };
        plan.address.password = Some("secret".to_owned());
        let published = crate::redact::plan(&plan);
        assert_eq!(published.address.password, None);
        let Work::Http(work) = published.work else { panic!("still HTTP") };
        let headers = &work.requests[0].headers;
        for name in ["Authorization", "X-Auth-Token", "X-Trace"] {
            assert_eq!(headers[name], "(withheld)", "{name}");
        }
        assert_eq!(headers["Accept"], "text/html");
        assert_eq!(work.requests[0].path, "/?token=(withheld)&page=1");
    }
}
