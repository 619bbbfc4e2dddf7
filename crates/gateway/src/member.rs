//! One member of etcd: requests to it, and what it says.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ClientConfig;
use serde::Deserialize;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, BodyReader, Error, RequestBuilder, Timeout, typestate::WithBody};

use crate::encryption::{Connecting, NotConnected};
use crate::failure::{Failure, INVALID_ARGUMENT};
use crate::stop::Stop;

/// Longer answers are not read. etcd takes requests of 1.5 MB at most.
const LONGEST_ANSWER: u64 = 64 << 20;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Member {
    url: String,
    config: Arc<ClientConfig>,
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
        let agent = Mutex::new(new_agent(&config));
        Member { url, config, agent }
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
                *own = new_agent(&self.config);
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
        let agent = new_agent(&self.config);
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
        let mut answer = answer.map_err(|error| self.failed(error))?;
        if answer.status().is_success() {
            let unlimited = answer.into_body().into_with_config().limit(u64::MAX);
            return Ok(unlimited.reader());
        }
        let status = answer.status().as_u16();
        let whole = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec();
        Err(self.problem(status, &whole.unwrap_or_default()))
    }

    fn problem(&self, status: u16, body: &[u8]) -> Failure {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) if problem.message.is_some() => self.refusal(&problem),
            _ => {
                let words = String::from_utf8_lossy(body);
                let words = words.lines().next().unwrap_or_default().chars().take(200);
                let said: String = words.collect();
                let text = format!("{}: HTTP status {status}: {said}", self.url);
                match status {
                    400..500 => Failure::Refused { code: INVALID_ARGUMENT, text },
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

fn new_agent(config: &Arc<ClientConfig>) -> Agent {
    let settings = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        // etcd is near: a proxy that the environment names for other programs is not asked.
        .proxy(None)
        .build();
    let connecting = Connecting { config: Arc::clone(config) };
    Agent::with_parts(settings, connecting, DefaultResolver::default())
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
