//! A simulated venue: price-time priority matching of limit, market, IOC and FOK orders, cancels and replaces, with an
//! execution report for each event. It makes its market from the recorded top of book, so that orders fill at real
//! prices.
//!
//! ```text
//!     requests ──> SimVenue ─┬── used ids                ids of all orders so far
//!                            ├── known orders            place of each resting order, outcome of ended ones
//!                            ├── fills of the day        order of each fill, its present price and quantity
//!     ticks ─────> maker ────┴── OrderBook, per symbol ─┐
//!     operator                                          ├── levels, best last ── queue ── order, order, quote, order
//!     reports <── one for each event of an order <──────┘
//! ```
//!
//! A [`SimVenue`] is pure: no I/O and no clock. The stamp of arrival is a parameter, and the same calls give the same
//! reports. It identifies clients by order ids and accounts alone. A [`VenueEngine`] is a venue on its lanes, with a
//! journal if it must survive a crash (`docs/design/venue-restart.md`). [`run`] is a venue as a process, configured by
//! a file ([`Settings`]): it serves its OMS over lanes and sockets, keeps its market moving while the OMS is away, and
//! without ticks publishes configured prices. It injects faults ([`InjectedFaults`]) on request.
//!
//! # Rules
//!
//! * **Ids.** A [`SimVenue`] has one space of order ids. The first `NewOrder` uses up its id, even if it is rejected;
//!   id zero is invalid. A cancel, replace or status request names its order by that id alone: its symbol and account
//!   are not compared, and its own id is only echoed.
//! * **Owners.** At a [`VenueEngine`] each OMS that names itself in its logon has order ids of its own, which may equal
//!   those of another OMS, and reaches its own orders only: an order of another OMS is unknown to it, its mass cancel
//!   covers its own orders, and reports go to lines of the order's owner. Lanes, and lines that name no OMS, share one
//!   owner. An OMS that makes its lanes anew for another journal stays that owner, and can cancel the orders that it
//!   finds here.
//! * **New order.** `New` comes first, then a `Trade` for each fill. The rest of an IOC or a market order is `Expired`.
//!   A FOK that cannot fill whole is `New`, then `Expired`, and trades nothing. A limit price must be above zero, the
//!   price field of a market order must be zero.
//! * **Instructions.** A post-only order that would trade at once is `Rejected` before it is accepted, and so is a
//!   post-only market, IOC or FOK order, which cannot rest. The order stays post-only: a replace by which it would
//!   trade at once is refused. An order with reduce-only, a self-trade mode or a trade mode is `Rejected`: the venue
//!   has no positions and no margins.
//! * **Matching.** Best price first, then oldest first, at the price of the resting order. In each match the taker's
//!   report comes before the resting order's. Two orders of one account may trade with each other.
//! * **Replace.** The same price with the same or a lower total keeps its queue place. Any other replace moves to the
//!   end of its queue, and may trade at once: `Replaced`, then its trades. A total at or below the filled quantity is
//!   cut to that quantity: `Replaced`, with the status `Filled` and nothing left. The order id stays that of the
//!   `NewOrder`.
//! * **Status.** `OrderStatus` is the order as it stands, or as it ended today, with the count of its events so far; it
//!   is no event itself. If the request asks for `fills`, each fill of the order comes first, as it was reported,
//!   unless it was busted or corrected since. For an id never used here the status is `Rejected`, for an order that
//!   ended on an earlier day it is `Unknown`; both have a [`RejectReason`] and otherwise echo the request.
//! * **Status of all.** A request with `fills` that names order zero is answered with the fills and the `OrderStatus`
//!   of each order of its sender that rests or ended today, in the order of acceptance, and then with an `OrderStatus`
//!   of order zero, reason zero. The whole answer carries the request's id and goes back by the request's route.
//! * **Mass cancel.** The resting orders of the account (and symbol) are `Canceled`, the oldest first, each with the id
//!   of the request. Where no order rests, no report is sent. An unknown type is a `CancelRejected` of order zero.
//! * **Market maker.** A tick withdraws both quotes of its symbol; then the new ones enter like orders, the bid first,
//!   each behind the orders at its price. Client orders that a quote crosses fill at their own price, up to the quote's
//!   quantity, and client fills use the quote up until the next tick. A price or quantity that is not above zero
//!   is no quote on that side. A tick whose bid is at or above its offer is no market: it leaves no quotes at all.
//! * **Busts and corrections** are the operator's, of fills of the day, by execution id; the two sides of a trade are
//!   two fills. `TradeCancel` carries the fill as it held until then, `TradeCorrect` as it holds now, and the filled
//!   quantity changes by the difference. The open quantity never changes: a resting order keeps it, with a total that
//!   is the sum of filled and open, and an ended order keeps the status that it ended with.
//! * **End of day.** Day orders expire, the oldest first. Good-till-canceled orders and the maker's quotes keep their
//!   places. Ended orders are forgotten with their fills. Ids stay used.
//! * **Reports.** `client_order_id` is the request for all effects of that request, trades included, and zero for the
//!   fill of a resting order and for the operator's actions. `venue_sequence` counts the events of an order from 1.
//!   `exec_id` is the venue's count of fills, the fill's own id in a bust or correction, and zero in all other reports.
//! * **Refusals.** The reason is a [`RejectReason`]. A rejection is event 1 of its order id, unless the id is zero or a
//!   duplicate: then the sequence is zero, because the report is no event of the order that had the id first. A
//!   refused cancel or replace of a resting order is an event of that order, which keeps working. A refused cancel or
//!   replace of any other order has sequence and quantities zero and, as in FIX, the status `Rejected`. All reports but
//!   these and the status of unknown orders carry symbol, account and side of the order.
//!
//! # Invariants
//!
//! * A venue does not know its client's OMS: this crate never uses `oms-journal`, `oms-core` or `oms-risk`.
//! * Connections and lines are bounded, whatever they send, and a name from the wire is escaped before it is printed.

mod acceptor;
mod book;
mod day_end;
mod engine;
mod error;
mod event;
mod faults;
mod fills;
mod input;
mod journal;
mod journal_fields;
mod known_orders;
mod lanes;
mod line_requests;
mod line_sessions;
mod listeners;
mod operator;
mod order;
mod order_queue;
mod order_terms;
mod owners;
mod quote_publisher;
mod recover;
mod reject;
mod report;
mod server;
mod settings;
mod status;
mod used_ids;
mod venue;

pub use book::OrderBook;
pub use day_end::{EndDayError, end_day};
pub use engine::VenueEngine;
pub use error::{EngineError, OperatorError, RecoverError, VenueServerError};
pub use event::VenueEvent;
pub use faults::{Chance, FaultDice, InjectedFaults, ParseChanceError};
pub use fills::FillError;
pub use journal::RULES_VERSION;
pub use journal_fields::{FieldValue, JournalRecord};
pub use order::BookOrder;
pub use order_queue::BookSlot;
pub use recover::EngineConfig;
pub use reject::RejectReason;
pub use server::{VenueControl, run};
pub use settings::{Settings, ThreadSettings, VenueInitError, VenueSettingsError, init};
pub use venue::{Config, SimVenue};
