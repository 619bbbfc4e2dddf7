# Sets.

== adding, removing and asking
> SADD s a b c
(integer) 3
> SADD s a d
(integer) 1
> SADD s d d e
(integer) 1
> SCARD s
(integer) 5
> SISMEMBER s a
(integer) 1
> SISMEMBER s z
(integer) 0
> [unordered] SMEMBERS s
1) "a"
2) "b"
3) "c"
4) "d"
5) "e"
resp3:
1~ "a"
2~ "b"
3~ "c"
4~ "d"
5~ "e"
> SREM s a z
(integer) 1
> SREM s b c d e
(integer) 4
> EXISTS s
(integer) 0
> SREM s a
(integer) 0
> SCARD s
(integer) 0
> SISMEMBER s a
(integer) 0
> SMEMBERS s
(empty array)
resp3:
(empty set)
> TYPE s
none

== wrong numbers of arguments
> SADD
(error) ERR wrong number of arguments for 'sadd' command
> SADD s
(error) ERR wrong number of arguments for 'sadd' command
> SREM s
(error) ERR wrong number of arguments for 'srem' command
> SCARD
(error) ERR wrong number of arguments for 'scard' command
> SCARD a b
(error) ERR wrong number of arguments for 'scard' command
> SISMEMBER s
(error) ERR wrong number of arguments for 'sismember' command
> SISMEMBER s a b
(error) ERR wrong number of arguments for 'sismember' command
> SMISMEMBER s
(error) ERR wrong number of arguments for 'smismember' command
> SMEMBERS
(error) ERR wrong number of arguments for 'smembers' command
> SMEMBERS a b
(error) ERR wrong number of arguments for 'smembers' command
> SPOP
(error) ERR wrong number of arguments for 'spop' command
> SPOP s 1 2
(error) ERR syntax error
> SRANDMEMBER
(error) ERR wrong number of arguments for 'srandmember' command
> SRANDMEMBER s 1 2
(error) ERR syntax error
> SMOVE a b
(error) ERR wrong number of arguments for 'smove' command
> SMOVE a b c d
(error) ERR wrong number of arguments for 'smove' command
> SINTER
(error) ERR wrong number of arguments for 'sinter' command
> SINTERCARD
(error) ERR wrong number of arguments for 'sintercard' command
> SINTERCARD 1
(error) ERR wrong number of arguments for 'sintercard' command
> SINTERSTORE d
(error) ERR wrong number of arguments for 'sinterstore' command
> SUNION
(error) ERR wrong number of arguments for 'sunion' command
> SUNIONSTORE d
(error) ERR wrong number of arguments for 'sunionstore' command
> SDIFF
(error) ERR wrong number of arguments for 'sdiff' command
> SDIFFSTORE d
(error) ERR wrong number of arguments for 'sdiffstore' command
> SSCAN s
(error) ERR wrong number of arguments for 'sscan' command

== SMISMEMBER
> SADD s a b 1
(integer) 3
> SMISMEMBER s a z b 1 a
1) (integer) 1
2) (integer) 0
3) (integer) 1
4) (integer) 1
5) (integer) 1
> SMISMEMBER nokey a b
1) (integer) 0
2) (integer) 0
> SET k v
OK
> SMISMEMBER k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== members are bytes
> SADD s "" "a\x00b" "\xff" 1 01 " 1" 1.0
(integer) 7
> SISMEMBER s ""
(integer) 1
> SISMEMBER s "a\x00b"
(integer) 1
> SISMEMBER s "\xff"
(integer) 1
> SISMEMBER s 01
(integer) 1
> SISMEMBER s 1
(integer) 1
> SISMEMBER s +1
(integer) 0
> SREM s 01 1.0
(integer) 2
> SCARD s
(integer) 5

