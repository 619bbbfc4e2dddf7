//! The prompt, in a real terminal.

use anyhow::{Context, Result, ensure};
use tests::observe::{number, wait_until};
use tests::server::{Server, Target, dunlin_binary};
use tests::tmux::Screen;

use crate::reference;

/// A prompt at a server, whose history is in the server's directory.
fn prompt(server: &Server, options: &str) -> Result<Screen> {
    let program = dunlin_binary()?;
    let history = server.directory().join("history");
    let line = format!(
        "REDISCLI_HISTFILE={} REDISCLI_RCFILE=/dev/null {} cli -p {} {options}",
        history.display(),
        program.display(),
        server.port()
    );
    let screen = Screen::start(80, 24, &line)?;
    screen.wait_for(&format!("127.0.0.1:{}>", server.port()))?;
    Ok(screen)
}

#[test]
fn commands_are_typed() -> Result<()> {
    let server = reference(&[])?;
    let screen = prompt(&server, "")?;
    let at = format!("127.0.0.1:{}", server.port());
    screen.enter("set k 'a b'")?;
    screen.wait_for("OK")?;
    screen.enter("lpush l x y")?;
    screen.wait_for("(integer) 2")?;
    screen.enter("lrange l 0 -1")?;
    screen.wait_for("1) \"y\"\n2) \"x\"")?;
    // The argument that is missing is shown behind the cursor.
    screen.type_text("get ")?;
    screen.wait_for("> get key")?;
    screen.press(&["C-u"])?;
    screen.type_text("zadd z nx ")?;
    screen.wait_for("[GT|LT] [CH] [INCR] score member [score member ...]")?;
    screen.press(&["C-u"])?;
    // A word that is clear is completed, others are listed.
    screen.type_text("hincrbyf")?;
    screen.press(&["Tab"])?;
    screen.wait_for("> hincrbyfloat")?;
    screen.press(&["C-u"])?;
    screen.type_text("config s")?;
    screen.press(&["Tab"])?;
    screen.wait_for("> config set")?;
    screen.press(&["C-u"])?;
    // The database, a transaction and its end are in the prompt.
    screen.enter("select 3")?;
    screen.wait_for(&format!("{at}[3]>"))?;
    screen.enter("multi")?;
    screen.wait_for(&format!("{at}[3](TX)>"))?;
    screen.enter("incr n")?;
    screen.wait_for("QUEUED")?;
    screen.enter("exec")?;
    screen.wait_for("1) (integer) 1")?;
    screen.enter("3 incr n")?;
    screen.wait_for("(integer) 4")?;
    // A quote that is open goes on in the next line.
    screen.enter("set lines \"one")?;
    screen.enter("two\"")?;
    screen.enter("get lines")?;
    screen.wait_for("\"one\\ntwo\"")?;
    screen.enter("clear")?;
    screen.wait_until(|text| !text.contains("QUEUED"))?;
    // Errors have a colour in a terminal.
    screen.enter("nosuch")?;
    screen.wait_for("(error) ERR unknown command")?;
    ensure!(screen.colored_text()?.contains("\u{1b}[31m(error)"), "{}", screen.colored_text()?);
    screen.enter("exit")?;
    screen.wait_for("ended with 0")?;
    Ok(())
}

