//! The client of S3, and servers that answer as not every one does.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::MutexGuard;
use std::thread;
use std::time::Duration;

use super::*;
use crate::digest::sha256;
use crate::moment::Moment;

const NO_SUCH_KEY: &[u8] = b"<Error><Code>NoSuchKey</Code></Error>";

struct Request {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// Takes a request, if there is one.
fn take(connection: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(connection);
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = first.split(' ').map(str::to_owned);
    Some(Request { method: words.next()?, path: words.next()?, headers, body })
}

fn answer(mut connection: TcpStream, status: &str, header: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {status}\r\n{header}connection: close\r\n");
    let head = format!("{head}content-length: {}\r\n\r\n", body.len());
    // Whoever has asked may have gone.
    let _ = connection.write_all(&[head.as_bytes(), body].concat());
}

/// The bucket `own` at a server that treats each request in this way.
fn bucket(serve: impl FnMut(Request, TcpStream) + Send + 'static) -> Bucket {
    bucket_until(&Interrupt::default(), serve)
}

/// The same, until the user asks for the end.
fn bucket_until(
    interrupt: &Interrupt,
    mut serve: impl FnMut(Request, TcpStream) + Send + 'static,
) -> Bucket {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
    thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.unwrap();
            if let Some(request) = take(&connection) {
                serve(request, connection);
            }
        }
    });
    let access = Access { endpoint, ..Access::default() };
    Bucket::open("own", &access, interrupt).unwrap()
}

/// A server that has completed an upload without saying so, or has this first answer, and that one
/// when it is asked again. The object comes after so many questions, with the mark of the upload or
/// this one.
fn upload(
    first: Option<&'static [u8]>,
    status: &'static str,
    absent: u32,
    other: Option<&'static str>,
) -> Result<(), String> {
    let (mut own, mut ends, mut questions) = (None, 0, 0);
    let bucket = bucket(move |request, connection| {
        let mark = request.headers.get(MARK).cloned();
        match &*request.method {
            "POST" if mark.is_some() => {
                own = mark;
                let body = "<InitiateMultipartUploadResult \
                            xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><UploadId>u\
                            </UploadId></InitiateMultipartUploadResult>";
                answer(connection, "200 OK", "", body.as_bytes());
            }
            "POST" => {
                ends += 1;
                match (ends, first) {
                    (1, None) => {}
                    (1, Some(body)) => answer(connection, "200 OK", "", body),
                    _ => answer(connection, status, "", b""),
                }
            }
            "GET" if questions < absent => {
                questions += 1;
                answer(connection, "404 Not Found", "", NO_SUCH_KEY);
            }
            "GET" => {
                let mark = other.or(own.as_deref()).unwrap();
                let header = format!("{MARK}: {mark}\r\ncontent-range: bytes 0-2/3\r\n");
                answer(connection, "206 Partial Content", &header, b"abc");
            }
            _ => answer(connection, "200 OK", "etag: \"t\"\r\n", b""),
        }
    });
    let mut parts = Parts {
        client: bucket.client,
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
    assert_eq!(upload(None, "404 Not Found", 0, None), Ok(()));
    assert_eq!(upload(None, "400 Bad Request", 2, None), Ok(()));
    let failed = upload(None, "404 Not Found", 0, Some("4567"));
    assert!(failed.as_ref().is_err_and(|problem| problem.contains("404")), "{failed:?}");
}

/// It has begun to answer before it has failed.
#[test]
fn the_end_of_an_upload_is_sent_again_if_it_has_failed_for_now() {
    let failed = |code: &[u8]| -> &'static [u8] {
        [b"<?xml version=\"1.0\"?>\n<Error><Code>", code, b"</Code></Error>"].concat().leak()
    };
    assert_eq!(upload(Some(failed(b"InternalError")), "200 OK", 0, None), Ok(()));
    upload(Some(failed(b"InvalidPart")), "200 OK", 0, None).unwrap_err();
}

/// What a server makes of conditions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Conditions {
    Obeyed,
    Ignored,
    Refused,
}

