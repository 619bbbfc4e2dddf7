//! One member of etcd: requests to it, and what it says.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::clock::monotonic_ms;
use rustls::ClientConfig;
use serde::Deserialize;
use ureq::{Agent, BodyReader, Error, RequestBuilder, Timeout, typestate::WithBody};

use crate::encryption::{Connecting, NotConnected};
use crate::failure::Failure;
use crate::lookup::Lookup;
use crate::stop::Stop;

/// Longer answers are not read. etcd takes requests of 1.5 MB at most.
const LONGEST_ANSWER: u64 = 64 << 20;
/// No more is read of what is no answer.
const LONGEST_PROBLEM: usize = 64 << 10;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Member {
    url: String,
    config: Arc<ClientConfig>,
    lookup: Lookup,
    /// Its connections. They are given up when one of them has failed.
    agent: Mutex<Agent>,
}

/// What etcd answers instead of a result. It has one form for single answers, and another one
/// within a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    #[serde(alias = "grpc_code")]
    code: i64,
    message: Option<String>,
}

impl Member {
    /// `url` has scheme, host and port.
    pub(crate) fn new(url: String, config: Arc<ClientConfig>) -> Member {
        let lookup = Lookup::default();
        let agent = Mutex::new(new_agent(&config, &lookup));
        Member { url, config, lookup, agent }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request, and waits for its whole answer.
    pub(crate) fn ask(
        &self,
        path: &str,
        body: &[u8],
        token: Option<&str>,
        limit: Duration,
    ) -> Result<Vec<u8>, Failure> {
        let agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let request = agent.post(format!("{}{path}", self.url));
        let request = request.config().timeout_global(Some(limit)).build();
        let answer = with_headers(request, token).send(body).and_then(|mut answer| {
            let status = answer.status().as_u16();
            let whole = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec()?;
            Ok((status, whole))
        });
        match answer {
            Ok((200, whole)) => Ok(whole),
            Ok((status, whole)) => Err(self.problem(status, &whole)),
            Err(error) => {
                // Other connections of this kind may be dead as well.
                let mut own = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
                *own = new_agent(&self.config, &self.lookup);
                self.lookup.doubt();
                Err(self.failed(error))
            }
        }
    }

    /// Sends a request whose answer has no end, over a connection of its own, and gives what is
    /// to be read. A read fails after a time of silence.
    pub(crate) fn open(
        &self,
        (path, body): (&str, &[u8]),
        token: Option<&str>,
        limit: Duration,
        silence: Duration,
        stop: &Stop,
    ) -> Result<BodyReader<'static>, Failure> {
        let agent = new_agent(&self.config, &self.lookup);
        if !stop.will_end(agent.clone()) {
            return Err(Failure::Unsent("it was stopped".to_owned()));
        }
        let request = agent.post(format!("{}{path}", self.url));
        let request = request
            .config()
            .timeout_resolve(Some(limit))
            .timeout_connect(Some(limit))
            .timeout_send_request(Some(limit))
            .timeout_recv_response(Some(limit))
            .timeout_per_read(Some(silence))
            .build();
        let answer = with_headers(request, token).send(body);
        let mut answer = answer.map_err(|error| {
            self.lookup.doubt();
            self.failed(error)
        })?;
        if answer.status().is_success() {
            let unlimited = answer.into_body().into_with_config().limit(u64::MAX);
            return Ok(unlimited.reader());
        }
        let status = answer.status().as_u16();
        Err(self.problem(status, &beginning(answer.body_mut().as_reader(), limit)))
    }

    fn problem(&self, status: u16, body: &[u8]) -> Failure {
        match serde_json::from_slice::<Problem>(body) {
            // Whoever is between may answer in JSON as well, but not with a code of gRPC.
            Ok(problem) if problem.code != 0 && problem.message.is_some() => self.refusal(&problem),
            _ => {
                let words = String::from_utf8_lossy(body);
                let words = words.lines().next().unwrap_or_default().chars().take(200);
                let said: String = words.collect();
                let text = format!("{}: HTTP status {status}: {said}", self.url);
                match status {
                    // The time was up, or this client was gone for whoever is between: etcd may
                    // have the request.
                    408 | 499 => Failure::Unknown(text),
                    // Who does not know what was asked for has not passed it on.
                    400..500 => Failure::Unsent(format!("{text} (not etcd's gateway)")),
                    _ => Failure::Unknown(text),
                }
            }
        }
    }

    /// What an error in an answer means.
    pub(crate) fn refusal(&self, problem: &Problem) -> Failure {
        Failure::of_answer(&self.url, problem.code, problem.message.as_deref().unwrap_or_default())
    }

