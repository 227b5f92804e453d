//! The messages: flat, little-endian, without padding, validated where they enter.

use std::borrow::Cow;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::{
    AccountId, ClientOrderId, Currency, DECIMALS, ExecId, MAX_DECIMALS, OrderId, Price, Quantity, SymbolId, VenueId,
    VenueOrderId,
};

#[cfg(target_endian = "big")]
compile_error!("messages are little-endian structs; this target is big-endian");

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(TryFromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$vdoc])* $variant = $code,)+
        }

        impl $name {
            /// All values, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the value with this code, if there is one.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Returns the code in a message.
            pub const fn code(self) -> u8 {
                self as u8
            }
        }
    )+};
}

pub(crate) use codes;

codes! {
    /// Kind of a frame: the message in its payload. Kinds below 16 belong to the log itself.
    Kind {
        /// [`TopOfBook`](crate::TopOfBook)
        TopOfBook = 16,
        /// [`Trade`](crate::Trade)
        Trade = 17,
        /// [`BookLevel`](crate::BookLevel)
        BookLevel = 18,
        /// [`FeedStatus`](crate::FeedStatus)
        FeedStatus = 19,
        /// [`NewOrder`]
        NewOrder = 32,
        /// [`CancelOrder`]
        CancelOrder = 33,
        /// [`ReplaceOrder`]
        ReplaceOrder = 34,
        /// [`StatusRequest`]
        StatusRequest = 35,
        /// [`MassCancel`]
        MassCancel = 36,
        /// [`ConditionalOrder`](crate::ConditionalOrder)
        ConditionalOrder = 37,
        /// [`ReplaceConditional`](crate::ReplaceConditional)
        ReplaceConditional = 38,
        /// [`ExtendedOrder`](crate::ExtendedOrder)
        ExtendedOrder = 39,
        /// [`TextIdRequest`](crate::TextIdRequest)
        TextIdRequest = 40,
        /// [`ExecutionReport`]
        ExecutionReport = 48,
        /// [`OrderDenied`]
        OrderDenied = 49,
        /// [`ReportDetail`]
        ReportDetail = 50,
        /// [`OrderExtension`](crate::OrderExtension)
        OrderExtension = 51,
    }
    /// The side of an order (FIX 54).
    Side {
        /// Buys.
        Buy = 1,
        /// Sells.
        Sell = 2,
    }
    /// Pricing of an order (FIX 40).
    OrderType {
        /// Any price. The price field is zero.
        Market = 1,
        /// This price or a better one.
        Limit = 2,
    }
    /// Kind of event in a [`FeedStatus`](crate::FeedStatus).
    FeedCondition {
        /// A connection to the exchange is up and subscribed.
        Connected = 1,
        /// A connection has ended; what it carried until the next `Connected` is lost, unless another connection is up.
        Disconnected = 2,
        /// Updates of a book are missing: the book is invalid until `BookValid`.
        Gap = 3,
        /// A snapshot and all updates after it are published: the book is valid again.
        BookValid = 4,
        /// Nothing has arrived for longer than the exchange allows; `value` is the silence in nanoseconds.
        Silence = 5,
        /// The exchange announces maintenance or the end of the connection.
        Maintenance = 6,
        /// Measured offset of the exchange's clock; `value` is exchange minus local in nanoseconds.
        ClockOffset = 7,
    }
    /// Lifetime of an order (FIX 59).
    TimeInForce {
        /// Works until the day ends (ROD at the Taiwan Futures Exchange).
        Day = 0,
        /// Works until it is canceled.
        GoodTillCancel = 1,
        /// Fills at once as far as possible; the rest is canceled.
        ImmediateOrCancel = 3,
        /// Fills completely at once or not at all.
        FillOrKill = 4,
        /// Works until its end time, in an [`ExtendedOrder`](crate::ExtendedOrder).
        GoodTillDate = 6,
    }
    /// Effect of an order on a position (FIX 77).
    PositionEffect {
        /// The venue decides.
        Default = 0,
        /// Opens.
        Open = 1,
        /// Closes.
        Close = 2,
    }
    /// Self-trade prevention: the venue's action when an order would trade with another order of its owner.
    SelfTradeMode {
        /// As the venue's account is set.
        Default = 0,
        /// Cancels the resting order.
        CancelMaker = 1,
        /// Cancels the arriving order.
        CancelTaker = 2,
        /// Cancels both.
        CancelBoth = 3,
    }
    /// Margin of an order at a venue with several.
    TradeMode {
        /// As the instrument requires: cash for spot, cross for derivatives.
        Default = 0,
        /// Without margin.
        Cash = 1,
        /// With the margin of the whole account.
        Cross = 2,
        /// With the margin of its position alone.
        Isolated = 3,
    }
    /// Role of an order in a fill.
    Liquidity {
        /// Not known.
        Unknown = 0,
        /// The order rested.
        Maker = 1,
        /// The order arrived.
        Taker = 2,
    }
    /// Scope of a mass cancel (FIX 530).
    MassCancelType {
        /// Orders of one instrument.
        Symbol = 1,
        /// All orders.
        All = 7,
    }
    /// Kind of event in an execution report (FIX 150).
    ExecType {
        /// The venue has accepted the order.
        New = 0,
        /// Canceled, on request or unsolicited.
        Canceled = 4,
        /// Replaced; the report carries the new price and leaves.
        Replaced = 5,
        /// A cancel request is pending.
        PendingCancel = 6,
        /// The order was rejected.
        Rejected = 8,
        /// Received, not yet at the venue.
        PendingNew = 10,
        /// Expired: the rest of an IOC, a whole FOK, or the day's end.
        Expired = 12,
        /// A replace request is pending.
        PendingReplace = 14,
        /// A partial or full fill.
        Trade = 15,
        /// A fill has another quantity or price than was reported; this report carries the corrected values.
        TradeCorrect = 16,
        /// A fill is busted.
        TradeCancel = 17,
        /// State of the order, on request; no event of the order.
        OrderStatus = 18,
        /// A cancel or replace request was rejected (FIX message 9); the order is unchanged.
        CancelRejected = 20,
        /// The order's trigger has fired: from here on it is an ordinary order.
        Triggered = 21,
    }
    /// Source of a report (FIX 1028).
    ManualOrderIndicator {
        /// The venue or the OMS.
        Automatic = 0,
        /// An admin, by hand.
        Manual = 1,
    }
    /// The state of an order (FIX 39).
    OrdStatus {
        /// Accepted, nothing filled.
        New = 0,
        /// Partly filled, the rest working.
        PartiallyFilled = 1,
        /// Filled completely. Not terminal: an execution can be busted.
        Filled = 2,
        /// Done for the day.
        DoneForDay = 3,
        /// Canceled.
        Canceled = 4,
        /// A cancel request is pending.
        PendingCancel = 6,
        /// Rejected.
        Rejected = 8,
        /// Halted by the venue.
        Suspended = 9,
        /// In flight to the venue, or queued here for a line.
        PendingNew = 10,
        /// Expired.
        Expired = 12,
        /// A replace request is pending.
        PendingReplace = 14,
        /// In doubt; the exposure stays counted.
        Unknown = 21,
        /// Waits at the OMS for its trigger; not yet sent to any venue.
        Armed = 22,
    }
}

