//! The checks again: every sum is made anew from all orders.

use tickpath_market::{NewOrder, OrderType, Price, ReplaceOrder, Request};
use tickpath_orders::{Denial, PositionView};

use super::life::Life;
use super::{Checked, Naive};

/// A request as the checks see it.
pub struct Wish<'a> {
    /// The order that it is about; for a new one, as it would be.
    pub life: &'a Life,
    pub kind: Kind,
    pub price: i64,
    pub quantity: i64,
    /// It waited here: the window of its message has passed.
    pub has_waited: bool,
    pub age_ns: u64,
    pub reference: Price,
    pub reference_age_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    New,
    Replace,
}

impl Naive {
    pub fn position(&self, account: u32, symbol: u32) -> PositionView {
        self.position_but(account, symbol, None)
    }

    /// The position as if this request were not here: without its order if it is new, without its replace if not.
    fn position_but(&self, account: u32, symbol: u32, but: Option<(u64, Kind)>) -> PositionView {
        let net = self.past.get(&(account, symbol)).copied().unwrap_or(0);
        let mut position = PositionView { net, ..Default::default() };
        for life in self.lives.values() {
            if (life.new.account.0, life.new.symbol.0) != (account, symbol) || but == Some((life.id, Kind::New)) {
                continue;
            }
            let exposure = i128::from(life.sum.exposure(but != Some((life.id, Kind::Replace))));
            let excess = i128::from(life.sum.filled.saturating_sub(life.sum.told).max(0));
            let recall = if life.sum.is_unknown() { excess } else { 0 };
            if life.new.side == 1 {
                position.net += life.sum.net;
                position.working_buy += exposure;
                position.working_sell += recall;
            } else {
                position.net -= life.sum.net;
                position.working_sell += exposure;
                position.working_buy += recall;
            }
        }
        position
    }

    /// What the account has traded and has open, and how many orders are open, as if this request were not here.
    fn used_but(&self, account: u32, but: (u64, Kind)) -> (i128, u32) {
        let (mut value, mut open) = (self.traded.get(&account).copied().unwrap_or(0), 0);
        for life in self.lives.values().filter(|life| life.new.account.0 == account) {
            if but == (life.id, Kind::New) {
                continue;
            }
            let multiplier = self.multipliers.get(&life.new.symbol.0).copied().unwrap_or(1);
            value = value.saturating_add(life.sum.value(but != (life.id, Kind::Replace), multiplier));
            open += u32::from(life.sum.is_open());
        }
        (value, open)
    }

    pub fn risk(&self, wish: &Wish<'_>) -> Checked<()> {
        self.defined(wish)?;
        self.may_send(wish)?;
        self.is_sensible(wish)?;
        self.has_room(wish)
    }

    fn defined(&self, wish: &Wish<'_>) -> Checked<()> {
        let (account, symbol) = (wish.life.new.account.0, wish.life.new.symbol.0);
        if !self.accounts.contains_key(&account) {
            return Err((Denial::UnknownAccount, 0, account.into()));
        }
        if !self.instruments.contains_key(&symbol) {
            return Err((Denial::UnknownSymbol, 0, symbol.into()));
        }
        if !wish.has_waited {
            return Ok(());
        }
        let (new, replace) = (NewOrder::default(), ReplaceOrder::default());
        let request = if wish.kind == Kind::New { Request::New(new) } else { Request::Replace(replace) };
        self.may_make(wish.life.session, &request)?;
        match self.is_entitled(wish.life.session, account) {
            true => Ok(()),
            false => Err((Denial::NotEntitled, 0, account.into())),
        }
    }

