//! The rules of a run, and whether its pullers kept up.

use tickpath_bus::DeliveryGuarantee;
use tickpath_clock::Calibration;

use super::processes::QueueReports;
use super::settings::{PullVariant, QueueClient, Settings};
use tickpath_lab_harness::rules::{note_reconnects, refuse_loss};
use tickpath_lab_report::{count, figure};
use tickpath_lab_result::Run;

/// Min share of the messages that pullers have to have pulled by the last push in order to keep up.
const MIN_PULLED_SHARE: f64 = 0.95;

/// Suggested size of a pull of many messages.
const SUGGESTED_PULL: u64 = 100;

/// Min duration of a run for a verdict on whether the pullers keep up.
const MIN_RUN_NS: u64 = 50_000_000;

/// Returns whether the pullers of a run kept up with the pusher, as a sentence with the remedy; `None` for other runs.
fn keep_up_verdict(run: &Run) -> Option<String> {
    if run.elapsed_ns.is_some_and(|ns| ns < MIN_RUN_NS) {
        return None;
    }
    let pushed = *run.figures.get("push_rate_per_s")?;
    let share = run.figures.get("kept_up_percent")? / 100.0;
    let (pullers, pull) = (run.params.whole("pullers")?, run.params.whole("pull")?);
    let (who, keep, fall, it) = match pullers {
        1 => ("one puller".to_owned(), "keeps", "falls", "it"),
        many => (format!("{many} pullers"), "keep", "fall", "they"),
    };
    if share >= MIN_PULLED_SHARE {
        let held_up = run.figures.get("full_pushes").map(|pushes| {
            format!(", and the pusher was held up: {} pushes found the queue full", count(*pushes as u64))
        });
        return Some(format!("{who} {keep} up: {share:.2} of the pushed rate{}", held_up.unwrap_or_default()));
    }
    let rate = |value: f64| figure("rate_per_s", value);
    let by_count = if run.params.0.contains_key("pull_variant") { "--pull-variant count " } else { "" };
    let remedy = match pull < SUGGESTED_PULL {
        true => format!("pull {SUGGESTED_PULL} at a time: {by_count}--pull {SUGGESTED_PULL}"),
        false => format!("use more pullers: --pullers {}", pullers + 1),
    };
    Some(format!(
        "{who} {fall} behind: while {} were pushed {it} pulled {}; {remedy}",
        rate(pushed),
        rate(share * pushed)
    ))
}

/// Applies the run's own rules: each message arrived, once where that is promised; and the rate was kept.
pub(super) fn judge(
    run: &mut Run,
    settings: &Settings,
    outcome: &QueueReports,
    last_call: Option<u64>,
    calibration: &Calibration,
) {
    let (counts, delivery) = (run.counts, settings.usual_delivery());
    let mut wrong = Vec::new();
    wrong.extend(outcome.failed.as_ref().map(|what| format!("the run broke off: {what}")));
    if counts.lost > 0 && outcome.is_durable {
        wrong.push(format!("{} messages were lost in a queue that promises to keep them", counts.lost));
    }
    if counts.left > 0 {
        wrong.push(format!(
            "{} messages were left: none arrived any more, or pulling failed; look at the server, and run again",
            counts.left
        ));
    }
    if counts.duplicated > 0 && delivery == DeliveryGuarantee::AtMostOnce {
        wrong.push(format!("{} messages arrived more than once, on an at-most-once queue", counts.duplicated));
    }
    if counts.errors > 0 {
        wrong.push(format!(
            "{} messages were not of this run; check whether another client uses its queue",
            counts.errors
        ));
    }
    if let (Some(rate), Some(last), None) = (settings.rate, last_call, &outcome.failed) {
        wrong.extend(generator_fault(settings, outcome, rate, last, calibration));
    }
    if !outcome.is_durable {
        // Overwrites like a topic that loses what its reader has not taken.
        run.params.set("policy", "overwrite");
    }
    run.valid = wrong.is_empty();
    run.notes.extend(wrong);
    if !outcome.is_durable && settings.rate.is_some() {
        // At full speed a queue may lose messages that its puller has not taken; at a sustained rate none may be lost.
        refuse_loss(run);
    }
    run.notes.extend(outcome.loss_settings.iter().cloned());
    run.notes.extend(special_conditions(settings, outcome));
    note_reconnects(run, "sender", outcome.pushed.reconnects);
    note_reconnects(run, "receiver", outcome.pulled.iter().map(|pulled| pulled.reconnects).sum());
    run.finding = keep_up_verdict(run);
}

