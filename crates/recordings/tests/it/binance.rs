//! Files of data.binance.vision.

use tickpath_market::Side;
use tickpath_recordings::{DataFormat, MarketMessage};

use crate::files::{gzip, read, read_as, zip};

/// Names of the columns of each data type, and a row of each.
const TRADES: (&str, &str) =
    ("id,price,qty,quote_qty,time,is_buyer_maker", "28457,4.00000100,12.00000000,48.00,1499865549590,true");
const AGG_TRADES: (&str, &str) = (
    "agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker",
    "26129,0.01633102,4.70443515,27781,27781,1498793709153,false",
);
const BOOK_TICKER: (&str, &str) = (
    "update_id,best_bid_price,best_bid_qty,best_ask_price,best_ask_qty,transaction_time,event_time",
    "3062820799546,26.67000000,172.00000000,26.67100000,582.00000000,1689379200098,1689379200104",
);

#[test]
fn files_with_and_without_names_of_columns_are_the_same() {
    for ((names, row), kind, format, utc_ns) in [
        (TRADES, "trades", DataFormat::BinanceTrades, 1_499_865_549_590_000_000),
        (AGG_TRADES, "aggTrades", DataFormat::BinanceAggTrades, 1_498_793_709_153_000_000),
        (BOOK_TICKER, "bookTicker", DataFormat::BinanceBookTicker, 1_689_379_200_104_000_000),
    ] {
        let name = format!("BTCUSD_PERP-{kind}-2024-01-01");
        let (with, without) = (format!("{names}\n{row}\n"), format!("{row}\n"));
        let csv = format!("{name}.csv");
        let expected = read(&csv, with.as_bytes()).unwrap();
        assert_eq!(expected.times(), [utc_ns]);
        assert_eq!(expected.messages[0].1, "BTCUSD_PERP");
        let packed = zip(&[(csv.as_str(), without.as_bytes())]);
        for (name, bytes, format) in [
            (csv.clone(), without.clone().into_bytes(), None),
            (format!("{csv}.gz"), gzip(without.as_bytes()), None),
            (format!("{name}.zip"), packed, None),
            (csv.clone(), with.clone().into_bytes(), Some(format)),
        ] {
            assert_eq!(read_as(&name, &bytes, format).unwrap().messages, expected.messages, "{name}");
        }
    }
}

#[test]
fn the_size_of_a_time_shows_its_unit() {
    for (time, utc_ns) in [
        ("1735689600010", 1_735_689_600_010_000_000),
        ("1735689600010866", 1_735_689_600_010_866_000),
        ("1735689600010866001", 1_735_689_600_010_866_001),
    ] {
        let row = format!("1,0.2,50,10,{time},True,True\n");
        let read = read("ABC-trades-2025-01-01.csv", row.as_bytes()).unwrap();
        let [MarketMessage::Trade(trade)] = read.plain()[..] else { panic!("{read:?}") };
        assert_eq!((read.times(), trade.event_ns), (vec![utc_ns], utc_ns));
        assert_eq!(trade.aggressor, Side::Sell.code());
    }
}

#[test]
fn a_file_without_its_usual_name_needs_a_format() {
    let row = format!("{}\n", TRADES.1);
    let error = read("mine.csv", row.as_bytes()).unwrap_err().to_string();
    for word in ["mine.csv", "28457,4.00000100", "--format", "tardis-quotes", "dbn"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    let read = read_as("mine.csv", row.as_bytes(), Some(DataFormat::BinanceTrades)).unwrap();
    assert_eq!(read.messages[0].1, "MINE");
    for format in DataFormat::ALL {
        assert_eq!(format.name().parse(), Ok(format));
        assert_eq!(
            format.has_receive_times(),
            ![DataFormat::BinanceTrades, DataFormat::BinanceAggTrades, DataFormat::BinanceBookTicker].contains(&format)
        );
    }
    assert!("tardis".parse::<DataFormat>().unwrap_err().to_string().contains("json-lines"));
}
