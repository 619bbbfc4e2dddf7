//! The experiments that are part of the program.

/// The experiments by name, in the order of the report.
pub const BUNDLED: &[(&str, &str)] = &[];

/// The text of the bundled experiment of this name.
pub fn text(name: &str) -> Option<&'static str> {
    BUNDLED.iter().find(|(bundled, _)| *bundled == name).map(|(_, text)| *text)
}
