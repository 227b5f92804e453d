//! Models of the protocol: every order of two threads' steps, and every value that the memory model lets them see. Run
//! with `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 cargo test -p tickpath-log --lib --release loom`.

mod lanes;
mod queue;

use ::loom::model;
use ::loom::sync::{Arc, Condvar, Mutex};
use ::loom::thread;

use crate::append::{AppendError, Appender, BlockedReason};
use crate::control::{ControlFile, MANDATORY};
use crate::follow::{CursorStep, SegmentCursor};
use crate::layout::{FRAME_HEADER_BYTES, FrameShape, GENERATION, SEGMENT_HEADER_BYTES, holding};
use crate::region::Region;
use crate::sync::{AtomicU64, Ordering, fence};

const FRAME: FrameShape = FrameShape { align: 64, crc: false };
/// Stamp of every batch.
const BATCH: u64 = u64::MAX;

#[test]
fn a_frame_is_seen_whole_and_in_order() {
    model(|| {
        let mut ring = RingModel::new(2, 2, false);
        let mut cursor = ring.enter(0).expect("it was just opened");
        let reader = thread::spawn(move || {
            let mut seen = 0;
            for _ in 0..3 {
                match step(&mut cursor) {
                    CursorStep::Frame(_) => seen += 1,
                    CursorStep::Empty | CursorStep::End => {}
                    CursorStep::Lapped => panic!("nothing is recycled"),
                }
            }
            assert!(seen <= 2);
        });
        assert!(ring.append(0));
        assert!(ring.append(1));
        reader.join().expect("the reader's checks hold");
    });
}

#[test]
fn a_reader_continues_in_the_next_segment() {
    model(|| {
        let mut ring = RingModel::new(2, 1, false);
        let mut cursor = ring.enter(0).expect("it was just opened");
        assert!(ring.append(0));
        let regions = ring.regions.clone();
        let reader = thread::spawn(move || {
            assert!(matches!(step(&mut cursor), CursorStep::Frame(_)));
            assert_eq!(step(&mut cursor), CursorStep::End);
            if let Some(mut next) = enter(&regions, 1, 1) {
                assert_eq!(next.sequence, 1);
                assert!(matches!(step(&mut next), CursorStep::Frame(_) | CursorStep::Empty));
            }
        });
        assert!(ring.append(1));
        reader.join().expect("the reader's checks hold");
    });
}

#[test]
fn a_recycled_frame_is_read_whole_or_not_at_all() {
    model(|| {
        let mut ring = RingModel::new(2, 1, false);
        assert!(ring.append(0) && ring.append(1));
        let mut cursor = ring.enter(0).expect("it is there still");
        let regions = ring.regions.clone();
        let reader = thread::spawn(move || match step(&mut cursor) {
            CursorStep::Frame(at) => assert_eq!(at.sequence, 0),
            CursorStep::Lapped => {
                if let Some(mut next) = enter(&regions, 2, 1) {
                    assert_eq!(next.sequence, 2);
                    assert!(matches!(step(&mut next), CursorStep::Frame(_) | CursorStep::Empty));
                }
            }
            other => panic!("{other:?} where a frame is, or was"),
        });
        assert!(ring.append(2));
        reader.join().expect("the reader's checks hold");
    });
}

/// A reader that sees the first message of a batch sees all of it, and a message behind the batch only after it.
#[test]
fn a_batch_is_seen_at_once() {
    model(|| {
        let mut ring = RingModel::new(2, 3, false);
        let mut cursor = ring.enter(0).expect("it was just opened");
        let reader = thread::spawn(move || {
            if matches!(step(&mut cursor), CursorStep::Frame(_)) {
                assert!(matches!(step(&mut cursor), CursorStep::Frame(_)), "a batch in two parts");
                assert!(matches!(step(&mut cursor), CursorStep::Frame(_) | CursorStep::Empty));
            }
        });
        assert_eq!(ring.append_batch(2), 2);
        assert!(ring.append(2));
        reader.join().expect("the reader's checks hold");
    });
}

