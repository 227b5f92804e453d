//! Rows of a blotter: an order, a fill, and a position with its profit.

use std::fmt::Debug;

use tickpath_market::{
    AccountId, ClientOrderId, Currency, ExecId, Liquidity, NewOrder, OrdStatus, OrderId, OrderType, Price, Quantity,
    Side, SymbolId, TextId, TimeInForce, VenueId,
};
use tickpath_oms_core::OrderView;

/// Status of an order: its FIX status, or denied by the OMS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlotterStatus {
    /// Status by FIX precedence.
    Fix(OrdStatus),
    /// A pre-trade check denied the order; no venue has received it.
    #[default]
    Denied,
}

/// State of a fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillState {
    /// The fill holds as reported.
    Good,
    /// The venue corrected its quantity or price.
    Corrected,
    /// The venue busted the fill.
    Busted,
    /// An operator booked the fill by `oms resolve`: the venue has reported no fill for it.
    Resolved,
}

/// An order of the day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlotterOrder {
    /// The OMS's id of the order.
    pub id: OrderId,
    /// Time of entry, in nanoseconds since the Unix epoch; none if its record is gone from the archive.
    pub entered_ns: Option<u64>,
    /// Time of the last change, in nanoseconds since the Unix epoch; none if it was before the day.
    pub updated_ns: Option<u64>,
    /// The client's id of the order.
    pub client_order_id: ClientOrderId,
    /// The client's text id of the order; none if it has none.
    pub text_id: Option<TextId>,
    /// End time of a good-till-date order, in nanoseconds since the Unix epoch; none for any other order.
    pub expires_ns: Option<u64>,
    /// Session of the order.
    pub session: u16,
    /// Account.
    pub account: AccountId,
    /// Instrument.
    pub symbol: SymbolId,
    /// Venue that the order was admitted for; none if the order was denied before.
    pub venue: Option<VenueId>,
    /// Side; none if the request had no known side.
    pub side: Option<Side>,
    /// Order type; none if the request had no known type.
    pub order_type: Option<OrderType>,
    /// Time in force; none if the request had no known one.
    pub time_in_force: Option<TimeInForce>,
    /// Limit price, as last replaced.
    pub price: Price,
    /// Total quantity, as last replaced.
    pub quantity: Quantity,
    /// Filled quantity, with the days before.
    pub filled: Quantity,
    /// Quantity of the day's fills.
    pub filled_on_day: Quantity,
    /// Quantity that the venue still works.
    pub leaves: Quantity,
    /// Average price of the day's fills, in units of 10⁻⁸; none without a fill, or if a price is unknown.
    pub average_price: Option<i128>,
    /// Status.
    pub status: BlotterStatus,
    /// Reason of a denial or rejection.
    pub reason: Option<String>,
    /// Price at which the OMS books an operator's resolution, if known.
    pub(crate) valued: Option<i64>,
    /// Whether the order was known before the day.
    pub(crate) is_carried: bool,
}

/// A fill of the day, or a change of an earlier day's fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlotterFill {
    /// Time of the first report, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Time of the last correction or bust, in nanoseconds since the Unix epoch.
    pub updated_ns: Option<u64>,
    /// The venue's id of the fill; zero if an operator booked it.
    pub exec_id: ExecId,
    /// The OMS's id of the order.
    pub order_id: OrderId,
    /// The client's id of the order.
    pub client_order_id: ClientOrderId,
    /// Session of the order.
    pub session: u16,
    /// Account.
    pub account: AccountId,
    /// Instrument.
    pub symbol: SymbolId,
    /// Venue.
    pub venue: Option<VenueId>,
    /// Side of the order.
    pub side: Side,
    /// Quantity, as corrected; the busted quantity for a bust.
    pub quantity: Quantity,
    /// Price, as corrected; none if an operator booked a market order with an unknown price.
    pub price: Option<Price>,
    /// State of the fill.
    pub state: FillState,
    /// Fee in units of 10⁻¹⁶ of its currency, negative for a rebate; none if unknown.
    pub fee: Option<i128>,
    /// Currency of the fee.
    pub fee_currency: Currency,
    /// Role of the order in the fill, if known.
    pub liquidity: Option<Liquidity>,
    /// Change of the quantity filled on this day: zero for a busted fill, negative for a bust of an earlier day's fill.
    pub counted: Quantity,
    /// Quantity by the venue's last report, and the number of that amendment; zero if there was none.
    pub(crate) reported: i64,
    pub(crate) amendment: u32,
}

