//! Lies in planted results, and the comparison's answer to each.

use tickpath_lab_compare::BuildSide;

use super::*;

type Alter = fn(&mut Run);

/// The number of messages that the run with this index lost.
type Lost = fn(usize) -> u64;

/// Builds calls in turn whose new build is faster and has these counts.
fn faster_with(alter: Alter) -> ComparedResults {
    let mut measured = steady(Design::InTurn, &[0.7; 8]);
    for pair in pairs_of(&mut measured) {
        pair.old.runs[0].counts = MessageCounts { sent: 5_000, received: 5_000, ..MessageCounts::default() };
        pair.new.runs[0].counts = MessageCounts { sent: 5_000, received: 5_000, ..MessageCounts::default() };
        alter(&mut pair.new.runs[0]);
    }
    measured
}

#[test]
fn a_build_that_loses_messages_fails_at_any_speed() {
    let cases: [(&str, Alter, bool); 6] = [
        ("nothing", |_| {}, false),
        ("lost", |run| (run.counts.lost, run.counts.received) = (50, 4_950), true),
        // A build that drops its slow messages without counting them.
        ("dropped", |run| run.counts.received = 4_950, true),
        // A build that sends less in the same time loses nothing.
        ("sent less", |run| (run.counts.sent, run.counts.received) = (4_000, 4_000), false),
        (
            // Slow orders never reach their venue: the hop of the rest looks faster.
            "split",
            |run| {
                run.hops.insert("t0_t2".to_owned(), Hop { count: 60, p50_ns: Some(700), ..Hop::default() });
            },
            false,
        ),
        ("doubled", |run| run.counts.duplicated = 3, false),
    ];
    for (name, alter, fails) in cases {
        let judgement = judge(&faster_with(alter)).expect("both sides measured the same");
        let printed = text(&judgement, &[]);
        assert_eq!(!judgement.losses.is_empty(), fails, "{name}: {printed}");
        assert_eq!(printed.contains("NEW loses"), fails, "{name}: {printed}");
        assert_eq!(markdown(&judgement, &[]).contains("NEW loses"), fails, "{name}: {printed}");
        assert_eq!(printed.contains("duplicated"), name == "doubled", "{name}: {printed}");
    }
}

#[test]
fn a_hop_that_has_a_sample_for_each_message_lacks_none() {
    let with = |of_old: u64, of_new: u64| {
        let mut measured = faster_with(|_| {});
        let put = |run: &mut tickpath_lab_result::Run, count| {
            run.hops.insert("one_way".to_owned(), Hop { count, p50_ns: Some(700), ..Hop::default() });
        };
        for pair in pairs_of(&mut measured) {
            pair.old.runs.iter_mut().for_each(|run| put(run, of_old));
            pair.new.runs.iter_mut().for_each(|run| put(run, of_new));
        }
        judge(&measured).expect("both sides measured the same")
    };
    assert!(!with(100, 60).losses.is_empty());
    assert!(with(100, 100).losses.is_empty());
    assert!(with(60, 100).losses.is_empty());
}

#[test]
fn allowed_losses_fail_only_against_a_base_that_lost_less() {
    let cases: [(&str, usize, Lost, Lost, bool); 5] = [
        ("none, then some", 8, |_| 0, |place| 10 + place as u64, true),
        ("some, then none", 8, |place| 10 + place as u64, |_| 0, false),
        ("more each time", 8, |_| 40, |_| 80, true),
        ("more each time, too few", 3, |_| 40, |_| 80, false),
        ("more by chance", 8, |place| [10, 200, 60][place % 3], |place| [20, 210, 70][place % 3], false),
    ];
    for (name, pairs, old, new, fails) in cases {
        let mut measured = steady(Design::InTurn, &vec![0.7; pairs]);
        for (place, pair) in pairs_of(&mut measured).iter_mut().enumerate() {
            for (file, lost) in [(&mut pair.old, old(place)), (&mut pair.new, new(place))] {
                let run = &mut file.runs[0];
                run.params.set("policy", "overwrite");
                run.counts = MessageCounts { sent: 5_000, received: 5_000 - lost, lost, ..MessageCounts::default() };
            }
        }
        let judgement = judge(&measured).expect("both sides measured the same");
        assert_eq!(!judgement.losses.is_empty(), fails, "{name}: {:?}", judgement.losses);
    }
}

