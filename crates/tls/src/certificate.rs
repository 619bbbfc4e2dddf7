//! Certificates: reading them, until when they hold, and whose key they are for.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Reads all certificates of a file, in order.
///
/// # Errors
/// There is none, or one is damaged.
pub(crate) fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
    let text = std::fs::read(path).map_err(|error| wrong(&error))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| wrong(&error))?;
    if certificates.is_empty() {
        return Err(wrong(&"there is no certificate in it"));
    }
    Ok(certificates)
}

/// What is to be known of a certificate besides what rustls looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// From when on it does not hold any more, in seconds since 1970.
    pub(crate) not_after: i64,
    /// The public key as it stands in the certificate.
    pub(crate) public_key: Vec<u8>,
    /// Its number, in hexadecimal digits.
    pub(crate) serial: String,
}

/// Until when certificates of one kind hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Whose they are: "server", "client" or "ca".
    pub kind: &'static str,
    /// From when on it does not hold any more, in seconds since 1970.
    pub not_after: i64,
    /// Its number, in hexadecimal digits.
    pub serial: String,
}

/// The earliest end of these certificates.
pub(crate) fn expiry(kind: &'static str, all: &[CertificateDer<'_>]) -> Option<Expiry> {
    let contents = all.iter().filter_map(|own| contents(own));
    let first = contents.min_by_key(|own| own.not_after)?;
    Some(Expiry { kind, not_after: first.not_after, serial: first.serial })
}

/// Looks into a certificate. Nothing if it is damaged.
pub(crate) fn contents(certificate: &[u8]) -> Option<Contents> {
    let Parts { serial, validity, public_key, .. } = parts(certificate)?;
    let (_, after) = time(validity)?;
    let (not_after, _) = time(after)?;
    let digits = serial.iter().skip_while(|byte| **byte == 0);
    let serial = digits.map(|byte| format!("{byte:02X}")).collect();
    Some(Contents { not_after, public_key: public_key.to_vec(), serial })
}

/// Where a certificate has the names of whom it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSource {
    /// The common name of its subject, of which the first counts.
    CommonName,
    /// The URIs among its other names (RFC 5280, section 4.2.1.6).
    Uri,
}

/// The names that a certificate has there, in their order. One with a NUL is none: programs differ
/// in where they think that it ends.
pub fn names(certificate: &[u8], source: NameSource) -> Vec<Vec<u8>> {
    let found = parts(certificate).and_then(|parts| match source {
        NameSource::CommonName => Some(vec![common_name(parts.subject)?]),
        NameSource::Uri => uris(parts.rest),
    });
    let found = found.unwrap_or_default().into_iter();
    found.filter(|name| !name.is_empty() && !name.contains(&0)).map(<[u8]>::to_vec).collect()
}

/// The first common name of a subject, if it is in a form whose bytes are its text.
fn common_name(subject: &[u8]) -> Option<&[u8]> {
    elements(subject, SET).flat_map(|set| elements(set, SEQUENCE)).find_map(|pair| {
        let (kind, value) = element(pair, OBJECT_IDENTIFIER)?;
        let text = || TEXTS.iter().find_map(|tag| element(value, *tag)).map(|(text, _)| text);
        (kind == COMMON_NAME).then(|| text().unwrap_or_default())
    })
}

/// The URIs among the other names of a certificate; `rest` comes after its public key.
fn uris(rest: &[u8]) -> Option<Vec<&[u8]>> {
    let rest = UNIQUE_IDS.iter().fold(rest, |rest, tag| match element(rest, *tag) {
        Some((_, rest)) => rest,
        None => rest,
    });
    let (extensions, _) = element(rest, EXTENSIONS)?;
    let (extensions, _) = element(extensions, SEQUENCE)?;
    let names = elements(extensions, SEQUENCE).find_map(|extension| {
        let (kind, rest) = element(extension, OBJECT_IDENTIFIER)?;
        let rest = element(rest, BOOLEAN).map_or(rest, |(_, rest)| rest);
        (kind == OTHER_NAMES).then(|| element(rest, OCTET_STRING))?
    });
    let (names, _) = element(names?.0, SEQUENCE)?;
    let mut found = Vec::new();
    let mut rest = names;
    while let Some((tag, contents, after)) = any_element(rest) {
        if tag == URI {
            found.push(contents);
        }
        rest = after;
    }
    Some(found)
}

/// The parts of a certificate, as they stand in it.
struct Parts<'c> {
    serial: &'c [u8],
    validity: &'c [u8],
    subject: &'c [u8],
    public_key: &'c [u8],
    /// What comes after the public key.
    rest: &'c [u8],
}

