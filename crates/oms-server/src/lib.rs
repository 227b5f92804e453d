//! The OMS as a server: clients log in over a Unix socket, TCP or TLS, send requests, and receive reports.
//!
//! ```text
//!   door      the acceptor, a thread: listens, reads logons, checks passwords; holds each connection without a logon
//!     │ admitted
//!     ▼
//!   gateway   sockets ──requests──> sequencer ──> history, the log of all reports ──> gateway ──> sockets
//! ```
//!
//! With the layout `inline` the core's thread polls the gateway; with `split` the gateway has a thread of its own, and
//! passes requests to the core by a lane. A session is a number of the trading configuration. Its requests and reports
//! are numbered in the journal, so both resume at the same numbers after any crash. A client that reconnects or cannot
//! keep up catches up from the history, from the first report it lacks; the core takes no part.

mod accept;
mod admit;
mod books;
mod budget;
mod catch_up;
mod changes;
mod config;
mod connection;
mod copies;
mod denials;
mod descriptors;
mod door;
mod error;
mod escape;
mod event;
mod file;
mod gateway;
mod knock;
mod lines;
mod origin;
mod places;
mod room;
pub mod settings;
mod silence;
mod stream;
mod tls;
mod watch;
mod window;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use mio::{Poll, Waker};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tickpath_clock::{Clock, Gap};
use tickpath_log::Reader;
use tickpath_oms_runtime::front::Opening;
use tickpath_oms_runtime::layout::run_with;
use tickpath_oms_runtime::{Config, OmsError, Sequencer};

pub use config::ServerConfig;
pub use error::OpenError;
pub use event::ServerEvent;
pub use lines::Lines;
pub use tls::{TlsError, TlsFiles};

use gateway::{BELL, Gateway, Opened};
use window::{Bell, Window};

/// Runs an OMS as a server until `stop` is set, as [`tickpath_oms_runtime::layout::run`] does. The process is not dumpable from
/// then on.
pub fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    server: &ServerConfig,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<Gap>, OmsError> {
    // The memory holds password records and a private key: neither may be in a core dump, nor readable for other
    // programs of this user.
    if let Err(e) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        let why = format!("the memory of this process cannot be kept from core dumps: {e}; set LimitCORE=0");
        let _ = server.events.try_send(ServerEvent::Warning(why));
    }
    let config = Config { history: true, ..config.clone() };
    let calendar = server.settings.as_ref().and_then(|settings| settings.day.clone());
    let front = |oms: &mut Sequencer<C>, opening| {
        if let Some(calendar) = calendar {
            oms.keep_calendar(calendar)?;
        }
        Ok::<_, OmsError>(open(oms, server, opening)?)
    };
    run_with(clock, &config, Some(front), ticks, stop, ready).map_err(|e| match (e, &server.settings) {
        (OmsError::Borne(why), Some(settings)) => OmsError::Borne(places::with_places(why, settings)),
        (e, _) => e,
    })
}

/// Opens the gateway of an OMS, and attaches the [`Window`] by which the core's thread serves it.
fn open<C: Clock>(oms: &mut Sequencer<C>, server: &ServerConfig, opening: Opening) -> Result<Gateway<C>, OpenError> {
    let poll = Poll::new().map_err(OpenError::Sockets)?;
    let bell = opening.has_thread.then(|| Waker::new(poll.registry(), BELL).map(Bell::new));
    let bell = bell.transpose().map_err(OpenError::Sockets)?;
    let (desks, changed) = channel();
    let (window, asking) = Window::new(server.events.clone(), changed, oms.clock().ticks(), bell.clone());
    let marks = oms.history().unwrap_or_default();
    marks.keep(server.keep_days);
    let opened = Opened {
        journal: oms.journal_id(),
        place: oms.journal_place(),
        marks,
        next_report: oms.next_reports(),
        asking,
        desks,
        opening,
    };
    let gateway = Gateway::open(oms.clock().clone(), poll, bell.clone(), server, opened)?;
    oms.attend(Box::new(window), bell.map(|bell| Box::new(move || bell.ring()) as tickpath_oms_runtime::front::Bell));
    Ok(gateway)
}
