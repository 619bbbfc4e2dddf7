//! GEOSEARCH and its older forms: which members lie around a place.
//!
//! Six commands share one search. They differ in where the centre and the shape are given
//! (GEORADIUS has them at fixed places, GEOSEARCH as options) and in what may be done with the
//! result.

use std::cmp::Ordering;

use crate::geo::earth::{self as geo, Point, Shape, Unit};
use resp::reply::Reply;
use store::pack::{Element, INTEGER_TEXT_BYTES};
use store::{Key, ScoreBound, Value, Zset, ZsetBuilder};

use super::{point, unit};
use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::db::notify::{Class, Event};
use engine::engine::Context;
use engine::handler::elements::ReplyElements;

const NO_SUCH_MEMBER: CommandError =
    CommandError::text("ERR could not decode requested zset member");

/// How the arguments of a command say where to search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// GEORADIUS: position, radius and unit, then options.
    Position,
    /// GEORADIUSBYMEMBER: member, radius and unit, then options.
    Member,
    /// GEOSEARCH: all by options.
    Options,
}

/// What happens to the result besides being answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Storing {
    /// Nothing.
    Never,
    /// GEORADIUS: with the option STORE or STOREDIST and a key.
    ByOption,
    /// GEOSEARCHSTORE: the result is always stored; the option STOREDIST says what the scores are.
    Always,
}

/// A key to store the result in.
struct Target<'a> {
    key: Key<'a>,
    /// The scores are distances instead of positions.
    as_distances: bool,
}

/// The middle of the search.
#[derive(Clone, Copy, Default)]
enum Centre {
    #[default]
    Unknown,
    Position(Point),
    /// The position of a member; none while there is no sorted set.
    Member(Option<Point>),
    /// The middle of a polygon.
    Middle(Point),
}

impl Centre {
    fn of_member(member: &[u8], zset: Option<&Zset>) -> Result<Centre, CommandError> {
        let Some(zset) = zset else { return Ok(Centre::Member(None)) };
        let score = zset.score(member).ok_or(NO_SUCH_MEMBER)?;
        Ok(Centre::Member(Some(geo::decode(score))))
    }

    fn point(self) -> Option<Point> {
        match self {
            Centre::Unknown => None,
            Centre::Position(point) | Centre::Middle(point) => Some(point),
            Centre::Member(point) => point,
        }
    }
}

/// The shape around it, in metres, and the unit that distances are answered in.
struct Area {
    shape: Shape,
    unit: Unit,
}

impl Area {
    /// Reads `radius unit`.
    fn circle(args: &mut Args<'_>) -> Result<Area, CommandError> {
        let radius = length(args, "ERR need numeric radius")?;
        if radius < 0.0 {
            return Err(CommandError::text("ERR radius cannot be negative"));
        }
        let unit = unit(args)?;
        Ok(Area { shape: Shape::Circle(radius * unit.in_metres()), unit })
    }

    /// Reads `width height unit`.
    fn rectangle(args: &mut Args<'_>) -> Result<Area, CommandError> {
        let width = length(args, "ERR need numeric width")?;
        let height = length(args, "ERR need numeric height")?;
        if width < 0.0 || height < 0.0 {
            return Err(CommandError::text("ERR height or width cannot be negative"));
        }
        let unit = unit(args)?;
        let (width, height) = (width * unit.in_metres(), height * unit.in_metres());
        Ok(Area { shape: Shape::Box { width, height }, unit })
    }

    /// Reads `vertices longitude latitude [longitude latitude ...]`, and finds the middle.
    fn polygon(args: &mut Args<'_>) -> Result<(Area, Point), CommandError> {
        const INVALID: CommandError = CommandError::text("ERR invalid number of vertices");
        const TOO_FEW: CommandError =
            CommandError::text("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices");
        let count = i32::try_from(args.i64().map_err(|_| INVALID)?).map_err(|_| INVALID)?;
        let count = usize::try_from(count).unwrap_or(0);
        if count < 3 || count > args.len() / 2 {
            return Err(TOO_FEW);
        }
        let vertices = (0..count).map(|_| point(args)).collect::<Result<Vec<_>, _>>()?;
        let middle = geo::middle_of(&vertices);
        Ok((Area { shape: Shape::Polygon(vertices), unit: Unit::Metre }, middle))
    }
}

