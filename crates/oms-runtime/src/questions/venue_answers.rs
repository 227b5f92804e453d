//! The sequencer's handling of admins' questions.

use tickpath_clock::Clock;
use tickpath_market::{OrdStatus, OrderId, VenueId};
use tickpath_oms_core::{Input, OrderView, ReportRecord};

use super::VenueAnswer;
use crate::OmsError;
use crate::notice::Notice;
use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Accepts a venue's report, which may belong to the answer to an admin's question.
    #[inline]
    pub(crate) fn apply_report(&mut self, received: u64, input: &Input) -> Result<(), OmsError> {
        if self.core.has_max_unknown_reports() && !self.is_worth_recording(input) {
            return Ok(());
        }
        match self.questions.is_waiting() {
            true => self.apply_answer(received, input),
            false => self.apply_and_release(received, input),
        }
    }

    /// Returns whether a report is of a known order. The venue has reported more unknown orders today than are kept,
    /// and each further report would only fill the disk.
    #[cold]
    fn is_worth_recording(&mut self, input: &Input) -> bool {
        let Input::Report(record) = input else { return true };
        let is_known = self.core.is_for_known_order(record);
        if !is_known && !std::mem::replace(&mut self.notified_unknown_orders, true) {
            self.notices.add(Notice::UnknownOrders { venue: record.source });
        }
        is_known
    }

    #[cold]
    fn apply_answer(&mut self, received: u64, input: &Input) -> Result<(), OmsError> {
        let Input::Report(ReportRecord { report, source: venue, .. }) = input else {
            return self.apply_and_release(received, input);
        };
        let venue = *venue;
        if self.questions.question_of(report).is_none() {
            return self.apply_and_release(received, input);
        }
        let before = self.core.order_by_venue_id(venue, report.order_id.0);
        self.apply_and_release(received, input)?;
        let after = self.core.order_by_venue_id(venue, report.order_id.0);
        let core = &self.core;
        let Some(question) = self.questions.question_of(report) else { return Ok(()) };
        if question.add_report(report, before, after) {
            let is_of_venue = |order: &OrderView| order.venue == venue;
            // Only an answer about all orders is held against all that are open.
            let is_about_all = question.is_about_all();
            let live = core.open_orders().filter(|_| is_about_all);
            let open = live.filter(is_of_venue).filter(|order| order.status != OrdStatus::Armed).collect();
            question.complete(report, open, core.all_orders().filter(is_of_venue));
            self.questions.update_waiting();
        }
        Ok(())
    }

    /// Keeps the question that an admin command has sent to a venue.
    pub(crate) fn note_question(&mut self, word: &Input, record: u64) {
        let all_of = match word {
            Input::QueryStatus(_) => None,
            Input::Reconcile(reconcile) => Some(reconcile.venue),
            _ => return,
        };
        self.questions.add(record, OrderId::new(self.core.epoch(), record).0, all_of);
    }

    /// Returns whether the OMS has lanes or lines to a venue.
    pub(crate) fn has_venue(&self, venue: VenueId) -> bool {
        self.venues.get(usize::from(venue.0)).is_some_and(Option::is_some)
    }

    /// Returns the venue's answer to the question of the admin command with this record, once the answer is complete.
    pub fn answer(&self, record: u64) -> Option<&VenueAnswer> {
        self.questions.answer(record)
    }
}
