//! The server's certificate, of an authority that exists for this server only.

use std::fs;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tickpath_tls::ALL_VERSIONS;
use tickpath_tls::authority::TestAuthority;

use crate::WebServerError;

/// Names in the certificate.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// Certificate of a server, ready for TLS, with its authority.
pub(crate) struct ServerIdentity {
    pub(crate) config: Arc<ServerConfig>,
    /// The authority's own certificate.
    pub(crate) authority_pem: String,
}

impl ServerIdentity {
    /// Makes an authority and a certificate. Their files are deleted before the call returns.
    pub(crate) fn make() -> Result<Self, WebServerError> {
        let folder = tempfile::tempdir().map_err(WebServerError::Certificate)?;
        let authority = TestAuthority::new(folder.path(), "authority");
        let certificate = authority.certify("server", &NAMES);
        let authority_pem = fs::read_to_string(authority.certificate_file()).map_err(WebServerError::Certificate)?;
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&certificate.cert)
            .and_then(Iterator::collect)
            .expect("the authority has written a certificate");
        let key = PrivateKeyDer::from_pem_file(&certificate.key).expect("the authority has written a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(ALL_VERSIONS)
            .expect("the provider has these versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("the key belongs to the certificate");
        Ok(Self { config: Arc::new(config), authority_pem })
    }
}
