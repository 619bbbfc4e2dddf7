# Publish and subscribe: channels, patterns, shard channels.

== a message reaches the subscribers of its channel
2> SUBSCRIBE news sport
(push)
1) "subscribe"
2) "news"
3) (integer) 1
2<
(push)
1) "subscribe"
2) "sport"
3) (integer) 2
3> SUBSCRIBE news
(push)
1) "subscribe"
2) "news"
3) (integer) 1
> PUBLISH news hello
(integer) 2
2<
(push)
1) "message"
2) "news"
3) "hello"
3<
(push)
1) "message"
2) "news"
3) "hello"
> PUBLISH sport goal
(integer) 1
2<
(push)
1) "message"
2) "sport"
3) "goal"
> PUBLISH nothing x
(integer) 0
> PUBLISH news ""
(integer) 2
2<
(push)
1) "message"
2) "news"
3) ""
3<
(push)
1) "message"
2) "news"
3) ""
> PUBLISH news "a\x00b"
(integer) 2
2<
(push)
1) "message"
2) "news"
3) "a\x00b"

== a subscription is counted once
2> SUBSCRIBE a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
2> SUBSCRIBE a b a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
2<
(push)
1) "subscribe"
2) "b"
3) (integer) 2
2<
(push)
1) "subscribe"
2) "a"
3) (integer) 2
> PUBLISH a x
(integer) 1
2<
(push)
1) "message"
2) "a"
3) "x"
2> UNSUBSCRIBE a
(push)
1) "unsubscribe"
2) "a"
3) (integer) 1
> PUBLISH a x
(integer) 0
2> UNSUBSCRIBE nothing
(push)
1) "unsubscribe"
2) "nothing"
3) (integer) 1
2> UNSUBSCRIBE b
(push)
1) "unsubscribe"
2) "b"
3) (integer) 0
2> UNSUBSCRIBE
(push)
1) "unsubscribe"
2) (nil)
3) (integer) 0
2> UNSUBSCRIBE a b
(push)
1) "unsubscribe"
2) "a"
3) (integer) 0
2<
(push)
1) "unsubscribe"
2) "b"
3) (integer) 0

== patterns
2> PSUBSCRIBE n*
(push)
1) "psubscribe"
2) "n*"
3) (integer) 1
> PUBLISH news hello
(integer) 1
2<
(push)
1) "pmessage"
2) "n*"
3) "news"
4) "hello"
> PUBLISH other x
(integer) 0
2> PSUBSCRIBE ?ther
(push)
1) "psubscribe"
2) "?ther"
3) (integer) 2
> PUBLISH other x
(integer) 1
2<
(push)
1) "pmessage"
2) "?ther"
3) "other"
4) "x"
2> PSUBSCRIBE n* h[ae]llo "\\*"
(push)
1) "psubscribe"
2) "n*"
3) (integer) 2
2<
(push)
1) "psubscribe"
2) "h[ae]llo"
3) (integer) 3
2<
(push)
1) "psubscribe"
2) "\\*"
3) (integer) 4
> PUBLISH hello ""
(integer) 1
2<
(push)
1) "pmessage"
2) "h[ae]llo"
3) "hello"
4) ""
> PUBLISH * star
(integer) 1
2<
(push)
1) "pmessage"
2) "\\*"
3) "*"
4) "star"
> PUBLISH hxllo x
(integer) 0
2> PUNSUBSCRIBE n* nothing
(push)
1) "punsubscribe"
2) "n*"
3) (integer) 3
2<
(push)
1) "punsubscribe"
2) "nothing"
3) (integer) 3
> PUBLISH news hello
(integer) 0
2> PUNSUBSCRIBE ?ther
(push)
1) "punsubscribe"
2) "?ther"
3) (integer) 2
2> PUNSUBSCRIBE h[ae]llo
(push)
1) "punsubscribe"
2) "h[ae]llo"
3) (integer) 1
2> PUNSUBSCRIBE
(push)
1) "punsubscribe"
2) "\\*"
3) (integer) 0
> PUBLISH other x
(integer) 0

== each matching pattern delivers
2> PSUBSCRIBE n* ?ews
(push)
1) "psubscribe"
2) "n*"
3) (integer) 1
2<
(push)
1) "psubscribe"
2) "?ews"
3) (integer) 2
> PUBLISH news hello
(integer) 2
2<
...
~ .*"(n\*|\?ews)"
~ .*"news"
~ .*"hello"
2<
...
~ .*"(n\*|\?ews)"
~ .*"news"
~ .*"hello"
2> PUNSUBSCRIBE
...
~ .*"(n\*|\?ews)"
~ .*\(integer\) 1
2<
...
~ .*"(n\*|\?ews)"
~ .*\(integer\) 0

