//! The acceptor: a thread that listens and reads logons. Connections without a logon cost the core nothing, however
//! many they are and however slowly they send.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
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
use tickpath_oms_protocol::{
    FrameBuffer, FrameKind, Logon, LogonReject, LogonRejectReason, OrderEntryStream, VERSION, write_frame_with_text,
};
use zerocopy::IntoBytes;

use super::authenticator::{Authenticator, LogonOutcome};
use super::config::ServerConfig;
use super::config_reload::{ConfigReloader, NewTradingConfig, UserDirectory};
use super::descriptors::MAX_UNAUTHENTICATED;
use super::disk_space::DiskSpaceMonitor;
use super::error::ServerOpenError;
use super::event::ServerEvent;
use super::pending_logon::{LogonStage, PendingLogon, TLS_HANDSHAKE, eviction_victim};
use super::shortage::{Shortage, check_descriptor, is_resource_shortage, open_files_limit};
use super::stream::ClientStream;
use super::tls::ServerCertificate;
use crate::settings::OmsUser;

const LOGON_TIMEOUT_NS: u64 = 5_000_000_000;
/// Max accepts per listener and turn, before the connections already there are served.
const MAX_ACCEPTS: usize = 64;
/// Interval between two checks of deadlines without a connection, and at least between two checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

const TCP: Token = Token(0);
const UNIX: Token = Token(1);
const FIRST: usize = 2;

/// A client that has logged in.
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

impl AdmittedClient {
    /// Refuses the client, and reports that to the operator.
    pub fn refuse(&mut self, now: u64, reason: LogonRejectReason, why: &str, events: &SyncSender<ServerEvent>) {
        let (from, sentence) = (self.stream.peer(), format!("{}: {why}", self.user.name));
        send_refusal(&mut self.stream, now, reason, why);
        let _ = events.try_send(ServerEvent::Refused { from, why: sentence });
    }
}

/// The acceptor's thread; dropping this ends it.
pub(crate) struct AcceptorThread {
    pub directory: Arc<UserDirectory>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Path of the Unix socket, removed at the end if the socket there is still the one that was bound.
    unix: Option<(PathBuf, SocketIdentity)>,
}

