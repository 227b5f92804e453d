//! A venue's socket connections: password, logon, requests, reports. State that outlives them is in [`VenueEngine`].

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{Kind, Request};
use tickpath_venue_native::wire::{
    CHALLENGE, HEARTBEAT, LOGON, LineLogon, MAGIC, PROOF, PROVE, PROVED, REFUSED, SILENCE_MS, WELCOME,
};
use tickpath_venue_native::{FrameChannel, LineAddress, LineSocket, PasswordCheck, ServerLogon, bounded};
use zerocopy::IntoBytes;

use crate::faults::FaultDice;
use crate::input::LANES_ROUTE;
use crate::listeners::LineListeners;
use crate::settings::MAX_CONNECTIONS;
use crate::{Chance, EngineError, VenueEngine, VenueEvent, VenueServerError};

/// Max length of a line's name, in bytes: longer names are cut.
const MAX_NAME_BYTES: usize = 64;
/// Logon timeout of a connection, in nanoseconds, counted from its acceptance whatever it sends.
const LOGON_TIMEOUT_NS: i64 = SILENCE_MS as i64 * 1_000_000;
/// Min interval between two reports of refused connections, in nanoseconds, because any peer can cause them.
const REFUSAL_REPORT_NS: i64 = 10_000_000_000;

/// Socket front end of a venue: accepts and serves connections.
pub(crate) struct LineAcceptor {
    clock: HostClock,
    listeners: LineListeners,
    connections: Vec<LineConnection>,
    dice: FaultDice,
    cut: Chance,
    rules: LogonRules,
    /// Refused connections that were not reported yet.
    refused: u64,
    /// Time of the last report of a refused connection, in ticks.
    refused_at: Option<u64>,
}

/// Conditions that a logon must meet.
struct LogonRules {
    password: Option<PasswordCheck>,
    most_lines: usize,
}

struct LineConnection {
    channel: FrameChannel,
    /// Time of acceptance, in ticks.
    accepted_at: u64,
    /// Name in its logon, as received.
    name: String,
    stage: ProofStage,
    /// None before its logon.
    route: Option<usize>,
    /// Number of the next report to send.
    next_report: u64,
    /// Reason for its end; present once the connection must be closed.
    end_reason: Option<String>,
    is_refused: bool,
}

/// Progress of the password proof.
enum ProofStage {
    Unproven,
    Challenged(Box<ServerLogon>),
    Proved,
}

impl LineAcceptor {
    /// Listens at all addresses for lines that prove `password`, of which at most `most_lines` are known at once.
    pub fn open(
        clock: HostClock,
        listen: &[LineAddress],
        password: Option<PasswordCheck>,
        most_lines: usize,
        tell: &mut dyn FnMut(VenueEvent),
    ) -> Result<Self, VenueServerError> {
        let doors = LineListeners::open(clock, listen, MAX_CONNECTIONS.max(most_lines), tell)?;
        let (dice, rules) = (FaultDice::new(clock.ticks()), LogonRules { password, most_lines });
        let (connections, cut) = (Vec::new(), Chance::default());
        Ok(Self { clock, listeners: doors, connections, dice, cut, rules, refused: 0, refused_at: None })
    }

    /// Sets the chance that a request cuts its connection.
    pub fn set_cut(&mut self, cut: Chance) {
        self.cut = cut;
    }

    /// Runs one turn: accepts connections, takes requests, sends reports. Returns the number of events handled.
    pub fn run_once<C: Clock>(
        &mut self,
        line: &mut VenueEngine<C>,
        tell: &mut dyn FnMut(VenueEvent),
    ) -> Result<usize, EngineError> {
        let Self { clock, listeners: doors, connections, .. } = self;
        let inside = connections.len();
        let mut done = doors.accept(inside, tell, &mut |socket| connections.push(LineConnection::new(*clock, socket)));
        for place in 0..self.connections.len() {
            done += self.serve(place, line, tell)?;
        }
        if self.connections.iter().any(|connection| connection.end_reason.is_some()) {
            self.close_ended(line, tell)?;
        }
        Ok(done)
    }

