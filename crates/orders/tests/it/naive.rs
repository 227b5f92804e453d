//! The rules again, in the plainest way: every order keeps all that was ever said of it, and each question is answered
//! from the beginning. Nothing here is shared with the core but the messages.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{
    ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderDenied, OrderId, OrderType, Price, Quantity,
    Request, Side, SymbolId, VenueId, VenueOrderId,
};
use tickpath_orders::{AccountLimits, At, Denial, Envelope, Input, Instrument, OrderView, Output, PositionView};

/// Definitions after which random inputs do something.
pub fn prelude() -> Vec<Input> {
    let instrument = |id| Instrument { symbol: SymbolId(id), venue: VenueId(1), multiplier: 1, ..Default::default() };
    let limits = |id| AccountLimits { account: tickpath_market::AccountId(id), ..crate::scene::wide() };
    vec![
        Input::Instrument(instrument(1)),
        Input::Instrument(instrument(2)),
        Input::Account(limits(1)),
        Input::Account(limits(2)),
    ]
}

/// The model.
#[derive(Default)]
pub struct Naive {
    instruments: BTreeMap<u32, Instrument>,
    accounts: BTreeMap<u32, AccountLimits>,
    kills: BTreeSet<(u8, u32)>,
    /// Start and count of each account's open window.
    windows: BTreeMap<u32, (u64, u64)>,
    used: BTreeSet<(u16, u64)>,
    last: u64,
    pub lives: BTreeMap<u64, Life>,
}

/// An order with all that happened to it.
pub struct Life {
    new: NewOrder,
    id: u64,
    session: u16,
    denied: bool,
    events: Vec<Event>,
}

#[derive(Clone, Copy)]
enum Event {
    Cancel { id: u64, client: u64 },
    Replace { id: u64, client: u64, quantity: i64 },
    Report(ExecutionReport),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Sent,
    Lost,
    Open,
    Unknown,
    Expired,
    Canceled,
    Rejected,
}

/// What the events of a life come to.
#[derive(Clone)]
struct Sum {
    stand: Stand,
    price: i64,
    quantity: i64,
    fills: BTreeSet<(u16, u64)>,
    filled: i64,
    net: i128,
    told: i64,
    cancel: Option<(u64, u64)>,
    replace: Option<(u64, u64, i64)>,
    sequence: u64,
    terms: u64,
    venue: u64,
}

type Checked<T> = Result<T, (Denial, i128, i128)>;

impl Naive {
    pub fn apply(&mut self, at: At, input: &Input) -> Vec<Output> {
        match *input {
            Input::Instrument(instrument) => {
                if instrument.symbol.0 < 65_536 && instrument.multiplier > 0 {
                    self.instruments.insert(instrument.symbol.0, instrument);
                }
                Vec::new()
            }
            Input::Account(limits) => {
                if limits.account.0 < 65_536 {
                    self.accounts.insert(limits.account.0, limits);
                }
                Vec::new()
            }
            Input::Kill(kill) => {
                let switch = (kill.scope, if kill.scope == 1 { 0 } else { kill.target });
                if kill.on != 0 {
                    self.kills.insert(switch);
                } else {
                    self.kills.remove(&switch);
                }
                Vec::new()
            }
            Input::Request { envelope, request } => self.request(at, envelope, request),
            Input::Report(report) => self.report(report).into_iter().collect(),
        }
    }

    pub fn view(&self, id: u64) -> Option<OrderView> {
        let life = self.lives.get(&id)?;
        let sum = life.sum();
        Some(OrderView {
            id: OrderId(life.id),
            client_order_id: life.new.client_order_id,
            venue_order_id: VenueOrderId(sum.venue),
            session: life.session,
            account: life.new.account,
            symbol: life.new.symbol,
            side: life.side(),
            order_type: OrderType::from_code(life.new.order_type).unwrap(),
            price: Price(sum.price),
            quantity: Quantity(sum.quantity),
            cumulative: Quantity(sum.filled),
            leaves: Quantity(life.leaves(&sum)),
            status: life.status(&sum),
            venue_sequence: sum.sequence,
        })
    }

