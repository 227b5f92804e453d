//! Commands that follow: with a blocked output, over kills and ends of days, and from a given number on.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tickpath_clock::{Clock, HostClock};
use tickpath_log::LogPath;
use tickpath_market::{
    AccountId, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrderType, Price, Quantity, Request, Side, SymbolId,
};
use tickpath_oms_client::{Client, ClientEvent, Config};
use tickpath_oms_core::{At, Core, Output};
use tickpath_oms_runtime::journal::Replay;

use crate::desk::Desk;
use crate::logs::until;

/// Quotes of the first exchange.toml for BTCUSDT, which is number 1.
const BID: &str = "61800";
const ASK: &str = "61800.1";
/// Number of orders in flight: fewer than the exchange quotes.
const OPEN: u64 = 8;
/// Number of reports of an order that is filled at once.
const REPORTS: u64 = 3;
/// Polls of a session, two milliseconds each, within which its reports arrive.
const LOOKS: u32 = 30_000;

/// A command that follows. Its standard output is a pipe that is not read until the test starts reading.
struct Follower {
    child: Child,
    err: PathBuf,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Follower {
    fn start(desk: &Desk, line: &str) -> Self {
        let err = tempfile::NamedTempFile::new_in(desk.path()).expect("the folder is ours").into_temp_path();
        let err = err.keep().expect("the folder is ours");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
        command.args(desk.line(line).split(' ')).env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(fs::File::create(&err).expect("the folder is ours"));
        Self { child: command.spawn().expect("the binary starts"), err, lines: Arc::default() }
    }

    /// Starts a follower that is read from its start on.
    fn read_at_once(desk: &Desk, line: &str) -> Self {
        let mut follower = Self::start(desk, line);
        follower.read();
        follower
    }

    fn err(&self) -> String {
        fs::read_to_string(&self.err).expect("it was made before the start")
    }

    fn await_words(&self, words: &str) {
        until(|| self.err().contains(words), || format!("'{words}' on standard error, which says: {}", self.err()));
    }

    /// Starts reading standard output, to its end.
    fn read(&mut self) {
        let (pipe, lines) = (self.child.stdout.take().expect("nothing reads it"), self.lines.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                lines.lock().expect("nothing panics with it").push(line);
            }
        });
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("nothing panics with it").clone()
    }

    /// Waits until so many lines are read, and returns them.
    fn await_lines(&self, count: u64) -> Vec<String> {
        let is_there = || self.lines().len() as u64 >= count;
        until(is_there, || format!("{count} lines; there are {}, and: {}", self.lines().len(), self.err()));
        self.lines()
    }

    /// Waits for the end and returns the exit code.
    fn end(&mut self) -> Option<i32> {
        let mut status = None;
        until(
            || {
                status = self.child.try_wait().expect("the child is ours");
                status.is_some()
            },
            || format!("the end; standard error: {}", self.err.display()),
        );
        status.and_then(|status| status.code())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A desk with a user `back` that may have a drop copy.
fn desk() -> Desk {
    let desk = Desk::new();
    fs::write(desk.path().join("back.password"), "a good password\n").expect("the folder is ours");
    let add = "oms user add --config @/oms.toml --role read --accounts 1 --sessions 40";
    let ran = desk.tickpath(&format!("{add} --password-file @/back.password back"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    desk.change("users.toml", "sessions = [40]", "sessions = [40]\ndrop_copy = true");
    desk
}

fn connect(desk: &Desk, session: u16) -> Client {
    let config = Config::new(desk.line("unix://@/oms.sock"), "trader", desk.password("trader"));
    Client::connect(Config { session: Some(session), ..config }).expect("the OMS is ready")
}

/// Trades orders of session 2, alternately bought and sold, until each is filled.
fn trade(desk: &Desk, ids: std::ops::Range<u64>) {
    let (mut client, mut sent, mut filled) = (connect(desk, 2), ids.start, ids.start);
    for _ in 0..LOOKS {
        while sent < ids.end && sent - filled < OPEN {
            let (side, price) = if sent.is_multiple_of(2) { (Side::Buy, ASK) } else { (Side::Sell, BID) };
            let order = NewOrder {
                client_order_id: ClientOrderId(sent + 1),
                price: price.parse::<Price>().expect("a price"),
                quantity: Quantity::from_whole(1),
                symbol: SymbolId(1),
                account: AccountId(1),
                side: side.code(),
                order_type: OrderType::Limit.code(),
                ..NewOrder::default()
            };
            client.send(&Request::New(order)).expect("little is in flight");
            sent += 1;
        }
        client.wait(2_000_000);
        let heard = client.poll(|event| match event {
            ClientEvent::Report { report, .. } => filled += u64::from(report.exec_type == ExecType::Trade.code()),
            ClientEvent::Denied { denial, .. } => panic!("nothing of this is denied: {denial:?}"),
            _ => {}
        });
        heard.expect("the OMS lives");
        if filled == ids.end {
            return client.close();
        }
    }
    panic!("never filled: {filled} of {ids:?}");
}

/// Returns the value behind `key=` in a line.
fn field<'a>(line: &'a str, key: &str) -> &'a str {
    let found = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {key} in: {line}"))
}

/// Returns the number that each line begins with.
fn numbers(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| line.split(' ').next().and_then(|word| word.parse().ok());
    lines.iter().map(|line| number(line).unwrap_or_else(|| panic!("no number: {line}"))).collect()
}

/// Checks lines of drop copies against all reports to session 2: each report once, in its order.
fn check_all(lines: &[String], count: u64) {
    let in_session: Vec<u64> =
        lines.iter().map(|line| field(line, "session_number").parse().expect("a number")).collect();
    assert_eq!(in_session, (0..count).collect::<Vec<_>>());
    assert!(numbers(lines).windows(2).all(|pair| pair[0] < pair[1]), "numbers rise");
    assert!(lines.iter().all(|line| field(line, "session") == "2"), "there is no other session");
}

fn objects(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in: {line}"))).collect()
}

/// Returns all reports to clients according to the journal.
fn journaled(desk: &Desk) -> Vec<(At, Output)> {
    let mut replay = Replay::open(&LogPath::folder(desk.path().join("journal"))).expect("an OMS has made it");
    let mut core = Core::new(tickpath_oms_core::Config::default());
    let mut records = Vec::new();
    let mut take = |at: At, outputs: &[Output]| {
        let outputs = outputs.iter().filter(|output| !matches!(output, Output::Venue { .. }));
        records.extend(outputs.map(|output| (at, *output)));
    };
    while replay.step(&mut core, |at, _, outputs| take(at, outputs)).expect("it is sound") {}
    records
}

#[test]
fn a_blocked_drop_copy_stays_logged_in_and_prints_each_report_once() {
    const ORDERS: u64 = 2_500;
    let desk = desk();
    desk.change("oms.toml", "#heartbeat_ms = 10000", "heartbeat_ms = 1000");
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    trade(&desk, 0..ORDERS);
    let count = REPORTS * ORDERS;
    let mut copy = Follower::start(&desk, &format!("drop-copy --config @/oms.toml --user back --all --count {count}"));
    copy.await_words("reports to other sessions");
    // The heartbeat limit has passed when the OMS ends a session that sends nothing after its logon.
    for session in [1, 3] {
        let _silent = connect(&desk, session);
        oms.await_words(&format!("trader has left session {session}: no message for"));
    }
    assert!(!oms.err().contains("back has left session"), "{}", oms.err());
    copy.read();
    let lines = copy.await_lines(count);
    assert_eq!(copy.end(), Some(0), "{}", copy.err());
    check_all(&lines, count);
}

#[test]
fn a_drop_copy_resumes_over_restarts_and_the_end_of_a_day() {
    let desk = desk();
    let exchange = desk.exchange();
    let mut oms = desk.oms();
    exchange.await_words("serving the OMS");
    let count = 4 * REPORTS;
    let line = format!("drop-copy --config @/oms.toml --user back --all --count {count}");
    let mut copy = Follower::read_at_once(&desk, &line);
    trade(&desk, 0..1);
    copy.await_lines(REPORTS);
    // SIGKILL, and reports before the drop copy is back.
    drop(oms);
    oms = desk.oms();
    trade(&desk, 1..2);
    copy.await_lines(2 * REPORTS);
    assert!(copy.err().contains("the connection was lost: "), "{}", copy.err());
    let ran = desk.tickpath("oms day-end --config @/oms.toml");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    trade(&desk, 2..3);
    assert_eq!(oms.interrupt().code, Some(0));
    let _oms = desk.oms();
    trade(&desk, 3..4);
    let lines = copy.await_lines(count);
    assert_eq!(copy.end(), Some(0), "{}", copy.err());
    check_all(&lines, count);
}

#[test]
fn a_drop_copy_resumes_behind_a_number_of_this_or_an_earlier_day() {
    let desk = desk();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    trade(&desk, 0..2);
    let copy = |options: &str, count: u64| {
        let line = format!("drop-copy --config @/oms.toml --user back {options} --count {count}");
        let mut copy = Follower::read_at_once(&desk, &line);
        let code = copy.end();
        assert_eq!(code, Some(0), "{options}: {}", copy.err());
        copy.await_lines(count)
    };
    let first = copy("--all --json", 2 * REPORTS);
    let journal = objects(&first)[0]["journal"].as_u64().expect("each line names it");
    let first = numbers(&copy("--all", 2 * REPORTS));
    let ran = desk.tickpath("oms day-end --config @/oms.toml");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    trade(&desk, 2..3);
    let second = numbers(&copy("--all", REPORTS));
    let all = [first, second.clone()].concat();
    check_all(&copy("--from 0", 3 * REPORTS), 3 * REPORTS);
    for at in [0, 3, 5, 6, 7] {
        let options = [format!("--from {}", all[at]), format!("--from {} --journal {journal}", all[at])];
        for options in options {
            assert_eq!(numbers(&copy(&options, (all.len() - at) as u64 - 1)), all[at + 1..], "{options}");
        }
    }
    let other = format!("--from {} --journal {}", all[0], journal ^ 1);
    for (options, code, words) in [
        (other.as_str(), 1, "with its own numbers"),
        ("--from 1 --all", 2, "cannot be used with"),
        ("--journal 1", 2, "--from"),
    ] {
        let ran = desk.tickpath(&format!("drop-copy --config @/oms.toml --user back {options} --count 1"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{options}: {}", ran.err);
        assert!(ran.err.contains(words), "{options}: {}", ran.err);
    }
}

/// Returns the members of a report's object that belong to the report itself.
fn members(report: &ExecutionReport, [exec_type, status, side]: [&str; 3]) -> Vec<(&'static str, Value)> {
    vec![
        ("name", json!("execution_report")),
        ("order_id", json!(format!("{}.{}", report.order_id.epoch(), report.order_id.sequence()))),
        ("client_order_id", json!(report.client_order_id.0)),
        ("venue_order_id", json!(report.venue_order_id.0)),
        ("exec_id", json!(report.exec_id.0)),
        ("venue_sequence", json!(report.venue_sequence)),
        ("last_price", json!(report.last_price.to_string())),
        ("last_quantity", json!(report.last_quantity.to_string())),
        ("cumulative_quantity", json!(report.cumulative_quantity.to_string())),
        ("leaves_quantity", json!(report.leaves_quantity.to_string())),
        ("price", json!(report.price.to_string())),
        ("venue_stamp_ticks", json!(report.venue_stamp)),
        ("symbol", json!("BTCUSDT")),
        ("symbol_number", json!(report.symbol.0)),
        ("account", json!(report.account.0)),
        ("reason", json!(report.reason)),
        ("venue", json!(report.venue.0)),
        ("exec_type", json!(exec_type)),
        ("status", json!(status)),
        ("side", json!(side)),
        ("manual", json!(report.manual)),
    ]
}

/// Returns a time in the format of the lines.
fn moment(utc_ns: u64) -> String {
    let seconds = tickpath_clock::rfc3339(utc_ns);
    format!("{}.{:09}Z", seconds.trim_end_matches('Z'), utc_ns % 1_000_000_000)
}

#[test]
fn lines_and_objects_have_every_field_of_the_journal() {
    let desk = desk();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000.5 --session 2 --id 7");
    assert!(ran.out.contains("new new side=buy"), "{}{}", ran.out, ran.err);
    let ran = desk.order("cancel 7 --session 2 --id 8");
    assert!(ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    let ran = desk.order("new BTCUSDT buy 100.5 60000 --session 2 --id 9");
    assert!(ran.code == Some(1) && ran.out.contains("denied"), "{}{}", ran.out, ran.err);
    trade(&desk, 10..11);
    let printed = journaled(&desk);
    let words = [
        Some(["pending_new", "pending_new", "buy"]),
        Some(["new", "new", "buy"]),
        Some(["pending_cancel", "pending_cancel", "buy"]),
        Some(["canceled", "canceled", "buy"]),
        None,
        Some(["pending_new", "pending_new", "buy"]),
        Some(["new", "new", "buy"]),
        Some(["trade", "filled", "buy"]),
    ];
    assert_eq!(printed.len(), words.len(), "{printed:?}");
    let count = words.len() as u64;
    let options = format!("drop-copy --config @/oms.toml --user back --all --count {count}");
    let copies = Follower::read_at_once(&desk, &format!("{options} --json")).await_lines(count);
    let lines = Follower::read_at_once(&desk, &options).await_lines(count);
    let records = Follower::read_at_once(&desk, "orders --config @/oms.toml --follow --from 0 --json");
    let records = records.await_lines(count);
    let clock = HostClock::get().expect("a clock");
    for (place, ((at, output), words)) in printed.iter().zip(words).enumerate() {
        let [copy, record]: [Value; 2] =
            [&copies, &records].map(|list| serde_json::from_str(&list[place]).expect("an object a line"));
        let wanted = match (output, words) {
            (Output::Report { report, .. }, Some(words)) => {
                // The text lines have the same values.
                let line = &lines[place];
                for key in ["symbol", "account", "price", "exec_id", "venue_order_id", "venue_sequence", "reason"] {
                    let wanted = members(report, words).into_iter().find(|(name, _)| *name == key).expect("it has it");
                    let wanted = wanted.1.as_str().map_or_else(|| wanted.1.to_string(), str::to_owned);
                    assert_eq!(field(line, key), wanted, "{line}");
                }
                members(report, words)
            }
            (Output::Denied { denied, .. }, None) => vec![
                ("name", json!("order_denied")),
                ("order_id", json!(format!("{}.{}", denied.order_id.epoch(), denied.order_id.sequence()))),
                ("client_order_id", json!(9)),
                ("account", json!(denied.account.0)),
                ("limit", json!("100")),
                ("value", json!("100.5")),
            ],
            other => panic!("not this: {other:?}"),
        };
        for (key, value) in wanted {
            assert_eq!((&copy[key], &record[key]), (&value, &value), "{key} of {copy} and {record}");
        }
        let stamp = copy["stamp_ticks"].as_u64().expect("each line has it");
        assert_eq!(copy["time"], json!(moment(clock.calibration().utc_ns_of(stamp))), "{copy}");
        assert_eq!(field(&lines[place], "time"), copy["time"].as_str().expect("a text"));
        assert_eq!((&copy["session"], &copy["session_number"]), (&json!(2), &json!(place)), "{copy}");
        assert_eq!((&record["number"], &record["session"]), (&json!(at.sequence), &json!(2)), "{record}");
        assert_eq!(record["stamp_ticks"], json!(at.stamp), "{record}");
        assert_eq!(record["time"], json!(moment(clock.calibration().utc_ns_of(at.stamp))), "{record}");
    }
}

#[test]
fn orders_follows_over_restarts_and_days_and_resumes_behind_a_record() {
    let desk = desk();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let follower = Follower::read_at_once(&desk, "orders --config @/oms.toml --follow --json");
    follower.await_words("reports to clients from record");
    trade(&desk, 0..1);
    drop(oms);
    let _oms = desk.oms();
    trade(&desk, 1..2);
    let ran = desk.tickpath("oms day-end --config @/oms.toml");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    trade(&desk, 2..3);
    let records: Vec<u64> = journaled(&desk).iter().map(|(at, _)| at.sequence).collect();
    let count = records.len() as u64;
    assert_eq!(count, 3 * REPORTS);
    let of = |lines: &[String]| -> Vec<u64> {
        objects(lines).iter().map(|object| object["number"].as_u64().expect("each line has it")).collect()
    };
    assert_eq!(of(&follower.await_lines(count)), records);
    // A snapshot behind the requested record does not hide anything.
    let ran = desk.tickpath("log snapshot @/journal");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for last in [0, records[0], records[4], records[6]] {
        let behind: Vec<u64> = records.iter().copied().filter(|&record| record > last).collect();
        let line = format!("orders --config @/oms.toml --follow --json --from {last}");
        let follower = Follower::read_at_once(&desk, &line);
        assert_eq!(of(&follower.await_lines(behind.len() as u64)), behind, "--from {last}");
    }
    let ran = desk.tickpath("orders --config @/oms.toml --follow --from 1000000");
    assert!(ran.code == Some(1) && ran.err.contains("the journal ends before record"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_follower_with_a_closed_output_ends_without_another_line() {
    let desk = desk();
    let _oms = desk.oms();
    for (line, words) in [
        ("drop-copy --config @/oms.toml --user back", "reports to other sessions"),
        ("orders --config @/oms.toml --follow", "reports to clients"),
    ] {
        let mut follower = Follower::start(&desk, line);
        follower.await_words(words);
        drop(follower.child.stdout.take());
        assert_eq!(follower.end(), Some(0), "{line}: {}", follower.err());
    }
    // No further output follows whose write could fail.
    let mut follower = Follower::start(&desk, "log cat @/journal --follow");
    let mut stdout = follower.child.stdout.take().expect("it is a pipe");
    stdout.read_exact(&mut [0]).expect("a line of the journal");
    drop(stdout);
    assert_eq!(follower.end(), Some(0), "{}", follower.err());
}
