//! The loads that a command line asks for, as plans, one after the other.

use std::io::Read;

use super::options::Options;
use crate::load::{
    HttpRequest, HttpWork, Keys, Opens, Operation, Pace, Plan, RespWork, Schedule, Size, TESTS,
    Work,
};

/// Requests of a load that nothing else bounds.
const REQUESTS: u64 = 100_000;

/// A load of its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measurement {
    /// Its name in tables.
    pub(super) title: String,
    /// The payload that the report names, in bytes.
    pub(super) payload: usize,
    pub(super) plan: Plan,
}

/// All requested loads.
///
/// # Errors
/// What is wrong, for the user.
pub(super) fn plans(options: &Options) -> Result<Vec<Measurement>, String> {
    let base = base(options);
    if !options.urls.is_empty() {
        return http(options, base).map(|one| vec![one]);
    }
    let keys = keys(options);
    let has_random_keys = keys != Keys::Literal;
    let mut loads: Vec<Chosen> = Vec::new();
    let chosen = |title, size, operations| Chosen { title, size, operations, opens: None };
    if !options.command.is_empty() {
        let command = command(options)?;
        let size = resp_length(&command.arguments);
        loads.push(chosen(command.name.clone(), Some(size), vec![command]));
    } else if let Some((text, mix)) = &options.mix {
        loads.push(chosen(format!("MIX {text}"), None, mix.0.clone()));
    } else {
        let wants = |name| options.tests.iter().any(|test| test.name == name);
        let wants_all = options.tests.is_empty();
        let all = TESTS.iter().filter(|test| wants_all && test.opens.is_none() || wants(test.name));
        for test in all {
            let operations = vec![test.operation(has_random_keys)];
            loads.push(Chosen {
                opens: test.opens,
                ..chosen(test.title.to_owned(), None, operations)
            });
        }
    }
    let sizes = sizes(options);
    let payload = sizes.iter().map(|size| size.bytes).max().unwrap_or(0);
    let mut measurements = Vec::new();
    for Chosen { title, size, mut operations, opens } in loads {
        if let Some(seconds) = options.ttl {
            add_ttl(&mut operations, seconds);
        }
        let work = Work::Resp(RespWork {
            operations,
            keys,
            sizes: sizes.clone(),
            protocol: options.protocol,
            keep_alive: options.keep_alive && opens.is_none(),
            tracking: options.tracking,
        });
        let mut plan = Plan { work, ..base.clone() };
        if let Some(opens) = opens {
            let encryption = plan.address.encryption.as_mut();
            encryption.ok_or("this test is of TLS: use --tls")?.in_full = opens == Opens::InFull;
        }
        measurements.push(Measurement { title, payload: size.unwrap_or(payload), plan });
    }
    if options.ttl.is_some() && !measurements.iter().any(has_ttl) {
        return Err("--ttl needs an operation that is a plain SET".to_owned());
    }
    Ok(measurements)
}

/// A load as the command line names it.
struct Chosen {
    title: String,
    /// The length of its command, if that is given.
    size: Option<usize>,
    operations: Vec<Operation>,
    opens: Option<Opens>,
}

/// The common part of all loads.
fn base(options: &Options) -> Plan {
    let pace = match options.rate {
        Some(rate) => Pace::Open { rate, schedule: options.schedule.unwrap_or(Schedule::Poisson) },
        None => Pace::Closed { think_seconds: options.think.unwrap_or(0.0) },
    };
    let is_unbounded = options.requests.is_none() && options.seconds.is_some();
    Plan {
        address: options.address.clone(),
        connections: options.clients,
        // A thread without a connection would have nothing to do.
        threads: options.threads.unwrap_or(1).min(options.clients),
        pipeline: options.pipeline,
        pace,
        requests: (!is_unbounded).then(|| options.requests.unwrap_or(REQUESTS)),
        seconds: options.seconds,
        warmup_seconds: options.warmup,
        work: Work::Resp(RespWork::default()),
        phase: 0.0,
        seed: options.seed,
        reconnect: options.reconnect,
        cluster: options.cluster,
        members: Vec::new(),
    }
}

