//! A server that is stalled or killed, or has lost the end of a topic: each message's fate is reported, and no message
//! comes twice.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tickpath_bus_api::conformance::{OwnedEvent, next_event, pull_stamps, resume_process, suspend_process};
use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Fate, Gap, Policy, PublishError, Publisher, Puller, QueueConfig, ReceiveError,
    StartPosition, Subscriber, TopicConfig,
};
use tickpath_bus_kafka::KafkaBus;
use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};

use crate::kafka_server::{KafkaServer, acquire_permit};
use crate::until;

const KIND: u8 = 16;
const TOPIC: &str = "outage";
const QUEUE: &str = "outage";
/// Silence after which a server is surely excluded from its cluster (`broker.session.timeout.ms`).
const SESSION_NS: u64 = 4_000_000_000;

/// Runs all cases on one server, because its start takes longer than most of them.
#[test]
fn every_server_failure_is_reported_and_nothing_comes_twice() {
    let _turn = acquire_permit(1);
    let mut server = KafkaServer::start("", "");
    an_unanswered_acknowledgement_is_done_or_redelivered(&server);
    messages_of_a_puller_dropped_in_an_outage_are_redelivered(&server);
    a_client_whose_cluster_lists_no_brokers_reconnects(&server);
    a_message_in_doubt_is_reported_and_arrives_once_after_a_resend(&mut server);
    a_lost_log_end_is_reported_and_old_messages_do_not_return(&mut server);
}

fn a_message_in_doubt_is_reported_and_arrives_once_after_a_resend(server: &mut KafkaServer) {
    let bus = connect(server);
    let mut publisher = publisher(&bus, TOPIC);
    let mut subscriber = subscriber(&bus, TOPIC);
    let mut pusher = bus
        .pusher(QUEUE, &QueueConfig::new(DeliveryGuarantee::AtLeastOnce))
        .unwrap_or_else(|e| panic!("no pusher: {e}"));
    publisher.publish(0, KIND, b"ours").unwrap();

    // The messages are sent, and the server receives them when it resumes.
    suspend_process(server.pid());
    let payloads: [&[u8]; 3] = [b"one", b"two", b"three"];
    let (published, pushed) = std::thread::scope(|scope| {
        let pushing = scope.spawn(|| pusher.push(1, KIND, b"ours"));
        (publisher.publish_batch(1, KIND, &payloads), pushing.join().unwrap())
    });
    resume_process(server.pid());
    let failed = published.expect_err("the server stood still");
    assert!(matches!(failed.error, PublishError::Unknown(_)), "{failed}");
    assert_eq!((failed.done, failed.unknown().collect::<Vec<_>>()), (0, vec![0, 1, 2]), "{failed}");
    assert_eq!(pushed.expect_err("the server stood still").fate(), Fate::Unknown);
    until(|| publisher.resend().is_ok());
    publisher.resend().expect("nothing is unknown any more");
    publisher.publish(2, KIND, b"ours").unwrap();
    let expected: [(u64, &[u8]); 5] = [(0, b"ours"), (1, b"one"), (1, b"two"), (1, b"three"), (2, b"ours")];
    for (stamp, payload) in expected {
        assert_eq!(next_message(&mut *subscriber), (stamp, payload.to_vec()));
    }
    until(|| pusher.resend().is_ok());
    // The first copy may be in the queue, too.
    until(|| matches!(bus.count_waiting(QUEUE), Ok(Some(1..=2))));
    assert!(!bus.queue_capabilities().exact_resend);

    // The outage is known before anything is sent, except on a connection whose end has not arrived yet.
    server.kill();
    let first = publisher.publish(3, KIND, b"ours").expect_err("the server is gone");
    assert!(first.is_transient(), "{first}");
    let is_given_up = first.fate() == Fate::Unknown;
    let second = publisher.publish(4, KIND, b"ours").expect_err("the server is still gone");
    assert!(matches!(second, PublishError::Unavailable(_)), "{second}");
    assert!(second.to_string().contains("refused the connection"), "{second}");
    server.restart();
    until(|| match publisher.publish(5, KIND, b"ours") {
        Ok(()) => true,
        Err(PublishError::Unavailable(_)) => false,
        Err(other) => panic!("{other}"),
    });
    if is_given_up {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Missed(1)));
    }
    assert_eq!(next_message(&mut *subscriber), (5, b"ours".to_vec()));
}

