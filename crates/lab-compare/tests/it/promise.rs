//! Promises: parsed or refused, and checked against a run.

use tickpath_lab_compare::Promise;
use tickpath_lab_result::{Hop, Run};

fn run(p99_ns: Option<u64>) -> Run {
    let mut run = Run { throughput_per_s: Some(500.0), ..Run::default() };
    run.hops.insert("one_way".to_owned(), Hop { p99_ns, ..Hop::default() });
    run
}

#[test]
fn a_promise_is_kept_below_or_above_its_bound() {
    for (written, p99_ns, kept) in [
        ("one_way.p99 < 50us", Some(49_999), Some(true)),
        ("one_way.p99<50 µs", Some(50_000), Some(false)),
        ("one_way.p99 < 2ms", Some(50_000), Some(true)),
        ("one_way.p99 < 1 s", None, None),
        ("round_trip.p99 < 1s", Some(1), None),
        ("throughput_per_s > 400", None, Some(true)),
        ("throughput_per_s > 600", None, Some(false)),
    ] {
        let promise: Promise = written.parse().expect("it is one");
        assert_eq!(promise.is_kept(&run(p99_ns)), kept, "{written} with {p99_ns:?}");
        assert_eq!(promise.to_string(), written);
    }
}

#[test]
fn bad_promises_are_refused_with_the_expected_form() {
    for (written, word) in [
        ("", "write 'one_way.p99 < 50us'"),
        ("one_way.p99", "write 'one_way.p99 < 50us'"),
        ("one_way.p99 < 50", "write 'one_way.p99 < 50us'"),
        ("one_way.p99 < -1us", "write 'one_way.p99 < 50us'"),
        ("one_way.p99 < 0us", "write 'one_way.p99 < 50us'"),
        ("one_way.p98 < 5us", "no bench measures 'one_way.p98'"),
        ("throughput_per_s > 5us", "write 'one_way.p99 < 50us'"),
    ] {
        let message = written.parse::<Promise>().expect_err("it is none").to_string();
        assert!(message.contains(word), "{written}: {message}");
    }
}

#[test]
fn a_percentile_states_the_samples_it_needs() {
    for (written, samples) in [("one_way.p50 < 1s", 20), ("one_way.p99.9 < 1s", 10_000), ("throughput_per_s > 1", 1)] {
        assert_eq!(written.parse::<Promise>().expect("it is one").samples(), samples, "{written}");
    }
}
