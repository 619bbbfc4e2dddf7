//! Which command a request becomes.

mod commands;
mod etcd;
mod get;
mod operator;
mod push;
mod views;

use std::borrow::Cow;
use std::sync::Arc;

use base::limits;
use engine::host::LogLevel;
use engine::registry::{HttpRows, Row};
use http::answer::Envelope;
use http::json::{self, Malformed};
use http::request::{self, Head, range_in};
use http::tag::{self, Tags};
use http::target::{self, Target};
use http::translation::Strings;
use http::weight;
use resp::args::{ArgRange, Arguments};

use self::get::{get, takes_openmetrics};
use super::dashboard;
use super::description::description;
use super::etcd::cluster::{self, is_own, reworded};
use super::exchange::{Exchange, Kind, List, Style, Tree, Want};
use super::familiar::Asked;
use super::guard::{self, Stranger};
use super::intake::Intake;
use super::prepared::Prepared;
use crate::net::batch::Batch;

mod follow;

/// Where the body of a request lies.
#[derive(Clone, Copy)]
enum Body<'b> {
    /// In the connection's buffer.
    Here(&'b [u8]),
    /// In an allocation of its own: its number.
    Apart(usize),
}

/// Turns a request into its commands.
pub(super) struct Route<'a> {
    pub(super) buffer: &'a [u8],
    /// Arguments that had to be decoded or composed.
    pub(super) side: &'a mut Vec<u8>,
    /// Bodies in allocations of their own.
    pub(super) big: &'a mut Vec<Arc<Vec<u8>>>,
    pub(super) intake: Intake<'a>,
    pub(super) batch: &'a mut Batch,
}

/// A request that is answered without a command.
struct Refused(Prepared);

impl From<(u16, &str)> for Refused {
    fn from((status, reason): (u16, &str)) -> Refused {
        Refused(Prepared::error(status, reason))
    }
}

impl From<target::Malformed> for Refused {
    fn from(_: target::Malformed) -> Refused {
        (400, "the address is not encoded as it should be").into()
    }
}

impl From<Malformed> for Refused {
    fn from(Malformed(reason): Malformed) -> Refused {
        (400, reason).into()
    }
}

type Routed<T> = Result<T, Refused>;

/// Addresses that answer without a password.
fn needs_no_password(path: &[u8]) -> bool {
    matches!(path, b"/healthz" | b"/readyz" | b"/health")
}

/// The longest body of a request with this method to this path.
fn longest_body(method: &str, path: &[u8], intake: Intake<'_>) -> u64 {
    let of_value = intake.config.proto_max_bulk_len;
    match path {
        _ if matches!(method, "GET" | "HEAD" | "OPTIONS") || needs_no_password(path) => {
            limits::HTTP_UNUSED_BODY
        }
        _ if path.starts_with(b"/v1/keys/") && method == "PATCH" => limits::HTTP_PATCH as u64,
        _ if path.starts_with(b"/v1/keys/") && method == "PUT" => of_value,
        _ if is_own(path) => of_value.min(limits::ETCD_FORM),
        _ => of_value.min(limits::HTTP_JSON),
    }
}

/// How a body is received.
pub(super) struct Reception {
    /// The client waits to be told to send it.
    pub(super) wants_continue: bool,
    /// Most bytes that it may have.
    pub(super) most: u64,
}

/// Decides by the head of a request whether its body should be received.
pub(super) fn look_at_head(
    head: &Head<'_>,
    intake: Intake<'_>,
) -> Result<Reception, Box<Exchange>> {
    let mut envelope = Envelope::default();
    let verdict = checked(head, intake, &mut envelope).and_then(|target| {
        let most = longest_body(head.method, target.path, intake);
        let length = head.header("content-length").unwrap_or_default();
        let zeros = length.iter().take_while(|byte| **byte == b'0').count();
        let length = base::num::parse_i64(&length[zeros..]).unwrap_or(0).unsigned_abs();
        if length > most {
            return Err((413, "the body is too large").into());
        }
        let wants_continue = match head.header("expect") {
            Some(word) if word.eq_ignore_ascii_case(b"100-continue") => !head.is_1_0,
            Some(_) => return Err((417, "nothing but 100-continue can be expected").into()),
            None => false,
        };
        Ok(Reception { wants_continue, most })
    });
    // The bytes after the answer may be the body all the same.
    envelope.close = true;
    verdict.map_err(|Refused(prepared)| {
        log_refusal(head, &envelope, &prepared, intake);
        Box::new(Exchange::prepared(envelope, told(head, prepared)))
    })
}

