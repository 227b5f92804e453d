//! A distance of our own making: a TCP proxy on loopback that holds every byte back for a while.
//!
//! ```text
//!   client ──> read, stamp ──line──> wait until stamp + delay, write ──> server
//!   client <── wait until stamp + delay, write <──line── read, stamp <── server
//! ```
//! Half of the round trip is the delay of each direction. Bytes that come while others wait are stamped when they come,
//! so that the delay limits no throughput. A connection's end is held back as its bytes are; and since a handshake
//! takes a round trip too, nothing gets on its way before a round trip has passed. What the proxy itself costs is
//! measured, by [`cost`], and stands beside the figures.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, HostClock, pin_to_cpu, set_timer_slack, sleep_ns, yield_now};

use crate::Role;
use crate::host::on_cpu;
use crate::{Child, Parent};
use crate::{Lab, LabError};
use tickpath_result::median;

/// The longest round trip, in milliseconds.
pub const MOST_RTT_MS: f64 = 2_000.0;

/// Connections at a time; one more is closed at once.
const MOST_CONNECTIONS: usize = 256;

/// How long a server may take to accept or to answer, beside the delay.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that one read takes.
const READ_BYTES: usize = 64 << 10;

/// Bytes that a direction of a connection holds back; then it reads no more until some have left.
const MOST_HELD_BYTES: usize = 32 << 20;

/// Stack of a thread; each connection has four.
const STACK_BYTES: usize = 256 << 10;

/// How long before a time a thread stops sleeping: longer than a timer without slack wakes late.
const YIELD_NS: i64 = 30_000;

/// How long a listener that cannot accept waits before it tries again.
const RETRY_NS: u64 = 10_000_000;

/// A proxy in a process of its own; it ends with this value.
pub struct Proxy {
    _child: Child,
    address: String,
    rtt_ms: f64,
}

impl Proxy {
    /// Starts one in front of `target` (`HOST:PORT`), which then seems to be `rtt_ms` milliseconds away.
    pub fn start(lab: &Lab<'_>, target: &str, rtt_ms: f64) -> Result<Self, LabError> {
        Self::start_on(lab, target, rtt_ms, None)
    }

    /// The same on a CPU.
    pub fn start_on(lab: &Lab<'_>, target: &str, rtt_ms: f64, cpu: Option<usize>) -> Result<Self, LabError> {
        if !(0.0..=MOST_RTT_MS).contains(&rtt_ms) {
            return Err(LabError::Setting(format!(
                "a round trip of {rtt_ms} ms is not possible; use 0 to {MOST_RTT_MS} milliseconds"
            )));
        }
        let delay_ns = (rtt_ms * 1e6 / 2.0) as u64;
        let mut child = lab.spawn(&ProxyRole { target: target.to_owned(), delay_ns, cpu })?;
        let port: u16 = child.result(1.0)?;
        Ok(Self { _child: child, address: format!("127.0.0.1:{port}"), rtt_ms })
    }

    /// Where it listens: `HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The round trip that it was asked for, in milliseconds.
    pub fn rtt_ms(&self) -> f64 {
        self.rtt_ms
    }
}

/// What a PING and its answer take: medians, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Straight to the server.
    pub direct_ns: f64,
    /// Through a proxy that delays nothing: what is more than `direct_ns` is what the proxy costs.
    pub bare_ns: f64,
    /// Through each of the proxies, in their order.
    pub through_ns: Vec<f64>,
}

impl Cost {
    /// What the proxy adds to a round trip beside its delay.
    pub fn proxy_cost_ns(&self) -> f64 {
        self.bare_ns - self.direct_ns
    }
}

