//! Starts, lines, doubts, timers, days and admin commands, in the naive model.

use std::collections::BTreeSet;

use tickpath_market::{ClientOrderId, ExecType, OrdStatus, OrderId, Request, StatusRequest, VenueId};
use tickpath_oms_core::{
    ALL_ACCOUNTS, At, Boot, CancelScope, DefinitionEnd, GIVE_UP, Input, KILL_DISK, KillSwitch, LOST_ORDER,
    LOST_REPORTS, LOST_REQUESTS, Output, RecordKind, Release, Resolve, UnsentRequest,
};

use super::contract::Contract;
use super::order_log::{LogEvent, OrderLog, Phase};
use super::requests::may_replace;
use super::risk::{Kind, NaiveFacts};
use super::{Checked, MAX_VALUE, Naive, NaiveQueued, denied, note_result};

const IDS: u32 = 1 << 16;
const VENUES: u16 = 1 << 12;

impl Naive {
    pub fn operate(&mut self, at: At, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        let is_taken = match input {
            Input::Boot(boot) => self.boot(at, &boot),
            Input::Kill(kill) => self.kill(at, &kill, &mut outputs),
            Input::CancelScope(cancel) => self.cancel_scope(at, &cancel, &mut outputs),
            Input::VenueConnection(line) if line.venue.0 < VENUES => {
                let was_down = self.down.contains(&line.venue.0);
                if line.up == 0 {
                    self.down.insert(line.venue.0)
                } else {
                    self.down.remove(&line.venue.0)
                };
                if was_down && line.up != 0 {
                    let unknown = self.open_at(line.venue, |life| life.sum.is_unknown() || life.sum.doubted);
                    outputs = unknown.into_iter().flat_map(|id| self.question(at, id)).collect();
                }
                true
            }
            Input::SessionConnection(login) => {
                let cancels = self.sessions.get(&login.session).is_some_and(|rules| rules.cancel_on_disconnect != 0);
                if login.up == 0 && cancels {
                    outputs = self.cancel_all(at, None, |life| life.session == login.session);
                }
                true
            }
            Input::UnsentRequest(returned) => self.returned(&returned, &mut outputs),
            Input::TriggerFired(fired) => self.fire(&fired, at, &mut outputs),
            Input::Release(release) => self.release(at, &release, &mut outputs),
            Input::MessageLoss(doubt) if doubt.lost == LOST_REQUESTS || doubt.lost == LOST_REPORTS => {
                let doubted = self.open_at(doubt.venue, |life| doubt.lost == LOST_REPORTS || waits_for_answer(life));
                let event = LogEvent::Doubt { reports: doubt.lost == LOST_REPORTS };
                let id = self.id(at);
                self.doubts.insert(doubt.venue.0, id);
                outputs = doubted.into_iter().flat_map(|id| self.lose(at, id, event)).collect();
                true
            }
            Input::MessageLoss(doubt) if doubt.lost == LOST_ORDER => {
                let is_theirs = self.lives.get(&doubt.messages).is_some_and(|life| life.venue == doubt.venue.0);
                if is_theirs {
                    outputs = self.lose(at, doubt.messages, LogEvent::Doubt { reports: true });
                }
                is_theirs
            }
            Input::Resolve(resolve) => self.resolve(&resolve, &mut outputs),
            Input::QueryStatus(inquire) => {
                let may_ask = self.lives.get(&inquire.order).is_some_and(|life| self.may_ask(life));
                outputs = self.question(at, inquire.order);
                may_ask
            }
            Input::Reconcile(reconcile) => {
                let venue = reconcile.venue;
                let waits = self.waiting.get(&venue.0).is_some_and(|queue| !queue.is_empty());
                let answers = !self.down.contains(&venue.0) && self.rules(venue.0).answers_status != 0;
                let may_ask = reconcile.reason[0] != 0 && venue.0 < VENUES && answers && !waits;
                if may_ask {
                    let client_order_id = ClientOrderId(self.id(at));
                    let request = Request::Status(StatusRequest { client_order_id, fills: 1, ..Default::default() });
                    outputs.push(Output::Venue { venue, session: 0, request });
                }
                may_ask
            }
            Input::GapTimer(_) => {
                outputs = self.timer(at);
                true
            }
            Input::DayEnd(_) => {
                outputs = self.end_day();
                true
            }
            definition => self.define(definition),
        };
        self.alarms.ignored += u64::from(!is_taken);
        outputs
    }

