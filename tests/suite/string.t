# Strings: SET and its options, counters, ranges, many keys at once, LCS.

== SET stores and GET reads
> SET k v
OK
> GET k
"v"
> GET nokey
(nil)
> SET k ""
OK
> GET k
""
> SET k "a b\x00\xff\r\n"
OK
> GET k
"a b\x00\xff\r\n"
> SET "" "the empty key"
OK
> GET ""
"the empty key"
> STRLEN k
(integer) 7
> TYPE k
string

== SET replaces any type
> LPUSH k a b
(integer) 2
> SET k v
OK
> GET k
"v"
> TYPE k
string
> SADD s m
(integer) 1
> SET s 1
OK
> OBJECT ENCODING s
"int"

== wrong numbers of arguments
> SET
(error) ERR wrong number of arguments for 'set' command
> SET k
(error) ERR wrong number of arguments for 'set' command
> GET
(error) ERR wrong number of arguments for 'get' command
> GET a b
(error) ERR wrong number of arguments for 'get' command
> GETSET k
(error) ERR wrong number of arguments for 'getset' command
> GETDEL
(error) ERR wrong number of arguments for 'getdel' command
> GETEX
(error) ERR wrong number of arguments for 'getex' command
> APPEND k
(error) ERR wrong number of arguments for 'append' command
> STRLEN
(error) ERR wrong number of arguments for 'strlen' command
> STRLEN a b
(error) ERR wrong number of arguments for 'strlen' command
> INCR
(error) ERR wrong number of arguments for 'incr' command
> INCR a b
(error) ERR wrong number of arguments for 'incr' command
> DECR
(error) ERR wrong number of arguments for 'decr' command
> INCRBY k
(error) ERR wrong number of arguments for 'incrby' command
> DECRBY k
(error) ERR wrong number of arguments for 'decrby' command
> INCRBYFLOAT k
(error) ERR wrong number of arguments for 'incrbyfloat' command
> MGET
(error) ERR wrong number of arguments for 'mget' command
> MSET
(error) ERR wrong number of arguments for 'mset' command
> MSET a
(error) ERR wrong number of arguments for 'mset' command
> MSETNX
(error) ERR wrong number of arguments for 'msetnx' command
> MSETNX a
(error) ERR wrong number of arguments for 'msetnx' command
> SETNX k
(error) ERR wrong number of arguments for 'setnx' command
> SETEX k 1
(error) ERR wrong number of arguments for 'setex' command
> PSETEX k 1
(error) ERR wrong number of arguments for 'psetex' command
> SETRANGE k 0
(error) ERR wrong number of arguments for 'setrange' command
> GETRANGE k 0
(error) ERR wrong number of arguments for 'getrange' command
> SUBSTR k 0
(error) ERR wrong number of arguments for 'substr' command
> LCS a
(error) ERR wrong number of arguments for 'lcs' command
> nosuchcommand
(error) ERR unknown command 'nosuchcommand', with args beginning with:\x20
> nosuchcommand a "b c" d
(error) ERR unknown command 'nosuchcommand', with args beginning with: 'a' 'b c' 'd'\x20
> set
(error) ERR wrong number of arguments for 'set' command

== SET NX sets only what is absent
> SET k v NX
OK
> SET k w NX
(nil)
> GET k
"v"
> SET k w nx get
"v"
> SET new w NX GET
(nil)
> GET new
"w"

== SET XX sets only what is there
> SET k v XX
(nil)
> EXISTS k
(integer) 0
> SET k v
OK
> SET k w XX
OK
> GET k
"w"
> SET nokey w XX GET
(nil)
> SET k x XX GET
"w"
> GET k
"x"

== SET GET returns the old value
> SET k v GET
(nil)
> SET k w GET
"v"
> GET k
"w"
> RPUSH l a
(integer) 1
> SET l v GET
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LRANGE l 0 -1
1) "a"

== SET NX GET on another type is an error and changes nothing
> RPUSH l a
(integer) 1
> SET l v NX GET
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SET l v XX GET
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> TYPE l
list

