# Streams.

== adding entries
> XADD s 1-1 a 1 b 2
"1-1"
> XADD s 1-2 a 3 b text
"1-2"
> XADD s 2 other -7
"2-0"
> XADD s 2-* a 1
"2-1"
> XADD s 3-* a 1
"3-0"
> XADD s 2-1 a 1
(error) ERR The ID specified in XADD is equal or smaller than the target stream top item
> XADD s 0-0 a 1
(error) ERR The ID specified in XADD must be greater than 0-0
> XADD s 3-0 a 1
(error) ERR The ID specified in XADD is equal or smaller than the target stream top item
> XADD s - a 1
(error) ERR Invalid stream ID specified as stream command argument
> XADD s + a 1
(error) ERR Invalid stream ID specified as stream command argument
> XADD s 1-1-1 a 1
(error) ERR Invalid stream ID specified as stream command argument
> XADD s abc a 1
(error) ERR Invalid stream ID specified as stream command argument
> XADD s *-1 a 1
(error) ERR Invalid stream ID specified as stream command argument
> XADD s 4-1 a
(error) ERR wrong number of arguments for 'xadd' command
> XADD s 4-1 a 1 b
(error) ERR wrong number of arguments for 'xadd' command
> XADD s 4-1
(error) ERR wrong number of arguments for 'xadd' command
> XADD s
(error) ERR wrong number of arguments for 'xadd' command
> XLEN s
(integer) 5
> XRANGE s - +
1) 1) "1-1"
   2) 1) "a"
      2) "1"
      3) "b"
      4) "2"
2) 1) "1-2"
   2) 1) "a"
      2) "3"
      3) "b"
      4) "text"
3) 1) "2-0"
   2) 1) "other"
      2) "-7"
4) 1) "2-1"
   2) 1) "a"
      2) "1"
5) 1) "3-0"
   2) 1) "a"
      2) "1"
> XLEN nokey
(integer) 0
> TYPE s
stream
> OBJECT ENCODING s
"stream"
> DEL s
(integer) 1
> XADD s 0-* a 1
"0-1"
> XADD s 18446744073709551615-18446744073709551614 a 1
"18446744073709551615-18446744073709551614"
> XADD s 18446744073709551615-* a 1
"18446744073709551615-18446744073709551615"
> XADD s * a 1
(error) ERR The stream has exhausted the last possible ID, unable to add more items
> XADD s 18446744073709551615-* a 1
(error) ERR The stream has exhausted the last possible ID, unable to add more items
> SET string x
OK
> XADD string 1-1 a 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> XADD nokey NOMKSTREAM 1-1 a 1
(nil)
> EXISTS nokey
(integer) 0

== trimming while adding
> XADD s MAXLEN 2 1-1 a 1
"1-1"
> XADD s MAXLEN 2 1-2 a 2
"1-2"
> XADD s MAXLEN = 2 1-3 a 3
"1-3"
> XRANGE s - +
1) 1) "1-2"
   2) 1) "a"
      2) "2"
2) 1) "1-3"
   2) 1) "a"
      2) "3"
> XADD s MINID 1-3 1-4 a 4
"1-4"
> XRANGE s - +
1) 1) "1-3"
   2) 1) "a"
      2) "3"
2) 1) "1-4"
   2) 1) "a"
      2) "4"
> XADD s MAXLEN ~ 1 1-5 a 5
"1-5"
> XLEN s
(integer) 3
> XADD s MAXLEN 0 1-6 a 6
"1-6"
> XLEN s
(integer) 0
> XINFO STREAM s
 1) "length"
 2) (integer) 0
 3) "radix-tree-keys"
 4) (integer) 0
 5) "radix-tree-nodes"
 6) (integer) 1
 7) "last-generated-id"
 8) "1-6"
 9) "max-deleted-entry-id"
10) "0-0"
11) "entries-added"
12) (integer) 6
13) "recorded-first-entry-id"
14) "0-0"
15) "groups"
16) (integer) 0
17) "first-entry"
18) (nil)
19) "last-entry"
20) (nil)
resp3:
 1# "length" => (integer) 0
 2# "radix-tree-keys" => (integer) 0
 3# "radix-tree-nodes" => (integer) 1
 4# "last-generated-id" => "1-6"
 5# "max-deleted-entry-id" => "0-0"
 6# "entries-added" => (integer) 6
 7# "recorded-first-entry-id" => "0-0"
 8# "groups" => (integer) 0
 9# "first-entry" => (nil)
10# "last-entry" => (nil)
> XADD s MAXLEN 1 MINID 1 1-7 a 7
(error) ERR syntax error, MAXLEN and MINID options at the same time are not compatible
> XADD s MAXLEN -1 1-7 a 7
(error) ERR The MAXLEN argument must be >= 0.
> XADD s MAXLEN x 1-7 a 7
(error) ERR value is not an integer or out of range
> XADD s MINID x 1-7 a 7
(error) ERR Invalid stream ID specified as stream command argument
> XADD s LIMIT 1 1-7 a 7
(error) ERR syntax error, LIMIT cannot be used without specifying a trimming strategy
> XADD s LIMIT 0 1-7 a 7
(error) ERR syntax error, LIMIT cannot be used without the special ~ option
> XADD s LIMIT 0 LIMIT 1 1-7 a 7
(error) ERR syntax error, LIMIT cannot be used without specifying a trimming strategy
> XADD s MAXLEN 1 LIMIT 1 1-7 a 7
(error) ERR syntax error, LIMIT cannot be used without the special ~ option
> XADD s MAXLEN ~ 1 LIMIT -1 1-7 a 7
(error) ERR The LIMIT argument must be >= 0.
> XADD s MAXLEN ~ 1 LIMIT 5 1-7 a 7
"1-7"
> XADD s MAXLEN
(error) ERR wrong number of arguments for 'xadd' command
> XADD s MAXLEN 5
(error) ERR wrong number of arguments for 'xadd' command

== trimming
> CONFIG SET stream-node-max-entries 3
OK
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 1
"1-2"
> XADD s 1-3 a 1
"1-3"
> XADD s 2-1 a 1
"2-1"
> XADD s 2-2 a 1
"2-2"
> XADD s 2-3 a 1
"2-3"
> XADD s 3-1 a 1
"3-1"
> XTRIM s MAXLEN ~ 6
(integer) 0
> XTRIM s MAXLEN ~ 4 LIMIT 2
(integer) 0
> XTRIM s MAXLEN ~ 4
(integer) 3
> XTRIM s MAXLEN ~ 2
(integer) 0
> XTRIM s MAXLEN 3
(integer) 1
> XRANGE s - +
1) 1) "2-2"
   2) 1) "a"
      2) "1"
2) 1) "2-3"
   2) 1) "a"
      2) "1"
3) 1) "3-1"
   2) 1) "a"
      2) "1"
> XTRIM s MINID ~ 3
(integer) 2
> XTRIM s MINID 2-3
(integer) 0
> XTRIM s MINID = 3
(integer) 0
> XLEN s
(integer) 1
> XTRIM s MAXLEN 0
(integer) 1
> XLEN s
(integer) 0
> EXISTS s
(integer) 1
> XTRIM s MAXLEN 0
(integer) 0
> XTRIM nokey MAXLEN 0
(integer) 0
> XTRIM s MAXLEN
(error) ERR wrong number of arguments for 'xtrim' command
> XTRIM s LIMIT 5
(error) ERR syntax error, LIMIT cannot be used without specifying a trimming strategy
> XTRIM s LIMIT 0
(error) ERR syntax error, XTRIM must be called with a trimming strategy
> XTRIM s MAXLEN 1 LIMIT 1
(error) ERR syntax error, LIMIT cannot be used without the special ~ option
> XTRIM s MAXLEN ~ -1
(error) ERR The MAXLEN argument must be >= 0.
> XTRIM s
(error) ERR wrong number of arguments for 'xtrim' command
> XTRIM s NOTHING 5
(error) ERR syntax error
> CONFIG SET stream-node-max-entries 100
OK

