//! Channels of order books: each message follows the one before, and the levels are those of the exchange.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tickpath_market::{Price, Quantity, Side};

use crate::stage::{SECOND_NS, SPOT, SocketId, Stage, limit, price, quantity};

/// A book as a listener builds it.
#[derive(Default)]
struct BuiltBook {
    sides: [BTreeMap<Price, Quantity>; 2],
    sequence: Option<i64>,
    resets: usize,
}

impl BuiltBook {
    /// Applies a message, and checks that it follows the last one.
    fn apply(&mut self, message: &Value) {
        let data = &message["data"][0];
        let number = |name: &str| data[name].as_i64().unwrap_or_else(|| panic!("no {name} in {message}"));
        let (previous, sequence) = (number("prevSeqId"), number("seqId"));
        if message["action"] == "snapshot" {
            assert_eq!(previous, -1, "{message}");
            self.sides = Default::default();
        } else {
            assert_eq!(Some(previous), self.sequence, "{message}");
            self.resets += usize::from(sequence < previous);
        }
        assert_eq!(data["checksum"], 0);
        self.sequence = Some(sequence);
        for (side, name) in self.sides.iter_mut().zip(["bids", "asks"]) {
            for level in data[name].as_array().expect("a list") {
                let text = |index: usize| level[index].as_str().expect("a text");
                match quantity(text(1)) {
                    Quantity::ZERO => side.remove(&price(text(0))),
                    size => side.insert(price(text(0)), size),
                };
            }
        }
    }

    /// Checks the levels against those of the exchange.
    fn check(&self, stage: &mut Stage) {
        assert!(self.is_present(stage), "{:?}", self.sides);
    }

    /// Returns whether the levels are those of the exchange.
    fn is_present(&self, stage: &mut Stage) -> bool {
        self.sides.iter().zip([Side::Buy, Side::Sell]).all(|(own, side)| {
            let levels: BTreeMap<Price, Quantity> = stage.exchange.desk().book(0, side).collect();
            *own == levels
        })
    }
}

/// Places an order, which the exchange may refuse.
fn enter(stage: &mut Stage, socket: SocketId, side: &str, price: &str, size: i64) {
    stage.operate(socket, "order", json!([limit(side, price, &size.to_string())]));
}

fn next_message(stage: &mut Stage, socket: SocketId) -> Value {
    stage.take(socket, |message| message["data"].is_array())
}

#[test]
fn a_snapshot_is_followed_by_updates_and_a_sign_of_life() {
    let mut stage = Stage::open();
    let socket = stage.socket("/ws/v5/public");
    stage.subscribe(socket, json!({"channel": "books", "instId": SPOT}));
    let mut book = BuiltBook::default();
    book.apply(&next_message(&mut stage, socket));
    book.check(&mut stage);
    stage.quote(SPOT, "99.8", "100.2");
    stage.advance(SECOND_NS);
    book.apply(&next_message(&mut stage, socket));
    book.check(&mut stage);
    for _ in 0..3 {
        stage.advance(20 * SECOND_NS);
        stage.send_text(socket, "ping");
        stage.take_text(socket, |text| text == "pong");
    }
    let alive = next_message(&mut stage, socket);
    book.apply(&alive);
    let data = &alive["data"][0];
    assert_eq!((&data["asks"], &data["bids"]), (&json!([]), &json!([])));
    assert_eq!(data["seqId"], data["prevSeqId"]);
}

#[test]
fn the_fast_book_needs_a_login() {
    let mut stage = Stage::open();
    let socket = stage.socket("/ws/v5/public");
    stage.log_in(socket);
    stage.subscribe(socket, json!({"channel": "books-l2-tbt", "instId": SPOT}));
    let mut book = BuiltBook::default();
    book.apply(&next_message(&mut stage, socket));
    stage.quote(SPOT, "99.8", "100.2");
    book.apply(&next_message(&mut stage, socket));
    book.check(&mut stage);
}

#[test]
fn a_later_listener_gets_the_same_sequence_numbers() {
    let mut stage = Stage::open();
    let (first, second) = (stage.socket("/ws/v5/public"), stage.socket("/ws/v5/public"));
    let mut books = [BuiltBook::default(), BuiltBook::default()];
    for (socket, book) in [first, second].into_iter().zip(&mut books) {
        stage.subscribe(socket, json!({"channel": "books", "instId": SPOT}));
        book.apply(&next_message(&mut stage, socket));
    }
    stage.quote(SPOT, "99.7", "100.3");
    stage.advance(SECOND_NS);
    for (socket, book) in [first, second].into_iter().zip(&mut books) {
        book.apply(&next_message(&mut stage, socket));
        book.check(&mut stage);
    }
    assert_eq!(books[0].sequence, books[1].sequence);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_book_built_from_updates_is_that_of_the_exchange_also_behind_resets(
        steps in vec((0_u8..4, 1_i64..60, 1_i64..5), 1..12),
        reset_every in 0_u64..4,
    ) {
        let mut stage = Stage::with(|faults| faults.reset_sequence_every = reset_every);
        let (public, private) = (stage.socket("/ws/v5/public"), stage.private());
        stage.subscribe(public, json!({"channel": "books", "instId": SPOT}));
        let mut book = BuiltBook::default();
        book.apply(&next_message(&mut stage, public));
        let mut updates = 0_u64;
        for (kind, distance, size) in steps {
            let tenths = |units: i64| format!("{}.{}", units / 10, units % 10);
            // An order beyond the balance changes nothing.
            match kind {
                0 => stage.quote(SPOT, &tenths(999 - distance), &tenths(1_001 + distance)),
                1 => enter(&mut stage, private, "buy", &tenths(1_001 - distance), size),
                2 => enter(&mut stage, private, "sell", &tenths(999 + distance), size),
                _ => _ = stage.exchange.desk().cancel_all(1, 0, None),
            }
            stage.advance(SECOND_NS);
            if !book.is_present(&mut stage) {
                book.apply(&next_message(&mut stage, public));
                updates += 1;
            }
            book.check(&mut stage);
        }
        let expected = updates.checked_div(reset_every).unwrap_or(0);
        prop_assert!(book.resets as u64 <= expected, "{} of {updates} updates", book.resets);
        prop_assert!(expected == 0 || book.resets > 0, "the sequence is reset");
    }
}
