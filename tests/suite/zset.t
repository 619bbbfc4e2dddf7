# Sorted sets.

== adding, scoring and removing
> ZADD z 1 a 2 b 3 c
(integer) 3
> ZADD z 5 a 4 d
(integer) 1
> ZSCORE z a
"5"
resp3:
(double) 5
> ZSCORE z nothing
(nil)
> ZSCORE nokey a
(nil)
> ZCARD z
(integer) 4
> ZRANGE z 0 -1 WITHSCORES
1) "b"
2) "2"
3) "c"
4) "3"
5) "d"
6) "4"
7) "a"
8) "5"
resp3:
1) 1) "b"
   2) (double) 2
2) 1) "c"
   2) (double) 3
3) 1) "d"
   2) (double) 4
4) 1) "a"
   2) (double) 5
> ZREM z a nothing
(integer) 1
> ZREM z b c d d
(integer) 3
> EXISTS z
(integer) 0
> ZREM z a
(integer) 0
> ZCARD z
(integer) 0
> TYPE z
none
> ZADD z 1 a 2 a 3 a
(integer) 1
> ZSCORE z a
"3"
resp3:
(double) 3

== wrong numbers of arguments
> ZADD
(error) ERR wrong number of arguments for 'zadd' command
> ZADD z
(error) ERR wrong number of arguments for 'zadd' command
> ZADD z 1
(error) ERR wrong number of arguments for 'zadd' command
> ZADD z 1 a 2
(error) ERR syntax error
> ZADD z NX
(error) ERR wrong number of arguments for 'zadd' command
> ZADD z NX 1
(error) ERR syntax error
> ZREM z
(error) ERR wrong number of arguments for 'zrem' command
> ZCARD
(error) ERR wrong number of arguments for 'zcard' command
> ZCARD z z
(error) ERR wrong number of arguments for 'zcard' command
> ZSCORE z
(error) ERR wrong number of arguments for 'zscore' command
> ZMSCORE z
(error) ERR wrong number of arguments for 'zmscore' command
> ZINCRBY z 1
(error) ERR wrong number of arguments for 'zincrby' command
> ZRANK z
(error) ERR wrong number of arguments for 'zrank' command
> ZRANK z a b
(error) ERR syntax error
> ZREVRANK z
(error) ERR wrong number of arguments for 'zrevrank' command
> ZCOUNT z 0
(error) ERR wrong number of arguments for 'zcount' command
> ZLEXCOUNT z -
(error) ERR wrong number of arguments for 'zlexcount' command
> ZRANGE z 0
(error) ERR wrong number of arguments for 'zrange' command
> ZREVRANGE z 0
(error) ERR wrong number of arguments for 'zrevrange' command
> ZRANGEBYSCORE z 0
(error) ERR wrong number of arguments for 'zrangebyscore' command
> ZREVRANGEBYSCORE z 0
(error) ERR wrong number of arguments for 'zrevrangebyscore' command
> ZRANGEBYLEX z -
(error) ERR wrong number of arguments for 'zrangebylex' command
> ZREVRANGEBYLEX z +
(error) ERR wrong number of arguments for 'zrevrangebylex' command
> ZRANGESTORE d z 0
(error) ERR wrong number of arguments for 'zrangestore' command
> ZREMRANGEBYRANK z 0
(error) ERR wrong number of arguments for 'zremrangebyrank' command
> ZREMRANGEBYSCORE z 0
(error) ERR wrong number of arguments for 'zremrangebyscore' command
> ZREMRANGEBYLEX z -
(error) ERR wrong number of arguments for 'zremrangebylex' command
> ZPOPMIN
(error) ERR wrong number of arguments for 'zpopmin' command
> ZPOPMIN z 1 2
(error) ERR syntax error
> ZPOPMAX
(error) ERR wrong number of arguments for 'zpopmax' command
> ZMPOP 1 z
(error) ERR wrong number of arguments for 'zmpop' command
> ZRANDMEMBER
(error) ERR wrong number of arguments for 'zrandmember' command
> ZUNION 1
(error) ERR wrong number of arguments for 'zunion' command
> ZUNIONSTORE d 1
(error) ERR wrong number of arguments for 'zunionstore' command
> ZINTER 1
(error) ERR wrong number of arguments for 'zinter' command
> ZINTERSTORE d 1
(error) ERR wrong number of arguments for 'zinterstore' command
> ZINTERCARD 1
(error) ERR wrong number of arguments for 'zintercard' command
> ZDIFF 1
(error) ERR wrong number of arguments for 'zdiff' command
> ZDIFFSTORE d 1
(error) ERR wrong number of arguments for 'zdiffstore' command
> ZSCAN z
(error) ERR wrong number of arguments for 'zscan' command

== scores as they are printed
> ZADD z 1 a 1.5 b -2 c 1e20 d 1e-7 e 3.14159265358979 f inf g -inf h 0 i -0 j 1e21 k 1e17 l 123456789012345678 m 0.1 n 17179869184.5 o
(integer) 15
> ZRANGE z 0 -1 WITHSCORES
 1) "h"
 2) "-inf"
 3) "c"
 4) "-2"
 5) "i"
 6) "0"
 7) "j"
 8) "0"
 9) "e"
10) "1e-7"
11) "n"
12) "0.1"
13) "a"
14) "1"
15) "b"
16) "1.5"
17) "f"
18) "3.14159265358979"
19) "o"
20) "17179869184.5"
21) "l"
22) "100000000000000000"
23) "m"
24) "123456789012345680"
25) "d"
26) "1e+20"
27) "k"
28) "1e+21"
29) "g"
30) "inf"
resp3:
 1) 1) "h"
    2) (double) -inf
 2) 1) "c"
    2) (double) -2
 3) 1) "i"
    2) (double) 0
 4) 1) "j"
    2) (double) 0
 5) 1) "e"
    2) (double) 1e-7
 6) 1) "n"
    2) (double) 0.1
 7) 1) "a"
    2) (double) 1
 8) 1) "b"
    2) (double) 1.5
 9) 1) "f"
    2) (double) 3.14159265358979
10) 1) "o"
    2) (double) 17179869184.5
11) 1) "l"
    2) (double) 100000000000000000
12) 1) "m"
    2) (double) 123456789012345680
13) 1) "d"
    2) (double) 1e+20
14) 1) "k"
    2) (double) 1e+21
15) 1) "g"
    2) (double) inf
> ZSCORE z b
"1.5"
resp3:
(double) 1.5
> ZSCORE z g
"inf"
resp3:
(double) inf
> ZSCORE z j
"0"
resp3:
(double) 0
> ZSCORE z k
"1e+21"
resp3:
(double) 1e+21
> ZSCORE z m
"123456789012345680"
resp3:
(double) 123456789012345680
> ZSCORE z n
"0.1"
resp3:
(double) 0.1
> ZMSCORE z a d e nothing
1) "1"
2) "1e+20"
3) "1e-7"
4) (nil)
resp3:
1) (double) 1
2) (double) 1e+20
3) (double) 1e-7
4) (nil)
> ZADD z 5e-324 tiny 1.7976931348623157e308 huge 2.2250738585072014e-308 small
(integer) 3
> ZMSCORE z tiny huge small
1) "5e-324"
2) "1.7976931348623157e+308"
3) "2.2250738585072014e-308"
resp3:
1) (double) 5e-324
2) (double) 1.7976931348623157e+308
3) (double) 2.2250738585072014e-308
> ZADD z 0x10 hex +5 plus +inf infinite Infinity infinity -INF negative .5 half 5. five
(integer) 7
> ZMSCORE z hex plus infinite infinity negative half five
1) "16"
2) "5"
3) "inf"
4) "inf"
5) "-inf"
6) "0.5"
7) "5"
resp3:
1) (double) 16
2) (double) 5
3) (double) inf
4) (double) inf
5) (double) -inf
6) (double) 0.5
7) (double) 5
> ZADD z 9007199254740993 big 4503599627370497.5 mid 100000000000000000000 e20 0.30000000000000004 sum
(integer) 4
> ZMSCORE z big mid e20 sum
1) "9007199254740992"
2) "4503599627370498"
3) "1e+20"
4) "0.30000000000000004"
resp3:
1) (double) 9007199254740992
2) (double) 4503599627370498
3) (double) 1e+20
4) (double) 0.30000000000000004

