//! A stream of bytes to an OMS, over TCP, TLS, a Unix socket or lanes beside one.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tickpath_log::{LanePair, LaneStream};
use tickpath_oms_protocol::Binding;
use tickpath_oms_protocol::tls::TlsStream;

use crate::address::OmsAddress;
use crate::tls::TlsTrust;

/// An open socket.
#[derive(Debug)]
pub(crate) enum OmsSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
    Lanes(Box<LaneStream<UnixStream>>),
}

impl OmsSocket {
    /// Connects, within the timeout for each address of the name.
    pub fn connect(address: &OmsAddress, timeout: Duration) -> io::Result<Self> {
        match address {
            OmsAddress::Tcp { host, port } | OmsAddress::Tls { host, port, .. } => {
                connect_tcp(host, *port, timeout).map(Self::Tcp)
            }
            OmsAddress::Unix(path) | OmsAddress::Lanes(path) => {
                let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
                // With a full backlog, connecting to a Unix socket blocks for the write timeout.
                socket.set_write_timeout(Some(timeout))?;
                socket.connect(&socket2::SockAddr::unix(path)?)?;
                Ok(Self::Unix(OwnedFd::from(socket).into()))
            }
        }
    }

    /// Returns the same connection with TLS.
    pub fn secure(self, trust: TlsTrust) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => trust.secure(stream).map(|tls| Self::Tls(Box::new(tls))),
            Self::Unix(_) | Self::Tls(_) | Self::Lanes(_) => Ok(self),
        }
    }

    /// Switches to the lanes in this memory.
    pub fn open_lanes(self, memory: [OwnedFd; 2]) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Self::Lanes(Box::new(LaneStream::new(stream, LanePair::join(memory)?))))
            }
            Self::Tcp(_) | Self::Tls(_) | Self::Lanes(_) => Ok(self),
        }
    }

    /// Reads, and takes descriptors that arrive with the bytes.
    pub fn receive(&mut self, room: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
        let Self::Unix(stream) = self else { return self.read(room) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(stream, &mut [IoSliceMut::new(room)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        descriptors.extend(control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
            _ => Vec::new(),
        }));
        Ok(got.bytes)
    }

    /// Returns its lanes, if it has them.
    pub fn lanes(&mut self) -> Option<&mut LaneStream<UnixStream>> {
        if let Self::Lanes(lanes) = self { Some(lanes) } else { None }
    }

    /// Advances the TLS handshake by one step; returns true when it is done or not needed.
    pub fn handshake(&mut self) -> io::Result<bool> {
        if let Self::Tls(tls) = self { tls.handshake() } else { Ok(true) }
    }

    /// Returns the channel binding for a logon, if the connection has TLS.
    pub fn binding(&self) -> io::Result<Option<Binding>> {
        if let Self::Tls(tls) = self { tls.binding().map(Some) } else { Ok(None) }
    }

    /// Returns true if bytes may be left to read that a poll of the socket does not show.
    pub fn has_more(&self) -> bool {
        if let Self::Tls(tls) = self { tls.has_more() } else { false }
    }

    /// Returns true if written bytes were not sent yet.
    pub fn wants_write(&self) -> bool {
        if let Self::Tls(tls) = self { tls.wants_write() } else { false }
    }

    /// Sets the timeout of reads and writes.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(timeout)).and(stream.set_write_timeout(Some(timeout))),
            Self::Tls(tls) => {
                let stream = tls.socket();
                stream.set_read_timeout(Some(timeout)).and(stream.set_write_timeout(Some(timeout)))
            }
            Self::Unix(stream) => stream.set_read_timeout(Some(timeout)).and(stream.set_write_timeout(Some(timeout))),
            // Lanes never wait.
            Self::Lanes(_) => Ok(()),
        }
    }

    /// Sets whether reads and writes return at once.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Self::Unix(stream) => stream.set_nonblocking(nonblocking),
            Self::Tls(tls) => tls.socket().set_nonblocking(nonblocking),
            Self::Lanes(_) => Ok(()),
        }
    }
}

impl Read for OmsSocket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
            Self::Tls(tls) => tls.read(room),
            Self::Lanes(lanes) => lanes.read(room),
        }
    }
}

impl Write for OmsSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
            Self::Lanes(lanes) => lanes.write(bytes),
        }
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        if let Self::Tls(tls) = self { tls.flush() } else { Ok(()) }
    }
}

impl AsFd for OmsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(tls) => tls.socket().as_fd(),
            Self::Lanes(lanes) => lanes.socket().as_fd(),
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
