//! Topics and queues whose files are removed while they are used.

use std::fs;
use std::path::PathBuf;

use tickpath_bus_api::{
    Connection, DeliveryGuarantee, Gap, Policy, PublishError, Publisher, QueueConfig, StartPosition, Subscriber,
    SubscriptionEvent, TopicConfig,
};
use tickpath_bus_log::LogBus;
use tickpath_clock::{Clock, HostClock, Wait};

const TOPIC: &str = "ticks";
const KIND: u8 = 16;

/// Time limit for an event that should happen within two seconds, in nanoseconds.
const TIMEOUT_NS: u64 = 20_000_000_000;

/// A way to remove a topic.
type Remove = fn(&Scene);

const WAYS: [(&str, Remove); 5] = [
    ("the folder", |scene| fs::remove_dir_all(scene.folder()).expect("it is there")),
    ("the data file", |scene| fs::remove_file(scene.folder().join("data")).expect("it is there")),
    ("the publisher's lock", |scene| fs::remove_file(scene.folder().join("writer.lock")).expect("it is there")),
    ("the control file", |scene| fs::remove_file(scene.folder().join("control")).expect("it is there")),
    ("the name", |scene| fs::rename(scene.folder(), scene.aside()).expect("it is there")),
];

#[test]
fn nothing_of_a_topic_is_lost_with_its_files() {
    for (what, remove) in WAYS {
        // The cases run in parallel, since each waits for a second to pass.
        std::thread::scope(|scope| {
            for policy in Policy::ALL {
                for wait in [Wait::Block, Wait::Yield] {
                    scope.spawn(move || nothing_is_lost(policy, what, remove, wait));
                }
            }
        });
    }
}

fn nothing_is_lost(policy: Policy, what: &str, remove: Remove, wait: Wait) {
    let scene = Scene::new();
    let mut publisher = scene.publisher(policy);
    let mut subscriber = scene.bus.subscriber(TOPIC, StartPosition::Oldest, wait).expect("it is there");
    let mut sent = PublishedCount::default();
    (0..100).for_each(|_| sent.publish(&mut *publisher).expect("there is room"));
    remove(&scene);
    let (mut heard, deadline) = (ArrivedStamps::default(), Deadline::new());
    while publisher.reconnects() != Some(1) || subscriber.reconnects() != Some(1) || heard.stamps.len() < sent.count {
        let why =
            format!("{policy}, {what}, {wait}: {sent:?}, {} heard, {:?}", heard.stamps.len(), subscriber.outage());
        deadline.check(&why);
        match sent.publish(&mut *publisher) {
            // A topic with policy `fail` may refuse: its subscriber has not opened the new files yet, or lags behind.
            Ok(()) | Err(PublishError::NoSubscriber | PublishError::Full) => {}
            Err(e) => panic!("{policy}, {what}: {e}"),
        }
        heard.wait(&mut *subscriber);
    }
    assert_eq!(heard.gaps, [], "{policy}, {what}, {wait}");
    assert_eq!(heard.stamps, (0..sent.count as u64).collect::<Vec<_>>(), "{policy}, {what}, {wait}");
    assert_eq!(subscriber.outage(), None);
    // A new subscriber finds the recreated topic.
    let mut late = scene.bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Yield).expect("it is there");
    sent.publish(&mut *publisher).expect("it is read");
    let (mut heard, deadline) = (ArrivedStamps::default(), Deadline::new());
    while heard.stamps.last() != Some(&(sent.count as u64 - 1)) {
        deadline.check("a subscriber that came late");
        heard.wait(&mut *late);
    }
    let again = scene.bus.publisher(TOPIC, &TopicConfig::new(policy)).err().expect("a topic has one publisher");
    assert!(again.to_string().contains("already has a writer"), "{again}");
}

