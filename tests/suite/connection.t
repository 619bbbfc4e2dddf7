# What a connection can say about itself: HELLO, AUTH, SELECT, PING, CLIENT, RESET, QUIT.

== PING and ECHO
> PING
PONG
> PING hello
"hello"
> PING "a\x00b"
"a\x00b"
> PING a b
(error) ERR wrong number of arguments for 'ping' command
> ECHO hello
"hello"
> ECHO ""
""
> ECHO
(error) ERR wrong number of arguments for 'echo' command
> ECHO a b
(error) ERR wrong number of arguments for 'echo' command

== QUIT replies and closes
> QUIT
OK
<
(closed)
2> QUIT now
OK
2<
(closed)
3> PING
PONG
3> quit
OK
3<
(closed)

== what follows QUIT is not executed
>> "SET k v\r\nQUIT\r\nSET k w\r\n"
"+OK\r\n"
"+OK\r\n"
(closed)
2> GET k
"v"

== HELLO tells who answers
@resp2
> [keys] HELLO
1) "server"
2) "version"
3) "proto"
4) "id"
5) "mode"
6) "role"
7) "modules"
> [keys] HELLO 2
1) "server"
2) "version"
3) "proto"
4) "id"
5) "mode"
6) "role"
7) "modules"
> HELLO
...
~  4\) "8\.0\.\d+"
~  5\) "proto"
~  6\) \(integer\) 2
~  7\) "id"
~  8\) \(integer\) \d+
~  9\) "mode"
~ 10\) "standalone"
~ 11\) "role"
~ 12\) "master"
~ 13\) "modules"
...
> [keys] HELLO 3
1) "server"
2) "version"
3) "proto"
4) "id"
5) "mode"
6) "role"
7) "modules"
> HELLO 3
...
~ 3# "proto" => \(integer\) 3
~ 4# "id" => \(integer\) \d+
~ 5# "mode" => "standalone"
~ 6# "role" => "master"
~ 7# "modules" =>.*
...
> HELLO
...
~ 3# "proto" => \(integer\) 3
...
> [keys] HELLO 2
1) "server"
2) "version"
3) "proto"
4) "id"
5) "mode"
6) "role"
7) "modules"
> HGETALL nokey
(empty array)

== HELLO refuses other versions and options
> HELLO 1
(error) NOPROTO unsupported protocol version
> HELLO 4
(error) NOPROTO unsupported protocol version
> HELLO abc
(error) ERR Protocol version is not an integer or out of range
> HELLO 2 foo
(error) ERR Syntax error in HELLO option 'foo'
> HELLO 3 AUTH
(error) ERR Syntax error in HELLO option 'AUTH'
> HELLO 3 AUTH default
(error) ERR Syntax error in HELLO option 'AUTH'
> HELLO 3 SETNAME
(error) ERR Syntax error in HELLO option 'SETNAME'
> HELLO 3 SETNAME "a b"
(error) ERR Client names cannot contain spaces, newlines or special characters.
> HELLO 2 AUTH default wrong foo
(error) ERR Syntax error in HELLO option 'foo'
> HELLO SETNAME x
(error) ERR Protocol version is not an integer or out of range
> HELLO 99999999999999999999
(error) ERR Protocol version is not an integer or out of range
> PING
PONG

== HELLO AUTH and SETNAME
@resp2
> [count] HELLO 2 SETNAME me
(integer) 14
> CLIENT GETNAME
"me"
> [count] HELLO 2 AUTH default anything SETNAME other
(integer) 14
> CLIENT GETNAME
"other"
> HELLO 2 AUTH nobody x
(error) WRONGPASS invalid username-password pair or user is disabled.
> CLIENT GETNAME
"other"
> [count] hello 2 setname again
(integer) 14
> CLIENT GETNAME
"again"

== a switch of protocol changes the replies
@resp2
> HGETALL nokey
(empty array)
> ZADD z 1.5 a
(integer) 1
> ZSCORE z a
"1.5"
> GET nokey
(nil)
> [count] HELLO 3
(integer) 14
> HGETALL nokey
(empty hash)
> ZSCORE z a
(double) 1.5
> GET nokey
(nil)
> ZRANGE z 0 -1 WITHSCORES
1) 1) "a"
   2) (double) 1.5
