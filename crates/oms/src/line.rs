//! A line as it is configured: how it is opened, and how much it may send.

use std::fmt;
use std::sync::Arc;

use tickpath_oms_journal::LineId;
use tickpath_venue::Line;

/// A line as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineConfig {
    /// Which.
    pub id: LineId,
    /// How it is opened.
    pub open: OpenLine,
    /// Requests in any second, at most; zero for as many as come.
    pub rate_per_second: u32,
    /// Requests without proof of receipt, at most.
    pub window: u32,
    /// After so long without its venue, in nanoseconds, what went by it is in doubt, and asked for by another line.
    pub lost_after_ns: u64,
}

/// Opens a line: whoever adds a protocol gives one of these.
#[derive(Clone)]
pub struct OpenLine(pub(crate) Arc<Open>);

type Open = dyn Fn() -> Result<Box<dyn Line>, String> + Send + Sync;

impl OpenLine {
    /// By this function, at each start. It connects nothing yet; what it says where it cannot is a sentence.
    pub fn new(open: impl Fn() -> Result<Box<dyn Line>, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }
}

impl fmt::Debug for OpenLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenLine")
    }
}

impl PartialEq for OpenLine {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for OpenLine {}
