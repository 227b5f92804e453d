//! A desk as in the README: an exchange, an OMS and clients, each killed while they trade. Every client keeps its own
//! list, and checks the OMS against it.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use tempfile::TempDir;
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{
    AccountId, ClientOrderId, ExecType, NewOrder, OrderType, Price, Quantity, Request, Side, SymbolId,
};
use tickpath_oms_client::{Client, ClientError, ClientEvent, Config, Since};
use tickpath_oms_protocol::LogonRejectReason;

use crate::logs::{Running, until};
use crate::program::{Ran, tickpath};

/// BTCUSDT in the first table of instruments, and its quotes in the first exchange.toml.
const SYMBOL: SymbolId = SymbolId(1);
const BID: &str = "61800";
pub const ASK: &str = "61800.1";

/// Number of kills in a test, of each process in turn.
const KILLS: u64 = 200;
/// Number of a client's orders in flight.
const OPEN: usize = 8;
/// Time limit for every wait, in nanoseconds.
const PATIENCE_NS: i64 = 120_000_000_000;

/// The files of a desk, as `init` leaves them, but with unique names in shared memory.
pub struct Desk {
    name: String,
    folder: TempDir,
}

impl Drop for Desk {
    /// Files in shared memory carry the desk's name.
    fn drop(&mut self) {
        let of_this = format!("tickpath.{}.", self.name);
        for found in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            if found.file_name().to_string_lossy().starts_with(&of_this) {
                let _ = fs::remove_dir_all(found.path()).or_else(|_| fs::remove_file(found.path()));
            }
        }
    }
}

impl Desk {
    pub fn new() -> Self {
        static DESKS: AtomicU64 = AtomicU64::new(0);
        let name = format!("cli-desk-{}-{}", std::process::id(), DESKS.fetch_add(1, Ordering::Relaxed));
        let desk = Self { name, folder: tempfile::tempdir().expect("a temporary folder can be made") };
        let name = &desk.name;
        for who in ["oms", "exchange"] {
            let ran = desk.tickpath(&format!("{who} init --folder @"));
            assert_eq!(ran.code, Some(0), "{}", ran.err);
        }
        desk.change("oms.toml", "name = \"oms\"", &format!("name = \"{name}\""));
        desk.change("oms.toml", "127.0.0.1:7001", "127.0.0.1:0");
        desk.change("exchange.toml", "oms = \"oms\"", &format!("oms = \"{name}\""));
        for file in ["oms.toml", "exchange.toml"] {
            desk.change(file, "\"oms.ticks\"", &format!("\"{name}.ticks\""));
        }
        // Orders that wait for a killed process are not too old in this test, nor is a single account too fast.
        desk.change("accounts.csv", "1,1000,1000000000,", "1,,1000000000,");
        desk.change("accounts.csv", "60000000000,5000000000,1000", "60000000000,,1000");
        desk
    }

    /// The desk in a folder that another desk has left.
    pub fn unpacked(folder: TempDir) -> Self {
        let text = fs::read_to_string(folder.path().join("oms.toml")).expect("it is there");
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")).expect("init has written it");
        Self { name: name.trim_end_matches('"').to_owned(), folder }
    }

    /// Calls the binary; @ stands for the folder.
    pub fn tickpath(&self, line: &str) -> Ran {
        tickpath(&self.line(line))
    }

    pub fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Returns the topic of the desk's market.
    pub fn ticks(&self) -> String {
        let text = fs::read_to_string(self.folder.path().join("oms.toml")).expect("it is there");
        let line = text.lines().find_map(|line| line.strip_prefix("ticks = \"")).expect("init has written it");
        line.trim_end_matches('"').to_owned()
    }

    pub fn password(&self, user: &str) -> String {
        let file = self.folder.path().join(format!("{user}.password"));
        fs::read_to_string(file).expect("init has written it").trim_end().to_owned()
    }

    pub fn line(&self, line: &str) -> String {
        line.replace('@', &self.folder.path().display().to_string())
    }

    pub fn change(&self, file: &str, from: &str, to: &str) {
        let file = self.folder.path().join(file);
        let text = fs::read_to_string(&file).expect("it is there");
        assert!(text.contains(from), "{} has no {from}", file.display());
        fs::write(file, text.replacen(from, to, 1)).expect("the folder is ours");
    }

    pub fn exchange(&self) -> Running {
        Running::start(&self.line("exchange --config @/exchange.toml"))
    }

    pub fn oms(&self) -> Running {
        let oms = Running::start(&self.line("oms --config @/oms.toml"));
        oms.await_words(": ready");
        oms
    }

