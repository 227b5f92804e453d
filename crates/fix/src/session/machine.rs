//! The state machine of a session: its parts, its states and its timers. How it takes messages is in `incoming`, how it
//! logs on in `logon`.

use std::mem;
use std::sync::Arc;

use crate::dictionary::Dictionary;
use crate::field_table::Message;
use crate::logon_recipe::LogonSigner;
use crate::message_store::{MessageStore, StoreError};
use crate::message_writer::MessageWriter;
use crate::validation::ValidationScratch;

use super::config::{Role, SessionConfig};
use super::events::{DisconnectReason, SendError, SessionEvent, SessionIo};
use super::outgoing::Outgoing;
use super::recovery::{Recovery, RequestedRange};
use super::rejects::{Fault, RejectedMessage};
use super::resend::Resend;
use super::sequence_numbers::SequenceNumbers;
use super::state::SessionState;
use super::timers::{TimerEvent, Timers, seconds_ns};

/// A session without the tables into which its messages are read.
pub(crate) struct SessionMachine {
    pub config: SessionConfig,
    pub dictionary: Arc<Dictionary>,
    pub signer: Option<LogonSigner>,
    pub state: SessionState,
    /// Number of the message that is expected next.
    pub next_in: u64,
    pub outgoing: Outgoing,
    pub recovery: Recovery,
    pub resend: Resend,
    pub timers: Timers,
    pub scratch: ValidationScratch,
    /// The peer's DefaultApplVerID (1137); empty without one.
    pub peer_version: Vec<u8>,
    /// The numbers were reset: the next Logon informs the peer of it.
    pub announces_reset: bool,
    /// A Logon with ResetSeqNumFlag (141) was sent and is not answered.
    pub reset_sent: bool,
    /// Text of a Logout that is answered once the gap below it is recovered.
    pub logout_text: Vec<u8>,
}

impl SessionMachine {
    pub fn new(config: SessionConfig, dictionary: Arc<Dictionary>, numbers: SequenceNumbers) -> Self {
        Self {
            state: SessionState::Disconnected,
            next_in: numbers.next_in,
            outgoing: Outgoing::new(&config, numbers.next_out),
            recovery: Recovery::new(&config),
            resend: Resend::new(&config),
            timers: Timers::default(),
            scratch: ValidationScratch::new(),
            peer_version: Vec::new(),
            announces_reset: false,
            reset_sent: false,
            logout_text: Vec::new(),
            signer: None,
            config,
            dictionary,
        }
    }

    pub fn numbers(&self) -> SequenceNumbers {
        SequenceNumbers { next_in: self.next_in, next_out: self.outgoing.next() }
    }

    /// Sets both numbers. If the next sent one changes, the sent messages are forgotten.
    pub fn set_numbers(&mut self, numbers: SequenceNumbers, store: &mut dyn MessageStore) -> Result<(), StoreError> {
        if numbers.next_out == self.outgoing.next() {
            store.set_next_in(numbers.next_in)?;
        } else {
            store.reset(numbers)?;
            self.outgoing.set_next(numbers.next_out);
            self.resend.clear();
        }
        self.next_in = numbers.next_in;
        self.recovery.clear();
        // Numbers that were agreed on stand, and not a reset from before.
        (self.announces_reset, self.reset_sent) = (false, false);
        Ok(())
    }

    /// Begins a connection.
    pub fn connect(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        self.forget_connection();
        // Bytes of an earlier connection would come before the Logon.
        io.out.clear();
        match self.config.role {
            Role::Acceptor => self.enter(SessionState::AwaitingLogon, now_ns),
            Role::Initiator => self.send_first_logon(now_ns, io),
        }
    }

    /// Ends a connection that the caller has closed or lost.
    pub fn disconnect(&mut self, io: &mut SessionIo<'_>) {
        let was_established = self.state.is_established();
        self.forget_connection();
        if was_established {
            io.report(SessionEvent::LoggedOut { text: b"" });
        }
        if self.config.reset_on_disconnect && self.numbers() != SequenceNumbers::FIRST {
            self.reset(SequenceNumbers::FIRST, io);
        }
    }

    /// Sends an application message.
    #[inline]
    pub fn send(
        &mut self,
        msg_type: &[u8],
        now_ns: u64,
        io: &mut SessionIo<'_>,
        body: impl FnOnce(&mut MessageWriter),
    ) -> Result<u64, SendError> {
        if self.state != SessionState::LoggedOn {
            return Err(SendError::NotLoggedOn);
        }
        if io.out.len() > self.config.limits.output {
            return Err(SendError::Full);
        }
        self.outgoing.send_application(msg_type, now_ns, io, body).map_err(|error| {
            // The message may be in the store, so that its number cannot be used for another one.
            self.fail(&error, io);
            SendError::Store(error)
        })
    }

