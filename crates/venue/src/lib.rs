//! The contract of a line to a venue: what an order management system requires of an exchange adapter.
//!
//! ```text
//!   OMS ── requests lane, a log ──> line agent ── Line::send ──> the exchange
//!   OMS <── journal <── sequencer <── line agent <── Line::poll ── the exchange
//! ```
//!
//! An integrator adds an exchange by implementing [`Line`], some 200 lines for a plain protocol: `examples/text.rs`
//! shows such a line, and its test runs [`conformance`] against it. The OMS logs each request before it passes it to a
//! line, journals each report before any client receives it, and passes the state of both sides to the line at each
//! connect. So a line keeps no state that must survive its process.
//!
//! The OMS drives each line through this trait:
//!
//! ```
//! use tickpath_venue::{ConnectionLost, Line, LineEvent};
//!
//! fn poll_once(line: &mut dyn Line, is_up: &mut bool) -> Result<usize, ConnectionLost> {
//!     line.poll(&mut |event| match event {
//!         LineEvent::Up { .. } => *is_up = true,
//!         LineEvent::Acknowledged(next) => println!("the venue has all requests below {next}"),
//!         LineEvent::Report { number, report, .. } => println!("report {number}: {report:?}"),
//!         LineEvent::Detail { number, detail, .. } => println!("detail {number}: {detail:?}"),
//!     })
//! }
//! ```
//!
//! # The contract
//!
//! * **No call waits.** Each call returns at once: work that cannot be done now is refused ([`LineSendError::Full`])
//!   or continues in a later [`Line::poll`]. A name lookup in [`Line::connect`] is the only wait that is allowed.
//! * **Numbers.** Requests of a line have rising numbers; a number that is left out was never sent and never will be.
//!   Reports are numbered without a gap from [`ResumeState::next_report`] on. A line maps the numbers of an exchange
//!   whose protocol numbers otherwise; if the protocol has none, the line counts the reports itself.
//! * **Connect.** [`Line::connect`] begins a connect; [`LineEvent::Up`] ends it, and comes before any other event of
//!   that connection. The event carries the *venue's* state of earlier requests: it has all below a number and none
//!   from that number on. A line that knows only its own memory reports `None`, as does a line whose venue keeps no
//!   state; then the OMS puts requests without proof of receipt in doubt, and asks for each order. The same holds for
//!   reports: `None` means that some may be lost.
//! * **Proof of receipt** comes from the venue: an acknowledgement, or a report that answers the request, never the
//!   fact that a socket took bytes. [`LineEvent::Acknowledged`] passes it on. A venue without acknowledgements before
//!   the next connect would fill the OMS's window of unproven requests, so its line passes on what each answer proves.
//! * **Loss.** [`Line::poll`] returns [`ConnectionLost`] once, when the connection has ended for any reason: closed,
//!   silent for too long, refused, or unreadable. From then on the line is down and reports no event until it is
//!   connected again. Only the OMS may send a request again that has no proof of receipt. A line never connects by
//!   itself.
//! * **Order.** Requests of a connection arrive in the order of their sends or not at all; reports are passed on in the
//!   order of their numbers. A duplicate report is passed on once, if the protocol identifies duplicates.
//! * **Ids.** A request's `client_order_id` is unique for ever within its OMS. Another OMS may use the same ids: a
//!   venue distinguishes them by [`ResumeState::oms`], or by the login of each OMS. A line that maps an id to a text
//!   restores the id in the reports.
//! * **Status of all orders** is optional. A venue that supports it answers a
//!   [`StatusRequest`](tickpath_market::StatusRequest) with `original` zero and `fills` 1 for each order of this OMS
//!   that works or has ended today: its fills as they were reported, then its `OrderStatus`, each with the request's
//!   `client_order_id`. After the last order an `OrderStatus` with order id zero, reason zero and the same
//!   `client_order_id` ends the answer. The whole answer comes by the line that took the request. A venue that cannot
//!   answer sends at once an `OrderStatus` with order id zero and a reason, such as [`UNKNOWN_ORDER`]; for a venue that
//!   answers no status requests at all, oms.toml has `answers_status = false`.

pub mod conformance;

use std::os::fd::BorrowedFd;

