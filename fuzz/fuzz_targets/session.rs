//! A connection that says anything: its bytes are frames or refused, each frame is read as every message, and every text
//! is given to both sides of a logon.
//!
//! Input: the bytes of a connection, after one that says in which pieces they come.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tickpath_market::{ExecutionReport, OrderDenied, Request};
use tickpath_oms_protocol::{
    ClientLogon, Frame, HEAD_BYTES, Inbox, Logon, Query, Refused, Secret, ServerLogon, Status, Welcome, write_with_text,
};
use zerocopy::{FromBytes, IntoBytes};

static SECRET: LazyLock<Secret> = LazyLock::new(|| Secret::of("a password that no input guesses"));

fuzz_target!(|input: &[u8]| {
    let Some((&piece, mut rest)) = input.split_first() else { return };
    let piece = usize::from(piece) * 16 + 1;
    log_on(rest);
    let (mut inbox, mut again) = (Inbox::default(), Vec::new());
    while !rest.is_empty() {
        let room = inbox.room();
        let (now, later) = rest.split_at(rest.len().min(piece).min(room.len()));
        room[..now.len()].copy_from_slice(now);
        inbox.filled(now.len());
        rest = later;
        loop {
            match inbox.next() {
                Ok(Some(frame)) => {
                    read(&frame);
                    again.clear();
                    write_with_text(&mut again, frame.kind, frame.sequence, frame.stamp, frame.payload, frame.text);
                    assert_eq!(again.len(), HEAD_BYTES + frame.payload.len() + frame.text.len());
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
    message::<Refused>(frame);
    message::<Query>(frame);
    message::<Status>(frame);
    message::<ExecutionReport>(frame);
    message::<OrderDenied>(frame);
    let _ = Request::read(frame.kind, frame.payload);
    log_on(frame.text);
}

/// Gives the same bytes to each step of a logon.
fn log_on(said: &[u8]) {
    for binding in [None, Some(&[7; 32])] {
        if let Ok((server, _)) = ServerLogon::begin(said, binding, |_| SECRET.clone()) {
            assert!(server.verify(said).is_err());
        }
    }
    if let Ok((server, _)) = ServerLogon::begin(b"n,,n=anna,r=nonce", None, |_| SECRET.clone()) {
        assert!(server.verify(said).is_err());
    }
    let (mut client, _) = ClientLogon::new("anna", "x", None).expect("a name as good as any");
    assert!(client.answer(said).is_err(), "it cannot know the nonce");
    assert!(client.check(said).is_err());
    if let Ok(text) = str::from_utf8(said)
        && let Ok(secret) = text.parse::<Secret>()
    {
        assert_eq!(secret.to_string().parse(), Ok(secret));
    }
}
