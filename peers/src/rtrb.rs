//! rtrb: a bare ring between two threads of one process.
//!
//! Who publishes makes the ring; its other half waits here for whoever subscribes. A batch is one chunk, all of it
//! visible at once, and a reader takes what is there as a chunk, in place.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use ::rtrb::{Consumer, Producer, PushError, RingBuffer};
use tickpath_bus::{
    BatchError, ConnectError, Event, Policy, PublishError, Publisher, PublisherState, ReceiveError, Subscriber,
    TopicConfig,
};
use tickpath_clock::Wait;

use crate::item::{HalfLine, Item, Lines, event};
use crate::peer::{Peer, Shape};

/// As the loop sees it.
pub const PEER: Peer = Peer {
    name: "rtrb",
    policies: &[Policy::Fail],
    publisher,
    subscriber,
    remove: |topic| _ = waiting().remove(topic),
};

type Waiting = HashMap<String, Box<dyn Subscriber>>;

/// The halves that nobody has taken yet, by their topics.
fn waiting() -> MutexGuard<'static, Waiting> {
    static WAITING: LazyLock<Mutex<Waiting>> = LazyLock::new(Mutex::default);
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn publisher(shape: &Shape, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
    let slots = shape.slots(config);
    Ok(match shape.size {
        32 => ring::<HalfLine>(topic, slots),
        64 => ring::<Lines<64>>(topic, slots),
        256 => ring::<Lines<256>>(topic, slots),
        1_024 => ring::<Lines<1_024>>(topic, slots),
        16_384 => ring::<Lines<16_384>>(topic, slots),
        65_536 => ring::<Lines<65_536>>(topic, slots),
        size => return Err(ConnectError::Name(format!("no ring here has slots of {size} bytes"))),
    })
}

fn ring<T: Item>(topic: &str, slots: usize) -> Box<dyn Publisher> {
    let (outlet, inlet) = RingBuffer::<T>::new(slots);
    waiting().insert(topic.to_owned(), Box::new(Inlet(inlet)));
    Box::new(Outlet(outlet))
}

fn subscriber(_shape: &Shape, topic: &str, _wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
    let alone = || ConnectError::Name(format!("nobody in this process publishes {topic}, or somebody hears it"));
    waiting().remove(topic).ok_or_else(alone)
}

struct Outlet<T>(Producer<T>);

impl<T: Item> Publisher for Outlet<T> {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.0.push(T::of(stamp, payload)).map_err(|PushError::Full(_)| PublishError::Full)
    }

    fn publish_batch(&mut self, stamp: u64, _kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let Ok(chunk) = self.0.write_chunk_uninit(payloads.len()) else {
            return Err(BatchError::at(0, PublishError::Full));
        };
        chunk.fill_from_iter(payloads.iter().map(|payload| T::of(stamp, payload)));
        Ok(())
    }

    /// There is nothing that could be lost.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}

struct Inlet<T>(Consumer<T>);

impl<T: Item> Subscriber for Inlet<T> {
    // A peer's messages are measured, and not carried on.
    fn carry_on(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        // One alone is there or not; of more the ring is asked how many there are.
        let found = if limit == 1 { 1 } else { self.0.slots().min(limit) };
        let Ok(chunk) = self.0.read_chunk(found) else { return Ok(0) };
        let (first, second) = chunk.as_slices();
        first.iter().chain(second).for_each(|item| handler(event(item.bytes())));
        chunk.commit_all();
        Ok(found)
    }

    /// A reader of a bare ring spins.
    fn wait(&mut self, _timeout_ns: u64) {
        Wait::Busy.idle();
    }

    fn publisher(&self) -> PublisherState {
        PublisherState::Unknown
    }

    /// There is nothing that could be lost.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}
