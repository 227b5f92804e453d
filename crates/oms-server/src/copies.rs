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
use tickpath_log::Place;
use tickpath_oms_protocol::{Copied, FROM_NOW, Inbox, Kind, Refusal, Welcome, write_with_text};
use tickpath_oms_runtime::Bucket;
use tickpath_oms_runtime::copy::{Copy, CopyFrom};
use zerocopy::IntoBytes;

use super::books::Known;
use super::config::ServerConfig;
use super::connection::{Connection, End, Hears, heartbeat_ms};
use super::descriptors::COPIES_OF_A_USER;
use super::door::{Admitted, tell_refusal};
use super::error::OpenError;
use super::event::ServerEvent;
use crate::settings::CopyTakes;

/// Max frames of the history read per turn and client.
const TURN: usize = 1024;
/// Max drop copies of one user: a program that forgets to close them takes no place from others.
const MOST_OF_A_USER: usize = COPIES_OF_A_USER;
/// Pause between two turns while there is nothing to do.
const PAUSE_NS: u64 = 1_000_000;

/// A client that is admitted for a drop copy.
pub(crate) struct Newcomer {
    pub admitted: Admitted,
    pub session: u16,
    pub bucket: Bucket,
    pub next_request: u64,
}

/// The thread of the drop copies; dropping this ends it.
pub(crate) struct Copies {
    newcomers: Option<Sender<Box<Newcomer>>>,
    thread: Option<JoinHandle<()>>,
}

/// State of the thread.
struct Work<C> {
    clock: C,
    journal: u64,
    place: Place,
    heartbeat_ms: u32,
    /// Max drop copies at once.
    most: usize,
    known: Arc<Known>,
    /// Change count of the user directory at the last check.
    users: u64,
    events: SyncSender<ServerEvent>,
    /// Clients that came while a day was being archived.
    waiting: Vec<Newcomer>,
    list: Vec<Hearer>,
}

/// A client with a drop copy.
struct Hearer {
    connection: Connection,
    copy: Copy,
    takes: CopyTakes,
}

