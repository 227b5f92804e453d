//! Linear hashing: from the tag of an id to a slot. One bucket is split at a time, so no insert stalls.
//!
//! ```text
//!   bucket, 64 bytes, one cache line
//!   0        8        16                        56     60     64
//!   │ slot,tag │ slot,tag │  … seven entries …  │ next │ len  │
//! ```
//!
//! A bucket's home is the low bits of the tag, so a split moves entries without a look at the items in their slots.
//! Buckets lie in pages that never move. At five entries a bucket an entry costs about 14 bytes. Neighbouring ids lie
//! side by side (`docs/design/order-path.md`).

use std::hint::black_box;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::page::{Pages, empty_page};
use crate::snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

const BUCKETS_PER_PAGE: usize = 512;
const ENTRIES_PER_BUCKET: usize = 7;
/// Mean entries per bucket; above it the next bucket is split.
const MEAN_ENTRIES: u64 = 5;
/// Link of a bucket without a next bucket.
const NONE: u32 = u32::MAX;

/// An index from tags to slots. Tags may be equal: the caller decides whether a slot is the right one.
///
/// ```
/// use tickpath_oms_slots::{Index, tag};
///
/// let names = ["ask", "bid"];
/// let mut index = Index::default();
/// index.insert(tag(0, 1, 7), 0);
/// index.insert(tag(0, 1, 8), 1);
/// assert_eq!(index.find(tag(0, 1, 8), |slot| names[slot as usize] == "bid"), Some(1));
/// assert_eq!(index.find(tag(0, 1, 8), |_| false), None);
/// ```
pub struct Index {
    homes: Pages<IndexBucket, BUCKETS_PER_PAGE>,
    spill: Pages<IndexBucket, BUCKETS_PER_PAGE>,
    free: u32,
    entries: u64,
}

/// Returns the tag of a two-part id under a key; without the key, clients could choose ids that collide. Ids are
/// consecutive, so blocks of 64 are scattered together and lie side by side, two ids per bucket: the next order finds
/// its cache line loaded. (With ids scattered one by one, an order every 50 µs paid for four lines from memory.)
#[inline]
pub fn tag(key: u64, group: u64, id: u64) -> u32 {
    let mixed =
        mix(mix((id >> 6) ^ key ^ 0xa076_1d64_78bd_642f, key ^ 0xe703_7ed1_a0b4_28db) ^ group, 0x8ebc_6af0_9c88_c6e3);
    let block = (mixed ^ (mixed >> 32)) as u32;
    let pair = (id >> 1) as u32 & 31;
    block.wrapping_add(pair) ^ (id as u32) << 31
}

impl Index {
    /// Creates an empty index whose table of pages has room for the expected number of entries.
    pub fn with_expected(entries: usize) -> Self {
        let mut homes = Pages::new(IndexBucket::EMPTY, entries / MEAN_ENTRIES as usize);
        homes.push(IndexBucket::EMPTY);
        Self { homes, spill: Pages::new(IndexBucket::EMPTY, 0), free: NONE, entries: 0 }
    }

    /// Returns the slot under this tag for which `is_match` returns true.
    #[inline]
    pub fn find(&self, tag: u32, mut is_match: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut bucket = self.homes.get(self.home(tag));
        loop {
            for entry in bucket.used() {
                if entry.tag == tag && is_match(entry.slot) {
                    return Some(entry.slot);
                }
            }
            if bucket.next == NONE {
                return None;
            }
            bucket = self.spill.get(bucket.next);
        }
    }

    /// Adds a slot under this tag, beside any others.
    #[inline]
    pub fn insert(&mut self, tag: u32, slot: u32) {
        self.entries += 1;
        if self.entries > MEAN_ENTRIES * u64::from(self.homes.len()) {
            self.split();
        }
        self.append(self.home(tag), IndexEntry { slot, tag });
    }

    /// Reads the bucket of a tag, so that its cache line is loaded when the tag is looked up or inserted.
    #[inline]
    pub fn prefetch(&self, tag: u32) {
        black_box(self.homes.get(self.home(tag)).len);
    }

