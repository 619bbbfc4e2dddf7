# Keys that expire.

== EXPIRE, PEXPIRE and the time left
> SET k v
OK
> TTL k
(integer) -1
> PTTL k
(integer) -1
> EXPIRE k 100
(integer) 1
> TTL k
~ \(integer\) (99|100)
> PTTL k
~ \(integer\) (99\d\d\d|100000)
> PEXPIRE k 200000
(integer) 1
> TTL k
~ \(integer\) (199|200)
> PERSIST k
(integer) 1
> PERSIST k
(integer) 0
> TTL k
(integer) -1
> PERSIST nokey
(integer) 0
> EXPIRE nokey 100
(integer) 0
> PEXPIRE nokey 100
(integer) 0
> TTL nokey
(integer) -2
> PTTL nokey
(integer) -2
> EXPIRETIME nokey
(integer) -2
> PEXPIRETIME nokey
(integer) -2
> EXPIRETIME k
(integer) -1
> PEXPIRETIME k
(integer) -1

== EXPIREAT and PEXPIREAT
> SET k v
OK
> EXPIREAT k 9999999999
(integer) 1
> EXPIRETIME k
(integer) 9999999999
> PEXPIRETIME k
(integer) 9999999999000
> PEXPIREAT k 9999999999999
(integer) 1
> EXPIRETIME k
(integer) 10000000000
> PEXPIRETIME k
(integer) 9999999999999
> PEXPIREAT k 9999999999499
(integer) 1
> EXPIRETIME k
(integer) 9999999999
> PEXPIREAT k 9999999999500
(integer) 1
> EXPIRETIME k
(integer) 10000000000
> EXPIREAT nokey 9999999999
(integer) 0
> PEXPIREAT nokey 9999999999
(integer) 0

== a time in the past removes the key
> SET k v
OK
> EXPIRE k 0
(integer) 1
> EXISTS k
(integer) 0
> SET k v
OK
> EXPIRE k -1
(integer) 1
> EXISTS k
(integer) 0
> SET k v
OK
> PEXPIRE k 0
(integer) 1
> EXISTS k
(integer) 0
> SET k v
OK
> PEXPIRE k -100
(integer) 1
> EXISTS k
(integer) 0
> SET k v
OK
> EXPIREAT k 1
(integer) 1
> EXISTS k
(integer) 0
> SET k v
OK
> PEXPIREAT k 1
(integer) 1
> EXISTS k
(integer) 0
> SET k v
OK
> EXPIREAT k 0
(integer) 1
> EXISTS k
(integer) 0
> SET k v
OK
> EXPIREAT k -1
(integer) 1
> GET k
(nil)
> EXPIRE k -1
(integer) 0

== NX, XX, GT and LT
> SET k v
OK
> EXPIREAT k 9999999999 XX
(integer) 0
> TTL k
(integer) -1
> EXPIREAT k 9999999999 GT
(integer) 0
> TTL k
(integer) -1
> EXPIREAT k 9999999999 NX
(integer) 1
> EXPIREAT k 8888888888 NX
(integer) 0
> EXPIRETIME k
(integer) 9999999999
> EXPIREAT k 8888888888 GT
(integer) 0
> EXPIREAT k 8888888888 LT
(integer) 1
> EXPIRETIME k
(integer) 8888888888
> EXPIREAT k 8888888888 LT
(integer) 0
> EXPIREAT k 8888888888 GT
(integer) 0
> EXPIREAT k 9999999999 GT
(integer) 1
> EXPIRETIME k
(integer) 9999999999
> EXPIREAT k 7777777777 XX
(integer) 1
> EXPIRETIME k
(integer) 7777777777
> PERSIST k
(integer) 1
> EXPIREAT k 9999999999 LT
(integer) 1
> EXPIRETIME k
(integer) 9999999999
> PERSIST k
(integer) 1
> EXPIRE k 100 XX
(integer) 0
> EXPIRE k 100 nx
(integer) 1
> PEXPIRE k 50000 LT
(integer) 1
> PEXPIRE k 1000000 XX
(integer) 1
> PEXPIREAT k 9999999999999 XX GT
(integer) 1
> PEXPIREAT k 9999999999999 XX LT
(integer) 0
> PEXPIRETIME k
(integer) 9999999999999
> EXPIRE k -1 GT
(integer) 0
> EXPIRE k -1 NX
(integer) 0
> EXISTS k
(integer) 1
> EXPIRE k -1 LT
(integer) 1
> EXISTS k
(integer) 0
> EXPIRE nokey 100 NX
(integer) 0
> EXPIRE nokey 100 XX
(integer) 0

