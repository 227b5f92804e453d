//! Requests of clients, from the rights of the session to the outputs for the venue.

use tickpath_market::{ClientOrderId, ExecType, NewOrder, OrderType, Price, Request};
use tickpath_oms_core::{At, Denial, Envelope, Output};
use zerocopy::IntoBytes;

use super::conditional::Terms;
use super::order_log::{LogRequest, OrderLog, Phase};
use super::risk::{Kind, NaiveFacts};
use super::{Checked, Like, Naive, denied, like};

impl Naive {
    pub(super) fn request(&mut self, at: At, envelope: Envelope, request: Request) -> Vec<Output> {
        let outputs = self.admit(at, envelope, request).and_then(|()| match request {
            Request::New(new) => self.new_order(at, envelope, new),
            Request::Cancel(_) | Request::Replace(_) => self.change(at, envelope, request),
            Request::Status(_) => self.status(at, envelope, request),
            Request::MassCancel(_) => self.mass_cancel(at, envelope, request),
            Request::Conditional(new) => self.arm(at, envelope, new),
            Request::ReplaceConditional(replace) => self.replace_conditional(at, envelope, replace),
            Request::Extended(_) | Request::ByTextId(_) => unreachable!("text ids have tests of their own"),
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
        let trades = !matches!(request, Request::Cancel(_) | Request::MassCancel(_) | Request::Status(_));
        if trades && !self.accounts.contains_key(&account) {
            return Err((Denial::UnknownAccount, 0, account.into()));
        }
        if trades && !self.is_entitled(session, account) {
            return Err((Denial::NotEntitled, 0, account.into()));
        }
        if let Some(limits) = self.accounts.get(&account).filter(|_| self.is_entitled(session, account)) {
            let window = self.count(self.windows.get(&account).copied(), limits.rate_window_ns, at);
            self.windows.insert(account, window);
            *self.messages.entry(account).or_default() += 1;
            if let Some(firm) = self.firm {
                self.firm_window = Some(self.count(self.firm_window, firm.rate_window_ns, at));
            }
        }
        if let Some(rules) = self.sessions.get(&session).filter(|rules| rules.as_bytes()[8..] != [0; 40]) {
            let window = self.count(self.session_windows.get(&session).copied(), rules.rate_window_ns, at);
            self.session_windows.insert(session, window);
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

    /// Returns the window with one more message.
    fn count(&self, window: Option<(u64, u64)>, window_ns: u64, at: At) -> (u64, u64) {
        let (start, count) = window.unwrap_or((at.stamp, 0));
        let is_over = self.ns(at.stamp.saturating_sub(start)) >= window_ns;
        if is_over { (at.stamp, 1) } else { (start, count + 1) }
    }

    /// Takes the reference price of a new order or a replace as the symbol's latest, and counts the message if the
    /// instrument has optional limits.
    fn count_symbol(&mut self, at: At, symbol: u32, price: Price) {
        if price.0 != 0 {
            self.prices.insert(symbol, price.0);
        }
        let Some(instrument) = self.instruments.get(&symbol).filter(|i| i.as_bytes()[32..] != [0; 136]) else { return };
        let window = self.count(self.symbol_windows.get(&symbol).copied(), instrument.rate_window_ns, at);
        self.symbol_windows.insert(symbol, window);
    }

    fn new_order(&mut self, at: At, envelope: Envelope, new: NewOrder) -> Checked<Vec<Output>> {
        if self.accounts.contains_key(&new.account.0) && self.instruments.contains_key(&new.symbol.0) {
            self.count_symbol(at, new.symbol.0, envelope.reference_price);
        }
        let venue = self.instruments.get(&new.symbol.0).map_or(0, |instrument| instrument.venue.0);
        let is_market = new.order_type == OrderType::Market.code();
        let valued = if is_market { envelope.reference_price.0 } else { new.price.0 };
        let life = OrderLog::new(new, self.id(at), envelope.session, venue, !self.is_clear(venue), valued);
        self.risk(&NaiveFacts {
            life: &life,
            kind: Kind::New,
            price: new.price.0,
            quantity: new.quantity.0,
            has_waited: false,
            stamp: at.stamp,
            age_ns: self.ns(at.stamp.saturating_sub(envelope.sent)),
            reference: envelope.reference_price,
            reference_age_ns: envelope.reference_age_ns,
        })?;
        self.may_wait(venue)?;
        let id = life.id;
        self.note_recent(at, &new);
        self.lives.insert(id, life);
        let request = Request::New(NewOrder { client_order_id: ClientOrderId(id), ..new });
        let mut outputs = self.send(id, request, envelope.sent);
        outputs.push(self.answer(id, ExecType::PendingNew, new.client_order_id.0));
        Ok(outputs)
    }

    /// Notes an order for the detection of duplicates, and drops older ones by the present window, even if a longer
    /// window is defined later.
    fn note_recent(&mut self, at: At, new: &NewOrder) {
        let window_ns = self.accounts[&new.account.0].duplicate_window_ns;
        if window_ns == 0 {
            return;
        }
        let mut recent = self.recent.remove(&new.account.0).unwrap_or_default();
        let is_old = |&(_, stamp): &(Like, u64)| self.ns(at.stamp.saturating_sub(stamp)) >= window_ns;
        let old = recent.iter().take_while(|seen| is_old(seen)).count();
        recent.drain(..old);
        recent.push((like(new), at.stamp));
        self.recent.insert(new.account.0, recent);
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
                if life.sum.phase == Phase::Armed {
                    let (price, quantity) = (replace.price.0, replace.quantity.0);
                    return self.rearm(at, envelope, id, &Terms { client, price, quantity, trigger: None });
                }
                may_replace(life)?;
                if life.sum.cancel.is_some() || life.sum.replace.is_some() {
                    return Err((Denial::AlreadyPending, 0, 0));
                }
                self.count_symbol(at, symbol.0, envelope.reference_price);
                let life = &self.lives[&id];
                self.risk(&NaiveFacts {
                    life,
                    stamp: at.stamp,
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
                self.ask(id, LogRequest { id: new_id.0, client, by: envelope.session, replace: terms, waits: false });
                let original = ClientOrderId(id);
                let sent = tickpath_market::ReplaceOrder { client_order_id: new_id, original, symbol, ..replace };
                let mut outputs = self.send(id, Request::Replace(sent), envelope.sent);
                outputs.push(self.answer(id, ExecType::PendingReplace, client));
                Ok(outputs)
            }
            _ => unreachable!("only cancels and replaces change an order"),
        }
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
        let is_in_scope = |life: &OrderLog| {
            let new = life.new;
            life.session == envelope.session
                && new.account == all.account
                && (all.cancel_type != 1 || new.symbol == all.symbol)
        };
        let meets: Vec<bool> = self
            .lives
            .values()
            .filter(|life| life.is_open() && is_in_scope(life))
            .map(|life| life.sum.cancel.is_some())
            .collect();
        match (meets.is_empty(), meets.contains(&false)) {
            (true, _) => Err((Denial::UnknownOrder, 0, 0)),
            (false, false) => Err((Denial::AlreadyPending, 0, 0)),
            (false, true) => Ok(self.cancel_all(at, Some((envelope.session, all.client_order_id.0)), is_in_scope)),
        }
    }
}

fn may_cancel(life: &OrderLog) -> Checked<()> {
    let sum = &life.sum;
    match sum.phase {
        Phase::Denied => Err((Denial::UnknownOrder, 0, 0)),
        Phase::Expired | Phase::Canceled | Phase::Rejected => Err((Denial::TooLate, 0, 0)),
        Phase::Lost | Phase::Unknown if sum.cancel.is_some_and(|asked| asked.waits) => {
            Err((Denial::AlreadyPending, 0, 0))
        }
        Phase::Lost | Phase::Unknown => Ok(()),
        _ if sum.leaves() == 0 => Err((Denial::TooLate, 0, 0)),
        _ if sum.cancel.is_some() => Err((Denial::AlreadyPending, 0, 0)),
        _ => Ok(()),
    }
}

/// Checks that the order is in a state that a replace can change.
pub(super) fn may_replace(life: &OrderLog) -> Checked<()> {
    match life.sum.phase {
        Phase::Denied => Err((Denial::UnknownOrder, 0, 0)),
        Phase::Queued => Err((Denial::StillQueued, 0, 0)),
        Phase::Lost | Phase::Unknown => Err((Denial::StateUnknown, 0, 0)),
        _ if life.sum.leaves() == 0 => Err((Denial::TooLate, 0, 0)),
        _ => Ok(()),
    }
}
