//! Rules of users: whatever they are, a user is what its line says.

use config::Config;
use engine::users::account::join_selectors;
use engine::users::verdict::{CheckedCommand, Lack};
use engine::users::{Account, Users};
use resp::args::OwnedArguments;

const NAME: &[u8] = b"u";

/// Commands that tell rights apart.
const COMMANDS: [&str; 14] = [
    "GET a",
    "GET b)",
    "SET a v",
    "SET b\" v GET",
    "MSET a 1 k 2",
    "COPY a k DB 1",
    "SELECT 1",
    "FLUSHALL",
    "CONFIG GET x",
    "CONFIG SET x y",
    "PUBLISH a m",
    "SUBSCRIBE k",
    "PSUBSCRIBE a*",
    "EVAL x 1 a",
];

fn users() -> Users {
    let users = Users::new(commands::registry().catalog(), b"");
    let rules = [b"~r*".to_vec(), b"(+set ~a)".to_vec()];
    assert!(users.set_role(b"r", &rules).is_ok());
    users
}

fn user(users: &Users) -> Option<std::sync::Arc<Account>> {
    users.find(NAME)
}

/// Which of the commands the user may run, in the first two databases.
fn verdicts(account: &Account) -> Vec<Result<(), Lack>> {
    let ask = |text: &&str, database| {
        let words: OwnedArguments = text.split(' ').collect();
        let argv = words.view();
        let row = commands::registry().resolve(argv).expect("they are there");
        account.check(CheckedCommand { id: row.id, spec: &row.command.spec, argv, database })
    };
    COMMANDS.iter().flat_map(|text| [ask(text, 0), ask(text, 1)]).collect()
}

fn shown(account: &Account) -> String {
    account.line().escape_ascii().to_string()
}

/// Applies rules, one in each line of the input, to a user: those that are refused change nothing.
/// The user is the same again after ACL SETUSER with the words of its line, in a file of users, and
/// in a file of the configuration.
pub(crate) fn check(input: &[u8]) {
    let words: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let Ok(rules) = join_selectors(&words) else { return };
    let first = users();
    for rule in rules {
        let before = user(&first).map(|own| shown(&own));
        if first.set(NAME, std::slice::from_ref(&rule), false).is_err() {
            let after = user(&first).map(|own| shown(&own));
            assert_eq!(before, after, "{} is refused", rule.escape_ascii());
        }
    }
    let Some(own) = user(&first) else { return };
    let line = own.line();
    let is_same = |again: &Users, way: &str| {
        let again = user(again).expect("it is there");
        assert_eq!(shown(&again), shown(&own), "{way}");
        assert_eq!(verdicts(&again), verdicts(&own), "{way}: {}", shown(&own));
    };

    let by_command = users();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').skip(2).collect();
    let rules = join_selectors(&words).expect("each selector has an end");
    assert!(by_command.set(NAME, &rules, false).is_ok(), "SETUSER with {}", shown(&own));
    is_same(&by_command, "SETUSER");

    let by_file = users();
    assert!(by_file.load(b"file", &first.text(), false).is_ok(), "a file with {}", shown(&own));
    is_same(&by_file, "a file of users");

    let by_configuration = users();
    let lines = first.config_lines(&Config::default());
    let words = lines
        .iter()
        .map(|line| config::split_words(line).expect("its quotation marks are in pairs"));
    let configured = by_configuration.configure(&words.collect::<Vec<_>>(), false);
    assert!(configured.is_ok(), "{configured:?} for {}", shown(&own));
    is_same(&by_configuration, "a file of the configuration");
}
