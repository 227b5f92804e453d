//! `explain` of other people's clients: unchanged scripts of ccxt and python-okx, which trade on a simulated exchange.
//! Each of their calls and messages has its stages. No test here checks a time.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;

use crate::logs::Running;
use crate::other_clients::{ExchangeProcess, clients, prepare_clients};
use crate::program::without_waits;
use crate::reports::{load, number, text};

/// Max seconds of an explanation.
const BOUND_S: &str = "180";

/// Stages of a request by HTTP until its answer.
const REQUEST: &[&str] = &["library", "sign", "http_client", "send", "answer", "decode", "parse_json"];
/// Stages of a request by WebSocket until its answer.
const SENT: &[&str] = &["sign", "http_client", "send", "answer"];
/// Stages of a message of a WebSocket until the script has it.
const MESSAGE: &[&str] = &["decrypt", "decode", "event_loop", "hand_over"];
/// Stages that only ccxt adds to them.
const UNIFIED: &[&str] = &["parse_json", "unify"];

#[test]
fn calls_and_messages_of_ccxt_have_every_stage() {
    for protocol in ["okx", "binance"] {
        explains(
            protocol,
            &["ccxt_calls.py", "trade", protocol],
            &[
                ("ccxt", "create_order", &[REQUEST, &["unify"]]),
                ("ccxt", "cancel_order", &[REQUEST, &["unify"]]),
                ("ccxt.async_support", "create_order", &[REQUEST, &["decrypt", "unify"]]),
                ("ccxt.pro", "create_order_ws", &[&["library"], SENT, MESSAGE, UNIFIED]),
                ("ccxt.pro", "cancel_order_ws", &[&["library"], SENT, MESSAGE, UNIFIED]),
                ("ccxt.pro", "watch_order_book", &[MESSAGE, UNIFIED]),
            ],
        );
    }
}

#[test]
fn calls_and_messages_of_python_okx_have_every_stage() {
    explains(
        "okx",
        &["python_okx_calls.py", "trade"],
        &[
            ("python-okx", "TradeAPI.place_order", &[REQUEST, &["hand_over"]]),
            ("python-okx", "TradeAPI.cancel_order", &[REQUEST, &["hand_over"]]),
            ("python-okx", "WsPrivateAsync.place_order", &[SENT, MESSAGE]),
            ("python-okx", "WsPublicAsync.callback", &[MESSAGE]),
        ],
    );
}

#[test]
fn a_version_without_the_seams_is_named() {
    let folder = tempdir().expect("a temporary folder can be made");
    let package = folder.path().join("ccxt/base");
    fs::create_dir_all(&package).expect("the folder is ours");
    let write = |path: &str, lines: &str| fs::write(folder.path().join(path), lines).expect("the folder is ours");
    write("ccxt/__init__.py", "__version__ = '0.7'\n");
    write("ccxt/base/__init__.py", "");
    write("ccxt/base/exchange.py", "class Exchange:\n    pass\n");
    write("trades.py", "import ccxt.base.exchange\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(["explain", "--gains", "none", "--quiet", "--", "python3", text(&folder.path().join("trades.py"))]);
    let ran = command.output().expect("the binary starts");
    let err = without_waits(&ran.stderr);
    let printed = err.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["has called an exchange", "ccxt 0.7 lacks Exchange.__init__, where a stamp is taken"] {
        assert!(ran.status.code() == Some(1) && printed.contains(words), "'{words}': {:?} {err}", ran.status);
    }
}

/// Explains a script at a simulated exchange, and checks the stages of these clients' methods.
fn explains(protocol: &str, script: &[&str], expected: &[(&str, &str, &[&[&str]])]) {
    prepare_clients();
    let folder = tempdir().expect("a temporary folder can be made");
    let (exchange, file) = (ExchangeProcess::start(protocol, ""), folder.path().join("explain.json"));
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", BOUND_S, env!("CARGO_BIN_EXE_tickpath"), "explain", "--repeat", "1", "--quiet"]);
    command.args(["--gains", "none", "--json", text(&file), "--", "env"]);
    // Only the script trusts the exchange's authority: redis-py may have to be fetched.
    command.args(exchange.variables().iter().map(|(variable, value)| format!("{variable}={value}")));
    command.arg(clients()).args(script);
    command.env("TICKPATH_EXCHANGE", exchange.settings().to_string());
    let ran = Running::of(command).end();
    assert!(matches!(ran.code, Some(0 | 3)), "{:?} {}", ran.code, ran.err);
    let result = load(&file);
    let runs = result["runs"].as_array().expect("runs");
    for (client, call, stages) in expected {
        let found: Vec<&Value> = runs.iter().filter(|run| is_of(run, client, call)).collect();
        // Calls have a first one and further ones.
        let is_message = stages.concat().iter().all(|name| !SENT.contains(name));
        assert_eq!(found.len(), if is_message { 1 } else { 2 }, "{client} {call}: {}\n{}", ran.out, ran.err);
        for run in found {
            assert_eq!(run["target"], protocol, "{run}");
            has_stages(run, &stages.concat());
            adds_up(run);
        }
        assert!(ran.out.contains(&format!("{protocol} {client} {call}")), "{client} {call}: {}", ran.out);
    }
    for run in runs {
        assert_eq!(run["counts"]["errors"], 0, "{run}");
    }
}

fn is_of(run: &Value, client: &str, call: &str) -> bool {
    run["client"] == client && run["params"]["call"] == call
}

/// Checks that each of these stages is measured, and that nothing is unexplained.
fn has_stages(run: &Value, names: &[&str]) {
    assert!(number(&run["counts"]["received"]) >= 1.0, "{run}");
    let stages = run["stages"].as_array().expect("stages");
    for name in names {
        let stage = stages.iter().find(|stage| stage["name"] == *name);
        let stage = stage.unwrap_or_else(|| panic!("no {name}: {run}"));
        assert!(stage["kind"] == "measured" && number(&stage["p50_ns"]) > 0.0, "{stage}");
    }
    let unexplained = stages.iter().filter(|stage| stage["kind"] == "unexplained");
    let rest = unexplained.map(|stage| number(&stage["p50_ns"])).sum::<f64>();
    // Each stage is rounded to a nanosecond.
    assert!(rest <= stages.len() as f64, "{run}");
}

/// Checks that the stages and the unexplained rest are the whole.
fn adds_up(run: &Value) {
    let stages = run["stages"].as_array().expect("stages");
    let sum: f64 = stages.iter().map(|stage| number(&stage["p50_ns"])).sum();
    assert_eq!(sum, number(&run["figures"]["message_ns"]), "{run}");
}
