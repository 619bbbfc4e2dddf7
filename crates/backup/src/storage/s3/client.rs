//! Requests to a bucket, which are sent until they are answered.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use lab::targets::Interrupt;
use rusty_s3::{Credentials, S3Action, UrlStyle};

use crate::manifest::LONGEST;
use crate::moment::wait;
use crate::print::say;
use crate::storage::access::{self, Access};
use crate::storage::interface::read_at_most;

/// How long a signature is good.
pub(super) const SIGNED_FOR: Duration = Duration::from_secs(60 * 60);
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a read or a write may stand still.
const PATIENCE: Duration = Duration::from_secs(60);
/// A request is sent so many times at most, with pauses that double from the first one on.
const ATTEMPTS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How often an object is looked for that a request may write just now. The pauses double.
const LOOKS: u32 = 4;
/// Bytes that are asked for at once.
const PIECE: u64 = 8 << 20;
/// What an object says of the upload that has made it: a number that no other one has.
pub(super) const MARK: &str = "x-amz-meta-upload";
/// An answer that is longer is none.
const LONGEST_ANSWER: u64 = 64 << 20;

/// See the module's text.
pub(super) struct Client {
    agent: ureq::Agent,
    pub(super) bucket: rusty_s3::Bucket,
    credentials: Option<Credentials>,
    interrupt: Interrupt,
    /// What the names of all objects begin with: nothing, or it ends with a slash.
    pub(super) prefix: String,
}

/// A small object as it was read.
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    /// The server's name for these bytes, if it gives one.
    tag: Option<String>,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) tag: Option<String>,
    range: Option<String>,
    region: Option<String>,
    pub(super) mark: Option<String>,
    body: Vec<u8>,
    /// How often the request was sent before it was answered.
    pub(super) attempts: u32,
}

pub(super) enum Method {
    Get,
    Put,
    Post,
    Delete,
}

