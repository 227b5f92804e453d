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

mod acceptor;
mod admit;
mod budget;
mod catch_up;
mod changes;
mod check_schedule;
mod config;
mod config_reload;
mod connection;
mod control;
mod denials;
mod descriptors;
mod disk_space;
mod drop_copies;
mod error;
mod escape;
mod event;
mod file;
mod gateway;
mod locations;
mod log_lines;
mod origin;
mod pending_logon;
pub mod settings;
mod shortage;
mod stream;
mod timeouts;
mod tls;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use mio::{Poll, Waker};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tickpath_clock::{Clock, SchedulingGap};
use tickpath_log::Reader;
use tickpath_oms_runtime::front_end::FrontEndState;
use tickpath_oms_runtime::layout::run_with;
use tickpath_oms_runtime::{Config, OmsError, Sequencer};

pub use config::ServerConfig;
pub use error::ServerOpenError;
pub use event::ServerEvent;
pub use log_lines::LogWriter;
pub use tls::{ServerTlsFiles, TlsError};

use control::{ControlServer, GatewayWaker};
use gateway::{Gateway, GatewayParts, WAKER_TOKEN};

/// Runs an OMS as a server until `stop` is set, as [`tickpath_oms_runtime::layout::run`] does. The process is not dumpable from
/// then on.
pub fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    server: &ServerConfig,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<SchedulingGap>, OmsError> {
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
            oms.set_calendar(calendar)?;
        }
        Ok::<_, OmsError>(open(oms, server, opening)?)
    };
    run_with(clock, &config, Some(front), ticks, stop, ready).map_err(|e| match (e, &server.settings) {
        (OmsError::IdentityConflicts(why), Some(settings)) => {
            OmsError::IdentityConflicts(locations::with_locations(why, settings))
        }
        (e, _) => e,
    })
}

/// Opens the gateway of an OMS, and attaches the [`ControlServer`] by which the core's thread serves it.
fn open<C: Clock>(
    oms: &mut Sequencer<C>,
    server: &ServerConfig,
    opening: FrontEndState,
) -> Result<Gateway<C>, ServerOpenError> {
    let poll = Poll::new().map_err(ServerOpenError::Sockets)?;
    let bell = opening.has_thread.then(|| Waker::new(poll.registry(), WAKER_TOKEN).map(GatewayWaker::new));
    let bell = bell.transpose().map_err(ServerOpenError::Sockets)?;
    let (desks, changed) = channel();
    let (window, asking) = ControlServer::new(server.events.clone(), changed, oms.clock().ticks(), bell.clone());
    let marks = oms.history_index().unwrap_or_default();
    marks.set_kept_days(server.keep_days);
    let opened = GatewayParts {
        journal: oms.journal_id(),
        place: oms.journal_place(),
        history: marks,
        next_report: oms.next_reports(),
        control: asking,
        configs: desks,
        opening,
    };
    let gateway = Gateway::open(oms.clock().clone(), poll, bell.clone(), server, opened)?;
    oms.set_control_port(
        Box::new(window),
        bell.map(|bell| Box::new(move || bell.wake()) as tickpath_oms_runtime::front_end::FrontEndWaker),
    );
    Ok(gateway)
}
