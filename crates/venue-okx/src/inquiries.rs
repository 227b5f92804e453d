//! Questions about single orders, answered by REST: status requests of the OMS, and fills that the orders channel has
//! not brought.
//!
//! ```text
//!   Waiting ── GET order ──> Order ── GET fills, if some are missing or asked for ──> Fills ──> fills, OrderStatus
//!      ^                       │ absent, and the order could still arrive                │ not all listed yet
//!      └───────────────────────┴─────────────────────────────────────────────────────────┘
//! ```
//! OKX handles requests over the socket and over REST independently of each other. A status request therefore waits
//! until the requests before it about the same order are answered. An order that is absent at OKX is absent for ever
//! only once its expiry is over.
//!
//! Fills that OKX has reported in sum are asked for until they are listed, also after the questions about their order
//! are answered: with growing pauses, and in turns in the list of three months, which has what the list of three days
//! has lost.

use std::collections::{HashMap, VecDeque};

use tickpath_market::{AccountId, Quantity, StatusRequest};
use tickpath_web_client::{HttpRequest, HttpResponse};

use crate::fill_row::{FillRow, sort_by_time};
use crate::order_ledger::OrderLedger;
use crate::order_table::OrderEntry;
use crate::order_update::{OrderUpdate, RawOrder};
use crate::page_walk::{PageWalk, read_state};
use crate::reasons::{UNKNOWN_INSTRUMENT, reason_of};
use crate::signed_rest::{RestCall, RestFailure, RestLimit, SignedRest, read_rows};

/// Waiting questions that a turn looks at.
const MAX_LOOKED_AT: usize = 16;
/// Rounds after which an answer is passed on although OKX does not list all fills, or although the order changes
/// meanwhile.
const MAX_TRIES: u32 = 5;
/// Doublings of the pause between the further rounds, up to some nine minutes.
const MAX_DOUBLINGS: u32 = 9;

/// Open questions, one for each order.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    by_order: HashMap<u64, Inquiry>,
    /// Orders whose question waits, and those whose requests are under way.
    waiting: VecDeque<u64>,
    under_way: Vec<u64>,
    /// Open orders as the connect has found them, which need not be asked for.
    found: HashMap<u64, OrderUpdate>,
}

/// Times of the inquiries of a connection, in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InquiryTimes {
    pub now: u64,
    /// Time from the sending of a request until its absence at OKX is final.
    pub expiry: u64,
    /// Begin of this line: an order of an earlier process was sent before it.
    pub line_began: u64,
    /// Pause before fills are asked for, or asked for again.
    pub pause: u64,
}

/// Status request of the OMS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StatusQuestion {
    request: StatusRequest,
    /// Part of the answer to a request for the status of all orders.
    is_part_of_all: bool,
}

#[derive(Debug)]
struct Inquiry {
    account: AccountId,
    /// Index of the instrument.
    instrument: usize,
    /// Questions that this round answers, and those that came during the round.
    asked: Vec<StatusQuestion>,
    later: Vec<StatusQuestion>,
    not_before: u64,
    /// State of the order, if it is known.
    state: Option<OrderUpdate>,
    /// All fills of the order, if they are known.
    fills: Option<Vec<FillRow>>,
    /// A row about the order has arrived during the round, and may be newer than the state.
    is_outdated: bool,
    tries: u32,
    step: InquiryStep,
}

#[derive(Debug)]
enum InquiryStep {
    Waiting,
    /// The state is requested, since this time.
    Order(RestCall, u64),
    Fills(PageWalk<FillRow>),
}

/// Result of a step.
enum StepResult {
    Pending,
    /// Wait, and begin again.
    Again(u64),
    Done,
}

impl Inquiries {
    /// Forgets all questions: after a connect the OMS asks again. `found` are the open orders at OKX.
    pub fn begin(&mut self, found: Vec<OrderUpdate>) {
        *self = Self::default();
        self.found = found.into_iter().map(|update| (update.order, update)).collect();
    }

    /// Notes that a request or a row may have changed an order: a state from before is not reported.
    #[inline]
    pub fn note_change(&mut self, order: u64) {
        if !self.found.is_empty() {
            self.found.remove(&order);
        }
        if !self.by_order.is_empty()
            && let Some(inquiry) = self.by_order.get_mut(&order)
            && !inquiry.asked.is_empty()
        {
            match inquiry.step {
                InquiryStep::Waiting => (inquiry.state, inquiry.fills) = (None, None),
                InquiryStep::Order(..) | InquiryStep::Fills(_) => inquiry.is_outdated = true,
            }
        }
    }

