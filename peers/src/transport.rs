//! The transport of all peers in Rust: a URL names the peer and the shape of its topics. Peers have topics alone; this
//! transport refuses queues.

use tickpath_bus::{
    Capabilities, ConnectError, Connection, Publisher, Puller, Pusher, QueueCapabilities, QueueConfig, StartPosition,
    Subscriber, TopicConfig, Transport,
};
use tickpath_clock::Wait;

use crate::peer::{Peer, TopicShape};
use crate::{iceoryx2, ringfire, rtrb, zeromq};

/// All peers in Rust, one line each. A new peer adds its file and its entry here.
static PEERS: [Peer; 4] = [rtrb::PEER, ringfire::PEER, iceoryx2::PEER, zeromq::PEER];

/// The transports that this program adds to those of the bus.
pub const TRANSPORTS: &[Transport] = &[Transport {
    name: "peer",
    schemes: &["rtrb", "ringfire", "iceoryx2", "zeromq"],
    url_syntax: "",
    modes: &[""],
    port: None,
    connect,
    advise: |_description| Vec::new(),
}];

fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    let (name, rest) = url.split_once("://").unwrap_or_default();
    let peer = PEERS.iter().find(|peer| peer.name == name);
    let wrong = || ConnectError::Url(format!("'{url}' names no peer; use NAME://SIZE/READERS/POLICY"));
    let (peer, shape) = peer.zip(TopicShape::parse(rest)).ok_or_else(wrong)?;
    Ok(Box::new(PeerConnection { peer, shape }))
}

/// Connection to a peer's topics of one shape.
struct PeerConnection {
    peer: &'static Peer,
    shape: TopicShape,
}

impl PeerConnection {
    fn refuse_queue<T>(&self) -> Result<T, ConnectError> {
        let what = "have queues".to_owned();
        Err(ConnectError::Unsupported { transport: self.peer.name, what, remedy: "use a topic" })
    }
}

