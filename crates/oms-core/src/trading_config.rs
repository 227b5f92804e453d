//! Trading configuration: accounts with limits and counts, instruments, sessions with rights, kill switches.

use std::collections::BTreeSet;

use tickpath_market::{AccountId, SymbolId};
use tickpath_oms_risk::{ACCOUNT_BYTES, Breach, ContractSize, INSTRUMENT_BYTES, SESSION_BYTES, has_optional_fields};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::recent::{RecentOrder, RecentOrders};
use crate::venue_table::VENUE_LIMIT;
use crate::{
    ALL_ACCOUNTS, AccountLimits, Denial, FirmLimits, Grant, Instrument, KILL_ACCOUNT, KILL_ALL, KILL_DISK,
    KILL_SESSION, KILL_SYMBOL, KillSwitch, MAY_NEW, MAY_REPLACE, SessionRules,
};

/// Upper bound of account and symbol ids, which index a table.
pub(crate) const ID_LIMIT: u32 = 1 << 16;

/// The tables that requests are checked against.
#[derive(Default)]
pub(crate) struct TradingConfig {
    pub(crate) accounts: Vec<AccountEntry>,
    pub(crate) symbols: Vec<SymbolEntry>,
    pub(crate) sessions: Vec<SessionEntry>,
    pub(crate) firm: FirmState,
    pub(crate) killed: bool,
    pub(crate) disk_failed: bool,
    /// The kill switches that are on, by scope and target: a status query lists them without a walk over the tables.
    pub(crate) switches: BTreeSet<(u8, u32)>,
    /// Some definition has, or had, an optional limit. Without any, requests skip the optional checks.
    pub(crate) has_optional_limits: bool,
}

/// Configuration and counts of a defined account and a defined symbol.
pub(crate) struct TradingContext<'a> {
    pub(crate) limits: &'a AccountLimits,
    pub(crate) instrument: &'a Instrument,
    /// Contract size of the instrument.
    pub(crate) size: ContractSize,
    /// Messages of the account in its open rate window, this one included.
    pub(crate) messages: u64,
    /// Number of kill switches that cover the account or the symbol.
    pub(crate) kills: u8,
    pub(crate) disk_failed: bool,
    pub(crate) open: TradingTotals,
    /// The account's limits or the instrument have optional fields set.
    pub(crate) has_optional_limits: bool,
    /// New orders and replaces for the symbol in its open rate window.
    pub(crate) symbol_messages: u64,
    /// Messages of the account since the day began.
    pub(crate) messages_today: u64,
}

/// The firm: the sum of all accounts. Without limits nothing is counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FirmState {
    pub(crate) limits: FirmLimits,
    pub(crate) is_limited: bool,
    pub(crate) window: RateWindow,
    pub(crate) open: TradingTotals,
}

/// Rate window, with its start and the number of messages since.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RateWindow {
    start: u64,
    pub(crate) messages: u64,
}

impl RateWindow {
    /// Counts a message; the window closes `window_ns` nanoseconds after its first message.
    #[inline]
    fn count(&mut self, window_ns: u64, stamp: u64, ns: impl Fn(u64) -> u64) {
        if self.messages == 0 || ns(stamp.saturating_sub(self.start)) >= window_ns {
            *self = Self { start: stamp, messages: 0 };
        }
        self.messages += 1;
    }
}

/// Open orders and traded value of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TradingTotals {
    /// Number of live orders.
    pub(crate) orders: u32,
    /// Value that the live orders may still trade, in units of 10⁻¹⁶ of the currency.
    pub(crate) value: i128,
    /// Value traded since the day began, bought and sold, in the same unit.
    pub(crate) traded: i128,
    /// Fills since the day began.
    pub(crate) fills: u64,
}

#[derive(Default)]
pub(crate) struct AccountEntry {
    pub(crate) limits: Option<AccountLimits>,
    pub(crate) killed: bool,
    pub(crate) has_optional_limits: bool,
    pub(crate) window: RateWindow,
    pub(crate) open: TradingTotals,
    pub(crate) messages_today: u64,
    /// The account's latest orders, if it has duplicate checks.
    pub(crate) recent: Option<Box<RecentOrders>>,
}

