//! What the sequencer does with the questions of admins.

use tickpath_clock::Clock;
use tickpath_market::OrderId;
use tickpath_orders::{Input, ReportRecord};

use super::Answer;
use crate::OmsError;
use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Takes a venue's report, which may answer a question of an admin.
    #[inline]
    pub(crate) fn take_report(&mut self, received: u64, record: ReportRecord) -> Result<(), OmsError> {
        match self.questions.is_waiting() {
            true => self.take_answer(received, record),
            false => self.take(received, &Input::Report(record)),
        }
    }

    #[cold]
    fn take_answer(&mut self, received: u64, record: ReportRecord) -> Result<(), OmsError> {
        self.take(received, &Input::Report(record))?;
        self.questions.hear(&record.report);
        Ok(())
    }

    /// Keeps the question that an admin command has asked a venue.
    pub(crate) fn note_question(&mut self, word: &Input, record: u64) {
        if let Input::Inquire(_) = word {
            self.questions.ask(record, OrderId::new(self.core.epoch(), record).0);
        }
    }

    /// The venue's answer to the question that the admin command with this record has asked, once it has come.
    pub fn answer(&self, record: u64) -> Option<&Answer> {
        self.questions.answer(record)
    }
}
