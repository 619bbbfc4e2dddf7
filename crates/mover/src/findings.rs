//! What a look finds.

/// Something that the user should know.
pub(crate) struct Finding {
    /// Nothing moves while it is so.
    pub(crate) prevents: bool,
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn stop(text: impl Into<String>) -> Finding {
        Finding { prevents: true, text: text.into() }
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
        self.0.push(Finding { prevents: false, text: text.into() });
    }
}
