//! The broker's version, which the client library does not expose.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tickpath_tls::{ClientConnection, StreamOwned, server_name};

use crate::connection::TIMEOUT;
use crate::error::AmqpServerError;
use crate::server::{AmqpHost, AmqpServer};

/// Max bytes read of the broker's first frame.
const MAX_BYTES: usize = 64 << 10;
/// Max characters of a version.
const MAX_VERSION: usize = 64;

/// Returns the version, from the first frame that the broker sends to any client; none if the frame has none.
pub(crate) fn version(server: &AmqpServer) -> io::Result<Option<String>> {
    let mut failed = io::Error::from(io::ErrorKind::NotConnected);
    for host in &server.hosts {
        match dial(server, host, host.port, TIMEOUT).and_then(|mut stream| read_version(&mut *stream)) {
            Ok(version) => return Ok(version),
            Err(e) => failed = e,
        }
    }
    Err(failed)
}

/// Returns true if quorum queues give messages up after too many deliveries: by default from version 4 on.
pub(crate) fn has_default_delivery_limit(server: &AmqpServer) -> Result<bool, AmqpServerError> {
    let version = version(server).map_err(|e| AmqpServerError::from_io(&e))?;
    Ok(version.is_some_and(|version| is_limiting_version(&version)))
}

fn is_limiting_version(version: &str) -> bool {
    let major = version.split('.').next().and_then(|digits| digits.parse::<u32>().ok());
    major.is_some_and(|major| major >= 4)
}

/// A raw connection that is written to and read from without the client library.
pub(crate) trait RawStream: Read + Write {}

impl<T: Read + Write> RawStream for T {}

/// Connects to a port of a host, by TLS where the URL asks for it.
pub fn dial(server: &AmqpServer, host: &AmqpHost, port: u16, patience: Duration) -> io::Result<Box<dyn RawStream>> {
    let mut failed = io::Error::from(io::ErrorKind::NotConnected);
    for address in host.addresses(port).map_err(io::Error::other)? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                let Some(config) = &server.tls else { return Ok(Box::new(stream)) };
                let name = server_name(&host.name).map_err(io::Error::other)?;
                let connection = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
                return Ok(Box::new(StreamOwned::new(connection, stream)));
            }
            Err(e) => failed = e,
        }
    }
    Err(failed)
}

fn read_version(stream: &mut dyn RawStream) -> io::Result<Option<String>> {
    stream.write_all(b"AMQP\0\0\x09\x01")?;
    // The head of a frame: its type, its channel in two bytes, and its length in four.
    let mut head = [0; 7];
    stream.read_exact(&mut head)?;
    let bytes = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    let mut frame = vec![0; bytes.min(MAX_BYTES)];
    stream.read_exact(&mut frame)?;
    let text = String::from_utf8_lossy(&frame);
    // A string in a table: its name, the letter S, its length in four bytes, its bytes.
    Ok(text.split_once("versionS").map(|(_, rest)| {
        let digits = rest.chars().skip(4).take(MAX_VERSION);
        digits.take_while(|c| c.is_ascii_digit() || *c == '.').collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_from_version_4_on_have_a_default_delivery_limit() {
        for (version, has_limit) in [("3.10.8", false), ("3.13.7", false), ("4.0.0", true), ("10.1", true), ("", false)]
        {
            assert_eq!(is_limiting_version(version), has_limit, "{version}");
        }
    }
}
