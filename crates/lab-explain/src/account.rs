//! Fills a run from stamps: stages, figures, and the counts of messages.

use super::records::{MessageStamps, ProcessTrace, ReceiveStamps, SendStamps};
use super::stages::{Breakdown, PathFacts};
use tickpath_lab_result::{Run, median};

/// Possible steps of a clock, in nanoseconds, the coarsest first.
const CLOCK_STEPS_NS: [u64; 6] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000];

/// Min number of payloads that show a clock's step; fewer may lie on a coarse step by chance.
const MIN_PAYLOADS: usize = 3;

/// Fills in the stages, their sum, and the known facts about the path between.
pub(super) fn fill_stages(run: &mut Run, breakdown: Option<Breakdown>, between: &PathFacts) {
    set_figure(run, "server_publish_ns", between.server_ns);
    set_figure(run, "socket_one_way_ns", between.wire_ns);
    set_figure(run, "socket_round_trip_ns", between.round_trip_ns);
    set_figure(run, "spin_turn_ns", between.polls.map(|polls| polls.turn_ns));
    set_figure(run, "reader_pause_ns", between.polls.map(|polls| polls.pause_ns));
    let Some(breakdown) = breakdown else { return };
    set_figure(run, "stages_sum_percent", Some(breakdown.sum_percent));
    set_figure(run, "message_ns", Some(breakdown.whole_ns));
    run.timed_from = Some("call".to_owned());
    run.stages.extend(breakdown.stages);
}

/// Fills in the subscriber's polling and CPU use while it waited.
pub(super) fn fill_waiting(run: &mut Run, received: &[ReceiveStamps], cpu_percent: Option<f64>) {
    let empty = median(received.iter().map(|received| received.empty as f64).collect());
    set_figure(run, "empty_polls_per_message", empty.filter(|polls| *polls > 0.0));
    set_figure(run, "subscriber_cpu_percent", cpu_percent);
}

/// Fills in the cost of the connections.
pub(super) fn fill_connect(run: &mut Run, sent: &[SendStamps], subscriber: Option<&ProcessTrace>) {
    let made: Vec<&SendStamps> = sent.iter().filter(|sent| sent.connected > 0).collect();
    let of = |value: fn(&SendStamps) -> u64| median(made.iter().map(|sent| value(sent) as f64).collect());
    set_figure(run, "connect_ns", of(|sent| sent.connected.saturating_sub(sent.connect)));
    set_figure(run, "connect_commands", of(|sent| sent.commands));
    let first = subscriber.and_then(|subscriber| subscriber.subscribed.first());
    let took = first.map(|row| row.confirmed.saturating_sub(row.called) as f64);
    set_figure(run, "subscribe_ns", took.filter(|ns| *ns > 0.0));
    if let Some(again) = subscriber.map(|s| s.connections).filter(|connections| *connections > 1) {
        run.notes.push(format!(
            "the subscriber connected {again} times; what was published while it was not connected is lost to it"
        ));
    }
}

/// Fills in figures from payloads that are times: the clock's step, and the latency that the script itself measures.
pub(super) fn fill_payload_clock(run: &mut Run, journeys: &[MessageStamps], utc_offset: i64) {
    let times: Vec<(u64, &ReceiveStamps)> = journeys
        .iter()
        .filter_map(|journey| Some((utc_ns(journey.sent.value?)?, &journey.received)))
        .filter(|(created, received)| is_creation_time(*created, received.handed, utc_offset))
        .collect();
    if times.len() < MIN_PAYLOADS || times.len() < journeys.len() {
        return;
    }
    let ages =
        times.iter().map(|(created, received)| (utc_of(received.handed, utc_offset) - i128::from(*created)) as f64);
    set_figure(run, "message_by_payload_clock_ns", median(ages.collect()));
    set_figure(
        run,
        "payload_clock_step_ns",
        clock_step_ns(&times.iter().map(|(created, _)| *created).collect::<Vec<_>>()),
    );
}

