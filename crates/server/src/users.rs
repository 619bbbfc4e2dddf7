//! The users with whom a server starts: those of its configuration, or of a file.

use engine::engine::Engine;
use engine::host::UsersFile;
use engine::users::{BadUser, Users};

/// Sets the users of the settings.
///
/// # Errors
/// Why the server cannot start with them, as a line for its operator.
pub fn set(engine: &Engine, files: &dyn UsersFile) -> Result<(), String> {
    let config = engine.config.snapshot();
    if !config.aclfile.is_empty() && !config.users.is_empty() {
        return Err(
            "The configuration has lines of users and an aclfile. Declare the users in one \
                    of both places."
                .to_owned(),
        );
    }
    let all_channels = Users::gives_all_channels(&config);
    let configured = engine.users.configure(&config.users, all_channels);
    configured.map_err(|BadUser(reason)| format!("Bad user in the configuration: {reason}"))?;
    if config.aclfile.is_empty() {
        return Ok(());
    }
    let path = String::from_utf8_lossy(&config.aclfile);
    let text = files
        .read_users(&config.aclfile)
        .map_err(|reason| format!("Error loading ACLs, opening file '{path}': {reason}"))?;
    engine.load_users(&text, None).map_err(|error| String::from_utf8_lossy(&error).into_owned())
}
