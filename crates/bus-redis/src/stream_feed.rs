//! A connection on which the question for more entries of a stream is out, or an answer is coming in.
//!
//! What is lost on the way is found in three ways. Of our publishers' messages the numbers tell it. Of a server that was
//! started again, or that copied its data from another one, nobody knows what it still has. And of entries that somebody
//! trimmed before they were read the server's count tells it. That is asked in front of each question where some are gone
//! already, and as soon as an entry has come whose publisher does not count, or entries have been missed; and once before the
//! first message of a publisher that has not been seen, for one that ended before may have lost its last messages.
//!
//! All that leaves out what comes and goes while nothing of it reaches the reader: a burst of somebody that is trimmed whole.
//! Then all before it is gone, too, and the stream has fewer entries than were read. So a question ends after a second, and
//! once a second the length is asked for in front of one, which costs the server next to nothing. Only where it is too small
//! the count follows with the question that is due a second later:
//!
//! ```text
//!   XREAD BLOCK 1000 …       ──>
//!   nothing, for a second    <──
//!   XLEN, XREAD BLOCK 1000 … ──>     0: what was read is gone, and perhaps more
//!   0, and again nothing     <──
//!   XINFO, XREAD …           ──>     20 were ever added, and 15 were read: 5 are missed
//! ```
//! Such a loss is told within three seconds, and so perhaps behind what followed. A server before version 7 has no count:
//! there it is told as one that nobody can count, and only if nothing follows until the reader asks. An answer without an
//! entry, which servers before 7.2 give where some came and went at once, is such a loss, too.

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

/// The most entries in one answer.
const MOST_ENTRIES: &str = "64";

/// How long a question waits for something to come, in milliseconds.
const QUESTION_MS: &str = "1000";

/// That of a reader who looks rarely: it has no end. What comes behind the end of a question he would find one look later.
const ENDLESS_MS: &str = "0";

/// Who has not looked for so long looks rarely, in nanoseconds.
const RARELY_NS: u64 = 900_000_000;

/// How often the stream's length is asked for, in nanoseconds: with each question that ends without an answer.
const LOOK_NS: u64 = 900_000_000;

/// The most publishers that are known by name; beyond that they are learned anew.
const MOST_PUBLISHERS: usize = 1024;

/// A connection that feeds a subscription.
pub(crate) struct Feed {
    link: Link,
    pub progress: Progress,
    /// Entries of the answer that are still to come.
    left: usize,
    /// These entries come again, behind the server's count.
    is_stale: bool,
    /// What is still to come in front of them.
    ahead: Ahead,
    /// When the reader asked, found nothing or slept last.
    seen: Moment,
    /// When he asked last.
    asked: Moment,
    /// That question has no end.
    is_endless: bool,
    /// He is known to look rarely, from before this connection.
    looks_rarely: bool,
    /// How long the server may say nothing.
    silence: Duration,
    /// When he asked last for the stream's length or the server's count.
    looked: Moment,
    need: Need,
}

/// What is asked for in front of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    Nothing,
    /// How many entries the stream has.
    Length,
    /// The server's count: that is needed.
    Count,
    /// The server's count: the length is too small.
    SuspectCount,
}

/// Why the next entries are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Those before have come.
    Next,
    /// None came for so long.
    Again,
    /// The server's count is needed first.
    Counting,
}

/// When the server's count is needed.
struct Need {
    /// Behind each answer.
    always: bool,
    /// The answer that is coming in was counted for.
    is_met: bool,
    /// Some entries may be gone that were not read, by the length: the count is asked for when it is time for a look.
    is_suspected: bool,
    /// How many entries were gone when it was known last whether that was a loss; none if the server does not count.
    gone: Option<u64>,
    /// Publishers whose messages have come.
    publishers: HashSet<u64>,
}

impl Feed {
    /// Connects; what is published when this returns is not missed.
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

    /// Connects again, and goes on behind the last entry that came, wherever that is possible; `seen` had come by then.
    /// A reader that looks rarely asks without an end from the first question on.
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
        // Its count is known from just now.
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

    /// Hands over what has come. Looks at no more than `limit` entries, also where they are null.
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
                        // Others, who have ended, may have lost their last ones with these.
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

    /// True if an answer is coming in, or there is something to tell before it.
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
                        // Some were there, and are not.
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

    /// Nothing has come: fails if the server has said nothing for as long as it may, though an answer was due. A question
    /// without an end has none: there it is not known whether the server is gone or has nothing to say. True if something has
    /// come in the last moment.
    fn prove(&mut self) -> Result<bool, ServerError> {
        if self.asked.elapsed().min(self.link.quiet()) < self.silence {
            return Ok(false);
        }
        // Between the look and the clock the process may have stood still.
        if self.link.receive()? {
            return Ok(true);
        }
        Err(if self.is_endless { ServerError::Unproven } else { ServerError::Silent(self.silence) })
    }

    /// True when what was asked for in front of the question has come, and what is missed is known, or may be.
    #[cold]
    fn has_looked(&mut self) -> Result<bool, ServerError> {
        let Some(length) = self.entry_length()? else { return Ok(false) };
        let mut items = Items::of(self.link.reply(length));
        let ahead = std::mem::replace(&mut self.ahead, Ahead::Nothing);
        if ahead == Ahead::Length {
            // Who may not ask for it goes without, and what else is refused the question itself is refused, too.
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
                // There never was one.
                Id::START => Ok(true),
                _ => Err(ServerError::Anew),
            },
            Err(e) => Err(e),
        }
    }

    /// The server's count has come, because it was needed, or because the length was too small.
    fn count(&mut self, now: &Extent, was_needed: bool) -> Result<(), ServerError> {
        self.progress.count(now).map_err(|_anew| ServerError::Anew)?;
        // Somebody trims, perhaps what is not read yet. A reader who has lost nothing need not ask for it more often.
        self.need.always |= self.progress.has_gap() || was_needed && now.is_trimmed();
        if now.tells(self.progress.place()) {
            self.need.gone = now.gone();
        }
        self.need.is_suspected = self.progress.may_lack(now.length, self.need.gone);
        Ok(())
    }

    /// How many messages the value that comes next brings.
    fn messages(&self) -> usize {
        if self.left == 0 { MESSAGES_OF_EXTENT } else { 1 }
    }

    /// How many bytes the next entry of the answer has; none if it has not come.
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
        // He looks as soon as something comes.
        self.seen = self.seen.restarted();
        if has_come { Ok(()) } else { self.prove().map(|_has_come| ()) }
    }
}

impl Need {
    /// Whether the count is to be asked for before an entry of this publisher is handed over; none if nobody counts it.
    /// `last` is the publisher of the message before.
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

/// What came of handing an entry over.
enum Handed {
    /// It is done with.
    Over,
    /// So many are missing before it, which is told; the entry is to be handed over once more.
    Missed(u64),
    /// Nothing is handed over: the server's count is to be asked for before that.
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
