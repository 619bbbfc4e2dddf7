//! The text of `dunlin cli --help`.

/// What `dunlin cli --help` prints.
pub const USAGE: &str = "\
A command line for servers that speak the Redis protocol. Options are those of redis-cli.

Usage: dunlin cli [OPTIONS] [COMMAND ARGS...]

Without a command, commands are read from standard input; in a terminal with completion, hints and
a history. Type help there.

Server:
  -h HOST             the server's name or address (127.0.0.1)
  -p PORT             its port (6379)
  -s SOCKET           its Unix socket, instead of host and port
  -u URI              redis://user:password@host:port/database, or rediss://
  -a PASSWORD         the password, or --pass; better in the environment as REDISCLI_AUTH
  --user NAME         the user of the password
  --askpass           asks for the password
  --no-auth-warning   does not warn of a password in the command line
  -n DATABASE         the database (0)
  -t SECONDS          how long opening the connection may take
  -2, -3              RESP2 or RESP3
  -4, -6              addresses of this kind first
  -c                  follows the redirections of a cluster
  --tls               encrypts the connection; so does rediss://
  --cacert FILE       authorities that are believed, or --cacertdir; those of the public if none
  --cert FILE         the client's certificate, with --key FILE
  --sni NAME          the name that the server's certificate is for, if it is not the host's
  --insecure          does not look at the server's certificate
  --tls-ciphers, --tls-ciphersuites   what is offered, as OpenSSL names it

Commands:
  -r COUNT            runs the command this many times; below 0 without an end
  -i SECONDS          pauses between them, and between the steps of other modes
  -x                  the last argument comes from standard input
  -X TAG              the argument TAG comes from standard input
  --quoted-input      arguments in quotes are unquoted: '\"a\\x00b\"'
  -e                  the exit code is 1 if the command fails
  --eval FILE [KEY...] , [ARG...]   runs a Lua script
  --verbose           says what is connected, and what is sent to which node

Output (as in redis-cli, for people in a terminal and raw elsewhere):
  --raw, --no-raw     bytes as they are; numbered and quoted
  --csv               comma-separated values
  --json              JSON, with RESP3 unless -2; --quoted-json is ASCII alone
  -d TEXT, -D TEXT    separate elements, and replies, of raw output (a new line)
  --show-pushes yes|no   prints messages that answer no command (yes in a terminal)
  --no-color          no colours; nor with NO_COLOR in the environment
  --no-history        neither reads nor writes the history

Modes:
  --pipe              sends raw commands from standard input; --pipe-timeout SECONDS (30; 0: none)
  --scan              names of keys: --pattern GLOB, --quoted-pattern GLOB, --count N
  --bigkeys           the keys with the most elements, by type
  --memkeys           the keys that take the most memory; --memkeys-samples N
  --keystats          both, with distributions: --keystats-samples N, --cursor N, --top N (10)
  --hotkeys           the keys that are used most often, where maxmemory-policy is one of LFU
  --stat              a line of figures each second, or each -i SECONDS
  --latency           how long PING takes, with percentiles at the end
  --latency-history   the same, anew every 15 seconds, or every -i SECONDS
  --latency-dist      the same as a spectrum, each second
  --monitor [PATTERN...]   commands of all clients whose name, an argument, or whose client's address
                      fits one of the patterns, and none of the !PATTERNs
  --rdb FILE          all data as an RDB file, - for standard output; --functions-rdb FILE
  --replica           prints what the server sends to its replicas

Not part of it, unlike redis-cli: --cluster, --ldb, --intrinsic-latency, --lru-test.

Exit code: 0; 1 if the connection or a mode fails, for a wrong command line, and with -e if a command
fails.

  dunlin cli set greeting hello
  dunlin cli -x set picture < picture.png
  dunlin cli -r 10 -i 1 info stats | grep instantaneous_ops
  dunlin cli --scan --pattern 'user:*' | head
  dunlin cli --monitor 'user:*' '!ping'
";