    fn define(&mut self, input: Input) -> bool {
        match input {
            Input::Instrument(instrument) => {
                let id = instrument.symbol.0;
                let has_fit_decimals = instrument.multiplier_decimals <= 18 && instrument.more_quantity_decimals <= 0;
                let valid = id < IDS && instrument.multiplier > 0 && instrument.venue.0 < VENUES && has_fit_decimals;
                if valid {
                    self.instruments.insert(id, instrument);
                    self.contracts.insert(id, Contract::of(&instrument));
                }
                valid
            }
            Input::Account(limits) if limits.account.0 < IDS => {
                self.accounts.insert(limits.account.0, limits);
                if limits.duplicate_window_ns == 0 {
                    self.recent.remove(&limits.account.0);
                }
                true
            }
            Input::Venue(rules) if rules.venue.0 < VENUES => {
                self.venues.insert(rules.venue.0, rules);
                true
            }
            Input::Session(rules) => {
                self.sessions.insert(rules.session, rules);
                true
            }
            Input::Grant(grant) if grant.account.0 < IDS || grant.account == ALL_ACCOUNTS => {
                self.grants.insert((grant.session, grant.account.0));
                true
            }
            Input::SymbolLimits(limits) if limits.account.0 < IDS && limits.symbol.0 < IDS => {
                self.own.insert((limits.account.0, limits.symbol.0), limits);
                true
            }
            Input::Firm(limits) => {
                self.firm = Some(limits);
                true
            }
            Input::Reject(rule) if rule.venue.0 < VENUES && rule.action == GIVE_UP => {
                self.rejects.insert((rule.venue.0, rule.code));
                true
            }
            Input::DefinitionEnd(ended) => self.end(&ended),
            _ => false,
        }
    }

    fn end(&mut self, ended: &DefinitionEnd) -> bool {
        match RecordKind::from_code(ended.kind) {
            Some(RecordKind::Instrument) => self.instruments.remove(&ended.id).is_some(),
            Some(RecordKind::Account) => self.accounts.remove(&ended.id).is_some(),
            Some(RecordKind::Venue) => {
                self.venues.retain(|&venue, _| u32::from(venue) != ended.id);
                ended.id < u32::from(VENUES)
            }
            Some(RecordKind::Session) => {
                let grants = self.grants.len();
                self.grants.retain(|&(session, _)| session != ended.session);
                self.session_windows.remove(&ended.session);
                self.sessions.remove(&ended.session).is_some() || self.grants.len() < grants
            }
            Some(RecordKind::Reject) => {
                u16::try_from(ended.id).is_ok_and(|venue| self.rejects.remove(&(venue, ended.session)))
            }
            Some(RecordKind::Grant) => self.grants.remove(&(ended.session, ended.id)),
            Some(RecordKind::SymbolLimits) => self.own.remove(&(ended.session.into(), ended.id)).is_some(),
            Some(RecordKind::Firm) => {
                self.firm_window = None;
                self.firm.take().is_some()
            }
            _ => false,
        }
    }

    fn boot(&mut self, at: At, boot: &Boot) -> bool {
        if boot.epoch <= self.epoch || boot.epoch >= 1 << 24 || boot.ticks_per_second == 0 {
            return false;
        }
        self.epoch = boot.epoch;
        self.half_ns = 2_000_000_000 / boot.ticks_per_second;
        self.booted = (at.stamp, boot.utc_ns);
        self.kills.remove(&(KILL_DISK, 0));
        if self.boot_id != boot.boot_id {
            self.boot_id = boot.boot_id;
            self.windows.clear();
            self.session_windows.clear();
            self.symbol_windows.clear();
            self.firm_window = None;
            self.recent.clear();
            self.gaps.iter_mut().for_each(|gap| gap.1 = 0);
            let waited: Vec<NaiveQueued> = self.waiting.values_mut().flat_map(std::mem::take).collect();
            for NaiveQueued { order, request, .. } in waited {
                let (life, id) = (self.lives.get_mut(&order).unwrap(), request.client_order_id().0);
                let is_it = |asked: Option<super::LogRequest>| asked.is_some_and(|asked| asked.id == id);
                let is_order = matches!(request, Request::New(_)) && life.sum.phase == Phase::Queued;
                let is_question = matches!(request, Request::Status(_));
                if is_order || !is_question && (is_it(life.sum.cancel) || is_it(life.sum.replace)) {
                    life.record(LogEvent::MayHaveLeft(id));
                }
            }
            self.doubt_armed();
        }
        true
    }