/// The next argument as a length; anything but a number is the error `otherwise`.
fn length(args: &mut Args<'_>, otherwise: &'static str) -> Result<f64, CommandError> {
    args.f64().map_err(|_| CommandError::text(otherwise))
}

/// The options of a search.
#[derive(Default)]
struct SearchRequest<'a> {
    centre: Centre,
    area: Option<Area>,
    descending: Option<bool>,
    /// Most results.
    count: Option<usize>,
    /// Any members, as soon as there are enough of them.
    any: bool,
    with_distance: bool,
    with_hash: bool,
    with_position: bool,
    target: Option<Target<'a>>,
}

/// A member within the shape.
struct Found<'z> {
    member: Element<'z>,
    score: f64,
    position: Point,
    /// From the centre, in metres.
    distance: f64,
}

/// GEORADIUS key longitude latitude radius unit [option ...]
pub(super) fn georadius(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    search(cx, args, Syntax::Position, Storing::ByOption)
}

/// GEORADIUS_RO key longitude latitude radius unit [option ...]
pub(super) fn georadius_ro(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    search(cx, args, Syntax::Position, Storing::Never)
}

/// GEORADIUSBYMEMBER key member radius unit [option ...]
pub(super) fn georadiusbymember(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    search(cx, args, Syntax::Member, Storing::ByOption)
}

/// GEORADIUSBYMEMBER_RO key member radius unit [option ...]
pub(super) fn georadiusbymember_ro(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    search(cx, args, Syntax::Member, Storing::Never)
}

/// GEOSEARCH key FROMMEMBER member|FROMLONLAT longitude latitude
/// BYRADIUS radius unit|BYBOX width height unit [option ...], or
/// GEOSEARCH key BYPOLYGON vertices longitude latitude [longitude latitude ...] [option ...]
pub(super) fn geosearch(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    search(cx, args, Syntax::Options, Storing::Never)
}

/// GEOSEARCHSTORE destination key, and on as GEOSEARCH
pub(super) fn geosearchstore(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    search(cx, args, Syntax::Options, Storing::Always)
}

fn search(
    cx: &mut Context<'_>,
    args: &mut Args<'_>,
    syntax: Syntax,
    storing: Storing,
) -> CommandResult {
    let mut request = SearchRequest::default();
    if storing == Storing::Always {
        request.target = Some(Target { key: args.key()?, as_distances: false });
    }
    let key = args.key()?;
    // The key is looked at before the arguments: if there is nothing to search, no member is wrong.
    let zset = cx.db.zset(&key)?;
    request.read_places(args, syntax, zset)?;
    while !args.is_empty() {
        if !request.read_option(args, syntax, storing, zset)? {
            return Err(CommandError::SYNTAX);
        }
    }
    request.check(args, syntax)?;
    let found = match (zset, request.centre.point(), &request.area) {
        (Some(zset), Some(centre), Some(area)) => request.find(zset, centre, &area.shape),
        _ => Vec::new(),
    };
    let Some(target) = &request.target else {
        request.answer(&mut cx.reply, &found);
        return Ok(());
    };
    let members = found.len();
    let result = request.result(&found, target.as_distances);
    let limits = cx.db.zset_limits();
    let value = (members > 0).then(|| Value::Zset(result.finish(limits)));
    let name = if syntax == Syntax::Options { "geosearchstore" } else { "georadiusstore" };
    cx.db.set_or_remove(&target.key, value, Event(Class::ZSET, name), members as u64);
    cx.reply.integer(members as i64);
    Ok(())
}

impl<'a> SearchRequest<'a> {
    /// Reads the centre and the radius from fixed places.
    fn read_places(
        &mut self,
        args: &mut Args<'_>,
        syntax: Syntax,
        zset: Option<&Zset>,
    ) -> CommandResult {
        self.centre = match syntax {
            Syntax::Options => return Ok(()),
            Syntax::Position => Centre::Position(point(args)?),
            Syntax::Member => Centre::of_member(args.bytes()?, zset)?,
        };
        if matches!(self.centre, Centre::Member(None)) {
            // With nothing to search, the radius is not looked at.
            args.skip(2);
        } else {
            self.area = Some(Area::circle(args)?);
        }
        Ok(())
    }

