//! The answers of etcd to a request that would change its members, as far as the request alone
//! decides.

use crate::syntax::parts;

/// Go's name for the type into which a body is read.
const BODY: &str = "value of type struct { PeerURLs []string \"json:\\\"peerURLs\\\"\" }";

/// The number that names a member.
#[must_use]
pub fn id(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    // In Go, a sign is not a digit.
    let is_number = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// Whether a body of this type is read.
#[must_use]
pub fn is_json(media: &[u8]) -> bool {
    media.split(|byte| *byte == b';').next().unwrap_or_default() == b"application/json"
}

/// Checks the body of a request that gives a member's addresses.
///
/// # Errors
/// The error of etcd.
pub fn check(body: &[u8]) -> Result<(), String> {
    let urls = urls(body)?;
    if urls.is_empty() {
        return Err("no valid URLs given".into());
    }
    urls.iter().try_for_each(|url| check_url(url.trim()))
}

/// The addresses in a body.
fn urls(body: &[u8]) -> Result<Vec<String>, String> {
    let parts = parts(body, 3)?;
    let kind = |text: &[u8]| match text.first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "bool",
        _ => "number",
    };
    let (mut urls, mut is_own, mut wrong) = (Vec::new(), false, None);
    for part in parts {
        let expected = match part.depth {
            0 if part.text == b"{" || part.text == b"null" => continue,
            0 => BODY,
            1 if part.is_name => {
                is_own = string(part.text).eq_ignore_ascii_case("peerURLs");
                continue;
            }
            _ if !is_own => continue,
            1 => {
                urls.clear();
                if part.text == b"[" || part.text == b"null" {
                    continue;
                }
                // The contents of an object do not count.
                is_own = false;
                "struct field .peerURLs of type []string"
            }
            _ if part.text.starts_with(b"\"") || part.text == b"null" => {
                urls.push(string(part.text));
                continue;
            }
            _ => "struct field .peerURLs of type string",
        };
        wrong.get_or_insert_with(|| {
            format!("json: cannot unmarshal {} into Go {expected}", kind(part.text))
        });
        if part.depth == 0 {
            break;
        }
    }
    wrong.map_or(Ok(urls), Err)
}

/// A string of a text that is known to be JSON; null gives none. Halves of characters become
/// replacement characters.
fn string(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let mut characters = inner.unwrap_or_default().chars();
    let (mut units, mut said) = (Vec::new(), String::new());
    let flush = |units: &mut Vec<u16>, said: &mut String| {
        said.push_str(&String::from_utf16_lossy(units));
        units.clear();
    };
    while let Some(character) = characters.next() {
        let escape = if character == '\\' { characters.next() } else { None };
        if escape == Some('u') {
            let digits: String = characters.by_ref().take(4).collect();
            units.push(u16::from_str_radix(&digits, 16).unwrap_or(0xfffd));
            continue;
        }
        flush(&mut units, &mut said);
        said.push(match escape {
            None => character,
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(other) => other,
        });
    }
    flush(&mut units, &mut said);
    said
}

fn check_url(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url)?;
    if !["http", "https", "unix", "unixs"].contains(&&*parsed.scheme) {
        return Err(format!("URL scheme must be http, https, unix, or unixs: {url}"));
    }
    if !has_port(&parsed.host) {
        return Err(format!("URL address does not have the form \"host:port\": {url}"));
    }
    if parsed.has_path {
        return Err(format!("URL must not contain a path: {url}"));
    }
    Ok(())
}

/// Whether it is a host and a port, which may both be empty.
fn has_port(host: &str) -> bool {
    let Some((before, _)) = host.rsplit_once(':') else { return false };
    match before.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').is_some_and(|inner| !inner.contains(['[', ']'])),
        None => !host.contains(['[', ']']) && !before.contains(':'),
    }
}

/// As much of an address as is examined.
struct Url {
    scheme: String,
    host: String,
    has_path: bool,
}

impl Url {
    /// Reads it as Go does.
    fn parse(whole: &str) -> Result<Url, String> {
        let (text, fragment) = whole.split_once('#').unwrap_or((whole, ""));
        let wrong = |url: &str, cause: String| format!("parse {}: {cause}", quoted(url));
        let url = Url::without_fragment(text).map_err(|cause| wrong(text, cause))?;
        check_escapes(fragment).map_err(|cause| wrong(whole, cause))?;
        Ok(url)
    }

    fn without_fragment(text: &str) -> Result<Url, String> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("net/url: invalid control character in URL".into());
        }
        let (scheme, rest) = split_scheme(text)?;
        let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
        let scheme = scheme.to_ascii_lowercase();
        let mut url = Url { scheme, host: String::new(), has_path: false };
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                return Ok(url);
            }
            let first = rest.split('/').next().unwrap_or_default();
            if first.contains(':') {
                return Err("first path segment in URL cannot contain colon".into());
            }
        }
        let mut path = rest;
        let is_absolute = !url.scheme.is_empty() || !rest.starts_with("///");
        if let Some(behind) = rest.strip_prefix("//").filter(|_| is_absolute) {
            let end = behind.find('/').unwrap_or(behind.len());
            url.host = check_authority(&behind[..end])?.to_owned();
            path = &behind[end..];
        }
        check_escapes(path)?;
        url.has_path = !path.is_empty();
        Ok(url)
    }
}

