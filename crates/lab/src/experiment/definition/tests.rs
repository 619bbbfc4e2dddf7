use super::super::case::{Action, Case, Followed};
use super::*;
use crate::load::{Pace, Work};
use crate::targets::{Origin, Probe, Target};

/// The minimum that an experiment needs, with a place for more.
fn experiment(more: &str) -> String {
    format!(
        "name = \"small\"\ntitle = \"Small\"\nquestion = \"Is it?\"\n{more}\n\
         [[target]]\nname = \"there\"\naddress = \"127.0.0.1:7000\"\n\
         [[load]]\nname = \"get\"\nmix = \"get:1\"\nseconds = 1\n"
    )
}

/// A target that the lab starts, with more lines.
fn started(more: &str) -> String {
    let target = format!("command = [\"/bin/true\"]\n{more}");
    experiment("").replace("address = \"127.0.0.1:7000\"", &target)
}

fn definition(text: &str) -> Definition {
    Definition::new("small.toml", text, &Choice::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    let result = Definition::new("small.toml", text, &Choice::default());
    result.map(|_| ()).expect_err("it has a mistake").to_string()
}

fn first_case(definition: &Definition) -> Case {
    let context = RunContext {
        ports: (6400..6410).collect(),
        directory: PathBuf::from("/data"),
        repetition: 0,
    };
    let point = definition.points().remove(0);
    definition.case(0, &point, &context).expect("all cases were filled in before")
}

#[test]
fn the_least_is_enough() {
    let definition = definition(&experiment(""));
    assert_eq!(definition.points(), [Point::new()]);
    let case = first_case(&definition);
    assert_eq!(case.target.origin, Origin::Running { host: "127.0.0.1".to_owned(), port: 7000 });
    assert_eq!(case.target.probe, Probe::Ping);
    assert_eq!(case.loads[0].plan.connections, 50);
    assert_eq!(case.loads[0].plan.requests, None);
    assert!((case.seconds() - 1.0).abs() < 1e-9);
}

#[test]
fn a_matrix_is_swept_in_the_order_of_the_file() {
    let text = experiment("[matrix]\nzeta = [1, 2]\nalpha = [\"x\", \"y\", \"z\"]");
    let definition = definition(&text);
    let names: Vec<&str> = definition.matrix().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["zeta", "alpha"]);
    let points = definition.points();
    assert_eq!(points.len(), 6);
    let value = |point: usize, name: &str| points[point][name].as_str();
    assert_eq!((value(0, "zeta"), value(0, "alpha")), ("1", "x"));
    assert_eq!((value(1, "zeta"), value(1, "alpha")), ("1", "y"));
    assert_eq!((value(5, "zeta"), value(5, "alpha")), ("2", "z"));
}

#[test]
fn a_range_doubles_up_to_its_end() {
    let swept = |range: &str| {
        let definition = definition(&experiment(&format!("[matrix]\nthreads = \"{range}\"")));
        definition.matrix()[0].1.join(" ")
    };
    assert_eq!(swept("1..6"), "1 2 4 6");
    assert_eq!(swept("1..8"), "1 2 4 8");
    assert_eq!(swept("1..1"), "1");
    assert_eq!(swept("alone"), "alone");
    assert!(swept("1..{cores}").starts_with('1'));
    let message = error(&experiment("[matrix]\nthreads = \"8..1\""));
    assert!(
        message.starts_with("small.toml:5: threads in [matrix]: '8..1' is no range"),
        "{message}"
    );
}

const SIZES: &str = "repetitions = 2\n[values]\nseconds = 9\n[matrix]\nconnections = [1, 50, 500]\n\
    [quick.values]\nseconds = 1\n[quick.matrix]\nconnections = [50]\n[full]\nrepetitions = 5\n";

