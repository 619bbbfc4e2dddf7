# DUMP and RESTORE. The payloads are those of the reference, byte for byte, wherever the order of
# elements is defined.

== DUMP of strings
> SET k hello
OK
> DUMP k
"\x00\x05hello\x0c\x00\xa8\x04\xeb\xb6\x9f\x1e\xbeC"
> SET k ""
OK
> DUMP k
"\x00\x00\x0c\x00\x96\xedh\x80\xf5U<\x93"
> SET k 5
OK
> DUMP k
"\x00\xc0\x05\x0c\x00\xa8Yk\xa6y\x05-\x18"
> SET k -129
OK
> DUMP k
"\x00\xc1\x7f\xff\x0c\x00\xdc\x16\xb6\xe8\xae\xaa\x1a\xc9"
> SET k 100000
OK
> DUMP k
"\x00\xc2\xa0\x86\x01\x00\x0c\x00:R7\x90\x95\x058="
> SET k 4294967296
OK
> DUMP k
"\x00\n4294967296\x0c\x00n\xd5\xbd\b\xe0\xa6\xd8\x1f"
> SET k 012
OK
> DUMP k
"\x00\x03012\x0c\x00D\"W)\xaeTuE"
> SET k "\x00\xff"
OK
> DUMP k
"\x00\x02\x00\xff\x0c\x00>\x84\xfc\xeb\x9f\xc6\xab4"
> DUMP nokey
(nil)
> DUMP
(error) ERR wrong number of arguments for 'dump' command
> DUMP a b
(error) ERR wrong number of arguments for 'dump' command

== DUMP without compression
config set rdbcompression no
> SET k $times(70,ab)
OK
> DUMP k
"\x00@\x8cabababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababab\x0c\x00/\x9c9\xc0\xc1\x81;\x9d"
> RPUSH l $times(30,a) $times(100,b) 5
(integer) 3
> DUMP l
"\x12\x01\x02@\x90\x90\x00\x00\x00\x03\x00\x9eaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x1f\xe0dbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbf\x05\x01\xff\x0c\x00&GI\t\"f>!"
> HSET h $times(65,f) $times(70,v)
(integer) 1
> DUMP h
"\x04\x01@Afffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff@Fvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\x0c\x00T\xe7\xff.\xdc\xdf\xacY"

== DUMP with compression can be restored
> SET k $times(5000,abcdefg)
OK
> [keep=payload] DUMP k
(kept)
> RESTORE l 0 "$(payload)"
OK
> [length] GET l
(integer) 35000
> LCS k l LEN
(error) ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len
> RPUSH list $each(1..500,some-element-%)
(integer) 500
> [keep=payload] DUMP list
(kept)
> RESTORE list2 0 "$(payload)"
OK
> LLEN list2
(integer) 500
> LRANGE list2 250 252
1) "some-element-251"
2) "some-element-252"
3) "some-element-253"
> HSET hash $each(1..600,field-% value-%)
(integer) 600
> [keep=payload] DUMP hash
(kept)
> RESTORE hash2 0 "$(payload)"
OK
> HLEN hash2
(integer) 600
> HGET hash2 field-599
"value-599"
> OBJECT ENCODING hash2
"hashtable"
> SADD set $each(1..600,member-%)
(integer) 600
> [keep=payload] DUMP set
(kept)
> RESTORE set2 0 "$(payload)"
OK
> SCARD set2
(integer) 600
> SINTERCARD 2 set set2
(integer) 600
> ZADD zset $each(1..600,%.5 member-%)
(integer) 600
> [keep=payload] DUMP zset
(kept)
> RESTORE zset2 0 "$(payload)"
OK
> ZRANGE zset2 -2 -1 WITHSCORES
1) "member-599"
2) "599.5"
3) "member-600"
4) "600.5"
resp3:
1) 1) "member-599"
   2) (double) 599.5
2) 1) "member-600"
   2) (double) 600.5
> OBJECT ENCODING zset2
"skiplist"

