//! The steps after the promotion: the old server becomes a replica of the new one, or stays
//! paused, and clients are told where to go.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::check;
use crate::clock::Moment;
use crate::options::{After, Options};
use crate::print::say;
use crate::resume::{Missing, has_all};
use crate::server::{LONG_PAUSE, Server, Writes, is_up};
use crate::undo::stand_of_old;

/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// How long the old server may take to follow the new one before that is told as not so, and how
/// long the new one may take to accept writes then: it may need a replica for that.
const PATIENCE_OF_LINK: Duration = Duration::from_secs(10);

/// Takes the steps that an earlier move has left out.
pub(crate) fn finish(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
    missing: Missing,
) -> Result<(), String> {
    turn(from, to, options)?;
    if missing == Missing::Unpause {
        say("the old server has become a replica already");
    }
    tell_of_password(from, to);
    conclude(from, to, options)
}

/// Tells of a password that the new server may have got from a move that was killed: nobody knows
/// what it had before.
pub(crate) fn tell_of_password(from: &Server, to: &mut Server) {
    let password = from.address.password.as_deref().filter(|own| !own.is_empty());
    if password.is_some_and(|own| to.setting("masterauth") == own) {
        say(
            "note the new server still has the password of the old one as masterauth, and perhaps \
             replica-read-only as 'yes'",
        );
    }
}

/// What becomes of the old server. It takes no write any more, whatever fails here.
pub(crate) fn turn(from: &mut Server, to: &mut Server, options: &Options) -> Result<(), String> {
    let turned = try_turn(from, to, options).or_else(|_| {
        from.renew_if_it_can()?;
        to.renew_if_it_can()?;
        try_turn(from, to, options)
    });
    turned.map_err(|problem| {
        let stand = stand_of_old(from).map_or_else(|other| other, |own| own.text);
        format!("the last step is missing: {problem}\n{stand}")
    })
}

fn try_turn(from: &mut Server, to: &mut Server, options: &Options) -> Result<(), String> {
    if check::follows(&from.info("replication")?, &options.seen_to) {
        from.refuse_writes()?;
        // A pause that was to stay may be somebody else's.
        let stays = options.after == After::Paused && !options.unpause && !from.has_paused();
        return if stays { Ok(()) } else { from.let_write() };
    }
    // Its pause may be one of an hour ago, and what was seen before it may have changed.
    let paused = Moment::now();
    from.pause_writes(LONG_PAUSE)?;
    if !has_all(from, to)? {
        return Err("the old server may have taken writes that the new one lacks, or one of them \
                    was started anew: look at both"
            .to_owned());
    }
    if options.after == After::Paused {
        say("the old server stays paused for an hour; SHUTDOWN ends it, and CLIENT UNPAUSE lets \
             it write again");
        return Ok(());
    }
    from.prepare_to_follow(&to.address)?;
    if paused.elapsed() >= LONG_PAUSE / 2 {
        return Err("the pause of writes may have ended too early".to_owned());
    }
    // It refuses the writes that it has held.
    from.replicate(&options.seen_to)?;
    from.let_write()
}

/// Tells where clients go, whether the old server follows, and whether the new one takes writes.
pub(crate) fn conclude(
    from: &mut Server,
    to: &mut Server,
    options: &Options,
) -> Result<(), String> {
    say(&format!("clients connect to {} from now on", to.name()));
    if options.after == After::Replica {
        tell_of_link(from, to)?;
    }
    let begun = Instant::now();
    loop {
        let problem = match to.writes()? {
            Writes::Taken => return Ok(()),
            Writes::Waiting => "holds writes: CLIENT UNPAUSE there lets them go on".to_owned(),
            Writes::Unknown(answer) => format!("answers to a write: {answer}"),
        };
        if begun.elapsed() >= PATIENCE_OF_LINK {
            return Err(format!("the data has moved, but the new server {problem}"));
        }
        sleep(LOOK);
    }
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
