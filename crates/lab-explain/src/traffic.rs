//! Traffic of scripts, and their way of waiting: the conditions for the trial of the import change.

use std::path::PathBuf;

use super::pair::{Flavour, LEAST_BYTES, Order, Receive, Way};
use super::records::{Received, Sent, Watched, subscriber};
use super::stages::Polls;
use tickpath_lab_result::median;

/// Low bits of a key, which hold the length of its message.
const KEY_LENGTH: u64 = 0xffff_ffff;

/// Message rates of the trial per second: a slower one would take too long, and a faster one would show redis-py's
/// queue, or a subscriber's sleep between two polls.
const SLOWEST: f64 = 50.0;
const FASTEST: f64 = 1_000.0;
const FASTEST_ASLEEP: f64 = 500.0;

/// Observed traffic of scripts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Traffic {
    /// Command that sends, in lower case, as a server counts it.
    pub sends: String,
    pub flavour: Flavour,
    pub receive: Receive,
    /// Whether hiredis parses the protocol.
    pub hiredis: bool,
    /// Median message size in bytes.
    pub size: usize,
    /// Median number of messages per process.
    pub count: u64,
    /// Median message rate per second, if a process sends several.
    pub per_s: Option<f64>,
    /// Interpreter of the sending process, if known.
    pub program: Option<PathBuf>,
}

impl Traffic {
    /// Summarises the observed processes; none if no process sends.
    pub fn of(watched: &[Watched]) -> Option<Self> {
        let senders: Vec<&Watched> = watched.iter().filter(|watched| !watched.sent.is_empty()).collect();
        let processes = || senders.iter().filter_map(|watched| watched.process.as_ref());
        let sizes = senders.iter().flat_map(|watched| &watched.sent).map(|sent| (sent.key & KEY_LENGTH) as f64);
        let counts = senders.iter().map(|watched| watched.sent.len() as f64);
        let receiver = subscriber(watched);
        let received: &[Received] = receiver.map_or(&[][..], |receiver| &receiver.received[..]);
        let flavour = match received.iter().any(|received| received.resumed > 0) {
            false => Flavour::Blocking,
            true if receiver.is_some_and(|receiver| receiver.has("uvloop")) => Flavour::Uvloop,
            true => Flavour::Asyncio,
        };
        let receive = match Polls::of(received) {
            // A polling loop on asyncio is not one that the pair offers.
            Some(polls) if flavour == Flavour::Blocking && polls.is_pausing() => Receive::Sleep,
            Some(_) if flavour == Flavour::Blocking => Receive::Spin,
            _ => Receive::Listen,
        };
        let sends = processes().find_map(|process| process.sends.as_deref()).unwrap_or("PUBLISH");
        let program = processes().map(|process| &process.executable).find(|program| program.is_absolute());
        Some(Self {
            sends: sends.to_lowercase(),
            flavour,
            receive,
            hiredis: senders.iter().any(|watched| watched.has("hiredis")),
            size: (median(sizes.collect())? as usize).max(LEAST_BYTES),
            count: median(counts.collect())? as u64,
            per_s: median(senders.iter().filter_map(|watched| per_s(&watched.sent)).collect()),
            program: program.cloned(),
        })
    }

    /// Returns the path of the messages.
    pub fn way(&self) -> Way {
        if self.sends.ends_with("push") { Way::Queue } else { Way::Channel }
    }

    /// Returns the message rate of the trial per second; none if the scripts have no rate.
    pub fn rate(&self) -> Option<f64> {
        let fastest = if self.receive == Receive::Sleep { FASTEST_ASLEEP } else { FASTEST };
        self.per_s.map(|per_s| per_s.clamp(SLOWEST, fastest))
    }

    /// Returns a batch at this rate with at most a process's number of messages, and at least `least`.
    pub fn order(&self, batch: Order, least: u64) -> Order {
        if self.per_s.is_none() {
            return batch;
        }
        Order { count: batch.count.min(self.count.max(least)), ..batch }
    }

    /// Returns a sentence on the observed traffic and the tried batch.
    pub fn text(&self, tried: &Order) -> String {
        let Self { size, count, .. } = self;
        let seen = match self.per_s {
            Some(per_s) => format!("about {count} messages of {size} bytes a process, {} a second", rounded(per_s)),
            None => format!("one message of {size} bytes a process"),
        };
        format!(
            "the scripts send {seen}; their import was changed with {} of these at {} a second, over connections that are \
             there",
            tried.count,
            rounded(tried.rate())
        )
    }
}

