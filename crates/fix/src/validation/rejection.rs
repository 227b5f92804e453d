//! Reasons of a session-level Reject (35=3), with the codes of SessionRejectReason (373) and their texts.

use crate::tags::Tag;

/// A reason of a session-level Reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SessionRejectReason {
    /// The tag is zero, or the dictionary does not define it.
    InvalidTagNumber = 0,
    /// A required field is missing.
    RequiredTagMissing = 1,
    /// The dictionary defines the tag, but not in this message.
    TagNotDefinedForMessage = 2,
    /// The tag is undefined. `validate` reports [`Self::InvalidTagNumber`] instead, as other engines do.
    UndefinedTag = 3,
    /// The field has no value.
    TagWithoutValue = 4,
    /// The value is not an allowed one.
    ValueIncorrect = 5,
    /// The value does not have the form of the field's type.
    IncorrectDataFormat = 6,
    /// The encrypted data cannot be decrypted.
    DecryptionProblem = 7,
    /// The signature is wrong.
    SignatureProblem = 8,
    /// SenderCompID or TargetCompID is not the session's.
    CompIdProblem = 9,
    /// SendingTime is too far from this host's clock, or before OrigSendingTime.
    SendingTimeAccuracy = 10,
    /// The dictionary does not define the message type.
    InvalidMsgType = 11,
    /// XML data is invalid.
    XmlValidation = 12,
    /// A field that is no member of a group appears more than once.
    TagRepeated = 13,
    /// Header, body and trailer are mixed.
    TagOutOfOrder = 14,
    /// The fields of a repeating group are not in the dictionary's order.
    GroupOutOfOrder = 15,
    /// The count of a repeating group differs from its instances.
    IncorrectNumInGroup = 16,
    /// A value that is no data contains the separator.
    EmbeddedSeparator = 17,
    /// Any other reason.
    Other = 99,
}

impl SessionRejectReason {
    /// Returns the value of SessionRejectReason (373).
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the value of SessionRejectReason (373) in a version of FIX. None if that version lacks the field, which
    /// came with FIX 4.2, or the code: FIX 4.2 ends with 11.
    pub fn code_in(self, begin_string: &str) -> Option<u8> {
        let last = match begin_string {
            "FIX.4.0" | "FIX.4.1" => return None,
            "FIX.4.2" => Self::InvalidMsgType.code(),
            _ => u8::MAX,
        };
        (self.code() <= last).then_some(self.code())
    }

    /// Returns the text (58) that explains the reason.
    pub const fn text(self) -> &'static str {
        match self {
            Self::InvalidTagNumber => "Invalid tag number",
            Self::RequiredTagMissing => "Required tag missing",
            Self::TagNotDefinedForMessage => "Tag not defined for this message type",
            Self::UndefinedTag => "Undefined Tag",
            Self::TagWithoutValue => "Tag specified without a value",
            Self::ValueIncorrect => "Value is incorrect (out of range) for this tag",
            Self::IncorrectDataFormat => "Incorrect data format for value",
            Self::DecryptionProblem => "Decryption problem",
            Self::SignatureProblem => "Signature problem",
            Self::CompIdProblem => "CompID problem",
            Self::SendingTimeAccuracy => "SendingTime accuracy problem",
            Self::InvalidMsgType => "Invalid MsgType",
            Self::XmlValidation => "XML validation error",
            Self::TagRepeated => "Tag appears more than once",
            Self::TagOutOfOrder => "Tag specified out of required order",
            Self::GroupOutOfOrder => "Out of order repeating group members",
            Self::IncorrectNumInGroup => "Incorrect NumInGroup count for repeating group",
            Self::EmbeddedSeparator => "Non-data value includes field delimiter",
            Self::Other => "Other",
        }
    }
}

/// The contents of a session-level Reject: the reason (373), the tag (371) and the text (58).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// Reason.
    pub reason: SessionRejectReason,
    /// Tag of the field that is wrong; None if the whole message is.
    pub tag: Option<Tag>,
    /// Text of the reason.
    pub text: &'static str,
}

impl Rejection {
    /// Creates a rejection with the text of its reason.
    pub const fn new(reason: SessionRejectReason, tag: Option<Tag>) -> Self {
        Self { reason, tag, text: reason.text() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_only_its_own_codes() {
        assert_eq!(SessionRejectReason::RequiredTagMissing.code_in("FIX.4.1"), None);
        assert_eq!(SessionRejectReason::InvalidMsgType.code_in("FIX.4.2"), Some(11));
        assert_eq!(SessionRejectReason::TagRepeated.code_in("FIX.4.2"), None);
        assert_eq!(SessionRejectReason::TagRepeated.code_in("FIX.4.4"), Some(13));
        assert_eq!(SessionRejectReason::Other.code_in("FIXT.1.1"), Some(99));
    }
}
