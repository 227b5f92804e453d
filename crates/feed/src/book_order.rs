//! Validity of order books, decided by the sequence numbers of snapshots and updates.
//!
//! ```text
//!   ┌───────────────┐ ── snapshot: Apply, each held update: Apply, then Valid ──> ┌────────────────┐
//!   │    invalid    │                                                             │     valid      │
//!   │ updates: Hold │ <──────── an update that does not follow: Gap ───────────── │ updates: Apply │
//!   └───────────────┘                                                             └────────────────┘
//! ```
//!
//! An update **follows** if its `previous` is the book's number, whatever its own number: an exchange may reset its
//! numbers by an update that ends below its `previous`, and an update that ends where it begins shows that a quiet book
//! is alive. An update that was received before is a duplicate. Any other update is a gap, one with a lower number too,
//! because the update with a reset is missing before it.
//!
//! A snapshot may be older or newer than the held updates, which follow each other. They complete an older one if one
//! of them follows it; otherwise updates between are missing, and the snapshot is a gap. After a newer one, updates up
//! to its number are dropped until the first that follows, at most as many as a book may hold. If the snapshot comes
//! from elsewhere ([`BookUpdate::may_overlap`]), that first update may begin below its number: quantities are absolute,
//! so an update is complete if it covers the numbers from below to beyond the snapshot.
//!
//! | exchange        | `previous`       | snapshot                                                              |
//! |-----------------|------------------|-----------------------------------------------------------------------|
//! | OKX             | `prevSeqId`      | in the stream, with a `prevSeqId` of -1                               |
//! | Binance spot    | `U` - 1          | by REST: the first update has `U` <= `lastUpdateId` + 1 <= `u`        |
//! | Binance futures | `pu`             | by REST: the first update has `pu` <= `lastUpdateId` < `u`            |
//!
//! Binance names another first update for futures, the one with `U` <= `lastUpdateId` <= `u`. Where `u` is equal, that
//! update is in the snapshot already; where `lastUpdateId` lies between `pu` and `U`, nothing changed between the two.

use std::collections::{HashMap, VecDeque};

use tickpath_market::SymbolId;

use crate::book_update::{BookUpdate, LevelChange};

/// Max held updates of a book, by default.
pub const MAX_HELD_UPDATES: usize = 1024;
/// Received updates of a book among which a duplicate is recognised.
const RECENT_UPDATES: usize = 64;

/// The validity of books, one for each instrument. The head of this module has the rules.
#[derive(Debug)]
pub struct BookOrder {
    books: HashMap<SymbolId, NumberedBook>,
    max_held: usize,
}

/// Step of a carrier after a snapshot or an update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BookStep<'a> {
    /// The carrier publishes this snapshot or update.
    Apply(BookUpdate<'a>),
    /// The carrier does nothing: the book is invalid, and the update waits for a snapshot or is useless by now.
    Hold,
    /// The carrier does nothing: the book has the update already, or waits for no snapshot.
    Drop,
    /// The carrier reports that the book is invalid, and requests another snapshot. A snapshot is a gap, too, if it is
    /// older than the first held update.
    Gap {
        /// Sequence number of the book, or of the snapshot that is too old.
        expected: u64,
        /// Sequence number that the update follows.
        found: u64,
    },
    /// The carrier reports that the book is valid: the snapshot and all updates after it are published.
    Valid,
}

impl BookOrder {
    /// Creates the validity of no books: each book is invalid until its first snapshot.
    pub fn new() -> Self {
        Self::with_max_held(MAX_HELD_UPDATES)
    }

    /// Creates a validity that holds at most this many updates of a book, and at least one.
    pub fn with_max_held(max_held: usize) -> Self {
        Self { books: HashMap::new(), max_held: max_held.max(1) }
    }

    /// Takes a snapshot or an update, and passes on the carrier's steps in their order.
    pub fn take(&mut self, update: BookUpdate<'_>, out: &mut dyn FnMut(BookStep<'_>)) {
        let book = self.books.entry(update.symbol).or_default();
        match update.is_snapshot {
            true => book.take_snapshot(update, out),
            false => book.take_update(update, self.max_held, out),
        }
    }

    /// Makes a book invalid until its next snapshot.
    pub fn invalidate(&mut self, symbol: SymbolId) {
        self.books.remove(&symbol);
    }

    /// Makes all books invalid, because no connection is left that carries them.
    pub fn invalidate_all(&mut self) {
        self.books.clear();
    }

    /// Returns whether a book is valid.
    pub fn is_valid(&self, symbol: SymbolId) -> bool {
        self.books.get(&symbol).is_some_and(|book| !matches!(book.state, BookState::Invalid))
    }
}

impl Default for BookOrder {
    fn default() -> Self {
        Self::new()
    }
}

/// Numbers of a book.
#[derive(Debug, Default)]
struct NumberedBook {
    state: BookState,
    /// Updates without a snapshot, each of which follows the one before it.
    held: VecDeque<HeldUpdate>,
    /// Last received updates: the numbers that they follow, and their own.
    recent: VecDeque<(u64, u64)>,
}

#[derive(Debug, Clone, Copy, Default)]
enum BookState {
    #[default]
    Invalid,
    /// At a snapshot, with no update after it.
    AtSnapshot {
        number: u64,
        may_overlap: bool,
        /// Updates up to the snapshot's number that have arrived after it.
        older: usize,
    },
    AtUpdate(u64),
}

#[derive(Debug)]
struct HeldUpdate {
    update: BookUpdate<'static>,
    levels: Vec<LevelChange>,
}

