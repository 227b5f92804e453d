//! `tickpath exchange --as`: it prints what a client needs, and an OMS trades at it over a line of the exchange's own
//! protocol, with either process killed in between.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;

use serde_json::Value;
use tempfile::tempdir;
use tickpath_clock::{Clock, HostClock, utc_ns};
use tickpath_log::{Config as LogConfig, LogPath, OverflowPolicy, Writer};
use tickpath_market::{Kind, Price, Quantity, SymbolId, TopOfBook};
use zerocopy::IntoBytes;

use crate::desk::Desk;
use crate::logs::until;
use crate::program::{Ran, tickpath};
use crate::web_exchange::WebExchange;

/// Quotes of BTC-USDT at which nothing rests, and quotes that fill an order to buy at [`LOW`].
const QUOTES: [&str; 2] = ["61799", "61800"];
const CROSSING: [&str; 2] = ["59998", "59999"];
const LOW: &str = "60000";

#[test]
fn all_that_a_client_needs_is_printed() {
    for (name, count) in [("okx", 3), ("binance", 2)] {
        let folder = tempdir().expect("a temporary folder");
        let at = |file: &str| folder.path().join(file).display().to_string();
        let exchange = WebExchange::start(&format!("exchange --as {name} --write-ca {}", at("ca.pem")));
        assert_eq!((exchange.fact("exchange"), exchange.fact("ca")), (name, at("ca.pem").as_str()));
        assert_eq!(exchange.facts("instrument").len(), count);
        for fact in ["key", "secret", "passphrase", "balance"] {
            assert!(!exchange.fact(fact).is_empty(), "{fact}");
        }
        let (rest, ca) = (exchange.fact("rest"), at("ca.pem"));
        let table = at("instruments.csv");
        let ran = tickpath(&format!("instruments fetch {name} --url {rest} --ca {ca} --to {table}"));
        assert!(ran.out.contains(&format!(": {count} instruments of ")), "{}{}", ran.out, ran.err);
        // Its quotes walk, so that a feed has something to carry.
        let streams = exchange.facts("public").first().copied().unwrap_or_else(|| exchange.fact("streams"));
        let source = format!("feed {name} --table {table} --url {streams} --rest-url {rest} --ca {ca}");
        let ran = tickpath(&format!("{source} --to file://{} ticks --count 20 --duration 60", at("bus")));
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        assert_eq!(exchange.interrupt(), Some(0));
    }
}

#[test]
fn a_bad_call_of_the_exchange_names_the_remedy() {
    let folder = tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("keys.toml"), "[[account]]\nname = \"a\"\n").expect("the folder is ours");
    fs::write(at("foreign.pem"), "not ours").expect("the folder is ours");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound");
    for (arguments, code, words) in [
        ("--as nyse".to_owned(), 2, "okx, binance"),
        ("--still".to_owned(), 2, "--as"),
        ("--as okx --check".to_owned(), 2, "cannot be used with"),
        (format!("--as okx --keys {}", at("none.toml")), 2, "no such file"),
        (format!("--as okx --keys {}", at("keys.toml")), 2, "keys.toml:1: [[account]] 'key' is missing"),
        (format!("--as okx --faults {}", at("keys.toml")), 2, "unknown key 'account'"),
        (format!("--as okx --instruments {}", at("none.csv")), 2, "--prices"),
        ("--as okx --prices ADA-USDT=1".to_owned(), 2, "ADA-USDT is not"),
        ("--as okx --prices BTC-USDT=61800.05".to_owned(), 2, "round it"),
        ("--as okx --ticks redis://h".to_owned(), 2, "shm://"),
        (format!("--as okx --write-ca {}", at("foreign.pem")), 2, "is not overwritten"),
        (format!("--as okx --no-tls --listen {address}"), 1, "choose an address of this host and a free port"),
    ] {
        let ran = tickpath(&format!("exchange {arguments}"));
        let sentence = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{arguments}: {sentence}");
        assert!(sentence.contains(words) && !sentence.contains("panicked"), "{arguments}: no '{words}' in: {sentence}");
    }
    assert_eq!(fs::read_to_string(at("foreign.pem")).expect("it is there"), "not ours");
}