== SET with expiry
> SET k v EX 100
OK
> TTL k
~ \(integer\) (99|100)
> SET k v PX 100000
OK
> TTL k
~ \(integer\) (99|100)
> SET k v EXAT 9999999999
OK
> EXPIRETIME k
(integer) 9999999999
> SET k v PXAT 9999999999123
OK
> PEXPIRETIME k
(integer) 9999999999123
> SET k v
OK
> TTL k
(integer) -1

== SET KEEPTTL keeps the expiry
> SET k v EXAT 9999999999
OK
> SET k w KEEPTTL
OK
> GET k
"w"
> EXPIRETIME k
(integer) 9999999999
> SET k x
OK
> EXPIRETIME k
(integer) -1
> SET new v KEEPTTL
OK
> TTL new
(integer) -1
> SET k x EXAT 9999999999
OK
> SET k y XX KEEPTTL GET
"x"
> EXPIRETIME k
(integer) 9999999999

== SET in the past removes the key
> SET k v
OK
> SET k v EXAT 1
OK
> EXISTS k
(integer) 0
> SET k v PXAT 1
OK
> GET k
(nil)
> DBSIZE
(integer) 0

== SET rejects bad expiry times
> SET k v EX 0
(error) ERR invalid expire time in 'set' command
> SET k v EX -1
(error) ERR invalid expire time in 'set' command
> SET k v PX 0
(error) ERR invalid expire time in 'set' command
> SET k v EX ten
(error) ERR value is not an integer or out of range
> SET k v EX 1.5
(error) ERR value is not an integer or out of range
> SET k v EX ""
(error) ERR value is not an integer or out of range
> SET k v EX 9223372036854775807
(error) ERR invalid expire time in 'set' command
> SET k v EX 9223372036854775
(error) ERR invalid expire time in 'set' command
> SET k v PX 9223372036854775807
(error) ERR invalid expire time in 'set' command
> SET k v EXAT 0
(error) ERR invalid expire time in 'set' command
> SET k v PXAT -5
(error) ERR invalid expire time in 'set' command
> SET k v EXAT 9223372036854775807
(error) ERR invalid expire time in 'set' command
> SET k v EX 9223372036854775808
(error) ERR value is not an integer or out of range
> EXISTS k
(integer) 0

== SET rejects options that do not go together
> SET k v NX XX
(error) ERR syntax error
> SET k v XX NX
(error) ERR syntax error
> SET k v EX 10 PX 10
(error) ERR syntax error
> SET k v EX 10 EX 10
OK
> SET k v EX 10 KEEPTTL
(error) ERR syntax error
> SET k v KEEPTTL EX 10
(error) ERR syntax error
> SET k v KEEPTTL PXAT 10
(error) ERR syntax error
> SET k v EXAT 10 EX 10
(error) ERR syntax error
> SET k v EX
(error) ERR syntax error
> SET k v PX
(error) ERR syntax error
> SET k v EXAT
(error) ERR syntax error
> SET k v foo
(error) ERR syntax error
> SET k v NX foo
(error) ERR syntax error
> SET k v GET GET
"v"
> SET k v NX NX
(nil)
> SET k w KEEPTTL KEEPTTL
OK
> SET k v EX 10 NX GET XX
(error) ERR syntax error
> GET k
"w"

== SET checks syntax before the expiry, and that before the key
> RPUSH l a
(integer) 1
> SET l v EX 0 foo
(error) ERR syntax error
> SET l v EX zero GET
(error) ERR value is not an integer or out of range
> SET l v GET
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SET l v NX EX 0
(error) ERR invalid expire time in 'set' command
> TYPE l
list

== option words are not case sensitive
> SeT k v eX 100 Nx
OK
> gEt k
"v"
> set k w xX kEEPttl gEt
"v"
> SET k v pXaT 9999999999999
OK
> PEXPIRETIME k
(integer) 9999999999999

== SETNX
> SETNX k v
(integer) 1
> SETNX k w
(integer) 0
> GET k
"v"
> RPUSH l a
(integer) 1
> SETNX l v
(integer) 0
> TYPE l
list

