//! The options of a GET: conditions, a range, and the form in which the client wants the value.

use http::request::Head;
use http::tag::{self, Tags, Variant};
use http::weight;

use crate::net::http::exchange::GetOptions;

/// The options of a GET besides its address, if it has any.
pub(super) fn get(head: &Head<'_>) -> Option<Box<GetOptions>> {
    let has_accept = head.header("accept").is_some_and(|accept| accept != b"*/*");
    let tags = |name, strong| {
        let mut lists = head.all(name).peekable();
        lists.peek().is_some().then(|| tag::parse(lists, strong))
    };
    let (none_match, matches) = (tags("if-none-match", false), tags("if-match", true));
    let range = head.header("range").filter(|_| head.method == "GET").and_then(range);
    if !has_accept && none_match.is_none() && matches.is_none() && range.is_none() {
        return None;
    }
    // A range would be of no use to a client that has no other part.
    let if_range = head.header("if-range").map(|tag| match tag::parse([tag].into_iter(), true) {
        // That is a word of other conditions, and no tag.
        Tags::Any => Tags::Listed(Vec::new()),
        tags => tags,
    });
    let form = if has_accept { accepted(head) } else { Some(Variant::Plain) };
    Some(Box::new(GetOptions { none_match, matches, range, if_range, form }))
}

/// The form in which a client wants a collection: the one with the largest weight, or the first of
/// those with the same.
fn accepted(head: &Head<'_>) -> Option<Variant> {
    let forms = [
        ("application/json", Variant::Plain),
        ("text/plain", Variant::Text),
        ("application/msgpack", Variant::MsgPack),
    ];
    let mut best: Option<(u16, usize, Variant)> = None;
    for (content_type, form) in forms {
        let Some((weight, position)) = weight::of_type(head.all("accept"), content_type) else {
            continue;
        };
        let is_better = best
            .is_none_or(|(most, first, _)| weight > most || (weight == most && position < first));
        if weight > 0 && is_better {
            best = Some((weight, position, form));
        }
    }
    // An empty list takes anything.
    let says_nothing = weight::items(head.all("accept")).next().is_none();
    best.map(|(_, _, form)| form).or(says_nothing.then_some(Variant::Plain))
}

/// Whether a client gives OpenMetrics at least the weight of the earlier format of Prometheus.
pub(super) fn takes_openmetrics(head: &Head<'_>) -> bool {
    let most = |name: &str| {
        let own = weight::items(head.all("accept"))
            .filter(|(item, _)| item.eq_ignore_ascii_case(name.as_bytes()));
        own.map(|(_, weight)| weight).max().unwrap_or(0)
    };
    let open = most("application/openmetrics-text");
    open > 0 && open >= most("text/plain")
}

/// A single range of bytes: the first and the last one, or how many at the end.
fn range(text: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let (first, last) = {
        let (unit, text) = std::str::from_utf8(text).ok()?.split_once('=')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        text.trim().split_once('-')?
    };
    let number = |text: &str| match text {
        "" => Some(None),
        // No value has more bytes than this type can count.
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(Some(text.parse().unwrap_or(u64::MAX)))
        }
        _ => None,
    };
    let (first, last) = (number(first)?, number(last)?);
    match (first, last) {
        (None, None) => None,
        (Some(first), Some(last)) if first > last => None,
        range => Some(range),
    }
}