fn parts(certificate: &[u8]) -> Option<Parts<'_>> {
    let (outer, _) = element(certificate, SEQUENCE)?;
    let (body, _) = element(outer, SEQUENCE)?;
    let body = match element(body, VERSION) {
        Some((_, rest)) => rest,
        None => body,
    };
    let (serial, body) = element(body, INTEGER)?;
    let (_signature, body) = element(body, SEQUENCE)?;
    let (_issuer, body) = element(body, SEQUENCE)?;
    let (validity, body) = element(body, SEQUENCE)?;
    let (subject, body) = element(body, SEQUENCE)?;
    let (_, rest) = element(body, SEQUENCE)?;
    let public_key = &body[..body.len() - rest.len()];
    Some(Parts { serial, validity, subject, public_key, rest })
}

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Strings whose bytes are their text: of UTF-8, and of parts of ASCII.
const TEXTS: [u8; 4] = [0x0c, 0x12, 0x13, 0x16];
/// The version of a certificate: a part with the number 0.
const VERSION: u8 = 0xa0;
/// Two numbers of issuer and subject that nobody has any more.
const UNIQUE_IDS: [u8; 2] = [0x81, 0x82];
const EXTENSIONS: u8 = 0xa3;
/// A URI among names.
const URI: u8 = 0x86;
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.29.17, the subject's alternative names.
const OTHER_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// The contents of an element of DER with this tag, and what comes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (own, contents, rest) = any_element(bytes)?;
    (own == tag).then_some((contents, rest))
}

/// The contents of the elements with this tag, up to the first that has another one.
fn elements(mut bytes: &[u8], tag: u8) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (contents, rest) = element(bytes, tag)?;
        bytes = rest;
        Some(contents)
    })
}

/// The tag and the contents of an element of DER, and what comes after it.
fn any_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(length) {
        short @ 0..=0x7f => (short, rest),
        count @ 0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(count - 0x80)?;
            let number = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            (number, rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// A time in seconds since 1970, and what comes after it.
fn time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (text, rest, digits_of_year) = match element(bytes, UTC_TIME) {
        Some((text, rest)) => (text, rest, 2),
        None => element(bytes, GENERALIZED_TIME).map(|(text, rest)| (text, rest, 4))?,
    };
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if text.len() != digits_of_year + 10 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, text) = text.split_at(digits_of_year);
    let year: i64 = year.parse().ok()?;
    let year = match digits_of_year {
        2 if year < 50 => year + 2000,
        2 => year + 1900,
        _ => year,
    };
    let part = |index: usize| text[2 * index..2 * index + 2].parse::<i64>().ok();
    let days = days_since_1970(year, part(0)?, part(1)?);
    Some((((days * 24 + part(2)?) * 60 + part(3)?) * 60 + part(4)?, rest))
}

/// Days from the first of January 1970 to a day of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, KeyUsagePurpose, SanType};

    use super::*;

    #[test]
    fn days_are_counted() {
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(2000, 3, 1), 11_017);
        assert_eq!(days_since_1970(2024, 2, 29), 19_782);
        assert_eq!(days_since_1970(2126, 11, 10), 57_291);
    }

    #[test]
    fn times_are_read_in_both_forms() {
        let of = |tag: u8, text: &str| {
            let mut bytes = vec![tag, text.len() as u8];
            bytes.extend_from_slice(text.as_bytes());
            time(&bytes).map(|(at, _)| at)
        };
        assert_eq!(of(UTC_TIME, "700101000001Z"), Some(1));
        assert_eq!(of(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(of(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
        for wrong in ["7001010000Z", "700101000001", "7001010000x1Z", "Z", ""] {
            assert_eq!(of(UTC_TIME, wrong), None, "{wrong}");
        }
    }

    /// A certificate with these common names and other names.
    fn certificate(common: &[&str], others: Vec<SanType>) -> Vec<u8> {
        let key = KeyPair::generate().unwrap();
        let mut own = CertificateParams::default();
        own.distinguished_name = DistinguishedName::new();
        own.distinguished_name.push(DnType::OrganizationName, "somebody");
        for name in common {
            own.distinguished_name.push(DnType::CommonName, *name);
        }
        own.subject_alt_names = others;
        own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        own.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn names_are_where_they_are_looked_for() {
        let uri = |text: &str| SanType::URI(text.try_into().unwrap());
        let host = SanType::DnsName("host".try_into().unwrap());
        let others = vec![uri("urn:a:first"), host, uri("urn:a:second")];
        let own = certificate(&["alice"], others);
        assert_eq!(names(&own, NameSource::CommonName), [b"alice"]);
        assert_eq!(names(&own, NameSource::Uri), [&b"urn:a:first"[..], b"urn:a:second"]);
        let bare = certificate(&[], Vec::new());
        assert!(names(&bare, NameSource::CommonName).is_empty());
        assert!(names(&bare, NameSource::Uri).is_empty());
    }

    #[test]
    fn a_name_that_another_program_may_cut_short_is_none() {
        let long = certificate(&["admin\0.example"], Vec::new());
        assert!(names(&long, NameSource::CommonName).is_empty());
    }

    #[test]
    fn certificates_that_are_cut_off_have_no_names() {
        let uri = SanType::URI("urn:a".try_into().unwrap());
        let own = certificate(&["alice"], vec![uri]);
        for length in 0..own.len() {
            assert!(names(&own[..length], NameSource::CommonName).is_empty());
            assert!(names(&own[..length], NameSource::Uri).is_empty());
        }
    }

    #[test]
    fn damaged_certificates_have_no_contents() {
        for wrong in [&b""[..], b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x30\x03\x30\x01\x02"] {
            assert_eq!(contents(wrong), None);
        }
    }
}
