//! Byte stream to a server, over TCP, TLS or a Unix socket.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tickpath_tls::{ClientConfig, ClientConnection, StreamOwned, server_name, tls_failure};

use crate::error::{RedisServerError, ServerResult};
use crate::server::{RedisServerAddress, TIMEOUT};

/// Keepalive that detects a vanished server within a minute, even for a client that only receives.
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(5));

#[derive(Debug)]
pub(crate) enum RedisSocket {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Unix(UnixStream),
}

impl RedisSocket {
    /// Connects, over TLS if there is a configuration; reads and writes then time out after [`TIMEOUT`].
    pub fn connect(address: &RedisServerAddress, tls: Option<&Arc<ClientConfig>>) -> ServerResult<Self> {
        match address {
            RedisServerAddress::Tcp { host, port } => {
                let tcp = connect_tcp(host, *port)?;
                tcp.set_write_timeout(Some(TIMEOUT))?;
                tcp.set_read_timeout(Some(TIMEOUT))?;
                match tls {
                    Some(config) => start_tls(tcp, host, config),
                    None => Ok(Self::Tcp(tcp)),
                }
            }
            RedisServerAddress::Unix(path) => {
                // Never waits, unless the server's backlog is full.
                let unix = UnixStream::connect(path)?;
                unix.set_write_timeout(Some(TIMEOUT))?;
                unix.set_read_timeout(Some(TIMEOUT))?;
                Ok(Self::Unix(unix))
            }
        }
    }

    /// Returns the unread state of the socket, without reading or waiting.
    pub fn unread_state(&self) -> UnreadState {
        let mut byte = [MaybeUninit::uninit()];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        match self.reference().recv_with_flags(&mut byte, flags) {
            Ok(0) => UnreadState::Closed,
            Ok(_) => UnreadState::Readable,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => UnreadState::Empty,
            Err(_) => UnreadState::Closed,
        }
    }

    fn reference(&self) -> SockRef<'_> {
        match self {
            Self::Tcp(stream) => SockRef::from(stream),
            Self::Tls(stream) => SockRef::from(&stream.sock),
            Self::Unix(stream) => SockRef::from(stream),
        }
    }

    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.reference().set_nonblocking(nonblocking)
    }

    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.reference().set_read_timeout(Some(timeout))
    }
}

/// Unread state of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnreadState {
    /// Neither bytes nor an end.
    Empty,
    Readable,
    /// The server has closed the connection.
    Closed,
}

impl Read for RedisSocket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Tls(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
        }
    }
}

impl Write for RedisSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Self::Tls(stream) = self { stream.flush() } else { Ok(()) }
    }
}

fn start_tls(mut tcp: TcpStream, host: &str, config: &Arc<ClientConfig>) -> ServerResult<RedisSocket> {
    let name = server_name(host).map_err(RedisServerError::TlsUnavailable)?;
    let mut tls = ClientConnection::new(config.clone(), name)
        .map_err(|e| RedisServerError::TlsUnavailable(tickpath_tls::describe_error(&e, host)))?;
    while tls.is_handshaking() {
        if let Err(e) = tls.complete_io(&mut tcp) {
            return Err(match tls_failure(&e, host) {
                Some(why) => RedisServerError::TlsUnavailable(why),
                None if e.kind() == io::ErrorKind::UnexpectedEof => RedisServerError::TlsClosed,
                None if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    RedisServerError::TlsTimeout
                }
                None => e.into(),
            });
        }
    }
    Ok(RedisSocket::Tls(Box::new(StreamOwned::new(tls, tcp))))
}

fn connect_tcp(host: &str, port: u16) -> ServerResult<TcpStream> {
    let addresses = (host, port).to_socket_addrs().map_err(RedisServerError::Unresolved)?;
    let mut last = RedisServerError::Unresolved(io::Error::from(io::ErrorKind::NotFound));
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
