//! Behaviour that needs a real server: refusing, hanging, deleting, and serving other programs on the same topic.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tickpath_bus_api::conformance::{OwnedEvent, check_no_event, free_port, next_event, pull_stamps};
use tickpath_bus_api::{
    ConnectError, Connection, DeliveryGuarantee, Gap, MessageId, Policy, Publisher, Puller, QueueConfig, ReceiveError,
    StartPosition, Subscriber, SubscriptionEvent, TopicConfig,
};
use tickpath_bus_kafka::{KafkaBus, QUEUE_PARTITIONS};
use tickpath_clock::Wait;

use crate::{until, url};

const KIND: u8 = 16;
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn foreign_messages_arrive_as_foreign_events_with_numbers() {
    let topic = ScratchName::topic("foreign");
    let mut subscriber = topic.subscriber(StartPosition::Now);
    let others: BaseProducer = client().create().unwrap();
    let foreign: [&[u8]; 4] = [b"", b"hello", b"{\"price\": 64000.25}", b"0123456789abcdef0123456789abcdef"];
    for value in foreign {
        let record = BaseRecord::<(), [u8]>::to(&topic.name).partition(0).payload(value);
        others.send(record).map_err(|(e, _)| e).unwrap();
    }
    others.flush(PATIENCE).unwrap();
    topic.publish(6..7);
    for (sequence, value) in (0..).zip(foreign) {
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::foreign(Some(sequence), value));
    }
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(4, 6, b"ours"));
}

#[test]
fn messages_deleted_by_the_server_are_missed() {
    let topic = ScratchName::topic("forgotten");
    topic.publish(0..10);
    topic.forget(4);
    for (start, missed) in
        [(StartPosition::Oldest, None), (StartPosition::Sequence(4), None), (StartPosition::Sequence(1), Some(3))]
    {
        let mut subscriber = topic.subscriber(start);
        if let Some(missed) = missed {
            assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Missed(missed)), "{start:?}");
        }
        assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(4, 4, b"ours"), "{start:?}");
    }
}

#[test]
fn a_loss_forwarded_by_a_bridge_is_one_gap() {
    let topic = ScratchName::topic("bridged");
    let mut subscriber = topic.subscriber(StartPosition::Oldest);
    let mut publisher = topic.publisher();
    publisher.publish(0, KIND, b"ours").unwrap();
    for gap in [Gap::Missed(7), Gap::Reconnected] {
        publisher.publish_gap(0, gap).unwrap();
    }
    publisher.publish(3, KIND, b"ours").unwrap();
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(0, 0, b"ours"));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Missed(7)));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::Gap(Gap::Reconnected));
    assert_eq!(next_event(&mut *subscriber), OwnedEvent::at(3, 3, b"ours"));
    check_no_event(&mut *subscriber);
}

#[test]
fn an_unreadable_message_is_reported() {
    let topic = ScratchName::topic("zstd");
    let new = NewTopic::new(&topic.name, 1, TopicReplication::Fixed(1))
        .set("compression.type", "zstd")
        .set("retention.ms", "-1");
    let admin = admin();
    drop(admin.create_topics([&new], &AdminOptions::new()));
    let lookup: BaseConsumer = client().create().unwrap();
    until(|| lookup.fetch_watermarks(&topic.name, 0, PATIENCE).is_ok());
    // The server compresses the messages.
    topic.publish(0..3);
    let mut subscriber = topic.subscriber(StartPosition::Oldest);
    let mut sentence = String::new();
    until(|| {
        let polled = subscriber.poll(8, &mut |event| panic!("{event:?}"));
        sentence = polled.err().map(|e| e.to_string()).unwrap_or_default();
        !sentence.is_empty()
    });
    assert!(sentence.contains("zstd") && sentence.contains("compression.type"), "{sentence}");
}

