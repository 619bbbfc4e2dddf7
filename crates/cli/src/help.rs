//! `help`, at the prompt and as a command.

use crate::docs::{Doc, Docs};
use crate::hints::syntax;
use crate::print::output;

/// What `help` alone prints.
const GENERIC: &str = "\
To get help about commands type:
      \"help @<group>\" to get a list of commands in <group>
      \"help <command>\" for help on <command>
      \"help <tab>\" to get a list of possible help topics
      \"quit\" to exit

A number before a command repeats it, as in 5 INCR counter. A line goes on in the next one while a
quote is open.

      \"connect <host> <port>\" connects to another server
      \"clear\" clears the screen
      \":monitor <pattern> ...\" shows the commands of other clients that fit
      \":set hints\", \":set nohints\" turn hints on and off
      \":help\" shows this
Put :set lines into ~/.redisclirc to have them each time.
";

/// Prints the help on these words.
pub(crate) fn print(docs: &Docs, words: &[Vec<u8>]) {
    let words: Vec<String> =
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let Some(first) = words.first() else {
        return output(format!("dunlin cli {}\n{GENERIC}", env!("CARGO_PKG_VERSION")).as_bytes());
    };
    let mut text = String::new();
    match first.strip_prefix('@') {
        Some(group) if docs.groups().iter().any(|name| name.eq_ignore_ascii_case(group)) => {
            let is_in = |doc: &&Doc| doc.group.eq_ignore_ascii_case(group);
            docs.0.iter().filter(is_in).for_each(|doc| entry(doc, false, &mut text));
        }
        _ => {
            let fits = |doc: &&Doc| {
                words.len() <= doc.name.len()
                    && words
                        .iter()
                        .zip(&doc.name)
                        .all(|(word, name)| word.eq_ignore_ascii_case(name))
            };
            docs.0.iter().filter(fits).for_each(|doc| entry(doc, true, &mut text));
        }
    }
    output((text + "\r\n").as_bytes());
}

fn entry(doc: &Doc, with_group: bool, text: &mut String) {
    let Doc { name, summary, since, group, args } = doc;
    let (name, syntax) = (name.join(" "), syntax(args));
    text.push_str(&format!("\r\n  \x1b[1m{name}\x1b[0m \x1b[90m{syntax}\x1b[0m\r\n"));
    text.push_str(&format!("  \x1b[33msummary:\x1b[0m {summary}\r\n"));
    text.push_str(&format!("  \x1b[33msince:\x1b[0m {since}\r\n"));
    if with_group {
        text.push_str(&format!("  \x1b[33mgroup:\x1b[0m {group}\r\n"));
    }
}
