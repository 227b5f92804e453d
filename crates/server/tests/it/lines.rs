//! A venue that is reached by lines: an exchange and an OMS, each a process, either of which is killed, and lines that are
//! cut, while a client trades. The exchange's own journal is the judge: what it has is what was sent.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use tempfile::TempDir;
use tickpath_client::{Client, Config, Event, Since};
use tickpath_clock::{Clock, HostClock, end_with_parent, sleep_ns};
use tickpath_log::{Next, Place, Reader, Registration, Start};
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, NewOrder, OrdStatus, OrderType, Price, Quantity, Request, Side,
    SymbolId,
};
use tickpath_server::settings::{Settings, init};

/// Variables that make this program an OMS or an exchange, and the folder of its files.
const ROLE: &str = "TICKPATH_TEST_ROLE";
const FOLDER: &str = "TICKPATH_TEST_FOLDER";
/// What a full disk lies under, if any does: a history has a segment of 16 MiB, and no file may have a second one.
const FULL: &str = "TICKPATH_TEST_FULL";
const FILE_BYTES: u64 = 17 << 20;

/// BTCUSDT in the first table of instruments, what the first exchange.toml asks for it, and a price that nothing crosses.
const SYMBOL: SymbolId = SymbolId(1);
const ASK: &str = "61800.1";
const LOW: &str = "60000";

/// Orders that are on their way at once.
const OPEN: usize = 12;
/// What is waited for comes within this.
const PATIENCE_NS: i64 = 120_000_000_000;

#[test]
fn an_order_fills_over_tcp_and_over_a_unix_socket_in_both_layouts() {
    for (layout, is_unix) in [("split", false), ("inline", true)] {
        let desk = Desk::new(1, "", is_unix);
        desk.lay_out(layout);
        let (_exchange, _oms, mut trader) = desk.start_all();
        trader.send_new(ASK);
        trader.send_new(LOW);
        trader.until("one fills, one rests", |trader| {
            trader.fills.len() == 1 && trader.open.values().all(|status| *status == OrdStatus::New.code())
        });
        trader.cancel_all();
        trader.until("the other is canceled", |trader| trader.open.is_empty());
        assert_eq!(desk.orders().len(), 2);
    }
}

#[test]
fn whoever_is_killed_nothing_is_lost_and_nothing_goes_twice() {
    for (lines, layout) in [(1, "inline"), (3, "split")] {
        let desk = Desk::new(lines, "", false);
        desk.lay_out(layout);
        // Some of them at once after the one before: while it comes back.
        let trader = desk.trade_over_kills([0, 30, 60].into_iter().cycle().take(12));
        assert!(trader.fills.len() > 200, "too little was traded: {}", trader.fills.len());
        assert_eq!(desk.orders().len(), trader.fills.len(), "orders at the exchange, and fills that were told");
    }
}

#[test]
fn lines_that_are_cut_under_load_lose_nothing_and_keep_their_limits() {
    let desk = Desk::new(3, ", rate_per_second = 200, window = 8", false);
    // One request in fifty cuts its line, half of them before it is taken.
    desk.change("exchange.toml", "#cut = 0", "cut = 0.02");
    let (_exchange, _oms, mut trader) = desk.start_all();
    trader.trade("orders fill", |trader| trader.fills.len() >= 1_500);
    trader.until("all are filled", |trader| trader.open.is_empty());
    let orders = desk.orders();
    assert_eq!(orders.len(), trader.fills.len(), "orders at the exchange, and fills that were told");
    let ways: BTreeMap<u32, Vec<u64>> =
        desk.journal().into_iter().fold(BTreeMap::new(), |mut ways, (way, stamp, _)| {
            ways.entry(way).or_insert_with(Vec::new).push(stamp);
            ways
        });
    assert_eq!(ways.keys().copied().collect::<Vec<_>>(), [1, 2, 3], "all lines were used");
    // As the exchange counts: what left evenly may arrive a little closer together.
    let most_of_second = trader.clock.calibration().ticks_of_ns(900_000_000);
    for (way, stamps) in ways {
        let too_fast = stamps.windows(201).filter(|run| run[200] - run[0] < most_of_second).count();
        assert_eq!(too_fast, 0, "line {way} sent more than 200 in nine tenths of a second");
    }
}

