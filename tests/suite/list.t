# Lists.

== pushing and popping
> RPUSH l a b c
(integer) 3
> LPUSH l z y
(integer) 5
> LRANGE l 0 -1
1) "y"
2) "z"
3) "a"
4) "b"
5) "c"
> LPOP l
"y"
> RPOP l
"c"
> LLEN l
(integer) 3
> LRANGE l 0 -1
1) "z"
2) "a"
3) "b"
> LPOP l
"z"
> LPOP l
"a"
> RPOP l
"b"
> EXISTS l
(integer) 0
> LPOP l
(nil)
> RPOP l
(nil)
> LLEN l
(integer) 0
> TYPE l
none

== wrong numbers of arguments
> RPUSH
(error) ERR wrong number of arguments for 'rpush' command
> RPUSH l
(error) ERR wrong number of arguments for 'rpush' command
> LPUSH l
(error) ERR wrong number of arguments for 'lpush' command
> LPUSHX l
(error) ERR wrong number of arguments for 'lpushx' command
> RPUSHX l
(error) ERR wrong number of arguments for 'rpushx' command
> LPOP
(error) ERR wrong number of arguments for 'lpop' command
> LPOP l 1 2
(error) ERR wrong number of arguments for 'lpop' command
> RPOP
(error) ERR wrong number of arguments for 'rpop' command
> RPOP l 1 2
(error) ERR wrong number of arguments for 'rpop' command
> LLEN
(error) ERR wrong number of arguments for 'llen' command
> LLEN l m
(error) ERR wrong number of arguments for 'llen' command
> LINDEX l
(error) ERR wrong number of arguments for 'lindex' command
> LINDEX l 0 1
(error) ERR wrong number of arguments for 'lindex' command
> LSET l 0
(error) ERR wrong number of arguments for 'lset' command
> LINSERT l BEFORE a
(error) ERR wrong number of arguments for 'linsert' command
> LINSERT l BEFORE a b c
(error) ERR wrong number of arguments for 'linsert' command
> LRANGE l 0
(error) ERR wrong number of arguments for 'lrange' command
> LRANGE l 0 1 2
(error) ERR wrong number of arguments for 'lrange' command
> LTRIM l 0
(error) ERR wrong number of arguments for 'ltrim' command
> LREM l 0
(error) ERR wrong number of arguments for 'lrem' command
> LPOS l
(error) ERR wrong number of arguments for 'lpos' command
> LMOVE a b LEFT
(error) ERR wrong number of arguments for 'lmove' command
> LMPOP
(error) ERR wrong number of arguments for 'lmpop' command
> LMPOP 1
(error) ERR wrong number of arguments for 'lmpop' command
> RPOPLPUSH a
(error) ERR wrong number of arguments for 'rpoplpush' command
> RPOPLPUSH a b c
(error) ERR wrong number of arguments for 'rpoplpush' command

