//! The venue: takes requests and ticks, keeps the books, and reports the events of each order.

use tickpath_market::{
    CancelOrder, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, Price, Quantity,
    ReplaceConditional, ReplaceOrder, Request, Side, SymbolId, TopOfBook, VenueId, VenueOrderId,
};

use crate::fills::Fills;
use crate::known::{Ended, KnownOrders, Place};
use crate::report::Scribe;
use crate::terms::{Rest, limit_and_quantity, terms};
use crate::used::Used;
use crate::{Book, Order, Reject};

/// Configuration of a venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Venue number, which its reports carry.
    pub venue: VenueId,
    /// Number of instruments: symbol ids below this number exist.
    pub symbols: u32,
    /// Number of resting orders with memory allocated at the start; more orders allocate as they come.
    pub expected_orders: usize,
}

/// A simulated venue with a book for each symbol. The [crate] documentation has the rules.
///
/// ```
/// use tickpath_venue_sim::{Config, Venue};
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
    pub(crate) venue: VenueId,
    /// Order books by symbol id.
    pub(crate) books: Vec<Book>,
    /// Resting orders, and orders that ended today.
    pub(crate) known: KnownOrders,
    pub(crate) used: Used,
    /// Number of orders accepted so far, which is the last venue order id.
    accepted: u64,
    pub(crate) fills: Fills,
    /// Number of orders that a new book has room for.
    pub(crate) book_room: usize,
}

impl Venue {
    /// Returns the venue number.
    pub fn number(&self) -> VenueId {
        self.venue
    }

    /// Creates a venue with empty books.
    pub fn new(config: Config) -> Self {
        let Config { venue, symbols, expected_orders } = config;
        let book_room = expected_orders / symbols.max(1) as usize + 1;
        Self {
            venue,
            books: (0..symbols).map(|_| Book::new(book_room)).collect(),
            known: KnownOrders::with_capacity(expected_orders),
            used: Used::with_capacity(expected_orders),
            accepted: 0,
            fills: Fills::with_capacity(expected_orders),
            book_room,
        }
    }

    /// Applies a client's request that arrived at `stamp` (ticks). Appends its reports, and those of the orders that it
    /// traded with, in the order in which they must be sent.
    pub fn request(&mut self, stamp: u64, request: &Request, reports: &mut Vec<ExecutionReport>) {
        self.request_of(stamp, request, &|_| true, reports);
    }

    /// Does as [`Self::request`], with mass cancels and status requests for all orders restricted to orders that
    /// satisfy `is_mine`: those of the request's owner.
    pub(crate) fn request_of(
        &mut self,
        stamp: u64,
        request: &Request,
        is_mine: &dyn Fn(OrderId) -> bool,
        reports: &mut Vec<ExecutionReport>,
    ) {
        match request {
            Request::New(new) => self.enter(stamp, new, reports),
            Request::Cancel(cancel) => self.cancel(stamp, cancel, reports),
            Request::Replace(replace) => self.replace(stamp, replace, reports),
            Request::Status(status) => self.status(stamp, status, is_mine, reports),
            Request::MassCancel(all) => self.cancel_all(stamp, all, is_mine, reports),
            // Triggers are the OMS's work: the venue arms no conditional order.
            Request::Conditional(new) => self.refuse(stamp, &new.order, reports),
            Request::ReplaceConditional(rearm) => {
                let ReplaceConditional { client_order_id, symbol, account, .. } = *rearm;
                let nothing = ReplaceOrder { client_order_id, symbol, account, ..ReplaceOrder::default() };
                self.replace(stamp, &nothing, reports);
            }
        }
    }

    /// Rejects a new order that is conditional, or that an injected fault refuses. An order without a fresh id is
    /// rejected for its id.
    pub(crate) fn refuse(&mut self, stamp: u64, new: &NewOrder, reports: &mut Vec<ExecutionReport>) {
        let id = OrderId(new.client_order_id.0);
        if id == OrderId(0) || !self.used.insert(id) {
            return self.enter(stamp, new, reports);
        }
        self.known.end(id, Ended::refused(new, Reject::OnOrder));
        let mut scribe = Scribe { venue: self.venue, symbol: new.symbol, stamp, fills: &mut self.fills, reports };
        scribe.rejected(new, 1, Reject::OnOrder);
    }

