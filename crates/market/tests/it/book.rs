//! An order book equals a naive one after every message, and is valid exactly when it may be used.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tickpath_market::{
    BookChange, BookLevel, DepthLevel, FeedCondition, FeedStatus, Invalidity, OrderBook, Price, Quantity, Side,
    SymbolId,
};

const SYMBOL: SymbolId = SymbolId(3);
const OTHER: SymbolId = SymbolId(4);

/// Input of a book.
#[derive(Debug, Clone)]
enum Input {
    /// A message of the exchange: whether it is a snapshot, and the side, price and quantity of each level.
    Message(bool, Vec<(u8, i64, i64)>),
    /// An event of the feed, of a connection.
    Status(FeedCondition, u8),
    /// Messages were lost by the bus.
    Lost,
}

use Input::{Lost, Message, Status};

/// Expected state of a book.
#[derive(Debug, Default)]
struct NaiveBook {
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
    is_valid: bool,
}

/// Builds the book from all inputs since the last snapshot that nothing has broken.
fn naive(inputs: &[Input]) -> NaiveBook {
    let (mut begin, mut up, mut has_gap) = (None, BTreeSet::new(), false);
    for (number, input) in inputs.iter().enumerate() {
        match input {
            Message(true, _) => begin = Some(number),
            Message(false, _) => {}
            // The gap of all instruments with which a carrier begins.
            Status(FeedCondition::Gap, _) => (begin, up, has_gap) = (None, BTreeSet::new(), true),
            Status(FeedCondition::BookValid, _) => has_gap = false,
            Status(FeedCondition::Connected, connection) => {
                up.insert(*connection);
            }
            Status(FeedCondition::Disconnected, connection) => {
                up.remove(connection);
                begin = begin.filter(|_| !up.is_empty());
            }
            Status(..) => {}
            Lost => (begin, up, has_gap) = (None, BTreeSet::new(), false),
        }
    }
    let Some(begin) = begin else { return NaiveBook::default() };
    let mut book = NaiveBook::default();
    for input in &inputs[begin..] {
        let Message(_, levels) = input else { continue };
        for &(side, price, quantity) in levels {
            let levels = if side == Side::Buy.code() { &mut book.bids } else { &mut book.asks };
            if quantity > 0 {
                levels.insert(price, quantity);
            } else {
                levels.remove(&price);
            }
        }
    }
    let is_crossed = book.bids.keys().last().zip(book.asks.keys().next()).is_some_and(|(bid, ask)| bid >= ask);
    book.is_valid = !has_gap && !is_crossed;
    book
}

/// Passes an input to a book, level by level.
fn pass(book: &mut OrderBook, sequence: u64, input: &Input) {
    match input {
        Message(is_snapshot, levels) => {
            for level in messages(*is_snapshot, sequence, levels) {
                let is_last = level.flags & BookLevel::LAST != 0;
                let expected = if is_last { BookChange::Complete } else { BookChange::Pending };
                assert_eq!(book.apply(&level), expected);
                assert!(is_last || !book.is_valid(), "a book is not valid within a message");
                assert_eq!((book.sequence(), book.event_ns()), (sequence, sequence * 2));
            }
        }
        Status(condition, connection) => book.apply_status(&status(*condition, *connection)),
        Lost => book.lost_messages(),
    }
}

/// Returns a message of the exchange, one that changes no level if there are none.
fn messages(is_snapshot: bool, sequence: u64, levels: &[(u8, i64, i64)]) -> Vec<BookLevel> {
    let levels: &[(u8, i64, i64)] = if levels.is_empty() { &[(0, 0, 0)] } else { levels };
    let level = |(index, &(side, price, quantity)): (usize, &(u8, i64, i64))| {
        let first = if is_snapshot && index == 0 { BookLevel::SNAPSHOT } else { 0 };
        let last = if index + 1 == levels.len() { BookLevel::LAST } else { 0 };
        BookLevel {
            price: Price(price),
            quantity: Quantity(quantity),
            event_ns: sequence * 2,
            sequence,
            symbol: SYMBOL,
            side,
            flags: first | last,
            ..BookLevel::default()
        }
    };
    levels.iter().enumerate().map(level).collect()
}

fn status(condition: FeedCondition, connection: u8) -> FeedStatus {
    let (symbol, condition) = (FeedStatus::ALL_SYMBOLS, condition.code());
    FeedStatus { symbol, condition, connection, expected: 7, found: 9, ..FeedStatus::default() }
}

fn any_inputs() -> impl Strategy<Value = Vec<Input>> {
    let bid = (Just(Side::Buy.code()), 1..9_i64);
    let ask = (Just(Side::Sell.code()), 8..16_i64);
    let level = (prop_oneof![bid, ask], -1..4_i64).prop_map(|((side, price), quantity)| (side, price, quantity));
    let levels = prop::collection::vec(level, 0..6);
    let condition = prop::sample::select(FeedCondition::ALL.to_vec());
    let connection = prop::sample::select(vec![0_u8, 1, 64, 255]);
    let input = prop_oneof![
        8 => (prop::bool::weighted(0.3), levels).prop_map(|(is_snapshot, levels)| Message(is_snapshot, levels)),
        3 => (condition, connection).prop_map(|(condition, connection)| Status(condition, connection)),
        1 => Just(Lost),
    ];
    prop::collection::vec(input, 0..40)
}

