//! How a replica introduces itself, and what its primary offers.
//!
//! ```text
//! replica                                     primary
//! PING                                        +PONG, or an error that asks for a password
//! AUTH [user] password                        +OK
//! REPLCONF listening-port 6380                +OK, or an error: it is an older one
//! REPLCONF ip-address 10.0.0.2                (only if an address is announced)
//! REPLCONF capa eof capa psync2               (a node of a cluster: also capa continue-end; who
//!                                             asks a replica to lead: capa successor-has-all)
//! REPLCONF cluster-node 0123..:15             (only by a node of a cluster, to another one)
//! REPLCONF cluster-primary 4567..:15          (the same: whom it wants, and in which epoch)
//! REPLCONF version 9.1.2                      Valkey chooses its format of files by it
//! PSYNC history offset [FAILOVER]             +FULLRESYNC history offset | +CONTINUE [history [end]]
//! ```
//!
//! The end is how far the stream reached right then. Who asks for it by `continue-end` is told.
//!
//! The offset that PSYNC names is that of the first byte that the replica wants. A primary that
//! does not know PSYNC is asked with SYNC, and sends the file at once.

use resp::client::encode_command;

use crate::error::LinkError;
use crate::id::HistoryId;

/// What a replica says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Introduction {
    /// The user at the primary; empty for the default one.
    pub user: Vec<u8>,
    /// The password there; empty for none.
    pub password: Vec<u8>,
    /// The port at which the replica is reached.
    pub port: u16,
    /// The address at which it is reached; empty to let the primary look at the connection.
    pub address: Vec<u8>,
    /// The name that the replica has as a node of a cluster, and the epoch in which it follows;
    /// empty if it is none.
    pub node: Vec<u8>,
    /// The name of the primary that it wants as such a node, and that one's epoch: at the address
    /// may be another one.
    pub primary: Vec<u8>,
    /// The version of Valkey whose files it reads; empty to be a Redis of version 8, and get the
    /// files that such a one reads.
    pub version: &'static str,
}

/// What a replica asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All data.
    All,
    /// The stream of this history from here on, if the primary still has it.
    From {
        /// The history.
        history: HistoryId,
        /// The offset of the first byte that is wanted: one more than that of the last byte that
        /// the replica has.
        first: u64,
    },
    /// The same of the replica that is to lead, and that becomes a primary by it.
    FromSuccessor {
        /// The history.
        history: HistoryId,
        /// See [`Wanted::From`].
        first: u64,
        /// It is to lead even if it lacks some of the stream up to there.
        forced: bool,
    },
}

/// What the primary offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// All data, and then the stream of this history after this offset.
    All {
        /// The history.
        history: HistoryId,
        /// The offset up to which the data has everything.
        offset: u64,
    },
    /// All data, and then a stream without offsets, as servers before 2.8 send it.
    AllWithoutOffsets,
    /// The stream goes on where it was asked for.
    Rest {
        /// The name that the history has now, if the primary says it.
        history: Option<HistoryId>,
        /// The offset of the last byte that the primary had when it said so, if it tells that.
        end: Option<u64>,
    },
}

/// What follows from a line of the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next line is waited for.
    Wait,
    /// These bytes are to be sent.
    Send(Vec<u8>),
    /// The same, and this is worth a line in the log.
    Note(String, Vec<u8>),
    /// The handshake is over.
    Done(Offer),
}

/// What the next line answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Ping,
    Auth,
    Port,
    Address,
    Abilities,
    Node,
    Primary,
    Version,
    Psync,
}

/// See the module's text.
#[derive(Debug)]
pub struct Handshake {
    introduction: Introduction,
    wanted: Wanted,
    answers: Answers,
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(words.iter(), &mut bytes);
    bytes
}

/// Tells the primary how far the replica has come, and up to which offset its append-only file is
/// synced, if it has one.
pub fn acknowledgement(offset: u64, synced: Option<u64>) -> Vec<u8> {
    let offset = offset.to_string();
    let words = [b"REPLCONF", &b"ACK"[..], offset.as_bytes()];
    match synced.map(|synced| synced.to_string()) {
        Some(synced) => command(&[&words[..], &[b"FACK", synced.as_bytes()]].concat()),
        None => command(&words),
    }
}

