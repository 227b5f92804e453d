//! Orders with a trigger, in the naive model.

use tickpath_market::{
    ClientOrderId, ConditionalOrder, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderType, Price, Quantity,
    ReplaceConditional, Request, Trigger,
};
use tickpath_oms_core::{At, Denial, Envelope, Output, TriggerFired};

use super::order_log::{LogEvent, OrderLog, Phase};
use super::risk::{Kind, NaiveFacts};
use super::{Checked, Naive, NaiveTrigger, denied};

/// New terms for an armed order.
pub struct Terms {
    pub client: u64,
    pub price: i64,
    pub quantity: i64,
    pub trigger: Option<Trigger>,
}

impl Naive {
    pub fn arm(&mut self, at: At, envelope: Envelope, conditional: ConditionalOrder) -> Checked<Vec<Output>> {
        let ConditionalOrder { order: new, trigger } = conditional;
        let symbol = new.symbol.0;
        let Some(venue) = self.instruments.get(&symbol).map(|instrument| instrument.venue.0) else {
            return Err((Denial::UnknownSymbol, 0, symbol.into()));
        };
        self.can_fire(envelope, &trigger)?;
        let is_market = new.order_type == OrderType::Market.code();
        let valued = if is_market { envelope.reference_price.0 } else { new.price.0 };
        let life = OrderLog::armed(new, self.id(at), envelope.session, venue, valued);
        self.is_well_formed(at, envelope, &life, new.price.0, new.quantity.0)?;
        let (id, cause, position_effect) = (life.id, new.cause, new.position_effect);
        self.lives.insert(id, life);
        self.waits.insert(id, NaiveTrigger { trigger, by: id, since: at.stamp, cause, position_effect });
        Ok(vec![self.answer(id, ExecType::PendingNew, new.client_order_id.0)])
    }

    /// Checks that the trigger can fire at all.
    fn can_fire(&self, envelope: Envelope, trigger: &Trigger) -> Checked<()> {
        if envelope.no_ticks != 0 {
            return Err((Denial::NoTicks, 0, 0));
        }
        match trigger.conditions().find(|condition| !self.instruments.contains_key(&condition.symbol.0)) {
            Some(condition) => Err((Denial::UnknownSymbol, 0, condition.symbol.0.into())),
            None => Ok(()),
        }
    }

    /// Checks the order's terms at its own limit price as the reference, without the checks against other orders.
    fn is_well_formed(&self, at: At, envelope: Envelope, life: &OrderLog, price: i64, quantity: i64) -> Checked<()> {
        let wish = NaiveFacts {
            life,
            kind: Kind::New,
            price,
            quantity,
            has_waited: false,
            stamp: at.stamp,
            age_ns: self.ns(at.stamp.saturating_sub(envelope.sent)),
            reference: Price(if price == 0 { 1 } else { price }),
            reference_age_ns: 0,
        };
        self.defined(&wish)?;
        self.may_send(&wish)?;
        self.is_sensible(&wish)?;
        let account = life.new.account.0;
        let (limits, open) = (&self.accounts[&account], self.used_but(account, (life.id, Kind::New)).1 + 1);
        if limits.max_open_orders != 0 && open > limits.max_open_orders {
            return Err((Denial::OpenOrders, limits.max_open_orders.into(), open.into()));
        }
        match limits.credit() {
            Some(credit) if credit < 0 => Err((Denial::Credit, credit, 0)),
            _ => Ok(()),
        }
    }

    pub fn replace_conditional(
        &mut self,
        at: At,
        envelope: Envelope,
        replace: ReplaceConditional,
    ) -> Checked<Vec<Output>> {
        let life = self.named(envelope.session, replace.original, replace.account.0)?;
        let id = life.id;
        match life.sum.phase {
            Phase::Armed => {}
            Phase::Denied => return Err((Denial::UnknownOrder, 0, 0)),
            Phase::Queued => return Err((Denial::StillQueued, 0, 0)),
            Phase::Lost | Phase::Unknown => return Err((Denial::StateUnknown, 0, 0)),
            Phase::Sent | Phase::Open => return Err((Denial::NotArmed, 0, 0)),
            Phase::Expired | Phase::Canceled | Phase::Rejected => return Err((Denial::TooLate, 0, 0)),
        }
        let (client, price, quantity) = (replace.client_order_id.0, replace.price.0, replace.quantity.0);
        self.rearm(at, envelope, id, &Terms { client, price, quantity, trigger: Some(replace.trigger) })
    }

