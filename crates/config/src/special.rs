//! The kinds of value that only one directive each has.

use super::kinds::{Kind, Line, WRONG_COUNT, line, not_one_of, single};
use super::title;
use super::values::{
    NotifyEvents, OutputLimit, OutputLimits, PrimaryAddress, SaveRule, ShutdownOptions,
};
use super::words::{loose_integer, memory_text, quote};

/// Most addresses that `bind` takes.
const MAX_BIND_ADDRESSES: usize = 16;

/// Joins words by single spaces.
fn join<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        if !text.is_empty() {
            text.push(b' ');
        }
        text.extend_from_slice(word.as_ref());
    }
    text
}

/// Pairs of seconds and changes. In a file each line adds to those before; an empty one discards
/// them. The first line of a file discards the defaults.
pub(super) struct SaveRules;

impl Kind<Vec<SaveRule>> for SaveRules {
    const SEVERAL: bool = true;

    fn parse(&self, words: &[&[u8]], _: &Vec<SaveRule>) -> Result<Vec<SaveRule>, String> {
        let invalid = || "Invalid save parameters".to_owned();
        let pairs = words.chunks(2).map(|pair| {
            let &[seconds, changes] = pair else { return None };
            let seconds = loose_integer(seconds).filter(|&seconds: &u64| seconds > 0)?;
            let changes = loose_integer::<i32>(changes)?;
            Some(SaveRule { seconds, changes: u32::try_from(changes).ok()? })
        });
        pairs.collect::<Option<_>>().ok_or_else(invalid)
    }

    fn load(
        &self,
        words: &[&[u8]],
        old: &Vec<SaveRule>,
        first: bool,
    ) -> Result<Vec<SaveRule>, String> {
        let added = self.parse(words, old)?;
        if first || added.is_empty() { Ok(added) } else { Ok([old.as_slice(), &added].concat()) }
    }

    fn show(&self, value: &Vec<SaveRule>) -> Vec<u8> {
        join(value.iter().map(|rule| format!("{} {}", rule.seconds, rule.changes)))
    }

    fn lines(&self, name: &str, value: &Vec<SaveRule>, _: &Vec<SaveRule>) -> Vec<Line> {
        if value.is_empty() {
            return vec![line(name, b"\"\"", true)];
        }
        let text = |rule: &SaveRule| format!("{} {}", rule.seconds, rule.changes);
        value.iter().map(|rule| line(name, text(rule).as_bytes(), true)).collect()
    }

    fn describe(&self) -> String {
        "pairs of seconds and changes; empty for none".to_owned()
    }
}

/// Classes of clients, each with a hard limit, a soft limit and seconds. Classes that are not
/// named keep their limits.
pub(super) struct ClientOutputLimits;

impl ClientOutputLimits {
    fn class<'a>(limits: &'a mut OutputLimits, name: &[u8]) -> Option<&'a mut OutputLimit> {
        match name.to_ascii_lowercase().as_slice() {
            b"normal" => Some(&mut limits.normal),
            b"slave" | b"replica" => Some(&mut limits.replica),
            b"pubsub" => Some(&mut limits.pubsub),
            _ => None,
        }
    }
}

impl Kind<OutputLimits> for ClientOutputLimits {
    const SEVERAL: bool = true;

    fn parse(&self, words: &[&[u8]], old: &OutputLimits) -> Result<OutputLimits, String> {
        let mut limits = *old;
        if !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
        }
        for group in words.chunks_exact(4) {
            let class = Self::class(&mut limits, group[0]).ok_or_else(|| {
                "Invalid client class specified in buffer limit configuration.".to_owned()
            })?;
            let read = || {
                let seconds = loose_integer::<i64>(group[3])?;
                Some(OutputLimit {
                    hard_bytes: base::size::parse_size(group[1])?,
                    soft_bytes: base::size::parse_size(group[2])?,
                    soft_seconds: u64::try_from(seconds).ok()?,
                })
            };
            *class = read().ok_or_else(|| {
                "Error in hard, soft or soft_seconds setting in buffer limit configuration."
                    .to_owned()
            })?;
        }
        Ok(limits)
    }

    fn show(&self, value: &OutputLimits) -> Vec<u8> {
        let classes =
            [("normal", value.normal), ("slave", value.replica), ("pubsub", value.pubsub)];
        join(classes.map(|(name, limit)| {
            format!("{name} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
        }))
    }

    fn lines(&self, name: &str, value: &OutputLimits, default: &OutputLimits) -> Vec<Line> {
        let classes = [
            ("normal", value.normal, default.normal),
            ("replica", value.replica, default.replica),
            ("pubsub", value.pubsub, default.pubsub),
        ];
        let lines = classes.map(|(class, limit, default)| {
            let hard = memory_text(limit.hard_bytes);
            let soft = memory_text(limit.soft_bytes);
            let text = format!("{class} {hard} {soft} {}", limit.soft_seconds);
            line(name, text.as_bytes(), limit != default)
        });
        lines.into()
    }

    fn describe(&self) -> String {
        "groups of: normal | replica | pubsub, hard limit, soft limit, seconds".to_owned()
    }
}

