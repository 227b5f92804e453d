//! The fills of an order, an operator's total, and the resulting status.

use tickpath_market::{ExecType, ExecutionReport, OrdStatus};

use super::order_log::{LogState, Phase};

impl LogState {
    /// Returns the status, by FIX precedence.
    pub fn status(&self) -> OrdStatus {
        let ended = !self.is_live();
        match self.phase {
            Phase::Denied => OrdStatus::Rejected,
            Phase::Lost | Phase::Unknown => OrdStatus::Unknown,
            Phase::Armed => OrdStatus::Armed,
            _ if !ended && self.cancel.is_some() => OrdStatus::PendingCancel,
            _ if !ended && self.replace.is_some() => OrdStatus::PendingReplace,
            Phase::Queued | Phase::Sent => OrdStatus::PendingNew,
            _ if self.filled >= self.quantity => OrdStatus::Filled,
            Phase::Canceled => OrdStatus::Canceled,
            Phase::Expired => OrdStatus::Expired,
            Phase::Rejected => OrdStatus::Rejected,
            Phase::Open if self.filled > 0 => OrdStatus::PartiallyFilled,
            Phase::Open => OrdStatus::New,
        }
    }

    /// Adds a fill or an amendment. Returns the booked change and whether an operator's total had already covered all
    /// of it, or none if it brings nothing new.
    pub(super) fn fill(&mut self, what: ExecType, report: &ExecutionReport, is_new: bool) -> Option<(i64, bool)> {
        let quantity = if what == ExecType::TradeCancel { 0 } else { report.last_quantity.0 };
        let number = if what == ExecType::Trade { 0 } else { report.venue_sequence.max(1) };
        let before = self.fills.get(&report.exec_id.0).copied();
        let is_news = match before {
            None => true,
            Some(_) if what == ExecType::Trade => false,
            Some((held, changed)) if report.venue_sequence == 0 => changed == 0 || held != quantity,
            Some((_, changed)) => number > changed,
        };
        if !is_news {
            return None;
        }
        let (held, changed) = before.unwrap_or((0, 0));
        self.fills.insert(report.exec_id.0, (quantity, number.max(changed)));
        let change = quantity - held;
        let booked = self.booked_by_operator(what, change, report.cumulative_quantity.0, is_new);
        self.manual = self.manual.saturating_sub(booked);
        self.net += i128::from(change - booked);
        self.filled = self.filled.saturating_add(change - booked).max(0);
        Some((change - booked, booked != 0 && booked == change))
    }

    /// Returns the part of a change that an operator's total already covers.
    fn booked_by_operator(&self, what: ExecType, change: i64, reported: i64, is_new: bool) -> i64 {
        let due = if what == ExecType::Trade {
            // The operator's total includes earlier events.
            if is_new { 0 } else { change }
        } else {
            // The venue's total gives the change that is still due; the rest was made before.
            change.saturating_sub(reported.saturating_sub(self.filled))
        };
        match self.manual {
            manual if manual >= 0 => due.max(0).min(manual),
            _ if what == ExecType::Trade => 0,
            manual => due.min(0).max(manual),
        }
    }
}

/// Returns whether a report of this kind is a fill or an amendment of one.
pub(super) fn is_fill(exec_type: u8) -> bool {
    use ExecType::{Trade, TradeCancel, TradeCorrect};
    matches!(ExecType::from_code(exec_type), Some(Trade | TradeCorrect | TradeCancel))
}