impl Connection for PeerConnection {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sequences: false,
            history: false,
            max_age: false,
            single_publisher: true,
            publisher_liveness: false,
            whole_batches: false,
            policies: self.peer.policies,
            lends: &[],
            max_payload: self.shape.size,
        }
    }

    fn publisher(&self, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
        (self.peer.publisher)(&self.shape, topic, config)
    }

    fn subscriber(&self, topic: &str, _start: StartPosition, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
        (self.peer.subscriber)(&self.shape, topic, wait)
    }

    fn remove_topic(&self, topic: &str) -> Result<(), ConnectError> {
        (self.peer.remove)(topic);
        Ok(())
    }

    fn queue_capabilities(&self) -> QueueCapabilities {
        QueueCapabilities {
            deliveries: &[],
            ordered: false,
            single_pusher: false,
            keeps_without_puller: false,
            detects_death: false,
            counts_waiting: false,
            exact_resend: false,
            counts_deliveries: false,
            gives_back: false,
            max_payload: 0,
        }
    }

    fn pusher(&self, _queue: &str, _config: &QueueConfig) -> Result<Box<dyn Pusher>, ConnectError> {
        self.refuse_queue()
    }

    fn puller(&self, _queue: &str, _config: &QueueConfig, _wait: Wait) -> Result<Box<dyn Puller>, ConnectError> {
        self.refuse_queue()
    }

    fn count_waiting(&self, _queue: &str) -> Result<Option<u64>, ConnectError> {
        self.refuse_queue()
    }

    fn remove_queue(&self, _queue: &str) -> Result<(), ConnectError> {
        self.refuse_queue()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tickpath_bus::conformance::wait_until;
    use tickpath_bus::{DeliveryGuarantee, Policy, PublishError, SubscriptionEvent};

    use super::*;
    use crate::slot::KIND;

    /// Stamp of every message.
    const STAMP: u64 = 1_234_567;

    /// A topic of which this process holds both ends.
    struct TestTopic {
        // Dropped before the publisher, which in ZeroMQ waits for messages that a connected subscriber has not read.
        subscriber: Box<dyn Subscriber>,
        publisher: Box<dyn Publisher>,
        connection: Box<dyn Connection>,
        name: String,
        size: usize,
    }

    impl TestTopic {
        /// Opens both ends of a new topic by its URL, as the measuring loop does.
        fn open(peer: &str, size: usize, policy: Policy, capacity_bytes: usize) -> Self {
            static OPENED: AtomicU64 = AtomicU64::new(0);
            tickpath_bus::add_transports(TRANSPORTS);
            let url = TopicShape { size, readers: 1, policy }.url(peer);
            let name = format!("peers-test-{}-{}", std::process::id(), OPENED.fetch_add(1, Ordering::Relaxed));
            let config = TopicConfig { capacity_bytes, ..TopicConfig::new(policy) };
            let connection = tickpath_bus::connect(&url).unwrap_or_else(|e| panic!("{url}: {e}"));
            let publisher = connection.publisher(&name, &config).unwrap_or_else(|e| panic!("{url}: {e}"));
            let subscriber = connection.subscriber(&name, StartPosition::Now, Wait::Block);
            let subscriber = subscriber.unwrap_or_else(|e| panic!("{url}: {e}"));
            Self { subscriber, publisher, connection, name, size }
        }

        fn publish(&mut self, number: u64) -> Result<(), PublishError> {
            self.publisher.publish(STAMP, KIND, &payload(self.size, number))
        }

        /// Returns the numbers of all available messages; `limit` is the max number per poll.
        fn poll(&mut self, limit: usize) -> Vec<u64> {
            let (size, mut numbers) = (self.size, Vec::new());
            let mut poll = || self.subscriber.poll(limit, &mut |event| numbers.push(number_of(event, size)));
            while poll().unwrap_or_else(|e| panic!("{e}")) > 0 {}
            numbers
        }
    }

    impl Drop for TestTopic {
        fn drop(&mut self) {
            // The test's own failure matters more.
            let _ = self.connection.remove_topic(&self.name);
        }
    }

    /// Returns the payload of a number: the number where the measuring loop writes it, and room for the stamp.
    fn payload(size: usize, number: u64) -> Vec<u8> {
        let mut payload = vec![7; size];
        payload[8..16].copy_from_slice(&number.to_le_bytes());
        payload[16..24].fill(0);
        payload
    }

    /// Returns the number of a message; panics if the message is not the one that was published.
    fn number_of(event: SubscriptionEvent<'_>, size: usize) -> u64 {
        let SubscriptionEvent::Message(message) = event else { panic!("not a message: {event:?}") };
        assert_eq!((message.stamp, message.kind, message.payload.len()), (STAMP, KIND, size));
        let number = u64::from_le_bytes(message.payload[8..16].try_into().expect("eight bytes"));
        let published = payload(size, number);
        // The stamp may lie between both parts.
        let is_whole = message.payload[..16] == published[..16] && message.payload[24..] == published[24..];
        assert!(is_whole, "message {number} is damaged");
        number
    }

    /// Publishes messages one by one and as a batch, and checks that each arrives once and in order: polled one by one,
    /// and many at once.
    fn check_round_trip(peer: &str, size: usize, policy: Policy) {
        for limit in [1, 64] {
            let mut topic = TestTopic::open(peer, size, policy, 1 << 20);
            // Message 0 is repeated until it arrives, because a publisher of ZeroMQ drops messages until it knows of
            // the subscription.
            wait_until(|| {
                match topic.publish(0) {
                    Ok(()) | Err(PublishError::Full) => {}
                    Err(error) => panic!("{peer}: {error}"),
                }
                !topic.poll(limit).is_empty()
            });
            for number in 1..=3 {
                topic.publish(number).unwrap_or_else(|e| panic!("{peer}: {e}"));
            }
            let batch = [4, 5, 6].map(|number| payload(size, number));
            let published = topic.publisher.publish_batch(STAMP, KIND, &batch.each_ref().map(Vec::as_slice));
            published.unwrap_or_else(|e| panic!("{peer}: {e}"));
            let mut numbers = Vec::new();
            wait_until(|| {
                numbers.extend(topic.poll(limit));
                numbers.last() == Some(&6)
            });
            numbers.retain(|number| *number != 0);
            assert_eq!(numbers, [1, 2, 3, 4, 5, 6], "{peer}, {size} B, {policy}, polled by {limit}");
        }
    }

    fn refusal<T>(result: Result<T, ConnectError>) -> String {
        result.err().expect("the call is refused").to_string()
    }

    #[test]
    fn rtrb_carries_messages_of_each_slot_size() {
        [32, 64, 256, 1_024, 16_384, 65_536].into_iter().for_each(|size| check_round_trip("rtrb", size, Policy::Fail));
    }

    #[test]
    fn ringfire_carries_messages_in_slots_and_in_an_arena() {
        for size in [32, 64, 256, 1_024] {
            check_round_trip("ringfire", size, Policy::Overwrite);
            check_round_trip("ringfire", size, Policy::Fail);
        }
        check_round_trip("ringfire", 16_384, Policy::Overwrite);
    }

    #[test]
    fn iceoryx2_carries_messages_under_each_policy() {
        check_round_trip("iceoryx2", 64, Policy::Overwrite);
        check_round_trip("iceoryx2", 64, Policy::Fail);
        check_round_trip("iceoryx2", 16_384, Policy::Overwrite);
    }

    #[test]
    fn zeromq_carries_messages_under_each_policy() {
        check_round_trip("zeromq", 64, Policy::Overwrite);
        check_round_trip("zeromq", 64, Policy::Fail);
        check_round_trip("zeromq", 16_384, Policy::Overwrite);
    }

    #[test]
    fn a_full_ring_refuses_messages_until_its_reader_takes_a_message() {
        for peer in ["rtrb", "ringfire"] {
            // The min capacity is sixteen messages.
            let mut topic = TestTopic::open(peer, 64, Policy::Fail, 0);
            for number in 0..16 {
                topic.publish(number).unwrap_or_else(|e| panic!("{peer}: {e}"));
            }
            assert!(matches!(topic.publish(16), Err(PublishError::Full)), "{peer}");
            let polled = topic.subscriber.poll(1, &mut |event| assert_eq!(number_of(event, 64), 0));
            assert_eq!(polled.ok(), Some(1), "{peer}");
            topic.publish(16).unwrap_or_else(|e| panic!("{peer}: {e}"));
            assert_eq!(topic.poll(64), (1..=16).collect::<Vec<u64>>(), "{peer}");
        }
    }

    #[test]
    fn every_peer_has_its_scheme() {
        assert!(PEERS.iter().map(|peer| peer.name).eq(TRANSPORTS[0].schemes.iter().copied()));
    }

    #[test]
    fn unsupported_urls_sizes_and_queues_are_refused() {
        for url in ["rtrb", "rtrb://64/1", "rtrb://64/1/never", "nanomsg://64/1/fail"] {
            assert!(refusal(connect(url)).contains("use NAME://SIZE/READERS/POLICY"), "{url}");
        }
        let rtrb = connect("rtrb://48/1/fail").unwrap_or_else(|e| panic!("{e}"));
        let config = TopicConfig::new(Policy::Fail);
        assert!(refusal(rtrb.publisher("peers-test", &config)).contains("48 bytes"));
        let subscriber = rtrb.subscriber("peers-test", StartPosition::Now, Wait::Busy);
        assert!(refusal(subscriber).contains("has no publisher in this process"));
        let queue = QueueConfig::new(DeliveryGuarantee::AtMostOnce);
        assert_eq!(refusal(rtrb.pusher("peers-test", &queue)), "rtrb cannot have queues; use a topic");
        let ringfire = connect("ringfire://16384/1/fail").unwrap_or_else(|e| panic!("{e}"));
        assert!(refusal(ringfire.publisher("peers-test", &config)).contains("use overwrite"));
    }
}
