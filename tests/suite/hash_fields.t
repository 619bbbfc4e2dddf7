# Fields of hashes that expire.

== a field gets a time and loses it
> HSET h a 1 b 2 c 3
(integer) 3
> HEXPIRE h 1000 FIELDS 2 a nothing
1) (integer) 1
2) (integer) -2
> HTTL h FIELDS 3 a b nothing
1) (integer) 1000
2) (integer) -1
3) (integer) -2
> HPEXPIREAT h 9999999999999 FIELDS 1 b
1) (integer) 1
> HPEXPIRETIME h FIELDS 3 b c nothing
1) (integer) 9999999999999
2) (integer) -1
3) (integer) -2
> HEXPIRETIME h FIELDS 3 b c nothing
1) (integer) 10000000000
2) (integer) -1
3) (integer) -2
> HPERSIST h FIELDS 4 a a c nothing
1) (integer) 1
2) (integer) -1
3) (integer) -1
4) (integer) -2
> HTTL h FIELDS 1 a
1) (integer) -1
> HGETALL h
1) "b"
2) "2"
3) "c"
4) "3"
5) "a"
6) "1"
resp3:
1# "b" => "2"
2# "c" => "3"
3# "a" => "1"

== of a key that is not there nothing expires
> HEXPIRE nokey 10 FIELDS 2 a b
1) (integer) -2
2) (integer) -2
> HTTL nokey FIELDS 2 a b
1) (integer) -2
2) (integer) -2
> HPERSIST nokey FIELDS 1 a
1) (integer) -2
> HPEXPIRETIME nokey FIELDS 1 a
1) (integer) -2
> HGETDEL nokey FIELDS 2 a b
1) (nil)
2) (nil)
> HGETEX nokey FIELDS 2 a b
1) (nil)
2) (nil)
> HGETEX nokey EX 10 FIELDS 1 a
1) (nil)
> EXISTS nokey
(integer) 0

== other types are refused before the arguments are looked at
> SET s 1
OK
> HEXPIRE s x FIELDS 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HEXPIRE s 10 FIELDS 0 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HTTL s FIELDS 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HTTL s x 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HPERSIST s FIELDS 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HPERSIST s x 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HGETEX s FIELDS 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HGETEX s x 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HSETEX s FIELDS 1 a b
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HSETEX s x 1 a b
(error) ERR unknown argument: x
> HGETDEL s FIELDS 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HGETDEL s x 1 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== arguments of HEXPIRE and its kin
> HSET h a 1
(integer) 1
> HEXPIRE h
(error) ERR wrong number of arguments for 'hexpire' command
> HEXPIRE h 10 FIELDS 1
(error) ERR wrong number of arguments for 'hexpire' command
> HEXPIRE h x FIELDS 1 a
(error) ERR value is not an integer or out of range
> HEXPIRE h -1 FIELDS 1 a
(error) ERR invalid expire time, must be >= 0
> HEXPIRE h 10 x 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HEXPIRE h 10 NX a 1 b
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HEXPIRE h 10 NX XX FIELDS 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HEXPIRE h 10 FIELDS 0 a
(error) ERR Parameter `numFields` should be greater than 0
> HEXPIRE h 10 FIELDS x a
(error) ERR Parameter `numFields` should be greater than 0
> HEXPIRE h 10 FIELDS -1 a
(error) ERR Parameter `numFields` should be greater than 0
> HEXPIRE h 10 FIELDS 2 a
(error) ERR The `numfields` parameter must match the number of arguments
> HEXPIRE h 10 FIELDS 1 a b
(error) ERR The `numfields` parameter must match the number of arguments
> HEXPIRE h 10 fields 1 a nx
(error) ERR The `numfields` parameter must match the number of arguments
> HEXPIRE h 9223372036854775807 FIELDS 1 a
(error) ERR invalid expire time in 'hexpire' command
> HEXPIRE h 9223372036854775808 FIELDS 1 a
(error) ERR value is not an integer or out of range
> HEXPIRE h 70368744178 FIELDS 1 a
(error) ERR invalid expire time in 'hexpire' command
> HEXPIREAT h 70368744177 FIELDS 1 a
1) (integer) 1
> HEXPIREAT h 70368744178 FIELDS 1 a
(error) ERR invalid expire time in 'hexpireat' command
> HPEXPIREAT h 70368744177661 FIELDS 1 a
1) (integer) 1
> HPEXPIREAT h 70368744177662 FIELDS 1 a
1) (integer) 1
> HPEXPIREAT h 70368744177663 FIELDS 1 a
1) (integer) 1
> HPEXPIREAT h 70368744177664 FIELDS 1 a
(error) ERR invalid expire time in 'hpexpireat' command
> HPEXPIREAT h 70368744177665 FIELDS 1 a
(error) ERR invalid expire time in 'hpexpireat' command
> HPEXPIRE h 70368744177664 FIELDS 1 a
(error) ERR invalid expire time in 'hpexpire' command
> HPEXPIREAT h -9223372036854775808 FIELDS 1 a
(error) ERR invalid expire time, must be >= 0
> HEXPIRE h x y z a
(error) ERR value is not an integer or out of range
> HTTL h
(error) ERR wrong number of arguments for 'httl' command
> HTTL h FIELDS 1
(error) ERR wrong number of arguments for 'httl' command
> HTTL h x 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HTTL h FIELDS 0 a
(error) ERR Number of fields must be a positive integer
> HTTL h FIELDS x a
(error) ERR Number of fields must be a positive integer
> HTTL h FIELDS 2 a
(error) ERR The `numfields` parameter must match the number of arguments
> HTTL h FIELDS 1 a b
(error) ERR The `numfields` parameter must match the number of arguments
> HPERSIST h x 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HPERSIST h FIELDS 0 a
(error) ERR Number of fields must be a positive integer
> HPERSIST h FIELDS x a
(error) ERR Number of fields must be a positive integer
> HPERSIST h FIELDS 2 a
(error) ERR The `numfields` parameter must match the number of arguments
> HPERSIST h FIELDS 1 a b
(error) ERR The `numfields` parameter must match the number of arguments
> HPEXPIRETIME h FIELDS 1 a
1) (integer) 70368744177663

