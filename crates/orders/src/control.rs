//! What happens to the OMS itself: starts, lines, doubts, triggers, days, and what operators order. Inputs like all
//! others.

use tickpath_market::{
    AccountId, ClientOrderId, ExecId, OrderId, Price, Quantity, Request, SymbolId, VenueId, VenueOrderId,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A start of the OMS. Orders from here on have this epoch in their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Boot {
    /// Above every earlier one; below 2²⁴.
    pub epoch: u64,
    /// The host's boot: after another one stamps begin anew, and what waited for a venue may have left.
    pub boot_id: [u8; 16],
    /// The rate of the stamps that follow.
    pub ticks_per_second: u64,
    /// When, in nanoseconds since the Unix epoch.
    pub utc_ns: u64,
}

/// [`Kill::scope`]: everything.
pub const KILL_ALL: u8 = 1;
/// [`Kill::scope`]: one account.
pub const KILL_ACCOUNT: u8 = 2;
/// [`Kill::scope`]: one symbol.
pub const KILL_SYMBOL: u8 = 3;
/// [`Kill::scope`]: the journal's disk has failed. What waits and adds to the risk is refused at once. Only a start on a
/// sound disk turns it off.
pub const KILL_DISK: u8 = 4;

/// [`Kill::scope`]: one session.
pub const KILL_SESSION: u8 = 5;

/// What the scopes are called, wherever one is written or read.
const SCOPES: [(u8, &str); 5] = [
    (KILL_ALL, "firm"),
    (KILL_ACCOUNT, "account"),
    (KILL_SYMBOL, "symbol"),
    (KILL_DISK, "disk"),
    (KILL_SESSION, "session"),
];

/// What this [`Kill::scope`] is called; none if it is none.
pub fn scope_name(scope: u8) -> Option<&'static str> {
    SCOPES.iter().find(|(code, _)| *code == scope).map(|&(_, name)| name)
}

/// The [`Kill::scope`] that is called so, if an operator may name it: the disk's switch is the OMS's own.
pub fn scope_named(name: &str) -> Option<u8> {
    SCOPES.iter().find(|(code, called)| *called == name && *code != KILL_DISK).map(|&(code, _)| code)
}

/// A kill switch: while it is on, new orders and replaces are denied and cancels pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Kill {
    /// [`KILL_ALL`], [`KILL_ACCOUNT`], [`KILL_SYMBOL`], [`KILL_DISK`] or [`KILL_SESSION`].
    pub scope: u8,
    /// Zero is off, all else is on.
    pub on: u8,
    /// 1 cancels what works in the scope, too.
    pub cancel: u8,
    /// Zero.
    pub reserved: u8,
    /// The account's, the symbol's or the session's number; not read for other scopes.
    pub target: u32,
    /// The low half of its number in the operator's lane; zero if the OMS made it.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved_end: u32,
}

/// A venue can be reached, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Line {
    /// Which venue.
    pub venue: VenueId,
    /// 1 if it can.
    pub up: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// A session has come, or was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Login {
    /// Which session.
    pub session: u16,
    /// 1 if it has come.
    pub up: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// The line to the venue did not take a request: it is certain that it never left. It waits here from now on; once the
/// disk has failed, what adds to the risk is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Returned {
    /// When it was received, in ticks: it grows old from then on.
    pub received: u64,
    /// Where it was meant for.
    pub venue: VenueId,
    /// The request's [`Kind`](tickpath_market::Kind), as its code.
    pub kind: u8,
    /// Bytes of the request.
    pub length: u8,
    /// Where it lay in the lane of a line that its venue has not got it from: the shell's number. Zero if it never lay in
    /// a lane.
    pub place: u32,
    /// The request as it was said to the venue, then zeros.
    pub request: [u8; 56],
}

impl Returned {
    /// A request that came back.
    pub fn new(venue: VenueId, received: u64, request: &Request) -> Self {
        let bytes = request.as_bytes();
        let (kind, length) = (request.kind().code(), bytes.len() as u8);
        let mut returned = Self { received, venue, kind, length, place: 0, request: [0; 56] };
        returned.request[..bytes.len()].copy_from_slice(bytes);
        returned
    }

    /// The request; none if the bytes are none.
    pub fn request(&self) -> Option<Request> {
        Request::read(self.kind, self.request.get(..usize::from(self.length))?).ok()
    }
}

/// What waited longest for a venue may go now. It is checked again, with this reference price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Release {
    /// The order's id.
    pub order: u64,
    /// The request's id.
    pub request: u64,
    /// The reference price of the symbol; zero if there is none.
    pub reference_price: Price,
    /// Its age, in nanoseconds.
    pub reference_age_ns: u64,
    /// Where it goes.
    pub venue: VenueId,
    /// Zero.
    pub reserved: [u8; 6],
}

/// [`Doubt::lost`]: requests on their way to the venue.
pub const LOST_REQUESTS: u8 = 1;
/// [`Doubt::lost`]: reports of the venue.
pub const LOST_REPORTS: u8 = 2;
/// [`Doubt::lost`]: requests or reports of one order, whose id is in [`Doubt::messages`].
pub const LOST_ORDER: u8 = 3;

