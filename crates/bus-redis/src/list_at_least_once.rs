//! Queue on a list: a message stays assigned to its puller until it is acknowledged.
//!
//! ```text
//!   LPUSH ──> QUEUE ──────────┬──> {QUEUE}/taken/ID ── acknowledged ──> gone
//!             {QUEUE}/again ──┘            │
//!                  ▲                       │ given back, dropped, or {QUEUE}/alive/ID has expired
//!                  └───────────────────────┘
//! ```
//! A message is in exactly one of these lists, and only the server moves it. The oldest lies at the right end of each.
//! `{QUEUE}/pullers` has the ids of all pullers; a puller that finds another one's heartbeat key expired returns that
//! one's messages. No queue name contains a '/', so these keys belong to no other queue; the part in braces decides the
//! slot of a cluster, so all keys lie in the queue's own.
//!
//! Each script begins with a write that is allowed on a server whose memory is full, and that changes nothing where
//! nothing is due: its later commands are allowed then, too, so a full server can be emptied.

use std::time::Duration;

use tickpath_bus_api::Pulled;
use tickpath_clock::{HostClock, SetOnce};

use crate::error::ServerError;
use crate::link::Link;
use crate::list::{OURS, beside, check, seconds};
use crate::moment::Moment;
use crate::puller::{MAX_PULLED_BYTES, Queue, SHORTEST_SLEEP, message, milliseconds, unique_id};
use crate::resp::{self, UNEXPECTED};
use crate::server::TIMEOUT;

/// Lua function that moves the newest taken message to the list of returned ones; false if there is none. A foreign
/// message that no puller asked for goes back to the queue, because it was taken only until its puller had seen it.
const GIVE_BACK_NEWEST: &str = "
local function give_back_newest(taken, again, queue, takes_all)
  local message = redis.call('LINDEX', taken, 0)
  if not message then return false end
  local is_known = takes_all == '1' or ours(message)
  return redis.call('LMOVE', taken, is_known and again or queue, 'LEFT', 'RIGHT')
end
";

/// Starts a connection under a new id, so that late commands of the last connection act on the old id and have no
/// effect. Returns the taken messages to the queue, except the oldest ones, which the puller knows. None count as known
/// unless the old heartbeat is unbroken: else they may have been returned already. Result: the number of known
/// messages, and the number taken before.
/// Keys: old taken, old alive, new taken, new alive, again, pullers, queue.
/// Arguments: how many of the oldest are known, silence in ms, old id, new id, 1 if foreign messages are taken.
const RESUME: &str = "
redis.call('DEL', KEYS[4])
local known = redis.call('GET', KEYS[2]) == 'unbroken' and tonumber(ARGV[1]) or 0
local there = redis.call('LLEN', KEYS[1])
for _ = 1, there - known do give_back_newest(KEYS[1], KEYS[5], KEYS[7], ARGV[5]) end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[3]) end
redis.call('DEL', KEYS[2])
redis.call('SREM', KEYS[6], ARGV[3])
redis.call('SET', KEYS[4], 'unbroken', 'PX', ARGV[2])
redis.call('SADD', KEYS[6], ARGV[4])
return {known, there}";

/// Returns all taken messages to the queue. Keys: taken, alive, again, pullers, queue.
/// Arguments: id, 1 if foreign messages are taken.
const LEAVE: &str = "
redis.call('DEL', KEYS[2])
while give_back_newest(KEYS[1], KEYS[3], KEYS[5], ARGV[2]) do end
return redis.call('SREM', KEYS[4], ARGV[1])";

/// Renews the heartbeat. Keys: alive, pullers. Arguments: silence in ms, id.
const RENEW: &str = "
if redis.call('PEXPIRE', KEYS[1], ARGV[1]) == 0 then
  redis.call('SET', KEYS[1], 'broken', 'PX', ARGV[1])
  redis.call('SADD', KEYS[2], ARGV[2])
end
";

/// Takes messages up to a limit of bytes, returned ones first. Result: how many of them were returned ones, and the
/// messages. The puller looks for foreign messages among them, because the script would take longer.
/// Keys: queue, again, taken, alive, pullers. Arguments: limit, silence in ms, id, 1 if a heartbeat is due, bytes.
const TAKE: &str = "
redis.call('SREM', KEYS[5], '')
local alive = ARGV[4] == '1' and redis.call('PEXPIRE', KEYS[4], ARGV[2]) or redis.call('EXISTS', KEYS[4])
if alive == 0 then
  redis.call('SET', KEYS[4], 'broken', 'PX', ARGV[2])
  redis.call('SADD', KEYS[5], ARGV[3])
