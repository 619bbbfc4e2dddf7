//! The machine's clock is set back by an hour. The server runs in this process, whose clock the
//! test can set.

use std::thread;

use anyhow::{Context, Result, ensure};
use server::boot::Start;
use tests::client::{Client, Received, Reply};
use tests::observe::{number, wait_until};

const HOUR_US: i64 = 3_600_000_000;

fn ok(client: &mut Client, line: &str) -> Result<()> {
    let reply = client.call_text(line)?;
    ensure!(reply == Reply::Status(b"OK".to_vec()), "{line}: {reply:?}");
    Ok(())
}

/// The server's date, in seconds.
fn date(client: &mut Client) -> Result<i64> {
    let Reply::Array(parts) = client.call_text("TIME")? else { anyhow::bail!("no time") };
    let seconds = parts.first().and_then(Reply::text).context("no seconds")?;
    Ok(String::from_utf8_lossy(seconds).parse()?)
}

#[test]
fn a_clock_that_is_set_back_moves_dates_and_nothing_else() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let (port_text, home) = (port.to_string(), directory.path().to_string_lossy().into_owned());
    let options = ["--port", &port_text, "--dir", &home, "--bind", "127.0.0.1", "--threads", "2"];
    let mut words: Vec<Vec<u8>> = options.iter().map(|word| word.as_bytes().to_vec()).collect();
    words.extend([b"--save".to_vec(), Vec::new()]);
    // A process that already has threads cannot change its title.
    words.extend([b"--set-proc-title".to_vec(), b"no".to_vec()]);
    let start = Start { program: b"dunlin".to_vec(), arguments: words, ..Start::default() };
    let serving = thread::spawn(move || server::boot::serve(start));
    let mut control = None;
    wait_until("the start", || {
        control = Client::connect(port).ok();
        Ok(control.is_some())
    })?;
    let mut control = control.context("no connection")?;
    // When clients are closed, this one is spared.
    ok(&mut control, "CLIENT NO-EVICT ON")?;

    let before = date(&mut control)?;
    let mut waiting = Client::connect(port)?;
    waiting.send(&["BLPOP", "none", "1"])?;
    wait_until("the wait", || Ok(number(&mut control, "blocked_clients")? == 1))?;
    base::clock::shift_wall_clock(-HOUR_US);
    ensure!(before - date(&mut control)? > 3000, "the date stands an hour earlier");

    // A wait that began before, one that begins now, and a pause.
    ensure!(waiting.receive()? == Received::Reply(Reply::NilArray));
    ensure!(waiting.call_text("BLPOP none 0.1")? == Reply::NilArray);
    ok(&mut control, "CLIENT PAUSE 100")?;
    ok(&mut waiting, "SET key value PX 3000000")?;
    let Reply::Integer(left) = waiting.call_text("PTTL key")? else { anyhow::bail!("no number") };
    ensure!((1..=3_000_000).contains(&left), "{left}");
    ensure!(waiting.call_text("OBJECT IDLETIME key")? == Reply::Integer(0));

    // What a worker looks at now and then.
    let mut idle = Client::connect(port)?;
    ok(&mut idle, "CLIENT SETNAME idle")?;
    ok(&mut control, "CONFIG SET timeout 3")?;
    wait_until("the end of the idle one", || {
        let list = control.call_text("CLIENT LIST")?;
        Ok(!String::from_utf8_lossy(list.text().unwrap_or_default()).contains("name=idle"))
    })?;
    ok(&mut control, "CONFIG SET timeout 0")?;
    let mut greedy = Client::connect(port)?;
    greedy.send_raw(b"*2\r\n$4\r\nECHO\r\n$4000000\r\n")?;
    greedy.send_raw(&vec![b'x'; 3_000_000])?;
    ok(&mut control, "CONFIG SET maxmemory-clients 2mb")?;
    wait_until("the end of the greedy one", || Ok(number(&mut control, "evicted_clients")? > 0))?;

    // A rule that counts seconds from the last save.
    let set = control.call(&["CONFIG", "SET", "save", "1 1"])?;
    ensure!(set == Reply::Status(b"OK".to_vec()), "{set:?}");
    ok(&mut control, "SET saved 1")?;
    wait_until("a save", || Ok(number(&mut control, "rdb_changes_since_last_save")? == 0))?;
    ensure!(number(&mut control, "uptime_in_seconds")? < 1000);

    control.send(&["SHUTDOWN", "NOSAVE"])?;
    let ended = serving.join();
    ensure!(matches!(ended, Ok(Ok(()))), "the server does not end as it should");
    Ok(())
}
