//! The generator against the responder, in one process.

use std::sync::mpsc;

use super::*;
use crate::load::{
    self, Control, HttpRequest, HttpWork, Keys, Mix, Pace, Plan, RespWork, Schedule, Size, Work,
};
use crate::record::Recording;

/// Runs `action` beside a responder.
fn beside<T>(stall: Option<Stall>, action: impl FnOnce(SocketAddr) -> T) -> T {
    let stop = AtomicBool::new(false);
    let limit = Limit { address: ([127, 0, 0, 1], 0).into(), threads: 2, stall, reply_bytes: 0 };
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            serve(&limit, &stop, |address| sender.send(address).expect("the test waits for it"))
        });
        let result = action(receiver.recv().expect("it listens"));
        stop.store(true, Ordering::Relaxed);
        server.join().expect("no panic").expect("it has served");
        result
    })
}

fn plan(address: SocketAddr, mix: &str) -> Plan {
    let Mix(operations) = mix.parse().expect("a mix");
    let keys = Keys::Uniform { count: 1000 };
    let work = RespWork { operations, keys, ..RespWork::default() };
    let mut plan = Plan { work: Work::Resp(work), requests: Some(10_000), ..Plan::default() };
    plan.address.port = address.port();
    plan
}

fn measure(plan: &Plan) -> Recording {
    load::run(plan, &Control::default()).expect("the responder is there")
}

#[test]
fn each_request_is_counted_once() {
    beside(None, |address| {
        for (pipeline, threads) in [(1, 1), (16, 2), (7, 3)] {
            let mut plan = plan(address, "get:8,set:2");
            (plan.pipeline, plan.threads) = (pipeline, threads);
            let control = Control::default();
            let recording = load::run(&plan, &control).expect("the responder is there");
            assert_eq!(recording.requests(), 10_000);
            assert_eq!(recording.errors(), 0);
            assert_eq!(recording.service().count(), 10_000);
            assert_eq!(
                recording.timeline.iter().map(|second| second.requests).sum::<u64>(),
                10_000
            );
            assert_eq!(recording.generator.connects, 50);
            assert_eq!(recording.interrupted, None);
            assert_eq!(control.progress().requests, 10_000);
            let [get, set] = &recording.operations[..] else { panic!("two operations") };
            assert!((7_700..8_300).contains(&get.requests), "{}", get.requests);
            assert_eq!(set.received_bytes, 5 * set.requests);
            assert!(set.sent_bytes > get.sent_bytes / 8);
        }
    });
}

#[test]
fn large_values_go_through() {
    beside(None, |address| {
        let mut plan = plan(address, "set");
        if let Work::Resp(work) = &mut plan.work {
            let size = |bytes, weight| Size { bytes, weight };
            work.sizes = vec![size(10, 1.0), size(3_000_000, 1.0)];
        }
        (plan.requests, plan.connections, plan.pipeline) = (Some(100), 4, 3);
        let recording = measure(&plan);
        assert_eq!(recording.requests(), 100);
        assert!(recording.operations[0].sent_bytes > 60_000_000);
    });
}

#[test]
fn a_connection_for_each_request() {
    beside(None, |address| {
        let mut plan = plan(address, "get");
        plan.requests = Some(500);
        if let Work::Resp(work) = &mut plan.work {
            work.keep_alive = false;
        }
        let recording = measure(&plan);
        assert_eq!((recording.requests(), recording.errors()), (500, 0));
        assert_eq!(recording.generator.connects, 500);
        plan.pace = Pace::Open { rate: 5000.0, schedule: Schedule::Constant };
        let recording = measure(&plan);
        assert_eq!((recording.requests(), recording.generator.connects), (500, 500));
    });
}

#[test]
fn pages_are_requested() {
    beside(None, |address| {
        let request = |method: &str, body: Option<&str>| HttpRequest {
            name: method.to_owned(),
            weight: 1.0,
            method: method.to_owned(),
            path: "/k/__rand_int__".to_owned(),
            headers: std::collections::BTreeMap::new(),
            body: body.map(str::to_owned),
        };
        let requests = vec![request("GET", None), request("POST", Some("value=__data__"))];
        for keep_alive in [true, false] {
            let work = HttpWork { requests: requests.clone(), keep_alive, ..HttpWork::default() };
            let mut plan = plan(address, "get");
            (plan.work, plan.requests, plan.connections) = (Work::Http(work), Some(400), 10);
            let recording = measure(&plan);
            assert_eq!((recording.requests(), recording.errors()), (400, 0));
            assert_eq!(recording.generator.connects, if keep_alive { 10 } else { 400 });
            assert!(recording.operations.iter().all(|operation| operation.requests > 100));
        }
    });
}