end
local call, taken, limit, most = redis.call, KEYS[3], tonumber(ARGV[1]), tonumber(ARGV[5])
local found, count, bytes = {0}, 0, 0
for from = 2, 1, -1 do
  local key = KEYS[from]
  while count < limit do
    local message = call('LMOVE', key, taken, 'RIGHT', 'LEFT')
    if not message then break end
    bytes = bytes + #message
    if count > 0 and bytes > most then
      call('LMOVE', taken, key, 'LEFT', 'RIGHT')
      limit = 0
      break
    end
    count = count + 1
    found[count + 1] = message
  end
  if from == 2 then found[1] = count end
end
return found";

/// Appended to [`RENEW`]: acknowledges all taken messages, except the newest if that was not handed over. Result: the
/// number of messages. Keys: alive, pullers, taken. Arguments: silence in ms, id, 1 if the newest one stays, else 0.
const ACKNOWLEDGE: &str = "
local there = redis.call('LLEN', KEYS[3])
if ARGV[3] == '1' then redis.call('LTRIM', KEYS[3], 0, 0) else redis.call('DEL', KEYS[3]) end
return there - tonumber(ARGV[3])";

/// Appended to [`RENEW`]: gives back one message, named by the number of newer ones. Result: 1, or 0 if it is taken no
/// more. The id replaces the message first, because the server can remove no item by its index.
/// Keys: alive, pullers, taken, again. Arguments: silence in ms, id, number of newer messages.
const GIVE_BACK: &str = "
local message = redis.call('LINDEX', KEYS[3], ARGV[3])
if not message then return 0 end
redis.call('LSET', KEYS[3], ARGV[3], ARGV[2])
redis.call('LREM', KEYS[3], 1, ARGV[2])
redis.call('RPUSH', KEYS[4], message)
return 1";

/// Appended to [`RENEW`]: puts the newest messages back to where they were. Keys: alive, pullers, taken, queue, again.
/// Arguments: silence in ms, id, number that go to the queue, number of the next ones that go to `again`.
const PUT_BACK: &str = "
for to = 4, 5 do
  for _ = 1, tonumber(ARGV[to - 1]) do redis.call('LMOVE', KEYS[3], KEYS[to], 'LEFT', 'RIGHT') end
end
return 1";

/// Returns the messages of dead pullers, whose heartbeat has expired. Result: the number of messages.
/// Keys: pullers, again, queue. Arguments: prefix of the pullers' keys, 1 if foreign messages are taken.
const LOOK_FOR_FALLEN: &str = "
redis.call('SREM', KEYS[1], '')
local count = 0
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if redis.call('EXISTS', ARGV[1] .. 'alive/' .. id) == 0 then
    while give_back_newest(ARGV[1] .. 'taken/' .. id, KEYS[2], KEYS[3], ARGV[2]) do count = count + 1 end
    redis.call('SREM', KEYS[1], id)
  end
end
return count";

/// Counts the messages that no puller has. Keys: queue, again.
const COUNT_WAITING: &str = "return redis.call('LLEN', KEYS[1]) + redis.call('LLEN', KEYS[2])";

/// Removes a queue, and rejects any other type of key. Keys: queue, again, pullers.
/// Argument: prefix of the pullers' keys.
const REMOVE: &str = "
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'list' then return redis.error_reply('WRONGTYPE it is no list but a ' .. kind) end
for _, id in ipairs(redis.call('SMEMBERS', KEYS[3])) do
  redis.call('DEL', ARGV[1] .. 'alive/' .. id, ARGV[1] .. 'taken/' .. id)
end
return redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])";

/// Returns the scripts with the functions that they call, each assembled once.
fn scripts() -> &'static Scripts {
    static SCRIPTS: SetOnce<Scripts> = SetOnce::new();
    SCRIPTS.get_or_make(|| Scripts {
        resume: format!("{OURS}{GIVE_BACK_NEWEST}{RESUME}"),
        leave: format!("{OURS}{GIVE_BACK_NEWEST}{LEAVE}"),
        look_for_fallen: format!("{OURS}{GIVE_BACK_NEWEST}{LOOK_FOR_FALLEN}"),
        renew: format!("{RENEW}return 0"),
        acknowledge: format!("{RENEW}{ACKNOWLEDGE}"),
        give_back: format!("{RENEW}{GIVE_BACK}"),
        put_back: format!("{RENEW}{PUT_BACK}"),
    })
}

/// Assembled scripts.
struct Scripts {
    resume: String,
    leave: String,
    look_for_fallen: String,
    renew: String,
    acknowledge: String,
    give_back: String,
    put_back: String,
}

