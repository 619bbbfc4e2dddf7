//! Clients that leave in every state. When all have left, the server has neither connections nor
//! memory of them.

use std::sync::atomic::Ordering;

use crate::actor::Actor;
use crate::squalls::{connect, leavers};

pub(super) fn leave(actor: &mut Actor<'_>, _: usize) {
    let world = actor.world;
    let mut streams = Vec::new();
    world.long_scripts.fetch_add(1, Ordering::SeqCst);
    for _ in 0..actor.random.below(6) {
        if world.calm.load(Ordering::SeqCst) {
            break;
        }
        let Ok(mut stream) = connect(world.port) else { break };
        let _ = leavers::begin(&mut stream, &mut actor.random);
        streams.push(stream);
    }
    world.long_scripts.fetch_sub(1, Ordering::SeqCst);
    actor.rest(20_000);
    drop(streams);
    actor.rest(100_000);
}
