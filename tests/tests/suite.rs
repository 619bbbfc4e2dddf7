//! Plays `suite/*.t`: each section against dunlin and against the reference, in both protocols.
//!
//! `TARGET=dunlin` or `TARGET=reference` plays against one of them only. `UPDATE=1` plays against
//! the reference and rewrites the expectations with what it answers; arguments that name sections
//! limit both.

use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::{Result, bail};
use libtest_mimic::{Arguments, Failed, Trial};
use tests::play::Player;
use tests::server::{Target, repository};
use tests::transcript::{Expectation, Protocol, Section, Transcript};

/// Servers that wait for their next section, shared by the test threads.
type Pool = Arc<Mutex<Vec<(Target, Player)>>>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let transcripts = match Transcript::read_all(&repository().join("tests/suite")) {
        Ok(transcripts) => transcripts,
        Err(error) => return complain(&error),
    };
    if std::env::var_os("UPDATE").is_some() {
        return match update(transcripts, arguments.filter.as_deref().unwrap_or("")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&error),
        };
    }
    let pool = Pool::default();
    let trials = trials(&transcripts, &pool);
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Ends the servers: nothing else would, because `exit_code` does not unwind to the pool.
    drop(pool.lock().map(|mut players| players.clear()));
    conclusion.exit_code()
}

fn complain(error: &anyhow::Error) -> ExitCode {
    // If even standard error is gone, nobody can be told.
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    ExitCode::FAILURE
}

fn targets() -> Vec<Target> {
    let wanted = std::env::var("TARGET").unwrap_or_default();
    let all = [Target::Dunlin, Target::Reference];
    all.into_iter().filter(|target| wanted.is_empty() || wanted == target.name()).collect()
}

fn full_name(transcript: &Transcript, section: &Section) -> String {
    format!("{}/{}", transcript.family, section.title)
}

fn trials(transcripts: &[Transcript], pool: &Pool) -> Vec<Trial> {
    let mut trials = Vec::new();
    for target in targets() {
        for transcript in transcripts {
            for section in &transcript.sections {
                if target == Target::Reference && section.not_for_reference.is_some() {
                    continue;
                }
                for protocol in section.protocols() {
                    let name = full_name(transcript, section);
                    let kind = format!("{} {}", target.name(), protocol.name());
                    let path = transcript.path.display().to_string();
                    let (section, pool) = (section.clone(), Arc::clone(pool));
                    let run = move || {
                        judge(&pool, target, &section, protocol)
                            .map_err(|error| Failed::from(format!("{path}: {error:#}")))
                    };
                    trials.push(Trial::test(name, run).with_kind(kind));
                }
            }
        }
    }
    trials
}

/// Plays a section and compares. A server on which a section failed is not used again.
fn judge(pool: &Pool, target: Target, section: &Section, protocol: Protocol) -> Result<()> {
    let own_server = !section.server.is_empty();
    let waiting = if own_server { None } else { take(pool, target) };
    let mut player = match waiting {
        Some(player) => player,
        None => Player::start(target, &section.server)?,
    };
    let played = player.play(section, protocol, |_, step, lines| {
        if step.expected.accepts(protocol, &lines) {
            return Ok(());
        }
        let expected = step.expected.lines(protocol).join("\n  ");
        bail!("\nexpected\n  {expected}\nbut got\n  {}", lines.join("\n  "))
    });
    if let Err(error) = played {
        return match player.obituary() {
            Some(log) => bail!("{error:#}\nthe server has ended; its log:\n{log}"),
            None => Err(error),
        };
    }
    if !own_server && let Ok(mut players) = pool.lock() {
        players.push((target, player));
    }
    Ok(())
}

fn take(pool: &Pool, target: Target) -> Option<Player> {
    let mut players = pool.lock().ok()?;
    let at = players.iter().position(|(of, _)| *of == target)?;
    Some(players.swap_remove(at).1)
}

/// Rewrites the expectations of all sections whose name contains `wanted`. Sections that cannot be
/// played stay as they are, and are reported at the end.
fn update(transcripts: Vec<Transcript>, wanted: &str) -> Result<()> {
    let mut waiting = None;
    let mut failures = Vec::new();
    for mut transcript in transcripts {
        let family = transcript.family.clone();
        for section in &mut transcript.sections {
            let name = format!("{family}/{}", section.title);
            if !name.contains(wanted) || section.not_for_reference.is_some() {
                continue;
            }
            let shared = if section.server.is_empty() { waiting.take() } else { None };
            let mut player = match shared {
                Some(player) => player,
                None => Player::start(Target::Reference, &section.server)?,
            };
            match update_section(&mut player, section) {
                Ok(()) if section.server.is_empty() => waiting = Some(player),
                Ok(()) => {}
                Err(error) => failures.push(format!("{name}: {error:#}")),
            }
        }
        transcript.write()?;
    }
    if failures.is_empty() { Ok(()) } else { bail!("not updated:\n{}", failures.join("\n")) }
}

/// Replaces what the reference does not print; expectations that accept its replies stay, so
/// that patterns survive.
fn update_section(player: &mut Player, section: &mut Section) -> Result<()> {
    let mut printed = Vec::new();
    for protocol in section.protocols() {
        let mut of_protocol = Vec::new();
        player.play(section, protocol, |_, _, lines| {
            of_protocol.push(lines);
            Ok(())
        })?;
        printed.push((protocol, of_protocol));
    }
    for (index, step) in section.steps.iter_mut().enumerate() {
        let expected = &mut step.expected;
        match printed.as_slice() {
            [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] => {
                let (resp2, resp3) = (&resp2[index], &resp3[index]);
                let common = Expectation { common: expected.common.clone(), resp3: None };
                if !expected.accepts(Protocol::Resp2, resp2) {
                    *expected = Expectation::of_both(resp2, resp3);
                } else if common.accepts(Protocol::Resp3, resp3) {
                    *expected = common;
                } else if expected.resp3.is_none() || !expected.accepts(Protocol::Resp3, resp3) {
                    expected.resp3 = Some(resp3.clone());
                }
            }
            [(protocol, lines)] if !expected.accepts(*protocol, &lines[index]) => {
                *expected = Expectation { common: lines[index].clone(), resp3: None };
            }
            _ => {}
        }
    }
    Ok(())
}
