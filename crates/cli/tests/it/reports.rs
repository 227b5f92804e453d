//! Benches from the command line: short runs, whose results keep the contract and render again in every form. No test
//! here checks a time. They run in turn, because two benches at once would compete for processors.

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
    orders_by_a_line(folder.path());
    waits(folder.path());
    orders_over_sockets(folder.path());
    whole_days(folder.path());
    beside(folder.path());
}

fn host(folder: &Path) {
    let page = folder.join("host.html");
    let result = bench(folder, "host", &format!("host --duration 0.1 --html {}", text(&page)));
    assert!(fs::read_to_string(&page).expect("it was written").contains("spin_gap"));
    // Needed by `tickpath history`.
    let git = ["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"];
    let head = std::process::Command::new("git").args(git).output().map(|output| output.stdout).unwrap_or_default();
    if let Some(head) = String::from_utf8_lossy(&head).get(..12) {
        assert!(result["commit"].as_str().is_some_and(|commit| commit.starts_with(head)), "{}", result["commit"]);
    }
    let run = only_run(&result);
    for hop in ["spin_gap", "round_trip", "wake_call", "wake_up"] {
        assert!(number(&run["hops"][hop]["count"]) > 0.0, "{hop}");
        assert!(run["hops"][hop].get("unstalled").is_none(), "nobody watched for the host's gaps: {hop}");
    }
    assert!(number(&run["floor"]["cache_line_transfer_after_ns"]) > 0.0, "{}", run["floor"]);
    for figure in ["clock_cost_ns", "record_cost_ns", "cache_line_transfer_ns", "loopback_round_trip_ns", "spin_loops"]
    {
        assert!(number(&run["figures"][figure]) >= 0.0, "{figure}");
    }
    let notes = run["notes"].to_string();
    assert!(notes.contains("a wake-up takes") && notes.contains("in the call that wakes"), "{notes}");
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
        let hops = ["lateness", "one_way", "service", "tick_to_order", "tick_to_venue", "t0_t1", "t1_t2", "t0_t2"];
        for hop in hops.into_iter().chain(["order_ack", "order_round_trip"]) {
            assert!(number(&run["hops"][hop]["count"]) > 0.0, "{name}, {hop}");
        }
        assert!(run["stages"].as_array().is_some_and(|stages| !stages.is_empty()), "{name}: {}", run["stages"]);
        let threads = run["params"]["threads"].as_str().unwrap_or_default();
        assert!(threads.starts_with("feed and venue in turn on one thread"), "{name}: {threads}");
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
    let output = good(&format!("log analyse {} --json {}", text(&journal), text(&folder.join("analysed.json"))));
    assert!(output.out.contains("g3"), "{}", output.out);
    let analysed = load(&folder.join("analysed.json"));
    assert_eq!(only_run(&analysed)["counts"]["sent"], run["counts"]["sent"]);
    for hop in ["t0_t1", "t1_t2", "t0_t2"] {
        for key in ["count", "p50_ns", "max_ns", "worst_ns", "negative"] {
            let (journal, bench) = (&only_run(&analysed)["hops"][hop][key], &run["hops"][hop][key]);
            assert_eq!(journal, bench, "{hop}.{key}: left the journal alone, right the bench");
        }
    }
    let output = good(&format!("log verify {}", text(&journal)));
    assert!(output.out.contains("all whole") && output.out.contains("digests agree"), "{}", output.out);
    let output = good(&format!("log snapshot {}", text(&journal)));
    assert!(output.out.contains("inputs were replayed"), "{}", output.out);
    let output = good(&format!("orders {}", text(&journal)));
    let last = output.out.lines().last().unwrap_or("");
    assert!(last.contains("100 open") && output.out.lines().count() == 103, "{}", output.out);
    let output = good(&format!("log snapshot file://{}", text(&journal)));
    assert!(output.out.contains("unchanged, because the journal has no record"), "{}", output.out);
    let output = good(&format!("log verify {}", text(&journal)));
    assert!(output.out.contains("valid for all before record"), "{}", output.out);
    let output = good(&format!("log cat {} --count 5", text(&journal)));
    assert_eq!(output.out.lines().count(), 5);
    assert!(output.out.lines().next().is_some_and(|line| line.contains("journal_start")), "{}", output.out);
}