#[test]
fn lines_are_edited_and_kept() -> Result<()> {
    let server = reference(&[("requirepass", "secret")])?;
    let screen = prompt(&server, "")?;
    screen.enter("auth secret")?;
    screen.wait_for("OK")?;
    screen.enter("set wide käse")?;
    screen.type_text("get wdie")?;
    screen.press(&["Left", "Left", "C-t", "Enter"])?;
    screen.wait_for("\"k\\xc3\\xa4se\"")?;
    screen.press(&["Up", "Up"])?;
    screen.wait_until(|text| text.matches("> set wide käse").count() == 2)?;
    screen.press(&["C-a", "M-d"])?;
    screen.type_text("append")?;
    screen.press(&["Enter"])?;
    screen.wait_for("(integer) 10")?;
    screen.press(&["C-r"])?;
    screen.type_text("get")?;
    screen.wait_for("(reverse-i-search)`get': get wide")?;
    screen.press(&["Enter"])?;
    screen.wait_for("\"k\\xc3\\xa4sek\\xc3\\xa4se\"")?;
    // A line longer than the screen is shown in full.
    screen.type_text(&format!("set long {}", "0123456789".repeat(10)))?;
    screen.wait_for("\n4567890123456789012345678901234567890123456789")?;
    screen.press(&["C-a", "C-e", "Enter"])?;
    screen.enter("strlen long")?;
    screen.wait_for("(integer) 100")?;
    screen.press(&["C-d"])?;
    screen.wait_for("ended with 0")?;
    let history = std::fs::read_to_string(server.directory().join("history"))?;
    ensure!(history.starts_with("set wide käse\nget wide\n"), "{history}");
    ensure!(!history.contains("secret"), "{history}");
    let screen = prompt(&server, "--no-history -a secret --no-auth-warning")?;
    screen.enter("echo hidden")?;
    screen.wait_for("\"hidden\"")?;
    screen.press(&["C-c"])?;
    screen.wait_for("ended with 0")?;
    let after = std::fs::read_to_string(server.directory().join("history"))?;
    ensure!(after == history, "{after}");
    Ok(())
}

#[test]
fn messages_come_until_a_key_is_pressed() -> Result<()> {
    let server = reference(&[])?;
    let screen = prompt(&server, "")?;
    screen.enter("subscribe news")?;
    screen.wait_for("Reading messages... (press Ctrl-C to quit or any key to type command)")?;
    let mut client = server.connect()?;
    client.call(&["PUBLISH", "news", "first one"])?;
    screen.wait_for("3) \"first one\"")?;
    screen.type_text("p")?;
    screen.wait_for("(subscribed mode)> p")?;
    screen.enter("ing")?;
    screen.wait_for("1) \"pong\"")?;
    screen.wait_for("Reading messages...")?;
    screen.press(&["C-c"])?;
    screen
        .wait_until(|text| text.trim_end().ends_with(&format!("127.0.0.1:{}>", server.port())))?;
    screen.enter("monitor")?;
    screen.wait_for("OK")?;
    client.call(&["GET", "watched"])?;
    screen.wait_for("\"GET\" \"watched\"")?;
    screen.press(&["C-c"])?;
    screen.enter("echo back")?;
    screen.wait_for("\"back\"")?;
    screen.enter("clear")?;
    screen.enter(":monitor watched*")?;
    screen.wait_until(|text| text.contains("OK"))?;
    client.call(&["GET", "ignored"])?;
    client.call(&["GET", "watched:2"])?;
    let shown = screen.wait_for("\"GET\" \"watched:2\"")?;
    ensure!(!shown.contains("ignored"), "{shown}");
    screen.press(&["C-c"])?;
    screen.enter("blpop nothing 0")?;
    wait_until("the command waits", || Ok(number(&mut client, "blocked_clients")? == 1))?;
    screen.press(&["C-c"])?;
    screen.enter("echo still")?;
    screen.wait_for("\"still\"")?;
    Ok(())
}

#[test]
fn a_server_that_was_started_again_is_found() -> Result<()> {
    let mut server = Server::start(Target::Dunlin, &[])?;
    let screen = prompt(&server, "")?;
    screen.enter("ping")?;
    screen.wait_for("PONG")?;
    server.kill();
    screen.enter("ping")?;
    screen.wait_for("Could not connect to Redis")?;
    screen.wait_for("not connected>")?;
    server.start_again()?;
    screen.enter("echo again")?;
    screen.wait_for("\"again\"").context("after the server was started again")?;
    Ok(())
}
