//! The door: a thread that listens and hears logons. Whoever has not logged in costs the core nothing, however many they
//! are and however slowly they speak.

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
use tickpath_session::scram::{Decoys, ServerLogon};
use tickpath_session::{FrameError, Inbox, Kind, Logon, MAGIC, Refusal, Refused, VERSION, write_with_text};
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

/// Who knocks at once; of more, one of the origin goes that most come from.
const MOST_KNOCKS: usize = UNKNOWN_CONNECTIONS;
/// Who has not logged in after so long goes.
const PATIENCE_NS: u64 = 5_000_000_000;
/// What a wrong password costs.
const PENALTY_NS: u64 = 1_000_000_000;
/// Who is taken in at once, before those who knock already are heard.
const MOST_TAKEN: usize = 64;
/// Reads of one turn: who says nothing whole in so many is none of ours.
const MOST_READS: usize = 256;
/// The first byte of whoever wants TLS.
const TLS_HANDSHAKE: u8 = 22;
/// Between two looks at deadlines and at the users' file.
const LOOK: Duration = Duration::from_millis(50);

const TCP: Token = Token(0);
const UNIX: Token = Token(1);
/// Tokens of those who knock begin here.
const FIRST: usize = 2;

/// A client that has logged in.
pub(crate) struct Admitted {
    pub stream: Stream,
    pub inbox: Inbox,
    pub user: Arc<User>,
    pub logon: Logon,
    /// The last word of SCRAM, for the welcome.
    pub server_final: Vec<u8>,
    /// What it wished for, made here because that takes time; and the memory for the client.
    pub lanes: Option<(Lanes, [OwnedFd; 2])>,
}

/// The thread, which ends with this.
pub(crate) struct Door {
    known: Arc<Known>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Removed at the end, if it is still this one.
    unix: Option<(PathBuf, Bound)>,
}

impl Door {
    /// Who may log in.
    pub fn known(&self) -> Arc<Known> {
        self.known.clone()
    }

    /// The users, if they have changed since so many changes; and how many there were.
    pub fn users_since(&self, changes: u64) -> Option<(u64, Arc<Users>)> {
        self.known.since(changes)
    }

    /// Listens. Who comes in goes to `admitted`.
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
        // While the thread has it open.
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

/// What the thread does.
struct Porter<C> {
    clock: C,
    config: ServerConfig,
    admitted: SyncSender<Admitted>,
    poll: Poll,
    tcp: Option<TcpListener>,
    unix: Option<UnixListener>,
    /// By token, the longest there first.
    knocks: VecDeque<Knock>,
    next_token: usize,
    known: Arc<Known>,
    books: Books,
    /// What is shown to those who come by TCP; without it they speak as they come.
    certificate: Option<Certificate>,
    guesses: Guesses,
    /// Stand for the secrets of users that do not exist; and how often the users had changed when these were made.
    decoys: Decoys,
    decoys_of: u64,
    /// Descriptors may be short.
    shortage: Shortage,
    /// The Unix socket's turn to accept first: where descriptors are short, neither listener takes all of them.
    unix_first: bool,
    /// What is left of the journal's disk.
    room: Room,
}

/// What a turn with somebody came to.
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
            // Not by event: there is none for who could not be taken before.
            self.unix_first = !self.unix_first;
            let listeners = if self.unix_first { [UNIX, TCP] } else { [TCP, UNIX] };
            more = listeners.map(|token| self.accept(token)).contains(&true);
            self.look();
        }
    }

    /// Takes some of those who stand there; true if more may. Where descriptors are short the others wait, and no turn is
    /// spent on them before the pause is over.
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
                // Of one that is gone already the next is asked for.
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

    /// Pauses accepting, and tells the operator of it once an episode.
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

    /// Hears one of them out.
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

    /// Encrypts what comes if it must be; none if it has gone.
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
                    // The client's own sentence may be better, but this one is here.
                    if e.kind() == io::ErrorKind::InvalidData {
                        self.tell(&knock.stream, &format!("no TLS with it: {e}"));
                    }
                    return Turn::Gone;
                }
            }
            // It says one thing and waits for the answer: whoever says more before is not one of ours.
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
                    // Made for each name, so that the time does not tell which of them exist. A disabled user's challenge
                    // stays as it was: a decoy would tell that something has changed.
                    let decoy = decoys.of(name);
                    users.find(name).map_or(decoy, |user| user.secret.clone())
                };
                let (server, challenge) =
                    ServerLogon::begin(text, binding.as_ref(), find).map_err(|e| e.to_string())?;
                let mut out = Vec::new();
                write_with_text(&mut out, Kind::Challenge.code(), 0, self.clock.ticks(), &[], &challenge);
                knock.stage = Stage::Proof(Box::new(Begun { server, logon, users }));
                // A fresh socket takes so little at once.
                knock.stream.write_all(&out).map_err(|e| e.to_string())?;
                Ok(None)
            }
            (Stage::Proof(begun), Some(Kind::Proof)) => Ok(self.verify(knock, begun, text.to_vec())),
            _ => Err(format!("a frame of kind {kind} is none that a logon has; log in first")),
        }
    }

    /// Looks at a proof, if it need not wait for others. It is held against the record that its challenge was made with,
    /// and admits only while that record still holds.
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

    /// Looks at the proofs that have waited long enough, one for each user and origin.
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

    /// It hears that after so many ticks, and nothing that it says changes it.
    fn refuse(&self, knock: &mut Knock, after: u64, refusal: Refusal, why: String) {
        self.tell(&knock.stream, &why);
        knock.stage = Stage::Refusing(self.clock.ticks() + after, refusal, why);
    }

    /// Tells the operator; a name in it may be of any characters.
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
        // Without memory, or on a kernel that cannot seal it, the socket serves as well.
        let lanes = wishes.then(Lanes::make).and_then(Result::ok);
        // The gateway takes them at every turn; one that has ended has no use for them.
        let _ = self.admitted.send(Admitted { stream, inbox, user, logon, server_final, lanes });
    }

    /// Sends away whose time is over, and reads the users again if their file has changed.
    fn look(&mut self) {
        self.verify_waiting();
        let now = self.clock.ticks();
        let patience = self.clock.calibration().ticks_of_ns(PATIENCE_NS);
        let gone = |knock: &mut Knock| match &knock.stage {
            Stage::Refusing(at, refusal, why) if now >= *at => {
                tell_refusal(&mut knock.stream, now, *refusal, why);
                true
            }
            // It waits for that, however long it has been here.
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

/// Says why, if the socket takes it at once.
pub(crate) fn tell_refusal(stream: &mut Stream, now: u64, refusal: Refusal, why: &str) {
    let mut out = Vec::new();
    let refused = Refused { code: refusal.code(), reserved: [0; 6] };
    write_with_text(&mut out, Kind::Refused.code(), 0, now, refused.as_bytes(), why.as_bytes());
    let _ = stream.write(&out);
}

/// A socket that only this user can use. One that nobody listens on any more is taken over.
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

/// Which socket it is that lies there: its device and its inode, which no other has while it is open.
type Bound = (u64, u64);

fn bound_at(path: &Path) -> Option<Bound> {
    let there = fs::symlink_metadata(path).ok()?;
    Some((there.dev(), there.ino()))
}

/// Tells an operator at the start that the configuration needs more open files than this process may have.
fn tell_low_limit(config: &ServerConfig) {
    for why in config.settings.iter().flat_map(|settings| settings.limit_doubts()) {
        let _ = config.events.try_send(ServerEvent::Warning(why));
    }
}
