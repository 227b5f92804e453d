//! The gateway: the sockets of logged-in clients.
//!
//! ```text
//!   sockets ──> inbox ──> number, bucket ──> the sequencer           T1 is the arrival of the bytes
//!   sockets <── out <──┬─ live: the history as it grows
//!                      └─ reading: the history from the client's position, a little in each turn
//! ```
//! A client that does not read costs at most a mebibyte of pending output, then catches up from the history. A client
//! that sends without a pause is limited by its turn and its token bucket, and waits in its own socket.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, sync_channel};

use mio::event::Source;
use mio::net::UnixStream;
use mio::{Events, Poll, Token};
use tickpath_clock::Clock;
use tickpath_log::{Laned, Message, Next, Place, Reader};
use tickpath_market::Request;
use tickpath_oms_core::RecordKind;
use tickpath_oms_protocol::{Frame, Kind};
use tickpath_oms_runtime::front::{Front, Journaled, Opening, Take};
use tickpath_oms_runtime::history::{self, Marks};
use tickpath_oms_runtime::layout::Event;
use tickpath_oms_runtime::{Bucket, LaneKind, OmsError, SessionConfig};

use super::books::NewDesk;
use super::config::ServerConfig;
use super::connection::{Connection, End, Hears, Question, REQUEST_BYTES, fit};
use super::copies::Copies;
use super::denials::Denials;
use super::door::{Admitted, Door};
use super::error::OpenError;
use super::event::ServerEvent;
use super::room::Room;
use super::watch::Watch;
use super::window::{Ask, Asked, Asking, Bell, Listing, Said};

/// Max frames taken from one client per turn, before the other clients have their turns.
const TURN: usize = 64;
/// Max live frames of the history read per turn.
const LIVE_TURN: usize = 256;
/// Turns between two polls of the sockets while lanes exist: a poll takes longer than all else of an idle turn.
const SOCKETS_EVERY: u32 = 16;
/// Interval between two checks for silent clients.
pub(super) const LOOK_NS: u64 = 10_000_000;
/// Max clients that wait in the channel between the acceptor and the gateway.
const MOST_ADMITTED: usize = 64;
/// Kind code of a denial among the reports.
const DENIED: u8 = tickpath_market::Kind::OrderDenied.code();
/// Poll token of the bell.
pub(super) const BELL: Token = Token(usize::MAX);

/// Parts of the OMS that a gateway is opened with, beside its configuration.
pub(crate) struct Opened {
    pub journal: u64,
    pub place: Place,
    pub marks: Marks,
    /// Sequence number of each session's next report.
    pub next_report: Vec<u64>,
    pub opening: Opening,
    pub asking: Asking,
    pub desks: Sender<NewDesk>,
}

/// The sockets of logged-in clients, and the state of their sessions.
pub(crate) struct Gateway<C> {
    pub(super) clock: C,
    pub(super) config: ServerConfig,
    pub(super) journal: u64,
    pub(super) poll: Poll,
    pub(super) events: Events,
    pub(super) admitted: Receiver<Admitted>,
    /// The acceptor; dropped after `admitted`, because its thread may block on sending there.
    pub(super) door: Option<Door>,
    pub(super) copies: Copies,
    pub(super) connections: Vec<Option<Connection>>,
    /// Connections with more to read or to send than the last turn took.
    pub(super) unfinished: Vec<usize>,
    /// Connections of the turn that is in progress; empty between turns.
    pub(super) turning: Vec<usize>,
    /// Connections that catch up from the history: one has a turn, the next not before the time `read_at`.
    pub(super) reading: VecDeque<usize>,
    pub(super) read_at: u64,
    /// Connections over lanes, whose data no poll of the sockets reports.
    pub(super) laned: Vec<usize>,
    pub(super) turns: u32,
    /// Index of each session's connection.
    pub(super) places: BTreeMap<u16, usize>,
    /// Client number that each session's last logon named.
    pub(super) clients: BTreeMap<u16, u32>,
    pub(super) marks: Marks,
    pub(super) live: Reader,
    pub(super) day: u64,
    /// The day has ended, and the rest of its reports is being read.
    pub(super) is_over: bool,
    pub(super) next_request: Vec<u64>,
    pub(super) next_report: Vec<u64>,
    /// Progress of the journal with each session's requests.
    pub(super) journaled: Journaled,
    /// Clients whose session has requests in flight to the journal: their welcome names the number of the next request.
    pub(super) waiting: Vec<Admitted>,
    /// Change count of the user directory at the last check.
    pub(super) users: u64,
    pub(super) sessions: BTreeMap<u16, SessionConfig>,
    /// Token buckets of sessions without a client, so that a reconnect does not refill them.
    pub(super) buckets: BTreeMap<u16, Bucket>,
    pub(super) denials: Denials,
    pub(super) asking: Asking,
    pub(super) serial: u64,
    pub(super) look_at: u64,
    pub(super) watch: Watch,
    /// Deadline after the start: absent sessions that cancel on disconnect have their orders canceled then.
    pub(super) awaited: Option<u64>,
    pub(super) bell: Option<Bell>,
}

