//! The endpoints of an OMS: metrics, and the page, on threads of their own.
//!
//! ```text
//!   oms-frames   reads the counters, follows the journal; while users look it makes a frame for each, twice a second
//!   oms-web      answers requests from the last frames; an admin's login has a thread of its own that is its session
//! ```

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use tickpath_clock::{CalibrationError, HostClock, Priority, apply_schedule, sleep_ns};
use tickpath_log::{LogOpenError, LogPath};
use tickpath_oms_runtime::meter::MeterReader;
use tokio::sync::Notify;

use crate::accept::accept;
use crate::http::Port;
use crate::journal_follower::JournalFollower;
use crate::logins::Logins;
use crate::page_state::{NotifyOperator, POLL_NS, PageState};
use crate::rights::PageUserLookup;
use crate::tls::{PageCertificate, PageTlsFiles};
use crate::view::{DisplayNames, FRAME_NS, OmsView, RecentReadings};

/// Inputs that are applied between two checks for a due frame.
const INPUTS: usize = 4096;
/// Checks until the next try to follow an unreadable journal: five seconds.
const RETRY_CHECKS: u32 = 250;

/// Configuration of the endpoints: content, addresses and users.
#[derive(Clone)]
pub struct Config {
    /// The port of the metrics alone.
    pub metrics: Option<Endpoint>,
    /// The port of the page, which also serves the metrics.
    pub web: Option<Endpoint>,
    /// Host names that the ports accept, beside addresses, `localhost` and the names of a certificate.
    pub hosts: Vec<String>,
    /// Display names.
    pub names: DisplayNames,
    /// The journal of the OMS.
    pub journal: LogPath,
    /// The OMS's address for logons, as a client URL: the page's admins get their sessions there.
    pub oms: String,
    /// The users of the OMS.
    pub users: Arc<dyn PageUserLookup>,
    /// Receives messages for the operator, a sentence each.
    pub notify: NotifyOperator,
    /// The CPU of the threads; any CPU if there is none.
    pub cpu: Option<usize>,
}

/// A port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address.
    pub address: SocketAddr,
    /// The certificate files for TLS; plain HTTP if there are none.
    pub tls: Option<PageTlsFiles>,
}

/// The reason for which the endpoints do not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is in use, or is not this host's.
    #[error("cannot listen on {address}: {reason}; name another address, or stop the program that listens on it")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
    /// The files do not allow TLS.
    #[error("{0}")]
    Tls(String),
    /// The host has no usable clock.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
    /// The counters cannot be opened.
    #[error(transparent)]
    Counters(#[from] LogOpenError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// The endpoints, until dropped.
pub struct RunningEndpoints {
    metrics: Option<BoundPort>,
    web: Option<BoundPort>,
    stop: Arc<StopSignal>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Clone, Copy)]
struct BoundPort {
    address: SocketAddr,
    scheme: &'static str,
}

#[derive(Default)]
struct StopSignal {
    is_set: AtomicBool,
    notify: Notify,
}

/// Listens, and answers requests from now on.
pub fn serve(config: &Config) -> Result<RunningEndpoints, ServeError> {
    let listen = |endpoint: &Option<Endpoint>, is_page| endpoint.as_ref().map(|it| listen(it, is_page)).transpose();
    let (metrics, web) = (listen(&config.metrics, false)?, listen(&config.web, true)?);
    let bound = |listening: &Option<ListeningPort>| listening.as_ref().map(|listening| listening.bound);
    let (clock, meters) = (HostClock::get()?, MeterReader::for_oms(&config.names.oms)?);
    let logins = Logins::new(&config.oms, config.users.clone(), clock);
    let (names, hosts, notify) = (config.names.clone(), config.hosts.clone(), config.notify.clone());
    let shown = Arc::new(PageState::new(names, hosts, logins, notify, meters, clock));
    let stop = Arc::new(StopSignal::default());
    let mut serving =
        RunningEndpoints { metrics: bound(&metrics), web: bound(&web), stop: stop.clone(), threads: Vec::new() };
    if web.is_some() {
        let (meters, journal, shown, stop) =
            (MeterReader::for_oms(&config.names.oms)?, config.journal.clone(), shown.clone(), stop.clone());
        serving.start("oms-frames", config.cpu, move || make_frames(meters, &journal, &shown, &stop))?;
    }
    serving.start("oms-web", config.cpu, move || serve_ports([metrics, web], &shown, &stop))?;
    Ok(serving)
}