use tickpath_market::{ExecutionReport, ReportDetail, Request};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// A line to a venue. The head of this crate is its contract.
pub trait Line: Send {
    /// Returns the line's address, for messages.
    fn address(&self) -> String;

    /// Begins to connect and ends any earlier connection. [`Self::poll`] then brings [`LineEvent::Up`] or
    /// [`ConnectionLost`].
    fn connect(&mut self, resume: &ResumeState);

    /// Sends a request. On return the bytes are with the operating system, or wait in the line if its buffer is full. A
    /// good-till-date order comes as good till canceled, because the OMS cancels it at its end time.
    fn send(&mut self, number: u64, stamp: u64, request: &Request) -> Result<(), LineSendError>;

    /// Confirms that all reports below this number are journaled, so that the venue need not keep them.
    fn confirm(&mut self, next_report: u64);

    /// Takes arrived events and does pending work: heartbeats, the rest of what was sent. Returns the amount of work
    /// done.
    fn poll(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost>;

    /// Takes a request of its own through the code and the memory that the next request takes: called now and then by an
    /// idle thread, so that a request after a silence does not run cold. Nothing is sent, and nothing is remembered. A
    /// line that wraps another one passes the call on; a line with nothing to warm does nothing.
    fn warm_up(&mut self);

    /// Returns the descriptor that a sleeping thread polls for readability; none if there is nothing to wait on now.
    fn socket(&self) -> Option<BorrowedFd<'_>>;
}

/// `reason` of a rejected cancel or replace: the venue knows no such order. A line maps its venue's own codes to this
/// code.
pub const UNKNOWN_ORDER: u16 = 7;
/// `reason` of a rejected cancel or replace: the order has ended at the venue. A line maps its venue's own codes to
/// this code.
pub const TOO_LATE: u16 = 8;

/// State of both sides at the line's last connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResumeState {
    /// Identity of both numberings, of requests and of reports: derived from the id of the OMS's journal and from the
    /// line. With another identity, both numberings begin anew.
    pub journal: u64,
    /// Id of the OMS's journal, shared by all lines of the OMS and by no other OMS. Zero if the OMS has no such id;
    /// then the venue cannot distinguish its order ids from those of another OMS.
    pub oms: u64,
    /// Incarnation of the requests lane: with another incarnation its request numbers begin anew.
    pub incarnation: u64,
    /// Number of the next request that was not given to any line yet: all requests at the venue are below it.
    pub next_request: u64,
    /// First report that the OMS lacks.
    pub next_report: u64,
}

/// An event of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEvent<'a> {
    /// The venue takes requests.
    Up {
        /// The venue has all sent requests below this number, and none from it on; none if it cannot report its state.
        next_request: Option<u64>,
        /// Number of the next report; [`ResumeState::next_report`] if no report is lost. None if reports may be lost;
        /// numbering then continues at `ResumeState::next_report`.
        next_report: Option<u64>,
    },
    /// The venue has all requests below this number.
    Acknowledged(u64),
    /// A report of the venue.
    Report {
        /// Number of the report.
        number: u64,
        /// Time at which the venue sent it, in ticks of this host's clock; zero if unknown.
        stamp: u64,
        /// The report.
        report: &'a ExecutionReport,
    },
    /// Details of the report before it, numbered like a report.
    Detail {
        /// Number of the detail, among those of the reports.
        number: u64,
        /// Time at which the venue sent it, in ticks of this host's clock; zero if unknown.
        stamp: u64,
        /// The detail.
        detail: &'a ReportDetail,
    },
}

/// Times of the last request that a line over a socket has sent, in ticks of this host's clock; zero before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendStamps {
    /// The message was written as text.
    pub encoded: u64,
    /// Its bytes were ready for the socket, framed and encrypted.
    pub ready: u64,
    /// The message was with the operating system, or waited in the line because the socket was full.
    pub written: u64,
}

/// The end of a connection, with its reason as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectionLost(pub String);

/// Errors of a request that was not taken. No part of it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineSendError {
    /// The line's buffer is full.
    #[error("the line is full; try again once it was polled")]
    Full,
    /// The line is down, or still connecting.
    #[error("the line is down; connect it first")]
    Down,
}
