//! What the clients of the storm do, each in its own thread.

mod counters;
mod databases;
mod leavers;
mod messages;
mod noise;
mod queues;
mod registers;
mod scripts;
mod streams;

use crate::actor::{Actor, World};
use crate::history::Operation;
use crate::replicas;

/// Clients that write registers; each has its own.
const WRITERS: usize = 3;

/// What a client does until the storm is over. The number tells it from others of its kind.
type Play = fn(&mut Actor<'_>, usize);

/// (name, whether it bears errors, how many, what they do). Connections of victims are killed now
/// and then.
pub(crate) type Role = (&'static str, bool, usize, Play);

/// Where one server is alone.
pub(crate) const OF_ONE: &[Role] = &[
    ("victim", false, WRITERS, registers::write),
    ("victim", false, 2, registers::read),
    ("pusher", false, 2, queues::push),
    ("popper", false, 3, queues::pop),
    ("pusher", false, 2, streams::feed),
    ("popper", false, 3, streams::consume),
    ("victim", false, 1, scripts::take_long),
    ("victim", false, 2, scripts::contend),
    ("victim", false, 3, counters::count),
    ("publisher", false, 1, messages::publish),
    ("subscriber", false, 1, messages::listen),
    ("operator", false, 1, databases::operate),
    ("victim", true, 2, noise::make_noise),
    ("leaver", true, 1, leavers::leave),
    ("heavy", true, 1, noise::lift),
];

/// Where it has replicas.
pub(crate) const AMONG_REPLICAS: &[Role] = &[
    ("pusher", false, 1, streams::feed),
    ("popper", false, 2, streams::consume),
    ("follower", false, 2, replicas::read_after),
    ("bundler", false, 1, replicas::bundle),
    ("looker", false, 1, replicas::look),
    ("keeper", true, 1, replicas::keep),
];

/// The same where the server or a replica is another one.
pub(crate) const AMONG_OTHERS: &[Role] = &[
    ("writer", false, replicas::WRITERS, replicas::write),
    ("reader", false, 1, registers::read),
    ("pusher", false, 1, queues::push),
    ("popper", false, 1, queues::pop),
    ("counter", false, 2, counters::count),
    ("publisher", false, 1, messages::publish),
    ("operator", false, 1, databases::operate),
    ("noise", true, 2, replicas::make_traffic),
    ("prolonger", true, 1, replicas::prolong),
    ("heavy", true, 1, replicas::lift),
];

/// Plays all roles until the world stops, in threads of a scope. Returns what each has to do.
pub(crate) fn cast<'w>(
    world: &'w World,
    seed: u64,
    roles: &[Role],
) -> Vec<impl FnOnce() -> Vec<Operation> + Send + use<'w>> {
    let mut players = Vec::new();
    let mut client = 0;
    for &(name, lenient, count, play) in roles {
        for number in 0..count {
            client += 1;
            let seed = seed.wrapping_mul(1009).wrapping_add(client);
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
