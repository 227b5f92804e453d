//! A list whose messages are gone when they were handed over: `LPUSH`, `RPOP`, and `BRPOP` for who sleeps.
//!
//! What takes is allowed on a server whose memory is full; what puts back is too, in a script that begins with a write that
//! is allowed and changes nothing.

use std::sync::LazyLock;
use std::time::Duration;

use tickpath_bus_api::Pulled;

use crate::error::ServerError;
use crate::link::Link;
use crate::puller::{MAX_PULLED_BYTES, Queue, message};
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

/// Takes the next message, if it is ours. Key: queue.
const TAKE_ONE: &str = "
local message = redis.call('LINDEX', KEYS[1], -1)
if message and not ours(message) then return redis.error_reply('FOREIGN it is no message of ours') end
return redis.call('RPOP', KEYS[1])";

/// Puts a message to where the next one is taken from. Key: queue. Argument: message.
const PUT_BACK: &str = "
redis.call('LTRIM', KEYS[1], 0, -1)
return redis.call('RPUSH', KEYS[1], ARGV[1])";

/// [`TAKE`] with what it calls, put together once.
static SCRIPT: LazyLock<String> = LazyLock::new(|| format!("{OURS}{TAKE}"));

/// [`TAKE_ONE`] with what it calls.
static SCRIPT_FOR_ONE: LazyLock<String> = LazyLock::new(|| format!("{OURS}{TAKE_ONE}"));

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

    /// Takes one message. Where none is refused, that is the server's own command, which is faster than a script.
    fn take_one(&self, link: &mut Link, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        let command: &[&str] = match self.foreign {
            Some(_) => &["RPOP", self.queue.as_str()],
            None => &["EVAL", SCRIPT_FOR_ONE.as_str(), "1", self.queue.as_str()],
        };
        let foreign = self.foreign;
        link.ask(command, |items| Ok(items.bulk_or_null()?.map_or(Ok(()), |bytes| take(bytes, foreign, handler))))?
    }
}

/// Hands over what was taken.
fn take(bytes: &[u8], foreign: Option<u8>, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
    handler(Pulled::plain(message(bytes, foreign)?, false));
    Ok(())
}

/// Puts a message to where the next one is taken from.
fn put_back(link: &mut Link, queue: &str, bytes: &[u8]) -> Result<(), ServerError> {
    let mut command = Vec::new();
    resp::head(&mut command, &["EVAL", PUT_BACK, "1", queue]);
    resp::bulk(&mut command, &[bytes]);
    link.send(&command)?;
    link.answer(TIMEOUT, |items| items.integer()).map(|_| ())
}

/// Refuses a queue whose next message is another program's, before anything is taken from it; and what is no list.
pub(crate) fn check(link: &mut Link, queue: &str, foreign: Option<u8>) -> Result<(), ServerError> {
    let looked = link.ask(&["LINDEX", queue, "-1"], |items| {
        let next = items.bulk_or_null()?;
        Ok(next.map_or(Ok(()), |bytes| message(bytes, foreign).map(|_| ())))
    });
    looked?
}

impl Queue for ListAtMostOnce {
    const TAKES_AWAY: bool = true;

    fn name(&self) -> &str {
        &self.queue
    }

    fn check(&self, link: &mut Link) -> Result<(), ServerError> {
        check(link, &self.queue, self.foreign)
    }

    fn resume(&mut self, _link: &mut Link, _has_kept_all: bool) -> Result<(), ServerError> {
        Ok(())
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        if let Some(message) = self.kept.take() {
            return take(&message, self.foreign, handler);
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
                Ok(bytes) => take(bytes, foreign, handler),
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
            Some(bytes) if message(&bytes, self.foreign).is_err() => put_back(link, &self.queue, &bytes),
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
        self.kept.take().map_or(Ok(()), |message| put_back(link, &self.queue, &message))
    }
}

/// A time as commands on lists want it, to the millisecond.
pub(crate) fn seconds(timeout: Duration) -> String {
    format!("{:.3}", timeout.as_secs_f64())
}
