//! Messages that a session sends. Each has its number at the moment of its writing, and goes to the store before it goes
//! to the output.
//!
//! ```text
//!   8 9 35 │ 34 (43) 49 50 │ 52 │ 56 57 │ (122) │ 142 143 │ (1128) │ body │ 10
//!            `sender` ─┘     now   `target`        `locations`
//! ```
//!
//! 43 and 122 belong to resent messages and gap fills. 1128 belongs to application messages, if the session has it.

use crate::field_table::Message;
use crate::message_store::StoreError;
use crate::message_writer::MessageWriter;
use crate::soh::SOH;
use crate::tags::{self, Tag};
use crate::values::TimePrecision;

use super::config::{BeginString, SessionConfig};
use super::events::SessionIo;
use super::rejects::{Fault, RejectedMessage, write_business_reject, write_reject};

/// Length of `10=000` and its delimiter.
const CHECK_SUM_BYTES: usize = 7;
/// TestReqID (112) of a TestRequest.
const TEST_REQUEST_ID: &str = "TEST";

/// Sender of a session.
pub(crate) struct Outgoing {
    writer: MessageWriter,
    begin_string: BeginString,
    precision: TimePrecision,
    /// Ready fields 49 and 50.
    sender: Vec<u8>,
    /// Ready fields 56 and 57.
    target: Vec<u8>,
    /// Ready fields 142 and 143.
    locations: Vec<u8>,
    /// Ready field 1128.
    version: Vec<u8>,
    next: u64,
    last_sent_ns: u64,
}

impl Outgoing {
    /// Makes a sender whose next message has this number.
    pub fn new(config: &SessionConfig, next: u64) -> Self {
        let ids = &config.sub_ids;
        let is_fixt = config.begin_string == BeginString::Fixt11;
        Self {
            writer: MessageWriter::new(config.begin_string.text()),
            begin_string: config.begin_string,
            precision: config.time_precision,
            sender: ready_fields(&[
                (tags::SENDER_COMP_ID, Some(&config.sender)),
                (tags::SENDER_SUB_ID, ids.sender_sub.as_ref()),
            ]),
            target: ready_fields(&[
                (tags::TARGET_COMP_ID, Some(&config.target)),
                (tags::TARGET_SUB_ID, ids.target_sub.as_ref()),
            ]),
            locations: ready_fields(&[
                (tags::SENDER_LOCATION_ID, ids.sender_location.as_ref()),
                (tags::TARGET_LOCATION_ID, ids.target_location.as_ref()),
            ]),
            version: ready_fields(&[(tags::APPL_VER_ID, config.appl_ver_id.as_ref().filter(|_| is_fixt))]),
            next,
            last_sent_ns: 0,
        }
    }

    /// Returns the number of the message that is sent next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Sets the number of the message that is sent next.
    pub fn set_next(&mut self, next: u64) {
        self.next = next;
    }

    /// Returns the time of the last sent message, in nanoseconds since the Unix epoch.
    pub fn last_sent_ns(&self) -> u64 {
        self.last_sent_ns
    }

    /// Sends an application message. Returns its number.
    #[inline]
    pub fn send_application(
        &mut self,
        msg_type: &[u8],
        now_ns: u64,
        io: &mut SessionIo<'_>,
        body: impl FnOnce(&mut MessageWriter),
    ) -> Result<u64, StoreError> {
        self.begin(msg_type, now_ns);
        self.writer.raw(&self.version);
        body(&mut self.writer);
        // A UserRequest has a password.
        let stored = if msg_type == b"BE" { Stored::Number } else { Stored::Whole };
        self.finish(now_ns, io, stored)
    }

    /// Sends a Logon. Its text is not stored: it may have credentials, and is never resent.
    pub fn send_logon(
        &mut self,
        now_ns: u64,
        io: &mut SessionIo<'_>,
        body: impl FnOnce(&mut MessageWriter),
    ) -> Result<u64, StoreError> {
        self.begin(b"A", now_ns);
        body(&mut self.writer);
        self.finish(now_ns, io, Stored::Number)
    }

    /// Sends a Heartbeat, with the id of the TestRequest that it answers.
    pub fn send_heartbeat(
        &mut self,
        test_id: Option<&[u8]>,
        now_ns: u64,
        io: &mut SessionIo<'_>,
    ) -> Result<u64, StoreError> {
        self.send_admin(b"0", now_ns, io, |body| {
            if let Some(id) = test_id {
                body.bytes(tags::TEST_REQ_ID, id);
            }
        })
    }

    /// Sends a TestRequest.
    pub fn send_test_request(&mut self, now_ns: u64, io: &mut SessionIo<'_>) -> Result<u64, StoreError> {
        self.send_admin(b"1", now_ns, io, |body| body.text(tags::TEST_REQ_ID, TEST_REQUEST_ID))
    }

    /// Sends a ResendRequest.
    pub fn send_resend_request(
        &mut self,
        begin: u64,
        end: u64,
        now_ns: u64,
        io: &mut SessionIo<'_>,
    ) -> Result<u64, StoreError> {
        self.send_admin(b"2", now_ns, io, |body| {
            body.unsigned(tags::BEGIN_SEQ_NO, begin);
            body.unsigned(tags::END_SEQ_NO, end);
        })
    }

    /// Sends a Logout, with a text if it is not empty.
    pub fn send_logout(&mut self, text: &str, now_ns: u64, io: &mut SessionIo<'_>) -> Result<u64, StoreError> {
        self.send_admin(b"5", now_ns, io, |body| {
            if !text.is_empty() {
                body.text(tags::TEXT, text);
            }
        })
    }