#[test]
fn a_forwarded_message_keeps_its_id_and_takes_no_number() {
    let topic = ScratchName::topic("carried");
    let mut subscriber = topic.subscriber(StartPosition::Oldest);
    let mut publisher = topic.publisher();
    let origin = |number| MessageId { clock: 1, publisher: 2, sequence: number };
    publisher.publish(0, KIND, b"ours").unwrap();
    // The second message is a duplicate, and two are missing before the third one.
    for (stamp, number) in [(1, 40), (1, 40), (2, 43)] {
        publisher.publish_with_id(origin(number), stamp, KIND, b"carried").unwrap();
    }
    publisher.publish(3, KIND, b"ours").unwrap();
    let (mut received, mut ours) = (Vec::new(), Vec::new());
    until(|| {
        let polled = subscriber.poll(8, &mut |event| match event {
            SubscriptionEvent::Message(message) if message.payload == b"ours" => ours.extend(message.id),
            SubscriptionEvent::Message(message) => received.push((message.stamp, message.id, None)),
            SubscriptionEvent::Gap(gap) => received.push((0, None, Some(gap))),
            other => panic!("{other:?}"),
        });
        polled.expect("the subscriber goes on");
        ours.len() == 2
    });
    let missed = (0, None, Some(Gap::Missed(2)));
    assert_eq!(received, [(1, Some(origin(40)), None), missed, (2, Some(origin(43)), None)]);
    assert_eq!((ours[0].sequence, ours[1].sequence), (0, 1));
    assert_eq!(ours[0].publisher, ours[1].publisher);
}

#[test]
fn a_token_resumes_at_new_messages_and_reports_deleted_ones() {
    let topic = ScratchName::topic("resumed");
    topic.publish(0..5);
    let mut first = topic.subscriber(StartPosition::Oldest);
    for stamp in 0..3 {
        assert_eq!(next_event(&mut *first), OwnedEvent::at(stamp, stamp, b"ours"));
    }
    let token = first.resume_token().expect("it stands somewhere");
    drop(first);
    topic.publish(5..7);
    let mut second = topic.subscriber(StartPosition::After(token));
    assert_eq!(second.resume_token(), Some(token), "nothing was handed over yet");
    for stamp in 3..7 {
        assert_eq!(next_event(&mut *second), OwnedEvent::at(stamp, stamp, b"ours"));
    }
    check_no_event(&mut *second);
    let end = second.resume_token().expect("it stands at the end");
    check_no_event(&mut *topic.subscriber(StartPosition::After(end)));

    topic.forget(5);
    let mut late = topic.subscriber(StartPosition::After(token));
    assert_eq!(late.resume_token(), Some(token), "a gap that is not told yet is told to who goes on");
    assert_eq!(next_event(&mut *late), OwnedEvent::Gap(Gap::Missed(2)));
    assert_eq!(next_event(&mut *late), OwnedEvent::at(5, 5, b"ours"));

    drop((second, late));
    topic.bus.remove_topic(&topic.name).unwrap();
    // The topic has grown beyond the offset.
    topic.publish(10..20);
    for token in [token, end] {
        let mut anew = topic.subscriber(StartPosition::After(token));
        assert_eq!(next_event(&mut *anew), OwnedEvent::Gap(Gap::Reconnected));
        for (sequence, stamp) in (0..).zip(10..20) {
            assert_eq!(next_event(&mut *anew), OwnedEvent::at(sequence, stamp, b"ours"));
        }
    }
}

#[test]
fn only_a_subscriber_counts_reconnects() {
    let (topic, queue) = (ScratchName::topic("again"), ScratchName::queue("again"));
    let publisher = topic.bus.publisher(&topic.name, &TopicConfig::new(Policy::Keep)).unwrap_or_else(|e| panic!("{e}"));
    let pusher = queue.bus.pusher(&queue.name, &QueueConfig::new(DeliveryGuarantee::AtLeastOnce));
    let pusher = pusher.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((publisher.reconnects(), topic.subscriber(StartPosition::Now).reconnects()), (None, Some(0)));
    assert_eq!((pusher.reconnects(), queue.puller().reconnects()), (None, None));
}

#[test]
fn a_topic_of_several_partitions_is_refused() {
    let topic = ScratchName::topic("several");
    let admin = admin();
    let new = NewTopic::new(&topic.name, 3, TopicReplication::Fixed(1));
    drop(admin.create_topics([&new], &AdminOptions::new()));
    let lookup: BaseConsumer = client().create().unwrap();
    until(|| {
        let metadata = lookup.fetch_metadata(Some(&topic.name), PATIENCE).unwrap();
        metadata.topics().iter().any(|found| found.error().is_none() && found.partitions().len() == 3)
    });
    let publisher = topic.bus.publisher(&topic.name, &TopicConfig::new(Policy::Keep)).err();
    let subscriber = topic.bus.subscriber(&topic.name, StartPosition::Now, Wait::Yield).err();
    for refusal in [publisher, subscriber] {
        let sentence = refusal.expect("refused").to_string();
        assert!(sentence.contains("3 partitions") && sentence.contains("use a topic of one"), "{sentence}");
    }
}

