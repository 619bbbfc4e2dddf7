# Bits of strings: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP, BITFIELD.

== SETBIT and GETBIT
> SETBIT k 7 1
(integer) 0
> GET k
"\x01"
> SETBIT k 7 0
(integer) 1
> GET k
"\x00"
> SETBIT k 0 1
(integer) 0
> GETBIT k 0
(integer) 1
> GETBIT k 1
(integer) 0
> GETBIT k 100
(integer) 0
> GETBIT nokey 0
(integer) 0
> SETBIT k 100 1
(integer) 0
> STRLEN k
(integer) 13
> SETBIT k 100 1
(integer) 1
> SETBIT new 20 0
(integer) 0
> GET new
"\x00\x00\x00"
> STRLEN new
(integer) 3

== SETBIT on integers and longer strings
> SET n 1
OK
> OBJECT ENCODING n
"int"
> SETBIT n 6 1
(integer) 0
> GET n
"3"
> OBJECT ENCODING n
"raw"
> GETBIT n 7
(integer) 1
> SET m 1
OK
> GETBIT m 7
(integer) 1
> GETBIT m 8
(integer) 0
> OBJECT ENCODING m
"int"
> EXPIREAT n 9999999999
(integer) 1
> SETBIT n 6 0
(integer) 1
> EXPIRETIME n
(integer) 9999999999

== SETBIT and GETBIT reject bad offsets and values
> SETBIT k -1 1
(error) ERR bit offset is not an integer or out of range
> SETBIT k a 1
(error) ERR bit offset is not an integer or out of range
> SETBIT k 1.5 1
(error) ERR bit offset is not an integer or out of range
> SETBIT k 4294967296 1
(error) ERR bit offset is not an integer or out of range
> SETBIT k 4294967295 2
(error) ERR bit is not an integer or out of range
> SETBIT k 0 2
(error) ERR bit is not an integer or out of range
> SETBIT k 0 -1
(error) ERR bit is not an integer or out of range
> SETBIT k 0 a
(error) ERR bit is not an integer or out of range
> SETBIT k a 2
(error) ERR bit offset is not an integer or out of range
> GETBIT k -1
(error) ERR bit offset is not an integer or out of range
> GETBIT k a
(error) ERR bit offset is not an integer or out of range
> GETBIT k 4294967296
(error) ERR bit offset is not an integer or out of range
> GETBIT k 4294967295
(integer) 0
> GETBIT k 9223372036854775808
(error) ERR bit offset is not an integer or out of range
> EXISTS k
(integer) 0
> RPUSH l a
(integer) 1
> SETBIT l 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SETBIT l 0 2
(error) ERR bit is not an integer or out of range
> GETBIT l 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GETBIT l a
(error) ERR bit offset is not an integer or out of range
> SETBIT k 1
(error) ERR wrong number of arguments for 'setbit' command
> SETBIT k 1 1 1
(error) ERR wrong number of arguments for 'setbit' command
> GETBIT k
(error) ERR wrong number of arguments for 'getbit' command
> GETBIT k 1 1
(error) ERR wrong number of arguments for 'getbit' command

== BITCOUNT does not read the unit of a range that is reversed from the end
> SET k abc
OK
> BITCOUNT k -1 -4 nonsense
(error) ERR syntax error
> BITCOUNT k -4 -1 nonsense
(error) ERR syntax error
> BITCOUNT k 2 1 nonsense
(error) ERR syntax error

== BITCOUNT over bytes
> SET k foobar
OK
> BITCOUNT k
(integer) 26
> BITCOUNT k 0 0
(integer) 4
> BITCOUNT k 1 1
(integer) 6
> BITCOUNT k 0 -1
(integer) 26
> BITCOUNT k -2 -1
(integer) 7
> BITCOUNT k -100 100
(integer) 26
> BITCOUNT k 5 3
(integer) 0
> BITCOUNT k 100 200
(integer) 0
> BITCOUNT k 1 1 BYTE
(integer) 6
> BITCOUNT k -3 -5
(integer) 0
> BITCOUNT k -200 -100
(integer) 4
> BITCOUNT nokey
(integer) 0
> BITCOUNT nokey 0 -1
(integer) 0
> SET n 123
OK
> BITCOUNT n
(integer) 10
> SET e ""
OK
> BITCOUNT e
(integer) 0
> BITCOUNT e 0 -1
(integer) 0
> SET long $times(1000,u)
OK
> BITCOUNT long
(integer) 5000
> BITCOUNT long 3 997
(integer) 4975