/// Three scores: primary, replica, background child.
pub(super) struct OomScores;

impl Kind<[i32; 3]> for OomScores {
    const SEVERAL: bool = true;

    fn parse(&self, words: &[&[u8]], _: &[i32; 3]) -> Result<[i32; 3], String> {
        let words: &[&[u8]; 3] = words.try_into().map_err(|_| WRONG_COUNT.to_owned())?;
        let read = |word| loose_integer(word).filter(|score| (-2000..=2000).contains(score));
        match words.map(read) {
            [Some(primary), Some(replica), Some(child)] => Ok([primary, replica, child]),
            _ => {
                Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000."
                    .to_owned())
            }
        }
    }

    fn show(&self, value: &[i32; 3]) -> Vec<u8> {
        join(value.map(|score| score.to_string()))
    }

    fn describe(&self) -> String {
        "three integers from -2000 to 2000".to_owned()
    }
}

/// Letters of event classes.
pub(super) struct EventLetters;

impl Kind<NotifyEvents> for EventLetters {
    fn parse(&self, words: &[&[u8]], _: &NotifyEvents) -> Result<NotifyEvents, String> {
        NotifyEvents::parse(single(words)?)
            .ok_or_else(|| "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned())
    }

    fn show(&self, value: &NotifyEvents) -> Vec<u8> {
        value.shown().into_bytes()
    }

    fn lines(&self, name: &str, value: &NotifyEvents, default: &NotifyEvents) -> Vec<Line> {
        vec![line(name, &quote(value.to_string().as_bytes()), value != default)]
    }

    fn describe(&self) -> String {
        "letters of Ag$lshzxeKEtmdn; empty for none".to_owned()
    }
}

/// Percentiles, each from 0 to 100.
pub(super) struct Percentiles;

impl Kind<Vec<f64>> for Percentiles {
    const SEVERAL: bool = true;

    fn parse(&self, words: &[&[u8]], _: &Vec<f64>) -> Result<Vec<f64>, String> {
        let read = |word: &&[u8]| {
            let text = std::str::from_utf8(word).ok();
            let number = text.and_then(|text| text.parse::<f64>().ok());
            let number = number
                .filter(|number| !number.is_nan())
                .ok_or_else(|| "Invalid latency-tracking-info-percentiles parameters".to_owned())?;
            if !(0.0..=100.0).contains(&number) {
                return Err("latency-tracking-info-percentiles parameters should sit between \
                            [0.0,100.0]"
                    .to_owned());
            }
            Ok(number)
        };
        words.iter().map(read).collect()
    }

