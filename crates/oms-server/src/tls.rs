//! The certificate of the acceptor, from its files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, Error, RootCertStore, ServerConnection};
use tickpath_clock::{rfc3339, utc_ns};
use tickpath_oms_protocol::tls::server_config;
use zeroize::Zeroizing;

use super::file::file_stamp;

/// Files of the certificate and its key; both are PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTlsFiles {
    /// The server's certificate, then those of the authorities between it and the authority that clients trust.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
}

pub(crate) struct ServerCertificate {
    files: ServerTlsFiles,
    config: Arc<rustls::ServerConfig>,
    /// Modification times and lengths of the files: as they were read, and at the last check.
    read: TlsFileStamps,
    seen: TlsFileStamps,
}

/// Time before the expiry of a certificate within which the operator is warned.
const EXPIRY_WARNING: Duration = Duration::from_secs(30 * 86_400);

type TlsFileStamps = [Option<(SystemTime, u64)>; 2];

/// Reason why these files cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing, or may not be read.
    #[error("{0}: {1}; it must be a PEM file that the OMS may read")]
    Unreadable(PathBuf, io::Error),
    /// There is no certificate in the file.
    #[error("{0}: there is no certificate in it; it must be a PEM file that begins with the server's")]
    NoCertificate(PathBuf),
    /// There is no key in the file.
    #[error("{0}: there is no private key in it; it must be a PEM file with one that has no password")]
    NoKey(PathBuf),
    /// The key does not belong to the certificate.
    #[error("the key in {key} does not belong to the certificate in {certificate}; name two that were made together")]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The certificate has expired.
    #[error(
        "{file}: the certificate has expired on {date}, {days} days ago; renew it: a running OMS loads the new one by \
         itself"
    )]
    Expired {
        /// The certificate's file.
        file: PathBuf,
        /// Date of expiry, as year, month and day.
        date: String,
        /// Days since the expiry.
        days: u64,
    },
    /// The certificate is not valid yet.
    #[error("{0}: the certificate is not valid yet; is the clock of this host right?")]
    NotYet(PathBuf),
    /// The certificate is an authority's, not a server's.
    #[error(
        "{0}: the certificate is an authority's own (CA:TRUE), which clients refuse of a server; have one made with CA:FALSE"
    )]
    Authority(PathBuf),
    /// The certificate or its key cannot be used for another reason.
    #[error("{0}: {1}; have a new certificate made, of version 3, with an RSA, ECDSA or Ed25519 key")]
    Unusable(PathBuf, String),
}

impl ServerTlsFiles {
    /// Checks whether the files can be used now.
    pub fn check(&self) -> Result<(), TlsError> {
        self.read().map(drop)
    }

    /// Returns a warning if the certificate is valid now and expires soon.
    pub fn expiry_warning(&self) -> Option<String> {
        let chain = self.chain().ok()?;
        let soon = Duration::from_nanos(utc_ns()) + EXPIRY_WARNING;
        match self.check_time(&chain, soon) {
            Err(TlsError::Expired { file, date, .. }) => Some(format!(
                "{}: the certificate expires on {date}; renew it before: a running OMS loads the new one by itself",
                file.display()
            )),
            _ => None,
        }
    }

    pub(crate) fn read(&self) -> Result<Arc<rustls::ServerConfig>, TlsError> {
        let Self { certificate, key } = self;
        let chain = self.chain()?;
        let text = Zeroizing::new(bytes(key)?);
        let secret = PrivateKeyDer::from_pem_slice(&text).map_err(|_| TlsError::NoKey(key.clone()))?;
        self.check_time(&chain, Duration::from_nanos(utc_ns()))?;
        let config = server_config(chain, secret).map_err(|e| match e {
            Error::InconsistentKeys(_) => TlsError::Mismatch { certificate: certificate.clone(), key: key.clone() },
            Error::InvalidCertificate(_) => unusable(certificate, &e),
            _ => unusable(key, &e),
        })?;
        Ok(Arc::new(config))
    }

    /// Returns the server's certificate, then the others of its file.
    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(&self.certificate)?).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        chain.ok_or_else(|| TlsError::NoCertificate(self.certificate.clone()))
    }

    /// Checks the certificate for a time since the Unix epoch; other doubts than its validity are left to the client.
    fn check_time(&self, chain: &[CertificateDer<'static>], now: Duration) -> Result<(), TlsError> {
        let file = &self.certificate;
        let mut roots = RootCertStore::empty();
        let last = chain.last().expect("a chain has one at least");
        roots.add(last.clone()).map_err(|e| unusable(file, &e))?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()));
        let verifier = verifier.build().map_err(|e| TlsError::Unusable(file.clone(), e.to_string()))?;
        let now = UnixTime::since_unix_epoch(now);
        let name = ServerName::try_from("localhost").expect("a name");
        match verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], now) {
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after })) => {
                let days = time.as_secs().saturating_sub(not_after.as_secs()) / 86_400;
                Err(TlsError::Expired {
                    file: file.clone(),
                    date: rfc3339(not_after.as_secs() * 1_000_000_000)[..10].to_owned(),
                    days,
                })
            }
            Err(Error::InvalidCertificate(CertificateError::NotValidYetContext { .. })) => {
                Err(TlsError::NotYet(file.clone()))
            }
            // The crate names this error only by the error of the crate below it.
            Err(Error::InvalidCertificate(CertificateError::Other(why)))
                if format!("{why:?}").contains("CaUsedAsEndEntity") =>
            {
                Err(TlsError::Authority(file.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl ServerCertificate {
    pub fn read(files: &ServerTlsFiles) -> Result<Self, TlsError> {
        let read = file_stamps(files);
        Ok(Self { files: files.clone(), config: files.read()?, read, seen: read })
    }

    /// Begins TLS for a connection, with the current certificate.
    pub fn begin(&self) -> Result<ServerConnection, Error> {
        ServerConnection::new(self.config.clone())
    }

    /// Reads changed files again, once they are as they were at the last check: two files are never written at once.
    pub fn reload_if_changed(&mut self) -> Result<(), TlsError> {
        let now = file_stamps(&self.files);
        let rests = now == std::mem::replace(&mut self.seen, now);
        if rests && now != self.read {
            self.read = now;
            self.config = self.files.read()?;
        }
        Ok(())
    }
}

fn file_stamps(files: &ServerTlsFiles) -> TlsFileStamps {
    [file_stamp(&files.certificate), file_stamp(&files.key)]
}

fn bytes(file: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(file).map_err(|reason| TlsError::Unreadable(file.to_owned(), reason))
}

fn unusable(file: &Path, reason: &Error) -> TlsError {
    TlsError::Unusable(file.to_owned(), reason.to_string())
}
