//! Logon and resets of the numbers: first messages of both roles, and a second Logon with ResetSeqNumFlag (141).
//!
//! ```text
//!   initiator                                    acceptor
//!     Logon 34=n (141) (789)          ──>        checked, and passed to the application
//!     checked                         <──        Logon 34=m (141) (789)
//!     ResendRequest, or a resend by 789, in both directions
//! ```
//!
//! # Invariants
//!
//! * A reset is announced by ResetSeqNumFlag (141) in both directions. Both Logons then have number 1, and both sides
//!   continue with 2.
//! * Each side sends one Logon: one that answers with a reset which this side did not ask for counts for both.
//! * A reset in a session that is logged on restarts the sent numbers at once, and the received ones with the answer.

use crate::logon_recipe::LogonHeader;
use crate::tags;
use crate::values::parse_int;

use super::config::{BeginString, FaultDetail};
use super::events::{AppAnswer, DisconnectReason, SessionEvent, SessionIo};
use super::machine::SessionMachine;
use super::message_kind::MessageKind;
use super::received::{HeaderFault, Received};
use super::rejects::{Fault, FaultTag};
use super::sequence_numbers::SequenceNumbers;
use super::state::SessionState;

/// Contents of a valid Logon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogonTerms {
    /// HeartBtInt (108) in seconds.
    heartbeat_s: u32,
    /// ResetSeqNumFlag (141).
    resets: bool,
    /// NextExpectedMsgSeqNum (789), if the session uses it.
    wanted: Option<u64>,
}

/// Reason why a Logon ends the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LogonFault {
    reason: DisconnectReason,
    /// Text of the Logout that answers; no Logout without it.
    text: Option<String>,
}

impl LogonFault {
    fn new(reason: DisconnectReason, text: impl Into<String>) -> Self {
        Self { reason, text: Some(text.into()) }
    }
}

impl SessionMachine {
    /// Sends the Logon of an initiator.
    pub fn send_first_logon(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        self.enter(SessionState::LogonSent, now_ns);
        let restarts = self.announces_reset || self.config.reset_on_logon;
        if restarts && self.numbers() != SequenceNumbers::FIRST && !self.reset(SequenceNumbers::FIRST, io) {
            return;
        }
        self.reset_sent = restarts || (self.config.resets_by_itself() && self.numbers() == SequenceNumbers::FIRST);
        self.send_logon(self.reset_sent, self.config.heartbeat_s, now_ns, io);
    }

    /// Answers the Logon of an initiator.
    pub fn answer_logon(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let terms = match self.logon_terms(received) {
            Ok(terms) => terms,
            Err(fault) => return self.refuse(fault, received, io),
        };
        if let AppAnswer::RefuseLogon(text) = (io.events)(SessionEvent::LogonRequest { message: received.message }) {
            return self.refuse(LogonFault::new(DisconnectReason::LogonRefused, text), received, io);
        }
        let resets = terms.resets || self.announces_reset;
        if (resets || self.config.reset_on_logon) && !self.reset(SequenceNumbers::FIRST, io) {
            return;
        }
        // A reset that the acceptor announces makes the initiator's Logon the first message.
        let number = if resets { 1 } else { received.number };
        if let Err(fault) = self.check_logon_numbers(number, &terms) {
            return self.refuse(fault, received, io);
        }
        self.note_peer_version(received);
        if number == self.next_in {
            self.advance(number + 1, received.now_ns, io);
        }
        if self.state == SessionState::AwaitingLogon && self.send_logon(resets, terms.heartbeat_s, received.now_ns, io)
        {
            self.log_on(number, &terms, received, io);
        }
    }

    /// Takes the acceptor's Logon.
    pub fn take_logon_answer(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let terms = match self.logon_terms(received) {
            Ok(terms) => terms,
            Err(fault) => return self.refuse(fault, received, io),
        };
        if terms.resets && !self.reset_sent {
            // The acceptor has counted this side's Logon as number 1.
            if !self.reset(SequenceNumbers { next_in: 1, next_out: 2 }, io) {
                return;
            }
        } else if self.reset_sent && received.number != 1 {
            let text = "ResetSeqNumFlag (141) of the Logon was not answered";
            return self.refuse(LogonFault::new(DisconnectReason::LogonNumbers, text), received, io);
        }
        if let Err(fault) = self.check_logon_numbers(received.number, &terms) {
            return self.refuse(fault, received, io);
        }
        self.note_peer_version(received);
        if received.number == self.next_in {
            self.advance(received.number + 1, received.now_ns, io);
        }
        if self.state == SessionState::LogonSent {
            self.log_on(received.number, &terms, received, io);
        }
    }

