//! What a user of etcd calls: each call is tried at one member after the other.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use base::clock::monotonic_ms;
use cluster::store::{Answer, Failure as NoAnswer, Request};

use crate::failure::{FAILED_PRECONDITION, Failure, NOT_FOUND};
use crate::login::Login;
use crate::member::Member;
use crate::place::{Config, endpoint};
use crate::wire;

/// How long a call waits before it asks a member for the second time.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a member may take at least to check a password: it makes that hard on purpose, and a
/// check that is given up is only begun anew.
const LOGIN: Duration = Duration::from_secs(2);

/// A client of etcd. Threads may share it: each call has a connection to itself.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) members: Vec<Member>,
    /// The member that is asked first: the one that has answered last.
    pub(crate) preferred: AtomicUsize,
    pub(crate) config: Config,
    pub(crate) login: Login,
    /// How often in a row members have refused a watch.
    pub(crate) refusals: AtomicU32,
    /// The number of the etcd whose keys were read last; 0: none, or it has none.
    pub(crate) read_from: AtomicU64,
}

impl Gateway {
    /// Understands the settings and reads the files that they name. Nothing is sent.
    ///
    /// # Errors
    /// An address is wrong, or a file.
    pub fn open(config: Config) -> Result<Gateway, String> {
        if config.endpoints.is_empty() {
            return Err("no address of etcd is named".to_owned());
        }
        let client = config.tls.read()?;
        let members = config
            .endpoints
            .iter()
            .map(|text| Ok(Member::new(endpoint(text)?, client.config.clone())));
        let members = members.collect::<Result<_, String>>()?;
        let (preferred, refusals) = (AtomicUsize::new(0), AtomicU32::new(0));
        let (login, read_from) = (Login::default(), AtomicU64::new(0));
        Ok(Gateway { members, preferred, config, login, refusals, read_from })
    }

    /// Asks etcd, for so long at most. A transaction is sent to another member only as long as it
    /// was certainly not carried out; all else may be done twice.
    ///
    /// A lease that is asked for twice is granted twice, and the one that nobody knows of ends by
    /// itself.
    ///
    /// # Errors
    /// See [`NoAnswer`].
    pub fn ask(&self, request: &Request, limit: Duration) -> Result<Answer, NoAnswer> {
        match (request, self.call(request, limit)) {
            // It has ended before.
            (Request::Revoke { .. }, Err(Failure::Refused { code: NOT_FOUND, .. })) => {
                Ok(Answer::Revoked)
            }
            (_, answer) => Ok(answer?),
        }
    }

    /// Sends a request to one member after the other until it is answered.
    fn call(&self, request: &Request, limit: Duration) -> Result<Answer, Failure> {
        let may_repeat =
            !matches!(request, Request::Transaction(own) if !own.operations.is_empty());
        let begun = monotonic_ms();
        let left = || limit.saturating_sub(Duration::from_millis(monotonic_ms() - begun));
        let count = self.members.len();
        // With one member, the second attempt has a new connection.
        let attempts = count.max(2);
        let mut last = Failure::Unsent("no time".to_owned());
        for attempt in 0..attempts {
            if attempt >= count {
                sleep(PAUSE.min(left()));
            }
            let left = left();
            if left.is_zero() {
                break;
            }
            let place = self.preferred.load(Ordering::Relaxed);
            let member = &self.members[place % count];
            // The fewer members there are, the longer one that is slow is waited for.
            let share = self.config.attempt().max(limit / attempts as u32);
            match self.ask_member(member, request, left.min(share)) {
                Err(failure @ (Failure::Unsent(_) | Failure::Unknown(_))) => {
                    self.pass_over(place);
                    let may_be_done = matches!(failure, Failure::Unknown(_));
                    last = failure;
                    if may_be_done && !may_repeat {
                        break;
                    }
                }
                Err(failure) => {
                    // The members of one etcd say the same, so this time no other one is asked.
                    if failure.is_of_rights() {
                        self.pass_over(place);
                    }
                    return Err(failure);
                }
                answer => return answer,
            }
        }
        Err(last)
    }

    /// Asks another member first from now on: who has asked does not believe this one.
    pub fn ask_another(&self) {
        self.pass_over(self.preferred.load(Ordering::Relaxed));
    }

    /// Takes note of which etcd has answered to a read. What another one says of leases and
    /// transactions is nothing that the user means: a member that is named may be one.
    pub(crate) fn check_origin(
        &self,
        member: &Member,
        is_read: bool,
        number: u64,
    ) -> Result<(), Failure> {
        let read_from = match is_read {
            true => self.read_from.swap(number, Ordering::Relaxed),
            false => self.read_from.load(Ordering::Relaxed),
        };
        if is_read || read_from == 0 || number == 0 || number == read_from {
            return Ok(());
        }
        let text = format!("{}: it is another etcd than the one that was read", member.url());
        Err(Failure::Unknown(text))
    }

    /// Makes the next member the first, unless somebody has done that.
    pub(crate) fn pass_over(&self, place: usize) {
        // If it fails, another thread has passed it over.
        let _ = self.preferred.compare_exchange(
            place,
            place.wrapping_add(1) % self.members.len(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Sends a request to one member, with a new token if the present one is of no use.
    fn ask_member(
        &self,
        member: &Member,
        request: &Request,
        limit: Duration,
    ) -> Result<Answer, Failure> {
        let (path, body) = wire::request(request);
        let begun = monotonic_ms();
        let left = || limit.saturating_sub(Duration::from_millis(monotonic_ms() - begun));
        let send = || {
            let token = self.token(member, left())?;
            let left = left();
            if left.is_zero() {
                let text = format!("{}: the login has taken all time", member.url());
                return Err(Failure::Unsent(text));
            }
            let answer = member.ask(path, body.as_bytes(), token.as_deref(), left);
            let answer = answer.and_then(|answer| {
                let answer = wire::answer(request, &answer).map_err(Failure::Unknown)?;
                let (answer, etcd) = answer.map_err(|problem| member.refusal(&problem))?;
                let is_read = matches!(request, Request::Read { .. });
                self.check_origin(member, is_read, etcd).map(|()| answer)
            });
            if answer.as_ref().is_err_and(Failure::is_of_token) {
                self.login.forget(token.as_deref());
            }
            answer
        };
        match send() {
            Err(failure) if failure.is_of_token() && self.config.user.is_some() => send(),
            answer => answer,
        }
    }

    /// What shows who asks; none if there is no user, or if etcd has none.
    pub(crate) fn token(
        &self,
        member: &Member,
        limit: Duration,
    ) -> Result<Option<String>, Failure> {
        let Some((name, password)) = &self.config.user else { return Ok(None) };
        self.login.token(limit, || {
            let (body, limit) = (wire::login(name, password), limit.max(LOGIN));
            match member.ask("/v3/auth/authenticate", body.as_bytes(), None, limit) {
                Ok(answer) => wire::token(&answer).map(Some).map_err(Failure::Unsent),
                // "etcdserver: authentication is not enabled"
                Err(Failure::Refused { code: FAILED_PRECONDITION, .. }) => Ok(None),
                // The call itself was not sent.
                Err(Failure::Unknown(text)) => Err(Failure::Unsent(text)),
                // All members of this etcd say the same.
                Err(Failure::Refused { code, text }) => {
                    let said = text.strip_prefix(member.url()).unwrap_or(&text);
                    Err(Failure::Refused { code, text: format!("login of {name}{said}") })
                }
                Err(failure) => Err(failure),
            }
        })
    }
}
