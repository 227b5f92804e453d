//! `bench path --via`: by our own client and by ccxt, against simulated exchanges. No test here checks a time.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;

use crate::brokers::python;
use crate::imports::{package, redis};
use crate::other_clients::prepare_clients;
use crate::program::{tickpath, without_waits};
use crate::reports::{bench, load, number, text};

/// The steps of an order, which follow each other without a hole.
const STEPS: [&str; 8] = [
    "wire_to_read",
    "read_to_framed",
    "framed_to_parsed",
    "parsed_to_sent",
    "sent_to_handed",
    "handed_to_encoded",
    "encoded_to_ready",
    "ready_to_written",
];
const TICKS: u64 = 12;

#[test]
fn each_tick_of_an_exchange_becomes_an_order_whose_steps_add_up() {
    for (via, rate) in [("okx", 25), ("binance", 9)] {
        let folder = tempdir().unwrap();
        let result = bench(folder.path(), via, &format!("path --via {via} --count {TICKS} --rate {rate}"));
        let run = &result["runs"][0];
        assert_eq!(run["target"], format!("{via}+wss://"));
        counts_are_whole(run);
        for name in STEPS.into_iter().chain(["own_work", "own_work_with_tls", "tick_to_order", "order_round_trip"]) {
            assert_eq!(number(&run["hops"][name]["count"]), TICKS as f64, "{name}: {run}");
        }
        let mean = |name: &str| number(&run["hops"][name]["mean_ns"]);
        let sum: f64 = STEPS.into_iter().map(mean).sum();
        // Each sample is rounded down to a nanosecond, and a histogram keeps three digits.
        assert!((sum / mean("wire_to_written") - 1.0).abs() < 0.01, "{sum}: {run}");
        assert!(mean("own_work") < mean("own_work_with_tls"), "{run}");
    }
}

#[test]
fn ccxt_trades_the_same_ticks_over_each_bus() {
    let Some(redis) = redis() else { return };
    prepare_clients();
    let folder = tempdir().unwrap();
    let Some(package) = package(folder.path()) else { return };
    let of_lab = python();
    let packages = Path::new(&of_lab).ancestors().nth(2).expect("bin/python3").join("lib");
    let version = packages.read_dir().unwrap().flatten().next().expect("one version of Python").path();
    let (file, path) = (folder.path().join("stack.json"), version.join("site-packages"));
    let ccxt = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("target/clients/venv/bin/python");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(["bench", "path", "--via", "okx", "--client", "ccxt", "--target", &redis, "--target", "shm://"]);
    command.args(["--count", &TICKS.to_string(), "--rate", "5", "--quiet", "--json", text(&file)]);
    command.env("TICKPATH_PYTHON", ccxt).env("PYTHONPATH", format!("{}:{}", text(&package), text(&path)));
    let ran = command.output().unwrap();
    assert!(matches!(ran.status.code(), Some(0 | 3)), "{}", without_waits(&ran.stderr));
    let result = load(&file);
    let clients: Vec<_> = result["runs"].as_array().expect("runs is a list").iter().map(|run| &run["client"]).collect();
    assert_eq!(clients, ["ccxt, redis-py", "ccxt, tickpath"]);
    for run in result["runs"].as_array().expect("runs is a list") {
        counts_are_whole(run);
        let stages: Vec<&str> =
            run["stages"].as_array().expect("stages").iter().filter_map(|s| s["name"].as_str()).collect();
        let are_positive = run["stages"].as_array().expect("stages").iter().all(|stage| number(&stage["p50_ns"]) > 0.0);
        assert!(are_positive, "stamps of two clocks are in order: {run}");
        assert_eq!(stages.len(), 4, "{run}");
        assert!(number(&run["hops"]["packet_to_packet"]["mean_ns"]) > 0.0, "{run}");
    }
}

#[test]
fn a_path_that_no_exchange_takes_is_refused() {
    for (call, words) in [
        ("--via okx --rate 46", "0.001 to 45"),
        ("--via okx --client python", "use rust or ccxt"),
        ("--client ccxt", "add --via okx or --via binance"),
        ("--via kraken", "okx, binance"),
        ("--via okx --layout split", "cannot be used with"),
    ] {
        let ran = tickpath(&format!("bench path {call} --count 5 --quiet"));
        assert!(ran.code == Some(2) && ran.err.contains(words), "{call}: {:?} {}", ran.code, ran.err);
    }
}

fn counts_are_whole(run: &Value) {
    for (name, expected) in [("sent", TICKS), ("lost", 0)] {
        assert_eq!(number(&run["counts"][name]), expected as f64, "{name}: {run}");
    }
}
