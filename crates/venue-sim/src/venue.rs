//! The venue: takes requests and ticks, keeps the books, and reports the events of each order.

use tickpath_market::{
    CancelOrder, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, Price, Quantity,
    ReplaceConditional, ReplaceOrder, Request, Side, SymbolId, TextIdRequest, TopOfBook, VenueId, VenueOrderId,
};

use crate::fills::DayFills;
use crate::known_orders::{BookLocation, EndedOrder, KnownOrders};
use crate::order_terms::{RemainderPolicy, limit_and_quantity, read_terms};
use crate::report::ReportWriter;
use crate::used_ids::UsedIds;
use crate::{BookOrder, OrderBook, RejectReason};

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
/// use tickpath_venue_sim::{Config, SimVenue};
/// use tickpath_market::{
///     ClientOrderId, ExecType, NewOrder, OrderType, Price, Quantity, Request, Side, TimeInForce, TopOfBook, VenueId,
/// };
///
/// let mut venue = SimVenue::new(Config { venue: VenueId(1), symbols: 1, expected_orders: 1_000 });
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
/// let types: Vec<u8> = reports.iter().map(|report| report.exec_type).collect();
/// assert_eq!(types, [ExecType::New.code(), ExecType::Trade.code()]);
/// ```
#[derive(Debug)]
pub struct SimVenue {
    pub(crate) venue: VenueId,
    /// Order books by symbol id.
    pub(crate) books: Vec<OrderBook>,
    /// Resting orders, and orders that ended today.
    pub(crate) known_orders: KnownOrders,
    pub(crate) used_ids: UsedIds,
    /// Number of orders accepted so far, which is the last venue order id.
    accepted: u64,
    pub(crate) fills: DayFills,
    /// Number of orders that a new book has room for.
    pub(crate) book_room: usize,
}

