//! Kinds of values: how a setting is read from words, shown, and written to a file.
//!
//! A row of the table joins a field of the settings with a [`Kind`]. The rest of the crate sees
//! such a pair as a [`Setting`] behind [`Access`] and need not know either type.

use std::fmt::Display;

use super::values::{Choice, MemoryLimit};
use super::words::{loose_integer, memory_text, quote};

/// The error when a setting that takes one word got none or several.
pub(super) const WRONG_COUNT: &str = "wrong number of arguments";

/// One line for a rewritten file, and whether it is written even where the old file has none.
pub(super) struct Line {
    pub(super) text: Vec<u8>,
    pub(super) force: bool,
}

/// How values of type `T` are read and written.
pub(super) trait Kind<T: PartialEq>: Sync {
    /// Whether the value is a list of words. A single word is then split at its spaces.
    const SEVERAL: bool = false;

    /// Reads a new value; one that adds to the `old` one may look at it. Errors are the text that
    /// the client or operator is shown.
    fn parse(&self, words: &[&[u8]], old: &T) -> Result<T, String>;

    /// Reads a value from a file or the command line, where a setting may be given several times.
    /// `first` is true the first time.
    fn load(&self, words: &[&[u8]], old: &T, first: bool) -> Result<T, String> {
        let _ = first;
        self.parse(words, old)
    }

    /// The value as CONFIG GET answers it.
    fn show(&self, value: &T) -> Vec<u8>;

    /// The lines that give `value` in a file. No line means that the directive is left out.
    fn lines(&self, name: &str, value: &T, default: &T) -> Vec<Line> {
        vec![line(name, &self.show(value), value != default)]
    }

    /// The possible values, for the documentation.
    fn describe(&self) -> String;
}

/// A line that gives `value` to the directive `name`.
pub(super) fn line(name: &str, value: &[u8], force: bool) -> Line {
    Line { text: [name.as_bytes(), b" ", value].concat(), force }
}

/// The only word of `words`.
pub(super) fn single<'a>(words: &[&'a [u8]]) -> Result<&'a [u8], String> {
    match words {
        [word] => Ok(word),
        _ => Err(WRONG_COUNT.to_owned()),
    }
}

/// A field of the settings `C`, for reading and for writing.
pub(super) struct Field<C, T> {
    pub(super) of: fn(&C) -> &T,
    pub(super) of_mut: fn(&mut C) -> &mut T,
}

/// A field with its kind.
pub(super) struct Setting<C, T, K> {
    pub(super) field: Field<C, T>,
    pub(super) kind: K,
}

/// A setting of any type, among the settings `C`.
pub(super) trait Access<C>: Sync {
    /// Assigns the value read from `words`, given all at once as CONFIG SET does.
    fn set(&self, config: &mut C, words: &[&[u8]]) -> Result<(), String>;
    /// Assigns or adds the value read from `words` of a file; see [`Kind::load`].
    fn load(&self, config: &mut C, words: &[&[u8]], first: bool) -> Result<(), String>;
    /// See [`Kind::show`].
    fn show(&self, config: &C) -> Vec<u8>;
    /// Whether both have the same value.
    fn same(&self, one: &C, other: &C) -> bool;
    /// See [`Kind::lines`].
    fn lines(&self, name: &str, config: &C, defaults: &C) -> Vec<Line>;
    /// See [`Kind::describe`].
    fn describe(&self) -> String;
}

impl<C, T: PartialEq, K: Kind<T>> Setting<C, T, K> {
    /// Runs `read` on the words of a value, after a list given as one word was split.
    fn assign(
        &self,
        config: &mut C,
        words: &[&[u8]],
        read: impl FnOnce(&[&[u8]], &T) -> Result<T, String>,
    ) -> Result<(), String> {
        let old = (self.field.of)(config);
        let new = match words {
            [b""] if K::SEVERAL => read(&[], old)?,
            [list] if K::SEVERAL => {
                let parts: Vec<&[u8]> = list.split(|&byte| byte == b' ').collect();
                read(&parts, old)?
            }
            _ => read(words, old)?,
        };
        *(self.field.of_mut)(config) = new;
        Ok(())
    }
}

impl<C, T: PartialEq, K: Kind<T>> Access<C> for Setting<C, T, K> {
    fn set(&self, config: &mut C, words: &[&[u8]]) -> Result<(), String> {
        self.assign(config, words, |words, old| self.kind.parse(words, old))
    }

    fn load(&self, config: &mut C, words: &[&[u8]], first: bool) -> Result<(), String> {
        self.assign(config, words, |words, old| self.kind.load(words, old, first))
    }

    fn show(&self, config: &C) -> Vec<u8> {
        self.kind.show((self.field.of)(config))
    }

    fn same(&self, one: &C, other: &C) -> bool {
        (self.field.of)(one) == (self.field.of)(other)
    }

    fn lines(&self, name: &str, config: &C, defaults: &C) -> Vec<Line> {
        self.kind.lines(name, (self.field.of)(config), (self.field.of)(defaults))
    }

