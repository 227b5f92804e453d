//! Numbers of what a session is sent: reports and denials count from zero, and the details of reports count by
//! themselves.

use tickpath_market::Kind;

/// Kind of a detail's message.
const DETAIL: u8 = Kind::ReportDetail.code();

/// Numbers that each session's next report and next detail have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextNumbers {
    /// Next report or denial, by session.
    pub reports: Vec<u64>,
    /// Next detail, by session.
    pub details: Vec<u64>,
}

/// Position of a client in what its session is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionPosition {
    /// Number of the next report or denial.
    pub report: u64,
    /// Number of the next detail; `u64::MAX` for no details.
    pub detail: u64,
}

impl NextNumbers {
    /// Returns the position behind all that a session was sent.
    pub fn of(&self, session: u16) -> SessionPosition {
        let next = |list: &[u64]| list.get(usize::from(session)).copied().unwrap_or(0);
        SessionPosition { report: next(&self.reports), detail: next(&self.details) }
    }

    /// Returns the number of a session's next message of this kind.
    #[inline]
    pub fn next_mut(&mut self, kind: u8, session: u16) -> &mut u64 {
        entry_mut(if kind == DETAIL { &mut self.details } else { &mut self.reports }, session)
    }

    /// Returns whether these numbers are as high as the others, for each session.
    pub fn cover(&self, others: &Self) -> bool {
        let covers = |own: &[u64], others: &[u64]| {
            others.iter().enumerate().all(|(session, &other)| own.get(session).copied().unwrap_or(0) >= other)
        };
        covers(&self.reports, &others.reports) && covers(&self.details, &others.details)
    }
}

impl SessionPosition {
    /// Returns the position of a client that is sent no details.
    pub fn without_details(report: u64) -> Self {
        Self { report, detail: u64::MAX }
    }

    /// Returns whether a message of this kind and number lies before this position.
    #[inline]
    pub fn is_behind(&self, kind: u8, number: u64) -> bool {
        number < if kind == DETAIL { self.detail } else { self.report }
    }

    /// Returns whether anything lies between this position and a later one.
    pub fn is_before(&self, other: &Self) -> bool {
        self.report < other.report || self.detail < other.detail
    }

    /// Returns the later of two positions, by report and by detail.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { report: self.report.max(other.report), detail: self.detail.max(other.detail) }
    }
}

/// Returns the entry of a session or a venue in a list with one entry each, and grows the list with zeros up to the
/// entry.
#[inline]
pub fn entry_mut(list: &mut Vec<u64>, index: u16) -> &mut u64 {
    let index = usize::from(index);
    if index >= list.len() {
        list.resize(index + 1, 0);
    }
    &mut list[index]
}
