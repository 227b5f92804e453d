//! Inputs about the OMS itself: starts, lines, losses, triggers, days, and admin commands. They are journaled and
//! replayed like all other inputs.

use tickpath_market::{
    AccountId, ClientOrderId, ExecId, OrderId, Price, Quantity, Request, SymbolId, VenueId, VenueOrderId,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Start of the OMS. Orders accepted from here on have this epoch in their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Boot {
    /// Greater than every earlier epoch, and below 2²⁴.
    pub epoch: u64,
    /// Boot id of the host. After another boot stamps begin anew, and requests that waited for a venue may have left.
    pub boot_id: [u8; 16],
    /// Rate of the stamps that follow, in ticks per second.
    pub ticks_per_second: u64,
    /// Time of the start, in nanoseconds since the Unix epoch.
    pub utc_ns: u64,
}

/// [`KillSwitch::scope`]: everything.
pub const KILL_ALL: u8 = 1;
/// [`KillSwitch::scope`]: one account.
pub const KILL_ACCOUNT: u8 = 2;
/// [`KillSwitch::scope`]: one symbol.
pub const KILL_SYMBOL: u8 = 3;
/// [`KillSwitch::scope`]: the journal's disk has failed. Waiting requests that add risk are refused at once, and only a
/// start on a sound disk turns the switch off.
pub const KILL_DISK: u8 = 4;
/// [`KillSwitch::scope`]: one session.
pub const KILL_SESSION: u8 = 5;

/// Names of the scopes, for input and output alike.
const SCOPES: [(u8, &str); 5] = [
    (KILL_ALL, "firm"),
    (KILL_ACCOUNT, "account"),
    (KILL_SYMBOL, "symbol"),
    (KILL_DISK, "disk"),
    (KILL_SESSION, "session"),
];

/// Returns the name of a [`KillSwitch::scope`]; none for an unknown code.
pub fn scope_name(scope: u8) -> Option<&'static str> {
    SCOPES.iter().find(|(code, _)| *code == scope).map(|&(_, name)| name)
}

/// Returns the [`KillSwitch::scope`] with this name, if an operator may use it: only the OMS sets the disk's switch.
pub fn scope_by_name(name: &str) -> Option<u8> {
    SCOPES.iter().find(|(code, called)| *called == name && *code != KILL_DISK).map(|&(code, _)| code)
}

/// Kill switch: while it is on, new orders and replaces are denied and cancels pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct KillSwitch {
    /// [`KILL_ALL`], [`KILL_ACCOUNT`], [`KILL_SYMBOL`], [`KILL_DISK`] or [`KILL_SESSION`].
    pub scope: u8,
    /// Zero turns the switch off, any other value on.
    pub on: u8,
    /// 1 also cancels the working orders in the scope.
    pub cancel: u8,
    /// Zero.
    pub reserved: u8,
    /// Number of the account, symbol or session; ignored for other scopes.
    pub target: u32,
    /// Low half of the command's sequence number in the operator's lane; zero if the OMS made it.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved_end: u32,
}

/// Change of a venue's connection: up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct VenueConnection {
    /// Venue whose connection changed.
    pub venue: VenueId,
    /// 1 if the venue can be reached.
    pub up: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// Logon or loss of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SessionConnection {
    /// Session that logged on or was lost.
    pub session: u16,
    /// 1 for a logon, zero for a loss.
    pub up: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// Request that never left, or that its venue states it does not have. It waits in the OMS; once the disk has failed, a
/// request that adds risk is refused instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UnsentRequest {
    /// Time at which the request was received, in ticks: its age counts from then.
    pub received: u64,
    /// Venue that the request was meant for.
    pub venue: VenueId,
    /// The request's [`Kind`](tickpath_market::Kind), as its code.
    pub kind: u8,
    /// Length of the request in bytes.
    pub length: u8,
    /// Place of the request in a line's lane, from which the venue did not receive it, as the shell's number. Zero if
    /// the request was never in a lane.
    pub place: u32,
    /// The request as addressed to the venue, padded with zeros.
    pub request: [u8; 56],
}