    /// What a request that was not answered means.
    pub(crate) fn failed(&self, error: Error) -> Failure {
        let text = format!("{}: {}", self.url, in_words(&error));
        let is_unsent = match &error {
            Error::Other(inner) => inner.is::<NotConnected>(),
            Error::HostNotFound | Error::BadUri(_) | Error::ConnectionFailed => true,
            Error::Timeout(at) => matches!(at, Timeout::Resolve | Timeout::Connect),
            _ => false,
        };
        if is_unsent { Failure::Unsent(text) } else { Failure::Unknown(text) }
    }
}

/// The beginning of what a stranger says instead of an answer, as far as it comes within a time.
/// The reader itself bounds each read.
fn beginning(mut reader: impl Read, limit: Duration) -> Vec<u8> {
    let (end, mut read) = (monotonic_ms() + limit.as_millis() as u64, Vec::new());
    let mut buffer = [0; 4096];
    while read.len() < LONGEST_PROBLEM && monotonic_ms() < end {
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => read.extend_from_slice(&buffer[..count]),
        }
    }
    read
}

fn new_agent(config: &Arc<ClientConfig>, lookup: &Lookup) -> Agent {
    let settings = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        // etcd is near: a proxy that the environment names for other programs is not asked.
        .proxy(None)
        .build();
    let connecting = Connecting { config: Arc::clone(config) };
    Agent::with_parts(settings, connecting, lookup.clone())
}

fn with_headers(
    request: RequestBuilder<WithBody>,
    token: Option<&str>,
) -> RequestBuilder<WithBody> {
    // A member that is cut off from the others says so at once, instead of waiting for them.
    let request = request.header("grpc-metadata-hasleader", "true");
    let request = request.content_type("application/json");
    match token {
        Some(token) => request.header("authorization", token),
        None => request,
    }
}

fn in_words(error: &Error) -> String {
    match error {
        Error::Other(inner) => inner.to_string(),
        Error::Io(inner) => inner.to_string(),
        Error::Timeout(_) => "no answer in time".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::thread::sleep;

    use crate::place::Config;

    use super::*;

    #[test]
    fn only_etcd_itself_says_that_nothing_was_done() {
        let config = Config::default().tls.read().unwrap().config;
        let member = Member::new("http://h:1".to_owned(), config);
        let of_proxy = r#"{"message":"upstream request timeout"}"#;
        for (status, body) in [
            (408, "Request Timeout"),
            (499, ""),
            (500, "<html>"),
            (502, of_proxy),
            (504, of_proxy),
            (408, r#"{"code":0,"message":"the time is up"}"#),
            (503, r#"{"code":14,"message":"etcdserver: request timed out"}"#),
            (500, r#"{"code":10,"message":"aborted"}"#),
        ] {
            let failure = member.problem(status, body.as_bytes());
            assert!(matches!(failure, Failure::Unknown(_)), "{status} {body}: {failure:?}");
        }
        for (status, body) in [
            (400, r#"{"code":3,"message":"etcdserver: user name is empty"}"#),
            (403, r#"{"code":7,"message":"etcdserver: permission denied"}"#),
            (404, r#"{"code":5,"message":"etcdserver: requested lease not found"}"#),
            (429, r#"{"code":8,"message":"grpc: received message larger than max"}"#),
        ] {
            let failure = member.problem(status, body.as_bytes());
            assert!(matches!(failure, Failure::Refused { .. }), "{status} {body}: {failure:?}");
        }
        // Another member may be etcd.
        for (status, body) in [
            (401, ""),
            (403, "<html>"),
            (404, "no such page"),
            (404, r#"{"code":5,"message":"Not Found","details":[]}"#),
            (405, ""),
            (413, "<html>"),
            (501, r#"{"code":12,"message":"unknown service etcdserverpb.KV"}"#),
        ] {
            let failure = member.problem(status, body.as_bytes());
            assert!(matches!(failure, Failure::Unsent(_)), "{status} {body}: {failure:?}");
        }
    }

    /// Says a little, again and again, without an end.
    struct Drip;

    impl io::Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            sleep(Duration::from_millis(1));
            buffer[0] = b'x';
            Ok(1)
        }
    }

    #[test]
    fn a_stranger_is_not_listened_to_for_ever() {
        assert!(!beginning(Drip, Duration::from_millis(20)).is_empty());
        assert_eq!(beginning(&b"all of it"[..], Duration::from_secs(60)), b"all of it");
        let read = beginning(io::repeat(b'x'), Duration::from_secs(60));
        assert_eq!(read.len(), LONGEST_PROBLEM);
    }
}
