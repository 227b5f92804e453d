//! The gateway: sockets of clients that have logged in.
//!
//! ```text
//!   sockets ──> inbox ──> number, bucket ──> the sequencer           T1 is when the bytes came
//!   sockets <── out <──┬─ live: the history as it grows
//!                      └─ reading: the history from where the client is, a little in each turn
//! ```
//! A client that does not read its reports costs what waits for it, at most a mebibyte; then it reads on in the history
//! when it can. One that sends without a pause has its turn and its bucket, and then waits in its own socket.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};

use mio::event::Source;
use mio::{Events, Interest, Poll, Token};
use tickpath_clock::Clock;
use tickpath_log::{Message, Next, Reader};
use tickpath_orders::RecordKind;
use tickpath_session::{ANY_SESSION, FROM_NOW, Frame, Kind, Query, Refusal, Welcome};

use super::connection::{Connection, End, Hears, fit, heartbeat_ms};
use super::door::{Admitted, Door, tell_refusal};
use super::window::{Answer, Asked, Asking, Bell};
use super::{ServerConfig, ServerEvent};
use crate::OmsError;
use crate::bucket::{Bucket, Rate};
use crate::commit::AckLevel;
use crate::history::{self, Marks};
use crate::lanes::LaneKind;
use crate::layout::Event;
use crate::sequencer::SessionConfig;

/// Frames that one turn takes from one client before it looks at the others.
const TURN: usize = 64;
/// Frames of the history that one turn looks at: live ones, and for each client that reads on.
const LIVE_TURN: usize = 256;
const READ_TURN: usize = 512;
/// Between two looks at who is silent.
const LOOK_NS: u64 = 10_000_000;
/// Clients that the door has let in and that wait for their turn.
const MOST_ADMITTED: usize = 64;
/// The bell's token.
pub(super) const BELL: Token = Token(usize::MAX);

/// What a gateway is opened with, beside its configuration.
pub(crate) struct Opened {
    pub journal: u64,
    pub marks: Marks,
    /// The number of each session's next request, and of its next report.
    pub next_request: Vec<u64>,
    pub next_report: Vec<u64>,
    pub sessions: Vec<SessionConfig>,
    pub asking: Asking,
}

