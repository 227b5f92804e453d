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
use tickpath_log::LanePair;
use tickpath_oms_protocol::scram::{Decoys, ServerLogon};
use tickpath_oms_protocol::{
    FrameBuffer, FrameError, FrameKind, Logon, LogonReject, LogonRejectReason, MAGIC, OrderEntryStream, VERSION,
    write_frame_with_text,
};
use zerocopy::IntoBytes;

use super::config::ServerConfig;
use super::config_reload::{ConfigReloader, NewTradingConfig, UserDirectory};
use super::descriptors::MAX_UNAUTHENTICATED;
use super::disk_space::DiskSpaceMonitor;
use super::error::ServerOpenError;
use super::escape::escaped;
use super::event::ServerEvent;
use super::file::{DECOY_KEY_FILE, load_or_create_key};
use super::pending_logon::{ChallengedLogon, LogonBackoff, LogonStage, PendingLogon, eviction_victim};
use super::shortage::{Shortage, check_descriptor, is_resource_shortage, open_files_limit};
use super::stream::ClientStream;
use super::tls::ServerCertificate;
use crate::settings::OmsUser;

/// Max unauthenticated connections; beyond it the busiest origin loses one.
const MAX_PENDING_LOGONS: usize = MAX_UNAUTHENTICATED;
/// Time limit of a logon.
const LOGON_TIMEOUT_NS: u64 = 5_000_000_000;
/// Wait after a wrong password.
const PENALTY_NS: u64 = 1_000_000_000;
/// Max accepts per listener and turn, before the connections already there are served.
const MAX_ACCEPTS: usize = 64;
/// Max reads per connection and turn; a connection with more to read is closed as no client.
const MAX_READS: usize = 256;
const TLS_HANDSHAKE: u8 = 22;
/// Interval between two checks of deadlines and of the users' file.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

const TCP: Token = Token(0);
const UNIX: Token = Token(1);
const FIRST: usize = 2;

pub(crate) struct AdmittedClient {
    pub stream: ClientStream,
    pub inbox: FrameBuffer,
    pub user: Arc<OmsUser>,
    pub logon: Logon,
    /// Server-final message of SCRAM, for the welcome.
    pub server_final: Vec<u8>,
    /// Lanes that the logon asked for, made in the acceptor because that takes time; and the memory for the client.
    pub lanes: Option<(LanePair, [OwnedFd; 2])>,
}

/// The acceptor's thread; dropping this ends it.
pub(crate) struct AcceptorThread {
    directory: Arc<UserDirectory>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Path of the Unix socket, removed at the end if the socket there is still the one that was bound.
    unix: Option<(PathBuf, SocketIdentity)>,
}

impl AcceptorThread {
    pub fn directory(&self) -> Arc<UserDirectory> {
        self.directory.clone()
    }

    /// Starts to listen. Clients that have logged in are sent to `admitted`.
    pub fn open<C: Clock>(
        clock: C,
        config: &ServerConfig,
        admitted: SyncSender<AdmittedClient>,
        configs: Sender<NewTradingConfig>,
        disk_space: DiskSpaceMonitor,
    ) -> Result<Self, ServerOpenError> {
        let mut acceptor = Acceptor::open(clock, config, admitted, configs, disk_space)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stop_of_thread, directory) = (stop.clone(), acceptor.directory.clone());
        let bound = config.unix.as_deref().and_then(socket_identity);
        let work = move || acceptor.work(&stop_of_thread);
        let thread =
            std::thread::Builder::new().name("oms-door".into()).spawn(work).map_err(ServerOpenError::Thread)?;
        let unix = config.unix.clone().zip(bound);
        Ok(Self { directory, stop, thread: Some(thread), unix })
    }
}

