//! The names of nodes and shards, and what counts the times of a primary.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name of 20 bytes, which is printed as 40 hexadecimal digits.
macro_rules! name_of_twenty_bytes {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 20]);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
                let mut digits = [0; 40];
                for (two, byte) in digits.as_chunks_mut().0.iter_mut().zip(self.0) {
                    *two = [digit(byte >> 4), digit(byte & 15)];
                }
                formatter.write_str(str::from_utf8(&digits).map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }

        impl FromStr for $name {
            type Err = NotAName;

            fn from_str(text: &str) -> Result<Self, NotAName> {
                parse(text).map($name).ok_or(NotAName)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'d> Deserialize<'d> for $name {
            fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'d, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

name_of_twenty_bytes! {
    /// The name of a node: of one server's data, for as long as it has that data's folder.
    NodeId
}

name_of_twenty_bytes! {
    /// The name of a shard: of the nodes that have the data of the same slots.
    ShardId
}

/// The time of one primary of one shard: the revision of etcd at which its leader key was created.
/// It rises over the whole cluster. 0 stands for "before the first".
pub type Epoch = i64;

/// One run of a node's process, as it was drawn at the start.
pub type Incarnation = u64;

/// What is no name of 40 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAName;

impl fmt::Display for NotAName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name has 40 hexadecimal digits")
    }
}

impl std::error::Error for NotAName {}

fn parse(text: &str) -> Option<[u8; 20]> {
    let digits = text.as_bytes();
    if digits.len() != 40 {
        return None;
    }
    let digit = |at: usize| char::from(digits[at]).to_digit(16).map(|digit| digit as u8);
    let mut bytes = [0; 20];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = digit(2 * at)? << 4 | digit(2 * at + 1)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printed_as_they_are_parsed() {
        let text = "00ff0102030405060708090a0b0c0d0e0f101112";
        let node: NodeId = text.parse().expect("it is a name");
        assert_eq!(node.to_string(), text);
        assert_eq!("00ff".parse::<NodeId>(), Err(NotAName));
        assert_eq!(text.replace('f', "g").parse::<NodeId>(), Err(NotAName));
        let json = serde_json::to_string(&node).expect("it is text");
        assert_eq!(serde_json::from_str::<NodeId>(&json).expect("it was written so"), node);
    }
}
