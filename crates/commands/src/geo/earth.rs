//! Positions on Earth as scores of a sorted set: the arithmetic of the GEO commands.
//!
//! A geohash halves the world again and again: 26 halvings of the longitude interleaved with 26 of
//! the latitude name a cell of about 0.6 m as a number of 52 bits, which a float represents
//! exactly. Cells that are near in number are near in place, and a cell of fewer halvings is a
//! contiguous range of numbers. So a search takes the cell around its centre that is just large
//! enough, with its eight neighbours, reads nine ranges of scores, and measures the distance of
//! each candidate.
//!
//! All of this follows the reference to the last bit, its oddities included: positions exactly on
//! the eastern or northern limit are encoded past the last cell, and the order in which a search
//! visits its cells is visible in unsorted answers.

use smallvec::SmallVec;

/// Radius of the Earth in metres, as distances are computed.
const EARTH_RADIUS: f64 = 6_372_797.560_856;

/// Half the width in metres of the square Web Mercator map of the world.
const MERCATOR_MAXIMUM: f64 = 20_037_726.37;

/// The limit of latitudes, north and south: beyond it the Web Mercator map ends.
pub(crate) const LATITUDE_LIMIT: f64 = 85.051_128_78;

/// The limit of longitudes, east and west.
pub(crate) const LONGITUDE_LIMIT: f64 = 180.0;

/// Halvings of each axis in a score.
const FINEST: u32 = 26;

/// The letters of a geohash string: digits and letters without a, i, l and o.
const GEOHASH_ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// Length of a geohash string.
pub(crate) const GEOHASH_LENGTH: usize = 11;

/// A position in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Degrees east, [`LONGITUDE_LIMIT`] at most.
    pub(crate) longitude: f64,
    /// Degrees north, [`LATITUDE_LIMIT`] at most.
    pub(crate) latitude: f64,
}

/// A unit of length that commands accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// `m`
    Metre,
    /// `km`
    Kilometre,
    /// `ft`
    Foot,
    /// `mi`
    Mile,
}

impl Unit {
    /// Reads a unit's abbreviation, in either case of letters.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        [
            (&b"m"[..], Self::Metre),
            (b"km", Self::Kilometre),
            (b"ft", Self::Foot),
            (b"mi", Self::Mile),
        ]
        .into_iter()
        .find_map(|(known, unit)| name.eq_ignore_ascii_case(known).then_some(unit))
    }

    /// The length of one unit in metres.
    pub(crate) fn in_metres(self) -> f64 {
        match self {
            Self::Metre => 1.0,
            Self::Kilometre => 1000.0,
            Self::Foot => 0.3048,
            Self::Mile => 1609.34,
        }
    }
}

/// The area of a search around its centre. Lengths are in metres.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A circle of this radius.
    Circle(f64),
    /// A box whose sides run along the meridians and parallels.
    Box {
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
    /// A polygon of these vertices on the flat map of degrees. Its centre is [`middle_of`] them.
    Polygon(Vec<Point>),
}

/// A range of scores in which candidates are searched: `minimum <= score < maximum`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoreRange {
    /// The lowest score of the range.
    pub(crate) minimum: f64,
    /// The lowest score above the range.
    pub(crate) maximum: f64,
}

/// A stretch of one axis, in degrees.
#[derive(Clone, Copy)]
struct Span {
    minimum: f64,
    maximum: f64,
}

impl Span {
    const LONGITUDE: Span = Span { minimum: -LONGITUDE_LIMIT, maximum: LONGITUDE_LIMIT };
    const LATITUDE: Span = Span { minimum: -LATITUDE_LIMIT, maximum: LATITUDE_LIMIT };
    /// Geohash strings divide the full range of latitudes.
    const POLE_TO_POLE: Span = Span { minimum: -90.0, maximum: 90.0 };

    fn contains(self, degrees: f64) -> bool {
        (self.minimum..=self.maximum).contains(&degrees)
    }

    /// The index of the part that `degrees` falls in, if there are 2^`steps` equal parts. The upper
    /// limit itself gets an index past the last.
    fn part_of(self, degrees: f64, steps: u32) -> u32 {
        let offset = (degrees - self.minimum) / (self.maximum - self.minimum);
        (offset * f64::from(1u32 << steps)) as u32
    }

