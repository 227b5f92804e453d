//! Random inputs for a core, drawn from its present state so that most of them have an effect.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, Condition, ConditionalOrder, ExecId, ExecType, ExecutionReport, MassCancel,
    NewOrder, OrdStatus, OrderId, Price, Quantity, ReplaceConditional, ReplaceOrder, Request, StatusRequest, SymbolId,
    Trigger, VenueId, VenueOrderId,
};
use tickpath_oms_core::{
    ALL_ACCOUNTS, AccountLimits, At, Boot, CancelScope, Config, Core, DayEnd, DefinitionEnd, Envelope, FirmLimits,
    GIVE_UP, GapTimer, Grant, Input, Instrument, KillSwitch, MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE,
    MAY_STATUS, MessageLoss, OrderView, Output, Outputs, QueryStatus, Reconcile, RecordKind, RejectRule, Release,
    ReportRecord, Resolve, SessionConnection, SessionRules, SymbolLimits, TradingHours, TriggerFired, UnsentRequest,
    VenueConnection, VenueRules,
};

use crate::dice::Dice;
use crate::scene::wide;

const ACCOUNTS: &[u32] = &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 65_535, 65_536];
const SYMBOLS: &[u32] = &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 65_536];
const VENUES: &[u16] = &[1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 4096];

/// A core and its latest inputs and outputs.
pub struct World {
    pub dice: Dice,
    pub core: Core,
    pub out: Outputs,
    pub at: At,
    /// The latest orders that were sent or wait.
    ids: Vec<u64>,
    /// The latest requests sent to venues.
    sent: Vec<(VenueId, Request)>,
    /// The last new order that was drawn.
    last_new: NewOrder,
    step: usize,
}

