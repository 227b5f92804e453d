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
use tickpath_log::{LaneStream, LogMessage, LogPath, Next, Reader};
use tickpath_market::Request;
use tickpath_oms_core::RecordKind;
use tickpath_oms_protocol::{Frame, FrameKind};
use tickpath_oms_runtime::front_end::{FrontEndState, InputSink, JournalProgress, SessionFrontEnd};
use tickpath_oms_runtime::history::{self, HistoryIndex};
use tickpath_oms_runtime::layout::InputEvent;
use tickpath_oms_runtime::{LaneKind, OmsError, SessionConfig, TokenBucket};

use super::acceptor::{AcceptorThread, AdmittedClient};
use super::check_schedule::CheckSchedule;
use super::config::ServerConfig;
use super::config_reload::NewTradingConfig;
use super::connection::{
    ClientConnection, DisconnectReason, OutstandingControl, REQUEST_BYTES, ReportSource, fit_request,
};
use super::control::{ClientControlRequest, ControlClient, ControlRequest, CoreReply, GatewayWaker, QueryProgress};
use super::denials::DenialBudget;
use super::disk_space::DiskSpaceMonitor;
use super::drop_copies::DropCopyThread;
use super::error::ServerOpenError;
use super::event::ServerEvent;

/// Max frames taken from one client per turn, before the other clients have their turns.
const MAX_CLIENT_FRAMES: usize = 64;
/// Max live frames of the history read per turn.
const MAX_LIVE_FRAMES: usize = 256;
/// Turns between two polls of the sockets while lanes exist: a poll takes longer than all else of an idle turn.
const SOCKET_POLL_TURNS: u32 = 16;
/// Interval between two checks for silent clients.
pub(super) const CHECK_NS: u64 = 10_000_000;
/// Max clients that wait in the channel between the acceptor and the gateway.
const MAX_ADMITTED: usize = 64;
/// Kind code of a denial among the reports.
const DENIED: u8 = tickpath_market::Kind::OrderDenied.code();
/// Poll token of the bell.
pub(super) const WAKER_TOKEN: Token = Token(usize::MAX);

/// Parts of the OMS that a gateway is opened with, beside its configuration.
pub(crate) struct GatewayParts {
    pub journal: u64,
    pub place: LogPath,
    pub history: HistoryIndex,
    /// Sequence number of each session's next report.
    pub next_report: Vec<u64>,
    pub opening: FrontEndState,
    pub control: ControlClient,
    pub configs: Sender<NewTradingConfig>,
}

/// The sockets of logged-in clients, and the state of their sessions.
pub(crate) struct Gateway<C> {
    pub(super) clock: C,
    pub(super) config: ServerConfig,
    pub(super) journal: u64,
    pub(super) poll: Poll,
    pub(super) events: Events,
    pub(super) admitted: Receiver<AdmittedClient>,
    /// The acceptor; dropped after `admitted`, because its thread may block on sending there.
    pub(super) acceptor: Option<AcceptorThread>,
    pub(super) copies: DropCopyThread,
    pub(super) connections: Vec<Option<ClientConnection>>,
    /// Connections with more to read or to send than the last turn took.
    pub(super) unfinished: Vec<usize>,
    /// Connections of the turn that is in progress; empty between turns.
    pub(super) turning: Vec<usize>,
    /// Connections that catch up from the history: one has a turn, the next not before the time `catch_up_at`.
    pub(super) catching_up: VecDeque<usize>,
    pub(super) catch_up_at: u64,
    /// Connections over lanes, whose data no poll of the sockets reports.
    pub(super) laned: Vec<usize>,
    pub(super) turns: u32,
    /// Index of each session's connection.
    pub(super) places: BTreeMap<u16, usize>,
    /// Client number that each session's last logon named.
    pub(super) clients: BTreeMap<u16, u32>,
    pub(super) history: HistoryIndex,
    pub(super) live: Reader,
    pub(super) day: u64,
    /// The day has ended, and the rest of its reports is being read.
    pub(super) day_ended: bool,
    pub(super) next_request: Vec<u64>,
    pub(super) next_report: Vec<u64>,
    /// Progress of the journal with each session's requests.
    pub(super) journaled: JournalProgress,
    /// Clients whose session has requests in flight to the journal: their welcome names the number of the next request.
    pub(super) awaiting_journal: Vec<AdmittedClient>,
    /// Change count of the user directory at the last check.
    pub(super) users_version: u64,
    pub(super) sessions: BTreeMap<u16, SessionConfig>,
    /// Token buckets of sessions without a client, so that a reconnect does not refill them.
    pub(super) buckets: BTreeMap<u16, TokenBucket>,
    pub(super) denials: DenialBudget,
    pub(super) control: ControlClient,
    pub(super) serial: u64,
    pub(super) check_at: u64,
    pub(super) schedule: CheckSchedule,
    /// Deadline after the start: absent sessions that cancel on disconnect have their orders canceled then.
    pub(super) absent_deadline: Option<u64>,
    pub(super) waker: Option<GatewayWaker>,
}

