//! The vocabulary of what clients do to each other: they wait for others' writes, receive others'
//! messages, end others' waits, and close others' connections.
//!
//! `<queue>` and `<ranking>` are keys of lists and of sorted sets alone: when a client waits for
//! several keys and one of them gets a value of another type, Redis serves it in another way
//! (`docs/COMPATIBILITY.md`).

use super::Comparison::{Clients, Exact, Shape, Unordered};
use super::{Form, Vocabulary};

/// What clients do to each other.
pub const SEVERAL: Vocabulary = Vocabulary {
    families: &[WAITING, SERVING, MESSAGES, CONNECTIONS, TRANSACTIONS, SCRIPTS],
    weights: &[16, 20, 20, 14, 12, 8],
    always_right: &[
        "BLPOP",
        "BRPOP",
        "BLMOVE",
        "BRPOPLPUSH",
        "BLMPOP",
        "BZPOPMIN",
        "BZPOPMAX",
        "BZMPOP",
        "CLIENT",
        "COPY",
        "EVAL",
        "EVALSHA",
        "FCALL",
        "FUNCTION",
        "HELLO",
        "RENAME",
    ],
};

const WAITING: &[Form] = &[
    (Exact, "BLPOP <list> 0"),
    (Exact, "BRPOP <list> 0"),
    (Exact, "BLPOP ( <queue> )+ 0"),
    (Exact, "BRPOP ( <queue> )+ 0"),
    (Exact, "BLMOVE <list> <list> ( LEFT | RIGHT ) ( LEFT | RIGHT ) 0"),
    (Exact, "BLMOVE <queue> <queue> ( LEFT | RIGHT ) ( LEFT | RIGHT ) 0"),
    (Exact, "BRPOPLPUSH <queue> <queue> 0"),
    (Exact, "BLMPOP 0 2 <queue> <queue> ( LEFT | RIGHT ) [ COUNT ( 1 | 2 | 3 ) ]"),
    (Exact, "BZPOPMIN <zset> 0"),
    (Exact, "BZPOPMAX <zset> 0"),
    (Exact, "BZPOPMIN ( <ranking> )+ 0"),
    (Exact, "BZPOPMAX ( <ranking> )+ 0"),
    (Exact, "BZMPOP 0 2 <ranking> <ranking> ( MIN | MAX ) [ COUNT ( 1 | 2 | 3 ) ]"),
    (Exact, "XREAD [ COUNT <count> ] BLOCK 0 STREAMS <stream> ( $ | + | <id> )"),
    (
        Exact,
        "XREADGROUP GROUP <group> <consumer> [ COUNT <count> ] BLOCK 0 [ NOACK ] STREAMS <stream> >",
    ),
];

const SERVING: &[Form] = &[
    (Exact, "RPUSH <queue> ( <member> )+"),
    (Exact, "LPUSH <queue> ( <member> )+"),
    (Exact, "RPUSH <list> ( <member> )+"),
    (Exact, "LINSERT <queue> ( BEFORE | AFTER ) <member> <member>"),
    (Exact, "LPOP <queue> [ <count> ]"),
    (Exact, "RPOP <queue>"),
    (Exact, "LMOVE <queue> <queue> ( LEFT | RIGHT ) ( LEFT | RIGHT )"),
    (Exact, "RPOPLPUSH <queue> <queue>"),
    (Exact, "LLEN <queue>"),
    (Exact, "LRANGE <queue> 0 -1"),
    (Exact, "DEL ( <queue> | <ranking> | <list> | <zset> | <stream> )"),
    (Exact, "RENAME <queue> <queue>"),
    (Exact, "RENAMENX <ranking> <ranking>"),
    (Exact, "COPY <queue> <queue> [ REPLACE ]"),
    (Exact, "MOVE <queue> ( 0 | 1 )"),
    (Exact, "ZADD <ranking> ( <score> <member> )+"),
    (Exact, "ZADD <zset> ( <score> <member> )+"),
    (Exact, "ZINCRBY <ranking> <score> <member>"),
    (Exact, "ZPOPMIN <ranking>"),
    (Exact, "ZREM <ranking> ( <member> )+"),
    (Exact, "ZRANGE <ranking> 0 -1"),
    (Exact, "ZUNIONSTORE <ranking> 2 <ranking> <ranking>"),
    (Exact, "XADD <stream> 5-* f1 <member>"),
    (Exact, "XGROUP CREATE <stream> <group> ( $ | 0 ) MKSTREAM"),
    (Exact, "XGROUP DESTROY <stream> <group>"),
    (Exact, "XACK <stream> <group> ( <id> )+"),
    (Exact, "SWAPDB 0 1"),
    (Exact, "OBJECT ENCODING <queue>"),
];