== DUMP of packed values
config set rdbcompression no
> RPUSH l a b 1 -1 1000
(integer) 5
> DUMP l
"\x12\x01\x02\x15\x15\x00\x00\x00\x05\x00\x81a\x02\x81b\x02\x01\x01\xdf\xff\x02\xc3\xe8\x02\xff\x0c\x00\xfcg\x83\xdd+\xa5\xb9\xe9"
> SADD s 3 1 2
(integer) 3
> DUMP s
"\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\x01\x00\x02\x00\x03\x00\x0c\x00nth\"\x97D\xd3R"
> SADD s 70000
(integer) 1
> DUMP s
"\x0b\x18\x04\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00p\x11\x01\x00\x0c\x00$XQ\xe1\x19\xaf<c"
> SADD s -9223372036854775808
(integer) 1
> DUMP s
"\x0b0\b\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00p\x11\x01\x00\x00\x00\x00\x00\x0c\x00[\\Z\xcc\x88\r#\x9a"
> HSET h f v n 12
(integer) 2
> DUMP h
"\x10\x12\x12\x00\x00\x00\x04\x00\x81f\x02\x81v\x02\x81n\x02\x0c\x01\xff\x0c\x00\xca@\xa0A)q\x17="
> ZADD z 1 a 2.5 b inf c -inf d
(integer) 4
> DUMP z
"\x11%%\x00\x00\x00\b\x00\x81d\x02\x84-inf\x05\x81a\x02\x01\x01\x81b\x02\x832.5\x04\x81c\x02\x83inf\x04\xff\x0c\x00d\x9a\xad\xf7\xe0;\xfeF"

== DUMP of tables
config set zset-max-listpack-entries 0
config set hash-max-listpack-entries 0
> ZADD z 1 a 2.5 b inf c -inf d
(integer) 4
> DUMP z
"\x05\x04\x01c\x00\x00\x00\x00\x00\x00\xf0\x7f\x01b\x00\x00\x00\x00\x00\x00\x04@\x01a\x00\x00\x00\x00\x00\x00\xf0?\x01d\x00\x00\x00\x00\x00\x00\xf0\xff\x0c\x00K\xd7\xafS2\x1d\xfd\x17"
> HSET h f v
(integer) 1
> DUMP h
"\x04\x01\x01f\x01v\x0c\x00f\x84w\x96K\xac\x90\xb5"
> SADD s abc
(integer) 1
> DUMP s
"\x14\x0c\x0c\x00\x00\x00\x01\x00\x83abc\x04\xff\x0c\x00DRQJ\xa3\x02\x99\x99"

== DUMP of lists in several nodes
config set list-max-listpack-size 2
config set rdbcompression no
> RPUSH l 1 2 3 4 5
(integer) 5
> DUMP l
"\x12\x03\x02\x0b\x0b\x00\x00\x00\x02\x00\x01\x01\x02\x01\xff\x02\x0b\x0b\x00\x00\x00\x02\x00\x03\x01\x04\x01\xff\x02\t\t\x00\x00\x00\x01\x00\x05\x01\xff\x0c\x00v\xcfwG\x8f\x8bnh"
> RPUSH m $times(9000,x)
(integer) 1
> [length] DUMP m
(integer) 9015
> RPUSH m small
(integer) 2
> [length] DUMP m
(integer) 9031

== RESTORE with its options
> SET k value
OK
> [keep=payload] DUMP k
(kept)
> RESTORE l 0 "$(payload)"
OK
> GET l
"value"
> TTL l
(integer) -1
> RESTORE l 0 "$(payload)"
(error) BUSYKEY Target key name already exists.
> RESTORE l 100000 "$(payload)" REPLACE
OK
> TTL l
~ \(integer\) (99|100)
> RESTORE m 9999999999999 "$(payload)" ABSTTL
OK
> PEXPIRETIME m
(integer) 9999999999999
> RESTORE n 1 "$(payload)" ABSTTL
OK
> EXISTS n
(integer) 0
> RESTORE m 1 "$(payload)" ABSTTL REPLACE
OK
> EXISTS m
(integer) 0
> RESTORE n 0 "$(payload)" IDLETIME 1000
OK
> OBJECT IDLETIME n
~ \(integer\) 100\d
> RESTORE o 0 "$(payload)" FREQ 100
OK
> GET o
"value"
> RESTORE p 0 "$(payload)" replace absttl idletime 10
OK
> RESTORE q -1 "$(payload)"
(error) ERR Invalid TTL value, must be >= 0
> RESTORE q x "$(payload)"
(error) ERR value is not an integer or out of range
> RESTORE q 0 "$(payload)" foo
(error) ERR syntax error
> RESTORE q 0 "$(payload)" IDLETIME
(error) ERR syntax error
> RESTORE q 0 "$(payload)" IDLETIME -1
(error) ERR Invalid IDLETIME value, must be >= 0
> RESTORE q 0 "$(payload)" IDLETIME x
(error) ERR value is not an integer or out of range
> RESTORE q 0 "$(payload)" FREQ 256
(error) ERR Invalid FREQ value, must be >= 0 and <= 255
> RESTORE q 0 "$(payload)" FREQ -1
(error) ERR Invalid FREQ value, must be >= 0 and <= 255
> RESTORE q 0 "$(payload)" FREQ 1 IDLETIME 1
(error) ERR syntax error
> RESTORE q 0 "$(payload)" IDLETIME 1 FREQ 1
(error) ERR syntax error
> RESTORE l 0 broken
(error) BUSYKEY Target key name already exists.
> RESTORE l x broken
(error) BUSYKEY Target key name already exists.
> RESTORE q
(error) ERR wrong number of arguments for 'restore' command
> RESTORE q 0
(error) ERR wrong number of arguments for 'restore' command

