//! The verdicts of a comparison and their error rate, on simulated builds with known truth.

mod promise;

use serde_json::Value;
use tickpath_lab_compare::{
    CompareError, ComparedResults, ComparisonOutcome, Design, FalsePositives, Judgement, LEVEL, LimitStatus,
    MetricChange, MetricLimit, ResultPair, Ruling, Verdict, judge, markdown, overall_outcome, result_file, text,
};
use tickpath_lab_result::{Hop, MessageCounts, ResultFile, Run};

mod own_hops;
mod planted_faults;
mod ratios;

/// A text that would steer a terminal or break a table if it were not escaped.
const HOSTILE: &str = "<script>alert('x')</script>\u{1b}[31m | \"q\", `b` & \u{202e}end\r\n=1+1";

const SCHEMA: &str = include_str!("../../../../docs/result.schema.json");

/// The number of simulated comparisons of a kind; their seeds are 1 to this number.
const WORLDS: u64 = 2_000;

/// Hops and their medians.
const HOPS: [(&str, f64); 2] = [("t0_t2", 1_000.0), ("tick_to_order", 5_000.0)];

/// The percentiles p50 to p99.9: their multiple of the median, and the spread of a repeat, as a logarithm.
const SHAPE: [(f64, f64); 5] = [(1.0, 0.02), (1.2, 0.02), (1.5, 0.03), (2.5, 0.08), (6.0, 0.3)];

/// The share of repeats with a stall, and the factor by which a stall moves the tail.
const STALLED: f64 = 0.05;
const STALL: f64 = 3.0;

#[test]
fn identical_builds_are_rarely_called_different() {
    for (design, repeats) in [
        (Design::InTurn, 6),
        (Design::InTurn, 7),
        (Design::InTurn, 10),
        (Design::InTurn, 15),
        (Design::Apart, 4),
        (Design::Apart, 5),
    ] {
        let called = worlds(design, repeats, 1.0, |judgement| judgement.changes.iter().any(MetricChange::is_real));
        let most = LEVEL * WORLDS as f64;
        assert!(called as f64 <= most, "{design:?}, {repeats} repeats: {called} of {WORLDS} seeds, {most} at most");
    }
}

#[test]
fn a_true_shift_is_found_in_most_cases() {
    for (design, repeats, factor, verdict) in [
        (Design::InTurn, 7, 1.2, Verdict::Slower),
        (Design::InTurn, 10, 1.2, Verdict::Slower),
        (Design::InTurn, 10, 1.0 / 1.2, Verdict::Faster),
        (Design::Apart, 6, 1.2, Verdict::Slower),
    ] {
        let found = worlds(design, repeats, factor, |judgement| change(judgement, "t0_t2.p50").verdict == verdict);
        let least = WORLDS / 2;
        assert!(found > least, "{design:?}, {repeats} repeats, {factor}: {found} of {WORLDS} seeds, above {least}");
    }
}

#[test]
fn intervals_hold_the_true_ratio() {
    for (design, repeats) in [(Design::InTurn, 7), (Design::InTurn, 10), (Design::Apart, 5)] {
        let missed = worlds(design, repeats, 1.2, |judgement| {
            let interval = change(judgement, "t0_t2.p50").interval.expect("there are enough repeats");
            assert!(interval.level >= 0.95, "{interval:?}");
            !(interval.low..=interval.high).contains(&1.2)
        });
        let most = WORLDS / 20;
        assert!(missed <= most, "{design:?}, {repeats} repeats: {missed} of {WORLDS} seeds, {most} at most");
    }
}

#[test]
fn a_limit_is_exceeded_by_an_interval_wholly_beyond_it() {
    let limit: MetricLimit = "t0_t2.p50 > +10%".parse().expect("it is one");
    let exceeded = |judgement: &Judgement| {
        limit.judge(judgement).expect("it was measured").iter().any(|one| one.status == LimitStatus::Exceeded)
    };
    let alarms = worlds(Design::InTurn, 7, 1.0, exceeded);
    assert!(alarms <= WORLDS / 100, "{alarms} of {WORLDS} seeds");
    let found = worlds(Design::InTurn, 7, 1.25, exceeded);
    assert!(found > WORLDS / 2, "{found} of {WORLDS} seeds");
}

