//! What the broker says of itself, which the client library keeps to itself.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use tickpath_tls::{ClientConnection, StreamOwned, server_name};

use crate::link::TIMEOUT;
use crate::server::{Host, Server};

/// The version, from the first frame that the broker sends to anybody; none if it tells none.
pub(crate) fn version(server: &Server) -> io::Result<Option<String>> {
    let mut failed = io::Error::from(io::ErrorKind::NotConnected);
    for host in server.hosts() {
        match version_of(server, host) {
            Ok(version) => return Ok(version),
            Err(e) => failed = e,
        }
    }
    Err(failed)
}

fn version_of(server: &Server, host: &Host) -> io::Result<Option<String>> {
    let addresses = host.addresses().map_err(io::Error::other)?;
    let connected = addresses.iter().find_map(|address| TcpStream::connect_timeout(address, TIMEOUT).ok());
    let mut stream = connected.ok_or(io::ErrorKind::NotConnected)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let Some(config) = server.tls() else { return ask(&mut stream) };
    let name = server_name(host.name()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
    ask(&mut StreamOwned::new(connection, stream))
}

fn ask(stream: &mut (impl Read + Write)) -> io::Result<Option<String>> {
    stream.write_all(b"AMQP\0\0\x09\x01")?;
    let mut frame = vec![0; 4096];
    let read = stream.read(&mut frame)?;
    let text = String::from_utf8_lossy(&frame[..read]);
    // A table's text: its name, the letter S, its length in four bytes, its bytes.
    Ok(text.split_once("versionS").map(|(_, rest)| {
        let digits = rest.chars().skip(4);
        digits.take_while(|c| c.is_ascii_digit() || *c == '.').collect()
    }))
}
