//! How a bucket is reached, and who asks: options, the variables that AWS's own tools read, and
//! their files.

use std::path::PathBuf;
use std::sync::Arc;

use rusty_s3::Credentials;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// The region where none is named.
const USUAL_REGION: &str = "us-east-1";

/// What the options say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    /// The bucket is a part of the path, or of the name of the host.
    pub(crate) path_style: Option<bool>,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Access {
    /// Takes an option of a command line, if it is one of these. `value` gives what follows it.
    pub(crate) fn take_option<'w>(
        &mut self,
        option: &str,
        value: impl FnOnce() -> Result<&'w String, String>,
    ) -> Result<bool, String> {
        match option {
            "--endpoint" => self.endpoint = Some(value()?.clone()),
            "--region" => self.region = Some(value()?.clone()),
            "--path-style" => self.path_style = Some(true),
            "--virtual-host" => self.path_style = Some(false),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether these options have a meaning for this store.
    pub(crate) fn check(&self, place: &str) -> Result<(), String> {
        match *self == Access::default() || place.starts_with("s3://") {
            true => Ok(()),
            false => {
                Err("--endpoint, --region, --path-style and --virtual-host are for s3://"
                    .to_owned())
            }
        }
    }

    pub(super) fn region(&self) -> String {
        let given = self.region.clone().or_else(|| variable("AWS_REGION"));
        let given = given.or_else(|| variable("AWS_DEFAULT_REGION"));
        given
            .or_else(|| setting("AWS_CONFIG_FILE", "config", "region"))
            .unwrap_or_else(|| USUAL_REGION.to_owned())
    }

    /// The endpoint, and whether the bucket is a part of the path there.
    pub(super) fn endpoint(&self, region: &str, bucket: &str) -> (String, bool) {
        let given = self.endpoint.clone().or_else(|| variable("AWS_ENDPOINT_URL_S3"));
        let given = given.or_else(|| variable("AWS_ENDPOINT_URL"));
        // A certificate of AWS is for one label before the host.
        let needs_path = given.is_some() || bucket.contains('.');
        let endpoint = given.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        (endpoint, self.path_style.unwrap_or(needs_path))
    }
}

/// Who asks; none for a bucket that is open to all.
pub(super) fn credentials() -> Result<Option<Credentials>, String> {
    let file = |name| setting("AWS_SHARED_CREDENTIALS_FILE", "credentials", name);
    let of = |key: Option<String>, secret: Option<String>, token: Option<String>| {
        let (key, secret) = (key?, secret?);
        Some(match token {
            Some(token) => Credentials::new_with_token(key, secret, token),
            None => Credentials::new(key, secret),
        })
    };
    let [key, secret, token] =
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"].map(variable);
    if key.is_some() != secret.is_some() {
        return Err("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY come together".to_owned());
    }
    let of_file = || {
        let names = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];
        let [key, secret, token] = names.map(file);
        of(key, secret, token)
    };
    Ok(of(key, secret, token).or_else(of_file))
}

/// A setting of the profile in one of the files of AWS's tools.
fn setting(variable_of_file: &str, file: &str, name: &str) -> Option<String> {
    let usual = || Some(PathBuf::from(variable("HOME")?).join(".aws").join(file));
    let path = variable(variable_of_file).map(PathBuf::from).or_else(usual)?;
    let text = std::fs::read_to_string(path).ok()?;
    let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    find(&text, &profile, name)
}

/// A value in the section of a profile.
fn find(text: &str, profile: &str, name: &str) -> Option<String> {
    let mut is_meant = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let section = section.trim();
            is_meant = section.strip_prefix("profile ").unwrap_or(section).trim() == profile;
        } else if is_meant
            && let Some((own, value)) = line.split_once('=')
            && own.trim() == name
        {
            return Some(value.trim().to_owned());
        }
    }
    None
}

/// Whom connections believe: the public authorities, or those in the file AWS_CA_BUNDLE.
pub(super) fn tls() -> Result<TlsConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    let Some(file) = variable("AWS_CA_BUNDLE") else { return Ok(config.build()) };
    let bytes = std::fs::read(&file).map_err(|error| format!("AWS_CA_BUNDLE, {file}: {error}"))?;
    let authorities = parse_pem(&bytes).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let authorities: Vec<Certificate<'static>> = authorities.collect();
    if authorities.is_empty() {
        return Err(format!("AWS_CA_BUNDLE: {file} has no certificate"));
    }
    Ok(config.root_certs(RootCerts::new_with_certs(&authorities)).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_found() {
        let text = "# a comment\n[default]\naws_access_key_id = one\n\n[profile other]\n\
                    region=eu-west-1\naws_access_key_id=two\n";
        let key = "aws_access_key_id";
        assert_eq!(find(text, "default", key).as_deref(), Some("one"));
        assert_eq!(find(text, "other", key).as_deref(), Some("two"));
        assert_eq!(find(text, "other", "region").as_deref(), Some("eu-west-1"));
        assert_eq!(find(text, "default", "region"), None);
        assert_eq!(find(text, "third", key), None);
    }

    #[test]
    fn a_bucket_is_a_part_of_the_path_where_it_has_to_be() {
        let access = Access::default();
        let expected = "https://s3.eu-west-1.amazonaws.com".to_owned();
        assert_eq!(access.endpoint("eu-west-1", "own"), (expected.clone(), false));
        assert_eq!(access.endpoint("eu-west-1", "own.bucket"), (expected, true));
        let endpoint = Some("http://127.0.0.1:9000".to_owned());
        let access = Access { endpoint, ..Access::default() };
        assert_eq!(access.endpoint("x", "own"), ("http://127.0.0.1:9000".to_owned(), true));
        let access = Access { path_style: Some(false), ..access };
        assert!(!access.endpoint("x", "own").1);
    }
}