== scores that are no numbers
> ZADD z abc a
(error) ERR value is not a valid float
> ZADD z nan a
(error) ERR value is not a valid float
> ZADD z "" a
(error) ERR value is not a valid float
> ZADD z " 1" a
(error) ERR value is not a valid float
> ZADD z "1 " a
(error) ERR value is not a valid float
> ZADD z 1 a abc b
(error) ERR value is not a valid float
> ZADD z 1.2.3 a
(error) ERR value is not a valid float
> ZADD z 1e400 a
(error) ERR value is not a valid float
> ZADD z 1 a 1e-400 b
(error) ERR value is not a valid float
> ZCARD z
(integer) 0
> ZINCRBY z abc a
(error) ERR value is not a valid float
> ZINCRBY z nan a
(error) ERR value is not a valid float
> ZADD z INCR nan a
(error) ERR value is not a valid float
> ZADD z inf a
(integer) 1
> ZINCRBY z -inf a
(error) ERR resulting score is not a number (NaN)
> ZADD z INCR -inf a
(error) ERR resulting score is not a number (NaN)
> ZSCORE z a
"inf"
resp3:
(double) inf

== ZADD NX and XX
> ZADD z NX 1 a 2 b
(integer) 2
> ZADD z NX 5 a 3 c
(integer) 1
> ZRANGE z 0 -1 WITHSCORES
1) "a"
2) "1"
3) "b"
4) "2"
5) "c"
6) "3"
resp3:
1) 1) "a"
   2) (double) 1
2) 1) "b"
   2) (double) 2
3) 1) "c"
   2) (double) 3
> ZADD z XX 7 a 4 d
(integer) 0
> ZRANGE z 0 -1 WITHSCORES
1) "b"
2) "2"
3) "c"
4) "3"
5) "a"
6) "7"
resp3:
1) 1) "b"
   2) (double) 2
2) 1) "c"
   2) (double) 3
3) 1) "a"
   2) (double) 7
> ZADD z XX CH 8 a 4 d 2 b
(integer) 1
> ZADD nokey XX 1 a
(integer) 0
> EXISTS nokey
(integer) 0
> ZADD z NX XX 1 a
(error) ERR XX and NX options at the same time are not compatible
> ZADD z xx nx 1 a
(error) ERR XX and NX options at the same time are not compatible

== ZADD GT and LT
> ZADD z 10 a 20 b 30 c
(integer) 3
> ZADD z GT 5 a 25 b 1 d
(integer) 1
> ZRANGE z 0 -1 WITHSCORES
1) "d"
2) "1"
3) "a"
4) "10"
5) "b"
6) "25"
7) "c"
8) "30"
resp3:
1) 1) "d"
   2) (double) 1
2) 1) "a"
   2) (double) 10
3) 1) "b"
   2) (double) 25
4) 1) "c"
   2) (double) 30
> ZADD z LT 5 a 26 b 40 e
(integer) 1
> ZRANGE z 0 -1 WITHSCORES
 1) "d"
 2) "1"
 3) "a"
 4) "5"
 5) "b"
 6) "25"
 7) "c"
 8) "30"
 9) "e"
10) "40"
resp3:
1) 1) "d"
   2) (double) 1
2) 1) "a"
   2) (double) 5
3) 1) "b"
   2) (double) 25
4) 1) "c"
   2) (double) 30
5) 1) "e"
   2) (double) 40
> ZADD z GT CH 100 a 1 b
(integer) 1
> ZADD z LT CH 99 a 101 b
(integer) 1
> ZADD z XX GT 100 a 1 new
(integer) 0
> ZADD z XX LT CH 1 a 1 new
(integer) 1
> ZRANGE z 0 -1 WITHSCORES
 1) "a"
 2) "1"
 3) "d"
 4) "1"
 5) "b"
 6) "25"
 7) "c"
 8) "30"
 9) "e"
10) "40"
resp3:
1) 1) "a"
   2) (double) 1
2) 1) "d"
   2) (double) 1
3) 1) "b"
   2) (double) 25
4) 1) "c"
   2) (double) 30
5) 1) "e"
   2) (double) 40
> ZADD z GT LT 1 a
(error) ERR GT, LT, and/or NX options at the same time are not compatible
> ZADD z NX GT 1 a
(error) ERR GT, LT, and/or NX options at the same time are not compatible
> ZADD z LT NX 1 a
(error) ERR GT, LT, and/or NX options at the same time are not compatible
> ZADD z GT GT 2 a
(integer) 0

== ZADD CH counts changes
> ZADD z CH 1 a 2 b
(integer) 2
> ZADD z CH 1 a 3 b 4 c
(integer) 2
> ZADD z CH 1 a
(integer) 0
> ZADD z ch ch 9 a
(integer) 1

== ZADD INCR
> ZADD z INCR 5 a
"5"
resp3:
(double) 5
> ZADD z INCR 2.5 a
"7.5"
resp3:
(double) 7.5
> ZADD z INCR 1 a 2 b
(error) ERR INCR option supports a single increment-element pair
> ZADD z NX INCR 1 a
(nil)
> ZADD z NX INCR 1 b
"1"
resp3:
(double) 1
> ZADD z XX INCR 1 nothing
(nil)
> ZADD z XX INCR 1 a
"8.5"
resp3:
(double) 8.5
> ZADD z GT INCR -1 a
(nil)
> ZADD z GT INCR 1 a
"9.5"
resp3:
(double) 9.5
> ZADD z LT INCR 1 a
(nil)
> ZADD z LT INCR -1 a
"8.5"
resp3:
(double) 8.5
> ZADD z GT INCR 0 a
(nil)
> ZADD z CH INCR 1 a
"9.5"
resp3:
(double) 9.5
> ZADD nokey XX INCR 1 a
(nil)
> EXISTS nokey
(integer) 0

== ZADD checks its options before the key
> SET k v
OK
> ZADD k 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZADD k abc a
(error) ERR value is not a valid float
> ZADD k NX XX 1 a
(error) ERR XX and NX options at the same time are not compatible
> ZADD k 1 a 2
(error) ERR syntax error
> ZADD k INCR 1 a 2 b
(error) ERR INCR option supports a single increment-element pair
> ZADD k foo 1 a
(error) ERR syntax error
> ZADD z foo 1
(error) ERR value is not a valid float
> ZADD z foo a
(error) ERR value is not a valid float

== ZINCRBY
> ZINCRBY z 1 a
"1"
resp3:
(double) 1
> ZINCRBY z 2.5 a
"3.5"
resp3:
(double) 3.5
> ZINCRBY z -10 a
"-6.5"
resp3:
(double) -6.5
> ZINCRBY z inf a
"inf"
resp3:
(double) inf
> ZINCRBY z 1 b
"1"
resp3:
(double) 1
> ZRANGE z 0 -1 WITHSCORES
1) "b"
2) "1"
3) "a"
4) "inf"
resp3:
1) 1) "b"
   2) (double) 1
2) 1) "a"
   2) (double) inf
> SET k v
OK
> ZINCRBY k 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZINCRBY k abc a
(error) ERR value is not a valid float

== ZMSCORE
> ZADD z 1 a 2 b
(integer) 2
> ZMSCORE z a nothing b
1) "1"
2) (nil)
3) "2"
resp3:
1) (double) 1
2) (nil)
3) (double) 2
> ZMSCORE nokey a b
1) (nil)
2) (nil)
> SET k v
OK
> ZMSCORE k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== ZRANK and ZREVRANK
> ZADD z 1 a 2 b 2 c 3 d
(integer) 4
> ZRANK z a
(integer) 0
> ZRANK z c
(integer) 2
> ZRANK z d
(integer) 3
> ZRANK z nothing
(nil)
> ZRANK nokey a
(nil)
> ZREVRANK z a
(integer) 3
> ZREVRANK z c
(integer) 1
> ZREVRANK z d
(integer) 0
> ZREVRANK z nothing
(nil)
> ZREVRANK nokey a
(nil)
> SET k v
OK
> ZRANK k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZREVRANK k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== members of equal score are ordered as bytes
> ZADD z 0 b 0 a 0 B 0 "" 0 aa 0 "\xff" 0 "a\x00" 0 10 0 9
(integer) 9
> ZRANGE z 0 -1
1) ""
2) "10"
3) "9"
4) "B"
5) "a"
6) "a\x00"
7) "aa"
8) "b"
9) "\xff"
> ZREVRANGE z 0 -1
1) "\xff"
2) "b"
3) "aa"
4) "a\x00"
5) "a"
6) "B"
7) "9"
8) "10"
9) ""
> ZRANK z a
(integer) 4