impl<C: Clock> Gateway<C> {
    /// Opens the gateway and starts its acceptor. With a bell the gateway can sleep.
    pub fn open(
        clock: C,
        poll: Poll,
        bell: Option<GatewayWaker>,
        config: &ServerConfig,
        opened: GatewayParts,
    ) -> Result<Self, ServerOpenError> {
        let GatewayParts { journal, place, history: marks, next_report, opening, control: asking, configs: desks } =
            opened;
        let FrontEndState { next_request, journaled, .. } = opening;
        let (admit, admitted) = sync_channel(MAX_ADMITTED);
        let limits = config.denial_limits();
        let room = DiskSpaceMonitor::new(place.dir().to_owned(), limits.disk_reserve_bytes());
        let denials = DenialBudget::new(limits, room.is_low());
        let door = AcceptorThread::open(clock.clone(), config, admit, desks, room)?;
        let copies = DropCopyThread::open(clock.clone(), config, door.directory(), (place, journal))?;
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
            acceptor: Some(door),
            copies,
            connections: Vec::new(),
            unfinished: Vec::new(),
            turning: Vec::new(),
            catching_up: VecDeque::new(),
            catch_up_at: now,
            laned: Vec::new(),
            turns: 0,
            places: BTreeMap::new(),
            clients: BTreeMap::new(),
            history: marks,
            live,
            day,
            day_ended: false,
            journaled,
            next_request,
            next_report,
            awaiting_journal: Vec::new(),
            users_version: 0,
            sessions: config.sessions.iter().map(|session| (session.session, session.clone())).collect(),
            buckets: BTreeMap::new(),
            denials,
            control: asking,
            serial: 0,
            check_at: now,
            schedule: CheckSchedule::default(),
            absent_deadline: Some(awaited),
            waker: bell,
        })
    }

    /// Polls the sockets and marks the connections with events. Returns the number of events.
    fn poll_sockets(&mut self, timeout: Option<std::time::Duration>) -> usize {
        if self.poll.poll(&mut self.events, timeout).is_err() {
            return 0;
        }
        let mut news = 0;
        for event in self.events.iter().filter(|event| event.token() != WAKER_TOKEN) {
            let Token(place) = event.token();
            if let Some(Some(connection)) = self.connections.get_mut(place) {
                connection.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
                connection.stream.lanes().into_iter().for_each(LaneStream::mark_socket_readable);
                mark(&mut self.unfinished, place);
                news += 1;
            }
        }
        news
    }

    /// Marks the connections whose lanes have data, or room again for pending output.
    fn poll_lanes(&mut self) {
        let Self { laned, connections, unfinished, .. } = self;
        for &place in &*laned {
            let Some(Some(connection)) = connections.get_mut(place) else { continue };
            let waits = connection.pending_bytes() > 0;
            if connection.stream.lanes().is_some_and(|lanes| lanes.has_news(waits)) {
                connection.is_readable = true;
                mark(unfinished, place);
            }
        }
    }

    /// Returns the lanes of all connections that use lanes.
    fn lanes(&mut self) -> impl Iterator<Item = &mut LaneStream<UnixStream>> {
        self.connections.iter_mut().flatten().filter_map(|connection| connection.stream.lanes())
    }

    /// Forwards live reports to the clients that are caught up. Returns the number of frames read.
    fn forward_live(&mut self) -> Result<usize, OmsError> {
        let Self {
            live,
            history: marks,
            day,
            day_ended: is_over,
            connections,
            places,
            next_report,
            unfinished,
            denials,
            ..
        } = self;
        for done in 0..MAX_LIVE_FRAMES {
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
            let Some(report) = history::parse_report(&message) else { continue };
            set_next_number(next_report, report.session, report.number + 1);
            if report.kind == DENIED {
                denials.count(report.session);
            }
            let Some(&place) = places.get(&report.session) else { continue };
            let Some(Some(connection)) = connections.get_mut(place) else { continue };
            connection.charge_mass_cancel(&report);
            mark(unfinished, place);
            if !matches!(connection.source, ReportSource::Live) || report.number < connection.next_report {
                continue;
            }
            if report.number > connection.next_report || connection.is_lagging() {
                // The position is taken now: when the client catches up, the day may be another one.
                let reading = marks.read_in(*day, report.session, connection.next_report);
                // The rest of an ended day is in no log that could be opened: it is buffered for the client.
                if !matches!(reading, Ok(None)) || report.number > connection.next_report {
                    connection.source = ReportSource::History(reading.ok().flatten().map(Box::new));
                    continue;
                }
            }
            connection.report(&report);
        }
        Ok(MAX_LIVE_FRAMES)
    }

    /// Runs a client's turn: takes its frames, then sends its pending output.
    fn serve_client(&mut self, place: usize, sink: &mut impl InputSink) -> Result<usize, OmsError> {
        let mut done = 0;
        let result = self.read_client(place, &mut done, sink)?.and_then(|()| self.write_client(place, &mut done));
        if let Err(end) = result {
            self.disconnect(place, end, sink)?;
        }
        Ok(done)
    }

    /// Takes up to [`MAX_CLIENT_FRAMES`] frames from a client.
    fn read_client(
        &mut self,
        place: usize,
        done: &mut usize,
        sink: &mut impl InputSink,
    ) -> Result<Result<(), DisconnectReason>, OmsError> {
        let Self { clock, connections, next_request, unfinished, control: asking, denials, .. } = self;
        let Some(Some(connection)) = connections.get_mut(place) else { return Ok(Ok(())) };
        for _ in 0..MAX_CLIENT_FRAMES {
            if connection.next_control.is_some() {
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
            if !connection.bucket.try_take(|| clock.ticks()) {
                // The client has sent something: its empty token bucket is no silence.
                connection.last_received = clock.ticks();
                mark(unfinished, place);
                return Ok(Ok(()));
            }
            let ClientConnection { inbox, session, received, shares_clock, .. } = connection;
            let (session, received) = (*session, *received);
            let frame = match inbox.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => continue,
                Err(e) => return Ok(Err(DisconnectReason::ByServer(e.to_string()))),
            };
            *done += 1;
            let mut buffer = [0; REQUEST_BYTES];
            if let Some(length) = fit_request(frame.kind, frame.payload, &mut buffer) {
                let next = next_number_mut(next_request, session);
                // Requests that were refused before the journal are numbered by this connection only.
                let expected = *next + connection.refused;
                if frame.sequence < expected {
                    continue;
                }
                if frame.sequence > expected {
                    let why = format!("request {} came where {expected} was expected: some are lost", frame.sequence);
                    return Ok(Err(DisconnectReason::ByServer(why)));
                }
                // Stamps of another host's clock mean nothing here.
                let sent = if *shares_clock { frame.stamp } else { received };
                let payload = &buffer[..length];
                let message = LogMessage { sequence: frame.sequence, stamp: sent, kind: frame.kind, payload };
                let Ok(request) = Request::read(frame.kind, payload) else {
                    let why = format!("request {} is none: a code in it is unknown", frame.sequence);
                    return Ok(Err(DisconnectReason::ByServer(why)));
                };
                if !connection.is_read_only {
                    if let Request::MassCancel(all) = &request {
                        connection.mass_cancel = all.client_order_id;
                    }
                    *next += 1;
                    sink(LaneKind::Requests(session), received, InputEvent::Message(&message))?;
                    continue;
                }
                denials.count(session);
                match connection.refuse(message.sequence, &request, clock.ticks()) {
                    Ok(()) => continue,
                    Err(end) => return Ok(Err(end)),
                }
            }
            let (kind, sequence) = (frame.kind, frame.sequence);
            match FrameKind::from_code(kind) {
                Some(FrameKind::Heartbeat) => {}
                Some(FrameKind::Logout) => return Ok(Err(DisconnectReason::ByClient("it logged out".to_owned()))),
                Some(FrameKind::Query) => {
                    connection.next_control = Some(ControlRequest::Query(QueryProgress::of(frame.message())));
                    send_next_control(connection, place, asking);
                }
                _ if connection.user.role == tickpath_oms_protocol::UserRole::Admin && is_admin_command(&frame) => {
                    connection.next_control = Some(ControlRequest::Command { kind, record: frame.payload.to_vec() });
                    send_next_control(connection, place, asking);
                }
                _ => {
                    let why = format!("a frame of kind {kind} (number {sequence}) is none that this user may send");
                    return Ok(Err(DisconnectReason::ByServer(why)));
                }
            }
        }
        mark(unfinished, place);
        Ok(Ok(()))
    }

    /// Sends a client its pending output, and queues its next page or catch-up turn once there is room.
    fn write_client(&mut self, place: usize, done: &mut usize) -> Result<(), DisconnectReason> {
        let Some(Some(connection)) = self.connections.get_mut(place) else { return Ok(()) };
        *done += usize::from(connection.flush()? > 0);
        if let OutstandingControl::Queued(listing) = connection.outstanding
            && connection.has_room()
        {
            if listing.is_first_page() || connection.bucket.try_take(|| self.clock.ticks()) {
                send_control(connection, place, ControlRequest::Query(listing), &self.control);
            } else {
                // The wait of the next page for a token is no silence of the client.
                connection.last_received = self.clock.ticks();
                mark(&mut self.unfinished, place);
            }
        }
        if matches!(connection.source, ReportSource::History(_))
            && connection.has_room()
            && !self.catching_up.contains(&place)
        {
            self.catching_up.push_back(place);
        }
        Ok(())
    }

    /// Takes a message of the core's thread: an answer, dropped if its client is gone, or the sessions that may log in.
    fn apply_core_reply(&mut self, said: CoreReply) {
        match said {
            CoreReply::Answer { slot, serial, frames, tokens, remaining: rest } => {
                if let Some(Some(connection)) = self.connections.get_mut(slot)
                    && connection.serial == serial
                {
                    connection.send_frames(&frames);
                    connection.bucket.charge(tokens);
                    if rest.is_some() {
                        connection.last_received = self.clock.ticks();
                    }
                    connection.outstanding = rest.map_or(OutstandingControl::None, OutstandingControl::Queued);
                    send_next_control(connection, slot, &self.control);
                    mark(&mut self.unfinished, slot);
                }
            }
            CoreReply::Sessions(sessions) => {
                let before = std::mem::take(&mut self.sessions);
                self.sessions = sessions.into_iter().map(|session| (session.session, session)).collect();
                let rate = |sessions: &BTreeMap<u16, SessionConfig>, session| {
                    sessions.get(&session).map(|rules: &SessionConfig| rules.rate)
                };
                self.buckets.retain(|&session, _| {
                    self.denials.is_exhausted(session) || rate(&before, session) == rate(&self.sessions, session)
                });
            }
        }
    }

    /// Ends a connection, and keeps its token bucket for the session's next client.
    pub(super) fn disconnect(
        &mut self,
        place: usize,
        end: DisconnectReason,
        sink: &mut impl InputSink,
    ) -> Result<(), OmsError> {
        let Some(mut connection) = self.connections[place].take() else { return Ok(()) };
        let now = self.clock.ticks();
        let why = connection.close(end, now);
        let _: io::Result<()> = connection.stream.deregister(self.poll.registry());
        let (user, session) = (connection.user.name.clone(), connection.session);
        let _ = self.config.events.try_send(ServerEvent::Disconnected { user, session, why });
        self.places.remove(&session);
        self.laned.retain(|&laned| laned != place);
        self.buckets.insert(session, connection.bucket);
        self.control.sessions.store(self.places.len() as u64, Ordering::Relaxed);
        if !connection.is_journaled {
            return Ok(());
        }
        sink(LaneKind::Requests(session), now, InputEvent::Login(false))
    }
}

