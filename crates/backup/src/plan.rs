//! What a restore point needs of a store: which base, which segments, and where to stop.

use std::fmt::Display;

use crate::chain::Gap;
use crate::manifest::{Base, Manifest, Segment};
use crate::moment::Moment;
use crate::options::Point;
use crate::position::Position;

/// Where the stream is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Nowhere,
    /// After the last unit that ends at this offset or before.
    Offset(u64),
    /// After the last unit that had arrived then.
    Time(Moment),
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Plan<'m> {
    pub(crate) base: &'m Base,
    /// Those behind the base, in their order, up to the cut.
    pub(crate) segments: Vec<&'m Segment>,
    pub(crate) cut: Cut,
    /// What the user should know of the point.
    pub(crate) note: Option<String>,
}

impl<'m> Plan<'m> {
    /// The plan for a point.
    ///
    /// # Errors
    /// In words: nothing is known of it.
    pub(crate) fn of(manifest: &'m Manifest, point: Point) -> Result<Plan<'m>, String> {
        match point {
            Point::Newest => Plan::of_newest(manifest),
            Point::Position(position) => Plan::of_position(manifest, position),
            Point::Time(time) => Plan::of_time(manifest, time),
        }
    }

    /// What is missing is newer than what is there, or may be: it is not passed over in silence.
    fn of_newest(manifest: &'m Manifest) -> Result<Plan<'m>, String> {
        let point = "the newest point";
        // A plain file that was taken in is older than what a server gives, or may be.
        let line = manifest.lines_of_servers().pop().or_else(|| manifest.known_lines().pop());
        let line = line.ok_or("it has no base")?;
        if let Some(gap) = manifest.gaps_of(line).iter().find(|gap| gap.is_end) {
            return Err(in_a_gap(&point, gap));
        }
        let Some(base) = newest(manifest, line, |_| true) else {
            let gone = manifest.first_base_of(line).map_or("", |base| &*base.file.name);
            return Err(format!("{point} needs {gone}, which is missing: {}", extent(manifest)));
        };
        Plan::behind(manifest, base, Cut::Nowhere)
    }

    fn of_position(manifest: &'m Manifest, wanted: Position) -> Result<Plan<'m>, String> {
        let Position { history, offset } = wanted;
        let has = |segment: &&Segment| {
            segment.from.history == history && (segment.from.offset..=segment.to).contains(&offset)
        };
        let mut lines: Vec<_> = manifest.segments.iter().filter(has).map(|own| own.line).collect();
        let at = manifest.bases.iter().filter(|base| base.position == wanted);
        lines.extend(at.map(|base| base.line));
        lines.sort_unstable();
        let base = lines
            .iter()
            .rev()
            .find_map(|line| newest(manifest, *line, |base| base.position.offset <= offset));
        if let Some(base) = base {
            return Plan::behind(manifest, base, Cut::Offset(offset));
        }
        let is_within = |gap: &Gap<'_>| {
            [gap.from.history, gap.to.history].contains(&history)
                && (gap.from.offset..gap.to.offset + u64::from(gap.is_end)).contains(&offset)
        };
        let gaps = manifest.lines().into_iter().flat_map(|line| manifest.gaps_of(line));
        if let Some(gap) = gaps.into_iter().find(is_within) {
            return Err(in_a_gap(&wanted, &gap));
        }
        if !lines.is_empty() {
            return Err(format!("{wanted} is before the first base: {}", extent(manifest)));
        }
        Err(format!("nothing is known of {wanted}: {}", extent(manifest)))
    }

    fn of_time(manifest: &'m Manifest, time: Moment) -> Result<Plan<'m>, String> {
        let begins = |line: &u64| newest(manifest, *line, |base| base.time <= time).is_some();
        let mut lines = manifest.lines_of_servers();
        if !lines.iter().any(begins) {
            // So far back, plain files are all that there may be. One that was taken in later may
            // be older.
            lines = manifest.known_lines();
            lines.sort_by_key(|line| manifest.first_base_of(*line).map(|base| base.time));
        }
        let Some(index) = lines.iter().rposition(begins) else {
            return Err(format!("{time} is before the first base: {}", extent(manifest)));
        };
        let line = lines[index];
        let (end, last_time) = manifest.end_of(line).ok_or("it has no base")?;
        let base = newest(manifest, line, |base| base.time <= time).ok_or("it has no base")?;
        let gaps = manifest.gaps_of(line);
        let is_within = |gap: &&Gap<'_>| gap.since < time && (time < gap.until || gap.is_end);
        if let Some(gap) = gaps.iter().find(is_within) {
            return Err(in_a_gap(&time, gap));
        }
        if time <= last_time {
            return Plan::behind(manifest, base, Cut::Time(time));
        }
        let next = lines.get(index + 1).and_then(|line| manifest.first_base_of(*line));
        if let Some(next) = next {
            let (to, until, file) = (next.position, next.time, &*next.file.name);
            let is_end = !manifest.bases.contains(next);
            let gap = Gap { from: end, since: last_time, to, until, file, is_end };
            return Err(in_a_gap(&time, &gap));
        }
        let mut plan = Plan::behind(manifest, base, Cut::Nowhere)?;
        plan.note = Some(format!("nothing has arrived after {last_time}"));
        Ok(plan)
    }

    /// The segments behind a base.
    fn behind(manifest: &'m Manifest, base: &'m Base, cut: Cut) -> Result<Plan<'m>, String> {
        let begin = base.position.offset;
        let mut reached = base.position;
        let mut segments = Vec::new();
        for segment in manifest.segments_of(base.line).filter(|segment| segment.to > begin) {
            let is_beyond = match cut {
                Cut::Nowhere => false,
                Cut::Offset(offset) => reached.offset >= offset,
                Cut::Time(time) => segment.first_time > time,
            };
            if is_beyond {
                break;
            }
            let (from, name) = (segment.from.offset, &segment.file.name);
            if from > reached.offset {
                return Err(format!(
                    "there is a gap: the stream from {} to {from} is missing before {name}",
                    reached.offset
                ));
            }
            if from < reached.offset && !segments.is_empty() {
                return Err(format!("{name} has again what is before it"));
            }
            if !segment.goes_on_after(reached) {
                return Err(format!("there is a gap: {name} is of other data than {reached}"));
            }
            reached = segment.end();
            segments.push(segment);
        }
        Ok(Plan { base, segments, cut, note: None })
    }
}

/// The base of a line that is furthest behind, among those that are wanted.
fn newest(manifest: &Manifest, line: u64, is_wanted: impl Fn(&Base) -> bool) -> Option<&Base> {
    manifest.bases_of(line).into_iter().rfind(|base| is_wanted(base))
}

/// That a point is in a gap, with the points beside it.
fn in_a_gap(point: &dyn Display, gap: &Gap<'_>) -> String {
    let Gap { from, since, to, until, file, is_end } = gap;
    if *is_end {
        return format!(
            "{point} needs {file}, which is missing: nothing is known after {since} ({from}). --at \
             with that position restores the end before it"
        );
    }
    format!(
        "{point} is in a gap: nothing is known between {since} ({from}) and {until} ({to}). --at \
         with one of these positions restores the end before the gap, or the begin after it if a \
         base is there"
    )
}

/// What the store reaches from and to, in words.
fn extent(manifest: &Manifest) -> String {
    let lines = manifest.lines();
    let parts = lines.iter().filter_map(|line| {
        let first = *manifest.bases_of(*line).first()?;
        let (end, last) = manifest.end_of(*line)?;
        Some(format!("{} ({}) to {end} ({last})", first.position, first.time))
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() {
        return "the backup has no base".to_owned();
    }
    format!("the backup reaches from {}", parts.join(", and from "))
}

#[cfg(test)]
mod tests {
    use replication::id::HistoryId;

    use super::*;
    use crate::manifest::StoredFile;

    fn position(letter: u8, offset: u64) -> Position {
        Position { history: HistoryId::parse(&[letter; 40]).unwrap(), offset }
    }

    fn base(name: &str, line: u64, position: Position, time: u64) -> Base {
        Base::new(file(name), line, position, Moment(time))
    }

    fn file(name: &str) -> StoredFile {
        StoredFile { name: name.to_owned(), bytes: 1, sha256: String::new() }
    }

    fn segment(name: &str, line: u64, from: Position, to: u64, times: (u64, u64)) -> Segment {
        let (first_time, last_time) = (Moment(times.0), Moment(times.1));
        Segment { file: file(name), line, from, to, first_time, last_time }
    }

    /// A line whose stream got another name on its way, and one after a gap.
    fn manifest() -> Manifest {
        let mut manifest = Manifest::new();
        manifest.bases = vec![
            base("b1", 1, position(b'a', 100), 1000),
            base("b2", 1, position(b'a', 150), 1500),
            base("b3", 2, position(b'c', 10), 5000),
        ];
        manifest.segments = vec![
            segment("s1", 1, position(b'a', 100), 140, (1010, 1400)),
            segment("s2", 1, position(b'a', 140), 200, (1410, 2000)),
            segment("s3", 1, position(b'b', 200), 300, (2500, 3000)),
            segment("s4", 2, position(b'c', 10), 20, (5001, 6000)),
        ];
        manifest
    }

    fn plan(point: Point) -> Result<(String, bool), String> {
        plan_in(&manifest(), point)
    }

    fn plan_in(manifest: &Manifest, point: Point) -> Result<(String, bool), String> {
        let plan = Plan::of(manifest, point)?;
        let names: Vec<_> = plan.segments.iter().map(|segment| &segment.file.name[..]).collect();
        Ok((format!("{} {}", plan.base.file.name, names.join(" ")), plan.note.is_some()))
    }

    #[test]
    fn points_have_a_base_and_what_is_behind_it() {
        let at = |letter, offset| Point::Position(position(letter, offset));
        let time = |time| Point::Time(Moment(time));
        for (point, expected) in [
            (Point::Newest, "b3 s4"),
            (at(b'a', 100), "b1 "),
            (at(b'a', 120), "b1 s1"),
            (at(b'a', 149), "b1 s1 s2"),
            (at(b'a', 150), "b2 "),
            (at(b'a', 200), "b2 s2"),
            (at(b'b', 200), "b2 s2"),
            (at(b'b', 250), "b2 s2 s3"),
            (at(b'c', 10), "b3 "),
            (at(b'c', 20), "b3 s4"),
            (time(1000), "b1 "),
            (time(1499), "b1 s1 s2"),
            (time(1500), "b2 s2"),
            (time(2200), "b2 s2"),
            (time(3000), "b2 s2 s3"),
            (time(5500), "b3 s4"),
        ] {
            assert_eq!(plan(point), Ok((expected.to_owned(), false)), "{point:?}");
        }
        assert_eq!(plan(time(9000)), Ok(("b3 s4".to_owned(), true)));
    }

    /// A plain file is one point, and says nothing of the time after it.
    #[test]
    fn a_plain_file_stands_for_no_other_point() {
        let import = |name: &str, line, letter, time| Base {
            imported: Some(Moment(9000)),
            ..base(name, line, position(letter, 0), time)
        };
        let mut manifest = manifest();
        manifest.bases.extend([
            import("later", 3, b'd', 8000),
            import("early", 4, b'e', 500),
            import("within", 5, b'f', 2000),
            import("earliest", 6, b'0', 0),
        ]);
        let at = |letter| Point::Position(position(letter, 0));
        let time = |time| Point::Time(Moment(time));
        for (point, expected) in [
            (Point::Newest, Ok("b3 s4")),
            (at(b'd'), Ok("later ")),
            (at(b'e'), Ok("early ")),
            (time(0), Ok("earliest ")),
            (time(100), Err("between 1970-01-01T00:00:00.000Z")),
            (time(500), Ok("early ")),
            (time(999), Err("in a gap")),
            (time(1000), Ok("b1 ")),
            (time(2200), Ok("b2 s2")),
            (time(3001), Err("in a gap")),
            (time(9000), Ok("b3 s4")),
        ] {
            let found = plan_in(&manifest, point);
            match expected {
                Ok(expected) => assert_eq!(found.unwrap().0, expected, "{point:?}"),
                Err(text) => assert!(found.as_ref().unwrap_err().contains(text), "{found:?}"),
            }
        }
        // Without a server, they are all that there is.
        manifest.bases.retain(|base| base.imported.is_some());
        manifest.segments.clear();
        assert_eq!(plan_in(&manifest, Point::Newest).unwrap().0, "earliest ");
        assert_eq!(plan_in(&manifest, time(9000)).unwrap(), ("later ".to_owned(), true));
    }

    /// The stream between a segment and a base, or two segments, is not there.
    #[test]
    fn a_point_in_a_gap_of_a_line_is_refused() {
        let mut manifest = manifest();
        manifest.bases[1] = base("b2", 1, position(b'a', 180), 1700);
        manifest.segments[1] = segment("s2", 1, position(b'a', 180), 200, (1710, 2000));
        manifest.segments[2] = segment("s3", 1, position(b'b', 250), 300, (2500, 3000));
        let gaps: Vec<_> = manifest.gaps_of(1).iter().map(|gap| (gap.from, gap.to)).collect();
        let at = position;
        assert_eq!(gaps, [(at(b'a', 140), at(b'a', 180)), (at(b'a', 200), at(b'b', 250))]);
        assert_eq!(manifest.gaps_of(2), []);
        assert_eq!(manifest.reach_of(&manifest.bases[0]), (at(b'a', 140), Moment(1400)));
        assert_eq!(manifest.end_of(1), Some((at(b'a', 200), Moment(2000))));
        let at = |letter, offset| Point::Position(position(letter, offset));
        let time = |time| Point::Time(Moment(time));
        for (point, expected) in [
            (at(b'a', 140), "b1 s1"),
            (at(b'a', 180), "b2 "),
            (at(b'a', 200), "b2 s2"),
            (time(1400), "b1 s1"),
            (time(1700), "b2 "),
            (time(2000), "b2 s2"),
        ] {
            assert_eq!(plan_in(&manifest, point).unwrap().0, expected, "{point:?}");
        }
        let points =
            [at(b'a', 141), at(b'a', 179), time(1401), time(1699), at(b'b', 220), time(2001)];
        for point in points {
            let problem = plan_in(&manifest, point).unwrap_err();
            assert!(problem.contains("is in a gap"), "{point:?}: {problem}");
        }
        // What comes after a gap has no base to stand on.
        for point in [at(b'b', 250), at(b'b', 300), time(2500), time(3000)] {
            let problem = plan_in(&manifest, point).unwrap_err();
            assert!(problem.contains("gap"), "{point:?}: {problem}");
        }
    }

    /// Whatever of the newest line is missing: what is there is not all that there was.
    #[test]
    fn a_point_that_needs_what_is_missing_is_refused() {
        let (newest, at) = (Point::Newest, |offset| Point::Position(position(b'c', offset)));
        let time = |time| Point::Time(Moment(time));
        for (gone, refused, good) in [
            ("s4", vec![newest, time(5001), time(5500), time(9000), at(15), at(20)], at(10)),
            ("b3", vec![newest, time(5000), time(5500), time(9000)], time(3000)),
        ] {
            let mut manifest = manifest();
            manifest.set_aside(&[gone.to_owned()]);
            for point in refused {
                let problem = plan_in(&manifest, point).unwrap_err();
                let expected = format!("needs {gone}, which is missing");
                assert!(problem.contains(&expected), "{point:?}: {problem}");
            }
            plan_in(&manifest, good).unwrap();
            // In another line it does not matter.
            manifest.bases.push(base("b5", 3, position(b'd', 0), 10_000));
            assert_eq!(plan_in(&manifest, newest).unwrap().0, "b5 ");
            assert!(plan_in(&manifest, time(9000)).is_err());
        }
    }

    #[test]
    fn a_line_leaves_the_old_name_of_its_history() {
        let manifest = manifest();
        for (at, has) in [
            (position(b'a', 150), true),
            (position(b'a', 200), true),
            (position(b'b', 200), true),
            (position(b'b', 300), true),
            // The line has other data there.
            (position(b'a', 201), false),
            (position(b'b', 301), false),
            (position(b'c', 10), false),
        ] {
            assert_eq!(manifest.has(1, at), has, "{at}");
        }
        assert!(manifest.has(2, position(b'c', 10)));
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for (point, text) in [
            (Point::Time(Moment(999)), "before the first base"),
            (Point::Time(Moment(3001)), "in a gap"),
            (Point::Position(position(b'a', 99)), "nothing is known of"),
            (Point::Position(position(b'a', 201)), "nothing is known of"),
            (Point::Position(position(b'd', 100)), "nothing is known of"),
        ] {
            let problem = plan(point).unwrap_err();
            assert!(problem.contains(text), "{problem}");
        }
        let mut joined = manifest();
        joined.bases[1].position = position(b'd', 150);
        let problem = Plan::of(&joined, Point::Position(position(b'd', 150))).map(drop);
        assert_eq!(problem, Ok(()));
        assert_eq!(joined.reach_of(&joined.bases[1]), (position(b'd', 150), Moment(1500)));
        let problem = Plan::of(&joined, Point::Position(position(b'a', 200))).unwrap_err();
        assert!(problem.contains("is of other data"), "{problem}");
        let mut holed = manifest();
        holed.segments.remove(1);
        let point = Point::Position(position(b'b', 250));
        let problem = Plan::of(&holed, point).unwrap_err();
        assert!(problem.contains("there is a gap"), "{problem}");
        let point = Point::Position(position(b'a', 100));
        assert!(Plan::of(&Manifest::new(), point).unwrap_err().contains("no base"));
    }
}