/// A stalled server is excluded from the cluster for a moment, and then returns an empty list of servers.
fn a_client_whose_cluster_lists_no_brokers_reconnects(server: &KafkaServer) {
    const FORGOTTEN: &str = "forgotten";
    let bus = connect(server);
    let mut publisher = publisher(&bus, FORGOTTEN);
    let mut subscriber = subscriber(&bus, FORGOTTEN);
    let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    let mut pusher = bus.pusher(FORGOTTEN, &config).unwrap_or_else(|e| panic!("no pusher: {e}"));
    let mut puller = bus.puller(FORGOTTEN, &config, Wait::Block).unwrap_or_else(|e| panic!("no puller: {e}"));
    publisher.publish(0, KIND, b"ours").unwrap();
    assert_eq!(next_message(&mut *subscriber), (0, b"ours".to_vec()));
    pusher.push(0, KIND, b"ours").unwrap();
    assert_eq!(pull_stamps(&mut *puller, 1).len(), 1);
    puller.acknowledge().unwrap();

    suspend_process(server.pid());
    sleep_ns(SESSION_NS);
    resume_process(server.pid());
    // Requests start at once, and repeat until the server is back.
    until(|| matches!(bus.count_waiting(FORGOTTEN), Ok(Some(0))));
    until(|| publisher.publish(1, KIND, b"ours").is_ok());
    until(|| pusher.push(1, KIND, b"ours").is_ok());
    until(|| next_message(&mut *subscriber).0 == 1);
    until(|| pull_stamps(&mut *puller, 1).iter().any(|&(stamp, _)| stamp == 1));
}

/// Cuts a topic and a queue in one restart.
fn a_lost_log_end_is_reported_and_old_messages_do_not_return(server: &mut KafkaServer) {
    const CUT: &str = "cut";
    let bus = connect(server);
    publish(&bus, CUT, 0..100);
    let mut subscriber = subscriber(&bus, CUT);
    publish(&bus, CUT, 100..110);
    for stamp in 100..110 {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(stamp, stamp, b"ours"));
    }
    let token = subscriber.resume_token().expect("it stands somewhere");
    let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    let push = |bus: &KafkaBus, stamps: Range<u64>| {
        let mut pusher = bus.pusher(CUT, &config).unwrap_or_else(|e| panic!("no pusher: {e}"));
        stamps.for_each(|stamp| pusher.push(stamp, KIND, b"ours").unwrap());
    };
    push(&bus, 0..60);
    let mut puller = bus.puller(CUT, &config, Wait::Block).unwrap_or_else(|e| panic!("no puller: {e}"));
    assert_eq!(pull_stamps(&mut *puller, 60).len(), 60);
    puller.acknowledge().unwrap();

    server.kill();
    server.cut(CUT, 50);
    // Five of the ten messages of the first partition stay.
    server.cut(".cut-queue", 5);
    server.restart();
    let bus = connect(server);

    push(&bus, 100..112);
    let (mut received, mut is_reported) = (Vec::new(), false);
    until(|| {
        let pulled = puller.pull(8, &mut |pulled| received.push(pulled.message.stamp));
        match pulled {
            Ok(_) => {}
            Err(ReceiveError::MessagesLost(sentence)) => is_reported |= sentence.contains("was truncated"),
            Err(other) => panic!("{other}"),
        }
        received.len() >= 12
    });
    received.sort();
    assert_eq!(received, (100..112).collect::<Vec<_>>());
    assert!(is_reported);
    puller.acknowledge().unwrap();
    until(|| matches!(bus.count_waiting(CUT), Ok(Some(0))));

    publish(&bus, CUT, 200..203);
    let after = bus.subscriber(CUT, StartPosition::After(token), Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    for mut subscriber in [subscriber, after] {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
        for (sequence, stamp) in (50..).zip(200..203) {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(sequence, stamp, b"ours"));
        }
    }
}

fn an_unanswered_acknowledgement_is_done_or_redelivered(server: &KafkaServer) {
    const COUNT: u64 = 600;
    let bus = connect(server);
    // A puller that stays gets the answer later; a dropped one does not wait for it.
    for (queue, is_dropped, silence_ns) in [("stays", false, 30_000_000_000), ("dropped", true, 5_000_000_000)] {
        let config = QueueConfig { silence_ns, ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) };
        let open = || bus.puller(queue, &config, Wait::Block).unwrap_or_else(|e| panic!("no puller: {e}"));
        let mut pusher = bus.pusher(queue, &config).unwrap_or_else(|e| panic!("no pusher: {e}"));
        (0..COUNT).for_each(|stamp| pusher.push(stamp, KIND, b"ours").unwrap());
        let mut puller = open();
        let (acknowledged, is_halted) = (AtomicU64::new(0), AtomicBool::new(false));
        let (done, error) = std::thread::scope(|scope| {
            let pulling = scope.spawn(|| acknowledge_each(&mut *puller, &acknowledged, &is_halted));
            until(|| pulling.is_finished() || acknowledged.load(Ordering::SeqCst) >= 50);
            suspend_process(server.pid());
            is_halted.store(true, Ordering::SeqCst);
            within_seconds("an acknowledgement", || pulling.join().unwrap())
        });
        let held = error.map(|(stamp, error)| {
            let sentence = error.to_string();
            assert!(matches!(error, ReceiveError::NotAcknowledged(_)), "{sentence}");
            let words = ["up to 1 messages are in doubt", "is not acknowledged: it comes again"];
            assert!(words.iter().any(|words| sentence.contains(words)), "{sentence}");
            stamp
        });
        let stays = if is_dropped {
            within_seconds("a puller that is dropped", || drop(puller));
            None
        } else {
            Some(puller)
        };
        resume_process(server.pid());

        let mut puller = stays.unwrap_or_else(open);
        let mut received: Vec<u64> = done.iter().copied().chain(held).collect();
        until(|| {
            let pulled = puller.pull(64, &mut |pulled| {
                let stamp = pulled.message.stamp;
                assert!(!done.contains(&stamp), "{queue}: {stamp} is acknowledged, and comes again");
                assert!(held != Some(stamp) || pulled.redelivered, "{queue}: {stamp} comes again without a mark");
                received.push(stamp);
            });
            pulled.unwrap_or_else(|e| panic!("{queue}: {e}"));
            match puller.acknowledge() {
                Ok(()) | Err(ReceiveError::NotAcknowledged(_)) => {}
                Err(other) => panic!("{queue}: {other}"),
            }
            matches!(bus.count_waiting(queue), Ok(Some(0)))
        });
        received.sort_unstable();
        received.dedup();
        assert_eq!(received, (0..COUNT).collect::<Vec<_>>(), "{queue}");
    }
}

