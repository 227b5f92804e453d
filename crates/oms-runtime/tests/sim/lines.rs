//! The venue's ends of its lines, and their faults.
//!
//! A line's requests and reports are numbered. On connect some venues report the requests that they have, some keep
//! their reports until the OMS has journaled them, some can do neither. A line may be cut, or away for good; the
//! venue's process may be killed.

use std::collections::{BTreeMap, VecDeque};

use tickpath_market::{ExecutionReport, Request, VenueId};
use tickpath_oms_core::AccountLimits;
use tickpath_oms_runtime::{LineFactory, LineId, OmsLineConfig};
use tickpath_venue::ResumeState;

use crate::clock::SimClock;
use crate::plan::Dice;
use crate::planted_bugs::PlantedBug;
use crate::rule::{BrokenRule, RuleCheck, broken};
use crate::step_context::StepContext;
use crate::trading_config::VENUES;
use crate::wire::{ConnectionPhase, VenueMessage, Wire};

const SECOND: u64 = 1_000_000_000;

/// The lines of a seed's venue and their limits.
#[derive(Clone)]
pub struct SimLineConfig {
    /// Index of the venue.
    pub place: usize,
    wires: Vec<Wire>,
    rate: u32,
    window: u32,
    lost_after_ns: u64,
    reports_requests: bool,
    keeps_reports: bool,
    dice: Dice,
}

/// The venue's ends of its lines.
pub struct SimVenueLines {
    ends: Vec<SimLineEnd>,
    reports_requests: bool,
    keeps_reports: bool,
    /// The venue's process is down.
    pub is_down: bool,
    /// The line of the last request that named an order.
    ways: BTreeMap<u64, usize>,
    dice: Dice,
}

/// A venue's end of a line. Its knowledge of numbers outlives the venue's process.
struct SimLineEnd {
    wire: Wire,
    session: Option<SimLineSession>,
    /// The line is away for good.
    is_away: bool,
}

struct SimLineSession {
    journal: u64,
    incarnation: u64,
    next_request: u64,
    /// Number of the first report that is kept.
    first: u64,
    kept: VecDeque<ExecutionReport>,
}

impl SimLineConfig {
    /// Draws the terms of a seed; every second seed has some.
    pub fn of(seed: u64, clock: &SimClock) -> Option<Self> {
        let mut dice = Dice::new(seed ^ 0x6c69_6e65);
        if dice.one_in(2) {
            return None;
        }
        let rate = [0, 0, 20, 50][dice.place(4)];
        let window = [8, 16, 100][dice.place(3)];
        let wires = (0..2 + dice.place(2)).map(|_| Wire::new(rate, window, clock.clone())).collect();
        Some(Self {
            place: dice.place(VENUES.len()),
            wires,
            rate,
            window,
            lost_after_ns: (1 + dice.below(10)) * SECOND,
            reports_requests: !dice.one_in(4),
            keeps_reports: !dice.one_in(4),
            dice,
        })
    }

    pub fn venue(&self) -> VenueId {
        VENUES[self.place]
    }

    pub fn configs(&self) -> Vec<OmsLineConfig> {
        let config = |(wire, line): (&Wire, u8)| {
            let wire = wire.clone();
            let open = LineFactory::new(move || Ok(Box::new(wire.end()) as Box<dyn tickpath_venue::Line>));
            let id = LineId { venue: self.venue(), line };
            let Self { rate: rate_per_second, window, lost_after_ns, .. } = *self;
            OmsLineConfig { id, open, rate_per_second, window, lost_after_ns }
        };
        self.wires.iter().zip(0..).map(config).collect()
    }

    /// Sets the clock of a new boot of the host.
    pub fn set_clock(&self, clock: &SimClock) {
        self.wires.iter().for_each(|wire| wire.set_clock(clock.clone()));
    }

    /// Sets the limits that the OMS enforces, if they are known.
    pub fn set_accounts(&self, accounts: &[AccountLimits]) {
        self.wires.iter().for_each(|wire| wire.set_accounts(accounts));
    }

    pub fn lines(&self) -> SimVenueLines {
        let end = |wire: &Wire| SimLineEnd { wire: wire.clone(), session: None, is_away: false };
        SimVenueLines {
            ends: self.wires.iter().map(end).collect(),
            reports_requests: self.reports_requests,
            keeps_reports: self.keeps_reports,
            is_down: false,
            ways: BTreeMap::new(),
            dice: self.dice.clone(),
        }
    }
}

