//! Which arguments are secrets that are not shown.

use resp::args::OwnedArguments;

use engine::observe::redaction::shown;

#[test]
fn passwords_are_not_shown() {
    for (line, expected) in [
        ("AUTH a", "AUTH (redacted)"),
        ("auth a b", "auth (redacted) (redacted)"),
        ("HELLO 3 AUTH u p SETNAME n", "HELLO 3 AUTH (redacted) (redacted) SETNAME n"),
        ("HELLO 3 SETNAME auth AUTH u p", "HELLO 3 SETNAME auth AUTH (redacted) (redacted)"),
        ("HELLO AUTH u p", "HELLO AUTH (redacted) (redacted)"),
        ("GET auth", "GET auth"),
        (
            "CONFIG SET tls-client-key-file-pass a tls-key-file b",
            "CONFIG SET tls-client-key-file-pass (redacted) tls-key-file b",
        ),
        (
            "CONFIG SET requirepass a maxmemory 1 MASTERAUTH b",
            "CONFIG SET requirepass (redacted) maxmemory 1 MASTERAUTH (redacted)",
        ),
    ] {
        let argv: OwnedArguments = line.split(' ').collect();
        let row = crate::registry().resolve(argv.view()).expect("the commands of the test exist");
        let words: Vec<_> = shown(row.command, argv.view()).collect();
        assert_eq!(words.join(&b' '), expected.as_bytes());
    }
}