== ZCOUNT
> ZADD z 1 a 2 b 3 c 4 d inf e -inf f
(integer) 6
> ZCOUNT z 2 3
(integer) 2
> ZCOUNT z (2 3
(integer) 1
> ZCOUNT z 2 (3
(integer) 1
> ZCOUNT z (2 (3
(integer) 0
> ZCOUNT z -inf +inf
(integer) 6
> ZCOUNT z (-inf (inf
(integer) 4
> ZCOUNT z 5 1
(integer) 0
> ZCOUNT z 2.5 10
(integer) 2
> ZCOUNT z 3 3
(integer) 1
> ZCOUNT z (3 3
(integer) 0
> ZCOUNT nokey 0 1
(integer) 0
> ZCOUNT z a 1
(error) ERR min or max is not a float
> ZCOUNT z 1 b
(error) ERR min or max is not a float
> ZCOUNT z nan 1
(error) ERR min or max is not a float
> ZCOUNT z ( 1
(integer) 1
> ZCOUNT z "" 1
(integer) 1
> ZCOUNT z ((1 2
(error) ERR min or max is not a float
> ZCOUNT nokey a b
(error) ERR min or max is not a float
> SET k v
OK
> ZCOUNT k 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZCOUNT k a b
(error) ERR min or max is not a float

== ZLEXCOUNT
> ZADD z 0 a 0 b 0 c 0 d 0 e
(integer) 5
> ZLEXCOUNT z - +
(integer) 5
> ZLEXCOUNT z [b [d
(integer) 3
> ZLEXCOUNT z (b [d
(integer) 2
> ZLEXCOUNT z (b (d
(integer) 1
> ZLEXCOUNT z [b +
(integer) 4
> ZLEXCOUNT z - (c
(integer) 2
> ZLEXCOUNT z + -
(integer) 0
> ZLEXCOUNT z [d [b
(integer) 0
> ZLEXCOUNT z [ +
(integer) 5
> ZLEXCOUNT z [bb [dd
(integer) 2
> ZLEXCOUNT nokey - +
(integer) 0
> ZLEXCOUNT z b d
(error) ERR min or max not valid string range item
> ZLEXCOUNT z [b d
(error) ERR min or max not valid string range item
> ZLEXCOUNT z "" +
(error) ERR min or max not valid string range item
> ZLEXCOUNT z -- +
(error) ERR min or max not valid string range item
> ZLEXCOUNT nokey b d
(error) ERR min or max not valid string range item
> SET k v
OK
> ZLEXCOUNT k - +
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZLEXCOUNT k b d
(error) ERR min or max not valid string range item

== ZRANGE by index
> ZADD z 1 a 2 b 3 c 4 d
(integer) 4
> ZRANGE z 0 -1
1) "a"
2) "b"
3) "c"
4) "d"
> ZRANGE z 1 2
1) "b"
2) "c"
> ZRANGE z -2 -1
1) "c"
2) "d"
> ZRANGE z 2 1
(empty array)
> ZRANGE z 10 20
(empty array)
> ZRANGE z -100 100
1) "a"
2) "b"
3) "c"
4) "d"
> ZRANGE z -100 -50
(empty array)
> ZRANGE z 0 0 WITHSCORES
1) "a"
2) "1"
resp3:
1) 1) "a"
   2) (double) 1
> ZRANGE z 0 1 REV
1) "d"
2) "c"
> ZRANGE z 0 -1 REV WITHSCORES
1) "d"
2) "4"
3) "c"
4) "3"
5) "b"
6) "2"
7) "a"
8) "1"
resp3:
1) 1) "d"
   2) (double) 4
2) 1) "c"
   2) (double) 3
3) 1) "b"
   2) (double) 2
4) 1) "a"
   2) (double) 1
> ZRANGE z -2 -1 REV
1) "b"
2) "a"
> ZREVRANGE z 0 1
1) "d"
2) "c"
> ZREVRANGE z 0 -1 WITHSCORES
1) "d"
2) "4"
3) "c"
4) "3"
5) "b"
6) "2"
7) "a"
8) "1"
resp3:
1) 1) "d"
   2) (double) 4
2) 1) "c"
   2) (double) 3
3) 1) "b"
   2) (double) 2
4) 1) "a"
   2) (double) 1
> ZREVRANGE z -1 -1
1) "a"
> ZREVRANGE z 3 1
(empty array)
> ZRANGE nokey 0 -1
(empty array)
> ZRANGE nokey 0 -1 WITHSCORES
(empty array)
> ZRANGE z a 1
(error) ERR value is not an integer or out of range
> ZRANGE z 0 b
(error) ERR value is not an integer or out of range
> ZRANGE z 0 1.5
(error) ERR value is not an integer or out of range
> ZRANGE z (0 1
(error) ERR value is not an integer or out of range
> ZRANGE z 0 1 foo
(error) ERR syntax error
> ZRANGE z 0 1 LIMIT 0 1
(error) ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
> ZRANGE z 0 1 LIMIT 0 -1
1) "a"
2) "b"
> ZREVRANGE z 0 1 REV
(error) ERR syntax error
> ZREVRANGE z 0 1 BYSCORE
(error) ERR syntax error
> ZREVRANGE z 0 1 LIMIT 0 1
(error) ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
> ZRANGE nokey a b
(error) ERR value is not an integer or out of range
> ZRANGE z 0 -1 withscores rev
1) "d"
2) "4"
3) "c"
4) "3"
5) "b"
6) "2"
7) "a"
8) "1"
resp3:
1) 1) "d"
   2) (double) 4
2) 1) "c"
   2) (double) 3
3) 1) "b"
   2) (double) 2
4) 1) "a"
   2) (double) 1
> SET k v
OK
> ZRANGE k 0 -1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZREVRANGE k 0 -1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANGE k a b
(error) ERR value is not an integer or out of range
> ZRANGE z -9223372036854775808 9223372036854775807
1) "a"
2) "b"
3) "c"
4) "d"

== ZRANGE BYSCORE
> ZADD z 1 a 2 b 3 c 4 d
(integer) 4
> ZRANGE z 2 3 BYSCORE
1) "b"
2) "c"
> ZRANGE z (2 3 BYSCORE
1) "c"
> ZRANGE z -inf +inf BYSCORE WITHSCORES
1) "a"
2) "1"
3) "b"
4) "2"
5) "c"
6) "3"
7) "d"
8) "4"
resp3:
1) 1) "a"
   2) (double) 1
2) 1) "b"
   2) (double) 2
3) 1) "c"
   2) (double) 3
4) 1) "d"
   2) (double) 4
> ZRANGE z -inf +inf BYSCORE LIMIT 1 2
1) "b"
2) "c"
> ZRANGE z -inf +inf BYSCORE LIMIT 1 -1
1) "b"
2) "c"
3) "d"
> ZRANGE z -inf +inf BYSCORE LIMIT 10 1
(empty array)
> ZRANGE z -inf +inf BYSCORE LIMIT -1 1
(empty array)
> ZRANGE z -inf +inf BYSCORE LIMIT 0 0
(empty array)
> ZRANGE z 3 2 BYSCORE
(empty array)
> ZRANGE z 3 2 BYSCORE REV
1) "c"
2) "b"
> ZRANGE z (4 1 BYSCORE REV WITHSCORES
1) "c"
2) "3"
3) "b"
4) "2"
5) "a"
6) "1"
resp3:
1) 1) "c"
   2) (double) 3
2) 1) "b"
   2) (double) 2
3) 1) "a"
   2) (double) 1
