//! The scan in place and the complete reader give the same messages: frames are written twice, in OKX's spelling and
//! in any other spelling of the same JSON.

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_feed::{FeedInstrument, Frame};
use tickpath_feed_okx::OkxParser;
use tickpath_market::decimal_text;

use crate::frames::{instruments, messages_of};

/// Spelling of a frame.
struct JsonSpelling {
    /// State of a generator of random numbers; none for OKX's spelling.
    random: Option<u64>,
}

impl JsonSpelling {
    /// Returns a number below `limit`; zero in OKX's spelling.
    fn choose(&mut self, limit: u64) -> u64 {
        let Some(state) = &mut self.random else { return 0 };
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % limit
    }

    /// Writes an object. Another spelling has its own order of keys, white space and an unknown key.
    fn object(&mut self, fields: &[(&str, String)]) -> String {
        let mut fields: Vec<(&str, String)> = fields.to_vec();
        if self.random.is_some() {
            fields.push(("unknown", r#"[1,{"seqId":null}]"#.to_owned()));
            for last in (1..fields.len()).rev() {
                let other = self.choose(last as u64 + 1) as usize;
                fields.swap(last, other);
            }
        }
        let parts: Vec<String> = fields.iter().map(|(key, value)| format!("{}:{value}", self.text(key))).collect();
        format!("{{{}}}", parts.join(self.comma()))
    }

    fn array(&mut self, items: &[String]) -> String {
        format!("[{}]", items.join(self.comma()))
    }

    /// Writes a text. Another spelling may escape a character.
    fn text(&mut self, text: &str) -> String {
        let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
        let characters = text.chars().map(|c| if self.choose(8) == 1 { escaped(c) } else { c.to_string() });
        let characters: String = characters.collect();
        format!("\"{characters}\"")
    }

    fn comma(&mut self) -> &'static str {
        [",", ", ", "\n,\t"][self.choose(3) as usize]
    }
}

/// Content of a message, in units of the instrument.
#[derive(Debug, Clone)]
struct MessageContent {
    channel: &'static str,
    instrument: usize,
    is_snapshot: bool,
    /// Levels of the offers and of the bids.
    levels: [Vec<(i64, i64)>; 2],
    sides: Vec<bool>,
    ms: u64,
    numbers: [u64; 2],
}

fn content() -> impl Strategy<Value = MessageContent> {
    let channel = prop_oneof![Just("bbo-tbt"), Just("trades"), Just("books"), Just("books-l2-tbt")];
    let level = (-1_000_000_000_000_i64..1_000_000_000_000, 0_i64..1_000_000_000_000);
    let levels = [vec(level.clone(), 0..5), vec(level, 0..5)];
    let numbers = [0..i64::MAX as u64, 0..i64::MAX as u64];
    let ms = 0..4_000_000_000_000_u64;
    (channel, 0..3_usize, any::<bool>(), levels, vec(any::<bool>(), 5), ms, numbers).prop_map(
        |(channel, instrument, is_snapshot, levels, sides, ms, numbers)| MessageContent {
            channel,
            instrument,
            is_snapshot,
            levels,
            sides,
            ms,
            numbers,
        },
    )
}

/// Writes a frame with this content.
fn write(content: &MessageContent, instrument: &FeedInstrument, spelling: &mut JsonSpelling) -> String {
    let argument = [("channel", spelling.text(content.channel)), ("instId", spelling.text(&instrument.name))];
    let mut fields = vec![("arg", spelling.object(&argument))];
    let rows = match content.channel {
        "bbo-tbt" => vec![quote_row(content, instrument, spelling)],
        "trades" => trade_rows(content, instrument, spelling),
        _ => {
            fields.push(("action", spelling.text(if content.is_snapshot { "snapshot" } else { "update" })));
            vec![book_row(content, instrument, spelling)]
        }
    };
    fields.push(("data", spelling.array(&rows)));
    spelling.object(&fields)
}

fn quote_row(content: &MessageContent, instrument: &FeedInstrument, spelling: &mut JsonSpelling) -> String {
    let [asks, bids] = content.levels.each_ref().map(|levels| &levels[..levels.len().min(1)]);
    let fields = [
        ("asks", write_levels(asks, instrument, spelling)),
        ("bids", write_levels(bids, instrument, spelling)),
        ("ts", spelling.text(&content.ms.to_string())),
        ("seqId", content.numbers[0].to_string()),
    ];
    spelling.object(&fields)
}

fn book_row(content: &MessageContent, instrument: &FeedInstrument, spelling: &mut JsonSpelling) -> String {
    let [asks, bids] = &content.levels;
    let previous = if content.is_snapshot { "-1".to_owned() } else { content.numbers[1].to_string() };
    let fields = [
        ("asks", write_levels(asks, instrument, spelling)),
        ("bids", write_levels(bids, instrument, spelling)),
        ("ts", spelling.text(&content.ms.to_string())),
        ("checksum", "0".to_owned()),
        ("seqId", content.numbers[0].to_string()),
        ("prevSeqId", previous),
    ];
    spelling.object(&fields)
}

/// Writes one trade for each level of both sides, or one of nothing if there are none.
fn trade_rows(content: &MessageContent, instrument: &FeedInstrument, spelling: &mut JsonSpelling) -> Vec<String> {
    let mut trades: Vec<(i64, i64)> = content.levels.concat();
    if trades.is_empty() {
        trades.push((0, 0));
    }
    let of_side = trades.into_iter().zip(content.sides.iter().cycle());
    of_side.map(|(trade, is_buy)| trade_row(content, instrument, trade, *is_buy, spelling)).collect()
}

fn trade_row(
    content: &MessageContent,
    instrument: &FeedInstrument,
    (price, quantity): (i64, i64),
    is_buy: bool,
    spelling: &mut JsonSpelling,
) -> String {
    let fields = [
        ("instId", spelling.text(&instrument.name)),
        ("tradeId", spelling.text(&content.numbers[1].to_string())),
        ("px", spelling.text(&decimal_text(price.into(), instrument.price_decimals))),
        ("sz", spelling.text(&decimal_text(quantity.into(), instrument.quantity_decimals))),
        ("side", spelling.text(if is_buy { "buy" } else { "sell" })),
        ("ts", spelling.text(&content.ms.to_string())),
        ("count", spelling.text("1")),
        ("source", spelling.text("0")),
        ("seqId", content.numbers[0].to_string()),
    ];
    spelling.object(&fields)
}

fn write_levels(levels: &[(i64, i64)], instrument: &FeedInstrument, spelling: &mut JsonSpelling) -> String {
    let mut written = Vec::new();
    for (price, quantity) in levels {
        let texts = [
            spelling.text(&decimal_text((*price).into(), instrument.price_decimals)),
            spelling.text(&decimal_text((*quantity).into(), instrument.quantity_decimals)),
            spelling.text("0"),
            spelling.text("2"),
        ];
        written.push(spelling.array(&texts));
    }
    spelling.array(&written)
}

proptest! {
    #[test]
    fn every_spelling_of_a_frame_gives_the_same_messages(content in content(), seed in any::<u64>()) {
        let instruments = instruments();
        let instrument = &instruments[content.instrument];
        let usual = write(&content, instrument, &mut JsonSpelling { random: None });
        let unusual = write(&content, instrument, &mut JsonSpelling { random: Some(seed) });
        let mut parser = OkxParser::new(&instruments).expect("the instruments are in order");
        let scanned = messages_of(&mut parser, Frame::Text(usual.as_bytes()));
        prop_assert_eq!(parser.unusual_frames(), 0, "the scan takes {}", usual);
        let read = messages_of(&mut parser, Frame::Text(unusual.as_bytes()));
        prop_assert_eq!(parser.unusual_frames(), 1, "the scan leaves {}", unusual);
        prop_assert!(!scanned.is_empty());
        prop_assert_eq!(scanned, read);
    }
}
