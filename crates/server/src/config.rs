//! What a server is run with: as a program says it, or as the files do.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;

use tickpath_oms::SessionConfig;

use crate::descriptors::files_of;
use crate::event::ServerEvent;
use crate::settings::{DenialLimits, Settings};
use crate::tls::TlsFiles;

/// How clients come.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The Unix socket to listen on.
    pub unix: Option<PathBuf>,
    /// The address to listen on.
    pub tcp: Option<SocketAddr>,
    /// What encrypts who comes there; without it nobody may.
    pub tls: Option<TlsFiles>,
    /// The file of the users.
    pub users: PathBuf,
    /// After so long without a word a client is taken for gone, in milliseconds.
    pub heartbeat_ms: u32,
    /// Clients at once, and as many drop copies.
    pub most: usize,
    /// Archived days from which a client resumes; zero for all.
    pub keep_days: u32,
    /// The file of it all, so that rights and tables can change while it runs; none if they cannot.
    pub settings: Option<Box<Settings>>,
    /// Set by a Release: all files are to be read again.
    pub reload: Arc<AtomicBool>,
    /// The sessions that may come in.
    pub sessions: Vec<SessionConfig>,
    /// Who hears what happens. What does not fit in is not told.
    pub events: SyncSender<ServerEvent>,
}

impl ServerConfig {
    /// Open files that a server like this needs at most.
    pub(crate) fn files_needed(&self) -> u64 {
        self.settings.as_ref().map_or(files_of(2 * self.most), |settings| settings.files_needed())
    }

    /// How much of the journal may go to requests that come to nothing.
    pub(crate) fn denial_limits(&self) -> DenialLimits {
        self.settings.as_ref().map_or(DenialLimits::default(), |settings| settings.denials)
    }
}

impl Settings {
    /// Where its clients come in, and who hears what happens there: for [`run`](crate::run) beside [`Self::config`].
    pub fn server(&self, events: SyncSender<ServerEvent>) -> ServerConfig {
        ServerConfig {
            unix: self.listen.unix.clone(),
            tcp: self.listen.tcp,
            tls: self.listen.tls.clone(),
            users: self.users_file.clone(),
            heartbeat_ms: self.sessions.heartbeat_ms,
            most: self.sessions.most as usize,
            keep_days: self.sessions.keep_days,
            settings: Some(Box::new(self.clone())),
            reload: Arc::default(),
            sessions: self.users.sessions(&self.sessions, &self.accounts),
            events,
        }
    }
}
