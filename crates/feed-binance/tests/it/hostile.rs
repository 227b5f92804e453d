//! Frames that are no messages: no panic, no half of a message, and an error for each.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tickpath_feed::Frame;
use tickpath_feed_binance::TimeUnit;

use crate::frames::{MESSAGES, SNAPSHOT, parse, parser};

#[test]
fn every_truncation_is_refused() {
    let mut parser = parser(TimeUnit::Millisecond);
    let combined = MESSAGES.iter().map(|message| format!(r#"{{"stream":"btcusdt@any","data":{message}}}"#));
    let bare = MESSAGES.iter().copied().chain([SNAPSHOT]).map(str::to_owned);
    for text in bare.chain(combined) {
        for end in 0..text.len() {
            let read = parse(&mut parser, Frame::Text(&text.as_bytes()[..end]));
            assert!(read.is_err(), "{} gives {read:?}", &text[..end]);
        }
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("{}{}", r#"{"data":"#.repeat(10_000), "}".repeat(10_000));
    assert!(parse(&mut parser(TimeUnit::Millisecond), Frame::Text(deep.as_bytes())).is_err());
}

#[test]
fn texts_of_the_exchange_are_shown_without_control_characters_and_bounded() {
    let mut parser = parser(TimeUnit::Millisecond);
    let long = format!(r#"{{"code":1,"msg":"\u001b[2J\n{}"}}"#, "x".repeat(10_000));
    let error = parse(&mut parser, Frame::Text(long.as_bytes())).expect_err("an error").to_string();
    assert!(error.contains("?[2J?xxx") && error.len() < 1_000, "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        let mut parser = parser(TimeUnit::Millisecond);
        let _ = parse(&mut parser, Frame::Text(&bytes));
        let _ = parse(&mut parser, Frame::Binary(&bytes));
    }

    #[test]
    fn a_message_with_changed_bytes_is_read_or_refused(
        message in select(MESSAGES),
        changes in vec((any::<Index>(), any::<u8>()), 1..6),
        removed in any::<(Index, Index)>(),
    ) {
        let mut bytes = message.as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let (from, to) = (removed.0.index(bytes.len()), removed.1.index(bytes.len()));
        bytes.drain(from.min(to)..from.max(to));
        let _ = parse(&mut parser(TimeUnit::Millisecond), Frame::Text(&bytes));
    }
}
