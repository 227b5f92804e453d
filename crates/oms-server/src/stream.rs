//! The socket of a client, of any kind.

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tickpath_log::{LanePair, LaneStream};
use tickpath_oms_protocol::Binding;
use tickpath_oms_protocol::tls::TlsStream;

use crate::origin::PeerOrigin;

/// A non-blocking socket.
#[derive(Debug)]
pub(crate) enum ClientStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Large and rare: a pointer, so that the other variants stay small.
    Tls(Box<TlsStream<TcpStream>>),
    /// A Unix socket with lanes in shared memory beside it.
    Lanes(Box<LaneStream<UnixStream>>),
}

impl ClientStream {
    /// Returns the peer's address as text.
    pub fn peer(&self) -> String {
        match self {
            Self::Tcp(stream) => peer_address(stream),
            Self::Unix(_) => "the Unix socket".to_owned(),
            Self::Lanes(_) => "the Unix socket, by lanes".to_owned(),
            Self::Tls(tls) => peer_address(tls.socket()),
        }
    }

    /// Returns the peer's origin, as far as the client cannot choose it.
    pub fn origin(&self) -> PeerOrigin {
        match self {
            Self::Tcp(stream) => stream.peer_addr().map_or(PeerOrigin::Unknown, |peer| PeerOrigin::host(peer.ip())),
            Self::Unix(stream) => {
                socket_peercred(stream).map_or(PeerOrigin::Unknown, |peer| PeerOrigin::User(peer.uid.as_raw()))
            }
            Self::Tls(tls) => tls.socket().peer_addr().map_or(PeerOrigin::Unknown, |peer| PeerOrigin::host(peer.ip())),
            Self::Lanes(_) => PeerOrigin::Unknown,
        }
    }

    /// Returns whether more may follow after `bytes` bytes came of `wanted`. The poll reports a socket once, so a
    /// reader must continue until nothing is left.
    #[inline]
    pub fn may_have_more(&self, bytes: usize, wanted: usize) -> bool {
        // A socket that gave less than was wanted has no more; encrypted bytes differ in number.
        bytes == wanted || matches!(self, Self::Tls(_) | Self::Lanes(_))
    }

    /// Sends a last frame by the socket, with the descriptors of the lanes, which carry all that follows. Fails for
    /// another kind of socket, or if the socket does not take the frame at once.
    pub fn open_lanes(self, lanes: LanePair, memory: &[OwnedFd; 2], last: &[u8]) -> io::Result<Self> {
        let Self::Unix(socket) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let memory = memory.each_ref().map(AsFd::as_fd);
        if !control.push(SendAncillaryMessage::ScmRights(&memory)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        match sendmsg(&socket, &[IoSlice::new(last)], &mut control, SendFlags::NOSIGNAL)? {
            sent if sent == last.len() => Ok(Self::Lanes(Box::new(LaneStream::new(socket, lanes)))),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Returns the lanes of this stream, if it has some.
    #[inline]
    pub fn lanes(&mut self) -> Option<&mut LaneStream<UnixStream>> {
        if let Self::Lanes(lanes) = self { Some(lanes) } else { None }
    }

    /// Returns the channel binding of a logon, if the connection is encrypted.
    pub fn binding(&self) -> io::Result<Option<Binding>> {
        if let Self::Tls(tls) = self { tls.binding().map(Some) } else { Ok(None) }
    }

    /// Returns whether the client's clock is this host's.
    pub fn is_of_this_host(&self) -> bool {
        match self {
            Self::Tcp(stream) => is_loopback(stream),
            Self::Unix(_) | Self::Lanes(_) => true,
            Self::Tls(tls) => is_loopback(tls.socket()),
        }
    }
}

impl Read for ClientStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(bytes),
            Self::Unix(stream) => stream.read(bytes),
            Self::Tls(tls) => tls.read(bytes),
            Self::Lanes(lanes) => lanes.read(bytes),
        }
    }
}

impl Write for ClientStream {
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

impl Source for ClientStream {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.register(registry, token, interests),
            Self::Unix(stream) => stream.register(registry, token, interests),
            Self::Tls(tls) => tls.socket_mut().register(registry, token, interests),
            Self::Lanes(lanes) => lanes.socket_mut().register(registry, token, interests),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.reregister(registry, token, interests),
            Self::Unix(stream) => stream.reregister(registry, token, interests),
            Self::Tls(tls) => tls.socket_mut().reregister(registry, token, interests),
            Self::Lanes(lanes) => lanes.socket_mut().reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.deregister(registry),
            Self::Unix(stream) => stream.deregister(registry),
            Self::Tls(tls) => tls.socket_mut().deregister(registry),
            Self::Lanes(lanes) => lanes.socket_mut().deregister(registry),
        }
    }
}

fn peer_address(stream: &TcpStream) -> String {
    stream.peer_addr().map_or_else(|_| "tcp".to_owned(), |peer| peer.to_string())
}

fn is_loopback(stream: &TcpStream) -> bool {
    stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback())
}