    /// The extent of part `index`, of 2^`steps` equal parts.
    fn part(self, index: u32, steps: u32) -> Span {
        let parts = f64::from(1u32 << steps);
        let scale = self.maximum - self.minimum;
        Span {
            minimum: self.minimum + (f64::from(index) / parts) * scale,
            maximum: self.minimum + ((f64::from(index) + 1.0) / parts) * scale,
        }
    }

    fn middle(self) -> f64 {
        (self.minimum + self.maximum) / 2.0
    }
}

/// Spreads the bits of a number to the even bits of a wider one.
fn spread(value: u32) -> u64 {
    let mut bits = u64::from(value);
    for (shift, mask) in [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        bits = (bits | (bits << shift)) & mask;
    }
    bits
}

/// Gathers the even bits of a number: the inverse of [`spread`].
fn gather(value: u64) -> u32 {
    let mut bits = value & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0F0F_0F0F_0F0F_0F0F),
        (4, 0x00FF_00FF_00FF_00FF),
        (8, 0x0000_FFFF_0000_FFFF),
        (16, 0x0000_0000_FFFF_FFFF),
    ] {
        bits = (bits | (bits >> shift)) & mask;
    }
    bits as u32
}

/// A cell of the grid that divides both axes into 2^`steps` parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// Index from the west.
    column: u32,
    /// Index from the south.
    row: u32,
    steps: u32,
}

impl Cell {
    fn of(point: Point, latitudes: Span, steps: u32) -> Self {
        Self {
            column: Span::LONGITUDE.part_of(point.longitude, steps),
            row: latitudes.part_of(point.latitude, steps),
            steps,
        }
    }

    /// The cell's number: latitude in the even bits, longitude in the odd ones.
    fn bits(self) -> u64 {
        spread(self.row) | (spread(self.column) << 1)
    }

    fn from_bits(bits: u64) -> Self {
        Self { column: gather(bits >> 1), row: gather(bits), steps: FINEST }
    }

    fn longitudes(self) -> Span {
        Span::LONGITUDE.part(self.column, self.steps)
    }

    fn latitudes(self) -> Span {
        Span::LATITUDE.part(self.row, self.steps)
    }

    /// The cell some columns to the east and rows to the north, around the edges of the map.
    fn neighbour(self, east: i32, north: i32) -> Self {
        let last = (1 << self.steps) - 1;
        let moved = |index: u32, by: i32| match by {
            0 => index,
            by => index.wrapping_add_signed(by) & last,
        };
        Self { column: moved(self.column, east), row: moved(self.row, north), steps: self.steps }
    }

    fn scores(self) -> ScoreRange {
        let finer = 2 * (FINEST - self.steps);
        let bits = self.bits();
        ScoreRange { minimum: (bits << finer) as f64, maximum: ((bits + 1) << finer) as f64 }
    }
}

/// The score of a position, or `None` when it is beyond the limits.
pub(crate) fn encode(point: Point) -> Option<u64> {
    let is_on_map =
        Span::LONGITUDE.contains(point.longitude) && Span::LATITUDE.contains(point.latitude);
    is_on_map.then(|| Cell::of(point, Span::LATITUDE, FINEST).bits())
}

/// The position of a score: the centre of its cell. Every score has one; a score that no position
/// encodes to, written by ZADD, gets the position that the reference gives it.
pub(crate) fn decode(score: f64) -> Point {
    let cell = Cell::from_bits(score_bits(score));
    let within = |degrees: f64, limit: f64| degrees.clamp(-limit, limit);
    Point {
        longitude: within(cell.longitudes().middle(), LONGITUDE_LIMIT),
        latitude: within(cell.latitudes().middle(), LATITUDE_LIMIT),
    }
}

/// A score as an integer: negative ones wrap around, those beyond 64 bits are zero.
fn score_bits(score: f64) -> u64 {
    if score < 0.0 {
        (score as i64).cast_unsigned()
    } else if score < 18_446_744_073_709_551_616.0 {
        score as u64
    } else {
        0
    }
}