#[test]
fn what_is_due_just_before_the_end_leaves_when_a_connection_is_free() {
    beside(None, |address| {
        let mut plan = plan(address, "get");
        let pace = Pace::Open { rate: 1000.0, schedule: Schedule::Constant };
        // The last is due 100 ns before the end: too late to look at the clock in between.
        (plan.pace, plan.requests, plan.seconds) = (pace, None, Some(0.100_000_1));
        let recording = measure(&plan);
        assert_eq!((recording.requests(), recording.generator.unsent), (101, 0), "{recording:?}");
    });
}

#[test]
fn an_open_load_sends_what_its_schedule_says() {
    beside(None, |address| {
        for schedule in [Schedule::Constant, Schedule::Poisson] {
            let mut plan = plan(address, "get");
            plan.pace = Pace::Open { rate: 2000.0, schedule };
            (plan.requests, plan.seconds, plan.threads) = (None, Some(1.0), 2);
            plan.warmup_seconds = 0.2;
            let recording = measure(&plan);
            let all = recording.requests() + recording.generator.unsent;
            // Of 2000 independent requests, 1 in 10^9 runs is further away than this.
            let slack = if schedule == Schedule::Constant { 3 } else { 280 };
            assert!(all.abs_diff(2000) <= slack, "{all} of {schedule:?}");
            assert_eq!(recording.generator.lateness.count(), recording.requests());
            // GET and its key, without the requests of the warm-up.
            let length = recording.operations[0].sent_bytes / recording.requests();
            assert_eq!(length, "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000000\r\n".len() as u64);
            assert!(recording.seconds >= 1.0);
        }
    });
}

/// The test of coordinated omission: a closed load waits while the server stalls, so few of its
/// requests see the stall; those of an open load were due all the time.
#[test]
fn a_stall_shows_in_an_open_load_and_hides_in_a_closed_one() {
    let stall = Some("100ms:400ms".parse::<Stall>().expect("a stall"));
    beside(stall, |address| {
        let mut plan = plan(address, "get");
        (plan.requests, plan.seconds, plan.connections) = (None, Some(2.0), 4);
        let closed = measure(&plan);
        plan.pace = Pace::Open { rate: 1000.0, schedule: Schedule::Poisson };
        let open = measure(&plan);
        assert!(closed.requests() > 2_000, "{}", closed.requests());
        // A quarter of all requests was due during a stall, a tenth in the first 40 ms of one.
        let share = open.response().quantile_ms(0.9);
        assert!(share > 30.0, "{share}");
        assert!(closed.response().quantile_ms(0.98) < 30.0);
        assert!(closed.response().max_ms() > 50.0);
        // The time from sending hides it too: most of those requests were not sent meanwhile.
        assert!(open.service().quantile_ms(0.9) < share);
    });
}

#[test]
fn a_load_can_be_stopped_and_paused() {
    beside(None, |address| {
        let mut plan = plan(address, "get");
        plan.requests = None;
        plan.pace = Pace::Closed { think_seconds: 0.01 };
        let control = Control::default();
        let recording = thread::scope(|scope| {
            let load = scope.spawn(|| load::run(&plan, &control));
            while control.progress().requests < 200 {
                thread::sleep(Duration::from_millis(1));
            }
            control.stop();
            load.join().expect("no panic").expect("the responder is there")
        });
        assert_eq!(recording.interrupted, None, "a load without a bound ends by being stopped");
        // 50 connections that pause 10 ms between requests send at most 5000 a second.
        assert!(recording.requests() as f64 <= 50.0 + 5000.0 * recording.seconds);
        plan.requests = Some(1_000_000_000);
        let control = Control::default();
        control.stop();
        let recording = load::run(&plan, &control).expect("the responder is there");
        assert_eq!(recording.interrupted.as_deref(), Some("stopped"));
    });
}

#[test]
fn no_server_at_the_address_is_an_error() {
    let address = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one");
    let error = load::run(&plan(address, "get"), &Control::default()).expect_err("nobody");
    assert!(error.to_string().starts_with("Could not connect to 127.0.0.1:"), "{error}");
}

/// A server that closes every connection after its first reply.
#[test]
fn a_lost_connection_ends_the_load_or_is_opened_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let stop = AtomicBool::new(false);
    listener.set_nonblocking(true).expect("a socket");
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                };
                use std::io::{Read, Write};
                stream.set_nonblocking(false).expect("a socket");
                let mut buffer = [0; 4096];
                // The generator's first connection sends nothing, and is closed.
                if stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                    let _ = stream.write_all(COMMAND_REPLY);
                }
            }
        });
        let mut plan = plan(address, "get");
        (plan.requests, plan.connections, plan.pipeline) = (Some(6), 1, 2);
        let ended = measure(&plan);
        assert!(
            ended.interrupted.as_deref().is_some_and(|text| text.contains("lost")),
            "{ended:?}"
        );
        // The server's doing, and not the generator's.
        assert!(ended.is_valid() && ended.generator.overloaded.len() == 1, "{ended:?}");
        plan.reconnect = true;
        let recording = measure(&plan);
        assert_eq!((recording.requests(), recording.errors()), (3, 3));
        assert_eq!(recording.operations[0].errors["connection"], 3);
        assert_eq!(recording.interrupted, None);
        assert!(recording.generator.connects >= 3 && recording.is_valid());
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_command_is_answered_with_a_value_of_the_length_that_was_asked_for() {
    assert_eq!(command_reply(0), b"+OK\r\n");
    assert_eq!(command_reply(3), b"$3\r\nxxx\r\n");
    assert_eq!(command_reply(100).len(), 108);
}