== integers keep their order in an intset
> SADD s 5 3 1 -1 100000 -70000 9223372036854775807 -9223372036854775808 0
(integer) 9
> OBJECT ENCODING s
"intset"
> SMEMBERS s
1) "-9223372036854775808"
2) "-70000"
3) "-1"
4) "0"
5) "1"
6) "3"
7) "5"
8) "100000"
9) "9223372036854775807"
resp3:
1~ "-9223372036854775808"
2~ "-70000"
3~ "-1"
4~ "0"
5~ "1"
6~ "3"
7~ "5"
8~ "100000"
9~ "9223372036854775807"
> SREM s 3 4
(integer) 1
> SMEMBERS s
1) "-9223372036854775808"
2) "-70000"
3) "-1"
4) "0"
5) "1"
6) "5"
7) "100000"
8) "9223372036854775807"
resp3:
1~ "-9223372036854775808"
2~ "-70000"
3~ "-1"
4~ "0"
5~ "1"
6~ "5"
7~ "100000"
8~ "9223372036854775807"
> SISMEMBER s 100000
(integer) 1
> SISMEMBER s 100001
(integer) 0
> SISMEMBER s abc
(integer) 0
> SREM s abc
(integer) 0
> OBJECT ENCODING s
"intset"
> SADD s abc
(integer) 1
> OBJECT ENCODING s
"listpack"
> [unordered] SMEMBERS s
1) "-1"
2) "-70000"
3) "-9223372036854775808"
4) "0"
5) "1"
6) "100000"
7) "5"
8) "9223372036854775807"
9) "abc"
resp3:
1~ "-1"
2~ "-70000"
3~ "-9223372036854775808"
4~ "0"
5~ "1"
6~ "100000"
7~ "5"
8~ "9223372036854775807"
9~ "abc"
> SREM s abc
(integer) 1
> OBJECT ENCODING s
"listpack"
> SISMEMBER s -70000
(integer) 1

== set encodings and their limits
config set set-max-intset-entries 4
> SADD s 1 2 3 4
(integer) 4
> OBJECT ENCODING s
"intset"
> SADD s 4
(integer) 0
> OBJECT ENCODING s
"intset"
> SADD s 5
(integer) 1
> OBJECT ENCODING s
"hashtable"
> SADD t a
(integer) 1
> OBJECT ENCODING t
"listpack"
> SADD u 1 2 x
(integer) 3
> OBJECT ENCODING u
"listpack"
> SADD v 9223372036854775807
(integer) 1
> OBJECT ENCODING v
"intset"
> SADD v 9223372036854775808
(integer) 1
> OBJECT ENCODING v
"listpack"
> SADD w 1 2 3 4 5 6
(integer) 6
> OBJECT ENCODING w
"listpack"
> SADD x 01
(integer) 1
> OBJECT ENCODING x
"listpack"
> SADD y -0
(integer) 1
> OBJECT ENCODING y
"listpack"

== SPOP
> SADD s a b c d e
(integer) 5
> SPOP s
~ "[a-e]"
> SCARD s
(integer) 4
> [count] SPOP s 2
(integer) 2
> SCARD s
(integer) 2
> SPOP s 0
(empty array)
resp3:
(empty set)
> [count] SPOP s 100
(integer) 2
> EXISTS s
(integer) 0
> SPOP s
(nil)
> SPOP s 1
(empty array)
resp3:
(empty set)
> SPOP s 0
(empty array)
resp3:
(empty set)
> SADD t x
(integer) 1
> SPOP t
"x"
> EXISTS t
(integer) 0
> SADD n 1 2 3
(integer) 3
> [unordered] SPOP n 3
1) "1"
2) "2"
3) "3"
resp3:
1~ "1"
2~ "2"
3~ "3"
> EXISTS n
(integer) 0
> SPOP s -1
(error) ERR value is out of range, must be positive
> SPOP s a
(error) ERR value is out of range, must be positive
> SPOP s 1.5
(error) ERR value is out of range, must be positive
> SADD u 1
(integer) 1
> SPOP u -1
(error) ERR value is out of range, must be positive
> SPOP u a
(error) ERR value is out of range, must be positive
> SET k v
OK
> SPOP k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SPOP k 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SPOP k -1
(error) ERR value is out of range, must be positive
> SPOP k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== SPOP with a large count leaves the rest
> SADD s $each(1..500,m%)
(integer) 500
> [count] SPOP s 450
(integer) 450
> SCARD s
(integer) 50
> [count] SPOP s 5
(integer) 5
> SCARD s
(integer) 45
> SADD n $each(1..500,%)
(integer) 500
> OBJECT ENCODING n
"intset"
> [count] SPOP n 490
(integer) 490
> SCARD n
(integer) 10
> [count] SMEMBERS n
(integer) 10