    pub fn position(&self, account: u32, symbol: u32) -> PositionView {
        let mut position = PositionView::default();
        for life in self.lives.values().filter(|life| !life.denied) {
            if (life.new.account.0, life.new.symbol.0) != (account, symbol) {
                continue;
            }
            let sum = life.sum();
            let most = match sum.stand {
                Stand::Expired | Stand::Canceled | Stand::Rejected => sum.told,
                _ => sum.quantity.max(sum.replace.map_or(0, |(_, _, quantity)| quantity)),
            };
            let exposure = i128::from(most.saturating_sub(sum.filled).max(0));
            match life.side() {
                Side::Buy => {
                    (position.net, position.working_buy) = (position.net + sum.net, position.working_buy + exposure)
                }
                Side::Sell => {
                    (position.net, position.working_sell) = (position.net - sum.net, position.working_sell + exposure)
                }
            }
        }
        position
    }

    fn request(&mut self, at: At, envelope: Envelope, request: Request) -> Vec<Output> {
        let account = request.account();
        if let Some(limits) = self.accounts.get(&account.0) {
            let window = self.windows.entry(account.0).or_insert((at.stamp, 0));
            if at.stamp - window.0 >= limits.rate_window {
                *window = (at.stamp, 0);
            }
            window.1 += 1;
        }
        let client = request.client_order_id();
        let key = (envelope.session, client.0);
        let malformed = matches!(request, Request::New(new) if new.check().is_err());
        let refused = if at.sequence <= self.last {
            Some(Denial::Sequence)
        } else if client.0 == 0 {
            Some(Denial::MissingClientOrderId)
        } else if self.used.contains(&key) {
            Some(Denial::DuplicateClientOrderId)
        } else if malformed {
            Some(Denial::Malformed)
        } else {
            None
        };
        let outputs = match (refused, request) {
            (Some(denial), _) => Err((denial, 0, 0)),
            (None, Request::New(new)) => self.new_order(at, envelope, new),
            (None, Request::Cancel(_) | Request::Replace(_)) => self.change(at, envelope, request),
        };
        if refused.is_none() {
            self.used.insert(key);
        }
        self.last = self.last.max(at.sequence);
        outputs.unwrap_or_else(|(denial, limit, value)| {
            let denied = OrderDenied {
                order_id: OrderId(at.sequence),
                client_order_id: client,
                limit: limit.to_le_bytes(),
                value: value.to_le_bytes(),
                account,
                code: denial.code(),
                reserved: 0,
            };
            vec![Output::Denied { session: envelope.session, denied }]
        })
    }

    fn new_order(&mut self, at: At, envelope: Envelope, new: NewOrder) -> Checked<Vec<Output>> {
        let checked = self.risk(envelope, new, new.price.0, new.quantity.0, 1, new.quantity.0);
        let life =
            Life { new, id: at.sequence, session: envelope.session, denied: checked.is_err(), events: Vec::new() };
        self.lives.insert(at.sequence, life);
        checked?;
        let venue = Output::Venue(Request::New(NewOrder { client_order_id: ClientOrderId(at.sequence), ..new }));
        Ok(vec![venue, self.pending(at.sequence, ExecType::PendingNew, new.client_order_id)])
    }

