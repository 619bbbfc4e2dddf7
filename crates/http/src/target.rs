//! Addresses: path, query, and percent-encoding.

/// An address that cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// An address, split but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'t> {
    /// The path, which begins with a slash.
    pub path: &'t [u8],
    /// The part after the question mark.
    pub query: &'t [u8],
    /// The host and port of an address that names them, as a request to a proxy does.
    pub authority: Option<&'t [u8]>,
}

impl<'t> Target<'t> {
    /// Splits the address of a request.
    ///
    /// # Errors
    /// It neither begins with a slash nor names a host.
    pub fn split(text: &'t [u8]) -> Result<Target<'t>, Malformed> {
        let (authority, rest) = match text {
            [b'/', ..] => (None, text),
            _ => {
                let scheme = text.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case(b"http://"));
                let behind = &text[scheme.ok_or(Malformed)?.len()..];
                let end = memchr::memchr3(b'/', b'?', b'#', behind).unwrap_or(behind.len());
                (Some(&behind[..end]), &behind[end..])
            }
        };
        let end = memchr::memchr(b'?', rest).unwrap_or(rest.len());
        let (path, query) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
        let path = if path.is_empty() { b"/" } else { path };
        Ok(Target { path, query, authority })
    }

    /// The parameters of the query: names and values, not decoded.
    pub fn parameters(&self) -> impl Iterator<Item = (&'t [u8], &'t [u8])> + use<'t> {
        let parts = self.query.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
        parts.map(|part| match memchr::memchr(b'=', part) {
            Some(at) => (&part[..at], &part[at + 1..]),
            None => (part, &b""[..]),
        })
    }
}

/// The address of a request from its path on, without the host that it may name.
pub fn origin_form(text: &str) -> String {
    let named = Target::split(text.as_bytes()).ok().and_then(|target| target.authority);
    let at = named.map_or(0, |named| "http://".len() + named.len());
    match text.get(at..) {
        Some(rest) if rest.starts_with('/') => rest.to_owned(),
        rest => format!("/{}", rest.unwrap_or_default()),
    }
}

/// Whether decoding a part of a path would change it.
#[inline]
pub fn is_encoded(text: &[u8]) -> bool {
    memchr::memchr(b'%', text).is_some()
}

/// Whether decoding a part of a query would change it.
pub fn is_encoded_in_query(text: &[u8]) -> bool {
    memchr::memchr2(b'%', b'+', text).is_some()
}

/// Appends a part of a path, decoded.
///
/// # Errors
/// A percent sign is not followed by two hexadecimal digits.
pub fn decode(text: &[u8], into: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        into.extend_from_slice(&rest[..at]);
        let digits = rest.get(at + 1..at + 3).ok_or(Malformed)?;
        into.push(hex(digits[0])? << 4 | hex(digits[1])?);
        rest = &rest[at + 3..];
    }
    into.extend_from_slice(rest);
    Ok(())
}

/// Appends a part of a query, decoded: there a plus sign stands for a space.
///
/// # Errors
/// As [`decode`].
pub fn decode_query(text: &[u8], into: &mut Vec<u8>) -> Result<(), Malformed> {
    for (index, part) in text.split(|byte| *byte == b'+').enumerate() {
        if index > 0 {
            into.push(b' ');
        }
        decode(part, into)?;
    }
    Ok(())
}

fn hex(digit: u8) -> Result<u8, Malformed> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Result<String, Malformed> {
        let mut bytes = Vec::new();
        decode(text.as_bytes(), &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn addresses_are_split_before_they_are_decoded() {
        let target = Target::split(b"/v1/keys/a%3Fb?db=1&x&=y&z=a=b").unwrap();
        assert_eq!(target.path, b"/v1/keys/a%3Fb");
        let parameters: Vec<_> = target.parameters().collect();
        assert_eq!(parameters, [(&b"db"[..], &b"1"[..]), (b"x", b""), (b"", b"y"), (b"z", b"a=b")]);
        assert_eq!(target.authority, None);
    }

    #[test]
    fn an_address_may_name_its_host() {
        let target = Target::split(b"HTTP://host:80/a?b").unwrap();
        assert_eq!((target.authority, target.path), (Some(&b"host:80"[..]), &b"/a"[..]));
        assert_eq!(Target::split(b"http://host").unwrap().path, b"/");
        assert_eq!(Target::split(b"http://host?q").unwrap().query, b"q");
        assert_eq!(Target::split(b"host:80"), Err(Malformed));
        assert_eq!(Target::split(b""), Err(Malformed));
    }

    #[test]
    fn an_address_is_taken_from_its_path_on() {
        for (text, own) in [
            ("/v1/keys/a?b#c", "/v1/keys/a?b#c"),
            ("//evil/a", "//evil/a"),
            ("HTTP://127.0.0.1:1/v1/keys/%7Ba%7D?b", "/v1/keys/%7Ba%7D?b"),
            ("http://host?q", "/?q"),
            ("http://host", "/"),
            ("", "/"),
        ] {
            assert_eq!(origin_form(text), own, "{text}");
        }
    }

    #[test]
    fn every_percent_sign_needs_its_digits() {
        assert_eq!(decoded("a%20b%2Fc+d"), Ok("a b/c+d".into()));
        for broken in ["%", "a%2", "%zz", "%2g", "%%20"] {
            assert_eq!(decoded(broken), Err(Malformed), "{broken}");
        }
        let mut bytes = Vec::new();
        decode_query(b"a+b%2B", &mut bytes).unwrap();
        assert_eq!(bytes, b"a b+");
    }
}