impl Drop for AcceptorThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // The path is checked while the thread has the socket open, so that its inode cannot be another socket's.
        if let Some((path, bound)) = &self.unix
            && socket_identity(path) == Some(*bound)
        {
            let _ = fs::remove_file(path);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Acceptor<C> {
    clock: C,
    config: ServerConfig,
    admitted: SyncSender<AdmittedClient>,
    poll: Poll,
    tcp: Option<TcpListener>,
    unix: Option<UnixListener>,
    /// Unauthenticated connections by token, the oldest first.
    pending: VecDeque<PendingLogon>,
    next_token: usize,
    directory: Arc<UserDirectory>,
    reloader: ConfigReloader,
    /// Certificate of TCP connections; without one they are not encrypted.
    certificate: Option<ServerCertificate>,
    backoff: LogonBackoff,
    /// Stand-ins for secrets of users that do not exist, and the user directory's change count when they were made.
    decoys: Decoys,
    decoys_version: u64,
    shortage: Shortage,
    /// The Unix socket accepts first in this turn: where descriptors are short, neither listener takes all of them.
    unix_first: bool,
    disk_space: DiskSpaceMonitor,
}

enum LogonOutcome {
    Pending,
    Closed,
    Admitted(Arc<OmsUser>, Logon, Vec<u8>),
}

impl<C: Clock> Acceptor<C> {
    fn open(
        clock: C,
        config: &ServerConfig,
        admitted: SyncSender<AdmittedClient>,
        configs: Sender<NewTradingConfig>,
        disk_space: DiskSpaceMonitor,
    ) -> Result<Self, ServerOpenError> {
        let poll = Poll::new().map_err(ServerOpenError::Sockets)?;
        let listen = |place: String, reason| ServerOpenError::Listen { place, reason };
        let certificate = config.tls.as_ref().map(ServerCertificate::read).transpose()?;
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
        let reloader = ConfigReloader::open(config, configs)?;
        let directory = reloader.directory();
        let key = load_or_create_key(&disk_space.folder().join(DECOY_KEY_FILE)).unwrap_or_else(|e| {
            let why = format!(
                "{DECOY_KEY_FILE} cannot be kept in {}: {e}; until it can, a restart tells strangers which users there are",
                disk_space.folder().display()
            );
            let _ = config.events.try_send(ServerEvent::Warning(why));
            Decoys::draw_key()
        });
        let decoys = Decoys::with_key(key, directory.current().list.iter().map(|user| &user.secret));
        warn_low_limit(config);
        let config = config.clone();
        Ok(Self {
            clock,
            config,
            admitted,
            poll,
            tcp,
            unix,
            pending: VecDeque::new(),
            next_token: FIRST,
            directory,
            reloader,
            certificate,
            backoff: LogonBackoff::new(),
            decoys,
            decoys_version: 0,
            shortage: Shortage::default(),
            unix_first: false,
            disk_space,
        })
    }

    fn work(&mut self, stop: &AtomicBool) {
        let mut events = Events::with_capacity(1024);
        let mut more = false;
        while !stop.load(Ordering::Acquire) {
            let pause = if more { Duration::ZERO } else { CHECK_INTERVAL };
            if self.poll.poll(&mut events, Some(pause)).is_err() {
                continue;
            }
            let ready: Vec<Token> = events.iter().map(|event| event.token()).collect();
            ready.into_iter().for_each(|token| self.serve(token));
            // Not by event: connections that could not be accepted before cause none.
            self.unix_first = !self.unix_first;
            let listeners = if self.unix_first { [UNIX, TCP] } else { [TCP, UNIX] };
            more = listeners.map(|token| self.accept(token)).contains(&true);
            self.run_checks();
        }
    }

    /// Accepts up to [`MAX_ACCEPTS`] connections; true if more may wait. Where descriptors are short the others wait,
    /// and no turn is spent on them before the pause is over.
    fn accept(&mut self, token: Token) -> bool {
        if !self.shortage.may_accept(self.clock.ticks()) {
            return false;
        }
        for _ in 0..MAX_ACCEPTS {
            let accepted = match (token, &self.tcp, &self.unix) {
                (TCP, Some(tcp), _) => check_descriptor(tcp).and_then(|()| tcp.accept()).map(|(stream, _)| {
                    let _ = stream.set_nodelay(true);
                    OrderEntryStream::Tcp(stream)
                }),
                (UNIX, _, Some(unix)) => check_descriptor(unix)
                    .and_then(|()| unix.accept())
                    .map(|(stream, _)| OrderEntryStream::Unix(stream)),
                _ => return false,
            };
            let mut stream = match accepted {
                Ok(stream) => ClientStream(stream),
                // This connection has already been closed: take the next.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(e) if is_resource_shortage(&e) => {
                    self.pause_accepting(&e);
                    return false;
                }
                Err(_) => {
                    self.shortage.reset_pause();
                    return false;
                }
            };
            self.shortage.reset_pause();
            if self.pending.len() == MAX_PENDING_LOGONS
                && let Some(index) = eviction_victim(&self.pending)
            {
                self.pending.remove(index);
            }
            let token = Token(self.next_token);
            self.next_token = self.next_token.checked_add(1).unwrap_or(FIRST);
            if self.poll.registry().register(stream.source(), token, Interest::READABLE).is_ok() {
                let since = self.clock.ticks();
                let is_secure = self.certificate.is_some() && matches!(stream.0, OrderEntryStream::Tcp(_));
                let stage = if is_secure { LogonStage::Hello } else { LogonStage::Logon };
                let (origin, inbox) = (stream.origin(), FrameBuffer::default());
                self.pending.push_back(PendingLogon { token, stream, inbox, since, origin, stage });
            }
        }
        true
    }

    /// Pauses accepting, and warns the operator once per episode.
    fn pause_accepting(&mut self, e: &io::Error) {
        let calibration = self.clock.calibration();
        if self.shortage.begin_pause(self.clock.ticks(), |ns| calibration.ticks_of_ns(ns)) {
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
    fn serve(&mut self, token: Token) {
        let Some(index) = self.pending.iter().position(|peer| peer.token == token) else { return };
        let Some(peer) = self.pending.remove(index) else { return };
        let Some(mut peer) = self.start_tls(peer) else { return };
        match self.read_logon(&mut peer) {
            LogonOutcome::Pending => self.pending.insert(index, peer),
            LogonOutcome::Closed => {}
            LogonOutcome::Admitted(user, logon, server_final) => self.admit(peer, user, logon, server_final),
        }
    }

    /// Begins TLS where the listener requires it. Returns none if the connection is gone.
    fn start_tls(&mut self, mut peer: PendingLogon) -> Option<PendingLogon> {
        let (LogonStage::Hello, OrderEntryStream::Tcp(tcp), Some(certificate)) =
            (&peer.stage, &peer.stream.0, &self.certificate)
        else {
            return Some(peer);
        };
        let mut first = [0];
        match tcp.peek(&mut first) {
            Ok(0) => return None,
            Ok(_) if first[0] == TLS_HANDSHAKE => {}
            Ok(_) => {
                let why = "this port speaks TLS only; connect by tls://HOST:PORT".to_owned();
                self.refuse(&mut peer, 0, LogonRejectReason::Protocol, why);
                return Some(peer);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Some(peer),
            Err(_) => return None,
        }
        let PendingLogon { token, stream: ClientStream(OrderEntryStream::Tcp(tcp)), inbox, since, origin, .. } = peer
        else {
            return None;
        };
        let stream = ClientStream(OrderEntryStream::Tls(Box::new(certificate.secure(tcp).ok()?)));
        Some(PendingLogon { token, stream, inbox, since, origin, stage: LogonStage::Logon })
    }

    fn read_logon(&mut self, peer: &mut PendingLogon) -> LogonOutcome {
        for _ in 0..MAX_READS {
            if matches!(peer.stage, LogonStage::Refusing(..) | LogonStage::Delayed(..) | LogonStage::Hello) {
                return LogonOutcome::Pending;
            }
            match peer.stream.read(peer.inbox.free_space()) {
                Ok(0) => return LogonOutcome::Closed,
                Ok(bytes) => peer.inbox.advance(bytes),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return LogonOutcome::Pending,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    // The client's own message may be better, but this one reaches the operator.
                    if e.kind() == io::ErrorKind::InvalidData {
                        self.report_refusal(&peer.stream, &format!("no TLS with it: {e}"));
                    }
                    return LogonOutcome::Closed;
                }
            }
            // A client sends one frame and waits for the answer, so one frame per read is enough.
            let received = match peer.inbox.next() {
                Ok(None) => continue,
                Ok(Some(frame)) => Ok((frame.kind, frame.message::<Logon>(), frame.text.to_vec())),
                Err(FrameError::Length(first))
                    if first as u8 == TLS_HANDSHAKE && matches!(peer.stream.0, OrderEntryStream::Tcp(_)) =>
                {
                    Err("this port speaks no TLS; connect by tcp://HOST:PORT, or give the OMS a [tls]".to_owned())
                }
                Err(e) => Err(e.to_string()),
            };
            let answered = received.and_then(|(kind, logon, text)| self.answer(peer, kind, logon, &text));
            match answered {
                Ok(Some(admitted)) => return admitted,
                Ok(None) => {}
                Err(why) => self.refuse(peer, 0, LogonRejectReason::Protocol, why),
            }
        }
        LogonOutcome::Closed
    }

    fn answer(
        &mut self,
        peer: &mut PendingLogon,
        kind: u8,
        logon: Logon,
        text: &[u8],
    ) -> Result<Option<LogonOutcome>, String> {
        match (std::mem::replace(&mut peer.stage, LogonStage::Logon), FrameKind::from_code(kind)) {
            (LogonStage::Logon, Some(FrameKind::Logon)) => {
                if logon.magic != MAGIC || logon.version == 0 {
                    return Err("this is no logon of ours; is the client of another protocol?".to_owned());
                }
                let binding = peer.stream.binding().map_err(|e| e.to_string())?;
                if let Some((changes, users)) = self.directory.changed_since(self.decoys_version) {
                    self.decoys.update(users.list.iter().map(|user| &user.secret));
                    self.decoys_version = changes;
                }
                let (users, decoys) = (self.directory.current(), &self.decoys);
                let find = |name: &str| {
                    // A decoy is made for each name, so that the time of the answer does not reveal which users exist.
                    // A disabled user keeps the challenge it had: a decoy would reveal the change.
                    let decoy = decoys.of(name);
                    users.find(name).map_or(decoy, |user| user.secret.clone())
                };
                let (server, challenge) =
                    ServerLogon::begin(text, binding.as_ref(), find).map_err(|e| e.to_string())?;
                let mut out = Vec::new();
                write_frame_with_text(&mut out, FrameKind::Challenge.code(), 0, self.clock.ticks(), &[], &challenge);
                peer.stage = LogonStage::Proof(Box::new(ChallengedLogon { server, logon, users }));
                // A new socket takes so few bytes at once.
                peer.stream.write_all(&out).map_err(|e| e.to_string())?;
                Ok(None)
            }
            (LogonStage::Proof(begun), Some(FrameKind::Proof)) => Ok(self.verify(peer, begun, text.to_vec())),
            _ => Err(format!("a frame of kind {kind} is none that a logon has; log in first")),
        }
    }

    /// Verifies a proof against the record that its challenge was made with, unless a wrong password delays it. Admits
    /// the user only if that record is still current.
    fn verify(&mut self, peer: &mut PendingLogon, begun: Box<ChallengedLogon>, proof: Vec<u8>) -> Option<LogonOutcome> {
        let (now, name) = (self.clock.ticks(), begun.server.user().to_owned());
        if !self.backoff.may_verify(peer.origin, &name, now) {
            peer.stage = LogonStage::Delayed(begun, proof);
            return None;
        }
        let ChallengedLogon { server, logon, users } = *begun;
        let challenged = users.find(&name).filter(|user| !user.disabled);
        match (server.verify(&proof), challenged) {
            (Ok(server_final), Some(user)) if self.directory.current().find(&name) == Some(user) => {
                Some(LogonOutcome::Admitted(Arc::new(user.clone()), logon, server_final))
            }
            (Ok(_), Some(_)) => {
                let why = format!("the record of user '{name}' has changed since this logon began; log in again");
                self.refuse(peer, 0, LogonRejectReason::NotPermitted, why);
                None
            }
            _ => {
                let penalty = self.clock.calibration().ticks_of_ns(PENALTY_NS);
                self.backoff.delay_until(peer.origin, &name, now + penalty);
                let why = format!("the user '{name}' or the password is wrong");
                self.refuse(peer, penalty, LogonRejectReason::Password, why);
                None
            }
        }
    }

    /// Verifies the proofs whose delay is over, one for each user and origin.
    fn verify_waiting(&mut self) {
        let now = self.clock.ticks();
        let may_try = |peer: &PendingLogon, backoff: &LogonBackoff| match &peer.stage {
            LogonStage::Delayed(begun, _) => backoff.may_verify(peer.origin, begun.server.user(), now),
            _ => false,
        };
        while let Some(index) = self.pending.iter().position(|peer| may_try(peer, &self.backoff)) {
            let Some(mut peer) = self.pending.remove(index) else { return };
            let LogonStage::Delayed(begun, proof) = std::mem::replace(&mut peer.stage, LogonStage::Logon) else {
                return;
            };
            match self.verify(&mut peer, begun, proof) {
                Some(LogonOutcome::Admitted(user, logon, server_final)) => self.admit(peer, user, logon, server_final),
                _ => self.pending.insert(index, peer),
            }
        }
    }

    /// Refuses a connection: the client receives the reason after so many ticks, and no frame of it changes that.
    fn refuse(&self, peer: &mut PendingLogon, after: u64, reason: LogonRejectReason, why: String) {
        self.report_refusal(&peer.stream, &why);
        peer.stage = LogonStage::Refusing(self.clock.ticks() + after, reason, why);
    }

    /// Reports a refusal to the operator. Escapes the sentence, because a name in it may have any characters.
    fn report_refusal(&self, stream: &ClientStream, why: &str) {
        let _ = self.config.events.try_send(ServerEvent::Refused { from: stream.peer(), why: escaped(why) });
    }

    fn admit(&mut self, peer: PendingLogon, user: Arc<OmsUser>, logon: Logon, server_final: Vec<u8>) {
        let PendingLogon { mut stream, inbox, .. } = peer;
        if self.poll.registry().deregister(stream.source()).is_err() {
            return;
        }
        let logon = Logon { version: logon.version.min(VERSION), ..logon };
        let wants_lanes =
            logon.version >= 2 && logon.features & Logon::LANES != 0 && matches!(stream.0, OrderEntryStream::Unix(_));
        // Without lanes, for lack of memory or on a kernel that cannot seal it, the socket serves as well.
        let lanes = wants_lanes.then(LanePair::create).and_then(Result::ok);
        // The gateway receives at every turn; a send fails only when the gateway has ended.
        let _ = self.admitted.send(AdmittedClient { stream, inbox, user, logon, server_final, lanes });
    }

    /// Runs the periodic work: delayed proofs, overdue connections, changed files, and the check of the disk.
    fn run_checks(&mut self) {
        self.verify_waiting();
        let now = self.clock.ticks();
        let timeout = self.clock.calibration().ticks_of_ns(LOGON_TIMEOUT_NS);
        let is_over = |peer: &mut PendingLogon| match &peer.stage {
            LogonStage::Refusing(at, reason, why) if now >= *at => {
                send_refusal(&mut peer.stream, now, *reason, why);
                true
            }
            // It is closed at that time, however old the connection is.
            LogonStage::Refusing(..) => false,
            _ if now.saturating_sub(peer.since) <= timeout => false,
            LogonStage::Delayed(begun, _) => {
                let user = begun.server.user();
                let why = format!("wrong passwords of '{user}' come from where you are; wait a second and try again");
                send_refusal(&mut peer.stream, now, LogonRejectReason::Full, &why);
                true
            }
            _ => true,
        };
        self.pending.retain_mut(|peer| !is_over(peer));
        self.reloader.check_files();
        if let Some(why) = self.disk_space.check(now, |ns| self.clock.calibration().ticks_of_ns(ns)) {
            let _ = self.config.events.try_send(ServerEvent::Warning(why));
        }
        if let Some(Err(e)) = self.certificate.as_mut().map(ServerCertificate::reload_if_changed) {
            let _ = self.config.events.try_send(ServerEvent::Certificate(e.to_string()));
        }
    }
}

/// Sends a refusal with its reason, as far as the socket takes it at once.
pub(crate) fn send_refusal(stream: &mut ClientStream, now: u64, reason: LogonRejectReason, why: &str) {
    let mut out = Vec::new();
    let reject = LogonReject { code: reason.code(), reserved: [0; 6] };
    write_frame_with_text(&mut out, FrameKind::Refused.code(), 0, now, reject.as_bytes(), why.as_bytes());
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
type SocketIdentity = (u64, u64);

fn socket_identity(path: &Path) -> Option<SocketIdentity> {
    let there = fs::symlink_metadata(path).ok()?;
    Some((there.dev(), there.ino()))
}

/// Warns the operator at the start if the configuration needs more open files than this process may have.
fn warn_low_limit(config: &ServerConfig) {
    for why in config.settings.iter().flat_map(|settings| settings.limit_warnings()) {
        let _ = config.events.try_send(ServerEvent::Warning(why));
    }
}
