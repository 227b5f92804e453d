//! A session: logon, sequence numbers, recovery, heartbeats and logout, without any I/O. Frames and the time go in, bytes
//! and events come out. Design:
//! `docs/design/fix-engine.md`.
//!
//! ```text
//!                    connected ┌──────────────┐                        acceptor: AwaitingLogon ─┐
//!   Disconnected ─────────────>│ before logon │──── Logon of the peer ───────────> LoggedOn     │ no Logon, or a wrong one
//!        ^                     └──────────────┘     initiator: LogonSent ─┘          │          v
//!        │                                                     Logout sent ─> LogoutSent ──> Closing
//!        │                                   Logout above a gap ─> LogoutReceived ─────────────>│
//!        └───────────────────────────── disconnected ───────────────────────────────────────────┘
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `machine` | the parts of a session, its states and timers |
//! | `incoming` | received messages: the match of state and message, and the order of numbers |
//! | `logon` | logon of both roles, resets |
//! | `outgoing` | sent messages: header, number, store |
//! | `recovery` | missing messages of the peer: held ones, requests |
//! | `resend` | the peer's requests: resent messages, gap fills |
//!
//! # Invariants
//!
//! * A message has its number at the moment at which it is written, and is in the store before it is in the output.
//! * The number that is expected next moves only behind a message that was processed, rejected, skipped or gap-filled.
//! * ResendRequests, Logouts and resets are served with a gap open, so that two sides that both miss messages never wait
//!   for each other.
//! * A gap fill never covers a number that was not sent.
//! * Nothing is allocated for a message in order, once all buffers have grown to their lengths.

use std::sync::Arc;

use crate::dictionary::Dictionary;
use crate::field_table::{FieldFault, FieldTable};
use crate::logon_recipe::LogonSigner;
use crate::message_store::{MessageStore, StoreError};
use crate::message_writer::MessageWriter;

pub use config::{
    BeginString, FaultDetail, LogoutGapRule, ResendPolicy, Role, SessionConfig, SessionLimits, SessionTimes, SubIds,
};
pub use events::{AppAnswer, DisconnectReason, SendError, SessionEvent, SessionIo};
pub use sequence_numbers::SequenceNumbers;
pub use state::SessionState;

use machine::SessionMachine;
use message_kind::MessageKind;
use received::Received;

mod config;
mod events;
mod incoming;
mod logon;
mod machine;
mod message_kind;
mod outgoing;
mod received;
mod recovery;
mod rejects;
mod resend;
mod sequence_numbers;
mod state;
mod timers;

/// A session with one peer, over any number of connections, one after the other.
///
/// The caller moves bytes between the socket and the session, frames them with
/// [`FrameReader`](crate::frame_reader::FrameReader), and polls the session with the time. All times are in nanoseconds
/// since the Unix epoch.
pub struct Session {
    machine: SessionMachine,
    dictionary: Arc<Dictionary>,
    table: FieldTable,
    /// A message that was held behind a gap and is processed now.
    held: Vec<u8>,
}

impl Session {
    /// Makes a session that continues with these numbers. The dictionary of a session over FIXT is
    /// [joined](Dictionary::with_transport) from those of transport and application.
    pub fn new(config: SessionConfig, dictionary: Arc<Dictionary>, numbers: SequenceNumbers) -> Self {
        let machine = SessionMachine::new(config, Arc::clone(&dictionary), numbers);
        Self { machine, dictionary, table: FieldTable::new(), held: Vec::new() }
    }

    /// Lets a signer write its fields into each Logon.
    pub fn set_signer(&mut self, signer: LogonSigner) {
        self.machine.signer = Some(signer);
    }

    /// Begins a connection. An initiator's Logon is written.
    pub fn connected(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        self.machine.connect(now_ns, io);
    }

