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

use tickpath_bus_api::Pulled;
use tickpath_clock::HostClock;

use crate::error::ServerError;
use crate::link::Link;
use crate::list::{beside, check, seconds};
use crate::portion::Portion;
use crate::puller::{Queue, message, unique_id};
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
const SAID_MS: &str = "86400000";

/// State of one puller.
pub(crate) struct ListAtMostOnce {
    queue: String,
    /// Kind that foreign messages get; none if they are refused.
    foreign: Option<u8>,
    portion: Portion,
    /// Message that came during a sleep.
    kept: Option<Vec<u8>>,
    /// Messages to be put back, the next one first.
    back: Vec<Vec<u8>>,
    /// Key that records their return.
    said: String,
    clock: HostClock,
    /// True if the message at the head of the queue was foreign at the last look.
    is_wary: bool,
}

impl ListAtMostOnce {
    /// Creates the state of a puller of this queue.
    pub fn new(queue: &str, foreign: Option<u8>, clock: HostClock) -> Self {
        Self {
            queue: queue.to_owned(),
            foreign,
            portion: Portion::new(),
            kept: None,
            back: Vec::new(),
            said: key(queue, clock),
            clock,
            is_wary: false,
        }
    }

    /// Puts messages back to where they were taken from.
    fn put_back(&mut self, link: &mut Link) -> Result<(), ServerError> {
        if self.back.is_empty() {
            return Ok(());
        }
        let mut command = Vec::new();
        let (queue, messages) = (self.queue.as_str(), self.back.len());
        resp::front(&mut command, &["EVAL", PUT_BACK, "2", queue, &self.said, SAID_MS], messages);
        self.back.iter().rev().for_each(|bytes| resp::bulk(&mut command, &[bytes]));
        link.send(&command)?;
        link.answer(TIMEOUT, |items| items.integer())?;
        self.back.clear();
        self.is_wary = true;
        let said = std::mem::replace(&mut self.said, key(&self.queue, self.clock));
        let mut forgetting = Vec::new();
        resp::command(&mut forgetting, &["DEL", &said]);
        link.tell(&forgetting)
    }

    /// Puts back pending messages. Then, while the next message is foreign, refuses it without taking it.
    fn begin(&mut self, link: &mut Link) -> Result<(), ServerError> {
        self.put_back(link)?;
        if self.is_wary {
            self.check(link)?;
            self.is_wary = false;
        }
        Ok(())
    }
}

impl Queue for ListAtMostOnce {
    const TAKES_AWAY: bool = true;

    fn name(&self) -> &str {
        &self.queue
    }

    fn check(&self, link: &mut Link) -> Result<(), ServerError> {
        check(link, &self.queue, self.foreign)
    }

    fn resume(&mut self, _link: &mut Link, _has_kept_all: bool) -> Result<bool, ServerError> {
        Ok(false)
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        self.begin(link)?;
        if let Some(bytes) = self.kept.take() {
            handler(Pulled::plain(message(&bytes, self.foreign)?, false));
            return Ok(());
        }
        let limit = self.portion.limit(limit);
        let Self { queue, foreign, portion, back, .. } = self;
        let mut refused = None;
        link.ask_for(limit, &["RPOP", queue, &limit.to_string()], |items| {
            for at in 0..items.array()? {
                let bytes = items.bulk()?;
                portion.came(bytes.len());
                match message(bytes, *foreign) {
                    Ok(message) if back.is_empty() => handler(Pulled::plain(message, false)),
                    Err(e) if at == 0 => {
                        refused = Some(e);
                        back.push(bytes.to_vec());
                    }
                    _ => back.push(bytes.to_vec()),
                }
            }
            Ok(())
        })?;
        self.put_back(link)?;
        refused.map_or(Ok(()), Err)
    }

    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if self.kept.is_some() {
            return Ok(());
        }
        match self.begin(link) {
            // The next call reports it.
            Err(ServerError::Foreign) => return Ok(()),
            begun => begun?,
        }
        let mut command = Vec::new();
        resp::command(&mut command, &["BRPOP", &self.queue, &seconds(timeout)]);
        link.send(&command)?;
        let came = link.answer_of(1, timeout + TIMEOUT, |items| {
            if items.array()? == 0 {
                return Ok(None);
            }
            let _key = items.bulk()?;
            Ok(Some(items.bulk()?.to_vec()))
        })?;
        match came {
            // The next call finds it there, and reports it.
            Some(bytes) if message(&bytes, self.foreign).is_err() => {
                self.back.push(bytes);
                self.put_back(link)
            }
            came => {
                self.kept = came;
                Ok(())
            }
        }
    }

    fn is_holding(&self) -> bool {
        false
    }

    fn acknowledge(&mut self, _link: &mut Link) -> Result<(), ServerError> {
        Ok(())
    }

    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError> {
        self.back.extend(self.kept.take());
        self.put_back(link)
    }
}

/// Returns a unique key beside a queue.
fn key(queue: &str, clock: HostClock) -> String {
    beside(queue, &format!("back/{}", unique_id(clock)))
}
