//! A reader's cursor in the control file.

use tickpath_clock::ForkGeneration;

use crate::control::{ControlFile, MANDATORY};
use crate::lock::ByteLock;
use crate::sync::Ordering;

pub(super) struct CursorSlot {
    pub number: usize,
    pub control: ControlFile,
    /// Set if the cursor moves with reads, and not by confirmations.
    pub follows: bool,
    /// Process that opened the reader: detects a forked child, whose copy is not the reader.
    pub fork_generation: ForkGeneration,
    _lock: ByteLock,
}

impl CursorSlot {
    pub fn new(number: usize, control: ControlFile, lock: ByteLock) -> Self {
        Self { number, control, follows: true, fork_generation: ForkGeneration::current(), _lock: lock }
    }

    pub fn is_mandatory(&self) -> bool {
        self.number == MANDATORY && self.control.has_mandatory()
    }

    pub fn cursor(&self) -> u64 {
        self.control.cursor(self.number).load(Ordering::Relaxed)
    }

    pub fn move_to(&self, sequence: u64) {
        // Pairs with the writer's acquire when it gates: all earlier reads are finished.
        self.control.cursor(self.number).store(sequence, Ordering::Release);
    }
}

impl Drop for CursorSlot {
    fn drop(&mut self) {
        if !self.fork_generation.is_forked() {
            self.control.release(self.number);
        }
    }
}