#[test]
fn verdicts_follow_the_samples() {
    use Design::{Apart, InTurn};
    let around =
        |ratio: f64, repeats: usize| (0..repeats).map(|i| ratio * (1.0 + 0.001 * i as f64)).collect::<Vec<_>>();
    for (design, ratios, p50, throughput) in [
        (InTurn, around(1.3, 7), Verdict::Slower, Verdict::Slower),
        (InTurn, around(0.7, 7), Verdict::Faster, Verdict::Faster),
        (InTurn, around(1.04, 7), Verdict::Slower, Verdict::Slower),
        (InTurn, around(1.01, 7), Verdict::Same, Verdict::Same),
        (InTurn, around(1.3, 5), Verdict::Unknown, Verdict::Unknown),
        (InTurn, vec![0.5, 2.0, 0.6, 1.7, 1.1, 0.9, 1.2], Verdict::Unknown, Verdict::Unknown),
        (InTurn, around(1.3, 1), Verdict::Unknown, Verdict::Unknown),
        (Apart, around(1.3, 5), Verdict::Slower, Verdict::Slower),
        // Files drift by as much.
        (Apart, around(1.04, 5), Verdict::Same, Verdict::Same),
        (Apart, around(1.3, 3), Verdict::Unknown, Verdict::Unknown),
        (Apart, around(1.3, 1), Verdict::Unknown, Verdict::Unknown),
    ] {
        let judgement = judge(&steady(design, &ratios)).expect("both sides measured the same");
        let found = ["t0_t2.p50", "throughput_per_s", "orders_rejected"].map(|name| change(&judgement, name).verdict);
        assert_eq!(found, [p50, throughput, Verdict::Same], "{design:?} {ratios:?}");
    }
}

#[test]
fn a_drift_of_the_host_is_no_change() {
    let mut files = steady(Design::Apart, &[1.3, 1.301, 1.302, 1.303, 1.304]);
    let ComparedResults::Apart(pair) = &mut files else { panic!("these are files") };
    pair.old.host.cache_line_transfer_ns = Some(100.0);
    pair.new.host.cache_line_transfer_ns = Some(150.0);
    pair.new.host.kernel = "Linux 9".to_owned();
    let judgement = judge(&files).expect("both sides measured the same");
    assert!(!judgement.changes.iter().any(MetricChange::is_real), "{:?}", judgement.changes);
    for word in ["moved by 50 %", "another kernel"] {
        assert!(judgement.notes.iter().any(|note| note.contains(word)), "{word}: {:?}", judgement.notes);
    }
}

