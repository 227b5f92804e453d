//! The budget of denied requests: each denial is a journal record without use for trading, so a session has a limited
//! number of them a day. A session over its budget is disconnected with the reason, and slow until the day ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_market::{OrderDenied, OrderId, Request};
use tickpath_oms_core::{Denial, MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE, MAY_STATUS};
use tickpath_oms_runtime::RequestRate;

use crate::settings::DenialLimits;

/// Rate of a session over its budget: a mass cancel still passes.
pub(super) const THROTTLED_RATE: RequestRate = RequestRate { per_second: 1, burst: 5 };
/// Divisor of a session's budget while the journal's disk is short of its reserve.
const LOW_DISK_DIVISOR: u64 = 100;

/// Denied requests of each session since the day, or this process, began.
#[derive(Debug)]
pub(super) struct DenialBudget {
    max_denied: u64,
    is_disk_low: Arc<AtomicBool>,
    counts: BTreeMap<u16, DenialCount>,
    /// Sessions over budget that have not been disconnected yet.
    pub exhausted: Vec<u16>,
    /// Sessions that a new day gives their full rate again.
    pub restored: Vec<u16>,
}

#[derive(Debug, Default)]
struct DenialCount {
    denied: u64,
    is_exhausted: bool,
    logons: u64,
}

impl DenialBudget {
    pub fn new(limits: DenialLimits, is_disk_low: Arc<AtomicBool>) -> Self {
        let (max_denied, counts) = (limits.max_per_day.into(), BTreeMap::new());
        Self { max_denied, is_disk_low, counts, exhausted: Vec::new(), restored: Vec::new() }
    }

    pub fn count(&mut self, session: u16) {
        let is_low = self.is_disk_low.load(Ordering::Relaxed);
        let max_denied = if is_low { self.max_denied / LOW_DISK_DIVISOR } else { self.max_denied };
        let count = self.counts.entry(session).or_default();
        count.denied += 1;
        if count.denied > max_denied && !count.is_exhausted {
            count.is_exhausted = true;
            self.exhausted.push(session);
        }
    }

    /// Counts a reader's logon. Returns false if it must not be journaled, because the day's logons exceed the budget.
    pub fn count_logon(&mut self, session: u16) -> bool {
        let count = self.counts.entry(session).or_default();
        count.logons += 1;
        count.logons <= self.max_denied
    }

    pub fn is_exhausted(&self, session: u16) -> bool {
        self.counts.get(&session).is_some_and(|count| count.is_exhausted)
    }

    /// Begins a day: every session has its whole budget again.
    pub fn begin_day(&mut self) {
        self.exhausted.clear();
        self.restored.extend(self.counts.iter().filter(|(_, count)| count.is_exhausted).map(|(session, _)| *session));
        self.counts.clear();
    }

    pub fn sentence(&self, session: u16) -> String {
        let denied = self.counts.get(&session).map_or(0, |count| count.denied);
        format!(
            "{denied} requests of session {session} were denied today, more than max_denied_a_day allows; until the day ends \
             it may send one request a second"
        )
    }
}

/// Returns the answer to a request that the user's role does not allow, and that is refused before the journal.
pub(super) fn role_denial(request: &Request) -> OrderDenied {
    let kind = match request {
        Request::New(_) | Request::Conditional(_) | Request::Extended(_) => MAY_NEW,
        Request::ByTextId(named) if named.is_status() => MAY_STATUS,
        Request::Cancel(_) | Request::ByTextId(_) => MAY_CANCEL,
        Request::Replace(_) | Request::ReplaceConditional(_) => MAY_REPLACE,
        Request::MassCancel(_) => MAY_MASS_CANCEL,
        Request::Status(_) => MAY_STATUS,
    };
    OrderDenied {
        order_id: OrderId(0),
        client_order_id: request.client_order_id(),
        limit: [0; 16],
        value: i128::from(kind).to_le_bytes(),
        account: request.account(),
        code: Denial::NotPermitted.code(),
        more_decimals: 0,
    }
}
