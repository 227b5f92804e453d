//! A queue on a stream: one group of consumers, of which each puller is one.
//!
//! ```text
//!   XADD ──> stream ── XREADGROUP ──> pending with one consumer ── XACK, XDEL ──> gone
//!                                      │             ▲
//!                                      ├─ XAUTOCLAIM ┘  with another one, when it is idle
//!                                      └─ XADD, XACK, XDEL ──> the stream of dead letters, when it came too often
//! ```
//! The server counts how often it gave an entry to a consumer. What is given back is pending with a consumer that is
//! nobody's, and idle for a year, so that whoever looks claims it. A script that begins with a write which is allowed on a
//! server whose memory is full, and which changes nothing, may do there what else is refused: so a full one can be emptied.
//!
//! Somebody may remove the stream, and another puller make it anew before this one asks. So whoever makes the group makes a
//! second one beside it, which nobody reads, with a name of chance. It is gone with the stream; once a second each puller
//! looks whether it is there.

use std::num::NonZeroU32;

use tickpath_bus_api::{QueueConfig, dead_letter_queue};
use tickpath_clock::{HostClock, SetOnce};

use crate::error::ServerError;
use crate::link::Link;
use crate::list::OURS;
use crate::moment::Moment;
use crate::puller::{milliseconds, unique_id};
use crate::resp::{self, Items, Malformed};
use crate::server::TIMEOUT;
use crate::stream::{Entry, FIELD, Id, read_entries};

/// The group's name.
const GROUP: &str = "tickpath";

/// The consumer that has what was given back.
const NOBODY: &str = "nobody";

/// A year: what nobody holds any more is marked as idle for so long, and whoever comes can claim it.
const LONG_IDLE_MS: &str = "31536000000";

/// The same in nanoseconds: a longer silence would keep what was given back from everybody.
const LONGEST_SILENCE_NS: u64 = 31_536_000_000_000_000;

/// What the name of the group begins with that tells a stream from any other of its name.
const MARK: &str = "tickpath~";

/// How often a puller looks whether that is there, in nanoseconds.
const CHECK_NS: u64 = 1_000_000_000;

/// Makes the group if it is not there, and its mark with it; a mark without it is an older one's. Then deletes consumers that
/// hold nothing, and have been idle for so long. Gives the mark.
/// Key: stream. Arguments: group, silence in ms, what a mark begins with, and what a new one goes on with.
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

/// Finds those of some entries that are still pending with a consumer, counts those that others have by now, and finds
/// those that are pending with nobody: they are done with, or the server came back without their delivery. Of a queue
/// that somebody has removed it finds none. Key: stream. Arguments: group, consumer, ids in their order.
const STILL_OURS: &str = "
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

/// Behind [`STILL_OURS`]: they are done with. What is deleted comes to nobody. Before what is given: how many others have, or
/// were removed, and how many are not there at all.
const ACKNOWLEDGE: &str = "
if is_gone then return #ARGV - 2 end
local lacking = #nobodys
if lacking > 0 then lacking = lacking - redis.call('XDEL', KEYS[1], unpack(nobodys)) end
if #ids > 0 then
  redis.call('XDEL', KEYS[1], unpack(ids))
  redis.call('XACK', KEYS[1], ARGV[1], unpack(ids))
end
return ";

/// Behind [`STILL_OURS`]: restarts their idle time.
const HOLD: &str = "
if #ids == 0 then return 0 end
ids[#ids + 1] = 'JUSTID'
redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, unpack(ids))
return 0";

/// Gives a consumer the entries that have been idle for so long, and for as long as anybody may be silent who holds some,
/// which his name ends with. Gives the stream of dead letters those of them that were delivered too often. Tells where the
/// next look goes on, how often each entry was delivered, and the entries.
/// Keys: stream, that of dead letters. Arguments: group, consumer, silence in ms, the first id, limit, whether those of
/// others are taken, too, our field, the most deliveries or 0.
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

/// The scripts with what they call, each put together once.
fn scripts() -> &'static Scripts {
    static SCRIPTS: SetOnce<Scripts> = SetOnce::new();
    SCRIPTS.get_or_make(|| Scripts {
        acknowledge: format!("{STILL_OURS}{ACKNOWLEDGE}others"),
        acknowledge_limited: format!("{STILL_OURS}{ACKNOWLEDGE}others + lacking"),
        hold: format!("{STILL_OURS}{HOLD}"),
        give_back: give_back("'JUSTID'"),
        give_back_unseen: give_back("'RETRYCOUNT', 0, 'JUSTID'"),
        claim: format!("{OURS}{CLAIM}"),
    })
}

/// Whole scripts.
struct Scripts {
    acknowledge: String,
    acknowledge_limited: String,
    hold: String,
    give_back: String,
    give_back_unseen: String,
    claim: String,
}

