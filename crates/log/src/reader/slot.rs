//! A reader's cursor in the control file.

use tickpath_clock::Birthplace;

use crate::control::{Control, MANDATORY};
use crate::lock::ByteLock;
use crate::sync::Ordering;

/// A cursor owned by this reader.
pub(super) struct Slot {
    pub number: usize,
    pub control: Control,
    /// Set if the cursor moves with reads, and not by confirmations.
    pub follows: bool,
    /// Process that opened the reader: detects a forked child, whose copy is not the reader.
    pub born: Birthplace,
    _lock: ByteLock,
}

impl Slot {
    pub fn new(number: usize, control: Control, lock: ByteLock) -> Self {
        Self { number, control, follows: true, born: Birthplace::here(), _lock: lock }
    }

    pub fn is_mandatory(&self) -> bool {
        self.number == MANDATORY && self.control.names_mandatory()
    }

    pub fn cursor(&self) -> u64 {
        self.control.cursor(self.number).load(Ordering::Relaxed)
    }

    pub fn move_to(&self, sequence: u64) {
        // Pairs with the writer's acquire when it gates: all earlier reads are finished.
        self.control.cursor(self.number).store(sequence, Ordering::Release);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.born.is_elsewhere() {
            self.control.release(self.number);
        }
    }
}