impl UnsentRequest {
    /// Builds the record of a request that came back.
    pub fn new(venue: VenueId, received: u64, request: &Request) -> Self {
        let bytes = request.as_bytes();
        let (kind, length) = (request.kind().code(), bytes.len() as u8);
        let mut returned = Self { received, venue, kind, length, place: 0, request: [0; 56] };
        returned.request[..bytes.len()].copy_from_slice(bytes);
        returned
    }

    /// Returns the request; none if the bytes hold no request.
    pub fn request(&self) -> Option<Request> {
        Request::read(self.kind, self.request.get(..usize::from(self.length))?).ok()
    }
}

/// Permission for the request that waited longest for a venue to leave, after another check with this reference price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Release {
    /// Id of the order.
    pub order: u64,
    /// Id of the request at the venue.
    pub request: u64,
    /// Reference price of the symbol; zero if there is none.
    pub reference_price: Price,
    /// Age of the reference price, in nanoseconds.
    pub reference_age_ns: u64,
    /// Venue that the request goes to.
    pub venue: VenueId,
    /// Zero.
    pub reserved: [u8; 6],
}

/// [`MessageLoss::lost`]: requests in flight to the venue.
pub const LOST_REQUESTS: u8 = 1;
/// [`MessageLoss::lost`]: reports of the venue.
pub const LOST_REPORTS: u8 = 2;
/// [`MessageLoss::lost`]: requests or reports of one order, whose id is in [`MessageLoss::messages`].
pub const LOST_ORDER: u8 = 3;

/// Possible loss of messages between the OMS and a venue: lost requests put orders with an outstanding request in
/// doubt, lost reports every live order. Each becomes `Unknown` and is never sent again; the venue is asked for its
/// status as soon as it can be reached. After a loss of reports only an answer to a later status request, the order's
/// end or an operator ends the doubt, because any other report may be from before the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MessageLoss {
    /// Number of lost messages, if known; with [`LOST_ORDER`] the order's id.
    pub messages: u64,
    /// Venue whose messages may be lost.
    pub venue: VenueId,
    /// [`LOST_REQUESTS`], [`LOST_REPORTS`] or [`LOST_ORDER`].
    pub lost: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// Admin command that states the outcome of an order in doubt. The core books the filled quantity it states; later
/// fills, corrections and busts of that quantity are not booked twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Resolve {
    /// Id of the order.
    pub order: u64,
    /// Total filled quantity of the order.
    pub cumulative_quantity: Quantity,
    /// [`OrdStatus`](tickpath_market::OrdStatus) as its code: `New` (works), `Canceled`, `Expired`, `Rejected`,
    /// `Filled`.
    pub status: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Low half of the command's sequence number in the operator's lane.
    pub lane_sequence: u32,
    /// Name of the operator and the reason: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// Admin command that asks the venue for an order's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct QueryStatus {
    /// Id of the order.
    pub order: u64,
    /// Low half of the command's sequence number in the operator's lane.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved: u32,
}

/// Admin command that asks a venue for all orders of this OMS: each order's fills, then its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reconcile {
    /// Venue to ask.
    pub venue: VenueId,
    /// Zero.
    pub reserved: [u8; 2],
    /// Low half of the command's sequence number in the operator's lane.
    pub lane_sequence: u32,
    /// Name of the admin and the reason: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// Admin command that cancels the working orders in a scope, of all sessions. It turns no kill switch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CancelScope {
    /// As [`KillSwitch::scope`], but not [`KILL_DISK`].
    pub scope: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Number of the account, symbol or session; ignored for other scopes.
    pub target: u32,
    /// Low half of the command's sequence number in the operator's lane.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved_end: u32,
}

