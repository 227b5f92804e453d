//! The test suite that checks every transport against the promises of this crate.
//!
//! A transport's tests run all [`CASES`] and all [`QUEUE_CASES`] by [`check`]. A case reads
//! [`Capabilities`](crate::Capabilities) or [`QueueCapabilities`](crate::QueueCapabilities) and checks that the
//! transport refuses all else with a clear error. A case that fails panics with the reason.

mod bounded_memory;
mod child;
mod fixture;
mod kills;
mod lending;
mod message;
mod network_proxy;
mod numbered_pull;
mod owned_event;
mod process;
mod queue;
mod queue_process;
mod redelivery;
mod resume;
mod role;
mod scratch;
mod silence;
mod suspend;
mod topic;

pub use bounded_memory::check_bounded_memory;
pub use child::{BusConnector, run_child, spawn};
pub use fixture::{ConformanceCase, Fixture};
pub use kills::{KillCounts, KillRun};
pub use message::{check_no_event, socket_buffer_bytes, wait_until};
pub use network_proxy::{NetworkProxy, ProxyMode};
pub use owned_event::{OwnedEvent, next_event, next_foreign, pull_stamps};
pub use queue::QUEUE_CASES;
pub use role::ChildRole;
pub use silence::check_silence_reported;
pub use suspend::{resume_process, suspend_process};
pub use topic::CASES;

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs cases against the transport at a URL; `what` distinguishes the names of several calls of one process.
pub fn check(url: &str, what: &str, cases: &[(&str, ConformanceCase)], connect: BusConnector) {
    for (name, case) in cases {
        println!("{url}: {what} {name}");
        case(&Fixture {
            connect: &|| connect(url).unwrap_or_else(|e| panic!("{url}: {e}")),
            topic: format!("tickpath:test-{}-{what}-{name}", std::process::id()),
            spawn: &|role, name| spawn(role, url, name),
        });
    }
}

/// Returns a free loopback port for a server that a test starts: a different one for each call, in other concurrent
/// processes too. Unless `ip_local_port_range` was changed, it is none of the ports that the system assigns by itself.
pub fn free_port() -> u16 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    const PORTS: u64 = 20_000;
    let next = || {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        10_000 + ((u64::from(std::process::id()) * 97 + call) % PORTS) as u16
    };
    let found = (0..PORTS).map(|_| next()).find(|&port| claim(port) && TcpListener::bind(("127.0.0.1", port)).is_ok());
    found.expect("loopback has a free port between 10,000 and 30,000")
}

/// Claims a port until this process ends; returns false if it is claimed already. A server takes a while to listen, in
/// which another process's tests would find its port free too, and then connect to the wrong server.
fn claim(port: u16) -> bool {
    static CLAIMS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    // An abstract name, not a file, so that it is gone with the process, however that ends.
    let name = SocketAddr::from_abstract_name(format!("tickpath-test-port-{port}"));
    let Ok(claimed) = UnixListener::bind_addr(&name.expect("the name is short")) else { return false };
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner).push(claimed);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_claimed_once() {
        let ports = [free_port(), free_port()];
        assert_ne!(ports[0], ports[1]);
        assert!(ports.into_iter().all(|port| !claim(port)), "the claims of this process do not hold: {ports:?}");
    }
}