> ZRANGE z +inf -inf BYSCORE REV LIMIT 1 2
1) "c"
2) "b"
> ZRANGE z 2 3 BYSCORE REV
(empty array)
> ZRANGE nokey 1 2 BYSCORE
(empty array)
> ZRANGE z a b BYSCORE
(error) ERR min or max is not a float
> ZRANGE z 1 2 BYSCORE BYLEX
(error) ERR syntax error
> ZRANGE z 1 2 BYSCORE LIMIT 1
(error) ERR syntax error
> ZRANGE z 1 2 BYSCORE LIMIT a 1
(error) ERR value is not an integer or out of range
> ZRANGE z 1 2 BYSCORE LIMIT 0 b
(error) ERR value is not an integer or out of range
> ZRANGE z 1 2 byscore limit 0 1 withscores
1) "a"
2) "1"
resp3:
1) 1) "a"
   2) (double) 1

== ZRANGEBYSCORE and ZREVRANGEBYSCORE
> ZADD z 1 a 2 b 3 c 4 d
(integer) 4
> ZRANGEBYSCORE z 2 3
1) "b"
2) "c"
> ZRANGEBYSCORE z (2 +inf
1) "c"
2) "d"
> ZRANGEBYSCORE z -inf (3 WITHSCORES
1) "a"
2) "1"
3) "b"
4) "2"
resp3:
1) 1) "a"
   2) (double) 1
2) 1) "b"
   2) (double) 2
> ZRANGEBYSCORE z -inf +inf LIMIT 1 2
1) "b"
2) "c"
> ZRANGEBYSCORE z -inf +inf LIMIT 1 -1 WITHSCORES
1) "b"
2) "2"
3) "c"
4) "3"
5) "d"
6) "4"
resp3:
1) 1) "b"
   2) (double) 2
2) 1) "c"
   2) (double) 3
3) 1) "d"
   2) (double) 4
> ZRANGEBYSCORE z -inf +inf WITHSCORES LIMIT 3 5
1) "d"
2) "4"
resp3:
1) 1) "d"
   2) (double) 4
> ZRANGEBYSCORE z -inf +inf LIMIT -1 5
(empty array)
> ZRANGEBYSCORE z 3 2
(empty array)
> ZRANGEBYSCORE nokey 1 2
(empty array)
> ZRANGEBYSCORE z 1 2 REV
(error) ERR syntax error
> ZRANGEBYSCORE z 1 2 BYSCORE
(error) ERR syntax error
> ZRANGEBYSCORE z 1 2 LIMIT 0
(error) ERR syntax error
> ZRANGEBYSCORE z 1 2 LIMIT a b
(error) ERR value is not an integer or out of range
> ZRANGEBYSCORE z 1 x
(error) ERR min or max is not a float
> ZRANGEBYSCORE z x 1 foo
(error) ERR syntax error
> ZRANGEBYSCORE z [1 2
(error) ERR min or max is not a float
> ZREVRANGEBYSCORE z 3 2
1) "c"
2) "b"
> ZREVRANGEBYSCORE z +inf -inf WITHSCORES
1) "d"
2) "4"
3) "c"
4) "3"
5) "b"
6) "2"
7) "a"
8) "1"
resp3:
1) 1) "d"
   2) (double) 4
2) 1) "c"
   2) (double) 3
3) 1) "b"
   2) (double) 2
4) 1) "a"
   2) (double) 1
> ZREVRANGEBYSCORE z (3 -inf LIMIT 0 1
1) "b"
> ZREVRANGEBYSCORE z +inf (1 LIMIT 1 1 WITHSCORES
1) "c"
2) "3"
resp3:
1) 1) "c"
   2) (double) 3
> ZREVRANGEBYSCORE z 2 3
(empty array)
> ZREVRANGEBYSCORE nokey 3 1
(empty array)
> SET k v
OK
> ZRANGEBYSCORE k 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZREVRANGEBYSCORE k 1 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANGEBYSCORE k x y
(error) ERR min or max is not a float

== ZRANGE BYLEX, ZRANGEBYLEX and ZREVRANGEBYLEX
> ZADD z 0 a 0 b 0 c 0 d
(integer) 4
> ZRANGE z [b (d BYLEX
1) "b"
2) "c"
> ZRANGE z - + BYLEX
1) "a"
2) "b"
3) "c"
4) "d"
> ZRANGE z - + BYLEX LIMIT 1 2
1) "b"
2) "c"
> ZRANGE z + - BYLEX REV
1) "d"
2) "c"
3) "b"
4) "a"
> ZRANGE z [c - BYLEX REV LIMIT 0 1
1) "c"
> ZRANGE z - + BYLEX WITHSCORES
(error) ERR syntax error, WITHSCORES not supported in combination with BYLEX
> ZRANGE z b d BYLEX
(error) ERR min or max not valid string range item
> ZRANGE z + - BYLEX
(empty array)
> ZRANGEBYLEX z - +
1) "a"
2) "b"
3) "c"
4) "d"
> ZRANGEBYLEX z [b [c
1) "b"
2) "c"
> ZRANGEBYLEX z (a (d
1) "b"
2) "c"
> ZRANGEBYLEX z [aa +
1) "b"
2) "c"
3) "d"
> ZRANGEBYLEX z - + LIMIT 1 2
1) "b"
2) "c"
> ZRANGEBYLEX z - + LIMIT 3 -1
1) "d"
> ZRANGEBYLEX z - + WITHSCORES
(error) ERR syntax error, WITHSCORES not supported in combination with BYLEX
> ZRANGEBYLEX z - + LIMIT 1
(error) ERR syntax error
> ZRANGEBYLEX z - x
(error) ERR min or max not valid string range item
> ZRANGEBYLEX z + -
(empty array)
> ZREVRANGEBYLEX z + -
1) "d"
2) "c"
3) "b"
4) "a"
> ZREVRANGEBYLEX z [c [b
1) "c"
2) "b"
> ZREVRANGEBYLEX z (d - LIMIT 1 1
1) "b"
> ZREVRANGEBYLEX z - +
(empty array)
> ZRANGEBYLEX nokey - +
(empty array)
> ZRANGEBYLEX nokey a b
(error) ERR min or max not valid string range item
> SET k v
OK
> ZRANGEBYLEX k - +
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZREVRANGEBYLEX k + -
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANGEBYLEX k a b
(error) ERR min or max not valid string range item

== ZRANGESTORE
> ZADD z 1 a 2 b 3 c 4 d
(integer) 4
> ZRANGESTORE d z 1 2
(integer) 2
> ZRANGE d 0 -1 WITHSCORES
1) "b"
2) "2"
3) "c"
4) "3"
resp3:
1) 1) "b"
   2) (double) 2
2) 1) "c"
   2) (double) 3
> ZRANGESTORE d z 0 0 REV
(integer) 1
> ZRANGE d 0 -1 WITHSCORES
1) "d"
2) "4"
resp3:
1) 1) "d"
   2) (double) 4
> ZRANGESTORE d z 2 +inf BYSCORE LIMIT 0 2
(integer) 2
> ZRANGE d 0 -1 WITHSCORES
1) "b"
2) "2"
3) "c"
4) "3"
resp3:
1) 1) "b"
   2) (double) 2
2) 1) "c"
   2) (double) 3
> ZRANGESTORE d z +inf (1 BYSCORE REV LIMIT 1 1
(integer) 1
> ZRANGE d 0 -1 WITHSCORES
1) "c"
2) "3"
resp3:
1) 1) "c"
   2) (double) 3
