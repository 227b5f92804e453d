//! What an OMS is told: its lanes and its journal, what can be traded by whom, which thread does what.

use std::fmt;
use std::str::FromStr;

use tickpath_clock::{Priority, Rate, Wait};
use tickpath_log::Config as LogConfig;
use tickpath_market::{AccountId, Notional, Quantity};
use tickpath_orders::{AccountLimits, FirmLimits, Instrument, Name, RejectRule, SymbolLimits, VenueRules};

use crate::answers::VenueWatch;
use crate::commit::AckLevel;
use crate::lanes::LanesConfig;

/// How an OMS runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its lanes.
    pub lanes: LanesConfig,
    /// Its journal.
    pub journal: LogConfig,
    /// What can be traded, and by whom.
    pub desk: Desk,
    /// Orders expected before the next start.
    pub expected_orders: usize,
    /// Which thread does what.
    pub layout: Layout,
    /// How the core's thread passes the time.
    pub wait: Wait,
    /// The processor of the core's thread.
    pub cpu: Option<usize>,
    /// The processor of the other threads, where a layout has some. They share it, and yield.
    pub other_cpu: Option<usize>,
    /// The priority of the core's thread.
    pub priority: Priority,
    /// What is said to sessions without lanes is kept as a [history](crate::history), for a front that tells them.
    pub history: bool,
    /// Inputs between two snapshots, and one at the end of a day; zero for none. They are made by a thread beside the core,
    /// which takes as much memory as the core itself.
    pub snapshot_every: u64,
    /// While the core's thread spins with nothing to do, it rehearses: see `crates/oms/src/rehearsal.rs`.
    pub warm: bool,
    /// What is random otherwise, for tests that must come out the same: none.
    pub seed: Option<u64>,
}

/// What can be traded, by whom, where. The journal takes what is new in it at every start and by
/// [`Sequencer::define`](crate::Sequencer::define), and ends what is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desk {
    /// What can be traded.
    pub instruments: Vec<Instrument>,
    /// Who may trade, and how much.
    pub accounts: Vec<AccountLimits>,
    /// Where.
    pub venues: Vec<VenueRules>,
    /// What accounts may do in single symbols.
    pub symbols: Vec<SymbolLimits>,
    /// How much all of them together may do, if that is limited.
    pub firm: Option<FirmLimits>,
    /// Through which sessions.
    pub sessions: Vec<SessionConfig>,
    /// What is done after which code of a venue.
    pub rejects: Vec<RejectRule>,
    /// What is expected of each venue. A venue without an entry may take any time to answer.
    pub watch: Vec<VenueWatch>,
    /// The names of venues, and of the users that sessions belong to. A number keeps its name while something bears the
    /// number, as [`Borne`](crate::Borne) tells; one that has no name here is not checked.
    pub names: Vec<Name>,
}

/// A session's rights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionConfig {
    /// Its number.
    pub session: u16,
    /// What must hold its requests before anything of them leaves.
    pub level: AckLevel,
    /// Whether its orders are canceled when it is lost.
    pub cancel_on_disconnect: bool,
    /// The accounts that it may trade for; [`tickpath_orders::ALL_ACCOUNTS`] for every one.
    pub accounts: Vec<AccountId>,
    /// The kinds of request that it may not make: the sum of [`tickpath_orders::MAY_NEW`] and its like.
    pub withheld: u8,
    /// Largest quantity and notional of one order, and messages a window; as in [`tickpath_orders::SessionRules`].
    pub limits: SessionLimits,
    /// How fast its requests are taken.
    pub rate: Rate,
}

/// What a session may do at most; zero turns a check off.
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

/// How the work is put on threads.
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

    /// The word on the command line.
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

/// A word that is no layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no layout; use inline, split or mutex")]
pub struct ParseLayoutError(String);

impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Self, ParseLayoutError> {
        Self::ALL.into_iter().find(|layout| layout.name() == text).ok_or_else(|| ParseLayoutError(text.to_owned()))
    }
}
