//! The client.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use tickpath_clock::{Clock, HostClock};
use tickpath_market::Request;
use tickpath_oms_protocol::{
    CONDITIONAL_VERSION, FrameKind, INSTRUMENTS_VERSION, InstrumentRow, MAX_PAYLOAD, Query, TEXT_ID_VERSION, Welcome,
};
use zerocopy::IntoBytes;

use crate::connection::OmsConnection;
use crate::logon::Connector;
use crate::reconnect::{ReconnectOutcome, ReconnectThread, next_pause};
use crate::sequence_numbers::SequenceNumbers;
use crate::{ClientCounts, ClientError, ClientEvent, ClientSendError, Config, Since};

/// Min lifetime of a good connection: after its loss, the client reconnects without a pause.
const GOOD_AGE_NS: u64 = 1_000_000_000;

/// Longest sleep while an answer is outstanding.
const WAIT_NS: u64 = 10_000_000;

/// A session with an OMS. Dropping it without [`Self::close`] counts as a lost client for the OMS.
#[derive(Debug)]
pub struct Client {
    clock: HostClock,
    connector: Arc<Connector>,
    numbers: SequenceNumbers,
    state: ConnectionState,
    /// Events that were not reported to the program yet.
    pending_events: VecDeque<ClientEvent>,
    /// Pause before the next attempt, in nanoseconds.
    pause_ns: u64,
    welcome: Welcome,
    shares_clock: bool,
}

#[derive(Debug)]
enum ConnectionState {
    Connected(Box<OmsConnection>),
    Reconnecting(ReconnectThread),
    Ended(ClientError),
}

impl Client {
    /// Connects and logs on once, and waits for the result. The first [`Self::poll`] reports it.
    pub fn connect(config: Config) -> Result<Self, ClientError> {
        let clock = HostClock::get().map_err(|e| ClientError::Clock(Arc::new(e)))?;
        let numbers = SequenceNumbers::new(&config);
        let connector = Arc::new(Connector::new(config, clock)?);
        let connection = Box::new(OmsConnection::new(clock, connector.log_on(numbers.logon_request())?));
        let (welcome, shares_clock) = (connection.welcome, connection.shares_clock);
        let (state, pending_events) = (ConnectionState::Ended(ClientError::Closed), VecDeque::new());
        let mut client = Self { clock, connector, numbers, state, pending_events, pause_ns: 0, welcome, shares_clock };
        let mut events = VecDeque::new();
        client.resume(connection, &mut |event| events.push_back(event));
        client.pending_events = events;
        Ok(client)
    }

    /// Sends a request, stamped now, and returns its number in the session. It never waits.
    ///
    /// A number does not prove that the request was sent or taken: reports do, and [`ClientEvent::NotTaken`] reports
    /// the opposite.
    pub fn send(&mut self, request: &Request) -> Result<u64, ClientSendError<Request>> {
        self.send_at(request, self.clock.ticks())
    }

    /// Sends a request that was first tried at `stamp`, in ticks of the host's clock, so that a request that the OMS
    /// did not take at once keeps its T0.
    pub fn send_at(&mut self, request: &Request, stamp: u64) -> Result<u64, ClientSendError<Request>> {
        self.queue_request(request, stamp)?;
        // The request is kept after the flush, because keeping it may touch new memory.
        self.flush();
        Ok(self.numbers.record_sent(request))
    }

    /// Queues a request like [`Self::send_at`]; the next send, [`Self::flush`] or poll sends its bytes, so that many
    /// requests need one system call.
    pub fn enqueue(&mut self, request: &Request, stamp: u64) -> Result<u64, ClientSendError<Request>> {
        self.queue_request(request, stamp)?;
        Ok(self.numbers.record_sent(request))
    }

    /// Writes a request, under the number by which it will be kept.
    fn queue_request(&mut self, request: &Request, stamp: u64) -> Result<(), ClientSendError<Request>> {
        request.check().map_err(|reason| ClientSendError::Malformed { given: *request, reason })?;
        let connection = ready(&mut self.state, *request)?;
        let first_version = match request {
            Request::Conditional(_) | Request::ReplaceConditional(_) => CONDITIONAL_VERSION,
            Request::Extended(_) | Request::ByTextId(_) => TEXT_ID_VERSION,
            Request::New(_)
            | Request::Cancel(_)
            | Request::Replace(_)
            | Request::Status(_)
            | Request::MassCancel(_) => 0,
        };
        if self.welcome.version < first_version {
            return Err(ClientSendError::Unsupported(*request));
        }
        connection.queue_frame(request.kind().code(), self.numbers.next_request, stamp, request.as_bytes());
        Ok(())
    }

