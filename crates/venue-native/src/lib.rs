//! A line to Tickpath's own exchange over TCP or a Unix socket: frames of `tickpath-oms-protocol`, numbered both ways, so
//! that a connect states exactly what each side has ([`wire`]). The exchange's end uses [`Channel`], too.
//!
//! Nothing is encrypted: a line is for a host's own loopback, or for a network without other users. An exchange can
//! require a password of its lines ([`Password`]), which is proved and never sent.

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
use tickpath_venue::{Event, Line, Lost, Resume, SendError};
use zerocopy::IntoBytes;

pub use address::{Address, ParseAddressError};
pub use channel::Channel;
pub use password::{Password, PasswordCheck, PasswordError};
pub use printable::{Printable, bounded};
pub use socket::Socket;
// Result and error of a password check.
pub use tickpath_oms_protocol::{ScramError, ServerLogon};
/// The contract that a [`TcpLine`] keeps.
pub use tickpath_venue;

use password::Proving;
use wire::{
    CHALLENGE, HEARTBEAT, IDENTITY_VERSION, LOGON, Logon, MAGIC, PROOF, PROVE, PROVED, REFUSED, VERSION, WELCOME,
    Welcome,
};

/// Max time to connect, up to the welcome.
const CONNECT_NS: i64 = 5_000_000_000;
/// Max bytes of a refusal that are shown.
const MOST_REFUSAL: usize = 512;

/// A line over TCP or a Unix socket.
pub struct TcpLine {
    address: Address,
    name: String,
    /// Password to prove before the logon, if there is one.
    password: Option<Password>,
    /// Venue that must be at the address, if it is known.
    venue: Option<VenueId>,
    clock: HostClock,
    state: State,
    /// Number of connects so far.
    connects: usize,
    resume: Resume,
    /// Number of the next expected report, and the first that is not journaled.
    next_report: u64,
    journaled: u64,
}

enum State {
    Down,
    /// The connect failed at its start.
    Failed(String),
    Connecting(Socket, u64),
    /// The proof of the password is in progress.
    Proving(Channel, u64, Proving),
    Asking(Channel, u64),
    Up(Channel),
}

impl TcpLine {
    /// Creates a line that is down; `name` is its name in the exchange's messages.
    pub fn new(address: Address, name: &str) -> Result<Self, CalibrationError> {
        Ok(Self {
            address,
            name: name.to_owned(),
            password: None,
            venue: None,
            clock: HostClock::get()?,
            state: State::Down,
            connects: 0,
            resume: Resume::default(),
            next_report: 0,
            journaled: 0,
        })
    }

    /// Sets a password to prove at each connect; the line then trusts only an exchange that also knows the password.
    #[must_use]
    pub fn with_password(self, password: Password) -> Self {
        Self { password: Some(password), ..self }
    }

    /// Sets the only venue that the line accepts at the address.
    #[must_use]
    pub fn with_venue(self, venue: VenueId) -> Self {
        Self { venue: Some(venue), ..self }
    }

    fn lost(&mut self, why: &str) -> Lost {
        self.state = State::Down;
        Lost(format!("{}: {why}", self.address))
    }

    /// Advances a connect by one step.
    fn advance(&mut self) -> Result<usize, String> {
        let since = match std::mem::replace(&mut self.state, State::Down) {
            State::Failed(why) => return Err(why),
            State::Connecting(socket, since) => {
                if socket.is_connected().map_err(|e| e.to_string())? {
                    self.begin(Channel::new(self.clock, socket), since)?;
                    return Ok(1);
                }
                self.state = State::Connecting(socket, since);
                since
            }
            State::Proving(mut channel, since, Proving::Hashing(thread)) if thread.is_finished() => {
                let hashed = thread.join().map_err(|_| "the proof of the password could not be made".to_owned())?;
                let (logon, proof) = hashed.map_err(|e| e.to_string())?;
                channel.say(PROOF, 0, self.clock.ticks(), &[], &proof);
                channel.flush();
                self.state = State::Proving(channel, since, Proving::Sent(logon));
                return Ok(1);
            }
            State::Proving(channel, since, proving) => {
                self.state = State::Proving(channel, since, proving);
                since
            }
            State::Asking(channel, since) => {
                self.state = State::Asking(channel, since);
                since
            }
            other => {
                self.state = other;
                return Ok(0);
            }
        };
        match self.clock.ns_between(since, self.clock.ticks()) > CONNECT_NS {
            true => Err("nobody answered in time; is it the exchange that listens there?".to_owned()),
            false => Ok(0),
        }
    }

