//! What a session's reports come to: its open orders, and what it bought less what it sold.

use std::collections::{BTreeMap, HashMap};

use tickpath_market::{ExecType, ExecutionReport, OrdStatus, Side};

use crate::report::Report;

/// Orders and positions, by the reports that came.
#[derive(Default)]
pub struct Book {
    /// How much of each order is filled, by the OMS's id of it: a report that comes twice changes nothing.
    filled: HashMap<u64, i64>,
    /// Open orders by the OMS's id, and the id that `submit` gave; 0 if that was before this client listened.
    open: HashMap<u64, (u64, Report)>,
    /// By instrument.
    positions: BTreeMap<u32, i64>,
}

impl Book {
    /// Takes in a report.
    pub fn take(&mut self, report: &ExecutionReport, told: Report) {
        let id = report.order_id.0;
        let filled = report.cumulative_quantity.0;
        // Of an order from before this client listened what was filled then is not ours to count.
        let first = || match ExecType::from_code(report.exec_type) {
            Some(ExecType::Trade) => filled - report.last_quantity.0,
            _ => filled,
        };
        let before = self.filled.insert(id, filled).unwrap_or_else(first);
        let sign = match Side::from_code(report.side) {
            Some(Side::Buy) => 1,
            Some(Side::Sell) => -1,
            None => 0,
        };
        if filled != before {
            *self.positions.entry(report.symbol.0).or_default() += sign * (filled - before);
        }
        if is_over(report.status) {
            self.open.remove(&id);
        } else {
            let own = self.open.get(&id).map_or(report.client_order_id.0, |(own, _)| *own);
            self.open.insert(id, (own, told));
        }
    }

    /// Open orders, by the id that `submit` gave.
    pub fn open(&self) -> BTreeMap<u64, Report> {
        self.open.values().copied().collect()
    }

    /// Bought less sold, by instrument.
    pub fn positions(&self) -> &BTreeMap<u32, i64> {
        &self.positions
    }
}

/// Whether nothing more becomes of an order of this status.
fn is_over(status: u8) -> bool {
    matches!(
        OrdStatus::from_code(status),
        Some(
            OrdStatus::Filled | OrdStatus::Canceled | OrdStatus::Rejected | OrdStatus::Expired | OrdStatus::DoneForDay
        )
    )
}