#[test]
fn an_oms_trades_over_a_line_to_the_exchange() {
    let scene = LineScene::new();
    let ran = scene.desk.tickpath("oms --check --config @/oms.toml");
    assert!(ran.code == Some(0) && ran.out.contains("SIM is reached by okx+ws://127.0.0.1:"), "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains(&scene.secret), "{}", ran.out);
    let mut prices = scene.prices();
    let _oms = scene.desk.oms();
    scene.await_prices(&mut prices);
    scene.accepted("new BTC-USDT buy 0.01 61900 --id 6");
    until(|| scene.fills().len() == 1, || format!("the fill: {:?}", scene.fills()));
    let ran = scene.accepted(&format!("new BTC-USDT buy 0.01 {LOW} --session 2 --id 7"));
    assert!(ran.out.contains("new new side=buy leaves=0.01"), "{}{}", ran.out, ran.err);
    let ran = scene.desk.order("replace 7 0.02 60001 --session 2 --wait 60");
    assert!(ran.out.contains("replaced"), "{}{}", ran.out, ran.err);
    let ran = scene.desk.order("cancel 7 --session 2 --wait 60");
    assert!(ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    let day = scene.desk.tickpath("blotter --config @/oms.toml --json").out;
    let day: Value = serde_json::from_str(&day).unwrap_or_else(|e| panic!("{e}: {day}"));
    let fill = &day["fills"][0];
    let shown = ["quantity", "price", "fee", "fee_currency", "liquidity"].map(|key| fill[key].as_str());
    assert_eq!(shown, ["0.01", "61800", "0.00001", "BTC", "taker"].map(Some), "{fill}");
    // The command shows the fill that follows the answer at once, and its detail.
    let mut id = 20;
    let shows_fee = || {
        id += 1;
        prices.publish(QUOTES);
        let printed = scene.accepted(&format!("new BTC-USDT buy 0.01 61900 --id {id}")).out;
        printed.contains(" detail exec_id=") && printed.contains(" fee=0.00001 BTC taker venue_received=")
    };
    until(shows_fee, || "a fee behind a fill".to_owned());
}

#[test]
fn no_fill_is_lost_or_booked_twice_when_either_process_is_killed() {
    let mut scene = LineScene::new();
    let mut prices = scene.prices();
    let mut oms = scene.desk.oms();
    scene.await_prices(&mut prices);
    for round in 0..6 {
        prices.publish(QUOTES);
        scene.accepted(&format!("new BTC-USDT buy 0.01 {LOW} --session 2 --id {}", 10 + round));
        let expected = round + 1;
        if round % 2 == 0 {
            // The fill happens while no OMS runs.
            drop(oms);
            prices.publish(CROSSING);
            oms = scene.desk.oms();
            scene.await_fills(expected);
        } else {
            prices.publish(CROSSING);
            scene.await_fills(expected);
            scene.restart_exchange();
        }
    }
    // Another order passes behind all events of the earlier ones.
    prices.publish(QUOTES);
    scene.accepted("new BTC-USDT buy 0.01 61900 --session 2 --id 90");
    scene.await_fills(7);
    let text = scene.desk.tickpath("orders --config @/oms.toml").out;
    assert!(text.contains("0 open (0 waiting, 0 in flight, 0 unknown), 7 done"), "{text}");
    let ran = oms.interrupt();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

/// The files of a desk whose venue is a simulated OKX, and that exchange.
struct LineScene {
    desk: Desk,
    exchange: Option<WebExchange>,
    secret: String,
}

impl LineScene {
    fn new() -> Self {
        let desk = Desk::new();
        let ticks = desk.ticks();
        let exchange = WebExchange::start(&format!("exchange --as okx --no-tls --ticks shm://{ticks}"));
        exchange.write_credentials(&desk.path().join("okx.toml"));
        fs::remove_file(desk.path().join("instruments.csv")).expect("init has written it");
        let rest = exchange.fact("rest");
        let ran = desk.tickpath(&format!("instruments fetch okx --url {rest} --venue SIM --to @/instruments.csv"));
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        let line = format!("{{ url = \"okx+{}\", credentials = \"okx.toml\" }}", exchange.fact("private"));
        desk.change(
            "oms.toml",
            "\n#lines = [{ url = \"tcp://",
            &format!("\nlines = [{line}]\n#lines = [{{ url = \"tcp://"),
        );
        desk.change("oms.toml", "#numbered = true", "numbered = false");
        let secret = exchange.fact("secret").to_owned();
        Self { desk, exchange: Some(exchange), secret }
    }

    /// Kills the exchange, which then has no orders, and starts it again at the same address.
    fn restart_exchange(&mut self) {
        let address = self.exchange.as_ref().expect("it runs").address().to_owned();
        self.exchange = None;
        let ticks = self.desk.ticks();
        let line = format!("exchange --as okx --no-tls --ticks shm://{ticks} --listen {address}");
        self.exchange = Some(WebExchange::start(&line));
    }

    fn prices(&self) -> PriceTopic {
        PriceTopic::new(&self.desk.ticks())
    }

    /// Publishes the first prices, and waits until the OMS has them: it then denies an order for its own price.
    fn await_prices(&self, prices: &mut PriceTopic) {
        prices.publish(QUOTES);
        let denial = || self.desk.order("new BTC-USDT buy 0.01 10 --session 3").out;
        until(|| denial().contains("within the collar"), || format!("a price: {}", denial()));
    }

    /// Sends a request that the exchange accepts.
    fn accepted(&self, line: &str) -> Ran {
        let ran = self.desk.order(&format!("{line} --wait 60"));
        assert_eq!(ran.code, Some(0), "{line}: {}{}", ran.out, ran.err);
        ran
    }

    /// Returns the execution ids of the booked fills.
    fn fills(&self) -> Vec<String> {
        let csv = self.desk.tickpath("blotter --config @/oms.toml --fills --csv").out;
        csv.lines().skip(1).filter_map(|row| row.split(',').nth(1)).map(str::to_owned).collect()
    }

    /// Waits until this many fills are booked, no two of them the same.
    fn await_fills(&self, count: usize) {
        until(|| self.fills().len() >= count, || format!("{count} fills: {:?}", self.fills()));
        let fills = self.fills();
        let different: BTreeSet<&String> = fills.iter().collect();
        assert_eq!((fills.len(), different.len()), (count, count), "{fills:?}");
    }
}

/// The topic of the reference prices, from which the exchange takes its quotes.
pub struct PriceTopic {
    clock: HostClock,
    log: Writer,
}

impl PriceTopic {
    pub fn new(topic: &str) -> Self {
        let clock = HostClock::get().expect("this host has a clock");
        let place = LogPath::shared_memory(topic).expect("the name is good");
        let config = LogConfig::topic(place, OverflowPolicy::Overwrite);
        let log = Writer::open(&config, clock.calibration()).expect("the topic has no other writer");
        Self { clock, log }
    }

    pub fn publish(&mut self, [bid, ask]: [&str; 2]) {
        let price = |text: &str| text.parse::<Price>().expect("a price");
        let quote = TopOfBook {
            bid: price(bid),
            ask: price(ask),
            bid_quantity: Quantity::from_whole(5),
            ask_quantity: Quantity::from_whole(5),
            event_ns: utc_ns(),
            symbol: SymbolId(1),
            ..TopOfBook::default()
        };
        let stamp = self.clock.ticks();
        self.log.publish(stamp, Kind::TopOfBook.code(), quote.as_bytes()).expect("an overwrite topic takes all");
    }
}
