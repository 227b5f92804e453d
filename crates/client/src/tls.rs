//! TLS to an OMS: version 1.3 and no other, and the certificate must be for the name that was asked for.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, ClientConnection, Error, RootCertStore};
use tickpath_session::tls::Secure;

/// Whom to trust, and who it must be.
pub(crate) struct Trust {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Trust {
    /// In the authorities of a file, or in those that this host trusts; the error is a sentence.
    pub fn read(host: &str, ca: Option<&Path>) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("'{host}' is no name that a certificate can have; write a host's name or address"))?;
        let roots = ca.map_or_else(of_this_host, of_file)?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("the provider has TLS 1.3");
        Ok(Self { config: Arc::new(config.with_root_certificates(roots).with_no_client_auth()), name })
    }

    /// A connection that holds the other end to this.
    pub fn secure(self, tcp: TcpStream) -> io::Result<Secure<TcpStream>> {
        let tls = ClientConnection::new(self.config, self.name).map_err(io::Error::other)?;
        Ok(Secure::new(tcp, tls))
    }
}

/// Why there is no TLS, if that is why a socket failed.
pub(crate) fn why_not(failed: &io::Error, host: &str) -> Option<String> {
    let error = failed.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(why) => of_certificate(why, host),
        Error::InvalidMessage(_) => {
            "what answers there speaks no TLS; write tcp:// instead of tls:// if the OMS has no [tls]".to_owned()
        }
        Error::PeerIncompatible(_) => "it does not speak TLS 1.3; is it a Tickpath OMS?".to_owned(),
        other => format!("{other}; the log of the OMS may tell more"),
    })
}

fn of_certificate(why: &CertificateError, host: &str) -> String {
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, UnknownIssuer,
    };
    match why {
        // One of the same name that is another is no better.
        UnknownIssuer | BadSignature => {
            "its certificate is of no authority that is trusted here; name the file of the authority: ?ca=FILE"
                .to_owned()
        }
        NotValidForName | NotValidForNameContext { .. } => {
            format!(
                "its certificate is not for '{host}'; connect by a name that is in it, or have one made for this name"
            )
        }
        Expired | ExpiredContext { .. } => "its certificate has expired; have it renewed".to_owned(),
        NotValidYet | NotValidYetContext { .. } => {
            "its certificate is not valid yet; is the clock of this host right?".to_owned()
        }
        other => format!("its certificate is refused: {other}"),
    }
}

fn of_file(file: &Path) -> Result<RootCertStore, String> {
    let place = file.display();
    let pem =
        fs::read(file).map_err(|e| format!("{place}: {e}; 'ca' must be a file with the authority's certificate"))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(certificates.unwrap_or_default());
    match taken {
        0 => Err(format!("{place}: there is no certificate in it; 'ca' must be a PEM file with the authority's")),
        _ => Ok(roots),
    }
}

fn of_this_host() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match taken {
        0 => Err("this host trusts no authority; name the file of the OMS's authority: ?ca=FILE".to_owned()),
        _ => Ok(roots),
    }
}
