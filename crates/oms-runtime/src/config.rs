//! Configuration of an OMS: lanes and journal, instruments and rights, threads.

use std::fmt;
use std::str::FromStr;

use tickpath_clock::{Priority, RequestRate, Wait};
use tickpath_log::Config as LogConfig;
use tickpath_market::{AccountId, Notional, Quantity};
use tickpath_oms_core::{AccountLimits, FirmLimits, Instrument, NameRecord, RejectRule, SymbolLimits, VenueRules};
use tickpath_oms_journal::commit::AckLevel;
use tickpath_oms_journal::identity::WantedIdentities;

use crate::lanes::LanesConfig;
use crate::unanswered::VenueExpectations;

/// Configuration of an OMS.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its lanes.
    pub lanes: LanesConfig,
    /// Its journal.
    pub journal: LogConfig,
    /// Instruments, accounts, venues and sessions, with their limits and rights.
    pub trading: TradingDefinitions,
    /// Orders expected before the next start.
    pub expected_orders: usize,
    /// Assignment of the work to threads.
    pub layout: Layout,
    /// Wait strategy of the core's thread.
    pub wait: Wait,
    /// The processor of the core's thread.
    pub cpu: Option<usize>,
    /// The processor of the other threads, in layouts that have some. They share it, and yield.
    pub other_cpu: Option<usize>,
    /// The priority of the core's thread.
    pub priority: Priority,
    /// Whether reports to sessions without lanes are kept as a [history](crate::history), which a front end reads.
    pub history: bool,
    /// Inputs between two snapshots, and one at the end of a day; zero for none. A thread beside the core makes them,
    /// and takes as much memory as the core itself.
    pub snapshot_every: u64,
    /// Whether the core's thread runs a warm-up while it spins idly: see `crates/oms-runtime/src/warm_up.rs`.
    pub warm_up: bool,
    /// Seed in place of all randomness, for reproducible tests; `None` otherwise.
    pub seed: Option<u64>,
}

/// Trading configuration: instruments, accounts, venues, sessions, limits and rights. Every start and
/// [`Sequencer::replace_definitions`](crate::Sequencer::replace_definitions) journal its additions, and end what it no
/// longer lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TradingDefinitions {
    /// Instruments that can be traded.
    pub instruments: Vec<Instrument>,
    /// Accounts that may trade, with their limits.
    pub accounts: Vec<AccountLimits>,
    /// Rules of the venues.
    pub venues: Vec<VenueRules>,
    /// Limits of accounts in single symbols.
    pub symbols: Vec<SymbolLimits>,
    /// Limits of all accounts together, if there are any.
    pub firm: Option<FirmLimits>,
    /// Sessions, with their rights.
    pub sessions: Vec<SessionConfig>,
    /// Reactions to the reject codes of venues.
    pub rejects: Vec<RejectRule>,
    /// Expectations of each venue. A venue without an entry may take any time to answer.
    pub expectations: Vec<VenueExpectations>,
    /// The names of venues, and of the users that sessions belong to. A number keeps its name while something bears the
    /// number, see [`IdentityConflicts`](crate::IdentityConflicts); a number without a name here is not checked.
    pub names: Vec<NameRecord>,
}

impl TradingDefinitions {
    /// Returns the definitions that give numbers a meaning.
    pub(crate) fn identities(&self) -> WantedIdentities<'_> {
        WantedIdentities { instruments: &self.instruments, accounts: &self.accounts, names: &self.names }
    }
}

/// A session's rights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionConfig {
    /// Its number.
    pub session: u16,
    /// Durability level of its requests: nothing of them leaves before it is reached.
    pub level: AckLevel,
    /// Whether its orders are canceled when it is lost.
    pub cancel_on_disconnect: bool,
    /// The accounts that it may trade for; [`tickpath_oms_core::ALL_ACCOUNTS`] for all accounts.
    pub accounts: Vec<AccountId>,
    /// The kinds of request that it may not make: the sum of [`tickpath_oms_core::MAY_NEW`] and its like.
    pub withheld: u8,
    /// Largest quantity and notional of one order, and messages a window; as in [`tickpath_oms_core::SessionRules`].
    pub limits: SessionLimits,
    /// Rate limit of its requests.
    pub rate: RequestRate,
}

/// Limits of a session; zero turns a check off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionLimits {
    /// Largest quantity of one order.
    pub max_order_quantity: Quantity,
    /// Largest notional of one order.
    pub max_notional: Notional,
    /// Messages a window.
    pub rate_limit: u32,
    /// The window, in nanoseconds.
    pub rate_window_ns: u64,
}

/// Assignment of the work to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// One thread does everything.
    #[default]
    Inline,
    /// Receiving, core and venue line have a thread each.
    Split,
    /// Receiving and venue line have a thread each and share the core under a lock.
    Mutex,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 3] = [Self::Inline, Self::Split, Self::Mutex];

    /// Returns the word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Split => "split",
            Self::Mutex => "mutex",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no layout; use inline, split or mutex")]
pub struct ParseLayoutError(String);

impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Self, ParseLayoutError> {
        Self::ALL.into_iter().find(|layout| layout.name() == text).ok_or_else(|| ParseLayoutError(text.to_owned()))
    }
}