    fn kill(&mut self, at: At, kill: &KillSwitch, outputs: &mut Vec<Output>) -> bool {
        let has_target = matches!(kill.scope, 2 | 3 | 5);
        let is_known = matches!(kill.scope, 1..=5) && !(has_target && kill.target >= IDS);
        if !is_known || (kill.scope == KILL_DISK && kill.on == 0) {
            return false;
        }
        let switch = (kill.scope, if has_target { kill.target } else { 0 });
        if kill.on == 0 {
            self.kills.remove(&switch);
            return true;
        }
        self.kills.insert(switch);
        if kill.scope == KILL_DISK {
            self.refuse_all_that_waits(outputs);
            self.refuse_all_that_is_armed(outputs);
        }
        if kill.cancel != 0 {
            outputs.extend(self.cancel_all(at, None, |life| is_in_scope(life, kill.scope, kill.target)));
        }
        true
    }

    fn cancel_scope(&mut self, at: At, cancel: &CancelScope, outputs: &mut Vec<Output>) -> bool {
        let is_known = cancel.scope == 1 || matches!(cancel.scope, 2 | 3 | 5) && cancel.target < IDS;
        if is_known {
            outputs.extend(self.cancel_all(at, None, |life| is_in_scope(life, cancel.scope, cancel.target)));
        }
        is_known
    }

    /// Rejects every waiting new order and replace.
    fn refuse_all_that_waits(&mut self, outputs: &mut Vec<Output>) {
        let venues: Vec<u16> = self.waiting.keys().copied().collect();
        for venue in venues {
            let queue = self.waiting.remove(&venue).unwrap();
            let mut kept = std::collections::VecDeque::new();
            for waiting in queue {
                let (life, id) = (self.lives.get_mut(&waiting.order).unwrap(), waiting.request.client_order_id().0);
                let client = match waiting.request {
                    Request::New(new) if life.sum.phase == Phase::Queued => {
                        assert_eq!(new.client_order_id.0, life.id);
                        Some(life.new.client_order_id.0)
                    }
                    Request::Replace(_) => life.sum.replace.filter(|asked| asked.id == id).map(|asked| asked.client),
                    _ => None,
                };
                let Some(client) = client else {
                    kept.push_back(waiting);
                    continue;
                };
                life.record(LogEvent::Refused(id));
                self.alarms.denied_requests += 1;
                let why = (tickpath_oms_core::Denial::DiskFailed, 0, 1);
                outputs.push(denied(id, life.session, client, life.new.account.0, why));
            }
            self.waiting.insert(venue, kept);
        }
    }

    /// Returns the open orders of a venue that `is_in_scope` selects.
    fn open_at(&self, venue: VenueId, is_in_scope: impl Fn(&OrderLog) -> bool) -> Vec<u64> {
        let open = self.lives.values().filter(|life| life.venue == venue.0 && life.sum.is_open());
        open.filter(|life| is_in_scope(life)).map(|life| life.id).collect()
    }

    fn may_ask(&self, life: &OrderLog) -> bool {
        let never_left = matches!(life.sum.phase, Phase::Denied | Phase::Armed | Phase::Queued);
        !never_left && !self.down.contains(&life.venue) && self.rules(life.venue).answers_status != 0
    }

    /// Removes the waiting status request of an order.
    fn forget_question(&mut self, venue: u16, order: u64) {
        let queue = self.waiting.entry(venue).or_default();
        queue.retain(|waiting| waiting.order != order || !matches!(waiting.request, Request::Status(_)));
    }

