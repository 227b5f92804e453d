//! Frames as OKX documents them, the instruments of the tests, and messages as values that outlive their frame.

use tickpath_feed::{BookUpdate, FeedInstrument, Frame, FrameError, FrameParser, LevelChange, MarketEvent};
use tickpath_feed_okx::OkxParser;
use tickpath_market::{Price, Quantity, Side, SymbolId, TopOfBook, Trade};

/// A quote, from the page of the order book channel.
pub const QUOTE: &str = r#"{"arg":{"channel":"bbo-tbt","instId":"BCH-USDT-SWAP"},"data":[{"asks":[["111.06","55154","0","2"]],"bids":[["111.05","57745","0","2"]],"ts":"1670324386802","seqId":363996337}]}"#;
/// A trade, from the page of the trades channel.
pub const TRADE: &str = r#"{"arg":{"channel":"trades","instId":"BTC-USDT"},"data":[{"instId":"BTC-USDT","tradeId":"130639474","px":"42219.9","sz":"0.12060306","side":"buy","ts":"1630048897897","count":"3","source":"0","seqId":1234}]}"#;
/// Two levels of each side of a snapshot, from the page of the order book channel.
pub const SNAPSHOT: &str = r#"{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"snapshot","data":[{"asks":[["8476.98","415","0","13"],["8477","7","0","2"]],"bids":[["8476.97","256","0","12"],["8475.55","101","0","1"]],"ts":"1597026383085","checksum":0,"prevSeqId":-1,"seqId":123456}]}"#;
/// An update, with the sequence numbers in the order of OKX's servers.
pub const UPDATE: &str = r#"{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"update","data":[{"asks":[["8477","0","0","0"]],"bids":[],"ts":"1597026383185","checksum":0,"seqId":123457,"prevSeqId":123456}]}"#;
/// The notice before an upgrade, from the page of notifications.
pub const UPGRADE_NOTICE: &str = r#"{"event":"notice","code":"64008","msg":"The connection will soon be closed for a service upgrade. Please reconnect.","connId":"a4d3ae55"}"#;

/// Instruments of the frames. The first has prices of 2 decimals and quantities of 8, the second of 2 and none.
pub fn instruments() -> Vec<FeedInstrument> {
    [("BTC-USDT", 1, 2, 8, 3), ("BCH-USDT-SWAP", 2, 2, 0, 211_874), ("BTC-USD-260928-79000-C", 3, 4, 1, 0)]
        .map(|(name, symbol, price_decimals, quantity_decimals, code)| FeedInstrument {
            name: name.to_owned(),
            symbol: SymbolId(symbol),
            price_decimals,
            quantity_decimals,
            code,
        })
        .to_vec()
}

pub fn parser() -> OkxParser {
    OkxParser::new(&instruments()).expect("the instruments are in order")
}

/// A message that owns its parts.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnedMessage {
    Quote(u64, TopOfBook),
    Trade(Trade),
    Book(OwnedBook),
    Maintenance,
}

/// A book that owns its levels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OwnedBook {
    pub symbol: SymbolId,
    pub is_snapshot: bool,
    pub may_overlap: bool,
    pub previous: u64,
    pub sequence: u64,
    pub event_ns: u64,
    pub levels: Vec<LevelChange>,
}

impl From<MarketEvent<'_>> for OwnedMessage {
    fn from(event: MarketEvent<'_>) -> Self {
        match event {
            MarketEvent::Quote { sequence, quote } => Self::Quote(sequence, *quote),
            MarketEvent::Trade(trade) => Self::Trade(*trade),
            MarketEvent::Maintenance => Self::Maintenance,
            MarketEvent::Book(BookUpdate {
                symbol,
                is_snapshot,
                may_overlap,
                previous,
                sequence,
                event_ns,
                levels,
            }) => {
                let levels = levels.to_vec();
                Self::Book(OwnedBook { symbol, is_snapshot, may_overlap, previous, sequence, event_ns, levels })
            }
        }
    }
}

/// Returns the messages of a frame, and the result of its parser.
pub fn read(parser: &mut OkxParser, frame: Frame<'_>) -> (Vec<OwnedMessage>, Result<(), FrameError>) {
    let mut messages = Vec::new();
    let result = parser.parse(frame, &mut |event| messages.push(event.into()));
    (messages, result)
}

/// Returns the messages of a good frame.
pub fn messages_of(parser: &mut OkxParser, frame: Frame<'_>) -> Vec<OwnedMessage> {
    let (messages, result) = read(parser, frame);
    assert_eq!(result, Ok(()), "{frame:?}");
    messages
}

pub fn ask(price: i64, quantity: i64) -> LevelChange {
    LevelChange { side: Side::Sell, price: Price(price), quantity: Quantity(quantity) }
}

pub fn bid(price: i64, quantity: i64) -> LevelChange {
    LevelChange { side: Side::Buy, price: Price(price), quantity: Quantity(quantity) }
}

/// A quote of the second instrument of [`instruments`].
pub fn swap_quote(bid: [i64; 2], ask: [i64; 2], event_ns: u64) -> TopOfBook {
    TopOfBook {
        bid: Price(bid[0]),
        bid_quantity: Quantity(bid[1]),
        ask: Price(ask[0]),
        ask_quantity: Quantity(ask[1]),
        event_ns,
        symbol: SymbolId(2),
        wire_age_ns: 0,
    }
}
