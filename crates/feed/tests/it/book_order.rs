//! The validity of books: tables with the rules of each exchange, and streams with losses, duplicates and swaps against
//! a naive model.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_feed::{BookOrder, BookStep, BookUpdate, LevelChange};
use tickpath_market::{Price, Quantity, Side, SymbolId};

const SYMBOL: SymbolId = SymbolId(1);

fn update(previous: u64, sequence: u64) -> BookUpdate<'static> {
    let (symbol, is_snapshot, may_overlap) = (SYMBOL, false, false);
    BookUpdate { symbol, is_snapshot, may_overlap, previous, sequence, event_ns: 0, levels: &[] }
}

/// Returns a snapshot in the stream of the updates.
fn streamed(sequence: u64) -> BookUpdate<'static> {
    BookUpdate { is_snapshot: true, ..update(0, sequence) }
}

/// Returns a snapshot from elsewhere.
fn fetched(sequence: u64) -> BookUpdate<'static> {
    BookUpdate { may_overlap: true, ..streamed(sequence) }
}

/// Passes updates on, and compares the steps of each with their text.
fn check(mut order: BookOrder, updates: &[(BookUpdate<'static>, &str)]) {
    for (at, (update, expected)) in updates.iter().enumerate() {
        let mut steps = Vec::new();
        order.take(*update, &mut |step| {
            steps.push(match step {
                BookStep::Apply(update) => format!("apply {}", update.sequence),
                BookStep::Hold => "hold".to_owned(),
                BookStep::Drop => "drop".to_owned(),
                BookStep::Gap { expected, found } => format!("gap {expected} {found}"),
                BookStep::Valid => "valid".to_owned(),
            });
        });
        assert_eq!(steps.join(", "), *expected, "update {at}: {update:?}");
    }
}

#[test]
fn updates_follow_a_snapshot_in_their_stream() {
    check(
        BookOrder::new(),
        &[
            (update(7, 10), "hold"),
            (streamed(10), "apply 10, valid"),
            (update(10, 15), "apply 15"),
            // Nothing has changed for a minute.
            (update(15, 15), "apply 15"),
            // The numbers are reset.
            (update(15, 3), "apply 3"),
            (update(3, 5), "apply 5"),
            (update(10, 15), "drop"),
            (update(7, 9), "gap 5 7"),
            (update(9, 12), "hold"),
            (update(9, 12), "drop"),
            (streamed(12), "apply 12, valid"),
            (update(12, 13), "apply 13"),
            // The snapshot of another connection.
            (streamed(13), "drop"),
            (update(13, 14), "apply 14"),
        ],
    );
}

#[test]
fn a_lost_reset_is_a_gap() {
    check(
        BookOrder::new(),
        &[(streamed(10), "apply 10, valid"), (update(10, 15), "apply 15"), (update(3, 5), "gap 15 3")],
    );
    check(BookOrder::new(), &[(streamed(10), "apply 10, valid"), (update(12, 5), "gap 10 12")]);
}

#[test]
fn a_snapshot_in_the_stream_may_be_behind_or_ahead_of_another_connection() {
    check(
        BookOrder::new(),
        &[
            (streamed(10), "apply 10, valid"),
            (update(12, 14), "gap 10 12"),
            (update(14, 16), "hold"),
            (streamed(14), "apply 14, apply 16, valid"),
            (update(17, 18), "gap 16 17"),
            (streamed(20), "apply 20, valid"),
            (update(18, 19), "drop"),
            (update(19, 20), "drop"),
            (update(20, 22), "apply 22"),
        ],
    );
}

#[test]
fn a_snapshot_of_a_connection_that_is_behind_is_a_gap_while_updates_between_are_missing() {
    check(
        BookOrder::new(),
        &[
            (streamed(10), "apply 10, valid"),
            (update(12, 14), "gap 10 12"),
            (streamed(10), "gap 10 12"),
            (update(14, 16), "hold"),
            (streamed(11), "gap 11 12"),
            (streamed(13), "gap 13 12"),
            (streamed(12), "apply 12, apply 14, apply 16, valid"),
        ],
    );
    // The missing update arrives late.
    check(
        BookOrder::new(),
        &[
            (update(12, 14), "hold"),
            (update(10, 12), "hold"),
            (streamed(10), "apply 10, apply 12, apply 14, valid"),
            (update(14, 15), "apply 15"),
        ],
    );
}

#[test]
fn held_updates_of_before_a_lost_reset_do_not_block_a_snapshot() {
    check(
        BookOrder::new(),
        &[
            (update(90, 100), "hold"),
            (streamed(4), "gap 4 90"),
            (update(5, 7), "hold"),
            (streamed(7), "apply 7, valid"),
            (update(7, 8), "apply 8"),
        ],
    );
    check(BookOrder::new(), &[(update(90, 100), "hold"), (update(100, 3), "hold"), (streamed(3), "apply 3, valid")]);
}

#[test]
fn updates_overlap_a_fetched_snapshot_of_spot() {
    check(
        BookOrder::new(),
        &[
            (update(100, 105), "hold"),
            (update(105, 110), "hold"),
            (fetched(103), "apply 103, apply 105, apply 110, valid"),
            (update(110, 111), "apply 111"),
        ],
    );
    check(
        BookOrder::new(),
        &[
            (update(100, 105), "hold"),
            (fetched(90), "gap 90 100"),
            (fetched(105), "apply 105, valid"),
            (update(105, 106), "apply 106"),
        ],
    );
    check(
        BookOrder::new(),
        &[
            (update(100, 105), "hold"),
            (fetched(120), "apply 120, valid"),
            (update(105, 110), "drop"),
            (update(110, 125), "apply 125"),
            (update(125, 126), "apply 126"),
            (update(126, 126), "apply 126"),
        ],
    );
    check(BookOrder::new(), &[(fetched(120), "apply 120, valid"), (update(121, 125), "gap 120 121")]);
}

#[test]
fn updates_overlap_a_fetched_snapshot_of_futures() {
    // The documented example: U is 157, u is 160 and pu is 149.
    for snapshot in [149, 153, 157, 158, 159] {
        let snapshot_text = format!("apply {snapshot}, apply 160, valid");
        check(
            BookOrder::new(),
            &[
                (update(140, 149), "hold"),
                (update(149, 160), "hold"),
                (fetched(snapshot), snapshot_text.as_str()),
                (update(160, 170), "apply 170"),
            ],
        );
    }
    check(
        BookOrder::new(),
        &[
            (update(149, 160), "hold"),
            (fetched(160), "apply 160, valid"),
            (update(160, 170), "apply 170"),
            (update(172, 175), "gap 170 172"),
        ],
    );
}

#[test]
fn held_updates_are_bounded() {
    let updates: Vec<_> = (0..10).map(|number| (update(number, number + 1), "hold")).collect();
    let snapshots = [(fetched(5), "gap 5 7"), (fetched(7), "apply 7, apply 8, apply 9, apply 10, valid")];
    check(BookOrder::with_max_held(3), &[updates, snapshots.to_vec()].concat());
}

#[test]
fn updates_before_a_snapshot_are_bounded() {
    let dropped: Vec<_> = (1..4).map(|number| (update(number, number + 1), "drop")).collect();
    let (first, last) = ((fetched(100), "apply 100, valid"), (update(4, 5), "gap 100 4"));
    check(BookOrder::with_max_held(3), &[vec![first], dropped, vec![last]].concat());
}

#[test]
fn a_book_is_valid_from_its_snapshot_until_it_is_invalidated() {
    let mut order = BookOrder::default();
    let other = BookUpdate { symbol: SymbolId(2), ..streamed(10) };
    let is_valid = |order: &BookOrder| [order.is_valid(SYMBOL), order.is_valid(other.symbol)];
    assert_eq!(is_valid(&order), [false, false]);
    order.take(streamed(10), &mut |_| {});
    order.take(other, &mut |_| {});
    assert_eq!(is_valid(&order), [true, true]);
    order.invalidate(SYMBOL);
    assert_eq!(is_valid(&order), [false, true]);
    order.take(streamed(11), &mut |_| {});
    order.take(update(12, 13), &mut |_| {});
    assert_eq!(is_valid(&order), [false, true]);
    order.invalidate_all();
    assert_eq!(is_valid(&order), [false, false]);
}

type Levels = BTreeMap<(Side, Price), Quantity>;

/// Fault of an update's arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    Lost,
    /// The update arrives twice.
    Twice,
    /// The update so many before arrives again after this one.
    Again(usize),
    /// The next update arrives before this one.
    Swapped,
}

/// Update of an exchange, and its fault.
#[derive(Debug, Clone)]
struct Change {
    rise: u64,
    is_reset: bool,
    levels: Vec<LevelChange>,
    fault: Fault,
}

fn change() -> impl Strategy<Value = Change> {
    let fault = prop_oneof![
        16 => Just(Fault::None),
        2 => Just(Fault::Lost),
        1 => Just(Fault::Twice),
        2 => (1_usize..20).prop_map(Fault::Again),
        1 => Just(Fault::Swapped),
    ];
    let level = (any::<bool>(), 0_i64..8, 0_i64..3).prop_map(|(is_bid, price, quantity)| LevelChange {
        side: if is_bid { Side::Buy } else { Side::Sell },
        price: Price(price),
        quantity: Quantity(quantity),
    });
    (1_u64..20, prop::bool::weighted(0.05), vec(level, 0..4), fault)
        .prop_map(|(rise, is_reset, levels, fault)| Change { rise, is_reset, levels, fault })
}

/// An exchange with its whole history. Index 0 is the book before the first update.
struct History {
    changes: Vec<Change>,
    numbers: Vec<u64>,
    books: Vec<Levels>,
}

impl History {
    fn new(mut changes: Vec<Change>, has_resets: bool) -> Self {
        let none = Change { rise: 0, is_reset: false, levels: Vec::new(), fault: Fault::None };
        changes.insert(0, none);
        // The lowest digits count the resets, so that no number occurs twice.
        let (mut height, mut resets, mut book) = (1_u64 << 20, 0, Levels::new());
        let (mut numbers, mut books) = (Vec::new(), Vec::new());
        for change in &mut changes {
            change.is_reset &= has_resets && height > 4;
            match change.is_reset {
                true => (height, resets) = (height / 2, resets + 1),
                false => height += change.rise,
            }
            apply(&mut book, &change.levels);
            numbers.push(height * 1024 + resets);
            books.push(book.clone());
        }
        for index in 0..changes.len() {
            let is_next_reset = changes.get(index + 1).is_none_or(|next| next.is_reset);
            if changes[index].fault == Fault::Swapped && (changes[index].is_reset || is_next_reset) {
                changes[index].fault = Fault::None;
            }
            if changes[index].fault == Fault::Swapped {
                changes[index + 1].fault = Fault::None;
            }
        }
        Self { changes, numbers, books }
    }

    /// Returns the updates in the order of their arrival, and whether a snapshot may follow each.
    fn arrivals(&self) -> Vec<(usize, bool)> {
        let (mut arrivals, mut index) = (Vec::new(), 1);
        while index < self.changes.len() {
            match self.changes[index].fault {
                Fault::None => arrivals.push((index, true)),
                Fault::Lost => {}
                Fault::Twice => arrivals.extend([(index, true), (index, true)]),
                Fault::Again(before) => arrivals.extend([(index, true), (index.saturating_sub(before).max(1), true)]),
                Fault::Swapped => {
                    arrivals.extend([(index + 1, false), (index, true)]);
                    index += 1;
                }
            }
            index += 1;
        }
        arrivals
    }

    fn update(&self, index: usize) -> BookUpdate<'_> {
        let levels = &self.changes[index].levels;
        BookUpdate { levels, ..update(self.numbers[index - 1], self.numbers[index]) }
    }

    /// Returns whether an update from the first to the last index was lost, or arrived in the wrong order.
    fn has_gap(&self, first: usize, last: usize) -> bool {
        let is_gap = |index: usize| matches!(self.changes[index].fault, Fault::Lost | Fault::Swapped);
        (first..=last).any(is_gap)
    }

    /// Returns whether the updates from an index on begin with lost ones, a reset among them. A snapshot just before it
    /// would hide the reset.
    fn loses_reset_at(&self, index: usize) -> bool {
        let mut lost = self.changes[index..].iter().take_while(|change| change.fault == Fault::Lost);
        lost.any(|change| change.is_reset)
    }
}

