//! Bodies of rejects: the session's Reject (35=3), and the BusinessMessageReject (35=j) for the application.

use crate::message_writer::MessageWriter;
use crate::soh::SOH;
use crate::tags::{self, Tag};
use crate::validation::{Rejection, SessionRejectReason};
use crate::values::parse_unsigned;

use super::config::BeginString;

/// Fields of the received header, and those of a Reject's header that lead back the same way.
const ROUTES: [(Tag, Tag); 6] = [
    (tags::DELIVER_TO_COMP_ID, tags::ON_BEHALF_OF_COMP_ID),
    (tags::DELIVER_TO_SUB_ID, tags::ON_BEHALF_OF_SUB_ID),
    (tags::ON_BEHALF_OF_COMP_ID, tags::DELIVER_TO_COMP_ID),
    (tags::ON_BEHALF_OF_SUB_ID, tags::DELIVER_TO_SUB_ID),
    (tags::DELIVER_TO_LOCATION_ID, tags::ON_BEHALF_OF_LOCATION_ID),
    (tags::ON_BEHALF_OF_LOCATION_ID, tags::DELIVER_TO_LOCATION_ID),
];

/// A fault of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault<'a> {
    /// Reason (373).
    pub reason: SessionRejectReason,
    /// Tag (371).
    pub tag: FaultTag<'a>,
    /// Text (58).
    pub text: &'a str,
}

/// Tag of the field that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultTag<'a> {
    /// The whole message is wrong.
    None,
    /// A field is wrong.
    Number(Tag),
    /// The text in place of a tag is wrong: it is an integer, but no tag.
    Text(&'a [u8]),
}

impl Fault<'_> {
    /// Makes a fault with the text of its reason.
    pub fn new(reason: SessionRejectReason, tag: Option<Tag>) -> Self {
        Self::from(Rejection::new(reason, tag))
    }
}

impl From<Rejection> for Fault<'_> {
    fn from(rejection: Rejection) -> Self {
        let Rejection { reason, tag, text } = rejection;
        Self { reason, tag: tag.map_or(FaultTag::None, FaultTag::Number), text }
    }
}

/// A received message that is answered by a reject. Fields are found by a plain scan: the message may not be readable as a
/// table of fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RejectedMessage<'a>(pub &'a [u8]);

impl<'a> RejectedMessage<'a> {
    /// Returns the first value of a tag, if it is not empty.
    pub fn get(self, tag: Tag) -> Option<&'a [u8]> {
        let value = self.0.split(|&byte| byte == SOH).find_map(|field| {
            let separator = field.iter().position(|&byte| byte == b'=')?;
            let is_tag = parse_unsigned(&field[..separator]) == Some(u64::from(tag));
            is_tag.then(|| &field[separator + 1..])
        });
        value.filter(|value| !value.is_empty())
    }
}

/// Writes the routing fields and the body of a Reject.
pub(crate) fn write_reject(
    writer: &mut MessageWriter,
    version: BeginString,
    fault: &Fault<'_>,
    rejected: RejectedMessage<'_>,
) {
    for (from, to) in ROUTES {
        let has_field = version >= BeginString::Fix41 || to < tags::ON_BEHALF_OF_LOCATION_ID;
        if let Some(value) = rejected.get(from).filter(|_| has_field) {
            writer.bytes(to, value);
        }
    }
    if let Some(number) = rejected.get(tags::MSG_SEQ_NUM) {
        writer.bytes(tags::REF_SEQ_NUM, number);
    }
    if version < BeginString::Fix42 {
        write_old_text(writer, fault);
        return;
    }
    writer.text(tags::TEXT, fault.text);
    match fault.tag {
        FaultTag::None => {}
        FaultTag::Number(tag) => writer.unsigned(tags::REF_TAG_ID, tag.into()),
        FaultTag::Text(tag) => writer.bytes(tags::REF_TAG_ID, tag),
    }
    if let Some(msg_type) = rejected.get(tags::MSG_TYPE) {
        writer.bytes(tags::REF_MSG_TYPE, msg_type);
    }
    if let Some(code) = fault.reason.code_in(version.text()) {
        writer.unsigned(tags::SESSION_REJECT_REASON, code.into());
    }
}

