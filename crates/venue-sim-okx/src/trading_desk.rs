//! The desk with all that OKX adds to it: terms of orders, limits and injected faults.

use tickpath_market::{Price, Quantity, Side};
use tickpath_venue_sim_web::{
    DeskOrder, DeskRefusal, DeskState, FaultDice, NewDeskOrder, OrderName, SimDesk, WebFaults,
};

use crate::codes::{
    BELOW_MINIMUM, DUPLICATE_CLIENT_ID, INSUFFICIENT_BALANCE, INSUFFICIENT_MARGIN, NOT_A_LOT, NOT_A_TICK, NOT_PLACED,
    NOTHING_TO_REDUCE, OkxRefusal, SUSPENDED, UNKNOWN_INSTRUMENT,
};
use crate::limits::OrderLimits;
use crate::place_terms::PlaceTerms;
use crate::positions::PositionBook;
use crate::records::OrderRecords;

/// First id of orders that the desk refuses and that OKX accepts, and cancels at once: below the ids of the desk.
const FIRST_CANCELED_ID: u64 = 5_000_000_001;

/// Rates of OKX's lowest tier, makers and takers.
const FEE_RATES_E6: (i64, i64) = (800, 1_000);

/// The desk with all that OKX adds to it.
pub(crate) struct TradingDesk {
    pub(crate) sim: SimDesk,
    pub(crate) records: OrderRecords,
    pub(crate) limits: OrderLimits,
    pub(crate) positions: PositionBook,
    /// Rates of makers and takers that accounts are shown, in 10⁻⁶.
    pub(crate) fee_rates_e6: (i64, i64),
    pub(crate) faults: WebFaults,
    pub(crate) dice: FaultDice,
    /// Amendments that were acknowledged and fail now.
    pub(crate) failed_amends: Vec<FailedAmend>,
    /// Orders that were canceled when they arrived.
    pub(crate) canceled_arrivals: Vec<DeskOrder>,
    /// Number of all orders that were canceled when they arrived.
    canceled: u64,
}

/// An amendment that was acknowledged and fails afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedAmend {
    pub(crate) order: u64,
    /// Client's id of the request.
    pub(crate) request_id: String,
    /// The order is canceled then.
    pub(crate) cancels: bool,
}

impl TradingDesk {
    pub(crate) fn new(mut sim: SimDesk, faults: WebFaults) -> Self {
        for name in &faults.suspended {
            sim.suspend(name, true);
        }
        let dice = faults.dice();
        Self {
            sim,
            records: OrderRecords::default(),
            limits: OrderLimits::default(),
            positions: PositionBook::default(),
            fee_rates_e6: FEE_RATES_E6,
            faults,
            dice,
            failed_amends: Vec::new(),
            canceled_arrivals: Vec::new(),
            canceled: 0,
        }
    }

    /// Places an order, and returns its id.
    pub(crate) fn enter(
        &mut self,
        now_ns: u64,
        account: usize,
        index: usize,
        terms: PlaceTerms,
    ) -> Result<u64, OkxRefusal> {
        let instrument = self.sim.instruments()[index].name.clone();
        let order = NewDeskOrder {
            account,
            instrument: &instrument,
            client_id: &terms.client_id,
            side: terms.side,
            order_type: terms.order_type,
            time_in_force: terms.time_in_force,
            post_only: terms.post_only,
            reduce_only: terms.reduce_only,
            price: terms.price,
            quantity: terms.quantity,
        };
        match self.sim.place(now_ns, &order) {
            Ok(id) => {
                self.records.add_note(id, terms.note);
                Ok(id)
            }
            Err(DeskRefusal::PostOnlyWouldTrade) => Ok(self.cancel_arrival(now_ns, account, index, terms)),
            Err(reason) => Err(self.refusal(index, &terms, reason)),
        }
    }

    /// Cancels orders of an account that satisfy `is_wanted`, with OKX's code of the reason. Returns their number.
    pub(crate) fn cancel_orders(
        &mut self,
        now_ns: u64,
        account: usize,
        source: &'static str,
        is_wanted: impl Fn(&Self, &DeskOrder) -> bool,
    ) -> usize {
        let wanted = self.sim.open_orders(account).filter(|order| is_wanted(self, order));
        let ids: Vec<u64> = wanted.map(|order| order.id).collect();
        for id in &ids {
            if let Some(record) = self.records.get_mut(*id) {
                record.cancel_source = source;
            }
            // Each order was open, and no event lies in between.
            let _ = self.sim.cancel(now_ns, account, OrderName::Exchange(*id));
        }
        ids.len()
    }

    /// Accepts a post-only order that would trade, as OKX does, which cancels it at once. The desk refuses it.
    fn cancel_arrival(&mut self, now_ns: u64, account: usize, index: usize, terms: PlaceTerms) -> u64 {
        let id = FIRST_CANCELED_ID + self.canceled;
        self.canceled += 1;
        self.records.add_note(id, terms.note);
        self.canceled_arrivals.push(DeskOrder {
            id,
            client_id: terms.client_id,
            account,
            instrument: index,
            side: terms.side,
            order_type: terms.order_type,
            time_in_force: terms.time_in_force,
            post_only: terms.post_only,
            reduce_only: terms.reduce_only,
            price: terms.price,
            quantity: terms.quantity,
            filled: Quantity::ZERO,
            average_price: Price::ZERO,
            state: DeskState::Canceled,
            cancel_reason: Some(DeskRefusal::PostOnlyWouldTrade),
            created_ns: now_ns,
            updated_ns: now_ns,
            amends: 0,
        });
        id
    }

    /// Returns OKX's refusal of a new order.
    fn refusal(&self, index: usize, terms: &PlaceTerms, reason: DeskRefusal) -> OkxRefusal {
        let instrument = &self.sim.instruments()[index];
        match reason {
            DeskRefusal::UnknownInstrument => UNKNOWN_INSTRUMENT.refusal(),
            DeskRefusal::Suspended => SUSPENDED.refusal(),
            DeskRefusal::DuplicateClientId => DUPLICATE_CLIENT_ID.refusal(),
            DeskRefusal::InsufficientBalance if instrument.is_derivative => {
                INSUFFICIENT_MARGIN.about(&instrument.quote)
            }
            DeskRefusal::InsufficientBalance => {
                let currency = match terms.side {
                    Side::Buy => &instrument.quote,
                    Side::Sell => &instrument.base,
                };
                INSUFFICIENT_BALANCE.about(currency)
            }
            DeskRefusal::Tick => NOT_A_TICK.refusal(),
            DeskRefusal::Lot => NOT_A_LOT.refusal(),
            DeskRefusal::Minimum => BELOW_MINIMUM.refusal(),
            DeskRefusal::ReduceOnly => NOTHING_TO_REDUCE.refusal(),
            DeskRefusal::UnknownOrder
            | DeskRefusal::OrderEnded
            | DeskRefusal::PostOnlyWouldTrade
            | DeskRefusal::FokUnfillable
            | DeskRefusal::Other(_) => NOT_PLACED.refusal(),
        }
    }
}
