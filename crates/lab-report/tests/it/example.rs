//! Results to render: a result with every key of the contract, a result with runs of every workload, and the smallest
//! and most hostile result that the contract allows.

use hdrhistogram::Histogram;
use serde_json::Value;
use tickpath_lab_result::{
    Actor, Comparison, Floor, Hop, Host, MemoryUse, MessageCounts, PublishedFigure, ResultFile, Run, RunPhase, Series,
    Software, Stage, StageKind,
};

/// A text that would run, steer a terminal or break a table if a rendering did not escape it.
pub const HOSTILE: &str = "<script>alert('x')</script>\u{1b}[31m | \"q\", `b` & \u{202e}end\r\n=1+1";

/// Builds a result that uses every key of the contract.
pub fn example() -> ResultFile {
    let command = "tickpath bench orders --target shm:// --repeat 2";
    let mut result = ResultFile::new("orders", command, "2026-01-02T03:04:05Z");
    result.commit = Some("0123abc".to_owned());
    result.profile = Some("release".to_owned());
    result.host = host();
    result.runs = vec![path_run(1), path_run(2), redis_run(), group_run("g1", 10), group_run("g6", 100_000)];
    result.comparisons = vec![
        Comparison::new("redis_to_log_tick_to_order", "p50_ns", 93_000.0, 3_000.0, Some((29.8, 32.6))),
        Comparison::new("mutex_to_split_t0_t2", "p99_ns", 900.0, 1_800.0, None),
        Comparison::new("nothing_to_nothing", "throughput_per_s", 1.0, 0.0, None),
    ];
    result
}

/// Builds a result with two repeats of every workload that has its own section.
pub fn workloads() -> ResultFile {
    let mut result = ResultFile::new("every workload", "tickpath report A B", "2026-01-02T03:04:05Z");
    result.host = host();
    for repeat in [1, 2] {
        result.runs.extend(pubsub_runs(repeat));
        result.runs.extend(queue_runs(repeat));
        result.runs.extend(pipeline_runs(repeat));
        result.runs.extend(clients_runs(repeat));
        result.runs.extend(explain_runs(repeat));
    }
    result.comparisons = vec![
        Comparison::new("redis_to_log_one_way", "one_way.p50_ns", 50_000.0, 400.0, Some((120.0, 130.0))),
        Comparison::new("gain_hiredis", "one_way.p50_ns", 200_000.0, 160_000.0, Some((0.8, 1.5))),
    ];
    result
}

/// Builds a result without hops, with nulls, and with hostile texts in every text field.
pub fn minimal() -> ResultFile {
    let mut result = ResultFile::new(HOSTILE, HOSTILE, HOSTILE);
    let mut hostile = Run { target: HOSTILE.to_owned(), client: HOSTILE.to_owned(), repeat: 1, ..Run::default() };
    hostile.layout = Some(HOSTILE.to_owned());
    hostile.notes = vec![HOSTILE.to_owned()];
    hostile.finding = Some(HOSTILE.to_owned());
    hostile.software.server = Some(HOSTILE.to_owned());
    hostile.params.set(HOSTILE, HOSTILE);
    hostile.actors = vec![Actor { name: HOSTILE.to_owned(), role: HOSTILE.to_owned(), ..Actor::default() }];
    hostile.stages = vec![Stage {
        name: HOSTILE.to_owned(),
        label: Some(HOSTILE.to_owned()),
        p50_ns: Some(5.0),
        bounds_ns: Some([0.0, 5.0]),
        kind: StageKind::Bounded,
    }];
    let mut empty = hostile.clone();
    empty.batch = Some(HOSTILE.into());
    empty.hops.insert("t0_t1".to_owned(), Hop::default());
    empty.hops.insert(HOSTILE.to_owned(), hop(30, 100, 5));
    result.runs = vec![Run { repeat: 1, ..Run::default() }, hostile, empty];
    result.host.cpu = HOSTILE.to_owned();
    let unknown = Comparison { name: HOSTILE.to_owned(), figure: HOSTILE.to_owned(), ..Comparison::default() };
    let published =
        PublishedFigure { experiment: HOSTILE.to_owned(), what: HOSTILE.to_owned(), ..PublishedFigure::default() };
    result.published =
        vec![PublishedFigure { machine: HOSTILE.to_owned(), remark: Some(HOSTILE.to_owned()), ..published }];
    result.comparisons = vec![Comparison { ratio: Some(2.0), ..unknown.clone() }, unknown];
    result
}

/// Builds a hop of `samples` times around `middle_ns` with a long tail; the same seed gives the same hop.
pub fn hop(samples: u64, middle_ns: u64, seed: u64) -> Hop {
    let (raw, unstalled, worst) = histograms(samples, middle_ns, seed);
    Hop::from_histogram(&raw, Some(&unstalled), 0, worst)
}

