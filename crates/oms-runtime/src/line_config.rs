//! Configuration of a line: how to open it, and how much it may send.

use std::fmt;
use std::sync::Arc;

use tickpath_oms_journal::LineId;
use tickpath_venue::Line;

/// Configuration of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmsLineConfig {
    /// Id of the line.
    pub id: LineId,
    /// Function that opens the line.
    pub open: LineFactory,
    /// Max requests in any second; zero for no limit.
    pub rate_per_second: u32,
    /// Max requests without proof of receipt.
    pub window: u32,
    /// Nanoseconds without the venue after which the line's orders are in doubt, and asked for by another line.
    pub lost_after_ns: u64,
}

/// Function that opens a line, which each protocol provides.
#[derive(Clone)]
pub struct LineFactory(pub(crate) Arc<OpenLineFn>);

type OpenLineFn = dyn Fn() -> Result<Box<dyn Line>, String> + Send + Sync;

impl LineFactory {
    /// Wraps a function that opens the line at each start. The function connects nothing yet; its error is a sentence.
    pub fn new(open: impl Fn() -> Result<Box<dyn Line>, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }
}

impl fmt::Debug for LineFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineFactory")
    }
}

impl PartialEq for LineFactory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LineFactory {}