impl<C: Clock> SessionFrontEnd for Gateway<C> {
    /// Runs one turn: live reports, answers, the marked clients, catch-up, admissions and timeouts.
    fn poll(&mut self, sink: &mut impl InputSink) -> Result<usize, OmsError> {
        // Taken before the sockets are polled: a frame sent before these logons, a logout above all, is read first.
        let mut admitted = std::mem::take(&mut self.awaiting_journal);
        admitted.extend(self.admitted.try_iter());
        self.turns = self.turns.wrapping_add(1);
        let is_due = self.laned.is_empty() || !admitted.is_empty() || self.turns.is_multiple_of(SOCKET_POLL_TURNS);
        let mut done = match is_due {
            true => self.poll_sockets(Some(std::time::Duration::ZERO)),
            false => 0,
        };
        done += self.forward_live()?;
        while let Ok(answer) = self.control.replies.try_recv() {
            self.apply_core_reply(answer);
            done += 1;
        }
        self.poll_lanes();
        std::mem::swap(&mut self.unfinished, &mut self.turning);
        for at in 0..self.turning.len() {
            done += self.serve_client(self.turning[at], sink)?;
        }
        self.turning.clear();
        self.enforce_budgets(sink)?;
        done += self.catch_up(sink)?;
        for admitted in admitted {
            done += self.admit(admitted, sink)?;
        }
        let now = self.clock.ticks();
        if now >= self.check_at {
            self.check_at = now + self.clock.calibration().ticks_of_ns(CHECK_NS);
            self.run_checks(now, sink)?;
        }
        Ok(done)
    }

