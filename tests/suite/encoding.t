# When values change their representation. Limits of one type only are in that type's file.

== the default encodings
> SET string abc
OK
> SET number 12
OK
> SET long $times(45,x)
OK
> RPUSH list a
(integer) 1
> SADD set a
(integer) 1
> SADD ints 1
(integer) 1
> HSET hash f v
(integer) 1
> ZADD zset 1 a
(integer) 1
> OBJECT ENCODING string
"embstr"
> OBJECT ENCODING number
"int"
> OBJECT ENCODING long
"raw"
> OBJECT ENCODING list
"listpack"
> OBJECT ENCODING set
"listpack"
> OBJECT ENCODING ints
"intset"
> OBJECT ENCODING hash
"listpack"
> OBJECT ENCODING zset
"listpack"

== results of set operations choose anew
> SADD a 1 2 3 x
(integer) 4
> SADD b 1 2 3
(integer) 3
> OBJECT ENCODING a
"listpack"
> SINTERSTORE d a b
(integer) 3
> OBJECT ENCODING d
"intset"
> SDIFFSTORE d a b
(integer) 1
> OBJECT ENCODING d
"listpack"
> SUNIONSTORE d b b
(integer) 3
> OBJECT ENCODING d
"intset"
> SREM a x
(integer) 1
> OBJECT ENCODING a
"listpack"
> SUNIONSTORE d a
(integer) 3
> OBJECT ENCODING d
"intset"
> SMEMBERS d
1) "1"
2) "2"
3) "3"
resp3:
1~ "1"
2~ "2"
3~ "3"

== copies and restored values keep or choose their encoding
> HSET h $each(1..600,f% v%)
(integer) 600
> HDEL h $each(2..600,f%)
(integer) 599
> OBJECT ENCODING h
"hashtable"
> COPY h i
(integer) 1
> OBJECT ENCODING i
"hashtable"
> [keep=d] DUMP h
(kept)
> RESTORE j 0 "$(d)"
OK
> OBJECT ENCODING j
"listpack"
> ZADD z $each(1..200,% m%)
(integer) 200
> ZREM z $each(2..200,m%)
(integer) 199
> OBJECT ENCODING z
"skiplist"
> COPY z y
(integer) 1
> OBJECT ENCODING y
"skiplist"
> [keep=d] DUMP z
(kept)
> RESTORE x 0 "$(d)"
OK
> OBJECT ENCODING x
"listpack"
> SADD s 1 a
(integer) 2
> SREM s a
(integer) 1
> OBJECT ENCODING s
"listpack"
> [keep=d] DUMP s
(kept)
> RESTORE t 0 "$(d)"
OK
> OBJECT ENCODING t
"listpack"
> RENAME h k
OK
> OBJECT ENCODING k
"hashtable"

== settings apply to the next write
> HSET h a 1 b 2 c 3
(integer) 3
> CONFIG SET hash-max-listpack-entries 2
OK
> OBJECT ENCODING h
"listpack"
> HGET h a
"1"
> OBJECT ENCODING h
"listpack"
> HSET h a 9
(integer) 0
> OBJECT ENCODING h
"hashtable"
> HSET h d 4
(integer) 1
> OBJECT ENCODING h
"hashtable"
> ZADD z 1 a 2 b 3 c
(integer) 3
> CONFIG SET zset-max-listpack-entries 2
OK
> ZADD z 4 a
(integer) 0
> OBJECT ENCODING z
"listpack"
> ZADD z 5 d
(integer) 1
> OBJECT ENCODING z
"skiplist"
> SADD s 1 2 3
(integer) 3
> CONFIG SET set-max-intset-entries 2
OK
> SADD s 3
(integer) 0
> OBJECT ENCODING s
"intset"
> SADD s 4
(integer) 1
> OBJECT ENCODING s
"hashtable"
> CONFIG SET hash-max-listpack-entries 512
OK
> HSET h e 5
(integer) 1
> OBJECT ENCODING h
"hashtable"

== what a command brings counts, whether it is there already, comes twice or is refused
config set hash-max-listpack-entries 2
config set zset-max-listpack-entries 2
> HSET h a 1 b 1
(integer) 2
> HSET h a 1 a 2 a 3
(integer) 0
> OBJECT ENCODING h
"hashtable"
> HMSET m a 1 a 2 a 3
OK
> OBJECT ENCODING m
"hashtable"
> HSETEX x FIELDS 3 a 1 a 2 a 3
(integer) 1
> OBJECT ENCODING x
"hashtable"
> HSET e a 1
(integer) 1
> HSETEX e FXX FIELDS 3 a 1 b 2 a 3
(integer) 0
> OBJECT ENCODING e
"listpack"
> HSETEX e EXAT 1 FIELDS 3 b 1 b 2 b 3
(integer) 1
> OBJECT ENCODING e
"hashtable"
> HGETALL e
1) "a"
2) "1"
resp3:
1# "a" => "1"
> HSETEX gone EXAT 1 FIELDS 3 b 1 b 2 b 3
(integer) 1
> EXISTS gone
(integer) 0
> ZADD z 1 a
(integer) 1
> ZADD z XX 1 b 1 c
(integer) 0
> OBJECT ENCODING z
"listpack"
> ZADD z XX 1 b 1 c 1 d
(integer) 0
> OBJECT ENCODING z
"skiplist"
> ZADD n XX 1 b 1 c 1 d
(integer) 0
> EXISTS n
(integer) 0
> GEOADD g 1 1 a 1 1 a 1 1 a
(integer) 1
> OBJECT ENCODING g
"skiplist"

