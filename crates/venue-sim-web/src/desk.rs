//! The desk of a simulated exchange: accounts, instruments and orders by text id, around the matching engine.
//!
//! * **Ids.** A client id is unique among the open orders of an account, and names the last order that has it.
//! * **Balances.** A spot order reserves what it may give away: the value at its limit for a buy, the quantity for a
//!   sell. A fill moves base and quote. Amounts are cut to eight decimals, reservations are rounded up.
//! * **Fees.** The fee of a fill is taken from the currency that the order receives: base for a buy, quote for a sell.
//!   A derivative's fee is taken from the quote currency, in which an order reserves it.
//! * **Derivatives** change a position in contracts. They need no margin, and profit is not booked.
//! * **Post-only** orders are refused if they would trade with the best price, at their placement and at an amend.
//! * **Reduce-only** orders are cut to the part of the position that no other reduce-only order closes, or refused
//!   without such a part. If the position becomes too small, the newest are canceled behind the request that made it so.
//! * **Rest.** The rest of a market or IOC order is canceled without a reason, a FOK order with its reason.
//! * **Suspended** instruments take cancels only, and their market does not move.
//!
//! Two orders of one account may trade with each other. Ended orders and fills are kept as long as the desk.

mod checks;
mod execution;
mod ledger;
mod listing;
mod order;
mod order_table;
mod terms;

use std::mem;

use tickpath_market::{
    AccountId, ClientOrderId, ExecutionReport, NewOrder, OrderType, Price, Quantity, ReplaceOrder, Request, Side,
    SymbolId, TopOfBook, VenueId,
};
use tickpath_venue_sim::{Config, SimVenue};

use ledger::Ledger;
use order_table::OrderTable;
use terms::{PaidTerms, check_terms, engine_symbol};

pub use listing::{SimAccount, SimDeskConfig, SimInstrument};
pub use order::{DeskEvent, DeskFill, DeskOrder, DeskRefusal, DeskState, NewDeskOrder, OrderName, PublicTrade};

/// Number of orders that the engine has room for at the start.
const EXPECTED_ORDERS: usize = 1_000;

/// Accounts, instruments and orders of a simulated exchange, with the matching engine.
///
/// ```
/// use tickpath_market::{OrderType, Price, Quantity, Side, SymbolId, TimeInForce};
/// use tickpath_venue_sim_web::desk::{
///     DeskState, NewDeskOrder, OrderName, SimAccount, SimDesk, SimDeskConfig, SimInstrument,
/// };
///
/// let whole = Quantity::from_whole;
/// let mut desk = SimDesk::new(SimDeskConfig {
///     instruments: vec![SimInstrument {
///         name: "BTC-USDT".to_owned(),
///         symbol: SymbolId(1),
///         code: 7,
///         base: "BTC".to_owned(),
///         quote: "USDT".to_owned(),
///         tick: "0.1".parse()?,
///         lot: "0.001".parse()?,
///         minimum: "0.001".parse()?,
///         is_derivative: false,
///         contract_value: whole(1),
///         bid: "99.9".parse()?,
///         ask: "100".parse()?,
///         size: whole(5),
///     }],
///     accounts: vec![SimAccount {
///         name: "trader".to_owned(),
///         api_key: "key".to_owned(),
///         secret: "secret".to_owned(),
///         passphrase: String::new(),
///         balances: vec![("USDT".to_owned(), whole(1_000))],
///     }],
///     maker_fee_e6: 800,
///     taker_fee_e6: 1_000,
/// });
/// let order = NewDeskOrder {
///     account: 0,
///     instrument: "BTC-USDT",
///     client_id: "first",
///     side: Side::Buy,
///     order_type: OrderType::Limit,
///     time_in_force: TimeInForce::GoodTillCancel,
///     post_only: false,
///     reduce_only: false,
///     price: "100".parse()?,
///     quantity: whole(2),
/// };
/// desk.place(1, &order)?;
/// let filled = desk.order(0, OrderName::Client("first")).expect("it was placed");
/// assert_eq!((filled.state, filled.average_price), (DeskState::Filled, Price::from_whole(100)));
/// let balances: Vec<_> = desk.balance(0).collect();
/// let received: Quantity = "1.998".parse()?;
/// assert_eq!(balances, [("BTC", received, received), ("USDT", whole(800), whole(800))]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SimDesk {
    venue: SimVenue,
    /// Reports of the present call of the engine.
    reports: Vec<ExecutionReport>,
    config: SimDeskConfig,
    markets: Vec<MarketState>,
    orders: OrderTable,
    ledger: Ledger,
    /// Id of the last trade.
    last_trade: u64,
    events: Vec<DeskEvent>,
}

/// State of an instrument.
#[derive(Clone, Default)]
struct MarketState {
    is_suspended: bool,
    /// Number of changes of the book.
    sequence: u64,
    /// Time of the last change.
    changed_ns: u64,
}

