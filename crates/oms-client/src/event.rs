//! The events that a client reports to its program.

use tickpath_market::{ExecutionReport, OrderDenied, OrderExtension, ReportDetail, Request};
use tickpath_oms_protocol::{InstrumentRow, Status, Welcome};

use crate::ClientError;

/// Number of a denial that is no report: the OMS refused the request before its journal, because the user's role does
/// not allow it. Numbers of reports are far below.
pub const UNNUMBERED: u64 = u64::MAX;

/// An event, in the order in which it happened.
#[derive(Debug, Clone)]
pub enum ClientEvent {
    /// The session is connected: the first time, and after each reconnect.
    Connected(Welcome),
    /// The connection is lost. The client reconnects if the configuration says so.
    Disconnected {
        /// Reason of the loss.
        why: ClientError,
    },
    /// A reconnect has failed; reported when the reason differs from the last one.
    Failed {
        /// Reason of the failure.
        why: ClientError,
    },
    /// The OMS has another journal than before: its numbers begin anew, and missed reports of the other journal are not
    /// reported.
    OtherJournal {
        /// Journal before.
        before: u64,
        /// Journal now.
        now: u64,
    },
    /// The OMS has lost its last reports in a power loss, and sends them again from an earlier report on; their content
    /// may differ.
    Resent {
        /// First report that is sent again.
        from: u64,
        /// First report that had not arrived.
        to: u64,
    },
    /// A report on an order.
    Report {
        /// The report's number in its session. From [`Welcome::live_report`] on reports are live.
        number: u64,
        /// Time at which the OMS sent it, in ticks of its host's clock.
        stamp: u64,
        /// The report.
        report: ExecutionReport,
    },
    /// A request was denied.
    Denied {
        /// The report's number in its session, or [`UNNUMBERED`](crate::UNNUMBERED).
        number: u64,
        /// Time at which the OMS sent it, in ticks of its host's clock.
        stamp: u64,
        /// The denial.
        denial: OrderDenied,
    },
    /// The detail of a report, as the exchange sent it beside the report: fee, maker or taker, times and text. A detail
    /// follows its report, which has the same order and fill; most reports have none.
    Detail {
        /// The detail's number in its session; details are counted apart from reports.
        number: u64,
        /// Time at which the OMS sent it, in ticks of its host's clock.
        stamp: u64,
        /// The detail.
        detail: ReportDetail,
    },
    /// The text id and the end time of an order: before the order's first report, before an answer to a status request,
    /// and before the order's [`Self::OrderRow`].
    Extension {
        /// Number of the message among the session's reports; [`UNNUMBERED`](crate::UNNUMBERED) before a row.
        number: u64,
        /// Time at which the OMS sent it, in ticks of its host's clock; zero before a row.
        stamp: u64,
        /// The message.
        extension: OrderExtension,
    },
    /// A copy of a report to another session: this session is a drop copy.
    Copied {
        /// Place among all reports of the OMS: the next copy has a higher one, and the reports between them are not
        /// part of this drop copy.
        number: u64,
        /// Time at which the OMS sent it, in ticks of its host's clock.
        stamp: u64,
        /// The same time in nanoseconds since the Unix epoch; none from an OMS of an older version.
        utc_ns: Option<u64>,
        /// Session that received the report.
        session: u16,
        /// Number of the report in that session; of a detail among its details.
        session_number: u64,
        /// The report, denial or detail.
        report: CopiedReport,
    },
    /// Reports are missing and will not arrive: a program that relies on them has to query the open orders.
    Gap {
        /// First missing report.
        from: u64,
        /// First report after the gap.
        to: u64,
    },
    /// A duplicate report arrived, and was dropped.
    Duplicate {
        /// Number of the report.
        number: u64,
    },
    /// The OMS did not take this request and never will. The client does not send it again, because it may be too old.
    NotTaken {
        /// Number that the request had; the next request has it again.
        number: u64,
        /// The request.
        request: Request,
    },
    /// The client cannot know whether the OMS took this request: the numbers that would show it belong to another
    /// journal, were used by another client, or no longer arrive.
    InDoubt {
        /// Number that the request had.
        number: u64,
        /// The request.
        request: Request,
    },
    /// The OMS took these requests and no longer knows them, because its journal has lost its end. The program has to
    /// query their effect.
    Forgotten {
        /// First of the requests.
        from: u64,
        /// Number after the last request.
        to: u64,
    },
    /// The result of an admin command: its record in the journal, or the reason why it was not taken. A row for each
    /// order that it covered arrived before.
    CommandAnswered(Result<u64, String>),
    /// An order, in answer to a query or an admin command.
    OrderRow {
        /// Session of the order.
        session: u16,
        /// State of the order.
        report: ExecutionReport,
    },
    /// An instrument of the OMS, in answer to a query of the instruments.
    InstrumentRow(InstrumentRow),
    /// The kill switches that are on, in the answer to a query of the status: account 7, symbol 3. It comes right
    /// before [`Self::Answered`], unless no switch is on that the user may see.
    KillSwitches(String),
    /// The end of an answer to a query; a query whose connection was lost gets none.
    Answered(Option<Status>),
}

/// A report, a denial or a detail to another session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopiedReport {
    /// A report on an order.
    Report(ExecutionReport),
    /// A request was denied.
    Denied(OrderDenied),
    /// The detail of a report.
    Detail(ReportDetail),
}

/// Counts of a client since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCounts {
    /// Reports and denials passed to the program.
    pub reports: u64,
    /// Details passed to the program.
    pub details: u64,
    /// Details that are missing and will not arrive, because the OMS does not keep their day any more.
    pub missing_details: u64,
    /// Gaps in the reports' numbers.
    pub gaps: u64,
    /// Reports missing in the gaps.
    pub missing: u64,
    /// Duplicate reports and details.
    pub duplicates: u64,
    /// Frames of kinds that this version does not know.
    pub unknown_frames: u64,
    /// Lost connections.
    pub losses: u64,
}