    /// Sleeps until there may be work, or until the timeout. Returns at once without a bell.
    fn sleep(&mut self, timeout_ns: u64) {
        let Some(bell) = self.waker.clone() else { return };
        if !self.catching_up.is_empty() {
            // The pause between two catch-up turns is shorter than any sleep.
            return tickpath_clock::yield_now();
        }
        bell.begin_sleep();
        // The next turn returns the error again.
        let mut is_quiet = matches!(self.forward_live(), Ok(0));
        for lanes in self.lanes() {
            is_quiet &= lanes.announce_sleep();
        }
        let may_wait = is_quiet && self.unfinished.is_empty() && self.awaiting_journal.is_empty();
        // A client with an empty token bucket waits for the time to pass.
        let nanoseconds = if may_wait { timeout_ns } else { timeout_ns.min(1_000_000) };
        if is_quiet {
            self.poll_sockets(Some(std::time::Duration::from_nanos(nanoseconds)));
        }
        bell.end_sleep();
        self.lanes().for_each(|lanes| lanes.withdraw_sleep());
    }
}

impl<C> Drop for Gateway<C> {
    fn drop(&mut self) {
        // The acceptor may wait for room in this channel, and would wait for ever.
        self.admitted = sync_channel(0).1;
        self.acceptor = None;
        for connection in self.connections.iter_mut().flatten() {
            connection.send_message(FrameKind::Logout, 0, 0, &[], b"the OMS stops");
            let _ = connection.flush();
        }
    }
}