    /// Forgets the states in which the connect has found the orders.
    pub fn forget_found(&mut self) {
        if !self.found.is_empty() {
            self.found = HashMap::new();
        }
    }

    /// Takes a status request about one order. An order in an instrument that the line does not have stays in doubt.
    pub fn ask(&mut self, request: &StatusRequest, ledger: &mut OrderLedger) {
        match ledger.instruments.find(request.symbol) {
            Some(instrument) => {
                let question = StatusQuestion { request: *request, is_part_of_all: false };
                self.add(request.original.0, request.account, instrument, question);
            }
            None => ledger.report_doubt_about(request, UNKNOWN_INSTRUMENT),
        }
    }

    /// Takes an order of the answer to a request for the status of all orders, with its state and its fills as far as
    /// they are known.
    pub fn ask_for_all(
        &mut self,
        request: StatusRequest,
        instrument: usize,
        state: Option<OrderUpdate>,
        fills: Option<Vec<FillRow>>,
    ) {
        let (order, account) = (request.original.0, request.account);
        let inquiry = self.add(order, account, instrument, StatusQuestion { request, is_part_of_all: true });
        // A round that has begun answers other questions first.
        if matches!(inquiry.step, InquiryStep::Waiting) && inquiry.state.is_none() {
            (inquiry.state, inquiry.fills) = (state, fills);
        }
    }

    /// Asks for fills of an order that OKX has reported in sum only, after a pause in which they may still arrive.
    pub fn ask_for_fills(&mut self, order: u64, entry: &OrderEntry, times: &InquiryTimes) {
        let not_before = times.now + times.pause;
        if let Some(inquiry) = self.by_order.get_mut(&order) {
            if inquiry.asked.is_empty() {
                inquiry.not_before = inquiry.not_before.min(not_before);
            }
            return;
        }
        self.by_order.insert(order, Inquiry { not_before, ..Inquiry::new(entry.account, entry.instrument) });
        self.waiting.push_back(order);
    }

    /// Returns the number of orders whose status is still missing in the answer about all orders.
    pub fn open_parts(&self) -> usize {
        let parts = |questions: &[StatusQuestion]| questions.iter().filter(|question| question.is_part_of_all).count();
        self.by_order.values().map(|inquiry| parts(&inquiry.asked) + parts(&inquiry.later)).sum()
    }

    /// Takes the inquiries further. Returns the amount of work done; the error is the reason why the line is lost.
    pub fn advance(
        &mut self,
        rest: &mut SignedRest,
        ledger: &mut OrderLedger,
        times: &InquiryTimes,
    ) -> Result<usize, String> {
        let mut done = 0;
        for order in std::mem::take(&mut self.under_way) {
            done += self.step(order, rest, ledger, times)?;
        }
        for _ in 0..self.waiting.len().min(MAX_LOOKED_AT) {
            let Some(order) = self.waiting.pop_front() else { break };
            done += self.step(order, rest, ledger, times)?;
        }
        Ok(done)
    }

    fn add(&mut self, order: u64, account: AccountId, instrument: usize, question: StatusQuestion) -> &mut Inquiry {
        let Self { by_order, waiting, .. } = self;
        let inquiry = by_order.entry(order).or_insert_with(|| {
            waiting.push_back(order);
            Inquiry::new(account, instrument)
        });
        match inquiry.step {
            InquiryStep::Waiting => inquiry.asked.push(question),
            InquiryStep::Order(..) | InquiryStep::Fills(_) => inquiry.later.push(question),
        }
        // An inquiry about fills alone may be in a long pause.
        if inquiry.asked.len() == 1 && inquiry.later.is_empty() {
            (inquiry.state, inquiry.fills, inquiry.not_before, inquiry.tries) = (None, None, 0, 0);
        }
        inquiry
    }

    /// Takes a step of an inquiry, and puts it where it continues.
    fn step(
        &mut self,
        order: u64,
        rest: &mut SignedRest,
        ledger: &mut OrderLedger,
        times: &InquiryTimes,
    ) -> Result<usize, String> {
        let Some(inquiry) = self.by_order.get_mut(&order) else { return Ok(0) };
        let result = match inquiry.take_step(order, &mut self.found, rest, ledger, times) {
            Ok(result) => result,
            Err(failure) => match rest.give_up(&failure) {
                Some(why) => return Err(why),
                None => inquiry.handle_failure(order, &failure, ledger, times),
            },
        };
        match result {
            StepResult::Pending if matches!(inquiry.step, InquiryStep::Waiting) => {
                self.waiting.push_back(order);
                return Ok(0);
            }
            StepResult::Pending => {
                self.under_way.push(order);
                return Ok(0);
            }
            // Questions that came during the round begin a round of their own.
            StepResult::Done if !inquiry.later.is_empty() => inquiry.restart(),
            StepResult::Again(_) if inquiry.asked.is_empty() && !inquiry.later.is_empty() => inquiry.restart(),
            StepResult::Again(not_before) => {
                (inquiry.step, inquiry.not_before) = (InquiryStep::Waiting, not_before);
                (inquiry.state, inquiry.fills, inquiry.is_outdated) = (None, None, false);
                inquiry.asked.append(&mut inquiry.later);
            }
            StepResult::Done if ledger.orders.get(order).is_some_and(OrderEntry::lacks_fills) => {
                inquiry.continue_for_fills(times);
            }
            StepResult::Done => {
                self.by_order.remove(&order);
                return Ok(1);
            }
        }
        self.waiting.push_back(order);
        Ok(1)
    }
}

