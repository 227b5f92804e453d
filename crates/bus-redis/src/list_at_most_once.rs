//! Queue on a list whose messages are gone once handed over: `LPUSH`, `RPOP`, and `BRPOP` to sleep.
//!
//! Taking is allowed on a server whose memory is full. So is putting back, by a script that begins with an allowed
//! write which changes nothing.
//!
//! A foreign message among ours is found after it was taken, and put back with all behind it: a script that looks first
//! takes seven times as long. If the connection is lost meanwhile, the next connection puts them back, once: a key
//! beside the list records that it is done. They are lost with a puller that is killed just then. Before a puller is
//! opened, and while a foreign message is next, the puller only looks at it.

use std::time::Duration;

use tickpath_bus_api::PulledMessage;
use tickpath_clock::HostClock;

use crate::batch_size::BatchSizer;
use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::list::{check_list, format_seconds, sibling_key};
use crate::puller::{PullHandler, RedisQueue, decode_message, unique_id};
use crate::resp;
use crate::server::TIMEOUT;

/// Puts messages back to the end that is read, the last one first, unless the key shows that it was done: then the
/// answer was lost.
/// Keys: queue, record of the return. Arguments: life of the record in ms, messages.
const PUT_BACK: &str = "
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('LTRIM', KEYS[1], 0, -1)
local there = redis.call('RPUSH', KEYS[1], unpack(ARGV, 2))
redis.call('SET', KEYS[2], '', 'PX', ARGV[1])
return there";

/// A day: a puller that reconnects later puts the messages back once more. One that reconnects earlier removes the key.
const RETURN_RECORD_MS: &str = "86400000";

pub(crate) struct ListAtMostOnce {
    queue: String,
    /// Kind that foreign messages get; none if they are refused.
    foreign: Option<u8>,
    portion: BatchSizer,
    prefetched: Option<Vec<u8>>,
    pending_return: Vec<Vec<u8>>,
    /// Key that records their return.
    return_record: String,
    clock: HostClock,
    /// True if the message at the head of the queue was foreign at the last look.
    has_foreign_head: bool,
}

impl ListAtMostOnce {
    pub fn new(queue: &str, foreign: Option<u8>, clock: HostClock) -> Self {
        Self {
            queue: queue.to_owned(),
            foreign,
            portion: BatchSizer::new(),
            prefetched: None,
            pending_return: Vec::new(),
            return_record: return_record_key(queue, clock),
            clock,
            has_foreign_head: false,
        }
    }

    /// Puts messages back to where they were taken from.
    fn put_back(&mut self, link: &mut RedisConnection) -> ServerResult {
        if self.pending_return.is_empty() {
            return Ok(());
        }
        let mut command = Vec::new();
        let (queue, messages) = (self.queue.as_str(), self.pending_return.len());
        resp::command_front(
            &mut command,
            &["EVAL", PUT_BACK, "2", queue, &self.return_record, RETURN_RECORD_MS],
            messages,
        );
        self.pending_return.iter().rev().for_each(|bytes| resp::bulk(&mut command, &[bytes]));
        link.send(&command)?;
        link.receive_reply(TIMEOUT, |items| items.integer())?;
        self.pending_return.clear();
        self.has_foreign_head = true;
        let record = std::mem::replace(&mut self.return_record, return_record_key(&self.queue, self.clock));
        link.send_unanswered(&resp::encode_command(&["DEL", &record]))
    }

    /// Puts back pending messages. Then, while the next message is foreign, refuses it without taking it.
    fn return_pending(&mut self, link: &mut RedisConnection) -> ServerResult {
        self.put_back(link)?;
        if self.has_foreign_head {
            self.check(link)?;
            self.has_foreign_head = false;
        }
        Ok(())
    }
}

impl RedisQueue for ListAtMostOnce {
    const REMOVES_ON_READ: bool = true;

    fn name(&self) -> &str {
        &self.queue
    }

    fn check(&self, link: &mut RedisConnection) -> ServerResult {
        check_list(link, &self.queue, self.foreign)
    }

    fn fetch(&mut self, link: &mut RedisConnection, limit: usize, handler: &mut PullHandler<'_>) -> ServerResult {
        self.return_pending(link)?;
        if let Some(bytes) = self.prefetched.take() {
            handler(PulledMessage::without_tag(decode_message(&bytes, self.foreign)?, false));
            return Ok(());
        }
        let limit = self.portion.limit(limit);
        let Self { queue, foreign, portion, pending_return, .. } = self;
        let mut refused = None;
        link.request_messages(limit, &["RPOP", queue, &limit.to_string()], |items| {
            for index in 0..items.array()? {
                let bytes = items.bulk()?;
                portion.record_size(bytes.len());
                match decode_message(bytes, *foreign) {
                    Ok(message) if pending_return.is_empty() => handler(PulledMessage::without_tag(message, false)),
                    Err(e) if index == 0 => {
                        refused = Some(e);
                        pending_return.push(bytes.to_vec());
                    }
                    _ => pending_return.push(bytes.to_vec()),
                }
            }
            Ok(())
        })?;
        self.put_back(link)?;
        refused.map_or(Ok(()), Err)
    }

    fn wait_for_message(&mut self, link: &mut RedisConnection, timeout: Duration) -> ServerResult {
        if self.prefetched.is_some() {
            return Ok(());
        }
        match self.return_pending(link) {
            // The next call reports it.
            Err(RedisServerError::ForeignMessage) => return Ok(()),
            begun => begun?,
        }
        link.send(&resp::encode_command(&["BRPOP", &self.queue, &format_seconds(timeout)]))?;
        let received = link.receive_messages(1, timeout + TIMEOUT, |items| {
            if items.array()? == 0 {
                return Ok(None);
            }
            let _key = items.bulk()?;
            Ok(Some(items.bulk()?.to_vec()))
        })?;
        match received {
            // The next call finds it there, and reports it.
            Some(bytes) if decode_message(&bytes, self.foreign).is_err() => {
                self.pending_return.push(bytes);
                self.put_back(link)
            }
            received => {
                self.prefetched = received;
                Ok(())
            }
        }
    }

    fn return_unacknowledged(&mut self, link: &mut RedisConnection) -> ServerResult {
        self.pending_return.extend(self.prefetched.take());
        self.put_back(link)
    }
}

/// Returns a unique key beside a queue.
fn return_record_key(queue: &str, clock: HostClock) -> String {
    sibling_key(queue, &format!("back/{}", unique_id(clock)))
}