> ZRANGESTORE d z [a (c BYLEX
(integer) 2
> ZRANGE d 0 -1
1) "a"
2) "b"
> ZRANGESTORE d z 5 10
(integer) 0
> EXISTS d
(integer) 0
> SET d v
OK
> ZRANGESTORE d nokey 0 -1
(integer) 0
> EXISTS d
(integer) 0
> SET d v EX 100
OK
> ZRANGESTORE d z 0 -1
(integer) 4
> TTL d
(integer) -1
> OBJECT ENCODING d
"listpack"
> ZRANGESTORE z z 0 1
(integer) 2
> ZRANGE z 0 -1
1) "a"
2) "b"
> ZRANGESTORE d z 0 -1 WITHSCORES
(error) ERR syntax error
> ZRANGESTORE d z 0 -1 LIMIT 0 1
(error) ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
> ZRANGESTORE d z a b
(error) ERR value is not an integer or out of range
> ZRANGESTORE d z 0 1 foo
(error) ERR syntax error
> SET k v
OK
> ZRANGESTORE d k 0 -1
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== ZREMRANGEBYRANK
> ZADD z 1 a 2 b 3 c 4 d 5 e
(integer) 5
> ZREMRANGEBYRANK z 1 2
(integer) 2
> ZRANGE z 0 -1
1) "a"
2) "d"
3) "e"
> ZREMRANGEBYRANK z -1 -1
(integer) 1
> ZREMRANGEBYRANK z 5 10
(integer) 0
> ZREMRANGEBYRANK z 1 0
(integer) 0
> ZRANGE z 0 -1
1) "a"
2) "d"
> ZREMRANGEBYRANK z 0 -1
(integer) 2
> EXISTS z
(integer) 0
> ZREMRANGEBYRANK nokey 0 -1
(integer) 0
> ZREMRANGEBYRANK z a 1
(error) ERR value is not an integer or out of range
> ZREMRANGEBYRANK z 0 b
(error) ERR value is not an integer or out of range
> SET k v
OK
> ZREMRANGEBYRANK k 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZREMRANGEBYRANK k a b
(error) ERR value is not an integer or out of range

== ZREMRANGEBYSCORE
> ZADD z 1 a 2 b 3 c 4 d 5 e
(integer) 5
> ZREMRANGEBYSCORE z 2 (4
(integer) 2
> ZRANGE z 0 -1
1) "a"
2) "d"
3) "e"
> ZREMRANGEBYSCORE z (5 10
(integer) 0
> ZREMRANGEBYSCORE z 10 1
(integer) 0
> ZREMRANGEBYSCORE z -inf +inf
(integer) 3
> EXISTS z
(integer) 0
> ZREMRANGEBYSCORE nokey 0 1
(integer) 0
> ZREMRANGEBYSCORE z a 1
(error) ERR min or max is not a float
> SET k v
OK
> ZREMRANGEBYSCORE k 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZREMRANGEBYSCORE k a b
(error) ERR min or max is not a float

== ZREMRANGEBYLEX
> ZADD z 0 a 0 b 0 c 0 d 0 e
(integer) 5
> ZREMRANGEBYLEX z [b (d
(integer) 2
> ZRANGE z 0 -1
1) "a"
2) "d"
3) "e"
> ZREMRANGEBYLEX z (e +
(integer) 0
> ZREMRANGEBYLEX z + -
(integer) 0
> ZREMRANGEBYLEX z - +
(integer) 3
> EXISTS z
(integer) 0
> ZREMRANGEBYLEX nokey - +
(integer) 0
> ZREMRANGEBYLEX z a b
(error) ERR min or max not valid string range item
> SET k v
OK
> ZREMRANGEBYLEX k - +
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZREMRANGEBYLEX k a b
(error) ERR min or max not valid string range item

== ZPOPMIN and ZPOPMAX
> ZADD z 1 a 2 b 3 c 4 d 5 e 6 f
(integer) 6
> ZPOPMIN z
1) "a"
2) "1"
resp3:
1) "a"
2) (double) 1
> ZPOPMAX z
1) "f"
2) "6"
resp3:
1) "f"
2) (double) 6
> ZPOPMIN z 2
1) "b"
2) "2"
3) "c"
4) "3"
resp3:
1) 1) "b"
   2) (double) 2
2) 1) "c"
   2) (double) 3
> ZPOPMAX z 1
1) "e"
2) "5"
resp3:
1) 1) "e"
   2) (double) 5
> ZPOPMIN z 0
(empty array)
> ZPOPMAX z 100
1) "d"
2) "4"
resp3:
1) 1) "d"
   2) (double) 4
> EXISTS z
(integer) 0
> ZPOPMIN z
(empty array)
> ZPOPMIN z 1
(empty array)
> ZPOPMAX z 0
(empty array)
> ZADD z 1 a
(integer) 1
> ZPOPMIN z -1
(error) ERR value is out of range, must be positive
> ZPOPMIN z a
(error) ERR value is out of range, must be positive
> ZPOPMAX z -1
(error) ERR value is out of range, must be positive
> ZPOPMAX z 1.5
(error) ERR value is out of range, must be positive
> SET k v
OK
> ZPOPMIN k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZPOPMAX k 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZPOPMIN k -1
(error) ERR value is out of range, must be positive
> ZPOPMIN k a
(error) ERR value is out of range, must be positive

== ZMPOP
> ZADD a 1 x 2 y 3 z
(integer) 3
> ZADD b 4 p 5 q
(integer) 2
> ZMPOP 2 nokey a MIN
1) "a"
2) 1) 1) "x"
      2) "1"
resp3:
1) "a"
2) 1) 1) "x"
      2) (double) 1
> ZMPOP 2 a b MAX COUNT 2
1) "a"
2) 1) 1) "z"
      2) "3"
   2) 1) "y"
      2) "2"
resp3:
1) "a"
2) 1) 1) "z"
      2) (double) 3
   2) 1) "y"
      2) (double) 2
> ZMPOP 2 a b min count 100
1) "b"
2) 1) 1) "p"
      2) "4"
   2) 1) "q"
      2) "5"
resp3:
1) "b"
2) 1) 1) "p"
      2) (double) 4
   2) 1) "q"
      2) (double) 5
> ZMPOP 2 a b MIN
(nil array)
> ZMPOP 1 nokey MAX COUNT 3
(nil array)
> ZADD z 1 a
(integer) 1
> ZMPOP 0 z MIN
(error) ERR numkeys should be greater than 0
> ZMPOP -1 z MIN
(error) ERR numkeys should be greater than 0
> ZMPOP a z MIN
(error) ERR numkeys should be greater than 0
> ZMPOP 2 z MIN
(error) ERR syntax error
> ZMPOP 3 z MIN
(error) ERR syntax error
> ZMPOP 1 z foo
(error) ERR syntax error
> ZMPOP 1 z LEFT
(error) ERR syntax error
> ZMPOP 1 z MIN COUNT
(error) ERR syntax error
> ZMPOP 1 z MIN COUNT 0
(error) ERR count should be greater than 0
> ZMPOP 1 z MIN COUNT -1
(error) ERR count should be greater than 0
> ZMPOP 1 z MIN COUNT a
(error) ERR count should be greater than 0
> ZMPOP 1 z MIN COUNT 1 COUNT 1
(error) ERR syntax error
> ZMPOP 1 z MIN foo
(error) ERR syntax error
> ZMPOP 1 z MIN MAX
(error) ERR syntax error
> SET k v
OK
> ZMPOP 1 k MIN
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZMPOP 2 nokey k MIN
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZMPOP 2 z k MIN
1) "z"
2) 1) 1) "a"
      2) "1"
resp3:
1) "z"
2) 1) 1) "a"
      2) (double) 1
> EXISTS z
(integer) 0

== ZRANDMEMBER
> ZADD z 1 a
(integer) 1
> ZRANDMEMBER z
"a"
> ZRANDMEMBER z 1
1) "a"
> ZRANDMEMBER z 5
1) "a"
> ZRANDMEMBER z -3
1) "a"
2) "a"
3) "a"
> ZRANDMEMBER z 1 WITHSCORES
1) "a"
2) "1"
resp3:
1) 1) "a"
   2) (double) 1
> ZRANDMEMBER z -2 withscores
1) "a"
2) "1"
3) "a"
4) "1"
resp3:
1) 1) "a"
   2) (double) 1
2) 1) "a"
   2) (double) 1