#[derive(Default)]
pub(crate) struct SymbolEntry {
    pub(crate) instrument: Option<Instrument>,
    /// Contract size of the latest definition; orders outlive their instrument's definition.
    pub(crate) size: ContractSize,
    pub(crate) killed: bool,
    pub(crate) has_optional_limits: bool,
    pub(crate) window: RateWindow,
    /// Latest reference price of a request for the symbol; zero if there was none.
    pub(crate) price: i64,
}

#[derive(Default)]
pub(crate) struct SessionEntry {
    pub(crate) rules: SessionRules,
    pub(crate) has_optional_limits: bool,
    pub(crate) window: RateWindow,
    pub(crate) killed: bool,
    /// Kinds of request that the session may not make: those withheld, and while it is killed those that add risk.
    pub(crate) denied_kinds: u8,
    /// The session may trade for every account.
    pub(crate) all_accounts: bool,
    /// Accounts that the session may trade for, one bit each.
    pub(crate) accounts: Vec<u64>,
}

impl TradingConfig {
    /// Defines an instrument; returns false if its id, its contract size or its venue is out of range.
    pub(crate) fn define_instrument(&mut self, instrument: &Instrument) -> bool {
        let size = instrument.contract_size().filter(|_| instrument.venue.0 < VENUE_LIMIT);
        match (row_mut(&mut self.symbols, instrument.symbol.0), size) {
            (Some(row), Some(size)) => {
                (row.instrument, row.size) = (Some(*instrument), size);
                row.has_optional_limits = has_optional_fields(instrument, INSTRUMENT_BYTES);
                self.has_optional_limits |= row.has_optional_limits;
            }
            _ => return false,
        }
        true
    }

    /// Sets an account's limits; returns false if its id is out of range. Message counts and kill switches stay.
    pub(crate) fn define_account(&mut self, limits: &AccountLimits) -> bool {
        let Some(row) = row_mut(&mut self.accounts, limits.account.0) else { return false };
        (row.limits, row.has_optional_limits) = (Some(*limits), has_optional_fields(limits, ACCOUNT_BYTES));
        self.has_optional_limits |= row.has_optional_limits;
        if limits.duplicate_window_ns == 0 {
            row.recent = None;
        }
        true
    }

    /// Sets the firm's limits. The firm's open values start from the sum of its accounts.
    pub(crate) fn limit_firm(&mut self, limits: &FirmLimits) {
        if !self.firm.is_limited {
            self.firm = FirmState { is_limited: true, open: self.sum_accounts(), ..FirmState::default() };
        }
        self.firm.limits = *limits;
        self.has_optional_limits = true;
    }

    /// Removes the firm's limits; returns false if it had none.
    pub(crate) fn end_firm(&mut self) -> bool {
        std::mem::take(&mut self.firm).is_limited
    }

    /// Sums the open orders and traded values of all accounts.
    fn sum_accounts(&self) -> TradingTotals {
        self.accounts.iter().fold(TradingTotals::default(), |sum, row| TradingTotals {
            orders: sum.orders + row.open.orders,
            value: sum.value.saturating_add(row.open.value),
            traded: sum.traded.saturating_add(row.open.traded),
            fills: sum.fills + row.open.fills,
        })
    }

    /// Sets a session's rules; returns false if its number is out of range.
    pub(crate) fn define_session(&mut self, rules: &SessionRules) -> bool {
        let Some(row) = row_mut(&mut self.sessions, rules.session.into()) else { return false };
        (row.rules, row.has_optional_limits) = (*rules, has_optional_fields(rules, SESSION_BYTES));
        row.denied_kinds = row.compute_denied_kinds();
        self.has_optional_limits |= row.has_optional_limits;
        true
    }

    /// Returns whether the session has optional limits, or the firm has limits.
    #[inline]
    pub(crate) fn session_has_optional_limits(&self, session: u16) -> bool {
        self.firm.is_limited || self.sessions.get(usize::from(session)).is_some_and(|row| row.has_optional_limits)
    }

    /// Returns the messages of a session in its open rate window.
    pub(crate) fn messages_of(&self, session: u16) -> u64 {
        self.sessions.get(usize::from(session)).map_or(0, |row| row.window.messages)
    }

