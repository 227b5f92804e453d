//! The messages: flat, little-endian, without padding, validated where they enter.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::{AccountId, ClientOrderId, ExecId, OrderId, Price, Quantity, SymbolId, VenueId, VenueOrderId};

#[cfg(target_endian = "big")]
compile_error!("messages are little-endian structs; this target is big-endian");

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal,)+ }) => {
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

            /// The value with this code, if there is one.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The code in a message.
            pub const fn code(self) -> u8 {
                self as u8
            }
        }
    };
}

pub(crate) use codes;

codes! {
    /// A frame's kind: which message its payload is. Kinds below 16 belong to the log itself.
    Kind {
        /// [`TopOfBook`]
        TopOfBook = 16,
        /// [`Trade`]
        Trade = 17,
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
        /// [`ExecutionReport`]
        ExecutionReport = 48,
        /// [`OrderDenied`]
        OrderDenied = 49,
    }
}
codes! {
    /// The side of an order (FIX 54).
    Side {
        /// Buys.
        Buy = 1,
        /// Sells.
        Sell = 2,
    }
}
codes! {
    /// How an order is priced (FIX 40).
    OrderType {
        /// At any price. The price field is zero.
        Market = 1,
        /// At this price or better.
        Limit = 2,
    }
}
codes! {
    /// How long an order works (FIX 59).
    TimeInForce {
        /// Until the day ends (ROD at the Taiwan Futures Exchange).
        Day = 0,
        /// Until it is canceled.
        GoodTillCancel = 1,
        /// Fills what it can at once; the rest is canceled.
        ImmediateOrCancel = 3,
        /// Fills whole at once or not at all.
        FillOrKill = 4,
    }
}
codes! {
    /// What an order does to a position (FIX 77).
    PositionEffect {
        /// The venue decides.
        Default = 0,
        /// Opens.
        Open = 1,
        /// Closes.
        Close = 2,
    }
}
codes! {
    /// Which orders a mass cancel means (FIX 530).
    MassCancelType {
        /// Those of one instrument.
        Symbol = 1,
        /// All.
        All = 7,
    }
}
codes! {
    /// What an execution report tells (FIX 150).
    ExecType {
        /// The venue has the order.
        New = 0,
        /// Canceled, on request or unsolicited.
        Canceled = 4,
        /// Replaced; the report carries the new price and leaves.
        Replaced = 5,
        /// A cancel request is on its way.
        PendingCancel = 6,
        /// The order was refused.
        Rejected = 8,
        /// Received, not yet at the venue.
        PendingNew = 10,
        /// Expired: the rest of an IOC, a whole FOK, or the day's end.
        Expired = 12,
        /// A replace request is on its way.
        PendingReplace = 14,
        /// A partial or full fill.
        Trade = 15,
        /// A fill has another quantity or price than was told; the report carries what holds.
        TradeCorrect = 16,
        /// A fill is taken back.
        TradeCancel = 17,
        /// How the order stands, on request; no event of it.
        OrderStatus = 18,
        /// A cancel or replace request was refused (FIX message 9); the order goes on.
        CancelRejected = 20,
        /// The order's trigger has fired: it is an order like any from here on.
        Triggered = 21,
    }
}
codes! {
    /// How something came to be known (FIX 1028).
    ManualOrderIndicator {
        /// The venue, or the OMS, said so.
        Automatic = 0,
        /// An admin has entered it by hand.
        Manual = 1,
    }
}
codes! {
    /// The state of an order (FIX 39).
    OrdStatus {
        /// Accepted, nothing filled.
        New = 0,
        /// Some filled, some working.
        PartiallyFilled = 1,
        /// All filled. Not terminal: an execution can be taken back.
        Filled = 2,
        /// Out for the day.
        DoneForDay = 3,
        /// Canceled.
        Canceled = 4,
        /// A cancel request is on its way.
        PendingCancel = 6,
        /// Refused.
        Rejected = 8,
        /// Halted by the venue.
        Suspended = 9,
        /// On its way to the venue, or queued here for a line.
        PendingNew = 10,
        /// Expired.
        Expired = 12,
        /// A replace request is on its way.
        PendingReplace = 14,
        /// What happened cannot be known; the exposure stays counted.
        Unknown = 21,
        /// Waits at the OMS for its trigger: no venue has heard of it.
        Armed = 22,
    }
}