#[test]
fn a_size_and_then_the_command_line_replace_values() {
    let text = experiment(SIZES).replace("seconds = 1\n", "seconds = \"{seconds}\"\n");
    // The size's own line was replaced too; put it back.
    let text =
        text.replace("[quick.values]\nseconds = \"{seconds}\"", "[quick.values]\nseconds = 1");
    let quick = definition(&text);
    assert_eq!((quick.points().len(), quick.repetitions()), (1, 2));
    assert_eq!(first_case(&quick).loads[0].plan.seconds, Some(1.0));
    let full = Choice { full: true, ..Choice::default() };
    let full = Definition::new("small.toml", &text, &full).expect("it is right");
    assert_eq!((full.points().len(), full.repetitions()), (3, 5));
    assert_eq!(first_case(&full).loads[0].plan.seconds, Some(9.0));
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let chosen = Choice {
        repetitions: Some(1),
        set: vec![set("seconds", "0.5"), set("connections", "7, 8")],
        ..Choice::default()
    };
    let chosen = Definition::new("small.toml", &text, &chosen).expect("it is right");
    assert_eq!((chosen.points().len(), chosen.repetitions()), (2, 1));
    assert_eq!(chosen.matrix()[0].1, ["7", "8"]);
    assert_eq!(first_case(&chosen).loads[0].plan.seconds, Some(0.5));
    let unknown = Choice { set: vec![set("second", "1")], ..Choice::default() };
    let message = Definition::new("small.toml", &text, &unknown).expect_err("there is none");
    let message = message.to_string();
    assert!(message.ends_with("has no such value; did you mean 'seconds'?"), "{message}");
}

