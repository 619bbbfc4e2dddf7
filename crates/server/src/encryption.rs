//! Encrypted connections: what the settings ask for, and what new connections go by.

use config::{Config, TlsAuthClients};
use process::paths::path;
use tls::client::Verification;
use tls::server::{ChoiceWords, IdentityFiles, TrustFiles};
use tls::{ClientCertificates, ClientSettings, Ends, ServerSettings};

/// Whether any connection is to be encrypted.
pub(crate) fn is_wanted(config: &Config) -> bool {
    config.tls_port != 0 || config.https_port != 0 || connects(config)
}

/// Whether the server opens encrypted connections.
fn connects(config: &Config) -> bool {
    config.tls_replication || config.tls_cluster
}

/// Reads the files that the settings name, and understands the settings.
///
/// # Errors
/// Something is missing or wrong; the text is for the operator.
pub(crate) fn read(config: &Config) -> Result<Ends, String> {
    // Whoever only connects to others needs no certificate for those that ask for none.
    let takes_clients =
        config.tls_port != 0 || config.https_port != 0 || !config.tls_cert_file.is_empty();
    let server = if takes_clients { Some(of_server(config)?.read()?) } else { None };
    let client = of_client(config);
    if connects(config) && client.trust.is_empty() {
        return Err("Either tls-ca-cert-file or tls-ca-cert-dir must be specified when \
                    tls-cluster, tls-replication or tls-auth-clients are enabled!"
            .to_owned());
    }
    Ok(Ends { server, client: client.read()? })
}

fn of_server(config: &Config) -> Result<ServerSettings, String> {
    let (pairs, rest) = config.tls_sni_cert_files.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("tls-sni-cert-files names a certificate without a key".to_owned());
    }
    let by_name = pairs.iter().map(|[certificate, key]| IdentityFiles {
        certificate: path(certificate).to_owned(),
        key: path(key).to_owned(),
        password: config.tls_key_file_pass.clone(),
    });
    let sessions = (config.tls_session_cache_size as usize, config.tls_session_cache_timeout);
    Ok(ServerSettings {
        identity: own(config),
        by_name: by_name.collect(),
        trust: trust(config),
        clients: match config.tls_auth_clients {
            TlsAuthClients::Yes => ClientCertificates::Required,
            TlsAuthClients::Optional => ClientCertificates::Optional,
            TlsAuthClients::No => ClientCertificates::None,
        },
        choices: choices(config),
        prefers_own_order: config.tls_prefer_server_ciphers,
        sessions: config.tls_session_caching.then_some(sessions),
    })
}

/// The servers that this one connects to have the same authority. Unless the settings say so, their
/// names are not looked at, as in Redis: servers know each other by addresses that no certificate
/// has.
fn of_client(config: &Config) -> ClientSettings {
    let identity = if config.tls_client_cert_file.is_empty() {
        own(config)
    } else {
        IdentityFiles {
            certificate: path(&config.tls_client_cert_file).to_owned(),
            key: path(&config.tls_client_key_file).to_owned(),
            password: config.tls_client_key_file_pass.clone(),
        }
    };
    ClientSettings {
        trust: trust(config),
        identity: (!identity.certificate.as_os_str().is_empty()).then_some(identity),
        verification: if config.tls_verify_names {
            Verification::Name
        } else {
            Verification::Authority
        },
        choices: choices(config),
        alpn: Vec::new(),
    }
}

fn own(config: &Config) -> IdentityFiles {
    IdentityFiles {
        certificate: path(&config.tls_cert_file).to_owned(),
        key: path(&config.tls_key_file).to_owned(),
        password: config.tls_key_file_pass.clone(),
    }
}

fn trust(config: &Config) -> TrustFiles {
    let named = |name: &[u8]| (!name.is_empty()).then(|| path(name).to_owned());
    TrustFiles { file: named(&config.tls_ca_cert_file), directory: named(&config.tls_ca_cert_dir) }
}

fn choices(config: &Config) -> ChoiceWords {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ChoiceWords {
        protocols: text(&config.tls_protocols),
        ciphers: text(&config.tls_ciphers),
        ciphersuites: text(&config.tls_ciphersuites),
    }
}
