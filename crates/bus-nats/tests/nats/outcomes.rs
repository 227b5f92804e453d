//! Fates of messages when the server hangs or refuses, and the error for each.

use tickpath_bus_api::conformance::{
    NetworkProxy, OwnedEvent, ProxyMode, next_event, resume_process, suspend_process, wait_until,
};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Fate, Gap, Policy, PublishError, Publisher, QueueConfig, ReceiveError,
    StartPosition, Subscriber, TopicConfig,
};
use tickpath_bus_nats::NatsBus;
use tickpath_clock::{Wait, sleep_ns};

use crate::helpers::{
    KIND, QUEUE, STREAM, TOPIC, bus, publisher, pull, pull_error, puller, pusher, relay_url, subscriber,
};
use crate::nats_server::NatsServer;
use crate::server::{ask_jetstream, publish_foreign};

#[test]
fn jetstream_keeps_a_resent_message_once() {
    let server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream", server.url()));
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut publisher = publisher(&bus);
    publisher.publish(0, KIND, b"before").unwrap();
    suspend_process(server.pid());
    let error = publisher.publish_batch(1, KIND, &[b"one", b"two"]).unwrap_err();
    resume_process(server.pid());
    assert!(matches!(error.error, PublishError::Unknown(_)) && error.error.is_transient(), "{error}");
    assert_eq!((error.done, error.unknown().collect::<Vec<_>>()), (0, vec![0, 1]));
    publisher.resend().unwrap();
    publisher.resend().unwrap();
    publisher.publish(3, KIND, b"after").unwrap();
    for (sequence, stamp, payload) in [(0, 0, "before"), (1, 1, "one"), (2, 1, "two"), (3, 3, "after")] {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(sequence, stamp, payload.as_bytes()));
    }
}

#[test]
fn a_queue_keeps_a_message_resent_over_another_connection_once() {
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let far = bus(&format!("{}?jetstream", server.url()));
    let mut pusher = pusher(&bus(&format!("{}?jetstream", relay_url(&relay))), DeliveryGuarantee::AtLeastOnce);
    suspend_process(server.pid());
    let error = pusher.push(1, KIND, b"job").unwrap_err();
    assert!(matches!(error, PublishError::Unknown(_)), "{error}");
    relay.cut_off();
    resume_process(server.pid());
    relay.heal();
    // The message is on its way to the server, or has arrived.
    pusher.resend().unwrap();
    pusher.push(2, KIND, b"job").unwrap();
    assert_eq!((far.count_waiting(QUEUE).unwrap(), far.queue_capabilities().exact_resend), (Some(2), true));
}

#[test]
fn a_message_past_the_duplicate_window_is_not_resent() {
    let (server, locked) = (NatsServer::start(&[]), NatsServer::start(&["--user", "ann", "--pass", "secret"]));
    let relay = server.relayed();
    let far = bus(&format!("{}?jetstream", server.url()));
    let name = "tickpath-queue-tickpath+test+jobs";
    let kept = "\"retention\":\"workqueue\",\"storage\":\"memory\",\"num_replicas\":1,\"duplicate_window\":100000000";
    let json = format!("{{\"name\":\"{name}\",\"subjects\":[\"queue/{QUEUE}\"],{kept}}}");
    ask_jetstream(server.port(), &format!("STREAM.CREATE.{name}"), &json);
    let mut pusher = pusher(&bus(&format!("{}?jetstream", relay_url(&relay))), DeliveryGuarantee::AtLeastOnce);
    relay.set(ProxyMode::Mute);
    let pushed = std::thread::scope(|scope| {
        let pushing = scope.spawn(|| pusher.push(1, KIND, b"job"));
        wait_until(|| far.count_waiting(QUEUE).unwrap() == Some(1));
        relay.lead_to(locked.port());
        relay.break_off();
        pushing.join().unwrap()
    });
    assert!(matches!(&pushed, Err(PublishError::Unknown(_))), "{pushed:?}");
    relay.lead_to(server.port());
    // The server's duplicate window of 100 ms must pass, too.
    sleep_ns(300_000_000);
    for _ in 0..2 {
        let error = pusher.resend().unwrap_err();
        assert!(matches!(error.error, PublishError::Unknown(_)), "{error}");
        assert!(error.to_string().contains("it might be kept twice"), "{error}");
    }
    pusher.push(2, KIND, b"job").unwrap();
    assert_eq!(far.count_waiting(QUEUE).unwrap(), Some(2));
}