#[test]
fn runs_are_paired_by_their_settings() {
    type Alter = fn(&mut ResultFile);
    let cases: [(&str, Alter, Result<&str, &str>); 12] = [
        ("another port", |file| file.runs[0].target = "redis://ann@host:7000/2".to_owned(), Ok("")),
        ("another host", |file| file.runs[0].target = "redis://other:1/2".to_owned(), Err("redis://other/2")),
        ("another workload", |file| file.workload = "orders".to_owned(), Err("'orders'")),
        ("another layout", |file| file.runs[0].layout = Some("split".to_owned()), Err("split")),
        ("another batch", |file| file.runs[0].batch = Some(5.into()), Err("batch 5")),
        ("another client", |file| file.runs[0].client = "redis-py".to_owned(), Err("redis-py")),
        ("another setting", |file| file.runs[0].params.set("count", 7), Err("count 7")),
        ("a measured setting", |file| file.runs[0].params.set("measured_rtt_ns", 7), Ok("")),
        ("a setting that one version writes", |file| file.runs[0].params.set("placement", "near"), Ok("")),
        ("no runs", |file| file.runs.clear(), Err("NEW ran nothing")),
        ("an invalid run", |file| file.runs[0].valid = false, Err("1 of 1 runs of NEW are not valid")),
        (
            "a run more",
            |file| {
                let more = Run { layout: Some("mutex".to_owned()), ..file.runs[0].clone() };
                file.runs.push(more);
            },
            Ok("only in NEW"),
        ),
    ];
    for (name, alter, wanted) in cases {
        let run = |port: &str| {
            let mut run = steady_run(1, 1.0);
            run.target = format!("redis://host:{port}/2");
            run.params.set("count", 100);
            run
        };
        let mut pair = ResultPair { old: file(vec![run("6379")]), new: file(vec![run("6379")]) };
        alter(&mut pair.new);
        match (judge(&ComparedResults::Apart(Box::new(pair))), wanted) {
            (Ok(judgement), Ok(note)) => {
                assert!(judgement.notes.iter().any(|told| told.contains(note)), "{name}: {:?}", judgement.notes);
                assert!(judgement.changes.iter().any(|change| change.name() == "t0_t2.p50"), "{name}");
            }
            (Err(error), Err(word)) => assert!(error.to_string().contains(word), "{name}: {error}"),
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

#[test]
fn two_servers_of_one_host_are_two_and_one_that_moved_is_one() {
    let run = |(port, repeat): (u16, u32)| Run { target: format!("redis://h:{port}"), ..steady_run(repeat, 1.0) };
    for (order, units, servers) in [
        // In turns, as a bench runs them.
        ([(1, 1), (2, 1), (1, 2), (2, 2)], 2, 2),
        // In succession, as merged files have them.
        ([(1, 1), (1, 2), (2, 1), (2, 2)], 4, 1),
    ] {
        let side = || file(order.map(run).to_vec());
        let judgement =
            judge(&ComparedResults::Apart(Box::new(ResultPair { old: side(), new: side() }))).expect("the same twice");
        let told = judgement.changes.iter().filter(|change| change.name() == "t0_t2.p50");
        assert_eq!((judgement.samples, told.count()), ([units, units], servers), "{order:?}");
    }
}

#[test]
fn invalid_runs_are_excluded_and_reported() {
    let mut measured = steady(Design::InTurn, &[1.3, 1.3, 1.3, 1.3, 1.3, 1.3, 9.0, 1.3]);
    let ComparedResults::InTurn(pairs) = &mut measured else { panic!("these are calls in turn") };
    pairs[6].new.runs[0].valid = false;
    pairs[6].new.runs[0].notes = vec!["The achieved rate was below 99 %.".to_owned()];
    let judgement = judge(&measured).expect("the others are valid");
    let found = change(&judgement, "t0_t2.p50");
    assert_eq!((found.verdict, found.new), (Verdict::Slower, 1_300.0), "{found:?}");
    let told = judgement.notes.iter().any(|note| note.contains("1 of 8 runs of NEW") && note.contains("below 99 %"));
    assert!(told, "{:?}", judgement.notes);
}

#[test]
fn limits_are_read_or_refused_with_the_form() {
    for (written, judged) in [
        ("t0_t2.p50 > +10%", "limit exceeded"),
        ("t0_t2.p50>10%", "limit exceeded"),
        ("t0_t2.p50_ns > +10 %", "limit exceeded"),
        ("t0_t2.p50 > +31%", "limit kept"),
        ("t0_t2.p50 < -5%", "limit kept"),
        ("t0_t2.p99.9 > +10%", "measured are"),
        ("throughput_per_s < -5%", "limit exceeded"),
        ("throughput_per_s > +5%", "limit kept"),
        ("orders_rejected > +5%", "limit kept"),
        ("one_way.p50 > +5%", "nothing measured one_way.p50"),
        ("bytes_per_order > 5%", "throughput_per_s"),
        ("", "write 'METRIC > +10%'"),
        ("t0_t2.p50", "write 'METRIC > +10%'"),
        ("t0_t2.p50 = 1%", "write 'METRIC > +10%'"),
        ("t0_t2.p50 > 10", "write 'METRIC > +10%'"),
        ("t0_t2.p50 > ten%", "write 'METRIC > +10%'"),
        ("t0_t2.p50 > nan%", "write 'METRIC > +10%'"),
        ("t0_t2.p50 < -100%", "write 'METRIC > +10%'"),
        ("1% < t0_t2.p50 < 2%", "write 'METRIC > +10%'"),
        ("t0_t2.p51 > 1%", "no bench measures"),
        ("nothing.p50 > 1%", "no bench measures"),
        ("speed > 1%", "no bench measures"),
    ] {
        let judgement = judge(&steady(Design::InTurn, &[1.3; 7])).expect("both sides measured the same");
        let told = match written.parse::<MetricLimit>() {
            Err(error) => error.to_string(),
            Ok(limit) => match limit.judge(&judgement) {
                Err(error) => error.to_string(),
                Ok(rulings) => rulings.iter().map(|ruling| ruling.sentence.as_str()).collect::<Vec<_>>().join(" "),
            },
        };
        assert!(told.contains(judged), "'{written}': {told}");
    }
}

#[test]
fn tables_show_changes_first_and_escape_text() {
    for (mut measured, words) in [
        (steady(Design::InTurn, &[1.3; 7]), vec!["1.3 µs", "1.300×", "slower", "note"]),
        (steady(Design::Apart, &[1.3]), vec!["one run each, so the noise is unknown", "unknown"]),
    ] {
        // A figure that jumps further than the median moves, and in both directions.
        for (pair, cost_ns) in pairs_of(&mut measured).iter_mut().zip([400.0, 30.0].into_iter().cycle()) {
            pair.old.runs[0].figures.insert("writer_cost_ns".to_owned(), 100.0);
            pair.new.runs[0].figures.insert("writer_cost_ns".to_owned(), cost_ns);
            for file in [&mut pair.old, &mut pair.new] {
                file.workload = HOSTILE.to_owned();
                file.runs.iter_mut().for_each(|run| run.target = HOSTILE.to_owned());
                let strange = Run { valid: false, notes: vec![HOSTILE.to_owned()], ..file.runs[0].clone() };
                file.runs.push(strange);
            }
        }
        let judgement = judge(&measured).expect("both sides measured the same");
        for rendered in [text(&judgement, &[]), markdown(&judgement, &[])] {
            let shown = |word: &&str| rendered.contains(*word);
            assert!(words.iter().all(shown), "{words:?} in:\n{rendered}");
            assert!(!rendered.contains(['\u{1b}', '\r', '\u{202e}']), "{rendered:?}");
        }
        let page = markdown(&judgement, &[]);
        assert!(!page.contains("<script"), "{page}");
        let changed = page.find("| slower").unwrap_or(0);
        let open = page.find("| unknown").unwrap_or(usize::MAX);
        assert!(changed < open, "{page}");
    }
}

#[test]
fn the_result_file_keeps_the_contract_and_holds_both_sides() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    for design in [Design::InTurn, Design::Apart] {
        let measured = steady(design, &[1.3, 1.29, 1.31, 1.3, 1.28, 1.32, 1.3]);
        let judgement = judge(&measured).expect("both sides measured the same");
        let result = result_file(&measured, &judgement.changes, "tickpath compare a b", "2026-01-02T03:04:05Z");
        assert_eq!(result.check(), Ok(()));
        let value = serde_json::to_value(&result).expect("it becomes JSON");
        let faults: Vec<String> = validator.iter_errors(&value).map(|fault| fault.to_string()).collect();
        assert_eq!(faults, Vec::<String>::new());
        let of = |side: &str| result.runs.iter().filter(|run| run.params.text("side").as_deref() == Some(side)).count();
        assert_eq!([of("old"), of("new")], [7, 7], "{design:?}");
        assert_eq!(result.comparisons.len(), judgement.changes.len());
        for one in &result.comparisons {
            assert!(one.name.starts_with("new_to_old "), "{one:?}");
            let Some(ratio) = one.ratio else { continue };
            assert_eq!(one.a.zip(one.b).map(|(a, b)| a / b), Some(ratio), "{one:?}");
            assert!(one.low <= Some(ratio) && one.high >= Some(ratio), "{one:?}");
            // Seven pairs miss in 1 of 64 cases, and two lines in twice as many.
            let level = one.level_percent.expect("an interval has one");
            assert!(design == Design::Apart || (level - 96.875).abs() < 1e-6, "{one:?}");
        }
    }
}

#[test]
fn false_positives_are_counted_with_their_interval() {
    let limits: Vec<MetricLimit> = vec!["t0_t2.p50 > +10%".parse().expect("it is one")];
    let mut found = FalsePositives::new("tickpath compare a a", "2026-01-02T03:04:05Z", 7, &limits);
    for number in 0..40 {
        let ratio = if number < 3 { 1.3 } else { 1.0 };
        found.add(&judge(&steady(Design::InTurn, &[ratio; 7])).expect("both sides measured the same"), &limits);
    }
    found.skip();
    assert_eq!((found.comparisons, found.unjudged, found.tallies.len()), (40, 1, 2));
    for tally in &found.tallies {
        assert_eq!((tally.called_different, tally.rate_percent), (3, 7.5), "{tally:?}");
        // Wilson's interval of 3 of 40.
        assert!((tally.low_percent - 2.58).abs() < 0.05 && (tally.high_percent - 19.87).abs() < 0.05, "{tally:?}");
        assert!(tally.alarms[0].starts_with("comparison 1: "), "{tally:?}");
    }
    assert!(found.text().contains("7.5 %") && found.text().contains("at most 5 %"), "{}", found.text());
}

#[test]
fn results_of_two_benches_are_refused_by_name() {
    let mut pair = ResultPair { old: file(vec![steady_run(1, 1.0)]), new: file(vec![steady_run(1, 1.0)]) };
    pair.new.workload = "queue".to_owned();
    let error = judge(&ComparedResults::InTurn(vec![pair])).expect_err("they have nothing to do with each other");
    assert_eq!(error, CompareError::Workloads { old: "path".to_owned(), new: "queue".to_owned() });
}

/// Counts the simulated comparisons in which `holds` is true. The new build is `factor` times as slow in the median of
/// a hop.
fn worlds(design: Design, repeats: u32, factor: f64, holds: impl Fn(&Judgement) -> bool) -> u64 {
    let judged = |seed| judge(&world(design, repeats, factor, seed)).expect("both sides measured the same");
    (1..=WORLDS).map(|seed| u64::from(holds(&judged(seed)))).sum()
}

/// Simulates repeats of two builds. Calls in turn drift together; files do not drift.
fn world(design: Design, repeats: u32, factor: f64, seed: u64) -> ComparedResults {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut drift = 1.0;
    let mut pairs = Vec::new();
    for repeat in 1..=repeats {
        if design == Design::InTurn {
            drift *= (0.03 * dice.normal()).exp();
        }
        pairs.push((simulated_run(&mut dice, repeat, drift, 1.0), simulated_run(&mut dice, repeat, drift, factor)));
    }
    put_together(design, pairs)
}

/// Simulates a log-normal repeat whose percentiles share a part of their noise, with occasional stalls.
fn simulated_run(dice: &mut Dice, repeat: u32, drift: f64, factor: f64) -> Run {
    let mut run = Run { target: "shm://".to_owned(), client: "rust".to_owned(), repeat, valid: true, ..Run::default() };
    let level = drift * (0.02 * dice.normal()).exp();
    let stall = if dice.uniform() < STALLED { STALL } else { 1.0 };
    for (name, median) in HOPS {
        let mut times = SHAPE.map(|(times, spread)| median * times * level * (spread * dice.normal()).exp());
        times[0] *= if name == "t0_t2" { factor } else { 1.0 };
        times[3] *= stall;
        times[4] *= stall;
        let [p50_ns, p75_ns, p90_ns, p99_ns, p999_ns] = times.map(|ns| Some(ns.round() as u64));
        let hop = Hop { count: 20_000, p50_ns, p75_ns, p90_ns, p99_ns, p999_ns, ..Hop::default() };
        run.hops.insert(name.to_owned(), hop);
    }
    run.throughput_per_s = Some(20_000.0 * (1.0 + 0.0005 * dice.normal()));
    run.figures.insert("replay_inputs_per_s".to_owned(), 3e6 * (0.05 * dice.normal()).exp());
    run
}

/// Builds repeats without noise, except for the given ratios of the new build to the old one.
fn steady(design: Design, ratios: &[f64]) -> ComparedResults {
    let pairs = (1..).zip(ratios).map(|(repeat, ratio)| (steady_run(repeat, 1.0), steady_run(repeat, *ratio)));
    put_together(design, pairs.collect())
}

fn steady_run(repeat: u32, slower: f64) -> Run {
    let mut run = Run { target: "shm://".to_owned(), client: "rust".to_owned(), repeat, valid: true, ..Run::default() };
    let p50_ns = Some((1_000.0 * slower).round() as u64);
    run.hops.insert("t0_t2".to_owned(), Hop { count: 100, p50_ns, ..Hop::default() });
    run.throughput_per_s = Some(10_000.0 / slower);
    run.figures.insert("orders_rejected".to_owned(), 0.0);
    run
}

/// Combines runs of the old and of the new build in pairs.
fn put_together(design: Design, pairs: Vec<(Run, Run)>) -> ComparedResults {
    match design {
        Design::Apart => {
            let (old, new) = pairs.into_iter().unzip();
            ComparedResults::Apart(Box::new(ResultPair { old: file(old), new: file(new) }))
        }
        Design::InTurn => ComparedResults::InTurn(
            pairs.into_iter().map(|(old, new)| ResultPair { old: file(vec![old]), new: file(vec![new]) }).collect(),
        ),
    }
}

fn file(runs: Vec<Run>) -> ResultFile {
    ResultFile { runs, ..ResultFile::new("path", "tickpath bench path", "2026-01-02T03:04:05Z") }
}

fn pairs_of(measured: &mut ComparedResults) -> &mut [ResultPair] {
    match measured {
        ComparedResults::Apart(pair) => std::slice::from_mut(pair.as_mut()),
        ComparedResults::InTurn(pairs) => pairs,
    }
}

fn change<'a>(judgement: &'a Judgement, name: &str) -> &'a MetricChange {
    let found = judgement.changes.iter().find(|change| change.name() == name);
    found.unwrap_or_else(|| panic!("{name} is not among {:?}", judgement.changes))
}

/// A xorshift generator: the same seed gives the same world.
struct Dice(u64);

impl Dice {
    /// Returns a uniform value above 0 and up to 1.
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns a value of the standard normal distribution, after Box and Muller.
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
