//! Injected network delay: a TCP proxy on loopback that delays every byte.
//!
//! ```text
//!   client ──> read, stamp ──line──> wait until stamp + delay, write ──> server
//!   client <── wait until stamp + delay, write <──line── read, stamp <── server
//! ```
//! The delay of each direction is half of the round trip. Bytes are stamped when they arrive, even while others wait,
//! so that the delay does not limit the throughput. The end of a connection is delayed like its bytes; and since a
//! handshake takes a round trip too, no bytes leave before a round trip has passed. [`measure_ping_times`] measures the
//! proxy's own cost, which is reported beside the figures.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, HostClock, pin_to_cpu, set_timer_slack, sleep_ns, yield_now};

use crate::host::on_cpu;
use crate::{Child, Lab, LabError, Parent, ProcessRole};
use tickpath_lab_result::median;

/// Max round trip, in milliseconds.
pub const MAX_RTT_MS: f64 = 2_000.0;

/// Max connections at a time; a further connection is closed at once.
const MAX_CONNECTIONS: usize = 256;

/// Timeout of a server's accept or answer, without the delay.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Max bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// Max bytes that a direction of a connection holds; beyond it reading pauses until some have left.
const MAX_BUFFERED_BYTES: usize = 32 << 20;

/// Stack size of a thread in bytes; each connection has four threads.
const STACK_BYTES: usize = 256 << 10;

/// Time before a deadline at which a thread stops sleeping, in nanoseconds: longer than the lateness of a timer without
/// slack.
const YIELD_NS: i64 = 30_000;

/// Pause after a failed accept, in nanoseconds.
const RETRY_NS: u64 = 10_000_000;

/// Proxy in a process of its own, which ends when this value is dropped.
pub struct Proxy {
    _child: Child,
    address: String,
    rtt_ms: f64,
}

impl Proxy {
    /// Starts a proxy in front of `target` (`HOST:PORT`), with a round trip of `rtt_ms` milliseconds.
    pub fn start(lab: &Lab<'_>, target: &str, rtt_ms: f64) -> Result<Self, LabError> {
        Self::start_on(lab, target, rtt_ms, None)
    }

    /// Starts a proxy as [`Self::start`] does, pinned to a CPU if `cpu` names one.
    pub fn start_on(lab: &Lab<'_>, target: &str, rtt_ms: f64, cpu: Option<usize>) -> Result<Self, LabError> {
        if !(0.0..=MAX_RTT_MS).contains(&rtt_ms) {
            return Err(LabError::Setting(format!(
                "a round trip of {rtt_ms} ms is not possible; use 0 to {MAX_RTT_MS} milliseconds"
            )));
        }
        let delay_ns = (rtt_ms * 1e6 / 2.0) as u64;
        let mut child = lab.spawn(&ProxyRole { target: target.to_owned(), delay_ns, cpu })?;
        let port: u16 = child.result(1.0)?;
        Ok(Self { _child: child, address: format!("127.0.0.1:{port}"), rtt_ms })
    }

    /// Returns the proxy's address, `HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the configured round trip, in milliseconds.
    pub fn rtt_ms(&self) -> f64 {
        self.rtt_ms
    }
}

/// Median times of a PING and its answer, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct PingTimes {
    /// Time without a proxy.
    pub direct_ns: f64,
    /// Time through a proxy without delay; the excess over `direct_ns` is the proxy's own cost.
    pub bare_ns: f64,
    /// Time through each of the proxies, in their order.
    pub through_ns: Vec<f64>,
}

impl PingTimes {
    /// Returns the time that the proxy adds to a round trip beside its delay, in nanoseconds.
    pub fn proxy_cost_ns(&self) -> f64 {
        self.bare_ns - self.direct_ns
    }
}

/// Measures the round trip to `server` (`HOST:PORT`, a Redis server) from a CPU: direct and through `bare`, a proxy
/// without delay, in turn, then through each of `proxies`.
pub fn measure_ping_times(
    lab: &Lab<'_>,
    server: &str,
    bare: &Proxy,
    proxies: &[Proxy],
    cpu: usize,
) -> Result<PingTimes, LabError> {
    const TURNS: usize = 4;
    let (mut direct, mut delayed_by_nothing) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        direct.extend(pings(lab, server, cpu)?);
        delayed_by_nothing.extend(pings(lab, bare.address(), cpu)?);
    }
    let through = |proxy: &Proxy| pings(lab, proxy.address(), cpu).map(median_of);
    Ok(PingTimes {
        direct_ns: median_of(direct),
        bare_ns: median_of(delayed_by_nothing),
        through_ns: proxies.iter().map(through).collect::<Result<_, _>>()?,
    })
}

