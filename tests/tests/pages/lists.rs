//! What is not run as it stands, and why.

/// What a page shows and no test runs: the page, how the command begins, and the reason.
pub(crate) const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "make test", "it runs these tests"),
    ("CONTRIBUTING.md", "make ", "builds and tests, which CI runs"),
    ("CONTRIBUTING.md", "cargo ", "builds and tests, which CI runs"),
    ("docs/tuning.md", "redis-cli --latency", "looks at a terminal"),
    ("examples/change-consumer/README.md", "examples/", "tests/tests/examples.rs runs it"),
    ("examples/departments/README.md", "examples/", "tests/tests/examples.rs runs it"),
    (
        "examples/departments-api-go/README.md",
        "",
        "needs MariaDB: tests/tests/examples.rs starts it",
    ),
    ("examples/go/README.md", "", "tests/tests/examples.rs runs it"),
    ("examples/javascript/README.md", "", "tests/tests/examples.rs runs it"),
    ("examples/job-queue/README.md", "examples/", "tests/tests/examples.rs runs it"),
    ("examples/leaderboard/README.md", "", "tests/tests/examples.rs runs it"),
    ("examples/python/README.md", "", "tests/tests/examples.rs runs it"),
    ("examples/rate-limiter/README.md", "examples/", "tests/tests/examples.rs runs it"),
    ("examples/read-api-go/README.md", "", "tests/tests/examples.rs runs it"),
    ("examples/repository-java/README.md", "", "tests/tests/examples.rs runs it"),
    ("examples/session-store/README.md", "", "tests/tests/examples.rs starts it"),
    (
        "examples/sidecar/README.md",
        "",
        "needs a hosted Redis; tests/tests/examples.rs runs the script",
    ),
    (
        "docs/backup.md",
        "",
        "needs other machines, S3 and systemd: tests/tests/backup runs the commands",
    ),
    ("docs/cli.md", "", "for a terminal: its tests press keys there"),
    ("docs/top.md", "", "for a terminal: its tests press keys there"),
    ("docs/kubernetes.md", "", "needs Kubernetes: tests/tests/kubernetes starts what they say"),
    ("docs/systemd.md", "systemctl ", "needs systemd: tests/tests/service does what it does"),
    ("docs/systemd.md", "journalctl ", "needs systemd"),
    ("docs/container.md", "podman ", "needs podman: tests/tests/packages starts the image"),
    ("docs/lab.md", "dunlin lab run ", "takes minutes: tests/tests/lab runs experiments"),
    ("docs/lab.md", "dunlin lab report ", "needs the results of a run"),
    ("docs/lab.md", "dunlin lab compare ", "needs the results of two runs"),
    ("docs/lab.md", "dunlin lab agent ", "needs a run that uses it"),
];

/// Parts of commands for which something else stands here: the page, the part, and its stand-in.
/// A page's durations and numbers are for a reader who measures.
pub(crate) const STAND_INS: &[(&str, &str, &str)] = &[
    ("README.md", "make run", "dunlin serve"),
    ("docs/start.md", "make run", "dunlin serve"),
    ("README.md", "/etc/redis/redis.conf", "redis.conf"),
    // A reader says yes at the terminal.
    ("docs/moving.md", "dunlin move --from", "dunlin move --yes --from"),
    ("docs/security.md", "/etc/ssl/certs/ca-certificates.crt", "tls/ca.crt"),
    ("docs/security.md", "$(head -c 32 /dev/urandom | base64)", PASSWORD),
    ("docs/bench.md", "-n 1000000", "-n 10000"),
    ("docs/bench.md", "-n 20000", "-n 200"),
    // On a busy machine a load with a rate may be INVALID, which is exit code 1.
    ("docs/bench.md", "dunlin bench --rate", "may_be_invalid dunlin bench --rate"),
    ("docs/bench.md", "dunlin bench --http", "may_be_invalid dunlin bench --http"),
    ("docs/bench.md", "dunlin bench --agents", "may_be_invalid dunlin bench --agents"),
    ("docs/bench.md", "--rate 20000 --duration 30", "--rate 200 --duration 1"),
    ("docs/bench.md", "--rate 100000 --duration 30", "--rate 200 --duration 1"),
    ("docs/bench.md", "--duration 1m", "--duration 1"),
    ("docs/bench.md", "http://127.0.0.1:8080/departments", "http://127.0.0.1:8379/healthz"),
    ("docs/bench.md", "--tls --cacert ca.crt --cert me.crt --key me.key", TLS),
];

const PASSWORD: &str = "of-the-page";
const TLS: &str = "-p 6380 --tls --cacert tls/ca.crt --cert tls/client.crt --key tls/client.key";

/// Prompts of other servers than the usual one: the page, the prompt, where the server is, and its
/// password.
const PROMPTS: &[(&str, &str, &str, u16, Option<&str>)] = &[
    ("docs/security.md", "", "127.0.0.1", 6379, Some(PASSWORD)),
    ("docs/moving.md", "old", "10.0.0.1", 6379, Some("secret")),
    ("docs/moving.md", "new", "10.0.0.2", 6379, None),
    ("docs/durability.md", "replica", "127.0.0.1", 6380, None),
];

/// Why a command of a page is not run, if it is not.
pub(crate) fn reason_not_to_run(page: &str, command: &str) -> Option<&'static str> {
    let fits =
        |(own, beginning, _): &&(&str, &str, &str)| *own == page && command.starts_with(beginning);
    NOT_RUN.iter().find(fits).map(|(.., reason)| *reason)
}

/// A command with the stand-ins of its page.
pub(crate) fn with_stand_ins(page: &str, command: &str) -> String {
    let own = STAND_INS.iter().filter(|(own, ..)| *own == page);
    own.fold(command.to_owned(), |command, (_, part, other)| command.replace(part, other))
}

/// The host, the port and the password of the server behind a prompt.
pub(crate) fn server_of_prompt(
    page: &str,
    prompt: &str,
) -> (&'static str, u16, Option<&'static str>) {
    let fits = |(own, name, ..): &&(&str, &str, _, _, _)| *own == page && *name == prompt;
    let found = PROMPTS.iter().find(fits);
    found.map_or(("127.0.0.1", 6379, None), |(.., host, port, password)| (*host, *port, *password))
}