/// State of one puller.
pub(crate) struct ListAtLeastOnce {
    keys: Keys,
    clock: HostClock,
    silence_ns: u64,
    /// Time of the last heartbeat.
    renewed: Moment,
    /// Time of the last search for dead pullers.
    looked: Moment,
    /// Kind that foreign messages get; none if they are refused.
    foreign: Option<u8>,
    /// Tag of the message that was handed over last.
    newest: u64,
    /// Tags of the messages handed over, the oldest first: these are the oldest messages in the puller's list.
    held: Vec<u64>,
    /// Number of messages handed over that other pullers may have got since; the next acknowledgement reports it.
    returned: u64,
    /// Newest message in the puller's list, received during a sleep, and a time at which it had not come yet.
    kept: Option<(Moment, Vec<u8>)>,
    /// True if the message at the head of the queue was foreign at the last look.
    is_wary: bool,
    /// True while the server has not confirmed an acknowledgement, because the connection was lost.
    is_acknowledging: bool,
    /// Tag of a message whose return the server has not confirmed, because the connection was lost.
    going_back: Option<u64>,
}

/// Keys of a queue, and those of one connection of a puller.
struct Keys {
    queue: String,
    again: String,
    pullers: String,
    /// Prefix of the pullers' keys.
    beside: String,
    id: String,
    taken: String,
    alive: String,
}