== RESTORE replaces a value of another type
> RPUSH l a
(integer) 1
> [keep=payload] DUMP l
(kept)
> SET k v EX 100
OK
> RESTORE k 0 "$(payload)" REPLACE
OK
> TYPE k
list
> TTL k
(integer) -1

== RESTORE reads the encodings of older versions
> RESTORE list 0 "\x01\x03\x01a\x02bb\xc0\x05\x06\x00\xca\xcdP\xafC\x24#;"
OK
> LRANGE list 0 -1
1) "a"
2) "bb"
3) "5"
> OBJECT ENCODING list
"listpack"
> RESTORE ziplist 0 "\x0a@}}\x00\x00\x00y\x00\x00\x00\x0b\x00\x00\x01a\x03\xf1\x02\xfd\x02\xfe\x0d\x03\xfe\xff\x03\xc0\x7f\xff\x04\xf0p\x11\x01\x05\xd0\xc0\xabv\xff\x06\xe0\x00\x00\x00\x00\x00\x01\x00\x00\x0a@FbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbI\x01c\xff\x06\x00=\xe0x\xdfW\x93:\xfb"
OK
> LRANGE ziplist 0 -1
 1) "a"
 2) "0"
 3) "12"
 4) "13"
 5) "-1"
 6) "-129"
 7) "70000"
 8) "-9000000"
 9) "1099511627776"
10) "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
11) "c"
> OBJECT ENCODING ziplist
"quicklist"
> RESTORE quicklist 0 "\x0e\x02\x13\x13\x00\x00\x00\x10\x00\x00\x00\x03\x00\x00\x01a\x03\x01b\x03\xf2\xff\x11\x11\x00\x00\x00\x0d\x00\x00\x00\x02\x00\x00\x01c\x03\xfed\xff\x06\x00\x89 Q\x16\xe6\xd4\xb2|"
OK
> LRANGE quicklist 0 -1
1) "a"
2) "b"
3) "1"
4) "c"
5) "100"
> RESTORE zipmap 0 "\x09\x0d\x02\x01f\x01\x00v\x01g\x02\x0012\xff\x06\x00d\xf6*\x10\xc1\xd0\x8e\xfe"
OK
> HGETALL zipmap
1) "f"
2) "v"
3) "g"
4) "12"
resp3:
1# "f" => "v"
2# "g" => "12"
> OBJECT ENCODING zipmap
"listpack"
> RESTORE hash 0 "\x0d\x1d\x1d\x00\x00\x00\x1a\x00\x00\x00\x06\x00\x00\x01f\x03\x01v\x03\x01n\x03\xc090\x04\x01e\x03\x00\xff\x06\x00U\xa1\xfb\x06\xeaI<\x7f"
OK
> HGETALL hash
1) "f"
2) "v"
3) "n"
4) "12345"
5) "e"
6) ""
resp3:
1# "f" => "v"
2# "n" => "12345"
3# "e" => ""
> OBJECT ENCODING hash
"listpack"
> RESTORE zset 0 "\x0c\x1e\x1e\x00\x00\x00\x1a\x00\x00\x00\x06\x00\x00\x01a\x03\xf2\x02\x01b\x03\x032.5\x05\x01c\x03\xfed\xff\x06\x00<b\xb1\x129\"\xc29"
OK
> ZRANGE zset 0 -1 WITHSCORES
1) "a"
2) "1"
3) "b"
4) "2.5"
5) "c"
6) "100"
resp3:
1) 1) "a"
   2) (double) 1
2) 1) "b"
   2) (double) 2.5
3) 1) "c"
   2) (double) 100