#[test]
fn what_the_exchange_refuses_for_now_is_tried_again_until_it_fills() {
    for (lines, action, cut) in [(1, "retry", "0"), (3, "other-line", "0.01")] {
        let desk = Desk::new(lines, "", false);
        desk.change("exchange.toml", "#reject = 0", "reject = 0.4");
        desk.change("exchange.toml", "#cut = 0", &format!("cut = {cut}"));
        let rule = format!("rejects = [{{ code = 10, do = \"{action}\", times = 100 }}]");
        desk.change("oms.toml", "#rejects = [{ code = 10, do = \"retry\", times = 3 }]", &rule);
        let trader = desk.trade_over_kills([50; 4]);
        let orders = desk.orders().len();
        assert!(orders > trader.fills.len() * 5 / 4, "{orders} came for {} fills: too few refused", trader.fills.len());
    }
}

#[test]
fn what_went_by_a_line_that_never_comes_back_is_asked_for_by_the_other() {
    let desk = Desk::new(2, ", lost_after_ms = 300", false);
    let way = Way::to(&desk.exchange());
    desk.change("oms.toml", &desk.exchange(), &way.address);
    let (_exchange, _oms, mut trader) = desk.start_all();
    trader.refused = Some(BTreeSet::new());
    // Both lines are used, one after the other.
    trader.go_on("the first way is used", false, |_| way.is_used());
    (0..6).for_each(|_| trader.send_new(LOW));
    trader.until("all rest", |trader| trader.open.values().all(|status| *status == OrdStatus::New.code()));
    assert_eq!((trader.open.len(), &trader.refused), (6, &Some(BTreeSet::new())));
    assert_eq!(desk.orders().values().collect::<BTreeSet<_>>().len(), 2, "both lines were used");
    way.swallow();
    (0..6).for_each(|_| trader.send_new(LOW));
    trader.until("half of them rest", |trader| {
        trader.open.values().filter(|status| **status == OrdStatus::New.code()).count() == 9
    });
    way.end();
    trader.until("the exchange has said that it has not got the others", |trader| trader.open.len() == 9);
    trader.until("what it has rests", |trader| trader.open.values().all(|status| *status == OrdStatus::New.code()));
    assert_eq!(trader.refused.as_ref().map(BTreeSet::len), Some(3));
    assert!(trader.doubted > 0, "nobody was told that anything was in doubt");
    trader.cancel_all();
    trader.until("the others are canceled by the line that is left", |trader| trader.open.is_empty());
    assert_eq!(desk.orders().len(), 9);
}

#[test]
fn a_full_disk_ends_the_server_in_words_and_costs_nobody_an_order() {
    // Of a journal that is full first, without sockets, the OMS's own tests tell.
    let (full, said) = ("history", "the history of what is said takes no more (");
    let desk = Desk::new(1, "", true);
    desk.lay_out("inline");
    let exchange = desk.start("exchange");
    let told = desk.folder.path().join("told");
    let oms = RefCell::new(desk.start_full(full, FILE_BYTES / 512, &told));
    let mut trader = Trader::new(&desk);
    trader.trade("the disk is full", |_| oms.borrow_mut().0.try_wait().expect("it can be asked after").is_some());
    assert!(trader.fills.len() > 1_000, "{full}: too little was traded: {}", trader.fills.len());
    let told = fs::read_to_string(told).expect("it has said something");
    assert_eq!(told.matches(said).count(), 1, "{told}");
    assert!(told.contains("disk room, and start again"), "{told}");
    drop(oms);
    let _oms = desk.start_full(full, u64::MAX >> 20, &desk.folder.path().join("told then"));
    let filled = trader.fills.len() + 50;
    trader.trade("orders fill again", |trader| trader.fills.len() >= filled);
    trader.until("all are filled", |trader| trader.open.is_empty());
    assert_eq!(desk.orders().len(), trader.fills.len(), "{full}: orders at the exchange, and fills that were told");
    drop(exchange);
}

