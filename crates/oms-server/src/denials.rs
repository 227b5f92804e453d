//! The budget of denied requests: each denial is a journal record without use for trading, so a session has a limited
//! number of them a day. A session over its budget is disconnected with the reason, and slow until the day ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_market::{OrderDenied, OrderId, Request};
use tickpath_oms_core::{Denial, MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE, MAY_STATUS};
use tickpath_oms_runtime::Rate;

use crate::settings::DenialLimits;

/// Rate of a session over its budget: a mass cancel still passes.
pub(super) const SLOW: Rate = Rate { per_second: 1, burst: 5 };
/// Divisor of a session's budget while the journal's disk is short of its reserve.
const LOW_PART: u64 = 100;

/// Denied requests of each session since the day, or this process, began.
#[derive(Debug)]
pub(super) struct Denials {
    most: u64,
    is_disk_low: Arc<AtomicBool>,
    counts: BTreeMap<u16, Count>,
    /// Sessions over budget that have not been disconnected yet.
    spent: Vec<u16>,
    /// Sessions that a new day gives their full rate again.
    freed: Vec<u16>,
}

#[derive(Debug, Default)]
struct Count {
    denied: u64,
    is_spent: bool,
    /// Logons of a user that only reads.
    logons: u64,
}

impl Denials {
    pub fn new(limits: DenialLimits, is_disk_low: Arc<AtomicBool>) -> Self {
        let most = limits.most_a_day.into();
        Self { most, is_disk_low, counts: BTreeMap::new(), spent: Vec::new(), freed: Vec::new() }
    }

    /// Counts a denied request of a session.
    pub fn count(&mut self, session: u16) {
        let is_low = self.is_disk_low.load(Ordering::Relaxed);
        let most = if is_low { self.most / LOW_PART } else { self.most };
        let count = self.counts.entry(session).or_default();
        count.denied += 1;
        if count.denied > most && !count.is_spent {
            count.is_spent = true;
            self.spent.push(session);
        }
    }

    /// Counts a logon of a session that only reads. Returns false if it must not be journaled, because the day's logons
    /// exceed the session's budget of denied requests.
    pub fn journals_logon(&mut self, session: u16) -> bool {
        let count = self.counts.entry(session).or_default();
        count.logons += 1;
        count.logons <= self.most
    }

    /// Returns whether the session has used up its budget.
    pub fn is_spent(&self, session: u16) -> bool {
        self.counts.get(&session).is_some_and(|count| count.is_spent)
    }

    /// Takes the sessions that have used up their budget since the last call.
    pub fn take_spent(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.spent)
    }

    /// Begins a day: every session has its whole budget again.
    pub fn begin_day(&mut self) {
        self.spent.clear();
        self.freed.extend(self.counts.iter().filter(|(_, count)| count.is_spent).map(|(session, _)| *session));
        self.counts.clear();
    }

    /// Takes the sessions that have their full rate again since the last call.
    pub fn take_freed(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.freed)
    }

    /// Returns the message to a session whose budget is used up.
    pub fn sentence(&self, session: u16) -> String {
        let denied = self.counts.get(&session).map_or(0, |count| count.denied);
        format!(
            "{denied} requests of session {session} were denied today, more than max_denied_a_day allows; until the day ends \
             it is taken one request a second"
        )
    }
}

/// Returns the answer to a request that the user's role does not allow, and that is refused before the journal.
pub(super) fn refusal(request: &Request) -> OrderDenied {
    let kind = match request {
        Request::New(_) | Request::Conditional(_) => MAY_NEW,
        Request::Cancel(_) => MAY_CANCEL,
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
        reserved: 0,
    }
}