#[test]
fn a_topic_with_other_retention_is_refused_unless_it_is_empty() {
    let overwrite = TopicConfig::new(Policy::Overwrite);
    let refusal = |topic: &ScratchName, config: &TopicConfig| {
        topic.bus.publisher(&topic.name, config).err().expect("refused").to_string()
    };
    let kept = ScratchName::topic("kept");
    kept.publish(0..1);
    let sentence = refusal(&kept, &overwrite);
    assert!(sentence.contains("everything, not the newest 1048576 bytes"), "{sentence}");
    assert!(sentence.contains("use another name"), "{sentence}");

    let early = ScratchName::topic("early");
    early.subscriber(StartPosition::Now);
    early.bus.publisher(&early.name, &overwrite).unwrap_or_else(|e| panic!("it is empty: {e}"));
    let sentence = refusal(&early, &TopicConfig::new(Policy::Keep));
    assert!(sentence.contains("the newest 1048576 bytes, not everything"), "{sentence}");
    let other = early.bus.publisher(&early.name, &TopicConfig { capacity_bytes: 2 << 20, ..overwrite });
    other.unwrap_or_else(|e| panic!("it lets old messages go, as it is: {e}"));

    let decided = ScratchName::topic("decided");
    decided.subscriber(StartPosition::Now);
    drop(decided.publisher());
    let sentence = refusal(&decided, &overwrite);
    assert!(sentence.contains("everything, not the newest 1048576 bytes"), "{sentence}");

    let others = ScratchName::topic("week");
    let new = NewTopic::new(&others.name, 1, TopicReplication::Fixed(1)).set("retention.ms", "604800000");
    let admin = admin();
    drop(admin.create_topics([&new], &AdminOptions::new()));
    let lookup: BaseConsumer = client().create().unwrap();
    until(|| lookup.fetch_watermarks(&others.name, 0, PATIENCE).is_ok());
    let sentence = refusal(&others, &TopicConfig::new(Policy::Keep));
    assert!(sentence.contains("the last 604800000 ms, not everything"), "{sentence}");
    others.bus.publisher(&others.name, &overwrite).unwrap_or_else(|e| panic!("as it is: {e}"));
    check_no_event(&mut *others.subscriber(StartPosition::Oldest));
}

#[test]
fn a_publisher_keeps_the_other_settings_of_a_topic() {
    let topic = ScratchName::topic("set");
    let retention_ms = i64::MAX.to_string();
    let settings = [("retention.ms", retention_ms.as_str()), ("retention.bytes", "-1"), ("flush.messages", "7")];
    let mut new = NewTopic::new(&topic.name, 1, TopicReplication::Fixed(1));
    for (key, value) in settings {
        new = new.set(key, value);
    }
    let admin = admin();
    drop(admin.create_topics([&new], &AdminOptions::new()));
    let lookup: BaseConsumer = client().create().unwrap();
    until(|| lookup.fetch_watermarks(&topic.name, 0, PATIENCE).is_ok());
    let opened = topic.bus.publisher(&topic.name, &TopicConfig::new(Policy::Overwrite));
    drop(opened.unwrap_or_else(|e| panic!("it is undecided: {e}")));
    let specifier = ResourceSpecifier::Topic(&topic.name);
    let described = settled(admin.describe_configs([&specifier], &AdminOptions::new())).unwrap();
    let found = described.into_iter().next().unwrap().unwrap();
    let setting = |name: &str| found.get(name).and_then(|entry| entry.value.as_deref());
    for (name, value) in [("flush.messages", "7"), ("retention.ms", "-1"), ("retention.bytes", "1048576")] {
        assert_eq!(setting(name), Some(value), "{name}");
    }
}

#[test]
fn names_that_kafka_confuses_or_reserves_are_refused() {
    let (point, line) = (ScratchName::topic("alike.a"), ScratchName::topic("alike_a"));
    point.subscriber(StartPosition::Now);
    let alike = line.bus.subscriber(&line.name, StartPosition::Now, Wait::Yield).err().expect("refused").to_string();
    assert!(alike.contains("differ only in '.' and '_'"), "{alike}");
    let owned = line.bus.remove_topic("__consumer_offsets").expect_err("refused");
    assert!(matches!(owned, ConnectError::Name(_)), "{owned}");
}