/// Returns the number of messages that no puller has taken.
pub(crate) fn count_waiting(link: &mut Link, queue: &str) -> Result<u64, ServerError> {
    let count = link.ask(&["EVAL", COUNT_WAITING, "2", queue, &beside(queue, "again")], |items| items.integer())?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Removes a queue with all its messages.
pub(crate) fn remove(link: &mut Link, queue: &str) -> Result<(), ServerError> {
    let [again, pullers, pullers_keys] = ["again", "pullers", ""].map(|what| beside(queue, what));
    link.ask(&["EVAL", REMOVE, "3", queue, &again, &pullers, &pullers_keys], |items| items.integer())?;
    Ok(())
}

impl ListAtLeastOnce {
    /// Creates the state of a puller of this queue. A puller that is silent for `silence_ns` counts as dead.
    pub fn new(queue: &str, silence_ns: u64, foreign: Option<u8>, clock: HostClock) -> Self {
        let now = Moment::now(clock);
        Self {
            keys: Keys::new(queue, clock),
            clock,
            silence_ns,
            renewed: now,
            looked: now,
            foreign,
            newest: 0,
            held: Vec::new(),
            returned: 0,
            kept: None,
            is_wary: false,
            is_acknowledging: false,
            going_back: None,
        }
    }

    /// Returns the script argument that states whether foreign messages are taken.
    fn takes_all(&self) -> &'static str {
        if self.foreign.is_some() { "1" } else { "0" }
    }

    /// Starts a connection. Returns how many of the known messages are still taken, and how many messages were taken
    /// before.
    fn begin(&self, link: &mut Link, new: &Keys, known: &str) -> Result<(i64, i64), ServerError> {
        let (old, silence) = (&self.keys, milliseconds(self.silence_ns));
        let keys = [&old.taken, &old.alive, &new.taken, &new.alive, &new.again, &new.pullers, &new.queue];
        let words = [known, silence.as_str(), old.id.as_str(), new.id.as_str(), self.takes_all()];
        let script = ["EVAL", scripts().resume.as_str(), "7"];
        link.ask(&[&script[..], &keys.map(String::as_str), &words].concat(), |items| {
            items.array()?;
            Ok((items.integer()?, items.integer()?))
        })
    }

    /// Takes messages and hands them over. A foreign one goes back with all behind it, and the puller then takes single
    /// messages until it is gone.
    fn take_some(
        &mut self,
        link: &mut Link,
        limit: usize,
        handler: &mut dyn FnMut(Pulled<'_>),
    ) -> Result<(), ServerError> {
        let is_due = self.renewed.is_past(self.silence_ns / 3);
        if is_due {
            self.renewed = self.renewed.restarted();
        }
        let Self { keys, held, newest, foreign, .. } = self;
        let (limit, silence) = (if self.is_wary { 1 } else { limit }.to_string(), milliseconds(self.silence_ns));
        let most = MAX_PULLED_BYTES.to_string();
        let due = if is_due { "1" } else { "0" };
        let places: [&str; 5] = [&keys.queue, &keys.again, &keys.taken, &keys.alive, &keys.pullers];
        let words: [&str; 5] = [&limit, &silence, &keys.id, due, &most];
        let (mut handed, mut again, mut count, mut refused) = (0, 0, 0, None);
        link.run(TAKE, &places, &words, |items| {
            count = items.array()?.checked_sub(1).ok_or(UNEXPECTED)?;
            again = usize::try_from(items.integer()?).map_err(|_| UNEXPECTED)?;
            while handed < count && refused.is_none() {
                match message(items.bulk()?, *foreign) {
                    Ok(message) => {
                        let tag = next_tag(newest, held);
                        handler(Pulled { tag, ..Pulled::plain(message, handed < again) });
                        handed += 1;
                    }
                    Err(e) => refused = Some(e),
                }
            }
            Ok(())
        })?;
        self.is_wary = refused.is_some();
        if let Some(e) = refused {
            let again = again.saturating_sub(handed);
            self.put_back(link, count - handed - again, again)?;
            if handed == 0 {
                return Err(e);
            }
        }
        Ok(())
    }

    /// Returns the messages of dead pullers to the queue.
    fn look_for_fallen(&mut self, link: &mut Link) -> Result<(), ServerError> {
        self.looked = self.looked.restarted();
        let Keys { queue, again, pullers, beside, .. } = &self.keys;
        let script = scripts().look_for_fallen.as_str();
        let command: [&str; 8] = ["EVAL", script, "3", pullers, again, queue, beside, self.takes_all()];
        link.ask(&command, |items| items.integer()).map(|_count| ())
    }

    /// Puts the newest messages back to where they were, if they still are this puller's: `queue` of them to the queue,
    /// and `again` of the next ones to the list of returned messages.
    fn put_back(&mut self, link: &mut Link, queue: usize, again: usize) -> Result<(), ServerError> {
        let Keys { taken, queue: there, again: first, .. } = &self.keys;
        let keys = [taken, there, first].map(String::clone);
        let counts = [queue, again].map(|count| count.to_string());
        self.ask_alive(
            link,
            &scripts().put_back,
            &keys.each_ref().map(String::as_str),
            &counts.each_ref().map(String::as_str),
        )
        .map(|_| ())
    }

    /// Runs a script that begins with a heartbeat. Takes the script's further keys and arguments.
    fn ask_alive(
        &mut self,
        link: &mut Link,
        script: &'static str,
        keys: &[&str],
        words: &[&str],
    ) -> Result<i64, ServerError> {
        self.renewed = self.renewed.restarted();
        let silence = milliseconds(self.silence_ns);
        let Keys { alive, pullers, id, .. } = &self.keys;
        let (signs, sign): ([&str; 2], [&str; 2]) = ([alive, pullers], [&silence, id]);
        link.run(script, &[&signs, keys].concat(), &[&sign, words].concat(), |items| items.integer())
    }

    /// Sleeps on a server whose memory is full: only scripts may move messages there, and scripts cannot block. No
    /// pusher can push then, so only returned messages can come.
    fn sleep_on_full(&self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if count_waiting(link, &self.keys.queue)? == 0 {
            link.receive_within(timeout)?;
        }
        Ok(())
    }
}

impl Queue for ListAtLeastOnce {
    const GIVES_BACK: bool = true;

    fn name(&self) -> &str {
        &self.keys.queue
    }

    fn check(&self, link: &mut Link) -> Result<(), ServerError> {
        check(link, &self.keys.queue, self.foreign)
    }

    fn resume(&mut self, link: &mut Link, has_kept_all: bool) -> Result<bool, ServerError> {
        self.renewed = self.renewed.restarted();
        let new = Keys::new(&self.keys.queue, self.clock);
        let kept = usize::from(self.kept.is_some());
        let known = self.held.len() + kept;
        // In older data these positions hold other messages, which must not be deleted.
        let trusted = if has_kept_all { known } else { 0 };
        let (still_known, there) = self.begin(link, &new, &trusted.to_string())?;
        self.keys = new;
        let going_back = self.going_back.take();
        if known > 0 && still_known == 0 {
            self.returned += self.held.len() as u64;
            self.held.clear();
            (self.kept, self.is_acknowledging) = (None, false);
        } else if self.is_acknowledging && there == kept as i64 {
            // The server had acknowledged them, and its answer was lost.
            self.held.clear();
            self.is_acknowledging = false;
        } else if there < known as i64 {
            // The server had returned that message, and its answer was lost.
            self.held.retain(|&tag| Some(tag) != going_back);
        }
        // A list exists whenever it holds something, so its removal cannot be detected.
        Ok(false)
    }

    fn take(&mut self, link: &mut Link, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<(), ServerError> {
        // Another puller may have got it meanwhile, and acknowledged it.
        if self.kept.take_if(|(before, _)| before.is_past(self.silence_ns / 2)).is_some() {
            self.put_back(link, 1, 0)?;
        }
        if let Some((_, bytes)) = self.kept.take() {
            let tag = next_tag(&mut self.newest, &mut self.held);
            handler(Pulled { tag, ..Pulled::plain(message(&bytes, self.foreign)?, false) });
            return Ok(());
        }
        // Also on a queue that is never empty: messages of dead pullers must not wait for an empty queue.
        if self.looked.is_past(self.silence_ns / 2) {
            self.look_for_fallen(link)?;
        }
        self.take_some(link, limit, handler)
    }

    fn sleep(&mut self, link: &mut Link, timeout: Duration) -> Result<(), ServerError> {
        if self.kept.is_some() {
            return Ok(());
        }
        // The heartbeat outlives the sleep, so that a message that comes during it always has an owner.
        let timeout = timeout.min(Duration::from_nanos(self.silence_ns / 3)).max(SHORTEST_SLEEP);
        self.renewed = self.renewed.restarted();
        let before = self.renewed;
        let Keys { queue, taken, alive, pullers, id, .. } = &self.keys;
        let mut commands = Vec::new();
        let renew = scripts().renew.as_str();
        resp::command(&mut commands, &["EVAL", renew, "2", alive, pullers, &milliseconds(self.silence_ns), id]);
        resp::command(&mut commands, &["BLMOVE", queue, taken, "RIGHT", "LEFT", &seconds(timeout)]);
        link.send(&commands)?;
        link.answer(TIMEOUT, |items| items.integer())?;
        let came = link.answer_of(1, timeout + TIMEOUT, |items| Ok(items.bulk_or_null()?.map(<[u8]>::to_vec)));
        let came = match came {
            Err(ServerError::Full(_)) => return self.sleep_on_full(link, timeout),
            came => came?,
        };
        if came.as_ref().is_some_and(|bytes| message(bytes, self.foreign).is_err()) {
            // The next call finds it there, and reports it.
            return self.put_back(link, 1, 0);
        }
        self.kept = came.map(|bytes| (before, bytes));
        Ok(())
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty() || self.returned > 0
    }

    fn acknowledge(&mut self, link: &mut Link) -> Result<(), ServerError> {
        self.is_acknowledging = true;
        let taken = self.keys.taken.clone();
        // The newest message, which was not handed over, stays.
        let kept = if self.kept.is_some() { "1" } else { "0" };
        let done = self.ask_alive(link, &scripts().acknowledge, &[&taken], &[kept])?;
        let returned = self.returned + (self.held.len() as u64).saturating_sub(u64::try_from(done).unwrap_or(0));
        self.held.clear();
        (self.returned, self.is_acknowledging) = (0, false);
        if returned == 0 { Ok(()) } else { Err(ServerError::NotAcknowledged(returned)) }
    }

    fn give_back(&mut self, link: &mut Link, tag: u64) -> Result<bool, ServerError> {
        let Ok(at) = self.held.binary_search(&tag) else { return Ok(false) };
        // Messages that others have returned are missing at the oldest end, so positions count from the newest.
        let newer = self.held.len() - 1 - at + usize::from(self.kept.is_some());
        self.going_back = Some(tag);
        let (taken, again) = (self.keys.taken.clone(), self.keys.again.clone());
        let count = self.ask_alive(link, &scripts().give_back, &[&taken, &again], &[&newer.to_string()])?;
        self.going_back = None;
        self.held.remove(at);
        Ok(count > 0)
    }

    fn leave(&mut self, link: &mut Link) -> Result<(), ServerError> {
        let Keys { queue, again, pullers, id, taken, alive, .. } = &self.keys;
        let keys: [&str; 5] = [taken, alive, again, pullers, queue];
        let words: [&str; 2] = [id, self.takes_all()];
        let script = ["EVAL", scripts().leave.as_str(), "5"];
        link.ask(&[&script[..], &keys, &words].concat(), |items| items.integer())?;
        Ok(())
    }
}

impl Keys {
    /// Creates keys with a unique id.
    fn new(queue: &str, clock: HostClock) -> Self {
        let id = unique_id(clock);
        let [again, pullers, beside] = ["again", "pullers", ""].map(|what| beside(queue, what));
        let (taken, alive) = (format!("{beside}taken/{id}"), format!("{beside}alive/{id}"));
        Self { queue: queue.to_owned(), again, pullers, beside, id, taken, alive }
    }
}

/// Registers a message as handed over; returns its tag.
fn next_tag(newest: &mut u64, held: &mut Vec<u64>) -> u64 {
    *newest += 1;
    held.push(*newest);
    *newest
}
