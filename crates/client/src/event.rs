//! What a client tells its program.

use tickpath_market::{ExecutionReport, OrderDenied, Request};
use tickpath_session::{InstrumentRow, Status, Welcome};

use crate::ClientError;

/// The number of a denial that is no report: the OMS refused the request before its journal, because the user's role does
/// not allow it. Numbers of reports are far below.
pub const UNNUMBERED: u64 = u64::MAX;

/// Something that happened, in its order.
#[derive(Debug, Clone)]
pub enum Event {
    /// The session is there: the first time, and each time that its connection was made again.
    Connected(Welcome),
    /// The connection is lost. It is made again if the configuration says so.
    Disconnected {
        /// Why.
        why: ClientError,
    },
    /// The connection could not be made again yet; told when the reason is another than the one before.
    Failed {
        /// Why.
        why: ClientError,
    },
    /// The OMS has another journal than before: its numbers begin anew, and what was said in the other one is not told.
    OtherJournal {
        /// That of before.
        before: u64,
        /// That of now.
        now: u64,
    },
    /// The OMS has lost to a loss of power what it said last, and says it again from an earlier report on; it may say it
    /// otherwise.
    SaidAgain {
        /// The first that comes again.
        from: u64,
        /// The first that had not come.
        to: u64,
    },
    /// What became of an order.
    Report {
        /// The report's number in its session. From [`Welcome::live_report`] on reports are live.
        number: u64,
        /// When the OMS sent it, in ticks of its host's clock.
        stamp: u64,
        /// The report.
        report: ExecutionReport,
    },
    /// A request was denied.
    Denied {
        /// The report's number in its session, or [`UNNUMBERED`](crate::UNNUMBERED).
        number: u64,
        /// When the OMS sent it, in ticks of its host's clock.
        stamp: u64,
        /// The denial.
        denial: OrderDenied,
    },
    /// Somebody else was told this: the session is a drop copy.
    Copied {
        /// Its place among all that is said: that of the next one is higher, and what lies between is not of this drop copy.
        number: u64,
        /// When the OMS said it, in ticks of its host's clock.
        stamp: u64,
        /// The same in nanoseconds since the Unix epoch; none from an OMS of an older version.
        utc_ns: Option<u64>,
        /// To whom.
        session: u16,
        /// Its number there.
        session_number: u64,
        /// What was told.
        report: CopiedReport,
    },
    /// Reports are missing and will not come: whoever counts on them has to ask for the open orders.
    Gap {
        /// The first that is missing.
        from: u64,
        /// The first that is there again.
        to: u64,
    },
    /// A report came a second time, and was dropped.
    Double {
        /// Its number.
        number: u64,
    },
    /// The OMS did not take this and never will. It is not sent again by itself: it may be too old.
    NotTaken {
        /// The number that it had; the next one will have it again.
        number: u64,
        /// The request.
        request: Request,
    },
    /// Whether the OMS took this cannot be known: the numbers that would tell it are of another journal, were used by
    /// somebody else, or do not come any more.
    InDoubt {
        /// The number that it had.
        number: u64,
        /// The request.
        request: Request,
    },
    /// The OMS took these requests and knows them no more: its journal has lost its end. What they did has to be asked.
    Forgotten {
        /// The first of them.
        from: u64,
        /// The first behind them.
        to: u64,
    },
    /// What became of an admin's word: its record in the journal, or why it was not taken. A row for each order that it meant
    /// came before.
    WordAnswered(Result<u64, String>),
    /// An order, in answer to a query or a word.
    OrderRow {
        /// Whose it is.
        session: u16,
        /// How it stands.
        report: ExecutionReport,
    },
    /// An instrument of the OMS, in answer to a query of the instruments.
    InstrumentRow(InstrumentRow),
    /// The kill switches that are on, in the answer to a query of the status: account 7, symbol 3. Comes right before
    /// [`Self::Answered`], and not where none is on that the user may see.
    KillSwitches(String),
    /// The end of an answer to a query; a query whose connection was lost gets none.
    Answered(Option<Status>),
}

/// What somebody else was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopiedReport {
    /// What became of an order.
    Report(ExecutionReport),
    /// A request was denied.
    Denied(OrderDenied),
}

/// What a client has counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Reports and denials that were told.
    pub reports: u64,
    /// Holes in the reports' numbers.
    pub gaps: u64,
    /// Reports that are missing in them.
    pub missing: u64,
    /// Reports that came a second time.
    pub doubles: u64,
    /// Frames that this version does not know.
    pub strange: u64,
    /// Connections that were lost.
    pub losses: u64,
}
