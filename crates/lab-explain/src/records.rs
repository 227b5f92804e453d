//! Rows of stamps written by the hook in a Python process, in nanoseconds of the monotonic clock, and their matching
//! between publishers and subscriber. `python/hook/tickpath_rows.py` names the columns.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use tickpath_lab_harness::LabError;

#[derive(Debug, Clone, Default)]
pub(super) struct ProcessTrace {
    /// Description of the process; none for one with an explicit output file.
    pub process: Option<ProcessDescription>,
    pub sent: Vec<SendStamps>,
    pub subscribed: Vec<SubscribeStamps>,
    pub received: Vec<ReceiveStamps>,
    /// Number of connections made.
    pub connections: usize,
    /// Calls to exchanges.
    pub called: Vec<CallStamps>,
    /// Messages from exchanges.
    pub arrived: Vec<ArrivalStamps>,
    /// Sentences on what a version of a library lacks for the stamps.
    pub lacking: Vec<String>,
    /// Pairs of time and processor time used until then.
    pub cpu: Vec<[u64; 2]>,
}

/// Description of a process. Stamps of steps that it never reached are zero.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProcessDescription {
    pub program: String,
    /// Path of its interpreter.
    pub executable: PathBuf,
    pub runtime: String,
    pub versions: BTreeMap<String, String>,
    /// UTC minus the monotonic clock.
    pub utc_offset: i64,
    pub spawned: u64,
    pub started: u64,
    pub import_began: u64,
    pub import_ended: u64,
    /// URL of the last server that it connected to, without a password.
    pub server: Option<String>,
    /// Command of its first message.
    pub sends: Option<String>,
    /// Whether it has imported a client of exchanges.
    pub uses_exchange: bool,
}

/// Stamps of one publish call; zero is a stamp that was not taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct SendStamps {
    /// Key of the message, equal on both sides.
    pub key: u64,
    /// Payload, if it is a number.
    pub value: Option<f64>,
    pub called: u64,
    /// Start of connecting, open socket, and end of the handshake; zero if the connection was open.
    pub connect: u64,
    pub tcp: u64,
    pub connected: u64,
    /// Duration of the name lookup.
    pub lookup: u64,
    /// Number of commands of the handshake.
    pub commands: u64,
    pub encode: u64,
    pub send: u64,
    pub sent: u64,
    pub returned: u64,
    /// Time that the call waited for a processor: while opening the socket, in the handshake, and elsewhere.
    pub delayed_tcp: u64,
    pub delayed_handshake: u64,
    pub delayed_else: u64,
}

/// Subscribe call and its confirmation; equal for a reader that begins to wait for pushed messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct SubscribeStamps {
    pub called: u64,
    pub confirmed: u64,
}

/// Stamps of one message on its way to the script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct ReceiveStamps {
    /// Key of the message, equal on both sides.
    pub key: u64,
    /// Return of the socket's read.
    pub read: u64,
    /// Time when the event loop resumed the reader; zero without such a loop.
    pub resumed: u64,
    pub parsed: u64,
    /// Time when the script had the message.
    pub handed: u64,
    /// Number of get_message calls before it that returned nothing.
    pub empty: u64,
    /// Sum of the times from each of those calls to the next one.
    pub pause: u64,
}

/// Stamps of one call of a method of an exchange's client; `python/hook/tickpath_calls.py` names them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct CallStamps {
    /// Library, or its part.
    pub client: String,
    pub exchange: String,
    /// Method.
    pub name: String,
    /// 1 if the call failed.
    pub failed: u64,
    /// Number of requests that it made.
    pub requests: u64,
    pub stamps: [u64; 12],
    /// Begin and end of the pauses: markets, rate limiter, connecting, logon.
    pub pauses: [[u64; 2]; 4],
}

/// Stamps of one message of an exchange on its way to the script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ArrivalStamps {
    /// Library, or its part.
    pub client: String,
    pub exchange: String,
    /// Method or callback that hands it over.
    pub name: String,
    pub stamps: [u64; 7],
}

/// One message with the stamps of both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct MessageStamps {
    pub sent: SendStamps,
    pub received: ReceiveStamps,
}

/// Matching of one subscriber's messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MatchedMessages {
    /// In the order of the sends.
    pub journeys: Vec<MessageStamps>,
    /// Sent and never received.
    pub lost: u64,
    /// Received, but sent by no observed process.
    pub foreign: u64,
}

/// A line of a file.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TraceLine {
    Process(ProcessDescription),
    Sent(Vec<SendStamps>),
    Connected(Vec<[u64; 5]>),
    Subscribed(Vec<SubscribeStamps>),
    Received(Vec<ReceiveStamps>),
    Called(Vec<CallStamps>),
    Arrived(Vec<ArrivalStamps>),
    Lacking(Vec<String>),
    Cpu([u64; 2]),
}

