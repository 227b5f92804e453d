//! Cost of an order from the OMS's request to the text of an OKX message, without a socket:
//! `cargo run --release -p tickpath-venue-okx --example okx_encode_speed -- [COUNT]`
//!
//! Each turn writes COUNT different requests of a kind, one after the other into the writer's buffer, and takes the
//! time of each 64. It prints the median and the 99th percentile of a request over all turns. A turn before them warms
//! the writer up, and is not counted.

use std::hint::black_box;

use hdrhistogram::Histogram;
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, NewOrder, OrderType, Price, Quantity, ReplaceOrder, Request, SCALE, Side,
    SymbolId,
};
use tickpath_venue_okx::{LineInstrument, OrderEncoder};

/// Turns of each kind of request.
const TURNS: usize = 9;
/// Requests that one sample spans: a call of the clock costs a part of a request.
const REQUESTS_PER_SAMPLE: usize = 64;
/// Expiry in milliseconds since the Unix epoch.
const EXPIRES_MS: u64 = 1_749_044_570_306;

/// Name of a kind of requests, and the request with a number.
type RequestKind = (&'static str, fn(u64) -> Request);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse())?;
    let (name, symbol, contract) = ("BTC-USDT-SWAP".to_owned(), SymbolId(1), Quantity(SCALE / 100));
    let instrument =
        LineInstrument { name, symbol, code: 123_456, lot: Quantity(SCALE / 100), contract, is_derivative: true };
    let mut encoder = OrderEncoder::new(&[instrument], 5)?;
    let clock = HostClock::get()?;
    let kinds: [RequestKind; 3] = [("new order", new_order), ("amendment", amendment), ("cancel", cancel)];
    let mut bytes = 0;
    for (kind, request) in kinds {
        let requests: Vec<Request> = (0..count).map(request).collect();
        let mut warm_up = Histogram::<u64>::new(3)?;
        sample(&clock, &mut encoder, &requests, &mut warm_up);
        let mut histogram = Histogram::<u64>::new(3)?;
        for _ in 0..TURNS {
            bytes += sample(&clock, &mut encoder, &requests, &mut histogram);
        }
        let request_ns = |quantile| histogram.value_at_quantile(quantile) as f64 / REQUESTS_PER_SAMPLE as f64;
        println!("{kind}: p50 {:.0} ns, p99 {:.0} ns a request", request_ns(0.5), request_ns(0.99));
    }
    println!("{TURNS} turns of {count} requests of each kind, {bytes} bytes in all");
    for (kind, request) in kinds {
        println!("{kind}: {}", encoder.encode(7, &request(7), EXPIRES_MS).ok_or("a request is refused")?);
    }
    Ok(())
}

/// Writes all requests once, and notes the time of each sample in nanoseconds. Returns the bytes that were written.
fn sample(clock: &HostClock, encoder: &mut OrderEncoder, requests: &[Request], into: &mut Histogram<u64>) -> usize {
    let (mut bytes, mut number) = (0, 0);
    for requests in requests.chunks_exact(REQUESTS_PER_SAMPLE) {
        let began = clock.ticks();
        for request in requests {
            number += 1;
            let text = encoder.encode(number, black_box(request), EXPIRES_MS);
            bytes += black_box(text).expect("OKX has such a request").len();
        }
        into.record(clock.ns_between(began, clock.ticks()).unsigned_abs()).expect("the histogram grows");
    }
    bytes
}

/// Returns an order of some contracts at another price each time.
fn new_order(number: u64) -> Request {
    Request::New(NewOrder {
        client_order_id: ClientOrderId(number + 1),
        price: price(number),
        quantity: quantity(number),
        symbol: SymbolId(1),
        account: AccountId(7),
        side: if number.is_multiple_of(2) { Side::Buy } else { Side::Sell }.code(),
        order_type: OrderType::Limit.code(),
        ..NewOrder::default()
    })
}

fn amendment(number: u64) -> Request {
    Request::Replace(ReplaceOrder {
        client_order_id: ClientOrderId(number + 2),
        original: ClientOrderId(number + 1),
        price: price(number),
        quantity: quantity(number),
        symbol: SymbolId(1),
        account: AccountId(7),
        ..ReplaceOrder::default()
    })
}

fn cancel(number: u64) -> Request {
    Request::Cancel(CancelOrder {
        client_order_id: ClientOrderId(number + 2),
        original: ClientOrderId(number + 1),
        symbol: SymbolId(1),
        account: AccountId(7),
        ..CancelOrder::default()
    })
}

/// Returns a price with one decimal.
fn price(number: u64) -> Price {
    Price(105_252 * SCALE + (number % 9_973) as i64 * (SCALE / 10))
}

/// Returns a quantity of 1 to 97 contracts.
fn quantity(number: u64) -> Quantity {
    Quantity((number % 97 + 1) as i64 * (SCALE / 100))
}
