//! The state of all orders: for each instrument the open orders, the orders and the fills of the day, and the fills that
//! open orders have from earlier days. An order that ended on an earlier day is left out.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use tickpath_market::{AccountId, ExecType, ExecutionReport, OrdStatus, StatusRequest, SymbolId};

use crate::encode::ListFrom;
use crate::identity::OrderIdentity;
use crate::job_query::{JobProgress, JobQuery};
use crate::json::{self, Listed};
use crate::message::{OrderRecord, Refusal, TradeRecord, UnreadableEntry};
use crate::order_job::is_passing;
use crate::orders::LineOrders;
use crate::reports::{OrderFill, OrderSnapshot, RefusedRequest};

const DAY_MS: u64 = 24 * 3_600_000;

/// A job about all orders.
pub(crate) struct ListJob {
    /// Id of the status request.
    request: u64,
    /// Begin of the exchange's day, in milliseconds since the Unix epoch.
    day_ms: u64,
    /// Place of the instrument that is asked for.
    instrument: usize,
    stage: ListStage,
    /// Orders by the exchange's ids.
    orders: BTreeMap<u64, OrderRecord>,
    trades: Vec<TradeRecord>,
    /// Orders and fills that cannot be read.
    unreadable: Vec<UnreadableEntry>,
    /// Orders of which fills are missing, by the exchange's ids.
    missing: Vec<u64>,
}

/// Query of the present instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListStage {
    Open,
    Day(ListFrom),
    Fills(ListFrom),
    /// Fills of the last missing order, from this trade on; zero for all.
    MissingFills(u64),
}

