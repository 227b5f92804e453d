//! Requests of the line itself, within the limits: the steps of a connect, second steps of replaces, cancels that waited
//! for a replace, and the queries of its jobs.

use serde_json::Value;
use tickpath_clock::Clock;
use tickpath_settings::bind_account;
use tickpath_web_client::WebSocketClient;

use crate::budget::{RequestCost, Urgency};
use crate::connect_steps::ConnectStep;
use crate::encode::{ListFrom, PlacedOrder};
use crate::identity::{OrderIdentity, TextUse};
use crate::json;
use crate::message::{INVALID_TIMESTAMP, OrderState, Refusal};
use crate::order_job::JobTime;
use crate::orders::{LineOrder, ReplaceStep};
use crate::outgoing::{QueryPurpose, SentQuery};
use crate::reports::{OrderFill, OrderSnapshot, RefusedRequest};
use crate::session::{LineSession, Phase};

/// Pause before a query is repeated.
const RETRY_NS: u64 = 500_000_000;
const MS_NS: u64 = 1_000_000;
/// The second step of a replace was paid for with the first.
const PAID: RequestCost = RequestCost::weight(Urgency::Cancel, 0);
const TIME: RequestCost = RequestCost::weight(Urgency::Query, 1);

impl LineSession {
    /// Sends what is due, and returns the number of requests.
    #[inline]
    pub(crate) fn send_due(&mut self, client: &mut WebSocketClient, now: u64) -> usize {
        match &self.phase {
            Phase::Connecting { .. } => self.send_steps(client, now),
            Phase::Up { .. } | Phase::Draining { .. } => {
                let changes = if self.orders.due.is_empty() { 0 } else { self.send_changes(client, now) };
                let jobs = if self.jobs.is_empty() { 0 } else { self.send_jobs(client, now) };
                let time = if self.is_time_due { self.send_time(client, now) } else { 0 };
                changes + jobs + time
            }
            Phase::Down | Phase::Refused(_) => 0,
        }
    }

    /// Handles the answer to a query. The error is the reason to end the connection.
    pub(crate) fn answer_query(
        &mut self,
        query: SentQuery,
        outcome: &Result<Value, Refusal>,
        now: u64,
    ) -> Result<(), String> {
        match query.purpose {
            QueryPurpose::Connect(step) => self.answer_step(step, query.sent, outcome, now),
            QueryPurpose::Time => {
                if let Some(server_ms) = outcome.as_ref().ok().and_then(json::server_ms) {
                    self.out.exchange.measure(server_ms, query.sent, now);
                }
                Ok(())
            }
            QueryPurpose::Place(order) => self.answer_second_step(order, outcome),
            QueryPurpose::Job(job) => {
                if let Some(number) = self.jobs.number(job) {
                    self.settle_here(number);
                }
                let window_ns = u64::from(self.bounds.recv_window_ms) * MS_NS + self.bounds.absence_margin_ns;
                let calibration = self.clock.calibration();
                let time = JobTime { absence_ticks: calibration.ticks_of_ns(window_ns), now };
                let pause = calibration.ticks_of_ns(RETRY_NS);
                self.jobs.handle(job, outcome, &mut self.orders, (time, pause))
            }
        }
    }

    fn send_steps(&mut self, client: &mut WebSocketClient, now: u64) -> usize {
        let mut sent = 0;
        while let Some(step) = self.connect.next() {
            // The first step pays for the connection as well.
            let weight = match step {
                ConnectStep::Time => 3,
                ConnectStep::Logon | ConnectStep::Subscribe => 2,
                ConnectStep::OpenOrders(_) => 6,
                ConnectStep::Trades(..) | ConnectStep::Account => 20,
            };
            let instruments = &self.orders.instruments;
            let cost = RequestCost::weight(Urgency::Query, weight);
            let is_sent =
                self.out.send_query(client, cost, QueryPurpose::Connect(step), now, |encoder, id, ms| match step {
                    ConnectStep::Time => encoder.time(id),
                    ConnectStep::Logon => encoder.logon(id, ms),
                    ConnectStep::Account => encoder.account(id, ms),
                    ConnectStep::Subscribe => encoder.subscribe(id, ms),
                    ConnectStep::OpenOrders(place) => encoder.open_orders(id, &instruments.get(place).name, ms),
                    ConnectStep::Trades(place, from) => {
                        encoder.trades(id, &instruments.get(place).name, None, Some(from), ms);
                    }
                });
            if !is_sent {
                break;
            }
            self.connect.note_sent();
            sent += 1;
        }
        sent
    }