== a channel and a pattern both deliver
2> SUBSCRIBE news
(push)
1) "subscribe"
2) "news"
3) (integer) 1
2> PSUBSCRIBE n*
(push)
1) "psubscribe"
2) "n*"
3) (integer) 2
> PUBLISH news x
(integer) 2
2<
(push)
1) "message"
2) "news"
3) "x"
2<
(push)
1) "pmessage"
2) "n*"
3) "news"
4) "x"
2> UNSUBSCRIBE
(push)
1) "unsubscribe"
2) "news"
3) (integer) 1
2> PUNSUBSCRIBE
(push)
1) "punsubscribe"
2) "n*"
3) (integer) 0

== unsubscribing from everything
2> SUBSCRIBE a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
2> UNSUBSCRIBE
(push)
1) "unsubscribe"
2) "a"
3) (integer) 0
2> UNSUBSCRIBE
(push)
1) "unsubscribe"
2) (nil)
3) (integer) 0
2> PUNSUBSCRIBE
(push)
1) "punsubscribe"
2) (nil)
3) (integer) 0
2> PING
PONG
2> GET k
(nil)

== a RESP2 subscriber may use few commands only
@resp2
2> SUBSCRIBE a
1) "subscribe"
2) "a"
3) (integer) 1
2> GET k
(error) ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
2> SET k v
(error) ERR Can't execute 'set': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
2> PUBLISH a x
(error) ERR Can't execute 'publish': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
2> PING
1) "pong"
2) ""
2> PING hello
1) "pong"
2) "hello"
2> PING a b
(error) ERR wrong number of arguments for 'ping' command
2> SUBSCRIBE
(error) ERR wrong number of arguments for 'subscribe' command
2> nosuchcommand
(error) ERR unknown command 'nosuchcommand', with args beginning with:\x20
2> MULTI
(error) ERR Can't execute 'multi': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
2> HELLO
(error) ERR Can't execute 'hello': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
2> HELLO 2
(error) ERR Can't execute 'hello': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
2> PSUBSCRIBE p
1) "psubscribe"
2) "p"
3) (integer) 2
2> UNSUBSCRIBE
1) "unsubscribe"
2) "a"
3) (integer) 1
2> GET k
(error) ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
2> PUNSUBSCRIBE
1) "punsubscribe"
2) "p"
3) (integer) 0
2> GET k
(nil)

== a RESP2 subscriber can quit or reset
@resp2
2> SUBSCRIBE a
1) "subscribe"
2) "a"
3) (integer) 1
2> RESET
RESET
2> GET k
(nil)
> PUBLISH a x
(integer) 0
2> SUBSCRIBE a
1) "subscribe"
2) "a"
3) (integer) 1
2> QUIT
OK
2<
(closed)

== a RESP3 subscriber may use any command
@resp3
2> SUBSCRIBE a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
2> SET k v
OK
2> GET k
"v"
2> PING
PONG
2> PING hello
"hello"
2> PUBLISH b x
(integer) 0
> PUBLISH a hello
(integer) 1
2<
(push)
1) "message"
2) "a"
3) "hello"
2> GET k
"v"
2> UNSUBSCRIBE a
(push)
1) "unsubscribe"
2) "a"
3) (integer) 0

== a RESP3 subscriber hears itself
@resp3
2> SUBSCRIBE a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
2> PUBLISH a x
(integer) 1
2<
(push)
1) "message"
2) "a"
3) "x"

== PUBSUB tells what is subscribed
> PUBSUB CHANNELS
(empty array)
> PUBSUB NUMPAT
(integer) 0
> PUBSUB NUMSUB
(empty array)
> PUBSUB NUMSUB a b
1) "a"
2) (integer) 0
3) "b"
4) (integer) 0
2> SUBSCRIBE a ab b
(push)
1) "subscribe"
2) "a"
3) (integer) 1
2<
(push)
1) "subscribe"
2) "ab"
3) (integer) 2
2<
(push)
1) "subscribe"
2) "b"
3) (integer) 3
3> SUBSCRIBE a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
3> PSUBSCRIBE x* y*
(push)
1) "psubscribe"
2) "x*"
3) (integer) 2
3<
(push)
1) "psubscribe"
2) "y*"
3) (integer) 3
2> PSUBSCRIBE x*
(push)
1) "psubscribe"
2) "x*"
3) (integer) 4
> [unordered] PUBSUB CHANNELS
1) "a"
2) "ab"
3) "b"
> [unordered] PUBSUB CHANNELS a*
1) "a"
2) "ab"
> PUBSUB CHANNELS nothing*
(empty array)
> PUBSUB NUMPAT
(integer) 2
> PUBSUB NUMSUB a b nothing
1) "a"
2) (integer) 2
3) "b"
4) (integer) 1
5) "nothing"
6) (integer) 0
> pubsub numsub a
1) "a"
2) (integer) 2
close 3
> [eventually] PUBSUB NUMSUB a
1) "a"
2) (integer) 1
> PUBSUB NUMPAT
(integer) 1