impl Client {
    /// `place` is `BUCKET/PREFIX`.
    pub(super) fn open(
        place: &str,
        access: &Access,
        interrupt: &Interrupt,
    ) -> Result<Client, String> {
        let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_matches('/');
        let is_odd = |part: &str| matches!(part, "" | "." | "..");
        if name.is_empty() || !prefix.is_empty() && prefix.split('/').any(is_odd) {
            return Err("the store is no s3://BUCKET/PREFIX".to_owned());
        }
        let region = access.region();
        let (endpoint, style) = access.endpoint(&region, name);
        // It may have a password.
        let wrong = |problem: String| format!("the endpoint: {problem}");
        let url = endpoint.parse().map_err(|error| wrong(format!("{error}")))?;
        let style = if style { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let bucket = rusty_s3::Bucket::new(url, style, name.to_owned(), region)
            .map_err(|error| wrong(error.to_string()))?;
        let credentials = access::credentials()?;
        let tls = access::tls()?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT_PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .timeout_per_write(Some(PATIENCE))
            .tls_config(tls)
            .build();
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let agent = config.into();
        let interrupt = interrupt.clone();
        Ok(Client { agent, bucket, credentials, interrupt, prefix })
    }

    pub(super) fn key(&self, file: &str) -> String {
        format!("{}{file}", self.prefix)
    }

    pub(super) fn name(&self) -> String {
        format!("s3://{}/{}", self.bucket.name(), self.prefix.trim_end_matches('/'))
    }

    pub(super) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Sends a request until it is answered. Errors do not show the URL, which is signed.
    pub(super) fn call<'a, A: S3Action<'a>>(
        &self,
        method: &Method,
        action: &A,
        body: &[u8],
        headers: &[(&str, &str)],
    ) -> Result<Answer, String> {
        let mut pause = FIRST_PAUSE;
        let mut attempt = 1;
        loop {
            let url = action.sign(SIGNED_FOR);
            let problem = match self.send(method, url.as_str(), body, headers) {
                Ok(answer) if !answer.is_worth_another(method) => {
                    return Ok(Answer { attempts: attempt, ..answer });
                }
                Ok(answer) => answer.problem(),
                Err(ureq::Error::BadUri(_)) => return Err("the endpoint is no URL".to_owned()),
                Err(error) => error.to_string(),
            };
            if attempt == ATTEMPTS || self.interrupt.is_set() {
                return Err(problem);
            }
            say(&format!("{}: {problem}; trying again in {} ms", self.name(), pause.as_millis()));
            let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            wait(pause_ms, &self.interrupt);
            pause *= 2;
            attempt += 1;
        }
    }

    pub(super) fn send(
        &self,
        method: &Method,
        url: &str,
        body: &[u8],
        headers: &[(&str, &str)],
    ) -> Result<Answer, ureq::Error> {
        let mut response = match method {
            Method::Get | Method::Delete => {
                let mut request = match method {
                    Method::Get => self.agent.get(url),
                    _ => self.agent.delete(url),
                };
                for (name, value) in headers {
                    request = request.header(*name, *value);
                }
                request.call()?
            }
            Method::Put | Method::Post => {
                let mut request = match method {
                    Method::Put => self.agent.put(url),
                    _ => self.agent.post(url),
                };
                for (name, value) in headers {
                    request = request.header(*name, *value);
                }
                request.send(body)?
            }
        };
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let (tag, range) = (header("etag"), header("content-range"));
        let (region, mark) = (header("x-amz-bucket-region"), header(MARK));
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec()?;
        Ok(Answer { status, tag, range, region, mark, body, attempts: 1 })
    }

    pub(super) fn put(&self, file: &str, bytes: &[u8]) -> Result<Answer, String> {
        let key = self.key(file);
        let action = self.bucket.put_object(self.credentials(), &key);
        let answer = self.call(&Method::Put, &action, bytes, &[]);
        answer.and_then(Answer::good).map_err(|problem| self.failed(file, &problem))
    }

    /// Writes an object if it is what was found still, and returns whether it was. A server that
    /// knows no conditions writes it in any case.
    pub(super) fn put_if(
        self: &Arc<Self>,
        file: &str,
        found: Option<&Found>,
        bytes: &[u8],
    ) -> Result<bool, String> {
        let key = self.key(file);
        let action = self.bucket.put_object(self.credentials(), &key);
        let condition = match found {
            None => Some(("if-none-match", "*")),
            Some(found) => found.tag.as_deref().map(|tag| ("if-match", tag)),
        };
        let failed = |problem: String| self.failed(file, &problem);
        let answer = self.call(&Method::Put, &action, bytes, condition.as_slice());
        let answer = answer.map_err(failed)?;
        match answer.status {
            // The request was done before, or is just being done, and its answer was lost.
            404 | 409 | 412 if answer.attempts > 1 => {
                self.look_for(|| Ok(self.find(file)?.is_some_and(|found| found.bytes == bytes)))
            }
            409 | 412 => Ok(false),
            404 if answer.code() == Some("NoSuchKey") => Ok(false),
            501 => self.put(file, bytes).map(|_| true),
            _ => answer.good().map(|_| true).map_err(failed),
        }
    }

    /// Whether an object is there, which may take a moment.
    pub(super) fn look_for(
        &self,
        is_there: impl Fn() -> Result<bool, String>,
    ) -> Result<bool, String> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..LOOKS {
            if is_there()? {
                return Ok(true);
            }
            std::thread::sleep(pause);
            pause *= 2;
        }
        Ok(false)
    }

    /// A small object; none if there is no such object.
    pub(super) fn find(self: &Arc<Self>, file: &str) -> Result<Option<Found>, String> {
        let Some(mut reader) = self.reader(file)? else { return Ok(None) };
        let tag = reader.piece.tag.clone();
        let bytes = read_at_most(&mut reader, LONGEST);
        let bytes = bytes.map_err(|error| self.failed(file, &error.to_string()))?;
        Ok(Some(Found { bytes, tag }))
    }

    pub(super) fn reader(self: &Arc<Self>, file: &str) -> Result<Option<Reader>, String> {
        let piece = self.piece(file, 0, None).map_err(|problem| self.failed(file, &problem))?;
        Ok(piece.map(|piece| {
            let end = piece.bytes.len() as u64;
            let (client, file) = (Arc::clone(self), file.to_owned());
            Reader { client, file, piece, taken: 0, end }
        }))
    }

