//! A data file of any content is read to its end or refused.
//!
//! Input: five bytes of geometry, then the segments. The header around them is sound, for a fuzzer does not guess a
//! checksum; with a first byte of 255 the whole input is the file.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use tickpath_clock::Calibration;
use tickpath_log::{FORMAT_VERSION, HEADER_BYTES, LogPath, Next, Reader, ReaderStart, Registration};
use zerocopy::IntoBytes;

const SEGMENT_BYTES: usize = 4096;

/// More than fits into any file that a fuzzer makes.
const MAX_MESSAGES: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((geometry, segments)) = input.split_first_chunk::<5>() else { return };
    let file = if geometry[0] == u8::MAX { input.to_vec() } else { file(*geometry, segments) };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    fs::write(folder.path().join("data"), file).expect("the folder can be written");
    let path = LogPath::folder(folder.path());
    for start in [ReaderStart::Oldest, ReaderStart::Now, ReaderStart::Sequence(u64::from(geometry[4]))] {
        read(&path, start);
    }
});

fn read(path: &LogPath, start: ReaderStart) {
    let Ok(mut reader) = Reader::open(path, start, Registration::Unregistered) else { return };
    let mut bytes = 0;
    for _ in 0..MAX_MESSAGES {
        match reader.next() {
            Ok(Next::Message(message)) => bytes += message.payload.iter().map(|&b| usize::from(b)).sum::<usize>(),
            Ok(Next::Gap(_)) => {}
            Ok(Next::Empty) | Err(_) => break,
        }
    }
    assert!(bytes < usize::MAX);
    let _ = (reader.calibration(), reader.position(), reader.sequence());
}

/// A sound header, and segments of any content, the last one filled up with zeros.
fn file([policy, segments, align, crc, _]: [u8; 5], content: &[u8]) -> Vec<u8> {
    let policy = u32::from(policy % 3 + 1);
    let (segments, least) = if policy == 3 { (0, 1) } else { (u32::from(segments % 4 + 2), segments % 4 + 2) };
    let mut file = b"TICKLOG\0".to_vec();
    let align = if align % 2 == 0 { 16 } else { 64 };
    for number in [FORMAT_VERSION, policy, SEGMENT_BYTES as u32, segments, align, u32::from(crc % 2)] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(Calibration::nanoseconds().as_bytes());
    // No owner, from sequence number 0 on, without a mandatory reader.
    file.extend_from_slice(&[0; 4 * 8 + 4]);
    let checksum = crc32c::crc32c(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    file.resize(HEADER_BYTES, 0);
    file.extend_from_slice(content);
    let whole = content.len().next_multiple_of(SEGMENT_BYTES).max(usize::from(least) * SEGMENT_BYTES);
    file.resize(HEADER_BYTES + whole, 0);
    file
}
