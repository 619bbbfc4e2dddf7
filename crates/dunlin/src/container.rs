//! `dunlin container`: a server as the entry point of an image. It takes the arguments of
//! `redis-server` and the variables that charts set, listens for other machines, and asks for a
//! password.

use std::io::{self, Write};
use std::process::ExitCode;

use config::{DirectiveId, Origin, Provided};
use server::boot::{self, Start};

use crate::environment::Environment;

pub(crate) const USAGE: &str = "\
A server as the entry point of an image.

Usage: dunlin container [redis-server] [CONFIG-FILE] [OPTIONS] [-]
       dunlin container COMMAND [ARGS...]

It is `dunlin serve` with these differences: it listens at all addresses unless `bind` says otherwise; it
does not start without a password, users, or a word that there is none; and it reads variables with the
names that images of Redis and Valkey have for them, such as REDIS_PASSWORD, REDIS_PASSWORD_FILE,
REDIS_PORT, REDIS_TLS_ENABLED, REDIS_MASTER_HOST, REDIS_EXTRA_FLAGS and ALLOW_EMPTY_PASSWORD. They begin
with REDIS_, VALKEY_ or DUNLIN_. Options change what they say. A COMMAND is one of dunlin's.
";

/// Names of servers that a container may be told to run.
const SERVERS: [&[u8]; 4] = [b"redis-server", b"valkey-server", b"dunlin-server", b"dunlin"];

/// The arguments without the name of a server at their beginning.
pub(crate) fn without_server(mut arguments: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if arguments.first().is_some_and(|first| SERVERS.contains(&&first[..])) {
        arguments.remove(0);
    }
    arguments
}

/// Runs the server with these arguments.
pub(crate) fn run(program: Vec<u8>, arguments: Vec<Vec<u8>>) -> ExitCode {
    let environment = match Environment::read() {
        Ok(environment) => environment,
        Err(error) => {
            // If this fails, nobody can be told.
            let _ = writeln!(io::stderr(), "\n{error}");
            return ExitCode::FAILURE;
        }
    };
    // A file is the first argument. Flags come after it and before options, which win.
    let at = usize::from(arguments.first().is_some_and(|first| !first.starts_with(b"-")));
    let mut all = arguments;
    all.splice(at..at, environment.arguments);
    let bind = DirectiveId::find(b"bind").map(|directive| Provided {
        origin: Origin::Usual,
        directive,
        words: vec![b"*".to_vec(), b"-::*".to_vec()],
    });
    let start = Start {
        program,
        arguments: all,
        defaults: bind.into_iter().collect(),
        provided: environment.settings,
        is_public: true,
        watched: Some(environment.secret_files),
    };
    match boot::serve(start) {
        Ok(()) => ExitCode::SUCCESS,
        Err(boot::Failed) => ExitCode::FAILURE,
    }
}