> OBJECT ENCODING zset
"listpack"
> RESTORE zset1 0 "\x03\x05\x01m\x033.5\x01i\xfe\x01j\xff\x01n\x0217\x01o\x04-2.5\x06\x00P\xe3(\xa0?\xfc\xcf\x8f"
OK
> ZRANGE zset1 0 -1 WITHSCORES
 1) "j"
 2) "-inf"
 3) "o"
 4) "-2.5"
 5) "m"
 6) "3.5"
 7) "n"
 8) "17"
 9) "i"
10) "inf"
resp3:
1) 1) "j"
   2) (double) -inf
2) 1) "o"
   2) (double) -2.5
3) 1) "m"
   2) (double) 3.5
4) 1) "n"
   2) (double) 17
5) 1) "i"
   2) (double) inf
> RESTORE zset2 0 "\x05\x02\x01m\x00\x00\x00\x00\x00\x00\x0c@\x01i\x00\x00\x00\x00\x00\x00\xf0\xff\x08\x00\xac\xefq*]\xf5\x06\x92"
OK
> ZRANGE zset2 0 -1 WITHSCORES
1) "i"
2) "-inf"
3) "m"
4) "3.5"
resp3:
1) 1) "i"
   2) (double) -inf
2) 1) "m"
   2) (double) 3.5
> RESTORE set 0 "\x02\x03\x01x\x01y\xc0\x07\x06\x00\x86n\xd9\xa2i\xc3K\xf1"
OK
> [unordered] SMEMBERS set
1) "7"
2) "x"
3) "y"
resp3:
1~ "7"
2~ "x"
3~ "y"
> OBJECT ENCODING set
"listpack"
> RESTORE intset 0 "\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\xfb\xff\x03\x00F\x00\x06\x00H\x1b4\xcf>\xb9L]"
OK
> SMEMBERS intset
1) "-5"
2) "3"
3) "70"
resp3:
1~ "-5"
2~ "3"
3~ "70"
> RESTORE intset8 0 "\x0b \x08\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00@\x06\x00\x9f\xca\xd9\x9f\x96(\xbc6"
OK
> SMEMBERS intset8
1) "-1099511627776"
2) "3"
3) "4611686018427387904"
resp3:
1~ "-1099511627776"
2~ "3"
3~ "4611686018427387904"
> RESTORE h 0 "\x04\x02\x01f\x01v\xc190\xc2@\xe2\x01\x00\x06\x00\xffZ=\xb1Hb\xa4_"
OK
> [pairs] HGETALL h
1) "12345"
2) "123456"
3) "f"
4) "v"
resp3:
1# "12345" => "123456"
2# "f" => "v"
> OBJECT ENCODING h
"listpack"
> RESTORE lzf 0 "\x00\xc3\x07\x1b\x02abc\xe0\x0f\x02\x06\x00\x13\x0e\xf3\xa2\xf5}(b"
OK
> GET lzf
"abcabcabcabcabcabcabcabcabc"
> RESTORE int32 0 "\x00\xc2\xff\xff\xff\xff\x06\x00\xbb\xbf\x18\x0b\xc2'\xc9\xe3"
OK
> GET int32
"-1"
> OBJECT ENCODING int32
"int"
> RESTORE int16 0 "\x00\xc1\x00\x80\x06\x00#\xadn\xc7\xa6\xee&]"
OK
> GET int16
"-32768"
> RESTORE str 0 "\x00\x03123\x06\x00\xd8j\xf1\xf0\xf4\x01\xbb\xe0"
OK
> GET str
"123"
> OBJECT ENCODING str
"int"

