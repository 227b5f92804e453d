//! Pushes of the private channels: the desk's events, in their order, with the faults of a real exchange.
//!
//! ```text
//!   SimDesk ── DeskEvent ──> settle ──> records, positions, market
//!                              └──> PushQueue ── late, twice ──> connections of the account
//! ```

use std::collections::{BTreeSet, VecDeque};
use std::mem;

use serde_json::{Value, json};
use tickpath_venue_sim_web::{DeskEvent, DeskFill, DeskOrder, DeskState, OrderName};

use crate::account_rows::{balance_row, cash_rows};
use crate::audience::Audience;
use crate::channels::OkxChannel;
use crate::codes::AMEND_BALANCE;
use crate::fields::ms_text;
use crate::market::MarketBoard;
use crate::order_rows::{OrderChange, push_fill_row, push_row};
use crate::positions::short_row;
use crate::trading_desk::{FailedAmend, TradingDesk};

/// `amendResult` of an amendment that has succeeded.
const AMENDED: &str = "0";
/// `amendResult` of an amendment that has failed behind its acknowledgement.
const NOT_AMENDED: &str = "-1";
/// `amendResult` of an order that was canceled because its amendment has failed.
const CANCELED_INSTEAD: &str = "1";

/// Pushes that are not sent.
#[derive(Debug, Default)]
pub(crate) struct PushQueue {
    pushes: VecDeque<PendingPush>,
}

#[derive(Debug, Clone)]
struct PendingPush {
    due_ns: u64,
    account: usize,
    channel: OkxChannel,
    /// Index of the instrument; none for events of the whole account.
    instrument: Option<usize>,
    row: Value,
}

/// Takes the events of the desk, and queues their pushes.
pub(crate) fn settle(desk: &mut TradingDesk, market: &mut MarketBoard, queue: &mut PushQueue, now_ns: u64) {
    let due_ns = now_ns + desk.faults.late_push_ms * 1_000_000;
    let mut settlement = Settlement { desk, market, queue, now_ns, due_ns, touched: BTreeSet::new() };
    settlement.take_events("");
    for order in mem::take(&mut settlement.desk.canceled_arrivals) {
        settlement.take_order(order, None, "");
    }
    for failed in mem::take(&mut settlement.desk.failed_amends) {
        settlement.fail_amend(&failed);
    }
    settlement.push_accounts();
}

impl PushQueue {
    /// Sends the pushes that are due. Returns the number of messages.
    pub(crate) fn deliver(&mut self, desk: &TradingDesk, audience: &mut Audience<'_, '_>) -> usize {
        let mut sent = 0;
        while self.pushes.front().is_some_and(|push| push.due_ns <= audience.now_ns) {
            let Some(push) = self.pushes.pop_front() else { break };
            let instrument = push.instrument.map(|index| (index, &desk.sim.instruments()[index]));
            sent += audience.push(push.account, push.channel, instrument, &push.row);
        }
        sent
    }
}

/// The events of a moment.
struct Settlement<'a> {
    desk: &'a mut TradingDesk,
    market: &'a mut MarketBoard,
    queue: &'a mut PushQueue,
    now_ns: u64,
    due_ns: u64,
    /// Accounts with an event.
    touched: BTreeSet<usize>,
}

impl Settlement<'_> {
    fn take_events(&mut self, amend_result: &'static str) {
        for event in self.desk.sim.take_events() {
            match event {
                DeskEvent::Order(order, _, fill) => self.take_order(order, fill, amend_result),
                DeskEvent::Trade(trade) => self.market.note_trade(trade, &self.desk.sim),
                DeskEvent::Quote(index) | DeskEvent::Book(index) => self.market.note_change(index),
            }
        }
    }

    /// Takes an event of an order. `amend_result` is empty unless an amendment has failed.
    fn take_order(&mut self, order: DeskOrder, fill: Option<DeskFill>, amend_result: &'static str) {
        let (id, account, index) = (order.id, order.account, order.instrument);
        let is_derivative = self.desk.sim.instruments()[index].is_derivative;
        let is_amended = self.desk.records.apply(order, fill.as_ref(), is_derivative);
        let amend_result = if is_amended { AMENDED } else { amend_result };
        self.push_order(id, &OrderChange { fill: fill.as_ref(), amend_result, failure: None });
        if let Some(fill) = &fill {
            let is_filled = self.desk.records.get(id).is_some_and(|record| record.order.state == DeskState::Filled);
            if is_filled && self.desk.dice.happens(self.desk.faults.zero_fill_push) {
                self.push_order(id, &OrderChange::default());
            }
            self.push_fill(account, fill);
        }
        self.touched.insert(account);
    }

    fn fail_amend(&mut self, failed: &FailedAmend) {
        let Some(record) = self.desk.records.get_mut(failed.order) else { return };
        record.request_id.clone_from(&failed.request_id);
        let account = record.order.account;
        if failed.cancels {
            // An order that has ended meanwhile stays as it is.
            let _ = self.desk.sim.cancel(self.now_ns, account, OrderName::Exchange(failed.order));
            return self.take_events(CANCELED_INSTEAD);
        }
        let failure = Some((AMEND_BALANCE.number, AMEND_BALANCE.text));
        self.push_order(failed.order, &OrderChange { fill: None, amend_result: NOT_AMENDED, failure });
    }

    fn push_order(&mut self, id: u64, change: &OrderChange<'_>) {
        let Some(record) = self.desk.records.get(id) else { return };
        let index = record.order.instrument;
        let last = self.market.last_price(index, &self.desk.sim);
        let row = push_row(record, &self.desk.sim.instruments()[index], change, last);
        let account = record.order.account;
        if self.desk.dice.happens(self.desk.faults.duplicate_push) {
            self.push(account, OkxChannel::Orders, Some(index), row.clone());
        }
        self.push(account, OkxChannel::Orders, Some(index), row);
    }

    fn push_fill(&mut self, account: usize, fill: &DeskFill) {
        let index = fill.instrument;
        let instrument = &self.desk.sim.instruments()[index];
        if let Some(record) = self.desk.records.get(fill.order) {
            let row = push_fill_row(fill, record, instrument);
            self.push(account, OkxChannel::Fills, Some(index), row);
        }
        let mut positions = Vec::new();
        if self.desk.sim.instruments()[index].is_derivative {
            self.desk.positions.apply(account, fill);
            positions = self.desk.positions.rows(account, &self.desk.sim, self.now_ns, |own, _| own == index);
            self.push(account, OkxChannel::Positions, Some(index), Value::Array(positions.clone()));
        }
        let row = json!([{
            "pTime": ms_text(self.now_ns),
            "eventType": "filled",
            "balData": cash_rows(&self.desk.sim, account, self.now_ns),
            "posData": positions.iter().map(short_row).collect::<Vec<_>>(),
            "trades": [{
                "instId": self.desk.sim.instruments()[index].name,
                "tradeId": fill.trade_id.to_string(),
            }],
        }]);
        self.push(account, OkxChannel::BalanceAndPosition, None, row);
    }

    fn push_accounts(&mut self) {
        for account in mem::take(&mut self.touched) {
            let row = balance_row(&self.desk.sim, account, &[], self.now_ns);
            self.push(account, OkxChannel::Account, None, row);
        }
    }

    fn push(&mut self, account: usize, channel: OkxChannel, instrument: Option<usize>, row: Value) {
        self.queue.pushes.push_back(PendingPush { due_ns: self.due_ns, account, channel, instrument, row });
    }
}