impl SimDesk {
    /// Makes the ids of orders and trades begin above this number, so that a restarted exchange repeats none.
    pub fn number_from(&mut self, id: u64) {
        self.last_trade = self.last_trade.max(id);
        self.orders.number_from(id);
    }

    /// Creates a desk with the accounts' balances and the instruments' quotes of the configuration.
    pub fn new(config: SimDeskConfig) -> Self {
        let instruments = config.instruments.len();
        let symbols = u32::try_from(instruments).unwrap_or(u32::MAX);
        let mut desk = Self {
            venue: SimVenue::new(Config { venue: VenueId(1), symbols, expected_orders: EXPECTED_ORDERS }),
            reports: Vec::new(),
            markets: vec![MarketState::default(); instruments],
            orders: OrderTable::new(config.accounts.len()),
            ledger: Ledger::new(&config.accounts, instruments),
            config,
            last_trade: 0,
            events: Vec::new(),
        };
        for instrument in 0..instruments {
            let SimInstrument { bid, ask, size, .. } = desk.config.instruments[instrument];
            let sizes = TopOfBook { bid_quantity: size, ask_quantity: size, ..TopOfBook::default() };
            desk.replace_quotes(0, instrument, TopOfBook { bid, ask, ..sizes });
        }
        desk.events.clear();
        desk
    }

    /// Places an order at this time, and returns the exchange's id of it. An order that ends at once is placed as well.
    pub fn place(&mut self, at_ns: u64, order: &NewDeskOrder<'_>) -> Result<u64, DeskRefusal> {
        let instrument = self.index_of(order.instrument)?;
        let quantity = self.check_new(instrument, order)?;
        let id = self.orders.add(DeskOrder::new(at_ns, instrument, quantity, order));
        let request = Request::New(NewOrder {
            client_order_id: ClientOrderId(id),
            price: order.price,
            quantity,
            symbol: engine_symbol(instrument),
            account: AccountId(order.account as u32),
            side: order.side.code(),
            order_type: order.order_type.code(),
            time_in_force: order.time_in_force.code(),
            ..NewOrder::default()
        });
        let placed = self.request(at_ns, instrument, &request, None);
        if placed.is_err() {
            self.orders.remove(id);
        }
        placed.map(|()| id)
    }

    /// Cancels an open order of an account, and returns the exchange's id of it.
    pub fn cancel(&mut self, at_ns: u64, account: usize, order: OrderName<'_>) -> Result<u64, DeskRefusal> {
        let DeskOrder { id, instrument, .. } = *self.open_order(account, order)?;
        self.withdraw(at_ns, instrument, id, None)?;
        Ok(id)
    }

    /// Changes the limit or the total quantity of an open order, and returns the exchange's id of it. An order that
    /// becomes smaller at the same price keeps its place; a total that is filled already ends the order as filled.
    pub fn amend(
        &mut self,
        at_ns: u64,
        account: usize,
        order: OrderName<'_>,
        price: Option<Price>,
        total: Option<Quantity>,
    ) -> Result<u64, DeskRefusal> {
        let order = self.open_order(account, order)?.clone();
        let DeskOrder { id, instrument, side, .. } = order;
        self.check_trading(instrument)?;
        let (price, total) = (price.unwrap_or(order.price), total.unwrap_or(order.quantity));
        check_terms(&self.config.instruments[instrument], OrderType::Limit, price, total)?;
        let open = Quantity((total.0 - order.filled.0).max(0));
        if order.reduce_only && open > self.reducible(account, instrument, side, Some(id))? {
            return Err(DeskRefusal::ReduceOnly);
        }
        if order.post_only {
            self.check_post_only(OrderType::Limit, instrument, side, price)?;
        }
        let reserved = self.orders.find(account, OrderName::Exchange(id)).map_or(0, |record| record.reserved);
        self.check_funds(&PaidTerms { account, instrument, side, price, open, reserved })?;
        let request = Request::Replace(ReplaceOrder {
            client_order_id: ClientOrderId(id),
            original: ClientOrderId(id),
            price,
            quantity: total,
            symbol: engine_symbol(instrument),
            account: AccountId(account as u32),
            ..ReplaceOrder::default()
        });
        self.request(at_ns, instrument, &request, None)?;
        Ok(id)
    }

    /// Cancels all open orders of an account, or those of an instrument, the oldest first. Returns their number.
    pub fn cancel_all(&mut self, at_ns: u64, account: usize, instrument: Option<&str>) -> usize {
        let only = match instrument.map(|name| self.index_of(name)) {
            None => None,
            Some(Ok(index)) => Some(index),
            Some(Err(_)) => return 0,
        };
        let covered = self.orders.open(account).filter(|order| only.is_none_or(|only| order.instrument == only));
        let covered: Vec<(usize, u64)> = covered.map(|order| (order.instrument, order.id)).collect();
        covered.into_iter().filter(|&(instrument, id)| self.withdraw(at_ns, instrument, id, None).is_ok()).count()
    }