/// What Redis says from version 8 on. Such a primary answers it with a protocol of its own, so it
/// is for a Dunlin, which recognises by it who reads which files.
const REDIS_8: &[u8] = b"rdb-channel-repl";

/// What asks for the end of the stream after `+CONTINUE`. Others know nothing of it, and let it be.
const NAMED_END: &[u8] = b"continue-end";

/// A replica that is to lead must have all of the stream up to where it is asked for. Others know
/// nothing of it, and let it be.
const SUCCESSOR_HAS_ALL: &[u8] = b"successor-has-all";

/// Words with which a primary refuses PSYNC for a while.
const NOT_YET: [&[u8]; 2] = [b"-NOMASTERLINK", b"-LOADING"];

/// Errors with which a primary answers PING, and yet may go on.
const LOCKED_DOORS: [&[u8]; 3] = [b"-NOAUTH", b"-NOPERM", b"-ERR operation not permitted"];

impl Handshake {
    /// A handshake, and the bytes that begin it.
    pub fn begin(introduction: Introduction, wanted: Wanted) -> (Handshake, Vec<u8>) {
        let handshake = Handshake { introduction, wanted, answers: Answers::Ping };
        (handshake, command(&[b"PING"]))
    }

    /// Whether the primary was asked for its stream, or is about to be.
    pub fn has_asked(&self) -> bool {
        self.answers == Answers::Psync
    }

    /// Takes a line of the primary, without its end.
    ///
    /// # Errors
    /// [`LinkError`]: the primary refuses, or is none.
    pub fn take(&mut self, line: &[u8]) -> Result<Step, LinkError> {
        if line.is_empty() {
            // It is alive, and will answer.
            return Ok(Step::Wait);
        }
        match self.answers {
            Answers::Ping => self.after_ping(line),
            Answers::Auth if line.starts_with(b"-") => {
                Err(LinkError::Refused(format!("AUTH: {}", crate::error::shown(&line[1..]))))
            }
            Answers::Psync => self.after_psync(line),
            answers => self.after_word(answers, line),
        }
    }

    fn after_ping(&mut self, line: &[u8]) -> Result<Step, LinkError> {
        let passes =
            line.starts_with(b"+") || LOCKED_DOORS.iter().any(|locked| line.starts_with(locked));
        if !passes {
            return match line.strip_prefix(b"-") {
                Some(words) if words.starts_with(b"LOADING") => {
                    Err(LinkError::NotYet(crate::error::shown(words)))
                }
                Some(words) => Err(LinkError::refused(words)),
                None => Err(LinkError::malformed("no primary answers PING so", line)),
            };
        }
        Ok(Step::Send(self.next_word(Answers::Ping)))
    }

    /// An error to a word that a primary may not know is no reason to give up.
    fn after_word(&mut self, answers: Answers, line: &[u8]) -> Result<Step, LinkError> {
        let sent = self.next_word(answers);
        match (line.first(), answers) {
            (Some(b'+'), _) => Ok(Step::Send(sent)),
            // Without it, the data may be of anybody.
            (Some(b'-'), Answers::Primary) => {
                Err(LinkError::NotYet(crate::error::shown(&line[1..])))
            }
            // Valkey alone knows it.
            (Some(b'-'), Answers::Version) => Ok(Step::Send(sent)),
            (Some(b'-'), _) => {
                let (what, words) = (answers.words(), crate::error::shown(&line[1..]));
                let note = format!("The primary does not take REPLCONF {what}: {words}");
                Ok(Step::Note(note, sent))
            }
            _ => Err(LinkError::malformed("no primary answers a handshake so", line)),
        }
    }