== SETEX and PSETEX
> SETEX k 100 v
OK
> TTL k
~ \(integer\) (99|100)
> GET k
"v"
> PSETEX k 100000 w
OK
> GET k
"w"
> TTL k
~ \(integer\) (99|100)
> SETEX k 0 v
(error) ERR invalid expire time in 'setex' command
> SETEX k -5 v
(error) ERR invalid expire time in 'setex' command
> SETEX k ten v
(error) ERR value is not an integer or out of range
> SETEX k 9223372036854775807 v
(error) ERR invalid expire time in 'setex' command
> PSETEX k 0 v
(error) ERR invalid expire time in 'psetex' command
> PSETEX k -1 v
(error) ERR invalid expire time in 'psetex' command
> PSETEX k x v
(error) ERR value is not an integer or out of range
> PSETEX k 9223372036854775807 v
(error) ERR invalid expire time in 'psetex' command
> GET k
"w"
> RPUSH l a
(integer) 1
> SETEX l 10 v
OK
> TYPE l
string

== GETSET
> GETSET k v
(nil)
> GETSET k w
"v"
> GET k
"w"
> EXPIRE k 100
(integer) 1
> GETSET k x
"w"
> TTL k
(integer) -1
> RPUSH l a
(integer) 1
> GETSET l v
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LLEN l
(integer) 1

== GETDEL
> SET k v
OK
> GETDEL k
"v"
> GETDEL k
(nil)
> EXISTS k
(integer) 0
> RPUSH l a
(integer) 1
> GETDEL l
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> EXISTS l
(integer) 1

== GETEX sets, keeps and removes the expiry
> SET k v
OK
> GETEX k
"v"
> TTL k
(integer) -1
> GETEX k EX 100
"v"
> TTL k
~ \(integer\) (99|100)
> GETEX k PX 200000
"v"
> TTL k
~ \(integer\) (199|200)
> GETEX k EXAT 9999999999
"v"
> EXPIRETIME k
(integer) 9999999999
> GETEX k PXAT 9999999999123
"v"
> PEXPIRETIME k
(integer) 9999999999123
> GETEX k
"v"
> PEXPIRETIME k
(integer) 9999999999123
> GETEX k PERSIST
"v"
> TTL k
(integer) -1
> GETEX k PERSIST
"v"
> GETEX nokey
(nil)
> GETEX nokey EX 10
(nil)
> EXISTS nokey
(integer) 0

== GETEX in the past removes the key after reading it
> SET k v
OK
> GETEX k EXAT 1
"v"
> EXISTS k
(integer) 0
> SET k v
OK
> GETEX k PXAT 1
"v"
> GET k
(nil)

== GETEX rejects what is wrong
> SET k v
OK
> RPUSH l a
(integer) 1
> GETEX k EX
(error) ERR syntax error
> GETEX k EX 0
(error) ERR invalid expire time in 'getex' command
> GETEX k EX -1
(error) ERR invalid expire time in 'getex' command
> GETEX k PX abc
(error) ERR value is not an integer or out of range
> GETEX k EX 9223372036854775807
(error) ERR invalid expire time in 'getex' command
> GETEX k EXAT 0
(error) ERR invalid expire time in 'getex' command
> GETEX k EX 10 PX 10
(error) ERR syntax error
> GETEX k PERSIST EX 10
(error) ERR syntax error
> GETEX k EX 10 PERSIST
(error) ERR syntax error
> GETEX k KEEPTTL
(error) ERR syntax error
> GETEX k NX
(error) ERR syntax error
> GETEX k XX
(error) ERR syntax error
> GETEX k GET
(error) ERR syntax error
> GETEX k foo
(error) ERR syntax error
> GETEX l
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GETEX l EX 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GETEX l foo
(error) ERR syntax error
> GETEX nokey foo
(error) ERR syntax error
> GETEX nokey EX 0
(nil)
> TTL k
(integer) -1

