//! A connection on which the question for more entries of a stream is out, or an answer is coming in.
//!
//! What is lost on the way is found in three ways. Of our publishers' messages the numbers tell it. Of a server that was
//! started again, or that copied its data from another one, nobody knows what it still has. And of entries that somebody
//! trimmed before they were read the server's count tells it. That is asked in front of each question where some are gone
//! already, and as soon as an entry has come whose publisher does not count, or entries have been missed; and once before the
//! first message of a publisher that has not been seen, for one that ended before may have lost its last messages.

use std::collections::HashSet;
use std::time::Duration;

use tickpath_bus_api::{Event, Foreign, Gap, OriginTracker, Start, wire};

use crate::error::ServerError;
use crate::info::Run;
use crate::link::Link;
use crate::resp::{self, Item, Items};
use crate::server::Server;
use crate::stream::{Entry, Extent, Id, ask_extent, extent, has_entry, read_extent};
use crate::stream_progress::{Found, Progress};

/// The most entries in one answer.
const MOST_ENTRIES: &str = "64";

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
    /// The server's count is still to come.
    is_counting: bool,
    need: Need,
}

/// When the server's count is needed.
struct Need {
    /// With each question.
    always: bool,
    /// The answer that is coming in was counted for.
    is_met: bool,
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
        Self::asking(link, topic, Progress::begin(place, read, run), extent)
    }

    /// Connects again, and goes on behind the last entry that came, wherever that is possible.
    pub fn resume(server: &Server, topic: &str, before: &Progress) -> Result<Self, ServerError> {
        let mut link = Link::open_ready(server)?;
        let run = Run::ask(&mut link)?;
        let has_place = has_entry(&mut link, topic, before.place())?;
        let has_furthest = match before.furthest() {
            Some(furthest) => has_entry(&mut link, topic, furthest)?,
            None => false,
        };
        let extent = extent(&mut link, topic)?;
        let progress = before.resumed(Found { run, extent, has_place, has_furthest });
        Self::asking(link, topic, progress, extent)
    }

    fn asking(link: Link, topic: &str, progress: Progress, now: Option<Extent>) -> Result<Self, ServerError> {
        let always = now.is_some_and(|now| now.is_trimmed());
        let need = Need { always, is_met: false, publishers: HashSet::new() };
        let mut feed = Self { link, progress, left: 0, is_stale: false, is_counting: false, need };
        feed.ask(topic, false)?;
        // Its count is known from just now.
        feed.need.is_met = true;
        Ok(feed)
    }

    fn ask(&mut self, topic: &str, counts: bool) -> Result<(), ServerError> {
        let place = self.progress.place().to_string();
        let mut commands = Vec::with_capacity(192 + 2 * topic.len());
        self.need.is_met = false;
        self.is_counting = counts || self.need.always;
        if self.is_counting {
            ask_extent(&mut commands, topic);
        }
        resp::command(&mut commands, &["XREAD", "COUNT", MOST_ENTRIES, "BLOCK", "0", "STREAMS", topic, &place]);
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
                        self.ask(topic, true)?;
                        continue;
                    }
                }
            }
            self.link.consume(length);
            self.left -= 1;
            if self.left == 0 && !std::mem::take(&mut self.is_stale) {
                self.ask(topic, false)?;
            }
        }
        Ok(())
    }

    /// True if an answer is coming in, or there is something to tell before it.
    fn has_more(&mut self, topic: &str) -> Result<bool, ServerError> {
        while self.left == 0 && !self.progress.has_gap() {
            if self.is_counting {
                if !self.has_counted()? {
                    return Ok(false);
                }
                continue;
            }
            match self.link.entries()? {
                Some((entries, bytes)) => {
                    self.link.consume(bytes);
                    self.left = entries;
                    if entries == 0 {
                        self.ask(topic, false)?;
                    }
                }
                None => {
                    if !self.link.receive()? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// True when the server's count has come, and what is missed is known.
    #[cold]
    fn has_counted(&mut self) -> Result<bool, ServerError> {
        let Some(length) = self.entry_length()? else { return Ok(false) };
        let mut items = Items::of(self.link.reply(length));
        let counted = match items.clone().item()? {
            Some(Item::Error(line)) => Err(self.link.refusal(line)),
            _ => Ok(read_extent(&mut items)?),
        };
        self.link.consume(length);
        (self.is_counting, self.need.is_met) = (false, true);
        match counted {
            Ok(now) => {
                self.progress.count(&now).map_err(|_anew| ServerError::Anew)?;
                // Somebody trims, perhaps what is not read yet.
                self.need.always |= now.is_trimmed() || self.progress.has_gap();
                Ok(true)
            }
            Err(ServerError::Refused(line)) if line.contains("no such key") => match self.progress.place() {
                // There never was one.
                Id::START => Ok(true),
                _ => Err(ServerError::Anew),
            },
            Err(e) => Err(e),
        }
    }

    /// How many bytes the next entry of the answer has; none if it has not come.
    fn entry_length(&mut self) -> Result<Option<usize>, ServerError> {
        loop {
            if let Some(length) = self.link.length()? {
                return Ok(Some(length));
            }
            if !self.link.receive()? {
                return Ok(None);
            }
        }
    }

    /// Sleeps until bytes come, unless there is something to hand over already.
    pub fn sleep(&mut self, timeout: Duration) -> Result<(), ServerError> {
        let has_more = match self.left {
            _ if self.progress.has_gap() => true,
            0 if !self.is_counting => self.link.entries()?.is_some(),
            _ => self.link.length()?.is_some(),
        };
        if !has_more && !timeout.is_zero() {
            self.link.receive_within(timeout)?;
        }
        Ok(())
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
        handler(Event::Foreign(Foreign { sequence: None, bytes: &entry.foreign()? }));
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