== conditions
> HSET h a 1
(integer) 1
> HEXPIREAT h 5000000000 XX FIELDS 1 a
1) (integer) 0
> HEXPIREAT h 5000000000 GT FIELDS 1 a
1) (integer) 0
> HEXPIREAT h 5000000000 NX FIELDS 1 a
1) (integer) 1
> HEXPIREAT h 5000000000 NX FIELDS 1 a
1) (integer) 0
> HEXPIREAT h 5000000000 GT FIELDS 1 a
1) (integer) 0
> HEXPIREAT h 5000000000 LT FIELDS 1 a
1) (integer) 0
> HEXPIREAT h 5000000001 LT FIELDS 1 a
1) (integer) 0
> HEXPIREAT h 5000000001 GT FIELDS 1 a
1) (integer) 1
> HEXPIREAT h 4000000000 LT FIELDS 1 a
1) (integer) 1
> HEXPIREAT h 4500000000 XX FIELDS 1 a
1) (integer) 1
> HPERSIST h FIELDS 1 a
1) (integer) 1
> HEXPIREAT h 4000000000 LT FIELDS 1 a
1) (integer) 1
> HEXPIREAT h 1 GT FIELDS 1 a
1) (integer) 0
> HEXPIREAT h 1 NX FIELDS 1 a
1) (integer) 0
> HEXPIREAT h 3000000000 FIELDS 3 a a b
1) (integer) 1
2) (integer) 1
3) (integer) -2
> HEXPIRETIME h FIELDS 1 a
1) (integer) 3000000000

== a time that is over removes the field, and the last one the key
> HSET h a 1 b 2
(integer) 2
> HEXPIREAT h 1 FIELDS 2 a nothing
1) (integer) 2
2) (integer) -2
> HGETALL h
1) "b"
2) "2"
resp3:
1# "b" => "2"
> HPEXPIRE h 0 FIELDS 1 b
1) (integer) 2
> EXISTS h
(integer) 0
> HSET h a 1
(integer) 1
> HEXPIRE h 0 FIELDS 2 a a
1) (integer) 2
2) (integer) -2
> EXISTS h
(integer) 0

== values lose their times when they are set, and keep them when they are counted up
> HSET h a 1 b 1 c 1.5
(integer) 3
> HEXPIREAT h 5000000000 FIELDS 3 a b c
1) (integer) 1
2) (integer) 1
3) (integer) 1
> HSET h a 2
(integer) 0
> HINCRBY h b 5
(integer) 6
> HINCRBYFLOAT h c 1.5
"3"
> HEXPIRETIME h FIELDS 3 a b c
1) (integer) -1
2) (integer) 5000000000
3) (integer) 5000000000
> HMSET h b 7
OK
> HSETNX h c 7
(integer) 0
> HEXPIRETIME h FIELDS 3 a b c
1) (integer) -1
2) (integer) -1
3) (integer) 5000000000
> HGETALL h
1) "c"
2) "3"
3) "a"
4) "2"
5) "b"
6) "7"
resp3:
1# "c" => "3"
2# "a" => "2"
3# "b" => "7"

