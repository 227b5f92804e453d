//! Which orders are open, one bit each: all of a venue's, a session's or an account's are found without a walk through
//! those that are done.

use crate::snapshot::{Load, Save, SnapshotError};

/// A set of slots.
#[derive(Default)]
pub(crate) struct Live {
    words: Vec<u64>,
}

impl Live {
    /// An empty set with room for so many slots.
    pub(crate) fn with_expected(slots: usize) -> Self {
        Self { words: Vec::with_capacity(slots / 64 + 1) }
    }

    pub(crate) fn save(&self, save: &mut Save<'_>) {
        save.list(&self.words);
    }

    pub(crate) fn load(&mut self, load: &mut Load<'_>) -> Result<(), SnapshotError> {
        self.words = load.list()?;
        Ok(())
    }

    /// Puts a slot in or takes it out.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, is_live: bool) {
        let word = slot as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (slot % 64);
        match is_live {
            true => self.words[word] |= bit,
            false => self.words[word] &= !bit,
        }
    }

    /// Takes all out.
    pub(crate) fn empty(&mut self) {
        self.words.clear();
    }

    /// The first slot at or behind this one.
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        self.next_before(from, u32::MAX)
    }

    /// The first slot at or behind `from` that lies before `until`; nothing behind `until` is searched.
    pub(crate) fn next_before(&self, from: u32, until: u32) -> Option<u32> {
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
