//! The state of the spot market: the desk, and what the exchange shows beside it. A request changes the desk, and the
//! desk's events become [`SpotEvent`]s, which wait here until they are sent.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{Price, Quantity, Side, TopOfBook};
use tickpath_venue_sim_web::{DeskEvent, DeskFill, DeskOrder, PublicTrade, SimDesk, SimInstrument};

use crate::codes::{ApiError, Code};
use crate::ledger::{Execution, OrderLedger, SpotOrder};
use crate::limits::RequestLimits;
use crate::stamps::StampUnit;
use crate::tape::TradeTape;

/// The spot market.
pub(crate) struct SpotMarket {
    pub(crate) desk: SimDesk,
    pub(crate) ledger: OrderLedger,
    /// By instrument.
    pub(crate) tapes: Vec<TradeTape>,
    pub(crate) limits: RequestLimits,
    pub(crate) fees: FeeRates,
    events: Vec<SpotEvent>,
    /// Id of the latest event of an order.
    executions: u64,
    /// Client ids that the exchange has made.
    names: u64,
    /// Matches that self-trade prevention has kept from trading.
    prevented: u64,
}

/// An event that clients learn of.
pub(crate) enum SpotEvent {
    /// An event of an order, with the order as it stands after it.
    Order(Execution, Box<SpotOrder>),
    /// The balances of these assets of an account may have changed.
    Balances(usize, BTreeSet<String>),
    /// The best bid or offer of an instrument may have changed.
    Quote(usize),
    /// A trade.
    Trade(PublicTrade),
}

/// The circumstances of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallContext {
    /// The exchange's time.
    pub(crate) now_ns: u64,
    /// Unit of times in the answer.
    pub(crate) unit: StampUnit,
}

/// Fee rates in answers, in 10⁻⁶ of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeeRates {
    /// Rate of an order that rests.
    pub maker_e6: i64,
    /// Rate of an order that trades at once.
    pub taker_e6: i64,
}

impl Default for FeeRates {
    /// Returns the exchange's standard rates: a thousandth each.
    fn default() -> Self {
        Self { maker_e6: 1_000, taker_e6: 1_000 }
    }
}

impl SpotMarket {
    pub(crate) fn new(mut desk: SimDesk, suspended: &[String], now_ns: u64) -> Self {
        suspended.iter().for_each(|name| desk.suspend(name, true));
        let tapes = desk.instruments().iter().map(|instrument| TradeTape::new(instrument, now_ns)).collect();
        Self {
            desk,
            ledger: OrderLedger::default(),
            tapes,
            limits: RequestLimits::new(),
            fees: FeeRates::default(),
            events: Vec::new(),
            executions: 0,
            names: 0,
            prevented: 0,
        }
    }

    /// Returns the index of a symbol.
    pub(crate) fn find(&self, symbol: &str) -> Result<usize, ApiError> {
        let found = self.desk.instruments().iter().position(|instrument| instrument.name == symbol);
        found.ok_or_else(|| Code::Symbol.error())
    }

    /// Returns an instrument by its index.
    pub(crate) fn instrument(&self, index: usize) -> &SimInstrument {
        &self.desk.instruments()[index]
    }

    /// Returns the best bid and offer of an instrument.
    pub(crate) fn best(&self, index: usize) -> TopOfBook {
        self.desk.best(index)
    }

    /// Returns the levels of one side of a book, the best first.
    pub(crate) fn levels(&self, index: usize, side: Side, count: usize) -> Vec<(Price, Quantity)> {
        self.desk.book(index, side).take(count).collect()
    }

    /// Makes a client id for a request that has none.
    pub(crate) fn make_name(&mut self) -> String {
        self.names += 1;
        format!("sim{:019}", self.names)
    }

    /// Numbers a match that self-trade prevention keeps from trading.
    pub(crate) fn number_prevented(&mut self) -> u64 {
        self.prevented += 1;
        self.prevented
    }

    /// Takes in what has happened at the desk.
    pub(crate) fn absorb(&mut self, now_ns: u64) {
        let mut touched: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for event in self.desk.take_events() {
            match event {
                DeskEvent::Order(order, account, fill) => {
                    let assets = touched.entry(account).or_default();
                    self.absorb_order(&order, fill, assets, now_ns);
                }
                DeskEvent::Quote(index) => self.events.push(SpotEvent::Quote(index)),
                DeskEvent::Trade(trade) => {
                    if let Some(tape) = self.tapes.get_mut(trade.instrument) {
                        tape.add(&trade);
                    }
                    self.events.push(SpotEvent::Trade(trade));
                }
                // Books are compared when their updates are due.
                DeskEvent::Book(_) => {}
            }
        }
        self.events.extend(touched.into_iter().map(|(account, assets)| SpotEvent::Balances(account, assets)));
    }

    /// Takes the events that wait to be sent.
    pub(crate) fn take_events(&mut self) -> Vec<SpotEvent> {
        std::mem::take(&mut self.events)
    }

    fn absorb_order(&mut self, order: &DeskOrder, fill: Option<DeskFill>, assets: &mut BTreeSet<String>, now_ns: u64) {
        if let Some(instrument) = self.desk.instruments().get(order.instrument) {
            assets.extend([instrument.base.clone(), instrument.quote.clone()]);
        }
        if let Some(fill) = &fill {
            assets.insert(fill.fee_currency.clone());
            let is_first = self.ledger.record(order.id).is_none_or(|record| record.filled == Quantity::ZERO);
            if is_first {
                self.limits.credit_fill(now_ns, order.account, fill.is_maker);
            }
        }
        for (execution, record) in self.ledger.apply(order, fill, &mut self.executions) {
            self.events.push(SpotEvent::Order(execution, Box::new(record)));
        }
    }
}