impl SimVenue {
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
            books: (0..symbols).map(|_| OrderBook::new(book_room)).collect(),
            known_orders: KnownOrders::with_capacity(expected_orders),
            used_ids: UsedIds::with_capacity(expected_orders),
            accepted: 0,
            fills: DayFills::with_capacity(expected_orders),
            book_room,
        }
    }

    /// Applies a client's request that arrived at `stamp` (ticks). Appends its reports, and those of the orders that it
    /// traded with, in the order in which they must be sent.
    pub fn request(&mut self, stamp: u64, request: &Request, reports: &mut Vec<ExecutionReport>) {
        self.request_owned(stamp, request, &|_| true, reports);
    }

    /// Does as [`Self::request`], with mass cancels and status requests for all orders restricted to orders that
    /// satisfy `is_mine`: those of the request's owner.
    pub(crate) fn request_owned(
        &mut self,
        stamp: u64,
        request: &Request,
        is_mine: &dyn Fn(OrderId) -> bool,
        reports: &mut Vec<ExecutionReport>,
    ) {
        match request {
            Request::New(new) => self.enter_order(stamp, new, reports),
            Request::Cancel(cancel) => self.cancel(stamp, cancel, reports),
            Request::Replace(replace) => self.replace(stamp, replace, reports),
            Request::Status(status) => self.status(stamp, status, is_mine, reports),
            Request::MassCancel(all) => self.cancel_all(stamp, all, is_mine, reports),
            // Triggers and text ids are the OMS's work.
            Request::Conditional(new) => self.refuse(stamp, &new.order, reports),
            Request::Extended(new) => self.refuse(stamp, &new.order, reports),
            Request::ByTextId(named) => {
                let TextIdRequest { client_order_id, symbol, account, .. } = *named;
                let nothing = CancelOrder { client_order_id, symbol, account, ..CancelOrder::default() };
                self.cancel(stamp, &nothing, reports);
            }
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
        if id == OrderId(0) || !self.used_ids.insert(id) {
            return self.enter_order(stamp, new, reports);
        }
        self.known_orders.add_ended(id, EndedOrder::refused(new, RejectReason::OnOrder));
        let mut writer = ReportWriter { venue: self.venue, symbol: new.symbol, stamp, fills: &mut self.fills, reports };
        writer.rejected(new, 1, RejectReason::OnOrder);
    }

    /// Replaces the maker's bid and offer of the tick's symbol at `stamp` (ticks). Client orders that the new quotes
    /// cross are filled at their own price; a tick of an unknown symbol does nothing.
    pub fn top_of_book(&mut self, stamp: u64, tick: &TopOfBook, reports: &mut Vec<ExecutionReport>) {
        let symbol = tick.symbol;
        let Some(book) = self.books.get_mut(symbol.0 as usize) else { return };
        let mut writer = ReportWriter { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
        book.withdraw_quotes();
        for mut quote in maker_quotes(tick).into_iter().flatten() {
            match_order(book, &mut self.known_orders, &mut quote, ClientOrderId(0), &mut writer);
            if !quote.is_filled() {
                book.insert(quote);
            }
        }
    }

    /// Returns whether an order rests or ended today.
    pub(crate) fn is_known(&self, order: u64) -> bool {
        self.known_orders.get(OrderId(order)).is_some()
    }

    /// Returns the number of client orders that rest in the books.
    pub fn resting_orders(&self) -> usize {
        self.known_orders.resting_count()
    }

    /// Returns whether the venue has this instrument.
    pub fn has_symbol(&self, symbol: SymbolId) -> bool {
        (symbol.0 as usize) < self.books.len()
    }

    /// Returns the number of instruments.
    pub fn symbols(&self) -> u32 {
        self.books.len() as u32
    }

    /// Adds instruments up to this number.
    pub(crate) fn add_symbols(&mut self, symbols: u32) {
        let books = self.books.len().max(symbols as usize);
        self.books.resize_with(books, || OrderBook::new(self.book_room));
    }

    /// Returns whether the maker quotes both sides of an instrument.
    pub(crate) fn is_quoted(&self, symbol: SymbolId) -> bool {
        self.books.get(symbol.0 as usize).is_some_and(OrderBook::is_quoted)
    }

    /// Returns the open quantity at each price of one side, best first, the maker's included. A sum beyond 64 bits is
    /// capped at the largest quantity; an unknown symbol has no prices.
    pub fn depth(&self, symbol: SymbolId, side: Side) -> impl Iterator<Item = (Price, Quantity)> {
        self.books.get(symbol.0 as usize).into_iter().flat_map(move |book| book.depth(side))
    }

    fn enter_order(&mut self, stamp: u64, new: &NewOrder, reports: &mut Vec<ExecutionReport>) {
        let (symbol, request, id) = (new.symbol, new.client_order_id, OrderId(new.client_order_id.0));
        let mut writer = ReportWriter { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
        if id == OrderId(0) {
            return writer.rejected(new, 0, RejectReason::NoId);
        }
        if !self.used_ids.insert(id) {
            return writer.rejected(new, 0, RejectReason::DuplicateId);
        }
        let accepted = read_terms(new, self.books.len()).and_then(|terms| {
            let order = terms.order(new, VenueOrderId(self.accepted + 1));
            check_post_only(&self.books[symbol.0 as usize], &order)?;
            Ok((order, terms.remainder))
        });
        let (mut order, remainder) = match accepted {
            Ok(accepted) => accepted,
            Err(reject) => {
                self.known_orders.add_ended(id, EndedOrder::refused(new, reject));
                return writer.rejected(new, 1, reject);
            }
        };
        self.accepted += 1;
        let book = &mut self.books[symbol.0 as usize];
        writer.accepted(&mut order, request);
        if remainder != RemainderPolicy::FillOrExpire || book.can_fill(&order) {
            match_order(book, &mut self.known_orders, &mut order, request, &mut writer);
        }
        if order.is_filled() {
            return self.known_orders.add_ended(id, EndedOrder::of(&order, symbol, OrdStatus::Filled));
        }
        if remainder == RemainderPolicy::Rests {
            return self.known_orders.add_resting(id, BookLocation { symbol, slot: book.insert(order) });
        }
        writer.ended(&mut order, request, (ExecType::Expired, OrdStatus::Expired));
        self.known_orders.add_ended(id, EndedOrder::of(&order, symbol, OrdStatus::Expired));
    }

    fn cancel(&mut self, stamp: u64, cancel: &CancelOrder, reports: &mut Vec<ExecutionReport>) {
        let (request, id) = (cancel.client_order_id, OrderId(cancel.original.0));
        let location = self.known_orders.location(id);
        let symbol = location.map_or(cancel.symbol, |location| location.symbol);
        let mut writer = ReportWriter { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
        match location {
            Some(BookLocation { symbol, slot }) => {
                let mut order = self.books[symbol.0 as usize].remove(slot);
                writer.ended(&mut order, request, (ExecType::Canceled, OrdStatus::Canceled));
                self.known_orders.add_ended(id, EndedOrder::of(&order, symbol, OrdStatus::Canceled));
            }
            None => writer.cancel_rejected(id, request, cancel.account, absence_reason(&self.used_ids, id)),
        }
    }

    fn replace(&mut self, stamp: u64, replace: &ReplaceOrder, reports: &mut Vec<ExecutionReport>) {
        let (request, id) = (replace.client_order_id, OrderId(replace.original.0));
        let location = self.known_orders.location(id);
        let symbol = location.map_or(replace.symbol, |location| location.symbol);
        let mut writer = ReportWriter { venue: self.venue, symbol, stamp, fills: &mut self.fills, reports };
        let Some(BookLocation { slot, .. }) = location else {
            return writer.cancel_rejected(id, request, replace.account, absence_reason(&self.used_ids, id));
        };
        let book = &mut self.books[symbol.0 as usize];
        if let Err(reject) = limit_and_quantity(replace.price, replace.quantity) {
            return writer.replace_rejected(book.order_mut(slot), request, reject);
        }
        let order = book.order(slot);
        let smaller = order.filled < replace.quantity && replace.quantity <= order.quantity;
        if smaller && replace.price == order.price {
            return writer.replaced(book.reduce(slot, replace.quantity), request);
        }
        let (price, quantity) = (replace.price, replace.quantity.max(order.filled));
        let mut order = BookOrder { price, quantity, ..*order };
        if let Err(reject) = check_post_only(book, &order) {
            return writer.replace_rejected(book.order_mut(slot), request, reject);
        }
        book.remove(slot);
        writer.replaced(&mut order, request);
        match_order(book, &mut self.known_orders, &mut order, request, &mut writer);
        if order.is_filled() {
            self.known_orders.add_ended(id, EndedOrder::of(&order, symbol, OrdStatus::Filled));
        } else {
            self.known_orders.add_resting(id, BookLocation { symbol, slot: book.insert(order) });
        }
    }
}

/// Matches a taker, reports each match for both orders, and records the resting orders that are filled.
fn match_order(
    book: &mut OrderBook,
    known: &mut KnownOrders,
    taker: &mut BookOrder,
    request: ClientOrderId,
    writer: &mut ReportWriter<'_>,
) {
    book.match_taker(taker, |taker, other, quantity| {
        let price = other.price;
        writer.traded(taker, request, price, quantity);
        writer.traded(other, ClientOrderId(0), price, quantity);
        if other.is_filled() && !other.is_quote() {
            known.add_ended(other.id, EndedOrder::of(other, writer.symbol, OrdStatus::Filled));
        }
    });
}

/// Rejects an order that is post-only and would trade at once.
fn check_post_only(book: &OrderBook, order: &BookOrder) -> Result<(), RejectReason> {
    if order.is_post_only && book.would_trade(order) { Err(RejectReason::PostOnly) } else { Ok(()) }
}

/// Returns the reason why an order that does not rest cannot be changed.
fn absence_reason(used: &UsedIds, id: OrderId) -> RejectReason {
    if used.contains(id) { RejectReason::TooLate } else { RejectReason::UnknownOrder }
}

/// Returns the maker's bid and offer, or neither if they would trade with each other.
fn maker_quotes(tick: &TopOfBook) -> [Option<BookOrder>; 2] {
    let bid = BookOrder::quote(Side::Buy, tick.bid, tick.bid_quantity);
    let ask = BookOrder::quote(Side::Sell, tick.ask, tick.ask_quantity);
    if bid.is_some() && ask.is_some() && tick.bid >= tick.ask { [None, None] } else { [bid, ask] }
}