== ranges
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 2-1 a 3
"2-1"
> XADD s 3-7 a 4 b 5
"3-7"
> XRANGE s 1 2
1) 1) "1-1"
   2) 1) "a"
      2) "1"
2) 1) "1-2"
   2) 1) "a"
      2) "2"
3) 1) "2-1"
   2) 1) "a"
      2) "3"
> XRANGE s 1-2 2-0
1) 1) "1-2"
   2) 1) "a"
      2) "2"
> XRANGE s (1-1 (2-1
1) 1) "1-2"
   2) 1) "a"
      2) "2"
> XRANGE s (1-1 3 COUNT 2
1) 1) "1-2"
   2) 1) "a"
      2) "2"
2) 1) "2-1"
   2) 1) "a"
      2) "3"
> XREVRANGE s + - COUNT 2
1) 1) "3-7"
   2) 1) "a"
      2) "4"
      3) "b"
      4) "5"
2) 1) "2-1"
   2) 1) "a"
      2) "3"
> XREVRANGE s 2 (1-1
1) 1) "2-1"
   2) 1) "a"
      2) "3"
2) 1) "1-2"
   2) 1) "a"
      2) "2"
> XREVRANGE s - +
(empty array)
> XRANGE s 5 9
(empty array)
> XRANGE s - + COUNT 0
(nil array)
> XRANGE s - + COUNT -3
(nil array)
> XRANGE s - + COUNT
(error) ERR syntax error
> XRANGE s - + COUNT x
(error) ERR value is not an integer or out of range
> XRANGE s - + LIMIT 1
(error) ERR syntax error
> XRANGE s x +
(error) ERR Invalid stream ID specified as stream command argument
> XRANGE s - (
(error) ERR Invalid stream ID specified as stream command argument
> XRANGE s (- +
(error) ERR Invalid stream ID specified as stream command argument
> XRANGE s (18446744073709551615-18446744073709551615 +
(error) ERR invalid start ID for the interval
> XRANGE s - (0-0
(error) ERR invalid end ID for the interval
> XRANGE nokey - +
(empty array)
> XRANGE nokey - + COUNT 0
(empty array)
> SET string x
OK
> XRANGE string - +
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> XREVRANGE string + -
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== deleting entries
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 1-3 a 3
"1-3"
> XDEL s 1-2 1-2 9-9
(integer) 1
> XRANGE s - +
1) 1) "1-1"
   2) 1) "a"
      2) "1"
2) 1) "1-3"
   2) 1) "a"
      2) "3"
> XDEL s 1-3
(integer) 1
> XINFO STREAM s
 1) "length"
 2) (integer) 1
 3) "radix-tree-keys"
 4) (integer) 1
 5) "radix-tree-nodes"
 6) (integer) 2
 7) "last-generated-id"
 8) "1-3"
 9) "max-deleted-entry-id"
10) "1-3"
11) "entries-added"
12) (integer) 3
13) "recorded-first-entry-id"
14) "1-1"
15) "groups"
16) (integer) 0
17) "first-entry"
18) 1) "1-1"
    2) 1) "a"
       2) "1"
19) "last-entry"
20) 1) "1-1"
    2) 1) "a"
       2) "1"
resp3:
 1# "length" => (integer) 1
 2# "radix-tree-keys" => (integer) 1
 3# "radix-tree-nodes" => (integer) 2
 4# "last-generated-id" => "1-3"
 5# "max-deleted-entry-id" => "1-3"
 6# "entries-added" => (integer) 3
 7# "recorded-first-entry-id" => "1-1"
 8# "groups" => (integer) 0
 9# "first-entry" =>
      1) "1-1"
      2) 1) "a"
         2) "1"
10# "last-entry" =>
      1) "1-1"
      2) 1) "a"
         2) "1"
> XADD s 1-3 a 3
(error) ERR The ID specified in XADD is equal or smaller than the target stream top item
> XDEL s x
(error) ERR Invalid stream ID specified as stream command argument
> XDEL nokey x
(integer) 0
> XDEL s 1-1
(integer) 1
> XINFO STREAM s
 1) "length"
 2) (integer) 0
 3) "radix-tree-keys"
 4) (integer) 0
 5) "radix-tree-nodes"
 6) (integer) 1
 7) "last-generated-id"
 8) "1-3"
 9) "max-deleted-entry-id"
10) "1-3"
11) "entries-added"
12) (integer) 3
13) "recorded-first-entry-id"
14) "0-0"
15) "groups"
16) (integer) 0
17) "first-entry"
18) (nil)
19) "last-entry"
20) (nil)
resp3:
 1# "length" => (integer) 0
 2# "radix-tree-keys" => (integer) 0
 3# "radix-tree-nodes" => (integer) 1
 4# "last-generated-id" => "1-3"
 5# "max-deleted-entry-id" => "1-3"
 6# "entries-added" => (integer) 3
 7# "recorded-first-entry-id" => "0-0"
 8# "groups" => (integer) 0
 9# "first-entry" => (nil)
10# "last-entry" => (nil)
> XLEN s
(integer) 0
> EXISTS s
(integer) 1
> XADD s 1-4 a 4
"1-4"
> XINFO STREAM s
 1) "length"
 2) (integer) 1
 3) "radix-tree-keys"
 4) (integer) 1
 5) "radix-tree-nodes"
 6) (integer) 2
 7) "last-generated-id"
 8) "1-4"
 9) "max-deleted-entry-id"
10) "1-3"
11) "entries-added"
12) (integer) 4
13) "recorded-first-entry-id"
14) "1-4"
15) "groups"
16) (integer) 0
17) "first-entry"
18) 1) "1-4"
    2) 1) "a"
       2) "4"
19) "last-entry"
20) 1) "1-4"
    2) 1) "a"
       2) "4"
resp3:
 1# "length" => (integer) 1
 2# "radix-tree-keys" => (integer) 1
 3# "radix-tree-nodes" => (integer) 2
 4# "last-generated-id" => "1-4"
 5# "max-deleted-entry-id" => "1-3"
 6# "entries-added" => (integer) 4
 7# "recorded-first-entry-id" => "1-4"
 8# "groups" => (integer) 0
 9# "first-entry" =>
      1) "1-4"
      2) 1) "a"
         2) "4"
10# "last-entry" =>
      1) "1-4"
      2) 1) "a"
         2) "4"

== the last id can be set
> XSETID nokey 1-1
(error) ERR no such key
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 1
"1-2"
> XDEL s 1-2
(integer) 1
> XSETID s 1-0
(error) ERR The ID specified in XSETID is smaller than current max_deleted_entry_id
> XSETID s 1-1
(error) ERR The ID specified in XSETID is smaller than current max_deleted_entry_id
> XSETID s 5-5
OK
> XADD s 5-5 a 1
(error) ERR The ID specified in XADD is equal or smaller than the target stream top item
> XSETID s 6-6 ENTRIESADDED 100 MAXDELETEDID 3-3
OK
> XINFO STREAM s
 1) "length"
 2) (integer) 1
 3) "radix-tree-keys"
 4) (integer) 1
 5) "radix-tree-nodes"
 6) (integer) 2
 7) "last-generated-id"
 8) "6-6"
 9) "max-deleted-entry-id"