    fn change(&mut self, at: At, envelope: Envelope, mut request: Request) -> Checked<Vec<Output>> {
        let client = request.client_order_id();
        let (original, account) = match request {
            Request::Cancel(cancel) => (cancel.original, cancel.account),
            Request::Replace(replace) => (replace.original, replace.account),
            Request::New(_) => unreachable!("a new order changes nothing"),
        };
        let found =
            self.lives.values().find(|life| life.session == envelope.session && life.new.client_order_id == original);
        let life = found.filter(|life| !life.denied && life.new.account == account).ok_or((
            Denial::UnknownOrder,
            0_i128,
            0_i128,
        ))?;
        let (id, new, sum) = (life.id, life.new, life.sum());
        let gone = matches!(sum.stand, Stand::Expired | Stand::Canceled | Stand::Rejected);
        let unclear = matches!(sum.stand, Stand::Lost | Stand::Unknown);
        let refused = |denial| Err((denial, 0, 0));
        match &mut request {
            Request::Cancel(cancel) => {
                if gone || (!unclear && life.leaves(&sum) == 0) {
                    return refused(Denial::TooLate);
                }
                if !unclear && sum.cancel.is_some() {
                    return refused(Denial::AlreadyPending);
                }
                (cancel.client_order_id, cancel.original, cancel.symbol) =
                    (ClientOrderId(at.sequence), ClientOrderId(id), new.symbol);
            }
            Request::Replace(replace) => {
                if unclear {
                    return refused(Denial::StateUnknown);
                }
                if gone || life.leaves(&sum) == 0 {
                    return refused(Denial::TooLate);
                }
                if sum.cancel.is_some() || sum.replace.is_some() {
                    return refused(Denial::AlreadyPending);
                }
                let least = sum.filled.max(sum.told).saturating_add(1);
                let increase = replace.quantity.0.saturating_sub(sum.quantity);
                self.risk(envelope, new, replace.price.0, replace.quantity.0, least, increase)?;
                (replace.client_order_id, replace.original, replace.symbol) =
                    (ClientOrderId(at.sequence), ClientOrderId(id), new.symbol);
            }
            Request::New(_) => unreachable!("a new order changes nothing"),
        }
        let (event, exec_type) = match request {
            Request::Replace(replace) => (
                Event::Replace { id: at.sequence, client: client.0, quantity: replace.quantity.0 },
                ExecType::PendingReplace,
            ),
            _ => (Event::Cancel { id: at.sequence, client: client.0 }, ExecType::PendingCancel),
        };
        self.lives.get_mut(&id).unwrap().events.push(event);
        Ok(vec![Output::Venue(request), self.pending(id, exec_type, client)])
    }

    fn risk(&self, envelope: Envelope, new: NewOrder, price: i64, quantity: i64, least: i64, more: i64) -> Checked<()> {
        let (account, symbol) = (new.account.0, new.symbol.0);
        let limits = self.accounts.get(&account).ok_or((Denial::UnknownAccount, 0_i128, i128::from(account)))?;
        let instrument = self.instruments.get(&symbol).ok_or((Denial::UnknownSymbol, 0_i128, i128::from(symbol)))?;
        let kills = [(1, 0), (2, account), (3, symbol)].iter().filter(|&switch| self.kills.contains(switch)).count();
        if kills > 0 {
            return Err((Denial::KillSwitch, 0, kills as i128));
        }
        let messages = self.windows[&account].1;
        if limits.rate_limit != 0 && messages > u64::from(limits.rate_limit) {
            return Err((Denial::MessageRate, limits.rate_limit.into(), messages.into()));
        }
        if quantity < least {
            return Err((Denial::MinimumQuantity, least.into(), quantity.into()));
        }
        if quantity > limits.max_order_quantity.0 {
            return Err((Denial::MaximumQuantity, limits.max_order_quantity.0.into(), quantity.into()));
        }
        let reference = i128::from(envelope.reference_price.0);
        if reference == 0 {
            return Err((Denial::NoReference, 1, 0));
        }
        if envelope.reference_age > limits.max_reference_age {
            return Err((Denial::StaleReference, limits.max_reference_age.into(), envelope.reference_age.into()));
        }
        let price = if new.order_type == OrderType::Market.code() { reference } else { price.into() };
        let (allowed, distance) = (reference.abs() * i128::from(limits.collar) / 10_000, (price - reference).abs());
        if distance > allowed {
            return Err((Denial::PriceCollar, allowed, distance));
        }
        let points = (price * i128::from(quantity)).abs();
        let notional = points.checked_mul(instrument.multiplier.into()).unwrap_or(i128::MAX);
        let most = i128::from_le_bytes(limits.max_notional);
        if notional > most {
            return Err((Denial::Notional, most, notional));
        }
        let position = self.position(account, symbol);
        let reach = match new.side {
            1 => position.net + position.working_buy,
            _ => position.working_sell - position.net,
        };
        if more > 0 && reach + i128::from(more) > limits.max_position.0.into() {
            return Err((Denial::Position, limits.max_position.0.into(), reach + i128::from(more)));
        }
        Ok(())
    }

    fn pending(&self, id: u64, exec_type: ExecType, client: ClientOrderId) -> Output {
        let life = &self.lives[&id];
        let venue = self.instruments[&life.new.symbol.0].venue;
        let report = ExecutionReport { exec_type: exec_type.code(), venue, ..life.told(client.0) };
        Output::Report { session: life.session, report }
    }