> [count] HELLO 2
(integer) 14
> ZSCORE z a
"1.5"
> BLPOP nokey 0.001
(nil array)

== AUTH without a password
> AUTH x
(error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
> AUTH default x
OK
> AUTH nobody x
(error) WRONGPASS invalid username-password pair or user is disabled.
> AUTH
(error) ERR wrong number of arguments for 'auth' command
> AUTH a b c
(error) ERR syntax error
> PING
PONG

== requirepass asks for it
@resp2
config set requirepass secret
2> PING
(error) NOAUTH Authentication required.
2> GET k
(error) NOAUTH Authentication required.
2> nosuchcommand
(error) ERR unknown command 'nosuchcommand', with args beginning with:\x20
2> GET
(error) ERR wrong number of arguments for 'get' command
2> MULTI
(error) NOAUTH Authentication required.
2> HELLO
(error) NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time
2> HELLO 3
(error) NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time
2> AUTH wrong
(error) WRONGPASS invalid username-password pair or user is disabled.
2> AUTH default wrong
(error) WRONGPASS invalid username-password pair or user is disabled.
2> AUTH nobody secret
(error) WRONGPASS invalid username-password pair or user is disabled.
2> RESET
RESET
2> AUTH secret
OK
2> PING
PONG
2> AUTH wrong
(error) WRONGPASS invalid username-password pair or user is disabled.
2> PING
PONG
3> AUTH default secret
OK
3> PING
PONG
4> [count] HELLO 3 AUTH default secret
(integer) 14
4> PING
PONG
5> HELLO 3 AUTH default wrong
(error) WRONGPASS invalid username-password pair or user is disabled.
5> HELLO 3 AUTH nobody secret
(error) WRONGPASS invalid username-password pair or user is disabled.
5> HGETALL k
(error) NOAUTH Authentication required.
5> QUIT
OK
5<
(closed)
6> AUTH secret
OK
6> RESET
RESET
6> PING
(error) NOAUTH Authentication required.
7> SUBSCRIBE a
(error) NOAUTH Authentication required.
7> CLIENT ID
(error) NOAUTH Authentication required.
7> COMMAND
(error) NOAUTH Authentication required.
7> INFO
(error) NOAUTH Authentication required.

== connections made before the password stay
@resp2
> PING
PONG
> CONFIG SET requirepass secret
OK
> PING
PONG
> CONFIG GET requirepass
1) "requirepass"
2) "secret"
2> PING
(error) NOAUTH Authentication required.
> CONFIG SET requirepass ""
OK
2> PING
PONG
> AUTH secret
(error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?

== SELECT
> SELECT 1
OK
> SET k v
OK
> SELECT 0
OK
> GET k
(nil)
> SELECT 15
OK
> SELECT 16
(error) ERR DB index is out of range
> SELECT -1
(error) ERR DB index is out of range
> SELECT abc
(error) ERR value is not an integer or out of range
> SELECT 1.0
(error) ERR value is not an integer or out of range
> SELECT ""
(error) ERR value is not an integer or out of range
> SELECT 99999999999
(error) ERR value is out of range, value must between -2147483648 and 2147483647
> SELECT 9223372036854775808
(error) ERR value is not an integer or out of range
> [field=db] CLIENT INFO
"15"

== CLIENT SETNAME and GETNAME
> CLIENT GETNAME
(nil)
> CLIENT SETNAME me
OK
> CLIENT GETNAME
"me"
> [field=name] CLIENT INFO
"me"
> CLIENT SETNAME "a b"
(error) ERR Client names cannot contain spaces, newlines or special characters.
> CLIENT SETNAME "a\nb"
(error) ERR Client names cannot contain spaces, newlines or special characters.
> CLIENT SETNAME "\xff"
(error) ERR Client names cannot contain spaces, newlines or special characters.
> CLIENT GETNAME
"me"
> CLIENT SETNAME ""
OK
> CLIENT GETNAME
(nil)
> CLIENT SETNAME
(error) ERR wrong number of arguments for 'client|setname' command
> CLIENT SETNAME a b
(error) ERR wrong number of arguments for 'client|setname' command
> CLIENT GETNAME x
(error) ERR wrong number of arguments for 'client|getname' command

== CLIENT ID grows
> [keep=a] CLIENT ID
(kept)
2> [keep=b] CLIENT ID
(kept)
> CLIENT ID
~ \(integer\) \d+
> CLIENT ID x
(error) ERR wrong number of arguments for 'client|id' command
> [field=id,keep=c] CLIENT INFO
(kept)
> INCRBY n $(a)
~ \(integer\) \d+
> DECRBY n $(c)
(integer) 0
> INCRBY n $(b)
~ \(integer\) \d+
> DECRBY n $(a)
~ \(integer\) [1-9]\d*

== CLIENT INFO and CLIENT LIST have their fields
> [fields] CLIENT INFO
 1) "id"
 2) "addr"
 3) "laddr"
 4) "fd"
 5) "name"
 6) "age"
 7) "idle"
 8) "flags"
 9) "db"
