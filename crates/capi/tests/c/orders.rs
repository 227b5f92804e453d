//! Sessions with an OMS in C, against a real OMS with an exchange.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use tickpath_bus::{Policy, TopicConfig};
use tickpath_market::{ExecType, Kind, Liquidity, OrdStatus, Price, Quantity, SymbolId, TopOfBook, Trade};
use zerocopy::IntoBytes;

use crate::desk::{ASK, Desk, LOW, ONE, PASSWORD, SYMBOL, USER, WITH_DETAILS};
use crate::detail_line::{FEE, FEE_CURRENCY, REASON, RECEIVED_NS, SENT_NS};
use crate::{Bus, Programs, TOPIC, bounded, misuse};

// Values from the header, which never change.
const UNAVAILABLE: i128 = 5;
const REPORT: u32 = 1;
const DENIED: u32 = 2;
const CONNECTED: u32 = 6;
const DISCONNECTED: u32 = 7;
const DETAIL: u32 = 12;
const BUY: i128 = 1;
const SELL: i128 = 2;
const DAY: u32 = 0;
const IMMEDIATE_OR_CANCEL: u32 = 3;
const POST_ONLY: u32 = 1;

#[test]
fn c_reads_ticks_without_an_offset() {
    let (programs, bus) = (Programs::new(), Bus::new("ticks"));
    let connection = bus.open();
    let mut publisher = connection.publisher(TOPIC, &TopicConfig::new(Policy::Overwrite)).expect("the topic is new");
    let top = TopOfBook {
        bid: Price(-1),
        bid_quantity: Quantity(2),
        ask: Price(3),
        ask_quantity: Quantity(4),
        event_ns: 5,
        symbol: SymbolId(6),
        wire_age_ns: 12,
    };
    let trade = Trade {
        price: Price(7),
        quantity: Quantity(8),
        trade_id: 9,
        event_ns: 10,
        symbol: SymbolId(11),
        aggressor: 2,
        reserved: [0; 3],
    };
    publisher.publish(1, Kind::TopOfBook.code(), top.as_bytes()).expect("it never waits");
    publisher.publish(2, Kind::Trade.code(), trade.as_bytes()).expect("it never waits");
    let output = programs.say("tests/c/ticks.c", &[&bus.url, TOPIC, "2"]);
    assert_eq!(output, "top -1 2 3 4 5 6 12\ntrade 7 8 9 10 11 2\n");
}

#[test]
fn an_order_leaves_at_its_price_and_names_its_tick() {
    let (programs, desk) = (Programs::new(), Desk::new());
    let (_exchange, _oms) = desk.start_all();
    let (ticks, oms, password, symbol) = (desk.ticks(), desk.url("unix"), desk.password_file(), SYMBOL.to_string());
    let output = programs.say("examples/orders.c", &["shm://", &ticks, &oms, USER, &password, &symbol, "61801"]);
    assert!(output.contains("session 0 is connected\n"), "{output}");
    let filled = format!(
        "exec_type {}, status {}, filled {ONE}, last price {ASK}, in 10^-8\n",
        ExecType::Trade.code(),
        OrdStatus::Filled.code()
    );
    assert!(output.ends_with(&filled), "'{filled}' behind all in\n{output}");
    let order = desk.orders().into_iter().find(|order| order.quantity == Quantity(ONE)).expect("the exchange had it");
    assert_ne!(order.cause, 0, "it was sent because of a tick");
}

