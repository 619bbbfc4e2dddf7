# Users and their rights: ACL, AUTH, and what commands answer to users who may not run them.

== the user that all clients are at first
> ACL WHOAMI
"default"
> ACL USERS
1) "default"
> ACL LIST
1) "user default on nopass sanitize-payload ~* &* +@all"
> ACL GETUSER default
 1) "flags"
 2) 1) "on"
    2) "nopass"
    3) "sanitize-payload"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "+@all"
 7) "keys"
 8) "~*"
 9) "channels"
10) "&*"
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "on"
     2~ "nopass"
     3~ "sanitize-payload"
2# "passwords" => (empty array)
3# "commands" => "+@all"
4# "keys" => "~*"
5# "channels" => "&*"
6# "selectors" => (empty array)
> ACL GETUSER nosuch
(nil)

== subcommands and their numbers of arguments
> ACL
(error) ERR wrong number of arguments for 'acl' command
> ACL NOSUCH
(error) ERR unknown subcommand 'NOSUCH'. Try ACL HELP.
> ACL WHOAMI x
(error) ERR wrong number of arguments for 'acl|whoami' command
> ACL CAT a b
(error) ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.
> ACL GENPASS 5 5
(error) ERR unknown subcommand or wrong number of arguments for 'GENPASS'. Try ACL HELP.
> ACL LOG 1 2
(error) ERR unknown subcommand or wrong number of arguments for 'LOG'. Try ACL HELP.
> ACL SETUSER
(error) ERR wrong number of arguments for 'acl|setuser' command
> ACL GETUSER
(error) ERR wrong number of arguments for 'acl|getuser' command
> ACL DELUSER
(error) ERR wrong number of arguments for 'acl|deluser' command
> ACL DRYRUN default
(error) ERR wrong number of arguments for 'acl|dryrun' command
> ACL LOG x
(error) ERR value is not an integer or out of range
> ACL LOG -1
(empty array)
> ACL LOG nosuch
(error) ERR value is not an integer or out of range

== categories
> ACL CAT
 1) "keyspace"
 2) "read"
 3) "write"
 4) "set"
 5) "sortedset"
 6) "list"
 7) "hash"
 8) "string"
 9) "bitmap"
10) "hyperloglog"
11) "geo"
12) "stream"
13) "pubsub"
14) "admin"
15) "fast"
16) "slow"
17) "blocking"
18) "dangerous"
19) "connection"
20) "transaction"
21) "scripting"
> [unordered] ACL CAT hyperloglog
1) "pfadd"
2) "pfcount"
3) "pfdebug"
4) "pfmerge"
5) "pfselftest"
> [unordered] ACL CAT GEO
 1) "geoadd"
 2) "geodist"
 3) "geohash"
 4) "geopos"
 5) "georadius"
 6) "georadius_ro"
 7) "georadiusbymember"
 8) "georadiusbymember_ro"
 9) "geosearch"
10) "geosearchstore"
> [unordered] ACL CAT bitmap
1) "bitcount"
2) "bitfield"
3) "bitfield_ro"
4) "bitop"
5) "bitpos"
6) "getbit"
7) "setbit"
> [unordered] ACL CAT transaction
1) "discard"
2) "exec"
3) "multi"
4) "unwatch"
5) "watch"
> ACL CAT nosuch
(error) ERR Unknown category 'nosuch'
> ACL CAT @read
(error) ERR Unknown category '@read'

== random passwords
> ACL GENPASS 0
(error) ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096
> ACL GENPASS 4097
(error) ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096
> ACL GENPASS -1
(error) ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096
> ACL GENPASS x
(error) ERR value is not an integer or out of range
> ACL GENPASS 12a
(error) ERR value is not an integer or out of range

== a new user may do nothing
> ACL SETUSER al
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL GETUSER al
 1) "flags"
 2) 1) "off"
    2) "sanitize-payload"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "-@all"
 7) "keys"
 8) ""
 9) "channels"
10) ""
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "off"
     2~ "sanitize-payload"
2# "passwords" => (empty array)
3# "commands" => "-@all"
4# "keys" => ""
5# "channels" => ""
6# "selectors" => (empty array)
> ACL DRYRUN al GET k
"User al has no permissions to run the 'get' command"
> ACL DRYRUN al PING
"User al has no permissions to run the 'ping' command"
> AUTH al x
(error) WRONGPASS invalid username-password pair or user is disabled.