10) "sub"
11) "psub"
12) "ssub"
13) "multi"
14) "watch"
15) "qbuf"
16) "qbuf-free"
17) "argv-mem"
18) "multi-mem"
19) "rbs"
20) "rbp"
21) "obl"
22) "oll"
23) "omem"
24) "tot-mem"
25) "events"
26) "cmd"
27) "user"
28) "redir"
29) "resp"
30) "lib-name"
31) "lib-ver"
32) "io-thread"
> [fields] CLIENT LIST ID 0
(empty array)
> [field=cmd] CLIENT INFO
"client|info"
> [field=user] CLIENT INFO
"default"
> [field=flags] CLIENT INFO
"N"
> [field=sub] CLIENT INFO
"0"
> [field=multi] CLIENT INFO
"-1"
> [field=redir] CLIENT INFO
"-1"
> [field=resp] CLIENT INFO
"2"
resp3:
"3"
> [field=addr] CLIENT INFO
~ "127\.0\.0\.1:\d+"
> [field=laddr] CLIENT INFO
~ "127\.0\.0\.1:\d+"
> CLIENT INFO x
(error) ERR wrong number of arguments for 'client|info' command

== CLIENT LIST shows each connection
2> CLIENT SETNAME two
OK
2> [keep=two] CLIENT ID
(kept)
3> CLIENT SETNAME three
OK
3> [keep=three] CLIENT ID
(kept)
> [field=name] CLIENT LIST ID $(two)
"two"
> [field=name] CLIENT LIST ID $(three)
"three"
> [field=name] CLIENT LIST ID $(two) $(three)
"two"
> CLIENT LIST ID 999999
""
resp3:
(verbatim txt) ""
> CLIENT LIST ID abc
(error) ERR Invalid client ID
> CLIENT LIST ID
(error) ERR syntax error
> CLIENT LIST ID -1
""
resp3:
(verbatim txt) ""
> CLIENT LIST TYPE foo
(error) ERR Unknown client type 'foo'
> CLIENT LIST TYPE
(error) ERR syntax error
> CLIENT LIST TYPE master
""
resp3:
(verbatim txt) ""
> CLIENT LIST TYPE replica
""
resp3:
(verbatim txt) ""
> CLIENT LIST TYPE pubsub
""
resp3:
(verbatim txt) ""
> CLIENT LIST foo
(error) ERR syntax error
> CLIENT LIST TYPE normal extra
(error) ERR syntax error
2> SUBSCRIBE a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
> [field=name] CLIENT LIST TYPE pubsub
"two"
> [field=flags] CLIENT LIST TYPE pubsub
"P"
> [field=sub] CLIENT LIST ID $(two)
"1"
3> MULTI
OK
3> SET k v
QUEUED
> [field=multi] CLIENT LIST ID $(three)
"1"
> [field=flags] CLIENT LIST ID $(three)
"x"
3> EXEC
1) OK
3> BLPOP l 0
(blocked)
> [field=flags] CLIENT LIST ID $(three)
"b"
> [field=cmd] CLIENT LIST ID $(three)
"blpop"
> RPUSH l a
(integer) 1
3<
1) "l"
2) "a"

