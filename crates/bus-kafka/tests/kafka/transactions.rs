//! Records that other programs send in transactions.

use tickpath_bus_api::conformance::{OwnedEvent, next_event};
use tickpath_bus_api::{Policy, StartPosition, TopicConfig};
use tickpath_clock::Wait;

use crate::kafka_server::send_in_transactions;
use crate::{connect, url};

/// Uses Kafka's own client. Transaction markers and aborted records take offsets, but are no loss.
#[test]
fn foreign_transactions_leave_no_gaps() {
    const COUNT: u64 = 100;
    const ABORTED: u64 = 37;
    let topic = format!("tickpath.test-{}.transactions", std::process::id());
    let bus = connect(&url()).unwrap();
    let config = TopicConfig::new(Policy::Keep);
    let mut publisher = bus.publisher(&topic, &config).unwrap_or_else(|e| panic!("{e}"));
    let subscribe = |start| bus.subscriber(&topic, start, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let mut subscriber = subscribe(StartPosition::Now);
    publisher.publish(0, 16, b"ours").unwrap();
    send_in_transactions(url().strip_prefix("kafka://").expect("it is a Kafka URL"), &topic, COUNT, ABORTED);
    publisher.publish(1, 16, b"ours").unwrap();
    let ours =
        |event: &OwnedEvent, stamp| matches!(event, OwnedEvent::Message { stamp: received, .. } if *received == stamp);
    assert!(ours(&next_event(&mut *subscriber), 0));
    for number in (0..COUNT).filter(|&number| number != ABORTED) {
        let received = next_event(&mut *subscriber);
        let text = number.to_string();
        assert!(
            matches!(&received, OwnedEvent::Foreign { bytes, .. } if bytes == text.as_bytes()),
            "{number}: {received:?}"
        );
    }
    let token = subscriber.resume_token().expect("Kafka keeps messages");
    assert!(ours(&next_event(&mut *subscriber), 1));
    // A subscriber that resumes behind a marker has lost nothing either.
    assert!(ours(&next_event(&mut *subscribe(StartPosition::After(token))), 1));
    drop(publisher);
    bus.remove_topic(&topic).unwrap_or_else(|e| panic!("{e}"));
}
