//! A client's socket, of any kind.

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tickpath_log::{Laned, Lanes};
use tickpath_session::Binding;
use tickpath_session::tls::Secure;

use crate::origin::Origin;

/// A socket that never waits.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Large, and rare: behind a pointer it costs the others nothing.
    Tls(Box<Secure<TcpStream>>),
    /// A Unix socket with lanes in shared memory beside it.
    Lanes(Box<Laned<UnixStream>>),
}

impl Stream {
    /// Where it comes from.
    pub fn peer(&self) -> String {
        match self {
            Self::Tcp(stream) => place(stream),
            Self::Unix(_) => "the Unix socket".to_owned(),
            Self::Lanes(_) => "the Unix socket, by lanes".to_owned(),
            Self::Tls(tls) => place(tls.socket()),
        }
    }

    /// Where it comes from, as far as its client cannot choose that.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Tcp(stream) => stream.peer_addr().map_or(Origin::Unknown, |peer| Origin::host(peer.ip())),
            Self::Unix(stream) => {
                socket_peercred(stream).map_or(Origin::Unknown, |peer| Origin::User(peer.uid.as_raw()))
            }
            Self::Tls(tls) => tls.socket().peer_addr().map_or(Origin::Unknown, |peer| Origin::host(peer.ip())),
            Self::Lanes(_) => Origin::Unknown,
        }
    }

    /// Whether there may be more behind so many bytes that were asked for so much. News of a socket come but once: who
    /// does not read on until there is nothing hears of it no more.
    #[inline]
    pub fn may_have_more(&self, bytes: usize, wanted: usize) -> bool {
        // A socket that gave less than was asked for has no more; encrypted bytes are of another number.
        bytes == wanted || matches!(self, Self::Tls(_) | Self::Lanes(_))
    }

    /// Sends the last word by the socket, with the memory of the lanes: what follows goes through these. Of another kind of
    /// socket, or one that does not take it at once, there is nothing left.
    pub fn open_lanes(self, lanes: Lanes, memory: &[OwnedFd; 2], last: &[u8]) -> io::Result<Self> {
        let Self::Unix(socket) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let memory = memory.each_ref().map(AsFd::as_fd);
        if !control.push(SendAncillaryMessage::ScmRights(&memory)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        match sendmsg(&socket, &[IoSlice::new(last)], &mut control, SendFlags::NOSIGNAL)? {
            sent if sent == last.len() => Ok(Self::Lanes(Box::new(Laned::new(socket, lanes)))),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Its lanes, if it has some.
    #[inline]
    pub fn lanes(&mut self) -> Option<&mut Laned<UnixStream>> {
        if let Self::Lanes(lanes) = self { Some(lanes) } else { None }
    }

    /// What ties a logon to this connection, if it is encrypted.
    pub fn binding(&self) -> io::Result<Option<Binding>> {
        if let Self::Tls(tls) = self { tls.binding().map(Some) } else { Ok(None) }
    }

    /// Whether its client's clock is this host's.
    pub fn is_of_this_host(&self) -> bool {
        match self {
            Self::Tcp(stream) => is_loopback(stream),
            Self::Unix(_) | Self::Lanes(_) => true,
            Self::Tls(tls) => is_loopback(tls.socket()),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(bytes),
            Self::Unix(stream) => stream.read(bytes),
            Self::Tls(tls) => tls.read(bytes),
            Self::Lanes(lanes) => lanes.read(bytes),
        }
    }
}

impl Write for Stream {
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

impl Source for Stream {
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

fn place(stream: &TcpStream) -> String {
    stream.peer_addr().map_or_else(|_| "tcp".to_owned(), |peer| peer.to_string())
}

fn is_loopback(stream: &TcpStream) -> bool {
    stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback())
}
