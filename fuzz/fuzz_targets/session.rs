//! A connection that sends anything: its bytes are frames or refused, each frame is read as every message, and every
//! text is given to both sides of a logon.
//!
//! Input: the bytes of a connection, after one that says in which pieces they come.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tickpath_market::{ExecutionReport, OrderDenied, Request};
use tickpath_oms_protocol::{
    ClientLogon, Frame, FrameBuffer, HEADER_BYTES, Logon, LogonReject, Query, Secret, ServerLogon, Status, Welcome,
    write_frame_with_text,
};
use zerocopy::{FromBytes, IntoBytes};

static SECRET: LazyLock<Secret> = LazyLock::new(|| Secret::from_password("a password that no input guesses"));

fuzz_target!(|input: &[u8]| {
    let Some((&piece, mut rest)) = input.split_first() else { return };
    let piece = usize::from(piece) * 16 + 1;
    log_on(rest);
    let (mut frames, mut copy) = (FrameBuffer::default(), Vec::new());
    while !rest.is_empty() {
        let space = frames.free_space();
        let (now, later) = rest.split_at(rest.len().min(piece).min(space.len()));
        space[..now.len()].copy_from_slice(now);
        frames.advance(now.len());
        rest = later;
        loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    read(&frame);
                    copy.clear();
                    let Frame { kind, sequence, stamp, payload, text } = frame;
                    write_frame_with_text(&mut copy, kind, sequence, stamp, payload, text);
                    assert_eq!(copy.len(), HEADER_BYTES + payload.len() + text.len());
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
});

fn read(frame: &Frame) {
    fn message<T: FromBytes + IntoBytes>(frame: &Frame) {
        let _ = frame.message::<T>();
    }
    message::<Logon>(frame);
    message::<Welcome>(frame);
    message::<LogonReject>(frame);
    message::<Query>(frame);
    message::<Status>(frame);
    message::<ExecutionReport>(frame);
    message::<OrderDenied>(frame);
    let _ = Request::read(frame.kind, frame.payload);
    log_on(frame.text);
}

/// Gives the same bytes to each step of a logon.
fn log_on(bytes: &[u8]) {
    for binding in [None, Some(&[7; 32])] {
        if let Ok((server, _)) = ServerLogon::begin(bytes, binding, |_| SECRET.clone()) {
            assert!(server.verify(bytes).is_err());
        }
    }
    if let Ok((server, _)) = ServerLogon::begin(b"n,,n=anna,r=nonce", None, |_| SECRET.clone()) {
        assert!(server.verify(bytes).is_err());
    }
    let (mut client, _) = ClientLogon::new("anna", "x", None).expect("a name as good as any");
    assert!(client.answer(bytes).is_err(), "it cannot know the nonce");
    assert!(client.check(bytes).is_err());
    if let Ok(text) = str::from_utf8(bytes)
        && let Ok(secret) = text.parse::<Secret>()
    {
        assert_eq!(secret.to_string().parse(), Ok(secret));
    }
}
