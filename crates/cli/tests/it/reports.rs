//! Benches from the command line: short ones, whose results keep the contract and render again in every form. No test
//! here looks at a time. They run in turn, for two benches at once would take each other's processors.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::program::{Ran, tickpath};

const SCHEMA: &str = include_str!("../../../../docs/result.schema.json");
const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/synthetic.txt");

#[test]
fn benches_write_results_that_render_again() {
    let folder = tempdir().expect("a temporary folder can be made");
    host(folder.path());
    pubsub(folder.path());
    path(folder.path());
    orders(folder.path());
}

fn host(folder: &Path) {
    let page = folder.join("host.html");
    let result = bench(folder, "host", &format!("host --duration 0.1 --html {}", text(&page)));
    assert!(fs::read_to_string(&page).expect("it was written").contains("spin_gap"));
    let run = only_run(&result);
    for hop in ["spin_gap", "round_trip"] {
        assert!(number(&run["hops"][hop]["count"]) > 0.0, "{hop}");
    }
    for figure in ["clock_cost_ns", "record_cost_ns", "cache_line_transfer_ns", "loopback_round_trip_ns", "spin_loops"]
    {
        assert!(number(&run["figures"][figure]) >= 0.0, "{figure}");
    }
    assert_eq!(run["valid"], true, "a look at the host breaks no rule");
}

fn pubsub(folder: &Path) {
    for policy in ["overwrite", "fail", "keep"] {
        let call = format!("pubsub --target shm:// --count 1000 --size 64 --rate 10000 --wait block --policy {policy}");
        let result = bench(folder, &format!("pubsub-{policy}"), &call);
        let run = only_run(&result);
        let counts = &run["counts"];
        assert_eq!(number(&counts["sent"]), 1000.0, "{policy}: {counts}");
        assert_eq!(number(&counts["received"]) + number(&counts["lost"]), 1000.0, "{policy}: {counts}");
        for none in ["duplicated", "reordered", "errors"] {
            assert_eq!(number(&counts[none]), 0.0, "{policy}, {none}: {counts}");
        }
        for hop in ["one_way", "service", "publish"] {
            assert!(number(&run["hops"][hop]["count"]) > 0.0, "{policy}, {hop}");
        }
    }
}

fn path(folder: &Path) {
    for (name, ticks) in [("path-made-up", String::new()), ("path-recorded", format!(" --ticks {RECORDING}"))] {
        let result = bench(folder, name, &format!("path --count 500 --rate 1000 --wait block{ticks}"));
        let run = only_run(&result);
        let counts = &run["counts"];
        assert_eq!(number(&counts["sent"]), 500.0, "{name}: {counts}");
        assert_eq!(number(&counts["received"]) + number(&counts["lost"]), 500.0, "{name}: {counts}");
        for hop in ["tick_to_order", "tick_to_venue", "t0_t1", "t1_t2", "t0_t2", "order_ack", "order_round_trip"] {
            assert!(number(&run["hops"][hop]["count"]) > 0.0, "{name}, {hop}");
        }
        assert!(run["stages"].as_array().is_some_and(|stages| !stages.is_empty()), "{name}: {}", run["stages"]);
    }
}

