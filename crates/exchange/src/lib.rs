//! A simulated venue: price-time priority matching of limit, market, IOC and FOK orders, cancels and replaces, told in
//! execution reports. It makes its market from the recorded top of book, so that orders fill against real prices.
//!
//! ```text
//!     requests ──> Venue ──┬── used ids                 was this id ever here?
//!                          ├── known orders             where does it rest, or how did it end today?
//!                          ├── fills of the day         which order had it, and what holds of it?
//!     ticks ─────> maker ──┴── Book, one a symbol ──┐
//!     operator                                      ├── levels, best last ── queue ── order, order, quote, order
//!     reports <── one for each event of an order <──┘
//! ```
//!
//! A [`Venue`] is pure: no I/O and no clock. The stamp of arrival is a parameter, and the same calls give the same
//! reports. It knows nothing of its client but ids. A [`Line`] is a venue on its lanes, with a journal if it is to
//! come back after it was killed.
//!
//! # Rules
//!
//! * **Ids.** A [`Venue`] has one space of order ids. An id is used up by its first `NewOrder`, even a rejected one;
//!   zero is none. A cancel, replace or status request names its order by that id alone: its symbol and account are not
//!   compared, and its own id is only handed back.
//! * **Owners.** At a [`Line`] each OMS that names itself in its logon has order ids of its own, which may be those of
//!   another OMS, and reaches its own orders only: what it never ordered is unknown to it, its mass cancel means its own
//!   orders, and reports go to lines of the order's owner. Lanes, and lines that name no OMS, are one owner together. An
//!   OMS that makes its lanes anew for another journal is still that owner, and can cancel what it finds here.
//! * **New order.** `New` comes first, then a `Trade` for each fill. The rest of an IOC or a market order is `Expired`.
//!   A FOK that cannot fill whole is `New`, then `Expired`, and trades nothing. A limit price must be above zero, the
//!   price field of a market order must be zero.
//! * **Matching.** Best price first, then first come; at the price of the order that rests. Of each match the taker's
//!   report comes before the resting order's. Two orders of one account may trade with each other.
//! * **Replace.** The same price with the same or a lower total keeps its place. Anything else goes to the end of its
//!   queue, and may trade at once: `Replaced`, then its trades. A total at or below what is filled is cut to what is
//!   filled: `Replaced`, with the status `Filled` and nothing left. The order id stays that of the `NewOrder`.
//! * **Status.** `OrderStatus` is the order as it stands, or as it ended today, with the count of its events so far; it
//!   is no event itself. Where the request asks for `fills`, each fill of the order comes first, as it was reported, unless
//!   it was taken back or corrected since. For an id that never was here the status is `Rejected`, for an order that was done on an earlier
//!   day it is `Unknown`; both have a [`Reject`] and nothing else but what the request named.
//! * **Status of all.** A question with `fills` that names order zero is answered with the fills and the `OrderStatus` of each
//!   order of its sender that rests or was done today, in the order in which they were accepted, and then with an
//!   `OrderStatus` of order zero, reason zero. All of it carries the id of the question and goes the way that it came.
//! * **Mass cancel.** What rests of the account (and symbol) is `Canceled`, the oldest order first, each with the id of
//!   the request. Where nothing rests nothing is said. An unknown type is a `CancelRejected` of order zero.
//! * **Market maker.** A tick withdraws both quotes of its symbol; then the new ones enter like orders, the bid first,
//!   each behind what rests at its price. Client orders that a quote crosses fill at their own price, as far as its
//!   quantity goes, and client fills use the quote up until the next tick. A price or quantity that is not above zero
//!   is no quote on that side. A tick whose bid is at or above its offer is no market: it leaves no quotes at all.
//! * **Busts and corrections** are the operator's, of fills of the day, by execution id; the two sides of a trade are two
//!   fills. `TradeCancel` carries the fill as it held until then, `TradeCorrect` as it holds now, and what is filled
//!   changes by the difference. What is open never does: an order that rests goes on with what is open and a total that
//!   is the sum of both, an order that is done stays done with the status that it ended with.
//! * **End of day.** Day orders expire, the oldest first. Orders that are good till canceled and the maker's quotes keep
//!   their places. What is done is forgotten, and the fills with it. Ids stay used.
//! * **Reports.** `client_order_id` is the request for what that request did, trades included, and zero for the fill of
//!   a resting order and for what the operator did. `venue_sequence` counts the events of an order from 1. `exec_id` is
//!   the venue's count of fills, that of the fill for what changes one, and zero in all other reports.
//! * **Refusals.** The reason is a [`Reject`]. A rejection is event 1 of its order id, unless the id is zero or a
//!   duplicate: then the sequence is zero, because the report is no event of the order that had the id first. A
//!   refused cancel or replace of an order that rests is an event of it, and the order goes on. One of an order that
//!   does not rest here has sequence and quantities zero and, as in FIX, the status `Rejected`. All reports but these and
//!   the status of what is not known carry symbol, account and side of the order.
//!
//! # Journal
//!
//! A line with a journal ([`Line::open`]) writes each input down before it applies it: requests with their place in
//! their lane, ticks that moved its market, what the operator did. A restart replays them to the same books, ids and
//! counts, reads each lane on behind what the journal holds, and sends what the report lane does not hold.
//!
//! * A report's identity is its place in its lane: the venue counts what it has said since it met the lane, and the lane
//!   counts what it holds. A lane that holds more than was said is not this venue's, or the journal has lost its end.
//! * A lane of another owner (of another journal, or of another life of it) is another lane. The journal says where the
//!   venue met it: requests are read from its beginning, and reports are those that the venue says from then on. What
//!   was said before and never read is gone; who misses it asks for the status of its orders.
//! * A lane without an owner counts as the same lane, unless it ends before the place that the journal knows.
//! * A journal is of one venue number and one [`RULES_VERSION`]. Symbols may come, and none goes.
//!
//! Lines that come by sockets are told apart in the journal, too: each has numbers both ways, which it holds, so that a line
//! that comes back is told exactly what the venue has, and hears what it lacks. So many are known at once, and a further one
//! takes the place of a line that is gone, has no order that rests, and has confirmed all its reports.
//!
//! The journal survives the end of any process. That it survives a loss of power is not waited for.
//!
//! # Process
//!
//! [`run`] is a venue as a process, told by a file ([`Settings`]): it waits for the lanes of its OMS, serves it, goes on
//! with its market while the OMS is away, and joins whatever lanes the OMS has when it is back. Without ticks it quotes
//! what it is told to, and tells its OMS so. What goes wrong on purpose ([`Faults`]) is thrown by dice that are a part of
//! the venue's state, so that a restart comes to the same lanes in spite of it.
//!
//! # Memory
//!
//! A resting order takes 64 bytes, and as every order of the day 48 in the table of known orders, which doubles its
//! blocks of 64 ids as they fill. A fill takes 40 until the day ends. An order of an earlier day leaves one bit in the
//! set of used ids, and a journal is as long as all its days. An order of an OMS that names itself takes some 80 more until
//! it is forgotten: its id, and the way to its line.

mod ask;
mod book;
mod doors;
mod ending;
mod error;
mod event;
mod faults;
mod feed;
mod fills;
mod gate;
mod input;
mod journal;
mod known;
mod lanes;
mod line;
mod operator;
mod order;
mod owners;
mod queue;
mod recover;
mod reject;
mod report;
mod server;
mod sessions;
mod settings;
mod shown;
mod terms;
mod used;
mod venue;
mod visit;

pub use book::Book;
pub use ending::{EndDayError, end_day};
pub use error::{LineError, OperatorError, RecoverError, ServerError};
pub use event::Event;
pub use faults::{Chance, Faults, ParseChanceError};
pub use fills::FillError;
pub use journal::RULES_VERSION;
pub use line::Line;
pub use order::Order;
pub use queue::Slot;
pub use recover::LineConfig;
pub use reject::Reject;
pub use server::{Orders, run};
pub use settings::{InitError, Settings, Wrong, init};
pub use shown::{JournalRecord, Shown};
pub use venue::{Config, Venue};