    /// Returns the latest orders of an account, if it has duplicate checks.
    pub(crate) fn recent(&self, account: AccountId) -> Option<&RecentOrders> {
        self.accounts.get(account.0 as usize)?.recent.as_deref()
    }

    /// Notes an accepted order, if its account has duplicate checks.
    #[inline]
    pub(crate) fn add_recent(
        &mut self,
        account: AccountId,
        like: impl FnOnce() -> RecentOrder,
        age: impl Fn(u64) -> u64,
    ) {
        if !self.has_optional_limits {
            return;
        }
        let Some(row) = self.accounts.get_mut(account.0 as usize).filter(|row| row.has_optional_limits) else { return };
        let window_ns = row.limits.as_ref().map_or(0, |limits| limits.duplicate_window_ns);
        if window_ns != 0 {
            row.recent.get_or_insert_default().add(like(), |stamp| age(stamp) >= window_ns);
        }
    }

    /// Lets a session trade for an account; returns false if the account's id is out of range.
    pub(crate) fn grant(&mut self, grant: &Grant) -> bool {
        let Some(row) = row_mut(&mut self.sessions, grant.session.into()) else { return false };
        match grant.account {
            ALL_ACCOUNTS => row.all_accounts = true,
            AccountId(id) if id < ID_LIMIT => {
                let word = id as usize / 64;
                row.accounts.resize(row.accounts.len().max(word + 1), 0);
                row.accounts[word] |= 1 << (id % 64);
            }
            _ => return false,
        }
        true
    }

    /// Ends an instrument's definition and with it all trading of the symbol; returns false if it was not defined.
    pub(crate) fn end_instrument(&mut self, symbol: u32) -> bool {
        self.symbols.get_mut(symbol as usize).and_then(|row| row.instrument.take()).is_some()
    }

    /// Ends an account's limits and with them all trading for it; returns false if it had none.
    pub(crate) fn end_account(&mut self, account: u32) -> bool {
        self.accounts.get_mut(account as usize).and_then(|row| row.limits.take()).is_some()
    }