== SRANDMEMBER
> SADD s a b c
(integer) 3
> SRANDMEMBER s
~ "[abc]"
> [count] SRANDMEMBER s 2
(integer) 2
> [unordered] SRANDMEMBER s 3
1) "a"
2) "b"
3) "c"
> [unordered] SRANDMEMBER s 10
1) "a"
2) "b"
3) "c"
> [count] SRANDMEMBER s -10
(integer) 10
> SRANDMEMBER s 0
(empty array)
> SCARD s
(integer) 3
> SRANDMEMBER nokey
(nil)
> SRANDMEMBER nokey 5
(empty array)
> SRANDMEMBER nokey -5
(empty array)
> SADD one x
(integer) 1
> SRANDMEMBER one
"x"
> SRANDMEMBER one 1
1) "x"
> SRANDMEMBER one -3
1) "x"
2) "x"
3) "x"
> SRANDMEMBER s a
(error) ERR value is not an integer or out of range
> SRANDMEMBER s 1.5
(error) ERR value is not an integer or out of range
> SRANDMEMBER s -9223372036854775808
(error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> SRANDMEMBER nokey a
(error) ERR value is not an integer or out of range
> SET k v
OK
> SRANDMEMBER k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SRANDMEMBER k 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SRANDMEMBER k a
(error) ERR value is not an integer or out of range
> SADD many $each(1..300,m%)
(integer) 300
> [count] SRANDMEMBER many 10
(integer) 10
> [count] SRANDMEMBER many 299
(integer) 299
> [count] SRANDMEMBER many 1000
(integer) 300
> [count] SRANDMEMBER many -1000
(integer) 1000
> SADD ints $each(1..300,%)
(integer) 300
> [count] SRANDMEMBER ints 100
(integer) 100
> [unordered] SRANDMEMBER one 5
1) "x"

== SMOVE
> SADD a 1 2 3
(integer) 3
> SADD b 3 4
(integer) 2
> SMOVE a b 1
(integer) 1
> SMOVE a b 3
(integer) 1
> SMOVE a b nothing
(integer) 0
> SMEMBERS a
1) "2"
resp3:
1~ "2"
> SMEMBERS b
1) "1"
2) "3"
3) "4"
resp3:
1~ "1"
2~ "3"
3~ "4"
> SMOVE a a 2
(integer) 1
> SMOVE a a nothing
(integer) 0
> SMOVE a b 2
(integer) 1
> EXISTS a
(integer) 0
> SMOVE a b 1
(integer) 0
> SMOVE b new 4
(integer) 1
> SMEMBERS new
1) "4"
resp3:
1~ "4"
> SMOVE b new 1
(integer) 1
> SADD c x
(integer) 1
> SMOVE c new x
(integer) 1
> [unordered] SMEMBERS new
1) "1"
2) "4"
3) "x"
resp3:
1~ "1"
2~ "4"
3~ "x"
> OBJECT ENCODING new
"listpack"
> EXISTS c
(integer) 0
> SET k v
OK
> SMOVE k b 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SMOVE b k 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SMOVE nokey k 1
(integer) 0
> SMOVE b k nothing
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SMOVE nokey b 1
(integer) 0

== SINTER, SUNION and SDIFF
> SADD a 1 2 3 4
(integer) 4
> SADD b 2 4 6
(integer) 3
> SADD c 4 8
(integer) 2
> SADD d x y 2
(integer) 3
> SINTER a b
1) "2"
2) "4"
resp3:
1~ "2"
2~ "4"
> SINTER a b c
1) "4"
resp3:
1~ "4"
> SINTER a d
1) "2"
resp3:
1~ "2"
> SINTER a
1) "1"
2) "2"
3) "3"
4) "4"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
> SINTER a nokey
(empty array)
resp3:
(empty set)
> SINTER nokey a
(empty array)
resp3:
(empty set)
> SINTER nokey
(empty array)
resp3:
(empty set)
> SINTER a a
1) "1"
2) "2"
3) "3"
4) "4"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
> [unordered] SUNION a b
1) "1"
2) "2"
3) "3"
4) "4"
5) "6"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
5~ "6"
> [unordered] SUNION a b c nokey d
1) "1"
2) "2"
3) "3"
4) "4"
5) "6"
6) "8"
7) "x"
8) "y"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
5~ "6"
6~ "8"
7~ "x"
8~ "y"
> SUNION nokey
(empty array)
resp3:
(empty set)
> [unordered] SUNION a
1) "1"
2) "2"
3) "3"
4) "4"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
> [unordered] SDIFF a b
1) "1"
2) "3"
resp3:
1~ "1"
2~ "3"
> [unordered] SDIFF a b c
1) "1"
2) "3"
resp3:
1~ "1"
2~ "3"
> SDIFF a nokey
1) "1"
2) "2"
3) "3"
4) "4"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
> SDIFF nokey a
(empty array)
resp3:
(empty set)
> SDIFF a a
(empty array)
resp3:
(empty set)
> [unordered] SDIFF d a
1) "x"
2) "y"
resp3:
1~ "x"
2~ "y"
> [unordered] SDIFF a
1) "1"
2) "2"
3) "3"
4) "4"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
> [unordered] SDIFF a nokey b nokey
1) "1"
2) "3"
resp3:
1~ "1"
2~ "3"

