//! Kinds of messages that a session distinguishes, by MsgType (35).

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Heartbeat,
    TestRequest,
    ResendRequest,
    Reject,
    SequenceReset,
    Logout,
    Logon,
    Application,
}

/// Types that a resend leaves out by [`ResendPolicy::GapFillOrders`](super::config::ResendPolicy): orders, cancels and
/// replaces, also as lists, crosses and of several legs, quotes, and requests about them.
const STALE_TYPES: [&[u8]; 25] = [
    b"D", b"E", b"F", b"G", b"H", b"K", b"L", b"M", b"R", b"S", b"V", b"Z", b"a", b"e", b"i", b"k", b"q", b"s", b"t",
    b"u", b"AB", b"AC", b"AF", b"AJ", b"CA",
];

impl MessageKind {
    /// Returns the kind of a message type.
    #[inline]
    pub fn of(msg_type: &[u8]) -> Self {
        match msg_type {
            b"0" => Self::Heartbeat,
            b"1" => Self::TestRequest,
            b"2" => Self::ResendRequest,
            b"3" => Self::Reject,
            b"4" => Self::SequenceReset,
            b"5" => Self::Logout,
            b"A" => Self::Logon,
            _ => Self::Application,
        }
    }
}

/// Returns whether a message of this type is an instruction that must not be repeated late.
pub(crate) fn is_stale_type(msg_type: &[u8]) -> bool {
    STALE_TYPES.contains(&msg_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_two_characters_are_the_applications() {
        assert_eq!(MessageKind::of(b"A"), MessageKind::Logon);
        for msg_type in ["AE", "8", "", "00", "XCN"] {
            assert_eq!(MessageKind::of(msg_type.as_bytes()), MessageKind::Application, "'{msg_type}'");
        }
    }

    #[test]
    fn orders_are_stale_and_reports_are_not() {
        assert!([&b"D"[..], b"F", b"G", b"AB"].iter().all(|msg_type| is_stale_type(msg_type)));
        assert!([&b"8"[..], b"9", b"j", b"AE"].iter().all(|msg_type| !is_stale_type(msg_type)));
    }
}