== options that do not go together
> SET k v
OK
> EXPIRE k 100 NX XX
(error) ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIRE k 100 NX GT
(error) ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIRE k 100 NX LT
(error) ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIRE k 100 GT LT
(error) ERR GT and LT options at the same time are not compatible
> EXPIRE k 100 XX GT LT
(error) ERR GT and LT options at the same time are not compatible
> EXPIRE k 100 foo
(error) ERR Unsupported option foo
> EXPIRE k 100 NX foo
(error) ERR Unsupported option foo
> EXPIRE k 100 NX NX
(integer) 1
> PEXPIRE k 100 foo
(error) ERR Unsupported option foo
> EXPIREAT k 100 foo
(error) ERR Unsupported option foo
> PEXPIREAT k 100 foo
(error) ERR Unsupported option foo
> EXPIRE nokey 100 foo
(error) ERR Unsupported option foo
> EXPIRE k abc foo
(error) ERR Unsupported option foo

== times that are no times
> SET k v
OK
> EXPIRE k abc
(error) ERR value is not an integer or out of range
> EXPIRE k 1.5
(error) ERR value is not an integer or out of range
> EXPIRE k ""
(error) ERR value is not an integer or out of range
> EXPIRE k 9223372036854775808
(error) ERR value is not an integer or out of range
> EXPIRE k 9223372036854775807
(error) ERR invalid expire time in 'expire' command
> EXPIRE k 9223372036854775
(error) ERR invalid expire time in 'expire' command
> EXPIRE k -9223372036854775808
(error) ERR invalid expire time in 'expire' command
> EXPIRE k 9223370399119966
(error) ERR invalid expire time in 'expire' command
> PEXPIRE k 9223372036854775807
(error) ERR invalid expire time in 'pexpire' command
> PEXPIRE k abc
(error) ERR value is not an integer or out of range
> EXPIREAT k 9223372036854775807
(error) ERR invalid expire time in 'expireat' command
> EXPIREAT k abc
(error) ERR value is not an integer or out of range
> EXPIREAT k -9223372036854775808
(error) ERR invalid expire time in 'expireat' command
> PEXPIREAT k abc
(error) ERR value is not an integer or out of range
> EXISTS k
(integer) 1
> EXPIRE nokey abc
(error) ERR value is not an integer or out of range
> EXPIRE nokey 9223372036854775807
(error) ERR invalid expire time in 'expire' command
> PEXPIREAT k 9223372036854775807
(integer) 1
> PEXPIRETIME k
(integer) 9223372036854775807
> PTTL k
~ \(integer\) \d+

== wrong numbers of arguments
> EXPIRE k
(error) ERR wrong number of arguments for 'expire' command
> PEXPIRE k
(error) ERR wrong number of arguments for 'pexpire' command
> EXPIREAT k
(error) ERR wrong number of arguments for 'expireat' command
> PEXPIREAT k
(error) ERR wrong number of arguments for 'pexpireat' command
> TTL
(error) ERR wrong number of arguments for 'ttl' command
> TTL a b
(error) ERR wrong number of arguments for 'ttl' command
> PTTL
(error) ERR wrong number of arguments for 'pttl' command
> PERSIST
(error) ERR wrong number of arguments for 'persist' command
> PERSIST a b
(error) ERR wrong number of arguments for 'persist' command
> EXPIRETIME
(error) ERR wrong number of arguments for 'expiretime' command
> PEXPIRETIME a b
(error) ERR wrong number of arguments for 'pexpiretime' command

