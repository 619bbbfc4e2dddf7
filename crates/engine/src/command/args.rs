//! A cursor over the arguments of a command.
//!
//! Handlers read their arguments from left to right, completely, before they touch any data. Each
//! method takes one argument and says in its error what was wrong with it.

use std::sync::Arc;

use base::limits;
use base::num::{self, LongDouble};
use resp::args::Arguments;
use store::Key;

use crate::command::error::CommandError;

/// The longest timeout, in milliseconds: its end has to be a date of 63 bits, and the present one
/// has 41.
const LONGEST_TIMEOUT: i64 = i64::MAX - (1 << 41);

/// A key of the command, found and hashed before the command was locked.
#[derive(Clone, Copy, Debug)]
pub struct KeyAt {
    /// Which argument it is.
    pub index: u32,
    /// Its hash.
    pub hash: u64,
    /// Its slot.
    pub slot: u16,
}

/// An argument, and its own buffer if it was received in one.
pub type BigArgument<'a> = (&'a [u8], Option<Arc<Vec<u8>>>);

/// The arguments of one command, with the place of the next one.
#[derive(Clone)]
pub struct Args<'a> {
    argv: Arguments<'a>,
    keys: &'a [KeyAt],
    next: usize,
    /// Where the search for the next key in `keys` begins.
    next_key: usize,
}

