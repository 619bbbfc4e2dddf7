//! The common parts of SCAN, HSCAN, SSCAN and ZSCAN: the cursor, the options, the form of the
//! reply.
//!
//! A cursor is a position in the order of reversed hash bits, which stays valid while tables grow
//! and shrink: every element that is there from the beginning of a scan to its end is shown at
//! least once.

use resp::output::Output;
use resp::reply::Reply;

use crate::command::args::Args;
use crate::command::error::CommandError;

/// Elements that one call looks at without COUNT.
const DEFAULT_COUNT: usize = 10;
/// Positions of a collection that one call visits for each wanted element: a sparse table must not
/// make a call long.
const POSITIONS_PER_ELEMENT: usize = 10;

/// What is scanned, which decides which options exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scanned {
    /// Keys, by SCAN.
    Keys,
    /// Fields, by HSCAN.
    Hash,
    /// Members, by SSCAN.
    Set,
    /// Members with scores, by ZSCAN.
    Zset,
}

/// The options of a scan.
pub struct ScanOptions<'a> {
    /// The approximate number of elements to look at. At least 1.
    pub count: usize,
    /// Show only keys of this type, by the name that TYPE gives. Only the keyspace's SCAN has it.
    pub type_name: Option<&'a [u8]>,
    /// Show names alone, without values (HSCAN) or scores (ZSCAN).
    pub names_only: bool,
    pattern: Option<&'a [u8]>,
}

/// Reads the next argument as a cursor, as the reference does: as an integer, which must not be
/// negative, else as leniently as C's `strtoull` with all that it lets precede the digits.
pub fn cursor(args: &mut Args<'_>) -> Result<u64, CommandError> {
    parse_cursor(args.bytes()?).ok_or(CommandError::INVALID_CURSOR)
}

fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if let Some(cursor) = base::num::parse_i64(text) {
        return u64::try_from(cursor).ok();
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let number = &text[text.iter().take_while(|byte| is_space(byte)).count()..];
    let (negative, digits) = match number {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut cursor = 0u64;
    for digit in digits {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        cursor = cursor.checked_mul(10)?.checked_add(digit)?;
    }
    Some(if negative { cursor.wrapping_neg() } else { cursor })
}

impl<'a> ScanOptions<'a> {
    /// Reads all remaining arguments: MATCH, COUNT, and options that only `scanned` has.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub fn parse(args: &mut Args<'a>, scanned: Scanned) -> Result<ScanOptions<'a>, CommandError> {
        let no_slot = |_: &mut Args<'a>| Err(CommandError::SYNTAX);
        Self::parse_with_slot(args, scanned, no_slot).map(|(_, options)| options)
    }

    /// The same with SLOT, whose value `slot` reads.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub fn parse_with_slot(
        args: &mut Args<'a>,
        scanned: Scanned,
        slot: impl Fn(&mut Args<'a>) -> Result<u16, CommandError>,
    ) -> Result<(Option<u16>, ScanOptions<'a>), CommandError> {
        let mut only = None;
        const HASHES_ONLY: CommandError =
            CommandError::text("ERR NOVALUES option can only be used in HSCAN");
        const ZSETS_ONLY: CommandError =
            CommandError::text("ERR NOSCORES option can only be used in ZSCAN");
        let mut options =
            ScanOptions { count: DEFAULT_COUNT, type_name: None, names_only: false, pattern: None };
        while !args.is_empty() {
            if args.len() >= 2 && args.word("count") {
                options.count = match args.i64()? {
                    count @ 1.. => count as usize,
                    _ => return Err(CommandError::SYNTAX),
                };
            } else if args.len() >= 2 && args.word("match") {
                let pattern = args.bytes()?;
                options.pattern = (pattern != b"*").then_some(pattern);
            } else if scanned == Scanned::Keys && args.len() >= 2 && args.word("type") {
                // Up to the first zero byte, where a text in C ends.
                options.type_name = args.bytes()?.split(|byte| *byte == 0).next();
            } else if args.word("novalues") {
                if scanned != Scanned::Hash {
                    return Err(HASHES_ONLY);
                }
                options.names_only = true;
            } else if args.word("noscores") {
                if scanned != Scanned::Zset {
                    return Err(ZSETS_ONLY);
                }
                options.names_only = true;
            } else if args.len() >= 2 && args.word("slot") {
                only = Some(slot(args)?);
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok((only, options))
    }

    /// Whether MATCH lets this name through.
    pub fn admits(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| base::glob::matches(pattern, name))
    }
}

/// The result of one step of a scan.
pub struct ScanStep {
    /// Elements looked at, shown or not.
    pub seen: usize,
    /// Replies written.
    pub written: usize,
    /// Where to go on; `None` at the end.
    pub next: Option<u32>,
}

/// Answers a scan of a collection: `step` writes the replies for the elements at one position.
pub fn reply_members(
    reply: &mut Reply<'_>,
    cursor: u64,
    count: usize,
    mut step: impl FnMut(u32, &mut Reply<'_>) -> ScanStep,
) {
    // Positions have 32 bits; a cursor beyond them was not given by this server and means nothing.
    let mut position = cursor as u32;
    let mut positions_left = count.saturating_mul(POSITIONS_PER_ELEMENT);
    let (mut seen, mut written) = (0, 0);
    reply_scan(reply, |reply| {
        loop {
            let step = step(position, reply);
            seen += step.seen;
            written += step.written;
            positions_left -= 1;
            let Some(next) = step.next else { return (0, written) };
            if seen >= count || positions_left == 0 {
                return (u64::from(next), written);
            }
            position = next;
        }
    });
}

/// Answers a scan: `scan` writes the elements and returns the next cursor, which precedes them in
/// the reply, and how many replies it wrote.
pub fn reply_scan(reply: &mut Reply<'_>, scan: impl FnOnce(&mut Reply<'_>) -> (u64, usize)) {
    let mut output = Output::new();
    let mut elements = Reply::new(&mut output, reply.is_resp3());
    let mark = elements.mark();
    let (cursor, count) = scan(&mut elements);
    elements.close_array(mark, count);
    let mut digits = Vec::with_capacity(20);
    base::num::write_u64(&mut digits, cursor);
    reply.array(2);
    reply.bulk(&digits);
    output.slices().for_each(|slice| reply.raw(slice));
}

#[cfg(test)]
mod tests {
    use super::parse_cursor;

    #[test]
    fn cursors_are_read_as_the_reference_reads_them() {
        assert_eq!(parse_cursor(b" 0"), Some(0));
        assert_eq!(parse_cursor(b"\t-1"), Some(u64::MAX));
        assert_eq!(parse_cursor(b"-0"), Some(0));
        assert_eq!(parse_cursor(b"8\0x"), Some(8));
        assert_eq!(parse_cursor(b"007"), Some(7));
        assert_eq!(parse_cursor(b"+5"), Some(5));
        assert_eq!(parse_cursor(b"18446744073709551615"), Some(u64::MAX));
        for wrong in [
            &b""[..],
            b"-1",
            b"\0",
            b"0 ",
            b"-",
            b"+",
            b"1.5",
            b"a",
            b"0x1",
            b"18446744073709551616",
        ] {
            assert_eq!(parse_cursor(wrong), None);
        }
    }
}
