//! What is asked of who understands the language of scripts.

use resp::args::Arguments;
use resp::reply::Reply;

use crate::script::cache::Script;
use crate::script::run::Run;

/// What a script is called with.
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
    /// An error ended it. Whether a command that it called has counted the error already.
    Failed {
        /// The line of the reply, its code included.
        line: Vec<u8>,
        /// A command that it called has counted it among the errors.
        counted: bool,
    },
    /// It is to begin again: see [`Run::must_end`].
    Again,
}

/// Runs scripts. Each thread that calls it has a state of its own, so that scripts run beside each
/// other.
pub trait Interpreter: Send + Sync {
    /// Compiles a script on this thread.
    ///
    /// # Errors
    /// Why it is none, in the words of the language.
    fn compile(&self, script: &Script) -> Result<(), Vec<u8>>;

    /// Lets all threads forget what they have compiled.
    fn forget(&self);

    /// Runs a script on this thread, compiling it where that is still to be done.
    fn eval(
        &self,
        run: &mut Run<'_, '_>,
        script: &Script,
        call: Call<'_>,
        reply: &mut Reply<'_>,
    ) -> End;

    /// Bytes that the states of all threads take.
    fn memory(&self) -> usize;

    /// States.
    fn states(&self) -> usize;
}

/// Stands in where nobody understands scripts: in tests of everything else.
pub(crate) struct NoInterpreter;

impl Interpreter for NoInterpreter {
    fn compile(&self, _: &Script) -> Result<(), Vec<u8>> {
        Err(b"no interpreter".to_vec())
    }

    fn forget(&self) {}

    fn eval(&self, _: &mut Run<'_, '_>, _: &Script, _: Call<'_>, _: &mut Reply<'_>) -> End {
        End::Failed { line: b"ERR no interpreter".to_vec(), counted: false }
    }

    fn memory(&self) -> usize {
        0
    }

    fn states(&self) -> usize {
        0
    }
}
