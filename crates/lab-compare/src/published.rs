//! Published experiments and their reproduction on this machine: the published figure, ours, the ratio, the command,
//! and a remark.
//!
//! A bench with `--preset NAME` marks its runs with `params.preset`; [`published_figures`] finds them in a result file.
//! The tables here hold the figures as published; `docs/reproduced.md` explains them.

use std::time::Duration;

use tickpath_lab_report::count;
use tickpath_lab_result::{Hop, PublishedFigure, PublishedUnit, ResultFile, Run, short_name};

/// Returns all published figures for which this result has its own.
pub fn published_figures(result: &ResultFile) -> Vec<PublishedFigure> {
    let experiments: [(&str, FigureFinder); 6] = [
        ("f9omstw", f9omstw),
        ("pubsub-19", pubsub_19),
        ("brokers-1k", brokers_1k),
        ("ping-10k", ping_10k),
        ("queue-200k", queue_200k),
        ("set-get-20k", set_get_20k),
    ];
    let mut rows = Vec::new();
    for (experiment, find) in experiments {
        let runs: Vec<&Run> =
            result.runs.iter().filter(|run| has_param(run, "preset", experiment) && run.valid).collect();
        let machine = machine_of(experiment);
        rows.extend(find(&runs).into_iter().map(|found| PublishedFigure {
            experiment: experiment.to_owned(),
            what: found.what,
            unit: found.unit,
            published: found.published,
            machine: machine.to_owned(),
            ours: found.ours,
            command: result.command.clone(),
            remark: Some(found.remark.to_owned()).filter(|remark| !remark.is_empty()),
        }));
    }
    rows
}

/// A function that finds the figures of an experiment among its runs.
type FigureFinder = fn(&[&Run]) -> Vec<ReproducedFigure>;

/// A figure that was found in a result.
struct ReproducedFigure {
    what: String,
    published: f64,
    ours: f64,
    unit: PublishedUnit,
    remark: &'static str,
}

fn machine_of(experiment: &str) -> &'static str {
    match experiment {
        "f9omstw" => "DL380p Gen8, E5-2680 v2 2.8 GHz, 10 pinned cores, TCP",
        "pubsub-19" => "MacBook Pro 2015, macOS 10.14.2, Redis 5.0, Python 3.7",
        "brokers-1k" => "not stated (bravenewgeek, 2015)",
        "ping-10k" => "macOS, loopback, Ruby client",
        "queue-200k" => "i7-9750H, Docker, redis-py with hiredis",
        _ => "MacBook Pro i7-4870HQ, Redis 3.2.8, Python 3.6; far: Debian VM to Mac Pro, 0.2 to 0.3 ms",
    }
}

const US: f64 = 1e3;
const MS: f64 = 1e6;

/// Finds T2−T1 of groups of orders, and the time of 100,000.
fn f9omstw(runs: &[&Run]) -> Vec<ReproducedFigure> {
    const GROUPS: [(&str, u64, [f64; 2], [f64; 2]); 5] = [
        ("g2", 10, [88.0, 107.0], [9.0, 15.0]),
        ("g3", 100, [7.0, 127.0], [3.0, 15.0]),
        ("g4", 1_000, [6.0, 91.0], [3.0, 14.0]),
        ("g5", 10_000, [6.0, 19.0], [3.0, 11.0]),
        ("g6", 100_000, [5.0, 1_841.0], [2.0, 1_564.0]),
    ];
    let mut found = Vec::new();
    for (group, orders, block, busy) in GROUPS {
        for (wait, [p50, p99]) in [("block", block), ("busy", busy)] {
            let of_group = |run: &&&Run| run.batch_text().as_deref() == Some(group) && has_param(run, "wait", wait);
            let Some(run) = runs.iter().find(of_group) else { continue };
            let Some(hop) = run.hops.get("t1_t2") else { continue };
            for (index, label, published) in [(0, "50 %", p50), (3, "99 %", p99)] {
                found.extend(percentile(hop, index, label).map(|(ns, label)| ReproducedFigure {
                    what: format!("{} orders at once, {wait}: T2−T1, {label}", count(orders)),
                    published: published * US,
                    ours: ns as f64,
                    unit: PublishedUnit::Ns,
                    remark: match has_param(run, "venue", "tcp") {
                        true => "its venue is a line of 100 Mb/s away; ours is on the same host",
                        false => "its line is TCP and its venue 100 Mb/s away; ours is shared memory on one host",
                    },
                }));
            }
        }
    }
    for (wait, seconds) in [("block", 0.844_766), ("busy", 1.023_229)] {
        let of_all = |run: &&&Run| run.batch_text().as_deref() == Some("g6") && has_param(run, "wait", wait);
        let ours = runs.iter().find(of_all).and_then(|run| run.figures.get("first_t0_to_last_t2_ns"));
        found.extend(ours.map(|ns| ReproducedFigure {
            what: format!("100,000 orders, {wait}: first T0 to last T2"),
            published: Duration::from_secs_f64(seconds).as_nanos() as f64,
            ours: *ns,
            unit: PublishedUnit::Ns,
            remark: "",
        }));
    }
    found
}

