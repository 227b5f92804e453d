//! Configuration reload of a running server: the users are read again when their file changes, all other files on
//! request. A file with a mistake changes nothing, and neither do files that give a number another meaning while an
//! order, a position or a report bears it: the core's thread refuses them before it journals anything.
//!
//! ```text
//!   users.toml has changed ─┐
//!                           ├─> Books ── desk ──> core's thread: journals what differs ──> gateway: sessions
//!   SIGHUP: all files ──────┘                              │                        └───> door: users
//!                                                          └─> Books: the changes, or the refusal
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tickpath_oms_runtime::{Borne, Desk, Identity};

use super::changes::{Changes, Values};
use super::config::ServerConfig;
use super::error::OpenError;
use super::event::ServerEvent;
use super::file::modified;
use super::places::{place_of, with_places};
use crate::settings::{Settings, Users};

/// User directory: the users who may log in now, and the number of its changes.
#[derive(Debug)]
pub(crate) struct Known {
    changes: AtomicU64,
    users: Mutex<Arc<Users>>,
}

/// A trading configuration for the core's thread; its users may log in once it is journaled.
#[derive(Debug)]
pub(crate) struct NewDesk {
    pub desk: Desk,
    pub users: Users,
    pub known: Arc<Known>,
    /// Receives the number of definitions that have changed, or the reason for a refusal.
    pub answer: Sender<Result<usize, Borne>>,
}

/// The configuration files as last read, with the time of the users' file.
pub(crate) struct Books {
    config: ServerConfig,
    known: Arc<Known>,
    desks: Sender<NewDesk>,
    read_at: Option<(SystemTime, u64)>,
    /// Values of the files at the start, and as the OMS took them last.
    started: Values,
    taken: Values,
    asked: Option<Asked>,
}

/// A trading configuration that the core's thread has not judged yet, with its sources.
struct Asked {
    settings: Box<Settings>,
    values: Values,
    /// Modification time of the users' file that was read.
    read_at: Option<(SystemTime, u64)>,
    answer: Receiver<Result<usize, Borne>>,
}

impl Books {
    pub fn open(config: &ServerConfig, desks: Sender<NewDesk>) -> Result<Self, OpenError> {
        let read_at = modified(&config.users);
        let users = Users::read(&config.users).map_err(|e| OpenError::Users(e.to_string()))?;
        // Users that have changed since the OMS's start are judged by the OMS first.
        let (users, read_at) = match &config.settings {
            Some(settings) if settings.users.list != users.list => (settings.users.clone(), None),
            _ => (users, read_at),
        };
        let known = Arc::new(Known { changes: AtomicU64::new(0), users: Mutex::new(Arc::new(users)) });
        let started = config.settings.as_deref().map(Values::read).unwrap_or_default();
        let taken = started.clone();
        Ok(Self { config: config.clone(), known, desks, read_at, started, taken, asked: None })
    }

    pub fn known(&self) -> Arc<Known> {
        self.known.clone()
    }

    /// Reads files that have changed, or all files on request. One trading configuration is judged at a time, because
    /// the next one builds on the outcome of the last.
    pub fn look(&mut self) {
        if !self.is_judged() {
            return;
        }
        // Pairs with the release of the requester: the files are read as the requester left them.
        if self.config.reload.swap(false, Ordering::Acquire) {
            match self.read_all() {
                Ok(()) => {}
                Err(why) => drop(self.config.events.try_send(ServerEvent::NotReloaded(why))),
            }
            return;
        }
        let changed = modified(&self.config.users);
        if changed != self.read_at {
            self.read_at = changed;
            match Users::read(&self.config.users) {
                Ok(users) => self.take_users(users),
                Err(e) => drop(self.config.events.try_send(ServerEvent::Users(e.to_string()))),
            }
        }
    }