/// What is done with a message of a session: its lane, T1, and itself.
pub(crate) trait Take: FnMut(LaneKind, u64, Event<'_>) -> Result<(), OmsError> {}

impl<F: FnMut(LaneKind, u64, Event<'_>) -> Result<(), OmsError>> Take for F {}

/// The sockets.
pub(crate) struct Gateway<C> {
    clock: C,
    config: ServerConfig,
    journal: u64,
    poll: Poll,
    events: Events,
    admitted: Receiver<Admitted>,
    /// Ends before the channel that it fills.
    door: Option<Door>,
    connections: Vec<Option<Connection>>,
    /// Those that have more to be read, or to be said, than the last turn took.
    unfinished: Vec<usize>,
    /// The place of each session's connection.
    places: BTreeMap<u16, usize>,
    marks: Marks,
    live: Reader,
    day: u64,
    /// The day is over, and what is left of it is read.
    is_over: bool,
    next_request: Vec<u64>,
    next_report: Vec<u64>,
    sessions: BTreeMap<u16, SessionConfig>,
    asking: Asking,
    serial: u64,
    look_at: u64,
    /// Sessions whose orders are canceled if they are not here by then.
    awaited: Option<u64>,
    bell: Option<Bell>,
}

impl<C: Clock> Gateway<C> {
    /// Opens the door. With a bell it can sleep.
    pub fn open(
        clock: C,
        poll: Poll,
        bell: Option<Bell>,
        config: &ServerConfig,
        opened: Opened,
    ) -> Result<Self, OmsError> {
        let Opened { journal, marks, next_request, next_report, sessions, asking } = opened;
        let (admit, admitted) = sync_channel(MOST_ADMITTED);
        let door = Door::open(clock.clone(), config, admit)?;
        let (day, live) = marks.follow()?;
        let now = clock.ticks();
        let awaited = now + clock.calibration().ticks_of_ns(u64::from(config.heartbeat_ms) * 1_000_000);
        Ok(Self {
            clock,
            config: config.clone(),
            journal,
            poll,
            events: Events::with_capacity(1024),
            admitted,
            door: Some(door),
            connections: Vec::new(),
            unfinished: Vec::new(),
            places: BTreeMap::new(),
            marks,
            live,
            day,
            is_over: false,
            next_request,
            next_report,
            sessions: sessions.into_iter().map(|session| (session.session, session)).collect(),
            asking,
            serial: 0,
            look_at: now,
            awaited: Some(awaited),
            bell,
        })
    }

    /// One turn: who comes in, what they say, what they hear.
    pub fn poll(&mut self, take: &mut impl Take) -> Result<usize, OmsError> {
        let mut done = self.wait(Some(std::time::Duration::ZERO));
        done += self.hear_live()?;
        while let Ok(admitted) = self.admitted.try_recv() {
            self.admit(admitted, take)?;
            done += 1;
        }
        while let Ok(answer) = self.asking.answers.try_recv() {
            self.pass_on(&answer);
            done += 1;
        }
        for place in std::mem::take(&mut self.unfinished) {
            done += self.turn(place, take)?;
        }
        let now = self.clock.ticks();
        if now >= self.look_at {
            self.look_at = now + self.clock.calibration().ticks_of_ns(LOOK_NS);
            self.look(now, take)?;
        }
        Ok(done)
    }

    /// Sleeps until there may be work, or the time is over. Only with a bell.
    pub fn sleep(&mut self, timeout_ns: u64) {
        let Some(bell) = self.bell.clone() else { return };
        bell.sleeps();
        let is_quiet = matches!(self.live.next(), Ok(Next::Empty));
        let may_wait = is_quiet && self.unfinished.is_empty();
        // A client whose bucket is empty waits for the time to pass.
        let nanoseconds = if may_wait { timeout_ns } else { timeout_ns.min(1_000_000) };
        if is_quiet {
            self.wait(Some(std::time::Duration::from_nanos(nanoseconds)));
        }
        bell.wakes();
    }

    /// Notes which sockets have news; says how many.
    fn wait(&mut self, timeout: Option<std::time::Duration>) -> usize {
        if self.poll.poll(&mut self.events, timeout).is_err() {
            return 0;
        }
        let mut news = 0;
        for event in self.events.iter().filter(|event| event.token() != BELL) {
            let Token(place) = event.token();
            if let Some(Some(connection)) = self.connections.get_mut(place) {
                connection.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
                mark(&mut self.unfinished, place);
                news += 1;
            }
        }
        news
    }

    /// Gives live reports to those that hear them.
    fn hear_live(&mut self) -> Result<usize, OmsError> {
        let Self { live, marks, day, is_over, connections, places, next_report, unfinished, .. } = self;
        for done in 0..LIVE_TURN {
            let message = match live.next()? {
                Next::Message(message) => message,
                _ if marks.day() == *day => return Ok(done),
                // What came between the last look and the end of the day comes first.
                _ if !*is_over => {
                    *is_over = true;
                    continue;
                }
                _ => {
                    (*day, *live) = marks.follow_day()?;
                    *is_over = false;
                    continue;
                }
            };
            let Some(told) = history::read(&message) else { continue };
            put(next_report, told.session, told.number + 1);
            let Some(&place) = places.get(&told.session) else { continue };
            let Some(Some(connection)) = connections.get_mut(place) else { continue };
            mark(unfinished, place);
            if !matches!(connection.hears, Hears::Live) || told.number < connection.next_report {
                continue;
            }
            if told.number > connection.next_report || connection.lags() {
                connection.hears = Hears::Reading(None);
                continue;
            }
            connection.report(&told);
        }
        Ok(LIVE_TURN)
    }

    /// Gives a client its session, or sends it away.
    fn admit(&mut self, admitted: Admitted, take: &mut impl Take) -> Result<(), OmsError> {
        let Admitted { mut stream, inbox, user, logon, server_final } = admitted;
        let now = self.clock.ticks();
        let session = match self.session_for(&user.sessions, logon.session) {
            Ok(session) => session,
            Err((refusal, why)) => {
                let from = stream.peer();
                tell_refusal(&mut stream, now, refusal, &why);
                let _ =
                    self.config.events.try_send(ServerEvent::Refused { from, why: format!("{}: {why}", user.name) });
                return Ok(());
            }
        };
        if let Some(&place) = self.places.get(&session) {
            self.end(place, End::Ended("another logon has taken the session over".to_owned()), take)?;
        }
        let place = self.connections.iter().position(Option::is_none).unwrap_or(self.connections.len());
        if self.poll.registry().register(&mut stream, Token(place), Interest::READABLE | Interest::WRITABLE).is_err() {
            return Ok(());
        }
        let rules = self.sessions.get(&session);
        let bucket = Bucket::new(rules.map_or(Rate::default(), |rules| rules.rate), self.clock.calibration());
        let live_report = get(&self.next_report, session);
        let next_report = self.first_report(session, logon.journal, logon.next_report, logon.last_sum);
        let heartbeat_ms = heartbeat_ms(&logon, self.config.heartbeat_ms);
        let hears = if next_report == live_report { Hears::Live } else { Hears::Reading(None) };
        self.serial += 1;
        let (from, shares_clock) = (stream.peer(), stream.is_of_this_host());
        let patience = self.clock.calibration().ticks_of_ns(u64::from(heartbeat_ms) * 1_000_000);
        let mut connection = Connection::new(stream, inbox, user, session, self.serial, bucket, hears);
        connection.next_report = next_report;
        (connection.heard, connection.received, connection.patience) = (now, now, patience);
        connection.shares_clock = shares_clock;
        let level = rules.map_or(AckLevel::Os, |rules| rules.level);
        let welcome = Welcome {
            version: logon.version,
            session,
            level: level as u8,
            role: connection.user.role.code(),
            journal: self.journal,
            next_request: get(&self.next_request, session),
            next_report,
            live_report,
            heartbeat_ms,
            ..Welcome::default()
        };
        connection.welcome(&welcome, &server_final, now);
        let user = connection.user.name.clone();
        let _ = self.config.events.try_send(ServerEvent::LoggedIn { user, session, from });
        if place == self.connections.len() {
            self.connections.push(None);
        }
        self.connections[place] = Some(connection);
        self.places.insert(session, place);
        self.asking.sessions.store(self.places.len() as u64, Ordering::Relaxed);
        mark(&mut self.unfinished, place);
        take(LaneKind::Requests(session), now, Event::Login(true))
    }

    /// The session that a user gets.
    fn session_for(&self, theirs: &[u16], wanted: u16) -> Result<u16, (Refusal, String)> {
        let list = || theirs.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let known = |session: &u16| self.sessions.contains_key(session);
        if self.places.len() >= self.config.most && !self.places.contains_key(&wanted) {
            return Err((Refusal::Full, format!("all {} places are taken; log out somewhere", self.config.most)));
        }
        match wanted {
            ANY_SESSION => theirs
                .iter()
                .copied()
                .find(|session| known(session) && !self.places.contains_key(session))
                .ok_or_else(|| (Refusal::InUse, format!("all sessions of the user are in use: {}", list()))),
            wanted if !theirs.contains(&wanted) => {
                Err((Refusal::NotYours, format!("session {wanted} is not this user's; use one of {}", list())))
            }
            wanted if !known(&wanted) => {
                Err((Refusal::NotYours, format!("session {wanted} was defined after the OMS started; start it again")))
            }
            wanted => Ok(wanted),
        }
    }

    /// The first report that a client hears: the one that it asks for, if what it knows of the one before is so.
    fn first_report(&self, session: u16, journal: u64, asked: u64, last_sum: u32) -> u64 {
        let (first, next) = (self.marks.first(session), get(&self.next_report, session));
        if asked == FROM_NOW {
            return next;
        }
        if journal != 0 && journal != self.journal || asked > next {
            return first;
        }
        if asked <= first {
            return first;
        }
        let knows = |told: u32| last_sum == 0 || told == last_sum;
        match self.marks.sum(session, asked - 1) {
            Some(sum) if !knows(sum) => first,
            _ => asked,
        }
    }

    /// A client's turn: what it says, then what it hears.
    fn turn(&mut self, place: usize, take: &mut impl Take) -> Result<usize, OmsError> {
        let mut done = 0;
        let result = self.hear_client(place, &mut done, take)?.and_then(|()| self.tell_client(place, &mut done));
        if let Err(end) = result {
            self.end(place, end, take)?;
        }
        Ok(done)
    }

    /// Takes what a client says.
    fn hear_client(
        &mut self,
        place: usize,
        done: &mut usize,
        take: &mut impl Take,
    ) -> Result<Result<(), End>, OmsError> {
        let Self { clock, connections, next_request, asking, unfinished, .. } = self;
        let Some(Some(connection)) = connections.get_mut(place) else { return Ok(Ok(())) };
        for _ in 0..TURN {
            if !connection.bucket.take(|| clock.ticks()) {
                mark(unfinished, place);
                return Ok(Ok(()));
            }
            let Connection { inbox, session, received, shares_clock, .. } = connection;
            let (session, received) = (*session, *received);
            let frame = match inbox.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    connection.bucket.give_back();
                    match connection.is_readable.then(|| connection.read(|| clock.ticks())) {
                        None => return Ok(Ok(())),
                        Some(Ok(read)) => *done += usize::from(read),
                        Some(Err(end)) => return Ok(Err(end)),
                    }
                    continue;
                }
                Err(e) => return Ok(Err(End::Ended(e.to_string()))),
            };
            *done += 1;
            let mut buffer = [0; 64];
            if let Some(length) = fit(frame.kind, frame.payload, &mut buffer) {
                let next = slot(next_request, session);
                if frame.sequence < *next {
                    continue;
                }
                if frame.sequence > *next {
                    let why = format!("request {} came where {next} was expected: some are lost", frame.sequence);
                    return Ok(Err(End::Ended(why)));
                }
                // The stamps of another host's clock say nothing here.
                let sent = if *shares_clock { frame.stamp } else { received };
                let payload = &buffer[..length];
                let message = Message { sequence: frame.sequence, stamp: sent, kind: frame.kind, payload };
                if tickpath_market::Request::read(frame.kind, payload).is_err() {
                    let why = format!("request {} is none: a code in it is unknown", frame.sequence);
                    return Ok(Err(End::Ended(why)));
                }
                *next += 1;
                take(LaneKind::Requests(session), received, Event::Message(&message))?;
                continue;
            }
            let (kind, sequence) = (frame.kind, frame.sequence);
            match Kind::from_code(kind) {
                Some(Kind::Heartbeat) => {}
                Some(Kind::Logout) => return Ok(Err(End::Closed("it logged out".to_owned()))),
                Some(Kind::Query) => {
                    let what = frame.message::<Query>().what;
                    let (slot, serial, user) = (place, connection.serial, connection.user.clone());
                    let _ = asking.ask.send(Asked { slot, serial, what, user });
                }
                _ if connection.user.role == tickpath_session::Role::Admin && is_word(&frame) => {
                    // Words are not numbered: one above the highest is zero, which says that it is of no lane.
                    let word = Message { sequence: u64::MAX, stamp: frame.stamp, kind, payload: frame.payload };
                    take(LaneKind::Control, received, Event::Message(&word))?;
                }
                _ => {
                    let why = format!("a frame of kind {kind} (number {sequence}) is none that this user may send");
                    return Ok(Err(End::Ended(why)));
                }
            }
        }
        mark(unfinished, place);
        Ok(Ok(()))
    }

    /// Says to a client what waits for it.
    fn tell_client(&mut self, place: usize, done: &mut usize) -> Result<(), End> {
        let now = self.clock.ticks();
        let Some(Some(connection)) = self.connections.get_mut(place) else { return Ok(()) };
        *done += usize::from(connection.flush(now)? > 0);
        if matches!(connection.hears, Hears::Live) || !connection.has_room() {
            return Ok(());
        }
        let mut here = match std::mem::replace(&mut connection.hears, Hears::Reading(None)) {
            Hears::Reading(Some(reading)) => reading,
            Hears::Reading(None) | Hears::Live => match self.marks.read(connection.session, connection.next_report) {
                Ok(reading) => reading,
                Err(e) => return Err(End::Ended(format!("the history cannot be read: {e}"))),
            },
        };
        let more = here.turn(READ_TURN, |told| {
            if told.number >= connection.next_report {
                connection.report(told);
            }
            connection.has_room()
        });
        *done += 1;
        match more {
            Ok(true) => connection.hears = Hears::Reading(Some(here)),
            // What the history holds beyond what is live comes live.
            Ok(false) if connection.next_report >= get(&self.next_report, connection.session) => {
                connection.hears = Hears::Live;
            }
            Ok(false) => connection.hears = Hears::Reading(None),
            Err(e) => return Err(End::Ended(format!("the history cannot be read: {e}"))),
        }
        connection.flush(now)?;
        mark(&mut self.unfinished, place);
        Ok(())
    }

    /// Passes an answer on, if who asked is still there.
    fn pass_on(&mut self, answer: &Answer) {
        if let Some(Some(connection)) = self.connections.get_mut(answer.slot)
            && connection.serial == answer.serial
        {
            connection.say_frames(&answer.frames);
            mark(&mut self.unfinished, answer.slot);
        }
    }

    /// Ends the connections of those who are silent, and lets the others know that we are not.
    fn look(&mut self, now: u64, take: &mut impl Take) -> Result<(), OmsError> {
        for place in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[place] else { continue };
            let (patience, session) = (connection.patience, connection.session);
            if now.saturating_sub(connection.heard) > patience {
                let ms = self.clock.ns_between(0, patience) / 1_000_000;
                self.end(place, End::Ended(format!("no word for {ms} ms")), take)?;
                continue;
            }
            if now.saturating_sub(connection.said) > patience / 2 && connection.waiting() == 0 {
                connection.say(Kind::Heartbeat, get(&self.next_request, session), now, &[], &[]);
                mark(&mut self.unfinished, place);
            }
        }
        if self.awaited.is_some_and(|at| now >= at) {
            self.awaited = None;
            let missing = self.sessions.values().filter(|session| session.cancel_on_disconnect);
            for session in missing.map(|session| session.session).filter(|session| !self.places.contains_key(session)) {
                take(LaneKind::Requests(session), now, Event::Login(false))?;
            }
        }
        Ok(())
    }

    /// Ends a connection.
    fn end(&mut self, place: usize, end: End, take: &mut impl Take) -> Result<(), OmsError> {
        let Some(mut connection) = self.connections[place].take() else { return Ok(()) };
        let now = self.clock.ticks();
        let why = match end {
            End::Closed(why) => why,
            End::Ended(why) => {
                connection.say(Kind::Logout, 0, now, &[], why.as_bytes());
                let _ = connection.flush(now);
                why
            }
        };
        let _: io::Result<()> = connection.stream.deregister(self.poll.registry());
        let (user, session) = (connection.user.name.clone(), connection.session);
        let _ = self.config.events.try_send(ServerEvent::Gone { user, session, why });
        self.places.remove(&session);
        self.asking.sessions.store(self.places.len() as u64, Ordering::Relaxed);
        take(LaneKind::Requests(session), now, Event::Login(false))
    }
}

impl<C> Drop for Gateway<C> {
    fn drop(&mut self) {
        self.door = None;
        for connection in self.connections.iter_mut().flatten() {
            connection.say(Kind::Logout, 0, 0, &[], b"the OMS stops");
            let _ = connection.flush(0);
        }
    }
}

/// Whether a frame is one of an operator's words.
fn is_word(frame: &Frame<'_>) -> bool {
    use RecordKind::{DayEnd, Inquire, Kill, Resolve};
    matches!(RecordKind::from_code(frame.kind), Some(Kill | Resolve | Inquire | DayEnd))
}

/// Notes a connection that has more to do.
#[inline]
fn mark(unfinished: &mut Vec<usize>, place: usize) {
    if !unfinished.contains(&place) {
        unfinished.push(place);
    }
}

fn get(list: &[u64], session: u16) -> u64 {
    list.get(usize::from(session)).copied().unwrap_or(0)
}

#[inline]
fn put(list: &mut Vec<u64>, session: u16, number: u64) {
    *slot(list, session) = number;
}

#[inline]
fn slot(list: &mut Vec<u64>, session: u16) -> &mut u64 {
    let index = usize::from(session);
    if index >= list.len() {
        list.resize(index + 1, 0);
    }
    &mut list[index]
}