    /// Sends an admin command: a record of `tickpath-oms-core`. It has no number; [`ClientEvent::CommandAnswered`]
    /// reports its result. A command whose connection was lost gets no answer.
    ///
    /// # Panics
    ///
    /// Panics if it is longer than a frame's payload, which no record is.
    pub fn admin_command(&mut self, kind: u8, bytes: &[u8]) -> Result<(), ClientSendError<()>> {
        assert!(bytes.len() <= MAX_PAYLOAD, "a command of {} bytes is no record", bytes.len());
        let stamp = self.clock.ticks();
        ready(&mut self.state, ())?.queue_frame(kind, 0, stamp, bytes);
        self.flush();
        Ok(())
    }

    /// Sends a query, which changes nothing. [`ClientEvent::Answered`] ends its answer.
    pub fn query(&mut self, query: Query) -> Result<(), ClientSendError<Query>> {
        let stamp = self.clock.ticks();
        ready(&mut self.state, query)?.queue_frame(FrameKind::Query.code(), 0, stamp, query.as_bytes());
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
                ClientEvent::InstrumentRow(row) => rows.push(row),
                ClientEvent::Answered(_) => end = Some(Ok(())),
                other => {
                    if let ClientEvent::Disconnected { why } = &other {
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
        self.pending_events = others;
        ended.map(|()| Some(rows))
    }

    /// Sends queued requests, as far as the OMS takes them now.
    pub fn flush(&mut self) {
        if let ConnectionState::Connected(connection) = &mut self.state {
            connection.flush();
        }
    }

    /// Reports pending events without waiting, and returns their number. It reads once, so a program that wants all
    /// events polls until none is left. The error is the end of the client, which does not reconnect.
    pub fn poll(&mut self, mut on_event: impl FnMut(ClientEvent)) -> Result<usize, ClientError> {
        let mut reported = 0;
        let report = &mut |event| {
            reported += 1;
            on_event(event);
        };
        if !self.pending_events.is_empty() {
            self.pending_events.drain(..).for_each(&mut *report);
            self.deliver_buffered(report);
        }
        match &mut self.state {
            ConnectionState::Connected(connection) => {
                if let Err(why) = poll_connection(connection, &mut self.numbers, report) {
                    self.handle_loss(why, report);
                }
            }
            ConnectionState::Reconnecting(reconnect) => match reconnect.poll_outcome() {
                Some(ReconnectOutcome::Connected(connection)) => {
                    self.resume(connection, report);
                    self.deliver_buffered(report);
                }
                Some(ReconnectOutcome::Failed(why)) => report(ClientEvent::Failed { why }),
                Some(ReconnectOutcome::Ended(why)) => self.finish(why, report),
                None => {}
            },
            ConnectionState::Ended(why) if reported == 0 => return Err(why.clone()),
            ConnectionState::Ended(_) => {}
        }
        Ok(reported)
    }

    /// Sends the heartbeat that is due, also on a new connection after a loss, without reading events. A program that
    /// cannot take events for a while, because its own output blocks, calls this more often than twice per heartbeat
    /// time; reports wait at the OMS meanwhile, and the next [`Self::poll`] continues with them.
    pub fn keep_alive(&mut self) {
        let connection = match &mut self.state {
            ConnectionState::Connected(connection) => Some(&mut **connection),
            ConnectionState::Reconnecting(reconnect) => reconnect.connection_mut(),
            ConnectionState::Ended(_) => None,
        };
        if let Some(connection) = connection {
            let now = connection.now();
            connection.heartbeat_if_due(now, self.numbers.logon_request().next_report);
            connection.flush();
        }
    }

    /// Sleeps until a poll may find an event, or until the timeout. It may wake early.
    pub fn wait(&mut self, timeout_ns: u64) {
        if !self.pending_events.is_empty() {
            return;
        }
        match &mut self.state {
            ConnectionState::Connected(connection) => connection.wait(timeout_ns),
            ConnectionState::Reconnecting(reconnect) => reconnect.wait(Duration::from_nanos(timeout_ns)),
            ConnectionState::Ended(_) => {}
        }
    }

    /// Returns, for an event loop, the descriptor that becomes readable with an event (none while there is no
    /// connection) and the max nanoseconds until the next poll. Returns none if a poll may find an event now. After the
    /// sleep, call [`Self::wake`], then poll.
    pub fn prepare_sleep(&mut self) -> Option<(Option<BorrowedFd<'_>>, u64)> {
        if !self.pending_events.is_empty() {
            return None;
        }
        match &mut self.state {
            ConnectionState::Connected(connection) => {
                connection.prepare_sleep().map(|(socket, due_ns)| (Some(socket), due_ns))
            }
            ConnectionState::Reconnecting(_) => Some((None, WAIT_NS)),
            ConnectionState::Ended(_) => None,
        }
    }

    /// Notes that the event loop has woken.
    pub fn wake(&mut self) {
        if let ConnectionState::Connected(connection) = &mut self.state {
            connection.wake();
        }
    }

    /// Ends the session in good order: requests in flight get a moment to be sent.
    pub fn close(mut self) {
        self.disconnect();
    }

    /// Ends the session as [`Self::close`] does, for an owner that keeps the client.
    pub fn disconnect(&mut self) {
        let ended = ConnectionState::Ended(ClientError::Closed);
        if let ConnectionState::Connected(connection) = std::mem::replace(&mut self.state, ended) {
            connection.close();
        }
    }

    /// Returns true while requests can be sent.
    pub fn is_connected(&self) -> bool {
        matches!(&self.state, ConnectionState::Connected(connection) if !connection.is_broken())
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
        match self.connector.config.since {
            configured @ Since::Report { .. } if !self.pending_events.is_empty() => configured,
            _ => self.numbers.since,
        }
    }

    /// Returns the counts since this client was created.
    pub fn counts(&self) -> ClientCounts {
        self.numbers.counts
    }

    fn resume(&mut self, connection: Box<OmsConnection>, on_event: &mut dyn FnMut(ClientEvent)) {
        (self.welcome, self.shares_clock) = (connection.welcome, connection.shares_clock);
        self.numbers.resume(&connection.welcome, on_event);
        self.state = ConnectionState::Connected(connection);
    }

    /// Reports the events that arrived with the welcome.
    fn deliver_buffered(&mut self, on_event: &mut dyn FnMut(ClientEvent)) {
        if let ConnectionState::Connected(connection) = &mut self.state
            && let Err(why) = receive_frames(connection, &mut self.numbers, on_event)
        {
            self.handle_loss(why, on_event);
        }
    }

    fn handle_loss(&mut self, why: ClientError, on_event: &mut dyn FnMut(ClientEvent)) {
        self.numbers.counts.losses += 1;
        if let ConnectionState::Connected(connection) = &self.state {
            self.pause_ns = if connection.age_ns() >= GOOD_AGE_NS { 0 } else { next_pause(self.pause_ns) };
        }
        on_event(ClientEvent::Disconnected { why: why.clone() });
        if self.connector.config.reconnect && !why.is_final() {
            let request = self.numbers.logon_request();
            self.state = ConnectionState::Reconnecting(ReconnectThread::start(&self.connector, request, self.pause_ns));
        } else {
            self.finish(why, on_event);
        }
    }

    fn finish(&mut self, why: ClientError, on_event: &mut dyn FnMut(ClientEvent)) {
        self.numbers.report_in_doubt(on_event);
        self.state = ConnectionState::Ended(why);
    }
}

/// Returns the connection, if a frame can be written there now.
fn ready<T>(state: &mut ConnectionState, given: T) -> Result<&mut OmsConnection, ClientSendError<T>> {
    let ConnectionState::Connected(connection) = state else { return Err(ClientSendError::Disconnected(given)) };
    if connection.is_full() {
        connection.flush();
    }
    match connection {
        connection if connection.is_broken() => Err(ClientSendError::Disconnected(given)),
        connection if connection.is_full() => Err(ClientSendError::Full(given)),
        connection => Ok(connection),
    }
}

/// Runs one turn of a connection: reads events, then does pending work.
fn poll_connection(
    connection: &mut OmsConnection,
    numbers: &mut SequenceNumbers,
    on_event: &mut dyn FnMut(ClientEvent),
) -> Result<(), ClientError> {
    let has_read = connection.read()?;
    let now = connection.now();
    if has_read {
        receive_frames(connection, numbers, on_event)?;
    } else {
        connection.check_liveness(now)?;
    }
    connection.heartbeat_if_due(now, numbers.logon_request().next_report);
    connection.flush();
    Ok(())
}

fn receive_frames(
    connection: &mut OmsConnection,
    numbers: &mut SequenceNumbers,
    on_event: &mut dyn FnMut(ClientEvent),
) -> Result<(), ClientError> {
    while let Some(frame) = connection.inbox.next()? {
        numbers.receive(&frame, on_event)?;
    }
    Ok(())
}
