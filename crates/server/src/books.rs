//! The files of a running server: its users are read again when their file has changed, and everything else when that is
//! asked for. A file with a mistake changes nothing, and neither do files that give a number another meaning while an order, a
//! position or a report bears it: the core's thread refuses them before it journals anything.
//!
//! ```text
//!   users.toml has changed ─┐
//!                           ├─> Books ── desk ──> core's thread: journals what differs ──> gateway: sessions
//!   SIGHUP: all files ──────┘                              │                        └───> door: users
//!                                                          └─> Books: what has changed, or why nothing has
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tickpath_oms::{Borne, Desk, Identity};

use super::changes::{Changes, Values};
use super::config::ServerConfig;
use super::error::OpenError;
use super::event::ServerEvent;
use super::file::modified;
use super::places::{place_of, with_places};
use crate::settings::{Settings, Users};

/// The users who may log in now, and how often they have changed.
#[derive(Debug)]
pub(crate) struct Known {
    changes: AtomicU64,
    users: Mutex<Arc<Users>>,
}

/// A desk for the core's thread; its users may log in once it is journaled.
#[derive(Debug)]
pub(crate) struct NewDesk {
    pub desk: Desk,
    pub users: Users,
    pub known: Arc<Known>,
    /// Receives how many definitions have changed, or why the desk is refused.
    pub answer: Sender<Result<usize, Borne>>,
}

/// What the files say, and when the users' was read.
pub(crate) struct Books {
    config: ServerConfig,
    known: Arc<Known>,
    desks: Sender<NewDesk>,
    read_at: Option<(SystemTime, u64)>,
    /// The values in the files at the start, and as the OMS took them last.
    started: Values,
    taken: Values,
    asked: Option<Asked>,
}

/// A desk that the core's thread has not judged: what it was made of.
struct Asked {
    settings: Box<Settings>,
    values: Values,
    /// When the users' file was read.
    read_at: Option<(SystemTime, u64)>,
    answer: Receiver<Result<usize, Borne>>,
}

impl Books {
    pub fn open(config: &ServerConfig, desks: Sender<NewDesk>) -> Result<Self, OpenError> {
        let read_at = modified(&config.users);
        let users = Users::read(&config.users).map_err(|e| OpenError::Users(e.to_string()))?;
        // Users that have changed since the OMS was told of them are judged by it first.
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

    /// Reads what has changed, or what somebody wants to be read. One desk is judged at a time: the next one is made of what
    /// came of the last.
    pub fn look(&mut self) {
        if !self.is_judged() {
            return;
        }
        // Pairs with the release of who asks: the files are as that knows them.
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

    /// Has the core's thread judge a desk, and take it unless numbers would change their meaning.
    fn ask(&mut self, settings: Box<Settings>, values: Values, read_at: Option<(SystemTime, u64)>) {
        let (answer, hear) = channel();
        let (desk, users, known) = (settings.desk(), settings.users.clone(), self.known.clone());
        self.asked = Some(Asked { settings, values, read_at, answer: hear });
        // Nobody hears it only while the OMS ends.
        let _ = self.desks.send(NewDesk { desk, users, known, answer });
    }

    /// Whether no desk is with the core's thread. Of one that is back it is told what came of it.
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
            // A change of the users that came with it is seen at the next look, and is judged by itself.
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

    /// Takes of a file that is refused what shuts somebody out: a user who is disabled or gone, and a new password. Neither
    /// waits for the mistake in another line.
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

    /// The users, if they have changed since so many changes; and how many there were.
    pub fn since(&self, changes: u64) -> Option<(u64, Arc<Users>)> {
        // Pairs with the release of who changes them.
        let now = self.changes.load(Ordering::Acquire);
        (now != changes).then(|| (now, self.get()))
    }
}
