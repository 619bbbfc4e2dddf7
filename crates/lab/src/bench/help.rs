//! The text of `dunlin bench --help`.

/// The options.
pub(super) const USAGE: &str = "\
Measures a server that speaks the Redis protocol, or an HTTP server.

Usage: dunlin bench [OPTIONS] [COMMAND ARGS...]

Options of redis-benchmark:
  -h HOST              the server's name or address (127.0.0.1)
  -p PORT              its port (6379)
  -s SOCKET            its Unix socket, instead of host and port
  -a PASSWORD          the password; --user NAME names the user
  -u URI               redis://user:password@host:port/database, or rediss://
  --dbnum N            the database (0)
  -3                   RESP3
  --enable-tracking    sends CLIENT TRACKING on first
  --cluster            each request goes to the node of a cluster that has its key: the first word
                       with a placeholder, or else the first after the command's name
  -c CLIENTS           connections at the same time (50)
  -n REQUESTS          requests in all (100000)
  -d BYTES             size of values (3)
  -r COUNT             random keys: __rand_int__ is a number below COUNT, of 12 digits
  -P COUNT             requests that a connection sends before it waits (1)
  -k 0|1               0: a new connection for each request (1)
  -t TESTS             these tests only, with commas: set,get,lrange_100; with --tls also
                       tls_connect and tls_resume, which open a connection for each request
  --threads N          threads that send (1)
  -q                   one line per test
  --csv                a table with commas
  --precision N        digits after the point of latencies (3)
  -l                   again and again, until Ctrl-C
  -I                   opens idle connections and waits
  -x                   the last argument of COMMAND comes from standard input
  --seed N             repeats the random choices (1)
  --tls                encrypts connections; so do rediss:// and https://
  --cacert FILE        authorities that are believed, or --cacertdir; those of the public if none
  --cert FILE          the client's certificate, with --key FILE
  --sni NAME           the name that the server's certificate is for, if it is not the host's
  --insecure           does not look at the server's certificate
  --tls-ciphers, --tls-ciphersuites   what is offered, as OpenSSL names it

Load:
  --rate N             open loop: N requests a second are due, and latency counts from then,
                       whether or not a connection was free
  --schedule S         poisson (independent users) or constant
  --duration T         ends after this time (10, 2.5s, 100ms, 5m), instead of -n or as well
  --warmup T           load before the measurement, which is not counted
  --think T            pause between a reply and the next request, without --rate
  --mix LIST           operations with weights: get:80,set:20 or 'HGETALL u:__rand_int__:5,get:95'
  --keys K             uniform:COUNT, zipf:COUNT:EXPONENT, hot:COUNT:HOT:SHARE, sequential:COUNT
  --size LIST          sizes with weights: 100:99,2mb:1; in a command, __data__ is a value
  --ttl T              keys written by SET expire after this time
  --reconnect          opens lost connections again, and counts their lost requests as errors
  --agents LIST        sends from these agents (host:port, see dunlin lab agent) together;
  --token-file FILE    their secret; without it, from DUNLIN_LAB_TOKEN

HTTP/1.1:
  --http URL...        pages of one server, each equally often; http:// or https://
  --method M           GET; POST with --body
  --body TEXT          __rand_int__, __key__ and __data__ are filled in, as in paths and headers
  --header 'N: V'      may be given more than once

Files:
  --json FILE          all results, as of dunlin lab: for dunlin lab report and compare
  --hlog FILE          the histograms of every second, for other tools

Exit code: 0; 1 if a load could not begin or the server answered with errors, or an open loop was
INVALID: the generator, and not the server, was the limit; 2 for a wrong command line; 130 after
Ctrl-C, which prints what was measured so far.

  dunlin bench -t set,get -n 1000000 -r 100000 -P 16 --threads 2
  dunlin bench --rate 20000 --duration 30 --mix get:80,set:20 --keys zipf:1000000:0.99
  dunlin bench -r 10000 lpush mylist __rand_int__
  dunlin bench --http http://127.0.0.1:8080/v1/keys/__key__ -r 1000 --rate 5000 --duration 10
";
