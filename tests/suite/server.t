# The server about itself: CONFIG, INFO, COMMAND, SLOWLOG, LATENCY, MEMORY, DEBUG, FLUSH*, SWAPDB.

== DBSIZE, FLUSHDB and FLUSHALL
> MSET a 1 b 2
OK
> DBSIZE
(integer) 2
> SELECT 1
OK
> SET c 3
OK
> DBSIZE
(integer) 1
> FLUSHDB
OK
> DBSIZE
(integer) 0
> SELECT 0
OK
> DBSIZE
(integer) 2
> FLUSHDB ASYNC
OK
> DBSIZE
(integer) 0
> SET a 1
OK
> FLUSHDB SYNC
OK
> DBSIZE
(integer) 0
> SET a 1
OK
> SELECT 2
OK
> SET a 1
OK
> FLUSHALL
OK
> DBSIZE
(integer) 0
> SELECT 0
OK
> DBSIZE
(integer) 0
> FLUSHALL ASYNC
OK
> FLUSHALL SYNC
OK
> flushall async
OK
> FLUSHALL foo
(error) ERR syntax error
> FLUSHALL ASYNC SYNC
(error) ERR syntax error
> FLUSHDB foo
(error) ERR syntax error
> FLUSHDB ASYNC x
(error) ERR syntax error
> DBSIZE x
(error) ERR wrong number of arguments for 'dbsize' command

== SWAPDB
> SET k zero
OK
> SELECT 1
OK
> SET k one
OK
> SWAPDB 0 1
OK
> GET k
"zero"
> SELECT 0
OK
> GET k
"one"
> SWAPDB 0 5
OK
> GET k
(nil)
> SELECT 5
OK
> GET k
"one"
> SWAPDB 5 5
OK
> GET k
"one"
> SWAPDB 0 16
(error) ERR DB index is out of range
> SWAPDB -1 0
(error) ERR DB index is out of range
> SWAPDB a 0
(error) ERR invalid first DB index
> SWAPDB 0 b
(error) ERR invalid second DB index
> SWAPDB 0
(error) ERR wrong number of arguments for 'swapdb' command
> SWAPDB 99 a
(error) ERR invalid second DB index

== TIME
> TIME
~ 1\) "\d{10}"
~ 2\) "\d{1,6}"
> TIME x
(error) ERR wrong number of arguments for 'time' command

== CONFIG GET
> CONFIG GET maxmemory
1) "maxmemory"
2) "0"
resp3:
1# "maxmemory" => "0"
> [pairs] CONFIG GET maxmemory*
 1) "maxmemory"
 2) "0"
 3) "maxmemory-clients"
 4) "0"
 5) "maxmemory-eviction-tenacity"
 6) "10"
 7) "maxmemory-policy"
 8) "noeviction"
 9) "maxmemory-samples"
10) "5"
resp3:
1# "maxmemory" => "0"
2# "maxmemory-clients" => "0"
3# "maxmemory-eviction-tenacity" => "10"
4# "maxmemory-policy" => "noeviction"
5# "maxmemory-samples" => "5"
> CONFIG GET MAXMEMORY
1) "MAXMEMORY"
2) "0"
resp3:
1# "MAXMEMORY" => "0"
> CONFIG GET nosuchsetting
(empty array)
resp3:
(empty hash)
> [pairs] CONFIG GET maxmemory databases nosuch
1) "databases"
2) "16"
3) "maxmemory"
4) "0"
resp3:
1# "databases" => "16"
2# "maxmemory" => "0"
> [pairs] CONFIG GET *-max-intset-* save-nothing databases
1) "databases"
2) "16"
3) "set-max-intset-entries"
4) "512"
resp3:
1# "databases" => "16"
2# "set-max-intset-entries" => "512"
> CONFIG GET [m]axmemor?
1) "maxmemory"
2) "0"
resp3:
1# "maxmemory" => "0"
> CONFIG GET
(error) ERR wrong number of arguments for 'config|get' command
> CONFIG GET ""
(empty array)
resp3:
(empty hash)

== CONFIG SET
> CONFIG SET maxmemory 100mb
OK
> CONFIG GET maxmemory
1) "maxmemory"
2) "104857600"
resp3:
1# "maxmemory" => "104857600"
> CONFIG SET maxmemory 1gb maxmemory-samples 7
OK
> [pairs] CONFIG GET maxmemory maxmemory-samples
1) "maxmemory"
2) "1073741824"
3) "maxmemory-samples"
4) "7"
resp3:
1# "maxmemory" => "1073741824"
2# "maxmemory-samples" => "7"
> CONFIG SET maxmemory 1k
OK
> CONFIG GET maxmemory
1) "maxmemory"
2) "1000"
resp3:
1# "maxmemory" => "1000"
> CONFIG SET maxmemory 1kb
OK
> CONFIG GET maxmemory
1) "maxmemory"
2) "1024"
resp3:
1# "maxmemory" => "1024"
> CONFIG SET maxmemory 1000
OK
> CONFIG GET maxmemory
1) "maxmemory"
2) "1000"
resp3:
1# "maxmemory" => "1000"
> CONFIG SET MaxMemory 0
OK
> CONFIG GET maxmemory
1) "maxmemory"
2) "0"
resp3:
1# "maxmemory" => "0"
> CONFIG SET appendfsync always
OK
> CONFIG GET appendfsync
1) "appendfsync"
2) "always"
resp3:
1# "appendfsync" => "always"
> CONFIG SET hz 20
OK
> CONFIG GET hz
1) "hz"
2) "20"
resp3:
1# "hz" => "20"
> CONFIG SET hz 1000
OK
> CONFIG GET hz
1) "hz"
2) "500"
resp3:
1# "hz" => "500"
> CONFIG SET maxmemory-policy allkeys-lru
OK
> CONFIG GET maxmemory-policy
1) "maxmemory-policy"
2) "allkeys-lru"
resp3:
1# "maxmemory-policy" => "allkeys-lru"
> CONFIG SET lazyfree-lazy-expire yes
OK
> CONFIG GET lazyfree-lazy-expire
1) "lazyfree-lazy-expire"
2) "yes"
resp3:
1# "lazyfree-lazy-expire" => "yes"

== CONFIG SET refuses and changes nothing
> CONFIG SET
(error) ERR wrong number of arguments for 'config|set' command
> CONFIG SET maxmemory
(error) ERR wrong number of arguments for 'config|set' command
> CONFIG SET maxmemory 1 maxmemory-samples
(error) ERR syntax error
> CONFIG SET nosuch 1
(error) ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'
> CONFIG SET maxmemory abc
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
> CONFIG SET maxmemory -1
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
> CONFIG SET maxmemory 1x
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
> CONFIG SET maxmemory ""
OK
> CONFIG SET maxmemory-samples 0
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument must be between 1 and 64 inclusive
> CONFIG SET maxmemory-samples 65
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument must be between 1 and 64 inclusive
> CONFIG SET maxmemory-samples abc
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument couldn't be parsed into an integer
> CONFIG SET maxmemory-policy foo
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction
> CONFIG SET lazyfree-lazy-expire maybe
(error) ERR CONFIG SET failed (possibly related to argument 'lazyfree-lazy-expire') - argument must be 'yes' or 'no'
> CONFIG SET databases 5
(error) ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
> CONFIG SET port abc
(error) ERR CONFIG SET failed (possibly related to argument 'port') - argument couldn't be parsed into an integer
> CONFIG SET port 70000
(error) ERR CONFIG SET failed (possibly related to argument 'port') - argument must be between 0 and 65535 inclusive
> CONFIG SET maxmemory 5mb nosuch 1
(error) ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'
> CONFIG SET maxmemory 5mb hz abc
(error) ERR CONFIG SET failed (possibly related to argument 'hz') - argument couldn't be parsed into an integer
> CONFIG SET maxmemory 5mb maxmemory 6mb
(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory') - duplicate parameter
> CONFIG SET maxmemory 5mb databases 3
(error) ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
> CONFIG GET maxmemory
1) "maxmemory"
2) "0"
resp3:
1# "maxmemory" => "0"
> CONFIG SET hash-max-listpack-entries -1
(error) ERR CONFIG SET failed (possibly related to argument 'hash-max-listpack-entries') - argument must be between 0 and 9223372036854775807 inclusive
> CONFIG SET list-max-listpack-size abc
(error) ERR CONFIG SET failed (possibly related to argument 'list-max-listpack-size') - argument couldn't be parsed into an integer
> CONFIG SET slowlog-max-len -1
(error) ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - argument must be between 0 and 9223372036854775807 inclusive
> CONFIG SET timeout -1
(error) ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and 2147483647 inclusive
> CONFIG SET tcp-keepalive -5
(error) ERR CONFIG SET failed (possibly related to argument 'tcp-keepalive') - argument must be between 0 and 2147483647 inclusive
> CONFIG SET notify-keyspace-events foo
(error) ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event class character. Use 'Ag$lshzxeKEtmdn'.
> CONFIG SET client-output-buffer-limit foo
(error) ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - Wrong number of arguments in buffer limit configuration.
> CONFIG SET client-output-buffer-limit "normal a b c"
(error) ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - Error in hard, soft or soft_seconds setting in buffer limit configuration.
> CONFIG SET save "a b"
(error) ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters
> CONFIG SET enable-debug-command yes
(error) ERR CONFIG SET failed (possibly related to argument 'enable-debug-command') - can't set immutable config
> CONFIG SET appendfsync sometimes
(error) ERR CONFIG SET failed (possibly related to argument 'appendfsync') - argument(s) must be one of the following: everysec, always, no
> CONFIG SET loglevel loud
(error) ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument(s) must be one of the following: debug, verbose, notice, warning, nothing
> CONFIG SET maxclients 0
(error) ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 4294967295 inclusive
> CONFIG SET requirepass
(error) ERR wrong number of arguments for 'config|set' command

