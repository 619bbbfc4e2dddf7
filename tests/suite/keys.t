# Keys of any type: DEL, RENAME, COPY, MOVE, KEYS, SCAN, OBJECT, SORT.
# Expiry is in expire.t, DUMP and RESTORE in dump.t.

== DEL, UNLINK, EXISTS and TOUCH count keys
> MSET a 1 b 2 c 3 d 4 e 5
OK
> EXISTS a
(integer) 1
> EXISTS a b nokey
(integer) 2
> EXISTS a a a nokey
(integer) 3
> TOUCH a b nokey
(integer) 2
> TOUCH nokey
(integer) 0
> TOUCH a a
(integer) 2
> DEL a b nokey
(integer) 2
> DEL a
(integer) 0
> UNLINK c nokey d d
(integer) 2
> EXISTS a b c d e
(integer) 1
> DEL e e
(integer) 1
> DBSIZE
(integer) 0
> DEL
(error) ERR wrong number of arguments for 'del' command
> UNLINK
(error) ERR wrong number of arguments for 'unlink' command
> EXISTS
(error) ERR wrong number of arguments for 'exists' command
> TOUCH
(error) ERR wrong number of arguments for 'touch' command

== TYPE names every type
> SET string v
OK
> RPUSH list a
(integer) 1
> SADD set a
(integer) 1
> ZADD zset 1 a
(integer) 1
> HSET hash f v
(integer) 1
> PFADD hll a
(integer) 1
> SETBIT bits 1 1
(integer) 0
> GEOADD geo 1 1 a
(integer) 1
> TYPE string
string
> TYPE list
list
> TYPE set
set
> TYPE zset
zset
> TYPE hash
hash
> TYPE hll
string
> TYPE bits
string
> TYPE geo
zset
> TYPE nokey
none
> TYPE
(error) ERR wrong number of arguments for 'type' command
> TYPE a b
(error) ERR wrong number of arguments for 'type' command

== RENAME
> SET k v EXAT 9999999999
OK
> RENAME k n
OK
> GET n
"v"
> EXPIRETIME n
(integer) 9999999999
> EXISTS k
(integer) 0
> RPUSH l a b
(integer) 2
> RENAME n l
OK
> TYPE l
string
> GET l
"v"
> EXPIRETIME l
(integer) 9999999999
> RENAME l l
OK
> GET l
"v"
> RENAME nokey x
(error) ERR no such key
> RENAME nokey nokey
(error) ERR no such key
> RENAME a
(error) ERR wrong number of arguments for 'rename' command
> RENAME a b c
(error) ERR wrong number of arguments for 'rename' command
> SET plain w
OK
> RENAME plain l
OK
> TTL l
(integer) -1

== RENAMENX
> SET a 1 EXAT 9999999999
OK
> SET b 2
OK
> RENAMENX a b
(integer) 0
> RENAMENX a c
(integer) 1
> GET c
"1"
> EXPIRETIME c
(integer) 9999999999
> RENAMENX b b
(integer) 0
> RENAMENX nokey x
(error) ERR no such key
> RENAMENX nokey nokey
(error) ERR no such key
> RENAMENX a
(error) ERR wrong number of arguments for 'renamenx' command
> EXISTS a b c
(integer) 2

