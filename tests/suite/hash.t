# Hashes.

== setting, getting and deleting fields
> HSET h a 1 b 2
(integer) 2
> HSET h a 3 c 4
(integer) 1
> HGET h a
"3"
> HGET h nothing
(nil)
> HGET nokey a
(nil)
> HGETALL h
1) "a"
2) "3"
3) "b"
4) "2"
5) "c"
6) "4"
resp3:
1# "a" => "3"
2# "b" => "2"
3# "c" => "4"
> HKEYS h
1) "a"
2) "b"
3) "c"
> HVALS h
1) "3"
2) "2"
3) "4"
> HLEN h
(integer) 3
> HEXISTS h a
(integer) 1
> HEXISTS h nothing
(integer) 0
> HEXISTS nokey a
(integer) 0
> HSTRLEN h a
(integer) 1
> HSTRLEN h nothing
(integer) 0
> HSTRLEN nokey a
(integer) 0
> HDEL h a nothing
(integer) 1
> HDEL h b c c
(integer) 2
> EXISTS h
(integer) 0
> HDEL h a
(integer) 0
> HLEN h
(integer) 0
> HGETALL h
(empty array)
resp3:
(empty hash)
> HKEYS h
(empty array)
> HVALS h
(empty array)

== wrong numbers of arguments
> HSET h
(error) ERR wrong number of arguments for 'hset' command
> HSET h a
(error) ERR wrong number of arguments for 'hset' command
> HSET h a 1 b
(error) ERR wrong number of arguments for 'hset' command
> HSETNX h a
(error) ERR wrong number of arguments for 'hsetnx' command
> HSETNX h a 1 2
(error) ERR wrong number of arguments for 'hsetnx' command
> HGET h
(error) ERR wrong number of arguments for 'hget' command
> HGET h a b
(error) ERR wrong number of arguments for 'hget' command
> HMSET h
(error) ERR wrong number of arguments for 'hmset' command
> HMSET h a
(error) ERR wrong number of arguments for 'hmset' command
> HMSET h a 1 b
(error) ERR wrong number of arguments for 'hmset' command
> HMGET h
(error) ERR wrong number of arguments for 'hmget' command
> HGETALL
(error) ERR wrong number of arguments for 'hgetall' command
> HGETALL a b
(error) ERR wrong number of arguments for 'hgetall' command
> HKEYS
(error) ERR wrong number of arguments for 'hkeys' command
> HVALS
(error) ERR wrong number of arguments for 'hvals' command
> HLEN
(error) ERR wrong number of arguments for 'hlen' command
> HLEN a b
(error) ERR wrong number of arguments for 'hlen' command
> HDEL h
(error) ERR wrong number of arguments for 'hdel' command
> HEXISTS h
(error) ERR wrong number of arguments for 'hexists' command
> HSTRLEN h
(error) ERR wrong number of arguments for 'hstrlen' command
> HINCRBY h a
(error) ERR wrong number of arguments for 'hincrby' command
> HINCRBYFLOAT h a
(error) ERR wrong number of arguments for 'hincrbyfloat' command
> HRANDFIELD
(error) ERR wrong number of arguments for 'hrandfield' command
> HSCAN h
(error) ERR wrong number of arguments for 'hscan' command
> EXISTS h
(integer) 0

