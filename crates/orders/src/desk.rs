//! Who may trade what: accounts with their limits and counts, instruments, sessions with their rights, kill switches.

use std::collections::BTreeSet;

use tickpath_market::{AccountId, SymbolId};
use tickpath_risk::{ACCOUNT_BYTES, INSTRUMENT_BYTES, SESSION_BYTES, says_more};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::recent::{Recent, RecentOrder};
use crate::route::VENUES;
use crate::{
    ALL_ACCOUNTS, AccountLimits, Denial, FirmLimits, Grant, Instrument, KILL_ACCOUNT, KILL_ALL, KILL_DISK,
    KILL_SESSION, KILL_SYMBOL, Kill, MAY_NEW, MAY_REPLACE, SessionRules,
};

/// Ids of accounts and symbols are below this: they are places in a table.
pub(crate) const IDS: u32 = 1 << 16;

/// The tables that requests are held against.
#[derive(Default)]
pub(crate) struct Desk {
    pub(crate) accounts: Vec<Account>,
    pub(crate) symbols: Vec<Traded>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) firm: Firm,
    pub(crate) killed: bool,
    pub(crate) disk_failed: bool,
    /// The kill switches that are on, by scope and target: a status query lists them without a walk over the tables.
    pub(crate) switches: BTreeSet<(u8, u32)>,
    /// Somebody has, or had, a limit that most have not: without one, nobody is asked for his.
    pub(crate) has_rare: bool,
}

/// What the desk knows about an account and a symbol, both defined.
pub(crate) struct Entry<'a> {
    pub(crate) limits: &'a AccountLimits,
    pub(crate) instrument: &'a Instrument,
    /// Messages of the account in the open window, this one included.
    pub(crate) messages: u64,
    /// How many kill switches cover the two.
    pub(crate) kills: u8,
    pub(crate) disk_failed: bool,
    pub(crate) open: Open,
    /// The account's limits or the instrument say more than what most say.
    pub(crate) says_more: bool,
    /// New orders and replaces for the symbol in its open window.
    pub(crate) symbol_messages: u64,
    /// Messages of the account since the day began.
    pub(crate) messages_today: u64,
}

/// The firm: all accounts together. Without limits nothing is counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Firm {
    pub(crate) limits: FirmLimits,
    pub(crate) is_limited: bool,
    pub(crate) window: Window,
    pub(crate) open: Open,
}

/// Messages since it opened, with its first one.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Window {
    start: u64,
    pub(crate) messages: u64,
}

impl Window {
    /// Counts a message; the window closes after so many nanoseconds.
    #[inline]
    fn count(&mut self, window_ns: u64, stamp: u64, ns: impl Fn(u64) -> u64) {
        if self.messages == 0 || ns(stamp.saturating_sub(self.start)) >= window_ns {
            *self = Self { start: stamp, messages: 0 };
        }
        self.messages += 1;
    }
}

/// What an account has open and has traded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Open {
    /// Live orders.
    pub(crate) orders: u32,
    /// What they may still trade, in units of 10⁻¹⁶ of the currency.
    pub(crate) value: i128,
    /// What was traded since the day began, bought and sold.
    pub(crate) traded: i128,
    /// Fills since the day began.
    pub(crate) fills: u64,
}

#[derive(Default)]
pub(crate) struct Account {
    pub(crate) limits: Option<AccountLimits>,
    pub(crate) killed: bool,
    pub(crate) says_more: bool,
    pub(crate) window: Window,
    pub(crate) open: Open,
    pub(crate) messages_today: u64,
    /// Its latest orders, if it may not send one twice.
    pub(crate) recent: Option<Box<Recent>>,
}

#[derive(Default)]
pub(crate) struct Traded {
    pub(crate) instrument: Option<Instrument>,
    /// The last one that was defined; orders outlive their instrument's definition.
    pub(crate) multiplier: i64,
    pub(crate) killed: bool,
    pub(crate) says_more: bool,
    pub(crate) window: Window,
    /// The latest reference price of a request for it; zero if there was none.
    pub(crate) price: i64,
}

#[derive(Default)]
pub(crate) struct Session {
    pub(crate) rules: SessionRules,
    pub(crate) says_more: bool,
    pub(crate) window: Window,
    pub(crate) killed: bool,
    /// The kinds of request that it may not make: those withheld, and, while it is killed, those that add to the risk.
    pub(crate) barred: u8,
    /// For every account.
    pub(crate) all: bool,
    /// Accounts, one bit each.
    pub(crate) accounts: Vec<u64>,
}

