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

use tickpath_bus_api::PulledMessage;
use tickpath_clock::{HostClock, SetOnce};

use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::host_instant::HostInstant;
use crate::list::{IS_MESSAGE_LUA, check_list, format_seconds, sibling_key};
use crate::puller::{MAX_PULLED_BYTES, MIN_SLEEP, PullHandler, RedisQueue, decode_message, format_millis, unique_id};
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
/// Arguments: silence in ms, id, number that go to the queue, number of the next ones that go to `returned`.
const PUT_BACK: &str = "
for to = 4, 5 do
  for _ = 1, tonumber(ARGV[to - 1]) do redis.call('LMOVE', KEYS[3], KEYS[to], 'LEFT', 'RIGHT') end
end
return 1";

/// Returns the messages of dead pullers, whose heartbeat has expired. Result: the number of messages.
/// Keys: pullers, again, queue. Arguments: prefix of the pullers' keys, 1 if foreign messages are taken.
const RECLAIM_FROM_DEAD: &str = "
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
fn scripts() -> &'static ListScripts {
    static SCRIPTS: SetOnce<ListScripts> = SetOnce::new();
    SCRIPTS.get_or_init(|| ListScripts {
        resume: format!("{IS_MESSAGE_LUA}{GIVE_BACK_NEWEST}{RESUME}"),
        leave: format!("{IS_MESSAGE_LUA}{GIVE_BACK_NEWEST}{LEAVE}"),
        reclaim_from_dead: format!("{IS_MESSAGE_LUA}{GIVE_BACK_NEWEST}{RECLAIM_FROM_DEAD}"),
        renew: format!("{RENEW}return 0"),
        acknowledge: format!("{RENEW}{ACKNOWLEDGE}"),
        give_back: format!("{RENEW}{GIVE_BACK}"),
        put_back: format!("{RENEW}{PUT_BACK}"),
    })
}

struct ListScripts {
    resume: String,
    leave: String,
    reclaim_from_dead: String,
    renew: String,
    acknowledge: String,
    give_back: String,
    put_back: String,
}

pub(crate) struct ListAtLeastOnce {
    keys: ListKeys,
    clock: HostClock,
    silence_ns: u64,
    last_heartbeat: HostInstant,
    /// Time of the last search for dead pullers.
    last_reclaim: HostInstant,
    /// Kind that foreign messages get; none if they are refused.
    foreign: Option<u8>,
    /// Tag of the message that was handed over last.
    newest: u64,
    /// Tags of the messages handed over, the oldest first: these are the oldest messages in the puller's list.
    unacknowledged: Vec<u64>,
    /// Number of messages handed over that other pullers may have got since; the next acknowledgement reports it.
    maybe_redelivered: u64,
    /// Newest message in the puller's list, received during a sleep, and a time at which it had not come yet.
    prefetched: Option<(HostInstant, Vec<u8>)>,
    /// True if the message at the head of the queue was foreign at the last look.
    has_foreign_head: bool,
    /// True while the server has not confirmed an acknowledgement, because the connection was lost.
    is_acknowledging: bool,
    /// Tag of a message whose return the server has not confirmed, because the connection was lost.
    pending_return: Option<u64>,
}

/// Keys of a queue, and those of one connection of a puller.
struct ListKeys {
    queue: String,
    returned: String,
    pullers: String,
    puller_prefix: String,
    id: String,
    taken: String,
    heartbeat: String,
}

/// Returns the number of messages that no puller has taken.
pub(crate) fn count_waiting(link: &mut RedisConnection, queue: &str) -> ServerResult<u64> {
    let count =
        link.request(&["EVAL", COUNT_WAITING, "2", queue, &sibling_key(queue, "again")], |items| items.integer())?;
    Ok(u64::try_from(count).unwrap_or(0))
}

pub(crate) fn remove(link: &mut RedisConnection, queue: &str) -> ServerResult {
    let [returned, pullers, pullers_keys] = ["again", "pullers", ""].map(|what| sibling_key(queue, what));
    link.request(&["EVAL", REMOVE, "3", queue, &returned, &pullers, &pullers_keys], |items| items.integer())?;
    Ok(())
}

