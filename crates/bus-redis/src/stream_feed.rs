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

use std::collections::HashSet;
use std::time::Duration;

use tickpath_bus_api::{Event, Foreign, Gap, OriginTracker, Start, wire};

use crate::error::ServerError;
use crate::info::Run;
use crate::link::Link;
use crate::moment::Moment;
use crate::resp::{self, Item, Items};
use crate::server::Server;
use crate::stream::{Entry, Extent, Id, MESSAGES_OF_EXTENT, ask_extent, ask_length, extent, is_seen, read_extent};
use crate::stream_progress::{Found, Progress};

/// Max number of entries in one answer.
const MOST_ENTRIES: &str = "64";

/// Time that an `XREAD` waits for entries, in milliseconds.
const QUESTION_MS: &str = "1000";

/// Endless wait, for a reader that polls rarely: entries after the end of a finite wait would be found one poll later.
const ENDLESS_MS: &str = "0";

/// Time without a poll after which a reader counts as polling rarely, in nanoseconds.
const RARELY_NS: u64 = 900_000_000;

/// Interval of requests for the stream's length, in nanoseconds: one with each `XREAD` that ends without entries.
const LOOK_NS: u64 = 900_000_000;

/// Max number of publishers that are remembered; beyond it the set is cleared and learned again.
const MOST_PUBLISHERS: usize = 1024;

/// Connection that feeds a subscription.
pub(crate) struct Feed {
    link: Link,
    pub progress: Progress,
    /// Entries of the current answer that are still to be read.
    left: usize,
    /// True if the current entries will be read again, after the server's count.
    is_stale: bool,
    /// Request whose answer comes before the entries.
    ahead: Ahead,
    /// Time of the reader's last request, empty poll or sleep.
    seen: Moment,
    /// Time of the reader's last request.
    asked: Moment,
    /// True if the `XREAD` in flight waits without end.
    is_endless: bool,
    /// True if the reader was polling rarely on the previous connection.
    looks_rarely: bool,
    /// Longest silence of the server before the connection counts as dead.
    silence: Duration,
    /// Time of the last request for the stream's length or the server's count.
    looked: Moment,
    need: Need,
}

/// Request sent before an `XREAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    Nothing,
    /// Number of entries in the stream.
    Length,
    /// The server's count, because it is needed.
    Count,
    /// The server's count, because the length is too small.
    SuspectCount,
}

/// Reason for the next `XREAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The previous entries have come.
    Next,
    /// The previous `XREAD` timed out.
    Again,
    /// The server's count is needed first.
    Counting,
}

/// Conditions under which the server's count is needed.
struct Need {
    /// True if it is needed after each answer.
    always: bool,
    /// True if the current answer was preceded by a count.
    is_met: bool,
    /// True if the length suggests that unread entries are gone: the count follows when the next check is due.
    is_suspected: bool,
    /// Number of gone entries when it was last certain whether they are a loss; none if the server does not count.
    gone: Option<u64>,
    /// Publishers whose messages have come.
    publishers: HashSet<u64>,
}

impl Feed {
    /// Connects and sends the first `XREAD`; later messages are not missed.
    pub fn begin(server: &Server, topic: &str, start: Start) -> Result<Self, ServerError> {
        let mut link = Link::open_ready(server)?;
        let run = Run::ask(&mut link)?;
        let extent = extent(&mut link, topic)?;
        let (place, read) = match (start, extent) {
            (_, None) => (Id::START, Some(0)),
            (Start::Now, Some(extent)) => (extent.last, extent.added),
            (Start::Oldest | Start::Sequence(_) | Start::After(_), Some(extent)) => (Id::START, extent.gone()),
        };
        Self::asking(link, topic, Progress::begin(place, read, run), extent, server, false)
    }

    /// Reconnects and resumes after the last received entry wherever that is possible; `seen` has the numbers received
    /// so far. With `looks_rarely` the first `XREAD` waits without end.
    pub fn resume(
        server: &Server,
        topic: &str,
        before: &Progress,
        seen: &OriginTracker,
        looks_rarely: bool,
    ) -> Result<Self, ServerError> {
        let mut link = Link::open_ready(server)?;
        let run = Run::ask(&mut link)?;
        let at_place = is_seen(&mut link, topic, before.place(), seen)?;
        let at_furthest = match before.furthest() {
            Some(furthest) => is_seen(&mut link, topic, furthest, seen)?,
            None => None,
        };
        let extent = extent(&mut link, topic)?;
        let (has_place, is_another) = (at_place == Some(true), at_place == Some(false));
        let has_furthest = at_furthest == Some(true);
        let progress = before.resumed(Found { run, extent, has_place, is_another, has_furthest });
        Self::asking(link, topic, progress, extent, server, looks_rarely)
    }