== HMSET and HMGET
> HMSET h a 1 b 2
OK
> HMGET h a nothing b a
1) "1"
2) (nil)
3) "2"
4) "1"
> HMGET nokey a b
1) (nil)
2) (nil)
> HMSET h a x a y
OK
> HGET h a
"y"
> SET k v
OK
> HMGET k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HMSET k a b
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== HSETNX
> HSETNX h a 1
(integer) 1
> HSETNX h a 2
(integer) 0
> HGET h a
"1"
> SET k v
OK
> HSETNX k a 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== HINCRBY
> HINCRBY h n 5
(integer) 5
> HINCRBY h n -7
(integer) -2
> HGET h n
"-2"
> HSET h m 9223372036854775807
(integer) 1
> HINCRBY h m 1
(error) ERR increment or decrement would overflow
> HINCRBY h m -1
(integer) 9223372036854775806
> HSET h m -9223372036854775808
(integer) 0
> HINCRBY h m -1
(error) ERR increment or decrement would overflow
> HINCRBY h m 0
(integer) -9223372036854775808
> HINCRBY h n abc
(error) ERR value is not an integer or out of range
> HINCRBY h n 1.5
(error) ERR value is not an integer or out of range
> HINCRBY h n ""
(error) ERR value is not an integer or out of range
> HSET h s abc e "" b " 1" z 01 f 1.5
(integer) 5
> HINCRBY h s 1
(error) ERR hash value is not an integer
> HINCRBY h e 1
(error) ERR hash value is not an integer
> HINCRBY h b 1
(error) ERR hash value is not an integer
> HINCRBY h z 1
(error) ERR hash value is not an integer
> HINCRBY h f 1
(error) ERR hash value is not an integer
> SET k v
OK
> HINCRBY k a 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HINCRBY k a abc
(error) ERR value is not an integer or out of range
> HINCRBY nokey a abc
(error) ERR value is not an integer or out of range
> EXISTS nokey
(integer) 0

== HINCRBYFLOAT
> HINCRBYFLOAT h f 1.5
"1.5"
> HINCRBYFLOAT h f -0.25
"1.25"
> HINCRBYFLOAT h f 1e3
"1001.25"
> HSET h g 3
(integer) 1
> HINCRBYFLOAT h g 0.1
"3.1"
> HGET h g
"3.1"
> HINCRBYFLOAT h f abc
(error) ERR value is not a valid float
> HINCRBYFLOAT h f ""
(error) ERR value is not a valid float
> HINCRBYFLOAT h f nan
(error) ERR value is not a valid float
> HINCRBYFLOAT h f inf
(error) ERR value is NaN or Infinity
> HINCRBYFLOAT h f -inf
(error) ERR value is NaN or Infinity
> HSET h s abc e "" b " 1" i inf
(integer) 4
> HINCRBYFLOAT h s 1
(error) ERR hash value is not a float
> HINCRBYFLOAT h e 1
(error) ERR hash value is not a float
> HINCRBYFLOAT h b 1
(error) ERR hash value is not a float
> HINCRBYFLOAT h i 1
(error) ERR increment would produce NaN or Infinity
> HSET h big 1e308
(integer) 1
> HINCRBYFLOAT h big 1e308
"199999999999999999993371759311691291321120199694831134415594095989843469737676123744200253843777078640893494450108026446304269499187921167194841628860392837535918200039206381557326219209014213335878306791577877829121087126122536729803237260434173178506889763247582601711514636284849020905456510092687857156096"
> HINCRBYFLOAT h tiny 1e-17
"0.00000000000000001"
> HINCRBYFLOAT h tiny 1
"1.00000000000000001"
> SET k v
OK
> HINCRBYFLOAT k a 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HINCRBYFLOAT k a abc
(error) ERR value is not a valid float
> HINCRBYFLOAT nokey a abc
(error) ERR value is not a valid float
> EXISTS nokey
(integer) 0

== HRANDFIELD
> HSET h a 1
(integer) 1
> HRANDFIELD h
"a"
> HRANDFIELD h 1
1) "a"
> HRANDFIELD h 5
1) "a"
> HRANDFIELD h -3
1) "a"
2) "a"
3) "a"
> HRANDFIELD h 1 WITHVALUES
1) "a"
2) "1"
resp3:
1) 1) "a"
   2) "1"
> HRANDFIELD h -2 withvalues
1) "a"
2) "1"
3) "a"
4) "1"
resp3:
1) 1) "a"
   2) "1"
2) 1) "a"
   2) "1"
> HRANDFIELD h 0
(empty array)
> HRANDFIELD h 0 WITHVALUES
(empty array)
> HRANDFIELD nokey
(nil)
> HRANDFIELD nokey 3
(empty array)
> HRANDFIELD nokey -3 WITHVALUES
(empty array)
> HSET g a 1 b 2 c 3
(integer) 3
> [unordered] HRANDFIELD g 3
1) "a"
2) "b"
3) "c"
> [pairs] HRANDFIELD g 10 WITHVALUES
1) "a"
2) "1"
3) "b"
4) "2"
5) "c"
6) "3"
resp3:
1) 1) "a"
   2) "1"