== PUBSUB and the wrong numbers of arguments
> PUBSUB
(error) ERR wrong number of arguments for 'pubsub' command
> PUBSUB foo
(error) ERR unknown subcommand 'foo'. Try PUBSUB HELP.
> PUBSUB CHANNELS a b
(error) ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
> PUBSUB NUMPAT a
(error) ERR wrong number of arguments for 'pubsub|numpat' command
> PUBSUB SHARDCHANNELS a b
(error) ERR unknown subcommand or wrong number of arguments for 'SHARDCHANNELS'. Try PUBSUB HELP.
> PUBLISH
(error) ERR wrong number of arguments for 'publish' command
> PUBLISH a
(error) ERR wrong number of arguments for 'publish' command
> PUBLISH a b c
(error) ERR wrong number of arguments for 'publish' command
> SUBSCRIBE
(error) ERR wrong number of arguments for 'subscribe' command
> PSUBSCRIBE
(error) ERR wrong number of arguments for 'psubscribe' command
> SSUBSCRIBE
(error) ERR wrong number of arguments for 'ssubscribe' command
> SPUBLISH a
(error) ERR wrong number of arguments for 'spublish' command
> PUBSUB HELP
~  *1\) .+
...

== unsubscribing without a subscription
> UNSUBSCRIBE
(push)
1) "unsubscribe"
2) (nil)
3) (integer) 0
> UNSUBSCRIBE a
(push)
1) "unsubscribe"
2) "a"
3) (integer) 0
> UNSUBSCRIBE a b
(push)
1) "unsubscribe"
2) "a"
3) (integer) 0
<
(push)
1) "unsubscribe"
2) "b"
3) (integer) 0
> PUNSUBSCRIBE
(push)
1) "punsubscribe"
2) (nil)
3) (integer) 0
> PUNSUBSCRIBE a
(push)
1) "punsubscribe"
2) "a"
3) (integer) 0
> SUNSUBSCRIBE
(push)
1) "sunsubscribe"
2) (nil)
3) (integer) 0
> SUNSUBSCRIBE a
(push)
1) "sunsubscribe"
2) "a"
3) (integer) 0
> PING
PONG

== shard channels
2> SSUBSCRIBE a b
(push)
1) "ssubscribe"
2) "a"
3) (integer) 1
2<
(push)
1) "ssubscribe"
2) "b"
3) (integer) 2
3> SSUBSCRIBE a
(push)
1) "ssubscribe"
2) "a"
3) (integer) 1
> SPUBLISH a hello
(integer) 2
2<
(push)
1) "smessage"
2) "a"
3) "hello"
3<
(push)
1) "smessage"
2) "a"
3) "hello"
> SPUBLISH nothing x
(integer) 0
> PUBLISH a x
(integer) 0
> [unordered] PUBSUB SHARDCHANNELS
1) "a"
2) "b"
> [unordered] PUBSUB SHARDCHANNELS b*
1) "b"
> PUBSUB SHARDNUMSUB a b nothing
1) "a"
2) (integer) 2
3) "b"
4) (integer) 1
5) "nothing"
6) (integer) 0
> PUBSUB SHARDNUMSUB
(empty array)
> PUBSUB CHANNELS
(empty array)
> PUBSUB NUMSUB a
1) "a"
2) (integer) 0
2> SUBSCRIBE a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
> SPUBLISH a x
(integer) 2
2<
(push)
1) "smessage"
2) "a"
3) "x"
3<
(push)
1) "smessage"
2) "a"
3) "x"
> PUBLISH a y
(integer) 1
2<
(push)
1) "message"
2) "a"
3) "y"
2> SUNSUBSCRIBE a
(push)
1) "sunsubscribe"
2) "a"
3) (integer) 1
2> SUNSUBSCRIBE
(push)
1) "sunsubscribe"
2) "b"
3) (integer) 0
2> SUNSUBSCRIBE
(push)
1) "sunsubscribe"
2) (nil)
3) (integer) 0
2> UNSUBSCRIBE
(push)
1) "unsubscribe"
2) "a"
3) (integer) 0
3> SUNSUBSCRIBE nothing
(push)
1) "sunsubscribe"
2) "nothing"
3) (integer) 1
3> SUNSUBSCRIBE a
(push)
1) "sunsubscribe"
2) "a"
3) (integer) 0
> PUBSUB SHARDCHANNELS
(empty array)

