//! A list whose messages stay with their puller until they are acknowledged.
//!
//! ```text
//!   LPUSH ──> QUEUE ────────┬──> QUEUE/taken/ID ── acknowledged ──> gone
//!             QUEUE/again ──┘          │
//!                  ▲                   │ dropped, or QUEUE/alive/ID has expired
//!                  └───────────────────┘
//! ```
//! A message is in exactly one of these lists, and only the server moves it. The oldest lies at the right end of each.
//! `QUEUE/pullers` has the ids of all pullers; who finds that one's sign of life has expired gives back what it had.
//! No name of a queue has a '/', so that these keys belong to no other queue.

use std::sync::LazyLock;
use std::time::Duration;

use tickpath_bus_api::{Pulled, wire};
use tickpath_clock::HostClock;

use crate::error::ServerError;
use crate::link::Link;
use crate::list_at_most_once::{OURS, check, seconds};
use crate::moment::Moment;
use crate::puller::{MAX_PULLED_BYTES, Queue, SHORTEST_SLEEP, hand_over, milliseconds, unique_id};
use crate::resp::{self, UNEXPECTED};
use crate::server::TIMEOUT;

/// Begins a connection, with a new id: what the last connection asked for late lands with the old one, and falls.
/// Gives back what was taken, but for the oldest, which are known here; gives how many these are. None are if the old
/// sign of life is not unbroken: then others may have given them back. Gives, too, how many were taken before that.
/// Keys: old taken, old alive, new taken, new alive, again, pullers.
/// Arguments: how many of the oldest are known, silence in ms, old id, new id.
const RESUME: &str = "
local known = redis.call('GET', KEYS[2]) == 'unbroken' and tonumber(ARGV[1]) or 0
local there = redis.call('LLEN', KEYS[1])
for _ = 1, there - known do
  redis.call('LMOVE', KEYS[1], KEYS[5], 'LEFT', 'RIGHT')
end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[3]) end
redis.call('DEL', KEYS[2])
redis.call('SREM', KEYS[6], ARGV[3])
redis.call('SET', KEYS[4], 'unbroken', 'PX', ARGV[2])
redis.call('SADD', KEYS[6], ARGV[4])
return {known, there}";

/// Gives back all that was taken. Keys: taken, alive, again, pullers. Argument: id.
const LEAVE: &str = "
while redis.call('LMOVE', KEYS[1], KEYS[3], 'LEFT', 'RIGHT') do end
redis.call('SREM', KEYS[4], ARGV[1])
return redis.call('DEL', KEYS[2])";

/// Gives a sign of life. Keys: alive, pullers. Arguments: silence in ms, id.
const RENEW: &str = "
if redis.call('PEXPIRE', KEYS[1], ARGV[1]) == 0 then
  redis.call('SET', KEYS[1], 'broken', 'PX', ARGV[1])
  redis.call('SADD', KEYS[2], ARGV[2])
end
return 0";

/// Takes messages, those that come again first, as long as they have no more than so many bytes, and up to the first one
/// that is not ours; that one stays. Gives how many of them come again, and the messages.
/// Keys: queue, again, taken, alive, pullers.
/// Arguments: limit, silence in ms, id, whether a sign of life is due, bytes, whether those of others are taken, too.
const TAKE: &str = "
local alive = ARGV[4] == '1' and redis.call('PEXPIRE', KEYS[4], ARGV[2]) or redis.call('EXISTS', KEYS[4])
if alive == 0 then
  redis.call('SET', KEYS[4], 'broken', 'PX', ARGV[2])
  redis.call('SADD', KEYS[5], ARGV[3])
end
local limit, found, bytes = tonumber(ARGV[1]), {0}, 0
for from = 2, 1, -1 do
  while #found <= limit do
    local message = redis.call('LMOVE', KEYS[from], KEYS[3], 'RIGHT', 'LEFT')
    if not message then break end
    bytes = bytes + #message
    local is_foreign = ARGV[6] == '0' and not ours(message)
    if is_foreign or #found > 1 and bytes > tonumber(ARGV[5]) then
      redis.call('LMOVE', KEYS[3], KEYS[from], 'LEFT', 'RIGHT')
      if is_foreign and #found == 1 then return redis.error_reply('FOREIGN it is no message of ours') end
      limit = 0
      break
    end
    found[#found + 1] = message
  end
  if from == 2 then found[1] = #found - 1 end
end
return found";

/// All that was taken is done with, but for the newest one if that was not handed over; and gives a sign of life. Gives how
/// many messages these were. Keys: alive, pullers, taken. Arguments: silence in ms, id, 1 if the newest one stays, else 0.
const ACKNOWLEDGE: &str = "
if redis.call('PEXPIRE', KEYS[1], ARGV[1]) == 0 then
  redis.call('SET', KEYS[1], 'broken', 'PX', ARGV[1])
  redis.call('SADD', KEYS[2], ARGV[2])
end
local there = redis.call('LLEN', KEYS[3])
if ARGV[3] == '1' then redis.call('LTRIM', KEYS[3], 0, 0) else redis.call('DEL', KEYS[3]) end
return there - tonumber(ARGV[3])";

/// [`TAKE`] with what it calls, put together once.
static SCRIPT: LazyLock<String> = LazyLock::new(|| format!("{OURS}{TAKE}"));

/// Gives back what pullers had that show no sign of life. Gives how many messages these are.
/// Keys: pullers, again. Argument: queue.
const LOOK_FOR_FALLEN: &str = "
local count = 0
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if redis.call('EXISTS', ARGV[1] .. '/alive/' .. id) == 0 then
    while redis.call('LMOVE', ARGV[1] .. '/taken/' .. id, KEYS[2], 'LEFT', 'RIGHT') do count = count + 1 end
    redis.call('SREM', KEYS[1], id)
  end
end
return count";

/// Gives how many messages nobody has. Keys: queue, again.
const COUNT_WAITING: &str = "return redis.call('LLEN', KEYS[1]) + redis.call('LLEN', KEYS[2])";

/// Removes a queue, and nothing else. Keys: queue, again, pullers. Argument: queue.
const REMOVE: &str = "
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'list' then return redis.error_reply('WRONGTYPE it is no list but a ' .. kind) end
for _, id in ipairs(redis.call('SMEMBERS', KEYS[3])) do
  redis.call('DEL', ARGV[1] .. '/alive/' .. id, ARGV[1] .. '/taken/' .. id)
end
return redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])";

