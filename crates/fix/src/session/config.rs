//! Settings of a session: its two ends, its version, its rules for numbers and faults, its times and its limits.

use crate::tags::Tag;
use crate::validation::ValidationRules;
use crate::values::TimePrecision;

/// End of a connection that a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The session accepts the connection, and answers the Logon.
    Acceptor,
    /// The session makes the connection, and sends the Logon.
    Initiator,
}

/// Version of the session layer, in the order of its publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BeginString {
    /// FIX 4.0.
    Fix40,
    /// FIX 4.1.
    Fix41,
    /// FIX 4.2.
    Fix42,
    /// FIX 4.3.
    Fix43,
    /// FIX 4.4.
    Fix44,
    /// FIXT 1.1, the session layer below FIX 5.0 and its service packs.
    Fixt11,
}

impl BeginString {
    const ALL: [Self; 6] = [Self::Fix40, Self::Fix41, Self::Fix42, Self::Fix43, Self::Fix44, Self::Fixt11];

    /// Returns the value of BeginString (8).
    pub const fn text(self) -> &'static str {
        match self {
            Self::Fix40 => "FIX.4.0",
            Self::Fix41 => "FIX.4.1",
            Self::Fix42 => "FIX.4.2",
            Self::Fix43 => "FIX.4.3",
            Self::Fix44 => "FIX.4.4",
            Self::Fixt11 => "FIXT.1.1",
        }
    }

    /// Reads a value of BeginString (8). `None` if no version has it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.text() == text)
    }

    /// Returns the value of EndSeqNo (16) that asks for everything from BeginSeqNo (7) on.
    pub(crate) fn infinity(self) -> u64 {
        if self < Self::Fix42 { OLD_INFINITY } else { 0 }
    }

    /// Returns whether a value of EndSeqNo (16) asks for everything from BeginSeqNo (7) on.
    pub(crate) fn is_infinity(self, end: u64) -> bool {
        end == 0 || (self <= Self::Fix42 && end == OLD_INFINITY)
    }
}

/// EndSeqNo (16) without an end, before FIX 4.2.
const OLD_INFINITY: u64 = 999_999;

/// Sub and location ids of the two ends. The header of every message has those that are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubIds {
    /// SenderSubID (50).
    pub sender_sub: Option<String>,
    /// TargetSubID (57).
    pub target_sub: Option<String>,
    /// SenderLocationID (142).
    pub sender_location: Option<String>,
    /// TargetLocationID (143).
    pub target_location: Option<String>,
}

/// Messages that a resend repeats; a gap fill stands for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResendPolicy {
    /// All application messages.
    All,
    /// Application messages except orders, quotes and requests about them: the market has moved since.
    GapFillOrders,
}

/// Answer to a Logout whose number is above the one expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogoutGapRule {
    /// The gap is recovered before the Logout is answered, for at most the logout's time. A session with
    /// [`SessionConfig::reset_on_logon`] answers at once: it recovers nothing across a logon.
    Recover,
    /// The Logout is answered at once; the next logon finds the gap.
    Answer,
}

/// Detail of rejects and logouts about a wrong header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultDetail {
    /// As QuickFIX for C++ has it: no tag in the Reject, no text in the Logout, and a wrong Logon is not answered.
    Terse,
    /// As QuickFIX/J has it: the Reject has the tag (371), the Logout a text (58), and a wrong Logon is answered by a
    /// Logout.
    Full,
}

/// Times of a session, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimes {
    /// Time between the connection and the peer's Logon.
    pub logon_s: u32,
    /// Time between a Logout and its answer.
    pub logout_s: u32,
    /// Time without progress after which missing messages are requested again.
    pub recovery_s: u32,
}

impl Default for SessionTimes {
    fn default() -> Self {
        Self { logon_s: 10, logout_s: 2, recovery_s: 60 }
    }
}

/// Limits of a session's memory, in bytes unless the name differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// A resend pauses while the unsent output is longer.
    pub resend_output: usize,
    /// Application messages are refused while the unsent output is longer.
    pub output: usize,
    /// Messages behind a gap that wait for the missing ones.
    pub held: usize,
    /// Number of messages behind a gap that wait for the missing ones.
    pub held_messages: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { resend_output: 256 << 10, output: 16 << 20, held: 4 << 20, held_messages: 16_384 }
    }
}