impl RunningEndpoints {
    /// Returns the address of the metrics alone.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics.map(|bound| bound.address)
    }

    /// Returns the address of the page.
    pub fn web(&self) -> Option<SocketAddr> {
        self.web.map(|bound| bound.address)
    }

    /// Returns the URL of the metrics alone.
    pub fn metrics_url(&self) -> Option<String> {
        self.metrics.map(|bound| format!("{}://{}/metrics", bound.scheme, bound.address))
    }

    /// Returns the URL of the page.
    pub fn web_url(&self) -> Option<String> {
        self.web.map(|bound| format!("{}://{}/", bound.scheme, bound.address))
    }

    fn start(
        &mut self,
        name: &str,
        cpu: Option<usize>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), ServeError> {
        let scheduled = move || {
            // Any CPU is better than none: nothing here is urgent.
            let _ = apply_schedule(cpu, Priority::Normal);
            work();
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(scheduled).map_err(ServeError::Thread)?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for RunningEndpoints {
    fn drop(&mut self) {
        self.stop.is_set.store(true, Ordering::Release);
        self.stop.notify.notify_one();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct ListeningPort {
    bound: BoundPort,
    listener: TcpListener,
    port: Port,
}

fn listen(endpoint: &Endpoint, is_page: bool) -> Result<ListeningPort, ServeError> {
    let address = endpoint.address;
    let certificate = endpoint.tls.as_ref().map(PageCertificate::read).transpose().map_err(ServeError::Tls)?;
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    let (listener, address) = bound.map_err(|reason| ServeError::Listen { address, reason })?;
    let port = Port { is_page, number: address.port(), certificate };
    Ok(ListeningPort { bound: BoundPort { address, scheme: port.scheme() }, listener, port })
}

fn make_frames(mut meters: MeterReader, journal: &LogPath, shown: &PageState, stop: &StopSignal) {
    let (mut recent, mut follower, mut why) = (RecentReadings::default(), None, String::new());
    let (mut checks, mut tries, mut names) = (0_u32, 0_u32, shown.names.clone());
    let every = (FRAME_NS / POLL_NS) as u32;
    while !stop.is_set.load(Ordering::Acquire) {
        let applied = match follower.as_mut().map(|follower: &mut JournalFollower| follower.step(INPUTS)) {
            Some(Ok(applied)) => applied,
            Some(Err(e)) => {
                (follower, why, tries) = (None, e.to_string(), RETRY_CHECKS);
                0
            }
            // The OMS makes its journal when it starts.
            None if tries == 0 => {
                tries = if why.is_empty() { every } else { RETRY_CHECKS };
                match JournalFollower::open(journal) {
                    Ok(opened) => (follower, why) = (Some(opened), String::new()),
                    Err(e) => why = e.to_string(),
                }
                0
            }
            None => {
                tries -= 1;
                0
            }
        };
        if checks.is_multiple_of(every)
            && let Ok(reading) = meters.read()
        {
            recent.add(reading);
        }
        let due = shown.due();
        if !due.is_empty() {
            // Users log in and out while the OMS runs.
            names.users = shown.logins.owners();
        }
        for (user, rights) in due {
            let mut view = OmsView::for_rights(&rights, &names, &recent, follower.as_ref());
            if !why.is_empty() {
                view.alarms.push(format!("the journal cannot be followed: {why}"));
            }
            shown.store_frame(&user, view);
        }
        // During a backlog frames are delayed, so that the backlog shrinks sooner.
        if applied < INPUTS {
            checks = checks.wrapping_add(1);
            sleep_ns(POLL_NS);
        }
    }
}

fn serve_ports(ports: [Option<ListeningPort>; 2], shown: &Arc<PageState>, stop: &StopSignal) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() else { return };
    runtime.block_on(async {
        for ListeningPort { listener, port, .. } in ports.into_iter().flatten() {
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                tokio::spawn(accept(listener, Arc::new(port), shown.clone()));
            }
        }
        stop.notify.notified().await;
    });
    // A login check in progress is not awaited.
    runtime.shutdown_background();
}
