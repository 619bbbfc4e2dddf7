# Commands that wait.

== BLPOP takes at once what is there
> RPUSH l a b c
(integer) 3
> BLPOP l 0
1) "l"
2) "a"
> BRPOP l 0
1) "l"
2) "c"
> BLPOP nokey l 0
1) "l"
2) "b"
> EXISTS l
(integer) 0
> RPUSH a 1
(integer) 1
> RPUSH b 2
(integer) 1
> BLPOP b a 0
1) "b"
2) "2"
> BLPOP b a 0
1) "a"
2) "1"

== BLPOP and BRPOP wait for a push
2> BLPOP l 0
(blocked)
> RPUSH l a b
(integer) 2
2<
1) "l"
2) "a"
> LRANGE l 0 -1
1) "b"
> DEL l
(integer) 1
2> BRPOP l 0
(blocked)
> RPUSH l a b
(integer) 2
2<
1) "l"
2) "b"
> LRANGE l 0 -1
1) "a"

== the one who waits longest is served first
2> BLPOP l 0
(blocked)
3> BLPOP l 0
(blocked)
4> BRPOP l 0
(blocked)
> RPUSH l a b
(integer) 2
2<
1) "l"
2) "a"
3<
1) "l"
2) "b"
> RPUSH l c
(integer) 1
4<
1) "l"
2) "c"
> EXISTS l
(integer) 0

== waiting on several keys
2> BLPOP a b c 0
(blocked)
> RPUSH b x
(integer) 1
2<
1) "b"
2) "x"
2> BLPOP a b c 0
(blocked)
> RPUSH c y
(integer) 1
2<
1) "c"
2) "y"
> MULTI
OK
> EXEC
(empty array)
2> BLPOP a b 0
(blocked)
> MULTI
OK
> RPUSH b 1
QUEUED
> RPUSH a 2
QUEUED
> EXEC
1) (integer) 1
2) (integer) 1
2<
1) "a"
2) "2"
> EXISTS a b
(integer) 1

== a time limit ends the wait
2> BLPOP l 0.01
(nil array)
2> BRPOP l 0.01
(nil array)
2> BLMOVE l m LEFT LEFT 0.01
(nil array)
2> BRPOPLPUSH l m 0.01
(nil array)
2> BLMPOP 0.01 1 l LEFT
(nil array)
2> BZPOPMIN z 0.01
(nil array)
2> BZPOPMAX z 0.01
(nil array)
2> BZMPOP 0.01 1 z MIN
(nil array)
2> PING
PONG

== time limits that are none
> BLPOP l -1
(error) ERR timeout is negative
> BLPOP l abc
(error) ERR timeout is not a float or out of range
> BLPOP l ""
(error) ERR timeout is not a float or out of range
> BLPOP l nan
(error) ERR timeout is not a float or out of range
> BLPOP l inf
(error) ERR timeout is out of range
> BLPOP l 1e400
(error) ERR timeout is out of range
> BLPOP l 9223372036854775807
(error) ERR timeout is out of range
> BLPOP l -0.5
(error) ERR timeout is negative
> BRPOP l x
(error) ERR timeout is not a float or out of range
> BLMOVE a b LEFT LEFT x
(error) ERR timeout is not a float or out of range
> BLMOVE a b LEFT LEFT -1
(error) ERR timeout is negative
> BRPOPLPUSH a b x
(error) ERR timeout is not a float or out of range
> BLMPOP x 1 a LEFT
(error) ERR timeout is not a float or out of range
> BLMPOP -1 1 a LEFT
(error) ERR timeout is negative
> BZPOPMIN z x
(error) ERR timeout is not a float or out of range
> BZMPOP x 1 z MIN
(error) ERR timeout is not a float or out of range
> RPUSH l a
(integer) 1
> BLPOP l x
(error) ERR timeout is not a float or out of range
> BLPOP l 0
1) "l"
2) "a"

