//! The comparisons of runs that took turns and differ in a single setting.

use serde_json::Value;

use crate::clients::TradingClient;
use tickpath_lab_compare::{PairedRuns, RatioLine, entry_or_default, pair_with_first, ratio_table, value as figure};
use tickpath_lab_result::{Comparison, Run};

/// Settings that took turns, each with the hops that are compared.
const COMPARED_SETTINGS: [(&str, &[&str]); 5] = [
    ("client", &["tick_to_order", "order_ack", "order_round_trip"]),
    ("target", &["t0_t2", "t1_t2", "order_round_trip"]),
    ("sessions", &["t0_t2", "t1_t2", "order_round_trip"]),
    ("ack", &["order_ack"]),
    ("beside", &["t0_t2", "t1_t2", "order_round_trip"]),
];

/// Returns the ratios of runs that differ only in their client, target, sessions, ack level or the client beside them,
/// each to the first; and the ratios of an OMS's time with an order to one `send`.
pub fn comparisons(runs: &[Run]) -> Vec<Comparison> {
    let hops = COMPARED_SETTINGS.into_iter().flat_map(|(param, hops)| hops.iter().map(move |hop| (param, hop)));
    ratio_table(hops.flat_map(|(param, hop)| compare_setting(runs, param, hop)).chain(compare_with_send(runs)))
}

fn compare_setting(runs: &[Run], param: &str, hop: &str) -> Vec<RatioLine> {
    let median = format!("{hop}.p50_ns");
    let has = |run: &&Run| figure(run, &median).is_some();
    let found = pair_with_first(runs.iter().filter(has), |run| setup(run, Some(param)), |run| value(run, param));
    let several = found.iter().any(|one| one.setup != found[0].setup);
    let line = |one: &PairedRuns<'_>| {
        let (first, other) = (&one.first, &one.other);
        let name = match param {
            "client" | "target" | "beside" | "ack" => format!("{other}_to_{first}_{hop}"),
            _ => format!("{other}_to_{first}_{param}_{hop}"),
        };
        one.line(&if several { format!("{name} {}", one.setup) } else { name }, &median)
    };
    found.iter().map(line).collect()
}

fn compare_with_send(runs: &[Run]) -> Vec<RatioLine> {
    const T1_T2: &str = "t1_t2.p50_ns";
    let mut ways: Vec<(String, Vec<[Option<f64>; 2]>)> = Vec::new();
    // In a burst most of that time is the wait for earlier orders.
    for run in runs.iter().filter(|run| run.params.0.contains_key("interval_ns")) {
        if let Some((ours, send)) = figure(run, T1_T2).zip(figure(run, "send_ns")) {
            entry_or_default(&mut ways, setup(run, None)).push([ours, send].map(|ns| run.valid.then_some(ns)));
        }
    }
    let several = ways.len() > 1;
    let name = |way: &str| if several { format!("t1_t2_to_send {way}") } else { "t1_t2_to_send".to_owned() };
    ways.into_iter().map(|(way, pairs)| RatioLine::new(&name(&way), T1_T2, pairs)).collect()
}

fn value(run: &Run, param: &str) -> String {
    match param {
        "client" => run.client.clone(),
        "target" => run.target.split("://").next().unwrap_or_default().to_owned(),
        "ack" => run.params.text("ack").unwrap_or_else(|| "os".to_owned()),
        _ => run.params.0.get(param).map_or_else(String::new, value_text),
    }
}

/// Returns a run's setup, without its repetition and the given setting.
fn setup(run: &Run, except: Option<&str>) -> String {
    let is_ours = run.client.is_empty() || run.client == TradingClient::RUST_NAME;
    let client = (except != Some("client") && !is_ours).then(|| run.client.clone());
    let target = (except != Some("target")).then(|| value(run, "target"));
    // The number of active sessions follows from the number of sessions.
    let skipped = |name: &str| Some(name) == except || name == "active" && except == Some("sessions");
    let shown = ["wait", "sessions", "active", "ack", "in_flight", "beside", "rate_per_s"];
    let params = shown.into_iter().filter(|name| !skipped(name)).filter_map(|name| {
        let value = run.params.0.get(name)?;
        Some(if value.is_string() { value_text(value) } else { format!("{name}={}", value_text(value)) })
    });
    let own = [client, target, run.layout.clone(), run.batch_text()];
    own.into_iter().flatten().chain(params).collect::<Vec<_>>().join(" ")
}

fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use tickpath_clock::Calibration;

    use super::*;
    use tickpath_lab_harness::samples::Samples;

    /// Builds a run whose hops all take `ns`.
    fn run(target: &str, sessions: u64, repeat: u32, ns: u64) -> Run {
        let mut run = Run { target: target.to_owned(), repeat, valid: true, ..Run::default() };
        run.params.set("sessions", sessions);
        run.params.set("active", sessions.min(2));
        let hop = Samples(vec![(0, ns); 100]).hop(&Calibration::nanoseconds(), &[]);
        run.hops = ["t0_t2", "t1_t2"].map(|name| (name.to_owned(), hop.clone())).into();
        run
    }

    fn names(runs: &[Run]) -> Vec<String> {
        comparisons(runs).into_iter().map(|comparison| comparison.name).collect()
    }

    #[test]
    fn runs_that_took_turns_are_compared_with_the_first() {
        let runs =
            [run("tcp://", 1, 1, 100), run("tcp://", 9, 1, 200), run("tcp://", 1, 2, 100), run("tcp://", 9, 2, 300)];
        let found = comparisons(&runs);
        assert_eq!(names(&runs), ["9_to_1_sessions_t0_t2", "9_to_1_sessions_t1_t2"]);
        let ratio = |of: Option<f64>| of.map(|ratio| ratio.round());
        assert_eq!((ratio(found[0].low), ratio(found[0].high)), (Some(2.0), Some(3.0)));
    }

    #[test]
    fn runs_that_differ_in_two_things_are_not_compared() {
        let all = [run("unix://", 1, 1, 1), run("tcp://", 1, 1, 1), run("unix://", 9, 1, 1), run("tcp://", 9, 1, 1)];
        let found = names(&all);
        assert_eq!(found.len(), 8, "two hops, two targets by sessions and two sessions by targets: {found:?}");
        assert!(found.contains(&"tcp_to_unix_t0_t2 sessions=9 active=2".to_owned()), "{found:?}");
        assert_eq!(names(&[all[0].clone(), all[3].clone()]), Vec::<String>::new());
    }

    #[test]
    fn clients_are_compared_on_each_target_and_targets_with_each_client() {
        let by = |client: &str, target, ns| Run { client: client.to_owned(), ..run(target, 1, 1, ns) };
        let mut all =
            [by("rust", "unix://", 1), by("python", "unix://", 2), by("rust", "tcp://", 3), by("python", "tcp://", 4)];
        for run in &mut all {
            run.hops.insert("order_ack".to_owned(), run.hops["t0_t2"].clone());
        }
        let found = names(&all);
        for name in [
            "python_to_rust_order_ack unix sessions=1 active=1",
            "python_to_rust_order_ack tcp sessions=1 active=1",
            "tcp_to_unix_t0_t2 sessions=1 active=1",
            "tcp_to_unix_t0_t2 python sessions=1 active=1",
        ] {
            assert!(found.contains(&name.to_owned()), "{name}: {found:?}");
        }
        assert_eq!(found.len(), 6, "one hop of two clients by targets, two of two targets by clients: {found:?}");
    }

    #[test]
    fn invalid_runs_are_not_compared() {
        let bad = Run { valid: false, ..run("tcp://", 1, 1, 1) };
        assert_eq!(names(&[run("unix://", 1, 1, 1), bad]), Vec::<String>::new());
    }

    #[test]
    fn only_paced_orders_are_compared_with_a_send() {
        let mut run = run("tcp://", 1, 1, 300);
        run.figures.insert("send_ns".to_owned(), 100.0);
        assert_eq!(names(&[run.clone()]), Vec::<String>::new());
        run.params.set("interval_ns", 1_000_000);
        let found = comparisons(&[run]);
        assert_eq!((found[0].name.as_str(), found[0].ratio.map(f64::round)), ("t1_t2_to_send", Some(3.0)));
    }
}
