//! iceoryx2: services of its `publish_subscribe` pattern, over `ipc::Service`.
//!
//! `overwrite` is safe overflow, `fail` none of it with `RetryUntilDelivered`, which waits by itself. A sample is
//! loaned uninitialised, written once and sent; it is read in place. There are no batches. Its ports of the faster kind
//! stay on the thread that made them, so what the loop holds are their numbers there.

use std::cell::RefCell;

use ::iceoryx2::port::publisher::Publisher as Port;
use ::iceoryx2::port::subscriber::Subscriber as ReceivingPort;
use ::iceoryx2::prelude::{
    BackpressureStrategy, LogLevel, Node, NodeBuilder, ServiceName, SignalHandlingMode, ipc, set_log_level,
};
use tickpath_bus::{
    ConnectError, Event, Policy, PublishError, Publisher, PublisherState, ReceiveError, Subscriber, TopicConfig,
};
use tickpath_clock::Wait;

use crate::item::{event, put_stamp};
use crate::peer::{Peer, Shape, failed};

/// As the loop sees it.
pub const PEER: Peer = Peer {
    name: "iceoryx2",
    policies: &[Policy::Overwrite, Policy::Fail],
    publisher,
    subscriber,
    // A new node cleans up after those that were killed.
    remove: |_topic| _ = node(),
};

/// Samples that a reader of an `overwrite` topic may lag behind: its queue is as long as that, whatever the size.
const LAG: usize = 1_024;

thread_local! {
    static OUTLETS: RefCell<Vec<Port<ipc::Service, [u8], ()>>> = const { RefCell::new(Vec::new()) };
    static INLETS: RefCell<Vec<ReceivingPort<ipc::Service, [u8], ()>>> = const { RefCell::new(Vec::new()) };
}

fn node() -> Result<Node<ipc::Service>, ConnectError> {
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().signal_handling_mode(SignalHandlingMode::Disabled).create::<ipc::Service>();
    Ok(node.map_err(failed)?)
}

fn name(topic: &str) -> Result<ServiceName, ConnectError> {
    Ok(ServiceName::new(topic).map_err(failed)?)
}

fn publisher(shape: &Shape, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
    let overwrites = config.policy == Policy::Overwrite;
    let slots = shape.slots(config);
    let service = node()?
        .service_builder(&name(topic)?)
        .publish_subscribe::<[u8]>()
        .max_publishers(1)
        .max_subscribers(shape.readers)
        // Each reader brings its own.
        .max_nodes(shape.readers + 4)
        .history_size(0)
        .subscriber_max_borrowed_samples(1)
        .subscriber_max_buffer_size(if overwrites { slots.min(LAG) } else { slots })
        .enable_safe_overflow(overwrites)
        .create()
        .map_err(failed)?;
    let port = service
        .publisher_builder()
        .initial_max_slice_len(shape.size)
        .max_loaned_samples(1)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()
        .map_err(failed)?;
    Ok(Box::new(Outlet(OUTLETS.with_borrow_mut(|ports| put(ports, port)))))
}

fn subscriber(_shape: &Shape, topic: &str, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
    let service = node()?.service_builder(&name(topic)?).publish_subscribe::<[u8]>().open().map_err(failed)?;
    let port = service.subscriber_builder().create().map_err(failed)?;
    Ok(Box::new(Inlet { port: INLETS.with_borrow_mut(|ports| put(ports, port)), wait }))
}

/// The number of a port among those of this thread.
fn put<T>(ports: &mut Vec<T>, port: T) -> usize {
    ports.push(port);
    ports.len() - 1
}

struct Outlet(usize);

impl Publisher for Outlet {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        OUTLETS.with_borrow(|ports| {
            let sample = ports[self.0].loan_slice_uninit(payload.len()).map_err(failed)?;
            let mut sample = sample.write_from_slice(payload);
            put_stamp(sample.payload_mut(), stamp);
            sample.send().map_err(failed)?;
            Ok(())
        })
    }

    /// There is nothing that could be lost.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}

struct Inlet {
    port: usize,
    wait: Wait,
}

impl Subscriber for Inlet {
    // A peer's messages are measured, and not carried on.
    fn carry_on(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        INLETS.with_borrow(|ports| {
            for found in 0..limit {
                let Some(sample) = ports[self.port].receive().map_err(failed)? else { return Ok(found) };
                handler(event(sample.payload()));
            }
            Ok(limit)
        })
    }

    fn wait(&mut self, _timeout_ns: u64) {
        self.wait.idle();
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    /// There is nothing that could be lost.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}