/// A way to the exchange that ends for ever.
struct Way {
    address: String,
    state: Arc<AtomicU8>,
}

impl Way {
    const PASSES: u8 = 1;
    const SWALLOWS: u8 = 2;
    const IS_OVER: u8 = 3;

    fn to(exchange: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("a socket need not wait");
        let address = listener.local_addr().expect("it listens").to_string();
        let state = Arc::new(AtomicU8::new(0));
        let (exchange, shared) = (exchange.to_owned(), state.clone());
        std::thread::spawn(move || {
            while shared.load(Ordering::SeqCst) != Self::IS_OVER {
                if let Ok((near, _)) = listener.accept()
                    && let Ok(far) = TcpStream::connect(&exchange)
                {
                    Self::pump(&near, &far, &shared, true);
                    Self::pump(&far, &near, &shared, false);
                }
                sleep_ns(1_000_000);
            }
        });
        Self { address, state }
    }

    fn pump(from: &TcpStream, to: &TcpStream, state: &Arc<AtomicU8>, is_there: bool) {
        let (mut from, mut to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
        from.set_nonblocking(false).expect("a socket can wait");
        from.set_read_timeout(Some(std::time::Duration::from_millis(2))).expect("a socket has a timeout");
        let state = state.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while state.load(Ordering::SeqCst) != Self::IS_OVER {
                let read = match from.read(&mut bytes) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                    Err(_) => break,
                };
                let is_passed = !is_there || state.load(Ordering::SeqCst) != Self::SWALLOWS;
                if is_passed && to.write_all(&bytes[..read]).is_err() {
                    break;
                }
                if !is_there {
                    // The exchange has answered: the line is up.
                    let _ = state.compare_exchange(0, Self::PASSES, Ordering::SeqCst, Ordering::SeqCst);
                }
            }
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }

    fn is_used(&self) -> bool {
        self.state.load(Ordering::SeqCst) == Self::PASSES
    }

    fn swallow(&self) {
        self.state.store(Self::SWALLOWS, Ordering::SeqCst);
    }

    fn end(&self) {
        self.state.store(Self::IS_OVER, Ordering::SeqCst);
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.end();
    }
}

/// Does nothing, unless a test started this program anew.
#[test]
fn process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    assert!(end_with_parent(std::os::unix::process::parent_id()));
    let folder = PathBuf::from(std::env::var(FOLDER).expect("the parent has set it"));
    let clock = HostClock::get().expect("a clock");
    if role == "exchange" {
        let settings = tickpath_exchange::Settings::read(&folder.join("exchange.toml")).expect("it is good");
        let ran = tickpath_exchange::run(clock, settings, &tickpath_exchange::Orders::default(), &mut |_| {});
        panic!("nobody stops it: {:?}", ran.err().map(|e| e.to_string()));
    }
    let settings = Settings::read(&folder.join("oms.toml")).unwrap_or_else(|faults| panic!("{faults}"));
    let (events, told) = sync_channel(4096);
    std::thread::spawn(move || told.into_iter().for_each(|event| eprintln!("{event}")));
    let topic = Place::shared_memory(settings.ticks.as_deref().expect("it has ticks")).expect("a good name");
    let mut ticks = None;
    while ticks.is_none() {
        ticks = Reader::open(&topic, Start::Oldest, Registration::Registered).ok();
        sleep_ns(1_000_000);
    }
    let (config, server) = (settings.config(), settings.server(events));
    let full = std::env::var(FULL).ok();
    let ran = tickpath_server::run(clock, &config, &server, ticks, &AtomicBool::new(false), || {});
    if let (Some(_), Err(e)) = (full, &ran) {
        eprintln!("{e}");
        std::process::exit(1);
    }
    panic!("nobody stops it: {:?}", ran.err().map(|e| e.to_string()));
}