    fn asking(
        link: Link,
        topic: &str,
        progress: Progress,
        extent: Option<Extent>,
        server: &Server,
        looks_rarely: bool,
    ) -> Result<Self, ServerError> {
        let (now, silence) = (Moment::now(server.clock()), server.silence());
        let need = Need {
            always: extent.is_some_and(|extent| extent.is_trimmed()),
            is_met: false,
            is_suspected: false,
            gone: extent.map_or(Some(0), |extent| extent.gone()),
            publishers: HashSet::new(),
        };
        let (seen, asked, looked, ahead) = (now, now, now, Ahead::Nothing);
        let (left, is_stale, is_endless) = (0, false, false);
        let mut feed = Self {
            link,
            progress,
            left,
            is_stale,
            ahead,
            seen,
            asked,
            is_endless,
            looks_rarely,
            silence,
            looked,
            need,
        };
        feed.ask(topic, Why::Next)?;
        // The count has just been requested.
        feed.need.is_met = true;
        Ok(feed)
    }

    fn ask(&mut self, topic: &str, why: Why) -> Result<(), ServerError> {
        let place = self.progress.place().to_string();
        let mut commands = Vec::with_capacity(192 + 2 * topic.len());
        self.need.is_met = false;
        let is_due = self.looked.is_past(LOOK_NS);
        self.ahead = match why {
            Why::Counting => Ahead::Count,
            Why::Next if self.need.always => Ahead::Count,
            Why::Next | Why::Again if !is_due => Ahead::Nothing,
            Why::Next | Why::Again if self.need.is_suspected => Ahead::SuspectCount,
            Why::Next | Why::Again => Ahead::Length,
        };
        self.is_endless = self.seen.is_past(RARELY_NS) || std::mem::take(&mut self.looks_rarely);
        let question = if self.is_endless { ENDLESS_MS } else { QUESTION_MS };
        self.seen = self.seen.restarted();
        self.asked = self.seen;
        if self.ahead != Ahead::Nothing {
            self.looked = self.seen;
        }
        match self.ahead {
            Ahead::Nothing => {}
            Ahead::Length => ask_length(&mut commands, topic),
            Ahead::Count | Ahead::SuspectCount => ask_extent(&mut commands, topic),
        }
        resp::command(&mut commands, &["XREAD", "COUNT", MOST_ENTRIES, "BLOCK", question, "STREAMS", topic, &place]);
        self.link.send(&commands)
    }

    /// Hands over received entries. Reads at most `limit` entries, null ones included.
    pub fn drain(
        &mut self,
        topic: &str,
        tracker: &mut OriginTracker,
        limit: usize,
        handler: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), ServerError> {
        for _ in 0..limit {
            if !self.has_more(topic)? {
                return Ok(());
            }
            if let Some(gap) = self.progress.take_gap() {
                tracker.told();
                handler(Event::Gap(gap));
                continue;
            }
            let Some(length) = self.entry_length()? else { return Ok(()) };
            if !self.is_stale
                && let Some(entry) = Entry::read(&mut Items::of(self.link.reply(length)))?
            {
                match hand_over(&entry, tracker, &mut self.need, handler)? {
                    Handed::Over => self.progress.pass(entry.id),
                    Handed::Missed(missed) => {
                        // Other publishers, which have ended, may have lost their last messages along with these.
                        self.need.always = true;
                        self.progress.miss(missed);
                        continue;
                    }
                    Handed::Uncounted => {
                        self.is_stale = true;
                        self.ask(topic, Why::Counting)?;
                        continue;
                    }
                }
            }
            self.link.consume(length);
            self.left -= 1;
            if self.left == 0 && !std::mem::take(&mut self.is_stale) {
                self.ask(topic, Why::Next)?;
            }
        }
        Ok(())
    }