fn levels(levels: impl Iterator<Item = DepthLevel>) -> Vec<(i64, i64)> {
    levels.map(|level| (level.price.0, level.quantity.0)).collect()
}

proptest! {
    #[test]
    fn a_book_equals_a_naive_book_after_every_message(inputs in any_inputs()) {
        let mut book = OrderBook::new(SYMBOL);
        for number in 0..inputs.len() {
            pass(&mut book, number as u64 + 1, &inputs[number]);
            let expected = naive(&inputs[..=number]);
            let bids: Vec<(i64, i64)> = expected.bids.iter().rev().map(|(price, quantity)| (*price, *quantity)).collect();
            let asks: Vec<(i64, i64)> = expected.asks.iter().map(|(price, quantity)| (*price, *quantity)).collect();
            prop_assert_eq!(book.is_valid(), expected.is_valid, "{:?}", book.invalidity());
            prop_assert_eq!((book.depth(Side::Buy), book.depth(Side::Sell)), (bids.len(), asks.len()));
            let best = book.best().map(|(bid, ask)| levels([bid, ask].into_iter()));
            let has_best = expected.is_valid && !bids.is_empty() && !asks.is_empty();
            prop_assert_eq!(best, has_best.then(|| vec![bids[0], asks[0]]));
            prop_assert_eq!((levels(book.bids()), levels(book.asks())), (bids, asks));
        }
    }

    #[test]
    fn messages_of_another_instrument_change_nothing(inputs in any_inputs(), others in any_inputs()) {
        let (mut book, mut alone) = (OrderBook::new(SYMBOL), OrderBook::new(SYMBOL));
        for (number, input) in inputs.iter().enumerate() {
            pass(&mut book, number as u64 + 1, input);
            pass(&mut alone, number as u64 + 1, input);
            match others.get(number) {
                Some(Message(is_snapshot, levels)) => {
                    for level in messages(*is_snapshot, 99, levels) {
                        prop_assert_eq!(book.apply(&BookLevel { symbol: OTHER, ..level }), BookChange::Ignored);
                    }
                }
                Some(Status(condition, connection)) => {
                    book.apply_status(&FeedStatus { symbol: OTHER, ..status(*condition, *connection) });
                }
                Some(Lost) | None => {}
            }
            prop_assert_eq!(book.invalidity(), alone.invalidity());
            prop_assert_eq!((levels(book.bids()), levels(book.asks())), (levels(alone.bids()), levels(alone.asks())));
        }
    }
}

#[test]
fn a_book_names_why_it_is_not_valid() {
    use FeedCondition::{BookValid, Connected, Disconnected, Gap, Maintenance, Silence};
    let snapshot = || Message(true, vec![(1, 10, 1), (2, 11, 1)]);
    let gap = Some(Invalidity::Gap { expected: 7, found: 9 });
    check(&[], Some(Invalidity::NoSnapshot));
    check(&[Message(false, vec![(1, 10, 1)])], Some(Invalidity::NoSnapshot));
    check(&[Status(BookValid, 0)], Some(Invalidity::NoSnapshot));
    check(&[snapshot()], None);
    check(&[Message(true, vec![])], None);
    check(&[snapshot(), Status(Silence, 0), Status(Maintenance, 0)], None);
    check(&[snapshot(), Status(Gap, 0)], gap);
    check(&[snapshot(), Status(Gap, 0), snapshot()], gap);
    check(&[snapshot(), Status(Gap, 0), Status(BookValid, 0)], gap);
    check(&[snapshot(), Status(Gap, 0), snapshot(), Status(BookValid, 0)], None);
    check(&[snapshot(), Status(Gap, 0), Status(BookValid, 0), snapshot()], None);
    check(&[snapshot(), Status(Gap, 0), Lost, snapshot()], None);
    check(&[snapshot(), Status(Disconnected, 0)], Some(Invalidity::Disconnected));
    check(&[snapshot(), Status(Disconnected, 0), Status(Connected, 0)], Some(Invalidity::Disconnected));
    check(&[snapshot(), Status(Disconnected, 0), Status(Connected, 0), snapshot()], None);
    check(&[Status(Connected, 0), Status(Connected, 64), snapshot(), Status(Disconnected, 0)], None);
    check(
        &[Status(Connected, 0), Status(Connected, 64), Lost, snapshot(), Status(Disconnected, 0)],
        Some(Invalidity::Disconnected),
    );
    // The first carrier was killed with its connection up, and the second one has lost its own.
    let killed = [Status(Connected, 64), Status(Gap, 0), Status(Connected, 0), snapshot(), Status(BookValid, 0)];
    check(&killed, None);
    check(&[&killed[..], &[Status(Disconnected, 0)]].concat(), Some(Invalidity::Disconnected));
    check(&[snapshot(), Lost], Some(Invalidity::LostMessages));
    check(&[snapshot(), Message(false, vec![(1, 11, 1)])], Some(Invalidity::Crossed));
    check(&[snapshot(), Message(false, vec![(1, 11, 1)]), Message(false, vec![(2, 11, 0), (2, 12, 1)])], None);
}

