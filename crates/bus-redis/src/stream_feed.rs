//! Connection of a stream subscription, with an `XREAD` in flight or its answer coming in.
//!
//! Losses are found in three ways. Messages of our publishers are numbered. A server that restarted, or that copied its
//! data from another one, may have lost entries, and the loss is unknown. Entries trimmed before they were read show in
//! the server's count. The count is requested before each `XREAD` once entries are gone, an entry without a number has
//! come or a gap was found; and once before the first message of a new publisher, because one that ended earlier may
//! have lost its last messages.
//!
//! That misses a burst that comes and is trimmed whole before any of it reaches the reader. Then all earlier entries
//! are gone, too, and the stream has fewer entries than were read. So an `XREAD` ends after a second, and once a second
//! the length is requested before it, which costs the server next to nothing. Only if the length is too small, the
//! count follows with the `XREAD` that is due a second later:
//!
//! ```text
//!   XREAD BLOCK 1000 …       ──>
//!   nothing, for a second    <──
//!   XLEN, XREAD BLOCK 1000 … ──>     0: what was read is gone, and perhaps more
//!   0, and again nothing     <──
//!   XINFO, XREAD …           ──>     20 were ever added, and 15 were read: 5 are missed
//! ```
//! Such a loss is reported within three seconds, so perhaps after messages that followed it. A server before version 7
//! has no count: there it is reported as a loss of unknown size, and only if nothing follows until the reader asks. An
//! answer without an entry, which servers before 7.2 give where entries came and went at once, is such a loss, too.
//! Design: `docs/design/redis-streams.md`.

use std::collections::HashSet;
use std::time::Duration;

use tickpath_bus_api::{ForeignMessage, Gap, MessageIdTracker, StartPosition, SubscriptionEvent, wire};

use crate::connection::RedisConnection;
use crate::error::{RedisServerError, ServerResult};
use crate::host_instant::HostInstant;
use crate::info::DataIdentity;
use crate::resp::{self, RespItem, RespReader};
use crate::server::RedisEndpoint;
use crate::stream::{EXTENT_MESSAGES, EntryId, StreamEntry, StreamExtent, read_extent, request_extent, was_received};
use crate::stream_position::{StreamPosition, StreamResumeState};

const MAX_ENTRIES: &str = "64";

/// Time that an `XREAD` waits for entries, in milliseconds.
const BLOCK_MS: &str = "1000";

/// Endless wait, for a reader that polls rarely: entries after the end of a finite wait would be found one poll later.
const BLOCK_FOREVER_MS: &str = "0";

/// Time without a poll after which a reader counts as polling rarely, in nanoseconds.
const RARE_POLL_NS: u64 = 900_000_000;

/// Interval of requests for the stream's length, in nanoseconds: one with each `XREAD` that ends without entries.
const LENGTH_CHECK_NS: u64 = 900_000_000;

/// Max number of publishers that are remembered; beyond it the set is cleared and learned again.
const MAX_PUBLISHERS: usize = 1024;

/// Connection that feeds a subscription.
pub(crate) struct StreamFeed {
    link: RedisConnection,
    pub progress: StreamPosition,
    /// Entries of the current answer that are still to be read.
    entries_left: usize,
    /// True if the current entries will be read again, after the server's count.
    is_stale: bool,
    /// Request whose answer comes before the entries.
    preflight: ReadPreflight,
    /// Time of the reader's last request, empty poll or sleep.
    last_poll: HostInstant,
    /// Time of the reader's last request.
    last_request: HostInstant,
    /// True if the `XREAD` in flight waits without end.
    is_endless: bool,
    /// True if the reader was polling rarely on the previous connection.
    polls_rarely: bool,
    /// Longest silence of the server before the connection counts as dead.
    silence: Duration,
    /// Time of the last request for the stream's length or the server's count.
    last_check: HostInstant,
    count_need: CountNeed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadPreflight {
    Nothing,
    Length,
    /// The server's count, because it is needed.
    Count,
    /// The server's count, because the length is too small.
    SuspectCount,
}

/// Reason for the next `XREAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadReason {
    /// The previous entries have come.
    Next,
    TimedOut,
    /// The server's count is needed first.
    Counting,
}

/// Conditions under which the server's count is needed.
struct CountNeed {
    /// True if it is needed after each answer.
    always: bool,
    /// True if the current answer was preceded by a count.
    is_met: bool,
    /// True if the length suggests that unread entries are gone: the count follows when the next check is due.
    is_suspected: bool,
    /// Number of gone entries when it was last certain whether they are a loss; none if the server does not count.
    trimmed_count: Option<u64>,
    /// Publishers whose messages have come.
    publishers: HashSet<u64>,
}