10) "3-3"
11) "entries-added"
12) (integer) 100
13) "recorded-first-entry-id"
14) "1-1"
15) "groups"
16) (integer) 0
17) "first-entry"
18) 1) "1-1"
    2) 1) "a"
       2) "1"
19) "last-entry"
20) 1) "1-1"
    2) 1) "a"
       2) "1"
resp3:
 1# "length" => (integer) 1
 2# "radix-tree-keys" => (integer) 1
 3# "radix-tree-nodes" => (integer) 2
 4# "last-generated-id" => "6-6"
 5# "max-deleted-entry-id" => "3-3"
 6# "entries-added" => (integer) 100
 7# "recorded-first-entry-id" => "1-1"
 8# "groups" => (integer) 0
 9# "first-entry" =>
      1) "1-1"
      2) 1) "a"
         2) "1"
10# "last-entry" =>
      1) "1-1"
      2) 1) "a"
         2) "1"
> XSETID s 7-7 ENTRIESADDED 0
(error) ERR The entries_added specified in XSETID is smaller than the target stream length
> XSETID s 7-7 ENTRIESADDED -1
(error) ERR entries_added must be positive
> XSETID s 7-7 MAXDELETEDID 8-8
(error) ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id
> XSETID s 3-2
(error) ERR The ID specified in XSETID is smaller than current max_deleted_entry_id
> XSETID s 7-7 NOTHING
(error) ERR syntax error
> XSETID s x
(error) ERR Invalid stream ID specified as stream command argument

== reading without waiting
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD t 5-1 a 3
"5-1"
> XREAD STREAMS s 0
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
> XREAD STREAMS s t 1-1 0
1) 1) "s"
   2) 1) 1) "1-2"
         2) 1) "a"
            2) "2"
2) 1) "t"
   2) 1) 1) "5-1"
         2) 1) "a"
            2) "3"
resp3:
1# "s" =>
     1) 1) "1-2"
        2) 1) "a"
           2) "2"
2# "t" =>
     1) 1) "5-1"
        2) 1) "a"
           2) "3"
> XREAD COUNT 1 STREAMS s t 0 0
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
2) 1) "t"
   2) 1) 1) "5-1"
         2) 1) "a"
            2) "3"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
2# "t" =>
     1) 1) "5-1"
        2) 1) "a"
           2) "3"
> XREAD STREAMS s t $ 0
1) 1) "t"
   2) 1) 1) "5-1"
         2) 1) "a"
            2) "3"
resp3:
1# "t" =>
     1) 1) "5-1"
        2) 1) "a"
           2) "3"
> XREAD STREAMS s $
(nil array)
> XREAD STREAMS s +
1) 1) "s"
   2) 1) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-2"
        2) 1) "a"
           2) "2"
> XREAD STREAMS nokey +
(nil array)
> XREAD STREAMS nokey 0
(nil array)
> XREAD COUNT 0 STREAMS s 0
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
> XREAD COUNT -1 STREAMS s 1-1
1) 1) "s"
   2) 1) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-2"
        2) 1) "a"
           2) "2"
> XREAD STREAMS s
(error) ERR wrong number of arguments for 'xread' command
> XREAD STREAMS s t 0
(error) ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.
> XREAD COUNT x STREAMS s 0
(error) ERR value is not an integer or out of range
> XREAD BLOCK x STREAMS s 0
(error) ERR timeout is not an integer or out of range
> XREAD BLOCK 9223372036854775807 STREAMS s 0
(error) ERR timeout is out of range
> XREAD BLOCK 9223372036854775808 STREAMS s 0
(error) ERR timeout is not an integer or out of range
> XREAD BLOCK -1 STREAMS s 0
(error) ERR timeout is negative
> XREAD NOTHING STREAMS s 0
(error) ERR syntax error
> XREAD COUNT 1 s 0
(error) ERR syntax error
> XREAD STREAMS s x
(error) ERR Invalid stream ID specified as stream command argument
> XREAD STREAMS s >
(error) ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.
> XREAD STREAMS s -
(error) ERR Invalid stream ID specified as stream command argument
> XREAD GROUP g c STREAMS s 0
(error) ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.
> XREAD NOACK STREAMS s 0
(error) ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.
> SET string x
OK
> XREAD STREAMS string 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> XREAD STREAMS s string 0 0
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> XREAD STREAMS s 18446744073709551615-18446744073709551615
(nil array)

== groups
> XGROUP CREATE s g 0
(error) ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
> XGROUP CREATE s g 0 MKSTREAM
OK
> XLEN s
(integer) 0
> XGROUP CREATE s g $
(error) BUSYGROUP Consumer Group name already exists
> XGROUP CREATE s h 0 MKSTREAM MKSTREAM ENTRIESREAD 5
(error) ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.
> XGROUP SETID s g 0 ENTRIESREAD 5 ENTRIESREAD 5
(error) ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP.
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 0
    5) "pending"
    6) (integer) 0
    7) "last-delivered-id"
    8) "0-0"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 0
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 0
   3# "pending" => (integer) 0
   4# "last-delivered-id" => "0-0"
   5# "entries-read" => (nil)
   6# "lag" => (integer) 0
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XGROUP CREATE s h $
OK
> XGROUP CREATE s i 1-1 ENTRIESREAD 1
OK
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 0
    5) "pending"
    6) (integer) 0
    7) "last-delivered-id"
    8) "0-0"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 2
2)  1) "name"
    2) "h"
    3) "consumers"
    4) (integer) 0
    5) "pending"
    6) (integer) 0
    7) "last-delivered-id"
    8) "1-2"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 0
3)  1) "name"
    2) "i"
    3) "consumers"
    4) (integer) 0
    5) "pending"
    6) (integer) 0
    7) "last-delivered-id"
    8) "1-1"
    9) "entries-read"
   10) (integer) 1
   11) "lag"
   12) (integer) 1
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 0
   3# "pending" => (integer) 0
   4# "last-delivered-id" => "0-0"
   5# "entries-read" => (nil)
   6# "lag" => (integer) 2
2) 1# "name" => "h"
   2# "consumers" => (integer) 0
   3# "pending" => (integer) 0
   4# "last-delivered-id" => "1-2"
   5# "entries-read" => (nil)
   6# "lag" => (integer) 0
3) 1# "name" => "i"
   2# "consumers" => (integer) 0
   3# "pending" => (integer) 0
   4# "last-delivered-id" => "1-1"
   5# "entries-read" => (integer) 1
   6# "lag" => (integer) 1
> XGROUP SETID s h 0
OK
> XGROUP SETID s i $ ENTRIESREAD 2
OK
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 0
    5) "pending"
    6) (integer) 0
    7) "last-delivered-id"
    8) "0-0"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 2
2)  1) "name"
    2) "h"
    3) "consumers"
    4) (integer) 0
    5) "pending"
    6) (integer) 0
    7) "last-delivered-id"
    8) "0-0"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 2
3)  1) "name"
    2) "i"
    3) "consumers"
    4) (integer) 0
    5) "pending"
    6) (integer) 0
    7) "last-delivered-id"
    8) "1-2"
    9) "entries-read"
   10) (integer) 2
   11) "lag"
   12) (integer) 0
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 0
   3# "pending" => (integer) 0
   4# "last-delivered-id" => "0-0"
   5# "entries-read" => (nil)
   6# "lag" => (integer) 2
