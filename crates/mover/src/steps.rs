//! The steps of a move. Up to the promotion each step can be undone, and a failure undoes them: the
//! old server's writes go on, and the new server is a primary of its own again.
//!
//! What keeps every acknowledged write: the old server leads and its writes are paused, for long,
//! before its offset is read for the last time; the new one is promoted only when it has reached
//! that offset in the same stream; and the old one is a replica before its writes go on, so it
//! refuses them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::targets::Interrupt;

use crate::check;
use crate::compare::{Comparison, copies};
use crate::options::{After, Options};
use crate::print::say;
use crate::resume::Missing;
use crate::server::{Info, REPLICA_SETTINGS, Server, Writes, is_up, number};

/// The pause between two looks at the copy.
const LOOK: Duration = Duration::from_millis(200);
/// How often a new server may be seen in another stream than the old one's.
const LOOKS_AT_OTHERS: usize = 10;
/// How often the new server may begin to get all data, and give up.
const COPIES_IN_VAIN: i64 = 3;
/// The pause between two looks while writes are held.
const SHORT_LOOK: Duration = Duration::from_millis(1);
/// How often progress is shown.
const SHOWN_EACH: Duration = Duration::from_secs(1);
/// Writes are held when the new server lacks at most this many bytes.
const SMALL_LAG: i64 = 256 * 1024;
/// How often a comparison is tried, and the pause in between: a key may expire between its two
/// looks, and where clocks differ it is gone at one server before the other.
const COMPARISONS: usize = 3;
const BETWEEN_COMPARISONS: Duration = Duration::from_millis(200);
/// How long the old server may take to follow the new one before that is told as not so.
const PATIENCE_OF_LINK: Duration = Duration::from_secs(10);
/// What `--after paused` leaves, and what a promotion needs so that no write gets in between. It is
/// long because a write would be lost that the old server takes after the promotion. If nobody ends
/// it, since this tool was killed there, the next one does ([`crate::resume`]).
const LONG_PAUSE: Duration = Duration::from_secs(3600);
const STAYS_PAUSED: &str = "the old server stays paused for an hour";

/// Where a move has failed.
pub(crate) enum Failure {
    /// Before the promotion.
    Unmoved(String),
    /// After it, or where nobody knows that: a last step is missing.
    Unfinished(String),
}

impl From<String> for Failure {
    fn from(problem: String) -> Failure {
        Failure::Unmoved(problem)
    }
}

/// Moves everything.
pub(crate) fn move_all(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if matches!(from.writes()?, Writes::Waiting) {
        // An earlier move that was killed right before the promotion has left that for an hour.
        from.call(&["CLIENT", "UNPAUSE"])?;
        say("writes were held at the old server: they go on until this move holds them");
    }
    let settings = to.replica_settings();
    let begun = Instant::now();
    let follows = check::follows(&to.info("replication")?, &options.seen_from);
    let was_held = matches!(to.writes()?, Writes::Waiting);
    let begin = |to: &mut Server| {
        if follows {
            to.refuse_writes()?;
        } else {
            to.follow(&options.seen_from, &from.address)?;
        }
        // A pause of its own, as `--after paused` leaves it, would hold the stream back, and later
        // all clients. What it has held it refuses as a replica.
        to.call(&["CLIENT", "UNPAUSE"]).map(drop)
    };
    let compared = begin(to).and_then(|()| compare_all(from, to, options, interrupt));
    let pauses = compared.is_ok();
    let result = compared
        .map_err(Failure::Unmoved)
        .and_then(|comparison| change_over(from, to, options, &comparison, interrupt));
    match result {
        Ok(held) => {
            let taken = let_write(to);
            let turned = after(from, to, options);
            // They are of no use to a primary.
            let put_back = put_back(to, &settings);
            turned.and(taken).map_err(Failure::Unfinished)?;
            say(&format!(
                "done in {:.1} s; writes were held for {} ms",
                begun.elapsed().as_secs_f64(),
                held.as_millis()
            ));
            say(&format!("clients connect to {} from now on", to.name()));
            say("CONFIG REWRITE at both servers keeps their parts over a restart");
            if let Err(problem) = put_back {
                say(&format!("note settings of a replica are left over: {problem}"));
            }
            if options.after == After::Replica {
                tell_of_link(from, to).map_err(Failure::Unfinished)?;
            }
            Ok(())
        }
        Err(unfinished @ Failure::Unfinished(_)) => Err(unfinished),
        Err(Failure::Unmoved(problem)) => {
            let was = if follows {
                Was::Replica(&options.seen_from)
            } else {
                Was::Primary { held: was_held }
            };
            let undone = undo((from, pauses), to, &was);
            let outcome = match undone.and(put_back(to, &settings)) {
                Ok(()) if follows => {
                    "The old server leads on, and the new one follows it as before.".to_owned()
                }
                Ok(()) => {
                    "The old server leads on. The new one is a primary again, and has what it \
                           has got of the old one's data in place of its own."
                        .to_owned()
                }
                Err(other) => format!("This could not be put back: {other}"),
            };
            Err(Failure::Unmoved(format!("{problem}\n{outcome}")))
        }
    }
}

