//! What requests are answered from: the counters, and the last frame.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickpath_clock::{Clock, HostClock};
use tickpath_meter::{Meters, Reading};

use crate::admin::{Admins, locked};
use crate::view::{FRAME_NS, Names, View};

/// Between two looks whether there is a frame; and at a journal that had nothing new.
pub(crate) const LOOK_NS: u64 = 20_000_000;
/// Whoever asked so long ago looks no more.
const LOOKING_NS: i64 = 5_000_000_000;
/// A frame that is older is not shown, unless none comes within so many looks.
const STALE_NS: i64 = 2 * FRAME_NS as i64;
const MOST_WAITS: u32 = 100;

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

impl Shown {
    /// Nobody has looked yet.
    pub fn new(names: Names, admins: Admins, meters: Meters, clock: HostClock) -> Self {
        let (made, asked) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { names, admins, meters: Mutex::new(meters), clock, frame: Mutex::default(), made, asked }
    }

    /// Shows this frame from now on.
    pub fn show(&self, frame: View) {
        *locked(&self.frame) = Arc::new(frame);
        self.made.store(self.clock.ticks(), Ordering::Relaxed);
    }

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
    pub fn is_due(&self) -> bool {
        self.ns_since(&self.asked) < LOOKING_NS && self.ns_since(&self.made) >= FRAME_NS as i64
    }

    fn ns_since(&self, moment: &AtomicU64) -> i64 {
        match moment.load(Ordering::Relaxed) {
            0 => i64::MAX,
            moment => self.clock.ns_between(moment, self.clock.ticks()),
        }
    }
}
