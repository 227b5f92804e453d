//! What is said on the wire beside requests and reports: frames of `tickpath-session`, numbered both ways.
//!
//! ```text
//!   OMS                                              exchange
//!     ── Prove: SCRAM's client-first ──────────────────────>   these four only where the lines have a password
//!     <─ Challenge ─────────────────────────────────────────
//!     ── Proof ────────────────────────────────────────────>
//!     <─ Proved: the exchange's own proof ──────────────────
//!     ── Logon: which OMS, whose numbers, next request, next report ──>
//!     <─ Welcome: which requests it has, which report is next   or Refused, and the end
//!     ── requests, their numbers rise ─────────────────────>
//!     <─ reports, numbered without a hole; Heartbeat: which requests it has, behind each turn's reports
//!     ── Heartbeat: which reports are journaled ───────────>
//! ```
//!
//! Messages grow at their end: each side reads what it knows, and takes zero for what an older side does not send.
//!
//! | version | what came with it |
//! |---|---|
//! | 1 | all but what follows |
//! | 2 | [`Logon::oms`]: an exchange keeps the order ids of each OMS apart. [`PROVE`] and [`PROVED`]: a password |
//!
//! An exchange takes a logon of version 1: all lines of that version share one space of order ids. A line refuses an exchange
//! of version 1, which would mix its order ids with those of another OMS.

use tickpath_session::Kind;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The version of these messages.
pub const VERSION: u16 = 2;
/// The first version that has [`Logon::oms`].
pub const IDENTITY_VERSION: u16 = 2;
/// The first bytes of a [`Logon`].
pub const MAGIC: [u8; 8] = *b"TICKLINE";
/// Kind of a frame: [`Logon`], then who it is as text.
pub const LOGON: u8 = 140;
/// Kind of a frame: [`Welcome`].
pub const WELCOME: u8 = 141;
/// Kind of a frame: no message, SCRAM's client-first as text. The frames of the password come before the [`Logon`].
pub const PROVE: u8 = 142;
/// Kind of a frame: no message, SCRAM's server-final as text: the password is right.
pub const PROVED: u8 = 143;
/// Kind of a frame: no message, SCRAM's server-first as text.
pub const CHALLENGE: u8 = Kind::Challenge as u8;
/// Kind of a frame: no message, SCRAM's client-final as text.
pub const PROOF: u8 = Kind::Proof as u8;
/// Kind of a frame: no message, a sentence as text. The connection ends.
pub const REFUSED: u8 = Kind::Refused as u8;
/// Kind of a frame: its sender lives, and has everything below the frame's number.
pub const HEARTBEAT: u8 = Kind::Heartbeat as u8;

/// The time without a word after which either side takes the other for gone, in milliseconds. A heartbeat goes out
/// after a quarter of it.
pub const SILENCE_MS: u32 = 4_000;

/// Who comes, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Logon {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`] of who comes.
    pub version: u16,
    /// Zero.
    pub reserved: [u8; 6],
    /// Whose numbers these are: with another mark, both begin anew.
    pub journal: u64,
    /// With another incarnation the numbers of requests begin anew.
    pub incarnation: u64,
    /// The number of its next request, or a lower one.
    pub next_request: u64,
    /// The first report that it lacks.
    pub next_report: u64,
    /// The identity of the OMS, the same for all its lines; zero for none. Since version 2.
    pub oms: u64,
}

/// Come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Welcome {
    /// [`VERSION`] of the exchange.
    pub version: u16,
    /// 1 if the exchange knows the line and this incarnation: then `next_request` says what it has.
    pub knows_requests: u8,
    /// 1 if the exchange has all reports from `next_report` on.
    pub knows_reports: u8,
    /// The number of the venue, and one: 0 from an exchange that is too old to say it.
    pub venue: u32,
    /// It has all requests below this number, and none from it on.
    pub next_request: u64,
    /// The number of the first report that follows.
    pub next_report: u64,
}