== what has expired is not there
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> HSET h a 1 b 2 c 3 d 4 e 5 f 6
(integer) 6
> HPEXPIRE h 1 FIELDS 6 a b c d e f
1) (integer) 1
2) (integer) 1
3) (integer) 1
4) (integer) 1
5) (integer) 1
6) (integer) 1
> HSET h stays 1
(integer) 1
sleep 10
> HLEN h
(integer) 7
> HGETALL h
1) "stays"
2) "1"
resp3:
1# "stays" => "1"
> HKEYS h
1) "stays"
> HVALS h
1) "1"
> HSCAN h 0
1) "0"
2) 1) "stays"
   2) "1"
> HRANDFIELD h 10
1) "stays"
> HRANDFIELD h
"stays"
> [count] HRANDFIELD h -5
(integer) 5
> HTTL h FIELDS 1 a
1) (integer) -2
> HPERSIST h FIELDS 1 a
1) (integer) -2
> HEXPIRE h 10 FIELDS 1 a
1) (integer) -2
> HLEN h
(integer) 1
> HGET h a
(nil)
> HLEN h
(integer) 1
> HMGET h b stays c
1) (nil)
2) "1"
3) (nil)
> HLEN h
(integer) 1
> HEXISTS h d
(integer) 0
> HLEN h
(integer) 1
> HSTRLEN h e
(integer) 0
> HLEN h
(integer) 1
> HDEL h f f
(integer) 0
> HLEN h
(integer) 1
> DEBUG SET-ACTIVE-EXPIRE 1
OK

== what has expired is overwritten as if it were new
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> HSET h a 1 b 2 c 3 d 4
(integer) 4
> HPEXPIRE h 1 FIELDS 4 a b c d
1) (integer) 1
2) (integer) 1
3) (integer) 1
4) (integer) 1
sleep 10
> HSET h a 2
(integer) 0
> HSETNX h b 3
(integer) 1
> HINCRBY h c 10
(integer) 10
> HINCRBYFLOAT h d 0.5
"0.5"
> HTTL h FIELDS 4 a b c d
1) (integer) -1
2) (integer) -1
3) (integer) -1
4) (integer) -1
> HGETALL h
1) "a"
2) "2"
3) "b"
4) "3"
5) "c"
6) "10"
7) "d"
8) "0.5"
resp3:
1# "a" => "2"
2# "b" => "3"
3# "c" => "10"
4# "d" => "0.5"
> DEBUG SET-ACTIVE-EXPIRE 1
OK

== the key goes with its last field
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> HSET h a 1
(integer) 1
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
sleep 10
> EXISTS h
(integer) 1
> HGETALL h
(empty array)
resp3:
(empty hash)
> HGET h a
(nil)
> EXISTS h
(integer) 0
> HSET h a 1
(integer) 1
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
sleep 10
> HRANDFIELD h
(nil)
> HRANDFIELD h 5
(empty array)
> HSCAN h 0
1) "0"
2) (empty array)
> HEXISTS h a
(integer) 0
> EXISTS h
(integer) 0
> HSET h a 1
(integer) 1
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
sleep 10
> HDEL h a
(integer) 1
> EXISTS h
(integer) 0
> DEBUG SET-ACTIVE-EXPIRE 1
OK

== SORT does not see what has expired
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> RPUSH l 1 2
(integer) 2
> HSET h1 f 9 g x
(integer) 2
> HSET h2 f 8 g y
(integer) 2
> HPEXPIRE h1 1 FIELDS 2 f g
1) (integer) 1
2) (integer) 1
sleep 10
> SORT l BY h*->f GET h*->g
1) (nil)
2) "y"
> EXISTS h1
(integer) 0
> DEBUG SET-ACTIVE-EXPIRE 1
OK

== fields expire without being looked at
> HSET h a 1 b 2
(integer) 2
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
> HSET other a 1
(integer) 1
> HPEXPIRE other 1 FIELDS 1 a
1) (integer) 1
sleep 1000
> HLEN h
(integer) 1
> EXISTS other
(integer) 0
> CONFIG RESETSTAT
OK
> HSET h a 1
(integer) 1
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
sleep 1000
> [field=expired_subkeys] INFO stats
"1"
> [field=expired_keys] INFO stats
"0"

== fields that a command gives a time that is over are counted as expired
> CONFIG RESETSTAT
OK
> HSETEX h EXAT 1 FIELDS 2 a 1 b 2
(integer) 1
> [field=expired_subkeys] INFO stats
"2"
> HSET h a 1 b 2
(integer) 2
> HPEXPIRE h 0 FIELDS 2 a nofield
1) (integer) 2
2) (integer) -2
> HGETEX h EXAT 1 FIELDS 1 b
1) "2"
> [field=expired_subkeys] INFO stats
"4"

== hashes with times are counted
> HSET h a 1 b 2
(integer) 2
> [field=db0] INFO keyspace
"keys=1,expires=0,avg_ttl=0,subexpiry=0"
> HEXPIRE h 1000 FIELDS 2 a b
1) (integer) 1
2) (integer) 1
> HSET other a 1
(integer) 1
> [field=db0] INFO keyspace
"keys=2,expires=0,avg_ttl=0,subexpiry=1"
> HDEL h a b
(integer) 2
> [field=db0] INFO keyspace
"keys=1,expires=0,avg_ttl=0,subexpiry=0"

