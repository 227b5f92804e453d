//! What the simulation has found and goes around, so that it does not hide what is found next. A run with the name of
//! one in `TICKPATH_STRICT`, or with `all`, holds the OMS to it. What is mended leaves this list.

use std::sync::LazyLock;

/// A finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// A doubt that comes while a venue is down is not asked about when it is back, if any report came in between.
    /// Reports and losses are told only while the venue is up.
    DoubtWhileDown,
    /// What waited at level `os` and was let go waits again after a loss of power that took the release: it is sent
    /// again, or taken back although the venue has it. Either is forgiven if the power was lost in between.
    ReleaseLost,
    /// A fill that the OMS knows from its operator only is not taken back with its bust: the order is unknown, and the
    /// position is counted with it. Such fills are not compared.
    BustOfResolved,
    /// When the disk fails, what was held for it is told to its clients although it is not durable. That is forgiven.
    ToldOnBadDisk,
    /// And so a report that was made before the loss ends the doubt, if the question had no room: the order works here,
    /// and is done at its venue. It is not compared, nor is its position from then on.
    DoubtEndedByOldReport,
    /// A cancel that is held for the disk leaves before its order, which came back: the venue refuses it, and the report
    /// counts as a stranger's once the order is denied.
    CancelBeforeOrder,
    /// A canceled order that its replace made larger before it was filled counts with its old quantity while it is
    /// unknown. It is compared up to that.
    EndedAboveQuantity,
    /// The journal is refused after a loss of power that kept frames of a segment and neither the segment's beginning
    /// nor the mark of how many were opened. That mark is never lost here.
    OpenedMarkLost,
    /// Orders stay unknown that the venue would explain if it were asked. The operator asks, and nobody minds.
    NotAsked,
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
