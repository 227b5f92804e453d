//! Measures the cost of a call from Rust, as `calls.c` does from C:
//! `cargo run --profile wheel -p tickpath-capi --example calls`.

use std::error::Error;

use tickpath_bus::{Policy, StartPosition, SubscriptionEvent, TopicConfig};
use tickpath_clock::{Clock, HostClock, Wait};

const KIND: u8 = 200;
const BURST: usize = 512;
const BURSTS: usize = 2000;
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let (url, topic) = (std::env::args().nth(1).unwrap_or("shm://".to_owned()), "measure-rust");
    let data = [b'x'; 48];
    let clock = HostClock::get()?;
    let bus = tickpath_bus::connect(&url)?;
    let mut publisher = bus.publisher(topic, &TopicConfig::new(Policy::Overwrite))?;
    let mut subscriber = bus.subscriber(topic, StartPosition::Now, Wait::Block)?;

    let each = |begun: u64, count: usize| clock.ns_between(begun, clock.ticks()) as f64 / count as f64;
    let (mut publish, mut poll, mut empty) = (f64::MAX, f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let (mut publishing, mut polling, mut sum) = (0.0, 0.0, 0);
        let mut add = |event: SubscriptionEvent<'_>| {
            if let SubscriptionEvent::Message(message) = event {
                sum += message.payload.len();
            }
        };
        for _ in 0..BURSTS {
            let begun = clock.ticks();
            for _ in 0..BURST {
                publisher.publish(1, KIND, &data)?;
            }
            publishing += each(begun, BURST);
            let begun = clock.ticks();
            subscriber.poll(BURST, &mut add)?;
            polling += each(begun, BURST);
        }
        let begun = clock.ticks();
        for _ in 0..BURST * BURSTS {
            subscriber.poll(1, &mut add)?;
        }
        empty = each(begun, BURST * BURSTS).min(empty);
        assert_eq!(sum, BURST * BURSTS * data.len(), "some were lost");
        publish = publish.min(publishing / BURSTS as f64);
        poll = poll.min(polling / BURSTS as f64);
    }
    println!("Rust: publish {publish:.1} ns, poll {poll:.1} ns a message, empty poll {empty:.1} ns");

    drop((publisher, subscriber));
    Ok(bus.remove_topic(topic)?)
}
