//! The venue: takes requests and ticks, keeps the books, and says what became of each order.

use std::hash::BuildHasherDefault;

use tickpath_market::{
    CancelOrder, ClientOrderId, ExecutionReport, NewOrder, OrderId, OrderType, Price, Quantity, ReplaceOrder, Request,
    Side, SymbolId, TimeInForce, TopOfBook, VenueId, VenueOrderId,
};

use crate::report::Scribe;
use crate::used::{IdMap, Used};
use crate::{Book, Order, Reject, Slot};

/// What a venue is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// The venue's number, which its reports carry.
    pub venue: VenueId,
    /// How many instruments there are: the ids below this number exist.
    pub symbols: u32,
    /// Room for so many resting orders is made at the start; with more, memory is allocated on the way.
    pub expected_orders: usize,
}

/// A simulated venue with a book for each symbol. The rules are at the top of the [crate].
///
/// ```
/// use tickpath_exchange::{Config, Venue};
/// use tickpath_market::{
///     ClientOrderId, ExecType, NewOrder, OrderType, Price, Quantity, Request, Side, TimeInForce, TopOfBook, VenueId,
/// };
///
/// let mut venue = Venue::new(Config { venue: VenueId(1), symbols: 1, expected_orders: 1_000 });
/// let mut reports = Vec::new();
/// let tick = TopOfBook {
///     bid: Price::from_whole(99),
///     bid_quantity: Quantity::from_whole(5),
///     ask: Price::from_whole(100),
///     ask_quantity: Quantity::from_whole(5),
///     ..TopOfBook::default()
/// };
/// venue.top_of_book(1, &tick, &mut reports);
///
/// let buy = NewOrder {
///     client_order_id: ClientOrderId(1),
///     price: Price::from_whole(100),
///     quantity: Quantity::from_whole(2),
///     side: Side::Buy.code(),
///     order_type: OrderType::Limit.code(),
///     time_in_force: TimeInForce::ImmediateOrCancel.code(),
///     ..NewOrder::default()
/// };
/// venue.request(2, &Request::New(buy), &mut reports);
///
/// let told: Vec<u8> = reports.iter().map(|report| report.exec_type).collect();
/// assert_eq!(told, [ExecType::New.code(), ExecType::Trade.code()]);
/// ```
#[derive(Debug)]
pub struct Venue {
    venue: VenueId,
    /// By symbol id.
    books: Vec<Book>,
    /// Where each working order of a client rests.
    resting: IdMap<OrderId, Place>,
    used: Used,
    /// Orders accepted so far: the last venue order id.
    accepted: u64,
    /// Fills reported so far: the last execution id.
    executions: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    symbol: SymbolId,
    slot: Slot,
}

/// What a new order's codes ask for.
struct Terms {
    side: Side,
    rest: Rest,
}

/// What happens to the part of an order that does not fill at once.
#[derive(PartialEq, Eq)]
enum Rest {
    Works,
    Expires,
    /// And without a whole fill there is none at all.
    ExpiresWhole,
}

impl Venue {
    /// A venue with empty books.
    pub fn new(config: Config) -> Self {
        let Config { venue, symbols, expected_orders } = config;
        let share = expected_orders / symbols.max(1) as usize + 1;
        // At half load removals leave hardly a tombstone, so the table need not be cleaned up in the middle of a day.
        let room = expected_orders.saturating_mul(2);
        Self {
            venue,
            books: (0..symbols).map(|_| Book::new(share)).collect(),
            resting: IdMap::with_capacity_and_hasher(room, BuildHasherDefault::default()),
            used: Used::with_capacity(expected_orders),
            accepted: 0,
            executions: 0,
        }
    }

    /// Applies a client's request that arrived at `stamp` (ticks). Its reports, and those of the orders that it traded
    /// with, are appended in the order in which they must be sent.
    pub fn request(&mut self, stamp: u64, request: &Request, reports: &mut Vec<ExecutionReport>) {
        match request {
            Request::New(new) => self.enter(stamp, new, reports),
            Request::Cancel(cancel) => self.cancel(stamp, cancel, reports),
            Request::Replace(replace) => self.replace(stamp, replace, reports),
        }
    }

