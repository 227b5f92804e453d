//! Configuration reload of a running server: the users are read again when their file changes, all other files on
//! request. A file with a mistake changes nothing, and neither do files that give a number another meaning while an
//! order, a position or a report bears it: the core's thread refuses them before it journals anything.
//!
//! ```text
//!   users.toml has changed ─┐
//!                           ├─> reloader ── config ──> core's thread: journals changes ──> gateway: sessions
//!   SIGHUP: all files ──────┘                                 │                       └──> acceptor: users
//!                                                             └─> reloader: the changes, or the refusal
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tickpath_oms_runtime::{EntityNumber, IdentityConflicts, TradingDefinitions};

use super::changes::{ConfigDiff, ConfigValues};
use super::config::ServerConfig;
use super::error::ServerOpenError;
use super::event::ServerEvent;
use super::file::file_stamp;
use super::locations::{location_of, with_locations};
use crate::settings::{Settings, Users};

/// User directory: the users who may log in now, and the number of its changes.
#[derive(Debug)]
pub(crate) struct UserDirectory {
    changes: AtomicU64,
    users: Mutex<Arc<Users>>,
}

/// A trading configuration for the core's thread; its users may log in once it is journaled.
#[derive(Debug)]
pub(crate) struct NewTradingConfig {
    pub config: TradingDefinitions,
    pub users: Users,
    pub directory: Arc<UserDirectory>,
    /// Receives the number of definitions that have changed, or the reason for a refusal.
    pub answer: Sender<Result<usize, IdentityConflicts>>,
}

/// The configuration files as last read, with the time of the users' file.
pub(crate) struct ConfigReloader {
    config: ServerConfig,
    pub directory: Arc<UserDirectory>,
    configs: Sender<NewTradingConfig>,
    read_at: Option<(SystemTime, u64)>,
    /// Modification time and length of the users' file at the last check.
    seen: Option<(SystemTime, u64)>,
    /// Values of the files at the start, and as the OMS took them last.
    started: ConfigValues,
    applied: ConfigValues,
    pending: Option<PendingReload>,
}

/// A trading configuration that the core's thread has not judged yet, with its sources.
struct PendingReload {
    settings: Box<Settings>,
    values: ConfigValues,
    /// Modification time of the users' file that was read.
    read_at: Option<(SystemTime, u64)>,
    answer: Receiver<Result<usize, IdentityConflicts>>,
}

impl ConfigReloader {
    pub fn open(config: &ServerConfig, configs: Sender<NewTradingConfig>) -> Result<Self, ServerOpenError> {
        let read_at = file_stamp(&config.users);
        let users = Users::read(&config.users).map_err(|e| ServerOpenError::Users(e.to_string()))?;
        // Users that have changed since the OMS's start are judged by the OMS first.
        let (users, read_at) = match &config.settings {
            Some(settings) if settings.users.list != users.list => (settings.users.clone(), None),
            _ => (users, read_at),
        };
        let directory = Arc::new(UserDirectory { changes: AtomicU64::new(0), users: Mutex::new(Arc::new(users)) });
        let started = config.settings.as_deref().map(ConfigValues::read).unwrap_or_default();
        let (config, applied) = (config.clone(), started.clone());
        Ok(Self { config, directory, configs, read_at, seen: read_at, started, applied, pending: None })
    }

    /// Reads a changed users' file once it is as it was at the last check, because a file that is being written may hold
    /// no user yet; on request reads all files. One configuration at a time: the next builds on the outcome of the last.
    pub fn check_files(&mut self) {
        if !self.finish_pending() {
            return;
        }
        // Pairs with the release of the requester: the files are read as the requester left them.
        if self.config.reload.swap(false, Ordering::Acquire) {
            if let Err(why) = self.reload_all() {
                let _ = self.config.events.try_send(ServerEvent::NotReloaded(why));
            }
            return;
        }
        let now = file_stamp(&self.config.users);
        let rests = now == std::mem::replace(&mut self.seen, now);
        if rests && now != self.read_at {
            self.read_at = now;
            match Users::read(&self.config.users) {
                Ok(users) => self.reload_users(users),
                Err(e) => drop(self.config.events.try_send(ServerEvent::UsersNotReloaded(e.to_string()))),
            }
        }
    }

    fn reload_all(&mut self) -> Result<(), String> {
        let Some(before) = &self.config.settings else {
            return Err("this server was not started from a file".to_owned());
        };
        let read_at = file_stamp(&self.config.users);
        let now = Settings::read(&before.file).map_err(|faults| faults.to_string())?;
        let venues = |settings: &Settings| -> BTreeMap<_, _> {
            settings.venues.iter().map(|venue| (venue.rules.venue, venue.name.clone())).collect()
        };
        let (old, new) = (venues(before), venues(&now));
        // The lines of a venue are made at a start, so it gets neither another number nor another name before that.
        if old != new {
            let other = new.iter().find(|&(number, name)| old.get(number) != Some(name)).map(|(number, _)| *number);
            let location =
                other.map_or(now.file.display().to_string(), |number| location_of(&now, EntityNumber::Venue(number)));
            return Err(format!(
                "{location}: the venues differ from those of the running OMS; restart the OMS for them"
            ));
        }
        let read_at = if now.users_file == self.config.users { read_at } else { file_stamp(&now.users_file) };
        let values = ConfigValues::read(&now);
        self.submit(Box::new(now), values, read_at);
        Ok(())
    }

