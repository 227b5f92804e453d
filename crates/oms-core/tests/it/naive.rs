//! The rules again, written as plainly as possible: every order keeps all its events, and each state is recomputed from
//! the first event. Only the messages are shared with the core.

mod conditional;
mod contract;
mod fills;
mod operate;
mod order_log;
mod requests;
mod risk;
mod venue_reports;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tickpath_market::{
    ClientOrderId, ExecType, ExecutionReport, NewOrder, OrderDenied, OrderId, OrderType, Request, Trigger, VenueId,
};
use tickpath_oms_core::{
    AccountLimits, At, CoreCounts, Denial, FirmLimits, Input, Instrument, OrderView, Output, SessionRules,
    SymbolLimits, VenueRules,
};

use contract::Contract;
use fills::is_fill;
use order_log::{LogEvent, LogRequest, OrderLog, Phase};

/// The naive model.
#[derive(Default)]
pub struct Naive {
    instruments: BTreeMap<u32, Instrument>,
    /// Last contract of each symbol, whether its definition holds or has ended.
    contracts: BTreeMap<u32, Contract>,
    accounts: BTreeMap<u32, AccountLimits>,
    venues: BTreeMap<u16, VenueRules>,
    /// Venue and code pairs that have a retry rule.
    rejects: BTreeSet<(u16, u16)>,
    sessions: BTreeMap<u16, SessionRules>,
    grants: BTreeSet<(u16, u32)>,
    own: BTreeMap<(u32, u32), SymbolLimits>,
    firm: Option<FirmLimits>,
    kills: BTreeSet<(u8, u32)>,
    down: BTreeSet<u16>,
    /// Start and count of each account's open rate window.
    windows: BTreeMap<u32, (u64, u64)>,
    session_windows: BTreeMap<u16, (u64, u64)>,
    symbol_windows: BTreeMap<u32, (u64, u64)>,
    firm_window: Option<(u64, u64)>,
    /// Messages and fills of each account today.
    messages: BTreeMap<u32, u64>,
    fills: BTreeMap<u32, u64>,
    /// Orders that passed the checks, by account, with their stamps.
    recent: BTreeMap<u32, Vec<(Like, u64)>>,
    /// Latest price of each symbol.
    prices: BTreeMap<u32, i64>,
    /// Value sold today less the value bought and the value at the day's begin, for each account and symbol.
    results: BTreeMap<(u32, u32), i128>,
    /// Stamp of this boot's begin, and the time of day then.
    booted: (u64, u64),
    used: BTreeSet<(u16, u64)>,
    waiting: BTreeMap<u16, VecDeque<NaiveQueued>>,
    /// Id of each venue's last doubt.
    doubts: BTreeMap<u16, u64>,
    /// Orders with a missing venue sequence, and the stamp since when it is missing.
    gaps: Vec<(u64, u64)>,
    /// Value traded by each account today.
    traded: BTreeMap<u32, i128>,
    /// Trigger of each conditional order, kept for orders that may have fired, too.
    waits: BTreeMap<u64, NaiveTrigger>,
    /// Net quantity of the orders of earlier days.
    past: BTreeMap<(u32, u32), i128>,
    last: u64,
    epoch: u64,
    boot_id: [u8; 16],
    /// Nanoseconds in two ticks; a tick is 0.5, 1 or 2 ns.
    half_ns: u64,
    alarms: CoreCounts,
    pub lives: BTreeMap<u64, OrderLog>,
    /// Orders that the last input has removed.
    gone: BTreeMap<u64, OrderLog>,
}

struct NaiveQueued {
    order: u64,
    request: Request,
    sent: u64,
}

/// Trigger of a conditional order, and its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NaiveTrigger {
    pub trigger: Trigger,
    pub by: u64,
    pub since: u64,
    cause: u64,
    position_effect: u8,
}

/// Cap on the value of an order, a fill or a position.
const MAX_VALUE: i128 = 1 << 94;

/// Symbol, side, type, price and quantity of an order.
type Like = (u32, u8, u8, i64, i64);

type Checked<T> = Result<T, (Denial, i128, i128)>;

impl Naive {
    pub fn new() -> Self {
        Self { half_ns: 2, ..Self::default() }
    }

    pub fn apply(&mut self, at: At, input: &Input) -> Vec<Output> {
        let asked: Vec<(u64, LogRequest)> = self.lives.values().filter_map(asked_by_another).collect();
        let mut outputs = self.reports_to_owners(at, input);
        for (id, before) in asked {
            self.tell_asker(id, before, &mut outputs);
        }
        outputs
    }