    fn show(&self, value: &Vec<f64>) -> Vec<u8> {
        join(value.iter().map(|percentile| {
            let text = format!("{percentile:.6}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }))
    }

    fn lines(&self, name: &str, value: &Vec<f64>, _: &Vec<f64>) -> Vec<Line> {
        let text = if value.is_empty() { b"\"\"".to_vec() } else { self.show(value) };
        vec![line(name, &text, true)]
    }

    fn describe(&self) -> String {
        "numbers from 0 to 100; empty for none".to_owned()
    }
}

/// Addresses to listen on. One that starts with `-` may be missing on this machine.
pub(super) struct BindAddresses;

impl Kind<Vec<Vec<u8>>> for BindAddresses {
    const SEVERAL: bool = true;

    fn parse(&self, words: &[&[u8]], _: &Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        if words.len() > MAX_BIND_ADDRESSES {
            return Err("Too many bind addresses specified.".to_owned());
        }
        Ok(words.iter().map(|word| word.to_vec()).collect())
    }

    fn show(&self, value: &Vec<Vec<u8>>) -> Vec<u8> {
        join(value)
    }

    fn lines(&self, name: &str, value: &Vec<Vec<u8>>, default: &Vec<Vec<u8>>) -> Vec<Line> {
        let text = if value.is_empty() { b"\"\"".to_vec() } else { join(value) };
        vec![line(name, &text, value != default)]
    }

    fn describe(&self) -> String {
        format!("up to {MAX_BIND_ADDRESSES} addresses; `*` and `::*` for all")
    }
}

/// A list of words, which may be empty; described by the text.
pub(super) struct Words(pub(super) &'static str);

impl Kind<Vec<Vec<u8>>> for Words {
    const SEVERAL: bool = true;

    fn parse(&self, words: &[&[u8]], _: &Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        Ok(words.iter().filter(|word| !word.is_empty()).map(|word| word.to_vec()).collect())
    }

    fn show(&self, value: &Vec<Vec<u8>>) -> Vec<u8> {
        join(value)
    }

    fn lines(&self, name: &str, value: &Vec<Vec<u8>>, default: &Vec<Vec<u8>>) -> Vec<Line> {
        let text = if value.is_empty() { b"\"\"".to_vec() } else { join(value) };
        vec![line(name, &text, value != default)]
    }

    fn describe(&self) -> String {
        self.0.to_owned()
    }
}

/// Host and port of a primary, or `no one`.
pub(super) struct FollowPrimary;

impl Kind<Option<PrimaryAddress>> for FollowPrimary {
    const SEVERAL: bool = true;

    fn parse(
        &self,
        words: &[&[u8]],
        _: &Option<PrimaryAddress>,
    ) -> Result<Option<PrimaryAddress>, String> {
        let &[host, port] = words else { return Err(WRONG_COUNT.to_owned()) };
        if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
            return Ok(None);
        }
        let port = loose_integer(port).ok_or_else(|| "Invalid master port".to_owned())?;
        Ok(Some(PrimaryAddress { host: host.to_vec(), port }))
    }

    fn show(&self, value: &Option<PrimaryAddress>) -> Vec<u8> {
        match value {
            Some(PrimaryAddress { host, port }) => join([host, port.to_string().as_bytes()]),
            None => Vec::new(),
        }
    }

    fn lines(
        &self,
        name: &str,
        value: &Option<PrimaryAddress>,
        _: &Option<PrimaryAddress>,
    ) -> Vec<Line> {
        value.iter().map(|_| line(name, &self.show(value), true)).collect()
    }

    fn describe(&self) -> String {
        "host and port, or `no one`".to_owned()
    }
}

/// SHUTDOWN options for a signal.
pub(super) struct OnSignal;

impl OnSignal {
    const NAMES: [&str; 5] = ["default", "save", "nosave", "now", "force"];
}

impl Kind<ShutdownOptions> for OnSignal {
    const SEVERAL: bool = true;

    fn parse(&self, words: &[&[u8]], _: &ShutdownOptions) -> Result<ShutdownOptions, String> {
        let mut options = ShutdownOptions::default();
        let refused = || not_one_of(Self::NAMES.into_iter());
        if words.is_empty() {
            return Err(refused());
        }
        for word in words {
            match word.to_ascii_lowercase().as_slice() {
                b"default" => {}
                b"save" => options.save = true,
                b"nosave" => options.nosave = true,
                b"now" => options.now = true,
                b"force" => options.force = true,
                _ => return Err(refused()),
            }
        }
        if options.save && options.nosave {
            let conflict = "shutdown options SAVE and NOSAVE can't be used simultaneously";
            return Err(conflict.to_owned());
        }
        Ok(options)
    }

    fn show(&self, value: &ShutdownOptions) -> Vec<u8> {
        let none = *value == ShutdownOptions::default();
        let chosen = [none, value.save, value.nosave, value.now, value.force];
        join(Self::NAMES.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(name, _)| name))
    }

    fn describe(&self) -> String {
        "default, or some of: save nosave now force".to_owned()
    }
}

/// A directory. It is written to a file always, since a rewritten file may be read from elsewhere.
pub(super) struct Directory;

impl Kind<Vec<u8>> for Directory {
    fn parse(&self, words: &[&[u8]], _: &Vec<u8>) -> Result<Vec<u8>, String> {
        single(words).map(<[u8]>::to_vec)
    }

    fn show(&self, value: &Vec<u8>) -> Vec<u8> {
        value.clone()
    }

    fn lines(&self, name: &str, value: &Vec<u8>, _: &Vec<u8>) -> Vec<Line> {
        vec![line(name, &quote(value), true)]
    }

    fn describe(&self) -> String {
        "path of a directory".to_owned()
    }
}

/// Checks a file name that must not lead to another directory.
pub(super) fn check_dbfilename(name: &[u8]) -> Result<(), &'static str> {
    is_plain_name(name).then_some(()).ok_or("dbfilename can't be a path, just a filename")
}

/// Checks the base name of append-only files.
pub(super) fn check_appendfilename(name: &[u8]) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("appendfilename can't be empty");
    }
    is_plain_name(name).then_some(()).ok_or("appendfilename can't be a path, just a filename")
}

/// Checks the name of the directory of append-only files.
pub(super) fn check_appenddirname(name: &[u8]) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("appenddirname can't be empty");
    }
    is_plain_name(name).then_some(()).ok_or("appenddirname can't be a path, just a dirname")
}

