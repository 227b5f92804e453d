//! A connection on which the question for more entries of a stream is out, or an answer is coming in.
//!
//! What is lost on the way is found in three ways. Of our publishers' messages the numbers tell it. Of a server that was
//! started again, or that copied its data from another one, nobody knows what it still has. And of entries that somebody
//! trimmed before they were read the server's count tells it: that is asked with each question as soon as a message has
//! come whose numbers do not tell, because it is somebody else's.
//!
//! ```text
//!   entries ever added    0 … 7 │ 8 … 11 │ 12 … 20        added = 21, length = 9: gone = 12
//!                          read │  lost  │ still there    read = 8: gone – read = 4 are missed
//! ```

use std::time::Duration;

use tickpath_bus_api::origin::Sighting;
use tickpath_bus_api::{Event, Foreign, Gap, OriginTracker, Start, wire};

use crate::error::ServerError;
use crate::info::Run;
use crate::link::Link;
use crate::resp::{self, Items};
use crate::server::Server;
use crate::stream::{Entry, Extent, Id, ask_extent, extent, read_extent};

/// The most entries in one answer.
const MOST_ENTRIES: &str = "64";

/// How far a subscription has come.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// The last entry that came, or where the subscription begins.
    place: Id,
    /// How many entries the stream had ever had up to this place; none if nobody told.
    read: Option<u64>,
    /// The server, as it was when the connection was made.
    run: Option<Run>,
}

/// A connection that feeds a subscription.
pub(crate) struct Feed {
    link: Link,
    pub progress: Progress,
    /// What is to be told before anything else.
    pub gap: Option<Gap>,
    /// Entries of the answer that are still to come.
    left: usize,
    /// The next question asks for the server's count, too.
    looks: Look,
    /// The answer to that is still to come.
    is_counting: bool,
}