== LPUSHX and RPUSHX push to what is there
> LPUSHX l a
(integer) 0
> RPUSHX l a
(integer) 0
> EXISTS l
(integer) 0
> RPUSH l m
(integer) 1
> LPUSHX l a b
(integer) 3
> RPUSHX l x y
(integer) 5
> LRANGE l 0 -1
1) "b"
2) "a"
3) "m"
4) "x"
5) "y"
> SET k v
OK
> LPUSHX k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> RPUSHX k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== LPOP and RPOP with a count
> RPUSH l a b c d e f
(integer) 6
> LPOP l 2
1) "a"
2) "b"
> RPOP l 2
1) "f"
2) "e"
> LPOP l 0
(empty array)
> RPOP l 0
(empty array)
> LPOP l 100
1) "c"
2) "d"
> EXISTS l
(integer) 0
> LPOP l 1
(nil array)
> RPOP l 0
(nil array)
> LPOP nokey 0
(nil array)
> LPOP l -1
(error) ERR value is out of range, must be positive
> LPOP l a
(error) ERR value is out of range, must be positive
> RPOP l 1.5
(error) ERR value is out of range, must be positive
> LPOP l 9223372036854775808
(error) ERR value is out of range, must be positive
> RPUSH l a
(integer) 1
> LPOP l -1
(error) ERR value is out of range, must be positive
> LPOP l a
(error) ERR value is out of range, must be positive
> SET k v
OK
> LPOP k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> RPOP k 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LPOP k -1
(error) ERR value is out of range, must be positive
> LPOP k a
(error) ERR value is out of range, must be positive
> LPOP k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== LINDEX
> RPUSH l a b c
(integer) 3
> LINDEX l 0
"a"
> LINDEX l 2
"c"
> LINDEX l 3
(nil)
> LINDEX l -1
"c"
> LINDEX l -3
"a"
> LINDEX l -4
(nil)
> LINDEX l 9223372036854775807
(nil)
> LINDEX l a
(error) ERR value is not an integer or out of range
> LINDEX l 1.5
(error) ERR value is not an integer or out of range
> LINDEX nokey 0
(nil)
> LINDEX nokey a
(nil)
> SET k v
OK
> LINDEX k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LINDEX k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== LSET
> RPUSH l a b c
(integer) 3
> LSET l 0 x
OK
> LSET l -1 z
OK
> LSET l 1 12345
OK
> LRANGE l 0 -1
1) "x"
2) "12345"
3) "z"
> LSET l 3 v
(error) ERR index out of range
> LSET l -4 v
(error) ERR index out of range
> LSET l a v
(error) ERR value is not an integer or out of range
> LSET nokey 0 v
(error) ERR no such key
> LSET nokey a v
(error) ERR no such key
> SET k v
OK
> LSET k 0 v
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LSET k a v
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== LINSERT
> RPUSH l a b c b
(integer) 4
> LINSERT l BEFORE b x
(integer) 5
> LINSERT l AFTER b y
(integer) 6
> LINSERT l after c z
(integer) 7
> LRANGE l 0 -1
1) "a"
2) "x"
3) "b"
4) "y"
5) "c"
6) "z"
7) "b"
> LINSERT l BEFORE nothing w
(integer) -1
> LINSERT nokey BEFORE a b
(integer) 0
> EXISTS nokey
(integer) 0
> LINSERT l foo a b
(error) ERR syntax error
> LINSERT nokey foo a b
(error) ERR syntax error
> LINSERT l BEFORE a first
(integer) 8
> LINSERT l AFTER b last
(integer) 9
> LRANGE l 0 -1
1) "first"
2) "a"
3) "x"
4) "b"
5) "last"
6) "y"
7) "c"
8) "z"
9) "b"
> SET k v
OK
> LINSERT k BEFORE a b
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LINSERT k foo a b
(error) ERR syntax error
> RPUSH n 1 2 3
(integer) 3
> LINSERT n BEFORE 2 1.5
(integer) 4
> LINSERT n AFTER 3 4
(integer) 5
> LRANGE n 0 -1
1) "1"
2) "1.5"
3) "2"
4) "3"
5) "4"

== LRANGE
> RPUSH l a b c d e
(integer) 5
> LRANGE l 0 0
1) "a"
> LRANGE l 1 3
1) "b"
2) "c"
3) "d"
> LRANGE l -2 -1
1) "d"
2) "e"
> LRANGE l -100 1
1) "a"
2) "b"
> LRANGE l 3 100
1) "d"
2) "e"
> LRANGE l 3 1
(empty array)
> LRANGE l 5 10
(empty array)
> LRANGE l -1 -2
(empty array)
> LRANGE l -100 -50
(empty array)
> LRANGE l 0 -1
1) "a"
2) "b"
3) "c"
4) "d"
5) "e"
> LRANGE l -9223372036854775808 9223372036854775807
1) "a"
2) "b"
3) "c"
4) "d"
5) "e"
> LRANGE l a 1
(error) ERR value is not an integer or out of range
> LRANGE l 0 b
(error) ERR value is not an integer or out of range
> LRANGE nokey 0 -1
(empty array)
> LRANGE nokey a b
(error) ERR value is not an integer or out of range
> SET k v
OK
> LRANGE k 0 -1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LRANGE k a b
(error) ERR value is not an integer or out of range

== LTRIM
> RPUSH l a b c d e
(integer) 5
> LTRIM l 1 -2
OK
> LRANGE l 0 -1
1) "b"
2) "c"
3) "d"
> LTRIM l -100 100
OK
> LRANGE l 0 -1
1) "b"
2) "c"
3) "d"
> LTRIM l -2 -1
OK
> LRANGE l 0 -1
1) "c"
2) "d"
> LTRIM l 5 10
OK
> EXISTS l
(integer) 0
> RPUSH l a b c
(integer) 3
> LTRIM l 2 1
OK
> EXISTS l
(integer) 0
> LTRIM nokey 0 0
OK
> LTRIM nokey a 0
(error) ERR value is not an integer or out of range
> LTRIM l 0 b
(error) ERR value is not an integer or out of range
> SET k v
OK
> LTRIM k 0 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LTRIM k a b
(error) ERR value is not an integer or out of range