/// Returns the raw distribution, the distribution without its stalls, and the three largest samples, the largest first.
pub fn histograms(samples: u64, middle_ns: u64, seed: u64) -> (Histogram<u64>, Histogram<u64>, [u64; 3]) {
    let mut raw = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).expect("valid bounds");
    let mut unstalled = raw.clone();
    let mut times = Vec::new();
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    for index in 0..samples {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spread = (state >> 33) % middle_ns.max(1);
        let stalled = index % 499 == 498;
        let ns = middle_ns / 2 + spread + if stalled { 100 * middle_ns } else { 0 };
        raw.record(ns).expect("within the bounds");
        if !stalled {
            unstalled.record(ns).expect("within the bounds");
        }
        times.push(ns);
    }
    times.sort_unstable_by(|a, b| b.cmp(a));
    times.resize(times.len().max(3), 0);
    (raw, unstalled, [times[0], times[1], times[2]])
}

fn host() -> Host {
    Host {
        cpu: "Example CPU @ 3.0 GHz".to_owned(),
        cores: 2,
        kernel: "Linux 6.1".to_owned(),
        governor: Some("performance".to_owned()),
        hypervisor: Some("kvm".to_owned()),
        clock_source: "tsc".to_owned(),
        clock_cost_ns: Some(9.5),
        cache_line_transfer_ns: Some(150.0),
        spin_gap_p9999_ns: Some(4_200.0),
        steal_percent: Some(0.4),
    }
}

fn path_run(repeat: u32) -> Run {
    let mut run = Run { target: "shm://demo".to_owned(), repeat, valid: true, ..Run::default() };
    run.client = "rust".to_owned();
    run.layout = Some("inline".to_owned());
    run.counts = MessageCounts { sent: 120_000, received: 119_999, lost: 1, ..MessageCounts::default() };
    run.throughput_per_s = Some(9_999.5);
    run.elapsed_ns = Some(12_000_000_000);
    run.params.set("size_bytes", 48);
    run.params.set("wait", "busy");
    run.params.set("cpus", vec![0, 1]);
    run.figures.insert("clock_cost_ns".to_owned(), 9.5);
    run.figures.insert("one_way_over_transfer_ratio".to_owned(), 1.3);
    let (name, role) = ("0".to_owned(), "reader".to_owned());
    run.floor = Some(Floor {
        cache_line_transfer_before_ns: 150.0,
        cache_line_transfer_after_ns: 151.5,
        counter_offset_ns: 160,
        steal_percent: Some(0.4),
    });
    run.actors = vec![Actor { name, role, count: 119_999, rate_per_s: Some(9_999.5) }];
    run.series = vec![Series { name: "left".to_owned(), t_ns: vec![0, 1_000], value: vec![0.0, 3.0] }];
    run.stages = vec![
        stage("seen_to_sent", Some(42.0), StageKind::Measured),
        stage("kernel", Some(900.0), StageKind::Bounded),
        stage("rest", None, StageKind::Unexplained),
    ];
    let middles = [("one_way", 190), ("t0_t1", 210), ("t1_t2", 900), ("t0_t2", 1_100), ("tick_to_order", 1_400)];
    for (name, middle) in middles {
        run.hops.insert(name.to_owned(), hop(120_000, middle, u64::from(repeat)));
    }
    run
}

fn redis_run() -> Run {
    let mut run = Run { target: "redis://127.0.0.1:6379".to_owned(), client: "redis-py".to_owned(), ..Run::default() };
    run.repeat = 1;
    run.phase = RunPhase::Cold;
    run.notes = vec!["The achieved rate was below 99 %.".to_owned()];
    run.software = Software {
        server: Some("redis".to_owned()),
        server_version: Some("7.2.4".to_owned()),
        client: Some("redis-py".to_owned()),
        client_version: Some("5.0.1".to_owned()),
        runtime: Some("CPython 3.11".to_owned()),
        ..Software::default()
    };
    run.software.server_settings.set("appendonly", "no");
    run.batch = Some(5.into());
    run.counts = MessageCounts { sent: 19, received: 19, ..MessageCounts::default() };
    run.params.set("size_bytes", 1_024);
    run.hops.insert("one_way".to_owned(), Hop { negative: 2, negative_max_ns: Some(40), ..hop(19, 6_000_000, 7) });
    run.hops.insert("publish".to_owned(), hop(5_000, 80_000, 8));
    run
}