== RESTORE refuses payloads that are no values
> RESTORE k 0 ""
(error) ERR DUMP payload version or checksum are wrong
> RESTORE k 0 abc
(error) ERR DUMP payload version or checksum are wrong
> RESTORE k 0 "\x00\x03abc\x09\x00\x09^a\xf1\x15\xf4\xc1"
(error) ERR DUMP payload version or checksum are wrong
> RESTORE k 0 "\x00\x03abc\x09\x00\x09^a\xf1\x15\xf4\xc1\x00"
(error) ERR DUMP payload version or checksum are wrong
> RESTORE k 0 "\x00\x04abc\x09\x00\x09^a\xf1\x15\xf4\xc1S"
(error) ERR DUMP payload version or checksum are wrong
> RESTORE k 0 "\x00\x03abc\x0d\x00{\x05\xb9\x8eF\xc7\xd5\""
(error) ERR DUMP payload version or checksum are wrong
> RESTORE k 0 "\x00\x03abc\xff\xff\\}\x07\xac\x1ax\xa7@"
(error) ERR DUMP payload version or checksum are wrong
> RESTORE k 0 "\x00 abc\x06\x00\xa1X\xb2\xf5X\xe0\x162"
(error) ERR Bad data format
> RESTORE k 0 "P\x01a\x06\x00\x00\xe6\x07\x07\x07\x98p\xbc"
(error) ERR Bad data format
> RESTORE k 0 "\x06\x01a\x06\x00m\xddQBC>[\x99"
(error) ERR Bad data format
> RESTORE k 0 "\x06\x00\xcbv4\xc0\xfa*\x9eI"
(error) ERR Bad data format
> RESTORE k 0 "\x0b\x0b\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x02\x06\x00f\xbdJ\x99\x8cVQ\xf9"
(error) ERR Bad data format
> RESTORE k 0 "\x0b\x0b\x03\x00\x00\x00\x01\x00\x00\x00abc\x06\x00]\xee\x97\xe4\xd9\xf5\x99\x8f"
(error) ERR Bad data format
> RESTORE k 0 "\x0d\x03\x00\x00\x00\x06\x00 Y\xbe\xeb\xdf\xb1\x94\xed"
(error) ERR Bad data format
> RESTORE k 0 "\x0d\x12\x11\x00\x00\x00\x0d\x00\x00\x00\x02\x00\x00\x01a\x03\x01b\xffx\x06\x00O\xd5ACkp\x8aV"
(error) ERR Bad data format
> RESTORE k 0 "\x01\x00\x06\x00\xcd\x15ML\x99B\x7f\xc5"
(error) ERR Bad data format
> RESTORE k 0 "\x02\x00\x06\x00\xac#Q\x80n\xdc\x05{"
(error) ERR Bad data format
> RESTORE k 0 "\x04\x00\x06\x00\x05\xdc\xfe@\xd2\xc7\xa9,"
(error) ERR Bad data format
> RESTORE k 0 "\x05\x00\x06\x00\x03\xbf\x87\xcc\xb1\xafH\xa0"
(error) ERR Bad data format
> RESTORE k 0 "\x0a\x0b\x0b\x00\x00\x00\x0a\x00\x00\x00\x00\x00\xff\x06\x00\xe8\xf7\xa7Y\xde\x9f}\xe2"
(error) ERR Bad data format
> RESTORE k 0 "\x00\xc3\x03\x10\x02ab\x06\x00\x88\xf8\xf4s\x9b\x0c\xc2f"
(error) ERR Bad data format
> RESTORE k 0 "\x00\x80\xff\xff\xff\xff\x06\x00\x8a\x84\xdb\xa9\xed\xd8|\x1e"
(error) ERR Bad data format
> RESTORE k 0 "\x02\x02\x01f\x01f\x06\x00w\xcd\x81\xb7\xfe\xc0\xbd\xb8"
(error) ERR Bad data format
> RESTORE k 0 "\x05\x01\x01m\x00\x00\x00\x00\x00\x00\xf8\x7f\x06\x00\xa5Yc\x9b-\x98\xd5\x11"
(error) ERR Bad data format
> EXISTS k
(integer) 0
> RESTORE k 0 "\x00\x03abc\x09\x00\x09^a\xf1\x15\xf4\xc1S"
OK
> GET k
"abc"
> RESTORE l 0 "\x00\x03abc\x00\x00\x847l}N\x0d\x008"
OK
> GET l
"abc"

