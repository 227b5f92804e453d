//! SBE messages, built by a writer from the exchange's schema.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tickpath_feed::Frame;
use tickpath_feed_binance::{BinanceParser, TimeUnit};
use tickpath_market::Side::{Buy, Sell};

use crate::frames::{BNBUSDT, BTCUSDT, Seen, instrument, parse, parser};

pub const TRADES: u16 = 10_000;
pub const BEST_BID_ASK: u16 = 10_001;
const DEPTH_SNAPSHOT: u16 = 10_002;
pub const DEPTH_DIFF: u16 = 10_003;

/// Writer of a message. A later version appends bytes to each block, and to the message.
pub struct SbeWriter {
    version: u16,
    appended: usize,
    bytes: Vec<u8>,
}

impl SbeWriter {
    /// Starts a message with its root block.
    pub fn start(template: u16, version: u16, appended: usize, root: &[u8]) -> Self {
        let mut writer = Self { version, appended, bytes: Vec::new() };
        let block = u16::try_from(root.len() + appended).expect("a block is short");
        for number in [block, template, 1, version] {
            writer.bytes.extend(number.to_le_bytes());
        }
        writer.block(root);
        writer
    }

    fn block(&mut self, fields: &[u8]) {
        self.bytes.extend(fields);
        self.bytes.resize(self.bytes.len() + self.appended, 0xee);
    }

    /// Adds a group of levels, with a count of 16 bits.
    pub fn levels(mut self, levels: &[(i64, i64)]) -> Self {
        let block = u16::try_from(16 + self.appended).expect("a block is short");
        self.bytes.extend(block.to_le_bytes());
        self.bytes.extend(u16::try_from(levels.len()).expect("a few levels").to_le_bytes());
        for (price, quantity) in levels {
            self.block(&numbers(&[*price, *quantity]));
        }
        self
    }

    /// Adds the group of trades, with a count of 32 bits: id, price, quantity, and whether the buyer was the maker.
    pub fn trades(mut self, trades: &[(i64, i64, i64, u8)]) -> Self {
        let block = u16::try_from(25 + self.appended).expect("a block is short");
        self.bytes.extend(block.to_le_bytes());
        self.bytes.extend(u32::try_from(trades.len()).expect("a few trades").to_le_bytes());
        for (id, price, quantity, buyer_is_maker) in trades {
            let mut fields = numbers(&[*id, *price, *quantity]);
            fields.push(*buyer_is_maker);
            self.block(&fields);
        }
        self
    }

    /// Ends the message with its symbol.
    pub fn symbol(mut self, symbol: &str) -> Vec<u8> {
        self.bytes.push(u8::try_from(symbol.len()).expect("a symbol is short"));
        self.bytes.extend(symbol.as_bytes());
        if self.version > 0 {
            self.bytes.extend([0xee; 3]);
        }
        self.bytes
    }
}

