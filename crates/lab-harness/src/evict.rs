//! The process that evicts caches.

use serde::{Deserialize, Serialize};
use tickpath_clock::pin_to_cpu;

use crate::{LabError, Parent, ProcessRole};

/// Role that evicts a CPU's caches at each command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvictorRole {
    /// CPU with the caches to evict.
    pub cpu: usize,
}

impl ProcessRole for EvictorRole {
    const NAME: &'static str = "evictor";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        /// Number of words, more than any core's share of a last-level cache.
        const WORDS: usize = (128 << 20) / 8;
        pin_to_cpu(self.cpu)?;
        let mut memory = vec![1u64; WORDS];
        parent.ready();
        while parent.receive().is_some() {
            for line in memory.chunks_mut(8) {
                line[0] = line[0].wrapping_mul(3);
            }
            std::hint::black_box(&memory);
            parent.result(&());
        }
        Ok(())
    }
}
