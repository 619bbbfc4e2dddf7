//! Resident bytes per item.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tests::client::{Client, Received, encode};
use tests::process::resident_bytes;

use crate::pinning::Places;
use crate::rivals::{self, Bars};
use crate::{Options, line};

/// Requests that are sent before their replies are read.
const BATCH: usize = 500;

/// A way of storing many items.
struct Shape {
    name: &'static str,
    count: usize,
    /// The request that stores the item with this number.
    request: fn(usize) -> Vec<String>,
    bar: f64,
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "key of 16 B, value of 3 B",
        count: 1_000_000,
        request: |item| words(&["SET", &key(item), "xxx"]),
        bar: 0.65,
    },
    Shape {
        name: "key of 16 B, value of 100 B",
        count: 1_000_000,
        request: |item| words(&["SET", &key(item), &"x".repeat(100)]),
        bar: 0.85,
    },
    Shape {
        name: "the same with an expiry",
        count: 1_000_000,
        request: |item| words(&["SET", &key(item), &"x".repeat(100), "EX", "86400"]),
        bar: 0.75,
    },
    Shape {
        name: "list, elements of 100 B",
        count: 1_000_000,
        request: |item| words(&["RPUSH", "list", &format!("{}{item:08}", "x".repeat(92))]),
        bar: 1.00,
    },
    Shape {
        name: "hash, fields of 12 + 12 B",
        count: 1_000_000,
        request: |item| words(&["HSET", "hash", &format!("f{item:011}"), &format!("v{item:011}")]),
        bar: 0.80,
    },
    Shape {
        name: "set, members of 12 B",
        count: 1_000_000,
        request: |item| words(&["SADD", "set", &format!("m{item:011}")]),
        bar: 0.60,
    },
    Shape {
        name: "sorted set, members of 12 B",
        count: 1_000_000,
        request: |item| words(&["ZADD", "zset", &item.to_string(), &format!("m{item:011}")]),
        bar: 0.60,
    },
    Shape {
        name: "hashes of 10 fields",
        count: 100_000,
        request: |item| {
            let fields = (0..10).flat_map(|field| [format!("f{field}"), format!("v{item:07}")]);
            words(&["HSET", &format!("h:{item:08}")]).into_iter().chain(fields).collect()
        },
        bar: 0.90,
    },
    Shape {
        name: "stream, entries of 100 B",
        count: 1_000_000,
        request: |item| {
            let fields =
                ["temperature", "21.50000", "humidity", "47.00000", "pressure", "1013.200"];
            let last =
                ["sensor".to_owned(), format!("{item:012}"), "place".into(), "hall-004".into()];
            words(&["XADD", "stream", "*"]).into_iter().chain(words(&fields)).chain(last).collect()
        },
        bar: 1.00,
    },
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn key(item: usize) -> String {
    format!("key:{item:012}")
}

/// Sends requests in batches, and makes sure that none is refused.
fn store(client: &mut Client, shape: &Shape, count: usize) -> Result<()> {
    let mut request = Vec::new();
    for begin in (0..count).step_by(BATCH) {
        let items = begin..count.min(begin + BATCH);
        request.clear();
        items.clone().for_each(|item| encode(&(shape.request)(item), &mut request));
        client.send_raw(&request)?;
        for _ in items {
            let Received::Reply(reply) = client.receive()? else { bail!("the server is gone") };
            ensure!(!reply.is_error(), "{}: {reply:?}", shape.name);
        }
    }
    Ok(())
}

/// Fills servers, each with one shape of data.
pub(crate) fn resident(options: &Options) -> Result<()> {
    let shapes: Vec<_> =
        SHAPES.iter().filter(|shape| options.wants(&format!("memory: {}", shape.name))).collect();
    if shapes.is_empty() {
        return Ok(());
    }
    let (places, targets) = (Places::new(1)?, rivals::all());
    rivals::heading("Resident bytes per item, beyond those of the empty server", &targets)?;
    for shape in shapes {
        let mut figures = vec![0.0; targets.len()];
        let count = options.scaled(shape.count);
        for (figure, target) in figures.iter_mut().zip(&targets) {
            let server = places.start(*target, 1)?;
            let mut client = server.connect()?;
            let before = resident_bytes(server.pid())?;
            store(&mut client, shape, count)?;
            // Memory that the allocator gives back with some delay is not counted.
            sleep(Duration::from_secs(1));
            let after = resident_bytes(server.pid())?;
            *figure = after.saturating_sub(before) as f64 / count as f64;
        }
        let bars = Bars { oldest: shape.bar, better: None };
        rivals::row(shape.name, &targets, &figures, bars)?;
    }
    Ok(())
}

/// Memory beyond that of the empty server that small keys must fit into.
const BUDGET: u64 = 6 * 1024 * 1024;

/// How many small keys fit into a small budget, where fixed costs matter.
pub(crate) fn within_a_limit(options: &Options) -> Result<()> {
    if !options.wants("memory: within 6 MB") {
        return Ok(());
    }
    let (places, targets) = (Places::new(1)?, rivals::all());
    line("\nKeys of 10 + 100 bytes that fit into 6 MB over the empty server's use (bar: 43 000)")?;
    for target in targets {
        let server = places.start(target, 1)?;
        let mut client = server.connect()?;
        let used = used_memory(&mut client)?;
        client.call(&["CONFIG", "SET", "maxmemory", &(used + BUDGET).to_string()])?;
        let mut stored = 0u64;
        while !client.call(&["SET", &format!("k{stored:09}"), &"x".repeat(100)])?.is_error() {
            stored += 1;
            ensure!(stored < 1_000_000, "nothing bounds the memory");
        }
        line(&format!("{:28} {stored:>10}", rivals::title(target)))?;
    }
    Ok(())
}

/// What the server says that it uses.
fn used_memory(client: &mut Client) -> Result<u64> {
    let reply = client.call(&["INFO", "memory"])?;
    let text = String::from_utf8_lossy(reply.text().context("INFO is a text")?).into_owned();
    let figure = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(figure.context("used_memory is one of its fields")?.trim().parse()?)
}