/// Messages between the OMS and a venue may be lost: lost requests put in doubt what waits for an answer, lost reports
/// every live order. Each becomes `Unknown`, is asked for, and is never sent again. A question that cannot leave is asked
/// when it can. Where reports are lost nothing ends the doubt that may be from before: only the answer to a later question,
/// the order's end, or an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Doubt {
    /// How many are gone, if that is known; with [`LOST_ORDER`] the order's id.
    pub messages: u64,
    /// Which venue.
    pub venue: VenueId,
    /// [`LOST_REQUESTS`], [`LOST_REPORTS`] or [`LOST_ORDER`].
    pub lost: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// An operator says what became of an order. What it says of the filled quantity is booked; fills, corrections and busts of
/// what is booked so change nothing twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Resolve {
    /// The order's id.
    pub order: u64,
    /// All that was filled of it.
    pub cumulative_quantity: Quantity,
    /// [`OrdStatus`](tickpath_market::OrdStatus) as its code: `New` (it works), `Canceled`, `Expired`, `Rejected`, `Filled`.
    pub status: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// The low half of its number in the operator's lane.
    pub lane_sequence: u32,
    /// Who says so and why: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// An operator asks the venue how an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Inquire {
    /// The order's id.
    pub order: u64,
    /// The low half of its number in the operator's lane.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved: u32,
}

/// An admin has a venue asked for all orders of this OMS: how each stands, behind its fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reconcile {
    /// Which venue.
    pub venue: VenueId,
    /// Zero.
    pub reserved: [u8; 2],
    /// The low half of its number in the operator's lane.
    pub lane_sequence: u32,
    /// Name of the admin and the reason: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// An operator cancels what works in a scope, of whatever session. Nothing is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CancelScope {
    /// As [`Kill::scope`], but not [`KILL_DISK`].
    pub scope: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// The account's, symbol's or session's number; not read for other scopes.
    pub target: u32,
    /// The low half of its number in the operator's lane.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved_end: u32,
}

/// An admin enters an order that its venue works and that is not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EnterOrder {
    /// The id that it has for its session; not used there before.
    pub client_order_id: ClientOrderId,
    /// What it was sent to the venue as; zero if that is not known.
    pub sent_as: OrderId,
    /// The venue's own id of it; zero if that is not known. One of the two must be.
    pub venue_order_id: VenueOrderId,
    /// Its limit price; zero for a market order.
    pub price: Price,
    /// All that it asks for, what is filled included.
    pub quantity: Quantity,
    /// The instrument.
    pub symbol: SymbolId,
    /// For whom.
    pub account: AccountId,
    /// Where it works.
    pub venue: VenueId,
    /// The session that it belongs to from now on.
    pub session: u16,
    /// [`Side`](tickpath_market::Side) as its code.
    pub side: u8,
    /// [`OrderType`](tickpath_market::OrderType) as its code.
    pub order_type: u8,
    /// [`TimeInForce`](tickpath_market::TimeInForce) as its code.
    pub time_in_force: u8,
    /// Zero.
    pub reserved: u8,
    /// The low half of its number in the operator's lane.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved_end: u32,
    /// Who says so and why: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// An admin enters a fill that never came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EnterFill {
    /// The order's id.
    pub order: u64,
    /// The venue's id of the execution. Not zero.
    pub exec_id: ExecId,
    /// The venue's number of the event; zero if it gives none, or that is not known.
    pub venue_sequence: u64,
    /// At this price.
    pub price: Price,
    /// So much.
    pub quantity: Quantity,
    /// The low half of its number in the operator's lane.
    pub lane_sequence: u32,
    /// Zero.
    pub reserved: u32,
    /// Who says so and why: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// An admin enters the position that an account began the day with, or a change of a position. No trade: it counts in no
/// traded value and in no count of fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EnterPosition {
    /// The net position, or the change of it; negative is sold.
    pub quantity: Quantity,
    /// The price from which its profit counts; zero for the latest price that is known, unless `is_priced`.
    pub price: Price,
    /// The account.
    pub account: AccountId,
    /// The instrument.
    pub symbol: SymbolId,
    /// 1 if the quantity is a change.
    pub adjusts: u8,
    /// 1 if a price was given: it counts though it is zero.
    pub is_priced: u8,
    /// Zero.
    pub reserved: [u8; 2],
    /// The low half of its number in the operator's lane.
    pub lane_sequence: u32,
    /// Who says so and why: text, padded with zeros. Not empty.
    pub reason: [u8; 32],
}

/// Time has passed: an order whose events have missed a number for too long is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Timer {
    /// Zero.
    pub reserved: u64,
}

/// The trading day has ended: day orders expire, what is done is forgotten, client ids and credit begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DayEnd {
    /// Which day, as 20261122.
    pub day: u32,
    /// The low half of its number in the operator's lane; zero if the OMS made it.
    pub lane_sequence: u32,
}

/// The trigger of an armed order holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Fired {
    /// The order's id.
    pub order: u64,
    /// The stamp of the tick that has fired it, in ticks of the host's clock.
    pub tick: u64,
    /// What it came to: the price of the condition that held last.
    pub price: Price,
    /// The reference price of the order's symbol, for the checks; zero if there is none.
    pub reference_price: Price,
    /// Its age, in nanoseconds.
    pub reference_age_ns: u64,
    /// The instrument whose price that is.
    pub symbol: SymbolId,
    /// Which price of it: a [`TriggerPriceType`](tickpath_market::TriggerPriceType) as its code.
    pub price_type: u8,
    /// Zero.
    pub reserved: [u8; 3],
}