impl Inquiry {
    fn new(account: AccountId, instrument: usize) -> Self {
        Self {
            account,
            instrument,
            asked: Vec::new(),
            later: Vec::new(),
            not_before: 0,
            state: None,
            fills: None,
            is_outdated: false,
            tries: 0,
            step: InquiryStep::Waiting,
        }
    }

    /// Begins anew with the questions that came during the round.
    fn restart(&mut self) {
        let asked = std::mem::take(&mut self.later);
        *self = Self { asked, ..Self::new(self.account, self.instrument) };
    }

    /// Continues with the missing fills alone: the questions are answered as far as they can be.
    fn continue_for_fills(&mut self, times: &InquiryTimes) {
        let tries = self.tries.max(MAX_TRIES);
        let pause = times.pause.saturating_mul(1 << (tries - MAX_TRIES + 1).min(MAX_DOUBLINGS));
        let not_before = times.now.saturating_add(pause);
        *self = Self { tries, not_before, ..Self::new(self.account, self.instrument) };
    }

    fn take_step(
        &mut self,
        order: u64,
        found: &mut HashMap<u64, OrderUpdate>,
        rest: &mut SignedRest,
        ledger: &mut OrderLedger,
        times: &InquiryTimes,
    ) -> Result<StepResult, RestFailure> {
        match &mut self.step {
            InquiryStep::Waiting => {
                let is_in_flight = ledger.orders.get(order).is_some_and(|entry| entry.in_flight > 0);
                if times.now < self.not_before || (is_in_flight && !self.asked.is_empty()) {
                    return Ok(StepResult::Pending);
                }
                if self.asked.is_empty() {
                    return Ok(self.continue_with_fills(order, ledger, times));
                }
                self.state = self.state.take().or_else(|| found.remove(&order));
                if self.state.is_some() {
                    return Ok(self.continue_with_fills(order, ledger, times));
                }
                let limit = RestLimit::Order(self.instrument);
                if rest.has_room(limit)
                    && let Some(call) = rest.start(limit, self.order_request(order, ledger))
                {
                    self.step = InquiryStep::Order(call, times.now);
                }
                Ok(StepResult::Pending)
            }
            InquiryStep::Order(call, since) => {
                let since = *since;
                let Some(answer) = rest.finish(call) else { return Ok(StepResult::Pending) };
                match answer.and_then(|response| read_order(&response, order, ledger)) {
                    Ok(state) => {
                        self.state = Some(state);
                        Ok(self.continue_with_fills(order, ledger, times))
                    }
                    Err(RestFailure::Absent) => Ok(self.handle_absence(order, since, ledger, times)),
                    Err(failure) => Err(failure),
                }
            }
            InquiryStep::Fills(walk) => match walk.advance(rest, ledger)? {
                None => Ok(StepResult::Pending),
                Some(mut fills) => {
                    fills.retain(|row| row.order == order);
                    self.fills = Some(fills);
                    Ok(self.finish(order, ledger, times))
                }
            },
        }
    }

    fn order_request(&self, order: u64, ledger: &OrderLedger) -> HttpRequest {
        let (name, id) = (&ledger.instruments.get(self.instrument).name, ledger.naming.order(self.account, order));
        HttpRequest::get(&format!("/api/v5/trade/order?instId={name}&clOrdId={id}"))
    }