    /// Moves the market: the maker's bid and offer of this symbol become these, at `stamp` (ticks). Client orders that
    /// they cross are filled at their own price. A tick of an unknown symbol does nothing.
    pub fn top_of_book(&mut self, stamp: u64, tick: &TopOfBook, reports: &mut Vec<ExecutionReport>) {
        let symbol = tick.symbol;
        let Some(book) = self.books.get_mut(symbol.0 as usize) else { return };
        let mut scribe = Scribe { venue: self.venue, symbol, stamp, executions: &mut self.executions, reports };
        book.withdraw();
        for mut quote in quotes(tick).into_iter().flatten() {
            trade(book, &mut self.resting, &mut quote, ClientOrderId(0), &mut scribe);
            if !quote.is_filled() {
                book.rest(quote);
            }
        }
    }

    /// How many orders of clients rest in the books.
    pub fn working(&self) -> usize {
        self.resting.len()
    }

    /// The open quantity at each price of one side, best first, the maker's included. A sum beyond 64 bits is given as
    /// the largest quantity; an unknown symbol has no prices.
    pub fn depth(&self, symbol: SymbolId, side: Side) -> impl Iterator<Item = (Price, Quantity)> {
        self.books.get(symbol.0 as usize).into_iter().flat_map(move |book| book.depth(side))
    }

    fn enter(&mut self, stamp: u64, new: &NewOrder, reports: &mut Vec<ExecutionReport>) {
        let (symbol, request, id) = (new.symbol, new.client_order_id, OrderId(new.client_order_id.0));
        let mut scribe = Scribe { venue: self.venue, symbol, stamp, executions: &mut self.executions, reports };
        if id == OrderId(0) {
            return scribe.rejected(new, 0, Reject::NoId);
        }
        if !self.used.insert(id) {
            return scribe.rejected(new, 0, Reject::DuplicateId);
        }
        let terms = match terms(new, self.books.len()) {
            Ok(terms) => terms,
            Err(reject) => return scribe.rejected(new, 1, reject),
        };
        self.accepted += 1;
        let book = &mut self.books[symbol.0 as usize];
        let mut order = Order {
            id,
            venue_order_id: VenueOrderId(self.accepted),
            price: new.price,
            quantity: new.quantity,
            filled: Quantity::ZERO,
            events: 0,
            account: new.account,
            side: terms.side,
        };
        scribe.accepted(&mut order, request);
        if terms.rest != Rest::ExpiresWhole || book.can_fill(&order) {
            trade(book, &mut self.resting, &mut order, request, &mut scribe);
        }
        if order.is_filled() {
            return;
        }
        match terms.rest {
            Rest::Works => {
                self.resting.insert(id, Place { symbol, slot: book.rest(order) });
            }
            Rest::Expires | Rest::ExpiresWhole => scribe.expired(&mut order, request),
        }
    }

    fn cancel(&mut self, stamp: u64, cancel: &CancelOrder, reports: &mut Vec<ExecutionReport>) {
        let (request, id) = (cancel.client_order_id, OrderId(cancel.original.0));
        let place = self.resting.remove(&id);
        let symbol = place.map_or(cancel.symbol, |place| place.symbol);
        let mut scribe = Scribe { venue: self.venue, symbol, stamp, executions: &mut self.executions, reports };
        match place {
            Some(Place { symbol, slot }) => {
                let mut order = self.books[symbol.0 as usize].remove(slot);
                scribe.canceled(&mut order, request);
            }
            None => scribe.absent(id, request, cancel.account, absence(&self.used, id)),
        }
    }