/// A batch that takes over a segment: a reader sees only whole frames, either old ones or the batch's.
#[test]
fn a_batch_laps_a_reader() {
    model(|| {
        let mut ring = RingModel::new(2, 2, false);
        assert_eq!(ring.append_batch(2), 2);
        assert_eq!(ring.append_batch(2), 2);
        let mut cursor = ring.enter(0).expect("it is there still");
        let regions = ring.regions.clone();
        let reader = thread::spawn(move || match step(&mut cursor) {
            CursorStep::Frame(at) => assert_eq!(at.sequence, 0),
            CursorStep::Lapped => {
                if let Some(mut next) = enter(&regions, 2, 2)
                    && matches!(step(&mut next), CursorStep::Frame(_))
                {
                    assert!(matches!(step(&mut next), CursorStep::Frame(_)), "a batch in two parts");
                }
            }
            other => panic!("{other:?} where a frame is, or was"),
        });
        assert_eq!(ring.append_batch(2), 2);
        reader.join().expect("the reader's checks hold");
    });
}

/// A writer that recycles or a reader that pins sees the other, also if the writer had checked the cursors before.
#[test]
fn a_writer_never_recycles_what_a_reader_has_pinned() {
    for frames_before in [0, 1] {
        model(move || {
            let mut ring = RingModel::new(3, 1, true);
            (0..3 + frames_before).for_each(|sequence| assert!(ring.append(sequence)));
            let (regions, control, oldest) = (ring.regions.clone(), ring.control.clone(), frames_before);
            let reader = thread::spawn(move || {
                let region = &regions[(oldest % 3) as usize];
                control.activate(0, oldest, 1);
                fence(Ordering::SeqCst);
                if region.word(GENERATION).load(Ordering::Relaxed) == holding(oldest) {
                    let mut lent = [0; 16];
                    region.copy_out(SEGMENT_HEADER_BYTES + FRAME_HEADER_BYTES, &mut lent);
                    assert_eq!(lent, message(oldest), "a pinned frame has changed");
                }
                control.release(0);
            });
            ring.append(3 + frames_before);
            reader.join().expect("the reader's checks hold");
        });
    }
}

/// The mandatory reader returns, and begins behind its old cursor: of it and a writer that recycles, at least one sees
/// the other. The writer has checked the cursors already, and found that one further ahead.
#[test]
fn a_mandatory_reader_that_goes_back_holds_the_writer() {
    model(|| {
        let mut ring = RingModel::new(3, 1, true);
        ring.control.add_mandatory(3);
        (0..4).for_each(|sequence| assert!(ring.append(sequence)));
        let (regions, control) = (ring.regions.clone(), ring.control.clone());
        let reader = thread::spawn(move || {
            control.set_mandatory_present(1);
            control.cursor(MANDATORY).store(1, Ordering::Release);
            control.request_cursor_check();
            fence(Ordering::SeqCst);
            let region = &regions[1];
            if region.word(GENERATION).load(Ordering::Relaxed) == holding(1) {
                let mut lent = [0; 16];
                region.copy_out(SEGMENT_HEADER_BYTES + FRAME_HEADER_BYTES, &mut lent);
                assert_eq!(lent, message(1), "a pinned frame has changed");
            }
            control.release(MANDATORY);
        });
        ring.append(4);
        reader.join().expect("the reader's checks hold");
        assert!(!ring.append(5), "its cursor holds the writer also when it has gone");
    });
}

