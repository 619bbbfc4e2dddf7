//! Which versions of the protocol and which ciphers are offered.
//!
//! The settings speak the language of OpenSSL. rustls offers fewer ciphers, none of which is weak,
//! so that words which exclude weak ones change nothing.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::{
    ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion, crypto::ring::cipher_suite,
    version,
};

/// Words for ciphers that rustls does not have: to exclude them changes nothing.
const NOT_OFFERED: &[&str] = &[
    "3DES",
    "ADH",
    "AECDH",
    "ANULL",
    "ARIA",
    "CAMELLIA",
    "CBC",
    "DES",
    "DSS",
    "ENULL",
    "EXP",
    "EXPORT",
    "IDEA",
    "KRSA",
    "LOW",
    "MD5",
    "MEDIUM",
    "NULL",
    "PSK",
    "RC2",
    "RC4",
    "SEED",
    "SHA1",
    "SRP",
    "DH",
    "EDH",
    "DHE",
    "KDHE",
    "CAMELLIA128",
    "CAMELLIA256",
];
/// Words for all ciphers.
const ALL: &[&str] = &["ALL", "COMPLEMENTOFDEFAULT", "DEFAULT", "HIGH", "ECDHE", "KECDHE", "ECDH"];

/// The ciphers up to TLS 1.2, by their names in OpenSSL.
static CIPHERS: [(&str, SupportedCipherSuite); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// The cipher suites of TLS 1.3.
static SUITES: [(&str, SupportedCipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", cipher_suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", cipher_suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// What the settings say, each as it was given; an empty one asks for what is usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChoiceWords {
    /// Versions, with spaces between them.
    pub protocols: String,
    /// Ciphers up to TLS 1.2, with colons between them.
    pub ciphers: String,
    /// Suites of TLS 1.3, with colons between them.
    pub ciphersuites: String,
}

/// The same, understood.
pub(crate) struct Choices {
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
    pub(crate) provider: Arc<CryptoProvider>,
}

impl ChoiceWords {
    /// Understands them.
    ///
    /// # Errors
    /// A word is unknown, or asks for what is not offered.
    pub(crate) fn read(&self) -> Result<Choices, String> {
        let versions = versions(&self.protocols)?;
        let mut suites = suites(&self.ciphersuites)
            .map_err(|error| format!("Failed to configure ciphersuites: {error}"))?;
        let ciphers = ciphers(&self.ciphers)
            .map_err(|error| format!("Failed to configure ciphers: {error}"))?;
        suites.extend(ciphers);
        let of_version = |own: &SupportedCipherSuite| versions.contains(&own.version());
        suites.retain(of_version);
        if suites.is_empty() {
            return Err("The settings of TLS leave no cipher".to_owned());
        }
        let provider = CryptoProvider { cipher_suites: suites, ..ring::default_provider() };
        Ok(Choices { versions, provider: Arc::new(provider) })
    }

    /// Understands them for a server, whose own order matters: what nobody has put in an order has
    /// the ciphers first that take least time. AES with 128 bits is safe by all that is known, and
    /// most processors have instructions for SHA-256, which goes with it, but not for SHA-384.
    ///
    /// # Errors
    /// See [`ChoiceWords::read`].
    pub(crate) fn read_for_server(&self) -> Result<Choices, String> {
        let Choices { versions, provider } = self.read()?;
        let mut provider = Arc::unwrap_or_clone(provider);
        provider.cipher_suites.sort_by_key(|suite| {
            let words = match suite.version().version {
                ProtocolVersion::TLSv1_3 => &self.ciphersuites,
                _ => &self.ciphers,
            };
            let is_fast = suite.suite().as_str().is_some_and(|name| name.contains("AES_128"));
            words.is_empty() && !is_fast
        });
        Ok(Choices { versions, provider: Arc::new(provider) })
    }
}

fn versions(words: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut versions: Vec<&'static SupportedProtocolVersion> = Vec::new();
    for word in words.split_whitespace() {
        let version = match word.to_ascii_lowercase().as_str() {
            "tlsv1.2" => &version::TLS12,
            "tlsv1.3" => &version::TLS13,
            "tlsv1" | "tlsv1.1" => {
                return Err(format!(
                    "Invalid tls-protocols specified. {word} is broken and not offered: use a \
                     combination of 'TLSv1.2' and 'TLSv1.3'."
                ));
            }
            _ => {
                return Err("Invalid tls-protocols specified. Use a combination of 'TLSv1.2' and \
                            'TLSv1.3'."
                    .to_owned());
            }
        };
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    if versions.is_empty() {
        versions = vec![&version::TLS13, &version::TLS12];
    }
    // The newest first.
    versions.sort_by_key(|own| own.version != ProtocolVersion::TLSv1_3);
    Ok(versions)
}

fn suites(words: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    let words = words.split(':').map(str::trim).filter(|word| !word.is_empty());
    let found: Result<Vec<_>, String> = words
        .map(|word| {
            let known = SUITES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            known.map(|(_, suite)| *suite).ok_or_else(|| {
                let names: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
                format!("'{word}' is not offered; there are {}", names.join(", "))
            })
        })
        .collect();
    let found = found?;
    Ok(if found.is_empty() { SUITES.iter().map(|(_, suite)| *suite).collect() } else { found })
}

fn ciphers(words: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut chosen: Vec<SupportedCipherSuite> = Vec::new();
    let (mut is_empty, separators) = (true, [':', ',', ' ']);
    for word in words.split(separators).filter(|word| !word.is_empty()) {
        is_empty = false;
        let excluded = word.strip_prefix(['!', '-']);
        // Commands such as @STRENGTH order ciphers: rustls goes by strength anyway.
        if word.starts_with('@') || word.starts_with('+') {
            continue;
        }
        let own = matching(excluded.unwrap_or(word));
        match (excluded, own) {
            (None, Some(own)) => {
                let new: Vec<_> = own.into_iter().filter(|own| !chosen.contains(own)).collect();
                chosen.extend(new);
            }
            (Some(_), Some(own)) => chosen.retain(|suite| !own.contains(suite)),
            (Some(word), None) if is_not_offered(word) => {}
            _ => {
                let names: Vec<&str> = CIPHERS.iter().map(|(name, _)| *name).collect();
                return Err(format!("'{word}' is not offered; there are {}", names.join(", ")));
            }
        }
    }
    if is_empty {
        chosen = CIPHERS.iter().map(|(_, suite)| *suite).collect();
    }
    Ok(chosen)
}

fn is_not_offered(word: &str) -> bool {
    word.split('+').any(|part| NOT_OFFERED.contains(&part.to_ascii_uppercase().as_str()))
}

/// The ciphers that a word of OpenSSL names, of those that are offered.
fn matching(word: &str) -> Option<Vec<SupportedCipherSuite>> {
    let parts: Vec<String> = word.split('+').map(str::to_ascii_uppercase).collect();
    let of_part = |part: &str, name: &str| match part {
        "AES" | "AESGCM" => name.contains("AES"),
        "AES128" => name.contains("AES128"),
        "AES256" => name.contains("AES256"),
        "CHACHA20" => name.contains("CHACHA20"),
        "ECDSA" | "AECDSA" => name.contains("ECDSA"),
        "RSA" | "ARSA" => name.contains("RSA"),
        "SHA256" => name.ends_with("SHA256"),
        "SHA384" => name.ends_with("SHA384"),
        part => ALL.contains(&part) || part == name,
    };
    let found: Vec<_> = CIPHERS
        .iter()
        .filter(|(name, _)| parts.iter().all(|part| of_part(part, name)))
        .map(|(_, suite)| *suite)
        .collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &str) -> Result<Vec<&'static str>, String> {
        let found = ciphers(words)?;
        let name = |suite: &SupportedCipherSuite| CIPHERS.iter().find(|(_, own)| own == suite);
        Ok(found.iter().filter_map(name).map(|(name, _)| *name).collect())
    }

    #[test]
    fn ciphers_are_chosen_by_the_words_of_openssl() {
        assert_eq!(names("").map(|all| all.len()), Ok(6));
        assert_eq!(names("DEFAULT:!MEDIUM").map(|all| all.len()), Ok(6));
        assert_eq!(names("HIGH:!aNULL:!kRSA:@STRENGTH").map(|all| all.len()), Ok(6));
        assert_eq!(
            names("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305"),
            Ok(vec!["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"])
        );
        assert_eq!(
            names("ECDHE+AESGCM:!AES128"),
            Ok(vec!["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"])
        );
        for unknown in ["AES128-SHA", "DHE-RSA-AES256-GCM-SHA384", "RC4", "!nonsense"] {
            assert!(names(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_server_prefers_what_is_fast_unless_it_is_told_otherwise() {
        let order = |words: ChoiceWords| -> Vec<_> {
            let suites = words.read_for_server().unwrap().provider.cipher_suites.clone();
            suites.iter().map(|own| own.suite().as_str().unwrap()).collect()
        };
        let usual = order(ChoiceWords::default());
        let first = |part: &str| usual.iter().find(|name| name.contains(part)).copied();
        assert_eq!(first("TLS13"), Some("TLS13_AES_128_GCM_SHA256"));
        assert_eq!(first("TLS_ECDHE"), Some("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"));
        assert_eq!(usual.len(), 9);
        let told = "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256".to_owned();
        let told = order(ChoiceWords { ciphersuites: told, ..ChoiceWords::default() });
        let of_13 = told.into_iter().filter(|name| name.starts_with("TLS13"));
        assert_eq!(
            of_13.collect::<Vec<_>>(),
            ["TLS13_AES_256_GCM_SHA384", "TLS13_AES_128_GCM_SHA256"]
        );
    }

    #[test]
    fn suites_and_versions_are_those_that_are_offered() {
        assert_eq!(suites("TLS_AES_128_GCM_SHA256").map(|own| own.len()), Ok(1));
        assert!(suites("TLS_AES_128_CCM_SHA256").is_err());
        let only = |words| versions(words).map(|own| own.len());
        assert_eq!((only(""), only("TLSv1.3"), only("tlsv1.3 TLSv1.2")), (Ok(2), Ok(1), Ok(2)));
        assert!(only("TLSv1.1 TLSv1.2").is_err() && only("SSLv3").is_err());
        let words = ChoiceWords {
            ciphers: "!ALL".into(),
            protocols: "TLSv1.2".into(),
            ..ChoiceWords::default()
        };
        assert!(words.read().is_err(), "no cipher is left");
    }
}
