//! The door: a thread that listens and hears logons. Whoever has not logged in costs the core nothing, however many they
//! are and however slowly they speak.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Token};
use tickpath_clock::Clock;
use tickpath_session::scram::{Secret, ServerLogon};
use tickpath_session::{Inbox, Kind, Logon, MAGIC, Refusal, Refused, VERSION, write_with_text};
use zerocopy::IntoBytes;

use super::books::{Books, Known, NewDesk};
use super::stream::Stream;
use super::{OpenError, ServerConfig, ServerEvent};
use crate::settings::{User, Users};

/// Who knocks at once; of more the longest there goes.
const MOST_KNOCKS: usize = 256;
/// Who has not logged in after so long goes.
const PATIENCE_NS: u64 = 5_000_000_000;
/// What a wrong password costs.
const PENALTY_NS: u64 = 1_000_000_000;
/// Who is taken in at once, before those who knock already are heard.
const MOST_TAKEN: usize = 64;
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
}

/// The thread, which ends with this.
pub(crate) struct Door {
    known: Arc<Known>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Removed at the end.
    unix: Option<PathBuf>,
}

impl Door {
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
    ) -> Result<Self, OpenError> {
        let mut porter = Porter::open(clock, config, admitted, desks)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, known) = (stop.clone(), porter.known.clone());
        let work = move || porter.work(&theirs);
        let thread = std::thread::Builder::new().name("oms-door".into()).spawn(work).map_err(OpenError::Thread)?;
        Ok(Self { known, stop, thread: Some(thread), unix: config.unix.clone() })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(path) = &self.unix {
            let _ = fs::remove_file(path);
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
    /// For secrets of users that do not exist.
    key: [u8; 32],
}

/// Somebody who has not logged in.
struct Knock {
    token: Token,
    stream: Stream,
    inbox: Inbox,
    since: u64,
    stage: Stage,
}

enum Stage {
    Logon,
    Proof(Box<ServerLogon>, Logon),
    /// It hears this at that time, and goes.
    Refusing(u64, Refusal, String),
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
    ) -> Result<Self, OpenError> {
        let poll = Poll::new().map_err(OpenError::Sockets)?;
        let listen = |place: String, reason| OpenError::Listen { place, reason };
        let mut tcp = None;
        if let Some(address) = config.tcp {
            let failed = |e| listen(address.to_string(), e);
            let mut listener = TcpListener::bind(address).map_err(failed)?;
            let here = listener.local_addr().map_err(failed)?;
            poll.registry().register(&mut listener, TCP, Interest::READABLE).map_err(failed)?;
            let _ = config.events.try_send(ServerEvent::Listening(format!("tcp://{here}")));
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
        let key = random_key()?;
        let (knocks, next_token) = (VecDeque::new(), FIRST);
        let config = config.clone();
        Ok(Self { clock, config, admitted, poll, tcp, unix, knocks, next_token, known, books, key })
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
            more = [TCP, UNIX].map(|token| self.accept(token)).contains(&true);
            self.look();
        }
    }

    /// Takes some of those who stand there; true if more may.
    fn accept(&mut self, token: Token) -> bool {
        for _ in 0..MOST_TAKEN {
            let accepted = match (token, &self.tcp, &self.unix) {
                (TCP, Some(tcp), _) => tcp.accept().map(|(stream, _)| {
                    let _ = stream.set_nodelay(true);
                    Stream::Tcp(stream)
                }),
                (UNIX, _, Some(unix)) => unix.accept().map(|(stream, _)| Stream::Unix(stream)),
                _ => return false,
            };
            let mut stream = match accepted {
                Ok(stream) => stream,
                // Of one that is gone already the next is asked for; without descriptors the others wait.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(_) => return false,
            };
            if self.knocks.len() == MOST_KNOCKS {
                self.knocks.pop_front();
            }
            let token = Token(self.next_token);
            self.next_token = self.next_token.checked_add(1).unwrap_or(FIRST);
            if self.poll.registry().register(&mut stream, token, Interest::READABLE).is_ok() {
                let since = self.clock.ticks();
                self.knocks.push_back(Knock { token, stream, inbox: Inbox::default(), since, stage: Stage::Logon });
            }
        }
        true
    }

    /// Hears one of them out.
    fn turn(&mut self, token: Token) {
        let Some(place) = self.knocks.iter().position(|knock| knock.token == token) else { return };
        let Some(mut knock) = self.knocks.remove(place) else { return };
        match self.hear(&mut knock) {
            Turn::Stays => self.knocks.insert(place, knock),
            Turn::Gone => {}
            Turn::Admitted(user, logon, server_final) => self.admit(knock, user, logon, server_final),
        }
    }

    fn hear(&mut self, knock: &mut Knock) -> Turn {
        loop {
            if matches!(knock.stage, Stage::Refusing(..)) {
                return Turn::Stays;
            }
            match knock.stream.read(knock.inbox.room()) {
                Ok(0) => return Turn::Gone,
                Ok(bytes) => knock.inbox.filled(bytes),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Turn::Stays,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Turn::Gone,
            }
            // It says one thing and waits for the answer: whoever says more before is not one of ours.
            let heard = match knock.inbox.next() {
                Ok(None) => continue,
                Ok(Some(frame)) => Ok((frame.kind, frame.message::<Logon>(), frame.text.to_vec())),
                Err(e) => Err(e.to_string()),
            };
            let answered = heard.and_then(|(kind, logon, text)| self.answer(knock, kind, logon, &text));
            match answered {
                Ok(Some(admitted)) => return admitted,
                Ok(None) => {}
                Err(why) => self.refuse(knock, 0, Refusal::Protocol, why),
            }
        }
    }

    fn answer(&mut self, knock: &mut Knock, kind: u8, logon: Logon, text: &[u8]) -> Result<Option<Turn>, String> {
        match (std::mem::replace(&mut knock.stage, Stage::Logon), Kind::from_code(kind)) {
            (Stage::Logon, Some(Kind::Logon)) => {
                if logon.magic != MAGIC || logon.version == 0 {
                    return Err("this is no logon of ours; is the client of another protocol?".to_owned());
                }
                let (users, key) = (self.known.get(), &self.key);
                let find = |name: &str| {
                    // Made for whoever comes, so that the time does not tell who exists.
                    let decoy = Secret::decoy(key, name);
                    users.find(name).filter(|user| !user.disabled).map_or(decoy, |user| user.secret.clone())
                };
                let (server, challenge) = ServerLogon::begin(text, find).map_err(|e| e.to_string())?;
                let mut out = Vec::new();
                write_with_text(&mut out, Kind::Challenge.code(), 0, self.clock.ticks(), &[], &challenge);
                knock.stage = Stage::Proof(Box::new(server), logon);
                // A fresh socket takes so little at once.
                knock.stream.write_all(&out).map_err(|e| e.to_string())?;
                Ok(None)
            }
            (Stage::Proof(server, logon), Some(Kind::Proof)) => {
                let name = server.user().to_owned();
                let user = self.known.get().find(&name).filter(|user| !user.disabled).cloned();
                match (server.verify(text), user) {
                    (Ok(server_final), Some(user)) => Ok(Some(Turn::Admitted(Arc::new(user), logon, server_final))),
                    _ => {
                        let penalty = self.clock.calibration().ticks_of_ns(PENALTY_NS);
                        let why = format!("the user '{name}' or the password is wrong");
                        self.refuse(knock, penalty, Refusal::Password, why);
                        Ok(None)
                    }
                }
            }
            _ => Err(format!("a frame of kind {kind} is none that a logon has; log in first")),
        }
    }

    /// It hears that after so many ticks, and nothing that it says changes it.
    fn refuse(&self, knock: &mut Knock, after: u64, refusal: Refusal, why: String) {
        let _ = self.config.events.try_send(ServerEvent::Refused { from: knock.stream.peer(), why: why.clone() });
        knock.stage = Stage::Refusing(self.clock.ticks() + after, refusal, why);
    }

    fn admit(&mut self, knock: Knock, user: Arc<User>, logon: Logon, server_final: Vec<u8>) {
        let Knock { mut stream, inbox, .. } = knock;
        if self.poll.registry().deregister(&mut stream).is_err() {
            return;
        }
        let logon = Logon { version: logon.version.min(VERSION), ..logon };
        // The gateway takes them at every turn; one that has ended has no use for them.
        let _ = self.admitted.send(Admitted { stream, inbox, user, logon, server_final });
    }

    /// Sends away whose time is over, and reads the users again if their file has changed.
    fn look(&mut self) {
        let now = self.clock.ticks();
        let patience = self.clock.calibration().ticks_of_ns(PATIENCE_NS);
        let gone = |knock: &mut Knock| match &knock.stage {
            Stage::Refusing(at, refusal, why) if now >= *at => {
                tell_refusal(&mut knock.stream, now, *refusal, why);
                true
            }
            _ => now.saturating_sub(knock.since) > patience,
        };
        self.knocks.retain_mut(|knock| !gone(knock));
        self.books.look();
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

/// A key that nobody knows.
fn random_key() -> Result<[u8; 32], OpenError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|e| OpenError::Sockets(e.into()))?;
    Ok(key)
}