#[test]
fn a_publisher_is_refused_when_another_recreated_its_topic() {
    let scene = Scene::new();
    let mut first = scene.publisher(Policy::Overwrite);
    let mut sent = PublishedCount::default();
    sent.publish(&mut *first).expect("it is ours");
    fs::remove_dir_all(scene.folder()).expect("it is there");
    let second = scene.publisher(Policy::Overwrite);
    let deadline = Deadline::new();
    let refused = loop {
        deadline.check("the first publisher");
        match sent.publish(&mut *first) {
            Ok(()) => {}
            Err(refused) => break refused.to_string(),
        }
    };
    for part in ["were removed while they were in use", "RemoveIPC", "cannot make them anew", "already has a writer"] {
        assert!(refused.contains(part), "{part} in: {refused}");
    }
    assert!(sent.publish(&mut *first).is_err(), "nothing goes where nobody finds it");
    drop(second);
    while sent.publish(&mut *first).is_err() {
        deadline.check("the first publisher again");
    }
}

#[test]
fn a_subscriber_reports_a_removed_topic_and_continues_in_the_next() {
    for wait in [Wait::Block, Wait::Busy] {
        let scene = Scene::new();
        let mut publisher = scene.publisher(Policy::Overwrite);
        let mut subscriber = scene.bus.subscriber(TOPIC, StartPosition::Now, wait).expect("it is there");
        let mut sent = PublishedCount::default();
        (0..3).for_each(|_| sent.publish(&mut *publisher).expect("it is ours"));
        drop(publisher);
        fs::remove_dir_all(scene.folder()).expect("it is there");
        let (mut heard, deadline) = (ArrivedStamps::default(), Deadline::new());
        while subscriber.outage().is_none() {
            deadline.check("the outage");
            heard.wait(&mut *subscriber);
        }
        let outage = subscriber.outage().expect("just now");
        assert!(outage.contains("were removed while they were in use"), "{outage}");
        let mut other = scene.publisher(Policy::Overwrite);
        sent.publish(&mut *other).expect("it is ours");
        while heard.stamps.len() < 4 {
            deadline.check("the message of another publisher");
            heard.wait(&mut *subscriber);
        }
        assert_eq!((heard.stamps, heard.gaps), (vec![0, 1, 2, 3], vec![Gap::Reconnected]));
        assert_eq!((subscriber.outage(), subscriber.reconnects()), (None, Some(1)));
    }
}

#[test]
fn a_queue_continues_after_its_files_were_removed() {
    let scene = Scene::new();
    let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    let mut pusher = scene.bus.pusher(TOPIC, &config).expect("it is ours");
    let mut puller = scene.bus.puller(TOPIC, &config, Wait::Block).expect("it is there");
    let (mut pushed, mut pulled) = (0_u64, Vec::new());
    let deadline = Deadline::new();
    let mut is_gone = false;
    while pusher.reconnects() != Some(1) || puller.reconnects() != Some(1) || (pulled.len() as u64) < pushed {
        deadline.check(&format!("{pushed} pushed, {} pulled, {:?}", pulled.len(), puller.outage()));
        match pusher.push(pushed, KIND, b"an order") {
            Ok(()) => pushed += 1,
            // Pushing is refused until the messages of the old queue are finished.
            Err(e) => assert!(e.is_transient() && e.to_string().contains("to finish them"), "{e}"),
        }
        if pushed == 50 && !is_gone {
            fs::remove_dir_all(format!("/dev/shm/tickpath.{}.{TOPIC}.queue", scene.prefix)).expect("it is there");
            is_gone = true;
        }
        puller.wait(1_000_000);
        let told = puller.pull(10, &mut |got| pulled.push((got.message.stamp, got.redelivered))).expect("pulled");
        if told > 0 {
            puller.acknowledge().expect("acknowledged");
        }
    }
    let expected: Vec<_> = (0..pushed).map(|number| (number, false)).collect();
    assert_eq!(pulled, expected);
    assert_eq!(puller.outage(), None);
}

