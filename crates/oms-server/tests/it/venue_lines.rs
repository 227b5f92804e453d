//! A venue that is reached by lines: an exchange and an OMS in processes of their own, either of which is killed, and
//! lines that are cut, while a client trades. The exchange's journal is the reference for the sent requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tickpath_clock::{Clock, sleep_ns};
use tickpath_market::OrdStatus;

use crate::trader::{ASK, LOW, ProcessFixture, Trader};

#[test]
fn an_order_fills_over_tcp_and_over_a_unix_socket_in_both_layouts() {
    for (layout, is_unix) in [("split", false), ("inline", true)] {
        let desk = ProcessFixture::new(1, "", is_unix);
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
fn killing_either_process_neither_loses_nor_repeats_an_order() {
    for (lines, layout) in [(1, "inline"), (3, "split")] {
        let desk = ProcessFixture::new(lines, "", false);
        desk.lay_out(layout);
        // Some kills follow the one before at once, during recovery.
        let trader = desk.trade_over_kills([0, 30, 60].into_iter().cycle().take(12));
        assert!(trader.fills.len() > 200, "too little was traded: {}", trader.fills.len());
        assert_eq!(desk.orders().len(), trader.fills.len(), "orders at the exchange, and fills that were told");
    }
}

#[test]
fn lines_cut_under_load_lose_nothing_and_keep_their_limits() {
    let desk = ProcessFixture::new(3, ", rate_per_second = 200, window = 8", false);
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
    // The exchange counts arrivals: evenly sent requests may arrive a little closer together.
    let most_of_second = trader.clock.calibration().ticks_of_ns(900_000_000);
    for (way, stamps) in ways {
        let too_fast = stamps.windows(201).filter(|run| run[200] - run[0] < most_of_second).count();
        assert_eq!(too_fast, 0, "line {way} sent more than 200 in nine tenths of a second");
    }
}

#[test]
fn a_temporarily_refused_order_is_retried_until_it_fills() {
    for (lines, action, cut) in [(1, "retry", "0"), (3, "other-line", "0.01")] {
        let desk = ProcessFixture::new(lines, "", false);
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
fn requests_in_doubt_on_a_dead_line_are_queried_by_the_other_line() {
    let desk = ProcessFixture::new(2, ", lost_after_ms = 300", false);
    let way = CuttableProxy::to(&desk.exchange());
    desk.change("oms.toml", &desk.exchange(), &way.address);
    let log = desk.folder.path().join("oms.log");
    let (_exchange, _oms) = (desk.start("exchange"), desk.start_oms_with_log(&log));
    let mut trader = Trader::new(&desk);
    trader.refused = Some(BTreeSet::new());
    // Orders take both lines in turn, once both are up.
    let are_up = |_: &Trader| fs::read_to_string(&log).is_ok_and(|text| text.matches(" is up\n").count() == 2);
    trader.go_on("both lines are up", false, are_up);
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

/// A proxy to the exchange that can stop for ever.
struct CuttableProxy {
    address: String,
    state: Arc<AtomicU8>,
}

impl CuttableProxy {
    const PASSES: u8 = 0;
    const SWALLOWS: u8 = 1;
    const IS_OVER: u8 = 2;

    fn to(exchange: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("a socket need not wait");
        let address = listener.local_addr().expect("it listens").to_string();
        let state = Arc::new(AtomicU8::new(Self::PASSES));
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
                // Answers at the moment of the stop are dropped too: they were sent while the proxy dropped data.
                let is_passed = !is_there || state.load(Ordering::SeqCst) < Self::SWALLOWS;
                if is_passed && to.write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }

    fn swallow(&self) {
        self.state.store(Self::SWALLOWS, Ordering::SeqCst);
    }

    fn end(&self) {
        self.state.store(Self::IS_OVER, Ordering::SeqCst);
    }
}

impl Drop for CuttableProxy {
    fn drop(&mut self) {
        self.end();
    }
}