/// Measures what a round trip to `server` (`HOST:PORT`, a Redis server) takes from a CPU: direct and through `bare`, a
/// proxy without delay, in turns, then through each of `proxies`.
pub fn cost(lab: &Lab<'_>, server: &str, bare: &Proxy, proxies: &[Proxy], cpu: usize) -> Result<Cost, LabError> {
    const TURNS: usize = 4;
    let (mut direct, mut delayed_by_nothing) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        direct.extend(pings(lab, server, cpu)?);
        delayed_by_nothing.extend(pings(lab, bare.address(), cpu)?);
    }
    let through = |proxy: &Proxy| pings(lab, proxy.address(), cpu).map(middle);
    Ok(Cost {
        direct_ns: middle(direct),
        bare_ns: middle(delayed_by_nothing),
        through_ns: proxies.iter().map(through).collect::<Result<_, _>>()?,
    })
}

/// The round trip of a PING over TCP from a CPU: the median, in nanoseconds.
pub fn round_trip_ns(lab: &Lab<'_>, server: &str, cpu: usize) -> Result<f64, LabError> {
    pings(lab, server, cpu).map(middle)
}

/// Round trips of PINGs, one after the other: some hundreds, or as many as a quarter of a second holds; at least five.
/// The answer may be any line, so that a server that wants a password is measured too.
pub fn ping(mut server: impl Read + Write, clock: &HostClock) -> io::Result<Vec<f64>> {
    const LEAST: usize = 5;
    const MOST: usize = 500;
    const LONG_NS: i64 = 250_000_000;
    let (mut times, mut answer) = (Vec::new(), [0; 512]);
    let start = clock.ticks();
    while times.len() < LEAST || (times.len() < MOST && clock.ns_between(start, clock.ticks()) < LONG_NS) {
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
    // The first one finds everything cold.
    times.remove(0);
    Ok(times)
}

/// Delays what goes through it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProxyRole {
    /// `HOST:PORT` of the server.
    pub target: String,
    /// How long each direction holds its bytes back.
    pub delay_ns: u64,
    /// Its CPU; any if there is none.
    pub cpu: Option<usize>,
}

impl Role for ProxyRole {
    const NAME: &'static str = "proxy";

    /// Its first result is its port.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        // Threads inherit both from the one that starts them.
        if let Some(cpu) = self.cpu {
            pin_to_cpu(cpu)?;
        }
        set_timer_slack(1);
        let clock = HostClock::get()?;
        let target = resolve(&self.target)?;
        // A wrong address is told at once, and not by connections that break off.
        TcpStream::connect_timeout(&target, PATIENCE).map_err(|e| no_answer(&self.target, &e))?;
        let failed = |e: io::Error| LabError::Failed(format!("the proxy cannot listen on loopback: {e}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let delay_ns = self.delay_ns;
        thread::spawn(move || serve(&listener, target, delay_ns, clock));
        parent.ready();
        parent.result(&port);
        while parent.hear().is_some() {}
        Ok(())
    }
}

/// Carries every connection of `listener` to `target`, each byte held back for `delay_ns`. Does not return.
pub fn serve(listener: &TcpListener, target: SocketAddr, delay_ns: u64, clock: HostClock) {
    let open = Arc::new(AtomicUsize::new(0));
    let delay = clock.calibration().ticks_of_ns(delay_ns);
    loop {
        let Ok((client, _)) = listener.accept() else {
            sleep_ns(RETRY_NS);
            continue;
        };
        if open.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let (counted, opened) = (open.clone(), clock.ticks() + 2 * delay);
        let carried = builder().spawn(move || {
            // Whoever waits at the other end sees the connection close: that is how a network tells it, too.
            let _ = carry(&client, target, &Delay { clock, delay, opened });
            counted.fetch_sub(1, Ordering::Relaxed);
        });
        if carried.is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// One connection, until both directions have ended.
fn carry(client: &TcpStream, target: SocketAddr, delay: &Delay) -> io::Result<()> {
    client.set_nodelay(true)?;
    let server = TcpStream::connect_timeout(&target, PATIENCE)?;
    server.set_nodelay(true)?;
    let (up, down) = (Line::default(), Line::default());
    thread::scope(|scope| {
        let started = start(scope, || up.fill(client, &delay.clock))
            .and_then(|()| start(scope, || up.drain(client, &server, delay)))
            .and_then(|()| start(scope, || down.fill(&server, &delay.clock)))
            .and_then(|()| start(scope, || down.drain(&server, client, delay)));
        if started.is_err() {
            // Those that did start must not wait for those that did not.
            up.close();
            down.close();
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
        started
    })
}

fn start<'scope>(scope: &'scope Scope<'scope, '_>, work: impl FnOnce() + Send + 'scope) -> io::Result<()> {
    builder().spawn_scoped(scope, work).map(|_| ())
}

fn builder() -> thread::Builder {
    thread::Builder::new().name("proxy".to_owned()).stack_size(STACK_BYTES)
}

/// When bytes that have come may leave.
struct Delay {
    clock: HostClock,
    /// Ticks from coming to leaving.
    delay: u64,
    /// Before these ticks the handshake is on its way, and no bytes can be.
    opened: u64,
}

impl Delay {
    /// Sleeps until shortly before the time, then gives the core to others until it has come.
    fn wait(&self, came: u64) {
        let due = came.max(self.opened) + self.delay;
        loop {
            match self.clock.ns_between(self.clock.ticks(), due) {
                ..=0 => return,
                left if left > YIELD_NS => sleep_ns((left - YIELD_NS) as u64),
                _ => yield_now(),
            }
        }
    }
}

/// What is on its way in one direction of a connection: one thread fills it, one drains it.
#[derive(Default)]
struct Line {
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default)]
struct Held {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    closed: bool,
}

/// Bytes that came together, and when; none of them is the end.
struct Chunk {
    came: u64,
    bytes: Vec<u8>,
}

impl Line {
    /// Reads and stamps until the end.
    fn fill(&self, mut from: &TcpStream, clock: &HostClock) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let bytes = match from.read(&mut buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // A connection that broke ends as one that was closed.
                read => read.unwrap_or(0),
            };
            let taken = self.push(Chunk { came: clock.ticks(), bytes: buffer[..bytes].to_vec() });
            if bytes == 0 || !taken {
                return;
            }
        }
    }

