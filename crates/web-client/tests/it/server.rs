//! Servers of one connection each, on threads.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;
use tickpath_tls::authority::TestAuthority;
use tungstenite::WebSocket;

/// Both names of this host.
pub const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

/// A stream to a client, encrypted or not.
pub type Peer = Box<dyn ReadWrite>;

pub trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

/// An authority with its files.
pub struct Certificates {
    authority: TestAuthority,
    _folder: TempDir,
}

impl Certificates {
    pub fn make() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        Self { authority: TestAuthority::new(folder.path(), "authority"), _folder: folder }
    }

    /// Returns the file of the authority.
    pub fn ca(&self) -> PathBuf {
        self.authority.certificate_file()
    }

    /// Returns the configuration of a server whose certificate has these names.
    pub fn server(&self, names: &[&str]) -> Arc<ServerConfig> {
        let identity = self.authority.certify("server", names);
        let chain = CertificateDer::pem_file_iter(&identity.cert).and_then(Iterator::collect).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(&identity.key).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .expect("the provider has these versions")
            .with_no_client_auth()
            .with_single_cert(chain, key);
        Arc::new(config.expect("the key belongs to the certificate"))
    }
}

/// Serves one connection with `work`. Returns the port and the thread.
pub fn serve<T: Send + 'static>(
    tls: Option<Arc<ServerConfig>>,
    work: impl FnOnce(Peer) -> T + Send + 'static,
) -> (u16, JoinHandle<T>) {
    let (listener, port) = listen();
    (port, thread::spawn(move || work(accept_tcp(&listener, tls))))
}

/// Listens on a free port.
pub fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let port = listener.local_addr().expect("it listens").port();
    (listener, port)
}

/// Returns a port on which nothing listens.
pub fn closed_port() -> u16 {
    listen().1
}

/// Accepts a connection. A read of it is bounded.
pub fn accept_tcp(listener: &TcpListener, tls: Option<Arc<ServerConfig>>) -> Peer {
    let (tcp, _) = listener.accept().expect("a client connects");
    tcp.set_nodelay(true).expect("it is a TCP socket");
    tcp.set_read_timeout(Some(Duration::from_secs(30))).expect("a bound is valid");
    match tls {
        Some(config) => Box::new(secured(tcp, config)),
        None => Box::new(tcp),
    }
}

fn secured(tcp: TcpStream, config: Arc<ServerConfig>) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(config).expect("a good configuration"), tcp)
}

/// Accepts a WebSocket on a connection.
pub fn upgrade(peer: Peer) -> WebSocket<Peer> {
    tungstenite::accept(peer).expect("the client asks for a WebSocket")
}

/// Reads the head of an HTTP request, up to its empty line.
pub fn read_head(peer: &mut Peer) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        peer.read_exact(&mut byte).expect("the client sends a request");
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("a request is text")
}

/// Reads until the client has ended the connection.
pub fn wait_for_end(peer: &mut Peer) {
    let mut room = [0; 4096];
    while peer.read(&mut room).is_ok_and(|bytes| bytes > 0) {}
}
