//! Databento's binary encoding, written by its own crate.

use std::ffi::c_char;

use dbn::encode::{DbnEncoder, EncodeRecord};
use dbn::{
    BboMsg, BidAskPair, MboMsg, Mbp1Msg, Metadata, RecordHeader, SType, Schema, SymbolMappingMsg, TradeMsg,
    UNDEF_PRICE, rtype,
};
use tickpath_market::{Side, TopOfBook, Trade};
use tickpath_recordings::MarketMessage;

use crate::files::read;

const EVENT_NS: u64 = 1_704_067_200_000_000_001;
const RECEIVE_NS: u64 = 1_704_067_200_000_000_101;
const INSTRUMENT: u32 = 5_482;

fn metadata(schema: Schema) -> Metadata {
    let builder = Metadata::builder().dataset("GLBX.MDP3").schema(Some(schema)).start(EVENT_NS);
    builder.stype_in(Some(SType::RawSymbol)).stype_out(SType::InstrumentId).build()
}

fn trade(price: i64, side: u8) -> TradeMsg {
    TradeMsg {
        hd: RecordHeader::new::<TradeMsg>(rtype::MBP_0, 1, INSTRUMENT, EVENT_NS),
        price,
        size: 3,
        action: b'T' as c_char,
        side: side as c_char,
        ts_recv: RECEIVE_NS,
        sequence: 77,
        ..TradeMsg::default()
    }
}

fn quote(action: u8, bid_px: i64) -> Mbp1Msg {
    let level = BidAskPair { bid_px, ask_px: 61_800_200_000_000, bid_sz: 2, ask_sz: 5, bid_ct: 1, ask_ct: 1 };
    Mbp1Msg {
        hd: RecordHeader::new::<Mbp1Msg>(rtype::MBP_1, 1, INSTRUMENT, EVENT_NS),
        price: 61_800_100_000_000,
        size: 1,
        action: action as c_char,
        side: b'B' as c_char,
        ts_recv: RECEIVE_NS,
        sequence: 78,
        levels: [level],
        ..Mbp1Msg::default()
    }
}

/// Returns a file with a mapping of the instrument and these records, plain and compressed.
fn files(schema: Schema, trades: &[TradeMsg], quotes: &[Mbp1Msg]) -> [Vec<u8>; 2] {
    let (mut plain, mut compressed) = (Vec::new(), Vec::new());
    let metadata = metadata(schema);
    write(&mut DbnEncoder::new(&mut plain, &metadata).expect("a vector takes all"), trades, quotes);
    // The encoder ends its stream when it is dropped.
    write(&mut DbnEncoder::with_zstd(&mut compressed, &metadata).expect("a vector takes all"), trades, quotes);
    [plain, compressed]
}

fn write(encoder: &mut impl EncodeRecord, trades: &[TradeMsg], quotes: &[Mbp1Msg]) {
    let mapping =
        SymbolMappingMsg::new(INSTRUMENT, 0, SType::RawSymbol, "ESH4", SType::RawSymbol, "ESH4", 0, u64::MAX - 1);
    encoder.encode_record(&mapping.expect("the names are short")).expect("a vector takes all");
    trades.iter().for_each(|trade| encoder.encode_record(trade).expect("a vector takes all"));
    quotes.iter().for_each(|quote| encoder.encode_record(quote).expect("a vector takes all"));
}

