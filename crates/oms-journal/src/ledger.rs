//! Ledger: the journal's state of the OMS's lanes: the lanes made, and the numbers received and sent on each.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::VenueId;
use tickpath_oms_core::{DetailRecord, Input, LaneRecord, NameRecord, Output, ReportRecord};

use crate::definitions::Definitions;
use crate::lane::{LaneKind, LineId, NUMBER_BITS};
use crate::numbers::{NextNumbers, entry_mut};

/// Code of a line's lane in a lane record.
const LINE: u8 = 6;
/// Code of a line's position in a snapshot; no lane has this code.
const LINE_POSITION: u8 = 7;
/// Code of a session's number of details in a snapshot; no lane has this code.
const DETAILS: u8 = 8;
/// Code of a line's report whose detail is missing, in a snapshot; no lane has this code.
const AWAITED_DETAIL: u8 = 9;
/// The bits of a request's number in a record.
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

/// A lane as recorded in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedLane {
    /// Epoch of the start that made the lane.
    pub incarnation: u64,
    /// The number of its first message.
    pub base: u64,
}

/// State of the lanes, read from the journal alone: the same journal gives the same ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneLedger {
    journal: u64,
    made: BTreeMap<(u8, u16), RecordedLane>,
    /// Number of the next message of each lane: to be received, or to be sent.
    requests: Vec<u64>,
    sent: NextNumbers,
    venue_requests: Vec<u64>,
    venue_reports: Vec<u64>,
    control: u64,
    /// By line: the number of the next report, and of the first request that was not returned.
    line_reports: BTreeMap<u16, u64>,
    first_unreturned: BTreeMap<u16, u64>,
    /// By line: the order and the fill of the last report, if a client was sent the report and not yet its detail.
    awaited_details: BTreeMap<u16, (u64, u64)>,
    /// A day has ended since the log began.
    day_has_ended: bool,
    /// The last day that ended by name, as 20261122; zero before the first.
    last_day: u32,
    definitions: Definitions,
}

