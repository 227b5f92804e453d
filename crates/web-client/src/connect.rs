//! A TCP connect that does not wait: the addresses of a name are tried in turn.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::vec::IntoIter;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};
use tickpath_clock::{Clock, HostClock};

/// A connect in progress.
pub(crate) struct TcpConnect {
    clock: HostClock,
    untried: IntoIter<SocketAddr>,
    /// Max time of an attempt, in nanoseconds.
    share_ns: i64,
    address: SocketAddr,
    socket: TcpStream,
    /// Begin of the attempt, in ticks.
    began: u64,
}

/// State of a connect.
pub(crate) enum ConnectProgress {
    Pending(TcpConnect),
    Connected(TcpStream),
}

impl TcpConnect {
    /// Begins to connect. Each address has the same share of the time.
    pub(crate) fn start(addresses: Vec<SocketAddr>, clock: HostClock, timeout_ns: i64) -> Result<Self, String> {
        let share_ns = timeout_ns / (addresses.len().max(1) as i64);
        Self::try_next(addresses.into_iter(), clock, share_ns, "the name has no address; check it".to_owned())
    }

    /// Takes the next step, without waiting. The error is the failure of the last address.
    pub(crate) fn advance(self) -> Result<ConnectProgress, String> {
        let why = match is_connected(&self.socket) {
            Ok(true) => return Ok(ConnectProgress::Connected(self.socket)),
            Ok(false) if self.clock.ns_between(self.began, self.clock.ticks()) <= self.share_ns => {
                return Ok(ConnectProgress::Pending(self));
            }
            Ok(false) => "no answer in time".to_owned(),
            Err(e) => e.to_string(),
        };
        let why = format!("{}: {why}; does the server listen there?", self.address);
        Self::try_next(self.untried, self.clock, self.share_ns, why).map(ConnectProgress::Pending)
    }

    /// Begins to connect to the next address for which this is possible; `why` is the failure of the previous one.
    fn try_next(
        mut untried: IntoIter<SocketAddr>,
        clock: HostClock,
        share_ns: i64,
        mut why: String,
    ) -> Result<Self, String> {
        while let Some(address) = untried.next() {
            match begin(address) {
                Ok(socket) => return Ok(Self { clock, untried, share_ns, address, socket, began: clock.ticks() }),
                Err(e) => why = format!("{address}: {e}; does the server listen there?"),
            }
        }
        Err(why)
    }
}

fn begin(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&SockAddr::from(address)) {
        Err(e) if e.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(e),
        _ => Ok(socket.into()),
    }
}

fn is_connected(socket: &TcpStream) -> io::Result<bool> {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut look = [PollFd::new(socket, PollFlags::OUT)];
    poll(&mut look, Some(&at_once))?;
    if look[0].revents().is_empty() {
        return Ok(false);
    }
    socket.take_error()?.map_or(Ok(true), Err)
}
