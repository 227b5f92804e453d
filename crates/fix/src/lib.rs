//! FIX 4.0 to 5.0 SP2: codec, dictionaries and sessions of both roles, without I/O. Bytes and the time go in, bytes and
//! events come out.
//!
//! ```text
//!   socket ──> FrameReader ──> FieldTable ──> validate ──> Session::receive ──> SessionEvent ──> application
//!                 frames        Message      Dictionary        │                                     │
//!                                                              v                                     v
//!   socket <────────────────────── out <──────────────── MessageStore <── MessageWriter <── Session::send
//! ```
//!
//! An initiator on a blocking socket, for brevity: with one that never waits, `poll` sends heartbeats in time.
//!
//! ```no_run
//! use std::cell::Cell;
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use std::sync::Arc;
//!
//! use tickpath_clock::utc_ns;
//! use tickpath_fix::{
//!     AppAnswer, BeginString, Dictionary, FrameReader, MemoryStore, Role, SequenceNumbers, Session, SessionConfig,
//!     SessionEvent, SessionIo,
//! };
//!
//! let xml = std::fs::read_to_string("FIX44.xml")?;
//! let dictionary = Arc::new(Dictionary::parse(&xml, "FIX44.xml")?);
//! let config = SessionConfig::new(Role::Initiator, BeginString::Fix44, "US", "VENUE");
//! let mut session = Session::new(config, dictionary, SequenceNumbers::FIRST);
//! let (mut reader, mut store, mut out) = (FrameReader::new(1 << 20), MemoryStore::new(10_000, 1 << 20), Vec::new());
//! let is_open = Cell::new(true);
//! let mut events = |event: SessionEvent<'_>| {
//!     match event {
//!         SessionEvent::Message { message, number, .. } => println!("message {number}: {:?}", message.msg_type()),
//!         SessionEvent::Disconnect(reason) => {
//!             println!("the connection ends: {reason}");
//!             is_open.set(false);
//!         }
//!         _ => {}
//!     }
//!     AppAnswer::Taken
//! };
//! let mut io = SessionIo { out: &mut out, store: &mut store, events: &mut events };
//! let mut socket = TcpStream::connect("127.0.0.1:9880")?;
//! session.connected(utc_ns(), &mut io);
//! while is_open.get() {
//!     socket.write_all(io.out)?;
//!     io.out.clear();
//!     let received = socket.read(reader.room(4_096))?;
//!     reader.add(received);
//!     is_open.set(received > 0);
//!     while let Some(next) = reader.next() {
//!         match next {
//!             Ok(frame) => session.receive(frame.bytes, utc_ns(), &mut io),
//!             Err(_garbled) => session.garbled(utc_ns(), &mut io),
//!         }
//!     }
//!     session.poll(utc_ns(), &mut io);
//! }
//! socket.write_all(io.out)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Beside sessions: [`SessionSchedule`] has connection hours and reset times, [`LogonSigner`] the credentials of a
//! venue's Logon. The example `echo` is an acceptor, `codec_speed` measures the codec.
//!
//! # Invariants
//!
//! * No thread, no clock, no socket, no file: times are parameters, in nanoseconds since the Unix epoch.
//! * Buffers and tables are used again: once they have grown, a message in order allocates nothing.
//! * Every length that a peer names is bounded. Bytes that are no message are dropped and reported, and use up no
//!   sequence number.
//! * No value that is written can end its field: a text of a client cannot add fields to a message.
//! * A message is in the store before it is in the output. A gap fill never covers a number that was not sent.
//! * No error and no `Debug` form shows a secret of a Logon.

#![forbid(unsafe_code)]

mod check_sum;
mod dictionary;
mod digits;
mod field_table;
mod frame_reader;
mod logon_recipe;
mod message_store;
mod message_writer;
mod schedule;
mod session;
mod soh;
pub mod tags;
mod validation;
pub mod values;

pub use check_sum::{check_sum, check_sum_digits};
pub use dictionary::{
    Dictionary, DictionaryError, DictionaryMistake, FieldDefinition, FieldType, FieldValue, GroupDefinition, GroupId,
    Member, MessageCategory, MessageDefinition, Section,
};
pub use field_table::{DataTags, Field, FieldFault, FieldTable, Message};
pub use frame_reader::{Frame, FrameReader, Garbled, GarbledReason};
pub use logon_recipe::{
    LogonHeader, LogonRecipe, LogonRecipeError, LogonSecret, LogonSigner, SignatureAlgorithm, SignedLogon,
};
pub use message_store::{MemoryStore, MessageStore, StoreError};
pub use message_writer::MessageWriter;
pub use schedule::{ScheduleError, SessionSchedule};
pub use session::{
    AppAnswer, BeginString, DisconnectReason, FaultDetail, LogoutGapRule, ResendPolicy, Role, SendError,
    SequenceNumbers, Session, SessionConfig, SessionEvent, SessionIo, SessionLimits, SessionState, SessionTimes,
    SubIds,
};
pub use soh::SOH;
pub use tags::Tag;
pub use validation::{
    FIRST_USER_DEFINED_TAG, Rejection, SessionRejectReason, ValidationRules, ValidationScratch, validate,
};
pub use values::{Decimal, TimePrecision, ValueFault};
