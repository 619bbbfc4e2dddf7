//! Tests of the table as a whole: what the flags and fields of rows mean together.

use resp::args::OwnedArguments;

use super::registry;
use engine::command::{
    Argument, BLOCKING, ChangeForm, Countdown, FLAG_NAMES, FOLLOWS, Flags, GOES_SHORT, IN_STREAM,
    INTERNAL, LOADING, MAY_REPLICATE, NEEDS_MODULES, NEVER_QUEUED, NO_AUTH, NOSCRIPT, NOT_KEY,
    OF_CONNECTION, PROTECTED, READONLY, RUNS_QUEUED, SCRIPT, SELECTS, SET_ASIDE, SKIP_MONITOR,
    STALE, STOPS_THE_WORLD, VARIABLE_FLAGS, WAKES_ON_REMOVAL, WHILE_SUBSCRIBED, WHOLE_KEYSPACE,
    WRITE,
};
use engine::engine::Row;
use engine::script::emptying;

/// Checks that all rows of which one thing is true obey a rule.
fn all(are: impl Fn(&Row) -> bool, rule: impl Fn(&Row) -> bool) {
    let those: Vec<_> = registry().rows().iter().filter(|row| are(row)).collect();
    assert!(!those.is_empty(), "the rule is about some rows");
    let names = those.iter().filter(|row| !rule(row)).map(|row| row.command.full_name());
    assert_eq!(names.collect::<Vec<_>>(), [""; 0]);
}

fn have(flags: Flags) -> impl Fn(&Row) -> bool {
    move |row| row.command.has(flags)
}

fn have_all(flags: Flags) -> impl Fn(&Row) -> bool {
    move |row| row.command.flags & flags == flags
}

fn lack(flags: Flags) -> impl Fn(&Row) -> bool {
    move |row| !row.command.has(flags)
}

fn has_keys(row: &Row) -> bool {
    row.command.keys.iter().any(|spec| spec.flags & NOT_KEY == 0)
}

fn names_of(flags: Flags) -> Vec<String> {
    let rows = registry().rows().iter().filter(|row| row.command.has(flags));
    rows.map(|row| row.command.full_name()).collect()
}

#[test]
fn each_command_has_its_own_documentation() {
    for row in registry().rows() {
        let docs = registry().docs(row);
        assert_eq!(docs.name, row.command.full_name());
        assert!(docs.summary.ends_with('.') && !docs.since.is_empty(), "{}", docs.name);
        for spec in key_specs_of(docs.arguments) {
            assert!(usize::from(spec) < row.command.keys.len(), "{}", docs.name);
        }
    }
}

/// The key specs that arguments refer to.
fn key_specs_of(arguments: &[Argument]) -> Vec<u8> {
    let below = arguments.iter().flat_map(|argument| key_specs_of(argument.arguments));
    arguments.iter().filter_map(|argument| argument.key_spec).chain(below).collect()
}

#[test]
fn each_flag_that_clients_see_is_one_bit_with_one_name() {
    let mut seen = 0;
    for (flag, name) in FLAG_NAMES {
        assert!(flag.is_power_of_two() && seen & flag == 0, "{name}");
        seen |= flag;
    }
}

#[test]
fn commands_on_the_fast_path_do_not_wait_nor_reach_beyond_their_keys() {
    all(|row| row.may_take_fast_path(), has_keys);
    all(
        |row| row.may_take_fast_path(),
        lack(BLOCKING | STOPS_THE_WORLD | FOLLOWS | SCRIPT | WHOLE_KEYSPACE),
    );
    all(|row| row.may_take_fast_path(), lack(OF_CONNECTION | PROTECTED | NEEDS_MODULES));
    all(
        |row| row.may_take_fast_path(),
        |row| row.command.serve.is_none() && row.command.reach.is_none(),
    );
    all(have(GOES_SHORT), |row| row.may_take_fast_path() && row.command.has(INTERNAL));
    all(have(INTERNAL), |row| !row.may_take_fast_path() || row.command.has(GOES_SHORT));
}

#[test]
fn no_command_is_read_only_and_a_write() {
    all(have(READONLY), lack(WRITE));
    all(|row| row.command.told != ChangeForm::Keys, have(WRITE));
    all(|row| row.command.countdown != Countdown::Never, have(WRITE));
}

