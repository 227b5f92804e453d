//! An order with a trigger, by commands: armed, changed, its OMS killed, fired and filled.

use tickpath_clock::{Clock, HostClock};
use tickpath_log::{Config as LogConfig, LogPath, OverflowPolicy, Writer};
use tickpath_market::{Kind, Price, Quantity, SymbolId, TopOfBook, Trade};
use zerocopy::IntoBytes;

use crate::desk::Desk;
use crate::logs::until;
use crate::program::tickpath_with;

/// BTCUSDT in the first table of instruments.
const SYMBOL: SymbolId = SymbolId(1);

/// A publisher of ticks in place of an exchange.
struct Market {
    clock: HostClock,
    feed: Writer,
}

impl Market {
    /// Opens the market of a desk's OMS.
    fn of(desk: &Desk) -> Self {
        let clock = HostClock::get().expect("a clock");
        let place = LogPath::shared_memory(&desk.ticks()).expect("a good name");
        let feed = Writer::open(&LogConfig::topic(place, OverflowPolicy::Overwrite), clock.calibration());
        Self { clock, feed: feed.expect("nobody else publishes") }
    }

    fn trades_at(&mut self, price: i64) {
        let (price, one) = (Price::from_whole(price), Quantity::from_whole(1));
        let top = TopOfBook { bid: price, ask: price, symbol: SYMBOL, ..TopOfBook::default() };
        let trade = Trade { price, quantity: one, symbol: SYMBOL, ..Trade::default() };
        for (kind, bytes) in [(Kind::TopOfBook, top.as_bytes()), (Kind::Trade, trade.as_bytes())] {
            self.feed.publish(self.clock.ticks(), kind.code(), bytes).expect("an overwrite topic takes all");
        }
    }
}

#[test]
fn an_armed_order_survives_kill_9_fires_once_and_is_filled() {
    let desk = Desk::new();
    let oms = desk.oms();
    let mut market = Market::of(&desk);
    market.trades_at(61_800);
    let order = |words: &[&str]| tickpath_with(&[words, &["--config", &desk.line("@/oms.toml")]].concat());
    let when = ["--when", "BTCUSDT last >= 64000 and BTCUSDT bid <= 70000"];
    let ran =
        order(&[&["order", "new", "BTCUSDT", "buy", "1", "65010", "--session", "2", "--id", "7"][..], &when].concat());
    assert!(ran.code == Some(0) && ran.out.contains("pending_new armed"), "{}{}", ran.out, ran.err);
    let when = ["--when", "BTCUSDT last >= 65000 and BTCUSDT bid <= 70000"];
    let ran = order(&[&["order", "replace", "7", "2", "65020", "--session", "2", "--id", "8"][..], &when].concat());
    assert!(ran.code == Some(0) && ran.out.contains("replaced armed"), "{}{}", ran.out, ran.err);
    let orders = || desk.tickpath("orders --config @/oms.toml").out;
    let row = "armed  BTCUSDT last >= 65000 and BTCUSDT bid <= 70000\n";
    assert!(orders().contains(row) && orders().contains("1 open (1 waiting"), "{}", orders());
    // SIGKILL.
    drop(oms);
    let oms = desk.oms();
    assert!(orders().contains(row), "{}", orders());
    market.trades_at(64_500);
    market.trades_at(65_000);
    // There is no exchange yet.
    until(|| orders().contains("pending_new"), || format!("it fires: {}", orders()));
    drop(oms);
    market.trades_at(65_001);
    let _oms = desk.oms();
    assert!(orders().contains("1 open (1 waiting, 0 in flight, 0 unknown), 0 done"), "{}", orders());
    drop(market);
    let exchange = desk.exchange();
    exchange.await_words("serving the OMS");
    until(|| orders().contains("0 open (0 waiting, 0 in flight, 0 unknown), 1 done"), orders);
}

#[test]
fn a_trigger_that_cannot_be_parsed_is_an_error_with_the_syntax() {
    let desk = Desk::new();
    let order = |when: &str| {
        let config = desk.line("@/oms.toml");
        tickpath_with(&["order", "new", "BTCUSDT", "buy", "1", "1", "--when", when, "--config", &config])
    };
    for (when, words) in [
        ("BTCUSDT last > 65000", "'>' is no comparison; use >= or <=; "),
        ("BTCUSDT mid >= 65000", "'mid' is no price of an instrument; use last, bid or ask; "),
        ("BTCUSDT last >=", "is no trigger; "),
        ("", "'' is no trigger; "),
        ("BTCUSDT last >= much", "'much' is no decimal number; "),
        ("BTCUSDT last >= 1 xor BTCUSDT bid >= 1", "'xor' joins no conditions; use 'and' or 'or'; "),
    ] {
        let form = "write it like 'BTCUSDT last >= 65000', or two such joined by 'and' or 'or'\n";
        let ran = order(when);
        assert!(ran.code == Some(2) && ran.err.contains(words), "{when}: {:?} {}", ran.code, ran.err);
        assert!(ran.err.ends_with(form), "{when}: {}", ran.err);
    }
    let _oms = desk.oms();
    let ran = order("NOPE last >= 65000");
    assert!(ran.code == Some(2) && ran.err.contains("'NOPE' is no instrument of the running OMS"), "{}", ran.err);
}
