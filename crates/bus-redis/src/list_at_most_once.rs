//! A list whose messages are gone when they were handed over: `LPUSH`, `RPOP`, and `BRPOP` for who sleeps.

use std::sync::LazyLock;
use std::time::Duration;

use tickpath_bus_api::{Pulled, wire};

use crate::error::ServerError;
use crate::link::Link;
use crate::puller::{MAX_PULLED_BYTES, Queue, hand_over};
use crate::resp;
use crate::server::TIMEOUT;

/// A function that tells a message of ours, as `wire::decode` does, for scripts of the server.
pub(crate) const OURS: &str = "
local function ours(message)
  local version = string.sub(message, 16, 16)
  return string.sub(message, 10, 15) == 'tickpt' and string.byte(message, 9) >= 16
    and (version == '1' or version == '2' and #message >= 40)
end
";

/// Takes several messages, as long as they have no more than so many bytes, and up to the first one that is not ours; that
/// one stays. Key: queue. Arguments: limit, bytes, whether those of others are taken, too.
const TAKE: &str = "
local found, bytes, limit = {}, 0, tonumber(ARGV[1])
while #found < limit do
  local chunk, taken = math.min(16, limit - #found), 0
  local there = redis.call('LRANGE', KEYS[1], -chunk, -1)
  for at = #there, 1, -1 do
    local is_foreign = ARGV[3] == '0' and not ours(there[at])
    if is_foreign and #found == 0 then return redis.error_reply('FOREIGN it is no message of ours') end
    bytes = bytes + #there[at]
    if is_foreign or #found > 0 and bytes > tonumber(ARGV[2]) then limit = 0 break end
    found[#found + 1] = there[at]
    taken = taken + 1
  end
  if taken > 0 then redis.call('LTRIM', KEYS[1], 0, -taken - 1) end
  if taken < chunk then break end
end
return found";

/// [`TAKE`] with what it calls, put together once.
static SCRIPT: LazyLock<String> = LazyLock::new(|| format!("{OURS}{TAKE}"));

/// One puller's view.
pub(crate) struct ListAtMostOnce {
    queue: String,
    /// The kind that messages of others get.
    foreign: Option<u8>,
    /// What came while it slept.
    kept: Option<Vec<u8>>,
}

impl ListAtMostOnce {
    /// Of the queue of this name.
    pub fn new(queue: &str, foreign: Option<u8>) -> Self {
        Self { queue: queue.to_owned(), foreign, kept: None }
    }

    /// Takes one message by the server's own command, which is faster than a script.
    fn take_one(&mut self, link: &mut Link, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        let Self { queue, foreign, .. } = self;
        let mut refused = None;
        link.ask(&["RPOP", queue], |items| {
            let Some(bytes) = items.bulk_or_null()? else { return Ok(()) };
            if hand_over(bytes, false, *foreign, handler).is_err() {
                refused = Some(bytes.to_vec());
            }
            Ok(())
        })?;
        refused.map_or(Ok(()), |bytes| self.put_back(link, &bytes))
    }

    /// Gives back what another program has pushed; that is the error then.
    fn put_back(&self, link: &mut Link, bytes: &[u8]) -> Result<(), ServerError> {
        give_back(link, &self.queue, bytes)?;
        Err(ServerError::Foreign)
    }
}

/// Puts a message to where the next one is taken from.
fn give_back(link: &mut Link, queue: &str, bytes: &[u8]) -> Result<(), ServerError> {
    let mut command = Vec::new();
    resp::head(&mut command, &["RPUSH", queue]);
    resp::bulk(&mut command, &[bytes]);
    link.send(&command)?;
    link.answer(TIMEOUT, |items| items.integer()).map(|_| ())
}

/// Refuses a queue whose next message is another program's, before anything is taken from it; and what is no list.
pub(crate) fn check(link: &mut Link, queue: &str, foreign: Option<u8>) -> Result<(), ServerError> {
    let is_good = link.ask(&["LINDEX", queue, "-1"], |items| {
        let next = items.bulk_or_null()?;
        Ok(next.is_none_or(|bytes| wire::pulled(bytes, foreign).is_some()))
    });
    if is_good? { Ok(()) } else { Err(ServerError::Foreign) }
}

impl Queue for ListAtMostOnce {
    fn name(&self) -> &str {
        &self.queue
    }

    fn resume(&mut self, link: &mut Link) -> Result<(), ServerError> {
        check(link, &self.queue, self.foreign)
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        if let Some(message) = self.kept.take() {
            return hand_over(&message, false, self.foreign, handler);
        }
        if limit == 1 {
            return self.take_one(link, handler);
        }
        let (limit, most) = (limit.to_string(), MAX_PULLED_BYTES.to_string());
        let foreign = self.foreign;
        let takes_all = if foreign.is_some() { "1" } else { "0" };
        let taken = link.ask(&["EVAL", SCRIPT.as_str(), "1", &self.queue, &limit, &most, takes_all], |items| {
            let count = items.array()?;
            Ok((0..count).try_for_each(|_| match items.bulk() {
                Ok(bytes) => hand_over(bytes, false, foreign, handler),
                Err(e) => Err(e.into()),
            }))
        });
        taken?
    }

    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if self.kept.is_some() {
            return Ok(());
        }
        let mut command = Vec::new();
        resp::command(&mut command, &["BRPOP", &self.queue, &seconds(timeout)]);
        link.send(&command)?;
        let came = link.answer(timeout + TIMEOUT, |items| {
            if items.array()? == 0 {
                return Ok(None);
            }
            let _key = items.bulk()?;
            Ok(Some(items.bulk()?.to_vec()))
        })?;
        match came {
            // The next call finds it there, and says so.
            Some(bytes) if wire::pulled(&bytes, self.foreign).is_none() => give_back(link, &self.queue, &bytes),
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
        self.kept.take().map_or(Ok(()), |message| give_back(link, &self.queue, &message))
    }
}

/// A time as commands on lists want it, to the millisecond.
pub(crate) fn seconds(timeout: Duration) -> String {
    format!("{:.3}", timeout.as_secs_f64())
}
