//! Frames of a stream: against a splitter that sees the whole stream at once, over random cuts and garbage.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tickpath_fix::{FrameReader, Garbled, GarbledReason, SOH};

/// Limit of a body in these tests.
const MAX_BODY: usize = 200;

/// Returns a message with a right BodyLength and CheckSum.
pub fn frame(begin_string: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("8={begin_string}\x019={}\x01", body.len());
    let mut bytes = [head.as_bytes(), body].concat();
    let sum = bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>() % 256;
    bytes.extend(format!("10={sum:03}\x01").bytes());
    bytes
}

/// Returns the bytes of a text with `|` for the delimiter.
pub fn fix(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if byte == b'|' { SOH } else { byte }).collect()
}

/// Reads a stream in these pieces, and returns the frames and the garbled pieces.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Vec<Garbled>, usize) {
    let mut reader = FrameReader::new(MAX_BODY);
    let (mut frames, mut garbled) = (Vec::new(), Vec::new());
    for piece in pieces {
        reader.extend(piece);
        while let Some(next) = reader.next() {
            match next {
                Ok(frame) => frames.push(frame.bytes.to_vec()),
                Err(piece) => garbled.push(piece),
            }
        }
    }
    (frames, garbled, reader.unread())
}

/// Splits a whole stream. Bytes that are no message must follow the last frame, so that nothing is incomplete.
fn naive_frames(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some(begin) = (at..stream.len()).find(|&begin| stream[begin..].starts_with(b"8=FIX")) {
        let (is_frame, length) = naive_frame(&stream[begin..]);
        if is_frame {
            frames.push(stream[begin..begin + length].to_vec());
        }
        at = begin + length;
    }
    frames
}

/// Returns whether the bytes begin with a frame, and the bytes to pass over before the next one is searched.
fn naive_frame(bytes: &[u8]) -> (bool, usize) {
    let fields: Vec<&[u8]> = bytes.splitn(3, |&byte| byte == SOH).collect();
    let [begin_string, length, rest] = fields[..] else { return (false, 5) };
    let head = begin_string.len() + length.len() + 2;
    let digits = length.strip_prefix(b"9=").unwrap_or_default();
    let length: usize = match number(digits) {
        Some(length) if begin_string.len() <= 18 && digits.len() <= 9 && length > 0 => length,
        _ => return (false, 5),
    };
    if length > MAX_BODY {
        return (false, head);
    }
    let (body, trailer) = (&rest[..length], &rest[length..length + 7]);
    let sum = trailer.strip_prefix(b"10=").and_then(|rest| number(&rest[..3])).filter(|&sum| sum < 256);
    let Some(sum) = sum.filter(|_| trailer[6] == SOH && body.ends_with(&[SOH])) else { return (false, head + length) };
    let actual = bytes[..head + length].iter().map(|&byte| usize::from(byte)).sum::<usize>() % 256;
    (actual == sum && body.starts_with(b"35="), head + length + 7)
}

fn number(digits: &[u8]) -> Option<usize> {
    digits.iter().all(u8::is_ascii_digit).then(|| String::from_utf8_lossy(digits).parse().ok())?
}

/// Messages, messages with a fault, and garbage that looks like parts of messages.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let text =
        select(vec!["8=FIX", "8=FI", "8=", "|", "9=", "10=", "35=", "=", "0", "5", "10=161|", "8=FIX.4.4|9=20|"]);
    let whole = || {
        (select(vec!["FIX.4.4", "FIX.4.2", "FIXT.1.1", "FIX"]), body()).prop_map(|(begin, body)| frame(begin, &body))
    };
    let changed = (whole(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut frame, at, byte)| {
        let at = at.index(frame.len());
        frame[at] = byte;
        frame
    });
    let wrong_length = (body(), 0_usize..300).prop_map(|(body, length)| {
        let text = format!("9={}\x01", body.len());
        let frame = String::from_utf8_lossy(&frame("FIX.4.4", &body)).replacen(&text, &format!("9={length}\x01"), 1);
        frame.into_bytes()
    });
    let cut = (whole(), any::<prop::sample::Index>()).prop_map(|(frame, at)| frame[..at.index(frame.len())].to_vec());
    prop_oneof![
        4 => whole(),
        1 => changed,
        1 => wrong_length,
        1 => cut,
        2 => text.prop_map(fix),
        1 => vec(any::<u8>(), 0..8),
    ]
}

/// Fields behind MsgType, among them data with a delimiter and a CheckSum inside.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let field = select(vec!["34=7|", "49=TW|", "58=8=FIX.4.4|", "95=9|96=a|10=123||", "38=002000.00|", "20=FIX|"]);
    (select(vec!["35=D|", "35=8|", "35=AE|", "34=1|35=0|"]), vec(field, 0..6))
        .prop_map(|(first, rest)| fix(&format!("{first}{}", rest.concat())))
}

