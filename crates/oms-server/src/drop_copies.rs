//! Drop copies: clients that receive the reports of other sessions and send no requests.
//!
//! ```text
//!   gateway ── clients that log in for a drop copy ──> copies, a thread: history, filter ──> their sockets
//! ```
//! A drop copy takes no session: several of one user run beside each other, each at its own position.
//!
//! Drop copies have a thread of their own, which reads the history from its files at no cost to the core or to other
//! sessions. A copied report is numbered by its place in the history, so a client resumes behind the last report it
//! has, even with a changed filter.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, mpsc::SyncSender};
use std::thread::JoinHandle;

use tickpath_clock::{Clock, sleep_ns};
use tickpath_log::LogPath;
use tickpath_oms_protocol::{
    CopyHeader, DETAILS_VERSION, FROM_NOW, FrameBuffer, FrameKind, LogonRejectReason, Welcome, write_frame_with_text,
};
use tickpath_oms_runtime::TokenBucket;
use tickpath_oms_runtime::drop_copy::{DropCopyReader, DropCopyStart};
use zerocopy::IntoBytes;

use super::acceptor::AdmittedClient;
use super::config::ServerConfig;
use super::config_reload::UserDirectory;
use super::connection::{
    ClientConnection, DetailPosition, DisconnectReason, Liveness, RIGHTS_CHANGED, ReportPosition, ReportSource,
    heartbeat_ms,
};
use super::descriptors::MAX_COPIES_PER_USER;
use super::error::ServerOpenError;
use super::event::ServerEvent;
use crate::settings::ResolvedCopyFilter;

const MAX_TURN_FRAMES: usize = 1024;
const PAUSE_NS: u64 = 1_000_000;

pub(crate) struct DropCopyLogon {
    pub admitted: AdmittedClient,
    pub session: u16,
    pub bucket: TokenBucket,
    pub next_request: u64,
}

/// The thread of the drop copies; dropping this ends it.
pub(crate) struct DropCopyThread {
    newcomers: Option<Sender<Box<DropCopyLogon>>>,
    thread: Option<JoinHandle<()>>,
}

struct DropCopyWorker<C> {
    clock: C,
    journal: u64,
    place: LogPath,
    heartbeat_ms: u32,
    max_copies: usize,
    directory: Arc<UserDirectory>,
    /// Change count of the user directory at the last check.
    users_version: u64,
    events: SyncSender<ServerEvent>,
    /// Clients that came while a day was being archived.
    waiting: Vec<DropCopyLogon>,
    list: Vec<DropCopyClient>,
}

struct DropCopyClient {
    connection: ClientConnection,
    copy: DropCopyReader,
    filter: ResolvedCopyFilter,
}

