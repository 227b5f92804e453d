//! How a session takes a message: by its state, the message's kind, and the place of its number.
//!
//! ```text
//!   header: version, number, time, CompIDs ── wrong ──> Reject and Logout, or the end of the connection
//!     │
//!     (state, kind)
//!     ├─ Logon, Logout, ResendRequest, SequenceReset without gap fill: taken whatever their number is
//!     └─ others, by number ─┬─ low:      discarded if resent (43), else the end of the connection
//!                           ├─ expected: validated, taken, and the next held one behind it
//!                           └─ high:     held, and the missing ones requested
//! ```

use crate::tags;
use crate::validation::{Rejection, SessionRejectReason, validate};

use super::config::{BeginString, FaultDetail};
use super::events::{AppAnswer, DisconnectReason, SessionEvent, SessionIo};
use super::machine::SessionMachine;
use super::message_kind::MessageKind;
use super::received::{HeaderFault, Received};
use super::rejects::{Fault, FaultTag, RejectedMessage};
use super::sequence_numbers::NumberPlace;
use super::state::SessionState;
use super::timers::seconds_ns;

/// BusinessRejectReason (380): the application does not support the message's type.
const UNSUPPORTED_TYPE: u32 = 3;

impl SessionMachine {
    /// Takes a message whose frame is right.
    pub fn take(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if matches!(self.state, SessionState::Disconnected | SessionState::Closing) {
            return;
        }
        let is_refusal = self.state == SessionState::LogonSent && received.kind == MessageKind::Logout;
        if let Some(fault) = self.header_fault(received)
            && !is_refusal
        {
            return self.take_wrong_header(fault, received, io);
        }
        self.timers.note_received(received.now_ns);
        match (self.state, received.kind) {
            (SessionState::Disconnected | SessionState::Closing, _) => {}
            (SessionState::AwaitingLogon, MessageKind::Logon) => self.answer_logon(received, io),
            (SessionState::LogonSent, MessageKind::Logon) => self.take_logon_answer(received, io),
            (SessionState::LogonSent, MessageKind::Logout) => self.take_logon_refusal(received, io),
            (SessionState::AwaitingLogon | SessionState::LogonSent, _) => {
                self.close(DisconnectReason::NoLogon, b"", io);
            }
            (SessionState::LoggedOn, MessageKind::Logon) => self.take_second_logon(received, io),
            (SessionState::LogoutSent | SessionState::LogoutReceived, MessageKind::Logon) => {
                self.consume_expected(received, io);
            }
            (SessionState::LoggedOn | SessionState::LogoutSent | SessionState::LogoutReceived, kind) => match kind {
                MessageKind::Logout => self.take_logout(received, io),
                MessageKind::ResendRequest => self.take_resend_request(received, io),
                MessageKind::SequenceReset if !received.message.has_flag(tags::GAP_FILL_FLAG) => {
                    self.take_sequence_reset(received, io);
                }
                MessageKind::Logon
                | MessageKind::Heartbeat
                | MessageKind::TestRequest
                | MessageKind::Reject
                | MessageKind::SequenceReset
                | MessageKind::Application => self.take_by_number(received, io),
            },
        }
    }

    /// Takes bytes that are no message. They are ignored, except that a connection begins with a Logon.
    pub fn take_garbled(&mut self, io: &mut SessionIo<'_>) {
        if matches!(self.state, SessionState::AwaitingLogon | SessionState::LogonSent) {
            self.close(DisconnectReason::InvalidLogon, b"", io);
        }
    }

    /// Copies the next held message to `frame`, behind numbers whose messages were processed before their turn. Returns
    /// whether there is a message.
    pub fn take_held(&mut self, frame: &mut Vec<u8>, now_ns: u64, io: &mut SessionIo<'_>) -> bool {
        while self.state.is_established() && self.recovery.take(self.next_in, frame) {
            if !frame.is_empty() {
                return true;
            }
            self.advance(self.next_in + 1, now_ns, io);
        }
        false
    }