== rules of commands
> ACL SETUSER al +get +SET -get +@list -lpush +config|GET +select|0 +Select|X
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "off"
    2) "sanitize-payload"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "-@all +set -get +@list -lpush +config|get +select|0 +select|x"
 7) "keys"
 8) ""
 9) "channels"
10) ""
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "off"
     2~ "sanitize-payload"
2# "passwords" => (empty array)
3# "commands" => "-@all +set -get +@list -lpush +config|get +select|0 +select|x"
4# "keys" => ""
5# "channels" => ""
6# "selectors" => (empty array)
> ACL SETUSER al -config
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all +set -get +@list -lpush +select|0 +select|x -config"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al +config -config|set
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all +set -get +@list -lpush +select|0 +select|x +config -config|set"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al -@list
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all +set -get -lpush +select|0 +select|x +config -config|set -@list"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al allcommands
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels +@all"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al -@dangerous +@DANGEROUS -get
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels +@all +@dangerous -get"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al nocommands
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al +@all +@read -@all
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"

== rules of keys and channels
> ACL SETUSER al ~a* %R~r* %W~w* %RW~x %wr~y &c &d*
OK
> ACL LIST
1) "user al off sanitize-payload ~a* %R~r* %W~w* ~x ~y resetchannels &c &d* -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al %R~w* %W~r*
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "off"
    2) "sanitize-payload"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "-@all"
 7) "keys"
 8) "~a* ~r* ~w* ~x ~y"
 9) "channels"
10) "&c &d*"
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "off"
     2~ "sanitize-payload"
2# "passwords" => (empty array)
3# "commands" => "-@all"
4# "keys" => "~a* ~r* ~w* ~x ~y"
5# "channels" => "&c &d*"
6# "selectors" => (empty array)
> ACL SETUSER al allkeys allchannels
OK
> ACL LIST
1) "user al off sanitize-payload ~* &* -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al resetkeys resetchannels
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al ~* &*
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "off"
    2) "sanitize-payload"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "-@all"
 7) "keys"
 8) "~*"
 9) "channels"
10) "&*"
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "off"
     2~ "sanitize-payload"
2# "passwords" => (empty array)
3# "commands" => "-@all"
4# "keys" => "~*"
5# "channels" => "&*"
6# "selectors" => (empty array)
> ACL SETUSER al resetkeys ~ %R~ &
(error) ERR Error in ACL SETUSER modifier '&': Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels
> ACL SETUSER al %R %RW~
(error) ERR Error in ACL SETUSER modifier '%R': Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns
> ACL LIST
1) "user al off sanitize-payload ~* &* -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"

== rules of passwords
> ACL SETUSER al on >one >two >one
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "on"
    2) "sanitize-payload"
 3) "passwords"
 4) 1) "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    2) "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
 5) "commands"
 6) "-@all"
 7) "keys"
 8) ""
 9) "channels"
10) ""
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "on"
     2~ "sanitize-payload"
2# "passwords" =>
     1) "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
     2) "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
3# "commands" => "-@all"
4# "keys" => ""
5# "channels" => ""
6# "selectors" => (empty array)
> ACL SETUSER al <one
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "on"
    2) "sanitize-payload"
 3) "passwords"
 4) 1) "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
 5) "commands"
 6) "-@all"
 7) "keys"
 8) ""
 9) "channels"
10) ""
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "on"
     2~ "sanitize-payload"
2# "passwords" => 1) "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
3# "commands" => "-@all"
4# "keys" => ""
5# "channels" => ""
6# "selectors" => (empty array)
> ACL SETUSER al <one
(error) ERR Error in ACL SETUSER modifier '<one': The password you are trying to remove from the user does not exist
> ACL SETUSER al #9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "on"
    2) "sanitize-payload"
 3) "passwords"
 4) 1) "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
    2) "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
 5) "commands"
 6) "-@all"
 7) "keys"
 8) ""
 9) "channels"
10) ""
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "on"
     2~ "sanitize-payload"
2# "passwords" =>
     1) "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
     2) "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
3# "commands" => "-@all"
4# "keys" => ""
5# "channels" => ""
6# "selectors" => (empty array)
> ACL SETUSER al !9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
OK
> ACL SETUSER al !9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
(error) ERR Error in ACL SETUSER modifier '!9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08': The password you are trying to remove from the user does not exist
> ACL SETUSER al #9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08
(error) ERR Error in ACL SETUSER modifier '#9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08': The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters
> ACL SETUSER al #12
(error) ERR Error in ACL SETUSER modifier '#12': The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters
> ACL SETUSER al >
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "on"
    2) "sanitize-payload"
 3) "passwords"
 4) 1) "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
    2) "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
 5) "commands"
 6) "-@all"
 7) "keys"
 8) ""
 9) "channels"