    pub fn order(&self, line: &str) -> Ran {
        self.tickpath(&format!("order {line} --config @/oms.toml"))
    }

    pub fn config(&self, session: u16) -> Config {
        let password = fs::read_to_string(self.folder.path().join("trader.password")).expect("init has written it");
        let url = self.line("unix://@/oms.sock");
        Config { session: Some(session), ..Config::new(url, "trader", password.trim_end()) }
    }
}

#[test]
fn three_commands_fill_an_order_and_the_others_show_it() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order(&format!("new BTCUSDT buy 1 {ASK}"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    until(|| desk.tickpath("orders --config @/oms.toml").out.contains("1 done"), || "the fill".to_owned());
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new side=buy leaves=1"), "{}{}", ran.out, ran.err);
    assert!(desk.tickpath("orders --config @/oms.toml").out.contains("1 open"));
    let ran = desk.order("replace 7 2 60001 --session 2");
    assert!(ran.out.contains("replaced"), "{}{}", ran.out, ran.err);
    drop(oms);
    let oms = desk.oms();
    let ran = desk.order("cancel 7 --session 2");
    assert!(ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    let status = desk.tickpath("oms status --config @/oms.toml --user admin");
    assert!(status.out.contains("done             2"), "{}{}", status.out, status.err);
    let second = desk.tickpath("oms --config @/oms.toml");
    assert_eq!((second.code, second.err.lines().count()), (Some(1), 1), "{}", second.err);
    assert!(
        second.err.contains("is an OMS on the journal file://") && second.err.contains("stop that"),
        "{}",
        second.err
    );
    let text = fs::read_to_string(desk.path().join("oms.toml")).expect("it is there");
    let text = text.replacen("journal = \"journal\"", "journal = \"another\"", 1);
    fs::write(desk.path().join("second.toml"), text).expect("the folder is ours");
    let second = desk.tickpath("oms --config @/second.toml");
    let words = format!("is an OMS of the name '{}' already; stop that one", desk.name);
    assert!(second.code == Some(1) && second.err.contains(&words), "{}", second.err);
    for (line, code, words) in [
        ("order new BTCUSDT buy 0 1", 1, "denied"),
        ("order new NOPE buy 1 1", 2, "is no instrument"),
        ("order cancel 99", 1, "no such order"),
        ("order cancel 99 --user nobody", 1, "nobody.password"),
        ("oms status --user admin --session 0", 1, "is not this user's"),
    ] {
        let ran = desk.tickpath(&format!("{line} --config @/oms.toml"));
        let printed = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == Some(code) && printed.contains(words), "{line}: {:?} {printed}", ran.code);
    }
    // A refusal and a missing answer have different exit codes.
    drop(exchange);
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --wait 1");
    assert!(ran.code == Some(5) && ran.err.contains("may still"), "{:?} {}{}", ran.code, ran.out, ran.err);
    let help = desk.tickpath("order new --help").out;
    assert!(help.contains("Exit codes: 0 ") && help.contains(" 5 no answer has arrived"), "{help}");
    let help = desk.tickpath("oms status --help").out;
    for line in status.out.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        let is_it =
            |output: &str| output.strip_prefix("  ").is_some_and(|output| output.starts_with(&format!("{name} ")));
        assert!(help.lines().any(is_it), "no word of {name} in {help}");
    }
    let ran = oms.interrupt();
    assert!(ran.code == Some(0) && ran.err.contains("stopped in good order"), "{}", ran.err);
    let ran = desk.order("cancel 7 --session 2");
    assert!(ran.code == Some(1) && ran.err.contains("no OMS answers"), "{}", ran.err);
}

