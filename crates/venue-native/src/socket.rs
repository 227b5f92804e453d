//! A nonblocking socket, TCP or Unix; both ends of a line use it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, SockAddr, Type};

use crate::LineAddress;

/// A socket, connected or still connecting.
#[derive(Debug)]
pub enum LineSocket {
    /// TCP, with no delay.
    Tcp(TcpStream),
    /// A Unix socket on this host.
    Unix(UnixStream),
}

impl LineSocket {
    /// Begins to connect. If the name has several addresses, `turn` selects one.
    pub(crate) fn start_connect(address: &LineAddress, turn: usize) -> io::Result<Self> {
        let (domain, to) = match address {
            LineAddress::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
            LineAddress::Tcp { host, port } => {
                let all: Vec<_> = (host.as_str(), *port).to_socket_addrs()?.collect();
                let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                let to = *all.get(turn % all.len().max(1)).ok_or_else(none)?;
                (Domain::for_address(to), SockAddr::from(to))
            }
        };
        let socket = socket2::Socket::new(domain, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&to) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(e) => return Err(e),
        }
        match address {
            LineAddress::Unix(_) => Ok(Self::Unix(OwnedFd::from(socket).into())),
            LineAddress::Tcp { .. } => {
                socket.set_tcp_nodelay(true)?;
                Ok(Self::Tcp(OwnedFd::from(socket).into()))
            }
        }
    }

    pub(crate) fn is_connected(&self) -> io::Result<bool> {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut look = [PollFd::new(self, PollFlags::OUT)];
        poll(&mut look, Some(&at_once))?;
        if look[0].revents().is_empty() {
            return Ok(false);
        }
        let failed = match self {
            Self::Tcp(stream) => stream.take_error()?,
            Self::Unix(stream) => stream.take_error()?,
        };
        failed.map_or(Ok(true), Err)
    }
}

impl Read for LineSocket {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
        }
    }
}

impl Write for LineSocket {
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

impl AsFd for LineSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}