    /// Ends a session's right to trade for an account; returns false if it did not have the right.
    pub(crate) fn end_grant(&mut self, session: u16, account: u32) -> bool {
        let Some(row) = self.sessions.get_mut(usize::from(session)) else { return false };
        if AccountId(account) == ALL_ACCOUNTS {
            return std::mem::take(&mut row.all_accounts);
        }
        let Some(word) = row.accounts.get_mut(account as usize / 64) else { return false };
        let bit = 1 << (account % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Ends a session's rules and its rights to accounts; returns false if it had none.
    pub(crate) fn end_session(&mut self, session: u16) -> bool {
        let Some(row) = self.sessions.get_mut(usize::from(session)) else { return false };
        // The kill switch also holds for a later definition.
        let kept = SessionEntry { killed: row.killed, ..SessionEntry::default() }.with_denied_kinds();
        let before = std::mem::replace(row, kept);
        before.rules != SessionRules::default() || before.all_accounts || before.accounts.iter().any(|&word| word != 0)
    }

    /// Returns the kill switches that are on, as scope and target.
    pub(crate) fn kills(&self) -> impl Iterator<Item = (u8, u32)> + '_ {
        self.switches.iter().copied()
    }

    /// Turns a kill switch; returns false for an unknown scope or target. The switch also holds for later definitions.
    pub(crate) fn kill(&mut self, kill: &KillSwitch) -> bool {
        let is_on = kill.on != 0;
        let switch = match kill.scope {
            KILL_SESSION => row_mut(&mut self.sessions, kill.target).map(|row| {
                row.killed = is_on;
                row.denied_kinds = row.compute_denied_kinds();
                &mut row.killed
            }),
            KILL_ALL => Some(&mut self.killed),
            KILL_ACCOUNT => row_mut(&mut self.accounts, kill.target).map(|row| &mut row.killed),
            KILL_SYMBOL => row_mut(&mut self.symbols, kill.target).map(|row| &mut row.killed),
            KILL_DISK => Some(&mut self.disk_failed),
            _ => None,
        };
        let Some(switch) = switch else { return false };
        *switch = is_on;
        let name = (kill.scope, if matches!(kill.scope, KILL_ALL | KILL_DISK) { 0 } else { kill.target });
        match is_on {
            true => self.switches.insert(name),
            false => self.switches.remove(&name),
        };
        true
    }

    /// Returns whether the session may trade for the account.
    #[inline]
    pub(crate) fn is_entitled(&self, session: u16, account: AccountId) -> bool {
        self.sessions.get(usize::from(session)).is_some_and(|row| {
            let word = row.accounts.get(account.0 as usize / 64);
            row.all_accounts || word.is_some_and(|word| word & (1 << (account.0 % 64)) != 0)
        })
    }

    /// Returns whether the session may make requests of this kind.
    #[inline]
    pub(crate) fn permits(&self, session: u16, kind: u8) -> bool {
        self.sessions.get(usize::from(session)).is_none_or(|row| row.denied_kinds & kind == 0)
    }

    /// Returns whether a request kind that is not permitted would be permitted without the session's kill switch.
    #[cold]
    pub(crate) fn is_killed(&self, session: u16, kind: u8) -> bool {
        self.rules(session).withheld & kind == 0
    }

    pub(crate) fn rules(&self, session: u16) -> SessionRules {
        self.sessions.get(usize::from(session)).map_or(SessionRules::default(), |row| row.rules)
    }

    pub(crate) fn has_account(&self, account: AccountId) -> bool {
        self.accounts.get(account.0 as usize).is_some_and(|row| row.limits.is_some())
    }

    /// Counts a message of an account, and of the firm if it has limits.
    #[inline]
    pub(crate) fn count_message(&mut self, account: AccountId, stamp: u64, ns: impl Fn(u64) -> u64) {
        let Some(row) = self.accounts.get_mut(account.0 as usize) else { return };
        let Some(limits) = &row.limits else { return };
        row.window.count(limits.rate_window_ns, stamp, &ns);
        row.messages_today += 1;
        if self.firm.is_limited {
            self.firm.window.count(self.firm.limits.rate_window_ns, stamp, ns);
        }
    }

    /// Counts a message of a session that has optional limits.
    #[inline]
    pub(crate) fn count_session_message(&mut self, session: u16, stamp: u64, ns: impl Fn(u64) -> u64) {
        if !self.has_optional_limits {
            return;
        }
        if let Some(row) = self.sessions.get_mut(usize::from(session)).filter(|row| row.has_optional_limits) {
            row.window.count(row.rules.rate_window_ns, stamp, ns);
        }
    }

    /// Counts a new order or a replace for a symbol, and notes the symbol's reference price.
    #[inline]
    pub(crate) fn count_symbol_message(&mut self, symbol: SymbolId, price: i64, stamp: u64, ns: impl Fn(u64) -> u64) {
        let Some(row) = self.symbols.get_mut(symbol.0 as usize) else { return };
        if price != 0 {
            row.price = price;
        }
        if row.has_optional_limits
            && let Some(instrument) = &row.instrument
        {
            row.window.count(instrument.rate_window_ns, stamp, ns);
        }
    }

    pub(crate) fn set_price(&mut self, symbol: SymbolId, price: i64) {
        if let Some(row) = self.symbols.get_mut(symbol.0 as usize) {
            row.price = price;
        }
    }

    /// Returns the latest price of a symbol; zero if none is known.
    pub(crate) fn price(&self, symbol: SymbolId) -> i64 {
        self.symbols.get(symbol.0 as usize).map_or(0, |row| row.price)
    }

    pub(crate) fn prevents_self_match(&self, account: AccountId) -> bool {
        self.accounts.get(account.0 as usize).is_some_and(AccountEntry::prevents_self_match)
    }

    pub(crate) fn prevents_any_self_match(&self) -> bool {
        self.accounts.iter().any(AccountEntry::prevents_self_match)
    }

    /// Closes all rate windows and forgets recent orders: their stamps are from another boot's clock.
    pub(crate) fn close_windows(&mut self) {
        self.accounts.iter_mut().for_each(|row| (row.window, row.recent) = (RateWindow::default(), None));
        self.symbols.iter_mut().for_each(|row| row.window = RateWindow::default());
        self.sessions.iter_mut().for_each(|row| row.window = RateWindow::default());
        self.firm.window = RateWindow::default();
    }

    /// Changes the open value of an account, and of the firm if it has limits.
    #[inline]
    pub(crate) fn change_totals(&mut self, account: AccountId, change: impl Fn(&mut TradingTotals)) {
        if let Some(row) = self.accounts.get_mut(account.0 as usize) {
            change(&mut row.open);
            if self.firm.is_limited {
                change(&mut self.firm.open);
            }
        }
    }

    /// Clears the open orders and values of all accounts, at a day's end also traded values, messages, recent orders.
    pub(crate) fn reset_totals(&mut self, day_ended: bool) {
        let reset = |open: &mut TradingTotals| match day_ended {
            true => *open = TradingTotals::default(),
            false => *open = TradingTotals { traded: open.traded, fills: open.fills, ..TradingTotals::default() },
        };
        for row in &mut self.accounts {
            reset(&mut row.open);
            if day_ended {
                (row.messages_today, row.recent) = (0, None);
            }
        }
        reset(&mut self.firm.open);
    }

    /// Returns the context of an account and a symbol, or the refusal that names the undefined one.
    #[inline]
    pub(crate) fn context(&self, account: AccountId, symbol: SymbolId) -> Result<TradingContext<'_>, Breach> {
        let row = self.accounts.get(account.0 as usize).ok_or_else(|| unknown_account(account))?;
        let limits = row.limits.as_ref().ok_or_else(|| unknown_account(account))?;
        let traded = self.symbols.get(symbol.0 as usize).ok_or_else(|| unknown_symbol(symbol))?;
        let instrument = traded.instrument.as_ref().ok_or_else(|| unknown_symbol(symbol))?;
        let kills = u8::from(self.killed) + u8::from(row.killed) + u8::from(traded.killed);
        let disk_failed = self.disk_failed;
        Ok(TradingContext {
            limits,
            instrument,
            size: traded.size,
            messages: row.window.messages,
            kills,
            disk_failed,
            open: row.open,
            has_optional_limits: row.has_optional_limits || traded.has_optional_limits,
            symbol_messages: traded.window.messages,
            messages_today: row.messages_today,
        })
    }

