//! A venue's socket connections: password, logon, requests, reports. State that outlives them is in [`Line`].

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{Kind, Request};
use tickpath_venue_native::wire::{
    CHALLENGE, HEARTBEAT, LOGON, Logon, MAGIC, PROOF, PROVE, PROVED, REFUSED, SILENCE_MS, WELCOME,
};
use tickpath_venue_native::{Address, Channel, PasswordCheck, ServerLogon, Socket, bounded};
use zerocopy::IntoBytes;

use crate::doors::Doors;
use crate::faults::Dice;
use crate::input::LANES;
use crate::settings::CONNECTIONS;
use crate::{Chance, Event, Line, LineError, ServerError};

/// Max length of a line's name, in bytes: longer names are cut.
const MOST_NAME: usize = 64;
/// Logon timeout of a connection, in nanoseconds, counted from its acceptance whatever it sends.
const LOGON_NS: i64 = SILENCE_MS as i64 * 1_000_000;
/// Min interval between two reports of refused connections, in nanoseconds, because any peer can cause them.
const REFUSALS_NS: i64 = 10_000_000_000;

/// Socket front end of a venue: accepts and serves connections.
pub(crate) struct Gate {
    clock: HostClock,
    doors: Doors,
    connections: Vec<Connection>,
    dice: Dice,
    cut: Chance,
    rules: Rules,
    /// Refused connections that were not reported yet.
    refused: u64,
    /// Time of the last report of a refused connection, in ticks.
    refused_at: Option<u64>,
}

/// Conditions that a logon must meet.
struct Rules {
    password: Option<PasswordCheck>,
    most_lines: usize,
}

struct Connection {
    channel: Channel,
    /// Time of acceptance, in ticks.
    since: u64,
    /// Name in its logon, as received.
    name: String,
    stage: Stage,
    /// None before its logon.
    way: Option<usize>,
    /// Number of the next report to send.
    next: u64,
    /// Reason for its end; present once the connection must be closed.
    over: Option<String>,
    is_refused: bool,
}

/// Progress of the password proof.
enum Stage {
    Nothing,
    Challenged(Box<ServerLogon>),
    Proved,
}

impl Gate {
    /// Listens at all addresses for lines that prove `password`, of which at most `most_lines` are known at once.
    pub fn open(
        clock: HostClock,
        listen: &[Address],
        password: Option<PasswordCheck>,
        most_lines: usize,
        tell: &mut dyn FnMut(Event),
    ) -> Result<Self, ServerError> {
        let doors = Doors::open(clock, listen, CONNECTIONS.max(most_lines), tell)?;
        let (dice, rules) = (Dice::new(clock.ticks()), Rules { password, most_lines });
        let (connections, cut) = (Vec::new(), Chance::default());
        Ok(Self { clock, doors, connections, dice, cut, rules, refused: 0, refused_at: None })
    }

    /// Sets the chance that a request cuts its connection.
    pub fn set_cut(&mut self, cut: Chance) {
        self.cut = cut;
    }

    /// Runs one turn: accepts connections, takes requests, sends reports. Returns the number of events handled.
    pub fn turn<C: Clock>(&mut self, line: &mut Line<C>, tell: &mut dyn FnMut(Event)) -> Result<usize, LineError> {
        let Self { clock, doors, connections, .. } = self;
        let inside = connections.len();
        let mut done = doors.accept(inside, tell, &mut |socket| connections.push(Connection::new(*clock, socket)));
        for place in 0..self.connections.len() {
            done += self.serve(place, line, tell)?;
        }
        if self.connections.iter().any(|connection| connection.over.is_some()) {
            self.end(line, tell)?;
        }
        Ok(done)
    }