/// One puller's view.
pub(crate) struct ListAtLeastOnce {
    keys: Keys,
    clock: HostClock,
    silence_ns: u64,
    /// Its last sign of life.
    renewed: Moment,
    /// When it last looked for the fallen.
    looked: Moment,
    /// The kind that messages of others get.
    foreign: Option<u8>,
    /// How many of the messages in its list were handed over: the oldest.
    held: usize,
    /// How many that were handed over others may have got since: that is to be told.
    returned: u64,
    /// The newest message in its list, which came while it slept.
    kept: Option<Vec<u8>>,
    /// The connection was lost before the server confirmed that what was handed over is done with.
    is_acknowledging: bool,
}

/// The keys of a queue, and those of one connection of a puller.
struct Keys {
    queue: String,
    again: String,
    pullers: String,
    id: String,
    taken: String,
    alive: String,
}

/// How many messages nobody has taken.
pub(crate) fn count_waiting(link: &mut Link, queue: &str) -> Result<u64, ServerError> {
    let count = link.ask(&["EVAL", COUNT_WAITING, "2", queue, &again(queue)], |items| items.integer())?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Removes a queue with all that is in it.
pub(crate) fn remove(link: &mut Link, queue: &str) -> Result<(), ServerError> {
    link.ask(&["EVAL", REMOVE, "3", queue, &again(queue), &pullers(queue), queue], |items| items.integer())?;
    Ok(())
}

impl ListAtLeastOnce {
    /// Of the queue of this name; a puller that is silent for so long is taken for dead.
    pub fn new(queue: &str, silence_ns: u64, foreign: Option<u8>, clock: HostClock) -> Self {
        let now = Moment::now(clock);
        Self {
            keys: Keys::new(queue, clock),
            clock,
            silence_ns,
            renewed: now,
            looked: now,
            foreign,
            held: 0,
            returned: 0,
            kept: None,
            is_acknowledging: false,
        }
    }

    /// Begins a connection; gives how many of the messages that were known are still taken, and how many there were.
    fn begin(&self, link: &mut Link, new: &Keys, known: &str) -> Result<(i64, i64), ServerError> {
        let (old, silence) = (&self.keys, milliseconds(self.silence_ns));
        let keys = [&old.taken, &old.alive, &new.taken, &new.alive, &new.again, &new.pullers].map(String::as_str);
        let words = [known, silence.as_str(), old.id.as_str(), new.id.as_str()];
        link.ask(&[&["EVAL", RESUME, "6"][..], &keys, &words].concat(), |items| {
            items.array()?;
            Ok((items.integer()?, items.integer()?))
        })
    }

    /// Takes messages that are there; gives how many, the foreign ones too.
    fn take_some(
        &mut self,
        link: &mut Link,
        limit: usize,
        handler: &mut dyn FnMut(Pulled<'_>),
    ) -> Result<usize, ServerError> {
        let is_due = self.renewed.is_past(self.silence_ns / 3);
        if is_due {
            self.renewed = self.renewed.restarted();
        }
        let Keys { queue, again, pullers, id, taken, alive } = &self.keys;
        let (limit, silence) = (limit.to_string(), milliseconds(self.silence_ns));
        let (most, foreign) = (MAX_PULLED_BYTES.to_string(), self.foreign);
        let word = |is: bool| if is { "1" } else { "0" };
        let keys: [&str; 5] = [queue, again, taken, alive, pullers];
        let words = [&limit, &silence, id, word(is_due), &most, word(foreign.is_some())];
        let count = link.ask(&[&["EVAL", SCRIPT.as_str(), "5"][..], &keys, &words].concat(), |items| {
            let count = items.array()?.checked_sub(1).ok_or(UNEXPECTED)?;
            let again = usize::try_from(items.integer()?).map_err(|_| UNEXPECTED)?;
            for at in 0..count {
                // The script has looked what they are.
                let _ = hand_over(items.bulk()?, at < again, foreign, handler);
            }
            Ok(count)
        })?;
        self.held += count;
        Ok(count)
    }

    /// Gives back what the fallen had; gives how many messages these are.
    fn look_for_fallen(&mut self, link: &mut Link) -> Result<i64, ServerError> {
        self.looked = self.looked.restarted();
        let Keys { queue, again, pullers, .. } = &self.keys;
        link.ask(&["EVAL", LOOK_FOR_FALLEN, "2", pullers, again, queue], |items| items.integer())
    }

    /// Appends a sign of life.
    fn renew(&mut self, commands: &mut Vec<u8>) {
        self.renewed = self.renewed.restarted();
        let Keys { alive, pullers, id, .. } = &self.keys;
        let silence = milliseconds(self.silence_ns);
        resp::command(commands, &["EVAL", RENEW, "2", alive, pullers, &silence, id]);
    }
}

impl Queue for ListAtLeastOnce {
    fn name(&self) -> &str {
        &self.keys.queue
    }

    fn resume(&mut self, link: &mut Link) -> Result<(), ServerError> {
        check(link, &self.keys.queue, self.foreign)?;
        self.renewed = self.renewed.restarted();
        let new = Keys::new(&self.keys.queue, self.clock);
        let kept = usize::from(self.kept.is_some());
        let known = self.held + kept;
        let (still_known, there) = self.begin(link, &new, &known.to_string())?;
        self.keys = new;
        if known > 0 && still_known == 0 {
            self.returned += self.held as u64;
            (self.held, self.kept, self.is_acknowledging) = (0, None, false);
        } else if self.is_acknowledging && there == kept as i64 {
            // The server had done it, and its answer was lost.
            (self.held, self.is_acknowledging) = (0, false);
        }
        Ok(())
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        if let Some(message) = self.kept.take() {
            self.held += 1;
            return hand_over(&message, false, self.foreign, handler);
        }
        // Also where there is always something: what the fallen had must not wait for an empty queue.
        if self.looked.is_past(self.silence_ns / 2) {
            self.look_for_fallen(link)?;
        }
        self.take_some(link, limit, handler).map(|_count| ())
    }

    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if self.kept.is_some() {
            return Ok(());
        }
        // The sign of life outlives the sleep, so that what comes during it is never nobody's.
        let timeout = timeout.min(Duration::from_nanos(self.silence_ns / 3)).max(SHORTEST_SLEEP);
        let mut commands = Vec::new();
        self.renew(&mut commands);
        let Keys { queue, taken, .. } = &self.keys;
        resp::command(&mut commands, &["BLMOVE", queue, taken, "RIGHT", "LEFT", &seconds(timeout)]);
        link.send(&commands)?;
        link.answer(TIMEOUT, |items| items.integer())?;
        let came = link.answer(timeout + TIMEOUT, |items| Ok(items.bulk_or_null()?.map(<[u8]>::to_vec)))?;
        if came.as_ref().is_some_and(|bytes| wire::pulled(bytes, self.foreign).is_none()) {
            // The next call finds it there, and says so.
            return link.ask(&["LMOVE", taken, queue, "LEFT", "RIGHT"], |items| items.bulk_or_null().map(|_| ()));
        }
        self.kept = came;
        Ok(())
    }

    fn is_holding(&self) -> bool {
        self.held > 0 || self.returned > 0
    }

    fn acknowledge(&mut self, link: &mut Link) -> Result<(), ServerError> {
        self.is_acknowledging = true;
        self.renewed = self.renewed.restarted();
        let Keys { alive, pullers, taken, id, .. } = &self.keys;
        let silence = milliseconds(self.silence_ns);
        // The newest, which was not handed over, stays.
        let kept = if self.kept.is_some() { "1" } else { "0" };
        let command: [&str; 9] = ["EVAL", ACKNOWLEDGE, "3", alive, pullers, taken, &silence, id, kept];
        let done = link.ask(&command, |items| items.integer())?;
        let returned = self.returned + (self.held as u64).saturating_sub(u64::try_from(done).unwrap_or(0));
        (self.held, self.returned, self.is_acknowledging) = (0, 0, false);
        if returned == 0 { Ok(()) } else { Err(ServerError::NotAcknowledged(returned)) }
    }

    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError> {
        let Keys { again, pullers, id, taken, alive, .. } = &self.keys;
        link.ask(&["EVAL", LEAVE, "4", taken, alive, again, pullers, id], |items| items.integer())?;
        Ok(())
    }
}

impl Keys {
    /// With an id that nobody has.
    fn new(queue: &str, clock: HostClock) -> Self {
        let id = unique_id(clock);
        Self {
            queue: queue.to_owned(),
            again: again(queue),
            pullers: pullers(queue),
            taken: format!("{queue}/taken/{id}"),
            alive: format!("{queue}/alive/{id}"),
            id,
        }
    }
}

fn again(queue: &str) -> String {
    format!("{queue}/again")
}

fn pullers(queue: &str) -> String {
    format!("{queue}/pullers")
}
