//! Cost of a best bid and offer of OKX, from the bytes of the frame to the typed message, in turns with serde_json into a
//! struct: `cargo run --release -p tickpath-feed-okx --example parse_speed -- [COUNT]`
//!
//! Each turn reads COUNT different frames, one after the other, and takes the time of each 64. It prints the median and the
//! 99th percentile of a frame over all turns, and the ratio of the medians.

use std::hint::black_box;

use hdrhistogram::Histogram;
use serde::Deserialize;
use tickpath_clock::{Clock, HostClock};
use tickpath_feed::{FeedInstrument, Frame, FrameParser, MarketEvent};
use tickpath_feed_okx::OkxParser;
use tickpath_market::{Price, Quantity, SymbolId, TopOfBook, parse_decimal};

/// Turns of each reader.
const TURNS: usize = 9;
/// Frames that one sample spans: a call of the clock costs a part of a frame.
const FRAMES_PER_SAMPLE: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse())?;
    let frames: Vec<String> = (0..count).map(frame).collect();
    let name = "BTC-USDT".to_owned();
    let instrument = FeedInstrument { name, symbol: SymbolId(1), price_decimals: 8, quantity_decimals: 8, code: 0 };
    let mut parser = OkxParser::new(&[instrument])?;
    let clock = HostClock::get()?;
    let (mut in_place, mut complete) = (Histogram::<u64>::new(3)?, Histogram::<u64>::new(3)?);
    for _ in 0..TURNS {
        sample(&clock, &frames, &mut in_place, |frame| {
            let read = parser.parse(Frame::Text(frame.as_bytes()), &mut |event| {
                black_box(matches!(event, MarketEvent::Quote { .. }));
            });
            read.is_ok()
        });
        sample(&clock, &frames, &mut complete, |frame| black_box(by_serde(frame)).is_some());
    }
    let frame_ns =
        |histogram: &Histogram<u64>, quantile| histogram.value_at_quantile(quantile) as f64 / FRAMES_PER_SAMPLE as f64;
    for (reader, histogram) in [("in place", &in_place), ("serde_json", &complete)] {
        println!("{reader}: p50 {:.0} ns, p99 {:.0} ns a frame", frame_ns(histogram, 0.5), frame_ns(histogram, 0.99));
    }
    println!("serde_json over in place: {:.1}", frame_ns(&complete, 0.5) / frame_ns(&in_place, 0.5));
    println!("frames that were not read in place: {}", parser.unusual_frames());
    Ok(())
}

/// Reads all frames once, and notes the time of each sample in nanoseconds.
fn sample(clock: &HostClock, frames: &[String], into: &mut Histogram<u64>, mut read: impl FnMut(&str) -> bool) {
    for frames in frames.chunks_exact(FRAMES_PER_SAMPLE) {
        let began = clock.ticks();
        for frame in frames {
            assert!(read(black_box(frame)), "{frame} cannot be read");
        }
        into.record(clock.ns_between(began, clock.ticks()).unsigned_abs()).expect("the histogram grows");
    }
}

/// Returns a frame as OKX sends it.
fn frame(number: u64) -> String {
    let (price, size) = (105_252 + number % 97, number % 9_973);
    format!(
        r#"{{"arg":{{"channel":"bbo-tbt","instId":"BTC-USDT"}},"data":[{{"asks":[["{price}.6","0.{size:08}","0","5"]],"bids":[["{price}.5","1.{size:08}","0","19"]],"ts":"{}","seqId":{}}}]}}"#,
        1_749_044_565_306 + number,
        55_729_075_884 + number
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Push<'a> {
    #[serde(borrow)]
    arg: Channel<'a>,
    #[serde(borrow)]
    data: Vec<Quote<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Channel<'a> {
    channel: &'a str,
    inst_id: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Quote<'a> {
    #[serde(borrow)]
    asks: Vec<[&'a str; 4]>,
    #[serde(borrow)]
    bids: Vec<[&'a str; 4]>,
    ts: &'a str,
    seq_id: u64,
}

/// Reads a frame as a program with serde_json would: into a struct, then its numbers.
fn by_serde(frame: &str) -> Option<(u64, TopOfBook)> {
    let push: Push<'_> = serde_json::from_str(frame).ok()?;
    let is_subscribed = push.arg.channel == "bbo-tbt" && push.arg.inst_id == "BTC-USDT";
    let quote = push.data.first().filter(|_| is_subscribed)?;
    let (ask, bid) = (quote.asks.first()?, quote.bids.first()?);
    let units = |text: &str| parse_decimal(text, 8).ok();
    let top = TopOfBook {
        bid: Price(units(bid[0])?),
        bid_quantity: Quantity(units(bid[1])?),
        ask: Price(units(ask[0])?),
        ask_quantity: Quantity(units(ask[1])?),
        event_ns: quote.ts.parse::<u64>().ok()? * 1_000_000,
        symbol: SymbolId(1),
        wire_age_ns: 0,
    };
    Some((quote.seq_id, top))
}
