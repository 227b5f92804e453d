//! Queue on a stream: entries are read without becoming pending, and deleted once they were handed over.

use std::time::Duration;

use tickpath_bus_api::{PulledMessage, QueueConfig};
use tickpath_clock::HostClock;

use crate::batch_size::BatchSizer;
use crate::connection::RedisConnection;
use crate::error::ServerResult;
use crate::puller::{PullHandler, RedisQueue, decode_message};
use crate::resp;
use crate::server::TIMEOUT;
use crate::stream::{EntryId, read_reply};
use crate::stream_group::GroupConsumer;

pub(crate) struct StreamAtMostOnce {
    consumer: GroupConsumer,
    /// Kind that foreign messages get; none if they are refused.
    foreign: Option<u8>,
    portion: BatchSizer,
    prefetched: Option<Vec<u8>>,
}

impl StreamAtMostOnce {
    pub fn new(queue: &str, config: &QueueConfig, clock: HostClock) -> Self {
        let consumer = GroupConsumer::new(queue, config, clock);
        Self { consumer, foreign: config.foreign, portion: BatchSizer::new(), prefetched: None }
    }

    /// Deletes entries without waiting for the reply: they are not delivered again in any case.
    fn delete(&self, link: &mut RedisConnection, ids: &[EntryId]) -> ServerResult {
        if ids.is_empty() { Ok(()) } else { link.send_unanswered(&self.consumer.delete_command(ids)) }
    }
}

impl RedisQueue for StreamAtMostOnce {
    const REMOVES_ON_READ: bool = true;

    fn name(&self) -> &str {
        self.consumer.queue()
    }

    fn resume(&mut self, link: &mut RedisConnection, _has_retained_all: bool) -> ServerResult<bool> {
        self.consumer.join(link)?;
        Ok(self.consumer.take_replaced())
    }

    fn accept_any_queue(&mut self) {
        self.consumer.accept_any_stream();
    }

    fn fetch(&mut self, link: &mut RedisConnection, limit: usize, handler: &mut PullHandler<'_>) -> ServerResult {
        if let Some(bytes) = self.prefetched.take() {
            handler(PulledMessage::without_tag(decode_message(&bytes, self.foreign)?, false));
            return Ok(());
        }
        let asked = self.portion.limit(limit);
        self.consumer.request_new(link, asked, &["NOACK"])?;
        let (mut ids, mut outcome) = (Vec::new(), Ok(()));
        let (portion, foreign) = (&mut self.portion, self.foreign);
        link.receive_messages(asked, TIMEOUT, |items| {
            read_reply(items, &mut |entry| {
                let whole = entry.message_or_json();
                portion.record_size(whole.len());
                match decode_message(&whole, foreign) {
                    Ok(message) => {
                        ids.push(entry.id);
                        handler(PulledMessage::without_tag(message, false));
                    }
                    // The foreign entry stays in the stream.
                    Err(refused) => outcome = Err(refused),
                }
            })
        })?;
        self.delete(link, &ids)?;
        outcome?;
        self.consumer.check(link)
    }

    fn wait_for_message(&mut self, link: &mut RedisConnection, timeout: Duration) -> ServerResult {
        if self.prefetched.is_some() {
            return Ok(());
        }
        self.consumer.request_new(link, 1, &["NOACK", "BLOCK", &timeout.as_millis().to_string()])?;
        let (mut ids, foreign) = (Vec::new(), self.foreign);
        let kept = &mut self.prefetched;
        link.receive_messages(1, timeout + TIMEOUT, |items| {
            read_reply(items, &mut |entry| {
                let bytes = entry.message_or_json().into_owned();
                // A foreign entry stays in the stream; the next call reports it.
                if decode_message(&bytes, foreign).is_ok() {
                    ids.push(entry.id);
                }
                *kept = Some(bytes);
            })
        })?;
        self.delete(link, &ids)?;
        self.consumer.check(link)
    }

    fn return_unacknowledged(&mut self, link: &mut RedisConnection) -> ServerResult {
        // A foreign entry is still in the stream.
        if let Some(bytes) = self.prefetched.take().filter(|bytes| decode_message(bytes, self.foreign).is_ok()) {
            let mut command = self.consumer.add_command();
            resp::bulk(&mut command, &[&bytes]);
            link.send(&command)?;
            link.receive_reply(TIMEOUT, |items| items.bulk().map(|_| ()))?;
        }
        self.consumer.leave(link)
    }
}
