//! Who may trade what: accounts with their limits and message counts, instruments, kill switches.

use tickpath_market::{AccountId, SymbolId};

use crate::{AccountLimits, Denial, Instrument, KILL_ACCOUNT, KILL_ALL, KILL_SYMBOL, Kill};

/// Ids of accounts and symbols are below this: they are places in a table.
const IDS: u32 = 1 << 16;

/// The tables that requests are held against.
#[derive(Default)]
pub(crate) struct Desk {
    accounts: Vec<Account>,
    symbols: Vec<Traded>,
    killed: bool,
}

/// What the desk knows about an account and a symbol, both defined.
pub(crate) struct Entry<'a> {
    pub(crate) limits: &'a AccountLimits,
    pub(crate) instrument: &'a Instrument,
    /// Messages of the account in the open window, this one included.
    pub(crate) messages: u64,
    /// How many kill switches cover the two.
    pub(crate) kills: u8,
}

#[derive(Default)]
struct Account {
    limits: Option<AccountLimits>,
    killed: bool,
    window_start: u64,
    messages: u64,
}

#[derive(Default)]
struct Traded {
    instrument: Option<Instrument>,
    killed: bool,
}

impl Desk {
    /// Defines an instrument; false if it cannot be traded.
    pub(crate) fn instrument(&mut self, instrument: &Instrument) -> bool {
        let valid = instrument.multiplier >= 1;
        match place(&mut self.symbols, instrument.symbol.0) {
            Some(row) if valid => row.instrument = Some(*instrument),
            _ => return false,
        }
        true
    }

    /// Sets limits; false if the account has no place. Message counts and kill switches stay.
    pub(crate) fn account(&mut self, limits: &AccountLimits) -> bool {
        place(&mut self.accounts, limits.account.0).map(|row| row.limits = Some(*limits)).is_some()
    }

    /// Turns a switch; false if there is none such. It holds for what is defined later too.
    pub(crate) fn kill(&mut self, kill: &Kill) -> bool {
        let switch = match kill.scope {
            KILL_ALL => Some(&mut self.killed),
            KILL_ACCOUNT => place(&mut self.accounts, kill.target).map(|row| &mut row.killed),
            KILL_SYMBOL => place(&mut self.symbols, kill.target).map(|row| &mut row.killed),
            _ => None,
        };
        switch.map(|switch| *switch = kill.on != 0).is_some()
    }

    /// Counts a message of an account. A window opens with its first message and closes after `rate_window` ticks.
    pub(crate) fn count_message(&mut self, account: AccountId, stamp: u64) {
        let Some(row) = self.accounts.get_mut(account.0 as usize) else { return };
        let Some(limits) = &row.limits else { return };
        if row.messages == 0 || stamp.saturating_sub(row.window_start) >= limits.rate_window {
            row.window_start = stamp;
            row.messages = 0;
        }
        row.messages += 1;
    }

    /// What is known about the two, or which of them is not defined.
    pub(crate) fn entry(&self, account: AccountId, symbol: SymbolId) -> Result<Entry<'_>, Denial> {
        let row = self.accounts.get(account.0 as usize).ok_or(Denial::UnknownAccount)?;
        let limits = row.limits.as_ref().ok_or(Denial::UnknownAccount)?;
        let traded = self.symbols.get(symbol.0 as usize).ok_or(Denial::UnknownSymbol)?;
        let instrument = traded.instrument.as_ref().ok_or(Denial::UnknownSymbol)?;
        let kills = u8::from(self.killed) + u8::from(row.killed) + u8::from(traded.killed);
        Ok(Entry { limits, instrument, messages: row.messages, kills })
    }

    /// The instrument of a symbol.
    pub(crate) fn find(&self, symbol: SymbolId) -> Option<&Instrument> {
        self.symbols.get(symbol.0 as usize)?.instrument.as_ref()
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
