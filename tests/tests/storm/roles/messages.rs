//! Messages: those of each publisher come in order, and none is left out.

use std::collections::BTreeMap;
use std::time::Duration;

use tests::client::{Received, Reply};

use crate::actor::Actor;

pub(super) fn publish(actor: &mut Actor<'_>, _: usize) {
    let (mut name, mut count) = (actor.random.bits(), 0);
    while actor.world.goes_on() {
        let wanted = 1 + actor.random.below(5);
        let commands: Vec<String> =
            (1..=wanted).map(|index| format!("PUBLISH news {name}:{}", count + index)).collect();
        count += wanted;
        let answers = actor.exchange(&commands);
        if answers.iter().any(|answer| answer.as_ref().is_none_or(|(reply, _)| reply.is_error())) {
            // It is unknown which were sent: others see a gap, which is none in a new name.
            (name, count) = (actor.random.bits(), 0);
        }
        actor.rest(5000);
    }
}

/// Each publisher's messages come in its order, and none is left out.
pub(super) fn listen(actor: &mut Actor<'_>, _: usize) {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    if actor.call("SUBSCRIBE news").is_none_or(|(reply, _)| reply.is_error()) {
        actor.hang_up();
        return;
    }
    while actor.world.goes_on() {
        let world = actor.world;
        let Some(client) = actor.connected() else { return };
        match client.has_input(Duration::from_millis(50)) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(_) => return actor.hang_up(),
        }
        let Ok(Received::Reply(Reply::Array(message))) = client.receive() else {
            return actor.hang_up();
        };
        let text = message.get(2).and_then(Reply::text).unwrap_or_default();
        let text = String::from_utf8_lossy(text).into_owned();
        let Some((publisher, count)) = text.split_once(':') else { continue };
        let count: u64 = count.parse().unwrap_or(0);
        if let Some(before) = last.insert(publisher.to_owned(), count)
            && count != before + 1
        {
            world.complain(format!("message {count} of {publisher} came after {before}"));
        }
    }
}