#[test]
fn a_build_whose_lossy_runs_are_not_valid_is_not_merely_unmeasured() {
    let mut measured = faster_with(|run| {
        (run.counts.lost, run.counts.received, run.valid) = (50, 4_950, false);
    });
    let error = judge(&measured).expect_err("no run of the new build is valid");
    let CompareError::NothingValid { losses, .. } = &error else { panic!("{error}") };
    assert!(losses.iter().any(|loss| loss.contains("400 of 40")), "{error}");
    // One run is valid: the others' loss is still reported.
    pairs_of(&mut measured)[0].new.runs[0] = steady_run(1, 0.7);
    let judgement = judge(&measured).expect("one pair is whole");
    assert!(text(&judgement, &[]).contains("NEW loses"), "{judgement:?}");
}

#[test]
fn too_many_excluded_pairs_give_no_verdict() {
    for (pairs, invalid, verdict) in
        [(8, 1, Verdict::Slower), (8, 2, Verdict::Slower), (9, 3, Verdict::Unknown), (12, 6, Verdict::Unknown)]
    {
        let mut measured = steady(Design::InTurn, &vec![1.3; pairs]);
        pairs_of(&mut measured)[..invalid].iter_mut().for_each(|pair| pair.new.runs[0].valid = false);
        let judgement = judge(&measured).expect("the others are valid");
        let found = change(&judgement, "t0_t2.p50");
        assert_eq!(found.verdict, verdict, "{invalid} of {pairs}: {found:?}");
        let printed = text(&judgement, &[]);
        assert!(printed.contains(&format!("{invalid} of {pairs} pairs are left out")), "{printed}");
        assert_eq!(printed.contains("too many for a verdict"), verdict == Verdict::Unknown, "{printed}");
    }
}

#[test]
fn each_claim_names_its_conditions() {
    for (design, claimed) in [(Design::InTurn, true), (Design::Apart, false)] {
        let judgement = judge(&steady(design, &[1.3; 7])).expect("both sides measured the same");
        for printed in [text(&judgement, &[]), markdown(&judgement, &[])] {
            assert_eq!(printed.contains("at most 5 % of such tables"), claimed, "{printed}");
            assert_eq!(printed.contains("rate of false alarms is unknown"), !claimed, "{printed}");
        }
        let limit: MetricLimit = "t0_t2.p50 > +50%".parse().expect("it is one");
        let rulings = limit.judge(&judgement).expect("it was measured");
        let [Ruling { status: LimitStatus::Kept, sentence }] = &rulings[..] else { panic!("{rulings:?}") };
        assert_eq!(sentence.contains("at most by calls in turn"), claimed, "{sentence}");
        assert_eq!(sentence.contains("at most by files measured apart"), !claimed, "{sentence}");
    }
}

#[test]
fn a_limit_that_cannot_be_judged_is_not_kept() {
    let limit: MetricLimit = "t0_t2.p50 > +10%".parse().expect("it is one");
    for (ratios, wanted) in [
        // A single run each, or few: never enough, whatever their values.
        (vec![1.3], "cannot be judged"),
        (vec![1.0], "cannot be judged"),
        (vec![1.3, 1.31, 1.32], "cannot be judged"),
        (vec![1.0, 1.0, 1.0], "cannot be judged"),
        // Enough runs: beyond the limit, within it, and neither.
        (vec![1.3; 7], "exceeded"),
        (vec![1.05; 7], "kept"),
        (vec![1.3, 0.9, 1.25, 1.2, 0.95, 1.3, 1.2], "cannot be judged"),
    ] {
        let judgement = judge(&steady(Design::InTurn, &ratios)).expect("both sides measured the same");
        let rulings = limit.judge(&judgement).expect("it was measured");
        let sentences: Vec<&str> = rulings.iter().map(|ruling| ruling.sentence.as_str()).collect();
        assert!(sentences.len() == 1 && sentences[0].contains(wanted), "{ratios:?}: {sentences:?}");
        assert!(!sentences[0].contains("passed"), "{sentences:?}");
    }
    // A setting with too many pairs left out blocks the limit for all.
    let mut measured = steady(Design::InTurn, &[1.0; 9]);
    pairs_of(&mut measured)[..4].iter_mut().for_each(|pair| pair.new.runs[0].valid = false);
    let judgement = judge(&measured).expect("the others are valid");
    let rulings = limit.judge(&judgement).expect("it was measured");
    assert!(rulings.iter().any(|ruling| ruling.sentence.contains("cannot be judged")), "{rulings:?}");
}

