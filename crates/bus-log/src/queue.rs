//! Queues over the log.

use tickpath_bus_api::{
    BatchError, ConnectError, DeliveryGuarantee, Message, PublishError, PulledMessage, Puller, Pusher,
    QueueCapabilities, QueueConfig, ReceiveError, adaptive,
};
use tickpath_clock::{Clock, HostClock, Wait};
use tickpath_log::{
    ClaimedMessage, Config, LogMessage, LogOpenError, LogPath, QueueDelivery, QueuePuller, Writer, queue_backlog,
};

use crate::name_watch::{NameWatch, NamedWriter};
use crate::topic_log::{
    ATTACH_INTERVAL_NS, MAX_PAYLOAD_BYTES, SEGMENTS, connect_error, publish_batch, publish_error, segment_bytes,
};

pub(crate) const CAPABILITIES: QueueCapabilities = QueueCapabilities {
    deliveries: &[DeliveryGuarantee::AtLeastOnce, DeliveryGuarantee::AtMostOnce],
    ordered: true,
    single_pusher: true,
    keeps_without_puller: true,
    detects_death: true,
    counts_waiting: true,
    exact_resend: true,
    counts_deliveries: false,
    gives_back: false,
    max_payload: MAX_PAYLOAD_BYTES,
};

/// Opens the log of a queue for pushing.
pub(crate) fn pusher(path: LogPath, config: &QueueConfig, clock: &HostClock) -> Result<Box<dyn Pusher>, ConnectError> {
    let config = Config {
        segment_bytes: segment_bytes(config.capacity_bytes),
        segments: SEGMENTS,
        mode: config.mode,
        ..Config::queue(path)
    };
    let writer = Writer::open_queue(&config, clock.calibration()).map_err(connect_error)?;
    Ok(Box::new(LogPusher { writer: NamedWriter::new(writer, config, *clock) }))
}

/// Opens the log of a queue for pulling, whether or not it exists yet.
pub(crate) fn puller(
    path: LogPath,
    delivery: DeliveryGuarantee,
    wait: Wait,
    clock: HostClock,
) -> Result<Box<dyn Puller>, ConnectError> {
    let (delivery, name_watch) = (log_delivery(delivery), NameWatch::new(clock));
    let mut puller = LogPuller { path, delivery, wait, puller: None, name_watch };
    puller.try_attach().map_err(connect_error)?;
    adaptive::puller(wait, puller)
}

/// Returns the number of messages of a queue that no puller has taken.
pub(crate) fn waiting(path: &LogPath) -> Result<u64, ConnectError> {
    match queue_backlog(path) {
        Err(LogOpenError::NotFound(_) | LogOpenError::NoQueue(_)) => Ok(0),
        counted => counted.map_err(connect_error),
    }
}

struct LogPusher {
    writer: NamedWriter,
}

impl Pusher for LogPusher {
    #[inline]
    fn push(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.writer.check_name(stamp)?;
        self.writer.writer.publish(stamp, kind, payload).map(|_| ()).map_err(publish_error)
    }

    fn push_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.writer.check_name(stamp).map_err(|e| BatchError::failed_at(0, e))?;
        publish_batch(&mut self.writer.writer, stamp, kind, payloads)
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.writer.recreated())
    }
}

struct LogPuller {
    path: LogPath,
    delivery: QueueDelivery,
    wait: Wait,
    puller: Option<QueuePuller>,
    name_watch: NameWatch<QueuePuller>,
}

impl LogPuller {
    /// Checks whether a pusher has made the queue.
    #[cold]
    fn try_attach(&mut self) -> Result<(), LogOpenError> {
        match QueuePuller::open(&self.path, self.delivery) {
            Ok(puller) => self.puller = Some(puller),
            Err(LogOpenError::NotFound(_) | LogOpenError::NoQueue(_)) => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

impl Puller for LogPuller {
    #[inline]
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(PulledMessage<'_>)) -> Result<usize, ReceiveError> {
        if self.puller.is_none() {
            self.try_attach().map_err(|e| ReceiveError::Other(Box::new(e)))?;
        }
        let Some(puller) = &mut self.puller else { return Ok(0) };
        let pulled = puller.pull(limit, |ClaimedMessage { message, redelivered }| {
            let LogMessage { sequence, stamp, kind, payload } = message;
            let message = Message { sequence: Some(sequence), stamp, kind, payload, id: None };
            handler(PulledMessage::without_tag(message, redelivered));
        });
        if let Ok(0) = pulled
            && self.name_watch.is_due()
        {
            let is_removed = || puller.is_removed();
            let next = || QueuePuller::open(&self.path, self.delivery);
            if puller.has_unacknowledged() {
                // Acknowledgements belong to the log that the messages came from.
                self.name_watch.note_removal(is_removed);
            } else if let Some(next) = self.name_watch.find_successor(is_removed, next) {
                self.puller = Some(next);
            }
        }
        // A damaged message is reported here once, with its number; the next pull continues after it.
        pulled.map_err(|e| ReceiveError::Damaged(e.to_string()))
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        if let Some(puller) = &mut self.puller {
            puller.acknowledge();
        }
        Ok(())
    }

    fn wait(&mut self, timeout_ns: u64) {
        match (&mut self.puller, self.wait) {
            (Some(puller), wait) if wait.sleeps() => puller.wait(wait, self.name_watch.sleep_ns(timeout_ns)),
            (Some(puller), wait) => puller.wait(wait, timeout_ns),
            (None, wait) if wait.sleeps() => tickpath_clock::sleep_ns(timeout_ns.min(ATTACH_INTERVAL_NS)),
            (None, wait) => wait.idle(),
        }
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.name_watch.switches())
    }

    fn outage(&self) -> Option<String> {
        self.name_watch.outage(&self.path)
    }
}

fn log_delivery(delivery: DeliveryGuarantee) -> QueueDelivery {
    match delivery {
        DeliveryGuarantee::AtMostOnce => QueueDelivery::AtMostOnce,
        DeliveryGuarantee::AtLeastOnce => QueueDelivery::AtLeastOnce,
    }
}