/// Sends a question or an admin command to the core's thread.
fn send_control(connection: &mut ClientConnection, slot: usize, what: ControlRequest, asking: &ControlClient) {
    let (serial, user) = (connection.serial, connection.user.clone());
    // The receiver is gone only while the OMS ends.
    let _ = asking.requests.send(ClientControlRequest { slot, serial, request: what, user });
    connection.outstanding = OutstandingControl::Sent;
}

/// Takes up the client's next question once the answer before it is complete.
fn send_next_control(connection: &mut ClientConnection, slot: usize, asking: &ControlClient) {
    if !matches!(connection.outstanding, OutstandingControl::None) {
        return;
    }
    match connection.next_control.take() {
        Some(ControlRequest::Query(listing)) => connection.outstanding = OutstandingControl::Queued(listing),
        Some(what) => send_control(connection, slot, what, asking),
        None => {}
    }
}

/// Returns whether a frame is an admin command.
fn is_admin_command(frame: &Frame<'_>) -> bool {
    use RecordKind::{
        CancelScope, DayEnd, EnterFill, EnterOrder, EnterPosition, Kill, QueryStatus, Reconcile, Resolve,
    };
    let entered = [EnterOrder, EnterFill, EnterPosition];
    RecordKind::from_code(frame.kind).is_some_and(|kind| {
        entered.contains(&kind) || [Kill, CancelScope, Resolve, QueryStatus, Reconcile, DayEnd].contains(&kind)
    })
}

/// Marks a connection that has more to do.
#[inline]
pub(super) fn mark(unfinished: &mut Vec<usize>, place: usize) {
    if !unfinished.contains(&place) {
        unfinished.push(place);
    }
}

pub(super) fn next_number(list: &[u64], session: u16) -> u64 {
    list.get(usize::from(session)).copied().unwrap_or(0)
}

#[inline]
fn set_next_number(list: &mut Vec<u64>, session: u16, number: u64) {
    *next_number_mut(list, session) = number;
}

#[inline]
fn next_number_mut(list: &mut Vec<u64>, session: u16) -> &mut u64 {
    let index = usize::from(session);
    if index >= list.len() {
        list.resize(index + 1, 0);
    }
    &mut list[index]
}