    fn describe(&self) -> String {
        self.kind.describe()
    }
}

/// `yes` or `no`.
pub(super) struct YesNo;

impl Kind<bool> for YesNo {
    fn parse(&self, words: &[&[u8]], _: &bool) -> Result<bool, String> {
        let word = single(words)?;
        if word.eq_ignore_ascii_case(b"yes") {
            Ok(true)
        } else if word.eq_ignore_ascii_case(b"no") {
            Ok(false)
        } else {
            Err("argument must be 'yes' or 'no'".to_owned())
        }
    }

    fn show(&self, value: &bool) -> Vec<u8> {
        if *value { b"yes".to_vec() } else { b"no".to_vec() }
    }

    fn describe(&self) -> String {
        "yes | no".to_owned()
    }
}

/// Largest value of the settings that Redis bounds by a C `int`.
pub(super) const INT_MAX: i64 = i32::MAX as i64;
/// Largest value of the settings that Redis bounds by a C `long`.
pub(super) const LONG_MAX: i64 = i64::MAX;

/// A whole number from `min` to `max`.
pub(super) struct Integer {
    pub(super) min: i64,
    pub(super) max: i64,
}

/// A whole number from `min` to `max`.
pub(super) const fn integer(min: i64, max: i64) -> Integer {
    Integer { min, max }
}

fn out_of_range(min: impl Display, max: impl Display) -> String {
    format!("argument must be between {min} and {max} inclusive")
}

impl<T: TryFrom<i64> + PartialEq + Display> Kind<T> for Integer {
    fn parse(&self, words: &[&[u8]], _: &T) -> Result<T, String> {
        let number = base::num::parse_i64(single(words)?)
            .ok_or_else(|| "argument couldn't be parsed into an integer".to_owned())?;
        let within = (self.min..=self.max).contains(&number).then_some(number);
        within
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| out_of_range(self.min, self.max))
    }

    fn show(&self, value: &T) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    fn describe(&self) -> String {
        match self.max {
            LONG_MAX => format!("integer, at least {}", self.min),
            max => format!("integer from {} to {max}", self.min),
        }
    }
}

/// Permission bits in octal, at most 777.
pub(super) struct FileMode;

impl Kind<u32> for FileMode {
    fn parse(&self, words: &[&[u8]], _: &u32) -> Result<u32, String> {
        let word = single(words)?;
        if word.is_empty() {
            return Ok(0);
        }
        let text = std::str::from_utf8(word).ok();
        let number = text
            .and_then(|text| i64::from_str_radix(text, 8).ok())
            .ok_or_else(|| "argument couldn't be parsed as an octal number".to_owned())?;
        let mode = u32::try_from(number).ok().filter(|&mode| mode <= 0o777);
        mode.ok_or_else(|| out_of_range(0, 777))
    }

    fn show(&self, value: &u32) -> Vec<u8> {
        format!("{value:o}").into_bytes()
    }

    fn describe(&self) -> String {
        "octal number from 0 to 777".to_owned()
    }
}

/// A size in bytes from `min` to `max`, with an optional unit such as `mb`.
pub(super) struct Memory {
    pub(super) min: u64,
    pub(super) max: u64,
}

/// A size of at least `min` bytes, at most a signed 64-bit number.
pub(super) const fn memory(min: u64) -> Memory {
    Memory { min, max: LONG_MAX.unsigned_abs() }
}

/// A size of up to 64 bits.
pub(super) const ANY_MEMORY: Memory = Memory { min: 0, max: u64::MAX };

impl<T> Kind<T> for Memory
where
    T: TryFrom<u64> + TryInto<u64> + Copy + PartialEq + Display,
{
    fn parse(&self, words: &[&[u8]], _: &T) -> Result<T, String> {
        let bytes = base::size::parse_size(single(words)?)
            .ok_or_else(|| "argument must be a memory value".to_owned())?;
        let within = (self.min..=self.max).contains(&bytes).then_some(bytes);
        within
            .and_then(|bytes| T::try_from(bytes).ok())
            .ok_or_else(|| out_of_range(self.min, self.max))
    }

    fn show(&self, value: &T) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    fn lines(&self, name: &str, value: &T, default: &T) -> Vec<Line> {
        let bytes: Option<u64> = (*value).try_into().ok();
        let bytes = bytes.expect("a size was read from 64 bits");
        vec![line(name, memory_text(bytes).as_bytes(), value != default)]
    }

    fn describe(&self) -> String {
        match self.min {
            0 => "size in bytes".to_owned(),
            min => format!("size in bytes, at least {}", memory_text(min)),
        }
    }
}

/// Values of another kind, moved to the nearest of `min` to `max` instead of refused.
pub(super) struct Clamped<K, T> {
    pub(super) kind: K,
    pub(super) min: T,
    pub(super) max: T,
}

