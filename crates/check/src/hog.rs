//! A process that takes a CPU from whoever wants it.

use serde::{Deserialize, Serialize};
use tickpath_clock::{pin_to_cpu, relax};
use tickpath_harness::{LabError, Parent, Role};

/// Spins until its parent has enough of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HogRole {
    /// Its CPU.
    pub cpu: usize,
}

impl Role for HogRole {
    const NAME: &'static str = "hog";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        pin_to_cpu(self.cpu)?;
        parent.ready();
        let stop = parent.stop_flag();
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            relax();
        }
        Ok(())
    }
}