#[test]
fn messages_held_by_a_dropped_puller_are_marked_exactly() {
    let queue = ScratchName::queue("marked");
    queue.push(0..30);
    let mut first = queue.puller();
    let done = pull_stamps(&mut *first, 5);
    first.acknowledge().unwrap();
    let held = pull_stamps(&mut *first, 7);
    assert!(done.iter().chain(&held).all(|(_, marked)| !marked), "marked without another puller");
    drop(first);
    let rest = pull_stamps(&mut *queue.puller(), 25);
    let mut marked: Vec<u64> = rest.iter().filter(|(_, marked)| *marked).map(|(number, _)| *number).collect();
    let mut held: Vec<u64> = held.iter().map(|(number, _)| *number).collect();
    marked.sort_unstable();
    held.sort_unstable();
    assert_eq!(marked, held);
}

#[test]
fn messages_moved_to_another_puller_are_reported_once() {
    let queue = ScratchName::queue("moved");
    queue.push(0..60);
    let mut first = queue.puller();
    let held = pull_stamps(&mut *first, 60);
    let mut second = queue.puller();
    let mut moved = Vec::new();
    until(|| {
        let none = first.pull(1, &mut |pulled| panic!("{pulled:?} comes again at who holds it"));
        none.expect("the first puller goes on");
        let some = second.pull(60, &mut |pulled| moved.push((pulled.message.stamp, pulled.redelivered)));
        some.expect("the second puller goes on");
        moved.len() == 30
    });
    let error = first.acknowledge().expect_err("half of it is another one's");
    assert!(matches!(&error, ReceiveError::NotAcknowledged(sentence) if sentence.contains("30 messages")), "{error}");
    first.acknowledge().expect("it is told once");
    assert!(moved.iter().all(|moved| moved.1 && held.contains(&(moved.0, false))), "{moved:?}");
    // Only the messages that the first puller still held are acknowledged.
    until(|| queue.bus.count_waiting(&queue.name).unwrap() == Some(30));
    second.acknowledge().unwrap();
    until(|| queue.bus.count_waiting(&queue.name).unwrap() == Some(0));
}

#[test]
fn foreign_messages_are_pulled_under_a_configured_kind() {
    let queue = ScratchName::queue("adopted");
    queue.push(0..1);
    let others: BaseProducer = client().create().unwrap();
    let server_name = format!(".{}-queue", queue.name);
    others.send(BaseRecord::<(), [u8]>::to(&server_name).partition(1).payload(b"hello")).map_err(|(e, _)| e).unwrap();
    others.flush(PATIENCE).unwrap();
    // Skipped messages stay in the queue, because nothing is acknowledged.
    assert_eq!(pull_stamps(&mut *queue.puller(), 1), [(0, false)]);
    let config = QueueConfig { foreign: Some(77), ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) };
    let mut puller = queue.bus.puller(&queue.name, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"));
    let mut received = Vec::new();
    until(|| {
        let pulled =
            puller.pull(8, &mut |pulled| received.push((pulled.message.kind, pulled.message.payload.to_vec())));
        pulled.expect("the puller goes on");
        received.len() == 2
    });
    received.sort();
    assert_eq!(received, [(KIND, b"ours".to_vec()), (77, b"hello".to_vec())]);
    puller.acknowledge().unwrap();
    assert_eq!(queue.bus.count_waiting(&queue.name).unwrap(), Some(0));
}

#[test]
fn acknowledged_messages_are_deleted_from_disk() {
    let queue = ScratchName::queue("freed");
    queue.push(0..60);
    let mut puller = queue.puller();
    pull_stamps(&mut *puller, 60);
    puller.acknowledge().unwrap();
    drop(puller);
    assert_eq!(queue.freed(), 60);
    assert_eq!(queue.bus.count_waiting(&queue.name).unwrap(), Some(0));
}