/// Messages in unlinked files can never be pulled: the pusher reports their number instead of forgetting them.
#[test]
fn a_push_is_refused_while_removed_files_hold_messages() {
    let scene = Scene::new();
    let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    let mut pusher = scene.bus.pusher(TOPIC, &config).expect("it is ours");
    (0..7).for_each(|stamp| pusher.push(stamp, KIND, b"an order").expect("there is room"));
    fs::remove_dir_all(format!("/dev/shm/tickpath.{}.{TOPIC}.queue", scene.prefix)).expect("it is there");
    let deadline = Deadline::new();
    let mut pushed = 7;
    let refused = loop {
        deadline.check("a refusal");
        match pusher.push(pushed, KIND, b"an order") {
            Ok(()) => pushed += 1,
            Err(e) => break e.to_string(),
        }
        tickpath_clock::sleep_ns(1_000_000);
    };
    assert!(refused.contains(&format!("{pushed} messages wait there")), "{refused}");
    assert!(refused.contains("Open another pusher"), "{refused}");
    drop(pusher);
    scene.bus.pusher(TOPIC, &config).expect("it is made anew").push(0, KIND, b"an order").expect("there is room");
    assert_eq!(scene.bus.count_waiting(TOPIC).expect("it is there"), Some(1));
}

/// A puller moves to the new queue once it has acknowledged the messages that it holds of the old queue.
#[test]
fn held_messages_are_acknowledged_in_their_own_queue() {
    let scene = Scene::new();
    let config = QueueConfig::new(DeliveryGuarantee::AtLeastOnce);
    let mut pusher = scene.bus.pusher(TOPIC, &config).expect("it is ours");
    let mut puller = scene.bus.puller(TOPIC, &config, Wait::Yield).expect("it is there");
    pusher.push(0, KIND, b"held").expect("there is room");
    assert_eq!(puller.pull(8, &mut |_| {}).expect("pulled"), 1);
    fs::remove_dir_all(format!("/dev/shm/tickpath.{}.{TOPIC}.queue", scene.prefix)).expect("it is there");
    let deadline = Deadline::new();
    while puller.outage().is_none() {
        deadline.check("the outage");
        assert_eq!(puller.pull(8, &mut |_| {}).expect("pulled"), 0);
    }
    let mut pushed = 0;
    while pusher.push(1, KIND, b"an order").is_ok() {
        deadline.check("a refusal");
        pushed += 1;
        tickpath_clock::sleep_ns(1_000_000);
    }
    let mut stamps = Vec::new();
    while !stamps.contains(&2) {
        deadline.check("the new queue");
        puller.acknowledge().expect("it holds them");
        if pusher.reconnects() == Some(0) {
            let _ = pusher.push(2, KIND, b"first of the new one");
        }
        puller.pull(8, &mut |pulled| stamps.push(pulled.message.stamp)).expect("pulled");
    }
    assert_eq!(stamps.iter().filter(|&&stamp| stamp == 1).count(), pushed, "all of the old one came");
    assert_eq!((puller.outage(), puller.reconnects()), (None, Some(1)));
}

/// A publisher that was fast and then publishes rarely notices the removal of its files with one of the next messages.
#[test]
fn a_rare_publisher_checks_its_name_with_each_message() {
    let scene = Scene::new();
    let clock = HostClock::get().expect("the host has a clock");
    let mut publisher = scene.publisher(Policy::Overwrite);
    (0..100_000).for_each(|_| publisher.publish(clock.ticks(), KIND, b"a tick").expect("it overwrites"));
    fs::remove_dir_all(scene.folder()).expect("it is there");
    tickpath_clock::sleep_ns(1_100_000_000);
    publisher.publish(clock.ticks(), KIND, b"a tick").expect("it is made anew");
    assert_eq!(publisher.reconnects(), Some(1));
    // The sequence numbers continue.
    let mut late = scene.bus.subscriber(TOPIC, StartPosition::Oldest, Wait::Yield).expect("it is there");
    let mut sequences = Vec::new();
    let mut hear = |event: SubscriptionEvent<'_>| match event {
        SubscriptionEvent::Message(message) => sequences.push(message.sequence),
        other => panic!("nothing was missed: {other:?}"),
    };
    late.poll(8, &mut hear).expect("polled");
    assert_eq!(sequences, [Some(100_000)]);
}

