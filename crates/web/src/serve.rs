//! The endpoints of an OMS: metrics, and the page, on threads of their own.
//!
//! ```text
//!   oms-frames   reads the counters, follows the journal; while somebody looks it makes a frame twice a second
//!   oms-web      answers requests from the last frame; a login has a thread of its own that is its session
//! ```

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tickpath_clock::{CalibrationError, Clock, HostClock, Priority, settle, sleep_ns};
use tickpath_log::{OpenError, Place};
use tickpath_oms::meter::{Meters, Reading};
use tokio::sync::Notify;

use crate::admin::Admins;
use crate::follow::Follower;
use crate::http;
use crate::view::{FRAME_NS, Names, Recent, View};

/// Between two looks at a journal that had nothing new.
const LOOK_NS: u64 = 20_000_000;
/// Inputs that are taken between two looks whether a frame is due.
const INPUTS: usize = 4096;
/// Whoever asked so long ago looks no more.
const LOOKING_NS: i64 = 5_000_000_000;
/// A frame that is older is not shown, unless none comes within so many looks.
const STALE_NS: i64 = 2 * FRAME_NS as i64;
const MOST_WAITS: u32 = 100;
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

/// What requests are answered from.
pub(crate) struct Shown {
    pub names: Names,
    pub admins: Admins,
    meters: Mutex<Meters>,
    clock: HostClock,
    frame: Mutex<Arc<View>>,
    /// When the frame was made, and when somebody last asked for one, in ticks.
    made: AtomicU64,
    asked: AtomicU64,
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
    let shown = Arc::new(Shown {
        names: config.names.clone(),
        admins: Admins::new(&config.oms),
        meters: Mutex::new(Meters::of(&config.names.oms)?),
        clock: HostClock::get()?,
        frame: Mutex::default(),
        made: AtomicU64::new(0),
        asked: AtomicU64::new(0),
    });
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

impl Shown {
    /// What the counters say now; none if nobody counts.
    pub fn reading(&self) -> Option<Reading> {
        locked(&self.meters).read().ok()
    }

    /// The last frame, once there is one that is not old: frames are made only while somebody looks.
    pub async fn frame(&self) -> Arc<View> {
        self.asked.store(self.clock.ticks(), Ordering::Relaxed);
        for _ in 0..MOST_WAITS {
            if self.ns_since(&self.made) < STALE_NS {
                break;
            }
            tokio::time::sleep(Duration::from_nanos(LOOK_NS)).await;
        }
        locked(&self.frame).clone()
    }

    /// Whether somebody looks, and has seen the last frame for long enough.
    fn is_due(&self) -> bool {
        self.ns_since(&self.asked) < LOOKING_NS && self.ns_since(&self.made) >= FRAME_NS as i64
    }

    fn ns_since(&self, moment: &AtomicU64) -> i64 {
        match moment.load(Ordering::Relaxed) {
            0 => i64::MAX,
            moment => self.clock.ns_between(moment, self.clock.ticks()),
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
            *locked(&shown.frame) = Arc::new(view);
            shown.made.store(shown.clock.ticks(), Ordering::Relaxed);
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

/// What is behind a lock here is whole at every moment, whoever panicked.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