#[test]
fn the_life_of_an_order_is_reported_in_numbers() {
    let (programs, desk) = (Programs::new(), Desk::new());
    let (_exchange, _oms) = desk.start_all();
    let program = programs.compile("tests/c/session.c");
    for scheme in ["unix", "shm+unix"] {
        let mut session = Session::start(&program, &desk.url(scheme));
        let connected = session.until(CONNECTED, None);
        assert_eq!((connected["session"] < 4, connected["heartbeat_ms"]), (true, 10_000));

        let id = session.submit(ASK, ONE / 2, IMMEDIATE_OR_CANCEL, 77);
        let filled = session.until(REPORT, Some(ExecType::Trade));
        assert_eq!((filled["id"], filled["symbol"], filled["account"], filled["side"]), (id, SYMBOL.into(), 1, BUY));
        assert_eq!((filled["status"], filled["is_live"]), (OrdStatus::Filled.code().into(), 1));
        assert_eq!((filled["last_price"], filled["last_quantity"]), (ASK.into(), (ONE / 2).into()));
        assert_eq!((filled["cumulative"], filled["leaves"]), ((ONE / 2).into(), 0));

        let id = session.submit(LOW, ONE, DAY, 0);
        let resting = session.until(REPORT, Some(ExecType::New));
        assert_eq!((resting["id"], resting["leaves"], resting["price"]), (id, ONE.into(), LOW.into()));
        let changing = session.sent(&format!("replace {id} {} {}", LOW + ONE, 2 * ONE));
        let changed = session.until(REPORT, Some(ExecType::Replaced));
        assert_eq!((changed["id"], changed["order_id"]), (changing, resting["order_id"]));
        assert_eq!((changed["price"], changed["leaves"]), ((LOW + ONE).into(), (2 * ONE).into()));
        let canceling = session.sent(&format!("cancel {id}"));
        let canceled = session.until(REPORT, Some(ExecType::Canceled));
        assert_eq!((canceled["id"], canceled["order_id"], canceled["leaves"]), (canceling, resting["order_id"], 0));
        assert!(canceled["number"] > changed["number"] && changed["number"] > resting["number"]);

        let id = session.sent(&format!("submit {BUY} {ASK} {ONE} {DAY} 0 {POST_ONLY}"));
        let rejected = session.until(REPORT, Some(ExecType::Rejected));
        assert_eq!((rejected["id"], rejected["reason"], rejected["cumulative"]), (id, 11, 0), "it would trade at once");

        // More than the account may buy in one order.
        let id = session.submit(ASK, 1_000 * ONE, IMMEDIATE_OR_CANCEL, 0);
        let (denied, why) = session.until_told(DENIED, None);
        assert_eq!((denied["id"], denied["code"], denied["is_live"]), (id, 23, 1));
        assert_eq!((denied["limit_low"], denied["limit_high"]), ((100 * ONE).into(), 0));
        assert_eq!((denied["value_low"], denied["value_high"]), ((1_000 * ONE).into(), 0));
        assert!(why.contains("split the order"), "{why}");
        let id = session.sent("cancel 1");
        let (denied, why) = session.until_told(DENIED, None);
        assert_eq!((denied["id"], denied["code"]), (id, 7), "{why}");
        session.end();
    }
    let causes: Vec<u64> = desk.orders().iter().map(|order| order.cause).filter(|&cause| cause != 0).collect();
    assert_eq!(causes, [77, 77], "what caused an order goes with it");
}

#[test]
fn a_session_survives_its_oms() {
    let (programs, desk) = (Programs::new(), Desk::new());
    let (_exchange, oms) = desk.start_all();
    let mut session = Session::start(&programs.compile("tests/c/session.c"), &desk.url("unix"));
    session.until(CONNECTED, None);
    let id = session.submit(LOW, ONE, DAY, 0);
    session.until(REPORT, Some(ExecType::New));
    drop(oms);
    session.until(DISCONNECTED, None);
    let (answer, why) = session.ask(&format!("submit {BUY} {ASK} {ONE} {IMMEDIATE_OR_CANCEL} 0 0"));
    assert_eq!((answer["status"], answer["id"]), (UNAVAILABLE, 0));
    assert!(why.contains("no connection to the OMS"), "{why}");
    let _oms = desk.start("oms");
    session.until(CONNECTED, None);
    let canceling = session.sent(&format!("cancel {id}"));
    let canceled = session.until(REPORT, Some(ExecType::Canceled));
    assert_eq!(canceled["id"], canceling);
    session.end();
}

