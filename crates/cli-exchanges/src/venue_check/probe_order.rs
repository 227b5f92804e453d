//! The order of a check: as small as the exchange allows, and so far from the market that it does not trade.

use tickpath_feed::ListedInstrument;
use tickpath_market::{Price, Quantity, SCALE, SymbolId};
use tickpath_oms_server::settings::VenueInstrument;

/// Parts of the bid of the order's price at first, and after its amendment: 20 and 21 % below the market.
const PRICE_PERCENT: i128 = 80;
const AMENDED_PERCENT: i128 = 79;

/// The order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOrder {
    pub instrument: VenueInstrument,
    pub price: Price,
    /// Price after its amendment.
    pub amended: Price,
    pub quantity: Quantity,
}

impl ProbeOrder {
    /// Returns the order for an instrument with this bid.
    pub fn new(listed: &ListedInstrument, bid: Price) -> Result<Self, String> {
        let tick = units("tick size", &listed.tick_size)?.max(1);
        let lot = units("lot", &listed.lot)?.max(1);
        let part = |percent: i128| {
            let price = i128::from(bid.0) * percent / 100;
            i64::try_from(price / i128::from(tick) * i128::from(tick)).unwrap_or(0)
        };
        let price = part(PRICE_PERCENT);
        let amended = part(AMENDED_PERCENT).min(price - tick);
        if amended <= 0 {
            return Err(format!("a bid of {bid} leaves no price 20 % below it; check another --instrument"));
        }
        let smallest = units("smallest quantity", &listed.minimum_quantity)?;
        let by_value = quantity_worth(units("smallest notional", &listed.minimum_notional)?, amended);
        let needed = i128::from(smallest).max(by_value).max(1);
        let lots = (needed + i128::from(lot) - 1) / i128::from(lot);
        let quantity =
            i64::try_from(lots * i128::from(lot)).map_err(|_| "its smallest quantity is too large".to_owned())?;
        Ok(Self {
            instrument: VenueInstrument {
                name: listed.name.clone(),
                symbol: SymbolId(1),
                code: listed.code,
                lot: Quantity(lot),
            },
            price: Price(price),
            amended: Price(amended),
            quantity: Quantity(quantity),
        })
    }
}

/// Returns the smallest quantity that is worth a notional at a price, all in units of 10⁻⁸. Only spot has a smallest
/// notional, so that the contract size is 1.
fn quantity_worth(notional: i64, price: i64) -> i128 {
    let (scaled, price) = (i128::from(notional) * i128::from(SCALE), i128::from(price));
    (scaled + price - 1) / price
}

/// Reads a number of the exchange's list; zero if it has none.
fn units(what: &str, text: &str) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse::<Quantity>().map(|units| units.0).map_err(|why| format!("its {what} {text} is not usable: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(tick_size: &str, lot: &str, minimum: &str, notional: &str) -> ListedInstrument {
        ListedInstrument {
            name: "BTC-USDT".to_owned(),
            code: 7,
            tick_size: tick_size.to_owned(),
            lot: lot.to_owned(),
            minimum_quantity: minimum.to_owned(),
            minimum_notional: notional.to_owned(),
            ..ListedInstrument::default()
        }
    }

    #[test]
    fn the_order_is_on_the_grid_and_worth_enough_after_its_amendment() {
        for (one, bid, expected) in [
            (listed("0.1", "0.00000001", "0.00001", ""), "61800", "49440 48822 0.00001"),
            (listed("0.01", "0.00001", "0.00001", "5"), "61800", "49440 48822 0.00011"),
            (listed("1", "1", "1", ""), "7", "5 4 1"),
            (listed("0.5", "10", "15", ""), "101", "80.5 79.5 20"),
        ] {
            let order = ProbeOrder::new(&one, bid.parse().expect("a price")).expect("it has a price");
            assert_eq!(format!("{} {} {}", order.price, order.amended, order.quantity), expected, "of {one:?}");
        }
    }

    #[test]
    fn an_instrument_without_room_below_its_bid_is_refused() {
        let refused = ProbeOrder::new(&listed("1", "1", "1", ""), Price::from_whole(1)).expect_err("no price is left");
        assert!(refused.contains("--instrument"), "{refused}");
        let fine = ProbeOrder::new(&listed("0.0000000001", "1", "1", ""), Price::from_whole(1));
        assert!(fine.expect_err("the tick is too fine").contains("tick size"));
    }
}
