//! Reasons for a failed TLS handshake. The client library reports an unknown authority, a wrong name and an expired
//! certificate alike; so the handshake is repeated by a library that distinguishes them.

use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use tickpath_bus_api::url::ClientTlsFiles;
use tickpath_tls::{
    ALL_VERSIONS, ClientConfig, ClientConnection, StreamOwned, client_config, server_name, tls_failure,
};

use crate::server::KafkaEndpoint;

/// Timeout of each step: the server has just been reached, or could not be.
const STEP: Duration = Duration::from_secs(1);

/// Reads the TLS files of a URL, or returns a sentence about what is wrong with them.
pub(crate) fn read_tls_files(files: &ClientTlsFiles) -> Result<ClientConfig, String> {
    let identity = files.identity.as_ref().map(|(cert, key)| (cert.as_path(), key.as_path()));
    client_config(files.ca.as_deref(), identity, ALL_VERSIONS)
}

/// Returns a sentence to follow the server's name, if a TLS handshake with one of the servers fails.
pub(crate) fn failure_reason(server: &KafkaEndpoint) -> Option<String> {
    let config = Arc::new(read_tls_files(server.tls.as_ref()?).ok()?);
    server.addresses().find_map(|(host, port)| shake_hands(host, port, config.clone()))
}

fn shake_hands(host: &str, port: u16, config: Arc<ClientConfig>) -> Option<String> {
    let name = match server_name(host) {
        Ok(name) => name,
        Err(sentence) => return Some(sentence),
    };
    let address = (host, port).to_socket_addrs().ok()?.next()?;
    let socket = TcpStream::connect_timeout(&address, STEP).ok()?;
    socket.set_read_timeout(Some(STEP)).ok()?;
    socket.set_write_timeout(Some(STEP)).ok()?;
    let connection = ClientConnection::new(config, name).ok()?;
    let mut stream = StreamOwned::new(connection, socket);
    // The server sends nothing first, unless it rejects our certificate.
    let failed = stream.read(&mut [0]).err()?;
    tls_failure(&failed, host)
}