/// A text as Go quotes it.
fn quoted(text: &str) -> String {
    let mut said = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => said.push_str("\\\""),
            '\\' => said.push_str("\\\\"),
            '\x07' => said.push_str("\\a"),
            '\x08' => said.push_str("\\b"),
            '\t' => said.push_str("\\t"),
            '\n' => said.push_str("\\n"),
            '\x0b' => said.push_str("\\v"),
            '\x0c' => said.push_str("\\f"),
            '\r' => said.push_str("\\r"),
            '\0'..' ' | '\x7f' => said.push_str(&format!("\\x{:02x}", u32::from(character))),
            _ => said.push(character),
        }
    }
    said.push('"');
    said
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b':' if at == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            _ => break,
        }
    }
    Ok(("", text))
}

/// The host of the part before a path.
fn check_authority(text: &str) -> Result<&str, String> {
    let (user, host) =
        text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |at| &host[at..])
    };
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = port.strip_prefix(':').is_some_and(is_number);
    if !port.is_empty() && !is_port {
        return Err(format!("invalid port {} after host", quoted(port)));
    }
    check_host(host)?;
    let is_of_user =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if let Some(user) = user {
        if !user.bytes().all(is_of_user) {
            return Err("net/url: invalid userinfo".into());
        }
        check_escapes(user)?;
    }
    Ok(host)
}

fn check_host(host: &str) -> Result<(), String> {
    for (at, byte) in host.bytes().enumerate() {
        let is_own =
            byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte) || byte > 127;
        if byte == b'%' {
            let digits = host.as_bytes().get(at + 1..at + 3).unwrap_or_default();
            let is_high = digits.first().is_some_and(|byte| !(b'0'..=b'7').contains(byte));
            if !is_escape(digits) || !is_high && digits != b"25" {
                return Err(invalid_escape(host, at));
            }
        } else if !is_own {
            return Err(format!(
                "invalid character {} in host name",
                quoted(&char::from(byte).to_string())
            ));
        }
    }
    Ok(())
}

fn is_escape(digits: &[u8]) -> bool {
    digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit)
}

fn invalid_escape(text: &str, at: usize) -> String {
    let bytes = &text.as_bytes()[at..];
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(3)]);
    format!("invalid URL escape {}", quoted(&shown))
}

fn check_escapes(text: &str) -> Result<(), String> {
    for (at, byte) in text.bytes().enumerate() {
        let digits = text.as_bytes().get(at + 1..at + 3).unwrap_or_default();
        if byte == b'%' && !is_escape(digits) {
            return Err(invalid_escape(text, at));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_numbers() {
        for (text, expected) in [
            ("1234", Some(0x1234)),
            ("0001234", Some(0x1234)),
            ("ABCDEF", Some(0xab_cdef)),
            ("ffffffffffffffff", Some(u64::MAX)),
            ("ffffffffffffffff1", None),
            ("", None),
            ("+1", None),
            ("-1", None),
            ("0x12", None),
            ("1/", None),
        ] {
            assert_eq!(id(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn bodies_are_json() {
        for (media, expected) in [
            ("application/json", true),
            ("application/json;q=1", true),
            ("application/JSON", false),
            ("application/json ; q=1", false),
            ("application/json, text/plain", false),
            ("", false),
        ] {
            assert_eq!(is_json(media.as_bytes()), expected, "{media}");
        }
    }

    /// The answers of etcd 3.4 to these.
    #[test]
    fn addresses_are_checked_as_by_etcd() {
        const SCHEME: &str = "URL scheme must be http, https, unix, or unixs: ";
        const FORM: &str = "URL address does not have the form \"host:port\": ";
        const PATH: &str = "URL must not contain a path: ";
        for (url, expected) in [
            ("http://x:1", String::new()),
            ("http://x:", String::new()),
            ("http://x:1?a/b", String::new()),
            ("http://x:1#f/", String::new()),
            ("http://x\":1", String::new()),
            ("unix://x:1", String::new()),
            ("x", format!("{SCHEME}x")),
            ("", SCHEME.into()),
            ("//x:1", format!("{SCHEME}//x:1")),
            ("a/b:c", format!("{SCHEME}a/b:c")),
            ("http://x", format!("{FORM}http://x")),
            ("http:x:1", format!("{FORM}http:x:1")),
            ("http:///x:1", format!("{FORM}http:///x:1")),
            ("http://x:1:2", format!("{FORM}http://x:1:2")),
            ("http://[::1]", format!("{FORM}http://[::1]")),
            ("HTTP://x:1/", format!("{PATH}HTTP://x:1/")),
            ("http://x:y@z:1/", format!("{PATH}http://x:y@z:1/")),
            ("http://é:1/", format!("{PATH}http://é:1/")),
            (
                "http://10.0.0.1:x",
                "parse \"http://10.0.0.1:x\": invalid port \":x\" after host".into(),
            ),
            ("http://[::1]x", "parse \"http://[::1]x\": invalid port \"x\" after host".into()),
            ("http://[::1:1", "parse \"http://[::1:1\": missing ']' in host".into()),
            ("http://a b:1", "parse \"http://a b:1\": invalid character \" \" in host name".into()),
            ("http://x%41:1/", "parse \"http://x%41:1/\": invalid URL escape \"%41\"".into()),
            ("http://x:1/%zz", "parse \"http://x:1/%zz\": invalid URL escape \"%zz\"".into()),
            ("://x:1", "parse \"://x:1\": missing protocol scheme".into()),
            (
                "1.2.3.4:5",
                "parse \"1.2.3.4:5\": first path segment in URL cannot contain colon".into(),
            ),
            (
                "http://x\0:1",
                "parse \"http://x\\x00:1\": net/url: invalid control character in URL".into(),
            ),
            ("http://u^@b:1/", "parse \"http://u^@b:1/\": net/url: invalid userinfo".into()),
        ] {
            assert_eq!(check_url(url).err().unwrap_or_default(), expected, "{url}");
        }
    }
}