== COPY
> SET a v EXAT 9999999999
OK
> COPY a b
(integer) 1
> GET b
"v"
> EXPIRETIME b
(integer) 9999999999
> COPY a b
(integer) 0
> SET a w
OK
> COPY a b REPLACE
(integer) 1
> GET b
"w"
> EXPIRETIME b
(integer) -1
> COPY nokey c
(integer) 0
> COPY nokey b REPLACE
(integer) 0
> EXISTS b
(integer) 1
> COPY a a
(error) ERR source and destination objects are the same
> COPY a a REPLACE
(error) ERR source and destination objects are the same
> COPY a a DB 0
(error) ERR source and destination objects are the same
> COPY a a DB 1
(integer) 1
> COPY a c DB 0
(integer) 1
> COPY a a DB 1
(integer) 0
> COPY a a DB 1 REPLACE
(integer) 1
> COPY a x DB 1 REPLACE
(integer) 1
> SELECT 1
OK
> MGET a x
1) "w"
2) "w"
> SELECT 0
OK
> COPY a
(error) ERR wrong number of arguments for 'copy' command
> COPY a b DB
(error) ERR syntax error
> COPY a b DB 99
(error) ERR DB index is out of range
> COPY a b DB -1
(error) ERR DB index is out of range
> COPY a b DB x
(error) ERR value is not an integer or out of range
> COPY a b foo
(error) ERR syntax error
> COPY a b REPLACE REPLACE
(integer) 1
> COPY a b DB 1 DB 2
(integer) 1
> COPY nokey b foo
(error) ERR syntax error
> COPY nokey b DB 99
(error) ERR DB index is out of range
> COPY a b replace db 3
(integer) 1

== COPY makes copies that live apart
> RPUSH l a b c
(integer) 3
> SADD s 1 2 3
(integer) 3
> SADD t x y z
(integer) 3
> HSET h f v
(integer) 1
> ZADD z 1 a
(integer) 1
> COPY l l2
(integer) 1
> COPY s s2
(integer) 1
> COPY t t2
(integer) 1
> COPY h h2
(integer) 1
> COPY z z2
(integer) 1
> RPUSH l2 d
(integer) 4
> SADD s2 4
(integer) 1
> SADD t2 zz
(integer) 1
> HSET h2 f2 v2
(integer) 1
> ZADD z2 2 b
(integer) 1
> LRANGE l 0 -1
1) "a"
2) "b"
3) "c"
> LRANGE l2 0 -1
1) "a"
2) "b"
3) "c"
4) "d"
> SMEMBERS s
1) "1"
2) "2"
3) "3"
resp3:
1~ "1"
2~ "2"
3~ "3"
> SMEMBERS s2
1) "1"
2) "2"
3) "3"
4) "4"
resp3:
1~ "1"
2~ "2"
3~ "3"
4~ "4"
> [unordered] SMEMBERS t
1) "x"
2) "y"
3) "z"
resp3:
1~ "x"
2~ "y"
3~ "z"
> [unordered] SMEMBERS t2
1) "x"
2) "y"
3) "z"
4) "zz"
resp3:
1~ "x"
2~ "y"
3~ "z"
4~ "zz"
> HGETALL h
1) "f"
2) "v"
resp3:
1# "f" => "v"
> HGETALL h2
1) "f"
2) "v"
3) "f2"
4) "v2"
resp3:
1# "f" => "v"
2# "f2" => "v2"
> ZRANGE z 0 -1
1) "a"
> ZRANGE z2 0 -1 WITHSCORES
1) "a"
2) "1"
3) "b"
4) "2"
resp3:
1) 1) "a"
   2) (double) 1
2) 1) "b"
   2) (double) 2
> OBJECT ENCODING s2
"intset"
> OBJECT ENCODING t2
"listpack"
> OBJECT ENCODING h2
"listpack"
> OBJECT ENCODING z2
"listpack"
> OBJECT ENCODING l2
"listpack"

== MOVE
> SET k v EXAT 9999999999
OK
> MOVE k 1
(integer) 1
> EXISTS k
(integer) 0
> SELECT 1
OK
> GET k
"v"
> EXPIRETIME k
(integer) 9999999999
> SELECT 0
OK
> SET k w
OK
> MOVE k 1
(integer) 0
> GET k
"w"
> MOVE k 0
(error) ERR source and destination objects are the same
> MOVE nokey 1
(integer) 0
> MOVE nokey 0
(error) ERR source and destination objects are the same
> MOVE k 99
(error) ERR DB index is out of range
> MOVE k -1
(error) ERR DB index is out of range
> MOVE k x
(error) ERR value is not an integer or out of range
> MOVE k
(error) ERR wrong number of arguments for 'move' command
> MOVE k 1 2
(error) ERR wrong number of arguments for 'move' command
> MOVE nokey 99
(error) ERR DB index is out of range

