//! What the clients of a simulated world do: the roles of the storm, and further ones.

#[path = "../storm/roles/counters.rs"]
mod counters;
#[path = "../storm/roles/databases.rs"]
mod databases;
#[path = "../storm/roles/messages.rs"]
mod messages;
#[path = "../storm/roles/queues.rs"]
mod queues;
#[path = "../storm/roles/registers.rs"]
mod registers;
#[path = "../storm/roles/streams.rs"]
mod streams;

use tests::client::{Client, Reply};
use tests::random::Random;

use crate::actor::{Actor, World};
use crate::history::Operation;
use crate::replicas;

/// Clients that write registers; each has its own.
const WRITERS: usize = 3;

/// What a client does until the server is gone. The number tells it from others of its kind.
type Play = fn(&mut Actor<'_>, usize);

/// (name, whether it bears errors, how many, what they do). Connections of victims are killed now
/// and then.
type Role = (&'static str, bool, usize, Play);

/// Where one server is alone.
pub(crate) const OF_ONE: &[Role] = &[
    ("victim", false, WRITERS, registers::write),
    ("victim", false, 2, registers::read),
    ("pusher", false, 1, queues::push),
    ("popper", false, 2, queues::pop),
    ("pusher", false, 1, streams::feed),
    ("popper", false, 2, streams::consume),
    ("victim", false, 2, counters::count),
    ("publisher", false, 1, messages::publish),
    ("subscriber", false, 1, messages::listen),
    ("operator", false, 1, databases::operate),
    ("keeper", true, 1, keep),
    ("holder", false, 2, hold),
    ("hunter", false, 1, hunt),
];

/// Where it has replicas.
pub(crate) const AMONG_REPLICAS: &[Role] = &[
    ("writer", false, replicas::WRITERS, replicas::write),
    ("reader", false, 1, registers::read),
    ("pusher", false, 1, queues::push),
    ("popper", false, 1, queues::pop),
    ("pusher", false, 1, streams::feed),
    ("popper", false, 1, streams::consume),
    ("counter", false, 1, counters::count),
    ("publisher", false, 1, messages::publish),
    ("operator", false, 1, databases::operate),
    ("noise", true, 1, replicas::make_traffic),
    ("heavy", true, 1, replicas::lift),
    ("follower", false, 2, replicas::read_after),
    ("bundler", false, 1, replicas::bundle),
    ("looker", false, 1, replicas::look),
    ("prolonger", true, 1, replicas::prolong),
    ("keeper", true, 1, replicas::keep),
];

/// All roles, or some of them: a world with few clients shows what the others would cover up.
pub(crate) fn cast(
    world: &World,
    seed: u64,
    roles: &'static [Role],
) -> Vec<impl FnOnce() -> Vec<Operation> + Send> {
    let mut random = Random::new(seed);
    let share = *random.pick(&[30, 60, 100]);
    let mut players = Vec::new();
    let mut client = 0;
    for &(name, lenient, count, play) in roles {
        for number in 0..count {
            client += 1;
            let seed = seed.wrapping_mul(1009).wrapping_add(client);
            if !random.percent(share) && name != "keeper" {
                continue;
            }
            players.push(move || {
                let mut actor = match lenient {
                    true => Actor::lenient(world, seed, name),
                    false => Actor::new(world, seed, name),
                };
                while world.goes_on() {
                    play(&mut actor, number);
                }
                actor.operations
            });
        }
    }
    players
}

/// Looks after the server: rewrites, snapshots, pauses, and connections that are killed.
fn keep(actor: &mut Actor<'_>, _: usize) {
    let command = match actor.random.below(10) {
        0..4 => "BGREWRITEAOF".to_owned(),
        4 | 5 => "BGSAVE".to_owned(),
        6 => format!("CLIENT PAUSE {} WRITE", actor.random.below(20)),
        7 => "INFO everything".to_owned(),
        _ => return kill_victims(actor),
    };
    actor.call(&command);
    actor.rest(300_000);
}

fn kill_victims(actor: &mut Actor<'_>) {
    let Some((list, _)) = actor.call("CLIENT LIST") else { return };
    let list = String::from_utf8_lossy(list.text().unwrap_or_default()).into_owned();
    let victims = list.lines().filter(|line| line.contains(" name=victim "));
    let ids = victims.filter_map(|line| line.split(' ').next()?.strip_prefix("id="));
    for id in ids.step_by(3) {
        actor.call(&format!("CLIENT KILL ID {id}"));
    }
}

/// Takes a lock for some time, which begins when its command runs and not before: behind a command
/// that holds up its worker, for instance.
fn hold(actor: &mut Actor<'_>, number: usize) {
    let milliseconds = 60 + actor.random.below(200) as u64;
    let before = actor.random.below(3) as u64 * 10;
    let lock = format!("lock:{number}");
    let begin = actor.now();
    let commands = [
        format!("DEBUG SLEEP {}", before as f64 / 1000.0),
        format!("SET {lock} mine PX {milliseconds}"),
    ];
    let taken = actor.exchange(&commands).pop().flatten();
    let left = actor.call(&format!("PTTL {lock}"));
    if let (Some((Reply::Status(_), _)), Some((Reply::Integer(left), end))) = (taken, left)
        && let Ok(left) = u64::try_from(left)
    {
        // Both the deadline and what is left are in whole milliseconds.
        let passed = (end - begin).div_ceil(1_000_000).saturating_sub(before) + 2;
        if left + passed < milliseconds {
            actor.world.complain(format!(
                "a lock of {milliseconds} ms had {left} ms left after {passed} ms at most"
            ));
        }
    }
    actor.rest(30_000);
}

/// Kills a client that waits for an element, and then gives the element: it must stay.
fn hunt(actor: &mut Actor<'_>, number: usize) {
    let queue = format!("hunted:{number}");
    let Ok(mut prey) = Client::connect(actor.world.port) else { return actor.rest(3000) };
    let Ok(Reply::Integer(id)) = prey.call_text("CLIENT ID") else { return };
    if prey.call_text("SELECT 2").is_err() || prey.send(&["BLPOP", &queue, "0"]).is_err() {
        return;
    }
    actor.rest(2000);
    let commands = [
        "GET mark".to_owned(),
        format!("DEL {queue}"),
        format!("CLIENT KILL ID {id}"),
        format!("RPUSH {queue} element"),
        format!("LLEN {queue}"),
        "GET mark".to_owned(),
    ];
    let mut texts = Vec::new();
    // One after the other, some of them at once.
    let at = 3 + actor.random.below(3);
    for part in [&commands[..at], &commands[at..]] {
        texts.extend(actor.exchange(part).into_iter().flatten().map(|(reply, _)| reply));
    }
    if let [
        before,
        Reply::Integer(_),
        Reply::Integer(1),
        Reply::Integer(_),
        Reply::Integer(length),
        after,
    ] = texts.as_slice()
        && before == after
        && *length != 1
    {
        actor
            .world
            .complain(format!("a client that had been killed took one of {length} elements"));
    }
    actor.rest(5000);
}
