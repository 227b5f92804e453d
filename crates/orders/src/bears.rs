//! What bears the number of a symbol, an account, a venue or a session. While anything does, the number keeps its meaning.
//!
//! The OMS asks before it journals a definition. The core takes each definition that is in the journal, so a journal
//! replays to the same state and the same outputs as before there was such a question.

use std::fmt;

use tickpath_market::{AccountId, OrderId, Quantity, SymbolId, VenueId};

use crate::core::Core;
use crate::order::Order;
use crate::{KILL_ACCOUNT, KILL_SESSION, KILL_SYMBOL, PositionView};

/// What bears a number. As text it is a clause: `account 1 has a position of 1 in symbol 2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearer {
    /// An order that is open.
    Open(OrderId),
    /// A position that is not flat, or that an order may still change.
    Position {
        /// The account that holds it.
        account: AccountId,
        /// The symbol that it is in.
        symbol: SymbolId,
        /// How large it is.
        view: PositionView,
    },
    /// An open order whose trigger is a price of the symbol.
    Trigger(OrderId),
    /// An order that has ended, and that is forgotten at the end of its day.
    Ended(OrderId),
    /// A report of an order that is not known here: the journal's record with this number.
    Foreign(u64),
    /// A request that used up this client's id, until the day ends.
    Request(u64),
    /// A kill switch that is on.
    Killed,
}

impl Core {
    /// The first thing found that bears the number of a symbol; none if the number may get another meaning.
    pub fn bearer_of_symbol(&self, symbol: SymbolId) -> Option<Bearer> {
        self.open_order(|order| order.symbol == symbol)
            .or_else(|| self.held_position(|_, held| held == symbol))
            .or_else(|| self.trigger_on(symbol))
            .or_else(|| self.ended_order(|order| order.symbol == symbol))
            .or_else(|| {
                let foreign = self.foreign().into_iter().find(|foreign| foreign.record.report.symbol == symbol);
                foreign.map(|foreign| Bearer::Foreign(foreign.sequence))
            })
            .or_else(|| self.kill_switch(KILL_SYMBOL, symbol.0))
    }

    /// The same of an account.
    pub fn bearer_of_account(&self, account: AccountId) -> Option<Bearer> {
        self.open_order(|order| order.account == account)
            .or_else(|| self.held_position(|holder, _| holder == account))
            .or_else(|| self.ended_order(|order| order.account == account))
            .or_else(|| {
                let foreign = self.foreign().into_iter().find(|foreign| foreign.record.report.account == account);
                foreign.map(|foreign| Bearer::Foreign(foreign.sequence))
            })
            .or_else(|| self.kill_switch(KILL_ACCOUNT, account.0))
    }

    /// The same of a venue, but for positions in the symbols that trade there: the core does not know where a symbol traded
    /// that is not defined any more.
    pub fn bearer_of_venue(&self, venue: VenueId) -> Option<Bearer> {
        self.open_order(|order| order.route == venue.0)
            .or_else(|| self.ended_order(|order| order.route == venue.0))
            .or_else(|| {
                let foreign = self.foreign().into_iter().find(|foreign| foreign.record.source == venue);
                foreign.map(|foreign| Bearer::Foreign(foreign.sequence))
            })
    }

    /// The same of a session, but for reports of days that have ended, which the core does not keep.
    pub fn bearer_of_session(&self, session: u16) -> Option<Bearer> {
        self.open_order(|order| order.session == session)
            .or_else(|| self.ended_order(|order| order.session == session))
            .or_else(|| self.used_id(session))
            .or_else(|| self.kill_switch(KILL_SESSION, session.into()))
    }

    fn open_order(&self, is_it: impl Fn(&Order) -> bool) -> Option<Bearer> {
        let open = self.live_slots().map(|slot| self.orders.get(slot)).find(|&order| is_it(order));
        open.map(|order| Bearer::Open(OrderId(order.id)))
    }

    fn ended_order(&self, is_it: impl Fn(&Order) -> bool) -> Option<Bearer> {
        let ended = (0..self.orders.len()).map(|slot| self.orders.get(slot)).find(|&order| is_it(order));
        ended.map(|order| Bearer::Ended(OrderId(order.id)))
    }

    /// A cancel or a replace of a session, or a request of its that was denied.
    fn used_id(&self, session: u16) -> Option<Bearer> {
        let asked = (0..self.asks.len()).map(|slot| self.asks.get(slot)).find(|ask| ask.session == session);
        let denied = || (0..self.denied.len()).map(|slot| self.denied.get(slot)).find(|id| id.session == session);
        asked.map(|ask| ask.client).or_else(|| denied().map(|id| id.client)).map(Bearer::Request)
    }

    fn held_position(&self, is_it: impl Fn(AccountId, SymbolId) -> bool) -> Option<Bearer> {
        let held = self.positions().find(|&(account, symbol, view)| {
            is_it(account, symbol) && (view.net, view.working_buy, view.working_sell) != (0, 0, 0)
        });
        held.map(|(account, symbol, view)| Bearer::Position { account, symbol, view })
    }

    fn trigger_on(&self, symbol: SymbolId) -> Option<Bearer> {
        let armed = self.armed().find(|armed| armed.trigger.conditions().any(|condition| condition.symbol == symbol));
        armed.map(|armed| Bearer::Trigger(armed.order))
    }

    fn kill_switch(&self, scope: u8, target: u32) -> Option<Bearer> {
        self.kills().any(|switch| switch == (scope, target)).then_some(Bearer::Killed)
    }
}

impl fmt::Display for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |id: &OrderId| format!("{}.{}", id.epoch(), id.sequence());
        match self {
            Self::Open(id) => write!(f, "order {} is open", short(id)),
            Self::Position { account, symbol, view } if view.net == 0 => {
                write!(f, "orders of account {account} in symbol {symbol} may still be filled")
            }
            Self::Position { account, symbol, view } => {
                let most = i128::from(i64::MAX);
                let net = Quantity(view.net.clamp(-most, most) as i64);
                write!(f, "account {account} has a position of {net} in symbol {symbol}")
            }
            Self::Trigger(id) => write!(f, "order {} waits for a price of it", short(id)),
            Self::Ended(id) => write!(f, "order {} of this day bears it", short(id)),
            Self::Foreign(record) => {
                write!(f, "the report in record {record}, of an order that is not known here, bears it")
            }
            Self::Request(client) => write!(f, "request {client} of this day came by it"),
            Self::Killed => f.write_str("its kill switch is on"),
        }
    }
}
