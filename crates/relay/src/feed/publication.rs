//! Publication of a feed's messages: stamps, delays, and messages that the topic does not accept.

use tickpath_bus::{BatchError, Fate, Gap, PublishError, Publisher};
use tickpath_clock::{Clock, HostClock, utc_ns};
use tickpath_feed::{Arrival, BookUpdate, LevelChange};
use tickpath_market::{BookLevel, FeedCondition, FeedStatus, Kind, TopOfBook, Trade};
use zerocopy::IntoBytes;

use super::meter::FeedTotals;
use crate::{RelayContext, RelayError};

/// Shortest time between two reports of losses, in nanoseconds.
const REPORT_INTERVAL_NS: i64 = 1_000_000_000;

pub(super) struct FeedPublication<'a> {
    context: &'a RelayContext<'a>,
    topic: String,
    publisher: Box<dyn Publisher>,
    utc: UtcAnchor,
    pub totals: FeedTotals,
    /// Messages lost since the last gap message.
    unpublished: u64,
    /// A gap message was published that the carrier has not taken.
    has_published_losses: bool,
    /// Ticks of the last report of a loss.
    reported_at: Option<u64>,
    /// Levels of the last update; kept for their memory.
    levels: Vec<BookLevel>,
}

/// Times of a message before its publication.
#[derive(Clone, Copy)]
pub(super) struct MessageTimes {
    /// Arrival of its frame.
    pub arrival: Arrival,
    /// UTC arrival of its frame, in nanoseconds since the Unix epoch.
    pub arrival_utc_ns: u64,
    /// Ticks at which the parser passed it on.
    pub parsed: u64,
}

/// UTC at a moment, for the moments near it. The host's clock counts evenly; UTC is set and adjusted.
#[derive(Clone, Copy)]
struct UtcAnchor {
    ticks: u64,
    utc_ns: u64,
}

impl UtcAnchor {
    fn now(clock: &HostClock) -> Self {
        Self { ticks: clock.ticks(), utc_ns: utc_ns() }
    }
}

impl<'a> FeedPublication<'a> {
    pub fn new(topic: &str, publisher: Box<dyn Publisher>, connections: usize, context: &'a RelayContext<'a>) -> Self {
        Self {
            context,
            topic: topic.to_owned(),
            publisher,
            utc: UtcAnchor::now(&context.clock),
            totals: FeedTotals { connections: vec![Default::default(); connections], ..FeedTotals::default() },
            unpublished: 0,
            has_published_losses: false,
            reported_at: None,
            levels: Vec::new(),
        }
    }

    /// Converts ticks of about now to UTC.
    pub fn utc_ns_of(&self, ticks: u64) -> u64 {
        self.utc.utc_ns.wrapping_add_signed(self.context.clock.ns_between(self.utc.ticks, ticks))
    }

    /// Reads UTC again.
    pub fn refresh_utc(&mut self) {
        self.utc = UtcAnchor::now(&self.context.clock);
    }

    /// Lets the publisher use a moment without messages.
    pub fn idle(&mut self) {
        self.publisher.idle();
    }

    /// Publishes a best bid and offer. Returns false if it is lost.
    pub fn publish_quote(&mut self, quote: &TopOfBook, times: &MessageTimes) -> Result<bool, RelayError> {
        let stamp = self.context.clock.ticks();
        let message = TopOfBook { wire_age_ns: self.wire_age_ns(times, stamp), ..*quote };
        let is_published = self.publish(stamp, Kind::TopOfBook, &[message.as_bytes()])?;
        self.totals.quotes += u64::from(is_published);
        self.add_delays(times, quote.event_ns);
        Ok(is_published)
    }

    /// Publishes a trade. Returns false if it is lost.
    pub fn publish_trade(&mut self, trade: &Trade, times: &MessageTimes) -> Result<bool, RelayError> {
        let is_published = self.publish(self.context.clock.ticks(), Kind::Trade, &[trade.as_bytes()])?;
        self.totals.trades += u64::from(is_published);
        self.add_delays(times, trade.event_ns);
        Ok(is_published)
    }

