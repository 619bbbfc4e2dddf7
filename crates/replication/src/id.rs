//! The name of a history of writes: 40 hexadecimal digits.

use std::fmt;

/// The digits of a name.
pub const DIGITS: usize = 40;

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HistoryId([u8; DIGITS]);

impl HistoryId {
    /// The name with these digits, if the number of digits is right and there is nothing else.
    pub fn parse(text: &[u8]) -> Option<HistoryId> {
        let digits: [u8; DIGITS] = text.try_into().ok()?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(HistoryId(digits))
    }

    /// The digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for HistoryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|digit| write!(formatter, "{}", char::from(*digit)))
    }
}

impl fmt::Debug for HistoryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
