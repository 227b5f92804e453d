//! An untrusted process on the other side of a log: it writes anything anywhere, and truncates the files while they
//! are mapped.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tickpath_clock::yield_now;
use tickpath_log::{
    HEADER_BYTES, LogOpenError, LogPath, LogPublishError, LogReadError, Next, OverflowPolicy, Reader, ReaderStart,
    Registration, SEGMENT_HEADER_BYTES, faults,
};

use crate::process::{ChildProcess, print_number};
use crate::{ALL_POLICIES, Dice, ScratchLog, payload, read_on, seed};

const SEGMENT_BYTES: usize = 4096;

#[test]
fn an_honest_untrusted_writer_is_read() {
    for policy in ALL_POLICIES {
        for mandatory in [false, policy == OverflowPolicy::Fail] {
            let mut scratch = ScratchLog::shared(policy, 2);
            scratch.config.mandatory = mandatory;
            let mut writer = scratch.writer();
            let mut reader = untrusted(&scratch, ReaderStart::Now);
            let away: Vec<_> = reader.readers().iter().map(|reader| (reader.slot, reader.away)).collect();
            assert_eq!(away, [(0, false)]);
            for number in 0..500 {
                writer.publish(0, 16, &payload(number, (number % 300) as usize)).expect("it is read");
                assert_eq!(read_on(&mut reader, number), number + 1);
            }
            assert!(!reader.is_truncated());
        }
    }
}

/// The cursor holds the writer of a lane, so a message that was handed over stays; but it must be a copy all the same.
#[test]
fn rewritten_bytes_are_a_copy_or_damage() {
    let (mut dice, over) = (Dice::new(seed()), AtomicBool::new(false));
    let mut scratch = ScratchLog::shared(OverflowPolicy::Fail, 3);
    scratch.config.mandatory = true;
    let stranger = writable(&scratch.data_of_a_fresh_log());
    let mut told = 0;
    let mut theirs = Dice::new(seed() + 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                scribble(&stranger, &mut theirs);
            }
        });
        let _end = SetOnDrop(&over);
        // On a busy host the stranger may get its first turn late.
        let mut round = 0;
        while round < 300 || (told == 0 && round < 1_000_000) {
            match Reader::open_untrusted(scratch.place(), [ReaderStart::Oldest, ReaderStart::Cursor][round % 2]) {
                Ok(mut reader) => told += read_until_damage(&mut reader, dice.below(40)),
                Err(LogOpenError::Damaged { .. } | LogOpenError::BeyondTail { .. } | LogOpenError::NotFound(_)) => {
                    told += 1
                }
                Err(e) => panic!("{e}"),
            }
            round += 1;
        }
    });
    assert!(told > 0, "nothing was damaged: the stranger has not been there");
}

/// Each segment holds only an end mark: a recursive reader would run out of stack.
#[test]
fn endless_end_marks_are_passed_one_by_one() {
    const SEGMENTS: usize = 4096;
    for policy in [OverflowPolicy::Fail, OverflowPolicy::Keep] {
        let scratch = ScratchLog::shared(policy, SEGMENTS);
        drop(scratch.writer());
        let file = writable(&scratch.data());
        let mut segment = [0; SEGMENT_BYTES];
        file.read_exact_at(&mut segment, HEADER_BYTES as u64).expect("the file can be read");
        for index in 0..SEGMENTS as u64 {
            let at = (HEADER_BYTES + index as usize * SEGMENT_BYTES) as u64;
            segment[..8].copy_from_slice(&(2 * index + 2).to_le_bytes());
            segment[SEGMENT_HEADER_BYTES..][..8].copy_from_slice(&(1_u64 << 24).to_le_bytes());
            file.write_all_at(&segment, at).expect("the file can be written");
        }
        thread::scope(|scope| {
            let small = thread::Builder::new().stack_size(128 << 10);
            let read = small.spawn_scoped(scope, || {
                assert_eq!(scratch.reader(ReaderStart::Oldest).next().expect("end marks are no damage"), Next::Empty);
                if policy == OverflowPolicy::Fail {
                    assert_eq!(untrusted(&scratch, ReaderStart::Oldest).next().expect("as above"), Next::Empty);
                }
            });
            read.expect("a thread can be started").join().expect("the reader's checks hold");
        });
    }
}