== set operations over tables
> SADD a $each(1..200,m%)
(integer) 200
> SADD b $each(100..300,m%)
(integer) 201
> SADD c m150 m250 m999
(integer) 3
> [count] SINTER a b
(integer) 101
> [count] SUNION a b
(integer) 300
> [count] SDIFF a b
(integer) 99
> [unordered] SINTER a b c
1) "m150"
resp3:
1~ "m150"
> [count] SDIFF a b c
(integer) 99
> [unordered] SDIFF c a
1) "m250"
2) "m999"
resp3:
1~ "m250"
2~ "m999"
> [unordered] SDIFF c a b
1) "m999"
resp3:
1~ "m999"
> SINTERSTORE d a b
(integer) 101
> SUNIONSTORE e a b c
(integer) 301
> SDIFFSTORE f a b
(integer) 99
> SCARD e
(integer) 301

== SINTERSTORE, SUNIONSTORE and SDIFFSTORE
> SADD a 1 2 3 4
(integer) 4
> SADD b 2 4 6
(integer) 3
> SINTERSTORE d a b
(integer) 2
> SMEMBERS d
1) "2"
2) "4"
resp3:
1~ "2"
2~ "4"
> OBJECT ENCODING d
"intset"
> SUNIONSTORE d a b
(integer) 5
> SMEMBERS d
1) "1"
2) "2"
3) "3"
4) "4"
5) "6"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
5~ "6"
> SDIFFSTORE d a b
(integer) 2
> SMEMBERS d
1) "1"
2) "3"
resp3:
1~ "1"
2~ "3"
> SINTERSTORE d a nokey
(integer) 0
> EXISTS d
(integer) 0
> SET d v EX 100
OK
> SUNIONSTORE d a
(integer) 4
> TTL d
(integer) -1
> SMEMBERS d
1) "1"
2) "2"
3) "3"
4) "4"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
> SDIFFSTORE d a a
(integer) 0
> EXISTS d
(integer) 0
> SUNIONSTORE a a b
(integer) 5
> SMEMBERS a
1) "1"
2) "2"
3) "3"
4) "4"
5) "6"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
5~ "6"
> SINTERSTORE b b b
(integer) 3
> SMEMBERS b
1) "2"
2) "4"
3) "6"
resp3:
1~ "2"
2~ "4"
3~ "6"
> SUNIONSTORE d nokey nokey2
(integer) 0
> EXISTS d
(integer) 0
> RPUSH l x
(integer) 1
> SDIFFSTORE l a nokey
(integer) 5
> TYPE l
set
> SADD w x y
(integer) 2
> SUNIONSTORE d w a
(integer) 7
> OBJECT ENCODING d
"listpack"
> SDIFFSTORE d d w
(integer) 5
> OBJECT ENCODING d
"intset"
> [unordered] SMEMBERS d
1) "1"
2) "2"
3) "3"
4) "4"
5) "6"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
5~ "6"

== SINTERCARD
> SADD a 1 2 3 4 5
(integer) 5
> SADD b 2 3 4 6
(integer) 4
> SINTERCARD 2 a b
(integer) 3
> SINTERCARD 2 a b LIMIT 2
(integer) 2
> SINTERCARD 2 a b LIMIT 0
(integer) 3
> SINTERCARD 2 a b LIMIT 100
(integer) 3
> SINTERCARD 1 a
(integer) 5
> SINTERCARD 1 a LIMIT 3
(integer) 3
> SINTERCARD 2 a nokey
(integer) 0
> SINTERCARD 1 nokey
(integer) 0
> SINTERCARD 3 a a b limit 1
(integer) 1
> SINTERCARD 0 a
(error) ERR numkeys should be greater than 0
> SINTERCARD -1 a
(error) ERR numkeys should be greater than 0
> SINTERCARD x a
(error) ERR numkeys should be greater than 0
> SINTERCARD 2 a
(error) ERR Number of keys can't be greater than number of args
> SINTERCARD 3 a b
(error) ERR Number of keys can't be greater than number of args
> SINTERCARD 2 a b LIMIT
(error) ERR syntax error
> SINTERCARD 2 a b LIMIT -1
(error) ERR LIMIT can't be negative
> SINTERCARD 2 a b LIMIT x
(error) ERR LIMIT can't be negative
> SINTERCARD 2 a b foo
(error) ERR syntax error
> SINTERCARD 2 a b LIMIT 1 LIMIT 2
(integer) 2
> SINTERCARD 1 a b
(error) ERR syntax error
> SET k v
OK
> SINTERCARD 1 k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTERCARD 2 a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTERCARD 2 nokey k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTERCARD 1 k LIMIT -1
(error) ERR LIMIT can't be negative

