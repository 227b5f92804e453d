//! Orders of a desk, and its events.

use tickpath_market::{OrderType, Price, Quantity, Side, TimeInForce};
use tickpath_venue_sim::RejectReason;

/// A new order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewDeskOrder<'a> {
    /// Index of the account.
    pub account: usize,
    /// Name of the instrument.
    pub instrument: &'a str,
    /// Client's id, which no open order of the account may have; empty for none.
    pub client_id: &'a str,
    /// Side.
    pub side: Side,
    /// Pricing.
    pub order_type: OrderType,
    /// Lifetime.
    pub time_in_force: TimeInForce,
    /// Whether the order is refused if it would trade at once.
    pub post_only: bool,
    /// Whether the order may only reduce a position.
    pub reduce_only: bool,
    /// Limit price; zero for a market order.
    pub price: Price,
    /// Quantity; of a derivative in contracts.
    pub quantity: Quantity,
}

/// Name of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderName<'a> {
    /// The exchange's id.
    Exchange(u64),
    /// The client's id: of several orders with this id, the last.
    Client(&'a str),
}

/// Reasons of a desk to refuse a request, or to cancel an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DeskRefusal {
    /// No instrument has this name.
    #[error("no instrument has this name; use a name of the list of instruments")]
    UnknownInstrument,
    /// The instrument is suspended.
    #[error("the instrument is suspended; cancel orders, or wait until it trades again")]
    Suspended,
    /// An open order of the account has this client id.
    #[error("an open order has this client id; use another one")]
    DuplicateClientId,
    /// The account has no such order.
    #[error("the account has no such order; name it by the id of its acknowledgement or by its client id")]
    UnknownOrder,
    /// The order has ended.
    #[error("the order is filled or canceled already; there is nothing left to change")]
    OrderEnded,
    /// The available balance does not cover the order.
    #[error("the available balance does not cover the order; lower its quantity, or cancel another order")]
    InsufficientBalance,
    /// The price is no multiple of the tick.
    #[error("the price is no multiple of the instrument's tick; round it")]
    Tick,
    /// The quantity is no multiple of the lot.
    #[error("the quantity is no multiple of the instrument's lot; round it")]
    Lot,
    /// The quantity is below the minimum.
    #[error("the quantity is below the instrument's minimum; raise it")]
    Minimum,
    /// A post-only order would trade at once.
    #[error("the post-only order would trade at once; use a price away from the market")]
    PostOnlyWouldTrade,
    /// A reduce-only order would not reduce a position.
    #[error("the reduce-only order would not reduce a position; check the position and the side")]
    ReduceOnly,
    /// A fill-or-kill order cannot be filled completely.
    #[error("the fill-or-kill order cannot be filled completely; lower its quantity")]
    FokUnfillable,
    /// The matching engine refuses the order.
    #[error(transparent)]
    Other(RejectReason),
}

/// State of an order. It only goes from an earlier state to a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeskState {
    /// Open, and not filled.
    Live,
    /// Open, and filled in part.
    PartlyFilled,
    /// Filled. An order that was amended down to its filled quantity is filled, too.
    Filled,
    /// Canceled, on request or by the exchange; it may be filled in part.
    Canceled,
}

/// An order of a desk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeskOrder {
    /// The exchange's id.
    pub id: u64,
    /// Client's id; empty for none.
    pub client_id: String,
    /// Index of the account.
    pub account: usize,
    /// Index of the instrument.
    pub instrument: usize,
    /// Side.
    pub side: Side,
    /// Pricing.
    pub order_type: OrderType,
    /// Lifetime.
    pub time_in_force: TimeInForce,
    /// Whether the order must not trade when it arrives.
    pub post_only: bool,
    /// Whether the order only reduces a position.
    pub reduce_only: bool,
    /// Limit price; zero for a market order.
    pub price: Price,
    /// Total quantity. A reduce-only order may have less than was asked for.
    pub quantity: Quantity,
    /// Filled quantity.
    pub filled: Quantity,
    /// Average price of the fills, cut to eight decimals; zero without fills.
    pub average_price: Price,
    /// State.
    pub state: DeskState,
    /// Reason of the exchange for a cancel; none if the owner has canceled, or if the rest of an order expired that
    /// does not rest.
    pub cancel_reason: Option<DeskRefusal>,
    /// Time of its placement, nanoseconds since the Unix epoch.
    pub created_ns: u64,
    /// Time of its last event.
    pub updated_ns: u64,
    /// Number of its amends.
    pub amends: u32,
}

impl DeskOrder {
    /// Returns a new order without an id, of this quantity.
    pub(super) fn new(at_ns: u64, instrument: usize, quantity: Quantity, order: &NewDeskOrder<'_>) -> Self {
        Self {
            id: 0,
            client_id: order.client_id.to_owned(),
            account: order.account,
            instrument,
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            post_only: order.post_only,
            reduce_only: order.reduce_only,
            price: order.price,
            quantity,
            filled: Quantity::ZERO,
            average_price: Price::ZERO,
            state: DeskState::Live,
            cancel_reason: None,
            created_ns: at_ns,
            updated_ns: at_ns,
            amends: 0,
        }
    }

    /// Returns whether the order can still be filled.
    pub fn is_open(&self) -> bool {
        matches!(self.state, DeskState::Live | DeskState::PartlyFilled)
    }

    /// Returns the quantity that can still be filled; zero once the order has ended.
    pub fn open_quantity(&self) -> Quantity {
        if self.is_open() { Quantity(self.quantity.0 - self.filled.0) } else { Quantity::ZERO }
    }
}

/// A fill of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeskFill {
    /// Id of the trade, which both of its orders and the public trade have.
    pub trade_id: u64,
    /// The exchange's id of the order.
    pub order: u64,
    /// Index of the instrument.
    pub instrument: usize,
    /// Side of the order.
    pub side: Side,
    /// Price.
    pub price: Price,
    /// Quantity; of a derivative in contracts.
    pub quantity: Quantity,
    /// Whether the order rested.
    pub is_maker: bool,
    /// Fee in units of 10⁻⁸ of its currency; positive is paid, negative received.
    pub fee: i64,
    /// Currency of the fee.
    pub fee_currency: String,
    /// Time, nanoseconds since the Unix epoch.
    pub at_ns: u64,
}

/// A trade, as the public sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicTrade {
    /// Id of the trade, counted up from 1 across all instruments.
    pub trade_id: u64,
    /// Index of the instrument.
    pub instrument: usize,
    /// Side of the taker.
    pub side: Side,
    /// Price.
    pub price: Price,
    /// Quantity; of a derivative in contracts.
    pub quantity: Quantity,
    /// Time, nanoseconds since the Unix epoch.
    pub at_ns: u64,
}

/// An event of a desk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeskEvent {
    /// An order after a change, the index of its account, and the fill if one has changed it.
    Order(DeskOrder, usize, Option<DeskFill>),
    /// The best bid or offer of the instrument with this index has changed.
    Quote(usize),
    /// A trade.
    Trade(PublicTrade),
    /// The book of the instrument with this index has changed.
    Book(usize),
}
