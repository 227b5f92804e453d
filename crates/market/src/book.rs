//! The order book of one instrument, built from the messages of a feed. It reports why it is not valid.
//!
//! ```text
//!   BookLevel ───> apply ─────────┐
//!   FeedStatus ──> apply_status ──┼──> bids, asks, best; Invalidity
//!   gap of a bus > lost_messages ─┘
//! ```
//!
//! A side is sorted with its best level in front, in a ring buffer: a change near the best price moves few levels, and
//! so does each level of a snapshot, which exchanges send best first.
//!
//! # Invariants
//!
//! * A book whose levels are unknown has none: they are dropped with the event that makes them unknown, and later
//!   updates are not applied until a snapshot begins.
//! * After [`FeedCondition::Gap`] a book is valid again only after a complete snapshot and
//!   [`FeedCondition::BookValid`], in any order.
//! * After the end of a connection a book stays valid only if another connection is known to be up. A gap of all
//!   instruments is the begin of a carrier, which has no connection yet.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::convert::identity;

use crate::{BookLevel, FeedCondition, FeedStatus, Price, Quantity, Side, SymbolId};

/// The order book of one instrument.
///
/// ```
/// use tickpath_market::{BookChange, BookLevel, Invalidity, OrderBook, Price, Quantity, Side, SymbolId};
///
/// let mut book = OrderBook::new(SymbolId(3));
/// assert_eq!(book.invalidity(), Some(Invalidity::NoSnapshot));
/// let level = |side: Side, price, flags| BookLevel {
///     price: Price::from_whole(price),
///     quantity: Quantity::from_whole(1),
///     symbol: SymbolId(3),
///     side: side.code(),
///     flags,
///     ..BookLevel::default()
/// };
/// assert_eq!(book.apply(&level(Side::Buy, 61_800, BookLevel::SNAPSHOT)), BookChange::Pending);
/// assert_eq!(book.apply(&level(Side::Sell, 61_801, BookLevel::LAST)), BookChange::Complete);
/// let (bid, ask) = book.best().ok_or("the book is valid, and has both sides")?;
/// assert_eq!((bid.price, ask.price), (Price::from_whole(61_800), Price::from_whole(61_801)));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
pub struct OrderBook {
    symbol: SymbolId,
    /// Levels of this side, best first.
    bids: VecDeque<DepthLevel>,
    /// Levels of this side, best first.
    asks: VecDeque<DepthLevel>,
    sequence: u64,
    event_ns: u64,
    /// Reason why the levels are unknown; the end of a snapshot removes it.
    broken: Option<Invalidity>,
    /// Last gap whose end is not announced.
    open_gap: Option<Invalidity>,
    /// The exchange's message in progress is a snapshot.
    is_loading: bool,
    /// The last level of the exchange's message in progress has not arrived.
    is_pending: bool,
    /// Connections that are known to be up, a bit each.
    connections: [u64; 4],
}

/// A level of an order book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepthLevel {
    /// Price of the level.
    pub price: Price,
    /// Quantity at the price, above zero.
    pub quantity: Quantity,
}

/// Effect of a level on a book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BookChange {
    /// The level is of another instrument.
    Ignored,
    /// Further levels of the exchange's message follow.
    Pending,
    /// The exchange's message is complete. The book can be read, if it is valid.
    Complete,
}

