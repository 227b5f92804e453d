//! Byte stream between a client and an OMS. The sockets and lanes under it are those of the caller.

use std::io::{self, Read, Write};

use crate::scram::Binding;
use crate::tls::TlsStream;

/// Byte stream over one kind of connection: `T` is a TCP stream, `U` a Unix stream, and `L` a stream over lanes.
#[derive(Debug)]
pub enum OrderEntryStream<T: Read + Write, U, L> {
    /// TCP.
    Tcp(T),
    /// Unix socket.
    Unix(U),
    /// TLS over TCP; a pointer, because it is large and rare, so that the other variants stay small.
    Tls(Box<TlsStream<T>>),
    /// Lanes in shared memory, beside the Unix socket that opened them.
    Lanes(Box<L>),
}

impl<T: Read + Write, U, L> OrderEntryStream<T, U, L> {
    /// Returns the lanes, if the stream has lanes.
    #[inline]
    pub fn lanes(&mut self) -> Option<&mut L> {
        if let Self::Lanes(lanes) = self { Some(lanes) } else { None }
    }

    /// Runs one step of the TLS handshake; true when the handshake is done or not needed.
    pub fn handshake(&mut self) -> io::Result<bool> {
        if let Self::Tls(tls) = self { tls.handshake() } else { Ok(true) }
    }

    /// Returns the channel binding of a logon, if the connection has TLS.
    pub fn binding(&self) -> io::Result<Option<Binding>> {
        if let Self::Tls(tls) = self { tls.binding().map(Some) } else { Ok(None) }
    }

    /// Returns whether data may be left to read that no poll of the socket reports.
    #[inline]
    pub fn has_more(&self) -> bool {
        if let Self::Tls(tls) = self { tls.has_more() } else { false }
    }

    /// Returns whether more may follow after a read of `bytes` bytes into a buffer of `wanted`. A poll may report a
    /// socket once, so the reader must continue until nothing is left.
    #[inline]
    pub fn may_have_more(&self, bytes: usize, wanted: usize) -> bool {
        // A socket that gave less than was wanted has no more; encrypted bytes differ in number.
        bytes == wanted || matches!(self, Self::Tls(_) | Self::Lanes(_))
    }

    /// Returns whether the socket has not taken all bytes that were written.
    #[inline]
    pub fn wants_write(&self) -> bool {
        if let Self::Tls(tls) = self { tls.wants_write() } else { false }
    }
}

impl<T: Read + Write, U: Read, L: Read> Read for OrderEntryStream<T, U, L> {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
            Self::Tls(tls) => tls.read(room),
            Self::Lanes(lanes) => lanes.read(room),
        }
    }
}

impl<T: Read + Write, U: Write, L: Write> Write for OrderEntryStream<T, U, L> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
            Self::Lanes(lanes) => lanes.write(bytes),
        }
    }

    /// Writes bytes that TLS has taken and the socket has not; the other kinds hold none back.
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        if let Self::Tls(tls) = self { tls.flush() } else { Ok(()) }
    }
}
