//! Writes three messages to a log in shared memory, and reads them from the oldest on.
//!
//! ```text
//! cargo run -p tickpath-log --example write_read
//! ```
//! The writer and the reader are usually two processes. A log on a disk is `file:///FOLDER` in place of `shm://NAME`.

use std::error::Error;

use tickpath_clock::{Clock, HostClock};
use tickpath_log::{Config, LogPath, Next, OverflowPolicy, Reader, ReaderStart, Registration, Writer};

/// Kind of the messages, which the program chooses; kinds below 16 belong to the log.
const TICK: u8 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let clock = HostClock::get()?;
    let path: LogPath = format!("shm://example-{}", std::process::id()).parse()?;

    let mut writer = Writer::open(&Config::topic(path.clone(), OverflowPolicy::Keep), clock.calibration())?;
    for price in ["101.5", "101.6", "101.4"] {
        let sequence = writer.publish(clock.ticks(), TICK, price.as_bytes())?;
        println!("wrote message {sequence} to {path}");
    }

    let mut reader = Reader::open(&path, ReaderStart::Oldest, Registration::Registered)?;
    loop {
        match reader.next()? {
            Next::Message(message) => {
                let age_ns = clock.ns_between(message.stamp, clock.ticks());
                println!("read {} after {age_ns} ns", String::from_utf8_lossy(message.payload));
            }
            Next::Gap(missed) => println!("missed {missed} messages"),
            Next::Empty => break,
        }
    }
    writer.remove()?;
    Ok(())
}
