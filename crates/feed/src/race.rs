//! Several connections of a feed carry the same messages: the first arrival of each message wins.
//!
//! Sequence numbers alone do not order a stream, because an exchange may reset them. Each connection brings its
//! messages in order, so a number that falls within a connection begins a new *run*, and the place of a message in its
//! stream is (run, number). All connections go through the same runs:
//!
//! ```text
//!   connection 0:   14   15 | 3   5   9      9 has the place (1, 9), the newest
//!   connection 1:   14   15 | 3   5          15 had the place (0, 15), and 5 has (1, 5): both were passed on before
//! ```
//!
//! * A message whose place is beyond the newest is first. Another message is a duplicate if a different connection that
//!   is up has brought its place or a later one, or if its place lies between two of the last [`RECENT_MESSAGES`] that
//!   were first in its run. Otherwise its connection has a numbering of its own, and the message begins a new run: a
//!   lower number blocks no stream for ever.
//! * A connection that is up at the first message of a stream knows its places. A connection that joins later learns
//!   them from the first number that it has in common with the recent messages. Until then the connection wins no trade
//!   and no book update, because the others have yet to bring those before; but it wins a quote with a higher number,
//!   because a quote is complete by itself.
//! * A joined connection takes over if no other connection carries the stream, or if it has brought [`RECENT_MESSAGES`]
//!   in a row while no message was first.
//! * After all connections were down, the next message is first, whatever its number.
//!
//! So the updates of a book that win follow each other. Snapshots do not race: [`BookOrder`](crate::BookOrder) drops
//! those that no book waits for, and a carrier requests another one on one connection. Where an exchange divides the
//! updates of a book differently for each connection, these are not the same messages, and the books cannot race.

use std::collections::{HashMap, VecDeque};

use tickpath_market::SymbolId;

/// Messages of a stream among which a duplicate is recognised after the connection that brought them has ended.
pub const RECENT_MESSAGES: usize = 256;

/// Connections that carry the same messages. The head of this module has the rules.
#[derive(Debug)]
pub struct Race {
    is_up: Vec<bool>,
    counts: Vec<RaceCounts>,
    streams: HashMap<(SymbolId, MessageStream), StreamRace>,
}

/// Identity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageKey {
    /// The instrument.
    pub symbol: SymbolId,
    /// Kind of the message.
    pub stream: MessageStream,
    /// The exchange's sequence number: of a trade its id, of a book's update the number after it.
    pub sequence: u64,
}

/// Kind of a message. The messages of an instrument and a kind have a numbering of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageStream {
    /// Best bids and offers.
    Quote,
    /// Trades.
    Trade,
    /// Updates of the order book.
    Book,
}

/// Counts of a connection's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RaceCounts {
    /// Messages that arrived first, while another connection was up.
    pub won: u64,
    /// Messages that another connection had brought, or had yet to bring in their order.
    pub lost: u64,
    /// Messages that arrived first, while no other connection was up.
    pub alone: u64,
}

impl Race {
    /// Creates a race between connections that are down, numbered from 0.
    pub fn new(connections: usize) -> Self {
        let (is_up, counts) = (vec![false; connections], vec![RaceCounts::default(); connections]);
        Self { is_up, counts, streams: HashMap::new() }
    }

    /// Notes that a connection is up.
    pub fn connected(&mut self, connection: usize) {
        self.is_up[connection] = true;
        self.forget_places(connection);
    }

    /// Notes that a connection has ended.
    pub fn disconnected(&mut self, connection: usize) {
        self.is_up[connection] = false;
        match self.is_up.contains(&true) {
            true => self.forget_places(connection),
            false => self.streams.clear(),
        }
    }

    /// Returns whether a message is passed on. A message of a connection that is down proves it up.
    pub fn is_first(&mut self, connection: usize, key: MessageKey) -> bool {
        if !self.is_up[connection] {
            self.connected(connection);
        }
        let Self { is_up, counts, streams } = self;
        let stream = streams.entry((key.symbol, key.stream)).or_insert_with(|| StreamRace::new(is_up));
        let (verdict, counts) = (stream.take(connection, key, is_up), &mut counts[connection]);
        match verdict {
            Verdict::First if others(connection, is_up).next().is_some() => counts.won += 1,
            Verdict::First => counts.alone += 1,
            Verdict::Second => counts.lost += 1,
            Verdict::Repeated => {}
        }
        verdict == Verdict::First
    }

    /// Returns the counts of a connection since the race was created.
    pub fn counts(&self, connection: usize) -> RaceCounts {
        self.counts[connection]
    }

