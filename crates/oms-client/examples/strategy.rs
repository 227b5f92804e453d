//! The strategy of `examples/python/06_strategy.py` in Rust: the same ticks give the same orders.
//!
//! ```text
//! strategy DESK [TICKS_URL [TOPIC [EDGE]]]
//! ```
//! DESK is a folder that `tickpath oms init` has filled, and whose OMS runs. With a recording, `file:///FOLDER`, the
//! strategy ends at the recording's end, otherwise with the process.

use std::error::Error;
use std::path::PathBuf;

use tickpath_bus::{PublisherState, StartPosition, SubscriptionEvent as BusEvent, connect};
use tickpath_clock::{Wait, utc_ns};
use tickpath_market::{
    AccountId, ClientOrderId, Kind, NewOrder, OrderType, Price, Quantity, Request, Side, SymbolId, TimeInForce,
    TopOfBook,
};
use tickpath_oms_client::{Client, ClientEvent, Config};
use zerocopy::FromBytes;

/// BTCUSDT in the instruments.csv that `init` writes.
const SYMBOL: SymbolId = SymbolId(1);
const QUANTITY: Quantity = Quantity(100_000);
/// Time without a report after which a recording is over.
const LINGER_NS: u64 = 1_000_000_000;

/// A strategy that buys at an edge or more below the mean, and sells at an edge or more above it.
struct Fade {
    edge: i64,
    mean: Option<i64>,
    next_id: u64,
}

impl Fade {
    fn on_tick(&mut self, tick: &TopOfBook, stamp: u64, orders: &mut Client) -> Result<(), Box<dyn Error>> {
        if tick.symbol != SYMBOL {
            return Ok(());
        }
        let middle = (tick.bid.0 + tick.ask.0) >> 1;
        let mean = *self.mean.get_or_insert(middle);
        let away = middle - mean;
        self.mean = Some(mean + (away >> 4));
        match away {
            _ if away <= -self.edge => self.submit(Side::Buy, tick.ask, stamp, orders),
            _ if away >= self.edge => self.submit(Side::Sell, tick.bid, stamp, orders),
            _ => Ok(()),
        }
    }

    fn submit(&mut self, side: Side, price: Price, cause: u64, orders: &mut Client) -> Result<(), Box<dyn Error>> {
        let order = NewOrder {
            client_order_id: ClientOrderId(self.next_id),
            price,
            quantity: QUANTITY,
            cause,
            symbol: SYMBOL,
            account: AccountId(1),
            side: side.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: TimeInForce::ImmediateOrCancel.code(),
            ..NewOrder::default()
        };
        orders.send(&Request::New(order))?;
        self.next_id += 1;
        Ok(())
    }
}

/// Handles the OMS's events, and returns their number.
fn hear(orders: &mut Client) -> Result<usize, Box<dyn Error>> {
    Ok(orders.poll(|event| match event {
        ClientEvent::Report { .. } | ClientEvent::Connected(_) => {}
        other => eprintln!("{other:?}"),
    })?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut given = std::env::args().skip(1);
    let desk =
        PathBuf::from(given.next().ok_or("give the folder of an OMS: strategy DESK [TICKS_URL [TOPIC [EDGE]]]")?);
    let url = given.next().unwrap_or_else(|| "shm://".to_owned());
    let topic = given.next().unwrap_or_else(|| "oms.ticks".to_owned());
    let edge: Price = given.next().as_deref().unwrap_or("0.5").parse()?;

    let is_recording = url.starts_with("file:");
    let start = if is_recording { StartPosition::Oldest } else { StartPosition::Now };
    let mut ticks = connect(&url)?.subscriber(&topic, start, Wait::Busy)?;
    let password = std::fs::read_to_string(desk.join("trader.password"))?;
    let orders = format!("shm+unix://{}", desk.join("oms.sock").display());
    let mut orders = Client::connect(Config::new(&orders, "trader", password.trim()))?;
    let mut strategy = Fade { edge: edge.0, mean: None, next_id: utc_ns() };
    println!("trading {topic:?} of {url}");
    loop {
        // The state is read before the ticks, so that ticks published before the publisher's exit are not missed.
        let is_over = is_recording && ticks.publisher_state() == PublisherState::Absent;
        let mut failed = Ok(());
        let found = ticks.poll(64, &mut |event| {
            if let BusEvent::Message(message) = event
                && message.kind == Kind::TopOfBook.code()
                && let Ok(tick) = TopOfBook::read_from_bytes(message.payload)
                && failed.is_ok()
            {
                failed = strategy.on_tick(&tick, message.stamp, &mut orders).and_then(|()| hear(&mut orders).map(drop));
            }
        })?;
        failed?;
        if found > 0 {
            continue;
        }
        hear(&mut orders)?;
        if is_over {
            break;
        }
    }
    loop {
        orders.wait(LINGER_NS);
        if hear(&mut orders)? == 0 {
            orders.close();
            return Ok(());
        }
    }
}