impl LaneLedger {
    /// Encodes the ledger for a snapshot: words, then the definitions as records.
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |word: u64| bytes.extend_from_slice(&word.to_le_bytes());
        put(self.journal);
        put(self.control);
        // In one word, so that snapshots of earlier versions, which hold 0 or 1, can be read.
        put(u64::from(self.day_has_ended) | u64::from(self.last_day) << 1);
        for list in [&self.requests, &self.sent.reports, &self.venue_requests, &self.venue_reports] {
            put(list.len() as u64);
            list.iter().for_each(|&next| put(next));
        }
        // The positions of lines are stored like further lanes, so that the bytes are unchanged for an OMS without
        // lines.
        let lines: BTreeSet<u16> = self.line_reports.keys().chain(self.first_unreturned.keys()).copied().collect();
        let details = || (0..).zip(&self.sent.details).filter(|&(_, &count)| count > 0);
        put((self.made.len() + lines.len() + details().count() + self.awaited_details.len()) as u64);
        for (&(carries, index), made) in &self.made {
            [carries.into(), index.into(), made.incarnation, made.base].into_iter().for_each(&mut put);
        }
        for line in lines {
            let [next_report, first_unreturned] =
                [&self.line_reports, &self.first_unreturned].map(|list| list.get(&line).copied().unwrap_or(0));
            [LINE_POSITION.into(), line.into(), next_report, first_unreturned].into_iter().for_each(&mut put);
        }
        for (session, &count) in details() {
            [DETAILS.into(), session, count, 0].into_iter().for_each(&mut put);
        }
        for (&line, &(order, exec)) in &self.awaited_details {
            [AWAITED_DETAIL.into(), line.into(), order, exec].into_iter().for_each(&mut put);
        }
        put(self.definitions.len() as u64);
        self.definitions.save(&mut bytes);
        bytes
    }

    /// Decodes the bytes of [`Self::save`]; none if they are invalid.
    pub(crate) fn load(mut bytes: &[u8]) -> Option<Self> {
        let mut word = || {
            let (word, rest) = bytes.split_first_chunk()?;
            bytes = rest;
            Some(u64::from_le_bytes(*word))
        };
        let (journal, control, day) = (word()?, word()?, word()?);
        let (day_has_ended, last_day) = (day & 1 != 0, u32::try_from(day >> 1).ok()?);
        let mut ledger = Self { journal, control, day_has_ended, last_day, ..Self::default() };
        let Self { requests, sent, venue_requests, venue_reports, .. } = &mut ledger;
        for list in [requests, &mut sent.reports, venue_requests, venue_reports] {
            *list = (0..word()?).map(|_| word()).collect::<Option<_>>()?;
        }
        for _ in 0..word()? {
            let key = (u8::try_from(word()?).ok()?, u16::try_from(word()?).ok()?);
            match (key, word()?, word()?) {
                ((LINE_POSITION, line), next_report, first_unreturned) => {
                    ledger.line_reports.insert(line, next_report);
                    ledger.first_unreturned.insert(line, first_unreturned);
                }
                ((DETAILS, session), count, _) => *entry_mut(&mut ledger.sent.details, session) = count,
                ((AWAITED_DETAIL, line), order, exec) => drop(ledger.awaited_details.insert(line, (order, exec))),
                (key, incarnation, base) => drop(ledger.made.insert(key, RecordedLane { incarnation, base })),
            }
        }
        let count = word()?;
        ledger.definitions = Definitions::load(bytes, count)?;
        Some(ledger)
    }

    /// Records an input and the core's outputs to it.
    #[inline]
    pub(crate) fn note(&mut self, input: &Input, outputs: &[Output]) {
        match input {
            Input::Request { envelope, .. } => {
                advance_past(&mut self.requests, envelope.session, envelope.lane_sequence)
            }
            Input::Report(record) => {
                self.note_venue_report(record.source, record.line, record.lane_sequence);
                self.note_awaited_detail(record, outputs);
            }
            Input::ReportDetail(record) => self.note_detail(record),
            other => self.note_other(other),
        }
        for output in outputs {
            match output {
                Output::Venue { venue, .. } => *entry_mut(&mut self.venue_requests, venue.0) += 1,
                Output::Report { session, .. } | Output::Denied { session, .. } | Output::Extension { session, .. } => {
                    *entry_mut(&mut self.sent.reports, *session) += 1;
                }
            }
        }
    }

    #[inline]
    fn note_venue_report(&mut self, source: VenueId, line: u16, lane_sequence: u32) {
        match LineId::recorded(source, line) {
            None => advance_past(&mut self.venue_reports, source.0, lane_sequence),
            Some(line) => {
                let next = self.line_reports.entry(line.index()).or_default();
                *next = widen(*next, lane_sequence) + 1;
            }
        }
    }

    /// Records the report of a line, whose detail may follow.
    #[inline]
    fn note_awaited_detail(&mut self, record: &ReportRecord, outputs: &[Output]) {
        let Some(line) = LineId::recorded(record.source, record.line) else { return };
        if outputs.iter().any(|output| matches!(output, Output::Report { .. })) {
            let ids = (record.report.order_id.0, record.report.exec_id.0);
            self.awaited_details.insert(line.index(), ids);
        }
    }

    fn note_detail(&mut self, record: &DetailRecord) {
        self.note_venue_report(record.source, record.line, record.lane_sequence);
        if let Some(session) = record.session.checked_sub(1) {
            // Only an awaited detail is sent.
            if let Some(line) = LineId::recorded(record.source, record.line) {
                self.awaited_details.remove(&line.index());
            }
            *entry_mut(&mut self.sent.details, session) += 1;
        }
    }

    #[cold]
    fn note_other(&mut self, input: &Input) {
        let lane_sequence = operators_number(input);
        if lane_sequence > 0 {
            self.control = widen(self.control, lane_sequence - 1) + 1;
        }
        match input {
            // The request lay in a lane, so its number is used.
            Input::UnsentRequest(returned) if returned.place != 0 => {
                let (line, low) = ((returned.place >> NUMBER_BITS) as u16, returned.place & NUMBER_MASK);
                if let Some(line) = LineId::recorded(returned.venue, line) {
                    let next = self.first_unreturned.entry(line.index()).or_default();
                    *next += u64::from(low.wrapping_sub(*next as u32) & NUMBER_MASK) + 1;
                }
            }
            // The request was issued, and never left.
            Input::UnsentRequest(returned) => {
                let next = entry_mut(&mut self.venue_requests, returned.venue.0);
                *next = next.saturating_sub(1);
            }
            Input::DayEnd(end) => {
                self.day_has_ended = true;
                self.last_day = if end.day > 0 { end.day } else { self.last_day };
            }
            other => self.definitions.note(other),
        }
    }

    /// Records that a log of the journal with this id begins.
    pub(crate) fn begin_log(&mut self, journal: u64) {
        (self.journal, self.day_has_ended) = (journal, false);
    }

    /// Records that a lane was made: its next message has the lane's base.
    pub(crate) fn note_lane(&mut self, lane: &LaneRecord) {
        self.made.insert((lane.carries, lane.index), RecordedLane { incarnation: lane.incarnation, base: lane.base });
        if lane.carries == LINE {
            self.first_unreturned.insert(lane.index, lane.base);
        }
    }

    pub(crate) fn note_name(&mut self, name: &NameRecord) {
        self.definitions.note_name(*name);
    }

    /// Returns the journal's id; zero before its first record.
    pub fn journal(&self) -> u64 {
        self.journal
    }

    /// Returns whether a day has ended since the log began.
    pub(crate) fn day_has_ended(&self) -> bool {
        self.day_has_ended
    }

    /// Returns the last day that ended by name, as 20261122; zero before the first.
    pub fn last_day(&self) -> u32 {
        self.last_day
    }

    /// Returns the current definitions and the meaning of numbers.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Returns the last lane of this kind that was made.
    pub fn recorded_lane(&self, lane: LaneKind) -> Option<RecordedLane> {
        self.made.get(&lane.code()).copied()
    }

    /// Returns all lines of this venue ever made, each by its [`LineId::index`].
    pub fn recorded_lines(&self, venue: VenueId) -> impl Iterator<Item = (u16, RecordedLane)> {
        let lines = self.made.iter().filter(move |((carries, index), _)| *carries == LINE && index & 0x0fff == venue.0);
        lines.map(|(&(_, index), made)| (index, *made))
    }

    /// Returns the number of the first request in a line's lane that was not returned.
    pub fn first_unreturned(&self, line: LineId) -> u64 {
        self.first_unreturned.get(&line.index()).copied().unwrap_or(0)
    }

    /// Returns the number of the next report of a line.
    pub fn next_report(&self, line: LineId) -> u64 {
        self.line_reports.get(&line.index()).copied().unwrap_or(0)
    }

    /// Returns the number of a lane's next message: to be sent on an outbound lane, else to be received. The lines of a
    /// venue share one number for its requests.
    pub fn next(&self, lane: LaneKind) -> u64 {
        let (list, index) = match lane {
            LaneKind::Requests(session) => (&self.requests, session),
            LaneKind::Reports(session) => (&self.sent.reports, session),
            LaneKind::VenueRequests(VenueId(venue)) => (&self.venue_requests, venue),
            LaneKind::VenueReports(VenueId(venue)) => (&self.venue_reports, venue),
            LaneKind::Line(line) => (&self.venue_requests, line.venue.0),
            LaneKind::Control => return self.control,
        };
        list.get(usize::from(index)).copied().unwrap_or(0)
    }

    /// Returns the numbers of reports and of details sent to each session.
    pub fn sent(&self) -> &NextNumbers {
        &self.sent
    }

    /// Returns the order and the fill of a line's last report, if a client was sent the report and not yet its detail.
    pub fn awaited_detail(&self, line: LineId) -> Option<(u64, u64)> {
        self.awaited_details.get(&line.index()).copied()
    }

    /// Returns whether a session ever sent a request or was sent a report.
    pub fn has_messages(&self, session: u16) -> bool {
        let index = usize::from(session);
        [&self.sent.reports, &self.requests].into_iter().any(|list| list.get(index).is_some_and(|&next| next > 0))
    }

    /// Returns the number of the next request of each session.
    pub fn next_requests(&self) -> &[u64] {
        &self.requests
    }
}

/// Returns the operator lane's number in an input: one above the low half, zero for an input from elsewhere.
fn operators_number(input: &Input) -> u32 {
    match input {
        Input::Kill(kill) => kill.lane_sequence,
        Input::Resolve(resolve) => resolve.lane_sequence,
        Input::QueryStatus(query) => query.lane_sequence,
        Input::DayEnd(day) => day.lane_sequence,
        Input::CancelScope(cancel) => cancel.lane_sequence,
        Input::EnterOrder(enter) => enter.lane_sequence,
        Input::EnterFill(enter) => enter.lane_sequence,
        Input::EnterPosition(enter) => enter.lane_sequence,
        Input::Reconcile(reconcile) => reconcile.lane_sequence,
        _ => 0,
    }
}

/// Moves the cursor of a lane past the message with this low half of its number.
#[inline]
fn advance_past(list: &mut Vec<u64>, index: u16, low: u32) {
    let next = entry_mut(list, index);
    *next = widen(*next, low) + 1;
}

/// Returns the first number from `next` on with this low half.
#[inline]
fn widen(next: u64, low: u32) -> u64 {
    next + u64::from(low.wrapping_sub(next as u32))
}