    pub fn rearm(&mut self, at: At, envelope: Envelope, id: u64, terms: &Terms) -> Checked<Vec<Output>> {
        let life = &self.lives[&id];
        let is_limit = life.new.order_type == OrderType::Limit.code();
        let price = if is_limit { terms.price } else { life.sum.price };
        if let Some(trigger) = &terms.trigger {
            self.can_fire(envelope, trigger)?;
        }
        self.is_well_formed(at, envelope, life, price, terms.quantity)?;
        self.lives.get_mut(&id).unwrap().record(LogEvent::Rearmed(is_limit.then_some(price), terms.quantity));
        let by = self.id(at);
        if let Some(trigger) = terms.trigger {
            let waits = self.waits.get_mut(&id).unwrap();
            *waits = NaiveTrigger { trigger, by, since: at.stamp, ..*waits };
        }
        Ok(vec![self.answer(id, ExecType::Replaced, terms.client)])
    }

    pub fn fire(&mut self, fired: &TriggerFired, at: At, outputs: &mut Vec<Output>) -> bool {
        let id = fired.order;
        let Some(life) = self.lives.get(&id).filter(|life| life.sum.phase == Phase::Armed) else { return false };
        let (session, client, new) = (life.session, life.new.client_order_id.0, life.new);
        let (price, quantity) = (life.sum.price, life.sum.quantity);
        let waits = self.waits.remove(&id).unwrap();
        let venue = self.instruments.get(&new.symbol.0).map_or(0, |instrument| instrument.venue.0);
        let passed = self.risk(&NaiveFacts {
            life: &self.lives[&id],
            kind: Kind::New,
            price,
            quantity,
            has_waited: true,
            stamp: at.stamp,
            age_ns: 0,
            reference: fired.reference_price,
            reference_age_ns: fired.reference_age_ns,
        });
        if let Err(why) = passed.and_then(|()| self.may_wait(venue)) {
            self.lives.get_mut(&id).unwrap().record(LogEvent::Refused(id));
            self.alarms.denied_requests += 1;
            outputs.push(denied(id, session, client, new.account.0, why));
            return true;
        }
        let is_market = new.order_type == OrderType::Market.code();
        let valued = if is_market { fired.reference_price.0 } else { price };
        let queued = !self.is_clear(venue);
        let life = self.lives.get_mut(&id).unwrap();
        life.venue = venue;
        life.record(LogEvent::Fired { queued, valued });
        let request = Request::New(NewOrder {
            client_order_id: ClientOrderId(id),
            price: Price(price),
            quantity: Quantity(quantity),
            cause: if waits.cause == 0 { fired.tick } else { waits.cause },
            position_effect: waits.position_effect,
            ..new
        });
        outputs.extend(self.send(id, request, at.stamp));
        outputs.push(self.answer(id, ExecType::Triggered, client));
        true
    }

    /// Marks every armed order after a reboot: it may have fired in the lost tail of the journal, unless its session
    /// waits for the disk.
    pub fn doubt_armed(&mut self) {
        for (id, waits) in &mut self.waits {
            waits.since = 0;
            let life = self.lives.get_mut(id).unwrap();
            let waits_for_disk = self.sessions.get(&life.session).is_some_and(|rules| rules.level != 0);
            if life.sum.phase == Phase::Armed && !waits_for_disk {
                life.record(LogEvent::MayHaveLeft(*id));
            }
        }
    }

    /// Rejects all armed orders after a failure of the disk.
    pub fn refuse_all_that_is_armed(&mut self, outputs: &mut Vec<Output>) {
        for (&id, life) in &mut self.lives {
            if life.sum.phase == Phase::Armed {
                life.record(LogEvent::Refused(id));
                self.waits.remove(&id);
                self.alarms.denied_requests += 1;
                let (client, account) = (life.new.client_order_id.0, life.new.account.0);
                outputs.push(denied(id, life.session, client, account, (Denial::DiskFailed, 0, 1)));
            }
        }
    }

    /// Returns whether the venue answers that it never had this order, while the order may still wait for its trigger
    /// and has no cancel outstanding.
    pub fn may_not_have_fired(&self, id: u64, report: &ExecutionReport) -> bool {
        let sum = &self.lives[&id].sum;
        let is_not_there =
            report.status == OrdStatus::Rejected.code() && report.venue_sequence == 0 && report.side == 0;
        let was_reported = sum.highest > 0 || sum.filled > 0 || sum.reported > 0 || sum.venue_id > 0;
        self.waits.contains_key(&id) && is_not_there && sum.is_unknown() && !was_reported && sum.cancel.is_none()
    }

    /// Returns the orders that wait for a trigger.
    pub fn armed(&self) -> Vec<(u64, NaiveTrigger)> {
        let is_armed = |id: &u64| self.lives[id].sum.phase == Phase::Armed;
        self.waits.iter().filter(|(id, _)| is_armed(id)).map(|(&id, &waits)| (id, waits)).collect()
    }
}