2) 1# "name" => "h"
   2# "consumers" => (integer) 0
   3# "pending" => (integer) 0
   4# "last-delivered-id" => "0-0"
   5# "entries-read" => (nil)
   6# "lag" => (integer) 2
3) 1# "name" => "i"
   2# "consumers" => (integer) 0
   3# "pending" => (integer) 0
   4# "last-delivered-id" => "1-2"
   5# "entries-read" => (integer) 2
   6# "lag" => (integer) 0
> XGROUP CREATECONSUMER s g alice
(integer) 1
> XGROUP CREATECONSUMER s g alice
(integer) 0
> XGROUP DELCONSUMER s g alice
(integer) 0
> XGROUP DELCONSUMER s g alice
(integer) 0
> XGROUP DESTROY s h
(integer) 1
> XGROUP DESTROY s h
(integer) 0
> XGROUP CREATE nokey g $
(error) ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
> XGROUP SETID nokey g $
(error) ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
> XGROUP SETID s nogroup $
(error) NOGROUP No such consumer group 'nogroup' for key name 's'
> XGROUP CREATECONSUMER s nogroup alice
(error) NOGROUP No such consumer group 'nogroup' for key name 's'
> XGROUP DELCONSUMER s nogroup alice
(error) NOGROUP No such consumer group 'nogroup' for key name 's'
> XGROUP DESTROY nokey g
(error) ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
> XGROUP CREATE s j x
(error) ERR Invalid stream ID specified as stream command argument
> XGROUP CREATE s j $ NOTHING
(error) ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.
> XGROUP CREATE s j $ ENTRIESREAD
(error) ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.
> XGROUP CREATE s j $ ENTRIESREAD -2
(error) ERR value for ENTRIESREAD must be positive or -1
> XGROUP SETID s g +
OK
> XGROUP SETID s g $ MKSTREAM
(error) ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP.
> XGROUP CREATE s
(error) ERR wrong number of arguments for 'xgroup|create' command
> XGROUP NOTHING s g
(error) ERR unknown subcommand 'NOTHING'. Try XGROUP HELP.
> SET string x
OK
> XGROUP CREATE string g $
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> XGROUP DESTROY string g
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== a group shares what comes
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 1-3 a 3
"1-3"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g alice COUNT 1 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
> XREADGROUP GROUP g bob STREAMS s >
1) 1) "s"
   2) 1) 1) "1-2"
         2) 1) "a"
            2) "2"
      2) 1) "1-3"
         2) 1) "a"
            2) "3"
resp3:
1# "s" =>
     1) 1) "1-2"
        2) 1) "a"
           2) "2"
     2) 1) "1-3"
        2) 1) "a"
           2) "3"
> XREADGROUP GROUP g alice STREAMS s >
(nil array)
> XREADGROUP GROUP g alice STREAMS s 0
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
> XREADGROUP GROUP g bob COUNT 1 STREAMS s 0
1) 1) "s"
   2) 1) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-2"
        2) 1) "a"
           2) "2"
> XREADGROUP GROUP g bob STREAMS s 1-2
1) 1) "s"
   2) 1) 1) "1-3"
         2) 1) "a"
            2) "3"
resp3:
1# "s" =>
     1) 1) "1-3"
        2) 1) "a"
           2) "3"
> XREADGROUP GROUP g carol STREAMS s 0
1) 1) "s"
   2) (empty array)
resp3:
1# "s" => (empty array)
> XPENDING s g
1) (integer) 3
2) "1-1"
3) "1-3"
4) 1) 1) "alice"
      2) "1"
   2) 1) "bob"
      2) "2"
> XACK s g 1-1 1-1 9-9
(integer) 1
> XACK s g 1-2
(integer) 1
> XPENDING s g
1) (integer) 1
2) "1-3"
3) "1-3"
4) 1) 1) "bob"
      2) "1"
> XDEL s 1-3
(integer) 1
> XREADGROUP GROUP g bob STREAMS s 0
1) 1) "s"
   2) 1) 1) "1-3"
         2) (nil array)
resp3:
1# "s" =>
     1) 1) "1-3"
        2) (nil)
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 3
    5) "pending"
    6) (integer) 1
    7) "last-delivered-id"
    8) "1-3"
    9) "entries-read"
   10) (integer) 3
   11) "lag"
   12) (integer) 0
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 3
   3# "pending" => (integer) 1
   4# "last-delivered-id" => "1-3"
   5# "entries-read" => (integer) 3
   6# "lag" => (integer) 0
> XADD s 2-1 a 1
"2-1"
> XREADGROUP GROUP g bob NOACK STREAMS s >
1) 1) "s"
   2) 1) 1) "2-1"
         2) 1) "a"
            2) "1"
resp3:
1# "s" =>
     1) 1) "2-1"
        2) 1) "a"
           2) "1"
> XPENDING s g
1) (integer) 1
2) "1-3"
3) "1-3"
4) 1) 1) "bob"
      2) "1"
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 3
    5) "pending"
    6) (integer) 1
    7) "last-delivered-id"
    8) "2-1"
    9) "entries-read"
   10) (integer) 4
   11) "lag"
   12) (integer) 0
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 3
   3# "pending" => (integer) 1
   4# "last-delivered-id" => "2-1"
   5# "entries-read" => (integer) 4
   6# "lag" => (integer) 0
> XREADGROUP GROUP g bob STREAMS s $
(error) ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.
> XREADGROUP GROUP g bob STREAMS s +
(error) ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set.
> XREADGROUP GROUP nogroup bob STREAMS s >
(error) NOGROUP No such key 's' or consumer group 'nogroup' in XREADGROUP with GROUP option
> XREADGROUP GROUP g bob STREAMS nokey >
(error) NOGROUP No such key 'nokey' or consumer group 'g' in XREADGROUP with GROUP option
> XREADGROUP GROUP "\xffg\x00x" bob STREAMS "\xfek\x00x" >
(error) NOGROUP No such key '\xfek' or consumer group '\xffg' in XREADGROUP with GROUP option
> XPENDING s "\xffg\x00x"
(error) NOGROUP No such key 's' or consumer group '\xffg'
> XINFO CONSUMERS s "\xffg\x00x"
(error) NOGROUP No such consumer group '\xffg' for key name 's'
> XCLAIM s g bob 0 1 "\xffg\x00x"
(error) ERR Unrecognized XCLAIM option '\xffg'
> XREADGROUP GROUP g bob STREAMS s
(error) ERR wrong number of arguments for 'xreadgroup' command
> XREADGROUP GROUP g bob STREAMS s s >
(error) ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.
> XREADGROUP STREAMS s s s > > >
(error) ERR Missing GROUP option for XREADGROUP
> XACK s nogroup 1-1
(integer) 0
> XACK nokey g x
(integer) 0
> XACK s g x
(error) ERR Invalid stream ID specified as stream command argument
> SET string x
OK
> XREADGROUP GROUP g bob STREAMS string >
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> XACK string g 1-1
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== what is pending
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 1-3 a 3
"1-3"
> XGROUP CREATE s g 0
OK
> XPENDING s g
1) (integer) 0
2) (nil)
3) (nil)
4) (nil array)
> XPENDING s g - + 10
(empty array)
> XREADGROUP GROUP g alice COUNT 2 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
> XREADGROUP GROUP g bob STREAMS s >
1) 1) "s"
   2) 1) 1) "1-3"
         2) 1) "a"
            2) "3"
