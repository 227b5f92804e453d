//! The exchange's process: sends the ticks at their times, and stamps the orders that arrive.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, HostClock, utc_ns};
use tickpath_lab_harness::parent::ParentMessage;
use tickpath_lab_harness::samples::{preallocated_rows, save};
use tickpath_lab_harness::{LabError, Parent, ProcessRole, ThreadConfig};
use tickpath_market::Price;
use tickpath_venue_sim_web::{ConnectionId, WebAnswer, WebRequest, WebSender, WebServer, WebServerConfig, WebService};
use tickpath_web_client::FrameArrival;

use crate::protocol::{SimulatedExchange, ViaExchange, quotes, tick_of};

/// Role of the exchange.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WebExchangeRole {
    /// The exchange.
    pub via: ViaExchange,
    /// Ticks a second.
    pub rate: f64,
    /// The number of ticks.
    pub count: u64,
    /// The number of orders that answer them.
    pub orders: u64,
    /// The file of the authority's certificate, which it writes.
    pub ca: PathBuf,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
    /// The file of a row for each tick.
    pub out: PathBuf,
}

/// Stamps of a tick, in ticks of the clock: its intended time, before it is made, when its bytes were ready for the
/// socket, and the kernel's receive time of its order; zero without an order.
pub(crate) type ExchangeRow = [u64; 4];

/// Time before a tick's time from which the exchange no longer sleeps.
const SPIN_NS: i64 = 2_000_000;
/// Longest sleep, in milliseconds: commands are looked for this often.
const SLEEP_MS: u32 = 5;
/// Max time until a tick is sent: nobody may be subscribed.
const UNSENT_NS: i64 = 100_000_000;
/// Max time for the answers to the last orders.
const LAST_ORDERS_NS: i64 = 3_000_000_000;

impl ProcessRole for WebExchangeRole {
    const NAME: &'static str = "exchange over web sockets";

    /// Runs the exchange. Its first result is its address, the next reports the last tick.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let config = WebServerConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            tls: true,
            max_connections: 64,
            max_message_bytes: 1 << 20,
        };
        let mut server = WebServer::open(&config).map_err(LabError::other)?;
        let authority = server.authority_pem().unwrap_or_default();
        std::fs::write(&self.ca, authority).map_err(LabError::other)?;
        self.thread.apply()?;
        parent.ready();
        parent.result(&server.address().to_string());
        let stop = parent.stop_flag();
        let mut run =
            ExchangeRun { clock, via: self.via, exchange: self.via.simulate(), orders: OrderArrivals::default() };
        loop {
            run.serve(&mut server, SLEEP_MS);
            match parent.receive_timeout(0) {
                ParentMessage::Line(_) => break,
                ParentMessage::Timeout => {}
                ParentMessage::Closed => return Ok(()),
            }
        }
        let mut rows = run.send_ticks(&mut server, self, &stop);
        run.await_orders(&mut server, self.orders as usize);
        parent.result(&());
        while !stop.load(Ordering::Relaxed) {
            run.serve(&mut server, SLEEP_MS);
        }
        for (tick, arrived) in run.orders.arrived {
            if let Some(row) = rows.get_mut(tick as usize) {
                row[3] = arrived;
            }
        }
        save(&self.out, &rows)?;
        parent.result(&());
        Ok(())
    }
}

struct ExchangeRun {
    clock: HostClock,
    via: ViaExchange,
    exchange: SimulatedExchange,
    orders: OrderArrivals,
}

impl ExchangeRun {
    /// Serves the connections for a turn.
    fn serve(&mut self, server: &mut WebServer, timeout_ms: u32) {
        let service = self.exchange.service();
        server.poll(timeout_ms, &mut StampedService { service, orders: &mut self.orders });
    }