/// Writes the text of versions in which a Reject has no field for the tag.
fn write_old_text(writer: &mut MessageWriter, fault: &Fault<'_>) {
    match fault.tag {
        FaultTag::None => writer.text(tags::TEXT, fault.text),
        FaultTag::Number(tag) => writer.text(tags::TEXT, &format!("{} ({tag})", fault.text)),
        FaultTag::Text(tag) => {
            writer.text(tags::TEXT, &format!("{} ({})", fault.text, String::from_utf8_lossy(tag)));
        }
    }
}

/// Writes the body of a BusinessMessageReject.
pub(crate) fn write_business_reject(
    writer: &mut MessageWriter,
    reason: u32,
    text: &str,
    rejected: RejectedMessage<'_>,
) {
    if let Some(number) = rejected.get(tags::MSG_SEQ_NUM) {
        writer.bytes(tags::REF_SEQ_NUM, number);
    }
    if !text.is_empty() {
        writer.text(tags::TEXT, text);
    }
    if let Some(msg_type) = rejected.get(tags::MSG_TYPE) {
        writer.bytes(tags::REF_MSG_TYPE, msg_type);
    }
    writer.unsigned(tags::BUSINESS_REJECT_REASON, reason.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = "8=FIX.4.4|9=5|35=D|34=007|115=JCD|116=|144=CHI|128=|129=X|40=w|10=000|";

    fn reject(version: BeginString, fault: &Fault<'_>, message: &str) -> String {
        let message = message.replace('|', "\x01");
        let mut writer = MessageWriter::new(version.text());
        writer.begin(b"3");
        write_reject(&mut writer, version, fault, RejectedMessage(message.as_bytes()));
        body_of(writer.finish())
    }

    fn body_of(message: &[u8]) -> String {
        let text = String::from_utf8(message.to_vec()).unwrap().replace('\x01', "|");
        let (_, behind_type) = text.split_once("|35=").unwrap();
        let (_, body) = behind_type.split_once('|').unwrap();
        body[..body.len() - "10=000|".len()].to_owned()
    }

    #[test]
    fn a_reject_leads_back_and_names_tag_type_and_reason() {
        let fault = Fault::new(SessionRejectReason::ValueIncorrect, Some(40));
        let text = "Value is incorrect (out of range) for this tag";
        assert_eq!(
            reject(BeginString::Fix44, &fault, ORDER),
            format!("116=X|128=JCD|145=CHI|45=007|58={text}|371=40|372=D|373=5|")
        );
        assert_eq!(
            reject(BeginString::Fix40, &fault, ORDER),
            format!("116=X|128=JCD|45=007|58={text} (40)|"),
            "FIX 4.0 has no fields for the rest"
        );
    }

    #[test]
    fn a_version_leaves_out_reasons_that_it_lacks() {
        let fault = Fault::new(SessionRejectReason::TagOutOfOrder, Some(34));
        let rest = "45=2|58=Tag specified out of required order|371=34|372=0|";
        assert_eq!(reject(BeginString::Fix42, &fault, "35=0|34=2|"), rest);
        assert_eq!(reject(BeginString::Fix43, &fault, "35=0|34=2|"), format!("{rest}373=14|"));
    }

    #[test]
    fn a_tag_that_is_none_is_named_as_it_came() {
        let tag = FaultTag::Text(b"-1");
        let fault = Fault { reason: SessionRejectReason::InvalidTagNumber, tag, text: "Invalid tag number" };
        assert_eq!(
            reject(BeginString::Fix44, &fault, "35=0|34=4|-1=HI|"),
            "45=4|58=Invalid tag number|371=-1|372=0|373=0|"
        );
    }

    #[test]
    fn a_business_reject_names_the_message() {
        let mut writer = MessageWriter::new("FIX.4.4");
        writer.begin(b"j");
        let rejected = RejectedMessage(b"35=8\x0134=2\x01");
        write_business_reject(&mut writer, 3, "Unsupported Message Type", rejected);
        assert_eq!(body_of(writer.finish()), "45=2|58=Unsupported Message Type|372=8|380=3|");
    }
}
