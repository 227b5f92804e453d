//! References to the number of a symbol, an account, a venue or a session. While any exist, the number keeps its
//! meaning.
//!
//! The OMS checks for references before it journals a definition. The core accepts every definition in the journal, so
//! journals from before this check replay to the same state and the same outputs.

use std::fmt;

use tickpath_market::{AccountId, OrderId, Quantity, SymbolId, VenueId};

use crate::core::Core;
use crate::order::Order;
use crate::{KILL_ACCOUNT, KILL_SESSION, KILL_SYMBOL, PositionView, ReportRecord};

/// Reference to a number. As text it is a clause: `account 1 has a position of 1 in symbol 2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdReference {
    /// Open order.
    OpenOrder(OrderId),
    /// Position that is not flat, or that an order may still change.
    Position {
        /// Account that holds the position.
        account: AccountId,
        /// Symbol of the position.
        symbol: SymbolId,
        /// Size of the position, with working quantities.
        view: PositionView,
    },
    /// Open order whose trigger is a price of the symbol.
    Trigger(OrderId),
    /// Ended order, which is dropped at the end of its day.
    EndedOrder(OrderId),
    /// Report of an unknown order, by the sequence of its journal record.
    UnknownOrderReport(u64),
    /// Request that used this client id up until the day ends.
    UsedClientId(u64),
    /// Kill switch that is on.
    KillSwitch,
}

impl Core {
    /// Returns the first reference found to the number of a symbol; none if the number may get another meaning.
    pub fn reference_to_symbol(&self, symbol: SymbolId) -> Option<IdReference> {
        self.open_order(|order| order.symbol == symbol)
            .or_else(|| self.held_position(|_, held| held == symbol))
            .or_else(|| self.trigger_on(symbol))
            .or_else(|| self.ended_order(|order| order.symbol == symbol))
            .or_else(|| self.unknown_report(|record| record.report.symbol == symbol))
            .or_else(|| self.kill_switch(KILL_SYMBOL, symbol.0))
    }

    /// Returns the first reference found to the number of an account; none if the number may get another meaning.
    pub fn reference_to_account(&self, account: AccountId) -> Option<IdReference> {
        self.open_order(|order| order.account == account)
            .or_else(|| self.held_position(|holder, _| holder == account))
            .or_else(|| self.ended_order(|order| order.account == account))
            .or_else(|| self.unknown_report(|record| record.report.account == account))
            .or_else(|| self.kill_switch(KILL_ACCOUNT, account.0))
    }

    /// Returns the first reference found to the number of a venue. Positions in the venue's symbols do not count: the
    /// core does not know where a symbol traded that is not defined any more.
    pub fn reference_to_venue(&self, venue: VenueId) -> Option<IdReference> {
        self.open_order(|order| order.venue == venue)
            .or_else(|| self.ended_order(|order| order.venue == venue))
            .or_else(|| self.unknown_report(|record| record.source == venue))
    }

    /// Returns the first reference found to the number of a session. Reports of ended days are not kept or counted.
    pub fn reference_to_session(&self, session: u16) -> Option<IdReference> {
        self.open_order(|order| order.session == session)
            .or_else(|| self.ended_order(|order| order.session == session))
            .or_else(|| self.orders.used_client_id(session).map(IdReference::UsedClientId))
            .or_else(|| self.kill_switch(KILL_SESSION, session.into()))
    }

    fn open_order(&self, matches: impl Fn(&Order) -> bool) -> Option<IdReference> {
        let open = self.orders.open_orders().find(|&order| matches(order));
        open.map(|order| IdReference::OpenOrder(OrderId(order.id)))
    }

    fn ended_order(&self, matches: impl Fn(&Order) -> bool) -> Option<IdReference> {
        let ended = self.orders.iter().find(|&order| matches(order));
        ended.map(|order| IdReference::EndedOrder(OrderId(order.id)))
    }

    fn unknown_report(&self, matches: impl Fn(&ReportRecord) -> bool) -> Option<IdReference> {
        let kept = self.unknown_reports.list().into_iter().find(|kept| matches(&kept.record));
        kept.map(|kept| IdReference::UnknownOrderReport(kept.sequence))
    }

    fn held_position(&self, matches: impl Fn(AccountId, SymbolId) -> bool) -> Option<IdReference> {
        let held = self.positions.iter().find(|&(account, symbol, view)| {
            matches(account, symbol) && (view.net, view.working_buy, view.working_sell) != (0, 0, 0)
        });
        held.map(|(account, symbol, view)| IdReference::Position { account, symbol, view })
    }

    fn trigger_on(&self, symbol: SymbolId) -> Option<IdReference> {
        let armed =
            self.armed_orders().find(|armed| armed.trigger.conditions().any(|condition| condition.symbol == symbol));
        armed.map(|armed| IdReference::Trigger(armed.order))
    }

    fn kill_switch(&self, scope: u8, target: u32) -> Option<IdReference> {
        self.trading.kills().any(|switch| switch == (scope, target)).then_some(IdReference::KillSwitch)
    }
}

impl fmt::Display for IdReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |id: &OrderId| format!("{}.{}", id.epoch(), id.sequence());
        match self {
            Self::OpenOrder(id) => write!(f, "order {} is open", short(id)),
            Self::Position { account, symbol, view } if view.net == 0 => {
                write!(f, "orders of account {account} in symbol {symbol} may still be filled")
            }
            Self::Position { account, symbol, view } => {
                let max = i128::from(i64::MAX);
                let net = Quantity(view.net.clamp(-max, max) as i64);
                write!(f, "account {account} has a position of {net} in symbol {symbol}")
            }
            Self::Trigger(id) => write!(f, "the trigger of order {} uses its price", short(id)),
            Self::EndedOrder(id) => write!(f, "order {} of this day uses it", short(id)),
            Self::UnknownOrderReport(record) => {
                write!(f, "the report in record {record}, of an unknown order, uses it")
            }
            Self::UsedClientId(client) => write!(f, "request {client} of this day used it"),
            Self::KillSwitch => f.write_str("its kill switch is on"),
        }
    }
}
