//! The rules again, in the plainest way: every order keeps all that was ever said of it, and each question is answered
//! from the beginning. Nothing here is shared with the core but the messages.

mod fills;
mod life;
mod operate;
mod risk;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tickpath_market::{
    ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderDenied, OrderId, OrderType, Price, Quantity,
    Request, VenueId,
};
use tickpath_orders::{
    AccountLimits, At, Counts, Denial, Envelope, Input, Instrument, OrderView, Output, ReportRecord, SessionRules,
    VenueRules,
};

use life::{Asked, Life, Stand, Word};
use risk::{Kind, Wish};

/// The model.
#[derive(Default)]
pub struct Naive {
    instruments: BTreeMap<u32, Instrument>,
    /// The last multiplier of each symbol, defined or ended.
    multipliers: BTreeMap<u32, i64>,
    accounts: BTreeMap<u32, AccountLimits>,
    venues: BTreeMap<u16, VenueRules>,
    sessions: BTreeMap<u16, SessionRules>,
    grants: BTreeSet<(u16, u32)>,
    kills: BTreeSet<(u8, u32)>,
    down: BTreeSet<u16>,
    /// Start and count of each account's open window.
    windows: BTreeMap<u32, (u64, u64)>,
    used: BTreeSet<(u16, u64)>,
    waiting: BTreeMap<u16, VecDeque<Waiting>>,
    /// The id of each venue's last doubt.
    doubts: BTreeMap<u16, u64>,
    /// Orders that miss a number, and since when.
    gaps: Vec<(u64, u64)>,
    /// What accounts traded today.
    traded: BTreeMap<u32, i128>,
    /// Net quantity of the orders of earlier days.
    past: BTreeMap<(u32, u32), i128>,
    last: u64,
    epoch: u64,
    boot_id: [u8; 16],
    /// Ticks of two seconds are this many nanoseconds: 1 tick is 0.5, 1 or 2.
    half_ns: u64,
    alarms: Counts,
    pub lives: BTreeMap<u64, Life>,
    /// Those that the last input has forgotten.
    gone: BTreeMap<u64, Life>,
}

struct Waiting {
    order: u64,
    request: Request,
    sent: u64,
}

type Checked<T> = Result<T, (Denial, i128, i128)>;

impl Naive {
    pub fn new() -> Self {
        Self { half_ns: 2, ..Self::default() }
    }

    pub fn apply(&mut self, at: At, input: &Input) -> Vec<Output> {
        let asked: Vec<(u64, Asked)> = self.lives.values().filter_map(asked_by_another).collect();
        let mut outputs = self.told_to_owners(at, input);
        for (id, before) in asked {
            self.tell_asker(id, before, &mut outputs);
        }
        outputs
    }

    /// Tells another session, behind what the order's own hears, that what it has asked for is asked for no more.
    fn tell_asker(&self, id: u64, asked: Asked, outputs: &mut Vec<Output>) {
        let Some((life, last)) = self.lives.get(&id).or(self.gone.get(&id)).and_then(|life| {
            let is_of = |output: &Output| match output {
                Output::Report { report, .. } => report.order_id.0 == id,
                Output::Denied { denied, .. } => denied.order_id.0 == id,
                Output::Venue { .. } => false,
            };
            let has_changed = life.sum.cancel.is_none_or(|now| now.id != asked.id);
            let last = outputs.iter().rposition(is_of).filter(|_| has_changed)?;
            Some((life, last))
        }) else {
            return;
        };
        let client_order_id = ClientOrderId(asked.client);
        let stands = ExecutionReport {
            exec_type: ExecType::OrderStatus.code(),
            venue: VenueId(life.venue),
            ..life.told(asked.client)
        };
        let is_replaced = life.sum.cancel.is_some();
        let report = match outputs[last] {
            Output::Report { report, .. } if !is_fill(report.exec_type) && !is_replaced => {
                ExecutionReport { client_order_id, ..report }
            }
            _ => stands,
        };
        outputs.insert(last + 1, Output::Report { session: asked.by, report });
    }