== a limit of zero packs nothing
config set hash-max-listpack-entries 0
config set zset-max-listpack-entries 0
config set set-max-intset-entries 0
> HSET h f v
(integer) 1
> OBJECT ENCODING h
"hashtable"
> ZADD z 1 a
(integer) 1
> OBJECT ENCODING z
"skiplist"
> SADD s 1
(integer) 1
> OBJECT ENCODING s
"listpack"
> GEOADD g 1 1 a
(integer) 1
> OBJECT ENCODING g
"skiplist"
> ZUNIONSTORE u 1 z
(integer) 1
> OBJECT ENCODING u
"skiplist"
> HINCRBY i n 1
(integer) 1
> OBJECT ENCODING i
"hashtable"

== lists are one encoding whatever their size
config set list-max-listpack-size 1
> RPUSH l a b c
(integer) 3
> OBJECT ENCODING l
"quicklist"
> LPOP l 2
1) "a"
2) "b"
> OBJECT ENCODING l
"quicklist"
> RPUSH m $times(10000,x)
(integer) 1
> OBJECT ENCODING m
"quicklist"

== nodes bounded by a number of elements are split and joined as in Redis
config set list-max-listpack-size 5
> RPUSH l 1 2 3 4 5 6
(integer) 6
> LPOP l 3
1) "1"
2) "2"
3) "3"
> LSET l -1 w
OK
> LPOP l
"4"
> OBJECT ENCODING l
"quicklist"
> LPOP l
"5"
> OBJECT ENCODING l
"listpack"
> RPUSH before 1 2 3 4 5 6 7 8
(integer) 8
> COPY before after
(integer) 1
> LINSERT before BEFORE 3 x
(integer) 9
> LTRIM before 2 3
OK
> OBJECT ENCODING before
"quicklist"
> LINSERT after AFTER 3 x
(integer) 9
> LTRIM after 3 4
OK
> OBJECT ENCODING after
"listpack"
> RPUSH joined 1 2 3 4 5 6 7 8 9 10 11
(integer) 11
> COPY joined far
(integer) 1
> LPOP joined 4
1) "1"
2) "2"
3) "3"
4) "4"
> LINSERT joined BEFORE 9 x
(integer) 8
> LTRIM joined -2 -1
OK
> OBJECT ENCODING joined
"listpack"
> LPOP far 4
1) "1"
2) "2"
3) "3"
4) "4"
> LINSERT far BEFORE 9 x
(integer) 8
> LTRIM far 0 1
OK
> OBJECT ENCODING far
"listpack"
> RPUSH next 1 2 3 4 5 6
(integer) 6
> LINSERT next AFTER 5 x
(integer) 7
> LPOP next 5
1) "1"
2) "2"
3) "3"
4) "4"
5) "5"
> OBJECT ENCODING next
"listpack"
> RPUSH removed 1 2 3 4 5 6
(integer) 6
> LREM removed 0 2
(integer) 1
> LREM removed 0 3
(integer) 1
> LREM removed 0 4
(integer) 1
> LPOP removed
"1"
> OBJECT ENCODING removed
"quicklist"

== string commands and encodings
> SET k 1
OK
> INCR k
(integer) 2
> OBJECT ENCODING k
"int"
> APPEND k 2
(integer) 2
> OBJECT ENCODING k
"raw"
> INCR k
(integer) 23
> OBJECT ENCODING k
"int"
> SET k abc
OK
> APPEND k def
(integer) 6
> OBJECT ENCODING k
"raw"
> SETRANGE k 0 x
(integer) 6
> OBJECT ENCODING k
"raw"
> COPY k l
(integer) 1
> OBJECT ENCODING l
"raw"
> SETBIT b 0 1
(integer) 0
> OBJECT ENCODING b
"raw"
> BITOP NOT n b
(integer) 1
> OBJECT ENCODING n
"raw"
> SET k "12 "
OK
> OBJECT ENCODING k
"embstr"
> INCRBYFLOAT f 1.5
"1.5"
> OBJECT ENCODING f
"embstr"
> MSET m 5 n abc
OK
> OBJECT ENCODING m
"int"
> SETEX x 100 7
OK
> OBJECT ENCODING x
"int"
> GETSET x 8
"7"
> OBJECT ENCODING x
"int"
> PFADD p a
(integer) 1
> OBJECT ENCODING p
"raw"
> SORT k STORE k2
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> RPUSH nums 3 1
(integer) 2
> SORT nums STORE sorted
(integer) 2
> OBJECT ENCODING sorted
"listpack"

== values at the limits of a listpack
> HSET h f $times(64,x)
(integer) 1
> HSET h $times(64,f) v
(integer) 1
> OBJECT ENCODING h
"listpack"
> HSET h $times(65,f) v
(integer) 1
> OBJECT ENCODING h
"hashtable"
> ZADD z 1 $times(64,x)
(integer) 1
> OBJECT ENCODING z
"listpack"
> ZADD z 2 $times(65,x)
(integer) 1
> OBJECT ENCODING z
"skiplist"
> HSET i f 1
(integer) 1
> HINCRBYFLOAT i f 0.5
"1.5"
> OBJECT ENCODING i
"listpack"
> HMSET j a 1 b $times(65,x)
OK
> OBJECT ENCODING j
"hashtable"
> HSETNX k f $times(65,x)
(integer) 1
> OBJECT ENCODING k
"hashtable"
> GEOADD g 1 1 $times(65,x)
(integer) 1
> OBJECT ENCODING g
"skiplist"