    /// Replaces the maker's bid and offer of the tick's symbol at `stamp` (ticks). Client orders that the new quotes
    /// cross are filled at their own price; a tick of an unknown symbol does nothing.
    pub fn top_of_book(&mut self, stamp: u64, tick: &TopOfBook, reports: &mut Vec<ExecutionReport>) {
        let symbol = tick.symbol;
        let Some(book) = self.books.get_mut(symbol.0 as usize) else { return };
        let mut scribe = Scribe { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
        book.withdraw();
        for mut quote in quotes(tick).into_iter().flatten() {
            trade(book, &mut self.known, &mut quote, ClientOrderId(0), &mut scribe);
            if !quote.is_filled() {
                book.rest(quote);
            }
        }
    }

    /// Returns whether an order rests or ended today.
    pub(crate) fn knows(&self, order: u64) -> bool {
        self.known.get(OrderId(order)).is_some()
    }

    /// Returns whether an order rests.
    pub(crate) fn rests(&self, order: u64) -> bool {
        self.known.place(OrderId(order)).is_some()
    }

    /// Returns whether an id was ever used.
    pub(crate) fn has_used(&self, order: u64) -> bool {
        self.used.contains(OrderId(order))
    }

    /// Marks an id as used.
    pub(crate) fn keep_used(&mut self, order: u64) {
        self.used.insert(OrderId(order));
    }

    /// Returns the number of client orders that rest in the books.
    pub fn working(&self) -> usize {
        self.known.resting()
    }

    /// Returns whether the venue has this instrument.
    pub fn has(&self, symbol: SymbolId) -> bool {
        (symbol.0 as usize) < self.books.len()
    }

    /// Returns the number of instruments.
    pub fn symbols(&self) -> u32 {
        self.books.len() as u32
    }

    /// Adds instruments up to this number.
    pub(crate) fn list(&mut self, symbols: u32) {
        let books = self.books.len().max(symbols as usize);
        self.books.resize_with(books, || Book::new(self.book_room));
    }

    /// Returns whether the maker quotes both sides of an instrument.
    pub(crate) fn quotes_both(&self, symbol: SymbolId) -> bool {
        self.books.get(symbol.0 as usize).is_some_and(Book::is_quoted)
    }

    /// Returns the open quantity at each price of one side, best first, the maker's included. A sum beyond 64 bits is
    /// capped at the largest quantity; an unknown symbol has no prices.
    pub fn depth(&self, symbol: SymbolId, side: Side) -> impl Iterator<Item = (Price, Quantity)> {
        self.books.get(symbol.0 as usize).into_iter().flat_map(move |book| book.depth(side))
    }

    fn enter(&mut self, stamp: u64, new: &NewOrder, reports: &mut Vec<ExecutionReport>) {
        let (symbol, request, id) = (new.symbol, new.client_order_id, OrderId(new.client_order_id.0));
        let mut scribe = Scribe { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
        if id == OrderId(0) {
            return scribe.rejected(new, 0, Reject::NoId);
        }
        if !self.used.insert(id) {
            return scribe.rejected(new, 0, Reject::DuplicateId);
        }
        let terms = match terms(new, self.books.len()) {
            Ok(terms) => terms,
            Err(reject) => {
                self.known.end(id, Ended::refused(new, reject));
                return scribe.rejected(new, 1, reject);
            }
        };
        self.accepted += 1;
        let book = &mut self.books[symbol.0 as usize];
        let mut order = terms.order(new, VenueOrderId(self.accepted));
        scribe.accepted(&mut order, request);
        if terms.rest != Rest::ExpiresWhole || book.can_fill(&order) {
            trade(book, &mut self.known, &mut order, request, &mut scribe);
        }
        if order.is_filled() {
            return self.known.end(id, Ended::of(&order, symbol, OrdStatus::Filled));
        }
        if terms.rest == Rest::Works {
            return self.known.rest(id, Place { symbol, slot: book.rest(order) });
        }
        scribe.ended(&mut order, request, (ExecType::Expired, OrdStatus::Expired));
        self.known.end(id, Ended::of(&order, symbol, OrdStatus::Expired));
    }

    fn cancel(&mut self, stamp: u64, cancel: &CancelOrder, reports: &mut Vec<ExecutionReport>) {
        let (request, id) = (cancel.client_order_id, OrderId(cancel.original.0));
        let place = self.known.place(id);
        let symbol = place.map_or(cancel.symbol, |place| place.symbol);
        let mut scribe = Scribe { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
        match place {
            Some(Place { symbol, slot }) => {
                let mut order = self.books[symbol.0 as usize].remove(slot);
                scribe.ended(&mut order, request, (ExecType::Canceled, OrdStatus::Canceled));
                self.known.end(id, Ended::of(&order, symbol, OrdStatus::Canceled));
            }
            None => scribe.absent(id, request, cancel.account, absence(&self.used, id)),
        }
    }

    fn replace(&mut self, stamp: u64, replace: &ReplaceOrder, reports: &mut Vec<ExecutionReport>) {
        let (request, id) = (replace.client_order_id, OrderId(replace.original.0));
        let place = self.known.place(id);
        let symbol = place.map_or(replace.symbol, |place| place.symbol);
        let mut scribe = Scribe { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
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
        trade(book, &mut self.known, &mut order, request, &mut scribe);
        if order.is_filled() {
            self.known.end(id, Ended::of(&order, symbol, OrdStatus::Filled));
        } else {
            self.known.rest(id, Place { symbol, slot: book.rest(order) });
        }
    }
}

/// Matches a taker, reports each match for both orders, and records the resting orders that are filled.
fn trade(book: &mut Book, known: &mut KnownOrders, taker: &mut Order, request: ClientOrderId, scribe: &mut Scribe<'_>) {
    book.take(taker, |taker, other, quantity| {
        let price = other.price;
        scribe.traded(taker, request, price, quantity);
        scribe.traded(other, ClientOrderId(0), price, quantity);
        if other.is_filled() && !other.is_quote() {
            known.end(other.id, Ended::of(other, scribe.symbol, OrdStatus::Filled));
        }
    });
}

/// Returns the reason why an order that does not rest cannot be changed.
fn absence(used: &Used, id: OrderId) -> Reject {
    if used.contains(id) { Reject::TooLate } else { Reject::UnknownOrder }
}

/// Returns the maker's bid and offer, or neither if they would trade with each other.
fn quotes(tick: &TopOfBook) -> [Option<Order>; 2] {
    let bid = Order::quote(Side::Buy, tick.bid, tick.bid_quantity);
    let ask = Order::quote(Side::Sell, tick.ask, tick.ask_quantity);
    if bid.is_some() && ask.is_some() && tick.bid >= tick.ask { [None, None] } else { [bid, ask] }
}
