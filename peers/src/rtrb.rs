//! rtrb: a bare ring between two threads of one process.
//!
//! The publisher creates the ring, and its other half waits in this process for the subscriber. A batch is one chunk,
//! which becomes visible at once; a subscriber takes what is available as a chunk, in place.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use ::rtrb::{Consumer, Producer, PushError, RingBuffer};
use tickpath_bus::{
    BatchError, ConnectError, Policy, PublishError, Publisher, PublisherState, ReceiveError, Subscriber,
    SubscriptionEvent, TopicConfig,
};
use tickpath_clock::Wait;

use crate::peer::{Peer, PeerEnd, TopicShape};
use crate::slot::{CacheLines, HalfLine, RingSlot, message_event};

/// Entry in the list of peers.
pub const PEER: Peer = Peer {
    name: "rtrb",
    policies: &[Policy::Fail],
    publisher,
    subscriber,
    remove: |topic| _ = waiting_subscribers().remove(topic),
};

type WaitingSubscribers = HashMap<String, Box<dyn Subscriber>>;

/// Returns the ring halves that no subscriber has taken yet, by topic.
fn waiting_subscribers() -> MutexGuard<'static, WaitingSubscribers> {
    static WAITING: LazyLock<Mutex<WaitingSubscribers>> = LazyLock::new(Mutex::default);
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn publisher(shape: &TopicShape, topic: &str, config: &TopicConfig) -> PeerEnd<dyn Publisher> {
    let slots = shape.slots(config);
    Ok(match shape.size {
        32 => ring::<HalfLine>(topic, slots),
        64 => ring::<CacheLines<64>>(topic, slots),
        256 => ring::<CacheLines<256>>(topic, slots),
        1_024 => ring::<CacheLines<1_024>>(topic, slots),
        16_384 => ring::<CacheLines<16_384>>(topic, slots),
        65_536 => ring::<CacheLines<65_536>>(topic, slots),
        size => {
            return Err(ConnectError::Name(format!(
                "rtrb has no slots of {size} bytes here; use 32, 64, 256, 1024, 16384 or 65536"
            )));
        }
    })
}

fn ring<T: RingSlot>(topic: &str, slots: usize) -> Box<dyn Publisher> {
    let (producer, consumer) = RingBuffer::<T>::new(slots);
    waiting_subscribers().insert(topic.to_owned(), Box::new(RtrbSubscriber(consumer)));
    Box::new(RtrbPublisher(producer))
}

fn subscriber(_shape: &TopicShape, topic: &str, _wait: Wait) -> PeerEnd<dyn Subscriber> {
    let refused = || {
        ConnectError::Name(format!(
            "the topic '{topic}' has no publisher in this process, or has its subscriber already; start the publisher \
             first, and one subscriber"
        ))
    };
    waiting_subscribers().remove(topic).ok_or_else(refused)
}

struct RtrbPublisher<T>(Producer<T>);

impl<T: RingSlot> Publisher for RtrbPublisher<T> {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.0.push(T::new(stamp, payload)).map_err(|PushError::Full(_)| PublishError::Full)
    }

    fn publish_batch(&mut self, stamp: u64, _kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        let Ok(chunk) = self.0.write_chunk_uninit(payloads.len()) else {
            return Err(BatchError::failed_at(0, PublishError::Full));
        };
        chunk.fill_from_iter(payloads.iter().map(|payload| T::new(stamp, payload)));
        Ok(())
    }

    /// Returns zero: there is no connection to lose.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}

struct RtrbSubscriber<T>(Consumer<T>);

impl<T: RingSlot> Subscriber for RtrbSubscriber<T> {
    // A peer's messages are measured and never bridged.
    fn enable_bridge_mode(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        // A chunk of one message is there or not; for a longer chunk the ring counts its messages.
        let found = if limit == 1 { 1 } else { self.0.slots().min(limit) };
        let Ok(chunk) = self.0.read_chunk(found) else { return Ok(0) };
        let (first, second) = chunk.as_slices();
        first.iter().chain(second).for_each(|slot| handler(message_event(slot.bytes())));
        chunk.commit_all();
        Ok(found)
    }

    /// Spins, because a bare ring has no waker.
    fn wait(&mut self, _timeout_ns: u64) {
        Wait::Busy.idle();
    }

    fn publisher_state(&self) -> PublisherState {
        PublisherState::Unknown
    }

    /// Returns zero: there is no connection to lose.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}