    fn answer_step(
        &mut self,
        step: ConnectStep,
        sent: u64,
        outcome: &Result<Value, Refusal>,
        now: u64,
    ) -> Result<(), String> {
        let answer = outcome.as_ref().map_err(|refusal| {
            let offset = match refusal.code {
                INVALID_TIMESTAMP => format!(" ({})", self.out.exchange.offset_text()),
                _ => String::new(),
            };
            format!("the exchange refuses the {}: {}{offset}", step.name(), refusal.sentence())
        })?;
        match step {
            ConnectStep::Time => {
                let server_ms = json::server_ms(answer).ok_or("the exchange's time cannot be read")?;
                self.out.exchange.measure(server_ms, sent, now);
            }
            ConnectStep::Logon | ConnectStep::Subscribe => {}
            ConnectStep::Account => self.check_account(answer)?,
            ConnectStep::OpenOrders(place) => self.learn_open_orders(place, answer)?,
            ConnectStep::Trades(place, _) => self.take_missed_fills(place, answer)?,
        }
        self.connect.note_done(step);
        Ok(())
    }

    /// Compares the account of the key with that of the orders: another one would not know them.
    fn check_account(&self, answer: &Value) -> Result<(), String> {
        let Some(file) = &self.bounds.account_file else { return Ok(()) };
        let uid = answer.get("uid").and_then(Value::as_u64).ok_or("the exchange's account has no uid")?;
        bind_account(file, &format!("binance {uid}")).map_err(|e| e.to_string())
    }

    /// Notes the open orders of this OMS.
    fn learn_open_orders(&mut self, place: usize, answer: &Value) -> Result<(), String> {
        let listed = json::records(answer)?;
        for record in listed.entries {
            if let Some(identity) = self.open_order(&record.client) {
                self.orders.settle(identity, place, &record, record.state.unwrap_or(OrderState::Working));
            }
        }
        for entry in listed.unreadable {
            if let Some(identity) = self.open_order(&entry.client) {
                self.orders.push_unreadable(&identity, place, &entry.name, &entry.why);
            }
        }
        Ok(())
    }

    /// Returns the open order of this OMS that has a text.
    fn open_order(&self, text: &str) -> Option<OrderIdentity> {
        let (text_use, identity) = OrderIdentity::read(text.as_bytes(), self.orders.tag)?;
        (text_use == TextUse::Order).then_some(identity)
    }

    /// Adds the fills that the line has missed to the reports of the connection. Those of orders that are not known here
    /// come with the answers to the OMS's own questions.
    fn take_missed_fills(&mut self, place: usize, answer: &Value) -> Result<(), String> {
        let listed = json::trades(answer)?;
        if let Some(trade_id) = listed.next_id {
            self.connect.add(ConnectStep::Trades(place, ListFrom::Id(trade_id)));
        }
        let by_venue_id = self.orders.by_venue_id(place);
        for trade in listed.entries {
            let Some(identity) = by_venue_id.get(&trade.order_id) else { continue };
            let Some(known) = self.orders.get(identity.order) else { continue };
            let filled = known.filled_of(identity).unwrap_or(0).saturating_add(trade.quantity);
            let (venue_id, total) = (trade.order_id, known.total().saturating_sub(identity.base));
            let present = OrderSnapshot::of_order(known, OrderState::Working);
            let snapshot = OrderSnapshot { identity: *identity, venue_id, ..present };
            let fill = OrderFill::of_trade(&trade, snapshot, filled, total);
            self.orders.push_fill(&fill, 0, false);
        }
        for entry in listed.unreadable {
            if let Some(identity) = entry.order_id.and_then(|order_id| by_venue_id.get(&order_id)) {
                self.orders.push_unreadable(identity, place, &entry.name, &entry.why);
            }
        }
        Ok(())
    }