    fn forget_places(&mut self, connection: usize) {
        for stream in self.streams.values_mut() {
            stream.places[connection] = Place::JOINING;
        }
    }
}

/// Messages of one instrument and kind.
#[derive(Debug)]
struct StreamRace {
    /// Last messages that were first, oldest first.
    recent: VecDeque<Position>,
    /// Last message of each connection.
    places: Vec<Place>,
}

/// Place of a message in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    run: u64,
    number: u64,
}

/// Place of a connection in a stream.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Up since before the first message of the stream, and has brought none.
    Beginning,
    At(Position),
    /// Up since later, or down: its last number, and how many it has brought since any message was first.
    Joining {
        last: Option<u64>,
        waited: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    First,
    Second,
    /// The connection's last message again, by which an exchange shows that a quiet stream is alive.
    Repeated,
}

impl Place {
    const JOINING: Self = Self::Joining { last: None, waited: 0 };
}

impl Position {
    /// Returns the place of the message that follows on the same connection.
    fn followed_by(self, number: u64) -> Self {
        let run = if number > self.number { self.run } else { self.run + 1 };
        Self { run, number }
    }
}

impl StreamRace {
    fn new(is_up: &[bool]) -> Self {
        let place = |&is_up: &bool| if is_up { Place::Beginning } else { Place::JOINING };
        Self { recent: VecDeque::new(), places: is_up.iter().map(place).collect() }
    }

    fn take(&mut self, connection: usize, key: MessageKey, is_up: &[bool]) -> Verdict {
        let number = key.sequence;
        let position = match self.places[connection] {
            Place::Beginning => Position { run: 0, number },
            Place::At(last) if last.number == number => return Verdict::Repeated,
            Place::At(last) => last.followed_by(number),
            Place::Joining { waited, .. } => match self.join(connection, key, waited, is_up) {
                Some(position) => position,
                None => {
                    self.places[connection] = Place::Joining { last: Some(number), waited: waited + 1 };
                    return Verdict::Second;
                }
            },
        };
        let Some(&newest) = self.recent.back() else {
            self.pass(connection, position);
            return Verdict::First;
        };
        let has_passed = |other: usize| matches!(self.places[other], Place::At(place) if place >= position);
        if position > newest {
            self.pass(connection, position);
            Verdict::First
        } else if others(connection, is_up).any(has_passed) || self.is_recent(position) {
            self.places[connection] = Place::At(position);
            Verdict::Second
        } else {
            self.pass(connection, Position { run: newest.run + 1, number });
            Verdict::First
        }
    }

    /// Returns the place of a message of a connection that has joined; none if other connections have yet to bring
    /// messages before it.
    fn join(&self, connection: usize, key: MessageKey, waited: usize, is_up: &[bool]) -> Option<Position> {
        let number = key.sequence;
        if let Some(known) = self.recent.iter().rev().find(|recent| recent.number == number) {
            return Some(*known);
        }
        let newest = self.recent.back();
        let carries = |other: usize| !matches!(self.places[other], Place::Joining { .. });
        let is_newer_quote = key.stream == MessageStream::Quote && newest.is_none_or(|newest| number > newest.number);
        let must_wait = waited < RECENT_MESSAGES && !is_newer_quote && others(connection, is_up).any(carries);
        let position = newest.map_or(Position { run: 0, number }, |newest| newest.followed_by(number));
        (!must_wait).then_some(position)
    }

    /// Returns whether a place lies between recent ones of its run. A joined connection's quote may have skipped it.
    fn is_recent(&self, position: Position) -> bool {
        let same_run = || self.recent.iter().filter(|recent| recent.run == position.run);
        same_run().any(|recent| *recent <= position) && same_run().any(|recent| *recent >= position)
    }

    /// Passes a message on. A connection that has joined knows its place if this message is its last one.
    fn pass(&mut self, connection: usize, position: Position) {
        if self.recent.len() == RECENT_MESSAGES {
            self.recent.pop_front();
        }
        self.recent.push_back(position);
        for place in &mut self.places {
            if let Place::Joining { last, waited } = place {
                *waited = 0;
                if *last == Some(position.number) {
                    *place = Place::At(position);
                }
            }
        }
        self.places[connection] = Place::At(position);
    }
}

/// Returns the other connections that are up.
fn others(connection: usize, is_up: &[bool]) -> impl Iterator<Item = usize> {
    is_up.iter().enumerate().filter(move |(other, is_up)| *other != connection && **is_up).map(|(other, _)| other)
}
