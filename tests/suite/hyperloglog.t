# Cardinality estimates: PFADD, PFCOUNT, PFMERGE.

== PFADD and PFCOUNT
> PFADD h a b c d e
(integer) 1
> PFCOUNT h
(integer) 5
> PFADD h a b
(integer) 0
> PFADD h f
(integer) 1
> PFCOUNT h
(integer) 6
> PFADD h
(integer) 0
> PFADD new
(integer) 1
> EXISTS new
(integer) 1
> PFCOUNT new
(integer) 0
> PFADD new
(integer) 0
> PFCOUNT nokey
(integer) 0
> TYPE h
string
> PFADD h "" "a\x00b" "\xff"
(integer) 1
> PFCOUNT h
(integer) 9
> STRLEN h
(integer) 45

== PFCOUNT of several keys counts their union
> PFADD a 1 2 3
(integer) 1
> PFADD b 3 4 5
(integer) 1
> PFCOUNT a b
(integer) 5
> PFCOUNT a b nokey
(integer) 5
> PFCOUNT nokey nokey2
(integer) 0
> PFCOUNT a a
(integer) 3

== PFMERGE
> PFADD a 1 2 3
(integer) 1
> PFADD b 3 4 5
(integer) 1
> PFMERGE d a b
OK
> PFCOUNT d
(integer) 5
> PFMERGE d
OK
> PFCOUNT d
(integer) 5
> PFMERGE new
OK
> EXISTS new
(integer) 1
> PFCOUNT new
(integer) 0
> PFMERGE a nokey
OK
> PFCOUNT a
(integer) 3
> PFMERGE e nokey nokey2
OK
> EXISTS e
(integer) 1
> PFMERGE a b
OK
> PFCOUNT a
(integer) 5

== PFADD fills an estimate as the reference does
> PFADD h $each(1..1000,element:%)
(integer) 1
> PFCOUNT h
(integer) 997
> PFADD h $each(1001..5000,element:%)
(integer) 1
> PFCOUNT h
(integer) 5005
> PFADD h $each(5001..20000,element:%)
(integer) 1
> PFCOUNT h
(integer) 19987
> STRLEN h
(integer) 12304
> PFADD i $each(15001..25000,element:%)
(integer) 1
> PFCOUNT h i
(integer) 24924
> PFMERGE j h i
OK
> PFCOUNT j
(integer) 24924
> STRLEN j
(integer) 12304

== the stored bytes are those of the reference
> PFADD h a b c
(integer) 1
> GETRANGE h 0 3
"HYLL"
> GETRANGE h 4 4
"\x01"
> GETRANGE h 16 -1
"`\xf3\x80P\xb1\x84K\xfb\x80BZ"
> STRLEN h
(integer) 27
> PFCOUNT h
(integer) 3
> GETRANGE h 8 15
"\x03\x00\x00\x00\x00\x00\x00\x00"

== sparse becomes dense
config set hll-sparse-max-bytes 100
> PFADD h $each(1..10,e%)
(integer) 1
> PFDEBUG ENCODING h
sparse
> PFADD h $each(11..100,e%)
(integer) 1
> PFDEBUG ENCODING h
dense
> STRLEN h
(integer) 12304
> PFCOUNT h
(integer) 100
> PFADD s a
(integer) 1
> PFDEBUG TODENSE s
(integer) 1
> PFDEBUG TODENSE s
(integer) 0
> STRLEN s
(integer) 12304
> PFCOUNT s
(integer) 1
> PFADD watched a
(integer) 1
> WATCH watched
OK
> PFDEBUG TODENSE watched
(integer) 1
> MULTI
OK
> EXEC
(empty array)

== an estimate in a string can be set and read back
> PFADD a x y z
(integer) 1
> COPY a b
(integer) 1
> PFCOUNT b
(integer) 3
> APPEND b ""
(integer) 26
> PFCOUNT b
(integer) 3
> SET c "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff"
OK
> PFCOUNT c
(integer) 0
> PFADD c x
(integer) 1
> PFCOUNT c
(integer) 1

== broken estimates are refused
> SET a abc
OK
> PFADD a x
(error) WRONGTYPE Key is not a valid HyperLogLog string value.
> PFCOUNT a
(error) WRONGTYPE Key is not a valid HyperLogLog string value.
> PFMERGE d a
(error) WRONGTYPE Key is not a valid HyperLogLog string value.
> SET b "HYLL"
OK
> PFCOUNT b
(error) WRONGTYPE Key is not a valid HyperLogLog string value.
> SET c "HYLL\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff"
OK
> PFCOUNT c
(error) WRONGTYPE Key is not a valid HyperLogLog string value.
> SET d "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00abc"
OK
> PFCOUNT d
(error) WRONGTYPE Key is not a valid HyperLogLog string value.
> PFADD d x
(error) WRONGTYPE Key is not a valid HyperLogLog string value.
> PFMERGE e d
(error) WRONGTYPE Key is not a valid HyperLogLog string value.
> SET f "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xfe"
OK
> PFCOUNT f
(error) INVALIDOBJ Corrupted HLL object detected
> PFMERGE g f
(error) INVALIDOBJ Corrupted HLL object detected
> SET i "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff\x7f\xff"
OK
> PFCOUNT i
(error) INVALIDOBJ Corrupted HLL object detected
> PFADD i x
(integer) 1
> RPUSH l a
(integer) 1
> PFADD l x
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> PFCOUNT l
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> PFMERGE l a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> PFMERGE x l
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> PFCOUNT a l
(error) WRONGTYPE Key is not a valid HyperLogLog string value.

== wrong numbers of arguments
> PFADD
(error) ERR wrong number of arguments for 'pfadd' command
> PFCOUNT
(error) ERR wrong number of arguments for 'pfcount' command
> PFMERGE
(error) ERR wrong number of arguments for 'pfmerge' command
> PFDEBUG
(error) ERR wrong number of arguments for 'pfdebug' command
> PFDEBUG ENCODING nokey
(error) ERR The specified key does not exist
> PFDEBUG SIMD
(error) ERR wrong number of arguments for 'pfdebug' command
> PFDEBUG foo nokey
(error) ERR The specified key does not exist
> PFADD h a
(integer) 1
> PFDEBUG foo h
(error) ERR Unknown PFDEBUG subcommand 'foo'
> PFDEBUG DECODE h
"Z:12711 v:2,1 Z:3672"
> PFSELFTEST x
(error) ERR wrong number of arguments for 'pfselftest' command