    /// Sends the ticks at their times, and serves the connections between them.
    fn send_ticks(&mut self, server: &mut WebServer, role: &WebExchangeRole, stop: &AtomicBool) -> Vec<ExchangeRow> {
        let clock = self.clock;
        let calibration = *clock.calibration();
        let start = clock.ticks() + calibration.ticks_of_ns(50_000_000);
        let mut rows = preallocated_rows(role.count as usize);
        for tick in 0..role.count {
            let intended = start + calibration.ticks_of_ns((tick as f64 * 1e9 / role.rate) as u64);
            loop {
                let left_ns = clock.ns_between(clock.ticks(), intended);
                if left_ns <= 0 || stop.load(Ordering::Relaxed) {
                    break;
                }
                let sleep_ms = ((left_ns - SPIN_NS).max(0) / 1_000_000) as u32;
                self.serve(server, sleep_ms.min(SLEEP_MS));
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            // A late tick must not replace one that the exchange has not sent.
            while !stop.load(Ordering::Relaxed)
                && clock.ns_between(self.orders.sent, clock.ticks()) < self.via.pause_ns()
            {
                self.serve(server, 0);
            }
            let called = clock.ticks();
            self.exchange.quote(self.via, utc_ns(), quotes(tick));
            let is_sent = |orders: &OrderArrivals| clock.ns_between(called, orders.sent) > 0;
            while !is_sent(&self.orders) && clock.ns_between(called, clock.ticks()) < UNSENT_NS {
                self.serve(server, 0);
            }
            rows.push([intended, called, self.orders.sent, 0]);
        }
        rows
    }

    /// Serves the connections until so many orders have arrived, or the last ones are lost.
    fn await_orders(&mut self, server: &mut WebServer, orders: usize) {
        let begin = self.clock.ticks();
        while self.orders.arrived.len() < orders && self.clock.ns_between(begin, self.clock.ticks()) < LAST_ORDERS_NS {
            self.serve(server, SLEEP_MS);
        }
    }
}

/// Arrival of the orders, by their ticks.
#[derive(Default)]
struct OrderArrivals {
    /// Arrival of the message that is served.
    last: FrameArrival,
    /// When the last bytes were ready for a socket.
    sent: u64,
    arrived: Vec<(u64, u64)>,
}

impl OrderArrivals {
    /// Notes the arrival of an order, if the text is one.
    fn note(&mut self, text: &str) {
        if let Some(tick) = price_in(text).and_then(tick_of) {
            self.arrived.push((tick, self.last.wire));
        }
    }
}

/// The exchange's protocol, with stamps of its orders.
struct StampedService<'a> {
    service: &'a mut dyn WebService,
    orders: &'a mut OrderArrivals,
}

impl WebService for StampedService<'_> {
    fn http(&mut self, request: &WebRequest<'_>) -> WebAnswer {
        if request.method == "POST" && (request.path.ends_with("/order") || request.path.ends_with("/batch-orders")) {
            self.orders.note(request.query);
            self.orders.note(&String::from_utf8_lossy(request.body));
        }
        self.service.http(request)
    }

    fn upgrade(&mut self, id: ConnectionId, request: &WebRequest<'_>) -> Result<(), WebAnswer> {
        self.service.upgrade(id, request)
    }

    fn arrived(&mut self, id: ConnectionId, at: FrameArrival) {
        self.orders.last = at;
        self.service.arrived(id, at);
    }

    fn text(&mut self, id: ConnectionId, text: &str, out: &mut WebSender<'_>) {
        self.orders.note(text);
        self.service.text(id, text, out);
    }

    fn binary(&mut self, id: ConnectionId, bytes: &[u8], out: &mut WebSender<'_>) {
        self.service.binary(id, bytes, out);
    }

    fn pong(&mut self, id: ConnectionId) {
        self.service.pong(id);
    }

    fn closed(&mut self, id: ConnectionId) {
        self.service.closed(id);
    }

    fn turn(&mut self, out: &mut WebSender<'_>) -> usize {
        let before = out.last_ready();
        let done = self.service.turn(out);
        if out.last_ready() != before {
            self.orders.sent = out.last_ready();
        }
        done
    }
}

/// Returns the price of an order in JSON or in a query; none if the text has no price.
fn price_in(text: &str) -> Option<Price> {
    let of_json = ["\"px\"", "\"price\""].iter().find_map(|key| Some(text.split_once(key)?.1));
    let rest = of_json.or_else(|| Some(text.split_once("price=")?.1))?;
    let rest = rest.trim_start_matches([':', ' ', '"']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_found_in_every_form_of_an_order() {
        let price = Some(Price::from_whole(61_800));
        for text in [
            r#"{"id":"1","op":"order","args":[{"instId":"BTC-USDT","px":"61800","sz":"1"}]}"#,
            r#"{"op": "order", "args": [{"px": "61800.00"}]}"#,
            r#"{"method":"order.place","params":{"price":"61800","symbol":"BTCUSDT"}}"#,
            "symbol=BTCUSDT&price=61800&side=BUY",
        ] {
            assert_eq!(price_in(text), price, "{text}");
        }
        assert_eq!(price_in(r#"{"op":"subscribe","args":[{"channel":"orders"}]}"#), None);
    }
}
