//! The checks in the naive model: every sum is computed anew from all orders.

use std::collections::BTreeSet;

use tickpath_market::{NewOrder, OrderType, Price, ReplaceOrder, Request};
use tickpath_oms_core::{Denial, FirmLimits, PositionView};

use super::order_log::{OrderLog, Phase};
use super::{Checked, MAX_VALUE, Naive};

/// A request with the facts that the checks need.
pub struct NaiveFacts<'a> {
    /// The order; for a new one, its state if it is accepted.
    pub life: &'a OrderLog,
    pub kind: Kind,
    pub price: i64,
    pub quantity: i64,
    /// The request waited here, so the rate window of its message has passed.
    pub has_waited: bool,
    /// Stamp of the check.
    pub stamp: u64,
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

    /// Returns the position without this request: without a new order, or without the replace.
    fn position_but(&self, account: u32, symbol: u32, but: Option<(u64, Kind)>) -> PositionView {
        let net = self.past.get(&(account, symbol)).copied().unwrap_or(0);
        let mut position = PositionView { net, ..Default::default() };
        for life in self.lives.values() {
            if (life.new.account.0, life.new.symbol.0) != (account, symbol) || but == Some((life.id, Kind::New)) {
                continue;
            }
            let exposure = i128::from(life.sum.exposure(but != Some((life.id, Kind::Replace))));
            let excess = i128::from(life.sum.filled.saturating_sub(life.sum.reported).max(0));
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

    /// Returns the account's traded and open value and its number of open orders, without this request.
    pub fn used_but(&self, account: u32, but: (u64, Kind)) -> (i128, u32) {
        let (mut value, mut open) = (self.traded.get(&account).copied().unwrap_or(0), 0);
        for life in self.lives.values().filter(|life| life.new.account.0 == account) {
            if but == (life.id, Kind::New) {
                continue;
            }
            let contract = self.contracts.get(&life.new.symbol.0).copied().unwrap_or_default();
            value = value.saturating_add(life.sum.value(but != (life.id, Kind::Replace), &contract));
            open += u32::from(life.sum.is_open());
        }
        (value, open)
    }

    pub fn risk(&self, wish: &NaiveFacts<'_>) -> Checked<()> {
        self.defined(wish)?;
        self.may_send(wish)?;
        self.is_sensible(wish)?;
        self.has_room(wish)?;
        self.rare(wish)
    }

    pub fn defined(&self, wish: &NaiveFacts<'_>) -> Checked<()> {
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

    pub fn may_send(&self, wish: &NaiveFacts<'_>) -> Checked<()> {
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

    pub fn is_sensible(&self, wish: &NaiveFacts<'_>) -> Checked<()> {
        let limits = &self.accounts[&wish.life.new.account.0];
        let grain = self.contracts[&wish.life.new.symbol.0].grain;
        let least = match wish.kind {
            Kind::New => 1,
            Kind::Replace => wish.life.sum.filled.max(wish.life.sum.reported).saturating_add(1),
        };
        let at_most =
            |denial, limit: i128, value: i128| if value > limit { Err((denial, limit, value)) } else { Ok(()) };
        if wish.quantity < least {
            return Err((Denial::MinimumQuantity, grain * i128::from(least), grain * i128::from(wish.quantity)));
        }
        at_most(Denial::MaximumQuantity, limits.max_order_quantity.0.into(), grain * i128::from(wish.quantity))?;
        if wish.reference.0 == 0 {
            return Err((Denial::NoReference, 1, 0));
        }
        at_most(Denial::StaleReference, limits.max_reference_age_ns.into(), wish.reference_age_ns.into())?;
        let reference = i128::from(wish.reference.0);
        let allowed = reference.abs() * i128::from(limits.collar) / 10_000;
        at_most(Denial::PriceCollar, allowed, (wish.each() - reference).abs())?;
        let points = (wish.each() * i128::from(wish.quantity)).abs();
        let notional = self.contracts[&wish.life.new.symbol.0].value(points);
        at_most(Denial::Notional, limits.max_notional(), notional)
    }

    fn has_room(&self, wish: &NaiveFacts<'_>) -> Checked<()> {
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
        let grown = self.contracts[&symbol].grain * (reach + i128::from(more));
        if more > 0 && grown > limits.max_position.0.into() {
            return Err((Denial::Position, limits.max_position.0.into(), grown));
        }
        let (used, open) = self.used_but(account, but);
        if wish.kind == Kind::New && limits.max_open_orders != 0 && open + 1 > limits.max_open_orders {
            return Err((Denial::OpenOrders, limits.max_open_orders.into(), (open + 1).into()));
        }
        let contract = self.contracts[&symbol];
        let holds = if wish.kind == Kind::Replace { sum.value(false, &contract) } else { 0 };
        let wanted = contract.value(wish.each().abs() * i128::from(adds.max(0)));
        let value = if wanted <= holds { 0 } else { used.saturating_sub(holds).saturating_add(wanted) };
        match limits.credit() {
            Some(credit) if value > credit => Err((Denial::Credit, credit, value)),
            _ => Ok(()),
        }
    }
}

impl Naive {
    /// Runs the optional checks.
    fn rare(&self, wish: &NaiveFacts<'_>) -> Checked<()> {
        let (new, sum) = (&wish.life.new, &wish.life.sum);
        let (limits, instrument) = (&self.accounts[&new.account.0], &self.instruments[&new.symbol.0]);
        let own = self.own.get(&(new.account.0, new.symbol.0)).copied().unwrap_or_default();
        let session = self.sessions.get(&wish.life.session).copied().unwrap_or_default();
        let firm = self.firm.unwrap_or_default();
        let above = |denial, limit: i128, value: i128| match limit != 0 && value > limit {
            true => Err((denial, limit, value)),
            false => Ok(()),
        };
        let second = (self.booted.1 + self.ns(wish.stamp.saturating_sub(self.booted.0))) / 1_000_000_000 % 86_400;
        let parts: Vec<_> = instrument.hours.iter().filter(|part| part.opens_s != part.closes_s).collect();
        let trades = parts.iter().any(|part| {
            let (opens, closes) = (u64::from(part.opens_s), u64::from(part.closes_s));
            if opens < closes { (opens..closes).contains(&second) } else { !(closes..opens).contains(&second) }
        });
        if !parts.is_empty() && !trades {
            return Err((Denial::TradingHours, 1, 0));
        }
        let restrictions = i128::from(instrument.restricted != 0) + i128::from(own.restricted != 0);
        if restrictions > 0 {
            return Err((Denial::Restricted, 0, restrictions));
        }
        if !limits.currency().is_none() && limits.currency() != instrument.currency() {
            return Err((Denial::Currency, 0, 1));
        }
        let is_limit = new.order_type == OrderType::Limit.code();
        let (tick, lot) = (instrument.tick_size.0, instrument.lot.0);
        let contract = self.contracts[&new.symbol.0];
        let (grain, quantity) = (contract.grain, contract.grain * i128::from(wish.quantity));
        if is_limit && tick != 0 && wish.price % tick != 0 {
            return Err((Denial::TickSize, tick.into(), wish.price.into()));
        }
        if lot != 0 && wish.quantity % lot != 0 {
            return Err((Denial::Lot, grain * i128::from(lot), quantity));
        }
        let (lowest, highest) = (instrument.lowest_price.0, instrument.highest_price.0);
        if is_limit && (lowest, highest) != (0, 0) && wish.price < lowest {
            return Err((Denial::LowestPrice, lowest.into(), wish.price.into()));
        }
        if is_limit && (lowest, highest) != (0, 0) && wish.price > highest {
            return Err((Denial::HighestPrice, highest.into(), wish.price.into()));
        }
        if !wish.has_waited {
            let count = |window: Option<&(u64, u64)>| i128::from(window.map_or(0, |window| window.1));
            let of_session = count(self.session_windows.get(&wish.life.session));
            above(Denial::SessionRate, session.rate_limit.into(), of_session)?;
            above(Denial::SymbolRate, instrument.rate_limit.into(), count(self.symbol_windows.get(&new.symbol.0)))?;
            above(Denial::FirmRate, firm.rate_limit.into(), count(self.firm_window.as_ref()))?;
            let (free, ratio) = (i128::from(limits.order_trade_free), i128::from(limits.order_trade_ratio));
            let most = free + ratio * i128::from(self.fills.get(&new.account.0).copied().unwrap_or(0));
            let messages = i128::from(self.messages.get(&new.account.0).copied().unwrap_or(0));
            if (free, ratio) != (0, 0) && messages > most {
                return Err((Denial::OrderToTrade, most, messages));
            }
        }
        if !wish.has_waited && wish.kind == Kind::New && limits.duplicate_window_ns != 0 {
            let recent = self.recent.get(&new.account.0);
            let last = recent.into_iter().flatten().rev().find(|(like, _)| *like == super::like(new));
            let age = last.map_or(u64::MAX, |(_, stamp)| self.ns(wish.stamp.saturating_sub(*stamp)));
            if age < limits.duplicate_window_ns {
                return Err((Denial::DuplicateOrder, limits.duplicate_window_ns.into(), age.into()));
            }
        }
        let points = (wish.each() * i128::from(wish.quantity)).abs();
        let notional = contract.value(points);
        above(Denial::SessionQuantity, session.max_order_quantity.0.into(), quantity)?;
        above(Denial::SessionNotional, i128::from_le_bytes(session.max_notional), notional)?;
        above(Denial::SymbolQuantity, own.max_order_quantity.0.into(), quantity)?;
        let position = self.position_but(new.account.0, new.symbol.0, Some((wish.life.id, wish.kind)));
        let more = if wish.kind == Kind::New { wish.quantity } else { wish.quantity.saturating_sub(sum.quantity) };
        let reach = match new.side {
            1 => position.net + position.working_buy,
            _ => position.working_sell - position.net,
        } + i128::from(more);
        if more > 0 {
            above(Denial::SymbolPosition, own.max_position.0.into(), grain * reach)?;
        }
        if more > 0 && own.no_short != 0 && new.side == 2 && reach > 0 {
            return Err((Denial::ShortSale, 0, grain * reach));
        }
        above(Denial::FirmQuantity, firm.max_order_quantity.0.into(), quantity)?;
        above(Denial::FirmNotional, i128::from_le_bytes(firm.max_notional), notional)?;
        self.firm_has_room(wish, &firm)?;
        if limits.no_self_match != 0 {
            self.meets_none(wish)?;
        }
        self.is_worth_little(wish, reach, more)?;
        let (smallest, least) = (grain * i128::from(instrument.minimum_quantity.0), instrument.minimum_notional());
        if quantity < smallest {
            return Err((Denial::SmallestQuantity, smallest, quantity));
        }
        match least {
            Some(least) if notional < least => Err((Denial::SmallestNotional, least, notional)),
            _ => Ok(()),
        }
    }

    /// Checks that no open order of the account on the other side would trade with this one.
    fn meets_none(&self, wish: &NaiveFacts<'_>) -> Checked<()> {
        let worst = |new: &NewOrder, price: i64| match (new.order_type == OrderType::Market.code(), new.side) {
            (false, _) => price,
            (true, 1) => i64::MAX,
            (true, _) => i64::MIN,
        };
        let (new, at) = (&wish.life.new, worst(&wish.life.new, wish.price));
        let is_other = |life: &&OrderLog| {
            let same = (life.new.account, life.new.symbol) == (new.account, new.symbol);
            same && life.new.side != new.side && life.sum.is_open() && life.sum.phase != Phase::Armed
        };
        let prices = self.lives.values().filter(is_other).flat_map(|life| {
            let asked = life.sum.replace.and_then(|asked| asked.replace).map(|(_, price)| price);
            [Some(life.sum.valued), asked].into_iter().flatten().map(move |price| worst(&life.new, price))
        });
        let met = match new.side {
            1 => prices.filter(|&price| price <= at).min(),
            _ => prices.filter(|&price| price >= at).max(),
        };
        match met {
            None => Ok(()),
            Some(i64::MIN | i64::MAX) => Err((Denial::SelfMatch, wish.each(), wish.each())),
            Some(met) => Err((Denial::SelfMatch, met.into(), wish.each())),
        }
    }

    /// Checks the gross value of the account's positions at the latest prices, and its loss of the day. `reach` is the
    /// position on the order's side with the order, and `more` the order's part of it.
    fn is_worth_little(&self, wish: &NaiveFacts<'_>, reach: i128, more: i64) -> Checked<()> {
        let new = &wish.life.new;
        let limits = &self.accounts[&new.account.0];
        let price = |symbol: u32| i128::from(self.prices.get(&symbol).copied().unwrap_or(0));
        let times = |value: i128, symbol: u32| self.contracts[&symbol].value(value);
        let worth = |reach: i128, symbol: u32| times(reach.saturating_mul(price(symbol).abs()), symbol).min(MAX_VALUE);
        let worst =
            |position: &PositionView| (position.net + position.working_buy).max(position.working_sell - position.net);
        let position = self.position_but(new.account.0, new.symbol.0, Some((wish.life.id, wish.kind)));
        let gross_limit = i128::from_le_bytes(limits.max_gross_value);
        if gross_limit != 0 && more > 0 && reach > worst(&position) {
            let others = self.contracts.keys().filter(|&&symbol| symbol != new.symbol.0);
            let others = others.map(|&symbol| worth(worst(&self.position(new.account.0, symbol)), symbol));
            let value = others.sum::<i128>() + worth(reach, new.symbol.0);
            if value > gross_limit {
                return Err((Denial::GrossValue, gross_limit, value));
            }
        }
        let loss_limit = i128::from_le_bytes(limits.max_loss);
        if loss_limit != 0 && more > 0 && reach > 0 {
            let of_account = self.results.iter().filter(|((account, _), _)| *account == new.account.0);
            let brought = of_account.map(|(&(account, symbol), result)| {
                let now = self.position(account, symbol).net.saturating_mul(price(symbol));
                times(result.saturating_add(now), symbol).clamp(-MAX_VALUE, MAX_VALUE)
            });
            let loss = -brought.sum::<i128>();
            if loss > loss_limit {
                return Err((Denial::DailyLoss, loss_limit, loss));
            }
        }
        Ok(())
    }

    /// Checks the open orders and the traded and open value of all accounts together.
    fn firm_has_room(&self, wish: &NaiveFacts<'_>, firm: &FirmLimits) -> Checked<()> {
        let (sum, but) = (&wish.life.sum, (wish.life.id, wish.kind));
        let accounts: BTreeSet<u32> =
            self.traded.keys().copied().chain(self.lives.values().map(|life| life.new.account.0)).collect();
        let each = accounts.iter().map(|&account| self.used_but(account, but));
        let (used, open) = each.fold((0_i128, 0), |(used, open), (value, orders)| (used + value, open + orders));
        let most = firm.max_open_orders;
        if wish.kind == Kind::New && most != 0 && open + 1 > most {
            return Err((Denial::FirmOpenOrders, most.into(), (open + 1).into()));
        }
        let contract = self.contracts[&wish.life.new.symbol.0];
        let adds = if wish.kind == Kind::New { wish.quantity } else { wish.quantity.saturating_sub(sum.filled) };
        let holds = if wish.kind == Kind::Replace { sum.value(false, &contract) } else { 0 };
        let wanted = contract.value(wish.each().abs() * i128::from(adds.max(0)));
        let value = if wanted <= holds { 0 } else { used.saturating_sub(holds).saturating_add(wanted) };
        let credit = i128::from_le_bytes(firm.credit);
        if credit != 0 && value > credit { Err((Denial::FirmCredit, credit, value)) } else { Ok(()) }
    }
}

impl NaiveFacts<'_> {
    /// Returns the price that values one unit: the limit, or the reference of a market order.
    fn each(&self) -> i128 {
        match self.life.new.order_type == OrderType::Market.code() {
            true => self.reference.0.into(),
            false => self.price.into(),
        }
    }
}
