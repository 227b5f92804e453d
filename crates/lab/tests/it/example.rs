//! Results to render: one with everything in it, and one that is as small and as hostile as the contract allows.

use hdrhistogram::Histogram;
use tickpath_lab::result::{
    Actor, Comparison, Counts, Hop, Host, Memory, Phase, ResultFile, Run, Series, Software, Stage, StageKind,
};

/// A text that would run, steer a terminal or break a table if a rendering let it through.
pub const HOSTILE: &str = "<script>alert('x')</script>\u{1b}[31m | \"q\", `b` & \u{202e}end\r\n=1+1";

/// A result that uses every key of the contract.
pub fn example() -> ResultFile {
    let command = "tickpath bench orders --target shm:// --repeat 2";
    let mut result = ResultFile::new("orders", command, "2026-01-02T03:04:05Z");
    result.commit = Some("0123abc".to_owned());
    result.host = host();
    result.runs = vec![path_run(1), path_run(2), redis_run(), group_run("g1", 10), group_run("g6", 100_000)];
    result.comparisons = vec![
        Comparison::new("redis_to_log_tick_to_order", "p50_ns", 93_000.0, 3_000.0, Some((29.8, 32.6))),
        Comparison::new("mutex_to_split_t0_t2", "p99_ns", 900.0, 1_800.0, None),
        Comparison::new("nothing_to_nothing", "throughput_per_s", 1.0, 0.0, None),
    ];
    result
}

/// A result without hops, with nulls and with hostile texts wherever a text may stand.
pub fn minimal() -> ResultFile {
    let mut result = ResultFile::new(HOSTILE, HOSTILE, HOSTILE);
    let mut hostile = Run { target: HOSTILE.to_owned(), client: HOSTILE.to_owned(), repeat: 1, ..Run::default() };
    hostile.layout = Some(HOSTILE.to_owned());
    hostile.notes = vec![HOSTILE.to_owned()];
    hostile.software.server = Some(HOSTILE.to_owned());
    hostile.params.set(HOSTILE, HOSTILE);
    hostile.actors = vec![Actor { name: HOSTILE.to_owned(), role: HOSTILE.to_owned(), ..Actor::default() }];
    hostile.stages = vec![Stage { name: HOSTILE.to_owned(), p50_ns: Some(5.0), kind: StageKind::Bounded }];
    let mut empty = hostile.clone();
    empty.batch = Some(HOSTILE.into());
    empty.hops.insert("t0_t1".to_owned(), Hop::default());
    empty.hops.insert(HOSTILE.to_owned(), hop(30, 100, 5));
    result.runs = vec![Run { repeat: 1, ..Run::default() }, hostile, empty];
    result.host.cpu = HOSTILE.to_owned();
    let unknown = Comparison { name: HOSTILE.to_owned(), figure: HOSTILE.to_owned(), ..Comparison::default() };
    result.comparisons = vec![Comparison { ratio: Some(2.0), ..unknown.clone() }, unknown];
    result
}

/// A hop of `samples` times around `middle_ns` with a long tail; the same seed gives the same hop.
pub fn hop(samples: u64, middle_ns: u64, seed: u64) -> Hop {
    let (raw, unstalled, worst) = histograms(samples, middle_ns, seed);
    Hop::from_histogram(&raw, Some(&unstalled), 0, worst)
}

/// The raw distribution, the one without its stalls, and the three largest samples, the largest first.
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
    run.counts = Counts { sent: 120_000, received: 119_999, lost: 1, ..Counts::default() };
    run.throughput_per_s = Some(9_999.5);
    run.elapsed_ns = Some(12_000_000_000);
    run.params.set("size_bytes", 48);
    run.params.set("wait", "busy");
    run.params.set("cpus", vec![0, 1]);
    run.figures.insert("clock_cost_ns".to_owned(), 9.5);
    run.figures.insert("one_way_over_transfer_ratio".to_owned(), 1.3);
    let (name, role) = ("0".to_owned(), "reader".to_owned());
    run.actors = vec![Actor { name, role, count: 119_999, rate_per_s: Some(9_999.5) }];
    run.series = vec![Series { name: "left".to_owned(), t_ns: vec![0, 1_000], value: vec![0.0, 3.0] }];
    run.stages = vec![
        Stage { name: "seen_to_sent".to_owned(), p50_ns: Some(42.0), kind: StageKind::Measured },
        Stage { name: "kernel".to_owned(), p50_ns: Some(900.0), kind: StageKind::Bounded },
        Stage { name: "rest".to_owned(), p50_ns: None, kind: StageKind::Unexplained },
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
    run.phase = Phase::Cold;
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
    run.counts = Counts { sent: 19, received: 19, ..Counts::default() };
    run.params.set("size_bytes", 1_024);
    run.hops.insert("one_way".to_owned(), Hop { negative: 2, ..hop(19, 6_000_000, 7) });
    run.hops.insert("publish".to_owned(), hop(5_000, 80_000, 8));
    run
}

fn group_run(group: &str, orders: u64) -> Run {
    let mut run = Run { target: "shm://".to_owned(), repeat: 1, valid: true, ..Run::default() };
    run.client = "rust".to_owned();
    run.layout = Some("split".to_owned());
    run.batch = Some(group.into());
    run.params.set("wait", "busy");
    run.counts = Counts { sent: orders, received: orders, ..Counts::default() };
    run.memory = Some(Memory { before_bytes: 5_000_000, after_bytes: 25_000_000, peak_bytes: 26_000_000 });
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
