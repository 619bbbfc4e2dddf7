//! A store in a bucket of S3, or of a server that speaks its protocol. rusty-s3 signs requests, and
//! ureq sends them.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusty_s3::actions::{CreateMultipartUpload, ListObjectsV2};
use rusty_s3::{Credentials, S3Action, UrlStyle};
use serde::{Deserialize, Serialize};

use super::access::{self, Access};
use super::interface::{Store, Upload, read_all};
use crate::moment::Moment;
use crate::print::say;

/// How long a signature is good.
const SIGNED_FOR: Duration = Duration::from_secs(60 * 60);
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a read or a write may stand still.
const PATIENCE: Duration = Duration::from_secs(60);
/// A request is sent so many times at most, with pauses that double from the first one on.
const ATTEMPTS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Bytes that are asked for at once.
const PIECE: u64 = 8 << 20;
/// Bytes of a part of an upload; each thousand parts it doubles, since there are 10 000 at most.
const PART: usize = 16 << 20;
const PARTS_OF_A_SIZE: usize = 1000;
/// What an object says of the upload that has made it: a number that no other one has.
const MARK: &str = "x-amz-meta-upload";
/// An answer that is longer is none.
const LONGEST_ANSWER: u64 = 64 << 20;

/// The object that says who writes here, and for how long after it was renewed.
const LOCK: &str = "lock";
const LOCKED_MS: u64 = 5 * 60 * 1000;
const RENEWED_EACH_MS: u64 = 60 * 1000;

/// See the module's text.
#[derive(Clone)]
pub(super) struct Bucket(Arc<Inner>);

struct Inner {
    agent: ureq::Agent,
    bucket: rusty_s3::Bucket,
    credentials: Option<Credentials>,
    /// What the names of all objects begin with: nothing, or it ends with a slash.
    prefix: String,
    /// When this program has last said that it writes here; none if it does not.
    locked_ms: Mutex<Option<u64>>,
}

/// Who writes to the store.
#[derive(Serialize, Deserialize)]
struct Owner {
    machine: String,
    process: u32,
    until: Moment,
}

struct Answer {
    status: u16,
    tag: Option<String>,
    range: Option<String>,
    region: Option<String>,
    mark: Option<String>,
    body: Vec<u8>,
    /// How often the request was sent before it was answered.
    attempts: u32,
}

enum Method {
    Get,
    Put,
    Post,
    Delete,
}

impl Bucket {
    /// `place` is `BUCKET/PREFIX`.
    pub(super) fn open(place: &str, access: &Access) -> Result<Bucket, String> {
        let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_matches('/');
        let is_odd = |part: &str| matches!(part, "" | "." | "..");
        if name.is_empty() || !prefix.is_empty() && prefix.split('/').any(is_odd) {
            return Err(format!("'s3://{place}' is no s3://BUCKET/PREFIX"));
        }
        let region = access.region();
        let (endpoint, style) = access.endpoint(&region, name);
        let wrong = |problem: String| format!("the endpoint {endpoint}: {problem}");
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
        let locked_ms = Mutex::new(None);
        Ok(Bucket(Arc::new(Inner { agent, bucket, credentials, prefix, locked_ms })))
    }
}

impl Inner {
    fn key(&self, file: &str) -> String {
        format!("{}{file}", self.prefix)
    }

    fn name(&self) -> String {
        format!("s3://{}/{}", self.bucket.name(), self.prefix.trim_end_matches('/'))
    }

    fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Sends a request until it is answered. Errors do not show the URL, which is signed.
    fn call<'a, A: S3Action<'a>>(
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
                Ok(answer) if !matches!(answer.status, 408 | 429 | 500..) => {
                    return Ok(Answer { attempts: attempt, ..answer });
                }
                Ok(answer) => answer.problem(),
                Err(ureq::Error::BadUri(_)) => return Err("the endpoint is no URL".to_owned()),
                Err(error) => error.to_string(),
            };
            if attempt == ATTEMPTS {
                return Err(problem);
            }
            say(&format!("{}: {problem}; trying again in {} ms", self.name(), pause.as_millis()));
            std::thread::sleep(pause);
            pause *= 2;
            attempt += 1;
        }
    }

    fn send(
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
            Method::Put => self.agent.put(url).send(body)?,
            Method::Post => {
                let mut request = self.agent.post(url);
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

    /// Says that this program writes here, when it is time to say it again.
    fn renew_lock(&self) -> Result<(), String> {
        let mut locked = self.locked_ms.lock().unwrap_or_else(PoisonError::into_inner);
        let now = base::clock::monotonic_ms();
        if locked.is_some_and(|at| now >= at + RENEWED_EACH_MS) {
            self.write_lock()?;
            *locked = Some(now);
        }
        Ok(())
    }

    fn write_lock(&self) -> Result<(), String> {
        let (machine, process) = self::machine();
        let until = Moment(Moment::now().0 + LOCKED_MS);
        let owner = Owner { machine, process, until };
        let text = serde_json::to_vec(&owner).map_err(|error| error.to_string())?;
        self.put(LOCK, &text).map(drop)
    }

    fn put(&self, file: &str, bytes: &[u8]) -> Result<Answer, String> {
        let key = self.key(file);
        let action = self.bucket.put_object(self.credentials(), &key);
        let answer = self.call(&Method::Put, &action, bytes, &[]);
        answer.and_then(Answer::good).map_err(|problem| self.failed(file, &problem))
    }

    fn failed(&self, file: &str, problem: &str) -> String {
        match file {
            "" => format!("{}: {problem}", self.name()),
            file => format!("{}/{file}: {problem}", self.name()),
        }
    }

    /// A piece of an object from here on, with the length of the whole; none if there is no such
    /// object.
    fn piece(&self, file: &str, from: u64, tag: Option<&str>) -> Result<Option<Piece>, String> {
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

/// The name of this machine, and the number of this process.
fn machine() -> (String, u32) {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    (name, std::process::id())
}

impl Answer {
    fn good(self) -> Result<Answer, String> {
        match self.status {
            200..300 => Ok(self),
            _ => Err(self.problem()),
        }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }

    fn element(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.text().split_once(&format!("<{name}>"))?;
        rest.split_once('<').map(|(value, _)| value)
    }

    fn code(&self) -> Option<&str> {
        self.element("Code")
    }

    fn problem(&self) -> String {
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

struct Piece {
    bytes: Vec<u8>,
    total: u64,
    tag: Option<String>,
    mark: Option<String>,
}

/// An object while it is read, piece by piece.
struct Reader {
    inner: Arc<Inner>,
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
            let next = self.inner.piece(&self.file, self.end, self.piece.tag.as_deref());
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

/// An object while it is written. A small one is sent as a whole at its end, a larger one in parts:
/// a part that fails is sent again by itself.
struct Parts {
    inner: Arc<Inner>,
    file: String,
    buffer: Vec<u8>,
    /// The number of the upload, and the tags of its parts, once there is a part.
    upload: Option<String>,
    tags: Vec<String>,
    /// By which its object is known.
    mark: String,
}

impl Parts {
    fn send_part(&mut self) -> Result<(), String> {
        let inner = Arc::clone(&self.inner);
        inner.renew_lock()?;
        let key = inner.key(&self.file);
        let upload = match &self.upload {
            Some(upload) => upload.clone(),
            None => {
                let bucket = &inner.bucket;
                let mut action = bucket.create_multipart_upload(inner.credentials(), &key);
                action.headers_mut().insert(MARK, self.mark.clone());
                let headers = [(MARK, self.mark.as_str())];
                let answer = inner.call(&Method::Post, &action, &[], &headers)?.good()?;
                let parsed = CreateMultipartUpload::parse_response(answer.text())
                    .map_err(|error| format!("no answer of S3: {error}"))?;
                self.upload.insert(parsed.upload_id().to_owned()).clone()
            }
        };
        let number = u16::try_from(self.tags.len() + 1).map_err(|_| "it is too large")?;
        let action = inner.bucket.upload_part(inner.credentials(), &key, number, &upload);
        let answer = inner.call(&Method::Put, &action, &self.buffer, &[])?.good()?;
        self.tags.push(answer.tag.ok_or("a part without a tag")?);
        self.buffer.clear();
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let inner = Arc::clone(&self.inner);
        if self.upload.is_none() {
            return inner.put(&self.file, &self.buffer).map(drop);
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        let Some(upload) = self.upload.clone() else { return Ok(()) };
        let key = inner.key(&self.file);
        let tags = self.tags.iter().map(String::as_str);
        let (bucket, credentials) = (&inner.bucket, inner.credentials());
        let action = bucket.complete_multipart_upload(credentials, &key, &upload, tags);
        let body = action.clone().body();
        let answer = inner.call(&Method::Post, &action, body.as_bytes(), &[])?;
        // An error may come after an answer that has begun well.
        let is_good = (200..300).contains(&answer.status) && answer.code().is_none();
        if !is_good && !self.was_complete(&answer)? {
            return Err(answer.problem());
        }
        self.upload = None;
        Ok(())
    }

    /// Whether an upload is not known any more because it was completed before, by a request whose
    /// answer was lost.
    fn was_complete(&self, answer: &Answer) -> Result<bool, String> {
        // Some call it NoSuchUpload, some NoSuchKey, and some say nothing else.
        if answer.attempts == 1 || answer.status != 404 {
            return Ok(false);
        }
        let object = self.inner.piece(&self.file, 0, None)?;
        Ok(object.is_some_and(|object| object.mark.as_ref() == Some(&self.mark)))
    }
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PART << (self.tags.len() / PARTS_OF_A_SIZE) {
            self.send_part().map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for Parts {
    fn finish(mut self: Box<Self>) -> Result<(), String> {
        let end = self.end();
        end.map_err(|problem| self.inner.failed(&self.file, &problem))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(upload) = &self.upload {
            let key = self.inner.key(&self.file);
            let (bucket, credentials) = (&self.inner.bucket, self.inner.credentials());
            let action = bucket.abort_multipart_upload(credentials, &key, upload);
            // What stays is removed by a rule of the bucket, if it has one.
            let url = action.sign(SIGNED_FOR);
            let _ = self.inner.send(&Method::Delete, url.as_str(), &[], &[]);
        }
    }
}

impl Store for Bucket {
    fn name(&self) -> String {
        self.0.name()
    }

    fn prepare(&self) -> Result<(), String> {
        if let Some(bytes) = read_all(self, LOCK)?
            && let Ok(owner) = serde_json::from_slice::<Owner>(&bytes)
        {
            let (machine, process) = machine();
            let is_gone = owner.machine == machine
                && (owner.process == process
                    || !std::path::Path::new(&format!("/proc/{}", owner.process)).exists());
            if !is_gone && owner.until > Moment::now() {
                return Err(format!(
                    "{}: another backup writes there: process {} of {}, until {} at least",
                    self.name(),
                    owner.process,
                    owner.machine,
                    owner.until
                ));
            }
        }
        self.0.write_lock()?;
        let mut locked = self.0.locked_ms.lock().unwrap_or_else(PoisonError::into_inner);
        *locked = Some(base::clock::monotonic_ms());
        Ok(())
    }

    fn read(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
        let piece = self.0.piece(file, 0, None).map_err(|problem| self.0.failed(file, &problem))?;
        Ok(piece.map(|piece| -> Box<dyn Read + Send> {
            let end = piece.bytes.len() as u64;
            let (inner, file) = (Arc::clone(&self.0), file.to_owned());
            Box::new(Reader { inner, file, piece, taken: 0, end })
        }))
    }

    fn begin(&self, file: &str) -> Result<Box<dyn Upload>, String> {
        let (inner, file) = (Arc::clone(&self.0), file.to_owned());
        Ok(Box::new(Parts {
            inner,
            file,
            buffer: Vec::new(),
            upload: None,
            tags: Vec::new(),
            mark: format!("{:016x}", base::rng::entropy_u64()),
        }))
    }

    fn put(&self, file: &str, bytes: &[u8]) -> Result<(), String> {
        self.0.renew_lock()?;
        self.0.put(file, bytes).map(drop)
    }

    fn remove(&self, file: &str) -> Result<(), String> {
        let key = self.0.key(file);
        let action = self.0.bucket.delete_object(self.0.credentials(), &key);
        let answer = self.0.call(&Method::Delete, &action, &[], &[]);
        match answer {
            Ok(answer) if answer.status == 404 => Ok(()),
            answer => answer
                .and_then(Answer::good)
                .map(drop)
                .map_err(|problem| self.0.failed(file, &problem)),
        }
    }

    fn files(&self) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let mut action = ListObjectsV2::new(&self.0.bucket, self.0.credentials());
            action.with_prefix(self.0.prefix.clone());
            if let Some(token) = &token {
                action.with_continuation_token(token.clone());
            }
            let answer = self.0.call(&Method::Get, &action, &[], &[]).and_then(Answer::good);
            let answer = answer.map_err(|problem| self.0.failed("", &problem))?;
            let page = ListObjectsV2::parse_response(answer.text())
                .map_err(|error| self.0.failed("", &format!("no list of S3: {error}")))?;
            let own = page.contents.iter().filter_map(|own| own.key.strip_prefix(&self.0.prefix));
            names.extend(own.filter(|name| !name.contains('/')).map(str::to_owned));
            token = page.next_continuation_token;
            if token.is_none() {
                return Ok(names);
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let locked = self.locked_ms.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if locked.is_some() {
            let key = self.key(LOCK);
            let action = self.bucket.delete_object(self.credentials(), &key);
            // Whoever comes next sees that this process is gone, or waits.
            let url = action.sign(SIGNED_FOR);
            let _ = self.send(&Method::Delete, url.as_str(), &[], &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;

    /// Takes a request: its first line, the mark in it, and its body, if there is one.
    fn take(connection: &TcpStream) -> Option<(String, Option<String>)> {
        let mut reader = BufReader::new(connection);
        let (mut first, mut mark, mut length) = (String::new(), None, 0);
        reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            match line.trim_end().split_once(": ") {
                None => break,
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap();
                }
                Some((name, value)) if name == MARK => mark = Some(value.to_owned()),
                Some(_) => {}
            }
        }
        io::copy(&mut reader.take(length), &mut io::sink()).unwrap();
        Some((first, mark))
    }

    /// A server that has completed an upload without saying so, and says of it only that it is not
    /// there. The object has the mark of the upload, or this one.
    fn upload(other: Option<&'static str>) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
        thread::spawn(move || {
            let (mut own, mut ends) = (None, 0);
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let Some((first, mark)) = take(&connection) else { continue };
                let (status, header, body) = match first.split(' ').next().unwrap() {
                    "POST" if mark.is_some() => {
                        own = mark;
                        let body = "<InitiateMultipartUploadResult \
                             xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><UploadId>u\
                             </UploadId></InitiateMultipartUploadResult>";
                        ("200 OK", String::new(), body)
                    }
                    "POST" => {
                        ends += 1;
                        if ends == 1 {
                            continue;
                        }
                        ("404 Not Found", String::new(), "")
                    }
                    "GET" => {
                        let mark = other.or(own.as_deref()).unwrap();
                        let header = format!("{MARK}: {mark}\r\ncontent-range: bytes 0-2/3\r\n");
                        ("206 Partial Content", header, "abc")
                    }
                    _ => ("200 OK", "etag: \"t\"\r\n".to_owned(), ""),
                };
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\n{header}connection: close\r\n");
                let answer = format!("{head}content-length: {length}\r\n\r\n{body}");
                connection.write_all(answer.as_bytes()).unwrap();
            }
        });
        let access = Access { endpoint, ..Access::default() };
        let Bucket(inner) = Bucket::open("own", &access).unwrap();
        let mut parts = Parts {
            inner,
            file: "f".to_owned(),
            buffer: b"abc".to_vec(),
            upload: None,
            tags: Vec::new(),
            mark: "0123".to_owned(),
        };
        parts.send_part()?;
        parts.end()
    }

    #[test]
    fn an_upload_was_completed_if_the_object_is_its_own() {
        assert_eq!(upload(None), Ok(()));
        let failed = upload(Some("4567"));
        assert!(failed.as_ref().is_err_and(|problem| problem.contains("404")), "{failed:?}");
    }
}