    fn report(&mut self, report: ExecutionReport) -> Option<Output> {
        let life = self.lives.get_mut(&report.order_id.0).filter(|life| !life.denied)?;
        let before = life.sum();
        life.events.push(Event::Report(report));
        let life = &*life;
        let after = life.sum();
        let filled = after.fills.len() > before.fills.len();
        let seen =
            |life: &Life, sum: &Sum| (sum.stand, sum.price, sum.quantity, life.leaves(sum), sum.cancel, sum.replace);
        if !filled && seen(life, &before) == seen(life, &after) {
            return None;
        }
        let client = match (before.cancel, before.replace) {
            (Some((id, client)), _) if id == report.client_order_id.0 => client,
            (_, Some((id, client, _))) if id == report.client_order_id.0 => client,
            _ => life.new.client_order_id.0,
        };
        let told = ExecutionReport {
            exec_id: report.exec_id,
            venue_sequence: report.venue_sequence,
            last_price: if filled { report.last_price } else { Price(0) },
            last_quantity: if filled { report.last_quantity } else { Quantity(0) },
            venue_stamp: report.venue_stamp,
            reason: report.reason,
            venue: report.venue,
            exec_type: report.exec_type,
            ..life.told(client)
        };
        Some(Output::Report { session: life.session, report: told })
    }
}

impl Life {
    fn side(&self) -> Side {
        Side::from_code(self.new.side).unwrap()
    }

    fn leaves(&self, sum: &Sum) -> i64 {
        match sum.stand {
            _ if self.denied => 0,
            Stand::Expired | Stand::Canceled | Stand::Rejected => 0,
            _ => (sum.quantity.saturating_sub(sum.filled.max(sum.told))).max(0),
        }
    }

    fn status(&self, sum: &Sum) -> OrdStatus {
        let ended = matches!(sum.stand, Stand::Expired | Stand::Canceled | Stand::Rejected);
        if self.denied {
            OrdStatus::Rejected
        } else if matches!(sum.stand, Stand::Lost | Stand::Unknown) {
            OrdStatus::Unknown
        } else if !ended && sum.cancel.is_some() {
            OrdStatus::PendingCancel
        } else if !ended && sum.replace.is_some() {
            OrdStatus::PendingReplace
        } else if sum.filled > 0 && sum.filled >= sum.quantity {
            OrdStatus::Filled
        } else if sum.stand == Stand::Canceled {
            OrdStatus::Canceled
        } else if sum.stand == Stand::Expired {
            OrdStatus::Expired
        } else if sum.stand == Stand::Rejected {
            OrdStatus::Rejected
        } else if sum.filled > 0 {
            OrdStatus::PartiallyFilled
        } else if sum.stand == Stand::Open {
            OrdStatus::New
        } else {
            OrdStatus::PendingNew
        }
    }

    fn told(&self, client: u64) -> ExecutionReport {
        let sum = self.sum();
        ExecutionReport {
            order_id: OrderId(self.id),
            client_order_id: ClientOrderId(client),
            venue_order_id: VenueOrderId(sum.venue),
            cumulative_quantity: Quantity(sum.filled),
            leaves_quantity: Quantity(self.leaves(&sum)),
            price: Price(sum.price),
            symbol: self.new.symbol,
            account: self.new.account,
            status: self.status(&sum).code(),
            side: self.new.side,
            ..Default::default()
        }
    }

    fn sum(&self) -> Sum {
        let mut sum = Sum {
            stand: Stand::Sent,
            price: self.new.price.0,
            quantity: self.new.quantity.0,
            fills: BTreeSet::new(),
            filled: 0,
            net: 0,
            told: 0,
            cancel: None,
            replace: None,
            sequence: 0,
            terms: 0,
            venue: 0,
        };
        for event in &self.events {
            match *event {
                Event::Cancel { id, client } => sum.cancel = Some((id, client)),
                Event::Replace { id, client, quantity } => sum.replace = Some((id, client, quantity)),
                Event::Report(report) => sum.hear(&report),
            }
        }
        sum
    }
}