> ZRANDMEMBER z 0
(empty array)
> ZRANDMEMBER z 0 WITHSCORES
(empty array)
> ZRANDMEMBER nokey
(nil)
> ZRANDMEMBER nokey 3
(empty array)
> ZRANDMEMBER nokey -3 WITHSCORES
(empty array)
> ZADD y 1 a 2 b 3 c
(integer) 3
> [unordered] ZRANDMEMBER y 3
1) "a"
2) "b"
3) "c"
> [unordered] ZRANDMEMBER y 10
1) "a"
2) "b"
3) "c"
> [count] ZRANDMEMBER y 2
(integer) 2
> [count] ZRANDMEMBER y -10
(integer) 10
> ZRANDMEMBER z x
(error) ERR value is not an integer or out of range
> ZRANDMEMBER z 1 foo
(error) ERR syntax error
> ZRANDMEMBER z 1 WITHSCORES foo
(error) ERR syntax error
> ZRANDMEMBER z WITHSCORES
(error) ERR value is not an integer or out of range
> ZRANDMEMBER z -9223372036854775808
(error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> ZRANDMEMBER z -9223372036854775807 WITHSCORES
(error) ERR value is out of range
> ZRANDMEMBER nokey x
(error) ERR value is not an integer or out of range
> SET k v
OK
> ZRANDMEMBER k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANDMEMBER k 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANDMEMBER k x
(error) ERR value is not an integer or out of range
> ZADD big $each(1..300,% m%)
(integer) 300
> [count] ZRANDMEMBER big 50
(integer) 50
> [count] ZRANDMEMBER big 290
(integer) 290
> [count] ZRANDMEMBER big -1000
(integer) 1000
> [count] ZRANDMEMBER big 1000
(integer) 300

== ZUNION and ZUNIONSTORE
> ZADD a 1 x 2 y
(integer) 2
> ZADD b 3 y 4 z
(integer) 2
> SADD s x z w
(integer) 3
> ZUNION 2 a b
1) "x"
2) "z"
3) "y"
> ZUNION 2 a b WITHSCORES
1) "x"
2) "1"
3) "z"
4) "4"
5) "y"
6) "5"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "z"
   2) (double) 4
3) 1) "y"
   2) (double) 5
> ZUNION 3 a b s WITHSCORES
1) "w"
2) "1"
3) "x"
4) "2"
5) "y"
6) "5"
7) "z"
8) "5"
resp3:
1) 1) "w"
   2) (double) 1
2) 1) "x"
   2) (double) 2
3) 1) "y"
   2) (double) 5
4) 1) "z"
   2) (double) 5
> ZUNION 2 a b WEIGHTS 2 3 WITHSCORES
1) "x"
2) "2"
3) "z"
4) "12"
5) "y"
6) "13"
resp3:
1) 1) "x"
   2) (double) 2
2) 1) "z"
   2) (double) 12
3) 1) "y"
   2) (double) 13
> ZUNION 2 a b WEIGHTS 0.5 -1 WITHSCORES
1) "z"
2) "-4"
3) "y"
4) "-2"
5) "x"
6) "0.5"
resp3:
1) 1) "z"
   2) (double) -4
2) 1) "y"
   2) (double) -2
3) 1) "x"
   2) (double) 0.5
> ZUNION 2 a b AGGREGATE MIN WITHSCORES
1) "x"
2) "1"
3) "y"
4) "2"
5) "z"
6) "4"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "y"
   2) (double) 2
3) 1) "z"
   2) (double) 4
> ZUNION 2 a b AGGREGATE MAX WITHSCORES
1) "x"
2) "1"
3) "y"
4) "3"
5) "z"
6) "4"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "y"
   2) (double) 3
3) 1) "z"
   2) (double) 4
> ZUNION 2 a b aggregate sum withscores
1) "x"
2) "1"
3) "z"
4) "4"
5) "y"
6) "5"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "z"
   2) (double) 4
3) 1) "y"
   2) (double) 5
> ZUNION 2 a b WEIGHTS 2 1 AGGREGATE MAX WITHSCORES
1) "x"
2) "2"
3) "y"
4) "4"
5) "z"
6) "4"
resp3:
1) 1) "x"
   2) (double) 2
2) 1) "y"
   2) (double) 4
3) 1) "z"
   2) (double) 4
> ZUNION 1 nokey
(empty array)
> ZUNION 2 a nokey
1) "x"
2) "y"
> ZUNION 2 a a WITHSCORES
1) "x"
2) "2"
3) "y"
4) "4"
resp3:
1) 1) "x"
   2) (double) 2
2) 1) "y"
   2) (double) 4
> ZUNION 1 s WITHSCORES
1) "w"
2) "1"
3) "x"
4) "1"
5) "z"
6) "1"
resp3:
1) 1) "w"
   2) (double) 1
2) 1) "x"
   2) (double) 1
3) 1) "z"
   2) (double) 1
> ZUNIONSTORE d 2 a b
(integer) 3
> ZRANGE d 0 -1 WITHSCORES
1) "x"
2) "1"
3) "z"
4) "4"
5) "y"
6) "5"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "z"
   2) (double) 4
3) 1) "y"
   2) (double) 5
> ZUNIONSTORE d 3 a b s WEIGHTS 1 10 100 AGGREGATE MAX
(integer) 4
> ZRANGE d 0 -1 WITHSCORES
1) "y"
2) "30"
3) "w"
4) "100"
5) "x"
6) "100"
7) "z"
8) "100"
resp3:
1) 1) "y"
   2) (double) 30
2) 1) "w"
   2) (double) 100
3) 1) "x"
   2) (double) 100
4) 1) "z"
   2) (double) 100
> ZUNIONSTORE d 1 nokey
(integer) 0
> EXISTS d
(integer) 0
> SET d v EX 100
OK
> ZUNIONSTORE d 1 a
(integer) 2
> TTL d
(integer) -1
> ZUNIONSTORE a 2 a b
(integer) 3
> ZRANGE a 0 -1 WITHSCORES
1) "x"
2) "1"
3) "z"
4) "4"
5) "y"
6) "5"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "z"
   2) (double) 4
3) 1) "y"
   2) (double) 5
> OBJECT ENCODING a
"listpack"

== ZINTER and ZINTERSTORE
> ZADD a 1 x 2 y 3 z
(integer) 3
> ZADD b 3 y 4 z 5 w
(integer) 3
> SADD s z y
(integer) 2
> ZINTER 2 a b
1) "y"
2) "z"
> ZINTER 2 a b WITHSCORES
1) "y"
2) "5"
3) "z"
4) "7"
resp3:
1) 1) "y"
   2) (double) 5
2) 1) "z"
   2) (double) 7
> ZINTER 3 a b s WITHSCORES
1) "y"
2) "6"
3) "z"
4) "8"
resp3:
1) 1) "y"
   2) (double) 6
2) 1) "z"
   2) (double) 8
> ZINTER 2 a b WEIGHTS 2 3 WITHSCORES
1) "y"
2) "13"
3) "z"
4) "18"
resp3:
1) 1) "y"
   2) (double) 13
2) 1) "z"
   2) (double) 18
> ZINTER 2 a b AGGREGATE MIN WITHSCORES
1) "y"
2) "2"
3) "z"
4) "3"
resp3:
1) 1) "y"
   2) (double) 2
2) 1) "z"
   2) (double) 3
> ZINTER 2 a b AGGREGATE MAX WITHSCORES
1) "y"
2) "3"
3) "z"
4) "4"
resp3:
1) 1) "y"
   2) (double) 3
2) 1) "z"
   2) (double) 4
> ZINTER 2 a nokey
(empty array)
> ZINTER 1 a WITHSCORES
1) "x"
2) "1"
3) "y"
4) "2"
5) "z"
6) "3"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "y"
   2) (double) 2
3) 1) "z"
   2) (double) 3
> ZINTER 2 a a WITHSCORES
1) "x"
2) "2"
3) "y"
4) "4"
5) "z"
6) "6"
resp3:
1) 1) "x"
   2) (double) 2
2) 1) "y"
   2) (double) 4
3) 1) "z"
   2) (double) 6
> ZINTERSTORE d 2 a b
(integer) 2
> ZRANGE d 0 -1 WITHSCORES
1) "y"
2) "5"
3) "z"
4) "7"
resp3:
1) 1) "y"
   2) (double) 5
2) 1) "z"
   2) (double) 7
> ZINTERSTORE d 2 a b WEIGHTS 1 0 AGGREGATE SUM
(integer) 2
> ZRANGE d 0 -1 WITHSCORES
1) "y"
2) "2"
3) "z"
4) "3"
resp3:
1) 1) "y"
   2) (double) 2
2) 1) "z"
   2) (double) 3
> ZINTERSTORE d 2 a nokey
(integer) 0
> EXISTS d
(integer) 0
> ZINTERSTORE a 2 a s
(integer) 2
> ZRANGE a 0 -1 WITHSCORES
1) "y"
2) "3"
3) "z"
4) "4"
resp3:
1) 1) "y"
   2) (double) 3