/// When the server is asked for its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Never,
    Once,
    Always,
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
        Self::asking(link, topic, Progress { place, read, run }, None)
    }

    /// Connects again, and goes on behind the last entry that came, wherever that is possible: never at the beginning of
    /// what has come already.
    pub fn resume(server: &Server, topic: &str, before: &Progress) -> Result<Self, ServerError> {
        let mut link = Link::open_ready(server)?;
        let run = Run::ask(&mut link)?;
        let now = extent(&mut link, topic)?;
        let has_kept_all = Run::has_kept_all(before.run.as_ref(), run.as_ref());
        let (place, read, gap) = match now {
            None => (Id::START, Some(0), Some(Gap::Reconnected)),
            // It has gone back behind what has come: its last entry is one of those.
            Some(now) if now.last < before.place => (now.last, now.added, Some(Gap::Reconnected)),
            Some(_) if !has_kept_all => (before.place, None, Some(Gap::Reconnected)),
            Some(now) => {
                let missed = missed(&now, before);
                let read = before.read.map(|read| read.saturating_add(missed));
                (before.place, read, (missed > 0).then_some(Gap::Missed(missed)))
            }
        };
        Self::asking(link, topic, Progress { place, read, run }, gap)
    }

    fn asking(link: Link, topic: &str, progress: Progress, gap: Option<Gap>) -> Result<Self, ServerError> {
        let mut feed = Self { link, progress, gap, left: 0, looks: Look::Never, is_counting: false };
        feed.ask(topic)?;
        Ok(feed)
    }

    fn ask(&mut self, topic: &str) -> Result<(), ServerError> {
        let place = self.progress.place.to_string();
        let mut commands = Vec::with_capacity(192 + 2 * topic.len());
        if self.looks != Look::Never {
            self.is_counting = true;
            ask_extent(&mut commands, topic);
        }
        if self.looks == Look::Once {
            self.looks = Look::Never;
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
            if !self.has_answer(topic)? {
                return Ok(());
            }
            if let Some(gap) = self.gap.take() {
                tracker.told();
                handler(Event::Gap(gap));
                continue;
            }
            let Some(length) = self.entry_length()? else { return Ok(()) };
            if let Some(entry) = Entry::read(&mut Items::of(self.link.reply(length)))? {
                match hand_over(&entry, tracker, handler)? {
                    Handed::Over(look) => {
                        self.looks = self.looks.max(look);
                        self.progress.pass(entry.id);
                    }
                    Handed::Gap(missed) => {
                        // What numbers have told the count must not tell again.
                        self.progress.read = self.progress.read.map(|read| read.saturating_add(missed));
                        continue;
                    }
                }
            }
            self.link.consume(length);
            self.left -= 1;
            if self.left == 0 {
                self.ask(topic)?;
            }
        }
        Ok(())
    }

    /// True if an answer is coming in.
    fn has_answer(&mut self, topic: &str) -> Result<bool, ServerError> {
        if self.is_counting && !self.has_counted()? {
            return Ok(false);
        }
        while self.left == 0 {
            match self.link.entries()? {
                Some((entries, bytes)) => {
                    self.link.consume(bytes);
                    self.left = entries;
                    if entries == 0 {
                        self.ask(topic)?;
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
        let length = loop {
            match self.link.length()? {
                Some(length) => break length,
                None if !self.link.receive()? => return Ok(false),
                None => {}
            }
        };
        let mut items = Items::of(self.link.reply(length));
        let counted = match items.clone().item()? {
            // The stream is gone: the answer to the question says so, or what comes next.
            Some(resp::Item::Error(_)) => None,
            _ => Some(read_extent(&mut items)?),
        };
        self.link.consume(length);
        self.is_counting = false;
        if let Some(now) = counted {
            match missed(&now, &self.progress) {
                0 => self.progress.anchor(&now),
                missed => {
                    self.progress.read = now.gone();
                    self.gap = Some(Gap::Missed(missed));
                }
            }
        }
        Ok(true)
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
        let is_whole = |link: &Link| link.length().map(|length| length.is_some());
        let has_more = match self.left {
            0 if self.is_counting => is_whole(&self.link)?,
            0 => self.link.entries()?.is_some(),
            _ => is_whole(&self.link)?,
        };
        if !has_more && !timeout.is_zero() {
            self.link.receive_within(timeout)?;
        }
        Ok(())
    }
}

impl Look {
    fn max(self, other: Self) -> Self {
        match (self, other) {
            (Self::Always, _) | (_, Self::Always) => Self::Always,
            (Self::Once, _) | (_, Self::Once) => Self::Once,
            _ => Self::Never,
        }
    }
}

impl Progress {
    fn pass(&mut self, id: Id) {
        self.place = id;
        self.read = self.read.map(|read| read + 1);
    }

    /// Takes the server's count for ours where ours is not known, and everything is read.
    fn anchor(&mut self, now: &Extent) {
        if self.read.is_none() && now.last == self.place {
            self.read = now.added;
        }
    }
}

/// Entries that are gone and were not read.
fn missed(now: &Extent, before: &Progress) -> u64 {
    match (now.gone(), before.read) {
        (Some(gone), Some(read)) => gone.saturating_sub(read),
        _ => 0,
    }
}

/// What came of handing an entry over.
enum Handed {
    /// It is done with; the server's count is to be asked for like this.
    Over(Look),
    /// So many are missing before it, which is told; the entry is to be handed over once more.
    Gap(u64),
}

/// Hands an entry over as [`wire::hand_over`] does.
fn hand_over(
    entry: &Entry<'_>,
    tracker: &mut OriginTracker,
    handler: &mut dyn FnMut(Event<'_>),
) -> Result<Handed, ServerError> {
    let Some(message) = wire::decode(entry.bytes) else {
        handler(Event::Foreign(Foreign { sequence: None, bytes: &entry.foreign()? }));
        return Ok(Handed::Over(Look::Always));
    };
    let look = match message.origin.map(|origin| tracker.see(origin)) {
        Some(Sighting::Again) => return Ok(Handed::Over(Look::Never)),
        Some(Sighting::After(missed)) => {
            handler(Event::Gap(Gap::Missed(missed)));
            return Ok(Handed::Gap(missed));
        }
        Some(Sighting::Next) => Look::Never,
        Some(Sighting::First) => Look::Once,
        None => Look::Always,
    };
    handler(Event::Message(message));
    Ok(Handed::Over(look))
}
