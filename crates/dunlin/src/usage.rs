//! What the program can do, in words.

/// The commands, for hints after a typing error.
pub(crate) const COMMANDS: [&str; 14] = [
    "serve",
    "cli",
    "top",
    "check",
    "cluster",
    "move",
    "backup",
    "restore",
    "bench",
    "lab",
    "health",
    "container",
    "tls",
    "help",
];

/// What `dunlin --help` prints.
pub(crate) const USAGE: &str = "\
An in-memory data-structure server that speaks the Redis protocol and uses every core.

Usage: dunlin [serve] [CONFIG-FILE] [OPTIONS] [-]
       dunlin cli [OPTIONS] [COMMAND ARGS...]
       dunlin top [OPTIONS]
       dunlin check FILE | DIRECTORY [--fix] [--truncate-to-timestamp SECONDS]
       dunlin check CONFIG-FILE
       dunlin cluster dev | create | status | add | remove | forget | failover | move | abort |
                      rebalance | upgrade | rebuild
       dunlin move --from URL [--to URL] [OPTIONS]
       dunlin backup --from URL --to DIRECTORY|s3://BUCKET/PREFIX [OPTIONS]
       dunlin restore --from STORE --to DATA-DIRECTORY [--at TIME|POSITION]
       dunlin bench [OPTIONS] [COMMAND ARGS...]
       dunlin lab run EXPERIMENT... | list | show NAME | report | compare | agent | limit
       dunlin health [OPTIONS]
       dunlin container [redis-server] [CONFIG-FILE] [OPTIONS] [-]
       dunlin tls dev DIRECTORY [NAME...]
       dunlin --help | --version

Commands:
  serve    Runs a server; so does dunlin alone
  cli      Sends commands to a server, with redis-cli's options; a prompt where there are none
  top      Shows what a server does just now
  check    Shows what data files contain and where they are damaged, or what is wrong with a
           configuration file
  cluster  Makes a cluster, shows it and changes it
  move     Moves all data of a running Redis, Valkey or Dunlin to another one, without downtime
  backup   Takes all data of a running server, and the stream of writes behind it
  restore  Writes the data of a backup as it was at a time or a position
  bench    Measures one server, with redis-benchmark's options and more
  lab      Measures servers side by side, breaks them on purpose, and writes a report
  health   Asks a server whether it serves, for health checks
  container
           Runs a server as the entry point of an image
  tls dev  Makes certificates for trials: an authority, a server (for localhost and the names given),
           and a client

CONFIG-FILE and OPTIONS are those of redis-server: each directive of a configuration
file is an option as well, and - reads directives from standard input. `dunlin serve --help`
lists them all.

  dunlin                                  on 127.0.0.1:6379
  dunlin --port 7000
  dunlin serve /etc/dunlin.conf --port 7000
  echo 'maxmemory 128mb' | dunlin serve -
";
