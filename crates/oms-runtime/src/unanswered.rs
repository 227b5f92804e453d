//! Silent venues, and venues that refuse a cancel because they do not work the order: either way the order is put in
//! doubt, and its venue is asked for it.
//!
//! ```text
//!   request sent ──answer_within──> MessageLoss (journaled) ──> Unknown, status queried
//!   Unknown      ──answer_within, then 2, 4, … times that──> QueryStatus (journaled): status queried again
//! ```
//! A pass over all open orders notes for how long each has been without an answer, a bounded number of orders a turn.
//! An order is overdue between `answer_within` and two passes later. A question that waits for its line is not
//! repeated.

use std::collections::HashMap;

use tickpath_clock::Calibration;
use tickpath_market::VenueId;
use tickpath_oms_core::{Core, UnansweredOrder};

/// Max slots of orders that a turn checks.
const SLOTS_PER_TURN: u32 = 4096;

/// The longest pause between two questions after one order is this many times `answer_within`.
const MAX_PAUSE: u64 = 16;

/// Expectations of a venue. They are not journaled: their consequences are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VenueExpectations {
    /// The venue.
    pub venue: VenueId,
    /// Nanoseconds within which the venue answers each request; zero for no limit.
    pub answer_within_ns: u64,
    /// The venue's rules end its day orders with its day, so that their expiry needs no report.
    pub expires_day_orders: bool,
}

/// Time that each order has been without an answer.
#[derive(Debug, Default)]
pub(crate) struct UnansweredOrders {
    pub expectations: Vec<VenueExpectations>,
    waiting: HashMap<u64, AnswerWait>,
    /// Slot at which the pass resumes.
    next_slot: u32,
    pass: u64,
}

/// An order without an answer.
#[derive(Debug, Clone, Copy)]
struct AnswerWait {
    request: u64,
    /// Time at which the request was first seen without an answer, or last asked for, in ticks.
    since: u64,
    /// Number of questions to its venue since then.
    asked: u32,
    /// The last pass that found the order.
    pass: u64,
}

impl UnansweredOrders {
    fn expectations_of(&self, venue: VenueId) -> Option<&VenueExpectations> {
        self.expectations.iter().find(|expected| expected.venue == venue)
    }

    /// Returns whether this venue's day orders expire at the end of a day without a report.
    pub fn expires_day_orders(&self, venue: VenueId) -> bool {
        self.expectations_of(venue).is_some_and(|expected| expected.expires_day_orders)
    }

    /// Returns the slot at which this turn's part of the pass ends; `None` if every venue may take any time.
    pub fn end_of_turn(&self) -> Option<u32> {
        let is_timed = self.expectations.iter().any(|expected| expected.answer_within_ns > 0);
        is_timed.then(|| self.next_slot.saturating_add(SLOTS_PER_TURN))
    }

    /// Returns the next order of the pass that has no answer, as far as this slot; `None` behind the last one there.
    pub fn next_of_pass(&mut self, core: &Core, until: u32) -> Option<UnansweredOrder> {
        let (found, next) = core.next_unanswered(self.next_slot, until);
        self.next_slot = next;
        if found.is_none() && next >= core.slot_count() {
            // Orders that the pass did not find have their answer.
            self.next_slot = 0;
            self.waiting.retain(|_, waits| waits.pass == self.pass);
            self.pass += 1;
        }
        found
    }

    /// Notes an order without an answer at `now`, and returns whether its time is up.
    pub fn is_overdue(&mut self, found: &UnansweredOrder, now: u64, calibration: &Calibration) -> bool {
        let within = self.expectations_of(found.venue).map_or(0, |expected| expected.answer_within_ns);
        if within == 0 {
            return false;
        }
        let fresh = AnswerWait { request: found.request, since: now, asked: 0, pass: self.pass };
        let waits = self.waiting.entry(found.order.0).or_insert(fresh);
        if waits.request != found.request {
            *waits = fresh;
        }
        waits.pass = self.pass;
        // The venue does not have the question yet. A newer question would wait behind all others, and by a slow line
        // would never leave.
        if found.is_query_waiting {
            waits.since = now;
        }
        let pause = (1 << waits.asked.min(16)).min(MAX_PAUSE);
        let is_overdue = now.saturating_sub(waits.since) >= calibration.ticks_of_ns(within.saturating_mul(pause));
        if is_overdue {
            (waits.since, waits.asked) = (now, waits.asked + 1);
        }
        is_overdue
    }
}
