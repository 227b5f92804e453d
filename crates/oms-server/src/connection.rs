//! A logged-in client: its socket, its sequence numbers, and its position in the reports.

use std::io::{self, Read, Write};
use std::sync::Arc;

use tickpath_market::{
    CancelOrder, ClientOrderId, ConditionalOrder, ExecutionReport, Kind as MessageKind, MassCancel, NewOrder,
    ReplaceConditional, ReplaceOrder, Request, StatusRequest,
};
use tickpath_oms_protocol::{
    Copied, Inbox, Kind, Logon, REFUSAL_VERSION, Refusal, Refused, Role, write_frame, write_with_text,
};
use tickpath_oms_runtime::Bucket;
use tickpath_oms_runtime::history::{Reading, SessionReport};

use zerocopy::IntoBytes;

use super::denials::refusal;
use super::stream::Stream;
use super::window::{Ask, Listing};
use crate::settings::User;

/// Max bytes pending for a client that does not read. A client that lags further catches up from the history.
const MOST_WAITING: usize = 1 << 20;
/// Pending bytes below which a client that catches up is sent more.
const FILL: usize = 64 << 10;

/// Max bytes of a copied report.
const MOST_COPY: usize = size_of::<Copied>() + 128;

/// A logged-in client.
pub(crate) struct Connection {
    pub stream: Stream,
    pub inbox: Inbox,
    pub user: Arc<User>,
    pub session: u16,
    /// Distinguishes this connection from an earlier one at the same index.
    pub serial: u64,
    pub bucket: Bucket,
    /// Id of the client's latest mass cancel, whose reports cost tokens; zero if it has sent none.
    pub mass_cancel: ClientOrderId,
    /// Output that the socket has not taken yet, from `sent` on.
    out: Vec<u8>,
    sent: usize,
    /// Number of the next report to be sent.
    pub next_report: u64,
    pub hears: Hears,
    /// The socket may have more to read.
    pub is_readable: bool,
    /// Time of the last bytes received, in ticks: T1 of the requests in them.
    pub received: u64,
    pub question: Question,
    /// Next question or admin command, pending until the one before it is answered. No frame behind it is read;
    /// requests before it are taken while an answer is outstanding, so a long list holds back no cancel.
    pub next_question: Option<Ask>,
    /// Times of the client's last bytes, and of the last session message to it; reports and refusals do not count.
    pub heard: u64,
    pub said: u64,
    /// Silence after which the client is considered dead, in ticks.
    pub patience: u64,
    /// The client's stamps are of this host's clock.
    pub shares_clock: bool,
    /// Version that both sides use.
    pub version: u16,
    /// The user only reads: its requests are refused before the journal.
    pub only_reads: bool,
    /// Requests refused before the journal on this connection. They are numbered behind the session's requests, and the
    /// next connection begins at these numbers again.
    pub refused: u64,
    /// The logon is in the journal.
    pub is_journaled: bool,
}

/// Source of a client's reports.
pub(crate) enum Hears {
    /// Live reports, as they are written.
    Live,
    /// The history, until the client has caught up.
    Reading(Option<Box<Reading>>),
}

/// Outstanding question or admin command of a client: one at a time.
pub(crate) enum Question {
    None,
    /// A question, pending until there is room for an answer, or for its next page, and a token.
    Waits(Listing),
    /// A question or command that the core has received.
    Asked,
}

/// Reason for the end of a connection.
pub(crate) enum End {
    /// The client has closed the connection, or it broke.
    Closed(String),
    /// The server ends the connection and sends the reason.
    Ended(String),
    /// Another client has taken the session over; a client that reconnected would only take it back.
    Taken,
}

