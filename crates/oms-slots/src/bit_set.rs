//! A set of slots, one bit each: a search visits one word per 64 slots and finds members in ascending order.

use crate::snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

/// A set of slots, one bit each.
///
/// ```
/// use tickpath_oms_slots::BitSet;
///
/// let mut open = BitSet::with_expected(1_000);
/// open.set(3, true);
/// open.set(700, true);
/// open.set(3, false);
/// assert_eq!(open.next(0), Some(700));
/// assert_eq!(open.next_before(0, 700), None);
/// ```
#[derive(Default)]
pub struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// Makes an empty set with room for the expected number of slots.
    pub fn with_expected(slots: usize) -> Self {
        Self { words: Vec::with_capacity(slots / 64 + 1) }
    }

    /// Appends the set to a snapshot.
    pub fn save(&self, save: &mut SnapshotWriter<'_>) {
        save.write_list(&self.words);
    }

    /// Replaces the set by the set at this place of a snapshot.
    pub fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        self.words = load.read_list()?;
        Ok(())
    }

    /// Adds a slot to the set or removes it.
    #[inline]
    pub fn set(&mut self, slot: u32, is_member: bool) {
        let word = slot as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (slot % 64);
        match is_member {
            true => self.words[word] |= bit,
            false => self.words[word] &= !bit,
        }
    }

    /// Removes all slots; the memory stays.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Returns the first member at or behind the slot `from`.
    #[inline]
    pub fn next(&self, from: u32) -> Option<u32> {
        self.next_before(from, u32::MAX)
    }

    /// Returns the first member at or behind the slot `from` and before the slot `until`, and searches nothing behind
    /// `until`.
    #[inline]
    pub fn next_before(&self, from: u32, until: u32) -> Option<u32> {
        let words = &self.words[..self.words.len().min((until as usize).div_ceil(64))];
        let mut word = from as usize / 64;
        let mut bits = *words.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *words.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros()).filter(|&slot| slot < until)
    }
}
