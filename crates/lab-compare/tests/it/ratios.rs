//! Ratios: the coverage of intervals, and the cases without a ratio.

use tickpath_lab_compare::{CONFIDENCE, RatioLine, in_turn, pairs_needed, ratio_table};

use super::*;

/// The number of simulated tables of a kind; their seeds are 1 to this number.
const TABLES: u64 = 2_000;

/// A's true time, as a multiple of B's.
const TRUE: f64 = 1.3;

/// Simulates pairs whose middle ratio is `TRUE`: a drift of both halves, noise of each, and occasional stalls.
fn pairs(dice: &mut Dice, count: u32) -> Vec<[Option<f64>; 2]> {
    let one = |dice: &mut Dice, level: f64| {
        let stall = if dice.uniform() < 0.1 { 4.0 } else { 1.0 };
        1_000.0 * level * stall * (0.1 * dice.normal()).exp()
    };
    let mut level = 1.0;
    let pair = |_| {
        level *= (0.2 * dice.normal()).exp();
        [Some(TRUE * one(dice, level)), Some(one(dice, level))]
    };
    (0..count).map(pair).collect()
}

#[test]
fn all_intervals_of_a_table_hold_at_their_level() {
    for (lines, count) in [(1, 2), (1, 5), (1, 6), (1, 9), (1, 20), (3, 7), (14, 5), (14, 8), (14, 10), (14, 15)] {
        let mut level: f64 = 100.0;
        let held = (1..=TABLES).filter(|seed| {
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let of_line = |line| RatioLine::new(&format!("a_to_b {line}"), "one_way.p50_ns", pairs(&mut dice, count));
            let found = ratio_table((0..lines).map(of_line).collect::<Vec<_>>());
            assert_eq!(found.len(), lines);
            level = found.iter().filter_map(|one| one.level_percent).fold(level, f64::min);
            found.iter().all(|one| one.low <= Some(TRUE) && Some(TRUE) <= one.high)
        });
        let held = 100.0 * held.count() as f64 / TABLES as f64;
        // The margin for chance in two thousand tables.
        assert!(held >= level - 1.5, "{lines} lines of {count} pairs: {held} %, stated {level} %");
        let is_full = count >= pairs_needed(lines);
        assert_eq!(level >= 100.0 * CONFIDENCE, is_full, "{lines} lines of {count} pairs: stated {level} %");
    }
}

#[test]
fn the_level_of_few_pairs_is_that_of_the_sign_test() {
    for (lines, count, level) in [
        (1, 5, Some(93.75)),
        (1, 6, Some(96.875)),
        (2, 5, Some(87.5)),
        (14, 5, Some(12.5)),
        (20, 5, Some(0.0)),
        (1, 1, None),
    ] {
        let line = |line| RatioLine::new(&format!("a_to_b {line}"), "x_ns", pairs(&mut Dice(7), count));
        let found = ratio_table((0..lines).map(line).collect::<Vec<_>>());
        assert_eq!((found[0].level_percent, found[0].pairs), (level, Some(count)), "{lines} lines of {count} pairs");
        assert_eq!(found[0].low.is_some(), count > 1);
    }
}

#[test]
fn turning_the_sides_round_turns_the_ratio_round() {
    for count in 1..=12 {
        let there = pairs(&mut Dice(u64::from(count)), count);
        let back = there.iter().map(|[a, b]| [*b, *a]).collect();
        let [there, back] = [there, back].map(|pairs| ratio_table([RatioLine::new("", "", pairs)]).remove(0));
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a * b - 1.0).abs() < 1e-9,
            (a, b) => a == b,
        };
        assert!(near(there.ratio, back.ratio) && near(there.low, back.high) && near(there.high, back.low), "{there:?}");
        assert_eq!(there.ratio, there.a.zip(there.b).map(|(a, b)| a / b));
    }
}

#[test]
fn two_sides_alternate_in_coming_first() {
    for sides in 2..=5 {
        for (one, other) in (0..sides).flat_map(|one| (one + 1..sides).map(move |other| (one, other))) {
            let is_first = |round| {
                let order = in_turn(round, 0..sides);
                let place = |side| order.iter().position(|found| *found == side).expect("each has its turn");
                place(one) < place(other)
            };
            let first = (1..=10).filter(|round| is_first(*round)).count();
            assert_eq!(first, 5, "{one} before {other} of {sides}");
        }
    }
}

#[test]
fn runs_are_paired_and_incomparable_ones_reported() {
    let run = |repeat, p50_ns, rate: Option<f64>| {
        let mut run = Run { repeat, valid: true, throughput_per_s: Some(900.0), ..Run::default() };
        run.hops.insert("one_way".to_owned(), Hop { count: 100, p50_ns: Some(p50_ns), ..Hop::default() });
        match rate {
            Some(rate) => run.params.set("rate_per_s", rate),
            None => run.params.set("rate_per_s", "max"),
        }
        run
    };
    let compared = |a: &[Run], b: &[Run], figure: &str| ratio_table([RatioLine::of_runs("a_to_b", figure, a, b)]);
    let fast: Vec<Run> = (1..=6).map(|repeat| run(repeat, 100, Some(1e4))).collect();
    let mut slow: Vec<Run> = (1..=6).map(|repeat| run(repeat, 300, Some(1e4))).collect();
    let found = compared(&slow, &fast, "one_way.p50_ns");
    assert_eq!((found[0].ratio, found[0].pairs, &found[0].note), (Some(3.0), Some(6), &None));
    // An invalid half invalidates its pair, on both sides alike.
    slow[1].valid = false;
    for (a, b) in [(&slow, &fast), (&fast, &slow)] {
        let found = compared(a, b, "one_way.p50_ns");
        assert_eq!(found[0].pairs, Some(5));
        assert!(found[0].note.as_ref().is_some_and(|note| note.contains("1 of 6 pairs")), "{found:?}");
    }
    // Without valid or measured pairs there is no line.
    slow.iter_mut().for_each(|run| run.valid = false);
    assert_eq!(compared(&slow, &fast, "one_way.p50_ns"), []);
    assert_eq!(compared(&fast, &fast, "service.p50_ns"), []);
    // A time at 900 messages a second has no ratio to a time at ten thousand, nor has a time at full speed.
    for (rate, ratio) in [(Some(900.0), None), (None, None), (Some(9_999.0), Some(3.0))] {
        let slow: Vec<Run> = (1..=6).map(|repeat| run(repeat, 300, rate)).collect();
        let found = compared(&slow, &fast, "one_way.p50_ns");
        assert_eq!((found[0].ratio, found[0].a), (ratio, Some(300.0)));
        let is_told = found[0].note.as_ref().is_some_and(|note| note.contains("rates are not equal"));
        assert_eq!(is_told, ratio.is_none(), "{found:?}");
        assert_eq!(compared(&slow, &fast, "throughput_per_s")[0].ratio, Some(1.0));
    }
}