    /// Sleeps until a socket is readable or `timeout_ns` has passed; reports with another cause wait for the timeout.
    /// While `halts`, connections that are logged on do not wake it.
    pub fn sleep(&self, timeout_ns: u64, halts: bool) {
        let is_read = |connection: &&Connection| !halts || connection.way.is_none();
        let sockets = self.connections.iter().filter(is_read).map(|connection| connection.channel.as_fd());
        let (doors, timeout_ns) = self.doors.looks(timeout_ns);
        let mut looks: Vec<PollFd<'_>> =
            sockets.chain(doors).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ns.min(999_999_999) as i64 };
        // An interrupt may end the sleep early: the next turn finds no work.
        let _ = poll(&mut looks, Some(&timeout));
    }

    /// Journals the confirmed reports of all connected lines.
    pub fn close<C: Clock>(&self, line: &mut Line<C>) -> Result<(), LineError> {
        self.connections.iter().filter_map(|connection| connection.way).try_for_each(|way| line.left_by(way))
    }

    /// Closes and reports the connections that have ended.
    fn end<C: Clock>(&mut self, line: &mut Line<C>, tell: &mut dyn FnMut(Event)) -> Result<(), LineError> {
        let all = std::mem::take(&mut self.connections).into_iter();
        let (over, stay): (Vec<Connection>, Vec<Connection>) = all.partition(|connection| connection.over.is_some());
        self.connections = stay;
        for Connection { name, way, over, is_refused, .. } in over {
            let why = over.unwrap_or_default();
            if let Some(way) = way {
                line.left_by(way)?;
                tell(Event::LineGone { line: name, why });
            } else if is_refused {
                self.tell_refused(name, why, tell);
            }
        }
        self.doors.try_again();
        Ok(())
    }

    /// Reports a refused connection, or counts it if another one was reported within [`REFUSALS_NS`].
    fn tell_refused(&mut self, line: String, why: String, tell: &mut dyn FnMut(Event)) {
        let now = self.clock.ticks();
        match self.refused_at {
            Some(at) if self.clock.ns_between(at, now) <= REFUSALS_NS => self.refused += 1,
            _ => {
                let others = std::mem::take(&mut self.refused);
                self.refused_at = Some(now);
                tell(Event::LineRefused { line, why, others });
            }
        }
    }

    fn serve<C: Clock>(
        &mut self,
        place: usize,
        line: &mut Line<C>,
        tell: &mut dyn FnMut(Event),
    ) -> Result<usize, LineError> {
        let here: Vec<usize> = match self.connections[place].way {
            Some(_) => Vec::new(),
            None => self.connections.iter().filter_map(|connection| connection.way).collect(),
        };
        let connection = &mut self.connections[place];
        if connection.way.is_none() && self.clock.ns_between(connection.since, self.clock.ticks()) > LOGON_NS {
            connection.over = Some("it has not logged on in time".to_owned());
            return Ok(0);
        }
        let flushed = usize::from(connection.channel.flush());
        if line.halts() && connection.way.is_some() {
            connection.channel.forgive();
            return Ok(flushed + connection.say(line));
        }
        let heard = match connection.channel.read() {
            Ok(false) => 0,
            Ok(true) => match connection.hear(line, &mut self.dice, self.cut, (&self.rules, here.as_slice()))? {
                Heard::Frames(frames) => frames,
                Heard::Logon => {
                    self.welcome(place, tell);
                    1
                }
            },
            // A failed read or write ends the connection; the client resends requests without a confirmation.
            Err(why) => {
                connection.over = Some(why);
                0
            }
        };
        Ok(flushed + heard + self.connections[place].say(line))
    }

    /// Reports the logon of a connection, and ends an older connection of the same line.
    fn welcome(&mut self, place: usize, tell: &mut dyn FnMut(Event)) {
        let way = self.connections[place].way;
        tell(Event::LineCame { line: self.connections[place].name.clone() });
        for (other, connection) in self.connections.iter_mut().enumerate() {
            if other != place && connection.way == way {
                connection.over = Some("it has come back by another connection".to_owned());
            }
        }
    }
}

/// Result of one read: the number of request frames, or a logon.
enum Heard {
    Frames(usize),
    Logon,
}

impl Connection {
    fn new(clock: HostClock, socket: Socket) -> Self {
        let (since, channel) = (clock.ticks(), Channel::new(clock, socket));
        let (name, stage) = (String::new(), Stage::Nothing);
        Self { channel, since, name, stage, way: None, next: 0, over: None, is_refused: false }
    }

