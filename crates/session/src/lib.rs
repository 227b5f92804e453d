//! Order entry over sockets: what a client and an OMS say to each other, without any socket.
//!
//! ```text
//!   client                                   OMS
//!     ── Logon: version, session, next report, SCRAM ──>
//!     <─ Challenge ─────────────────────────────────────
//!     ── Proof ────────────────────────────────────────>
//!     <─ Welcome: next request, next report ────────────   or Refused, and the end
//!     ── requests, numbered ───────────────────────────>
//!     <─ reports, numbered: those that it lacks, then ──
//!        the live ones, without gap or double
//!     ── Heartbeat ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ Heartbeat ─   every half of the heartbeat time
//!     ── Logout ───────────────────────────────────────>
//! ```
//!
//! # Frames
//!
//! Everything is a frame: a [`Head`] of 24 bytes, then its payload. Requests and reports are the flat messages of
//! [`tickpath-market`](https://docs.rs/tickpath-market), as they lie in a log; the session's own messages are in
//! [`message`]. All numbers are little-endian.
//!
//! # Numbers
//!
//! Requests of a session are numbered from 0, and so are its reports; both go on for ever. An operator's words and
//! questions have no number. The OMS reads both numbers in its journal, so they survive any crash: a client that comes
//! back is told which of its requests is expected next, and asks for reports from the first that it lacks. A request
//! below the expected number was taken already and is dropped; one above it ends the connection, for what is missing was
//! lost on the way. Numbers belong to a journal, whose id is in the [`Welcome`]: with another one they begin anew.
//!
//! A request that the user's role does not allow is refused before the journal: [`Kind::RequestRefused`] answers it, under
//! the request's own number, and is no report. Such numbers are of one connection: the next one begins again at the number
//! that the journal expects, which its [`Welcome`] has.
//!
//! A heartbeat carries the number that its sender expects next. It goes out every half of the heartbeat time whatever
//! else is said: a client that is kept busy by reports learns from nothing else which of its requests were taken.
//!
//! # Drop copies
//!
//! Who logs in as a user with a drop copy hears what others are told, and has no requests. A report's number is then its
//! place among all that is said. Several logons of one user hear beside each other: a drop copy takes no session from
//! anybody, and each asks for its own place.
//!
//! # Encryption
//!
//! Over TLS all of this is the same: [`tls::Secure`] is a stream over a stream. The proof of the logon is bound to the
//! connection then.
//!
//! # Shared memory
//!
//! On a Unix socket a client may wish for lanes: then the welcome brings the descriptors of the memory of two, and all that
//! follows goes through these, the same frames with the same numbers. The socket stays: its end is the end of the session,
//! and a byte through it wakes who sleeps.
//!
//! # Versions
//!
//! Messages grow at their end. Each side reads of a payload what it knows, and takes zero for what an older one does not
//! send, so a client of an older schema keeps working. The version in the [`Welcome`] is the lower of both.
//!
//! | version | what came with it |
//! |---|---|
//! | 1 | all but what follows |
//! | 2 | [`Logon::wishes`] and [`Welcome::lanes`]: shared memory, opened by a logon; answers to an admin's words, which an older client need not know; [`Query::ORDER`]; drop copies |
//! | 3 | orders with a trigger: the requests of kinds 37 and 38, the status `Armed`, the report `Triggered` |
//! | 4 | [`Welcome::rights`]: whether the session is a drop copy |
//! | 5 | [`Kind::RequestRefused`]: the answer to a request that the user's role does not allow |
//! | 6 | [`Query::INSTRUMENTS`]: the instruments that the OMS has, whatever a file says |

mod frame;
pub mod message;
pub mod scram;
mod secret;
pub mod tls;
mod version;

pub use frame::{Frame, FrameError, HEAD_BYTES, Head, Inbox, MOST_PAYLOAD, write_frame, write_with_text};
pub use message::{
    ANY_SESSION, Copied, CopyTrailer, FROM_NOW, InstrumentRow, Kind, Logon, MAGIC, Query, Refusal, Refused, Role,
    Status, Taken, Welcome,
};
pub use scram::{Binding, ClientLogon, Decoys, ScramError, Secret, SecretError, ServerLogon};
pub use version::{CONDITIONAL_VERSION, INSTRUMENTS_VERSION, REFUSAL_VERSION, RIGHTS_VERSION, VERSION};