/// Settings of a session.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// End of the connection.
    pub role: Role,
    /// Version of the session layer.
    pub begin_string: BeginString,
    /// SenderCompID (49) of sent messages.
    pub sender: String,
    /// TargetCompID (56) of sent messages.
    pub target: String,
    /// Sub and location ids of sent messages.
    pub sub_ids: SubIds,
    /// DefaultApplVerID (1137) of the Logon over FIXT. An acceptor without it answers with the initiator's.
    pub default_appl_ver_id: Option<String>,
    /// ApplVerID (1128) in the header of application messages, for peers that ask for it.
    pub appl_ver_id: Option<String>,
    /// HeartBtInt (108) in seconds, which an initiator asks for; 0 switches heartbeats off. An acceptor takes the
    /// initiator's.
    pub heartbeat_s: u32,
    /// Both numbers restart at 1 with each Logon.
    pub reset_on_logon: bool,
    /// Both numbers restart at 1 after a complete logout.
    pub reset_on_logout: bool,
    /// Both numbers restart at 1 after the end of any connection.
    pub reset_on_disconnect: bool,
    /// Decimals of SendingTime (52) and OrigSendingTime (122).
    pub time_precision: TimePrecision,
    /// Max difference between SendingTime (52) and this host's time, in seconds; `None` for any.
    pub max_latency_s: Option<u32>,
    /// Received CompIDs must be the session's.
    pub check_comp_ids: bool,
    /// The Logon has the number that is expected next (789), and the peer's replaces a ResendRequest.
    pub next_expected: bool,
    /// Max messages of a resend request; 0 for all at once.
    pub max_resend: u64,
    /// Application messages that a resend repeats.
    pub resend: ResendPolicy,
    /// Answer to a Logout above a gap.
    pub logout_gap: LogoutGapRule,
    /// Detail of rejects and logouts about a wrong header.
    pub fault_detail: FaultDetail,
    /// Strictness of the validation.
    pub rules: ValidationRules,
    /// Further fields of a sent Logon, in this order. A value cannot contain the delimiter.
    pub logon_fields: Vec<(Tag, Vec<u8>)>,
    /// Times.
    pub times: SessionTimes,
    /// Limits of memory.
    pub limits: SessionLimits,
}

impl SessionConfig {
    /// Makes the usual settings of a session: heartbeats every 30 s, numbers that are kept, a latency of at most 120 s,
    /// and strict validation. An initiator repeats no stale order.
    pub fn new(role: Role, begin_string: BeginString, sender: &str, target: &str) -> Self {
        let has_millis = begin_string >= BeginString::Fix42;
        Self {
            role,
            begin_string,
            sender: sender.to_owned(),
            target: target.to_owned(),
            sub_ids: SubIds::default(),
            default_appl_ver_id: None,
            appl_ver_id: None,
            heartbeat_s: 30,
            reset_on_logon: false,
            reset_on_logout: false,
            reset_on_disconnect: false,
            time_precision: if has_millis { TimePrecision::Millis } else { TimePrecision::Seconds },
            max_latency_s: Some(120),
            check_comp_ids: true,
            next_expected: false,
            max_resend: 0,
            resend: match role {
                Role::Acceptor => ResendPolicy::All,
                Role::Initiator => ResendPolicy::GapFillOrders,
            },
            logout_gap: LogoutGapRule::Recover,
            fault_detail: FaultDetail::Terse,
            rules: ValidationRules::default(),
            logon_fields: Vec::new(),
            times: SessionTimes::default(),
            limits: SessionLimits::default(),
        }
    }

    /// Returns whether a Logout above a gap waits until the gap is recovered.
    pub(crate) fn recovers_before_logout(&self) -> bool {
        self.logout_gap == LogoutGapRule::Recover && !self.reset_on_logon
    }

    /// Returns whether some event lets both numbers restart, of which the next Logon then informs the peer (141).
    pub(crate) fn resets_by_itself(&self) -> bool {
        self.reset_on_logon || self.reset_on_logout || self.reset_on_disconnect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_their_texts_and_their_infinity() {
        for version in BeginString::ALL {
            assert_eq!(BeginString::parse(version.text()), Some(version));
        }
        assert_eq!(BeginString::parse("FIX.5.0"), None);
        assert_eq!((BeginString::Fix41.infinity(), BeginString::Fix42.infinity()), (999_999, 0));
        assert!(BeginString::Fix42.is_infinity(999_999) && BeginString::Fix42.is_infinity(0));
        assert!(!BeginString::Fix44.is_infinity(999_999), "a number that FIX 4.4 sessions reach");
    }

    #[test]
    fn only_an_initiator_leaves_stale_orders_out_by_default() {
        let policy = |role| SessionConfig::new(role, BeginString::Fix44, "US", "THEM").resend;
        assert_eq!((policy(Role::Acceptor), policy(Role::Initiator)), (ResendPolicy::All, ResendPolicy::GapFillOrders));
    }
}