resp3:
1# "s" =>
     1) 1) "1-3"
        2) 1) "a"
           2) "3"
> XPENDING s g
1) (integer) 3
2) "1-1"
3) "1-3"
4) 1) 1) "alice"
      2) "2"
   2) 1) "bob"
      2) "1"
> XPENDING s g - + 0
(empty array)
> XPENDING s g 1-4 + 10
(empty array)
> XPENDING s g - + 10 nobody
(empty array)
> XPENDING s g IDLE 1000000 - + 10
(empty array)
> XPENDING s g IDLE x - + 10
(error) ERR value is not an integer or out of range
> XPENDING s g - +
(error) ERR syntax error
> XPENDING s g - + x
(error) ERR value is not an integer or out of range
> XPENDING s g x + 10
(error) ERR Invalid stream ID specified as stream command argument
> XPENDING s g IDLE 0 - +
(error) ERR syntax error
> XPENDING s nogroup
(error) NOGROUP No such key 's' or consumer group 'nogroup'
> XPENDING nokey g
(error) NOGROUP No such key 'nokey' or consumer group 'g'
> XGROUP DELCONSUMER s g alice
(integer) 2
> XPENDING s g
1) (integer) 1
2) "1-3"
3) "1-3"
4) 1) 1) "bob"
      2) "1"
> SET string x
OK
> XPENDING string g
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== claiming
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 1-3 a 3
"1-3"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g alice STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
      3) 1) "1-3"
         2) 1) "a"
            2) "3"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
     3) 1) "1-3"
        2) 1) "a"
           2) "3"
> XCLAIM s g bob 0 1-1
1) 1) "1-1"
   2) 1) "a"
      2) "1"
> XCLAIM s g bob 0 1-2 1-3 9-9 JUSTID
1) "1-2"
2) "1-3"
> XCLAIM s g carol 1000000 1-1
(empty array)
> XPENDING s g
1) (integer) 3
2) "1-1"
3) "1-3"
4) 1) 1) "bob"
      2) "3"
> XACK s g 1-2
(integer) 1
> XCLAIM s g bob 0 1-2
(empty array)
> XCLAIM s g bob 0 1-2 FORCE RETRYCOUNT 7 JUSTID
1) "1-2"
> XDEL s 1-3
(integer) 1
> XCLAIM s g alice 0 1-3
(empty array)
> XPENDING s g
1) (integer) 2
2) "1-1"
3) "1-2"
4) 1) 1) "bob"
      2) "2"
> XCLAIM s g bob 0 1-1 LASTID 5-5
1) 1) "1-1"
   2) 1) "a"
      2) "1"
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 3
    5) "pending"
    6) (integer) 2
    7) "last-delivered-id"
    8) "5-5"
    9) "entries-read"
   10) (integer) 3
   11) "lag"
   12) (integer) 0
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 3
   3# "pending" => (integer) 2
   4# "last-delivered-id" => "5-5"
   5# "entries-read" => (integer) 3
   6# "lag" => (integer) 0
> XCLAIM s g bob x 1-1
(error) ERR Invalid min-idle-time argument for XCLAIM
> XCLAIM s g bob 0 x
(error) ERR Unrecognized XCLAIM option 'x'
> XCLAIM s g bob 0 1-1 NOTHING
(error) ERR Unrecognized XCLAIM option 'NOTHING'
> XCLAIM s g bob 0 1-1 IDLE x
(error) ERR Invalid IDLE option argument for XCLAIM
> XCLAIM s g bob 0 1-1 TIME x
(error) ERR Invalid TIME option argument for XCLAIM
> XCLAIM s g bob 0 1-1 RETRYCOUNT x
(error) ERR Invalid RETRYCOUNT option argument for XCLAIM
> XCLAIM s g bob 0 1-1 LASTID x
(error) ERR Invalid stream ID specified as stream command argument
> XCLAIM s g bob 0 1-1 IDLE
(error) ERR Unrecognized XCLAIM option 'IDLE'
> XCLAIM s nogroup bob 0 1-1
(error) NOGROUP No such key 's' or consumer group 'nogroup'
> XCLAIM nokey g bob 0 1-1
(error) NOGROUP No such key 'nokey' or consumer group 'g'
> XCLAIM s g bob 0
(error) ERR wrong number of arguments for 'xclaim' command

== claiming whatever is old
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 1-3 a 3
"1-3"
> XADD s 1-4 a 4
"1-4"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g alice STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
      3) 1) "1-3"
         2) 1) "a"
            2) "3"
      4) 1) "1-4"
         2) 1) "a"
            2) "4"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
     3) 1) "1-3"
        2) 1) "a"
           2) "3"
     4) 1) "1-4"
        2) 1) "a"
           2) "4"
> XDEL s 1-2
(integer) 1
> XAUTOCLAIM s g bob 0 0 COUNT 1
1) "1-2"
2) 1) 1) "1-1"
      2) 1) "a"
         2) "1"
3) (empty array)
> XAUTOCLAIM s g bob 0 (1-1 COUNT 2
1) "1-4"
2) 1) 1) "1-3"
      2) 1) "a"
         2) "3"
3) 1) "1-2"
> XAUTOCLAIM s g bob 1000000 -
1) "0-0"
2) (empty array)
3) (empty array)
> XAUTOCLAIM s g bob 0 0 JUSTID
1) "0-0"
2) 1) "1-1"
   2) "1-3"
   3) "1-4"
3) (empty array)
> XAUTOCLAIM s g bob 0 9
1) "0-0"
2) (empty array)
3) (empty array)
> XPENDING s g
1) (integer) 3
2) "1-1"
3) "1-4"
4) 1) 1) "bob"
      2) "3"
> XAUTOCLAIM s g bob x 0
(error) ERR Invalid min-idle-time argument for XAUTOCLAIM
> XAUTOCLAIM s g bob 0 x
(error) ERR Invalid stream ID specified as stream command argument
> XAUTOCLAIM s g bob 0 0 COUNT 0
(error) ERR COUNT must be > 0
> XAUTOCLAIM s g bob 0 0 COUNT x
(error) ERR COUNT must be > 0
> XAUTOCLAIM s g bob 0 0 COUNT
(error) ERR syntax error
> XAUTOCLAIM s g bob 0 0 NOTHING
(error) ERR syntax error
> XAUTOCLAIM s nogroup bob 0 0
(error) NOGROUP No such key 's' or consumer group 'nogroup'
> XAUTOCLAIM nokey g bob 0 0
(error) NOGROUP No such key 'nokey' or consumer group 'g'

== what a group has not read
> XGROUP CREATE s g $ MKSTREAM
OK
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 1-3 a 3
"1-3"
> XADD s 1-4 a 4
"1-4"
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 0
    5) "pending"
    6) (integer) 0
    7) "last-delivered-id"
    8) "0-0"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 4
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 0
   3# "pending" => (integer) 0
   4# "last-delivered-id" => "0-0"
   5# "entries-read" => (nil)
   6# "lag" => (integer) 4
> XREADGROUP GROUP g c COUNT 2 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 1
    5) "pending"
    6) (integer) 2
    7) "last-delivered-id"
    8) "1-2"
    9) "entries-read"
   10) (integer) 2
   11) "lag"
   12) (integer) 2
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 1
   3# "pending" => (integer) 2
   4# "last-delivered-id" => "1-2"
   5# "entries-read" => (integer) 2
   6# "lag" => (integer) 2