impl ListAtLeastOnce {
    /// Creates the state of a puller of this queue. A puller that is silent for `silence_ns` counts as dead.
    pub fn new(queue: &str, silence_ns: u64, foreign: Option<u8>, clock: HostClock) -> Self {
        let now = HostInstant::now(clock);
        Self {
            keys: ListKeys::new(queue, clock),
            clock,
            silence_ns,
            last_heartbeat: now,
            last_reclaim: now,
            foreign,
            newest: 0,
            unacknowledged: Vec::new(),
            maybe_redelivered: 0,
            prefetched: None,
            has_foreign_head: false,
            is_acknowledging: false,
            pending_return: None,
        }
    }

    /// Returns the script argument that states whether foreign messages are taken.
    fn foreign_argument(&self) -> &'static str {
        if self.foreign.is_some() { "1" } else { "0" }
    }

    /// Starts a connection. Returns how many of the known messages are still taken, and how many messages were taken
    /// before.
    fn start_connection(&self, link: &mut RedisConnection, new: &ListKeys, known: &str) -> ServerResult<(i64, i64)> {
        let (old, silence) = (&self.keys, format_millis(self.silence_ns));
        let keys = [&old.taken, &old.heartbeat, &new.taken, &new.heartbeat, &new.returned, &new.pullers, &new.queue];
        let arguments = [known, silence.as_str(), old.id.as_str(), new.id.as_str(), self.foreign_argument()];
        let script = ["EVAL", scripts().resume.as_str(), "7"];
        link.request(&[&script[..], &keys.map(String::as_str), &arguments].concat(), |items| {
            items.array()?;
            Ok((items.integer()?, items.integer()?))
        })
    }

    /// Takes messages and hands them over. A foreign one goes back with all behind it, and the puller then takes single
    /// messages until it is gone.
    fn take_batch(&mut self, link: &mut RedisConnection, limit: usize, handler: &mut PullHandler<'_>) -> ServerResult {
        let is_due = self.last_heartbeat.is_older_than(self.silence_ns / 3);
        if is_due {
            self.last_heartbeat = self.last_heartbeat.restarted();
        }
        let Self { keys, unacknowledged, newest, foreign, .. } = self;
        let (limit, silence) =
            (if self.has_foreign_head { 1 } else { limit }.to_string(), format_millis(self.silence_ns));
        let max_bytes = MAX_PULLED_BYTES.to_string();
        let due = if is_due { "1" } else { "0" };
        let script_keys: [&str; 5] = [&keys.queue, &keys.returned, &keys.taken, &keys.heartbeat, &keys.pullers];
        let arguments: [&str; 5] = [&limit, &silence, &keys.id, due, &max_bytes];
        let (mut handed, mut returned, mut count, mut refused) = (0, 0, 0, None);
        link.run_script(TAKE, &script_keys, &arguments, |items| {
            count = items.array()?.checked_sub(1).ok_or(UNEXPECTED)?;
            returned = usize::try_from(items.integer()?).map_err(|_| UNEXPECTED)?;
            while handed < count && refused.is_none() {
                match decode_message(items.bulk()?, *foreign) {
                    Ok(message) => {
                        let tag = next_tag(newest, unacknowledged);
                        handler(PulledMessage { tag, ..PulledMessage::without_tag(message, handed < returned) });
                        handed += 1;
                    }
                    Err(e) => refused = Some(e),
                }
            }
            Ok(())
        })?;
        self.has_foreign_head = refused.is_some();
        if let Some(e) = refused {
            let returned = returned.saturating_sub(handed);
            self.put_back(link, count - handed - returned, returned)?;
            if handed == 0 {
                return Err(e);
            }
        }
        Ok(())
    }

    /// Returns the messages of dead pullers to the queue.
    fn reclaim_from_dead(&mut self, link: &mut RedisConnection) -> ServerResult {
        self.last_reclaim = self.last_reclaim.restarted();
        let ListKeys { queue, returned, pullers, puller_prefix, .. } = &self.keys;
        let script = scripts().reclaim_from_dead.as_str();
        let command: [&str; 8] =
            ["EVAL", script, "3", pullers, returned, queue, puller_prefix, self.foreign_argument()];
        link.request(&command, |items| items.integer()).map(|_count| ())
    }

    /// Puts the newest messages back to where they were, if they still are this puller's: `queue` of them to the queue,
    /// and `returned` of the next ones to the list of returned messages.
    fn put_back(&mut self, link: &mut RedisConnection, queue: usize, returned: usize) -> ServerResult {
        let ListKeys { taken, queue: queue_key, returned: returned_key, .. } = &self.keys;
        let keys = [taken, queue_key, returned_key].map(String::clone);
        let counts = [queue, returned].map(|count| count.to_string());
        self.run_with_heartbeat(
            link,
            &scripts().put_back,
            &keys.each_ref().map(String::as_str),
            &counts.each_ref().map(String::as_str),
        )
        .map(|_| ())
    }

    /// Runs a script that begins with a heartbeat. Takes the script's further keys and arguments.
    fn run_with_heartbeat(
        &mut self,
        link: &mut RedisConnection,
        script: &'static str,
        keys: &[&str],
        arguments: &[&str],
    ) -> ServerResult<i64> {
        self.last_heartbeat = self.last_heartbeat.restarted();
        let silence = format_millis(self.silence_ns);
        let ListKeys { heartbeat, pullers, id, .. } = &self.keys;
        let (first_keys, first_arguments): ([&str; 2], [&str; 2]) = ([heartbeat, pullers], [&silence, id]);
        let (keys, arguments) = ([&first_keys, keys].concat(), [&first_arguments, arguments].concat());
        link.run_script(script, &keys, &arguments, |items| items.integer())
    }

    /// Sleeps on a server whose memory is full: only scripts may move messages there, and scripts cannot block. No
    /// pusher can push then, so only returned messages can come.
    fn wait_on_full_server(&self, link: &mut RedisConnection, timeout: Duration) -> ServerResult {
        if count_waiting(link, &self.keys.queue)? == 0 {
            link.receive_within(timeout)?;
        }
        Ok(())
    }
}

