//! A bare socket to a Redis server, for measurements without a client library.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A socket whose reads and writes time out.
#[derive(Debug)]
pub enum RedisSocket {
    /// A TCP socket without Nagle's delay.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl RedisSocket {
    /// Connects to the first address of a host and port that accepts.
    pub fn tcp(server: impl ToSocketAddrs, timeout: Duration) -> io::Result<Self> {
        let mut refused = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        for address in server.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(timeout))?;
                    stream.set_write_timeout(Some(timeout))?;
                    return Ok(Self::Tcp(stream));
                }
                Err(e) => refused = e,
            }
        }
        Err(refused)
    }

    /// Connects to a Unix socket.
    pub fn unix(path: &Path, timeout: Duration) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self::Unix(stream))
    }

    /// Sets whether calls return at once instead of waiting.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Self::Unix(stream) => stream.set_nonblocking(nonblocking),
        }
    }
}

impl Read for RedisSocket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for RedisSocket {
    #[inline]
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

impl AsRawFd for RedisSocket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }
}