#[test]
fn no_order_is_lost_or_sent_twice_after_any_kill() {
    let desk = Desk::new();
    let (mut exchange, mut oms) = (desk.exchange(), desk.oms());
    exchange.await_words("serving the OMS");
    assert_eq!(desk.order(&format!("new BTCUSDT buy 1 {ASK} --session 3")).code, Some(0));
    let stop = Arc::new(AtomicBool::new(false));
    let dies: [Arc<AtomicBool>; 2] = Default::default();
    let traders: Vec<JoinHandle<Trader>> = (0..2_u16)
        .map(|session| {
            let (config, stop, dies) = (desk.config(session), stop.clone(), dies[usize::from(session)].clone());
            std::thread::spawn(move || Trader::new(config, session).trade(&stop, &dies))
        })
        .collect();
    for kill in 0..KILLS {
        match kill % 4 {
            0 | 2 => {
                drop(oms);
                oms = desk.oms();
            }
            1 => {
                drop(exchange);
                exchange = desk.exchange();
                exchange.await_words("serving the OMS");
            }
            _ => dies[(kill / 4 % 2) as usize].store(true, Ordering::Release),
        }
    }
    stop.store(true, Ordering::Release);
    let traders: Vec<Trader> = traders.into_iter().map(|trader| trader.join().expect("its list is right")).collect();
    let mut fills: Vec<u64> = traders.iter().flat_map(|trader| trader.fills.keys().copied()).collect();
    let all = fills.len();
    fills.sort_unstable();
    fills.dedup();
    assert_eq!(fills.len(), all, "a fill was told to two sessions");
    assert!(all > 200, "too little was traded: {all}");
    // One more order was traded before these.
    let text = desk.tickpath("orders --config @/oms.toml").out;
    assert!(text.contains(&format!("0 open (0 waiting, 0 in flight, 0 unknown), {} done", all + 1)), "{text}");
}

/// A client with its own list of orders and fills.
pub struct Trader {
    config: Config,
    clock: HostClock,
    client: Client,
    /// The next client order id.
    next_id: u64,
    /// Orders that are not yet filled.
    open: BTreeMap<u64, Request>,
    /// Requests sent, by number, that may have to be sent again.
    sent: BTreeMap<u64, Request>,
    /// Requests to be sent again.
    again: Vec<Request>,
    /// Order id of each execution id.
    fills: BTreeMap<u64, u64>,
    next_report: u64,
}

impl Trader {
    pub fn new(config: Config, session: u16) -> Self {
        let config = Config { since: Since::Start, ..config };
        let client = connect(&config);
        Self {
            config,
            clock: HostClock::get().expect("a clock"),
            client,
            next_id: 1 + u64::from(session) * 1_000_000,
            open: BTreeMap::new(),
            sent: BTreeMap::new(),
            again: Vec::new(),
            fills: BTreeMap::new(),
            next_report: 0,
        }
    }

    /// Trades until it is stopped and all orders are filled.
    pub fn trade(mut self, stop: &AtomicBool, dies: &AtomicBool) -> Self {
        let mut stopped = None;
        loop {
            if dies.swap(false, Ordering::AcqRel) {
                self.die();
            }
            let is_over = stop.load(Ordering::Acquire);
            if is_over && self.open.is_empty() {
                return self;
            }
            if is_over {
                let from = *stopped.get_or_insert_with(|| self.clock.ticks());
                let waited = self.clock.ns_between(from, self.clock.ticks());
                assert!(waited < PATIENCE_NS, "never filled: {:?}", self.open);
            }
            while let Some(request) = self.again.pop() {
                if !self.send(request) {
                    break;
                }
            }
            if !is_over && self.open.len() < OPEN {
                let request = self.next_order();
                self.open.insert(request.client_order_id().0, request);
                self.send(request);
            }
            self.hear();
        }
    }

    /// Returns the fills: execution id, and the id of the order.
    pub fn fills(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.fills.iter().map(|(&exec, &order)| (exec, order))
    }

    /// Acts as if its process were killed: unread reports are lost, and a new client begins with its list.
    fn die(&mut self) {
        let since = self.client.since();
        self.client = connect(&Config { since, ..self.config.clone() });
        let next = self.client.welcome().next_request;
        let lost = self.sent.split_off(&next);
        self.again.extend(lost.into_values());
    }

    fn next_order(&mut self) -> Request {
        let id = self.next_id;
        self.next_id += 1;
        let (side, price) = if id.is_multiple_of(2) { (Side::Buy, ASK) } else { (Side::Sell, BID) };
        Request::New(NewOrder {
            client_order_id: ClientOrderId(id),
            price: price.parse::<Price>().expect("a price"),
            quantity: Quantity::from_whole(1),
            symbol: SYMBOL,
            account: AccountId(1),
            side: side.code(),
            order_type: OrderType::Limit.code(),
            ..NewOrder::default()
        })
    }

    /// Returns false if the request could not be sent and has to be sent later.
    fn send(&mut self, request: Request) -> bool {
        match self.client.send(&request) {
            Ok(number) => {
                self.sent.insert(number, request);
                true
            }
            Err(e) => {
                let request = e.into_inner();
                self.again.push(request);
                false
            }
        }
    }

