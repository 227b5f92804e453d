//! Validation of a received message by a dictionary: the reason, tag and text of a session-level Reject, or nothing.
//!
//! The order of the checks, where a message has several faults, is that of other engines, which counterparties' tests
//! expect. An undefined tag is an invalid tag number (0) for them, not an undefined tag (3).

use crate::dictionary::Dictionary;
use crate::field_table::Message;
use crate::tags::MSG_TYPE;

pub use self::rejection::{Rejection, SessionRejectReason};
pub use self::rules::{FIRST_USER_DEFINED_TAG, ValidationRules};
use self::walk::Walk;

mod format;
mod rejection;
mod rules;
mod walk;

/// Memory for the validation, reused from message to message. It grows with the first message of a dictionary, and not
/// again.
#[derive(Debug, Clone, Default)]
pub struct ValidationScratch {
    /// Sets of present members: of the message, and of the groups that are open.
    sets: Vec<u64>,
}

impl ValidationScratch {
    /// Creates a scratch without memory.
    pub const fn new() -> Self {
        Self { sets: Vec::new() }
    }

    /// Returns the sets that a dictionary needs.
    #[inline]
    fn sets(&mut self, words: usize) -> &mut [u64] {
        if self.sets.len() < words {
            self.sets.resize(words, 0);
        }
        &mut self.sets
    }
}

/// Checks a message by its definition in a dictionary.
///
/// The session checks what the dictionary does not know: BeginString, CompIDs, sequence numbers and times. Fields whose
/// tags are no numbers are faults of the field table. A field without a value is a fault there, too, but these rules
/// decide whether it is allowed: validate the message of the table then.
///
/// # Errors
/// The fault that comes first in the order of checks; a message type that the dictionary does not define comes before
/// all others.
#[inline]
pub fn validate(
    dictionary: &Dictionary,
    rules: ValidationRules,
    message: &Message<'_>,
    scratch: &mut ValidationScratch,
) -> Result<(), Rejection> {
    let msg_type = message.msg_type();
    match dictionary.message(msg_type) {
        Some(definition) => {
            Walk::new(dictionary, definition, rules, *message).check(scratch.sets(dictionary.set_words()))
        }
        None => Err(unknown_type(message)),
    }
}

/// Returns the rejection of a message whose type the dictionary does not define.
#[cold]
fn unknown_type(message: &Message<'_>) -> Rejection {
    match message.get(MSG_TYPE) {
        None => Rejection::new(SessionRejectReason::RequiredTagMissing, Some(MSG_TYPE)),
        Some(b"") => Rejection::new(SessionRejectReason::TagWithoutValue, Some(MSG_TYPE)),
        Some(_) => Rejection::new(SessionRejectReason::InvalidMsgType, None),
    }
}