    /// Sends the first message on a new connection.
    fn begin(&mut self, mut channel: Channel, since: u64) -> Result<(), String> {
        let Some(password) = &self.password else {
            self.log_on(channel, since);
            return Ok(());
        };
        let (logon, client_first) = password.prove().map_err(|e| e.to_string())?;
        channel.say(PROVE, 0, self.clock.ticks(), &[], &client_first);
        channel.flush();
        self.state = State::Proving(channel, since, Proving::Begun(logon));
        Ok(())
    }

    fn log_on(&mut self, mut channel: Channel, since: u64) {
        let Resume { journal, oms, incarnation, next_request, next_report } = self.resume;
        let (magic, version, reserved) = (MAGIC, VERSION, [0; 6]);
        let logon = Logon { magic, version, reserved, journal, incarnation, next_request, next_report, oms };
        channel.say(LOGON, 0, self.clock.ticks(), logon.as_bytes(), self.name.as_bytes());
        channel.flush();
        self.state = State::Asking(channel, since);
    }

    /// Reads the exchange's answers to the proof of the password.
    fn read_proof(&mut self) -> Result<usize, String> {
        let State::Proving(channel, ..) = &mut self.state else { return Ok(0) };
        let flushed = usize::from(channel.flush());
        if !channel.read()? {
            return Ok(flushed);
        }
        let mut done = flushed + 1;
        loop {
            let next = match &mut self.state {
                State::Proving(channel, ..) => channel.next()?.map(|frame| (frame.kind, frame.text.to_vec())),
                _ => None,
            };
            let Some((kind, text)) = next else { return Ok(done) };
            self.hear_proof(kind, text)?;
            done += 1;
        }
    }

    fn hear_proof(&mut self, kind: u8, text: Vec<u8>) -> Result<(), String> {
        match (kind, std::mem::replace(&mut self.state, State::Down)) {
            (CHALLENGE, State::Proving(channel, since, Proving::Begun(logon))) => {
                let hashing = Proving::answer(logon, text).map_err(|e| format!("no thread for the proof: {e}"))?;
                self.state = State::Proving(channel, since, hashing);
            }
            (PROVED, State::Proving(channel, since, Proving::Sent(logon))) => {
                logon.check(&text).map_err(|_| {
                    "it does not know the password of the lines: it is not the exchange that it claims to be; check the \
                     address and the password file"
                        .to_owned()
                })?;
                self.log_on(channel, since);
            }
            (HEARTBEAT, state) => self.state = state,
            (REFUSED, _) => return Err(refused(&text)),
            _ => return Err("it says something before the password is proved".to_owned()),
        }
        Ok(())
    }

