//! Clients that write and read bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use crate::running::{Running, TIMEOUT};

/// Head of a valid request for a WebSocket.
pub const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
                           Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Connects; a read is bounded.
pub fn connect(server: &Running) -> TcpStream {
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).expect("the server listens");
    tcp.set_nodelay(true).expect("it is a TCP socket");
    tcp.set_read_timeout(Some(TIMEOUT)).expect("a bound is valid");
    tcp
}

/// Connects, and upgrades to a WebSocket.
pub fn upgrade(server: &Running) -> TcpStream {
    let mut tcp = connect(server);
    tcp.write_all(UPGRADE.as_bytes()).expect("the server reads");
    let head = read_head(&mut tcp);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
    tcp
}

/// Reads the head of an answer, up to its empty line.
pub fn read_head(tcp: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        tcp.read_exact(&mut byte).expect("the server answers");
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("an answer is text")
}

/// Reads an answer with a body: its head, and the body.
pub fn read_answer(tcp: &mut TcpStream) -> (String, String) {
    let head = read_head(tcp);
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("an answer has a length");
    let mut body = vec![0; length.parse().expect("a length is a number")];
    tcp.read_exact(&mut body).expect("the server sends the body");
    (head, String::from_utf8(body).expect("a body is text"))
}

/// Reads until the server has ended the connection.
pub fn read_to_end(tcp: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match tcp.read_to_end(&mut bytes) {
        Ok(_) => {}
        // The server may end a connection with unread input.
        Err(e) => assert!(e.kind() == ErrorKind::ConnectionReset, "the server has not ended the connection: {e}"),
    }
    bytes
}

/// Returns a frame of a client, masked with zeros.
pub fn frame(first: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match content.len() {
        short @ 0..126 => bytes.push(0x80 | short as u8),
        long => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(content);
    bytes
}