impl SimVenueLines {
    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Sends a report by the line of the last request that named its order; a report without an order by the line of
    /// the request.
    pub fn queue_report(&mut self, report: ExecutionReport, index: usize, around: &mut StepContext<'_>) {
        let index = self.ways.get(&report.order_id.0).copied().unwrap_or(index);
        let SimLineEnd { wire, session, is_away } = &mut self.ends[index];
        let Some(session) = session else { return around.oracle.vanished(&report) };
        if *is_away {
            around.oracle.vanished(&report);
        }
        let mut on = wire.lock();
        let is_open = on.state == ConnectionPhase::Open;
        if !self.keeps_reports && !is_open {
            around.tally.count("reports that no line was there for");
            return around.oracle.vanished(&report);
        }
        session.kept.push_back(report);
        if is_open {
            on.to_oms.push_back(VenueMessage::Report(session.end() - 1, report));
        }
    }

    /// Delivers at most this many reports from each wire.
    pub fn deliver(&mut self, max: usize) -> usize {
        let mut done = 0;
        // A message may arrive alone and its successors later: a line that is up does not know yet what it lacks.
        let max = [0, 1, max, max][self.dice.place(4)];
        for end in &mut self.ends {
            let mut on = end.wire.lock();
            let count = max.min(on.to_oms.len());
            done += usize::from(!on.to_oms.is_empty());
            let arrived: Vec<VenueMessage> = on.to_oms.drain(..count).collect();
            on.there.extend(arrived);
        }
        done
    }

    /// Answers a connect, unless the venue is down.
    pub fn welcome(&mut self, index: usize, around: &mut StepContext<'_>) {
        let Self { ends, reports_requests: says_requests, keeps_reports, is_down, .. } = self;
        let SimLineEnd { wire, session, is_away } = &mut ends[index];
        let mut on = wire.lock();
        let ConnectionPhase::Asking(resume) = on.state else { return };
        if *is_away || *is_down {
            return;
        }
        on.state = ConnectionPhase::Open;
        let known = session.take_if(|session| session.journal == resume.journal);
        let (next_request, next_report, met) = check_connect(known, &resume, (*says_requests, *keeps_reports), around);
        let lies = around.plant == Some(PlantedBug::FalseProof);
        let answer = if lies { next_request.map(|_| resume.next_request) } else { next_request };
        on.to_oms.push_back(VenueMessage::Up(answer, next_report));
        around.tally.count(if next_request.is_some() {
            "venues that knew what they had"
        } else {
            "venues that did not"
        });
        let reports = met.kept.iter().zip(met.first..).filter(|&(_, number)| number >= resume.next_report);
        let mut again: Vec<VenueMessage> =
            reports.map(|(report, number)| VenueMessage::Report(number, *report)).collect();
        if around.plant == Some(PlantedBug::SkippedReport) && !again.is_empty() {
            again.remove(0);
        }
        around.tally.add("reports asked for again", again.len() as u64);
        on.to_oms.extend(again);
        *session = Some(met);
    }

    /// Returns the next request of a line and checks that the line may send it.
    pub fn next(&mut self, index: usize) -> Result<Option<Request>, BrokenRule> {
        let SimLineEnd { wire, session, is_away } = &mut self.ends[index];
        let mut on = wire.lock();
        if on.is_refused || *is_away {
            return Ok(None);
        }
        let (Some((number, request)), Some(session)) = (on.to_venue.pop_front(), session) else { return Ok(None) };
        if number < session.next_request {
            return broken("a line's numbers rise", format!("{number} after {}: {request:?}", session.next_request));
        }
        session.next_request = number + 1;
        let order = match request {
            Request::New(new) => new.client_order_id.0,
            Request::Cancel(cancel) => cancel.original.0,
            Request::Replace(replace) => replace.original.0,
            Request::Status(status) => status.original.0,
            _ => 0,
        };
        drop(on);
        self.ways.insert(order, index);
        Ok(Some(request))
    }

    /// Confirms the received requests, and drops the reports that the OMS has journaled.
    pub fn prove(&mut self, index: usize) {
        let SimLineEnd { wire, session: Some(session), .. } = &mut self.ends[index] else { return };
        let mut on = wire.lock();
        if on.state == ConnectionPhase::Open {
            on.to_oms.push_back(VenueMessage::Received(session.next_request));
            let gone = on.confirmed.saturating_sub(session.first).min(session.kept.len() as u64);
            session.kept.drain(..gone as usize);
            session.first += gone;
        }
    }

