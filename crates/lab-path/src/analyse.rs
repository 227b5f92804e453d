//! The tables of an order journal, from the journal alone.
//!
//! A request's record holds T0 and the stamp of its causing tick; its own stamp is T1; the next request's record holds
//! its T2. T2 is the release of a request that left at once; for a denied or kept request it is the time of that
//! decision, and belongs to other hops; a request that was handed to the thread of a line left later than its T2. A
//! venue's report holds the order's arrival time at the venue; its stamp is its arrival at the OMS. The high half of a
//! client order id is the order's group.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use tickpath_clock::{Calibration, SchedulingGap};
use tickpath_log::{LogPath, Next, Reader, ReaderStart, Registration};
use tickpath_market::{OrderId, Request};
use tickpath_oms_core::{At, Config, Core, Departure, Input, JournalStop, Output, Outputs, RecordKind};
use tickpath_oms_runtime::JournalError;
use tickpath_oms_runtime::journal::logs;
use zerocopy::FromBytes;

use crate::orders::group::group_name;
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::attribution::drop_attribution;
use tickpath_lab_harness::samples::Samples;
use tickpath_lab_result::{MessageCounts, Run};

/// Stamps of a request, in ticks; zero where absent.
#[derive(Debug, Clone, Copy, Default)]
struct RequestStamps {
    /// The number in its group: the low half of its client order id.
    number: u32,
    /// The OMS's id of the request, which its venue receives.
    id: u64,
    cause: u64,
    sent: u64,
    received: u64,
    /// The time at which the thread of its venue's line got it, if another thread sends it.
    handed: u64,
    released: u64,
    arrived: u64,
    reported: u64,
    decision: RequestDecision,
    /// Whether it had to wait for its venue.
    queued: bool,
    /// Whether the venue or the risk checks rejected it.
    rejected: bool,
    answered: bool,
}

/// Arrival and departure times of a request, in ticks; zero where unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepartureStamps {
    /// T1.
    pub received: u64,
    /// The time at which the thread of its venue's line got it, if another thread sends it.
    pub handed: u64,
    /// T2.
    pub released: u64,
}

/// The event at the request's T2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum RequestDecision {
    /// Sent to its venue: T2 is its release.
    #[default]
    Released,
    /// Refused by the OMS.
    Denied,
    /// Kept in the OMS for its venue or its trigger, or answered by the OMS alone.
    Kept,
}

/// Requests of a group, in the order of the journal.
#[derive(Debug, Default)]
pub struct RequestGroup {
    stamps: Vec<RequestStamps>,
    /// Bytes of its requests and of the reports that answer them.
    pub bytes: u64,
}

/// Contents of a journal.
#[derive(Debug)]
pub struct JournalContents {
    /// Requests by group.
    pub groups: BTreeMap<u32, RequestGroup>,
    /// The clock of the stamps.
    pub calibration: Calibration,
    /// Bytes of all frames.
    pub bytes: u64,
    /// The number of new orders.
    pub orders: u64,
    /// The number of requests and reports.
    pub inputs: u64,
}

/// Reads a journal, including days that have ended.
pub fn read(dir: &Path) -> Result<JournalContents, LabError> {
    let path = LogPath::folder(dir);
    let logs = logs(&path).map_err(LabError::other)?;
    let open = |path| Reader::open(path, ReaderStart::Oldest, Registration::Unregistered);
    let mut log = open(logs.first().unwrap_or(&path))?;
    let mut reading = JournalAnalysis::new(log.calibration());
    reading.log(&mut log)?;
    for path in logs.iter().skip(1) {
        reading.log(&mut open(path)?)?;
    }
    Ok(reading.journal)
}

struct JournalAnalysis {
    journal: JournalContents,
    /// Index of each request's stamps, by the OMS's id of the request.
    positions: HashMap<u64, (u32, usize)>,
    last: Option<(u32, usize)>,
    /// Replays the inputs for their denials: denials are outputs, which no journal holds.
    core: Core,
    outputs: Outputs,
}