== RANDOMKEY
> RANDOMKEY
(nil)
> SET k v
OK
> RANDOMKEY
"k"
> SET l v
OK
> RANDOMKEY
~ "[kl]"
> RANDOMKEY x
(error) ERR wrong number of arguments for 'randomkey' command

== KEYS and its patterns
> MSET hello 1 hallo 1 hxllo 1 hllo 1 heello 1 foo 1 "f*o" 1 "a[b]c" 1 "" 1 "back\\slash" 1
OK
> [unordered] KEYS *
 1) ""
 2) "a[b]c"
 3) "back\\slash"
 4) "f*o"
 5) "foo"
 6) "hallo"
 7) "heello"
 8) "hello"
 9) "hllo"
10) "hxllo"
> [unordered] KEYS h?llo
1) "hallo"
2) "hello"
3) "hxllo"
> [unordered] KEYS h*llo
1) "hallo"
2) "heello"
3) "hello"
4) "hllo"
5) "hxllo"
> [unordered] KEYS h[ae]llo
1) "hallo"
2) "hello"
> [unordered] KEYS h[^e]llo
1) "hallo"
2) "hxllo"
> [unordered] KEYS h[a-f]llo
1) "hallo"
2) "hello"
> [unordered] KEYS h[f-a]llo
1) "hallo"
2) "hello"
> [unordered] KEYS h[^a-f]llo
1) "hxllo"
> [unordered] KEYS "f\\*o"
1) "f*o"
> [unordered] KEYS f*o
1) "f*o"
2) "foo"
> [unordered] KEYS "a\\[b\\]c"
1) "a[b]c"
> [unordered] KEYS "back\\\\slash"
1) "back\\slash"
> [unordered] KEYS ""
1) ""
> [unordered] KEYS hello
1) "hello"
> [unordered] KEYS HELLO
(empty array)
> [unordered] KEYS nothing*
(empty array)
> [unordered] KEYS ***
1) "a[b]c"
2) "back\\slash"
3) "f*o"
4) "foo"
5) "hallo"
6) "heello"
7) "hello"
8) "hllo"
9) "hxllo"
> [unordered] KEYS h[a
(empty array)
> [unordered] KEYS h[]llo
(empty array)
> [unordered] KEYS [
(empty array)
> [unordered] KEYS ?????
1) "a[b]c"
2) "hallo"
3) "hello"
4) "hxllo"
> [unordered] KEYS *l*o
1) "hallo"
2) "heello"
3) "hello"
4) "hllo"
5) "hxllo"
> KEYS
(error) ERR wrong number of arguments for 'keys' command
> KEYS a b
(error) ERR wrong number of arguments for 'keys' command

== SCAN returns all
> MSET $each(1..50,key:% v%)
OK
> [unordered] SCAN 0 COUNT 100000
1) "0"
2)  1) "key:1"
    2) "key:10"
    3) "key:11"
    4) "key:12"
    5) "key:13"
    6) "key:14"
    7) "key:15"
    8) "key:16"
    9) "key:17"
   10) "key:18"
   11) "key:19"
   12) "key:2"
   13) "key:20"
   14) "key:21"
   15) "key:22"
   16) "key:23"
   17) "key:24"
   18) "key:25"
   19) "key:26"
   20) "key:27"
   21) "key:28"
   22) "key:29"
   23) "key:3"
   24) "key:30"
   25) "key:31"
   26) "key:32"
   27) "key:33"
   28) "key:34"
   29) "key:35"
   30) "key:36"
   31) "key:37"
   32) "key:38"
   33) "key:39"
   34) "key:4"
   35) "key:40"
   36) "key:41"
   37) "key:42"
   38) "key:43"
   39) "key:44"
   40) "key:45"
   41) "key:46"
   42) "key:47"
   43) "key:48"
   44) "key:49"
   45) "key:5"
   46) "key:50"
   47) "key:6"
   48) "key:7"
   49) "key:8"
   50) "key:9"