/// The files of a desk, as `init` leaves them, but for names that others of this host have, too, and for its lines.
struct Desk {
    name: String,
    folder: TempDir,
    url: String,
}

impl Desk {
    fn new(lines: usize, more: &str, is_unix: bool) -> Self {
        static DESKS: AtomicU64 = AtomicU64::new(0);
        let name = format!("server-lines-{}-{}", std::process::id(), DESKS.fetch_add(1, Ordering::Relaxed));
        let mut desk =
            Self { name, folder: tempfile::tempdir().expect("a temporary folder can be made"), url: String::new() };
        init(desk.folder.path(), || "a password".to_owned()).expect("the folder is empty");
        tickpath_exchange::init(desk.folder.path()).expect("the folder is empty");
        let url = match is_unix {
            true => format!("unix://{}", desk.folder.path().join("exchange.sock").display()),
            false => {
                let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
                format!("tcp://{}", free.expect("a port is free"))
            }
        };
        desk.url.clone_from(&url);
        desk.change("exchange.toml", "\noms = \"oms\"\n", &format!("\nlisten = [\"{url}\"]\n"));
        let lines = vec![format!("{{ url = \"{url}\"{more} }}"); lines].join(", ");
        desk.change("oms.toml", "name = \"SIM\"\n", &format!("name = \"SIM\"\nlines = [{lines}]\n"));
        desk.change("oms.toml", "name = \"oms\"", &format!("name = \"{}\"", desk.name));
        desk.change("oms.toml", "127.0.0.1:7001", "127.0.0.1:0");
        for file in ["oms.toml", "exchange.toml"] {
            desk.change(file, "\"oms.ticks\"", &format!("\"{}.ticks\"", desk.name));
        }
        // What waited for a process that was killed is not too old for this test, nor is one account too fast.
        desk.change("accounts.csv", "1,1000,1000000000,", "1,,1000000000,");
        desk.change("accounts.csv", "60000000000,5000000000,1000", "60000000000,,1000");
        desk
    }

    fn change(&self, file: &str, from: &str, to: &str) {
        let file = self.folder.path().join(file);
        let text = fs::read_to_string(&file).expect("it is there");
        assert!(text.contains(from), "{} has no {from}", file.display());
        fs::write(file, text.replacen(from, to, 1)).expect("the folder is ours");
    }

    /// Where the exchange listens.
    fn exchange(&self) -> String {
        self.url.trim_start_matches("tcp://").to_owned()
    }

    /// Its OMS is on threads as this layout has it.
    fn lay_out(&self, layout: &str) {
        let core = format!("layout = \"{layout}\"\nwait = \"yield\"");
        self.change("oms.toml", "#layout = \"split\"", &core);
    }

    /// The exchange, the OMS, and a client of it.
    fn start_all(&self) -> (Process, Process, Trader) {
        let (exchange, oms) = (self.start("exchange"), self.start("oms"));
        (exchange, oms, Trader::new(self))
    }

    /// A client trades, and after each so many fills the OMS or the exchange is killed, in turn, and comes back; at the end
    /// all its orders are filled.
    fn trade_over_kills(&self, fills: impl IntoIterator<Item = usize>) -> Trader {
        let (exchange, oms, mut trader) = self.start_all();
        let mut running = [("oms", Some(oms)), ("exchange", Some(exchange))];
        for (kill, more) in fills.into_iter().enumerate() {
            let filled = trader.fills.len() + more;
            trader.trade("orders fill again", |trader| trader.fills.len() >= filled);
            let (role, process) = &mut running[kill % 2];
            drop(process.take());
            *process = Some(self.start(role));
        }
        trader.until("all are filled", |trader| trader.open.is_empty());
        trader
    }

