//! The wire protocol beside requests and reports: frames of `tickpath-oms-protocol`, numbered both ways.
//!
//! ```text
//!   OMS                                              exchange
//!     ── Prove: SCRAM's client-first ──────────────────────>   these four only where the lines have a password
//!     <─ Challenge ─────────────────────────────────────────
//!     ── Proof ────────────────────────────────────────────>
//!     <─ Proved: the exchange's own proof ──────────────────
//!     ── Logon: OMS, number space, next request, next report ─────────>
//!     <─ Welcome: the requests that it has, the next report     or Refused, and the end
//!     ── requests, their numbers rise ─────────────────────>
//!     <─ reports, numbered without a hole; Heartbeat: the requests that it has, after each turn's reports
//!     ── Heartbeat: the reports that are journaled ────────>
//! ```
//!
//! Messages grow at their end: each side reads the fields it knows, and takes zero for fields that an older side does
//! not send.
//!
//! | version | additions |
//! |---|---|
//! | 1 | everything else |
//! | 2 | [`LineLogon::oms`]: an exchange keeps the order ids of each OMS apart. [`PROVE`] and [`PROVED`]: a password |
//!
//! An exchange accepts a logon of version 1: all lines of that version share one space of order ids. A line rejects an
//! exchange of version 1, which would mix its order ids with those of another OMS.

use tickpath_oms_protocol::FrameKind;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of these messages.
pub const VERSION: u16 = 2;
/// First version with [`LineLogon::oms`].
pub const IDENTITY_VERSION: u16 = 2;
/// First bytes of a [`LineLogon`].
pub const MAGIC: [u8; 8] = *b"TICKLINE";
/// Kind of a frame: [`LineLogon`], then the line's name as text.
pub const LOGON: u8 = 140;
/// Kind of a frame: [`LineWelcome`].
pub const WELCOME: u8 = 141;
/// Kind of a frame: no message, SCRAM's client-first as text. The frames of the password come before the [`LineLogon`].
pub const PROVE: u8 = 142;
/// Kind of a frame: no message, SCRAM's server-final as text: the password is right.
pub const PROVED: u8 = 143;
/// Kind of a frame: no message, SCRAM's server-first as text.
pub const CHALLENGE: u8 = FrameKind::Challenge as u8;
/// Kind of a frame: no message, SCRAM's client-final as text.
pub const PROOF: u8 = FrameKind::Proof as u8;
/// Kind of a frame: no message, a sentence as text. The connection ends.
pub const REFUSED: u8 = FrameKind::Refused as u8;
/// Kind of a frame: a heartbeat, which acknowledges everything below the frame's number.
pub const HEARTBEAT: u8 = FrameKind::Heartbeat as u8;

/// Silence after which either side takes the other as dead, in milliseconds. A heartbeat is sent after a quarter of it.
pub const SILENCE_MS: u32 = 4_000;

/// First message of a line: its identity, and the state of its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LineLogon {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`] of the line.
    pub version: u16,
    /// Zero.
    pub reserved: [u8; 6],
    /// Identity of the number space: with another mark, both numberings begin anew.
    pub journal: u64,
    /// Incarnation of the requests: with another one, their numbers begin anew.
    pub incarnation: u64,
    /// Number of the line's next request, or a lower one.
    pub next_request: u64,
    /// First report that the line lacks.
    pub next_report: u64,
    /// Identity of the OMS, the same for all its lines; zero for none. Since version 2.
    pub oms: u64,
}

/// The exchange's acceptance of a [`LineLogon`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LineWelcome {
    /// [`VERSION`] of the exchange.
    pub version: u16,
    /// 1 if the exchange knows the line and this incarnation: then `next_request` is its state.
    pub knows_requests: u8,
    /// 1 if the exchange has all reports from `next_report` on.
    pub knows_reports: u8,
    /// Number of the venue, plus one: 0 from an exchange that is too old to send it.
    pub venue: u32,
    /// The exchange has all requests below this number, and none from it on.
    pub next_request: u64,
    /// Number of the first report that follows.
    pub next_report: u64,
}
