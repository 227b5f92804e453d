//! Traffic of scripts, and their way of waiting: the conditions for the trial of the import change.

use std::path::PathBuf;

use super::pair::{BatchPlan, Flavour, MIN_MESSAGE_BYTES, MessagePath, ReceiveMode};
use super::records::{ProcessTrace, ReceiveStamps, SendStamps, busiest_subscriber};
use super::stages::PollTiming;
use tickpath_lab_result::median;

/// Low bits of a key, which hold the length of its message.
const KEY_LENGTH: u64 = 0xffff_ffff;

/// Message rates of the trial per second: a slower one would take too long, and a faster one would show redis-py's
/// queue, or a subscriber's sleep between two polls.
const MIN_RATE: f64 = 50.0;
const MAX_RATE: f64 = 1_000.0;
const MAX_SLEEPING_RATE: f64 = 500.0;

/// Observed traffic of scripts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptTraffic {
    /// Command that sends, in lower case, as a server counts it.
    pub sends: String,
    pub flavour: Flavour,
    pub receive: ReceiveMode,
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

impl ScriptTraffic {
    /// Summarises the observed processes; none if no process sends.
    pub fn of(watched: &[ProcessTrace]) -> Option<Self> {
        let senders: Vec<&ProcessTrace> = watched.iter().filter(|watched| !watched.sent.is_empty()).collect();
        let processes = || senders.iter().filter_map(|watched| watched.process.as_ref());
        let sizes = senders.iter().flat_map(|watched| &watched.sent).map(|sent| (sent.key & KEY_LENGTH) as f64);
        let counts = senders.iter().map(|watched| watched.sent.len() as f64);
        let receiver = busiest_subscriber(watched);
        let received: &[ReceiveStamps] = receiver.map_or(&[][..], |receiver| &receiver.received[..]);
        let flavour = match received.iter().any(|received| received.resumed > 0) {
            false => Flavour::Blocking,
            true if receiver.is_some_and(|receiver| receiver.has("uvloop")) => Flavour::Uvloop,
            true => Flavour::Asyncio,
        };
        let receive = match PollTiming::of(received) {
            // A polling loop on asyncio is not one that the pair offers.
            Some(polls) if flavour == Flavour::Blocking && polls.is_pausing() => ReceiveMode::Sleep,
            Some(_) if flavour == Flavour::Blocking => ReceiveMode::Spin,
            _ => ReceiveMode::Listen,
        };
        let sends = processes().find_map(|process| process.sends.as_deref()).unwrap_or("PUBLISH");
        let program = processes().map(|process| &process.executable).find(|program| program.is_absolute());
        Some(Self {
            sends: sends.to_lowercase(),
            flavour,
            receive,
            hiredis: senders.iter().any(|watched| watched.has("hiredis")),
            size: (median(sizes.collect())? as usize).max(MIN_MESSAGE_BYTES),
            count: median(counts.collect())? as u64,
            per_s: median(senders.iter().filter_map(|watched| per_s(&watched.sent)).collect()),
            program: program.cloned(),
        })
    }

    pub fn message_path(&self) -> MessagePath {
        if self.sends.ends_with("push") { MessagePath::Queue } else { MessagePath::Channel }
    }

    /// Returns the message rate of the trial per second; none if the scripts have no rate.
    pub fn rate(&self) -> Option<f64> {
        let fastest = if self.receive == ReceiveMode::Sleep { MAX_SLEEPING_RATE } else { MAX_RATE };
        self.per_s.map(|per_s| per_s.clamp(MIN_RATE, fastest))
    }

    /// Returns a batch at this rate with at most a process's number of messages, and at least `least`.
    pub fn batch_plan(&self, batch: BatchPlan, least: u64) -> BatchPlan {
        if self.per_s.is_none() {
            return batch;
        }
        BatchPlan { count: batch.count.min(self.count.max(least)), ..batch }
    }

    /// Returns a sentence on the observed traffic and the tried batch.
    pub fn text(&self, tried: &BatchPlan) -> String {
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
fn per_s(sent: &[SendStamps]) -> Option<f64> {
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
    use super::super::records::ProcessDescription;
    use super::*;

    /// Returns a process that sends `count` messages of `bytes` bytes, `apart_ns` apart.
    fn sender(count: u64, bytes: u64, apart_ns: u64) -> ProcessTrace {
        let sent =
            |number: u64| SendStamps { key: (7 << 32) | bytes, called: 1 + number * apart_ns, ..SendStamps::default() };
        let process = ProcessDescription { executable: "/usr/bin/python3".into(), ..ProcessDescription::default() };
        ProcessTrace { process: Some(process), sent: (0..count).map(sent).collect(), ..ProcessTrace::default() }
    }

    #[test]
    fn the_trial_batch_follows_size_count_and_rate_of_the_scripts() {
        let batch = BatchPlan { count: 150, every_ns: 2_000_000, pause_ns: 0 };
        for (count, bytes, apart_ns, size, rate, tried) in [
            (100, 200, 2_000_000, 200, Some(500.0), 100),
            (10, 200, 2_000_000, 200, Some(500.0), 40),
            (5_000, 3, 100_000, MIN_MESSAGE_BYTES, Some(1_000.0), 150),
            (5_000, 3, 1_000_000_000, MIN_MESSAGE_BYTES, Some(50.0), 150),
            (1, 18, 0, 18, None, 150),
        ] {
            let found = ScriptTraffic::of(&[sender(count, bytes, apart_ns)]).unwrap();
            assert_eq!((found.size, found.count, found.rate()), (size, count, rate), "{found:?}");
            assert_eq!(found.batch_plan(batch, 40).count, tried, "{found:?}");
            assert_eq!((found.message_path(), found.program), (MessagePath::Channel, Some("/usr/bin/python3".into())));
        }
        assert_eq!(ScriptTraffic::of(&[ProcessTrace::default()]), None);
    }

    #[test]
    fn the_wait_mode_and_push_command_of_scripts_are_detected() {
        let received = |number: u64, empty: u64, pause: u64, resumed: u64| {
            let sent_ns = number * 1_000_000;
            ReceiveStamps { read: sent_ns, handed: sent_ns + 1_000, empty, pause, resumed, ..ReceiveStamps::default() }
        };
        for (empty, pause, resumed, flavour, receive) in [
            (0, 0, 0, Flavour::Blocking, ReceiveMode::Listen),
            (100, 10_000, 0, Flavour::Blocking, ReceiveMode::Spin),
            (1, 900_000, 0, Flavour::Blocking, ReceiveMode::Sleep),
            (0, 0, 5, Flavour::Asyncio, ReceiveMode::Listen),
            (1, 900_000, 5, Flavour::Asyncio, ReceiveMode::Listen),
        ] {
            let rows = (1..20).map(|number| received(number, empty, pause, resumed)).collect();
            let subscriber = ProcessTrace { received: rows, ..ProcessTrace::default() };
            let found = ScriptTraffic::of(&[sender(20, 32, 1_000_000), subscriber]).unwrap();
            assert_eq!((found.flavour, found.receive, found.hiredis), (flavour, receive, false));
            // The scripts send one message per millisecond.
            assert_eq!(found.rate(), Some(if receive == ReceiveMode::Sleep { 500.0 } else { 1_000.0 }));
        }
        let mut pushes = sender(20, 32, 1_000_000);
        let process = pushes.process.as_mut().unwrap();
        process.sends = Some("RPUSH".to_owned());
        process.versions.insert("hiredis".to_owned(), "3.5.0".to_owned());
        let found = ScriptTraffic::of(&[pushes]).unwrap();
        assert_eq!((found.message_path(), found.sends.as_str(), found.hiredis), (MessagePath::Queue, "rpush", true));
    }

    #[test]
    fn observed_and_tried_traffic_are_both_reported() {
        let tried = BatchPlan { count: 40, every_ns: 20_000_000, pause_ns: 0 };
        let several = "about 5 messages of 32 bytes a process, 1.0 a second";
        for (count, seen) in [(1, "one message of 32 bytes a process"), (5, several)] {
            let text = ScriptTraffic::of(&[sender(count, 32, 1_000_000_000)]).unwrap().text(&tried);
            assert!(text.contains(seen) && text.contains("with 40 of these at 50 a second"), "{text}");
        }
    }
}
