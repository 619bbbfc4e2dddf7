//! The rows of the geo commands, and their documentation.

use super::search::{
    georadius, georadius_ro, georadiusbymember, georadiusbymember_ro, geosearch, geosearchstore,
};
use super::{geoadd, geodist, geohash, geopos};
use engine::command::{
    ACCESS, Argument, ArgumentKind, DENYOOM, Docs, Group, KeyFlags, KeySpec, MOVABLE_KEYS, OW,
    READONLY, READS, RO, STORES, UPDATE, UPDATES, WRITE, argument, block, docs, key, one_of, word,
};
use engine::engine::{Command, Family, row};
use resp::args::Arguments;

const READ: KeySpec = KeySpec::at(RO | ACCESS, 1);

/// Reads the first key, and may store under one that stands behind an option, from the sixth
/// argument on.
const SEARCHES_6: &[KeySpec] =
    &[READ, KeySpec::behind(OW | UPDATE, "STORE", 6), KeySpec::behind(OW | UPDATE, "STOREDIST", 6)];
/// The same, from the fifth.
const SEARCHES_5: &[KeySpec] =
    &[READ, KeySpec::behind(OW | UPDATE, "STORE", 5), KeySpec::behind(OW | UPDATE, "STOREDIST", 5)];

/// The keys of a search whose options begin at `first`. STORE may also be the name of a key. The
/// last destination counts.
fn find_keys(argv: Arguments<'_>, first: usize, visit: &mut dyn FnMut(usize, KeyFlags)) {
    let (mut index, mut destination) = (first, None);
    while index < argv.len() {
        let is = |word: &str| argv.at(index).eq_ignore_ascii_case(word.as_bytes());
        if (is("store") || is("storedist")) && index + 1 < argv.len() {
            index += 1;
            destination = Some(index);
        } else if is("count") {
            index += 1;
        }
        index += 1;
    }
    visit(1, RO | ACCESS);
    if let Some(index) = destination {
        visit(index, OW | UPDATE);
    }
}

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::Geo.rows([
    row("geoadd", geoadd, -5, WRITE | DENYOOM, UPDATES),
    row("geopos", geopos, -2, READONLY, READS),
    row("geohash", geohash, -2, READONLY, READS),
    row("geodist", geodist, -4, READONLY, READS),
    row("geosearch", geosearch, -7, READONLY, READS),
    row("geosearchstore", geosearchstore, -8, WRITE | DENYOOM, STORES),
    row("georadius", georadius, -6, WRITE | DENYOOM | MOVABLE_KEYS, SEARCHES_6)
        .key_finder(|argv, visit| find_keys(argv, 6, visit)),
    row("georadius_ro", georadius_ro, -6, READONLY, READS),
    row("georadiusbymember", georadiusbymember, -5, WRITE | DENYOOM | MOVABLE_KEYS, SEARCHES_5)
        .key_finder(|argv, visit| find_keys(argv, 5, visit)),
    row("georadiusbymember_ro", georadiusbymember_ro, -5, READONLY, READS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const KEY: Argument = key("key", 0);
const MEMBER: Argument = argument("member", ArgumentKind::String);
const LONGITUDE: Argument = argument("longitude", ArgumentKind::Double);
const LATITUDE: Argument = argument("latitude", ArgumentKind::Double);
const RADIUS: Argument = argument("radius", ArgumentKind::Double);
const UNIT: Argument =
    one_of("unit", &[word("m", "M"), word("km", "KM"), word("ft", "FT"), word("mi", "MI")]);

const WITHCOORD: Argument = word("withcoord", "WITHCOORD").optional();
const WITHDIST: Argument = word("withdist", "WITHDIST").optional();
const WITHHASH: Argument = word("withhash", "WITHHASH").optional();
const COUNT: Argument = argument("count", ArgumentKind::Integer).token("COUNT");
const ANY: Argument = word("any", "ANY").optional();
const COUNT_ANY: Argument = block("count-block", &[COUNT, ANY]).optional();
/// Where COUNT was there before ANY.
const COUNT_LATER_ANY: Argument = block("count-block", &[COUNT, ANY.since("6.2.0")]).optional();

const ORDER: Argument = one_of("order", &[word("asc", "ASC"), word("desc", "DESC")]).optional();
const STORE: Argument = one_of(
    "store",
    &[
        key("storekey", 1).shown("key").token("STORE"),
        key("storedistkey", 2).shown("key").token("STOREDIST"),
    ],
)
.optional();

const FROM: Argument = one_of(
    "from",
    &[MEMBER.token("FROMMEMBER"), block("fromlonlat", &[LONGITUDE, LATITUDE]).token("FROMLONLAT")],
);

const BY: Argument = one_of(
    "by",
    &[
        block("circle", &[RADIUS.token("BYRADIUS"), UNIT]),
        block(
            "box",
            &[
                argument("width", ArgumentKind::Double).token("BYBOX"),
                argument("height", ArgumentKind::Double),
                UNIT,
            ],
        ),
        block(
            "polygon",
            &[
                argument("num-vertices", ArgumentKind::Integer).token("BYPOLYGON"),
                block("vertices", &[LONGITUDE, LATITUDE]).multiple(),
            ],
        )
        .since("9.0.0"),
    ],
);

const RADIUS_COST: &str = "O(N+log(M)) for N members in the box around the circle, of M in all.";
const SEARCH_COST: &str = "O(N+log(M)) for N members in the box around the shape, of M in all.";
const ANY_ADDED: (&str, &str) = ("6.2.0", "Added the option `ANY` of `COUNT`.");
const UPPERCASE: (&str, &str) = ("7.0.0", "Names of units may be in upper case.");
const POLYGON_ADDED: (&str, &str) = ("9.0.0", "Added the option `BYPOLYGON`.");
const BY_RADIUS: &str = "`GEOSEARCH` with the `BYRADIUS` argument";
const BY_RADIUS_OR_STORE: &str = "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument";
const BY_MEMBER: &str = "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments";
const BY_MEMBER_OR_STORE: &str =
    "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments";

const DOCS: &[Docs] = &[
    docs("geoadd", "3.2.0", "Adds members with their positions, or moves them.")
        .cost("O(log(N)) for each member that is given, of N.")
        .arguments(&[
            KEY,
            one_of("condition", &[word("nx", "NX"), word("xx", "XX")]).since("6.2.0").optional(),
            word("change", "CH").since("6.2.0").optional(),
            block("data", &[LONGITUDE, LATITUDE, MEMBER]).multiple(),
        ])
        .history(&[("6.2.0", "Added the options `CH`, `NX` and `XX`.")]),
    docs("geopos", "3.2.0", "Returns the positions of members.")
        .cost("O(N) for N members that are asked for.")
        .arguments(&[KEY, MEMBER.optional().multiple()]),
    docs("geohash", "3.2.0", "Returns the positions of members as standard geohash strings.")
        .cost("O(log(N)) for each member that is asked for, of N.")
        .arguments(&[KEY, MEMBER.optional().multiple()]),
    docs("geodist", "3.2.0", "Returns the distance of two members.").cost("O(log(N))").arguments(
        &[
            KEY,
            argument("member1", ArgumentKind::String),
            argument("member2", ArgumentKind::String),
            UNIT.optional(),
        ],
    ),
    docs("geosearch", "6.2.0", "Returns the members within a circle, a box or a polygon.")
        .cost(SEARCH_COST)
        .arguments(&[KEY, FROM, BY, ORDER, COUNT_ANY, WITHCOORD, WITHDIST, WITHHASH])
        .history(&[UPPERCASE, POLYGON_ADDED]),
    docs(
        "geosearchstore",
        "6.2.0",
        "Stores the members within a circle, a box or a polygon under another key.",
    )
    .cost(SEARCH_COST)
    .arguments(&[
        key("destination", 0),
        key("source", 1),
        FROM,
        BY,
        ORDER,
        COUNT_ANY,
        word("storedist", "STOREDIST").optional(),
    ])
    .history(&[UPPERCASE, POLYGON_ADDED]),
    docs("georadius", "3.2.0", "Returns or stores the members within a distance of a position.")
        .cost(RADIUS_COST)
        .arguments(&[
            KEY,
            LONGITUDE,
            LATITUDE,
            RADIUS,
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT_LATER_ANY,
            ORDER,
            STORE,
        ])
        .history(&[ANY_ADDED, UPPERCASE])
        .deprecated("6.2.0", BY_RADIUS_OR_STORE),
    docs("georadius_ro", "3.2.10", "Returns the members within a distance of a position.")
        .cost(RADIUS_COST)
        .arguments(&[
            KEY,
            LONGITUDE,
            LATITUDE,
            RADIUS,
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT_LATER_ANY,
            ORDER,
        ])
        .history(&[ANY_ADDED, UPPERCASE])
        .deprecated("6.2.0", BY_RADIUS),
    docs(
        "georadiusbymember",
        "3.2.0",
        "Returns or stores the members within a distance of another one.",
    )
    .cost(RADIUS_COST)
    .arguments(&[KEY, MEMBER, RADIUS, UNIT, WITHCOORD, WITHDIST, WITHHASH, COUNT_ANY, ORDER, STORE])
    .history(&[ANY_ADDED, UPPERCASE])
    .deprecated("6.2.0", BY_MEMBER_OR_STORE),
    docs("georadiusbymember_ro", "3.2.10", "Returns the members within a distance of another one.")
        .cost(RADIUS_COST)
        .arguments(&[KEY, MEMBER, RADIUS, UNIT, WITHCOORD, WITHDIST, WITHHASH, COUNT_ANY, ORDER])
        .history(&[ANY_ADDED, UPPERCASE])
        .deprecated("6.2.0", BY_MEMBER),
];