10) ""
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "on"
     2~ "sanitize-payload"
2# "passwords" =>
     1) "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
     2) "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
3# "commands" => "-@all"
4# "keys" => ""
5# "channels" => ""
6# "selectors" => (empty array)
> ACL SETUSER al nopass
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "on"
    2) "nopass"
    3) "sanitize-payload"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "-@all"
 7) "keys"
 8) ""
 9) "channels"
10) ""
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "on"
     2~ "nopass"
     3~ "sanitize-payload"
2# "passwords" => (empty array)
3# "commands" => "-@all"
4# "keys" => ""
5# "channels" => ""
6# "selectors" => (empty array)
> ACL SETUSER al resetpass
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "on"
    2) "sanitize-payload"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "-@all"
 7) "keys"
 8) ""
 9) "channels"
10) ""
11) "selectors"
12) (empty array)
resp3:
1# "flags" =>
     1~ "on"
     2~ "sanitize-payload"
2# "passwords" => (empty array)
3# "commands" => "-@all"
4# "keys" => ""
5# "channels" => ""
6# "selectors" => (empty array)
> ACL SETUSER al skip-sanitize-payload
OK
> ACL LIST
1) "user al on skip-sanitize-payload resetchannels -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al sanitize-payload OFF
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"

== selectors
> ACL SETUSER al +get ~a (+set ~b) (+@list %R~c &d)
OK
> ACL GETUSER al
 1) "flags"
 2) 1) "off"
    2) "sanitize-payload"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "-@all +get"
 7) "keys"
 8) "~a"
 9) "channels"
10) ""
11) "selectors"
12) 1) 1) "commands"
       2) "-@all +set"
       3) "keys"
       4) "~b"
       5) "channels"
       6) ""
    2) 1) "commands"
       2) "-@all +@list"
       3) "keys"
       4) "%R~c"
       5) "channels"
       6) "&d"
resp3:
1# "flags" =>
     1~ "off"
     2~ "sanitize-payload"
2# "passwords" => (empty array)
3# "commands" => "-@all +get"
4# "keys" => "~a"
5# "channels" => ""
6# "selectors" =>
     1) 1# "commands" => "-@all +set"
        2# "keys" => "~b"
        3# "channels" => ""
     2) 1# "commands" => "-@all +@list"
        2# "keys" => "%R~c"
        3# "channels" => "&d"
> ACL LIST
1) "user al off sanitize-payload ~a resetchannels -@all +get (~b resetchannels -@all +set) (%R~c resetchannels &d -@all +@list)"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al "(+mget" "~m)"
OK
> ACL LIST
1) "user al off sanitize-payload ~a resetchannels -@all +get (~b resetchannels -@all +set) (%R~c resetchannels &d -@all +@list) (~m resetchannels -@all +mget)"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al ()
OK
> ACL LIST
1) "user al off sanitize-payload ~a resetchannels -@all +get (~b resetchannels -@all +set) (%R~c resetchannels &d -@all +@list) (~m resetchannels -@all +mget) (resetchannels -@all)"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al (+get
(error) ERR Unmatched parenthesis in acl selector starting at '(+get'.
> ACL SETUSER al "(+get" "~x" y
(error) ERR Unmatched parenthesis in acl selector starting at '(+get'.
> ACL SETUSER al ((+get))
(error) ERR Error in ACL SETUSER modifier '((+get))': Syntax error
> ACL SETUSER al (+nosuch)
(error) ERR Error in ACL SETUSER modifier '(+nosuch)': Unknown command or category name in ACL
> ACL SETUSER al "(on)"
(error) ERR Error in ACL SETUSER modifier '(on)': Syntax error
> ACL SETUSER al clearselectors
OK
> ACL LIST
1) "user al off sanitize-payload ~a resetchannels -@all +get"
2) "user default on nopass sanitize-payload ~* &* +@all"

== reset
> ACL SETUSER al on >p ~a &b +get (+set) skip-sanitize-payload reset
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"