/// The standard geohash string of a position. The last letter is always `0`: ten letters spell
/// 50 of the 52 bits, and the remaining two do not make a letter.
pub(crate) fn geohash(point: Point) -> [u8; GEOHASH_LENGTH] {
    let bits = Cell::of(point, Span::POLE_TO_POLE, FINEST).bits();
    let mut letters = [GEOHASH_ALPHABET[0]; GEOHASH_LENGTH];
    let mut shift = 2 * FINEST;
    for letter in &mut letters[..GEOHASH_LENGTH - 1] {
        shift -= 5;
        *letter = GEOHASH_ALPHABET[(bits >> shift & 0x1F) as usize];
    }
    letters
}

/// The distance of two positions in metres, along a great circle (by the haversine formula).
pub(crate) fn distance(from: Point, to: Point) -> f64 {
    let across = ((radians(to.longitude) - radians(from.longitude)) / 2.0).sin();
    if across == 0.0 {
        return meridian_distance(from.latitude, to.latitude);
    }
    let (south, north) = (radians(from.latitude), radians(to.latitude));
    let along = ((north - south) / 2.0).sin();
    let haversine = along * along + south.cos() * north.cos() * across * across;
    // At the other side of the Earth rounding may take it past 1, where there is no arcsine.
    2.0 * EARTH_RADIUS * haversine.sqrt().min(1.0).asin()
}

/// A distance, in any unit, as replies show it: with four decimals, computed in fixed point as the
/// reference does, which now and then rounds otherwise than the exact value would.
pub(crate) fn four_decimals(distance: f64) -> String {
    let ten_thousandths = (distance * 10_000.0).round_ties_even() as u64;
    format!("{}.{:04}", ten_thousandths / 10_000, ten_thousandths % 10_000)
}

/// The distance in metres of two latitudes on one meridian.
fn meridian_distance(from: f64, to: f64) -> f64 {
    EARTH_RADIUS * (radians(to) - radians(from)).abs()
}

/// Degrees to radians, with the rounding of the reference.
fn radians(degrees: f64) -> f64 {
    degrees * (std::f64::consts::PI / 180.0)
}

/// Radians to degrees, with the rounding of the reference.
fn degrees(radians: f64) -> f64 {
    radians / (std::f64::consts::PI / 180.0)
}

/// The place in the middle of others: where the mean of their vectors from the Earth's centre
/// points to.
pub(crate) fn middle_of(points: &[Point]) -> Point {
    let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
    for point in points {
        let (longitude, latitude) = (radians(point.longitude), radians(point.latitude));
        x += latitude.cos() * longitude.cos();
        y += latitude.cos() * longitude.sin();
        z += latitude.sin();
    }
    let (longitude, latitude) = (y.atan2(x), z.atan2((x * x + y * y).sqrt()));
    Point { longitude: degrees(longitude), latitude: degrees(latitude) }
}

/// Whether a ray from `point` to the east crosses the sides of a polygon an odd number of times.
fn is_inside(point: Point, vertices: &[Point]) -> bool {
    let before = vertices.iter().cycle().skip(vertices.len().saturating_sub(1));
    let crossed = vertices.iter().zip(before).filter(|(end, start)| {
        let passes = (end.latitude > point.latitude) != (start.latitude > point.latitude);
        let across = (start.longitude - end.longitude) * (point.latitude - end.latitude);
        passes && point.longitude < across / (start.latitude - end.latitude) + end.longitude
    });
    crossed.count() % 2 == 1
}

impl Shape {
    /// The distance of `point` from `centre` in metres, when the shape around `centre` contains
    /// it. A box is measured along the meridian of its centre and the parallel of the point.
    pub(crate) fn distance_within(&self, centre: Point, point: Point) -> Option<f64> {
        match *self {
            Shape::Circle(radius) => {
                let distance = distance(centre, point);
                (distance <= radius).then_some(distance)
            }
            Shape::Polygon(ref vertices) => {
                is_inside(point, vertices).then(|| distance(centre, point))
            }
            Shape::Box { width, height } => {
                if meridian_distance(point.latitude, centre.latitude) > height / 2.0 {
                    return None;
                }
                let beside = Point { longitude: centre.longitude, latitude: point.latitude };
                if self::distance(point, beside) > width / 2.0 {
                    return None;
                }
                Some(distance(centre, point))
            }
        }
    }

