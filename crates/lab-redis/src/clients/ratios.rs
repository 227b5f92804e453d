//! Ratios between the clients, over all repetitions.

use super::SetGetClient;
use tickpath_lab_compare::{RatioLine, ratio_table};
use tickpath_lab_result::{Comparison, Run, distinct};

/// The figure that the ratios compare.
const FIGURE: &str = "throughput_per_s";

/// The number of workers of asyncio and uvloop in comparisons: the largest case.
const MAX_WORKERS: u64 = 100;

/// Returns the ratios of a result for each route to the server: asyncio to blocking, uvloop to asyncio, a pipeline to
/// two commands.
pub(super) fn comparisons(runs: &[Run]) -> Vec<Comparison> {
    let ratios = [
        (
            "asyncio100_to_sync_set_get",
            with_max_workers(SetGetClient::REDIS_PY_ASYNCIO),
            with_one_worker(SetGetClient::REDIS_PY),
        ),
        (
            "uvloop100_to_asyncio100_set_get",
            with_max_workers(SetGetClient::REDIS_PY_UVLOOP),
            with_max_workers(SetGetClient::REDIS_PY_ASYNCIO),
        ),
        (
            "pipeline_to_sync_set_get",
            with_one_worker(SetGetClient::REDIS_PY_PIPELINE),
            with_one_worker(SetGetClient::REDIS_PY),
        ),
    ];
    let routes = distinct(runs.iter().filter_map(RouteKey::of));
    let mut lines = Vec::new();
    for route in &routes {
        for (name, a, b) in ratios {
            let name = match routes.len() {
                1 => name.to_owned(),
                _ => format!("{name} {} {} ms", route.transport, route.rtt_ms),
            };
            lines.push(RatioLine::of_runs(&name, FIGURE, route.runs_of(runs, a), route.runs_of(runs, b)));
        }
    }
    ratio_table(lines)
}

/// A client and its number of workers.
type ClientWorkers = (SetGetClient, u64);

fn with_max_workers(client: SetGetClient) -> ClientWorkers {
    (client, MAX_WORKERS)
}

fn with_one_worker(client: SetGetClient) -> ClientWorkers {
    (client, 1)
}

/// A route to the server, as the key of its runs.
#[derive(Debug, Clone, PartialEq)]
struct RouteKey {
    transport: String,
    rtt_ms: f64,
}

impl RouteKey {
    /// Returns `None` for a run of another workload.
    fn of(run: &Run) -> Option<Self> {
        Some(Self { transport: run.params.text("transport")?, rtt_ms: run.params.number("rtt_ms")? })
    }

    /// Returns the runs of a client over this route.
    fn runs_of<'a>(&self, runs: &'a [Run], (client, workers): ClientWorkers) -> impl Iterator<Item = &'a Run> {
        runs.iter().filter(move |run| {
            let of_them = run.client == client.name && run.params.number("workers") == Some(workers as f64);
            of_them && RouteKey::of(run).is_some_and(|route| route == *self)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a valid run that reached `rate` pairs a second.
    fn run((client, workers): ClientWorkers, rtt_ms: f64, repeat: u32, rate: f64) -> Run {
        let mut run = Run { client: client.name.to_owned(), repeat, valid: true, ..Run::default() };
        run.params.set("transport", "tcp");
        run.params.set("rtt_ms", rtt_ms);
        run.params.set("workers", workers);
        run.throughput_per_s = Some(rate);
        run
    }

    #[test]
    fn ratios_come_from_the_same_repetition() {
        let (sync, asyncio) =
            (with_one_worker(SetGetClient::REDIS_PY), with_max_workers(SetGetClient::REDIS_PY_ASYNCIO));
        let runs = [run(sync, 0.0, 1, 100.0), run(asyncio, 0.0, 1, 300.0), run(asyncio, 0.0, 2, 900.0)];
        let found = comparisons(&runs);
        let [only] = &found[..] else { panic!("one ratio: {found:?}") };
        assert_eq!((only.name.as_str(), only.ratio), ("asyncio100_to_sync_set_get", Some(3.0)));
    }
}
