//! A logged-in client: its socket, its sequence numbers, and its position in the reports.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use tickpath_market::{
    CancelOrder, ClientOrderId, ConditionalOrder, ExecutionReport, ExtendedOrder, Kind as MessageKind, MassCancel,
    NewOrder, ReplaceConditional, ReplaceOrder, Request, StatusRequest, TextIdRequest,
};
use tickpath_oms_protocol::{
    CopyHeader, FrameBuffer, FrameKind, Logon, LogonReject, LogonRejectReason, REFUSAL_VERSION, UserRole,
};
use tickpath_oms_runtime::TokenBucket;
use tickpath_oms_runtime::history::{SessionReader, SessionReport};
use zerocopy::IntoBytes;

use super::control::{ClientControlRequest, ControlClient, ControlRequest, QueryProgress};
use super::denials::role_denial;
use super::event::ServerEvent;
use super::output_buffer::OutputBuffer;
use super::stream::ClientStream;
use crate::settings::OmsUser;

const MAX_COPY_BYTES: usize = size_of::<CopyHeader>() + 128;
/// Reason for the end of a user's connections, and for the refusal of a logon in progress, after an admin's change.
pub(crate) const RIGHTS_CHANGED: &str = "the user's rights have changed; log in again";

pub(crate) struct ClientConnection {
    pub stream: ClientStream,
    pub input: ClientInput,
    pub output: OutputBuffer,
    pub user: Arc<OmsUser>,
    pub session: u16,
    /// Distinguishes this connection from an earlier one in the same slot.
    pub serial: u64,
    pub limit: RequestLimit,
    pub reports: ReportPosition,
    pub control: PendingControl,
    pub liveness: Liveness,
    /// The client's stamps are of this host's clock.
    pub shares_clock: bool,
    /// Version that both sides use.
    pub version: u16,
    /// The user only reads: its requests are refused before the journal.
    pub is_read_only: bool,
    /// Requests denied before the journal, numbered behind the session's; the next connection reuses these numbers.
    pub denied_before_journal: u64,
    /// The logon is in the journal.
    pub is_journaled: bool,
}

pub(crate) struct ClientInput {
    pub inbox: FrameBuffer,
    /// The socket may have more to read.
    pub is_readable: bool,
    /// Time of the last bytes received, in ticks: T1 of the requests in them.
    pub received: u64,
}

pub(crate) struct RequestLimit {
    pub bucket: TokenBucket,
    /// Id of the client's latest mass cancel, whose reports cost tokens; zero if it has sent none.
    pub mass_cancel: ClientOrderId,
}

pub(crate) struct ReportPosition {
    pub next: u64,
    pub details: DetailPosition,
    pub source: ReportSource,
}

pub(crate) struct PendingControl {
    pub outstanding: OutstandingControl,
    /// Next client query or admin command; reading stops here until the outstanding answer is complete. Requests before
    /// this frame are taken meanwhile, so a long list holds back no cancel.
    pub next: Option<ControlRequest>,
}

/// Times that decide on heartbeats, and on the end of a silent client, in ticks.
pub(crate) struct Liveness {
    /// Times of the client's last bytes, and of the last session message to it; reports and refusals do not count.
    pub last_received: u64,
    pub last_sent: u64,
    /// Silence after which the client is considered dead.
    pub timeout: u64,
}

/// Position of a client among the details of its session's reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailPosition {
    /// The client is sent no details.
    Off,
    /// Behind the report before the next one: the client knows no number.
    Behind,
    /// The next detail's number.
    Next(u64),
}

pub(crate) enum ReportSource {
    Live,
    /// The history, until the client has caught up.
    History(Option<Box<SessionReader>>),
}

/// Outstanding question or admin command of a client: one at a time.
pub(crate) enum OutstandingControl {
    None,
    /// A question, pending until there is room for an answer, or for its next page, and a token.
    Queued(QueryProgress),
    /// A question or command that the core has received.
    Sent,
}

pub(crate) enum DisconnectReason {
    /// The client has closed the connection, or it broke.
    ByClient(String),
    /// The server ends the connection and sends the reason.
    ByServer(String),
    /// Another client has taken the session over; a client that reconnected would only take it back.
    TakenOver,
}

impl RequestLimit {
    /// Charges the rate limit for a report of the session's latest mass cancel: each costs a token as a request does,
    /// so a mass cancel costs one token, and one more for each order that it reaches and each end that follows.
    #[inline]
    pub fn charge_mass_cancel(&mut self, report: &SessionReport<'_>) {
        let id = self.mass_cancel;
        if id.0 != 0
            && ExecutionReport::read(report.kind, report.message).is_ok_and(|report| report.client_order_id == id)
        {
            self.bucket.charge(1);
        }
    }
}

impl ReportPosition {
    /// Returns the number of the next message of a kind; none if the client is not sent the kind, or if the history has
    /// to show where the details begin.
    #[inline]
    pub fn next_of(&self, report: &SessionReport<'_>) -> Option<u64> {
        match self.details {
            _ if !report.is_detail() => Some(self.next),
            DetailPosition::Next(next) => Some(next),
            DetailPosition::Off | DetailPosition::Behind => None,
        }
    }

    /// Notes that a message was sent.
    #[inline]
    pub fn note_sent(&mut self, report: &SessionReport<'_>) {
        if report.is_detail() {
            self.details = DetailPosition::Next(report.number + 1);
        } else {
            self.next = report.number + 1;
        }
    }
}

impl Liveness {
    pub fn new(now: u64, timeout: u64) -> Self {
        Self { last_received: now, last_sent: now, timeout }
    }

    pub fn is_silent(&self, now: u64) -> bool {
        now.saturating_sub(self.last_received) > self.timeout
    }

    pub fn is_heartbeat_due(&self, now: u64) -> bool {
        now.saturating_sub(self.last_sent) > self.timeout / 2
    }
}

impl ClientConnection {
    pub fn new(
        stream: ClientStream,
        inbox: FrameBuffer,
        user: Arc<OmsUser>,
        session: u16,
        bucket: TokenBucket,
        reports: ReportPosition,
        liveness: Liveness,
    ) -> Self {
        let is_read_only = user.role == UserRole::Read;
        Self {
            stream,
            input: ClientInput { inbox, is_readable: true, received: liveness.last_received },
            output: OutputBuffer::default(),
            user,
            session,
            serial: 0,
            limit: RequestLimit { bucket, mass_cancel: ClientOrderId(0) },
            reports,
            control: PendingControl { outstanding: OutstandingControl::None, next: None },
            liveness,
            shares_clock: false,
            version: 0,
            is_read_only,
            denied_before_journal: 0,
            is_journaled: true,
        }
    }