/// A server that answers each request with the result of `answer` for its number within its
/// connection; `None` closes the connection. Ends with `action`.
fn beside_a_server<T>(
    answer: impl Fn(usize) -> Option<&'static [u8]> + Sync,
    action: impl FnOnce(SocketAddr) -> T,
) -> T {
    use std::io::{Read, Write};
    /// Ends the server also when the action panics.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a socket");
    let (stop, answer) = (AtomicBool::new(false), &answer);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                };
                stream.set_nonblocking(false).expect("a socket");
                scope.spawn(move || {
                    let mut buffer = [0; 4096];
                    for number in 0.. {
                        if stream.read(&mut buffer).is_ok_and(|length| length == 0) {
                            return;
                        }
                        let Some(bytes) = answer(number) else { return };
                        let _ = stream.write_all(bytes);
                    }
                });
            }
        });
        let _end = End(&stop);
        action(address)
    })
}

#[test]
fn refused_requests_count_neither_as_fast_nor_as_throughput() {
    // Every third request succeeds.
    let answer =
        |number: usize| Some(if number % 3 == 2 { &b"+OK\r\n"[..] } else { b"-OOM no\r\n" });
    beside_a_server(answer, |address| {
        let mut plan = plan(address, "get");
        (plan.requests, plan.connections) = (Some(300), 1);
        let recording = measure(&plan);
        assert_eq!(
            (recording.requests(), recording.successes(), recording.errors()),
            (300, 100, 200)
        );
        assert_eq!((recording.response().count(), recording.service().count()), (100, 100));
        assert!((recording.rate() * recording.seconds - 100.0).abs() < 1e-6);
        let seconds = recording.timeline.iter();
        let (all, good) =
            seconds.fold((0, 0), |sum, one| (sum.0 + one.requests, sum.1 + one.response.count()));
        assert_eq!((all, good), (300, 100));
    });
}

#[test]
fn what_is_open_when_a_load_is_ended_is_counted() {
    // The second request of each connection is never answered.
    let answer = |number: usize| Some(if number == 0 { &b"+OK\r\n"[..] } else { b"" });
    beside_a_server(answer, |address| {
        let mut plan = plan(address, "get");
        (plan.requests, plan.connections) = (Some(1_000_000), 2);
        plan.pace = Pace::Open { rate: 1000.0, schedule: Schedule::Constant };
        let control = Control::default();
        let recording = thread::scope(|scope| {
            let load = scope.spawn(|| load::run(&plan, &control));
            while control.progress().seconds < 0.1 {
                thread::sleep(Duration::from_millis(1));
            }
            control.stop();
            load.join().expect("no panic").expect("the server is there")
        });
        assert_eq!(recording.interrupted.as_deref(), Some("stopped"));
        assert_eq!(recording.requests(), 2);
        assert_eq!(recording.operations[0].errors["unanswered"], 2);
        // Everything that was due within a tenth of a second, except those four.
        assert!(recording.generator.unsent >= 90, "{recording:?}");
    });
}

#[test]
fn an_http_server_may_close_what_is_idle() {
    const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    // It waits for the next request only as long as it takes to answer the first.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::{Read, Write};
            // The connection that checks whether the server is there, and one for each request.
            for stream in listener.incoming().take(6) {
                let mut stream = stream.expect("a connection");
                if stream.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {
                    stream.write_all(PAGE).expect("the generator reads it");
                }
            }
        });
        let request = HttpRequest {
            name: "GET /".to_owned(),
            weight: 1.0,
            method: "GET".to_owned(),
            path: "/".to_owned(),
            headers: std::collections::BTreeMap::new(),
            body: None,
        };
        let work = HttpWork { requests: vec![request], ..HttpWork::default() };
        let mut plan = plan(address, "get");
        (plan.work, plan.requests, plan.connections) = (Work::Http(work), Some(5), 1);
        plan.pace = Pace::Closed { think_seconds: 0.05 };
        let recording = measure(&plan);
        assert_eq!((recording.successes(), recording.errors()), (5, 0), "{recording:?}");
        assert_eq!((recording.generator.connects, recording.generator.socket_errors), (5, 0));
        assert_eq!(recording.interrupted, None);
    });
}