== wrong numbers of arguments and wrong words
> BLPOP
(error) ERR wrong number of arguments for 'blpop' command
> BLPOP l
(error) ERR wrong number of arguments for 'blpop' command
> BRPOP l
(error) ERR wrong number of arguments for 'brpop' command
> BLMOVE a b LEFT LEFT
(error) ERR wrong number of arguments for 'blmove' command
> BLMOVE a b foo LEFT 0
(error) ERR syntax error
> BLMOVE a b LEFT foo 0
(error) ERR syntax error
> BRPOPLPUSH a b
(error) ERR wrong number of arguments for 'brpoplpush' command
> BLMPOP 0 1
(error) ERR wrong number of arguments for 'blmpop' command
> BLMPOP 0 0 a LEFT
(error) ERR numkeys should be greater than 0
> BLMPOP 0 1 a foo
(error) ERR syntax error
> BLMPOP 0 1 a LEFT COUNT 0
(error) ERR count should be greater than 0
> BLMPOP 0 1 a LEFT COUNT
(error) ERR syntax error
> BLMPOP 0 2 a LEFT
(error) ERR syntax error
> BZPOPMIN z
(error) ERR wrong number of arguments for 'bzpopmin' command
> BZPOPMAX z
(error) ERR wrong number of arguments for 'bzpopmax' command
> BZMPOP 0 1 z
(error) ERR wrong number of arguments for 'bzmpop' command
> BZMPOP 0 1 z foo
(error) ERR syntax error
> BZMPOP 0 1 z MIN COUNT 0
(error) ERR count should be greater than 0
> BZMPOP 0 0 z MIN
(error) ERR numkeys should be greater than 0

== other types are refused at once, and do not wake
> SET k v
OK
> BLPOP k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BLPOP nokey k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BLMOVE k d LEFT LEFT 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BZPOPMIN k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BLMPOP 0 1 k LEFT
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BZMPOP 0 2 nokey k MIN
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> RPUSH l a
(integer) 1
> BLPOP l k 0
1) "l"
2) "a"
> BLPOP k l 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
2> BLPOP x 0
(blocked)
> SET x v
OK
> DEL x
(integer) 1
> SADD x m
(integer) 1
> DEL x
(integer) 1
> RPUSH x a
(integer) 1
2<
1) "x"
2) "a"
> RPUSH l a
(integer) 1
> BLMOVE l k LEFT LEFT 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LRANGE l 0 -1
1) "a"

== BLMOVE and BRPOPLPUSH move at once
> RPUSH a 1 2 3
(integer) 3
> BLMOVE a b LEFT RIGHT 0
"1"
> BRPOPLPUSH a b 0
"3"
> LRANGE a 0 -1
1) "2"
> LRANGE b 0 -1
1) "3"
2) "1"
> BLMOVE b b LEFT RIGHT 0
"3"
> LRANGE b 0 -1
1) "1"
2) "3"

== BLMOVE waits and moves
2> BLMOVE a b LEFT RIGHT 0
(blocked)
> RPUSH a x y
(integer) 2
2<
"x"
> LRANGE a 0 -1
1) "y"
> LRANGE b 0 -1
1) "x"
2> BRPOPLPUSH c b 0
(blocked)
> RPUSH c z
(integer) 1
2<
"z"
> LRANGE b 0 -1
1) "z"
2) "x"
> EXISTS c
(integer) 0

== BLMOVE to a key of another type fails when it is served
> SET d v
OK
2> BLMOVE a d LEFT LEFT 0
(blocked)
> RPUSH a x
(integer) 1
2<
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LRANGE a 0 -1
1) "x"

== served waiters wake others in turn
2> BLMOVE a b LEFT RIGHT 0
(blocked)
3> BLMOVE b c LEFT RIGHT 0
(blocked)
4> BLPOP c 0
(blocked)
> RPUSH a x
(integer) 1
2<
"x"
3<
"x"
4<
1) "c"
2) "x"
> EXISTS a b c
(integer) 0

== a circle of moves ends
2> BLMOVE a b LEFT RIGHT 0
(blocked)
3> BLMOVE b a LEFT RIGHT 0
(blocked)
> RPUSH a x
(integer) 1
2<
"x"
3<
"x"
> LRANGE a 0 -1
1) "x"
> EXISTS b
(integer) 0

== moving a list onto itself while waiting
2> BLMOVE a a LEFT RIGHT 0
(blocked)
> RPUSH a x y
(integer) 2
2<
"x"
> LRANGE a 0 -1
1) "y"
2) "x"

== BLMPOP
> RPUSH a 1 2 3 4
(integer) 4
> BLMPOP 0 2 nokey a LEFT COUNT 2
1) "a"
2) 1) "1"
   2) "2"