== set operations refuse other types
> SET k v
OK
> SADD a 1
(integer) 1
> SADD k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SREM k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SCARD k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SISMEMBER k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SMEMBERS k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTER k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTER a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTER k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTER nokey k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTER k nokey
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SUNION a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SUNION nokey k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFF a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFF k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFF nokey k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTERSTORE d a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTERSTORE d nokey k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SUNIONSTORE d a k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFFSTORE d k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SINTERSTORE k a
(integer) 1
> TYPE k
set
> EXISTS d
(integer) 0

== SSCAN returns all
> SADD s $each(1..20,m%)
(integer) 20
> [unordered] SSCAN s 0 COUNT 1000
1) "0"
2)  1) "m1"
    2) "m10"
    3) "m11"
    4) "m12"
    5) "m13"
    6) "m14"
    7) "m15"
    8) "m16"
    9) "m17"
   10) "m18"
   11) "m19"
   12) "m2"
   13) "m20"
   14) "m3"
   15) "m4"
   16) "m5"
   17) "m6"
   18) "m7"
   19) "m8"
   20) "m9"
> [unordered] SSCAN s 0 MATCH m1? COUNT 1000
1) "0"
2)  1) "m10"
    2) "m11"
    3) "m12"
    4) "m13"
    5) "m14"
    6) "m15"
    7) "m16"
    8) "m17"
    9) "m18"
   10) "m19"
> SSCAN s 0 MATCH x* COUNT 1000
1) "0"
2) (empty array)
> SADD n 3 1 2
(integer) 3
> SSCAN n 0
1) "0"
2) 1) "1"
   2) "2"
   3) "3"
> SSCAN n 0 COUNT 1
1) "0"
2) 1) "1"
   2) "2"
   3) "3"
> SSCAN n 0 MATCH [12]
1) "0"
2) 1) "1"
   2) "2"
> SSCAN n 55
1) "0"
2) 1) "1"
   2) "2"
   3) "3"
> SSCAN nokey 0
1) "0"
2) (empty array)
> SSCAN s a
(error) ERR invalid cursor
> SSCAN nokey a
(error) ERR invalid cursor
> SSCAN s 0 COUNT 0
(error) ERR syntax error
> SSCAN s 0 COUNT a
(error) ERR value is not an integer or out of range
> SSCAN s 0 COUNT
(error) ERR syntax error
> SSCAN s 0 MATCH
(error) ERR syntax error
> SSCAN s 0 TYPE set
(error) ERR syntax error
> SSCAN s 0 foo
(error) ERR syntax error
> SSCAN nokey 0 foo
1) "0"
2) (empty array)
> SET k v
OK
> SSCAN k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SSCAN k a
(error) ERR invalid cursor

== a large set
> SADD s $each(1..5000,m%)
(integer) 5000
> SADD s $each(1..5000,m%)
(integer) 0
> SCARD s
(integer) 5000
> OBJECT ENCODING s
"hashtable"
> SISMEMBER s m1
(integer) 1
> SISMEMBER s m5000
(integer) 1
> SISMEMBER s m5001
(integer) 0
> SREM s $each(1..4990,m%)
(integer) 4990
> SCARD s
(integer) 10
> [unordered] SMEMBERS s
 1) "m4991"
 2) "m4992"
 3) "m4993"
 4) "m4994"
 5) "m4995"
 6) "m4996"
 7) "m4997"
 8) "m4998"
 9) "m4999"
10) "m5000"
resp3:
 1~ "m4991"
 2~ "m4992"
 3~ "m4993"
 4~ "m4994"
 5~ "m4995"
 6~ "m4996"
 7~ "m4997"
 8~ "m4998"
 9~ "m4999"
10~ "m5000"
> SADD n $each(1..512,%)
(integer) 512
> OBJECT ENCODING n
"intset"
> SADD n 513
(integer) 1
> OBJECT ENCODING n
"hashtable"
> SCARD n
(integer) 513
