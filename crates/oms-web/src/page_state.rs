//! The state that requests are answered from: the counters, the logins, and a frame for each active viewer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickpath_clock::{Clock, HostClock};
use tickpath_oms_runtime::meter::{MeterReader, MeterReading};

use crate::admin::lock;
use crate::logins::Logins;
use crate::origin::{HostOrigin, PasswordAllowances, TooManyAttempts};
use crate::rights::Rights;
use crate::view::{DisplayNames, FRAME_NS, OmsView};

/// Interval between two checks for a frame, and between two polls of an idle journal.
pub(crate) const POLL_NS: u64 = 20_000_000;
/// Time without a request after which a user no longer counts as a viewer.
const LOOKING_NS: i64 = 5_000_000_000;
/// Age above which a frame is not shown, unless no newer frame arrives within this number of checks.
const STALE_NS: i64 = 2 * FRAME_NS as i64;
const MAX_WAITS: u32 = 100;

/// Receives a sentence for the operator.
pub type NotifyOperator = Arc<dyn Fn(&str) + Send + Sync>;

pub(crate) struct PageState {
    pub names: DisplayNames,
    /// Additional host names that the ports accept.
    pub hosts: Vec<String>,
    pub logins: Logins,
    pub notify: NotifyOperator,
    pub clock: HostClock,
    meters: Mutex<MeterReader>,
    /// Viewers by user; admins all see the same, so they share the frame of the empty name.
    viewers: Mutex<BTreeMap<String, Viewer>>,
    tries: Mutex<PasswordAllowances>,
}

struct Viewer {
    rights: Rights,
    /// The user's last request, and the frame's creation time, in ticks; zero for never.
    last_request: u64,
    frame_made_at: u64,
    frame: Arc<OmsView>,
}

impl PageState {
    pub fn new(
        names: DisplayNames,
        hosts: Vec<String>,
        logins: Logins,
        notify: NotifyOperator,
        meters: MeterReader,
        clock: HostClock,
    ) -> Self {
        let (viewers, tries, meters) = (Mutex::default(), Mutex::default(), Mutex::new(meters));
        Self { names, hosts, logins, notify, clock, meters, viewers, tries }
    }

    pub fn store_frame(&self, user: &str, frame: OmsView) {
        if let Some(viewer) = lock(&self.viewers).get_mut(user) {
            (viewer.frame, viewer.frame_made_at) = (Arc::new(frame), self.clock.ticks());
        }
    }

    /// Returns the current counters; `None` if no OMS runs that counts.
    pub fn reading(&self) -> Option<MeterReading> {
        lock(&self.meters).read().ok()
    }

    /// Returns a user's last frame, once it is recent: frames are made only while the user views the page.
    pub async fn frame(&self, user: &str, rights: &Rights) -> Arc<OmsView> {
        for _ in 0..MAX_WAITS {
            let (made, frame) = self.touch_viewer(user, rights);
            if self.ns_since(made) < STALE_NS {
                return frame;
            }
            tokio::time::sleep(Duration::from_nanos(POLL_NS)).await;
        }
        self.touch_viewer(user, rights).1
    }

    /// Returns the viewers whose last frame is due for renewal, with their rights.
    pub fn due(&self) -> Vec<(String, Rights)> {
        let mut viewers = lock(&self.viewers);
        viewers.retain(|_, viewer| self.ns_since(viewer.last_request) < LOOKING_NS);
        let due = viewers.iter().filter(|(_, viewer)| self.ns_since(viewer.frame_made_at) >= FRAME_NS as i64);
        due.map(|(user, viewer)| (user.clone(), viewer.rights.clone())).collect()
    }

    pub fn begin_try(&self, origin: HostOrigin) -> Result<(), TooManyAttempts> {
        let now = self.clock.calibration().ns(self.clock.ticks() as i64);
        let begun = lock(&self.tries).begin(origin, now);
        if let Err(TooManyAttempts { is_first: true, .. }) = begun {
            let from = origin.0;
            (self.notify)(&format!(
                "too many wrong passwords were sent to the page from {from}; its logins are delayed"
            ));
        }
        begun
    }

    pub fn give_back_try(&self, origin: HostOrigin) {
        lock(&self.tries).give_back(origin);
    }

    /// Records that a user views the page; returns its last frame and the frame's creation time.
    fn touch_viewer(&self, user: &str, rights: &Rights) -> (u64, Arc<OmsView>) {
        let mut viewers = lock(&self.viewers);
        let fresh = || Viewer { rights: rights.clone(), last_request: 0, frame_made_at: 0, frame: Arc::default() };
        let viewer = viewers.entry(user.to_owned()).or_insert_with(fresh);
        (viewer.last_request, viewer.rights) = (self.clock.ticks(), rights.clone());
        (viewer.frame_made_at, viewer.frame.clone())
    }

    fn ns_since(&self, moment: u64) -> i64 {
        if moment == 0 { i64::MAX } else { self.clock.ns_between(moment, self.clock.ticks()) }
    }
}
