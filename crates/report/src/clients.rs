//! What each client library reaches, near and far: a row a client, a column a route to the server.

use super::markup::escaped;
use super::page::{Section, table};
use super::plain_table::PlainTable;
use super::quantity::{NONE, duration, number, share};
use super::repetitions::{Summary, summary};
use tickpath_result::{ResultFile, Run, firsts, median};

/// A table with the best of the repeats as a bar, and under it what tells how sure that is.
pub(super) fn section(result: &ResultFile) -> Option<Section> {
    let all = summary(&result.runs);
    let routes = firsts(all.iter().map(Route::of));
    let header: Vec<String> = std::iter::once(String::new()).chain(routes.iter().map(Route::head)).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (client, workers) in firsts(all.iter().map(|one| (one.client.clone(), one.workers))) {
        let of_client = |route: &Route| all.iter().find(|one| is(one, &client, workers) && Route::of(one) == *route);
        let cells = routes.iter().map(|route| match of_client(route) {
            Some(one) => cell(one, best_of(&all, route), &result.runs),
            None => NONE.to_owned(),
        });
        let name = format!("{}<small>{}</small>", escaped(&client), crowd(workers));
        rows.push(std::iter::once(name).chain(cells).collect());
    }
    if rows.is_empty() {
        return None;
    }
    let lead = "Pairs a second: set a key, get it again. The best of the repeats and its bar, each column on its own \
                scale; then the worst, the standard deviation σ and its share of the mean, and the time to connect, \
                which is not in the rate.";
    Section::new("Clients", lead, &table("matrix clients", &header, &rows))
}

/// The same as text, a row a client and route.
pub(super) fn overview(result: &ResultFile) -> Option<PlainTable> {
    let row = |one: &Summary| {
        let spread = &one.throughput;
        vec![
            format!("{} ×{} {}", one.client, one.workers, Route::of(one).name()),
            number(spread.best),
            number(spread.worst),
            number(spread.deviation),
            share(spread.deviation_percent),
            connect(one, &result.runs),
        ]
    };
    let rows: Vec<Vec<String>> = summary(&result.runs).iter().map(row).collect();
    let header = ["client, pairs a second", "best", "worst", "deviation", "of the mean", "connect"];
    PlainTable::new("clients", &header, rows)
}

/// How a client reaches the server.
#[derive(Debug, Clone, PartialEq)]
struct Route {
    transport: String,
    rtt_ms: f64,
}

impl Route {
    fn of(one: &Summary) -> Self {
        Self { transport: one.transport.clone(), rtt_ms: one.rtt_ms }
    }

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

fn cell(one: &Summary, best: f64, runs: &[Run]) -> String {
    let spread = &one.throughput;
    let width = if best > 0.0 { 100.0 * spread.best / best } else { 0.0 };
    format!(
        "<div class=\"beside\"><b>{}</b><svg class=\"cell\" height=\"8\" aria-hidden=\"true\"><rect class=\"bar\" \
         width=\"{width:.1}%\" height=\"8\"/></svg></div><small>worst {} · σ {}, {} · connect {}</small>",
        number(spread.best),
        number(spread.worst),
        number(spread.deviation),
        escaped(&share(spread.deviation_percent)),
        connect(one, runs)
    )
}

/// The best rate of a column.
fn best_of(all: &[Summary], route: &Route) -> f64 {
    all.iter().filter(|one| Route::of(one) == *route).map(|one| one.throughput.best).fold(0.0, f64::max)
}

/// The time to connect: the median of the repeats.
fn connect(one: &Summary, runs: &[Run]) -> String {
    let same = |run: &&Run| {
        let is_route = run.params.text("transport").as_deref() == Some(one.transport.as_str())
            && run.params.0.get("rtt_ms").and_then(serde_json::Value::as_f64) == Some(one.rtt_ms);
        let workers = run.params.0.get("workers").and_then(serde_json::Value::as_u64);
        run.valid && run.client == one.client && workers == Some(one.workers) && is_route
    };
    let times = runs.iter().filter(same).filter_map(|run| run.figures.get("connect_ns").copied());
    median(times.collect()).map_or_else(|| NONE.to_owned(), duration)
}

fn is(one: &Summary, client: &str, workers: u64) -> bool {
    one.client == client && one.workers == workers
}

fn crowd(workers: u64) -> String {
    if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") }
}