/// The flags of sleeping readers with full fences on both sides, over a futex made of a lock and a condition. A lost
/// wake-up leaves the sleeper asleep, which the model reports as a deadlock.
#[test]
fn a_sleeper_is_woken() {
    model(|| {
        let (commit, flag) = (Arc::new(AtomicU64::new(0)), Arc::new(FutexModel::default()));
        let (committed, sleeping) = (commit.clone(), flag.clone());
        let sleeper = thread::spawn(move || {
            while committed.load(Ordering::Acquire) == 0 {
                sleeping.word.store(1, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                if committed.load(Ordering::Acquire) == 0 {
                    sleeping.sleep_while_set();
                }
            }
        });
        commit.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        if flag.word.load(Ordering::Relaxed) != 0 {
            flag.wake_all();
        }
        sleeper.join().expect("the sleeper ends");
    });
}

/// Some segments, and their writer.
struct RingModel {
    appender: Appender,
    regions: Vec<Region>,
    control: ControlFile,
    frames: usize,
}

impl RingModel {
    /// Builds `segments` segments of `frames` frames each.
    fn new(segments: usize, frames: usize, gated: bool) -> Self {
        let (appender, regions, control) = Appender::on_heap(segments, segment_bytes(frames), gated);
        Self { appender, regions, control, frames }
    }

    /// Appends a message; returns false if a cursor, or a message that a group has not done, blocks it.
    fn append(&mut self, sequence: u64) -> bool {
        match self.appender.append(sequence * 3, 16, &message(sequence)) {
            Ok(()) => true,
            Err(AppendError::Blocked(BlockedReason::ByReader(_) | BlockedReason::ByGroup)) => false,
            Err(_) => panic!("a small frame fits into memory"),
        }
    }

    /// Appends the next messages in one segment; returns their number.
    fn append_batch(&mut self, count: u64) -> usize {
        let first = self.appender.sequence;
        let messages: Vec<_> = (first..first + count).map(message).collect();
        let payloads: Vec<&[u8]> = messages.iter().map(|message| &message[..]).collect();
        assert!(self.appender.make_room_for_all(&payloads).is_ok(), "nothing is in the way");
        self.appender.append_batch(BATCH, 16, &payloads)
    }

    fn enter(&self, index: u64) -> Option<SegmentCursor> {
        enter(&self.regions, index, self.frames)
    }
}

/// Returns a cursor at the start of this segment, if it holds this index; as a reader enters.
fn enter(regions: &[Region], index: u64, frames: usize) -> Option<SegmentCursor> {
    let region = regions[(index % regions.len() as u64) as usize].clone();
    SegmentCursor::enter(region, FRAME, segment_bytes(frames), index)
}

/// Executes one step; a frame must be whole, and the expected one.
fn step(cursor: &mut SegmentCursor) -> CursorStep {
    let (expected, mut buffer) = (cursor.sequence, Vec::new());
    let step = cursor.step(&mut buffer).expect("nothing is damaged");
    if let CursorStep::Frame(at) = step {
        assert_eq!((at.sequence, at.length), (expected, 16));
        assert!(at.stamp == expected * 3 || at.stamp == BATCH, "a stamp of another message");
        assert_eq!(buffer[..16], message(expected));
    }
    step
}

fn segment_bytes(frames: usize) -> usize {
    SEGMENT_HEADER_BYTES + frames * 64
}

/// Returns two words that differ from those of every other message.
fn message(sequence: u64) -> [u8; 16] {
    [sequence as u8 + 1; 16]
}

/// A word that a thread sleeps on.
struct FutexModel {
    word: AtomicU64,
    asleep: Mutex<()>,
    woken: Condvar,
}

impl Default for FutexModel {
    fn default() -> Self {
        Self { word: AtomicU64::new(0), asleep: Mutex::new(()), woken: Condvar::new() }
    }
}

impl FutexModel {
    fn sleep_while_set(&self) {
        let asleep = self.asleep.lock().expect("no thread panics with it");
        if self.word.load(Ordering::SeqCst) == 1 {
            drop(self.woken.wait(asleep).expect("no thread panics with it"));
        }
    }

    fn wake_all(&self) {
        self.word.store(0, Ordering::SeqCst);
        drop(self.asleep.lock().expect("no thread panics with it"));
        self.woken.notify_all();
    }
}
