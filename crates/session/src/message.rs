//! The session's own messages. Some have a text behind them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::RIGHTS_VERSION;

/// The first bytes of a [`Logon`].
pub const MAGIC: [u8; 8] = *b"TICKPATH";
/// [`Logon::session`]: the first of the user's sessions that nobody uses.
pub const ANY_SESSION: u16 = u16::MAX;
/// [`Logon::next_report`]: only what is said from now on.
pub const FROM_NOW: u64 = u64::MAX;

/// What a session's own frame carries. Its code is the frame's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// [`Logon`], then SCRAM's client-first message.
    Logon = 112,
    /// SCRAM's server-first message, as text.
    Challenge = 113,
    /// SCRAM's client-final message, as text.
    Proof = 114,
    /// [`Welcome`], then SCRAM's server-final message.
    Welcome = 115,
    /// [`Refused`], then a sentence.
    Refused = 116,
    /// Nothing: its sender lives.
    Heartbeat = 117,
    /// A sentence, as text: its sender ends the connection.
    Logout = 118,
    /// [`Query`].
    Query = 119,
    /// The end of an answer, with what was asked for in it: [`Status`], or nothing behind the rows. The text behind a status
    /// lists the kill switches that are on and that the user may see: account 7, symbol 3.
    Answer = 120,
    /// An open order, as an execution report that tells its status; the frame's stamp is its session.
    OrderRow = 121,
    /// What became of an admin's word: [`Taken`], then, if it was not taken, a sentence. Before it comes a row for each order
    /// that the word meant.
    Taken = 122,
    /// Somebody else's report, to who hears a drop copy: [`Copied`], then the message.
    Copy = 123,
    /// On a topic of reports, a [`CopyTrailer`] alone: what came with its place or a later one counts no more, and comes
    /// again as far as it was kept.
    CopyAgain = 124,
    /// The answer to a request that the user's role does not allow: an `OrderDenied` of `tickpath-market`. The frame's number
    /// is the request's. It is no report and has no number as one: the journal knows neither request nor answer.
    RequestRefused = 125,
    /// An instrument, as [`InstrumentRow`].
    InstrumentRow = 126,
}

/// Who wants to come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Logon {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// The version of the client's messages.
    pub version: u16,
    /// Which of the user's sessions; [`ANY_SESSION`] for one that is free.
    pub session: u16,
    /// After so long without a word the client is taken for gone, in milliseconds; zero for the OMS's own choice.
    pub heartbeat_ms: u32,
    /// The journal that the client's numbers are of; zero if it knows none.
    pub journal: u64,
    /// The first report that it lacks; [`FROM_NOW`] for only what is new.
    pub next_report: u64,
    /// The CRC-32C of the message of the report before that one, or zero. An OMS that has said another one there has lost
    /// what it said to a loss of power, and says the whole day again: the `next_report` of its welcome is lower then.
    pub last_sum: u32,
    /// A number that a client draws when it is made, and names at each of its logons; zero if it has none.
    pub client: u32,
    /// What it would like to have, from version 2 on: a sum of [`Logon::LANES`], [`Logon::DROP_COPY`] and [`Logon::AGAIN`].
    pub wishes: u32,
    /// Zero.
    pub reserved_end: u32,
}

impl Logon {
    /// To speak by lanes in shared memory. A client that wishes for 1 knows lanes of another form, and gets none.
    pub const LANES: u32 = 2;
    /// To hear what others are told, and nothing else: a user who may not is refused, and takes no session. An OMS that does
    /// not know this gives a session; its [`Welcome::rights`] tell.
    pub const DROP_COPY: u32 = 4;
    /// It has had the session before, and does not want it from another client that has it now.
    pub const AGAIN: u32 = 8;
}

/// Come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Welcome {
    /// The version that both speak.
    pub version: u16,
    /// The session.
    pub session: u16,
    /// What holds an input before its reports leave: 0 the operating system, 1 the disk.
    pub level: u8,
    /// The user's [`Role`], as its code.
    pub role: u8,
    /// 1 to a client that comes again if another one has had the session meanwhile: the requests that the OMS took there may be
    /// that one's.
    pub others: u16,
    /// The journal that the numbers are of.
    pub journal: u64,
    /// The number that the session's next request must have.
    pub next_request: u64,
    /// The number of the first report that follows.
    pub next_report: u64,
    /// The number of the first report that is live: those before it come from the journal.
    pub live_report: u64,
    /// After so long without a word either side is taken for gone, in milliseconds. Half of it is the time between two
    /// heartbeats.
    pub heartbeat_ms: u32,
    /// Zero.
    pub reserved_end: u32,
    /// 1 if lanes were opened, whose memory comes with this message, from version 2 on.
    pub lanes: u32,
    /// What the session has beside its role, from version 4 on: [`Welcome::DROP_COPY`], or zero.
    pub rights: u32,
}

impl Welcome {
    /// To hear what others are told, and to ask for nothing.
    pub const DROP_COPY: u32 = 1;

    /// Whether the session hears what others are told; none if the OMS is too old to say it.
    pub fn has_drop_copy(&self) -> Option<bool> {
        (self.version >= RIGHTS_VERSION).then_some(self.rights & Self::DROP_COPY != 0)
    }
}

/// Go away; the connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Refused {
    /// [`Refusal`] as its code.
    pub code: u16,
    /// Zero.
    pub reserved: [u8; 6],
}

/// What became of an admin's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Taken {
    /// Its record in the journal; zero if it was not taken.
    pub record: u64,
}

