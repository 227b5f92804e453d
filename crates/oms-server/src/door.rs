//! The acceptor: a thread that listens and reads logons. Connections without a logon cost the core nothing, however
//! many they are and however slowly they send.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Token};
use tickpath_clock::Clock;
use tickpath_log::Lanes;
use tickpath_oms_protocol::scram::{Decoys, ServerLogon};
use tickpath_oms_protocol::{FrameError, Inbox, Kind, Logon, MAGIC, Refusal, Refused, VERSION, write_with_text};
use zerocopy::IntoBytes;

use super::accept::{Shortage, has_descriptor, is_short, open_files_limit};
use super::books::{Books, Known, NewDesk};
use super::config::ServerConfig;
use super::descriptors::UNKNOWN_CONNECTIONS;
use super::error::OpenError;
use super::escape::escaped;
use super::event::ServerEvent;
use super::file::{DECOYS, kept_key};
use super::knock::{Begun, Guesses, Knock, Stage, least_welcome};
use super::room::Room;
use super::stream::Stream;
use super::tls::Certificate;
use crate::settings::{User, Users};

/// Max unauthenticated connections; beyond it the busiest origin loses one.
const MOST_KNOCKS: usize = UNKNOWN_CONNECTIONS;
/// Time limit of a logon.
const PATIENCE_NS: u64 = 5_000_000_000;
/// Wait after a wrong password.
const PENALTY_NS: u64 = 1_000_000_000;
/// Max accepts per listener and turn, before the connections already there are served.
const MOST_TAKEN: usize = 64;
/// Max reads per connection and turn; a connection with more to read is closed as no client.
const MOST_READS: usize = 256;
/// First byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 22;
/// Interval between two checks of deadlines and of the users' file.
const LOOK: Duration = Duration::from_millis(50);

const TCP: Token = Token(0);
const UNIX: Token = Token(1);
/// First token of the unauthenticated connections.
const FIRST: usize = 2;

/// A client that has logged in.
pub(crate) struct Admitted {
    pub stream: Stream,
    pub inbox: Inbox,
    pub user: Arc<User>,
    pub logon: Logon,
    /// Server-final message of SCRAM, for the welcome.
    pub server_final: Vec<u8>,
    /// Lanes that the logon asked for, made in the acceptor because that takes time; and the memory for the client.
    pub lanes: Option<(Lanes, [OwnedFd; 2])>,
}

/// The acceptor's thread; dropping this ends it.
pub(crate) struct Door {
    known: Arc<Known>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Path of the Unix socket, removed at the end if the socket there is still the one that was bound.
    unix: Option<(PathBuf, Bound)>,
}

impl Door {
    /// Returns the user directory.
    pub fn known(&self) -> Arc<Known> {
        self.known.clone()
    }

    /// Returns the users and their change count, if that count differs from `changes`.
    pub fn users_since(&self, changes: u64) -> Option<(u64, Arc<Users>)> {
        self.known.since(changes)
    }