== BITCOUNT over bits
> SET k foobar
OK
> BITCOUNT k 5 30 BIT
(integer) 17
> BITCOUNT k 0 0 BIT
(integer) 0
> BITCOUNT k 1 1 BIT
(integer) 1
> BITCOUNT k 0 -1 BIT
(integer) 26
> BITCOUNT k -8 -1 BIT
(integer) 4
> BITCOUNT k -1 -8 BIT
(integer) 0
> BITCOUNT k 40 100 bit
(integer) 4
> BITCOUNT k 0 47 BIT
(integer) 26
> BITCOUNT k 3 3 BIT
(integer) 0
> BITCOUNT k 7 8 BIT
(integer) 0

== BITCOUNT without an end
@reference-differs: Redis 8.0 asks for an end; Valkey 8.0 and later do not
> SET k foobar
OK
> BITCOUNT k 0
(integer) 26
> BITCOUNT k 1
(integer) 22
> BITCOUNT k -2
(integer) 7
> BITCOUNT k 100
(integer) 0
> BITCOUNT k x
(error) ERR value is not an integer or out of range
> BITCOUNT k 1 BIT
(error) ERR value is not an integer or out of range
> BITCOUNT nokey 0
(integer) 0
> BITCOUNT nokey x
(error) ERR value is not an integer or out of range
> RPUSH l a
(integer) 1
> BITCOUNT l 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== BITCOUNT rejects what is wrong
> SET k foobar
OK
> BITCOUNT
(error) ERR wrong number of arguments for 'bitcount' command
> BITCOUNT k a b
(error) ERR value is not an integer or out of range
> BITCOUNT k 0 b
(error) ERR value is not an integer or out of range
> BITCOUNT k 0 1 foo
(error) ERR syntax error
> BITCOUNT k 0 1 BIT foo
(error) ERR syntax error
> BITCOUNT nokey a b
(error) ERR value is not an integer or out of range
> BITCOUNT nokey 0 1 foo
(error) ERR syntax error
> RPUSH l a
(integer) 1
> BITCOUNT l
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITCOUNT l a b
(error) ERR value is not an integer or out of range
> BITCOUNT l 0 1 foo
(error) ERR syntax error

== BITPOS over bytes
> SET k "\xff\xf0\x00"
OK
> BITPOS k 0
(integer) 12
> BITPOS k 1
(integer) 0
> BITPOS k 1 2
(integer) -1
> BITPOS k 0 0 0
(integer) -1
> BITPOS k 0 0 1
(integer) 12
> BITPOS k 1 1
(integer) 8
> BITPOS k 1 -1
(integer) -1
> BITPOS k 0 -2
(integer) 12
> BITPOS k 0 0 -1
(integer) 12
> BITPOS k 1 5
(integer) -1
> BITPOS k 1 2 1
(integer) -1
> BITPOS nokey 0
(integer) 0
> BITPOS nokey 1
(integer) -1
> BITPOS nokey 0 0 -1
(integer) 0
> SET ones "\xff\xff"
OK
> BITPOS ones 0
(integer) 16
> BITPOS ones 0 0
(integer) 16
> BITPOS ones 0 0 -1
(integer) -1
> BITPOS ones 0 0 1
(integer) -1
> BITPOS ones 0 1
(integer) 16
> BITPOS ones 0 2
(integer) -1
> BITPOS ones 0 5
(integer) -1
> SET zeros "\x00\x00"
OK
> BITPOS zeros 1
(integer) -1
> BITPOS zeros 1 0 -1
(integer) -1
> BITPOS zeros 0
(integer) 0
> SET e ""
OK
> BITPOS e 0
(integer) -1
> BITPOS e 1
(integer) -1
> BITPOS e 0 0 -1
(integer) -1
> SET n 12
OK
> BITPOS n 1
(integer) 2
> SET long "$times(300,\x00)\x01"
OK
> BITPOS long 1
(integer) 2407
> SET long "$times(300,\xff)\x7f"
OK
> BITPOS long 0
(integer) 2400

== BITPOS over bits
> SET k "\x00\xff\xf0"
OK
> BITPOS k 1 7 15 BIT
(integer) 8
> BITPOS k 1 7 7 BIT
(integer) -1
> BITPOS k 0 8 -1 BIT
(integer) 20
> BITPOS k 0 8 19 BIT
(integer) -1
> BITPOS k 1 0 -1 BIT
(integer) 8
> BITPOS k 1 -20 -1 BIT
(integer) 8
> BITPOS k 1 9 12 BIT
(integer) 9
> BITPOS k 0 9 12 BIT
(integer) -1
> BITPOS k 0 20 21 BIT
(integer) 20
> BITPOS k 1 1 2 BYTE
(integer) 8
> BITPOS k 1 15 8 BIT
(integer) -1

