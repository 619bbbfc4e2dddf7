//! What a server goes by: its certificates, whose clients it takes, and what it offers.

use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert,
    WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{ConfigBuilder, ServerConfig, WantsVerifier};

use crate::certificate::Expiry;
pub use crate::choices::ChoiceWords;
use crate::choices::Choices;
pub use crate::identity::IdentityFiles;
use crate::sessions::Sessions;
pub use crate::trust::TrustFiles;

/// Whether clients show a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They must.
    #[default]
    Required,
    /// They may. One that is not believed is refused all the same.
    Optional,
    /// They are not asked.
    None,
}

/// The settings of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// Who it is.
    pub identity: IdentityFiles,
    /// Who it is for clients that ask for another name.
    pub by_name: Vec<IdentityFiles>,
    /// Whose clients it takes.
    pub trust: TrustFiles,
    /// Whether clients show a certificate.
    pub clients: ClientCertificates,
    /// Versions and ciphers.
    pub choices: ChoiceWords,
    /// Go by its own order of ciphers.
    pub prefers_own_order: bool,
    /// How many sessions can be resumed (0 for no bound) and for how many seconds, or nothing.
    pub sessions: Option<(usize, u32)>,
}

/// What a server goes by. New connections take it; those that are open keep the one they have.
pub struct Server {
    /// For the protocol of Redis.
    pub plain: Arc<ServerConfig>,
    /// For HTTP/1.1.
    pub http: Arc<ServerConfig>,
    /// Until when its certificates hold.
    pub expiries: Vec<Expiry>,
}

impl ServerSettings {
    /// Reads the files and understands the settings.
    ///
    /// # Errors
    /// Something is missing or wrong.
    pub fn read(&self) -> Result<Server, String> {
        if self.identity.certificate.as_os_str().is_empty() {
            return Err("No tls-cert-file configured!".to_owned());
        }
        if self.identity.key.as_os_str().is_empty() {
            return Err("No tls-key-file configured!".to_owned());
        }
        let Choices { versions, provider } = self.choices.read_for_server()?;
        let first = self.identity.read("server", &provider)?;
        let mut expiries: Vec<Expiry> = first.expiry.into_iter().collect();
        let mut by_name = Vec::new();
        for files in &self.by_name {
            let other = files.read("server", &provider)?;
            expiries.extend(other.expiry);
            by_name.push(other.key);
        }
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|error| error.to_string())?;
        let builder = match self.clients {
            ClientCertificates::None => builder.with_no_client_auth(),
            asked => self.with_clients(builder, asked, &mut expiries, &provider)?,
        };
        let certificates = Certificates { first: first.key, by_name };
        let mut plain = builder.with_cert_resolver(Arc::new(certificates));
        plain.ignore_client_order = self.prefers_own_order;
        match self.sessions {
            Some((most, seconds)) => {
                plain.session_storage = Arc::new(Sessions::new(most, seconds));
                // Each connection gives its client as many as it uses up: a second one would cost
                // as much as the first, and most clients never use any.
                plain.send_tls13_tickets = 1;
            }
            None => {
                plain.session_storage = Arc::new(NoServerSessionStorage {});
                plain.send_tls13_tickets = 0;
            }
        }
        let mut http = plain.clone();
        http.alpn_protocols = vec![b"http/1.1".to_vec()];
        if let Some((most, seconds)) = self.sessions {
            http.session_storage = Arc::new(Sessions::new(most, seconds));
        }
        Ok(Server { plain: Arc::new(plain), http: Arc::new(http), expiries })
    }

    fn with_clients(
        &self,
        builder: ConfigBuilder<ServerConfig, WantsVerifier>,
        asked: ClientCertificates,
        expiries: &mut Vec<Expiry>,
        provider: &Arc<rustls::crypto::CryptoProvider>,
    ) -> Result<ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>, String> {
        if self.trust.is_empty() {
            return Err("Either tls-ca-cert-file or tls-ca-cert-dir must be specified when \
                        tls-cluster, tls-replication or tls-auth-clients are enabled!"
                .to_owned());
        }
        let trust = self.trust.read()?;
        expiries.extend(trust.expiry);
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::new(trust.roots),
            Arc::clone(provider),
        );
        let verifier = match asked {
            ClientCertificates::Optional => verifier.allow_unauthenticated(),
            _ => verifier,
        };
        let verifier = verifier.build().map_err(|error| error.to_string())?;
        Ok(builder.with_client_cert_verifier(verifier))
    }
}

/// The certificates of a server, of which a client gets the one for the name that it asks for.
#[derive(Debug)]
struct Certificates {
    first: Arc<CertifiedKey>,
    by_name: Vec<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let chosen = name.and_then(|name| self.by_name.iter().find(|own| is_for(own, &name)));
        Some(Arc::clone(chosen.unwrap_or(&self.first)))
    }
}

/// Whether a certificate is for this name.
fn is_for(own: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let parsed = own.cert.first().and_then(|first| ParsedCertificate::try_from(first).ok());
    parsed.is_some_and(|parsed| verify_server_name(&parsed, name).is_ok())
}