    /// Writes what is due until the end.
    fn drain(&self, from: &TcpStream, mut to: &TcpStream, delay: &Delay) {
        while let Some(chunk) = self.pop() {
            delay.wait(chunk.came);
            if chunk.bytes.is_empty() {
                // Fails where the other side is gone already.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            if to.write_all(&chunk.bytes).is_err() {
                // Nobody takes it any more: stop reading it.
                self.close();
                let _ = from.shutdown(Shutdown::Read);
                return;
            }
        }
    }

    /// Adds a chunk, once there is room; false if nobody will take it.
    fn push(&self, chunk: Chunk) -> bool {
        let full = |held: &mut Held| held.bytes >= MOST_HELD_BYTES && !held.closed;
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

    /// The oldest chunk, waited for; none if the line is closed.
    fn pop(&self) -> Option<Chunk> {
        let empty = |held: &mut Held| held.chunks.is_empty() && !held.closed;
        let mut held = self.changed.wait_while(self.lock(), empty).unwrap_or_else(PoisonError::into_inner);
        if held.closed {
            return None;
        }
        let was_full = held.bytes >= MOST_HELD_BYTES;
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

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pings(lab: &Lab<'_>, server: &str, cpu: usize) -> Result<Vec<f64>, LabError> {
    let (address, clock) = (resolve(server)?, lab.clock);
    let measure = move || -> io::Result<Vec<f64>> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE + Duration::from_millis(2 * MOST_RTT_MS as u64)))?;
        ping(&stream, &clock)
    };
    on_cpu(cpu, measure)?.map_err(|e| no_answer(server, &e))
}

fn middle(times: Vec<f64>) -> f64 {
    median(times).unwrap_or(f64::NAN)
}

fn resolve(server: &str) -> Result<SocketAddr, LabError> {
    let found = server.to_socket_addrs().map_err(|e| no_answer(server, &e))?.next();
    found.ok_or_else(|| no_answer(server, &io::ErrorKind::NotFound.into()))
}

fn no_answer(server: &str, reason: &io::Error) -> LabError {
    LabError::Failed(format!("{server} does not answer ({reason}); check host and port, and whether the server runs"))
}
