//! The set of order ids used on any day, one bit each; and the hash for tables keyed by ids.
//!
//! An OMS whose ids begin with the epoch of its start never reuses an id. The venue does not know how its clients make
//! ids, so it keeps every used id.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use tickpath_market::OrderId;

/// Table keyed by ids. No result may depend on its order of iteration.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<FoldHasher>>;

/// Set of used ids, in blocks of 512 neighbours: ids that mostly count up take little more than a bit each, and an
/// id far from all others takes about 80 bytes.
#[derive(Debug, Default)]
pub(crate) struct UsedIds {
    blocks: IdMap<u64, [u64; 8]>,
}

/// Hash that multiplies and folds, several times faster than a collision-resistant hash. Ids come from an order
/// management system and not from strangers, so the hash need not resist ids chosen to collide.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FoldHasher(u64);

impl UsedIds {
    /// Creates a set with room for this number of orders, if about one id in eight is an order.
    pub fn with_capacity(orders: usize) -> Self {
        Self { blocks: IdMap::with_capacity_and_hasher(orders / 64 + 1, BuildHasherDefault::default()) }
    }

    /// Adds an id. Returns false if the set had it already.
    pub fn insert(&mut self, id: OrderId) -> bool {
        let (block, word, bit) = split(id);
        let word = &mut self.blocks.entry(block).or_default()[word];
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    pub fn contains(&self, id: OrderId) -> bool {
        let (block, word, bit) = split(id);
        self.blocks.get(&block).is_some_and(|words| words[word] & bit != 0)
    }
}

impl Hasher for FoldHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns an id's block, the word in the block, and the bit in the word.
fn split(id: OrderId) -> (u64, usize, u64) {
    (id.0 >> 9, ((id.0 >> 6) & 7) as usize, 1 << (id.0 & 63))
}
