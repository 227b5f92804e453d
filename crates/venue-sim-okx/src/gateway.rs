//! Messages of a WebSocket: logins, subscriptions and order operations.

use serde_json::{Value, json};
use tickpath_venue_sim_web::ConnectionId;

use crate::account_rows::{balance_row, cash_rows};
use crate::audience::{Audience, row_message};
use crate::channels::{ChannelSubscription, EndPoint, OkxChannel};
use crate::codes::{
    EXPIRED_REQUEST, ILLEGAL_REQUEST, INVALID_ARGUMENTS, LOGIN_NEEDED, LOGIN_REPEATED, OkxRefusal, PARAMETER,
    TOO_MANY_ORDERS, UNKNOWN_OPERATION, WRONG_URL,
};
use crate::exchange_clock::ExchangeClock;
use crate::fields::{Row, is_client_text, ms_text, row, text_field};
use crate::instruments::instrument_row;
use crate::limits::OrderOperation;
use crate::market::MarketBoard;
use crate::orders::{MAX_BATCH, OrderCaller, mass_cancel, operate, summary_code};
use crate::place_terms::MAX_ID_BYTES;
use crate::positions::short_row;
use crate::trading_desk::TradingDesk;

/// Max connections of an account with one private channel.
const MAX_CHANNEL_CONNECTIONS: usize = 30;
/// Code of the close frame behind a failed login.
const LOGIN_FAILED_CLOSE: u16 = 4001;

/// Order operations: name, operation, and whether it takes several orders.
const OPERATIONS: [(&str, OrderOperation, bool); 6] = [
    ("order", OrderOperation::Place, false),
    ("batch-orders", OrderOperation::Place, true),
    ("amend-order", OrderOperation::Amend, false),
    ("batch-amend-orders", OrderOperation::Amend, true),
    ("cancel-order", OrderOperation::Cancel, false),
    ("batch-cancel-orders", OrderOperation::Cancel, true),
];

/// A message of a connection, and all that it may reach.
pub(crate) struct Gateway<'a, 'b> {
    pub(crate) id: ConnectionId,
    pub(crate) desk: &'a mut TradingDesk,
    pub(crate) market: &'a mut MarketBoard,
    pub(crate) audience: Audience<'a, 'b>,
    pub(crate) clock: ExchangeClock,
}