== APPEND
> APPEND k abc
(integer) 3
> APPEND k ""
(integer) 3
> APPEND k def
(integer) 6
> GET k
"abcdef"
> SET n 12
OK
> OBJECT ENCODING n
"int"
> APPEND n 3
(integer) 3
> GET n
"123"
> OBJECT ENCODING n
"raw"
> INCR n
(integer) 124
> EXPIREAT k 9999999999
(integer) 1
> APPEND k x
(integer) 7
> EXPIRETIME k
(integer) 9999999999
> APPEND new ""
(integer) 0
> EXISTS new
(integer) 1
> RPUSH l a
(integer) 1
> APPEND l x
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== STRLEN
> SET k hello
OK
> STRLEN k
(integer) 5
> SET k 12345678
OK
> STRLEN k
(integer) 8
> SET k -5
OK
> STRLEN k
(integer) 2
> STRLEN nokey
(integer) 0
> HSET h f v
(integer) 1
> STRLEN h
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== INCR and DECR
> INCR n
(integer) 1
> INCR n
(integer) 2
> GET n
"2"
> DECR n
(integer) 1
> DECR n
(integer) 0
> DECR n
(integer) -1
> DECR fresh
(integer) -1
> INCRBY n 10
(integer) 9
> DECRBY n 4
(integer) 5
> INCRBY n -100
(integer) -95
> DECRBY n -7
(integer) -88
> INCRBY n 0
(integer) -88
> GET n
"-88"
> OBJECT ENCODING n
"int"

== counters keep their expiry
> SET n 5 EXAT 9999999999
OK
> INCR n
(integer) 6
> EXPIRETIME n
(integer) 9999999999
> DECRBY n 3
(integer) 3
> INCRBYFLOAT n 0.5
"3.5"
> EXPIRETIME n
(integer) 9999999999
> GET n
"3.5"

== counters at the limits of 64 bits
> SET n 9223372036854775806
OK
> INCR n
(integer) 9223372036854775807
> INCR n
(error) ERR increment or decrement would overflow
> GET n
"9223372036854775807"
> INCRBY n 1
(error) ERR increment or decrement would overflow
> DECRBY n -1
(error) ERR increment or decrement would overflow
> SET n -9223372036854775807
OK
> DECR n
(integer) -9223372036854775808
> DECR n
(error) ERR increment or decrement would overflow
> INCRBY n -1
(error) ERR increment or decrement would overflow
> DECRBY n 1
(error) ERR increment or decrement would overflow
> GET n
"-9223372036854775808"
> DECRBY n -9223372036854775808
(error) ERR decrement would overflow
> INCRBY n 9223372036854775807
(integer) -1
> INCRBY n 9223372036854775808
(error) ERR value is not an integer or out of range
> INCRBY n -9223372036854775808
(error) ERR increment or decrement would overflow
> DECRBY n 9223372036854775807
(integer) -9223372036854775808
> GET n
"-9223372036854775808"

== counters of what is no integer
> SET k abc
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k ""
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k " 1"
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k "1 "
OK
> DECR k
(error) ERR value is not an integer or out of range
> SET k 01
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k +1
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k -0
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k 1.0
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k 9223372036854775808
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k 0x10
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k "1\x00"
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k 00
OK
> INCRBY k 1
(error) ERR value is not an integer or out of range
> SET k -
OK
> INCR k
(error) ERR value is not an integer or out of range
> SET k 1
OK
> INCRBY k abc
(error) ERR value is not an integer or out of range
> INCRBY k 1.5
(error) ERR value is not an integer or out of range
> INCRBY k ""
(error) ERR value is not an integer or out of range
> INCRBY k " 1"
(error) ERR value is not an integer or out of range
> INCRBY k 01
(error) ERR value is not an integer or out of range
> DECRBY k abc
(error) ERR value is not an integer or out of range
> GET k
"1"
> RPUSH l a
(integer) 1
> INCR l
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> INCRBY l abc
(error) ERR value is not an integer or out of range
> INCRBYFLOAT l 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> INCRBYFLOAT l abc
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== INCRBYFLOAT
> INCRBYFLOAT f 1
"1"
> INCRBYFLOAT f 0.25
"1.25"
> INCRBYFLOAT f -1.25
"0"
> GET f
"0"
> INCRBYFLOAT f 3.0e3
"3000"
> INCRBYFLOAT f 1e-5
"3000.00001000000000007"
> SET f 10.50
OK
> INCRBYFLOAT f 0.1
"10.6"
> INCRBYFLOAT f -5
"5.6"
> SET f 5.0e3
OK
> INCRBYFLOAT f 2.0e2
"5200"
> SET f 0.1
OK
> INCRBYFLOAT f 0.2
"0.3"
> SET f 3
OK
> INCRBYFLOAT f 1.000000000000000005
"4.00000000000000001"
> SET f 1e15
OK
> INCRBYFLOAT f 0.1
"1000000000000000.0999755859375"
> SET f 1234567890123456
OK
> INCRBYFLOAT f 0.5
"1234567890123456.5"
> SET f 1
OK
> INCRBYFLOAT f 1e-17
"1.00000000000000001"
> OBJECT ENCODING f
"embstr"
> INCRBYFLOAT f 99999999999999999999
"100000000000000000000"
> SET f 0x10
OK
> INCRBYFLOAT f 1
"17"
> SET f -1.5
OK
> INCRBYFLOAT f 1.5
"0"
> GET f
"0"
> SET f 0.0
OK
> INCRBYFLOAT f -0.0
"0"