> BLMPOP 0 1 a RIGHT
1) "a"
2) 1) "4"
2> BLMPOP 0 2 b c RIGHT COUNT 10
(blocked)
> RPUSH c x y z
(integer) 3
2<
1) "c"
2) 1) "z"
   2) "y"
   3) "x"
> EXISTS c
(integer) 0

== BZPOPMIN and BZPOPMAX
> ZADD z 1 a 2 b 3 c
(integer) 3
> BZPOPMIN z 0
1) "z"
2) "a"
3) "1"
resp3:
1) "z"
2) "a"
3) (double) 1
> BZPOPMAX nokey z 0
1) "z"
2) "c"
3) "3"
resp3:
1) "z"
2) "c"
3) (double) 3
> DEL z
(integer) 1
2> BZPOPMIN z 0
(blocked)
3> BZPOPMAX y z 0
(blocked)
> ZADD z 1 a 2 b 3 c
(integer) 3
2<
1) "z"
2) "a"
3) "1"
resp3:
1) "z"
2) "a"
3) (double) 1
3<
1) "z"
2) "c"
3) "3"
resp3:
1) "z"
2) "c"
3) (double) 3
> ZRANGE z 0 -1
1) "b"
> DEL z
(integer) 1
2> BZPOPMIN z 0
(blocked)
> ZINCRBY z 5 m
"5"
resp3:
(double) 5
2<
1) "z"
2) "m"
3) "5"
resp3:
1) "z"
2) "m"
3) (double) 5
> EXISTS z
(integer) 0

== BZMPOP
> ZADD z 1 a 2 b 3 c
(integer) 3
> BZMPOP 0 2 nokey z MIN COUNT 2
1) "z"
2) 1) 1) "a"
      2) "1"
   2) 1) "b"
      2) "2"
resp3:
1) "z"
2) 1) 1) "a"
      2) (double) 1
   2) 1) "b"
      2) (double) 2
2> BZMPOP 0 1 y MAX COUNT 10
(blocked)
> ZADD y 1 a 2.5 b
(integer) 2
2<
1) "y"
2) 1) 1) "b"
      2) "2.5"
   2) 1) "a"
      2) "1"
resp3:
1) "y"
2) 1) 1) "b"
      2) (double) 2.5
   2) 1) "a"
      2) (double) 1
> EXISTS y
(integer) 0

== other ways to make a list wake waiters
2> BLPOP l 0
(blocked)
> RPUSH m a
(integer) 1
> RENAME m l
OK
2<
1) "l"
2) "a"
2> BLPOP l 0
(blocked)
> RPUSH m b
(integer) 1
> COPY m l
(integer) 1
2<
1) "l"
2) "b"
2> BLPOP l 0
(blocked)
> RPUSH n 2 1
(integer) 2
> SORT n STORE l
(integer) 2
2<
1) "l"
2) "1"
> DEL l
(integer) 1
2> BLPOP l 0
(blocked)
> LMOVE n l LEFT LEFT
"2"
2<
1) "l"
2) "2"
2> BLPOP l 0
(blocked)
> RPOPLPUSH n l
"1"
2<
1) "l"
2) "1"
2> BLPOP l 0
(blocked)
> [keep=d] DUMP m
(kept)
> RESTORE l 0 "$(d)"
OK
2<
1) "l"
2) "b"
2> BLPOP l 0
(blocked)
> SELECT 1
OK
> RPUSH l moved
(integer) 1
> MOVE l 0
(integer) 1
2<
1) "l"
2) "moved"
2> BLPOP l 0
(blocked)
> SELECT 1
OK
> RPUSH l swapped
(integer) 1
> SWAPDB 0 1
OK
2<
1) "l"
2) "swapped"

== other ways to make a sorted set wake waiters
2> BZPOPMIN z 0
(blocked)
> ZADD y 1 a
(integer) 1
> ZUNIONSTORE z 1 y
(integer) 1
2<
1) "z"
2) "a"
3) "1"
resp3:
1) "z"
2) "a"
3) (double) 1
2> BZPOPMIN z 0
(blocked)
> ZRANGESTORE z y 0 -1
(integer) 1
2<
1) "z"
2) "a"
3) "1"
resp3:
1) "z"
2) "a"
3) (double) 1
2> BZPOPMIN z 0
(blocked)
> GEOADD z 1 1 place
(integer) 1
2<
1) "z"
2) "place"
3) "3377822707026402"
resp3:
1) "z"
2) "place"
3) (double) 3377822707026402
2> BZPOPMIN z 0
(blocked)
> RENAME y z
OK
2<
1) "z"
2) "a"
3) "1"
resp3:
1) "z"
2) "a"
3) (double) 1

