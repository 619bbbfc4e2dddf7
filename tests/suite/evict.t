# maxmemory and what happens when it is reached.

== noeviction refuses what needs memory
> SET k v
OK
> CONFIG SET maxmemory 1
OK
> SET l v
(error) OOM command not allowed when used memory > 'maxmemory'.
> GET k
"v"
> SET k w
(error) OOM command not allowed when used memory > 'maxmemory'.
> APPEND k x
(error) OOM command not allowed when used memory > 'maxmemory'.
> LPUSH l a
(error) OOM command not allowed when used memory > 'maxmemory'.
> SADD s a
(error) OOM command not allowed when used memory > 'maxmemory'.
> HSET h f v
(error) OOM command not allowed when used memory > 'maxmemory'.
> ZADD z 1 a
(error) OOM command not allowed when used memory > 'maxmemory'.
> INCR n
(error) OOM command not allowed when used memory > 'maxmemory'.
> SETBIT b 0 1
(error) OOM command not allowed when used memory > 'maxmemory'.
> PFADD p a
(error) OOM command not allowed when used memory > 'maxmemory'.
> GEOADD g 1 1 a
(error) OOM command not allowed when used memory > 'maxmemory'.
> MSET a 1 b 2
(error) OOM command not allowed when used memory > 'maxmemory'.
> COPY k l
(error) OOM command not allowed when used memory > 'maxmemory'.
> GETSET k w
(error) OOM command not allowed when used memory > 'maxmemory'.
> SORT k STORE l
(error) OOM command not allowed when used memory > 'maxmemory'.
> BITOP NOT l k
(error) OOM command not allowed when used memory > 'maxmemory'.
> DEL k
(integer) 1
> EXPIRE k 100
(integer) 0
> LPOP l
(nil)
> SREM s a
(integer) 0
> HDEL h f
(integer) 0
> RENAME k l
(error) ERR no such key
> PERSIST k
(integer) 0
> FLUSHALL
OK
> CONFIG SET maxmemory 0
OK
> SET l v
OK

== a queue that needs memory is aborted
> MULTI
OK
> SET k v
QUEUED
> CONFIG SET maxmemory 1
QUEUED
> EXEC
1) OK
2) OK
> GET k
"v"
> CONFIG SET maxmemory 0
OK
> MULTI
OK
2> CONFIG SET maxmemory 1
OK
> SET k w
(error) OOM command not allowed when used memory > 'maxmemory'.
> EXEC
(error) EXECABORT Transaction discarded because of previous errors.
> MULTI
OK
> GET k
QUEUED
> EXEC
1) "v"
> CONFIG SET maxmemory 0
OK

== a volatile policy evicts only keys that expire
config set maxmemory-policy volatile-lru
> SET stays v
OK
> CONFIG SET maxmemory 1
OK
> SET k v
(error) OOM command not allowed when used memory > 'maxmemory'.
> GET stays
"v"
> CONFIG SET maxmemory 0
OK
> SET goes v EX 1000
OK
> CONFIG SET maxmemory 1
OK
> SET k v
(error) OOM command not allowed when used memory > 'maxmemory'.
> EXISTS goes
(integer) 0
> EXISTS stays
(integer) 1
> CONFIG SET maxmemory 0
OK

== volatile-ttl evicts what expires first
config set maxmemory-policy volatile-ttl
> SET a v EX 1000
OK
> SET b v EX 5000
OK
> SET c v
OK
> CONFIG SET maxmemory 1
OK
> SET d v
(error) OOM command not allowed when used memory > 'maxmemory'.
> EXISTS a b
(integer) 0
> GET c
"v"
> CONFIG SET maxmemory 0
OK

== allkeys policies evict all that is needed
config set maxmemory-policy allkeys-random
> MSET $each(1..20,k% v%)
OK
> CONFIG SET maxmemory 1
OK
> SET k v
(error) OOM command not allowed when used memory > 'maxmemory'.
> DBSIZE
(integer) 0
> CONFIG SET maxmemory 0
OK
> CONFIG SET maxmemory-policy allkeys-lru
OK
> MSET $each(1..20,k% v%)
OK
> CONFIG SET maxmemory 1
OK
> SET k v
(error) OOM command not allowed when used memory > 'maxmemory'.
> DBSIZE
(integer) 0
> CONFIG SET maxmemory 0
OK
> CONFIG SET maxmemory-policy allkeys-lfu
OK
> MSET $each(1..20,k% v%)
OK
> CONFIG SET maxmemory 1
OK
> GET k1
(nil)
> SET k v
(error) OOM command not allowed when used memory > 'maxmemory'.
> DBSIZE
(integer) 0
> CONFIG SET maxmemory 0
OK

== evicted keys are counted
config set maxmemory-policy allkeys-lru
> CONFIG RESETSTAT
OK
> MSET a 1 b 2 c 3
OK
> CONFIG SET maxmemory 1
OK
> SET k v
(error) OOM command not allowed when used memory > 'maxmemory'.
> [field=evicted_keys] INFO stats
"3"
> CONFIG SET maxmemory 0
OK

== every policy has its name
> CONFIG SET maxmemory-policy noeviction
OK
> CONFIG SET maxmemory-policy allkeys-lru
OK
> CONFIG SET maxmemory-policy allkeys-lfu
OK
> CONFIG SET maxmemory-policy allkeys-random
OK
> CONFIG SET maxmemory-policy volatile-lru
OK
> CONFIG SET maxmemory-policy volatile-lfu
OK
> CONFIG SET maxmemory-policy volatile-random
OK
> CONFIG SET maxmemory-policy volatile-ttl
OK
> CONFIG GET maxmemory-policy
1) "maxmemory-policy"
2) "volatile-ttl"
resp3:
1# "maxmemory-policy" => "volatile-ttl"
> CONFIG SET maxmemory-policy LRU
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction
