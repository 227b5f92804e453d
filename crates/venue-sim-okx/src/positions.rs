//! Positions in derivatives, with the price at which they were opened on average.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tickpath_market::{Price, Quantity, SCALE, Side};
use tickpath_venue_sim_web::{DeskFill, SimDesk, SimInstrument};

use crate::fields::{Row, amount_text, fill_row, ms_text, row};
use crate::instruments::{LEVERAGE, instrument_type};

/// Share of a position's value that OKX asks as margin to keep the position open, in parts of 1,000.
const MAINTENANCE_PER_MILLE: i128 = 4;

/// Fields that are empty for our positions.
const EMPTY: &[&str] = &[
    "availPos",
    "baseBal",
    "baseBorrowed",
    "baseInterest",
    "bePx",
    "bizRefId",
    "bizRefType",
    "clSpotInUseAmt",
    "deltaBS",
    "deltaPA",
    "gammaBS",
    "gammaPA",
    "hedgedPos",
    "interest",
    "liab",
    "liabCcy",
    "liqPx",
    "margin",
    "maxSpotInUseAmt",
    "mgnRatio",
    "nonSettleAvgPx",
    "optVal",
    "pendingCloseOrdLiabVal",
    "posCcy",
    "quoteBal",
    "quoteBorrowed",
    "quoteInterest",
    "settledPnl",
    "spotInUseAmt",
    "spotInUseCcy",
    "thetaBS",
    "thetaPA",
    "uplRatio",
    "uplRatioLastPx",
    "vegaBS",
    "vegaPA",
];
/// Fields that are zero for our positions.
const ZERO: &[&str] = &["fee", "fundingFee", "liqPenalty", "pnl", "realizedPnl"];

/// A position of an account.
#[derive(Debug, Clone, Default)]
struct HeldPosition {
    /// Contracts, in units of 10⁻⁸; negative if short.
    contracts: i128,
    /// Average price of the opening fills.
    entry: Price,
    opened_ns: u64,
    updated_ns: u64,
    trade_id: u64,
}

/// Positions of all accounts.
#[derive(Debug, Default)]
pub(crate) struct PositionBook {
    /// Positions by account and instrument. A closed one stays, with zero contracts.
    positions: BTreeMap<(usize, usize), HeldPosition>,
}

impl PositionBook {
    /// Applies a fill of a derivative.
    pub(crate) fn apply(&mut self, account: usize, fill: &DeskFill) {
        let position = self.positions.entry((account, fill.instrument)).or_default();
        let change = match fill.side {
            Side::Buy => i128::from(fill.quantity.0),
            Side::Sell => -i128::from(fill.quantity.0),
        };
        let (before, after) = (position.contracts, position.contracts + change);
        let is_opening = before.signum() * change.signum() >= 0;
        if is_opening {
            let value = i128::from(position.entry.0) * before.abs() + i128::from(fill.price.0) * change.abs();
            let entry = value.checked_div(after.abs()).and_then(|entry| i64::try_from(entry).ok());
            position.entry = entry.map_or(fill.price, Price);
        } else if after.signum() == change.signum() {
            position.entry = fill.price;
        }
        if before == 0 || after.signum() * before.signum() < 0 {
            position.opened_ns = fill.at_ns;
        }
        (position.contracts, position.updated_ns, position.trade_id) = (after, fill.at_ns, fill.trade_id);
    }

    /// Returns the rows of an account's positions that are wanted, by the instrument and whether the position is open.
    pub(crate) fn rows(
        &self,
        account: usize,
        sim: &SimDesk,
        now_ns: u64,
        is_wanted: impl Fn(usize, bool) -> bool,
    ) -> Vec<Value> {
        let of_account = self.positions.range((account, 0)..=(account, usize::MAX));
        let wanted = of_account.filter(|((_, index), position)| is_wanted(*index, position.contracts != 0));
        wanted.map(|((_, index), position)| position.row(*index, sim, now_ns)).collect()
    }
}

/// Returns a position as the channel of balances and positions has it.
pub(crate) fn short_row(row: &Value) -> Value {
    let names =
        ["posId", "tradeId", "instId", "instType", "mgnMode", "posSide", "pos", "ccy", "posCcy", "avgPx", "uTime"];
    let mut short: Row = names.iter().map(|name| ((*name).to_owned(), row[*name].clone())).collect();
    fill_row(&mut short, "", &["nonSettleAvgPx", "settledPnl"]);
    Value::Object(short)
}

impl HeldPosition {
    fn row(&self, index: usize, sim: &SimDesk, now_ns: u64) -> Value {
        let instrument = &sim.instruments()[index];
        let mark = middle_price(sim, index);
        let value = notional(instrument, mark, self.contracts.abs());
        let profit = notional(instrument, Price(mark.0 - self.entry.0), self.contracts);
        let leverage: i128 = LEVERAGE.parse().unwrap_or(1);
        let mut row: Row = row([
            ("instId", &instrument.name),
            ("instType", instrument_type(instrument)),
            ("mgnMode", "cross"),
            ("posId", &format!("{}{:06}", self.opened_ns / 1_000_000, index)),
            ("posSide", "net"),
            ("pos", &amount_text(self.contracts)),
            ("avgPx", &self.entry.to_string()),
            ("ccy", &instrument.quote),
            ("lever", LEVERAGE),
            ("markPx", &mark.to_string()),
            ("idxPx", &mark.to_string()),
            ("last", &mark.to_string()),
            ("usdPx", "1"),
            ("upl", &amount_text(profit)),
            ("uplLastPx", &amount_text(profit)),
            ("notionalUsd", &amount_text(value)),
            ("imr", &amount_text(value / leverage)),
            ("mmr", &amount_text(value * MAINTENANCE_PER_MILLE / 1_000)),
            ("adl", "1"),
            ("tradeId", &self.trade_id.to_string()),
            ("cTime", &ms_text(self.opened_ns)),
            ("uTime", &ms_text(self.updated_ns)),
            ("pTime", &ms_text(now_ns)),
        ]);
        fill_row(&mut row, "", EMPTY);
        fill_row(&mut row, "0", ZERO);
        row.insert("closeOrderAlgo".to_owned(), json!([]));
        Value::Object(row)
    }
}

/// Returns the value of a quantity of an instrument in its quote currency, in units of 10⁻⁸.
pub(crate) fn notional(instrument: &SimInstrument, price: Price, quantity: i128) -> i128 {
    let scale = i128::from(SCALE);
    let in_base = match instrument.is_derivative {
        true => quantity * i128::from(instrument.contract_value.0) / scale,
        false => quantity,
    };
    in_base * i128::from(price.0) / scale
}

/// Returns the middle between best bid and offer, or the only one of them.
pub(crate) fn middle_price(sim: &SimDesk, index: usize) -> Price {
    let best = sim.best(index);
    match (best.bid, best.ask) {
        (Price::ZERO, ask) => ask,
        (bid, Price::ZERO) => bid,
        (bid, ask) => Price(bid.0.midpoint(ask.0)),
    }
}

/// Returns a quantity's units.
pub(crate) fn units(quantity: Quantity) -> i128 {
    i128::from(quantity.0)
}
