//! What may come after the words that are there: the arguments of a command, matched with the words
//! and shown in the notation of `help`.

use crate::docs::{Arg, Kind};

/// How much of an argument the words have.
#[derive(Clone, Debug, Default)]
struct Match {
    /// How many words are its.
    words: usize,
    has_token: bool,
    has_value: bool,
    is_whole: bool,
    /// Those of its parts.
    parts: Vec<Match>,
}

impl Match {
    fn none(arg: &Arg) -> Match {
        Match { parts: arg.parts.iter().map(Match::none).collect(), ..Match::default() }
    }
}

/// The arguments of a command, in one line.
pub(crate) fn syntax(args: &[Arg]) -> String {
    let none: Vec<Match> = args.iter().map(Match::none).collect();
    let mut line = String::new();
    show_all(args, &none, " ", &mut line);
    line
}

/// The arguments that are still to come after these words; `None` if the words do not fit.
pub(crate) fn missing(args: &[Arg], words: &[String]) -> Option<String> {
    let (used, matches) = match_all(args, words);
    if used < words.len() {
        return None;
    }
    let mut line = String::new();
    show_all(args, &matches, " ", &mut line);
    Some(line)
}

/// The words that may come next after these, as far as they are words of the syntax.
pub(crate) fn next_tokens(args: &[Arg], words: &[String]) -> Vec<String> {
    let (used, matches) = match_all(args, words);
    let mut found = Vec::new();
    if used == words.len() {
        collect_tokens(args, &matches, &mut found);
    }
    found
}

/// Matches arguments with words from the first on; returns how many words that takes.
fn match_all(args: &[Arg], words: &[String]) -> (usize, Vec<Match>) {
    let mut matches: Vec<Match> = args.iter().map(Match::none).collect();
    let (mut at, mut used) = (0, 0);
    while at < args.len() && used < words.len() {
        if args[at].optional {
            // Optional arguments that follow each other come in any order.
            let run = args[at..].iter().take_while(|arg| arg.optional).count();
            while used < words.len() {
                let free = (at..at + run).filter(|&index| matches[index].words == 0);
                let fit = free
                    .map(|index| (index, match_repeated(&args[index], &words[used..])))
                    .find(|(_, found)| found.words > 0);
                let Some((index, found)) = fit else { break };
                used += found.words;
                matches[index] = found;
            }
            at += run;
            continue;
        }
        let found = match_repeated(&args[at], &words[used..]);
        if found.words == 0 {
            break;
        }
        used += found.words;
        matches[at] = found;
        at += 1;
    }
    (used, matches)
}

/// An argument as often as it may come and does. The last time may be incomplete.
fn match_repeated(arg: &Arg, words: &[String]) -> Match {
    let mut found = match_one(arg, words, true);
    while arg.multiple && found.is_whole && found.words < words.len() {
        let next = match_one(arg, &words[found.words..], arg.repeats_token);
        if next.words == 0 || (found.words + next.words < words.len() && !next.is_whole) {
            break;
        }
        found = Match { words: found.words + next.words, ..next };
    }
    found
}

fn match_one(arg: &Arg, words: &[String], with_token: bool) -> Match {
    let mut found = Match::none(arg);
    let mut rest = words;
    if let Some(token) = arg.token.as_ref().filter(|_| with_token) {
        match rest.first() {
            Some(word) if word.eq_ignore_ascii_case(token) => rest = &rest[1..],
            _ => return found,
        }
        found.has_token = true;
        found.words = 1;
        if arg.kind == Kind::PureToken {
            found.is_whole = true;
            return found;
        }
    }
    found.has_token |= !with_token;
    let Some(word) = rest.first() else { return found };
    match arg.kind {
        Kind::Block => {
            let (used, parts) = match_all(&arg.parts, rest);
            let whole = arg.parts.iter().zip(&parts);
            found.is_whole = whole.clone().all(|(arg, part)| part.is_whole || arg.optional);
            found.words += used;
            found.parts = parts;
            found.has_value = used > 0;
        }
        Kind::OneOf => {
            for (index, part) in arg.parts.iter().enumerate() {
                let one = match_repeated(part, rest);
                if one.words > 0 {
                    found.words += one.words;
                    found.is_whole = one.is_whole;
                    found.parts[index] = one;
                    found.has_value = true;
                    break;
                }
            }
        }
        Kind::PureToken => {}
        Kind::Text | Kind::Integer | Kind::Double => {
            let fits = match arg.kind {
                Kind::Integer => word.parse::<i64>().is_ok(),
                Kind::Double => word.parse::<f64>().is_ok(),
                _ => true,
            };
            if fits {
                found.words += 1;
                found.is_whole = true;
                found.has_value = true;
            }
        }
    }
    found
}

fn show_all(args: &[Arg], matches: &[Match], separator: &str, line: &mut String) {
    let mut is_first = true;
    // Options before an argument that is there can come no more.
    let is_fixed = |(arg, found): (&Arg, &Match)| !arg.optional && found.words > 0;
    let fixed = args.iter().zip(matches).rposition(is_fixed).unwrap_or(0);
    for (at, (arg, found)) in args.iter().zip(matches).enumerate() {
        if at < fixed && arg.optional && found.words == 0 {
            continue;
        }
        let mut one = String::new();
        show(arg, found, &mut one);
        if one.is_empty() {
            continue;
        }
        if !is_first {
            line.push_str(separator);
        }
        is_first = false;
        line.push_str(&one);
    }
}

