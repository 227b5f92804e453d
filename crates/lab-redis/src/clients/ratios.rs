//! What the repetitions say together: ratios, and what of asyncio's gain is hidden latency.

use std::collections::BTreeMap;

use super::Client;
use tickpath_result::{Comparison, Run, median};

/// What the ratios compare.
const FIGURE: &str = "throughput_per_s";

/// The workers of asyncio and uvloop in comparisons: the most there are.
const CROWD: u64 = 100;

/// How much of what asyncio gains over a client that waits is hidden latency, at one round trip.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The round trip that was asked for, in milliseconds.
    pub rtt_ms: f64,
    /// The round trip that a PING took, in nanoseconds.
    pub measured_rtt_ns: f64,
    /// Throughput of redis-py with asyncio and 100 workers, divided by that of redis-py that waits.
    pub gain: f64,
    /// The same without a network between: what is left of the gain is batches of answers a turn of the loop, and a
    /// client that works while the server does. Below one where asyncio costs more than that brings. None if no run
    /// had a round trip of zero.
    pub gain_without_network: Option<f64>,
    /// The share of a pair's time that the waiting client spends on two round trips of a PING: 0 to 100.
    pub waiting_percent: f64,
    /// The share of what is gained that hidden latency accounts for: of `gain − 1`, what is above the gain without a
    /// network, and above one if that gain is less. 100 if asyncio gains nothing without a network; none if it gains
    /// nothing at all, or if the gain without a network is not known.
    pub hiding_percent: Option<f64>,
}

/// Answers for each round trip over TCP that has both clients, the shortest first.
pub fn latency_hiding(runs: &[Run]) -> Vec<Answer> {
    let mut gains: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for way in ways(runs).into_iter().filter(|way| way.transport == "tcp") {
        let pairs = way.pairs(runs, crowd(Client::REDIS_PY_ASYNCIO), alone(Client::REDIS_PY));
        let gain = Comparison::of_pairs("", FIGURE, &pairs).and_then(|comparison| comparison.ratio);
        let sync = median(pairs.iter().map(|(_, sync)| *sync).collect());
        if let (Some(gain), Some(sync)) = (gain, sync) {
            gains.insert(way.rtt_ms.to_bits(), (gain, sync));
        }
    }
    // Positive numbers lie in the order of their bits.
    let without = gains.get(&0.0f64.to_bits()).map(|(gain, _)| *gain);
    let answer = |(&bits, &(gain, sync)): (&u64, &(f64, f64))| {
        let rtt_ms = f64::from_bits(bits);
        let measured_rtt_ns = measured(runs, rtt_ms)?;
        let waiting_percent = (100.0 * 2.0 * measured_rtt_ns * sync / 1e9).min(100.0);
        let hidden = without.filter(|_| gain > 1.0).map(|without| 100.0 * (gain - without.max(1.0)) / (gain - 1.0));
        let hiding_percent = hidden.map(|percent| percent.max(0.0));
        Some(Answer { rtt_ms, measured_rtt_ns, gain, gain_without_network: without, waiting_percent, hiding_percent })
    };
    gains.iter().filter_map(answer).collect()
}

/// The ratios of a result: asyncio to waiting, uvloop to asyncio, one pipeline to two commands, for each way to the
/// server.
pub(super) fn comparisons(runs: &[Run]) -> Vec<Comparison> {
    let ratios = [
        ("asyncio100_to_sync_set_get", crowd(Client::REDIS_PY_ASYNCIO), alone(Client::REDIS_PY)),
        ("uvloop100_to_asyncio100_set_get", crowd(Client::REDIS_PY_UVLOOP), crowd(Client::REDIS_PY_ASYNCIO)),
        ("pipeline_to_sync_set_get", alone(Client::REDIS_PY_PIPELINE), alone(Client::REDIS_PY)),
    ];
    let ways = ways(runs);
    let mut found = Vec::new();
    for way in &ways {
        for (name, a, b) in ratios {
            let name = match ways.len() {
                1 => name.to_owned(),
                _ => format!("{name} {} {} ms", way.transport, way.rtt_ms),
            };
            found.extend(Comparison::of_pairs(&name, FIGURE, &way.pairs(runs, a, b)));
        }
    }
    found
}

/// A client and its workers.
type Who = (Client, u64);

fn crowd(client: Client) -> Who {
    (client, CROWD)
}

fn alone(client: Client) -> Who {
    (client, 1)
}