/// The puller has acknowledged nothing, and cannot commit a note.
fn messages_of_a_puller_dropped_in_an_outage_are_redelivered(server: &KafkaServer) {
    let bus = connect(server);
    let config = QueueConfig { silence_ns: 2_000_000_000, ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) };
    let open = || bus.puller("held", &config, Wait::Block).unwrap_or_else(|e| panic!("no puller: {e}"));
    let mut pusher = bus.pusher("held", &config).unwrap_or_else(|e| panic!("no pusher: {e}"));
    (0..10).for_each(|stamp| pusher.push(stamp, KIND, b"ours").unwrap());
    let mut puller = open();
    let mut held = pull_stamps(&mut *puller, 10);
    suspend_process(server.pid());
    within_seconds("a puller that is dropped", || drop(puller));
    resume_process(server.pid());
    let mut again = pull_stamps(&mut *open(), 10);
    held.sort_unstable();
    again.sort_unstable();
    assert_eq!(again, held.iter().map(|&(stamp, _)| (stamp, true)).collect::<Vec<_>>());
}

/// Pulls and acknowledges messages one by one, until a call fails, or a stalled server delivers none. Returns the
/// stamps of those that are done, and the stamp and error of the one in doubt.
fn acknowledge_each(
    puller: &mut dyn Puller,
    acknowledged: &AtomicU64,
    is_halted: &AtomicBool,
) -> (Vec<u64>, Option<(u64, ReceiveError)>) {
    let mut done = Vec::new();
    loop {
        let mut held = None;
        let pulled = puller.pull(1, &mut |pulled| held = Some(pulled.message.stamp));
        pulled.unwrap_or_else(|e| panic!("{e}"));
        match held {
            None if is_halted.load(Ordering::SeqCst) => return (done, None),
            None => puller.wait(1_000_000),
            Some(stamp) => match puller.acknowledge() {
                Ok(()) => {
                    done.push(stamp);
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) => return (done, Some((stamp, error))),
            },
        }
    }
}

/// Runs work that must take seconds, and not as long as the server is stalled.
fn within_seconds<T>(what: &str, work: impl FnOnce() -> T) -> T {
    const SECONDS_NS: i64 = 30_000_000_000;
    let clock = HostClock::get().unwrap();
    let start = clock.ticks();
    let done = work();
    let waited_ns = clock.ns_between(start, clock.ticks());
    assert!(waited_ns < SECONDS_NS, "{what} waited {waited_ns} ns for a server that stands still");
    done
}

fn connect(server: &KafkaServer) -> KafkaBus {
    KafkaBus::connect(&server.url()).unwrap_or_else(|e| panic!("{e}"))
}

fn publisher(bus: &KafkaBus, topic: &str) -> Box<dyn Publisher> {
    bus.publisher(topic, &TopicConfig::new(Policy::Keep)).unwrap_or_else(|e| panic!("{e}"))
}

fn subscriber(bus: &KafkaBus, topic: &str) -> Box<dyn Subscriber> {
    bus.subscriber(topic, StartPosition::Now, Wait::Block).unwrap_or_else(|e| panic!("{e}"))
}

/// Publishes a message for each of these stamps, each in its own call.
fn publish(bus: &KafkaBus, topic: &str, stamps: Range<u64>) {
    let mut publisher = publisher(bus, topic);
    stamps.for_each(|stamp| publisher.publish(stamp, KIND, b"ours").unwrap());
}

/// Returns stamp and payload of the next event, which must be a message. Ignores its offset, because a dropped copy
/// takes one.
fn next_message(subscriber: &mut dyn Subscriber) -> (u64, Vec<u8>) {
    match next_event(subscriber) {
        OwnedEvent::Message { stamp, payload, .. } => (stamp, payload),
        other => panic!("{other:?}"),
    }
}
