//! Publishes three messages to a topic, and receives them in the same process.
//!
//! ```text
//! cargo run -p tickpath-bus --example publish_subscribe
//! ```
//! The topic lies in shared memory. The URL of a broker as an argument, such as `nats://127.0.0.1:4222`, runs the same
//! code over that broker.

use std::error::Error;

use tickpath_bus::{Policy, StartPosition, SubscriptionEvent, TopicConfig, connect};
use tickpath_clock::{Clock, HostClock, Wait};

/// Kind of the messages, which the program chooses: 16 to 254.
const TICK: u8 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "shm://".to_owned());
    let topic = format!("example-{}", std::process::id());
    let clock = HostClock::get()?;

    let bus = connect(&url)?;
    let mut subscriber = bus.subscriber(&topic, StartPosition::Now, Wait::Block)?;
    let mut publisher = bus.publisher(&topic, &TopicConfig::new(Policy::Overwrite))?;
    for price in ["101.5", "101.6", "101.4"] {
        publisher.publish(clock.ticks(), TICK, price.as_bytes())?;
    }
    let mut received = 0;
    while received < 3 {
        subscriber.wait(100_000_000);
        received += subscriber.poll(64, &mut |event| print_event(&clock, &event))?;
    }
    bus.remove_topic(&topic)?;
    Ok(())
}

/// Prints a message with its age, or a loss.
fn print_event(clock: &HostClock, event: &SubscriptionEvent<'_>) {
    match event {
        SubscriptionEvent::Message(message) => {
            let age_ns = clock.ns_between(message.stamp, clock.ticks());
            println!("{} after {age_ns} ns", String::from_utf8_lossy(message.payload));
        }
        SubscriptionEvent::Foreign(foreign) => println!("{} bytes of another program", foreign.bytes.len()),
        SubscriptionEvent::Gap(gap) => println!("lost messages: {gap:?}"),
    }
}