    /// Reads an option; false if the next argument is not one.
    fn read_option(
        &mut self,
        args: &mut Args<'a>,
        syntax: Syntax,
        storing: Storing,
        zset: Option<&Zset>,
    ) -> Result<bool, CommandError> {
        Ok(self.read_common_option(args)?
            || match storing {
                Storing::Never => false,
                Storing::ByOption => self.read_target(args)?,
                Storing::Always => self.read_store_distances(args),
            }
            || (syntax == Syntax::Options && self.read_place(args, zset)?))
    }

    fn read_common_option(&mut self, args: &mut Args<'_>) -> Result<bool, CommandError> {
        if args.word("withdist") {
            self.with_distance = true;
        } else if args.word("withhash") {
            self.with_hash = true;
        } else if args.word("withcoord") {
            self.with_position = true;
        } else if args.word("any") {
            self.any = true;
        } else if args.word("asc") {
            self.descending = Some(false);
        } else if args.word("desc") {
            self.descending = Some(true);
        } else if args.len() >= 2 && args.word("count") {
            let count = args.i64()?;
            if count <= 0 {
                return Err(CommandError::text("ERR COUNT must be > 0"));
            }
            self.count = usize::try_from(count).ok();
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads the options STORE and STOREDIST with their key. The last one counts.
    fn read_target(&mut self, args: &mut Args<'a>) -> Result<bool, CommandError> {
        if args.len() < 2 {
            return Ok(false);
        }
        let as_distances = args.word("storedist");
        if !as_distances && !args.word("store") {
            return Ok(false);
        }
        self.target = Some(Target { key: args.key()?, as_distances });
        Ok(true)
    }

    /// Reads the option STOREDIST if the key is given already.
    fn read_store_distances(&mut self, args: &mut Args<'_>) -> bool {
        match &mut self.target {
            Some(target) if args.word("storedist") => {
                target.as_distances = true;
                true
            }
            _ => false,
        }
    }

    /// Reads the options of GEOSEARCH that say where to search. An option may be repeated, but not
    /// combined with its alternative. A polygon is both the centre and the shape.
    fn read_place(
        &mut self,
        args: &mut Args<'_>,
        zset: Option<&Zset>,
    ) -> Result<bool, CommandError> {
        let from_position = matches!(self.centre, Centre::Position(_));
        let from_member = matches!(self.centre, Centre::Member(_));
        let from_middle = matches!(self.centre, Centre::Middle(_));
        let from_nowhere = matches!(self.centre, Centre::Unknown);
        let shape = self.area.as_ref().map(|area| &area.shape);
        let by_box = matches!(shape, Some(Shape::Box { .. }));
        let by_radius = matches!(shape, Some(Shape::Circle(_)));
        let is_open = !by_box && !by_radius;
        if (from_nowhere || from_member) && args.len() >= 2 && args.word("frommember") {
            self.centre = Centre::of_member(args.bytes()?, zset)?;
        } else if (from_nowhere || from_position) && args.len() >= 3 && args.word("fromlonlat") {
            self.centre = Centre::Position(point(args)?);
        } else if !by_box && !from_middle && args.len() >= 3 && args.word("byradius") {
            self.area = Some(Area::circle(args)?);
        } else if !by_radius && !from_middle && args.len() >= 4 && args.word("bybox") {
            self.area = Some(Area::rectangle(args)?);
        } else if is_open
            && (from_nowhere || from_middle)
            && args.len() >= 3
            && args.word("bypolygon")
        {
            let (area, middle) = Area::polygon(args)?;
            (self.area, self.centre) = (Some(area), Centre::Middle(middle));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Refuses options that do not fit together, and missing ones.
    fn check(&self, args: &Args<'_>, syntax: Syntax) -> CommandResult {
        let by_options = syntax == Syntax::Options;
        let missing = |choice: &str| {
            let command = String::from_utf8_lossy(args.argv().at(0));
            Err(CommandError::owned(format!(
                "ERR exactly one of {choice} can be specified for {command}"
            )))
        };
        if self.target.is_some() && (self.with_distance || self.with_hash || self.with_position) {
            return Err(CommandError::owned(format!(
                "ERR {} is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
                if by_options { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" }
            )));
        }
        if by_options && matches!(self.centre, Centre::Unknown) {
            return missing("FROMMEMBER or FROMLONLAT");
        }
        if by_options && self.area.is_none() {
            return missing("BYRADIUS and BYBOX");
        }
        if self.any && self.count.is_none() {
            return Err(CommandError::text("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    /// The members within the shape, in the order and number that is asked for.
    fn find<'z>(&self, zset: &'z Zset, centre: Point, shape: &Shape) -> Vec<Found<'z>> {
        let enough = self.count.filter(|_| self.any).unwrap_or(usize::MAX);
        let cells = shape.score_ranges(centre);
        let candidates = cells.iter().flat_map(|cell| {
            let low = ScoreBound::Inclusive(cell.minimum);
            zset.range(zset.rank_range_by_score(low, ScoreBound::Exclusive(cell.maximum)))
        });
        let within = candidates.filter_map(|(member, score)| {
            let position = geo::decode(score);
            let distance = shape.distance_within(centre, position)?;
            Some(Found { member, score, position, distance })
        });
        let mut found = within.take(enough).collect();
        self.sort_and_cut(&mut found);
        found
    }

    fn sort_and_cut(&self, found: &mut Vec<Found<'_>>) {
        let count = self.count.unwrap_or(usize::MAX).min(found.len());
        // A count alone means the nearest ones.
        let nearest = self.count.is_some() && !self.any;
        let descending = self.descending.or(nearest.then_some(false));
        if let Some(descending) = descending {
            let order = |left: &Found<'_>, right: &Found<'_>| -> Ordering {
                let order = left.distance.total_cmp(&right.distance);
                if descending { order.reverse() } else { order }
            };
            if count < found.len() {
                keep_first(found, count, order);
            }
            found.sort_by(order);
        }
        found.truncate(count);
    }

    /// A distance in the requested unit.
    fn in_unit(&self, metres: f64) -> f64 {
        self.area.as_ref().map_or(metres, |area| metres / area.unit.in_metres())
    }

    fn answer(&self, reply: &mut Reply<'_>, found: &[Found<'_>]) {
        let details = [self.with_distance, self.with_hash, self.with_position];
        let details = details.into_iter().filter(|wanted| *wanted).count();
        reply.array(found.len());
        for place in found {
            if details > 0 {
                reply.array(1 + details);
            }
            reply.element(place.member);
            if self.with_distance {
                reply_distance(reply, self.in_unit(place.distance));
            }
            if self.with_hash {
                reply.integer(place.score as i64);
            }
            if self.with_position {
                reply_point(reply, place.position);
            }
        }
    }

    fn result(&self, found: &[Found<'_>], as_distances: bool) -> ZsetBuilder {
        let mut result = ZsetBuilder::new();
        let mut text = [0; INTEGER_TEXT_BYTES];
        for place in found {
            let score = if as_distances { self.in_unit(place.distance) } else { place.score };
            result.add(place.member.as_bytes(&mut text), score);
        }
        result
    }
}

/// Keeps those that would be the first `count` if all were sorted and equal ones stayed in their
/// order.
fn keep_first(
    found: &mut Vec<Found<'_>>,
    count: usize,
    order: impl Fn(&Found<'_>, &Found<'_>) -> Ordering,
) {
    let mut indices: Vec<usize> = (0..found.len()).collect();
    indices.select_nth_unstable_by(count, |&left, &right| {
        order(&found[left], &found[right]).then(left.cmp(&right))
    });
    let mut kept = vec![false; found.len()];
    indices[..count].iter().for_each(|&index| kept[index] = true);
    let mut kept = kept.into_iter();
    found.retain(|_| kept.next() == Some(true));
}

/// Writes a position as a pair of its coordinates.
pub(super) fn reply_point(reply: &mut Reply<'_>, point: Point) {
    reply.array(2);
    reply.double(point.longitude);
    reply.double(point.latitude);
}

/// Writes a distance as a string, in RESP3 too.
pub(super) fn reply_distance(reply: &mut Reply<'_>, distance: f64) {
    reply.bulk(geo::four_decimals(distance).as_bytes());
}