/// What the new server was.
enum Was<'o> {
    /// A replica of the server at this address.
    Replica(&'o (String, u16)),
    Primary {
        held: bool,
    },
}

/// Lets the old server's writes go on, if this tool has paused them, and makes the new one what it
/// was.
fn undo((from, pauses): (&Server, bool), to: &Server, was: &Was<'_>) -> Result<(), String> {
    // The old connections may wait for replies that never come.
    let unpause = |mut from: Server| from.call(&["CLIENT", "UNPAUSE"]).map(drop);
    let unpaused = if pauses { from.again().and_then(unpause) } else { Ok(()) };
    let freed = to.again().and_then(|mut to| match was {
        Was::Replica((host, port)) => to.call(&["REPLICAOF", host, &port.to_string()]),
        Was::Primary { held } => {
            if *held {
                to.call(&["CLIENT", "PAUSE", &LONG_PAUSE.as_millis().to_string(), "WRITE"])?;
            }
            to.call(&["REPLICAOF", "NO", "ONE"])
        }
    });
    unpaused.and(freed.map(drop))
}

/// Lets clients write to the new server, should somebody have paused it while it was a replica.
fn let_write(to: &mut Server) -> Result<(), String> {
    let mut writes = to.writes()?;
    if matches!(writes, Writes::Waiting) {
        to.call(&["CLIENT", "UNPAUSE"])?;
        writes = to.writes()?;
    }
    match writes {
        Writes::Taken => Ok(()),
        Writes::Waiting => Err("the data has moved, but the new server holds writes".to_owned()),
        // It may be waiting for its replica, which the old server is going to be.
        Writes::Unknown(answer) => {
            say(&format!("note the new server answers to a write: {answer}"));
            Ok(())
        }
    }
}

/// Gives the new server the settings back with which it has followed.
fn put_back(to: &Server, settings: &[Option<String>; 4]) -> Result<(), String> {
    let mut to = to.again()?;
    let present = to.replica_settings();
    for ((name, value), present) in REPLICA_SETTINGS.iter().zip(settings).zip(&present) {
        // A server that has refused to be asked has not been changed either.
        if let Some(value) = value
            && Some(value) != present.as_ref()
        {
            to.call(&["CONFIG", "SET", name, value])?;
        }
    }
    Ok(())
}

/// How far a server has written, and in which stream: offsets of others say nothing of it.
struct Written {
    history: String,
    offset: i64,
}

impl Written {
    /// How far the old server has. It may have become a replica of another one meanwhile; then
    /// nobody's writes can be held here.
    fn by(from: &mut Server) -> Result<Written, String> {
        let state = from.info("replication")?;
        if state.get("role").is_none_or(|role| role != "master") {
            return Err("the old server is no primary any more".to_owned());
        }
        let history = state.get("master_replid").cloned().unwrap_or_default();
        Ok(Written { history, offset: number(&state, "master_repl_offset") })
    }

    /// Whether a replica, by its INFO, is in the same stream.
    fn is_of(&self, replica: &Info) -> bool {
        replica.get("master_replid").is_some_and(|own| *own == self.history)
    }

    /// What a replica lacks of it, in bytes.
    fn lacking(&self, replica: &Info) -> i64 {
        self.offset - number(replica, "slave_repl_offset")
    }

    /// Waits until the new server has it.
    fn wait_for(&self, to: &mut Server, is_late: &dyn Fn() -> bool) -> Result<(), String> {
        loop {
            let state = to.info("replication")?;
            if is_up(&state) && self.is_of(&state) && self.lacking(&state) <= 0 {
                return Ok(());
            }
            if is_late() {
                return Err("the new server did not catch up while writes were held".to_owned());
            }
            sleep(SHORT_LOOK);
        }
    }
}