    fn hear<C: Clock>(
        &mut self,
        line: &mut Line<C>,
        dice: &mut Dice,
        cut: Chance,
        rules: (&Rules, &[usize]),
    ) -> Result<Heard, LineError> {
        let mut frames = 0;
        let mut came = false;
        let took = loop {
            if self.over.is_some() {
                break frames > 0;
            }
            let frame = match self.channel.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break frames > 0,
                Err(why) => {
                    self.over = Some(why);
                    break false;
                }
            };
            match (frame.kind, self.way) {
                // Keeps the connection alive; the logon timeout still applies.
                (HEARTBEAT, None) => {}
                (kind, None) => {
                    let (logon, text) = (frame.message::<Logon>(), frame.text.to_vec());
                    match self.greet(kind, &logon, &text, line, rules)? {
                        Ok(is_in) => came |= is_in,
                        Err(why) => {
                            self.refuse(&why);
                            break false;
                        }
                    }
                }
                (HEARTBEAT, Some(way)) => line.confirmed_by(way, frame.sequence)?,
                (kind, Some(way)) => match Request::read(kind, frame.payload) {
                    Ok(request) => {
                        let number = frame.sequence;
                        let is_cut = dice.happens(cut);
                        // Half of the cuts come before the request is taken.
                        if !is_cut || dice.happens(Chance::HALF) {
                            line.request_by(way, number, request)?;
                        }
                        if is_cut {
                            self.over = Some("it was cut on purpose".to_owned());
                        }
                        frames += 1;
                    }
                    Err(_) => line.refuse_one(),
                },
            }
        };
        let way = self.way.unwrap_or(LANES);
        if took
            && self.over.is_none()
            && let Some(session) = line.sessions.get(way)
        {
            let next_request = session.next_request;
            self.say_reports(line);
            self.channel.say(HEARTBEAT, next_request, line.now(), &[], &[]);
            self.channel.flush();
        }
        Ok(if came { Heard::Logon } else { Heard::Frames(frames) })
    }

    /// Handles a frame of a connection before its logon. Returns whether it is logged on now, or the reason of a
    /// refusal.
    fn greet<C: Clock>(
        &mut self,
        kind: u8,
        logon: &Logon,
        text: &[u8],
        line: &mut Line<C>,
        (rules, here): (&Rules, &[usize]),
    ) -> Result<Result<bool, String>, LineError> {
        let asks = rules.password.as_ref();
        match (kind, std::mem::replace(&mut self.stage, Stage::Nothing), asks) {
            (PROVE, Stage::Nothing, Some(check)) => match check.challenge(text) {
                Ok((server, challenge)) => {
                    self.channel.say(CHALLENGE, 0, line.now(), &[], &challenge);
                    self.stage = Stage::Challenged(Box::new(server));
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
            (PROOF, Stage::Challenged(server), _) => match server.verify(text) {
                Ok(proved) => {
                    self.channel.say(PROVED, 0, line.now(), &[], &proved);
                    self.stage = Stage::Proved;
                }
                Err(_) => return Ok(Err("the password is not that of this exchange's lines".to_owned())),
            },
            (LOGON, stage, asks) => {
                if logon.magic != MAGIC {
                    return Ok(Err("this is no line to an exchange".to_owned()));
                }
                self.name = bounded(text, MOST_NAME);
                if asks.is_some() && !matches!(stage, Stage::Proved) {
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
                (self.way, self.next) = (Some(way), welcome.next_report);
                self.channel.say(WELCOME, 0, line.now(), welcome.as_bytes(), &[]);
                return Ok(Ok(true));
            }
            _ => return Ok(Err("a logon comes first".to_owned())),
        }
        self.channel.flush();
        Ok(Ok(false))
    }

    /// Sends the reports that are due, or a heartbeat if one is. Returns the number of reports sent.
    fn say<C: Clock>(&mut self, line: &Line<C>) -> usize {
        let Some(session) = self.way.and_then(|way| line.sessions.get(way)) else {
            if let Err(why) = self.channel.rest(0) {
                self.over = Some(why);
            }
            return 0;
        };
        let next_request = session.next_request;
        let said = self.say_reports(line);
        if said > 0 {
            self.channel.flush();
        } else if let Err(why) = self.channel.rest(next_request) {
            self.over = Some(why);
        }
        said
    }

    fn say_reports<C: Clock>(&mut self, line: &Line<C>) -> usize {
        let Some(session) = self.way.and_then(|way| line.sessions.get(way)) else { return 0 };
        let mut said = 0;
        while !self.channel.is_full()
            && let Some((due, report)) = session.report(self.next)
        {
            let now = line.now();
            if now < *due {
                break;
            }
            self.channel.say(Kind::ExecutionReport.code(), self.next, now, report.as_bytes(), &[]);
            self.next += 1;
            said += 1;
        }
        said
    }

    fn refuse(&mut self, why: &str) {
        self.channel.say(REFUSED, 0, 0, &[], why.as_bytes());
        self.channel.flush();
        (self.over, self.is_refused) = (Some(why.to_owned()), true);
    }
}