impl DropCopyThread {
    /// Starts the thread. `place` and `journal` name the journal whose history it reads, by place and id.
    pub fn open<C: Clock>(
        clock: C,
        config: &ServerConfig,
        directory: Arc<UserDirectory>,
        (place, journal): (LogPath, u64),
    ) -> Result<Self, ServerOpenError> {
        let (newcomers, receiver) = channel();
        let mut worker = DropCopyWorker {
            clock,
            journal,
            place,
            heartbeat_ms: config.heartbeat_ms,
            max_copies: config.max_sessions,
            directory,
            users_version: 0,
            events: config.events.clone(),
            waiting: Vec::new(),
            list: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("oms-copies".to_owned()).spawn(move || worker.run(&receiver));
        Ok(Self { newcomers: Some(newcomers), thread: Some(thread.map_err(ServerOpenError::Thread)?) })
    }

    pub fn hand_over(&self, newcomer: DropCopyLogon) {
        if let Some(newcomers) = &self.newcomers {
            // The receiver is gone only while the server ends.
            let _ = newcomers.send(Box::new(newcomer));
        }
    }
}

impl Drop for DropCopyThread {
    fn drop(&mut self) {
        self.newcomers = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl<C: Clock> DropCopyWorker<C> {
    fn run(&mut self, newcomers: &Receiver<Box<DropCopyLogon>>) {
        loop {
            if self.list.is_empty() && self.waiting.is_empty() {
                let Ok(newcomer) = newcomers.recv() else { return };
                self.waiting.push(*newcomer);
            }
            loop {
                match newcomers.try_recv() {
                    Ok(newcomer) => self.waiting.push(*newcomer),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        for client in &mut self.list {
                            client.connection.close(DisconnectReason::ByServer("the OMS stops".to_owned()), 0);
                        }
                        return;
                    }
                }
            }
            for newcomer in std::mem::take(&mut self.waiting) {
                self.admit(newcomer);
            }
            if !self.turn() {
                sleep_ns(PAUSE_NS);
            }
        }
    }

    /// Welcomes a client at the first report that it lacks, or refuses it. While a day is archived, the client waits.
    fn admit(&mut self, mut newcomer: DropCopyLogon) {
        let (copy, filter) = match self.open_for(&newcomer.admitted) {
            Ok(Some(opened)) => opened,
            Ok(None) => return self.waiting.push(newcomer),
            Err((reason, why)) => {
                return newcomer.admitted.refuse(self.clock.ticks(), reason, &why, &self.events);
            }
        };
        let DropCopyLogon { admitted, session, bucket, next_request } = newcomer;
        let AdmittedClient { stream, user, logon, server_final, .. } = admitted;
        let now = self.clock.ticks();
        let heartbeat_ms = heartbeat_ms(&logon, self.heartbeat_ms);
        let welcome = Welcome {
            version: logon.version,
            session,
            role: user.role.code(),
            journal: self.journal,
            next_request,
            next_report: copy.next(),
            live_report: copy.end(),
            heartbeat_ms,
            rights: Welcome::DROP_COPY,
            ..Welcome::default()
        };
        let mut frame = Vec::new();
        write_frame_with_text(&mut frame, FrameKind::Welcome.code(), 0, now, welcome.as_bytes(), &server_final);
        let from = stream.peer();
        let name = user.name.clone();
        let timeout = self.clock.calibration().ticks_of_ns(u64::from(heartbeat_ms) * 1_000_000);
        // A detail is numbered by its place, as a report is.
        let (next, details, source) = (copy.next(), DetailPosition::Off, ReportSource::Live);
        let (reports, liveness) = (ReportPosition { next, details, source }, Liveness::new(now, timeout));
        let mut connection =
            ClientConnection::new(stream, FrameBuffer::default(), user, session, bucket, reports, liveness);
        connection.version = logon.version;
        connection.output.write_frames(&frame);
        let _ = self.events.try_send(ServerEvent::LoggedIn { user: name, session, from });
        self.list.push(DropCopyClient { connection, copy, filter });
    }

    /// Opens the history at the first report that a client lacks, or returns a refusal; none while a day is archived.
    fn open_for(
        &self,
        AdmittedClient { user, logon, .. }: &AdmittedClient,
    ) -> Result<Option<(DropCopyReader, ResolvedCopyFilter)>, (LogonRejectReason, String)> {
        // An admin may have changed the user while the client waited.
        if self.directory.current().find(&user.name) != Some(&**user) {
            return Err((LogonRejectReason::NotPermitted, RIGHTS_CHANGED.to_owned()));
        }
        let Some(filter) = &user.drop_copy else {
            return Err((LogonRejectReason::NotPermitted, "the user has no drop copy".to_owned()));
        };
        let of_user = self.list.iter().filter(|client| client.connection.user.name == user.name).count();
        if of_user >= MAX_COPIES_PER_USER {
            let why = format!("the user has {of_user} drop copies; log out of one, or add a user for more");
            return Err((LogonRejectReason::Full, why));
        }
        if self.list.len() >= self.max_copies {
            let why = format!("all {} drop copies are in use; log out of one", self.max_copies);
            return Err((LogonRejectReason::Full, why));
        }
        let from = match (logon.next_report, logon.journal == self.journal) {
            (FROM_NOW, _) => DropCopyStart::Now,
            (place, true) => DropCopyStart::Place { place, last_sum: logon.last_sum },
            (_, false) => DropCopyStart::Day,
        };
        let copy =
            DropCopyReader::open(&self.place, from).map_err(|e| (LogonRejectReason::NotPermitted, e.to_string()))?;
        Ok(copy.map(|copy| (copy, filter.with(&self.directory.current()))))
    }

    /// Runs a turn of each client; false if there was nothing to do.
    fn turn(&mut self) -> bool {
        let now = self.clock.ticks();
        let changed = self.directory.changed_since(self.users_version);
        if let Some((changes, _)) = &changed {
            self.users_version = *changes;
        }
        let (mut done, clock, events) = (false, &self.clock, &self.events);
        self.list.retain_mut(|client| {
            if let Some((_, users)) = &changed {
                let user = &client.connection.user;
                if users.find(&user.name) != Some(&**user) {
                    let reason = DisconnectReason::ByServer(RIGHTS_CHANGED.to_owned());
                    client.connection.disconnect(reason, 0, events);
                    return false;
                }
                if let Some(filter) = &user.drop_copy {
                    client.filter = filter.with(users);
                }
            }
            match client.turn(clock, now) {
                Ok(is_busy) => {
                    done |= is_busy;
                    true
                }
                Err(reason) => {
                    client.connection.disconnect(reason, 0, events);
                    false
                }
            }
        });
        done
    }
}

impl DropCopyClient {
    /// Reads a client's heartbeats, and sends the reports that it lacks.
    fn turn<C: Clock>(&mut self, clock: &C, now: u64) -> Result<bool, DisconnectReason> {
        let Self { connection, copy, filter } = self;
        connection.input.is_readable = true;
        let mut done = connection.read(|| clock.ticks())?;
        loop {
            match connection.input.inbox.next() {
                Ok(Some(frame)) => match FrameKind::from_code(frame.kind) {
                    Some(FrameKind::Heartbeat) => {}
                    Some(FrameKind::Logout) => {
                        return Err(DisconnectReason::ByClient("the client logged out".to_owned()));
                    }
                    _ => return Err(DisconnectReason::ByServer("a drop copy accepts no requests".to_owned())),
                },
                Ok(None) => break,
                Err(e) => return Err(DisconnectReason::ByServer(e.to_string())),
            }
        }
        if connection.liveness.is_silent(now) {
            return Err(DisconnectReason::ByServer("no message for too long".to_owned()));
        }
        if connection.output.has_room() {
            let before = copy.next();
            let read = copy.read_frames(MAX_TURN_FRAMES, |place, report, utc_ns| {
                let is_known = !report.is_detail() || connection.version >= DETAILS_VERSION;
                if is_known && filter.matches(report) {
                    let header = CopyHeader {
                        from: connection.reports.next,
                        session_number: report.number,
                        session: report.session,
                        kind: report.kind,
                        reserved: [0; 5],
                    };
                    connection.copy(place, report, &header, utc_ns);
                }
                connection.output.has_room()
            });
            read.map_err(|e| DisconnectReason::ByServer(format!("the history cannot be read: {e}")))?;
            done |= copy.next() != before;
        }
        if connection.liveness.is_heartbeat_due(now) && !connection.output.is_lagging() {
            connection.send_message(FrameKind::Heartbeat, 0, now, &[], &[]);
        }
        done |= connection.flush()? > 0;
        Ok(done)
    }
}
