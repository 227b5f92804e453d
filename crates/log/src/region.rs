//! Memory that other processes change concurrently: atomic words, and copies that race (`docs/design/copies.md`).

use std::fs::File;
use std::io;
use std::ptr::NonNull;

use crate::guard::{ProcessTrust, TruncationGuard};
use crate::mapping::{Access, Mapping};
use crate::sync::{Arc, AtomicU64, Ordering};

/// Max bytes of a payload that is copied word by word; longer payloads use vector instructions, so that fewer stores
/// queue behind one that waits for its cache line.
const WORDWISE: usize = 16;

/// A range of shared words. Cheap to clone; the memory lives as long as any clone.
#[derive(Clone)]
pub(crate) struct Region {
    base: NonNull<u8>,
    bytes: usize,
    memory: Arc<RegionMemory>,
}

enum RegionMemory {
    Mapped(Mapping),
    #[cfg(test)]
    Heap(#[allow(dead_code, reason = "held for its drop")] Vec<AtomicU64>),
}

// SAFETY: all access uses atomics, or copies and views whose rules are on their functions.
unsafe impl Send for Region {}
// SAFETY: as above; a shared region has no state of its own.
unsafe impl Sync for Region {}

impl Region {
    #[cfg(test)]
    pub fn heap(bytes: usize) -> Self {
        let words: Vec<AtomicU64> = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        let base = NonNull::new(words.as_ptr().cast_mut().cast()).expect("a vector has an address");
        Self { base, bytes: words.len() * 8, memory: Arc::new(RegionMemory::Heap(words)) }
    }

    /// Maps a part of a file, as [`Mapping::new`] does.
    pub fn map(file: &File, offset: u64, bytes: usize, access: Access) -> io::Result<Self> {
        let mapping = Mapping::new(file, offset, bytes, access)?;
        Ok(Self { base: mapping.base(), bytes, memory: Arc::new(RegionMemory::Mapped(mapping)) })
    }

    pub fn part(&self, offset: usize, bytes: usize) -> Self {
        assert!(offset.is_multiple_of(8) && offset + bytes <= self.bytes, "a part lies inside its region");
        // SAFETY: the offset is inside the memory that the owner holds.
        let base = unsafe { self.base.add(offset) };
        Self { base, bytes, memory: self.memory.clone() }
    }

    /// Returns the whole mapping, of which this may be a part; none for words on the heap.
    fn mapping(&self) -> Option<&Mapping> {
        match &*self.memory {
            RegionMemory::Mapped(mapping) => Some(mapping),
            #[cfg(test)]
            RegionMemory::Heap(_) => None,
        }
    }

    /// Guards the whole mapping: from here on a truncated file kills no process.
    pub fn guard(&self) -> io::Result<()> {
        self.mapping().map_or(Ok(()), Mapping::guard)
    }

    /// Guards the whole mapping if other processes are untrusted.
    pub fn guard_against(&self, trust: ProcessTrust) -> io::Result<()> {
        if trust == ProcessTrust::Untrusted { self.guard() } else { Ok(()) }
    }

    /// Faults in the whole mapping.
    pub fn populate(&self) {
        self.mapping().into_iter().for_each(Mapping::populate);
    }

    pub fn guarded(&self) -> Option<&TruncationGuard> {
        self.mapping()?.guarded()
    }