/// T2 is when the send has returned, whichever thread sends. A journal lacks the T2 of another thread.
fn orders_by_a_line(folder: &Path) {
    let journal = folder.join("lines");
    let call =
        format!("orders --venue tcp --count 200 --layout inline,split --wait block --journal {}", text(&journal));
    let result = bench(folder, "line", &call);
    let counts = |run: &Value, hops: [&str; 3]| hops.map(|hop| run["hops"][hop]["count"].as_u64().unwrap_or(0));
    let handed = ["t1_handed", "t0_handed", "handed_t2"];
    let [inline, split] = [0, 1].map(|place| &result["runs"][place]);
    assert_eq!((inline["layout"].as_str(), split["layout"].as_str()), (Some("inline"), Some("split")));
    assert_eq!((counts(inline, handed), counts(split, handed)), ([0; 3], [200; 3]), "{result}");
    for run in [inline, split] {
        assert_eq!(counts(run, ["t0_t1", "t1_t2", "t0_t2"]), [200; 3], "{run}");
    }
    let mean = |hop: &str| number(&split["hops"][hop]["mean_ns"]);
    let parts = mean("t1_handed") + mean("handed_t2");
    assert!((parts / mean("t1_t2") - 1.0).abs() < 0.01, "three digits of each: {split}");
    for (place, alone) in [(1, ["t0_t1", "t1_t2", "t0_t2"]), (2, ["t0_t1", "t1_handed", "t0_handed"])] {
        let analysed = folder.join("line-analysed.json");
        good(&format!("log analyse {} --json {}", text(&journal.join(place.to_string())), text(&analysed)));
        let run = only_run(&load(&analysed)).clone();
        assert_eq!(counts(&run, alone), [200; 3], "{run}");
        assert_eq!(run["hops"]["t1_t2"].is_null(), place == 2, "{run}");
    }
}

fn waits(folder: &Path) {
    for (name, call, hop) in [
        ("pubsub", "pubsub --target shm:// --count 200 --size 64 --rate 1000", "one_way"),
        ("path", "path --count 200 --rate 1000", "tick_to_order"),
        ("orders", "orders --count 100 --rate 1000", "t0_t2"),
    ] {
        let result = bench(folder, &format!("{name}-waits"), &format!("{call} --wait block,adaptive"));
        let runs = result["runs"].as_array().expect("runs is a list");
        let waits: Vec<_> = runs.iter().map(|run| run["params"]["wait"].as_str()).collect();
        assert_eq!(waits, [Some("block"), Some("adaptive")], "{name}");
        for run in runs {
            let [sent, received, lost] = ["sent", "received", "lost"].map(|count| number(&run["counts"][count]));
            assert_eq!(received + lost, sent, "{name}: {run}");
            assert!(number(&run["hops"][hop]["count"]) > 0.0, "{name}: {run}");
            assert!(number(&run["figures"]["receiver_cpu_per_message_ns"]) > 0.0, "{name}: {run}");
        }
    }
    let call = "queue --target shm:// --count 500 --rate 5000 --pipeline 1 --pull 1 --wait adaptive";
    let result = bench(folder, "queue-adaptive", call);
    let run = only_run(&result);
    assert_eq!((run["params"]["wait"].as_str(), number(&run["counts"]["lost"])), (Some("adaptive"), 0.0), "{run}");
}