    fn reload_users(&mut self, users: Users) {
        match &self.config.settings {
            Some(settings) => {
                let settings = Settings { users, ..Settings::clone(settings) };
                let values = self.applied.with_users(&settings.users_file);
                self.submit(Box::new(settings), values, self.read_at);
            }
            None => self.directory.replace(users),
        }
    }

    /// Has the core's thread judge a trading configuration, and take it unless numbers would change their meaning.
    fn submit(&mut self, settings: Box<Settings>, values: ConfigValues, read_at: Option<(SystemTime, u64)>) {
        let (answer, received) = channel();
        let (config, users, directory) = (settings.trading_config(), settings.users.clone(), self.directory.clone());
        self.pending = Some(PendingReload { settings, values, read_at, answer: received });
        // The receiver is gone only while the OMS ends.
        let _ = self.configs.send(NewTradingConfig { config, users, directory, answer });
    }

    /// Returns whether no trading configuration is with the core's thread. Reports the outcome of one that is back.
    fn finish_pending(&mut self) -> bool {
        let Some(pending) = &self.pending else { return true };
        let Ok(judged) = pending.answer.try_recv() else { return false };
        let Some(PendingReload { settings, values, read_at, .. }) = self.pending.take() else { return true };
        let event = match judged {
            Ok(changes) => {
                let ConfigDiff { applied, needs_restart } = values.changes(&self.started, &self.applied);
                self.config.users.clone_from(&settings.users_file);
                (self.config.settings, self.applied, self.read_at) = (Some(settings), values, read_at);
                ServerEvent::Reloaded { changes, applied, needs_restart }
            }
            // A change of the users that came with it is found at the next look, and is judged by itself.
            Err(why) => {
                self.directory.apply_revocations(&settings.users);
                ServerEvent::NotReloaded(with_locations(why, &settings).to_string())
            }
        };
        let _ = self.config.events.try_send(event);
        true
    }
}

impl UserDirectory {
    pub fn current(&self) -> Arc<Users> {
        self.users.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    pub fn replace(&self, users: Users) {
        *self.users.lock().unwrap_or_else(|e| e.into_inner()) = Arc::new(users);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Applies the changes of a refused file that lock a user out: a disabled or removed user, and a new password.
    pub fn apply_revocations(&self, refused: &Users) {
        let mut users = Users::clone(&self.current());
        let before = users.list.clone();
        for user in &mut users.list {
            let now = refused.list.iter().find(|now| now.name == user.name);
            user.disabled |= now.is_none_or(|now| now.disabled);
            if let Some(now) = now {
                user.secret.clone_from(&now.secret);
            }
        }
        if users.list != before {
            self.replace(users);
        }
    }

    /// Returns the users and their change count, if that count differs from `changes`.
    pub fn changed_since(&self, changes: u64) -> Option<(u64, Arc<Users>)> {
        // Pairs with the release in `replace`.
        let now = self.changes.load(Ordering::Acquire);
        (now != changes).then(|| (now, self.current()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn a_file_that_is_being_written_locks_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users.toml");
        let secret = tickpath_oms_protocol::Secret::decoy(b"key", "anna");
        let user = |name: &str| {
            format!(
                "[[user]]\nname = \"{name}\"\nrole = \"read\"\naccounts = [\"*\"]\nsessions = [1]\nsecret = \"{secret}\"\n"
            )
        };
        fs::write(&file, user("anna")).unwrap();
        let config = ServerConfig {
            unix: None,
            tcp: None,
            tls: None,
            users: file.clone(),
            heartbeat_ms: 1_000,
            max_sessions: 1,
            keep_days: 0,
            settings: None,
            reload: Arc::default(),
            sessions: Vec::new(),
            events: sync_channel(1).0,
        };
        let mut reloader = ConfigReloader::open(&config, channel().0).unwrap();
        let names = |reloader: &ConfigReloader| -> Vec<String> {
            reloader.directory.current().list.iter().map(|user| user.name.clone()).collect()
        };
        fs::write(&file, "").unwrap();
        reloader.check_files();
        assert_eq!(names(&reloader), ["anna"], "the file was only emptied");
        fs::write(&file, user("barbara")).unwrap();
        reloader.check_files();
        assert_eq!(names(&reloader), ["anna"], "more may follow");
        reloader.check_files();
        assert_eq!(names(&reloader), ["barbara"], "nothing followed");
    }
}