    /// Takes the next step of each order that has one due.
    fn send_changes(&mut self, client: &mut WebSocketClient, now: u64) -> usize {
        let mut sent = 0;
        for _ in 0..self.orders.due.len() {
            let Some(order) = self.orders.due.pop_front() else { break };
            let Some(known) = self.orders.get(order) else { continue };
            let is_done = match (known.replace.map(|replace| replace.step), known.waiting_cancel) {
                (Some(ReplaceStep::Place), _) => self.send_second_step(client, order, now),
                (Some(ReplaceStep::Amend | ReplaceStep::Swap | ReplaceStep::Cancel), _) | (_, None) => true,
                (Some(ReplaceStep::Doubtful) | None, Some(waiting)) => {
                    self.send_waiting_cancel(client, order, waiting, now)
                }
            };
            if is_done {
                sent += 1;
            } else {
                self.orders.due.push_back(order);
            }
        }
        sent
    }

    fn send_second_step(&mut self, client: &mut WebSocketClient, order: u64, now: u64) -> bool {
        let purpose = QueryPurpose::Place(order);
        let Some(LineOrder { replace: Some(replace), instrument, .. }) = self.orders.get(order) else { return true };
        if self.out.is_asking(purpose) {
            return true;
        }
        let symbol = &self.orders.instruments.get(*instrument).name;
        let text = replace.identity.text(self.orders.tag, TextUse::Order);
        let placed = PlacedOrder { symbol, text: text.as_str(), terms: &replace.terms };
        let is_sent = self.out.send_query(client, PAID, purpose, now, |encoder, id, ms| encoder.place(id, &placed, ms));
        if is_sent && let Some(known) = self.orders.get_mut(order) {
            known.last_sent = now;
        }
        is_sent
    }

    fn send_waiting_cancel(
        &mut self,
        client: &mut WebSocketClient,
        order: u64,
        (number, request): (u64, u64),
        now: u64,
    ) -> bool {
        let Some(known) = self.orders.get(order) else { return true };
        let symbol = self.orders.instruments.get(known.instrument).symbol;
        let asked = RefusedRequest { order, request, symbol, account: known.identity.account };
        let has_ended = known.has_ended;
        if has_ended {
            self.orders.push_too_late(order, request);
            self.settle_here(number);
        } else {
            match self.send_cancel_of(client, number, &asked, now) {
                Ok(stamps) => self.last_send = stamps,
                // The next poll reports a lost connection, and tries a full one again.
                Err(_) => return false,
            }
            self.pending.note_sent(number, now);
        }
        if let Some(known) = self.orders.get_mut(order) {
            known.waiting_cancel = None;
        }
        true
    }

    fn send_jobs(&mut self, client: &mut WebSocketClient, now: u64) -> usize {
        let Self { jobs, orders, pending, out, .. } = self;
        let waits = |order: u64| {
            let is_changing =
                |known: &LineOrder| known.replace.is_some_and(|replace| replace.step != ReplaceStep::Doubtful);
            pending.is_in_flight(order) || orders.get(order).is_some_and(is_changing)
        };
        let mut sent = 0;
        for (job, place, query) in jobs.due(orders, now, waits) {
            let symbol = &orders.instruments.get(place).name;
            let purpose = QueryPurpose::Job(job);
            let is_sent = out
                .send_query(client, query.cost(), purpose, now, |encoder, id, ms| query.write(encoder, id, symbol, ms));
            if !is_sent {
                break;
            }
            jobs.note_asking(job);
            sent += 1;
        }
        sent
    }

    fn send_time(&mut self, client: &mut WebSocketClient, now: u64) -> usize {
        let is_sent = self.out.send_query(client, TIME, QueryPurpose::Time, now, |encoder, id, _| encoder.time(id));
        self.is_time_due = !is_sent;
        usize::from(is_sent)
    }
}
