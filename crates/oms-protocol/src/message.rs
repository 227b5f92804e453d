//! The session's own messages. Some are followed by a text.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::RIGHTS_VERSION;

/// The first bytes of a [`Logon`].
pub const MAGIC: [u8; 8] = *b"TICKPATH";
/// Value of [`Logon::session`]: the first of the user's sessions that is free.
pub const ANY_SESSION: u16 = u16::MAX;
/// Value of [`Logon::next_report`]: only reports from now on.
pub const FROM_NOW: u64 = u64::MAX;

/// Kind of a session's own frame, with the frame's content. The code is the frame's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// [`Logon`], then SCRAM's client-first message.
    Logon = 112,
    /// SCRAM's server-first message, as text.
    Challenge = 113,
    /// SCRAM's client-final message, as text.
    Proof = 114,
    /// [`Welcome`], then SCRAM's server-final message.
    Welcome = 115,
    /// [`LogonReject`], then a sentence.
    Refused = 116,
    /// Empty: shows that its sender is alive.
    Heartbeat = 117,
    /// A sentence, as text, with which the sender ends the connection.
    Logout = 118,
    /// [`Query`].
    Query = 119,
    /// The end of an answer: [`Status`] if that was asked for, or nothing behind the rows. The text behind a status
    /// lists the kill switches that are on and that the user may see: account 7, symbol 3.
    Answer = 120,
    /// An open order, as an execution report of its status; the frame's stamp is the order's session. The text is the
    /// order's `OrderExtension`, if it has one, from version 8 on.
    OrderRow = 121,
    /// Acknowledgement of an admin command: [`CommandAck`], then a sentence if the command was refused. A row for each
    /// order in its scope precedes it.
    CommandAck = 122,
    /// Another session's report, for a client with a drop copy: [`CopyHeader`], then the message.
    Copy = 123,
    /// On a topic of reports, a [`CopyTrailer`] alone: messages with its place or a later one are void, and are
    /// published again as far as they were kept.
    CopyRewind = 124,
    /// Answer to a request that the user's role does not allow: an `OrderDenied` of `tickpath-market` under the
    /// request's number. It is no report and has no number as such: the journal knows neither request nor answer.
    RequestRefused = 125,
    /// An instrument, as [`InstrumentRow`].
    InstrumentRow = 126,
}

/// A client's request for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Logon {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// Version of the client's messages.
    pub version: u16,
    /// One of the user's sessions; [`ANY_SESSION`] for one that is free.
    pub session: u16,
    /// Silence after which the client is considered dead, in milliseconds; zero for the OMS's own choice.
    pub heartbeat_ms: u32,
    /// Journal that the client's numbers belong to; zero if it knows none.
    pub journal: u64,
    /// Number of the first report that the client lacks; [`FROM_NOW`] for new reports only.
    pub next_report: u64,
    /// CRC-32C of the message of the report before that number, or zero. An OMS with another report there has lost
    /// reports to a loss of power, and sends the whole day again: the `next_report` of its welcome is lower then.
    pub last_sum: u32,
    /// Number that a client draws when it is made, and sends at each logon; zero if it has none.
    pub client: u32,
    /// Optional features, from version 2 on: a sum of [`Logon::LANES`], [`Logon::DROP_COPY`] and [`Logon::RECONNECT`].
    pub features: u32,
    /// CRC-32C of the message of the detail before `next_detail`, or zero, from version 7 on; used like `last_sum`.
    pub last_detail_sum: u32,
    /// Number of the first detail that the client lacks, from version 7 on, if it names a report;
    /// [`Logon::DETAILS_BEHIND`] if it knows no number.
    pub next_detail: u64,
}

impl Logon {
    /// Value of [`Logon::next_detail`]: those that lie behind the report before [`Logon::next_report`].
    pub const DETAILS_BEHIND: u64 = u64::MAX;
    /// Use of lanes in shared memory. A client that asks for 1 knows lanes of another form, and gets none.
    pub const LANES: u32 = 2;
    /// Drop copy: reports of other sessions, and nothing else. A user without the right is refused and takes no
    /// session; an OMS that does not know this flag gives a session, and its [`Welcome::rights`] show that.
    pub const DROP_COPY: u32 = 4;
    /// Reconnect: the client had the session before, and must not take it from another client that has it now.
    pub const RECONNECT: u32 = 8;
}

