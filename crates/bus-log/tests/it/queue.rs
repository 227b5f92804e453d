//! Properties that only a queue on a log can show: its place, its size, and that it is no topic.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tempfile::TempDir;
use tickpath_bus_api::{
    ConnectError, Connection, DeliveryGuarantee, Policy, PublishError, Puller, Pusher, QueueConfig, StartPosition,
    SubscriptionEvent, TopicConfig,
};
use tickpath_bus_log::LogBus;
use tickpath_clock::Wait;

const KIND: u8 = 16;
const CONFIG: QueueConfig =
    QueueConfig { capacity_bytes: 64 << 10, ..QueueConfig::new(DeliveryGuarantee::AtLeastOnce) };

#[test]
fn a_queue_lies_where_its_url_says() {
    for (url, queue, dir) in [
        ("shm://", "orders", "/dev/shm/tickpath.orders.queue"),
        ("shm://lab", "orders", "/dev/shm/tickpath.lab.orders.queue"),
        ("file:///var/lib/x", "orders", "/var/lib/x/orders.queue"),
        ("file:///var/lib/x", "a.queue", "/var/lib/x/a.queue.queue"),
    ] {
        let place = LogBus::connect(url).unwrap().queue_path(queue).unwrap();
        assert_eq!(place.dir(), Path::new(dir), "{url}");
    }
}

#[test]
fn the_refusal_of_a_name_states_the_max_length() {
    let bus = LogBus::connect("shm://").unwrap();
    let refused = bus.queue_path(&"q".repeat(123)).expect_err("refused").to_string();
    assert!(refused.contains("is no queue name; use 1 to 122 letters"), "{refused}");
    assert!(bus.queue_path(&"q".repeat(122)).is_ok());
}

#[test]
fn a_topic_with_the_name_of_a_queue_log_is_refused() {
    let place = QueueFolder::new();
    let refusals = [
        place.bus.publisher("orders.queue", &TopicConfig::new(Policy::Fail)).err(),
        place.bus.subscriber("orders.queue", StartPosition::Now, Wait::Yield).err(),
        place.bus.remove_topic("orders.queue").err(),
    ];
    for refusal in refusals {
        let refusal = refusal.expect("refused");
        assert!(matches!(refusal, ConnectError::Name(_)), "{refusal}");
        assert!(refusal.to_string().contains("is the log of the queue 'orders'"), "{refusal}");
    }
}

#[test]
fn a_topic_and_a_queue_of_one_name_are_separate() {
    let place = QueueFolder::new();
    let mut pusher = place.pusher();
    let mut publisher = place.bus.publisher("orders", &TopicConfig::new(Policy::Overwrite)).unwrap();
    let mut subscriber = place.bus.subscriber("orders", StartPosition::Oldest, Wait::Yield).unwrap();
    pusher.push(1, KIND, b"pushed").unwrap();
    publisher.publish(2, KIND, b"published").unwrap();
    assert_eq!(pull(&mut *place.puller(), 10), [(1, false)]);
    let mut stamps = Vec::new();
    let mut hear = |event: SubscriptionEvent<'_>| match event {
        SubscriptionEvent::Message(message) => stamps.push(message.stamp),
        other => panic!("nobody is lapped or foreign here, and yet there is: {other:?}"),
    };
    subscriber.poll(10, &mut hear).unwrap();
    assert_eq!(stamps, [2]);
    let reconnects =
        [publisher.reconnects(), subscriber.reconnects(), pusher.reconnects(), place.puller().reconnects()];
    assert_eq!(reconnects, [Some(0); 4], "there is no connection");
    drop((pusher, publisher));
    place.bus.remove_topic("orders").unwrap();
    assert_eq!(
        place.bus.count_waiting("orders").unwrap(),
        Some(1),
        "the queue is there still, and its puller has gone"
    );
    place.bus.remove_queue("orders").unwrap();
    assert_eq!(place.bus.count_waiting("orders").unwrap(), Some(0));
}

