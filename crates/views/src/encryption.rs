//! Whether a connection to a database is encrypted, as its address asks for it.

use std::path::PathBuf;

use crate::kind::Kind;

/// What is asked for of the server at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It may be anybody: what is read on the way is encrypted, who answers is not known.
    Anybody,
    /// Its certificate is signed by a trusted authority.
    Signed,
    /// The same, and the certificate is for the host of the address.
    Host,
}

/// How a connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encryption {
    pub(crate) trust: Trust,
    /// A file with the certificates of the trusted authorities, instead of the public ones.
    pub(crate) authorities: Option<PathBuf>,
}

/// Takes out of an address what it says of encryption, in the words of its database's own tools.
/// Returns the rest of the address, and how connections are encrypted if they are.
///
/// # Errors
/// It asks for something that nobody can give it.
pub(crate) fn split(url: &str, kind: Kind) -> Result<(String, Option<Encryption>), String> {
    let Some((address, query)) = url.split_once('?').filter(|_| kind != Kind::Sqlite) else {
        return Ok((url.to_owned(), None));
    };
    let (mut trust, mut authorities, mut rest) = (None, None, Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = || format!("its url says {pair}: see docs/http.md for what there is");
        let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_'], "");
        match (plain(name).as_str(), plain(value).as_str()) {
            ("sslmode", value) => {
                trust = match value {
                    // `allow` and `prefer` do not encrypt either.
                    "disable" | "disabled" | "allow" | "prefer" | "preferred" => None,
                    "require" | "required" => Some(Trust::Anybody),
                    "verifyca" => Some(Trust::Signed),
                    "verifyfull" | "verifyidentity" => Some(Trust::Host),
                    _ => return Err(wrong()),
                };
            }
            ("sslrootcert" | "sslca", path) if !path.is_empty() => {
                authorities = Some(PathBuf::from(value));
            }
            (name, _)
                if ["ssl", "tls", "requiressl", "usessl", "verify"]
                    .iter()
                    .any(|own| name.starts_with(own)) =>
            {
                return Err(wrong());
            }
            _ => rest.push(pair),
        }
    }
    // As the database's own tools do: who names an authority means it.
    if trust == Some(Trust::Anybody) && authorities.is_some() {
        trust = Some(Trust::Signed);
    }
    // Anybody can have a certificate by an authority of the public, in a name of their own.
    if trust == Some(Trust::Signed) && authorities.is_none() {
        return Err("its url says verify-ca, and names no authority: see sslrootcert".to_owned());
    }
    if trust.is_none() && authorities.is_some() {
        return Err("its url names an authority, and no sslmode that asks for it".to_owned());
    }
    let rest = rest.join("&");
    let url = if rest.is_empty() { address.to_owned() } else { format!("{address}?{rest}") };
    Ok((url, trust.map(|trust| Encryption { trust, authorities })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_a_connection_is_encrypted() {
        let of = |query: &str| {
            let (url, own) = split(&format!("postgres://h/d{query}"), Kind::Postgres).unwrap();
            let path =
                |own: &Encryption| own.authorities.as_ref().map(|path| path.display().to_string());
            (url.replace("postgres://h/d", ""), own.as_ref().map(|own| (own.trust, path(own))))
        };
        for query in ["", "?sslmode=disable", "?sslmode=prefer", "?ssl-mode=DISABLED", "?"] {
            assert_eq!(of(query), (String::new(), None), "{query}");
        }
        assert_eq!(
            of("?a=b&sslmode=require&c=d"),
            ("?a=b&c=d".into(), Some((Trust::Anybody, None)))
        );
        assert_eq!(of("?ssl-mode=VERIFY_IDENTITY"), (String::new(), Some((Trust::Host, None))));
        assert_eq!(of("?sslmode=verify-full"), (String::new(), Some((Trust::Host, None))));
        let signed = Some((Trust::Signed, Some("/a-b/Ca_1.pem".to_owned())));
        assert_eq!(
            of("?sslmode=verify-ca&sslrootcert=/a-b/Ca_1.pem"),
            (String::new(), signed.clone())
        );
        assert_eq!(of("?ssl-ca=/a-b/Ca_1.pem&ssl-mode=REQUIRED"), (String::new(), signed));
    }

    #[test]
    fn unknown_settings_of_encryption_are_refused() {
        for query in [
            "sslmode=yes",
            "sslmode",
            "sslcert=/c.pem",
            "require_ssl=true",
            "useSSL=true",
            "verify_identity=true",
            "tls_version=1.3",
            "sslrootcert=/ca.pem",
            "sslmode=verify-ca",
            "sslrootcert=",
        ] {
            assert!(split(&format!("mysql://h/d?{query}"), Kind::Mariadb).is_err(), "{query}");
        }
        let (url, none) = split("sqlite:data.db?sslmode=x", Kind::Sqlite).unwrap();
        assert_eq!((url.as_str(), none), ("sqlite:data.db?sslmode=x", None));
    }
}
