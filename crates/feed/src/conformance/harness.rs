//! The far end of a feed, controlled by a test, and the messages that it sends.

use tickpath_market::{TopOfBook, Trade};

use crate::{BookUpdate, Feed, FrameParser, LevelChange, MarketEvent, Subscription};

/// An exchange on loopback that speaks the protocol of an adapter. The latest connection replaces any earlier one.
pub trait FeedHarness {
    /// Returns the subscription of the feeds: at least two instruments.
    fn subscription(&self) -> Subscription;

    /// Returns a feed to the exchange that was never connected.
    fn feed(&mut self) -> Box<dyn Feed>;

    /// Returns a feed as [`Self::feed`] does, for which the exchange's longest silence is at most a second.
    fn impatient_feed(&mut self) -> Box<dyn Feed>;

    /// Returns a new parser of the feed's frames.
    fn parser(&mut self) -> Box<dyn FrameParser>;

    /// Does the exchange's pending work without waiting: accepts connections, checks and acknowledges subscriptions,
    /// answers heartbeats, and sends requested snapshots. Panics at a wrong subscription.
    fn poll(&mut self);

    /// Returns the number of connects of a feed whose subscriptions were all acknowledged.
    fn acknowledged(&self) -> usize;

    /// Returns the number of heartbeats that have arrived: the feed's own, or its answers to those of the exchange.
    fn heartbeats(&self) -> usize;

    /// Sets the snapshot of a book that the exchange sends from now on, at a subscription and on request.
    fn set_snapshot(&mut self, snapshot: &ExchangeMessage);

    /// Sends a message in a frame of its own.
    fn send(&mut self, message: &ExchangeMessage);

    /// Sends the first half of the frame of a message.
    fn send_half(&mut self, message: &ExchangeMessage);

    /// Sends the other half of that frame.
    fn send_rest(&mut self);

    /// Sends a frame that is no message of the protocol.
    fn send_garbage(&mut self);

    /// Stops the exchange from reading, answering and acknowledging while its connections stay open, or ends that.
    fn set_silent(&mut self, is_silent: bool);

    /// Ends the connection.
    fn cut(&mut self);

    /// Refuses connects from now on.
    fn refuse_connects(&mut self);

    /// Returns a message as the protocol carries it: for example without a time, or with snapshots that may overlap.
    fn carried(&self, message: ExchangeMessage) -> ExchangeMessage {
        message
    }

    /// Returns whether the protocol has [`ExchangeMessage::Maintenance`].
    fn announces_maintenance(&self) -> bool {
        true
    }
}

/// A message that an exchange sends, and that its feed must report as equal.
#[derive(Debug, Clone, PartialEq)]
pub enum ExchangeMessage {
    /// Best bid and offer.
    Quote {
        /// Sequence number.
        sequence: u64,
        /// The quote.
        quote: TopOfBook,
    },
    /// A trade.
    Trade(Trade),
    /// A snapshot or an update of an order book.
    Book {
        /// The update, without levels.
        update: BookUpdate<'static>,
        /// Its levels.
        levels: Vec<LevelChange>,
    },
    /// Maintenance is announced.
    Maintenance,
}

impl ExchangeMessage {
    /// Returns a copy of a message.
    pub fn of(event: MarketEvent<'_>) -> Self {
        match event {
            MarketEvent::Quote { sequence, quote } => Self::Quote { sequence, quote: *quote },
            MarketEvent::Trade(trade) => Self::Trade(*trade),
            MarketEvent::Book(update) => Self::Book { update: update.without_levels(), levels: update.levels.to_vec() },
            MarketEvent::Maintenance => Self::Maintenance,
        }
    }

    /// Returns the message as an event.
    pub fn event(&self) -> MarketEvent<'_> {
        match self {
            Self::Quote { sequence, quote } => MarketEvent::Quote { sequence: *sequence, quote },
            Self::Trade(trade) => MarketEvent::Trade(trade),
            Self::Book { update, levels } => MarketEvent::Book(BookUpdate { levels, ..*update }),
            Self::Maintenance => MarketEvent::Maintenance,
        }
    }

    /// Returns whether the message is a snapshot of a book.
    pub fn is_snapshot(&self) -> bool {
        matches!(self, Self::Book { update, .. } if update.is_snapshot)
    }

    /// Returns the message without differences that have no meaning: the order of levels, and the number before a
    /// snapshot.
    pub(crate) fn normalized(mut self) -> Self {
        if let Self::Book { update, levels } = &mut self {
            levels.sort_by_key(|level| (level.side, level.price));
            if update.is_snapshot {
                update.previous = 0;
            }
        }
        self
    }
}