/// Before a report to somebody else, in a drop copy. The frame's number is the report's place among all that is said, its
/// text the time of the report in nanoseconds since the Unix epoch, 8 bytes little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Copied {
    /// The first place that this frame stands for: what lies between is not in this drop copy.
    pub from: u64,
    /// The report's number in its session.
    pub session_number: u64,
    /// To whom it was said.
    pub session: u16,
    /// The message's kind.
    pub kind: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// Behind a report that is published on a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CopyTrailer {
    /// The journal that the places are of.
    pub journal: u64,
    /// The report's place among all that is said. One that came before is a double, if no [`Kind::CopyAgain`] is between.
    pub place: u64,
    /// The first place that this message stands for. If it is above the one behind the message before, some are missing.
    pub from: u64,
    /// The report's number in its session.
    pub session_number: u64,
    /// To whom it was said.
    pub session: u16,
    /// Zero.
    pub reserved: [u8; 6],
}

/// A question that changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Query {
    /// [`Query::STATUS`], [`Query::ORDERS`], [`Query::ORDER`], [`Query::ANSWERED`] or [`Query::INSTRUMENTS`].
    pub what: u32,
    /// Zero.
    pub reserved: u32,
    /// The OMS's id of the order that is asked for; of [`Query::ANSWERED`] a record of the journal.
    pub order: u64,
}

impl Query {
    /// How the OMS is: one answer with a [`Status`].
    pub const STATUS: u32 = 1;
    /// The open orders that the user may see: a row each, then an answer.
    pub const ORDERS: u32 = 2;
    /// One order, open or not: a row if the OMS knows it and the user may see it, then an answer.
    pub const ORDER: u32 = 3;
    /// The venue's answer to the question that the admin command with this record has sent to it: a row with the venue's last
    /// report, then an answer. Without a row the venue has not answered, or the question is forgotten.
    ///
    /// Of a question after all orders that report names no order; a reason in it says that the venue cannot. Its
    /// `venue_sequence` is how many orders the venue has reported, its `exec_id` how many of them differ. Rows in pairs follow,
    /// how the OMS had it and how the venue has it: first orders, with a row of zeros on the side that has none, then
    /// positions, whose rows name no order, with what was bought as `cumulative_quantity` and what was sold as
    /// `leaves_quantity`.
    pub const ANSWERED: u32 = 4;
    /// The instruments that can be traded now, by ascending number: a row each, then an answer. From version 6 on; an older
    /// OMS answers with orders.
    pub const INSTRUMENTS: u32 = 5;
}

/// An instrument of the OMS, in the answer to [`Query::INSTRUMENTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InstrumentRow {
    /// The number that requests and reports name it by.
    pub symbol: u32,
    /// The number of its venue.
    pub venue: u16,
    /// Zero.
    pub reserved: u16,
    /// Its name in ASCII, then zeros.
    pub name: [u8; 16],
}

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Role {
    /// Sees the orders of its accounts.
    #[default]
    Read = 0,
    /// Sends orders for its accounts, too.
    Trade = 1,
    /// Sees all, cancels all, and gives an operator's words.
    Admin = 2,
}

/// Why a connection was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Refusal {
    /// What came is no logon, or not in time.
    Protocol = 1,
    /// The user does not exist, is disabled, or the password is wrong: it is not told which.
    Password = 2,
    /// The session is not this user's.
    NotYours = 3,
    /// The session is in use, or all of the user's are.
    InUse = 4,
    /// The OMS stops.
    Stopping = 5,
    /// It asks for reports that were not said yet.
    Future = 6,
    /// The OMS has no room for one more.
    Full = 7,
}

macro_rules! status {
    ($(#[doc = $doc:literal] $name:ident,)+) => {
        /// How an OMS is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct Status {
            $(#[doc = $doc] pub $name: u64,)+
        }

        impl Status {
            /// All of it by name.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),+].into_iter()
            }

            /// What each of them is, by name.
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
    /// The number of its start, with which the ids of its orders begin.
    epoch,
    /// Records in its journal.
    journal_records,
    /// Connected sessions.
    sessions,
    /// Orders that wait for their venue.
    queued,
    /// Orders on their way to the venue.
    sending,
    /// Orders that the venue works.
    working,
    /// Orders that are filled, canceled or expired.
    done,
    /// Orders that the venue refused.
    rejected,
    /// Orders that waited and were denied before they could leave.
    withdrawn,
    /// Orders in doubt, which their venue is asked for.
    unknown,
    /// Requests that were denied.
    denied_requests,
    /// Reports that came twice.
    duplicates,
    /// Reports of orders that are not known, today.
    strangers,
    /// Reports that do not fit their order.
    mismatched,
    /// Reports that contradict what is known.
    contradictions,
    /// Reports that cannot be true.
    malformed,
    /// Messages that were none: not taken, and not in the journal.
    refused,
    /// Venues that can be reached.
    venues_up,
    /// Venues.
    venues,
    /// What is said and waits for the disk, where a session asks for that.
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
            /// The code in a message.
            pub const fn code(self) -> $code {
                self as $code
            }

            /// The value with this code, if there is one.
            pub fn from_code(code: $code) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|value| value.code() == code)
            }
        }
    };
}

from_code!(Kind, u8: Logon, Challenge, Proof, Welcome, Refused, Heartbeat, Logout, Query, Answer, OrderRow, Taken, Copy, CopyAgain, RequestRefused, InstrumentRow);
from_code!(Role, u8: Read, Trade, Admin);
from_code!(Refusal, u16: Protocol, Password, NotYours, InUse, Stopping, Future, Full);