impl StreamFeed {
    /// Connects and sends the first `XREAD`; later messages are not missed.
    pub fn begin(server: &RedisEndpoint, topic: &str, start: StartPosition) -> ServerResult<Self> {
        let mut link = RedisConnection::open_ready(server)?;
        let run = DataIdentity::request(&mut link)?;
        let extent = request_extent(&mut link, topic)?;
        let (position, read) = match (start, extent) {
            (_, None) => (EntryId::START, Some(0)),
            (StartPosition::Now, Some(extent)) => (extent.last, extent.added),
            (StartPosition::Oldest | StartPosition::Sequence(_) | StartPosition::After(_), Some(extent)) => {
                (EntryId::START, extent.trimmed_count())
            }
        };
        Self::start_reading(link, topic, StreamPosition::begin(position, read, run), extent, server, false)
    }

    /// Reconnects and resumes after the last received entry wherever that is possible; `seen` has the numbers received
    /// so far. With `polls_rarely` the first `XREAD` waits without end.
    pub fn resume(
        server: &RedisEndpoint,
        topic: &str,
        before: &StreamPosition,
        seen: &MessageIdTracker,
        polls_rarely: bool,
    ) -> ServerResult<Self> {
        let mut link = RedisConnection::open_ready(server)?;
        let run = DataIdentity::request(&mut link)?;
        let last_entry = was_received(&mut link, topic, before.last_id(), seen)?;
        let furthest_entry = match before.furthest() {
            Some(furthest) => was_received(&mut link, topic, furthest, seen)?,
            None => None,
        };
        let extent = request_extent(&mut link, topic)?;
        let (has_last_entry, is_replaced) = (last_entry == Some(true), last_entry == Some(false));
        let has_furthest = furthest_entry == Some(true);
        let progress = before.resumed_on(StreamResumeState { run, extent, has_last_entry, is_replaced, has_furthest });
        Self::start_reading(link, topic, progress, extent, server, polls_rarely)
    }

    fn start_reading(
        link: RedisConnection,
        topic: &str,
        progress: StreamPosition,
        extent: Option<StreamExtent>,
        server: &RedisEndpoint,
        polls_rarely: bool,
    ) -> ServerResult<Self> {
        let now = HostInstant::now(server.clock);
        let count_need = CountNeed {
            always: extent.is_some_and(|extent| extent.is_trimmed()),
            is_met: false,
            is_suspected: false,
            trimmed_count: extent.map_or(Some(0), |extent| extent.trimmed_count()),
            publishers: HashSet::new(),
        };
        let mut feed = Self {
            link,
            progress,
            entries_left: 0,
            is_stale: false,
            preflight: ReadPreflight::Nothing,
            last_poll: now,
            last_request: now,
            is_endless: false,
            polls_rarely,
            silence: server.silence,
            last_check: now,
            count_need,
        };
        feed.request_entries(topic, ReadReason::Next)?;
        // The count has just been requested.
        feed.count_need.is_met = true;
        Ok(feed)
    }

    fn request_entries(&mut self, topic: &str, why: ReadReason) -> ServerResult {
        let position = self.progress.last_id().to_string();
        let mut commands = Vec::with_capacity(192 + 2 * topic.len());
        self.count_need.is_met = false;
        let is_due = self.last_check.is_older_than(LENGTH_CHECK_NS);
        self.preflight = match why {
            ReadReason::Counting => ReadPreflight::Count,
            ReadReason::Next if self.count_need.always => ReadPreflight::Count,
            ReadReason::Next | ReadReason::TimedOut if !is_due => ReadPreflight::Nothing,
            ReadReason::Next | ReadReason::TimedOut if self.count_need.is_suspected => ReadPreflight::SuspectCount,
            ReadReason::Next | ReadReason::TimedOut => ReadPreflight::Length,
        };
        self.is_endless = self.last_poll.is_older_than(RARE_POLL_NS) || std::mem::take(&mut self.polls_rarely);
        let question = if self.is_endless { BLOCK_FOREVER_MS } else { BLOCK_MS };
        self.last_poll = self.last_poll.restarted();
        self.last_request = self.last_poll;
        if self.preflight != ReadPreflight::Nothing {
            self.last_check = self.last_poll;
        }
        match self.preflight {
            ReadPreflight::Nothing => {}
            ReadPreflight::Length => resp::command(&mut commands, &["XLEN", topic]),
            ReadPreflight::Count | ReadPreflight::SuspectCount => {
                resp::command(&mut commands, &["XINFO", "STREAM", topic])
            }
        }
        resp::command(&mut commands, &["XREAD", "COUNT", MAX_ENTRIES, "BLOCK", question, "STREAMS", topic, &position]);
        self.link.send(&commands)
    }