    /// Notifies another session that its cancel of an order is no longer outstanding, behind the outputs for the
    /// order's own session.
    fn tell_asker(&self, id: u64, asked: LogRequest, outputs: &mut Vec<Output>) {
        let Some((life, last)) = self.lives.get(&id).or(self.gone.get(&id)).and_then(|life| {
            let is_of = |output: &Output| match output {
                Output::Report { report, .. } => report.order_id.0 == id,
                Output::Denied { denied, .. } => denied.order_id.0 == id,
                Output::Venue { .. } | Output::Extension { .. } => false,
            };
            let has_changed = life.sum.cancel.is_none_or(|now| now.id != asked.id);
            let last = outputs.iter().rposition(is_of).filter(|_| has_changed)?;
            Some((life, last))
        }) else {
            return;
        };
        let client_order_id = ClientOrderId(asked.client);
        let report = ExecutionReport {
            exec_type: ExecType::OrderStatus.code(),
            venue: VenueId(life.venue),
            ..life.report_to(asked.client)
        };
        let is_replaced = life.sum.cancel.is_some();
        let report = match outputs[last] {
            Output::Report { report, .. } if !is_fill(report.exec_type) && !is_replaced => {
                ExecutionReport { client_order_id, ..report }
            }
            _ => report,
        };
        outputs.insert(last + 1, Output::Report { session: asked.by, report });
    }

    fn reports_to_owners(&mut self, at: At, input: &Input) -> Vec<Output> {
        self.gone.clear();
        match *input {
            Input::Request { envelope, request } => self.request(at, envelope, request),
            Input::Report(record) => self.report(at, record),
            other => self.operate(at, other),
        }
    }

    pub fn view(&self, id: u64) -> Option<OrderView> {
        self.lives.get(&id).map(OrderLog::view)
    }

    pub fn counts(&self) -> CoreCounts {
        let mut counts = self.alarms;
        for life in self.lives.values() {
            *match life.sum.phase {
                Phase::Denied => &mut counts.withdrawn,
                Phase::Queued | Phase::Armed => &mut counts.queued,
                Phase::Sent => &mut counts.sending,
                Phase::Lost | Phase::Unknown => &mut counts.unknown,
                Phase::Open if life.sum.is_open() => &mut counts.working,
                Phase::Open | Phase::Expired | Phase::Canceled => &mut counts.done,
                Phase::Rejected => &mut counts.rejected,
            } += 1;
        }
        counts
    }

    /// Returns the number of requests that wait for a venue.
    pub fn waits(&self, venue: VenueId) -> usize {
        self.waiting.get(&venue.0).map_or(0, VecDeque::len)
    }

    fn id(&self, at: At) -> u64 {
        OrderId::new(self.epoch, at.sequence).0
    }

    fn ns(&self, ticks: u64) -> u64 {
        u64::try_from(u128::from(ticks) * u128::from(self.half_ns) / 2).unwrap_or(u64::MAX)
    }

    fn rules(&self, venue: u16) -> VenueRules {
        self.venues.get(&venue).copied().unwrap_or(VenueRules::of(VenueId(venue)))
    }

    fn is_entitled(&self, session: u16, account: u32) -> bool {
        self.grants.contains(&(session, account)) || self.grants.contains(&(session, u32::MAX))
    }

    /// Checks that the session has the right to requests of this kind.
    fn may_make(&self, session: u16, request: &Request) -> Checked<()> {
        let kind = match request {
            Request::New(_) | Request::Conditional(_) | Request::Extended(_) => 1,
            Request::ByTextId(named) if named.is_status() => 16,
            Request::ByTextId(_) => 2,
            Request::Cancel(_) => 2,
            Request::Replace(_) | Request::ReplaceConditional(_) => 4,
            Request::MassCancel(_) => 8,
            Request::Status(_) => 16,
        };
        let is_withheld = self.sessions.get(&session).is_some_and(|rules| rules.withheld & kind != 0);
        let is_killed = kind & (1 | 4) != 0 && self.kills.contains(&(5, session.into()));
        match (is_withheld, is_killed) {
            (true, _) => Err((Denial::NotPermitted, 0, kind.into())),
            (_, true) => Err((Denial::KillSwitch, 0, 1)),
            _ => Ok(()),
        }
    }

    fn is_clear(&self, venue: u16) -> bool {
        !self.down.contains(&venue) && self.waits(VenueId(venue)) == 0
    }

    fn may_wait(&self, venue: u16) -> Checked<()> {
        let (waits, most) = (self.waits(VenueId(venue)), self.rules(venue).max_queued);
        if self.is_clear(venue) || waits < most as usize {
            return Ok(());
        }
        Err((Denial::VenueQueue, most.into(), waits as i128))
    }

    /// Returns the order that a request names, if it belongs to the session and the account.
    fn named(&self, session: u16, original: ClientOrderId, account: u32) -> Checked<&OrderLog> {
        let is_it = |life: &&OrderLog| life.session == session && life.new.client_order_id == original;
        let found = self.lives.values().find(|life| is_it(life) && life.has_its_name());
        found.filter(|life| life.new.account.0 == account).ok_or((Denial::UnknownOrder, 0, 0))
    }

    fn ask(&mut self, order: u64, asked: LogRequest) {
        let life = self.lives.get_mut(&order).unwrap();
        let waits = self.down.contains(&life.venue) || self.waiting.get(&life.venue).is_some_and(|w| !w.is_empty());
        life.record(LogEvent::Asked(LogRequest { waits, ..asked }));
    }