== LREM
> RPUSH l a b a c a b a
(integer) 7
> LREM l 2 a
(integer) 2
> LRANGE l 0 -1
1) "b"
2) "c"
3) "a"
4) "b"
5) "a"
> LREM l -1 b
(integer) 1
> LRANGE l 0 -1
1) "b"
2) "c"
3) "a"
4) "a"
> LREM l 0 a
(integer) 2
> LRANGE l 0 -1
1) "b"
2) "c"
> LREM l 1 nothing
(integer) 0
> LREM l -5 c
(integer) 1
> LREM l 5 b
(integer) 1
> EXISTS l
(integer) 0
> LREM nokey 0 a
(integer) 0
> LREM nokey a a
(error) ERR value is not an integer or out of range
> LREM l 1.5 a
(error) ERR value is not an integer or out of range
> SET k v
OK
> LREM k 0 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LREM k a a
(error) ERR value is not an integer or out of range
> RPUSH n 1 2 1 01 1.0
(integer) 5
> LREM n 0 1
(integer) 2
> LRANGE n 0 -1
1) "2"
2) "01"
3) "1.0"

== LPOS
> RPUSH l a b c 1 2 3 c c
(integer) 8
> LPOS l c
(integer) 2
> LPOS l nothing
(nil)
> LPOS nokey a
(nil)
> LPOS l c RANK 1
(integer) 2
> LPOS l c RANK 2
(integer) 6
> LPOS l c RANK 3
(integer) 7
> LPOS l c RANK 4
(nil)
> LPOS l c RANK -1
(integer) 7
> LPOS l c RANK -2
(integer) 6
> LPOS l c RANK -4
(nil)
> LPOS l c COUNT 2
1) (integer) 2
2) (integer) 6
> LPOS l c COUNT 0
1) (integer) 2
2) (integer) 6
3) (integer) 7
> LPOS l c COUNT 100
1) (integer) 2
2) (integer) 6
3) (integer) 7
> LPOS l nothing COUNT 1
(empty array)
> LPOS nokey a COUNT 0
(empty array)
> LPOS l c RANK -1 COUNT 2
1) (integer) 7
2) (integer) 6
> LPOS l c RANK -2 COUNT 0
1) (integer) 6
2) (integer) 2
> LPOS l c RANK 2 COUNT 2
1) (integer) 6
2) (integer) 7
> LPOS l c MAXLEN 2
(nil)
> LPOS l c MAXLEN 3
(integer) 2
> LPOS l c MAXLEN 0
(integer) 2
> LPOS l c COUNT 0 MAXLEN 7
1) (integer) 2
2) (integer) 6
> LPOS l c RANK -1 MAXLEN 1
(integer) 7
> LPOS l c RANK -3 MAXLEN 5 COUNT 0
(empty array)
> LPOS l a RANK -1 MAXLEN 7
(nil)
> LPOS l a RANK -1 MAXLEN 8
(integer) 0
> LPOS l 2
(integer) 4
> LPOS l c rank 2 count 1 maxlen 100
1) (integer) 6
> LPOS l c RANK 1 RANK 2
(integer) 6