fn is_plain_name(name: &[u8]) -> bool {
    !name.iter().any(|&byte| byte == b'/' || byte == b'\\')
}

/// Checks an announced host name.
pub(super) fn check_hostname(name: &[u8]) -> Result<(), &'static str> {
    if name.len() >= 256 {
        return Err("Hostnames must be less than 256 characters");
    }
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    name.iter()
        .all(allowed)
        .then_some(())
        .ok_or("Hostnames may only contain alphanumeric characters, hyphens or dots")
}

/// Checks an address that a node announces: an IP address, with or without a zone, or a name of
/// domains. It is shown in lines of replies, in headers of HTTP and on terminals.
pub(super) fn check_announced_address(address: &[u8]) -> Result<(), &'static str> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b".:-_%".contains(byte);
    address
        .iter()
        .all(allowed)
        .then_some(())
        .ok_or("An address may only contain letters, digits and the signs .:-_%")
}

/// Checks the name of a cluster: it is a part of keys of etcd.
pub(super) fn check_cluster_name(name: &[u8]) -> Result<(), &'static str> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    let is_good = !name.is_empty() && name.iter().all(allowed);
    is_good
        .then_some(())
        .ok_or("a cluster's name consists of letters, digits, dots, hyphens and underscores")
}

/// Checks the addresses of etcd's members.
pub(super) fn check_etcd_addresses(addresses: &[u8]) -> Result<(), &'static str> {
    let is_address = |address: &[u8]| {
        let rest = address.strip_prefix(b"http://").or_else(|| address.strip_prefix(b"https://"));
        rest.is_some_and(|host| !host.trim_ascii().is_empty() && !host.contains(&b'@'))
    };
    let mut parts = addresses.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let is_good = addresses.is_empty() || parts.all(is_address);
    is_good
        .then_some(())
        .ok_or("etcd's addresses begin with http:// or https://, and have no password in them")
}

/// Checks the name of a node.
pub(super) fn check_node_name(name: &[u8]) -> Result<(), &'static str> {
    let refused = |byte: &u8| b"!#$%&()*+:;<>?@[]^{}|~".contains(byte);
    // It is shown in lines.
    let is_text = std::str::from_utf8(name).is_ok_and(|name| !name.contains(char::is_control));
    let wrong = !is_text || name.iter().any(refused);
    (!wrong).then_some(()).ok_or("Announced human node name contained invalid character")
}

/// Checks the name of a locale: only those that compare bytes are there.
pub(super) fn check_locale(name: &[u8]) -> Result<(), &'static str> {
    let known = matches!(name, b"" | b"C" | b"POSIX");
    known.then_some(()).ok_or("Invalid locale name")
}

/// Checks the template of the process title.
pub(super) fn check_title(template: &[u8]) -> Result<(), &'static str> {
    title::is_valid(template)
        .then_some(())
        .ok_or("template format is invalid or contains unknown variables")
}