/// Measures the median round trip of a PING over TCP from a CPU, in nanoseconds.
pub fn round_trip_ns(lab: &Lab<'_>, server: &str, cpu: usize) -> Result<f64, LabError> {
    pings(lab, server, cpu).map(median_of)
}

/// Times sequential round trips of PINGs in nanoseconds: 500, or those of a quarter of a second, and at least five; the
/// first, cold one is left out. The answer may be any line, so that a server that demands a password can be measured
/// too.
pub fn ping(mut server: impl Read + Write, clock: &HostClock) -> io::Result<Vec<f64>> {
    const MIN_PINGS: usize = 5;
    const MAX_PINGS: usize = 500;
    const MAX_PING_NS: i64 = 250_000_000;
    let (mut times, mut answer) = (Vec::new(), [0; 512]);
    let start = clock.ticks();
    while times.len() < MIN_PINGS || (times.len() < MAX_PINGS && clock.ns_between(start, clock.ticks()) < MAX_PING_NS) {
        let from = clock.ticks();
        server.write_all(b"PING\r\n")?;
        loop {
            let bytes = server.read(&mut answer)?;
            match answer[..bytes].last() {
                Some(b'\n') => break,
                Some(_) => {}
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        times.push(clock.ns_between(from, clock.ticks()) as f64);
    }
    // The first round trip runs with cold caches.
    times.remove(0);
    Ok(times)
}

/// Role of a proxy that delays all bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProxyRole {
    /// `HOST:PORT` of the server.
    pub target: String,
    /// Delay of each direction, in nanoseconds.
    pub delay_ns: u64,
    /// CPU of the process; any CPU if absent.
    pub cpu: Option<usize>,
}

impl ProcessRole for ProxyRole {
    const NAME: &'static str = "proxy";

    /// Listens on a free port, which is its first result, and serves until the parent is gone.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        // Threads inherit CPU and timer slack from the thread that starts them.
        if let Some(cpu) = self.cpu {
            pin_to_cpu(cpu)?;
        }
        set_timer_slack(1);
        let clock = HostClock::get()?;
        let target = resolve(&self.target)?;
        // Checks the address at once, so that a wrong one is an error and not a series of broken connections.
        TcpStream::connect_timeout(&target, SERVER_TIMEOUT).map_err(|e| no_answer(&self.target, &e))?;
        let failed = |e: io::Error| LabError::Failed(format!("the proxy cannot listen on loopback: {e}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let delay_ns = self.delay_ns;
        thread::spawn(move || serve(&listener, target, delay_ns, clock));
        parent.ready();
        parent.result(&port);
        while parent.receive().is_some() {}
        Ok(())
    }
}

/// Forwards every connection of `listener` to `target`, and delays each byte by `delay_ns`. Does not return.
pub fn serve(listener: &TcpListener, target: SocketAddr, delay_ns: u64, clock: HostClock) {
    let open = Arc::new(AtomicUsize::new(0));
    let delay = clock.calibration().ticks_of_ns(delay_ns);
    loop {
        let Ok((client, _)) = listener.accept() else {
            sleep_ns(RETRY_NS);
            continue;
        };
        if open.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let (counted, opened) = (open.clone(), clock.ticks() + 2 * delay);
        let carried = builder().spawn(move || {
            // The client sees an error as a closed connection, as it would on a network.
            let _ = forward_connection(&client, target, &Delay { clock, delay, opened });
            counted.fetch_sub(1, Ordering::Relaxed);
        });
        if carried.is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Forwards one connection until both directions have ended.
fn forward_connection(client: &TcpStream, target: SocketAddr, delay: &Delay) -> io::Result<()> {
    client.set_nodelay(true)?;
    let server = TcpStream::connect_timeout(&target, SERVER_TIMEOUT)?;
    server.set_nodelay(true)?;
    let (up, down) = (DelayLine::default(), DelayLine::default());
    thread::scope(|scope| {
        let started = spawn_scoped(scope, || up.fill(client, &delay.clock))
            .and_then(|()| spawn_scoped(scope, || up.drain(client, &server, delay)))
            .and_then(|()| spawn_scoped(scope, || down.fill(&server, &delay.clock)))
            .and_then(|()| spawn_scoped(scope, || down.drain(&server, client, delay)));
        if started.is_err() {
            // Threads that have started must not wait for threads that could not start.
            up.close();
            down.close();
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
        started
    })
}

fn spawn_scoped<'scope>(scope: &'scope Scope<'scope, '_>, work: impl FnOnce() + Send + 'scope) -> io::Result<()> {
    builder().spawn_scoped(scope, work).map(|_| ())
}

fn builder() -> thread::Builder {
    thread::Builder::new().name("proxy".to_owned()).stack_size(STACK_BYTES)
}

/// Time from the arrival of bytes to their departure.
struct Delay {
    clock: HostClock,
    /// Ticks from arrival to departure.
    delay: u64,
    /// Ticks at the end of the handshake, before which no bytes can be in flight.
    opened: u64,
}

impl Delay {
    /// Waits until bytes that arrived at `arrived` are due: sleeps until shortly before, then yields the core.
    fn wait_until_due(&self, arrived: u64) {
        let due = arrived.max(self.opened) + self.delay;
        loop {
            match self.clock.ns_between(self.clock.ticks(), due) {
                ..=0 => return,
                left if left > YIELD_NS => sleep_ns((left - YIELD_NS) as u64),
                _ => yield_now(),
            }
        }
    }
}

/// Bytes in flight in one direction of a connection. A thread fills the line, another one drains it.
#[derive(Default)]
struct DelayLine {
    buffer: Mutex<DelayBuffer>,
    changed: Condvar,
}

#[derive(Default)]
struct DelayBuffer {
    chunks: VecDeque<DelayedChunk>,
    bytes: usize,
    closed: bool,
}

/// Bytes of one read, and its ticks; an empty chunk is the end of the connection.
struct DelayedChunk {
    arrived: u64,
    bytes: Vec<u8>,
}

impl DelayLine {
    /// Reads and stamps bytes until the connection ends.
    fn fill(&self, mut from: &TcpStream, clock: &HostClock) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let bytes = match from.read(&mut buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // A broken connection ends like a closed one.
                read => read.unwrap_or(0),
            };
            let is_pushed = self.push(DelayedChunk { arrived: clock.ticks(), bytes: buffer[..bytes].to_vec() });
            if bytes == 0 || !is_pushed {
                return;
            }
        }
    }

    /// Writes each chunk when it is due, until the connection ends.
    fn drain(&self, from: &TcpStream, mut to: &TcpStream, delay: &Delay) {
        while let Some(chunk) = self.pop() {
            delay.wait_until_due(chunk.arrived);
            if chunk.bytes.is_empty() {
                // Fails if the other side has closed the connection already.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            if to.write_all(&chunk.bytes).is_err() {
                // The receiver is gone: stops reading for it.
                self.close();
                let _ = from.shutdown(Shutdown::Read);
                return;
            }
        }
    }

    /// Adds a chunk, and waits for room first. Returns false if the line is closed.
    fn push(&self, chunk: DelayedChunk) -> bool {
        let full = |held: &mut DelayBuffer| held.bytes >= MAX_BUFFERED_BYTES && !held.closed;
        let mut held = self.changed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        if held.closed {
            return false;
        }
        let was_empty = held.chunks.is_empty();
        held.bytes += chunk.bytes.len();
        held.chunks.push_back(chunk);
        drop(held);
        if was_empty {
            self.changed.notify_all();
        }
        true
    }

    /// Waits for the oldest chunk. Returns none if the line is closed.
    fn pop(&self) -> Option<DelayedChunk> {
        let empty = |held: &mut DelayBuffer| held.chunks.is_empty() && !held.closed;
        let mut held = self.changed.wait_while(self.lock(), empty).unwrap_or_else(PoisonError::into_inner);
        if held.closed {
            return None;
        }
        let was_full = held.bytes >= MAX_BUFFERED_BYTES;
        let chunk = held.chunks.pop_front()?;
        held.bytes -= chunk.bytes.len();
        drop(held);
        if was_full {
            self.changed.notify_all();
        }
        Some(chunk)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, DelayBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pings(lab: &Lab<'_>, server: &str, cpu: usize) -> Result<Vec<f64>, LabError> {
    let (address, clock) = (resolve(server)?, lab.clock);
    let measure = move || -> io::Result<Vec<f64>> {
        let stream = TcpStream::connect_timeout(&address, SERVER_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SERVER_TIMEOUT + Duration::from_millis(2 * MAX_RTT_MS as u64)))?;
        ping(&stream, &clock)
    };
    on_cpu(cpu, measure)?.map_err(|e| no_answer(server, &e))
}

fn median_of(times: Vec<f64>) -> f64 {
    median(times).unwrap_or(f64::NAN)
}

fn resolve(server: &str) -> Result<SocketAddr, LabError> {
    let found = server.to_socket_addrs().map_err(|e| no_answer(server, &e))?.next();
    found.ok_or_else(|| no_answer(server, &io::ErrorKind::NotFound.into()))
}

fn no_answer(server: &str, reason: &io::Error) -> LabError {
    LabError::Failed(format!("{server} does not answer ({reason}); check host and port, and whether the server runs"))
}