== LPOS rejects what is wrong
> RPUSH l a
(integer) 1
> LPOS l a RANK 0
(error) ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
> LPOS l a COUNT -1
(error) ERR COUNT can't be negative
> LPOS l a MAXLEN -1
(error) ERR MAXLEN can't be negative
> LPOS l a RANK x
(error) ERR value is not an integer or out of range
> LPOS l a COUNT x
(error) ERR COUNT can't be negative
> LPOS l a MAXLEN x
(error) ERR MAXLEN can't be negative
> LPOS l a RANK
(error) ERR syntax error
> LPOS l a foo
(error) ERR syntax error
> LPOS l a foo 1
(error) ERR syntax error
> LPOS l a RANK -9223372036854775808
(error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> LPOS l a RANK 9223372036854775807
(nil)
> LPOS nokey a RANK 0
(error) ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
> LPOS nokey a foo
(error) ERR syntax error
> SET k v
OK
> LPOS k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LPOS k a RANK 0
(error) ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list

== RPOPLPUSH
> RPUSH a 1 2 3
(integer) 3
> RPOPLPUSH a b
"3"
> RPOPLPUSH a b
"2"
> LRANGE a 0 -1
1) "1"
> LRANGE b 0 -1
1) "2"
2) "3"
> RPOPLPUSH b b
"3"
> LRANGE b 0 -1
1) "3"
2) "2"
> RPOPLPUSH a b
"1"
> EXISTS a
(integer) 0
> RPOPLPUSH a b
(nil)
> RPOPLPUSH nokey new
(nil)
> EXISTS new
(integer) 0
> SET k v
OK
> RPOPLPUSH b k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> RPOPLPUSH k b
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> RPOPLPUSH nokey k
(nil)
> LRANGE b 0 -1
1) "1"
2) "3"
3) "2"
> RPUSH one x
(integer) 1
> RPOPLPUSH one one
"x"
> LRANGE one 0 -1
1) "x"

== LMOVE
> RPUSH a 1 2 3 4
(integer) 4
> LMOVE a b LEFT LEFT
"1"
> LMOVE a b LEFT RIGHT
"2"
> LMOVE a b RIGHT LEFT
"4"
> LRANGE a 0 -1
1) "3"
> LRANGE b 0 -1
1) "4"
2) "1"
3) "2"
> LMOVE a b right right
"3"
> EXISTS a
(integer) 0
> LRANGE b 0 -1
1) "4"
2) "1"
3) "2"
4) "3"
> LMOVE b b LEFT RIGHT
"4"
> LRANGE b 0 -1
1) "1"
2) "2"
3) "3"
4) "4"
> LMOVE b b LEFT LEFT
"1"
> LRANGE b 0 -1
1) "1"
2) "2"
3) "3"
4) "4"
> LMOVE a b LEFT LEFT
(nil)
> LMOVE a b foo LEFT
(error) ERR syntax error
> LMOVE a b LEFT foo
(error) ERR syntax error
> LMOVE nokey b up down
(error) ERR syntax error
> SET k v
OK
> LMOVE b k LEFT LEFT
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LMOVE k b LEFT LEFT
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LMOVE nokey k LEFT LEFT
(nil)
> LMOVE k b foo LEFT
(error) ERR syntax error
> LLEN b
(integer) 4

== LMPOP
> RPUSH a 1 2 3 4 5
(integer) 5
> RPUSH b x y z
(integer) 3
> LMPOP 2 nokey a LEFT
1) "a"
2) 1) "1"
> LMPOP 2 a b RIGHT COUNT 2
1) "a"
2) 1) "5"
   2) "4"
> LMPOP 2 a b left count 100
1) "a"
2) 1) "2"
   2) "3"
> EXISTS a
(integer) 0
> LMPOP 2 a b LEFT
1) "b"
2) 1) "x"
> LMPOP 1 nokey LEFT
(nil array)
> LMPOP 1 nokey LEFT COUNT 5
(nil array)
> LMPOP 2 b b LEFT COUNT 2
1) "b"
2) 1) "y"
   2) "z"
> EXISTS b
(integer) 0

== LMPOP rejects what is wrong
> RPUSH l a
(integer) 1
> SET k v
OK
> LMPOP 0 l LEFT
(error) ERR numkeys should be greater than 0
> LMPOP -1 l LEFT
(error) ERR numkeys should be greater than 0
> LMPOP a l LEFT
(error) ERR numkeys should be greater than 0
> LMPOP 1.5 l LEFT
(error) ERR numkeys should be greater than 0
> LMPOP 2 l LEFT
(error) ERR syntax error
> LMPOP 3 l LEFT
(error) ERR syntax error
> LMPOP 1 l foo
(error) ERR syntax error
> LMPOP 1 l LEFT foo
(error) ERR syntax error
> LMPOP 1 l LEFT COUNT
(error) ERR syntax error
> LMPOP 1 l LEFT COUNT 0
(error) ERR count should be greater than 0
> LMPOP 1 l LEFT COUNT -1
(error) ERR count should be greater than 0
> LMPOP 1 l LEFT COUNT a
(error) ERR count should be greater than 0
> LMPOP 1 l LEFT COUNT 1 COUNT 2
(error) ERR syntax error
> LMPOP 1 l LEFT COUNT 1 foo
(error) ERR syntax error
> LMPOP 1 l LEFT RIGHT
(error) ERR syntax error
> LMPOP 9223372036854775807 l LEFT
(error) ERR syntax error
> LMPOP 1 k LEFT
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LMPOP 2 nokey k LEFT
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LMPOP 2 l k LEFT
1) "l"
2) 1) "a"
> LMPOP 1 k foo
(error) ERR syntax error
> LLEN l
(integer) 0

