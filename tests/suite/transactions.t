# MULTI, EXEC, DISCARD, WATCH.

== EXEC runs what MULTI queued
> MULTI
OK
> SET k v
QUEUED
> GET k
QUEUED
> INCR n
QUEUED
> LRANGE nokey 0 -1
QUEUED
> GET nokey
QUEUED
> HGETALL nokey
QUEUED
> EXEC
1) OK
2) "v"
3) (integer) 1
4) (empty array)
5) (nil)
6) (empty array)
resp3:
1) OK
2) "v"
3) (integer) 1
4) (empty array)
5) (nil)
6) (empty hash)
> GET k
"v"
> EXEC
(error) ERR EXEC without MULTI
> MULTI
OK
> EXEC
(empty array)

== DISCARD drops the queue
> SET k v
OK
> MULTI
OK
> SET k w
QUEUED
> DISCARD
OK
> GET k
"v"
> DISCARD
(error) ERR DISCARD without MULTI
> MULTI
OK
> DISCARD
OK

== MULTI does not nest
> MULTI
OK
> MULTI
(error) ERR MULTI calls can not be nested
> SET k v
QUEUED
> MULTI
(error) ERR MULTI calls can not be nested
> EXEC
1) OK
> GET k
"v"
> MULTI a
(error) ERR wrong number of arguments for 'multi' command
> EXEC a
(error) EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
> DISCARD a
(error) ERR wrong number of arguments for 'discard' command
> EXEC
(error) ERR EXEC without MULTI

== errors while running do not stop the rest
> SET k v
OK
> MULTI
OK
> INCR k
QUEUED
> SET k 5
QUEUED
> LPUSH k a
QUEUED
> INCR k
QUEUED
> EXEC
1) (error) ERR value is not an integer or out of range
2) OK
3) (error) WRONGTYPE Operation against a key holding the wrong kind of value
4) (integer) 6
> GET k
"6"

== errors while queueing abort the whole
> SET k v
OK
> MULTI
OK
> SET k w
QUEUED
> nosuchcommand a
(error) ERR unknown command 'nosuchcommand', with args beginning with: 'a'\x20
> SET k
(error) ERR wrong number of arguments for 'set' command
> EXEC
(error) EXECABORT Transaction discarded because of previous errors.
> GET k
"v"
> MULTI
OK
> GET
(error) ERR wrong number of arguments for 'get' command
> DISCARD
OK
> SET k x
OK
> GET k
"x"
> MULTI
OK
> GET k
QUEUED
> EXEC
1) "x"

== commands that are not allowed inside
> MULTI
OK
> WATCH k
(error) ERR WATCH inside MULTI is not allowed
> EXEC
(empty array)
> MULTI
OK
> AUTH x
QUEUED
> EXEC
1) (error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
> MULTI
OK
> PING
QUEUED
> ECHO hi
QUEUED
> SELECT 1
QUEUED
> SET k one
QUEUED
> SELECT 0
QUEUED
> EXEC
1) PONG
2) "hi"
3) OK
4) OK
5) OK
> SELECT 1
OK
> GET k
"one"

== WATCH aborts EXEC when a key was changed
> SET k v
OK
> WATCH k
OK
2> SET k w
OK
> MULTI
OK
> SET k x
QUEUED
> EXEC
(nil array)
> GET k
"w"
> MULTI
OK
> SET k x
QUEUED
> EXEC
1) OK
> GET k
"x"

== WATCH lets EXEC run when nothing was changed
> SET k v
OK
> WATCH k nokey
OK
2> SET other w
OK
2> GET k
"v"
2> EXISTS nokey
(integer) 0
> MULTI
OK
> SET k x
QUEUED
> EXEC
1) OK
> GET k
"x"

== one's own changes count too
> SET k v
OK
> WATCH k
OK
> SET k w
OK
> MULTI
OK
> GET k
QUEUED
> EXEC
(nil array)

== UNWATCH and DISCARD forget the watched keys
> SET k v
OK
> WATCH k
OK
2> SET k w
OK
> UNWATCH
OK
> MULTI
OK
> GET k
QUEUED
> EXEC
1) "w"
> WATCH k
OK
2> SET k x
OK
> MULTI
OK
> DISCARD
OK
> MULTI
OK
> GET k
QUEUED
> EXEC
1) "x"
> WATCH k
OK
> MULTI
OK
> UNWATCH
QUEUED
> EXEC
1) OK
> UNWATCH a
(error) ERR wrong number of arguments for 'unwatch' command
> WATCH
(error) ERR wrong number of arguments for 'watch' command

== creating and removing a watched key counts
> WATCH new
OK
2> SET new v
OK
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> WATCH new
OK
2> DEL new
(integer) 1
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> WATCH new
OK
2> DEL new
(integer) 0
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG

== a command that changes nothing does not count
> SET k v
OK
> SADD s a
(integer) 1
> HSET h f v
(integer) 1
> ZADD z 1 a
(integer) 1
> WATCH k s h z
OK
2> SETNX k w
(integer) 0
2> SADD s a
(integer) 0
2> SREM s nothing
(integer) 0
2> ZADD z 1 a
(integer) 0
2> ZADD z XX 5 nothing
(integer) 0
2> HDEL h nothing
(integer) 0
2> HSETNX h f w
(integer) 0
2> PERSIST k
(integer) 0
2> LPUSHX nokey a
(integer) 0
2> EXPIRE nokey 100
(integer) 0
2> SET k w NX
(nil)
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG

== an overwrite with the same value counts
> SET k v
OK
> WATCH k
OK
2> SET k v
OK
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> HSET h f v
(integer) 1
> WATCH h
OK
2> HSET h f v
(integer) 0
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> WATCH k
OK
2> EXPIRE k 1000
(integer) 1
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)

== flushing and swapping count
> SET k v
OK
> WATCH k
OK
2> FLUSHDB
OK
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> WATCH nokey
OK
2> FLUSHALL
OK
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG
> SET k v
OK
> WATCH k
OK
2> SELECT 1
OK
2> FLUSHDB
OK
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG
> WATCH k
OK
2> SWAPDB 0 1
OK
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> WATCH nokey
OK
2> SWAPDB 0 1
OK
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG

== watched keys belong to their database
> SELECT 1
OK
> WATCH k
OK
> SELECT 0
OK
2> SET k v
OK
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG
> SELECT 1
OK
> WATCH k
OK
> SELECT 0
OK
2> SELECT 1
OK
2> SET k v
OK
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)

== a watched key that expires counts
> SET k v PX 100
OK
> WATCH k
OK
sleep 150
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> SET k v PX 1
OK
sleep 5
> WATCH k
OK
sleep 5
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG

== renaming, moving and storing count
> SET a 1
OK
> WATCH b
OK
2> RENAME a b
OK
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> WATCH c
OK
2> COPY b c
(integer) 1
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> WATCH c
OK
2> MOVE c 1
(integer) 1
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> RPUSH l 2 1
(integer) 2
> WATCH d
OK
2> SORT l STORE d
(integer) 2
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> WATCH l
OK
2> LMOVE l m LEFT LEFT
"2"
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)

== WATCH of several keys, more than once
> WATCH a b a
OK
> WATCH c a
OK
2> SET c v
OK
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)

== EXEC of a failed queue forgets the watched keys
> WATCH k
OK
> MULTI
OK
> GET
(error) ERR wrong number of arguments for 'get' command
2> SET k v
OK
> EXEC
(error) EXECABORT Transaction discarded because of previous errors.
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG

== others see either nothing or all
> MULTI
OK
> SET a 1
QUEUED
2> GET a
(nil)
> SET b 2
QUEUED
2> GET b
(nil)
> EXEC
1) OK
2) OK
2> MGET a b
1) "1"
2) "2"

== blocking commands do not block inside
> MULTI
OK
> BLPOP nokey 0
QUEUED
> BRPOP nokey 0
QUEUED
> BLMOVE nokey n LEFT LEFT 0
QUEUED
> BRPOPLPUSH nokey n 0
QUEUED
> BZPOPMIN nokey 0
QUEUED
> BZPOPMAX nokey 0
QUEUED
> BLMPOP 0 1 nokey LEFT
QUEUED
> BZMPOP 0 1 nokey MIN
QUEUED
> EXEC
1) (nil array)
2) (nil array)
3) (nil)
4) (nil)
5) (nil array)
6) (nil array)
7) (nil array)
8) (nil array)

== EXEC wakes waiters only at its end
2> BLPOP l 0
(blocked)
> MULTI
OK
> RPUSH l a b
QUEUED
> LPOP l
QUEUED
> RPUSH l c
QUEUED
> EXEC
1) (integer) 2
2) "a"
3) (integer) 2
2<
1) "l"
2) "b"
> LRANGE l 0 -1
1) "c"

== EXEC that takes back what it pushed wakes nobody
2> BLPOP l 0
(blocked)
> MULTI
OK
> RPUSH l a
QUEUED
> DEL l
QUEUED
> EXEC
1) (integer) 1
2) (integer) 1
> RPUSH l b
(integer) 1
2<
1) "l"
2) "b"

== a transaction of all families
> MULTI
OK
> SET s v
QUEUED
> RPUSH l a
QUEUED
> SADD set m
QUEUED
> HSET h f v
QUEUED
> ZADD z 1 m
QUEUED
> PFADD p x
QUEUED
> GEOADD g 1 1 x
QUEUED
> SETBIT bits 1 1
QUEUED
> EXPIRE s 100
QUEUED
> TYPE g
QUEUED
> DBSIZE
QUEUED
> KEYS s
QUEUED
> RENAME s t
QUEUED
> EXEC
 1) OK
 2) (integer) 1
 3) (integer) 1
 4) (integer) 1
 5) (integer) 1
 6) (integer) 1
 7) (integer) 1
 8) (integer) 0
 9) (integer) 1
10) zset
11) (integer) 8
12) 1) "s"
13) OK

== RESET leaves MULTI and forgets the watched keys
@resp2
> WATCH k
OK
> MULTI
OK
> SET k v
QUEUED
> RESET
RESET
> EXEC
(error) ERR EXEC without MULTI
> GET k
(nil)
2> SET k w
OK
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG
