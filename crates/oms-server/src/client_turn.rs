//! A client's turn: its frames are taken, and its pending output is sent.

use tickpath_clock::Clock;
use tickpath_log::LogMessage;
use tickpath_market::Request;
use tickpath_oms_core::RecordKind;
use tickpath_oms_protocol::{Frame, FrameKind, UserRole};
use tickpath_oms_runtime::front_end::InputSink;
use tickpath_oms_runtime::layout::InputEvent;
use tickpath_oms_runtime::{LaneKind, OmsError};

use super::connection::{
    ClientConnection, DisconnectReason, OutstandingControl, REQUEST_BYTES, ReportSource, fit_request,
};
use super::control::{ControlRequest, QueryProgress};
use super::denials::DenialBudget;
use super::gateway::Gateway;
use super::session_numbers::RequestNumbers;

/// Max frames taken from one client per turn, before the other clients have their turns.
const MAX_CLIENT_FRAMES: usize = 64;

enum TurnError {
    Disconnect(DisconnectReason),
    Oms(OmsError),
}

impl From<DisconnectReason> for TurnError {
    fn from(reason: DisconnectReason) -> Self {
        Self::Disconnect(reason)
    }
}

impl From<OmsError> for TurnError {
    fn from(e: OmsError) -> Self {
        Self::Oms(e)
    }
}

impl<C: Clock> Gateway<C> {
    pub(super) fn serve_ready_clients(&mut self, sink: &mut impl InputSink) -> Result<usize, OmsError> {
        let mut done = 0;
        for position in 0..self.ready.begin_turn() {
            let slot = self.ready.in_turn(position);
            let read = self.read_client(slot, &mut done, sink);
            match read.and_then(|()| Ok(self.write_client(slot, &mut done)?)) {
                Ok(()) => {}
                Err(TurnError::Disconnect(reason)) => self.disconnect(slot, reason, sink)?,
                Err(TurnError::Oms(e)) => return Err(e),
            }
        }
        Ok(done)
    }

    fn read_client(&mut self, slot: usize, done: &mut usize, sink: &mut impl InputSink) -> Result<(), TurnError> {
        let Self { clock, clients, ready, requests, control, denials, .. } = self;
        let Some(connection) = clients.get_mut(slot) else { return Ok(()) };
        for _ in 0..MAX_CLIENT_FRAMES {
            if connection.control.next.is_some() {
                return Ok(());
            }
            if !connection.input.inbox.has_frame() {
                if !connection.input.is_readable {
                    return Ok(());
                }
                let has_received = connection.read(|| clock.ticks())?;
                *done += usize::from(has_received);
                if !connection.input.inbox.has_frame() {
                    // Nothing, or only a part of a frame or TLS record, came: the other clients have their turns first.
                    if has_received || connection.input.is_readable {
                        ready.mark(slot);
                    }
                    return Ok(());
                }
                continue;
            }
            if !connection.limit.bucket.try_take(|| clock.ticks()) {
                // The client has sent something: its empty token bucket is no silence.
                connection.liveness.last_received = clock.ticks();
                ready.mark(slot);
                return Ok(());
            }
            let frame = match connection.input.inbox.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => continue,
                Err(e) => return Err(DisconnectReason::ByServer(e.to_string()).into()),
            };
            *done += 1;
            let mut buffer = [0; REQUEST_BYTES];
            if let Some(length) = fit_request(frame.kind, frame.payload, &mut buffer) {
                // Stamps of another host's clock mean nothing here.
                let stamp = if connection.shares_clock { frame.stamp } else { connection.input.received };
                let payload = &buffer[..length];
                let message = LogMessage { sequence: frame.sequence, stamp, kind: frame.kind, payload };
                accept_request(connection, &message, requests, denials, clock, sink)?;
            } else if let Some(request) = parse_control(&frame, connection.user.role)? {
                connection.control.next = Some(request);
                connection.send_next_control(slot, control);
            }
        }
        ready.mark(slot);
        Ok(())
    }

    /// Sends a client its pending output, and queues its next page or catch-up turn once there is room.
    fn write_client(&mut self, slot: usize, done: &mut usize) -> Result<(), DisconnectReason> {
        let Self { clock, clients, ready, catch_up, control, .. } = self;
        let Some(connection) = clients.get_mut(slot) else { return Ok(()) };
        *done += usize::from(connection.flush()? > 0);
        if let OutstandingControl::Queued(query) = connection.control.outstanding
            && connection.output.has_room()
        {
            if query.is_first_page() || connection.limit.bucket.try_take(|| clock.ticks()) {
                connection.send_control(slot, ControlRequest::Query(query), control);
            } else {
                // The wait of the next page for a token is no silence of the client.
                connection.liveness.last_received = clock.ticks();
                ready.mark(slot);
            }
        }
        if matches!(connection.reports.source, ReportSource::History(_)) && connection.output.has_room() {
            catch_up.push(slot);
        }
        Ok(())
    }
}

