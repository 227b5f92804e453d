//! What the broker says of itself, which the client library keeps to itself.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use crate::link::TIMEOUT;
use crate::server::Server;

/// The version, from the first frame that the broker sends to anybody; none if it tells none.
pub(crate) fn version(server: &Server) -> io::Result<Option<String>> {
    let addresses = server.addresses().map_err(io::Error::other)?;
    let connected = addresses.iter().find_map(|address| TcpStream::connect_timeout(address, TIMEOUT).ok());
    let mut stream = connected.ok_or(io::ErrorKind::NotConnected)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
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