== INCRBYFLOAT of what is no number
> SET k abc
OK
> INCRBYFLOAT k 1
(error) ERR value is not a valid float
> SET k 1
OK
> INCRBYFLOAT k abc
(error) ERR value is not a valid float
> INCRBYFLOAT k ""
(error) ERR value is not a valid float
> INCRBYFLOAT k " 1"
(error) ERR value is not a valid float
> INCRBYFLOAT k "1 "
(error) ERR value is not a valid float
> INCRBYFLOAT k 1.2.3
(error) ERR value is not a valid float
> INCRBYFLOAT k nan
(error) ERR value is not a valid float
> INCRBYFLOAT k inf
(error) ERR increment would produce NaN or Infinity
> INCRBYFLOAT k -inf
(error) ERR increment would produce NaN or Infinity
> INCRBYFLOAT k 1e400
"10000000000000000000281880683947586514586453433629052038625910693539685534008629862039363994848324160522094053927317616200295822777259255734023828976593340661017797447434546173917862448116674971723778943824391593338047470675026246684401359237513603830343735485505244955964979021825038280091068414947402456898653040951017512658092615827588920183472511643316591362664138176309734806343732497430221946880"
> SET k " 1"
OK
> INCRBYFLOAT k 1
(error) ERR value is not a valid float
> SET k ""
OK
> INCRBYFLOAT k 1
(error) ERR value is not a valid float
> SET k nan
OK
> INCRBYFLOAT k 1
(error) ERR value is not a valid float
> SET k inf
OK
> INCRBYFLOAT k 1
(error) ERR increment would produce NaN or Infinity
> SET k 1e308
OK
> INCRBYFLOAT k 1e308
"199999999999999999993371759311691291321120199694831134415594095989843469737676123744200253843777078640893494450108026446304269499187921167194841628860392837535918200039206381557326219209014213335878306791577877829121087126122536729803237260434173178506889763247582601711514636284849020905456510092687857156096"

== MSET and MGET
> MSET a 1 b 2 c 3
OK
> MGET a b c
1) "1"
2) "2"
3) "3"
> MGET a nokey a
1) "1"
2) (nil)
3) "1"
> MSET a x a y
OK
> GET a
"y"
> MSET a 1 b
(error) ERR wrong number of arguments for 'mset' command
> RPUSH l e
(integer) 1
> MGET a l b
1) "y"
2) (nil)
3) "2"
> MSET l v a w
OK
> GET l
"v"
> EXPIRE a 100
(integer) 1
> MSET a 1
OK
> TTL a
(integer) -1

== MSETNX sets all or nothing
> MSETNX a 1 b 2
(integer) 1
> MGET a b
1) "1"
2) "2"
> MSETNX b 3 c 4
(integer) 0
> MGET b c
1) "2"
2) (nil)
> MSETNX c 1 c 2
(integer) 1
> GET c
"2"
> MSETNX d 1 e
(error) ERR wrong number of arguments for 'msetnx' command
> RPUSH l x
(integer) 1
> MSETNX l 1 m 2
(integer) 0
> EXISTS m
(integer) 0

