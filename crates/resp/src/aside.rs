//! Commands of a stream or a file that only Dunlin knows.

/// The words before a command that only Dunlin knows. A Redis that loads the file tells nobody what
/// it knows of commands with these names, and is not stopped; Dunlin runs the command.
pub const ASIDE: [&[u8]; 2] = [b"COMMAND", b"INFO"];

/// How many words stand before the command itself, if it begins so: those of [`ASIDE`], or none. No
/// effect is a COMMAND INFO.
#[inline]
pub fn words_aside<'w>(mut word: impl FnMut(usize) -> Option<&'w [u8]>) -> usize {
    let stands = |(index, aside): (usize, &&[u8])| {
        word(index).is_some_and(|word| word.eq_ignore_ascii_case(aside))
    };
    if ASIDE.iter().enumerate().all(stands) { ASIDE.len() } else { 0 }
}