/// Passes a client's request to the core, or refuses a request of a user that only reads. Drops a duplicate.
#[inline]
fn accept_request(
    connection: &mut ClientConnection,
    message: &LogMessage<'_>,
    requests: &mut RequestNumbers,
    denials: &mut DenialBudget,
    clock: &impl Clock,
    sink: &mut impl InputSink,
) -> Result<(), TurnError> {
    let (session, number) = (connection.session, message.sequence);
    let next = requests.numbers.next_mut(session);
    // Requests that were denied before the journal are numbered by this connection only.
    let expected = *next + connection.denied_before_journal;
    if number < expected {
        return Ok(());
    }
    if number > expected {
        let why = format!("request {number} arrived where {expected} was expected: requests are lost");
        return Err(DisconnectReason::ByServer(why).into());
    }
    let Ok(request) = Request::read(message.kind, message.payload) else {
        let why = format!("request {number} is invalid: a code in it is unknown");
        return Err(DisconnectReason::ByServer(why).into());
    };
    if connection.is_read_only {
        denials.count(session);
        connection.refuse(number, &request, clock.ticks())?;
        return Ok(());
    }
    if let Request::MassCancel(mass_cancel) = &request {
        connection.limit.mass_cancel = mass_cancel.client_order_id;
    }
    *next += 1;
    sink(LaneKind::Requests(session), connection.input.received, InputEvent::Message(message))?;
    Ok(())
}

/// Returns the question or admin command of a frame that is no request; none for a heartbeat.
fn parse_control(frame: &Frame<'_>, role: UserRole) -> Result<Option<ControlRequest>, DisconnectReason> {
    let Frame { kind, sequence, .. } = *frame;
    match FrameKind::from_code(kind) {
        Some(FrameKind::Heartbeat) => Ok(None),
        Some(FrameKind::Logout) => Err(DisconnectReason::ByClient("the client logged out".to_owned())),
        Some(FrameKind::Query) => Ok(Some(ControlRequest::Query(QueryProgress::of(frame.message())))),
        _ if role == UserRole::Admin && is_admin_command(kind) => {
            Ok(Some(ControlRequest::Command { kind, record: frame.payload.to_vec() }))
        }
        _ => {
            let why = format!("a frame of kind {kind} (number {sequence}) is not one that this user may send");
            Err(DisconnectReason::ByServer(why))
        }
    }
}

fn is_admin_command(kind: u8) -> bool {
    use RecordKind::{
        CancelScope, DayEnd, EnterFill, EnterOrder, EnterPosition, Kill, QueryStatus, Reconcile, Resolve,
    };
    let commands = [EnterOrder, EnterFill, EnterPosition, Kill, CancelScope, Resolve, QueryStatus, Reconcile, DayEnd];
    RecordKind::from_code(kind).is_some_and(|kind| commands.contains(&kind))
}