== encodings
> HSET h a 1
(integer) 1
> OBJECT ENCODING h
"listpack"
> HEXPIRE h 1000 FIELDS 1 nothing
1) (integer) -2
> OBJECT ENCODING h
"listpackex"
> HEXPIRE h 1000 XX FIELDS 1 a
1) (integer) 0
> OBJECT ENCODING h
"listpackex"
> HEXPIRE h 1000 FIELDS 1 a
1) (integer) 1
> OBJECT ENCODING h
"listpackex"
> HPERSIST h FIELDS 1 a
1) (integer) 1
> OBJECT ENCODING h
"listpackex"
> HSET h b xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
(integer) 1
> OBJECT ENCODING h
"hashtable"
> HEXPIRE h 1000 FIELDS 1 a
1) (integer) 1
> OBJECT ENCODING h
"hashtable"

== the number of fields decides for hashes with times too
config set hash-max-listpack-entries 3
> HSET h a 1 b 2 c 3
(integer) 3
> HEXPIREAT h 5000000000 FIELDS 2 a b
1) (integer) 1
2) (integer) 1
> OBJECT ENCODING h
"listpackex"
> HSET h d 4
(integer) 1
> OBJECT ENCODING h
"hashtable"
> HEXPIRETIME h FIELDS 4 a b c d
1) (integer) 5000000000
2) (integer) 5000000000
3) (integer) -1
4) (integer) -1

== what expires first comes first
> HSET h a 1 b 2 c 3 d 4 e 5
(integer) 5
> HEXPIREAT h 5000000003 FIELDS 1 d
1) (integer) 1
> HEXPIREAT h 5000000001 FIELDS 1 c
1) (integer) 1
> HEXPIREAT h 5000000003 FIELDS 1 a
1) (integer) 1
> HEXPIREAT h 5000000002 FIELDS 1 e
1) (integer) 1
> HKEYS h
1) "c"
2) "e"
3) "a"
4) "d"
5) "b"
> HSET h c 9
(integer) 0
> HKEYS h
1) "e"
2) "a"
3) "d"
4) "b"
5) "c"
> HPERSIST h FIELDS 1 e
1) (integer) 1
> HKEYS h
1) "a"
2) "d"
3) "b"
4) "c"
5) "e"
> HINCRBY h d 1
(integer) 5
> HEXPIREAT h 5000000003 FIELDS 1 d
1) (integer) 1
> HKEYS h
1) "d"
2) "a"
3) "b"
4) "c"
5) "e"
> HEXPIREAT h 5000000001 FIELDS 1 a
1) (integer) 1
> HKEYS h
1) "a"
2) "d"
3) "b"
4) "c"
5) "e"
> HSET h f 1
(integer) 1
> HKEYS h
1) "a"
2) "d"
3) "b"
4) "c"
5) "e"
6) "f"

== copies and renamed hashes have the times
> HSET h a 1 b 2
(integer) 2
> HEXPIREAT h 5000000000 FIELDS 1 a
1) (integer) 1
> COPY h other
(integer) 1
> RENAME h third
OK
> HEXPIRETIME other FIELDS 2 a b
1) (integer) 5000000000
2) (integer) -1
> HEXPIRETIME third FIELDS 2 a b
1) (integer) 5000000000
2) (integer) -1
> MOVE third 1
(integer) 1
> SELECT 1
OK
> HEXPIRETIME third FIELDS 2 a b
1) (integer) 5000000000
2) (integer) -1
> OBJECT ENCODING third
"listpackex"

== payloads have the times
config set rdbcompression no
> HSET h a 1 b 2 c 3
(integer) 3
> HEXPIREAT h 5000000000 FIELDS 1 c
1) (integer) 1
> HPEXPIREAT h 5000000000001 FIELDS 1 a
1) (integer) 1
> DUMP h
"\x19\x00P9'\x8c\x04\x00\x00,,\x00\x00\x00\t\x00\x81c\x02\x03\x01\xf4\x00P9'\x8c\x04\x00\x00\t\x81a\x02\x01\x01\xf4\x01P9'\x8c\x04\x00\x00\t\x81b\x02\x02\x01\x00\x01\xff\x0c\x008\xf4\x84\x94\xc8\x04\xc9\xae"
> OBJECT ENCODING h
"listpackex"

