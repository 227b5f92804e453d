//! Binary frames, written field by field as OKX's schema orders them.

use proptest::prelude::*;
use tickpath_feed::Frame;
use tickpath_market::{Price, Quantity, Side, SymbolId, Trade, decimal_text};

use crate::frames::{OwnedBook, OwnedMessage, TRADE, ask, bid, messages_of, parser, read, swap_quote};

/// Writer of a message.
pub struct SbeWriter(Vec<u8>);

impl SbeWriter {
    /// Begins a message with the header of schema 1.
    pub fn new(template: u16, block_bytes: u16) -> Self {
        let header = [block_bytes, template, 1, 0];
        Self(header.iter().flat_map(|field| field.to_le_bytes()).collect())
    }

    pub fn numbers(mut self, numbers: &[i64]) -> Self {
        self.0.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        self
    }

    pub fn counts(mut self, counts: &[i32]) -> Self {
        self.0.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        self
    }

    pub fn short(mut self, number: u16) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    pub fn bytes(mut self, bytes: &[i8]) -> Self {
        self.0.extend(bytes.iter().map(|byte| byte.cast_unsigned()));
        self
    }

    /// Writes a group of levels; each has one order.
    pub fn levels(self, levels: &[[i64; 2]]) -> Self {
        let group = self.short(20).short(levels.len() as u16);
        levels.iter().fold(group, |writer, level| writer.numbers(level).counts(&[1]))
    }

    pub fn done(self) -> Vec<u8> {
        self.0
    }
}

/// A quote of the second instrument: 111.05 for 57745, 111.06 for 55154.
pub fn quote_frame() -> Vec<u8> {
    SbeWriter::new(1000, 74)
        .numbers(&[211_874, 1_670_324_386_802_000, 1_670_324_386_803_111, 363_996_337, 11_106, 55_154, 11_105, 57_745])
        .counts(&[2, 2])
        .bytes(&[-2, 0])
        .done()
}

/// A sale of the first instrument.
pub fn trade_frame() -> Vec<u8> {
    SbeWriter::new(1005, 62)
        .numbers(&[3, 1_630_048_897_897_000, 1_630_048_897_898_222, 1234, 422_199, 12_060_306, 130_639_474])
        .short(3)
        .bytes(&[0, -1, -8, 0])
        .done()
}

/// Head of an update of the first instrument's book, with exponents -1 and -8.
fn update_head(template: u16) -> SbeWriter {
    SbeWriter::new(template, 42)
        .numbers(&[3, 1_763_700_642_688_000, 1_763_700_642_689_267, 65_078_091_895, 65_078_091_889])
        .bytes(&[-1, -8])
}

pub fn update_frame() -> Vec<u8> {
    update_head(1001).levels(&[[858_164, 53_041_081], [858_661, 0]]).levels(&[[858_163, 7]]).done()
}

pub fn snapshot_frame() -> Vec<u8> {
    SbeWriter::new(1006, 26)
        .numbers(&[3, 1_763_700_642_600_000, 65_078_091_880])
        .bytes(&[-1, -8])
        .levels(&[[858_164, 5]])
        .levels(&[[858_163, 7], [858_162, 9]])
        .done()
}

fn update() -> OwnedBook {
    OwnedBook {
        symbol: SymbolId(1),
        previous: 65_078_091_889,
        sequence: 65_078_091_895,
        event_ns: 1_763_700_642_688_000_000,
        levels: vec![ask(8_581_640, 53_041_081), ask(8_586_610, 0), bid(8_581_630, 7)],
        ..OwnedBook::default()
    }
}

fn check(frame: &[u8], expected: &[OwnedMessage]) {
    assert_eq!(messages_of(&mut parser(), Frame::Binary(frame)), expected);
}

#[test]
fn each_template_has_its_message() {
    let quote = swap_quote([11_105, 57_745], [11_106, 55_154], 1_670_324_386_802_000_000);
    check(&quote_frame(), &[OwnedMessage::Quote(363_996_337, quote)]);
    let trade = Trade {
        price: Price(4_221_990),
        quantity: Quantity(12_060_306),
        trade_id: 130_639_474,
        event_ns: 1_630_048_897_897_000_000,
        symbol: SymbolId(1),
        aggressor: Side::Sell.code(),
        reserved: [0; 3],
    };
    check(&trade_frame(), &[OwnedMessage::Trade(trade)]);
    check(&update_frame(), &[OwnedMessage::Book(update())]);
    let snapshot = OwnedBook {
        symbol: SymbolId(1),
        is_snapshot: true,
        may_overlap: true,
        sequence: 65_078_091_880,
        event_ns: 1_763_700_642_600_000_000,
        levels: vec![ask(8_581_640, 5), bid(8_581_630, 7), bid(8_581_620, 9)],
        ..OwnedBook::default()
    };
    check(&snapshot_frame(), &[OwnedMessage::Book(snapshot)]);
}