== rules that are wrong change nothing
> ACL SETUSER al +get ~a
OK
> ACL SETUSER al +set ~b nosuch
(error) ERR Error in ACL SETUSER modifier 'nosuch': Syntax error
> ACL SETUSER al +nosuch
(error) ERR Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL
> ACL SETUSER al -nosuch
(error) ERR Error in ACL SETUSER modifier '-nosuch': Unknown command or category name in ACL
> ACL SETUSER al +@nosuch
(error) ERR Error in ACL SETUSER modifier '+@nosuch': Unknown command or category name in ACL
> ACL SETUSER al @read
(error) ERR Error in ACL SETUSER modifier '@read': Syntax error
> ACL SETUSER al +config|nosuch
(error) ERR Error in ACL SETUSER modifier '+config|nosuch': Unknown command or category name in ACL
> ACL SETUSER al -config|nosuch
(error) ERR Error in ACL SETUSER modifier '-config|nosuch': Unknown command or category name in ACL
> ACL SETUSER al +config|get|x
(error) ERR Error in ACL SETUSER modifier '+config|get|x': Allowing first-arg of a subcommand is not supported
> ACL SETUSER al +get|
(error) ERR Error in ACL SETUSER modifier '+get|': Syntax error
> ACL SETUSER al -select|0
(error) ERR Error in ACL SETUSER modifier '-select|0': Unknown command or category name in ACL
> ACL SETUSER al +
(error) ERR Error in ACL SETUSER modifier '+': Unknown command or category name in ACL
> ACL SETUSER al -
(error) ERR Error in ACL SETUSER modifier '-': Unknown command or category name in ACL
> ACL SETUSER al +@
(error) ERR Error in ACL SETUSER modifier '+@': Unknown command or category name in ACL
> ACL SETUSER al %Q~x
(error) ERR Error in ACL SETUSER modifier '%Q~x': Syntax error
> ACL SETUSER al %~x
(error) ERR Error in ACL SETUSER modifier '%~x': Syntax error
> ACL SETUSER al %RR~x
(error) ERR Error in ACL SETUSER modifier '%RR~x': Syntax error
> ACL SETUSER al %R~x%
OK
> ACL SETUSER al "~a b"
(error) ERR Error in ACL SETUSER modifier '~a b': Syntax error
> ACL SETUSER al "&a b"
(error) ERR Error in ACL SETUSER modifier '&a b': Syntax error
> ACL SETUSER al "~a\x00b"
(error) ERR Error in ACL SETUSER modifier '~a': Syntax error
> ACL SETUSER al ~* ~a
(error) ERR Error in ACL SETUSER modifier '~a': Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns
> ACL SETUSER al &* &a
(error) ERR Error in ACL SETUSER modifier '&a': Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels
> ACL SETUSER al ""
OK
> ACL SETUSER al allkeys allkeys
OK
> ACL SETUSER "a b" on
(error) ERR Usernames can't contain spaces or null characters
> ACL SETUSER "a\x00b" on
(error) ERR Usernames can't contain spaces or null characters
> ACL LIST
1) "user al off sanitize-payload ~* resetchannels -@all +get"
2) "user default on nopass sanitize-payload ~* &* +@all"

== users are deleted
> ACL SETUSER al
OK
> ACL SETUSER bo
OK
> ACL DELUSER al nosuch bo
(integer) 2
> ACL USERS
1) "default"
> ACL DELUSER default
(error) ERR The 'default' user cannot be removed
> ACL SETUSER al
OK
> ACL DELUSER al default nosuch
(error) ERR The 'default' user cannot be removed
> ACL USERS
1) "al"
2) "default"

== logging in
> ACL SETUSER al on >secret +@all ~*
OK
2> AUTH al wrong
(error) WRONGPASS invalid username-password pair or user is disabled.
2> AUTH secret
(error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
2> AUTH al secret
OK
2> ACL WHOAMI
"al"
2> HELLO 2 AUTH al wrong
(error) WRONGPASS invalid username-password pair or user is disabled.
2> [keys] HELLO 2 AUTH al secret
1) "server"
2) "version"
3) "proto"
4) "id"
5) "mode"
6) "role"
7) "modules"
2> AUTH default any
OK
2> ACL WHOAMI
"default"
2> AUTH al secret
OK
2> RESET
RESET
2> ACL WHOAMI
"default"
> ACL SETUSER al off
OK
2> AUTH al secret
(error) WRONGPASS invalid username-password pair or user is disabled.
> ACL SETUSER al on nopass
OK
2> AUTH al any
OK
2> ACL WHOAMI
"al"
2> AUTH a b c
(error) ERR syntax error