    /// Sends the status request of an order, or queues it behind the waiting requests, if the venue can be asked.
    pub fn question(&mut self, at: At, id: u64) -> Vec<Output> {
        let Some(life) = self.lives.get(&id).filter(|life| self.may_ask(life)) else { return Vec::new() };
        let venue = life.venue;
        let request = Request::Status(StatusRequest {
            client_order_id: ClientOrderId(OrderId::new(self.epoch, at.sequence).0),
            original: ClientOrderId(id),
            symbol: life.new.symbol,
            account: life.new.account,
            ..Default::default()
        });
        self.forget_question(venue, id);
        self.send(id, request, at.stamp)
    }

    fn lose(&mut self, at: At, id: u64, event: LogEvent) -> Vec<Output> {
        let life = self.lives.get_mut(&id).unwrap();
        let was_unknown = life.sum.is_unknown();
        life.record(event);
        let (is_unknown, client) = (life.sum.is_unknown(), life.new.client_order_id.0);
        let mut outputs = if is_unknown { self.question(at, id) } else { Vec::new() };
        if is_unknown && !was_unknown {
            outputs.push(self.answer(id, ExecType::OrderStatus, client));
        }
        outputs
    }

    fn returned(&mut self, returned: &UnsentRequest, outputs: &mut Vec<Output>) -> bool {
        let Some(request) = returned.request() else { return false };
        let original = match request {
            Request::New(new) => new.client_order_id,
            Request::Cancel(cancel) => cancel.original,
            Request::Replace(replace) => replace.original,
            Request::Status(status) => {
                self.question_returned(returned, status.original.0, request);
                return true;
            }
            Request::MassCancel(_) | Request::Conditional(_) | Request::ReplaceConditional(_) => return false,
            Request::Extended(_) | Request::ByTextId(_) => return false,
        };
        let id = request.client_order_id().0;
        let Some(life) = self.lives.get_mut(&original.0).filter(|life| life.venue == returned.venue.0) else {
            return false;
        };
        if matches!(request, Request::New(_)) {
            if life.sum.is_unknown() {
                return true;
            }
            if life.sum.phase != Phase::Sent {
                return false;
            }
            if let Some(asked) = life.sum.cancel {
                let (id, session, client) = (life.id, life.session, life.new.client_order_id.0);
                let own = if asked.by == session { asked.client } else { client };
                outputs.push(self.take_back(id, own, ExecType::Canceled));
                return true;
            }
        } else {
            match [life.sum.cancel, life.sum.replace].into_iter().flatten().find(|asked| asked.id == id) {
                None => return true,
                Some(asked) if asked.waits => return false,
                Some(_) => {}
            }
        }
        life.record(LogEvent::Returned(id));
        let queue = self.waiting.entry(life.venue).or_default();
        let later = |other: &NaiveQueued| other.order == life.id && other.request.client_order_id().0 > id;
        let place = queue.iter().position(later).unwrap_or(queue.len());
        queue.insert(place, NaiveQueued { order: life.id, request, sent: returned.received });
        if self.kills.contains(&(KILL_DISK, 0)) {
            self.refuse_all_that_waits(outputs);
        }
        true
    }

    /// Queues the last status request of an order again, if its answer is still needed.
    fn question_returned(&mut self, returned: &UnsentRequest, order: u64, request: Request) {
        let Some(life) = self.lives.get(&order).filter(|life| life.venue == returned.venue.0) else { return };
        if !life.sum.is_live() || matches!(life.sum.phase, Phase::Armed | Phase::Queued) {
            return;
        }
        let (id, venue) = (request.client_order_id(), life.venue);
        let queue = self.waiting.entry(venue).or_default();
        let of_order = |other: &NaiveQueued| other.order == order;
        let is_question = |other: &NaiveQueued| matches!(other.request, Request::Status(_));
        if queue.iter().any(|other| of_order(other) && is_question(other) && other.request.client_order_id() > id) {
            return;
        }
        self.forget_question(venue, order);
        let queue = self.waiting.entry(venue).or_default();
        let later = queue.iter().position(|waiting| of_order(waiting) && waiting.request.client_order_id() > id);
        let sent = returned.received;
        queue.insert(later.unwrap_or(queue.len()), NaiveQueued { order, request, sent });
    }