    fn told_to_owners(&mut self, at: At, input: &Input) -> Vec<Output> {
        self.gone.clear();
        match *input {
            Input::Request { envelope, request } => self.request(at, envelope, request),
            Input::Report(record) => self.report(at, record),
            other => self.operate(at, other),
        }
    }

    pub fn view(&self, id: u64) -> Option<OrderView> {
        self.lives.get(&id).map(Life::view)
    }

    pub fn counts(&self) -> Counts {
        let mut counts = self.alarms;
        for life in self.lives.values() {
            *match life.sum.stand {
                Stand::Denied => &mut counts.withdrawn,
                Stand::Queued => &mut counts.queued,
                Stand::Sent => &mut counts.sending,
                Stand::Lost | Stand::Unknown => &mut counts.unknown,
                Stand::Open if life.sum.is_open() => &mut counts.working,
                Stand::Open | Stand::Expired | Stand::Canceled => &mut counts.done,
                Stand::Rejected => &mut counts.rejected,
            } += 1;
        }
        counts
    }

    /// Requests that wait for a venue.
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

    /// Whether the session has the right to requests of this kind.
    fn may_make(&self, session: u16, request: &Request) -> Checked<()> {
        let kind = match request {
            Request::New(_) => 1,
            Request::Cancel(_) => 2,
            Request::Replace(_) => 4,
            Request::MassCancel(_) => 8,
            Request::Status(_) => 16,
        };
        match self.sessions.get(&session).is_some_and(|rules| rules.withheld & kind != 0) {
            true => Err((Denial::NotPermitted, 0, kind.into())),
            false => Ok(()),
        }
    }

    fn is_clear(&self, venue: u16) -> bool {
        !self.down.contains(&venue) && self.waits(VenueId(venue)) == 0
    }

    fn request(&mut self, at: At, envelope: Envelope, request: Request) -> Vec<Output> {
        let outputs = self.admit(at, envelope, request).and_then(|()| match request {
            Request::New(new) => self.new_order(at, envelope, new),
            Request::Cancel(_) | Request::Replace(_) => self.change(at, envelope, request),
            Request::Status(_) => self.status(at, envelope, request),
            Request::MassCancel(_) => self.mass_cancel(at, envelope, request),
        });
        self.last = self.last.max(at.sequence);
        outputs.unwrap_or_else(|why| {
            self.alarms.denied_requests += 1;
            let (id, client) = (self.id(at), request.client_order_id());
            vec![denied(id, envelope.session, client.0, request.account().0, why)]
        })
    }

    fn admit(&mut self, at: At, envelope: Envelope, request: Request) -> Checked<()> {
        let (session, client) = (envelope.session, request.client_order_id().0);
        let account = match request {
            Request::Cancel(cancel) => {
                self.lives.get(&cancel.order_id.0).map_or(cancel.account, |life| life.new.account)
            }
            _ => request.account(),
        };
        let account = account.0;
        if at.sequence <= self.last || at.sequence >= 1 << 40 {
            return Err((Denial::Sequence, 0, 0));
        }
        self.may_make(session, &request)?;
        let trades = matches!(request, Request::New(_) | Request::Replace(_));
        if trades && !self.accounts.contains_key(&account) {
            return Err((Denial::UnknownAccount, 0, account.into()));
        }
        if trades && !self.is_entitled(session, account) {
            return Err((Denial::NotEntitled, 0, account.into()));
        }
        if let Some(limits) = self.accounts.get(&account).filter(|_| self.is_entitled(session, account)) {
            let window = self.windows.get(&account).copied().unwrap_or((at.stamp, 0));
            let is_over = self.ns(at.stamp.saturating_sub(window.0)) >= limits.rate_window_ns;
            let (start, count) = if is_over { (at.stamp, 0) } else { window };
            self.windows.insert(account, (start, count + 1));
        }
        if client == 0 {
            return Err((Denial::MissingClientOrderId, 0, 0));
        }
        let is_question = matches!(request, Request::Status(_));
        if !is_question && self.used.contains(&(session, client)) {
            return Err((Denial::DuplicateClientOrderId, 0, 0));
        }
        if request.check().is_err() {
            return Err((Denial::Malformed, 0, 0));
        }
        if !is_question {
            self.used.insert((session, client));
        }
        Ok(())
    }

