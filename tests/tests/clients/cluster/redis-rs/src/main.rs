//! Writes on and on through redis-rs's support for clusters.
//!
//! usage: redis-rs-cluster PORTS     (of some nodes, with commas between them)
//!
//! It prints what was acknowledged: `count KEY`, `list KEY NUMBER` and `pipeline KEY NUMBER`. It
//! ends with its standard input, and fails when it reads something else than it has written.

use std::env;
use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use redis::RedisResult;
use redis::cluster::{ClusterClient, ClusterConnection, cluster_pipe};

const NAME: &str = "redis-rs";
const KEYS: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(2);

fn write(connection: &mut ClusterConnection, number: u64) -> RedisResult<()> {
    let key = format!("{NAME}:count:{}", number % KEYS);
    let _: i64 = redis::cmd("INCR").arg(&key).query(connection)?;
    println!("count {key}");
    let key = format!("{NAME}:list:{}", number % KEYS);
    let _: i64 = redis::cmd("RPUSH").arg(&key).arg(number).query(connection)?;
    let last: u64 = redis::cmd("LINDEX").arg(&key).arg(-1).query(connection)?;
    assert_eq!(last, number, "{key} ends with another number");
    println!("list {key} {number}");
    if number % 10 != 0 {
        return Ok(());
    }
    let keys: Vec<String> = (0..8).map(|at| format!("{NAME}:pipeline:{at}")).collect();
    let mut pipeline = cluster_pipe();
    for key in &keys {
        pipeline.cmd("RPUSH").arg(key).arg(number);
    }
    let _: Vec<i64> = pipeline.query(connection)?;
    for key in &keys {
        println!("pipeline {key} {number}");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let ports = env::args().nth(1).ok_or("which ports?")?;
    let has_ended = Arc::<AtomicBool>::default();
    let ended = Arc::clone(&has_ended);
    thread::spawn(move || {
        // However it ends, nobody is there any more.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        ended.store(true, Relaxed);
    });
    let nodes = ports.split(',').map(|port| format!("redis://127.0.0.1:{port}"));
    let client = ClusterClient::builder(nodes)
        .connection_timeout(PATIENCE)
        .response_timeout(PATIENCE)
        .build()?;
    let mut connection = client.get_connection()?;
    let mut number = 0;
    while !has_ended.load(Relaxed) {
        number += 1;
        if let Err(error) = write(&mut connection, number) {
            eprintln!("{error}");
            thread::sleep(Duration::from_millis(50));
            // The old one may have replies left that nobody has read.
            match client.get_connection() {
                Ok(new) => connection = new,
                Err(error) => eprintln!("{error}"),
            }
        }
    }
    Ok(())
}
