//! Queue on a stream: one consumer group, in which each puller is a consumer.
//!
//! ```text
//!   XADD ──> stream ── XREADGROUP ──> pending with one consumer ── XACK, XDEL ──> gone
//!                                      │             ▲
//!                                      ├─ XAUTOCLAIM ┘  with another consumer, when it is idle
//!                                      └─ XADD, XACK, XDEL ──> the dead-letter stream, after too many deliveries
//! ```
//! The server counts the deliveries of each entry. A returned entry is pending with a consumer that belongs to no
//! puller, idle for a year, so that any puller can claim it. A script that begins with an allowed write that changes
//! nothing may run any command on a server whose memory is full, and so can empty it.
//!
//! Another client may remove the stream, and another puller create it again, before this puller asks. So the puller
//! that creates the group creates a second one beside it, with a random name and no consumer. The second group vanishes
//! with the stream, and each puller checks once a second that it exists.

use std::num::NonZeroU32;

use tickpath_bus_api::{QueueConfig, dead_letter_queue};
use tickpath_clock::{HostClock, SetOnce};

use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::host_instant::HostInstant;
use crate::list::IS_MESSAGE_LUA;
use crate::puller::{format_millis, unique_id};
use crate::resp::{self, RespError, RespReader};
use crate::server::TIMEOUT;
use crate::stream::{EntryId, MESSAGE_FIELD, StreamEntry, read_entries};

const GROUP: &str = "tickpath";

/// Consumer that holds returned entries.
const RETURNED_CONSUMER: &str = "nobody";

/// A year: returned entries are marked as idle for that long, so that any puller can claim them.
const LONG_IDLE_MS: &str = "31536000000";

/// A year in nanoseconds: a longer silence limit would keep returned entries from every puller.
const MAX_SILENCE_NS: u64 = 31_536_000_000_000_000;

/// Prefix of the name of the group that distinguishes a stream from any other of its name.
const MARK_PREFIX: &str = "tickpath~";

/// Interval of the check that this group exists, in nanoseconds.
const CHECK_NS: u64 = 1_000_000_000;

/// Creates the group if it does not exist, and its mark with it; a mark without the group is an older group's, and
/// goes. Then deletes consumers that hold nothing and have been idle for longer than the silence limit. Result: the
/// mark.
/// Key: stream. Arguments: group, silence in ms, prefix of a mark, rest of a new mark.
const JOIN: &str = "
redis.call('XDEL', KEYS[1], '0-0')
local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then return made end
local mark
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  if string.sub(group[2], 1, #ARGV[3]) == ARGV[3] then
    if made.err then mark = group[2] else redis.call('XGROUP', 'DESTROY', KEYS[1], group[2]) end
  end
end
if not mark then
  mark = ARGV[3] .. ARGV[4]
  redis.call('XGROUP', 'CREATE', KEYS[1], mark, '0')
end
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  if consumer[4] == 0 and consumer[6] > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer[2])
  end
end
return mark";

/// Deletes a consumer if it holds nothing. Key: stream. Arguments: group, consumer.
const LEAVE: &str = "
redis.call('XDEL', KEYS[1], '0-0')
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])";

/// Adds a message. Key: stream. Arguments: field, message.
const ADD: &str = "
redis.call('XDEL', KEYS[1], '0-0')
return redis.call('XADD', KEYS[1], '*', ARGV[1], ARGV[2])";