    /// Starts to listen. Clients that have logged in are sent to `admitted`.
    pub fn open<C: Clock>(
        clock: C,
        config: &ServerConfig,
        admitted: SyncSender<Admitted>,
        desks: Sender<NewDesk>,
        room: Room,
    ) -> Result<Self, OpenError> {
        let mut porter = Porter::open(clock, config, admitted, desks, room)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, known) = (stop.clone(), porter.known.clone());
        let bound = config.unix.as_deref().and_then(bound_at);
        let work = move || porter.work(&theirs);
        let thread = std::thread::Builder::new().name("oms-door".into()).spawn(work).map_err(OpenError::Thread)?;
        let unix = config.unix.clone().zip(bound);
        Ok(Self { known, stop, thread: Some(thread), unix })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // The path is checked while the thread has the socket open, so that its inode cannot be another socket's.
        if let Some((path, bound)) = &self.unix
            && bound_at(path) == Some(*bound)
        {
            let _ = fs::remove_file(path);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// State of the acceptor's thread.
struct Porter<C> {
    clock: C,
    config: ServerConfig,
    admitted: SyncSender<Admitted>,
    poll: Poll,
    tcp: Option<TcpListener>,
    unix: Option<UnixListener>,
    /// Unauthenticated connections by token, the oldest first.
    knocks: VecDeque<Knock>,
    next_token: usize,
    known: Arc<Known>,
    books: Books,
    /// Certificate of TCP connections; without one they are not encrypted.
    certificate: Option<Certificate>,
    guesses: Guesses,
    /// Stand-ins for secrets of users that do not exist, and the user directory's change count when they were made.
    decoys: Decoys,
    decoys_of: u64,
    /// Shortage of descriptors, and the pause that it causes.
    shortage: Shortage,
    /// The Unix socket accepts first in this turn: where descriptors are short, neither listener takes all of them.
    unix_first: bool,
    /// Free space of the journal's disk.
    room: Room,
}

/// Outcome of a turn of a connection.
enum Turn {
    Stays,
    Gone,
    Admitted(Arc<User>, Logon, Vec<u8>),
}

impl<C: Clock> Porter<C> {
    fn open(
        clock: C,
        config: &ServerConfig,
        admitted: SyncSender<Admitted>,
        desks: Sender<NewDesk>,
        room: Room,
    ) -> Result<Self, OpenError> {
        let poll = Poll::new().map_err(OpenError::Sockets)?;
        let listen = |place: String, reason| OpenError::Listen { place, reason };
        let certificate = config.tls.as_ref().map(Certificate::read).transpose()?;
        let mut tcp = None;
        if let Some(address) = config.tcp {
            let failed = |e| listen(address.to_string(), e);
            let mut listener = TcpListener::bind(address).map_err(failed)?;
            let here = listener.local_addr().map_err(failed)?;
            poll.registry().register(&mut listener, TCP, Interest::READABLE).map_err(failed)?;
            let scheme = if certificate.is_some() { "tls" } else { "tcp" };
            let _ = config.events.try_send(ServerEvent::Listening(format!("{scheme}://{here}")));
            tcp = Some(listener);
        }
        let mut unix = None;
        if let Some(path) = &config.unix {
            let failed = |e| listen(path.display().to_string(), e);
            let mut listener = bind_unix(path).map_err(failed)?;
            poll.registry().register(&mut listener, UNIX, Interest::READABLE).map_err(failed)?;
            let _ = config.events.try_send(ServerEvent::Listening(format!("unix://{}", path.display())));
            unix = Some(listener);
        }
        let books = Books::open(config, desks)?;
        let known = books.known();
        let key = kept_key(&room.folder().join(DECOYS)).unwrap_or_else(|e| {
            let why = format!(
                "{DECOYS} cannot be kept in {}: {e}; until it can, a restart tells strangers which users there are",
                room.folder().display()
            );
            let _ = config.events.try_send(ServerEvent::Warning(why));
            Decoys::draw_key()
        });
        let decoys = Decoys::with_key(key, known.get().list.iter().map(|user| &user.secret));
        let (knocks, next_token) = (VecDeque::new(), FIRST);
        tell_low_limit(config);
        let config = config.clone();
        Ok(Self {
            clock,
            config,
            admitted,
            poll,
            tcp,
            unix,
            knocks,
            next_token,
            known,
            books,
            certificate,
            guesses: Guesses::new(),
            decoys,
            decoys_of: 0,
            shortage: Shortage::default(),
            unix_first: false,
            room,
        })
    }

    fn work(&mut self, stop: &AtomicBool) {
        let mut events = Events::with_capacity(1024);
        let mut more = false;
        while !stop.load(Ordering::Acquire) {
            let pause = if more { Duration::ZERO } else { LOOK };
            if self.poll.poll(&mut events, Some(pause)).is_err() {
                continue;
            }
            let ready: Vec<Token> = events.iter().map(|event| event.token()).collect();
            ready.into_iter().for_each(|token| self.turn(token));
            // Not by event: connections that could not be accepted before cause none.
            self.unix_first = !self.unix_first;
            let listeners = if self.unix_first { [UNIX, TCP] } else { [TCP, UNIX] };
            more = listeners.map(|token| self.accept(token)).contains(&true);
            self.look();
        }
    }

    /// Accepts up to [`MOST_TAKEN`] connections; true if more may wait. Where descriptors are short the others wait,
    /// and no turn is spent on them before the pause is over.
    fn accept(&mut self, token: Token) -> bool {
        if !self.shortage.may_accept(self.clock.ticks()) {
            return false;
        }
        for _ in 0..MOST_TAKEN {
            let accepted = match (token, &self.tcp, &self.unix) {
                (TCP, Some(tcp), _) => has_descriptor(tcp).and_then(|()| tcp.accept()).map(|(stream, _)| {
                    let _ = stream.set_nodelay(true);
                    Stream::Tcp(stream)
                }),
                (UNIX, _, Some(unix)) => {
                    has_descriptor(unix).and_then(|()| unix.accept()).map(|(stream, _)| Stream::Unix(stream))
                }
                _ => return false,
            };
            let mut stream = match accepted {
                Ok(stream) => stream,
                // This connection has already been closed: take the next.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(e) if is_short(&e) => {
                    self.run_short(&e);
                    return false;
                }
                Err(_) => {
                    self.shortage.ends();
                    return false;
                }
            };
            self.shortage.ends();
            if self.knocks.len() == MOST_KNOCKS
                && let Some(place) = least_welcome(&self.knocks)
            {
                self.knocks.remove(place);
            }
            let token = Token(self.next_token);
            self.next_token = self.next_token.checked_add(1).unwrap_or(FIRST);
            if self.poll.registry().register(&mut stream, token, Interest::READABLE).is_ok() {
                let since = self.clock.ticks();
                let is_secure = self.certificate.is_some() && matches!(stream, Stream::Tcp(_));
                let stage = if is_secure { Stage::Hello } else { Stage::Logon };
                let (origin, inbox) = (stream.origin(), Inbox::default());
                self.knocks.push_back(Knock { token, stream, inbox, since, origin, stage });
            }
        }
        true
    }

    /// Pauses accepting, and warns the operator once per episode.
    fn run_short(&mut self, e: &io::Error) {
        let calibration = self.clock.calibration();
        if self.shortage.begins(self.clock.ticks(), |ns| calibration.ticks_of_ns(ns)) {
            let limit = open_files_limit().map_or("any number of".to_owned(), |limit| limit.to_string());
            let needed = self.config.files_needed();
            let why = format!(
                "no connection can be accepted ({e}): the limit is {limit} open files, and this configuration needs up to \
                 {needed}. Set LimitNOFILE={needed} in the systemd unit, or `ulimit -n {needed}`, and start the OMS again; \
                 until then connections wait for a free one"
            );
            let _ = self.config.events.try_send(ServerEvent::Warning(why));
        }
    }

    /// Runs a turn of one connection: reads and answers its frames.
    fn turn(&mut self, token: Token) {
        let Some(place) = self.knocks.iter().position(|knock| knock.token == token) else { return };
        let Some(knock) = self.knocks.remove(place) else { return };
        let Some(mut knock) = self.greet(knock) else { return };
        match self.hear(&mut knock) {
            Turn::Stays => self.knocks.insert(place, knock),
            Turn::Gone => {}
            Turn::Admitted(user, logon, server_final) => self.admit(knock, user, logon, server_final),
        }
    }

    /// Begins TLS where the listener requires it. Returns none if the connection is gone.
    fn greet(&mut self, mut knock: Knock) -> Option<Knock> {
        let (Stage::Hello, Stream::Tcp(tcp), Some(certificate)) = (&knock.stage, &knock.stream, &self.certificate)
        else {
            return Some(knock);
        };
        let mut first = [0];
        match tcp.peek(&mut first) {
            Ok(0) => return None,
            Ok(_) if first[0] == TLS_HANDSHAKE => {}
            Ok(_) => {
                let why = "this port speaks TLS only; connect by tls://HOST:PORT".to_owned();
                self.refuse(&mut knock, 0, Refusal::Protocol, why);
                return Some(knock);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Some(knock),
            Err(_) => return None,
        }
        let Knock { token, stream: Stream::Tcp(tcp), inbox, since, origin, .. } = knock else { return None };
        let stream = Stream::Tls(Box::new(certificate.secure(tcp).ok()?));
        Some(Knock { token, stream, inbox, since, origin, stage: Stage::Logon })
    }

    fn hear(&mut self, knock: &mut Knock) -> Turn {
        for _ in 0..MOST_READS {
            if matches!(knock.stage, Stage::Refusing(..) | Stage::Waits(..) | Stage::Hello) {
                return Turn::Stays;
            }
            match knock.stream.read(knock.inbox.room()) {
                Ok(0) => return Turn::Gone,
                Ok(bytes) => knock.inbox.filled(bytes),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Turn::Stays,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    // The client's own message may be better, but this one reaches the operator.
                    if e.kind() == io::ErrorKind::InvalidData {
                        self.tell(&knock.stream, &format!("no TLS with it: {e}"));
                    }
                    return Turn::Gone;
                }
            }
            // A client sends one frame and waits for the answer, so one frame per read is enough.
            let heard = match knock.inbox.next() {
                Ok(None) => continue,
                Ok(Some(frame)) => Ok((frame.kind, frame.message::<Logon>(), frame.text.to_vec())),
                Err(FrameError::Length(first))
                    if first as u8 == TLS_HANDSHAKE && matches!(knock.stream, Stream::Tcp(_)) =>
                {
                    Err("this port speaks no TLS; connect by tcp://HOST:PORT, or give the OMS a [tls]".to_owned())
                }
                Err(e) => Err(e.to_string()),
            };
            let answered = heard.and_then(|(kind, logon, text)| self.answer(knock, kind, logon, &text));
            match answered {
                Ok(Some(admitted)) => return admitted,
                Ok(None) => {}
                Err(why) => self.refuse(knock, 0, Refusal::Protocol, why),
            }
        }
        Turn::Gone
    }

    fn answer(&mut self, knock: &mut Knock, kind: u8, logon: Logon, text: &[u8]) -> Result<Option<Turn>, String> {
        match (std::mem::replace(&mut knock.stage, Stage::Logon), Kind::from_code(kind)) {
            (Stage::Logon, Some(Kind::Logon)) => {
                if logon.magic != MAGIC || logon.version == 0 {
                    return Err("this is no logon of ours; is the client of another protocol?".to_owned());
                }
                let binding = knock.stream.binding().map_err(|e| e.to_string())?;
                if let Some((changes, users)) = self.known.since(self.decoys_of) {
                    self.decoys.follow(users.list.iter().map(|user| &user.secret));
                    self.decoys_of = changes;
                }
                let (users, decoys) = (self.known.get(), &self.decoys);
                let find = |name: &str| {
                    // A decoy is made for each name, so that the time of the answer does not reveal which users exist.
                    // A disabled user keeps the challenge it had: a decoy would reveal the change.
                    let decoy = decoys.of(name);
                    users.find(name).map_or(decoy, |user| user.secret.clone())
                };
                let (server, challenge) =
                    ServerLogon::begin(text, binding.as_ref(), find).map_err(|e| e.to_string())?;
                let mut out = Vec::new();
                write_with_text(&mut out, Kind::Challenge.code(), 0, self.clock.ticks(), &[], &challenge);
                knock.stage = Stage::Proof(Box::new(Begun { server, logon, users }));
                // A new socket takes so few bytes at once.
                knock.stream.write_all(&out).map_err(|e| e.to_string())?;
                Ok(None)
            }
            (Stage::Proof(begun), Some(Kind::Proof)) => Ok(self.verify(knock, begun, text.to_vec())),
            _ => Err(format!("a frame of kind {kind} is none that a logon has; log in first")),
        }
    }

    /// Verifies a proof against the record that its challenge was made with, unless a wrong password delays it. Admits
    /// the user only if that record is still current.
    fn verify(&mut self, knock: &mut Knock, begun: Box<Begun>, proof: Vec<u8>) -> Option<Turn> {
        let (now, name) = (self.clock.ticks(), begun.server.user().to_owned());
        if !self.guesses.may_try(knock.origin, &name, now) {
            knock.stage = Stage::Waits(begun, proof);
            return None;
        }
        let Begun { server, logon, users } = *begun;
        let challenged = users.find(&name).filter(|user| !user.disabled);
        match (server.verify(&proof), challenged) {
            (Ok(server_final), Some(user)) if self.known.get().find(&name) == Some(user) => {
                Some(Turn::Admitted(Arc::new(user.clone()), logon, server_final))
            }
            (Ok(_), Some(_)) => {
                let why = format!("the record of user '{name}' has changed since this logon began; log in again");
                self.refuse(knock, 0, Refusal::NotYours, why);
                None
            }
            _ => {
                let penalty = self.clock.calibration().ticks_of_ns(PENALTY_NS);
                self.guesses.wait(knock.origin, &name, now + penalty);
                let why = format!("the user '{name}' or the password is wrong");
                self.refuse(knock, penalty, Refusal::Password, why);
                None
            }
        }
    }

    /// Verifies the proofs whose delay is over, one for each user and origin.
    fn verify_waiting(&mut self) {
        let now = self.clock.ticks();
        let may_try = |knock: &Knock, guesses: &Guesses| match &knock.stage {
            Stage::Waits(begun, _) => guesses.may_try(knock.origin, begun.server.user(), now),
            _ => false,
        };
        while let Some(place) = self.knocks.iter().position(|knock| may_try(knock, &self.guesses)) {
            let Some(mut knock) = self.knocks.remove(place) else { return };
            let Stage::Waits(begun, proof) = std::mem::replace(&mut knock.stage, Stage::Logon) else { return };
            match self.verify(&mut knock, begun, proof) {
                Some(Turn::Admitted(user, logon, server_final)) => self.admit(knock, user, logon, server_final),
                _ => self.knocks.insert(place, knock),
            }
        }
    }

    /// Refuses a connection: the client receives the reason after so many ticks, and no frame of it changes that.
    fn refuse(&self, knock: &mut Knock, after: u64, refusal: Refusal, why: String) {
        self.tell(&knock.stream, &why);
        knock.stage = Stage::Refusing(self.clock.ticks() + after, refusal, why);
    }

    /// Reports a refusal to the operator. Escapes the sentence, because a name in it may have any characters.
    fn tell(&self, stream: &Stream, why: &str) {
        let _ = self.config.events.try_send(ServerEvent::Refused { from: stream.peer(), why: escaped(why) });
    }

    fn admit(&mut self, knock: Knock, user: Arc<User>, logon: Logon, server_final: Vec<u8>) {
        let Knock { mut stream, inbox, .. } = knock;
        if self.poll.registry().deregister(&mut stream).is_err() {
            return;
        }
        let logon = Logon { version: logon.version.min(VERSION), ..logon };
        let wishes = logon.version >= 2 && logon.wishes & Logon::LANES != 0 && matches!(stream, Stream::Unix(_));
        // Without lanes, for lack of memory or on a kernel that cannot seal it, the socket serves as well.
        let lanes = wishes.then(Lanes::make).and_then(Result::ok);
        // The gateway receives at every turn; a send fails only when the gateway has ended.
        let _ = self.admitted.send(Admitted { stream, inbox, user, logon, server_final, lanes });
    }

    /// Runs the periodic work: delayed proofs, overdue connections, changed files, and the check of the disk.
    fn look(&mut self) {
        self.verify_waiting();
        let now = self.clock.ticks();
        let patience = self.clock.calibration().ticks_of_ns(PATIENCE_NS);
        let gone = |knock: &mut Knock| match &knock.stage {
            Stage::Refusing(at, refusal, why) if now >= *at => {
                tell_refusal(&mut knock.stream, now, *refusal, why);
                true
            }
            // It is closed at that time, however old the connection is.
            Stage::Refusing(..) => false,
            _ if now.saturating_sub(knock.since) <= patience => false,
            Stage::Waits(begun, _) => {
                let user = begun.server.user();
                let why = format!("wrong passwords of '{user}' come from where you are; wait a second and try again");
                tell_refusal(&mut knock.stream, now, Refusal::Full, &why);
                true
            }
            _ => true,
        };
        self.knocks.retain_mut(|knock| !gone(knock));
        self.books.look();
        if let Some(why) = self.room.look(now, |ns| self.clock.calibration().ticks_of_ns(ns)) {
            let _ = self.config.events.try_send(ServerEvent::Warning(why));
        }
        if let Some(Err(e)) = self.certificate.as_mut().map(Certificate::look) {
            let _ = self.config.events.try_send(ServerEvent::Certificate(e.to_string()));
        }
    }
}

/// Sends a refusal with its reason, as far as the socket takes it at once.
pub(crate) fn tell_refusal(stream: &mut Stream, now: u64, refusal: Refusal, why: &str) {
    let mut out = Vec::new();
    let refused = Refused { code: refusal.code(), reserved: [0; 6] };
    write_with_text(&mut out, Kind::Refused.code(), 0, now, refused.as_bytes(), why.as_bytes());
    let _ = stream.write(&out);
}

/// Binds a Unix socket that only this user can use. Replaces a socket on which no server listens any more.
fn bind_unix(path: &PathBuf) -> io::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there"));
    }
    match fs::symlink_metadata(path) {
        Ok(there) if std::os::unix::fs::FileTypeExt::is_socket(&there.file_type()) => fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file is there that is no socket")),
        Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Device and inode of a bound socket, which no other file has while the socket is open.
type Bound = (u64, u64);

fn bound_at(path: &Path) -> Option<Bound> {
    let there = fs::symlink_metadata(path).ok()?;
    Some((there.dev(), there.ino()))
}

/// Warns the operator at the start if the configuration needs more open files than this process may have.
fn tell_low_limit(config: &ServerConfig) {
    for why in config.settings.iter().flat_map(|settings| settings.limit_doubts()) {
        let _ = config.events.try_send(ServerEvent::Warning(why));
    }
}
