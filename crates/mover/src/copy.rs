//! Whether the new server is up to date: what it lacks of the old one's stream, and how it gets
//! there.

use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::targets::Interrupt;

use crate::options::Options;
use crate::print::say;
use crate::server::{Info, Server, is_up, number};

/// The pause between two looks at the copy.
const LOOK: Duration = Duration::from_millis(200);
/// The pause between two looks while writes are held.
const SHORT_LOOK: Duration = Duration::from_millis(1);
/// How often a new server may be seen in another stream than the old one's.
const LOOKS_AT_OTHERS: usize = 10;
/// How often all data may be given while the new server waits for it, or while all is compared.
pub(crate) const COPIES_IN_VAIN: i64 = 3;
/// How often progress is shown.
const SHOWN_EACH: Duration = Duration::from_secs(1);
/// The new server is up to date when it lacks at most this many bytes: writes are held for the
/// rest.
const SMALL_LAG: i64 = 256 * 1024;

/// How far a server has written, and in which stream: offsets of others say nothing of it.
pub(crate) struct Written {
    history: String,
    offset: i64,
}

impl Written {
    /// How far the old server has. It may have become a replica of another one meanwhile; then
    /// nobody's writes can be held here.
    pub(crate) fn by(from: &mut Server) -> Result<Written, String> {
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
    pub(crate) fn wait_for(
        &self,
        to: &mut Server,
        is_late: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        loop {
            let state = state_of_replica(to)?;
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

/// The new server's part. Somebody else may have promoted it meanwhile.
fn state_of_replica(to: &mut Server) -> Result<Info, String> {
    let state = to.info("replication")?;
    match state.get("role") {
        Some(role) if role == "slave" => Ok(state),
        _ => Err("the new server is no replica any more: somebody else has promoted it".to_owned()),
    }
}

/// How often the old server has given somebody all its data.
pub(crate) fn copies(from: &mut Server) -> Result<i64, String> {
    Ok(number(&from.info("stats")?, "sync_full"))
}

/// Waits until the new server follows and has nearly all, and shows how far it is. Returns what it
/// lacks. Fails if it does nothing for that for so long as it may take to begin.
pub(crate) fn wait_for_copy(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<i64, String> {
    let mut shown: Option<Instant> = None;
    let mut told = String::new();
    let mut of_others = 0;
    let copies_before = copies(from)?;
    let (mut begun, mut idle, mut looked) = (0, Duration::ZERO, Instant::now());
    loop {
        if interrupt.is_set() {
            return Err("interrupted".to_owned());
        }
        let state = state_of_replica(to)?;
        let (is_up, written) = (is_up(&state), Written::by(from)?);
        let lag = written.lacking(&state);
        if is_up && !written.is_of(&state) {
            of_others += 1;
            if of_others == LOOKS_AT_OTHERS {
                return Err("the new server follows another one than the old one".to_owned());
            }
        } else if is_up && lag <= SMALL_LAG {
            return Ok(lag);
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
        let begun_before = begun;
        begun = copies(from)? - copies_before;
        let since = looked.elapsed();
        looked = Instant::now();
        if !is_idle || begun != begun_before {
            idle = Duration::ZERO;
        } else if begun == 0 || !saves(from)? {
            // What was asked for while the old server saves comes when it has ended that.
            idle += since;
        }
        if idle >= options.begin {
            let (host, port) = &options.seen_from;
            return Err(format!(
                "the new server does not follow: most likely it does not find the old one at \
                 {host}:{port}, or may not log in there"
            ));
        }
        if is_idle && begun >= COPIES_IN_VAIN {
            return Err(format!(
                "all data was asked of the old server {begun} times, and the new one does not \
                 follow: its log says why. Most likely it cannot load what {} writes",
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

/// Whether a server is writing a snapshot.
fn saves(server: &mut Server) -> Result<bool, String> {
    Ok(number(&server.info("persistence")?, "rdb_bgsave_in_progress") == 1)
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
