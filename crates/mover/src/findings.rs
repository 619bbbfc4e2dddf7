//! What a look finds.

/// Something that the user should know.
pub(crate) struct Finding {
    /// Nothing moves while it is so.
    pub(crate) prevents: bool,
    /// The old server's writes are held, and go on when the move begins.
    pub(crate) ends_pause: bool,
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn stop(text: impl Into<String>) -> Finding {
        Finding { prevents: true, ends_pause: false, text: text.into() }
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Findings(pub(crate) Vec<Finding>);

impl Findings {
    pub(crate) fn stop(&mut self, text: impl Into<String>) {
        self.0.push(Finding::stop(text));
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.0.push(Finding { prevents: false, ends_pause: false, text: text.into() });
    }

    /// A note that the old server's writes go on when the move begins.
    pub(crate) fn note_pause(&mut self, text: impl Into<String>) {
        self.0.push(Finding { prevents: false, ends_pause: true, text: text.into() });
    }
}