> XDEL s 1-3
(integer) 1
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 1
    5) "pending"
    6) (integer) 2
    7) "last-delivered-id"
    8) "1-2"
    9) "entries-read"
   10) (integer) 2
   11) "lag"
   12) (nil)
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 1
   3# "pending" => (integer) 2
   4# "last-delivered-id" => "1-2"
   5# "entries-read" => (integer) 2
   6# "lag" => (nil)
> XREADGROUP GROUP g c COUNT 1 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-4"
         2) 1) "a"
            2) "4"
resp3:
1# "s" =>
     1) 1) "1-4"
        2) 1) "a"
           2) "4"
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 1
    5) "pending"
    6) (integer) 3
    7) "last-delivered-id"
    8) "1-4"
    9) "entries-read"
   10) (integer) 4
   11) "lag"
   12) (integer) 0
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 1
   3# "pending" => (integer) 3
   4# "last-delivered-id" => "1-4"
   5# "entries-read" => (integer) 4
   6# "lag" => (integer) 0
> XADD s 1-5 a 5
"1-5"
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 1
    5) "pending"
    6) (integer) 3
    7) "last-delivered-id"
    8) "1-4"
    9) "entries-read"
   10) (integer) 4
   11) "lag"
   12) (integer) 1
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 1
   3# "pending" => (integer) 3
   4# "last-delivered-id" => "1-4"
   5# "entries-read" => (integer) 4
   6# "lag" => (integer) 1
> XTRIM s MAXLEN 1
(integer) 3
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 1
    5) "pending"
    6) (integer) 3
    7) "last-delivered-id"
    8) "1-4"
    9) "entries-read"
   10) (integer) 4
   11) "lag"
   12) (integer) 1
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 1
   3# "pending" => (integer) 3
   4# "last-delivered-id" => "1-4"
   5# "entries-read" => (integer) 4
   6# "lag" => (integer) 1
> XGROUP SETID s g 0
OK
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 1
    5) "pending"
    6) (integer) 3
    7) "last-delivered-id"
    8) "0-0"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 1
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 1
   3# "pending" => (integer) 3
   4# "last-delivered-id" => "0-0"
   5# "entries-read" => (nil)
   6# "lag" => (integer) 1
> XGROUP SETID s g 1-4
OK
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 1
    5) "pending"
    6) (integer) 3
    7) "last-delivered-id"
    8) "1-4"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 1
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 1
   3# "pending" => (integer) 3
   4# "last-delivered-id" => "1-4"
   5# "entries-read" => (nil)
   6# "lag" => (integer) 1
> XTRIM s MAXLEN 0
(integer) 1
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 1
    5) "pending"
    6) (integer) 3
    7) "last-delivered-id"
    8) "1-4"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 0
resp3:
1) 1# "name" => "g"
   2# "consumers" => (integer) 1
   3# "pending" => (integer) 3
   4# "last-delivered-id" => "1-4"
   5# "entries-read" => (nil)
   6# "lag" => (integer) 0

== descriptions
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2 b 3
"1-2"
> XINFO STREAM s
 1) "length"
 2) (integer) 2
 3) "radix-tree-keys"
 4) (integer) 1
 5) "radix-tree-nodes"
 6) (integer) 2
 7) "last-generated-id"
 8) "1-2"
 9) "max-deleted-entry-id"
10) "0-0"
11) "entries-added"
12) (integer) 2
13) "recorded-first-entry-id"
14) "1-1"
15) "groups"
16) (integer) 0
17) "first-entry"
18) 1) "1-1"
    2) 1) "a"
       2) "1"
19) "last-entry"
20) 1) "1-2"
    2) 1) "a"
       2) "2"
       3) "b"
       4) "3"
resp3:
 1# "length" => (integer) 2
 2# "radix-tree-keys" => (integer) 1
 3# "radix-tree-nodes" => (integer) 2
 4# "last-generated-id" => "1-2"
 5# "max-deleted-entry-id" => "0-0"
 6# "entries-added" => (integer) 2
 7# "recorded-first-entry-id" => "1-1"
 8# "groups" => (integer) 0
 9# "first-entry" =>
      1) "1-1"
      2) 1) "a"
         2) "1"
10# "last-entry" =>
      1) "1-2"
      2) 1) "a"
         2) "2"
         3) "b"
         4) "3"
> XINFO STREAM s FULL
 1) "length"
 2) (integer) 2
 3) "radix-tree-keys"
 4) (integer) 1
 5) "radix-tree-nodes"
 6) (integer) 2
 7) "last-generated-id"
 8) "1-2"
 9) "max-deleted-entry-id"
10) "0-0"
11) "entries-added"
12) (integer) 2
13) "recorded-first-entry-id"
14) "1-1"
15) "entries"
16) 1) 1) "1-1"
       2) 1) "a"
          2) "1"
    2) 1) "1-2"
       2) 1) "a"
          2) "2"
          3) "b"
          4) "3"
17) "groups"
18) (empty array)
resp3:
1# "length" => (integer) 2
2# "radix-tree-keys" => (integer) 1
3# "radix-tree-nodes" => (integer) 2
4# "last-generated-id" => "1-2"
5# "max-deleted-entry-id" => "0-0"
6# "entries-added" => (integer) 2
7# "recorded-first-entry-id" => "1-1"
8# "entries" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
           3) "b"
           4) "3"
9# "groups" => (empty array)
> XINFO STREAM s FULL COUNT 1
 1) "length"
 2) (integer) 2
 3) "radix-tree-keys"
 4) (integer) 1
 5) "radix-tree-nodes"
 6) (integer) 2
 7) "last-generated-id"
 8) "1-2"
 9) "max-deleted-entry-id"
10) "0-0"
11) "entries-added"
12) (integer) 2
13) "recorded-first-entry-id"
14) "1-1"
15) "entries"
16) 1) 1) "1-1"
       2) 1) "a"
          2) "1"
17) "groups"
18) (empty array)
resp3:
1# "length" => (integer) 2
2# "radix-tree-keys" => (integer) 1
3# "radix-tree-nodes" => (integer) 2
4# "last-generated-id" => "1-2"
5# "max-deleted-entry-id" => "0-0"
6# "entries-added" => (integer) 2
7# "recorded-first-entry-id" => "1-1"
8# "entries" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
9# "groups" => (empty array)
> XINFO STREAM s NOTHING
(error) ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
> XINFO STREAM s FULL COUNT
(error) ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
> XINFO STREAM s FULL COUNT x
(error) ERR value is not an integer or out of range
> XINFO STREAM nokey
(error) ERR no such key
> XINFO STREAM nokey NOTHING
(error) ERR no such key
> XINFO GROUPS s
(empty array)
> XINFO GROUPS nokey
(error) ERR no such key
> XINFO CONSUMERS nokey g
(error) ERR no such key
> XINFO CONSUMERS s g
(error) NOGROUP No such consumer group 'g' for key name 's'
> XGROUP CREATE s g 0
OK
> XINFO CONSUMERS s g
(empty array)
> XINFO NOTHING s
(error) ERR unknown subcommand 'NOTHING'. Try XINFO HELP.
> XINFO STREAM
(error) ERR wrong number of arguments for 'xinfo|stream' command
> SET string x
OK
> XINFO STREAM string
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== readers wait for entries
2> XREAD BLOCK 0 STREAMS s $
(blocked)
3> XREAD BLOCK 0 COUNT 1 STREAMS t s 0 0
(blocked)
> XADD s 1-1 a 1
"1-1"
2<
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
3<
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
2> XREAD BLOCK 0 STREAMS s $
(blocked)
> DEL s
(integer) 1
> SET s x
OK
> DEL s
(integer) 1
> XADD s 1-1 a 1
"1-1"
> XADD s 2-1 a 2
"2-1"
2<
1) 1) "s"
   2) 1) 1) "2-1"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "2-1"
        2) 1) "a"
           2) "2"