fn apply(book: &mut Levels, levels: &[LevelChange]) {
    for LevelChange { side, price, quantity } in levels {
        match quantity.0 {
            0 => book.remove(&(*side, *price)),
            _ => book.insert((*side, *price), *quantity),
        };
    }
}

/// Receiver of the updates: the book that is published, and its naive model.
struct Receiver<'a> {
    history: &'a History,
    order: BookOrder,
    published: Levels,
    has_arrived: Vec<bool>,
    /// Last update that has arrived.
    newest: usize,
    /// First update that the last snapshot lacks, and the snapshot.
    snapshot: (usize, Levels),
    /// Arrivals until a requested snapshot comes.
    requested: Option<usize>,
}

impl<'a> Receiver<'a> {
    fn new(history: &'a History) -> Self {
        let (order, published, has_arrived) = (BookOrder::new(), Levels::new(), vec![false; history.changes.len()]);
        Self { history, order, published, has_arrived, newest: 0, snapshot: (1, Levels::new()), requested: Some(0) }
    }

    /// Takes an update or a snapshot. Returns whether it shows a gap, and whether it is a snapshot that is published.
    fn take(&mut self, update: BookUpdate<'_>) -> (bool, bool) {
        let was_valid = self.order.is_valid(SYMBOL);
        let Self { order, published, .. } = self;
        let (mut is_gap, mut is_published) = (false, false);
        order.take(update, &mut |step| match step {
            BookStep::Apply(update) => {
                if update.is_snapshot {
                    published.clear();
                    is_published = true;
                }
                apply(published, update.levels);
            }
            BookStep::Gap { .. } => is_gap = true,
            BookStep::Hold => assert!(!was_valid, "a valid book holds no update"),
            BookStep::Drop => {}
            BookStep::Valid => assert!(is_published, "a book is valid by a snapshot"),
        });
        assert!(!is_gap || was_valid || update.is_snapshot, "a gap of an invalid book");
        (is_gap, is_published)
    }