    /// Moves the market of an instrument to these quotes, which fill orders that they cross. A price or size that is
    /// not above zero is no quote on that side, and quotes that would trade with each other are no quotes at all.
    pub fn quote(
        &mut self,
        at_ns: u64,
        instrument: &str,
        bid: Price,
        bid_size: Quantity,
        ask: Price,
        ask_size: Quantity,
    ) {
        let Ok(index) = self.index_of(instrument) else { return };
        let (bid_quantity, ask_quantity) = (bid_size, ask_size);
        self.replace_quotes(at_ns, index, TopOfBook { bid, bid_quantity, ask, ask_quantity, ..TopOfBook::default() });
    }

    /// Returns an order of an account, open or ended.
    pub fn order(&self, account: usize, order: OrderName<'_>) -> Option<&DeskOrder> {
        self.orders.find(account, order).map(|record| &record.order)
    }

    /// Returns the open orders of an account, the oldest first.
    pub fn open_orders(&self, account: usize) -> impl Iterator<Item = &DeskOrder> {
        self.orders.open(account)
    }

    /// Returns all orders of an account, open and ended, the oldest first.
    pub fn orders(&self, account: usize) -> impl Iterator<Item = &DeskOrder> {
        self.orders.all().filter(move |order| order.account == account)
    }

    /// Returns the fills of an account, the oldest first.
    pub fn fills(&self, account: usize) -> &[DeskFill] {
        self.ledger.fills(account)
    }

    /// Returns the currencies of an account by name, each with the total and the amount that no order reserves.
    pub fn balance(&self, account: usize) -> impl Iterator<Item = (&str, Quantity, Quantity)> {
        self.ledger.balances(account)
    }

    /// Returns the position of an account in a derivative: units of [`Quantity`], negative for a short one.
    pub fn position(&self, account: usize, instrument: &str) -> i64 {
        self.index_of(instrument).map_or(0, |index| self.ledger.position(account, index))
    }

    /// Returns the instruments in the order of their indices.
    pub fn instruments(&self) -> &[SimInstrument] {
        &self.config.instruments
    }

    /// Returns the accounts in the order of their indices, with the balances of the start.
    pub fn accounts(&self) -> &[SimAccount] {
        &self.config.accounts
    }

    /// Suspends an instrument, or ends its suspension.
    pub fn suspend(&mut self, instrument: &str, is_suspended: bool) {
        if let Ok(index) = self.index_of(instrument) {
            self.markets[index].is_suspended = is_suspended;
        }
    }

    /// Returns whether an instrument is suspended.
    pub fn is_suspended(&self, instrument: usize) -> bool {
        self.markets.get(instrument).is_some_and(|market| market.is_suspended)
    }

    /// Returns the events since the last call, in their order: of a trade first the public trade, then the taker's
    /// order, then the maker's; behind a request the change of the book.
    pub fn take_events(&mut self) -> Vec<DeskEvent> {
        mem::take(&mut self.events)
    }

    /// Returns the open quantity at each price of a side, best first.
    pub fn book(&self, instrument: usize, side: Side) -> impl Iterator<Item = (Price, Quantity)> {
        self.venue.depth(engine_symbol(instrument), side)
    }

    /// Returns the best prices of an instrument, with the time of the book's last change and the client's symbol.
    pub fn best(&self, instrument: usize) -> TopOfBook {
        let [(bid, bid_quantity), (ask, ask_quantity)] =
            [Side::Buy, Side::Sell].map(|side| self.book(instrument, side).next().unwrap_or_default());
        let event_ns = self.markets.get(instrument).map_or(0, |market| market.changed_ns);
        let symbol = self.config.instruments.get(instrument).map_or(SymbolId(0), |listing| listing.symbol);
        TopOfBook { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, ..TopOfBook::default() }
    }

    /// Returns the number of changes of an instrument's book so far.
    pub fn book_sequence(&self, instrument: usize) -> u64 {
        self.markets.get(instrument).map_or(0, |market| market.sequence)
    }

    fn index_of(&self, name: &str) -> Result<usize, DeskRefusal> {
        let index = self.config.instruments.iter().position(|listing| listing.name == name);
        index.ok_or(DeskRefusal::UnknownInstrument)
    }

    fn open_order(&self, account: usize, name: OrderName<'_>) -> Result<&DeskOrder, DeskRefusal> {
        let order = self.order(account, name).ok_or(DeskRefusal::UnknownOrder)?;
        if order.is_open() { Ok(order) } else { Err(DeskRefusal::OrderEnded) }
    }
}