/// Returns the rate from a process's first call to its last; none for a single call.
fn per_s(sent: &[Sent]) -> Option<f64> {
    let (first, last) = (sent.first()?, sent.last()?);
    let took_ns = last.called.checked_sub(first.called).filter(|ns| *ns > 0)?;
    Some(1e9 * (sent.len() - 1) as f64 / took_ns as f64)
}

/// Formats a rate.
fn rounded(per_s: f64) -> String {
    if per_s < 10.0 { format!("{per_s:.1}") } else { format!("{per_s:.0}") }
}

#[cfg(test)]
mod tests {
    use super::super::records::Process;
    use super::*;

    /// Returns a process that sends `count` messages of `bytes` bytes, `apart_ns` apart.
    fn sender(count: u64, bytes: u64, apart_ns: u64) -> Watched {
        let sent = |number: u64| Sent { key: (7 << 32) | bytes, called: 1 + number * apart_ns, ..Sent::default() };
        let process = Process { executable: "/usr/bin/python3".into(), ..Process::default() };
        Watched { process: Some(process), sent: (0..count).map(sent).collect(), ..Watched::default() }
    }

    #[test]
    fn what_scripts_send_is_tried_as_long_as_many_and_as_often_as_there_is_time_for() {
        let batch = Order { count: 150, every_ns: 2_000_000, pause_ns: 0 };
        for (count, bytes, apart_ns, size, rate, tried) in [
            (100, 200, 2_000_000, 200, Some(500.0), 100),
            (10, 200, 2_000_000, 200, Some(500.0), 40),
            (5_000, 3, 100_000, LEAST_BYTES, Some(1_000.0), 150),
            (5_000, 3, 1_000_000_000, LEAST_BYTES, Some(50.0), 150),
            (1, 18, 0, 18, None, 150),
        ] {
            let found = Traffic::of(&[sender(count, bytes, apart_ns)]).unwrap();
            assert_eq!((found.size, found.count, found.rate()), (size, count, rate), "{found:?}");
            assert_eq!(found.order(batch, 40).count, tried, "{found:?}");
            assert_eq!((found.way(), found.program), (Way::Channel, Some("/usr/bin/python3".into())));
        }
        assert_eq!(Traffic::of(&[Watched::default()]), None);
    }

    #[test]
    fn how_scripts_wait_is_seen_and_what_they_push_by() {
        let received = |number: u64, empty: u64, pause: u64, resumed: u64| {
            let at = number * 1_000_000;
            Received { read: at, handed: at + 1_000, empty, pause, resumed, ..Received::default() }
        };
        for (empty, pause, resumed, flavour, receive) in [
            (0, 0, 0, Flavour::Blocking, Receive::Listen),
            (100, 10_000, 0, Flavour::Blocking, Receive::Spin),
            (1, 900_000, 0, Flavour::Blocking, Receive::Sleep),
            (0, 0, 5, Flavour::Asyncio, Receive::Listen),
            (1, 900_000, 5, Flavour::Asyncio, Receive::Listen),
        ] {
            let rows = (1..20).map(|number| received(number, empty, pause, resumed)).collect();
            let subscriber = Watched { received: rows, ..Watched::default() };
            let found = Traffic::of(&[sender(20, 32, 1_000_000), subscriber]).unwrap();
            assert_eq!((found.flavour, found.receive, found.hiredis), (flavour, receive, false));
            // The scripts send one message per millisecond.
            assert_eq!(found.rate(), Some(if receive == Receive::Sleep { 500.0 } else { 1_000.0 }));
        }
        let mut pushes = sender(20, 32, 1_000_000);
        let process = pushes.process.as_mut().unwrap();
        process.sends = Some("RPUSH".to_owned());
        process.versions.insert("hiredis".to_owned(), "3.5.0".to_owned());
        let found = Traffic::of(&[pushes]).unwrap();
        assert_eq!((found.way(), found.sends.as_str(), found.hiredis), (Way::Queue, "rpush", true));
    }

    #[test]
    fn what_was_seen_stands_beside_what_was_tried() {
        let tried = Order { count: 40, every_ns: 20_000_000, pause_ns: 0 };
        let several = "about 5 messages of 32 bytes a process, 1.0 a second";
        for (count, seen) in [(1, "one message of 32 bytes a process"), (5, several)] {
            let told = Traffic::of(&[sender(count, 32, 1_000_000_000)]).unwrap().text(&tried);
            assert!(told.contains(seen) && told.contains("with 40 of these at 50 a second"), "{told}");
        }
    }
}
