//! Venues that stay silent, and venues that refuse a cancel because they do not work the order: either way the order is
//! put in doubt, and its venue is asked for it.
//!
//! ```text
//!   request sent ──answer_within──> Doubt (journaled) ──> Unknown, status asked
//!   Unknown      ──answer_within, then 2, 4, … times that──> Inquire (journaled): status asked again
//! ```
//! A pass over all open orders notes for how long each has been without an answer; it looks at a bounded number of orders
//! a turn. An order is overdue between `answer_within` and two passes later.

use std::collections::HashMap;

use tickpath_clock::Clock;
use tickpath_market::{ExecType, ExecutionReport, OrdStatus, VenueId};
use tickpath_orders::{Doubt, Input, Inquire, LOST_ORDER, Unanswered};
use tickpath_venue::{TOO_LATE, UNKNOWN_ORDER};

use crate::OmsError;
use crate::notice::Notice;
use crate::sequencer::Sequencer;

/// Open orders that one turn looks at.
const LOOK: u32 = 256;
/// The longest pause between two questions after one order is this many times `answer_within`.
const LONGEST_PAUSE: u64 = 16;

/// What an OMS expects of a venue. None of it is journaled: what follows from it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VenueWatch {
    /// The venue.
    pub venue: VenueId,
    /// Nanoseconds within which the venue answers each request; zero for no limit.
    pub answer_within_ns: u64,
    /// The venue's rules end its day orders with its day, so that their expiry needs no report.
    pub expires_day_orders: bool,
}

/// How long each order has been without an answer.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    watch: Vec<VenueWatch>,
    waits: HashMap<u64, Waits>,
    /// The slot that the pass goes on from.
    at: u32,
    pass: u64,
}

/// An order without an answer.
#[derive(Debug, Clone, Copy)]
struct Waits {
    request: u64,
    /// When the request was first seen without an answer, or last asked for, in ticks.
    since: u64,
    /// How often its venue was asked since.
    asked: u32,
    /// The last pass that saw it.
    pass: u64,
}

impl Answers {
    /// Takes what is expected of each venue from here on.
    pub fn expect(&mut self, watch: &[VenueWatch]) {
        self.watch = watch.to_vec();
    }

    fn of(&self, venue: VenueId) -> Option<&VenueWatch> {
        self.watch.iter().find(|watch| watch.venue == venue)
    }

    /// Whether expiry at the end of a day needs no report of this venue.
    pub fn expires_day_orders(&self, venue: VenueId) -> bool {
        self.of(venue).is_some_and(|watch| watch.expires_day_orders)
    }

    /// Notes an order without an answer at `now`, and returns whether its time is up.
    fn is_overdue(&mut self, found: &Unanswered, now: u64, ticks: impl Fn(u64) -> u64) -> bool {
        let within = self.of(found.venue).map_or(0, |watch| watch.answer_within_ns);
        if within == 0 {
            return false;
        }
        let fresh = Waits { request: found.request, since: now, asked: 0, pass: self.pass };
        let waits = self.waits.entry(found.order.0).or_insert(fresh);
        if waits.request != found.request {
            *waits = fresh;
        }
        waits.pass = self.pass;
        let pause = (1 << waits.asked.min(16)).min(LONGEST_PAUSE);
        let is_overdue = now.saturating_sub(waits.since) >= ticks(within.saturating_mul(pause));
        if is_overdue {
            (waits.since, waits.asked) = (now, waits.asked + 1);
        }
        is_overdue
    }

    /// A pass is over: orders that it did not see have their answer.
    fn end_pass(&mut self) {
        let pass = self.pass;
        self.waits.retain(|_, waits| waits.pass == pass);
        self.pass += 1;
    }
}

impl<C: Clock> Sequencer<C> {
    /// Goes on with the pass over open orders, and puts those in doubt whose venue has been silent for too long. Returns
    /// how many.
    #[cold]
    pub(crate) fn look_for_answers(&mut self) -> Result<usize, OmsError> {
        if self.answers.watch.iter().all(|watch| watch.answer_within_ns == 0) {
            return Ok(0);
        }
        let (mut done, mut left) = (0, LOOK);
        while left > 0 {
            let (found, next) = self.core.next_unanswered(self.answers.at, left);
            self.answers.at = next;
            let Some(found) = found else {
                if next == 0 {
                    self.answers.end_pass();
                }
                break;
            };
            left -= 1;
            let (now, calibration) = (self.clock.ticks(), *self.clock.calibration());
            if self.answers.is_overdue(&found, now, |ns| calibration.ticks_of_ns(ns)) {
                done += usize::from(self.ask_for(&found)?);
            }
        }
        Ok(done)
    }

    /// Puts an order in doubt, or asks for one that is in doubt already. Returns false where its venue cannot be asked.
    fn ask_for(&mut self, found: &Unanswered) -> Result<bool, OmsError> {
        let now = self.clock.ticks();
        if found.request != 0 {
            self.doubt_order(found.venue, found.order.0)?;
            self.notices.add(Notice::Silent { venue: found.venue, order: found.order });
            return Ok(true);
        }
        let question = Input::Inquire(Inquire { order: found.order.0, ..Inquire::default() });
        if self.core.judge(&question).is_err() {
            return Ok(false);
        }
        self.take(now, &question)?;
        Ok(true)
    }

    /// Puts an order in doubt whose venue has just refused a cancel or a replace because it does not work the order, while
    /// the order is open here.
    #[inline]
    pub(crate) fn doubt_refused(&mut self, venue: VenueId, report: &ExecutionReport) -> Result<(), OmsError> {
        let is_refused = report.exec_type == ExecType::CancelRejected.code();
        if is_refused && matches!(report.reason, UNKNOWN_ORDER | TOO_LATE) {
            self.doubt_open(venue, report)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn doubt_open(&mut self, venue: VenueId, report: &ExecutionReport) -> Result<(), OmsError> {
        let Some(order) = self.core.order_said(venue, report.order_id.0) else { return Ok(()) };
        let is_open = order.leaves.0 > 0 && order.venue == venue;
        match order.status {
            OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::PendingCancel | OrdStatus::PendingReplace
                if is_open =>
            {
                self.doubt_order(venue, order.id.0)?;
                self.notices.add(Notice::RefusedOpen { venue, order: order.id, reason: report.reason });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Puts one order in doubt.
    pub(crate) fn doubt_order(&mut self, venue: VenueId, order: u64) -> Result<(), OmsError> {
        self.take(
            self.clock.ticks(),
            &Input::Doubt(Doubt { messages: order, venue, lost: LOST_ORDER, reserved: [0; 5] }),
        )
    }
}