#[test]
fn a_leftover_puller_takes_nothing_of_a_recreated_queue() {
    let queue = ScratchName::queue("anew");
    queue.push(0..60);
    let mut puller = queue.puller();
    pull_stamps(&mut *puller, 60);
    puller.acknowledge().unwrap();
    queue.bus.remove_queue(&queue.name).unwrap_or_else(|e| panic!("{e}"));
    queue.push(100..220);
    drop(puller);
    assert_eq!((queue.freed(), queue.bus.count_waiting(&queue.name).unwrap()), (0, Some(120)));
    let mut received = pull_stamps(&mut *queue.puller(), 120);
    received.sort_unstable();
    assert_eq!(received, (100..220).map(|stamp| (stamp, false)).collect::<Vec<_>>());
}

#[test]
fn acknowledging_a_removed_queue_leaves_its_successor_alone() {
    let queue = ScratchName::queue("late");
    queue.push(0..60);
    let mut puller = queue.puller();
    pull_stamps(&mut *puller, 60);
    queue.bus.remove_queue(&queue.name).unwrap_or_else(|e| panic!("{e}"));
    queue.push(100..220);
    let error = puller.acknowledge().expect_err("the queue is another one");
    assert!(matches!(&error, ReceiveError::MessagesLost(sentence) if sentence.contains("was removed")), "{error}");
    assert_eq!(queue.bus.count_waiting(&queue.name).unwrap(), Some(120));
    // The puller resumes with the new topic.
    let mut received = Vec::new();
    until(|| {
        puller.wait(1_000_000);
        match puller.pull(64, &mut |pulled| received.push(pulled.message.stamp)) {
            Ok(_) | Err(ReceiveError::MessagesLost(_)) => {}
            Err(other) => panic!("{other}"),
        }
        received.len() >= 120
    });
    received.sort_unstable();
    assert_eq!(received, (100..220).collect::<Vec<_>>());
    puller.acknowledge().unwrap();
    assert_eq!(queue.bus.count_waiting(&queue.name).unwrap(), Some(0));
}

#[test]
fn a_silence_limit_that_the_server_forbids_is_reported() {
    let queue = ScratchName::queue("silence");
    let config = QueueConfig { silence_ns: 100_000_000, ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) };
    let mut puller = queue.bus.puller(&queue.name, &config, Wait::Yield).unwrap_or_else(|e| panic!("{e}"));
    let mut sentence = String::new();
    until(|| {
        let pulled = puller.pull(1, &mut |pulled| panic!("{pulled:?} in an empty queue"));
        sentence = pulled.err().map(|e| e.to_string()).unwrap_or_default();
        !sentence.is_empty()
    });
    assert!(sentence.contains("100 ms") && sentence.contains("group.min.session.timeout.ms"), "{sentence}");
    let endless = QueueConfig { silence_ns: u64::MAX, ..config };
    let refusal = queue.bus.puller(&queue.name, &endless, Wait::Yield).err().expect("refused");
    assert!(matches!(refusal, ConnectError::Unsupported { .. }), "{refusal}");
}

#[test]
fn a_refused_connection_is_reported() {
    check(&format!("kafka://127.0.0.1:{}", free_port()), &["refused the connection", "start Kafka"]);
    // A label of 64 characters is invalid, so no resolver asks the network.
    check(&format!("kafka://{}.invalid:9092", "x".repeat(64)), &["cannot be resolved", "check the host"]);
}