#[test]
fn mistakes_are_named_by_line_and_field() {
    let cases = [
        (experiment("colour = 1"), "small.toml:4: colour: there is no field 'colour' here"),
        (
            experiment("").replace("seconds = 1", "seconds = 1\nconections = 5"),
            "small.toml:12: conections in [[load]]: there is no field 'conections' here; did you mean \
             'connections'?",
        ),
        (
            experiment("").replace("seconds = 1", "seconds = \"long\""),
            "small.toml:11: seconds in [[load]]: 'long' is not a number",
        ),
        (
            experiment("").replace("seconds = 1", "seconds = -1"),
            "small.toml:11: seconds in [[load]]: -1 is not a number from 0 up",
        ),
        (
            experiment("").replace("seconds = 1", "seconds = [1]"),
            "small.toml:11: seconds in [[load]]: invalid type: sequence",
        ),
        (
            experiment("").replace("seconds = 1", "seconds = 1\nconnections = 0"),
            "small.toml:12: connections in [[load]]: it must be more than 0",
        ),
        (
            experiment("").replace("seconds = 1", "seconds = 1\nconnections = \"{conections}\""),
            "small.toml:12: connections in [[load]]: nothing is called {conections}",
        ),
        (
            experiment("").replace("seconds = 1", "keys = \"uniform:5\""),
            "small.toml:8: [[load]]: a load needs seconds or requests",
        ),
        (
            experiment("").replace("address = \"127.0.0.1:7000\"", "kind = \"redi\""),
            "small.toml:7: kind in [[target]]: there is no kind 'redi'; did you mean 'redis'?",
        ),
        (
            experiment("").replace("127.0.0.1:7000", "7000"),
            "small.toml:7: address in [[target]]: '7000' is no address",
        ),
        (
            experiment("[[event]]\nat = 1\ndo = \"BGSAVE\"\nrestart_after = 1"),
            "small.toml:7: restart_after in [[event]]: it means nothing to 'bgsave'",
        ),
        (
            experiment("[knee]\nlimit_ms = 5\nstart = 100\nseconds = 1\nfactor = 1")
                .replace("mix = \"get:1\"\nseconds = 1", "mix = \"get:1\""),
            "small.toml:8: factor in [knee]: it must be more than 1",
        ),
        (
            experiment("[knee]\nlimit_ms = 5\nstart = 100\nseconds = 1"),
            "small.toml:14: seconds in [[load]]: with a [knee]",
        ),
        (
            experiment("[check]\nseconds = 3\n[knee]\nlimit_ms = 5\nstart = 100\nseconds = 1")
                .replace("mix = \"get:1\"\nseconds = 1", "mix = \"get:1\""),
            "small.toml:5: seconds in [check]: with a [knee]",
        ),
        (
            experiment("").replace("seconds = 1", "seconds = 1\nprefill = true\nwarmup = 1"),
            "small.toml:13: warmup in [[load]]: a load that fills",
        ),
        (
            experiment("").replace("seconds = 1", "seconds = 1\nstart = 1e19"),
            "small.toml:12: start in [[load]]: 10000000000000000000 is more than",
        ),
        (
            experiment("[sample]\nevery = 1e20"),
            "small.toml:5: every in [sample]: 100000000000000000000 is more than",
        ),
        (
            experiment("").replace("seconds = 1", "seconds = 1\nthreads = 60"),
            "small.toml:8: [[load]]: a load needs at least one connection for each",
        ),
        (
            experiment("").replace("seconds = 1", "seconds = 1\ncpus = \"4000\""),
            "small.toml:12: cpus in [[load]]: ",
        ),
        (
            experiment("[values]\nport = 5"),
            "small.toml:5: port in [values]: {port} has a meaning already",
        ),
        (
            experiment("views = [\"p99\", \"memory\"]"),
            "small.toml:4: views: there is no view 'memory'",
        ),
        (
            experiment("columns = [\"throughput\", \"cpu\"]"),
            "small.toml:4: columns: there is no figure 'cpu'",
        ),
        (
            experiment("").replace("7000\"", "7000\"\nmemory = \"1gb\""),
            "small.toml:7: address in [[target]]: the lab has not started it",
        ),
        (
            started("cpus = 0.001"),
            "small.toml:8: cpus in [[target]]: '0.001' is neither a list of processors nor a share",
        ),
        (
            started("cpus = \"much of 0\""),
            "small.toml:8: cpus in [[target]]: 'much of 0' is neither",
        ),
        (
            started("memory = \"little\""),
            "small.toml:8: memory in [[target]]: 'little' is no size from 1mb up",
        ),
        (
            started("store = \"redis\"\n[[target.beside]]\nname = \"reddis\"\nkind = \"redis\""),
            "small.toml:8: store in [[target]]: no process beside it is 'redis'; did you mean 'reddis'?",
        ),
        (
            started("[[target.beside]]\nname = \"a/b\"\nkind = \"redis\""),
            "small.toml:9: name in [[target.beside]]: 'a/b' is also its directory",
        ),
        (
            started("[[target.beside]]\nname = \"a\"\nkind = \"redi\""),
            "small.toml:10: kind in [[target.beside]]: there is no kind 'redi'; did you mean 'redis'?",
        ),
        (
            started("[[target.beside]]\nname = \"a\"\naddress = \"127.0.0.1:1\""),
            "small.toml:8: [[target.beside]]: a process beside a target is started with it: it needs a kind or a command",
        ),
        (
            started("[[target.beside]]\nkind = \"redis\""),
            "small.toml:8: [[target.beside]]: a process beside a target needs a name",
        ),
        (
            started("files = { \"../a\" = \"\" }"),
            "small.toml:8: files in [[target]]: '../a' is no name of a file",
        ),
        (
            experiment("[values]\na = \"{b}\"\nb = \"{a}\""),
            "small.toml:5: a in [values]: nothing is called {b}",
        ),
        (experiment("x = ["), "small.toml:"),
    ];
    for (text, expected) in cases {
        let message = error(&text);
        assert!(message.starts_with(expected), "{message}\n  is not\n{expected}");
    }
}

