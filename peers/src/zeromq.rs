//! ZeroMQ over `ipc`, in Linux's abstract names, which leave no file behind.
//!
//! `overwrite` is publish and subscribe, which drops what a reader's queue has no room for; `fail` is push and pull,
//! which waits, with one reader. A sleeping reader waits in its `poll`. Its I/O threads share the CPUs of the two ends.

use std::sync::LazyLock;

use tickpath_bus::{
    ConnectError, Event, Policy, PublishError, Publisher, PublisherState, ReceiveError, Subscriber, TopicConfig,
};
use tickpath_clock::{Wait, sleep_ns};
use zmq::{Context, Message, Socket};

use crate::item::{event, put_stamp};
use crate::peer::{Peer, Shape, failed};

/// As the loop sees it.
pub const PEER: Peer =
    Peer { name: "zeromq", policies: &[Policy::Overwrite, Policy::Fail], publisher, subscriber, remove: |_topic| () };

/// A subscription has no answer: after so long it is there.
const SUBSCRIBING_NS: u64 = 50_000_000;

fn endpoint(topic: &str) -> String {
    format!("ipc://@{topic}")
}

fn publisher(_shape: &Shape, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
    let kind = if config.policy == Policy::Fail { zmq::PUSH } else { zmq::PUB };
    // Its own context, whose end waits for what is still to be sent.
    let socket = Context::new().socket(kind).map_err(failed)?;
    socket.bind(&endpoint(topic)).map_err(failed)?;
    Ok(Box::new(Outlet(socket)))
}

fn subscriber(shape: &Shape, topic: &str, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
    /// One I/O thread for all subscriptions of a process.
    static CONTEXT: LazyLock<Context> = LazyLock::new(Context::new);
    let is_pulling = shape.policy == Policy::Fail;
    let socket = CONTEXT.socket(if is_pulling { zmq::PULL } else { zmq::SUB }).map_err(failed)?;
    socket.connect(&endpoint(topic)).map_err(failed)?;
    if !is_pulling {
        socket.set_subscribe(b"").map_err(failed)?;
        sleep_ns(SUBSCRIBING_NS);
    }
    Ok(Box::new(Inlet { socket, message: Message::new(), wait }))
}

struct Outlet(Socket);

impl Publisher for Outlet {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        let mut message = Message::from(payload);
        put_stamp(&mut message, stamp);
        match self.0.send(message, zmq::DONTWAIT) {
            Ok(()) => Ok(()),
            Err(zmq::Error::EAGAIN) => Err(PublishError::Full),
            Err(e) => Err(PublishError::Other(failed(e))),
        }
    }
}

struct Inlet {
    socket: Socket,
    message: Message,
    wait: Wait,
}

impl Subscriber for Inlet {
    // A peer's messages are measured, and not carried on.
    fn carry_on(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        for found in 0..limit {
            match self.socket.recv(&mut self.message, zmq::DONTWAIT) {
                Ok(()) => handler(event(&self.message)),
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => return Ok(found),
                Err(e) => return Err(ReceiveError::Other(failed(e))),
            }
        }
        Ok(limit)
    }

    fn wait(&mut self, timeout_ns: u64) {
        match self.wait {
            // Whether anything is there the next look tells.
            Wait::Block => _ = self.socket.poll(zmq::POLLIN, (timeout_ns / 1_000_000) as i64),
            wait => wait.idle(),
        }
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }
}
