//! Cost of a new order from the request to the text of its frame, in turns with a signature and without:
//! `cargo run --release -p tickpath-venue-binance --example binance_encode_speed -- [COUNT]`
//!
//! With a secret key each order has the API key and a signature of HMAC-SHA-256. A private key of Ed25519 logs the
//! connection on once, and its orders have no signature. Each turn writes COUNT different orders, one after the other
//! into the same buffers, and takes the time of each 64. It prints the median and the 99th percentile of an order over
//! all turns, and the ratio of the medians.

use std::hint::black_box;

use hdrhistogram::Histogram;
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{
    AccountId, ClientOrderId, NewOrder, OrderType, Price, Quantity, Request, Side, SymbolId, TimeInForce,
};
use tickpath_venue_binance::{ApiCredentials, LineInstrument, OrderEncoder};

/// Turns of each writer.
const TURNS: usize = 9;
/// Orders that one sample spans: a call of the clock costs a part of an order.
const ORDERS_PER_SAMPLE: usize = 64;
/// Keys of the exchange's documentation.
const API_KEY: &str = "vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A";
const SECRET_KEY: &str = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j";
const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
                           MC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u\n\
                           -----END PRIVATE KEY-----\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse())?;
    let orders: Vec<(u64, Request)> = (0..count).map(|number| (number, order(number))).collect();
    let clock = HostClock::get()?;
    let (mut signed, mut unsigned) = (encoder(SECRET_KEY)?, encoder(PRIVATE_KEY)?);
    for (encoder, has_signature) in [(&mut signed, true), (&mut unsigned, false)] {
        let text = encoder.encode(0, &order(0), 1_749_044_565_306).ok_or("the order is refused")?;
        assert_eq!(text.contains("\"signature\""), has_signature, "{text}");
    }
    let (mut with, mut without) = (Histogram::<u64>::new(3)?, Histogram::<u64>::new(3)?);
    for _ in 0..TURNS {
        sample(&clock, &orders, &mut signed, &mut with);
        sample(&clock, &orders, &mut unsigned, &mut without);
    }
    let order_ns =
        |histogram: &Histogram<u64>, quantile| histogram.value_at_quantile(quantile) as f64 / ORDERS_PER_SAMPLE as f64;
    for (name, histogram) in
        [("with a signature (HMAC-SHA-256)", &with), ("without a signature (Ed25519 session)", &without)]
    {
        println!("{name}: p50 {:.0} ns, p99 {:.0} ns an order", order_ns(histogram, 0.5), order_ns(histogram, 0.99));
    }
    println!("with over without a signature: {:.1}", order_ns(&with, 0.5) / order_ns(&without, 0.5));
    Ok(())
}

/// Writes all orders once, and notes the time of each sample in nanoseconds.
fn sample(clock: &HostClock, orders: &[(u64, Request)], encoder: &mut OrderEncoder, into: &mut Histogram<u64>) {
    for orders in orders.chunks_exact(ORDERS_PER_SAMPLE) {
        let began = clock.ticks();
        for (number, order) in orders {
            let text = encoder.encode(*number, black_box(order), 1_749_044_565_306 + number);
            assert!(black_box(text).is_some(), "order {number} is refused");
        }
        into.record(clock.ns_between(began, clock.ticks()).unsigned_abs()).expect("the histogram grows");
    }
}

fn encoder(secret: &str) -> Result<OrderEncoder, Box<dyn std::error::Error>> {
    let (key, secret) = (API_KEY.to_owned(), secret.to_owned());
    let instrument = LineInstrument {
        name: "BTCUSDT".to_owned(),
        symbol: SymbolId(1),
        code: 0,
        lot: Quantity(1_000),
        contract: Quantity::from_whole(1),
        is_derivative: false,
    };
    let credentials = ApiCredentials { key, secret, passphrase: String::new() };
    Ok(OrderEncoder::new(credentials, vec![instrument], 5_000, 5)?)
}

/// Returns a limit order as a strategy sends it.
fn order(number: u64) -> Request {
    let step = i64::try_from(number % 9_973).expect("a small number");
    Request::New(NewOrder {
        client_order_id: ClientOrderId(4_000_000_000_000 + number),
        price: Price(10_525_260_000_000 + step * 1_000_000),
        quantity: Quantity(1_000_000 + step * 1_000),
        symbol: SymbolId(1),
        account: AccountId(7),
        side: Side::Buy.code(),
        order_type: OrderType::Limit.code(),
        time_in_force: TimeInForce::GoodTillCancel.code(),
        ..NewOrder::default()
    })
}
