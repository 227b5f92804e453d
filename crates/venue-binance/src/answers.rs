//! Answers to requests of the OMS. An answer that leaves the outcome open puts the order in doubt, and nothing is ever
//! sent again: the OMS asks for the order.
//!
//! | answer | place | cancel | replace |
//! |---|---|---|---|
//! | success | `New` | `Canceled`, if all fills are known; otherwise by the event | `Replaced` |
//! | refusal | `Rejected` | `CancelRejected`; -2011 behind the status | the same; `Canceled` after a cancel that worked |
//! | -1000, -1001, -1006, -1007, 5xx | in doubt | in doubt | in doubt |

use serde_json::Value;
use tickpath_clock::Clock;
use tickpath_market::ExecType;
use tickpath_venue::TOO_LATE;

use crate::events::OrderEnd;
use crate::jobs::JobKind;
use crate::json;
use crate::message::{
    AnswerId, CANCEL_REJECTED, INVALID_TIMESTAMP, NO_SUCH_ORDER, OrderState, Refusal, RequestAnswer, printable,
};
use crate::order_job::{JobPurpose, OrderJob};
use crate::orders::{PendingReplace, ReplaceStep};
use crate::pending::{PendingRequest, RequestKind};
use crate::reports::{OrderSnapshot, RefusedRequest, detail};
use crate::session::LineSession;
use crate::terms::OrderTerms;

/// Begin of the text with which the exchange keeps an order that has fills from being replaced as one without.
const RESTRICTED: &str = "Order was not canceled due to cancel restrictions";

impl LineSession {
    /// Handles the short answer to a new order.
    #[inline]
    pub(crate) fn handle_placed(&mut self, number: u64, order_id: u64) {
        let Some(request) = self.pending.answer(number) else { return };
        if request.kind == RequestKind::Place {
            self.accept(request.asked.order, order_id);
        }
        self.acknowledge();
    }

    /// Handles any other answer. The error is the reason to end the connection.
    pub(crate) fn handle_answer(&mut self, answer: RequestAnswer) -> Result<(), String> {
        let RequestAnswer { id, outcome } = answer;
        let now = self.clock.ticks();
        if let Err(refusal) = &outcome {
            if refusal.is_rate_limit() {
                self.out.note_rate_limit(refusal, now);
            }
            self.is_time_due |= refusal.code == INVALID_TIMESTAMP;
        }
        match (id, outcome) {
            (AnswerId::Number(number), outcome) => self.answer_request(number, &outcome),
            (AnswerId::Query(id), outcome) => match self.out.take_query(id) {
                Some(query) => self.answer_query(query, &outcome, now),
                None => Ok(()),
            },
            (AnswerId::Unassigned, Err(refusal)) => {
                Err(format!("the exchange refuses the session: {}", refusal.sentence()))
            }
            (AnswerId::Unassigned, Ok(_)) => Ok(()),
        }
    }

    /// Handles the answer to the second step of a replace.
    pub(crate) fn answer_second_step(&mut self, order: u64, outcome: &Result<Value, Refusal>) -> Result<(), String> {
        let Some(replace) = self.pending_replace(order, ReplaceStep::Place) else { return Ok(()) };
        match outcome {
            Ok(answer) => self.begin_replacement(&replace, json::order_id(answer)?, transact_ms(answer)),
            Err(refusal) if refusal.is_ambiguous() => self.doubt_replace(order),
            Err(refusal) => {
                let text = self.reason_text(refusal);
                self.orders.end_unreplaced(order, (0, 0), refusal.reason(), &text);
            }
        }
        Ok(())
    }

    fn answer_request(&mut self, number: u64, outcome: &Result<Value, Refusal>) -> Result<(), String> {
        let Some(request) = self.pending.answer(number) else { return Ok(()) };
        match request.kind {
            RequestKind::Place => self.answer_place(&request, outcome)?,
            RequestKind::Cancel => self.answer_cancel(&request, outcome)?,
            RequestKind::Replace => self.answer_replace(&request, outcome)?,
            // Queries ask for the status, and have ids of their own.
            RequestKind::Status => {}
        }
        self.acknowledge();
        Ok(())
    }

    fn answer_place(&mut self, request: &PendingRequest, outcome: &Result<Value, Refusal>) -> Result<(), String> {
        match outcome {
            Ok(answer) => self.accept(request.asked.order, json::order_id(answer)?),
            Err(refusal) if refusal.is_ambiguous() => self.orders.push_doubt_of(&request.asked),
            Err(refusal) => self.reject(&request.asked, refusal),
        }
        Ok(())
    }

    fn accept(&mut self, order: u64, order_id: u64) {
        let Some(known) = self.orders.get_mut(order) else { return };
        if known.identity.generation > 0 {
            return;
        }
        known.venue_id = order_id;
        let unfilled = OrderSnapshot { executed: 0, ..OrderSnapshot::of_order(known, OrderState::Working) };
        let snapshot = OrderSnapshot { leaves: known.terms.quantity, ..unfilled };
        self.orders.apply_acceptance(&snapshot);
    }