/// The objects of a server, and what happens to them behind the client's back.
#[derive(Default)]
struct Objects {
    all: HashMap<String, Vec<u8>>,
    /// Written by somebody else right after the next time that somebody reads this object.
    after_read: Option<(&'static str, &'static [u8])>,
    /// The answer to the next write with a condition is lost.
    loses_answer: bool,
    /// The next write with a condition is not answered, and done after so many reads. Until then
    /// others are refused.
    delayed_by: Option<u32>,
    delayed: Option<Vec<u8>>,
    locked: usize,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Objects>>);

impl Shared {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.0.lock().unwrap()
    }

    fn bucket(&self, conditions: Conditions) -> Bucket {
        let shared = self.clone();
        bucket(move |request, connection| shared.serve(conditions, &request, connection))
    }

    fn serve(&self, conditions: Conditions, request: &Request, connection: TcpStream) {
        let mut objects = self.objects();
        let path = request.path.split('?').next().unwrap();
        let name = path.strip_prefix("/own/").unwrap().to_owned();
        let tag = |bytes: &Vec<u8>| format!("\"{}\"", sha256(bytes));
        let found = objects.all.get(&name).map(tag);
        match &*request.method {
            "GET" => {
                if objects.delayed.is_some() {
                    objects.delayed_by = objects.delayed_by.map(|reads| reads - 1);
                }
                let Some(tag) = found else {
                    return answer(connection, "404 Not Found", "", NO_SUCH_KEY);
                };
                let header = format!("etag: {tag}\r\n");
                answer(connection, "200 OK", &header, &objects.all[&name]);
                if let Some((_, bytes)) = objects.after_read.take_if(|(own, _)| *own == name) {
                    objects.all.insert(name.clone(), bytes.to_vec());
                }
                if objects.delayed_by == Some(0) {
                    objects.delayed_by = None;
                    let bytes = objects.delayed.take().unwrap();
                    objects.all.insert(name, bytes);
                }
            }
            "PUT" => {
                let wanted = request.headers.get("if-match");
                let absent = request.headers.contains_key("if-none-match");
                let has_condition = absent || wanted.is_some();
                let holds = if absent { found.is_none() } else { wanted == found.as_ref() };
                match conditions {
                    Conditions::Refused if has_condition => {
                        return answer(connection, "501 Not Implemented", "", b"");
                    }
                    Conditions::Obeyed if has_condition && !holds => {
                        return answer(connection, "412 Precondition Failed", "", b"");
                    }
                    _ => {}
                }
                if has_condition && objects.delayed_by.is_some() {
                    match objects.delayed {
                        None => objects.delayed = Some(request.body.clone()),
                        Some(_) => answer(connection, "409 Conflict", "", b""),
                    }
                    return;
                }
                objects.locked += usize::from(name == "lock");
                objects.all.insert(name, request.body.clone());
                if !(has_condition && std::mem::take(&mut objects.loses_answer)) {
                    answer(connection, "200 OK", "", b"");
                }
            }
            _ => {
                objects.all.remove(&name);
                answer(connection, "204 No Content", "", b"");
            }
        }
    }
}

/// A server that answers each request in the same way.
fn endless(status: &'static str, header: &'static str, body: Vec<u8>) -> Bucket {
    bucket(move |_, connection| answer(connection, status, header, &body))
}

#[test]
fn what_has_no_end_is_not_read_for_ever() {
    let header = "content-range: bytes 0-1/9000000000000000000\r\n";
    let object = endless("206 Partial Content", header, vec![0; 32 << 20]);
    let problem = object.client.find("lock").map(drop).unwrap_err();
    assert!(problem.contains("it has more than"), "{problem}");
    let contents: String = (0..200_000)
        .map(|number| {
            format!(
                "<Contents><ETag>t</ETag><Key>{number}</Key><LastModified>x</LastModified>\
             <Size>1</Size></Contents>"
            )
        })
        .collect();
    let page = format!(
        "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <EncodingType>url</EncodingType>{contents}<NextContinuationToken>t\
         </NextContinuationToken></ListBucketResult>"
    );
    let list = endless("200 OK", "", page.into_bytes());
    let problem = list.files().unwrap_err();
    assert!(problem.contains("has no end"), "{problem}");
}

#[test]
fn a_server_that_fails_is_not_asked_again_when_the_user_asks_for_the_end() {
    let (count, interrupt) = (Arc::new(Mutex::new(0)), Interrupt::default());
    let (counted, asked) = (Arc::clone(&count), interrupt.clone());
    let failing = bucket_until(&interrupt, move |_, connection| {
        *counted.lock().unwrap() += 1;
        asked.set();
        answer(connection, "500 Internal Server Error", "", b"");
    });
    failing.put("f", b"1").unwrap_err();
    assert_eq!(*count.lock().unwrap(), 1);
}

