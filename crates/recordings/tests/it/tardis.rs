//! CSV of tardis.dev.

use tickpath_market::{BookLevel, Side};
use tickpath_recordings::MarketMessage;

use crate::files::{gzip, read};

const QUOTES: &str = "\
exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount
binance-futures,BTCUSDT,1704067200000000,1704067200003001,12.5,61800.2,61800.1,3
binance-futures,BTCUSDT,1704067200001000,1704067200004001,,,61800.1,3
binance-futures,ETHUSDT,1704067200002000,1704067200005001,4,2200.11,2200.1,7.25
binance-futures,BTCUSDT,1704067200003000,later,12.5,61800.2,61800.1,3
binance-futures,BTCUSDT,1704067200004000,1704067200004500,12.5,9.9e-7,9.8e-7,3
";

const TRADES: &str = "\
exchange,symbol,timestamp,local_timestamp,id,side,price,amount
bitmex,XBTUSD,1585699202957000,1585699203957000,282a0445-0e3a-abeb-f403-11003204ea1b,buy,6425.5,12
binance,BTCUSDT,1585699203957000,1585699204957000,3445374963,sell,6425,0.00145
binance,BTCUSDT,1585699203957000,1585699204957000,3445374964,unknown,6425,1
binance,BTCUSDT,1585699203957000,1585699204957000,3445374965,up,6425,1
";

const BOOK: &str = "\
exchange,symbol,timestamp,local_timestamp,is_snapshot,side,price,amount
x,A,1000,2000,true,ask,100.2,3
x,A,1000,2000,true,bid,100.1,5
x,A,3000,4000,false,bid,100.1,0
x,A,3000,4000,false,ask,100.3,1
x,A,3000,4001,false,ask,100.3,2
x,B,3000,4001,true,ask,7,2
x,A,5000,6000,true,bid,100,1
";

#[test]
fn quotes_become_best_bids_and_offers() {
    for bytes in [QUOTES.as_bytes().to_vec(), gzip(QUOTES.as_bytes()), QUOTES.replace('\n', "\r\n").into_bytes()] {
        let read = read("quotes.csv", &bytes).unwrap();
        let names: Vec<&str> = read.messages.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, ["BTCUSDT", "ETHUSDT", "BTCUSDT"]);
        // A time that goes back becomes the latest one.
        assert_eq!(read.times(), [1_704_067_200_003_001_000, 1_704_067_200_005_001_000, 1_704_067_200_005_001_000]);
        assert_eq!((read.counts.rows, read.counts.tops, read.counts.bad, read.counts.out_of_order), (6, 3, 1, 1));
        assert_eq!(read.counts.skipped.get("one-sided quotes"), Some(&1));
        assert_eq!(read.counts.bad_rows[0].0, 5, "{}", read.counts);
        let [MarketMessage::Top(first), MarketMessage::Top(other), MarketMessage::Top(small)] = read.plain()[..] else {
            panic!("{read:?}")
        };
        assert_eq!([first.bid.to_string(), first.ask.to_string()], ["61800.1", "61800.2"]);
        assert_eq!([first.bid_quantity.to_string(), first.ask_quantity.to_string()], ["3", "12.5"]);
        assert_eq!((first.event_ns, first.symbol.0, other.symbol.0), (1_704_067_200_000_000_000, 0, 1));
        assert_eq!((small.bid.0, small.ask.0), (98, 99));
    }
}

#[test]
fn trades_have_their_takers_and_their_numbers() {
    let read = read("trades.csv", TRADES.as_bytes()).unwrap();
    let trades: Vec<(u64, u8)> = read
        .plain()
        .iter()
        .map(|message| match message {
            MarketMessage::Trade(trade) => (trade.trade_id, trade.aggressor),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(trades, [(0, Side::Buy.code()), (3_445_374_963, Side::Sell.code()), (3_445_374_964, 0)]);
    assert!(read.counts.to_string().contains("line 5: 'up' is none of buy, sell, unknown"), "{}", read.counts);
}

#[test]
fn liquidations_are_not_taken_for_trades() {
    let error = read("binance-futures_liquidations_2024-01-01_BTCUSDT.csv", TRADES.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("no known format"), "{error}");
}

#[test]
fn rows_with_the_same_times_are_one_message_of_a_book() {
    let read = read("book.csv", BOOK.as_bytes()).unwrap();
    let levels: Vec<(String, u8, u8)> = read
        .plain()
        .iter()
        .map(|message| match message {
            MarketMessage::Level(level) => (level.price.to_string(), level.side, level.flags),
            other => panic!("{other:?}"),
        })
        .collect();
    let (bid, ask) = (Side::Buy.code(), Side::Sell.code());
    let (first, last) = (BookLevel::SNAPSHOT, BookLevel::LAST);
    let expected = [
        ("100.2", ask, first),
        ("100.1", bid, last),
        ("100.1", bid, 0),
        ("100.3", ask, last),
        ("100.3", ask, last),
        ("7", ask, first | last),
        ("100", bid, first | last),
    ];
    let expected: Vec<(String, u8, u8)> =
        expected.into_iter().map(|(price, side, flags)| (price.to_owned(), side, flags)).collect();
    assert_eq!(levels, expected);
    assert_eq!(read.times(), [2_000_000, 2_000_000, 4_000_000, 4_000_000, 4_001_000, 4_001_000, 6_000_000]);
}

#[test]
fn quoted_cells_and_other_orders_of_columns_are_read() {
    let text = "local_timestamp,symbol,\"timestamp\",price,amount,side,id\n\
                2,BTCUSDT,1,\"6425.5\",\"1\",\"buy\",7\n\
                4,\"BTC,USDT\",3,6425,1,sell,\"8\"\n\
                6,\"open,5,6425,1,sell,9\n";
    let read = read("trades.csv", text.as_bytes()).unwrap();
    let names: Vec<&str> = read.messages.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!((names, read.counts.bad), (vec!["BTCUSDT", "BTC,USDT"], 1));
}
