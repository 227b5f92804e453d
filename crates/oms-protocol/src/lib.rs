//! Order entry over sockets: the protocol between a client and an OMS, without any socket.
//!
//! ```text
//!   client                                   OMS
//!     ── Logon: version, session, next report, SCRAM ──>
//!     <─ Challenge ─────────────────────────────────────
//!     ── Proof ────────────────────────────────────────>
//!     <─ Welcome: next request, next report ────────────   or Refused, and the end
//!     ── requests, numbered ───────────────────────────>
//!     <─ reports, numbered: those that it lacks, then ──
//!        the live ones, without gap or duplicate
//!     ── Heartbeat ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ Heartbeat ─   every half of the heartbeat time
//!     ── Logout ───────────────────────────────────────>
//! ```
//!
//! # Frames
//!
//! A frame is a [`FrameHeader`] of 24 bytes and its payload, in little-endian. Requests and reports are the messages of
//! [`tickpath-market`](https://docs.rs/tickpath-market), as they lie in a log; the session's own are in [`message`].
//!
//! ```
//! use tickpath_oms_protocol::{FrameBuffer, FrameKind, write_frame};
//!
//! let mut bytes = Vec::new();
//! write_frame(&mut bytes, FrameKind::Heartbeat.code(), 7, 0, &[]);
//!
//! let mut buffer = FrameBuffer::default();
//! buffer.free_space()[..bytes.len()].copy_from_slice(&bytes);
//! buffer.advance(bytes.len());
//! let frame = buffer.next()?.expect("the frame is whole");
//! assert_eq!((frame.kind, frame.sequence), (FrameKind::Heartbeat.code(), 7));
//! # Ok::<(), tickpath_oms_protocol::FrameError>(())
//! ```
//!
//! # Numbers
//!
//! Requests of a session are numbered from 0, and so are its reports. Admin commands and questions have no number. The
//! OMS recovers both numbers from its journal, so they survive any crash: a client that reconnects receives the number
//! of the request expected next, and asks for reports from the first that it lacks. A request below the expected number
//! is a duplicate and is dropped; one above it ends the connection, because requests were lost in flight. Numbers
//! belong to a journal, whose id is in the [`Welcome`]: with another one they begin anew.
//!
//! The detail of a report follows its report, and details have numbers of their own, from 0: a client that resumes asks
//! for the first detail that it lacks, too ([`Logon::next_detail`]). A client of an older version is sent none.
//!
//! A request that the user's role does not allow is refused before the journal: [`FrameKind::RequestRefused`] answers
//! it under the request's own number, and is no report. Such numbers belong to one connection: the next connection
//! begins again at the number that the journal expects.
//!
//! A heartbeat carries the number that its sender expects next. It is sent every half of the heartbeat time, whatever
//! else is sent: a client that receives many reports learns only from heartbeats which of its requests were taken.
//!
//! # Drop copies
//!
//! A client that logs in as a user with a drop copy receives the reports of other sessions, and sends no requests. A
//! report's number is then its place among all reports of the OMS. Several logons of one user run beside each other: a
//! drop copy takes no session from a client, and each logon asks for its own place.
//!
//! # Encryption
//!
//! Over TLS the protocol is the same: [`tls::TlsStream`] is a stream over a stream. The logon's proof is then bound to
//! the connection. [`OrderEntryStream`] is the stream of either side, over TCP, TLS, a Unix socket or lanes.
//!
//! # Shared memory
//!
//! On a Unix socket a client may ask for lanes: the welcome then brings the descriptors of the memory of two lanes,
//! which carry all that follows, the same frames with the same numbers. The socket stays open: its end is the end of
//! the session, and a byte through it wakes a side that sleeps.
//!
//! # Versions
//!
//! | version | added |
//! |---|---|
//! | 1 | all but the rows below |
//! | 2 | [`Logon::features`] and [`Welcome::lanes`]: shared memory, opened by a logon; acknowledgements of admin commands, which an older client need not know; [`Query::ORDER`]; drop copies |
//! | 3 | orders with a trigger: the requests of kinds 37 and 38, the status `Armed`, the report `Triggered` |
//! | 4 | [`Welcome::rights`]: whether the session is a drop copy |
//! | 5 | [`FrameKind::RequestRefused`]: the answer to a request that the user's role does not allow |
//! | 6 | [`Query::INSTRUMENTS`]: the instruments that the OMS has, whatever a file says |
//! | 7 | `ReportDetail`, under its own kind: fee, liquidity, times and text of a venue's report; [`InstrumentRow::long_name`]: names of more than 16 bytes, which an older client sees as unnamed |
//! | 8 | text ids and end times of orders: the requests of kinds 39 and 40, and the report of kind 51, which stands before the reports of an order that has one. An older client of a session with such an order counts that report as missing |
//!
//! # Invariants
//!
//! * Messages grow at their end, and a field that an older side does not send is zero. The welcome has the lower
//!   version of both sides, so a client of an older schema keeps working.
//! * A password is proved, never sent and never stored: the OMS has the keys that check a proof ([`Secret`]).
//! * Over TLS ([`tls::TlsStream`]) a proof is bound to its connection.
//! * A user that does not exist costs the same work, and gets challenges like those of real users ([`Decoys`]).
//! * A secret is overwritten when it is dropped.

mod frame;
pub mod message;
pub mod scram;
mod secret;
mod stream;
pub mod tls;
mod version;

pub use frame::{
    Frame, FrameBuffer, FrameError, FrameHeader, HEADER_BYTES, MAX_PAYLOAD, write_frame, write_frame_with_text,
};
pub use message::{
    ANY_SESSION, CommandAck, CopyHeader, CopyTrailer, FROM_NOW, FrameKind, InstrumentRow, Logon, LogonReject,
    LogonRejectReason, MAGIC, Query, Status, UserRole, Welcome,
};
pub use scram::{Binding, ClientLogon, Decoys, ScramError, Secret, SecretError, ServerLogon};
pub use stream::OrderEntryStream;
pub use version::{
    CONDITIONAL_VERSION, DETAILS_VERSION, INSTRUMENTS_VERSION, REFUSAL_VERSION, RIGHTS_VERSION, TEXT_ID_VERSION,
    VERSION,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
