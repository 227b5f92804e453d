//! A line to Tickpath's own exchange over TCP or a Unix socket: frames of `tickpath-oms-protocol`, numbered both ways,
//! so that a connect states exactly what each side has ([`wire`]). The exchange's end uses [`FrameChannel`], too.
//!
//! Nothing is encrypted: a line is for a host's own loopback, or for a network without other users. An exchange can
//! require a password of its lines ([`LinePassword`]).
//!
//! # Invariants
//!
//! * A line names its OMS, and refuses an exchange that would mix its order ids with those of another OMS.
//! * Both sides prove that they know the password of a line, and neither sends it.

mod address;
mod channel;
mod password;
mod printable;
mod socket;
pub mod wire;

use std::os::fd::{AsFd, BorrowedFd};

use tickpath_clock::{CalibrationError, Clock, HostClock};
use tickpath_market::{ExecutionReport, Kind, Request, VenueId};
use tickpath_oms_protocol::Frame;
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState};
use zerocopy::IntoBytes;

pub use address::{LineAddress, ParseAddressError};
pub use channel::FrameChannel;
pub use password::{LinePassword, LinePasswordError, PasswordCheck};
pub use printable::{Printable, bounded};
pub use socket::LineSocket;
// Result and error of a password check.
pub use tickpath_oms_protocol::{ScramError, ServerLogon};
/// The contract that a [`TcpLine`] keeps.
pub use tickpath_venue;

use password::PasswordProof;
use wire::{
    CHALLENGE, HEARTBEAT, IDENTITY_VERSION, LOGON, LineLogon, LineWelcome, MAGIC, PROOF, PROVE, PROVED, REFUSED,
    VERSION, WELCOME,
};

/// Max time to connect, up to the welcome.
const CONNECT_TIMEOUT_NS: i64 = 5_000_000_000;
/// Max bytes of a refusal that are shown.
const MAX_REFUSAL_BYTES: usize = 512;

/// A line over TCP or a Unix socket.
pub struct TcpLine {
    address: LineAddress,
    name: String,
    /// Password to prove before the logon, if there is one.
    password: Option<LinePassword>,
    /// Venue that must be at the address, if it is known.
    venue: Option<VenueId>,
    clock: HostClock,
    state: TcpLineState,
    connects: usize,
    resume: ResumeState,
    /// Number of the next expected report, and the first that is not journaled.
    next_report: u64,
    journaled: u64,
}

enum TcpLineState {
    Down,
    Failed(String),
    Connecting(LineSocket, u64),
    ProvingPassword(FrameChannel, u64, PasswordProof),
    AwaitingWelcome(FrameChannel, u64),
    Up(FrameChannel),
}

impl TcpLine {
    /// Creates a line that is down; `name` is its name in the exchange's messages.
    pub fn new(address: LineAddress, name: &str) -> Result<Self, CalibrationError> {
        Ok(Self {
            address,
            name: name.to_owned(),
            password: None,
            venue: None,
            clock: HostClock::get()?,
            state: TcpLineState::Down,
            connects: 0,
            resume: ResumeState::default(),
            next_report: 0,
            journaled: 0,
        })
    }

    /// Sets a password to prove at each connect; the line then trusts only an exchange that also knows the password.
    #[must_use]
    pub fn with_password(self, password: LinePassword) -> Self {
        Self { password: Some(password), ..self }
    }

    /// Sets the only venue that the line accepts at the address.
    #[must_use]
    pub fn with_venue(self, venue: VenueId) -> Self {
        Self { venue: Some(venue), ..self }
    }

    fn lost(&mut self, why: &str) -> ConnectionLost {
        self.state = TcpLineState::Down;
        ConnectionLost(format!("{}: {why}", self.address))
    }

    fn advance(&mut self) -> Result<usize, String> {
        let since = match &self.state {
            TcpLineState::Connecting(_, since)
            | TcpLineState::ProvingPassword(_, since, _)
            | TcpLineState::AwaitingWelcome(_, since) => *since,
            TcpLineState::Failed(why) => return Err(why.clone()),
            TcpLineState::Down | TcpLineState::Up(_) => return Ok(0),
        };
        match std::mem::replace(&mut self.state, TcpLineState::Down) {
            TcpLineState::Connecting(socket, _) if socket.is_connected().map_err(|e| e.to_string())? => {
                self.start_logon(FrameChannel::new(self.clock, socket), since)?;
                return Ok(1);
            }
            TcpLineState::ProvingPassword(mut channel, _, PasswordProof::Hashing(thread)) if thread.is_finished() => {
                let hashed = thread.join().map_err(|_| "the proof of the password could not be made".to_owned())?;
                let (logon, proof) = hashed.map_err(|e| e.to_string())?;
                channel.queue(PROOF, 0, self.clock.ticks(), &[], &proof);
                channel.flush();
                self.state = TcpLineState::ProvingPassword(channel, since, PasswordProof::Sent(logon));
                return Ok(1);
            }
            state => self.state = state,
        }
        match self.clock.ns_between(since, self.clock.ticks()) > CONNECT_TIMEOUT_NS {
            true => Err("no answer in time; does the exchange listen there?".to_owned()),
            false => Ok(0),
        }
    }

