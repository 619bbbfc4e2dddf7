//! A store in a bucket of S3, or of a server that speaks its protocol. rusty-s3 signs requests, and
//! ureq sends them.

mod client;
mod lock;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use lab::targets::Interrupt;
use rusty_s3::S3Action;
use rusty_s3::actions::{CreateMultipartUpload, ListObjectsV2};

use self::client::{Answer, Client, MARK, Method, SIGNED_FOR};
use self::lock::Lock;
use super::access::Access;
use super::interface::{Source, Store, Upload, has_changed};

/// Bytes of a part of an upload; each thousand parts it doubles, since there are 10 000 at most.
const PART: usize = 16 << 20;
const PARTS_OF_A_SIZE: usize = 1000;

/// A prefix has no more objects than this, and no more pages of their names.
const MOST_NAMES: usize = 1_000_000;
const MOST_PAGES: usize = 10_000;

/// See the module's text.
pub(super) struct Bucket {
    client: Arc<Client>,
    /// None as long as this program does not write here.
    lock: Mutex<Option<Lock>>,
}

impl Bucket {
    /// `place` is `BUCKET/PREFIX`.
    pub(super) fn open(
        place: &str,
        access: &Access,
        interrupt: &Interrupt,
    ) -> Result<Bucket, String> {
        let client = Arc::new(Client::open(place, access, interrupt)?);
        Ok(Bucket { client, lock: Mutex::new(None) })
    }
}

/// An object while it is written. A small one is sent as a whole at its end, a larger one in parts:
/// a part that fails is sent again by itself.
struct Parts {
    client: Arc<Client>,
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
        let client = Arc::clone(&self.client);
        let key = client.key(&self.file);
        let upload = match &self.upload {
            Some(upload) => upload.clone(),
            None => {
                let bucket = &client.bucket;
                let mut action = bucket.create_multipart_upload(client.credentials(), &key);
                action.headers_mut().insert(MARK, self.mark.clone());
                let headers = [(MARK, self.mark.as_str())];
                let answer = client.call(&Method::Post, &action, &[], &headers)?.good()?;
                let parsed = CreateMultipartUpload::parse_response(answer.text())
                    .map_err(|error| format!("no answer of S3: {error}"))?;
                self.upload.insert(parsed.upload_id().to_owned()).clone()
            }
        };
        let number = u16::try_from(self.tags.len() + 1).map_err(|_| "it is too large")?;
        let action = client.bucket.upload_part(client.credentials(), &key, number, &upload);
        let answer = client.call(&Method::Put, &action, &self.buffer, &[])?.good()?;
        self.tags.push(answer.tag.ok_or("a part without a tag")?);
        self.buffer.clear();
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let client = Arc::clone(&self.client);
        if self.upload.is_none() {
            return client.put(&self.file, &self.buffer).map(drop);
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        let Some(upload) = self.upload.clone() else { return Ok(()) };
        let key = client.key(&self.file);
        let tags = self.tags.iter().map(String::as_str);
        let (bucket, credentials) = (&client.bucket, client.credentials());
        let action = bucket.complete_multipart_upload(credentials, &key, &upload, tags);
        let body = action.clone().body();
        let answer = client.call(&Method::Post, &action, body.as_bytes(), &[])?;
        // An error may come after an answer that has begun well.
        let is_good = (200..300).contains(&answer.status) && answer.code().is_none();
        if !is_good && !self.was_complete(&answer)? {
            return Err(answer.problem());
        }
        self.upload = None;
        Ok(())
    }

    /// Whether an upload cannot be completed because it was, by a request whose answer was lost, or
    /// because that request is just doing it.
    fn was_complete(&self, answer: &Answer) -> Result<bool, String> {
        // Some call it NoSuchUpload, some NoSuchKey or InvalidPart, and some say nothing else.
        if answer.attempts == 1 {
            return Ok(false);
        }
        self.client.look_for(|| {
            let object = self.client.piece(&self.file, 0, None)?;
            Ok(object.is_some_and(|object| object.mark.as_ref() == Some(&self.mark)))
        })
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
        end.map_err(|problem| self.client.failed(&self.file, &problem))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(upload) = &self.upload {
            let key = self.client.key(&self.file);
            let (bucket, credentials) = (&self.client.bucket, self.client.credentials());
            let action = bucket.abort_multipart_upload(credentials, &key, upload);
            // What stays is removed by a rule of the bucket, if it has one.
            let url = action.sign(SIGNED_FOR);
            let _ = self.client.send(&Method::Delete, url.as_str(), &[], &[]);
        }
    }
}

impl Source for Bucket {
    fn name(&self) -> String {
        self.client.name()
    }

    fn read(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, String> {
        let reader = self.client.reader(file)?;
        Ok(reader.map(|reader| -> Box<dyn Read + Send> { Box::new(reader) }))
    }
}

impl Store for Bucket {
    fn prepare(&self) -> Result<(), String> {
        let lock = Lock::take(&self.client, lock::RENEWED_EACH)?;
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(())
    }

    fn begin(&self, file: &str) -> Result<Box<dyn Upload>, String> {
        let (client, file) = (Arc::clone(&self.client), file.to_owned());
        Ok(Box::new(Parts {
            client,
            file,
            buffer: Vec::new(),
            upload: None,
            tags: Vec::new(),
            mark: format!("{:016x}", base::rng::entropy_u64()),
        }))
    }

    fn put(&self, file: &str, bytes: &[u8]) -> Result<(), String> {
        self.client.put(file, bytes).map(drop)
    }

    fn replace(&self, file: &str, known: Option<&[u8]>, bytes: &[u8]) -> Result<(), String> {
        if let Some(lock) = &*self.lock.lock().unwrap_or_else(PoisonError::into_inner) {
            lock.check()?;
        }
        let found = self.client.find(file)?;
        let is_known = found.as_ref().map(|found| &found.bytes[..]) == known;
        match is_known && self.client.put_if(file, found.as_ref(), bytes)? {
            true => Ok(()),
            false => Err(has_changed(&self.name())),
        }
    }

    fn remove(&self, file: &str) -> Result<(), String> {
        let key = self.client.key(file);
        let action = self.client.bucket.delete_object(self.client.credentials(), &key);
        let answer = self.client.call(&Method::Delete, &action, &[], &[]);
        match answer {
            Ok(answer) if answer.status == 404 => Ok(()),
            answer => answer
                .and_then(Answer::good)
                .map(drop)
                .map_err(|problem| self.client.failed(file, &problem)),
        }
    }

    fn files(&self) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let mut token: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let client = &self.client;
            let mut action = ListObjectsV2::new(&client.bucket, client.credentials());
            action.with_prefix(client.prefix.clone());
            if let Some(token) = &token {
                action.with_continuation_token(token.clone());
            }
            let answer = client.call(&Method::Get, &action, &[], &[]).and_then(Answer::good);
            let answer = answer.map_err(|problem| client.failed("", &problem))?;
            let page = ListObjectsV2::parse_response(answer.text())
                .map_err(|error| client.failed("", &format!("no list of S3: {error}")))?;
            let own = page.contents.iter().filter_map(|own| own.key.strip_prefix(&client.prefix));
            names.extend(own.filter(|name| !name.contains('/')).map(str::to_owned));
            token = page.next_continuation_token;
            if token.is_none() {
                return Ok(names);
            }
            if names.len() > MOST_NAMES {
                break;
            }
        }
        Err(self.client.failed("", "its list of objects has no end"))
    }
}