#[test]
fn an_impossible_shape_is_refused() {
    for (field, value) in [(16, 0_u32), (16, 100), (16, u32::MAX - 4095), (20, 5000), (20, u32::MAX), (128, 7)] {
        let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
        drop(scratch.writer());
        let mut data = fs::read(scratch.data()).expect("the file can be read");
        data[field..field + 4].copy_from_slice(&value.to_le_bytes());
        let sum = crc32c::crc32c(&data[..132]);
        data[132..136].copy_from_slice(&sum.to_le_bytes());
        fs::write(scratch.data(), data).expect("the file can be written");
        let refused = Reader::open_untrusted(scratch.place(), ReaderStart::Oldest).err().expect("it has no such shape");
        assert!(matches!(refused, LogOpenError::Damaged { .. }), "{field}: {value}: {refused}");
    }
}

/// Reading a hole of a file in shared memory would allocate it: another process could make this one fill the memory.
#[test]
fn a_file_with_holes_is_refused() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    drop(scratch.writer());
    let bytes = fs::read(scratch.data()).expect("the file can be read");
    fs::remove_file(scratch.data()).expect("the file is there");
    let file = File::create(scratch.data()).expect("a file can be made");
    file.set_len(bytes.len() as u64).expect("it can be as long");
    file.write_all_at(&bytes[..HEADER_BYTES + SEGMENT_BYTES], 0).expect("the file can be written");
    let refused = Reader::open_untrusted(scratch.place(), ReaderStart::Oldest).err().expect("it has a hole");
    assert!(refused.to_string().contains("holes"), "{refused}");
}

#[test]
fn a_reader_reports_a_truncated_lane() {
    for (file, length) in
        [("data", 0), ("data", 4096), ("data", 5000), ("data", 8192), ("control", 0), ("control", 4096)]
    {
        let mut scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
        scratch.config.mandatory = true;
        let mut writer = scratch.writer();
        let mut reader = untrusted(&scratch, ReaderStart::Now);
        for number in 0..40 {
            writer.publish(0, 16, &payload(number, 100)).expect("it is read");
        }
        assert!(matches!(reader.next(), Ok(Next::Message(_))));
        drop(writer);
        cut(&scratch, file, length);
        assert!(reader.is_truncated(), "{file} of {length} bytes");
        let error = (0..1000).find_map(|_| reader.next().err());
        assert!(matches!(error, Some(LogReadError::Truncated)), "{file} of {length} bytes: {error:?}");
        reader.confirm(1);
        drop(reader);
        if file == "data" {
            assert!(Reader::open_untrusted(scratch.place(), ReaderStart::Cursor).is_err());
        }
    }
}

/// The same during reading: the process lives, and detects the cut by the count of faults only.
#[test]
fn a_truncation_during_a_read_kills_no_reader() {
    for file in ["data", "control"] {
        for round in 0..20 {
            let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
            let mut writer = scratch.writer();
            let mut reader = untrusted(&scratch, ReaderStart::Now);
            (0..40).for_each(|number| assert!(writer.publish(0, 16, &payload(number, 100)).is_ok()));
            drop(writer);
            let before = faults();
            let error = thread::scope(|scope| {
                let stranger = scope.spawn(|| {
                    (0..round).for_each(|_| yield_now());
                    cut(&scratch, file, 0);
                });
                let error = (0..100_000_000_u64).find_map(|_| {
                    reader.confirm(0);
                    reader.drain(1, |_| ()).err()
                });
                stranger.join().expect("it has cut the file");
                error
            });
            assert!(matches!(error, Some(LogReadError::Truncated)), "{error:?}");
            assert!(faults() > before && reader.is_truncated());
        }
    }
}

#[test]
fn a_guarded_writer_outlives_its_truncated_files() {
    for (policy, file) in
        [(OverflowPolicy::Overwrite, "data"), (OverflowPolicy::Overwrite, "control"), (OverflowPolicy::Fail, "control")]
    {
        for from_the_start in [false, true] {
            let scratch = ScratchLog::shared(policy, 2);
            let calibration = tickpath_clock::Calibration::nanoseconds();
            let mut writer = if from_the_start {
                tickpath_log::Writer::open_untrusted(&scratch.config, &calibration).expect("it can be made")
            } else {
                let mut writer = scratch.writer();
                writer.guard().expect("there is room");
                writer
            };
            let reader = scratch.observer(ReaderStart::Now);
            let _registered = (policy == OverflowPolicy::Fail).then(|| scratch.reader(ReaderStart::Now));
            writer.publish(0, 16, b"whole").expect("there is room");
            assert!(!writer.is_truncated());
            drop(reader);
            cut(&scratch, file, 0);
            assert!(writer.is_truncated());
            let before = faults();
            for _ in 0..200 {
                match writer.publish(0, 16, &[7; 100]) {
                    Ok(_) | Err(LogPublishError::NoReader | LogPublishError::Full) => {}
                    Err(e) => panic!("{e}"),
                }
            }
            assert!(faults() > before, "no read has touched the lost pages");
            std::mem::forget(_registered);
        }
    }
}