impl AcceptorThread {
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
        let (stop_of_thread, directory) = (stop.clone(), acceptor.reloader.directory.clone());
        let bound = config.unix.as_deref().and_then(socket_identity);
        let work = move || acceptor.work(&stop_of_thread);
        let thread =
            std::thread::Builder::new().name("oms-acceptor".into()).spawn(work).map_err(ServerOpenError::Thread)?;
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
    authenticator: Authenticator<C>,
    reloader: ConfigReloader,
    /// Certificate of TCP connections; without one they are not encrypted.
    certificate: Option<ServerCertificate>,
    shortage: Shortage,
    /// The Unix socket accepts first in this turn: where few are free, neither listener takes all descriptors.
    unix_first: bool,
    disk_space: DiskSpaceMonitor,
    /// Time of the next check of the users' file and the certificate, in ticks.
    check_files_at: u64,
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
        let certificate = config.tls.as_ref().map(ServerCertificate::read).transpose()?;
        let mut tcp = None;
        if let Some(address) = config.tcp {
            let failed = |e| ServerOpenError::Listen(address.to_string(), e);
            let mut listener = TcpListener::bind(address).map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            poll.registry().register(&mut listener, TCP, Interest::READABLE).map_err(failed)?;
            let scheme = if certificate.is_some() { "tls" } else { "tcp" };
            let _ = config.events.try_send(ServerEvent::Listening(format!("{scheme}://{bound}")));
            tcp = Some(listener);
        }
        let mut unix = None;
        if let Some(path) = &config.unix {
            let failed = |e| ServerOpenError::Listen(path.display().to_string(), e);
            let mut listener = bind_unix(path).map_err(failed)?;
            poll.registry().register(&mut listener, UNIX, Interest::READABLE).map_err(failed)?;
            let _ = config.events.try_send(ServerEvent::Listening(format!("unix://{}", path.display())));
            unix = Some(listener);
        }
        let reloader = ConfigReloader::open(config, configs)?;
        let authenticator = Authenticator::open(clock.clone(), config, reloader.directory.clone(), &disk_space.folder);
        for why in config.settings.iter().flat_map(|settings| settings.limit_warnings()) {
            let _ = config.events.try_send(ServerEvent::Warning(why));
        }
        Ok(Self {
            clock,
            config: config.clone(),
            admitted,
            poll,
            tcp,
            unix,
            pending: VecDeque::new(),
            next_token: FIRST,
            authenticator,
            reloader,
            certificate,
            shortage: Shortage::default(),
            unix_first: false,
            disk_space,
            check_files_at: 0,
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

    /// Accepts up to [`MAX_ACCEPTS`] connections, unless descriptors are short; true if more may wait.
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
            if self.pending.len() == MAX_UNAUTHENTICATED
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
                 until then connections wait for a free file descriptor"
            );
            let _ = self.config.events.try_send(ServerEvent::Warning(why));
        }
    }

    /// Runs a turn of one connection: reads and answers its frames.
    fn serve(&mut self, token: Token) {
        let Some(index) = self.pending.iter().position(|peer| peer.token == token) else { return };
        let outcome = match self.start_tls(index) {
            LogonOutcome::Pending => self.authenticator.read_logon(&mut self.pending[index]),
            ended => ended,
        };
        self.end_turn(index, outcome);
    }

    /// Begins TLS where the listener requires it. The connection keeps its place among the others.
    fn start_tls(&mut self, index: usize) -> LogonOutcome {
        let peer = &mut self.pending[index];
        let (LogonStage::Hello, OrderEntryStream::Tcp(tcp), Some(certificate)) =
            (&peer.stage, &peer.stream.0, &self.certificate)
        else {
            return LogonOutcome::Pending;
        };
        let mut first = [0];
        match tcp.peek(&mut first) {
            Ok(0) => return LogonOutcome::Closed,
            Ok(_) if first[0] == TLS_HANDSHAKE => {}
            Ok(_) => {
                let why = "this port accepts TLS only; connect by tls://HOST:PORT".to_owned();
                self.authenticator.refuse(peer, 0, LogonRejectReason::Protocol, why);
                return LogonOutcome::Pending;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return LogonOutcome::Pending,
            Err(_) => return LogonOutcome::Closed,
        }
        let Ok(tls) = certificate.begin() else { return LogonOutcome::Closed };
        if let Some(peer) = self.pending.remove(index) {
            self.pending.insert(index, peer.with_tls(tls));
        }
        LogonOutcome::Pending
    }

    /// Verifies the proofs whose delay is over, one for each user and origin.
    fn verify_delayed(&mut self) {
        let now = self.clock.ticks();
        while let Some(index) = self.pending.iter().position(|peer| self.authenticator.may_verify(peer, now)) {
            let outcome = self.authenticator.verify_delayed(&mut self.pending[index]);
            self.end_turn(index, outcome);
        }
    }

    fn end_turn(&mut self, index: usize, outcome: LogonOutcome) {
        match outcome {
            LogonOutcome::Pending => {}
            LogonOutcome::Closed => drop(self.pending.remove(index)),
            LogonOutcome::Admitted(user, logon, server_final) => self.admit(index, user, logon, server_final),
        }
    }

    fn admit(&mut self, index: usize, user: Arc<OmsUser>, logon: Logon, server_final: Vec<u8>) {
        let Some(PendingLogon { mut stream, inbox, .. }) = self.pending.remove(index) else { return };
        if self.poll.registry().deregister(stream.source()).is_err() {
            return;
        }
        let logon = Logon { version: logon.version.min(VERSION), ..logon };
        let wants_lanes =
            logon.version >= 2 && logon.features & Logon::LANES != 0 && matches!(stream.0, OrderEntryStream::Unix(_));
        // Without lanes, for lack of memory or on a kernel that cannot seal shared memory, the socket serves as well.
        let lanes = wants_lanes.then(LanePair::create).and_then(Result::ok);
        // The gateway receives at every turn; a send fails only when the gateway has ended.
        let _ = self.admitted.send(AdmittedClient { stream, inbox, user, logon, server_final, lanes });
    }

    /// Runs the periodic work: delayed proofs, overdue connections, changed files, and the check of the disk.
    fn run_checks(&mut self) {
        self.verify_delayed();
        let now = self.clock.ticks();
        let timeout = self.clock.calibration().ticks_of_ns(LOGON_TIMEOUT_NS);
        let close_if_over = |peer: &mut PendingLogon| match &peer.stage {
            LogonStage::Refusing(due, reason, why) if now >= *due => {
                send_refusal(&mut peer.stream, now, *reason, why);
                true
            }
            // A refused connection closes when its refusal is due, even past the logon timeout.
            LogonStage::Refusing(..) => false,
            _ if now.saturating_sub(peer.since) <= timeout => false,
            LogonStage::Delayed(begun, _) => {
                let user = begun.server.user();
                let why =
                    format!("wrong passwords of '{user}' were sent from this address; wait a second and try again");
                send_refusal(&mut peer.stream, now, LogonRejectReason::Full, &why);
                true
            }
            _ => true,
        };
        self.pending.retain_mut(|peer| !close_if_over(peer));
        if let Some(why) = self.disk_space.check(now, |ns| self.clock.calibration().ticks_of_ns(ns)) {
            let _ = self.config.events.try_send(ServerEvent::Warning(why));
        }
        if now >= self.check_files_at {
            self.check_files_at = now + self.clock.calibration().ticks_of_ns(CHECK_INTERVAL.as_nanos() as u64);
            self.check_files();
        }
    }

    fn check_files(&mut self) {
        self.reloader.check_files();
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
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens on it"));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is a file that is no socket")),
        Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Device and inode of a bound socket, which no other file has while the socket is open.
type SocketIdentity = (u64, u64);

fn socket_identity(path: &Path) -> Option<SocketIdentity> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
