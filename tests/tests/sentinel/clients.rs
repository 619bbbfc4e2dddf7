//! Client libraries follow a failover: redis-py, ioredis, go-redis and Jedis write all the time
//! through their own support for Sentinel, and go on at the new primary.

use anyhow::{Result, ensure};
use tests::client::Client;
use tests::library::{Library, programs, wait_for_each};
use tests::server::Target;

use crate::deployment::{Deployment, watch};

/// Writes that show that a client works.
const ENOUGH: usize = 20;

#[test]
fn client_libraries_go_on_at_the_new_primary() -> Result<()> {
    let mut deployment = Deployment::start(&[Target::Dunlin; 3], &[])?;
    let sentinels = watch("redis-sentinel", &deployment)?;
    let mut libraries = Vec::new();
    for (name, program) in programs("sentinel") {
        libraries.push(Library::start(name, program, &sentinels.ports())?);
    }
    wait_for_each(&mut libraries, "it writes", |_, own| own.count() >= ENOUGH)?;
    let old = deployment.servers[0].port();
    deployment.servers[0].kill();
    let new = sentinels.wait_for_another(old)?;
    // A number that was read late may have been acknowledged before the kill.
    let before: Vec<usize> = libraries.iter().map(Library::count).collect();
    let what = "it goes on after the failover";
    wait_for_each(&mut libraries, what, |place, own| own.count() >= before[place] + ENOUGH)?;
    let mut client = Client::connect(new)?;
    for library in &mut libraries {
        let (ended_well, complaints) = library.finish()?;
        ensure!(ended_well, "{}: {complaints}", library.name());
        // Nobody else writes it, so it is where the client has written last.
        let value = client.call(&["GET", library.name()])?;
        let value = String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned();
        let last = library.said(library.count() - 1);
        ensure!(last == [&*value], "{}: {value}, {last:?}, {complaints}", library.name());
    }
    Ok(())
}
