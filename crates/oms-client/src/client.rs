//! The client.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use tickpath_clock::{Clock, HostClock};
use tickpath_market::Request;
use tickpath_oms_protocol::{
    CONDITIONAL_VERSION, INSTRUMENTS_VERSION, InstrumentRow, Kind, MOST_PAYLOAD, Query, Welcome,
};
use zerocopy::IntoBytes;

use crate::line::Line;
use crate::logon::Entry;
use crate::numbers::Numbers;
use crate::reconnect::{Outcome, Reconnect, longer};
use crate::{ClientError, Config, Counts, Event, SendError, Since};

/// Min lifetime of a good connection: after its loss, the client reconnects without a pause.
const GOOD_AGE_NS: u64 = 1_000_000_000;

/// Longest sleep while an answer is outstanding.
const WAIT_NS: u64 = 10_000_000;

/// A session with an OMS. Dropping it without [`Self::close`] counts as a lost client for the OMS.
#[derive(Debug)]
pub struct Client {
    clock: HostClock,
    entry: Arc<Entry>,
    numbers: Numbers,
    link: Link,
    /// Events that were not reported to the program yet.
    untold: VecDeque<Event>,
    /// Pause before the next attempt, in nanoseconds.
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
    /// Connects and logs on once, and waits for the result. The first [`Self::poll`] reports it.
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

    /// Sends a request, stamped now, and returns its number in the session. It never waits.
    ///
    /// A number does not prove that the request was sent or taken: reports do, and [`Event::NotTaken`] reports the
    /// opposite.
    pub fn send(&mut self, request: &Request) -> Result<u64, SendError<Request>> {
        self.send_at(request, self.clock.ticks())
    }

    /// Sends a request that was first tried at `stamp`, in ticks of the host's clock, so that a request that the OMS
    /// did not take at once keeps its T0.
    pub fn send_at(&mut self, request: &Request, stamp: u64) -> Result<u64, SendError<Request>> {
        self.say(request, stamp)?;
        // The request is kept after the flush, because keeping it may touch new memory.
        self.flush();
        Ok(self.numbers.keep(request))
    }

    /// Queues a request like [`Self::send_at`]; the next send, [`Self::flush`] or poll sends its bytes, so that many
    /// requests need one system call.
    pub fn gather(&mut self, request: &Request, stamp: u64) -> Result<u64, SendError<Request>> {
        self.say(request, stamp)?;
        Ok(self.numbers.keep(request))
    }

    /// Writes a request, under the number by which it will be kept.
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

    /// Sends an admin command: a record of `tickpath-oms-core`. It has no number; [`Event::WordAnswered`] reports its
    /// result. A command whose connection was lost gets no answer.
    ///
    /// # Panics
    ///
    /// Panics if it is longer than a frame's payload, which no record is.
    pub fn word(&mut self, kind: u8, bytes: &[u8]) -> Result<(), SendError<()>> {
        assert!(bytes.len() <= MOST_PAYLOAD, "a word of {} bytes is no record", bytes.len());
        let stamp = self.clock.ticks();
        ready(&mut self.link, ())?.say(kind, 0, stamp, bytes);
        self.flush();
        Ok(())
    }

    /// Sends a query, which changes nothing. [`Event::Answered`] ends its answer.
    pub fn query(&mut self, query: Query) -> Result<(), SendError<Query>> {
        let stamp = self.clock.ticks();
        ready(&mut self.link, query)?.say(Kind::Query.code(), 0, stamp, query.as_bytes());
        self.flush();
        Ok(())
    }

    /// Asks for the instruments of the OMS and waits for them, at most this many milliseconds without any event; they
    /// come by ascending number. Returns none if the OMS is of an older version, which does not list them. Other events
    /// are kept for the next [`Self::poll`].
    pub fn instruments(&mut self, timeout_ms: u32) -> Result<Option<Vec<InstrumentRow>>, ClientError> {
        if self.welcome.version < INSTRUMENTS_VERSION {
            return Ok(None);
        }
        let (mut rows, mut others, mut end) = (Vec::new(), VecDeque::new(), None);
        // Without a connection the poll returns the reason.
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

    /// Sends queued requests, as far as the OMS takes them now.
    pub fn flush(&mut self) {
        if let Link::Up(line) = &mut self.link {
            line.flush();
        }
    }

    /// Reports pending events without waiting, and returns their number. It reads once, so a program that wants all
    /// events polls until none is left. The error is the end of the client, which does not reconnect.
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

    /// Sends the heartbeat that is due, also on a new connection after a loss, without reading events. A program that
    /// cannot take events for a while, because its own output blocks, calls this more often than twice per heartbeat
    /// time; reports wait at the OMS meanwhile, and the next [`Self::poll`] continues with them.
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

    /// Sleeps until a poll may find an event, or until the timeout. It may wake early.
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

    /// Returns, for an event loop, the descriptor that becomes readable with an event (none while there is no
    /// connection) and the max nanoseconds until the next poll. Returns none if a poll may find an event now. After the
    /// sleep, call [`Self::is_awake`], then poll.
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

    /// Notes that the event loop has woken.
    pub fn is_awake(&mut self) {
        if let Link::Up(line) = &mut self.link {
            line.wake();
        }
    }

    /// Ends the session in good order: requests in flight get a moment to be sent.
    pub fn close(mut self) {
        self.leave();
    }

    /// Ends the session as [`Self::close`] does, for an owner that keeps the client.
    pub fn leave(&mut self) {
        if let Link::Up(line) = std::mem::replace(&mut self.link, Link::Over(ClientError::Closed)) {
            line.close();
        }
    }

    /// Returns true while requests can be sent.
    pub fn is_connected(&self) -> bool {
        matches!(&self.link, Link::Up(line) if !line.is_broken())
    }

    /// Returns the OMS's welcome at the last connect.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Returns true if the OMS stamps with the clock of this host, so that the stamps of its events can be converted
    /// here. An OMS on another host has its own clock.
    pub fn shares_clock(&self) -> bool {
        self.shares_clock
    }

    /// Returns the report to resume from: in the configuration of the program's next start, it continues after the last
    /// report that was passed to the program.
    pub fn since(&self) -> Since {
        // Events that arrived with the welcome are not reported yet.
        match self.entry.config.since {
            asked @ Since::Report { .. } if !self.untold.is_empty() => asked,
            _ => self.numbers.since(),
        }
    }

    /// Returns the counts since this client was created.
    pub fn counts(&self) -> Counts {
        self.numbers.counts
    }

    /// Resumes on a new connection.
    fn resume(&mut self, line: Box<Line>, tell: &mut dyn FnMut(Event)) {
        (self.welcome, self.shares_clock) = (line.welcome, line.shares_clock);
        self.numbers.resume(&line.welcome, tell);
        self.link = Link::Up(line);
    }

    /// Reports the events that arrived with the welcome.
    fn catch_up(&mut self, tell: &mut dyn FnMut(Event)) {
        if let Link::Up(line) = &mut self.link
            && let Err(why) = hear(line, &mut self.numbers, tell)
        {
            self.lose(why, tell);
        }
    }

    /// Drops a connection.
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

    /// Ends the client for good.
    fn end(&mut self, why: ClientError, tell: &mut dyn FnMut(Event)) {
        self.numbers.doubt(tell);
        self.link = Link::Over(why);
    }
}

/// Returns the connection, if a frame can be written there now.
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

/// Runs one turn of a connection: reads events, then does pending work.
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