    fn reject(&mut self, asked: &RefusedRequest, refusal: &Refusal) {
        let text = self.reason_text(refusal);
        let Some(known) = self.orders.get(asked.order) else { return };
        let snapshot = OrderSnapshot::of_order(known, OrderState::Rejected);
        let (exec_type, request, reason) = (ExecType::Rejected, asked.request, refusal.reason());
        self.orders.push_end(&snapshot, &OrderEnd { exec_type, request, reason, times: (0, 0), text: &text });
    }

    fn answer_cancel(&mut self, request: &PendingRequest, outcome: &Result<Value, Refusal>) -> Result<(), String> {
        let asked = request.asked;
        let refusal = match outcome {
            Ok(answer) => return self.end_canceled(&asked, answer),
            Err(refusal) => refusal,
        };
        if let Some(known) = self.orders.get_mut(asked.order) {
            known.cancel = known.cancel.filter(|cancel| *cancel != asked.request);
        }
        if refusal.is_ambiguous() {
            self.orders.push_doubt_of(&asked);
        } else if refusal.code == CANCEL_REJECTED {
            self.find_out(asked, refusal);
        } else {
            let text = self.reason_text(refusal);
            self.orders.push_cancel_rejected(&asked, refusal.reason(), &text);
        }
        Ok(())
    }

    /// Ends a canceled order, if all of its fills were passed on. Otherwise the event of the cancel ends it, behind the
    /// events of the fills.
    fn end_canceled(&mut self, asked: &RefusedRequest, answer: &Value) -> Result<(), String> {
        let executed = json::executed(answer)?;
        let known = self.orders.get(asked.order).filter(|known| known.filled == executed);
        let Some(known) = known else { return Ok(()) };
        let snapshot = OrderSnapshot::of_order(known, OrderState::Canceled);
        let (exec_type, request, times) = (ExecType::Canceled, asked.request, (transact_ms(answer), 0));
        self.orders.push_end(&snapshot, &OrderEnd { exec_type, request, reason: 0, times, text: "" });
        Ok(())
    }

    fn answer_replace(&mut self, request: &PendingRequest, outcome: &Result<Value, Refusal>) -> Result<(), String> {
        let asked = request.asked;
        let replace = self.orders.get(asked.order).and_then(|known| known.replace);
        // Without a pending replace the events came first: its own, or those of the order's end.
        let Some(replace) = replace.filter(|replace| replace.request == asked.request) else { return Ok(()) };
        match (replace.step, outcome) {
            (ReplaceStep::Amend, Ok(answer)) => self.end_amended(&asked, answer),
            (ReplaceStep::Swap, Ok(answer)) => {
                let placed = answer.get("newOrderResponse").ok_or("a replacement has no order")?;
                self.begin_replacement(&replace, json::order_id(placed)?, transact_ms(placed));
                Ok(())
            }
            (ReplaceStep::Cancel, Ok(answer)) => self.begin_second_step(&asked, &replace, answer),
            (ReplaceStep::Swap, Err(refusal)) => {
                self.refuse_swap(&asked, refusal);
                Ok(())
            }
            (ReplaceStep::Amend | ReplaceStep::Cancel, Err(refusal)) => {
                self.refuse_replace(&asked, refusal);
                Ok(())
            }
            // The second step is a query, and a doubt ends by the status.
            (ReplaceStep::Place | ReplaceStep::Doubtful, _) => Ok(()),
        }
    }

    fn end_amended(&mut self, asked: &RefusedRequest, answer: &Value) -> Result<(), String> {
        let (execution_id, quantity) = json::amendment(answer)?;
        let Some(known) = self.orders.get(asked.order) else { return Ok(()) };
        let leaves = quantity.saturating_sub(known.filled).max(0);
        let snapshot = OrderSnapshot { leaves, ..OrderSnapshot::of_order(known, OrderState::Working) };
        self.orders.push_amendment(&snapshot, quantity, execution_id, (transact_ms(answer), 0));
        Ok(())
    }

    /// Continues an order with its replacement.
    fn begin_replacement(&mut self, replace: &PendingReplace, venue_id: u64, transact_ms: u64) {
        let Some(known) = self.orders.get(replace.identity.order) else { return };
        let snapshot = OrderSnapshot {
            identity: replace.identity,
            venue_id,
            price: replace.terms.price,
            executed: 0,
            leaves: replace.terms.quantity,
            ..OrderSnapshot::of_order(known, OrderState::Working)
        };
        self.orders.begin_generation(&snapshot, (transact_ms, 0));
    }