== list commands refuse other types
> SET k v
OK
> LPUSH k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> RPUSH k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LPOP k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> RPOP k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LLEN k
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LINDEX k 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LRANGE k 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LTRIM k 0 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LREM k 0 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LSET k 0 a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LINSERT k BEFORE a b
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> LPOS k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> GET k
"v"

== elements are bytes
> RPUSH l "" "a\x00b" "\xff\xfe" 007 7 -0 "1 " 1e5 9223372036854775807 -9223372036854775808 9223372036854775808
(integer) 11
> LRANGE l 0 -1
 1) ""
 2) "a\x00b"
 3) "\xff\xfe"
 4) "007"
 5) "7"
 6) "-0"
 7) "1 "
 8) "1e5"
 9) "9223372036854775807"
10) "-9223372036854775808"
11) "9223372036854775808"
> LREM l 0 7
(integer) 1
> LREM l 0 ""
(integer) 1
> LPOS l "a\x00b"
(integer) 0
> LINDEX l 0
"a\x00b"
> LPOS l 9223372036854775807
(integer) 6
> LPOS l -9223372036854775808
(integer) 7
> LLEN l
(integer) 9

== integers of every width come back as they were
> RPUSH l 0 -1 1 12 13 -2 127 128 -128 -129 255 256 4095 4096 -4096 -4097 32767 32768 -32768 -32769 8388607 8388608 -8388608 -8388609 2147483647 2147483648 -2147483648 -2147483649
(integer) 28
> LRANGE l 0 -1
 1) "0"
 2) "-1"
 3) "1"
 4) "12"
 5) "13"
 6) "-2"
 7) "127"
 8) "128"
 9) "-128"
10) "-129"
11) "255"
12) "256"
13) "4095"
14) "4096"
15) "-4096"
16) "-4097"
17) "32767"
18) "32768"
19) "-32768"
20) "-32769"
21) "8388607"
22) "8388608"
23) "-8388608"
24) "-8388609"
25) "2147483647"
26) "2147483648"
27) "-2147483648"
28) "-2147483649"
> LRANGE l -3 -1
1) "2147483648"
2) "-2147483648"
3) "-2147483649"
> RPOP l 3
1) "-2147483649"
2) "-2147483648"
3) "2147483648"
> LPOP l 3
1) "0"
2) "-1"
3) "1"

== a long list of small elements
> RPUSH l $each(1..3000,e%)
(integer) 3000
> OBJECT ENCODING l
"quicklist"
> LLEN l
(integer) 3000
> LINDEX l 0
"e1"
> LINDEX l 1499
"e1500"
> LINDEX l 2999
"e3000"
> LINDEX l -1
"e3000"
> LINDEX l -3000
"e1"
> LRANGE l 1000 1004
1) "e1001"
2) "e1002"
3) "e1003"
4) "e1004"
5) "e1005"
> LRANGE l -5 -3
1) "e2996"
2) "e2997"
3) "e2998"
> LPOS l e2500
(integer) 2499
> LPOS l e2500 RANK -1
(integer) 2499
> LINSERT l AFTER e1500 x
(integer) 3001
> LRANGE l 1498 1502
1) "e1499"
2) "e1500"
3) "x"
4) "e1501"
5) "e1502"
> LINSERT l BEFORE e1 first
(integer) 3002
> LSET l 2000 changed
OK
> LRANGE l 1999 2001
1) "e1998"
2) "changed"
3) "e2000"
> LREM l 1 e2999
(integer) 1
> LREM l -1 e2
(integer) 1
> LLEN l
(integer) 3000
> LTRIM l 10 -11
OK
> LLEN l
(integer) 2980
> LRANGE l 0 1
1) "e11"
2) "e12"
> LRANGE l -2 -1
1) "e2988"
2) "e2989"
> LPOP l 3
1) "e11"
2) "e12"
3) "e13"
> RPOP l 3
1) "e2989"
2) "e2988"
3) "e2987"
> LTRIM l 1400 1405
OK
> LRANGE l 0 -1
1) "e1414"
2) "e1415"
3) "e1416"
4) "e1417"
5) "e1418"
6) "e1419"

