//! The market streams: messages that an event causes, and messages that are due by the clock.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{Price, Quantity};
use tickpath_venue_sim_web::PublicTrade;

use crate::depth_updates::DepthTracker;
use crate::market_data::book;
use crate::market_events::{self, EventStamp};
use crate::spot::{SpotEvent, SpotMarket};
use crate::stamps::StampUnit;
use crate::stream_topics::{Cadence, StreamKind, StreamTopic};

/// State of all streams.
#[derive(Debug, Default)]
pub(crate) struct MarketStreams {
    /// Books of the subscribed streams of changes.
    depths: BTreeMap<StreamTopic, DepthTracker>,
    /// Best bid and offer that were sent last, by instrument.
    quotes: BTreeMap<usize, [(Price, Quantity); 2]>,
    /// Time at which the streams of an interval are due.
    due_ns: BTreeMap<Cadence, u64>,
    /// Changes of books so far.
    depth_updates: u64,
}

/// A message of a stream, with its times in either unit.
#[derive(Debug)]
pub(crate) struct StreamMessage {
    pub(crate) topic: StreamTopic,
    milliseconds: String,
    microseconds: String,
}

impl MarketStreams {
    /// Begins to follow the books of new subscriptions, and forgets those without any.
    pub(crate) fn follow(&mut self, subscribed: &BTreeSet<StreamTopic>, spot: &SpotMarket) {
        self.depths.retain(|topic, _| subscribed.contains(topic));
        for topic in subscribed.iter().filter(|topic| matches!(topic.kind, StreamKind::Depth(_))) {
            self.depths.entry(*topic).or_insert_with(|| DepthTracker::new(spot, topic.instrument));
        }
    }

    /// Returns the messages of an event.
    pub(crate) fn of_event(&mut self, event: &SpotEvent, spot: &SpotMarket, now_ns: u64) -> Vec<StreamMessage> {
        match event {
            SpotEvent::Quote(instrument) => self.quote(*instrument, spot).into_iter().collect(),
            SpotEvent::Trade(trade) => {
                let (instrument, symbol) = (trade.instrument, spot.instrument(trade.instrument).name.as_str());
                let message = |kind, text: fn(&str, &PublicTrade, EventStamp) -> String| {
                    StreamMessage::new(StreamTopic { instrument, kind }, now_ns, |stamp| text(symbol, trade, stamp))
                };
                vec![
                    message(StreamKind::Trade, market_events::trade),
                    message(StreamKind::AggregatedTrade, market_events::aggregated_trade),
                ]
            }
            SpotEvent::Order(..) | SpotEvent::Balances(..) => Vec::new(),
        }
    }

    /// Returns the messages of subscribed streams that are due. Each so-many-th change of a book is left out, if such a
    /// number is given.
    pub(crate) fn due(
        &mut self,
        subscribed: &BTreeSet<StreamTopic>,
        spot: &SpotMarket,
        now_ns: u64,
        withheld_every: u64,
    ) -> Vec<StreamMessage> {
        let mut messages = Vec::new();
        for cadence in Cadence::ALL {
            let due_ns = self.due_ns.entry(cadence).or_default();
            if now_ns < *due_ns {
                continue;
            }
            *due_ns = (now_ns / cadence.ns() + 1) * cadence.ns();
            for topic in subscribed.iter().filter(|topic| topic.cadence() == Some(cadence)) {
                messages.extend(self.due_message(*topic, spot, now_ns, withheld_every));
            }
        }
        messages
    }

    fn due_message(
        &mut self,
        topic: StreamTopic,
        spot: &SpotMarket,
        now_ns: u64,
        withheld_every: u64,
    ) -> Option<StreamMessage> {
        let index = topic.instrument;
        match topic.kind {
            StreamKind::Depth(_) => {
                let update = self.depths.get_mut(&topic)?.update(spot, index)?;
                self.depth_updates += 1;
                if withheld_every > 0 && self.depth_updates.is_multiple_of(withheld_every) {
                    return None;
                }
                let symbol = &spot.instrument(index).name;
                Some(StreamMessage::new(topic, now_ns, |stamp| market_events::depth_update(symbol, &update, stamp)))
            }
            StreamKind::Levels(count, _) => Some(StreamMessage::new(topic, now_ns, |_| book(spot, index, count))),
            StreamKind::Ticker => {
                Some(StreamMessage::new(topic, now_ns, |stamp| market_events::ticker(spot, index, stamp)))
            }
            StreamKind::MiniTicker => {
                Some(StreamMessage::new(topic, now_ns, |stamp| market_events::mini_ticker(spot, index, stamp)))
            }
            StreamKind::BookTicker | StreamKind::Trade | StreamKind::AggregatedTrade => None,
        }
    }

    /// Returns the best bid and offer, unless they were sent already.
    fn quote(&mut self, instrument: usize, spot: &SpotMarket) -> Option<StreamMessage> {
        let best = spot.best(instrument);
        let quote = [(best.bid, best.bid_quantity), (best.ask, best.ask_quantity)];
        if self.quotes.insert(instrument, quote) == Some(quote) {
            return None;
        }
        let (symbol, sequence) = (&spot.instrument(instrument).name, spot.desk.book_sequence(instrument));
        let topic = StreamTopic { instrument, kind: StreamKind::BookTicker };
        Some(StreamMessage::new(topic, 0, |_| market_events::quote(symbol, sequence, &best)))
    }
}

impl StreamMessage {
    fn new(topic: StreamTopic, now_ns: u64, text: impl Fn(EventStamp) -> String) -> Self {
        let text = |unit| text(EventStamp { now_ns, unit });
        Self { topic, milliseconds: text(StampUnit::Millisecond), microseconds: text(StampUnit::Microsecond) }
    }

    /// Returns the text with times in a unit.
    pub(crate) fn text(&self, unit: StampUnit) -> &str {
        match unit {
            StampUnit::Millisecond => &self.milliseconds,
            StampUnit::Microsecond => &self.microseconds,
        }
    }
}
