//! A logged-in client: its socket, its sequence numbers, and its position in the reports.

use std::io::{self, Read, Write};
use std::sync::Arc;

use tickpath_market::{
    CancelOrder, ClientOrderId, ConditionalOrder, ExecutionReport, Kind as MessageKind, MassCancel, NewOrder,
    ReplaceConditional, ReplaceOrder, Request, StatusRequest,
};
use tickpath_oms_protocol::{
    CopyHeader, FrameBuffer, FrameKind, Logon, LogonReject, LogonRejectReason, REFUSAL_VERSION, UserRole, write_frame,
    write_frame_with_text,
};
use tickpath_oms_runtime::TokenBucket;
use tickpath_oms_runtime::history::{SessionReader, SessionReport};

use zerocopy::IntoBytes;

use super::control::{ControlRequest, QueryProgress};
use super::denials::role_denial;
use super::stream::ClientStream;
use crate::settings::OmsUser;

/// Max bytes pending for a client that does not read. A client that lags further catches up from the history.
const MAX_PENDING_BYTES: usize = 1 << 20;
/// Pending bytes below which a client that catches up is sent more.
const REFILL_BELOW: usize = 64 << 10;

/// Max bytes of a copied report.
const MAX_COPY_BYTES: usize = size_of::<CopyHeader>() + 128;

/// A logged-in client.
pub(crate) struct ClientConnection {
    pub stream: ClientStream,
    pub inbox: FrameBuffer,
    pub user: Arc<OmsUser>,
    pub session: u16,
    /// Distinguishes this connection from an earlier one at the same index.
    pub serial: u64,
    pub bucket: TokenBucket,
    /// Id of the client's latest mass cancel, whose reports cost tokens; zero if it has sent none.
    pub mass_cancel: ClientOrderId,
    /// Output that the socket has not taken yet, from `sent` on.
    out: Vec<u8>,
    sent: usize,
    /// Number of the next report to be sent.
    pub next_report: u64,
    pub source: ReportSource,
    /// The socket may have more to read.
    pub is_readable: bool,
    /// Time of the last bytes received, in ticks: T1 of the requests in them.
    pub received: u64,
    pub outstanding: OutstandingControl,
    /// Next question or admin command, pending until the one before it is answered. No frame behind it is read;
    /// requests before it are taken while an answer is outstanding, so a long list holds back no cancel.
    pub next_control: Option<ControlRequest>,
    /// Times of the client's last bytes, and of the last session message to it; reports and refusals do not count.
    pub last_received: u64,
    pub last_sent: u64,
    /// Silence after which the client is considered dead, in ticks.
    pub timeout: u64,
    /// The client's stamps are of this host's clock.
    pub shares_clock: bool,
    /// Version that both sides use.
    pub version: u16,
    /// The user only reads: its requests are refused before the journal.
    pub is_read_only: bool,
    /// Requests refused before the journal on this connection. They are numbered behind the session's requests, and the
    /// next connection begins at these numbers again.
    pub refused: u64,
    /// The logon is in the journal.
    pub is_journaled: bool,
}

/// Source of a client's reports.
pub(crate) enum ReportSource {
    /// Live reports, as they are written.
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

/// Reason for the end of a connection.
pub(crate) enum DisconnectReason {
    /// The client has closed the connection, or it broke.
    ByClient(String),
    /// The server ends the connection and sends the reason.
    ByServer(String),
    /// Another client has taken the session over; a client that reconnected would only take it back.
    TakenOver,
}

impl ClientConnection {
    /// Creates the connection of a client that was just admitted.
    pub fn new(
        stream: ClientStream,
        inbox: FrameBuffer,
        user: Arc<OmsUser>,
        session: u16,
        serial: u64,
        bucket: TokenBucket,
        hears: ReportSource,
    ) -> Self {
        let only_reads = user.role == UserRole::Read;
        Self {
            stream,
            inbox,
            user,
            session,
            serial,
            bucket,
            mass_cancel: ClientOrderId(0),
            out: Vec::new(),
            sent: 0,
            next_report: 0,
            source: hears,
            is_readable: true,
            received: 0,
            outstanding: OutstandingControl::None,
            next_control: None,
            last_received: 0,
            last_sent: 0,
            timeout: 0,
            shares_clock: false,
            version: 0,
            is_read_only: only_reads,
            refused: 0,
            is_journaled: true,
        }
    }

