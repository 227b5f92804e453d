//! ringfire: rings in shared memory, with slots of one size, or, for long messages, slots that point into an arena.
//!
//! `overwrite` is its `LossyLatestWins`, and `fail` its `LosslessBackpressure`, whose readers are registered. A batch
//! is its `push_batch`, which waits for free slots; a subscriber takes many messages at once with `recv_batch`. Its
//! manual uses slots for messages of up to 1,024 bytes, and for longer messages the arena, which is always lossy.

use std::path::PathBuf;

use ::ringfire::{
    BlobConsumer, BlobProducer, BlobProducerBuilder, FlowControl, RecvStatus, RingConsumer, RingProducer,
    RingProducerBuilder, RingfireError,
};
use tickpath_bus::{
    BatchError, ConnectError, Gap, Message, Policy, PublishError, Publisher, PublisherState, ReceiveError, Subscriber,
    SubscriptionEvent, TopicConfig,
};
use tickpath_clock::Wait;

use crate::peer::{Peer, PeerEnd, TopicShape, library_error};
use crate::slot::{KIND, RingSlot, message_event};

/// Entry in the list of peers.
pub const PEER: Peer = Peer {
    name: "ringfire",
    policies: &[Policy::Overwrite, Policy::Fail],
    publisher,
    subscriber,
    // A file that does not exist is no error.
    remove: |topic| _ = std::fs::remove_file(path(topic)),
};

/// Max messages that a subscriber takes at once.
const MAX_BATCH: usize = 256;

fn path(topic: &str) -> PathBuf {
    PathBuf::from(format!("/dev/shm/{topic}.ringfire"))
}

fn publisher(shape: &TopicShape, topic: &str, config: &TopicConfig) -> PeerEnd<dyn Publisher> {
    match shape.size {
        32 => slot_writer::<32>(shape, topic, config),
        64 => slot_writer::<64>(shape, topic, config),
        256 => slot_writer::<256>(shape, topic, config),
        1_024 => slot_writer::<1_024>(shape, topic, config),
        _ => arena_writer(shape, topic, config),
    }
}

fn subscriber(shape: &TopicShape, topic: &str, wait: Wait) -> PeerEnd<dyn Subscriber> {
    Ok(match shape.size {
        32 => slot_reader::<32>(topic, wait)?,
        64 => slot_reader::<64>(topic, wait)?,
        256 => slot_reader::<256>(topic, wait)?,
        1_024 => slot_reader::<1_024>(topic, wait)?,
        _ => {
            let ring = BlobConsumer::<u64>::attach(path(topic)).map_err(library_error)?;
            Box::new(RingfireArenaSubscriber { ring, wait })
        }
    })
}

fn slot_writer<const N: usize>(shape: &TopicShape, topic: &str, config: &TopicConfig) -> PeerEnd<dyn Publisher> {
    let builder = RingProducerBuilder::new(shape.slots(config).next_power_of_two() as u64);
    let builder = match config.policy {
        Policy::Fail => builder.flow_control(FlowControl::LosslessBackpressure).max_readers(shape.readers),
        _ => builder,
    };
    let ring = builder.build::<[u8; N], _>(path(topic)).map_err(library_error)?;
    Ok(Box::new(RingfirePublisher { ring, batch: Vec::new() }))
}

fn slot_reader<const N: usize>(topic: &str, wait: Wait) -> PeerEnd<dyn Subscriber> {
    let ring = RingConsumer::<[u8; N]>::builder().start_from_head().attach(path(topic)).map_err(library_error)?;
    Ok(Box::new(RingfireSubscriber { ring, batch: vec![[0; N]; MAX_BATCH], wait }))
}

fn arena_writer(shape: &TopicShape, topic: &str, config: &TopicConfig) -> PeerEnd<dyn Publisher> {
    if config.policy != Policy::Overwrite {
        let what = format!("keep messages of {} bytes for a slow reader", shape.size);
        return Err(ConnectError::Unsupported { transport: PEER.name, what, remedy: "use overwrite" });
    }
    let slots = shape.slots(config).next_power_of_two() as u64;
    let builder = BlobProducerBuilder::new(slots, config.capacity_bytes.next_power_of_two()).max_readers(shape.readers);
    Ok(Box::new(RingfireArenaPublisher(builder.build::<u64, _>(path(topic)).map_err(library_error)?)))
}

struct RingfirePublisher<const N: usize> {
    ring: RingProducer<[u8; N]>,
    /// Messages of a batch, side by side.
    batch: Vec<[u8; N]>,
}

impl<const N: usize> Publisher for RingfirePublisher<N> {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        match self.ring.try_push(&<[u8; N]>::new(stamp, payload)) {
            Ok(()) => Ok(()),
            Err(RingfireError::BackpressureBufferFull) => Err(PublishError::Full),
            Err(e) => Err(PublishError::Other(library_error(e))),
        }
    }

    fn publish_batch(&mut self, stamp: u64, _kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.batch.clear();
        self.batch.extend(payloads.iter().map(|payload| <[u8; N]>::new(stamp, payload)));
        self.ring.push_batch(&self.batch);
        Ok(())
    }

    /// Returns zero: there is no connection to lose.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}

struct RingfireSubscriber<const N: usize> {
    ring: RingConsumer<[u8; N]>,
    batch: Vec<[u8; N]>,
    wait: Wait,
}

impl<const N: usize> Subscriber for RingfireSubscriber<N> {
    // A peer's messages are measured and never bridged.
    fn enable_bridge_mode(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        if limit == 1 {
            let item = match self.ring.recv_status() {
                RecvStatus::Empty => return Ok(0),
                RecvStatus::Ok(item) => item,
                RecvStatus::Lapped { skipped, item } => {
                    handler(SubscriptionEvent::Gap(Gap::Missed(skipped)));
                    item
                }
            };
            handler(message_event(&item));
            return Ok(1);
        }
        let lapped = self.ring.lapped_count();
        let max = limit.min(self.batch.len());
        let found = self.ring.recv_batch(&mut self.batch[..max]);
        let missed = self.ring.lapped_count() - lapped;
        if missed > 0 {
            handler(SubscriptionEvent::Gap(Gap::Missed(missed)));
        }
        self.batch[..found].iter().for_each(|item| handler(message_event(item)));
        Ok(found)
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

/// Publisher whose slots hold the stamp and the position of the payload in the arena.
struct RingfireArenaPublisher(BlobProducer<u64>);

impl Publisher for RingfireArenaPublisher {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.0.push(&stamp, payload).map(|_sequence| ()).map_err(|e| PublishError::Other(library_error(e)))
    }

    /// Returns zero: there is no connection to lose.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}

struct RingfireArenaSubscriber {
    ring: BlobConsumer<u64>,
    wait: Wait,
}

impl Subscriber for RingfireArenaSubscriber {
    // A peer's messages are measured and never bridged.
    fn enable_bridge_mode(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        for found in 0..limit {
            // Reads in place. A message that is overwritten meanwhile is delivered torn, with a later message after it:
            // the sequence numbers show the fault, and the run is not valid.
            let viewed = self.ring.view(|&stamp, payload| {
                handler(SubscriptionEvent::Message(Message { sequence: None, stamp, kind: KIND, payload, id: None }));
            });
            if viewed.map_err(|e| ReceiveError::Other(library_error(e)))?.is_none() {
                return Ok(found);
            }
        }
        Ok(limit)
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