#[test]
fn a_core_subscriber_sees_a_resent_message_once() {
    let server = NatsServer::start(&[]);
    let bus = bus(&server.url());
    let mut subscriber = subscriber(&bus, Wait::Block);
    let mut publisher = publisher(&bus);
    let payload = vec![7; 256 << 10];
    suspend_process(server.pid());
    // Socket buffers on the way hold some mebibytes.
    let first = (0..1000).find_map(|stamp| publisher.publish(stamp, KIND, &payload).err().map(|error| (stamp, error)));
    resume_process(server.pid());
    let (unknown, error) = first.expect("nobody reads");
    assert!(matches!(error, PublishError::Unknown(_)), "{error}");
    publisher.resend().unwrap();
    publisher.publish(unknown + 1, KIND, b"after").unwrap();
    for stamp in 0..=unknown {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(stamp, &payload), "{stamp} of {unknown}");
    }
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::message(unknown + 1, b"after"));
}

#[test]
fn a_partly_refused_batch_reports_the_fate_of_each_message() {
    let server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream", server.url()));
    make_stream(&server, "\"max_msg_size\":500");
    let mut publisher = keeping_publisher(&bus);
    let error = publisher.publish_batch(1, KIND, &[&b"one"[..], &[7; 1000], &b"three"[..]]).unwrap_err();
    let fates = [0, 1, 2].map(|at| error.fate(at));
    assert_eq!(fates, [Fate::Published, Fate::NotPublished, Fate::Published], "{error}");
    assert!(matches!(error.error, PublishError::Other(_)) && !error.error.is_transient(), "{error}");
    publisher.publish(2, KIND, b"four").unwrap();
    let mut subscriber = bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 1, b"one"));
    // The following messages have kept their sequence numbers: the refused one is missing between them.
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Missed(1)));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(1, 1, b"three"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(2, 2, b"four"));
}

#[test]
fn an_arrived_message_is_in_doubt_after_a_failed_second_attempt() {
    let (server, locked) = (NatsServer::start(&[]), NatsServer::start(&["--user", "ann", "--pass", "secret"]));
    let relay = server.relayed();
    let mut witness = subscriber(&bus(&format!("{}?jetstream", server.url())), Wait::Block);
    let mut publisher = publisher(&bus(&format!("{}?jetstream", relay_url(&relay))));
    let error = publish_then_lead_to(locked.port(), &relay, &mut *publisher, &mut *witness);
    assert!(matches!(error, PublishError::Unknown(_)) && error.to_string().contains("wants a password"), "{error}");
    relay.lead_to(server.port());
    publisher.resend().unwrap();
    publisher.publish(8, KIND, b"after").unwrap();
    assert_eq!(next_event(&mut *witness), OwnedEvent::at(1, 8, b"after"));
}

#[test]
fn an_arrived_message_is_in_doubt_after_a_refused_second_attempt() {
    let (server, full) = (NatsServer::start(&[]), NatsServer::start(&[]));
    make_stream(&full, "\"max_msgs\":1,\"discard\":\"new\"");
    publish_foreign(full.port(), TOPIC, &["it is full"]);
    let relay = server.relayed();
    let mut witness = subscriber(&bus(&format!("{}?jetstream", server.url())), Wait::Block);
    let mut publisher = keeping_publisher(&bus(&format!("{}?jetstream", relay_url(&relay))));
    let error = publish_then_lead_to(full.port(), &relay, &mut *publisher, &mut *witness);
    assert!(matches!(error, PublishError::Unknown(_)), "{error}");
    // A repeated refusal by that server proves nothing about the first copy.
    let again = publisher.resend().unwrap_err();
    assert!(matches!(again.error, PublishError::Unknown(_)) && again.fate(0) == Fate::Unknown, "{again}");
}

#[test]
fn a_message_without_room_is_not_published_and_may_be_retried() {
    let server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream", server.url()));
    make_stream(&server, "\"max_msgs\":2,\"discard\":\"new\"");
    let mut publisher = keeping_publisher(&bus);
    let error = publisher.publish_batch(1, KIND, &[&b"one"[..], b"two", b"three", b"four"]).unwrap_err();
    assert_eq!((error.done, error.fate(2), error.fate(3)), (2, Fate::NotPublished, Fate::NotPublished), "{error}");
    assert!(matches!(error.error, PublishError::Unavailable(_)) && error.error.is_transient(), "{error}");
    ask_jetstream(server.port(), &format!("STREAM.PURGE.{STREAM}"), "");
    publisher.publish(2, KIND, b"after").unwrap();
    assert_eq!(publisher.reconnects(), Some(0), "an answer is no loss");
}