fn group_run(group: &str, orders: u64) -> Run {
    let mut run = Run { target: "shm://".to_owned(), repeat: 1, valid: true, ..Run::default() };
    run.client = "rust".to_owned();
    run.layout = Some("split".to_owned());
    run.batch = Some(group.into());
    run.params.set("wait", "busy");
    run.counts = MessageCounts { sent: orders, received: orders, ..MessageCounts::default() };
    run.memory = Some(MemoryUse { before_bytes: 5_000_000, after_bytes: 25_000_000, peak_bytes: 26_000_000 });
    for name in ["t0_t1", "t1_t2", "t0_t2", "t0_gap", "t1_gap", "t2_gap", "order_ack"] {
        run.hops.insert(name.to_owned(), hop(orders, 1_000, orders));
    }
    for (name, value) in [
        ("orders_sending", orders as f64),
        ("orders_queued", 0.0),
        ("orders_rejected", 0.0),
        ("last_order_t0_ns", 9.0e7),
        ("last_order_t1_ns", 9.1e7),
        ("last_order_t2_ns", 9.2e7),
        ("first_t0_to_last_t2_ns", 9.2e7),
        ("last_t2_to_last_report_ns", 4.0e6),
        ("bytes_per_order", 199.5),
        ("journal_bytes_per_order", 152.0),
    ] {
        run.figures.insert(name.to_owned(), value);
    }
    run
}

fn run(target: &str, client: &str, repeat: u32, params: &[(&str, Value)]) -> Run {
    let mut run = Run { target: target.to_owned(), repeat, valid: true, ..Run::default() };
    run.client = client.to_owned();
    run.counts = MessageCounts { sent: 20_000, received: 20_000, ..MessageCounts::default() };
    params.iter().for_each(|(name, value)| run.params.set(name, value.clone()));
    run
}

/// Builds both targets cold, after two idle periods, steady, and as round trips.
fn pubsub_runs(repeat: u32) -> Vec<Run> {
    let mut runs = Vec::new();
    for (target, middle) in [("shm://", 400), ("redis://127.0.0.1:6379", 50_000)] {
        let phases = [
            (RunPhase::Cold, None, 20),
            (RunPhase::Idle, Some(1_000_000), 100),
            (RunPhase::Idle, Some(1_000_000_000), 4),
            (RunPhase::Steady, None, 20_000),
        ];
        let base = |phase| Run { phase, ..run(target, "rust", repeat, &pubsub_params()) };
        for (phase, idle_ns, samples) in phases {
            let mut run = base(phase);
            idle_ns.into_iter().for_each(|ns| run.params.set("idle_ns", ns));
            run.hops.insert("one_way".to_owned(), hop(samples, middle, u64::from(repeat)));
            run.hops.insert("publish".to_owned(), hop(samples, middle / 2, u64::from(repeat)));
            runs.push(run);
        }
        let mut round_trip = base(RunPhase::Steady);
        round_trip.hops.insert("round_trip".to_owned(), hop(2_000, 2 * middle, u64::from(repeat)));
        runs.push(round_trip);
    }
    runs
}