impl Desk {
    /// Defines an instrument; false if it cannot be traded.
    pub(crate) fn instrument(&mut self, instrument: &Instrument) -> bool {
        let valid = instrument.multiplier >= 1 && instrument.venue.0 < VENUES;
        match place(&mut self.symbols, instrument.symbol.0) {
            Some(row) if valid => {
                (row.instrument, row.multiplier) = (Some(*instrument), instrument.multiplier);
                row.says_more = says_more(instrument, INSTRUMENT_BYTES);
                self.has_rare |= row.says_more;
            }
            _ => return false,
        }
        true
    }

    /// Sets limits; false if the account has no place. Message counts and kill switches stay.
    pub(crate) fn account(&mut self, limits: &AccountLimits) -> bool {
        let Some(row) = place(&mut self.accounts, limits.account.0) else { return false };
        (row.limits, row.says_more) = (Some(*limits), says_more(limits, ACCOUNT_BYTES));
        self.has_rare |= row.says_more;
        if limits.duplicate_window_ns == 0 {
            row.recent = None;
        }
        true
    }

    /// Sets the limits of the firm, which counts from now on what its accounts have open.
    pub(crate) fn limit_firm(&mut self, limits: &FirmLimits) {
        if !self.firm.is_limited {
            self.firm = Firm { is_limited: true, open: self.sum(), ..Firm::default() };
        }
        self.firm.limits = *limits;
        self.has_rare = true;
    }

    /// The firm has no limits any more; false if it had none.
    pub(crate) fn end_firm(&mut self) -> bool {
        std::mem::take(&mut self.firm).is_limited
    }

    pub(crate) fn firm(&self) -> &Firm {
        &self.firm
    }

    /// What all accounts have open and have traded.
    fn sum(&self) -> Open {
        self.accounts.iter().fold(Open::default(), |sum, row| Open {
            orders: sum.orders + row.open.orders,
            value: sum.value.saturating_add(row.open.value),
            traded: sum.traded.saturating_add(row.open.traded),
            fills: sum.fills + row.open.fills,
        })
    }

    /// Sets what a session asks for.
    pub(crate) fn session(&mut self, rules: &SessionRules) -> bool {
        let Some(row) = place(&mut self.sessions, rules.session.into()) else { return false };
        (row.rules, row.says_more) = (*rules, says_more(rules, SESSION_BYTES));
        row.barred = row.barred();
        self.has_rare |= row.says_more;
        true
    }

    /// Whether the session or the firm has limits that most have not.
    #[inline]
    pub(crate) fn says_more(&self, session: u16) -> bool {
        self.firm.is_limited || self.sessions.get(usize::from(session)).is_some_and(|row| row.says_more)
    }

    /// Messages of a session in its open window.
    pub(crate) fn messages_of(&self, session: u16) -> u64 {
        self.sessions.get(usize::from(session)).map_or(0, |row| row.window.messages)
    }

    /// The latest orders of an account, if it may not send one twice.
    pub(crate) fn recent(&self, account: AccountId) -> Option<&Recent> {
        self.accounts.get(account.0 as usize)?.recent.as_deref()
    }

    /// Notes an order that was let through, if the account may not send it twice.
    #[inline]
    pub(crate) fn note_recent(
        &mut self,
        account: AccountId,
        like: impl FnOnce() -> RecentOrder,
        age: impl Fn(u64) -> u64,
    ) {
        if !self.has_rare {
            return;
        }
        let Some(row) = self.accounts.get_mut(account.0 as usize).filter(|row| row.says_more) else { return };
        let window_ns = row.limits.as_ref().map_or(0, |limits| limits.duplicate_window_ns);
        if window_ns != 0 {
            row.recent.get_or_insert_default().note(like(), |stamp| age(stamp) >= window_ns);
        }
    }

    /// Lets a session trade for an account; false if the account can have no place.
    pub(crate) fn grant(&mut self, grant: &Grant) -> bool {
        let Some(row) = place(&mut self.sessions, grant.session.into()) else { return false };
        match grant.account {
            ALL_ACCOUNTS => row.all = true,
            AccountId(id) if id < IDS => {
                let word = id as usize / 64;
                row.accounts.resize(row.accounts.len().max(word + 1), 0);
                row.accounts[word] |= 1 << (id % 64);
            }
            _ => return false,
        }
        true
    }