2) 1) "z"
   2) (double) 4

== ZINTERCARD
> ZADD a 1 x 2 y 3 z
(integer) 3
> ZADD b 3 y 4 z 5 w
(integer) 3
> SADD s z
(integer) 1
> ZINTERCARD 2 a b
(integer) 2
> ZINTERCARD 2 a b LIMIT 1
(integer) 1
> ZINTERCARD 2 a b LIMIT 0
(integer) 2
> ZINTERCARD 3 a b s
(integer) 1
> ZINTERCARD 2 a nokey
(integer) 0
> ZINTERCARD 1 a limit 2
(integer) 2
> ZINTERCARD 0 a
(error) ERR at least 1 input key is needed for 'zintercard' command
> ZINTERCARD x a
(error) ERR value is not an integer or out of range
> ZINTERCARD 3 a b
(error) ERR syntax error
> ZINTERCARD 2 a b LIMIT
(error) ERR syntax error
> ZINTERCARD 2 a b LIMIT -1
(error) ERR LIMIT can't be negative
> ZINTERCARD 2 a b LIMIT x
(error) ERR LIMIT can't be negative
> ZINTERCARD 2 a b WITHSCORES
(error) ERR syntax error
> ZINTERCARD 2 a b WEIGHTS 1 2
(error) ERR syntax error
> ZINTERCARD 2 a b foo
(error) ERR syntax error
> SET k v
OK
> ZINTERCARD 2 a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== ZDIFF and ZDIFFSTORE
> ZADD a 1 x 2 y 3 z
(integer) 3
> ZADD b 3 y 5 w
(integer) 2
> SADD s z
(integer) 1
> ZDIFF 2 a b
1) "x"
2) "z"
> ZDIFF 2 a b WITHSCORES
1) "x"
2) "1"
3) "z"
4) "3"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "z"
   2) (double) 3
> ZDIFF 3 a b s WITHSCORES
1) "x"
2) "1"
resp3:
1) 1) "x"
   2) (double) 1
> ZDIFF 1 a WITHSCORES
1) "x"
2) "1"
3) "y"
4) "2"
5) "z"
6) "3"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "y"
   2) (double) 2
3) 1) "z"
   2) (double) 3
> ZDIFF 2 a a
(empty array)
> ZDIFF 2 nokey a
(empty array)
> ZDIFF 2 a nokey WITHSCORES
1) "x"
2) "1"
3) "y"
4) "2"
5) "z"
6) "3"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "y"
   2) (double) 2
3) 1) "z"
   2) (double) 3
> ZDIFF 2 s a
(empty array)
> ZDIFFSTORE d 2 a b
(integer) 2
> ZRANGE d 0 -1 WITHSCORES
1) "x"
2) "1"
3) "z"
4) "3"
resp3:
1) 1) "x"
   2) (double) 1
2) 1) "z"
   2) (double) 3
> ZDIFFSTORE d 2 a a
(integer) 0
> EXISTS d
(integer) 0
> ZDIFFSTORE a 2 a b
(integer) 2
> ZRANGE a 0 -1
1) "x"
2) "z"
> ZDIFFSTORE d 2 b a WITHSCORES
(error) ERR syntax error
> ZDIFF 2 a b WEIGHTS 1 2
(error) ERR syntax error
> ZDIFF 2 a b AGGREGATE MIN
(error) ERR syntax error
> ZDIFFSTORE d 2 a b WEIGHTS 1 2
(error) ERR syntax error

== aggregates with infinities
> ZADD a inf x -inf y
(integer) 2
> ZADD b -inf x inf y
(integer) 2
> ZUNION 2 a b WITHSCORES
1) "x"
2) "0"
3) "y"
4) "0"
resp3:
1) 1) "x"
   2) (double) 0
2) 1) "y"
   2) (double) 0
> ZINTER 2 a b WEIGHTS 0 0 WITHSCORES
1) "x"
2) "0"
3) "y"
4) "0"
resp3:
1) 1) "x"
   2) (double) 0
2) 1) "y"
   2) (double) 0
> ZUNION 2 a b WEIGHTS 1 -1 WITHSCORES
1) "y"
2) "-inf"
3) "x"
4) "inf"
resp3:
1) 1) "y"
   2) (double) -inf
2) 1) "x"
   2) (double) inf
> ZUNION 2 a b AGGREGATE MIN WITHSCORES
1) "x"
2) "-inf"
3) "y"
4) "-inf"
resp3:
1) 1) "x"
   2) (double) -inf
2) 1) "y"
   2) (double) -inf
> ZUNIONSTORE d 2 a b
(integer) 2
> ZRANGE d 0 -1 WITHSCORES
1) "x"
2) "0"
3) "y"
4) "0"
resp3:
1) 1) "x"
   2) (double) 0
2) 1) "y"
   2) (double) 0

== ZUNION and ZINTER reject what is wrong
> ZADD a 1 x
(integer) 1
> ZADD b 1 x
(integer) 1
> SET k v
OK
> ZUNION 0 a
(error) ERR at least 1 input key is needed for 'zunion' command
> ZUNION -1 a
(error) ERR at least 1 input key is needed for 'zunion' command
> ZUNION x a
(error) ERR value is not an integer or out of range
> ZUNION 1.5 a
(error) ERR value is not an integer or out of range
> ZUNION 3 a b
(error) ERR syntax error
> ZUNION 2 a b foo
(error) ERR syntax error
> ZUNION 2 a b WEIGHTS 1
(error) ERR syntax error
> ZUNION 2 a b WEIGHTS 1 x
(error) ERR weight value is not a float
> ZUNION 2 a b WEIGHTS 1 nan
(error) ERR weight value is not a float
> ZUNION 2 a b WEIGHTS
(error) ERR syntax error
> ZUNION 2 a b AGGREGATE
(error) ERR syntax error
> ZUNION 2 a b AGGREGATE foo
(error) ERR syntax error
> ZUNION 1 a b
(error) ERR syntax error
> ZUNION 1 k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZUNION 2 a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZUNION 2 a k foo
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZINTER 0 a
(error) ERR at least 1 input key is needed for 'zinter' command
> ZINTER 2 a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZINTER 2 nokey k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZINTER 2 k nokey
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZDIFF 0 a
(error) ERR at least 1 input key is needed for 'zdiff' command
> ZDIFF 2 nokey k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZUNIONSTORE d 0 a
(error) ERR at least 1 input key is needed for 'zunionstore' command
> ZUNIONSTORE d x a
(error) ERR value is not an integer or out of range
> ZUNIONSTORE d 3 a b
(error) ERR syntax error
> ZUNIONSTORE d 1 a WITHSCORES
(error) ERR syntax error
> ZINTERSTORE d 0 a
(error) ERR at least 1 input key is needed for 'zinterstore' command
> ZINTERSTORE d 2 a b WITHSCORES
(error) ERR syntax error
> ZINTERSTORE d 2 a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZDIFFSTORE d 0 a
(error) ERR at least 1 input key is needed for 'zdiffstore' command
> ZDIFFSTORE d 1 k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZUNIONSTORE k 1 a
(integer) 1
> TYPE k
zset
> ZUNIONSTORE d 9223372036854775807 a
(error) ERR syntax error
> ZUNION 4611686018427387904 a b
(error) ERR syntax error
> EXISTS d
(integer) 0

== zset commands refuse other types
> SET k v
OK
> ZADD k 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZREM k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZCARD k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZSCORE k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANGE k 0 -1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZPOPMIN k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SADD s a
(integer) 1
> ZADD s 1 b
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZSCORE s a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANGE s 0 -1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> TYPE k
string

== an increment of a score brings one member
config set zset-max-listpack-entries 128
> ZADD z 1 a
(integer) 1
> ZADD y 1 a
(integer) 1
> CONFIG SET zset-max-listpack-entries 0
OK
> ZADD z XX INCR 1 b
(nil)
> OBJECT ENCODING z
"skiplist"
> ZINCRBY y 0 a
"1"
resp3:
(double) 1
> OBJECT ENCODING y
"skiplist"
> CONFIG SET zset-max-listpack-entries 128
OK