== a payload whose fields expire is restored
> HSET h a 1 b 2 c 3
(integer) 3
> HEXPIREAT h 5000000000 FIELDS 2 a c
1) (integer) 1
2) (integer) 1
> [keep=packed] DUMP h
(kept)
> RESTORE other 0 $(packed)
OK
> HEXPIRETIME other FIELDS 3 a b c
1) (integer) 5000000000
2) (integer) -1
3) (integer) 5000000000
> OBJECT ENCODING other
"listpackex"
> HSET h d xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
(integer) 1
> [keep=table] DUMP h
(kept)
> RESTORE other 0 $(table) REPLACE
OK
> HEXPIRETIME other FIELDS 4 a b c d
1) (integer) 5000000000
2) (integer) -1
3) (integer) 5000000000
4) (integer) -1
> OBJECT ENCODING other
"hashtable"

== fields of a payload that have expired
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> HSET h a 1 b 2
(integer) 2
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
> [keep=packed] DUMP h
(kept)
> HSET h d xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
(integer) 1
> [keep=table] DUMP h
(kept)
> HSET all a 1
(integer) 1
> HPEXPIRE all 1 FIELDS 1 a
1) (integer) 1
> [keep=all] DUMP all
(kept)
> DEL h all
(integer) 2
sleep 10
> RESTORE packed 0 $(packed)
OK
> HLEN packed
(integer) 2
> HGETALL packed
1) "b"
2) "2"
resp3:
1# "b" => "2"
> OBJECT ENCODING packed
"listpackex"
> RESTORE table 0 $(table)
OK
> HLEN table
(integer) 3
> HGET table b
"2"
> RESTORE all 0 $(all)
OK
> EXISTS all
(integer) 1
> HLEN all
(integer) 1
> HGETALL all
(empty array)
resp3:
(empty hash)
> DEBUG SET-ACTIVE-EXPIRE 1
OK

== reading and removing fields at once
> HSET h a 1 b 2 c 3
(integer) 3
> HEXPIRE h 1000 FIELDS 1 a
1) (integer) 1
> HGETDEL h FIELDS 3 a a nothing
1) "1"
2) (nil)
3) (nil)
> HGETALL h
1) "b"
2) "2"
3) "c"
4) "3"
resp3:
1# "b" => "2"
2# "c" => "3"
> HGETDEL h FIELDS 2 b c
1) "2"
2) "3"
> EXISTS h
(integer) 0
> HSET h a 1
(integer) 1
> HGETDEL h
(error) ERR wrong number of arguments for 'hgetdel' command
> HGETDEL h FIELDS 1
(error) ERR wrong number of arguments for 'hgetdel' command
> HGETDEL h x 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HGETDEL h FIELDS 0 a
(error) ERR Number of fields must be a positive integer
> HGETDEL h FIELDS x a
(error) ERR Number of fields must be a positive integer
> HGETDEL h FIELDS 2 a
(error) ERR The `numfields` parameter must match the number of arguments
> HGETDEL h FIELDS 1 a b
(error) ERR The `numfields` parameter must match the number of arguments
> HLEN h
(integer) 1

== reading fields and setting their times at once
> HSET h a 1 b 2 c 3
(integer) 3
> HGETEX h FIELDS 2 a nothing
1) "1"
2) (nil)
> HTTL h FIELDS 1 a
1) (integer) -1
> HGETEX h EXAT 5000000000 FIELDS 3 a b nothing
1) "1"
2) "2"
3) (nil)
> HEXPIRETIME h FIELDS 3 a b c
1) (integer) 5000000000
2) (integer) 5000000000
3) (integer) -1
> HGETEX h PXAT 5000000000001 FIELDS 1 a
1) "1"
> HPEXPIRETIME h FIELDS 1 a
1) (integer) 5000000000001
> HGETEX h EX 1000 FIELDS 1 a
1) "1"
> HTTL h FIELDS 1 a
1) (integer) 1000
> HGETEX h PX 1000000 FIELDS 1 a
1) "1"
> HTTL h FIELDS 1 a
1) (integer) 1000
> HGETEX h PERSIST FIELDS 2 a c
1) "1"
2) "3"
> HEXPIRETIME h FIELDS 3 a b c
1) (integer) -1
2) (integer) 5000000000
3) (integer) -1
> HGETEX h EXAT 1 FIELDS 2 a b
1) "1"
2) "2"
> HGETALL h
1) "c"
2) "3"
resp3:
1# "c" => "3"
> HGETEX h PXAT 1 FIELDS 1 c
1) "3"
> EXISTS h
(integer) 0
> HSET h a 1
(integer) 1
> HGETEX h
(error) ERR wrong number of arguments for 'hgetex' command
> HGETEX h FIELDS 1
(error) ERR wrong number of arguments for 'hgetex' command
> HGETEX h a b c
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h EX
(error) ERR wrong number of arguments for 'hgetex' command
> HGETEX h EX 10 FIELDS
(error) ERR wrong number of arguments for 'hgetex' command
> HGETEX h EX 10 FIELDS 1
(error) ERR The `numfields` parameter must match the number of arguments
> HGETEX h EX FIELDS 1 a
(error) ERR value is not an integer or out of range
> HGETEX h EX x FIELDS 1 a
(error) ERR value is not an integer or out of range
> HGETEX h EX 0 FIELDS 1 a
1) "1"
> HGETEX h EX -1 FIELDS 1 a
(error) ERR invalid expire time, must be >= 0
> HGETEX h EX 9223372036854775807 FIELDS 1 a
(error) ERR invalid expire time in 'hgetex' command
> HGETEX h EX 70368744177 FIELDS 1 a
(error) ERR invalid expire time in 'hgetex' command
> HGETEX h PXAT 70368744177664 FIELDS 1 a
(error) ERR invalid expire time in 'hgetex' command
> HGETEX h PXAT 70368744177663 FIELDS 1 a
1) (nil)
> HGETEX h EX 10 PX 10 FIELDS 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h EX 10 PERSIST FIELDS 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h PERSIST PERSIST FIELDS 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h KEEPTTL FIELDS 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h FNX FIELDS 1 a
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HGETEX h EX 10 FIELDS 0 a
(error) ERR Number of fields must be a positive integer
> HGETEX h EX 10 FIELDS x a
(error) ERR Number of fields must be a positive integer
> HGETEX h EX 10 FIELDS 2 a
(error) ERR The `numfields` parameter must match the number of arguments
> HGETEX h EX 10 FIELDS 1 a b
(error) ERR The `numfields` parameter must match the number of arguments
> HGETEX h FIELDS 1 a EX 10
(error) ERR The `numfields` parameter must match the number of arguments
> HGETEX h FIELDS 1 a FIELDS 1 a
(error) ERR The `numfields` parameter must match the number of arguments
> HGETEX h EX 10 EXAT a b
(error) ERR Mandatory argument FIELDS is missing or not at the right position
> HLEN h
(integer) 0