/// Returns how the generator failed its own plan, if it did.
fn generator_fault(
    settings: &Settings,
    outcome: &QueueReports,
    rate: f64,
    last_call: u64,
    calibration: &Calibration,
) -> Option<String> {
    let planned = settings.count.saturating_sub(1) as f64 / rate;
    let took = calibration.ns_between(outcome.pushed.start, last_call) as f64 / 1e9;
    if took > 0.0 && settings.count > 1 && planned / took < 0.99 {
        return Some(format!("the pusher reached {:.1} % of its rate; use a lower --rate", 100.0 * planned / took));
    }
    let share = 100.0 * outcome.pushed.late_share;
    let late = || format!("{share:.1} % of pushes came late by more than the interval or 10 µs; use a lower --rate");
    (share > 1.0).then(late)
}

/// Returns notes on the run's special conditions.
fn special_conditions(settings: &Settings, outcome: &QueueReports) -> Vec<String> {
    let mut remarks = Vec::new();
    if settings.rate.is_none() {
        remarks.push("closed loop: each push begins when the one before is confirmed".to_owned());
    }
    if let QueueClient::RedisPy(variants) = settings.client {
        let what = match variants.pull {
            PullVariant::Published => "pop is a BRPOP, with its wait for a message, and a GET",
            PullVariant::Brpop => "pop is a BRPOP, with its wait for a message",
            PullVariant::Count => "pop is an RPOP of many, and where the list is empty a BRPOP, with its wait",
        };
        remarks.push(what.to_owned());
    }
    if !outcome.is_durable {
        remarks.push("this transport keeps nothing for a puller that is too slow".to_owned());
    }
    if outcome.pushed.full > 0 {
        let full = outcome.pushed.full;
        remarks.push(format!("the queue was full at {full} pushes; the pusher waited for room, and lost nothing"));
    }
    let redelivered: u64 = outcome.pulled.iter().map(|pulled| pulled.redelivered).sum();
    if redelivered > 0 {
        remarks.push(format!("{redelivered} messages came marked as redelivered"));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use tickpath_clock::Wait;
    use tickpath_lab_result::Software;

    use super::*;
    use crate::queue::puller::PullerResult;
    use crate::queue::pusher::PusherResult;
    use crate::queue::settings::QueueSharing;

    /// Judges a run of a hundred messages, `lost` of which were lost, with the given reconnects of its pusher and its
    /// puller.
    fn judged(rate: Option<f64>, keeps: bool, lost: u64, reconnects: [u64; 2]) -> Run {
        let settings = Settings {
            target: "nats://host".to_owned(),
            client: QueueClient::Rust,
            count: 100,
            size: 64,
            pullers: 1,
            pipeline: 1,
            pull: 1,
            keys: QueueSharing::Each,
            delivery: Some(DeliveryGuarantee::AtMostOnce),
            rate,
            wait: Wait::Block,
            seed: 1,
            cpus: vec![0, 1],
            repeat: 1,
        };
        let pushed = PusherResult {
            sent: 100,
            full: 0,
            start: 0,
            late_share: 0.0,
            reconnects: Some(reconnects[0]),
            failed: None,
            server_version: None,
        };
        let pulled = vec![PullerResult { redelivered: 0, reconnects: Some(reconnects[1]), failed: None }];
        let (software, drops) = (Software::default(), Vec::new());
        let outcome = QueueReports {
            pushed,
            pulled,
            software,
            remaining: 0,
            is_durable: keeps,
            loss_settings: drops,
            failed: None,
        };
        let mut run = Run { valid: true, ..Run::default() };
        (run.counts.sent, run.counts.lost) = (100, lost);
        judge(&mut run, &settings, &outcome, None, &Calibration::nanoseconds());
        run
    }

    fn says(run: &Run, text: &str) -> bool {
        run.notes.iter().any(|note| note.contains(text))
    }

    #[test]
    fn loss_is_refused_at_a_rate_and_wherever_messages_are_kept() {
        for (rate, keeps, words) in [
            (Some(1_000.0), false, Some("3 of 100 messages were lost")),
            (Some(1_000.0), true, Some("3 messages were lost in a queue that promises to keep them")),
            (None, true, Some("3 messages were lost in a queue that promises to keep them")),
            (None, false, None),
        ] {
            let run = judged(rate, keeps, 3, [0, 0]);
            assert_eq!(run.valid, words.is_none(), "{rate:?}, {keeps}: {:?}", run.notes);
            assert!(words.is_none_or(|words| says(&run, words)), "{rate:?}, {keeps}: {:?}", run.notes);
            assert!(judged(rate, keeps, 0, [0, 0]).valid);
        }
    }

    #[test]
    fn reconnects_are_noted_and_counted() {
        let run = judged(None, true, 0, [1, 2]);
        for note in ["the sender's connection was lost and made again once", "the receiver's connection was lost"] {
            assert!(run.valid && says(&run, note), "{note}: {:?}", run.notes);
        }
        assert_eq!(run.figures.get("reconnects"), Some(&3.0));
        assert_eq!(judged(None, true, 0, [0, 0]).figures.get("reconnects"), None);
    }
}