    fn new_order(&mut self, at: At, envelope: Envelope, new: NewOrder) -> Checked<Vec<Output>> {
        let venue = self.instruments.get(&new.symbol.0).map_or(0, |instrument| instrument.venue.0);
        let is_market = new.order_type == OrderType::Market.code();
        let valued = if is_market { envelope.reference_price.0 } else { new.price.0 };
        let life = Life::new(new, self.id(at), envelope.session, venue, !self.is_clear(venue), valued);
        self.risk(&Wish {
            life: &life,
            kind: Kind::New,
            price: new.price.0,
            quantity: new.quantity.0,
            has_waited: false,
            age_ns: self.ns(at.stamp.saturating_sub(envelope.sent)),
            reference: envelope.reference_price,
            reference_age_ns: envelope.reference_age_ns,
        })?;
        self.may_wait(venue)?;
        let id = life.id;
        self.lives.insert(id, life);
        let request = Request::New(NewOrder { client_order_id: ClientOrderId(id), ..new });
        let mut outputs = self.send(id, request, envelope.sent);
        outputs.push(self.answer(id, ExecType::PendingNew, new.client_order_id.0));
        Ok(outputs)
    }

    fn may_wait(&self, venue: u16) -> Checked<()> {
        let (waits, most) = (self.waits(VenueId(venue)), self.rules(venue).max_queued);
        if self.is_clear(venue) || waits < most as usize {
            return Ok(());
        }
        Err((Denial::VenueQueue, most.into(), waits as i128))
    }

    /// The order that a request names, if it is the session's and the account's.
    fn named(&self, session: u16, original: ClientOrderId, account: u32) -> Checked<&Life> {
        let is_it = |life: &&Life| life.session == session && life.new.client_order_id == original;
        let found = self.lives.values().find(|life| is_it(life) && life.has_its_name());
        found.filter(|life| life.new.account.0 == account).ok_or((Denial::UnknownOrder, 0, 0))
    }

    fn change(&mut self, at: At, envelope: Envelope, request: Request) -> Checked<Vec<Output>> {
        let (client, account) = (request.client_order_id().0, request.account().0);
        let new_id = ClientOrderId(self.id(at));
        match request {
            Request::Cancel(cancel) => {
                let session = envelope.session;
                let by_id = self.lives.get(&cancel.order_id.0);
                let life = match cancel.order_id.0 {
                    0 => self.named(session, cancel.original, account)?,
                    _ => by_id
                        .filter(|life| life.session == session || self.is_entitled(session, life.new.account.0))
                        .ok_or((Denial::UnknownOrder, 0, 0))?,
                };
                may_cancel(life)?;
                let id = life.id;
                Ok(self.cancel(at, id, (session, client), cancel.cause, envelope.sent))
            }
            Request::Replace(replace) => {
                let life = self.named(envelope.session, replace.original, account)?;
                let (id, symbol) = (life.id, life.new.symbol);
                may_replace(life)?;
                if life.sum.cancel.is_some() || life.sum.replace.is_some() {
                    return Err((Denial::AlreadyPending, 0, 0));
                }
                self.risk(&Wish {
                    life,
                    kind: Kind::Replace,
                    price: replace.price.0,
                    quantity: replace.quantity.0,
                    has_waited: false,
                    age_ns: self.ns(at.stamp.saturating_sub(envelope.sent)),
                    reference: envelope.reference_price,
                    reference_age_ns: envelope.reference_age_ns,
                })?;
                self.may_wait(life.venue)?;
                let terms = Some((replace.quantity.0, replace.price.0));
                self.ask(id, Asked { id: new_id.0, client, by: envelope.session, replace: terms, waits: false });
                let original = ClientOrderId(id);
                let sent = tickpath_market::ReplaceOrder { client_order_id: new_id, original, symbol, ..replace };
                let mut outputs = self.send(id, Request::Replace(sent), envelope.sent);
                outputs.push(self.answer(id, ExecType::PendingReplace, client));
                Ok(outputs)
            }
            _ => unreachable!("only cancels and replaces change an order"),
        }
    }

