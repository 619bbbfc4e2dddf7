//! Addresses in the form of a URL.

use crate::load::Address;

/// A page of an HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Http {
    pub(super) host: String,
    pub(super) port: u16,
    /// Connections are encrypted.
    pub(super) encrypted: bool,
    /// Path and query.
    pub(super) path: String,
}

/// Understands `http://host:port/path?query`, and the same with `https`.
pub(super) fn http(url: &str) -> Result<Http, String> {
    let (rest, encrypted) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => return Err(format!("'{url}' is no URL: it begins with http:// or https://")),
    };
    let usual = if encrypted { 443 } else { 80 };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (place, path) = rest.split_at(end);
    let (host, port) = host_and_port(place, usual).ok_or_else(|| format!("{url}: wrong port"))?;
    if host.is_empty() || place.contains('@') {
        return Err(format!("'{url}' has no plain host name"));
    }
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(Http { host, port, encrypted, path })
}

/// Understands `redis://user:password@host:port/database`, into an address. With `rediss`,
/// connections are encrypted.
pub(super) fn redis(url: &str, address: &mut Address) -> Result<(), String> {
    let rest = match (url.strip_prefix("redis://"), url.strip_prefix("rediss://")) {
        (Some(rest), _) => rest,
        (_, Some(rest)) => {
            address.encryption.get_or_insert_default();
            rest
        }
        _ => {
            return Err("Invalid URI scheme: it begins with redis:// or rediss://".to_owned());
        }
    };
    let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
    let place = match place.rsplit_once('@') {
        None => place,
        Some((person, place)) => {
            let (user, password) = person.split_once(':').unwrap_or(("", person));
            address.user = Some(decoded(user)?).filter(|user| !user.is_empty());
            address.password = Some(decoded(password)?);
            place
        }
    };
    let (host, port) = host_and_port(place, 6379).ok_or("the URI has a wrong port")?;
    if !host.is_empty() {
        address.host = host;
    }
    address.port = port;
    if !database.is_empty() {
        // It may be the rest of a password with a slash in it.
        address.database = database.parse().map_err(|_| "the URI names no database")?;
    }
    Ok(())
}

/// `host`, `host:port` or `[::1]:port`.
pub(crate) fn host_and_port(place: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':').or(rest.is_empty().then_some(""))?)
        }
        None => place.rsplit_once(':').unwrap_or((place, "")),
    };
    let port = if port.is_empty() { usual } else { port.parse().ok()? };
    Some((host.to_owned(), port))
}

/// A text with its %XX in place.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or("% without two digits after it in a URI")?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| "the URI is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        let page = http("http://host:8080/a/b?c=d#e").unwrap();
        assert_eq!((&page.host[..], page.port, &page.path[..]), ("host", 8080, "/a/b?c=d"));
        let page = http("http://[::1]?q").unwrap();
        assert_eq!((&page.host[..], page.port, &page.path[..]), ("::1", 80, "/?q"));
        let page = http("https://h/").unwrap();
        assert_eq!((page.port, page.encrypted), (443, true));
        for url in ["ftp://h/", "h:80", "http:///x", "http://h:x/", "http://u:p@h/"] {
            assert!(http(url).is_err(), "{url}");
        }
    }

    #[test]
    fn servers() {
        let mut address = Address::default();
        redis("redis://ann:s%3ac@there:7000/3", &mut address).unwrap();
        assert_eq!((&address.host[..], address.port, address.database), ("there", 7000, 3));
        assert_eq!(address.user.as_deref(), Some("ann"));
        assert_eq!(address.password.as_deref(), Some("s:c"));
        let mut address = Address::default();
        redis("redis://secret@", &mut address).unwrap();
        assert_eq!((address.user, address.password), (None, Some("secret".to_owned())));
        let mut address = Address::default();
        redis("rediss://h", &mut address).unwrap();
        assert!(address.encryption.is_some());
        for url in ["redisss://h", "http://h", "redis://h:x", "redis://h/x", "redis://%zz@h"] {
            assert!(redis(url, &mut Address::default()).is_err(), "{url}");
        }
    }
}