fn keys(options: &Options) -> Keys {
    match (options.keys, options.random) {
        (Some(keys), _) => keys,
        (None, Some(count)) => Keys::Uniform { count },
        (None, None) => Keys::Literal,
    }
}

fn sizes(options: &Options) -> Vec<Size> {
    match &options.sizes {
        Some(sizes) => sizes.0.clone(),
        None => vec![Size { bytes: options.data.unwrap_or(3), weight: 1.0 }],
    }
}

/// The command at the end of the line, completed from the standard input if that is asked for.
fn command(options: &Options) -> Result<Operation, String> {
    let mut arguments = options.command.clone();
    if options.last_from_input {
        let mut last = Vec::new();
        let read = std::io::stdin().read_to_end(&mut last);
        read.map_err(|error| format!("-x: standard input: {error}"))?;
        let last = String::from_utf8(last);
        arguments.push(last.map_err(|_| "-x: the input is not UTF-8, which is not supported")?);
    }
    Ok(Operation { name: options.command.join(" "), weight: 1.0, arguments })
}

/// The length of a command on the wire.
fn resp_length(words: &[String]) -> usize {
    let mut bytes = Vec::new();
    resp::client::encode_command(words.iter(), &mut bytes);
    bytes.len()
}

/// Makes keys written by plain SETs expire.
fn add_ttl(operations: &mut [Operation], seconds: f64) {
    for operation in operations.iter_mut().filter(|operation| is_plain_set(operation)) {
        let milliseconds = (seconds * 1000.0).round().max(1.0);
        operation.arguments.extend(["PX".to_owned(), format!("{milliseconds:.0}")]);
    }
}

fn is_plain_set(operation: &Operation) -> bool {
    matches!(&operation.arguments[..], [name, _, _] if name.eq_ignore_ascii_case("set"))
}

fn has_ttl(measurement: &Measurement) -> bool {
    let Work::Resp(work) = &measurement.plan.work else { return false };
    work.operations.iter().any(|operation| operation.arguments.iter().any(|word| word == "PX"))
}

/// The load on an HTTP server: all pages equally often.
fn http(options: &Options, base: Plan) -> Result<Measurement, String> {
    let [first, ..] = &options.urls[..] else { return Err("no URL".to_owned()) };
    if options.urls.iter().any(|url| {
        (&url.host, url.port, url.encrypted) != (&first.host, first.port, first.encrypted)
    }) {
        return Err("--http: all URLs are of one server: the same host and port".to_owned());
    }
    let usual = if options.body.is_some() { "POST" } else { "GET" };
    let method = options.method.as_deref().unwrap_or(usual);
    let requests: Vec<HttpRequest> = options
        .urls
        .iter()
        .map(|url| HttpRequest {
            name: format!("{method} {}", url.path),
            weight: 1.0,
            method: method.to_owned(),
            path: url.path.clone(),
            headers: options.headers.clone(),
            body: options.body.clone(),
        })
        .collect();
    let title = match &requests[..] {
        [only] => only.name.clone(),
        several => format!("HTTP {} of {} pages", method, several.len()),
    };
    let sizes = sizes(options);
    let payload = options.body.as_ref().map_or(0, |body| {
        let data = sizes.iter().map(|size| size.bytes).max().unwrap_or(0);
        body.replace("__data__", &"x".repeat(data)).len()
    });
    let keep_alive = options.keep_alive;
    let work = Work::Http(HttpWork { requests, keys: keys(options), sizes, keep_alive });
    let mut plan = Plan { work, ..base };
    plan.address.host.clone_from(&first.host);
    plan.address.port = first.port;
    Ok(Measurement { title, payload, plan })
}

#[cfg(test)]
mod tests {
    use super::super::options::{Invocation, parse};
    use super::*;