> [unordered] SCAN 0 MATCH key:1? COUNT 100000
1) "0"
2)  1) "key:10"
    2) "key:11"
    3) "key:12"
    4) "key:13"
    5) "key:14"
    6) "key:15"
    7) "key:16"
    8) "key:17"
    9) "key:18"
   10) "key:19"
> [unordered] SCAN 0 MATCH nothing COUNT 100000
1) "0"
2) (empty array)
> RPUSH l a
(integer) 1
> SADD s a
(integer) 1
> ZADD z 1 a
(integer) 1
> HSET h f v
(integer) 1
> [unordered] SCAN 0 COUNT 100000 TYPE list
1) "0"
2) 1) "l"
> [unordered] SCAN 0 COUNT 100000 TYPE SET
1) "0"
2) 1) "s"
> [unordered] SCAN 0 COUNT 100000 TYPE zset MATCH z*
1) "0"
2) 1) "z"
> [unordered] SCAN 0 COUNT 100000 TYPE hash
1) "0"
2) 1) "h"
> [unordered] SCAN 0 COUNT 100000 TYPE stream
1) "0"
2) (empty array)
> [unordered] SCAN 0 COUNT 100000 TYPE foo
1) "0"
2) (empty array)
> [unordered] SCAN 0 type string match key:5 count 100000
1) "0"
2) 1) "key:5"
> SELECT 1
OK
> SCAN 0
1) "0"
2) (empty array)

== SCAN in small steps returns all
> MSET $each(1..30,key:% v%)
OK
> RPUSH l a
(integer) 1
> [walk] SCAN 0
 1) "key:1"
 2) "key:10"
 3) "key:11"
 4) "key:12"
 5) "key:13"
 6) "key:14"
 7) "key:15"
 8) "key:16"
 9) "key:17"
10) "key:18"
11) "key:19"
12) "key:2"
13) "key:20"
14) "key:21"
15) "key:22"
16) "key:23"
17) "key:24"
18) "key:25"
19) "key:26"
20) "key:27"
21) "key:28"
22) "key:29"
23) "key:3"
24) "key:30"
25) "key:4"
26) "key:5"
27) "key:6"
28) "key:7"
29) "key:8"
30) "key:9"
31) "l"
> [walk] SCAN 0 COUNT 1
 1) "key:1"
 2) "key:10"
 3) "key:11"
 4) "key:12"
 5) "key:13"
 6) "key:14"
 7) "key:15"
 8) "key:16"
 9) "key:17"
10) "key:18"
11) "key:19"
12) "key:2"
13) "key:20"
14) "key:21"
15) "key:22"
16) "key:23"
17) "key:24"
18) "key:25"
19) "key:26"
20) "key:27"
21) "key:28"
22) "key:29"
23) "key:3"
24) "key:30"
25) "key:4"
26) "key:5"
27) "key:6"
28) "key:7"
29) "key:8"
30) "key:9"
31) "l"
> [walk] SCAN 0 COUNT 7 MATCH key:2*
 1) "key:2"
 2) "key:20"
 3) "key:21"
 4) "key:22"
 5) "key:23"
 6) "key:24"
 7) "key:25"
 8) "key:26"
 9) "key:27"
10) "key:28"
11) "key:29"
> [walk] SCAN 0 COUNT 3 TYPE list
1) "l"
> MSET $each(1..30,{tag}% v%)
OK
> [walk] SCAN 0 COUNT 2 MATCH {tag}1?
 1) "{tag}10"
 2) "{tag}11"
 3) "{tag}12"
 4) "{tag}13"
 5) "{tag}14"
 6) "{tag}15"
 7) "{tag}16"
 8) "{tag}17"
 9) "{tag}18"
