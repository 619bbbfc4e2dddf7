//! The replica that FAILOVER asks to lead, as far as its answers tell. If it leads, this server
//! must not lead again: there would be two primaries. So the failover ends only by an answer that
//! says which of them leads. And this server may be the only one that has all writes: it does not
//! take the data of one that lacks some, unless the takeover is forced.

use replication::LinkError;
use replication::handshake::Offer;

use super::wire::Trouble;

/// How a primary refuses PSYNC with FAILOVER, as far as an error shows it as it is.
const LEADS_ALREADY: &str = "be sent to a master";
/// The same of a replica that has other data, and of one that has older ones.
const HAVE_OTHER_DATA: [&str; 2] = ["replid must match", "lacks the end of the stream"];

/// What the log says of a replica that may have led before it got the data that it has.
const OTHER_DATA: &str = "it is a replica with other data than when it was asked to lead. If neither \
    it nor another one has led since, FAILOVER ABORT lets this server lead again";
/// The same of a primary that may be any.
const OTHER_STREAM: &str = "it leads, and this server cannot go on in its stream. If it is the one \
    that was asked to lead, send FAILOVER ABORT and REPLICAOF in one transaction";
/// The same of one that lacks something.
const LACKS_WRITES: &str = "it leads, and lacks writes that this server has. FAILOVER ABORT lets this \
    server lead again; with REPLICAOF in the same transaction, it drops these writes and follows";

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Successor {
    /// It was not asked yet, so it does not lead.
    #[default]
    NotAsked,
    /// It was asked, and its answer did not come.
    MayLead,
    /// The same, and a primary was found at its address. That may be another one: it is asked for
    /// its stream only.
    IsPrimary,
    /// It leads, and lacks writes that this server has. It is asked for its stream only.
    LacksWrites,
}

/// What follows from an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It leads.
    Leads,
    /// It does not, and will not.
    Refuses,
    /// Neither is sure: it has to be asked again.
    Open(Successor),
}

impl Successor {
    /// What follows from what has come of an attempt, in which it was asked for its stream or not.
    /// `end` is up to where it has to have the stream: none if the takeover is forced.
    pub(super) fn after(
        self,
        was_asked: bool,
        end: Option<u64>,
        answer: &Result<Offer, Trouble>,
    ) -> Verdict {
        let refusal = match answer {
            Err(Trouble::Protocol(LinkError::Refused(words))) => Some(&words[..]),
            // It has understood what it was asked.
            Err(Trouble::Protocol(LinkError::NotYet(_))) => Some(""),
            _ => None,
        };
        match (self, refusal) {
            _ if !self.may_be_asked() => match answer {
                Ok(Offer::Rest { .. }) => Verdict::Leads,
                _ => Verdict::Open(self),
            },
            _ if lacks_writes(end, answer) => Verdict::Open(Successor::LacksWrites),
            _ if answer.is_ok() => Verdict::Leads,
            (Successor::NotAsked, Some(_)) => Verdict::Refuses,
            (Successor::NotAsked, None) if !was_asked => match answer {
                Err(Trouble::Protocol(_)) => Verdict::Refuses,
                _ => Verdict::Open(self),
            },
            // That it has other data, or older ones, says nothing after it may have led.
            (Successor::MayLead, Some(words)) if words.contains(LEADS_ALREADY) => {
                Verdict::Open(Successor::IsPrimary)
            }
            _ => Verdict::Open(Successor::MayLead),
        }
    }

    /// Whether it is asked to lead: it does not lead already.
    pub(super) fn may_be_asked(self) -> bool {
        matches!(self, Successor::NotAsked | Successor::MayLead)
    }

    /// What the log says of an answer that leaves open who leads, if the operator has to decide.
    pub(super) fn advice(self, answer: &Result<Offer, Trouble>) -> Option<&'static str> {
        let differs = |words: &str| HAVE_OTHER_DATA.iter().any(|own| words.contains(own));
        match answer {
            Ok(_) if self == Successor::IsPrimary => Some(OTHER_STREAM),
            Ok(_) => Some(LACKS_WRITES),
            Err(Trouble::Protocol(LinkError::Refused(words))) if differs(words) => Some(OTHER_DATA),
            Err(_) => None,
        }
    }
}

fn lacks_writes(end: Option<u64>, answer: &Result<Offer, Trouble>) -> bool {
    match (end, answer) {
        (Some(end), Ok(Offer::All { offset, .. })) => *offset < end,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use replication::id::HistoryId;

    use super::*;

    fn refused(words: &str) -> Result<Offer, Trouble> {
        Err(Trouble::Protocol(LinkError::Refused(words.to_owned())))
    }

    #[test]
    fn only_an_answer_to_the_request_ends_it_once_it_was_sent() {
        use Successor::{IsPrimary, LacksWrites, MayLead, NotAsked};
        let history = HistoryId::parse(&[b'a'; 40]).unwrap();
        let rest = || Ok(Offer::Rest { history: Some(history), end: None });
        let all = || Ok(Offer::All { history, offset: 7 });
        let older = || Ok(Offer::All { history, offset: 6 });
        let lost = || Err(Trouble::Silent);
        let loads = || Err(Trouble::Protocol(LinkError::NotYet("LOADING".to_owned())));
        let nonsense = || Err(Trouble::Protocol(LinkError::Malformed("+CONTINUE x".to_owned())));
        let leads = || refused("ERR PSYNC FAILOVER can\\'t be sent to a master.");
        let other = || refused("ERR PSYNC FAILOVER replid must match my replid.");
        let lacks = || refused("ERR PSYNC FAILOVER this replica lacks the end of the stream.");
        for (before, was_asked, answer, expected) in [
            (NotAsked, true, rest(), Verdict::Leads),
            (NotAsked, true, all(), Verdict::Leads),
            (NotAsked, true, older(), Verdict::Open(LacksWrites)),
            (NotAsked, true, lacks(), Verdict::Refuses),
            (NotAsked, false, lost(), Verdict::Open(NotAsked)),
            (NotAsked, false, refused("ERR max number of clients reached"), Verdict::Refuses),
            (NotAsked, false, loads(), Verdict::Refuses),
            (NotAsked, false, nonsense(), Verdict::Refuses),
            (NotAsked, true, leads(), Verdict::Refuses),
            (NotAsked, true, other(), Verdict::Refuses),
            (NotAsked, true, lost(), Verdict::Open(MayLead)),
            (NotAsked, true, nonsense(), Verdict::Open(MayLead)),
            (MayLead, true, rest(), Verdict::Leads),
            (MayLead, false, refused("ERR max number of clients reached"), Verdict::Open(MayLead)),
            (MayLead, false, loads(), Verdict::Open(MayLead)),
            (MayLead, false, lost(), Verdict::Open(MayLead)),
            (MayLead, true, lost(), Verdict::Open(MayLead)),
            (MayLead, true, refused("BUSY"), Verdict::Open(MayLead)),
            (MayLead, true, all(), Verdict::Leads),
            (MayLead, true, older(), Verdict::Open(LacksWrites)),
            (LacksWrites, true, all(), Verdict::Open(LacksWrites)),
            (LacksWrites, true, rest(), Verdict::Leads),
            (MayLead, true, other(), Verdict::Open(MayLead)),
            (MayLead, true, lacks(), Verdict::Open(MayLead)),
            (MayLead, true, leads(), Verdict::Open(IsPrimary)),
            (IsPrimary, true, rest(), Verdict::Leads),
            (IsPrimary, true, all(), Verdict::Open(IsPrimary)),
            (IsPrimary, true, loads(), Verdict::Open(IsPrimary)),
        ] {
            let found = before.after(was_asked, Some(7), &answer);
            assert_eq!(found, expected, "{before:?} {was_asked} {answer:?}");
        }
        assert_eq!(NotAsked.after(true, None, &older()), Verdict::Leads, "it was forced");
        for (before, answer, expected) in [
            (NotAsked, older(), Some(LACKS_WRITES)),
            (LacksWrites, all(), Some(LACKS_WRITES)),
            (IsPrimary, older(), Some(OTHER_STREAM)),
            (MayLead, other(), Some(OTHER_DATA)),
            (MayLead, lacks(), Some(OTHER_DATA)),
            (MayLead, leads(), None),
            (MayLead, lost(), None),
        ] {
            assert_eq!(before.advice(&answer), expected, "{before:?} {answer:?}");
        }
    }
}
