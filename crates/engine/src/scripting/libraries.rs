//! Loading libraries of functions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits::LIBRARY_RELOAD_US;

use crate::command::error::CommandError;
use crate::engine::Engine;
use crate::script::functions::{Header, Identity, Library, Policy};
use crate::script::interpreter::Allowed;

impl Engine {
    /// Makes a library of its text and registers its functions, which may take this many
    /// microseconds.
    pub fn load_library(
        &self,
        source: &[u8],
        replaces: bool,
        time_us: u64,
    ) -> Result<Library, CommandError> {
        let header = Header::parse(source)?;
        if !replaces && self.scripts.functions.has(&header) {
            return Err(CommandError::quoting("ERR Library '", header.name(), "' already exists"));
        }
        let number = self.scripts.next_id.fetch_add(1, Relaxed);
        let identity = Arc::new(Identity { number });
        let allowed = Allowed { memory: self.config.load().lua_memory_limit, time_us };
        let interpreter = &self.scripts.interpreter;
        let functions = interpreter.load(&identity, header.code(source), allowed);
        let functions = functions.map_err(CommandError::line)?;
        if functions.is_empty() {
            return Err(CommandError::text("ERR No functions registered"));
        }
        Ok(header.library(identity, source, functions))
    }

    /// Adds a library from a file.
    ///
    /// # Errors
    /// Why it cannot be added.
    pub fn restore_library(&self, source: &[u8]) -> Result<(), CommandError> {
        let library = self.load_library(source, true, LIBRARY_RELOAD_US)?;
        self.scripts.functions.add(vec![library], Policy::Replace)
    }
}