    fn read(&mut self, take: &mut dyn FnMut(Event<'_>)) -> Result<usize, String> {
        if matches!(self.state, State::Proving(..)) {
            return self.read_proof();
        }
        let mut is_up = matches!(self.state, State::Up(_));
        let (State::Asking(channel, _) | State::Up(channel)) = &mut self.state else { return Ok(0) };
        let mut done = usize::from(channel.flush());
        if !channel.read()? {
            channel.rest(self.journaled)?;
            return Ok(done);
        }
        while let Some(frame) = channel.next()? {
            match (frame.kind, is_up) {
                (WELCOME, true) => return Err("it says welcome twice".to_owned()),
                (WELCOME | REFUSED, _) | (_, true) => {}
                // A heartbeat of an exchange that has nothing yet.
                (HEARTBEAT, false) => continue,
                (_, false) => return Err("it says something before its welcome".to_owned()),
            }
            is_up |= hear(&frame, self.venue, &self.resume, &mut self.next_report, take)?;
            done += 1;
        }
        if is_up
            && matches!(self.state, State::Asking(..))
            && let State::Asking(channel, _) = std::mem::replace(&mut self.state, State::Down)
        {
            self.state = State::Up(channel);
        }
        Ok(done + 1)
    }
}

/// Takes a frame; returns true for the welcome.
fn hear(
    frame: &Frame<'_>,
    expected: Option<VenueId>,
    resume: &Resume,
    next_report: &mut u64,
    take: &mut dyn FnMut(Event<'_>),
) -> Result<bool, String> {
    match frame.kind {
        HEARTBEAT => take(Event::Received(frame.sequence)),
        WELCOME => {
            let welcome: Welcome = frame.message();
            if welcome.version < IDENTITY_VERSION && resume.oms != 0 {
                return Err(format!(
                    "the exchange speaks version {} of a line's messages, which mixes the order ids of all OMSes; update \
                     the exchange",
                    welcome.version
                ));
            }
            if let (Some(venue), Some(found)) = (expected, welcome.venue.checked_sub(1))
                && found != u32::from(venue.0)
            {
                return Err(format!(
                    "venue {found} is at this address, and venue {venue} should be: set the venue's number or the line's url right"
                ));
            }
            let knows = |known: u8, number| (known != 0).then_some(number);
            *next_report = resume.next_report;
            if welcome.knows_reports != 0 {
                *next_report = welcome.next_report;
            }
            take(Event::Up {
                next_request: knows(welcome.knows_requests, welcome.next_request),
                next_report: knows(welcome.knows_reports, welcome.next_report),
            });
            return Ok(true);
        }
        REFUSED => return Err(refused(frame.text)),
        kind if kind == Kind::ExecutionReport.code() => {
            let report = ExecutionReport::read(kind, frame.payload).map_err(|e| e.to_string())?;
            if frame.sequence > *next_report {
                return Err(format!("report {} came where {next_report} was due", frame.sequence));
            }
            if frame.sequence == *next_report {
                *next_report += 1;
                take(Event::Report { number: frame.sequence, stamp: frame.stamp, report: &report });
            }
        }
        // Kinds of frame that a later version adds.
        _ => {}
    }
    Ok(false)
}

/// Returns a refusal as a log can show it, because its text is the peer's.
fn refused(text: &[u8]) -> String {
    format!("the exchange refuses: {}", Printable(&bounded(text, MOST_REFUSAL)))
}

impl Line for TcpLine {
    fn address(&self) -> String {
        self.address.to_string()
    }

    fn connect(&mut self, resume: &Resume) {
        (self.resume, self.journaled) = (*resume, resume.next_report);
        let begun = Socket::begin(&self.address, self.connects);
        self.connects += 1;
        self.state = match begun {
            Ok(socket) => State::Connecting(socket, self.clock.ticks()),
            Err(e) => State::Failed(e.to_string()),
        };
    }

    #[inline]
    fn send(&mut self, number: u64, stamp: u64, request: &Request) -> Result<(), SendError> {
        let State::Up(channel) = &mut self.state else { return Err(SendError::Down) };
        if channel.is_broken() {
            return Err(SendError::Down);
        }
        if channel.is_full() {
            return Err(SendError::Full);
        }
        let sent = channel.send(request.kind().code(), number, stamp, request.as_bytes());
        if sent { Ok(()) } else { Err(SendError::Down) }
    }

    fn confirm(&mut self, next_report: u64) {
        self.journaled = self.journaled.max(next_report);
    }

    #[inline]
    fn poll(&mut self, take: &mut dyn FnMut(Event<'_>)) -> Result<usize, Lost> {
        if matches!(self.state, State::Down) {
            return Ok(0);
        }
        let begun = if matches!(self.state, State::Up(_)) { Ok(0) } else { self.advance() };
        begun.and_then(|begun| Ok(begun + self.read(take)?)).map_err(|why| self.lost(&why))
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Proving(channel, ..) | State::Asking(channel, _) | State::Up(channel) => Some(channel.as_fd()),
            State::Connecting(socket, _) => Some(socket.as_fd()),
            State::Down | State::Failed(_) => None,
        }
    }
}