    #[inline(always)]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.bytes, "a word lies inside its region");
        // SAFETY: aligned (mappings start on a page, heap words on 8) and inside the memory, which lives as long as
        // `self`. This process accesses it only by atomics and the racing copies of this module.
        unsafe { self.base.add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// Returns the length of the run of words, `step` bytes apart, that equal `first`, `first + add` and so on: at
    /// most `most`, each with its `step` bytes before `end`. Loads each word with acquire.
    #[inline(always)]
    pub fn count_words(&self, offset: usize, step: usize, first: u64, add: u64, end: usize, max: usize) -> usize {
        let aligned = offset.is_multiple_of(8) && step.is_multiple_of(8) && step >= 8;
        assert!(aligned && end <= self.bytes, "the words lie inside their region");
        let (mut at, mut expected, mut count) = (offset, first, 0);
        while count < max && at + step <= end {
            // SAFETY: aligned, and inside the memory: as in `word`, with the bounds checked above.
            let word = unsafe { self.base.add(at).cast::<AtomicU64>().as_ref() };
            if word.load(Ordering::Acquire) != expected {
                break;
            }
            (at, expected, count) = (at + step, expected.wrapping_add(add), count + 1);
        }
        count
    }

    /// Returns the half word at a byte offset: a futex is 32 bits.
    pub fn half_word(&self, offset: usize) -> &std::sync::atomic::AtomicU32 {
        let word: *const AtomicU64 = self.word(offset);
        // SAFETY: the first half of a valid word, on a little-endian machine its low half; only ever used as halves.
        unsafe { &*word.cast() }
    }

    /// Writes bytes at an offset of whole words, and zeros up to the next whole word. Readers may read at any
    /// moment: each word is a relaxed store, or an instruction opaque to the compiler.
    #[inline(always)]
    pub fn copy_in(&self, offset: usize, from: &[u8]) {
        let end = offset + from.len().next_multiple_of(8);
        assert!(offset.is_multiple_of(8) && end <= self.bytes, "a copy lies inside its region");
        let wide = if from.len() > WORDWISE && VECTORS { from.len() / 16 * 16 } else { 0 };
        if wide > 0 {
            // SAFETY: both ranges are `wide` bytes inside their memory, and do not overlap: `from` is private memory.
            unsafe { copy_vectors(self.base.as_ptr().add(offset), from.as_ptr(), wide) };
        }
        let words = from[wide..].chunks_exact(8);
        let (mut at, rest) = (offset + wide, words.remainder());
        for word in words {
            self.word(at).store(u64::from_le_bytes(word.try_into().expect("eight bytes")), Ordering::Relaxed);
            at += 8;
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.word(at).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    /// Writes frames of equally long payloads, `step` bytes apart: two words, of which the first grows by `add` from
    /// frame to frame, and the payload as [`Self::copy_in`] does. Uses as few stores as possible: the fewer a cache
    /// line has, the more lines are in flight at once.
    #[inline(never)]
    pub fn put_all(&self, offset: usize, step: usize, words: [u64; 2], add: u64, payloads: &[&[u8]]) {
        let bytes = payloads.first().map_or(0, |payload| payload.len());
        let has_place = step.checked_mul(payloads.len()).is_some_and(|all| offset + all <= self.bytes);
        assert!(has_place && offset.is_multiple_of(8) && step.is_multiple_of(8), "frames lie inside their region");
        assert!(16 + bytes.next_multiple_of(8) <= step, "frames do not overlap");
        let wide = if VECTORS { bytes / 16 * 16 } else { 0 };
        let (mut at, [mut first, second]) = (offset, words);
        for payload in payloads {
            assert!(payload.len() == bytes, "they are equally long");
            // SAFETY: one step beyond the last frame, inside the memory, as asserted for all.
            let to = unsafe { self.base.as_ptr().add(at) };
            if VECTORS {
                // SAFETY: `16 + wide` bytes at `to` are inside the memory, `wide` bytes are the payload's, and the
                // payload is private memory: they do not overlap.
                unsafe {
                    store_pair(to, [first, second]);
                    copy_vectors(to.add(16), payload.as_ptr(), wide);
                }
            } else {
                self.word(at).store(first, Ordering::Relaxed);
                self.word(at + 8).store(second, Ordering::Relaxed);
            }
            if wide < bytes {
                self.copy_in(at + 16 + wide, &payload[wide..]);
            }
            (at, first) = (at + step, first.wrapping_add(add));
        }
    }

    /// Reads bytes from an offset of whole words, while a writer may be changing them: the caller must check
    /// afterwards, behind an acquire fence, that it did not.
    #[inline(always)]
    pub fn copy_out(&self, offset: usize, to: &mut [u8]) {
        let end = offset + to.len().next_multiple_of(8);
        assert!(offset.is_multiple_of(8) && end <= self.bytes, "a copy lies inside its region");
        let wide = if to.len() > WORDWISE && VECTORS { to.len() / 16 * 16 } else { 0 };
        if wide > 0 {
            // SAFETY: both ranges are `wide` bytes inside their memory, and do not overlap: `to` is private memory.
            unsafe { copy_vectors(to.as_mut_ptr(), self.base.as_ptr().add(offset), wide) };
        }
        let mut words = to[wide..].chunks_exact_mut(8);
        let mut at = offset + wide;
        for word in &mut words {
            word.copy_from_slice(&self.word(at).load(Ordering::Relaxed).to_le_bytes());
            at += 8;
        }
        let rest = words.into_remainder();
        if !rest.is_empty() {
            let word = self.word(at).load(Ordering::Relaxed).to_le_bytes();
            rest.copy_from_slice(&word[..rest.len()]);
        }
    }

    /// Returns a view of bytes that no process changes while it lives.
    ///
    /// # Safety
    /// The frame must be committed and pinned: in a log that grows, or behind the reader's own cursor.
    #[inline(always)]
    pub unsafe fn view(&self, offset: usize, bytes: usize) -> &[u8] {
        assert!(offset + bytes <= self.bytes, "a view lies inside its region");
        // SAFETY: inside the memory, initialised, and unchanged while the view lives, as the caller promises.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset), bytes) }
    }

    #[inline(always)]
    pub fn prefetch_read(&self, offset: usize) {
        if offset < self.bytes {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: a hint without effect on memory.
            unsafe {
                std::arch::asm!("prefetcht0 [{}]", in(reg) self.base.as_ptr().add(offset), options(nostack, preserves_flags, readonly));
            }
        }
    }

    #[inline(always)]
    pub fn prefetch_write(&self, offset: usize) {
        if offset < self.bytes {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: a hint without effect on memory; `prefetchw` is a no-op where it is not implemented.
            unsafe {
                std::arch::asm!("prefetchw [{}]", in(reg) self.base.as_ptr().add(offset), options(nostack, preserves_flags));
            }
        }
    }
}

/// True where [`copy_vectors`] exists; an interpreter and other processors copy word by word.
const VECTORS: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// Copies `bytes` (a multiple of 16) in 16-byte pieces. The compiler cannot see the accesses, so a race with
/// another process behaves as the machine does: each aligned word is old or new, never a mixture, as with relaxed
/// atomic words, at a quarter of the instructions.
///
/// # Safety
/// Both ranges must be valid for `bytes` bytes and must not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn copy_vectors(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the two loops touch exactly the two ranges; SSE2 is part of x86-64.
    unsafe {
        std::arch::asm!(
            "add {i}, 64",
            "jg 3f",
            "2:",
            "movups {a}, [{from} + {i} - 64]",
            "movups {b}, [{from} + {i} - 48]",
            "movups {c}, [{from} + {i} - 32]",
            "movups {d}, [{from} + {i} - 16]",
            "movups [{to} + {i} - 64], {a}",
            "movups [{to} + {i} - 48], {b}",
            "movups [{to} + {i} - 32], {c}",
            "movups [{to} + {i} - 16], {d}",
            "add {i}, 64",
            "jle 2b",
            "3:",
            "sub {i}, 64",
            "jz 5f",
            "4:",
            "movups {a}, [{from} + {i}]",
            "movups [{to} + {i}], {a}",
            "add {i}, 16",
            "jnz 4b",
            "5:",
            from = in(reg) from.add(bytes),
            to = in(reg) to.add(bytes),
            i = inout(reg) (bytes as isize).wrapping_neg() => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
}

/// Stores two words at once; a concurrent reader sees each old or new, as in [`copy_vectors`].
///
/// # Safety
/// `to` must be valid for 16 bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn store_pair(to: *mut u8, words: [u64; 2]) {
    // SAFETY: the store touches exactly the 16 bytes; SSE2 is part of x86-64.
    unsafe {
        std::arch::asm!(
            "movq {a}, {low}",
            "movq {b}, {high}",
            "punpcklqdq {a}, {b}",
            "movups [{to}], {a}",
            to = in(reg) to,
            low = in(reg) words[0],
            high = in(reg) words[1],
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
unsafe fn store_pair(_: *mut u8, _: [u64; 2]) {
    unreachable!("VECTORS is false here")
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
unsafe fn copy_vectors(_: *mut u8, _: *const u8, _: usize) {
    unreachable!("VECTORS is false here")
}