/// Returns definitions after which random inputs have an effect: venue 1 numbers its events, venue 2 does not.
pub fn prelude() -> Vec<Input> {
    let instrument =
        |id| Instrument { symbol: SymbolId(id), venue: VenueId(id as u16), multiplier: 1, ..Default::default() };
    let limits = |id| AccountLimits { account: AccountId(id), ..wide() };
    let grant = |session, account| Input::Grant(Grant { account, session, reserved: 0 });
    vec![
        Input::Instrument(instrument(1)),
        Input::Instrument(instrument(2)),
        Input::Account(limits(1)),
        Input::Account(limits(2)),
        Input::Venue(VenueRules { numbered: 0, ..VenueRules::of(VenueId(2)) }),
        grant(1, ALL_ACCOUNTS),
        grant(2, AccountId(1)),
        grant(2, AccountId(2)),
    ]
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            core: Core::new(Config::default()),
            out: Outputs::new(),
            at: At { sequence: 0, stamp: 0 },
            ids: Vec::new(),
            sent: Vec::new(),
            last_new: NewOrder::default(),
            step: 0,
        }
    }

    /// Draws one input and applies it to the core.
    pub fn step(&mut self) -> (At, Input) {
        let input = prelude().get(self.step).copied().unwrap_or_else(|| self.input());
        self.step += 1;
        self.at.sequence += if self.dice.once_in(200) { 0 } else { 1 };
        self.at.stamp += self.dice.below(10);
        let at = self.at;
        self.core.apply(at, &input, &mut self.out);
        for output in &self.out {
            let Output::Venue { venue, request, .. } = output else { continue };
            self.sent.push((*venue, *request));
        }
        let id = OrderId::new(self.core.epoch(), at.sequence);
        if self.core.order(id).is_some() && !self.ids.contains(&id.0) {
            self.ids.push(id.0);
        }
        if matches!(input, Input::Boot(_)) && self.dice.once_in(2) {
            self.at.stamp = 0;
        }
        (at, input)
    }

    fn input(&mut self) -> Input {
        match self.dice.below(1000) {
            0..=19 => self.definition(),
            20..=24 => Input::Kill(self.kill()),
            25 => {
                let KillSwitch { scope, target, .. } = self.kill();
                Input::CancelScope(CancelScope { scope, target, ..Default::default() })
            }
            26..=149 => self.event(),
            150..=329 => {
                let new = self.new_order();
                let session = self.dice.session();
                if self.dice.once_in(6) {
                    let order = ConditionalOrder { order: new, trigger: self.dice.trigger() };
                    return self.request(session, Request::Conditional(order));
                }
                self.request(session, Request::New(new))
            }
            330..=479 => {
                let (session, change) = self.change();
                self.request(session, change)
            }
            _ => Input::Report(self.report()),
        }
    }

    fn definition(&mut self) -> Input {
        let dice = &mut self.dice;
        match dice.below(30) {
            0 | 1 => Input::Instrument(Instrument {
                symbol: SymbolId(dice.pick(SYMBOLS)),
                venue: VenueId(dice.pick(VENUES)),
                multiplier: dice.pick(&[1, 1, 1, 1, 1, 1, 50, 50, i64::MAX, 0, -1]),
                multiplier_decimals: dice.pick(&[0, 0, 0, 1]),
                more_quantity_decimals: dice.pick(&[0, 0, 0, -1]),
                ..rare_instrument(dice)
            }),
            24 | 25 => Input::SymbolLimits(SymbolLimits {
                account: AccountId(dice.pick(ACCOUNTS)),
                symbol: SymbolId(dice.pick(SYMBOLS)),
                max_position: Quantity(dice.pick(&[0, 0, 10, 30])),
                max_order_quantity: Quantity(dice.pick(&[0, 0, 3, 8])),
                restricted: u8::from(dice.once_in(6)),
                no_short: u8::from(dice.once_in(3)),
                reserved: [0; 6],
            }),
            26 => Input::Firm(FirmLimits {
                rate_limit: dice.pick(&[0, 0, 10]),
                max_open_orders: dice.pick(&[0, 0, 5, 12]),
                rate_window_ns: dice.pick(&[0, 50, 1000]),
                max_order_quantity: Quantity(dice.pick(&[0, 0, 8])),
                max_notional: dice.pick(&[0_i128, 0, 900]).to_le_bytes(),
                credit: dice.pick(&[0_i128, 0, 9_000, 40_000]).to_le_bytes(),
            }),
            2..=6 => Input::Account(limits(dice)),
            7 => Input::Venue(VenueRules {
                venue: VenueId(dice.pick(VENUES)),
                numbered: dice.below(2) as u8,
                answers_status: u8::from(!dice.once_in(4)),
                max_queued: dice.pick(&[0, 3, 1024]),
                max_gap_ns: dice.pick(&[0, 20, 100]),
            }),
            8 => Input::Session(SessionRules {
                session: dice.session(),
                cancel_on_disconnect: dice.below(2) as u8,
                level: dice.below(2) as u8,
                max_order_quantity: Quantity(dice.pick(&[0, 0, 6])),
                max_notional: dice.pick(&[0_i128, 0, 800]).to_le_bytes(),
                rate_limit: dice.pick(&[0, 0, 4, 20]),
                rate_window_ns: dice.pick(&[0, 50, 1000]),
                withheld: dice.pick(&[0, 0, 0, MAY_NEW, MAY_CANCEL, MAY_REPLACE, MAY_MASS_CANCEL | MAY_STATUS]),
                ..Default::default()
            }),
            9..=22 => {
                let account = if dice.once_in(2) { ALL_ACCOUNTS } else { AccountId(dice.pick(ACCOUNTS)) };
                Input::Grant(Grant { account, session: dice.session(), reserved: 0 })
            }
            // Codes that are never retried, because the naive model has no retries.
            28 | 29 => Input::Reject(RejectRule {
                venue: VenueId(dice.pick(VENUES)),
                code: dice.session(),
                action: if dice.once_in(3) { 3 } else { GIVE_UP },
                ..Default::default()
            }),
            _ => Input::DefinitionEnd(DefinitionEnd {
                id: if dice.once_in(4) { u32::MAX } else { dice.pick(ACCOUNTS) },
                session: dice.session(),
                kind: if dice.once_in(5) { dice.below(256) as u8 } else { dice.pick(ENDS).code() },
                reserved: 0,
            }),
        }
    }

    fn kill(&mut self) -> KillSwitch {
        let dice = &mut self.dice;
        KillSwitch {
            scope: dice.pick(&[0, 1, 2, 2, 2, 3, 3, 3, 4, 5, 5, 6]),
            on: u8::from(dice.once_in(3)),
            cancel: dice.below(2) as u8,
            target: dice.pick(ACCOUNTS),
            ..Default::default()
        }
    }

    /// Draws an input about the OMS itself, its venues or an operator.
    fn event(&mut self) -> Input {
        let venue = VenueId(self.dice.pick(VENUES));
        match self.dice.below(140) {
            0..=3 => Input::Boot(self.boot()),
            80..=136 => Input::Release(self.release()),
            137..=139 => Input::Reconcile(Reconcile {
                venue,
                reason: [u8::from(!self.dice.once_in(5)) * b'x'; 32],
                ..Default::default()
            }),
            4..=13 => {
                Input::VenueConnection(VenueConnection { venue, up: u8::from(!self.dice.once_in(3)), reserved: [0; 5] })
            }
            14..=17 => Input::SessionConnection(SessionConnection {
                session: self.dice.session(),
                up: self.dice.below(2) as u8,
                reserved: [0; 5],
            }),
            18..=30 => Input::UnsentRequest(self.returned(venue)),
            31..=50 => Input::Release(self.release()),
            51..=54 => Input::MessageLoss(MessageLoss {
                messages: self.order_id(),
                venue,
                lost: self.dice.below(5) as u8,
                reserved: [0; 5],
            }),
            55..=66 => Input::Resolve(self.resolve()),
            67..=71 => Input::QueryStatus(QueryStatus { order: self.order_id(), ..Default::default() }),
            72 => Input::DayEnd(DayEnd::default()),
            73..=76 => Input::TriggerFired(self.fired()),
            _ => Input::GapTimer(GapTimer::default()),
        }
    }

    /// Draws a fired trigger, mostly of an armed order.
    fn fired(&mut self) -> TriggerFired {
        let armed = self.core.armed_orders().next().map(|armed| armed.order.0);
        let order = armed.filter(|_| !self.dice.once_in(10)).unwrap_or_else(|| self.order_id());
        let reference_price = Price(if self.dice.once_in(20) { self.dice.price() } else { 100 });
        TriggerFired { order, tick: self.at.stamp, reference_price, reference_age_ns: 1, ..Default::default() }
    }

    fn boot(&mut self) -> Boot {
        let dice = &mut self.dice;
        Boot {
            epoch: if dice.once_in(4) { dice.pick(&[0, 1, 1 << 24, u64::MAX]) } else { self.core.epoch() + 1 },
            boot_id: [dice.below(2) as u8; 16],
            ticks_per_second: dice.pick(&[1_000_000_000, 500_000_000, 2_000_000_000, 0]),
            utc_ns: dice.below(100) * 1_000_000_000,
        }
    }

    /// Draws a returned request, mostly one of the last ones sent to a venue.
    fn returned(&mut self, venue: VenueId) -> UnsentRequest {
        let back = self.dice.below(4) as usize;
        let last = self.sent.iter().rev().nth(back).copied();
        let (to, request) = last.unwrap_or((venue, Request::New(NewOrder::default())));
        let mut returned = UnsentRequest::new(if self.dice.once_in(20) { venue } else { to }, self.at.stamp, &request);
        if self.dice.once_in(20) {
            returned.kind = self.dice.below(50) as u8;
        }
        returned
    }

    fn release(&mut self) -> Release {
        let waits = [1, 2, 3].map(VenueId).into_iter().find(|&venue| self.core.next_waiting(venue).is_some());
        let venue = waits.unwrap_or(VenueId(self.dice.pick(VENUES)));
        let (order, request) = match self.core.next_waiting(venue) {
            Some((order, request)) if !self.dice.once_in(20) => (order.0, request.client_order_id().0),
            _ => (self.order_id(), self.order_id()),
        };
        let reference_price = Price(if self.dice.once_in(20) { self.dice.price() } else { 100 });
        Release { order, request, reference_price, reference_age_ns: 1, venue, reserved: [0; 6] }
    }

    fn resolve(&mut self) -> Resolve {
        let unknown = self.ids.iter().rev().find(|&&id| self.view(id).is_some_and(|o| o.status == OrdStatus::Unknown));
        let order = unknown.copied().unwrap_or_else(|| self.ids.last().copied().unwrap_or(1));
        let (cumulative, quantity) = self.view(order).map_or((0, 0), |view| (view.cumulative.0, view.quantity.0));
        let dice = &mut self.dice;
        Resolve {
            order,
            cumulative_quantity: Quantity(dice.pick(&[cumulative, cumulative, quantity, 0, -1, i64::MAX])),
            status: dice.pick(ANSWERED).code(),
            reason: [u8::from(!dice.once_in(5)) * b'x'; 32],
            ..Default::default()
        }
    }

    fn view(&self, id: u64) -> Option<OrderView> {
        self.core.order(OrderId(id))
    }

    /// Draws an order id, mostly that of one of the latest orders.
    fn order_id(&mut self) -> u64 {
        let back = self.dice.below(10) as usize;
        match self.ids.iter().rev().nth(back) {
            Some(&id) if !self.dice.once_in(50) => id,
            _ => self.dice.below(100),
        }
    }

    fn request(&mut self, session: u16, request: Request) -> Input {
        let dice = &mut self.dice;
        let envelope = Envelope {
            sent: self.at.stamp.saturating_sub(dice.below(30)),
            reference_price: Price(if dice.once_in(30) { dice.price() } else { 100 }),
            reference_age_ns: if dice.once_in(20) { dice.below(200) } else { 1 },
            session,
            no_ticks: u8::from(dice.once_in(20)),
            ..Default::default()
        };
        Input::Request { envelope, request }
    }

    /// Draws a new order, sometimes the last one again.
    fn new_order(&mut self) -> NewOrder {
        let dice = &mut self.dice;
        if dice.once_in(8) {
            return NewOrder { client_order_id: dice.client(), ..self.last_new };
        }
        let is_hostile = dice.once_in(80);
        self.last_new = NewOrder {
            client_order_id: dice.client(),
            price: Price(dice.price()),
            quantity: Quantity(dice.quantity()),
            symbol: SymbolId(dice.pick(SYMBOLS)),
            account: AccountId(dice.pick(ACCOUNTS)),
            side: if is_hostile { dice.below(256) as u8 } else { dice.pick(&[1, 2]) },
            order_type: dice.pick(&[1, 2, 2, 2]),
            time_in_force: if is_hostile { dice.below(8) as u8 } else { dice.pick(&[0, 0, 1]) },
            ..dice.instructions()
        };
        self.last_new
    }

    /// Draws a cancel, a replace, a status request or a mass cancel, mostly for one of the latest orders by its own
    /// session.
    fn change(&mut self) -> (u16, Request) {
        let id = self.order_id();
        let named = self.view(id).map(|view| (view.session, view.client_order_id, view.account, view.symbol));
        let dice = &mut self.dice;
        let (session, original, account, symbol) = named.unwrap_or((1, ClientOrderId(1), AccountId(1), SymbolId(1)));
        let session = if dice.once_in(10) { dice.session() } else { session };
        let account = if dice.once_in(30) { AccountId(dice.pick(ACCOUNTS)) } else { account };
        let client_order_id = dice.client();
        let request = match dice.below(20) {
            kind @ 0..=6 => {
                let cancel = CancelOrder { client_order_id, original, account, ..Default::default() };
                Request::Cancel(match kind {
                    0..=1 => CancelOrder { order_id: OrderId(id), ..cancel },
                    _ => CancelOrder { cause: 5, ..cancel },
                })
            }
            kind @ 7..=17 => {
                let (price, quantity) = (Price(dice.price()), Quantity(dice.quantity()));
                let replace =
                    ReplaceOrder { client_order_id, original, price, quantity, account, ..Default::default() };
                if kind <= 9 { rearmed(&replace, dice.trigger()) } else { Request::Replace(replace) }
            }
            18 => Request::Status(StatusRequest { client_order_id, original, account, ..Default::default() }),
            _ => Request::MassCancel(MassCancel {
                client_order_id,
                symbol,
                account,
                cancel_type: dice.pick(&[1, 7, 7, 9]),
                ..Default::default()
            }),
        };
        (session, request)
    }

    /// Draws a report, mostly a plausible next one of one of the latest orders.
    fn report(&mut self) -> ReportRecord {
        let id = self.order_id();
        let Some(view) = self.view(id) else {
            let report = ExecutionReport { order_id: OrderId(id), ..Default::default() };
            return ReportRecord { report, source: VenueId(1), line: 0, lane_sequence: 0 };
        };
        let answers = self.answered(id);
        let dice = &mut self.dice;
        let exec_type = dice.pick(SAID);
        let last = 1 + dice.below(5) as i64;
        let moves = i64::from(exec_type == ExecType::Trade) * last;
        let cumulative = view.cumulative.0.saturating_add(if dice.once_in(20) { dice.below(9) as i64 } else { moves });
        let leaves = view.quantity.0.saturating_sub(cumulative).max(0);
        let report = ExecutionReport {
            order_id: OrderId(id),
            client_order_id: ClientOrderId(answers),
            venue_order_id: VenueOrderId(dice.below(3)),
            exec_id: ExecId(dice.below(30)),
            venue_sequence: next_sequence(dice, &view),
            last_price: Price(dice.price()),
            last_quantity: Quantity(last),
            cumulative_quantity: Quantity(cumulative),
            leaves_quantity: Quantity(if dice.once_in(8) { dice.below(12) as i64 } else { leaves }),
            price: Price(dice.price()),
            venue_stamp: dice.draw(),
            symbol: view.symbol,
            account: view.account,
            reason: dice.below(3) as u16,
            venue: view.venue,
            exec_type: exec_type.code(),
            status: if exec_type == ExecType::OrderStatus || dice.once_in(4) { dice.pick(ANSWERED).code() } else { 0 },
            side: view.side.code(),
            manual: 0,
        };
        let record = ReportRecord { report, source: view.venue, line: 0, lane_sequence: 0 };
        if dice.once_in(20) { spoiled(dice, record) } else { record }
    }

    /// Draws the id of the request that a report answers.
    fn answered(&mut self, id: u64) -> u64 {
        let of_order = |request: &Request| match request {
            Request::Cancel(cancel) => cancel.original.0 == id,
            Request::Replace(replace) => replace.original.0 == id,
            Request::Status(status) => status.original.0 == id,
            _ => false,
        };
        let back = self.dice.below(3) as usize;
        let asked = self.sent.iter().rev().take(60).filter(|(_, request)| of_order(request)).nth(back);
        match asked {
            Some((_, request)) if !self.dice.once_in(4) => request.client_order_id().0,
            _ => self.dice.pick(&[0, id]),
        }
    }
}

