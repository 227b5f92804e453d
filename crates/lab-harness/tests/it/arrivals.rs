//! Due times of messages.

use tickpath_lab_harness::arrivals::ArrivalProcess;

fn times(arrivals: ArrivalProcess, rate: f64, count: usize) -> Vec<u64> {
    arrivals.times_ns(rate).take(count).collect()
}

#[test]
fn steady_messages_are_due_at_equal_distances() {
    assert_eq!(times(ArrivalProcess::Steady, 1_000.0, 4), [0, 1_000_000, 2_000_000, 3_000_000]);
    let far = ArrivalProcess::Steady.times_ns(3.0).nth(3_000_000);
    assert_eq!(far, Some(1_000_000_000_000_000), "nothing drifts");
}

#[test]
fn independent_senders_have_exponential_distances_of_the_same_rate() {
    const COUNT: usize = 100_000;
    for seed in 1..=5 {
        let due = times(ArrivalProcess::Poisson { seed }, 10_000.0, COUNT + 1);
        assert_eq!(due, times(ArrivalProcess::Poisson { seed }, 10_000.0, COUNT + 1), "one seed, one schedule");
        assert_eq!(due[0], 0);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 100_000.0).collect();
        let mean = gaps.iter().sum::<f64>() / COUNT as f64;
        assert!((mean - 1.0).abs() < 0.02, "seed {seed}: {mean} of the mean distance");
        // A share of e⁻¹ is longer than the mean, and e⁻³ longer than three times the mean.
        for (times, share) in [(1.0, 0.3679), (3.0, 0.0498)] {
            let longer = gaps.iter().filter(|gap| **gap > times).count() as f64 / COUNT as f64;
            assert!((longer - share).abs() < 0.01, "seed {seed}: {longer} are longer than {times}");
        }
    }
    assert_ne!(times(ArrivalProcess::Poisson { seed: 1 }, 1.0, 9), times(ArrivalProcess::Poisson { seed: 2 }, 1.0, 9));
}