fn orders_over_sockets(folder: &Path) {
    let call =
        "orders --target unix:// --target tcp:// --sessions 1,4 --active 2 --count 300 --layout split --wait block";
    let result = bench(folder, "sockets", call);
    let runs = result["runs"].as_array().expect("runs is a list");
    let turns: Vec<_> = runs.iter().map(|run| (run["target"].as_str(), number(&run["params"]["sessions"]))).collect();
    let all = [("unix://", 1.0), ("tcp://", 1.0), ("unix://", 4.0), ("tcp://", 4.0)];
    assert_eq!(turns, all.map(|(target, sessions)| (Some(target), sessions)));
    for run in runs {
        let call = format!("{} {}", run["target"], run["params"]);
        let counts = ["sent", "received", "lost"].map(|name| number(&run["counts"][name]));
        assert_eq!(counts, [300.0, 300.0, 0.0], "{call}");
        assert_eq!(run["notes"].as_array().map(|notes| mentions(notes, "operator")), Some(false), "{call}: {run}");
        for hop in ["t0_t1", "t1_t2", "t0_t2", "order_ack", "order_round_trip"] {
            assert_eq!(number(&run["hops"][hop]["count"]), 300.0, "{call}, {hop}");
        }
        for figure in ["first_t0_to_last_t2_ns", "send_ns", "acked_per_s"] {
            assert!(number(&run["figures"][figure]) > 0.0, "{call}, {figure}");
        }
        for figure in ["memory_per_session_bytes", "connected_cpu_percent"] {
            assert!(number(&run["figures"][figure]) >= 0.0, "{call}, {figure}");
        }
    }
    let names: Vec<_> =
        result["comparisons"].as_array().into_iter().flatten().filter_map(|c| c["name"].as_str()).collect();
    let is_there = |begin: &str| names.iter().any(|name| name.starts_with(begin));
    assert!(is_there("tcp_to_unix_t0_t2") && is_there("4_to_1_sessions_t0_t2"), "{names:?}");

    let call = "orders --target tcp:// --sessions 3 --in-flight 1 --count 60 --ack os,disk --layout split --wait block";
    let result = bench(folder, "disk", call);
    let runs = result["runs"].as_array().expect("runs is a list");
    assert_eq!((runs[0]["params"].get("ack"), runs[1]["params"]["ack"].as_str()), (None, Some("disk")));
    for run in runs {
        assert_eq!(number(&run["counts"]["lost"]), 0.0);
        assert_eq!(number(&run["hops"]["order_ack"]["count"]), 60.0);
    }
    assert!(runs[1]["hops"].get("t1_t2").is_none(), "what waits for the disk has no T2: {}", runs[1]["hops"]);
}

fn whole_days(folder: &Path) {
    let result = bench(folder, "resume", "orders --target tcp:// --resume 400 --layout split --wait block");
    let run = only_run(&result);
    assert_eq!(["sent", "received", "lost"].map(|name| number(&run["counts"][name])), [400.0, 400.0, 0.0]);
    assert!(number(&run["figures"]["resume_reports_per_s"]) > 0.0 && number(&run["figures"]["resume_ns"]) > 0.0);
    for target in ["shm://", "unix://"] {
        let call = format!("orders --target {target} --restart 200 --layout split --wait block");
        let result = bench(folder, "restart", &call);
        let run = only_run(&result);
        assert_eq!(["sent", "received", "lost"].map(|name| number(&run["counts"][name])), [200.0, 200.0, 0.0]);
        assert!(number(&run["figures"]["restart_to_ready_ns"]) > 0.0, "{target}");
        assert!(run["floor"].is_object(), "measured before and after it: {run}");
    }
}

fn beside(folder: &Path) {
    for kind in ["stuck", "slow", "day"] {
        let call = format!(
            "orders --target tcp:// --beside {kind} --day 200 --count 50 --rate 100 --layout split --wait block"
        );
        let result = bench(folder, &format!("beside-{kind}"), &call);
        let runs = result["runs"].as_array().expect("runs is a list");
        let kinds: Vec<_> = runs.iter().map(|run| run["params"]["beside"].as_str()).collect();
        assert_eq!(kinds, [Some("idle"), Some(kind)]);
        for run in runs {
            assert_eq!(number(&run["counts"]["lost"]), 0.0, "{kind}: {}", run["counts"]);
        }
        let heard = number(&runs[1]["figures"]["beside_reports"]);
        assert!(if kind == "stuck" { heard == 0.0 } else { heard >= 400.0 }, "{kind}: {heard}");
    }
}

fn mentions(notes: &[Value], word: &str) -> bool {
    notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains(word)))
}

/// Runs a bench, checks its result against the published schema, and renders it in every form.
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

/// Renders the terminal's text, then each form, then the file itself from its copy.
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

/// Calls the binary, which must succeed with an empty standard error.
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
