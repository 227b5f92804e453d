//! Publisher to a log.

use std::hint::black_box;

use tickpath_bus_api::{BatchError, PublishError, Publisher};
use tickpath_log::FIRST_KIND;

use crate::name_watch::NamedWriter;
use crate::topic_log::{publish_batch, publish_error};
use crate::warm_up::IdleWarmUp;

pub(crate) struct LogPublisher {
    writer: NamedWriter,
    /// Bytes of the last message.
    last_bytes: usize,
    warm_up: IdleWarmUp<LogPublisher>,
}

impl LogPublisher {
    pub(crate) fn new(writer: NamedWriter) -> Self {
        Self { writer, last_bytes: 0, warm_up: IdleWarmUp::new() }
    }

    #[inline(never)]
    fn run_warm_up(&mut self) {
        let Self { writer, last_bytes, warm_up } = self;
        // The next message may be far away; this check lets it find the right log. A publish reports the error, too.
        let _ = writer.check_name(0);
        writer.writer.warm_up(*last_bytes);
        let make = || writer.writer.warm_up_log().ok().map(|made| Self::new(writer.for_warm_up(made.writer)));
        let Some((stage, message)) = warm_up.prepare(make, *last_bytes) else { return };
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
        self.writer.check_name(stamp)?;
        self.writer.writer.publish(stamp, kind, payload).map(|_| ()).map_err(publish_error)
    }

    #[inline]
    fn idle(&mut self) {
        if self.warm_up.is_due() {
            self.run_warm_up();
        } else {
            self.writer.writer.reclaim_lines(self.last_bytes, self.warm_up.turns());
        }
    }

    fn publish_batch(&mut self, stamp: u64, kind: u8, payloads: &[&[u8]]) -> Result<(), BatchError> {
        self.last_bytes = payloads.last().map_or(self.last_bytes, |payload| payload.len());
        self.writer.check_name(stamp).map_err(|e| BatchError::failed_at(0, e))?;
        publish_batch(&mut self.writer.writer, stamp, kind, payloads)
    }

    fn reconnects(&self) -> Option<u64> {
        Some(self.writer.recreated())
    }
}