== CONFIG and what it does not know
> CONFIG
(error) ERR wrong number of arguments for 'config' command
> CONFIG foo
(error) ERR unknown subcommand 'foo'. Try CONFIG HELP.
> CONFIG foo bar
(error) ERR unknown subcommand 'foo'. Try CONFIG HELP.
> CONFIG RESETSTAT
OK
> CONFIG RESETSTAT x
(error) ERR wrong number of arguments for 'config|resetstat' command
> CONFIG REWRITE
(error) ERR The server is running without a config file
> CONFIG HELP
~  *1\) .+
...

== default settings
> CONFIG GET databases
1) "databases"
2) "16"
resp3:
1# "databases" => "16"
> CONFIG GET maxclients
1) "maxclients"
2) "10000"
resp3:
1# "maxclients" => "10000"
> CONFIG GET maxmemory
1) "maxmemory"
2) "0"
resp3:
1# "maxmemory" => "0"
> CONFIG GET maxmemory-policy
1) "maxmemory-policy"
2) "noeviction"
resp3:
1# "maxmemory-policy" => "noeviction"
> CONFIG GET maxmemory-samples
1) "maxmemory-samples"
2) "5"
resp3:
1# "maxmemory-samples" => "5"
> CONFIG GET maxmemory-eviction-tenacity
1) "maxmemory-eviction-tenacity"
2) "10"
resp3:
1# "maxmemory-eviction-tenacity" => "10"
> CONFIG GET timeout
1) "timeout"
2) "0"
resp3:
1# "timeout" => "0"
> CONFIG GET tcp-keepalive
1) "tcp-keepalive"
2) "300"
resp3:
1# "tcp-keepalive" => "300"
> CONFIG GET tcp-backlog
1) "tcp-backlog"
2) "511"
resp3:
1# "tcp-backlog" => "511"
> CONFIG GET hz
1) "hz"
2) "10"
resp3:
1# "hz" => "10"
> CONFIG GET dynamic-hz
1) "dynamic-hz"
2) "yes"
resp3:
1# "dynamic-hz" => "yes"
> CONFIG GET requirepass
1) "requirepass"
2) ""
resp3:
1# "requirepass" => ""
> CONFIG GET loglevel
1) "loglevel"
2) "notice"
resp3:
1# "loglevel" => "notice"
> CONFIG GET appendonly
1) "appendonly"
2) "no"
resp3:
1# "appendonly" => "no"
> CONFIG GET appendfsync
1) "appendfsync"
2) "everysec"
resp3:
1# "appendfsync" => "everysec"
> CONFIG GET appendfilename
1) "appendfilename"
2) "appendonly.aof"
resp3:
1# "appendfilename" => "appendonly.aof"
> CONFIG GET appenddirname
1) "appenddirname"
2) "appendonlydir"
resp3:
1# "appenddirname" => "appendonlydir"
> CONFIG GET auto-aof-rewrite-percentage
1) "auto-aof-rewrite-percentage"
2) "100"
resp3:
1# "auto-aof-rewrite-percentage" => "100"
> CONFIG GET auto-aof-rewrite-min-size
1) "auto-aof-rewrite-min-size"
2) "67108864"
resp3:
1# "auto-aof-rewrite-min-size" => "67108864"
> CONFIG GET aof-use-rdb-preamble
1) "aof-use-rdb-preamble"
2) "yes"
resp3:
1# "aof-use-rdb-preamble" => "yes"
> CONFIG GET aof-load-truncated
1) "aof-load-truncated"
2) "yes"
resp3:
1# "aof-load-truncated" => "yes"
> CONFIG GET dbfilename
1) "dbfilename"
2) "dump.rdb"
resp3:
1# "dbfilename" => "dump.rdb"
> CONFIG GET rdbcompression
1) "rdbcompression"
2) "yes"
resp3:
1# "rdbcompression" => "yes"
> CONFIG GET rdbchecksum
1) "rdbchecksum"
2) "yes"
resp3:
1# "rdbchecksum" => "yes"
> CONFIG GET stop-writes-on-bgsave-error
1) "stop-writes-on-bgsave-error"
2) "yes"
resp3:
1# "stop-writes-on-bgsave-error" => "yes"
> CONFIG GET hash-max-listpack-entries
1) "hash-max-listpack-entries"
2) "512"
resp3:
1# "hash-max-listpack-entries" => "512"
> CONFIG GET hash-max-ziplist-entries
1) "hash-max-ziplist-entries"
2) "512"
resp3:
1# "hash-max-ziplist-entries" => "512"
> CONFIG GET hash-max-listpack-value
1) "hash-max-listpack-value"
2) "64"
resp3:
1# "hash-max-listpack-value" => "64"
> CONFIG GET hash-max-ziplist-value
1) "hash-max-ziplist-value"
2) "64"
resp3:
1# "hash-max-ziplist-value" => "64"
> CONFIG GET list-max-listpack-size
1) "list-max-listpack-size"
2) "-2"
resp3:
1# "list-max-listpack-size" => "-2"
> CONFIG GET list-max-ziplist-size
1) "list-max-ziplist-size"
2) "-2"
resp3:
1# "list-max-ziplist-size" => "-2"
> CONFIG GET list-compress-depth
1) "list-compress-depth"
2) "0"
resp3:
1# "list-compress-depth" => "0"
> CONFIG GET set-max-intset-entries
1) "set-max-intset-entries"
2) "512"
resp3:
1# "set-max-intset-entries" => "512"
> CONFIG GET zset-max-listpack-entries
1) "zset-max-listpack-entries"
2) "128"
resp3:
1# "zset-max-listpack-entries" => "128"
> CONFIG GET zset-max-ziplist-entries
1) "zset-max-ziplist-entries"
2) "128"
resp3:
1# "zset-max-ziplist-entries" => "128"
> CONFIG GET zset-max-listpack-value
1) "zset-max-listpack-value"
2) "64"
resp3:
1# "zset-max-listpack-value" => "64"
> CONFIG GET hll-sparse-max-bytes
1) "hll-sparse-max-bytes"
2) "3000"
resp3:
1# "hll-sparse-max-bytes" => "3000"
> CONFIG GET stream-node-max-bytes
1) "stream-node-max-bytes"
2) "4096"
resp3:
1# "stream-node-max-bytes" => "4096"
> CONFIG GET stream-node-max-entries
1) "stream-node-max-entries"
2) "100"
resp3:
1# "stream-node-max-entries" => "100"
> CONFIG GET slowlog-log-slower-than
1) "slowlog-log-slower-than"
2) "10000"
resp3:
1# "slowlog-log-slower-than" => "10000"
> CONFIG GET slowlog-max-len
1) "slowlog-max-len"
2) "128"
resp3:
1# "slowlog-max-len" => "128"
> CONFIG GET latency-monitor-threshold
1) "latency-monitor-threshold"
2) "0"
resp3:
1# "latency-monitor-threshold" => "0"
> CONFIG GET notify-keyspace-events
1) "notify-keyspace-events"
2) ""
resp3:
1# "notify-keyspace-events" => ""
> CONFIG GET lfu-log-factor
1) "lfu-log-factor"
2) "10"
resp3:
1# "lfu-log-factor" => "10"
> CONFIG GET lfu-decay-time
1) "lfu-decay-time"
2) "1"
resp3:
1# "lfu-decay-time" => "1"
> CONFIG GET lazyfree-lazy-eviction
1) "lazyfree-lazy-eviction"
2) "no"
resp3:
1# "lazyfree-lazy-eviction" => "no"
> CONFIG GET lazyfree-lazy-expire
1) "lazyfree-lazy-expire"
2) "no"
resp3:
1# "lazyfree-lazy-expire" => "no"
> CONFIG GET lazyfree-lazy-server-del
1) "lazyfree-lazy-server-del"
2) "no"
resp3:
1# "lazyfree-lazy-server-del" => "no"
> CONFIG GET lazyfree-lazy-user-del
1) "lazyfree-lazy-user-del"
2) "no"
resp3:
1# "lazyfree-lazy-user-del" => "no"
> CONFIG GET lazyfree-lazy-user-flush
1) "lazyfree-lazy-user-flush"
2) "no"
resp3:
1# "lazyfree-lazy-user-flush" => "no"
> CONFIG GET replica-read-only
1) "replica-read-only"
2) "yes"
resp3:
1# "replica-read-only" => "yes"
> CONFIG GET replica-serve-stale-data
1) "replica-serve-stale-data"
2) "yes"
resp3:
1# "replica-serve-stale-data" => "yes"
> CONFIG GET repl-backlog-size
1) "repl-backlog-size"
2) "1048576"
resp3:
1# "repl-backlog-size" => "1048576"
> CONFIG GET repl-timeout
1) "repl-timeout"
2) "60"
resp3:
1# "repl-timeout" => "60"
> CONFIG GET min-replicas-to-write
1) "min-replicas-to-write"
2) "0"
resp3:
1# "min-replicas-to-write" => "0"
> CONFIG GET min-slaves-to-write
1) "min-slaves-to-write"
2) "0"
resp3:
1# "min-slaves-to-write" => "0"
> CONFIG GET cluster-enabled
1) "cluster-enabled"
2) "no"
resp3:
1# "cluster-enabled" => "no"
> CONFIG GET lua-time-limit
1) "lua-time-limit"
2) "5000"
resp3:
1# "lua-time-limit" => "5000"
> CONFIG GET busy-reply-threshold
1) "busy-reply-threshold"
2) "5000"
resp3:
1# "busy-reply-threshold" => "5000"
> CONFIG GET proto-max-bulk-len
1) "proto-max-bulk-len"
2) "536870912"
resp3:
1# "proto-max-bulk-len" => "536870912"
> CONFIG GET client-query-buffer-limit
1) "client-query-buffer-limit"
2) "1073741824"
resp3:
1# "client-query-buffer-limit" => "1073741824"
> CONFIG GET client-output-buffer-limit
1) "client-output-buffer-limit"
2) "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
resp3:
1# "client-output-buffer-limit" => "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
> CONFIG GET maxmemory-clients
1) "maxmemory-clients"
2) "0"
resp3:
1# "maxmemory-clients" => "0"
> CONFIG GET active-expire-effort
1) "active-expire-effort"
2) "1"
resp3:
1# "active-expire-effort" => "1"
> CONFIG GET activedefrag
1) "activedefrag"
2) "no"
resp3:
1# "activedefrag" => "no"
> CONFIG GET acllog-max-len
1) "acllog-max-len"
2) "128"
resp3:
1# "acllog-max-len" => "128"
> CONFIG GET protected-mode
1) "protected-mode"
2) "yes"
resp3:
1# "protected-mode" => "yes"
> CONFIG GET io-threads
1) "io-threads"
2) "1"
resp3:
1# "io-threads" => "1"
> CONFIG GET sanitize-dump-payload
1) "sanitize-dump-payload"
2) "no"
resp3:
1# "sanitize-dump-payload" => "no"
> CONFIG GET tracking-table-max-keys
1) "tracking-table-max-keys"
2) "1000000"
resp3:
1# "tracking-table-max-keys" => "1000000"
> CONFIG GET unixsocket
1) "unixsocket"
2) ""
resp3:
1# "unixsocket" => ""
> CONFIG GET daemonize
1) "daemonize"
2) "no"
resp3:
1# "daemonize" => "no"
> CONFIG GET supervised
1) "supervised"
2) "no"
resp3:
1# "supervised" => "no"
> CONFIG GET pidfile
1) "pidfile"
2) ""
resp3:
1# "pidfile" => ""
> CONFIG GET bind
1) "bind"
2) "127.0.0.1"
resp3:
1# "bind" => "127.0.0.1"