== setting fields and their times at once
> HSETEX h EXAT 5000000000 FIELDS 2 a 1 b 2
(integer) 1
> HEXPIRETIME h FIELDS 2 a b
1) (integer) 5000000000
2) (integer) 5000000000
> HSETEX h KEEPTTL FIELDS 1 a 3
(integer) 1
> HSETEX h FIELDS 1 b 4
(integer) 1
> HEXPIRETIME h FIELDS 2 a b
1) (integer) 5000000000
2) (integer) -1
> HGETALL h
1) "a"
2) "3"
3) "b"
4) "4"
resp3:
1# "a" => "3"
2# "b" => "4"
> HSETEX h FNX FIELDS 2 b 5 c 6
(integer) 0
> HSETEX h FXX FIELDS 2 b 5 c 6
(integer) 0
> HSETEX h FXX PX 1000000 FIELDS 2 a 5 b 6
(integer) 1
> HTTL h FIELDS 2 a b
1) (integer) 1000
2) (integer) 1000
> HSETEX h FNX EX 2000 FIELDS 1 c 6
(integer) 1
> HTTL h FIELDS 1 c
1) (integer) 2000
> HSETEX nokey FXX FIELDS 1 a 1
(integer) 0
> EXISTS nokey
(integer) 0
> HSETEX h EXAT 1 FIELDS 2 a 1 d 1
(integer) 1
> HGETALL h
1) "b"
2) "6"
3) "c"
4) "6"
resp3:
1# "b" => "6"
2# "c" => "6"
> HSETEX new PXAT 1 FIELDS 1 a 1
(integer) 1
> EXISTS new
(integer) 0
> HSETEX h FIELDS 3 a 1 a 2 a 3
(integer) 1
> HGET h a
"3"
> HSETEX h
(error) ERR wrong number of arguments for 'hsetex' command
> HSETEX h FIELDS 1
(error) ERR wrong number of arguments for 'hsetex' command
> HSETEX h FIELDS 1 a
(error) ERR wrong number of arguments for 'hsetex' command
> HSETEX h FIELDS 1 a b c
(error) ERR wrong number of arguments for 'hsetex' command
> HSETEX h a b c d
(error) ERR unknown argument: a
> HSETEX h EX 10 FIELDS 0 a b
(error) ERR invalid number of fields
> HSETEX h EX 10 FIELDS x a b
(error) ERR invalid number of fields
> HSETEX h EX 10 FIELDS 2147483647 a b
(error) ERR wrong number of arguments for 'hsetex' command
> HSETEX h EX 10 FIELDS 2147483648 a b
(error) ERR invalid number of fields
> HSETEX h EX 10 FIELDS 2 a b
(error) ERR wrong number of arguments for 'hsetex' command
> HSETEX h EX 10 FIELDS 1 a b c d
(error) ERR wrong number of arguments for 'hsetex' command
> HSETEX h EX x FIELDS 1 a b
(error) ERR value is not an integer or out of range
> HSETEX h EX 0 FIELDS 1 a b
(integer) 1
> HSETEX h EX -1 FIELDS 1 a b
(error) ERR invalid expire time, must be >= 0
> HSETEX h EX FIELDS 1 a b
(error) ERR value is not an integer or out of range
> HSETEX h PXAT 70368744177664 FIELDS 1 a b
(error) ERR invalid expire time in 'hsetex' command
> HSETEX h EX 70368744177 FIELDS 1 a b
(error) ERR invalid expire time in 'hsetex' command
> HSETEX h FNX FXX FIELDS 1 a b
(error) ERR Only one of FXX or FNX arguments can be specified
> HSETEX h FXX FXX FIELDS 1 a b
(error) ERR Only one of FXX or FNX arguments can be specified
> HSETEX h EX 10 PX 10 FIELDS 1 a b
(error) ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
> HSETEX h EX 10 KEEPTTL FIELDS 1 a b
(error) ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
> HSETEX h PERSIST FIELDS 1 a b
(error) ERR unknown argument: PERSIST
> HSETEX h NX FIELDS 1 a b
(error) ERR unknown argument: NX
> HSETEX h FIELDS 1 a b EX 10
(error) ERR wrong number of arguments for 'hsetex' command
> HSETEX h KEEPTTL FNX FIELDS 1 k v
(integer) 1
> HTTL h FIELDS 1 k
1) (integer) -1