== subscribing inside MULTI
> MULTI
OK
> SUBSCRIBE a
QUEUED
> EXEC
...

== shard channels are refused inside MULTI
> MULTI
OK
> SSUBSCRIBE a
QUEUED
> EXEC
1) (error) ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client

== PUBLISH inside MULTI
2> SUBSCRIBE a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
> MULTI
OK
> PUBLISH a 1
QUEUED
> PUBLISH a 2
QUEUED
> EXEC
1) (integer) 1
2) (integer) 1
2<
(push)
1) "message"
2) "a"
3) "1"
2<
(push)
1) "message"
2) "a"
3) "2"

== keyspace events
config set notify-keyspace-events KEA
2> PSUBSCRIBE __key*
(push)
1) "psubscribe"
2) "__key*"
3) (integer) 1
> SET k v
OK
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyspace@0__:k"
4) "set"
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:set"
4) "k"
> DEL k
(integer) 1
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyspace@0__:k"
4) "del"
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:del"
4) "k"
> LPUSH l a
(integer) 1
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyspace@0__:l"
4) "lpush"
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:lpush"
4) "l"
> RPOP l
"a"
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyspace@0__:l"
4) "rpop"
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:rpop"
4) "l"
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyspace@0__:l"
4) "del"
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:del"
4) "l"

== no keyspace events without the setting
2> PSUBSCRIBE __key*
(push)
1) "psubscribe"
2) "__key*"
3) (integer) 1
> SET k v
OK
> PUBLISH __keyX 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyX"
4) "1"

== keyevents of every family
config set notify-keyspace-events EA
2> PSUBSCRIBE __keyevent@0__:*
(push)
1) "psubscribe"
2) "__keyevent@0__:*"
3) (integer) 1
> SET k 1 EX 1000
OK
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:set"
4) "k"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:expire"
4) "k"
> INCR k
(integer) 2
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:incrby"
4) "k"
> INCRBYFLOAT k 1.5
"3.5"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:incrbyfloat"
4) "k"
> APPEND k x
(integer) 4
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:append"
4) "k"
> SETRANGE k 0 y
(integer) 4
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:setrange"
4) "k"
> SETBIT k 0 1
(integer) 0
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:setbit"
4) "k"
> GETEX k PERSIST
"\xf9.5x"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:persist"
4) "k"
> EXPIRE k 100
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:expire"
4) "k"
> PERSIST k
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:persist"
4) "k"
> RENAME k k2
OK
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:rename_from"
4) "k"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:rename_to"
4) "k2"
> COPY k2 k
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:copy_to"
4) "k"
> GETDEL k
"\xf9.5x"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:del"
4) "k"
> MSET a 1 b 2
OK
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:set"
4) "a"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:set"
4) "b"
> EXPIRE a -1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:del"
4) "a"
> MOVE b 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:move_from"
4) "b"
> HSET h f 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hset"
4) "h"
> HINCRBY h f 1
(integer) 2
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hincrby"
4) "h"
> HINCRBYFLOAT h f 1
"3"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hincrbyfloat"
4) "h"
> HDEL h f
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hdel"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:del"
4) "h"
> SADD s a b c
(integer) 3
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:sadd"
4) "s"
> SREM s a
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:srem"
4) "s"
> SPOP s
~ "[bc]"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:spop"
4) "s"
> SMOVE s t nothing
(integer) 0
> SUNIONSTORE u s
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:sunionstore"
4) "u"
> SINTERSTORE u nokey
(integer) 0
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:del"
4) "u"
> ZADD z 1 a 2 b 3 c
(integer) 3
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zadd"
4) "z"
> ZADD z INCR 1 a
"2"
resp3:
(double) 2
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zincr"
4) "z"
> ZINCRBY z 1 a
"3"
resp3:
(double) 3
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zincr"
4) "z"
> ZREM z a
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zrem"
4) "z"
> ZREMRANGEBYRANK z 0 0
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zremrangebyrank"
4) "z"
> ZPOPMAX z
1) "c"
2) "3"
resp3:
1) "c"
2) (double) 3
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zpopmax"
4) "z"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:del"
4) "z"
> ZADD y 1 a 2 b
(integer) 2
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zadd"
4) "y"
> ZREMRANGEBYSCORE y 1 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zremrangebyscore"
4) "y"
> ZUNIONSTORE x 1 y
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zunionstore"
4) "x"
> ZRANGESTORE w y 0 -1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zrangestore"
4) "w"
> RPUSH l c a b
(integer) 3
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:rpush"
4) "l"
> LINSERT l BEFORE a x
(integer) 4
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:linsert"
4) "l"
> LSET l 0 z
OK
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:lset"
4) "l"
> LREM l 1 a
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:lrem"
4) "l"
> LTRIM l 0 1
OK
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:ltrim"
4) "l"
> SORT l ALPHA STORE m
(integer) 2
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:sortstore"
4) "m"
> LMOVE l m LEFT RIGHT
"z"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:rpush"
4) "m"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:lpop"
4) "l"
> PFADD p a
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:pfadd"
4) "p"
> PFMERGE p2 p
OK
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:pfadd"
4) "p2"
> GEOADD g 1 1 a
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:zadd"
4) "g"
> GEOSEARCHSTORE g2 g FROMLONLAT 1 1 BYRADIUS 1 km
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:geosearchstore"
4) "g2"
> BITOP NOT k3 k2
(integer) 4
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:set"
4) "k3"
> BITFIELD k3 SET u8 0 1
1) (integer) 6
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:setbit"
4) "k3"
> [keep=d] DUMP k3
(kept)
> RESTORE k4 0 "$(d)"
OK
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:restore"
4) "k4"
> SET e v PX 1
OK
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:set"
4) "e"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:expire"
4) "e"
sleep 10
> GET e
(nil)
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:expired"
4) "e"
> FLUSHALL
OK
> PUBLISH __keyevent@0__:end x
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:end"
4) "x"

