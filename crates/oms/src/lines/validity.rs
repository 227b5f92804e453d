//! How old a new order or a replace of an account may be when it leaves a line: what its account's limits say. The core
//! checks the age of what waits in it; this is for what waits behind it, for a socket that takes nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_clock::Calibration;
use tickpath_market::{AccountId, Request};
use tickpath_orders::AccountLimits;

/// Told by the core's thread, asked by the lines'.
#[derive(Debug)]
pub(crate) struct Validity {
    /// The least of all, in ticks: nothing that is younger is too old for any account. Without limits nothing ever is.
    least: AtomicU64,
    /// By account, in ticks; those that have a limit.
    ages: Mutex<Vec<(AccountId, u64)>>,
}

impl Default for Validity {
    fn default() -> Self {
        Self { least: AtomicU64::new(u64::MAX), ages: Mutex::default() }
    }
}

impl Validity {
    /// From here on these limits hold.
    pub fn set(&self, accounts: &[AccountLimits], calibration: &Calibration) {
        let has_limit = accounts.iter().filter(|limits| limits.max_request_age_ns > 0);
        let age = |limits: &AccountLimits| (limits.account, calibration.ticks_of_ns(limits.max_request_age_ns));
        let mut ages: Vec<(AccountId, u64)> = has_limit.map(age).collect();
        ages.sort_unstable();
        self.least.store(ages.iter().map(|(_, age)| *age).min().unwrap_or(u64::MAX), Ordering::Relaxed);
        *self.ages.lock().unwrap_or_else(|e| e.into_inner()) = ages;
    }

    /// Whether the core would refuse a request of this stamp for its age. The clock is asked only if there is any limit.
    #[inline]
    pub fn is_over(&self, request: &Request, stamp: u64, now: impl FnOnce() -> u64) -> bool {
        let least = self.least.load(Ordering::Relaxed);
        if least == u64::MAX || !matches!(request, Request::New(_) | Request::Replace(_)) {
            return false;
        }
        let age = now().saturating_sub(stamp);
        age > least && self.is_over_for(request.account(), age)
    }

    #[cold]
    fn is_over_for(&self, account: AccountId, age: u64) -> bool {
        let ages = self.ages.lock().unwrap_or_else(|e| e.into_inner());
        ages.binary_search_by_key(&account, |(account, _)| *account).is_ok_and(|place| age > ages[place].1)
    }
}
