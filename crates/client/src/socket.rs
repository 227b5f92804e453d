//! A stream of bytes to an OMS, over TCP or a Unix socket.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::address::Address;

/// An open socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects, within the time for each address that the name has.
    pub fn connect(address: &Address, timeout: Duration) -> io::Result<Self> {
        match address {
            Address::Tcp { host, port } => connect_tcp(host, *port, timeout).map(Self::Tcp),
            Address::Unix(path) => {
                let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
                // Where many wait to be taken, connecting waits as writing does.
                socket.set_write_timeout(Some(timeout))?;
                socket.connect(&socket2::SockAddr::unix(path)?)?;
                Ok(Self::Unix(OwnedFd::from(socket).into()))
            }
        }
    }

    /// How long reading and writing wait.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(timeout)).and(stream.set_write_timeout(Some(timeout))),
            Self::Unix(stream) => stream.set_read_timeout(Some(timeout)).and(stream.set_write_timeout(Some(timeout))),
        }
    }

    /// Whether reading and writing return at once.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Self::Unix(stream) => stream.set_nonblocking(nonblocking),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

fn connect_tcp(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}
