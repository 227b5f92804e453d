//! Checks of requests against the book, the accounts and the open orders.

use tickpath_market::{OrderType, Price, Quantity, Side};
use tickpath_venue_sim::RejectReason;

use super::SimDesk;
use super::ledger::reservation;
use super::order::{DeskOrder, DeskRefusal, NewDeskOrder, OrderName};
use super::terms::{PaidTerms, check_terms};

impl SimDesk {
    /// Checks a new order, and returns its quantity, which may be less than was asked for.
    pub(super) fn check_new(&self, instrument: usize, order: &NewDeskOrder<'_>) -> Result<Quantity, DeskRefusal> {
        self.check_trading(instrument)?;
        let NewDeskOrder { account, client_id, side, order_type, price, .. } = *order;
        let earlier = self.order(account, OrderName::Client(client_id));
        if earlier.is_some_and(DeskOrder::is_open) {
            return Err(DeskRefusal::DuplicateClientId);
        }
        check_terms(&self.config.instruments[instrument], order_type, price, order.quantity)?;
        let open = match order.reduce_only {
            true => order.quantity.min(self.reducible(account, instrument, side, None)?),
            false => order.quantity,
        };
        if order.post_only {
            self.check_post_only(order_type, instrument, side, price)?;
        }
        self.check_funds(&PaidTerms { account, instrument, side, price, open, reserved: 0 })?;
        Ok(open)
    }

    pub(super) fn check_trading(&self, instrument: usize) -> Result<(), DeskRefusal> {
        if self.is_suspended(instrument) { Err(DeskRefusal::Suspended) } else { Ok(()) }
    }

    /// Refuses a post-only order that would trade with the best price.
    pub(super) fn check_post_only(
        &self,
        order_type: OrderType,
        instrument: usize,
        side: Side,
        price: Price,
    ) -> Result<(), DeskRefusal> {
        let crosses = |(best, _): (Price, Quantity)| match side {
            Side::Buy => price >= best,
            Side::Sell => price <= best,
        };
        match order_type {
            OrderType::Market => Err(DeskRefusal::Other(RejectReason::UnknownCode)),
            OrderType::Limit if self.book(instrument, side.opposite()).next().is_some_and(crosses) => {
                Err(DeskRefusal::PostOnlyWouldTrade)
            }
            OrderType::Limit => Ok(()),
        }
    }

    /// Refuses terms that the available balance and the amount that the order reserves already do not cover.
    pub(super) fn check_funds(&self, terms: &PaidTerms) -> Result<(), DeskRefusal> {
        let PaidTerms { account, instrument, side, price, open, reserved } = *terms;
        let listing = &self.config.instruments[instrument];
        let rate = self.reserved_rate();
        let (currency, needed) = match (price, side) {
            (Price::ZERO, Side::Buy) => self.market_cost(instrument, open),
            (price, Side::Buy) => reservation(listing, side, price, open, rate),
            (price, Side::Sell) => {
                // A sale may trade at a better price, and pay a larger fee.
                let (best, _) = self.book(instrument, Side::Buy).next().unwrap_or_default();
                reservation(listing, side, price.max(best), open, rate)
            }
        };
        let has_account = account < self.config.accounts.len();
        match has_account && needed <= self.ledger.available(account, currency) + reserved {
            true => Ok(()),
            false => Err(DeskRefusal::InsufficientBalance),
        }
    }

    /// Returns the currency and the amount that a purchase at any price needs with the present offers.
    fn market_cost(&self, instrument: usize, mut open: Quantity) -> (&str, i128) {
        let (listing, rate) = (&self.config.instruments[instrument], self.reserved_rate());
        let (currency, mut needed) = reservation(listing, Side::Buy, Price::ZERO, open, rate);
        for (price, offered) in self.book(instrument, Side::Sell) {
            let quantity = offered.min(open);
            needed += reservation(listing, Side::Buy, price, quantity, rate).1;
            open.0 -= quantity.0;
            if open == Quantity::ZERO {
                break;
            }
        }
        (currency, needed)
    }

    /// Returns the fee rate for which orders of derivatives reserve.
    pub(super) fn reserved_rate(&self) -> i64 {
        self.config.maker_fee_e6.max(self.config.taker_fee_e6)
    }

    /// Returns the part of a position that a reduce-only order of this side may close: the part that other such orders
    /// leave. Refuses the order if there is none.
    pub(super) fn reducible(
        &self,
        account: usize,
        instrument: usize,
        side: Side,
        except: Option<u64>,
    ) -> Result<Quantity, DeskRefusal> {
        let others = self.reducing_orders(account, instrument, side).filter(|order| Some(order.id) != except);
        let taken: i128 = others.map(|order| i128::from(order.open_quantity().0)).sum();
        let left = self.closable(account, instrument, side) - taken;
        match i64::try_from(left) {
            Ok(left) if left > 0 => Ok(Quantity(left)),
            _ => Err(DeskRefusal::ReduceOnly),
        }
    }

    /// Returns the position that orders of this side close.
    pub(super) fn closable(&self, account: usize, instrument: usize, side: Side) -> i128 {
        let position = i128::from(self.ledger.position(account, instrument));
        match side {
            Side::Buy => (-position).max(0),
            Side::Sell => position.max(0),
        }
    }

    /// Returns the open reduce-only orders of an account, the oldest first.
    pub(super) fn reducing_orders(
        &self,
        account: usize,
        instrument: usize,
        side: Side,
    ) -> impl Iterator<Item = &DeskOrder> {
        let is_one =
            move |order: &&DeskOrder| order.reduce_only && order.instrument == instrument && order.side == side;
        self.orders.open(account).filter(is_one)
    }
}