/// What is missing of an argument.
fn show(arg: &Arg, found: &Match, line: &mut String) {
    let is_begun = found.words > 0;
    let brackets = arg.optional && !is_begun;
    if brackets {
        line.push('[');
    }
    let mut words = Vec::new();
    if let Some(token) = arg.token.as_ref().filter(|_| !found.has_token) {
        words.push(if token.is_empty() { "\"\"".to_owned() } else { token.clone() });
    }
    let mut body = String::new();
    match arg.kind {
        Kind::PureToken => {}
        Kind::OneOf if found.has_value => {
            let begun = arg.parts.iter().zip(&found.parts).find(|(_, part)| part.words > 0);
            begun.into_iter().for_each(|(arg, part)| show(arg, part, &mut body));
        }
        Kind::OneOf => show_all(&arg.parts, &found.parts, "|", &mut body),
        Kind::Block => show_all(&arg.parts, &found.parts, " ", &mut body),
        _ if found.has_value => {}
        _ => body.push_str(&arg.shown),
    }
    words.extend((!body.is_empty()).then_some(body));
    if arg.multiple {
        words.push(repetition(arg));
    }
    line.push_str(&words.join(" "));
    if brackets {
        line.push(']');
    }
}

/// That an argument may come again.
fn repetition(arg: &Arg) -> String {
    let mut line = String::from("[");
    if let Some(token) = arg.token.as_ref().filter(|_| arg.repeats_token) {
        line.push_str(token);
        if arg.kind != Kind::PureToken {
            line.push(' ');
        }
    }
    let none: Vec<Match> = arg.parts.iter().map(Match::none).collect();
    match arg.kind {
        Kind::OneOf => show_all(&arg.parts, &none, "|", &mut line),
        Kind::Block => show_all(&arg.parts, &none, " ", &mut line),
        Kind::PureToken => {}
        _ => line.push_str(&arg.shown),
    }
    line + " ...]"
}

fn collect_tokens(args: &[Arg], matches: &[Match], tokens: &mut Vec<String>) {
    for (arg, found) in args.iter().zip(matches) {
        if found.words == 0 {
            first_tokens(arg, tokens);
            if !arg.optional {
                return;
            }
        } else if !found.is_whole {
            match arg.kind {
                Kind::Block => collect_tokens(&arg.parts, &found.parts, tokens),
                Kind::OneOf if !found.has_value => {
                    arg.parts.iter().for_each(|part| first_tokens(part, tokens));
                }
                Kind::OneOf => {
                    let begun = arg.parts.iter().zip(&found.parts);
                    for (part, found) in begun.filter(|(_, found)| found.words > 0) {
                        collect_tokens(
                            std::slice::from_ref(part),
                            std::slice::from_ref(found),
                            tokens,
                        );
                    }
                }
                _ => {}
            }
            return;
        }
    }
}

/// The words with which an argument may begin.
fn first_tokens(arg: &Arg, tokens: &mut Vec<String>) {
    match (&arg.token, arg.kind) {
        (Some(token), _) if !token.is_empty() => tokens.push(token.clone()),
        (_, Kind::OneOf) => arg.parts.iter().for_each(|part| first_tokens(part, tokens)),
        (_, Kind::Block) => {
            for part in &arg.parts {
                first_tokens(part, tokens);
                if !part.optional {
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::Docs;

    fn after(line: &str) -> Option<String> {
        let docs = Docs::own();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let (doc, length) = docs.find(&words).expect("it is a command");
        missing(&doc.args, &words[length..])
    }

    #[test]
    fn what_is_missing_of_a_command() {
        let cases = [
            ("get", "key"),
            ("get k", ""),
            ("mset a 1", "[key value ...]"),
            ("mset a", "value [key value ...]"),
            ("config get", "parameter [parameter ...]"),
            ("zadd z xx", "[GT|LT] [CH] [INCR] score member [score member ...]"),
            ("zadd z 1", "member [score member ...]"),
            ("bitcount k 0", "end [BYTE|BIT]"),
            ("lpos k e count", "num-matches [RANK rank] [MAXLEN len]"),
        ];
        for (line, wanted) in cases {
            let shown = after(line).map(sorted_words);
            assert_eq!(shown, Some(sorted_words(wanted.to_owned())), "{line}");
        }
        assert_eq!(after("get k more"), None);
        let shown = after("set k v ex").expect("it fits");
        assert!(shown.contains("seconds") && !shown.contains("PX"), "{shown}");
    }

    /// The order in which optional arguments are shown is not what this is about.
    fn sorted_words(line: String) -> Vec<String> {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        words.sort();
        words
    }

    #[test]
    fn words_that_may_come_next() {
        let docs = Docs::own();
        let next = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let (doc, length) = docs.find(&words).expect("it is a command");
            next_tokens(&doc.args, &words[length..])
        };
        assert!(next("set k v").contains(&"NX".to_owned()));
        assert!(!next("set k v nx").contains(&"XX".to_owned()));
        assert!(next("get").is_empty());
        assert!(next("client no-evict").contains(&"ON".to_owned()));
    }
}