/// The best bid and offer. One cache line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TopOfBook {
    /// Best bid.
    pub bid: Price,
    /// Open at the best bid.
    pub bid_quantity: Quantity,
    /// Best offer.
    pub ask: Price,
    /// Open at the best offer.
    pub ask_quantity: Quantity,
    /// The exchange's own time, nanoseconds since the Unix epoch, as precise as it gives it.
    pub event_ns: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// Zero.
    pub reserved: u32,
}

/// One trade at the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Trade {
    /// At this price.
    pub price: Price,
    /// So much.
    pub quantity: Quantity,
    /// The exchange's id of the trade.
    pub trade_id: u64,
    /// The exchange's own time, nanoseconds since the Unix epoch.
    pub event_ns: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// [`Side`] of the taker, as its code.
    pub aggressor: u8,
    /// Zero.
    pub reserved: [u8; 3],
}

/// A new order. One cache line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NewOrder {
    /// The sender's own id of this request: the client's id towards the OMS, the OMS's order id towards a venue.
    pub client_order_id: ClientOrderId,
    /// Limit price; zero for a market order.
    pub price: Price,
    /// How much.
    pub quantity: Quantity,
    /// Stamp of the tick that caused the order, in ticks of the host's clock; zero if none did.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// For whom.
    pub account: AccountId,
    /// [`Side`] as its code.
    pub side: u8,
    /// [`OrderType`] as its code.
    pub order_type: u8,
    /// [`TimeInForce`] as its code.
    pub time_in_force: u8,
    /// [`PositionEffect`] as its code.
    pub position_effect: u8,
    /// Zero.
    pub reserved: [u8; 4],
}

/// Asks to cancel an order: one of the sender's own, or, by the OMS's id, one of any session for an account that the
/// sender's session may trade for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CancelOrder {
    /// The sender's own id of this request.
    pub client_order_id: ClientOrderId,
    /// The sender's id of the order to cancel: that of its `NewOrder`, whatever replaces came after.
    pub original: ClientOrderId,
    /// Stamp of the tick that caused the request; zero if none did.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// For whom. Not read if `order_id` is not zero.
    pub account: AccountId,
    /// The OMS's id of the order to cancel, whatever session sent it; zero if `original` names it. Towards a venue zero.
    pub order_id: OrderId,
}

/// Asks for another price or total quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReplaceOrder {
    /// The sender's own id of this request.
    pub client_order_id: ClientOrderId,
    /// The sender's id of the order to change: that of its `NewOrder`.
    pub original: ClientOrderId,
    /// The new limit price.
    pub price: Price,
    /// The new total quantity, what is filled already included.
    pub quantity: Quantity,
    /// Stamp of the tick that caused the request; zero if none did.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// For whom.
    pub account: AccountId,
    /// Zero.
    pub reserved: [u8; 8],
}

/// Asks how an order stands; an OMS may ask a venue for all of its orders. Changes nothing, and uses no id up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StatusRequest {
    /// The sender's own id of this request; its answer carries it.
    pub client_order_id: ClientOrderId,
    /// The sender's id of the order: that of its `NewOrder`. Zero, with `fills`, for all orders of the sender.
    pub original: ClientOrderId,
    /// Zero.
    pub cause: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// For whom.
    pub account: AccountId,
    /// 1 to have the order's fills reported once more in front of the answer; zero otherwise. Only a venue that is told to
    /// by its OMS need do so.
    pub fills: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

/// Asks to cancel all orders of the sender's session and account. An OMS answers for each; venues get a cancel for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MassCancel {
    /// The sender's own id of this request.
    pub client_order_id: ClientOrderId,
    /// Stamp of the tick that caused the request; zero if none did.
    pub cause: u64,
    /// The instrument, if only its orders are meant.
    pub symbol: SymbolId,
    /// For whom.
    pub account: AccountId,
    /// [`MassCancelType`] as its code.
    pub cancel_type: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

