//! Versions of the messages; what came with which one stands at the head of the crate.

/// The version of the messages that this code speaks.
pub const VERSION: u16 = 6;

/// The first version that knows orders with a trigger.
pub const CONDITIONAL_VERSION: u16 = 3;

/// The first version whose welcome says the session's rights.
pub const RIGHTS_VERSION: u16 = 4;

/// The first version that knows the answer to a request that is refused before the journal.
pub const REFUSAL_VERSION: u16 = 5;

/// The first version that lists its instruments.
pub const INSTRUMENTS_VERSION: u16 = 6;