== BITPOS rejects what is wrong
> SET k a
OK
> BITPOS k
(error) ERR wrong number of arguments for 'bitpos' command
> BITPOS k 2
(error) ERR The bit argument must be 1 or 0.
> BITPOS k -1
(error) ERR The bit argument must be 1 or 0.
> BITPOS k a
(error) ERR value is not an integer or out of range
> BITPOS k 1 a
(error) ERR value is not an integer or out of range
> BITPOS k 1 0 a
(error) ERR value is not an integer or out of range
> BITPOS k 1 0 0 foo
(error) ERR syntax error
> BITPOS k 1 0 0 BIT foo
(error) ERR syntax error
> BITPOS nokey 2
(error) ERR The bit argument must be 1 or 0.
> BITPOS nokey 1 a
(error) ERR value is not an integer or out of range
> BITPOS nokey 1 0 0 foo
(error) ERR syntax error
> RPUSH l a
(integer) 1
> BITPOS l 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITPOS l 2
(error) ERR The bit argument must be 1 or 0.
> BITPOS l 1 a
(error) ERR value is not an integer or out of range

== BITOP
> SET a "foobar"
OK
> SET b "abcdef"
OK
> BITOP AND d a b
(integer) 6
> GET d
"`bc`ab"
> BITOP OR d a b
(integer) 6
> GET d
"goofev"
> BITOP XOR d a b
(integer) 6
> GET d
"\a\r\x0c\x06\x04\x14"
> BITOP NOT d a
(integer) 6
> GET d
"\x99\x90\x90\x9d\x9e\x8d"
> BITOP not d d
(integer) 6
> GET d
"foobar"
> BITOP AND d a
(integer) 6
> GET d
"foobar"
> BITOP XOR d a a
(integer) 6
> GET d
"\x00\x00\x00\x00\x00\x00"

== BITOP pads shorter strings with zeros
> SET a "abc"
OK
> SET b "abcdef"
OK
> BITOP AND d a b
(integer) 6
> GET d
"abc\x00\x00\x00"
> BITOP OR d a b
(integer) 6
> GET d
"abcdef"
> BITOP XOR d a b nokey
(integer) 6
> GET d
"\x00\x00\x00def"
> BITOP OR d nokey a
(integer) 3
> GET d
"abc"
> BITOP AND d a nokey
(integer) 3
> GET d
"\x00\x00\x00"
> SET n 12
OK
> BITOP OR d n a
(integer) 3
> GET d
"qrc"
> OBJECT ENCODING d
"raw"
> SET long1 "$times(100,a)"
OK
> SET long2 "$times(101,b)"
OK
> BITOP XOR d long1 long2
(integer) 101
> BITCOUNT d
(integer) 203
> BITOP AND d long1 long2 long1 long2
(integer) 101
> BITCOUNT d
(integer) 200
> BITOP NOT d long2
(integer) 101
> BITCOUNT d
(integer) 505

== BITOP with nothing to combine removes the destination
> SET d v
OK
> BITOP AND d nokey
(integer) 0
> EXISTS d
(integer) 0
> SET d v
OK
> BITOP NOT d nokey
(integer) 0
> EXISTS d
(integer) 0
> SET e ""
OK
> SET d v
OK
> BITOP OR d e nokey
(integer) 0
> EXISTS d
(integer) 0
> RPUSH d x
(integer) 1
> SET a 1
OK
> BITOP OR d a
(integer) 1
> GET d
"1"
> SET d v EX 100
OK
> BITOP OR d a
(integer) 1
> TTL d
(integer) -1

== BITOP rejects what is wrong
> SET a x
OK
> BITOP
(error) ERR wrong number of arguments for 'bitop' command
> BITOP AND
(error) ERR wrong number of arguments for 'bitop' command
> BITOP AND d
(error) ERR wrong number of arguments for 'bitop' command
> BITOP foo d a
(error) ERR syntax error
> BITOP NOT d a a
(error) ERR BITOP NOT must be called with a single source key.
> BITOP NOT d a b c
(error) ERR BITOP NOT must be called with a single source key.
> RPUSH l a
(integer) 1
> BITOP AND d l
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITOP AND d a l
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITOP NOT d l
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITOP foo d l
(error) ERR syntax error
> EXISTS d
(integer) 0