    /// Sends a Reject of a received message.
    pub fn send_reject(
        &mut self,
        fault: &Fault<'_>,
        rejected: RejectedMessage<'_>,
        now_ns: u64,
        io: &mut SessionIo<'_>,
    ) -> Result<u64, StoreError> {
        let version = self.begin_string;
        self.send_admin(b"3", now_ns, io, |body| write_reject(body, version, fault, rejected))
    }

    /// Sends a BusinessMessageReject of a received message.
    pub fn send_business_reject(
        &mut self,
        reason: u32,
        text: &str,
        rejected: RejectedMessage<'_>,
        now_ns: u64,
        io: &mut SessionIo<'_>,
    ) -> Result<u64, StoreError> {
        self.send_application(b"j", now_ns, io, |body| write_business_reject(body, reason, text, rejected))
    }

    /// Writes a gap fill for the numbers from `begin` on; `next` is the number behind them.
    pub fn write_gap_fill(&mut self, begin: u64, next: u64, now_ns: u64, out: &mut Vec<u8>) {
        let Self { writer, precision, sender, target, locations, .. } = self;
        writer.begin(b"4");
        writer.unsigned(tags::MSG_SEQ_NUM, begin);
        writer.flag(tags::POSS_DUP_FLAG, true);
        writer.raw(sender);
        writer.time(tags::SENDING_TIME, now_ns, *precision);
        writer.raw(target);
        writer.time(tags::ORIG_SENDING_TIME, now_ns, *precision);
        writer.raw(locations);
        writer.unsigned(tags::NEW_SEQ_NO, next);
        writer.flag(tags::GAP_FILL_FLAG, true);
        out.extend_from_slice(writer.finish());
        self.last_sent_ns = now_ns;
    }

    /// Writes a sent message again: with PossDupFlag (43), the time of now (52), and its first time (122).
    pub fn write_resend(&mut self, message: &Message<'_>, now_ns: u64, out: &mut Vec<u8>) {
        let Self { writer, precision, .. } = self;
        let (bytes, fields) = (message.bytes(), message.fields());
        writer.begin(message.msg_type());
        let mut first_sent: &[u8] = b"";
        let mut copied = fields.get(2).map_or(0, |msg_type| msg_type.start as usize + msg_type.len as usize + 1);
        for field in fields.get(3..).unwrap_or_default() {
            let end = field.start as usize + field.len as usize + 1;
            match field.tag {
                tags::MSG_SEQ_NUM => {
                    writer.raw(&bytes[copied..end]);
                    writer.flag(tags::POSS_DUP_FLAG, true);
                }
                tags::SENDING_TIME => {
                    first_sent = message.value(field);
                    writer.time(tags::SENDING_TIME, now_ns, *precision);
                }
                tag if stands_before_orig_sending_time(tag) => writer.raw(&bytes[copied..end]),
                _ => break,
            }
            copied = end;
        }
        if !first_sent.is_empty() {
            writer.bytes(tags::ORIG_SENDING_TIME, first_sent);
        }
        writer.raw(&bytes[copied..bytes.len() - CHECK_SUM_BYTES]);
        out.extend_from_slice(writer.finish());
        self.last_sent_ns = now_ns;
    }

    fn send_admin(
        &mut self,
        msg_type: &[u8],
        now_ns: u64,
        io: &mut SessionIo<'_>,
        body: impl FnOnce(&mut MessageWriter),
    ) -> Result<u64, StoreError> {
        self.begin(msg_type, now_ns);
        body(&mut self.writer);
        // It is never resent.
        self.finish(now_ns, io, Stored::Number)
    }

    /// Writes the header of a new message.
    #[inline]
    fn begin(&mut self, msg_type: &[u8], now_ns: u64) {
        let Self { writer, precision, sender, target, locations, next, .. } = self;
        writer.begin(msg_type);
        writer.unsigned(tags::MSG_SEQ_NUM, *next);
        writer.raw(sender);
        writer.time(tags::SENDING_TIME, now_ns, *precision);
        writer.raw(target);
        writer.raw(locations);
    }

    /// Ends a new message: into the store, then into the output.
    #[inline]
    fn finish(&mut self, now_ns: u64, io: &mut SessionIo<'_>, stored: Stored) -> Result<u64, StoreError> {
        let number = self.next;
        let message = self.writer.finish();
        io.store.append(number, if stored == Stored::Whole { message } else { b"" })?;
        io.out.extend_from_slice(message);
        self.next = number + 1;
        self.last_sent_ns = now_ns;
        Ok(number)
    }
}

/// Part of a message that the store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Whole,
    Number,
}

/// Returns the fields that have a value, ready to be written.
fn ready_fields(fields: &[(Tag, Option<&String>)]) -> Vec<u8> {
    let mut ready = Vec::new();
    for (tag, value) in fields {
        if let Some(value) = value {
            ready.extend_from_slice(format!("{tag}={value}").as_bytes());
            ready.push(SOH);
        }
    }
    ready
}

/// Returns whether a header field, other than 34 and 52, stands before OrigSendingTime (122): fields are in the order of
/// their tags, the target's ids stand together, and 43 is written anew.
fn stands_before_orig_sending_time(tag: Tag) -> bool {
    matches!(
        tag,
        tags::SENDER_COMP_ID
            | tags::SENDER_SUB_ID
            | tags::TARGET_COMP_ID
            | tags::TARGET_SUB_ID
            | tags::SECURE_DATA_LEN
            | tags::SECURE_DATA
            | tags::POSS_RESEND
            | tags::ON_BEHALF_OF_COMP_ID
            | tags::ON_BEHALF_OF_SUB_ID
    )
}