    /// Hands over received entries. Reads at most `limit` entries, null ones included.
    pub fn drain(
        &mut self,
        topic: &str,
        tracker: &mut MessageIdTracker,
        limit: usize,
        handler: &mut dyn FnMut(SubscriptionEvent<'_>),
    ) -> ServerResult {
        for _ in 0..limit {
            if !self.has_more(topic)? {
                return Ok(());
            }
            if let Some(gap) = self.progress.take_gap() {
                tracker.gap_reported();
                handler(SubscriptionEvent::Gap(gap));
                continue;
            }
            let Some(length) = self.entry_length()? else { return Ok(()) };
            if !self.is_stale
                && let Some(entry) = StreamEntry::read(&mut RespReader::new(self.link.reply(length)))?
            {
                match hand_over(&entry, tracker, &mut self.count_need, handler)? {
                    EntryOutcome::Delivered => self.progress.advance(entry.id),
                    EntryOutcome::Missed(missed) => {
                        // Other publishers, which have ended, may have lost their last messages along with these.
                        self.count_need.always = true;
                        self.progress.add_missed(missed);
                        continue;
                    }
                    EntryOutcome::CountNeeded => {
                        self.is_stale = true;
                        self.request_entries(topic, ReadReason::Counting)?;
                        continue;
                    }
                }
            }
            self.link.consume(length);
            self.entries_left -= 1;
            if self.entries_left == 0 && !std::mem::take(&mut self.is_stale) {
                self.request_entries(topic, ReadReason::Next)?;
            }
        }
        Ok(())
    }

    /// Returns true if an entry is coming in, or a gap is to be reported first.
    fn has_more(&mut self, topic: &str) -> ServerResult<bool> {
        while self.entries_left == 0 && !self.progress.has_gap() {
            if self.preflight != ReadPreflight::Nothing {
                if !self.read_preflight()? {
                    return Ok(false);
                }
                continue;
            }
            match self.link.entries()? {
                Some((entries, bytes)) => {
                    self.link.consume(bytes);
                    self.entries_left = entries.unwrap_or(0);
                    match entries {
                        // Entries were added, and are gone already.
                        Some(0) => self.request_entries(topic, ReadReason::Counting)?,
                        Some(_) => {}
                        None => self.request_entries(topic, ReadReason::TimedOut)?,
                    }
                }
                None => {
                    if !self.link.receive()? && !self.check_alive()? {
                        self.last_poll = self.last_poll.restarted();
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Checks a silent connection: fails if the server has sent nothing for `silence` though an answer was due. An
    /// endless `XREAD` has no due time, so it is unknown whether the server is gone. Returns true if bytes came in the
    /// last moment.
    fn check_alive(&mut self) -> ServerResult<bool> {
        if self.last_request.elapsed().min(self.link.idle_time()) < self.silence {
            return Ok(false);
        }
        // The process may have been preempted between the poll and the clock.
        if self.link.receive()? {
            return Ok(true);
        }
        Err(if self.is_endless { RedisServerError::LivenessUnknown } else { RedisServerError::Silent(self.silence) })
    }

    /// Reads the answer to the request before the `XREAD`, and updates the known or suspected loss. Returns false if it
    /// is incomplete.
    #[cold]
    fn read_preflight(&mut self) -> ServerResult<bool> {
        let Some(length) = self.entry_length()? else { return Ok(false) };
        let mut items = RespReader::new(self.link.reply(length));
        let preflight = std::mem::replace(&mut self.preflight, ReadPreflight::Nothing);
        if preflight == ReadPreflight::Length {
            // A user without the right to ask goes without the length; any other refusal meets the `XREAD`, too.
            let entries =
                if let Some(RespItem::Integer(entries)) = items.item()? { u64::try_from(entries).ok() } else { None };
            self.link.consume(length);
            self.count_need.is_suspected =
                entries.is_some_and(|entries| self.progress.may_have_lost(entries, self.count_need.trimmed_count));
            return Ok(true);
        }
        let counted = match items.clone().item()? {
            Some(RespItem::Error(line)) => Err(self.link.error_of_line(line)),
            _ => Ok(read_extent(&mut items)?),
        };
        self.link.consume(length);
        (self.count_need.is_met, self.count_need.is_suspected) = (true, false);
        match counted {
            Ok(now) => self.apply_count(&now, preflight == ReadPreflight::Count).map(|()| true),
            Err(RedisServerError::Refused(line)) if line.contains("no such key") => match self.progress.last_id() {
                // The stream never existed.
                EntryId::START => Ok(true),
                _ => Err(RedisServerError::StreamReplaced),
            },
            Err(e) => Err(e),
        }
    }

    /// Applies the server's count, which was needed, or was requested because of the length.
    fn apply_count(&mut self, now: &StreamExtent, was_needed: bool) -> ServerResult {
        self.progress.compare_count(now).map_err(|_anew| RedisServerError::StreamReplaced)?;
        // Another client trims, perhaps unread entries. A reader that has lost nothing need not request the count more
        // often.
        self.count_need.always |= self.progress.has_gap() || was_needed && now.is_trimmed();
        if now.shows_loss_after(self.progress.last_id()) {
            self.count_need.trimmed_count = now.trimmed_count();
        }
        self.count_need.is_suspected = self.progress.may_have_lost(now.length, self.count_need.trimmed_count);
        Ok(())
    }

    /// Returns the number of messages that the next value may bring.
    fn max_messages(&self) -> usize {
        if self.entries_left == 0 { EXTENT_MESSAGES } else { 1 }
    }

    /// Returns the length of the next entry of the answer; none if it has not come.
    fn entry_length(&mut self) -> ServerResult<Option<usize>> {
        loop {
            if let Some(length) = self.link.length(self.max_messages())? {
                return Ok(Some(length));
            }
            if !self.link.receive()? && !self.check_alive()? {
                return Ok(None);
            }
        }
    }

    /// Sleeps until bytes come, unless there is something to hand over already.
    pub fn sleep(&mut self, timeout: Duration) -> ServerResult {
        let has_more = match self.entries_left {
            _ if self.progress.has_gap() => true,
            0 if self.preflight == ReadPreflight::Nothing => self.link.entries()?.is_some(),
            _ => self.link.length(self.max_messages())?.is_some(),
        };
        if has_more || timeout.is_zero() {
            return Ok(());
        }
        let has_come = self.link.receive_within(timeout.min(self.silence))?;
        // The reader polls as soon as something comes.
        self.last_poll = self.last_poll.restarted();
        if has_come { Ok(()) } else { self.check_alive().map(|_has_come| ()) }
    }
}

impl CountNeed {
    /// Returns whether the count is needed before an entry of this publisher is handed over; `publisher` is none for a
    /// message without a number, `last` is the publisher of the message before.
    fn is_unmet(&mut self, publisher: Option<u64>, last: Option<u64>) -> bool {
        let Some(publisher) = publisher else {
            self.always = true;
            return !self.is_met;
        };
        if Some(publisher) == last {
            return false;
        }
        if !self.is_met && !self.publishers.contains(&publisher) {
            return true;
        }
        if self.publishers.len() >= MAX_PUBLISHERS {
            self.publishers.clear();
        }
        self.publishers.insert(publisher);
        false
    }
}

enum EntryOutcome {
    Delivered,
    /// Number of missing entries before it, already reported; the entry is to be handed over again.
    Missed(u64),
    /// Nothing was handed over: the server's count is needed first.
    CountNeeded,
}

/// Hands an entry over as [`wire::hand_over`] does.
fn hand_over(
    entry: &StreamEntry<'_>,
    tracker: &mut MessageIdTracker,
    count_need: &mut CountNeed,
    handler: &mut dyn FnMut(SubscriptionEvent<'_>),
) -> ServerResult<EntryOutcome> {
    let message = wire::decode(entry.bytes);
    let publisher = message.and_then(|message| message.id).map(|origin| origin.publisher);
    if count_need.is_unmet(publisher, tracker.last().map(|last| last.publisher)) {
        return Ok(EntryOutcome::CountNeeded);
    }
    if message.is_none() {
        handler(SubscriptionEvent::Foreign(ForeignMessage { sequence: None, bytes: &entry.to_json()?, details: None }));
        return Ok(EntryOutcome::Delivered);
    }
    let mut missing = 0;
    let is_over = wire::deliver(tracker, None, entry.bytes, &mut |event| {
        if let SubscriptionEvent::Gap(Gap::Missed(missed)) = event {
            missing = missed;
        }
        handler(event);
    });
    Ok(if is_over { EntryOutcome::Delivered } else { EntryOutcome::Missed(missing) })
}