/// A script that gives entries to nobody, with these options. Gives how many.
fn give_back(options: &str) -> String {
    format!(
        "{STILL_OURS}
if #ids == 0 then return 0 end
local count = #ids
for _, option in ipairs({{'IDLE', '{LONG_IDLE_MS}', {options}}}) do ids[#ids + 1] = option end
redis.call('XCLAIM', KEYS[1], ARGV[1], '{NOBODY}', 0, unpack(ids))
return count"
    )
}

/// Counts what was not delivered to anybody, and what was given back.
/// Key: stream. Arguments: group, the idle time of what was given back.
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

/// One puller in the group.
pub(crate) struct Consumer {
    queue: String,
    /// With the silence behind a `~`, by which others know how long that is.
    id: String,
    /// In milliseconds.
    silence: String,
    /// Entries of others are taken, too.
    takes_all: bool,
    /// How often an entry is delivered, and the stream that it goes to then.
    dead: Option<(NonZeroU32, String)>,
    /// What tells the stream that was joined from any other; none if that does not count.
    mark: Option<Vec<u8>>,
    /// It was another one when it was joined anew, and nobody has been told yet.
    is_another: bool,
    /// When the mark was seen last.
    checked: Moment,
    clock: HostClock,
}

/// How many messages nobody has taken.
pub(crate) fn count_waiting(link: &mut Link, queue: &str) -> Result<u64, ServerError> {
    let count = link.ask(&["EVAL", COUNT_WAITING, "1", queue, GROUP, LONG_IDLE_MS], |items| items.integer())?;
    Ok(u64::try_from(count).unwrap_or(0))
}

impl Consumer {
    /// Of the queue of this name.
    pub fn new(queue: &str, config: &QueueConfig, clock: HostClock) -> Self {
        let silence = milliseconds(config.silence_ns.min(LONGEST_SILENCE_NS));
        Self {
            queue: queue.to_owned(),
            id: format!("{}~{silence}", unique_id(clock)),
            silence,
            takes_all: config.foreign.is_some(),
            dead: config.most_deliveries.map(|most| (most, dead_letter_queue(queue))),
            mark: None,
            is_another: false,
            checked: Moment::now(clock),
            clock,
        }
    }

    /// What the queue is called.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Makes the group if it is not there; it begins with the oldest entry.
    pub fn join(&mut self, link: &mut Link) -> Result<(), ServerError> {
        let new = unique_id(self.clock);
        let join = ["EVAL", JOIN, "1", self.queue.as_str(), GROUP, self.silence.as_str(), MARK, new.as_str()];
        let mark = link.ask(&join, |items| Ok(items.bulk()?.to_vec()))?;
        self.is_another |= self.mark.as_ref().is_some_and(|before| *before != mark);
        (self.mark, self.checked) = (Some(mark), self.checked.restarted());
        Ok(())
    }

    /// Looks, once a second, whether the stream is the one that was joined; an error if it is not. To be called behind what
    /// was asked for, whose answer may be all that comes for long.
    pub fn check(&mut self, link: &mut Link) -> Result<(), ServerError> {
        let Some(mark) = self.mark.as_ref().filter(|_| self.checked.is_past(CHECK_NS)) else { return Ok(()) };
        self.checked = self.checked.restarted();
        match link.ask(&["XINFO", "GROUPS", &self.queue], |items| has_group(items, mark)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ServerError::NoQueue("another one has its name by now".to_owned())),
            Err(ServerError::Refused(line)) if line.contains("no such key") => Err(ServerError::NoQueue(line)),
            // Nothing was taken out by that.
            Err(e) if e.is_silence() && e.may_pass() => Err(ServerError::NotNow(e.to_string())),
            Err(e) => Err(e),
        }
    }

    /// Whether another stream was joined than before; once.
    pub fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_another)
    }

    /// The stream that is joined next may be any: that is told already.
    pub fn forget(&mut self) {
        (self.mark, self.is_another) = (None, false);
    }

    /// Asks for entries that nobody has had. The answer is for [`read_reply`](crate::stream::read_reply).
    pub fn ask(&self, link: &mut Link, limit: usize, options: &[&str]) -> Result<(), ServerError> {
        let limit = limit.to_string();
        let question = ["XREADGROUP", "GROUP", GROUP, self.id.as_str(), "COUNT", limit.as_str()];
        let place = ["STREAMS", self.queue.as_str(), ">"];
        link.send(&packed(&[&question[..], options, &place].concat()))
    }

    /// Takes entries from consumers that have been silent for too long, and looks at the pending ones from `start` on; hands
    /// over each with how often it was delivered. Gives where the next look goes on.
    pub fn claim(
        &self,
        link: &mut Link,
        limit: usize,
        start: Id,
        each: &mut dyn FnMut(Entry<'_>, u32),
    ) -> Result<Id, ServerError> {
        let (start, messages, limit) = (start.to_string(), limit, limit.to_string());
        let (most, keys) = match &self.dead {
            Some((most, dead)) => (most.get().to_string(), vec!["2", self.queue.as_str(), dead.as_str()]),
            None => ("0".to_owned(), vec!["1", self.queue.as_str()]),
        };
        let takes_all = if self.takes_all { "1" } else { "0" };
        let words: [&str; 8] = [GROUP, &self.id, &self.silence, &start, &limit, takes_all, FIELD, &most];
        let script = ["EVAL", scripts().claim.as_str()];
        link.ask_for(messages, &[&script[..], keys.as_slice(), &words].concat(), |items| {
            items.array()?;
            let next = Id::read(items)?;
            let counts = (0..items.array()?).map(|_| items.integer()).collect::<Result<Vec<i64>, Malformed>>()?;
            let mut counts = counts.into_iter();
            read_entries(items, &mut |entry| {
                let count = counts.next().and_then(|count| u32::try_from(count).ok());
                each(entry, count.unwrap_or(u32::MAX));
            })?;
            Ok(next)
        })
    }

    /// The command that restarts the idle time of entries, but for those that others have by now.
    pub fn holding(&self, ids: &[Id]) -> Vec<u8> {
        self.on_ours(&scripts().hold, ids)
    }

    /// The command that gives entries back, but for those that others have by now: whoever comes can claim them.
    pub fn giving_back(&self, ids: &[Id]) -> Vec<u8> {
        self.on_ours(&scripts().give_back, ids)
    }

    /// The same of an entry that was not handed over: its delivery does not count.
    pub fn giving_back_unseen(&self, id: Id) -> Vec<u8> {
        self.on_ours(&scripts().give_back_unseen, &[id])
    }

    /// Says that entries are done with, but for those that others have by now; gives how many these are. What is not there at
    /// all others are done with, or this puller, whose answer got lost; or it has become a dead letter, where there are some.
    pub fn acknowledge(&self, link: &mut Link, ids: &[Id]) -> Result<usize, ServerError> {
        let script = if self.dead.is_some() { &scripts().acknowledge_limited } else { &scripts().acknowledge };
        link.send(&self.on_ours(script, ids))?;
        counted(link)
    }

    /// Says that entries are done with, whoever has them; gives how many somebody had, which come to nobody any more. That is
    /// all that a server need do where nobody else can have them, and for one entry takes it a fifth of the time.
    pub fn acknowledge_own(&self, link: &mut Link, ids: &[Id]) -> Result<usize, ServerError> {
        let acknowledging = on_entries(&["XACK", &self.queue, GROUP], ids);
        // What is deleted comes to nobody, also if the second command gets lost.
        link.send(&[self.deleting(ids), acknowledging].concat())?;
        counted(link)?;
        counted(link)
    }

    /// The command that deletes entries.
    pub fn deleting(&self, ids: &[Id]) -> Vec<u8> {
        on_entries(&["XDEL", &self.queue], ids)
    }

    /// The command that adds a message, up to the message.
    pub fn adding(&self) -> Vec<u8> {
        let mut head = Vec::new();
        resp::head(&mut head, &["EVAL", ADD, "1", &self.queue, FIELD]);
        head
    }

    /// Leaves the group, unless something is pending.
    pub fn leave(&self, link: &mut Link) -> Result<(), ServerError> {
        link.ask(&["EVAL", LEAVE, "1", &self.queue, GROUP, &self.id], |items| items.integer())?;
        Ok(())
    }

    /// A script that begins with [`STILL_OURS`], of these entries.
    fn on_ours(&self, script: &str, ids: &[Id]) -> Vec<u8> {
        on_entries(&["EVAL", script, "1", &self.queue, GROUP, &self.id], ids)
    }
}

/// The answer is a number of entries.
fn counted(link: &mut Link) -> Result<usize, ServerError> {
    let count = link.answer(TIMEOUT, |items| items.integer())?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The command that ends with the ids of entries.
fn on_entries(front: &[&str], ids: &[Id]) -> Vec<u8> {
    let ids: Vec<String> = ids.iter().map(Id::to_string).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    packed(&[front, ids.as_slice()].concat())
}

fn packed(parts: &[&str]) -> Vec<u8> {
    let mut command = Vec::new();
    resp::command(&mut command, parts);
    command
}

/// Reads whether a stream has a group of this name.
fn has_group(items: &mut Items<'_>, name: &[u8]) -> Result<bool, Malformed> {
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