/// Waits for the copy, and compares it with the old server's data.
fn compare_all(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<Comparison, String> {
    loop {
        wait_for_copy(from, to, options, interrupt)?;
        let comparison = Comparison::before(from, to, options.compared, interrupt)?;
        // Clients have written meanwhile.
        wait_for_copy(from, to, options, interrupt)?;
        if !comparison.is_outdated(from)? {
            return Ok(comparison);
        }
        say("a replica has got all data once more meanwhile: comparing again");
    }
}

/// Waits until the new server has nearly all, and shows how far it is.
fn wait_for_copy(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let mut idle_since: Option<Instant> = None;
    let mut shown: Option<Instant> = None;
    let mut told = String::new();
    let mut of_others = 0;
    let copies_before = copies(from)?;
    loop {
        if interrupt.is_set() {
            return Err("interrupted".to_owned());
        }
        let state = to.info("replication")?;
        let (is_up, written) = (is_up(&state), Written::by(from)?);
        let lag = written.lacking(&state);
        if is_up && !written.is_of(&state) {
            of_others += 1;
            if of_others == LOOKS_AT_OTHERS {
                return Err("the new server follows another one than the old one".to_owned());
            }
        } else if is_up && lag <= SMALL_LAG {
            say(&format!("the new server follows, {lag} bytes behind"));
            return Ok(());
        }
        // Only Dunlin says it there; the others say it in their logs.
        if let Some(trouble) = state.get("master_link_trouble") {
            if number(&state, "master_link_trouble_lasts") == 1 {
                return Err(format!("the new server cannot take the data: {trouble}"));
            }
            if told != *trouble {
                say(&format!("the new server says of its link: {trouble}"));
                told.clone_from(trouble);
            }
        }
        let is_idle = !is_up && number(&state, "master_sync_in_progress") == 0;
        let begun = copies(from)? - copies_before;
        if !is_idle || begun > 0 {
            idle_since = None;
        } else if idle_since.get_or_insert_with(Instant::now).elapsed() >= options.begin {
            let (host, port) = &options.seen_from;
            return Err(format!(
                "the new server does not begin to follow: most likely it does not find the old one \
                 at {host}:{port}, or may not log in there"
            ));
        }
        if is_idle && begun >= COPIES_IN_VAIN {
            return Err(format!(
                "the new server has begun to get all data {COPIES_IN_VAIN} times, and has given up \
                 each time: its log says why. Most likely it cannot load what {} writes",
                from.product()?
            ));
        }
        if shown.is_none_or(|at| at.elapsed() >= SHOWN_EACH) {
            shown = Some(Instant::now());
            say(&progress(to, &state, is_up, lag)?);
        }
        sleep(LOOK);
    }
}

fn progress(to: &mut Server, state: &Info, is_up: bool, lag: i64) -> Result<String, String> {
    if is_up {
        return Ok(format!("the new server follows, {lag} bytes behind"));
    }
    if number(state, "master_sync_in_progress") == 1 {
        let read = number(state, "master_sync_read_bytes");
        let total = number(state, "master_sync_total_bytes");
        let keys: u64 = to.sizes()?.values().sum();
        let of = if total > 0 { format!(" of {total}") } else { String::new() };
        return Ok(format!("copying: {read}{of} bytes, {keys} keys"));
    }
    Ok("waiting for the copy to begin; the log of the new server says what is the matter"
        .to_owned())
}

/// Holds writes, waits for the last of them, compares, and promotes. Returns how long writes were
/// held until the new server took them.
fn change_over(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    comparison: &Comparison,
    interrupt: &Interrupt,
) -> Result<Duration, Failure> {
    if interrupt.is_set() {
        return Err("interrupted".to_owned().into());
    }
    let limit = options.pause.as_millis().to_string();
    let begun = Instant::now();
    from.call(&["CLIENT", "PAUSE", &limit, "WRITE"])?;
    // Half of the time is for the promotion.
    let is_late = || begun.elapsed() * 2 > options.pause;
    Written::by(from)?.wait_for(to, &is_late)?;
    if comparison.is_outdated(from)? {
        return Err("the new server has got all data once more, which is not compared"
            .to_owned()
            .into());
    }
    let in_time = || match is_late() {
        true => Err("the comparison takes too long while writes are held".to_owned()),
        false => Ok(()),
    };
    let mut problem = None;
    for attempt in 0..COMPARISONS {
        if attempt > 0 {
            sleep(BETWEEN_COMPARISONS);
        }
        problem = comparison.difference(from, to, &in_time)?;
        if problem.is_none() {
            break;
        }
    }
    if let Some(problem) = problem {
        return Err(format!("the servers differ: {problem}").into());
    }
    if is_late() || interrupt.is_set() {
        return Err("writes were held for too long, or somebody has interrupted".to_owned().into());
    }
    // From here on a write at the old server would be lost, so its pause must not end by itself.
    let long = LONG_PAUSE.as_millis().to_string();
    from.call(&["CLIENT", "PAUSE", &long, "WRITE"])?;
    if begun.elapsed() >= options.pause {
        return Err("the pause of writes may have ended too early".to_owned().into());
    }
    // Somebody else may have ended the first one, and clients may have written before this one.
    Written::by(from)?.wait_for(to, &|| begun.elapsed() >= options.pause)?;
    promote(to)?;
    say("the new server leads");
    Ok(begun.elapsed())
}

/// Makes the new server a primary. When the reply is lost, its role tells. Where nobody knows that,
/// the old one must not take writes.
fn promote(to: &mut Server) -> Result<(), Failure> {
    let Err(problem) = to.call(&["REPLICAOF", "NO", "ONE"]) else { return Ok(()) };
    let unknown = |other: String| {
        Failure::Unfinished(format!(
            "{problem}; {other}\nNobody knows whether the new server leads: {STAYS_PAUSED}, and the \
             same command, given again, finds that out"
        ))
    };
    *to = to.again().map_err(unknown)?;
    match to.info("replication").map_err(unknown)?.get("role") {
        Some(role) if role == "master" => Ok(()),
        _ => Err(problem.into()),
    }
}

/// Takes the steps that an earlier move has left out.
pub(crate) fn finish(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    missing: Missing,
) -> Result<(), String> {
    let_write(to)?;
    match missing {
        Missing::Turn => {
            after(from, to, options)?;
            // Nobody knows what it had before the move that was killed.
            let password = from.address.password.as_deref().filter(|own| !own.is_empty());
            if password.is_some_and(|own| to.setting("masterauth") == own) {
                say("note the new server still has the password of the old one as masterauth");
            }
        }
        Missing::Unpause => {
            from.refuse_writes()?;
            from.call(&["CLIENT", "UNPAUSE"])?;
            say("the old server has become a replica already");
        }
    }
    say(&format!("clients connect to {} from now on", to.name()));
    match missing {
        Missing::Turn if options.after == After::Paused => Ok(()),
        _ => tell_of_link(from, to),
    }
}

/// What becomes of the old server. It takes no write any more, whatever fails here.
fn after(from: &mut Server, to: &Server, options: &Options) -> Result<(), String> {
    if options.after == After::Paused {
        say(&format!("{STAYS_PAUSED}; SHUTDOWN ends it, and CLIENT UNPAUSE lets it write again"));
        return Ok(());
    }
    let turned = turn(from, to, options).or_else(|_| {
        *from = from.again()?;
        turn(from, to, options)
    });
    turned.map_err(|problem| {
        format!("the data has moved, but the old server is no replica: {problem}\n{STAYS_PAUSED}")
    })
}

/// Makes the old server a replica, and lets the writes go on that it holds: it refuses them.
fn turn(from: &mut Server, to: &Server, options: &Options) -> Result<(), String> {
    from.follow(&options.seen_to, &to.address)?;
    from.call(&["CLIENT", "UNPAUSE"]).map(drop)
}

/// Tells whether the old server follows the new one, after a while at most. Fails if it follows
/// another one, which it sees under the same address.
fn tell_of_link(from: &mut Server, to: &mut Server) -> Result<(), String> {
    let begun = Instant::now();
    let trouble = loop {
        let state = match from.info("replication") {
            Ok(state) => state,
            Err(problem) => break problem,
        };
        if is_up(&state) {
            if !check::are_of_one_stream(&state, &to.info("replication")?) {
                return Err(format!(
                    "the data has moved, but the old server follows another one than the new one, \
                     and has its data: REPLICAOF there names {}, as the old server sees it",
                    to.name()
                ));
            }
            say(
                "the old server follows the new one: a move in the other direction is the way back",
            );
            return Ok(());
        }
        if begun.elapsed() >= PATIENCE_OF_LINK {
            let trouble = state.get("master_link_trouble").cloned();
            break trouble.unwrap_or_else(|| "its log says why".to_owned());
        }
        sleep(LOOK);
    };
    say(&format!("note the old server does not follow the new one yet: {trouble}"));
    Ok(())
}