/// With and without a puller, messages stay until they are acknowledged, and a full queue refuses further ones.
#[test]
fn a_push_to_a_full_queue_fails_and_loses_nothing() {
    let place = QueueFolder::new();
    let mut pusher = place.pusher();
    let mut puller = None;
    let mut next = 0;
    for _ in 0..5 {
        let first = next;
        while pusher.push(next, KIND, &[7; 100]).is_ok() {
            next += 1;
            assert!(next - first < 1000, "64 KiB do not hold a thousand messages of 128 bytes");
        }
        let refused = pusher.push(next, KIND, &[7; 100]).unwrap_err();
        assert!(matches!(refused, PublishError::Full), "{refused}");
        let batch: [&[u8]; 2] = [&[7; 100], &[7; 100]];
        let refused = pusher.push_batch(next, KIND, &batch).unwrap_err();
        assert!(refused.done == 0 && matches!(refused.error, PublishError::Full), "{refused}");
        assert!(next - first > 400, "{} messages fill a queue of 64 KiB", next - first);
        assert_eq!(place.bus.count_waiting("orders").unwrap(), Some(next - first));
        let puller = puller.get_or_insert_with(|| place.puller());
        let expected: Vec<_> = (first..next).map(|stamp| (stamp, false)).collect();
        assert_eq!(pull(&mut **puller, usize::MAX), expected);
        puller.acknowledge().unwrap();
        assert_eq!(place.bus.count_waiting("orders").unwrap(), Some(0));
    }
}

/// A byte that has changed on the disk: the damaged message is reported once, by its number, and the others arrive.
#[test]
fn a_damaged_message_holds_up_no_other() {
    let place = QueueFolder::new();
    let mut pusher = place.pusher();
    for stamp in 0..5 {
        pusher.push(stamp, KIND, &[7; 100]).unwrap();
    }
    let data = place.bus.queue_path("orders").unwrap().dir().join("data");
    // A byte of message 2, in a segment with frames of 128 bytes.
    File::options().write(true).open(data).unwrap().write_all_at(&[8], 4096 + 128 + 2 * 128 + 50).unwrap();
    let mut puller = place.puller();
    let mut told = Vec::new();
    let mut came = Vec::new();
    for _ in 0..10 {
        match puller.pull(10, &mut |it| came.push(it.message.stamp)) {
            Ok(_) => puller.acknowledge().unwrap(),
            Err(e) => told.push(e.to_string()),
        }
    }
    assert_eq!(came, [0, 1, 3, 4]);
    assert!(told.len() == 1 && told[0].contains("message 2 of the queue is damaged"), "{told:?}");
    assert_eq!(place.bus.count_waiting("orders").unwrap(), Some(0));
}

#[test]
fn another_capacity_is_refused() {
    let place = QueueFolder::new();
    drop(place.pusher());
    let other = QueueConfig { capacity_bytes: 128 << 10, ..CONFIG };
    let refused = place.bus.pusher("orders", &other).err().expect("it exists with another capacity").to_string();
    assert!(refused.contains("exists with policy fail, 8 segments of 8192 bytes"), "{refused}");
    assert!(refused.contains("use the same, or remove it first"), "{refused}");
}

/// A folder with at most one queue, and a topic beside it.
struct QueueFolder {
    bus: LogBus,
    _dir: TempDir,
}

impl QueueFolder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bus = LogBus::connect(&format!("file://{}", dir.path().display())).unwrap();
        Self { bus, _dir: dir }
    }

    fn pusher(&self) -> Box<dyn Pusher> {
        self.bus.pusher("orders", &CONFIG).unwrap_or_else(|e| panic!("{e}"))
    }

    fn puller(&self) -> Box<dyn Puller> {
        self.bus.puller("orders", &CONFIG, Wait::Yield).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// Pulls up to `limit` messages; returns each one's stamp and redelivery mark.
fn pull(puller: &mut dyn Puller, limit: usize) -> Vec<(u64, bool)> {
    let mut pulled = Vec::new();
    puller.pull(limit, &mut |it| pulled.push((it.message.stamp, it.redelivered))).unwrap();
    pulled
}