    /// Sleeps until a socket is readable or `timeout_ns` has passed; reports with another cause wait for the timeout.
    /// While `halts`, connections that are logged on do not wake it.
    pub fn sleep(&self, timeout_ns: u64, halts: bool) {
        let is_read = |connection: &&LineConnection| !halts || connection.route.is_none();
        let sockets = self.connections.iter().filter(is_read).map(|connection| connection.channel.as_fd());
        let (doors, timeout_ns) = self.listeners.poll_sources(timeout_ns);
        let mut looks: Vec<PollFd<'_>> =
            sockets.chain(doors).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ns.min(999_999_999) as i64 };
        // An interrupt may end the sleep early: the next turn finds no work.
        let _ = poll(&mut looks, Some(&timeout));
    }

    /// Journals the confirmed reports of all connected lines.
    pub fn close<C: Clock>(&self, line: &mut VenueEngine<C>) -> Result<(), EngineError> {
        self.connections.iter().filter_map(|connection| connection.route).try_for_each(|way| line.disconnect_line(way))
    }

    /// Closes and reports the connections that have ended.
    fn close_ended<C: Clock>(
        &mut self,
        line: &mut VenueEngine<C>,
        tell: &mut dyn FnMut(VenueEvent),
    ) -> Result<(), EngineError> {
        let all = std::mem::take(&mut self.connections).into_iter();
        let (over, stay): (Vec<LineConnection>, Vec<LineConnection>) =
            all.partition(|connection| connection.end_reason.is_some());
        self.connections = stay;
        for LineConnection { name, route: way, end_reason: over, is_refused, .. } in over {
            let why = over.unwrap_or_default();
            if let Some(way) = way {
                line.disconnect_line(way)?;
                tell(VenueEvent::LineDisconnected { line: name, why });
            } else if is_refused {
                self.report_refusal(name, why, tell);
            }
        }
        self.listeners.end_pause();
        Ok(())
    }

    /// Reports a refused connection, or counts it if another one was reported within [`REFUSAL_REPORT_NS`].
    fn report_refusal(&mut self, line: String, why: String, tell: &mut dyn FnMut(VenueEvent)) {
        let now = self.clock.ticks();
        match self.refused_at {
            Some(at) if self.clock.ns_between(at, now) <= REFUSAL_REPORT_NS => self.refused += 1,
            _ => {
                let others = std::mem::take(&mut self.refused);
                self.refused_at = Some(now);
                tell(VenueEvent::LineRefused { line, why, others });
            }
        }
    }

    fn serve<C: Clock>(
        &mut self,
        place: usize,
        line: &mut VenueEngine<C>,
        tell: &mut dyn FnMut(VenueEvent),
    ) -> Result<usize, EngineError> {
        let here: Vec<usize> = match self.connections[place].route {
            Some(_) => Vec::new(),
            None => self.connections.iter().filter_map(|connection| connection.route).collect(),
        };
        let connection = &mut self.connections[place];
        if connection.route.is_none()
            && self.clock.ns_between(connection.accepted_at, self.clock.ticks()) > LOGON_TIMEOUT_NS
        {
            connection.end_reason = Some("it has not logged on in time".to_owned());
            return Ok(0);
        }
        let flushed = usize::from(connection.channel.flush());
        if line.is_halted() && connection.route.is_some() {
            connection.channel.restart_silence();
            return Ok(flushed + connection.write_reports(line));
        }
        let heard = match connection.channel.read() {
            Ok(false) => 0,
            Ok(true) => match connection.read_frames(line, &mut self.dice, self.cut, (&self.rules, here.as_slice()))? {
                ReadOutcome::Frames(frames) => frames,
                ReadOutcome::Logon => {
                    self.announce_logon(place, tell);
                    1
                }
            },
            // A failed read or write ends the connection; the client resends requests without a confirmation.
            Err(why) => {
                connection.end_reason = Some(why);
                0
            }
        };
        Ok(flushed + heard + self.connections[place].write_reports(line))
    }

    /// Reports the logon of a connection, and ends an older connection of the same line.
    fn announce_logon(&mut self, place: usize, tell: &mut dyn FnMut(VenueEvent)) {
        let way = self.connections[place].route;
        tell(VenueEvent::LineConnected { line: self.connections[place].name.clone() });
        for (other, connection) in self.connections.iter_mut().enumerate() {
            if other != place && connection.route == way {
                connection.end_reason = Some("it has come back by another connection".to_owned());
            }
        }
    }
}

/// Result of one read: the number of request frames, or a logon.
enum ReadOutcome {
    Frames(usize),
    Logon,
}

impl LineConnection {
    fn new(clock: HostClock, socket: LineSocket) -> Self {
        let (since, channel) = (clock.ticks(), FrameChannel::new(clock, socket));
        let (name, stage) = (String::new(), ProofStage::Unproven);
        Self {
            channel,
            accepted_at: since,
            name,
            stage,
            route: None,
            next_report: 0,
            end_reason: None,
            is_refused: false,
        }
    }