#[test]
fn a_refused_message_leaves_no_gap() {
    let server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream", server.url()));
    make_stream(&server, "\"max_msg_size\":500");
    let mut publisher = keeping_publisher(&bus);
    let mut subscriber = subscriber(&bus, Wait::Block);
    publisher.publish(1, KIND, b"one").unwrap();
    publisher.publish(2, KIND, &[7; 1000]).unwrap_err();
    publisher.publish(3, KIND, b"three").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 1, b"one"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(1, 3, b"three"));
}

#[test]
fn a_missing_permission_is_a_permanent_error() {
    let permissions = format!("permissions: {{ publish: {{ deny: [\"{TOPIC}\"] }} }}");
    let user = format!("authorization {{ users: [ {{ user: ann, password: pass, {permissions} }} ] }}");
    let server = NatsServer::start_by(&user);
    let bus = bus(&format!("{}?jetstream", server.url_with("ann:pass")));
    let error = publisher(&bus).publish(1, KIND, b"secret").unwrap_err();
    assert!(matches!(error, PublishError::Other(_)) && !error.is_transient(), "{error}");
    assert!(error.to_string().contains("Permissions Violation for Publish"), "{error}");
}

#[test]
fn a_failed_acknowledgement_is_reported_once_and_redelivered() {
    let server = NatsServer::start(&[]);
    let relay = server.relayed();
    let config = QueueConfig { silence_ns: 4_000_000_000, ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) };
    let bus = bus(&format!("{}?jetstream", relay_url(&relay)));
    let mut pusher = bus.pusher(QUEUE, &config).unwrap_or_else(|e| panic!("{e}"));
    let mut puller = bus.puller(QUEUE, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    pusher.push(1, KIND, b"job").unwrap();
    assert_eq!(pull(&mut *puller), (1, false));
    relay.cut_off();
    let error = puller.acknowledge().unwrap_err();
    assert!(matches!(error, ReceiveError::NotAcknowledged(_)) && error.is_transient(), "{error}");
    puller.acknowledge().expect("it is told once");
    relay.heal();
    assert_eq!(pull(&mut *puller), (1, true));
    puller.acknowledge().unwrap();
}

#[test]
fn a_removed_queue_is_reported_and_pulling_continues() {
    let server = NatsServer::start(&[]);
    let bus = bus(&format!("{}?jetstream", server.url()));
    let mut puller = puller(&bus, DeliveryGuarantee::AtLeastOnce);
    let mut pusher = pusher(&bus, DeliveryGuarantee::AtLeastOnce);
    pusher.push(1, KIND, b"job").unwrap();
    assert_eq!(pull(&mut *puller), (1, false));
    bus.remove_queue(QUEUE).unwrap();
    let error = pull_error(&mut *puller);
    assert!(matches!(error, ReceiveError::MessagesLost(_)), "{error}");
    pusher.push(2, KIND, b"job").unwrap();
    // The new message has the sequence number of the one held before.
    puller.acknowledge().unwrap();
    assert_eq!(pull(&mut *puller), (2, false));
}

/// Publishes through a relay that loses the acknowledgement and leads the next connection to this port; returns the
/// error.
fn publish_then_lead_to(
    port: u16,
    relay: &NetworkProxy,
    publisher: &mut dyn Publisher,
    witness: &mut dyn Subscriber,
) -> PublishError {
    relay.set(ProxyMode::Mute);
    let published = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publisher.publish(7, KIND, b"arrived"));
        assert_eq!(next_event(witness), OwnedEvent::at(0, 7, b"arrived"));
        relay.lead_to(port);
        relay.break_off();
        publishing.join().unwrap()
    });
    published.unwrap_err()
}

/// Creates the stream of the tests' topic as another program would.
fn make_stream(server: &NatsServer, more: &str) {
    let kept = "\"retention\":\"limits\",\"storage\":\"memory\",\"num_replicas\":1";
    let json = format!("{{\"name\":\"{STREAM}\",\"subjects\":[\"{TOPIC}\"],{kept},{more}}}");
    ask_jetstream(server.port(), &format!("STREAM.CREATE.{STREAM}"), &json);
}

fn keeping_publisher(bus: &NatsBus) -> Box<dyn Publisher> {
    bus.publisher(TOPIC, &TopicConfig::new(Policy::Keep)).unwrap_or_else(|e| panic!("{e}"))
}