== BITFIELD GET and SET
> BITFIELD k SET u8 0 255
1) (integer) 0
> BITFIELD k GET u8 0
1) (integer) 255
> BITFIELD k GET i8 0
1) (integer) -1
> BITFIELD k GET u4 0 GET u4 4 GET i4 4
1) (integer) 15
2) (integer) 15
3) (integer) -1
> BITFIELD k SET i8 8 -1
1) (integer) 0
> BITFIELD k GET u16 0
1) (integer) 65535
> BITFIELD k SET u8 #2 65 GET u8 #2
1) (integer) 0
2) (integer) 65
> GET k
"\xff\xffA"
> BITFIELD k GET u8 1000
1) (integer) 0
> BITFIELD k GET i64 0
1) (integer) -210006720905216
> BITFIELD k GET u63 0
1) (integer) 9223267033494323200
> BITFIELD k SET i64 0 -9223372036854775808
1) (integer) -210006720905216
> BITFIELD k GET i64 0
1) (integer) -9223372036854775808
> BITFIELD k SET u63 1 9223372036854775807
1) (integer) 0
> BITFIELD k GET u63 1
1) (integer) 9223372036854775807
> BITFIELD k GET i5 3 GET u5 3
1) (integer) -1
2) (integer) 31
> BITFIELD k SET u3 5 7
1) (integer) 7
> GET k
"\xff\xff\xff\xff\xff\xff\xff\xff"
> BITFIELD k
(empty array)
> BITFIELD nokey GET u8 0
1) (integer) 0
> EXISTS nokey
(integer) 0
> BITFIELD nokey
(empty array)
> EXISTS nokey
(integer) 0
> BITFIELD new SET u8 100 1
1) (integer) 0
> STRLEN new
(integer) 14

== BITFIELD INCRBY with each way of overflow
> BITFIELD k INCRBY u8 0 250
1) (integer) 250
> BITFIELD k INCRBY u8 0 10
1) (integer) 4
> BITFIELD k OVERFLOW SAT INCRBY u8 0 300
1) (integer) 255
> BITFIELD k OVERFLOW SAT INCRBY u8 0 -300
1) (integer) 0
> BITFIELD k OVERFLOW FAIL INCRBY u8 0 -1
1) (nil)
> BITFIELD k OVERFLOW FAIL INCRBY u8 0 255
1) (integer) 255
> BITFIELD k OVERFLOW FAIL INCRBY u8 0 1
1) (nil)
> BITFIELD k GET u8 0
1) (integer) 255
> BITFIELD k OVERFLOW WRAP INCRBY u8 0 3
1) (integer) 2
> BITFIELD s INCRBY i8 0 127
1) (integer) 127
> BITFIELD s INCRBY i8 0 1
1) (integer) -128
> BITFIELD s OVERFLOW SAT INCRBY i8 0 -1
1) (integer) -128
> BITFIELD s OVERFLOW SAT INCRBY i8 0 1000
1) (integer) 127
> BITFIELD s OVERFLOW FAIL INCRBY i8 0 1
1) (nil)
> BITFIELD s OVERFLOW FAIL INCRBY i8 0 -255
1) (integer) -128
> BITFIELD s OVERFLOW FAIL INCRBY i8 0 -256
1) (nil)
> BITFIELD s GET i8 0
1) (integer) -128
> BITFIELD w INCRBY i64 0 9223372036854775807
1) (integer) 9223372036854775807
> BITFIELD w INCRBY i64 0 1
1) (integer) -9223372036854775808
> BITFIELD w OVERFLOW SAT INCRBY i64 0 -1
1) (integer) -9223372036854775808
> BITFIELD w OVERFLOW FAIL INCRBY i64 0 -1
1) (nil)
> BITFIELD m OVERFLOW SAT INCRBY u4 0 100 OVERFLOW WRAP INCRBY u4 4 17 OVERFLOW FAIL INCRBY u4 8 16 GET u4 8
1) (integer) 15
2) (integer) 1
3) (nil)
4) (integer) 0
> BITFIELD f OVERFLOW FAIL INCRBY u2 0 9
1) (nil)
> EXISTS f
(integer) 1
> STRLEN f
(integer) 1

