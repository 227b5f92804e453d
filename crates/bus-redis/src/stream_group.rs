//! A queue on a stream: one group of consumers, of which each puller is one.
//!
//! ```text
//!   XADD ──> stream ── XREADGROUP ──> pending with one consumer ── XACK, XDEL ──> gone
//!                                      │             ▲
//!                                      └─ XAUTOCLAIM ┘  with another one, when it is idle
//! ```

use tickpath_bus_api::Pulled;
use tickpath_clock::HostClock;

use crate::error::ServerError;
use crate::link::Link;
use crate::puller::{hand_over, milliseconds, unique_id};
use crate::resp;
use crate::stream::{Entry, FIELD, Id, read_entries};

/// The most entries that are asked for at once: so many times the longest message may come in one answer.
pub(crate) const MOST_ENTRIES: usize = 64;

/// The group's name.
const GROUP: &str = "tickpath";

/// A year: what nobody holds any more is marked as idle for so long, and whoever comes can claim it.
const LONG_IDLE_MS: &str = "31536000000";

/// Deletes consumers that hold nothing, and have been idle for so long.
/// Key: stream. Arguments: group, silence in ms.
const TIDY: &str = "
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  if consumer[4] == 0 and consumer[6] > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer[2])
  end
end
return 0";

/// Deletes a consumer if it holds nothing. Key: stream. Arguments: group, consumer.
const LEAVE: &str = "
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])";

/// Counts what was not delivered to anybody, and what was given back.
/// Key: stream. Arguments: group, the idle time of what was given back.
const COUNT_WAITING: &str = "
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for _, fields in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local group = {}
  for i = 1, #fields, 2 do group[fields[i]] = fields[i + 1] end
  if group['name'] == ARGV[1] then
    local fresh = group['lag'] or redis.call('XLEN', KEYS[1]) - group['pending']
    return fresh + #redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[2], '-', '+', 1000000)
  end
end
return redis.call('XLEN', KEYS[1])";

/// One puller in the group.
pub(crate) struct Consumer {
    queue: String,
    id: String,
    silence: String,
}

/// How many messages nobody has taken.
pub(crate) fn count_waiting(link: &mut Link, queue: &str) -> Result<u64, ServerError> {
    let count = link.ask(&["EVAL", COUNT_WAITING, "1", queue, GROUP, LONG_IDLE_MS], |items| items.integer())?;
    Ok(u64::try_from(count).unwrap_or(0))
}

impl Consumer {
    /// Of the queue of this name.
    pub fn new(queue: &str, silence_ns: u64, clock: HostClock) -> Self {
        Self { queue: queue.to_owned(), id: unique_id(clock), silence: milliseconds(silence_ns) }
    }

    /// What the queue is called.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Makes the group if it is not there; it begins with the oldest entry.
    pub fn join(&self, link: &mut Link) -> Result<(), ServerError> {
        let create = ["XGROUP", "CREATE", self.queue.as_str(), GROUP, "0", "MKSTREAM"];
        match link.ask(&create, |items| items.status().map(|_| ())) {
            Err(ServerError::Refused(line)) if line.starts_with("BUSYGROUP") => {}
            made => made?,
        }
        link.ask(&["EVAL", TIDY, "1", &self.queue, GROUP, &self.silence], |items| items.integer())?;
        Ok(())
    }

    /// Asks for entries that nobody has had. The answer is for [`read_reply`](crate::stream::read_reply).
    pub fn ask(&self, link: &mut Link, limit: usize, options: &[&str]) -> Result<(), ServerError> {
        let limit = limit.to_string();
        let question = ["XREADGROUP", "GROUP", GROUP, self.id.as_str(), "COUNT", limit.as_str()];
        let place = ["STREAMS", self.queue.as_str(), ">"];
        link.send(&packed(&[&question[..], options, &place].concat()))
    }

    /// Takes entries from consumers that have been silent for too long, and looks at the pending ones from `start` on.
    /// Gives where the next look goes on.
    pub fn claim(
        &self,
        link: &mut Link,
        limit: usize,
        start: Id,
        each: &mut dyn FnMut(Entry<'_>),
    ) -> Result<Id, ServerError> {
        let (start, limit) = (start.to_string(), limit.to_string());
        let command: [&str; 8] = ["XAUTOCLAIM", &self.queue, GROUP, &self.id, &self.silence, &start, "COUNT", &limit];
        link.ask(&command, |items| {
            items.array()?;
            let next = Id::read(items)?;
            read_entries(items, each)?;
            Ok(next)
        })
    }

    /// The command that claims entries for the puller that has them already, which restarts their idle time.
    pub fn holding(&self, ids: &[Id]) -> Vec<u8> {
        self.on_entries(&["XCLAIM", &self.queue, GROUP, &self.id, "0"], ids, &["JUSTID"])
    }

    /// The command that gives entries back: whoever comes can claim them.
    pub fn giving_back(&self, ids: &[Id]) -> Vec<u8> {
        self.on_entries(&["XCLAIM", &self.queue, GROUP, &self.id, "0"], ids, &["IDLE", LONG_IDLE_MS, "JUSTID"])
    }

    /// The command that deletes entries.
    pub fn deleting(&self, ids: &[Id]) -> Vec<u8> {
        self.on_entries(&["XDEL", &self.queue], ids, &[])
    }

    /// The command that says that entries are done with.
    pub fn acknowledging(&self, ids: &[Id]) -> Vec<u8> {
        self.on_entries(&["XACK", &self.queue, GROUP], ids, &[])
    }

    /// The command that adds a message, up to the message.
    pub fn adding(&self) -> Vec<u8> {
        let mut head = Vec::new();
        resp::head(&mut head, &["XADD", &self.queue, "*", FIELD]);
        head
    }

    /// Leaves the group, unless something is pending.
    pub fn leave(&self, link: &mut Link) -> Result<(), ServerError> {
        link.ask(&["EVAL", LEAVE, "1", &self.queue, GROUP, &self.id], |items| items.integer())?;
        Ok(())
    }

    fn on_entries(&self, front: &[&str], ids: &[Id], behind: &[&str]) -> Vec<u8> {
        let ids: Vec<String> = ids.iter().map(Id::to_string).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        packed(&[front, ids.as_slice(), behind].concat())
    }
}

/// Hands an entry's message over, as [`hand_over`] does.
pub(crate) fn hand_over_entry(
    entry: &Entry<'_>,
    redelivered: bool,
    foreign: Option<u8>,
    handler: &mut dyn FnMut(Pulled<'_>),
) -> Result<(), ServerError> {
    hand_over(&entry.whole(), redelivered, foreign, handler)
}

fn packed(parts: &[&str]) -> Vec<u8> {
    let mut command = Vec::new();
    resp::command(&mut command, parts);
    command
}