impl Copies {
    /// Starts the thread. `place` and `journal` name the journal whose history it reads, by place and id.
    pub fn open<C: Clock>(
        clock: C,
        config: &ServerConfig,
        known: Arc<Known>,
        (place, journal): (Place, u64),
    ) -> Result<Self, OpenError> {
        let (newcomers, come) = channel();
        let mut work = Work {
            clock,
            journal,
            place,
            heartbeat_ms: config.heartbeat_ms,
            most: config.most,
            known,
            users: 0,
            events: config.events.clone(),
            waiting: Vec::new(),
            list: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("oms-copies".to_owned()).spawn(move || work.run(&come));
        Ok(Self { newcomers: Some(newcomers), thread: Some(thread.map_err(OpenError::Thread)?) })
    }

    /// Hands a client over to the thread.
    pub fn take(&self, newcomer: Newcomer) {
        if let Some(newcomers) = &self.newcomers {
            // The receiver is gone only while the server ends.
            let _ = newcomers.send(Box::new(newcomer));
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.newcomers = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl<C: Clock> Work<C> {
    fn run(&mut self, come: &Receiver<Box<Newcomer>>) {
        loop {
            if self.list.is_empty() && self.waiting.is_empty() {
                let Ok(newcomer) = come.recv() else { return };
                self.waiting.push(*newcomer);
            }
            loop {
                match come.try_recv() {
                    Ok(newcomer) => self.waiting.push(*newcomer),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        for hearer in &mut self.list {
                            hearer.connection.part(End::Ended("the OMS stops".to_owned()), 0);
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
    fn admit(&mut self, mut newcomer: Newcomer) {
        let (copy, takes) = match self.open_for(&newcomer.admitted) {
            Ok(Some(opened)) => opened,
            Ok(None) => return self.waiting.push(newcomer),
            Err((refusal, why)) => {
                let Admitted { stream, user, .. } = &mut newcomer.admitted;
                tell_refusal(stream, self.clock.ticks(), refusal, &why);
                let (from, why) = (stream.peer(), format!("{}: {why}", user.name));
                let _ = self.events.try_send(ServerEvent::Refused { from, why });
                return;
            }
        };
        let Newcomer { admitted, session, bucket, next_request } = newcomer;
        let Admitted { stream, user, logon, server_final, .. } = admitted;
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
        let mut said = Vec::new();
        write_with_text(&mut said, Kind::Welcome.code(), 0, now, welcome.as_bytes(), &server_final);
        let from = stream.peer();
        let (name, patience) = (user.name.clone(), u64::from(heartbeat_ms) * 1_000_000);
        let mut connection = Connection::new(stream, Inbox::default(), user, session, 0, bucket, Hears::Live);
        connection.next_report = copy.next();
        (connection.heard, connection.said) = (now, now);
        connection.patience = self.clock.calibration().ticks_of_ns(patience);
        connection.say_frames(&said);
        let _ = self.events.try_send(ServerEvent::LoggedIn { user: name, session, from });
        self.list.push(Hearer { connection, copy, takes });
    }

    /// Opens the history for a client at the first report that it lacks, with its filter; or returns a refusal. Returns
    /// none while a day is being archived.
    fn open_for(
        &self,
        Admitted { user, logon, .. }: &Admitted,
    ) -> Result<Option<(Copy, CopyTakes)>, (Refusal, String)> {
        // An admin may have changed the user while the client waited.
        if self.known.get().find(&user.name) != Some(&**user) {
            return Err((Refusal::NotYours, "the user's rights have changed; log in again".to_owned()));
        }
        let Some(filter) = &user.drop_copy else {
            return Err((Refusal::NotYours, "the user has no drop copy".to_owned()));
        };
        let of_user = self.list.iter().filter(|hearer| hearer.connection.user.name == user.name).count();
        if of_user >= MOST_OF_A_USER {
            let why = format!("the user has {of_user} drop copies; log out of one, or add a user for more");
            return Err((Refusal::Full, why));
        }
        if self.list.len() >= self.most {
            return Err((
                Refusal::Full,
                format!("all {} places of drop copies are taken; log out somewhere", self.most),
            ));
        }
        let from = match (logon.next_report, logon.journal == self.journal) {
            (FROM_NOW, _) => CopyFrom::Now,
            (place, true) => CopyFrom::Place { place, last_sum: logon.last_sum },
            (_, false) => CopyFrom::Day,
        };
        let copy = Copy::open(&self.place, from).map_err(|e| (Refusal::NotYours, e.to_string()))?;
        Ok(copy.map(|copy| (copy, filter.with(&self.known.get()))))
    }

    /// Runs a turn of each client; false if there was nothing to do.
    fn turn(&mut self) -> bool {
        let now = self.clock.ticks();
        let changed = self.known.since(self.users);
        if let Some((changes, _)) = &changed {
            self.users = *changes;
        }
        let (mut done, clock, events) = (false, &self.clock, &self.events);
        self.list.retain_mut(|hearer| {
            if let Some((_, users)) = &changed {
                if users.find(&hearer.connection.user.name) != Some(&*hearer.connection.user) {
                    let why = "the user's rights have changed; log in again".to_owned();
                    end(&mut hearer.connection, End::Ended(why), events);
                    return false;
                }
                hearer.takes = hearer
                    .connection
                    .user
                    .drop_copy
                    .as_ref()
                    .map(|f| f.with(users))
                    .unwrap_or_else(|| hearer.takes.clone());
            }
            match hearer.turn(clock, now) {
                Ok(did) => {
                    done |= did;
                    true
                }
                Err(why) => {
                    end(&mut hearer.connection, why, events);
                    false
                }
            }
        });
        done
    }
}

impl Hearer {
    /// Reads a client's heartbeats, and sends the reports that it lacks.
    fn turn<C: Clock>(&mut self, clock: &C, now: u64) -> Result<bool, End> {
        let Self { connection, copy, takes } = self;
        connection.is_readable = true;
        let mut done = connection.read(|| clock.ticks())?;
        loop {
            match connection.inbox.next() {
                Ok(Some(frame)) => match Kind::from_code(frame.kind) {
                    Some(Kind::Heartbeat) => {}
                    Some(Kind::Logout) => return Err(End::Closed("it logged out".to_owned())),
                    _ => return Err(End::Ended("a drop copy hears, and asks for nothing".to_owned())),
                },
                Ok(None) => break,
                Err(e) => return Err(End::Ended(e.to_string())),
            }
        }
        if now.saturating_sub(connection.heard) > connection.patience {
            return Err(End::Ended("no word for too long".to_owned()));
        }
        if connection.has_room() {
            let before = copy.next();
            let read = copy.turn_with_time(TURN, |place, report, utc_ns| {
                if takes.takes(report) {
                    let Connection { next_report: from, .. } = *connection;
                    let copied = Copied {
                        from,
                        session_number: report.number,
                        session: report.session,
                        kind: report.kind,
                        reserved: [0; 5],
                    };
                    connection.copy(place, report, &copied, utc_ns);
                }
                connection.has_room()
            });
            read.map_err(|e| End::Ended(format!("the history cannot be read: {e}")))?;
            done |= copy.next() != before;
        }
        if now.saturating_sub(connection.said) > connection.patience / 2 && !connection.lags() {
            connection.say(Kind::Heartbeat, 0, now, &[], &[]);
        }
        done |= connection.flush()? > 0;
        Ok(done)
    }
}

fn end(connection: &mut Connection, end: End, events: &SyncSender<ServerEvent>) {
    let why = connection.part(end, 0);
    let (user, session) = (connection.user.name.clone(), connection.session);
    let _ = events.try_send(ServerEvent::Gone { user, session, why });
}