/// A guard changes nothing for the rest of the process.
#[test]
fn other_faults_kill_as_before() {
    for role in ["unguarded", "signalled"] {
        let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
        drop(scratch.writer());
        let mut child = ChildProcess::start(role, scratch.place(), OverflowPolicy::Fail);
        assert_eq!(child.lines.next_number(), Some(1), "its guard works");
        assert_eq!(child.lines.next_number(), None, "{role}: it lives on");
        assert_eq!(child.end().signal(), Some(libc::SIGBUS), "{role}");
    }
}

/// Shows that its guard works, then triggers a fault that no guard covers.
pub fn child(role: &str, place: &LogPath) {
    let mut guarded = Reader::open_untrusted(place, ReaderStart::Now).expect("the parent has made it");
    let plain = Reader::open(place, ReaderStart::Now, Registration::Registered);
    let mut plain = plain.expect("the parent has made it");
    writable(&place.dir().join("data")).set_len(0).expect("the file can be cut");
    assert!(guarded.next().is_err());
    print_number(faults());
    if role == "unguarded" {
        plain.next().expect("never said");
    } else {
        // The standard library lets the first signal pass, and so does the guard.
        for _ in 0..2 {
            // SAFETY: a signal to this process.
            unsafe { libc::raise(libc::SIGBUS) };
        }
    }
    print_number(99);
}

impl ScratchLog {
    /// Returns the data file of a full lane, whose writer has ended.
    fn data_of_a_fresh_log(&self) -> std::path::PathBuf {
        let mut writer = self.writer();
        let mut reader = untrusted(self, ReaderStart::Now);
        reader.freeze_cursor();
        for number in 0.. {
            if writer.publish(0, 16, &payload(number, (number * 37 % 700) as usize)).is_err() {
                break;
            }
        }
        self.data()
    }
}

/// Ends the hostile thread even if the test fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Changes a few words anywhere behind the header; now and then restores them.
fn scribble(file: &File, dice: &mut Dice) {
    let words = (3 * SEGMENT_BYTES / 8) as u64;
    let at = HEADER_BYTES as u64
        + 8 * [dice.below(words), dice.below(3) * words / 3 + dice.below(20)][dice.below(2) as usize];
    let mut word = [0; 8];
    file.read_exact_at(&mut word, at).expect("the file can be read");
    let bad = match dice.below(4) {
        0 => [0; 8],
        1 => [0xff; 8],
        2 => (u64::from_le_bytes(word) ^ 1 << dice.below(64)).to_le_bytes(),
        _ => dice.draw().to_le_bytes(),
    };
    file.write_all_at(&bad, at).expect("the file can be written");
    if dice.below(3) > 0 {
        yield_now();
        file.write_all_at(&word, at).expect("the file can be written");
    }
}

/// Reads until the log is damaged, for so many turns at most; returns 1 if it is.
fn read_until_damage(reader: &mut Reader, turns: u64) -> u64 {
    for _ in 0..turns {
        match reader.next() {
            Ok(Next::Message(message)) => {
                let sum = crc32c::crc32c(message.payload);
                yield_now();
                assert_eq!(crc32c::crc32c(message.payload), sum, "what was handed over is not a copy");
            }
            Ok(_) => return 0,
            Err(LogReadError::Damaged { .. }) => return 1,
            Err(e) => panic!("{e}"),
        }
    }
    0
}

fn untrusted(scratch: &ScratchLog, start: ReaderStart) -> Reader {
    Reader::open_untrusted(scratch.place(), start).expect("the log can be read")
}

fn cut(scratch: &ScratchLog, file: &str, length: u64) {
    writable(&scratch.place().dir().join(file)).set_len(length).expect("the file can be cut");
}

fn writable(path: &std::path::Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("the file can be opened")
}