impl<T: Ord + Copy + Sync + Display, K: Kind<T>> Kind<T> for Clamped<K, T> {
    fn parse(&self, words: &[&[u8]], old: &T) -> Result<T, String> {
        Ok(self.kind.parse(words, old)?.clamp(self.min, self.max))
    }

    fn show(&self, value: &T) -> Vec<u8> {
        self.kind.show(value)
    }

    fn lines(&self, name: &str, value: &T, default: &T) -> Vec<Line> {
        self.kind.lines(name, value, default)
    }

    fn describe(&self) -> String {
        format!("{}; moved to the nearest of {} to {}", self.kind.describe(), self.min, self.max)
    }
}

/// A size in bytes or a percentage of `maxmemory`.
pub(super) struct MemoryOrPercent;

impl Kind<MemoryLimit> for MemoryOrPercent {
    fn parse(&self, words: &[&[u8]], _: &MemoryLimit) -> Result<MemoryLimit, String> {
        const TOO_MUCH: &str = "percentage argument must be less or equal to 100";
        const NEITHER: &str = "argument must be a memory or percent value";
        let word = single(words)?;
        if let Some(percent) = word.strip_suffix(b"%") {
            let percent = loose_integer::<i64>(percent).filter(|&percent| percent >= 0);
            let percent = percent.ok_or_else(|| NEITHER.to_owned())?;
            let percent = u8::try_from(percent).ok().filter(|&percent| percent <= 100);
            return match percent.ok_or_else(|| TOO_MUCH.to_owned())? {
                0 => Ok(MemoryLimit::Bytes(0)),
                percent => Ok(MemoryLimit::Percent(percent)),
            };
        }
        let bytes = base::size::parse_size(word).ok_or_else(|| NEITHER.to_owned())?;
        if bytes > LONG_MAX.unsigned_abs() {
            return Err(TOO_MUCH.to_owned());
        }
        Ok(MemoryLimit::Bytes(bytes))
    }

    fn show(&self, value: &MemoryLimit) -> Vec<u8> {
        match value {
            MemoryLimit::Bytes(bytes) => bytes.to_string(),
            MemoryLimit::Percent(percent) => format!("{percent}%"),
        }
        .into_bytes()
    }

    fn lines(&self, name: &str, value: &MemoryLimit, default: &MemoryLimit) -> Vec<Line> {
        let text = match value {
            MemoryLimit::Bytes(bytes) => memory_text(*bytes),
            MemoryLimit::Percent(percent) => format!("{percent}%"),
        };
        vec![line(name, text.as_bytes(), value != default)]
    }

    fn describe(&self) -> String {
        "size in bytes, or percentage of maxmemory".to_owned()
    }
}

/// One of the names of a [`Choice`].
pub(super) struct OneOf;

/// The error for a word that is not one of `names`.
pub(super) fn not_one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    format!("argument(s) must be one of the following: {}", names.join(", "))
}

impl<T: Choice> Kind<T> for OneOf {
    fn parse(&self, words: &[&[u8]], _: &T) -> Result<T, String> {
        let word = single(words)?;
        let found = T::NAMES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        let (_, value) = found.ok_or_else(|| not_one_of(T::NAMES.iter().map(|(name, _)| *name)))?;
        Ok(*value)
    }

    fn show(&self, value: &T) -> Vec<u8> {
        value.name().as_bytes().to_vec()
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = T::NAMES.iter().map(|(name, _)| *name).collect();
        names.join(" | ")
    }
}

/// Any bytes that `check` allows.
pub(super) struct Text {
    check: fn(&[u8]) -> Result<(), &'static str>,
    /// Whether an empty text means "none", so that a rewritten file leaves it out.
    absent_when_empty: bool,
    what: &'static str,
}

/// Any text; the empty one is a value like others.
pub(super) const TEXT: Text =
    Text { check: |_| Ok(()), absent_when_empty: false, what: "text, possibly empty" };

/// Any text; the empty one means none.
pub(super) const OPTIONAL_TEXT: Text =
    Text { check: |_| Ok(()), absent_when_empty: true, what: "text; empty for none" };

impl Text {
    /// A text that `check` accepts; its error is shown to the operator.
    pub(super) const fn checked(
        self,
        what: &'static str,
        check: fn(&[u8]) -> Result<(), &'static str>,
    ) -> Self {
        Self { check, what, ..self }
    }
}

impl Kind<Vec<u8>> for Text {
    fn parse(&self, words: &[&[u8]], _: &Vec<u8>) -> Result<Vec<u8>, String> {
        let word = single(words)?;
        (self.check)(word)?;
        Ok(word.to_vec())
    }

    fn show(&self, value: &Vec<u8>) -> Vec<u8> {
        value.clone()
    }

    fn lines(&self, name: &str, value: &Vec<u8>, default: &Vec<u8>) -> Vec<Line> {
        if value.is_empty() && self.absent_when_empty {
            return Vec::new();
        }
        vec![line(name, &quote(value), value != default)]
    }

    fn describe(&self) -> String {
        self.what.to_owned()
    }
}