    /// Publishes a snapshot or an update of a book as one batch. Returns false if any of it is lost.
    pub fn publish_book(&mut self, update: &BookUpdate<'_>, times: &MessageTimes) -> Result<bool, RelayError> {
        let stamp = self.context.clock.ticks();
        let mut levels = std::mem::take(&mut self.levels);
        encode_levels(update, self.wire_age_ns(times, stamp), &mut levels);
        let payloads: Vec<&[u8]> = levels.iter().map(IntoBytes::as_bytes).collect();
        let published = self.publish(stamp, Kind::BookLevel, &payloads);
        self.levels = levels;
        let is_published = published?;
        self.totals.book_updates += u64::from(is_published);
        self.add_delays(times, update.event_ns);
        Ok(is_published)
    }

    /// Publishes an event of the feed, with the time of now. Returns false if it is lost.
    pub fn publish_status(&mut self, condition: FeedCondition, status: FeedStatus) -> Result<bool, RelayError> {
        let stamp = self.context.clock.ticks();
        let event_ns = self.utc_ns_of(stamp);
        let status = FeedStatus { event_ns, condition: condition.code(), ..status };
        self.publish(stamp, Kind::FeedStatus, &[status.as_bytes()])
    }

    /// Publishes the number of lost messages as a gap, if there are any. Returns false if the topic still accepts
    /// nothing.
    pub fn publish_losses(&mut self) -> Result<bool, RelayError> {
        if self.unpublished == 0 {
            return Ok(true);
        }
        let ticks = self.context.clock.ticks();
        let published = match self.publisher.publish_gap(ticks, Gap::Missed(self.unpublished)) {
            Err(PublishError::Unknown(_)) => self.publisher.resend().map_err(|failed| failed.error),
            published => published,
        };
        match published {
            Ok(()) => {
                (self.unpublished, self.has_published_losses) = (0, true);
                Ok(true)
            }
            Err(error) if error.is_transient() => Ok(false),
            Err(error) => Err(RelayError::Refused(self.topic.clone(), error)),
        }
    }

    /// Returns whether losses were published since the last call.
    pub fn take_published_losses(&mut self) -> bool {
        std::mem::take(&mut self.has_published_losses)
    }

    /// Publishes messages of one kind, unless the topic refuses them. Returns whether all are published.
    fn publish(&mut self, stamp: u64, kind: Kind, payloads: &[&[u8]]) -> Result<bool, RelayError> {
        if !self.publish_losses()? {
            self.count_lost(payloads.len());
            return Ok(false);
        }
        let published = match payloads {
            [payload] => {
                let published = self.publisher.publish(stamp, kind.code(), payload);
                published.map_err(|error| BatchError::failed_at(0, error))
            }
            _ => self.publisher.publish_batch(stamp, kind.code(), payloads),
        };
        let Err(failed) = published else {
            self.totals.messages += payloads.len() as u64;
            return Ok(true);
        };
        self.settle_failure(payloads.len(), failed)
    }

    /// Sends messages in doubt again, and counts those that are lost. Returns whether none is.
    #[cold]
    fn settle_failure(&mut self, count: usize, failed: BatchError) -> Result<bool, RelayError> {
        let mut lost = (0..count).filter(|&index| failed.fate(index) != Fate::Published).count();
        let in_doubt = failed.unknown().count();
        if in_doubt > 0 {
            lost -= match self.publisher.resend() {
                Ok(()) => in_doubt,
                Err(again) => (0..in_doubt).filter(|&index| again.fate(index) == Fate::Published).count(),
            };
        }
        self.totals.messages += (count - lost) as u64;
        if lost == 0 {
            return Ok(true);
        }
        self.count_lost(lost);
        if !failed.error.is_transient() {
            return Err(RelayError::Refused(self.topic.clone(), failed.error));
        }
        self.report_loss(&failed.error);
        Ok(false)
    }

    fn count_lost(&mut self, count: usize) {
        self.totals.lost += count as u64;
        self.unpublished += count as u64;
    }

