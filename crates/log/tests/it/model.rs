//! A log against a naive model: a list of what was published, and the arithmetic of a ring.

use tickpath_log::{LogOpenError, LogPublishError, Next, OverflowPolicy, Reader, ReaderStart, Registration, Writer};

use crate::{ALL_POLICIES, Dice, ScratchLog, payload, seed};

const SCRIPTS: u64 = 40;
const TURNS: u64 = 500;
const SEGMENT_BYTES: u64 = 4096;
const SEGMENT_HEADER_BYTES: u64 = 128;

#[test]
fn scripts_in_shared_memory() {
    check(ScratchLog::shared);
}

#[test]
fn scripts_on_a_disk() {
    check(ScratchLog::on_disk);
}

fn check(scratch: fn(OverflowPolicy, usize) -> ScratchLog) {
    let seed = seed();
    for script in 0..SCRIPTS {
        for policy in ALL_POLICIES {
            let mut dice = Dice::new(seed + script);
            let segments = 2 + dice.below(4);
            eprintln!("script {script}, {policy}, {segments} segments");
            let scratch = scratch(policy, segments as usize);
            let mut scene = ModelledLog::new(&scratch, policy, segments);
            for _ in 0..TURNS {
                scene.turn(&mut dice);
            }
            scene.end();
        }
    }
}

/// A log, and its model.
struct ModelledLog<'a> {
    scratch: &'a ScratchLog,
    policy: OverflowPolicy,
    writer: Writer,
    ring: ModelledRing,
    lengths: Vec<usize>,
    readers: Vec<ModelledReader>,
}

/// A reader, and the message expected next.
struct ModelledReader {
    reader: Reader,
    registered: bool,
    at: u64,
}

/// Model of the positions of frames in a ring.
struct ModelledRing {
    align: u64,
    crc_bytes: u64,
    segments: u64,
    /// The first sequence number of each segment since the start.
    bases: Vec<u64>,
    offset: u64,
}

impl<'a> ModelledLog<'a> {
    fn new(scratch: &'a ScratchLog, policy: OverflowPolicy, segments: u64) -> Self {
        let keeps = policy == OverflowPolicy::Keep;
        let ring = ModelledRing {
            align: if keeps { 16 } else { 64 },
            crc_bytes: if scratch.place().is_shared_memory() { 0 } else { 8 },
            segments: if keeps { u64::MAX } else { segments },
            bases: vec![0],
            offset: SEGMENT_HEADER_BYTES,
        };
        Self { scratch, policy, writer: scratch.writer(), ring, lengths: Vec::new(), readers: Vec::new() }
    }

    fn turn(&mut self, dice: &mut Dice) {
        match dice.below(20) {
            0 => self.join(dice),
            1 if !self.readers.is_empty() => {
                let leaving = dice.below(self.readers.len() as u64) as usize;
                self.readers.swap_remove(leaving);
            }
            2..9 if !self.readers.is_empty() => {
                let reading = dice.below(self.readers.len() as u64) as usize;
                let limit = dice.below(60) as usize;
                self.read(reading, limit);
            }
            _ => {
                let longest = self.writer.max_payload() as u64;
                let length = match dice.below(16) {
                    0 => dice.below(longest + 1),
                    1 => longest,
                    2 => longest + 1,
                    n if n < 10 => dice.below(64),
                    _ => dice.below(400),
                };
                self.publish(length as usize);
            }
        }
    }

    fn publish(&mut self, length: usize) {
        let sequence = self.lengths.len() as u64;
        let longest = self.writer.max_payload();
        let rolls = self.ring.rolls(length);
        let slowest = self.registered().map(|watched| watched.reader.sequence()).min();
        let still_needed = self.ring.needed_after_roll();
        match self.writer.publish(sequence + 7, kind(length), &payload(sequence, length)) {
            Ok(published) => {
                assert_eq!(published, sequence);
                assert!(length <= longest, "{length} bytes fit, though {longest} should be the limit");
                assert!(self.policy != OverflowPolicy::Fail || slowest.is_some(), "no reader is registered");
                let recycles = self.policy == OverflowPolicy::Fail && rolls && self.ring.is_full();
                assert!(!recycles || slowest >= Some(still_needed), "recycled under {slowest:?}");
                self.ring.put(sequence, length);
                self.lengths.push(length);
            }
            Err(LogPublishError::TooLarge { bytes, limit }) => {
                assert_eq!((bytes, limit), (length, longest));
                assert!(length > longest, "{length} bytes should fit");
            }
            Err(LogPublishError::NoReader) => assert_eq!((self.policy, slowest), (OverflowPolicy::Fail, None)),
            Err(LogPublishError::Full) => {
                assert_eq!(self.policy, OverflowPolicy::Fail);
                // A message that `next` has lent is given back only by the call after it.
                assert!(rolls && self.ring.is_full() && slowest <= Some(still_needed + 1), "not full for {slowest:?}");
                (0..self.readers.len()).for_each(|reader| self.read(reader, usize::MAX));
                let again = self.writer.publish(sequence + 7, kind(length), &payload(sequence, length));
                assert_eq!(again.expect("there is room when all have read"), sequence);
                self.ring.put(sequence, length);
                self.lengths.push(length);
            }
            Err(e) => panic!("{e}"),
        }
        assert_eq!(self.writer.sequence(), self.lengths.len() as u64);
    }