    /// What is sent after the answer to another word, in the order of the handshake.
    fn next_word(&mut self, answered: Answers) -> Vec<u8> {
        let own = &self.introduction;
        let port = own.port.to_string();
        let next = match answered {
            Answers::Ping if !own.password.is_empty() => Answers::Auth,
            Answers::Ping | Answers::Auth => Answers::Port,
            Answers::Port if !own.address.is_empty() => Answers::Address,
            Answers::Port | Answers::Address => Answers::Abilities,
            Answers::Abilities if !own.node.is_empty() => Answers::Node,
            Answers::Node if !own.primary.is_empty() => Answers::Primary,
            Answers::Abilities | Answers::Node | Answers::Primary if !own.version.is_empty() => {
                Answers::Version
            }
            Answers::Abilities
            | Answers::Node
            | Answers::Primary
            | Answers::Version
            | Answers::Psync => Answers::Psync,
        };
        self.answers = next;
        match next {
            Answers::Ping => command(&[b"PING"]),
            Answers::Auth if own.user.is_empty() => command(&[b"AUTH", &own.password]),
            Answers::Auth => command(&[b"AUTH", &own.user, &own.password]),
            Answers::Port => command(&[b"REPLCONF", b"listening-port", port.as_bytes()]),
            Answers::Address => command(&[b"REPLCONF", b"ip-address", &own.address]),
            Answers::Abilities => {
                let mut words: Vec<&[u8]> = vec![b"REPLCONF", b"capa", b"eof", b"capa", b"psync2"];
                if own.version.is_empty() {
                    words.extend([b"capa", REDIS_8]);
                }
                if !own.node.is_empty() {
                    words.extend([b"capa", NAMED_END]);
                }
                if let Wanted::FromSuccessor { forced: false, .. } = self.wanted {
                    words.extend([b"capa", SUCCESSOR_HAS_ALL]);
                }
                command(&words)
            }
            Answers::Node => command(&[b"REPLCONF", b"cluster-node", &own.node]),
            Answers::Primary => command(&[b"REPLCONF", b"cluster-primary", &own.primary]),
            Answers::Version => command(&[b"REPLCONF", b"version", own.version.as_bytes()]),
            Answers::Psync => match self.wanted {
                Wanted::All => command(&[b"PSYNC", b"?", b"-1"]),
                Wanted::From { history, first } => {
                    command(&[b"PSYNC", history.as_bytes(), first.to_string().as_bytes()])
                }
                Wanted::FromSuccessor { history, first, .. } => {
                    let first = first.to_string();
                    command(&[b"PSYNC", history.as_bytes(), first.as_bytes(), b"FAILOVER"])
                }
            },
        }
    }

    fn after_psync(&mut self, line: &[u8]) -> Result<Step, LinkError> {
        if let Some(rest) = line.strip_prefix(b"+FULLRESYNC") {
            return full(rest)
                .map(Step::Done)
                .ok_or_else(|| LinkError::malformed("a full sync of no history", line));
        }
        if let Some(rest) = line.strip_prefix(b"+CONTINUE") {
            let is_one = rest.is_empty() || rest.starts_with(b" ");
            if self.wanted == Wanted::All || !is_one {
                return Err(LinkError::malformed("a stream that nobody has asked for", line));
            }
            let rest = rest.trim_ascii();
            let (name, end) = match rest.iter().position(|byte| *byte == b' ') {
                Some(at) => (&rest[..at], Some(&rest[at + 1..])),
                None => (rest, None),
            };
            let history = HistoryId::parse(name);
            if history.is_none() && !name.is_empty() {
                return Err(LinkError::malformed("a stream of no history", line));
            }
            // What others may say there one day is not for us.
            let end = end.and_then(base::num::parse_i64).and_then(|end| u64::try_from(end).ok());
            return Ok(Step::Done(Offer::Rest { history, end }));
        }
        if NOT_YET.iter().any(|words| line.starts_with(words)) {
            return Err(LinkError::NotYet(crate::error::shown(&line[1..])));
        }
        if let Wanted::FromSuccessor { .. } = self.wanted {
            return Err(LinkError::refused(line.strip_prefix(b"-").unwrap_or(line)));
        }
        // A primary of old does not know the word. SYNC is sent as a line of words. The file
        // follows at once.
        Ok(Step::Done(Offer::AllWithoutOffsets))
    }
}