/// A refusal in the form that its address uses.
fn told(head: &Head<'_>, prepared: Prepared) -> Prepared {
    let path = head.target.trim_start_matches('/');
    if path.starts_with("v2/keys") { reworded(prepared) } else { prepared }
}

/// Logs which request was refused. Its address may contain data, so it is not logged.
fn log_refusal(head: &Head<'_>, envelope: &Envelope, prepared: &Prepared, intake: Intake<'_>) {
    let id = envelope.id.as_deref().unwrap_or(b"-");
    let line = format!(
        "HTTP request refused: id={} client={} addr={} method={} status={}",
        String::from_utf8_lossy(id),
        intake.client.id,
        intake.client.address,
        head.method,
        prepared.status
    );
    intake.engine.host.log(LogLevel::Verbose, &line);
}

/// Checks permissions as far as the head allows, and returns the address. Puts into the envelope what
/// all answers depend on.
fn checked<'h>(head: &Head<'h>, intake: Intake<'_>, envelope: &mut Envelope) -> Routed<Target<'h>> {
    envelope.id = head.header("x-request-id").and_then(request_id);
    envelope.gzip = weight::takes(head.all("accept-encoding"), "gzip");
    envelope.varies = !intake.config.http_cors_origins.is_empty();
    envelope.head = head.method == "HEAD";
    envelope.close = head.closes();
    envelope.is_1_0 = head.is_1_0;
    envelope.keeps_1_0 = head.is_1_0 && !envelope.close;
    let text = if head.method == "OPTIONS" && head.target == "*" { "/" } else { head.target };
    let target = Target::split(text.as_bytes())?;
    let token = target.parameters().find(|(name, _)| *name == TOKEN && takes_token(target.path));
    let token = token.map(|(_, value)| query_part(value)).transpose()?;
    let user = guard::user(head, token.as_deref(), intake.config);
    let is_page = dashboard::is_asked_for(head, target.path);
    envelope.origin = match guard::origin(head, &target, intake.config, user) {
        // A browser follows a link to the page, which shows nothing by itself.
        Err(Stranger::Page) if is_page && head.header("origin").is_none() => None,
        // Programs that look after the server know it by names that nobody has listed.
        Err(Stranger::Host) if guard::is_of_a_probe(head, target.path) => None,
        origin => origin.map_err(refused_stranger)?.map(Into::into),
    };
    let is_open = is_page || needs_no_password(target.path) || head.method == "OPTIONS";
    if user.is_none() && !is_open {
        let mut prepared = Prepared::error(401, "NOAUTH Authentication required.");
        prepared.headers.push(("WWW-Authenticate", b"Bearer, Basic realm=\"dunlin\"".to_vec()));
        return Err(Refused(prepared));
    }
    Ok(target)
}

/// An identifier that may go into a header and into the log.
fn request_id(text: &[u8]) -> Option<Box<[u8]>> {
    let fits = (1..=limits::HTTP_REQUEST_ID).contains(&text.len());
    (fits && text.iter().all(u8::is_ascii_graphic)).then(|| text.into())
}

fn refused_stranger(stranger: Stranger) -> Refused {
    match stranger {
        Stranger::NoHost => (400, "a request names exactly one host").into(),
        Stranger::Host => (
            421,
            "this server does not know the host name of the request: list it in http-host-names",
        )
            .into(),
        Stranger::Page => (
            403,
            "this server takes no requests from that web page: list its origin in http-cors-origins",
        )
            .into(),
    }
}