/// Splits entries into those pending with a consumer, those that others have by now (counted), and those pending with
/// no consumer: these are acknowledged, or the server came back without their delivery. Finds none of a queue that was
/// removed.
/// Key: stream. Arguments: group, consumer, ids in their order.
const STILL_PENDING: &str = "
local found = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[#ARGV], #ARGV - 2, ARGV[2])
local is_gone = found.err and string.find(found.err, 'NOGROUP', 1, true)
if found.err and not is_gone then return found end
local pending, ids, nobodys, others = {}, {}, {}, 0
for _, entry in ipairs(found) do pending[entry[1]] = true end
for at = 3, is_gone and 0 or #ARGV do
  local id = ARGV[at]
  local owner = pending[id] and ARGV[2]
  if not owner then
    local entry = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1)[1]
    owner = entry and entry[2]
  end
  if owner == ARGV[2] then ids[#ids + 1] = id
  elseif owner then others = others + 1
  else nobodys[#nobodys + 1] = id end
end
";

/// Appended to [`STILL_PENDING`]: acknowledges and deletes the entries; a deleted entry is never delivered again. The
/// result follows: how many others have or were removed, and how many do not exist.
const ACKNOWLEDGE: &str = "
if is_gone then return #ARGV - 2 end
local lacking = #nobodys
if lacking > 0 then lacking = lacking - redis.call('XDEL', KEYS[1], unpack(nobodys)) end
if #ids > 0 then
  redis.call('XDEL', KEYS[1], unpack(ids))
  redis.call('XACK', KEYS[1], ARGV[1], unpack(ids))
end
return ";

/// Appended to [`STILL_PENDING`]: restarts the idle time of the entries.
const RESET_IDLE: &str = "
if #ids == 0 then return 0 end
ids[#ids + 1] = 'JUSTID'
redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, unpack(ids))
return 0";

/// Claims for a consumer the entries that have been idle for the longest silence limit of all consumers that hold some,
/// which ends their names. Moves entries that were delivered too often to the dead-letter stream. Result: where the
/// next claim continues, the number of deliveries of each entry, and the entries.
/// Keys: stream, dead-letter stream. Arguments: group, consumer, silence in ms, first id, limit, 1 if foreign messages
/// are taken, our field, max deliveries or 0.
const CLAIM: &str = "
local most = tonumber(ARGV[8])
if most > 0 then
  local kind = redis.call('TYPE', KEYS[2]).ok
  if kind ~= 'none' and kind ~= 'stream' then
    return redis.error_reply('WRONGTYPE the queue of dead letters is no stream but a ' .. kind)
  end
end
local function is_message(fields)
  local message = ''
  for at = 1, #fields, 2 do
    if fields[at] == ARGV[7] then message = fields[at + 1] end
  end
  return ARGV[6] == '1' or ours(message)
end
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1])
if pending.err then return pending end
if pending[1] == 0 then return {'0-0', {}, {}} end
local silence = tonumber(ARGV[3])
for _, consumer in ipairs(pending[4]) do
  silence = math.max(silence, tonumber(string.match(consumer[1], '~(%d+)$')) or 0)
