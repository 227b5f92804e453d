//! A line to a venue: what an order management system asks of whoever speaks an exchange's protocol.
//!
//! ```text
//!   OMS ── requests lane, a log ──> line agent ── Line::send ──> the exchange
//!   OMS <── journal <── sequencer <── line agent <── Line::poll ── the exchange
//! ```
//!
//! A desk adds an exchange by implementing [`Line`], some 200 lines for a plain protocol: `examples/text.rs` shows one,
//! and its test runs [`conformance`] against it. The OMS logs each request before it gives it to a line, journals each
//! report before anybody hears of it, and tells a line at each connect where both stand. So a line remembers nothing that
//! must survive its process.
//!
//! # The contract
//!
//! * **It never waits.** Each call returns at once: what cannot be done now is refused ([`SendError::Full`]) or goes on in
//!   a later [`Line::poll`]. Looking a name up is the one wait that is allowed, in [`Line::connect`].
//! * **Numbers.** Requests of a line are numbered, and the numbers rise; one that is left out was never sent and never will
//!   be. Reports are numbered without a hole from [`Resume::next_report`] on. An exchange whose protocol numbers otherwise
//!   has its numbers mapped by its line; where it has none, the line counts the reports itself.
//! * **Connect.** [`Line::connect`] begins; [`Event::Up`] is the end of it, and comes before any other event of that
//!   connection. It says what the venue has of what was sent before: all requests below a number and none from it on, as
//!   the *venue* says it. A line that has only its own memory to go by says `None`, and so does one whose venue does not
//!   remember; then the OMS puts in doubt what had no receipt, and asks for each order. The same goes for reports: `None`
//!   says that some may be lost.
//! * **Proof of receipt** is a word of the venue, an acknowledgement or a report that answers the request, never that a
//!   socket took bytes. [`Event::Received`] passes it on. A venue that gives none before the next connect leaves the OMS's
//!   window of unproven requests to fill: then a line passes on what each answer proves.
//! * **Loss.** [`Line::poll`] gives [`Lost`] once, when the connection has ended for whatever reason: closed, silent for too
//!   long, refused, or unreadable. From then on the line is down and nothing of it comes, until it is told to connect. What was
//!   sent and has no proof of receipt is nobody's to send again but the OMS's. A line never connects by itself.
//! * **Order.** What was sent on a connection arrives in that order or not at all; reports are told in the order of
//!   their numbers. A report that came twice is told once, if the protocol shows that it is the same.
//! * **Ids.** A request's `client_order_id` is unique for ever within its OMS. Another OMS may use the same ids: a venue
//!   tells them apart by [`Resume::oms`], or by the login that each OMS has there. A line that maps an id to a text gives
//!   the id back in the reports.
//! * **Status of all orders** is optional. A venue that can answers a [`StatusRequest`](tickpath_market::StatusRequest) with
//!   `original` zero and `fills` 1 for each order of this OMS that works or has ended today: its fills as they were
//!   reported, then its `OrderStatus`, each with the `client_order_id` of the question. Behind the last order comes an
//!   `OrderStatus` of order id zero with reason zero and the same `client_order_id`: the end of the answer. All of it comes
//!   by the line that took the question. A venue that cannot answers at once with an `OrderStatus` of order id zero and a
//!   reason, such as [`UNKNOWN_ORDER`]; one that answers no questions at all has `answers_status = false` in oms.toml.

pub mod conformance;

use std::os::fd::BorrowedFd;

use tickpath_market::{ExecutionReport, Request};

/// A line to a venue. The head of this crate is its contract.
pub trait Line: Send {
    /// Where it goes, for messages.
    fn address(&self) -> String;

    /// Begins to connect; what was connected before ends. [`Event::Up`] or [`Lost`] comes by [`Self::poll`].
    fn connect(&mut self, resume: &Resume);

    /// Sends a request, which has left or waits in the line when this returns: the bytes are with the operating system,
    /// unless its buffer is full.
    fn send(&mut self, number: u64, stamp: u64, request: &Request) -> Result<(), SendError>;

    /// All reports below this number are journaled: the venue need not keep them.
    fn confirm(&mut self, next_report: u64);

    /// Takes what came, and does what is due: heartbeats, the rest of what was sent. Says how much that was.
    fn poll(&mut self, take: &mut dyn FnMut(Event<'_>)) -> Result<usize, Lost>;

    /// What a sleeper waits on to be readable; none if there is nothing to wait on now.
    fn socket(&self) -> Option<BorrowedFd<'_>>;
}

/// `reason` of a refused cancel or replace: the venue knows no such order. A line maps its venue's own codes to this one.
pub const UNKNOWN_ORDER: u16 = 7;
/// `reason` of a refused cancel or replace: the order has ended at the venue. A line maps its venue's own codes to this one.
pub const TOO_LATE: u16 = 8;

/// Where both sides stood when the line was last there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resume {
    /// Whose numbers these are: a mark of the OMS's journal and of this line in it. With another one, both begin anew.
    pub journal: u64,
    /// The identity of the OMS, which all its lines share and no other OMS has: the id of its journal. Zero if the OMS has
    /// none; then the venue cannot tell its order ids from those of another OMS.
    pub oms: u64,
    /// Which life of the requests lane: with another one its request numbers begin anew.
    pub incarnation: u64,
    /// The number of the next request that nobody has given to a line yet: whatever the venue has is below it.
    pub next_request: u64,
    /// The first report that the OMS lacks.
    pub next_report: u64,
}

/// What a line brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The venue takes requests.
    Up {
        /// It has all requests below this number that were sent, and none from it on; none if it cannot say.
        next_request: Option<u64>,
        /// The number of the next report; [`Resume::next_report`] if none is lost. None if some may be: then the next one
        /// has that number all the same.
        next_report: Option<u64>,
    },
    /// The venue has all requests below this number.
    Received(u64),
    /// The venue says this.
    Report {
        /// Its number.
        number: u64,
        /// When the venue sent it, in ticks of this host's clock; zero if that is not known.
        stamp: u64,
        /// What it says.
        report: &'a ExecutionReport,
    },
}

/// The connection is lost, and why: a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Lost(pub String);

/// Why a request was not taken. It was not sent, not even a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The line takes nothing more now.
    #[error("the line is full; try again once it was polled")]
    Full,
    /// The line is down, or on its way up.
    #[error("the line is down; connect it first")]
    Down,
}
