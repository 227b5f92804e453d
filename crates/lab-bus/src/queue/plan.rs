//! The number of messages that fits the time, found before the measurement.

use super::run::run;
use super::settings::{DEFAULT_S, QueueClient, Settings, is_list};
use tickpath_lab_harness::digits::round_down;
use tickpath_lab_harness::targets::is_log;
use tickpath_lab_harness::{Lab, LabError};

/// Messages of the probe that finds a target's speed.
const PROBE: u64 = 500;

/// The number of messages for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlan {
    /// The number of messages.
    pub count: u64,
    /// The reason for a difference from the request.
    pub note: Option<String>,
}

/// Plans the messages of `settings`, or as many as the target takes in `seconds` if that is less; at a rate the time
/// alone decides. Logs are known to be fast enough, and for the usual time so are Redis lists with our client.
pub fn plan_count(lab: &Lab<'_>, settings: &Settings, seconds: f64) -> Result<QueuePlan, LabError> {
    if let Some(rate) = settings.rate {
        let timed = (rate * seconds) as u64;
        return Ok(QueuePlan { count: timed.clamp(1, settings.count.max(1)), note: None });
    }
    let is_fast = settings.client == QueueClient::Rust && is_list(&settings.target) && seconds >= DEFAULT_S;
    if is_log(&settings.target) || is_fast {
        return Ok(QueuePlan { count: settings.count, note: None });
    }
    let mut probe = Vec::new();
    run(lab, &Settings { count: PROBE.min(settings.count), ..settings.clone() }, &mut probe)?;
    let reached = probe.first().and_then(|run| run.throughput_per_s);
    Ok(fit_count(settings.count, reached.unwrap_or(f64::INFINITY), seconds))
}

fn fit_count(asked: u64, reached: f64, seconds: f64) -> QueuePlan {
    let max = reached * seconds;
    let count = if max < asked as f64 { (round_down(max, 2) as u64).max(PROBE).min(asked) } else { asked };
    let note = (count < asked).then(|| {
        format!("{count} messages instead of {asked}, for about {seconds} s: this target takes {reached:.0} a second")
    });
    QueuePlan { count, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_target_gets_all_and_a_slow_one_less_with_a_note() {
        for (reached, count) in [
            (1e6, 200_000),
            (50_000.0, 200_000),
            (12_345.0, 49_000),
            (200.0, 800),
            (1.0, 500),
            (f64::INFINITY, 200_000),
        ] {
            let plan = fit_count(200_000, reached, 4.0);
            assert_eq!((plan.count, plan.note.is_some()), (count, count < 200_000), "{reached} a second");
        }
        assert_eq!(fit_count(100, 1.0, 4.0).count, 100);
    }
}
