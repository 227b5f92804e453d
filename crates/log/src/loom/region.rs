//! Memory of the models: the interface of `region.rs` over the model checker's atomics.

use loom::cell::UnsafeCell;

use crate::sync::{Arc, AtomicU64, Ordering};

pub(crate) use self::ModelRegion as Region;

#[derive(Clone)]
pub(crate) struct ModelRegion {
    words: Arc<Vec<AtomicU64>>,
    /// For each word whose copies must not race: a cell that detects a race.
    copies: Option<Arc<Vec<UnsafeCell<()>>>>,
    first: usize,
    len: usize,
}

impl ModelRegion {
    pub fn heap(bytes: usize) -> Self {
        let len = bytes.div_ceil(8);
        Self { words: Arc::new((0..len).map(|_| AtomicU64::new(0)).collect()), copies: None, first: 0, len }
    }

    /// Returns memory whose bytes must not be copied out while they are copied in.
    pub fn without_races(bytes: usize) -> Self {
        let region = Self::heap(bytes);
        let copies = (0..region.len).map(|_| UnsafeCell::new(())).collect();
        Self { copies: Some(Arc::new(copies)), ..region }
    }

    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset % 8 == 0 && offset / 8 < self.len);
        &self.words[self.first + offset / 8]
    }

    pub fn count_words(&self, offset: usize, step: usize, first: u64, add: u64, end: usize, max: usize) -> usize {
        let indices = (0..max).take_while(|index| offset + (index + 1) * step <= end);
        let has_word = |index: &usize| {
            let expected = first.wrapping_add(add.wrapping_mul(*index as u64));
            self.word(offset + index * step).load(Ordering::Acquire) == expected
        };
        indices.take_while(has_word).count()
    }

    pub fn copy_in(&self, offset: usize, from: &[u8]) {
        for (i, chunk) in from.chunks(8).enumerate() {
            if let Some(copies) = &self.copies {
                copies[offset / 8 + i].with_mut(|_| ());
            }
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.word(offset + i * 8).store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
    }

    pub fn put_all(&self, offset: usize, step: usize, words: [u64; 2], add: u64, payloads: &[&[u8]]) {
        for (index, payload) in payloads.iter().enumerate() {
            let at = offset + index * step;
            self.word(at).store(words[0].wrapping_add(add.wrapping_mul(index as u64)), Ordering::Relaxed);
            self.word(at + 8).store(words[1], Ordering::Relaxed);
            self.copy_in(at + 16, payload);
        }
    }

    pub fn copy_out(&self, offset: usize, to: &mut [u8]) {
        for (i, chunk) in to.chunks_mut(8).enumerate() {
            if let Some(copies) = &self.copies {
                copies[offset / 8 + i].with(|_| ());
            }
            let word = self.word(offset + i * 8).load(Ordering::Relaxed);
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }

    pub fn prefetch_read(&self, _offset: usize) {}

    pub fn prefetch_write(&self, _offset: usize) {}
}