impl ListJob {
    pub(crate) fn new(request: &StatusRequest, now_ms: u64) -> Self {
        Self {
            request: request.client_order_id.0,
            day_ms: now_ms / DAY_MS * DAY_MS,
            instrument: 0,
            stage: ListStage::Open,
            orders: BTreeMap::new(),
            trades: Vec::new(),
            unreadable: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Returns the place of the instrument that is asked for.
    pub(crate) fn instrument(&self) -> usize {
        self.instrument
    }

    /// Returns the next query.
    pub(crate) fn query(&self) -> JobQuery {
        match self.stage {
            ListStage::Open => JobQuery::OpenOrders,
            ListStage::Day(from) => JobQuery::AllOrders(from),
            ListStage::Fills(from) => JobQuery::Trades { order_id: None, from: Some(from) },
            ListStage::MissingFills(from) => JobQuery::Trades {
                order_id: self.missing.last().copied(),
                from: (from > 0).then_some(ListFrom::Id(from)),
            },
        }
    }

    /// Takes the answer to the last query; the error is an answer that cannot be read.
    pub(crate) fn handle(
        &mut self,
        outcome: &Result<Value, Refusal>,
        orders: &mut LineOrders,
    ) -> Result<JobProgress, String> {
        let answer = match outcome {
            Ok(answer) => answer,
            Err(refusal) if is_passing(refusal) => return Ok(JobProgress::Pause),
            Err(refusal) => {
                self.report_end(refusal.reason(), orders);
                return Ok(JobProgress::Done);
            }
        };
        match self.stage {
            ListStage::Open => {
                self.add_orders(json::records(answer)?);
                self.stage = ListStage::Day(ListFrom::Time(self.day_ms));
                Ok(JobProgress::Continue)
            }
            ListStage::Day(_) => {
                let listed = json::records(answer)?;
                let next = listed.next_id;
                self.add_orders(listed);
                let fills = ListStage::Fills(ListFrom::Time(self.day_ms));
                self.stage = next.map_or(fills, |order_id| ListStage::Day(ListFrom::Id(order_id)));
                Ok(JobProgress::Continue)
            }
            ListStage::Fills(_) | ListStage::MissingFills(_) => self.take_fills(answer, orders),
        }
    }

    fn add_orders(&mut self, listed: Listed<OrderRecord>) {
        self.orders.extend(listed.entries.into_iter().map(|record| (record.order_id, record)));
        self.unreadable.extend(listed.unreadable);
    }

    fn take_fills(&mut self, answer: &Value, orders: &mut LineOrders) -> Result<JobProgress, String> {
        let listed = json::trades(answer)?;
        self.trades.extend(listed.entries);
        self.unreadable.extend(listed.unreadable);
        match (self.stage, listed.next_id) {
            (ListStage::MissingFills(_), Some(trade_id)) => self.stage = ListStage::MissingFills(trade_id),
            (ListStage::MissingFills(_), None) => {
                self.missing.pop();
                self.stage = ListStage::MissingFills(0);
            }
            (_, Some(trade_id)) => self.stage = ListStage::Fills(ListFrom::Id(trade_id)),
            (_, None) => {
                self.missing = self.orders_without_fills(orders);
                self.stage = ListStage::MissingFills(0);
            }
        }
        let is_complete = matches!(self.stage, ListStage::MissingFills(_)) && self.missing.is_empty();
        Ok(if is_complete { self.end_instrument(orders) } else { JobProgress::Continue })
    }

    /// Returns the orders whose listed fills do not add up, by the exchange's ids.
    fn orders_without_fills(&self, orders: &LineOrders) -> Vec<u64> {
        let mut filled: HashMap<u64, i64> = HashMap::new();
        for trade in &self.trades {
            let sum = filled.entry(trade.order_id).or_default();
            *sum = sum.saturating_add(trade.quantity);
        }
        let known = orders.by_venue_id(self.instrument);
        let lacks = |record: &&OrderRecord| filled.get(&record.order_id).copied().unwrap_or(0) < record.executed;
        let is_own = |record: &&OrderRecord| identity_of(&record.client, record.order_id, &known, orders).is_some();
        let own = self.orders.values().filter(is_own);
        own.filter(lacks).map(|record| record.order_id).collect()
    }

    /// Reports the orders of the instrument, and continues with the next one.
    fn end_instrument(&mut self, orders: &mut LineOrders) -> JobProgress {
        let known = orders.by_venue_id(self.instrument);
        self.report_unreadable(&known, orders);
        let mut generations: BTreeMap<u64, Vec<(OrderIdentity, &OrderRecord)>> = BTreeMap::new();
        for record in self.orders.values() {
            if let Some(identity) = identity_of(&record.client, record.order_id, &known, orders) {
                generations.entry(identity.order).or_default().push((identity, record));
            }
        }
        // A fill of the day is listed again among those of its order.
        self.trades.sort_unstable_by_key(|trade| (trade.id, trade.side));
        self.trades.dedup_by_key(|trade| (trade.id, trade.side));
        for list in generations.values_mut() {
            list.sort_unstable_by_key(|(identity, _)| identity.generation);
            for (identity, record) in list.iter() {
                self.report_fills(*identity, record, orders);
            }
            if let Some((identity, record)) = list.last() {
                self.report_status(*identity, record, orders);
            }
        }
        self.orders.clear();
        self.trades.clear();
        self.instrument += 1;
        self.stage = ListStage::Open;
        if self.instrument < orders.instruments.len() {
            return JobProgress::Continue;
        }
        self.report_end(0, orders);
        JobProgress::Done
    }

    /// Puts the orders in doubt of which something cannot be read.
    fn report_unreadable(&mut self, known: &HashMap<u64, OrderIdentity>, orders: &mut LineOrders) {
        let mut unreadable = std::mem::take(&mut self.unreadable);
        // A fill of the day is listed again among those of its order.
        unreadable.sort_by(|a, b| a.name.cmp(&b.name));
        unreadable.dedup_by(|a, b| a.name == b.name);
        for entry in unreadable {
            let order_id = entry.order_id.unwrap_or(0);
            let client = self.orders.get(&order_id).map_or(&entry.client, |record| &record.client);
            if let Some(identity) = identity_of(client, order_id, known, orders) {
                orders.push_unreadable(&identity, self.instrument, &entry.name, &entry.why);
            }
        }
    }

    fn report_fills(&self, identity: OrderIdentity, record: &OrderRecord, orders: &mut LineOrders) {
        let Some(state) = record.state else { return };
        let snapshot = OrderSnapshot::of_record(record, state, identity, self.instrument);
        let mut executed = 0_i64;
        for trade in self.trades.iter().filter(|trade| trade.order_id == record.order_id) {
            executed = executed.saturating_add(trade.quantity);
            let fill = OrderFill::of_trade(trade, snapshot, executed, record.terms.quantity);
            orders.push_fill(&fill, self.request, true);
        }
    }

    fn report_status(&self, identity: OrderIdentity, record: &OrderRecord, orders: &mut LineOrders) {
        let report = match record.state {
            Some(state) => {
                let snapshot = OrderSnapshot::of_record(record, state, identity, self.instrument);
                orders.report(&snapshot, ExecType::OrderStatus, self.request)
            }
            None => {
                let symbol = orders.instruments.get(self.instrument).symbol;
                let (order, account) = (identity.order, identity.account);
                let unknown = RefusedRequest { order, request: self.request, symbol, account };
                let report = orders.refusal(&unknown, ExecType::OrderStatus);
                ExecutionReport { status: OrdStatus::Unknown.code(), ..report }
            }
        };
        orders.outbox.report(report);
    }

    /// Reports the end of the list, or why there is none.
    fn report_end(&self, reason: u16, orders: &mut LineOrders) {
        let (symbol, account) = (SymbolId::default(), AccountId::default());
        let nothing = RefusedRequest { order: 0, request: self.request, symbol, account };
        let report = orders.refusal(&nothing, ExecType::OrderStatus);
        let status = OrdStatus::New.code();
        orders.outbox.report(ExecutionReport { reason, status, ..report });
    }
}

/// Returns the order of this OMS with this text or this id of the exchange. A cancel from elsewhere has given it a
/// foreign text.
fn identity_of(
    client: &str,
    order_id: u64,
    known: &HashMap<u64, OrderIdentity>,
    orders: &LineOrders,
) -> Option<OrderIdentity> {
    let by_text = OrderIdentity::read(client.as_bytes(), orders.tag).map(|(_, identity)| identity);
    by_text.or_else(|| known.get(&order_id).copied())
}
