//! Forwarded messages, which keep their origin from another bus.

use tickpath_bus_api::conformance::{OwnedEvent, check_no_event, next_event};
use tickpath_bus_api::{Gap, MessageId};
use tickpath_clock::Wait;

use crate::helpers::{KIND, bus, publisher, subscriber};
use crate::nats_server::NatsServer;

#[test]
fn forwarded_duplicates_arrive_once_and_gaps_are_reported() {
    let server = NatsServer::start(&[]);
    for query in ["", "?jetstream"] {
        let bus = bus(&format!("{}{query}", server.url()));
        let mut subscriber = subscriber(&bus, Wait::Block);
        let [mut one, mut other] = [publisher(&bus), publisher(&bus)];
        let origin = |number| MessageId { clock: 1, publisher: 0x7469_636b, sequence: number };
        let payload = |event: OwnedEvent| match event {
            OwnedEvent::Message { payload, .. } => String::from_utf8(payload).unwrap(),
            other => format!("{other:?}"),
        };
        one.publish(1, KIND, b"his own").unwrap();
        assert_eq!(payload(next_event(&mut *subscriber)), "his own");
        one.publish_with_id(origin(0), 2, KIND, b"zero").unwrap();
        assert_eq!(payload(next_event(&mut *subscriber)), "zero");
        other.publish_with_id(origin(0), 2, KIND, b"zero").unwrap();
        one.publish_with_id(origin(3), 3, KIND, b"three").unwrap();
        // Late: it was already reported as missed.
        one.publish_with_id(origin(2), 3, KIND, b"two").unwrap();
        one.publish(4, KIND, b"his own").unwrap();
        let received: Vec<String> = (0..3).map(|_| payload(next_event(&mut *subscriber))).collect();
        let gap = format!("{:?}", OwnedEvent::Gap(Gap::Missed(2)));
        assert_eq!(received, [gap.as_str(), "three", "his own"], "{query}");
        check_no_event(&mut *subscriber);
    }
}
