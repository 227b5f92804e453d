//! Versions of the messages; the table at the head of the crate lists the additions of each.

/// Version of the messages that this code uses.
pub const VERSION: u16 = 8;

/// First version with orders that have a trigger.
pub const CONDITIONAL_VERSION: u16 = 3;

/// First version whose welcome has the session's rights.
pub const RIGHTS_VERSION: u16 = 4;

/// First version with an answer to a request that is refused before the journal.
pub const REFUSAL_VERSION: u16 = 5;

/// First version with the details of reports.
pub const DETAILS_VERSION: u16 = 7;

/// First version with text ids and end times of orders.
pub const TEXT_ID_VERSION: u16 = 8;

/// First version that lists the OMS's instruments.
pub const INSTRUMENTS_VERSION: u16 = 6;