10) "{tag}19"
> SADD s $each(1..1000,m%)
(integer) 1000
> [walk] SSCAN s 0 COUNT 3 MATCH m77*
 1) "m77"
 2) "m770"
 3) "m771"
 4) "m772"
 5) "m773"
 6) "m774"
 7) "m775"
 8) "m776"
 9) "m777"
10) "m778"
11) "m779"
> HSET h $each(1..1000,f% v)
(integer) 1000
> [walk] HSCAN h 0 COUNT 5 MATCH f55*
 1) "f55"
 2) "f550"
 3) "f551"
 4) "f552"
 5) "f553"
 6) "f554"
 7) "f555"
 8) "f556"
 9) "f557"
10) "f558"
11) "f559"
12) "v"
> ZADD z $each(1..1000,1 m%)
(integer) 1000
> [walk] ZSCAN z 0 COUNT 5 MATCH m33*
 1) "1"
 2) "m33"
 3) "m330"
 4) "m331"
 5) "m332"
 6) "m333"
 7) "m334"
 8) "m335"
 9) "m336"
10) "m337"
11) "m338"
12) "m339"

== SCAN rejects what is wrong
> SET k v
OK
> SCAN
(error) ERR wrong number of arguments for 'scan' command
> SCAN a
(error) ERR invalid cursor
> SCAN ""
(error) ERR invalid cursor
> SCAN 1.5
(error) ERR invalid cursor
> SCAN -1
(error) ERR invalid cursor
> SCAN " 0"
1) "0"
2) 1) "k"
> SCAN 18446744073709551616
(error) ERR invalid cursor
> SCAN 0 COUNT
(error) ERR syntax error
> SCAN 0 COUNT 0
(error) ERR syntax error
> SCAN 0 COUNT -1
(error) ERR syntax error
> SCAN 0 COUNT a
(error) ERR value is not an integer or out of range
> SCAN 0 MATCH
(error) ERR syntax error
> SCAN 0 TYPE
(error) ERR syntax error
> SCAN 0 foo
(error) ERR syntax error
> SCAN 0 MATCH * foo
(error) ERR syntax error
> SCAN 0 COUNT 1000 COUNT 2000 MATCH a MATCH k
1) "0"
2) 1) "k"
> SCAN 0 NOVALUES
(error) ERR NOVALUES option can only be used in HSCAN

== OBJECT
> OBJECT
(error) ERR wrong number of arguments for 'object' command
> OBJECT HELP
~  *1\) .+
...
> OBJECT foo
(error) ERR unknown subcommand 'foo'. Try OBJECT HELP.
> OBJECT foo k
(error) ERR unknown subcommand 'foo'. Try OBJECT HELP.
> OBJECT ENCODING
(error) ERR wrong number of arguments for 'object|encoding' command
> OBJECT ENCODING a b
(error) ERR wrong number of arguments for 'object|encoding' command
> OBJECT REFCOUNT nokey
(nil)
> OBJECT ENCODING nokey
(nil)
> OBJECT IDLETIME nokey
(nil)
> OBJECT FREQ nokey
(nil)
> SET k v
OK
> OBJECT REFCOUNT k
(integer) 1
> OBJECT IDLETIME k
~ \(integer\) [01]
> OBJECT FREQ k
(error) ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
> object encoding k
"embstr"
> OBJECT FREQ
(error) ERR wrong number of arguments for 'object|freq' command
> OBJECT IDLETIME
(error) ERR wrong number of arguments for 'object|idletime' command
> OBJECT REFCOUNT
(error) ERR wrong number of arguments for 'object|refcount' command

== OBJECT FREQ under an LFU policy
> SET k v
OK
> CONFIG SET maxmemory-policy allkeys-lfu
OK
> SET k v
OK
> OBJECT FREQ k
(integer) 1
> OBJECT IDLETIME k
(error) ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
> OBJECT FREQ nokey
(nil)
> OBJECT IDLETIME nokey
(nil)