    /// Begins a logout, or ends a connection that is not logged on.
    pub fn logout(&mut self, text: &str, now_ns: u64, io: &mut SessionIo<'_>) {
        match self.state {
            SessionState::LoggedOn | SessionState::LogoutReceived => self.send_logout(text, now_ns, io),
            SessionState::AwaitingLogon | SessionState::LogonSent => self.close(DisconnectReason::Cancelled, b"", io),
            SessionState::Disconnected | SessionState::LogoutSent | SessionState::Closing => {}
        }
    }

    /// Lets both numbers restart: at once without a connection, by a Logon with ResetSeqNumFlag (141) in a session that is
    /// logged on. Any other connection is closed first.
    pub fn restart_numbers(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        match self.state {
            SessionState::LoggedOn => self.send_reset_logon(now_ns, io),
            SessionState::Disconnected | SessionState::Closing | SessionState::AwaitingLogon => {
                self.announces_reset |= self.reset(SequenceNumbers::FIRST, io);
            }
            SessionState::LogonSent | SessionState::LogoutSent | SessionState::LogoutReceived => {
                self.close(DisconnectReason::Cancelled, b"", io);
                self.announces_reset |= self.reset(SequenceNumbers::FIRST, io);
            }
        }
    }

    /// Does the work that is due by time, and continues a resend.
    pub fn poll(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        let in_state_ns = self.timers.in_state_ns(now_ns);
        let (logon_ns, logout_ns) = self.patience_ns();
        match self.state {
            SessionState::Disconnected | SessionState::Closing => {}
            SessionState::AwaitingLogon | SessionState::LogonSent => {
                if in_state_ns >= logon_ns {
                    self.close(DisconnectReason::LogonTimeout, b"", io);
                }
            }
            SessionState::LoggedOn if self.reset_sent && in_state_ns >= logon_ns => {
                let text = "no answer to the Logon with ResetSeqNumFlag (141)";
                self.logout_and_close(text, DisconnectReason::LogonTimeout, now_ns, io);
            }
            SessionState::LoggedOn => self.keep_alive(now_ns, io),
            SessionState::LogoutSent => {
                if in_state_ns >= logout_ns {
                    self.close(DisconnectReason::LogoutTimeout, b"", io);
                }
            }
            SessionState::LogoutReceived => {
                if in_state_ns >= logout_ns {
                    self.answer_held_logout(now_ns, io);
                }
            }
        }
        self.settle(now_ns, io);
    }

    /// Returns the time at which [`Self::poll`] is needed, in nanoseconds since the Unix epoch. A resend needs it when the
    /// output has room.
    pub fn next_poll_ns(&self) -> Option<u64> {
        let (logon_ns, logout_ns) = self.patience_ns();
        match self.state {
            SessionState::Disconnected | SessionState::Closing => None,
            SessionState::AwaitingLogon | SessionState::LogonSent => Some(self.timers.state_ends_ns(logon_ns)),
            SessionState::LogoutSent | SessionState::LogoutReceived => Some(self.timers.state_ends_ns(logout_ns)),
            SessionState::LoggedOn => {
                let heartbeat = self.timers.next_ns(self.outgoing.last_sent_ns());
                let retry = self.recovery.retry_at_ns(seconds_ns(self.config.times.recovery_s));
                let reset = self.reset_sent.then(|| self.timers.state_ends_ns(logon_ns));
                [heartbeat, retry, reset].into_iter().flatten().min()
            }
        }
    }

    /// Completes a call: requests what a full memory made a session forget, answers a Logout whose gap is recovered, and
    /// continues a resend.
    pub fn settle(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        if !self.state.is_established() {
            return;
        }
        if let Some(range) = self.recovery.reopen(self.next_in, now_ns) {
            self.request(range, now_ns, io);
        }
        if self.state == SessionState::LogoutReceived && !self.recovery.is_open() {
            self.answer_held_logout(now_ns, io);
        }
        if self.state.is_established() && self.resend.is_active() {
            self.resend.write(self.dictionary.data_tags(), &mut self.outgoing, now_ns, io);
        }
    }

    /// Begins a state.
    pub fn enter(&mut self, state: SessionState, now_ns: u64) {
        self.state = state;
        self.timers.enter_state(now_ns);
    }

    /// Ends the connection; the caller closes it. `text` is the peer's Logout's.
    pub fn close(&mut self, reason: DisconnectReason, text: &[u8], io: &mut SessionIo<'_>) {
        match self.state {
            SessionState::Disconnected | SessionState::Closing => return,
            SessionState::LoggedOn | SessionState::LogoutSent | SessionState::LogoutReceived => {
                io.report(SessionEvent::LoggedOut { text });
            }
            SessionState::AwaitingLogon | SessionState::LogonSent => {}
        }
        self.state = SessionState::Closing;
        io.report(SessionEvent::Disconnect(reason));
    }

