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
    /// Chance that a request cuts its connection.
    pub cut: Chance,
    rules: LogonRules,
    /// Refused connections that were not reported yet.
    refused: u64,
    /// Time of the last report of a refused connection, in ticks.
    refused_at: Option<u64>,
}

struct LogonRules {
    password: Option<PasswordCheck>,
    most_lines: usize,
}

struct LineConnection {
    channel: FrameChannel,
    accepted_at: u64,
    /// Name in its logon, as received.
    name: String,
    stage: ProofStage,
    /// None before its logon.
    route: Option<usize>,
    next_report: u64,
    /// Reason for its end; present once the connection must be closed.
    end_reason: Option<String>,
    is_refused: bool,
}

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
        notify: &mut dyn FnMut(VenueEvent),
    ) -> Result<Self, VenueServerError> {
        let listeners = LineListeners::open(clock, listen, MAX_CONNECTIONS.max(most_lines), notify)?;
        let (dice, rules) = (FaultDice::new(clock.ticks()), LogonRules { password, most_lines });
        let (connections, cut) = (Vec::new(), Chance::default());
        Ok(Self { clock, listeners, connections, dice, cut, rules, refused: 0, refused_at: None })
    }

    /// Runs one turn: accepts connections, takes requests, sends reports. Returns the number of events handled.
    pub fn run_once<C: Clock>(
        &mut self,
        engine: &mut VenueEngine<C>,
        notify: &mut dyn FnMut(VenueEvent),
    ) -> Result<usize, EngineError> {
        let Self { clock, listeners, connections, .. } = self;
        let open = connections.len();
        let mut done =
            listeners.accept(open, notify, &mut |socket| connections.push(LineConnection::new(*clock, socket)));
        for index in 0..self.connections.len() {
            done += self.serve(index, engine, notify)?;
        }
        if self.connections.iter().any(|connection| connection.end_reason.is_some()) {
            self.close_ended(engine, notify)?;
        }
        Ok(done)
    }

    /// Sleeps until a socket is readable or `timeout_ns` has passed; reports with another cause wait for the timeout.
    /// While `halts`, connections that are logged on do not wake it.
    pub fn sleep(&self, timeout_ns: u64, halts: bool) {
        let is_read = |connection: &&LineConnection| !halts || connection.route.is_none();
        let sockets = self.connections.iter().filter(is_read).map(|connection| connection.channel.as_fd());
        let (listeners, timeout_ns) = self.listeners.poll_sources(timeout_ns);
        let mut polled: Vec<PollFd<'_>> =
            sockets.chain(listeners).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ns.min(999_999_999) as i64 };
        // An interrupt may end the sleep early: the next turn finds no work.
        let _ = poll(&mut polled, Some(&timeout));
    }

    /// Journals the confirmed reports of all connected lines.
    pub fn close<C: Clock>(&self, engine: &mut VenueEngine<C>) -> Result<(), EngineError> {
        self.connections
            .iter()
            .filter_map(|connection| connection.route)
            .try_for_each(|route| engine.disconnect_line(route))
    }

    fn close_ended<C: Clock>(
        &mut self,
        engine: &mut VenueEngine<C>,
        notify: &mut dyn FnMut(VenueEvent),
    ) -> Result<(), EngineError> {
        let ended: Vec<_> = self.connections.extract_if(.., |connection| connection.end_reason.is_some()).collect();
        for LineConnection { name, route, end_reason, is_refused, .. } in ended {
            let why = end_reason.unwrap_or_default();
            if let Some(route) = route {
                engine.disconnect_line(route)?;
                notify(VenueEvent::LineDisconnected { line: name, why });
            } else if is_refused {
                self.report_refusal(name, why, notify);
            }
        }
        self.listeners.end_pause();
        Ok(())
    }

    /// Reports a refused connection, or counts it if another one was reported within [`REFUSAL_REPORT_NS`].
    fn report_refusal(&mut self, line: String, why: String, notify: &mut dyn FnMut(VenueEvent)) {
        let now = self.clock.ticks();
        match self.refused_at {
            Some(at) if self.clock.ns_between(at, now) <= REFUSAL_REPORT_NS => self.refused += 1,
            _ => {
                let others = std::mem::take(&mut self.refused);
                self.refused_at = Some(now);
                notify(VenueEvent::LineRefused { line, why, others });
            }
        }
    }

    fn serve<C: Clock>(
        &mut self,
        index: usize,
        engine: &mut VenueEngine<C>,
        notify: &mut dyn FnMut(VenueEvent),
    ) -> Result<usize, EngineError> {
        let connected: Vec<usize> = match self.connections[index].route {
            Some(_) => Vec::new(),
            None => self.connections.iter().filter_map(|connection| connection.route).collect(),
        };
        let connection = &mut self.connections[index];
        if connection.route.is_none()
            && self.clock.ns_between(connection.accepted_at, self.clock.ticks()) > LOGON_TIMEOUT_NS
        {
            connection.end_reason = Some("it has not logged on in time".to_owned());
            return Ok(0);
        }
        let flushed = usize::from(connection.channel.flush());
        if engine.is_halted() && connection.route.is_some() {
            connection.channel.restart_silence();
            return Ok(flushed + connection.write_reports(engine));
        }
        let handled = match connection.channel.read() {
            Ok(false) => 0,
            Ok(true) => {
                match connection.read_frames(engine, &mut self.dice, self.cut, (&self.rules, connected.as_slice()))? {
                    ReadOutcome::Frames(frames) => frames,
                    ReadOutcome::Logon => {
                        self.announce_logon(index, notify);
                        1
                    }
                }
            }
            // A failed read or write ends the connection; the client resends requests without a confirmation.
            Err(why) => {
                connection.end_reason = Some(why);
                0
            }
        };
        Ok(flushed + handled + self.connections[index].write_reports(engine))
    }

    /// Reports the logon of a connection, and ends an older connection of the same line.
    fn announce_logon(&mut self, index: usize, notify: &mut dyn FnMut(VenueEvent)) {
        let route = self.connections[index].route;
        notify(VenueEvent::LineConnected(self.connections[index].name.clone()));
        for (other, connection) in self.connections.iter_mut().enumerate() {
            if other != index && connection.route == route {
                connection.end_reason = Some("it has reconnected by another connection".to_owned());
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
        let (accepted_at, channel) = (clock.ticks(), FrameChannel::new(clock, socket));
        let (name, stage, end_reason) = (String::new(), ProofStage::Unproven, None);
        Self { channel, accepted_at, name, stage, route: None, next_report: 0, end_reason, is_refused: false }
    }

    fn read_frames<C: Clock>(
        &mut self,
        engine: &mut VenueEngine<C>,
        dice: &mut FaultDice,
        cut: Chance,
        rules: (&LogonRules, &[usize]),
    ) -> Result<ReadOutcome, EngineError> {
        let mut frames = 0;
        let mut logged_on = false;
        while self.end_reason.is_none() {
            let frame = match self.channel.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(why) => {
                    self.end_reason = Some(why);
                    break;
                }
            };
            match (frame.kind, self.route) {
                // Keeps the connection alive; the logon timeout still applies.
                (HEARTBEAT, None) => {}
                (kind, None) => {
                    let (logon, text) = (frame.message::<LineLogon>(), frame.text.to_vec());
                    match self.handle_logon(kind, &logon, &text, engine, rules)? {
                        Ok(is_logged_on) => logged_on |= is_logged_on,
                        Err(why) => self.refuse(&why),
                    }
                }
                (HEARTBEAT, Some(route)) => engine.confirm_reports(route, frame.sequence)?,
                (kind, Some(route)) => match Request::read(kind, frame.payload) {
                    Ok(request) => {
                        let number = frame.sequence;
                        let is_cut = dice.happens(cut);
                        // Half of the cuts come before the request is taken.
                        if !is_cut || dice.happens(Chance::HALF) {
                            engine.apply_line_request(route, number, request)?;
                        }
                        if is_cut {
                            self.end_reason = Some("it was cut by an injected fault".to_owned());
                        }
                        frames += 1;
                    }
                    Err(_) => engine.refused += 1,
                },
            }
        }
        let route = self.route.unwrap_or(LANES_ROUTE);
        if frames > 0
            && self.end_reason.is_none()
            && let Some(session) = engine.sessions.get(route)
        {
            let next_request = session.next_request;
            self.queue_reports(engine);
            self.channel.queue(HEARTBEAT, next_request, engine.clock.ticks(), &[], &[]);
            self.channel.flush();
        }
        Ok(if logged_on { ReadOutcome::Logon } else { ReadOutcome::Frames(frames) })
    }

    /// Handles a frame of a connection before its logon. Returns whether it is logged on now, or the reason of a
    /// refusal.
    fn handle_logon<C: Clock>(
        &mut self,
        kind: u8,
        logon: &LineLogon,
        text: &[u8],
        engine: &mut VenueEngine<C>,
        (rules, connected): (&LogonRules, &[usize]),
    ) -> Result<Result<bool, String>, EngineError> {
        let password = rules.password.as_ref();
        match (kind, std::mem::replace(&mut self.stage, ProofStage::Unproven), password) {
            (PROVE, ProofStage::Unproven, Some(check)) => match check.challenge(text) {
                Ok((server, challenge)) => {
                    self.channel.queue(CHALLENGE, 0, engine.clock.ticks(), &[], &challenge);
                    self.stage = ProofStage::Challenged(Box::new(server));
                }
                Err(e) => return Ok(Err(e.to_string())),
            },
            (PROVE, _, None) => {
                let why =
                    "this exchange uses no password; set password_file in exchange.toml, or remove that of the line";
                return Ok(Err(why.to_owned()));
            }
            (PROOF, ProofStage::Challenged(server), _) => match server.verify(text) {
                Ok(proved) => {
                    self.channel.queue(PROVED, 0, engine.clock.ticks(), &[], &proved);
                    self.stage = ProofStage::Proved;
                }
                Err(_) => return Ok(Err("the password is not that of this exchange's lines".to_owned())),
            },
            (LOGON, stage, password) => {
                if logon.magic != MAGIC {
                    return Ok(Err("this is no line to an exchange".to_owned()));
                }
                self.name = bounded(text, MAX_NAME_BYTES);
                if password.is_some() && !matches!(stage, ProofStage::Proved) {
                    let why = "this exchange requires a password; set password_file of the line in oms.toml";
                    return Ok(Err(why.to_owned()));
                }
                let (route, welcome) = match engine.logon(logon, rules.most_lines, connected)? {
                    Ok(accepted) => accepted,
                    Err(refusal) => return Ok(Err(refusal.to_string())),
                };
                (self.route, self.next_report) = (Some(route), welcome.next_report);
                self.channel.queue(WELCOME, 0, engine.clock.ticks(), welcome.as_bytes(), &[]);
                return Ok(Ok(true));
            }
            _ => return Ok(Err("send a logon first".to_owned())),
        }
        self.channel.flush();
        Ok(Ok(false))
    }

    /// Sends the reports that are due, or a heartbeat if one is. Returns the number of reports sent.
    fn write_reports<C: Clock>(&mut self, engine: &VenueEngine<C>) -> usize {
        let Some(session) = self.route.and_then(|route| engine.sessions.get(route)) else {
            if let Err(why) = self.channel.idle(0) {
                self.end_reason = Some(why);
            }
            return 0;
        };
        let next_request = session.next_request;
        let sent = self.queue_reports(engine);
        if sent > 0 {
            self.channel.flush();
        } else if let Err(why) = self.channel.idle(next_request) {
            self.end_reason = Some(why);
        }
        sent
    }

    fn queue_reports<C: Clock>(&mut self, engine: &VenueEngine<C>) -> usize {
        let Some(session) = self.route.and_then(|route| engine.sessions.get(route)) else { return 0 };
        let mut sent = 0;
        while !self.channel.is_full()
            && let Some((due, report)) = session.report(self.next_report)
        {
            let now = engine.clock.ticks();
            if now < *due {
                break;
            }
            self.channel.queue(Kind::ExecutionReport.code(), self.next_report, now, report.as_bytes(), &[]);
            self.next_report += 1;
            sent += 1;
        }
        sent
    }

    fn refuse(&mut self, why: &str) {
        self.channel.queue(REFUSED, 0, 0, &[], why.as_bytes());
        self.channel.flush();
        (self.end_reason, self.is_refused) = (Some(why.to_owned()), true);
    }
}
