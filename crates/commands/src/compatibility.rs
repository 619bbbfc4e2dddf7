//! `docs/COMPATIBILITY.md`: what Dunlin has of Redis, what it lacks, and what differs.
//!
//! The page is made from the documentation of commands and the table of directives with which the
//! server itself runs, so that it cannot promise something that is missing. Only the reasons for
//! differences are prose, in `compatibility/differences.md`. `dunlin docs compatibility` prints the
//! page.

use std::collections::HashSet;
use std::fmt::Write;

use config::{Change, Directive, Effect, directives};
use engine::command::{Argument, ArgumentKind, Docs, Group};
use engine::engine::Registry;

const PREFACE: &str = include_str!("compatibility/preface.md");
const OTHER_WORDS: &str = include_str!("compatibility/other-words.md");
const DIFFERENCES: &str = include_str!("compatibility/differences.md");

/// The commands of the reference: see the file's first lines.
const REFERENCE: &str = include_str!("compatibility/redis-8.0.txt");

/// The version of the reference: everything newer is marked.
const REFERENCE_VERSION: (u32, u32) = (8, 0);

/// The page, in Markdown.
pub fn page(commands: &Registry) -> String {
    let sections = [present_commands(commands), absent_commands(commands), all_directives()];
    [PREFACE, &sections.concat(), DIFFERENCES].concat()
}

// ---- Commands -----------------------------------------------------------------------------------

fn present_commands(commands: &Registry) -> String {
    let mut text = String::from("## Commands\n");
    let mut groups: Vec<Group> = Vec::new();
    for row in commands.public_rows() {
        if !groups.contains(&row.command.group) {
            groups.push(row.command.group);
        }
    }
    for group in groups {
        let rows = commands.public_rows().filter(|row| row.command.group == group);
        let lines: String = rows.map(|row| command_line(commands.docs(row))).collect();
        let title = group.name();
        text += &format!("\n### {title}\n\n| command | since | |\n|---|---|---|\n{lines}");
    }
    text
}

fn command_line(docs: &Docs) -> String {
    let name = shown_name(docs.name);
    let mut remarks = escaped(docs.summary);
    if is_newer(docs.since) {
        remarks += " **Newer than 8.0.**";
    }
    let mut options = Vec::new();
    if !is_newer(docs.since) {
        newer_options(docs.arguments, &mut options);
    }
    for (option, since) in options {
        remarks += &format!(" **Newer than 8.0:** `{option}` ({since}).");
    }
    format!("| `{name}` | {} | {remarks} |\n", docs.since)
}

/// The arguments that are later than the reference, with their versions.
fn newer_options(arguments: &[Argument], found: &mut Vec<(&'static str, &'static str)>) {
    for argument in arguments {
        match argument.since {
            Some(since) if is_newer(since) && matches!(argument.kind, ArgumentKind::OneOf) => {
                let words = argument.arguments.iter().filter_map(|word| word.token);
                found.extend(words.map(|word| (word, since)));
            }
            Some(since) if is_newer(since) => {
                // What consists of several is known by the word that it begins with.
                let first = argument.arguments.first().and_then(|first| first.token);
                found.push((argument.token.or(first).unwrap_or(argument.name), since));
            }
            _ => newer_options(argument.arguments, found),
        }
    }
}

fn is_newer(since: &str) -> bool {
    let mut numbers = since.split('.').map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next()) > REFERENCE_VERSION
}

fn absent_commands(commands: &Registry) -> String {
    let mut text = String::from(
        "\n## Commands of Redis 8.0 that are missing\n\n\
         The server answers them as it answers any unknown command.\n\n\
         | family | commands |\n|---|---|\n",
    );
    let ours: HashSet<String> = commands.rows().iter().map(|row| row.command.full_name()).collect();
    let is_absent = |name: &str| !ours.contains(name);
    let mut families: Vec<(&str, Vec<String>)> = Vec::new();
    for (family, name) in reference_commands().filter(|(_, name)| is_absent(name)) {
        // If a command is absent, so are all its subcommands.
        if name.split_once('|').is_some_and(|(command, _)| is_absent(command)) {
            continue;
        }
        if families.last().is_none_or(|(last, _)| *last != family) {
            families.push((family, Vec::new()));
        }
        if let Some((_, names)) = families.last_mut() {
            names.push(format!("`{}`", shown_name(name)));
        }
    }
    for (family, names) in families {
        text += &format!("| {family} | {} |\n", names.join(", "));
    }
    text
}

