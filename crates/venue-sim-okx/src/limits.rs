//! Rate limits: requests within a sliding window.

use std::collections::{HashMap, VecDeque};

use crate::codes::{ACCOUNT_RATE_LIMIT, OkxCode, RATE_LIMIT};

/// Length of the window of order requests.
const ORDER_WINDOW_NS: u64 = 2_000_000_000;
/// Max single requests of an operation, account and instrument within the window.
const MAX_SINGLE: usize = 60;
/// Max orders in batches of an operation, account and instrument within the window.
const MAX_BATCHED: usize = 300;
/// Max new orders and amendments of an account within the window.
const MAX_OF_ACCOUNT: usize = 1_000;

/// An operation with limits of its own. WebSocket and REST share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OrderOperation {
    Place,
    Amend,
    Cancel,
}

/// Requests of the last window, by their times.
#[derive(Debug, Default)]
pub(crate) struct RequestWindow {
    times_ns: VecDeque<u64>,
}

impl RequestWindow {
    /// Counts a request; returns false, and counts nothing, if the window is full.
    pub(crate) fn try_count(&mut self, now_ns: u64, window_ns: u64, max: usize) -> bool {
        while self.times_ns.front().is_some_and(|time_ns| now_ns.saturating_sub(*time_ns) >= window_ns) {
            self.times_ns.pop_front();
        }
        let has_room = self.times_ns.len() < max;
        if has_room {
            self.times_ns.push_back(now_ns);
        }
        has_room
    }
}

/// Limits of order requests.
#[derive(Debug, Default)]
pub(crate) struct OrderLimits {
    /// Windows by account, instrument and operation, of single requests and of batches.
    operations: HashMap<(usize, usize, OrderOperation, bool), RequestWindow>,
    accounts: HashMap<usize, RequestWindow>,
}

impl OrderLimits {
    /// Counts an order of a request. A batch of one order counts as a single request.
    pub(crate) fn count(
        &mut self,
        now_ns: u64,
        (account, instrument): (usize, usize),
        operation: OrderOperation,
        is_batch: bool,
    ) -> Result<(), OkxCode> {
        let max = if is_batch { MAX_BATCHED } else { MAX_SINGLE };
        let window = self.operations.entry((account, instrument, operation, is_batch)).or_default();
        if !window.try_count(now_ns, ORDER_WINDOW_NS, max) {
            return Err(RATE_LIMIT);
        }
        let is_counted = operation != OrderOperation::Cancel;
        let of_account = self.accounts.entry(account).or_default();
        if is_counted && !of_account.try_count(now_ns, ORDER_WINDOW_NS, MAX_OF_ACCOUNT) {
            return Err(ACCOUNT_RATE_LIMIT);
        }
        Ok(())
    }
}
