//! Questions that admins have venues asked, and the answers, which are kept until the admin fetches them.
//!
//! A question is an admin command in the journal; the venue gives its id back in the answer. Nothing here is journaled: what
//! follows from an answer is an input like every report, and a restart forgets who has asked.

mod asked;

use std::collections::VecDeque;

use tickpath_market::{ExecType, ExecutionReport};

/// Questions that are kept, answered or not; of more the oldest is forgotten.
const MOST: usize = 8;

/// Questions, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    list: VecDeque<Question>,
    /// Whether any of them waits.
    is_waiting: bool,
}

/// A question.
#[derive(Debug)]
struct Question {
    /// The record of the command.
    record: u64,
    /// The id that the venue gives back.
    id: u64,
    answer: Option<Answer>,
}

/// A venue's answer to a question of an admin.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The last report of the answer, as the venue sent it.
    pub last: ExecutionReport,
}

impl Questions {
    /// Keeps a question that has been asked.
    pub fn ask(&mut self, record: u64, id: u64) {
        if self.list.len() == MOST {
            self.list.pop_front();
        }
        self.list.push_back(Question { record, id, answer: None });
        self.is_waiting = true;
    }

    /// Whether a question waits for its answer.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Takes a report that was applied: it may be the answer to a question.
    pub fn hear(&mut self, report: &ExecutionReport) {
        if report.exec_type != ExecType::OrderStatus.code() {
            return;
        }
        let is_meant = |question: &&mut Question| question.id == report.client_order_id.0 && question.answer.is_none();
        if let Some(question) = self.list.iter_mut().find(is_meant) {
            question.answer = Some(Answer { last: *report });
        }
        self.is_waiting = self.list.iter().any(|question| question.answer.is_none());
    }

    /// The answer to the question of this record, if it has come.
    pub fn answer(&self, record: u64) -> Option<&Answer> {
        self.list.iter().find(|question| question.record == record)?.answer.as_ref()
    }
}

impl Answer {
    /// The rows that an admin receives, each with a session.
    pub fn rows(&self) -> Vec<(u16, ExecutionReport)> {
        vec![(0, self.last)]
    }
}
