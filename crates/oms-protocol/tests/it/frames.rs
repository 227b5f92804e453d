//! Frames survive any splitting of the stream; invalid bytes are refused with a message.

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_oms_protocol::{
    CommandAck, CopyHeader, CopyTrailer, FrameBuffer, FrameError, FrameHeader, FrameKind, HEADER_BYTES, Logon,
    LogonRejectReason, MAGIC, MAX_PAYLOAD, Query, Status, UserRole, Welcome, write_frame, write_frame_with_text,
};
use zerocopy::IntoBytes;

/// A frame that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SampleFrame {
    kind: u8,
    sequence: u64,
    stamp: u64,
    message: Vec<u8>,
    text: Vec<u8>,
}

fn said() -> impl Strategy<Value = SampleFrame> {
    let length = prop_oneof![0usize..200, 0usize..MAX_PAYLOAD / 2];
    let bytes = length.prop_flat_map(|length| vec(any::<u8>(), length));
    (any::<u8>(), any::<u64>(), any::<u64>(), bytes.clone(), bytes)
        .prop_map(|(kind, sequence, stamp, message, text)| SampleFrame { kind, sequence, stamp, message, text })
}

/// Passes the bytes to an inbox in pieces of these lengths, repeatedly, and returns the frames.
fn receive(bytes: &[u8], pieces: &[usize]) -> Result<Vec<SampleFrame>, FrameError> {
    let (mut inbox, mut rest, mut out) = (FrameBuffer::default(), bytes, Vec::new());
    for piece in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let room = inbox.free_space();
        let taken = rest.len().min(*piece).min(room.len());
        assert!(taken > 0, "there is always room");
        room[..taken].copy_from_slice(&rest[..taken]);
        inbox.advance(taken);
        rest = &rest[taken..];
        while let Some(frame) = inbox.next()? {
            let (message, text) = (frame.payload.to_vec(), frame.text.to_vec());
            out.push(SampleFrame { kind: frame.kind, sequence: frame.sequence, stamp: frame.stamp, message, text });
        }
    }
    Ok(out)
}

proptest! {
    #[test]
    fn any_cut_of_the_stream_gives_the_same_frames(
        frames in vec(said(), 0..80),
        pieces in vec(prop_oneof![1usize..100, 1usize..100_000], 1..20),
    ) {
        let mut stream = Vec::new();
        for SampleFrame { kind, sequence, stamp, message, text } in &frames {
            write_frame_with_text(&mut stream, *kind, *sequence, *stamp, message, text);
        }
        prop_assert_eq!(receive(&stream, &pieces), Ok(frames));
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(bytes in vec(any::<u8>(), 0..9000), pieces in vec(1usize..5000, 1..5)) {
        match receive(&bytes, &pieces) {
            Ok(frames) => prop_assert!(frames.iter().all(|frame| frame.message.len() + frame.text.len() <= MAX_PAYLOAD)),
            Err(e) => prop_assert!(e.to_string().contains("order entry port")),
        }
    }

    #[test]
    fn a_message_is_read_whatever_its_version(message in vec(any::<u8>(), 0..120)) {
        let mut stream = Vec::new();
        write_frame(&mut stream, 0, 0, 0, &message);
        let mut inbox = inbox_of(&stream);
        let welcome: Welcome = inbox.next().unwrap().unwrap().message();
        let mut expected = message;
        expected.resize(size_of::<Welcome>(), 0);
        prop_assert_eq!(welcome.as_bytes(), &expected[..]);
    }
}

#[test]
fn a_wrong_header_is_refused_before_its_payload() {
    let long = FrameHeader { length: MAX_PAYLOAD as u32 + 1, ..FrameHeader::default() };
    assert_eq!(inbox_of(long.as_bytes()).next(), Err(FrameError::Length(4097)));
    let short = FrameHeader { length: 3, fixed: 4, ..FrameHeader::default() };
    assert_eq!(inbox_of(short.as_bytes()).next(), Err(FrameError::Fixed { length: 3, fixed: 4 }));
}

#[test]
fn a_text_is_cut_at_the_max_payload() {
    let mut stream = Vec::new();
    write_frame_with_text(&mut stream, 1, 2, 3, &[7; 100], &[8; MAX_PAYLOAD]);
    assert_eq!(stream.len(), HEADER_BYTES + MAX_PAYLOAD);
    let mut inbox = inbox_of(&stream);
    let frame = inbox.next().unwrap().unwrap();
    assert_eq!((frame.payload, frame.text), (&[7; 100][..], &[8; MAX_PAYLOAD - 100][..]));
}

#[test]
fn the_messages_have_the_documented_sizes() {
    assert_eq!((HEADER_BYTES, size_of::<Logon>(), size_of::<Welcome>(), size_of::<Query>()), (24, 56, 64, 16));
    assert_eq!((size_of::<CommandAck>(), size_of::<CopyHeader>(), size_of::<CopyTrailer>()), (8, 24, 40));
    assert_eq!(MAGIC.len(), 8);
}

#[test]
fn codes_match_their_names() {
    for code in 0..=u8::MAX {
        assert!(FrameKind::from_code(code).is_none_or(|kind| kind.code() == code));
        assert!(UserRole::from_code(code).is_none_or(|role| role.code() == code));
        assert!(LogonRejectReason::from_code(code.into()).is_none_or(|refusal| refusal.code() == u16::from(code)));
    }
    assert_eq!(FrameKind::from_code(FrameKind::OrderRow.code()), Some(FrameKind::OrderRow));
    assert_eq!(Status { pid: 7, ..Status::default() }.fields().next(), Some(("pid", 7)));
}

/// Returns an inbox with these bytes.
fn inbox_of(bytes: &[u8]) -> FrameBuffer {
    let mut inbox = FrameBuffer::default();
    inbox.free_space()[..bytes.len()].copy_from_slice(bytes);
    inbox.advance(bytes.len());
    inbox
}

#[test]
fn an_oms_before_version_4_does_not_show_a_drop_copy() {
    let of = |version, rights| Welcome { version, rights, ..Welcome::default() }.has_drop_copy();
    assert_eq!((of(3, 0), of(4, 0), of(4, Welcome::DROP_COPY)), (None, Some(false), Some(true)));
}
