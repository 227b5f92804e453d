//! The same inputs give the same bytes and the same digest, with or without preallocated pages and with any hash seed.

use tickpath_oms_core::{At, Config, Core, Digest, Input, Output, Outputs, RECORD_BYTES, SparePage};

use crate::dice::seed;
use crate::random_inputs::World;

#[test]
fn a_replay_gives_the_same_outputs() {
    let journal = journal(seed(), 30_000);
    let first = run(&journal, Config::default(), false);
    assert!(first.outputs.len() > 10_000, "the inputs are worth a test: {} outputs", first.outputs.len());
    assert_eq!(first.digests.last().map(|digest| digest.outputs), Some(first.outputs.len() as u64));
    for (config, pages) in [
        (Config::default(), false),
        (Config::default(), true),
        (Config { expected_orders: 1 << 20, key: 0 }, true),
        (Config { expected_orders: 0, key: 0x5eed }, true),
    ] {
        let again = run(&journal, config, pages);
        assert!(first.outputs == again.outputs, "other outputs with {config:?}, pages {pages}");
        assert_eq!(first.digests, again.digests, "{config:?}, pages {pages}");
    }
}

#[test]
fn another_journal_has_another_digest() {
    let journal = journal(seed(), 2000);
    let last = |journal: &[(At, Input)]| run(journal, Config::default(), false).digests.last().copied().unwrap();
    let digest = last(&journal);
    for cut in [0, 1] {
        assert_ne!(digest, last(&journal[cut..journal.len() - 1 + cut]));
    }
    let moved: Vec<_> = journal.iter().map(|(at, input)| (At { sequence: at.sequence + 1, ..*at }, *input)).collect();
    assert_ne!(digest.digest, last(&moved).digest);
}

struct Run {
    outputs: Vec<Output>,
    /// A digest every 100 inputs, as in a journal.
    digests: Vec<Digest>,
}

fn journal(seed: u64, count: usize) -> Vec<(At, Input)> {
    let mut world = World::new(seed);
    (0..count).map(|_| world.step()).collect()
}

fn run(journal: &[(At, Input)], config: Config, pages: bool) -> Run {
    let (mut core, mut out) = (Core::new(config), Outputs::new());
    let mut run = Run { outputs: Vec::new(), digests: Vec::new() };
    for (place, (at, input)) in (1..).zip(journal) {
        if pages && core.needs_page() {
            core.add_page(SparePage::new());
        }
        // The inputs pass through their journal bytes, as in a real replay.
        let mut buffer = [0; RECORD_BYTES];
        let read = Input::read(input.kind().code(), input.write(&mut buffer)).expect("what was written is read");
        core.apply(*at, &read.expect("an input is an input"), &mut out);
        run.outputs.extend_from_slice(out.as_slice());
        if place % 100 == 0 || place == journal.len() {
            run.digests.push(core.digest());
        }
    }
    run
}