    fn replace(&mut self, stamp: u64, replace: &ReplaceOrder, reports: &mut Vec<ExecutionReport>) {
        let (request, id) = (replace.client_order_id, OrderId(replace.original.0));
        let place = self.resting.get(&id).copied();
        let symbol = place.map_or(replace.symbol, |place| place.symbol);
        let mut scribe = Scribe { venue: self.venue, symbol, stamp, executions: &mut self.executions, reports };
        let Some(Place { slot, .. }) = place else {
            return scribe.absent(id, request, replace.account, absence(&self.used, id));
        };
        let book = &mut self.books[symbol.0 as usize];
        if let Err(reject) = limit_and_quantity(replace.price, replace.quantity) {
            return scribe.kept(book.order_mut(slot), request, reject);
        }
        let order = book.order(slot);
        let smaller = order.filled < replace.quantity && replace.quantity <= order.quantity;
        if smaller && replace.price == order.price {
            return scribe.replaced(book.shrink(slot, replace.quantity), request);
        }
        let mut order = book.remove(slot);
        order.price = replace.price;
        order.quantity = replace.quantity.max(order.filled);
        scribe.replaced(&mut order, request);
        trade(book, &mut self.resting, &mut order, request, &mut scribe);
        if order.is_filled() {
            self.resting.remove(&id);
        } else {
            self.resting.insert(id, Place { symbol, slot: book.rest(order) });
        }
    }
}

/// Matches a taker, reports each match to both, and forgets the places of resting orders that are filled.
fn trade(
    book: &mut Book,
    resting: &mut IdMap<OrderId, Place>,
    taker: &mut Order,
    request: ClientOrderId,
    scribe: &mut Scribe<'_>,
) {
    book.take(taker, |taker, other, quantity| {
        let price = other.price;
        scribe.traded(taker, request, price, quantity);
        scribe.traded(other, ClientOrderId(0), price, quantity);
        if other.is_filled() && !other.is_quote() {
            resting.remove(&other.id);
        }
    });
}

/// What a new order asks for, if it can be had at a venue with so many symbols.
fn terms(new: &NewOrder, symbols: usize) -> Result<Terms, Reject> {
    new.check().map_err(|_| Reject::UnknownCode)?;
    let side = Side::from_code(new.side).ok_or(Reject::UnknownCode)?;
    let order_type = OrderType::from_code(new.order_type).ok_or(Reject::UnknownCode)?;
    let time_in_force = TimeInForce::from_code(new.time_in_force).ok_or(Reject::UnknownCode)?;
    if new.symbol.0 as usize >= symbols {
        return Err(Reject::UnknownSymbol);
    }
    match order_type {
        OrderType::Limit => limit_and_quantity(new.price, new.quantity)?,
        OrderType::Market if new.quantity <= Quantity::ZERO => return Err(Reject::Quantity),
        OrderType::Market if new.price != Price::ZERO => return Err(Reject::Price),
        OrderType::Market => {}
    }
    let rest = match (time_in_force, order_type) {
        (TimeInForce::FillOrKill, _) => Rest::ExpiresWhole,
        (TimeInForce::ImmediateOrCancel, _) | (_, OrderType::Market) => Rest::Expires,
        (TimeInForce::Day | TimeInForce::GoodTillCancel, OrderType::Limit) => Rest::Works,
    };
    Ok(Terms { side, rest })
}

fn limit_and_quantity(price: Price, quantity: Quantity) -> Result<(), Reject> {
    if quantity <= Quantity::ZERO {
        return Err(Reject::Quantity);
    }
    if price <= Price::ZERO {
        return Err(Reject::Price);
    }
    Ok(())
}

/// Why an order that does not rest cannot be changed.
fn absence(used: &Used, id: OrderId) -> Reject {
    if used.contains(id) { Reject::TooLate } else { Reject::UnknownOrder }
}

/// The maker's bid and offer; neither if they would trade with each other.
fn quotes(tick: &TopOfBook) -> [Option<Order>; 2] {
    let bid = Order::quote(Side::Buy, tick.bid, tick.bid_quantity);
    let ask = Order::quote(Side::Sell, tick.ask, tick.ask_quantity);
    if bid.is_some() && ask.is_some() && tick.bid >= tick.ask { [None, None] } else { [bid, ask] }
}
