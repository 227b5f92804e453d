//! The OMS as a server: clients log in over a Unix socket, TCP or TLS, send requests, and hear reports.
//!
//! ```text
//!   door      a thread: listens, hears logons, checks passwords; whoever has not logged in is here and nowhere else
//!     │ admitted
//!     ▼
//!   gateway   sockets ──requests──> sequencer ──> history, the log of all reports ──> gateway ──> sockets
//! ```
//!
//! With the layout `inline` the core's thread polls the gateway; with `split` it has a thread of its own, and hands over
//! by a lane. A session is a number of the desk. Its requests and reports are numbered in the journal, so they go on
//! where they were after any crash. A client that comes back, or cannot keep up, reads on in the history from the first
//! report that it lacks; the core does not notice.

mod admit;
mod books;
mod connection;
mod copies;
mod door;
mod gateway;
mod knock;
mod origin;
pub mod settings;
mod silence;
mod stream;
mod tls;
mod watch;
mod window;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, channel};

use mio::{Poll, Waker};
use tickpath_clock::{Clock, Gap};
use tickpath_log::Reader;
use tickpath_oms::front::Opening;
use tickpath_oms::layout::run_with;
use tickpath_oms::{Config, Notice, OmsError, Sequencer, SessionConfig};

pub use tls::{TlsError, TlsFiles};

use crate::settings::Settings;
use gateway::{BELL, Gateway, Opened};
use window::{Bell, Window};

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
    /// The file of it all, so that rights and tables can change while it runs; none if they cannot.
    pub settings: Option<Box<Settings>>,
    /// Set by a Release: all files are to be read again.
    pub reload: Arc<AtomicBool>,
    /// The sessions that may come in.
    pub sessions: Vec<SessionConfig>,
    /// Who hears what happens. What does not fit in is not told.
    pub events: SyncSender<ServerEvent>,
}

/// Something that happened to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// It listens here.
    Listening(String),
    /// A client has logged in.
    LoggedIn {
        /// Its user.
        user: String,
        /// Its session.
        session: u16,
        /// Where it comes from.
        from: String,
    },
    /// A client was refused.
    Refused {
        /// Where it comes from.
        from: String,
        /// Why.
        why: String,
    },
    /// A client is gone.
    Gone {
        /// Its user.
        user: String,
        /// Its session.
        session: u16,
        /// Why.
        why: String,
    },
    /// The users' file cannot be read: the users that were known stay.
    Users(String),
    /// The files cannot be taken: what was known stays.
    NotReloaded(String),
    /// The files have changed, and the OMS has journaled so many definitions that differ.
    Defined {
        /// How many.
        changes: usize,
    },
    /// The certificate cannot be read: the one that was known stays.
    Certificate(String),
    /// What an operator must hear of the OMS.
    Notice(Notice),
}

impl fmt::Display for ServerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening(place) => write!(f, "listening on {place}"),
            Self::LoggedIn { user, session, from } => {
                write!(f, "{user} has logged in to session {session} from {from}")
            }
            Self::Refused { from, why } => write!(f, "refused {from}: {why}"),
            Self::Gone { user, session, why } => write!(f, "{user} is gone from session {session}: {why}"),
            Self::Users(why) => write!(f, "{why}; the users that were known stay"),
            Self::NotReloaded(why) => write!(f, "{why}; what was known stays"),
            Self::Defined { changes: 0 } => write!(f, "the files were read again, and say the same"),
            Self::Defined { changes } => write!(f, "the files were read again: {changes} definitions have changed"),
            Self::Certificate(why) => write!(f, "{why}; the certificate that was known stays"),
            Self::Notice(notice) => notice.fmt(f),
        }
    }
}

/// Why an OMS does not become a server.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nobody can be listened for there.
    #[error("cannot listen on {place}: {reason}; name another place, or end who listens there")]
    Listen {
        /// Where.
        place: String,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The system gives no more sockets.
    #[error("the system gives no sockets ({0}); raise the limit of open files")]
    Sockets(#[source] std::io::Error),
    /// The users' file cannot be read.
    #[error("{0}")]
    Users(String),
    /// There is no certificate to show.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The history of what was said cannot be read.
    #[error(transparent)]
    History(#[from] tickpath_log::OpenError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

impl From<OpenError> for OmsError {
    fn from(e: OpenError) -> Self {
        Self::Front(Box::new(e))
    }
}

/// Runs an OMS as a server until it is told to stop, as [`tickpath_oms::layout::run`] does.
pub fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    server: &ServerConfig,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    let config = Config { history: true, ..config.clone() };
    let front = |oms: &mut Sequencer<C>, opening| Ok(open(oms, server, opening)?);
    run_with(clock, &config, Some(front), ticks, stop, ready)
}

/// Opens the gateway of an OMS, and its window.
fn open<C: Clock>(oms: &mut Sequencer<C>, server: &ServerConfig, opening: Opening) -> Result<Gateway<C>, OpenError> {
    let poll = Poll::new().map_err(OpenError::Sockets)?;
    let bell = opening.has_thread.then(|| Waker::new(poll.registry(), BELL).map(Bell::new));
    let bell = bell.transpose().map_err(OpenError::Sockets)?;
    let (desks, changed) = channel();
    let (window, asking) = Window::new(server.events.clone(), changed, oms.clock().ticks(), bell.clone());
    let opened = Opened {
        journal: oms.journal_id(),
        place: oms.journal_place(),
        marks: oms.history().unwrap_or_default(),
        next_report: oms.next_reports(),
        asking,
        desks,
        opening,
    };
    let gateway = Gateway::open(oms.clock().clone(), poll, bell.clone(), server, opened)?;
    oms.attend(Box::new(window), bell.map(|bell| Box::new(move || bell.ring()) as tickpath_oms::front::Bell));
    Ok(gateway)
}
