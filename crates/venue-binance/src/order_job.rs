//! The state of one order: the exchange is asked for the order, then for its fills, and the answer is reported.
//!
//! ```text
//!   by id, or by the texts t, c, r ──found──> canceled for a replacement? ──yes──> the next generation
//!          └── absent                                  └──no──> fills that are missing ──> OrderStatus
//!                └── requests may still arrive: once more, later · otherwise: it never arrived
//! ```
//!
//! An order in flight that the exchange does not find may arrive as long as its time window is open, so absence is final
//! only behind the window and a margin. An answer that is older than what was reported is asked for again.

use serde_json::Value;
use tickpath_market::{ExecType, ExecutionReport, OrdStatus};
use tickpath_venue::{TOO_LATE, UNKNOWN_ORDER};

use crate::encode::ListFrom;
use crate::identity::{OrderIdentity, TextUse};
use crate::job_query::{JobProgress, JobQuery};
use crate::json;
use crate::message::{
    INVALID_TIMESTAMP, NO_SUCH_ORDER, OrderRecord, OrderState, Refusal, TradeRecord, UnreadableEntry, printable,
};
use crate::orders::{LineOrder, LineOrders};
use crate::reports::{OrderFill, OrderSnapshot, RefusedRequest, detail};

/// Max answers that are older than what was reported; the next one is reported.
const MAX_STALE: u32 = 5;

/// Purpose of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobPurpose {
    /// Answers a status request, with all fills if they are asked for.
    Answer { fills: bool },
    /// Finds out why the exchange has refused a cancel or a replace, for this reason.
    Refusal { reason: u16, text: String },
}

/// A job about one order.
pub(crate) struct OrderJob {
    purpose: JobPurpose,
    asked: RefusedRequest,
    instrument: usize,
    /// Generation that is looked up.
    position: OrderIdentity,
    /// The exchange's id of it, if it is known and was not tried.
    venue_id: Option<u64>,
    /// Texts that it may have, in the order of their trial, and the number of those that were tried.
    uses: [TextUse; 3],
    tried: usize,
    found: Vec<FoundGeneration>,
    /// Place in `found` and first trade of the fills that are asked for; none while generations are looked up.
    fills: Option<(usize, u64)>,
    stale: u32,
}

struct FoundGeneration {
    identity: OrderIdentity,
    record: OrderRecord,
    state: OrderState,
    trades: Vec<TradeRecord>,
    /// Fills that cannot be read.
    unreadable: Vec<UnreadableEntry>,
}

/// Time after which an absent order never arrived, in ticks, and the present time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobTime {
    pub(crate) absence_ticks: u64,
    pub(crate) now: u64,
}

impl OrderJob {
    pub(crate) fn new(purpose: JobPurpose, asked: RefusedRequest, instrument: usize, orders: &LineOrders) -> Self {
        let mut job = Self {
            purpose,
            asked,
            instrument,
            position: OrderIdentity::first(asked.order, asked.account),
            venue_id: None,
            uses: [TextUse::Order, TextUse::Canceled, TextUse::Replaced],
            tried: 0,
            found: Vec::new(),
            fills: None,
            stale: 0,
        };
        job.restart(orders);
        job
    }

    /// Returns the order.
    pub(crate) fn order(&self) -> u64 {
        self.asked.order
    }

    /// Returns the place of the instrument.
    pub(crate) fn instrument(&self) -> usize {
        self.instrument
    }

    /// Returns the next query.
    pub(crate) fn query(&self, orders: &LineOrders) -> JobQuery {
        match (self.fills, self.venue_id) {
            (Some((place, from)), _) => {
                let order_id = self.found.get(place).map(|found| found.record.order_id);
                JobQuery::Trades { order_id, from: (from > 0).then_some(ListFrom::Id(from)) }
            }
            (None, Some(venue_id)) => JobQuery::OrderById(venue_id),
            (None, None) => {
                let text_use = self.uses.get(self.tried).copied().unwrap_or(TextUse::Order);
                JobQuery::OrderByText(self.position.text(orders.tag, text_use))
            }
        }
    }

    /// Takes the answer to the last query; the error is an answer that cannot be read.
    pub(crate) fn handle(
        &mut self,
        outcome: &Result<Value, Refusal>,
        orders: &mut LineOrders,
        time: JobTime,
    ) -> Result<JobProgress, String> {
        match outcome {
            Ok(answer) if self.fills.is_some() => self.take_fills(answer, orders),
            Ok(answer) => Ok(self.take_order(answer, orders, time)),
            Err(refusal) if refusal.code == NO_SUCH_ORDER && self.fills.is_none() => {
                Ok(self.note_absence(orders, time))
            }
            Err(refusal) if is_passing(refusal) => Ok(JobProgress::Pause),
            Err(refusal) => {
                self.give_up(refusal, orders);
                Ok(JobProgress::Done)
            }
        }
    }