== settings with units and lists are printed in one way
> CONFIG SET client-output-buffer-limit "normal 1mb 2mb 60"
OK
> CONFIG GET client-output-buffer-limit
1) "client-output-buffer-limit"
2) "normal 1048576 2097152 60 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
resp3:
1# "client-output-buffer-limit" => "normal 1048576 2097152 60 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
> CONFIG SET client-output-buffer-limit "pubsub 0 0 0 replica 1kb 2kb 3"
OK
> CONFIG GET client-output-buffer-limit
1) "client-output-buffer-limit"
2) "normal 1048576 2097152 60 slave 1024 2048 3 pubsub 0 0 0"
resp3:
1# "client-output-buffer-limit" => "normal 1048576 2097152 60 slave 1024 2048 3 pubsub 0 0 0"
> CONFIG SET repl-backlog-size 2mb
OK
> CONFIG GET repl-backlog-size
1) "repl-backlog-size"
2) "2097152"
resp3:
1# "repl-backlog-size" => "2097152"
> CONFIG SET save "900 1 300 10"
OK
> CONFIG GET save
1) "save"
2) "900 1 300 10"
resp3:
1# "save" => "900 1 300 10"
> CONFIG SET save ""
OK
> CONFIG GET save
1) "save"
2) ""
resp3:
1# "save" => ""
> CONFIG SET maxmemory-clients 50%
OK
> CONFIG GET maxmemory-clients
1) "maxmemory-clients"
2) "50%"
resp3:
1# "maxmemory-clients" => "50%"
> CONFIG SET maxmemory-clients 1mb
OK
> CONFIG GET maxmemory-clients
1) "maxmemory-clients"
2) "1048576"
resp3:
1# "maxmemory-clients" => "1048576"
> CONFIG SET auto-aof-rewrite-min-size 64mb
OK
> CONFIG GET auto-aof-rewrite-min-size
1) "auto-aof-rewrite-min-size"
2) "67108864"
resp3:
1# "auto-aof-rewrite-min-size" => "67108864"

== INFO has its sections and fields
> [fields] INFO server
...
~ .*"# Server"
...
~ .*"redis_version"
...
~ .*"redis_mode"
...
~ .*"os"
...
~ .*"arch_bits"
...
~ .*"multiplexing_api"
...
~ .*"process_id"
...
~ .*"run_id"
...
~ .*"tcp_port"
...
~ .*"server_time_usec"
...
~ .*"uptime_in_seconds"
...
~ .*"uptime_in_days"
...
~ .*"hz"
...
~ .*"configured_hz"
...
~ .*"lru_clock"
...
~ .*"executable"
...
~ .*"config_file"
...
> [fields] INFO clients
 1) "# Clients"
 2) "connected_clients"
 3) "cluster_connections"
 4) "maxclients"
 5) "client_recent_max_input_buffer"
 6) "client_recent_max_output_buffer"
 7) "blocked_clients"
 8) "tracking_clients"
 9) "pubsub_clients"
