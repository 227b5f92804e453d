//! The endpoints of an OMS: metrics, and the page, on threads of their own.
//!
//! ```text
//!   oms-frames   reads the counters, follows the journal; while somebody looks it makes a frame twice a second
//!   oms-web      answers requests from the last frame; a login has a thread of its own that is its session
//! ```

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use tickpath_clock::{CalibrationError, HostClock, Priority, settle, sleep_ns};
use tickpath_log::{OpenError, Place};
use tickpath_meter::Meters;
use tokio::sync::Notify;

use crate::admin::Admins;
use crate::follow::Follower;
use crate::http;
use crate::shown::{LOOK_NS, Shown};
use crate::view::{FRAME_NS, Names, Recent, View};

/// Inputs that are taken between two looks whether a frame is due.
const INPUTS: usize = 4096;
/// Looks until a journal that cannot be followed is tried again: five seconds.
const TRY_AGAIN: u32 = 250;

/// What is shown, and where.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address of the metrics alone.
    pub metrics: Option<SocketAddr>,
    /// The address of the page; the metrics are there, too.
    pub web: Option<SocketAddr>,
    /// What things are called.
    pub names: Names,
    /// The journal of the OMS.
    pub journal: Place,
    /// Where the OMS hears logons, as a URL of a client: the page's admins log in there.
    pub oms: String,
    /// The processor of the threads; any if it is none.
    pub cpu: Option<usize>,
}

/// Why nothing is shown.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address is taken, or none of this host's.
    #[error("cannot listen on {address}: {reason}; name another address, or end who listens there")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        reason: io::Error,
    },
    /// The host has no clock to measure by.
    #[error(transparent)]
    Clock(#[from] CalibrationError),
    /// The counters have no place.
    #[error(transparent)]
    Counters(#[from] OpenError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// The endpoints, until dropped.
pub struct Serving {
    metrics: Option<SocketAddr>,
    web: Option<SocketAddr>,
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    is_set: AtomicBool,
    told: Notify,
}

/// Listens, and answers from now on.
pub fn serve(config: &Config) -> Result<Serving, ServeError> {
    let listen = |address: Option<SocketAddr>| address.map(listen).transpose();
    let (metrics, web) = (listen(config.metrics)?, listen(config.web)?);
    let address = |listener: &Option<TcpListener>| listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let meters = Meters::of(&config.names.oms)?;
    let shown = Shown::new(config.names.clone(), Admins::new(&config.oms), meters, HostClock::get()?);
    let shown = Arc::new(shown);
    let stop = Arc::new(Stop::default());
    let mut serving =
        Serving { metrics: address(&metrics), web: address(&web), stop: stop.clone(), threads: Vec::new() };
    if web.is_some() {
        let (meters, journal, shown, stop) =
            (Meters::of(&config.names.oms)?, config.journal.clone(), shown.clone(), stop.clone());
        serving.start("oms-frames", config.cpu, move || make_frames(meters, &journal, &shown, &stop))?;
    }
    serving.start("oms-web", config.cpu, move || answer(metrics, web, &shown, &stop))?;
    Ok(serving)
}

impl Serving {
    /// The address of the metrics alone.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// The address of the page.
    pub fn web(&self) -> Option<SocketAddr> {
        self.web
    }

    fn start(
        &mut self,
        name: &str,
        cpu: Option<usize>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), ServeError> {
        let settled = move || {
            // On any processor rather than on none: nothing here is in a hurry.
            let _ = settle(cpu, Priority::Normal);
            work();
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(settled).map_err(ServeError::Thread)?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.is_set.store(true, Ordering::Release);
        self.stop.told.notify_one();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|reason| ServeError::Listen { address, reason })
}

fn make_frames(mut meters: Meters, journal: &Place, shown: &Shown, stop: &Stop) {
    let (mut recent, mut follower, mut why) = (Recent::default(), None, String::new());
    let (mut looks, mut tries) = (0_u32, 0_u32);
    let every = (FRAME_NS / LOOK_NS) as u32;
    while !stop.is_set.load(Ordering::Acquire) {
        let taken = match follower.as_mut().map(|follower: &mut Follower| follower.step(INPUTS)) {
            Some(Ok(taken)) => taken,
            Some(Err(e)) => {
                (follower, why, tries) = (None, e.to_string(), TRY_AGAIN);
                0
            }
            // The OMS makes its journal when it starts.
            None if tries == 0 => {
                tries = if why.is_empty() { every } else { TRY_AGAIN };
                match Follower::open(journal) {
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
        if looks.is_multiple_of(every)
            && let Ok(reading) = meters.read()
        {
            recent.take(reading);
        }
        if shown.is_due() {
            let mut view = View::of(&shown.names, &recent, follower.as_ref());
            if !why.is_empty() {
                view.alarms.push(format!("the journal cannot be followed: {why}"));
            }
            shown.show(view);
        }
        // While there is a backlog frames come later, and the backlog is worked off sooner.
        if taken < INPUTS {
            looks = looks.wrapping_add(1);
            sleep_ns(LOOK_NS);
        }
    }
}

fn answer(metrics: Option<TcpListener>, web: Option<TcpListener>, shown: &Arc<Shown>, stop: &Stop) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() else { return };
    runtime.block_on(async {
        for (listener, is_page) in [(metrics, false), (web, true)] {
            if let Some(Ok(listener)) = listener.map(tokio::net::TcpListener::from_std) {
                tokio::spawn(http::accept(listener, is_page, shown.clone()));
            }
        }
        stop.told.notified().await;
    });
    // A login that is being checked is not waited for.
    runtime.shutdown_background();
}
