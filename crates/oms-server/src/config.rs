//! The configuration of a server, from a program or from files.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;

use tickpath_oms_runtime::SessionConfig;

use crate::descriptors::files_of;
use crate::event::ServerEvent;
use crate::settings::Settings;
use crate::tls::ServerTlsFiles;

/// The configuration of a server: its addresses, users, limits, and channel of events.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Unix socket to listen on.
    pub unix: Option<PathBuf>,
    /// TCP address to listen on.
    pub tcp: Option<SocketAddr>,
    /// Certificate for TCP connections; without it TCP is not encrypted.
    pub tls: Option<ServerTlsFiles>,
    /// File of the users.
    pub users: PathBuf,
    /// Silence after which a client is considered dead, in milliseconds.
    pub heartbeat_ms: u32,
    /// Max clients at once, and as many drop copies.
    pub max_sessions: usize,
    /// Archived days from which a client can resume; zero for all.
    pub keep_days: u32,
    /// Settings with their files, so that rights and tables can change while the server runs; none if they cannot.
    pub settings: Option<Box<Settings>>,
    /// Request to read all files again; set with release ordering.
    pub reload: Arc<AtomicBool>,
    /// Sessions that may log in.
    pub sessions: Vec<SessionConfig>,
    /// Channel for the server's events. An event that does not fit is dropped.
    pub events: SyncSender<ServerEvent>,
}

impl ServerConfig {
    pub(crate) fn files_needed(&self) -> u64 {
        self.settings.as_ref().map_or(files_of(2 * self.max_sessions), |settings| settings.files_needed())
    }
}

impl Settings {
    /// Returns the server's configuration, for [`run`](crate::run) beside [`Self::config`]; its events go to `events`.
    pub fn server(&self, events: SyncSender<ServerEvent>) -> ServerConfig {
        ServerConfig {
            unix: self.listen.unix.clone(),
            tcp: self.listen.tcp,
            tls: self.listen.tls.clone(),
            users: self.users_file.clone(),
            heartbeat_ms: self.sessions.heartbeat_ms,
            max_sessions: self.sessions.max_sessions as usize,
            keep_days: self.sessions.keep_days,
            settings: Some(Box::new(self.clone())),
            reload: Arc::default(),
            sessions: self.users.sessions(&self.sessions, &self.accounts),
            events,
        }
    }
}