    /// Draws the number of requests that arrive if the line is cut here; none if it has ended already.
    pub fn arriving(&mut self, index: usize) -> Option<usize> {
        let on = self.ends[index].wire.lock();
        (on.state != ConnectionPhase::Ended).then(|| self.dice.place(on.to_venue.len() + 1))
    }

    /// Ends a connection and drops the requests left on its wire. Only a first part of the reports in flight arrives.
    pub fn end(&mut self, index: usize, why: &'static str, around: &mut StepContext<'_>) {
        let Self { ends, dice, keeps_reports, .. } = self;
        let mut on = ends[index].wire.lock();
        around.tally.add("requests lost on a line", on.to_venue.len() as u64);
        on.to_venue.clear();
        let arrived = dice.place(on.to_oms.len() + 1);
        let lost = on.to_oms.split_off(arrived);
        let arrived = std::mem::take(&mut on.to_oms);
        on.there.extend(arrived);
        around.tally.add("reports lost on a line", lost.len() as u64);
        if !*keeps_reports {
            forget(lost.iter(), around);
        }
        on.lose(why);
    }

    /// Drops the reports that had arrived at the OMS's end, whose process is gone.
    pub fn leave(&mut self, index: usize, around: &mut StepContext<'_>) {
        let there = std::mem::take(&mut self.ends[index].wire.lock().there);
        if !self.keeps_reports {
            forget(there.iter(), around);
        }
    }

    /// Returns whether a line may go for good: it is there, and not the last one.
    pub fn may_leave_line(&self, index: usize) -> bool {
        let stays = |(other, end): (usize, &SimLineEnd)| other != index && !end.is_away;
        !self.ends[index].is_away && self.ends.iter().enumerate().any(stays)
    }

    /// Takes a line away for good.
    pub fn leave_line(&mut self, index: usize, around: &mut StepContext<'_>) {
        self.ends[index].is_away = true;
        // Its later reports may come too late.
        let kept = self.ends[index].session.iter().flat_map(|session| &session.kept);
        kept.for_each(|report| around.oracle.vanished(report));
    }

    /// Returns whether a line that will return is not open.
    pub fn is_restless(&self) -> bool {
        self.ends.iter().any(|end| !end.is_away && end.wire.lock().state != ConnectionPhase::Open)
    }

    /// Sets whether the venue's process is down.
    pub fn set_down(&mut self, is_down: bool) {
        self.is_down = is_down;
        self.ends.iter().for_each(|end| end.wire.lock().is_refused = is_down);
    }

    /// Sets whether the sockets are full.
    pub fn set_full(&mut self, is_full: bool) {
        self.ends.iter().for_each(|end| end.wire.lock().set_full(is_full));
    }

    /// Brings back the lines that were away and returns their number.
    pub fn come_back(&mut self) -> usize {
        self.ends.iter_mut().map(|end| usize::from(std::mem::take(&mut end.is_away))).sum()
    }

    pub fn check(&self) -> RuleCheck {
        self.ends.iter().find_map(|end| end.wire.lock().take_broken()).map_or(Ok(()), Err)
    }
}

impl SimLineSession {
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }
}

/// Returns the session after a connect, and the numbers that the venue reports to the OMS.
fn check_connect(
    known: Option<SimLineSession>,
    resume: &ResumeState,
    (says_requests, keeps_reports): (bool, bool),
    around: &mut StepContext<'_>,
) -> (Option<u64>, Option<u64>, SimLineSession) {
    let ResumeState { journal, incarnation, next_request, next_report, .. } = *resume;
    let of_requests = known.as_ref().filter(|known| says_requests && known.incarnation == incarnation);
    let has = of_requests.map(|known| known.next_request);
    let has_reports =
        known.as_ref().is_some_and(|known| keeps_reports && (known.first..=known.end()).contains(&next_report));
    let (mut first, mut kept) = (next_report, VecDeque::new());
    match known {
        Some(known) if has_reports => (first, kept) = (known.first, known.kept),
        Some(known) if keeps_reports => known.kept.iter().for_each(|report| around.oracle.vanished(report)),
        _ => {}
    }
    let met = SimLineSession { journal, incarnation, next_request: has.unwrap_or(next_request), first, kept };
    (has, has_reports.then_some(next_report), met)
}

fn forget<'a>(messages: impl Iterator<Item = &'a VenueMessage>, around: &mut StepContext<'_>) {
    for message in messages {
        if let VenueMessage::Report(_, report) = message {
            around.oracle.vanished(report);
        }
    }
}
