//! Floor: the same message over bare sockets, without a client library. No client can be faster than its time for
//! kernel, server and wake-ups.
//!
//! ```text
//!   publisher ── write PUBLISH ─┐                      ┌─ read returns ── subscriber (its own thread)
//!        │          returned ───┼────── wire ──────────┤
//!        └── read reply         server ────────────────┘
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo};
use tickpath_bus::first_server;
use tickpath_clock::{Clock, HostClock, pin_to_cpu, relax, sleep_ns};

use tickpath_lab_harness::LabError;
use tickpath_lab_result::median;
use tickpath_lab_tools::redis_socket::RedisSocket;

/// Max time for the server to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT_NS: i64 = 5_000_000_000;

/// Time that a measurement's pauses may take, which sets its number of messages, within the bounds of a useful median.
const MEASURE_NS: u64 = 400_000_000;
const MIN_MESSAGES: usize = 5;
const MAX_MESSAGES: usize = 200;

/// Payload of a message, as the clients send it.
const PAYLOAD: &[u8; 32] = b"000000000000....................";

/// Medians over bare sockets, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SocketFloor {
    /// From the return of the publisher's write to the return of the subscriber's read.
    pub wire_ns: f64,
    /// Duration of the publisher's write.
    pub write_ns: f64,
    /// From the write until the reply has arrived.
    pub round_trip_ns: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct FloorSettings {
    /// The subscriber spins on its socket; otherwise it sleeps in the kernel.
    pub spins: bool,
    /// CPUs of publisher and subscriber; not pinned if none.
    pub cpus: Option<[usize; 2]>,
    /// Pause before each message, in nanoseconds: a longer sleep makes the wake-up slower.
    pub pause_ns: u64,
}

impl FloorSettings {
    fn messages(&self) -> usize {
        ((MEASURE_NS / self.pause_ns.max(1)) as usize).clamp(MIN_MESSAGES, MAX_MESSAGES)
    }
}

/// Measures the floor over a Redis server.
pub(super) fn measure(
    info: &ConnectionInfo,
    channel: &str,
    sides: FloorSettings,
    clock: HostClock,
) -> Result<SocketFloor, LabError> {
    let failed = |e: io::Error| {
        let server = info.addr();
        LabError::Failed(format!("a bare socket to {server} failed ({e}); look whether the server is still there"))
    };
    let publisher = connect(info).map_err(failed)?;
    let mut subscriber = connect(info).map_err(failed)?;
    exchange_command(&mut subscriber, &[b"SUBSCRIBE", channel.as_bytes()]).map_err(failed)?;
    let publish = command(&[b"PUBLISH", channel.as_bytes(), PAYLOAD]);
    exchange(publisher, subscriber, &publish, message_bytes(channel), sides, clock).map_err(failed)
}

/// Measures the floor through a thread that only copies: it forwards each message, and then sends a reply.
pub(super) fn measure_through_copy(sides: FloorSettings, clock: HostClock) -> Result<SocketFloor, LabError> {
    let measure = || -> io::Result<SocketFloor> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (publisher, (from, _)) = (RedisSocket::tcp(address, ANSWER_TIMEOUT)?, listener.accept()?);
        let (subscriber, (to, _)) = (RedisSocket::tcp(address, ANSWER_TIMEOUT)?, listener.accept()?);
        std::thread::scope(|scope| {
            let copying = scope.spawn(move || copy(from, to));
            let floor = exchange(publisher, subscriber, PAYLOAD, PAYLOAD.len(), sides, clock);
            let copied = copying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // If both failed, the copy's error is only a consequence.
            floor.and_then(|floor| copied.map(|()| floor))
        })
    };
    measure().map_err(|e| LabError::Failed(format!("bare sockets over loopback failed ({e}); look at the firewall")))
}

/// Copies from the first socket to the second, until the first one ends.
fn copy(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    from.set_nodelay(true)?;
    to.set_nodelay(true)?;
    let mut bytes = [0; 4096];
    loop {
        let read = from.read(&mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&bytes[..read])?;
        from.write_all(b"+OK\r\n")?;
    }
}

