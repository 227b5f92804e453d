//! Hops of a user's own code: compared like any other hop, and bound by limits.

use tickpath_lab_compare::{ComparedResults, LimitStatus, MetricLimit, ResultPair, Verdict, judge, text, value};
use tickpath_lab_result::{Hop, ResultFile, Run};

/// Builds a file of five merged results, each from a process, like `tickpath report`.
fn file(decode_ns: u64) -> ResultFile {
    let run = |more: u64| {
        let mut run = Run { target: "own://".to_owned(), client: "python".to_owned(), repeat: 1, ..Run::default() };
        run.valid = true;
        let (p50_ns, p99_ns) = (Some(decode_ns + more), Some(3 * decode_ns + more));
        run.hops.insert("own.decode".to_owned(), Hop { count: 20_000, p50_ns, p99_ns, ..Hop::default() });
        run
    };
    ResultFile { runs: (0..5).map(run).collect(), ..ResultFile::new("own", "python strategy.py", "") }
}

#[test]
fn a_limit_applies_to_a_users_own_hop() {
    let slower = ComparedResults::Apart(Box::new(ResultPair { old: file(1_000), new: file(1_500) }));
    let judgement = judge(&slower).expect("both measured the same");
    assert!(text(&judgement, &[]).contains("own.decode.p99"), "{}", text(&judgement, &[]));
    assert!(judgement.changes.iter().all(|change| change.verdict == Verdict::Slower), "{:?}", judgement.changes);
    for (written, ruled) in [
        ("own.decode.p99 > +10%", Ok(LimitStatus::Exceeded)),
        ("own.decode.p50_ns > +10%", Ok(LimitStatus::Exceeded)),
        ("own.decode.p50 > +80%", Ok(LimitStatus::Kept)),
        ("own.decode.p99.9 > +10%", Err("measured are own.decode.p50, own.decode.p99")),
        ("own.encode.p50 > +10%", Err("nothing measured own.encode.p50")),
        ("own.decode > +10%", Err("own.decode.p99")),
        ("own.Decode.p50 > +10%", Err("no bench measures 'own.Decode.p50'")),
        ("own..p50 > +10%", Err("no bench measures")),
        ("own.p50 > +10%", Err("no bench measures")),
    ] {
        let found = written.parse::<MetricLimit>().map_err(|error| error.to_string());
        let found = found.and_then(|limit| limit.judge(&judgement).map_err(|error| error.to_string()));
        match (found, ruled) {
            (Ok(rulings), Ok(ruled)) => {
                assert!(rulings.iter().all(|one| one.status == ruled), "{written}: {rulings:?}")
            }
            (Err(told), Err(part)) => assert!(told.contains(part), "{written}: {told}"),
            (found, ruled) => panic!("{written}: {found:?} where {ruled:?} is right"),
        }
    }
}

#[test]
fn a_figure_is_found_by_its_name() {
    let run = &file(1_000).runs[0];
    assert_eq!(value(run, "own.decode.p99_ns"), Some(3_000.0));
    assert_eq!(value(run, "own.decode.p999_ns"), None);
    assert_eq!(value(run, "own.encode.p99_ns"), None);
}
