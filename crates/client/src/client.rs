//! The client itself.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use tickpath_clock::{Clock, HostClock};
use tickpath_market::Request;
use tickpath_session::{CONDITIONAL_VERSION, INSTRUMENTS_VERSION, InstrumentRow, Kind, MOST_PAYLOAD, Query, Welcome};
use zerocopy::IntoBytes;

use crate::line::Line;
use crate::logon::Entry;
use crate::numbers::Numbers;
use crate::reconnect::{Outcome, Reconnect, longer};
use crate::{ClientError, Config, Counts, Event, SendError, Since};

/// A connection that lived as long as this was a good one: the next is made without a pause.
const GOOD_AGE_NS: u64 = 1_000_000_000;

/// The longest sleep while an answer is awaited.
const WAIT_NS: u64 = 10_000_000;

/// A session with an OMS. Dropped without [`Self::close`] it is a session whose client was lost, with what the OMS does
/// then.
#[derive(Debug)]
pub struct Client {
    clock: HostClock,
    entry: Arc<Entry>,
    numbers: Numbers,
    link: Link,
    /// What happened and was not told yet.
    untold: VecDeque<Event>,
    /// The pause before the next attempt, in nanoseconds.
    pause_ns: u64,
    welcome: Welcome,
    shares_clock: bool,
}

#[derive(Debug)]
enum Link {
    Up(Box<Line>),
    Down(Reconnect),
    Over(ClientError),
}

impl Client {
    /// Connects and logs on, once; it waits for that. The first [`Self::poll`] tells of it.
    pub fn connect(config: Config) -> Result<Self, ClientError> {
        let clock = HostClock::get().map_err(|e| ClientError::Clock(Arc::new(e)))?;
        let numbers = Numbers::new(&config);
        let entry = Arc::new(Entry::new(config, clock)?);
        let line = Box::new(Line::new(clock, entry.come(numbers.asked())?));
        let (welcome, shares_clock) = (line.welcome, line.shares_clock);
        let mut untold = VecDeque::new();
        let link = Link::Over(ClientError::Closed);
        let mut client =
            Self { clock, entry, numbers, link, untold: VecDeque::new(), pause_ns: 0, welcome, shares_clock };
        client.resume(line, &mut |event| untold.push_back(event));
        client.untold = untold;
        Ok(client)
    }

    /// Sends a request, stamped now, and gives the number that it has in the session. It never waits.
    ///
    /// A number is no proof that the request has left or was taken: reports tell, and [`Event::NotTaken`] does.
    pub fn send(&mut self, request: &Request) -> Result<u64, SendError<Request>> {
        self.send_at(request, self.clock.ticks())
    }

    /// The same of a request that was first tried at `stamp`, in ticks of the host's clock: what the OMS did not take at
    /// once keeps its T0.
    pub fn send_at(&mut self, request: &Request, stamp: u64) -> Result<u64, SendError<Request>> {
        self.say(request, stamp)?;
        // It is kept once it is on its way: what is kept lies in memory that nobody has touched yet.
        self.flush();
        Ok(self.numbers.keep(request))
    }

    /// Like [`Self::send_at`], but the bytes leave with the next send, [`Self::flush`] or poll: many requests at once
    /// are one call of the operating system.
    pub fn gather(&mut self, request: &Request, stamp: u64) -> Result<u64, SendError<Request>> {
        self.say(request, stamp)?;
        Ok(self.numbers.keep(request))
    }

    /// Says a request, under the number by which it will be kept.
    fn say(&mut self, request: &Request, stamp: u64) -> Result<(), SendError<Request>> {
        request.check().map_err(|reason| SendError::Malformed { given: *request, reason })?;
        let line = ready(&mut self.link, *request)?;
        let has_trigger = matches!(request, Request::Conditional(_) | Request::ReplaceConditional(_));
        if has_trigger && self.welcome.version < CONDITIONAL_VERSION {
            return Err(SendError::Older(*request));
        }
        line.say(request.kind().code(), self.numbers.next_request(), stamp, request.as_bytes());
        Ok(())
    }

    /// Sends an operator's word: a record of `tickpath-orders`. It has no number;
    /// [`Event::WordAnswered`] tells what became of it. A word whose connection was lost gets no answer.
    ///
    /// # Panics
    ///
    /// If it is longer than a frame's payload, which no record is.
    pub fn word(&mut self, kind: u8, bytes: &[u8]) -> Result<(), SendError<()>> {
        assert!(bytes.len() <= MOST_PAYLOAD, "a word of {} bytes is no record", bytes.len());
        let stamp = self.clock.ticks();
        ready(&mut self.link, ())?.say(kind, 0, stamp, bytes);
        self.flush();
        Ok(())
    }