    fn planned(line: &str) -> Result<Vec<Measurement>, String> {
        let words: Vec<String> =
            line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        match parse(&words)? {
            Invocation::Bench(options) => plans(&options),
            other => Err(format!("{other:?}")),
        }
    }

    fn titles(line: &str) -> Vec<String> {
        planned(line).unwrap().into_iter().map(|one| one.title).collect()
    }

    fn commands(measurement: &Measurement) -> Vec<String> {
        let Work::Resp(work) = &measurement.plan.work else { return Vec::new() };
        work.operations.iter().map(|operation| operation.arguments.join(" ")).collect()
    }

    #[test]
    fn tests_run_in_their_own_order_once_each() {
        let usual = TESTS.iter().filter(|test| test.opens.is_none());
        assert_eq!(titles("").len(), usual.count());
        assert_eq!(titles("-t get,set,get"), ["SET", "GET"]);
        assert!(planned("-t nothing").is_err());
        assert_eq!(titles("-t lrange_100,lrange_300").len(), 3);
    }

    #[test]
    fn connections_are_measured_over_tls() {
        assert!(planned("-t tls_connect").is_err(), "nothing is encrypted");
        let plans = planned("--tls --insecure -t tls_connect,tls_resume").unwrap();
        let in_full = plans.iter().map(|own| {
            let Work::Resp(work) = &own.plan.work else { panic!("RESP") };
            assert!(!work.keep_alive, "each request opens a connection");
            own.plan.address.encryption.as_ref().map(|own| (own.insecure, own.in_full))
        });
        assert_eq!(in_full.collect::<Vec<_>>(), [Some((true, true)), Some((true, false))]);
    }

    #[test]
    fn without_random_keys_placeholders_stay() {
        let plans = planned("-t set").unwrap();
        let Work::Resp(work) = &plans[0].plan.work else { panic!("RESP") };
        assert_eq!(work.keys, Keys::Literal);
        assert_eq!(plans[0].plan.requests, Some(100_000));
        for none in ["-t zadd -r 0", "-t zadd -r -3"] {
            let plans = planned(none).unwrap();
            let Work::Resp(work) = &plans[0].plan.work else { panic!("RESP") };
            assert_eq!(work.keys, Keys::Uniform { count: 1 }, "the key is key:000000000000");
            assert_eq!(commands(&plans[0]), ["ZADD myzset __rand_int__ element:__rand_int__"]);
        }
        let plans = planned("-t set -r 10 --duration 5").unwrap();
        let Work::Resp(work) = &plans[0].plan.work else { panic!("RESP") };
        assert_eq!(work.keys, Keys::Uniform { count: 10 });
        assert_eq!((plans[0].plan.requests, plans[0].plan.seconds), (None, Some(5.0)));
    }

    #[test]
    fn a_command_is_measured_instead_of_the_tests() {
        let plans = planned("-t set ping hello").unwrap();
        assert_eq!(plans.len(), 1);
        assert_eq!((&plans[0].title[..], plans[0].payload), ("ping hello", 25));
    }

    #[test]
    fn plain_sets_expire_if_asked_for() {
        let plans = planned("--ttl 1.5s --mix set:1,get:1").unwrap();
        assert_eq!(commands(&plans[0])[0], "SET key:__rand_int__ __data__ PX 1500");
        assert_eq!(commands(&plans[0])[1], "GET key:__rand_int__");
        assert!(planned("--ttl 5 -t get").is_err());
    }

    #[test]
    fn pages_of_one_server_are_one_load() {
        let plans = planned("--http http://h:1/a http://h:1/b --body v=__data__ -d 10").unwrap();
        let Work::Http(work) = &plans[0].plan.work else { panic!("HTTP") };
        assert_eq!(work.requests[1].name, "POST /b");
        assert_eq!((plans[0].plan.address.port, plans[0].payload), (1, 12));
        assert!(planned("--http http://h:1/a http://i:1/b").is_err());
    }
}