2) 1) "b"
   2) "2"
3) 1) "c"
   2) "3"
> [count] HRANDFIELD g 2
(integer) 2
> [count] HRANDFIELD g -10
(integer) 10
> HRANDFIELD h x
(error) ERR value is not an integer or out of range
> HRANDFIELD h 1 foo
(error) ERR syntax error
> HRANDFIELD h 1 WITHVALUES foo
(error) ERR syntax error
> HRANDFIELD h WITHVALUES
(error) ERR value is not an integer or out of range
> HRANDFIELD h -9223372036854775808
(error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> HRANDFIELD h -4611686018427387905 WITHVALUES
(error) ERR value is out of range
> HRANDFIELD h -9223372036854775807 WITHVALUES
(error) ERR value is out of range
> HRANDFIELD nokey x
(error) ERR value is not an integer or out of range
> HRANDFIELD nokey 1 foo
(error) ERR syntax error
> SET k v
OK
> HRANDFIELD k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HRANDFIELD k 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HRANDFIELD k x
(error) ERR value is not an integer or out of range
> HSET big $each(1..300,f% v%)
(integer) 300
> [count] HRANDFIELD big 50
(integer) 50
> [count] HRANDFIELD big 290
(integer) 290
> [count] HRANDFIELD big -1000
(integer) 1000
> [count] HRANDFIELD big 1000
(integer) 300

== values and fields are bytes
> HSET h "" empty "a\x00b" "\xff\x00" 1 "" 01 x " " y
(integer) 5
> HGET h ""
"empty"
> HGET h "a\x00b"
"\xff\x00"
> HGET h 1
""
> HGET h 01
"x"
> HGET h " "
"y"
> HSTRLEN h "a\x00b"
(integer) 2
> HSET h 1 12345
(integer) 0
> HSTRLEN h 1
(integer) 5
> HGETALL h
 1) ""
 2) "empty"
 3) "a\x00b"
 4) "\xff\x00"
 5) "1"
 6) "12345"
 7) "01"
 8) "x"
 9) " "
10) "y"
resp3:
1# "" => "empty"
2# "a\x00b" => "\xff\x00"
3# "1" => "12345"
4# "01" => "x"
5# " " => "y"

== hash encodings and their limits
config set hash-max-listpack-entries 4
config set hash-max-listpack-value 8
> HSET h a 1 b 2 c 3 d 4
(integer) 4
> OBJECT ENCODING h
"listpack"
> HSET h a 5
(integer) 0
> OBJECT ENCODING h
"listpack"
> HSET h e 5
(integer) 1
> OBJECT ENCODING h
"hashtable"
> HDEL h e d c
(integer) 3
> OBJECT ENCODING h
"hashtable"
> HSET v a 12345678
(integer) 1
> OBJECT ENCODING v
"listpack"
> HSET v a 123456789
(integer) 0
> OBJECT ENCODING v
"hashtable"
> HSET f 12345678 v
(integer) 1
> OBJECT ENCODING f
"listpack"
> HSET f 123456789 v
(integer) 1
> OBJECT ENCODING f
"hashtable"
> HSETNX n 123456789 v
(integer) 1
> OBJECT ENCODING n
"hashtable"
> HINCRBYFLOAT i a 1.125
"1.125"
> OBJECT ENCODING i
"listpack"
> HINCRBYFLOAT i a 0.0001
"1.1251"
> OBJECT ENCODING i
"listpack"
> HINCRBY j a 123456789
(integer) 123456789
> OBJECT ENCODING j
"hashtable"
> [pairs] HGETALL h
1) "a"
2) "5"
3) "b"
4) "2"
resp3:
1# "a" => "5"
2# "b" => "2"

== the default limits of hashes
> HSET h $each(1..512,f% v%)
(integer) 512
> OBJECT ENCODING h
"listpack"
> HSET h f513 v
(integer) 1
> OBJECT ENCODING h
"hashtable"
> HSET g a $times(64,x)
(integer) 1
> OBJECT ENCODING g
"listpack"
> HSET g a $times(65,x)
(integer) 0
> OBJECT ENCODING g
"hashtable"