    /// Plans the second step of a replace with the quantity that the cancel has left.
    fn begin_second_step(
        &mut self,
        asked: &RefusedRequest,
        replace: &PendingReplace,
        answer: &Value,
    ) -> Result<(), String> {
        let executed = json::executed(answer)?;
        let Some(known) = self.orders.get_mut(asked.order) else { return Ok(()) };
        let identity = known.identity.next(executed);
        let rest = replace.total.saturating_sub(identity.base);
        if rest > 0 {
            let terms = OrderTerms { quantity: rest, ..replace.terms };
            known.replace = Some(PendingReplace { step: ReplaceStep::Place, identity, terms, ..*replace });
            self.orders.due.push_back(asked.order);
            return Ok(());
        }
        // The total is filled already, so that nothing is left to place.
        known.replace = None;
        let price = replace.terms.price;
        let snapshot = OrderSnapshot { executed, price, ..OrderSnapshot::of_order(known, OrderState::Filled) };
        let report = self.orders.report(&snapshot, ExecType::Replaced, asked.request);
        self.orders.outbox.report(report);
        self.orders.outbox.detail(detail(asked.order, (transact_ms(answer), 0), ""));
        self.orders.note_end(asked.order);
        Ok(())
    }

    /// Handles the refusal of a cancel and a new order in one request, of which one part may have worked.
    fn refuse_swap(&mut self, asked: &RefusedRequest, refusal: &Refusal) {
        let part = |name: &str| refusal.data.get(name).and_then(|part| json::part_refusal(part, refusal.status));
        let is_canceled = refusal.data.get("cancelResult").and_then(Value::as_str) == Some("SUCCESS");
        if !is_canceled {
            return self.refuse_replace(asked, &part("cancelResponse").unwrap_or_else(|| refusal.clone()));
        }
        match part("newOrderResponse") {
            Some(placed) if !placed.is_ambiguous() => {
                let text = self.reason_text(&placed);
                self.orders.end_unreplaced(asked.order, (0, 0), placed.reason(), &text);
            }
            _ => self.doubt_replace(asked.order),
        }
    }

    /// Handles the refusal of a replace that has changed nothing, unless the outcome is open.
    fn refuse_replace(&mut self, asked: &RefusedRequest, refusal: &Refusal) {
        if refusal.is_ambiguous() {
            return self.doubt_replace(asked.order);
        }
        self.orders.end_replace(asked.order);
        let is_unknown = matches!(refusal.code, CANCEL_REJECTED | NO_SUCH_ORDER);
        if is_unknown && !refusal.text.starts_with(RESTRICTED) {
            return self.find_out(*asked, refusal);
        }
        let text = self.reason_text(refusal);
        self.orders.push_cancel_rejected(asked, refusal.reason(), &text);
    }

    /// Puts an order with a replace in doubt: the next generation may be there or not. An amendment leaves no trace.
    fn doubt_replace(&mut self, order: u64) {
        let Some(known) = self.orders.get_mut(order) else { return };
        let instrument = known.instrument;
        let identity = known.identity;
        match &mut known.replace {
            Some(replace) if replace.step != ReplaceStep::Amend => {
                replace.step = ReplaceStep::Doubtful;
                if known.waiting_cancel.is_some() {
                    self.orders.due.push_back(order);
                }
            }
            _ => {
                self.orders.end_replace(order);
            }
        }
        self.orders.push_doubt(&identity, instrument);
    }

    /// Asks for an order whose cancel or replace was refused because the exchange does not work it, unless its end was
    /// reported.
    fn find_out(&mut self, asked: RefusedRequest, refusal: &Refusal) {
        if self.orders.get(asked.order).is_some_and(|known| known.is_end_reported) {
            let text = self.reason_text(refusal);
            return self.orders.push_cancel_rejected(&asked, TOO_LATE, &text);
        }
        let Some(place) = self.orders.instruments.find_symbol(asked.symbol) else { return };
        let purpose = JobPurpose::Refusal { reason: refusal.reason(), text: self.reason_text(refusal) };
        let job = OrderJob::new(purpose, asked, place, &self.orders);
        self.jobs.add(None, JobKind::Order(Box::new(job)));
    }

    fn pending_replace(&self, order: u64, step: ReplaceStep) -> Option<PendingReplace> {
        self.orders.get(order).and_then(|known| known.replace).filter(|replace| replace.step == step)
    }

    /// Returns the exchange's reason for a detail; a wrong time is explained by the measured offset.
    pub(crate) fn reason_text(&self, refusal: &Refusal) -> String {
        match refusal.code {
            INVALID_TIMESTAMP => format!("{}: {}", self.out.exchange.offset_text(), printable(&refusal.text)),
            _ => printable(&refusal.text),
        }
    }
}

/// Returns the time of the transaction in an answer, in milliseconds since the Unix epoch; zero without one.
fn transact_ms(answer: &Value) -> u64 {
    answer.get("transactTime").and_then(Value::as_u64).unwrap_or(0)
}