#[test]
fn records_become_quotes_and_trades() {
    let trades = [trade(61_800_100_000_000, b'A'), trade(61_800_100_000_001, b'A')];
    let quotes = [(b'T', 61_800_100_000_000), (b'A', 61_800_100_000_000), (b'A', UNDEF_PRICE)];
    let files = files(Schema::Tbbo, &trades, &quotes.map(|(action, bid_px)| quote(action, bid_px)));
    for (name, bytes) in ["a.dbn", "a.dbn.zst"].into_iter().zip(files) {
        let read = read(name, &bytes).unwrap();
        assert!(
            read.messages.iter().all(|(utc_ns, name, _)| (*utc_ns, name.as_str()) == (RECEIVE_NS, "ESH4")),
            "{read:?}"
        );
        let first = Trade {
            price: "61800.1".parse().unwrap(),
            quantity: "3".parse().unwrap(),
            trade_id: 77,
            event_ns: EVENT_NS,
            aggressor: Side::Sell.code(),
            ..Trade::default()
        };
        let top = TopOfBook {
            bid: "61800.1".parse().unwrap(),
            bid_quantity: "2".parse().unwrap(),
            ask: "61800.2".parse().unwrap(),
            ask_quantity: "5".parse().unwrap(),
            event_ns: EVENT_NS,
            ..TopOfBook::default()
        };
        let second = Trade { quantity: "1".parse().unwrap(), trade_id: 78, aggressor: Side::Buy.code(), ..first };
        let (first, top, second) = (MarketMessage::Trade(first), MarketMessage::Top(top), MarketMessage::Trade(second));
        assert_eq!(read.plain(), [first, top, second, top]);
        let counts = &read.counts;
        assert_eq!((counts.rows, counts.bad, counts.truncated), (6, 1, false), "{counts}");
        assert_eq!(counts.skipped.get("symbol-mapping"), Some(&1));
        assert_eq!(counts.skipped.get("one-sided quotes"), Some(&1));
        assert!(counts.to_string().contains("record 3: the price 61800100000001"), "{counts}");
    }
}

#[test]
fn records_of_other_schemas_are_counted_by_their_names() {
    let mut bytes = Vec::new();
    {
        let mut encoder = DbnEncoder::new(&mut bytes, &metadata(Schema::Mbo)).unwrap();
        let order =
            MboMsg { hd: RecordHeader::new::<MboMsg>(rtype::MBO, 1, INSTRUMENT, EVENT_NS), ..MboMsg::default() };
        encoder.encode_record(&order).unwrap();
        let level = quote(b'A', 61_800_100_000_000).levels;
        let hd = RecordHeader::new::<BboMsg>(rtype::BBO_1S, 1, INSTRUMENT, EVENT_NS);
        let bbo = BboMsg { hd, ts_recv: RECEIVE_NS, levels: level, ..BboMsg::default_for_schema(Schema::Bbo1S) };
        encoder.encode_record(&bbo).unwrap();
    }
    let read = read("b.dbn", &bytes).unwrap();
    assert_eq!((read.counts.skipped.get("mbo"), read.counts.tops), (Some(&1), 1));
    // Without a mapping the instrument has its number for a name.
    assert_eq!(read.messages[0].1, INSTRUMENT.to_string());
}

#[test]
fn a_file_that_is_cut_off_is_not_taken_for_whole() {
    let trades: Vec<TradeMsg> = (1..=2_000).map(|number| trade(number * 10, b'N')).collect();
    let [plain, compressed] = files(Schema::Trades, &trades, &[]);
    let record_bytes = size_of::<TradeMsg>();
    for cut in [1, record_bytes - 1, record_bytes + 1] {
        let read = read("a.dbn", &plain[..plain.len() - cut]).unwrap();
        assert!(read.counts.truncated, "{cut}");
        assert_eq!(read.messages.len(), 2_000 - cut.div_ceil(record_bytes));
    }
    // Without the last record the file is whole: nothing in it counts the records.
    assert!(!read("a.dbn", &plain[..plain.len() - record_bytes]).unwrap().counts.truncated);
    for cut in [1, compressed.len() / 2] {
        match read("a.dbn.zst", &compressed[..compressed.len() - cut]) {
            Ok(read) => assert!(read.counts.truncated, "{cut}"),
            Err(error) => assert!(error.to_string().contains("a.dbn.zst"), "{error}"),
        }
    }
    assert!(read("a.dbn", &plain[..50]).is_err());
}