    /// Asks something that changes nothing. [`Event::Answered`] is the end of the answer.
    pub fn query(&mut self, query: Query) -> Result<(), SendError<Query>> {
        let stamp = self.clock.ticks();
        ready(&mut self.link, query)?.say(Kind::Query.code(), 0, stamp, query.as_bytes());
        self.flush();
        Ok(())
    }

    /// Asks for the instruments of the OMS and waits for them, by ascending number; at most so many milliseconds without any
    /// event. None if the OMS is of an older version, which does not list them. Other events are kept for the next
    /// [`Self::poll`].
    pub fn instruments(&mut self, timeout_ms: u32) -> Result<Option<Vec<InstrumentRow>>, ClientError> {
        if self.welcome.version < INSTRUMENTS_VERSION {
            return Ok(None);
        }
        let (mut rows, mut others, mut end) = (Vec::new(), VecDeque::new(), None);
        // Without a connection the poll gives the reason.
        let _ = self.query(Query { what: Query::INSTRUMENTS, ..Query::default() });
        let mut since = self.clock.ticks();
        let ended = loop {
            let polled = self.poll(|event| match event {
                Event::InstrumentRow(row) => rows.push(row),
                Event::Answered(_) => end = Some(Ok(())),
                other => {
                    if let Event::Disconnected { why } = &other {
                        end = Some(Err(why.clone()));
                    }
                    others.push_back(other);
                }
            });
            match polled {
                Err(why) => break Err(why),
                Ok(_) if end.is_some() => break end.unwrap_or(Ok(())),
                Ok(0) if self.clock.ns_between(since, self.clock.ticks()) > i64::from(timeout_ms) * 1_000_000 => {
                    break Err(ClientError::Unanswered(timeout_ms));
                }
                Ok(0) => self.wait(WAIT_NS),
                Ok(_) => since = self.clock.ticks(),
            }
        };
        self.untold = others;
        ended.map(|()| Some(rows))
    }

    /// Hands over what was gathered, as far as the OMS takes it now.
    pub fn flush(&mut self) {
        if let Link::Up(line) = &mut self.link {
            line.flush();
        }
    }

    /// Tells what has happened, without waiting, and says how much it was. It reads once: who wants all there is polls
    /// until nothing is left. The error is the end of the client: it does not come back.
    pub fn poll(&mut self, mut tell: impl FnMut(Event)) -> Result<usize, ClientError> {
        let mut told = 0;
        let tell = &mut |event| {
            told += 1;
            tell(event);
        };
        if !self.untold.is_empty() {
            self.untold.drain(..).for_each(&mut *tell);
            self.catch_up(tell);
        }
        match &mut self.link {
            Link::Up(line) => {
                if let Err(why) = turn(line, &mut self.numbers, tell) {
                    self.lose(why, tell);
                }
            }
            Link::Down(reconnect) => match reconnect.outcome() {
                Some(Outcome::Arrived(line)) => {
                    self.resume(line, tell);
                    self.catch_up(tell);
                }
                Some(Outcome::Failed(why)) => tell(Event::Failed { why }),
                Some(Outcome::Ended(why)) => self.end(why, tell),
                None => {}
            },
            Link::Over(why) if told == 0 => return Err(why.clone()),
            Link::Over(_) => {}
        }
        Ok(told)
    }

    /// Keeps the session alive without reading it: sends the heartbeat that is due, also on a connection that was made
    /// again. A program that cannot take events for a while, because its own output blocks, calls this more often than
    /// twice a heartbeat time; reports wait at the OMS meanwhile, and the next [`Self::poll`] reads on.
    pub fn keep_alive(&mut self) {
        let line = match &mut self.link {
            Link::Up(line) => Some(&mut **line),
            Link::Down(reconnect) => reconnect.arrived(),
            Link::Over(_) => None,
        };
        if let Some(line) = line {
            let now = line.now();
            line.beat(now, self.numbers.asked().next_report);
            line.flush();
        }
    }

    /// Sleeps until a poll may find something, or for so long. It may wake early.
    pub fn wait(&mut self, timeout_ns: u64) {
        if !self.untold.is_empty() {
            return;
        }
        match &mut self.link {
            Link::Up(line) => line.wait(timeout_ns),
            Link::Down(reconnect) => reconnect.wait(Duration::from_nanos(timeout_ns)),
            Link::Over(_) => {}
        }
    }

