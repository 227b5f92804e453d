//! Other people's clients trade on the simulated exchanges: unchanged and in pinned versions, with nothing set but their
//! public options. A script of `clients/` drives each of them, and prints its steps.
//!
//! ```text
//!   test ── starts ──> tickpath exchange --as okx|binance <── HTTPS, WebSocket ── client <── script of clients/
//!     └──── starts, 120 s at most ──────────────────────────────────────────────────────────────────┘
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use tickpath_clock::sleep_ns;

use crate::logs::Running;
use crate::program::{LOOKS, PAUSE_NS};

/// Steps of a script that trades, in their order.
const TRADE: &[&str] = &["load", "subscribe", "login", "place", "amend", "cancel", "fill", "list"];
/// The same of a client over REST alone.
const TRADE_BY_REST: &[&str] = &["load", "market", "account", "place", "amend", "cancel", "fill", "list"];
/// Steps of a script whose connection is cut behind the acknowledgement of an order.
const CUT: &[&str] = &["cut", "reconnect"];
/// The fault for it.
const CUT_FAULT: &str = "cut_after_ack = 1\n";
/// Max seconds of a script.
const BOUND_S: &str = "120";
/// Variables by which the clients' libraries find the authority that they trust.
const AUTHORITY_VARIABLES: [&str; 3] = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"];

#[test]
fn python_okx_trades_and_survives_a_cut() {
    trades_and_survives_a_cut("okx", "python_okx.py", &[]);
}

#[test]
fn okx_api_of_npm_trades_and_survives_a_cut() {
    trades_and_survives_a_cut("okx", "okx_api.cjs", &[]);
}

#[test]
fn ccxt_pro_trades_on_okx_and_survives_a_cut() {
    trades_and_survives_a_cut("okx", "ccxt_pro.py", &["okx"]);
}

#[test]
fn ccxt_pro_trades_on_binance_and_survives_a_cut() {
    trades_and_survives_a_cut("binance", "ccxt_pro.py", &["binance"]);
}

#[test]
fn binance_sdk_trades_and_survives_a_cut() {
    trades_and_survives_a_cut("binance", "binance_sdk.py", &[]);
}

#[test]
fn ccxt_trades_by_rest() {
    prepare_clients();
    for protocol in ["okx", "binance"] {
        ExchangeProcess::start(protocol, "").serve(&["ccxt_sync.py", "trade", protocol], TRADE_BY_REST);
    }
}

fn trades_and_survives_a_cut(protocol: &str, script: &str, rest: &[&str]) {
    prepare_clients();
    for (faults, phase, steps) in [("", "trade", TRADE), (CUT_FAULT, "cut", CUT)] {
        let words = [&[script, phase][..], rest].concat();
        ExchangeProcess::start(protocol, faults).serve(&words, steps);
    }
}

/// A simulated exchange, with its files in a folder of its own. It ends when it is dropped.
pub struct ExchangeProcess {
    child: Child,
    folder: TempDir,
    /// Facts that it prints at its start, names and values.
    facts: Vec<(String, String)>,
}

impl ExchangeProcess {
    /// Starts an exchange with these faults, as in its file, and waits until it is ready.
    pub fn start(protocol: &str, faults: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("faults.toml"), faults).expect("the folder is ours");
        let output = |name: &str| File::create(path(name)).expect("the folder is ours");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
        command.args(["exchange", "--as", protocol, "--listen", "127.0.0.1:0"]);
        command.arg("--write-ca").arg(path("authority.pem")).arg("--faults").arg(path("faults.toml"));
        command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(output("facts")).stderr(output("messages"));
        let child = command.spawn().expect("the binary starts");
        let mut exchange = Self { child, folder, facts: Vec::new() };
        exchange.await_ready();
        exchange
    }

    fn await_ready(&mut self) {
        for _ in 0..LOOKS {
            self.facts = self.text("facts").lines().filter_map(fact).collect();
            if self.facts.iter().any(|(name, _)| name == "ready") {
                return;
            }
            let ended = self.child.try_wait().expect("the child is ours");
            assert!(ended.is_none(), "the exchange has ended: {}", self.text("messages"));
            sleep_ns(PAUSE_NS);
        }
        panic!("the exchange was never ready: {}{}", self.text("facts"), self.text("messages"));
    }

    /// Runs a script to its end, and checks that it takes these steps.
    fn serve(&self, words: &[&str], steps: &[&str]) {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", BOUND_S]).arg(clients()).args(words);
        command.env("TICKPATH_EXCHANGE", self.settings().to_string());
        command.envs(self.variables());
        let ran = Running::of(command).end();
        let output = format!("{words:?}\n{}{}exchange: {}", ran.out, ran.err, self.text("messages"));
        assert_eq!(ran.code, Some(0), "{output}");
        let taken: Vec<String> = ran.out.lines().filter_map(step).collect();
        assert_eq!(taken, steps, "{output}");
    }

    /// Returns the variables by which clients trust the exchange and reach it.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let authority = self.authority().display().to_string();
        let trusts = AUTHORITY_VARIABLES.map(|variable| (variable, authority.clone()));
        // A proxy would not reach this host's loopback.
        let direct = ["NO_PROXY", "no_proxy"].map(|variable| (variable, "127.0.0.1".to_owned()));
        [trusts.to_vec(), direct.to_vec()].concat()
    }

    /// Returns the addresses and the account, as the scripts read them.
    pub fn settings(&self) -> Value {
        let rest = self.fact("rest");
        let web_socket = rest.replacen("https://", "wss://", 1);
        let (key, secret, passphrase) = (self.fact("key"), self.fact("secret"), self.fact("passphrase"));
        let ca = self.authority();
        json!({"rest": rest, "ws": web_socket, "ca": ca, "key": key, "secret": secret, "passphrase": passphrase})
    }

    /// Returns the value of a fact.
    fn fact(&self, name: &str) -> &str {
        let found = self.facts.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no {name} in {:?}", self.facts))
    }

    fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

impl Drop for ExchangeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Fetches the clients in their pinned versions, once: from the network, or from what an earlier run has left in
/// `target/clients`.
pub fn prepare_clients() {
    static PREPARED: OnceLock<Result<(), String>> = OnceLock::new();
    let prepared = PREPARED.get_or_init(|| {
        let mut command = Command::new(clients());
        command.arg("prepare");
        let ran = Running::of(command).end();
        if ran.code == Some(0) { Ok(()) } else { Err(ran.out + &ran.err) }
    });
    if let Err(why) = prepared {
        panic!("{why}");
    }
}

/// Returns the program that runs the scripts.
pub fn clients() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("scripts/clients")
}

/// Reads a line of the exchange: a name, spaces, and a value.
fn fact(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(' ')?;
    Some((name.to_owned(), value.trim().to_owned()))
}

/// Returns the name of the step that a line of a script reports.
fn step(line: &str) -> Option<String> {
    let report: Value = serde_json::from_str(line).ok()?;
    Some(report.get("step")?.as_str()?.to_owned())
}