#[test]
fn an_object_is_replaced_if_it_is_what_is_known() {
    for conditions in [Conditions::Obeyed, Conditions::Ignored, Conditions::Refused] {
        let shared = Shared::default();
        let bucket = shared.bucket(conditions);
        let has_failed = |result: Result<(), String>| {
            result.is_err_and(|problem| problem.contains("has written there meanwhile"))
        };
        bucket.replace("list", None, b"1").unwrap();
        assert!(has_failed(bucket.replace("list", None, b"2")));
        bucket.replace("list", Some(b"1"), b"2").unwrap();
        assert!(has_failed(bucket.replace("list", Some(b"1"), b"3")));
        assert_eq!(shared.objects().all["list"], b"2");
        // Somebody writes it between the question and the write.
        shared.objects().after_read = Some(("list", b"of another"));
        let obeys = conditions == Conditions::Obeyed;
        assert_eq!(has_failed(bucket.replace("list", Some(b"2"), b"3")), obeys, "{conditions:?}");
        if obeys {
            assert_eq!(shared.objects().all["list"], b"of another");
        }
    }
}

#[test]
fn an_object_was_replaced_if_it_is_what_was_sent() {
    let shared = Shared::default();
    let bucket = shared.bucket(Conditions::Obeyed);
    bucket.replace("list", None, b"1").unwrap();
    shared.objects().loses_answer = true;
    bucket.replace("list", Some(b"1"), b"2").unwrap();
    assert_eq!(shared.objects().all["list"], b"2");
}

#[test]
fn an_object_that_is_just_being_replaced_is_waited_for() {
    let shared = Shared::default();
    let bucket = shared.bucket(Conditions::Obeyed);
    bucket.replace("list", None, b"1").unwrap();
    shared.objects().delayed_by = Some(2);
    bucket.replace("list", Some(b"1"), b"2").unwrap();
    assert_eq!(shared.objects().all["list"], b"2");
}

fn wait_for(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_lock_is_renewed_by_time_until_it_is_given_back() {
    let shared = Shared::default();
    let bucket = shared.bucket(Conditions::Obeyed);
    let lock = Lock::take(&bucket.client, Duration::from_millis(1)).unwrap();
    wait_for(|| shared.objects().locked > 3);
    drop(lock);
    assert!(shared.objects().all.is_empty());
}

#[test]
fn a_lock_that_another_run_has_taken_is_respected() {
    let until = Moment(Moment::now().0 + 60_000);
    let other = format!(r#"{{"machine":"m","process":1,"run":"r","until":"{until}"}}"#);
    let other: &[u8] = other.leak().as_bytes();
    // Of an earlier version, on a machine that is gone.
    const OLD: &[u8] = br#"{"machine":"m","process":1,"until":"2020-01-01T00:00:00Z"}"#;
    let is_other = |result: Result<(), String>| {
        result.is_err_and(|problem| problem.contains("process 1 of m"))
    };
    for conditions in [Conditions::Obeyed, Conditions::Ignored, Conditions::Refused] {
        let shared = Shared::default();
        shared.objects().all.insert("lock".to_owned(), OLD.to_vec());
        let bucket = shared.bucket(conditions);
        bucket.prepare().unwrap();
        bucket.replace("list", None, b"1").unwrap();
        // The lock has run out.
        shared.objects().all.insert("lock".to_owned(), other.to_vec());
        assert!(is_other(bucket.replace("list", Some(b"1"), b"2")));
        assert_eq!(shared.objects().all["list"], b"1");
        drop(bucket);
        assert_eq!(shared.objects().all["lock"], other);
        assert!(is_other(shared.bucket(conditions).prepare()));
    }
    // Both find no lock.
    let shared = Shared::default();
    shared.objects().all.insert("lock".to_owned(), OLD.to_vec());
    shared.objects().after_read = Some(("lock", other));
    let problem = shared.bucket(Conditions::Obeyed).prepare().unwrap_err();
    assert!(problem.contains("begins there just now"), "{problem}");
    assert_eq!(shared.objects().all["lock"], other);
}