== SORT numbers
> RPUSH l 3 1 2 10 -5 1.5
(integer) 6
> SORT l
1) "-5"
2) "1"
3) "1.5"
4) "2"
5) "3"
6) "10"
> SORT l DESC
1) "10"
2) "3"
3) "2"
4) "1.5"
5) "1"
6) "-5"
> SORT l ASC
1) "-5"
2) "1"
3) "1.5"
4) "2"
5) "3"
6) "10"
> SORT l ALPHA
1) "-5"
2) "1"
3) "1.5"
4) "10"
5) "2"
6) "3"
> SORT l ALPHA DESC
1) "3"
2) "2"
3) "10"
4) "1.5"
5) "1"
6) "-5"
> SORT l LIMIT 0 2
1) "-5"
2) "1"
> SORT l LIMIT 2 2
1) "1.5"
2) "2"
> SORT l LIMIT 4 100
1) "3"
2) "10"
> SORT l LIMIT 100 1
(empty array)
> SORT l LIMIT 0 0
(empty array)
> SORT l LIMIT -5 2
1) "-5"
2) "1"
> SORT l LIMIT 0 -1
1) "-5"
2) "1"
3) "1.5"
4) "2"
5) "3"
6) "10"
> SORT l LIMIT 1 -1
1) "1"
2) "1.5"
3) "2"
4) "3"
5) "10"
> SORT l DESC LIMIT 1 2
1) "3"
2) "2"
> SORT nokey
(empty array)
> SADD s 5 3 4
(integer) 3
> SORT s
1) "3"
2) "4"
3) "5"
> SORT s DESC
1) "5"
2) "4"
3) "3"
> ZADD z 1 30 2 20 3 10
(integer) 3
> SORT z
1) "10"
2) "20"
3) "30"
> SORT z DESC
1) "30"
2) "20"
3) "10"
> SADD w b c a
(integer) 3
> SORT w ALPHA
1) "a"
2) "b"
3) "c"
> SORT w
(error) ERR One or more scores can't be converted into double
> RPUSH e a
(integer) 1
> LPOP e
"a"
> SORT e
(empty array)
> SORT l desc limit 0 1 alpha
1) "3"
> RPUSH eq 1 1 1 2 0
(integer) 5
> SORT eq
1) "0"
2) "1"
3) "1"
4) "1"
5) "2"

== SORT of what is no number
> RPUSH l a b
(integer) 2
> SORT l
(error) ERR One or more scores can't be converted into double
> RPUSH m 1 "" 2
(integer) 3
> SORT m
1) ""
2) "1"
3) "2"
> RPUSH n 1 "2 "
(integer) 2
> SORT n
(error) ERR One or more scores can't be converted into double
> RPUSH o nan 1
(integer) 2
> SORT o
(error) ERR One or more scores can't be converted into double
> RPUSH p inf -inf 0
(integer) 3
> SORT p
1) "-inf"
2) "0"
3) "inf"
> RPUSH q 1e2 0x10 5
(integer) 3
> SORT q
(error) ERR One or more scores can't be converted into double
> SORT l BY nosort
1) "a"
2) "b"
> SORT l ALPHA
1) "a"
2) "b"