== CLIENT KILL
2> [keep=two] CLIENT ID
(kept)
> CLIENT KILL ID $(two)
(integer) 1
2<
(closed)
3> [field=addr,keep=three] CLIENT INFO
(kept)
> CLIENT KILL ADDR $(three)
(integer) 1
3<
(closed)
4> [field=addr,keep=four] CLIENT INFO
(kept)
> CLIENT KILL $(four)
OK
4<
(closed)
5> [keep=five] CLIENT ID
(kept)
> CLIENT KILL ID $(five) SKIPME yes TYPE normal USER default
(integer) 1
5<
(closed)
6> [keep=six] CLIENT ID
(kept)
> CLIENT KILL ID $(six) TYPE pubsub
(integer) 0
6> SUBSCRIBE a
(push)
1) "subscribe"
2) "a"
3) (integer) 1
> CLIENT KILL TYPE pubsub
(integer) 1
6<
(closed)
> CLIENT KILL ID 999999
(integer) 0
> CLIENT KILL ADDR 1.2.3.4:5
(integer) 0
> CLIENT KILL 1.2.3.4:5
(error) ERR No such client
> CLIENT KILL ID abc
(error) ERR client-id should be greater than 0
> CLIENT KILL ID 0
(error) ERR client-id should be greater than 0
> CLIENT KILL ID -1
(error) ERR client-id should be greater than 0
> CLIENT KILL TYPE foo
(error) ERR Unknown client type 'foo'
> CLIENT KILL USER nobody
(error) ERR No such user 'nobody'
> CLIENT KILL SKIPME maybe
(error) ERR syntax error
> CLIENT KILL foo bar
(error) ERR syntax error
> CLIENT KILL ID
(error) ERR No such client
> CLIENT KILL ID 1 TYPE
(error) ERR syntax error
> CLIENT KILL
(error) ERR wrong number of arguments for 'client|kill' command
> CLIENT KILL LADDR 1.2.3.4:5
(integer) 0
> CLIENT KILL TYPE replica
(integer) 0
> CLIENT KILL TYPE master
(integer) 0

== CLIENT KILL of oneself
> [keep=me] CLIENT ID
(kept)
> CLIENT KILL ID $(me)
(integer) 0
> CLIENT KILL ID $(me) SKIPME yes
(integer) 0
> PING
PONG
> CLIENT KILL ID $(me) SKIPME no
(integer) 1
<
(closed)
2> [field=addr,keep=two] CLIENT INFO
(kept)
2> CLIENT KILL $(two)
OK
2<
(closed)

== CLIENT REPLY
> CLIENT REPLY ON
OK
> CLIENT REPLY SKIP
(no reply)
> PING
(no reply)
> ECHO heard
"heard"
> CLIENT REPLY OFF
(no reply)
> PING
(no reply)
> SET k v
(no reply)
> CLIENT REPLY ON
OK
> GET k
"v"
> CLIENT REPLY SKIP
(no reply)
> RESET
(no reply)
> PING
PONG
> CLIENT REPLY foo
(error) ERR syntax error
> CLIENT REPLY
(error) ERR wrong number of arguments for 'client|reply' command
> CLIENT REPLY ON x
(error) ERR wrong number of arguments for 'client|reply' command

== CLIENT PAUSE holds writes back
> CLIENT PAUSE 60000 WRITE
OK
> GET k
(nil)
2> SET k v
(blocked)
3> EXPIRE nokey 10
(blocked)
> GET k
(nil)
> CLIENT UNPAUSE
OK
2<
OK
3<
(integer) 0
> GET k
"v"
> CLIENT UNPAUSE
OK
> CLIENT PAUSE 5 ALL
OK
> PING
PONG
> CLIENT PAUSE 5
OK
> PING
PONG
> CLIENT PAUSE 0
OK
> CLIENT PAUSE -1
(error) ERR timeout is negative
> CLIENT PAUSE abc
(error) ERR timeout is not an integer or out of range
> CLIENT PAUSE 10 foo
(error) ERR CLIENT PAUSE mode must be WRITE or ALL
> CLIENT PAUSE
(error) ERR wrong number of arguments for 'client|pause' command
> CLIENT UNPAUSE x
(error) ERR wrong number of arguments for 'client|unpause' command