#[test]
fn details_have_fee_liquidity_times_and_text_over_a_restart() {
    let (programs, desk) = (Programs::new(), Desk::new());
    let (_exchange, oms) = (desk.start("exchange"), desk.start(WITH_DETAILS));
    desk.await_orders();
    let mut session = Session::start(&programs.compile("tests/c/session.c"), &desk.url("unix"));
    session.until(CONNECTED, None);
    session.submit(ASK, ONE, IMMEDIATE_OR_CANCEL, 0);
    let filled = session.until(REPORT, Some(ExecType::Trade));
    let (told, text) = session.until_told(DETAIL, None);
    assert_eq!((told["order_id"], told["exec_id"]), (filled["order_id"], filled["exec_id"]));
    assert_eq!(told["fee_high"] << 64 | told["fee_low"], FEE);
    assert_eq!((told["is_usdt"] == 1, FEE_CURRENCY), (true, "USDT"));
    assert_eq!(told["liquidity"], Liquidity::Taker.code().into());
    assert_eq!((told["received_ns"], told["sent_ns"]), (RECEIVED_NS.into(), SENT_NS.into()));
    assert_eq!(text, "");
    drop(oms);
    session.until(DISCONNECTED, None);
    let _oms = desk.start(WITH_DETAILS);
    session.until(CONNECTED, None);
    desk.await_orders();
    session.sent(&format!("submit {SELL} {} {ONE} {IMMEDIATE_OR_CANCEL} 0 0", ASK - ONE));
    let (rejected, text) = session.until_told(DETAIL, None);
    assert_eq!((rejected["number"], rejected["exec_id"], rejected["fee_low"]), (told["number"] + 1, 0, 0));
    assert_eq!(text, REASON);
    session.end();
}

#[test]
fn every_misuse_of_a_session_has_a_status_and_a_sentence() {
    let (programs, desk) = (Programs::new(), Desk::new());
    let (_exchange, _oms) = desk.start_all();
    let output = programs.say("tests/c/asks.c", &[&desk.url("unix"), USER, PASSWORD]);
    misuse::check(misuse::OF_A_SESSION, &output);
}

/// The numbers of a line by name, and its sentence.
type PrintedEvent = (BTreeMap<String, i128>, String);

/// A running `session.c`.
struct Session {
    program: Child,
    commands: ChildStdin,
    says: BufReader<ChildStdout>,
}

impl Session {
    fn start(program: &Path, url: &str) -> Self {
        let mut command = bounded(program, &[url, USER, PASSWORD]);
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("timeout can be run");
        let commands = program.stdin.take().expect("it is a pipe");
        let says = BufReader::new(program.stdout.take().expect("it is a pipe"));
        Self { program, commands, says }
    }

    /// Sends a buy order; returns its id.
    fn submit(&mut self, price: i64, quantity: i64, time_in_force: u32, cause: u64) -> i128 {
        self.sent(&format!("submit {BUY} {price} {quantity} {time_in_force} {cause} 0"))
    }

    /// Sends a request; returns its id.
    fn sent(&mut self, command: &str) -> i128 {
        let (answer, why) = self.ask(command);
        assert_eq!(answer["status"], 0, "{command}: {why}");
        answer["id"]
    }

    /// Polls up to an event of this type, and of this execution type if given.
    fn until(&mut self, what: u32, exec_type: Option<ExecType>) -> BTreeMap<String, i128> {
        self.until_told(what, exec_type).0
    }

    fn until_told(&mut self, what: u32, exec_type: Option<ExecType>) -> PrintedEvent {
        let exec_type = exec_type.map_or(-1, |exec_type| i32::from(exec_type.code()));
        self.ask(&format!("until {what} {exec_type}"))
    }

    /// Sends a command; returns the last line of the answer.
    fn ask(&mut self, command: &str) -> PrintedEvent {
        writeln!(self.commands, "{command}").unwrap_or_else(|e| panic!("{command}: {e}"));
        let mut output: Vec<String> = Vec::new();
        loop {
            let mut line = String::new();
            let bytes = self.says.read_line(&mut line).expect("it says text");
            assert!(bytes > 0, "it ended in the middle of '{command}', of which it said {output:?}");
            if line.trim_end() == "." {
                let last = output.pop().unwrap_or_else(|| panic!("it said nothing to '{command}'"));
                return read(&last);
            }
            output.push(line);
        }
    }

    /// Logs out and checks that the program succeeds.
    fn end(self) {
        let Self { mut program, commands, says } = self;
        drop(commands);
        let ended = program.wait().expect("it was started");
        assert!(ended.success(), "{ended}");
        drop(says);
    }
}

/// Parses a line like `status=0 id=7 | a sentence`.
fn read(line: &str) -> PrintedEvent {
    let (numbers, sentence) = line.split_once('|').unwrap_or_else(|| panic!("'{line}' has no sentence"));
    let number = |word: &str| {
        let (name, number) = word.split_once('=')?;
        Some((name.to_owned(), number.parse::<i128>().ok()?))
    };
    let numbers = numbers.split_whitespace().map(|word| number(word).unwrap_or_else(|| panic!("'{word}' in '{line}'")));
    (numbers.collect(), sentence.trim().to_owned())
}