== SORT BY other keys
> RPUSH l 1 2 3
(integer) 3
> MSET w_1 30 w_2 20 w_3 10
OK
> SORT l BY w_*
1) "3"
2) "2"
3) "1"
> SORT l BY w_* DESC
1) "1"
2) "2"
3) "3"
> SORT l BY w_* LIMIT 0 1
1) "3"
> SORT l BY nokey_*
1) "1"
2) "2"
3) "3"
> DEL w_2
(integer) 1
> SORT l BY w_*
1) "2"
2) "3"
3) "1"
> SET w_1 abc
OK
> SORT l BY w_*
(error) ERR One or more scores can't be converted into double
> SORT l BY w_* ALPHA
1) "2"
2) "3"
3) "1"
> HSET h_1 weight 3
(integer) 1
> HSET h_2 weight 2
(integer) 1
> HSET h_3 weight 1
(integer) 1
> SORT l BY h_*->weight
1) "3"
2) "2"
3) "1"
> SORT l BY h_*->nofield
1) "1"
2) "2"
3) "3"
> SORT l BY *->weight
1) "1"
2) "2"
3) "3"
> SORT l BY h_*->
1) "1"
2) "2"
3) "3"
> SORT l BY nosort
1) "1"
2) "2"
3) "3"
> SORT l BY nosort DESC
1) "3"
2) "2"
3) "1"
> SORT l BY nosort LIMIT 1 1
1) "2"
> SORT l BY w_1
1) "1"
2) "2"
3) "3"
> RPUSH w_9 x
(integer) 1
> RPUSH m 9 1
(integer) 2
> SORT m BY w_* ALPHA
1) "9"
2) "1"
> SORT l BY h_* ALPHA
1) "1"
2) "2"
3) "3"

== SORT GET other keys
> RPUSH l 2 1 3
(integer) 3
> MSET o_1 one o_2 two
OK
> HSET h_1 name uno
(integer) 1
> HSET h_2 name dos
(integer) 1
> SORT l GET o_*
1) "one"
2) "two"
3) (nil)
> SORT l GET # GET o_*
1) "1"
2) "one"
3) "2"
4) "two"
5) "3"
6) (nil)
> SORT l GET h_*->name GET #
1) "uno"
2) "1"
3) "dos"
4) "2"
5) (nil)
6) "3"
> SORT l GET h_*
1) (nil)
2) (nil)
3) (nil)
> SORT l GET o_1
1) (nil)
2) (nil)
3) (nil)
> SORT l GET nokey
1) (nil)
2) (nil)
3) (nil)
> SORT l GET # LIMIT 0 1 GET # DESC
1) "3"
2) "3"
> SORT l BY nosort GET # GET o_*
1) "2"
2) "two"
3) "1"
4) "one"
5) "3"
6) (nil)
> SORT l GET ""
1) (nil)
2) (nil)
3) (nil)
> SORT nokey GET # GET o_*
(empty array)

== SORT of a sorted set with BY nosort keeps its order
> ZADD z 1 c 2 b 3 a
(integer) 3
> SORT z BY nosort
1) "c"
2) "b"
3) "a"
> SORT z BY nosort DESC
1) "a"
2) "b"
3) "c"
> SORT z BY nosort LIMIT 0 2
1) "c"
2) "b"
> SORT z BY nosort DESC LIMIT 0 2
1) "a"
2) "b"
> SORT z BY nosort DESC LIMIT 1 -1
1) "b"
2) "c"
> SORT z BY nosort LIMIT 5 1
(empty array)
> SORT z BY nosort GET #
1) "c"
2) "b"
3) "a"

== SORT STORE
> RPUSH l 3 1 2
(integer) 3
> SORT l STORE d
(integer) 3
> LRANGE d 0 -1
1) "1"
2) "2"
3) "3"
> TYPE d
list
> OBJECT ENCODING d
"listpack"
> MSET o_1 one o_2 two
OK
> SORT l GET o_* STORE d
(integer) 3
> LRANGE d 0 -1
1) "one"
2) "two"
3) ""
> SORT nokey STORE d
(integer) 0
> EXISTS d
(integer) 0
> SET d v EX 100
OK
> SORT l DESC LIMIT 0 2 STORE d
(integer) 2
> LRANGE d 0 -1
1) "3"
2) "2"
> TTL d
(integer) -1
> SORT l STORE l
(integer) 3
> LRANGE l 0 -1
1) "1"
2) "2"
3) "3"
> SADD s b a
(integer) 2
> SORT s ALPHA STORE s
(integer) 2
> TYPE s
list
> SORT s BY nosort STORE d
(integer) 2
> LRANGE d 0 -1
1) "a"
2) "b"
> SORT l LIMIT 10 10 STORE d
(integer) 0
> EXISTS d
(integer) 0