/// A new order. One cache line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NewOrder {
    /// The sender's own id of this request: the client's id towards the OMS, the OMS's order id towards a venue.
    pub client_order_id: ClientOrderId,
    /// Limit price; zero for a market order.
    pub price: Price,
    /// Quantity.
    pub quantity: Quantity,
    /// Stamp of the tick that caused the order, in ticks of the host's clock; zero if none did.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// Account of the order.
    pub account: AccountId,
    /// [`Side`] as its code.
    pub side: u8,
    /// [`OrderType`] as its code.
    pub order_type: u8,
    /// [`TimeInForce`] as its code.
    pub time_in_force: u8,
    /// [`PositionEffect`] as its code.
    pub position_effect: u8,
    /// Sum of [`NewOrder::POST_ONLY`] and [`NewOrder::REDUCE_ONLY`].
    pub instructions: u8,
    /// [`SelfTradeMode`] as its code.
    pub self_trade_mode: u8,
    /// [`TradeMode`] as its code.
    pub trade_mode: u8,
    /// Zero.
    pub reserved: u8,
}

/// A request to cancel an order of the sender, or, by the OMS's id, an order of any session for an account that the
/// sender's session may trade for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CancelOrder {
    /// The sender's own id of this request.
    pub client_order_id: ClientOrderId,
    /// The sender's id of the order to cancel: the id of its `NewOrder`, regardless of later replaces.
    pub original: ClientOrderId,
    /// Stamp of the tick that caused the request; zero if none did.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// Account of the order. Not read if `order_id` is not zero.
    pub account: AccountId,
    /// The OMS's id of the order to cancel, of any session; zero if `original` names the order. Zero towards a venue.
    pub order_id: OrderId,
}

/// A request for another price or total quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReplaceOrder {
    /// The sender's own id of this request.
    pub client_order_id: ClientOrderId,
    /// The sender's id of the order to change: the id of its `NewOrder`.
    pub original: ClientOrderId,
    /// The new limit price.
    pub price: Price,
    /// The new total quantity, the filled quantity included.
    pub quantity: Quantity,
    /// Stamp of the tick that caused the request; zero if none did.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// Account of the order.
    pub account: AccountId,
    /// Zero.
    pub reserved: [u8; 8],
}