    /// Sends the first message on a new connection.
    fn start_logon(&mut self, mut channel: FrameChannel, since: u64) -> Result<(), String> {
        let Some(password) = &self.password else {
            self.log_on(channel, since);
            return Ok(());
        };
        let (logon, client_first) = password.begin_proof().map_err(|e| e.to_string())?;
        channel.queue(PROVE, 0, self.clock.ticks(), &[], &client_first);
        channel.flush();
        self.state = TcpLineState::ProvingPassword(channel, since, PasswordProof::AwaitingChallenge(logon));
        Ok(())
    }

    fn log_on(&mut self, mut channel: FrameChannel, since: u64) {
        let ResumeState { journal, oms, incarnation, next_request, next_report } = self.resume;
        let (magic, version, reserved) = (MAGIC, VERSION, [0; 6]);
        let logon = LineLogon { magic, version, reserved, journal, incarnation, next_request, next_report, oms };
        channel.queue(LOGON, 0, self.clock.ticks(), logon.as_bytes(), self.name.as_bytes());
        channel.flush();
        self.state = TcpLineState::AwaitingWelcome(channel, since);
    }

    /// Reads the exchange's answers to the proof of the password.
    fn read_proof(&mut self) -> Result<usize, String> {
        let TcpLineState::ProvingPassword(channel, ..) = &mut self.state else { return Ok(0) };
        let flushed = usize::from(channel.flush());
        if !channel.read()? {
            return Ok(flushed);
        }
        let mut done = flushed + 1;
        while let TcpLineState::ProvingPassword(channel, ..) = &mut self.state
            && let Some((kind, text)) = channel.next()?.map(|frame| (frame.kind, frame.text.to_vec()))
        {
            self.handle_proof_frame(kind, text)?;
            done += 1;
        }
        Ok(done)
    }

    fn handle_proof_frame(&mut self, kind: u8, text: Vec<u8>) -> Result<(), String> {
        match (kind, std::mem::replace(&mut self.state, TcpLineState::Down)) {
            (CHALLENGE, TcpLineState::ProvingPassword(channel, since, PasswordProof::AwaitingChallenge(logon))) => {
                let hashing =
                    PasswordProof::answer(logon, text).map_err(|e| format!("no thread for the proof: {e}"))?;
                self.state = TcpLineState::ProvingPassword(channel, since, hashing);
            }
            (PROVED, TcpLineState::ProvingPassword(channel, since, PasswordProof::Sent(logon))) => {
                logon.check(&text).map_err(|_| {
                    "it does not know the password of the lines: it is not the exchange that it claims to be; check \
                     the address and the password file"
                        .to_owned()
                })?;
                self.log_on(channel, since);
            }
            (HEARTBEAT, state) => self.state = state,
            (REFUSED, _) => return Err(refusal_text(&text)),
            _ => return Err("it sends a frame before the password is proved".to_owned()),
        }
        Ok(())
    }