== pushes of one command are taken from the right state
2> BLPOP l 0
(blocked)
> LPUSH l a b c
(integer) 3
2<
1) "l"
2) "c"
> LRANGE l 0 -1
1) "b"
2) "a"
> DEL l
(integer) 1
2> BRPOP l 0
(blocked)
> LPUSH l a b c
(integer) 3
2<
1) "l"
2) "a"

== a waiter of another database is left alone
2> SELECT 1
OK
2> BLPOP l 0
(blocked)
> RPUSH l a
(integer) 1
> SELECT 1
OK
> RPUSH l b
(integer) 1
2<
1) "l"
2) "b"
> SELECT 0
OK
> LRANGE l 0 -1
1) "a"

== a waiter that is gone takes nothing
2> BLPOP l 0
(blocked)
close 2
> [eventually,field=blocked_clients] INFO clients
"0"
> RPUSH l a
(integer) 1
> LRANGE l 0 -1
1) "a"

== CLIENT UNBLOCK ends a wait
2> [keep=id] CLIENT ID
(kept)
2> BLPOP l 0
(blocked)
> CLIENT UNBLOCK $(id)
(integer) 1
2<
(nil array)
2> BLPOP l 0
(blocked)
> CLIENT UNBLOCK $(id) ERROR
(integer) 1
2<
(error) UNBLOCKED client unblocked via CLIENT UNBLOCK
2> BZPOPMIN l 0
(blocked)
> CLIENT UNBLOCK $(id) TIMEOUT
(integer) 1
2<
(nil array)
2> BLMOVE l m LEFT LEFT 0
(blocked)
> CLIENT UNBLOCK $(id) timeout
(integer) 1
2<
(nil array)
> CLIENT UNBLOCK $(id)
(integer) 0
> CLIENT UNBLOCK 999999
(integer) 0
> CLIENT UNBLOCK abc
(error) ERR value is not an integer or out of range
> CLIENT UNBLOCK $(id) foo
(error) ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR
> CLIENT UNBLOCK
(error) ERR wrong number of arguments for 'client|unblock' command
2> PING
PONG

== CLIENT KILL ends a waiting connection
2> [keep=id] CLIENT ID
(kept)
2> BLPOP l 0
(blocked)
> CLIENT KILL ID $(id)
(integer) 1
2<
(closed)
> RPUSH l a
(integer) 1
> LLEN l
(integer) 1

== commands behind a waiting one follow it
2> BLPOP l 0
(blocked)
2> PING
(no reply)
2> ECHO next
(no reply)
> RPUSH l a
(integer) 1
2<
1) "l"
2) "a"
2<
PONG
2<
"next"

== blocked clients are counted
2> BLPOP l 0
(blocked)
3> BZPOPMIN z 0
(blocked)
> [field=blocked_clients] INFO clients
"2"
> RPUSH l a
(integer) 1
2<
1) "l"
2) "a"
> [field=blocked_clients] INFO clients
"1"
> ZADD z 1 a
(integer) 1
3<
1) "z"
2) "a"
3) "1"
resp3:
1) "z"
2) "a"
3) (double) 1
> [field=blocked_clients] INFO clients
"0"

== expired and deleted keys do not serve
2> BLPOP l 0
(blocked)
> MULTI
OK
> RPUSH l a
QUEUED
> EXPIRE l -1
QUEUED
> EXEC
1) (integer) 1
2) (integer) 1
> RPUSH l b
(integer) 1
2<
1) "l"
2) "b"

== CLIENT REPLY concerns what comes later too
2> CLIENT REPLY SKIP
(no reply)
2> BLPOP l 0
(no reply)
> RPUSH l a
(integer) 1
2> ECHO heard
"heard"
2> CLIENT REPLY SKIP
(no reply)
2> BLPOP l 0.01
(no reply)
2> ECHO again
"again"
2> CLIENT REPLY OFF
(no reply)
2> BLPOP l 0
(no reply)
> RPUSH l b
(integer) 1
2> CLIENT REPLY ON
OK
> EXISTS l
(integer) 0
