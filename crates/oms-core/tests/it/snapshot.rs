//! A core that was saved and loaded continues unchanged.

use tickpath_oms_core::{Config, Core, SnapshotError};

use crate::dice::{Dice, seed};
use crate::naive::Naive;
use crate::random_inputs::World;

pub(crate) fn saved(core: &Core) -> Vec<u8> {
    let mut bytes = Vec::new();
    core.save(&mut |piece| bytes.extend_from_slice(piece));
    bytes
}

pub(crate) fn loaded(mut bytes: &[u8]) -> Result<Core, SnapshotError> {
    Core::load(0, &mut |piece| match bytes.split_at_checked(piece.len()) {
        Some((taken, left)) => {
            piece.copy_from_slice(taken);
            bytes = left;
            true
        }
        None => false,
    })
}

#[test]
fn a_loaded_core_gives_the_same_outputs_as_the_saved_core() {
    let mut dice = Dice::new(seed());
    for round in 0..30 {
        let seed = dice.draw();
        let (mut world, mut naive) = (World::new(seed), Naive::new());
        for step in 0..1000 {
            if dice.below(50) == 0 {
                let digest = world.core.digest();
                world.core = loaded(&saved(&world.core)).unwrap();
                assert_eq!(world.core.digest(), digest, "round {round} of seed {seed}, step {step}");
            }
            let (at, input) = world.step();
            assert_eq!(world.out.as_slice(), naive.apply(at, &input), "seed {seed}, step {step}: {input:?}");
            assert_eq!(world.core.counts(), naive.counts(), "seed {seed}, step {step}: {input:?}");
        }
    }
}

#[test]
fn a_saved_core_saves_to_the_same_bytes_again() {
    let mut world = World::new(seed());
    (0..3000).for_each(|_| {
        world.step();
    });
    let bytes = saved(&world.core);
    assert!(saved(&loaded(&bytes).unwrap()) == bytes, "every byte of the state is in it");
}

#[test]
fn truncated_bytes_and_other_layouts_are_refused() {
    let mut world = World::new(seed());
    (0..500).for_each(|_| {
        world.step();
    });
    let bytes = saved(&world.core);
    for length in (0..bytes.len()).step_by((bytes.len() / 200).max(97)).chain([bytes.len() - 1]) {
        assert_eq!(loaded(&bytes[..length]).err(), Some(SnapshotError::Short), "{length} of {}", bytes.len());
    }
    let mut other = bytes.clone();
    other[0] = 99;
    assert_eq!(loaded(&other).err(), Some(SnapshotError::Layout { found: 99 }));
    let empty = Core::new(Config::default());
    assert_eq!(loaded(&saved(&empty)).unwrap().digest(), empty.digest());
}
