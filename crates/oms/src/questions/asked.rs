//! What the sequencer does with the questions of admins.

use tickpath_clock::Clock;
use tickpath_market::{OrdStatus, OrderId, VenueId};
use tickpath_orders::{Input, OrderView, ReportRecord};

use super::Answer;
use crate::OmsError;
use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Takes a venue's report, which may belong to the answer to a question of an admin.
    #[inline]
    pub(crate) fn take_report(&mut self, received: u64, record: ReportRecord) -> Result<(), OmsError> {
        match self.questions.is_waiting() {
            true => self.take_answer(received, record),
            false => self.take(received, &Input::Report(record)),
        }
    }

    #[cold]
    fn take_answer(&mut self, received: u64, record: ReportRecord) -> Result<(), OmsError> {
        let report = &record.report;
        if self.questions.of(report).is_none() {
            return self.take(received, &Input::Report(record));
        }
        let venue = record.source;
        let before = self.core.order_said(venue, report.order_id.0);
        self.take(received, &Input::Report(record))?;
        let after = self.core.order_said(venue, report.order_id.0);
        let core = &self.core;
        let Some(question) = self.questions.of(report) else { return Ok(()) };
        if question.hear(report, before, after) {
            let is_of_venue = |order: &OrderView| order.venue == venue;
            // Only an answer about all orders is held against all that are open.
            let is_about_all = question.is_about_all();
            let live = core.live().filter(|_| is_about_all);
            let open = live.filter(is_of_venue).filter(|order| order.status != OrdStatus::Armed).collect();
            question.end(report, open, core.kept_orders().filter(is_of_venue));
            self.questions.look();
        }
        Ok(())
    }

    /// Keeps the question that an admin command has asked a venue.
    pub(crate) fn note_question(&mut self, word: &Input, record: u64) {
        let all_of = match word {
            Input::Inquire(_) => None,
            Input::Reconcile(reconcile) => Some(reconcile.venue),
            _ => return,
        };
        self.questions.ask(record, OrderId::new(self.core.epoch(), record).0, all_of);
    }

    /// Whether the OMS has lanes or lines to a venue.
    pub(crate) fn has_venue(&self, venue: VenueId) -> bool {
        self.venues.get(usize::from(venue.0)).is_some_and(Option::is_some)
    }

    /// The venue's answer to the question that the admin command with this record has asked, once it has come.
    pub fn answer(&self, record: u64) -> Option<&Answer> {
        self.questions.answer(record)
    }
}
