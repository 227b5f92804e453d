//! TLS to an OMS: version 1.3 and no other, and the certificate must be for the name that was asked for.

use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tickpath_session::tls::Secure;
use tickpath_tls::{NEWEST_VERSION, client_config, server_name};

/// Whom to trust, and who it must be.
pub(crate) struct Trust {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Trust {
    /// In the authorities of a file, or in those that this host trusts; the error is a sentence.
    pub fn read(host: &str, ca: Option<&Path>) -> Result<Self, String> {
        let name = server_name(host)?;
        Ok(Self { config: Arc::new(client_config(ca, None, NEWEST_VERSION)?), name })
    }

    /// A connection that holds the other end to this.
    pub fn secure(self, tcp: TcpStream) -> io::Result<Secure<TcpStream>> {
        let tls = ClientConnection::new(self.config, self.name).map_err(io::Error::other)?;
        Ok(Secure::new(tcp, tls))
    }
}

/// Why there is no TLS, if that is why a socket failed.
pub(crate) fn why_not(failed: &io::Error, host: &str) -> Option<String> {
    tickpath_tls::why_not(failed, host)
}