== GETRANGE and SUBSTR
> SET k "Hello World"
OK
> GETRANGE k 0 4
"Hello"
> GETRANGE k 0 -1
"Hello World"
> GETRANGE k -5 -1
"World"
> GETRANGE k -5 100
"World"
> GETRANGE k 5 2
""
> GETRANGE k 100 200
""
> GETRANGE k -100 -50
"H"
> GETRANGE k -100 3
"Hell"
> GETRANGE k 0 0
"H"
> GETRANGE k -1 -2
""
> GETRANGE k 11 11
""
> GETRANGE k 10 10
"d"
> GETRANGE k 0 9223372036854775807
"Hello World"
> GETRANGE k -9223372036854775808 -1
"Hello World"
> GETRANGE k -9223372036854775808 9223372036854775807
"Hello World"
> GETRANGE nokey 0 -1
""
> SUBSTR k 6 -1
"World"
> SUBSTR nokey 0 -1
""
> SET k 12345
OK
> GETRANGE k 1 2
"23"
> SET k ""
OK
> GETRANGE k 0 -1
""
> GETRANGE k a 1
(error) ERR value is not an integer or out of range
> GETRANGE k 0 b
(error) ERR value is not an integer or out of range
> GETRANGE nokey 0 b
(error) ERR value is not an integer or out of range
> RPUSH l a
(integer) 1
> GETRANGE l 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GETRANGE l x 1
(error) ERR value is not an integer or out of range
> SUBSTR l 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== SETRANGE
> SET k "Hello World"
OK
> SETRANGE k 6 Redis
(integer) 11
> GET k
"Hello Redis"
> SETRANGE k 11 "!!"
(integer) 13
> GET k
"Hello Redis!!"
> SETRANGE k 0 J
(integer) 13
> SETRANGE new 3 abc
(integer) 6
> GET new
"\x00\x00\x00abc"
> SETRANGE new 0 ""
(integer) 6
> SETRANGE empty 0 ""
(integer) 0
> SETRANGE empty 10 ""
(integer) 0
> EXISTS empty
(integer) 0
> SET n 123
OK
> SETRANGE n 1 x
(integer) 3
> GET n
"1x3"
> OBJECT ENCODING n
"raw"
> SETRANGE n -1 x
(error) ERR offset is out of range
> SETRANGE n a x
(error) ERR value is not an integer or out of range
> SETRANGE nokey -1 x
(error) ERR offset is out of range
> SETRANGE nokey -1 ""
(error) ERR offset is out of range
> SETRANGE nokey abc ""
(error) ERR value is not an integer or out of range
> EXISTS nokey
(integer) 0
> RPUSH l a
(integer) 1
> SETRANGE l 0 x
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SETRANGE l 0 ""
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SETRANGE l -1 x
(error) ERR offset is out of range
> EXPIREAT k 9999999999
(integer) 1
> SETRANGE k 0 x
(integer) 13
> EXPIRETIME k
(integer) 9999999999

== SETRANGE stays below the greatest length
> SETRANGE k 536870912 x
(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)
> SETRANGE k 536870911 xy
(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)
> SETRANGE k 9223372036854775807 x
(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)
> SETRANGE k 4294967296 x
(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)
> EXISTS k
(integer) 0
> SET k abc
OK
> SETRANGE k 536870910 xyz
(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)
> GET k
"abc"

== LCS
> MSET a ohmytext b mynewtext
OK
> LCS a b
"mytext"
> LCS a b LEN
(integer) 6
> LCS a b IDX
1) "matches"
2) 1) 1) 1) (integer) 4
         2) (integer) 7
      2) 1) (integer) 5
         2) (integer) 8
   2) 1) 1) (integer) 2
         2) (integer) 3
      2) 1) (integer) 0
         2) (integer) 1
3) "len"
4) (integer) 6
resp3:
1# "matches" =>
     1) 1) 1) (integer) 4
           2) (integer) 7
        2) 1) (integer) 5
           2) (integer) 8
     2) 1) 1) (integer) 2
           2) (integer) 3
        2) 1) (integer) 0
           2) (integer) 1
2# "len" => (integer) 6
> LCS a b IDX MINMATCHLEN 4
1) "matches"
2) 1) 1) 1) (integer) 4
         2) (integer) 7
      2) 1) (integer) 5
         2) (integer) 8
3) "len"
4) (integer) 6
resp3:
1# "matches" =>
     1) 1) 1) (integer) 4
           2) (integer) 7
        2) 1) (integer) 5
           2) (integer) 8
2# "len" => (integer) 6
> LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN
1) "matches"
2) 1) 1) 1) (integer) 4
         2) (integer) 7
      2) 1) (integer) 5
         2) (integer) 8
      3) (integer) 4
3) "len"
4) (integer) 6
resp3:
1# "matches" =>
     1) 1) 1) (integer) 4
           2) (integer) 7
        2) 1) (integer) 5
           2) (integer) 8
        3) (integer) 4
