//! Loading libraries of functions.

use std::sync::atomic::Ordering::Relaxed;

use crate::engine::Engine;
use crate::handler::error::CommandError;
use crate::script::functions::{Header, Library, Policy};

impl Engine {
    /// Makes a library of its text and registers its functions.
    pub(crate) fn load_library(
        &self,
        source: &[u8],
        replaces: bool,
    ) -> Result<Library, CommandError> {
        let header = Header::parse(source)?;
        if !replaces && self.scripts.functions.has(&header) {
            return Err(CommandError::quoting("ERR Library '", header.name(), "' already exists"));
        }
        let id = self.scripts.next_id.fetch_add(1, Relaxed);
        let limit = self.config.load().lua_memory_limit;
        let interpreter = &self.scripts.interpreter;
        let functions = interpreter.load(id, header.code(source), limit);
        let functions = functions.map_err(CommandError::line)?;
        if functions.is_empty() {
            return Err(CommandError::text("ERR No functions registered"));
        }
        Ok(header.library(id, source, functions))
    }

    /// Adds a library from a file.
    ///
    /// # Errors
    /// Why it cannot be added.
    pub fn restore_library(&self, source: &[u8]) -> Result<(), CommandError> {
        let library = self.load_library(source, true)?;
        self.scripts.functions.add(vec![library], Policy::Replace)
    }
}