== SORT rejects what is wrong
> RPUSH l 1
(integer) 1
> SORT
(error) ERR wrong number of arguments for 'sort' command
> SORT l foo
(error) ERR syntax error
> SORT l BY
(error) ERR syntax error
> SORT l GET
(error) ERR syntax error
> SORT l LIMIT 0
(error) ERR syntax error
> SORT l LIMIT a b
(error) ERR value is not an integer or out of range
> SORT l LIMIT 0 b
(error) ERR value is not an integer or out of range
> SORT l STORE
(error) ERR syntax error
> SORT l ASC foo
(error) ERR syntax error
> SET k v
OK
> HSET h f v
(integer) 1
> SORT k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SORT h
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SORT k foo
(error) ERR syntax error
> SORT nokey foo
(error) ERR syntax error
> SORT nokey LIMIT a b
(error) ERR value is not an integer or out of range

== SORT_RO
> RPUSH l 3 1 2
(integer) 3
> SORT_RO l
1) "1"
2) "2"
3) "3"
> SORT_RO l DESC LIMIT 0 2
1) "3"
2) "2"
> MSET o_1 one o_2 two
OK
> SORT_RO l GET # GET o_*
1) "1"
2) "one"
3) "2"
4) "two"
5) "3"
6) (nil)
> SORT_RO l STORE d
(error) ERR syntax error
> SORT_RO l BY nosort
1) "3"
2) "1"
3) "2"
> SORT_RO nokey
(empty array)
> SORT_RO
(error) ERR wrong number of arguments for 'sort_ro' command
> SET k v
OK
> SORT_RO k
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== keys of different databases are apart
> SET k zero
OK
> SELECT 1
OK
> GET k
(nil)
> SET k one
OK
> DBSIZE
(integer) 1
> SELECT 0
OK
> GET k
"zero"
> DBSIZE
(integer) 1
> SELECT 15
OK
> GET k
(nil)
> SELECT 16
(error) ERR DB index is out of range
> SELECT -1
(error) ERR DB index is out of range
> SELECT a
(error) ERR value is not an integer or out of range
> SELECT
(error) ERR wrong number of arguments for 'select' command
> SELECT 0 1
(error) ERR wrong number of arguments for 'select' command

== DEL of each type
> SET a v
OK
> RPUSH b $each(1..1000,%)
(integer) 1000
> SADD c $each(1..1000,m%)
(integer) 1000
> ZADD d $each(1..1000,% m%)
(integer) 1000
> HSET e $each(1..1000,f% v%)
(integer) 1000
> DEL a b c d e
(integer) 5
> DBSIZE
(integer) 0
> SADD c $each(1..1000,m%)
(integer) 1000
> ZADD d $each(1..1000,% m%)
(integer) 1000
> UNLINK c d
(integer) 2
> DBSIZE
(integer) 0
== MIGRATE without another server
> MIGRATE 127.0.0.1 1 none 0 1000
NOKEY
> MIGRATE 127.0.0.1 1 "" 0 1000 COPY REPLACE AUTH p AUTH2 u p KEYS none nothing
NOKEY
> MIGRATE 127.0.0.1 1 "" 0 0 KEYS
NOKEY
> MIGRATE 127.0.0.1 1 none 0 1000 KEYS none
(error) ERR When using MIGRATE KEYS option, the key argument must be set to the empty string
> MIGRATE 127.0.0.1 1 none 0 1000 AUTH
(error) ERR syntax error
> MIGRATE 127.0.0.1 1 none 0 1000 AUTH2 u
(error) ERR syntax error
> MIGRATE 127.0.0.1 1 none 0 1000 ABSTTL
(error) ERR syntax error
> MIGRATE 127.0.0.1 1 none x 1000
(error) ERR value is not an integer or out of range
> MIGRATE 127.0.0.1 1 none 0 1.5
(error) ERR value is not an integer or out of range
> MIGRATE 127.0.0.1 1 none 0
(error) ERR wrong number of arguments for 'migrate' command