#[test]
fn what_belongs_together_is_demanded() {
    let message = error("name = \"x\"\ntitle = \"X\"\nquestion = \"?\"\n");
    assert_eq!(message, "small.toml: there is no [[target]]");
    let message = error(&experiment("").replace("address =", "kind = \"redis\"\naddress ="));
    assert!(message.contains("exactly one of kind, kinds, command and address"), "{message}");
    let message = error(&experiment("").replace("mix =", "command = [\"PING\"]\nmix ="));
    assert!(message.contains("exactly one of mix, command and http"), "{message}");
    let message = error(&format!("{}think_ms = 1\nrate = 10\n", experiment("")));
    assert!(message.contains("think_ms in [[load]]: with a rate"), "{message}");
    let (head, _) = experiment("[check]")
        .split_once("[[load]]")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("it has a load");
    assert!(error(&head).contains("[check] needs seconds"));
}

#[test]
fn kinds_become_targets_and_can_be_chosen() {
    let text = experiment("").replace(
        "name = \"there\"\naddress = \"127.0.0.1:7000\"",
        "kinds = [\"dunlin\", \"redis\", \"valkey\"]\nthreads = 2\noptions = { maxmemory = \"{size}mb\" }",
    );
    let text = text.replace("[[target]]", "[values]\nsize = 10\n[[target]]");
    let all = definition(&text);
    assert_eq!(all.targets().collect::<Vec<_>>(), ["dunlin", "redis-server", "valkey-server"]);
    let Origin::Command { arguments, .. } = first_case(&all).target.origin else {
        panic!("this program is there")
    };
    let words = arguments.join(" ");
    assert!(words.contains("--dir /data --port 6400"), "{words}");
    assert!(words.ends_with("--maxmemory 10mb --threads 2"), "{words}");
    let choice = |name: &str| Choice { targets: vec![name.to_owned()], ..Choice::default() };
    let one = Definition::new("small.toml", &text, &choice("redis")).expect("it is there");
    assert_eq!(one.targets().collect::<Vec<_>>(), ["redis-server"]);
    let none = Definition::new("small.toml", &text, &choice("memcached"));
    let message = none.expect_err("there is none").to_string();
    assert!(message.contains("there is no target 'memcached'"), "{message}");
}

#[test]
fn connections_are_encrypted_as_the_file_says_or_else_the_command_line() {
    let own = |text: &str, words: Option<Encryption>| {
        let choice = Choice { encryption: words, ..Choice::default() };
        Definition::new("small.toml", text, &choice).map(|own| first_case(&own).target)
    };
    let of_file = |text: &str| own(text, None).expect("it is right");
    let words = || Some(Encryption { insecure: true, ..Encryption::default() });
    // A running server.
    let running = experiment("");
    let with = |line: &str| running.replace("7000\"", &format!("7000\"\n{line}"));
    assert_eq!(of_file(&running).encryption, None);
    assert_eq!(own(&running, words()).expect("it is right").encryption, words());
    assert_eq!(own(&with("tls = false"), words()).expect("it is right").encryption, None);
    let secure = of_file(&running.replace("127.0.0.1", "rediss://127.0.0.1"));
    assert_eq!(secure.encryption, Some(Encryption::default()));
    assert_eq!(secure.origin, Origin::Running { host: "127.0.0.1".to_owned(), port: 7000 });
    let table = of_file(&with("tls = { cacert = \"ca.pem\", insecure = true }"));
    let authority = Some("ca.pem".to_owned());
    let wanted = Encryption { authority, insecure: true, ..Encryption::default() };
    assert_eq!((table.encryption, table.certificates), (Some(wanted), None));
    // One that the lab starts.
    let dunlin = experiment("").replace("address = \"127.0.0.1:7000\"", "kind = \"dunlin\"");
    for target in [
        own(&dunlin, words()).expect("it is right"),
        of_file(&dunlin.replace("kind = ", "tls = true\nkind = ")),
    ] {
        let encryption = target.encryption.expect("it is encrypted");
        assert_eq!(encryption.authority.as_deref(), Some("/data/tls/ca.crt"));
        assert!(!encryption.insecure, "its certificate is known");
        assert_eq!(target.certificates, Some("/data/tls".into()));
        let Origin::Command { arguments, .. } = target.origin else { panic!("it is this program") };
        let line = arguments.join(" ");
        assert!(line.contains("--port 0") && line.contains("--tls-port 6400"), "{line}");
        assert!(line.contains("--tls-key-file /data/tls/server.key"), "{line}");
    }
    let limit = own(&dunlin.replace("dunlin", "limit"), words()).expect("it is right");
    assert_eq!(limit.origin, Origin::Missing("the lab does not start limit with TLS".to_owned()));
    // A command says for itself.
    let mistake = own(&started(""), words()).expect_err("it does not").to_string();
    assert!(mistake.contains("tls = true or false"), "{mistake}");
    assert_eq!(own(&started("tls = false"), words()).expect("it does").encryption, None);
    let made = own(&started("tls = true\nfiles = { a = \"{tls_directory}\" }"), None);
    let made = made.expect("it does");
    assert_eq!((&*made.files["a"], made.certificates), ("/data/tls", Some("/data/tls".into())));
    for wrong in ["tls = \"perhaps\"", "tls = { nothing = 1 }"] {
        assert!(own(&with(wrong), None).is_err(), "{wrong}");
    }
    let mistake = dunlin.replace("kind = ", "tls = { insecure = true }\nkind = ");
    assert!(own(&mistake, None).is_err());
}