== an expired key is gone for every command
> SET k v PX 1
OK
> RPUSH l a
(integer) 1
> PEXPIRE l 1
(integer) 1
> SADD s a
(integer) 1
> PEXPIRE s 1
(integer) 1
> HSET h f v
(integer) 1
> PEXPIRE h 1
(integer) 1
> ZADD z 1 a
(integer) 1
> PEXPIRE z 1
(integer) 1
sleep 10
> GET k
(nil)
> EXISTS k
(integer) 0
> TYPE k
none
> TTL k
(integer) -2
> LRANGE l 0 -1
(empty array)
> LLEN l
(integer) 0
> SMEMBERS s
(empty array)
resp3:
(empty set)
> SCARD s
(integer) 0
> HGETALL h
(empty array)
resp3:
(empty hash)
> ZRANGE z 0 -1
(empty array)
> OBJECT ENCODING h
(nil)
> KEYS *
(empty array)
> SCAN 0 COUNT 100
1) "0"
2) (empty array)
> RANDOMKEY
(nil)
> DUMP z
(nil)
> RENAME k n
(error) ERR no such key
> COPY k n
(integer) 0
> DEL k
(integer) 0
> PERSIST k
(integer) 0
> TOUCH k
(integer) 0
> UNLINK l
(integer) 0

== a write finds an expired key absent
> SET n 5 PX 1
OK
> RPUSH l a
(integer) 1
> PEXPIRE l 1
(integer) 1
> HSET h f v
(integer) 1
> PEXPIRE h 1
(integer) 1
> SET s v PX 1
OK
> SADD m x
(integer) 1
> PEXPIRE m 1
(integer) 1
sleep 10
> INCR n
(integer) 1
> TTL n
(integer) -1
> RPUSHX l b
(integer) 0
> RPUSH l c
(integer) 1
> LRANGE l 0 -1
1) "c"
> TTL l
(integer) -1
> HSETNX h f w
(integer) 1
> HGET h f
"w"
> SETNX s w
(integer) 1
> GET s
"w"
> SADD m y
(integer) 1
> SMEMBERS m
1) "y"
resp3:
1~ "y"
> DBSIZE
(integer) 5

== a background cycle removes expired keys
> SET stays v
OK
> SET k1 v PX 1
OK
> SET k2 v PX 2
OK
> SET k3 v PX 3
OK
> SET k4 v PX 4
OK
> SET k5 v PX 5
OK
> SET k6 v PX 6
OK
> SET k7 v PX 7
OK
> SET k8 v PX 8
OK
> SET k9 v PX 9
OK
> SET k10 v PX 10
OK
> SET k11 v PX 11
OK
> SET k12 v PX 12
OK
> SET k13 v PX 13
OK
> SET k14 v PX 14
OK
> SET k15 v PX 15
OK
> SET k16 v PX 16
OK
> SET k17 v PX 17
OK
> SET k18 v PX 18
OK
> SET k19 v PX 19
OK
> SET k20 v PX 20
OK
> SET k21 v PX 21
OK
> SET k22 v PX 22
OK
> SET k23 v PX 23
OK
> SET k24 v PX 24
OK
> SET k25 v PX 25
OK
> SET k26 v PX 26
OK
> SET k27 v PX 27
OK
> SET k28 v PX 28
OK
> SET k29 v PX 29
OK
> SET k30 v PX 30
OK
> [eventually] DBSIZE
(integer) 1
> KEYS *
1) "stays"