impl JournalAnalysis {
    fn new(calibration: Calibration) -> Self {
        let journal = JournalContents { groups: BTreeMap::new(), calibration, bytes: 0, orders: 0, inputs: 0 };
        let core = Core::new(Config { expected_orders: 0, key: 0 });
        Self { journal, positions: HashMap::new(), last: None, core, outputs: Outputs::new() }
    }

    /// Reads a log from its first record on.
    fn log(&mut self, log: &mut Reader) -> Result<(), LabError> {
        let (start, first) = (log.position(), log.sequence());
        let mut before = start;
        loop {
            match log.next().map_err(JournalError::from).map_err(LabError::other)? {
                Next::Message(record) => {
                    let sequence = record.sequence;
                    let wrong = |reason| JournalError::Record { sequence, reason };
                    match Input::read(record.kind, record.payload).map_err(wrong).map_err(LabError::other)? {
                        Some(input) => {
                            let group = self.input(sequence, record.stamp, &input);
                            let now = log.position();
                            if let Some(group) = group.and_then(|number| self.journal.groups.get_mut(&number)) {
                                group.bytes += now - before;
                            }
                        }
                        None if sequence == first && record.kind != RecordKind::JournalStart.code() => {
                            return Err(LabError::other(JournalError::NoJournal));
                        }
                        None => self.note(record.kind, record.payload),
                    }
                    before = log.position();
                }
                Next::Gap(_) => {}
                Next::Empty => break,
            }
        }
        log.check_end().map_err(JournalError::from).map_err(LabError::other)?;
        self.journal.bytes += log.position() - start;
        Ok(())
    }

    /// Reads an input; returns its group.
    fn input(&mut self, sequence: u64, stamp: u64, input: &Input) -> Option<u32> {
        self.core.apply(At { sequence, stamp }, input, &mut self.outputs);
        match input {
            Input::Request { envelope, request } => {
                self.record_departure(envelope.departure_before());
                self.journal.inputs += 1;
                self.journal.orders += u64::from(matches!(request, Request::New(_)));
                let id = request.client_order_id().0;
                let (group, number) = ((id >> 32) as u32, id as u32);
                let stamps = &mut self.journal.groups.entry(group).or_default().stamps;
                let became = decision_of(&self.outputs);
                let denied = became == RequestDecision::Denied;
                let order_id = OrderId::new(self.core.epoch(), sequence).0;
                stamps.push(RequestStamps {
                    number,
                    id: order_id,
                    decision: became,
                    queued: became == RequestDecision::Kept && matches!(request, Request::New(_)),
                    rejected: denied,
                    answered: denied,
                    cause: request.cause(),
                    sent: envelope.sent,
                    received: stamp,
                    ..RequestStamps::default()
                });
                let position = (group, stamps.len() - 1);
                self.positions.insert(order_id, position);
                self.last = Some(position);
                Some(group)
            }
            Input::Report(record) => {
                let report = &record.report;
                self.journal.inputs += 1;
                // The first report that answers a request holds its arrival time at the venue.
                let position = self.positions.remove(&report.client_order_id.0)?;
                let stamps = self.stamps_at(position)?;
                stamps.arrived = report.venue_stamp;
                stamps.reported = stamp;
                stamps.rejected = report.reason != 0;
                stamps.answered = true;
                Some(position.0)
            }
            _ => None,
        }
    }

    fn note(&mut self, kind: u8, payload: &[u8]) {
        if kind == RecordKind::JournalStop.code()
            && let Ok(stop) = JournalStop::read_from_bytes(payload)
        {
            self.record_departure(stop.departure_before());
        }
    }

    fn record_departure(&mut self, left: Departure) {
        if let Some(stamps) = self.last.take().and_then(|position| self.stamps_at(position)) {
            match left.handed_over && !left.queued {
                true => stamps.handed = left.at,
                false => stamps.released = left.at,
            }
            stamps.queued |= left.queued;
            if left.queued && stamps.decision == RequestDecision::Released {
                stamps.decision = RequestDecision::Kept;
            }
        }
    }

    fn stamps_at(&mut self, (group, index): (u32, usize)) -> Option<&mut RequestStamps> {
        self.journal.groups.get_mut(&group)?.stamps.get_mut(index)
    }
}

