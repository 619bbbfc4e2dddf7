//! Which command a request becomes.

mod etcd;
mod get;
mod key;
mod operator;
mod pipeline;
mod push;
mod resource;
mod views;
mod words;

use std::borrow::Cow;
use std::sync::Arc;

use base::limits;
use engine::host::LogLevel;
use engine::session::User;
use engine::users::log::{Reason, Refusal, RefusalContext};
use http::answer::Envelope;
use http::json::{self, Malformed};
use http::request::{self, Head};
use http::target::{self, Target};
use http::translation::Strings;
use http::weight;

use self::get::takes_openmetrics;
use self::resource::Resource;
use super::cached_headers::CachedRequest;
use super::dashboard;
use super::description::description;
use super::etcd::cluster::{is_own, reworded};
use super::exchange::{Choice, Exchange, GetRequest, Kind, Style};
use super::guard::{self, Credentials, RejectedOrigin, Sender};
use super::prepared::Prepared;
use crate::net::batch::CommandBatch;
use crate::net::intake::Intake;

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
    pub(super) batch: &'a mut CommandBatch,
    /// Whether the request has shown who sends it.
    has_proof: bool,
    /// Whether it has, or need not.
    pub(super) is_admitted: bool,
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

/// The longest body of a request with this method to this path. `is_admitted` says whether its
/// sender is known, or need not be.
fn longest_body(method: &str, path: &[u8], is_admitted: bool, intake: Intake<'_>) -> u64 {
    let of_value = intake.config.proto_max_bulk_len;
    match path {
        _ if !is_admitted => limits::UNAUTHENTICATED_READ as u64,
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
    /// The sender is known, or need not be.
    pub(super) is_admitted: bool,
}

/// Decides by the head of a request whether its body should be received.
pub(super) fn look_at_head(
    head: &Head<'_>,
    intake: Intake<'_>,
) -> Result<Reception, Box<Exchange>> {
    let mut envelope = Envelope::default();
    let verdict = checked(head, intake, &mut envelope).and_then(|(target, sender)| {
        let is_admitted = sender.is_some();
        let most = longest_body(head.method, target.path, is_admitted, intake);
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
        Ok(Reception { wants_continue, most, is_admitted })
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

/// Checks permissions as far as the head allows, and returns the address and the sender. Puts into
/// the envelope what all answers depend on.
fn checked<'h>(
    head: &Head<'h>,
    intake: Intake<'_>,
    envelope: &mut Envelope,
) -> Routed<(Target<'h>, Option<Sender>)> {
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
    let users = &intake.engine.users;
    let credentials = Credentials::of(head, token.as_deref(), users);
    let names = &intake.client.certificate_names;
    let sender = guard::sender(credentials.as_ref(), names, users);
    if sender.is_none()
        && let Some(Some(wrong)) = &credentials
    {
        note_wrong(wrong, intake);
    }
    let is_page = dashboard::is_asked_for(head, target.path);
    envelope.origin = match guard::origin(head, &target, intake.config, sender.as_ref()) {
        // A browser follows a link to the page, which shows nothing by itself.
        Err(RejectedOrigin::Page) if is_page && head.header("origin").is_none() => None,
        // Programs that look after the server know it by names that nobody has listed.
        Err(RejectedOrigin::Host) if guard::is_of_a_probe(head, target.path) => None,
        origin => origin.map_err(refuse_origin)?.map(Into::into),
    };
    let is_open = is_page || needs_no_password(target.path) || head.method == "OPTIONS";
    if sender.is_none() && !is_open {
        let mut prepared = Prepared::error(401, "NOAUTH Authentication required.");
        prepared.headers.push(("WWW-Authenticate", b"Bearer, Basic realm=\"dunlin\"".to_vec()));
        return Err(Refused(prepared));
    }
    Ok((target, sender))
}

/// Puts a login that has failed into the log of users.
fn note_wrong(wrong: &Credentials, intake: Intake<'_>) {
    let refusal = Refusal {
        reason: Reason::Login,
        context: RefusalContext::TopLevel,
        object: b"HTTP".to_vec(),
        user: wrong.name.clone(),
    };
    let at = (intake.config, base::clock::now_ms(), intake.monotonic);
    intake.engine.note_refusal(at, intake.client, refusal);
}

/// An identifier that may go into a header and into the log.
fn request_id(text: &[u8]) -> Option<Box<[u8]>> {
    let fits = (1..=limits::HTTP_REQUEST_ID).contains(&text.len());
    (fits && text.iter().all(u8::is_ascii_graphic)).then(|| text.into())
}

fn refuse_origin(rejected: RejectedOrigin) -> Refused {
    match rejected {
        RejectedOrigin::NoHost => (400, "a request names exactly one host").into(),
        RejectedOrigin::Host => (
            421,
            "this server does not know the host name of the request: list it in http-host-names",
        )
            .into(),
        RejectedOrigin::Page => (
            403,
            "this server takes no requests from that web page: list its origin in http-cors-origins",
        )
            .into(),
    }
}

impl<'a> Route<'a> {
    pub(super) fn new(
        buffer: &'a [u8],
        (side, big): (&'a mut Vec<u8>, &'a mut Vec<Arc<Vec<u8>>>),
        intake: Intake<'a>,
        batch: &'a mut CommandBatch,
    ) -> Route<'a> {
        Route { buffer, side, big, intake, batch, has_proof: false, is_admitted: false }
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
        let is_node = self.intake.engine.cluster.is_enabled();
        let mut envelope =
            Envelope { target: is_node.then(|| head.target.into()), ..Envelope::default() };
        let routed = checked(head, self.intake, &mut envelope).and_then(|(target, sender)| {
            self.is_admitted = sender.is_some();
            let choice =
                Choice::of(head, is_node).map_err(|reason| Refused::from((400, reason)))?;
            self.has_proof = sender.as_ref().is_some_and(Sender::has_proof);
            Ok((self.route(head, &target, body)?, choice, sender))
        });
        match routed {
            Ok(((kind, database), choice, sender)) => {
                let user = sender.map_or_else(User::nobody, |own| own.user);
                // Its answer goes on until the connection ends.
                envelope.close |= kind.ends_connection();
                Exchange::new(envelope, kind, database).with_choice(choice).of_user(Some(user))
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
    pub(super) fn take_cached(&mut self, asked: CachedRequest<'_>, user: Option<User>) -> Exchange {
        let first = self.begin();
        self.here(asked.method);
        self.here(asked.key);
        self.add(first, self.rows().get);
        let mut envelope = asked.envelope;
        if self.intake.engine.cluster.is_enabled() {
            let key = String::from_utf8_lossy(asked.key);
            envelope.target = Some(format!("/v1/keys/{key}").into());
        }
        Exchange::new(envelope, Kind::Get(GetRequest::Plain(asked.question)), 0).of_user(user)
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
        let resource =
            Resource::of(target.path, strings).ok_or((404, "there is nothing at this address"))?;
        if head.method == "OPTIONS" {
            return Ok((options(resource.methods(self.intake)), 0));
        }
        if !resource.takes(head.method, self.intake) {
            let mut prepared = Prepared::error(405, "this address does not take this method");
            prepared.headers.push(("Allow", resource.methods(self.intake).into()));
            return Err(Refused(prepared));
        }
        let most = longest_body(head.method, target.path, self.is_admitted, self.intake);
        if self.bytes(body).len() as u64 > most {
            return Err((413, "the body is too large").into());
        }
        match resource {
            Resource::Key(key) => self.key(head, target, key, body),
            Resource::Keys => self.keys(target),
            Resource::Transaction(style) => self.transaction(head, target, body, style),
            Resource::Overview => self.overview(target),
            Resource::Memory => self.memory(target),
            Resource::HotKeys => self.hot_keys(target),
            Resource::Changes => self.changes(head, target),
            Resource::Views => self.views(head, target),
            Resource::View(name) => self.view(head, target, name, body),
            Resource::Etcd(_) => self.etcd(head, target, body),
            Resource::Words(path) => {
                let strings = strings.unwrap_or(Strings::Lossy);
                let style = Style { resp3: false, strings };
                Ok((self.words(head, target, (path, body), style)?, 0))
            }
            resource => {
                let database = self.database_alone(target)?;
                Ok((self.route_body(&resource, (head, target), body)?, database))
            }
        }
    }

    /// The addresses whose request is in the body alone.
    fn route_body(
        &mut self,
        resource: &Resource<'_>,
        (head, target): (&Head<'_>, &Target<'_>),
        body: Body<'_>,
    ) -> Routed<Kind> {
        match *resource {
            Resource::Root(_) if head.method != "POST" => {
                Ok(Kind::ready(Prepared::json(200, dashboard::what_is_here())))
            }
            Resource::Mget => {
                let first = self.begin();
                self.word(b"MGET");
                self.words_of(body, |text, visit| {
                    json::read_words(text, limits::HTTP_MGET, visit)
                })?;
                self.add(first, self.rows().mget);
                Ok(Kind::Json)
            }
            Resource::Root(style) | Resource::Command(style) => {
                let first = self.begin();
                self.words_of(body, json::read_command)?;
                self.add_called(first)?;
                Ok(Kind::One(style))
            }
            Resource::Pipeline(style) => self.commands(body, (style, head.is_1_0), None),
            Resource::Health => Ok(Kind::ready(Prepared::status(200, "ok"))),
            Resource::Readiness => {
                Ok(Kind::ready(Prepared::readiness(self.intake.engine, self.intake.config)))
            }
            Resource::Description => {
                let text = description(
                    self.intake.config,
                    self.intake.engine.users.is_open(),
                    &self.intake.offer.views,
                );
                Ok(Kind::ready(Prepared::json(200, text)))
            }
            Resource::Metrics => {
                let open = takes_openmetrics(head);
                let first = self.begin();
                self.word(b"METRICS");
                if open {
                    self.word(b"OPEN");
                }
                if !guard::may_see_keys(head, target, self.intake.config, self.has_proof) {
                    self.word(b"KEYLESS");
                }
                self.add(first, self.rows().metrics);
                Ok(Kind::Metrics { open })
            }
            _ => Err((404, "there is nothing at this address").into()),
        }
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
            b"Authorization, Content-Type, Dunlin-Durability, Dunlin-Min-Position, If-Match, \
              If-None-Match, If-Range, Last-Event-ID, Range, X-Request-Id, Upstash-Encoding, Upstash-Sync-Token, Upstash-Telemetry-Platform, \
              Upstash-Telemetry-Runtime, Upstash-Telemetry-Sdk"
                .to_vec(),
        ),
        ("Access-Control-Max-Age", b"600".to_vec()),
    ];
    Kind::ready(Prepared { status: 204, headers, content_type: "", body: Cow::default() })
}
