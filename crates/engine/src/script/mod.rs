//! Scripts: which are known, and what the engine asks of their interpreter.
//!
//! A script is a transaction whose commands come one by one. It runs inside the handler of its own
//! command, under the locks of the keys that it declared, and calls further commands through the
//! [`interpreter::Running`] that it receives (`scripting` says how). An [`Interpreter`], which is
//! given to the engine, understands the language: the engine itself does not know it.
//!
//! | file | what it answers |
//! |---|---|
//! | [`interpreter`] | what does the engine ask of an interpreter? |
//! | [`cache`] | which scripts are known, and by which names? |
//! | [`functions`] | which functions are there? |
//! | [`emptying`] | which scripts need the world stopped? |
//! | [`shebang`] | what does a script's first line say? |
//! | [`slow`] | which scripts have run for long, and how do they end? |

pub mod cache;
pub mod emptying;
pub mod functions;
pub mod interpreter;
pub mod shebang;
pub mod slow;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cache::Cache;
use functions::Functions;
use interpreter::{Interpreter, NoInterpreter};
use slow::SlowScripts;

/// What connections share of scripts.
pub struct Scripts {
    /// Runs them.
    pub interpreter: Arc<dyn Interpreter>,
    /// EVAL and SCRIPT LOAD.
    pub cache: Cache,
    /// FUNCTION.
    pub functions: Functions,
    /// The scripts that have run for long.
    pub slow: SlowScripts,
    /// Numbers of compiled texts.
    pub next_id: AtomicU64,
}

impl Default for Scripts {
    fn default() -> Scripts {
        Scripts {
            interpreter: Arc::new(NoInterpreter),
            cache: Cache::default(),
            functions: Functions::default(),
            slow: SlowScripts::default(),
            next_id: AtomicU64::new(1),
        }
    }
}