    /// Returns true if an entry is coming in, or a gap is to be reported first.
    fn has_more(&mut self, topic: &str) -> Result<bool, ServerError> {
        while self.left == 0 && !self.progress.has_gap() {
            if self.ahead != Ahead::Nothing {
                if !self.has_looked()? {
                    return Ok(false);
                }
                continue;
            }
            match self.link.entries()? {
                Some((entries, bytes)) => {
                    self.link.consume(bytes);
                    self.left = entries.unwrap_or(0);
                    match entries {
                        // Entries were added, and are gone already.
                        Some(0) => self.ask(topic, Why::Counting)?,
                        Some(_) => {}
                        None => self.ask(topic, Why::Again)?,
                    }
                }
                None => {
                    if !self.link.receive()? && !self.prove()? {
                        self.seen = self.seen.restarted();
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
    fn prove(&mut self) -> Result<bool, ServerError> {
        if self.asked.elapsed().min(self.link.quiet()) < self.silence {
            return Ok(false);
        }
        // The process may have been preempted between the poll and the clock.
        if self.link.receive()? {
            return Ok(true);
        }
        Err(if self.is_endless { ServerError::Unproven } else { ServerError::Silent(self.silence) })
    }

    /// Reads the answer to the request before the `XREAD`, and updates the known or suspected loss. Returns false if it
    /// is incomplete.
    #[cold]
    fn has_looked(&mut self) -> Result<bool, ServerError> {
        let Some(length) = self.entry_length()? else { return Ok(false) };
        let mut items = Items::of(self.link.reply(length));
        let ahead = std::mem::replace(&mut self.ahead, Ahead::Nothing);
        if ahead == Ahead::Length {
            // A user without the right to ask goes without the length; any other refusal meets the `XREAD`, too.
            let entries =
                if let Some(Item::Integer(entries)) = items.item()? { u64::try_from(entries).ok() } else { None };
            self.link.consume(length);
            self.need.is_suspected = entries.is_some_and(|entries| self.progress.may_lack(entries, self.need.gone));
            return Ok(true);
        }
        let counted = match items.clone().item()? {
            Some(Item::Error(line)) => Err(self.link.refusal(line)),
            _ => Ok(read_extent(&mut items)?),
        };
        self.link.consume(length);
        (self.need.is_met, self.need.is_suspected) = (true, false);
        match counted {
            Ok(now) => self.count(&now, ahead == Ahead::Count).map(|()| true),
            Err(ServerError::Refused(line)) if line.contains("no such key") => match self.progress.place() {
                // The stream never existed.
                Id::START => Ok(true),
                _ => Err(ServerError::Anew),
            },
            Err(e) => Err(e),
        }
    }

    /// Applies the server's count, which was needed, or was requested because of the length.
    fn count(&mut self, now: &Extent, was_needed: bool) -> Result<(), ServerError> {
        self.progress.count(now).map_err(|_anew| ServerError::Anew)?;
        // Another client trims, perhaps unread entries. A reader that has lost nothing need not request the count more
        // often.
        self.need.always |= self.progress.has_gap() || was_needed && now.is_trimmed();
        if now.tells(self.progress.place()) {
            self.need.gone = now.gone();
        }
        self.need.is_suspected = self.progress.may_lack(now.length, self.need.gone);
        Ok(())
    }

    /// Returns the number of messages that the next value may bring.
    fn messages(&self) -> usize {
        if self.left == 0 { MESSAGES_OF_EXTENT } else { 1 }
    }

    /// Returns the length of the next entry of the answer; none if it has not come.
    fn entry_length(&mut self) -> Result<Option<usize>, ServerError> {
        loop {
            if let Some(length) = self.link.length(self.messages())? {
                return Ok(Some(length));
            }
            if !self.link.receive()? && !self.prove()? {
                return Ok(None);
            }
        }
    }

    /// Sleeps until bytes come, unless there is something to hand over already.
    pub fn sleep(&mut self, timeout: Duration) -> Result<(), ServerError> {
        let has_more = match self.left {
            _ if self.progress.has_gap() => true,
            0 if self.ahead == Ahead::Nothing => self.link.entries()?.is_some(),
            _ => self.link.length(self.messages())?.is_some(),
        };
        if has_more || timeout.is_zero() {
            return Ok(());
        }
        let has_come = self.link.receive_within(timeout.min(self.silence))?;
        // The reader polls as soon as something comes.
        self.seen = self.seen.restarted();
        if has_come { Ok(()) } else { self.prove().map(|_has_come| ()) }
    }
}

impl Need {
    /// Returns whether the count is needed before an entry of this publisher is handed over; `publisher` is none for a
    /// message without a number, `last` is the publisher of the message before.
    fn is_open(&mut self, publisher: Option<u64>, last: Option<u64>) -> bool {
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
        if self.publishers.len() >= MOST_PUBLISHERS {
            self.publishers.clear();
        }
        self.publishers.insert(publisher);
        false
    }
}

/// Outcome of handing an entry over.
enum Handed {
    /// The entry was handed over.
    Over,
    /// Number of missing entries before it, already reported; the entry is to be handed over again.
    Missed(u64),
    /// Nothing was handed over: the server's count is needed first.
    Uncounted,
}

/// Hands an entry over as [`wire::hand_over`] does.
fn hand_over(
    entry: &Entry<'_>,
    tracker: &mut OriginTracker,
    need: &mut Need,
    handler: &mut dyn FnMut(Event<'_>),
) -> Result<Handed, ServerError> {
    let message = wire::decode(entry.bytes);
    let publisher = message.and_then(|message| message.origin).map(|origin| origin.publisher);
    if need.is_open(publisher, tracker.last().map(|last| last.publisher)) {
        return Ok(Handed::Uncounted);
    }
    if message.is_none() {
        handler(Event::Foreign(Foreign { sequence: None, bytes: &entry.foreign()?, details: None }));
        return Ok(Handed::Over);
    }
    let mut missing = 0;
    let is_over = wire::hand_over(tracker, None, entry.bytes, &mut |event| {
        if let Event::Gap(Gap::Missed(missed)) = event {
            missing = missed;
        }
        handler(event);
    });
    Ok(if is_over { Handed::Over } else { Handed::Missed(missing) })
}