== a list of large elements
> RPUSH l $times(5000,a) $times(9000,b) $times(20000,c) d
(integer) 4
> LLEN l
(integer) 4
> [length] LINDEX l 0
(integer) 5000
> [length] LINDEX l 1
(integer) 9000
> [length] LINDEX l 2
(integer) 20000
> LINDEX l 3
"d"
> LPOS l d
(integer) 3
> LSET l 3 $times(10000,d)
OK
> LSET l 2 small
OK
> LINDEX l 2
"small"
> [length] LINDEX l 3
(integer) 10000
> LINSERT l AFTER small $times(8192,e)
(integer) 5
> LINSERT l BEFORE small between
(integer) 6
> LRANGE l 2 3
1) "between"
2) "small"
> LREM l 0 $times(9000,b)
(integer) 1
> LLEN l
(integer) 5
> [length] LPOP l
(integer) 5000
> LPOP l
"between"
> LPOP l
"small"
> [length] RPOP l
(integer) 10000
> [length] RPOP l
(integer) 8192
> EXISTS l
(integer) 0

== lists in nodes of few elements
config set list-max-listpack-size 3
> RPUSH l 1 2 3 4 5 6 7 8 9 10
(integer) 10
> LINSERT l AFTER 3 x
(integer) 11
> LINSERT l BEFORE 7 y
(integer) 12
> LINSERT l AFTER 9 z
(integer) 13
> LRANGE l 0 -1
 1) "1"
 2) "2"
 3) "3"
 4) "x"
 5) "4"
 6) "5"
 7) "6"
 8) "y"
 9) "7"
10) "8"
11) "9"
12) "z"
13) "10"
> LREM l 0 4
(integer) 1
> LREM l 0 5
(integer) 1
> LREM l 0 6
(integer) 1
> LRANGE l 0 -1
 1) "1"
 2) "2"
 3) "3"
 4) "x"
 5) "y"
 6) "7"
 7) "8"
 8) "9"
 9) "z"
10) "10"
> LSET l 0 $times(100,a)
OK
> LSET l -1 last
OK
> LINDEX l -2
"z"
> LINDEX l 3
"x"
> LTRIM l 2 -3
OK
> LRANGE l 0 -1
1) "3"
2) "x"
3) "y"
4) "7"
5) "8"
6) "9"
> LMOVE l l LEFT RIGHT
"3"
> LRANGE l -3 -1
1) "8"
2) "9"
3) "3"
> LPOS l z
(nil)
> OBJECT ENCODING l
"quicklist"

== compressed lists
config set list-compress-depth 1
config set list-max-listpack-size 5
> RPUSH l $each(1..40,element-number-%-with-a-repetitive-text-text-text-text-text-text-text)
(integer) 40
> LINDEX l 20
"element-number-21-with-a-repetitive-text-text-text-text-text-text-text"
> LRANGE l 17 19
1) "element-number-18-with-a-repetitive-text-text-text-text-text-text-text"
2) "element-number-19-with-a-repetitive-text-text-text-text-text-text-text"
3) "element-number-20-with-a-repetitive-text-text-text-text-text-text-text"
> LSET l 20 changed
OK
> LINDEX l 20
"changed"
> LINSERT l AFTER changed inserted
(integer) 41
> LRANGE l 19 22
1) "element-number-20-with-a-repetitive-text-text-text-text-text-text-text"
2) "changed"
3) "inserted"
4) "element-number-22-with-a-repetitive-text-text-text-text-text-text-text"
> LREM l 0 inserted
(integer) 1
> LLEN l
(integer) 40
> LPOP l 2
1) "element-number-1-with-a-repetitive-text-text-text-text-text-text-text"
2) "element-number-2-with-a-repetitive-text-text-text-text-text-text-text"
> RPOP l 2
1) "element-number-40-with-a-repetitive-text-text-text-text-text-text-text"
2) "element-number-39-with-a-repetitive-text-text-text-text-text-text-text"
