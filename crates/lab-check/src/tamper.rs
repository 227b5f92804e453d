//! A tamper between a publisher and its subscriber: it copies each message from one topic to another, spoils some as
//! configured, and counts the spoiled ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tickpath_bus::{
    Gap, Message, PublishError, Publisher, StartPosition, Subscriber, SubscriptionEvent, TopicConfig, connect,
};
use tickpath_clock::{Clock, HostClock, Wait, relax, sleep_ns};
use tickpath_lab_harness::LabError;

/// Fault that a tamper plants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// One message in a hundred never arrives.
    Drop,
    /// One message in a hundred arrives twice.
    Duplicate,
    /// One message in a hundred arrives behind the next one.
    Swap,
    /// Each message arrives so many nanoseconds after it was sent, in order.
    Delay(u64),
    /// Nothing is forwarded for so many nanoseconds of each second.
    Stall(u64),
}

/// One message of so many is spoiled.
pub(crate) const FAULT_EVERY: u64 = 100;

/// Longest wait for messages before the tamper checks for its end, in nanoseconds.
const MAX_WAIT_NS: u64 = 10_000_000;

/// A thread between two topics; it ends with this value.
pub struct Tamper {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<u64, LabError>>>,
}

impl Tamper {
    /// Subscribes to `from` and begins: messages published there from now on are copied to `to`, except for the fault.
    pub fn start(url: &str, from: &str, to: &str, fault: Fault) -> Result<Self, LabError> {
        let connection = connect(url)?;
        let policy = connection.capabilities().policies[0];
        let subscriber = connection.subscriber(from, StartPosition::Now, Wait::Block)?;
        let tells = connection.publisher(to, &TopicConfig::new(policy))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (ends, clock) = (is_over.clone(), HostClock::get()?);
        let between =
            TamperForwarder { clock, fault, publisher: tells, held: None, seen: 0, faults: 0, stalled: clock.ticks() };
        let thread = std::thread::spawn(move || between.forward_all(subscriber, &ends));
        Ok(Self { is_over, thread: Some(thread) })
    }

    /// Ends the tamper, and returns the number of planted faults.
    pub fn end(mut self) -> Result<u64, LabError> {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or_else(|| Err(LabError::Failed("the tamper ended by itself".to_owned())))
    }
}

impl Drop for Tamper {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A message held until the next one.
struct SwappedMessage {
    stamp: u64,
    kind: u8,
    payload: Vec<u8>,
}

struct TamperForwarder {
    clock: HostClock,
    fault: Fault,
    publisher: Box<dyn Publisher>,
    held: Option<SwappedMessage>,
    seen: u64,
    faults: u64,
    /// Time of the last stall.
    stalled: u64,
}

impl TamperForwarder {
    fn forward_all(mut self, mut subscriber: Box<dyn Subscriber>, is_over: &AtomicBool) -> Result<u64, LabError> {
        let failed = |e: String| LabError::Failed(format!("the tamper failed: {e}"));
        while !is_over.load(Ordering::Relaxed) {
            self.stall();
            let mut done = Ok(());
            let found = subscriber.poll(1, &mut |event| match event {
                SubscriptionEvent::Message(message) => done = self.forward(&message),
                // The tamper itself was too slow: the loss counts as its fault.
                SubscriptionEvent::Gap(Gap::Missed(missed)) => self.faults += missed,
                SubscriptionEvent::Gap(Gap::Reconnected) | SubscriptionEvent::Foreign(_) => {}
            });
            done.map_err(|e| failed(e.to_string()))?;
            if found.map_err(|e| failed(e.to_string()))? == 0 {
                subscriber.wait(MAX_WAIT_NS);
            }
        }
        Ok(self.faults)
    }

    fn stall(&mut self) {
        const SECOND_NS: i64 = 1_000_000_000;
        let Fault::Stall(ns) = self.fault else { return };
        if self.clock.ns_between(self.stalled, self.clock.ticks()) > SECOND_NS - ns as i64 {
            sleep_ns(ns);
            self.faults += 1;
            self.stalled = self.clock.ticks();
        }
    }

    fn forward(&mut self, message: &Message<'_>) -> Result<(), PublishError> {
        self.seen += 1;
        let is_spoiled = self.seen % FAULT_EVERY == FAULT_EVERY / 2;
        match self.fault {
            Fault::Drop if is_spoiled => {
                self.faults += 1;
                return Ok(());
            }
            Fault::Duplicate if is_spoiled => {
                self.faults += 1;
                self.publish(message.stamp, message.kind, message.payload)?;
            }
            Fault::Swap if is_spoiled => {
                let Message { stamp, kind, payload, .. } = *message;
                self.held = Some(SwappedMessage { stamp, kind, payload: payload.to_vec() });
                return Ok(());
            }
            Fault::Delay(ns) => {
                // The stamp is the intended send time; the payload begins with the actual one.
                let sent = message.payload.first_chunk().map_or(message.stamp, |sent| u64::from_le_bytes(*sent));
                let left = ns as i64 - self.clock.ns_between(sent, self.clock.ticks());
                sleep_ns(left.max(0) as u64);
                self.faults += 1;
            }
            _ => {}
        }
        self.publish(message.stamp, message.kind, message.payload)?;
        if let Some(SwappedMessage { stamp, kind, payload }) = self.held.take() {
            self.faults += 1;
            self.publish(stamp, kind, &payload)?;
        }
        Ok(())
    }

    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        loop {
            match self.publisher.publish(stamp, kind, payload) {
                Err(PublishError::Full) => relax(),
                done => return done,
            }
        }
    }
}
