//! TCP connections of the echo acceptor, polled by one thread.
//!
//! A connection gets the session with its first bytes. While another connection has the session, those bytes end the
//! new one: a peer has one connection at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::echo_session::EchoSession;

/// Max connections that have sent nothing yet, and the time after which they are closed.
const MAX_SILENT: usize = 16;
const MAX_SILENCE_NS: u64 = 10_000_000_000;
/// Max time for the last output of a connection that ends.
const MAX_CLOSE_NS: u64 = 1_000_000_000;
/// Max bytes of a read, and reads of a connection in a turn.
const READ_BYTES: usize = 64 * 1024;
const MAX_READS: usize = 16;

/// The acceptor.
pub struct Server {
    listener: TcpListener,
    echo: EchoSession,
    current: Option<Current>,
    silent: Vec<Silent>,
    buffer: Box<[u8]>,
}

/// The connection that has the session.
struct Current {
    stream: TcpStream,
    /// Time at which the session ended the connection.
    ended_ns: Option<u64>,
}

/// A connection that has sent nothing yet.
struct Silent {
    stream: TcpStream,
    since_ns: u64,
}

/// Result of a read that does not wait.
enum ReadOutcome {
    Bytes(usize),
    Nothing,
    Closed,
}

impl Server {
    /// Listens at an address.
    pub fn listen(address: &str, echo: EchoSession) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        Ok(Self { listener, echo, current: None, silent: Vec::new(), buffer })
    }

    /// Returns the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Takes a turn at this time, in nanoseconds since the Unix epoch: accepts, receives, sends. Returns whether there
    /// was something to do.
    pub fn turn(&mut self, now_ns: u64) -> io::Result<bool> {
        let has_accepted = self.accept(now_ns)?;
        let has_read = self.read_current(now_ns);
        let has_begun = self.read_silent(now_ns);
        if self.current.is_some() && !self.echo.has_ended() {
            self.echo.poll(now_ns);
        }
        let has_sent = self.send(now_ns);
        Ok(has_accepted || has_read || has_begun || has_sent)
    }

    fn accept(&mut self, now_ns: u64) -> io::Result<bool> {
        let mut has_accepted = false;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    has_accepted = true;
                    let is_ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_ok();
                    if is_ready && self.silent.len() < MAX_SILENT {
                        self.silent.push(Silent { stream, since_ns: now_ns });
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(has_accepted),
                // The peer was gone before the connection was accepted.
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Reads what the connection with the session has sent.
    fn read_current(&mut self, now_ns: u64) -> bool {
        let mut has_read = false;
        for _ in 0..MAX_READS {
            let Some(current) = &mut self.current else { break };
            match read(&mut current.stream, &mut self.buffer) {
                ReadOutcome::Bytes(_) if self.echo.has_ended() => {}
                ReadOutcome::Bytes(count) => self.echo.receive(&self.buffer[..count], now_ns),
                ReadOutcome::Nothing => break,
                ReadOutcome::Closed => self.close_current(now_ns),
            }
            has_read = true;
        }
        has_read
    }

    /// Gives the session to a connection that has sent its first bytes, if no other connection has it.
    fn read_silent(&mut self, now_ns: u64) -> bool {
        let mut has_read = false;
        for mut silent in std::mem::take(&mut self.silent) {
            match read(&mut silent.stream, &mut self.buffer) {
                ReadOutcome::Bytes(count) => {
                    has_read = true;
                    let first = self.buffer[..count].to_vec();
                    self.begin(silent.stream, &first, now_ns);
                }
                ReadOutcome::Nothing if now_ns.saturating_sub(silent.since_ns) < MAX_SILENCE_NS => {
                    self.silent.push(silent);
                }
                ReadOutcome::Nothing | ReadOutcome::Closed => has_read = true,
            }
        }
        has_read
    }

    fn begin(&mut self, stream: TcpStream, first: &[u8], now_ns: u64) {
        // The peer may have closed the connection before since it was read.
        self.read_current(now_ns);
        if self.current.is_some() {
            eprintln!("echo: a second connection is refused");
            return;
        }
        self.current = Some(Current { stream, ended_ns: None });
        self.echo.connected(now_ns);
        self.echo.receive(first, now_ns);
    }

    /// Sends the output, as far as the peer takes it, and closes the connection once the session has ended.
    fn send(&mut self, now_ns: u64) -> bool {
        let Some(current) = &mut self.current else { return false };
        let output = self.echo.output();
        let mut has_sent = false;
        while !output.is_empty() {
            match current.stream.write(output) {
                Ok(count) if count > 0 => {
                    output.drain(..count);
                    has_sent = true;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                _ => {
                    self.close_current(now_ns);
                    return true;
                }
            }
        }
        let is_sent = output.is_empty();
        if self.echo.has_ended() {
            let ended_ns = *current.ended_ns.get_or_insert(now_ns);
            if is_sent || now_ns.saturating_sub(ended_ns) > MAX_CLOSE_NS {
                self.close_current(now_ns);
                return true;
            }
        }
        has_sent
    }

    fn close_current(&mut self, now_ns: u64) {
        let Some(mut current) = self.current.take() else { return };
        // Bytes that stay unread would reset the connection, and the peer might lose the last output.
        for _ in 0..MAX_READS {
            if !matches!(read(&mut current.stream, &mut self.buffer), ReadOutcome::Bytes(_)) {
                break;
            }
        }
        self.echo.disconnected(now_ns);
    }
}

fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> ReadOutcome {
    loop {
        return match stream.read(buffer) {
            Ok(0) => ReadOutcome::Closed,
            Ok(count) => ReadOutcome::Bytes(count),
            Err(e) if e.kind() == ErrorKind::WouldBlock => ReadOutcome::Nothing,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => ReadOutcome::Closed,
        };
    }
}
