//! A primary with replicas of other kinds: links are cut, slow and silent, replicas are killed and
//! stand still, full copies go to slow disks, and at the end the primary goes on or is killed and
//! the best replica leads. What was acknowledged at replicas is not lost, and all have the same.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::observe::{figure, number, wait_until};
use tests::process::{resume, stop};
use tests::proxy::Proxy;
use tests::replication::{check_alike, follow};
use tests::server::{Server, Target};

use super::Gust;
use crate::actor::World;
use crate::data;
use crate::history::{Clock, NEVER, Operation, State, Time};
use crate::judge::{Reason, judge};
use crate::plan::Disk;
use crate::replicas::{ALARMS, Assurance, Replicas, interrupt};
use crate::roles;

/// Who leads, and who follows.
type Cast = (Target, &'static [Target]);

/// All kinds, in turn.
const CASTS: [Cast; 3] = [
    (Target::Dunlin, &[Target::Dunlin, Target::Reference]),
    (Target::Reference, &[Target::Dunlin]),
    (Target::Dunlin, &[Target::Dunlin, Target::Dunlin]),
];

pub(super) fn blow(gust: &mut Gust) -> Result<()> {
    let mut rounds = gust.random.below(CASTS.len());
    let first = rounds;
    while rounds < first + 2 || gust.goes_on() {
        let cast = CASTS[rounds % CASTS.len()];
        play(cast, gust).with_context(|| format!("round {}, {cast:?}", rounds - first))?;
        rounds += 1;
    }
    Ok(())
}

/// A replica, and the proxy through which it follows.
struct Follower {
    server: Server,
    proxy: Proxy,
}

struct Troupe {
    primary: Server,
    followers: Vec<Follower>,
    clock: Clock,
    /// Which replica has ended, and when.
    ended: Vec<(usize, Time)>,
}

fn play((leader, others): Cast, gust: &mut Gust) -> Result<()> {
    let mut troupe = Troupe::begin(leader, others, gust)?;
    let result = troupe.live(others, gust);
    result.with_context(|| troupe.logs())
}

fn say_well(server: &Server, command: &str) -> Result<()> {
    let reply = server.connect()?.call_text(command)?;
    ensure!(!reply.is_error(), "{command} was answered {reply:?}");
    Ok(())
}

impl Troupe {
    fn begin(leader: Target, others: &[Target], gust: &mut Gust) -> Result<Troupe> {
        let is_diskless = *gust.random.pick(&["yes", "no"]);
        let usual = [
            ("repl-diskless-sync", is_diskless),
            ("repl-diskless-sync-delay", "0"),
            ("repl-ping-replica-period", "1"),
            ("repl-timeout", "5"),
            ("appendfsync", *gust.random.pick(&["always", "everysec", "no"])),
            ("appendonly", *gust.random.pick(&["yes", "no"])),
        ];
        let of_dunlin = [("durability-timeout", "700"), ("threads", "3")];
        let options = |target: Target| match target {
            Target::Dunlin => [&usual[..], &of_dunlin].concat(),
            _ => usual.to_vec(),
        };
        let primary = Server::start(leader, &options(leader))?;
        say_well(&primary, "DEBUG POPULATE 200 populated 8000")?;
        let library = ["FUNCTION", "LOAD", "REPLACE", data::LIBRARY];
        ensure!(!primary.connect()?.call(&library)?.is_error(), "no library");
        let (mut followers, mut above): (Vec<Follower>, _) = (Vec::new(), primary.port());
        let is_chained = gust.random.percent(30);
        for &target in others {
            let proxy = Proxy::start(above)?;
            let load = *gust.random.pick(&["disabled", "swapdb"]);
            let mut options = options(target);
            options.push(("repl-diskless-load", load));
            let mut server = Server::start(target, &options)?;
            let of = format!("127.0.0.1 {}", proxy.port());
            options.push(("replicaof", &of));
            server.set_options(&options);
            if gust.random.percent(40) {
                let words = crate::wrapper(Disk::Slow(30));
                server.set_wrapper(&words.iter().map(String::as_str).collect::<Vec<_>>());
            }
            // Its disk is what the wrapper makes of it.
            server.start_again()?;
            let mut client = server.connect()?;
            wait_until("it follows", || Ok(figure(&mut client, "master_link_status")? == "up"))?;
            if is_chained {
                above = server.port();
            }
            followers.push(Follower { server, proxy });
        }
        Ok(Troupe { primary, followers, clock: Clock::new(), ended: Vec::new() })
    }

    fn logs(&self) -> String {
        let mut text = format!("the primary:\n{}", self.primary.log_tail());
        for (number, follower) in self.followers.iter().enumerate() {
            text.push_str(&format!("\nreplica {number}:\n{}", follower.server.log_tail()));
        }
        text
    }

    /// The clients' part, from their first to their last command.
    fn live(&mut self, others: &[Target], gust: &mut Gust) -> Result<()> {
        let is_alone = self.primary.target() == Target::Dunlin
            && others.iter().all(|target| *target == Target::Dunlin);
        let speaks = self.primary.target() == Target::Dunlin;
        let (before, wrong) = data::read_state(&mut self.primary.connect()?)?;
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        let (history, offset) = position(&self.primary)?;
        let direct = number(&mut self.primary.connect()?, "connected_slaves")?;
        let assurances = Assurance::draw(&mut gust.random, direct, speaks);
        let own = self.followers.iter().filter(|it| it.server.target() == Target::Dunlin);
        let ports = own.map(|it| it.server.port()).collect();
        let mut world = World::new(self.primary.port(), self.clock, 1);
        let mut replicas = Replicas::new(ports, assurances.clone());
        replicas.have_positions = speaks;
        replicas.persist_fields = !others.contains(&Target::Reference);
        world.replicas = Some(replicas);
        let mut cast = roles::AMONG_OTHERS.to_vec();
        if speaks {
            cast.extend(roles::AMONG_REPLICAS.iter().filter(|it| is_alone || it.0 != "popper"));
        }
        let lasts = Duration::from_millis(gust.random.between(500, 1600).unsigned_abs());
        let kills_primary = gust.random.percent(60);
        let (seed, mut operations) = (gust.random.bits() >> 20, Vec::new());
        let all_ports: Vec<u16> = self.followers.iter().map(|it| it.server.port()).collect();
        let done = thread::scope(|scope| {
            let players = roles::cast(&world, seed, &cast);
            let players: Vec<_> = players.into_iter().map(|play| scope.spawn(play)).collect();
            let mut done = self.disturb(lasts, gust);
            if kills_primary && done.is_ok() {
                done = self.check_candidates(&history, offset);
                self.primary.kill();
            }
            world.stop.store(true, SeqCst);
            thread::sleep(Duration::from_millis(30));
            while !players.iter().all(|player| player.is_finished()) {
                interrupt(all_ports.iter().copied().chain([self.primary.port()]));
                thread::sleep(Duration::from_millis(10));
            }
            for player in players {
                operations.extend(player.join().expect("clients do not panic"));
            }
            done
        });
        done?;
        let said = world.violations.into_inner().expect("no client panics");
        ensure!(said.is_empty(), "{}", said.join("\n"));
        self.finish(kills_primary, &before, &operations, &assurances, &history)
    }

    /// Breaks links and ends replicas for so long.
    fn disturb(&mut self, lasts: Duration, gust: &mut Gust) -> Result<()> {
        let end = Instant::now() + lasts;
        while Instant::now() < end {
            gust.rest(300_000);
            let chosen = gust.random.below(self.followers.len());
            let Follower { server, proxy } = &mut self.followers[chosen];
            match gust.random.below(8) {
                0 | 1 => proxy.cut(),
                2 => {
                    let piece = 1 + gust.random.below(8000);
                    proxy.split(piece, Duration::from_micros(gust.random.below(2000) as u64));
                }
                3 => {
                    proxy.hold(true);
                    gust.rest(300_000);
                    proxy.cut();
                    proxy.hold(false);
                }
                4 => {
                    server.kill();
                    self.ended.push((chosen, self.clock.now()));
                    gust.rest(100_000);
                    server.start_again()?;
                }
                5 => {
                    stop(server.pid())?;
                    gust.rest(400_000);
                    resume(server.pid())?;
                }
                6 => drop(server.connect()?.call_text("BGREWRITEAOF")?),
                _ => drop(self.primary.connect()?.call_text("BGSAVE")?),
            }
        }
        self.followers.iter().for_each(|it| it.proxy.split(usize::MAX, Duration::ZERO));
        Ok(())
    }

    /// Waits until some replica has the data of this history, so that one can lead.
    fn check_candidates(&self, history: &str, offset: u64) -> Result<()> {
        wait_until("a replica can lead", || Ok(self.best(history, offset)?.0.is_some()))
    }

    /// The replica that has most of the stream, and how many are no such replicas.
    fn best(&self, history: &str, offset: u64) -> Result<(Option<usize>, usize)> {
        let (mut best, mut absent) = (None, self.followers.len());
        for (number, follower) in self.followers.iter().enumerate() {
            let Ok((own, applied)) = position(&follower.server) else { continue };
            if own == history && applied >= offset {
                best = best.max(Some((applied, number)));
                absent -= 1;
            }
        }
        Ok((best.map(|(_, number)| number), absent))
    }

    fn finish(
        &mut self,
        kills_primary: bool,
        before: &State,
        operations: &[Operation],
        assurances: &[Assurance],
        history: &str,
    ) -> Result<()> {
        let (leader, reason) = if kills_primary {
            let (heir, absent) = self.best(history, 0)?;
            let heir = heir.context("no replica can lead")?;
            say_well(&self.followers[heir].server, "REPLICAOF NO ONE")?;
            let ended = self.ended.clone();
            let (until, reads_until) = (NEVER - 1, NEVER);
            (Some(heir), Reason::Promoted { until, reads_until, ended, absent })
        } else {
            (None, Reason::SameData { reads_until: NEVER })
        };
        let server = leader.map_or(&self.primary, |heir| &self.followers[heir].server);
        let (after, mut wrong) = data::read_state(&mut server.connect()?)?;
        wrong.extend(judge(before, operations, &after, assurances, reason));
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        for (number, follower) in self.followers.iter().enumerate() {
            if Some(number) == leader {
                continue;
            }
            if leader.is_some() {
                follow(&follower.server, server.port())?;
            }
            check_alike(server, &follower.server)
                .with_context(|| format!("replica {number}, after {leader:?} was promoted"))?;
        }
        for follower in &self.followers {
            let log = follower.server.log();
            let alarm = log.lines().find(|line| ALARMS.iter().any(|it| line.contains(it)));
            ensure!(alarm.is_none(), "{alarm:?}");
        }
        Ok(())
    }
}

/// The history and the offset of what a server has.
fn position(server: &Server) -> Result<(String, u64)> {
    let mut client = server.connect()?;
    Ok((figure(&mut client, "master_replid")?, number(&mut client, "master_repl_offset")?))
}
