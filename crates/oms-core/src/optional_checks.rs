//! Facts for the optional checks, which most configurations leave off. With all of them off, an order costs one branch.

use tickpath_market::{OrderType, Side, SymbolId};
use tickpath_oms_risk::{Breach, MAX_VALUE, OptionalFacts, RiskFacts, check_optional};

use crate::SymbolLimits;
use crate::core::Core;
use crate::order::Order;
use crate::recent::DuplicateKey;
use crate::self_match::worst_price;
use crate::trading_config::TradingContext;

impl Core {
    /// Runs the optional checks on a request. A request that has waited does not count as a message again.
    #[inline]
    pub(crate) fn check_optional(
        &self,
        entry: &TradingContext<'_>,
        facts: &RiskFacts<'_>,
        order: &Order,
        stamp: u64,
        has_waited: bool,
    ) -> Result<(), Breach> {
        if !self.trading.has_optional_limits {
            return Ok(());
        }
        let own = self.positions.limits(order.position);
        match entry.has_optional_limits || own.is_some() || self.trading.session_has_optional_limits(order.session) {
            false => Ok(()),
            true => self.run_optional_checks(entry, facts, order, own, (stamp, has_waited)),
        }
    }

    #[cold]
    fn run_optional_checks(
        &self,
        entry: &TradingContext<'_>,
        facts: &RiskFacts<'_>,
        order: &Order,
        own: Option<&SymbolLimits>,
        (stamp, has_waited): (u64, bool),
    ) -> Result<(), Breach> {
        let like = DuplicateKey::of(order);
        let before = self.trading.recent(order.account).and_then(|recent| recent.find(&like));
        let is_new = !has_waited && self.orders.find(order.id).is_none();
        let firm = &self.trading.firm;
        let unless_waited = |messages: u64| if has_waited { 0 } else { messages };
        check_optional(&OptionalFacts {
            facts,
            instrument: entry.instrument,
            session: self.trading.rules(order.session),
            symbol_limits: own.copied().unwrap_or_default(),
            firm: firm.limits,
            is_limit: order.order_type == OrderType::Limit,
            is_sell: order.side == Side::Sell,
            second: self.clock.second_of_day(stamp),
            session_messages: unless_waited(self.trading.messages_of(order.session)),
            symbol_messages: unless_waited(entry.symbol_messages),
            firm_messages: unless_waited(firm.window.messages),
            messages: unless_waited(entry.messages_today),
            fills: entry.open.fills,
            since_duplicate_ns: match before {
                Some(before) if is_new => self.clock.ns(stamp.saturating_sub(before)),
                _ => u64::MAX,
            },
            firm_orders: match facts.open_orders {
                0 => 0,
                _ => firm.open.orders.saturating_add(u32::from(is_new)),
            },
            firm_used: firm
                .open
                .value
                .saturating_add(firm.open.traded)
                .saturating_sub(facts.own_used)
                .saturating_add(facts.held_value),
            trade_price: facts.limit_or_reference() as i64,
            self_match_price: self.self_match_price(order, facts),
            gross_value: facts.limits.max_gross_value().map_or(0, |_| self.gross_value(order, facts)),
            loss: facts.limits.max_loss().map_or(0, |_| self.loss(order, facts)),
        })
    }

    /// Returns the price of the account's own order that this order would meet; this order's if that one has none.
    fn self_match_price(&self, order: &Order, facts: &RiskFacts<'_>) -> Option<i64> {
        if facts.limits.no_self_match == 0 {
            return None;
        }
        let limit = worst_price(order.order_type, order.side, facts.price);
        let price = self.self_match.best_match(order.position, order.side, limit)?;
        let has_price = price != i64::MIN && price != i64::MAX;
        Some(if has_price { price } else { facts.limit_or_reference() as i64 })
    }

    /// Returns the account's worst-case position value with the order; zero if the order does not increase it.
    fn gross_value(&self, order: &Order, facts: &RiskFacts<'_>) -> i128 {
        let other_side = self.positions.get(order.position).worst_position(order.side.opposite());
        let reach = other_side.max(facts.worst_position + i128::from(facts.increase));
        if reach <= other_side.max(facts.worst_position) {
            return 0;
        }
        let others = self.positions.of_account(order.account).filter(|&(slot, _)| slot != order.position);
        let worst = |slot, side| self.positions.get(slot).worst_position(side);
        let at_worst = |slot| worst(slot, Side::Buy).max(worst(slot, Side::Sell));
        let value = |reach: i128, symbol: SymbolId| {
            let price = i128::from(self.trading.price(symbol)).abs();
            self.trading.contract_size(symbol).value(reach.saturating_mul(price)).min(MAX_VALUE)
        };
        others.map(|(slot, symbol)| value(at_worst(slot), symbol)).sum::<i128>() + value(reach, order.symbol)
    }

    /// Returns the account's loss since the day began; zero if the order only closes a position.
    fn loss(&self, order: &Order, facts: &RiskFacts<'_>) -> i128 {
        if facts.increase == 0 || facts.worst_position + i128::from(facts.increase) <= 0 {
            return 0;
        }
        let results = self.positions.of_account(order.account).map(|(slot, symbol)| {
            let result = self.positions.result(slot, self.trading.price(symbol));
            self.trading.contract_size(symbol).value(result).clamp(-MAX_VALUE, MAX_VALUE)
        });
        -results.sum::<i128>()
    }
}