/// Adds a figure, if it exists and is finite.
pub(super) fn set_figure(run: &mut Run, name: &str, value: Option<f64>) {
    run.figures.extend(value.filter(|value| value.is_finite()).map(|value| (name.to_owned(), value)));
}

/// Converts a time since 1970 in seconds, milliseconds, microseconds or nanoseconds, told apart by magnitude.
fn utc_ns(number: f64) -> Option<u64> {
    let units = [(1e8..1e11, 1e9), (1e11..1e14, 1e6), (1e14..1e17, 1e3), (1e17..1e19, 1.0)];
    let (_, unit_ns) = units.into_iter().find(|(range, _)| range.contains(&number))?;
    Some((number * unit_ns).round() as u64)
}

fn utc_of(monotonic_ns: u64, utc_offset: i64) -> i128 {
    i128::from(monotonic_ns) + i128::from(utc_offset)
}

/// Returns whether a payload can be the message's creation time: less than a minute before its arrival.
fn is_creation_time(created_ns: u64, handed: u64, utc_offset: i64) -> bool {
    let age = utc_of(handed, utc_offset) - i128::from(created_ns);
    (-2_000_000_000..60_000_000_000).contains(&age)
}

/// Returns the coarsest step that all times are multiples of. Tolerates 250 ns: a float of seconds is exact to 239 ns,
/// and its text has seven decimals.
fn clock_step_ns(times: &[u64]) -> Option<f64> {
    const TOLERANCE_NS: u64 = 250;
    let lies_on = |step: u64| times.iter().all(|time| (time % step).min(step - time % step) <= TOLERANCE_NS);
    CLOCK_STEPS_NS.into_iter().find(|step| lies_on(*step)).map(|step| step as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_payload_is_known_by_its_steps() {
        // Seconds as a text with this number of decimals.
        for (decimals, step) in [(0, 1e9), (2, 1e7), (3, 1e6), (5, 1e4)] {
            let times: Vec<u64> = (1..20u64)
                .map(|n| 1_700_000_000.0 + n as f64 * 7.123_456_789)
                .map(|seconds| format!("{seconds:.decimals$}").parse::<f64>().unwrap())
                .map(|seconds| utc_ns(seconds).unwrap())
                .collect();
            assert_eq!(clock_step_ns(&times), Some(step), "{decimals} decimals: {times:?}");
        }
        assert_eq!(clock_step_ns(&[1_700_000_000_123_456_789, 1_700_000_000_223_456_123]), None);
    }

    #[test]
    fn a_latency_by_the_scripts_own_clock_is_reported() {
        let utc_offset = 1_700_000_000_000_000_000;
        let journey = |n: u64| {
            // Sent at n·10 ms, and received 3 ms later.
            let value = Some(1_700_000_000.0 + n as f64 * 0.01);
            let received = ReceiveStamps { handed: n * 10_000_000 + 3_000_000, ..ReceiveStamps::default() };
            MessageStamps { sent: SendStamps { value, ..SendStamps::default() }, received }
        };
        let mut run = Run::default();
        fill_payload_clock(&mut run, &(1..20).map(journey).collect::<Vec<_>>(), utc_offset);
        assert_eq!(run.figures["payload_clock_step_ns"], 1e7);
        let age = run.figures["message_by_payload_clock_ns"];
        assert!((age - 3e6).abs() < 1e3, "{age}");
    }

    #[test]
    fn a_payload_without_a_time_yields_no_figure() {
        let price = |n: u64| MessageStamps {
            sent: SendStamps { value: Some(64_000.0 + n as f64), ..SendStamps::default() },
            ..MessageStamps::default()
        };
        let mut run = Run::default();
        fill_payload_clock(&mut run, &(1..20).map(price).collect::<Vec<_>>(), 0);
        assert!(run.figures.is_empty(), "{:?}", run.figures);
    }
}
