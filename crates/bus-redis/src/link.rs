//! A subscriber's own connection: a socket that can be looked at without waiting, and slept on in the kernel.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::resp::{self, Item, Reply};
use crate::server::{Server, ServerError, TIMEOUT};

/// Room for incoming bytes at the start; it grows with the messages.
const BUFFER_BYTES: usize = 64 << 10;

/// A read is not worth its system call with less room than this.
const READ_BYTES: usize = 16 << 10;

/// A connection, logged in.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    /// Bytes that have come and are not consumed lie at `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    mode: Mode,
}

/// What the socket does when there is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Returns,
    Sleeps(Duration),
}

impl Link {
    /// Connects and logs in.
    pub fn open(server: &Server) -> Result<Self, ServerError> {
        let stream = connect(server.address())?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut link = Self { stream, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, mode: Mode::Sleeps(TIMEOUT) };
        match server.login() {
            Some((Some(user), password)) => link.ask(&["AUTH", user, password], is_status)?,
            Some((None, password)) => link.ask(&["AUTH", password], is_status)?,
            None => {}
        }
        if server.database() != 0 {
            link.ask(&["SELECT", &server.database().to_string()], is_status)?;
        }
        Ok(link)
    }

    /// Asks for a sign of life.
    pub fn ping(&mut self) -> Result<(), ServerError> {
        self.ask(&["PING"], |items| items == [Item::Status(b"PONG")])
    }

    /// Subscribes; returns when the server has confirmed, so that nothing that is published later is missed.
    pub fn subscribe(&mut self, channel: &str) -> Result<(), ServerError> {
        self.ask(&["SUBSCRIBE", channel], |items| items.first() == Some(&Item::Bulk(b"subscribe")))
    }

    /// The oldest whole reply that has come, and its length for [`Self::consume`].
    #[inline]
    pub fn reply(&self) -> Result<Option<(Reply<'_>, usize)>, ServerError> {
        Ok(resp::parse(&self.buffer[self.start..self.end])?)
    }

    /// Forgets the oldest bytes.
    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Takes in what has come; false if nothing has. Never waits.
    pub fn receive(&mut self) -> Result<bool, ServerError> {
        self.set_mode(Mode::Returns)?;
        self.read()
    }

    /// Takes in what comes; false if nothing came for so long.
    pub fn receive_within(&mut self, timeout: Duration) -> Result<bool, ServerError> {
        self.set_mode(Mode::Sleeps(timeout.max(Duration::from_micros(1))))?;
        self.read()
    }

    /// Sends a command and waits for its reply, which `good` must know.
    fn ask(&mut self, parts: &[&str], good: fn(&[Item<'_>]) -> bool) -> Result<(), ServerError> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        let mut command = Vec::new();
        resp::command(&mut command, &parts);
        self.stream.write_all(&command)?;
        loop {
            let answer = self.reply()?.map(|(reply, length)| (judge(&reply, good), length));
            if let Some((judgement, length)) = answer {
                self.consume(length);
                return judgement;
            }
            if !self.receive_within(TIMEOUT)? {
                return Err(ServerError::Timeout);
            }
        }
    }

    fn read(&mut self) -> Result<bool, ServerError> {
        self.make_room();
        loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(ServerError::Closed),
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(true);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(false),
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.buffer.len() - self.end < READ_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < READ_BYTES {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    /// Changes the mode only if it differs: each change is one or two system calls.
    fn set_mode(&mut self, mode: Mode) -> io::Result<()> {
        if self.mode == mode {
            return Ok(());
        }
        if (self.mode == Mode::Returns) != (mode == Mode::Returns) {
            self.stream.set_nonblocking(mode == Mode::Returns)?;
        }
        if let Mode::Sleeps(timeout) = mode {
            self.stream.set_read_timeout(Some(timeout))?;
        }
        self.mode = mode;
        Ok(())
    }
}

fn connect((host, port): (&str, u16)) -> Result<TcpStream, ServerError> {
    let addresses = (host, port).to_socket_addrs().map_err(ServerError::Unresolved)?;
    let mut last = ServerError::Unresolved(io::Error::from(io::ErrorKind::NotFound));
    for address in addresses {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}

fn judge(reply: &Reply<'_>, good: fn(&[Item<'_>]) -> bool) -> Result<(), ServerError> {
    match reply.items() {
        [Item::Error(line)] => Err(ServerError::from_line(line)),
        items if good(items) => Ok(()),
        _ => Err(ServerError::NotRedis("an unexpected reply".to_owned())),
    }
}

fn is_status(items: &[Item<'_>]) -> bool {
    matches!(items, [Item::Status(_)])
}