    /// Removes all entries; the memory stays.
    pub fn clear(&mut self) {
        self.homes.clear();
        self.homes.push(IndexBucket::EMPTY);
        self.spill.clear();
        (self.free, self.entries) = (NONE, 0);
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Returns whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Takes a spare page, so that the index does not have to build the next page itself.
    pub fn add_page(&mut self, page: IndexPage) {
        self.homes.add_page(page.0);
    }

    /// Appends the index to a snapshot.
    pub fn save(&self, save: &mut SnapshotWriter<'_>) {
        save.write_item(&[u64::from(self.free), self.entries]);
        self.homes.save(save);
        self.spill.save(save);
    }

    /// Replaces the index by the index at this place of a snapshot.
    pub fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        let [free, entries]: [u64; 2] = load.read_item()?;
        self.free = u32::try_from(free).map_err(|_| SnapshotError::Damaged)?;
        self.entries = entries;
        self.homes.load(load)?;
        self.spill.load(load)
    }

    #[inline]
    fn home(&self, tag: u32) -> u32 {
        let count = self.homes.len();
        let mask = count.next_power_of_two() - 1;
        let home = tag & mask;
        if home < count { home } else { home & (mask >> 1) }
    }

    /// Adds a bucket, and moves its entries there from the bucket that it halves.
    fn split(&mut self) {
        let fresh = self.homes.push(IndexBucket::EMPTY);
        let mask = self.homes.len().next_power_of_two() - 1;
        let halved = fresh & (mask >> 1);
        let mut bucket = std::mem::replace(self.homes.get_mut(halved), IndexBucket::EMPTY);
        loop {
            for &entry in bucket.used() {
                let home = if entry.tag & mask == fresh { fresh } else { halved };
                self.append(home, entry);
            }
            let next = bucket.next;
            if next == NONE {
                return;
            }
            bucket = *self.spill.get(next);
            self.free_spill(next);
        }
    }

    /// Appends an entry to its home's chain. Only the home and the first bucket behind it have room, so a long chain
    /// costs an insert nothing.
    #[inline]
    fn append(&mut self, home: u32, entry: IndexEntry) {
        let bucket = self.homes.get_mut(home);
        if bucket.push(entry) {
            return;
        }
        let behind = bucket.next;
        if behind != NONE && self.spill.get_mut(behind).push(entry) {
            return;
        }
        let mut fresh = IndexBucket { next: behind, ..IndexBucket::EMPTY };
        fresh.push(entry);
        let slot = self.allocate_spill(fresh);
        self.homes.get_mut(home).next = slot;
    }

    fn allocate_spill(&mut self, bucket: IndexBucket) -> u32 {
        if self.free == NONE {
            return self.spill.push(bucket);
        }
        let slot = self.free;
        self.free = self.spill.get(slot).next;
        *self.spill.get_mut(slot) = bucket;
        slot
    }

    fn free_spill(&mut self, slot: u32) {
        *self.spill.get_mut(slot) = IndexBucket { next: self.free, ..IndexBucket::EMPTY };
        self.free = slot;
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::with_expected(0)
    }
}

/// A page of empty buckets for [`Index::add_page`], to be built on another thread than the index's.
pub struct IndexPage(Box<[IndexBucket]>);

impl Default for IndexPage {
    /// Builds a page, and writes to all of its memory.
    fn default() -> Self {
        Self(empty_page(IndexBucket::EMPTY, BUCKETS_PER_PAGE))
    }
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct IndexEntry {
    slot: u32,
    tag: u32,
}

/// One cache line of an index.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
struct IndexBucket {
    entries: [IndexEntry; ENTRIES_PER_BUCKET],
    next: u32,
    len: u32,
}

const _: () = assert!(size_of::<IndexBucket>() == 64);

impl IndexBucket {
    const EMPTY: Self =
        Self { entries: [IndexEntry { slot: NONE, tag: NONE }; ENTRIES_PER_BUCKET], next: NONE, len: 0 };

    #[inline]
    fn used(&self) -> &[IndexEntry] {
        &self.entries[..self.len as usize]
    }

    /// Adds an entry; returns false if there is no room.
    #[inline]
    fn push(&mut self, entry: IndexEntry) -> bool {
        let Some(unused) = self.entries.get_mut(self.len as usize) else { return false };
        *unused = entry;
        self.len += 1;
        true
    }
}

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}