== CLIENT PAUSE holds an EXEC with writes back
2> MULTI
OK
2> SET k v
QUEUED
3> MULTI
OK
3> GET k
QUEUED
> CLIENT PAUSE 60000 WRITE
OK
2> EXEC
(blocked)
3> EXEC
1) (nil)
> CLIENT UNPAUSE
OK
2<
1) OK

== CLIENT NO-EVICT
> CLIENT NO-EVICT on
OK
> [field=flags] CLIENT INFO
"e"
> CLIENT NO-EVICT off
OK
> [field=flags] CLIENT INFO
"N"
> CLIENT NO-EVICT foo
(error) ERR syntax error
> CLIENT NO-EVICT
(error) ERR wrong number of arguments for 'client|no-evict' command

== CLIENT and what it does not know
> CLIENT
(error) ERR wrong number of arguments for 'client' command
> CLIENT foo
(error) ERR unknown subcommand 'foo'. Try CLIENT HELP.
> CLIENT foo bar
(error) ERR unknown subcommand 'foo'. Try CLIENT HELP.
> CLIENT HELP
~  *1\) .+
...

== RESET brings a connection back to its start
@resp2
> SELECT 3
OK
> CLIENT SETNAME me
OK
> CLIENT NO-EVICT on
OK
> [count] HELLO 3
(integer) 14
> MULTI
OK
> SET k v
QUEUED
> RESET
RESET
> CLIENT GETNAME
(nil)
> [field=db] CLIENT INFO
"0"
> [field=flags] CLIENT INFO
"N"
> [field=resp] CLIENT INFO
"2"
> HGETALL nokey
(empty array)
> EXEC
(error) ERR EXEC without MULTI
> SUBSCRIBE a
1) "subscribe"
2) "a"
3) (integer) 1
> PSUBSCRIBE b
1) "psubscribe"
2) "b"
3) (integer) 2
> SSUBSCRIBE c
1) "ssubscribe"
2) "c"
3) (integer) 1
> RESET
RESET
> GET k
(nil)
> PUBSUB NUMSUB a
1) "a"
2) (integer) 0
> CLIENT REPLY OFF
(no reply)
> RESET
RESET
> RESET x
(error) ERR wrong number of arguments for 'reset' command