== what has expired is not there for HSETEX, HGETEX and HGETDEL either
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> HSET h a 1 b 2 c 3 d 4 e 5
(integer) 5
> HPEXPIRE h 1 FIELDS 5 a b c d e
1) (integer) 1
2) (integer) 1
3) (integer) 1
4) (integer) 1
5) (integer) 1
sleep 10
> HSETEX h FXX FIELDS 1 a 2
(integer) 0
> HLEN h
(integer) 4
> HSETEX h FNX FIELDS 1 b 3
(integer) 1
> HGETEX h EX 100 FIELDS 1 c
1) (nil)
> HGETDEL h FIELDS 1 d
1) (nil)
> HSETEX h KEEPTTL FIELDS 1 e 2
(integer) 1
> HGETALL h
1) "b"
2) "3"
resp3:
1# "b" => "3"
> HLEN h
(integer) 2
> DEBUG SET-ACTIVE-EXPIRE 1
OK

== events
config set notify-keyspace-events KEA
> DEBUG SET-ACTIVE-EXPIRE 0
OK
2> PSUBSCRIBE __keyevent*
(push)
1) "psubscribe"
2) "__keyevent*"
3) (integer) 1
> HSET h a 1 b 2 c 3 d 4
(integer) 4
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hset"
4) "h"
> HEXPIRE h 1000 FIELDS 2 a nothing
1) (integer) 1
2) (integer) -2
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpire"
4) "h"
> HPERSIST h FIELDS 1 a
1) (integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hpersist"
4) "h"
> HPERSIST h FIELDS 1 a
1) (integer) -1
> HEXPIREAT h 1 FIELDS 1 a
1) (integer) 2
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hdel"
4) "h"
> HGETEX h EX 100 FIELDS 1 b
1) "2"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpire"
4) "h"
> HGETEX h PERSIST FIELDS 1 b
1) "2"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hpersist"
4) "h"
> HGETEX h PXAT 1 FIELDS 1 b
1) "2"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hdel"
4) "h"
> HGETDEL h FIELDS 1 c
1) "3"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hdel"
4) "h"
> HSETEX h EX 100 FIELDS 1 e 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hset"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpire"
4) "h"
> HSETEX h PXAT 1 FIELDS 1 e 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hset"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hdel"
4) "h"
> HPEXPIRE h 1 FIELDS 1 d
1) (integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpire"
4) "h"
sleep 10
> HGET h d
(nil)
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpired"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:del"
4) "h"
> HSET h a 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hset"
4) "h"
> HPEXPIRE h 0 FIELDS 1 a
1) (integer) 2
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hdel"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:del"
4) "h"
> HSET h a 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hset"
4) "h"
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpire"
4) "h"
sleep 10
> HINCRBY h a 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpired"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:del"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hincrby"
4) "h"
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpire"
4) "h"
sleep 10
> HSETNX h a 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpired"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:del"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hset"
4) "h"
> DEBUG SET-ACTIVE-EXPIRE 1
OK
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpire"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:hexpired"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent*"
3) "__keyevent@0__:del"
4) "h"

== a watched key changes when its field expires
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> HSET h a 1 b 2
(integer) 2
> HPEXPIRE h 1 FIELDS 1 a
1) (integer) 1
> WATCH h
OK
sleep 10
2> HGET h a
(nil)
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)
> DEBUG SET-ACTIVE-EXPIRE 1
OK

