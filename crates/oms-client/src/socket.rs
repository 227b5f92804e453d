//! The socket of a connection to an OMS: how it is opened, and how long it waits.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tickpath_log::{LanePair, LaneStream};
use tickpath_oms_protocol::OrderEntryStream;

use crate::address::OmsAddress;
use crate::tls::TlsTrust;

#[derive(Debug)]
pub(crate) struct OmsSocket(OrderEntryStream<TcpStream, UnixStream, LaneStream<UnixStream>>);

impl OmsSocket {
    /// Connects, within the timeout for each address of the name.
    pub fn connect(address: &OmsAddress, timeout: Duration) -> io::Result<Self> {
        match address {
            OmsAddress::Tcp { host, port } | OmsAddress::Tls { host, port, .. } => {
                connect_tcp(host, *port, timeout).map(|stream| Self(OrderEntryStream::Tcp(stream)))
            }
            OmsAddress::Unix(path) | OmsAddress::Lanes(path) => {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                // With a full backlog, connecting to a Unix socket blocks for the write timeout.
                socket.set_write_timeout(Some(timeout))?;
                socket.connect(&SockAddr::unix(path)?)?;
                Ok(Self(OrderEntryStream::Unix(OwnedFd::from(socket).into())))
            }
        }
    }

    pub fn secure(self, trust: TlsTrust) -> io::Result<Self> {
        match self.0 {
            OrderEntryStream::Tcp(stream) => trust.secure(stream).map(|tls| Self(OrderEntryStream::Tls(Box::new(tls)))),
            other => Ok(Self(other)),
        }
    }

    /// Switches to the lanes in this memory.
    pub fn open_lanes(self, memory: [OwnedFd; 2]) -> io::Result<Self> {
        match self.0 {
            OrderEntryStream::Unix(stream) => {
                stream.set_nonblocking(true)?;
                let lanes = LaneStream::new(stream, LanePair::join(memory)?);
                Ok(Self(OrderEntryStream::Lanes(Box::new(lanes))))
            }
            other => Ok(Self(other)),
        }
    }

    /// Reads, and takes descriptors that arrive with the bytes.
    pub fn receive(&mut self, room: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
        let OrderEntryStream::Unix(stream) = &self.0 else { return self.0.read(room) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(stream, &mut [IoSliceMut::new(room)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        descriptors.extend(control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
            _ => Vec::new(),
        }));
        Ok(got.bytes)
    }

    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        // Lanes never wait.
        if matches!(self.0, OrderEntryStream::Lanes(_)) {
            return Ok(());
        }
        let socket = SockRef::from(self);
        socket.set_read_timeout(Some(timeout)).and(socket.set_write_timeout(Some(timeout)))
    }

    /// Sets whether reads and writes return at once.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        if matches!(self.0, OrderEntryStream::Lanes(_)) {
            return Ok(());
        }
        SockRef::from(self).set_nonblocking(nonblocking)
    }
}

impl Deref for OmsSocket {
    type Target = OrderEntryStream<TcpStream, UnixStream, LaneStream<UnixStream>>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for OmsSocket {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl AsFd for OmsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            OrderEntryStream::Tcp(stream) => stream.as_fd(),
            OrderEntryStream::Unix(stream) => stream.as_fd(),
            OrderEntryStream::Tls(tls) => tls.socket().as_fd(),
            OrderEntryStream::Lanes(lanes) => lanes.socket().as_fd(),
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