    pub(crate) fn instrument_of(&self, symbol: SymbolId) -> Option<&Instrument> {
        self.symbols.get(symbol.0 as usize)?.instrument.as_ref()
    }

    /// Returns the contract size of a symbol; one unit if it was never defined.
    #[inline]
    pub(crate) fn contract_size(&self, symbol: SymbolId) -> ContractSize {
        self.symbols.get(symbol.0 as usize).map_or_else(ContractSize::default, |row| row.size)
    }
}

impl AccountEntry {
    fn prevents_self_match(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.no_self_match != 0)
    }
}

impl SessionEntry {
    fn compute_denied_kinds(&self) -> u8 {
        self.rules.withheld | if self.killed { MAY_NEW | MAY_REPLACE } else { 0 }
    }

    pub(crate) fn with_denied_kinds(self) -> Self {
        Self { denied_kinds: self.compute_denied_kinds(), ..self }
    }
}

/// Builds the refusal of an account without limits.
#[cold]
pub(crate) fn unknown_account(account: AccountId) -> Breach {
    Breach { denial: Denial::UnknownAccount, limit: 0, value: account.0.into() }
}

/// Builds the refusal of a symbol without an instrument.
#[cold]
pub(crate) fn unknown_symbol(symbol: SymbolId) -> Breach {
    Breach { denial: Denial::UnknownSymbol, limit: 0, value: symbol.0.into() }
}

/// Returns the row of an id and grows the table up to it; none if the id is out of range.
fn row_mut<T: Default>(table: &mut Vec<T>, id: u32) -> Option<&mut T> {
    if id >= ID_LIMIT {
        return None;
    }
    let index = id as usize;
    if table.len() <= index {
        table.resize_with(index + 1, T::default);
    }
    table.get_mut(index)
}
