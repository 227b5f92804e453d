//! Measures how fast a CSV file of quotes in the form of tardis.dev is read, by one thread.
//!
//! ```text
//! cargo run --release -p tickpath-recordings --example import_speed -- MB
//! ```
//! The file of this size is made first, in the folder of temporary files; the figure is for its uncompressed bytes.

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use tickpath_clock::{Clock, HostClock};
use tickpath_recordings::MarketFile;

const DEFAULT_MB: u64 = 200;
const BYTES_PER_MB: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let megabytes = std::env::args().nth(1).map_or(Ok(DEFAULT_MB), |text| text.parse())?;
    let file = tempfile::Builder::new().suffix(".csv").tempfile()?;
    let bytes = write_quotes(BufWriter::new(file.as_file()), megabytes * BYTES_PER_MB)?;

    let clock = HostClock::get()?;
    let begin = clock.ticks();
    let mut latest_ns = 0;
    let counts = MarketFile::open(file.path(), None)?.read(&mut |utc_ns, _, _| {
        latest_ns = utc_ns;
        ControlFlow::Continue(())
    })?;
    let seconds = clock.ns_between(begin, clock.ticks()) as f64 / 1e9;
    println!("{counts}; the last at {latest_ns}");
    let rate = bytes as f64 / BYTES_PER_MB as f64 / seconds;
    println!("{bytes} bytes in {seconds:.3} s: {rate:.0} MB/s, {:.1} M rows/s", counts.rows as f64 / 1e6 / seconds);
    Ok(())
}

/// Writes quotes until the file has about this many bytes; returns the number of bytes.
fn write_quotes(mut out: impl Write, max_bytes: u64) -> io::Result<u64> {
    let header = "exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount\n";
    out.write_all(header.as_bytes())?;
    let (mut bytes, mut us, mut step) = (header.len() as u64, 1_704_067_200_000_000_u64, 0_u64);
    while bytes < max_bytes {
        us += 350 + step % 97;
        step = step.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (tenths, lots) = (step >> 54, step >> 48);
        let row = format!(
            "binance-futures,BTCUSDT,{us},{},{}.{:03},{}.{},{}.{},{}.{:03}\n",
            us + 2_900,
            lots % 40,
            lots % 1_000,
            61_800 + tenths / 10,
            tenths % 10 + 1,
            61_800 + tenths / 10,
            tenths % 10,
            lots % 60,
            lots % 997,
        );
        out.write_all(row.as_bytes())?;
        bytes += row.len() as u64;
    }
    out.flush()?;
    Ok(bytes)
}