    fn hear(&mut self) {
        self.client.wait(2_000_000);
        let Self { client, open, sent, again, fills, next_report, .. } = self;
        let polled = client.poll(|event| match event {
            ClientEvent::Report { number, report, .. } => {
                assert_eq!(number, *next_report, "reports come once, and in order");
                *next_report += 1;
                if report.exec_type == ExecType::Trade.code() {
                    let (id, exec) = (report.client_order_id.0, report.exec_id.0);
                    assert_eq!(report.last_quantity, Quantity::from_whole(1), "{report:?}");
                    assert!(fills.insert(exec, id).is_none(), "fill {exec} came twice");
                    assert!(open.remove(&id).is_some(), "order {id} was filled twice");
                } else if report.exec_type == ExecType::Expired.code() {
                    // The order's day ended before it could be sent.
                    assert_eq!(report.cumulative_quantity, Quantity::ZERO, "{report:?}");
                    open.remove(&report.client_order_id.0);
                }
            }
            ClientEvent::Denied { denial, .. } => panic!("nothing of this is denied: {denial:?}"),
            ClientEvent::NotTaken { number, request } => {
                sent.remove(&number);
                again.push(request);
            }
            ClientEvent::Connected(welcome) => *sent = sent.split_off(&welcome.next_request.saturating_sub(1)),
            // The end below is what puts a request in doubt: the next client of the session finds out.
            ClientEvent::Disconnected { .. } | ClientEvent::Failed { .. } | ClientEvent::InDoubt { .. } => {}
            other => panic!("this is not right: {other:?}"),
        });
        match polled {
            Ok(_) => {}
            // The killed predecessor was reconnecting, and was the last to log in.
            Err(ClientError::Refused { refusal: Some(LogonRejectReason::InUse), .. }) => self.die(),
            Err(e) => panic!("it does not come back: {e}"),
        }
    }
}

/// Logs in, once there is an OMS that is not killed at the same time.
pub fn connect(config: &Config) -> Client {
    let mut client = None;
    until(
        || {
            client = Client::connect(config.clone()).ok();
            client.is_some()
        },
        || "a logon".to_owned(),
    );
    client.expect("just there")
}