/// Acceptance of a logon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Welcome {
    /// Version that both sides use.
    pub version: u16,
    /// Session of the connection.
    pub session: u16,
    /// Durability level of an input before its reports are sent: 0 the operating system, 1 the disk.
    pub level: u8,
    /// The user's [`UserRole`], as its code.
    pub role: u8,
    /// 1 for a reconnecting client if another client has had the session meanwhile: the requests that the OMS has taken
    /// there may be the other client's.
    pub others: u16,
    /// Journal that the numbers belong to.
    pub journal: u64,
    /// Number that the session's next request must have.
    pub next_request: u64,
    /// Number of the first report that follows.
    pub next_report: u64,
    /// Number of the first live report: those before it come from the history.
    pub live_report: u64,
    /// Silence after which either side is considered dead, in milliseconds. Half of it is the interval of the
    /// heartbeats.
    pub heartbeat_ms: u32,
    /// Zero.
    pub reserved_end: u32,
    /// 1 if lanes were opened, whose memory comes with this message, from version 2 on.
    pub lanes: u32,
    /// Rights of the session beside its role, from version 4 on: [`Welcome::DROP_COPY`], or zero.
    pub rights: u32,
    /// Number of the first detail that follows, from version 7 on; [`Logon::DETAILS_BEHIND`] if the client knew none.
    pub next_detail: u64,
}

impl Welcome {
    /// Drop copy: receives reports of other sessions, and sends no requests.
    pub const DROP_COPY: u32 = 1;

    /// Returns whether the session is a drop copy; none if the OMS is too old to show it.
    pub fn has_drop_copy(&self) -> Option<bool> {
        (self.version >= RIGHTS_VERSION).then_some(self.rights & Self::DROP_COPY != 0)
    }
}

/// Refusal of a logon; the connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LogonReject {
    /// [`LogonRejectReason`] as its code.
    pub code: u16,
    /// Zero.
    pub reserved: [u8; 6],
}

/// Acknowledgement of an admin command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CommandAck {
    /// The command's record in the journal; zero if the command was refused.
    pub record: u64,
}

/// Header of another session's report in a drop copy. The frame's number is the report's place among all reports, its
/// text the time of the report in nanoseconds since the Unix epoch, 8 bytes little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CopyHeader {
    /// First place that this frame stands for: the places between are not in this drop copy.
    pub from: u64,
    /// Number of the report in its session.
    pub session_number: u64,
    /// Session of the report.
    pub session: u16,
    /// Kind of the message.
    pub kind: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// Trailer of a report that is published on a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CopyTrailer {
    /// Journal that the places belong to.
    pub journal: u64,
    /// Place of the report among all reports. A place seen before is a duplicate, if no [`FrameKind::CopyRewind`] is
    /// between.
    pub place: u64,
    /// First place that this message stands for. If it is above the place after the message before, there is a gap.
    pub from: u64,
    /// Number of the report in its session.
    pub session_number: u64,
    /// Session of the report.
    pub session: u16,
    /// Zero.
    pub reserved: [u8; 6],
}

/// Question that changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Query {
    /// [`Query::STATUS`], [`Query::ORDERS`], [`Query::ORDER`], [`Query::ANSWERED`] or [`Query::INSTRUMENTS`].
    pub what: u32,
    /// Zero.
    pub reserved: u32,
    /// The OMS's id of the order in question; a record of the journal for [`Query::ANSWERED`].
    pub order: u64,
}

impl Query {
    /// State of the OMS: one answer with a [`Status`].
    pub const STATUS: u32 = 1;
    /// Open orders that the user may see: a row each, then an answer.
    pub const ORDERS: u32 = 2;
    /// One order, open or not: a row if the OMS knows it and the user may see it, then an answer.
    pub const ORDER: u32 = 3;
    /// The venue's answer to the question that the admin command with this record has sent to it: a row with the
    /// venue's last report, then an answer. Without a row the venue has not answered, or the question is forgotten.
    ///
    /// After a question about all orders, that report names no order, and a reason in it means that the venue cannot
    /// answer. Its `venue_sequence` is the number of orders that the venue has reported, its `exec_id` the number of
    /// these that differ. Rows in pairs follow, the OMS's side and the venue's side: first orders, with zeros on the
    /// side that has none, then positions, whose rows name no order, with the quantity bought as `cumulative_quantity`
    /// and the quantity sold as `leaves_quantity`.
    pub const ANSWERED: u32 = 4;
    /// Instruments that can be traded now, by ascending number: a row each, then an answer. From version 6 on; an older
    /// OMS answers with orders.
    pub const INSTRUMENTS: u32 = 5;
}

