//! A broker that runs out of memory, or is killed: a separate one, so that no other test is affected.

use tickpath_bus_amqp::AmqpBus;
use tickpath_bus_api::conformance::{OwnedEvent, free_port, next_event, pull_stamps};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Fate, Gap, PublishError, Puller, Pusher, QueueConfig, ReceiveError,
};
use tickpath_clock::{Wait, sleep_ns};

use crate::broker::{publisher, puller, pusher, subscriber};
use crate::dedicated_broker::DedicatedBroker;

const KIND: u8 = 16;

#[test]
fn a_blocked_broker_and_its_restart_lose_no_acknowledged_message() {
    let mut own = DedicatedBroker::start("", &[]);
    // The first address has no listener.
    let closed = free_port();
    let plain = connect(&format!("amqp://127.0.0.1:{closed},{}", own.address()));
    let durable = connect(&own.url("?durable&replicas=1"));

    check_no_loss_or_duplicate_while_blocked(&own, &plain);
    check_only_durable_queues_survive(&mut own, &plain, &durable);
}

fn connect(url: &str) -> AmqpBus {
    AmqpBus::connect(url).unwrap_or_else(|e| panic!("{e}"))
}

fn check_no_loss_or_duplicate_while_blocked(own: &DedicatedBroker, bus: &AmqpBus) {
    let mut subscriber = subscriber(bus, "blocked", Wait::Block);
    let mut publisher = publisher(bus, "blocked");
    publisher.publish(1, KIND, b"before").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(1, b"before"));

    own.alarm(true);
    let error = publisher.publish(2, KIND, b"on its way").unwrap_err();
    assert_eq!(error.fate(), Fate::Unknown, "{error}");
    assert!(error.to_string().contains("takes no messages now, because"), "{error}");
    let error = publisher.publish(3, KIND, b"not sent").unwrap_err();
    assert!(matches!(error, PublishError::Unavailable(_)), "{error}");
    assert!(error.to_string().contains("takes no messages now, because"), "{error}");
    let error = publisher.resend().unwrap_err();
    assert_eq!(error.fate(0), Fate::Unknown, "{error}");

    own.alarm(false);
    publisher.resend().unwrap_or_else(|e| panic!("{e}"));
    publisher.publish(4, KIND, b"after").unwrap();
    assert_eq!(publisher.reconnects(), Some(0), "the connection is kept");
    // The message comes once, and no sequence number is missing.
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(2, b"on its way"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(4, b"after"));
}

fn check_only_durable_queues_survive(own: &mut DedicatedBroker, plain: &AmqpBus, durable: &AmqpBus) {
    let mut kept = (pusher(durable, "kept"), puller(durable, "kept", DeliveryGuarantee::AtLeastOnce));
    let mut lost = (pusher(plain, "lost"), puller(plain, "lost", DeliveryGuarantee::AtLeastOnce));
    let mut topic = (publisher(durable, "durable-topic"), subscriber(durable, "durable-topic", Wait::Block));
    for (pusher, puller) in [&mut kept, &mut lost] {
        pusher.push_batch(7, KIND, &[b"held", b"waits"]).unwrap();
        assert_eq!(pull_stamps(&mut **puller, 1), [(7, false)]);
    }
    let differs = plain.pusher("kept", &QueueConfig::new(DeliveryGuarantee::AtLeastOnce));
    let differs = differs.err().expect("a queue is durable or not").to_string();
    assert!(differs.contains("has this name already") && differs.contains("use another name"), "{differs}");

    // RabbitMQ writes the queue's declaration to disk half a second late, unlike its messages.
    own.evaluate("[ok = dets:sync(Table) || Table <- dets:all()].");
    own.kill();
    own.run();
    let news = pull_until_error(&mut *lost.1);
    assert!(matches!(&news, ReceiveError::MessagesLost(sentence) if sentence.contains("?durable")), "{news:?}");
    assert!(matches!(lost.1.acknowledge(), Err(ReceiveError::NotAcknowledged(_))));
    push(&mut *lost.0, 8);
    assert_eq!(pull_stamps(&mut *lost.1, 1), [(8, false)], "it is made anew, and reported once");

    assert_eq!(pull_stamps(&mut *kept.1, 2), [(7, true); 2], "nothing of what the old connection had sent ahead");
    assert!(matches!(kept.1.acknowledge(), Err(ReceiveError::NotAcknowledged(_))));
    push(&mut *kept.0, 9);
    assert_eq!(pull_stamps(&mut *kept.1, 1), [(9, false)]);
    kept.1.acknowledge().unwrap();

    assert_eq!(next_event(&mut *topic.1), OwnedEvent::Gap(Gap::Reconnected));
    topic.0.publish(1, KIND, b"again").unwrap_or_else(|e| panic!("a connection that has ended is made anew: {e}"));
    assert_eq!(next_event(&mut *topic.1), OwnedEvent::message(1, b"again"));
}

/// Pushes, and retries if the broker's death is detected only now, or the queue is not ready yet.
fn push(pusher: &mut dyn Pusher, stamp: u64) {
    for _ in 0..600 {
        match pusher.push(stamp, KIND, b"after") {
            Ok(()) => return,
            Err(error) if error.fate() == Fate::Unknown => return pusher.resend().unwrap_or_else(|e| panic!("{e}")),
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        sleep_ns(100_000_000);
    }
    panic!("{stamp} is not pushed");
}

/// Pulls until an error, and returns it.
pub fn pull_until_error(puller: &mut dyn Puller) -> ReceiveError {
    for _ in 0..60_000 {
        match puller.pull(1, &mut |_| {}) {
            Err(news) => return news,
            Ok(_) => puller.wait(1_000_000),
        }
        sleep_ns(1_000_000);
    }
    panic!("no error is reported");
}
