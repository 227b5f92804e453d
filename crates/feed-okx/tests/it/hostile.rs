//! Frames that OKX never sends: each is an error with a sentence, and passes on nothing.

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_feed::Frame;

use crate::frames::{QUOTE, SNAPSHOT, TRADE, UPDATE, UPGRADE_NOTICE, parser, read};
use crate::sbe::{quote_frame, snapshot_frame, trade_frame, update_frame};

const TEXTS: [&str; 5] = [QUOTE, TRADE, SNAPSHOT, UPDATE, UPGRADE_NOTICE];

#[test]
fn a_cut_frame_passes_on_nothing() {
    let mut parser = parser();
    for text in TEXTS {
        for end in 0..text.len() {
            let (messages, result) = read(&mut parser, Frame::Text(&text.as_bytes()[..end]));
            assert!(result.is_err() && messages.is_empty(), "{end} bytes of {text}: {messages:?}");
        }
    }
    for frame in [quote_frame(), trade_frame(), update_frame(), snapshot_frame()] {
        for end in 0..frame.len() {
            let (messages, result) = read(&mut parser, Frame::Binary(&frame[..end]));
            assert!(result.is_err() && messages.is_empty(), "{end} bytes of {frame:?}: {messages:?}");
        }
    }
}

#[test]
fn errors_name_the_place_or_the_instrument() {
    for (frame, sentence) in [
        ("<html>".to_owned(), "a frame of 6 bytes cannot be read: expected value at line 1 column 1; it is skipped"),
        ("{}".to_owned(), "a frame of 2 bytes cannot be read: it has neither an event nor an argument; it is skipped"),
        (
            r#"{"event":"subscribe"}"#.to_owned(),
            "a frame of 21 bytes cannot be read: the event 'subscribe' has no argument; it is skipped",
        ),
        (
            r#"{"event":"dance"}"#.to_owned(),
            "a frame of 17 bytes cannot be read: the event 'dance' is unknown; it is skipped",
        ),
        (
            TRADE.replace("BTC-USDT", "XRP-USDT"),
            "a message of the instrument 'XRP-USDT', which is not subscribed; it is skipped",
        ),
        (
            r#"{"arg":{"channel":"tickers","instId":"BTC-USDT"},"data":[]}"#.to_owned(),
            "a frame of 59 bytes cannot be read: the channel 'tickers' is not read; it is skipped",
        ),
        (
            r#"{"arg":{"channel":"books","instId":"BTC-USDT"},"data":[]}"#.to_owned(),
            "a frame of 57 bytes cannot be read: its action is neither 'snapshot' nor 'update'; it is skipped",
        ),
        (
            UPDATE.replace(r#","prevSeqId":123456"#, ""),
            "a frame of 165 bytes cannot be read: an update of a book has no prevSeqId, or a negative one; it is skipped",
        ),
        (
            TRADE.replace("42219.9", "dear"),
            "a frame of 203 bytes cannot be read: its px 'dear' is no decimal number; it is skipped",
        ),
        (
            TRADE.replace("0.12060306", "-1"),
            "a frame of 198 bytes cannot be read: its sz '-1' is negative; it is skipped",
        ),
        (
            QUOTE.replace("57745", "-2"),
            "a frame of 173 bytes cannot be read: its quantity '-2' is negative; it is skipped",
        ),
        (
            UPDATE.replace("\"0\",\"0\",\"0\"", "\"-3\",\"0\",\"0\""),
            "a frame of 185 bytes cannot be read: its quantity '-3' is negative; it is skipped",
        ),
        (
            TRADE.replace("buy", "gift"),
            "a frame of 207 bytes cannot be read: its side is neither 'buy' nor 'sell'; it is skipped",
        ),
    ] {
        let (messages, result) = read(&mut parser(), Frame::Text(frame.as_bytes()));
        assert_eq!((messages, result.map_err(|e| e.to_string())), (Vec::new(), Err(sentence.to_owned())), "{frame}");
    }
}

proptest! {
    #[test]
    fn random_bytes_are_an_error(bytes in vec(any::<u8>(), 0..200)) {
        for frame in [Frame::Text(&bytes), Frame::Binary(&bytes)] {
            let (messages, result) = read(&mut parser(), frame);
            prop_assert!(result.is_err() && messages.is_empty());
        }
    }

    /// Changed bytes may give another valid frame, but never a part of one.
    #[test]
    fn changed_bytes_pass_on_a_whole_message_or_none(
        which in 0..TEXTS.len() + 4,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let binary = [quote_frame(), trade_frame(), update_frame(), snapshot_frame()];
        let is_text = which < TEXTS.len();
        let mut bytes = if is_text { TEXTS[which].as_bytes().to_vec() } else { binary[which - TEXTS.len()].clone() };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let frame = if is_text { Frame::Text(&bytes) } else { Frame::Binary(&bytes) };
        let (messages, result) = read(&mut parser(), frame);
        prop_assert!(result.is_ok() || messages.is_empty(), "{messages:?} of a frame with the error {result:?}");
    }
}
