//! Agents and their coordinator in one process, against the limit.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::limit::{self, Limit};
use crate::load::{Control, Pace, Plan, Schedule};

const SECRET: &[u8] = b"a secret of the tests";

fn token() -> Token {
    Token::new(SECRET).expect("long enough")
}

/// Runs `action` beside two agents and a responder; it gets the agents' addresses and a plan.
fn beside<T>(action: impl FnOnce(Vec<String>, Plan) -> T) -> T {
    let stop = AtomicBool::new(false);
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let responder = Limit { address: local, threads: 1, stall: None, reply_bytes: 0 };
    let (sender, receiver) = mpsc::channel::<SocketAddr>();
    let ready = |sender: &mpsc::Sender<SocketAddr>| {
        let sender = sender.clone();
        move |address| sender.send(address).expect("the test waits for it")
    };
    thread::scope(|scope| {
        scope.spawn(|| limit::serve(&responder, &stop, ready(&sender)).expect("it has served"));
        let mut plan = Plan::default();
        plan.address.port = receiver.recv().expect("it listens").port();
        let addresses = (0..2)
            .map(|_| {
                scope.spawn(|| serve(local, &token(), &stop, ready(&sender)).expect("served"));
                receiver.recv().expect("it listens").to_string()
            })
            .collect();
        let result = action(addresses, plan);
        stop.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn two_agents_do_the_work_of_one() {
    beside(|addresses, mut plan| {
        plan.requests = Some(20_001);
        plan.connections = 11;
        let control = Control::default();
        let agents = Agents { addresses, token: token() };
        let seen = run(&plan, &control, &agents).expect("both are there");
        assert_eq!(seen.recording.requests(), 20_001);
        assert_eq!(seen.recording.response().count(), 20_001);
        assert_eq!(seen.recording.generator.connects, 11);
        assert_eq!(seen.recording.plan, plan);
        let by_second: u64 = seen.recording.timeline.iter().map(|second| second.requests).sum();
        assert_eq!(by_second, 20_001);
        // Both agents have our clock, and know it as well as the way to them is short.
        assert!(seen.clocks.iter().all(|(ahead, error)| ahead.abs() <= error + 0.001));
        // The same agents serve again.
        plan.pace = Pace::Open { rate: 1000.0, schedule: Schedule::Constant };
        (plan.requests, plan.seconds) = (None, Some(1.0));
        let seen = run(&plan, &Control::default(), &agents).expect("both are there");
        let all = seen.recording.requests() + seen.recording.generator.unsent;
        assert!(all.abs_diff(1000) <= 4, "{all}");
        assert!(seen.recording.timeline.len() <= 3);
    });
}

#[test]
fn silent_connections_do_not_keep_coordinators_out() {
    beside(|addresses, mut plan| {
        plan.requests = Some(1000);
        let silent = |address: &String| TcpStream::connect(address).expect("it listens");
        let several = |address| (0..20).map(move |_| silent(address));
        let held: Vec<TcpStream> = addresses.iter().flat_map(several).collect();
        let agents = Agents { addresses: addresses.clone(), token: token() };
        let seen = run(&plan, &Control::default(), &agents).expect("both listen");
        assert_eq!(seen.recording.requests(), 1000);
        // More silent connections than are kept do not prevent it either.
        let more = |address| (0..200).map(move |_| silent(address));
        let many: Vec<TcpStream> = addresses.iter().flat_map(more).collect();
        let seen = run(&plan, &Control::default(), &agents).expect("both listen");
        assert_eq!(seen.recording.requests(), 1000);
        drop((held, many));
    });
}

#[test]
fn a_wrong_token_is_refused() {
    beside(|addresses, plan| {
        let token = Token::new(b"another secret").expect("long enough");
        let error = run(&plan, &Control::default(), &Agents { addresses, token });
        assert!(matches!(error, Err(AgentError::Token(_))), "{error:?}");
    });
}

#[test]
fn one_plan_at_a_time_and_it_can_be_stopped() {
    beside(|addresses, mut plan| {
        plan.requests = None;
        let agents = Agents { addresses, token: token() };
        let control = Control::default();
        thread::scope(|scope| {
            let load = scope.spawn(|| run(&plan, &control, &agents));
            while control.progress().requests == 0 {
                thread::yield_now();
            }
            let second = run(&plan, &Control::default(), &agents);
            let message = second.expect_err("they are busy").to_string();
            assert!(message.contains("another plan"), "{message}");
            control.stop();
            let seen = load.join().expect("no panic").expect("both are there");
            assert!(seen.recording.requests() > 0);
        });
    });
}

#[test]
fn what_goes_wrong_is_said_with_the_agents_name() {
    beside(|addresses, mut plan| {
        let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one");
        plan.address.port = nobody.port();
        let agents = Agents { addresses: addresses.clone(), token: token() };
        let error = run(&plan, &Control::default(), &agents).expect_err("no server").to_string();
        assert!(
            error.starts_with(&format!("agent {}: Could not connect", addresses[0])),
            "{error}"
        );
        let agents = Agents { addresses: vec![nobody.to_string()], token: token() };
        let error = run(&plan, &Control::default(), &agents).expect_err("no agent");
        assert!(matches!(error, AgentError::Connection { .. }), "{error}");
        plan.connections = 1;
        let agents = Agents { addresses, token: token() };
        let error = run(&plan, &Control::default(), &agents).expect_err("too few connections");
        assert!(matches!(error, AgentError::Plan(_)), "{error}");
    });
}
