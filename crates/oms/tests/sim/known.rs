//! What the simulation has found and goes around, so that it does not hide what is found next. A run with the name of
//! one in `TICKPATH_STRICT`, or with `all`, holds the OMS to it. What is mended leaves this list.

use std::sync::LazyLock;

/// A finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// A fill that the OMS knows from its operator only is not taken back with its bust: the order is unknown, and the
    /// position is counted with it. Such fills are not compared.
    BustOfResolved,
    /// The journal is refused after a loss of power that kept frames of a segment and neither the segment's beginning
    /// nor the mark of how many were opened. That mark is never lost here.
    OpenedMarkLost,
}

/// What is not forgiven.
static STRICT: LazyLock<String> = LazyLock::new(|| std::env::var("TICKPATH_STRICT").unwrap_or_default());

impl Known {
    pub fn is_forgiven(self) -> bool {
        *STRICT != "all" && *STRICT != format!("{self:?}")
    }
}

/// How a command begins that repeats this run.
pub fn prefix() -> String {
    if STRICT.is_empty() { String::new() } else { format!("TICKPATH_STRICT={} ", *STRICT) }
}