/// A subscriber waiting for a removed topic that is recreated with the next sequence number has missed nothing.
#[test]
fn a_subscriber_of_removed_files_misses_nothing() {
    let scene = Scene::new();
    let mut publisher = scene.publisher(Policy::Overwrite);
    let mut sent = PublishedCount::default();
    (0..100).for_each(|_| sent.publish(&mut *publisher).expect("it is ours"));
    fs::remove_dir_all(scene.folder()).expect("it is there");
    let mut subscriber = scene.bus.subscriber(TOPIC, StartPosition::Now, Wait::Yield).expect("it need not be there");
    let (mut heard, deadline) = (ArrivedStamps::default(), Deadline::new());
    while heard.stamps.is_empty() {
        deadline.check("the new topic");
        sent.publish(&mut *publisher).expect("it is ours");
        heard.wait(&mut *subscriber);
    }
    assert_eq!((heard.gaps, publisher.reconnects()), (vec![], Some(1)));
}

/// A bus in shared memory with a unique name.
struct Scene {
    bus: LogBus,
    prefix: String,
}

impl Scene {
    fn new() -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static MADE: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("removed-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let bus = LogBus::connect(&format!("shm://{prefix}")).expect("the name is good");
        Self { bus, prefix }
    }

    fn folder(&self) -> PathBuf {
        PathBuf::from(format!("/dev/shm/tickpath.{}.{TOPIC}", self.prefix))
    }

    fn aside(&self) -> PathBuf {
        PathBuf::from(format!("/dev/shm/aside.{}.{TOPIC}", self.prefix))
    }

    fn publisher(&self, policy: Policy) -> Box<dyn Publisher> {
        self.bus.publisher(TOPIC, &TopicConfig::new(policy)).expect("nobody else publishes")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.bus.remove_topic(TOPIC);
        let _ = self.bus.remove_queue(TOPIC);
        let _ = fs::remove_dir_all(self.aside());
        let _ = fs::remove_dir_all(self.folder());
    }
}

/// The number of messages published so far, which is the next message's stamp.
#[derive(Debug, Default)]
struct PublishedCount {
    count: usize,
}

impl PublishedCount {
    fn publish(&mut self, publisher: &mut dyn Publisher) -> Result<(), PublishError> {
        publisher.publish(self.count as u64, KIND, b"a tick")?;
        self.count += 1;
        Ok(())
    }
}

#[derive(Default)]
struct ArrivedStamps {
    stamps: Vec<u64>,
    gaps: Vec<Gap>,
}

impl ArrivedStamps {
    fn wait(&mut self, subscriber: &mut dyn Subscriber) {
        subscriber.wait(1_000_000);
        let mut hear = |event: SubscriptionEvent<'_>| match event {
            SubscriptionEvent::Message(message) => self.stamps.push(message.stamp),
            SubscriptionEvent::Gap(gap) => self.gaps.push(gap),
            other => panic!("nothing is foreign here, and yet there is: {other:?}"),
        };
        subscriber.poll(1000, &mut hear).expect("polled");
    }
}

struct Deadline {
    clock: HostClock,
    start: u64,
}

impl Deadline {
    fn new() -> Self {
        let clock = HostClock::get().expect("the host has a clock");
        Self { clock, start: clock.ticks() }
    }

    fn check(&self, what: &str) {
        let waited = self.clock.calibration().ns_between(self.start, self.clock.ticks()) as u64;
        assert!(waited < TIMEOUT_NS, "nothing within 20 s: {what}");
    }
}