#[test]
fn processes_beside_a_target_have_their_own_ports_and_directories() {
    let text = started(
        "store = \"data\"\nfiles = { \"a.txt\" = \"{data.port} {http_port}\" }\n\
         [[target.beside]]\nname = \"gone\"\non = false\nkind = \"redis\"\n\
         [[target.beside]]\nname = \"data\"\nkind = \"limit\"\nthreads = 1\ncpus = \"0\"\n\
         environment = { OWN = \"{directory} of {port}\" }",
    );
    let case = first_case(&definition(&text));
    assert!(case.is_measured);
    assert_eq!((case.target.port, case.target.http_port), (6400, None));
    assert_eq!(case.target.files["a.txt"], "6403 6401");
    let [data] = &case.target.beside[..] else { panic!("{:?}", case.target.beside) };
    assert_eq!((case.target.store, data.port), (Some(0), 6403));
    assert_eq!(data.environment["OWN"], "/data/data of 6403");
    let Origin::Command { arguments, .. } = &data.origin else { panic!("it is this program") };
    assert!(arguments.join(" ").contains("--port 6403"), "{arguments:?}");
    // A server that is not installed is missing with all that belongs to it.
    let missing =
        text.replace("kind = \"limit\"\nthreads = 1", "command = [\"nobody-wrote-this\"]");
    let case = first_case(&definition(&missing));
    let Origin::Missing(reason) = case.target.origin else { panic!("{:?}", case.target.origin) };
    assert_eq!(reason, "nobody-wrote-this is not installed on this machine");
}

#[test]
fn a_load_goes_to_the_process_that_it_names_where_there_is_one() {
    let text = started(
        "[[target.beside]]\nname = \"one\"\nkind = \"limit\"\n\
         [[target.beside]]\nname = \"two\"\nkind = \"dunlin\"\nprobe = \"replica\"",
    );
    let to = |name: &str| text.replace("[[load]]", &format!("[[load]]\nto = \"{name}\""));
    let case = first_case(&definition(&to("two")));
    assert_eq!(case.loads[0].to, Some(1));
    let [one, two] = &case.target.beside[..] else { panic!("{:?}", case.target.beside) };
    // A replica of a kind that has another port for HTTP is given one of its own.
    assert_eq!((one.http_port, two.http_port), (None, Some(6405)));
    assert_eq!(first_case(&definition(&text)).loads[0].to, None);
    let gone = to("two").replace("name = \"two\"", "name = \"two\"\non = false");
    assert_eq!(first_case(&definition(&gone)).loads[0].to, None);
    let unknown = Definition::new("small.toml", &to("twoo"), &Choice::default());
    let message = unknown.expect_err("nothing is called that").to_string();
    assert!(message.contains("'twoo'; did you mean 'two'?"), "{message}");
}

