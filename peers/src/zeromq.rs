//! ZeroMQ over `ipc`, with Linux's abstract names, which leave no file behind.
//!
//! `overwrite` is publish and subscribe, which drops messages that do not fit a subscriber's queue; `fail` is push and
//! pull, which refuses them and has one reader. A sleeping subscriber waits in ZeroMQ's `poll`. ZeroMQ's I/O threads
//! share the CPUs of the two ends.

use std::sync::LazyLock;

use tickpath_bus::{
    Policy, PublishError, Publisher, PublisherState, ReceiveError, Subscriber, SubscriptionEvent, TopicConfig,
};
use tickpath_clock::{Wait, sleep_ns};
use zmq::{Context, Message, Socket};

use crate::peer::{Peer, PeerEnd, TopicShape, library_error};
use crate::slot::{message_event, write_stamp};

/// Entry in the list of peers.
pub const PEER: Peer =
    Peer { name: "zeromq", policies: &[Policy::Overwrite, Policy::Fail], publisher, subscriber, remove: |_topic| () };

/// Time after which a subscription counts as made, in nanoseconds: ZeroMQ does not confirm it.
const SUBSCRIBE_NS: u64 = 50_000_000;

fn endpoint(topic: &str) -> String {
    format!("ipc://@{topic}")
}

fn publisher(_shape: &TopicShape, topic: &str, config: &TopicConfig) -> PeerEnd<dyn Publisher> {
    let kind = if config.policy == Policy::Fail { zmq::PUSH } else { zmq::PUB };
    // A context of its own, whose end waits until all messages are sent.
    let socket = Context::new().socket(kind).map_err(library_error)?;
    socket.bind(&endpoint(topic)).map_err(library_error)?;
    Ok(Box::new(ZeromqPublisher(socket)))
}

fn subscriber(shape: &TopicShape, topic: &str, wait: Wait) -> PeerEnd<dyn Subscriber> {
    /// One I/O thread for all subscriptions of a process.
    static CONTEXT: LazyLock<Context> = LazyLock::new(Context::new);
    let is_pulling = shape.policy == Policy::Fail;
    let socket = CONTEXT.socket(if is_pulling { zmq::PULL } else { zmq::SUB }).map_err(library_error)?;
    socket.connect(&endpoint(topic)).map_err(library_error)?;
    if !is_pulling {
        socket.set_subscribe(b"").map_err(library_error)?;
        sleep_ns(SUBSCRIBE_NS);
    }
    Ok(Box::new(ZeromqSubscriber { socket, message: Message::new(), wait }))
}

struct ZeromqPublisher(Socket);

impl Publisher for ZeromqPublisher {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        let mut message = Message::from(payload);
        write_stamp(&mut message, stamp);
        match self.0.send(message, zmq::DONTWAIT) {
            Ok(()) => Ok(()),
            Err(zmq::Error::EAGAIN) => Err(PublishError::Full),
            Err(e) => Err(PublishError::Other(library_error(e))),
        }
    }
}

struct ZeromqSubscriber {
    socket: Socket,
    /// Buffer of the last message.
    message: Message,
    wait: Wait,
}

impl Subscriber for ZeromqSubscriber {
    // A peer's messages are measured and never bridged.
    fn enable_bridge_mode(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        for found in 0..limit {
            match self.socket.recv(&mut self.message, zmq::DONTWAIT) {
                Ok(()) => handler(message_event(&self.message)),
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => return Ok(found),
                Err(e) => return Err(ReceiveError::Other(library_error(e))),
            }
        }
        Ok(limit)
    }

    fn wait(&mut self, timeout_ns: u64) {
        match self.wait {
            // The next poll finds out whether a message is there.
            Wait::Block => _ = self.socket.poll(zmq::POLLIN, (timeout_ns / 1_000_000) as i64),
            wait => wait.idle(),
        }
    }

    fn publisher_state(&self) -> PublisherState {
        PublisherState::Unknown
    }
}
