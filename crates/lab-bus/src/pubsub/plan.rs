//! The rate that a target can sustain, found before the measurement.

use super::settings::Settings;
use super::steady::run;
use tickpath_lab_harness::digits::round_down;
use tickpath_lab_harness::targets::is_log;
use tickpath_lab_harness::{Lab, LabError};

/// Messages of the probe that finds a target's speed.
const PROBE: u64 = 500;

/// The share of its full speed at which a target is measured if it cannot sustain the requested rate: above it messages
/// wait for each other, and the figure would be the queue's.
const SUSTAINED_SHARE: f64 = 0.5;

/// Max bytes that a broker has to hold in one run.
const MAX_BROKER_BYTES: u64 = 256 << 20;

/// The rate and the number of messages for one run.
#[derive(Debug, Clone, PartialEq)]
pub struct PubsubPlan {
    /// Messages a second.
    pub rate: f64,
    /// The number of messages.
    pub count: u64,
    /// The reason for a difference from the request.
    pub note: Option<String>,
}

/// Plans the requested rate, or half of the target's full speed if that is less; and as many messages as fit the time.
pub fn plan_rate(lab: &Lab<'_>, settings: &Settings, rate: f64, seconds: f64) -> Result<PubsubPlan, LabError> {
    let count = |rate: f64| ((rate * seconds) as u64).max(1);
    if is_log(&settings.target) {
        return Ok(PubsubPlan { rate, count: count(rate), note: None });
    }
    let probe = Settings { rate: None, count: PROBE, batch: 1, readers: 1, ..settings.clone() };
    let mut reached: f64 = 0.0;
    // The first probe warms up: a server in a virtual machine of its own compiles first.
    for _ in 0..2 {
        reached = reached.max(run(lab, &probe)?.throughput_per_s.unwrap_or(rate / SUSTAINED_SHARE));
    }
    Ok(fit_rate(rate, reached, seconds, settings.size as u64))
}

fn fit_rate(asked: f64, reached: f64, seconds: f64, size: u64) -> PubsubPlan {
    let rate =
        if reached * SUSTAINED_SHARE < asked { round_down(reached * SUSTAINED_SHARE, 1).max(1.0) } else { asked };
    let timed = ((rate * seconds) as u64).max(1);
    let count = timed.min((MAX_BROKER_BYTES / size).max(1));
    let mut notes = Vec::new();
    if rate < asked {
        notes.push(format!(
            "{rate} messages a second instead of {asked}: one after the other this target takes {reached:.0}"
        ));
    }
    if count < timed {
        notes.push(format!("{count} messages instead of {timed}, for the server to hold 256 MiB at most"));
    }
    PubsubPlan { rate, count, note: (!notes.is_empty()).then(|| notes.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_keeps_up_gets_the_requested_rate() {
        let plan = fit_rate(10_000.0, 20_001.0, 10.0, 1024);
        assert_eq!(plan, PubsubPlan { rate: 10_000.0, count: 100_000, note: None });
    }

    #[test]
    fn a_slow_target_gets_a_lower_rate_and_a_note() {
        let plan = fit_rate(10_000.0, 3_900.0, 2.0, 1024);
        assert_eq!((plan.rate, plan.count), (1_000.0, 2_000));
        assert!(plan.note.unwrap().contains("3900"));
        assert_eq!(fit_rate(10_000.0, 0.3, 2.0, 1024).rate, 1.0);
    }

    #[test]
    fn a_broker_is_not_filled() {
        let plan = fit_rate(10_000.0, 1e9, 10.0, 64 << 10);
        assert_eq!(plan.count, 4096);
        assert!(plan.note.unwrap().contains("256 MiB"));
    }
}
