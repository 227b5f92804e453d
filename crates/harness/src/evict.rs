//! The process that walks caches full.

use serde::{Deserialize, Serialize};
use tickpath_clock::pin_to_cpu;

use crate::{LabError, Parent, Role};

/// Walks a CPU's caches full, whenever it is told to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvictorRole {
    /// Whose caches.
    pub cpu: usize,
}

impl Role for EvictorRole {
    const NAME: &'static str = "evictor";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        /// More than any last-level cache share of a core.
        const WORDS: usize = (128 << 20) / 8;
        pin_to_cpu(self.cpu)?;
        let mut memory = vec![1u64; WORDS];
        parent.ready();
        while parent.hear().is_some() {
            for line in memory.chunks_mut(8) {
                line[0] = line[0].wrapping_mul(3);
            }
            std::hint::black_box(&memory);
            parent.result(&());
        }
        Ok(())
    }
}