fn orders(folder: &Path) {
    let journal = folder.join("journal");
    let call = format!("orders --count 100 --wait block --journal {}", text(&journal));
    let result = bench(folder, "orders", &call);
    let run = only_run(&result);
    assert_eq!(run["batch"], "g3");
    assert_eq!(number(&run["counts"]["sent"]), 100.0);
    assert_eq!(number(&run["counts"]["received"]) + number(&run["counts"]["lost"]), 100.0, "{}", run["counts"]);
    for figure in ["first_t0_to_last_t2_ns", "journal_bytes_per_order", "orders_sending", "replay_inputs_per_s"] {
        assert!(number(&run["figures"][figure]) > 0.0, "{figure}");
    }
    let told = good(&format!("log analyse {} --json {}", text(&journal), text(&folder.join("analysed.json"))));
    assert!(told.out.contains("g3"), "{}", told.out);
    let analysed = load(&folder.join("analysed.json"));
    assert_eq!(only_run(&analysed)["counts"]["sent"], run["counts"]["sent"]);
    for hop in ["t0_t1", "t1_t2", "t0_t2"] {
        for key in ["count", "p50_ns", "max_ns", "worst_ns", "negative"] {
            let (journal, bench) = (&only_run(&analysed)["hops"][hop][key], &run["hops"][hop][key]);
            assert_eq!(journal, bench, "{hop}.{key}: left the journal alone, right the bench");
        }
    }
    let told = good(&format!("log verify {}", text(&journal)));
    assert!(told.out.contains("all whole") && told.out.contains("digests agree"), "{}", told.out);
    let told = good(&format!("log snapshot {}", text(&journal)));
    assert!(told.out.contains("inputs were replayed"), "{}", told.out);
    let told = good(&format!("orders {}", text(&journal)));
    let last = told.out.lines().last().unwrap_or("");
    assert!(last.contains("100 open") && told.out.lines().count() == 103, "{}", told.out);
    let told = good(&format!("log snapshot file://{}", text(&journal)));
    assert!(told.out.contains("nothing new since record"), "{}", told.out);
    let told = good(&format!("log verify {}", text(&journal)));
    assert!(told.out.contains("good for all before record"), "{}", told.out);
    let told = good(&format!("log cat {} --count 5", text(&journal)));
    assert_eq!(told.out.lines().count(), 5);
    assert!(told.out.lines().next().is_some_and(|line| line.contains("journal_start")), "{}", told.out);
}

/// Runs a bench, holds its result against the published schema, and renders it in every form.
pub fn bench(folder: &Path, name: &str, call: &str) -> Value {
    let file = folder.join(format!("{name}.json"));
    let ran = tickpath(&format!("bench {call} --json {} --quiet", text(&file)));
    let measured = matches!(ran.code, Some(0 | 3));
    assert!(measured && ran.err.is_empty() && !ran.out.is_empty(), "{call}: {:?} {}", ran.code, ran.err);
    let result = load(&file);
    let is_valid = result["runs"].as_array().is_some_and(|runs| runs.iter().all(|run| run["valid"] == true));
    assert_eq!(ran.code, Some(if is_valid { 0 } else { 3 }), "{call}: the exit code says what the file says");
    render(folder, name, &file, &result);
    result
}

/// The terminal once, then each form, then the file itself from its copy.
fn render(folder: &Path, name: &str, file: &Path, result: &Value) {
    assert!(!good(&format!("report {}", text(file))).out.is_empty(), "{name}");
    for (form, mark) in [("html", "<html"), ("csv", ","), ("markdown", "|"), ("svg", "<svg")] {
        let rendered = folder.join(format!("{name}.{form}"));
        good(&format!("report {} --{form} {}", text(file), text(&rendered)));
        let content = fs::read_to_string(&rendered).expect("it was written");
        assert!(content.contains(mark), "{name}.{form} holds no '{mark}'");
    }
    let copy = folder.join(format!("{name}.copy.json"));
    good(&format!("report {} --json {}", text(file), text(&copy)));
    let copied = load(&copy);
    assert_eq!(copied["runs"].as_array().map(Vec::len), result["runs"].as_array().map(Vec::len), "{name}");
    for part in ["counts", "params", "notes"] {
        assert_eq!(copied["runs"][0][part], result["runs"][0][part], "{name}: {part}");
    }
}

/// Reads a result file, which must keep the schema.
pub fn load(file: &Path) -> Value {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let result: Value = serde_json::from_slice(&fs::read(file).expect("it was written")).expect("it is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let faults: Vec<String> = validator.iter_errors(&result).map(|fault| fault.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new(), "{}", file.display());
    result
}

/// Calls the binary, which must succeed without a word on standard error.
fn good(line: &str) -> Ran {
    let ran = tickpath(line);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "tickpath {line}");
    ran
}

fn only_run(result: &Value) -> &Value {
    let runs = result["runs"].as_array().expect("runs is a list");
    assert_eq!(runs.len(), 1);
    &runs[0]
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is plain text")
}
