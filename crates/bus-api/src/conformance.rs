//! The suite that holds every transport to the promises of this crate.
//!
//! A transport's tests run all [`CASES`] and all [`QUEUE_CASES`] by [`check`]. A case looks at
//! [`Capabilities`](crate::Capabilities) or [`QueueCapabilities`](crate::QueueCapabilities) for what the transport says
//! it can do; what it says it cannot, it must refuse in words. A case that fails panics and says why.

mod child;
mod message;
mod process;
mod pull;
mod queue;
mod queue_process;
mod seen;
mod topic;

pub use child::{Connect, Role, run_child, spawn};
pub use queue::QUEUE_CASES;
pub use seen::{Seen, next_seen, pull_stamps};
pub use topic::CASES;

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{ConnectError, Connection};

/// What a case needs of a transport's tests.
pub struct Fixture<'a> {
    /// Connects anew.
    pub connect: &'a dyn Fn() -> Box<dyn Connection>,
    /// A name that no topic and no queue has; cases append to it.
    pub topic: String,
    /// Starts a process that connects to the same place and takes a role there.
    pub spawn: &'a dyn Fn(Role, &str) -> std::process::Child,
}

/// One promise, run against a transport; panics with a sentence where it is broken.
pub type Case = fn(&Fixture<'_>);

/// Runs cases against the transport at a URL; `what` tells their names from those of other calls of this process.
pub fn check(url: &str, what: &str, cases: &[(&str, Case)], connect: Connect) {
    for (name, case) in cases {
        println!("{url}: {what} {name}");
        case(&Fixture {
            connect: &|| connect(url).unwrap_or_else(|e| panic!("{url}: {e}")),
            topic: format!("tickpath:test-{}-{what}-{name}", std::process::id()),
            spawn: &|role, name| spawn(role, url, name),
        });
    }
}

/// A port on loopback that nobody listens on, for a server that a test starts: another one with each call, also of other
/// processes beside this one, and, unless somebody changed `ip_local_port_range`, none of those that the system hands
/// out by itself.
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

/// Claims a port until this process ends; false if it is claimed. A server takes a while to listen, in which another
/// process's tests would find its port free too, and then talk to the wrong one.
fn claim(port: u16) -> bool {
    static CLAIMS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    // A name that is no file: it is gone with the process, however that ends.
    let name = SocketAddr::from_abstract_name(format!("tickpath-test-port-{port}"));
    let Ok(claimed) = UnixListener::bind_addr(&name.expect("the name is short")) else { return false };
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner).push(claimed);
    true
}

/// Ends of names that every transport can carry.
const GOOD_NAMES: [&str; 3] = ["A.z", "0-9_", "r1:BTC-USDT"];

/// Names that could leave the place, or that some transport could not carry.
fn bad_names() -> Vec<String> {
    let short = ["", ".", "..", ".hidden", "a/b", "/a", "../a", "a b", "é", "a\0b", "a\n", "*"];
    short.into_iter().map(str::to_owned).chain(["x".repeat(129)]).collect()
}

/// Checks that a name was refused in words; `what` is `topic` or `queue`.
fn refused_name(refusal: Option<ConnectError>, what: &str, name: &str) {
    let error = refusal.unwrap_or_else(|| panic!("{name:?} is taken for the name of a {what}"));
    assert!(matches!(error, ConnectError::Name(_)), "{name:?}: {error}");
    assert!(error.to_string().contains(&format!("is no {what} name; use 1 to")), "{name:?}: {error}");
}

/// Checks that something was refused as impossible, in a sentence that names it and says what to do instead.
fn refused<T>(result: Result<T, ConnectError>, word: &str) {
    let error = result.err().unwrap_or_else(|| panic!("'{word}' is not among the capabilities, and yet it is taken"));
    assert!(matches!(error, ConnectError::Unsupported { .. }), "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains(word) && sentence.contains("use "), "{sentence}");
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