impl Dice {
    fn trigger(&mut self) -> Trigger {
        let mut condition = || Condition {
            price: Price(self.price()),
            symbol: SymbolId(self.pick(SYMBOLS)),
            price_type: if self.once_in(40) { self.below(256) as u8 } else { self.pick(&[1, 2, 3]) },
            direction: if self.once_in(40) { self.below(256) as u8 } else { self.pick(&[1, 2]) },
            reserved: [0; 2],
        };
        let (first, second) = (condition(), condition());
        Trigger { first, second, join: self.pick(&[0, 0, 0, 1, 1, 2, 2, 3]), reserved: [0; 7] }
    }

    fn session(&mut self) -> u16 {
        self.pick(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3])
    }

    fn client(&mut self) -> ClientOrderId {
        ClientOrderId(if self.once_in(20) { self.below(900) } else { self.draw() >> 32 })
    }
}

const ENDS: &[RecordKind] = &[
    RecordKind::Instrument,
    RecordKind::Account,
    RecordKind::Venue,
    RecordKind::Session,
    RecordKind::Grant,
    RecordKind::SymbolLimits,
    RecordKind::Firm,
    RecordKind::Reject,
];

const ANSWERED: &[OrdStatus] = &[
    OrdStatus::New,
    OrdStatus::New,
    OrdStatus::PartiallyFilled,
    OrdStatus::Filled,
    OrdStatus::Canceled,
    OrdStatus::Expired,
    OrdStatus::Rejected,
    OrdStatus::PendingCancel,
];

