//! The vocabulary of what Valkey has and Redis lacks: its commands, its filters of clients, its
//! import mode, and the commands that show their effects.
//!
//! A form that Redis refuses is not here: dunlin refuses it too. Import mode is a setting of the
//! round, since only that mode keeps a time that is over.

use super::Comparison::{Clients, Exact, Pairs, Shape, Time, Unordered};
use super::{Form, Vocabulary};

/// What Valkey alone has.
pub const VALKEY: Vocabulary = Vocabulary {
    families: &[STRINGS, EXPIRY, HASHES, PLACES, CLIENTS, IMPORT, SCRIPTS, LOGS],
    weights: &[20, 16, 10, 8, 16, 4, 4, 2],
    always_right: &[
        "BITCOUNT",
        "CLIENT",
        "GEOSEARCH",
        "GEOSEARCHSTORE",
        "GETEX",
        "HPEXPIREAT",
        "HPERSIST",
        "HPEXPIRETIME",
        "HSETEX",
        "SORT",
    ],
};

const STRINGS: &[Form] = &[
    (
        Exact,
        "SET <string> <member> IFEQ <member> [ GET ] [ ( EXAT <future> | KEEPTTL | EX <seconds> ) ]",
    ),
    (Exact, "SET <key> <member> IFEQ <member> [ GET ]"),
    (Exact, "SET <string> <member> ( NX | XX | IFEQ <member> ) ( NX | XX | IFEQ <member> )"),
    (Exact, "SET <string> <member>"),
    (Exact, "SET <string> <member>"),
    (Exact, "SET <string> <integer>"),
    (Exact, "DELIFEQ <string> <member>"),
    (Exact, "DELIFEQ <string> <integer>"),
    (Exact, "DELIFEQ <key> <member>"),
    (Exact, "GET <string>"),
    (Exact, "BITCOUNT <string> [ <place> [ <place> [ ( BYTE | BIT ) ] ] ]"),
    (Exact, "APPEND <string> <member>"),
    (Exact, "INCR <string>"),
    (Exact, "RPUSH <list> <member>"),
    (Exact, "EXISTS ( <key> )+"),
];

/// Times that are over matter in import mode. They are absolute, so that two clocks agree.
const EXPIRY: &[Form] = &[
    (Exact, "SET <string> <member> ( PXAT | EXAT ) ( 1 | 100 | <future> )"),
    (Exact, "EXPIREAT <key> ( 1 | -1 | -1000 | <future> ) [ ( NX | XX | GT | LT ) ]"),
    (Exact, "PEXPIREAT <key> ( 1 | -1 | 100 | <unixms> ) [ ( NX | XX | GT | LT ) ]"),
    (Exact, "EXPIRE <key> ( -1 | <seconds> )"),
    (Exact, "GETEX <string> ( PERSIST | EXAT 1 | PXAT 1 | EXAT 9999999999 )"),
    (Exact, "PERSIST <key>"),
    (Time, "TTL <key>"),
    (Time, "PTTL <key>"),
    (Time, "PEXPIRETIME <string>"),
    (Exact, "GET <string>"),
    (Exact, "MGET <string> <string> <string>"),
    (Exact, "TYPE <key>"),
    (Exact, "EXISTS ( <key> )+"),
    (Unordered, "KEYS *"),
    (Unordered, "SCAN 0 COUNT 1000"),
    (Exact, "RENAME <key> <key>"),
    (Exact, "RENAMENX <key> <key>"),
    (Exact, "COPY <key> <key> [ REPLACE ]"),
    (Exact, "INCR <string>"),
    (Exact, "APPEND <string> <member>"),
    (Exact, "SETRANGE <string> <offset> <member>"),
    (Exact, "RPUSH <list> <member>"),
    (Exact, "LRANGE <list> 0 -1"),
    (Exact, "LMOVE <list> <list> LEFT RIGHT"),
    // Valkey says of an expired key that it existed.
    (Shape, "DEL <key>"),
    (Unordered, "SORT <list> ALPHA STORE <list>"),
];

/// Each server decides itself which command removes fields whose time is over, and when.
const HASHES: &[Form] = &[
    (Exact, "HSET <hash> ( <field> <member> )+"),
    (Exact, "HPEXPIREAT <hash> ( 7777777777777 | 9999999999999 ) FIELDS 2 <field> <field>"),
    (Exact, "HPERSIST <hash> FIELDS 1 <field>"),
    (Exact, "HPEXPIRETIME <hash> FIELDS 3 <field> <field> <field>"),
    (Exact, "HSETEX <hash> ( PXAT 7777777777777 | KEEPTTL ) FIELDS 1 <field> <member>"),
    (Exact, "HGET <hash> <field>"),
    (Pairs, "HGETALL <hash>"),
    (Exact, "HLEN <hash>"),
    (Exact, "HDEL <hash> <field>"),
    (Exact, "HINCRBY <hash> <field> 1"),
];