    /// The ranges of scores that together contain each position within the shape around `centre`,
    /// in the order in which unsorted answers list them: the centre's cell, then north, south,
    /// east, west, and the corners.
    pub(crate) fn score_ranges(&self, centre: Point) -> SmallVec<[ScoreRange; 9]> {
        let bounds = self.bounds(centre);
        let cell = self.central_cell(centre, &bounds);
        // Coarse cells wrap around the map: there the bounds say nothing.
        let leave_out = |beyond: bool| cell.steps >= 2 && beyond;
        let no_south = leave_out(cell.latitudes().minimum < bounds.latitudes.minimum);
        let no_north = leave_out(cell.latitudes().maximum > bounds.latitudes.maximum);
        let no_west = leave_out(cell.longitudes().minimum < bounds.longitudes.minimum);
        let no_east = leave_out(cell.longitudes().maximum > bounds.longitudes.maximum);
        let mut cells = SmallVec::<[Cell; 9]>::new();
        for (east, north) in
            [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)]
        {
            let is_outside = (no_south && north < 0)
                || (no_north && north > 0)
                || (no_west && east < 0)
                || (no_east && east > 0);
            let cell = cell.neighbour(east, north);
            // On the coarsest grids the neighbours on both sides are the same cell.
            if !is_outside && !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        cells.into_iter().map(Cell::scores).collect()
    }

    /// The distance in metres from the centre to the farthest point that is within its bounds.
    fn reach(&self, centre: Point, bounds: &Bounds) -> f64 {
        match *self {
            Shape::Circle(radius) => radius,
            Shape::Polygon(_) => bounds
                .corners()
                .into_iter()
                .map(|corner| distance(centre, corner))
                .fold(0.0, f64::max),
            Shape::Box { width, height } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
        }
    }

    /// The cell around `centre` on the finest grid where it and its neighbours cover the shape.
    fn central_cell(&self, centre: Point, bounds: &Bounds) -> Cell {
        let steps = estimated_steps(self.reach(centre, bounds), centre.latitude);
        let cell = Cell::of(centre, Span::LATITUDE, steps);
        let covers = cell.neighbour(0, 1).latitudes().maximum >= bounds.latitudes.maximum
            && cell.neighbour(0, -1).latitudes().minimum <= bounds.latitudes.minimum
            && cell.neighbour(1, 0).longitudes().maximum >= bounds.longitudes.maximum
            && cell.neighbour(-1, 0).longitudes().minimum <= bounds.longitudes.minimum;
        if steps > 1 && !covers { Cell::of(centre, Span::LATITUDE, steps - 1) } else { cell }
    }

    /// The parallels and meridians that bound the shape.
    fn bounds(&self, centre: Point) -> Bounds {
        let (half_width, half_height) = match *self {
            Shape::Circle(radius) => (radius, radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
            Shape::Polygon(ref vertices) => return Bounds::of(vertices),
        };
        let Point { longitude, latitude } = centre;
        let up = degrees(half_height / EARTH_RADIUS);
        // Meridians converge towards the poles: the side nearer to a pole spans more degrees.
        let polar = if latitude < 0.0 { latitude - up } else { latitude + up };
        let aside = degrees(half_width / EARTH_RADIUS / radians(polar).cos());
        Bounds {
            longitudes: Span { minimum: longitude - aside, maximum: longitude + aside },
            latitudes: Span { minimum: latitude - up, maximum: latitude + up },
        }
    }
}

struct Bounds {
    longitudes: Span,
    latitudes: Span,
}

impl Bounds {
    /// The parallels and meridians between which all points are.
    fn of(points: &[Point]) -> Self {
        let span = |of: fn(&Point) -> f64| {
            let all = points.iter().map(of);
            Span {
                minimum: all.clone().fold(f64::INFINITY, f64::min),
                maximum: all.fold(f64::NEG_INFINITY, f64::max),
            }
        };
        Self { longitudes: span(|point| point.longitude), latitudes: span(|point| point.latitude) }
    }