== DRYRUN
> ACL SETUSER al +@all -@dangerous ~a* %R~r* %W~w* resetchannels &c*
OK
> ACL DRYRUN nosuch GET k
(error) ERR User 'nosuch' not found
> ACL DRYRUN al nosuch
(error) ERR Command 'nosuch' not found
> ACL DRYRUN al config
(error) ERR wrong number of arguments for 'config' command
> ACL DRYRUN al config nosuch
(error) ERR Command 'config' not found
> ACL DRYRUN al GET
(error) ERR wrong number of arguments for 'get' command
> ACL DRYRUN al CONFIG GET
(error) ERR wrong number of arguments for 'config|get' command
> ACL DRYRUN al CONFIG GET x
"User al has no permissions to run the 'config|get' command"
> ACL DRYRUN al KEYS *
"User al has no permissions to run the 'keys' command"
> ACL DRYRUN al GET a1
OK
> ACL DRYRUN al GET r1
OK
> ACL DRYRUN al GET w1
"User al has no permissions to access the 'w1' key"
> ACL DRYRUN al SET w1 x
OK
> ACL DRYRUN al SET w1 x GET
"User al has no permissions to access the 'w1' key"
> ACL DRYRUN al SET r1 x
"User al has no permissions to access the 'r1' key"
> ACL DRYRUN al EXISTS w1
OK
> ACL DRYRUN al MGET a1 r1 k
"User al has no permissions to access the 'k' key"
> ACL DRYRUN al MSET a1 1 r1 1
"User al has no permissions to access the 'r1' key"
> ACL DRYRUN al COPY r1 w1
OK
> ACL DRYRUN al RENAME r1 w1
"User al has no permissions to access the 'r1' key"
> ACL DRYRUN al SUNIONSTORE w1 r1 a1
OK
> ACL DRYRUN al SUNIONSTORE r1 w1
"User al has no permissions to access the 'r1' key"
> ACL DRYRUN al PFMERGE w1 r1
"User al has no permissions to access the 'w1' key"
> ACL DRYRUN al BITFIELD r1 GET u8 0
OK
> ACL DRYRUN al BITFIELD r1 SET u8 0 1
"User al has no permissions to access the 'r1' key"
> ACL DRYRUN al BITFIELD w1 SET u8 0 1
"User al has no permissions to access the 'w1' key"
> ACL DRYRUN al EVAL "return 1" 1 r1
"User al has no permissions to access the 'r1' key"
> ACL DRYRUN al EVAL_RO "return 1" 1 r1
OK
> ACL DRYRUN al XREAD STREAMS r1 k 0 0
"User al has no permissions to access the 'k' key"
> ACL DRYRUN al ZUNION 2 r1 k
"User al has no permissions to access the 'k' key"
> ACL DRYRUN al GEOSEARCHSTORE w1 r1 FROMMEMBER x BYRADIUS 1 m
OK
> ACL DRYRUN al GEORADIUS r1 0 0 1 m STORE w1
OK
> ACL DRYRUN al GEORADIUS r1 0 0 1 m STORE k
"User al has no permissions to access the 'k' key"
> ACL DRYRUN al SORT a1 STORE w1
"User al has no permissions to run the 'sort' command"
> ACL DRYRUN al PUBLISH c1 x
OK
> ACL DRYRUN al PUBLISH d1 x
"User al has no permissions to access the 'd1' channel"
> ACL DRYRUN al SUBSCRIBE c1 d1
"User al has no permissions to access the 'd1' channel"
> ACL DRYRUN al PSUBSCRIBE c*
OK
> ACL DRYRUN al PSUBSCRIBE c1*
"User al has no permissions to access the 'c1*' channel"
> ACL DRYRUN al SPUBLISH d1 x
"User al has no permissions to access the 'd1' channel"
> ACL DRYRUN al SSUBSCRIBE d1
"User al has no permissions to access the 'd1' channel"
> ACL DRYRUN al UNSUBSCRIBE d1
OK
> ACL DRYRUN al AUTH x
OK
> ACL DRYRUN default GET k
OK
> ACL SETUSER al -@all +get|a1 +config|get
OK
> ACL DRYRUN al GET a1
OK
> ACL DRYRUN al GET A1
"User al has no permissions to access the 'A1' key"
> ACL DRYRUN al GET a2
"User al has no permissions to run the 'get' command"
> ACL DRYRUN al CONFIG SET x y
"User al has no permissions to run the 'config|set' command"
> ACL DRYRUN al CONFIG GET x
OK
> ACL DRYRUN al AUTH x
OK
> ACL DRYRUN al HELLO
OK
> ACL DRYRUN al PING
"User al has no permissions to run the 'ping' command"