    fn arrive(&mut self, index: usize, delay: usize) {
        let history = self.history;
        // A lost update is not repeated, and a late one that is in the snapshot looks like one after a reset.
        let is_swapped = history.changes[index].fault == Fault::Swapped && index + 1 == self.newest;
        let is_late = index < self.newest && !self.has_arrived[index];
        if is_late && !(is_swapped && index >= self.snapshot.0) {
            return;
        }
        let (is_gap, _) = self.take(history.update(index));
        if is_gap {
            let known = self.newest.max(self.snapshot.0 - 1);
            assert!(history.has_gap(known + 1, index), "a false gap at update {index} after {known}");
            self.requested = Some(delay);
        }
        self.has_arrived[index] = true;
        self.newest = self.newest.max(index);
        self.check();
    }

    /// Takes a snapshot that lacks the updates from an index on.
    fn arrive_snapshot(&mut self, snapshot: BookUpdate<'_>, first_missing: usize, delay: usize) {
        self.requested = None;
        let (is_gap, is_published) = self.take(snapshot);
        assert!(is_gap != is_published, "a requested snapshot is published or too old");
        if is_published {
            let mut book = Levels::new();
            apply(&mut book, snapshot.levels);
            self.snapshot = (first_missing, book);
        } else {
            let has_gap = self.history.has_gap(first_missing, self.newest);
            assert!(has_gap, "the snapshot before update {first_missing} is refused at {}", self.newest);
            self.requested = Some(delay);
        }
        self.check();
    }