    fn read_frames<C: Clock>(
        &mut self,
        line: &mut VenueEngine<C>,
        dice: &mut FaultDice,
        cut: Chance,
        rules: (&LogonRules, &[usize]),
    ) -> Result<ReadOutcome, EngineError> {
        let mut frames = 0;
        let mut came = false;
        let took = loop {
            if self.end_reason.is_some() {
                break frames > 0;
            }
            let frame = match self.channel.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break frames > 0,
                Err(why) => {
                    self.end_reason = Some(why);
                    break false;
                }
            };
            match (frame.kind, self.route) {
                // Keeps the connection alive; the logon timeout still applies.
                (HEARTBEAT, None) => {}
                (kind, None) => {
                    let (logon, text) = (frame.message::<LineLogon>(), frame.text.to_vec());
                    match self.handle_logon(kind, &logon, &text, line, rules)? {
                        Ok(is_in) => came |= is_in,
                        Err(why) => {
                            self.refuse(&why);
                            break false;
                        }
                    }
                }
                (HEARTBEAT, Some(way)) => line.confirm_reports(way, frame.sequence)?,
                (kind, Some(way)) => match Request::read(kind, frame.payload) {
                    Ok(request) => {
                        let number = frame.sequence;
                        let is_cut = dice.happens(cut);
                        // Half of the cuts come before the request is taken.
                        if !is_cut || dice.happens(Chance::HALF) {
                            line.apply_line_request(way, number, request)?;
                        }
                        if is_cut {
                            self.end_reason = Some("it was cut on purpose".to_owned());
                        }
                        frames += 1;
                    }
                    Err(_) => line.count_refused(),
                },
            }
        };
        let way = self.route.unwrap_or(LANES_ROUTE);
        if took
            && self.end_reason.is_none()
            && let Some(session) = line.sessions.get(way)
        {
            let next_request = session.next_request;
            self.queue_reports(line);
            self.channel.queue(HEARTBEAT, next_request, line.now(), &[], &[]);
            self.channel.flush();
        }
        Ok(if came { ReadOutcome::Logon } else { ReadOutcome::Frames(frames) })
    }

    /// Handles a frame of a connection before its logon. Returns whether it is logged on now, or the reason of a
    /// refusal.
    fn handle_logon<C: Clock>(
        &mut self,
        kind: u8,
        logon: &LineLogon,
        text: &[u8],
        line: &mut VenueEngine<C>,
        (rules, here): (&LogonRules, &[usize]),
    ) -> Result<Result<bool, String>, EngineError> {
        let asks = rules.password.as_ref();
        match (kind, std::mem::replace(&mut self.stage, ProofStage::Unproven), asks) {
            (PROVE, ProofStage::Unproven, Some(check)) => match check.challenge(text) {
                Ok((server, challenge)) => {
                    self.channel.queue(CHALLENGE, 0, line.now(), &[], &challenge);
                    self.stage = ProofStage::Challenged(Box::new(server));
                }
                Err(e) => return Ok(Err(e.to_string())),
            },
            (PROVE, _, None) => {
                return Ok(Err(
                    "this exchange asks for no password; name it a password_file in exchange.toml, or take that \
                               of the line away"
                        .to_owned(),
                ));
            }
            (PROOF, ProofStage::Challenged(server), _) => match server.verify(text) {
                Ok(proved) => {
                    self.channel.queue(PROVED, 0, line.now(), &[], &proved);
                    self.stage = ProofStage::Proved;
                }
                Err(_) => return Ok(Err("the password is not that of this exchange's lines".to_owned())),
            },
            (LOGON, stage, asks) => {
                if logon.magic != MAGIC {
                    return Ok(Err("this is no line to an exchange".to_owned()));
                }
                self.name = bounded(text, MAX_NAME_BYTES);
                if asks.is_some() && !matches!(stage, ProofStage::Proved) {
                    return Ok(Err(
                        "this exchange asks its lines for a password; name its file as password_file of the \
                                   line in oms.toml"
                            .to_owned(),
                    ));
                }
                let (way, welcome) = match line.logon(logon, rules.most_lines, here)? {
                    Ok(welcome) => welcome,
                    Err(unwelcome) => return Ok(Err(unwelcome.to_string())),
                };
                (self.route, self.next_report) = (Some(way), welcome.next_report);
                self.channel.queue(WELCOME, 0, line.now(), welcome.as_bytes(), &[]);
                return Ok(Ok(true));
            }
            _ => return Ok(Err("a logon comes first".to_owned())),
        }
        self.channel.flush();
        Ok(Ok(false))
    }

    /// Sends the reports that are due, or a heartbeat if one is. Returns the number of reports sent.
    fn write_reports<C: Clock>(&mut self, line: &VenueEngine<C>) -> usize {
        let Some(session) = self.route.and_then(|way| line.sessions.get(way)) else {
            if let Err(why) = self.channel.idle(0) {
                self.end_reason = Some(why);
            }
            return 0;
        };
        let next_request = session.next_request;
        let said = self.queue_reports(line);
        if said > 0 {
            self.channel.flush();
        } else if let Err(why) = self.channel.idle(next_request) {
            self.end_reason = Some(why);
        }
        said
    }

    fn queue_reports<C: Clock>(&mut self, line: &VenueEngine<C>) -> usize {
        let Some(session) = self.route.and_then(|way| line.sessions.get(way)) else { return 0 };
        let mut said = 0;
        while !self.channel.is_full()
            && let Some((due, report)) = session.report(self.next_report)
        {
            let now = line.now();
            if now < *due {
                break;
            }
            self.channel.queue(Kind::ExecutionReport.code(), self.next_report, now, report.as_bytes(), &[]);
            self.next_report += 1;
            said += 1;
        }
        said
    }

    fn refuse(&mut self, why: &str) {
        self.channel.queue(REFUSED, 0, 0, &[], why.as_bytes());
        self.channel.flush();
        (self.end_reason, self.is_refused) = (Some(why.to_owned()), true);
    }
}