/// What became of an order: from a venue to the OMS, and from the OMS to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ExecutionReport {
    /// The OMS's id of the order (towards a venue it is the client order id).
    pub order_id: OrderId,
    /// The id of the request that this report answers, as the receiver of the report knows it; zero if unsolicited.
    pub client_order_id: ClientOrderId,
    /// The venue's id of the order.
    pub venue_order_id: VenueOrderId,
    /// The venue's id of this execution; zero if the report is no fill.
    pub exec_id: ExecId,
    /// The venue's count of events of this order, from 1; zero where it gives none.
    pub venue_sequence: u64,
    /// Price of this fill; zero if the report is no fill.
    pub last_price: Price,
    /// Quantity of this fill; zero if the report is no fill.
    pub last_quantity: Quantity,
    /// Filled so far.
    pub cumulative_quantity: Quantity,
    /// Still working after this event.
    pub leaves_quantity: Quantity,
    /// The order's limit price after this event.
    pub price: Price,
    /// When the venue received the request or made the event, in ticks of the host's clock; zero if unknown.
    pub venue_stamp: u64,
    /// The instrument.
    pub symbol: SymbolId,
    /// For whom.
    pub account: AccountId,
    /// Why it was refused; zero if it was not.
    pub reason: u16,
    /// Which venue.
    pub venue: VenueId,
    /// [`ExecType`] as its code.
    pub exec_type: u8,
    /// [`OrdStatus`] as its code.
    pub status: u8,
    /// [`Side`] as its code.
    pub side: u8,
    /// [`ManualOrderIndicator`] as its code. What a venue says here is not read.
    pub manual: u8,
}

/// A request that a risk check refused, with the limit and the value that broke it.
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
    /// For whom.
    pub account: AccountId,
    /// Which check: the OMS's denial code.
    pub code: u16,
    /// Zero.
    pub reserved: u16,
}

/// Why bytes are not the message they claim to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The kind is not one of [`Kind`], or not one that belongs here.
    #[error("a message of kind {0} does not belong here; is the writer of another version?")]
    Kind(u8),
    /// The length is not that of the kind.
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
        /// Which field.
        field: &'static str,
        /// What it holds.
        code: u8,
    },
}

impl NewOrder {
    /// Checks the code fields.
    pub fn check(&self) -> Result<(), MessageError> {
        let unknown = |field, code| Err(MessageError::Code { field, code });
        if Side::from_code(self.side).is_none() {
            return unknown("side", self.side);
        }
        if OrderType::from_code(self.order_type).is_none() {
            return unknown("order_type", self.order_type);
        }
        if TimeInForce::from_code(self.time_in_force).is_none() {
            return unknown("time_in_force", self.time_in_force);
        }
        if PositionEffect::from_code(self.position_effect).is_none() {
            return unknown("position_effect", self.position_effect);
        }
        Ok(())
    }
}

impl MassCancel {
    /// Checks the code field.
    pub fn check(&self) -> Result<(), MessageError> {
        match MassCancelType::from_code(self.cancel_type) {
            Some(_) => Ok(()),
            None => Err(MessageError::Code { field: "cancel_type", code: self.cancel_type }),
        }
    }
}

impl StatusRequest {
    /// Whether it asks a venue for all orders of the OMS.
    pub fn is_about_all(&self) -> bool {
        self.original.0 == 0 && self.fills != 0
    }
}

impl ExecutionReport {
    /// Whether this is the last report of an answer about all orders: it names no order.
    pub fn ends_answer(&self) -> bool {
        self.exec_type == ExecType::OrderStatus.code() && self.order_id.0 == 0 && self.venue_order_id.0 == 0
    }

    /// Copies a report out of a frame and checks its codes.
    pub fn read(kind: u8, bytes: &[u8]) -> Result<Self, MessageError> {
        if kind != Kind::ExecutionReport.code() {
            return Err(MessageError::Kind(kind));
        }
        let report = Self::read_from_bytes(bytes).map_err(|_| MessageError::Length { kind, length: bytes.len() })?;
        if ExecType::from_code(report.exec_type).is_none() {
            return Err(MessageError::Code { field: "exec_type", code: report.exec_type });
        }
        if OrdStatus::from_code(report.status).is_none() {
            return Err(MessageError::Code { field: "status", code: report.status });
        }
        Ok(report)
    }
}

impl Side {
    /// The other side.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }
}
