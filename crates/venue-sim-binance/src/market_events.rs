//! Messages of the market streams.

use tickpath_market::{Side, TopOfBook};
use tickpath_venue_sim_web::PublicTrade;

use crate::decimals::{eight_decimals, price_text, quantity_text, value_text};
use crate::depth_updates::DepthUpdate;
use crate::json::OrderedObject;
use crate::market_data::levels;
use crate::spot::SpotMarket;
use crate::stamps::StampUnit;
use crate::tape::TradeTape;

/// Time and form of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventStamp {
    pub(crate) now_ns: u64,
    pub(crate) unit: StampUnit,
}

/// Returns the best bid and offer.
pub(crate) fn quote(symbol: &str, sequence: u64, best: &TopOfBook) -> String {
    OrderedObject::new()
        .plain("u", sequence)
        .text("s", symbol)
        .text("b", &price_text(best.bid))
        .text("B", &quantity_text(best.bid_quantity))
        .text("a", &price_text(best.ask))
        .text("A", &quantity_text(best.ask_quantity))
        .finish()
}

/// Returns a trade.
pub(crate) fn trade(symbol: &str, trade: &PublicTrade, stamp: EventStamp) -> String {
    let object = begin("trade", symbol, stamp).plain("t", trade.trade_id);
    end_trade(amounts(object, trade), trade, stamp)
}

/// Returns a trade as an aggregated one, which has no other trades in it.
pub(crate) fn aggregated_trade(symbol: &str, trade: &PublicTrade, stamp: EventStamp) -> String {
    let object = begin("aggTrade", symbol, stamp).plain("a", trade.trade_id);
    let object = amounts(object, trade).plain("f", trade.trade_id).plain("l", trade.trade_id);
    end_trade(object, trade, stamp)
}

/// Returns changes of a book.
pub(crate) fn depth_update(symbol: &str, update: &DepthUpdate, stamp: EventStamp) -> String {
    let [bids, asks] = &update.sides;
    begin("depthUpdate", symbol, stamp)
        .plain("U", update.first)
        .plain("u", update.last)
        .raw("b", &levels(bids.iter().copied()))
        .raw("a", &levels(asks.iter().copied()))
        .finish()
}

/// Returns the statistics of the day.
pub(crate) fn ticker(spot: &SpotMarket, index: usize, stamp: EventStamp) -> String {
    let (tape, best) = (&spot.tapes[index], spot.best(index));
    let object = begin("24hrTicker", &spot.instrument(index).name, stamp)
        .text("p", &eight_decimals(tape.change()))
        .text("P", &tape.change_percent())
        .text("w", &eight_decimals(tape.average()))
        .text("x", &price_text(tape.open))
        .text("c", &price_text(tape.last))
        .text("Q", &quantity_text(tape.last_quantity))
        .text("b", &price_text(best.bid))
        .text("B", &quantity_text(best.bid_quantity))
        .text("a", &price_text(best.ask))
        .text("A", &quantity_text(best.ask_quantity));
    let object = prices_and_volume(object, tape)
        .plain("O", stamp.unit.of(tape.opened_ns))
        .plain("C", stamp.unit.of(stamp.now_ns));
    let object = match tape.ids {
        Some((first, last)) => object.plain("F", first).plain("L", last),
        None => object.plain("F", -1).plain("L", -1),
    };
    object.plain("n", tape.count).finish()
}

/// Returns the prices and the volume of the day.
pub(crate) fn mini_ticker(spot: &SpotMarket, index: usize, stamp: EventStamp) -> String {
    let tape = &spot.tapes[index];
    let object = begin("24hrMiniTicker", &spot.instrument(index).name, stamp).text("c", &price_text(tape.last));
    prices_and_volume(object, tape).finish()
}

fn begin(name: &str, symbol: &str, stamp: EventStamp) -> OrderedObject {
    OrderedObject::new().text("e", name).plain("E", stamp.unit.of(stamp.now_ns)).text("s", symbol)
}

fn amounts(object: OrderedObject, trade: &PublicTrade) -> OrderedObject {
    object.text("p", &price_text(trade.price)).text("q", &quantity_text(trade.quantity))
}

fn end_trade(object: OrderedObject, trade: &PublicTrade, stamp: EventStamp) -> String {
    object.plain("T", stamp.unit.of(trade.at_ns)).plain("m", trade.side == Side::Sell).plain("M", true).finish()
}

fn prices_and_volume(object: OrderedObject, tape: &TradeTape) -> OrderedObject {
    object
        .text("o", &price_text(tape.open))
        .text("h", &price_text(tape.high))
        .text("l", &price_text(tape.low))
        .text("v", &eight_decimals(tape.volume))
        .text("q", &value_text(tape.value))
}