== BITFIELD SET obeys OVERFLOW
> BITFIELD k SET u8 0 300
1) (integer) 0
> BITFIELD k GET u8 0
1) (integer) 44
> BITFIELD k OVERFLOW SAT SET u8 0 300
1) (integer) 44
> BITFIELD k GET u8 0
1) (integer) 255
> BITFIELD k OVERFLOW FAIL SET u8 0 300
1) (nil)
> BITFIELD k OVERFLOW SAT SET i8 0 200 SET i8 0 -200
1) (integer) -1
2) (integer) 127
> BITFIELD k GET i8 0
1) (integer) -128
> BITFIELD k OVERFLOW FAIL SET i8 0 -129
1) (nil)
> BITFIELD k SET i4 0 100
1) (integer) -8
> BITFIELD k GET i4 0
1) (integer) 4
> BITFIELD k OVERFLOW SAT SET i8 0 -9223372036854775808 SET i8 0 -9223372036854775681 SET i8 0 -9223372036854775680
1) (integer) 64
2) (integer) 127
3) (integer) 127
> BITFIELD k SET u8 0 64
1) (integer) 128
> BITFIELD k SET u8 0 -1
1) (integer) 64
> BITFIELD k OVERFLOW SAT SET u8 0 -1
1) (integer) 255
> BITFIELD k OVERFLOW FAIL SET u8 0 -1
1) (nil)
> BITFIELD k GET u8 0
1) (integer) 255

== BITFIELD rejects what is wrong
> BITFIELD
(error) ERR wrong number of arguments for 'bitfield' command
> BITFIELD k GET
(error) ERR syntax error
> BITFIELD k GET u8
(error) ERR syntax error
> BITFIELD k GET u64 0
(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET u0 0
(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET i65 0
(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET i0 0
(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET x8 0
(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET 8 0
(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET u 0
(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD k GET u8 -1
(error) ERR bit offset is not an integer or out of range
> BITFIELD k GET u8 a
(error) ERR bit offset is not an integer or out of range
> BITFIELD k GET u8 #a
(error) ERR bit offset is not an integer or out of range
> BITFIELD k GET u8 #-1
(error) ERR bit offset is not an integer or out of range
> BITFIELD k GET u8 4294967289
1) (integer) 0
> BITFIELD k GET u8 4294967287
1) (integer) 0
> BITFIELD k GET u8 4294967288
1) (integer) 0
> BITFIELD k GET u8 #536870912
(error) ERR bit offset is not an integer or out of range
> BITFIELD k SET u8 0
(error) ERR syntax error
> BITFIELD k SET u8 0 a
(error) ERR value is not an integer or out of range
> BITFIELD k SET u8 0 9223372036854775808
(error) ERR value is not an integer or out of range
> BITFIELD k INCRBY u8 0 a
(error) ERR value is not an integer or out of range
> BITFIELD k INCRBY u8 0
(error) ERR syntax error
> BITFIELD k OVERFLOW
(error) ERR syntax error
> BITFIELD k OVERFLOW foo
(error) ERR Invalid OVERFLOW type specified
> BITFIELD k OVERFLOW foo INCRBY u8 0 1
(error) ERR Invalid OVERFLOW type specified
> BITFIELD k foo u8 0
(error) ERR syntax error
> BITFIELD k SET u8 0 1 foo
(error) ERR syntax error
> BITFIELD k SET u8 0 1 GET u8
(error) ERR syntax error
> EXISTS k
(integer) 0
> RPUSH l a
(integer) 1
> BITFIELD l GET u8 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITFIELD l SET u8 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITFIELD l GET u99 0
(error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
> BITFIELD l
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== BITFIELD_RO only gets
> SET k foobar
OK
> BITFIELD_RO k GET u8 0 GET u8 8
1) (integer) 102
2) (integer) 111
> BITFIELD_RO k SET u8 0 1
(error) ERR BITFIELD_RO only supports the GET subcommand
> BITFIELD_RO k INCRBY u8 0 1
(error) ERR BITFIELD_RO only supports the GET subcommand
> BITFIELD_RO k OVERFLOW SAT GET u8 0
1) (integer) 102
> BITFIELD_RO k GET u8 0 SET u8 0 1
(error) ERR BITFIELD_RO only supports the GET subcommand
> BITFIELD_RO k
(empty array)
> BITFIELD_RO nokey GET i8 0
1) (integer) 0
> BITFIELD_RO
(error) ERR wrong number of arguments for 'bitfield_ro' command
> GET k
"foobar"
> RPUSH l a
(integer) 1
> BITFIELD_RO l GET u8 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== bit commands refuse other types
> SADD s a
(integer) 1
> GETBIT s 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SETBIT s 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITCOUNT s
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITPOS s 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITFIELD s GET u8 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITFIELD s
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> BITOP AND d s
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> TYPE s
set