fn pubsub_params() -> [(&'static str, Value); 3] {
    [("size_bytes", 1_024.into()), ("readers", 1.into()), ("wait", "block".into())]
}

/// Builds a puller that falls behind, and two that keep up.
fn queue_runs(repeat: u32) -> Vec<Run> {
    let mut runs = Vec::new();
    for (pullers, rate) in [(1u64, 2_000.0), (2, 5_000.0)] {
        let params: [(&str, Value); 3] = [("pullers", pullers.into()), ("pull", 1.into()), ("size_bytes", 200.into())];
        let mut run = run("redis://127.0.0.1:6379", "redis-py", repeat, &params);
        run.hops.insert("in_queue".to_owned(), hop(20_000, 3_000_000, pullers));
        run.figures.insert("push_rate_per_s".to_owned(), 10_000.0);
        run.figures.insert("kept_up_percent".to_owned(), 100.0 * rate * pullers as f64 / 10_000.0);
        let names = (1..=pullers).map(|number| (format!("puller{number}"), "puller", rate));
        for (name, role, rate) in std::iter::once(("pusher".to_owned(), "pusher", 10_000.0)).chain(names) {
            run.series.push(series(&format!("{name}_rate_per_s"), |step| if step < 15.0 { rate } else { 0.0 }));
            run.actors.push(Actor { name, role: role.to_owned(), count: 20_000, rate_per_s: Some(rate) });
        }
        run.finding = Some(format!("{pullers} pullers fall behind, says the workload"));
        run.series.push(series("backlog", |step| 800.0 * step.min(20.0 - step)));
        runs.push(run);
    }
    runs
}

/// Builds twenty values, a tenth of a second apart.
fn series(name: &str, value: impl Fn(f64) -> f64) -> Series {
    let steps = || (1..=20u32).map(f64::from);
    let t_ns = steps().map(|step| (step * 1e8) as u64).collect();
    Series { name: name.to_owned(), t_ns, value: steps().map(value).collect() }
}

/// Builds two commands with two clients at four depths, and a command at a single depth.
fn pipeline_runs(repeat: u32) -> Vec<Run> {
    let mut runs = Vec::new();
    for (command, client, one) in
        [("PING", "rust", 20e3), ("PING", "redis-py", 9e3), ("SET", "rust", 18e3), ("SET", "redis-py", 8e3)]
    {
        for (depth, gain) in [(1u64, 1.0), (10, 8.0), (100, 30.0), (1_000, 32.0)] {
            let mut run = pipeline_run(command, client, repeat, depth, one * gain);
            run.figures.insert("knee_depth".to_owned(), 100.0);
            run.figures.insert("syscalls_per_command".to_owned(), 2.0 / depth as f64);
            run.figures.insert("reply_memory_bytes".to_owned(), 7.0 * depth as f64);
            runs.push(run);
        }
    }
    runs.push(pipeline_run("evalsha", "rust", repeat, 1, 16_000.0));
    runs
}

fn pipeline_run(command: &str, client: &str, repeat: u32, depth: u64, per_s: f64) -> Run {
    let params: [(&str, Value); 3] = [("command", command.into()), ("depth", depth.into()), ("connections", 1.into())];
    let mut run = run("redis://127.0.0.1:6379", client, repeat, &params);
    run.throughput_per_s = Some(per_s);
    run.hops.insert("round_trip".to_owned(), hop(1_000, (1e9 / per_s) as u64 * depth, depth));
    run
}

/// Builds two clients over three routes.
fn clients_runs(repeat: u32) -> Vec<Run> {
    let mut runs = Vec::new();
    for (client, workers, rate) in [("redis-py", 1u64, 7_000.0), ("redis-py-asyncio", 100, 13_000.0)] {
        for (transport, rtt_ms) in [("tcp", 0.0), ("tcp", 0.25), ("unix", 0.0)] {
            let params: [(&str, Value); 3] =
                [("transport", transport.into()), ("rtt_ms", rtt_ms.into()), ("workers", workers.into())];
            let mut run = run("redis://", client, repeat, &params);
            let rate = rate / (1.0 + rtt_ms) + 100.0 * f64::from(repeat);
            run.throughput_per_s = Some(rate);
            run.figures.insert("connect_ns".to_owned(), 3e6);
            run.figures.insert("throughput_with_connect_per_s".to_owned(), rate - 100.0);
            run.hops.insert("round_trip".to_owned(), hop(2_000, 140_000, workers));
            runs.push(run);
        }
    }
    runs
}

fn stage(name: &str, p50_ns: Option<f64>, kind: StageKind) -> Stage {
    Stage { name: name.to_owned(), p50_ns, kind, ..Stage::default() }
}

/// Builds stages of all three kinds; the cold stages include the process's start before the call.
fn explain_runs(repeat: u32) -> Vec<Run> {
    use StageKind::{Bounded, Measured, Unexplained};
    let cold = [("import_redis", 6e7, Measured), ("connect_tcp", 4.7e6, Measured), ("send", 1.8e5, Measured)];
    let steady =
        [("encode", 1.1e4, Measured), ("kernel_and_wake_up", 9.1e4, Bounded), ("unexplained", 5e3, Unexplained)];
    let phases = [(RunPhase::Cold, 19, 5_900_000, cold), (RunPhase::Steady, 5_000, 110_000, steady)];
    let explained = |(phase, samples, middle, stages): (RunPhase, u64, u64, [(&str, f64, StageKind); 3])| {
        let base = run("redis://127.0.0.1:6379", "redis-py", repeat, &[("size_bytes", 17.into())]);
        let mut run = Run { phase, ..base };
        run.hops.insert("one_way".to_owned(), hop(samples, middle, u64::from(repeat)));
        run.figures.insert("message_ns".to_owned(), middle as f64);
        run.timed_from = Some("call".to_owned());
        let stage = |(name, ns, kind): (&str, f64, StageKind)| {
            let label = (name == "connect_tcp").then(|| "connect: the first packet and its answer".to_owned());
            let bounds_ns = (kind == Bounded).then_some([ns, 1.2 * ns]);
            Stage { name: name.to_owned(), label, p50_ns: Some(ns), bounds_ns, kind }
        };
        run.stages = stages.map(stage).to_vec();
        run
    };
    phases.map(explained).to_vec()
}