/// A request for the state of an order; an OMS may ask a venue for all of its orders. It changes nothing, and its id
/// stays free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StatusRequest {
    /// The sender's own id of this request; the answer carries it.
    pub client_order_id: ClientOrderId,
    /// The sender's id of the order: the id of its `NewOrder`. Zero, with `fills`, asks for all orders of the sender.
    pub original: ClientOrderId,
    /// Zero.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// Account of the order.
    pub account: AccountId,
    /// 1 to report the order's fills again before the answer; zero otherwise. Only venues for which the OMS sets it
    /// need to support it.
    pub fills: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

/// A request to cancel all orders of the sender's session and account. An OMS answers for each order, and sends its
/// venue a cancel for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MassCancel {
    /// The sender's own id of this request.
    pub client_order_id: ClientOrderId,
    /// Stamp of the tick that caused the request; zero if none did.
    pub cause: u64,
    /// The instrument, if the cancel covers only its orders.
    pub symbol: SymbolId,
    /// Account of the orders.
    pub account: AccountId,
    /// [`MassCancelType`] as its code.
    pub cancel_type: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

/// An event or the state of an order: from a venue to the OMS, and from the OMS to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ExecutionReport {
    /// The OMS's id of the order (towards a venue it is the client order id).
    pub order_id: OrderId,
    /// Id of the request that this report answers, as its receiver knows it; zero if unsolicited.
    pub client_order_id: ClientOrderId,
    /// The venue's id of the order.
    pub venue_order_id: VenueOrderId,
    /// The venue's id of this execution; zero if the report is no fill.
    pub exec_id: ExecId,
    /// The venue's count of events of this order, from 1; zero from a venue that does not count.
    pub venue_sequence: u64,
    /// Price of this fill; zero if the report is no fill.
    pub last_price: Price,
    /// Quantity of this fill; zero if the report is no fill.
    pub last_quantity: Quantity,
    /// Quantity filled so far.
    pub cumulative_quantity: Quantity,
    /// Quantity still working after this event.
    pub leaves_quantity: Quantity,
    /// The order's limit price after this event.
    pub price: Price,
    /// Time at which the venue received the request or made the event, in ticks of the host's clock; zero if unknown.
    pub venue_stamp: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// Account of the order.
    pub account: AccountId,
    /// Code of the rejection; zero if there is none.
    pub reason: u16,
    /// Venue of the order.
    pub venue: VenueId,
    /// [`ExecType`] as its code.
    pub exec_type: u8,
    /// [`OrdStatus`] as its code.
    pub status: u8,
    /// [`Side`] as its code.
    pub side: u8,
    /// [`ManualOrderIndicator`] as its code. Not read in a venue's report.
    pub manual: u8,
}

/// Details of a venue's report: the fee of a fill, the venue's own times, and its reason as text. The message follows its
/// report; after a reconnect it may come again, and is the same for the same fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReportDetail {
    /// The OMS's id of the order.
    pub order_id: OrderId,
    /// The venue's id of the fill; zero if the report is no fill.
    pub exec_id: ExecId,
    /// Fee, in units of 10⁻¹⁶ of its currency, 128 bits little-endian; negative for a rebate.
    pub fee: [u8; 16],
    /// Time at which the venue received the request or made the event, nanoseconds since the Unix epoch; zero if unknown.
    pub venue_received_ns: u64,
    /// Time at which the venue sent the report, nanoseconds since the Unix epoch; zero if unknown.
    pub venue_sent_ns: u64,
    /// Currency of the fee.
    pub fee_currency: Currency,
    /// [`Liquidity`] as its code.
    pub liquidity: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// The venue's reason in UTF-8, padded with zeros; a longer one is cut.
    pub text: [u8; 64],
}

/// A request that a risk check denied, with the limit and the value that broke it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OrderDenied {
    /// The OMS's id of the request.
    pub order_id: OrderId,
    /// The client's id of the request.
    pub client_order_id: ClientOrderId,
    /// The limit, 128 bits little-endian, in the unit of the check.
    pub limit: [u8; 16],
    /// The value that broke it, 128 bits little-endian, in the same unit.
    pub value: [u8; 16],
    /// Account of the request.
    pub account: AccountId,
    /// The OMS's denial code, which names the check.
    pub code: u16,
    /// Decimals beyond 8 of limit and value, where they are prices; negative for fewer.
    pub more_decimals: i16,
}