    fn ask(&mut self, order: u64, asked: Asked) {
        let life = self.lives.get_mut(&order).unwrap();
        let waits = self.down.contains(&life.venue) || self.waiting.get(&life.venue).is_some_and(|w| !w.is_empty());
        life.tell(Word::Asked(Asked { waits, ..asked }));
    }

    /// Sends a cancel on, or takes back what never left.
    fn cancel(&mut self, at: At, id: u64, (by, client): (u16, u64), cause: u64, sent: u64) -> Vec<Output> {
        let life = &self.lives[&id];
        let own = if by == life.session { client } else { life.new.client_order_id.0 };
        if life.sum.stand == Stand::Queued {
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
        self.ask(id, Asked { id: self.id(at), client, by, replace: None, waits: false });
        let mut outputs = self.send(id, Request::Cancel(cancel), sent);
        outputs.push(self.answer(id, ExecType::PendingCancel, own));
        twice(outputs, session, by, client)
    }

    fn take_back(&mut self, id: u64, client: u64, exec_type: ExecType) -> Output {
        let life = self.lives.get_mut(&id).unwrap();
        life.tell(Word::TakenBack);
        self.waiting.entry(life.venue).or_default().retain(|waiting| waiting.order != id);
        self.answer(id, exec_type, client)
    }

    fn status(&mut self, at: At, envelope: Envelope, request: Request) -> Checked<Vec<Output>> {
        let Request::Status(status) = request else { unreachable!("it is a question") };
        let id = self.named(envelope.session, status.original, status.account.0)?.id;
        let mut outputs = if self.lives[&id].sum.is_unknown() { self.question(at, id) } else { Vec::new() };
        outputs.push(self.answer(id, ExecType::OrderStatus, status.client_order_id.0));
        Ok(outputs)
    }

    fn mass_cancel(&mut self, at: At, envelope: Envelope, request: Request) -> Checked<Vec<Output>> {
        let Request::MassCancel(all) = request else { unreachable!("it is a mass cancel") };
        let is_meant = |life: &Life| {
            let new = life.new;
            life.session == envelope.session
                && new.account == all.account
                && (all.cancel_type != 1 || new.symbol == all.symbol)
        };
        let meets: Vec<bool> = self
            .lives
            .values()
            .filter(|life| life.is_open() && is_meant(life))
            .map(|life| life.sum.cancel.is_some())
            .collect();
        match (meets.is_empty(), meets.contains(&false)) {
            (true, _) => Err((Denial::UnknownOrder, 0, 0)),
            (false, false) => Err((Denial::AlreadyPending, 0, 0)),
            (false, true) => Ok(self.cancel_all(at, Some((envelope.session, all.client_order_id.0)), is_meant)),
        }
    }

    /// Asks for the cancel of all open orders that are meant and have none on its way.
    fn cancel_all(&mut self, at: At, asked: Option<(u16, u64)>, is_meant: impl Fn(&Life) -> bool) -> Vec<Output> {
        let lives = self.lives.values().filter(|life| life.sum.is_open() && life.sum.cancel.is_none());
        let own = |life: &Life| (life.session, life.new.client_order_id.0);
        let meant: Vec<(u64, (u16, u64))> =
            lives.filter(|life| is_meant(life)).map(|life| (life.id, own(life))).collect();
        meant.into_iter().flat_map(|(id, own)| self.cancel(at, id, asked.unwrap_or(own), 0, at.stamp)).collect()
    }

    fn send(&mut self, order: u64, request: Request, sent: u64) -> Vec<Output> {
        let life = &self.lives[&order];
        if self.is_clear(life.venue) {
            return vec![Output::Venue { venue: VenueId(life.venue), session: life.session, request }];
        }
        let waiting = Waiting { order, request, sent };
        self.waiting.entry(life.venue).or_default().push_back(waiting);
        Vec::new()
    }

    fn answer(&self, id: u64, exec_type: ExecType, client: u64) -> Output {
        let life = &self.lives[&id];
        let (exec_type, venue) = (exec_type.code(), VenueId(life.venue));
        Output::Report { session: life.session, report: ExecutionReport { exec_type, venue, ..life.told(client) } }
    }

    fn report(&mut self, at: At, record: ReportRecord) -> Vec<Output> {
        let report = record.report;
        let Some(what) = ExecType::from_code(report.exec_type).filter(|_| is_possible(&report)) else {
            self.alarms.malformed += 1;
            return Vec::new();
        };
        let life = self.lives.get(&report.order_id.0).filter(|life| life.sum.stand != Stand::Denied);
        let Some(life) = life else {
            self.alarms.strangers += 1;
            return Vec::new();
        };
        if !agrees(life, what, &record) {
            self.alarms.mismatched += 1;
            return Vec::new();
        }
        let is_lost = report.status == OrdStatus::Unknown.code();
        let id = life.id;
        let outputs = match what {
            ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace if !is_lost => Vec::new(),
            ExecType::OrderStatus if !is_lost => self.venue_answers(at, id, report),
            _ => self.event(at, id, what, report),
        };
        let is_told = outputs.iter().any(|output| matches!(output, Output::Report { .. }));
        self.alarms.duplicates += u64::from(!is_told);
        outputs
    }

    fn venue_answers(&mut self, at: At, id: u64, report: ExecutionReport) -> Vec<Output> {
        let life = self.lives.get_mut(&id).unwrap();
        let (before, was_doubted) = (life.sum.seen(), life.sum.doubted);
        let is_since = report.client_order_id.0 >= self.doubts.get(&life.venue).copied().unwrap_or(0);
        let says = life.tell(Word::Answer(report, is_since));
        if !says && life.sum.is_unknown() && was_doubted && !life.sum.doubted {
            return self.question(at, id);
        }
        if life.sum.seen() == before {
            return Vec::new();
        }
        vec![Output::Report {
            session: life.session,
            report: passed_on(life, life.new.client_order_id.0, report, false),
        }]
    }

    fn event(&mut self, at: At, id: u64, what: ExecType, report: ExecutionReport) -> Vec<Output> {
        let numbered = self.rules(self.lives[&id].venue).numbered != 0;
        let life = self.lives.get_mut(&id).unwrap();
        let before = life.sum.clone();
        if !life.tell(Word::Report(report, numbered)) {
            return Vec::new();
        }
        let after = &life.sum;
        let is_gapped = after.highest > 0 && !after.is_complete() && after.is_live();
        if is_gapped && self.gaps.iter().all(|&(order, _)| order != id) {
            self.gaps.push((id, at.stamp));
        }
        let fills = before.fills != after.fills;
        if !fills && before.seen() == after.seen() {
            return Vec::new();
        }
        let multiplier = self.multipliers.get(&life.new.symbol.0).copied().unwrap_or(1);
        let value = i128::from(report.last_price.0).abs() * (after.net - before.net);
        let traded = self.traded.entry(life.new.account.0).or_default();
        *traded = traded.saturating_add(value.saturating_mul(multiplier.into()));
        let is_lost = report.status == OrdStatus::Unknown.code();
        let is_new_doubt = after.stand == Stand::Unknown && before.stand != Stand::Unknown;
        self.alarms.contradictions += u64::from(is_new_doubt && !is_lost);
        let is_complete = fills && after.adds_up() && !before.adds_up();
        let asks = after.is_unknown() && (after.stand != before.stand || is_complete);
        let client = [before.cancel, before.replace].into_iter().flatten().find(|a| a.id == report.client_order_id.0);
        let client = client.filter(|asked| asked.by == life.session);
        let client = client.map_or(life.new.client_order_id.0, |asked| asked.client);
        let tells_fill = !is_lost && matches!(what, ExecType::Trade | ExecType::TradeCorrect | ExecType::TradeCancel);
        let told = Output::Report { session: life.session, report: passed_on(life, client, report, tells_fill) };
        let mut outputs = if asks { self.question(at, id) } else { Vec::new() };
        outputs.push(told);
        outputs
    }
}

fn is_fill(exec_type: u8) -> bool {
    use ExecType::{Trade, TradeCancel, TradeCorrect};
    matches!(ExecType::from_code(exec_type), Some(Trade | TradeCorrect | TradeCancel))
}

/// What has asked for the cancel of an order from another session than its own.
fn asked_by_another(life: &Life) -> Option<(u64, Asked)> {
    life.sum.cancel.filter(|asked| asked.by != life.session).map(|asked| (life.id, asked))
}

/// The last report, for who has asked, too, if it is another session's order.
fn twice(mut outputs: Vec<Output>, session: u16, by: u16, client: u64) -> Vec<Output> {
    if by != session
        && let Some(Output::Report { report, .. }) = outputs.last().copied()
    {
        let client_order_id = ClientOrderId(client);
        outputs.push(Output::Report { session: by, report: ExecutionReport { client_order_id, ..report } });
    }
    outputs
}

fn may_cancel(life: &Life) -> Checked<()> {
    let sum = &life.sum;
    match sum.stand {
        Stand::Denied => Err((Denial::UnknownOrder, 0, 0)),
        Stand::Expired | Stand::Canceled | Stand::Rejected => Err((Denial::TooLate, 0, 0)),
        Stand::Lost | Stand::Unknown if sum.cancel.is_some_and(|asked| asked.waits) => {
            Err((Denial::AlreadyPending, 0, 0))
        }
        Stand::Lost | Stand::Unknown => Ok(()),
        _ if sum.leaves() == 0 => Err((Denial::TooLate, 0, 0)),
        _ if sum.cancel.is_some() => Err((Denial::AlreadyPending, 0, 0)),
        _ => Ok(()),
    }
}

fn may_replace(life: &Life) -> Checked<()> {
    match life.sum.stand {
        Stand::Denied => Err((Denial::UnknownOrder, 0, 0)),
        Stand::Queued => Err((Denial::StillQueued, 0, 0)),
        Stand::Lost | Stand::Unknown => Err((Denial::StateUnknown, 0, 0)),
        _ if life.sum.leaves() == 0 => Err((Denial::TooLate, 0, 0)),
        _ => Ok(()),
    }
}

fn is_possible(report: &ExecutionReport) -> bool {
    let is_fill = matches!(
        ExecType::from_code(report.exec_type),
        Some(ExecType::Trade | ExecType::TradeCorrect | ExecType::TradeCancel)
    );
    match OrdStatus::from_code(report.status) {
        None => false,
        Some(OrdStatus::Unknown) => true,
        Some(_) if report.cumulative_quantity.0 < 0 || report.leaves_quantity.0 < 0 => false,
        Some(_) => !is_fill || (report.exec_id.0 != 0 && report.last_quantity.0 > 0),
    }
}

fn agrees(life: &Life, what: ExecType, record: &ReportRecord) -> bool {
    let report = &record.report;
    let is_unknown = report.status == OrdStatus::Unknown.code();
    let may_leave_side = what == ExecType::OrderStatus || (what == ExecType::CancelRejected && !is_unknown);
    (report.side == life.new.side || (may_leave_side && report.side == 0))
        && (report.symbol, report.account) == (life.new.symbol, life.new.account)
        && report.venue.0 == life.venue
        && record.source.0 == life.venue
}

fn passed_on(life: &Life, client: u64, report: ExecutionReport, tells_fill: bool) -> ExecutionReport {
    ExecutionReport {
        exec_id: report.exec_id,
        venue_sequence: report.venue_sequence,
        last_price: if tells_fill { report.last_price } else { Price(0) },
        last_quantity: if tells_fill { report.last_quantity } else { Quantity(0) },
        venue_stamp: report.venue_stamp,
        reason: report.reason,
        venue: report.venue,
        exec_type: report.exec_type,
        ..life.told(client)
    }
}

fn denied(id: u64, session: u16, client: u64, account: u32, (denial, limit, value): (Denial, i128, i128)) -> Output {
    let denied = OrderDenied {
        order_id: OrderId(id),
        client_order_id: ClientOrderId(client),
        limit: limit.to_le_bytes(),
        value: value.to_le_bytes(),
        account: tickpath_market::AccountId(account),
        code: denial.code(),
        reserved: 0,
    };
    Output::Denied { session, denied }
}