    /// Checks that a valid book is the book after all updates that have arrived.
    fn check(&self) {
        if self.order.is_valid(SYMBOL) {
            let (first_missing, snapshot) = &self.snapshot;
            let is_at_snapshot = self.newest < *first_missing;
            let expected = if is_at_snapshot { snapshot } else { &self.history.books[self.newest] };
            assert_eq!(&self.published, expected, "left: published, right: the exchange's book at {}", self.newest);
        }
    }

    /// Returns whether the requested snapshot comes after this arrival.
    fn is_due(&mut self) -> bool {
        match &mut self.requested {
            None => false,
            Some(0) => true,
            Some(arrivals) => {
                *arrivals -= 1;
                false
            }
        }
    }
}

fn levels_of(book: &Levels) -> Vec<LevelChange> {
    let level = |(&(side, price), &quantity): (&(Side, Price), &Quantity)| LevelChange { side, price, quantity };
    book.iter().map(level).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn snapshots_in_the_stream_give_the_book_of_the_exchange(
        changes in vec(change(), 1..200),
        delays in vec(0_usize..6, 1..20),
    ) {
        let history = History::new(changes, true);
        let (mut receiver, mut delays) = (Receiver::new(&history), delays.iter().copied().cycle());
        for (index, may_follow) in history.arrivals() {
            receiver.arrive(index, delays.next().expect("they repeat"));
            let at = receiver.newest;
            if may_follow && !history.loses_reset_at(at + 1) && receiver.is_due() {
                let levels = levels_of(&history.books[at]);
                let snapshot = BookUpdate { levels: &levels, ..streamed(history.numbers[at]) };
                receiver.arrive_snapshot(snapshot, at + 1, delays.next().expect("they repeat"));
            }
        }
    }

    #[test]
    fn fetched_snapshots_give_the_book_of_the_exchange(
        changes in vec(change(), 1..200),
        delays in vec(0_usize..6, 1..20),
        leads in vec((-4_i64..5, any::<bool>()), 1..20),
    ) {
        let history = History::new(changes, false);
        let (mut receiver, mut delays) = (Receiver::new(&history), delays.iter().copied().cycle());
        let mut leads = leads.iter().copied().cycle();
        for (index, may_follow) in history.arrivals() {
            receiver.arrive(index, delays.next().expect("they repeat"));
            if !(may_follow && receiver.is_due()) {
                continue;
            }
            // The snapshot has the updates before an index, and may have half of that one.
            let (lead, has_half) = leads.next().expect("they repeat");
            let next = (receiver.newest as i64 + 1 + lead).clamp(1, history.changes.len() as i64 - 1) as usize;
            let (mut book, mut number) = (history.books[next - 1].clone(), history.numbers[next - 1]);
            if has_half {
                let levels = &history.changes[next].levels;
                apply(&mut book, &levels[..levels.len() / 2]);
                number += 512;
            }
            let levels = levels_of(&book);
            let snapshot = BookUpdate { levels: &levels, ..fetched(number) };
            receiver.arrive_snapshot(snapshot, next, delays.next().expect("they repeat"));
        }
    }
}
