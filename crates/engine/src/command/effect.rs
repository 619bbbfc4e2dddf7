//! What is known of a command's effect without running it, for code that reads effects from a file
//! or from the journal.

use resp::args::Arguments;

/// How an effect is shown to followers of keys: what the words after its name mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeForm {
    /// Each key that it writes has changed in some way.
    Keys,
    /// A key and its new string, perhaps with options of SET.
    Set,
    /// Keys and their new strings in turn.
    SetEach,
    /// Keys that are gone.
    Delete,
    /// A key that is gone, and its new name.
    Rename,
    /// A key that is gone, and the database in which it is now.
    Move,
    /// A key, and the name of its copy, perhaps in another database: `DB`.
    Copy,
    /// The database has no keys any more.
    FlushDatabase,
    /// No database has keys any more.
    FlushAll,
    /// Two databases that have changed places.
    Swap,
}

/// Whether the effect of a command depends on when it runs, because it gives a key so long to live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Countdown {
    /// It does not.
    Never,
    /// It does.
    Always,
    /// It does with one of these words among its arguments, from this one on.
    With(usize, &'static [&'static str]),
    /// It does without this word among its arguments, from this one on.
    Without(usize, &'static str),
}

impl Countdown {
    /// Whether it does so with these arguments.
    pub fn is_in(self, argv: Arguments<'_>) -> bool {
        let has = |from, word: &str| {
            argv.skip(from).iter().any(|own| own.eq_ignore_ascii_case(word.as_bytes()))
        };
        match self {
            Countdown::Never => false,
            Countdown::Always => true,
            Countdown::With(from, words) => words.iter().any(|word| has(from, word)),
            Countdown::Without(from, word) => !has(from, word),
        }
    }
}