    /// Sends a cancel to the venue, or ends an order that was never sent.
    fn cancel(&mut self, at: At, id: u64, (by, client): (u16, u64), cause: u64, sent: u64) -> Vec<Output> {
        let life = &self.lives[&id];
        let own = if by == life.session { client } else { life.new.client_order_id.0 };
        if matches!(life.sum.phase, Phase::Queued | Phase::Armed) {
            let session = life.session;
            let report = self.take_back(id, own, ExecType::Canceled);
            return twice(vec![report], session, by, client);
        }
        let session = life.session;
        let cancel = tickpath_market::CancelOrder {
            client_order_id: ClientOrderId(self.id(at)),
            original: ClientOrderId(id),
            cause,
            symbol: life.new.symbol,
            account: life.new.account,
            ..Default::default()
        };
        self.ask(id, LogRequest { id: self.id(at), client, by, replace: None, waits: false });
        let mut outputs = self.send(id, Request::Cancel(cancel), sent);
        outputs.push(self.answer(id, ExecType::PendingCancel, own));
        twice(outputs, session, by, client)
    }

    fn take_back(&mut self, id: u64, client: u64, exec_type: ExecType) -> Output {
        let life = self.lives.get_mut(&id).unwrap();
        life.record(LogEvent::TakenBack);
        self.waits.remove(&id);
        self.waiting.entry(life.venue).or_default().retain(|waiting| waiting.order != id);
        self.answer(id, exec_type, client)
    }

    /// Cancels all open orders that `is_in_scope` selects and that have no cancel outstanding.
    fn cancel_all(
        &mut self,
        at: At,
        asked: Option<(u16, u64)>,
        is_in_scope: impl Fn(&OrderLog) -> bool,
    ) -> Vec<Output> {
        let lives = self.lives.values().filter(|life| life.sum.is_open() && life.sum.cancel.is_none());
        let own = |life: &OrderLog| (life.session, life.new.client_order_id.0);
        let meant: Vec<(u64, (u16, u64))> =
            lives.filter(|life| is_in_scope(life)).map(|life| (life.id, own(life))).collect();
        meant.into_iter().flat_map(|(id, own)| self.cancel(at, id, asked.unwrap_or(own), 0, at.stamp)).collect()
    }

    fn send(&mut self, order: u64, request: Request, sent: u64) -> Vec<Output> {
        let life = &self.lives[&order];
        if self.is_clear(life.venue) {
            return vec![Output::Venue { venue: VenueId(life.venue), session: life.session, request }];
        }
        let waiting = NaiveQueued { order, request, sent };
        self.waiting.entry(life.venue).or_default().push_back(waiting);
        Vec::new()
    }

    fn answer(&self, id: u64, exec_type: ExecType, client: u64) -> Output {
        let life = &self.lives[&id];
        let (exec_type, venue) = (exec_type.code(), VenueId(life.venue));
        Output::Report { session: life.session, report: ExecutionReport { exec_type, venue, ..life.report_to(client) } }
    }
}

/// Books the value of a fill.
fn note_result(results: &mut BTreeMap<(u32, u32), i128>, new: &NewOrder, quantity: i128, price: i64) {
    let result = results.entry((new.account.0, new.symbol.0)).or_default();
    let bought = if new.side == 1 { quantity } else { -quantity };
    *result = result.saturating_sub(bought * i128::from(price));
}

/// Returns the fields that make two orders duplicates; a market order has the price 0.
fn like(new: &NewOrder) -> Like {
    let price = if new.order_type == OrderType::Market.code() { 0 } else { new.price.0 };
    (new.symbol.0, new.side, new.order_type, price, new.quantity.0)
}

/// Returns the outstanding cancel of an order, if another session sent it.
fn asked_by_another(life: &OrderLog) -> Option<(u64, LogRequest)> {
    life.sum.cancel.filter(|asked| asked.by != life.session).map(|asked| (life.id, asked))
}

/// Repeats the last report to the requesting session, if the order belongs to another session.
fn twice(mut outputs: Vec<Output>, session: u16, by: u16, client: u64) -> Vec<Output> {
    if by != session
        && let Some(Output::Report { report, .. }) = outputs.last().copied()
    {
        let client_order_id = ClientOrderId(client);
        outputs.push(Output::Report { session: by, report: ExecutionReport { client_order_id, ..report } });
    }
    outputs
}

fn denied(id: u64, session: u16, client: u64, account: u32, (denial, limit, value): (Denial, i128, i128)) -> Output {
    let denied = OrderDenied {
        order_id: OrderId(id),
        client_order_id: ClientOrderId(client),
        limit: limit.to_le_bytes(),
        value: value.to_le_bytes(),
        account: tickpath_market::AccountId(account),
        code: denial.code(),
        more_decimals: 0,
    };
    Output::Denied { session, denied }
}
