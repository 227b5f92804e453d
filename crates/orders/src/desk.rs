//! Who may trade what: accounts with their limits and counts, instruments, sessions with their rights, kill switches.

use tickpath_market::{AccountId, SymbolId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::route::VENUES;
use crate::snapshot::{Load, Save, SnapshotError};
use crate::{
    ALL_ACCOUNTS, AccountLimits, Denial, Grant, Instrument, KILL_ACCOUNT, KILL_ALL, KILL_DISK, KILL_SYMBOL, Kill,
    SessionRules,
};

/// Ids of accounts and symbols are below this: they are places in a table.
const IDS: u32 = 1 << 16;

/// The tables that requests are held against.
#[derive(Default)]
pub(crate) struct Desk {
    accounts: Vec<Account>,
    symbols: Vec<Traded>,
    sessions: Vec<Session>,
    killed: bool,
    disk_failed: bool,
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
}

#[derive(Default)]
struct Account {
    limits: Option<AccountLimits>,
    killed: bool,
    window_start: u64,
    messages: u64,
    open: Open,
}

#[derive(Default)]
struct Traded {
    instrument: Option<Instrument>,
    /// The last one that was defined; orders outlive their instrument's definition.
    multiplier: i64,
    killed: bool,
}

#[derive(Default)]
struct Session {
    rules: SessionRules,
    /// For every account.
    all: bool,
    /// Accounts, one bit each.
    accounts: Vec<u64>,
}

/// An [`Account`] in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedAccount {
    value: i128,
    traded: i128,
    window_start: u64,
    messages: u64,
    limits: AccountLimits,
    orders: u32,
    has_limits: u8,
    killed: u8,
    reserved: u16,
}

/// A [`Traded`] in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedSymbol {
    instrument: Instrument,
    multiplier: i64,
    has_instrument: u8,
    killed: u8,
    reserved: [u8; 6],
}

/// A [`Session`] in a snapshot; the words of its accounts follow those of the session before.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedSession {
    rules: SessionRules,
    all: u32,
    words: u32,
}

impl Desk {
    pub(crate) fn save(&self, save: &mut Save<'_>) {
        save.item(&[u8::from(self.killed), u8::from(self.disk_failed)]);
        save.list(&self.accounts.iter().map(SavedAccount::of).collect::<Vec<_>>());
        save.list(&self.symbols.iter().map(SavedSymbol::of).collect::<Vec<_>>());
        let sessions = self.sessions.iter().map(|row| SavedSession {
            rules: row.rules,
            all: row.all.into(),
            words: row.accounts.len() as u32,
        });
        save.list(&sessions.collect::<Vec<_>>());
        save.list(&self.sessions.iter().flat_map(|row| row.accounts.iter().copied()).collect::<Vec<_>>());
    }

    pub(crate) fn load(&mut self, load: &mut Load<'_>) -> Result<(), SnapshotError> {
        let [killed, disk_failed]: [u8; 2] = load.item()?;
        (self.killed, self.disk_failed) = (killed != 0, disk_failed != 0);
        self.accounts = load.list::<SavedAccount>()?.iter().map(SavedAccount::row).collect();
        self.symbols = load.list::<SavedSymbol>()?.iter().map(SavedSymbol::row).collect();
        let (sessions, words) = (load.list::<SavedSession>()?, load.list::<u64>()?);
        let mut words = words.into_iter();
        let row = |saved: &SavedSession| Session {
            rules: saved.rules,
            all: saved.all != 0,
            accounts: words.by_ref().take(saved.words as usize).collect(),
        };
        self.sessions = sessions.iter().map(row).collect();
        Ok(())
    }

    /// Defines an instrument; false if it cannot be traded.
    pub(crate) fn instrument(&mut self, instrument: &Instrument) -> bool {
        let valid = instrument.multiplier >= 1 && instrument.venue.0 < VENUES;
        match place(&mut self.symbols, instrument.symbol.0) {
            Some(row) if valid => (row.instrument, row.multiplier) = (Some(*instrument), instrument.multiplier),
            _ => return false,
        }
        true
    }

    /// Sets limits; false if the account has no place. Message counts and kill switches stay.
    pub(crate) fn account(&mut self, limits: &AccountLimits) -> bool {
        place(&mut self.accounts, limits.account.0).map(|row| row.limits = Some(*limits)).is_some()
    }

