//! A received message, with the fields of its header that a session needs, found in one pass.

use crate::field_table::{FieldFault, Message};
use crate::tags::{self, Tag};
use crate::validation::SessionRejectReason;
use crate::values::{parse_unsigned, parse_utc_timestamp};

use super::message_kind::MessageKind;
use super::rejects::{Fault, FaultTag};

/// A received message, and how it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'a> {
    pub message: Message<'a>,
    pub kind: MessageKind,
    pub header: ReceivedHeader<'a>,
    /// MsgSeqNum (34); 0 if it is missing or no number.
    pub number: u64,
    /// The fault of its fields, if they could not all be read.
    pub field_fault: Option<FieldFault>,
    /// The message was held behind a gap: its header was checked when it arrived.
    pub is_held: bool,
    /// Time of the call, in nanoseconds since the Unix epoch.
    pub now_ns: u64,
}

/// Values of a header, each the first with its tag.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReceivedHeader<'a> {
    pub number: Option<&'a [u8]>,
    pub sender: Option<&'a [u8]>,
    pub target: Option<&'a [u8]>,
    pub sending_time: Option<&'a [u8]>,
    pub orig_sending_time: Option<&'a [u8]>,
    pub possible_duplicate: Option<&'a [u8]>,
    pub possible_resend: Option<&'a [u8]>,
    pub appl_ver_id: Option<&'a [u8]>,
}

/// A header that does not belong to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    BeginString,
    NumberMissing,
    SendingTime,
    CompId,
}

impl<'a> ReceivedHeader<'a> {
    #[inline]
    fn of(message: Message<'a>) -> Self {
        let mut header = Self::default();
        for field in message.fields() {
            let place = match field.tag {
                tags::MSG_SEQ_NUM => &mut header.number,
                tags::SENDER_COMP_ID => &mut header.sender,
                tags::TARGET_COMP_ID => &mut header.target,
                tags::SENDING_TIME => &mut header.sending_time,
                tags::ORIG_SENDING_TIME => &mut header.orig_sending_time,
                tags::POSS_DUP_FLAG => &mut header.possible_duplicate,
                tags::POSS_RESEND => &mut header.possible_resend,
                tags::APPL_VER_ID => &mut header.appl_ver_id,
                _ => continue,
            };
            place.get_or_insert(message.value(field));
        }
        header
    }
}

/// Returns MsgSeqNum (34), if it is a number that has a next one.
#[inline]
fn read_number(header: &ReceivedHeader<'_>) -> Option<u64> {
    header.number.and_then(parse_unsigned).filter(|number| *number < u64::MAX)
}

impl<'a> Received<'a> {
    #[inline]
    pub fn new(message: Message<'a>, field_fault: Option<FieldFault>, is_held: bool, now_ns: u64) -> Self {
        let header = ReceivedHeader::of(message);
        let number = read_number(&header).unwrap_or_default();
        Self { message, kind: MessageKind::of(message.msg_type()), header, number, field_fault, is_held, now_ns }
    }

    /// Returns whether the message has no MsgSeqNum (34), or one that is no number.
    pub fn lacks_number(&self) -> bool {
        self.number == 0 && read_number(&self.header).is_none()
    }

    /// Returns whether the peer resends the message: PossDupFlag (43).
    pub fn is_duplicate(&self) -> bool {
        self.header.possible_duplicate.is_some_and(|flag| flag == b"Y")
    }

    /// Returns whether the peer's application may have sent the contents before: PossResend (97).
    pub fn is_possible_resend(&self) -> bool {
        self.header.possible_resend.is_some_and(|flag| flag == b"Y")
    }

    /// Returns the value of a tag as a number.
    pub fn unsigned(&self, tag: Tag) -> Option<u64> {
        self.message.get(tag).and_then(parse_unsigned)
    }