const SAID: &[ExecType] = &[
    ExecType::New,
    ExecType::New,
    ExecType::New,
    ExecType::New,
    ExecType::Trade,
    ExecType::Trade,
    ExecType::Trade,
    ExecType::Replaced,
    ExecType::CancelRejected,
    ExecType::CancelRejected,
    ExecType::Trade,
    ExecType::Trade,
    ExecType::Trade,
    ExecType::Trade,
    ExecType::Replaced,
    ExecType::Replaced,
    ExecType::CancelRejected,
    ExecType::Canceled,
    ExecType::Expired,
    ExecType::Rejected,
    ExecType::PendingNew,
    ExecType::TradeCancel,
    ExecType::TradeCorrect,
    ExecType::OrderStatus,
    ExecType::OrderStatus,
];

/// Returns the same replace for an armed order, with another trigger.
fn rearmed(replace: &ReplaceOrder, trigger: Trigger) -> Request {
    let &ReplaceOrder { client_order_id, original, price, quantity, account, .. } = replace;
    Request::ReplaceConditional(ReplaceConditional {
        client_order_id,
        original,
        price,
        quantity,
        account,
        trigger,
        ..Default::default()
    })
}

fn limits(dice: &mut Dice) -> AccountLimits {
    AccountLimits {
        account: AccountId(dice.pick(ACCOUNTS)),
        rate_limit: dice.pick(&[0, 0, 0, 5, 20]),
        rate_window_ns: dice.pick(&[0, 50, 1000]),
        max_order_quantity: Quantity(dice.pick(&[5, 10, i64::MAX, i64::MAX, 0])),
        max_notional: dice.pick(&[600_i128, 1200, i128::MAX, i128::MAX, i128::MAX]).to_le_bytes(),
        credit: dice.pick(&[0_i128, 0, 5_000, 20_000, -1, i128::MAX]).to_le_bytes(),
        collar: dice.pick(&[500, 1000, u32::MAX]),
        max_open_orders: dice.pick(&[0, 0, 3, 8]),
        max_reference_age_ns: dice.pick(&[10, 100, u64::MAX]),
        max_request_age_ns: dice.pick(&[0, 0, 20, 200]),
        max_position: Quantity(dice.pick(&[20, 100, i64::MAX, i64::MAX])),
        currency_start: dice.pick(&[[0; 4], [0; 4], [0; 4], *b"TWD\0"]),
        order_trade_ratio: dice.pick(&[0, 0, 0, 3]),
        order_trade_free: dice.pick(&[0, 0, 0, 40]),
        no_self_match: u8::from(dice.once_in(3)),
        reserved: [0; 3],
        duplicate_window_ns: dice.pick(&[0, 0, 30, 300]),
        max_gross_value: dice.pick(&[0_i128, 0, 0, 3_000, 20_000]).to_le_bytes(),
        max_loss: dice.pick(&[0_i128, 0, 0, 50, 2_000]).to_le_bytes(),
        currency_end: [0; 8],
    }
}