#[test]
fn a_percentile_with_too_few_samples_keeps_no_limit() {
    let limit: MetricLimit = "t0_t2.p50 > +10%".parse().expect("it is one");
    let mut measured = steady(Design::InTurn, &[1.0; 8]);
    for pair in pairs_of(&mut measured) {
        for (file, p50) in [(&mut pair.old, Some(700)), (&mut pair.new, None)] {
            let mut run = Run { layout: Some("split".to_owned()), ..file.runs[0].clone() };
            run.hops.values_mut().for_each(|hop| hop.p50_ns = p50);
            file.runs.push(run);
        }
    }
    let judgement = judge(&measured).expect("both sides measured the same");
    let rulings = limit.judge(&judgement).expect("it was measured");
    let sentences: Vec<&str> = rulings.iter().map(|ruling| ruling.sentence.as_str()).collect();
    assert!(
        sentences.len() == 1 && sentences[0].contains("cannot be judged") && sentences[0].contains("only OLD has it"),
        "{sentences:?}"
    );
    assert_eq!(overall_outcome(&judgement, &rulings), ComparisonOutcome::Undecided);
}

/// Checks that a hop that is no longer measured is reported, and is no improvement.
#[test]
fn a_hop_that_the_new_build_lacks_is_a_finding() {
    for (lacking, ends) in [(BuildSide::Old, ComparisonOutcome::Good), (BuildSide::New, ComparisonOutcome::Undecided)] {
        let mut measured = steady(Design::InTurn, &[1.0; 8]);
        for pair in pairs_of(&mut measured) {
            for side in [BuildSide::Old, BuildSide::New].into_iter().filter(|side| *side != lacking) {
                let file = if side == BuildSide::Old { &mut pair.old } else { &mut pair.new };
                let hop = file.runs[0].hops["t0_t2"].clone();
                file.runs[0].hops.insert("t0_t1".to_owned(), hop);
            }
        }
        let judgement = judge(&measured).expect("both sides measured the same");
        assert_eq!(overall_outcome(&judgement, &[]), ends, "{lacking:?}");
        let is_told = text(&judgement, &[]).contains("NEW does not measure t0_t1");
        assert_eq!(is_told, ends == ComparisonOutcome::Undecided, "{lacking:?}");
    }
}

/// Checks that a limit inside the interval is not kept, however far the median is from it.
#[test]
fn a_limit_is_kept_by_the_whole_interval() {
    let limit: MetricLimit = "t0_t2.p50 > +10%".parse().expect("it is one");
    let noisy = steady(Design::InTurn, &[0.7, 0.9, 1.0, 1.02, 1.0, 1.3, 1.6, 0.8]);
    let judgement = judge(&noisy).expect("both sides measured the same");
    let rulings = limit.judge(&judgement).expect("it was measured");
    assert!(rulings[0].sentence.contains("lies on both sides of the limit"), "{rulings:?}");
    assert_eq!(overall_outcome(&judgement, &rulings), ComparisonOutcome::Undecided);
}

#[test]
fn a_comparison_ends_with_its_worst_verdict() {
    let slower = || steady(Design::InTurn, &[1.3; 8]);
    let lossy = || faster_with(|run| run.counts.lost = 1);
    let unjudged = || {
        let mut measured = steady(Design::InTurn, &[1.0; 8]);
        for pair in pairs_of(&mut measured) {
            for file in [&mut pair.old, &mut pair.new] {
                file.runs.push(Run { layout: Some("split".to_owned()), valid: false, ..file.runs[0].clone() });
            }
        }
        measured
    };
    let cases: [(ComparedResults, Option<&str>, ComparisonOutcome); 9] = [
        (slower(), None, ComparisonOutcome::Good),
        (slower(), Some("t0_t2.p50 > +50%"), ComparisonOutcome::Good),
        (slower(), Some("t0_t2.p50 > +10%"), ComparisonOutcome::Exceeded),
        (steady(Design::InTurn, &[1.0; 3]), Some("t0_t2.p50 > +10%"), ComparisonOutcome::Undecided),
        (steady(Design::Apart, &[1.3; 3]), Some("t0_t2.p50 > +10%"), ComparisonOutcome::Undecided),
        (unjudged(), None, ComparisonOutcome::Good),
        (unjudged(), Some("t0_t2.p50 > +10%"), ComparisonOutcome::Undecided),
        (lossy(), None, ComparisonOutcome::Lost),
        (lossy(), Some("t0_t2.p50 > +10%"), ComparisonOutcome::Lost),
    ];
    for (measured, limit, wanted) in cases {
        let judgement = judge(&measured).expect("both sides measured the same");
        let judged =
            |limit: &str| limit.parse::<MetricLimit>().expect("it is one").judge(&judgement).expect("it was measured");
        assert_eq!(
            overall_outcome(&judgement, &limit.map(judged).unwrap_or_default()),
            wanted,
            "{limit:?}: {judgement:?}"
        );
    }
}