10) "watching_clients"
11) "clients_in_timeout_table"
12) "total_watched_keys"
13) "total_blocking_keys"
14) "total_blocking_keys_on_nokey"
> [fields] INFO memory
...
~ .*"# Memory"
...
~ .*"used_memory"
...
~ .*"used_memory_human"
...
~ .*"used_memory_rss"
...
~ .*"used_memory_rss_human"
...
~ .*"used_memory_peak"
...
~ .*"used_memory_peak_human"
...
~ .*"used_memory_overhead"
...
~ .*"used_memory_startup"
...
~ .*"used_memory_dataset"
...
~ .*"total_system_memory"
...
~ .*"total_system_memory_human"
...
~ .*"maxmemory"
...
~ .*"maxmemory_human"
...
~ .*"maxmemory_policy"
...
~ .*"mem_fragmentation_ratio"
...
~ .*"mem_clients_slaves"
...
~ .*"mem_clients_normal"
...
~ .*"mem_aof_buffer"
...
~ .*"mem_allocator"
...
~ .*"lazyfree_pending_objects"
...
~ .*"lazyfreed_objects"
...
> [fields] INFO persistence
...
~ .*"# Persistence"
...
~ .*"loading"
...
~ .*"rdb_changes_since_last_save"
...
~ .*"rdb_bgsave_in_progress"
...
~ .*"rdb_last_save_time"
...
~ .*"rdb_last_bgsave_status"
...
~ .*"rdb_last_bgsave_time_sec"
...
~ .*"rdb_current_bgsave_time_sec"
...
~ .*"rdb_saves"
...
~ .*"aof_enabled"
...
~ .*"aof_rewrite_in_progress"
...
~ .*"aof_rewrite_scheduled"
...
~ .*"aof_last_rewrite_time_sec"
...
~ .*"aof_current_rewrite_time_sec"
...
~ .*"aof_last_bgrewrite_status"
...
~ .*"aof_last_write_status"
...
> [fields] INFO stats
...
~ .*"# Stats"
...
~ .*"total_connections_received"
...
~ .*"total_commands_processed"
...
~ .*"instantaneous_ops_per_sec"
...
~ .*"total_net_input_bytes"
...
~ .*"total_net_output_bytes"
...
~ .*"instantaneous_input_kbps"
...
~ .*"instantaneous_output_kbps"
...
~ .*"rejected_connections"
...
~ .*"sync_full"
...
~ .*"sync_partial_ok"
...
~ .*"sync_partial_err"
...
~ .*"expired_keys"
...
~ .*"evicted_keys"
...
~ .*"evicted_clients"
...
~ .*"keyspace_hits"
...
~ .*"keyspace_misses"
...
~ .*"pubsub_channels"
...
~ .*"pubsub_patterns"
...
~ .*"pubsubshard_channels"
...
~ .*"latest_fork_usec"
...
~ .*"total_forks"
...
~ .*"tracking_total_keys"
...
~ .*"tracking_total_items"
...
~ .*"tracking_total_prefixes"
...
~ .*"total_error_replies"
...
> [fields] INFO replication
 1) "# Replication"
 2) "role"
 3) "connected_slaves"
 4) "master_failover_state"
 5) "master_replid"
 6) "master_replid2"
 7) "master_repl_offset"
 8) "second_repl_offset"
 9) "repl_backlog_active"
10) "repl_backlog_size"
11) "repl_backlog_first_byte_offset"
12) "repl_backlog_histlen"
> [fields] INFO cpu
...
~ .*"# CPU"
...
~ .*"used_cpu_sys"
...
~ .*"used_cpu_user"
...
~ .*"used_cpu_sys_children"
...
~ .*"used_cpu_user_children"
...
> [fields] INFO modules
1) "# Modules"
...
> [fields] INFO cluster
1) "# Cluster"
2) "cluster_enabled"
> [fields] INFO keyspace
1) "# Keyspace"
> SET k v
OK
> [fields] INFO keyspace
1) "# Keyspace"
2) "db0"
> [fields] INFO SERVER
...
~ .*"redis_version"
...
~ .*"redis_mode"
...
> INFO nosuch
""
resp3:
(verbatim txt) ""
> [fields] INFO clients cpu
...
~ .*"# Clients"
...
~ .*"connected_clients"
...
~ .*"# CPU"
...
~ .*"used_cpu_sys"
...
> [fields] INFO keyspace keyspace
1) "# Keyspace"
2) "db0"

== INFO values that are known
> [field=redis_mode] INFO server
"standalone"
> [field=arch_bits] INFO server
"64"
> [field=role] INFO replication
"master"
> [field=connected_slaves] INFO replication
"0"
> [field=connected_clients] INFO clients
"2"
> [field=maxclients] INFO clients
"10000"
> [field=cluster_enabled] INFO cluster
"0"
> [field=maxmemory] INFO memory
"0"
> [field=maxmemory_policy] INFO memory
"noeviction"
> [field=loading] INFO persistence
"0"
> [field=aof_enabled] INFO persistence
"0"
> [field=tcp_port] INFO server
~ "\d+"
> [field=process_id] INFO server
~ "\d+"
> [field=run_id] INFO server
~ "[0-9a-f]{40}"
> [field=redis_version] INFO server
~ "\d+\.\d+\.\d+"
> [field=used_memory] INFO memory
~ "[1-9]\d+"
> [field=used_memory_human] INFO memory
~ "\d+(\.\d+)?[BKMG]"
> [field=total_connections_received] INFO
~ "\d+"
> [field=uptime_in_seconds] INFO everything
~ "\d+"
> [field=nosuch] INFO all
(nil)

== INFO counts commands, hits and errors
> CONFIG RESETSTAT
OK
> SET k v
OK
> GET k
"v"
> GET nokey
(nil)
> EXISTS k nokey
(integer) 1
> [field=keyspace_hits] INFO stats
"2"
> [field=keyspace_misses] INFO stats
"2"
> RPUSH l a b c
(integer) 3
> SET w_a x
OK
> SORT l BY w_*
(error) ERR One or more scores can't be converted into double
> [field=keyspace_misses] INFO stats
"4"
> INCR k
(error) ERR value is not an integer or out of range
> LPUSH k a
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> nosuchcommand
(error) ERR unknown command 'nosuchcommand', with args beginning with:\x20
> GET
(error) ERR wrong number of arguments for 'get' command
> [field=cmdstat_get] INFO commandstats
~ "calls=2,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=1,failed_calls=0"
> [field=cmdstat_incr] INFO commandstats
~ "calls=1,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=1"
> [field=errorstat_ERR] INFO errorstats
"count=4"
> [field=errorstat_WRONGTYPE] INFO errorstats
"count=1"
> [field=total_error_replies] INFO stats
"5"
> CLIENT GETNAME
(nil)
> [field=cmdstat_client|getname] INFO commandstats
~ "calls=1,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=0"
> [field=latency_percentiles_usec_get] INFO latencystats
~ "p50=\d+\.\d+,p99=\d+\.\d+,p99.9=\d+\.\d+"
> CONFIG RESETSTAT
OK
> [field=errorstat_WRONGTYPE] INFO errorstats
(nil)
> [field=keyspace_hits] INFO stats
"0"
> SCAN 0 COUNT 1000 MATCH k
1) "0"
2) 1) "k"
> [field=keyspace_hits] INFO stats
"0"
> SCAN 0 COUNT 1000 MATCH k TYPE list
1) "0"
2) (empty array)
> [field=keyspace_hits] INFO stats
"1"
> SCAN 0 COUNT 1000 MATCH x TYPE list
1) "0"
2) (empty array)
> [field=keyspace_hits] INFO stats
"1"
> SADD s a
(integer) 1
> [count] SPOP s 2
(integer) 1
> [field=keyspace_hits] INFO stats
"2"

== COMMAND INFO
> [unordered] COMMAND INFO get
1)  1) "get"
    2) (integer) 2
    3) 1) fast
       2) readonly
    4) (integer) 1
    5) (integer) 1
    6) (integer) 1
    7) 1) @fast
       2) @read
       3) @string
    8) (empty array)
    9) 1) 1) "flags"
          2) 1) RO
             2) access
          3) "begin_search"
          4) 1) "type"
             2) "index"
             3) "spec"
             4) 1) "index"
                2) (integer) 1
          5) "find_keys"
          6) 1) "type"
             2) "range"
             3) "spec"
             4) 1) "lastkey"
                2) (integer) 0
                3) "keystep"
                4) (integer) 1
                5) "limit"
                6) (integer) 0
   10) (empty array)
resp3:
1)  1) "get"
    2) (integer) 2
    3) 1~ fast
       2~ readonly
    4) (integer) 1
    5) (integer) 1
    6) (integer) 1
    7) 1~ @fast
       2~ @read
       3~ @string
    8) (empty set)
    9) 1~ 1# "begin_search" =>
               1# "spec" => 1# "index" => (integer) 1
               2# "type" => "index"
          2# "find_keys" =>
               1# "spec" =>
                    1# "keystep" => (integer) 1
                    2# "lastkey" => (integer) 0
                    3# "limit" => (integer) 0
               2# "type" => "range"
          3# "flags" =>
               1~ RO
               2~ access
   10) (empty set)
