//! How a command ends.

/// How a command ended.
pub enum Outcome {
    /// It did what it was asked.
    Good,
    /// It measured, and the run broke a rule of honest measuring.
    Invalid,
    /// A --fail-if limit was exceeded.
    LimitExceeded,
    /// It measured, and the run lost what it promised to keep; or a request was refused.
    Lost,
    /// What became of a request is not known.
    Unanswered,
    /// Ctrl-C; what was measured before is saved.
    Interrupted,
}