fn decision_of(outputs: &Outputs) -> RequestDecision {
    let any = |of: fn(&Output) -> bool| outputs.iter().any(of);
    match () {
        () if any(|output| matches!(output, Output::Denied { .. })) => RequestDecision::Denied,
        () if any(|output| matches!(output, Output::Venue { .. })) => RequestDecision::Released,
        () => RequestDecision::Kept,
    }
}

impl RequestGroup {
    /// Returns the number of requests.
    pub fn len(&self) -> usize {
        self.stamps.len()
    }

    /// Returns whether there are no requests.
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// Returns the first T0.
    pub fn first_sent(&self) -> u64 {
        self.stamps.first().map_or(0, |s| s.sent)
    }

    /// Returns each request's number and T0.
    pub(crate) fn sent(&self) -> impl Iterator<Item = (u32, u64)> {
        self.stamps.iter().map(|s| (s.number, s.sent))
    }

    /// Returns the last T2, as the start of the hop behind it; zero if none is known.
    pub fn last_released(&self) -> u64 {
        self.stamps.iter().map(|s| s.released).max().unwrap_or(0)
    }

    /// Returns the time at which the core finished the last request.
    pub fn last_done(&self) -> u64 {
        self.stamps.iter().map(|s| s.released.max(s.handed)).max().unwrap_or(0)
    }

    pub(crate) fn into_departures(self) -> impl Iterator<Item = DepartureStamps> {
        let departed =
            |s: RequestStamps| DepartureStamps { received: s.received, handed: s.handed, released: s.released };
        self.stamps.into_iter().map(departed)
    }

    /// Sets T2 of handed-over requests to the return times of their sends, by the OMS's ids. The core stamps a
    /// hand-over after it, when the other thread may have sent already.
    pub(crate) fn apply_sends(&mut self, sends: &HashMap<u64, u64>) {
        for stamps in self.stamps.iter_mut().filter(|s| s.handed != 0) {
            let Some(&returned) = sends.get(&stamps.id) else { continue };
            stamps.released = returned;
            stamps.handed = stamps.handed.min(returned);
        }
    }

    fn with_decision(&self, became: RequestDecision) -> impl Iterator<Item = &RequestStamps> {
        self.stamps.iter().filter(move |s| s.decision == became)
    }

    /// Returns the hops from the release to the venue, and from the venue to the OMS.
    pub(crate) fn venue_stages(&self) -> [Samples; 2] {
        let left = self.with_decision(RequestDecision::Released);
        [pairs(left, |s| s.released, |s| s.arrived), pairs(self.stamps.iter(), |s| s.arrived, |s| s.reported)]
    }

    /// Returns a run with the group's hops, figures and counts.
    pub fn run(&self, calibration: &Calibration, gaps: &[SchedulingGap]) -> Run {
        let mut run = Run { client: "rust".to_owned(), repeat: 1, valid: true, ..Run::default() };
        let hop = |pairs: Samples| pairs.hop(calibration, gaps);
        let all = || self.stamps.iter();
        let [left, denied, kept] = [RequestDecision::Released, RequestDecision::Denied, RequestDecision::Kept];
        let hops = [
            ("t0_t1", pairs(all(), |s| s.sent, |s| s.received)),
            ("t1_handed", pairs(self.with_decision(left), |s| s.received, |s| s.handed)),
            ("t0_handed", pairs(self.with_decision(left), |s| s.sent, |s| s.handed)),
            ("handed_t2", pairs(self.with_decision(left), |s| s.handed, |s| s.released)),
            ("t1_t2", pairs(self.with_decision(left), |s| s.received, |s| s.released)),
            ("t0_t2", pairs(self.with_decision(left), |s| s.sent, |s| s.released)),
            ("tick_to_order", pairs(self.with_decision(left), |s| s.cause, |s| s.released)),
            ("tick_to_venue", pairs(all(), |s| s.cause, |s| s.arrived)),
            ("t0_t2_denied", pairs(self.with_decision(denied), |s| s.sent, |s| s.released)),
            ("t0_t2_kept", pairs(self.with_decision(kept), |s| s.sent, |s| s.released)),
            ("t0_gap", neighbours(all(), |s| s.sent)),
            ("t1_gap", neighbours(all(), |s| s.received)),
            ("t2_gap", neighbours(self.with_decision(left), |s| s.released)),
        ];
        run.hops = hops.into_iter().filter(|(_, p)| !p.0.is_empty()).map(|(n, p)| (n.to_owned(), hop(p))).collect();
        self.figures(&mut run, calibration);
        run
    }