/// Draws the optional limits that most instruments leave off.
fn rare_instrument(dice: &mut Dice) -> Instrument {
    if dice.once_in(2) {
        return Instrument::default();
    }
    let band = dice.pick(&[(0, 0), (0, 0), (92, 108)]);
    let hours = |opens_s, closes_s| TradingHours { opens_s, closes_s };
    Instrument {
        tick_size: Price(dice.pick(&[0, 0, 2])),
        lot: Quantity(dice.pick(&[0, 0, 2])),
        lowest_price: Price(band.0),
        highest_price: Price(band.1),
        hours: dice.pick(&[
            [hours(0, 0); 2],
            [hours(0, 0); 2],
            [hours(86_000, 10), hours(0, 0)],
            [hours(20, 40), hours(60, 50)],
        ]),
        currency_start: dice.pick(&[[0; 4], *b"TWD\0"]),
        minimum_quantity: Quantity(dice.pick(&[0, 0, 0, 3])),
        minimum_notional: dice.pick(&[0_i128, 0, 0, 250]).to_le_bytes(),
        rate_limit: dice.pick(&[0, 0, 6]),
        rate_window_ns: dice.pick(&[0, 50, 1000]),
        restricted: u8::from(dice.once_in(8)),
        ..Instrument::default()
    }
}