    /// Ends the connection with a Logout that needs no answer.
    pub fn logout_and_close(&mut self, text: &str, reason: DisconnectReason, now_ns: u64, io: &mut SessionIo<'_>) {
        let sent = self.outgoing.send_logout(text, now_ns, io);
        if self.is_sent(sent, io) {
            self.close(reason, b"", io);
        }
    }

    /// Sends a Logout that the peer is to answer, unless one was sent already.
    pub fn send_logout(&mut self, text: &str, now_ns: u64, io: &mut SessionIo<'_>) {
        if self.state == SessionState::LogoutSent {
            return;
        }
        let sent = self.outgoing.send_logout(text, now_ns, io);
        if self.is_sent(sent, io) {
            self.enter(SessionState::LogoutSent, now_ns);
        }
    }

    /// Completes a logout: both sides have sent theirs.
    pub fn finish_logout(&mut self, text: &[u8], io: &mut SessionIo<'_>) {
        if self.config.reset_on_logout {
            self.reset(SequenceNumbers::FIRST, io);
        }
        self.close(DisconnectReason::LogoutComplete, text, io);
    }

    /// Rejects a message.
    pub fn reject(&mut self, fault: &Fault<'_>, message: &Message<'_>, now_ns: u64, io: &mut SessionIo<'_>) {
        let sent = self.outgoing.send_reject(fault, RejectedMessage(message.bytes()), now_ns, io);
        self.is_sent(sent, io);
    }

    /// Requests missing messages.
    pub fn request(&mut self, range: RequestedRange, now_ns: u64, io: &mut SessionIo<'_>) {
        let sent = self.outgoing.send_resend_request(range.begin, range.end, now_ns, io);
        self.is_sent(sent, io);
    }

    /// Moves the number that is expected next, and requests the next chunk of a gap.
    #[inline]
    pub fn advance(&mut self, next: u64, now_ns: u64, io: &mut SessionIo<'_>) {
        self.next_in = next;
        if let Err(error) = io.store.set_next_in(next) {
            self.fail(&error, io);
        } else if let Some(range) = self.recovery.advance(next, now_ns) {
            self.request(range, now_ns, io);
        }
    }

    /// Lets both numbers restart, and forgets gaps and resends. Returns whether the store has done so.
    pub fn reset(&mut self, numbers: SequenceNumbers, io: &mut SessionIo<'_>) -> bool {
        if let Err(error) = io.store.reset(numbers) {
            self.fail(&error, io);
            return false;
        }
        self.next_in = numbers.next_in;
        self.outgoing.set_next(numbers.next_out);
        self.recovery.clear();
        self.resend.clear();
        io.report(SessionEvent::NumbersReset);
        true
    }

    /// Returns whether a message was sent; ends the connection if it could not be stored.
    pub fn is_sent(&mut self, sent: Result<u64, StoreError>, io: &mut SessionIo<'_>) -> bool {
        if let Err(error) = &sent {
            self.fail(error, io);
        }
        sent.is_ok()
    }

    fn fail(&mut self, error: &StoreError, io: &mut SessionIo<'_>) {
        io.alarm(&error.to_string());
        self.close(DisconnectReason::Store, b"", io);
    }

    /// Sends what keeps the connection alive, and requests again what does not come.
    fn keep_alive(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        let patience_ns = seconds_ns(self.config.times.recovery_s);
        if let Some(range) = self.recovery.retry(self.next_in, patience_ns, now_ns) {
            io.alarm("the peer does not resend missing messages; they are requested again");
            self.request(range, now_ns, io);
        }
        let sent = match self.timers.due(self.outgoing.last_sent_ns(), now_ns) {
            None => return,
            Some(TimerEvent::Silence) => return self.close(DisconnectReason::Silence, b"", io),
            Some(TimerEvent::TestRequest) => {
                self.timers.note_test_request();
                self.outgoing.send_test_request(now_ns, io)
            }
            Some(TimerEvent::Heartbeat) => self.outgoing.send_heartbeat(None, now_ns, io),
        };
        self.is_sent(sent, io);
    }

    /// Answers a Logout that came above a gap.
    fn answer_held_logout(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        let sent = self.outgoing.send_logout("", now_ns, io);
        if self.is_sent(sent, io) {
            let text = mem::take(&mut self.logout_text);
            self.finish_logout(&text, io);
        }
    }

    /// Returns the limits of the states before the logon and within the logout.
    fn patience_ns(&self) -> (u64, u64) {
        let times = &self.config.times;
        (seconds_ns(times.logon_s), seconds_ns(times.logout_s))
    }

    /// Forgets what belongs to a connection.
    fn forget_connection(&mut self) {
        // A reset that the peer did not answer is announced again.
        self.announces_reset |= mem::take(&mut self.reset_sent);
        self.state = SessionState::Disconnected;
        self.recovery.clear();
        self.resend.clear();
        self.logout_text.clear();
        self.peer_version.clear();
    }
}