/// A way to the server that runs took.
#[derive(Debug, Clone, PartialEq)]
struct Way {
    transport: String,
    rtt_ms: f64,
}

impl Way {
    /// None of a run of another workload.
    fn of(run: &Run) -> Option<Self> {
        Some(Self { transport: run.params.text("transport")?, rtt_ms: number(run, "rtt_ms")? })
    }

    /// What two clients reached in the same repetition.
    fn pairs(&self, runs: &[Run], a: Who, b: Who) -> Vec<(f64, f64)> {
        let rates = |(client, workers): Who| -> BTreeMap<u32, f64> {
            let here = |run: &&Run| {
                let of_them = run.client == client.name && number(run, "workers") == Some(workers as f64);
                run.valid && of_them && Way::of(run).is_some_and(|way| way == *self)
            };
            runs.iter().filter(here).filter_map(|run| Some((run.repeat, run.throughput_per_s?))).collect()
        };
        let (a, b) = (rates(a), rates(b));
        a.into_iter().filter_map(|(repeat, a)| Some((a, *b.get(&repeat)?))).collect()
    }
}

fn number(run: &Run, name: &str) -> Option<f64> {
    run.params.0.get(name)?.as_f64()
}

/// The ways of the runs, in the order in which they first came.
fn ways(runs: &[Run]) -> Vec<Way> {
    let mut ways = Vec::new();
    for way in runs.iter().filter_map(Way::of) {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// What a PING took, at this round trip over TCP.
fn measured(runs: &[Run], rtt_ms: f64) -> Option<f64> {
    let here = |run: &&Run| Way::of(run).is_some_and(|way| way.transport == "tcp" && way.rtt_ms == rtt_ms);
    runs.iter().find(here)?.params.0.get("measured_rtt_ns")?.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valid run that reached so many pairs a second, half as many with its time to connect.
    fn run((client, workers): Who, rtt_ms: f64, repeat: u32, rate: f64) -> Run {
        let mut run = Run { client: client.name.to_owned(), repeat, valid: true, ..Run::default() };
        run.params.set("transport", "tcp");
        run.params.set("rtt_ms", rtt_ms);
        run.params.set("workers", workers);
        run.params.set("measured_rtt_ns", rtt_ms * 1e6 + 30_000.0);
        run.throughput_per_s = Some(rate);
        run.figures.insert("throughput_with_connect_per_s".to_owned(), rate / 2.0);
        run
    }

    #[test]
    fn what_is_gained_beyond_the_gain_without_a_network_is_hidden_latency() {
        for (near, far, share) in [
            (1.0, 10.0, Some(100.0)),
            (2.0, 5.0, Some(75.0)),
            (0.5, 4.0, Some(100.0)),
            (3.0, 3.0, Some(0.0)),
            (4.0, 2.0, Some(0.0)),
            (1.0, 0.9, None),
        ] {
            let mut runs = Vec::new();
            for (rtt_ms, gain) in [(0.0, near), (1.0, far)] {
                runs.push(run(alone(Client::REDIS_PY), rtt_ms, 1, 400.0));
                runs.push(run(crowd(Client::REDIS_PY_ASYNCIO), rtt_ms, 1, 400.0 * gain));
            }
            let answers = latency_hiding(&runs);
            assert_eq!(answers.iter().map(|a| a.rtt_ms).collect::<Vec<_>>(), [0.0, 1.0]);
            let answer = &answers[1];
            assert_eq!((answer.gain, answer.gain_without_network), (far, Some(near)));
            assert_eq!(answer.hiding_percent, share, "a gain of {far}, {near} without a network");
            // Two round trips of 1.03 ms of the 2.5 ms that a pair takes.
            assert!((answer.waiting_percent - 82.4).abs() < 1e-9, "{}", answer.waiting_percent);
        }
    }

    #[test]
    fn ratios_come_from_the_same_repetition() {
        let (sync, asyncio) = (alone(Client::REDIS_PY), crowd(Client::REDIS_PY_ASYNCIO));
        let runs = [run(sync, 0.0, 1, 100.0), run(asyncio, 0.0, 1, 300.0), run(asyncio, 0.0, 2, 900.0)];
        let found = comparisons(&runs);
        let [only] = &found[..] else { panic!("one ratio: {found:?}") };
        assert_eq!((only.name.as_str(), only.ratio), ("asyncio100_to_sync_set_get", Some(3.0)));
    }
}