fn numbers(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Returns a root block: numbers, the two exponents, and further numbers.
pub fn root(before: &[i64], exponents: [i8; 2], after: &[i64]) -> Vec<u8> {
    let mut bytes = numbers(before);
    bytes.extend(exponents.map(i8::cast_unsigned));
    bytes.extend(numbers(after));
    bytes
}

/// Returns a best bid and offer of BTCUSDT: 61800.2 for 2.5, and 61800.3 for 3.
pub fn best_bid_ask() -> Vec<u8> {
    let root = root(&[1_000_001, 77], [-2, -8], &[6_180_020, 250_000_000, 6_180_030, 300_000_000]);
    SbeWriter::start(BEST_BID_ASK, 0, 0, &root).symbol("BTCUSDT")
}

/// Returns a message of each template, and of a version; all are of BTCUSDT.
fn messages(version: u16, appended: usize) -> Vec<(Vec<u8>, Vec<Seen>)> {
    let start = |template, root: &[u8]| SbeWriter::start(template, version, appended, root);
    let quote = root(&[1_000_001, 77], [-2, -8], &[6_180_020, 250_000_000, 6_180_030, 300_000_000]);
    let trades = root(&[1_000_003, 1_000_002], [-1, -3], &[]);
    let snapshot = root(&[1_000_004, 78], [-1, -3], &[]);
    let update = root(&[1_000_005, 79, 82], [0, 0], &[]);
    vec![
        (
            start(BEST_BID_ASK, &quote).symbol("BTCUSDT"),
            vec![Seen::quote(BTCUSDT, 77, [618_002, 2_500, 618_003, 3_000], 1_000_001_000)],
        ),
        (
            start(TRADES, &trades).trades(&[(5, 618_002, 6, 1), (6, 618_003, 7, 0)]).symbol("BTCUSDT"),
            vec![
                Seen::trade(BTCUSDT, 5, [618_002, 6], 1_000_002_000, Sell),
                Seen::trade(BTCUSDT, 6, [618_003, 7], 1_000_002_000, Buy),
            ],
        ),
        (
            start(DEPTH_SNAPSHOT, &snapshot).levels(&[(20, 1), (10, 2)]).levels(&[(30, 3)]).symbol("BTCUSDT"),
            vec![Seen::snapshot(BTCUSDT, 78, 1_000_004_000, &[(Buy, 20, 1), (Buy, 10, 2), (Sell, 30, 3)])],
        ),
        (
            start(DEPTH_DIFF, &update).levels(&[]).levels(&[(3, 0), (4, 1)]).symbol("BTCUSDT"),
            vec![Seen::update(BTCUSDT, 78, 82, 1_000_005_000, &[(Sell, 30, 0), (Sell, 40, 1_000)])],
        ),
    ]
}

/// Checks that a frame is refused with these words.
fn check_error(frame: &[u8], words: &str) {
    let error = parse(&mut parser(TimeUnit::Millisecond), Frame::Binary(frame)).expect_err(words);
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn each_template_has_its_values_in_this_version_and_in_later_ones() {
    let mut parser = parser(TimeUnit::Millisecond);
    for (version, appended) in [(0, 0), (1, 0), (2, 9)] {
        for (frame, expected) in messages(version, appended) {
            let read = parse(&mut parser, Frame::Binary(&frame));
            assert_eq!(read, Ok(expected), "version {version}: {frame:02x?}");
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    let mut parser = parser(TimeUnit::Millisecond);
    for (frame, _) in messages(0, 0) {
        for end in 0..frame.len() {
            assert!(parse(&mut parser, Frame::Binary(&frame[..end])).is_err(), "{end} bytes of {frame:02x?}");
        }
    }
}

#[test]
fn numbers_take_the_units_of_their_instrument_or_are_refused() {
    for (mantissa, exponent, decimals, expected) in [
        (618_002, -1, 1, Some(618_002)),
        (61_800_200, -3, 1, Some(618_002)),
        (61_800_250, -3, 1, None),
        (5, 2, 3, Some(500_000)),
        (0, 127, 18, Some(0)),
        (0, -128, 0, Some(0)),
        (1, -128, 18, None),
        (1, 18, 0, Some(1_000_000_000_000_000_000)),
        (1, 19, 0, None),
        (10, 18, 0, None),
        (i64::MAX, 0, 0, Some(i64::MAX)),
        (-1, 0, 0, None),
        (i64::MIN, 0, 0, None),
    ] {
        let mut parser = BinanceParser::new(&[instrument("BNBUSDT", BNBUSDT, decimals, 0)], TimeUnit::Millisecond);
        let root = root(&[0, 1], [exponent, 0], &[mantissa, 1, mantissa, 1]);
        let frame = SbeWriter::start(BEST_BID_ASK, 0, 0, &root).symbol("BNBUSDT");
        let read = parse(&mut parser, Frame::Binary(&frame));
        let expected = expected.map(|price| vec![Seen::quote(BNBUSDT, 1, [price, 1, price, 1], 0)]);
        assert_eq!(read.ok(), expected, "{mantissa}e{exponent} at {decimals} decimals");
    }
}

#[test]
fn bad_messages_are_refused_with_the_reason() {
    let quote = root(&[1, 2], [0, 0], &[1, 1, 1, 1]);
    let trades = root(&[1, 2], [0, 0], &[]);
    let start = |template, root: &[u8]| SbeWriter::start(template, 0, 0, root);
    check_error(&start(10_004, &quote).symbol("BTCUSDT"), "template 10004 is not known");
    check_error(&start(BEST_BID_ASK, &quote[..49]).symbol("BTCUSDT"), "its block has 49 bytes, and needs 50");
    check_error(&start(BEST_BID_ASK, &quote).symbol("ETHUSDT"), "'ETHUSDT', which is not subscribed");
    check_error(&start(BEST_BID_ASK, &quote).symbol("€"), "'€', which is not subscribed");
    check_error(&start(TRADES, &trades).trades(&[(1, 1, 1, 2)]).symbol("BTCUSDT"), "isBuyerMaker is 2");
    check_error(&start(TRADES, &trades).trades(&[(-1, 1, 1, 0)]).symbol("BTCUSDT"), "is negative");
    check_error(&start(TRADES, &root(&[1, -2], [0, 0], &[])).trades(&[]).symbol("BTCUSDT"), "is negative");
    check_error(&start(TRADES, &root(&[1, i64::MAX], [0, 0], &[])).trades(&[]).symbol("BTCUSDT"), "time does not fit");

    let mut other_schema = best_bid_ask();
    other_schema[4] = 3;
    check_error(&other_schema, "its SBE schema is 3");
    let mut longer = best_bid_ask();
    longer.push(0);
    check_error(&longer, "1 bytes follow its symbol");
}

#[test]
fn a_group_that_claims_more_than_the_frame_has_is_refused() {
    let root = root(&[1, 2], [0, 0], &[]);
    for (block, count, words) in [
        (25_u16, u32::MAX, "ends before its last field"),
        (u16::MAX, u32::MAX, "ends before its last field"),
        (24, 1, "an entry has 24 bytes, and needs 25"),
        (0, u32::MAX, "an entry has 0 bytes, and needs 25"),
    ] {
        let mut writer = SbeWriter::start(TRADES, 0, 0, &root);
        writer.bytes.extend(block.to_le_bytes());
        writer.bytes.extend(count.to_le_bytes());
        check_error(&writer.symbol("BTCUSDT"), words);
    }
}

#[test]
fn an_empty_group_may_have_any_block_length() {
    let mut writer = SbeWriter::start(TRADES, 0, 0, &root(&[1, 2], [0, 0], &[]));
    writer.bytes.extend([0; 6]);
    let frame = writer.symbol("BTCUSDT");
    assert_eq!(parse(&mut parser(TimeUnit::Millisecond), Frame::Binary(&frame)), Ok(Vec::new()));
}

proptest! {
    #[test]
    fn any_body_of_a_known_template_is_read_or_refused(
        template in select(vec![TRADES, BEST_BID_ASK, DEPTH_SNAPSHOT, DEPTH_DIFF]),
        block in 0u16..80,
        version in 0u16..3,
        body in vec(prop_oneof![Just(0u8), Just(16u8), Just(25u8), any::<u8>()], 0..300),
    ) {
        let mut frame: Vec<u8> = [block, template, 1, version].into_iter().flat_map(u16::to_le_bytes).collect();
        frame.extend(body);
        let _ = parse(&mut parser(TimeUnit::Millisecond), Frame::Binary(&frame));
    }

    #[test]
    fn any_levels_are_read_in_order(
        bids in vec((0i64..1_000_000_000, 0i64..1_000_000_000), 0..50),
        offers in vec((0i64..1_000_000_000, 0i64..1_000_000_000), 0..50),
        appended in 0usize..4,
    ) {
        let root = root(&[0, 5, 9], [-1, -3], &[]);
        let frame = SbeWriter::start(DEPTH_DIFF, 1, appended, &root).levels(&bids).levels(&offers).symbol("BTCUSDT");
        let side = |side| move |&(price, quantity): &(i64, i64)| (side, price, quantity);
        let levels: Vec<_> = bids.iter().map(side(Buy)).chain(offers.iter().map(side(Sell))).collect();
        let read = parse(&mut parser(TimeUnit::Millisecond), Frame::Binary(&frame));
        prop_assert_eq!(read, Ok(vec![Seen::update(BTCUSDT, 4, 9, 0, &levels)]));
    }
}