enum Relation {
    Follows,
    /// The book has the update already.
    Old,
    /// Updates after this number are missing.
    Jumps(u64),
    /// There is no snapshot to follow.
    Early,
}

impl NumberedBook {
    fn take_update(&mut self, update: BookUpdate<'_>, max_held: usize, out: &mut dyn FnMut(BookStep<'_>)) {
        let numbers = (update.previous, update.sequence);
        // The usual case reads nothing else.
        let follows = matches!(self.state, BookState::AtUpdate(last) if last == update.previous);
        let is_known = !follows && self.recent.contains(&numbers);
        let relation = if follows { Relation::Follows } else { self.compare(&update, is_known, max_held) };
        if !is_known {
            if self.recent.len() == RECENT_UPDATES {
                self.recent.pop_front();
            }
            self.recent.push_back(numbers);
        }
        match relation {
            Relation::Follows => {
                self.state = BookState::AtUpdate(update.sequence);
                out(BookStep::Apply(update));
            }
            Relation::Old => out(BookStep::Drop),
            Relation::Jumps(expected) => {
                self.state = BookState::Invalid;
                self.hold(&update, max_held);
                out(BookStep::Gap { expected, found: update.previous });
            }
            Relation::Early => {
                self.hold(&update, max_held);
                out(BookStep::Hold);
            }
        }
    }

    fn compare(&mut self, update: &BookUpdate<'_>, is_known: bool, max_older: usize) -> Relation {
        let BookUpdate { previous, sequence, .. } = *update;
        match &mut self.state {
            BookState::Invalid if is_known => Relation::Old,
            BookState::Invalid => Relation::Early,
            BookState::AtSnapshot { number, .. } if previous == *number => Relation::Follows,
            BookState::AtSnapshot { .. } | BookState::AtUpdate(_) if is_known => Relation::Old,
            // An update with a reset is no older one.
            BookState::AtSnapshot { number, older, .. }
                if previous <= sequence && sequence <= *number && *older < max_older =>
            {
                *older += 1;
                Relation::Old
            }
            BookState::AtSnapshot { number, may_overlap: true, .. } if previous < *number && *number < sequence => {
                Relation::Follows
            }
            BookState::AtSnapshot { number, .. } => Relation::Jumps(*number),
            BookState::AtUpdate(last) => Relation::Jumps(*last),
        }
    }

    /// Holds an update. Beyond the bound the oldest one goes, and a snapshot must be newer than that one.
    fn hold(&mut self, update: &BookUpdate<'_>, max_held: usize) {
        let ends = self.held.front().zip(self.held.back());
        if let Some((previous, last)) = ends.map(|(first, last)| (first.update.previous, last.update.sequence))
            && last != update.previous
        {
            // An update that arrives late may complete the held ones at their begin.
            if update.sequence == previous {
                if self.held.len() < max_held {
                    self.held
                        .push_front(HeldUpdate { update: update.without_levels(), levels: update.levels.to_vec() });
                }
                return;
            }
            // A snapshot before the missing update would be of no use.
            self.held.clear();
        }
        let oldest = if self.held.len() == max_held { self.held.pop_front() } else { None };
        let mut levels = oldest.map(|oldest| oldest.levels).unwrap_or_default();
        levels.clear();
        levels.extend_from_slice(update.levels);
        self.held.push_back(HeldUpdate { update: update.without_levels(), levels });
    }

    fn take_snapshot(&mut self, snapshot: BookUpdate<'_>, out: &mut dyn FnMut(BookStep<'_>)) {
        if !matches!(self.state, BookState::Invalid) {
            return out(BookStep::Drop);
        }
        let BookUpdate { sequence: number, may_overlap, .. } = snapshot;
        let next = if may_overlap { self.first_beyond(number) } else { self.first_after(number) };
        let next = match next {
            Ok(next) => next,
            Err(found) => return out(BookStep::Gap { expected: number, found }),
        };
        self.held.drain(..next);
        out(BookStep::Apply(snapshot));
        self.state = BookState::AtSnapshot { number, may_overlap, older: 0 };
        for HeldUpdate { update, levels } in self.held.drain(..) {
            self.state = BookState::AtUpdate(update.sequence);
            out(BookStep::Apply(BookUpdate { levels: &levels, ..update }));
        }
        out(BookStep::Valid);
    }

    /// Returns the place of the first held update that a snapshot from elsewhere lacks; its previous number if updates
    /// between the snapshot and that one are missing.
    fn first_beyond(&self, number: u64) -> Result<usize, u64> {
        let next = self.held.iter().position(|held| held.update.sequence > number).unwrap_or(self.held.len());
        match self.held.get(next) {
            Some(HeldUpdate { update, .. }) if update.previous > number => Err(update.previous),
            _ => Ok(next),
        }
    }

    /// Returns the place of the held update that follows a snapshot of the stream, and that behind the last one if the
    /// snapshot has all of them; the first previous number if updates between them are missing. Only a number beyond
    /// all held ones proves the snapshot newer, because its connection may be behind another one.
    fn first_after(&self, number: u64) -> Result<usize, u64> {
        let (Some(first), Some(last)) = (self.held.front(), self.held.back()) else { return Ok(0) };
        if let Some(next) = self.held.iter().position(|held| held.update.previous == number) {
            return Ok(next);
        }
        let is_beyond = |held: &HeldUpdate| held.update.previous.max(held.update.sequence) < number;
        let has_all = last.update.sequence == number || self.held.iter().all(is_beyond);
        if has_all { Ok(self.held.len()) } else { Err(first.update.previous) }
    }
}