#[test]
fn an_admin_cancels_an_order_of_a_gone_client_by_its_printed_id() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --session 2 --id 7");
    assert!(ran.out.contains("new new side=buy leaves=1"), "{}{}", ran.out, ran.err);
    let table = desk.tickpath("orders --config @/oms.toml").out;
    let row: Vec<&str> = table.lines().nth(2).expect("an order is open").split_whitespace().collect();
    let [id, since, client, session, account, symbol, ..] = row[..] else { panic!("{table}") };
    assert_eq!((client, session, account, symbol), ("7", "2", "1", "BTCUSDT"), "{table}");
    assert!(since.starts_with("20") && since.ends_with('Z'), "{table}");
    let ran = desk.order(&format!("cancel --order-id {id} --user admin"));
    assert!(ran.code == Some(0) && ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    assert!(desk.tickpath("orders --config @/oms.toml").out.contains("0 open"));
    let again = desk.order(&format!("cancel --order-id {id} --user admin"));
    assert!(again.code == Some(1) && again.out.contains("the order has ended"), "{}{}", again.out, again.err);
    for wrong in ["12", "x.y", "0.0", "1.1.1"] {
        let ran = desk.order(&format!("cancel --order-id {wrong}"));
        assert!(ran.code == Some(2) && ran.err.contains("is no order id"), "{wrong}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn rights_and_tables_change_while_the_oms_runs() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    fs::write(desk.folder.path().join("anna.password"), "a good password\n").expect("the folder is ours");
    let add = "oms user add --config @/oms.toml --accounts 1 --password-file @/anna.password anna";
    let ran = desk.tickpath(add);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    oms.await_words("definitions have changed");
    let as_anna = |line: &str| desk.order(&format!("{line} --user anna"));
    let ran = as_anna("new BTCUSDT buy 1 60000 --id 7");
    assert!(ran.out.contains("new new side=buy"), "a new session trades at once: {}{}", ran.out, ran.err);
    // A right that is removed denies the next order; the user's own orders may still be cancelled.
    desk.change("users.toml", "accounts = [\"1\"]", "accounts = [\"2\"]");
    let denied = || as_anna("new BTCUSDT buy 1 60000").out.contains("may not trade for this account");
    until(denied, || "the right is gone".to_owned());
    desk.change("users.toml", "accounts = [\"2\"]", "accounts = [\"1\"]\nkinds = [\"cancel\"]");
    let denied = || as_anna("new BTCUSDT buy 1 60000").out.contains("may not make requests of this kind");
    until(denied, || "the kind is gone".to_owned());
    let ran = as_anna("cancel 7");
    assert!(ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    // Tables take effect on a reload, and only once all of them are right.
    desk.change("accounts.csv", "1,,1000000000,100,", "1,,1000000000,5,");
    assert!(desk.order("new BTCUSDT buy 9 60000").out.contains("new new"), "nobody has asked yet");
    desk.change("accounts.csv", "\n2,100,", "\n2,many,");
    let ran = desk.tickpath("oms reload --config @/oms.toml");
    assert!(ran.code == Some(2) && ran.err.contains("accounts.csv:5"), "{}{}", ran.out, ran.err);
    oms.signal("-HUP");
    oms.await_words("the previous configuration stays in force");
    assert!(desk.order("new BTCUSDT buy 9 60000").out.contains("new new"), "a mistake changes nothing");
    desk.change("accounts.csv", "\n2,many,", "\n2,100,");
    let ran = desk.tickpath("oms reload --config @/oms.toml");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let denied = || desk.order("new BTCUSDT buy 9 60000").out.contains("limit 5, value 9");
    until(denied, || "the new limit".to_owned());
    // A disabled user is locked out at once, though another line of the file is rejected.
    desk.change("users.toml", "sessions = [0, 1, 2, 3]", "sessions = [1, 2, 3]");
    desk.change("users.toml", "sessions = [8, 9]", "sessions = [0, 8, 9]");
    oms.await_words("session 0");
    let ran = as_anna("cancel 7");
    assert_eq!(ran.err, "", "anna may still log in: {}", ran.out);
    let ran = desk.tickpath("oms user disable --config @/oms.toml anna");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let is_shut_out = || as_anna("cancel 7").err.contains("the password is wrong");
    until(is_shut_out, || "anna is out".to_owned());
    drop(oms);
    let ran = desk.tickpath("oms reload --config @/oms.toml");
    assert!(ran.code == Some(1) && ran.err.contains("no OMS writes"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_denial_prints_the_limit_and_the_value() {
    let desk = Desk::new();
    let head = "symbol,number,venue,multiplier";
    desk.change("instruments.csv", &format!("\n{head}\n"), &format!("\n{head},tick_size,lot\n"));
    desk.change("instruments.csv", "\nBTCUSDT,1,SIM,1\n", "\nBTCUSDT,1,SIM,1,0.5,0.1\n");
    desk.change("instruments.csv", "\nETHUSDT,2,SIM,1\n", "\nETHUSDT,2,SIM,1,,\n");
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1.1 60000.5");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let is_denied = |line: &str, words: &str| {
        let ran = desk.order(line);
        assert!(ran.code == Some(1) && ran.out.contains(&format!("denied: {words}\n")), "{}{}", ran.out, ran.err);
    };
    is_denied(
        "new BTCUSDT buy 1 60000.3",
        "the price is no whole multiple of the tick size; round it (limit 0.5, value 60000.3)",
    );
    is_denied(
        "new BTCUSDT buy 1.05 60000",
        "the quantity is no whole multiple of the lot; round it (limit 0.1, value 1.05)",
    );
    // All tables, the firm and the users of a running OMS.
    desk.change("oms.toml", "#credit = 200000000", "credit = 100000");
    desk.change("symbols.csv", "#1,BTCUSDT,500,50,,", "1,BTCUSDT,500,2,,true");
    desk.change("users.toml", "role = \"trade\"", "role = \"trade\"\nmax_notional = 130000");
    let ran = desk.tickpath("oms reload --config @/oms.toml");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    oms.await_words("definitions have changed");
    is_denied(
        "new BTCUSDT buy 2.1 60000",
        "the quantity is over the account's limit of one order in this symbol; split the order (limit 2, value 2.1)",
    );
    is_denied(
        "new BTCUSDT sell 0.1 63000",
        "the account may not sell this symbol short; sell no more than it has, working orders included (limit 0, value 0.1)",
    );
    is_denied(
        "new BTCUSDT buy 2 65000.5",
        "the notional is over the session's limit of one order; split the order (limit 130000, value 130001)",
    );
    is_denied(
        "new BTCUSDT buy 1 60000",
        "the firm's credit is used up by what its accounts traded and have open; cancel working orders or raise the credit \
         (limit 100000, value 126000.55)",
    );
    // Limits removed from the files no longer hold.
    desk.change("symbols.csv", "1,BTCUSDT,500,2,,true", "");
    desk.change("oms.toml", "credit = 100000", "");
    let ran = desk.tickpath("oms reload --config @/oms.toml");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let is_gone = || desk.order("new BTCUSDT sell 0.1 66000").out.contains("new new");
    until(is_gone, || "the end of the limits".to_owned());
    drop(oms);
}