2> XREAD BLOCK 0 STREAMS s t $ $
(blocked)
> XGROUP CREATE u g 0 MKSTREAM
OK
> XADD u 1-1 a 1
"1-1"
> RENAME u t
OK
2<
1) 1) "t"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
resp3:
1# "t" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"

== members of a group are served in turn
> XGROUP CREATE s g $ MKSTREAM
OK
2> XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
(blocked)
3> XREADGROUP GROUP g bob BLOCK 0 STREAMS s >
(blocked)
> XADD s 1-1 a 1
"1-1"
2<
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
> XADD s 1-2 a 2
"1-2"
3<
1) 1) "s"
   2) 1) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-2"
        2) 1) "a"
           2) "2"
> XPENDING s g
1) (integer) 2
2) "1-1"
3) "1-2"
4) 1) 1) "alice"
      2) "1"
   2) 1) "bob"
      2) "1"

== who waits in a group is told when it goes
> XGROUP CREATE s g $ MKSTREAM
OK
2> XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
(blocked)
> XGROUP DESTROY s g
(integer) 1
2<
(error) NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
> XGROUP CREATE s g $
OK
2> XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
(blocked)
> DEL s
(integer) 1
2<
(error) NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
> XGROUP CREATE s g $ MKSTREAM
OK
2> XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
(blocked)
> SET s x
OK
2<
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> DEL s
(integer) 1
> XGROUP CREATE s g $ MKSTREAM
OK
2> XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
(blocked)
> RENAME s t
OK
2<
(error) NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
2> XREADGROUP GROUP g alice BLOCK 0 STREAMS t >
(blocked)
> FLUSHALL
OK
2<
(error) NOGROUP No such key 't' or consumer group 'g' in XREADGROUP with GROUP option
> XGROUP CREATE s g $ MKSTREAM
OK
2> XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
(blocked)
> PEXPIRE s 1
(integer) 1
2<
(error) NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option

== nobody waits in a transaction
> MULTI
OK
> XADD s 1-1 a 1
QUEUED
> XREAD BLOCK 0 STREAMS s $
QUEUED
> XREAD BLOCK 0 STREAMS s 0
QUEUED
> XGROUP CREATE s g $
QUEUED
> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
QUEUED
> EXEC
1) "1-1"
2) (nil array)
3) 1) 1) "s"
      2) 1) 1) "1-1"
            2) 1) "a"
               2) "1"
4) OK
5) (nil array)
resp3:
1) "1-1"
2) (nil)
3) 1# "s" =>
        1) 1) "1-1"
           2) 1) "a"
              2) "1"
4) OK
5) (nil)

== a copy lives apart
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g c COUNT 1 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
> COPY s t
(integer) 1
> XDEL s 1-1
(integer) 1
> XACK s g 1-1
(integer) 1
> XADD s 1-3 a 3
"1-3"
> XRANGE t - +
1) 1) "1-1"
   2) 1) "a"
      2) "1"
2) 1) "1-2"
   2) 1) "a"
      2) "2"
> XPENDING t g
1) (integer) 1
2) "1-1"
3) "1-1"
4) 1) 1) "c"
      2) "1"
> XINFO STREAM t
 1) "length"
 2) (integer) 2
 3) "radix-tree-keys"
 4) (integer) 1
 5) "radix-tree-nodes"
 6) (integer) 2
 7) "last-generated-id"
 8) "1-2"
 9) "max-deleted-entry-id"
10) "0-0"
11) "entries-added"
12) (integer) 2
13) "recorded-first-entry-id"
14) "1-1"
15) "groups"
16) (integer) 1
17) "first-entry"
18) 1) "1-1"
    2) 1) "a"
       2) "1"
19) "last-entry"
20) 1) "1-2"
    2) 1) "a"
       2) "2"
resp3:
 1# "length" => (integer) 2
 2# "radix-tree-keys" => (integer) 1
 3# "radix-tree-nodes" => (integer) 2
 4# "last-generated-id" => "1-2"
 5# "max-deleted-entry-id" => "0-0"
 6# "entries-added" => (integer) 2
 7# "recorded-first-entry-id" => "1-1"
 8# "groups" => (integer) 1
 9# "first-entry" =>
      1) "1-1"
      2) 1) "a"
         2) "1"
10# "last-entry" =>
      1) "1-2"
      2) 1) "a"
         2) "2"
> DEBUG DIGEST-VALUE s t
1) ed6e6c7efa0ab15f7a67f8351b209c1c8ade537c
2) f12544c927504f6eaa85e5137589128b6d15d03b
> SORT s
(error) WRONGTYPE Operation against a key holding the wrong kind of value

== who watches a stream
> XADD s 1-1 a 1
"1-1"
> XGROUP CREATE s g 0
OK
> WATCH s
OK
2> XREADGROUP GROUP g c STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
2> XACK s g 1-1
(integer) 1
2> XCLAIM s g d 0 1-1
(empty array)
2> XGROUP SETID s g 0
OK
2> XGROUP DESTROY s g
(integer) 1
2> XDEL s 9-9
(integer) 0
2> XSETID s 5-5
OK
> MULTI
OK
> PING
QUEUED
> EXEC
1) PONG
> WATCH s
OK
2> XDEL s 1-1
(integer) 1
> MULTI
OK
> PING
QUEUED
> EXEC
(nil array)

== deleting with regard to groups
@dunlin: Redis has this from 8.2 on: its manual is the reference
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 1-3 a 3
"1-3"
> XGROUP CREATE s g 0
OK
> XGROUP CREATE s h 0
OK
> XREADGROUP GROUP g c COUNT 2 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
> XDELEX s ACKED IDS 2 1-1 9-9
1) (integer) 2
2) (integer) -1
> XACK s g 1-1
(integer) 1
> XDELEX s ACKED IDS 1 1-1
1) (integer) 2
> XGROUP DESTROY s h
(integer) 1
> XDELEX s ACKED IDS 1 1-1
1) (integer) 1
> XACKDEL s g ACKED IDS 3 1-2 1-3 1-1
1) (integer) 1
2) (integer) -1
3) (integer) -1
> XLEN s
(integer) 1
> XADD s 1-4 a 4
"1-4"
> XREADGROUP GROUP g c NOACK STREAMS s 1-9
1) 1) "s"
   2) (empty array)
resp3:
1# "s" => (empty array)
> XCLAIM s g c 0 1-3 1-4 FORCE JUSTID
1) "1-3"
2) "1-4"
> XDELEX s IDS 1 1-3
1) (integer) 1
> XPENDING s g
1) (integer) 2
2) "1-3"
3) "1-4"
4) 1) 1) "c"
      2) "2"
> XDELEX s DELREF IDS 1 1-4
1) (integer) 1
> XPENDING s g
1) (integer) 1
2) "1-3"
3) "1-3"
4) 1) 1) "c"
      2) "1"
