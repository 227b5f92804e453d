//! ringfire: rings in shared memory, with slots of one size, or, for long messages, slots that name a place in an
//! arena.
//!
//! `overwrite` is its `LossyLatestWins`, `fail` its `LosslessBackpressure`, whose readers are registered. A batch is
//! its `push_batch`, which waits for room by itself; a reader takes many at once with `recv_batch`. Its manual has
//! slots for up to 1,024 bytes, and the arena for what is longer, which is always lossy.

use std::path::PathBuf;

use ::ringfire::{
    BlobConsumer, BlobProducer, BlobProducerBuilder, FlowControl, RecvStatus, RingConsumer, RingProducer,
    RingProducerBuilder, RingfireError,
};
use tickpath_bus::{
    BatchError, ConnectError, Event, Gap, Message, Policy, PublishError, Publisher, PublisherState, ReceiveError,
    Subscriber, TopicConfig,
};
use tickpath_clock::Wait;

use crate::item::{Item, KIND, event};
use crate::peer::{Peer, Shape, failed};

/// As the loop sees it.
pub const PEER: Peer = Peer {
    name: "ringfire",
    policies: &[Policy::Overwrite, Policy::Fail],
    publisher,
    subscriber,
    // What is not there is no error.
    remove: |topic| _ = std::fs::remove_file(path(topic)),
};

/// Messages that a reader takes at once.
const BATCH: usize = 256;

fn path(topic: &str) -> PathBuf {
    PathBuf::from(format!("/dev/shm/{topic}.ringfire"))
}

fn publisher(shape: &Shape, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
    match shape.size {
        32 => slots::<32>(shape, topic, config),
        64 => slots::<64>(shape, topic, config),
        256 => slots::<256>(shape, topic, config),
        1_024 => slots::<1_024>(shape, topic, config),
        _ => arena(shape, topic, config),
    }
}

fn subscriber(shape: &Shape, topic: &str, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
    Ok(match shape.size {
        32 => reader::<32>(topic, wait)?,
        64 => reader::<64>(topic, wait)?,
        256 => reader::<256>(topic, wait)?,
        1_024 => reader::<1_024>(topic, wait)?,
        _ => {
            let ring = BlobConsumer::<u64>::attach(path(topic)).map_err(failed)?;
            Box::new(ArenaInlet { ring, wait })
        }
    })
}

fn slots<const N: usize>(shape: &Shape, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
    let builder = RingProducerBuilder::new(shape.slots(config).next_power_of_two() as u64);
    let builder = match config.policy {
        Policy::Fail => builder.flow_control(FlowControl::LosslessBackpressure).max_readers(shape.readers),
        _ => builder,
    };
    let ring = builder.build::<[u8; N], _>(path(topic)).map_err(failed)?;
    Ok(Box::new(Outlet { ring, batch: Vec::new() }))
}

fn reader<const N: usize>(topic: &str, wait: Wait) -> Result<Box<dyn Subscriber>, ConnectError> {
    let ring = RingConsumer::<[u8; N]>::builder().start_from_head().attach(path(topic)).map_err(failed)?;
    Ok(Box::new(Inlet { ring, batch: vec![[0; N]; BATCH], wait }))
}

fn arena(shape: &Shape, topic: &str, config: &TopicConfig) -> Result<Box<dyn Publisher>, ConnectError> {
    if config.policy != Policy::Overwrite {
        let what = format!("keep messages of {} bytes for a slow reader", shape.size);
        return Err(ConnectError::Unsupported { transport: PEER.name, what, remedy: "use overwrite" });
    }
    let slots = shape.slots(config).next_power_of_two() as u64;
    let builder = BlobProducerBuilder::new(slots, config.capacity_bytes.next_power_of_two()).max_readers(shape.readers);
    Ok(Box::new(ArenaOutlet(builder.build::<u64, _>(path(topic)).map_err(failed)?)))
}

struct Outlet<const N: usize> {
    ring: RingProducer<[u8; N]>,
    /// What is pushed together, side by side.
    batch: Vec<[u8; N]>,
}

impl<const N: usize> Publisher for Outlet<N> {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        match self.ring.try_push(&<[u8; N]>::of(stamp, payload)) {
            Ok(()) => Ok(()),
            Err(RingfireError::BackpressureBufferFull) => Err(PublishError::Full),
            Err(e) => Err(PublishError::Other(failed(e))),
        }
    }

    fn publish_batch(&mut self, stamp: u64, _kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.batch.clear();
        self.batch.extend(payloads.iter().map(|payload| <[u8; N]>::of(stamp, payload)));
        self.ring.push_batch(&self.batch);
        Ok(())
    }

    /// There is nothing that could be lost.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}

struct Inlet<const N: usize> {
    ring: RingConsumer<[u8; N]>,
    batch: Vec<[u8; N]>,
    wait: Wait,
}

impl<const N: usize> Subscriber for Inlet<N> {
    // A peer's messages are measured, and not carried on.
    fn carry_on(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        if limit == 1 {
            let item = match self.ring.recv_status() {
                RecvStatus::Empty => return Ok(0),
                RecvStatus::Ok(item) => item,
                RecvStatus::Lapped { skipped, item } => {
                    handler(Event::Gap(Gap::Missed(skipped)));
                    item
                }
            };
            handler(event(&item));
            return Ok(1);
        }
        let lapped = self.ring.lapped_count();
        let room = limit.min(self.batch.len());
        let found = self.ring.recv_batch(&mut self.batch[..room]);
        let missed = self.ring.lapped_count() - lapped;
        if missed > 0 {
            handler(Event::Gap(Gap::Missed(missed)));
        }
        self.batch[..found].iter().for_each(|item| handler(event(item)));
        Ok(found)
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

/// Its slots hold the stamp beside the place of the payload.
struct ArenaOutlet(BlobProducer<u64>);

impl Publisher for ArenaOutlet {
    fn publish(&mut self, stamp: u64, _kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.0.push(&stamp, payload).map(|_sequence| ()).map_err(|e| PublishError::Other(failed(e)))
    }

    /// There is nothing that could be lost.
    fn reconnects(&self) -> Option<u64> {
        Some(0)
    }
}

struct ArenaInlet {
    ring: BlobConsumer<u64>,
    wait: Wait,
}

impl Subscriber for ArenaInlet {
    // A peer's messages are measured, and not carried on.
    fn carry_on(&mut self) {}

    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        for found in 0..limit {
            // In place. What is overwritten meanwhile is handed over torn, and a later one behind it; the numbers show
            // it, and the run is not valid.
            let viewed = self.ring.view(|&stamp, payload| {
                handler(Event::Message(Message { sequence: None, stamp, kind: KIND, payload, origin: None }));
            });
            if viewed.map_err(|e| ReceiveError::Other(failed(e)))?.is_none() {
                return Ok(found);
            }
        }
        Ok(limit)
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
