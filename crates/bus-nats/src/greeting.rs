//! Checks a server's first line before the client library connects, because the library buffers a line of any length.

use std::io::{ErrorKind, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use tickpath_clock::Clock;

use crate::connection::TIMEOUT;
use crate::error::{NatsServerError, ServerResult};
use crate::server::NatsEndpoint;

/// Max bytes of a server's first line; that of a cluster of 1,000 servers has a tenth of this.
const MAX_GREETING_BYTES: usize = 1 << 20;

/// Checks one server after the other, until one has sent a whole first line. An error means that a server sends an
/// endless line, or nothing; the client library finds all other faults.
pub(crate) fn check(server: &NatsEndpoint) -> ServerResult {
    let (mut failed, mut is_open) = (None, false);
    for (host, port) in server.addresses() {
        match has_first_line(server, host, port) {
            Ok(true) => return Ok(()),
            Ok(false) => is_open = true,
            Err(e) => failed = Some(e),
        }
    }
    failed.filter(|_| !is_open).map_or(Ok(()), Err)
}

/// Reports whether this server sends a whole first line; false if it sends none.
fn has_first_line(server: &NatsEndpoint, host: &str, port: u16) -> ServerResult<bool> {
    let Ok(mut addresses) = (host, port).to_socket_addrs() else { return Ok(false) };
    let connected = addresses.find_map(|address| TcpStream::connect_timeout(&address, TIMEOUT).ok());
    let Some(mut stream) = connected else { return Ok(false) };
    let clock = server.clock;
    let start = clock.ticks();
    let (mut room, mut total, mut last) = ([0; 4096], 0, 0);
    while total <= MAX_GREETING_BYTES {
        let past = u64::try_from(clock.ns_between(start, clock.ticks())).unwrap_or(0);
        let left = TIMEOUT.saturating_sub(Duration::from_nanos(past));
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(NatsServerError::Timeout);
        }
        match stream.read(&mut room) {
            Ok(bytes @ 1..) => {
                let received = &room[..bytes];
                if last == b'\r' && received[0] == b'\n' || received.windows(2).any(|pair| pair == b"\r\n") {
                    return Ok(true);
                }
                (total, last) = (total + bytes, received[bytes - 1]);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(NatsServerError::Timeout);
            }
            Ok(_) | Err(_) => return Ok(false),
        }
    }
    Err(NatsServerError::FirstLineTooLong(MAX_GREETING_BYTES >> 20))
}