impl Sum {
    fn hear(&mut self, report: &ExecutionReport) {
        let (Some(what), Some(status)) = (ExecType::from_code(report.exec_type), OrdStatus::from_code(report.status))
        else {
            return;
        };
        if status == OrdStatus::Unknown {
            return match self.stand {
                Stand::Sent | Stand::Lost => self.stand = Stand::Lost,
                Stand::Open | Stand::Unknown => self.stand = Stand::Unknown,
                Stand::Expired | Stand::Canceled | Stand::Rejected => {}
            };
        }
        let (told, leaves) = (report.cumulative_quantity.0, report.leaves_quantity.0);
        let nonsense = told < 0 || leaves < 0;
        let no_fill = what == ExecType::Trade && (report.exec_id.0 == 0 || report.last_quantity.0 <= 0);
        let nothing = matches!(what, ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace);
        let again = what == ExecType::Trade && self.fills.contains(&(report.venue.0, report.exec_id.0));
        if nonsense || no_fill || nothing || again {
            return;
        }
        let before = self.clone();
        let sequenced = report.venue_sequence > 0;
        let latest = report.venue_sequence > self.sequence;
        if report.venue_order_id.0 != 0 && (!sequenced || latest || self.venue == 0) {
            self.venue = report.venue_order_id.0;
        }
        self.told = self.told.max(told);
        self.sequence = self.sequence.max(report.venue_sequence);
        self.stand = match what {
            ExecType::Trade => self.fill(&before, report),
            ExecType::Replaced => self.replaced(&before, report),
            ExecType::CancelRejected => {
                if self.cancel.is_some_and(|(id, _)| id == report.client_order_id.0) {
                    self.cancel = None;
                } else if self.replace.is_some_and(|(id, ..)| id == report.client_order_id.0) {
                    self.replace = None;
                }
                before.stand
            }
            ExecType::Canceled | ExecType::Expired if !sequenced && told < self.filled => Stand::Unknown,
            ExecType::Rejected if !sequenced && self.filled > 0 => Stand::Unknown,
            ExecType::Rejected => Stand::Rejected,
            ExecType::Canceled if before.stand == Stand::Rejected => Stand::Rejected,
            ExecType::Canceled => Stand::Canceled,
            ExecType::Expired if matches!(before.stand, Stand::Rejected | Stand::Canceled) => before.stand,
            ExecType::Expired => Stand::Expired,
            _ => before.proven(latest),
        };
        if matches!(self.stand, Stand::Expired | Stand::Canceled | Stand::Rejected) {
            (self.cancel, self.replace) = (None, None);
        }
    }

    /// The stand of an order that the venue has just shown to have.
    fn proven(&self, latest: bool) -> Stand {
        match self.stand {
            Stand::Sent | Stand::Lost | Stand::Open => Stand::Open,
            Stand::Unknown if latest => Stand::Open,
            other => other,
        }
    }

    fn fill(&mut self, before: &Sum, report: &ExecutionReport) -> Stand {
        self.fills.insert((report.venue.0, report.exec_id.0));
        self.filled = self.filled.saturating_add(report.last_quantity.0);
        self.net += i128::from(report.last_quantity.0);
        let most = match before.stand {
            Stand::Rejected => 0,
            Stand::Canceled | Stand::Expired => before.told,
            _ => before.quantity.max(before.replace.map_or(0, |(_, _, quantity)| quantity)),
        };
        if report.venue_sequence == 0 && self.filled > most {
            return Stand::Unknown;
        }
        before.proven(report.venue_sequence > before.sequence)
    }

    fn replaced(&mut self, before: &Sum, report: &ExecutionReport) -> Stand {
        // A report that names the cancel answers the cancel, whatever the replace's id is.
        let names_cancel = before.cancel.is_some_and(|(id, _)| id == report.client_order_id.0);
        let asked = !names_cancel && before.replace.is_some_and(|(id, ..)| id == report.client_order_id.0);
        let total = report.cumulative_quantity.0.saturating_add(report.leaves_quantity.0);
        if asked {
            self.replace = None;
        }
        let sequenced = report.venue_sequence > 0;
        if report.venue_sequence > before.terms || (asked && !sequenced) {
            (self.price, self.quantity) = (report.price.0, total);
            self.terms = self.terms.max(report.venue_sequence);
        }
        let gone = matches!(before.stand, Stand::Expired | Stand::Canceled | Stand::Rejected);
        let news = (before.price, before.quantity) != (report.price.0, total);
        if !sequenced && !asked && !gone && news {
            return Stand::Unknown;
        }
        before.proven(report.venue_sequence > before.sequence)
    }
}
