//! Configuration reloads: refusals because a number would change its meaning, and the names in their messages.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tickpath_clock::HostClock;
use tickpath_oms_protocol::Secret;
use tickpath_oms_runtime::Sequencer;
use tickpath_oms_server::settings::Settings;

use super::trader::ProcessFixture as Files;
use super::*;

/// Max time to wait for a log line of the OMS.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stops an OMS when dropped, even if its test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn clock() -> HostClock {
    HostClock::get().expect("this host has a clock")
}

fn read(files: &Files) -> Settings {
    Settings::read(&files.folder.path().join("oms.toml")).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Returns the files of an OMS whose journal holds an open order for one BTCUSDT, by session 0.
fn with_an_order() -> Files {
    let files = Files::new(1, "", true);
    let (mut oms, _) = Sequencer::open(clock(), &read(&files).config()).unwrap_or_else(|e| panic!("it opens: {e}"));
    let now = oms.clock().ticks();
    let market = TopOfBook { symbol: SymbolId(1), ..top(59_990, 60_010) };
    oms.apply_top_of_book(now, &market).expect("nothing waits for it");
    let order = NewOrder { symbol: SymbolId(1), ..limit(Side::Buy, 1, 60_000, 1) };
    oms.accept_request(0, 0, now, now, Request::New(order)).expect("the journal takes it");
    assert_eq!(oms.core().open_orders().count(), 1, "the order is open");
    files
}

/// Swaps the numbers of both symbols.
fn swap_numbers(files: &Files) {
    files.change("instruments.csv", "\nBTCUSDT,1,SIM,1\n", "\nETHUSDT,1,SIM,1\n");
    files.change("instruments.csv", "\nETHUSDT,2,SIM,1\n", "\nBTCUSDT,2,SIM,1\n");
}

/// Returns the result of a start that is stopped before it has begun.
fn start(files: &Files) -> Result<(), String> {
    let (events, _hear) = sync_channel(1024);
    let settings = read(files);
    let (config, server) = (settings.config(), settings.server(events));
    let ran = tickpath_oms_server::run(clock(), &config, &server, None, &AtomicBool::new(true), || {});
    ran.map(drop).map_err(|e| e.to_string())
}

/// Returns the log lines of an OMS while its files change, until the condition holds.
fn said_while(files: &Files, change: impl FnOnce(&AtomicBool), is_enough: impl Fn(&str) -> bool) -> String {
    let (events, hear) = sync_channel(4096);
    let (is_ready, ready) = sync_channel(1);
    let settings = read(files);
    let (config, server) = (settings.config(), settings.server(events));
    let (reload, stop) = (server.reload.clone(), AtomicBool::new(false));
    let mut output = String::new();
    std::thread::scope(|scope| {
        let stop = &stop;
        let _stops = StopOnDrop(stop);
        let running = scope.spawn(move || {
            let ran = tickpath_oms_server::run(clock(), &config, &server, None, stop, || {
                let _ = is_ready.send(());
            });
            ran.map(drop).map_err(|e| e.to_string())
        });
        let mut hear_until = |is_enough: &dyn Fn(&str) -> bool| {
            while !is_enough(&output) {
                let event = hear.recv_timeout(PATIENCE);
                let event = event.unwrap_or_else(|_| panic!("it says nothing more after this:\n{output}"));
                output.push_str(&format!("{event}\n"));
            }
        };
        hear_until(&|output: &str| output.contains("listening on"));
        // A change before readiness is no reload of a running OMS.
        ready.recv_timeout(PATIENCE).expect("it is ready");
        change(&reload);
        hear_until(&is_enough);
        stop.store(true, Ordering::Release);
        let ended = running.join().expect("it does not panic");
        assert_eq!(ended, Ok(()), "it goes on and stops in order");
    });
    output
}

#[test]
fn a_reload_that_renames_a_used_symbol_is_refused_with_its_line() {
    let files = with_an_order();
    let change = |reload: &AtomicBool| {
        swap_numbers(&files);
        reload.store(true, Ordering::Release);
    };
    let output = said_while(&files, change, |output| {
        output.contains("the files were read again") || output.contains(" in force")
    });
    let expected = "instruments.csv:4: symbol number 1 is BTCUSDT, and cannot become ETHUSDT: order ";
    assert!(
        output.contains(expected) && output.contains("instruments.csv:5: BTCUSDT is symbol number 1, "),
        "{output}"
    );
    assert!(
        output.contains("give ETHUSDT a number that no symbol has had")
            && output.contains("the previous configuration stays in force"),
        "{output}"
    );
    // A start with these files gives the same message.
    let why = start(&files).expect_err("the journal holds an order for BTCUSDT");
    assert!(why.contains(expected), "{why}");
}

#[test]
fn a_refused_reload_is_not_applied_with_a_later_change_of_users() {
    let files = with_an_order();
    let change = |reload: &AtomicBool| {
        swap_numbers(&files);
        reload.store(true, Ordering::Release);
        while reload.load(Ordering::Acquire) {
            tickpath_clock::sleep_ns(1_000_000);
        }
        files.change("users.toml", "role = \"admin\"", "role = \"admin\"\nmax_notional = 5");
    };
    let output = said_while(&files, change, |output| output.contains("the files were read again"));
    assert!(output.contains("symbol number 1 is BTCUSDT, and cannot become ETHUSDT"), "{output}");
    assert!(output.contains("applied: users.toml [[user]] admin max_notional: unset to 5"), "{output}");
}

#[test]
fn a_session_with_reports_is_not_given_to_another_user() {
    let files = with_an_order();
    let text = fs::read_to_string(files.folder.path().join("users.toml")).expect("it is there");
    let line = 1 + text.lines().position(|line| line == "sessions = [0, 1, 2, 3]").expect("init has written it");
    let change = |_: &AtomicBool| files.change("users.toml", "name = \"trader\"", "name = \"bob\"");
    let output = said_while(&files, change, |output| {
        output.contains("the files were read again") || output.contains(" in force")
    });
    let expected = format!("users.toml:{line}: session 0 is trader's, and cannot become bob's: ");
    assert!(output.contains(&expected), "{output}");
    assert!(!output.contains("session 1 is"), "nobody has used session 1: {output}");
    let why = start(&files).expect_err("session 0 is trader's");
    assert!(why.contains(&expected), "{why}");
}

#[test]
fn a_venue_with_orders_keeps_its_name() {
    let files = with_an_order();
    files.change("oms.toml", "name = \"SIM\"", "name = \"OTHER\"");
    let instruments = fs::read_to_string(files.folder.path().join("instruments.csv")).expect("it is there");
    fs::write(files.folder.path().join("instruments.csv"), instruments.replace(",SIM,", ",OTHER,"))
        .expect("it is ours");
    let why = start(&files).expect_err("an order is at SIM");
    assert!(why.contains("venue number 1 is SIM, and cannot become OTHER: order "), "{why}");
}

#[test]
fn a_reload_lists_applied_changes_and_those_that_need_a_restart() {
    let files = Files::new(1, "", true);
    let old = read(&files).users.list[0].secret.to_string();
    let new = Secret::from_password("another password").to_string();
    let listens = files.oms.trim_start_matches("tcp://").to_owned();
    let change = |reload: &AtomicBool| {
        files.change("oms.toml", &format!("tcp = \"{listens}\""), "tcp = \"127.0.0.1:1\"");
        files.change("oms.toml", "\n[sessions]\n", "\n[sessions]\nheartbeat_ms = 5000\nlevel = \"disk\"\n");
        files.change("accounts.csv", "\n1,,1000000000,100,", "\n1,,1000000000,5,");
        files.change("users.toml", &old, &new);
        reload.store(true, Ordering::Release);
    };
    let is_enough = |output: &str| output.contains("accounts.csv") && output.contains("users.toml");
    let output = said_while(&files, change, is_enough);
    for expected in [
        format!("needs a restart of the OMS: oms.toml [listen] tcp: \"{listens}\" to \"127.0.0.1:1\"; "),
        "oms.toml [sessions]: added (heartbeat_ms 5000)".to_owned(),
        "oms.toml [sessions]: added (level \"disk\")".to_owned(),
        "accounts.csv account 1 max_order_quantity: 100 to 5".to_owned(),
        "users.toml [[user]] trader secret: changed, and never shown".to_owned(),
    ] {
        assert!(output.contains(&expected), "{expected}: {output}");
    }
    assert!(!output.contains("SCRAM-SHA-256"), "{output}");
}

#[test]
fn a_reload_shows_no_credentials_of_a_url() {
    let files = Files::new(1, "", true);
    let output = said_while(
        &files,
        |reload| reload.store(true, Ordering::Release),
        |output| output.contains("the files were read again"),
    );
    assert!(output.contains("the files were read again and are unchanged"), "{output}");
    let copy = "[[drop_copy]]\nurl = \"nats://anna:pass/word@127.0.0.1:4222?token=t0ken\"\ntopic = \"copies\"\naccounts = [\"*\"]\n";
    let change = |reload: &AtomicBool| {
        files.change("oms.toml", "\n[[venue]]\n", &format!("\n{copy}\n[[venue]]\n"));
        reload.store(true, Ordering::Release);
    };
    let output = said_while(&files, change, |output| output.contains("the files were read again"));
    assert!(output.contains("needs a restart of the OMS: oms.toml [[drop_copy]] number 1: added ("), "{output}");
    assert!(output.contains("url \"nats://***@127.0.0.1:4222?***\""), "{output}");
    assert!(!output.contains("word") && !output.contains("t0ken"), "{output}");
}