end
silence = string.format('%.0f', silence)
local claimed = redis.pcall('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], silence, ARGV[4], 'COUNT', ARGV[5])
if claimed.err then return claimed end
local counts, entries = {}, {}
for _, entry in ipairs(claimed[2]) do
  if entry then
    local id, fields = entry[1], entry[2]
    local count = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1)[1][4]
    if most > 0 and count > most and is_message(fields) then
      redis.call('XADD', KEYS[2], '*', unpack(fields))
      redis.call('XACK', KEYS[1], ARGV[1], id)
      redis.call('XDEL', KEYS[1], id)
    else
      counts[#counts + 1] = count
      entries[#entries + 1] = entry
    end
  end
end
return {claimed[1], counts, entries}";

/// Returns the scripts with the functions that they call, each assembled once.
fn scripts() -> &'static StreamScripts {
    static SCRIPTS: SetOnce<StreamScripts> = SetOnce::new();
    SCRIPTS.get_or_init(|| StreamScripts {
        acknowledge: format!("{STILL_PENDING}{ACKNOWLEDGE}others"),
        acknowledge_limited: format!("{STILL_PENDING}{ACKNOWLEDGE}others + lacking"),
        reset_idle: format!("{STILL_PENDING}{RESET_IDLE}"),
        give_back: give_back_script("'JUSTID'"),
        give_back_undelivered: give_back_script("'RETRYCOUNT', 0, 'JUSTID'"),
        claim: format!("{IS_MESSAGE_LUA}{CLAIM}"),
    })
}

struct StreamScripts {
    acknowledge: String,
    acknowledge_limited: String,
    reset_idle: String,
    give_back: String,
    give_back_undelivered: String,
    claim: String,
}

/// Returns a script that gives entries to the consumer of returned ones, with these `XCLAIM` options. Its result is
/// their number.
fn give_back_script(options: &str) -> String {
    format!(
        "{STILL_PENDING}
if #ids == 0 then return 0 end
local count = #ids
for _, option in ipairs({{'IDLE', '{LONG_IDLE_MS}', {options}}}) do ids[#ids + 1] = option end
redis.call('XCLAIM', KEYS[1], ARGV[1], '{RETURNED_CONSUMER}', 0, unpack(ids))
return count"
    )
}

/// Counts the entries never delivered, and the returned ones.
/// Key: stream. Arguments: group, idle time of returned entries.
const COUNT_WAITING: &str = "
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for _, fields in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local group = {}
  for i = 1, #fields, 2 do group[fields[i]] = fields[i + 1] end
  if group['name'] == ARGV[1] then
    local length = redis.call('XLEN', KEYS[1])
    local fresh = math.min(group['lag'] or length - group['pending'], length)
    return fresh + #redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[2], '-', '+', 1000000)
  end
end
return redis.call('XLEN', KEYS[1])";

/// One puller as a consumer of the group.
pub(crate) struct GroupConsumer {
    queue: String,
    /// Name in the group. Ends with `~` and the silence limit, so that other pullers know it.
    id: String,
    silence: String,
    takes_all: bool,
    /// Max deliveries of an entry, and the stream that it goes to after them.
    dead_letters: Option<(NonZeroU32, String)>,
    /// Mark of the joined stream; none if another stream is not to be reported.
    mark: Option<Vec<u8>>,
    /// True if joining again found another stream, which is not reported yet.
    is_replaced: bool,
    /// Time of the last check of the mark.
    checked: HostInstant,
    clock: HostClock,
}

/// Returns the number of messages that no puller has taken.
pub(crate) fn count_waiting(link: &mut RedisConnection, queue: &str) -> ServerResult<u64> {
    let count = link.request(&["EVAL", COUNT_WAITING, "1", queue, GROUP, LONG_IDLE_MS], |items| items.integer())?;
    Ok(u64::try_from(count).unwrap_or(0))
}

impl GroupConsumer {
    /// Creates a consumer of this queue, without joining.
    pub fn new(queue: &str, config: &QueueConfig, clock: HostClock) -> Self {
        let silence = format_millis(config.silence_ns.min(MAX_SILENCE_NS));
        Self {
            queue: queue.to_owned(),
            id: format!("{}~{silence}", unique_id(clock)),
            silence,
            takes_all: config.foreign.is_some(),
            dead_letters: config.max_deliveries.map(|max_deliveries| (max_deliveries, dead_letter_queue(queue))),
            mark: None,
            is_replaced: false,
            checked: HostInstant::now(clock),
            clock,
        }
    }

    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Joins the group, and creates it if it does not exist; a new group begins with the oldest entry.
    pub fn join(&mut self, link: &mut RedisConnection) -> ServerResult {
        let new = unique_id(self.clock);
        let join = ["EVAL", JOIN, "1", self.queue.as_str(), GROUP, self.silence.as_str(), MARK_PREFIX, new.as_str()];
        let mark = link.request(&join, |items| Ok(items.bulk()?.to_vec()))?;
        self.is_replaced |= self.mark.as_ref().is_some_and(|before| *before != mark);
        (self.mark, self.checked) = (Some(mark), self.checked.restarted());
        Ok(())
    }

    /// Checks once a second that the stream is the joined one; an error if it is not. Must be called after a read,
    /// whose answer may be the last one for long.
    pub fn check(&mut self, link: &mut RedisConnection) -> ServerResult {
        let Some(mark) = self.mark.as_ref().filter(|_| self.checked.is_older_than(CHECK_NS)) else { return Ok(()) };
        self.checked = self.checked.restarted();
        match link.request(&["XINFO", "GROUPS", &self.queue], |items| has_group(items, mark)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(RedisServerError::NoQueue("another one has its name by now".to_owned())),
            Err(RedisServerError::Refused(line)) if line.contains("no such key") => {
                Err(RedisServerError::NoQueue(line))
            }
            // No entry was taken by this request.
            Err(e) if e.is_unanswered() && e.is_transient() => Err(RedisServerError::TransientRefusal(e.to_string())),
            Err(e) => Err(e),
        }
    }

    /// Returns, once, whether another stream was joined than before.
    pub fn take_replaced(&mut self) -> bool {
        std::mem::take(&mut self.is_replaced)
    }

    /// Accepts any stream at the next join: the loss of this one is already reported.
    pub fn accept_any_stream(&mut self) {
        (self.mark, self.is_replaced) = (None, false);
    }

    /// Requests entries never delivered before. The answer is read by [`read_reply`](crate::stream::read_reply).
    pub fn request_new(&self, link: &mut RedisConnection, limit: usize, options: &[&str]) -> ServerResult {
        let limit = limit.to_string();
        let command = ["XREADGROUP", "GROUP", GROUP, self.id.as_str(), "COUNT", limit.as_str()];
        let source = ["STREAMS", self.queue.as_str(), ">"];
        link.send(&resp::encode_command(&[&command[..], options, &source].concat()))
    }

    /// Claims entries from consumers that exceeded the silence limit, scanning the pending ones from `start` on, and
    /// hands over each with its number of deliveries. Returns where the next scan continues.
    pub fn claim(
        &self,
        link: &mut RedisConnection,
        limit: usize,
        start: EntryId,
        each: &mut dyn FnMut(StreamEntry<'_>, u32),
    ) -> ServerResult<EntryId> {
        let (start, messages, limit) = (start.to_string(), limit, limit.to_string());
        let (max_deliveries, keys) = match &self.dead_letters {
            Some((max_deliveries, dead)) => {
                (max_deliveries.get().to_string(), vec!["2", self.queue.as_str(), dead.as_str()])
            }
            None => ("0".to_owned(), vec!["1", self.queue.as_str()]),
        };
        let takes_all = if self.takes_all { "1" } else { "0" };
        let arguments: [&str; 8] =
            [GROUP, &self.id, &self.silence, &start, &limit, takes_all, MESSAGE_FIELD, &max_deliveries];
        let script = ["EVAL", scripts().claim.as_str()];
        link.request_messages(messages, &[&script[..], keys.as_slice(), &arguments].concat(), |items| {
            items.array()?;
            let next = EntryId::read(items)?;
            let counts = (0..items.array()?).map(|_| items.integer()).collect::<Result<Vec<i64>, RespError>>()?;
            let mut counts = counts.into_iter();
            read_entries(items, &mut |entry| {
                let count = counts.next().and_then(|count| u32::try_from(count).ok());
                each(entry, count.unwrap_or(u32::MAX));
            })?;
            Ok(next)
        })
    }

    /// Returns the command that restarts the idle time of entries, except those that others have by now.
    pub fn reset_idle_command(&self, ids: &[EntryId]) -> Vec<u8> {
        self.pending_command(&scripts().reset_idle, ids)
    }

    /// Returns the command that makes entries claimable by any puller, except those that others have by now.
    pub fn give_back_command(&self, ids: &[EntryId]) -> Vec<u8> {
        self.pending_command(&scripts().give_back, ids)
    }

    /// Returns the command that does so for an entry that was not handed over: its delivery does not count.
    pub fn return_undelivered_command(&self, id: EntryId) -> Vec<u8> {
        self.pending_command(&scripts().give_back_undelivered, &[id])
    }

    /// Acknowledges entries, except those that others have by now; returns the number of these. An entry that does not
    /// exist was acknowledged by others, or by this puller with a lost answer; or it is a dead letter, where there are
    /// some.
    pub fn acknowledge(&self, link: &mut RedisConnection, ids: &[EntryId]) -> ServerResult<usize> {
        let script = if self.dead_letters.is_some() { &scripts().acknowledge_limited } else { &scripts().acknowledge };
        link.send(&self.pending_command(script, ids))?;
        read_count(link)
    }

    /// Acknowledges entries regardless of their consumer; returns how many were pending, which are never delivered
    /// again. Suffices where no other puller can have them, and takes the server a fifth of the time for one entry.
    pub fn acknowledge_own(&self, link: &mut RedisConnection, ids: &[EntryId]) -> ServerResult<usize> {
        let acknowledging = entries_command(&["XACK", &self.queue, GROUP], ids);
        // A deleted entry is never delivered again, even if the second command is lost.
        link.send(&[self.delete_command(ids), acknowledging].concat())?;
        read_count(link)?;
        read_count(link)
    }

    pub fn delete_command(&self, ids: &[EntryId]) -> Vec<u8> {
        entries_command(&["XDEL", &self.queue], ids)
    }

    /// Returns the command that adds a message, up to the message.
    pub fn add_command(&self) -> Vec<u8> {
        let mut head = Vec::new();
        resp::command_head(&mut head, &["EVAL", ADD, "1", &self.queue, MESSAGE_FIELD]);
        head
    }

    /// Leaves the group, unless something is pending.
    pub fn leave(&self, link: &mut RedisConnection) -> ServerResult {
        link.request(&["EVAL", LEAVE, "1", &self.queue, GROUP, &self.id], |items| items.integer())?;
        Ok(())
    }

    /// Returns the command that runs a script which begins with [`STILL_PENDING`] on these entries.
    fn pending_command(&self, script: &str, ids: &[EntryId]) -> Vec<u8> {
        entries_command(&["EVAL", script, "1", &self.queue, GROUP, &self.id], ids)
    }
}

/// Reads an answer that is a number of entries.
fn read_count(link: &mut RedisConnection) -> ServerResult<usize> {
    let count = link.receive_reply(TIMEOUT, |items| items.integer())?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Returns a command that ends with the ids of entries.
fn entries_command(front: &[&str], ids: &[EntryId]) -> Vec<u8> {
    let ids: Vec<String> = ids.iter().map(EntryId::to_string).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    resp::encode_command(&[front, ids.as_slice()].concat())
}

/// Reads the groups of a stream, and returns whether one has this name.
fn has_group(items: &mut RespReader<'_>, name: &[u8]) -> Result<bool, RespError> {
    let mut is_there = false;
    for _ in 0..items.array()? {
        for _ in 0..items.array()? / 2 {
            if items.bulk()? == b"name" {
                is_there |= items.bulk()? == name;
            } else {
                items.skip()?;
            }
        }
    }
    Ok(is_there)
}
