//! Shared parts of the tests: logs of their own, payloads that reveal a mixture, dice.

use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tickpath_clock::Calibration;
use tickpath_log::{
    ClaimedMessage, Config, LogPath, Next, OverflowPolicy, QueueDelivery, QueuePuller, Reader, ReaderStart,
    Registration, Writer,
};

pub const ALL_POLICIES: [OverflowPolicy; 3] = [OverflowPolicy::Overwrite, OverflowPolicy::Fail, OverflowPolicy::Keep];

/// A log for a single test, removed at its end.
pub struct ScratchLog {
    pub config: Config,
    _folder: Option<TempDir>,
}

impl ScratchLog {
    /// Makes a log in shared memory; segments of a page.
    pub fn shared(policy: OverflowPolicy, segments: usize) -> Self {
        static TOPICS: AtomicU64 = AtomicU64::new(0);
        let name = format!("test-{}-{}", std::process::id(), TOPICS.fetch_add(1, Ordering::Relaxed));
        let place = LogPath::shared_memory(&name).expect("the name is good");
        Self { config: tiny(place, policy, segments), _folder: None }
    }

    /// Makes a log on a disk, with checksums; segments of a page.
    pub fn on_disk(policy: OverflowPolicy, segments: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let place = LogPath::folder(folder.path().join("log"));
        Self { config: tiny(place, policy, segments), _folder: Some(folder) }
    }

    pub fn place(&self) -> &LogPath {
        &self.config.path
    }

    pub fn writer(&self) -> Writer {
        Writer::open(&self.config, &Calibration::nanoseconds()).expect("the log can be written")
    }

    pub fn queue(&self) -> Writer {
        Writer::open_queue(&self.config, &Calibration::nanoseconds()).expect("the queue can be pushed to")
    }

    pub fn puller(&self, delivery: QueueDelivery) -> QueuePuller {
        QueuePuller::open(self.place(), delivery).expect("the queue can be pulled from")
    }

    pub fn reader(&self, start: ReaderStart) -> Reader {
        Reader::open(self.place(), start, Registration::Registered).expect("the log can be read")
    }

    pub fn observer(&self, start: ReaderStart) -> Reader {
        Reader::open(self.place(), start, Registration::Unregistered).expect("the log can be read")
    }

    pub fn data(&self) -> std::path::PathBuf {
        self.place().dir().join("data")
    }
}

impl Drop for ScratchLog {
    fn drop(&mut self) {
        // A test that failed early may not have made it.
        let _ = self.place().remove();
    }
}

pub fn tiny(place: LogPath, policy: OverflowPolicy, segments: usize) -> Config {
    Config { segment_bytes: 4096, segments, ..Config::topic(place, policy) }
}

/// Returns bytes that identify their message: any mixture of two messages differs from both.
pub fn payload(sequence: u64, length: usize) -> Vec<u8> {
    let mixed = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..length).map(|i| (mixed >> (i % 8 * 8)) as u8 ^ (i / 8) as u8 ^ length as u8).collect()
}

/// Reads to the end: messages must follow each other from `from` and match `payload` for their length. Returns the
/// next number.
pub fn read_on(reader: &mut Reader, from: u64) -> u64 {
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

/// Pulls messages: returns their numbers, and whether they are marked as redelivered. Each message must match
/// `payload` for its length.
pub fn pull(puller: &mut QueuePuller, limit: usize) -> Vec<(u64, bool)> {
    let mut pulled = Vec::new();
    let count = puller.pull(limit, |ClaimedMessage { message, redelivered }| {
        assert_eq!(message.payload, payload(message.sequence, message.payload.len()), "message {}", message.sequence);
        pulled.push((message.sequence, redelivered));
    });
    assert_eq!(count.expect("the queue is sound"), pulled.len());
    pulled
}

/// A xorshift generator: the same seed gives the same script.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }
}

/// Returns the seed of this run, printed for a failure; `TICKPATH_SEED` repeats it.
pub fn seed() -> u64 {
    let seed = std::env::var("TICKPATH_SEED").map_or(1, |text| text.parse().expect("TICKPATH_SEED is a number"));
    eprintln!("TICKPATH_SEED={seed}");
    seed
}
