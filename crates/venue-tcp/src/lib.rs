//! A line to our own exchange over TCP or a Unix socket: frames of `tickpath-session`, with numbers both ways, so that a
//! connect says exactly what either side has ([`wire`]). [`Channel`] is what the exchange's end uses, too.
//!
//! What is said is neither encrypted nor is anybody asked for a password: it is for a host's own loopback, or a network
//! that nobody else is in.

mod address;
mod channel;
mod socket;
pub mod wire;

use std::os::fd::{AsFd, BorrowedFd};

use tickpath_clock::{CalibrationError, Clock, HostClock};
use tickpath_market::{ExecutionReport, Kind, Request};
use tickpath_session::Frame;
use tickpath_venue::{Event, Line, Lost, Resume, SendError};
use zerocopy::IntoBytes;

pub use address::{Address, ParseAddressError};
pub use channel::Channel;
pub use socket::Socket;

use wire::{HEARTBEAT, LOGON, Logon, MAGIC, REFUSED, VERSION, WELCOME, Welcome};

/// The longest that connecting takes, to the welcome.
const CONNECT_NS: i64 = 5_000_000_000;

/// A line.
pub struct TcpLine {
    address: Address,
    name: String,
    clock: HostClock,
    state: State,
    /// How often it was told to connect.
    connects: usize,
    resume: Resume,
    /// The next report that is expected, and the first that is not journaled.
    next_report: u64,
    journaled: u64,
}

enum State {
    Down,
    /// It could not even begin.
    Failed(String),
    Connecting(Socket, u64),
    Asking(Channel, u64),
    Up(Channel),
}

impl TcpLine {
    /// A line that is down; `name` is what the exchange calls it in its messages.
    pub fn new(address: Address, name: &str) -> Result<Self, CalibrationError> {
        Ok(Self {
            address,
            name: name.to_owned(),
            clock: HostClock::get()?,
            state: State::Down,
            connects: 0,
            resume: Resume::default(),
            next_report: 0,
            journaled: 0,
        })
    }

    fn lost(&mut self, why: &str) -> Lost {
        self.state = State::Down;
        Lost(format!("{}: {why}", self.address))
    }

    /// What there is to do on the way up.
    fn advance(&mut self) -> Result<usize, String> {
        let since = match std::mem::replace(&mut self.state, State::Down) {
            State::Failed(why) => return Err(why),
            State::Connecting(socket, since) => {
                if socket.is_connected().map_err(|e| e.to_string())? {
                    let mut channel = Channel::new(self.clock, socket);
                    let Resume { journal, incarnation, next_request, next_report } = self.resume;
                    let (magic, version, reserved) = (MAGIC, VERSION, [0; 6]);
                    let logon = Logon { magic, version, reserved, journal, incarnation, next_request, next_report };
                    channel.say(LOGON, 0, self.clock.ticks(), logon.as_bytes(), self.name.as_bytes());
                    channel.flush();
                    self.state = State::Asking(channel, since);
                    return Ok(1);
                }
                self.state = State::Connecting(socket, since);
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

    fn read(&mut self, take: &mut dyn FnMut(Event<'_>)) -> Result<usize, String> {
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
                // It lives, and has nothing yet.
                (HEARTBEAT, false) => continue,
                (_, false) => return Err("it says something before its welcome".to_owned()),
            }
            is_up |= hear(&frame, &self.resume, &mut self.next_report, take)?;
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

/// Takes a frame; true if it is the welcome.
fn hear(
    frame: &Frame<'_>,
    resume: &Resume,
    next_report: &mut u64,
    take: &mut dyn FnMut(Event<'_>),
) -> Result<bool, String> {
    match frame.kind {
        HEARTBEAT => take(Event::Received(frame.sequence)),
        WELCOME => {
            let welcome: Welcome = frame.message();
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
        REFUSED => return Err(format!("the exchange refuses: {}", String::from_utf8_lossy(frame.text))),
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
        // What a later version says beside.
        _ => {}
    }
    Ok(false)
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
            State::Asking(channel, _) | State::Up(channel) => Some(channel.as_fd()),
            State::Connecting(socket, _) => Some(socket.as_fd()),
            State::Down | State::Failed(_) => None,
        }
    }
}
