//! Acceptors of socket lines. An acceptor that cannot accept is left out of polls for a while: the system reports it
//! readable all the time, so that a poll would return at once.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use tickpath_clock::{Clock, HostClock};
use tickpath_venue_native::{LineAddress, LineSocket};

use crate::{VenueEvent, VenueServerError};

/// First pause after a failed accept, in nanoseconds; each further failure doubles it.
const FIRST_PAUSE_NS: u64 = 10_000_000;
/// Max pause after a failed accept, in nanoseconds.
const MAX_PAUSE_NS: u64 = 1_000_000_000;

pub(crate) struct LineListeners {
    clock: HostClock,
    list: Vec<LineListener>,
    max_connections: usize,
    is_full: bool,
    /// End of the pause after a failed accept, in ticks.
    paused_until: Option<u64>,
    pause_ns: u64,
    /// Whether waiting connections were reported; they are reported once for as long as any waits.
    is_reported: bool,
}

enum LineListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl LineListeners {
    /// Listens at all addresses. Reports each address, since the system may have chosen the port.
    pub fn open(
        clock: HostClock,
        listen: &[LineAddress],
        max_connections: usize,
        notify: &mut dyn FnMut(VenueEvent),
    ) -> Result<Self, VenueServerError> {
        let mut list = Vec::new();
        for address in listen {
            let wrong = |reason| VenueServerError::Listen(address.clone(), reason);
            let (listener, address) = LineListener::open(address).map_err(wrong)?;
            notify(VenueEvent::Listening(address));
            list.push(listener);
        }
        Ok(Self {
            clock,
            list,
            max_connections,
            is_full: false,
            paused_until: None,
            pause_ns: FIRST_PAUSE_NS,
            is_reported: false,
        })
    }

    /// Accepts waiting connections until none waits or the limit is reached, with `inside` connections open before.
    /// Returns the number accepted.
    pub fn accept(
        &mut self,
        open: usize,
        notify: &mut dyn FnMut(VenueEvent),
        take: &mut dyn FnMut(LineSocket),
    ) -> usize {
        if self.paused_until.is_some_and(|until| self.clock.ns_between(self.clock.ticks(), until) > 0) {
            return 0;
        }
        let mut done = 0;
        for index in 0..self.list.len() {
            loop {
                self.is_full = open + done >= self.max_connections;
                if self.is_full {
                    self.report_once(VenueEvent::ConnectionLimit(self.max_connections), notify);
                    return done;
                }
                match self.list[index].accept() {
                    Ok(socket) => {
                        take(socket);
                        done += 1;
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    // The peer has closed it again, or a signal interrupted the call.
                    Err(e) if is_connection_error(&e) => {}
                    Err(reason) => {
                        self.pause();
                        self.report_once(VenueEvent::AcceptFailed(reason), notify);
                        return done;
                    }
                }
            }
        }
        (self.paused_until, self.pause_ns) = (None, FIRST_PAUSE_NS);
        if std::mem::take(&mut self.is_reported) {
            notify(VenueEvent::AcceptResumed);
        }
        done
    }

    /// Ends the pause, because a closed connection may have made room.
    pub fn end_pause(&mut self) {
        (self.paused_until, self.is_full) = (None, false);
    }

    /// Returns the sockets that a sleeper must poll, and its timeout: at most `timeout_ns`, and at most the rest of the
    /// pause.
    pub fn poll_sources(&self, timeout_ns: u64) -> (impl Iterator<Item = BorrowedFd<'_>>, u64) {
        let pause = self.paused_until.map(|until| self.clock.ns_between(self.clock.ticks(), until).max(0) as u64);
        let is_open = pause.is_none() && !self.is_full;
        (self.list.iter().filter(move |_| is_open).map(AsFd::as_fd), pause.map_or(timeout_ns, |ns| ns.min(timeout_ns)))
    }

    fn pause(&mut self) {
        let pause = self.clock.calibration().ticks_of_ns(self.pause_ns);
        self.paused_until = Some(self.clock.ticks() + pause);
        self.pause_ns = (self.pause_ns * 2).min(MAX_PAUSE_NS);
    }

    fn report_once(&mut self, event: VenueEvent, notify: &mut dyn FnMut(VenueEvent)) {
        if !std::mem::replace(&mut self.is_reported, true) {
            notify(event);
        }
    }
}

impl LineListener {
    fn open(address: &LineAddress) -> io::Result<(Self, LineAddress)> {
        match address {
            LineAddress::Tcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port))?;
                listener.set_nonblocking(true)?;
                let port = listener.local_addr()?.port();
                Ok((Self::Tcp(listener), LineAddress::Tcp { host: host.clone(), port }))
            }
            LineAddress::Unix(path) => {
                remove_stale_socket(path)?;
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Ok((Self::Unix(listener), address.clone()))
            }
        }
    }

    fn accept(&self) -> io::Result<LineSocket> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(LineSocket::Tcp(stream))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(LineSocket::Unix(stream))
            }
        }
    }
}

impl AsFd for LineListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

/// Returns whether an error concerns the accepted connection alone, and not the acceptor.
fn is_connection_error(e: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(e.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Removes the socket file of a killed venue, which would prevent a bind. A socket with a listener stays.
fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let is_dead = is_socket
        && std::os::unix::net::UnixStream::connect(path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
    if is_dead { std::fs::remove_file(path) } else { Ok(()) }
}