    /// Takes a frame of the peer.
    #[inline]
    pub fn receive(&mut self, frame: &[u8], now_ns: u64, io: &mut SessionIo<'_>) {
        let fault = field_fault(&mut self.table, frame, &self.dictionary);
        let received = Received::new(self.table.message(frame), fault, false, now_ns);
        self.machine.take(&received, io);
        self.take_held(now_ns, io);
    }

    /// Notes bytes of the peer that are no message. They are ignored, and are no sign of life; before the logon they end
    /// the connection.
    pub fn garbled(&mut self, _now_ns: u64, io: &mut SessionIo<'_>) {
        self.machine.take_garbled(io);
    }

    /// Does the work that is due by time, and continues a resend if the output has room.
    pub fn poll(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        self.machine.poll(now_ns, io);
    }

    /// Returns the time at which the session needs a poll even if nothing arrives.
    pub fn next_poll_ns(&self) -> Option<u64> {
        self.machine.next_poll_ns()
    }

    /// Returns whether a resend to the peer waits for room in the output.
    pub fn is_resending(&self) -> bool {
        self.machine.resend.is_active()
    }

    /// Returns whether messages of the peer are missing.
    pub fn is_recovering(&self) -> bool {
        self.machine.recovery.is_open()
    }

    /// Sends an application message, and returns its number. `body` writes the fields behind the header; fields of the
    /// header that belong to this message alone, such as PossResend (97) or SubIDs, come first.
    ///
    /// # Panics
    /// If the type is one of the session's own: 0 to 5 or A.
    #[inline]
    pub fn send(
        &mut self,
        msg_type: &[u8],
        now_ns: u64,
        io: &mut SessionIo<'_>,
        body: impl FnOnce(&mut MessageWriter),
    ) -> Result<u64, SendError> {
        assert!(MessageKind::of(msg_type) == MessageKind::Application, "the session itself sends this type of message");
        self.machine.send(msg_type, now_ns, io, body)
    }

    /// Begins a logout with a text for the peer, which may be empty. A connection that is not logged on ends.
    pub fn logout(&mut self, text: &str, now_ns: u64, io: &mut SessionIo<'_>) {
        self.machine.logout(text, now_ns, io);
    }

    /// Lets both numbers restart at 1, and informs the peer (141): by a Logon at once if the session is logged on, else by
    /// the next one.
    pub fn restart_numbers(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        self.machine.restart_numbers(now_ns, io);
    }

    /// Notes that the connection ended, by either side.
    pub fn disconnected(&mut self, _now_ns: u64, io: &mut SessionIo<'_>) {
        self.machine.disconnect(io);
    }

    /// Returns the numbers of both directions.
    pub fn numbers(&self) -> SequenceNumbers {
        self.machine.numbers()
    }

    /// Sets the numbers of both directions, as an operator has agreed with the peer. If the next sent number changes, the
    /// messages sent before are gap-filled from then on.
    pub fn set_numbers(&mut self, numbers: SequenceNumbers, store: &mut dyn MessageStore) -> Result<(), StoreError> {
        self.machine.set_numbers(numbers, store)
    }

    /// Returns the state.
    pub fn state(&self) -> SessionState {
        self.machine.state
    }

    /// Takes the messages whose turn has come, and completes the call.
    #[inline]
    fn take_held(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        while self.machine.take_held(&mut self.held, now_ns, io) {
            let fault = field_fault(&mut self.table, &self.held, &self.dictionary);
            let received = Received::new(self.table.message(&self.held), fault, true, now_ns);
            self.machine.take(&received, io);
        }
        self.machine.settle(now_ns, io);
    }
}

/// Reads a frame into the table, and returns the fault that must be rejected. An empty value is left to the validation,
/// which may allow it.
#[inline]
fn field_fault(table: &mut FieldTable, frame: &[u8], dictionary: &Dictionary) -> Option<FieldFault> {
    let fault = table.read(frame, dictionary.data_tags()).err();
    fault.filter(|fault| !matches!(fault, FieldFault::NoValue { .. }))
}
