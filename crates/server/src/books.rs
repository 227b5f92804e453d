//! The files of a running server: its users are read again when their file has changed, and everything else when that is
//! asked for. A file with a mistake changes nothing.
//!
//! ```text
//!   users.toml has changed ─┐
//!                           ├─> Books ── desk ──> core's thread: journals what differs ──> gateway: sessions
//!   SIGHUP: all files ──────┘                                                       └───> door: users
//! ```

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tickpath_oms::Desk;

use super::config::ServerConfig;
use super::error::OpenError;
use super::event::ServerEvent;
use super::file::modified;
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
}

/// What the files say, and when the users' was read.
pub(crate) struct Books {
    config: ServerConfig,
    known: Arc<Known>,
    desks: Sender<NewDesk>,
    read_at: Option<(SystemTime, u64)>,
}

impl Books {
    pub fn open(config: &ServerConfig, desks: Sender<NewDesk>) -> Result<Self, OpenError> {
        let read_at = modified(&config.users);
        let users = Users::read(&config.users).map_err(|e| OpenError::Users(e.to_string()))?;
        let known = Arc::new(Known { changes: AtomicU64::new(0), users: Mutex::new(Arc::new(users)) });
        Ok(Self { config: config.clone(), known, desks, read_at })
    }

    pub fn known(&self) -> Arc<Known> {
        self.known.clone()
    }

    /// Reads what has changed, or what somebody wants to be read.
    pub fn look(&mut self) {
        // Pairs with the release of who asks: the files are as that knows them.
        if self.config.reload.swap(false, Ordering::Acquire) {
            match self.read_all() {
                Ok(()) => {}
                Err(why) => drop(self.config.events.try_send(ServerEvent::NotReloaded(why))),
            }
        }
        let changed = modified(&self.config.users);
        if changed != self.read_at {
            self.read_at = changed;
            match Users::read(&self.config.users) {
                Ok(users) => self.take(users),
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
        let venues =
            |settings: &Settings| settings.venues.iter().map(|venue| venue.rules.venue).collect::<BTreeSet<_>>();
        if venues(&now) != venues(before) {
            let file = now.file.display();
            return Err(format!(
                "{file}: it names other venues than the OMS has lines to; start the OMS again for them"
            ));
        }
        let users = now.users.clone();
        (self.config.settings, self.read_at) = (Some(Box::new(now)), read_at);
        self.take(users);
        Ok(())
    }

    /// Has the core's thread take the users' rights, and with them all else that was read.
    fn take(&mut self, users: Users) {
        let Some(settings) = &mut self.config.settings else {
            self.known.put(users);
            return;
        };
        settings.users = users.clone();
        // Nobody hears it only while the OMS ends.
        let _ = self.desks.send(NewDesk { desk: settings.desk(), users, known: self.known.clone() });
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

    /// The users, if they have changed since so many changes; and how many there were.
    pub fn since(&self, changes: u64) -> Option<(u64, Arc<Users>)> {
        // Pairs with the release of who changes them.
        let now = self.changes.load(Ordering::Acquire);
        (now != changes).then(|| (now, self.get()))
    }
}
