//! Pre-trade risk: trading definitions, and the table of checks.
//!
//! ```text
//!   Instrument · AccountLimits · SymbolLimits ┐
//!   SessionRules · FirmLimits                 ├──> RiskFacts ─────> check ───────────┬──> passed
//!   the order, what its account has and did   ┘    OptionalFacts ─> check_optional ──┴──> Breach: denial, limit, value
//! ```
//!
//! | file             | contents                                             |
//! |------------------|------------------------------------------------------|
//! | `definition.rs`  | instruments, limits, rights, venues, retry rules     |
//! | `contract.rs`    | value of price and quantity in money                 |
//! | `check_table.rs` | the table of checks, and the denial codes            |
//! | `optional.rs`    | the optional checks                                  |
//!
//! Invariant: no state is kept here. The caller gathers the facts, and the same facts give the same result.
//! `docs/risk-checks.md` is made from the same table (`docs/design/order-path.md`).

mod check_table;
mod contract;
mod definition;
mod optional;

pub use self::check_table::{Breach, Denial, MAX_VALUE, MeasureUnit, RiskFacts, check};
pub use self::contract::ContractSize;
pub use self::definition::{
    ACCOUNT_BYTES, ALL_ACCOUNTS, AccountLimits, DefinitionEnd, EARLIER_ACCOUNT_BYTES, EARLIER_INSTRUMENT_BYTES,
    FirmLimits, GIVE_UP, Grant, INSTRUMENT_BYTES, Instrument, MAY_CANCEL, MAY_MASS_CANCEL, MAY_NEW, MAY_REPLACE,
    MAY_STATUS, NAME_SESSION, NAME_VENUE, NameRecord, OTHER_LINE, RETRY, RejectRule, SESSION_BYTES, SessionRules,
    SymbolLimits, TradingHours, VenueRules, has_optional_fields,
};
pub use self::optional::{OptionalFacts, check_optional, checks_table};