    /// Reads from the socket; false if nothing was there.
    pub fn read(&mut self, now: impl FnOnce() -> u64) -> Result<bool, DisconnectReason> {
        let room = self.inbox.free_space();
        let wanted = room.len();
        match self.stream.read(room) {
            Ok(0) => Err(DisconnectReason::ByClient("the client closed the connection".to_owned())),
            Ok(bytes) => {
                self.inbox.advance(bytes);
                self.is_readable = self.stream.may_have_more(bytes, wanted);
                self.received = now();
                self.last_received = self.received;
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.is_readable = false;
                Ok(false)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(e) => Err(DisconnectReason::ByClient(format!("its connection broke: {e}"))),
        }
    }

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

    /// Sends a report, which must be the next one.
    #[inline]
    pub fn report(&mut self, report: &SessionReport<'_>) {
        write_frame(&mut self.out, report.kind, report.number, report.stamp, report.message);
        self.next_report = report.number + 1;
    }

    /// Sends a report of another session, with its time in nanoseconds since the Unix epoch.
    pub fn copy(&mut self, place: u64, report: &SessionReport<'_>, copied: &CopyHeader, utc_ns: u64) {
        let head = copied.as_bytes();
        let mut payload = [0; MAX_COPY_BYTES];
        payload[..head.len()].copy_from_slice(head);
        let payload = &mut payload[..head.len() + report.message.len()];
        payload[head.len()..].copy_from_slice(report.message);
        // The time goes into the text, which older clients ignore.
        write_frame_with_text(
            &mut self.out,
            FrameKind::Copy.code(),
            place,
            report.stamp,
            payload,
            &utc_ns.to_le_bytes(),
        );
        self.next_report = place + 1;
    }

    /// Sends a message of the session itself, and notes its time for the next heartbeat.
    pub fn send_message(&mut self, kind: FrameKind, sequence: u64, now: u64, message: &[u8], text: &[u8]) {
        write_frame_with_text(&mut self.out, kind.code(), sequence, now, message, text);
        self.last_sent = now;
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
        if self.is_lagging() {
            return Err(DisconnectReason::ByServer("it reads none of the answers to its requests".to_owned()));
        }
        self.refused += 1;
        // The time of the last message stays as it is: a client whose requests are all refused needs heartbeats, too.
        write_frame(&mut self.out, FrameKind::RequestRefused.code(), number, now, role_denial(request).as_bytes());
        Ok(())
    }

    /// Sends complete frames.
    pub fn send_frames(&mut self, frames: &[u8]) {
        self.out.extend_from_slice(frames);
    }

    /// Returns the number of bytes that the socket has not taken yet.
    #[inline]
    pub fn pending_bytes(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Returns whether so much output is pending that the client must catch up from the history.
    pub fn is_lagging(&self) -> bool {
        self.pending_bytes() > MAX_PENDING_BYTES
    }

    /// Returns whether there is room for more from the history.
    pub fn has_room(&self) -> bool {
        self.pending_bytes() < REFILL_BELOW
    }

    /// Sends the reason for the end, if the client can still receive it, and returns it as text.
    pub fn close(&mut self, end: DisconnectReason, now: u64) -> String {
        let why = match end {
            DisconnectReason::ByClient(why) => return why,
            DisconnectReason::ByServer(why) => {
                self.send_message(FrameKind::Logout, 0, now, &[], why.as_bytes());
                why
            }
            DisconnectReason::TakenOver => {
                let why = "another logon has taken the session over".to_owned();
                let refused = LogonReject { code: LogonRejectReason::InUse.code(), reserved: [0; 6] };
                self.send_message(FrameKind::Refused, 0, now, refused.as_bytes(), why.as_bytes());
                why
            }
        };
        let _ = self.flush();
        why
    }

    /// Writes pending output to the socket. Returns the number of bytes written.
    #[inline]
    pub fn flush(&mut self) -> Result<usize, DisconnectReason> {
        let before = self.sent;
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(DisconnectReason::ByClient("its connection takes nothing more".to_owned())),
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(DisconnectReason::ByClient(format!("its connection broke: {e}"))),
            }
        }
        // The socket may not have taken all that TLS has.
        self.stream.flush().map_err(|e| DisconnectReason::ByClient(format!("its connection broke: {e}")))?;
        let took = self.sent - before;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        } else if self.sent > MAX_PENDING_BYTES {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(took)
    }
}

/// Bytes of the longest request.
pub(crate) const REQUEST_BYTES: usize = size_of::<ConditionalOrder>();

/// Fits the payload of a request to this version: cuts it, or fills it with zeros. Returns its length; none if the kind
/// is no request's.
pub(crate) fn fit_request(kind: u8, payload: &[u8], buffer: &mut [u8; REQUEST_BYTES]) -> Option<usize> {
    let length = match MessageKind::from_code(kind)? {
        MessageKind::NewOrder => size_of::<NewOrder>(),
        MessageKind::CancelOrder => size_of::<CancelOrder>(),
        MessageKind::ReplaceOrder => size_of::<ReplaceOrder>(),
        MessageKind::StatusRequest => size_of::<StatusRequest>(),
        MessageKind::MassCancel => size_of::<MassCancel>(),
        MessageKind::ConditionalOrder => size_of::<ConditionalOrder>(),
        MessageKind::ReplaceConditional => size_of::<ReplaceConditional>(),
        _ => return None,
    };
    let known = length.min(payload.len());
    buffer[..known].copy_from_slice(&payload[..known]);
    buffer[known..length].fill(0);
    Some(length)
}

/// Returns a client's heartbeat time in milliseconds: its own choice within 100 to 600,000, or `ours` if it has none.
pub(crate) fn heartbeat_ms(logon: &Logon, ours: u32) -> u32 {
    match logon.heartbeat_ms {
        0 => ours,
        theirs => theirs.clamp(100, 600_000),
    }
}