== keyevents of misses and new keys are asked for apart
config set notify-keyspace-events Emn
2> PSUBSCRIBE __key*
(push)
1) "psubscribe"
2) "__key*"
3) (integer) 1
> GET nokey
(nil)
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:keymiss"
4) "nokey"
> SET k v
OK
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:new"
4) "k"
> SET k w
OK
> EXISTS nokey
(integer) 0
> TTL nokey
(integer) -2
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:keymiss"
4) "nokey"
> HGET nokey f
(nil)
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:keymiss"
4) "nokey"
> LPUSH l a
(integer) 1
2<
(push)
1) "pmessage"
2) "__key*"
3) "__keyevent@0__:keymiss"
4) "nokey"

== the setting notify-keyspace-events is printed in its own order
> CONFIG SET notify-keyspace-events ""
OK
> CONFIG GET notify-keyspace-events
1) "notify-keyspace-events"
2) ""
resp3:
1# "notify-keyspace-events" => ""
> CONFIG SET notify-keyspace-events AKE
OK
> CONFIG GET notify-keyspace-events
1) "notify-keyspace-events"
2) "AKE"
resp3:
1# "notify-keyspace-events" => "AKE"
> CONFIG SET notify-keyspace-events lshzxeKEtdmn
OK
> CONFIG GET notify-keyspace-events
1) "notify-keyspace-events"
2) "lshzxetdnKEm"
resp3:
1# "notify-keyspace-events" => "lshzxetdnKEm"
> CONFIG SET notify-keyspace-events K$g
OK
> CONFIG GET notify-keyspace-events
1) "notify-keyspace-events"
2) "g$K"
resp3:
1# "notify-keyspace-events" => "g$K"
> CONFIG SET notify-keyspace-events Ez
OK
> CONFIG GET notify-keyspace-events
1) "notify-keyspace-events"
2) "zE"
resp3:
1# "notify-keyspace-events" => "zE"
> CONFIG SET notify-keyspace-events y
(error) ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event class character. Use 'Ag$lshzxeKEtmdn'.
> CONFIG GET notify-keyspace-events
1) "notify-keyspace-events"
2) "zE"
resp3:
1# "notify-keyspace-events" => "zE"

== CLIENT REPLY does not concern messages
2> CLIENT REPLY OFF
(no reply)
2> SUBSCRIBE news
(push)
1) "subscribe"
2) "news"
3) (integer) 1
> PUBLISH news hello
(integer) 1
2<
(push)
1) "message"
2) "news"
3) "hello"
2> UNSUBSCRIBE
(push)
1) "unsubscribe"
2) "news"
3) (integer) 0
2> PING
(no reply)
2> CLIENT REPLY ON
OK