    fn may_send(&self, wish: &Wish<'_>) -> Checked<()> {
        let (account, symbol) = (wish.life.new.account.0, wish.life.new.symbol.0);
        let limits = &self.accounts[&account];
        let kills = [(1, 0), (2, account), (3, symbol)].iter().filter(|&switch| self.kills.contains(switch)).count();
        let messages = if wish.has_waited { 0 } else { self.windows.get(&account).map_or(0, |window| window.1) };
        if self.kills.contains(&(4, 0)) {
            return Err((Denial::DiskFailed, 0, 1));
        }
        if kills > 0 {
            return Err((Denial::KillSwitch, 0, kills as i128));
        }
        if limits.rate_limit != 0 && messages > u64::from(limits.rate_limit) {
            return Err((Denial::MessageRate, limits.rate_limit.into(), messages.into()));
        }
        if limits.max_request_age_ns != 0 && wish.age_ns > limits.max_request_age_ns {
            return Err((Denial::RequestAge, limits.max_request_age_ns.into(), wish.age_ns.into()));
        }
        Ok(())
    }

    fn is_sensible(&self, wish: &Wish<'_>) -> Checked<()> {
        let limits = &self.accounts[&wish.life.new.account.0];
        let least = match wish.kind {
            Kind::New => 1,
            Kind::Replace => wish.life.sum.filled.max(wish.life.sum.told).saturating_add(1),
        };
        let at_most =
            |denial, limit: i128, value: i128| if value > limit { Err((denial, limit, value)) } else { Ok(()) };
        if wish.quantity < least {
            return Err((Denial::MinimumQuantity, least.into(), wish.quantity.into()));
        }
        at_most(Denial::MaximumQuantity, limits.max_order_quantity.0.into(), wish.quantity.into())?;
        if wish.reference.0 == 0 {
            return Err((Denial::NoReference, 1, 0));
        }
        at_most(Denial::StaleReference, limits.max_reference_age_ns.into(), wish.reference_age_ns.into())?;
        let reference = i128::from(wish.reference.0);
        let allowed = reference.abs() * i128::from(limits.collar) / 10_000;
        at_most(Denial::PriceCollar, allowed, (wish.each() - reference).abs())?;
        let points = (wish.each() * i128::from(wish.quantity)).abs();
        let notional = points.checked_mul(self.multipliers[&wish.life.new.symbol.0].into()).unwrap_or(i128::MAX);
        at_most(Denial::Notional, limits.max_notional(), notional)
    }

    fn has_room(&self, wish: &Wish<'_>) -> Checked<()> {
        let (account, symbol, sum) = (wish.life.new.account.0, wish.life.new.symbol.0, &wish.life.sum);
        let (limits, but) = (&self.accounts[&account], (wish.life.id, wish.kind));
        let position = self.position_but(account, symbol, Some(but));
        let reach = match wish.life.new.side {
            1 => position.net + position.working_buy,
            _ => position.working_sell - position.net,
        };
        let (more, adds) = match wish.kind {
            Kind::New => (wish.quantity, wish.quantity),
            Kind::Replace => (wish.quantity.saturating_sub(sum.quantity), wish.quantity.saturating_sub(sum.filled)),
        };
        if more > 0 && reach + i128::from(more) > limits.max_position.0.into() {
            return Err((Denial::Position, limits.max_position.0.into(), reach + i128::from(more)));
        }
        let (used, open) = self.used_but(account, but);
        if wish.kind == Kind::New && limits.max_open_orders != 0 && open + 1 > limits.max_open_orders {
            return Err((Denial::OpenOrders, limits.max_open_orders.into(), (open + 1).into()));
        }
        let multiplier = self.multipliers[&symbol];
        let holds = if wish.kind == Kind::Replace { sum.value(false, multiplier) } else { 0 };
        let wanted = (wish.each().abs() * i128::from(adds.max(0))).checked_mul(multiplier.into()).unwrap_or(i128::MAX);
        let value = if wanted <= holds { 0 } else { used.saturating_sub(holds).saturating_add(wanted) };
        match limits.credit() {
            Some(credit) if value > credit => Err((Denial::Credit, credit, value)),
            _ => Ok(()),
        }
    }
}

impl Wish<'_> {
    /// What one of it is valued at.
    fn each(&self) -> i128 {
        match self.life.new.order_type == OrderType::Market.code() {
            true => self.reference.0.into(),
            false => self.price.into(),
        }
    }
}