impl RedisQueue for ListAtLeastOnce {
    const GIVES_BACK: bool = true;

    fn name(&self) -> &str {
        &self.keys.queue
    }

    fn check(&self, link: &mut RedisConnection) -> ServerResult {
        check_list(link, &self.keys.queue, self.foreign)
    }

    fn resume(&mut self, link: &mut RedisConnection, has_retained_all: bool) -> ServerResult<bool> {
        self.last_heartbeat = self.last_heartbeat.restarted();
        let new = ListKeys::new(&self.keys.queue, self.clock);
        let kept = usize::from(self.prefetched.is_some());
        let known = self.unacknowledged.len() + kept;
        // In older data these positions hold other messages, which must not be deleted.
        let trusted = if has_retained_all { known } else { 0 };
        let (still_known, taken_before) = self.start_connection(link, &new, &trusted.to_string())?;
        self.keys = new;
        let pending_return = self.pending_return.take();
        if known > 0 && still_known == 0 {
            self.maybe_redelivered += self.unacknowledged.len() as u64;
            self.unacknowledged.clear();
            (self.prefetched, self.is_acknowledging) = (None, false);
        } else if self.is_acknowledging && taken_before == kept as i64 {
            // The server had acknowledged them, and its answer was lost.
            self.unacknowledged.clear();
            self.is_acknowledging = false;
        } else if taken_before < known as i64 {
            // The server had returned that message, and its answer was lost.
            self.unacknowledged.retain(|&tag| Some(tag) != pending_return);
        }
        // A list exists whenever it holds something, so its removal cannot be detected.
        Ok(false)
    }

    fn fetch(&mut self, link: &mut RedisConnection, limit: usize, handler: &mut PullHandler<'_>) -> ServerResult {
        // Another puller may have got it meanwhile, and acknowledged it.
        if self.prefetched.take_if(|(before, _)| before.is_older_than(self.silence_ns / 2)).is_some() {
            self.put_back(link, 1, 0)?;
        }
        if let Some((_, bytes)) = self.prefetched.take() {
            let tag = next_tag(&mut self.newest, &mut self.unacknowledged);
            handler(PulledMessage { tag, ..PulledMessage::without_tag(decode_message(&bytes, self.foreign)?, false) });
            return Ok(());
        }
        // Also on a queue that is never empty: messages of dead pullers must not wait for an empty queue.
        if self.last_reclaim.is_older_than(self.silence_ns / 2) {
            self.reclaim_from_dead(link)?;
        }
        self.take_batch(link, limit, handler)
    }