    /// Sets what a session asks for.
    pub(crate) fn session(&mut self, rules: &SessionRules) -> bool {
        place(&mut self.sessions, rules.session.into()).map(|row| row.rules = *rules).is_some()
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
        let before = std::mem::take(row);
        before.rules != SessionRules::default() || before.all || before.accounts.iter().any(|&word| word != 0)
    }

    /// The kill switches that are on: each by its scope and its target.
    pub(crate) fn kills(&self) -> impl Iterator<Item = (u8, u32)> + '_ {
        let rows = |scope: u8, killed: Vec<bool>| {
            (0_u32..).zip(killed).filter(|(_, killed)| *killed).map(move |(target, _)| (scope, target))
        };
        let all = [(KILL_ALL, self.killed), (KILL_DISK, self.disk_failed)];
        let all = all.into_iter().filter(|(_, killed)| *killed).map(|(scope, _)| (scope, 0));
        all.chain(rows(KILL_ACCOUNT, self.accounts.iter().map(|row| row.killed).collect()))
            .chain(rows(KILL_SYMBOL, self.symbols.iter().map(|row| row.killed).collect()))
    }

    /// Turns a switch; false if there is none such. It holds for what is defined later too.
    pub(crate) fn kill(&mut self, kill: &Kill) -> bool {
        let switch = match kill.scope {
            KILL_ALL => Some(&mut self.killed),
            KILL_ACCOUNT => place(&mut self.accounts, kill.target).map(|row| &mut row.killed),
            KILL_SYMBOL => place(&mut self.symbols, kill.target).map(|row| &mut row.killed),
            KILL_DISK => Some(&mut self.disk_failed),
            _ => None,
        };
        switch.map(|switch| *switch = kill.on != 0).is_some()
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
        self.sessions.get(usize::from(session)).is_none_or(|row| row.rules.withheld & kind == 0)
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
        if row.messages == 0 || ns(stamp.saturating_sub(row.window_start)) >= limits.rate_window_ns {
            row.window_start = stamp;
            row.messages = 0;
        }
        row.messages += 1;
    }

    /// Closes all windows: their stamps are another clock's.
    pub(crate) fn close_windows(&mut self) {
        self.accounts.iter_mut().for_each(|row| row.messages = 0);
    }

    /// What an account has open, to be changed; none if it can have no place.
    #[inline]
    pub(crate) fn open(&mut self, account: AccountId) -> Option<&mut Open> {
        self.accounts.get_mut(account.0 as usize).map(|row| &mut row.open)
    }

    /// What all accounts have open is counted anew; what they have traded is forgotten, if the day has ended.
    pub(crate) fn recount(&mut self, day_ended: bool) {
        for row in &mut self.accounts {
            let traded = if day_ended { 0 } else { row.open.traded };
            row.open = Open { traded, ..Open::default() };
        }
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
        Ok(Entry { limits, instrument, messages: row.messages, kills, disk_failed, open: row.open })
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

impl SavedAccount {
    fn of(row: &Account) -> Self {
        let Open { orders, value, traded } = row.open;
        Self {
            value,
            traded,
            window_start: row.window_start,
            messages: row.messages,
            limits: row.limits.unwrap_or_default(),
            orders,
            has_limits: row.limits.is_some().into(),
            killed: row.killed.into(),
            reserved: 0,
        }
    }

    fn row(&self) -> Account {
        Account {
            limits: (self.has_limits != 0).then_some(self.limits),
            killed: self.killed != 0,
            window_start: self.window_start,
            messages: self.messages,
            open: Open { orders: self.orders, value: self.value, traded: self.traded },
        }
    }
}

impl SavedSymbol {
    fn of(row: &Traded) -> Self {
        Self {
            instrument: row.instrument.unwrap_or_default(),
            multiplier: row.multiplier,
            has_instrument: row.instrument.is_some().into(),
            killed: row.killed.into(),
            reserved: [0; 6],
        }
    }

    fn row(&self) -> Traded {
        Traded {
            instrument: (self.has_instrument != 0).then_some(self.instrument),
            multiplier: self.multiplier,
            killed: self.killed != 0,
        }
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