    pub(super) fn failed(&self, file: &str, problem: &str) -> String {
        match file {
            "" => format!("{}: {problem}", self.name()),
            file => format!("{}/{file}: {problem}", self.name()),
        }
    }

    /// A piece of an object from here on, with the length of the whole; none if there is no such
    /// object.
    pub(super) fn piece(
        &self,
        file: &str,
        from: u64,
        tag: Option<&str>,
    ) -> Result<Option<Piece>, String> {
        let key = self.key(file);
        let action = self.bucket.get_object(self.credentials(), &key);
        let range = format!("bytes={from}-{}", from + PIECE - 1);
        let mut headers = vec![("range", range.as_str())];
        headers.extend(tag.map(|tag| ("if-match", tag)));
        let answer = self.call(&Method::Get, &action, &[], &headers)?;
        let length = answer.body.len() as u64;
        let total = match answer.status {
            200 if from == 0 => length,
            206 => {
                let total = answer.range.as_deref().and_then(|range| range.rsplit_once('/'));
                let total = total.and_then(|(_, total)| total.parse().ok());
                total.ok_or("it does not say how long the object is")?
            }
            // There is nothing in it.
            416 if from == 0 => 0,
            // Anybody in between may say 404.
            404 if answer.code() == Some("NoSuchKey") => return Ok(None),
            412 => return Err("it has changed while it was read".to_owned()),
            _ => return Err(answer.problem()),
        };
        let bytes = if answer.status == 416 { Vec::new() } else { answer.body };
        if from < total && bytes.is_empty() {
            return Err("an answer without the bytes that were asked for".to_owned());
        }
        Ok(Some(Piece { bytes, total, tag: answer.tag, mark: answer.mark }))
    }
}

impl Answer {
    pub(super) fn good(self) -> Result<Answer, String> {
        match self.status {
            200..300 => Ok(self),
            _ => Err(self.problem()),
        }
    }

    /// Whether the server may do it when it is asked again.
    fn is_worth_another(&self, method: &Method) -> bool {
        const PASSING: [&str; 3] = ["InternalError", "ServiceUnavailable", "SlowDown"];
        match (self.status, method) {
            (408 | 429 | 500 | 502.., _) => true,
            // The end of an upload takes long: the answer begins before the server knows.
            (200, Method::Post) => self.code().is_some_and(|code| PASSING.contains(&code)),
            _ => false,
        }
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }

    fn element(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.text().split_once(&format!("<{name}>"))?;
        rest.split_once('<').map(|(value, _)| value)
    }

    pub(super) fn code(&self) -> Option<&str> {
        self.element("Code")
    }

    pub(super) fn problem(&self) -> String {
        if let (301 | 307 | 400, Some(region)) = (self.status, &self.region) {
            return format!("the bucket is in the region {region}, which --region names");
        }
        match (self.code(), self.element("Message")) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(code), None) => code.to_owned(),
            _ => format!("the server answers with status {}", self.status),
        }
    }
}

pub(super) struct Piece {
    bytes: Vec<u8>,
    total: u64,
    tag: Option<String>,
    pub(super) mark: Option<String>,
}

/// An object while it is read, piece by piece.
pub(super) struct Reader {
    client: Arc<Client>,
    file: String,
    piece: Piece,
    /// Bytes of the piece that were taken.
    taken: usize,
    /// Where the piece ends in the object.
    end: u64,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.bytes.len() && self.end < self.piece.total {
            let next = self.client.piece(&self.file, self.end, self.piece.tag.as_deref());
            let gone = || io::Error::other("it is gone");
            self.piece = next.map_err(io::Error::other)?.ok_or_else(gone)?;
            self.end += self.piece.bytes.len() as u64;
            self.taken = 0;
        }
        let length = (&self.piece.bytes[self.taken..]).read(buffer)?;
        self.taken += length;
        Ok(length)
    }
}