#[test]
fn a_replica_attaches_where_there_is_one() {
    let text = started("[[target.beside]]\nname = \"copy\"\nkind = \"limit\"");
    let with = |more: &str| format!("{text}\n[[event]]\nat = 1\n{more}\n");
    let attach = with("do = \"attach\"\nreplica = \"copy\"");
    let case = first_case(&definition(&attach));
    let expected = Action::Attach { replica: 0, name: "copy".to_owned() };
    assert_eq!(case.events[0].action, expected);
    let gone = attach.replace("name = \"copy\"", "name = \"copy\"\non = false");
    assert_eq!(first_case(&definition(&gone)).events, []);
    for (wrong, message) in [
        ("do = \"attach\"", "which replica attaches?"),
        ("do = \"attach\"\nreplica = \"copi\"", "did you mean 'copy'?"),
        ("do = \"kill\"\nreplica = \"copy\"", "it means nothing to 'kill'"),
    ] {
        assert!(error(&with(wrong)).contains(message), "{}", error(&with(wrong)));
    }
}

#[test]
fn samples_are_of_all_processes_or_of_the_store() {
    let with = |of: &str| started("") + &format!("[sample]\nof = \"{of}\"\n");
    assert!(!first_case(&definition(&with("all"))).sampling.is_of_store);
    assert!(first_case(&definition(&with("store"))).sampling.is_of_store);
    assert!(error(&with("some")).contains("'some' is neither all nor store"));
}

#[test]
fn a_server_with_another_port_for_http_is_given_one() {
    let with = |more: &str| {
        let text = experiment("");
        let kind = format!("kind = \"dunlin\"\n{more}");
        first_case(&definition(&text.replace("address = \"127.0.0.1:7000\"", &kind))).target
    };
    let words = |target: &Target| match &target.origin {
        Origin::Command { arguments, .. } => arguments.join(" "),
        other => panic!("{other:?}"),
    };
    let spoken_to = with("probe = \"http\"");
    assert_eq!((spoken_to.port, spoken_to.http_port), (6400, Some(6401)));
    assert!(words(&spoken_to).contains("--http-port 6401"), "{}", words(&spoken_to));
    let own = with("probe = \"http\"\noptions = { http-port = 7777 }");
    assert_eq!(own.http_port, Some(7777));
    let silent = with("");
    assert_eq!(silent.http_port, None);
    assert!(words(&silent).contains("--http-port 0"), "{}", words(&silent));
}

#[test]
fn a_share_of_the_machine_is_no_list_of_processors() {
    let limited = |more: &str| {
        let target = first_case(&definition(&started(more))).target;
        (target.cpus.len(), target.limits.cpus, target.limits.memory)
    };
    assert_eq!(limited("cpus = 0.1\nmemory = \"256mb\""), (0, Some(0.1), Some(256 << 20)));
    assert_eq!(limited("cpus = 1.0"), (0, Some(1.0), None));
    assert_eq!(limited("cpus = 0"), (1, None, None));
    assert_eq!(limited("cpus = \"0.25 of 0\""), (1, Some(0.25), None));
    assert_eq!(limited(""), (0, None, None));
}

#[test]
fn a_target_is_measured_where_it_is_on() {
    let text = started("on = \"{with}\"");
    let values = "[values]\nwith = { by = \"mode\", b = false, else = true }\n\
                  mode = { by = \"fsync\", none = \"a\", else = \"b\" }\n\
                  [matrix]\nfsync = [\"none\", \"always\"]\n";
    let definition = definition(&text.replace("[[target]]", &format!("{values}[[target]]")));
    let context = RunContext { ports: Vec::new(), directory: PathBuf::new(), repetition: 0 };
    let measured: Vec<bool> = definition
        .points()
        .iter()
        .map(|point| definition.is_measured(0, point, &context))
        .collect();
    assert_eq!(measured, [true, false]);
}