== zset encodings and their limits
config set zset-max-listpack-entries 4
config set zset-max-listpack-value 8
> ZADD z 1 a 2 b 3 c 4 d
(integer) 4
> OBJECT ENCODING z
"listpack"
> ZADD z 5 a
(integer) 0
> OBJECT ENCODING z
"listpack"
> ZADD z 5 e
(integer) 1
> OBJECT ENCODING z
"skiplist"
> ZREM z e d c
(integer) 3
> OBJECT ENCODING z
"skiplist"
> ZADD y 1 12345678
(integer) 1
> OBJECT ENCODING y
"listpack"
> ZADD y 1 123456789
(integer) 1
> OBJECT ENCODING y
"skiplist"
> ZINCRBY x 1 123456789
"1"
resp3:
(double) 1
> OBJECT ENCODING x
"skiplist"
> ZADD w 1 a 2 b 3 c 4 d 5 e
(integer) 5
> OBJECT ENCODING w
"skiplist"
> ZUNIONSTORE u 2 z y
(integer) 4
> OBJECT ENCODING u
"skiplist"
> ZRANGESTORE v w 0 3
(integer) 4
> OBJECT ENCODING v
"listpack"
> ZRANGESTORE v w 0 -1
(integer) 5
> OBJECT ENCODING v
"skiplist"
> ZDIFFSTORE t 2 w z
(integer) 3
> OBJECT ENCODING t
"listpack"
> ZADD s XX 1 a
(integer) 0
> EXISTS s
(integer) 0

== the default limits of sorted sets
> ZADD z $each(1..128,% m%)
(integer) 128
> OBJECT ENCODING z
"listpack"
> ZADD z 129 m129
(integer) 1
> OBJECT ENCODING z
"skiplist"
> ZADD y 1 $times(64,x)
(integer) 1
> OBJECT ENCODING y
"listpack"
> ZADD y 1 $times(65,x)
(integer) 1
> OBJECT ENCODING y
"skiplist"
> CONFIG SET zset-max-ziplist-entries 0
OK
> ZADD x 1 a
(integer) 1
> OBJECT ENCODING x
"skiplist"

== a large sorted set
> ZADD z $each(1..3000,% m%)
(integer) 3000
> OBJECT ENCODING z
"skiplist"
> ZCARD z
(integer) 3000
> ZRANK z m1
(integer) 0
> ZRANK z m1500
(integer) 1499
> ZREVRANK z m3000
(integer) 0
> ZRANGE z 1499 1501 WITHSCORES
1) "m1500"
2) "1500"
3) "m1501"
4) "1501"
5) "m1502"
6) "1502"
resp3:
1) 1) "m1500"
   2) (double) 1500
2) 1) "m1501"
   2) (double) 1501
3) 1) "m1502"
   2) (double) 1502
> ZRANGE z 0 2 REV
1) "m3000"
2) "m2999"
3) "m2998"
> ZRANGEBYSCORE z 2000 2003
1) "m2000"
2) "m2001"
3) "m2002"
4) "m2003"
> ZRANGEBYSCORE z (2000 +inf LIMIT 500 2
1) "m2501"
2) "m2502"
> ZREVRANGEBYSCORE z (2000 -inf LIMIT 0 2 WITHSCORES
1) "m1999"
2) "1999"
3) "m1998"
4) "1998"
resp3:
1) 1) "m1999"
   2) (double) 1999
2) 1) "m1998"
   2) (double) 1998
> ZCOUNT z 100 (200
(integer) 100
> ZREMRANGEBYRANK z 0 999
(integer) 1000
> ZCARD z
(integer) 2000
> ZREMRANGEBYSCORE z 2001 2500
(integer) 500
> ZRANK z m2501
(integer) 1000
> ZINCRBY z -5000 m3000
"-2000"
resp3:
(double) -2000
> ZRANK z m3000
(integer) 0
> ZPOPMIN z 2
1) "m3000"
2) "-2000"
3) "m1001"
4) "1001"
resp3:
1) 1) "m3000"
   2) (double) -2000
2) 1) "m1001"
   2) (double) 1001
> ZPOPMAX z 2
1) "m2999"
2) "2999"
3) "m2998"
4) "2998"
resp3:
1) 1) "m2999"
   2) (double) 2999
2) 1) "m2998"
   2) (double) 2998
> ZCARD z
(integer) 1496
> ZADD z 2999.5 m1500
(integer) 0
> ZREVRANK z m1500
(integer) 0
> ZREM z $each(1002..2000,m%)
(integer) 999
> ZCARD z
(integer) 497
> ZRANGE z 0 2
1) "m2501"
2) "m2502"
3) "m2503"
> ZUNIONSTORE d 2 z z WEIGHTS 1 2
(integer) 497
> ZRANGE d 0 1 WITHSCORES
1) "m2501"
2) "7503"
3) "m2502"
4) "7506"
resp3:
1) 1) "m2501"
   2) (double) 7503
2) 1) "m2502"
   2) (double) 7506
> ZINTERCARD 2 z d LIMIT 100
(integer) 100
> ZREMRANGEBYRANK z 5 -1
(integer) 492
> ZRANGE z 0 -1 WITHSCORES
 1) "m2501"
 2) "2501"
 3) "m2502"
 4) "2502"
 5) "m2503"
 6) "2503"
 7) "m2504"
 8) "2504"
 9) "m2505"
10) "2505"
resp3:
1) 1) "m2501"
   2) (double) 2501
2) 1) "m2502"
   2) (double) 2502
3) 1) "m2503"
   2) (double) 2503
4) 1) "m2504"
   2) (double) 2504
5) 1) "m2505"
   2) (double) 2505
> OBJECT ENCODING z
"skiplist"

== a large sorted set of equal scores
> ZADD z $each(1000..2999,0 m%)
(integer) 2000
> ZRANGEBYLEX z [m1500 (m1503
1) "m1500"
2) "m1501"
3) "m1502"
> ZREVRANGEBYLEX z [m1500 - LIMIT 0 2
1) "m1500"
2) "m1499"
> ZLEXCOUNT z [m1100 [m1199
(integer) 100
> ZRANK z m1100
(integer) 100
> ZREMRANGEBYLEX z - (m2990
(integer) 1990
> ZRANGE z 0 -1
 1) "m2990"
 2) "m2991"
 3) "m2992"
 4) "m2993"
 5) "m2994"
 6) "m2995"
 7) "m2996"
 8) "m2997"
 9) "m2998"
10) "m2999"

== ZSCAN returns all
> ZADD z 1 a 2.5 b inf c
(integer) 3
> ZSCAN z 0
1) "0"
2) 1) "a"
   2) "1"
   3) "b"
   4) "2.5"
   5) "c"
   6) "inf"
> ZSCAN z 0 COUNT 1
1) "0"
2) 1) "a"
   2) "1"
   3) "b"
   4) "2.5"
   5) "c"
   6) "inf"
> ZSCAN z 0 MATCH [ab]
1) "0"
2) 1) "a"
   2) "1"
   3) "b"
   4) "2.5"
> ZSCAN z 0 MATCH x*
1) "0"
2) (empty array)
> ZSCAN z 3
1) "0"
2) 1) "a"
   2) "1"
   3) "b"
   4) "2.5"
   5) "c"
   6) "inf"
> ZSCAN nokey 0
1) "0"
2) (empty array)
> ZADD t $each(1..200,%.5 m%)
(integer) 200
> [count] ZSCAN t 0 COUNT 1000
(integer) 2
> [pairs] ZSCAN t 0 COUNT 1000 MATCH m19?
1) "0"
2)  1) "m190"
    2) "190.5"
    3) "m191"
    4) "191.5"
    5) "m192"
    6) "192.5"
    7) "m193"
    8) "193.5"
    9) "m194"
   10) "194.5"
   11) "m195"
   12) "195.5"
   13) "m196"
   14) "196.5"
   15) "m197"
   16) "197.5"
   17) "m198"
   18) "198.5"
   19) "m199"
   20) "199.5"
> ZSCAN z a
(error) ERR invalid cursor
> ZSCAN z 0 COUNT 0
(error) ERR syntax error
> ZSCAN z 0 foo
(error) ERR syntax error
> ZSCAN nokey a
(error) ERR invalid cursor
> SET k v
OK
> ZSCAN k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