2# "len" => (integer) 6
> LCS a b IDX WITHMATCHLEN
1) "matches"
2) 1) 1) 1) (integer) 4
         2) (integer) 7
      2) 1) (integer) 5
         2) (integer) 8
      3) (integer) 4
   2) 1) 1) (integer) 2
         2) (integer) 3
      2) 1) (integer) 0
         2) (integer) 1
      3) (integer) 2
3) "len"
4) (integer) 6
resp3:
1# "matches" =>
     1) 1) 1) (integer) 4
           2) (integer) 7
        2) 1) (integer) 5
           2) (integer) 8
        3) (integer) 4
     2) 1) 1) (integer) 2
           2) (integer) 3
        2) 1) (integer) 0
           2) (integer) 1
        3) (integer) 2
2# "len" => (integer) 6
> LCS a b WITHMATCHLEN
"mytext"
> LCS a b MINMATCHLEN 3
"mytext"
> LCS a b LEN IDX
(error) ERR If you want both the length and indexes, please just use IDX.
> LCS a b IDX LEN
(error) ERR If you want both the length and indexes, please just use IDX.
> LCS a nokey
""
> LCS nokey a LEN
(integer) 0
> LCS nokey nokey2 IDX
1) "matches"
2) (empty array)
3) "len"
4) (integer) 0
resp3:
1# "matches" => (empty array)
2# "len" => (integer) 0
> LCS nokey nokey2
""
> LCS a a
"ohmytext"
> LCS a b IDX MINMATCHLEN 0
1) "matches"
2) 1) 1) 1) (integer) 4
         2) (integer) 7
      2) 1) (integer) 5
         2) (integer) 8
   2) 1) 1) (integer) 2
         2) (integer) 3
      2) 1) (integer) 0
         2) (integer) 1
3) "len"
4) (integer) 6
resp3:
1# "matches" =>
     1) 1) 1) (integer) 4
           2) (integer) 7
        2) 1) (integer) 5
           2) (integer) 8
     2) 1) 1) (integer) 2
           2) (integer) 3
        2) 1) (integer) 0
           2) (integer) 1
2# "len" => (integer) 6
> LCS a b IDX MINMATCHLEN -5
1) "matches"
2) 1) 1) 1) (integer) 4
         2) (integer) 7
      2) 1) (integer) 5
         2) (integer) 8
   2) 1) 1) (integer) 2
         2) (integer) 3
      2) 1) (integer) 0
         2) (integer) 1
3) "len"
4) (integer) 6
resp3:
1# "matches" =>
     1) 1) 1) (integer) 4
           2) (integer) 7
        2) 1) (integer) 5
           2) (integer) 8
     2) 1) 1) (integer) 2
           2) (integer) 3
        2) 1) (integer) 0
           2) (integer) 1
2# "len" => (integer) 6
> LCS a b IDX MINMATCHLEN x
(error) ERR value is not an integer or out of range
> LCS a b IDX MINMATCHLEN
(error) ERR syntax error
> LCS a b foo
(error) ERR syntax error
> LCS a b idx minmatchlen 2 withmatchlen
1) "matches"
2) 1) 1) 1) (integer) 4
         2) (integer) 7
      2) 1) (integer) 5
         2) (integer) 8
      3) (integer) 4
   2) 1) 1) (integer) 2
         2) (integer) 3
      2) 1) (integer) 0
         2) (integer) 1
      3) (integer) 2
3) "len"
4) (integer) 6
resp3:
1# "matches" =>
     1) 1) 1) (integer) 4
           2) (integer) 7
        2) 1) (integer) 5
           2) (integer) 8
        3) (integer) 4
     2) 1) 1) (integer) 2
           2) (integer) 3
        2) 1) (integer) 0
           2) (integer) 1
        3) (integer) 2
2# "len" => (integer) 6
> RPUSH l x
(integer) 1
> LCS a l
(error) ERR The specified keys must contain string values
> LCS l a
(error) ERR The specified keys must contain string values
> LCS l a foo
(error) ERR The specified keys must contain string values
> SET n 12345
OK
> SET m 2345
OK
> LCS n m
"2345"
> SET e ""
OK
> LCS e a
""
> LCS e a IDX
1) "matches"
2) (empty array)
3) "len"
4) (integer) 0
resp3:
1# "matches" => (empty array)
2# "len" => (integer) 0