/// Reason why a book must not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalidity {
    /// No snapshot has been applied since the book was made.
    #[error("no snapshot of the book has arrived; wait for one, or read the topic from its oldest message")]
    NoSnapshot,
    /// Levels of the exchange's last message are missing so far.
    #[error("the last message of the exchange is applied in part; read the book after its last level")]
    Incomplete,
    /// The feed reports that updates are missing.
    #[error(
        "the update after {expected} was expected, and one after {found} arrived; wait until the feed resynchronizes"
    )]
    Gap {
        /// Sequence number that the next update should have followed.
        expected: u64,
        /// Sequence number that it follows.
        found: u64,
    },
    /// The last connection to the exchange that is known to be up has ended.
    #[error("the connection to the exchange has ended; wait for the snapshot of the next connection")]
    Disconnected,
    /// The bus has lost messages of the feed.
    #[error("messages of the feed were lost on the way here; wait for the next snapshot")]
    LostMessages,
    /// A message has a code that is unknown here.
    #[error("a message of the feed has an unknown code; use the version of the feed, and wait for the next snapshot")]
    UnknownCode,
    /// A side has more levels than a book may hold.
    #[error("a side of the book has more than {} levels; subscribe to fewer levels at the feed", OrderBook::MAX_LEVELS)]
    TooManyLevels,
    /// The best bid is not below the best offer.
    #[error("the best bid is not below the best offer; wait for the next update")]
    Crossed,
}

impl OrderBook {
    /// Max levels of a side.
    pub const MAX_LEVELS: usize = 100_000;

    /// Creates the book of an instrument, which is invalid until the end of a snapshot.
    pub const fn new(symbol: SymbolId) -> Self {
        Self {
            symbol,
            bids: VecDeque::new(),
            asks: VecDeque::new(),
            sequence: 0,
            event_ns: 0,
            broken: Some(Invalidity::NoSnapshot),
            open_gap: None,
            is_loading: false,
            is_pending: false,
            connections: [0; 4],
        }
    }

    /// Applies a level. A quantity that is not above zero removes the level.
    pub fn apply(&mut self, level: &BookLevel) -> BookChange {
        if level.symbol != self.symbol {
            return BookChange::Ignored;
        }
        if level.check().is_err() {
            self.invalidate(Invalidity::UnknownCode);
        } else if level.flags & BookLevel::SNAPSHOT != 0 {
            self.drop_levels();
            self.is_loading = true;
        } else if self.is_pending && level.sequence != self.sequence {
            // The last level of the message before did not arrive.
            self.invalidate(Invalidity::LostMessages);
        }
        (self.sequence, self.event_ns) = (level.sequence, level.event_ns);
        if self.broken.is_none() || self.is_loading {
            self.set(level);
        }
        self.is_pending = level.flags & BookLevel::LAST == 0;
        if self.is_pending {
            return BookChange::Pending;
        }
        if self.is_loading {
            (self.is_loading, self.broken) = (false, None);
        }
        BookChange::Complete
    }

    /// Applies an event of the feed, if it concerns this instrument.
    pub fn apply_status(&mut self, status: &FeedStatus) {
        if status.symbol != self.symbol && status.symbol != FeedStatus::ALL_SYMBOLS {
            return;
        }
        match FeedCondition::from_code(status.condition) {
            Some(FeedCondition::Connected) => self.note_connection(status.connection, true),
            Some(FeedCondition::Disconnected) => {
                self.note_connection(status.connection, false);
                if self.connections == [0; 4] {
                    self.invalidate(Invalidity::Disconnected);
                }
            }
            Some(FeedCondition::Gap) => {
                let gap = Invalidity::Gap { expected: status.expected, found: status.found };
                self.invalidate(gap);
                self.open_gap = Some(gap);
                if status.symbol == FeedStatus::ALL_SYMBOLS {
                    self.connections = [0; 4];
                }
            }
            Some(FeedCondition::BookValid) => self.open_gap = None,
            Some(FeedCondition::Silence | FeedCondition::Maintenance | FeedCondition::ClockOffset) => {}
            None => self.invalidate(Invalidity::UnknownCode),
        }
    }

    /// Notes that messages of the topic were lost on their way to this reader: call it for each book of the subscriber,
    /// because a loss names no instrument. The next snapshot makes the book valid again, even after a gap, whose end
    /// may be among the lost messages.
    pub fn lost_messages(&mut self) {
        self.invalidate(Invalidity::LostMessages);
        (self.open_gap, self.connections) = (None, [0; 4]);
    }

