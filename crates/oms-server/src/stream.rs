//! The socket of a client: its peer and origin, its registration with a poll, and the switch to lanes.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, OwnedFd};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tickpath_log::{LanePair, LaneStream};
use tickpath_oms_protocol::OrderEntryStream;

#[derive(Debug)]
pub(crate) struct ClientStream(pub OrderEntryStream<TcpStream, UnixStream, LaneStream<UnixStream>>);

/// Origin of a peer, as far as the peer cannot forge it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PeerOrigin {
    User(u32),
    /// Host; for IPv6 its network of 64 bits, because a host has as many addresses there as it likes.
    Host(IpAddr),
    Unknown,
}

impl PeerOrigin {
    /// Returns the origin of an address. A user of this host has all of 127.0.0.0/8, so all loopback is one origin.
    pub fn host(address: IpAddr) -> Self {
        Self::Host(match address.to_canonical() {
            address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address => address,
        })
    }
}

impl ClientStream {
    /// Returns the TCP socket, if the connection has one.
    fn tcp(&self) -> Option<&TcpStream> {
        match &self.0 {
            OrderEntryStream::Tcp(stream) => Some(stream),
            OrderEntryStream::Tls(tls) => Some(tls.socket()),
            OrderEntryStream::Unix(_) | OrderEntryStream::Lanes(_) => None,
        }
    }

    pub fn peer(&self) -> String {
        match (self.tcp(), &self.0) {
            (Some(tcp), _) => tcp.peer_addr().map_or_else(|_| "tcp".to_owned(), |peer| peer.to_string()),
            (None, OrderEntryStream::Lanes(_)) => "the Unix socket, by lanes".to_owned(),
            (None, _) => "the Unix socket".to_owned(),
        }
    }

    /// Returns the peer's origin, as far as the client cannot choose it.
    pub fn origin(&self) -> PeerOrigin {
        if let OrderEntryStream::Unix(stream) = &self.0 {
            return socket_peercred(stream).map_or(PeerOrigin::Unknown, |peer| PeerOrigin::User(peer.uid.as_raw()));
        }
        let address = self.tcp().and_then(|tcp| tcp.peer_addr().ok());
        address.map_or(PeerOrigin::Unknown, |peer| PeerOrigin::host(peer.ip()))
    }

    /// Returns the socket, for its registration with a poll.
    pub fn source(&mut self) -> &mut dyn Source {
        match &mut self.0 {
            OrderEntryStream::Tcp(stream) => stream,
            OrderEntryStream::Unix(stream) => stream,
            OrderEntryStream::Tls(tls) => tls.socket_mut(),
            OrderEntryStream::Lanes(lanes) => lanes.socket_mut(),
        }
    }

    /// Sends a last frame by the socket, with the descriptors of the lanes, which carry all that follows. Fails for
    /// another kind of socket, or if the socket does not take the frame at once.
    pub fn open_lanes(self, lanes: LanePair, memory: &[OwnedFd; 2], last: &[u8]) -> io::Result<Self> {
        let OrderEntryStream::Unix(socket) = self.0 else { return Err(io::ErrorKind::Unsupported.into()) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let memory = memory.each_ref().map(AsFd::as_fd);
        if !control.push(SendAncillaryMessage::ScmRights(&memory)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        match sendmsg(&socket, &[IoSlice::new(last)], &mut control, SendFlags::NOSIGNAL)? {
            sent if sent == last.len() => Ok(Self(OrderEntryStream::Lanes(Box::new(LaneStream::new(socket, lanes))))),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Returns whether the client's clock is this host's.
    pub fn is_of_this_host(&self) -> bool {
        self.tcp().is_none_or(|tcp| tcp.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()))
    }
}

impl Deref for ClientStream {
    type Target = OrderEntryStream<TcpStream, UnixStream, LaneStream<UnixStream>>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ClientStream {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