    /// A process of this role that is killed when it is dropped.
    fn start(&self, role: &str) -> Process {
        let mut this = Command::new(std::env::current_exe().expect("this program has a path"));
        this.args(["lines::process", "--exact", "--nocapture"]).env(ROLE, role).env(FOLDER, self.folder.path());
        this.stdin(Stdio::null()).stdout(Stdio::null());
        Process(this.spawn().expect("this program can be started again"))
    }

    /// An OMS whose files have so many blocks of 512 bytes at most, and which writes what it says into one.
    fn start_full(&self, full: &str, blocks: u64, told: &Path) -> Process {
        let mut this = Command::new("sh");
        let run = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" lines::process --exact --nocapture");
        this.args(["-c", &run]).arg(std::env::current_exe().expect("this program has a path"));
        this.env(ROLE, "oms").env(FOLDER, self.folder.path()).env(FULL, full);
        this.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(told).expect("the folder is ours"));
        Process(this.spawn().expect("this program can be started again"))
    }

    /// What the exchange's journal holds: each request with its way and its stamp, in ticks.
    fn journal(&self) -> Vec<(u32, u64, Request)> {
        let place = Place::folder(self.folder.path().join("exchange-journal"));
        let mut reader = Reader::open(&place, Start::Oldest, Registration::Unregistered).expect("it is there");
        let (mut way, mut requests) = (0, Vec::new());
        while let Next::Message(message) = reader.next().expect("it is sound") {
            if message.kind == 106 {
                way = u32::from_le_bytes(message.payload.try_into().expect("a way has four bytes"));
            }
            if let Some(Ok(request)) = message.payload.get(8..).map(|bytes| Request::read(message.kind, bytes)) {
                requests.push((way, message.stamp, request));
            }
        }
        requests
    }

    /// The new orders in it, each with its way: each came once.
    fn orders(&self) -> BTreeMap<u64, u32> {
        let mut orders = BTreeMap::new();
        for (way, _, request) in self.journal() {
            if let Request::New(new) = request {
                let id = new.client_order_id.0;
                assert!(orders.insert(id, way).is_none(), "order {id} came twice to the exchange");
            }
        }
        orders
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // What lies in shared memory has its name.
        for found in fs::read_dir("/dev/shm")
            .into_iter()
            .flatten()
            .chain(fs::read_dir("/dev/shm/tickpath").into_iter().flatten())
        {
            if let Ok(found) = found
                && found.file_name().to_string_lossy().contains(&format!("{}.", self.name))
            {
                let _ = fs::remove_dir_all(found.path()).or_else(|_| fs::remove_file(found.path()));
            }
        }
    }
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

/// A client, and what it knows by its own list.
struct Trader {
    clock: HostClock,
    client: Client,
    next_id: u64,
    /// Orders that are not over, with the status that was told last; none of them before that.
    open: BTreeMap<u64, u8>,
    /// To be sent again: the OMS has not got it.
    again: Vec<Request>,
    /// Execution id to the order's.
    fills: BTreeMap<u64, u64>,
    /// Orders that were refused, where some may be.
    refused: Option<BTreeSet<u64>>,
    /// How often it was told that an order is in doubt.
    doubted: u64,
}

impl Trader {
    fn new(desk: &Desk) -> Self {
        let clock = HostClock::get().expect("a clock");
        let url = format!("unix://{}", desk.folder.path().join("oms.sock").display());
        let config = Config { session: Some(0), since: Since::Start, ..Config::new(url, "trader", "a password") };
        let began = clock.ticks();
        let client = loop {
            match Client::connect(config.clone()) {
                Ok(client) => break client,
                Err(e) => assert!(clock.ns_between(began, clock.ticks()) < PATIENCE_NS, "no OMS: {e}"),
            }
            sleep_ns(10_000_000);
        };
        Self {
            clock,
            client,
            next_id: 1,
            open: BTreeMap::new(),
            again: Vec::new(),
            fills: BTreeMap::new(),
            refused: None,
            doubted: 0,
        }
    }

