//! The sequencer's handling of venue reports, which may belong to the answer to an admin's question.

use tickpath_clock::Clock;
use tickpath_market::OrderId;
use tickpath_oms_core::{Input, ReportRecord};

use super::Sequencer;
use crate::OmsError;
use crate::notice::Notice;
use crate::questions::VenueAnswer;

impl<C: Clock> Sequencer<C> {
    /// Applies a venue's report, unless its order is unknown and reports of unknown orders have reached their limit.
    #[inline]
    pub(crate) fn apply_report(&mut self, received: u64, input: &Input) -> Result<(), OmsError> {
        if self.core.has_max_unknown_reports() && !self.is_worth_recording(input) {
            return Ok(());
        }
        match self.questions.is_waiting {
            true => self.apply_answer(received, input),
            false => self.apply_and_release(received, input),
        }
    }

    /// Returns whether a report is of a known order. Reports of unknown orders have reached their limit, and each
    /// further report would only fill the disk.
    #[cold]
    fn is_worth_recording(&mut self, input: &Input) -> bool {
        let Input::Report(record) = input else { return true };
        let is_known = self.core.is_for_known_order(record);
        if !is_known && self.day.note_unknown_order() {
            self.notices.add(Notice::UnknownOrders { venue: record.source });
        }
        is_known
    }

    /// Applies a report while a question waits, and adds the report to the answer if it belongs to one.
    #[cold]
    fn apply_answer(&mut self, received: u64, input: &Input) -> Result<(), OmsError> {
        let Input::Report(ReportRecord { report, source, .. }) = input else {
            return self.apply_and_release(received, input);
        };
        if !self.questions.has_question_of(report) {
            return self.apply_and_release(received, input);
        }
        let (venue, order) = (*source, report.order_id.0);
        let before = self.core.order_by_venue_id(venue, order);
        self.apply_and_release(received, input)?;
        let after = self.core.order_by_venue_id(venue, order);
        self.questions.add_report(&self.core, venue, report, before, after);
        Ok(())
    }

    /// Keeps the question that an admin command has sent to a venue.
    pub(crate) fn note_question(&mut self, command: &Input, record: u64) {
        let all_of = match command {
            Input::QueryStatus(_) => None,
            Input::Reconcile(reconcile) => Some(reconcile.venue),
            _ => return,
        };
        self.questions.add(record, OrderId::new(self.core.epoch(), record).0, all_of);
    }

    /// Returns the venue's answer to the question of the admin command with this record, once the answer is complete.
    pub fn answer(&self, record: u64) -> Option<&VenueAnswer> {
        self.questions.answer(record)
    }
}
