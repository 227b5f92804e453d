//! Max age of new orders and replaces when they leave a line, as their account's limits set it. The core checks the age
//! of requests that wait in it; this module checks requests behind the core, which wait for a full socket.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::Calibration;
use tickpath_market::{AccountId, Request};
use tickpath_oms_core::AccountLimits;

/// Max ages of the accounts' requests, set by the core's thread and read by the lines' threads.
#[derive(Debug)]
pub(crate) struct RequestValidity {
    /// Lowest max age of all accounts, in ticks; no younger request is too old. `u64::MAX` without limits.
    min_age: AtomicU64,
    /// Max ages in ticks, of the accounts that have a limit.
    ages: Mutex<Vec<(AccountId, u64)>>,
}

impl Default for RequestValidity {
    fn default() -> Self {
        Self { min_age: AtomicU64::new(u64::MAX), ages: Mutex::default() }
    }
}

impl RequestValidity {
    /// Replaces the limits.
    pub fn set(&self, accounts: &[AccountLimits], calibration: &Calibration) {
        let has_limit = accounts.iter().filter(|limits| limits.max_request_age_ns > 0);
        let age = |limits: &AccountLimits| (limits.account, calibration.ticks_of_ns(limits.max_request_age_ns));
        let mut ages: Vec<(AccountId, u64)> = has_limit.map(age).collect();
        ages.sort_unstable();
        self.min_age.store(ages.iter().map(|(_, age)| *age).min().unwrap_or(u64::MAX), Ordering::Relaxed);
        *self.ages.lock().unwrap_or_else(|e| e.into_inner()) = ages;
    }

    /// Returns whether the core would refuse a request with this stamp for its age. Reads the clock only if there is a
    /// limit.
    #[inline]
    pub fn is_over(&self, request: &Request, stamp: u64, now: impl FnOnce() -> u64) -> bool {
        let min_age = self.min_age.load(Ordering::Relaxed);
        if min_age == u64::MAX || !matches!(request, Request::New(_) | Request::Replace(_)) {
            return false;
        }
        let age = now().saturating_sub(stamp);
        age > min_age && self.is_over_for(request.account(), age)
    }

    #[cold]
    fn is_over_for(&self, account: AccountId, age: u64) -> bool {
        let ages = self.ages.lock().unwrap_or_else(|e| e.into_inner());
        ages.binary_search_by_key(&account, |(account, _)| *account).is_ok_and(|index| age > ages[index].1)
    }
}
