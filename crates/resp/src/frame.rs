//! The bytes around a string and before a collection: a kind, a number and line ends.
//!
//! Nearly every reply has some, and a collection has them around each element. So the short forms
//! are written by a few stores, without converting a number and without a call.
#![allow(unsafe_code)]

/// Room for the bytes around a string: the header with its number, a format, and the line ends.
pub(crate) const FRAME: usize = 32;

/// Room for the longest header: a kind, 20 digits and the line end.
const HEADER: usize = 24;

/// Strings up to this length are short.
const SHORT: usize = 32;

/// Appends `$<length>\r\n<bytes>\r\n` if the string is short and there is room. Returns whether it
/// was appended. Calls no function, so it costs only its stores.
#[inline(always)]
pub(crate) fn write_short_bulk(buffer: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let length = bytes.len();
    if length > SHORT || buffer.capacity() - buffer.len() < SHORT + FRAME {
        return false;
    }
    // The header as a number whose lowest byte comes first.
    let (header, size) = if length < 10 {
        (u64::from_le_bytes(*b"$0\r\n\0\0\0\0") + ((length as u64) << 8), 4)
    } else {
        let digits = u64::from(u16::from_le_bytes(PAIRS[length]));
        (u64::from_le_bytes(*b"$\0\0\r\n\0\0\0") | (digits << 8), 5)
    };
    // SAFETY: behind the end of the buffer there is room for the string and `FRAME` bytes, which
    // are more than the eight of the number and the two of the line end. All bytes up to the new
    // length are written: the number first, then the string behind the part of it that counts.
    unsafe {
        let at = buffer.as_mut_ptr().add(buffer.len());
        at.cast::<[u8; 8]>().write(header.to_le_bytes());
        copy_short(bytes, at.add(size));
        at.add(size + length).cast::<[u8; 2]>().write(*b"\r\n");
        buffer.set_len(buffer.len() + size + length + 2);
    }
    true
}

/// Copies a string of at most [`SHORT`] bytes by its beginning and its end, which may overlap.
///
/// # Safety
/// There is room for it at `to`, which is no part of it.
#[inline(always)]
unsafe fn copy_short(bytes: &[u8], to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes.len() {
            0 => {}
            1 => to.write(bytes[0]),
            2..4 => copy_ends::<2>(bytes, to),
            4..8 => copy_ends::<4>(bytes, to),
            8..16 => copy_ends::<8>(bytes, to),
            _ => copy_ends::<16>(bytes, to),
        }
    }
}

/// Copies the first `N` and the last `N` bytes of a string that has as many.
///
/// # Safety
/// As [`copy_short`].
#[inline(always)]
unsafe fn copy_ends<const N: usize>(bytes: &[u8], to: *mut u8) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) {
        // SAFETY: the caller's promise; both lie within the string.
        unsafe {
            to.cast::<[u8; N]>().write(*first);
            to.add(bytes.len() - N).cast::<[u8; N]>().write(*last);
        }
    }
}

/// `<kind><count>\r\n`; the short ones, which are most, without any conversion of numbers.
#[inline]
pub fn write_header(buffer: &mut Vec<u8>, kind: u8, count: u64) {
    if count < 10 {
        buffer.extend_from_slice(&[kind, b'0' + count as u8, b'\r', b'\n']);
    } else if count < 100 {
        let (tens, ones) = (count as u8 / 10, count as u8 % 10);
        buffer.extend_from_slice(&[kind, b'0' + tens, b'0' + ones, b'\r', b'\n']);
    } else {
        write_long_header(buffer, kind, count);
    }
}

/// The kind, up to 20 digits and the line end, put together from the end and copied once.
fn write_long_header(buffer: &mut Vec<u8>, kind: u8, mut count: u64) {
    let mut line = [0; 2 * HEADER];
    let mut at = HEADER - 2;
    line[at..HEADER].copy_from_slice(b"\r\n");
    while count >= 10 {
        at -= 2;
        line[at..at + 2].copy_from_slice(&PAIRS[(count % 100) as usize]);
        count /= 100;
    }
    // What is left is one digit, or nothing behind an even number of them.
    if count > 0 {
        at -= 1;
        line[at] = b'0' + count as u8;
    }
    at -= 1;
    line[at] = kind;
    // A block whose length is known is copied without a call; what follows the line end is given
    // up.
    let end = buffer.len() + HEADER - at;
    buffer.extend_from_slice(&line[at..at + HEADER]);
    buffer.truncate(end);
}

/// The numbers below 100 in two digits.
static PAIRS: [[u8; 2]; 100] = pairs();

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_string_is_framed_where_there_is_room() {
        for length in 0..=SHORT + 1 {
            let text: Vec<u8> = (0..length).map(|at| at as u8).collect();
            for room in [0, SHORT + FRAME - 1, SHORT + FRAME, 1000] {
                let mut buffer = Vec::with_capacity(b"+before\r\n".len() + room);
                buffer.extend_from_slice(b"+before\r\n");
                let mut expected = buffer.clone();
                let has_room = buffer.capacity() - buffer.len() >= SHORT + FRAME;
                let written = write_short_bulk(&mut buffer, &text);
                assert_eq!(written, has_room && length <= SHORT, "{length} bytes, room for {room}");
                if written {
                    expected.extend_from_slice(format!("${length}\r\n").as_bytes());
                    expected.extend_from_slice(&text);
                    expected.extend_from_slice(b"\r\n");
                }
                assert_eq!(buffer, expected, "{length} bytes, room for {room}");
            }
        }
    }
}