    /// Returns Text (58), empty without one.
    pub fn text(&self) -> &'a [u8] {
        self.message.get(tags::TEXT).unwrap_or_default()
    }

    /// Returns SendingTime (52) in nanoseconds since the Unix epoch.
    #[inline]
    pub fn sent_ns(&self) -> Option<u64> {
        self.header.sending_time.and_then(parse_utc_timestamp)
    }

    /// Returns whether the message was sent before its first sending: OrigSendingTime (122) is after SendingTime (52).
    pub fn has_late_first_time(&self) -> bool {
        let first_ns = self.header.orig_sending_time.and_then(parse_utc_timestamp);
        match (first_ns, self.sent_ns()) {
            (Some(first_ns), Some(sent_ns)) => first_ns > sent_ns,
            (None, _) | (_, None) => false,
        }
    }

    /// Returns the fault of the fields, as a Reject has it.
    pub fn rejected_fault(&self) -> Option<Fault<'a>> {
        let fault = self.field_fault?;
        let invalid = Fault::new(SessionRejectReason::InvalidTagNumber, None);
        Some(match fault {
            FieldFault::TagNumber { .. } => {
                Fault { tag: FaultTag::Text(fault.tag_text(self.message.bytes())), ..invalid }
            }
            FieldFault::DataLength { tag, .. } => Fault::new(SessionRejectReason::IncorrectDataFormat, Some(tag)),
            FieldFault::NoValue { tag, .. } => Fault::new(SessionRejectReason::TagWithoutValue, Some(tag)),
            FieldFault::NoEnd { .. }
            | FieldFault::NoTag { .. }
            | FieldFault::TagText { .. }
            | FieldFault::TooLong { .. } => invalid,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::field_table::{DataTags, FieldTable};

    use super::*;

    /// Passes a message, with `|` for the delimiter, to `examine`.
    fn check(text: &str, examine: impl FnOnce(Received<'_>)) {
        let frame = text.replace('|', "\x01");
        let mut table = FieldTable::new();
        let fault = table.read(frame.as_bytes(), &DataTags::standard()).err();
        examine(Received::new(table.message(frame.as_bytes()), fault, false, 0));
    }

    #[test]
    fn the_first_value_of_a_tag_counts() {
        check("8=FIX.4.4|9=5|35=D|34=7|34=8|43=Y|49=A|56=B|10=000|", |received| {
            assert_eq!((received.number, received.is_duplicate()), (7, true));
            assert_eq!((received.header.sender, received.header.target), (Some(&b"A"[..]), Some(&b"B"[..])));
        });
    }

    #[test]
    fn a_number_is_zero_or_missing() {
        for (fields, number, is_missing) in
            [("34=0|", 0, false), ("34=x|", 0, true), ("", 0, true), ("34=12|", 12, false)]
        {
            check(&format!("8=FIX.4.4|9=5|35=4|{fields}10=000|"), |received| {
                assert_eq!((received.number, received.lacks_number()), (number, is_missing), "{fields}");
            });
        }
    }

    #[test]
    fn a_first_time_after_the_sending_time_is_late() {
        let (sent, later) = ("20240229-12:00:00", "20240229-12:00:00.001");
        for (first, is_late) in [(sent, false), (later, true), ("yesterday", false)] {
            check(&format!("8=FIX.4.4|9=5|35=D|34=2|52={sent}|122={first}|10=000|"), |received| {
                assert_eq!(received.has_late_first_time(), is_late, "{first}");
            });
        }
    }

    #[test]
    fn faults_of_fields_have_reasons() {
        for (field, reason, tag) in [
            ("-1=HI", SessionRejectReason::InvalidTagNumber, FaultTag::Text(b"-1")),
            ("0=HI", SessionRejectReason::InvalidTagNumber, FaultTag::Text(b"0")),
            ("4x9=HI", SessionRejectReason::InvalidTagNumber, FaultTag::None),
            ("HI", SessionRejectReason::InvalidTagNumber, FaultTag::None),
            ("95=9|96=abc", SessionRejectReason::IncorrectDataFormat, FaultTag::Number(95)),
        ] {
            check(&format!("8=FIX.4.4|9=5|35=0|34=2|{field}|10=000|"), |received| {
                let fault = received.rejected_fault().expect("the field is wrong");
                assert_eq!((fault.reason, fault.tag), (reason, tag), "{field}");
            });
        }
    }
}
