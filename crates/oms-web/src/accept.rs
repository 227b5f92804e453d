//! Accepts connections up to the limit, and pauses while the system has no descriptors left.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickpath_clock::Clock;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::admin::lock;
use crate::http::{self, Port};
use crate::origin::HostOrigin;
use crate::page_state::PageState;
use crate::tls::PageStream;

/// Max connections of a port; beyond it the busiest origin loses its oldest.
const MAX_CONNECTIONS: usize = 64;
/// Pause after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Time without a refusal after which the system has room again.
const QUIET_NS: u64 = 2_000_000_000;

/// Serves a port until the runtime ends.
pub(crate) async fn accept(listener: TcpListener, port: Arc<Port>, shown: Arc<PageState>) {
    let mut connections = ConnectionTable::default();
    // The time of the system's last refusal in ticks, while it refuses connections.
    let mut refused: Option<u64> = None;
    loop {
        let accepted = match refused {
            None => Some(listener.accept().await),
            Some(_) => timeout(Duration::from_nanos(QUIET_NS), listener.accept()).await.ok(),
        };
        let now = shown.clock.ticks();
        match accepted {
            Some(Err(e)) if is_of_peer(&e) => {}
            Some(Err(e)) => {
                if refused.is_none() {
                    (shown.notify)(&format!("{} takes no connections for now: {}", port.title(), describe_error(&e)));
                }
                refused = Some(now);
                sleep(PAUSE).await;
                continue;
            }
            Some(Ok((stream, peer))) => connections.serve(stream, HostOrigin::of(peer.ip()), &port, &shown),
            None => {}
        }
        if refused.is_some_and(|since| shown.clock.ns_between(since, now) >= QUIET_NS as i64) {
            (shown.notify)(&format!("{} takes connections again", port.title()));
            refused = None;
        }
    }
}

/// Returns true if a connection was gone before it was accepted: the next one may be there.
fn is_of_peer(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted | ErrorKind::WouldBlock
    )
}

fn describe_error(e: &io::Error) -> String {
    /// Too many open files of the process (EMFILE), or of the system (ENFILE).
    const OF_PROCESS: i32 = 24;
    const OF_SYSTEM: i32 = 23;
    match e.raw_os_error() {
        Some(OF_PROCESS | OF_SYSTEM) => {
            format!(
                "{e}; waiting connections are accepted when files are closed; `ulimit -n` or LimitNOFILE allow more"
            )
        }
        _ => format!("{e}; accepting resumes by itself"),
    }
}

#[derive(Default)]
struct ConnectionTable {
    slots: Arc<Mutex<Vec<ConnectionSlot>>>,
    next: u64,
}

struct ConnectionSlot {
    number: u64,
    origin: HostOrigin,
    task: AbortHandle,
}

/// Removes a connection's entry when the connection ends, however it ends.
struct SlotGuard {
    slots: Arc<Mutex<Vec<ConnectionSlot>>>,
    number: u64,
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        lock(&self.slots).retain(|slot| slot.number != self.number);
    }
}

impl ConnectionTable {
    /// Serves a connection; a full port evicts one of the busiest origin, so that no host can lock others out.
    fn serve(&mut self, stream: TcpStream, origin: HostOrigin, port: &Arc<Port>, shown: &Arc<PageState>) {
        let stream = match &port.certificate {
            None => PageStream::Plain(stream),
            Some(certificate) => match certificate.secure(stream, |why| (shown.notify)(why)) {
                Ok(stream) => stream,
                // An unusable key was refused already when it was read.
                Err(_) => return,
            },
        };
        let number = self.next;
        self.next += 1;
        let leave = SlotGuard { slots: self.slots.clone(), number };
        let (port, shown) = (port.clone(), shown.clone());
        let task = tokio::spawn(async move {
            let _leave = leave;
            http::serve_requests(stream, origin, &port, &shown).await;
        });
        let mut slots = lock(&self.slots);
        if slots.len() >= MAX_CONNECTIONS
            && let Some(index) = eviction_victim(&slots)
        {
            // Dropping the aborted task finds its own entry removed already.
            slots.remove(index).task.abort();
        }
        slots.push(ConnectionSlot { number, origin, task: task.abort_handle() });
    }
}

/// Returns the index of the oldest connection of the busiest origin.
fn eviction_victim(slots: &[ConnectionSlot]) -> Option<usize> {
    let mut counts = BTreeMap::new();
    slots.iter().for_each(|slot| *counts.entry(slot.origin).or_insert(0_usize) += 1);
    let max = counts.values().copied().max()?;
    slots.iter().position(|slot| counts.get(&slot.origin) == Some(&max))
}
