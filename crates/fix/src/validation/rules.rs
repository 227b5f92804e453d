//! Strictness of the validation.

use crate::tags::Tag;

/// First tag of the range that venues and their clients define.
pub const FIRST_USER_DEFINED_TAG: Tag = 5000;

/// Strictness of the validation: a check runs if its flag is set. Message types, required fields, data formats,
/// repeated tags and group counts are always checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidationRules {
    /// Header, body and trailer follow each other (reason 14).
    pub field_order: bool,
    /// The fields of a repeating group have the dictionary's order, and each instance begins with the first one
    /// (reason 15). Without this check an instance also begins where a field repeats.
    pub group_order: bool,
    /// Tags below 5000 are defined for the message (reasons 0 and 2).
    pub undefined_tags: bool,
    /// Tags from 5000 on are defined for the message (reasons 0 and 2).
    pub user_defined: bool,
    /// Each field has a value (reason 4).
    pub values: bool,
    /// The value of an enumerated field is one of the dictionary's (reason 5).
    pub allowed_values: bool,
}

impl ValidationRules {
    /// All checks, as the specification has them.
    pub const STRICT: Self = Self {
        field_order: true,
        group_order: true,
        undefined_tags: true,
        user_defined: true,
        values: true,
        allowed_values: true,
    };

    /// None of the checks that a rule can switch off, for venues whose messages differ from their dictionary.
    pub const LENIENT: Self = Self {
        field_order: false,
        group_order: false,
        undefined_tags: false,
        user_defined: false,
        values: false,
        allowed_values: false,
    };
}

impl Default for ValidationRules {
    fn default() -> Self {
        Self::STRICT
    }
}
