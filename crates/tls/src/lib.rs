//! TLS to a server: trusted authorities, the expected server name, and errors as sentences.
//!
//! ```no_run
//! use std::net::TcpStream;
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use tickpath_tls::{ClientConnection, NEWEST_VERSION, StreamOwned, client_config, describe_error, server_name};
//!
//! let host = "oms.example.com";
//! let config = client_config(Some(Path::new("ca.pem")), None, NEWEST_VERSION)?;
//! let tls = ClientConnection::new(Arc::new(config), server_name(host)?).map_err(|e| describe_error(&e, host))?;
//! let stream = StreamOwned::new(tls, TcpStream::connect((host, 7878)).map_err(|e| e.to_string())?);
//! # Ok::<(), String>(())
//! ```
//!
//! # Features
//!
//! * `authority`: makes certificate authorities and certificates, for tests.

#[cfg(feature = "authority")]
pub mod authority;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, Error, RootCertStore, SupportedProtocolVersion};

pub use rustls::{ClientConfig, ClientConnection, StreamOwned};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// TLS 1.3 and 1.2, which other vendors' servers may still require.
pub const ALL_VERSIONS: &[&SupportedProtocolVersion] = rustls::ALL_VERSIONS;

/// TLS 1.3 only.
pub const NEWEST_VERSION: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// Returns a client's configuration: the authorities of a file, or those that this host trusts, and, for servers that
/// ask for a client certificate, the certificate and its key. All files are PEM; the error is a sentence.
pub fn client_config(
    ca: Option<&Path>,
    identity: Option<(&Path, &Path)>,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ClientConfig, String> {
    let roots = match ca {
        Some(file) => roots(certificates(file, "ca")?, || missing_certificate(file, "ca"))?,
        None => roots(rustls_native_certs::load_native_certs().certs, || {
            "this host trusts no authority; name the file of the server's authority: ?ca=FILE".to_owned()
        })?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .expect("the provider has these versions")
        .with_root_certificates(roots);
    let Some((cert, key)) = identity else { return Ok(config.with_no_client_auth()) };
    let chain = certificates(cert, "cert")?;
    let refused = |why: &dyn std::fmt::Display| {
        format!("{}: {why}; 'key' must be a PEM file with the private key of the certificate", key.display())
    };
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| refused(&e))?;
    config.with_client_auth_cert(chain, private).map_err(|e| refused(&e))
}

/// Returns the name that a server's certificate must have.
pub fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| format!("'{host}' is no name that a certificate can have; write a host's name or address"))
}

/// Returns the TLS error in words, if TLS made a socket fail.
pub fn tls_failure(failed: &io::Error, host: &str) -> Option<String> {
    failed.get_ref()?.downcast_ref::<Error>().map(|error| describe_error(error, host))
}

/// Returns an error of TLS in words, for a client that connects to this host.
pub fn describe_error(error: &Error, host: &str) -> String {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked, CertificateUnknown,
        HandshakeFailure, UnknownCA,
    };
    match error {
        Error::InvalidCertificate(why) => describe_certificate_error(why, host),
        Error::InvalidMessage(_) => "the server does not use TLS; connect without it, or check the port".to_owned(),
        Error::PeerIncompatible(_) => "it supports no version of TLS that this host supports".to_owned(),
        Error::AlertReceived(CertificateRequired) => {
            "it requires a client certificate; name one of its authority and the key: cert=FILE&key=FILE".to_owned()
        }
        Error::AlertReceived(CertificateRevoked) => "it has revoked our certificate; have another one made".to_owned(),
        Error::AlertReceived(CertificateExpired) => "our certificate has expired; have it renewed".to_owned(),
        Error::AlertReceived(
            alert @ (BadCertificate | CertificateUnknown | UnknownCA | AccessDenied | HandshakeFailure),
        ) => format!(
            "it refused our certificate, or wants one ({alert:?}); name one of its authority and the key: \
             cert=FILE&key=FILE"
        ),
        other => format!("{other}; its log may tell more"),
    }
}

fn describe_certificate_error(why: &CertificateError, host: &str) -> String {
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, UnknownIssuer,
    };
    match why {
        // An authority of the same name with another key is not trusted either.
        UnknownIssuer | BadSignature => {
            "its certificate is of no authority that is trusted here; name the file of the authority: ?ca=FILE"
                .to_owned()
        }
        NotValidForName | NotValidForNameContext { .. } => {
            format!("its certificate is not for '{host}'; connect by a name in it, or have one made for this name")
        }
        Expired | ExpiredContext { .. } => "its certificate has expired; have it renewed".to_owned(),
        NotValidYet | NotValidYetContext { .. } => {
            "its certificate is not valid yet; is the clock of this host right?".to_owned()
        }
        other => format!("its certificate is refused: {other}"),
    }
}

/// Returns the authorities among these certificates, or the error if there are none.
fn roots(certificates: Vec<CertificateDer<'static>>, none: impl FnOnce() -> String) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added > 0 { Ok(roots) } else { Err(none()) }
}

/// Reads the certificates of a file, at least one.
fn certificates(file: &Path, option: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let place = file.display();
    let pem = fs::read(file).map_err(|e| format!("{place}: {e}; '{option}' must be a PEM file with a certificate"))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    certificates.ok().filter(|found| !found.is_empty()).ok_or_else(|| missing_certificate(file, option))
}

fn missing_certificate(file: &Path, option: &str) -> String {
    format!("{}: there is no certificate in it; '{option}' must be a PEM file with one", file.display())
}
