//! Instruments of the tests, documented messages, and the events of a parser as values that can be compared.

use tickpath_feed::{FeedInstrument, Frame, FrameError, FrameParser, LevelChange, MarketEvent};
use tickpath_feed_binance::{BinanceParser, TimeUnit};
use tickpath_market::{Price, Quantity, Side, SymbolId, TopOfBook, Trade};

/// A future with prices of one decimal and quantities of three.
pub const BTCUSDT: SymbolId = SymbolId(1);
/// A spot pair with eight decimals.
pub const BNBBTC: SymbolId = SymbolId(2);
/// A spot pair with eight decimals.
pub const BNBUSDT: SymbolId = SymbolId(3);

/// A message of each kind and market, as the exchange documents or sends it.
pub const MESSAGES: &[&str] = &[
    r#"{"u":400900217,"s":"BNBUSDT","b":"25.35190000","B":"31.21000000","a":"25.36520000","A":"40.66000000"}"#,
    r#"{"e":"trade","E":1672515782136,"s":"BNBBTC","t":12345,"p":"0.001","q":"100","T":1672515782136,"m":true,"M":true}"#,
    r#"{"e":"depthUpdate","E":1672515782136,"s":"BNBBTC","U":157,"u":160,"b":[["0.0024","10"]],"a":[["0.0026","100"]]}"#,
    r#"{"e":"bookTicker","u":5123107839020,"s":"BTCUSDT","b":"61800.20","B":"2.507","a":"61800.30","A":"2.510","T":1723161256313,"E":1723161256314}"#,
    r#"{"e":"bookTicker","u":10,"s":"BTCUSDT","ps":"BTCUSDT","b":"59546.40","B":"6.582","a":"59546.50","A":"10.697","T":1782801379879,"E":1782801379880,"st":1}"#,
    r#"{"e":"trade","E":1723161256322,"T":1723161256321,"s":"BTCUSDT","t":5266583935,"p":"61800.30","q":"0.006","X":"MARKET","m":false}"#,
    r#"{"e":"trade","E":1785671500407,"T":1785671500406,"s":"BTCUSDT","t":7947131392,"p":"63105.80","q":"0.030","X":"RPI","m":true,"st":1}"#,
    r#"{"e":"aggTrade","E":123456789,"s":"BTCUSDT","a":5933014,"p":"0.1","q":"100","nq":"100","f":100,"l":105,"T":123456785,"m":true}"#,
    r#"{"e":"aggTrade","E":1786171884624,"a":3404749954,"s":"BTCUSDT","p":"64990.90","q":"0.002","nq":"0.002","f":7960913511,"l":7960913511,"T":1786171884471,"m":true,"st":1}"#,
    r#"{"e":"depthUpdate","E":123456789,"T":123456788,"s":"BTCUSDT","U":157,"u":160,"pu":149,"b":[["0.2","10"],["0.1","0"]],"a":[]}"#,
    r#"{"e":"depthUpdate","E":1786742884159,"T":1786742884158,"s":"BTCUSDT","ps":"BTCUSDT","U":11,"u":14,"pu":9,"b":[],"a":[["0.3","1.5"]],"st":1}"#,
];

/// An answer of the REST interface, in the envelope that the feed gives it.
pub const SNAPSHOT: &str = r#"{"stream":"btcusdt@depthSnapshot","data":{"lastUpdateId":1027024,"E":1589436922972,"T":1589436922959,"bids":[["4.00000000","431.00000000"]],"asks":[["4.20000000","12.00000000"]]}}"#;

/// A message of a parser, which owns its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Quote { sequence: u64, quote: TopOfBook },
    Trade(Trade),
    Book(SeenBook),
    Maintenance,
}

/// A book update, which owns its levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenBook {
    pub symbol: SymbolId,
    pub is_snapshot: bool,
    pub may_overlap: bool,
    pub previous: u64,
    pub sequence: u64,
    pub event_ns: u64,
    pub levels: Vec<LevelChange>,
}

