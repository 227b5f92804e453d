//! Clients that have logged in and wait for their session, and the acceptor that admits them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, sync_channel};

use tickpath_clock::Clock;

use super::acceptor::{AcceptorThread, AdmittedClient};
use super::config::ServerConfig;
use super::config_reload::{NewTradingConfig, UserDirectory};
use super::disk_space::DiskSpaceMonitor;
use super::error::ServerOpenError;
use crate::settings::{OmsUser, Users};

/// Max clients that wait in the channel between the acceptor and the gateway.
const MAX_ADMITTED: usize = 64;

pub(super) struct AdmissionQueue {
    admitted: Receiver<AdmittedClient>,
    /// The acceptor; dropped after `admitted`, because its thread may block on sending there.
    acceptor: Option<AcceptorThread>,
    /// Clients received from the acceptor, among them those whose session has requests in flight to the journal: their
    /// welcome names the number of the next request.
    pub waiting: VecDeque<AdmittedClient>,
    pub directory: Arc<UserDirectory>,
    /// Change count of the user directory at the last check.
    users_version: u64,
}

impl AdmissionQueue {
    pub fn open<C: Clock>(
        clock: C,
        config: &ServerConfig,
        configs: Sender<NewTradingConfig>,
        disk_space: DiskSpaceMonitor,
    ) -> Result<Self, ServerOpenError> {
        let (admit, admitted) = sync_channel(MAX_ADMITTED);
        let acceptor = AcceptorThread::open(clock, config, admit, configs, disk_space)?;
        let directory = acceptor.directory.clone();
        Ok(Self { admitted, acceptor: Some(acceptor), waiting: VecDeque::new(), directory, users_version: 0 })
    }

    /// Receives new clients from the acceptor. Returns the number of all that wait.
    #[inline]
    pub fn receive(&mut self) -> usize {
        self.waiting.extend(self.admitted.try_iter());
        self.waiting.len()
    }

    /// Returns whether a user still has the rights with which it has logged in.
    pub fn is_current(&self, user: &OmsUser) -> bool {
        self.directory.current().find(&user.name) == Some(user)
    }

    /// Returns the users, if they have changed since the last call.
    pub fn changed_users(&mut self) -> Option<Arc<Users>> {
        let (version, users) = self.directory.changed_since(self.users_version)?;
        self.users_version = version;
        Some(users)
    }

    pub fn close(&mut self) {
        // The acceptor may wait for room in this channel, and would wait for ever.
        self.admitted = sync_channel(0).1;
        self.acceptor = None;
    }
}