> [unordered] COMMAND INFO mset
1)  1) "mset"
    2) (integer) -3
    3) 1) denyoom
       2) write
    4) (integer) 1
    5) (integer) -1
    6) (integer) 2
    7) 1) @slow
       2) @string
       3) @write
    8) 1) "request_policy:multi_shard"
       2) "response_policy:all_succeeded"
    9) 1) 1) "flags"
          2) 1) OW
             2) update
          3) "begin_search"
          4) 1) "type"
             2) "index"
             3) "spec"
             4) 1) "index"
                2) (integer) 1
          5) "find_keys"
          6) 1) "type"
             2) "range"
             3) "spec"
             4) 1) "lastkey"
                2) (integer) -1
                3) "keystep"
                4) (integer) 2
                5) "limit"
                6) (integer) 0
   10) (empty array)
resp3:
1)  1) "mset"
    2) (integer) -3
    3) 1~ denyoom
       2~ write
    4) (integer) 1
    5) (integer) -1
    6) (integer) 2
    7) 1~ @slow
       2~ @string
       3~ @write
    8) 1~ "request_policy:multi_shard"
       2~ "response_policy:all_succeeded"
    9) 1~ 1# "begin_search" =>
               1# "spec" => 1# "index" => (integer) 1
               2# "type" => "index"
          2# "find_keys" =>
               1# "spec" =>
                    1# "keystep" => (integer) 2
                    2# "lastkey" => (integer) -1
                    3# "limit" => (integer) 0
               2# "type" => "range"
          3# "flags" =>
               1~ OW
               2~ update
   10) (empty set)
> [unordered] COMMAND INFO zunionstore
1)  1) "zunionstore"
    2) (integer) -4
    3) 1) denyoom
       2) movablekeys
       3) write
    4) (integer) 1
    5) (integer) 1
    6) (integer) 1
    7) 1) @slow
       2) @sortedset
       3) @write
    8) (empty array)
    9) 1) 1) "flags"
          2) 1) OW
             2) update
          3) "begin_search"
          4) 1) "type"
             2) "index"
             3) "spec"
             4) 1) "index"
                2) (integer) 1
          5) "find_keys"
          6) 1) "type"
             2) "range"
             3) "spec"
             4) 1) "lastkey"
                2) (integer) 0
                3) "keystep"
                4) (integer) 1
                5) "limit"
                6) (integer) 0
       2) 1) "flags"
          2) 1) RO
             2) access
          3) "begin_search"
          4) 1) "type"
             2) "index"
             3) "spec"
             4) 1) "index"
                2) (integer) 2
          5) "find_keys"
          6) 1) "type"
             2) "keynum"
             3) "spec"
             4) 1) "keynumidx"
                2) (integer) 0
                3) "firstkey"
                4) (integer) 1
                5) "keystep"
                6) (integer) 1
   10) (empty array)
resp3:
1)  1) "zunionstore"
    2) (integer) -4
    3) 1~ denyoom
       2~ movablekeys
       3~ write
    4) (integer) 1
    5) (integer) 1
    6) (integer) 1
    7) 1~ @slow
       2~ @sortedset
       3~ @write
    8) (empty set)
    9) 1~ 1# "begin_search" =>
               1# "spec" => 1# "index" => (integer) 1
               2# "type" => "index"
          2# "find_keys" =>
               1# "spec" =>
                    1# "keystep" => (integer) 1
                    2# "lastkey" => (integer) 0
                    3# "limit" => (integer) 0
               2# "type" => "range"
          3# "flags" =>
               1~ OW
               2~ update
       2~ 1# "begin_search" =>
               1# "spec" => 1# "index" => (integer) 2
               2# "type" => "index"
          2# "find_keys" =>
               1# "spec" =>
                    1# "firstkey" => (integer) 1
                    2# "keynumidx" => (integer) 0
                    3# "keystep" => (integer) 1
               2# "type" => "keynum"
          3# "flags" =>
               1~ RO
               2~ access
   10) (empty set)
> [unordered] COMMAND INFO memory|usage
1)  1) "memory|usage"
    2) (integer) -3
    3) 1) readonly
    4) (integer) 2
    5) (integer) 2
    6) (integer) 1
    7) 1) @read
       2) @slow
    8) (empty array)
    9) 1) 1) "flags"
          2) 1) RO
          3) "begin_search"
          4) 1) "type"
             2) "index"
             3) "spec"
             4) 1) "index"
                2) (integer) 2
          5) "find_keys"
          6) 1) "type"
             2) "range"
             3) "spec"
             4) 1) "lastkey"
                2) (integer) 0
                3) "keystep"
                4) (integer) 1
                5) "limit"
                6) (integer) 0
   10) (empty array)
resp3:
1)  1) "memory|usage"
    2) (integer) -3
    3) 1~ readonly
    4) (integer) 2
    5) (integer) 2
    6) (integer) 1
    7) 1~ @read
       2~ @slow
    8) (empty set)
    9) 1~ 1# "begin_search" =>
               1# "spec" => 1# "index" => (integer) 2
               2# "type" => "index"
          2# "find_keys" =>
               1# "spec" =>
                    1# "keystep" => (integer) 1
                    2# "lastkey" => (integer) 0
                    3# "limit" => (integer) 0
               2# "type" => "range"
          3# "flags" => 1~ RO
   10) (empty set)
> COMMAND INFO nosuch
1) (nil)
> [count] COMMAND INFO get set nosuch
(integer) 3
> COMMAND COUNT
~ \(integer\) [1-9]\d+
> COMMAND COUNT x
(error) ERR wrong number of arguments for 'command|count' command
> COMMAND foo
(error) ERR unknown subcommand 'foo'. Try COMMAND HELP.
> COMMAND HELP
~  *1\) .+
...

== COMMAND LIST
> COMMAND LIST FILTERBY PATTERN getr*
1) "getrange"
> [unordered] COMMAND LIST FILTERBY PATTERN hincr*
1) "hincrby"
2) "hincrbyfloat"
> COMMAND LIST FILTERBY PATTERN nosuch*
(empty array)
> [unordered] COMMAND LIST FILTERBY ACLCAT bitmap
1) "bitcount"
2) "bitfield"
3) "bitfield_ro"
4) "bitop"
5) "bitpos"
6) "getbit"
7) "setbit"
> [unordered] COMMAND LIST FILTERBY ACLCAT hyperloglog
1) "pfadd"
2) "pfcount"
3) "pfdebug"
4) "pfmerge"
5) "pfselftest"
> [unordered] COMMAND LIST FILTERBY ACLCAT geo
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
> COMMAND LIST FILTERBY ACLCAT nosuch
(empty array)
> COMMAND LIST FILTERBY MODULE nosuch
(empty array)
> COMMAND LIST FILTERBY foo bar
(error) ERR syntax error
> COMMAND LIST FILTERBY ACLCAT
(error) ERR syntax error
> COMMAND LIST foo
(error) ERR syntax error

== COMMAND DOCS
> [keys] COMMAND DOCS get
1) "get"
> [count] COMMAND DOCS get set
(integer) 4
> COMMAND DOCS nosuch
(empty array)
resp3:
(empty hash)

== COMMAND GETKEYS
> COMMAND GETKEYS GET k
1) "k"
> COMMAND GETKEYS XREAD COUNT 1 STREAMS a b 1 2
1) "a"
2) "b"
> COMMAND GETKEYS XREAD STREAMS a streams 1 2
1) "a"
2) "streams"
> COMMAND GETKEYS XREADGROUP GROUP g c STREAMS a b > >
1) "a"
2) "b"
> COMMAND GETKEYS SET k v EX 10
1) "k"
> COMMAND GETKEYS MSET a 1 b 2 c 3
1) "a"
2) "b"
3) "c"
> COMMAND GETKEYS MGET a b c
1) "a"
2) "b"
3) "c"
> COMMAND GETKEYS DEL a b
1) "a"
2) "b"
> COMMAND GETKEYS RENAME a b
1) "a"
2) "b"
> COMMAND GETKEYS LMOVE a b LEFT LEFT
1) "a"
2) "b"
> COMMAND GETKEYS BLPOP a b 0
1) "a"
2) "b"
> COMMAND GETKEYS LMPOP 2 a b LEFT
1) "a"
2) "b"
> COMMAND GETKEYS BLMPOP 0 2 a b LEFT
1) "a"
2) "b"
> COMMAND GETKEYS ZUNIONSTORE d +1 a b
1) "a"
2) "d"
> COMMAND GETKEYSANDFLAGS ZDIFFSTORE d 1.5 a b
1) 1) "a"
   2) (empty array)