impl ProcessTrace {
    pub fn load(path: &Path) -> Result<Self, LabError> {
        let text = fs::read_to_string(path).map_err(|e| LabError::file(path, e))?;
        let mut watched = Self::default();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            match serde_json::from_str(line) {
                Ok(line) => watched.add_line(line),
                // The process was killed while it wrote.
                Err(_) if lines.peek().is_none() => {}
                Err(e) => return Err(LabError::Failed(format!("{}: the hook wrote '{line}' ({e})", path.display()))),
            }
        }
        Ok(watched)
    }

    /// Reads all files of a folder, in the order of their names.
    pub fn load_all(folder: &Path) -> Result<Vec<Self>, LabError> {
        let entries = fs::read_dir(folder).map_err(|e| LabError::file(folder, e))?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().map(|path| Self::load(path)).collect()
    }

    /// Returns the CPU use between the first and the last sample: 100 is one processor.
    pub fn cpu_percent(&self) -> Option<f64> {
        let (first, last) = (self.cpu.first()?, self.cpu.last()?);
        let (wall, cpu) = (last[0].checked_sub(first[0])?, last[1].checked_sub(first[1])?);
        (wall > 0).then(|| 100.0 * cpu as f64 / wall as f64)
    }

    /// Returns whether the process has imported a package of this name.
    pub fn has(&self, package: &str) -> bool {
        self.process.as_ref().is_some_and(|process| process.versions.contains_key(package))
    }

    fn add_line(&mut self, line: TraceLine) {
        match line {
            TraceLine::Process(process) => self.process = Some(process),
            TraceLine::Sent(rows) => self.sent.extend(rows),
            TraceLine::Subscribed(rows) => self.subscribed.extend(rows),
            TraceLine::Received(rows) => self.received.extend(rows),
            TraceLine::Called(rows) => self.called.extend(rows),
            TraceLine::Arrived(rows) => self.arrived.extend(rows),
            TraceLine::Lacking(sentences) => self.lacking.extend(sentences),
            TraceLine::Cpu(cpu) => self.cpu.push(cpu),
            // A publish call has its own copy of the stamps.
            TraceLine::Connected(rows) => self.connections += rows.len(),
        }
    }
}

/// Returns the process that received most.
pub(super) fn busiest_subscriber(watched: &[ProcessTrace]) -> Option<&ProcessTrace> {
    watched.iter().filter(|watched| !watched.received.is_empty()).max_by_key(|watched| watched.received.len())
}

/// Matches a subscriber's messages to the sent ones, the oldest of equal ones first.
pub(super) fn match_messages<'a>(
    sent: impl Iterator<Item = &'a SendStamps>,
    received: &[ReceiveStamps],
) -> MatchedMessages {
    let mut sent: Vec<SendStamps> = sent.copied().collect();
    sent.sort_by_key(|sent| sent.called);
    let total = sent.len() as u64;
    let mut waiting: HashMap<u64, VecDeque<SendStamps>> = HashMap::new();
    for sent in sent {
        waiting.entry(sent.key).or_default().push_back(sent);
    }
    let mut matched = MatchedMessages::default();
    for &received in received {
        let equal = waiting.entry(received.key).or_default();
        // An unobserved process may have sent the first of two equal messages.
        match equal.front().filter(|sent| sent.called < received.read) {
            Some(&sent) => {
                equal.pop_front();
                matched.journeys.push(MessageStamps { sent, received });
            }
            None => matched.foreign += 1,
        }
    }
    matched.journeys.sort_by_key(|journey| journey.sent.called);
    matched.lost = total - matched.journeys.len() as u64;
    matched
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(key: u64, called: u64) -> SendStamps {
        SendStamps { key, called, ..SendStamps::default() }
    }

    fn received(key: u64, read: u64) -> ReceiveStamps {
        ReceiveStamps { key, read, ..ReceiveStamps::default() }
    }

    #[test]
    fn equal_messages_are_matched_in_order_and_never_to_a_later_one() {
        for (sends, reads, pairs, lost, foreign) in [
            (vec![(1, 10), (2, 20)], vec![(1, 15), (2, 25)], vec![(10, 15), (20, 25)], 0, 0),
            (vec![(1, 10), (1, 20)], vec![(1, 15), (1, 25)], vec![(10, 15), (20, 25)], 0, 0),
            (vec![(1, 10), (1, 30)], vec![(1, 15), (1, 25), (1, 35)], vec![(10, 15), (30, 35)], 0, 1),
            (vec![(1, 10), (2, 20)], vec![(2, 25)], vec![(20, 25)], 1, 0),
            (vec![], vec![(7, 5)], vec![], 0, 1),
        ] {
            let sends: Vec<SendStamps> = sends.into_iter().map(|(key, ticks)| sent(key, ticks)).collect();
            let reads: Vec<ReceiveStamps> = reads.into_iter().map(|(key, ticks)| received(key, ticks)).collect();
            let found = match_messages(sends.iter(), &reads);
            let times: Vec<_> = found.journeys.iter().map(|j| (j.sent.called, j.received.read)).collect();
            assert_eq!((times, found.lost, found.foreign), (pairs, lost, foreign), "{sends:?} {reads:?}");
        }
    }

    #[test]
    fn a_file_that_ends_in_the_middle_of_a_line_is_read_until_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.jsonl");
        let whole = "{\"process\": {\"program\": \"p.py\", \"started\": 5, \"pid\": 1}}\n\
                     {\"sent\": [[7, null, 1, 0, 0, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0]]}\n\
                     {\"cpu\": [10, 1]}\n{\"cpu\": [20, 6]}\n";
        fs::write(&path, format!("{whole}{{\"received\": [[7, 8")).unwrap();
        let found = ProcessTrace::load(&path).unwrap();
        assert_eq!((found.sent.len(), found.received.len(), found.cpu_percent()), (1, 0, Some(50.0)));
        assert_eq!((found.sent[0].key, found.sent[0].value, found.sent[0].returned), (7, None, 5));
        assert_eq!(found.process.unwrap().program, "p.py");
        fs::write(&path, "nonsense\n{\"cpu\": [1, 1]}\n").unwrap();
        assert!(ProcessTrace::load(&path).is_err());
    }
}
