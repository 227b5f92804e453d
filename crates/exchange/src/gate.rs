//! The sockets of a venue: who comes in, what they ask, what they are told. What must outlive them is the line's.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tickpath_clock::{Clock, HostClock};
use tickpath_market::{Kind, Request};
use tickpath_venue_tcp::wire::{HEARTBEAT, LOGON, Logon, MAGIC, REFUSED, WELCOME};
use tickpath_venue_tcp::{Address, Channel, Socket};
use zerocopy::IntoBytes;

use crate::faults::Dice;
use crate::input::LANES;
use crate::{Chance, Event, Line, LineError, ServerError};

/// Connections at once: whoever comes beyond waits.
const MOST: usize = 64;

/// Listens, and serves who comes.
pub(crate) struct Gate {
    clock: HostClock,
    doors: Vec<Door>,
    connections: Vec<Connection>,
    dice: Dice,
    cut: Chance,
}

enum Door {
    Tcp(TcpListener),
    Unix(UnixListener),
}

struct Connection {
    channel: Channel,
    /// What it calls itself.
    name: String,
    /// None until it has said who it is.
    way: Option<usize>,
    /// The next report that it is told.
    next: u64,
    /// Why it is over.
    over: Option<String>,
}

impl Gate {
    /// Listens at all addresses; tells where, since the system may have chosen the port.
    pub fn open(clock: HostClock, listen: &[Address], tell: &mut dyn FnMut(Event)) -> Result<Self, ServerError> {
        let mut doors = Vec::new();
        for address in listen {
            let wrong = |reason| ServerError::Listen { address: address.clone(), reason };
            let (door, at) = Door::open(address).map_err(wrong)?;
            tell(Event::Listens(at));
            doors.push(door);
        }
        let dice = Dice::new(clock.ticks());
        Ok(Self { clock, doors, connections: Vec::new(), dice, cut: Chance::default() })
    }

    /// How often a request ends its connection, from here on.
    pub fn set_cut(&mut self, cut: Chance) {
        self.cut = cut;
    }

    /// One turn: lets in, takes requests, says reports. Says how much there was to do.
    pub fn turn<C: Clock>(&mut self, line: &mut Line<C>, tell: &mut dyn FnMut(Event)) -> Result<usize, LineError> {
        let mut done = self.let_in();
        for place in 0..self.connections.len() {
            done += self.serve(place, line, tell)?;
        }
        self.connections.retain(|connection| match &connection.over {
            Some(why) if connection.way.is_some() => {
                tell(Event::LineGone { line: connection.name.clone(), why: why.clone() });
                false
            }
            over => over.is_none(),
        });
        Ok(done)
    }

    /// Sleeps until there is something to read, or `timeout_ns` is over. What is said later for another reason waits as
    /// long.
    pub fn sleep(&self, timeout_ns: u64) {
        let sockets = self.connections.iter().map(|connection| connection.channel.as_fd());
        let doors = self.doors.iter().map(|door| match door {
            Door::Tcp(listener) => listener.as_fd(),
            Door::Unix(listener) => listener.as_fd(),
        });
        let mut looks: Vec<PollFd<'_>> =
            sockets.chain(doors).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ns.min(999_999_999) as i64 };
        // An interrupted sleep is over like any other.
        let _ = poll(&mut looks, Some(&timeout));
    }

    fn let_in(&mut self) -> usize {
        let mut done = 0;
        for door in &self.doors {
            while self.connections.len() < MOST
                && let Ok(socket) = door.accept()
            {
                let channel = Channel::new(self.clock, socket);
                self.connections.push(Connection { channel, name: String::new(), way: None, next: 0, over: None });
                done += 1;
            }
        }
        done
    }

    fn serve<C: Clock>(
        &mut self,
        place: usize,
        line: &mut Line<C>,
        tell: &mut dyn FnMut(Event),
    ) -> Result<usize, LineError> {
        let connection = &mut self.connections[place];
        let flushed = usize::from(connection.channel.flush());
        if line.halts() && connection.way.is_some() {
            connection.channel.forgive();
            return Ok(flushed + connection.say(line));
        }
        let heard = match connection.channel.read() {
            Ok(false) => 0,
            // What cannot be sent is not worth taking: it is asked for again.
            Ok(true) => match connection.hear(line, &mut self.dice, self.cut)? {
                Heard::Frames(frames) => frames,
                Heard::Logon => {
                    self.welcome(place, tell);
                    1
                }
            },
            Err(why) => {
                connection.over = Some(why);
                0
            }
        };
        Ok(flushed + heard + self.connections[place].say(line))
    }

    /// Who comes back takes the place of who it was.
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

/// What was heard of a connection.
enum Heard {
    Frames(usize),
    Logon,
}

impl Connection {
    fn hear<C: Clock>(&mut self, line: &mut Line<C>, dice: &mut Dice, cut: Chance) -> Result<Heard, LineError> {
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
                (LOGON, None) => {
                    let logon: Logon = frame.message();
                    if logon.magic != MAGIC {
                        self.refuse("this is no line to an exchange");
                        break false;
                    }
                    self.name = String::from_utf8_lossy(&frame.text[..frame.text.len().min(64)]).into_owned();
                    let (way, welcome) = line.logon(&logon)?;
                    (self.way, self.next, came) = (Some(way), welcome.next_report, true);
                    self.channel.say(WELCOME, 0, line.now(), welcome.as_bytes(), &[]);
                }
                (_, None) => {
                    self.refuse("a logon comes first");
                    break false;
                }
                (HEARTBEAT, Some(way)) => line.confirmed_by(way, frame.sequence)?,
                (kind, Some(way)) => match Request::read(kind, frame.payload) {
                    Ok(request) => {
                        let number = frame.sequence;
                        let is_cut = dice.happens(cut);
                        // Half of them before it is taken.
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

    /// Says what there is to say by now.
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
        self.over = Some(why.to_owned());
    }
}

impl Door {
    fn open(address: &Address) -> io::Result<(Self, Address)> {
        match address {
            Address::Tcp { host, port } => {
                let listener = TcpListener::bind((host.as_str(), *port))?;
                listener.set_nonblocking(true)?;
                let port = listener.local_addr()?.port();
                Ok((Self::Tcp(listener), Address::Tcp { host: host.clone(), port }))
            }
            Address::Unix(path) => {
                remove_dead(path)?;
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Ok((Self::Unix(listener), address.clone()))
            }
        }
    }

    fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Socket::Unix(stream))
            }
        }
    }
}

/// The socket of a venue that was killed is in the way; one that somebody listens on is left alone.
fn remove_dead(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let is_dead = is_socket
        && std::os::unix::net::UnixStream::connect(path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
    if is_dead { std::fs::remove_file(path) } else { Ok(()) }
}
