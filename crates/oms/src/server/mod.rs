//! The OMS as a server: clients log in over a Unix socket or TCP, send requests, and hear reports.
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
mod connection;
mod door;
mod gateway;
mod stream;
mod window;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

use mio::{Poll, Waker};
use tickpath_clock::Clock;

pub(crate) use gateway::Gateway;
pub(crate) use window::Window;

use crate::OmsError;
use crate::layout::Config;
use crate::notice::Notice;
use crate::sequencer::Sequencer;
use gateway::{BELL, Opened};
use window::Bell;

/// How clients come.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The Unix socket to listen on.
    pub unix: Option<PathBuf>,
    /// The address to listen on.
    pub tcp: Option<SocketAddr>,
    /// The file of the users.
    pub users: PathBuf,
    /// After so long without a word a client is taken for gone, in milliseconds.
    pub heartbeat_ms: u32,
    /// Clients at once.
    pub most: usize,
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
            Self::Notice(notice) => notice.fmt(f),
        }
    }
}

impl<C: Clock> Sequencer<C> {
    /// Opens the gateway of a server, if the OMS is one; with a bell it can sleep on a thread of its own.
    pub(crate) fn open_gateway(
        &mut self,
        config: &Config,
        next_request: Vec<u64>,
        with_bell: bool,
    ) -> Result<Option<Gateway<C>>, OmsError> {
        let (Some(server), Some(history)) = (&config.server, &self.history) else { return Ok(None) };
        let poll = Poll::new().map_err(OmsError::Sockets)?;
        let bell = with_bell.then(|| Waker::new(poll.registry(), BELL).map(Bell::new));
        let bell = bell.transpose().map_err(OmsError::Sockets)?;
        let (window, asking) = Window::new(server.events.clone(), self.clock.ticks(), bell.clone());
        self.window = Some(window);
        let opened = Opened {
            journal: self.journal.id(),
            marks: history.marks(),
            next_request,
            next_report: history.all_next().to_vec(),
            sessions: config.desk.sessions.clone(),
            asking,
        };
        Gateway::open(self.clock.clone(), poll, bell, server, opened).map(Some)
    }
}
