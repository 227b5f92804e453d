//! Commands to a running OMS: the files that they need, and the outcome if the OMS dies.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::desk::Desk;
use crate::logs::{Running, until};

#[test]
fn a_mistake_in_the_file_of_a_running_oms_blocks_no_command_to_it() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    desk.change("oms.toml", "[core]\n", "[core]\nlayuot = \"split\"\n");
    desk.change("instruments.csv", "ETHUSDT,2,SIM,1", "ETHUSDT,two,SIM,1");
    assert_eq!(desk.tickpath("oms --check --config @/oms.toml").code, Some(2));
    let does = |line: &str, words: &str| {
        let ran = desk.tickpath(line);
        assert!(ran.code == Some(0) && ran.out.contains(words), "{line}: {:?} {}{}", ran.code, ran.out, ran.err);
    };
    does("order new BTCUSDT buy 1 60000 --session 2 --id 7 --config @/oms.toml", "new new");
    does("orders --config @/oms.toml", "1 open");
    does("order cancel 7 --session 2 --config @/oms.toml", "canceled canceled");
    does("oms kill symbol BTCUSDT --config @/oms.toml", "the kill switch of symbol BTCUSDT is on");
    does("oms unkill symbol BTCUSDT --config @/oms.toml", "is off");
    does("oms status --user admin --config @/oms.toml", "journal_records");
    does("oms user disable admin --config @/oms.toml", "may no longer log in");
    does("oms user enable admin --config @/oms.toml", "may log in");
    does("top --once --config @/oms.toml", " open order");
}

#[test]
fn an_address_and_a_login_are_enough() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let login = |user: &str| format!("--oms unix://@/oms.sock --password-file @/{user}.password --config @/none.toml");
    let does = |line: &str, user: &str, words: &str| {
        let ran = desk.tickpath(&format!("{line} {}", login(user)));
        assert!(ran.code == Some(0) && ran.out.contains(words), "{line}: {:?} {}{}", ran.code, ran.out, ran.err);
    };
    does("order new BTCUSDT buy 1 60000 --session 2 --id 7", "trader", "new new");
    let orders = desk.tickpath("orders @/journal").out;
    assert!(orders.contains("1 open"), "{orders}");
    does("order cancel 7 --session 2", "trader", "canceled canceled");
    does("oms kill firm", "admin", "the kill switch of the firm is on");
    does("oms unkill firm", "admin", "is off");
    does("oms kill symbol 1", "admin", "the kill switch of symbol 1 is on");
    does("oms kill symbol ETHUSDT", "admin", "the kill switch of symbol ETHUSDT is on");
    does("oms mass-cancel firm", "admin", "none was open");
    does("oms status --user admin", "admin", "journal_records");
    for (line, words) in [
        ("oms kill firm --config @/none.toml", "--oms URL"),
        ("order cancel 7 --config @/none.toml", "--oms URL"),
        ("orders --config @/none.toml", "give it as DIR"),
        ("oms kill symbol BTCUSDT --config @/none.toml", "--oms URL"),
    ] {
        let ran = desk.tickpath(line);
        assert!(ran.code == Some(2) && ran.err.contains(words), "{line}: {:?} {}", ran.code, ran.err);
    }
}

#[test]
fn a_name_is_the_instrument_of_the_running_oms_not_of_its_table() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    desk.change("instruments.csv", "BTCUSDT,1,", "OTHER,1,");
    desk.change("instruments.csv", "ETHUSDT,2,", "BTCUSDT,2,");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let open = desk.tickpath("orders @/journal").out;
    assert!(open.lines().any(|line| line.contains(" BTCUSDT ")), "the price is one of BTCUSDT: {open}");
    let ran = desk.order("new OTHER buy 1 60000");
    assert_eq!((ran.code, &*ran.out), (Some(2), ""));
    let remedy = "the running OMS; use one of BTCUSDT, ETHUSDT, or load a table that has it with `tickpath oms reload`";
    assert!(ran.err.contains(remedy), "{}", ran.err);
    // The switch of symbol 1 is that of BTCUSDT in the OMS, not that of BTCUSDT in the file.
    let ran = desk.tickpath("oms kill symbol BTCUSDT --config @/oms.toml");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let status = desk.tickpath("oms status --config @/oms.toml --user admin").out;
    assert!(status.contains("symbol 1"), "{status}");
}

/// Calls the binary, kills the OMS as soon as a line of its output has these words, and returns the call's exit code.
fn killed_behind(desk: &Desk, oms: Running, line: &str, words: &str) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(desk.line(line).split(' ')).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(words)), "{line}: no '{words}'");
    drop(oms);
    child.wait().expect("the child is ours").code()
}

#[test]
fn a_received_answer_decides_though_the_oms_dies_afterwards() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    for round in 1..=5 {
        let oms = desk.oms();
        if round == 1 {
            exchange.await_words("serving the OMS");
        }
        let line = format!("order new BTCUSDT buy 1 60000 --session 2 --id {round} --wait 60 --config @/oms.toml");
        assert_eq!(killed_behind(&desk, oms, &line, " new new "), Some(0), "an order that the venue has taken");
        let line = format!("order new BTCUSDT buy 0 1 --session 3 --id {round} --config @/oms.toml");
        assert_eq!(killed_behind(&desk, desk.oms(), &line, "denied"), Some(1), "an order that was denied");
    }
}