/// Errors about a missing shape have other words, since they name the polygon, and coordinates are
/// shown with more digits. The middle of a polygon is where the map has places: around others
/// Valkey 9.1 finds what chance has left in its memory.
const PLACES: &[Form] = &[
    (Exact, "GEOADD <geo> ( <longitude> <latitude> <member> )+"),
    (Exact, "GEOADD <geo> ( <east> <mild> <member> )+"),
    (Exact, "GEOADD <geo> ( <east> <mild> <member> )+"),
    (
        Exact,
        "GEOSEARCH <geo> BYPOLYGON ( 3 | 3 | 3 | 2 | 4 | x ) <east> <mild> <east> <mild> <east> <mild> [ ( ASC | DESC ) ] [ WITHDIST ] [ WITHHASH ]",
    ),
    (
        Exact,
        "GEOSEARCH <geo> BYPOLYGON 5 <east> 0 <east> <mild> <east> <mild> <east> <mild> <east> <mild> [ ASC COUNT <count> ] [ WITHDIST ]",
    ),
    (
        Exact,
        "GEOSEARCH <geo> BYPOLYGON 4 -20 -70 100 -70 100 70 -20 70 [ ( BYRADIUS 1 m | BYBOX 1 1 m | FROMMEMBER <member> | FROMLONLAT 1 1 | BYPOLYGON 3 1 1 2 2 3 1 ) ] [ COUNT <count> ANY ]",
    ),
    (
        Exact,
        "GEOSEARCHSTORE <geo> <geo> BYPOLYGON 3 <east> <mild> <east> <mild> <east> <mild> [ STOREDIST ]",
    ),
    (Unordered, "ZSCAN <geo> 0 COUNT 1000 NOSCORES [ MATCH <pattern> ]"),
];

/// Filters of clients, right ones and wrong ones. Numbers of clients are each server's own.
macro_rules! filters {
    () => {
        "( NAME ( one | two | nobody ) | NOT-NAME ( one | two ) \
         | DB ( 0 | 1 | 3 | 15 | 16 | -1 | x ) | NOT-DB ( 0 | 3 | 99 ) \
         | FLAGS ( N | P | x | Px | z | T | I ) | NOT-FLAGS ( N | P | z ) \
         | LIB-NAME ( lib | other ) | NOT-LIB-NAME lib | LIB-VER ( 1.0 | 2 ) | NOT-LIB-VER 1.0 \
         | CAPA ( r | q ) | NOT-CAPA ( r | q ) \
         | IP ( 127.0.0.1 | 10.0.0.1 ) | NOT-IP ( 127.0.0.1 | 10.0.0.1 ) \
         | TYPE ( normal | pubsub | replica | none ) | NOT-TYPE ( normal | pubsub | none ) \
         | USER default | NOT-USER default \
         | ADDR 10.0.0.1:1 | NOT-ADDR 10.0.0.1:1 | LADDR 10.0.0.1:1 | NOT-LADDR 10.0.0.1:1 \
         | ID 999999999 | NOT-ID ( 999999999 | 999999998 999999999 ) \
         | MAXAGE ( 100000 | 0 | -1 | x ) | IDLE ( 100000 | 0 | -1 | x ) )+"
    };
}

const CLIENTS: &[Form] = &[
    (Clients, concat!("CLIENT LIST ", filters!())),
    (Clients, concat!("CLIENT LIST ", filters!(), " [ SKIPME ( YES | NO | <member> ) ]")),
    (Clients, "CLIENT LIST"),
    // More of them would leave no client to look at.
    (Exact, concat!("CLIENT KILL NAME ( one | two | nobody ) ", filters!())),
    (Exact, "CLIENT CAPA ( redirect | REDIRECT | subscribe | <member> )+"),
    (Exact, "CLIENT SETNAME ( one | me )"),
    (Exact, "CLIENT SETINFO ( LIB-NAME | LIB-VER ) ( lib | 1.0 )"),
    (Exact, "CLIENT NO-TOUCH ( ON | OFF )"),
    (Exact, "SELECT ( 0 | 1 )"),
    (Exact, "RESET"),
];

const IMPORT: &[Form] = &[
    (Exact, "CLIENT IMPORT-SOURCE ( ON | ON | OFF | <member> )"),
    (Exact, "CONFIG GET import-mode"),
    (Clients, "CLIENT LIST FLAGS ( I | N | TI )"),
];

const SCRIPTS: &[Form] = &[
    (Exact, "SCRIPT LOAD <script>"),
    (Exact, "SCRIPT SHOW <sha>"),
    (Exact, "SCRIPT FLUSH"),
    // Errors of scripts have other words.
    (Shape, "EVALSHA <sha> 1 <string>"),
    (Shape, "EVAL <script> 1 <string>"),
    (Shape, "EVAL <writing> 1 <string> <member>"),
];

/// What the logs hold is each server's own: times, and commands that the harness sends.
const LOGS: &[Form] = &[
    (Exact, "COMMANDLOG RESET ( large-request | LARGE-REPLY | <member> )"),
    (Exact, "COMMANDLOG LEN ( large-request | large-reply | <member> )"),
    (
        Exact,
        "COMMANDLOG GET ( <count> | -1 | -2 | <member> ) ( large-request | large-reply | <member> )",
    ),
    (Pairs, "CONFIG GET commandlog-*"),
];
