//! The short forms of sizes, keys and mixes, on command lines and in the files of experiments.

use std::fmt;
use std::str::FromStr;

use base::size::parse_size;

use super::catalog::TESTS;
use super::{Keys, Operation, Schedule, Size};

/// A text that does not have the expected short form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

fn wrong<T>(text: impl fmt::Display) -> Result<T, ParseError> {
    Err(ParseError(text.to_string()))
}

/// Sizes with weights: `100`, or `100:99,2mb:1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes(pub Vec<Size>);

impl FromStr for Sizes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let size = |part: &str| {
            let (bytes, weight) = split_weight(part)?;
            let bytes = bytes.trim();
            let number = parse_size(bytes.as_bytes()).filter(|_| starts_with_digit(bytes));
            match number.and_then(|number| usize::try_from(number).ok()) {
                Some(bytes) => Ok(Size { bytes, weight }),
                None => wrong(format!(
                    "'{part}' is no size: sizes look like 100 or 2mb, several with their weights \
                     like 100:99,2mb:1"
                )),
            }
        };
        text.split(',').map(size).collect::<Result<_, _>>().map(Sizes)
    }
}

/// Operations with weights: `get:80,set:20`. An operation is the name of a test of redis-benchmark,
/// or a whole command: `HGETALL user:__rand_int__:5` has the weight 5.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix(pub Vec<Operation>);

impl FromStr for Mix {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let operation = |part: &str| {
            let (words, weight) = split_weight(part)?;
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            match &words[..] {
                [] => wrong(format!("'{text}' names an operation without a name")),
                [name] => {
                    let commands = || TESTS.iter().filter(|test| test.opens.is_none());
                    let test = commands().find(|test| name.eq_ignore_ascii_case(test.name));
                    let Some(test) = test else {
                        let names: Vec<&str> = commands().map(|test| test.name).collect();
                        return wrong(format!(
                            "there is no operation '{name}': these have a name: {}; others are \
                             written with their arguments, like 'HGETALL user:__rand_int__:5'",
                            names.join(", ")
                        ));
                    };
                    Ok(Operation { weight, ..test.operation(true) })
                }
                [first, ..] => {
                    Ok(Operation { name: first.to_uppercase(), weight, arguments: words })
                }
            }
        };
        text.split(',').map(operation).collect::<Result<_, _>>().map(Mix)
    }
}

impl FromStr for Keys {
    type Err = ParseError;

    /// `1000`, `uniform:1000`, `zipf:1000:0.99`, `hot:1000:10:0.9`, `sequential:1000`, `literal`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parts: Vec<&str> = text.split(':').map(str::trim).collect();
        let count = |part: &str| {
            let number = parse_size(part.as_bytes()).filter(|_| starts_with_digit(part));
            number.filter(|count| *count > 0)
        };
        let share = |part: &str| part.parse::<f64>().ok().filter(|share| share.is_finite());
        let keys = match parts[..] {
            ["literal"] => Some(Keys::Literal),
            [all] | ["uniform", all] => count(all).map(|count| Keys::Uniform { count }),
            ["sequential", all] => count(all).map(|count| Keys::Sequential { count }),
            ["zipf", all, exponent] => count(all)
                .zip(share(exponent))
                .map(|(count, exponent)| Keys::Zipf { count, exponent }),
            ["hot", all, hot, part] => count(all)
                .zip(count(hot))
                .zip(share(part))
                .map(|((count, hot), share)| Keys::Hot { count, hot, share }),
            _ => None,
        };
        keys.map_or_else(
            || {
                wrong(format!(
                    "'{text}' says no keys: use uniform:COUNT, sequential:COUNT, \
                     zipf:COUNT:EXPONENT, hot:COUNT:HOT:SHARE or literal"
                ))
            },
            Ok,
        )
    }
}

impl FromStr for Schedule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "constant" => Ok(Schedule::Constant),
            "poisson" => Ok(Schedule::Poisson),
            _ => wrong(format!("there is no schedule '{text}': there are constant and poisson")),
        }
    }
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// The part before the last colon, and the weight after it; 1 if there is none.
fn split_weight(part: &str) -> Result<(&str, f64), ParseError> {
    let Some((before, weight)) = part.rsplit_once(':') else { return Ok((part, 1.0)) };
    match weight.trim().parse::<f64>() {
        Ok(weight) if weight.is_finite() && weight >= 0.0 => Ok((before, weight)),
        // `GET key:__rand_int__` has a colon and no weight.
        _ if before.contains(char::is_whitespace) => Ok((part, 1.0)),
        _ => wrong(format!("'{weight}' in '{part}' is no weight: 0 or more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let size = |bytes, weight| Size { bytes, weight };
        assert_eq!("100".parse(), Ok(Sizes(vec![size(100, 1.0)])));
        let mixture = Sizes(vec![size(100, 99.0), size(2 << 20, 1.0)]);
        assert_eq!("100:99,2mb:1".parse(), Ok(mixture));
        for text in ["", "mb", "12q", "5:x", "5:-1", "1,,2"] {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
    }

    #[test]
    fn mixes() {
        let Mix(mix) = "get:80,set:20".parse().expect("a mix");
        let shown: Vec<_> = mix.iter().map(|one| (&one.name[..], one.weight)).collect();
        assert_eq!(shown, [("GET", 80.0), ("SET", 20.0)]);
        let Mix(mix) = "HGETALL user:__rand_int__:5,get key:__rand_int__".parse().expect("a mix");
        assert_eq!(mix[0].arguments, ["HGETALL", "user:__rand_int__"]);
        assert_eq!((mix[0].weight, mix[1].weight), (5.0, 1.0));
        assert_eq!(mix[1].arguments, ["get", "key:__rand_int__"]);
        for text in ["", "nothing:1", "get:x", "get,,set"] {
            assert!(text.parse::<Mix>().is_err(), "{text}");
        }
    }

    #[test]
    fn keys() {
        assert_eq!("uniform:1000000".parse(), Ok(Keys::Uniform { count: 1_000_000 }));
        assert_eq!("7".parse(), Ok(Keys::Uniform { count: 7 }));
        assert_eq!("sequential:1k".parse(), Ok(Keys::Sequential { count: 1000 }));
        assert_eq!("zipf:10:0.99".parse(), Ok(Keys::Zipf { count: 10, exponent: 0.99 }));
        let hot = Keys::Hot { count: 1000, hot: 10, share: 0.9 };
        assert_eq!("hot:1000:10:0.9".parse(), Ok(hot));
        assert_eq!("literal".parse(), Ok(Keys::Literal));
        for text in ["", "0", "uniform", "zipf:10", "zipf:10:x", "other:5", "uniform:-1"] {
            assert!(text.parse::<Keys>().is_err(), "{text}");
        }
    }

    #[test]
    fn schedules() {
        assert_eq!("poisson".parse(), Ok(Schedule::Poisson));
        assert!("even".parse::<Schedule>().is_err());
    }
}
