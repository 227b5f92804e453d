//! Publisher to a log.

use std::hint::black_box;

use tickpath_bus_api::{BatchError, PublishError, Publisher};
use tickpath_log::FIRST_KIND;

use crate::name::NamedWriter;
use crate::ring::{publish_batch, publish_error};
use crate::warm::Warm;

pub(crate) struct LogPublisher {
    named: NamedWriter,
    /// Bytes of the last message.
    last_bytes: usize,
    warm: Warm<LogPublisher>,
}

impl LogPublisher {
    pub(crate) fn new(named: NamedWriter) -> Self {
        Self { named, last_bytes: 0, warm: Warm::new() }
    }

    #[inline(never)]
    fn rehearse(&mut self) {
        let Self { named, last_bytes, warm } = self;
        // The next message may be far away; this check lets it find the right log. A publish reports the error, too.
        let _ = named.look(0);
        named.writer.keep_warm(*last_bytes);
        let make = || named.writer.rehearsal().ok().map(|made| Self::new(named.rehearsing(made.writer)));
        let Some((stage, message)) = warm.stage(make, *last_bytes) else { return };
        // The function that callers call, not a copy of it.
        let publisher: &mut dyn Publisher = black_box(stage);
        let _ = publisher.publish(0, FIRST_KIND, message);
    }
}

impl Publisher for LogPublisher {
    // Never inlined, so that callers and the warm-up run the same code: a copy would keep nothing warm.
    #[inline(never)]
    fn publish(&mut self, stamp: u64, kind: u8, payload: &[u8]) -> Result<(), PublishError> {
        self.last_bytes = payload.len();
        self.named.look(stamp)?;
        self.named.writer.publish(stamp, kind, payload).map(|_| ()).map_err(publish_error)
    }

    #[inline]
    fn idle(&mut self) {
        if self.warm.is_due() {
            self.rehearse();
        } else {
            self.named.writer.take_lines(self.last_bytes, self.warm.turns());
        }
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.last_bytes = payloads.last().map_or(self.last_bytes, |payload| payload.len());
        self.named.look(stamp).map_err(|e| BatchError::at(0, e))?;
        publish_batch(&mut self.named.writer, stamp, kind, payloads)
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.named.made())
    }
}
