//! How the bases and segments of a line hang together: how far its stream can be followed, and what
//! is missing in between or at its end.

use crate::manifest::{Base, Manifest, Segment};
use crate::moment::Moment;
use crate::position::Position;

impl Segment {
    /// Whether the stream up to a position goes on with it. Another name of the history begins
    /// exactly where the old one ends: before that, it is of other data.
    pub(crate) fn goes_on_after(&self, reached: Position) -> bool {
        self.from.offset == reached.offset
            || self.from.offset < reached.offset && self.from.history == reached.history
    }
}

/// A part of a line's stream that is missing: nothing leads from `from` to `to`.
#[derive(Debug, PartialEq)]
pub(crate) struct Gap<'m> {
    pub(crate) from: Position,
    /// When the last bytes before it arrived.
    pub(crate) since: Moment,
    pub(crate) to: Position,
    pub(crate) until: Moment,
    /// The base or the segment that begins after it, or the first one that is missing where nothing
    /// does.
    pub(crate) file: &'m str,
    /// Nothing begins after it.
    pub(crate) is_end: bool,
}

impl std::fmt::Display for Gap<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Gap { from, to, file, is_end, .. } = self;
        let place = if *is_end { "with" } else { "before" };
        write!(formatter, "the stream from {from} to {} is missing {place} {file}", to.offset)
    }
}

/// A base or a segment within its line.
struct Part<'m> {
    begin: Position,
    begun: Moment,
    end: Position,
    ended: Moment,
    file: &'m str,
}

/// Those of a line among these, in the order of their offsets.
fn parts<'m>(bases: &'m [Base], segments: &'m [Segment], line: u64) -> Vec<Part<'m>> {
    let bases = bases.iter().filter(|base| base.line == line).map(|base| {
        let Base { position: at, time, .. } = *base;
        Part { begin: at, begun: time, end: at, ended: time, file: &base.file.name }
    });
    let segments = segments.iter().filter(|segment| segment.line == line).map(|segment| Part {
        begin: segment.from,
        begun: segment.first_time,
        end: segment.end(),
        ended: segment.last_time,
        file: &segment.file.name,
    });
    let mut parts: Vec<_> = bases.chain(segments).collect();
    parts.sort_by_key(|part| part.begin.offset);
    parts
}

impl Manifest {
    /// The base with which a line begins, be it there or missing.
    pub(crate) fn first_base_of(&self, line: u64) -> Option<&Base> {
        let bases = self.known_bases().filter(|base| base.line == line);
        bases.min_by_key(|base| base.position.offset)
    }

    /// How far a line reaches, and when that was; none if it has no base.
    pub(crate) fn end_of(&self, line: u64) -> Option<(Position, Moment)> {
        self.bases_of(line).last().map(|base| self.reach_of(base))
    }

    /// The newest time that anything of a server has, be it there or missing.
    pub(crate) fn newest_time(&self) -> Moment {
        let bases = self.known_bases().filter(|base| base.imported.is_none());
        let segments = self.segments.iter().chain(&self.missing.segments);
        let times = segments.map(|segment| segment.last_time);
        times.chain(bases.map(|base| base.time)).max().unwrap_or_default()
    }

    /// What the user should know where the newest time is far ahead of the clock.
    pub(crate) fn ahead_of(&self, now: Moment) -> Option<String> {
        let newest = self.newest_time();
        newest.is_far_ahead_of(now).then(|| {
            format!(
                "the backup has data of {newest}, and the clock says {now}: one of both was wrong. \
                 Until {newest}, times of the backup are no times of the clock; positions are right"
            )
        })
    }

    /// Whether a line has come to a position under this name of its history. A server that was not
    /// told of a promotion goes on under the old name, with other data.
    pub(crate) fn has(&self, line: u64, at: Position) -> bool {
        let mut segments = self.segments_of(line);
        let leads_to =
            |segment: &Segment| segment.from.history == at.history && at.offset <= segment.to;
        segments.any(leads_to) || self.bases_of(line).iter().any(|base| base.position == at)
    }

    /// Whether a line has come to this offset under other names of its history alone.
    pub(crate) fn has_other_data_at(&self, line: u64, at: Position) -> bool {
        let has_offset =
            |segment: &&Segment| (segment.from.offset..=segment.to).contains(&at.offset);
        let mut segments = self.segments_of(line).filter(has_offset).peekable();
        segments.peek().is_some() && segments.all(|segment| segment.from.history != at.history)
    }

    /// How far the stream behind a base reaches without a gap, and when that was.
    pub(crate) fn reach_of(&self, base: &Base) -> (Position, Moment) {
        let (mut reached, mut time) = (base.position, base.time);
        for segment in self.segments_of(base.line) {
            if segment.to > reached.offset && segment.goes_on_after(reached) {
                (reached, time) = (segment.end(), segment.last_time.max(time));
            }
        }
        (reached, time)
    }

    /// Where a line has gaps after the first base that is there, in their order.
    pub(crate) fn gaps_of(&self, line: u64) -> Vec<Gap<'_>> {
        let bases = self.bases_of(line);
        let Some(first) = bases.first() else { return Vec::new() };
        let (mut from, mut since) = (first.position, first.time);
        let mut gaps = Vec::new();
        for part in parts(&self.bases, &self.segments, line) {
            let Part { begin: to, begun: until, file, .. } = part;
            if to.offset > from.offset {
                gaps.push(Gap { from, since, to, until, file, is_end: false });
            }
            if part.end.offset >= from.offset {
                (from, since) = (part.end, part.ended.max(since));
            }
        }
        let mut missing = parts(&self.missing.bases, &self.missing.segments, line);
        missing.retain(|part| part.end.offset > from.offset);
        let last = missing.iter().max_by_key(|part| part.end.offset);
        if let (Some(Part { file, .. }), Some(last)) = (missing.first(), last) {
            let (to, until) = (last.end, last.ended);
            gaps.push(Gap { from, since, to, until, file, is_end: true });
        }
        gaps
    }
}
