//! Pushes four jobs to a queue. A first puller takes two of them and ends without an acknowledgement, so a second
//! puller gets all four, two of them marked as redelivered.
//!
//! ```text
//! cargo run -p tickpath-bus --example queue
//! ```
//! The queue lies in shared memory. The URL of a broker as an argument, such as `redis://127.0.0.1:6379?streams`, runs
//! the same code over that broker.

use std::error::Error;

use tickpath_bus::{DeliveryGuarantee, PulledMessage, QueueConfig, connect};
use tickpath_clock::{Clock, HostClock, Wait};

/// Kind of the messages, which the program chooses: 16 to 254.
const JOB: u8 = 200;
const JOBS: usize = 4;
/// Max time of one wait, in nanoseconds.
const TIMEOUT_NS: u64 = 100_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "shm://".to_owned());
    let queue = format!("example-{}", std::process::id());
    let clock = HostClock::get()?;

    let bus = connect(&url)?;
    let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    let mut pusher = bus.pusher(&queue, &config)?;
    for number in 1..=JOBS {
        pusher.push(clock.ticks(), JOB, format!("job {number}").as_bytes())?;
    }

    let mut first = bus.puller(&queue, &config, Wait::Block)?;
    let mut taken = 0;
    while taken < 2 {
        first.wait(TIMEOUT_NS);
        taken += first.pull(2 - taken, &mut |pulled| print_job("first", &pulled))?;
    }
    drop(first);

    let mut second = bus.puller(&queue, &config, Wait::Block)?;
    let mut done = 0;
    while done < JOBS {
        second.wait(TIMEOUT_NS);
        done += second.pull(JOBS, &mut |pulled| print_job("second", &pulled))?;
        second.acknowledge()?;
    }
    bus.remove_queue(&queue)?;
    Ok(())
}

fn print_job(puller: &str, pulled: &PulledMessage<'_>) {
    let mark = if pulled.redelivered { ", redelivered" } else { "" };
    println!("{puller} puller: {}{mark}", String::from_utf8_lossy(pulled.message.payload));
}
