//! A deterministic simulation: clients, OMS, venues, disk and clock in one thread, from one seed.
//!
//! ```text
//!   plan (from the seed) ──> world ──┬── clients, operator ── lanes ──┬── OMS ── journal ── disk
//!                                    ├── gateways ─────────── lanes ──┘
//!                                    ├── venues, on other machines, by lanes or by lines
//!                                    └── oracle: records reports, requests and fills, and checks the OMS against them
//! ```
//!
//! Lanes and journal are real files; the OMS is the real one, polled by hand. A kill drops a process between two turns,
//! or unwinds it at one of its clock readings, so its locks and cursors end as in an orderly stop. A real SIGKILL is in
//! the tests beside these.
//!
//! A failing seed is shrunk, and printed as one command. `TICKPATH_SEED` sets the first seed, `TICKPATH_SEEDS` their
//! number, `TICKPATH_SOAK` runs very many, `TICKPATH_FIRST` ends at the first failure; `TICKPATH_CRASH_PROOF` names the
//! file for the page of what survives.

mod client;
mod clock;
mod crash_counts;
mod crash_proof;
mod day;
mod disk;
mod faults;
mod host;
mod limits;
mod line;
mod lines;
mod oracle;
mod order_retries;
mod plan;
mod planted_bugs;
mod quiescence;
mod remote;
mod roll;
mod rule;
mod rule_checks;
mod shrink;
mod silence;
mod silence_detection;
mod silent_losses;
mod step_context;
mod tally;
mod trading_config;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::plan::{Step, plan};
use crate::planted_bugs::PlantedBug;
use crate::rule::BrokenRule;
use crate::tally::Tally;
use crate::world::{Outcome, run};

/// Seeds of a test run, and of a long one.
const SEEDS: u64 = 2_000;
const SOAK_SEEDS: u64 = 50_000;
/// Min seeds of a run that must have met every fault.
const ALL_FAULTS: u64 = 2_000;
/// Threads that share the seeds.
const THREADS: usize = 2;
/// Seeds in which a planted bug must be found.
const PLANT_SEEDS: u64 = 500;
/// Failing seeds of each rule that are shrunk.
const SHRUNK: usize = 1;

#[test]
fn seeds() {
    let first = number("TICKPATH_SEED").unwrap_or(1);
    let soak = std::env::var_os("TICKPATH_SOAK").map(|_| SOAK_SEEDS);
    let seeds = number("TICKPATH_SEEDS").or(soak).unwrap_or(SEEDS);
    let is_one_enough = std::env::var_os("TICKPATH_FIRST").is_some();
    let (next, whole) = (AtomicU64::new(first), Mutex::new((Tally::default(), BTreeMap::<_, Vec<u64>>::new())));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < first + seeds) {
                    let outcome = attempt(seed, &plan(seed), None, false);
                    let mut whole = whole.lock().unwrap_or_else(|e| e.into_inner());
                    whole.0.merge(&outcome.tally);
                    if let Some(broken) = outcome.broken {
                        whole.1.entry(broken.rule).or_default().push(seed);
                        next.fetch_max(if is_one_enough { first + seeds } else { 0 }, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (tally, failed) = whole.into_inner().unwrap_or_else(|e| e.into_inner());
    tally.print();
    for (rule, seeds) in &failed {
        eprintln!("\n{} seeds break the rule '{rule}': {:?}", seeds.len(), &seeds[..seeds.len().min(20)]);
        seeds.iter().take(if is_one_enough { 0 } else { SHRUNK }).for_each(|&seed| explain(seed));
    }
    assert!(failed.is_empty(), "{} seeds fail", failed.values().map(Vec::len).sum::<usize>());
    let missing = tally.missing();
    assert!(seeds < ALL_FAULTS || missing.is_empty(), "never happened: {missing:?}");
    if let Some(file) = std::env::var_os("TICKPATH_CRASH_PROOF") {
        std::fs::write(file, crash_proof::page(&tally, seeds)).expect("the page can be written");
    }
}

#[test]
fn one_seed() {
    let seed = number("TICKPATH_SEED").unwrap_or(1);
    if attempt(seed, &plan(seed), None, false).broken.is_some() {
        explain(seed);
        panic!("seed {seed} fails");
    }
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    for seed in 1..=20 {
        let [first, second] = [(); 2].map(|()| attempt(seed, &plan(seed), None, true));
        assert!(first.story == second.story, "seed {seed} tells two stories");
        assert_eq!((first.digest, first.tally, first.broken), (second.digest, second.tally, second.broken), "{seed}");
    }
}

#[test]
fn planted_bugs_are_found() {
    let mut unseen = Vec::new();
    for plant in PlantedBug::ALL {
        let found = (1..=PLANT_SEEDS).find_map(|seed| {
            let broken = attempt(seed, &plan(seed), Some(plant), false).broken?;
            let is_sound = attempt(seed, &plan(seed), None, false).broken.is_none();
            is_sound.then_some((seed, broken.rule))
        });
        match found {
            Some((seed, rule)) => eprintln!("{plant:?}: seed {seed} breaks the rule '{rule}'"),
            None => unseen.push(plant),
        }
    }
    assert!(unseen.is_empty(), "not found: {unseen:?}");
}

/// Runs a plan; a panic counts as a failure.
fn attempt(seed: u64, plan: &[Step], plant: Option<PlantedBug>, keeps_story: bool) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| run(seed, plan, plant, keeps_story))).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let what = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
        let broken = Some(BrokenRule { rule: "nothing panics", what });
        Outcome { tally: Tally::default(), story: Vec::new(), broken, digest: 0 }
    })
}

/// Prints the shortest plan found that breaks the same rule, and the command for the whole.
fn explain(seed: u64) {
    let whole = plan(seed);
    let Some(broken) = attempt(seed, &whole, None, false).broken else { return };
    let is_it = |plan: &[Step]| attempt(seed, plan, None, false).broken.is_some_and(|other| other.rule == broken.rule);
    let short = shrink::shrink(&whole, is_it);
    let outcome = attempt(seed, &short, None, true);
    eprintln!("TICKPATH_SEED={seed} cargo test -p tickpath-oms-runtime --test sim -- one_seed --nocapture");
    eprintln!("the rule '{}' is broken by {} of its {} steps:", broken.rule, short.len(), whole.len());
    outcome.story.iter().for_each(|line| eprintln!("  {line}"));
    eprintln!("  {}", outcome.broken.map_or(broken.what, |broken| broken.what));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}
