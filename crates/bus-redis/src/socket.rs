//! A stream of bytes to a server, over TCP or a Unix socket.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use crate::server::{Address, ServerError, TIMEOUT};

/// A server that is gone without a word is noticed within a minute, also by who only listens.
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(5));

/// An open socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects; reading and writing wait for [`TIMEOUT`] then.
    pub fn connect(address: &Address) -> Result<Self, ServerError> {
        let socket = match address {
            Address::Tcp { host, port } => Self::Tcp(connect_tcp(host, *port)?),
            // Never waits, unless the server's queue of those who connect is full.
            Address::Unix(path) => Self::Unix(UnixStream::connect(path)?),
        };
        socket.set_write_timeout(TIMEOUT)?;
        socket.set_read_timeout(TIMEOUT)?;
        Ok(socket)
    }

    /// Whether reading and writing return at once.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Self::Unix(stream) => stream.set_nonblocking(nonblocking),
        }
    }

    /// How long reading waits, where it does.
    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(timeout)),
            Self::Unix(stream) => stream.set_read_timeout(Some(timeout)),
        }
    }

    fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(Some(timeout)),
            Self::Unix(stream) => stream.set_write_timeout(Some(timeout)),
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

fn connect_tcp(host: &str, port: u16) -> Result<TcpStream, ServerError> {
    let addresses = (host, port).to_socket_addrs().map_err(ServerError::Unresolved)?;
    let mut last = ServerError::Unresolved(io::Error::from(io::ErrorKind::NotFound));
    for address in addresses {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE)?;
                return Ok(stream);
            }
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}