/// Errors of bytes that are not a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The kind is not a [`Kind`], or is not allowed here.
    #[error("a message of kind {0} does not belong here; is the writer of another version?")]
    Kind(u8),
    /// The length does not match the kind.
    #[error("a message of kind {kind} has {length} bytes; is the writer of another version?")]
    Length {
        /// The claimed kind.
        kind: u8,
        /// The length found.
        length: usize,
    },
    /// A code field holds no known code.
    #[error("{field} has the unknown code {code}")]
    Code {
        /// Name of the field.
        field: &'static str,
        /// Code in the field.
        code: u8,
    },
    /// A text id is empty, or not made of printable ASCII characters.
    #[error("text_id is no text id; use 1 to 36 printable ASCII characters without spaces")]
    TextId,
    /// A good-till-date order lacks its end time, or another order has one.
    #[error("an end time and the time in force good-till-date belong together; give both, or neither")]
    EndTime,
}

/// Rejects a code field unless its code is known.
#[inline]
pub(crate) fn check_code(field: &'static str, code: u8, is_known: bool) -> Result<(), MessageError> {
    if is_known { Ok(()) } else { Err(MessageError::Code { field, code }) }
}

impl NewOrder {
    /// Instruction: the order rests, or is refused if it would trade at once (post-only, FIX 18=6).
    pub const POST_ONLY: u8 = 1;
    /// Instruction: the order only reduces a position (FIX 18=E).
    pub const REDUCE_ONLY: u8 = 2;

    /// Checks the code fields.
    pub fn check(&self) -> Result<(), MessageError> {
        check_code("side", self.side, Side::from_code(self.side).is_some())?;
        check_code("order_type", self.order_type, OrderType::from_code(self.order_type).is_some())?;
        let lifetime = TimeInForce::from_code(self.time_in_force).filter(|&time| time != TimeInForce::GoodTillDate);
        check_code("time_in_force", self.time_in_force, lifetime.is_some())?;
        let effect = self.position_effect;
        check_code("position_effect", effect, PositionEffect::from_code(effect).is_some())?;
        let known = Self::POST_ONLY | Self::REDUCE_ONLY;
        check_code("instructions", self.instructions, self.instructions & !known == 0)?;
        let mode = self.self_trade_mode;
        check_code("self_trade_mode", mode, SelfTradeMode::from_code(mode).is_some())?;
        check_code("trade_mode", self.trade_mode, TradeMode::from_code(self.trade_mode).is_some())
    }
}

impl ReportDetail {
    /// Returns the fee, in units of 10⁻¹⁶ of its currency.
    pub fn fee(&self) -> i128 {
        i128::from_le_bytes(self.fee)
    }

    /// Returns the role of the order in the fill, if its code is known.
    pub fn liquidity(&self) -> Option<Liquidity> {
        Liquidity::from_code(self.liquidity)
    }

    /// Returns the venue's reason; a cut character shows as U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        let end = self.text.iter().position(|&byte| byte == 0).unwrap_or(self.text.len());
        String::from_utf8_lossy(&self.text[..end])
    }

    /// Returns the detail with a reason; of a longer one the first bytes.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        let bytes = &text.as_bytes()[..text.len().min(self.text.len())];
        self.text = [0; 64];
        self.text[..bytes.len()].copy_from_slice(bytes);
        self
    }
}

impl Default for ReportDetail {
    fn default() -> Self {
        <Self as FromZeros>::new_zeroed()
    }
}

impl OrderDenied {
    /// Returns the decimals of limit and value, where they are prices.
    pub fn price_decimals(&self) -> u8 {
        let decimals = self.more_decimals.saturating_add(DECIMALS.into());
        u8::try_from(decimals).map_or(0, |decimals| decimals.min(MAX_DECIMALS))
    }
}

impl MassCancel {
    /// Checks the code field.
    pub fn check(&self) -> Result<(), MessageError> {
        check_code("cancel_type", self.cancel_type, MassCancelType::from_code(self.cancel_type).is_some())
    }
}

impl StatusRequest {
    /// Returns whether it asks a venue for all orders of the OMS.
    pub fn asks_for_all_orders(&self) -> bool {
        self.original.0 == 0 && self.fills != 0
    }
}

impl ExecutionReport {
    /// Returns whether this is the last report of an answer about all orders: it names no order.
    pub fn ends_status_answer(&self) -> bool {
        self.exec_type == ExecType::OrderStatus.code() && self.order_id.0 == 0 && self.venue_order_id.0 == 0
    }

    /// Copies a report out of a frame and checks its codes.
    pub fn read(kind: u8, bytes: &[u8]) -> Result<Self, MessageError> {
        if kind != Kind::ExecutionReport.code() {
            return Err(MessageError::Kind(kind));
        }
        let report = Self::read_from_bytes(bytes).map_err(|_| MessageError::Length { kind, length: bytes.len() })?;
        check_code("exec_type", report.exec_type, ExecType::from_code(report.exec_type).is_some())?;
        check_code("status", report.status, OrdStatus::from_code(report.status).is_some())?;
        Ok(report)
    }
}

impl Side {
    /// Returns the opposite side.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }
}