    fn release(&mut self, at: At, release: &Release, outputs: &mut Vec<Output>) -> bool {
        let venue = release.venue.0;
        let queue = self.waiting.entry(venue).or_default();
        let is_next =
            |next: &NaiveQueued| next.order == release.order && next.request.client_order_id().0 == release.request;
        if self.down.contains(&venue) || !queue.front().is_some_and(is_next) {
            return false;
        }
        let waiting = queue.pop_front().unwrap();
        let life = &self.lives[&waiting.order];
        let id = waiting.request.client_order_id().0;
        let (session, account) = (life.session, life.new.account.0);
        let is_asked = [life.sum.cancel, life.sum.replace].into_iter().flatten().find(|asked| asked.id == id);
        let client = is_asked.map_or(life.new.client_order_id.0, |asked| asked.client);
        let passed = match waiting.request {
            Request::New(_) if life.sum.phase == Phase::Queued => self.passes_again(at, release, &waiting),
            Request::Replace(_) if is_asked.is_some() => self.passes_again(at, release, &waiting),
            Request::Cancel(_) if is_asked.is_some() => Ok(()),
            Request::Status(_) if life.sum.is_live() && !matches!(life.sum.phase, Phase::Armed | Phase::Queued) => {
                outputs.push(Output::Venue { venue: release.venue, session, request: waiting.request });
                return true;
            }
            _ => return true,
        };
        let life = self.lives.get_mut(&waiting.order).unwrap();
        match passed {
            Ok(()) => {
                life.record(LogEvent::Left(id));
                outputs.push(Output::Venue { venue: release.venue, session, request: waiting.request });
            }
            Err(why) => {
                life.record(LogEvent::Refused(id));
                self.alarms.denied_requests += 1;
                outputs.push(denied(id, session, client, account, why));
            }
        }
        true
    }

    /// Checks a waiting request as if it arrived now.
    fn passes_again(&self, at: At, release: &Release, waiting: &NaiveQueued) -> Checked<()> {
        let life = &self.lives[&waiting.order];
        let (kind, price, quantity) = match waiting.request {
            Request::Replace(replace) => {
                may_replace(life)?;
                (Kind::Replace, replace.price.0, replace.quantity.0)
            }
            _ => (Kind::New, life.sum.price, life.sum.quantity),
        };
        self.risk(&NaiveFacts {
            life,
            kind,
            price,
            quantity,
            has_waited: true,
            stamp: at.stamp,
            age_ns: self.ns(at.stamp.saturating_sub(waiting.sent)),
            reference: release.reference_price,
            reference_age_ns: release.reference_age_ns,
        })
    }

    fn resolve(&mut self, resolve: &Resolve, outputs: &mut Vec<Output>) -> bool {
        use OrdStatus as S;
        let Some(life) = self.lives.get_mut(&resolve.order) else { return false };
        let (filled, sum) = (resolve.cumulative_quantity.0, &life.sum);
        let known = [S::New, S::PartiallyFilled, S::Filled, S::Canceled, S::Expired, S::Rejected];
        let Some(status) = S::from_code(resolve.status).filter(|status| known.contains(status)) else { return false };
        let is_true = filled >= 0 && filled <= sum.quantity.max(sum.filled);
        let is_whole = status != S::Filled || filled >= sum.quantity;
        if !sum.is_unknown() || resolve.reason[0] == 0 || !is_true || !is_whole {
            return false;
        }
        let value = i128::from(sum.valued).abs() * (i128::from(filled) - i128::from(sum.filled));
        let contract = self.contracts.get(&life.new.symbol.0).copied().unwrap_or_default();
        let traded = self.traded.entry(life.new.account.0).or_default();
        *traded += contract.value(value).clamp(-MAX_VALUE, MAX_VALUE);
        *self.fills.entry(life.new.account.0).or_default() += u64::from(filled > life.sum.filled);
        let quantity = i128::from(filled) - i128::from(life.sum.filled);
        note_result(&mut self.results, &life.new, quantity, life.sum.valued);
        life.record(LogEvent::Resolved(status, filled));
        self.waits.remove(&resolve.order);
        let client = life.new.client_order_id.0;
        outputs.push(self.answer(resolve.order, ExecType::OrderStatus, client));
        true
    }