/// Instrument of the OMS, in the answer to [`Query::INSTRUMENTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InstrumentRow {
    /// Number that requests and reports use for it.
    pub symbol: u32,
    /// Number of its venue.
    pub venue: u16,
    /// Zero.
    pub reserved: u16,
    /// Name in ASCII, then zeros; all zeros if the name is longer.
    pub short_name: [u8; 16],
    /// Name of up to 48 bytes in ASCII, then zeros, from version 7 on.
    pub long_name: [u8; 48],
}

impl InstrumentRow {
    /// Returns the name.
    pub fn name(&self) -> &str {
        let name = if self.long_name[0] == 0 { &self.short_name[..] } else { &self.long_name[..] };
        std::str::from_utf8(name).unwrap_or("?").trim_end_matches('\0')
    }
}

/// Rights of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum UserRole {
    /// Sees the orders of its accounts.
    #[default]
    Read = 0,
    /// Sends orders for its accounts, too.
    Trade = 1,
    /// Sees all, cancels all, and sends admin commands.
    Admin = 2,
}

/// Reason why a connection was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum LogonRejectReason {
    /// The first frames are no logon, or come too late.
    Protocol = 1,
    /// The user does not exist, is disabled, or the password is wrong: the client is not told which.
    Password = 2,
    /// The session is not this user's.
    NotPermitted = 3,
    /// The session is in use, or all sessions of the user are.
    InUse = 4,
    /// The OMS stops.
    Stopping = 5,
    /// The client asks for reports that do not exist yet.
    Future = 6,
    /// The OMS has no room for one more client.
    Full = 7,
}

macro_rules! status {
    ($(#[doc = $doc:literal] $name:ident,)+) => {
        /// State of an OMS.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct Status {
            $(#[doc = $doc] pub $name: u64,)+
        }

        impl Status {
            /// Returns all values with their names.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),+].into_iter()
            }

            /// Returns the meaning of each value, by name.
            pub fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
                [$((stringify!($name), $doc.trim_ascii())),+].into_iter()
            }
        }
    };
}

status! {
    /// The OMS's process.
    pid,
    /// Seconds since its start.
    uptime_s,
    /// Identifies this start of the OMS: the ids of its orders begin with it.
    epoch,
    /// Records in its journal.
    journal_records,
    /// Connected sessions.
    sessions,
    /// Orders that wait for their venue.
    queued,
    /// Orders in flight to the venue.
    sending,
    /// Orders that the venue works.
    working,
    /// Orders that are filled, canceled or expired.
    done,
    /// Orders that the venue refused.
    rejected,
    /// Orders that waited and were denied before they could leave.
    withdrawn,
    /// Orders in doubt, about which their venue is asked.
    unknown,
    /// Requests that were denied.
    denied_requests,
    /// Duplicate reports.
    duplicates,
    /// Reports of unknown orders since the journal began.
    strangers,
    /// Reports that do not fit their order.
    mismatched,
    /// Reports that contradict what is known.
    contradictions,
    /// Reports that cannot be true.
    malformed,
    /// Invalid messages: dropped, and not in the journal.
    refused,
    /// Venues that can be reached.
    venues_up,
    /// Venues.
    venues,
    /// Outputs that wait for the disk, or behind an output that does.
    held,
    /// 1 if the journal's disk has failed.
    disk_failed,
    /// Reports that are kept until their orders are entered by hand.
    foreign,
    /// Kill switches that are on.
    kill_switches,
}

macro_rules! from_code {
    ($name:ident, $code:ty: $($variant:ident),+) => {
        impl $name {
            /// Returns the code in a message.
            pub const fn code(self) -> $code {
                self as $code
            }

            /// Returns the value with this code, if there is one.
            pub fn from_code(code: $code) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|value| value.code() == code)
            }
        }
    };
}

from_code!(FrameKind, u8: Logon, Challenge, Proof, Welcome, Refused, Heartbeat, Logout, Query, Answer, OrderRow, CommandAck, Copy, CopyRewind, RequestRefused, InstrumentRow);
from_code!(UserRole, u8: Read, Trade, Admin);
from_code!(LogonRejectReason, u16: Protocol, Password, NotPermitted, InUse, Stopping, Future, Full);