impl Seen {
    /// Makes a quote of bid, its quantity, offer and its quantity.
    pub fn quote(symbol: SymbolId, sequence: u64, amounts: [i64; 4], event_ns: u64) -> Self {
        let [bid, bid_quantity, ask, ask_quantity] = amounts;
        let quote = TopOfBook {
            bid: Price(bid),
            bid_quantity: Quantity(bid_quantity),
            ask: Price(ask),
            ask_quantity: Quantity(ask_quantity),
            event_ns,
            symbol,
            wire_age_ns: 0,
        };
        Self::Quote { sequence, quote }
    }

    /// Makes a trade of price and quantity.
    pub fn trade(symbol: SymbolId, trade_id: u64, amounts: [i64; 2], event_ns: u64, aggressor: Side) -> Self {
        let [price, quantity] = amounts;
        Self::Trade(Trade {
            price: Price(price),
            quantity: Quantity(quantity),
            trade_id,
            event_ns,
            symbol,
            aggressor: aggressor.code(),
            reserved: [0; 3],
        })
    }

    /// Makes an update of a book.
    pub fn update(symbol: SymbolId, previous: u64, sequence: u64, event_ns: u64, levels: &[(Side, i64, i64)]) -> Self {
        let levels = levels.iter().map(|level| level_of(*level)).collect();
        Self::Book(SeenBook { symbol, is_snapshot: false, may_overlap: false, previous, sequence, event_ns, levels })
    }

    /// Makes a snapshot of a book.
    pub fn snapshot(symbol: SymbolId, sequence: u64, event_ns: u64, levels: &[(Side, i64, i64)]) -> Self {
        let levels = levels.iter().map(|level| level_of(*level)).collect();
        Self::Book(SeenBook { symbol, is_snapshot: true, may_overlap: true, previous: 0, sequence, event_ns, levels })
    }
}

impl From<MarketEvent<'_>> for Seen {
    fn from(event: MarketEvent<'_>) -> Self {
        match event {
            MarketEvent::Quote { sequence, quote } => Self::Quote { sequence, quote: *quote },
            MarketEvent::Trade(trade) => Self::Trade(*trade),
            MarketEvent::Book(book) => Self::Book(SeenBook {
                symbol: book.symbol,
                is_snapshot: book.is_snapshot,
                may_overlap: book.may_overlap,
                previous: book.previous,
                sequence: book.sequence,
                event_ns: book.event_ns,
                levels: book.levels.to_vec(),
            }),
            MarketEvent::Maintenance => Self::Maintenance,
        }
    }
}

/// Returns an instrument.
pub fn instrument(name: &str, symbol: SymbolId, price_decimals: u8, quantity_decimals: u8) -> FeedInstrument {
    FeedInstrument { name: name.to_owned(), symbol, price_decimals, quantity_decimals, code: 0 }
}

/// Returns the instruments of the tests.
pub fn instruments() -> Vec<FeedInstrument> {
    vec![instrument("BTCUSDT", BTCUSDT, 1, 3), instrument("BNBBTC", BNBBTC, 8, 8), instrument("BNBUSDT", BNBUSDT, 8, 8)]
}

/// Returns a parser of these instruments.
pub fn parser(unit: TimeUnit) -> BinanceParser {
    BinanceParser::new(&instruments(), unit)
}

/// Returns the messages of a frame; a frame with an error has none.
pub fn parse(parser: &mut BinanceParser, frame: Frame<'_>) -> Result<Vec<Seen>, FrameError> {
    let mut seen = Vec::new();
    let read = parser.parse(frame, &mut |event| seen.push(Seen::from(event)));
    assert!(read.is_ok() || seen.is_empty(), "half of a frame was passed on: {seen:?}");
    read.map(|()| seen)
}

fn level_of((side, price, quantity): (Side, i64, i64)) -> LevelChange {
    LevelChange { side, price: Price(price), quantity: Quantity(quantity) }
}