#[test]
fn an_accepted_admin_command_is_reported_though_the_oms_dies_afterwards() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    // The exchange is stopped and answers nothing: the cancel stays pending.
    exchange.signal("-STOP");
    let kill = Running::start(&desk.line("oms kill account 1 --cancel --wait 600 --config @/oms.toml"));
    let is_pending = || desk.tickpath("orders --config @/oms.toml").out.contains("pending_cancel");
    until(is_pending, || "the cancel".to_owned());
    // Later answers of the OMS follow the command's.
    assert_eq!(desk.tickpath("oms status --user admin --config @/oms.toml").code, Some(0));
    drop(oms);
    let ran = kill.end();
    assert!(
        ran.out.contains("the kill switch of account 1 is on; 1 order: 1 pending_cancel"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(ran.code == Some(1) && ran.err.contains("orders still pending: 1"), "{:?} {}", ran.code, ran.err);
}

#[test]
fn a_mass_cancel_without_open_orders_succeeds() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    for line in ["mass-cancel", "mass-cancel --symbol BTCUSDT"] {
        let ran = desk.order(line);
        assert!(ran.code == Some(0) && ran.out.contains("nothing to cancel"), "{:?} {}{}", ran.code, ran.out, ran.err);
    }
}

#[test]
fn a_negative_price_is_accepted() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    // The OMS judges the values, not the command line.
    for line in ["new BTCUSDT buy 1 -17", "new BTCUSDT buy -1 17", "replace 7 1 -17.5"] {
        let ran = desk.order(line);
        assert!(ran.code == Some(1) && ran.out.contains("denied: "), "{line}: {:?} {}{}", ran.code, ran.out, ran.err);
    }
    let line = "oms enter fill 1.1 1 -17 --exec-id 4 --reason anna --config @/oms.toml";
    let ran = desk.tickpath(line);
    assert!(ran.code == Some(1) && ran.err.contains("there is no order 1.1"), "{:?} {}", ran.code, ran.err);
}

#[test]
fn top_shows_whole_order_ids_on_a_narrow_screen() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let table = desk.tickpath("orders --config @/oms.toml").out;
    let id = table.lines().nth(2).and_then(|row| row.split_whitespace().next()).expect("an order is open");
    let mut top = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    top.args(desk.line("top --once --config @/oms.toml").split(' ')).env("COLUMNS", "80").stdin(Stdio::null());
    let text = String::from_utf8(top.output().expect("the binary starts").stdout).expect("it is text");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let is_row = |line: &str| line.starts_with(&format!("{id} ")) && line.contains("BTCUSDT") && line.ends_with("new");
    assert!(text.lines().any(is_row), "no row of {id} in {text}");
}

#[test]
fn a_denial_prints_sums_above_the_largest_quantity_with_their_decimals() {
    let desk = Desk::new();
    let limits = "1,,1000000000,92233720368,9000000000000000,,1000,10000,60000000000,,92233720368";
    desk.change("accounts.csv", "1,,1000000000,100,10000000,,1000,10000,60000000000,,1000", limits);
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 60000000000.5 60000");
    assert!(ran.code == Some(0), "{}{}", ran.out, ran.err);
    let ran = desk.order("new BTCUSDT buy 60000000000 60000");
    let is_told = ran.out.contains("(limit 92233720368, value 120000000000.5)");
    assert!(ran.code == Some(1) && is_told, "{}{}", ran.out, ran.err);
}

#[test]
fn an_exchanges_journal_is_read_by_its_fields() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let cat = |rest: &str| desk.tickpath(&format!("log cat @/exchange-journal{rest}")).out;
    let text = cat("");
    let has = |words: &[&str]| text.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(&["0 ", " venue_founded ", "rules=", "venue=1"]), "{text}");
    assert!(has(&[" new_order lane_sequence=", "side=buy quantity=1 price=60000 "]), "{text}");
    assert!(has(&[" venue_tick ", "symbol=1", "bid=61800", "ask=61800.1"]), "{text}");
    assert!(!text.contains(" kind_"), "{text}");
    assert!(cat(" --json").contains(r#""name":"venue_founded","fields":{"rules":"#), "{}", cat(" --json"));
}

/// Containers may share files but not process ids. The lock is queried for a running OMS, and a process without an id
/// there is in another container.
#[test]
fn an_oms_in_another_container_is_recognized() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let elsewhere = |line: &str| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", env!("CARGO_BIN_EXE_tickpath")]);
        let ran = command.args(desk.line(line).split(' ')).stdin(Stdio::null()).output().expect("unshare runs");
        let text = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
        (ran.status.code(), text.into_owned())
    };
    for (line, code, words) in [
        ("oms reload --config @/oms.toml", 1, "is a process in another container; run `tickpath oms reload` there"),
        ("exchange day-end --config @/exchange.toml", 1, "is a process in another container; end its day in that one"),
        ("orders @/journal", 0, "a process in another container writes it"),
        ("oms --config @/oms.toml", 1, "a process in another container is an OMS"),
        ("log ls @/journal", 0, "writer in another container"),
    ] {
        let (ended, text) = elsewhere(line);
        assert!(ended == Some(code) && text.contains(words), "{line}: {ended:?} {text}");
        assert!(!text.contains("process 0"), "{line}: {text}");
    }
}