== the old names of the limits
> CONFIG SET hash-max-ziplist-entries 2
OK
> [pairs] CONFIG GET hash-max-*-entries
1) "hash-max-listpack-entries"
2) "2"
3) "hash-max-ziplist-entries"
4) "2"
resp3:
1# "hash-max-listpack-entries" => "2"
2# "hash-max-ziplist-entries" => "2"
> HSET h a 1 b 2 c 3
(integer) 3
> OBJECT ENCODING h
"hashtable"

== a hash as table
> HSET h $each(1..2000,f% v%)
(integer) 2000
> HLEN h
(integer) 2000
> HGET h f1
"v1"
> HGET h f2000
"v2000"
> HGET h f2001
(nil)
> HDEL h $each(1..1995,f%)
(integer) 1995
> [pairs] HGETALL h
 1) "f1996"
 2) "v1996"
 3) "f1997"
 4) "v1997"
 5) "f1998"
 6) "v1998"
 7) "f1999"
 8) "v1999"
 9) "f2000"
10) "v2000"
resp3:
1# "f1996" => "v1996"
2# "f1997" => "v1997"
3# "f1998" => "v1998"
4# "f1999" => "v1999"
5# "f2000" => "v2000"
> [unordered] HKEYS h
1) "f1996"
2) "f1997"
3) "f1998"
4) "f1999"
5) "f2000"
> [unordered] HVALS h
1) "v1996"
2) "v1997"
3) "v1998"
4) "v1999"
5) "v2000"
> HINCRBY h n 1
(integer) 1
> HSTRLEN h f2000
(integer) 5
> HEXISTS h f1999
(integer) 1
> HMGET h f1 f2000
1) (nil)
2) "v2000"

== HSCAN returns all
> HSET h a 1 b 2 c 3
(integer) 3
> HSCAN h 0
1) "0"
2) 1) "a"
   2) "1"
   3) "b"
   4) "2"
   5) "c"
   6) "3"
> HSCAN h 0 COUNT 1
1) "0"
2) 1) "a"
   2) "1"
   3) "b"
   4) "2"
   5) "c"
   6) "3"
> HSCAN h 0 MATCH [ab]
1) "0"
2) 1) "a"
   2) "1"
   3) "b"
   4) "2"
> HSCAN h 0 MATCH x*
1) "0"
2) (empty array)
> HSCAN h 7
1) "0"
2) 1) "a"
   2) "1"
   3) "b"
   4) "2"
   5) "c"
   6) "3"
> HSCAN nokey 0
1) "0"
2) (empty array)
> HSET t $each(1..5,f% $times(100,v)%)
(integer) 5
> [count] HSCAN t 0 COUNT 1000
(integer) 2
> [pairs] HSCAN t 0 COUNT 1000 MATCH f[12]
1) "0"
2) 1) "f1"
   2) "$times(100,v"
   3) "f2"
   4) "$times(100,v"
> HSCAN h a
(error) ERR invalid cursor
> HSCAN h 0 COUNT 0
(error) ERR syntax error
> HSCAN h 0 COUNT a
(error) ERR value is not an integer or out of range
> HSCAN h 0 MATCH
(error) ERR syntax error
> HSCAN h 0 foo
(error) ERR syntax error
> HSCAN h 0 NOVALUES
1) "0"
2) 1) "a"
   2) "b"
   3) "c"
> HSCAN nokey a
(error) ERR invalid cursor
> SET k v
OK
> HSCAN k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HSCAN k a
(error) ERR invalid cursor

== hash commands refuse other types
> SET k v
OK
> HSET k a 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HGET k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HGETALL k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HKEYS k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HVALS k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HLEN k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HDEL k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HEXISTS k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HSTRLEN k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> HSET k a
(error) ERR wrong number of arguments for 'hset' command
> TYPE k
string

== expiry belongs to the key, not to the field
> HSET h a 1
(integer) 1
> EXPIREAT h 9999999999
(integer) 1
> HSET h b 2
(integer) 1
> HDEL h a
(integer) 1
> HINCRBY h n 1
(integer) 1
> EXPIRETIME h
(integer) 9999999999
> HDEL h b n
(integer) 2
> HSET h a 1
(integer) 1
> TTL h
(integer) -1
