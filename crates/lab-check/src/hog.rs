//! A process that competes for a CPU.

use serde::{Deserialize, Serialize};
use tickpath_clock::{pin_to_cpu, relax};
use tickpath_lab_harness::{LabError, Parent, ProcessRole};

/// A process that spins on a CPU until its parent ends it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HogRole {
    /// Number of the CPU.
    pub cpu: usize,
}

impl ProcessRole for HogRole {
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