    /// Takes the Logout by which an acceptor refuses the Logon.
    pub fn take_logon_refusal(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if received.number == self.next_in {
            self.advance(received.number + 1, received.now_ns, io);
        }
        io.report(SessionEvent::LoggedOut { text: received.text() });
        self.close(DisconnectReason::LogonRefusedByPeer, b"", io);
    }

    /// Sends a Logon that resets the numbers of a session that is logged on.
    pub fn send_reset_logon(&mut self, now_ns: u64, io: &mut SessionIo<'_>) {
        if self.reset_sent {
            return;
        }
        // Messages that the peer sent before it reads this Logon still have the old numbers.
        let numbers = SequenceNumbers { next_in: self.next_in, next_out: 1 };
        if let Err(error) = io.store.reset(numbers) {
            self.is_sent(Err(error), io);
            return;
        }
        self.outgoing.set_next(numbers.next_out);
        self.resend.clear();
        self.reset_sent = true;
        self.enter(SessionState::LoggedOn, now_ns);
        self.send_logon(true, self.timers.heartbeat_s(), now_ns, io);
    }

    /// Takes a Logon in a session that is logged on: a reset, or the answer to one.
    pub fn take_second_logon(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if received.is_duplicate() {
            return self.consume_expected(received, io);
        }
        let terms = match self.logon_terms(received) {
            Ok(terms) if terms.resets => terms,
            Ok(_) => {
                let text = "a Logon in a session that is logged on needs ResetSeqNumFlag (141)";
                return self.refuse(LogonFault::new(DisconnectReason::SecondLogon, text), received, io);
            }
            Err(fault) => return self.refuse(fault, received, io),
        };
        if self.reset_sent {
            self.reset_sent = false;
            self.recovery.clear();
            io.report(SessionEvent::NumbersReset);
            return self.advance(received.number + 1, received.now_ns, io);
        }
        if !self.reset(SequenceNumbers::FIRST, io) {
            return;
        }
        self.advance(received.number + 1, received.now_ns, io);
        if self.state == SessionState::LoggedOn && self.send_logon(true, terms.heartbeat_s, received.now_ns, io) {
            self.timers.log_on(terms.heartbeat_s, received.now_ns);
        }
    }

    /// Ends a connection whose first message does not belong to the session.
    pub fn refuse_header(&mut self, fault: HeaderFault, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if received.kind != MessageKind::Logon {
            return self.close(DisconnectReason::NoLogon, b"", io);
        }
        let text = match fault {
            HeaderFault::BeginString | HeaderFault::CompId => None,
            HeaderFault::NumberMissing => Some("Received message without MsgSeqNum"),
            HeaderFault::SendingTime => Some("Invalid Logon message: SendingTime accuracy problem, field=52"),
        };
        let text = text.filter(|_| self.config.fault_detail == FaultDetail::Full).map(str::to_owned);
        self.refuse(LogonFault { reason: DisconnectReason::InvalidLogon, text }, received, io);
    }

    /// Ends the connection, with a Logout if the fault has a text.
    fn refuse(&mut self, fault: LogonFault, received: &Received<'_>, io: &mut SessionIo<'_>) {
        match fault.text {
            Some(text) => self.logout_and_close(&text, fault.reason, received.now_ns, io),
            None => self.close(fault.reason, b"", io),
        }
    }

    /// Completes a logon. `number` is the peer's Logon's; the last sent message is this side's Logon.
    fn log_on(&mut self, number: u64, terms: &LogonTerms, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let now_ns = received.now_ns;
        (self.announces_reset, self.reset_sent) = (false, false);
        self.enter(SessionState::LoggedOn, now_ns);
        self.timers.log_on(terms.heartbeat_s, now_ns);
        io.report(SessionEvent::LoggedOn { message: received.message, heartbeat_s: terms.heartbeat_s });
        if number >= self.next_in {
            match terms.wanted {
                Some(_) => self.recovery.expect_resend(number, now_ns),
                None => self.note_processed(received, io),
            }
        }
        let own_logon = self.outgoing.next() - 1;
        if let Some(wanted) = terms.wanted.filter(|wanted| *wanted < own_logon) {
            // The Logon is in the range, for peers that do not keep a Logon above a gap: a gap fill stands for it.
            self.resend.request(wanted.max(1), own_logon);
        }
    }