== one selector must allow all of a command
> ACL SETUSER al +get ~a (+set ~b) (+mget ~a ~b)
OK
> ACL DRYRUN al GET b
"User al has no permissions to access the 'b' key"
> ACL DRYRUN al SET a x
"User al has no permissions to access the 'a' key"
> ACL DRYRUN al SET b x
OK
> ACL DRYRUN al MGET a b
OK
> ACL DRYRUN al MGET a c
"User al has no permissions to access the 'c' key"
> ACL DRYRUN al DEL a
"User al has no permissions to run the 'del' command"
> ACL SETUSER al reset %R~k* %W~* +@all
OK
> ACL DRYRUN al GETSET k1 x
"User al has no permissions to access the 'k1' key"
> ACL DRYRUN al GET k1
OK
> ACL DRYRUN al SET k1 x
OK

== commands are refused
> SET k v
OK
> ACL SETUSER al on nopass +@all -del ~a* resetchannels
OK
2> AUTH al x
OK
2> DEL a
(error) NOPERM User al has no permissions to run the 'del' command
2> GET k
(error) NOPERM No permissions to access a key
2> GET a
(nil)
2> SUBSCRIBE c
(error) NOPERM No permissions to access a channel
2> PUBLISH c x
(error) NOPERM No permissions to access a channel
2> CONFIG GET maxmemory
1) "maxmemory"
2) "0"
resp3:
1# "maxmemory" => "0"
> ACL SETUSER al -config|get -get
OK
2> CONFIG GET maxmemory
(error) NOPERM User al has no permissions to run the 'config|get' command
2> GET a
(error) NOPERM User al has no permissions to run the 'get' command
2> get a
(error) NOPERM User al has no permissions to run the 'get' command
2> MGET a k
(error) NOPERM No permissions to access a key
2> OBJECT ENCODING k
(error) NOPERM No permissions to access a key
2> COPY a k
(error) NOPERM No permissions to access a key
2> EVAL "return redis.call('get', 'k')" 0
(error) ERR ACL failure in script: User al has no permissions to run the 'get' command script: 2845dc5d9bfb60b33a15b681dee13ea33da18095, on @user_script:1.
> ACL LOG 0
(empty array)

== transactions
> ACL SETUSER al on nopass +@all -del ~a*
OK
2> AUTH al x
OK
2> MULTI
OK
2> SET a 1
QUEUED
2> DEL a
(error) NOPERM User al has no permissions to run the 'del' command
2> EXEC
(error) EXECABORT Transaction discarded because of previous errors.
2> MULTI
OK
2> GET k
(error) NOPERM No permissions to access a key
2> EXEC
(error) EXECABORT Transaction discarded because of previous errors.
2> MULTI
OK
2> SET a 1
QUEUED
2> INCR ab
QUEUED
2> GET a
QUEUED
> ACL SETUSER al -incr
OK
2> EXEC
1) OK
2) (error) NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to execute the command or subcommand
3) "1"
2> MULTI
OK
2> SET a 2
QUEUED
2> GET ab
QUEUED
> ACL SETUSER al resetkeys ~a
OK
2> EXEC
1) OK
2) (error) NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to touch the specified keys
2> MULTI
OK
2> GET a
QUEUED
> ACL SETUSER al -exec
OK
2> EXEC
(error) EXECABORT Transaction discarded because of: NOPERM User al has no permissions to run the 'exec' command
> ACL SETUSER al +exec
OK
2> EXEC
(error) ERR EXEC without MULTI

== scripts
> ACL SETUSER al on nopass +@all -incr ~a*
OK
2> AUTH al x
OK
2> SET a 1
OK
2> EVAL "return redis.call('get', KEYS[1])" 1 a
"1"
2> EVAL "return redis.call('get', KEYS[1])" 1 k
(error) NOPERM No permissions to access a key
2> EVAL "return redis.call('get', 'k')" 0
(error) ERR ACL failure in script: No permissions to access a key script: 2845dc5d9bfb60b33a15b681dee13ea33da18095, on @user_script:1.
2> EVAL "return redis.pcall('get', 'k')" 0
(error) ERR ACL failure in script: No permissions to access a key
2> EVAL "return redis.call('incr', 'a')" 0
(error) ERR ACL failure in script: User al has no permissions to run the 'incr' command script: dfb38febcf47750d3550a0618d4c5233ec502d41, on @user_script:1.
2> EVAL "return redis.acl_check_cmd('incr', 'a')" 0
(nil)
2> EVAL "return redis.acl_check_cmd('get', 'a')" 0
(integer) 1
2> EVAL "return redis.acl_check_cmd('get', 'k')" 0
(nil)
2> EVAL "return redis.acl_check_cmd('nosuch', 'k')" 0
(error) ERR Invalid command passed to redis.acl_check_cmd() script: 9d41677768808dd2ccf66ea701a18385d5f4419d, on @user_script:1.
2> EVAL "return redis.call('acl', 'whoami')" 0
(error) ERR This Redis command is not allowed from script script: 27ac90dbed753d60b0580f9ec4852f7132486e8a, on @user_script:1.
2> EVAL_RO "return redis.call('get', KEYS[1])" 1 a
"1"