/// Checks the reason after these inputs.
fn check(inputs: &[Input], expected: Option<Invalidity>) {
    let mut book = OrderBook::new(SYMBOL);
    for (number, input) in inputs.iter().enumerate() {
        pass(&mut book, number as u64 + 1, input);
    }
    assert_eq!((book.invalidity(), book.is_valid()), (expected, expected.is_none()), "{inputs:?}");
}

#[test]
fn a_book_is_incomplete_until_the_last_level_of_a_message() {
    let mut book = OrderBook::new(SYMBOL);
    pass(&mut book, 1, &Message(true, vec![(1, 10, 1), (2, 12, 1)]));
    let update = messages(false, 2, &[(1, 9, 1), (2, 11, 1)]);
    assert_eq!(book.apply(&update[0]), BookChange::Pending);
    assert_eq!((book.invalidity(), book.best()), (Some(Invalidity::Incomplete), None));
    assert_eq!(book.apply(&update[1]), BookChange::Complete);
    assert_eq!(book.best().map(|(bid, ask)| (bid.price.0, ask.price.0)), Some((10, 11)));
}

#[test]
fn a_message_without_its_last_level_is_a_loss() {
    let mut book = OrderBook::new(SYMBOL);
    pass(&mut book, 1, &Message(true, vec![(1, 10, 1), (2, 12, 1)]));
    book.apply(&messages(false, 2, &[(1, 9, 1), (2, 11, 1)])[0]);
    pass(&mut book, 3, &Message(false, vec![(1, 8, 1)]));
    assert_eq!((book.invalidity(), book.depth(Side::Buy)), (Some(Invalidity::LostMessages), 0));
    // A snapshot that is cut off is no loss, because the next snapshot has all levels.
    book.apply(&messages(true, 4, &[(1, 9, 1), (2, 11, 1)])[0]);
    pass(&mut book, 5, &Message(true, vec![(1, 10, 1)]));
    assert_eq!((book.invalidity(), levels(book.bids())), (None, vec![(10, 1)]));
}

#[test]
fn a_snapshot_that_is_interrupted_makes_no_valid_book() {
    let mut book = OrderBook::new(SYMBOL);
    let snapshot = messages(true, 1, &[(1, 10, 1), (2, 12, 1)]);
    book.apply(&snapshot[0]);
    book.lost_messages();
    assert_eq!(book.apply(&snapshot[1]), BookChange::Complete);
    assert_eq!(book.invalidity(), Some(Invalidity::LostMessages));
}

#[test]
fn a_code_of_a_later_version_makes_a_book_invalid() {
    let snapshot = messages(true, 1, &[(1, 10, 1)])[0];
    let update = messages(false, 2, &[(1, 10, 1)])[0];
    for unknown in [BookLevel { side: 3, ..update }, BookLevel { flags: BookLevel::LAST | 4, ..update }] {
        let mut book = OrderBook::new(SYMBOL);
        book.apply(&snapshot);
        assert_eq!(book.apply(&unknown), BookChange::Complete);
        assert_eq!(book.invalidity(), Some(Invalidity::UnknownCode));
        book.apply(&snapshot);
        assert_eq!(book.invalidity(), None);
    }
    let mut book = OrderBook::new(SYMBOL);
    book.apply(&snapshot);
    book.apply_status(&FeedStatus { condition: 99, ..status(FeedCondition::Silence, 0) });
    assert_eq!(book.invalidity(), Some(Invalidity::UnknownCode));
}

#[test]
fn a_book_refuses_more_levels_than_it_may_hold() {
    let most = OrderBook::MAX_LEVELS as i64;
    let side = |count| (0..count).map(|number| (2, 1_000 + number, 1)).collect::<Vec<_>>();
    let mut book = OrderBook::new(SYMBOL);
    pass(&mut book, 1, &Message(true, side(most)));
    assert_eq!((book.invalidity(), book.depth(Side::Sell)), (None, OrderBook::MAX_LEVELS));
    // A change of a level needs no place.
    pass(&mut book, 2, &Message(false, vec![(2, 1_000, 5)]));
    assert_eq!(book.invalidity(), None);
    pass(&mut book, 3, &Message(false, vec![(2, 1, 1)]));
    assert_eq!((book.invalidity(), book.depth(Side::Sell)), (Some(Invalidity::TooManyLevels), 0));
    pass(&mut book, 4, &Message(true, side(most + 1)));
    assert_eq!(book.invalidity(), Some(Invalidity::TooManyLevels));
    pass(&mut book, 5, &Message(true, side(2)));
    assert_eq!(book.invalidity(), None);
}