/// The meaning of a path.
enum Place<'t> {
    Key(&'t [u8]),
    Keys,
    Mget,
    Command(Style),
    /// A command, and for who asks: what is here.
    Root(Style),
    Pipeline(Style),
    Transaction(Style),
    /// A command as the segments of a path.
    Words(&'t [u8]),
    Health,
    Readiness,
    Metrics,
    Changes,
    Memory,
    HotKeys,
    Views,
    View(&'t [u8]),
    Description,
    /// Something that clients of etcd ask for.
    Etcd(&'t [u8]),
}

impl<'t> Place<'t> {
    fn of(path: &'t [u8], strings: Option<Strings>) -> Option<Place<'t>> {
        let own = Style { resp3: true, strings: strings.unwrap_or(Strings::Tagged) };
        let upstash = Style { resp3: false, strings: strings.unwrap_or(Strings::Lossy) };
        if let Some(key) = path.strip_prefix(b"/v1/keys/") {
            return Some(Place::Key(key));
        }
        if let Some(name) = path.strip_prefix(b"/v1/views/") {
            return Some(Place::View(name));
        }
        Some(match path {
            b"/v1/keys" => Place::Keys,
            b"/v1/mget" => Place::Mget,
            b"/v1/command" => Place::Command(own),
            b"/v1/pipeline" => Place::Pipeline(own),
            b"/v1/transaction" => Place::Transaction(own),
            b"/" => Place::Root(upstash),
            b"/pipeline" => Place::Pipeline(upstash),
            b"/multi-exec" => Place::Transaction(upstash),
            b"/healthz" => Place::Health,
            b"/readyz" => Place::Readiness,
            b"/metrics" => Place::Metrics,
            b"/v1/changes" => Place::Changes,
            b"/v1/memory" => Place::Memory,
            b"/v1/hotkeys" => Place::HotKeys,
            b"/v1/views" => Place::Views,
            b"/v1/openapi.json" => Place::Description,
            _ if path.starts_with(b"/v1/") => return None,
            _ if is_own(path) => Place::Etcd(path),
            _ => Place::Words(&path[1..]),
        })
    }

    /// The methods that it takes.
    fn methods(&self, intake: Intake<'_>) -> &'static str {
        match self {
            Place::View(name) if !intake.writes_through(name) => "GET, HEAD, DELETE, OPTIONS",
            Place::Key(_) => "GET, HEAD, PUT, PATCH, POST, DELETE, OPTIONS",
            Place::Keys
            | Place::Health
            | Place::Readiness
            | Place::Metrics
            | Place::Memory
            | Place::HotKeys
            | Place::Description => "GET, HEAD, OPTIONS",
            Place::Changes => "GET, OPTIONS",
            Place::Root(_) => "GET, HEAD, POST, OPTIONS",
            Place::Mget | Place::Command(_) | Place::Pipeline(_) | Place::Transaction(_) => {
                "POST, OPTIONS"
            }
            Place::Views => "GET, HEAD, DELETE, OPTIONS",
            Place::View(_) => "GET, HEAD, POST, DELETE, OPTIONS",
            Place::Words(_) => "GET, HEAD, POST, PUT, OPTIONS",
            Place::Etcd(path) => cluster::methods(path),
        }
    }

    #[inline]
    fn takes(&self, method: &str, intake: Intake<'_>) -> bool {
        match (self, method) {
            (Place::Key(_), "GET" | "PUT") => true,
            // Each of its addresses says so itself.
            (Place::Etcd(_), _) => true,
            _ => self.methods(intake).split(", ").any(|own| own == method),
        }
    }
}

impl Route<'_> {
    /// Adds the commands of a request to the batch.
    pub(super) fn take(&mut self, head: &Head<'_>, body: request::Body<'_>) -> Exchange {
        let body = match body {
            request::Body::Here(bytes) => Body::Here(bytes),
            request::Body::Apart(bytes) => {
                self.big.push(Arc::new(bytes));
                Body::Apart(self.big.len() - 1)
            }
        };
        let mark = self.batch.mark();
        let mut envelope = Envelope::default();
        let routed = checked(head, self.intake, &mut envelope)
            .and_then(|target| self.route(head, &target, body));
        match routed {
            Ok((kind, database)) => {
                // Its answer goes on until the connection ends.
                envelope.close |= kind.ends_connection();
                Exchange::new(envelope, kind, database)
            }
            Err(Refused(prepared)) => {
                self.batch.roll_back(mark);
                log_refusal(head, &envelope, &prepared, self.intake);
                Exchange::prepared(envelope, told(head, prepared))
            }
        }
    }

    /// The same for a request whose headers are known.
    #[inline]
    pub(super) fn take_familiar(&mut self, asked: Asked<'_>) -> Exchange {
        let first = self.begin();
        self.here(asked.method);
        self.here(asked.key);
        self.add(first, self.rows().get);
        Exchange::new(asked.envelope, Kind::Get(Want::Plain(asked.question)), 0)
    }

    fn route(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        body: Body<'_>,
    ) -> Routed<(Kind, usize)> {
        if dashboard::is_asked_for(head, target.path) {
            return Ok((Kind::ready(dashboard::file(target.path)), 0));
        }
        let base64 = head.header("upstash-encoding").map(|word| word == b"base64");
        let strings = base64.unwrap_or(false).then_some(Strings::Base64);
        let place =
            Place::of(target.path, strings).ok_or((404, "there is nothing at this address"))?;
        if head.method == "OPTIONS" {
            return Ok((options(place.methods(self.intake)), 0));
        }
        if !place.takes(head.method, self.intake) {
            let mut prepared = Prepared::error(405, "this address does not take this method");
            prepared.headers.push(("Allow", place.methods(self.intake).into()));
            return Err(Refused(prepared));
        }
        if self.bytes(body).len() as u64 > longest_body(head.method, target.path, self.intake) {
            return Err((413, "the body is too large").into());
        }
        match place {
            Place::Key(key) => self.key(head, target, key, body),
            Place::Keys => self.keys(target),
            Place::Transaction(style) => self.transaction(head, target, body, style),
            Place::Memory => self.memory(target),
            Place::HotKeys => self.hot_keys(target),
            Place::Changes => self.changes(head, target),
            Place::Views => self.views(head, target),
            Place::View(name) => self.view(head, target, name, body),
            Place::Etcd(_) => self.etcd(head, target, body),
            Place::Words(path) => {
                let strings = strings.unwrap_or(Strings::Lossy);
                let style = Style { resp3: false, strings };
                Ok((self.words(head, target, (path, body), style)?, 0))
            }
            place => {
                let database = self.database_alone(target)?;
                Ok((self.route_body(&place, (head, target), body)?, database))
            }
        }
    }

    /// The addresses whose request is in the body alone.
    fn route_body(
        &mut self,
        place: &Place<'_>,
        (head, target): (&Head<'_>, &Target<'_>),
        body: Body<'_>,
    ) -> Routed<Kind> {
        match *place {
            Place::Root(_) if head.method != "POST" => {
                Ok(Kind::ready(Prepared::json(200, dashboard::what_is_here())))
            }
            Place::Mget => {
                let first = self.begin();
                self.word(b"MGET");
                self.words_of(body, |text, visit| {
                    json::read_words(text, limits::HTTP_MGET, visit)
                })?;
                self.add(first, self.rows().mget);
                Ok(Kind::Json)
            }
            Place::Root(style) | Place::Command(style) => {
                let first = self.begin();
                self.words_of(body, json::read_command)?;
                self.add_named(first)?;
                Ok(Kind::One(style))
            }
            Place::Pipeline(style) => self.commands(body, (style, head.is_1_0), None),
            Place::Health => Ok(Kind::ready(Prepared::status(200, "ok"))),
            Place::Readiness => {
                Ok(Kind::ready(Prepared::readiness(self.intake.engine, self.intake.config)))
            }
            Place::Description => {
                let text = description(self.intake.config, &self.intake.offer.views);
                Ok(Kind::ready(Prepared::json(200, text)))
            }
            Place::Metrics => {
                let open = takes_openmetrics(head);
                let first = self.begin();
                self.word(b"METRICS");
                if open {
                    self.word(b"OPEN");
                }
                if !guard::may_see_keys(head, target, self.intake.config) {
                    self.word(b"KEYLESS");
                }
                self.add(first, self.rows().metrics);
                Ok(Kind::Metrics { open })
            }
            _ => Err((404, "there is nothing at this address").into()),
        }
    }

    // ---- Keys -----------------------------------------------------------------------------------

    fn key(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        key: &[u8],
        body: Body<'_>,
    ) -> Routed<(Kind, usize)> {
        let first = self.begin();
        self.here(head.method.as_bytes());
        self.path_part(key)?;
        match head.method {
            "GET" if target.parameters().any(|(name, _)| name == b"wait") => {
                self.wait(head, target, first)
            }
            "GET" | "HEAD" => {
                let database = self.part(target)?;
                self.add(first, self.rows().get);
                Ok((Kind::Get(Want::of(get(head))), database))
            }
            "PUT" => {
                if head.header("content-range").is_some() {
                    // RFC 9110, section 14.4: who does not know what a partial PUT means refuses it.
                    return Err(
                        (400, "PUT stores a whole value, and Content-Range names a part").into()
                    );
                }
                self.body(body);
                let database = self.parameters(target, |route, name, value| {
                    Ok(name == b"ttl" && {
                        route.ttl(value)?;
                        true
                    })
                })?;
                let content_type = head.header("content-type");
                if let Some(content_type) = content_type.filter(|name| !is_of_a_form(name)) {
                    self.word(b"TYPE");
                    self.here(content_type);
                }
                self.conditions(head);
                self.add(first, self.rows().put);
                Ok((Kind::Write, database))
            }
            "PATCH" => {
                self.patch(head, body)?;
                let database = self.database_alone(target)?;
                self.conditions(head);
                self.add(first, self.rows().patch);
                Ok((Kind::Write, database))
            }
            "POST" => self.push(head, target, first, body),
            _ => self.delete(head, target, first),
        }
    }

    /// The parameters of a GET: which part of a collection is wanted.
    fn part(&mut self, target: &Target<'_>) -> Routed<usize> {
        self.parameters(target, |route, name, value| {
            match name {
                b"since" | b"timeout" => {
                    return Err((422, "since and timeout go with wait=true").into());
                }
                b"fields" => {
                    // A comma in a name is escaped, so names are found before they are decoded.
                    let names = || value.split(|byte| *byte == b',');
                    route.word(b"FIELDS");
                    route.word(names().count().to_string().as_bytes());
                    for name in names() {
                        route.word(&query_part(name)?);
                    }
                }
                b"limit" => route.pair(b"LIMIT", value)?,
                b"cursor" => route.pair(b"CURSOR", value)?,
                b"range" => {
                    let value = query_part(value)?;
                    let wrong = (400, "a range is two numbers with a comma between them");
                    let comma = value.iter().position(|byte| *byte == b',').ok_or(wrong)?;
                    route.word(b"RANGE");
                    route.word(&value[..comma]);
                    route.word(&value[comma + 1..]);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    fn ttl(&mut self, value: &[u8]) -> Routed<()> {
        let value = query_part(value)?;
        let seconds = std::str::from_utf8(&value).ok().and_then(|text| text.parse::<f64>().ok());
        let most = i64::MAX as f64 / 4000.0;
        let seconds = seconds.filter(|seconds| *seconds >= 0.001 && *seconds <= most);
        let wrong = (400, "ttl is a number of seconds above zero");
        let milliseconds = (seconds.ok_or(wrong)? * 1000.0) as u64;
        self.word(b"TTL");
        self.word(milliseconds.to_string().as_bytes());
        Ok(())
    }

    fn patch(&mut self, head: &Head<'_>, body: Body<'_>) -> Routed<()> {
        let media = head.header("content-type").unwrap_or_default();
        let media = media.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if !media.eq_ignore_ascii_case(b"application/merge-patch+json") {
            return Err((415, "a patch is of the type application/merge-patch+json").into());
        }
        if self.bytes(body).len() > limits::HTTP_PATCH {
            return Err((413, "the patch is too large").into());
        }
        self.body(body);
        Ok(())
    }

    fn delete(
        &mut self,
        head: &Head<'_>,
        target: &Target<'_>,
        first: usize,
    ) -> Routed<(Kind, usize)> {
        let mut recursive = false;
        let database = self.parameters(target, |_, name, value| {
            recursive = match (name, value) {
                (b"recursive", b"true") => true,
                (b"recursive", b"false") => false,
                (b"recursive", _) => return Err((400, "recursive is true or false").into()),
                _ => return Ok(false),
            };
            Ok(true)
        })?;
        self.conditions(head);
        self.add(first, self.rows().delete);
        if !recursive {
            return Ok((Kind::Write, database));
        }
        let key = self.arguments(first).at(1);
        Ok((Kind::Tree(Box::new(Tree::new(key))), database))
    }

    /// `GET /v1/keys`: the names of keys.
    fn keys(&mut self, target: &Target<'_>) -> Routed<(Kind, usize)> {
        let (mut prefix, mut limit, mut cursor) = (Vec::new(), 100, b"0".to_vec());
        let database = self.parameters(target, |_, name, value| {
            let value = query_part(value)?;
            match name {
                b"prefix" => prefix = value.into_owned(),
                b"cursor" => {
                    let plain =
                        (1..=20).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
                    cursor = value.into_owned();
                    if !plain {
                        return Err((400, "a cursor is a number").into());
                    }
                }
                b"limit" => {
                    let number = base::num::parse_i64(&value);
                    let wrong = (400, "limit is a number from 1 to 10000");
                    let most = limits::HTTP_LIST as i64;
                    limit = number.filter(|number| (1..=most).contains(number)).ok_or(wrong)?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let list = List::new(&prefix, limit as usize);
        let first = self.begin();
        list.scan(&cursor).iter().for_each(|word| self.word(word));
        self.add_named(first)?;
        Ok((Kind::List(Box::new(list)), database))
    }

    /// The conditions of a write.
    fn conditions(&mut self, head: &Head<'_>) {
        for (name, any, one) in
            [("if-match", &b"EXISTS"[..], &b"MATCH"[..]), ("if-none-match", b"ABSENT", b"DIFFERS")]
        {
            let mut lists = head.all(name).peekable();
            if lists.peek().is_none() {
                continue;
            }
            // If-None-Match compares weakly: a tag that a cache has made weak still names the version.
            match tag::parse(lists, name == "if-match") {
                Tags::Any => self.word(any),
                Tags::Listed(tags) => {
                    if tags.is_empty() && one == b"MATCH" {
                        // Tags of other servers name no version.
                        self.word(one);
                        self.word(b"0");
                    }
                    for tag in tags {
                        self.word(one);
                        self.word(tag.version().to_string().as_bytes());
                    }
                }
            }
        }
    }

    // ---- Arguments ------------------------------------------------------------------------------

    /// Visits the parameters except `db`, whose value is returned. `visit` returns whether it knows
    /// one.
    fn parameters(
        &mut self,
        target: &Target<'_>,
        mut visit: impl FnMut(&mut Self, &[u8], &[u8]) -> Routed<bool>,
    ) -> Routed<usize> {
        let mut database = 0;
        for (name, value) in target.parameters() {
            if name == TOKEN && takes_token(target.path) {
                continue;
            }
            if name == b"db" {
                let number = base::num::parse_i64(value).and_then(|number| number.try_into().ok());
                let known = number.filter(|number| *number < self.intake.config.databases);
                database = known.ok_or((400, "ERR DB index is out of range"))?;
            } else if !visit(self, name, value)? {
                return Err(UNKNOWN_PARAMETER.into());
            }
        }
        Ok(database)
    }

    fn database_alone(&mut self, target: &Target<'_>) -> Routed<usize> {
        self.parameters(target, |_, _, _| Ok(false))
    }

    fn rows(&self) -> &'static HttpRows {
        self.intake.engine.commands.http()
    }

    fn begin(&self) -> usize {
        self.batch.args.len()
    }

    fn arguments(&self, first: usize) -> Arguments<'_> {
        Arguments::new(&self.batch.args[first..], self.buffer, self.side, self.big)
    }

    /// Adds the command whose arguments begin at `first`.
    fn add(&mut self, first: usize, row: &'static Row) {
        self.add_row(first, Some(row));
    }

    fn add_row(&mut self, first: usize, row: Option<&'static Row>) {
        let keys = self.batch.keys.len();
        if let Some(row) = row {
            let arguments =
                Arguments::new(&self.batch.args[first..], self.buffer, self.side, self.big);
            self.intake.engine.find_keys(row, arguments, &mut self.batch.keys);
        }
        self.batch.add(self.intake.place, row, first, keys);
    }

    /// Adds a command by its name.
    fn add_named(&mut self, first: usize) -> Routed<()> {
        let row = self.intake.engine.commands.resolve(self.arguments(first));
        if let Some(row) = row
            && needs_connection(row)
        {
            let name = row.command.full_name();
            let reason = format!("ERR {name} is about a connection, and HTTP requests share none");
            return Err(Refused(Prepared::error(400, &reason)));
        }
        self.add_row(first, row);
        Ok(())
    }

    fn bytes<'b>(&'b self, body: Body<'b>) -> &'b [u8] {
        match body {
            Body::Here(bytes) => bytes,
            Body::Apart(number) => &self.big[number],
        }
    }

    /// The body, apart from the buffers to which arguments are added.
    fn body_of_its_own(&self, body: Body<'_>) -> Arc<Vec<u8>> {
        match body {
            Body::Here(bytes) => Arc::new(bytes.to_vec()),
            Body::Apart(number) => Arc::clone(&self.big[number]),
        }
    }

    /// Adds the body as an argument.
    fn body(&mut self, body: Body<'_>) {
        match body {
            Body::Here(bytes) => self.here(bytes),
            Body::Apart(number) => self.batch.args.push(ArgRange::in_big(number)),
        }
    }

    /// Adds a part of the connection's buffer.
    fn here(&mut self, part: &[u8]) {
        self.batch.args.push(range_in(self.buffer, part));
    }

    /// Adds a copy.
    fn word(&mut self, word: &[u8]) {
        let from = self.side.len();
        self.side.extend_from_slice(word);
        self.side_from(from);
    }

    fn pair(&mut self, name: &[u8], value: &[u8]) -> Routed<()> {
        let value = query_part(value)?;
        self.word(name);
        self.word(&value);
        Ok(())
    }

    fn side_from(&mut self, from: usize) {
        self.batch.args.push(ArgRange::in_side(from, self.side.len() - from));
    }

    fn path_part(&mut self, part: &[u8]) -> Routed<()> {
        if !target::is_encoded(part) {
            self.here(part);
            return Ok(());
        }
        let from = self.side.len();
        target::decode(part, self.side)?;
        self.side_from(from);
        Ok(())
    }
}

/// The parameter in which clients of Upstash may show the password.
const TOKEN: &[u8] = b"_token";

/// Whether an address is one of those that clients of Upstash know.
fn takes_token(path: &[u8]) -> bool {
    let own = [&b"/healthz"[..], b"/readyz", b"/metrics"];
    !path.starts_with(b"/v1/") && !is_own(path) && !own.contains(&path)
}

const UNKNOWN_PARAMETER: (u16, &str) = (400, "a parameter of the address is not known here");

fn query_part(part: &[u8]) -> Routed<Cow<'_, [u8]>> {
    if !target::is_encoded_in_query(part) {
        return Ok(Cow::Borrowed(part));
    }
    let mut decoded = Vec::new();
    target::decode_query(part, &mut decoded)?;
    Ok(Cow::Owned(decoded))
}

fn options(methods: &str) -> Kind {
    let methods: Vec<u8> = methods.into();
    let headers = vec![
        ("Allow", methods.clone()),
        ("Access-Control-Allow-Methods", methods),
        (
            "Access-Control-Allow-Headers",
            b"Authorization, Content-Type, If-Match, If-None-Match, If-Range, Last-Event-ID, Range, \
              X-Request-Id, Upstash-Encoding, Upstash-Sync-Token, Upstash-Telemetry-Platform, \
              Upstash-Telemetry-Runtime, Upstash-Telemetry-Sdk"
                .to_vec(),
        ),
        ("Access-Control-Max-Age", b"600".to_vec()),
    ];
    Kind::ready(Prepared { status: 204, headers, content_type: "", body: Cow::default() })
}

/// Whether a content type is that of a web form. Some programs, such as curl, give it to any body for which
/// they are told no type, so it says nothing about a value.
fn is_of_a_form(content_type: &[u8]) -> bool {
    let media = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// Whether a command concerns the connection that it arrives on.
fn needs_connection(row: &Row) -> bool {
    const NAMES: [&str; 12] = [
        "multi", "exec", "discard", "watch", "unwatch", "monitor", "auth", "hello", "select",
        "reset", "quit", "client",
    ];
    const PARTS: [&str; 5] = ["reply", "setname", "no-evict", "no-touch", "setinfo"];
    let command = row.command;
    match command.parent {
        None => {
            command.group == engine::command::Group::PubSub
                && !matches!(command.name, "publish" | "spublish" | "pubsub")
                || (command.name != "client" && NAMES.contains(&command.name))
        }
        Some("client") => PARTS.contains(&command.name),
        Some(_) => false,
    }
}
