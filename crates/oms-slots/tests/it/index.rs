//! The index against a map of the standard library.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use tickpath_oms_slots::{Index, tag};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Few distinct tags make long chains; the whole range makes short ones.
    #[test]
    fn an_index_finds_every_inserted_slot(keys in prop::collection::vec(any::<u64>(), 1..3000), spread in 1_u32..33) {
        check(&keys, |key| tag(0, 0, key) >> (32 - spread));
    }
}

#[test]
fn an_index_grows_beyond_one_page() {
    let keys: Vec<u64> = (0..200_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    check(&keys, |key| tag(9, 3, key));
}

#[test]
fn tags_of_neighbours_differ() {
    for key in [0, 1, u64::MAX] {
        let distinct: HashSet<u32> = (0..100).flat_map(|group| (0..100).map(move |id| tag(key, group, id))).collect();
        assert!(distinct.len() > 9990, "{} of 10000 under {key}", distinct.len());
    }
}

/// Ids that collide under one key reveal no collisions under another key.
#[test]
fn ids_that_collide_under_one_key_do_not_under_another() {
    let home = |key, id: u64| tag(key, 1, id * 64) & 1023;
    let colliding: Vec<u64> = (0..200_000).filter(|&id| home(0, id) == 7).collect();
    assert!(colliding.len() > 100, "the ids are worth a test");
    let elsewhere: HashSet<u32> = colliding.iter().map(|&id| home(0x5eed, id)).collect();
    assert!(elsewhere.len() > 50, "{} homes", elsewhere.len());
}

fn check(keys: &[u64], tag: impl Fn(u64) -> u32) {
    let mut naive = HashMap::new();
    let mut index = Index::default();
    assert!(index.is_empty());
    for (slot, &key) in keys.iter().enumerate() {
        let slot = slot as u32;
        let found = index.find(tag(key), |slot| keys[slot as usize] == key);
        assert_eq!(found, naive.get(&key).copied(), "key {key}");
        if found.is_none() {
            index.insert(tag(key), slot);
            naive.insert(key, slot);
        }
    }
    assert_eq!(index.len(), naive.len() as u64);
    for (&key, &slot) in &naive {
        assert_eq!(index.find(tag(key), |slot| keys[slot as usize] == key), Some(slot), "key {key}");
    }
}