#[test]
fn events_are_in_the_order_of_time() {
    let text = experiment(
        "[[event]]\nat = 5\ndo = \"kill\"\nrestart_after = 0.5\n\
         [[event]]\nat = 1\ndo = \"CONFIG SET save '900 1'\"\n\
         [[event]]\nat = 3\ndo = \"Hot-key burst\"\nrate = 1000\nseconds = 2\n",
    );
    let case = first_case(&definition(&text));
    let actions: Vec<&Action> = case.events.iter().map(|event| &event.action).collect();
    let words = ["CONFIG", "SET", "save", "900 1"].map(str::to_owned).to_vec();
    assert_eq!(actions[0], &Action::Command(words));
    let Action::HotKeyBurst(load) = actions[1] else { panic!("{:?}", actions[1]) };
    assert!(matches!(load.plan.pace, Pace::Open { rate, .. } if rate == 1000.0));
    assert_eq!(load.plan.seconds, Some(2.0));
    assert_eq!(actions[2], &Action::Kill { restart_after: Some(0.5) });
    // After a kill of the server the load should come back.
    assert!(case.loads[0].plan.reconnect);
}

#[test]
fn http_requests_are_filled_in() {
    let text = experiment("").replace(
        "mix = \"get:1\"",
        "http = [{ path = \"/departments?rows={rows}\" }, { method = \"POST\", path = \"/d\", weight = 2, body = \"__data__\" }]",
    );
    let text = text.replace("[[target]]", "[matrix]\nrows = [10, 1000]\n[[target]]");
    let case = first_case(&definition(&text));
    let Work::Http(work) = &case.loads[0].plan.work else { panic!("it is HTTP") };
    assert_eq!(work.requests[0].path, "/departments?rows=10");
    assert_eq!(work.requests[0].name, "GET /departments?rows=10");
    assert_eq!(work.requests[1].weight, 2.0);
    assert_eq!(work.requests[1].body.as_deref(), Some("__data__"));
}

#[test]
fn a_value_depends_on_a_swept_parameter() {
    let values = "[values]\nlast = { by = \"fsync\", none = 1, else = 2 }\n\
                  with = { by = \"fsync\", none = false, else = true }\n\
                  [matrix]\nfsync = [\"none\", \"always\"]";
    let text = experiment(values).replace("seconds = 1", "seconds = \"{last}\"");
    let text =
        format!("{text}[[load]]\nname = \"set\"\nmix = \"set\"\nseconds = 1\non = \"{{with}}\"\n");
    let definition = definition(&text);
    let context = RunContext { ports: vec![1; 9], directory: PathBuf::new(), repetition: 0 };
    let cases: Vec<Case> = definition
        .points()
        .iter()
        .map(|point| definition.case(0, point, &context).expect("it is right"))
        .collect();
    assert_eq!((cases[0].loads.len(), cases[0].loads[0].plan.seconds), (1, Some(1.0)));
    assert_eq!((cases[1].loads.len(), cases[1].loads[0].plan.seconds), (2, Some(2.0)));
    let message = error(&text.replace(", else = 2", ""));
    assert!(
        message.contains("last in [values]: it says nothing for fsync = \"always\""),
        "{message}"
    );
    let message = error(&text.replace("by = \"fsync\", none = 1", "none = 1"));
    assert!(message.contains("says by which parameter"), "{message}");
}

/// A replica whose primary stands beside it, with more lines.
fn replicated(more: &str) -> String {
    format!(
        "name = \"small\"\ntitle = \"Small\"\nquestion = \"Is it?\"\n\
         [[target]]\nname = \"new\"\ncommand = [\"/bin/true\", \"{{primary.link_port}}\"]\n\
         store = \"primary\"\n\
         [[target.beside]]\nname = \"primary\"\ncommand = [\"/bin/true\"]\nlink = true\n\
         [[target.beside]]\nname = \"other\"\ncommand = [\"/bin/true\"]\n{more}"
    )
}

