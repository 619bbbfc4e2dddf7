//! The longest request while the keyspace grows: rebuilding a table in one go would show.

use std::time::Instant;

use anyhow::{Result, bail, ensure};
use tests::client::{Client, Received, Reply, encode};
use tests::process::scheduled_nanoseconds;
use tests::server::{Server, Target};

use crate::pinning::Places;
use crate::{Options, line};

/// Requests in flight at a time. No request takes longer than all together.
const BATCH: usize = 50;
/// Milliseconds that no request should take.
const BAR: f64 = 5.0;

/// What batches took, in milliseconds.
struct Times {
    /// From sending to the last reply. It includes whatever else the machine does.
    passed: Vec<f64>,
    /// Of the server's processor time.
    processor: Vec<f64>,
}

/// Inserts one batch of keys.
fn insert(client: &mut Client, first: usize) -> Result<()> {
    let mut request = Vec::new();
    for item in first..first + BATCH {
        encode(&["SET", &format!("key:{item:012}"), "xxx"], &mut request);
    }
    client.send_raw(&request)?;
    for _ in 0..BATCH {
        let Received::Reply(reply) = client.receive()? else { bail!("the server is gone") };
        ensure!(reply == Reply::Status(b"OK".to_vec()), "{reply:?}");
    }
    Ok(())
}

fn fill(server: &Server, count: usize) -> Result<Times> {
    let mut client = server.connect()?;
    let mut times = Times { passed: Vec::new(), processor: Vec::new() };
    let mut used = scheduled_nanoseconds(server.pid())?;
    for first in (0..count).step_by(BATCH) {
        let start = Instant::now();
        insert(&mut client, first)?;
        times.passed.push(start.elapsed().as_secs_f64() * 1e3);
        let now = scheduled_nanoseconds(server.pid())?;
        times.processor.push((now - used) as f64 / 1e6);
        used = now;
    }
    times.passed.sort_by(f64::total_cmp);
    times.processor.sort_by(f64::total_cmp);
    Ok(times)
}

/// Inserts keys through one connection, and measures the time of every batch.
pub(crate) fn longest_request(options: &Options) -> Result<()> {
    if !options.wants("growth") {
        return Ok(());
    }
    let count = options.scaled(20_000_000);
    line(&format!(
        "\nMilliseconds that {BATCH} requests took while {count} keys were inserted, longest and \
         99.99 %;\nthe longest request should be within {BAR}"
    ))?;
    line(&format!("{:28} {:>21} {:>21}", "", "processor time", "time passed"))?;
    let places = Places::new(1)?;
    for target in [Target::Dunlin, Target::Reference] {
        let server = places.start(target, 1)?;
        let times = fill(&server, count)?;
        let [processor, passed] = [&times.processor, &times.passed].map(|times| {
            let most = times.len() - 1;
            format!("{:>10.2} {:>10.2}", times[most], times[most * 9999 / 10_000])
        });
        line(&format!("{:28} {processor} {passed}", target.name()))?;
    }
    Ok(())
}