    /// Notes unanswered requests, which are in no hop that ends at a venue; a released request without an answer makes
    /// the run invalid.
    fn note_unanswered(&self, run: &mut Run) {
        let open = |became| self.with_decision(became).filter(|s| !s.answered).count();
        let (left, kept) = (open(RequestDecision::Released), open(RequestDecision::Kept));
        if left > 0 {
            run.refuse(format!("{left} requests had no answer of the venue: they are in no hop that ends there"));
        }
        if kept > 0 {
            run.notes.push(format!(
                "{kept} requests wait in the OMS, or it answered them alone: they are in no hop that ends at a venue"
            ));
        }
    }

    fn figures(&self, run: &mut Run, calibration: &Calibration) {
        let (Some(first), Some(last)) = (self.stamps.first(), self.stamps.last()) else { return };
        let since = |to: u64| (to != 0).then(|| calibration.ns_between(first.sent, to) as f64);
        let count = |of: fn(&RequestStamps) -> bool| self.stamps.iter().filter(|s| of(s)).count() as f64;
        let (queued, rejected) = (count(|s| s.queued && !s.rejected), count(|s| s.rejected));
        let figures = [
            ("first_t0_to_last_t2_ns", since(self.last_released())),
            ("last_order_t0_ns", since(last.sent)),
            ("last_order_t1_ns", since(last.received)),
            ("last_order_t2_ns", since(last.released)),
            ("orders_sending", Some(self.len() as f64 - queued - rejected)),
            ("orders_queued", Some(queued)),
            ("orders_rejected", Some(rejected)),
            ("orders_denied", Some(count(|s| s.decision == RequestDecision::Denied))),
        ];
        run.figures.extend(figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        run.elapsed_ns = since(self.last_done()).map(|ns| ns.max(0.0) as u64);
        let sent = self.len() as u64;
        // A request without an answer is still in flight, or waits for the line.
        let left = count(|s| !s.answered) as u64;
        run.counts = MessageCounts { sent, received: sent, left, ..MessageCounts::default() };
    }
}

/// Returns both stamps of each request that has them.
fn pairs<'a>(
    stamps: impl Iterator<Item = &'a RequestStamps>,
    from: fn(&RequestStamps) -> u64,
    to: fn(&RequestStamps) -> u64,
) -> Samples {
    Samples(stamps.map(|s| (from(s), to(s))).filter(|&(from, to)| from != 0 && to != 0).collect())
}

/// Returns this stamp of each request that has it, paired with the next request's.
fn neighbours<'a>(stamps: impl Iterator<Item = &'a RequestStamps>, of: fn(&RequestStamps) -> u64) -> Samples {
    let known: Vec<u64> = stamps.map(of).filter(|stamp| *stamp != 0).collect();
    Samples(known.windows(2).map(|pair| (pair[0], pair[1])).collect())
}

/// Returns the runs of all groups of a journal, as `log analyse` shows them.
pub fn runs(dir: &Path) -> Result<Vec<Run>, LabError> {
    let journal = read(dir)?;
    if journal.groups.is_empty() {
        return Err(LabError::Failed(format!(
            "{} holds no order; it was written before the first one came",
            dir.display()
        )));
    }
    let per_order = journal.bytes as f64 / journal.orders.max(1) as f64;
    let mut runs = Vec::new();
    for (number, group) in &journal.groups {
        let mut run = group.run(&journal.calibration, &[]);
        // A journal does not record the host's share.
        drop_attribution(&mut run);
        group.note_unanswered(&mut run);
        run.target = format!("file://{}", dir.display());
        run.batch = Some(group_name(*number).into());
        run.params.set("orders", group.len() as u64);
        run.figures.insert("journal_bytes_per_order".to_owned(), per_order);
        runs.push(run);
    }
    Ok(runs)
}