== MONITOR shows what others do
> PING
PONG
2> MONITOR
OK
> SET k "a \"b\"\x00"
OK
2<
~ \d+\.\d{6} \[0 127\.0\.0\.1:\d+\] "SET" "k" "a \\"b\\"\\x00"
> SELECT 3
OK
2<
~ .*"SELECT" "3"
> get k
(nil)
2<
~ \d+\.\d{6} \[3 127\.0\.0\.1:\d+\] "get" "k"
> MULTI
OK
2<
~ .*"MULTI"
> PING
QUEUED
> EXEC
1) PONG
2<
~ .*"PING"
2<
~ .*"EXEC"
> AUTH secret
(error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
2<
~ .*"AUTH" "\(redacted\)"
> nosuchcommand
(error) ERR unknown command 'nosuchcommand', with args beginning with:\x20
> SET k
(error) ERR wrong number of arguments for 'set' command
> PING last
"last"
2<
~ .*"PING" "last"
2> RESET
RESET
2> PING
PONG
2> MONITOR x
(error) ERR wrong number of arguments for 'monitor' command

== CLIENT PAUSE ends at a time that can be told
> CLIENT PAUSE 9223372036854775807
(error) ERR timeout is out of range
> CLIENT PAUSE 9223372036854775807 WRITE
(error) ERR timeout is out of range
> PING
PONG
> CLIENT PAUSE 1000000000000 WRITE
OK
> CLIENT UNPAUSE
OK
> SET k v
OK

== CLIENT KILL MAXAGE spares the young
2> CLIENT SETNAME two
OK
> CLIENT KILL MAXAGE 1000000
(integer) 0
> CLIENT KILL MAXAGE 0
(error) ERR maxage should be greater than 0
> CLIENT KILL MAXAGE -1
(error) ERR maxage should be greater than 0
> CLIENT KILL MAXAGE abc
(error) ERR maxage is not an integer or out of range
> CLIENT KILL MAXAGE
(error) ERR No such client
> CLIENT KILL MAXAGE 1000000 SKIPME
(error) ERR syntax error
2> CLIENT GETNAME
"two"

== CLIENT INFO counts watched keys
> [field=watch] CLIENT INFO
"0"
> WATCH a b a
OK
> [field=watch] CLIENT INFO
"2"
> UNWATCH
OK
> [field=watch] CLIENT INFO
"0"

== CLIENT LIST and CLIENT KILL take Valkey's filters
@dunlin: the filters of Valkey 9.0
2> CLIENT SETNAME two
OK
2> CLIENT SETINFO LIB-NAME own
OK
2> CLIENT SETINFO LIB-VER 1.2
OK
2> SELECT 3
OK
2> [keep=two] CLIENT ID
(kept)
3> CLIENT SETNAME three
OK
3> CLIENT CAPA redirect another
OK
3> WATCH k
OK
3> [keep=three] CLIENT ID
(kept)
> [field=name] CLIENT LIST NAME two
"two"
> [field=name] CLIENT LIST LIB-NAME own LIB-VER 1.2
"two"
> [field=name] CLIENT LIST DB 3
"two"
> [field=name] CLIENT LIST CAPA r
"three"
> [field=name] CLIENT LIST ID $(two) $(three) NOT-DB 3
"three"
> [field=name] CLIENT LIST ID $(two) $(three) NOT-CAPA r
"two"
> [field=name] CLIENT LIST ID $(two) $(three) FLAGS N NOT-NAME three IP 127.0.0.1 USER default
"two"
> [field=name] CLIENT LIST SKIPME yes NOT-LIB-NAME own NOT-NAME "" NOT-ID 1000000
"three"
> CLIENT LIST NAME two NAME three DB 3
""
resp3:
(verbatim txt) ""
> CLIENT LIST FLAGS z
(error) ERR Unknown flags found in the provided filter: z
> CLIENT LIST NOT-FLAGS z
(error) ERR Unknown flags found in the NOT-FLAGS filter: z
> CLIENT LIST CAPA x
(error) ERR Unknown capa found in the provided filter: x
> CLIENT LIST DB 16
(error) ERR DB number should be between 0 and 15
> CLIENT LIST NOT-DB x
(error) ERR NOT-DB is not an integer or out of range
> CLIENT LIST IDLE 0
(error) ERR idle should be greater than 0
> CLIENT LIST NOT-IDLE 1
(error) ERR syntax error
> CLIENT LIST ID 1 x
(error) ERR Invalid client ID
> CLIENT KILL ID x
(error) ERR client-id should be greater than 0
> CLIENT KILL ID $(two) x
(error) ERR syntax error
> CLIENT KILL NOT-ID 0
(error) ERR client-id should be greater than 0
> CLIENT KILL ID $(two) $(three) NOT-NAME three
(integer) 1
2<
(closed)
> CLIENT KILL ID $(two) $(three)
(integer) 1
3<
(closed)
> CLIENT CAPA
(error) ERR wrong number of arguments for 'client|capa' command

== errors quote words as they came, up to a zero byte
> "foo\xff\x00bar" "a\x00b" "c\xff"
(error) ERR unknown command 'foo\xff', with args beginning with: 'a' 'c\xff'\x20
> CLIENT "f\xff\x00oo"
(error) ERR unknown subcommand 'f\xff'. Try CLIENT HELP.
> CLIENT LIST TYPE "n\xff\x00o"
(error) ERR Unknown client type 'n\xff'
> CLIENT SETINFO "n\xff\x00o" x
(error) ERR Unrecognized option 'n\xff'
> CONFIG SET "n\xff\x00o" x
(error) ERR Unknown option or number of arguments for CONFIG SET - 'n\xff'
> LATENCY GRAPH "n\xff\x00o"
(error) ERR No samples available for event 'n\xff'
> HELLO 3 "n\xff\x00o"
(error) ERR Syntax error in HELLO option 'n\xff'