    fn corners(&self) -> [Point; 4] {
        let Self { longitudes, latitudes } = self;
        [
            (longitudes.minimum, latitudes.minimum),
            (longitudes.minimum, latitudes.maximum),
            (longitudes.maximum, latitudes.minimum),
            (longitudes.maximum, latitudes.maximum),
        ]
        .map(|(longitude, latitude)| Point { longitude, latitude })
    }
}

/// How often to halve the map so that three cells in a row surely span `reach` metres to both
/// sides, at this latitude. Checked afterwards: near the limits it may be one too many.
fn estimated_steps(reach: f64, latitude: f64) -> u32 {
    if reach == 0.0 {
        return FINEST;
    }
    let mut steps = 1;
    let mut released = reach;
    while released < MERCATOR_MAXIMUM && steps < 64 {
        released *= 2.0;
        steps += 1;
    }
    // With the two steps back the centre's cell is at least as wide as the reach; towards the poles
    // a cell spans fewer metres.
    let towards_pole = match latitude.abs() {
        latitude if latitude > 80.0 => 2,
        latitude if latitude > 66.0 => 1,
        _ => 0,
    };
    (steps - 2 - towards_pole).clamp(1, FINEST as i32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(longitude: f64, latitude: f64) -> Point {
        Point { longitude, latitude }
    }

    /// Position, score, geohash string, and decoded position, as the reference answers them.
    const KNOWN: [(Point, u64, &str, Point); 12] = [
        (
            at(13.361389, 38.115556),
            3479099956230698,
            "sqc8b49rny0",
            at(13.361389338970184, 38.1155563954963),
        ),
        (
            at(15.087269, 37.502669),
            3479447370796909,
            "sqdtr74hyu0",
            at(15.087267458438873, 37.50266842333162),
        ),
        (
            at(0.0, 0.0),
            3377699720527872,
            "s0000000000",
            at(0.000002682209014892578, 0.0000012673605809254695),
        ),
        (at(-180.0, -85.05112878), 0, "00bh0hbj200", at(-179.99999731779099, -85.05112751263943)),
        (at(180.0, 85.05112878), 13510798882111488, "bp05b5048p0", at(180.0, 85.05112878)),
        (at(180.0, -85.05112878), 9007199254740992, "00bh0hbj200", at(180.0, -85.05112751263943)),
        (
            at(-122.419416, 37.774929),
            1367859919124605,
            "9q8yyk8yuu0",
            at(-122.41941779851913, 37.77492789249853),
        ),
        (
            at(151.209296, -33.868820),
            3252046221958826,
            "r3gx2f75zf0",
            at(151.20929449796677, -33.86882119711083),
        ),
        (
            at(-0.127758, 51.507351),
            2163557714754256,
            "gcpvj0dup10",
            at(-0.1277562975883484, 51.50735008547815),
        ),
        (
            at(179.9999, 12.5),
            4146188286684594,
            "xfpzpgxcv80",
            at(179.99990075826645, 12.499998942409896),
        ),
        (
            at(-179.9999, 12.5),
            1143788535105304,
            "840p0581f20",
            at(-179.99990075826645, 12.499998942409896),
        ),
        (
            at(24.945831, 84.9),
            3788357301021674,
            "ux1dzxsfrg0",
            at(24.94582861661911, 84.89999983295615),
        ),
    ];

    #[test]
    fn positions_are_encoded_as_the_reference_does() {
        for (point, score, letters, decoded) in KNOWN {
            assert_eq!(encode(point), Some(score));
            assert_eq!(decode(score as f64), decoded);
            assert_eq!(geohash(decoded).as_slice(), letters.as_bytes());
        }
        for outside in [at(180.1, 0.0), at(0.0, 85.06), at(0.0, -90.0), at(f64::NAN, 0.0)] {
            assert_eq!(encode(outside), None);
        }
    }

    #[test]
    fn scores_that_are_no_positions_decode_as_in_the_reference() {
        let south_west = at(-179.99999731779099, -85.05112751263943);
        for score in [1e30, f64::INFINITY, 0.5] {
            assert_eq!(decode(score), south_west);
        }
        assert_eq!(decode(f64::NEG_INFINITY), at(180.0, -85.05112751263943));
        assert_eq!(decode(-1.0), at(180.0, 85.05112878));
    }

    #[test]
    fn distances_are_those_of_the_reference() {
        for (from, to, unit, expected) in [
            (0, 1, "m", "166274.1516"),
            (0, 1, "KM", "166.2742"),
            (0, 1, "ft", "545518.8700"),
            (0, 1, "mi", "103.3182"),
            (6, 7, "m", "11951033.4435"),
            (9, 10, "m", "21.5533"),
            (2, 5, "ft", "34648333.0607"),
            (3, 4, "mi", "11756.2756"),
            (8, 11, "m", "3774086.8868"),
            (6, 8, "Km", "8618.8660"),
            (5, 5, "m", "0.0000"),
        ] {
            let unit = Unit::parse(unit.as_bytes()).expect("a known unit");
            let metres = distance(KNOWN[from].3, KNOWN[to].3);
            assert_eq!(four_decimals(metres / unit.in_metres()), expected);
        }
        assert_eq!(Unit::parse(b"yd"), None);
    }

    /// The known positions that a search finds, in the order in which it finds them.
    fn search(shape: Shape, centre: Point) -> Vec<usize> {
        let mut by_score: Vec<usize> = (0..KNOWN.len()).collect();
        by_score.sort_by_key(|&index| KNOWN[index].1);
        let mut found = Vec::new();
        for range in shape.score_ranges(centre) {
            found.extend(by_score.iter().copied().filter(|&index| {
                let (_, score, _, point) = KNOWN[index];
                (range.minimum..range.maximum).contains(&(score as f64))
                    && shape.distance_within(centre, point).is_some()
            }));
        }
        found
    }

    #[test]
    fn searches_find_what_the_reference_finds_in_its_order() {
        let circle = |kilometres: f64| Shape::Circle(kilometres * 1000.0);
        let area = |width, height, unit: Unit| Shape::Box {
            width: width * unit.in_metres(),
            height: height * unit.in_metres(),
        };
        assert_eq!(search(circle(200.0), at(13.0, 38.0)), [0, 1]);
        assert_eq!(search(area(4000.0, 3000.0, Unit::Kilometre), at(0.0, 0.0)), [2]);
        assert_eq!(search(circle(50.0), at(-179.99, 12.4)), [10, 9]);
        assert_eq!(search(area(300.0, 400.0, Unit::Mile), at(20.0, 84.0)), [11]);
        assert_eq!(search(circle(9000.0), at(-100.0, 40.0)), [10, 6, 8, 11, 9]);
        let wide = area(99_999_999.0, 9_999_999.0, Unit::Foot);
        assert_eq!(search(wide, at(151.0, -33.0)), [7]);
    }

    proptest! {
        #[test]
        fn ranges_cover_the_circle(
            longitude in -179.0..179.0,
            latitude in -60.0..60.0,
            radius in 0.0..300_000.0,
            towards in (-1.0..1.0, -1.0..1.0),
        ) {
            let centre = at(longitude, latitude);
            let reach = radius / 100_000.0;
            let point = at(longitude + towards.0 * reach, latitude + towards.1 * reach);
            prop_assume!(Shape::Circle(radius).distance_within(centre, point).is_some());
            let Some(score) = encode(point) else { return Ok(()) };
            let ranges = Shape::Circle(radius).score_ranges(centre);
            prop_assert!(ranges.len() <= 9);
            let is_released = ranges
                .iter()
                .filter(|range| (range.minimum..range.maximum).contains(&(score as f64)))
                .count();
            prop_assert_eq!(is_released, 1);
        }

        #[test]
        fn scores_name_the_cell_of_their_position(
            longitude in -180.0..180.0,
            latitude in -LATITUDE_LIMIT..LATITUDE_LIMIT,
        ) {
            let score = encode(at(longitude, latitude)).expect("within the limits");
            let decoded = decode(score as f64);
            prop_assert!((decoded.longitude - longitude).abs() < 3e-6);
            prop_assert!((decoded.latitude - latitude).abs() < 2e-6);
            prop_assert_eq!(encode(decoded), Some(score));
        }
    }
}