2) 1) "d"
   2) (empty array)
resp3:
1) 1) "a"
   2) (empty set)
2) 1) "d"
   2) (empty set)
> COMMAND GETKEYSANDFLAGS LMPOP +2 a b LEFT
1) 1) "a"
   2) (empty array)
2) 1) "b"
   2) (empty array)
resp3:
1) 1) "a"
   2) (empty set)
2) 1) "b"
   2) (empty set)
> COMMAND GETKEYS ZUNIONSTORE d 2 a b WEIGHTS 1 2
1) "d"
2) "a"
3) "b"
> COMMAND GETKEYS ZUNION 2 a b
1) "a"
2) "b"
> COMMAND GETKEYS ZINTERCARD 2 a b LIMIT 1
1) "a"
2) "b"
> COMMAND GETKEYS ZMPOP 1 a MIN
1) "a"
> COMMAND GETKEYS SINTERCARD 2 a b
1) "a"
2) "b"
> COMMAND GETKEYS SORT l BY w_* GET o_* STORE d
1) "l"
2) "d"
> COMMAND GETKEYS SORT l
1) "l"
> COMMAND GETKEYS SORT l STORE d STORE e
1) "l"
2) "e"
> COMMAND GETKEYS SORT_RO l BY w_*
1) "l"
> COMMAND GETKEYS GEORADIUS g 1 1 1 km STORE d
1) "g"
2) "d"
> COMMAND GETKEYS GEORADIUS g 1 1 1 km STORE store ASC
1) "g"
2) "store"
> COMMAND GETKEYS GEORADIUS g 1 1 1 km
1) "g"
> COMMAND GETKEYS GEORADIUSBYMEMBER g m 1 km STOREDIST d
1) "g"
2) "d"
> COMMAND GETKEYS GEOSEARCHSTORE d g FROMLONLAT 1 1 BYRADIUS 1 km
1) "d"
2) "g"
> COMMAND GETKEYS BITOP AND d a b
1) "d"
2) "a"
3) "b"
> COMMAND GETKEYS PFMERGE d a b
1) "d"
2) "a"
3) "b"
> COMMAND GETKEYS PFCOUNT a b
1) "a"
2) "b"
> COMMAND GETKEYS COPY a b DB 1
1) "a"
2) "b"
> COMMAND GETKEYS OBJECT ENCODING k
1) "k"
> COMMAND GETKEYS MEMORY USAGE k
1) "k"
> COMMAND GETKEYS WATCH a b
1) "a"
2) "b"
> COMMAND GETKEYS SSUBSCRIBE a
(error) ERR The command has no key arguments
> COMMAND GETKEYS LCS a b
1) "a"
2) "b"
> COMMAND GETKEYS PING
(error) ERR The command has no key arguments
> COMMAND GETKEYS nosuch a
(error) ERR Invalid command specified
> COMMAND GETKEYS GET
(error) ERR Invalid number of arguments specified for command
> COMMAND GETKEYS SUBSCRIBE a
(error) ERR The command has no key arguments
> COMMAND GETKEYS ZUNION 5 a b
(error) ERR Invalid arguments specified for command
> COMMAND GETKEYS ZUNION x a b
(error) ERR Invalid arguments specified for command
> COMMAND GETKEYS ZUNION 2x a b
1) "a"
2) "b"
> COMMAND GETKEYS EVAL "return 1" 1e3 a b
1) "a"
> COMMAND GETKEYS EVAL "return 1" x a
(empty array)
> COMMAND GETKEYS EVAL "return 1" -1e3 a
(empty array)
> COMMAND GETKEYS EVAL "return 1" 99999999999999999999 a
(empty array)
> COMMAND GETKEYS
(error) ERR wrong number of arguments for 'command|getkeys' command
> COMMAND GETKEYSANDFLAGS GET k
1) 1) "k"
   2) 1) RO
      2) access
resp3:
1) 1) "k"
   2) 1~ RO
      2~ access
> COMMAND GETKEYSANDFLAGS SET k v
1) 1) "k"
   2) 1) OW
      2) update
resp3:
1) 1) "k"
   2) 1~ OW
      2~ update
> COMMAND GETKEYSANDFLAGS BITFIELD b GET u8 0 OVERFLOW SAT GET u8 1
1) 1) "b"
   2) 1) RO
      2) access
resp3:
1) 1) "b"
   2) 1~ RO
      2~ access
> COMMAND GETKEYSANDFLAGS BITFIELD b GET u8 0 GET
1) 1) "b"
   2) 1) RW
      2) access
      3) update
resp3:
1) 1) "b"
   2) 1~ RW
      2~ access
      3~ update
> COMMAND GETKEYSANDFLAGS BITFIELD b GET set incrby
1) 1) "b"
   2) 1) RO
      2) access
resp3:
1) 1) "b"
   2) 1~ RO
      2~ access
> COMMAND GETKEYSANDFLAGS LMOVE a b LEFT LEFT
1) 1) "a"
   2) 1) RW
      2) access
      3) delete
2) 1) "b"
   2) 1) RW
      2) insert
resp3:
1) 1) "a"
   2) 1~ RW
      2~ access
      3~ delete
2) 1) "b"
   2) 1~ RW
      2~ insert
> COMMAND GETKEYSANDFLAGS ZUNIONSTORE d 2 a b
1) 1) "d"
   2) 1) OW
      2) update
2) 1) "a"
   2) 1) RO
      2) access
3) 1) "b"
   2) 1) RO
      2) access
resp3:
1) 1) "d"
   2) 1~ OW
      2~ update
2) 1) "a"
   2) 1~ RO
      2~ access
3) 1) "b"
   2) 1~ RO
      2~ access
> COMMAND GETKEYSANDFLAGS SORT l STORE d
1) 1) "l"
   2) 1) RO
      2) access
2) 1) "d"
   2) 1) OW
      2) update
resp3:
1) 1) "l"
   2) 1~ RO
      2~ access
2) 1) "d"
   2) 1~ OW
      2~ update

== SLOWLOG
config set slowlog-log-slower-than -1
> SLOWLOG RESET
OK
> SLOWLOG LEN
(integer) 0
> SLOWLOG GET
(empty array)
> CONFIG SET slowlog-log-slower-than 0
OK
> CLIENT SETNAME me
OK
> SLOWLOG RESET
OK
> PING hello
"hello"
> [count] SLOWLOG GET
(integer) 2
> SLOWLOG GET 2
~ 1\) 1\) \(integer\) \d+
~    2\) \(integer\) \d{10}
~    3\) \(integer\) \d+
~    4\) 1\) "SLOWLOG"
~       2\) "GET"
~    5\) "127\.0\.0\.1:\d+"
~    6\) "me"
~ 2\) 1\) \(integer\) \d+
~    2\) \(integer\) \d{10}
~    3\) \(integer\) \d+
~    4\) 1\) "PING"
~       2\) "hello"
~    5\) "127\.0\.0\.1:\d+"
~    6\) "me"
> SLOWLOG LEN
~ \(integer\) [1-9]
> [count] SLOWLOG GET -1
~ \(integer\) [1-9]
> SLOWLOG GET 0
(empty array)
> SLOWLOG GET -2
(error) ERR count should be greater than or equal to -1
> SLOWLOG GET abc
(error) ERR count should be greater than or equal to -1
> SLOWLOG GET 1 2
(error) ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.
> SLOWLOG foo
(error) ERR unknown subcommand 'foo'. Try SLOWLOG HELP.
> SLOWLOG
(error) ERR wrong number of arguments for 'slowlog' command
> SLOWLOG LEN x
(error) ERR wrong number of arguments for 'slowlog|len' command
> SLOWLOG RESET
OK
> CONFIG SET slowlog-log-slower-than -1
OK
> SLOWLOG HELP
~  *1\) .+
...