== string commands refuse other types
> HSET h f v
(integer) 1
> GET h
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GETSET h v
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GETDEL h
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GETEX h
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> APPEND h v
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> STRLEN h
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> INCR h
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> DECR h
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> INCRBY h 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> DECRBY h 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> INCRBYFLOAT h 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GETRANGE h 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SETRANGE h 0 v
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SET h v GET
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> MGET h
1) (nil)
> LCS h h
(error) ERR The specified keys must contain string values
> HGET h f
"v"

== string encodings
> SET k 123
OK
> OBJECT ENCODING k
"int"
> SET k -9223372036854775808
OK
> OBJECT ENCODING k
"int"
> SET k 9223372036854775807
OK
> OBJECT ENCODING k
"int"
> SET k 9223372036854775808
OK
> OBJECT ENCODING k
"embstr"
> SET k 0123
OK
> OBJECT ENCODING k
"embstr"
> SET k -0
OK
> OBJECT ENCODING k
"embstr"
> SET k $times(44,x)
OK
> OBJECT ENCODING k
"embstr"
> SET k $times(45,x)
OK
> OBJECT ENCODING k
"raw"
> SET k ""
OK
> OBJECT ENCODING k
"embstr"
> SET k 12345678901234567890
OK
> OBJECT ENCODING k
"embstr"
> APPEND k x
(integer) 21
> OBJECT ENCODING k
"raw"
> SET k 10
OK
> INCRBYFLOAT k 1
"11"
> OBJECT ENCODING k
"embstr"
> SET k 10
OK
> GETSET k 11
"10"
> OBJECT ENCODING k
"int"
> SETRANGE k 0 2
(integer) 2
> OBJECT ENCODING k
"raw"
> MSET a 1 b xx
OK
> OBJECT ENCODING a
"int"
> OBJECT ENCODING b
"embstr"
> SETNX n 5
(integer) 1
> OBJECT ENCODING n
"int"
> SETEX x 1000 5
OK
> OBJECT ENCODING x
"int"
> GETRANGE x 0 0
"5"
> OBJECT ENCODING x
"int"

== large values
> SET k $times(100000,ab)
OK
> STRLEN k
(integer) 200000
> GETRANGE k 99999 100003
"babab"
> [length] GET k
(integer) 200000
> APPEND k $times(100000,cd)
(integer) 400000
> GETRANGE k 199998 200001
"abcd"
> [length] GETDEL k
(integer) 400000
> EXISTS k
(integer) 0
> SET e $times(32768,0)
OK
> INCR e
(error) ERR value is not an integer or out of range

== SET IFEQ sets only over an equal value
@dunlin: a condition of Valkey 8.1
> SET k v
OK
> SET k w IFEQ other
(nil)
> GET k
"v"
> SET k w IFEQ v
OK
> GET k
"w"
> SET nokey w IFEQ ""
(nil)
> EXISTS nokey
(integer) 0
> SET k x IFEQ w GET
"w"
> SET k y IFEQ wrong GET
"x"
> GET k
"x"
> SET nokey w IFEQ x GET
(nil)
> EXISTS nokey
(integer) 0

== SET IFEQ goes with expiry options but with no other condition
@dunlin: a condition of Valkey 8.1
> SET k v
OK
> SET k w IFEQ v EXAT 9999999999
OK
> EXPIRETIME k
(integer) 9999999999
> SET k x ifeq w KEEPTTL
OK
> EXPIRETIME k
(integer) 9999999999
> SET k y IFEQ x
OK
> EXPIRETIME k
(integer) -1
> SET k v NX IFEQ y
(error) ERR syntax error
> SET k v IFEQ y XX
(error) ERR syntax error
> SET k v IFEQ
(error) ERR syntax error
> SET n 10
OK
> SET n 11 IFEQ 10
OK
> SET n 12 IFEQ 011
(nil)
> GET n
"11"

== SET IFEQ refuses other types
@dunlin: a condition of Valkey 8.1
> RPUSH l a
(integer) 1
> SET l v IFEQ a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SET l v IFEQ a GET
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LRANGE l 0 -1
1) "a"