/// Position of an account in an instrument over the day, and its profit. Money is in units of 10⁻¹⁶ of the currency,
/// prices are in units of 10⁻⁸.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlotterPosition {
    /// Account.
    pub account: AccountId,
    /// Instrument.
    pub symbol: SymbolId,
    /// Contract size as last defined: a number, and how many of its digits are decimals.
    pub multiplier: (i64, u8),
    /// Position at the start of the day.
    pub start_quantity: i128,
    /// Average cost of that position; none if it is flat, or the cost is unknown.
    pub start_price: Option<i128>,
    /// Quantity bought on the day.
    pub bought_quantity: i128,
    /// Average price of the buys.
    pub bought_price: Option<i128>,
    /// Quantity sold on the day.
    pub sold_quantity: i128,
    /// Average price of the sells.
    pub sold_price: Option<i128>,
    /// Position now, or at the end of the day.
    pub end_quantity: i128,
    /// Average cost of that position; none if it is flat, or the cost is unknown.
    pub average_price: Option<i128>,
    /// Price at which the position is valued, if any.
    pub mark: Option<i64>,
    /// Realised profit of the day; none if a cost is unknown.
    pub realised: Option<i128>,
    /// Open profit; none if the position is not flat and has no mark, or if a cost is unknown.
    pub open: Option<i128>,
}

impl BlotterStatus {
    /// Returns the word of a status: `partially_filled`, `denied`.
    pub fn word(self) -> String {
        match self {
            Self::Fix(status) => snake_case(status),
            Self::Denied => "denied".to_owned(),
        }
    }

    /// Returns the status with this word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::all().find(|status| status.word() == text)
    }

    /// Returns every status.
    pub fn all() -> impl Iterator<Item = Self> {
        OrdStatus::ALL.iter().copied().map(Self::Fix).chain([Self::Denied])
    }
}

impl BlotterOrder {
    /// Creates the row of an order that the core knows.
    pub(crate) fn of(view: &OrderView, entered_ns: Option<u64>, filled: Quantity) -> Self {
        Self {
            id: view.id,
            entered_ns,
            updated_ns: None,
            client_order_id: view.client_order_id,
            session: view.session,
            account: view.account,
            symbol: view.symbol,
            venue: Some(view.venue),
            side: Some(view.side),
            order_type: Some(view.order_type),
            time_in_force: Some(view.time_in_force),
            price: view.price,
            quantity: view.quantity,
            filled,
            leaves: view.leaves,
            status: BlotterStatus::Fix(view.status),
            valued: (view.order_type != OrderType::Market).then_some(view.price.0),
            ..Self::default()
        }
    }

    /// Creates the row of an order that was denied before the core kept it.
    pub(crate) fn denied(id: OrderId, session: u16, entered_ns: u64, order: &NewOrder, reason: String) -> Self {
        Self {
            id,
            entered_ns: Some(entered_ns),
            updated_ns: Some(entered_ns),
            client_order_id: order.client_order_id,
            session,
            account: order.account,
            symbol: order.symbol,
            side: Side::from_code(order.side),
            order_type: OrderType::from_code(order.order_type),
            time_in_force: TimeInForce::from_code(order.time_in_force),
            price: order.price,
            quantity: order.quantity,
            status: BlotterStatus::Denied,
            reason: Some(reason),
            ..Self::default()
        }
    }
}

impl BlotterFill {
    /// Returns the counted quantity, positive for a buy.
    pub fn signed(&self) -> i128 {
        match self.side {
            Side::Buy => self.counted.0.into(),
            Side::Sell => -i128::from(self.counted.0),
        }
    }
}

/// Returns the name of a code in words: `GoodTillCancel` is `good_till_cancel`.
pub fn snake_case(code: impl Debug) -> String {
    let mut word = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}