    fn restart(&mut self, orders: &LineOrders) {
        self.found.clear();
        self.fills = None;
        // The fills of earlier generations are asked for as well, unless this process has passed them on.
        let known = orders.get(self.asked.order).filter(|known| known.has_earlier_fills());
        let first = OrderIdentity::first(self.asked.order, self.asked.account);
        self.look_up(known.map_or(first, |known| known.identity), orders);
    }

    fn look_up(&mut self, identity: OrderIdentity, orders: &LineOrders) {
        let known = orders.get(identity.order);
        let present = known.filter(|known| known.identity.generation == identity.generation);
        self.position = identity;
        self.venue_id = present.map(|known| known.venue_id).filter(|venue_id| *venue_id != 0);
        self.tried = 0;
        self.uses = match known.is_some_and(|known| known.identity.generation > identity.generation) {
            true => [TextUse::Replaced, TextUse::Order, TextUse::Canceled],
            false => [TextUse::Order, TextUse::Canceled, TextUse::Replaced],
        };
    }

    fn take_order(&mut self, answer: &Value, orders: &mut LineOrders, time: JobTime) -> JobProgress {
        let read = json::record(answer).and_then(|record| match record.state {
            Some(state) => Ok((record, state)),
            None => Err("the exchange reports a state that this line does not know".to_owned()),
        });
        let (record, state) = match read {
            Ok(read) => read,
            Err(text) => {
                self.give_up(&Refusal { status: 0, code: 0, text, data: Value::Null }, orders);
                return JobProgress::Done;
            }
        };
        // A replace in doubt may still arrive.
        if state.is_working() && self.is_replaced_in_doubt(orders) && !self.is_window_over(orders, time) {
            return JobProgress::Pause;
        }
        let (executed, identity) = (record.executed, self.position);
        let has_successor = state == OrderState::Canceled && self.may_have_successor(&record, orders);
        self.found.push(FoundGeneration { identity, record, state, trades: Vec::new(), unreadable: Vec::new() });
        if has_successor {
            self.look_up(identity.next(executed), orders);
            return JobProgress::Continue;
        }
        self.ask_for_fills(0, orders)
    }

    /// Returns whether a canceled generation may have been canceled for a replacement.
    fn may_have_successor(&self, record: &OrderRecord, orders: &LineOrders) -> bool {
        match OrderIdentity::read(record.client.as_bytes(), orders.tag) {
            Some((TextUse::Replaced, _)) => true,
            Some((TextUse::Canceled, _)) => false,
            // The cancel came from elsewhere, or has left the text as it was.
            Some((TextUse::Order, _)) | None => orders.get(self.asked.order).is_none_or(|known| {
                let is_present = known.identity.generation == self.position.generation;
                !is_present || known.is_learned || known.replace.is_some()
            }),
        }
    }

    fn note_absence(&mut self, orders: &mut LineOrders, time: JobTime) -> JobProgress {
        if self.venue_id.take().is_some() {
            return JobProgress::Continue;
        }
        self.tried += 1;
        if self.tried < self.uses.len() {
            return JobProgress::Continue;
        }
        if !self.is_window_over(orders, time) {
            self.tried = 0;
            return JobProgress::Pause;
        }
        if !self.found.is_empty() {
            return self.ask_for_fills(0, orders);
        }
        self.report_absence(orders);
        JobProgress::Done
    }

    /// Returns whether the last request that may have placed the order, or a generation of it, can arrive no more.
    fn is_window_over(&self, orders: &LineOrders, time: JobTime) -> bool {
        let last_sent = orders.get(self.asked.order).map_or(orders.began, |known| known.last_sent);
        time.now.saturating_sub(last_sent) >= time.absence_ticks
    }

    fn is_replaced_in_doubt(&self, orders: &LineOrders) -> bool {
        let known = orders.get(self.asked.order).filter(|known| known.replace.is_some());
        known.is_some_and(|known| known.identity.generation == self.position.generation)
    }

