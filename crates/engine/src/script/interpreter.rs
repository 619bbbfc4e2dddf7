//! What the engine asks of an interpreter of scripts.

use std::sync::Arc;

use resp::args::Arguments;
use resp::reply::Reply;

use crate::command::error::CommandError;
use crate::host::LogLevel;
use crate::script::cache::Script;
use crate::script::functions::{Function, Identity, Library};
use crate::script::slow::Kind;

/// The arguments of a script.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The arguments of its command from the first key on.
    pub argv: Arguments<'a>,
    /// How many of them are keys.
    pub keys: usize,
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It has returned, and the reply is written.
    Returned,
    /// An error ended it. Says whether a command that it called has counted the error already.
    Failed {
        /// The line of the reply, its code included.
        line: Vec<u8>,
        /// A command that it called has counted the error.
        counted: bool,
    },
    /// It is to begin again: see [`Running::must_end`].
    Again,
}

/// The outcome of a command that a script called.
#[derive(Debug)]
pub enum Called {
    /// It ran: [`Running::reply`].
    Replied,
    /// It was refused.
    Refused(CommandError),
    /// The script is to end: see [`Running::must_end`].
    Ended,
}

/// Why a script has to end, even if it catches errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// A slot was locked: it begins again later, as if it had never run.
    Again,
    /// SCRIPT KILL or FUNCTION KILL.
    Killed,
    /// The server stops.
    Stopped,
}

/// A script that runs, as its interpreter sees it.
pub trait Running {
    /// Calls a command; its reply is of RESP3 if that is wanted.
    fn call(&mut self, argv: Arguments<'_>, resp3: bool) -> Called;

    /// The reply of the last called command, in the form that is sent.
    fn reply(&mut self) -> &[u8];

    /// Looks at the clock, from time to time while the script computes. Returns whether it may go
    /// on.
    fn may_go_on(&mut self) -> bool;

    /// Why the script has to end. The interpreter makes sure that it ends, whatever the script
    /// does.
    fn must_end(&self) -> Option<Ending>;

    /// Which command it runs for.
    fn kind(&self) -> Kind;

    /// Its name, as errors show it.
    fn name(&self) -> &[u8];

    /// Bytes that the state of a thread may take; 0 without bound.
    fn memory_limit(&self) -> usize;

    /// `redis.set_repl`: whether the effects of its commands go into the journal from now on.
    fn set_journals(&mut self, journals: bool);

    /// Writes a line to the log.
    fn log(&self, level: LogLevel, line: &str);

    /// `redis.acl_check_cmd`: whether the user may run a command, or what is wrong with it, as the
    /// line of an error.
    fn check_command(&self, argv: Arguments<'_>) -> Result<bool, &'static str>;

    /// The reply of the script is an error, or contains one.
    fn note_error_reply(&mut self);

    /// Counts an error that does not reach a client as a reply of its own.
    fn count_error(&mut self, error: &CommandError);
}

/// What the loading of a library may take.
#[derive(Clone, Copy)]
pub struct Allowed {
    /// Bytes of the thread's state; 0 means no limit.
    pub memory: usize,
    /// Microseconds.
    pub time_us: u64,
}

/// Runs scripts. Each calling thread has a state of its own, so that scripts run in parallel.
pub trait Interpreter: Send + Sync {
    /// Compiles a script on this thread, whose state may take this much `memory` (0 means no
    /// limit).
    ///
    /// # Errors
    /// Why it is not a script, in the words of the language.
    fn compile(&self, script: &Script, memory: usize) -> Result<(), Vec<u8>>;

    /// Makes all threads forget the scripts that they have compiled.
    fn forget_scripts(&self);

    /// Makes all threads forget the libraries whose [`Identity`] nobody has any more.
    fn forget_libraries(&self);

    /// Runs a script on this thread; compiles it first if that is still to be done.
    fn eval(
        &self,
        run: &mut dyn Running,
        script: &Script,
        call: Call<'_>,
        reply: &mut Reply<'_>,
    ) -> End;

    /// Loads a library on this thread. Returns its functions.
    ///
    /// # Errors
    /// The line of the reply.
    fn load(
        &self,
        identity: &Arc<Identity>,
        code: &[u8],
        allowed: Allowed,
    ) -> Result<Vec<Function>, Vec<u8>>;

    /// Calls a function on this thread; loads its library first if that is still to be done.
    fn call(
        &self,
        run: &mut dyn Running,
        library: &Library,
        function: &Function,
        call: Call<'_>,
        reply: &mut Reply<'_>,
    ) -> End;

    /// Bytes that the states of all threads take.
    fn memory(&self) -> usize;

    /// States.
    fn states(&self) -> usize;
}

/// Stands in where no interpreter is needed: in tests of everything else.
pub(crate) struct NoInterpreter;

impl Interpreter for NoInterpreter {
    fn compile(&self, _: &Script, _: usize) -> Result<(), Vec<u8>> {
        Err(b"no interpreter".to_vec())
    }

    fn forget_scripts(&self) {}

    fn forget_libraries(&self) {}

    fn eval(&self, _: &mut dyn Running, _: &Script, _: Call<'_>, _: &mut Reply<'_>) -> End {
        End::Failed { line: b"ERR no interpreter".to_vec(), counted: false }
    }

    fn load(&self, _: &Arc<Identity>, _: &[u8], _: Allowed) -> Result<Vec<Function>, Vec<u8>> {
        Err(b"ERR no interpreter".to_vec())
    }

    fn call(
        &self,
        _: &mut dyn Running,
        _: &Library,
        _: &Function,
        _: Call<'_>,
        _: &mut Reply<'_>,
    ) -> End {
        End::Failed { line: b"ERR no interpreter".to_vec(), counted: false }
    }

    fn memory(&self) -> usize {
        0
    }

    fn states(&self) -> usize {
        0
    }
}