    fn wait_for_message(&mut self, link: &mut RedisConnection, timeout: Duration) -> ServerResult {
        if self.prefetched.is_some() {
            return Ok(());
        }
        // The heartbeat outlives the sleep, so that a message that comes during it always has an owner.
        let timeout = timeout.min(Duration::from_nanos(self.silence_ns / 3)).max(MIN_SLEEP);
        self.last_heartbeat = self.last_heartbeat.restarted();
        let before = self.last_heartbeat;
        let ListKeys { queue, taken, heartbeat, pullers, id, .. } = &self.keys;
        let mut commands = Vec::new();
        let renew = scripts().renew.as_str();
        resp::command(&mut commands, &["EVAL", renew, "2", heartbeat, pullers, &format_millis(self.silence_ns), id]);
        resp::command(&mut commands, &["BLMOVE", queue, taken, "RIGHT", "LEFT", &format_seconds(timeout)]);
        link.send(&commands)?;
        link.receive_reply(TIMEOUT, |items| items.integer())?;
        let received =
            link.receive_messages(1, timeout + TIMEOUT, |items| Ok(items.bulk_or_null()?.map(<[u8]>::to_vec)));
        let received = match received {
            Err(RedisServerError::OutOfMemory(_)) => return self.wait_on_full_server(link, timeout),
            received => received?,
        };
        if received.as_ref().is_some_and(|bytes| decode_message(bytes, self.foreign).is_err()) {
            // The next call finds it there, and reports it.
            return self.put_back(link, 1, 0);
        }
        self.prefetched = received.map(|bytes| (before, bytes));
        Ok(())
    }

    fn has_unacknowledged(&self) -> bool {
        !self.unacknowledged.is_empty() || self.maybe_redelivered > 0
    }

    fn acknowledge(&mut self, link: &mut RedisConnection) -> ServerResult {
        self.is_acknowledging = true;
        let taken = self.keys.taken.clone();
        // The newest message, which was not handed over, stays.
        let kept = if self.prefetched.is_some() { "1" } else { "0" };
        let done = self.run_with_heartbeat(link, &scripts().acknowledge, &[&taken], &[kept])?;
        let returned = self.maybe_redelivered
            + (self.unacknowledged.len() as u64).saturating_sub(u64::try_from(done).unwrap_or(0));
        self.unacknowledged.clear();
        (self.maybe_redelivered, self.is_acknowledging) = (0, false);
        if returned == 0 { Ok(()) } else { Err(RedisServerError::NotAcknowledged(returned)) }
    }

    fn give_back(&mut self, link: &mut RedisConnection, tag: u64) -> ServerResult<bool> {
        let Ok(index) = self.unacknowledged.binary_search(&tag) else { return Ok(false) };
        // Messages that others have returned are missing at the oldest end, so positions count from the newest.
        let newer = self.unacknowledged.len() - 1 - index + usize::from(self.prefetched.is_some());
        self.pending_return = Some(tag);
        let (taken, returned) = (self.keys.taken.clone(), self.keys.returned.clone());
        let count = self.run_with_heartbeat(link, &scripts().give_back, &[&taken, &returned], &[&newer.to_string()])?;
        self.pending_return = None;
        self.unacknowledged.remove(index);
        Ok(count > 0)
    }

    fn return_unacknowledged(&mut self, link: &mut RedisConnection) -> ServerResult {
        let ListKeys { queue, returned, pullers, id, taken, heartbeat, .. } = &self.keys;
        let keys: [&str; 5] = [taken, heartbeat, returned, pullers, queue];
        let arguments: [&str; 2] = [id, self.foreign_argument()];
        let script = ["EVAL", scripts().leave.as_str(), "5"];
        link.request(&[&script[..], &keys, &arguments].concat(), |items| items.integer())?;
        Ok(())
    }
}

impl ListKeys {
    fn new(queue: &str, clock: HostClock) -> Self {
        let id = unique_id(clock);
        let [returned, pullers, puller_prefix] = ["again", "pullers", ""].map(|what| sibling_key(queue, what));
        let (taken, heartbeat) = (format!("{puller_prefix}taken/{id}"), format!("{puller_prefix}alive/{id}"));
        Self { queue: queue.to_owned(), returned, pullers, puller_prefix, id, taken, heartbeat }
    }
}

/// Registers a message as handed over; returns its tag.
fn next_tag(newest: &mut u64, unacknowledged: &mut Vec<u64>) -> u64 {
    *newest += 1;
    unacknowledged.push(*newest);
    *newest
}