#[test]
fn only_blocking_commands_with_keys_serve_clients() {
    all(|row| row.command.serve.is_some(), |row| row.command.has(BLOCKING) && has_keys(row));
    all(have(WAKES_ON_REMOVAL), |row| row.command.serve.is_some());
}

#[test]
fn keys_whose_flags_vary_have_a_function_that_tells_them() {
    let varies = |row: &Row| row.command.keys.iter().any(|spec| spec.flags & VARIABLE_FLAGS != 0);
    all(|row| row.command.key_flags.is_some(), varies);
    all(varies, |row| row.command.key_flags.is_some());
}

#[test]
fn a_script_comes_from_one_place() {
    all(have(SCRIPT), |row| (row.command.flags & SCRIPT).is_power_of_two());
    all(have(SCRIPT), have(NOSCRIPT));
}

#[test]
fn scripts_that_may_empty_databases_are_known_by_the_names_of_commands() {
    let closes = |row: &&Row| row.command.has(STOPS_THE_WORLD) && !row.command.has(NOSCRIPT);
    for row in registry().rows().iter().filter(closes) {
        let name = row.command.full_name();
        assert!(emptying::is_named_in(name.as_bytes()), "{name}");
    }
    // A function would hide that from the test.
    let asks_arguments = |row: &Row| row.command.reach.is_some();
    all(asks_arguments, |row| {
        row.command.has(NOSCRIPT) || {
            let reach = row.command.reach.expect("those have one");
            reach(OwnedArguments::from_iter([row.command.name]).view()) & STOPS_THE_WORLD == 0
        }
    });
}

#[test]
fn secrets_are_arguments_of_commands_that_do_not_take_the_fast_path() {
    let have_secrets = |row: &Row| row.command.is_secret.is_some();
    all(have_secrets, |row| !row.may_take_fast_path() && row.command.has(NOSCRIPT));
    all(have_secrets, |row| !has_keys(row) || row.command.has(SET_ASIDE));
    all(have_secrets, |row| {
        let words = ["auth"; 8].into_iter().collect::<OwnedArguments>();
        let is_secret = row.command.is_secret.expect("those have a rule");
        // The name is one word, or two.
        let names = 1 + usize::from(row.command.parent.is_some());
        (0..names).all(|index| !is_secret(words.view(), index))
    });
    // A password is shown before anybody knows the user, so these commands have secrets or take
    // none.
    let take_words = |row: &Row| row.command.has(NO_AUTH) && !matches!(row.command.arity, 1 | -1);
    all(take_words, have_secrets);
}

#[test]
fn commands_about_a_connection_change_no_data() {
    all(have(OF_CONNECTION), lack(WRITE | READONLY | BLOCKING));
    all(have(SELECTS), have(OF_CONNECTION));
    all(have(NO_AUTH), have_all(OF_CONNECTION | NOSCRIPT | LOADING | STALE));
    assert_eq!(names_of(RUNS_QUEUED), ["exec"]);
    all(have(RUNS_QUEUED), have_all(OF_CONNECTION | NOSCRIPT | NEVER_QUEUED));
    all(have(NEVER_QUEUED), have(NOSCRIPT | INTERNAL));
}

#[test]
fn a_stream_has_few_commands_that_are_about_no_data() {
    let mut own = names_of(IN_STREAM);
    own.sort();
    let expected = [
        "command|info",
        "exec",
        "multi",
        "ping",
        "replconf",
        "script|flush",
        "script|load",
        "select",
    ];
    assert_eq!(own, expected);
    all(have(IN_STREAM), lack(WRITE | READONLY | MAY_REPLICATE | SCRIPT));
}

#[test]
fn what_the_server_becomes_by_itself_is_not_shown_as_a_command_of_a_client() {
    all(have_all(INTERNAL | STOPS_THE_WORLD), have(SKIP_MONITOR));
}

#[test]
fn a_client_with_subscriptions_can_end_them() {
    let mut allowed = names_of(WHILE_SUBSCRIBED);
    allowed.sort();
    // The error text of the others lists these.
    let expected = [
        "ping",
        "psubscribe",
        "punsubscribe",
        "quit",
        "reset",
        "ssubscribe",
        "subscribe",
        "sunsubscribe",
        "unsubscribe",
    ];
    assert_eq!(allowed, expected);
}
