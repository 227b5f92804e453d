//! Kinds of venue reports.

use tickpath_market::{ExecType, ExecutionReport, OrdStatus};

use crate::ReportRecord;
use crate::order::Order;

/// Kind of a venue report, as the merge treats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportClass {
    Accepted,
    Filled,
    Replaced,
    CancelRejected,
    Expired,
    Canceled,
    Rejected,
    Lost,
    /// Correction or bust of a fill.
    Amended,
    /// Status of an order, in answer to a status request.
    Status,
    /// Acknowledgement of a pending request, which the core knows of already.
    Acknowledged,
}

impl ReportClass {
    /// Classifies a report; none if the report cannot be true.
    pub(crate) fn classify(report: &ExecutionReport) -> Option<Self> {
        let exec_type = ExecType::from_code(report.exec_type)?;
        if OrdStatus::from_code(report.status)? == OrdStatus::Unknown {
            return Some(Self::Lost);
        }
        if report.cumulative_quantity.0 < 0 || report.leaves_quantity.0 < 0 {
            return None;
        }
        let is_fill = report.exec_id.0 != 0 && report.last_quantity.0 > 0;
        match exec_type {
            ExecType::New => Some(Self::Accepted),
            ExecType::Trade | ExecType::TradeCorrect | ExecType::TradeCancel if !is_fill => None,
            ExecType::Trade => Some(Self::Filled),
            ExecType::TradeCorrect | ExecType::TradeCancel => Some(Self::Amended),
            ExecType::Replaced => Some(Self::Replaced),
            ExecType::CancelRejected => Some(Self::CancelRejected),
            ExecType::Expired => Some(Self::Expired),
            ExecType::Canceled => Some(Self::Canceled),
            ExecType::Rejected => Some(Self::Rejected),
            ExecType::OrderStatus => Some(Self::Status),
            ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace | ExecType::Triggered => {
                Some(Self::Acknowledged)
            }
        }
    }

    /// Returns whether the report carries a fill, new or amended.
    pub(crate) fn has_fill(self) -> bool {
        self == Self::Filled || self == Self::Amended
    }

    /// Returns whether a report of this class matches the order that its id names. A cancel rejection or a status
    /// answer may lack the side, because the venue may not know the order, or not any more.
    pub(crate) fn matches_order(self, order: &Order, record: &ReportRecord) -> bool {
        let report = &record.report;
        let may_lack_side = self == Self::CancelRejected || report.exec_type == ExecType::OrderStatus.code();
        let is_side = report.side == order.side.code() || (may_lack_side && report.side == 0);
        let is_venue = report.venue == order.venue && record.source == order.venue;
        is_side && is_venue && report.symbol == order.symbol && report.account == order.account
    }
}

/// Returns the total quantity of a report: cumulative plus leaves.
pub(crate) fn total_quantity(report: &ExecutionReport) -> i64 {
    report.cumulative_quantity.0.saturating_add(report.leaves_quantity.0)
}

/// Returns whether the venue reports that it has no such order.
pub(crate) fn is_unknown_at_venue(report: &ExecutionReport) -> bool {
    report.status == OrdStatus::Rejected.code() && report.venue_sequence == 0 && report.side == 0
}