    /// Reads a Logon.
    fn logon_terms(&mut self, received: &Received<'_>) -> Result<LogonTerms, LogonFault> {
        if let Err(fault) = self.check(received) {
            return Err(self.invalid_logon(&fault));
        }
        let message = &received.message;
        let is_fixt = self.config.begin_string == BeginString::Fixt11;
        if is_fixt && message.get(tags::DEFAULT_APPL_VER_ID).is_none() {
            return Err(LogonFault { reason: DisconnectReason::InvalidLogon, text: None });
        }
        let resets = message.has_flag(tags::RESET_SEQ_NUM_FLAG);
        if resets && received.number != 1 {
            let text = format!("ResetSeqNumFlag (141) needs MsgSeqNum (34) 1, not {}", received.number);
            return Err(LogonFault::new(DisconnectReason::LogonNumbers, text));
        }
        let heartbeat_s = match message.get(tags::HEART_BT_INT).map(parse_int) {
            None => self.config.heartbeat_s,
            Some(Some(seconds)) if seconds < 0 => {
                return Err(LogonFault::new(DisconnectReason::InvalidLogon, "HeartBtInt must not be negative"));
            }
            Some(seconds) => match seconds.and_then(|seconds| u32::try_from(seconds).ok()) {
                Some(seconds) => seconds,
                None => return Err(LogonFault::new(DisconnectReason::InvalidLogon, "HeartBtInt is too large")),
            },
        };
        let wanted = received.unsigned(tags::NEXT_EXPECTED_MSG_SEQ_NUM).filter(|_| self.config.next_expected);
        Ok(LogonTerms { heartbeat_s, resets, wanted })
    }

    /// Returns the fault of a Logon that the validation refuses. Nothing is answered but in full detail: the other side is
    /// not known yet.
    fn invalid_logon(&self, fault: &Fault<'_>) -> LogonFault {
        let text = match fault.tag {
            FaultTag::Number(tag) => format!("Invalid Logon message: {}, field={tag}", fault.text),
            FaultTag::None | FaultTag::Text(_) => format!("Invalid Logon message: {}", fault.text),
        };
        let is_answered = self.config.fault_detail == FaultDetail::Full || self.state.is_established();
        LogonFault { reason: DisconnectReason::InvalidLogon, text: Some(text).filter(|_| is_answered) }
    }

    /// Checks the number of the peer's Logon, and the number that the peer expects (789).
    fn check_logon_numbers(&self, number: u64, terms: &LogonTerms) -> Result<(), LogonFault> {
        if number < self.next_in {
            return Err(LogonFault::new(DisconnectReason::NumberTooLow, self.too_low_text(number)));
        }
        let next = self.outgoing.next();
        match terms.wanted {
            Some(wanted) if wanted > next => {
                let text = format!(
                    "Tag 789 (NextExpectedMsgSeqNum) is higher than expected. Expected {next}, Received {wanted}"
                );
                Err(LogonFault::new(DisconnectReason::LogonNumbers, text))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn note_peer_version(&mut self, received: &Received<'_>) {
        self.peer_version.clear();
        self.peer_version.extend_from_slice(received.message.get(tags::DEFAULT_APPL_VER_ID).unwrap_or_default());
    }

    /// Sends a Logon. Returns whether it was sent.
    fn send_logon(&mut self, resets: bool, heartbeat_s: u32, now_ns: u64, io: &mut SessionIo<'_>) -> bool {
        let Self { config, signer, outgoing, peer_version, next_in, .. } = self;
        let header = LogonHeader {
            sender: &config.sender,
            target: &config.target,
            number: outgoing.next(),
            sending_time_ns: now_ns,
            precision: config.time_precision,
        };
        let version = config.default_appl_ver_id.as_deref().map_or(peer_version.as_slice(), str::as_bytes);
        let sent = outgoing.send_logon(now_ns, io, |body| {
            body.unsigned(tags::ENCRYPT_METHOD, 0);
            body.unsigned(tags::HEART_BT_INT, heartbeat_s.into());
            if resets {
                body.flag(tags::RESET_SEQ_NUM_FLAG, true);
            }
            if config.next_expected {
                body.unsigned(tags::NEXT_EXPECTED_MSG_SEQ_NUM, *next_in);
            }
            if let Some(signer) = signer {
                signer.write(&header, body);
            }
            for (tag, value) in &config.logon_fields {
                body.bytes(*tag, value);
            }
            if config.begin_string == BeginString::Fixt11 {
                body.bytes(tags::DEFAULT_APPL_VER_ID, version);
            }
        });
        self.is_sent(sent, io)
    }
}