== patterns of SORT read foreign keys
> RPUSH l 1 2
(integer) 2
> ACL SETUSER al on nopass +@all ~l ~d
OK
2> AUTH al x
OK
2> SORT l BY w*
(error) ERR BY option of SORT denied due to insufficient ACL permissions.
2> SORT l BY nosort
1) "1"
2) "2"
2> SORT l GET *
(error) ERR GET option of SORT denied due to insufficient ACL permissions.
2> SORT l GET #
(error) ERR GET option of SORT denied due to insufficient ACL permissions.
2> SORT_RO l GET x*
(error) ERR GET option of SORT denied due to insufficient ACL permissions.
2> SORT l STORE d
(integer) 2
2> SORT l STORE e
(error) NOPERM No permissions to access a key
> ACL SETUSER al %R~*
OK
2> SORT l BY w* GET #
1) "1"
2) "2"

== blocked clients are refused when they would be served
> ACL SETUSER al on nopass +@all ~l
OK
2> AUTH al x
OK
2> BLPOP l 0
(blocked)
> ACL SETUSER al resetkeys
OK
> RPUSH l 1
(integer) 1
2<
(error) NOPERM No permissions to access a key
> LRANGE l 0 -1
1) "1"

== clients of deleted users are closed
> ACL SETUSER al on nopass +@all ~*
OK
2> AUTH al x
OK
> ACL DELUSER al
(integer) 1
2<
(closed)
3> AUTH al x
(error) WRONGPASS invalid username-password pair or user is disabled.

== who loses a channel is closed
> ACL SETUSER al on nopass +@all ~* &a* &b
OK
2> AUTH al x
OK
2> SUBSCRIBE abc
(push)
1) "subscribe"
2) "abc"
3) (integer) 1
3> AUTH al x
OK
3> SUBSCRIBE b
(push)
1) "subscribe"
2) "b"
3) (integer) 1
> ACL SETUSER al resetchannels &b
OK
2<
(closed)
3> PING
1) "pong"
2) ""
resp3:
PONG
> PUBLISH abc x
(integer) 0
> PUBLISH b x
(integer) 1
3<
(push)
1) "message"
2) "b"
3) "x"

== a user that is off stays where it is
> ACL SETUSER al on nopass +@all ~*
OK
2> AUTH al x
OK
> ACL SETUSER al off
OK
2> SET k v
OK
2> AUTH al x
(error) WRONGPASS invalid username-password pair or user is disabled.

== requirepass is the password of the default user
@resp2
> CONFIG SET requirepass secret
OK
> ACL GETUSER default
 1) "flags"
 2) 1) "on"
    2) "sanitize-payload"
 3) "passwords"
 4) 1) "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
 5) "commands"
 6) "+@all"
 7) "keys"
 8) "~*"
 9) "channels"
10) "&*"
11) "selectors"
12) (empty array)
2> PING
(error) NOAUTH Authentication required.
2> AUTH wrong
(error) WRONGPASS invalid username-password pair or user is disabled.
2> AUTH secret
OK
2> PING
PONG
> ACL SETUSER default nopass
OK
> CONFIG GET requirepass
1) "requirepass"
2) "secret"
3> PING
PONG
3> AUTH any
(error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
> ACL SETUSER default on >other
OK
> ACL GETUSER default
 1) "flags"
 2) 1) "on"
    2) "sanitize-payload"
 3) "passwords"
 4) 1) "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"
 5) "commands"
 6) "+@all"
 7) "keys"
 8) "~*"
 9) "channels"
10) "&*"
11) "selectors"
12) (empty array)
4> PING
(error) NOAUTH Authentication required.
4> HELLO
(error) NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time
4> AUTH other
OK
> CONFIG SET requirepass ""
OK
> ACL GETUSER default
 1) "flags"
 2) 1) "on"
    2) "nopass"
    3) "sanitize-payload"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "+@all"
 7) "keys"
 8) "~*"
 9) "channels"
