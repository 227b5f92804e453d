//! The rate of each client library, near and far: a row per client, a column per route to the server. The section shows
//! runs with the settings `transport`, `rtt_ms` and `workers`, whatever their workload.

use super::markup::escaped;
use super::names::grouped;
use super::page::{PageSection, table};
use super::plain_table::PlainTable;
use super::quantity::{NONE, duration, number, share};
use tickpath_lab_result::{ResultFile, Run, distinct, median};

/// Returns a table with the best of the repeats as a bar, and the spread below it.
pub(super) fn section(result: &ResultFile) -> Option<PageSection> {
    let all = summary(&result.runs);
    let routes = distinct(all.iter().map(|one| &one.route));
    let header: Vec<String> = std::iter::once(String::new()).chain(routes.iter().map(|route| route.head())).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (client, workers) in distinct(all.iter().map(|one| (&one.client, one.workers))) {
        let of_client = |one: &&ClientSummary| one.client == *client && one.workers == workers;
        let cells = routes.iter().map(|route| match all.iter().filter(of_client).find(|one| one.route == **route) {
            Some(one) => one.cell(best_of(&all, route)),
            None => NONE.to_owned(),
        });
        let name = format!("{}<small>{}</small>", escaped(client), workers_text(workers));
        rows.push(std::iter::once(name).chain(cells).collect());
    }
    if rows.is_empty() {
        return None;
    }
    let lead = "Pairs a second: set a key, get it again. The best of the repeats and its bar, each column on its own \
                scale; then the worst, the standard deviation σ and its share of the mean, and the time to connect, \
                which is not in the rate.";
    PageSection::new("Clients", lead, &table("matrix clients", &header, &rows))
}

/// Returns the same as text, a row per client and route.
pub(super) fn overview(result: &ResultFile) -> Option<PlainTable> {
    let row = |one: &ClientSummary| {
        let spread = &one.throughput;
        vec![
            format!("{} ×{} {}", one.client, one.workers, one.route.name()),
            number(spread.best),
            number(spread.worst),
            number(spread.deviation),
            share(spread.deviation_percent),
            one.connect.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = summary(&result.runs).iter().map(row).collect();
    let header = ["client, pairs a second", "best", "worst", "deviation", "of the mean", "connect"];
    PlainTable::new("clients", &header, rows)
}

/// A client's route to the server.
#[derive(Debug, Clone, PartialEq)]
struct ClientRoute {
    /// `tcp` or `unix`.
    transport: String,
    /// The added round trip, in milliseconds.
    rtt_ms: f64,
}

/// The repetitions of a client over a route.
#[derive(Debug)]
struct ClientSummary {
    client: String,
    workers: u64,
    route: ClientRoute,
    throughput: RateSpread,
    /// The time to connect: the median, in words.
    connect: String,
}

/// Spread of the repetitions, in pairs a second.
#[derive(Debug, PartialEq)]
struct RateSpread {
    best: f64,
    worst: f64,
    /// The standard deviation of the sample; zero for a single repetition.
    deviation: f64,
    /// The deviation as a share of the mean.
    deviation_percent: f64,
}

/// Sums up the valid runs, in the order of each setting's first run.
fn summary(runs: &[Run]) -> Vec<ClientSummary> {
    let valid = runs.iter().filter(|run| run.valid);
    let summed = |(key, runs): (Option<(String, u64, ClientRoute)>, Vec<&Run>)| {
        let (client, workers, route) = key?;
        let rates: Vec<f64> = runs.iter().filter_map(|run| run.throughput_per_s).collect();
        let times = runs.iter().filter_map(|run| run.figures.get("connect_ns").copied());
        let connect = median(times.collect()).map_or_else(|| NONE.to_owned(), duration);
        Some(ClientSummary { client, workers, route, throughput: RateSpread::of(&rates)?, connect })
    };
    grouped(valid, |run| key(run)).into_iter().filter_map(summed).collect()
}

/// Returns the key of a run beside its repetition: the client, its workers and the route; `None` for a run of another
/// workload.
fn key(run: &Run) -> Option<(String, u64, ClientRoute)> {
    let transport = run.params.text("transport")?;
    let rtt_ms = run.params.number("rtt_ms")?;
    let workers = run.params.whole("workers")?;
    Some((run.client.clone(), workers, ClientRoute { transport, rtt_ms }))
}

impl RateSpread {
    /// Returns `None` without any rate.
    fn of(rates: &[f64]) -> Option<Self> {
        let best = rates.iter().copied().max_by(f64::total_cmp)?;
        let worst = rates.iter().copied().min_by(f64::total_cmp)?;
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = (squares / (rates.len() - 1).max(1) as f64).sqrt();
        let deviation_percent = if mean > 0.0 { 100.0 * deviation / mean } else { 0.0 };
        Some(Self { best, worst, deviation, deviation_percent })
    }
}

impl ClientRoute {
    fn name(&self) -> String {
        let distance = (self.rtt_ms > 0.0).then(|| format!(" {}", duration(self.rtt_ms * 1e6)));
        format!("{}{}", self.transport, distance.unwrap_or_default())
    }

    fn head(&self) -> String {
        let distance = if self.rtt_ms > 0.0 {
            format!("{} put between, there and back", duration(self.rtt_ms * 1e6))
        } else {
            "nothing put between".to_owned()
        };
        format!("{}<small>{distance}</small>", escaped(&self.transport))
    }
}

impl ClientSummary {
    fn cell(&self, best: f64) -> String {
        let spread = &self.throughput;
        let width = if best > 0.0 { 100.0 * spread.best / best } else { 0.0 };
        format!(
            "<div class=\"beside\"><b>{}</b><svg class=\"cell\" height=\"8\" aria-hidden=\"true\"><rect class=\"bar\" \
             width=\"{width:.1}%\" height=\"8\"/></svg></div><small>worst {} · σ {}, {} · connect {}</small>",
            number(spread.best),
            number(spread.worst),
            number(spread.deviation),
            escaped(&share(spread.deviation_percent)),
            self.connect
        )
    }
}

/// Returns the best rate of a column.
fn best_of(all: &[ClientSummary], route: &ClientRoute) -> f64 {
    all.iter().filter(|one| one.route == *route).map(|one| one.throughput.best).fold(0.0, f64::max)
}

fn workers_text(workers: u64) -> String {
    if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a valid run that reached `rate` pairs a second.
    fn run((client, workers): (&str, u64), repeat: u32, rate: f64) -> Run {
        let mut run = Run { client: client.to_owned(), repeat, valid: true, ..Run::default() };
        run.params.set("transport", "tcp");
        run.params.set("rtt_ms", 0.0);
        run.params.set("workers", workers);
        run.throughput_per_s = Some(rate);
        run
    }

    #[test]
    fn repetitions_become_best_worst_and_deviation() {
        let rates = [(1, 900.0), (2, 1_000.0), (3, 1_100.0)];
        let mut runs: Vec<Run> = rates.iter().map(|&(repeat, rate)| run(("redis-py", 1), repeat, rate)).collect();
        runs.push(Run { valid: false, ..run(("redis-py", 1), 4, 5.0) });
        runs.push(run(("redis-py-asyncio", 100), 1, 7.0));
        let summed = summary(&runs);
        let [first, second] = &summed[..] else { panic!("two settings: {summed:?}") };
        let spread = RateSpread { best: 1_100.0, worst: 900.0, deviation: 100.0, deviation_percent: 10.0 };
        assert_eq!((first.client.as_str(), first.workers, &first.throughput), ("redis-py", 1, &spread));
        assert_eq!((second.workers, second.throughput.deviation), (100, 0.0));
    }
}