    /// Reports a loss to the operator, at most once a second.
    fn report_loss(&mut self, reason: &PublishError) {
        let clock = &self.context.clock;
        let now = clock.ticks();
        if self.reported_at.is_some_and(|at| clock.ns_between(at, now) < REPORT_INTERVAL_NS) {
            return;
        }
        self.reported_at = Some(now);
        let Self { topic, totals, .. } = self;
        (self.context.report)(&format!("'{topic}' loses messages, {} so far: {reason}", totals.lost));
    }

    /// Returns the time from the arrival of a message's packet to its stamp, as a message has it.
    fn wire_age_ns(&self, times: &MessageTimes, stamp: u64) -> u32 {
        match times.arrival.wire {
            0 => 0,
            // Zero means that the age is unknown.
            wire => self.context.clock.ns_between(wire, stamp).clamp(1, u32::MAX.into()) as u32,
        }
    }

    fn add_delays(&mut self, times: &MessageTimes, event_ns: u64) {
        let clock = &self.context.clock;
        let totals = &mut self.totals;
        totals.parsed_to_published.add(clock.ns_between(times.parsed, clock.ticks()));
        if event_ns != 0 {
            let ns = times.arrival_utc_ns.wrapping_sub(event_ns) as i64;
            totals.from_the_future += u64::from(ns < 0);
            totals.event_to_arrival.add(ns);
        }
    }
}

/// Replaces `levels` by the messages of an update.
fn encode_levels(update: &BookUpdate<'_>, wire_age_ns: u32, levels: &mut Vec<BookLevel>) {
    let BookUpdate { symbol, sequence, event_ns, is_snapshot, levels: changes, .. } = *update;
    let empty = BookLevel { symbol, sequence, event_ns, wire_age_ns, ..BookLevel::default() };
    let encode = |change: &LevelChange| {
        let LevelChange { side, price, quantity } = *change;
        BookLevel { side: side.code(), price, quantity, ..empty }
    };
    levels.clear();
    levels.extend(changes.iter().map(encode));
    if levels.is_empty() {
        levels.push(empty);
    }
    if let Some(first) = levels.first_mut().filter(|_| is_snapshot) {
        first.flags |= BookLevel::SNAPSHOT;
    }
    if let Some(last) = levels.last_mut() {
        last.flags |= BookLevel::LAST;
    }
}

#[cfg(test)]
mod tests {
    use tickpath_market::{Price, Quantity, Side, SymbolId};

    use super::*;

    /// Returns side, price, quantity and flags of each message of an update.
    fn encode(is_snapshot: bool, changes: &[(Side, i64, i64)]) -> Vec<(u8, i64, i64, u8)> {
        let change = |&(side, price, quantity)| LevelChange { side, price: Price(price), quantity: Quantity(quantity) };
        let changes: Vec<LevelChange> = changes.iter().map(change).collect();
        let (symbol, sequence, event_ns) = (SymbolId(7), 9, 11);
        let update =
            BookUpdate { symbol, is_snapshot, may_overlap: false, previous: 8, sequence, event_ns, levels: &changes };
        let mut levels = vec![BookLevel::default(); 3];
        encode_levels(&update, 13, &mut levels);
        let is_common = |level: &BookLevel| (level.symbol, level.sequence, level.event_ns) == (symbol, 9, 11);
        assert!(levels.iter().all(|level| is_common(level) && level.wire_age_ns == 13));
        levels.iter().map(|level| (level.side, level.price.0, level.quantity.0, level.flags)).collect()
    }

    #[test]
    fn an_update_is_a_message_a_level_with_flags_at_its_ends() {
        let two = [(Side::Buy, 1, 2), (Side::Sell, 3, 0)];
        assert_eq!(encode(false, &two), [(1, 1, 2, 0), (2, 3, 0, BookLevel::LAST)]);
        assert_eq!(encode(true, &two), [(1, 1, 2, BookLevel::SNAPSHOT), (2, 3, 0, BookLevel::LAST)]);
        assert_eq!(encode(true, &two[..1]), [(1, 1, 2, BookLevel::SNAPSHOT | BookLevel::LAST)]);
        assert_eq!(encode(false, &[]), [(0, 0, 0, BookLevel::LAST)]);
        assert_eq!(encode(true, &[]), [(0, 0, 0, BookLevel::SNAPSHOT | BookLevel::LAST)]);
    }
}