    /// Nobody may trade the symbol any more; false if nobody could.
    pub(crate) fn end_instrument(&mut self, symbol: u32) -> bool {
        self.symbols.get_mut(symbol as usize).and_then(|row| row.instrument.take()).is_some()
    }

    /// Nobody may trade for the account any more; false if nobody could.
    pub(crate) fn end_account(&mut self, account: u32) -> bool {
        self.accounts.get_mut(account as usize).and_then(|row| row.limits.take()).is_some()
    }

    /// The session may not trade for the account any more; false if it was never allowed to.
    pub(crate) fn end_grant(&mut self, session: u16, account: u32) -> bool {
        let Some(row) = self.sessions.get_mut(usize::from(session)) else { return false };
        if AccountId(account) == ALL_ACCOUNTS {
            return std::mem::take(&mut row.all);
        }
        let Some(word) = row.accounts.get_mut(account as usize / 64) else { return false };
        let bit = 1 << (account % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// The session asks for nothing any more, and may do nothing; false if that was so before.
    pub(crate) fn end_session(&mut self, session: u16) -> bool {
        let Some(row) = self.sessions.get_mut(usize::from(session)) else { return false };
        // The switch holds for what is defined later, too.
        let kept = Session { killed: row.killed, ..Session::default() }.barring();
        let before = std::mem::replace(row, kept);
        before.rules != SessionRules::default() || before.all || before.accounts.iter().any(|&word| word != 0)
    }

    /// The kill switches that are on: each by its scope and its target.
    pub(crate) fn kills(&self) -> impl Iterator<Item = (u8, u32)> + '_ {
        self.switches.iter().copied()
    }

    /// Turns a switch; false if there is none such. It holds for what is defined later too.
    pub(crate) fn kill(&mut self, kill: &Kill) -> bool {
        let is_on = kill.on != 0;
        let switch = match kill.scope {
            KILL_SESSION => place(&mut self.sessions, kill.target).map(|row| {
                row.killed = is_on;
                row.barred = row.barred();
                &mut row.killed
            }),
            KILL_ALL => Some(&mut self.killed),
            KILL_ACCOUNT => place(&mut self.accounts, kill.target).map(|row| &mut row.killed),
            KILL_SYMBOL => place(&mut self.symbols, kill.target).map(|row| &mut row.killed),
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

    /// Whether the journal's disk has failed.
    pub(crate) fn disk_failed(&self) -> bool {
        self.disk_failed
    }

    /// Whether the session may trade for the account.
    #[inline]
    pub(crate) fn is_entitled(&self, session: u16, account: AccountId) -> bool {
        self.sessions.get(usize::from(session)).is_some_and(|row| {
            let word = row.accounts.get(account.0 as usize / 64);
            row.all || word.is_some_and(|word| word & (1 << (account.0 % 64)) != 0)
        })
    }

    /// Whether the session may make requests of this kind.
    #[inline]
    pub(crate) fn permits(&self, session: u16, kind: u8) -> bool {
        self.sessions.get(usize::from(session)).is_none_or(|row| row.barred & kind == 0)
    }

    /// Whether a kind of request that is not permitted would be, were the session not killed.
    #[cold]
    pub(crate) fn is_killed(&self, session: u16, kind: u8) -> bool {
        self.rules(session).withheld & kind == 0
    }

    /// What a session asks for.
    pub(crate) fn rules(&self, session: u16) -> SessionRules {
        self.sessions.get(usize::from(session)).map_or(SessionRules::default(), |row| row.rules)
    }

    /// Whether the account has limits.
    pub(crate) fn has_account(&self, account: AccountId) -> bool {
        self.accounts.get(account.0 as usize).is_some_and(|row| row.limits.is_some())
    }

    /// Counts a message of an account. A window opens with its first message and closes after the limits' time.
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

    /// Counts a message of a session.
    #[inline]
    pub(crate) fn count_of_session(&mut self, session: u16, stamp: u64, ns: impl Fn(u64) -> u64) {
        if !self.has_rare {
            return;
        }
        if let Some(row) = self.sessions.get_mut(usize::from(session)).filter(|row| row.says_more) {
            row.window.count(row.rules.rate_window_ns, stamp, ns);
        }
    }

    /// Counts a new order or a replace for a symbol, and notes the symbol's price.
    #[inline]
    pub(crate) fn count_of_symbol(&mut self, symbol: SymbolId, price: i64, stamp: u64, ns: impl Fn(u64) -> u64) {
        let Some(row) = self.symbols.get_mut(symbol.0 as usize) else { return };
        if price != 0 {
            row.price = price;
        }
        if row.says_more
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

    /// The latest price of a symbol; zero if none was told.
    pub(crate) fn price(&self, symbol: SymbolId) -> i64 {
        self.symbols.get(symbol.0 as usize).map_or(0, |row| row.price)
    }

    /// Whether the account must not trade with itself.
    pub(crate) fn keeps_apart(&self, account: AccountId) -> bool {
        let limits = self.accounts.get(account.0 as usize).and_then(|row| row.limits.as_ref());
        limits.is_some_and(|limits| limits.no_self_match != 0)
    }

    /// Whether any account must not.
    pub(crate) fn keeps_any_apart(&self) -> bool {
        let is_so = |row: &Account| row.limits.as_ref().is_some_and(|limits| limits.no_self_match != 0);
        self.accounts.iter().any(is_so)
    }

    /// Closes all windows: their stamps are another clock's.
    pub(crate) fn close_windows(&mut self) {
        self.accounts.iter_mut().for_each(|row| (row.window, row.recent) = (Window::default(), None));
        self.symbols.iter_mut().for_each(|row| row.window = Window::default());
        self.sessions.iter_mut().for_each(|row| row.window = Window::default());
        self.firm.window = Window::default();
    }

    /// Changes what an account has open, and the firm with it, if that has limits.
    #[inline]
    pub(crate) fn change_open(&mut self, account: AccountId, change: impl Fn(&mut Open)) {
        if let Some(row) = self.accounts.get_mut(account.0 as usize) {
            change(&mut row.open);
            if self.firm.is_limited {
                change(&mut self.firm.open);
            }
        }
    }

    /// What all accounts have open is counted anew; what they have traded is forgotten, if the day has ended.
    pub(crate) fn recount(&mut self, day_ended: bool) {
        let again = |open: &mut Open| match day_ended {
            true => *open = Open::default(),
            false => *open = Open { traded: open.traded, fills: open.fills, ..Open::default() },
        };
        for row in &mut self.accounts {
            again(&mut row.open);
            if day_ended {
                (row.messages_today, row.recent) = (0, None);
            }
        }
        again(&mut self.firm.open);
    }

    /// What is known about the two, or which of them is not defined.
    #[inline]
    pub(crate) fn entry(&self, account: AccountId, symbol: SymbolId) -> Result<Entry<'_>, Denial> {
        let row = self.accounts.get(account.0 as usize).ok_or(Denial::UnknownAccount)?;
        let limits = row.limits.as_ref().ok_or(Denial::UnknownAccount)?;
        let traded = self.symbols.get(symbol.0 as usize).ok_or(Denial::UnknownSymbol)?;
        let instrument = traded.instrument.as_ref().ok_or(Denial::UnknownSymbol)?;
        let kills = u8::from(self.killed) + u8::from(row.killed) + u8::from(traded.killed);
        let disk_failed = self.disk_failed;
        Ok(Entry {
            limits,
            instrument,
            messages: row.window.messages,
            kills,
            disk_failed,
            open: row.open,
            says_more: row.says_more || traded.says_more,
            symbol_messages: traded.window.messages,
            messages_today: row.messages_today,
        })
    }

    /// The instrument, if it is defined.
    pub(crate) fn instrument_of(&self, symbol: SymbolId) -> Option<&Instrument> {
        self.symbols.get(symbol.0 as usize)?.instrument.as_ref()
    }

    /// The multiplier of a symbol; 1 if it was never defined.
    #[inline]
    pub(crate) fn multiplier(&self, symbol: SymbolId) -> i64 {
        self.symbols.get(symbol.0 as usize).map_or(1, |row| row.multiplier.max(1))
    }
}

impl Session {
    fn barred(&self) -> u8 {
        self.rules.withheld | if self.killed { MAY_NEW | MAY_REPLACE } else { 0 }
    }

    pub(crate) fn barring(self) -> Self {
        Self { barred: self.barred(), ..self }
    }
}

/// The row of an id; the table grows up to it.
fn place<T: Default>(table: &mut Vec<T>, id: u32) -> Option<&mut T> {
    if id >= IDS {
        return None;
    }
    let place = id as usize;
    if table.len() <= place {
        table.resize_with(place + 1, T::default);
    }
    table.get_mut(place)
}
