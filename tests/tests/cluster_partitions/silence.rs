//! A network that loses what goes over a link, and tells nobody.

use std::sync::PoisonError;

use anyhow::Result;
use tests::namespace;
use tests::observe::{figure, wait_until};

use crate::network::{Part, Peer};
use crate::partitions::{ALL, FIRST, ONE, World};

#[test]
fn a_link_over_which_nothing_arrives_is_given_up() -> Result<()> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    namespace::within("silence::a_link_over_which_nothing_arrives_is_given_up", || {
        let world = World::of_machines()?;
        for part in [Part::Both, Part::Mute, Part::Deaf] {
            let leader = world.deployment.wait_for_leader(FIRST..ALL)?;
            let replica = FIRST + ALL - 1 - leader;
            let mut asked = world.deployment.nodes[replica].connect()?;
            world.network.part(leader, &[Peer::Node(replica)], part)?;
            // What was lost would be sent again ever less often, also after that.
            wait_until("the link is given up", || {
                Ok(figure(&mut asked, "master_link_status")? == "down")
            })?;
            world.network.heal()?;
        }
        world.deployment.wait_for_leader(FIRST..ALL).map(drop)
    })
}
