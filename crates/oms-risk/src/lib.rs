//! Pre-trade risk: trading definitions, and the table of checks.
//!
//! ```text
//!   Instrument · AccountLimits · SymbolLimits ┐
//!   SessionRules · FirmLimits                 ├──> Facts ──> check ──────┬──> passed
//!   the order, what its account has and did   ┘    Rare ───> check_rare ─┴──> Refusal: denial, limit, value
//! ```
//!
//! No state is kept here: the caller gathers the facts, and the same facts give the same result.
//!
//! | file            | contents                                             |
//! |-----------------|------------------------------------------------------|
//! | `definition.rs` | instruments, limits, rights, venues, retry rules     |
//! | `risk.rs`       | the table of checks, and the denial codes            |
//! | `rare.rs`       | the optional checks                                  |

mod definition;
mod rare;
mod risk;

pub use self::definition::{
    ACCOUNT_BYTES, ALL_ACCOUNTS, AccountLimits, Ended, FirmLimits, GIVE_UP, Grant, Hours, INSTRUMENT_BYTES, Instrument,
    MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE, MAY_STATUS, NAME_SESSION, NAME_VENUE, Name, OTHER_LINE, RETRY,
    RejectRule, SESSION_BYTES, SessionRules, SymbolLimits, VenueRules, says_more,
};
pub use self::rare::{Rare, check_rare, checks_table};
pub use self::risk::{Denial, Facts, MOST_VALUE, Measure, Refusal, check, times};