/// Draws a venue sequence: the next number mostly for venue 1, none mostly for the other venues.
fn next_sequence(dice: &mut Dice, view: &OrderView) -> u64 {
    let next = view.venue_sequence.saturating_add(1);
    match (view.venue.0 == 1, dice.below(30)) {
        (true, 19..=29) => next,
        (true, 0..=14) | (false, 0) => next,
        (_, 15) => next.saturating_add(1),
        (_, 16) => 1 + dice.below(next),
        (true, 17) => next.saturating_add(dice.pick(&[2, 60, 63, 64, 65, 70])),
        (true, 18) | (false, _) => 0,
        (true, _) => next.saturating_sub(1),
    }
}

/// Spoils a report, so that it contradicts its order or is impossible.
fn spoiled(dice: &mut Dice, mut record: ReportRecord) -> ReportRecord {
    let report = &mut record.report;
    match dice.below(12) {
        0 => report.symbol = SymbolId(9),
        1 => report.account = AccountId(9),
        2 => report.side = dice.below(4) as u8,
        3 => report.venue = VenueId(9),
        4 => record.source = VenueId(9),
        5 => report.exec_type = dice.below(256) as u8,
        6 => report.status = dice.below(256) as u8,
        7 => report.cumulative_quantity = Quantity(dice.quantity()),
        8 => report.leaves_quantity = Quantity(dice.quantity()),
        9 => report.last_quantity = Quantity(dice.quantity()),
        10 => report.status = OrdStatus::Unknown.code(),
        // The answer of a venue that does not know the order.
        _ => {
            (report.exec_type, report.status) = (ExecType::OrderStatus.code(), OrdStatus::Rejected.code());
            (report.venue_sequence, report.side) = (0, 0);
        }
    }
    record
}