impl<C: Clock> Gateway<C> {
    /// Opens the gateway and starts its acceptor. With a bell the gateway can sleep.
    pub fn open(
        clock: C,
        poll: Poll,
        bell: Option<Bell>,
        config: &ServerConfig,
        opened: Opened,
    ) -> Result<Self, OpenError> {
        let Opened { journal, place, marks, next_report, opening, asking, desks } = opened;
        let Opening { next_request, journaled, .. } = opening;
        let (admit, admitted) = sync_channel(MOST_ADMITTED);
        let limits = config.denial_limits();
        let room = Room::new(place.dir().to_owned(), limits.disk_reserve_bytes());
        let denials = Denials::new(limits, room.is_low());
        let door = Door::open(clock.clone(), config, admit, desks, room)?;
        let copies = Copies::open(clock.clone(), config, door.known(), (place, journal))?;
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
            copies,
            connections: Vec::new(),
            unfinished: Vec::new(),
            turning: Vec::new(),
            reading: VecDeque::new(),
            read_at: now,
            laned: Vec::new(),
            turns: 0,
            places: BTreeMap::new(),
            clients: BTreeMap::new(),
            marks,
            live,
            day,
            is_over: false,
            journaled,
            next_request,
            next_report,
            waiting: Vec::new(),
            users: 0,
            sessions: config.sessions.iter().map(|session| (session.session, session.clone())).collect(),
            buckets: BTreeMap::new(),
            denials,
            asking,
            serial: 0,
            look_at: now,
            watch: Watch::default(),
            awaited: Some(awaited),
            bell,
        })
    }

    /// Polls the sockets and marks the connections with events. Returns the number of events.
    fn wait(&mut self, timeout: Option<std::time::Duration>) -> usize {
        if self.poll.poll(&mut self.events, timeout).is_err() {
            return 0;
        }
        let mut news = 0;
        for event in self.events.iter().filter(|event| event.token() != BELL) {
            let Token(place) = event.token();
            if let Some(Some(connection)) = self.connections.get_mut(place) {
                connection.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
                connection.stream.lanes().into_iter().for_each(Laned::look_at_socket);
                mark(&mut self.unfinished, place);
                news += 1;
            }
        }
        news
    }

    /// Marks the connections whose lanes have data, or room again for pending output.
    fn look_at_lanes(&mut self) {
        let Self { laned, connections, unfinished, .. } = self;
        for &place in &*laned {
            let Some(Some(connection)) = connections.get_mut(place) else { continue };
            let waits = connection.waiting() > 0;
            if connection.stream.lanes().is_some_and(|lanes| lanes.has_news(waits)) {
                connection.is_readable = true;
                mark(unfinished, place);
            }
        }
    }

    /// Returns the lanes of all connections that use lanes.
    fn lanes(&mut self) -> impl Iterator<Item = &mut Laned<UnixStream>> {
        self.connections.iter_mut().flatten().filter_map(|connection| connection.stream.lanes())
    }

    /// Forwards live reports to the clients that are caught up. Returns the number of frames read.
    fn hear_live(&mut self) -> Result<usize, OmsError> {
        let Self { live, marks, day, is_over, connections, places, next_report, unfinished, denials, .. } = self;
        for done in 0..LIVE_TURN {
            let message = match live.next()? {
                Next::Message(message) => message,
                _ if marks.day() == *day => return Ok(done),
                // Reports written between the last read and the end of the day come first.
                _ if !*is_over => {
                    *is_over = true;
                    continue;
                }
                _ => {
                    (*day, *live) = marks.follow_day()?;
                    *is_over = false;
                    denials.begin_day();
                    continue;
                }
            };
            let Some(report) = history::read(&message) else { continue };
            put(next_report, report.session, report.number + 1);
            if report.kind == DENIED {
                denials.count(report.session);
            }
            let Some(&place) = places.get(&report.session) else { continue };
            let Some(Some(connection)) = connections.get_mut(place) else { continue };
            connection.weigh(&report);
            mark(unfinished, place);
            if !matches!(connection.hears, Hears::Live) || report.number < connection.next_report {
                continue;
            }
            if report.number > connection.next_report || connection.lags() {
                // The position is taken now: when the client catches up, the day may be another one.
                let reading = marks.read_in(*day, report.session, connection.next_report);
                // The rest of an ended day is in no log that could be opened: it is buffered for the client.
                if !matches!(reading, Ok(None)) || report.number > connection.next_report {
                    connection.hears = Hears::Reading(reading.ok().flatten().map(Box::new));
                    continue;
                }
            }
            connection.report(&report);
        }
        Ok(LIVE_TURN)
    }

    /// Runs a client's turn: takes its frames, then sends its pending output.
    fn turn(&mut self, place: usize, take: &mut impl Take) -> Result<usize, OmsError> {
        let mut done = 0;
        let result = self.hear_client(place, &mut done, take)?.and_then(|()| self.tell_client(place, &mut done));
        if let Err(end) = result {
            self.end(place, end, take)?;
        }
        Ok(done)
    }

    /// Takes up to [`TURN`] frames from a client.
    fn hear_client(
        &mut self,
        place: usize,
        done: &mut usize,
        take: &mut impl Take,
    ) -> Result<Result<(), End>, OmsError> {
        let Self { clock, connections, next_request, unfinished, asking, denials, .. } = self;
        let Some(Some(connection)) = connections.get_mut(place) else { return Ok(Ok(())) };
        for _ in 0..TURN {
            if connection.next_question.is_some() {
                return Ok(Ok(()));
            }
            if !connection.inbox.has_frame() {
                match connection.is_readable.then(|| connection.read(|| clock.ticks())) {
                    None => return Ok(Ok(())),
                    Some(Ok(true)) => {
                        *done += 1;
                        if !connection.inbox.has_frame() {
                            mark(unfinished, place);
                            return Ok(Ok(()));
                        }
                    }
                    // Only a part of a TLS record came, or nothing: the other clients have their turns first.
                    Some(Ok(false)) => {
                        if connection.is_readable {
                            mark(unfinished, place);
                        }
                        return Ok(Ok(()));
                    }
                    Some(Err(end)) => return Ok(Err(end)),
                }
                continue;
            }
            if !connection.bucket.take(|| clock.ticks()) {
                // The client has sent something: its empty token bucket is no silence.
                connection.heard = clock.ticks();
                mark(unfinished, place);
                return Ok(Ok(()));
            }
            let Connection { inbox, session, received, shares_clock, .. } = connection;
            let (session, received) = (*session, *received);
            let frame = match inbox.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => continue,
                Err(e) => return Ok(Err(End::Ended(e.to_string()))),
            };
            *done += 1;
            let mut buffer = [0; REQUEST_BYTES];
            if let Some(length) = fit(frame.kind, frame.payload, &mut buffer) {
                let next = slot(next_request, session);
                // Requests that were refused before the journal are numbered by this connection only.
                let expected = *next + connection.refused;
                if frame.sequence < expected {
                    continue;
                }
                if frame.sequence > expected {
                    let why = format!("request {} came where {expected} was expected: some are lost", frame.sequence);
                    return Ok(Err(End::Ended(why)));
                }
                // Stamps of another host's clock mean nothing here.
                let sent = if *shares_clock { frame.stamp } else { received };
                let payload = &buffer[..length];
                let message = Message { sequence: frame.sequence, stamp: sent, kind: frame.kind, payload };
                let Ok(request) = Request::read(frame.kind, payload) else {
                    let why = format!("request {} is none: a code in it is unknown", frame.sequence);
                    return Ok(Err(End::Ended(why)));
                };
                if !connection.only_reads {
                    if let Request::MassCancel(all) = &request {
                        connection.mass_cancel = all.client_order_id;
                    }
                    *next += 1;
                    take(LaneKind::Requests(session), received, Event::Message(&message))?;
                    continue;
                }
                denials.count(session);
                match connection.refuse(message.sequence, &request, clock.ticks()) {
                    Ok(()) => continue,
                    Err(end) => return Ok(Err(end)),
                }
            }
            let (kind, sequence) = (frame.kind, frame.sequence);
            match Kind::from_code(kind) {
                Some(Kind::Heartbeat) => {}
                Some(Kind::Logout) => return Ok(Err(End::Closed("it logged out".to_owned()))),
                Some(Kind::Query) => {
                    connection.next_question = Some(Ask::Query(Listing::of(frame.message())));
                    ask_next(connection, place, asking);
                }
                _ if connection.user.role == tickpath_oms_protocol::Role::Admin && is_word(&frame) => {
                    connection.next_question = Some(Ask::Word { kind, record: frame.payload.to_vec() });
                    ask_next(connection, place, asking);
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

    /// Sends a client its pending output, and queues its next page or catch-up turn once there is room.
    fn tell_client(&mut self, place: usize, done: &mut usize) -> Result<(), End> {
        let Some(Some(connection)) = self.connections.get_mut(place) else { return Ok(()) };
        *done += usize::from(connection.flush()? > 0);
        if let Question::Waits(listing) = connection.question
            && connection.has_room()
        {
            if listing.is_first_page() || connection.bucket.take(|| self.clock.ticks()) {
                ask(connection, place, Ask::Query(listing), &self.asking);
            } else {
                // The wait of the next page for a token is no silence of the client.
                connection.heard = self.clock.ticks();
                mark(&mut self.unfinished, place);
            }
        }
        if matches!(connection.hears, Hears::Reading(_)) && connection.has_room() && !self.reading.contains(&place) {
            self.reading.push_back(place);
        }
        Ok(())
    }

    /// Takes a message of the core's thread: an answer, dropped if its client is gone, or the sessions that may log in.
    fn pass_on(&mut self, said: Said) {
        match said {
            Said::Answer { slot, serial, frames, tokens, rest } => {
                if let Some(Some(connection)) = self.connections.get_mut(slot)
                    && connection.serial == serial
                {
                    connection.say_frames(&frames);
                    connection.bucket.charge(tokens);
                    if rest.is_some() {
                        connection.heard = self.clock.ticks();
                    }
                    connection.question = rest.map_or(Question::None, Question::Waits);
                    ask_next(connection, slot, &self.asking);
                    mark(&mut self.unfinished, slot);
                }
            }
            Said::Sessions(sessions) => {
                let before = std::mem::take(&mut self.sessions);
                self.sessions = sessions.into_iter().map(|session| (session.session, session)).collect();
                let rate = |sessions: &BTreeMap<u16, SessionConfig>, session| {
                    sessions.get(&session).map(|rules: &SessionConfig| rules.rate)
                };
                self.buckets.retain(|&session, _| {
                    self.denials.is_spent(session) || rate(&before, session) == rate(&self.sessions, session)
                });
            }
        }
    }

    /// Ends a connection, and keeps its token bucket for the session's next client.
    pub(super) fn end(&mut self, place: usize, end: End, take: &mut impl Take) -> Result<(), OmsError> {
        let Some(mut connection) = self.connections[place].take() else { return Ok(()) };
        let now = self.clock.ticks();
        let why = connection.part(end, now);
        let _: io::Result<()> = connection.stream.deregister(self.poll.registry());
        let (user, session) = (connection.user.name.clone(), connection.session);
        let _ = self.config.events.try_send(ServerEvent::Gone { user, session, why });
        self.places.remove(&session);
        self.laned.retain(|&laned| laned != place);
        self.buckets.insert(session, connection.bucket);
        self.asking.sessions.store(self.places.len() as u64, Ordering::Relaxed);
        if !connection.is_journaled {
            return Ok(());
        }
        take(LaneKind::Requests(session), now, Event::Login(false))
    }
}

impl<C: Clock> Front for Gateway<C> {
    /// Runs one turn: live reports, answers, the marked clients, catch-up, admissions and timeouts.
    fn poll(&mut self, take: &mut impl Take) -> Result<usize, OmsError> {
        // Taken before the sockets are polled: a frame sent before these logons, a logout above all, is read first.
        let mut admitted = std::mem::take(&mut self.waiting);
        admitted.extend(self.admitted.try_iter());
        self.turns = self.turns.wrapping_add(1);
        let is_due = self.laned.is_empty() || !admitted.is_empty() || self.turns.is_multiple_of(SOCKETS_EVERY);
        let mut done = match is_due {
            true => self.wait(Some(std::time::Duration::ZERO)),
            false => 0,
        };
        done += self.hear_live()?;
        while let Ok(answer) = self.asking.answers.try_recv() {
            self.pass_on(answer);
            done += 1;
        }
        self.look_at_lanes();
        std::mem::swap(&mut self.unfinished, &mut self.turning);
        for at in 0..self.turning.len() {
            done += self.turn(self.turning[at], take)?;
        }
        self.turning.clear();
        self.settle_denials(take)?;
        done += self.read_on(take)?;
        for admitted in admitted {
            done += self.admit(admitted, take)?;
        }
        let now = self.clock.ticks();
        if now >= self.look_at {
            self.look_at = now + self.clock.calibration().ticks_of_ns(LOOK_NS);
            self.look(now, take)?;
        }
        Ok(done)
    }

    /// Sleeps until there may be work, or until the timeout. Returns at once without a bell.
    fn sleep(&mut self, timeout_ns: u64) {
        let Some(bell) = self.bell.clone() else { return };
        if !self.reading.is_empty() {
            // The pause between two catch-up turns is shorter than any sleep.
            return tickpath_clock::yield_now();
        }
        bell.sleeps();
        // The next turn returns the error again.
        let mut is_quiet = matches!(self.hear_live(), Ok(0));
        for lanes in self.lanes() {
            is_quiet &= lanes.sleeps();
        }
        let may_wait = is_quiet && self.unfinished.is_empty() && self.waiting.is_empty();
        // A client with an empty token bucket waits for the time to pass.
        let nanoseconds = if may_wait { timeout_ns } else { timeout_ns.min(1_000_000) };
        if is_quiet {
            self.wait(Some(std::time::Duration::from_nanos(nanoseconds)));
        }
        bell.wakes();
        self.lanes().for_each(|lanes| lanes.wakes());
    }
}

impl<C> Drop for Gateway<C> {
    fn drop(&mut self) {
        // The acceptor may wait for room in this channel, and would wait for ever.
        self.admitted = sync_channel(0).1;
        self.door = None;
        for connection in self.connections.iter_mut().flatten() {
            connection.say(Kind::Logout, 0, 0, &[], b"the OMS stops");
            let _ = connection.flush();
        }
    }
}

/// Sends a question or an admin command to the core's thread.
fn ask(connection: &mut Connection, slot: usize, what: Ask, asking: &Asking) {
    let (serial, user) = (connection.serial, connection.user.clone());
    // The receiver is gone only while the OMS ends.
    let _ = asking.ask.send(Asked { slot, serial, what, user });
    connection.question = Question::Asked;
}

/// Takes up the client's next question once the answer before it is complete.
fn ask_next(connection: &mut Connection, slot: usize, asking: &Asking) {
    if !matches!(connection.question, Question::None) {
        return;
    }
    match connection.next_question.take() {
        Some(Ask::Query(listing)) => connection.question = Question::Waits(listing),
        Some(what) => ask(connection, slot, what, asking),
        None => {}
    }
}

/// Returns whether a frame is an admin command.
fn is_word(frame: &Frame<'_>) -> bool {
    use RecordKind::{CancelScope, DayEnd, EnterFill, EnterOrder, EnterPosition, Inquire, Kill, Reconcile, Resolve};
    let entered = [EnterOrder, EnterFill, EnterPosition];
    RecordKind::from_code(frame.kind).is_some_and(|kind| {
        entered.contains(&kind) || [Kill, CancelScope, Resolve, Inquire, Reconcile, DayEnd].contains(&kind)
    })
}

/// Marks a connection that has more to do.
#[inline]
pub(super) fn mark(unfinished: &mut Vec<usize>, place: usize) {
    if !unfinished.contains(&place) {
        unfinished.push(place);
    }
}

pub(super) fn get(list: &[u64], session: u16) -> u64 {
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