    fn send_new(&mut self, price: &str) {
        let order = NewOrder {
            client_order_id: ClientOrderId(self.next_id),
            price: price.parse::<Price>().expect("a price"),
            quantity: Quantity::from_whole(1),
            symbol: SYMBOL,
            account: AccountId(1),
            side: if self.next_id.is_multiple_of(2) { Side::Buy.code() } else { Side::Sell.code() },
            order_type: OrderType::Limit.code(),
            ..NewOrder::default()
        };
        let (side, price) = match price {
            LOW => (Side::Buy, LOW),
            _ if self.next_id.is_multiple_of(2) => (Side::Buy, ASK),
            _ => (Side::Sell, "61800"),
        };
        let order = NewOrder { side: side.code(), price: price.parse().expect("a price"), ..order };
        self.open.insert(self.next_id, u8::MAX);
        self.next_id += 1;
        self.send(Request::New(order));
    }

    fn cancel_all(&mut self) {
        for original in self.open.keys().copied().collect::<Vec<_>>() {
            let (client_order_id, original) = (ClientOrderId(self.next_id), ClientOrderId(original));
            self.next_id += 1;
            let (symbol, account) = (SYMBOL, AccountId(1));
            self.send(Request::Cancel(CancelOrder {
                client_order_id,
                original,
                symbol,
                account,
                ..CancelOrder::default()
            }));
        }
    }

    fn send(&mut self, request: Request) {
        if let Err(e) = self.client.send(&request) {
            self.again.push(e.into_inner());
        }
    }

    /// Keeps orders on their way until this is so.
    fn trade(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        self.go_on(what, true, is_so);
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        self.go_on(what, false, is_so);
    }

    fn go_on(&mut self, what: &str, trades: bool, is_so: impl Fn(&Self) -> bool) {
        let began = self.clock.ticks();
        while !is_so(self) {
            for request in std::mem::take(&mut self.again) {
                self.send(request);
            }
            while trades && self.open.len() < OPEN && self.again.is_empty() {
                self.send_new(ASK);
            }
            self.hear();
            let waited = self.clock.ns_between(began, self.clock.ticks());
            assert!(
                waited < PATIENCE_NS,
                "in vain waited until {what}: {} fills, open {:?}",
                self.fills.len(),
                self.open
            );
        }
    }

    fn hear(&mut self) {
        self.client.wait(2_000_000);
        let Self { client, open, again, fills, refused, doubted, .. } = self;
        let heard = client.poll(|event| match event {
            Event::Report { report, .. } => {
                let id = report.client_order_id.0;
                if report.exec_type == ExecType::Trade.code() {
                    assert!(fills.insert(report.exec_id.0, id).is_none(), "a fill came twice: {report:?}");
                }
                let is_over = [OrdStatus::Filled, OrdStatus::Canceled, OrdStatus::Rejected];
                *doubted += u64::from(report.status == OrdStatus::Unknown.code());
                if is_over.iter().any(|over| over.code() == report.status) {
                    if report.status == OrdStatus::Rejected.code() {
                        refused.as_mut().unwrap_or_else(|| panic!("nothing of this is refused: {report:?}")).insert(id);
                    }
                    open.retain(|&order, _| order != id && report.exec_type != ExecType::Canceled.code());
                } else if let Some(status) = open.get_mut(&id) {
                    *status = report.status;
                }
            }
            Event::NotTaken { request, .. } => again.push(request),
            Event::Denied { denial, .. } => panic!("nothing of this is denied: {denial:?}"),
            Event::Connected(_) | Event::Disconnected { .. } | Event::Failed { .. } | Event::InDoubt { .. } => {}
            other => panic!("this is not right: {other:?}"),
        });
        heard.expect("it comes back by itself");
    }
}