/// Sends messages from one socket to the other, one at a time.
fn exchange(
    mut publisher: RedisSocket,
    mut subscriber: RedisSocket,
    message: &[u8],
    message_bytes: usize,
    sides: FloorSettings,
    clock: HostClock,
) -> io::Result<SocketFloor> {
    let pin = move |side: usize| match sides.cpus {
        Some(cpus) => pin_to_cpu(cpus[side]).map_err(io::Error::other),
        None => Ok(()),
    };
    let (sends, reads) = std::thread::scope(|scope| {
        let publishing =
            scope.spawn(move || pin(0).and_then(|()| publish_messages(&mut publisher, message, &sides, clock)));
        let receiving =
            scope.spawn(move || pin(1).and_then(|()| receive_messages(&mut subscriber, message_bytes, &sides, clock)));
        let sends = publishing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (sends, receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    Ok(SocketFloor::of(&sends?, &reads?, clock))
}

/// Returns the network round trip to a URL's server, which each message takes once: the time to open a connection. Zero
/// on this host, or if no server listens.
pub(super) fn network_ns(url: &str, clock: HostClock) -> f64 {
    const TIMES: usize = 7;
    let found = first_server(url).and_then(|address| address.to_socket_addrs().ok());
    let found: Vec<SocketAddr> = found.map(Iterator::collect).unwrap_or_default();
    if found.iter().any(|found| found.ip().is_loopback()) {
        return 0.0;
    }
    let is_reached = |found: &&SocketAddr| TcpStream::connect_timeout(found, ANSWER_TIMEOUT).is_ok();
    let Some(address) = found.iter().find(is_reached) else { return 0.0 };
    let times = (0..TIMES).map_while(|_| {
        let began = clock.ticks();
        let stream = TcpStream::connect_timeout(address, ANSWER_TIMEOUT).ok()?;
        let ns = clock.ns_between(began, clock.ticks());
        drop(stream);
        Some(ns as f64)
    });
    median(times.collect()).unwrap_or(0.0)
}

/// Stamps of one message on the publisher's side, in ticks.
#[derive(Debug, Clone, Copy)]
struct PublishStamps {
    began: u64,
    written: u64,
    replied: u64,
}

impl SocketFloor {
    fn of(sends: &[PublishStamps], reads: &[u64], clock: HostClock) -> Self {
        let ns = |from: u64, to: u64| clock.ns_between(from, to).max(0) as f64;
        let middle = |times: Vec<f64>| median(times).unwrap_or(0.0);
        let pairs = || sends.iter().zip(reads);
        Self {
            wire_ns: middle(pairs().map(|(send, &read)| ns(send.written, read)).collect()),
            // As in the clients' stages, the reader on another processor may return before the write.
            write_ns: middle(pairs().map(|(send, &read)| ns(send.began, send.written.min(read))).collect()),
            round_trip_ns: middle(sends.iter().map(|send| ns(send.began, send.replied)).collect()),
        }
    }
}

/// Connects to the server, and logs in.
fn connect(info: &ConnectionInfo) -> io::Result<RedisSocket> {
    let mut socket = match info.addr() {
        ConnectionAddr::Tcp(host, port) => RedisSocket::tcp((host.as_str(), *port), ANSWER_TIMEOUT)?,
        ConnectionAddr::Unix(path) => RedisSocket::unix(path, ANSWER_TIMEOUT)?,
        _ => return Err(io::Error::other("it is neither TCP nor a Unix socket")),
    };
    let login = info.redis_settings();
    match (login.username(), login.password()) {
        (Some(user), Some(password)) => {
            exchange_command(&mut socket, &[b"AUTH", user.as_bytes(), password.as_bytes()])?
        }
        (None, Some(password)) => exchange_command(&mut socket, &[b"AUTH", password.as_bytes()])?,
        (_, None) => {}
    }
    Ok(socket)
}

/// Reads the next bytes; the end of the stream is an error.
fn read_some(socket: &mut RedisSocket, bytes: &mut [u8]) -> io::Result<usize> {
    match socket.read(bytes)? {
        0 => Err(io::Error::other("it was closed")),
        read => Ok(read),
    }
}

/// Sends a command and reads a reply that is no error.
fn exchange_command(socket: &mut RedisSocket, arguments: &[&[u8]]) -> io::Result<()> {
    socket.write_all(&command(arguments))?;
    let mut reply = [0; 4096];
    let read = read_some(socket, &mut reply)?;
    match &reply[..read] {
        [b'-', line @ ..] => Err(io::Error::other(String::from_utf8_lossy(line).trim().to_owned())),
        _ => Ok(()),
    }
}

/// Publishes one message after each pause, and returns the stamps.
fn publish_messages(
    socket: &mut RedisSocket,
    message: &[u8],
    sides: &FloorSettings,
    clock: HostClock,
) -> io::Result<Vec<PublishStamps>> {
    let mut sends = Vec::with_capacity(sides.messages());
    let mut reply = [0; 64];
    for _ in 0..sides.messages() {
        sleep_ns(sides.pause_ns);
        let began = clock.ticks();
        socket.write_all(message)?;
        let written = clock.ticks();
        read_some(socket, &mut reply)?;
        sends.push(PublishStamps { began, written, replied: clock.ticks() });
    }
    Ok(sends)
}

/// Returns the arrival of each message, in ticks.
fn receive_messages(
    socket: &mut RedisSocket,
    message_bytes: usize,
    sides: &FloorSettings,
    clock: HostClock,
) -> io::Result<Vec<u64>> {
    let (messages, spins) = (sides.messages(), sides.spins);
    if spins {
        socket.set_nonblocking(true)?;
    }
    let mut buffer = [0; 16 << 10];
    let (mut stamps, mut received) = (Vec::with_capacity(messages), 0);
    let mut last = clock.ticks();
    while stamps.len() < messages {
        match read_some(socket, &mut buffer) {
            Ok(read) => {
                last = clock.ticks();
                received += read;
                stamps.resize(received / message_bytes, last);
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock && spins => {
                if clock.ns_between(last, clock.ticks()) > ANSWER_TIMEOUT_NS {
                    return Err(ErrorKind::TimedOut.into());
                }
                relax();
            }
            Err(e) => return Err(e),
        }
    }
    Ok(stamps)
}

fn command(arguments: &[&[u8]]) -> Vec<u8> {
    redis::Cmd::new().arg(arguments).get_packed_command()
}

/// Returns the length of an encoded message as the subscriber receives it.
fn message_bytes(channel: &str) -> usize {
    command(&[b"message", channel.as_bytes(), PAYLOAD]).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_comes_through_the_copy() {
        let floor = measure_through_copy(
            FloorSettings { spins: false, cpus: None, pause_ns: 1_000_000 },
            HostClock::get().unwrap(),
        )
        .unwrap();
        assert!(floor.wire_ns > 0.0 && floor.write_ns > 0.0 && floor.round_trip_ns > floor.write_ns, "{floor:?}");
    }

    #[test]
    fn commands_are_written_as_the_server_reads_them() {
        assert_eq!(command(&[b"PUBLISH", b"a", b""]), b"*3\r\n$7\r\nPUBLISH\r\n$1\r\na\r\n$0\r\n\r\n");
        assert_eq!(message_bytes("ch"), "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$32\r\n".len() + 32 + 2);
    }
}