10) "&*"
11) "selectors"
12) (empty array)

== the default user can be switched off
@resp2
> ACL SETUSER al on nopass +@all ~* &*
OK
> ACL SETUSER default off
OK
2> PING
(error) NOAUTH Authentication required.
2> AUTH default x
(error) WRONGPASS invalid username-password pair or user is disabled.
2> AUTH al x
OK
2> PING
PONG
2> ACL SETUSER default on
OK
3> PING
PONG

== a default user with fewer rights
> ACL SETUSER al on nopass +@all ~* &*
OK
2> AUTH al x
OK
> ACL SETUSER default -@all +ping ~*
OK
> GET k
(error) NOPERM User default has no permissions to run the 'get' command
> PING
PONG
> ACL WHOAMI
(error) NOPERM User default has no permissions to run the 'acl|whoami' command
2> ACL SETUSER default +@all
OK
> ACL WHOAMI
"default"

== the log of refusals
@resp2
> ACL LOG RESET
OK
> ACL SETUSER al on nopass +@all -del ~a* resetchannels
OK
2> AUTH al x
OK
2> DEL a
(error) NOPERM User al has no permissions to run the 'del' command
2> DEL a
(error) NOPERM User al has no permissions to run the 'del' command
2> GET k
(error) NOPERM No permissions to access a key
2> PUBLISH ch x
(error) NOPERM No permissions to access a channel
2> MULTI
OK
2> GET k
(error) NOPERM No permissions to access a key
2> DISCARD
OK
2> EVAL "return redis.call('get', 'x')" 0
(error) ERR ACL failure in script: No permissions to access a key script: 7b232de2280a0be147450f1bfc287bf012a22d2b, on @user_script:1.
2> AUTH al2 wrong
(error) WRONGPASS invalid username-password pair or user is disabled.
> ACL LOG 1
1)  1) "count"
    2) (integer) 1
    3) "reason"
    4) "auth"
    5) "context"
    6) "toplevel"
    7) "object"
    8) "AUTH"
    9) "username"
   10) "al2"
...
> [count] ACL LOG
(integer) 6
> [count] ACL LOG 2
(integer) 2
> ACL LOG RESET
OK
> ACL LOG
(empty array)

== acl-pubsub-default
> CONFIG SET acl-pubsub-default allchannels
OK
> ACL SETUSER al
OK
> ACL LIST
1) "user al off sanitize-payload &* -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al (+get)
OK
> ACL LIST
1) "user al off sanitize-payload &* -@all (&* -@all +get)"
2) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al reset
OK
> ACL LIST
1) "user al off sanitize-payload &* -@all"
2) "user default on nopass sanitize-payload ~* &* +@all"
> CONFIG SET acl-pubsub-default resetchannels
OK
> ACL SETUSER bo
OK
> ACL LIST
1) "user al off sanitize-payload &* -@all"
2) "user bo off sanitize-payload resetchannels -@all"
3) "user default on nopass sanitize-payload ~* &* +@all"
> ACL SETUSER al reset
OK
> ACL LIST
1) "user al off sanitize-payload resetchannels -@all"
2) "user bo off sanitize-payload resetchannels -@all"
3) "user default on nopass sanitize-payload ~* &* +@all"

== keys with the names of options
> ACL SETUSER named on nopass +@all ~a ~streams ~k ~store
OK
> ACL DRYRUN named XREAD STREAMS a streams 0 0
OK
> ACL DRYRUN named XREAD COUNT 1 STREAMS streams 0
OK
> ACL DRYRUN named XREAD STREAMS a b 0 0
"User named has no permissions to access the 'b' key"
> ACL DRYRUN named GEORADIUS k 0 0 1 m STORE store ASC
OK
> ACL DRYRUN named GEORADIUS k 0 0 1 m STORE other ASC
"User named has no permissions to access the 'other' key"
> ACL DELUSER named
(integer) 1

== no file of users
> ACL LOAD
(error) ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.
> ACL SAVE
(error) ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.
> CONFIG GET aclfile
1) "aclfile"
2) ""
resp3:
1# "aclfile" => ""
> CONFIG SET aclfile x
(error) ERR CONFIG SET failed (possibly related to argument 'aclfile') - can't set immutable config

== clients by their users
> ACL SETUSER al on nopass +@all ~*
OK
2> AUTH al x
OK
> CLIENT KILL USER nosuch
(error) ERR No such user 'nosuch'
> CLIENT KILL USER al
(integer) 1
2<
(closed)