/// When one client listens to several patterns or channels, their order differs between the
/// servers; so no two patterns match one name.
const MESSAGES: &[Form] = &[
    (Exact, "SUBSCRIBE ( <channel> )+"),
    (Exact, "UNSUBSCRIBE ( <channel> )+"),
    (Exact, "PSUBSCRIBE ( c* | __keyspace* | __keyevent* )"),
    (Exact, "PSUBSCRIBE ( __keyspace* | __keyevent* )"),
    (Exact, "PUNSUBSCRIBE ( c* | __keyspace* | __keyevent* )"),
    (Exact, "SSUBSCRIBE ( <channel> )+"),
    (Exact, "SUNSUBSCRIBE ( <channel> )+"),
    (Exact, "PUBLISH <channel> <value>"),
    (Exact, "PUBLISH <channel> <value>"),
    (Exact, "PUBLISH <channel> <value>"),
    (Exact, "SPUBLISH <channel> <value>"),
    (Unordered, "PUBSUB CHANNELS [ ( c* | c1 | x ) ]"),
    (Unordered, "PUBSUB SHARDCHANNELS"),
    (Exact, "PUBSUB NUMSUB ( <channel> )+"),
    (Exact, "PUBSUB SHARDNUMSUB ( <channel> )+"),
    (Exact, "PUBSUB NUMPAT"),
    (Exact, "RESET"),
];

/// Without CLIENT NO-TOUCH: Redis 8.0 crashes when such a client serves one that waits.
const CONNECTIONS: &[Form] = &[
    (Shape, "HELLO ( 2 | 3 )"),
    (Shape, "HELLO 3"),
    (Exact, "HELLO ( 1 | 4 | abc )"),
    (Exact, "RESET"),
    (Clients, "CLIENT LIST"),
    (Clients, "CLIENT LIST ID <client>"),
    (Clients, "CLIENT LIST TYPE ( normal | pubsub )"),
    (Clients, "CLIENT INFO"),
    (Exact, "CLIENT SETNAME ( one | two )"),
    (Exact, "CLIENT GETNAME"),
    (Exact, "CLIENT SETINFO ( LIB-NAME | LIB-VER ) ( lib | 1.0 )"),
    (Exact, "CLIENT NO-EVICT ( ON | OFF )"),
    (Exact, "CLIENT UNBLOCK <client>"),
    (Exact, "CLIENT UNBLOCK <client> ( TIMEOUT | ERROR )"),
    (Exact, "CLIENT KILL ID <client> [ SKIPME ( YES | NO ) ]"),
    (Exact, "QUIT"),
    (Exact, "SELECT ( 0 | 0 | 1 | 16 )"),
    (Exact, "PING"),
];

const TRANSACTIONS: &[Form] = &[
    (Exact, "MULTI"),
    (Exact, "EXEC"),
    (Exact, "EXEC"),
    (Exact, "DISCARD"),
    (Exact, "WATCH ( <key> | <queue> | <ranking> )"),
    (Exact, "WATCH ( <key> )+"),
    (Exact, "UNWATCH"),
    (Exact, "FLUSHDB"),
    (Exact, "SET <key> <value>"),
    (Exact, "DEL <key>"),
    (Exact, "EXPIREAT <key> ( 1 | 9999999999 )"),
];

const SCRIPTS: &[Form] = &[
    (Exact, "EVAL <reading> 1 <key>"),
    (Exact, "EVAL <pushing> 2 <queue> <queue> <member>"),
    (Exact, "EVAL <adding> 1 <ranking> <member>"),
    (Exact, "EVAL <publishing> 0 <channel> <value>"),
    (Exact, "EVAL <popping> 1 <queue>"),
    (Exact, "EVAL_RO <reading> 1 <string>"),
    (Exact, "SCRIPT LOAD <script>"),
    (Exact, "SCRIPT EXISTS <sha> <sha>"),
    (
        Exact,
        "EVALSHA ( e0e1f9fabfc9d4800c877a703b823ac0578ff8db | 4a2267357833227dd98abdedb8cf24b15a986445 ) 1 <string>",
    ),
    (Exact, "SCRIPT FLUSH"),
    (Exact, "FUNCTION LOAD REPLACE <library>"),
    (Exact, "FUNCTION DELETE lib"),
    (Exact, "FCALL put 2 <queue> <queue> <member>"),
    (Exact, "FCALL_RO count 1 <queue>"),
];