== scripts see fields as clients do
> HSET h a 1
(integer) 1
> EVAL "redis.call('HEXPIRE', KEYS[1], 1000, 'FIELDS', 1, 'a'); return redis.call('HTTL', KEYS[1], 'FIELDS', 1, 'a')" 1 h
1) (integer) 1000
> EVAL "return redis.call('HGETDEL', KEYS[1], 'FIELDS', 1, 'a')" 1 h
1) "1"
> EXISTS h
(integer) 0

== digests tell whether a field expires
> HSET h a 1
(integer) 1
> HSET other a 1
(integer) 1
> HEXPIREAT h 5000000000 FIELDS 1 a
1) (integer) 1
> DEBUG DIGEST-VALUE h
1) ce98eed535a9bd6c62403cf0d79da44325cdc96f
> DEBUG DIGEST-VALUE other
1) 626a7b57a269f8f179a44902458ecb2f5920d35d

== hashes with times are saved and loaded
> HSET packed a 1 b 2
(integer) 2
> HEXPIREAT packed 5000000000 FIELDS 1 a
1) (integer) 1
> HSET table a 1 b xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
(integer) 2
> HEXPIREAT table 5000000000 FIELDS 1 a
1) (integer) 1
> DEBUG RELOAD
OK
> HEXPIRETIME packed FIELDS 2 a b
1) (integer) 5000000000
2) (integer) -1
> HEXPIRETIME table FIELDS 2 a b
1) (integer) 5000000000
2) (integer) -1
> OBJECT ENCODING packed
"listpackex"
> OBJECT ENCODING table
"hashtable"
> [field=db0] INFO keyspace
"keys=2,expires=0,avg_ttl=0,subexpiry=2"

== fields whose time is over when they are set count no longer than until the next one
> CONFIG SET hash-max-listpack-entries 4
OK
> HSET h a 1 b 2 c 3
(integer) 3
> HSETEX h EXAT 1 FIELDS 3 d 4 e 5 a 6
(integer) 1
> OBJECT ENCODING h
"listpackex"
> HMGET h a b c d e
1) (nil)
2) "2"
3) "3"
4) (nil)
5) (nil)
> HSETEX h EXAT 1 FIELDS 2 b 1 c 2
(integer) 1
> EXISTS h
(integer) 0
> HSET h a 1 b 2 c 3 d 4
(integer) 4
> HSETEX h EXAT 1 FIELDS 1 e 5
(integer) 1
> OBJECT ENCODING h
"hashtable"
> CONFIG SET hash-max-listpack-entries 512
OK

== a command that finds several fields expired causes one event
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> HSET h a 1 b 2 c 3 d 4 e 5 f 6 g 7 h 8
(integer) 8
> HPEXPIRE h 1 FIELDS 7 a b c d e f g
1) (integer) 1
2) (integer) 1
3) (integer) 1
4) (integer) 1
5) (integer) 1
6) (integer) 1
7) (integer) 1
sleep 20
> CONFIG SET notify-keyspace-events Eh
OK
2> PSUBSCRIBE __keyevent@0__:*
(push)
1) "psubscribe"
2) "__keyevent@0__:*"
3) (integer) 1
> HMGET h a b
1) (nil)
2) (nil)
> HSET h x 1
(integer) 1
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hexpired"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hset"
4) "h"
> HGETDEL h FIELDS 2 c d
1) (nil)
2) (nil)
> HSET h x 1
(integer) 0
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hexpired"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hset"
4) "h"
> HGETEX h PERSIST FIELDS 2 e f
1) (nil)
2) (nil)
> HSET h x 1
(integer) 0
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hexpired"
4) "h"
2<
(push)
1) "pmessage"
2) "__keyevent@0__:*"
3) "__keyevent@0__:hset"
4) "h"
> HSETEX fxx PX 1 FIELDS 2 a 1 b 2
(integer) 1
> HSETEX fnx PX 1 FIELDS 2 a 1 b 2
(integer) 1
> HSETEX kept PX 1 FIELDS 1 a 1
(integer) 1
> HSET kept b 1
(integer) 1
sleep 10
> HSETEX kept FXX FIELDS 2 a 2 b 2
(integer) 0
> HGETALL kept
1) "b"
2) "1"
resp3:
1# "b" => "1"
> HSETEX fxx FXX FIELDS 2 a 3 b 4
(integer) 0
> HSETEX fxx FXX FIELDS 1 b 4
(integer) 0
> EXISTS fxx
(integer) 0
> HSETEX fnx FNX FIELDS 2 a 3 b 4
(integer) 1
> HGETALL fnx
1) "a"
2) "3"
3) "b"
4) "4"
resp3:
1# "a" => "3"
2# "b" => "4"
> DEBUG SET-ACTIVE-EXPIRE 1
OK
