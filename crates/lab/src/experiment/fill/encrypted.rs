//! What a file or a command line says of TLS, as what the lab's connections go by.

use std::path::PathBuf;

use toml::Spanned;

use super::super::error::FileError;
use super::super::file::{TargetSection, Template, TlsSection};
use super::super::scope::Scope;
use crate::load::Encryption;
use crate::targets::Probe;
use crate::targets::kinds::Kind;

/// How connections to a process are encrypted, if they are, and where the lab puts certificates for
/// that, if it makes them.
#[derive(Default)]
pub(super) struct Encrypted {
    pub(super) encryption: Option<Encryption>,
    pub(super) certificates: Option<PathBuf>,
}

/// What the file says of TLS, or else the command line.
pub(super) fn encryption(
    section: &TargetSection,
    kind: Option<&'static Kind>,
    scope: &Scope<'_>,
) -> Result<Encrypted, FileError> {
    let by = |encryption| Encrypted { encryption: Some(encryption), certificates: None };
    let of_lab = || {
        let directory = scope.values.get("tls_directory").map_or("", String::as_str);
        let file = |name: &str| Some(format!("{directory}/{name}"));
        let encryption = Encryption {
            authority: file("ca.crt"),
            certificate: file("client.crt"),
            key: file("client.key"),
            ..Encryption::default()
        };
        Encrypted { certificates: Some(directory.into()), ..by(encryption) }
    };
    let of_words = || scope.encryption.cloned().unwrap_or_default();
    let is_running = section.address.is_some();
    let Some(spanned) = &section.tls else {
        let is_said = section.address.as_ref().map(|field| scope.text(field)).transpose()?;
        let is_said = is_said.is_some_and(|address| is_secure(&address));
        return match (scope.encryption, kind, section.command.as_ref().and_then(|own| own.first()))
        {
            _ if is_said => Ok(by(of_words())),
            (Some(own), ..) if is_running => Ok(by(own.clone())),
            (Some(_), _, Some(word)) => Err(scope.error(
                word,
                "with --tls, the file says of a command whether it speaks TLS: tls = true or false",
            )),
            // It speaks no protocol that the lab speaks.
            (Some(_), Some(kind), _) if kind.probe != Probe::Connect => Ok(of_lab()),
            _ => Ok(Encrypted::default()),
        };
    };
    let place = spanned.span();
    let field = |template: &Template| Spanned::new(place.clone(), template.clone());
    match spanned.get_ref() {
        TlsSection::Plain(template) => {
            let field = field(template);
            match scope.value(&field, "true, false or a table")? {
                false => Ok(Encrypted::default()),
                true if is_running => Ok(by(of_words())),
                true => Ok(of_lab()),
            }
        }
        TlsSection::By(_) if kind.is_some() => {
            let message = "the lab makes the certificates of the servers that it knows: tls = true";
            Err(scope.error_at(place.start, message))
        }
        TlsSection::By(files) => {
            let text = |template: &Option<Template>| {
                template.as_ref().map(|own| scope.text(&field(own))).transpose()
            };
            let insecure = files.insecure.as_ref().map(field);
            Ok(by(Encryption {
                authority: text(&files.cacert)?,
                certificate: text(&files.cert)?,
                key: text(&files.key)?,
                name: text(&files.sni)?,
                insecure: scope.value_or(insecure.as_ref(), "true or false", false)?,
                ..Encryption::default()
            }))
        }
    }
}

/// Whether a URL says that connections are encrypted.
fn is_secure(address: &str) -> bool {
    ["rediss://", "https://"].iter().any(|scheme| address.starts_with(scheme))
}
