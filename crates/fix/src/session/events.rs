//! Events that a session reports to its application, the answers to them, and what a session needs from its caller.

use std::borrow::Cow;

use crate::field_table::Message;
use crate::message_store::{MessageStore, StoreError};
use crate::validation::Rejection;

/// Output, store and application of a session, lent for a call.
///
/// A message that answers an event is sent with [`Session::send`](super::Session::send) after the call, or is the event's
/// [`AppAnswer`].
pub struct SessionIo<'a> {
    /// Bytes for the socket are appended here. The caller removes those that it has sent.
    pub out: &'a mut Vec<u8>,
    /// Store of the session's sent messages.
    pub store: &'a mut dyn MessageStore,
    /// The application. Its answer counts for [`SessionEvent::LogonRequest`] and [`SessionEvent::Message`].
    pub events: &'a mut dyn FnMut(SessionEvent<'_>) -> AppAnswer,
}

impl SessionIo<'_> {
    /// Reports an event to which there is no answer.
    pub(crate) fn report(&mut self, event: SessionEvent<'_>) {
        (self.events)(event);
    }

    /// Reports a fault that an operator should know of.
    pub(crate) fn alarm(&mut self, text: &str) {
        self.report(SessionEvent::Alarm(text));
    }
}

/// Event of a session.
#[derive(Clone, Copy)]
pub enum SessionEvent<'a> {
    /// A valid Logon arrived at an acceptor. The application may refuse it: [`AppAnswer::RefuseLogon`].
    LogonRequest {
        /// The Logon.
        message: Message<'a>,
    },
    /// The session is logged on: messages can be sent.
    LoggedOn {
        /// The peer's Logon.
        message: Message<'a>,
        /// Interval of heartbeats in seconds; 0 for none.
        heartbeat_s: u32,
    },
    /// An application message is next in order.
    Message {
        /// The message.
        message: Message<'a>,
        /// MsgSeqNum (34).
        number: u64,
        /// PossDupFlag (43): the peer resends the message. It was not reported before.
        possible_duplicate: bool,
        /// PossResend (97): the peer's application may have sent the same contents under another number.
        possible_resend: bool,
    },
    /// The peer rejects a message (35=3).
    Rejected {
        /// The Reject.
        message: Message<'a>,
        /// RefSeqNum (45): number of the rejected message.
        number: Option<u64>,
        /// Text (58); empty without one.
        text: &'a [u8],
    },
    /// The peer skips numbers: their messages are lost, or were administrative.
    Skipped {
        /// First number that is skipped.
        from: u64,
        /// Number that is expected next.
        to: u64,
    },
    /// The session is no longer logged on, or the peer refused the Logon.
    LoggedOut {
        /// Text (58) of the peer's Logout; empty without one, and if the connection ended without a Logout.
        text: &'a [u8],
    },
    /// Both numbers restarted. Messages that were not received until now do not come any more.
    NumbersReset,
    /// The caller sends the output that is left, closes the connection, and calls
    /// [`Session::disconnected`](super::Session::disconnected).
    Disconnect(DisconnectReason),
    /// A fault that an operator should know of, as a sentence.
    Alarm(&'a str),
}

/// Answer of the application to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppAnswer {
    /// The event is taken.
    Taken,
    /// The Logon is refused with this text: a Logout answers it, and the connection ends.
    RefuseLogon(Cow<'static, str>),
    /// The application does not know the message's type: a BusinessMessageReject (35=j) with reason 3 answers it, before
    /// FIX 4.2 a Reject.
    UnsupportedType,
    /// The application cannot process the message: a BusinessMessageReject (35=j) answers it.
    BusinessReject {
        /// BusinessRejectReason (380).
        reason: u32,
        /// Text (58).
        text: Cow<'static, str>,
    },
    /// A field of the message is wrong: a Reject (35=3) answers it.
    Reject(Rejection),
}

/// Reason why a session ends its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DisconnectReason {
    /// Both sides have sent a Logout.
    #[error("the logout is complete")]
    LogoutComplete,
    /// The peer did not answer the Logout.
    #[error("the peer did not answer the Logout in time")]
    LogoutTimeout,
    /// The peer sent no Logon.
    #[error("the peer sent no Logon in time; check that the connection leads to its FIX port")]
    LogonTimeout,
    /// The first message is no Logon.
    #[error("the peer's first message is no Logon; check that the connection leads to its FIX port")]
    NoLogon,
    /// The Logon is not one of this session.
    #[error("the peer's Logon is invalid; compare CompIDs, version, time and fields of both sides")]
    InvalidLogon,
    /// The application refused the Logon.
    #[error("the application refused the peer's Logon")]
    LogonRefused,
    /// The peer refused the Logon.
    #[error("the peer refused the Logon; its Logout has the reason")]
    LogonRefusedByPeer,
    /// The number of a message is lower than expected.
    #[error("MsgSeqNum (34) is too low; compare the numbers of both sides, or reset them")]
    NumberTooLow,
    /// A message has no number.
    #[error("a message has no MsgSeqNum (34); the peer's engine is faulty")]
    NumberMissing,
    /// The numbers of a Logon contradict its flags, or what was sent.
    #[error("the peer's Logon has numbers that cannot be; compare the numbers of both sides, or reset them")]
    LogonNumbers,
    /// A second Logon arrived.
    #[error("the peer sent a second Logon without ResetSeqNumFlag (141)")]
    SecondLogon,
    /// The peer was silent.
    #[error("the peer was silent, and did not answer a TestRequest")]
    Silence,
    /// The message store failed.
    #[error("the message store failed; an alarm has the reason")]
    Store,
    /// The application logged out before the logon.
    #[error("the application ended the connection before the logon")]
    Cancelled,
}

/// Errors of sending an application message. Nothing is sent, and no number is used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The session is not logged on.
    #[error("the session is not logged on; send the message after the logon")]
    NotLoggedOn,
    /// The unsent output is at its limit.
    #[error("the peer does not take the output fast enough; send the message again after a part of it was sent")]
    Full,
    /// The message cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_remedy() {
        assert!(SendError::Full.to_string().contains("send the message again"));
        let store = SendError::from(StoreError("no space is left; free some".to_owned()));
        assert_eq!(store.to_string(), "the message store failed: no space is left; free some");
        assert!(DisconnectReason::NumberTooLow.to_string().contains("or reset them"));
    }
}
