//! iceoryx2: services of its `publish_subscribe` pattern, over `ipc::Service`.
//!
//! `overwrite` is its safe overflow; `fail` disables the overflow and uses `RetryUntilDelivered`, so that the publish
//! call waits. A sample is loaned uninitialised, written once, sent, and read in place; there are no batches. Ports of
//! the faster kind stay on the thread that created them, so both ends hold the port's index on their thread.

use std::cell::RefCell;

use ::iceoryx2::port::publisher::Publisher as PublisherPort;
use ::iceoryx2::port::subscriber::Subscriber as SubscriberPort;
use ::iceoryx2::prelude::{
    BackpressureStrategy, LogLevel, Node, NodeBuilder, ServiceName, SignalHandlingMode, ipc, set_log_level,
};
use tickpath_bus::{
    ConnectError, Policy, PublishError, Publisher, PublisherState, ReceiveError, Subscriber, SubscriptionEvent,
    TopicConfig,
};
use tickpath_clock::Wait;

use crate::peer::{Peer, PeerEnd, TopicShape, library_error};
use crate::slot::{message_event, write_stamp};

/// Entry in the list of peers.
pub const PEER: Peer = Peer {
    name: "iceoryx2",
    policies: &[Policy::Overwrite, Policy::Fail],
    publisher,
    subscriber,
    // A new node removes what killed processes have left behind.
    remove: |_topic| _ = node(),
};

/// Max samples by which a subscriber of an `overwrite` topic may lag behind: the length of its queue for every size.
const MAX_LAG: usize = 1_024;

thread_local! {
    static PUBLISHERS: RefCell<Vec<PublisherPort<ipc::Service, [u8], ()>>> = const { RefCell::new(Vec::new()) };
    static SUBSCRIBERS: RefCell<Vec<SubscriberPort<ipc::Service, [u8], ()>>> = const { RefCell::new(Vec::new()) };
}

fn node() -> Result<Node<ipc::Service>, ConnectError> {
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().signal_handling_mode(SignalHandlingMode::Disabled).create::<ipc::Service>();
    Ok(node.map_err(library_error)?)
}

fn service_name(topic: &str) -> Result<ServiceName, ConnectError> {
    Ok(ServiceName::new(topic).map_err(library_error)?)
}

fn publisher(shape: &TopicShape, topic: &str, config: &TopicConfig) -> PeerEnd<dyn Publisher> {
    let overwrites = config.policy == Policy::Overwrite;
    let slots = shape.slots(config);
    let service = node()?
        .service_builder(&service_name(topic)?)
        .publish_subscribe::<[u8]>()
        .max_publishers(1)
        .max_subscribers(shape.readers)
        // Each subscriber creates a node of its own.
        .max_nodes(shape.readers + 4)
        .history_size(0)
        .subscriber_max_borrowed_samples(1)
        .subscriber_max_buffer_size(if overwrites { slots.min(MAX_LAG) } else { slots })
        .enable_safe_overflow(overwrites)
        .create()
        .map_err(library_error)?;
    let port = service
        .publisher_builder()
        .initial_max_slice_len(shape.size)
        .max_loaned_samples(1)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()
        .map_err(library_error)?;
    Ok(Box::new(IceoryxPublisher(PUBLISHERS.with_borrow_mut(|ports| add_port(ports, port)))))
}

fn subscriber(_shape: &TopicShape, topic: &str, wait: Wait) -> PeerEnd<dyn Subscriber> {
    let service = node()?.service_builder(&service_name(topic)?).publish_subscribe::<[u8]>().open();
    let port = service.map_err(library_error)?.subscriber_builder().create().map_err(library_error)?;
    Ok(Box::new(IceoryxSubscriber { port: SUBSCRIBERS.with_borrow_mut(|ports| add_port(ports, port)), wait }))
}

/// Adds a port to those of this thread; returns its index.
fn add_port<T>(ports: &mut Vec<T>, port: T) -> usize {
    ports.push(port);
    ports.len() - 1
}

/// Index of the publisher's port on its thread.
struct IceoryxPublisher(usize);

impl Publisher for IceoryxPublisher {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        PUBLISHERS.with_borrow(|ports| {
            let sample = ports[self.0].loan_slice_uninit(payload.len()).map_err(library_error)?;
            let mut sample = sample.write_from_slice(payload);
            write_stamp(sample.payload_mut(), stamp);
            sample.send().map_err(library_error)?;
            Ok(())
        })
    }

    /// Returns zero: there is no connection to lose.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}

struct IceoryxSubscriber {
    /// Index of the port on its thread.
    port: usize,
    wait: Wait,
}

impl Subscriber for IceoryxSubscriber {
    // A peer's messages are measured and never bridged.
    fn enable_bridge_mode(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        SUBSCRIBERS.with_borrow(|ports| {
            for found in 0..limit {
                let Some(sample) = ports[self.port].receive().map_err(library_error)? else { return Ok(found) };
                handler(message_event(sample.payload()));
            }
            Ok(limit)
        })
    }

    fn wait(&mut self, _timeout_ns: u64) {
        self.wait.idle();
    }

    fn publisher_state(&self) -> PublisherState {
        PublisherState::Unknown
    }

    /// Returns zero: there is no connection to lose.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}