/// Finds a single publish per process from Python.
fn pubsub_19(runs: &[&Run]) -> Vec<ReproducedFigure> {
    const ROWS: [(&str, &str, f64, &str); 2] = [
        ("publish_one_process_ns", "one publish in a new process", 6.4, "it is the connect, made inside the call"),
        (
            "message_one_process_ns",
            "until the spinning subscriber has it",
            5.1,
            "13,483 µs of intrinsic latency were read as 0.013 ms: they are 13.5 ms",
        ),
    ];
    let figure = |name: &str| runs.iter().find_map(|run| run.figures.get(name).copied());
    let rows = ROWS.into_iter().filter_map(|(name, what, published, remark)| {
        let ours = figure(name)?;
        Some(ReproducedFigure {
            what: what.to_owned(),
            published: published * MS,
            ours,
            unit: PublishedUnit::Ns,
            remark,
        })
    });
    rows.collect()
}

/// Finds the 99.99th percentile of 1 KB at 10,000 messages a second.
fn brokers_1k(runs: &[&Run]) -> Vec<ReproducedFigure> {
    const ROWS: [(&str, &str, f64); 4] = [
        ("rabbitmq", "RabbitMQ", 12.0),
        ("kafka", "Kafka", 13.0),
        ("redis", "Redis publish and subscribe", 1.5),
        ("nats", "NATS", 1.2),
    ];
    let rows = ROWS.into_iter().filter_map(|(name, what, published)| {
        let run = runs.iter().find(|run| short_name(&run.target) == name)?;
        let hop = run.hops.get("one_way")?;
        // A target that could not sustain the rate has fewer samples.
        let (ours, label) = percentile(hop, 5, "99.99 %")?;
        Some(ReproducedFigure {
            what: format!("{what}, 1 KB, {label}"),
            published: published * MS,
            ours: ours as f64,
            unit: PublishedUnit::Ns,
            remark: "the load and the machine are not stated; the host's stalls are in ours",
        })
    });
    rows.collect()
}

/// Finds 10,000 PINGs, sent singly and in a single pipeline.
fn ping_10k(runs: &[&Run]) -> Vec<ReproducedFigure> {
    const PINGS: f64 = 10_000.0;
    let rate = |client: &str, depth: u64| {
        let near = |run: &&&Run| {
            run.client == client
                && has_param(run, "depth", &depth.to_string())
                && run.params.number("rtt_ms").unwrap_or(0.0) == 0.0
        };
        runs.iter().filter(near).filter_map(|run| run.throughput_per_s).max_by(f64::total_cmp)
    };
    let mut found = Vec::new();
    for (client, remark) in [("redis-py", "theirs is Ruby"), ("rust", "theirs is Ruby"), ("raw", "theirs is Ruby")] {
        for (depth, seconds, what) in [(1, 1.185_238, "one by one"), (10_000, 0.250_783, "in one pipeline")] {
            found.extend(rate(client, depth).map(|rate| ReproducedFigure {
                what: format!("10,000 PINGs {what}, {client}"),
                published: seconds * 1e9,
                ours: PINGS * 1e9 / rate,
                unit: PublishedUnit::Ns,
                remark,
            }));
        }
        if let (Some(one), Some(many)) = (rate(client, 1), rate(client, 10_000)) {
            found.push(ReproducedFigure {
                what: format!("what the pipeline gains, {client}"),
                published: 1.185_238 / 0.250_783,
                ours: many / one,
                unit: PublishedUnit::Times,
                remark: "\"10 times the baseline\" is the Ruby client's ceiling, not the server's",
            });
        }
    }
    found
}