#[test]
fn a_change_of_exponents_continues_the_sequence_of_a_book() {
    let expected = OwnedBook { levels: Vec::new(), ..update() };
    check(&update_head(1002).done(), &[OwnedMessage::Book(expected)]);
}

#[test]
fn appended_fields_of_a_later_version_are_skipped() {
    let mut longer_block = SbeWriter::new(1001, 46)
        .numbers(&[3, 1_763_700_642_688_000, 0, 65_078_091_895, 65_078_091_889])
        .bytes(&[-1, -8, 1, 2, 3, 4])
        .levels(&[[858_164, 53_041_081], [858_661, 0]])
        .levels(&[[858_163, 7]])
        .done();
    longer_block.extend([0; 10]);
    check(&longer_block, &[OwnedMessage::Book(update())]);
}

#[test]
fn binary_frames_that_cannot_be_read_are_named() {
    let patched = |mut frame: Vec<u8>, at: usize, byte: u8| {
        frame[at] = byte;
        frame
    };
    for (frame, sentence) in [
        (b"SBE".to_vec(), "a frame of 3 bytes cannot be read: it ends within a message; it is skipped"),
        (
            patched(quote_frame(), 4, 9),
            "a frame of 82 bytes cannot be read: its schema is 9, and only 1 is known; it is skipped",
        ),
        (
            patched(quote_frame(), 2, 0xeb),
            "a frame of 82 bytes cannot be read: the template 1003 is unknown; it is skipped",
        ),
        (
            patched(quote_frame(), 0, 73),
            "a frame of 82 bytes cannot be read: its block has 73 bytes, and 74 are needed; it is skipped",
        ),
        (
            patched(quote_frame(), 8, 9),
            "a message of the instrument 'instIdCode 211721', which is not subscribed; it is skipped",
        ),
        (
            patched(trade_frame(), 8 + 58, 2),
            "a frame of 70 bytes cannot be read: its side is 2, and neither 0 nor 1; it is skipped",
        ),
        (
            patched(update_frame(), 8 + 42, 19),
            "a frame of 118 bytes cannot be read: a level has 19 bytes, and 20 are needed; it is skipped",
        ),
        (
            patched(update_frame(), 8 + 39, 0x80),
            "a frame of 118 bytes cannot be read: its previous sequence number is -9223371971776683919, which is \
             negative; it is skipped",
        ),
        (
            patched(quote_frame(), 8 + 47, 0x80),
            "a frame of 82 bytes cannot be read: its quantity is -9223372036854720654, which is negative; it is skipped",
        ),
        (
            patched(trade_frame(), 8 + 47, 0x80),
            "a frame of 70 bytes cannot be read: its quantity is -9223372036842715502, which is negative; it is skipped",
        ),
        (
            patched(update_frame(), 8 + 42 + 4 + 15, 0x80),
            "a frame of 118 bytes cannot be read: its quantity is -9223372036801734727, which is negative; it is skipped",
        ),
        (
            patched(quote_frame(), 8 + 73, 0xff),
            "BCH-USDT-SWAP: quantity '57745e-1' does not fit 0 decimals in 64 bits; fetch the instruments again",
        ),
        (
            patched(quote_frame(), 8 + 72, 17),
            "BCH-USDT-SWAP: price '11105e17' does not fit 2 decimals in 64 bits; fetch the instruments again",
        ),
    ] {
        let (messages, result) = read(&mut parser(), Frame::Binary(&frame));
        assert_eq!((messages, result.map_err(|e| e.to_string())), (Vec::new(), Err(sentence.to_owned())));
    }
}

proptest! {
    /// A binary number and its text give the same units, or do both not fit.
    #[test]
    fn mantissa_and_exponent_are_the_number_that_json_writes(
        mantissa in -i64::MAX..i64::MAX,
        exponent in -18_i8..=0,
    ) {
        let mut frame = trade_frame();
        frame[8 + 32..8 + 40].copy_from_slice(&mantissa.to_le_bytes());
        frame[8 + 59] = exponent.cast_unsigned();
        let binary = read(&mut parser(), Frame::Binary(&frame)).0;
        let text = decimal_text(mantissa.into(), exponent.unsigned_abs());
        let json = TRADE.replace("42219.9", &text).replace("buy", "sell");
        let json = read(&mut parser(), Frame::Text(json.as_bytes())).0;
        prop_assert_eq!(binary, json);
    }
}