impl Connection {
    /// Creates the connection of a client that was just admitted.
    pub fn new(
        stream: Stream,
        inbox: Inbox,
        user: Arc<User>,
        session: u16,
        serial: u64,
        bucket: Bucket,
        hears: Hears,
    ) -> Self {
        let only_reads = user.role == Role::Read;
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
            hears,
            is_readable: true,
            received: 0,
            question: Question::None,
            next_question: None,
            heard: 0,
            said: 0,
            patience: 0,
            shares_clock: false,
            version: 0,
            only_reads,
            refused: 0,
            is_journaled: true,
        }
    }

    /// Reads from the socket; false if nothing was there.
    pub fn read(&mut self, now: impl FnOnce() -> u64) -> Result<bool, End> {
        let room = self.inbox.room();
        let wanted = room.len();
        match self.stream.read(room) {
            Ok(0) => Err(End::Closed("the client closed the connection".to_owned())),
            Ok(bytes) => {
                self.inbox.filled(bytes);
                self.is_readable = self.stream.may_have_more(bytes, wanted);
                self.received = now();
                self.heard = self.received;
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.is_readable = false;
                Ok(false)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(e) => Err(End::Closed(format!("its connection broke: {e}"))),
        }
    }

    /// Charges the rate limit for a report of the session's latest mass cancel: each costs a token as a request does,
    /// so a mass cancel costs one token, and one more for each order that it reaches and each end that follows.
    #[inline]
    pub fn weigh(&mut self, report: &SessionReport<'_>) {
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
    pub fn copy(&mut self, place: u64, report: &SessionReport<'_>, copied: &Copied, utc_ns: u64) {
        let head = copied.as_bytes();
        let mut payload = [0; MOST_COPY];
        payload[..head.len()].copy_from_slice(head);
        let payload = &mut payload[..head.len() + report.message.len()];
        payload[head.len()..].copy_from_slice(report.message);
        // The time goes into the text, which older clients ignore.
        write_with_text(&mut self.out, Kind::Copy.code(), place, report.stamp, payload, &utc_ns.to_le_bytes());
        self.next_report = place + 1;
    }

    /// Sends a message of the session itself, and notes its time for the next heartbeat.
    pub fn say(&mut self, kind: Kind, sequence: u64, now: u64, message: &[u8], text: &[u8]) {
        write_with_text(&mut self.out, kind.code(), sequence, now, message, text);
        self.said = now;
    }

    /// Refuses a request that the user's role does not allow. It never reaches the core, so neither the request nor the
    /// answer has a number in the journal. A client that is too old for the answer loses its connection instead.
    #[cold]
    pub fn refuse(&mut self, number: u64, request: &Request, now: u64) -> Result<(), End> {
        if self.version < REFUSAL_VERSION {
            let why =
                "this user only reads, and may send no request; give it the role trade, or log in as another user";
            return Err(End::Ended(why.to_owned()));
        }
        if self.lags() {
            return Err(End::Ended("it reads none of the answers to its requests".to_owned()));
        }
        self.refused += 1;
        // The time of the last message stays as it is: a client whose requests are all refused needs heartbeats, too.
        write_frame(&mut self.out, Kind::RequestRefused.code(), number, now, refusal(request).as_bytes());
        Ok(())
    }

    /// Sends complete frames.
    pub fn say_frames(&mut self, frames: &[u8]) {
        self.out.extend_from_slice(frames);
    }

    /// Returns the number of bytes that the socket has not taken yet.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Returns whether so much output is pending that the client must catch up from the history.
    pub fn lags(&self) -> bool {
        self.waiting() > MOST_WAITING
    }

    /// Returns whether there is room for more from the history.
    pub fn has_room(&self) -> bool {
        self.waiting() < FILL
    }

    /// Sends the reason for the end, if the client can still receive it, and returns it as text.
    pub fn part(&mut self, end: End, now: u64) -> String {
        let why = match end {
            End::Closed(why) => return why,
            End::Ended(why) => {
                self.say(Kind::Logout, 0, now, &[], why.as_bytes());
                why
            }
            End::Taken => {
                let why = "another logon has taken the session over".to_owned();
                let refused = Refused { code: Refusal::InUse.code(), reserved: [0; 6] };
                self.say(Kind::Refused, 0, now, refused.as_bytes(), why.as_bytes());
                why
            }
        };
        let _ = self.flush();
        why
    }

    /// Writes pending output to the socket. Returns the number of bytes written.
    #[inline]
    pub fn flush(&mut self) -> Result<usize, End> {
        let before = self.sent;
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(End::Closed("its connection takes nothing more".to_owned())),
                Ok(bytes) => self.sent += bytes,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(End::Closed(format!("its connection broke: {e}"))),
            }
        }
        // The socket may not have taken all that TLS has.
        self.stream.flush().map_err(|e| End::Closed(format!("its connection broke: {e}")))?;
        let took = self.sent - before;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        } else if self.sent > MOST_WAITING {
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
pub(crate) fn fit(kind: u8, payload: &[u8], buffer: &mut [u8; REQUEST_BYTES]) -> Option<usize> {
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