    /// Continues with the known state: asks for fills, if some are missing or asked for.
    fn continue_with_fills(&mut self, order: u64, ledger: &mut OrderLedger, times: &InquiryTimes) -> StepResult {
        if let Some(state) = &self.state {
            ledger.orders.enter(state);
        }
        let Some(entry) = ledger.orders.get(order) else { return StepResult::Done };
        let is_asked_for = self.asked.iter().any(|question| question.request.fills != 0);
        let needs_fills = entry.lacks_fills() || (is_asked_for && entry.cumulative.0 > 0);
        let are_known = self.fills.as_deref().is_some_and(|fills| sum(fills) >= entry.cumulative);
        if needs_fills && !are_known {
            let is_of_history = self.tries >= MAX_TRIES && self.tries % 2 == 1;
            self.step = InquiryStep::Fills(PageWalk::of_order(entry.kind, entry.venue_id, is_of_history));
            return StepResult::Pending;
        }
        self.finish(order, ledger, times)
    }

    /// Reports the answer, unless it is outdated or OKX does not list all fills yet.
    fn finish(&mut self, order: u64, ledger: &mut OrderLedger, times: &InquiryTimes) -> StepResult {
        let listed = self.fills.as_deref().map_or(Quantity::ZERO, sum);
        let lacks_fills =
            ledger.orders.get(order).is_some_and(|entry| entry.lacks_fills() && listed < entry.cumulative);
        self.tries = self.tries.saturating_add(1);
        if self.tries < MAX_TRIES && (lacks_fills || self.is_outdated) {
            return StepResult::Again(times.now + if lacks_fills { times.pause } else { 0 });
        }
        self.report(order, ledger);
        if lacks_fills && self.asked.is_empty() && self.tries == MAX_TRIES {
            ledger.doubt_fills(order);
        }
        StepResult::Done
    }

    /// Reports the fills and then the status, to each question.
    fn report(&mut self, order: u64, ledger: &mut OrderLedger) {
        let asks_for_fills = self.asked.iter().find(|question| question.request.fills != 0);
        let asked_by = asks_for_fills.map(|question| question.request.client_order_id.0);
        let mut fills = self.fills.take().unwrap_or_default();
        sort_by_time(&mut fills);
        // Fills that OKX does not list any more came before the others.
        let all = ledger.orders.get(order).map_or(Quantity::ZERO, |entry| entry.cumulative);
        let mut cumulative = Quantity((all.0 - sum(&fills).0).max(0));
        for row in &fills {
            cumulative.0 += row.fill.quantity.0;
            ledger.apply_fill(row, Some(cumulative), asked_by);
        }
        let Some(state) = self.state.take() else { return };
        for question in &self.asked {
            ledger.report_status(&state, question.request.client_order_id.0);
        }
    }

    fn handle_absence(
        &mut self,
        order: u64,
        asked_at: u64,
        ledger: &mut OrderLedger,
        times: &InquiryTimes,
    ) -> StepResult {
        if self.is_outdated {
            return StepResult::Again(times.now);
        }
        let sent = ledger.orders.get(order).and_then(|entry| entry.placed).unwrap_or(times.line_began);
        let final_at = sent + times.expiry;
        if asked_at < final_at && !ledger.has_ended(order) {
            return StepResult::Again(final_at);
        }
        for question in &self.asked {
            ledger.report_absence(&question.request);
        }
        StepResult::Done
    }

    fn handle_failure(
        &mut self,
        order: u64,
        failure: &RestFailure,
        ledger: &mut OrderLedger,
        times: &InquiryTimes,
    ) -> StepResult {
        match failure {
            RestFailure::Passing(_) if matches!(self.step, InquiryStep::Fills(_)) => StepResult::Pending,
            RestFailure::Passing(_) => StepResult::Again(times.now),
            RestFailure::Absent | RestFailure::Refused { .. } => {
                let reason = match failure {
                    RestFailure::Refused { code, .. } => reason_of(*code),
                    _ => 0,
                };
                for question in &self.asked {
                    ledger.report_doubt_about(&question.request, reason);
                }
                if self.asked.is_empty() {
                    // The next round asks for the other list, after a longer pause.
                    self.tries = self.tries.max(MAX_TRIES - 1).saturating_add(1);
                    if self.tries == MAX_TRIES {
                        ledger.doubt_fills(order);
                    }
                }
                StepResult::Done
            }
        }
    }
}

/// Reads the state of an order from the answer about it.
fn read_order(response: &HttpResponse, order: u64, ledger: &OrderLedger) -> Result<OrderUpdate, RestFailure> {
    let rows: Vec<RawOrder<'_>> = read_rows(response)?;
    let row = rows.first().ok_or(RestFailure::Absent)?;
    let other = || RestFailure::Refused { code: u32::MAX, text: "the answer is about another order".to_owned() };
    read_state(row, ledger)?.filter(|state| state.order == order).ok_or_else(other)
}

fn sum(fills: &[FillRow]) -> Quantity {
    Quantity(fills.iter().map(|row| row.fill.quantity.0).sum())
}
