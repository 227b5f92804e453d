//! The sum of a session's reports: its open orders, and what it bought less what it sold.

use std::collections::{BTreeMap, HashMap};

use tickpath_market::Side;

use crate::report::PyReport;

/// Final order statuses.
const FINAL_STATUSES: [&str; 5] = ["filled", "canceled", "rejected", "expired", "done_for_day"];

/// Orders and positions, from the reports that were handed over.
#[derive(Default)]
pub struct SessionBook {
    /// Filled quantity of each order, by the OMS's order id: a duplicate report changes nothing.
    filled: HashMap<u64, i64>,
    /// Open orders by the OMS's order id, each with the id that `submit` returned; 0 if the order is older than this
    /// client's reports.
    open: HashMap<u64, (u64, PyReport)>,
    /// Net quantity by instrument.
    positions: BTreeMap<u32, i64>,
}

impl SessionBook {
    /// Applies a report that is handed over.
    pub fn apply(&mut self, report: &PyReport) {
        let id = report.order_id;
        if report.denial.is_some() {
            // The order itself was denied, not a request to change it.
            self.open.retain(|order, (own, _)| *order != id || *own != report.client_order_id);
            return;
        }
        let filled = report.cumulative_quantity;
        // Fills from before this client's reports are not counted.
        let first = || if report.exec_type == "trade" { filled - report.last_quantity } else { filled };
        let before = self.filled.insert(id, filled).unwrap_or_else(first);
        let sign = match Side::from_code(report.side) {
            Some(Side::Buy) => 1,
            Some(Side::Sell) => -1,
            None => 0,
        };
        if filled != before {
            *self.positions.entry(report.symbol).or_default() += sign * (filled - before);
        }
        if report.status.is_some_and(|status| FINAL_STATUSES.contains(&status)) {
            self.open.remove(&id);
        } else {
            let own = self.open.get(&id).map_or(report.client_order_id, |(own, _)| *own);
            self.open.insert(id, (own, *report));
        }
    }

    /// Open orders, by the id that `submit` returned.
    pub fn open(&self) -> BTreeMap<u64, PyReport> {
        self.open.values().copied().collect()
    }

    /// The oldest order of this client without an answer of its venue: the OMS's order id, and the id that `submit`
    /// returned.
    pub fn unanswered(&self) -> Option<(u64, u64)> {
        let waits = self.open.iter().filter(|(_, (own, report))| *own != 0 && report.status == Some("pending_new"));
        waits.map(|(id, (own, _))| (*id, *own)).min()
    }

    /// Quantity bought less quantity sold, by instrument.
    pub fn positions(&self) -> &BTreeMap<u32, i64> {
        &self.positions
    }
}