== SLOWLOG shortens long commands and its own length
config set slowlog-log-slower-than 0
config set slowlog-max-len 2
> SET k $times(200,x)
OK
> SLOWLOG GET 1
...
~ .*"SET"
~ .*"k"
~ .*"x{128}\.\.\. \(72 more bytes\)"
...
> RPUSH l $each(1..50,%)
(integer) 50
> SLOWLOG GET 1
...
~ .* 1\) "RPUSH"
...
~ .*31\) "29"
~ .*32\) "\.\.\. \(21 more arguments\)"
...
> PING
PONG
> PING
PONG
> PING
PONG
> SLOWLOG LEN
(integer) 2

== LATENCY
> LATENCY RESET
(integer) 0
> LATENCY LATEST
(empty array)
> LATENCY HISTORY command
(empty array)
> CONFIG SET latency-monitor-threshold 1
OK
> DEBUG SLEEP 0.005
OK
> LATENCY LATEST
~ 1\) 1\) "command"
~    2\) \(integer\) \d{10}
~    3\) \(integer\) \d+
~    4\) \(integer\) \d+
> LATENCY HISTORY command
~ 1\) 1\) \(integer\) \d{10}
~    2\) \(integer\) \d+
> LATENCY GRAPH command
~ (\(verbatim txt\) )?"command - high \d+ ms, low \d+ ms.*"
> LATENCY GRAPH nosuch
(error) ERR No samples available for event 'nosuch'
> LATENCY DOCTOR
~ (\(verbatim txt\) )?".+"
> LATENCY RESET nosuch
(integer) 0
> LATENCY RESET command
(integer) 1
> LATENCY LATEST
(empty array)
> LATENCY HISTORY
(error) ERR wrong number of arguments for 'latency|history' command
> LATENCY foo
(error) ERR unknown subcommand 'foo'. Try LATENCY HELP.
> LATENCY
(error) ERR wrong number of arguments for 'latency' command
> LATENCY HELP
~  *1\) .+
...

== LATENCY HISTOGRAM
> CONFIG RESETSTAT
OK
> SET k v
OK
> SET k v
OK
> LATENCY HISTOGRAM set
...
~ .*"calls"( =>)?.*
...
> LATENCY HISTOGRAM nosuch
(empty array)
resp3:
(empty hash)
> [keys] LATENCY HISTOGRAM set
1) "set"
> LATENCY HISTOGRAM get
(empty array)
resp3:
(empty hash)

== MEMORY
> MEMORY USAGE nokey
(nil)
> SET k v
OK
> MEMORY USAGE k
~ \(integer\) [1-9]\d+
> RPUSH l $each(1..1000,%)
(integer) 1000
> MEMORY USAGE l SAMPLES 0
~ \(integer\) [1-9]\d+
> MEMORY USAGE l SAMPLES 5
~ \(integer\) [1-9]\d+
> MEMORY USAGE l SAMPLES -1
(error) ERR syntax error
> MEMORY USAGE l SAMPLES x
(error) ERR value is not an integer or out of range
> MEMORY USAGE l SAMPLES
(error) ERR syntax error
> MEMORY USAGE l foo
(error) ERR syntax error
> MEMORY USAGE
(error) ERR wrong number of arguments for 'memory|usage' command
> MEMORY USAGE k l
(error) ERR syntax error
> MEMORY PURGE
OK
> MEMORY DOCTOR
~ (\(verbatim txt\) )?".+"
> [length] MEMORY MALLOC-STATS
~ \(integer\) \d+
> [keys] MEMORY STATS
...
~ .*"total.allocated"
...
~ .*"keys.count"
...
> MEMORY foo
(error) ERR unknown subcommand 'foo'. Try MEMORY HELP.
> MEMORY
(error) ERR wrong number of arguments for 'memory' command
> MEMORY HELP
~  *1\) .+
...

== DEBUG OBJECT
> SET k 5
OK
> DEBUG OBJECT k
~ Value at:0x[0-9a-f]+ refcount:\d+ encoding:int serializedlength:2 lru:\d+ lru_seconds_idle:\d+
> RPUSH l a b
(integer) 2
> DEBUG OBJECT l
~ Value at:0x[0-9a-f]+ refcount:1 encoding:listpack serializedlength:\d+ lru:\d+ lru_seconds_idle:\d+
> DEBUG OBJECT nokey
(error) ERR no such key
> DEBUG OBJECT
(error) ERR unknown subcommand or wrong number of arguments for 'OBJECT'. Try DEBUG HELP.

== DEBUG DIGEST is the same for the same data
> DEBUG DIGEST
0000000000000000000000000000000000000000
> SET k v
OK
> DEBUG DIGEST
264ccf65edec66bccfa7cc659414ccca432057d2
> SADD s a b c
(integer) 3
> HSET h f v g w
(integer) 2
> ZADD z 1 a 2.5 b
(integer) 2
> RPUSH l 1 2 3
(integer) 3
> DEBUG DIGEST
00551f7ee9c852f9e860c5b164091d3bbc3044f7
> DEBUG DIGEST-VALUE k s h z l nokey
1) d79ee9fe5d5ad902d7f6620efc3b07b75ddd742f
2) 593c2414786d75446e97f4ea5d4b731f3313da72
3) d127864ed50239662bf61bafc9bda63c17da5b37
4) c45c5b051acd64070e5ed1a949939d5145f806c5
5) 4ee6e075f07dc1413244a0d85654cd725e5ce13d
6) 0000000000000000000000000000000000000000
> EXPIRE k 1000
(integer) 1
> DEBUG DIGEST-VALUE k
1) 311b17018163335616e089f6b951c82c477335ac
> PERSIST k
(integer) 1
> SET n 12345
OK
> DEBUG DIGEST-VALUE n
1) e1cf90774e995ae03de66e8109dc5cb9d9c2dc83
> SELECT 1
OK
> SET k v
OK
> DEBUG DIGEST
fbd3c4151dce30eaa4575396f7f56632bf2a2178
> DEBUG DIGEST-VALUE
(empty array)
> RPUSH m b a
(integer) 2
> RPUSH o a b
(integer) 2
> DEBUG DIGEST-VALUE m o
1) 332bd4d2165f2dd7611ec5bfb352131693765663
2) 62f55a532623cf6c3d81081db480b6fd8461eb3f

== DEBUG and its small tools
> DEBUG ERROR hello
(error) hello
> DEBUG ERROR "ERR with code"
(error) ERR with code
> DEBUG SLEEP 0
OK
> DEBUG LOG message
OK
> DEBUG QUICKLIST-PACKED-THRESHOLD 100b
OK
> RPUSH l $times(200,x)
(integer) 1
> DEBUG QUICKLIST-PACKED-THRESHOLD 0
OK
> DEBUG QUICKLIST-PACKED-THRESHOLD 5gb
(error) ERR argument must be a memory value bigger than 1 and smaller than 4gb
> DEBUG QUICKLIST-PACKED-THRESHOLD abc
(error) ERR argument must be a memory value bigger than 1 and smaller than 4gb
> HSET h f v
(integer) 1
> DEBUG LISTPACK h
Listpack structure printed on stdout
> DEBUG LISTPACK l
Listpack structure printed on stdout
> DEBUG LISTPACK nokey
(error) ERR no such key
> DEBUG HTSTATS 0
~ (\(verbatim txt\) )?"\[Dictionary HT\].*"
> DEBUG HTSTATS 99
(error) ERR Out of range database
> DEBUG HTSTATS-KEY h
(error) ERR The value stored at the specified key is not represented using an hash table
> DEBUG HTSTATS-KEY nokey
(error) ERR no such key
> DEBUG POPULATE 3
OK
> [unordered] KEYS key:*
1) "key:0"
2) "key:1"
3) "key:2"
> GET key:2
"value:2"
> DEBUG POPULATE 2 pre 10
OK
> GET pre:1
"value:1\x00\x00\x00"
> STRLEN pre:1
(integer) 10
> DEBUG POPULATE
(error) ERR unknown subcommand or wrong number of arguments for 'POPULATE'. Try DEBUG HELP.
> DEBUG nosuch
(error) ERR unknown subcommand or wrong number of arguments for 'nosuch'. Try DEBUG HELP.
> DEBUG
(error) ERR wrong number of arguments for 'debug' command
> DEBUG HELP
~  *1\) .+
...

