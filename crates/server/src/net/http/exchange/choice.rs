//! Durability and freshness that a client chooses for one request.

use engine::journal::backlog::Position;
use engine::session::choice::Durability;
use http::request::Head;

/// What a client has chosen for a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct Choice {
    pub(super) durability: Durability,
    /// Until the first command of the request begins.
    pub(super) read_after: Option<Position>,
}

impl Choice {
    /// The choice in the head of a request to a node of a cluster, or to another server. The error
    /// says what is wrong with it.
    pub(in super::super) fn of(
        head: &Head<'_>,
        is_node: bool,
    ) -> Result<Option<Box<Choice>>, &'static str> {
        let durability = match only(head, "dunlin-durability")? {
            None => Durability::Default,
            Some(text) => {
                let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                Durability::parse(words).ok_or(
                    "Dunlin-Durability is default, memory, fsync, quorum, or replicas N [fsync]",
                )?
            }
        };
        if durability == Durability::Quorum && !is_node {
            return Err("Dunlin-Durability: quorum is for nodes of a cluster: this server is none");
        }
        let read_after = only(head, "dunlin-min-position")?.map(|text| {
            Position::parse(text.trim_ascii())
                .ok_or("Dunlin-Min-Position is a position that Dunlin-Position has told")
        });
        let choice = Choice { durability, read_after: read_after.transpose()? };
        let is_none = choice.durability == Durability::Default && choice.read_after.is_none();
        Ok((!is_none).then(|| Box::new(choice)))
    }
}

/// The value of a header. Of two it could be that others on the way, or the client, mean the other.
fn only<'h>(head: &Head<'h>, name: &str) -> Result<Option<&'h [u8]>, &'static str> {
    let mut all = head.all(name);
    match (all.next(), all.next()) {
        (value, None) => Ok(value),
        _ => Err("Dunlin-Durability and Dunlin-Min-Position may be given once"),
    }
}