    /// Reads from the socket; false if nothing was there.
    pub fn read(&mut self, now: impl FnOnce() -> u64) -> Result<bool, DisconnectReason> {
        let room = self.input.inbox.free_space();
        let wanted = room.len();
        match self.stream.read(room) {
            Ok(0) => Err(DisconnectReason::ByClient("the client closed the connection".to_owned())),
            Ok(bytes) => {
                self.input.inbox.advance(bytes);
                self.input.is_readable = self.stream.may_have_more(bytes, wanted);
                self.input.received = now();
                self.liveness.last_received = self.input.received;
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.input.is_readable = false;
                Ok(false)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(e) => Err(DisconnectReason::ByClient(format!("the client's connection broke: {e}"))),
        }
    }

    /// Sends a report or a detail, which must be the next one.
    #[inline]
    pub fn report(&mut self, report: &SessionReport<'_>) {
        self.output.write_report(report);
        self.reports.note_sent(report);
    }

    /// Sends a report of another session, with its time in nanoseconds since the Unix epoch.
    pub fn copy(&mut self, position: u64, report: &SessionReport<'_>, header: &CopyHeader, utc_ns: u64) {
        let header = header.as_bytes();
        let mut payload = [0; MAX_COPY_BYTES];
        payload[..header.len()].copy_from_slice(header);
        let payload = &mut payload[..header.len() + report.message.len()];
        payload[header.len()..].copy_from_slice(report.message);
        // The time is in the text, which older clients ignore.
        let text = utc_ns.to_le_bytes();
        self.output.write_frame_with_text(FrameKind::Copy.code(), position, report.stamp, payload, &text);
        self.reports.next = position + 1;
    }

    /// Sends a message of the session itself, and notes its time for the next heartbeat.
    pub fn send_message(&mut self, kind: FrameKind, sequence: u64, now: u64, message: &[u8], text: &[u8]) {
        self.output.write_frame_with_text(kind.code(), sequence, now, message, text);
        self.liveness.last_sent = now;
    }

    /// Refuses a request that the user's role does not allow. It never reaches the core, so neither the request nor the
    /// answer has a number in the journal. A client that is too old for the answer loses its connection instead.
    #[cold]
    pub fn refuse(&mut self, number: u64, request: &Request, now: u64) -> Result<(), DisconnectReason> {
        if self.version < REFUSAL_VERSION {
            let why =
                "this user only reads, and may send no request; give it the role trade, or log in as another user";
            return Err(DisconnectReason::ByServer(why.to_owned()));
        }
        if self.output.is_lagging() {
            return Err(DisconnectReason::ByServer("the client does not read the answers to its requests".to_owned()));
        }
        self.denied_before_journal += 1;
        // The time of the last message stays as it is: a client whose requests are all refused needs heartbeats, too.
        let denial = role_denial(request);
        self.output.write_frame(FrameKind::RequestRefused.code(), number, now, denial.as_bytes());
        Ok(())
    }

    /// Sends a question or an admin command to the core. `slot` is the connection's in the table of clients.
    pub fn send_control(&mut self, slot: usize, request: ControlRequest, control: &ControlClient) {
        let (serial, user) = (self.serial, self.user.clone());
        // The receiver is gone only while the OMS ends.
        let _ = control.requests.send(ClientControlRequest { slot, serial, request, user });
        self.control.outstanding = OutstandingControl::Sent;
    }

    /// Takes up the client's next question or admin command, once the answer before it is complete.
    pub fn send_next_control(&mut self, slot: usize, control: &ControlClient) {
        if !matches!(self.control.outstanding, OutstandingControl::None) {
            return;
        }
        match self.control.next.take() {
            Some(ControlRequest::Query(query)) => self.control.outstanding = OutstandingControl::Queued(query),
            Some(request) => self.send_control(slot, request, control),
            None => {}
        }
    }

    /// Ends the connection, and reports that to the operator.
    pub fn disconnect(&mut self, reason: DisconnectReason, now: u64, events: &SyncSender<ServerEvent>) {
        let why = self.close(reason, now);
        let (user, session) = (self.user.name.clone(), self.session);
        let _ = events.try_send(ServerEvent::Disconnected { user, session, why });
    }

    /// Sends the reason for the end, if the client can still receive it, and returns it as text.
    pub fn close(&mut self, reason: DisconnectReason, now: u64) -> String {
        let why = match reason {
            DisconnectReason::ByClient(why) => return why,
            DisconnectReason::ByServer(why) => {
                self.send_message(FrameKind::Logout, 0, now, &[], why.as_bytes());
                why
            }
            DisconnectReason::TakenOver => {
                let why = "another logon has taken the session over".to_owned();
                let reject = LogonReject { code: LogonRejectReason::InUse.code(), reserved: [0; 6] };
                self.send_message(FrameKind::Refused, 0, now, reject.as_bytes(), why.as_bytes());
                why
            }
        };
        let _ = self.flush();
        why
    }

    #[inline]
    pub fn flush(&mut self) -> Result<usize, DisconnectReason> {
        self.output.flush(&mut self.stream).map_err(|e| match e.kind() {
            io::ErrorKind::WriteZero => {
                DisconnectReason::ByClient("the client's connection accepts no more bytes".to_owned())
            }
            _ => DisconnectReason::ByClient(format!("the client's connection broke: {e}")),
        })
    }
}

/// Length of the longest request.
pub(crate) const REQUEST_BYTES: usize = size_of::<ExtendedOrder>();

/// Copies a request, truncated or zero-padded to this version's size. Returns its length; `None` for another kind.
pub(crate) fn fit_request(kind: u8, payload: &[u8], buffer: &mut [u8; REQUEST_BYTES]) -> Option<usize> {
    let length = match MessageKind::from_code(kind)? {
        MessageKind::NewOrder => size_of::<NewOrder>(),
        MessageKind::CancelOrder => size_of::<CancelOrder>(),
        MessageKind::ReplaceOrder => size_of::<ReplaceOrder>(),
        MessageKind::StatusRequest => size_of::<StatusRequest>(),
        MessageKind::MassCancel => size_of::<MassCancel>(),
        MessageKind::ConditionalOrder => size_of::<ConditionalOrder>(),
        MessageKind::ReplaceConditional => size_of::<ReplaceConditional>(),
        MessageKind::ExtendedOrder => size_of::<ExtendedOrder>(),
        MessageKind::TextIdRequest => size_of::<TextIdRequest>(),
        _ => return None,
    };
    let known = length.min(payload.len());
    buffer[..known].copy_from_slice(&payload[..known]);
    buffer[known..length].fill(0);
    Some(length)
}

/// Returns a client's heartbeat time in milliseconds: its choice within 100 to 600,000, or `default` if it has none.
pub(crate) fn heartbeat_ms(logon: &Logon, default: u32) -> u32 {
    match logon.heartbeat_ms {
        0 => default,
        chosen => chosen.clamp(100, 600_000),
    }
}
