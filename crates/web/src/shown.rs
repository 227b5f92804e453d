//! What requests are answered from: the counters, the logins, and a frame for each user who looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickpath_clock::{Clock, HostClock};
use tickpath_meter::{Meters, Reading};

use crate::admin::locked;
use crate::logins::Logins;
use crate::origin::{Origin, TooMany, Tries};
use crate::rights::Rights;
use crate::view::{FRAME_NS, Names, View};

/// Between two looks whether there is a frame; and at a journal that had nothing new.
pub(crate) const LOOK_NS: u64 = 20_000_000;
/// A user who asked so long ago looks no more.
const LOOKING_NS: i64 = 5_000_000_000;
/// A frame that is older is not shown, unless none comes within so many looks.
const STALE_NS: i64 = 2 * FRAME_NS as i64;
const MOST_WAITS: u32 = 100;

/// Receives a sentence for the operator.
pub type NotifyOperator = Arc<dyn Fn(&str) + Send + Sync>;

/// What requests are answered from.
pub(crate) struct Shown {
    pub names: Names,
    /// Other names by which the ports may be asked.
    pub hosts: Vec<String>,
    pub logins: Logins,
    pub notify: NotifyOperator,
    pub clock: HostClock,
    meters: Mutex<Meters>,
    /// By user; an admin sees what every other admin sees, so all share the frame of the empty name.
    viewers: Mutex<BTreeMap<String, Viewer>>,
    tries: Mutex<Tries>,
}

/// A user who looks, and the last frame made for it.
struct Viewer {
    rights: Rights,
    /// When the user last asked, and when the frame was made, in ticks; zero for never.
    asked: u64,
    made: u64,
    frame: Arc<View>,
}

impl Shown {
    /// Nobody looks yet.
    pub fn new(
        names: Names,
        hosts: Vec<String>,
        logins: Logins,
        notify: NotifyOperator,
        meters: Meters,
        clock: HostClock,
    ) -> Self {
        let (viewers, tries, meters) = (Mutex::default(), Mutex::default(), Mutex::new(meters));
        Self { names, hosts, logins, notify, clock, meters, viewers, tries }
    }

    /// Shows a frame to the user that it was made for.
    pub fn show(&self, user: &str, frame: View) {
        if let Some(viewer) = locked(&self.viewers).get_mut(user) {
            (viewer.frame, viewer.made) = (Arc::new(frame), self.clock.ticks());
        }
    }

    /// What the counters say now; none if no OMS counts.
    pub fn reading(&self) -> Option<Reading> {
        locked(&self.meters).read().ok()
    }

    /// The last frame of a user, once there is one that is not old: frames are made only while somebody looks.
    pub async fn frame(&self, user: &str, rights: &Rights) -> Arc<View> {
        for _ in 0..MOST_WAITS {
            let (made, frame) = self.look(user, rights);
            if self.ns_since(made) < STALE_NS {
                return frame;
            }
            tokio::time::sleep(Duration::from_nanos(LOOK_NS)).await;
        }
        self.look(user, rights).1
    }

    /// The users who look and have seen their last frame for long enough, with their rights.
    pub fn due(&self) -> Vec<(String, Rights)> {
        let mut viewers = locked(&self.viewers);
        viewers.retain(|_, viewer| self.ns_since(viewer.asked) < LOOKING_NS);
        let due = viewers.iter().filter(|(_, viewer)| self.ns_since(viewer.made) >= FRAME_NS as i64);
        due.map(|(user, viewer)| (user.clone(), viewer.rights.clone())).collect()
    }

    /// Takes one of the passwords that an origin may try now.
    pub fn begin_try(&self, origin: Origin) -> Result<(), TooMany> {
        let now = self.clock.calibration().ns(self.clock.ticks() as i64);
        let begun = locked(&self.tries).begin(origin, now);
        if let Err(TooMany { is_first: true, .. }) = begun {
            (self.notify)(&format!("too many wrong passwords came to the page from {origin}; its logins wait"));
        }
        begun
    }

    /// Gives a try back to an origin whose password was right.
    pub fn right_try(&self, origin: Origin) {
        locked(&self.tries).right(origin);
    }

    /// Notes that a user looks; returns when its last frame was made, and the frame.
    fn look(&self, user: &str, rights: &Rights) -> (u64, Arc<View>) {
        let mut viewers = locked(&self.viewers);
        let fresh = || Viewer { rights: rights.clone(), asked: 0, made: 0, frame: Arc::default() };
        let viewer = viewers.entry(user.to_owned()).or_insert_with(fresh);
        (viewer.asked, viewer.rights) = (self.clock.ticks(), rights.clone());
        (viewer.made, viewer.frame.clone())
    }

    fn ns_since(&self, moment: u64) -> i64 {
        if moment == 0 { i64::MAX } else { self.clock.ns_between(moment, self.clock.ticks()) }
    }
}
