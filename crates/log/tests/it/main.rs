//! The log through its public interface: a naive model, laps, gates, kills, recovery, sleep and the documented bytes; and
//! queues on it.

mod counters;
mod fork;
mod format;
mod gate;
mod hostile;
mod kill;
mod lanes;
mod lap;
mod mandatory;
mod model;
mod owner;
mod pieces;
mod queue;
mod queue_kill;
mod queue_model;
mod recover;
mod wake;

use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tickpath_clock::Calibration;
use tickpath_log::{Config, Delivery, Next, Place, Policy, Pulled, Puller, Reader, Registration, Start, Writer};

const ALL_POLICIES: [Policy; 3] = [Policy::Overwrite, Policy::Fail, Policy::Keep];

/// Does nothing, unless a test started this program anew to have a process to kill.
#[test]
fn child_main() {
    kill::child();
}

/// A log of its own for one test, gone at its end.
struct Scratch {
    config: Config,
    _folder: Option<TempDir>,
}

impl Scratch {
    /// In shared memory; segments of a page.
    fn shared(policy: Policy, segments: usize) -> Self {
        static TOPICS: AtomicU64 = AtomicU64::new(0);
        let name = format!("test-{}-{}", std::process::id(), TOPICS.fetch_add(1, Ordering::Relaxed));
        let place = Place::shared_memory(&name).expect("the name is good");
        Self { config: tiny(place, policy, segments), _folder: None }
    }

    /// On a disk, with checksums; segments of a page.
    fn on_disk(policy: Policy, segments: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let place = Place::folder(folder.path().join("log"));
        Self { config: tiny(place, policy, segments), _folder: Some(folder) }
    }

    fn place(&self) -> &Place {
        &self.config.place
    }

    fn writer(&self) -> Writer {
        Writer::open(&self.config, &Calibration::nanoseconds()).expect("the log can be written")
    }

    fn queue(&self) -> Writer {
        Writer::open_queue(&self.config, &Calibration::nanoseconds()).expect("the queue can be pushed to")
    }

    fn puller(&self, delivery: Delivery) -> Puller {
        Puller::open(self.place(), delivery).expect("the queue can be pulled from")
    }

    fn reader(&self, start: Start) -> Reader {
        Reader::open(self.place(), start, Registration::Registered).expect("the log can be read")
    }

    fn looker(&self, start: Start) -> Reader {
        Reader::open(self.place(), start, Registration::Unregistered).expect("the log can be read")
    }

    fn data(&self) -> std::path::PathBuf {
        self.place().dir().join("data")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that failed early may not have made it.
        let _ = self.place().remove();
    }
}

fn tiny(place: Place, policy: Policy, segments: usize) -> Config {
    Config { segment_bytes: 4096, segments, ..Config::topic(place, policy) }
}

/// Bytes that tell which message they belong to: any mixture of two messages differs from both.
fn payload(sequence: u64, length: usize) -> Vec<u8> {
    let mixed = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..length).map(|i| (mixed >> (i % 8 * 8)) as u8 ^ (i / 8) as u8 ^ length as u8).collect()
}

/// Reads all that is there: messages must follow each other from `from` and be what `payload` makes of their length.
fn read_on(reader: &mut Reader, from: u64) -> u64 {
    let mut at = from;
    let drained = reader.drain(usize::MAX, |next| match next {
        Next::Message(message) => {
            assert_eq!(message.sequence, at);
            assert_eq!(message.payload, payload(at, message.payload.len()), "message {at}");
            at += 1;
        }
        other => panic!("expected message {at}, got {other:?}"),
    });
    drained.expect("the log is sound");
    at
}

/// What a puller gets: numbers, and whether they are marked as redelivered. Each message must be what `payload` makes of
/// its length.
fn pull(puller: &mut Puller, limit: usize) -> Vec<(u64, bool)> {
    let mut pulled = Vec::new();
    let count = puller.pull(limit, |Pulled { message, redelivered }| {
        assert_eq!(message.payload, payload(message.sequence, message.payload.len()), "message {}", message.sequence);
        pulled.push((message.sequence, redelivered));
    });
    assert_eq!(count.expect("the queue is sound"), pulled.len());
    pulled
}

/// A xorshift generator: the same seed gives the same script.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }
}

/// The seed of this run, printed for a failure; `TICKPATH_SEED` repeats it.
fn seed() -> u64 {
    let seed = std::env::var("TICKPATH_SEED").map_or(1, |text| text.parse().expect("TICKPATH_SEED is a number"));
    eprintln!("TICKPATH_SEED={seed}");
    seed
}