> XACKDEL s g KEEPREF IDS 1 1-3
1) (integer) 1
> XDELEX nokey IDS 2 1-1 1-2
1) (integer) -1
2) (integer) -1
> XACKDEL s nogroup IDS 1 1-1
1) (integer) -1
> XDELEX s IDS 0 1-1
(error) ERR Number of IDs must be a positive integer
> XDELEX s IDS 2 1-1
(error) ERR The `numids` parameter must match the number of arguments
> XDELEX s IDS 1 x
(error) ERR Invalid stream ID specified as stream command argument
> XDELEX s NOTHING IDS 1 1-1
(error) ERR syntax error
> XDELEX s ACKED 1 1-1
(error) ERR syntax error
> XDELEX s IDS 1
(error) ERR wrong number of arguments for 'xdelex' command
> XDELEX s IDS 1 1-1 1-2
(error) ERR The `numids` parameter must match the number of arguments
> XDELEX s DELREF IDS 1 1-1 ACKED
(error) ERR The `numids` parameter must match the number of arguments

== what groups have of entries that are gone goes with DELREF
@dunlin: Redis has this from 8.2 on: its manual is the reference
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XGROUP CREATE s g 0
OK
> XGROUP CREATE s h 0
OK
> XREADGROUP GROUP g c STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
> XREADGROUP GROUP h c STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
> XDEL s 1-1 1-2
(integer) 2
> XDELEX s IDS 1 1-1
1) (integer) -1
> XDELEX s IDS 1 1-1 DELREF
1) (integer) -1
> XPENDING s g
1) (integer) 1
2) "1-2"
3) "1-2"
4) 1) 1) "c"
      2) "1"
> XPENDING s h
1) (integer) 1
2) "1-2"
3) "1-2"
4) 1) 1) "c"
      2) "1"
> XACKDEL s g DELREF IDS 1 1-2
1) (integer) 1
> XPENDING s h
1) (integer) 0
2) (nil)
3) (nil)
4) (nil array)
resp3:
1) (integer) 0
2) (nil)
3) (nil)
4) (nil)

== trimming with regard to groups
@dunlin: Redis has this from 8.2 on: its manual is the reference
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 1-3 a 3
"1-3"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g c COUNT 2 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
      2) 1) "1-2"
         2) 1) "a"
            2) "2"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
     2) 1) "1-2"
        2) 1) "a"
           2) "2"
> XACK s g 1-2
(integer) 1
> XTRIM s MAXLEN 0 ACKED
(integer) 1
> XRANGE s - +
1) 1) "1-1"
   2) 1) "a"
      2) "1"
2) 1) "1-3"
   2) 1) "a"
      2) "3"
> XADD s ACKED MAXLEN 1 1-4 a 4
"1-4"
> XLEN s
(integer) 3
> XADD s DELREF MAXLEN 2 1-5 a 5
"1-5"
> XPENDING s g
1) (integer) 0
2) (nil)
3) (nil)
4) (nil array)
resp3:
1) (integer) 0
2) (nil)
3) (nil)
4) (nil)
> XADD s KEEPREF ACKED MAXLEN 1 1-6 a 6
(error) ERR syntax error
> XTRIM s ACKED
(error) ERR wrong number of arguments for 'xtrim' command

== a consumer claims what has been pending for long, and reads on
@dunlin: Redis has this from 8.4 on: its manual is the reference
> XADD s 1-1 a 1
"1-1"
> XADD s 1-2 a 2
"1-2"
> XADD s 1-3 a 3
"1-3"
> XADD s 1-4 a 4
"1-4"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g one COUNT 3 STREAMS s >
...
> XDEL s 1-2
(integer) 1
sleep 30
> XREADGROUP GROUP g two COUNT 1 CLAIM 20 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
~          3\) \(integer\) \d+
         4) (integer) 1
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
~         3\) \(integer\) \d+
        4) (integer) 1
> XREADGROUP GROUP g two CLAIM 20 NOACK STREAMS s >
1) 1) "s"
   2) 1) 1) "1-3"
         2) 1) "a"
            2) "3"
~          3\) \(integer\) \d+
         4) (integer) 1
      2) 1) "1-4"
         2) 1) "a"
            2) "4"
         3) (integer) 0
         4) (integer) 0
resp3:
1# "s" =>
     1) 1) "1-3"
        2) 1) "a"
           2) "3"
~         3\) \(integer\) \d+
        4) (integer) 1
     2) 1) "1-4"
        2) 1) "a"
           2) "4"
        3) (integer) 0
        4) (integer) 0
> XPENDING s g - + 10 two
1) 1) "1-1"
   2) "two"
~    3\) \(integer\) \d+
   4) (integer) 2
2) 1) "1-3"
   2) "two"
~    3\) \(integer\) \d+
   4) (integer) 2
> XPENDING s g - + 10 one
(empty array)
> XREADGROUP GROUP g one CLAIM 100000 STREAMS s >
(nil array)
> XREADGROUP GROUP g one CLAIM 0 STREAMS s 0
1) 1) "s"
   2) (empty array)
resp3:
1# "s" => (empty array)
> XREADGROUP GROUP g one CLAIM -1 STREAMS s >
(error) ERR min-idle-time must be a positive integer
> XREADGROUP GROUP g one CLAIM x STREAMS s >
(error) ERR min-idle-time is not an integer or out of range
> XREAD CLAIM 1 STREAMS s 0
(error) ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.

== who waits gets what becomes old enough meanwhile
@dunlin: Redis has this from 8.4 on: its manual is the reference
> XADD s 1-1 a 1
"1-1"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g one STREAMS s >
...
2> XREADGROUP GROUP g two BLOCK 0 CLAIM 100 STREAMS s >
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "1"
~          3\) \(integer\) \d{3}
         4) (integer) 1
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "1"
~         3\) \(integer\) \d{3}
        4) (integer) 1
2> XREADGROUP GROUP g two BLOCK 60 CLAIM 100000 STREAMS s >
(nil array)
3> XREADGROUP GROUP g two BLOCK 0 CLAIM 100000 STREAMS s >
(blocked)
sleep 1100
> XADD s 1-2 a 2
"1-2"
3<
1) 1) "s"
   2) 1) 1) "1-2"
         2) 1) "a"
            2) "2"
         3) (integer) 0
         4) (integer) 0
resp3:
1# "s" =>
     1) 1) "1-2"
        2) 1) "a"
           2) "2"
        3) (integer) 0
        4) (integer) 0

== XREADGROUP takes the largest id for the sign of new entries
> XADD s 1-1 a b
"1-1"
> XGROUP CREATE s g 0
OK
> XREADGROUP GROUP g c STREAMS s 18446744073709551615-18446744073709551615
1) 1) "s"
   2) 1) 1) "1-1"
         2) 1) "a"
            2) "b"
resp3:
1# "s" =>
     1) 1) "1-1"
        2) 1) "a"
           2) "b"
> XREADGROUP GROUP g c STREAMS s 18446744073709551615-18446744073709551615
(nil array)
> XREADGROUP GROUP g c STREAMS s 18446744073709551615
1) 1) "s"
   2) (empty array)
resp3:
1# "s" => (empty array)
> XPENDING s g
1) (integer) 1
2) "1-1"
3) "1-1"
4) 1) 1) "c"
      2) "1"

== a client that waits for several streams hears of the first that is gone
> XGROUP CREATE a g $ MKSTREAM
OK
> XGROUP CREATE b g $ MKSTREAM
OK
2> XREADGROUP GROUP g c BLOCK 0 STREAMS a b > >
(blocked)
3> XREADGROUP GROUP g c BLOCK 0 STREAMS b a > >
(blocked)
> FLUSHALL
OK
2<
(error) NOGROUP No such key 'a' or consumer group 'g' in XREADGROUP with GROUP option
3<
(error) NOGROUP No such key 'b' or consumer group 'g' in XREADGROUP with GROUP option