== DEBUG SET-SKIP-CHECKSUM-VALIDATION lets RESTORE take any checksum, not any version
> RESTORE k 0 "\x00\x01v\x0a\x00\x01\x02\x03\x04\x05\x06\x07\x08"
(error) ERR DUMP payload version or checksum are wrong
> DEBUG SET-SKIP-CHECKSUM-VALIDATION 1
OK
> RESTORE k 0 "\x00\x01v\x0a\x00\x01\x02\x03\x04\x05\x06\x07\x08"
OK
> GET k
"v"
> DUMP k
"\x00\x01v\x0c\x00Z~\xfar\xe3\x12\x14\x87"
> RESTORE l 0 "\x00\x01v\x0d\x00\x01\x02\x03\x04\x05\x06\x07\x08"
(error) ERR DUMP payload version or checksum are wrong
> RESTORE l 0 "\x00\x01v"
(error) ERR DUMP payload version or checksum are wrong
> RESTORE l 0 ""
(error) ERR DUMP payload version or checksum are wrong
> DEBUG SET-SKIP-CHECKSUM-VALIDATION none
OK
> RESTORE l 0 "\x00\x01v\x0a\x00\x01\x02\x03\x04\x05\x06\x07\x08"
(error) ERR DUMP payload version or checksum are wrong
> DEBUG SET-SKIP-CHECKSUM-VALIDATION -1
OK
> RESTORE l 0 "\x00\x01v\x0a\x00\x01\x02\x03\x04\x05\x06\x07\x08"
OK
> DEBUG SET-SKIP-CHECKSUM-VALIDATION
(error) ERR unknown subcommand or wrong number of arguments for 'SET-SKIP-CHECKSUM-VALIDATION'. Try DEBUG HELP.
> DEBUG SET-SKIP-CHECKSUM-VALIDATION 0 1
(error) ERR unknown subcommand or wrong number of arguments for 'SET-SKIP-CHECKSUM-VALIDATION'. Try DEBUG HELP.
> DEBUG SET-SKIP-CHECKSUM-VALIDATION " 0"
OK
> RESTORE l 0 "\x00\x01v\x0a\x00\x01\x02\x03\x04\x05\x06\x07\x08" REPLACE
(error) ERR DUMP payload version or checksum are wrong

== RESTORE with sanitizing refuses packed values that do not add up
config set sanitize-dump-payload yes
> RESTORE k 0 "\x0d\x14\x14\x00\x00\x00\x10\x00\x00\x00\x03\x00\x00\x01a\x03\x01b\x03\x01c\xff\x06\x00!o\xc4\xd9\xc5L\x04m"
(error) ERR Bad data format
> RESTORE k 0 "\x0d\x17\x17\x00\x00\x00\x13\x00\x00\x00\x04\x00\x00\x01a\x03\x01b\x03\x01a\x03\x01c\xff\x06\x009F\x04\xdb\x15\x1e\x1a\xa4"
(error) ERR Bad data format
> RESTORE k 0 "\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\x03\x00\x01\x00\x06\x00[\x17\xec\x83v!\x05\xef"
(error) ERR Bad data format
> RESTORE k 0 "\x0a\x16\x16\x00\x00\x00\x12\x00\x00\x00\x03\x00\x00 a\x03\x03bcd\x05\x01e\xff\x06\x00\x80H\"d.k\xe0\x1e"
(error) ERR Bad data format
> RESTORE k 0 "\x10\x0e\x0f\x00\x00\x00\x02\x00\x81a\x02\x81b\x05\xff\xff\x06\x00-\xf2\xe1I\x09\xef[["
(error) ERR Bad data format
> RESTORE k 0 "\x10\x0d\x0d\x00\x00\x00\x02\x00\x81a\x02\xb1b\x02\xff\x06\x00?\xb8\xa5\\C\x890\xa0"
(error) ERR Bad data format
> EXISTS k
(integer) 0

== RESTORE takes all versions up to that of the reference, and what follows a value
> RESTORE k 0 "\x00\x03abc\x0b\x00\xb0s\x8dN\xbc\xedKk"
OK
> RESTORE k 0 "\x00\x03abc\x0c\x00\x12\xda\x04\xfd\xbbX<\xab" REPLACE
OK
> RESTORE k 0 "\x00\x03abcjunk\x0c\x00\x11\x01]\xdc\x0duZ\x16" REPLACE
OK
> GET k
"abc"
> RESTORE s 0 "\x14\x0d\x0d\x00\x00\x00\x02\x00\x81a\x02\x81b\x02\xff\x0b\x00\x0a\xec\x0a\xb4I\xa3\xd6T"
OK
> SMEMBERS s
1) "a"
2) "b"
resp3:
1~ "a"
2~ "b"
> OBJECT ENCODING s
"listpack"
> RESTORE n 0 "\x14\x0a\x0d\x00\x00\x00\x02\x00\x81a\x02\x0b\x00V\xf3\xe6\xc9\x88K$N"
(error) ERR Bad data format
> RESTORE n 0 "\x14\x07\x07\x00\x00\x00\x00\x00\xff\x0b\x00+xG]\x0dl\x144"
(error) ERR Bad data format
> RESTORE n 0 "\x0f\x00\x0c\x00\xa5$+\xcd{\xfc\x1e\x82"
(error) ERR Bad data format