impl<'a> Args<'a> {
    /// All arguments of a command, its name at 0; the cursor starts after the name.
    pub fn new(argv: Arguments<'a>, keys: &'a [KeyAt]) -> Args<'a> {
        Args { argv, keys, next: 1, next_key: 0 }
    }

    /// Moves the cursor past a subcommand's name.
    pub fn skip(&mut self, count: usize) {
        self.next += count;
    }

    /// Arguments that are left.
    pub fn len(&self) -> usize {
        self.argv.len().saturating_sub(self.next)
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The command as it came, its name included.
    pub fn argv(&self) -> Arguments<'a> {
        self.argv
    }

    /// The index of the next argument; the command's name has index 0.
    pub fn position(&self) -> usize {
        self.next
    }

    /// The next argument. A missing one is a syntax error: the arity covers the required ones.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], CommandError> {
        let argument = self.argv.get(self.next).ok_or(CommandError::SYNTAX)?;
        self.next += 1;
        Ok(argument)
    }

    /// The next argument, left where it is.
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.argv.get(self.next)
    }

    /// The next argument as a key.
    #[inline]
    pub fn key(&mut self) -> Result<Key<'a>, CommandError> {
        // Keys were hashed in the order of the arguments, so this is nearly always the right one.
        if let (Some(key), Some(bytes)) = (self.keys.get(self.next_key), self.argv.get(self.next))
            && key.index as usize == self.next
            && bytes.len() <= limits::MAX_KEY
        {
            self.next += 1;
            self.next_key += 1;
            return Ok(Key { bytes, hash: key.hash, slot: key.slot });
        }
        self.key_out_of_order()
    }

    #[cold]
    fn key_out_of_order(&mut self) -> Result<Key<'a>, CommandError> {
        let index = self.next;
        let bytes = self.bytes()?;
        if bytes.len() > limits::MAX_KEY {
            return Err(CommandError::KEY_TOO_LONG);
        }
        self.next_key += 1;
        Ok(match self.keys.iter().find(|key| key.index as usize == index) {
            Some(key) => Key { bytes, hash: key.hash, slot: key.slot },
            None => Key::new(bytes),
        })
    }

    /// The next argument, taken from the buffer that it was received in if it has one.
    pub fn big(&mut self) -> Result<BigArgument<'a>, CommandError> {
        let index = self.next;
        let bytes = self.bytes()?;
        Ok((bytes, self.argv.shared(index).map(Arc::clone)))
    }

    /// Takes the next argument if it is this word, in any case.
    #[inline]
    pub fn word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()));
        self.next += usize::from(found);
        found
    }

    /// The next argument as a 64-bit integer.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, CommandError> {
        num::parse_i64(self.bytes()?).ok_or(CommandError::NOT_AN_INTEGER)
    }

    /// The next argument as a whole number that is not below `least`; `error` for anything else.
    pub fn at_least(&mut self, least: i64, error: CommandError) -> Result<usize, CommandError> {
        let number = num::parse_i64(self.bytes()?).filter(|number| *number >= least);
        number.and_then(|number| usize::try_from(number).ok()).ok_or(error)
    }

    /// The next argument as an integer that can be negated: a count whose sign has a meaning.
    pub fn signed_count(&mut self) -> Result<i64, CommandError> {
        match self.i64()? {
            i64::MIN => Err(CommandError::NO_OPPOSITE),
            count => Ok(count),
        }
    }

    /// The next argument as the number of one of `databases` databases.
    pub fn database(&mut self, databases: usize) -> Result<usize, CommandError> {
        let index = i32::try_from(self.i64()?).map_err(|_| CommandError::NOT_32_BITS)?;
        let known = usize::try_from(index).ok().filter(|index| *index < databases);
        known.ok_or(CommandError::DB_OUT_OF_RANGE)
    }

    /// The next argument as a float.
    pub fn f64(&mut self) -> Result<f64, CommandError> {
        num::parse_f64(self.bytes()?).ok_or(CommandError::NOT_A_FLOAT)
    }

    /// The next argument as the timeout of a blocking command: seconds, possibly with a fraction,
    /// returned as milliseconds rounded up; `None` means for ever.
    pub fn timeout(&mut self) -> Result<Option<u64>, CommandError> {
        let seconds = LongDouble::parse(self.bytes()?).ok_or(CommandError::TIMEOUT_NOT_A_FLOAT)?;
        match seconds.thousandfold_ceiling() {
            None if seconds.is_negative() => Err(CommandError::TIMEOUT_NEGATIVE),
            Some(i64::MIN..0) => Err(CommandError::TIMEOUT_NEGATIVE),
            Some(0) => Ok(None),
            Some(milliseconds) if milliseconds <= LONGEST_TIMEOUT => {
                Ok(Some(milliseconds.unsigned_abs()))
            }
            _ => Err(CommandError::TIMEOUT_OUT_OF_RANGE),
        }
    }

    /// The next argument as the timeout of a blocking command in milliseconds; `None` means for
    /// ever.
    pub fn timeout_in_milliseconds(&mut self) -> Result<Option<u64>, CommandError> {
        match self.i64().map_err(|_| CommandError::TIMEOUT_NOT_AN_INTEGER)? {
            i64::MIN..0 => Err(CommandError::TIMEOUT_NEGATIVE),
            0 => Ok(None),
            milliseconds if milliseconds <= LONGEST_TIMEOUT => {
                Ok(Some(milliseconds.unsigned_abs()))
            }
            _ => Err(CommandError::TIMEOUT_OUT_OF_RANGE),
        }
    }

    /// All remaining arguments. Moves past them.
    pub fn rest(&mut self) -> Arguments<'a> {
        let rest = self.argv.skip(self.next);
        self.next = self.argv.len();
        rest
    }

    /// The next `count` arguments as keys.
    pub fn keys(&mut self, count: usize) -> Result<Vec<Key<'a>>, CommandError> {
        if count > self.len() {
            return Err(CommandError::SYNTAX);
        }
        (0..count).map(|_| self.key()).collect()
    }

    /// All that is left as keys.
    pub fn rest_as_keys(&mut self) -> Result<Vec<Key<'a>>, CommandError> {
        self.keys(self.len())
    }

    /// Refuses further arguments.
    pub fn end(&self) -> Result<(), CommandError> {
        if self.is_empty() { Ok(()) } else { Err(CommandError::SYNTAX) }
    }
}

#[cfg(test)]
mod tests {
    use resp::args::OwnedArguments;

    use super::*;

    #[test]
    fn keys_of_four_gigabytes_are_refused() {
        // Zeros that nothing reads take no memory.
        let mut argv = OwnedArguments::new();
        argv.push(b"DEL");
        argv.push(b"short");
        argv.push_shared(Arc::new(vec![0; limits::MAX_KEY + 1]));
        // As if they had been hashed.
        let keys = [1, 2].map(|index| KeyAt { index, hash: 0, slot: 0 });
        let mut args = Args::new(argv.view(), &keys);
        assert_eq!(args.clone().rest_as_keys().err(), Some(CommandError::KEY_TOO_LONG));
        assert_eq!(args.clone().keys(2).err(), Some(CommandError::KEY_TOO_LONG));
        assert_eq!(args.key().map(|key| key.bytes), Ok(&b"short"[..]));
        assert_eq!(args.key().err(), Some(CommandError::KEY_TOO_LONG));
    }
}