#[test]
fn clients_of_the_checker_follow_sentinels_or_go_on_at_the_next_server() {
    let check = |more: &str| {
        let text = replicated(&format!("[check]\nseconds = 1\n{more}"));
        first_case(&definition(&text)).check.expect("it is on")
    };
    assert_eq!(check("").followed, Followed::Store);
    let rule = check(
        "sentinels = [\"other\", \"{target}\"]\ntimeout = 0.5\n\
         greeting = \"CLIENT DURABILITY REPLICAS 1\"\nconfirmation = \"\"",
    );
    assert_eq!(rule.followed, Followed::Sentinels(vec![1, 2]));
    assert_eq!((rule.timeout, rule.greeting.len(), rule.confirmation.len()), (0.5, 4, 0));
    let rule = check("servers = [\"primary\", \"new\"]\nconfirmation = \"WAIT 1 100\"");
    assert_eq!(rule.followed, Followed::Servers(vec![0, 2]));
    assert_eq!(rule.confirmation, ["WAIT", "1", "100"]);
    let wrong = |more: &str| error(&replicated(&format!("[check]\nseconds = 1\n{more}")));
    let message = wrong("servers = [\"primry\"]");
    assert!(message.contains("no process of the target is 'primry'"), "{message}");
    assert!(message.contains("did you mean 'primary'"), "{message}");
    let message = wrong("servers = [\"new\"]\nsentinels = [\"new\"]");
    assert!(message.contains("either Sentinels or the servers"), "{message}");
    assert!(wrong("timeout = 0").contains("more than 0"));
    assert!(wrong("greeting = \"'\"").contains("a quote is not closed"));
}

#[test]
fn a_link_has_a_port_of_its_own_and_can_be_cut() {
    let text = replicated("[check]\nseconds = 1\n[[event]]\nat = 1\ndo = \"cut\"\nseconds = 2");
    let case = first_case(&definition(&text));
    let primary = &case.target.beside[0];
    let link = primary.link_port.expect("it has one");
    assert!(link != primary.port && case.target.beside[1].link_port.is_none());
    let Origin::Command { arguments, .. } = &case.target.origin else { panic!("it is started") };
    assert_eq!(*arguments, [link.to_string()]);
    assert_eq!(case.events[0].action, Action::Cut { seconds: Some(2.0) });
    let message = error(&text.replace("link = true\n", ""));
    assert!(message.contains("can be cut only with link = true"), "{message}");
}

#[test]
fn data_moves_from_the_store_to_the_target_itself() {
    let text = replicated("[check]\nseconds = 1\n[[event]]\nat = 1\ndo = \"move\"");
    assert_eq!(first_case(&definition(&text)).events[0].action, Action::Move);
    let message =
        error(&experiment("").replace("[[load]]", "[[event]]\nat = 1\ndo = \"move\"\n[[load]]"));
    assert!(message.contains("from a process beside the target"), "{message}");
}

#[test]
fn the_lag_is_that_of_a_replica() {
    let text = replicated("[check]\nseconds = 1\n[lag]\nevery_ms = 4");
    let lag = first_case(&definition(&text)).lag.expect("it is measured");
    assert_eq!((lag.replica, lag.every.as_millis()), (2, 4));
    let other = text.replace("every_ms = 4", "replica = \"other\"");
    assert_eq!(first_case(&definition(&other)).lag.map(|lag| lag.replica), Some(1));
    let message = error(&text.replace("every_ms = 4", "replica = \"primary\""));
    assert!(message.contains("the store is the primary"), "{message}");
    assert!(error(&experiment("[lag]")).contains("the store is the primary"));
}