    /// Checks a message by the dictionary.
    pub fn check<'a>(&mut self, received: &Received<'a>) -> Result<(), Fault<'a>> {
        if let Some(fault) = received.rejected_fault() {
            return Err(fault);
        }
        let checked = validate(&self.dictionary, self.config.rules, &received.message, &mut self.scratch);
        checked.map_err(|rejection| {
            let is_full = self.config.fault_detail == FaultDetail::Full;
            let is_type = rejection.reason == SessionRejectReason::InvalidMsgType;
            let tag = rejection.tag.or(Some(tags::MSG_TYPE).filter(|_| is_full && is_type));
            Fault::from(Rejection { tag, ..rejection })
        })
    }

    /// Moves the number that is expected next behind a message, if that message has it.
    pub fn consume_expected(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if received.number == self.next_in && self.state.is_established() {
            self.advance(received.number + 1, received.now_ns, io);
        }
    }

    /// Returns the first fault of the header that concerns the session. Fields that are missing are left to the
    /// validation.
    fn header_fault(&self, received: &Received<'_>) -> Option<HeaderFault> {
        let begin_string = received.message.get(tags::BEGIN_STRING);
        if begin_string != Some(self.config.begin_string.text().as_bytes()) {
            Some(HeaderFault::BeginString)
        } else if received.lacks_number() {
            Some(HeaderFault::NumberMissing)
        } else if received.is_held {
            None
        } else if self.is_out_of_time(received) {
            Some(HeaderFault::SendingTime)
        } else {
            let is_wrong = self.config.check_comp_ids
                && (self.is_other_id(received.header.sender, &self.config.target)
                    || self.is_other_id(received.header.target, &self.config.sender));
            is_wrong.then_some(HeaderFault::CompId)
        }
    }

    fn is_out_of_time(&self, received: &Received<'_>) -> bool {
        let Some(max_s) = self.config.max_latency_s else { return false };
        received.sent_ns().is_some_and(|sent_ns| sent_ns.abs_diff(received.now_ns) > seconds_ns(max_s))
    }

    fn is_other_id(&self, value: Option<&[u8]>, expected: &str) -> bool {
        match value {
            None => false,
            Some(b"") => !self.config.rules.values,
            Some(id) => id != expected.as_bytes(),
        }
    }

    /// Answers a message whose header is not the session's.
    fn take_wrong_header(&mut self, fault: HeaderFault, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if !self.state.is_established() {
            return self.refuse_header(fault, received, io);
        }
        let is_full = self.config.fault_detail == FaultDetail::Full;
        let (reason, tag, text) = match fault {
            HeaderFault::BeginString if received.kind == MessageKind::Logout => {
                return self.answer_logout(received, io);
            }
            HeaderFault::BeginString => {
                self.send_logout("Incorrect BeginString", received.now_ns, io);
                return self.consume_expected(received, io);
            }
            HeaderFault::NumberMissing => {
                let text = "Received message without MsgSeqNum";
                return self.logout_and_close(text, DisconnectReason::NumberMissing, received.now_ns, io);
            }
            HeaderFault::SendingTime => (
                SessionRejectReason::SendingTimeAccuracy,
                Some(tags::SENDING_TIME),
                "SendingTime accuracy problem, field=52",
            ),
            HeaderFault::CompId => (SessionRejectReason::CompIdProblem, None, "CompID problem"),
        };
        let rejected = Fault::new(reason, tag.filter(|_| is_full));
        self.reject(&rejected, &received.message, received.now_ns, io);
        self.consume_expected(received, io);
        if self.state.is_established() {
            self.send_logout(if is_full { text } else { "" }, received.now_ns, io);
        }
    }

    /// Takes a message whose turn depends on its number.
    #[inline]
    fn take_by_number(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        match NumberPlace::of(received.number, self.next_in) {
            NumberPlace::Expected => self.take_expected(received, io),
            NumberPlace::Low => self.take_low(received, io),
            NumberPlace::High => {
                let (frame, now_ns) = (received.message.bytes(), received.now_ns);
                if let Some(range) = self.recovery.hold(received.number, frame, self.next_in, now_ns) {
                    self.request(range, now_ns, io);
                }
            }
        }
    }

    /// Takes the message whose number is expected next.
    fn take_expected(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let is_reset = received.kind == MessageKind::SequenceReset;
        if received.is_duplicate() && !is_reset && received.has_late_first_time() {
            return self.reject_first_time(received, io);
        }
        if let Err(fault) = self.check(received) {
            self.reject(&fault, &received.message, received.now_ns, io);
            if !is_reset {
                self.consume_expected(received, io);
            }
            return;
        }
        match received.kind {
            MessageKind::Application => self.deliver(received, io),
            MessageKind::TestRequest => {
                let id = received.message.get(tags::TEST_REQ_ID);
                let sent = self.outgoing.send_heartbeat(id, received.now_ns, io);
                self.is_sent(sent, io);
            }
            MessageKind::SequenceReset => return self.take_gap_fill(received, io),
            MessageKind::Reject => io.report(SessionEvent::Rejected {
                message: received.message,
                number: received.unsigned(tags::REF_SEQ_NUM),
                text: received.text(),
            }),
            MessageKind::Heartbeat | MessageKind::Logon | MessageKind::Logout | MessageKind::ResendRequest => {}
        }
        self.consume_expected(received, io);
    }

    /// Takes a message whose number was received already.
    fn take_low(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if !received.is_duplicate() {
            let text = self.too_low_text(received.number);
            self.logout_and_close(&text, DisconnectReason::NumberTooLow, received.now_ns, io);
        } else if received.kind == MessageKind::SequenceReset {
            // A gap fill that was resent skips nothing new, whatever it names as the next number.
        } else if received.header.orig_sending_time.is_none() {
            let fault = Fault::new(SessionRejectReason::RequiredTagMissing, Some(tags::ORIG_SENDING_TIME));
            self.reject(&fault, &received.message, received.now_ns, io);
        } else if received.has_late_first_time() {
            self.reject_first_time(received, io);
        }
    }

    /// Rejects a resent message that was sent before its first sending, and logs out.
    fn reject_first_time(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let is_full = self.config.fault_detail == FaultDetail::Full;
        let tag = Some(tags::ORIG_SENDING_TIME).filter(|_| is_full);
        let fault = Fault::new(SessionRejectReason::SendingTimeAccuracy, tag);
        self.reject(&fault, &received.message, received.now_ns, io);
        self.consume_expected(received, io);
        if self.state.is_established() {
            let text = if is_full { "SendingTime accuracy problem, field=122" } else { "" };
            self.send_logout(text, received.now_ns, io);
        }
    }

    /// Passes a message to the application, and sends the reject that it answers with.
    fn deliver(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let Received { message, number, now_ns, .. } = *received;
        if self.has_other_version(received) {
            let tag = FaultTag::Number(tags::APPL_VER_ID);
            let fault = Fault { reason: SessionRejectReason::Other, tag, text: "Unsupported ApplVerID" };
            return self.reject(&fault, &message, now_ns, io);
        }
        let answer = (io.events)(SessionEvent::Message {
            message,
            number,
            possible_duplicate: received.is_duplicate(),
            possible_resend: received.is_possible_resend(),
        });
        match answer {
            AppAnswer::Taken | AppAnswer::RefuseLogon(_) => {}
            AppAnswer::UnsupportedType => {
                self.reject_business(UNSUPPORTED_TYPE, "Unsupported Message Type", received, io);
            }
            AppAnswer::BusinessReject { reason, text } => self.reject_business(reason, &text, received, io),
            AppAnswer::Reject(rejection) => self.reject(&rejection.into(), &message, now_ns, io),
        }
    }

    /// Rejects a message for the application; before FIX 4.2 there is the session's Reject alone.
    fn reject_business(&mut self, reason: u32, text: &str, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let Received { message, now_ns, .. } = received;
        if self.config.begin_string < BeginString::Fix42 {
            let fault = Fault { reason: SessionRejectReason::Other, tag: FaultTag::None, text };
            return self.reject(&fault, message, *now_ns, io);
        }
        let rejected = RejectedMessage(message.bytes());
        let sent = self.outgoing.send_business_reject(reason, text, rejected, *now_ns, io);
        self.is_sent(sent, io);
    }

    /// Returns whether a message has an ApplVerID (1128) that is not the session's.
    fn has_other_version(&self, received: &Received<'_>) -> bool {
        let is_fixt = self.config.begin_string == BeginString::Fixt11;
        let is_own = |version: &[u8]| {
            let own = [&self.config.default_appl_ver_id, &self.config.appl_ver_id];
            version == self.peer_version || own.into_iter().flatten().any(|own| own.as_bytes() == version)
        };
        is_fixt && received.header.appl_ver_id.is_some_and(|version| !is_own(version))
    }

    /// Takes a gap fill whose number is expected next. It has no number of its own: the next one is the one it names. A
    /// message that has arrived before its turn is not skipped: the peer has sent it, and its sender counts on it.
    fn take_gap_fill(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let next = received.unsigned(tags::NEW_SEQ_NO).unwrap_or_default();
        let held = self.recovery.first_held_above(self.next_in);
        self.skip_to(held.map_or(next, |held| next.min(held)), received, io);
    }

    /// Takes a SequenceReset without gap fill, whatever its number is.
    fn take_sequence_reset(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if let Err(fault) = self.check(received) {
            return self.reject(&fault, &received.message, received.now_ns, io);
        }
        let next = received.unsigned(tags::NEW_SEQ_NO).unwrap_or_default();
        if next >= self.next_in || !received.is_duplicate() {
            self.skip_to(next, received, io);
        }
    }

    /// Expects a higher number next. A lower one is rejected.
    fn skip_to(&mut self, next: u64, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if next < self.next_in {
            let is_full = self.config.fault_detail == FaultDetail::Full;
            let tag = Some(tags::NEW_SEQ_NO).filter(|_| is_full);
            let fault = Fault::new(SessionRejectReason::ValueIncorrect, tag);
            self.reject(&fault, &received.message, received.now_ns, io);
        } else if next > self.next_in {
            io.report(SessionEvent::Skipped { from: self.next_in, to: next });
            self.advance(next, received.now_ns, io);
        }
    }

    /// Takes a ResendRequest, also above a gap: two sides that both miss messages would wait for each other forever.
    fn take_resend_request(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let place = NumberPlace::of(received.number, self.next_in);
        if place == NumberPlace::Low && received.is_duplicate() {
            return;
        }
        match self.check(received).and_then(|()| self.requested(received)) {
            Ok((begin, end)) => self.resend.request(begin, end),
            Err(fault) => self.reject(&fault, &received.message, received.now_ns, io),
        }
        if !self.state.is_established() {
            return;
        }
        self.resend.write(self.dictionary.data_tags(), &mut self.outgoing, received.now_ns, io);
        match place {
            NumberPlace::Low => {}
            NumberPlace::Expected => self.consume_expected(received, io),
            NumberPlace::High => self.note_processed(received, io),
        }
    }

    /// Returns the numbers that a ResendRequest asks for, both ends included: at most those that were sent.
    fn requested(&self, received: &Received<'_>) -> Result<(u64, u64), Fault<'static>> {
        let number = |tag| received.unsigned(tag).unwrap_or_default();
        let (begin, end) = (number(tags::BEGIN_SEQ_NO).max(1), number(tags::END_SEQ_NO));
        let last = self.outgoing.next().saturating_sub(1);
        let end = if self.config.begin_string.is_infinity(end) { last } else { end.min(last) };
        let wrong = |tag| Fault::new(SessionRejectReason::ValueIncorrect, Some(tag));
        if begin > last {
            Err(wrong(tags::BEGIN_SEQ_NO))
        } else if end < begin {
            Err(wrong(tags::END_SEQ_NO))
        } else {
            Ok((begin, end))
        }
    }

    /// Takes a Logout. It is the answer to this side's, or is answered.
    fn take_logout(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        let place = NumberPlace::of(received.number, self.next_in);
        if place == NumberPlace::Low && received.is_duplicate() {
            return;
        }
        if let Err(fault) = self.check(received) {
            self.reject(&fault, &received.message, received.now_ns, io);
            return self.consume_expected(received, io);
        }
        let is_first = self.state == SessionState::LoggedOn;
        if is_first && place == NumberPlace::High && self.config.recovers_before_logout() {
            self.logout_text.clear();
            self.logout_text.extend_from_slice(received.text());
            self.enter(SessionState::LogoutReceived, received.now_ns);
            self.note_processed(received, io);
        } else {
            self.answer_logout(received, io);
        }
    }

    /// Answers a Logout, unless it is the answer, and ends the connection.
    fn answer_logout(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if self.state != SessionState::LogoutSent {
            let sent = self.outgoing.send_logout("", received.now_ns, io);
            if !self.is_sent(sent, io) {
                return;
            }
        }
        self.consume_expected(received, io);
        if self.state.is_established() {
            self.finish_logout(received.text(), io);
        }
    }

    /// Notes the number of a message that was processed above a gap, and requests the gap.
    pub fn note_processed(&mut self, received: &Received<'_>, io: &mut SessionIo<'_>) {
        if let Some(range) = self.recovery.hold(received.number, b"", self.next_in, received.now_ns) {
            self.request(range, received.now_ns, io);
        }
    }

    /// Returns the text of a Logout about a number that is too low.
    pub fn too_low_text(&self, number: u64) -> String {
        format!("MsgSeqNum too low, expecting {} but received {number}", self.next_in)
    }
}
