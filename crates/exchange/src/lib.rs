//! A simulated venue: price-time priority matching of limit, market, IOC and FOK orders, cancels and replaces, told in
//! execution reports. It makes its market from the recorded top of book, so that orders fill against real prices.
//!
//! ```text
//!     requests ──> Venue ──┬── used ids                 was this id here before?
//!                          ├── order id -> place        where does it rest?
//!     ticks ─────> maker ──┴── Book, one a symbol ──┐
//!                                                   ├── levels, best last ── queue ── order, order, quote, order
//!     reports <── one for each event of an order <──┘
//! ```
//!
//! Everything here is pure: no I/O and no clock. The stamp of arrival is a parameter, and the same calls give the same
//! reports. The venue knows nothing of its client but ids.
//!
//! # Rules
//!
//! * **Ids.** A [`Venue`] has one space of order ids. An id is used up by its first `NewOrder`, even a rejected one;
//!   zero is none. A cancel or replace names its order by that id alone: its symbol and account are not compared,
//!   and its own id is only handed back.
//! * **New order.** `New` comes first, then a `Trade` for each fill. The rest of an IOC or a market order is `Expired`.
//!   A FOK that cannot fill whole is `New`, then `Expired`, and trades nothing. A limit price must be above zero, the
//!   price field of a market order must be zero.
//! * **Matching.** Best price first, then first come; at the price of the order that rests. Of each match the taker's
//!   report comes before the resting order's. Two orders of one account may trade with each other.
//! * **Replace.** The same price with the same or a lower total keeps its place. Anything else goes to the end of its
//!   queue, and may trade at once: `Replaced`, then its trades. A total at or below what is filled is cut to what is
//!   filled: `Replaced`, with the status `Filled` and nothing left. The order id stays that of the `NewOrder`.
//! * **Market maker.** A tick withdraws both quotes of its symbol; then the new ones enter like orders, the bid first,
//!   each behind what rests at its price. Client orders that a quote crosses fill at their own price, as far as its
//!   quantity goes, and client fills use the quote up until the next tick. A price or quantity that is not above zero
//!   is no quote on that side. A tick whose bid is at or above its offer is no market: it leaves no quotes at all.
//! * **Reports.** `client_order_id` is the request for what that request did, trades included, and zero for the fill of
//!   a resting order. `venue_sequence` counts the events of an order from 1. `exec_id` is the venue's count of fill
//!   reports, and zero in all other reports.
//! * **Refusals.** The reason is a [`Reject`]. A rejection is event 1 of its order id, unless the id is zero or a
//!   duplicate: then the sequence is zero, because the report is no event of the order that had the id first. A
//!   refused cancel or replace of an order that rests is an event of it, and the order goes on. One of an order that
//!   does not rest here has sequence and quantities zero and, as in FIX, the status `Rejected`.
//!
//! # Memory
//!
//! A resting order takes 64 bytes, and 40 to 80 in the index, which is kept half empty. An order that is done leaves
//! one bit in the set of used ids.

mod book;
mod line;
mod order;
mod queue;
mod reject;
mod report;
mod used;
mod venue;

pub use book::Book;
pub use line::{Line, LineError};
pub use order::Order;
pub use queue::Slot;
pub use reject::Reject;
pub use venue::{Config, Venue};
