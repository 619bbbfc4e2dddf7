//! The rows of the geo commands.

use super::search::{
    georadius, georadius_ro, georadiusbymember, georadiusbymember_ro, geosearch, geosearchstore,
};
use super::{geoadd, geodist, geohash, geopos};
use crate::command::{
    ACCESS, Argument, ArgumentKind, Command, DENYOOM, Group, KeySpec, MOVABLE_KEYS, OW, READONLY,
    RO, RW, UPDATE, WRITE, argument, block, key, one_of, word,
};

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

const READ: KeySpec = KeySpec::at(RO | ACCESS, 1);

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

/// A command that reads one key.
const fn reading(
    name: &'static str,
    handler: crate::command::Handler,
    arity: i32,
    since: &'static str,
) -> Command {
    Command::new(name, handler, arity, Group::Geo, since).flags(READONLY).keys(&[READ])
}

/// The rows of this family.
pub(crate) const COMMANDS: &[Command] = &[
    Command::new("geoadd", geoadd, -5, Group::Geo, "3.2.0")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::at(RW | UPDATE, 1)])
        .docs(
            "O(log(N)) for each member that is given, of N.",
            "Adds members with their positions, or moves them.",
        )
        .arguments(&[
            KEY,
            one_of("condition", &[word("nx", "NX"), word("xx", "XX")]).since("6.2.0").optional(),
            word("change", "CH").since("6.2.0").optional(),
            block("data", &[LONGITUDE, LATITUDE, MEMBER]).multiple(),
        ])
        .history(&[("6.2.0", "Added the options `CH`, `NX` and `XX`.")]),
    reading("geopos", geopos, -2, "3.2.0")
        .docs("O(N) for N members that are asked for.", "Returns the positions of members.")
        .arguments(&[KEY, MEMBER.optional().multiple()]),
    reading("geohash", geohash, -2, "3.2.0")
        .docs(
            "O(log(N)) for each member that is asked for, of N.",
            "Returns the positions of members as standard geohash strings.",
        )
        .arguments(&[KEY, MEMBER.optional().multiple()]),
    reading("geodist", geodist, -4, "3.2.0")
        .docs("O(log(N))", "Returns the distance of two members.")
        .arguments(&[
            KEY,
            argument("member1", ArgumentKind::String),
            argument("member2", ArgumentKind::String),
            UNIT.optional(),
        ]),
    reading("geosearch", geosearch, -7, "6.2.0")
        .docs(SEARCH_COST, "Returns the members within a circle, a box or a polygon.")
        .arguments(&[KEY, FROM, BY, ORDER, COUNT_ANY, WITHCOORD, WITHDIST, WITHHASH])
        .history(&[UPPERCASE, POLYGON_ADDED]),
    Command::new("geosearchstore", geosearchstore, -8, Group::Geo, "6.2.0")
        .flags(WRITE | DENYOOM)
        .keys(&[KeySpec::at(OW | UPDATE, 1), KeySpec::at(RO | ACCESS, 2)])
        .docs(
            SEARCH_COST,
            "Stores the members within a circle, a box or a polygon under another key.",
        )
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
    Command::new("georadius", georadius, -6, Group::Geo, "3.2.0")
        .flags(WRITE | DENYOOM | MOVABLE_KEYS)
        .keys(&[
            READ,
            KeySpec::behind(OW | UPDATE, "STORE", 6),
            KeySpec::behind(OW | UPDATE, "STOREDIST", 6),
        ])
        .docs(RADIUS_COST, "Returns or stores the members within a distance of a position.")
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
    reading("georadius_ro", georadius_ro, -6, "3.2.10")
        .docs(RADIUS_COST, "Returns the members within a distance of a position.")
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
    Command::new("georadiusbymember", georadiusbymember, -5, Group::Geo, "3.2.0")
        .flags(WRITE | DENYOOM | MOVABLE_KEYS)
        .keys(&[
            READ,
            KeySpec::behind(OW | UPDATE, "STORE", 5),
            KeySpec::behind(OW | UPDATE, "STOREDIST", 5),
        ])
        .docs(RADIUS_COST, "Returns or stores the members within a distance of another one.")
        .arguments(&[
            KEY, MEMBER, RADIUS, UNIT, WITHCOORD, WITHDIST, WITHHASH, COUNT_ANY, ORDER, STORE,
        ])
        .history(&[ANY_ADDED, UPPERCASE])
        .deprecated("6.2.0", BY_MEMBER_OR_STORE),
    reading("georadiusbymember_ro", georadiusbymember_ro, -5, "3.2.10")
        .docs(RADIUS_COST, "Returns the members within a distance of another one.")
        .arguments(&[KEY, MEMBER, RADIUS, UNIT, WITHCOORD, WITHDIST, WITHHASH, COUNT_ANY, ORDER])
        .history(&[ANY_ADDED, UPPERCASE])
        .deprecated("6.2.0", BY_MEMBER),
];