#[test]
fn another_kind_of_server_is_reported() {
    type Answer = fn(TcpStream);
    let cases: [(Answer, &[&str]); 4] = [
        (|stream| answer(stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"), &["not as Kafka does", "check the port"]),
        (|stream| answer(stream, b"+OK POP3 ready\r\n"), &["not as Kafka does", "check the port"]),
        (drop, &["connection", "try again"]),
        (hold, &["did not answer", "check host"]),
    ];
    for (behave, words) in cases {
        let impostor = Impostor::start(behave);
        // With the second URL the client library may give up before the call does.
        for options in ["", "?silence=3"] {
            check(&format!("kafka://{}{options}", impostor.address), words);
        }
    }
}

/// Checks that connecting fails, with an error that contains these words.
fn check(url: &str, words: &[&str]) {
    let error = KafkaBus::connect(url).err().unwrap_or_else(|| panic!("{url} is connected to")).to_string();
    for word in words {
        assert!(error.contains(word), "'{word}' is not in: {error}");
    }
    let server = url.split('?').next().unwrap_or_default();
    assert!(error.starts_with(server), "{error}");
}

/// Sends one response, then waits until the peer has closed the connection.
fn answer(mut stream: TcpStream, bytes: &[u8]) {
    let mut question = [0; 64];
    let _ = stream.read(&mut question);
    let _ = stream.write_all(bytes);
    hold(stream);
}

/// Reads until the peer has closed the connection, and sends nothing.
fn hold(mut stream: TcpStream) {
    let mut bytes = [0; 64];
    while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
}

/// A server of another protocol, for any number of connections.
struct Impostor {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Impostor {
    fn start(behave: fn(TcpStream)) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let is_told = is_over.clone();
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if is_told.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::spawn(move || behave(stream));
            }
        });
        Self { address, is_over, accepting: Some(accepting) }
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the accept call, so that the thread sees the flag.
        let _woken = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// A topic or queue of one test, removed at its end. A queue's name on the server has a prefix and a suffix.
pub struct ScratchName {
    pub bus: KafkaBus,
    pub name: String,
    is_queue: bool,
}

impl ScratchName {
    pub fn topic(name: &str) -> Self {
        Self::open(name, false)
    }

    fn queue(name: &str) -> Self {
        Self::open(name, true)
    }

    fn open(name: &str, is_queue: bool) -> Self {
        let bus = KafkaBus::connect(&url()).unwrap_or_else(|e| panic!("{e}"));
        Self { bus, name: format!("tickpath.test.{}.{name}", std::process::id()), is_queue }
    }

    /// Publishes a message for each of these stamps.
    fn publish(&self, stamps: std::ops::Range<u64>) {
        let mut publisher = self.publisher();
        stamps.for_each(|stamp| publisher.publish(stamp, KIND, b"ours").unwrap());
    }

    fn publisher(&self) -> Box<dyn Publisher> {
        self.bus.publisher(&self.name, &TopicConfig::new(Policy::Keep)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Deletes the messages below this offset from the server.
    fn forget(&self, offset: i64) {
        let mut places = TopicPartitionList::new();
        places.add_partition_offset(&self.name, 0, Offset::Offset(offset)).unwrap();
        let admin = admin();
        drop(admin.delete_records(&places, &AdminOptions::new()));
        let lookup: BaseConsumer = client().create().unwrap();
        until(|| lookup.fetch_watermarks(&self.name, 0, PATIENCE).unwrap().0 == offset);
    }

    pub fn subscriber(&self, start: StartPosition) -> Box<dyn Subscriber> {
        self.bus.subscriber(&self.name, start, Wait::Block).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Pushes a message for each of these stamps.
    fn push(&self, stamps: std::ops::Range<u64>) {
        let opened = self.bus.pusher(&self.name, &QueueConfig::new(DeliveryGuarantee::AtLeastOnce));
        let mut pusher = opened.unwrap_or_else(|e| panic!("{e}"));
        stamps.for_each(|stamp| pusher.push(stamp, KIND, b"ours").unwrap());
    }

    /// Returns the number of a queue's messages that were deleted from the server.
    fn freed(&self) -> i64 {
        let lookup: BaseConsumer = client().create().unwrap();
        let server_name = format!(".{}-queue", self.name);
        let oldest = |partition| lookup.fetch_watermarks(&server_name, partition, PATIENCE).unwrap().0;
        (0..QUEUE_PARTITIONS).map(oldest).sum()
    }

    fn puller(&self) -> Box<dyn Puller> {
        let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
        self.bus.puller(&self.name, &config, Wait::Block).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl Drop for ScratchName {
    fn drop(&mut self) {
        let _ = if self.is_queue { self.bus.remove_queue(&self.name) } else { self.bus.remove_topic(&self.name) };
    }
}

/// Returns client settings of another program.
pub fn client() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", url().trim_start_matches("kafka://"));
    config
}

fn admin() -> AdminClient<DefaultClientContext> {
    client().create().unwrap()
}

/// Waits for the result of a request, which the client library's own thread completes.
fn settled<F: Future>(request: F) -> F::Output {
    let mut request = pin!(request);
    let mut context = Context::from_waker(Waker::noop());
    let mut output = None;
    until(|| match request.as_mut().poll(&mut context) {
        Poll::Ready(received) => {
            output = Some(received);
            true
        }
        Poll::Pending => false,
    });
    output.expect("it is finished")
}
