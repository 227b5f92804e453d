//! A channel of an order book: a snapshot, then changes, each with the sequence number that it follows.
//!
//! | message  | `prevSeqId`            | `seqId`                                             |
//! |----------|------------------------|-----------------------------------------------------|
//! | snapshot | -1                     | that of the last message                            |
//! | changes  | that of the last one   | larger; smaller if the sequence is reset on purpose |
//! | alive    | that of the last one   | the same: nothing has changed for 60 s              |

use std::collections::BTreeMap;

use tickpath_market::{Price, Quantity, Side};
use tickpath_venue_sim_web::SimDesk;

use crate::fields::ms_text;

/// Max levels of a side.
pub(crate) const MAX_LEVELS: usize = 400;
/// Silence after which a channel shows that it is alive.
pub(crate) const ALIVE_NS: u64 = 60_000_000_000;
/// First sequence number. Sequences that are reset on purpose begin again at 1.
const FIRST_SEQUENCE: u64 = 1_000_000;

/// Levels of a side by their prices.
type Levels = BTreeMap<Price, Quantity>;

/// The state of a channel: the book as its listeners have it.
#[derive(Debug)]
pub(crate) struct DepthStream {
    asks: Levels,
    bids: Levels,
    sequence: u64,
    updates: u64,
    sent_ns: u64,
    has_changed: bool,
}

impl DepthStream {
    pub(crate) fn new() -> Self {
        let (asks, bids) = (Levels::new(), Levels::new());
        Self { asks, bids, sequence: FIRST_SEQUENCE, updates: 0, sent_ns: 0, has_changed: true }
    }

    /// Notes that the book has changed.
    pub(crate) fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// Returns the data of a snapshot. A stream without listeners takes over the present book before.
    pub(crate) fn snapshot(&mut self, sim: &SimDesk, index: usize, now_ns: u64, is_heard: bool) -> String {
        if !is_heard {
            (self.asks, self.bids) = (levels(sim, index, Side::Sell), levels(sim, index, Side::Buy));
            (self.has_changed, self.sent_ns) = (false, now_ns);
            self.sequence += 1;
        }
        data(&self.asks, &self.bids, now_ns, self.sequence, "-1")
    }

    /// Returns the data of an update, if one is due: changes at most once in `every_ns`, or the sign to be alive. Every
    /// `reset_every` updates the sequence is reset; never if that is zero.
    pub(crate) fn update(
        &mut self,
        sim: &SimDesk,
        index: usize,
        now_ns: u64,
        every_ns: u64,
        reset_every: u64,
    ) -> Option<String> {
        let silence_ns = now_ns.saturating_sub(self.sent_ns);
        if self.has_changed && silence_ns >= every_ns {
            self.has_changed = false;
            let asks = take_changes(&mut self.asks, levels(sim, index, Side::Sell));
            let bids = take_changes(&mut self.bids, levels(sim, index, Side::Buy));
            if !asks.is_empty() || !bids.is_empty() {
                let previous = self.sequence;
                self.advance(reset_every);
                self.sent_ns = now_ns;
                return Some(data(&asks, &bids, now_ns, self.sequence, &previous.to_string()));
            }
        }
        let is_silent = silence_ns >= ALIVE_NS;
        is_silent.then(|| {
            self.sent_ns = now_ns;
            data(&Levels::new(), &Levels::new(), now_ns, self.sequence, &self.sequence.to_string())
        })
    }

    fn advance(&mut self, reset_every: u64) {
        self.updates += 1;
        let is_reset = reset_every > 0 && self.updates.is_multiple_of(reset_every) && self.sequence > 1;
        self.sequence = if is_reset { 1 } else { self.sequence + 1 };
    }
}

/// Returns both sides of a book in OKX's form, the best levels first: `"asks":[…],"bids":[…]`.
pub(crate) fn book_text(sim: &SimDesk, index: usize, max_levels: usize) -> String {
    let side = |side| joined(sim.book(index, side).take(max_levels));
    format!(r#""asks":[{}],"bids":[{}]"#, side(Side::Sell), side(Side::Buy))
}

fn levels(sim: &SimDesk, index: usize, side: Side) -> Levels {
    sim.book(index, side).take(MAX_LEVELS).collect()
}

/// Replaces the levels of a side, and returns what has changed; a removed level has the quantity zero.
fn take_changes(known: &mut Levels, present: Levels) -> Levels {
    let mut changes: Levels = present
        .iter()
        .filter(|(price, quantity)| known.get(*price) != Some(*quantity))
        .map(|(price, quantity)| (*price, *quantity))
        .collect();
    let removed = known.keys().filter(|price| !present.contains_key(*price)).map(|price| (*price, Quantity::ZERO));
    changes.extend(removed);
    *known = present;
    changes
}

fn data(asks: &Levels, bids: &Levels, now_ns: u64, sequence: u64, previous: &str) -> String {
    let pair = |(price, quantity): (&Price, &Quantity)| (*price, *quantity);
    let (asks, bids) = (joined(asks.iter().map(pair)), joined(bids.iter().rev().map(pair)));
    let ms = ms_text(now_ns);
    format!(r#"{{"asks":[{asks}],"bids":[{bids}],"ts":"{ms}","checksum":0,"seqId":{sequence},"prevSeqId":{previous}}}"#)
}

/// Returns levels as OKX writes them: price, quantity, an abandoned field, and the number of orders.
fn joined(levels: impl Iterator<Item = (Price, Quantity)>) -> String {
    let texts = levels.map(|(price, quantity)| {
        let orders = u8::from(quantity > Quantity::ZERO);
        format!(r#"["{price}","{quantity}","0","{orders}"]"#)
    });
    texts.collect::<Vec<_>>().join(",")
}