    /// For an event loop: the descriptor that becomes readable when there may be something, none while there is none, and after
    /// how many nanoseconds to look in any case. None of both if a poll may find something now. Behind it comes
    /// [`Self::is_awake`], then a poll.
    pub fn sleeps(&mut self) -> Option<(Option<BorrowedFd<'_>>, u64)> {
        if !self.untold.is_empty() {
            return None;
        }
        match &mut self.link {
            Link::Up(line) => line.sleeps().map(|(socket, due_ns)| (Some(socket), due_ns)),
            Link::Down(_) => Some((None, WAIT_NS)),
            Link::Over(_) => None,
        }
    }

    /// The event loop has woken.
    pub fn is_awake(&mut self) {
        if let Link::Up(line) = &mut self.link {
            line.wake();
        }
    }

    /// Ends the session in good order: what was sent gets a moment to leave.
    pub fn close(mut self) {
        self.leave();
    }

    /// The same of a client that its owner still has: from here on it has ended.
    pub fn leave(&mut self) {
        if let Link::Up(line) = std::mem::replace(&mut self.link, Link::Over(ClientError::Closed)) {
            line.close();
        }
    }

    /// True while requests can be sent.
    pub fn is_connected(&self) -> bool {
        matches!(&self.link, Link::Up(line) if !line.is_broken())
    }

    /// What the OMS said when the session was last connected.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// True if the OMS stamps with the clock of this host, so that the stamps of its events can be converted here. An OMS
    /// on another host has a counter of its own.
    pub fn shares_clock(&self) -> bool {
        self.shares_clock
    }

    /// Where the reports stand: with it in its configuration, another start of the program goes on behind the last report
    /// that was told.
    pub fn since(&self) -> Since {
        // What came with the welcome is not told yet.
        match self.entry.config.since {
            asked @ Since::Report { .. } if !self.untold.is_empty() => asked,
            _ => self.numbers.since(),
        }
    }

    /// What was counted since this client was made.
    pub fn counts(&self) -> Counts {
        self.numbers.counts
    }

    /// Resumes on a connection.
    fn resume(&mut self, line: Box<Line>, tell: &mut dyn FnMut(Event)) {
        (self.welcome, self.shares_clock) = (line.welcome, line.shares_clock);
        self.numbers.resume(&line.welcome, tell);
        self.link = Link::Up(line);
    }

    /// Tells what came with the welcome.
    fn catch_up(&mut self, tell: &mut dyn FnMut(Event)) {
        if let Link::Up(line) = &mut self.link
            && let Err(why) = hear(line, &mut self.numbers, tell)
        {
            self.lose(why, tell);
        }
    }

    /// Gives a connection up.
    fn lose(&mut self, why: ClientError, tell: &mut dyn FnMut(Event)) {
        self.numbers.counts.losses += 1;
        if let Link::Up(line) = &self.link {
            self.pause_ns = if line.age_ns() >= GOOD_AGE_NS { 0 } else { longer(self.pause_ns) };
        }
        tell(Event::Disconnected { why: why.clone() });
        if self.entry.config.reconnect && !why.is_final() {
            self.link = Link::Down(Reconnect::start(&self.entry, self.numbers.asked(), self.pause_ns));
        } else {
            self.end(why, tell);
        }
    }

    /// Ends for good.
    fn end(&mut self, why: ClientError, tell: &mut dyn FnMut(Event)) {
        self.numbers.doubt(tell);
        self.link = Link::Over(why);
    }
}

/// The connection, if something can be said there now.
fn ready<T>(link: &mut Link, given: T) -> Result<&mut Line, SendError<T>> {
    let Link::Up(line) = link else { return Err(SendError::Disconnected(given)) };
    if line.is_full() {
        line.flush();
    }
    match line {
        line if line.is_broken() => Err(SendError::Disconnected(given)),
        line if line.is_full() => Err(SendError::Full(given)),
        line => Ok(line),
    }
}

/// One turn of a connection: what came, then what is due.
fn turn(line: &mut Line, numbers: &mut Numbers, tell: &mut dyn FnMut(Event)) -> Result<(), ClientError> {
    let has_read = line.read()?;
    let now = line.now();
    if has_read {
        hear(line, numbers, tell)?;
    } else {
        line.check(now)?;
    }
    line.beat(now, numbers.asked().next_report);
    line.flush();
    Ok(())
}

fn hear(line: &mut Line, numbers: &mut Numbers, tell: &mut dyn FnMut(Event)) -> Result<(), ClientError> {
    while let Some(frame) = line.inbox.next()? {
        numbers.hear(&frame, tell)?;
    }
    Ok(())
}