/// Finds the rates of a Redis list as a queue.
fn queue_200k(runs: &[&Run]) -> Vec<ReproducedFigure> {
    /// Push variant, messages per push, pullers, messages per pull; published pushed and popped a second.
    const ROWS: [(&str, &str, u64, &str, f64, f64, &str); 5] = [
        ("push-ltrim", "1", 1, "1", 2_281.0, 2_145.0, ""),
        ("push", "1", 1, "1", 4_103.0, 2_719.0, "145,013 of 200,000 were popped when it was stopped"),
        (
            "push",
            "1",
            5,
            "1",
            3_427.0,
            4_306.0,
            "94,987 events of one puller are 40,000 and 54,987 left from the run before",
        ),
        (
            "push",
            "2000",
            1,
            "1",
            11_041.0,
            2_666.0,
            "called 5 at a time; its batches were about 2,000 in MULTI and EXEC",
        ),
        ("push", "2000", 5, "1", 9_152.0, 9_118.0, ""),
    ];
    let mut found = Vec::new();
    for (variant, pipeline, pullers, pull, pushed, popped, remark) in ROWS {
        let this = |run: &&&Run| {
            has_param(run, "push_variant", variant)
                && run.batch_text().as_deref() == Some(pipeline)
                && has_param(run, "pullers", &pullers.to_string())
                && has_param(run, "pull", pull)
        };
        let Some(run) = runs.iter().find(this) else { continue };
        let what = format!("1×{pullers} {variant}, {pipeline} pushed together");
        for (name, what_rate, published) in
            [("push_rate_per_s", "pushed", pushed), ("pull_rate_per_s", "popped by all", popped)]
        {
            let ours = run.figures.get(name).copied();
            found.extend(ours.map(|ours| ReproducedFigure {
                what: format!("{what}: {what_rate}"),
                published,
                ours,
                unit: PublishedUnit::PerS,
                remark,
            }));
        }
    }
    let good =
        runs.iter().find(|run| has_param(run, "pull_variant", "count") && run.batch_text().as_deref() == Some("5"));
    found.extend(good.and_then(|run| run.figures.get("pull_rate_per_s")).map(|&ours| ReproducedFigure {
        what: "1×1, 5 pushed together, one puller that asks for 100: popped".to_owned(),
        published: 2_666.0,
        ours,
        unit: PublishedUnit::PerS,
        remark: "the published puller makes two round trips a message (BRPOP and GET); by the hundred one keeps up",
    }));
    found
}

/// Finds the rates of setting a key and getting it again.
fn set_get_20k(runs: &[&Run]) -> Vec<ReproducedFigure> {
    const ROWS: [(&str, u64, f64, f64); 5] = [
        ("redis-py", 1, 8_655.0, 1_259.0),
        ("redis-py-pipeline", 1, 9_670.0, 2_219.0),
        ("redis-py-asyncio", 1, 5_393.0, f64::NAN),
        ("redis-py-asyncio", 100, 10_770.0, 12_073.0),
        ("redis-py-uvloop", 100, 17_854.0, 18_315.0),
    ];
    let mut found = Vec::new();
    for (client, workers, near, far) in ROWS {
        for (rtt_ms, route, published) in [(0.0, "local", near), (0.25, "0.25 ms away", far)] {
            let this = |run: &&&Run| {
                run.client == client
                    && run.params.number("workers") == Some(workers as f64)
                    && run.params.number("rtt_ms") == Some(rtt_ms)
            };
            let rates = runs.iter().filter(this).filter_map(|run| run.figures.get("throughput_with_connect_per_s"));
            let Some(&ours) = rates.max_by(|a, b| a.total_cmp(b)) else { continue };
            if published.is_finite() {
                let what = format!("{client}, {workers} at a time, {route}: best of five");
                found.push(ReproducedFigure {
                    what,
                    published,
                    ours,
                    unit: PublishedUnit::PerS,
                    remark: "the time to connect is in both",
                });
            }
        }
    }
    found
}

/// Returns a percentile by its index, with its label; with too few samples the largest value instead, or `None` for a
/// median.
fn percentile(hop: &Hop, index: usize, label: &'static str) -> Option<(u64, &'static str)> {
    let largest = hop.max_ns.filter(|_| index > 0).map(|ns| (ns, "the largest, for want of samples"));
    hop.percentiles()[index].map(|ns| (ns, label)).or(largest)
}

fn has_param(run: &Run, name: &str, value: &str) -> bool {
    run.params.text(name).as_deref() == Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_run_is_shown_beside_the_published_figures() {
        let mut run = Run { client: "redis-py".to_owned(), valid: true, ..Run::default() };
        run.params.set("preset", "set-get-20k");
        run.params.set("workers", 1);
        run.params.set("rtt_ms", 0.0);
        run.figures.insert("throughput_with_connect_per_s".to_owned(), 17_310.0);
        let mut result = ResultFile::new("clients", "tickpath bench clients --preset set-get-20k", "");
        result.runs.push(run);
        let rows = published_figures(&result);
        let [row] = &rows[..] else { panic!("one row: {rows:?}") };
        assert_eq!((row.experiment.as_str(), row.ours / row.published), ("set-get-20k", 2.0));
        assert_eq!((row.unit, row.published, row.ours), (PublishedUnit::PerS, 8_655.0, 17_310.0));
        result.runs[0].params.set("preset", "another");
        assert!(published_figures(&result).is_empty());
    }

    #[test]
    fn too_few_samples_have_no_median_and_no_percentile_by_that_name() {
        let hop = Hop { count: 10, max_ns: Some(55_000), ..Hop::default() };
        let hops = [("t1_t2".to_owned(), hop)].into();
        let mut run = Run { batch: Some("g2".into()), valid: true, hops, ..Run::default() };
        run.params.set("preset", "f9omstw");
        run.params.set("wait", "block");
        let rows = published_figures(&ResultFile { runs: vec![run], ..ResultFile::default() });
        let [row] = &rows[..] else { panic!("one row: {rows:?}") };
        assert_eq!(row.what, "10 orders at once, block: T2−T1, the largest, for want of samples");
        assert_eq!(row.ours, 55_000.0);
    }
}