/// Rows of an answer to an order operation, with its code.
type OperationRows = Result<(&'static str, Value), OkxRefusal>;

impl Gateway<'_, '_> {
    /// Handles a message. Returns whether it was an order operation that succeeded, at least in part.
    pub(crate) fn handle(&mut self, text: &str) -> bool {
        let request = serde_json::from_str::<Value>(text).unwrap_or_default();
        let request_id = text_field(&request, "id");
        let operation = text_field(&request, "op").unwrap_or_default();
        let known = OPERATIONS.iter().find(|(name, _, _)| *name == operation);
        let done = match (operation.as_str(), known) {
            ("login", _) => self.log_in(&request),
            ("subscribe" | "unsubscribe", _) => self.change_subscriptions(&request, &operation, text),
            (_, Some((_, work, is_batch))) => {
                return self.handle_orders(&request, text, &mut |gateway, caller, orders| {
                    gateway.operate(*work, *is_batch, &request, caller, orders)
                });
            }
            ("mass-cancel", None) => {
                return self.handle_orders(&request, text, &mut |gateway, caller, orders| {
                    mass_cancel(gateway.desk, &caller, &orders[0]).map(|rows| ("0", rows))
                });
            }
            ("", None) => Err(ILLEGAL_REQUEST.about(text)),
            (other, None) => Err(UNKNOWN_OPERATION.about(other)),
        };
        if let Err(refusal) = done {
            self.refuse(request_id.as_deref(), &refusal);
        }
        false
    }

    fn log_in(&mut self, request: &Value) -> Result<(), OkxRefusal> {
        let now_ns = self.audience.now_ns;
        let Some(session) = self.audience.sessions.get_mut(&self.id) else { return Ok(()) };
        session.count_request(now_ns)?;
        match session.log_in(&request["args"], self.desk.sim.accounts(), now_ns) {
            Ok(()) => self.audience.send_event(self.id, row([("event", "login"), ("code", "0"), ("msg", "")])),
            Err(refusal) if refusal.code == LOGIN_REPEATED => return Err(refusal),
            Err(refusal) => {
                self.refuse(None, &refusal);
                self.audience.out.close(self.id, LOGIN_FAILED_CLOSE, "Login Failed");
            }
        }
        Ok(())
    }

    /// Handles a subscribe or unsubscribe request; each of its arguments has an answer of its own.
    fn change_subscriptions(&mut self, request: &Value, operation: &str, text: &str) -> Result<(), OkxRefusal> {
        let now_ns = self.audience.now_ns;
        let Some(session) = self.audience.sessions.get_mut(&self.id) else { return Ok(()) };
        session.count_request(now_ns)?;
        let arguments = request["args"].as_array().filter(|arguments| !arguments.is_empty());
        let request_id = text_field(request, "id");
        for argument in arguments.ok_or_else(|| ILLEGAL_REQUEST.about(text))? {
            let changed =
                ChannelSubscription::read(argument, text, &self.desk.sim).and_then(|subscription| match operation {
                    "subscribe" => self.subscribe(subscription, request_id.as_deref()),
                    _ => self.unsubscribe(&subscription, request_id.as_deref()),
                });
            if let Err(refusal) = changed {
                self.refuse(request_id.as_deref(), &refusal);
            }
        }
        Ok(())
    }

    fn subscribe(&mut self, subscription: ChannelSubscription, request_id: Option<&str>) -> Result<(), OkxRefusal> {
        let Some(session) = self.audience.sessions.get(&self.id) else { return Ok(()) };
        let account = session.account;
        subscription.check(session.end_point, account.is_some())?;
        let at = subscription.instrument().map(|index| (index, &self.desk.sim.instruments()[index]));
        let is_heard = at.is_some_and(|at| self.audience.has_listeners(subscription.channel, at));
        self.remove(&subscription);
        if let Some(session) = self.audience.sessions.get_mut(&self.id) {
            session.subscriptions.push(subscription.clone());
        }
        self.acknowledge("subscribe", &subscription, request_id);
        if let Some(account) = account.filter(|_| subscription.channel.is_counted())
            && !self.count_connections(account, &subscription)
        {
            return Ok(());
        }
        self.send_first(&subscription, account, is_heard);
        Ok(())
    }

    fn unsubscribe(&mut self, subscription: &ChannelSubscription, request_id: Option<&str>) -> Result<(), OkxRefusal> {
        self.remove(subscription);
        self.acknowledge("unsubscribe", subscription, request_id);
        Ok(())
    }

    fn remove(&mut self, subscription: &ChannelSubscription) {
        if let Some(session) = self.audience.sessions.get_mut(&self.id) {
            session.subscriptions.retain(|own| own != subscription);
        }
    }

    fn acknowledge(&mut self, event: &str, subscription: &ChannelSubscription, request_id: Option<&str>) {
        let mut event = row([("event", event)]);
        event.insert("arg".to_owned(), Value::Object(subscription.argument.clone()));
        self.audience.send_event(self.id, with_id(event, request_id));
    }

    /// Sends the number of the account's connections with a channel. One too many loses its subscription.
    fn count_connections(&mut self, account: usize, subscription: &ChannelSubscription) -> bool {
        let channel = subscription.channel;
        let of_account = self.audience.sessions.values().filter(|session| session.account == Some(account));
        let count = of_account.filter(|session| session.subscriptions.iter().any(|own| own.channel == channel)).count();
        let is_in_limit = count <= MAX_CHANNEL_CONNECTIONS;
        let event = if is_in_limit { "channel-conn-count" } else { "channel-conn-count-error" };
        let count = count.min(MAX_CHANNEL_CONNECTIONS).to_string();
        let event = row([("event", event), ("channel", channel.name()), ("connCount", &count)]);
        self.audience.send_event(self.id, event);
        if !is_in_limit {
            self.remove(subscription);
        }
        is_in_limit
    }

    /// Sends what a channel has at its begin.
    fn send_first(&mut self, subscription: &ChannelSubscription, account: Option<usize>, is_heard: bool) {
        let (channel, now_ns) = (subscription.channel, self.audience.now_ns);
        let sim = &self.desk.sim;
        let all = || sim.instruments().iter().enumerate();
        let text = match (channel, account) {
            (OkxChannel::Instruments, _) => {
                let wanted = all().filter(|at| subscription.has(channel, Some(*at)));
                let rows = wanted.map(|(index, instrument)| instrument_row(instrument, sim.is_suspended(index)));
                Some(row_message(subscription, None, &rows.collect(), true))
            }
            (OkxChannel::Account, Some(account)) => {
                let rows = json!([balance_row(sim, account, &[], now_ns)]);
                Some(row_message(subscription, Some(account), &rows, true))
            }
            (OkxChannel::Positions, Some(account)) => {
                let rows = self.desk.positions.rows(account, sim, now_ns, |index, is_open| {
                    is_open && subscription.has(channel, Some((index, &sim.instruments()[index])))
                });
                Some(row_message(subscription, Some(account), &Value::Array(rows), true))
            }
            (OkxChannel::BalanceAndPosition, Some(account)) => {
                let positions = self.desk.positions.rows(account, sim, now_ns, |_, is_open| is_open);
                let positions: Vec<Value> = positions.iter().map(short_row).collect();
                let mut first = row([("pTime", &ms_text(now_ns)), ("eventType", "snapshot")]);
                first.insert("balData".to_owned(), Value::Array(cash_rows(sim, account, now_ns)));
                first.insert("posData".to_owned(), Value::Array(positions));
                first.insert("trades".to_owned(), json!([]));
                Some(row_message(subscription, Some(account), &Value::Object(first), true))
            }
            _ => subscription.instrument().and_then(|index| {
                let at = (index, &sim.instruments()[index]);
                self.market.first_message(channel, at, sim, now_ns, is_heard)
            }),
        };
        if let Some(text) = text {
            self.audience.send(self.id, &text);
        }
    }

    /// Handles an order operation: checks what all of them need, and answers. Returns whether it has succeeded.
    fn handle_orders(
        &mut self,
        request: &Value,
        text: &str,
        work: &mut dyn FnMut(&mut Self, OrderCaller, &[Value]) -> OperationRows,
    ) -> bool {
        let request_id = text_field(request, "id").filter(|id| is_client_text(id, MAX_ID_BYTES));
        let Some(session) = self.audience.sessions.get(&self.id) else { return false };
        let refusal = match (session.end_point, session.account, &request_id) {
            (EndPoint::Public | EndPoint::Business, _, _) => Some(WRONG_URL.refusal()),
            (EndPoint::Private, None, _) => Some(LOGIN_NEEDED.refusal()),
            (EndPoint::Private, Some(_), None) => Some(ILLEGAL_REQUEST.about(text)),
            (EndPoint::Private, Some(_), Some(_)) => None,
        };
        if let Some(refusal) = refusal {
            self.refuse(request_id.as_deref(), &refusal);
            return false;
        }
        let (account, now_ns) = (session.account.unwrap_or_default(), self.audience.now_ns);
        let orders = request["args"].as_array().map(Vec::as_slice).unwrap_or_default();
        let caller = OrderCaller { account, now_ns, is_batch: orders.len() > 1 };
        let is_well_formed = !orders.is_empty() && orders.iter().all(Value::is_object);
        let done = if is_well_formed { work(self, caller, orders) } else { Err(INVALID_ARGUMENTS.refusal()) };
        let (code, message, rows) = match done {
            Ok((code, rows)) => (code, String::new(), rows),
            Err(refusal) => (refusal.code.number, refusal.text, json!([])),
        };
        let mut answer = row([
            ("id", &request_id.unwrap_or_default()),
            ("op", &text_field(request, "op").unwrap_or_default()),
            ("code", code),
            ("msg", &message),
            ("inTime", &(now_ns / 1_000).to_string()),
            ("outTime", &(self.clock.now_ns() / 1_000).to_string()),
        ]);
        answer.insert("data".to_owned(), rows);
        self.audience.send(self.id, &Value::Object(answer).to_string());
        matches!(code, "0" | "2")
    }

    fn operate(
        &mut self,
        operation: OrderOperation,
        is_batch: bool,
        request: &Value,
        caller: OrderCaller,
        orders: &[Value],
    ) -> OperationRows {
        match orders.len() {
            1 => {}
            2..=MAX_BATCH if is_batch => {}
            _ if is_batch => return Err(TOO_MANY_ORDERS.about(&MAX_BATCH.to_string())),
            _ => return Err(INVALID_ARGUMENTS.refusal()),
        }
        if let Some(text) = text_field(request, "expTime").filter(|_| operation != OrderOperation::Cancel) {
            let deadline_ms: u64 = text.parse().map_err(|_| PARAMETER.about("expTime"))?;
            if deadline_ms < caller.now_ns / 1_000_000 {
                return Err(EXPIRED_REQUEST.refusal());
            }
        }
        let replies = operate(self.desk, caller, operation, orders);
        Ok((summary_code(&replies), replies.iter().map(|reply| reply.row()).collect()))
    }

    fn refuse(&mut self, request_id: Option<&str>, refusal: &OkxRefusal) {
        let event = row([("event", "error"), ("code", refusal.code.number), ("msg", &refusal.text)]);
        self.audience.send_event(self.id, with_id(event, request_id));
    }
}

fn with_id(mut event: Row, request_id: Option<&str>) -> Row {
    if let Some(id) = request_id {
        event.insert("id".to_owned(), Value::from(id));
    }
    event
}
