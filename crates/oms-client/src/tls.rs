//! TLS to an OMS: version 1.3 only, and the certificate must match the requested name.

use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tickpath_oms_protocol::tls::TlsStream;
use tickpath_tls::{NEWEST_VERSION, client_config, server_name};

/// Trusted authorities, and the expected server name.
pub(crate) struct TlsTrust {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsTrust {
    /// Reads the authorities of a file, or takes those that this host trusts; the error is a sentence.
    pub fn read(host: &str, ca: Option<&Path>) -> Result<Self, String> {
        let name = server_name(host)?;
        Ok(Self { config: Arc::new(client_config(ca, None, NEWEST_VERSION)?), name })
    }

    /// Returns a TLS connection that checks the other end against this.
    pub fn secure(self, tcp: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let tls = ClientConnection::new(self.config, self.name).map_err(io::Error::other)?;
        Ok(TlsStream::new(tcp, tls))
    }
}