/// Admin command that enters an order that its venue works and the core does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EnterOrder {
    /// Client id of the order in its session; not used there before.
    pub client_order_id: ClientOrderId,
    /// Id under which the order was sent to the venue; zero if unknown.
    pub sent_as: OrderId,
    /// The venue's own id of the order; zero if unknown. At least one of the two ids must be known.
    pub venue_order_id: VenueOrderId,
    /// Limit price; zero for a market order.
    pub price: Price,
    /// Total quantity, the filled part included.
    pub quantity: Quantity,
    /// Instrument of the order.
    pub symbol: SymbolId,
    /// Account of the order.
    pub account: AccountId,
    /// Venue that works the order.
    pub venue: VenueId,
    /// Session that owns the order from now on.
    pub session: u16,
    /// [`Side`](tickpath_market::Side) as its code.
    pub side: u8,
    /// [`OrderType`](tickpath_market::OrderType) as its code.
    pub order_type: u8,
    /// [`TimeInForce`](tickpath_market::TimeInForce) as its code.
    pub time_in_force: u8,
    /// Zero.
    pub reserved: u8,
    /// Low half of the command's sequence number in the operator's lane.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved_end: u32,
    /// Name of the admin and the reason: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// Admin command that enters a fill whose report never arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EnterFill {
    /// Id of the order.
    pub order: u64,
    /// The venue's execution id. Not zero.
    pub exec_id: ExecId,
    /// Venue sequence of the fill; zero if the venue does not number or the sequence is unknown.
    pub venue_sequence: u64,
    /// Price of the fill.
    pub price: Price,
    /// Quantity of the fill.
    pub quantity: Quantity,
    /// Low half of the command's sequence number in the operator's lane.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved: u32,
    /// Name of the admin and the reason: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// Admin command that enters an account's position at the start of the day, or a change of a position. It is no trade:
/// it adds nothing to the traded value or the count of fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EnterPosition {
    /// Net position, or the change of it; negative if sold.
    pub quantity: Quantity,
    /// Price from which the position's profit counts; zero for the latest known price, unless `is_priced`.
    pub price: Price,
    /// Account that holds the position.
    pub account: AccountId,
    /// Instrument of the position.
    pub symbol: SymbolId,
    /// 1 if the quantity is a change of the position.
    pub adjusts: u8,
    /// 1 if a price was given: it counts even if it is zero.
    pub is_priced: u8,
    /// Zero.
    pub reserved: [u8; 2],
    /// Low half of the command's sequence number in the operator's lane.
    pub lane_sequence: u32,
    /// Name of the admin and the reason: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// Check for overdue sequence gaps: an order that has missed a venue sequence for too long is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GapTimer {
    /// Zero.
    pub reserved: u64,
}

/// Time to end the good-till-date orders whose end time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ExpiryTimer {
    /// Zero.
    pub reserved: u64,
}

/// End of the trading day: day orders expire, done orders are dropped, and client ids and credit begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DayEnd {
    /// The day in the form 20261122.
    pub day: u32,
    /// Low half of the command's sequence number in the operator's lane; zero if the OMS made it.
    pub lane_sequence: u32,
}

/// Fired trigger of an armed order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TriggerFired {
    /// Id of the order.
    pub order: u64,
    /// Stamp of the tick that fired the trigger, in ticks of the host's clock.
    pub tick: u64,
    /// Price that met the trigger: that of the condition that held last.
    pub price: Price,
    /// Reference price of the order's symbol, for the checks; zero if there is none.
    pub reference_price: Price,
    /// Age of the reference price, in nanoseconds.
    pub reference_age_ns: u64,
    /// Instrument whose price met the trigger.
    pub symbol: SymbolId,
    /// Kind of that price: a [`TriggerPriceType`](tickpath_market::TriggerPriceType) as its code.
    pub price_type: u8,
    /// Zero.
    pub reserved: [u8; 3],
}