/// What asks a primary that does not know PSYNC.
pub const SYNC: &[u8] = b"SYNC\r\n";

impl Answers {
    fn words(self) -> &'static str {
        match self {
            Answers::Port => "listening-port",
            Answers::Address => "ip-address",
            Answers::Node => "cluster-node",
            Answers::Primary => "cluster-primary",
            Answers::Version => "version",
            _ => "capa",
        }
    }
}

/// What follows `+FULLRESYNC`: the history and the offset.
fn full(rest: &[u8]) -> Option<Offer> {
    let mut words = rest.strip_prefix(b" ")?.split(|byte| *byte == b' ');
    let history = HistoryId::parse(words.next()?)?;
    let offset = base::num::parse_i64(words.next()?)?;
    let offset = u64::try_from(offset).ok()?;
    words.next().is_none().then_some(Offer::All { history, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn id() -> HistoryId {
        HistoryId::parse(ID.as_bytes()).unwrap()
    }

    fn introduction() -> Introduction {
        Introduction { port: 6380, version: "9.1.2", ..Introduction::default() }
    }

    /// What is sent, when a primary answers with these lines.
    fn sent(
        introduction: Introduction,
        wanted: Wanted,
        lines: &[&str],
    ) -> (String, Result<Step, LinkError>) {
        let (mut handshake, first) = Handshake::begin(introduction, wanted);
        let mut sent = first;
        let mut last = Ok(Step::Wait);
        for line in lines {
            last = handshake.take(line.as_bytes());
            if let Ok(Step::Send(bytes) | Step::Note(_, bytes)) = &last {
                sent.extend_from_slice(bytes);
            }
        }
        let words = String::from_utf8(sent).unwrap();
        let words = words.split("\r\n").filter(|word| !word.starts_with(['*', '$']));
        (words.collect::<Vec<_>>().join(" ").trim().to_owned(), last)
    }

    #[test]
    fn a_replica_introduces_itself() {
        let (words, last) =
            sent(introduction(), Wanted::All, &["+PONG", "+OK", "", "+OK", "-ERR what"]);
        assert_eq!(
            words,
            "PING REPLCONF listening-port 6380 REPLCONF capa eof capa psync2 REPLCONF version \
             9.1.2 PSYNC ? -1"
        );
        assert!(matches!(last, Ok(Step::Send(_))));
    }

    #[test]
    fn a_replica_shows_its_password_and_its_address() {
        let own = Introduction {
            user: b"me".to_vec(),
            password: b"secret".to_vec(),
            address: b"10.0.0.2".to_vec(),
            ..introduction()
        };
        let wanted = Wanted::From { history: id(), first: 151 };
        let (words, _) = sent(
            own.clone(),
            wanted,
            &["-NOAUTH Authentication required.", "+OK", "+OK", "+OK", "+OK", "+OK"],
        );
        assert_eq!(
            words,
            format!(
                "PING AUTH me secret REPLCONF listening-port 6380 REPLCONF ip-address 10.0.0.2 \
                 REPLCONF capa eof capa psync2 REPLCONF version 9.1.2 PSYNC {ID} 151"
            )
        );
        let (_, last) = sent(own, wanted, &["+PONG", "-WRONGPASS invalid"]);
        assert_eq!(last, Err(LinkError::Refused("AUTH: WRONGPASS invalid".into())));
    }

    #[test]
    fn a_replica_without_a_version_of_valkey_reads_what_redis_8_does() {
        let own = Introduction { version: "", ..introduction() };
        let (words, _) = sent(own, Wanted::All, &["+PONG", "+OK", "+OK"]);
        let expected = "REPLCONF capa eof capa psync2 capa rdb-channel-repl PSYNC ? -1";
        assert!(words.ends_with(expected), "{words}");
    }

    #[test]
    fn a_node_of_a_cluster_says_which_one_it_is() {
        let node = ID.as_bytes().to_vec();
        let own = Introduction { node: node.clone(), primary: node, ..introduction() };
        let (words, _) = sent(own.clone(), Wanted::All, &["+PONG", "+OK", "+OK", "+OK", "+OK"]);
        let expected = format!(
            "psync2 capa continue-end REPLCONF cluster-node {ID} REPLCONF cluster-primary {ID} \
             REPLCONF version 9.1.2"
        );
        assert!(words.ends_with(&expected), "{words}");
        let lines = ["+PONG", "+OK", "+OK", "+OK", "-ERR Unrecognized REPLCONF option"];
        let (_, last) = sent(own, Wanted::All, &lines);
        assert!(last.unwrap_err().is_temporary());
    }

    #[test]
    fn a_primary_without_a_word_is_a_primary() {
        let (words, last) = sent(
            introduction(),
            Wanted::All,
            &["+PONG", "-ERR Unrecognized REPLCONF option", "+OK", "+OK", "-ERR unknown command"],
        );
        assert!(words.ends_with("PSYNC ? -1"));
        assert_eq!(last, Ok(Step::Done(Offer::AllWithoutOffsets)));
    }

    fn offered(wanted: Wanted, line: &str) -> Result<Step, LinkError> {
        sent(introduction(), wanted, &["+PONG", "+OK", "+OK", "+OK", line]).1
    }

    #[test]
    fn offers_are_understood() {
        let from = Wanted::From { history: id(), first: 8 };
        let full = format!("+FULLRESYNC {ID} 77");
        assert_eq!(offered(from, &full), Ok(Step::Done(Offer::All { history: id(), offset: 77 })));
        assert_eq!(
            offered(from, "+CONTINUE"),
            Ok(Step::Done(Offer::Rest { history: None, end: None }))
        );
        assert_eq!(
            offered(from, &format!("+CONTINUE {ID}")),
            Ok(Step::Done(Offer::Rest { history: Some(id()), end: None }))
        );
        for (said, end) in [("88", Some(88)), ("-1", None), ("more", None)] {
            assert_eq!(
                offered(from, &format!("+CONTINUE {ID} {said}")),
                Ok(Step::Done(Offer::Rest { history: Some(id()), end }))
            );
        }
        for line in ["-NOMASTERLINK Can't SYNC while not connected", "-LOADING Redis is loading"] {
            assert!(offered(from, line).unwrap_err().is_temporary(), "{line}");
        }
    }

    #[test]
    fn offers_without_meaning_are_errors() {
        let from = Wanted::From { history: id(), first: 8 };
        for line in [
            "+FULLRESYNC",
            "+FULLRESYNC x 1",
            &format!("+FULLRESYNC {ID}"),
            &format!("+FULLRESYNC {ID} -1"),
            &format!("+FULLRESYNC {ID} 1 2"),
            &format!("+FULLRESYNC {ID} 99999999999999999999"),
            "+CONTINUED",
            "+CONTINUE x",
        ] {
            assert!(matches!(offered(from, line), Err(LinkError::Malformed(_))), "{line}");
        }
        assert!(offered(Wanted::All, "+CONTINUE").is_err(), "nobody has asked for that");
        let (_, last) = sent(introduction(), Wanted::All, &["HTTP/1.1 400 Bad Request"]);
        let text = "no primary answers PING so: \"HTTP/1.1 400 Bad Request\"";
        assert_eq!(last.unwrap_err().to_string(), text);
        let (_, last) = sent(introduction(), Wanted::All, &["-DENIED protected mode"]);
        assert_eq!(last.unwrap_err().to_string(), "it refuses: DENIED protected mode");
    }

    #[test]
    fn an_acknowledgement_is_a_command() {
        assert_eq!(
            acknowledgement(150, None),
            b"*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$3\r\n150\r\n"
        );
        assert_eq!(
            acknowledgement(150, Some(7)),
            b"*5\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$3\r\n150\r\n$4\r\nFACK\r\n$1\r\n7\r\n"
        );
    }
}