proptest! {
    #[test]
    fn frames_are_those_of_the_whole_stream(pieces in vec(piece(), 0..12), cuts in vec(1_usize..60, 1..20)) {
        let mut stream = pieces.concat();
        // Decides everything that might be incomplete.
        stream.resize(stream.len() + MAX_BODY + 100, b'z');
        let mut rest = &stream[..];
        let mut parts = Vec::new();
        for &cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (part, behind) = rest.split_at(cut.min(rest.len()));
            parts.push(part);
            rest = behind;
        }
        let (frames, garbled, unread) = read(parts);
        let read_bytes: usize = frames.iter().map(Vec::len).sum();
        let dropped_bytes: usize = garbled.iter().map(|garbled| garbled.bytes).sum();
        prop_assert_eq!(read_bytes + dropped_bytes, stream.len());
        prop_assert_eq!(unread, 0);
        prop_assert_eq!(&frames, &naive_frames(&stream));
    }

    #[test]
    fn messages_without_faults_are_all_read(bodies in vec(body(), 0..8), cut in 1_usize..40) {
        let expected: Vec<Vec<u8>> =
            bodies.iter().filter(|body| body.starts_with(b"35=")).map(|body| frame("FIX.4.4", body)).collect();
        let stream = expected.concat();
        prop_assert_eq!(read(stream.chunks(cut)), (expected, Vec::new(), 0));
    }
}

#[test]
fn each_fault_has_its_reason_and_the_message_behind_it_is_read() {
    let next = frame("FIX.4.4", b"35=0\x01");
    let order = frame("FIX.4.4", b"35=D\x0134=2\x01");
    let order = String::from_utf8(order).unwrap().replace('\x01', "|");
    for (text, reason) in [
        ("35=0|".to_owned(), GarbledReason::NoBeginString),
        ("GET / HTTP/1.1\r\n".to_owned(), GarbledReason::NoBeginString),
        ("8=FIX.4.4.4.4.4.4.4|".to_owned(), GarbledReason::BeginString),
        ("8=FIX.4.4|35=0|9=5|".to_owned(), GarbledReason::BodyLength),
        ("8=FIX.4.4|9=|".to_owned(), GarbledReason::BodyLength),
        ("8=FIX.4.4|9=0|".to_owned(), GarbledReason::BodyLength),
        ("8=FIX.4.4|9=-5|".to_owned(), GarbledReason::BodyLength),
        ("8=FIX.4.4|9=201|".to_owned(), GarbledReason::TooLong),
        ("8=FIX.4.4|9=99999999999999999999|".to_owned(), GarbledReason::TooLong),
        (order.replace("9=10", "9=9"), GarbledReason::NoCheckSum),
        (order.replace("9=10", "9=5"), GarbledReason::NoCheckSum),
        (order.replace("|10=", "|10=0"), GarbledReason::NoCheckSum),
        (order.replace("34=2", "34=3"), GarbledReason::CheckSum),
        (order.replace("35=D|34=2", "34=2|35=D"), GarbledReason::MsgType),
    ] {
        let (frames, garbled, unread) = read([&*fix(&text), &next]);
        assert_eq!((frames, unread), (vec![next.clone()], 0), "{text}");
        assert_eq!(garbled.first().map(|garbled| garbled.why), Some(reason), "{text}");
        assert_eq!(garbled.iter().map(|garbled| garbled.bytes).sum::<usize>(), text.len(), "{text}");
    }
}

#[test]
fn a_length_that_is_too_long_takes_the_next_message_with_it() {
    let (long, taken) = (frame("FIX.4.4", b"35=D\x0134=4\x01"), frame("FIX.4.4", b"35=D\x0134=5\x01"));
    let long = String::from_utf8(long).unwrap().replace("9=10\x01", "9=25\x01").into_bytes();
    let next = frame("FIX.4.4", b"35=D\x0134=6\x01");
    assert_eq!(read([&long[..]]).0.len(), 0);
    let (frames, garbled, _) = read([&long[..], &taken, &next]);
    assert_eq!(frames, [next]);
    assert_eq!(garbled[0].why, GarbledReason::NoCheckSum);
}

#[test]
fn zeros_before_the_length_are_allowed() {
    let text = frame("FIX.4.4", b"35=0\x01");
    let padded = String::from_utf8(text).unwrap().replace("9=5\x01", "9=005\x01").replace("10=163", "10=003");
    let (frames, garbled, _) = read([padded.as_bytes()]);
    assert_eq!((frames, garbled), (vec![padded.clone().into_bytes()], Vec::new()));
}

#[test]
fn the_buffer_is_bounded_by_the_longest_message() {
    let mut reader = FrameReader::new(MAX_BODY);
    for _ in 0..10_000 {
        reader.extend(&fix("8=FIX.4.4|9=200|35=B|58=spam"));
        while reader.next().is_some() {}
        assert!(reader.unread() <= MAX_BODY + 64, "{} bytes are kept", reader.unread());
    }
    reader.clear();
    assert_eq!(reader.unread(), 0);
    assert!(reader.next().is_none());
}

#[test]
fn bytes_may_be_received_into_the_room() {
    let message = frame("FIX.4.2", &[&b"35=B\x0158="[..], &[b'x'; 100_000], b"\x01"].concat());
    let mut reader = FrameReader::new(1 << 20);
    for part in message.chunks(1_000) {
        assert!(reader.next().is_none());
        let room = reader.room(1_000);
        assert!(room.len() >= 1_000);
        room[..part.len()].copy_from_slice(part);
        reader.add(part.len());
    }
    assert_eq!(reader.next().unwrap().unwrap().bytes, message);
}