    /// Returns whether the book may be used.
    pub fn is_valid(&self) -> bool {
        self.invalidity().is_none()
    }

    /// Returns why the book must not be used; none if it is valid.
    pub fn invalidity(&self) -> Option<Invalidity> {
        let incomplete = self.is_pending.then_some(Invalidity::Incomplete);
        let crossed = self.is_crossed().then_some(Invalidity::Crossed);
        self.broken.or(self.open_gap).or(incomplete).or(crossed)
    }

    /// Returns the best bid and the best offer; none if the book is not valid or a side is empty.
    pub fn best(&self) -> Option<(DepthLevel, DepthLevel)> {
        let best = (*self.bids.front()?, *self.asks.front()?);
        self.is_valid().then_some(best)
    }

    /// Returns the bids, best first. Check [`Self::is_valid`] first.
    pub fn bids(&self) -> impl ExactSizeIterator<Item = DepthLevel> {
        self.bids.iter().copied()
    }

    /// Returns the offers, best first. Check [`Self::is_valid`] first.
    pub fn asks(&self) -> impl ExactSizeIterator<Item = DepthLevel> {
        self.asks.iter().copied()
    }

    /// Returns the number of levels of a side.
    pub fn depth(&self, side: Side) -> usize {
        match side {
            Side::Buy => self.bids.len(),
            Side::Sell => self.asks.len(),
        }
    }

    /// Returns the instrument.
    pub const fn symbol(&self) -> SymbolId {
        self.symbol
    }

    /// Returns the exchange's sequence number of the last message; zero before the first.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the exchange's time of the last message, nanoseconds since the Unix epoch; zero if it sends none.
    pub const fn event_ns(&self) -> u64 {
        self.event_ns
    }

    fn set(&mut self, level: &BookLevel) {
        let (price, quantity) = (level.price, level.quantity);
        let fits = match Side::from_code(level.side) {
            Some(Side::Buy) => set_level(&mut self.bids, price, quantity, Reverse),
            Some(Side::Sell) => set_level(&mut self.asks, price, quantity, identity),
            None => true,
        };
        if !fits {
            self.invalidate(Invalidity::TooManyLevels);
        }
    }

    /// Drops the levels until a snapshot begins; the end of a snapshot in progress no longer makes the book valid.
    fn invalidate(&mut self, reason: Invalidity) {
        self.drop_levels();
        (self.is_loading, self.is_pending) = (false, false);
        self.broken = Some(reason);
    }

    fn drop_levels(&mut self) {
        self.bids.clear();
        self.asks.clear();
    }

    fn is_crossed(&self) -> bool {
        let best = self.bids.front().zip(self.asks.front());
        best.is_some_and(|(bid, ask)| bid.price >= ask.price)
    }

    fn note_connection(&mut self, connection: u8, is_up: bool) {
        let (word, bit) = (usize::from(connection / 64), 1_u64 << (connection % 64));
        if is_up {
            self.connections[word] |= bit;
        } else {
            self.connections[word] &= !bit;
        }
    }
}

/// Sets the quantity at a price in levels sorted by `rank`; returns false if the side is full.
fn set_level<R: Ord>(
    levels: &mut VecDeque<DepthLevel>,
    price: Price,
    quantity: Quantity,
    rank: impl Fn(Price) -> R,
) -> bool {
    let is_removal = quantity.0 <= 0;
    match levels.binary_search_by_key(&rank(price), |level| rank(level.price)) {
        Ok(index) if is_removal => {
            levels.remove(index);
        }
        Ok(index) => levels[index].quantity = quantity,
        Err(_) if is_removal => {}
        Err(_) if levels.len() >= OrderBook::MAX_LEVELS => return false,
        Err(index) => levels.insert(index, DepthLevel { price, quantity }),
    }
    true
}
