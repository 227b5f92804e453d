//! The OMS as a server: clients log in over a Unix socket, TCP or TLS, send requests, and receive reports.
//!
//! ```text
//!   acceptor  a thread: listens, reads logons, checks passwords; holds each connection without a logon
//!     │ admitted
//!     ▼
//!   gateway   sockets ──requests──> sequencer ──> history, the log of all reports ──> gateway ──> sockets
//! ```
//!
//! With the layout `inline` the core's thread polls the gateway; with `split` the gateway has a thread of its own, and
//! passes requests to the core by a lane. A session is a number of the trading configuration. Its requests and reports
//! are numbered in the journal, so both resume at the same numbers after any crash. A client that reconnects or cannot
//! keep up catches up from the history, from the first report it lacks; the core takes no part. [`settings`] reads the
//! configuration files.
//!
//! # Invariants
//!
//! * A connection without a logon costs the core nothing.
//! * A request with a used number is dropped, and one that leaves a number out ends its connection: no request is taken
//!   twice, and none is lost in silence.
//! * A client that does not read costs a mebibyte, and one that floods has its token bucket; both wait in their own
//!   socket.
//! * All clients that catch up from the history together take a quarter of the thread. All order lists together take a
//!   bounded share of it, and each is answered in pages.
//! * A drop copy's number is a place in the history, the same over starts and kills. Neither the core nor another
//!   session works for it. On a topic messages come at least once, numbered.
//! * An admin command that the core would refuse is not journaled, and its sender gets the reason. A request that its
//!   user's role does not allow has no number in the journal, and neither has its answer.
//! * Denied requests have a budget for each session and day, and a smaller one while the journal's disk is short.
//! * An address that other hosts reach is encrypted, or the configuration states that it is not.
//! * A wrong password costs its origin and user a second, however many connections bring it. A proof is checked against
//!   the record of its challenge, and admits only while that record is the user's.
//! * A name from the wire is escaped wherever an operator reads it (`escape.rs`).

mod acceptor;
mod admission_queue;
mod admit;
mod authenticator;
mod catch_up;
mod changes;
mod check_schedule;
mod client_table;
mod client_turn;
mod config;
mod config_reload;
mod connection;
mod control;
mod copy_topics;
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
mod output_buffer;
mod pending_logon;
mod report_feed;
mod session_numbers;
mod session_table;
pub mod settings;
mod shortage;
mod socket_poll;
mod stream;
mod timeouts;
mod tls;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use mio::{Poll, Waker};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tickpath_clock::{Clock, SchedulingGap};
use tickpath_log::Reader;
use tickpath_oms_runtime::front_end::{FrontEndState, FrontEndWaker, OpenFrontEnd};
use tickpath_oms_runtime::layout::run_with;
use tickpath_oms_runtime::{Config, OmsError, Sequencer};

pub use config::ServerConfig;
pub use copy_topics::CopyTopicThreads;
pub use error::ServerOpenError;
pub use event::ServerEvent;
pub use log_lines::LogWriter;
pub use tls::{ServerTlsFiles, TlsError};

use control::{ControlServer, GatewayWaker};
use gateway::{Gateway, GatewayParts};
use socket_poll::WAKER_TOKEN;

/// Runs an OMS as a server until `stop` is set, as [`tickpath_oms_runtime::layout::run`] does. The process is not
/// dumpable from then on.
pub fn run<C: Clock + Sync>(
    clock: C,
    config: &Config,
    server: &ServerConfig,
    ticks: Option<Reader>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<Vec<SchedulingGap>, OmsError> {
    // A core dump or another program of this user could read the password records and the private key.
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

/// Opens the gateway of an OMS, with the [`ControlServer`] by which the core's thread serves it.
fn open<C: Clock>(
    oms: &mut Sequencer<C>,
    server: &ServerConfig,
    front_end_state: FrontEndState,
) -> Result<OpenFrontEnd<C, Gateway<C>>, ServerOpenError> {
    let poll = Poll::new().map_err(ServerOpenError::Sockets)?;
    let waker = front_end_state.has_thread.then(|| Waker::new(poll.registry(), WAKER_TOKEN).map(GatewayWaker::new));
    let waker = waker.transpose().map_err(ServerOpenError::Sockets)?;
    let (configs, new_configs) = channel();
    let (port, control) = ControlServer::new(server.events.clone(), new_configs, oms.clock().ticks(), waker.clone());
    let history = oms.history_index().unwrap_or_default();
    history.set_kept_days(server.keep_days);
    let (journal_id, journal_path, next_numbers) = (oms.journal_id(), oms.journal_place(), oms.next_numbers());
    let parts = GatewayParts { journal_id, journal_path, history, next_numbers, control, configs, front_end_state };
    let sessions = Gateway::open(oms.clock().clone(), poll, waker.clone(), server, parts)?;
    let waker = waker.map(|waker| Box::new(move || waker.wake()) as FrontEndWaker);
    Ok(OpenFrontEnd { sessions, control: Some(Box::new(port)), waker })
}