/// The commands of the reference as (family, name), subcommands as "config|get".
fn reference_commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = REFERENCE.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| {
        let (family, names) = line.split_once(' ').unwrap_or((line, ""));
        names.split(' ').map(move |name| (family, name))
    })
}

/// "CONFIG GET" for "config|get".
fn shown_name(name: &str) -> String {
    name.replace('|', " ").to_uppercase()
}

// ---- Directives ---------------------------------------------------------------------------------

fn all_directives() -> String {
    let mut text = String::from("\n## Directives of the configuration\n");
    text += "\nAll directives of Redis 8.0 are known, also by their older names. Other names are refused.\n";
    text += "\n### Directives that work as in their descriptions\n\n";
    text += "| directive | values | default | CONFIG SET | |\n|---|---|---|---|---|\n";
    for directive in directives().iter().filter(|it| it.effect() == Effect::Full) {
        text += &directive_line(directive);
    }
    text += "\n### Accepted without effect\n\n";
    text += "CONFIG GET and SET answer as usual. A value other than the default is logged, at ";
    text += "start and when CONFIG SET gives it.\n\n";
    let without_effect = |effect| match effect {
        Effect::None(reason) => Some(reason),
        Effect::Full => None,
    };
    text += &by_reason(without_effect);
    text + OTHER_WORDS
}

fn directive_line(directive: &Directive) -> String {
    let default = directive.default_value();
    let default = match &*String::from_utf8_lossy(&default) {
        "" => "empty".to_owned(),
        default => format!("`{default}`"),
    };
    let change = match directive.change() {
        Change::Modifiable => "yes",
        Change::Immutable => "no",
        Change::Protected | Change::Reread => "protected",
    };
    let (names, doc) = (names(directive), escaped(directive.doc()));
    format!("| {names} | {} | {default} | {change} | {doc} |\n", escaped(&directive.values()))
}

/// A list of the reasons that `reason` finds, each with its directives.
fn by_reason(reason: impl Fn(Effect) -> Option<&'static str>) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for directive in directives() {
        let Some(reason) = reason(directive.effect()) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, list)) => list.push(names(directive)),
            None => reasons.push((reason, vec![names(directive)])),
        }
    }
    reasons.iter().fold(String::new(), |mut text, (reason, names)| {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "- {}: {reason}", names.join(", "));
        text
    })
}

fn names(directive: &Directive) -> String {
    match directive.alias() {
        Some(alias) => format!("`{}` (`{alias}`)", directive.name()),
        None => format!("`{}`", directive.name()),
    }
}

/// Text for a cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_with(what: &str) -> Vec<String> {
        page(crate::registry())
            .lines()
            .filter(|line| line.contains(what))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn every_command_and_directive_stands_there_once() {
        for row in crate::registry().public_rows() {
            let name = shown_name(&row.command.full_name());
            assert_eq!(lines_with(&format!("| `{name}` | ")).len(), 1, "{name}");
        }
        let page = page(crate::registry());
        for directive in directives() {
            let name = format!("`{}`", directive.name());
            assert!(page.contains(&name), "{name}");
        }
    }

    #[test]
    fn what_is_later_than_the_reference_is_marked() {
        let marked = |line: &str| line.contains("**Newer than 8.0");
        for (name, word) in [
            ("SET", "`IFEQ` (8.1.0)"),
            ("CLIENT LIST", "`NOT-IP` (9.0.0)"),
            ("GEOSEARCH", "`BYPOLYGON` (9.0.0)"),
            ("XTRIM", "`ACKED` (8.2.0)"),
        ] {
            let line = lines_with(&format!("| `{name}` | ")).remove(0);
            assert!(marked(&line) && line.contains(word), "{line}");
        }
        assert!(!marked(&lines_with("| `CLIENT SETINFO` | ")[0]));
        assert!(!marked(&lines_with("| `GET` | ")[0]));
        assert_eq!(lines_with("| `XDELEX` | ")[0].matches("Newer").count(), 1);
        assert!(is_newer("8.1.0") && is_newer("9.0.0") && is_newer("10.0.0"));
        assert!(!is_newer("8.0.0") && !is_newer("7.2.0"));
    }

    #[test]
    fn the_reference_has_each_command_once() {
        let names: Vec<_> = reference_commands().map(|(_, name)| name).collect();
        let unique: HashSet<_> = names.iter().collect();
        assert_eq!((names.len(), unique.len()), (394, 394));
    }
}