    fn join(&mut self, dice: &mut Dice) {
        let tail = self.lengths.len() as u64;
        let asked = dice.below(tail + 3);
        let (start, at) = match dice.below(3) {
            0 => (ReaderStart::Now, tail),
            1 => (ReaderStart::Oldest, self.ring.oldest()),
            _ => (ReaderStart::Sequence(asked), asked),
        };
        let registered = dice.below(2) == 0;
        let registration = if registered { Registration::Registered } else { Registration::Unregistered };
        match Reader::open(self.scratch.place(), start, registration) {
            Ok(reader) => {
                assert!(at <= tail, "{at} lies in the future");
                assert_eq!(reader.sequence(), at.max(self.ring.oldest()));
                self.readers.push(ModelledReader { reader, registered, at });
            }
            Err(LogOpenError::BeyondTail { asked, tail: told, .. }) => {
                assert!(asked == at && told == tail && asked > tail)
            }
            Err(e) => panic!("{e}"),
        }
        assert_eq!(self.writer.readers(), self.registered().count());
    }

    /// Reads up to `limit` messages and gaps, one by one or in one call.
    fn read(&mut self, reading: usize, limit: usize) {
        let ModelledReader { reader, registered, at } = &mut self.readers[reading];
        let pinned = *registered && self.policy == OverflowPolicy::Fail && *at >= self.ring.oldest();
        let mut hear = |next: Next<'_>| match next {
            Next::Message(message) => {
                let length = self.lengths[*at as usize];
                assert_eq!((message.sequence, message.stamp), (*at, *at + 7));
                assert_eq!(message.kind, kind(length));
                assert_eq!(message.payload, payload(*at, length));
                *at += 1;
            }
            Next::Gap(missed) => {
                assert!(!pinned, "{missed} messages are gone in front of a registered reader");
                assert!(*at <= self.ring.oldest(), "{missed} missed at {at}, though they were there");
                *at += missed;
                assert!(missed > 0 && self.ring.bases.contains(&*at), "{at} is the start of no segment");
            }
            Next::Empty => {}
        };
        if limit.is_multiple_of(2) {
            for _ in 0..limit {
                hear(reader.next().expect("the log is sound"));
            }
        } else if reader.drain(limit, hear).expect("the log is sound") < limit {
            assert_eq!(*at, self.lengths.len() as u64, "it says that it is at the end");
        }
    }

    /// Checks that all messages since each reader's start are received or missed.
    fn end(mut self) {
        for reader in 0..self.readers.len() {
            self.read(reader, usize::MAX);
            assert_eq!(self.readers[reader].at, self.lengths.len() as u64);
        }
    }

    fn registered(&self) -> impl Iterator<Item = &ModelledReader> {
        self.readers.iter().filter(|watched| watched.registered)
    }
}

impl ModelledRing {
    fn frame_bytes(&self, length: usize) -> u64 {
        (16 + (length as u64).next_multiple_of(8) + self.crc_bytes).next_multiple_of(self.align)
    }

    fn rolls(&self, length: usize) -> bool {
        self.offset + self.frame_bytes(length) > SEGMENT_BYTES
    }

    fn put(&mut self, sequence: u64, length: usize) {
        if self.rolls(length) {
            self.bases.push(sequence);
            self.offset = SEGMENT_HEADER_BYTES;
        }
        self.offset += self.frame_bytes(length);
    }

    /// Returns true if the next segment replaces another.
    fn is_full(&self) -> bool {
        self.bases.len() as u64 >= self.segments
    }

    fn oldest(&self) -> u64 {
        self.bases[(self.bases.len() as u64).saturating_sub(self.segments) as usize]
    }

    /// Returns the oldest sequence number that remains once the next segment is opened.
    fn needed_after_roll(&self) -> u64 {
        let oldest = (self.bases.len() as u64 + 1).saturating_sub(self.segments) as usize;
        self.bases[oldest]
    }
}

fn kind(length: usize) -> u8 {
    16 + (length % 240) as u8
}