    fn read(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, String> {
        if matches!(self.state, TcpLineState::ProvingPassword(..)) {
            return self.read_proof();
        }
        let mut is_up = matches!(self.state, TcpLineState::Up(_));
        let (TcpLineState::AwaitingWelcome(channel, _) | TcpLineState::Up(channel)) = &mut self.state else {
            return Ok(0);
        };
        let mut done = usize::from(channel.flush());
        if !channel.read()? {
            channel.idle(self.journaled)?;
            return Ok(done);
        }
        while let Some(frame) = channel.next()? {
            match (frame.kind, is_up) {
                (WELCOME, true) => return Err("it sends two welcomes".to_owned()),
                (WELCOME | REFUSED, _) | (_, true) => {}
                // A heartbeat of an exchange that has nothing yet.
                (HEARTBEAT, false) => continue,
                (_, false) => return Err("it sends a frame before its welcome".to_owned()),
            }
            is_up |= handle_frame(&frame, self.venue, &self.resume, &mut self.next_report, take)?;
            done += 1;
        }
        if is_up
            && matches!(self.state, TcpLineState::AwaitingWelcome(..))
            && let TcpLineState::AwaitingWelcome(channel, _) = std::mem::replace(&mut self.state, TcpLineState::Down)
        {
            self.state = TcpLineState::Up(channel);
        }
        Ok(done + 1)
    }
}

/// Takes a frame; returns true for the welcome.
fn handle_frame(
    frame: &Frame<'_>,
    expected: Option<VenueId>,
    resume: &ResumeState,
    next_report: &mut u64,
    take: &mut dyn FnMut(LineEvent<'_>),
) -> Result<bool, String> {
    match frame.kind {
        HEARTBEAT => take(LineEvent::Acknowledged(frame.sequence)),
        WELCOME => {
            let welcome: LineWelcome = frame.message();
            if welcome.version < IDENTITY_VERSION && resume.oms != 0 {
                return Err(format!(
                    "the exchange uses version {} of a line's messages, which mixes the order ids of all OMSes; update \
                     the exchange",
                    welcome.version
                ));
            }
            if let (Some(venue), Some(found)) = (expected, welcome.venue.checked_sub(1))
                && found != u32::from(venue.0)
            {
                return Err(format!(
                    "venue {found} is at this address, and venue {venue} should be: correct the venue's number or the \
                     line's url"
                ));
            }
            let if_known = |is_known: u8, number| (is_known != 0).then_some(number);
            *next_report = resume.next_report;
            if welcome.knows_reports != 0 {
                *next_report = welcome.next_report;
            }
            take(LineEvent::Up {
                next_request: if_known(welcome.knows_requests, welcome.next_request),
                next_report: if_known(welcome.knows_reports, welcome.next_report),
            });
            return Ok(true);
        }
        REFUSED => return Err(refusal_text(frame.text)),
        kind if kind == Kind::ExecutionReport.code() => {
            let report = ExecutionReport::read(kind, frame.payload).map_err(|e| e.to_string())?;
            if frame.sequence > *next_report {
                return Err(format!("report {} arrived instead of report {next_report}", frame.sequence));
            }
            // A lower number was passed on before the connection was lost, and is dropped.
            if frame.sequence == *next_report {
                *next_report += 1;
                take(LineEvent::Report { number: frame.sequence, stamp: frame.stamp, report: &report });
            }
        }
        // Kinds of frame that a later version adds.
        _ => {}
    }
    Ok(false)
}

/// Returns a refusal as a log can show it, because its text is the peer's.
fn refusal_text(text: &[u8]) -> String {
    format!("the exchange refuses: {}", Printable(&bounded(text, MAX_REFUSAL_BYTES)))
}

impl Line for TcpLine {
    fn address(&self) -> String {
        self.address.to_string()
    }

    fn connect(&mut self, resume: &ResumeState) {
        (self.resume, self.journaled) = (*resume, resume.next_report);
        let socket = LineSocket::start_connect(&self.address, self.connects);
        self.connects += 1;
        self.state = match socket {
            Ok(socket) => TcpLineState::Connecting(socket, self.clock.ticks()),
            Err(e) => TcpLineState::Failed(e.to_string()),
        };
    }

    #[inline]
    fn send(&mut self, number: u64, stamp: u64, request: &Request) -> Result<(), LineSendError> {
        let TcpLineState::Up(channel) = &mut self.state else { return Err(LineSendError::Down) };
        if channel.is_broken() {
            return Err(LineSendError::Down);
        }
        if channel.is_full() {
            return Err(LineSendError::Full);
        }
        let sent = channel.send(request.kind().code(), number, stamp, request.as_bytes());
        if sent { Ok(()) } else { Err(LineSendError::Down) }
    }

    fn confirm(&mut self, next_report: u64) {
        self.journaled = self.journaled.max(next_report);
    }

    #[inline]
    fn poll(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost> {
        if matches!(self.state, TcpLineState::Down) {
            return Ok(0);
        }
        let advanced = if matches!(self.state, TcpLineState::Up(_)) { Ok(0) } else { self.advance() };
        advanced.and_then(|done| Ok(done + self.read(take)?)).map_err(|why| self.lost(&why))
    }

    fn warm_up(&mut self) {}

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            TcpLineState::ProvingPassword(channel, ..)
            | TcpLineState::AwaitingWelcome(channel, _)
            | TcpLineState::Up(channel) => Some(channel.as_fd()),
            TcpLineState::Connecting(socket, _) => Some(socket.as_fd()),
            TcpLineState::Down | TcpLineState::Failed(_) => None,
        }
    }
}