    fn read_all(&mut self) -> Result<(), String> {
        let Some(before) = &self.config.settings else {
            return Err("this server was not started from a file".to_owned());
        };
        let read_at = modified(&self.config.users);
        let now = Settings::read(&before.file).map_err(|faults| faults.to_string())?;
        let venues = |settings: &Settings| -> BTreeMap<_, _> {
            settings.venues.iter().map(|venue| (venue.rules.venue, venue.name.clone())).collect()
        };
        let (old, new) = (venues(before), venues(&now));
        // The lines of a venue are made at a start, so it gets neither another number nor another name before that.
        if old != new {
            let other = new.iter().find(|&(number, name)| old.get(number) != Some(name)).map(|(number, _)| *number);
            let place = other.map_or(now.file.display().to_string(), |number| place_of(&now, Identity::Venue(number)));
            return Err(format!(
                "{place}: it names other venues than the OMS has lines to; start the OMS again for them"
            ));
        }
        let read_at = if now.users_file == self.config.users { read_at } else { modified(&now.users_file) };
        let values = Values::read(&now);
        self.ask(Box::new(now), values, read_at);
        Ok(())
    }

    /// Has the core's thread take the users' rights.
    fn take_users(&mut self, users: Users) {
        match &self.config.settings {
            Some(settings) => {
                let settings = Settings { users, ..Settings::clone(settings) };
                let values = self.taken.with_users(&settings.users_file);
                self.ask(Box::new(settings), values, self.read_at);
            }
            None => self.known.put(users),
        }
    }

    /// Has the core's thread judge a trading configuration, and take it unless numbers would change their meaning.
    fn ask(&mut self, settings: Box<Settings>, values: Values, read_at: Option<(SystemTime, u64)>) {
        let (answer, hear) = channel();
        let (desk, users, known) = (settings.desk(), settings.users.clone(), self.known.clone());
        self.asked = Some(Asked { settings, values, read_at, answer: hear });
        // The receiver is gone only while the OMS ends.
        let _ = self.desks.send(NewDesk { desk, users, known, answer });
    }

    /// Returns whether no trading configuration is with the core's thread. Reports the outcome of one that is back.
    fn is_judged(&mut self) -> bool {
        let Some(asked) = &self.asked else { return true };
        let Ok(judged) = asked.answer.try_recv() else { return false };
        let Some(Asked { settings, values, read_at, .. }) = self.asked.take() else { return true };
        let event = match judged {
            Ok(changes) => {
                let Changes { taken, at_start } = values.changes(&self.started, &self.taken);
                self.config.users.clone_from(&settings.users_file);
                (self.config.settings, self.taken, self.read_at) = (Some(settings), values, read_at);
                ServerEvent::Defined { changes, taken, at_start }
            }
            // A change of the users that came with it is found at the next look, and is judged by itself.
            Err(why) => {
                self.known.shut_out(&settings.users);
                ServerEvent::NotReloaded(with_places(why, &settings).to_string())
            }
        };
        let _ = self.config.events.try_send(event);
        true
    }
}

impl Known {
    pub fn get(&self) -> Arc<Users> {
        self.users.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    pub fn put(&self, users: Users) {
        *self.users.lock().unwrap_or_else(|e| e.into_inner()) = Arc::new(users);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Applies those changes of a refused file that shut a user out: a disabled or removed user, and a new password.
    /// Neither waits for the mistake in another line.
    pub fn shut_out(&self, refused: &Users) {
        let mut users = Users::clone(&self.get());
        let before = users.list.clone();
        for user in &mut users.list {
            let now = refused.list.iter().find(|now| now.name == user.name);
            user.disabled |= now.is_none_or(|now| now.disabled);
            if let Some(now) = now {
                user.secret.clone_from(&now.secret);
            }
        }
        if users.list != before {
            self.put(users);
        }
    }

    /// Returns the users and their change count, if that count differs from `changes`.
    pub fn since(&self, changes: u64) -> Option<(u64, Arc<Users>)> {
        // Pairs with the release in `put`.
        let now = self.changes.load(Ordering::Acquire);
        (now != changes).then(|| (now, self.get()))
    }
}