    /// Asks for the fills of the next generation that lacks some, or reports the result.
    fn ask_for_fills(&mut self, from: usize, orders: &mut LineOrders) -> JobProgress {
        let lacks = |found: &FoundGeneration| {
            let filled = orders.get(self.asked.order).and_then(|known| known.filled_of(&found.identity));
            let is_missing = filled.is_none_or(|filled| filled < found.record.executed);
            found.record.executed > 0 && (is_missing || matches!(self.purpose, JobPurpose::Answer { fills: true }))
        };
        let next = (from..self.found.len()).find(|place| lacks(&self.found[*place]));
        match next {
            Some(place) => {
                self.fills = Some((place, 0));
                JobProgress::Continue
            }
            None => self.finish(orders),
        }
    }

    fn take_fills(&mut self, answer: &Value, orders: &mut LineOrders) -> Result<JobProgress, String> {
        let Some((place, _)) = self.fills else { return Ok(JobProgress::Continue) };
        let listed = json::trades(answer)?;
        self.found[place].trades.extend(listed.entries);
        self.found[place].unreadable.extend(listed.unreadable);
        Ok(match listed.next_id {
            Some(next_id) => {
                self.fills = Some((place, next_id));
                JobProgress::Continue
            }
            None => self.ask_for_fills(place + 1, orders),
        })
    }

    fn finish(&mut self, orders: &mut LineOrders) -> JobProgress {
        let Some(last) = self.found.last() else { return JobProgress::Done };
        let known = orders.get(self.asked.order);
        if self.stale < MAX_STALE && known.is_some_and(|known| is_older(last, known)) {
            self.stale += 1;
            self.restart(orders);
            return JobProgress::Pause;
        }
        orders.settle(last.identity, self.instrument, &last.record, last.state);
        orders.end_doubt(self.asked.order);
        let may_repeat = matches!(self.purpose, JobPurpose::Answer { fills: true });
        for found in &self.found {
            let snapshot = found.snapshot(self.instrument);
            let mut executed = 0_i64;
            for trade in &found.trades {
                executed = executed.saturating_add(trade.quantity);
                let fill = OrderFill::of_trade(trade, snapshot, executed, found.record.terms.quantity);
                orders.push_fill(&fill, 0, may_repeat);
            }
            for entry in &found.unreadable {
                orders.push_unreadable(&found.identity, self.instrument, &entry.name, &entry.why);
            }
        }
        let snapshot = last.snapshot(self.instrument);
        match &self.purpose {
            JobPurpose::Answer { .. } => {
                let report = orders.report(&snapshot, ExecType::OrderStatus, self.asked.request);
                orders.outbox.report(report);
            }
            JobPurpose::Refusal { reason, text } => {
                orders.push_found_end(&snapshot);
                let reason = if snapshot.state.is_working() { *reason } else { TOO_LATE };
                orders.push_cancel_rejected(&self.asked, reason, text);
            }
        }
        JobProgress::Done
    }

    /// Reports that the exchange never had the order.
    fn report_absence(&self, orders: &mut LineOrders) {
        orders.note_found_end(self.asked.order);
        match &self.purpose {
            JobPurpose::Answer { .. } => {
                let report = orders.refusal(&self.asked, ExecType::OrderStatus);
                orders.outbox.report(ExecutionReport { reason: UNKNOWN_ORDER, ..report });
            }
            JobPurpose::Refusal { text, .. } => orders.push_cancel_rejected(&self.asked, UNKNOWN_ORDER, text),
        }
    }

    /// Reports that the state stays unknown.
    fn give_up(&self, refusal: &Refusal, orders: &mut LineOrders) {
        match &self.purpose {
            JobPurpose::Answer { .. } => {
                let report = orders.refusal(&self.asked, ExecType::OrderStatus);
                let (reason, status) = (refusal.reason(), OrdStatus::Unknown.code());
                orders.outbox.report(ExecutionReport { reason, status, ..report });
                orders.outbox.detail(detail(self.asked.order, (0, 0), &printable(&refusal.text)));
            }
            JobPurpose::Refusal { reason, text } => orders.push_cancel_rejected(&self.asked, *reason, text),
        }
    }
}

impl FoundGeneration {
    fn snapshot(&self, instrument: usize) -> OrderSnapshot {
        OrderSnapshot::of_record(&self.record, self.state, self.identity, instrument)
    }
}

/// Returns whether a query with this refusal can succeed later.
pub(crate) fn is_passing(refusal: &Refusal) -> bool {
    refusal.is_ambiguous() || refusal.is_rate_limit() || refusal.code == INVALID_TIMESTAMP
}

/// Returns whether an answer is older than what was reported.
fn is_older(found: &FoundGeneration, known: &LineOrder) -> bool {
    let generation = found.identity.generation;
    let is_behind = found.record.executed < known.filled || known.has_ended && found.state.is_working();
    generation < known.identity.generation || generation == known.identity.generation && is_behind
}