    fn timer(&mut self, at: At) -> Vec<Output> {
        let mut outputs = Vec::new();
        for (id, since) in std::mem::take(&mut self.gaps) {
            let Some(life) = self.lives.get(&id) else { continue };
            if life.sum.is_complete() || !life.sum.is_live() {
                continue;
            }
            if self.ns(at.stamp.saturating_sub(since)) < self.rules(life.venue).max_gap_ns {
                self.gaps.push((id, since));
            } else {
                outputs.extend(self.lose(at, id, LogEvent::Missed));
            }
        }
        outputs
    }

    fn end_day(&mut self) -> Vec<Output> {
        let (mut outputs, mut expired) = (Vec::new(), BTreeSet::new());
        let open: Vec<u64> = self.lives.values().filter(|life| life.sum.is_open()).map(|life| life.id).collect();
        for id in open {
            let life = self.lives.get_mut(&id).unwrap();
            let client = life.new.client_order_id.0;
            if life.is_good_till_cancel() {
                continue;
            }
            if life.sum.is_unknown() {
                self.waits.remove(&id);
                continue;
            }
            if matches!(life.sum.phase, Phase::Queued | Phase::Armed) {
                outputs.push(self.take_back(id, client, ExecType::Expired));
            } else {
                life.record(LogEvent::DayEnd);
                expired.insert(id);
                outputs.push(self.answer(id, ExecType::Expired, client));
            }
        }
        self.forget_done(&expired);
        outputs
    }

    /// Removes finished orders. An order that has just expired is known for one more day, though its client id is free
    /// again.
    fn forget_done(&mut self, expired: &BTreeSet<u64>) {
        let is_kept = |life: &OrderLog| life.sum.is_open() || life.sum.exposure(true) > 0 || expired.contains(&life.id);
        for life in self.lives.values().filter(|life| !is_kept(life)) {
            let net = if life.new.side == 1 { life.sum.net } else { -life.sum.net };
            *self.past.entry((life.new.account.0, life.new.symbol.0)).or_default() += net;
        }
        self.gone = self.lives.extract_if(.., |_, life| !is_kept(life)).collect();
        self.traded.clear();
        self.messages.clear();
        self.fills.clear();
        self.recent.clear();
        self.used.clear();
        for life in self.lives.values().filter(|life| life.has_its_name()) {
            let asked = [life.sum.cancel, life.sum.replace].into_iter().flatten().map(|asked| (asked.by, asked.client));
            self.used.extend(asked.chain([(life.session, life.new.client_order_id.0)]));
        }
        let lives = &self.lives;
        self.waiting.values_mut().for_each(|queue| queue.retain(|waiting| lives.contains_key(&waiting.order)));
        self.gaps.retain(|(id, _)| lives.contains_key(id));
        self.waits.retain(|id, _| lives.get(id).is_some_and(|life| life.sum.is_open()));
        let begin = |&(account, symbol): &(u32, u32)| {
            let price = self.prices.get(&symbol).copied().unwrap_or(0);
            let worth = self.position(account, symbol).net.saturating_mul(price.into());
            ((account, symbol), worth.saturating_neg())
        };
        self.results = self.results.keys().map(begin).collect();
    }
}

/// Returns whether a scope covers the order.
fn is_in_scope(life: &OrderLog, scope: u8, target: u32) -> bool {
    match scope {
        2 => life.new.account.0 == target,
        3 => life.new.symbol.0 == target,
        5 => u32::from(life.session) == target,
        _ => true,
    }
}

/// Returns whether the order, a request or a status request is in flight to the venue.
fn waits_for_answer(life: &OrderLog) -> bool {
    let is_on_its_way = [life.sum.cancel, life.sum.replace].into_iter().flatten().any(|asked| !asked.waits);
    life.sum.phase == Phase::Sent || life.sum.is_unknown() || is_on_its_way
}