== DEBUG SET-ACTIVE-EXPIRE stops the cycle, reads still remove
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> SET k v PX 1
OK
> SET l v PX 1
OK
sleep 250
> DBSIZE
(integer) 2
> GET k
(nil)
> DBSIZE
(integer) 1
> EXISTS l
(integer) 0
> DBSIZE
(integer) 0
> DEBUG SET-ACTIVE-EXPIRE 1
OK
> DEBUG SET-ACTIVE-EXPIRE
(error) ERR unknown subcommand or wrong number of arguments for 'SET-ACTIVE-EXPIRE'. Try DEBUG HELP.

== what keeps and what drops an expiry
> SET k v EXAT 9999999999
OK
> APPEND k x
(integer) 2
> SETRANGE k 0 y
(integer) 2
> SETBIT k 3 1
(integer) 1
> EXPIRETIME k
(integer) 9999999999
> GETSET k v
"yx"
> EXPIRETIME k
(integer) -1
> RPUSH l a b c
(integer) 3
> EXPIREAT l 9999999999
(integer) 1
> LPUSH l z
(integer) 4
> LSET l 0 y
OK
> LTRIM l 0 1
OK
> LPOP l
"y"
> EXPIRETIME l
(integer) 9999999999
> SORT l ALPHA STORE l
(integer) 1
> EXPIRETIME l
(integer) -1
> SADD s a b
(integer) 2
> EXPIREAT s 9999999999
(integer) 1
> SREM s a
(integer) 1
> EXPIRETIME s
(integer) 9999999999
> SUNIONSTORE s s
(integer) 1
> EXPIRETIME s
(integer) -1
> ZADD z 1 a
(integer) 1
> EXPIREAT z 9999999999
(integer) 1
> ZINCRBY z 1 a
"2"
resp3:
(double) 2
> EXPIRETIME z
(integer) 9999999999
> ZUNIONSTORE z 1 z
(integer) 1
> EXPIRETIME z
(integer) -1
> PFADD p a
(integer) 1
> EXPIREAT p 9999999999
(integer) 1
> PFADD p b
(integer) 1
> EXPIRETIME p
(integer) 9999999999
> PFMERGE p p
OK
> EXPIRETIME p
(integer) 9999999999
> BITOP NOT k k
(integer) 1
> EXPIRETIME k
(integer) -1

== FLUSHALL forgets expiries
> SET k v EX 1000
OK
> FLUSHALL
OK
> SET k v
OK
> TTL k
(integer) -1
> [field=db0] INFO keyspace
"keys=1,expires=0,avg_ttl=0,subexpiry=0"

== expiries are counted
> SET a 1 EX 1000
OK
> SET b 1
OK
> SET c 1 PX 1000000
OK
> INFO keyspace
~ (\(verbatim txt\) )?"# Keyspace\\r\\ndb0:keys=3,expires=2,avg_ttl=\d+,subexpiry=0\\r\\n"
> CONFIG RESETSTAT
OK
> SET d 1 PX 1
OK
sleep 5
> GET d
(nil)
> [field=expired_keys] INFO stats
"1"

== SCAN and RANDOMKEY remove expired keys that they would have shown
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> SET a1 1 PX 1
OK
> SET a2 1 PX 1
OK
> SET b 1 PX 1
OK
> RPUSH l 1
(integer) 1
> PEXPIRE l 1
(integer) 1
sleep 20
> DBSIZE
(integer) 4
> KEYS *
(empty array)
> DBSIZE
(integer) 4
> SCAN 0 MATCH a*
1) "0"
2) (empty array)
> DBSIZE
(integer) 2
> SCAN 0 TYPE list
1) "0"
2) (empty array)
> DBSIZE
(integer) 0
> RANDOMKEY
(nil)
> DBSIZE
(integer) 0
> SET c 1 PX 1
OK
sleep 20
> MULTI
OK
> SCAN 0
QUEUED
> DBSIZE
QUEUED
> EXEC
1) 1) "0"
   2) (empty array)
2) (integer) 0
> DEBUG SET-ACTIVE-EXPIRE 1
OK