== LOLWUT draws and says its version
> LOLWUT
~ (\(verbatim txt\) )?".+ver\. \d+\.\d+\.\d+(\\n)+"
> LOLWUT VERSION abc
(error) ERR value is not an integer or out of range

== ROLE of a server without replication
> ROLE
1) "master"
2) (integer) 0
3) (empty array)
> ROLE x
(error) ERR wrong number of arguments for 'role' command

== SLOWLOG heeds a threshold with the command that sets it
@server: --databases 4
> CONFIG SET slowlog-log-slower-than 0
OK
> SLOWLOG RESET
OK
> CONFIG SET slowlog-log-slower-than -1
OK
> SLOWLOG LEN
(integer) 1
> SLOWLOG RESET
OK
> CONFIG SET slowlog-log-slower-than 0
OK
> CONFIG SET slowlog-log-slower-than -1
OK
> SLOWLOG LEN
(integer) 1

== INFO counts no call of what does not exist
@server: --databases 4
> CONFIG RESETSTAT
OK
> OBJECT foo bar
(error) ERR unknown subcommand 'foo'. Try OBJECT HELP.
> [field=cmdstat_object] INFO commandstats
(nil)
> OBJECT
(error) ERR wrong number of arguments for 'object' command
> [field=cmdstat_object] INFO commandstats
"calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0"

== INFO counts those who watch, listen and wait
@server: --databases 4
> [field=watching_clients] INFO clients
"0"
2> WATCH a b
OK
3> WATCH a
OK
4> BLPOP k l k 0
(blocked)
5> BLPOP k 100
(blocked)
> [field=watching_clients] INFO clients
"2"
> [field=total_watched_keys] INFO clients
"2"
> [field=total_blocking_keys] INFO clients
"2"
> [field=clients_in_timeout_table] INFO clients
"1"
2> UNWATCH
OK
> [field=total_watched_keys] INFO clients
"1"
3> MULTI
OK
3> EXEC
(empty array)
> [field=total_watched_keys] INFO clients
"0"

== INFO counts wrong passwords
@server: --databases 4
> CONFIG RESETSTAT
OK
> AUTH default wrong
OK
> AUTH nobody wrong
(error) WRONGPASS invalid username-password pair or user is disabled.
> [field=acl_access_denied_auth] INFO stats
"1"

== MEMORY USAGE of a key that has expired
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> SET k v PX 1
OK
sleep 10
> MEMORY USAGE k
~ \(integer\) [1-9]\d*
> GET k
(nil)
> MEMORY USAGE k
(nil)
> DEBUG SET-ACTIVE-EXPIRE 1
OK

== COMMAND GETKEYS of nothing
> COMMAND GETKEYS PFMERGE a
(error) ERR Invalid arguments specified for command
> COMMAND GETKEYS ZUNIONSTORE d 0 a
(error) ERR Invalid arguments specified for command
> COMMAND GETKEYS DEL
(error) ERR Invalid number of arguments specified for command
> COMMAND GETKEYSANDFLAGS PING
(error) ERR The command has no key arguments
> COMMAND GETKEYS CLIENT
(error) ERR The command has no key arguments

== without a cluster, its commands say so
> READONLY
(error) ERR This instance has cluster support disabled
> READWRITE
(error) ERR This instance has cluster support disabled
> ASKING
(error) ERR This instance has cluster support disabled
> ASKING x
(error) ERR wrong number of arguments for 'asking' command
> CLUSTER
(error) ERR wrong number of arguments for 'cluster' command
> CLUSTER INFO
(error) ERR This instance has cluster support disabled
> CLUSTER nodes
(error) ERR This instance has cluster support disabled
> CLUSTER SLOTS
(error) ERR This instance has cluster support disabled
> CLUSTER SHARDS
(error) ERR This instance has cluster support disabled
> CLUSTER MYID
(error) ERR This instance has cluster support disabled
> CLUSTER KEYSLOT a
(error) ERR This instance has cluster support disabled
> CLUSTER HELP
(error) ERR This instance has cluster support disabled
> CLUSTER MEET a
(error) ERR wrong number of arguments for 'cluster|meet' command
> CLUSTER MEET a 1
(error) ERR This instance has cluster support disabled
> CLUSTER NOSUCH
(error) ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.
> MULTI
OK
> READONLY
QUEUED
> CLUSTER INFO
QUEUED
> EXEC
1) (error) ERR This instance has cluster support disabled
2) (error) ERR This instance has cluster support disabled

== WAIT counts no replicas
> WAIT 0 0
(integer) 0
> WAIT -1 0
(integer) 0
> WAIT 0 x
(error) ERR timeout is not an integer or out of range
> WAIT x 0
(error) ERR value is not an integer or out of range
> WAIT 0 -1
(error) ERR timeout is negative
> WAIT 0 9223372036854775807
(error) ERR timeout is out of range
> WAIT 1
(error) ERR wrong number of arguments for 'wait' command
> WAIT 1 1
(integer) 0
> MULTI
OK
> WAIT 1 0
QUEUED
> EXEC
1) (integer) 0
> EVAL "return redis.call('WAIT','1','0')" 0
(integer) 0
2> [keep=id] CLIENT ID
(kept)
2> WAIT 1 0
(blocked)
> CLIENT UNBLOCK $(id)
(integer) 1
2<
(integer) 0

== no module is loaded or unloaded
> MODULE
(error) ERR wrong number of arguments for 'module' command
> MODULE NOSUCH
(error) ERR unknown subcommand 'NOSUCH'. Try MODULE HELP.
> MODULE LOAD /x.so
(error) ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.
> MODULE LOADEX /x.so CONFIG a b ARGS c
(error) ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.
> MODULE UNLOAD x
(error) ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.
> MODULE UNLOAD
(error) ERR wrong number of arguments for 'module|unload' command
> EVAL "return redis.call('MODULE','LIST')" 0
(error) ERR This Redis command is not allowed from script script: 25a7e5d07638516cc84af7df44906eaac094f037, on @user_script:1.

== the names of errors are safe to show
> CONFIG RESETSTAT
OK
> EVAL "return redis.error_reply('a:b#c d')" 0
(error) a:b#c d
> EVAL "return redis.error_reply('NOSPACE')" 0
(error) ERR NOSPACE
> EVAL "return {err='onewordthatismuchlongerthanacodemaybe and more'}" 0
(error) onewordthatismuchlongerthanacodemaybe and more
> [field=errorstat_a_b_c] INFO errorstats
"count=1"
> [field=errorstat_ERR] INFO errorstats
"count=2"

== Writes need replicas if min-replicas-to-write says so
> CONFIG SET min-replicas-to-write 1
OK
> SET k v
(error) NOREPLICAS Not enough good replicas to write.
> EVAL "return redis.call('SET','k','y')" 0
(error) NOREPLICAS Not enough good replicas to write. script: 8aafe33a3280de03d71cf7b7bc5e77c6fb0c28ea, on @user_script:1.
> EVAL "#!lua flags=no-writes\nreturn 1" 0
(integer) 1
> MULTI
OK
> SET k v
(error) NOREPLICAS Not enough good replicas to write.
> EXEC
(error) EXECABORT Transaction discarded because of previous errors.
> GET k
(nil)
> [field=min_slaves_good_slaves] INFO replication
"0"
> CONFIG SET min-replicas-max-lag 0
OK
> SET k v
OK
> CONFIG SET min-replicas-max-lag 10 min-replicas-to-write 0
OK

== A replica introduces itself with options in pairs
> REPLCONF
OK
> REPLCONF listening-port
(error) ERR syntax error
> REPLCONF listening-port x
(error) ERR value is not an integer or out of range
> REPLCONF listening-port 6380 ip-address 10.0.0.1 capa eof capa unknown
OK
> REPLCONF capa psync2 foo 1
(error) ERR Unrecognized REPLCONF option: foo
> REPLCONF rdb-only 2
(error) ERR value is out of range, value must between 0 and 1
> REPLCONF rdb-filter-only nothing
(error) ERR Unsupported rdb-filter-only option: nothing
> PSYNC ?
(error) ERR wrong number of arguments for 'psync' command
> PSYNC ? x
(error) ERR value is not an integer or out of range
> PSYNC ? 1 FAILOVER
(error) ERR PSYNC FAILOVER can't be sent to a master.
> SYNC x
(error) ERR wrong number of arguments for 'sync' command
> MULTI
OK
> PSYNC ? -1
(error) ERR Command not allowed inside a transaction
> DISCARD
OK
