//! The same inputs give the same bytes and the same digest, with and without given pages.

use tickpath_orders::{At, Config, Core, Digest, Input, Output, Outputs, Page};

use crate::dice::{Dice, input, seed};
use crate::naive::prelude;

#[test]
fn a_replay_says_the_same() {
    let journal = journal(seed(), 30_000);
    let (outputs, digest) = run(&journal, Config::default(), false);
    assert!(outputs.len() > 1000, "the inputs are worth a test");
    assert_eq!(digest.outputs, outputs.len() as u64);
    for (config, pages) in
        [(Config::default(), false), (Config::default(), true), (Config { expected_orders: 1 << 20 }, true)]
    {
        let (again, digest_again) = run(&journal, config, pages);
        assert!(outputs == again, "other outputs with {config:?}, pages {pages}");
        assert_eq!(digest, digest_again, "{config:?}, pages {pages}");
    }
}

#[test]
fn another_journal_has_another_digest() {
    let journal = journal(seed(), 2000);
    let (_, digest) = run(&journal, Config::default(), false);
    for cut in [0, 1] {
        let (_, other) = run(&journal[cut..journal.len() - 1 + cut], Config::default(), false);
        assert_ne!(digest, other);
    }
    let moved: Vec<_> = journal.iter().map(|(at, input)| (At { sequence: at.sequence + 1, ..*at }, *input)).collect();
    assert_ne!(digest.digest, run(&moved, Config::default(), false).1.digest);
}

fn journal(seed: u64, count: u64) -> Vec<(At, Input)> {
    let mut dice = Dice::new(seed);
    let mut inputs = prelude();
    for sequence in 0..count {
        inputs.push(input(&mut dice, sequence));
    }
    (1..).zip(inputs).map(|(sequence, input)| (At { sequence, stamp: sequence * 3 }, input)).collect()
}

fn run(journal: &[(At, Input)], config: Config, pages: bool) -> (Vec<Output>, Digest) {
    let (mut core, mut out, mut all) = (Core::new(config), Outputs::new(), Vec::new());
    for (at, input) in journal {
        if pages && core.wants_page() {
            core.give_page(Page::new());
        }
        // Through the journal's bytes, as a real replay; inputs with codes that nobody may write go in as they are.
        let mut buffer = [0; 128];
        let read = Input::read(input.kind().code(), input.write(&mut buffer)).ok().flatten().unwrap_or(*input);
        core.apply(*at, &read, &mut out);
        all.extend_from_slice(out.as_slice());
    }
    (all, core.digest())
}
