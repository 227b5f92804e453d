//! Counters of a working OMS, in words of shared memory, and their reader.
//!
//! ```text
//!   core's thread ──load, add, store──> tickpath.NAME.counters <──read only── an endpoint, a page, a terminal
//! ```
//!
//! A hop's histogram is log-linear: each power of two of nanoseconds has 8 buckets, so a bucket is at most an eighth
//! wide and a value read from it is at most 6.25 % from the truth; below 8 ns it is exact. The histogram has 256
//! buckets, 2 KiB, up to 17 s; longer times are in the last bucket.
//! The core's thread reads no clock for the counters: it counts stamps that it has anyway. Levels are updated when it
//! is idle and reads the clock, at most every 20 ms.

use std::collections::BTreeMap;

use tickpath_log::{Counters, CountersReader, LogOpenError, LogPath};
use tickpath_market::VenueId;
use tickpath_oms_core::{Core, Output};

/// Buckets per power of two, as a power of two.
const SUB_BITS: u32 = 3;
/// Buckets of a hop.
pub const BUCKETS: usize = 256;
/// Words of a hop: its buckets, and the sum of its nanoseconds.
const HOP_WORDS: usize = BUCKETS + 1;

/// The hops of a request: T0 is its send by the client, T1 its receipt, T2 its departure. A request that another thread
/// sends is handed over, and has no T2.
pub const HOPS: [&str; 5] = ["t0_t1", "t1_t2", "t0_t2", "t1_handed", "t0_handed"];

/// Names of the kinds of notices, as counters.
pub const NOTICES: [&str; 21] = [
    "tail_lost",
    "lane_lost",
    "doubt",
    "missed",
    "quarantined",
    "returned",
    "venue_down",
    "venue_up",
    "disk_failed",
    "not_archived",
    "snapshot_failed",
    "line_down",
    "line_up",
    "line_given_up",
    "history_lost",
    "venue_silent",
    "refused_open",
    "day_ended",
    "day_not_ended",
    "strangers",
    "lanes_removed",
];

/// Denials by code; larger codes are counted at index 0, which no denial has.
const DENIALS: usize = 64;
const DENIALS_START: usize = HOPS.len() * HOP_WORDS;
/// Reports by kind; the last word counts larger codes.
const REPORTS: usize = 32;
const REPORTS_START: usize = DENIALS_START + DENIALS;
const NOTICES_START: usize = REPORTS_START + REPORTS;
const SESSIONS_START: usize = NOTICES_START + NOTICES.len();
const GAUGES_START: usize = SESSIONS_START + 1;
/// Words of a venue: whether it is up, and the requests that wait for it.
const VENUE_WORDS: usize = 2;

/// Current levels by name.
pub type GaugeValues = [(&'static str, u64); 19];

/// Writer of the counters, for the core's thread.
pub struct OmsMeter {
    counters: Counters,
    venues: Vec<VenueId>,
}

impl OmsMeter {
    /// Returns the place of the counters of the OMS with these lanes.
    pub fn place(name: &str) -> Result<LogPath, LogOpenError> {
        Ok(LogPath::shared_memory(&format!("{name}.counters"))?)
    }

    /// Opens the counters for the start of an OMS with this epoch.
    pub fn open(name: &str, venues: Vec<VenueId>, epoch: u64, levels: &GaugeValues) -> Result<Self, LogOpenError> {
        let mut runs: Vec<(String, usize)> = HOPS.iter().map(|hop| (format!("hop.{hop}"), HOP_WORDS)).collect();
        runs.extend([("denials".to_owned(), DENIALS), ("reports".to_owned(), REPORTS)]);
        runs.extend(NOTICES.iter().map(|kind| (format!("notice.{kind}"), 1)));
        runs.push(("level.sessions".to_owned(), 1));
        runs.extend(levels.iter().map(|(name, _)| (format!("level.{name}"), 1)));
        runs.extend(venues.iter().map(|venue| (format!("venue.{venue}"), VENUE_WORDS)));
        let counters = Counters::open(&Self::place(name)?, epoch, &runs)?;
        Ok(Self { counters, venues })
    }

    /// Counts a request that has left, or was handed over, by the nanoseconds from T0 to T1, and from T1 on.
    #[inline]
    pub fn count_request(&mut self, t0_t1: u64, from_t1: u64, handed_over: bool) {
        let (from_t1_at, from_t0_at) = if handed_over { (3, 4) } else { (1, 2) };
        for (hop, ns) in [(0, t0_t1), (from_t1_at, from_t1), (from_t0_at, t0_t1.saturating_add(from_t1))] {
            self.counters.add(hop * HOP_WORDS + bucket_of(ns), 1);
            self.counters.add(hop * HOP_WORDS + BUCKETS, ns);
        }
    }

    /// Counts a report or a denial that is sent to a session.
    #[inline]
    pub fn count_output(&mut self, output: &Output) {
        let word = match output {
            Output::Report { report, .. } => REPORTS_START + usize::from(report.exec_type).min(REPORTS - 1),
            Output::Denied { denied, .. } if usize::from(denied.code) < DENIALS => {
                DENIALS_START + usize::from(denied.code)
            }
            Output::Denied { .. } => DENIALS_START,
            Output::Venue { .. } | Output::Extension { .. } => return,
        };
        self.counters.add(word, 1);
    }

    /// Sets the number of logged-in sessions.
    pub fn set_sessions(&mut self, sessions: u64) {
        self.counters.set(SESSIONS_START, sessions);
    }

    /// Updates all levels.
    pub fn update_gauges(&mut self, levels: &GaugeValues, notices: &[u64; NOTICES.len()], core: &Core) {
        for (index, count) in notices.iter().enumerate() {
            self.counters.set(NOTICES_START + index, *count);
        }
        for (index, (_, level)) in levels.iter().enumerate() {
            self.counters.set(GAUGES_START + index, *level);
        }
        let first = GAUGES_START + levels.len();
        for (index, &venue) in self.venues.iter().enumerate() {
            self.counters.set(first + index * VENUE_WORDS, core.is_up(venue).into());
            self.counters.set(first + index * VENUE_WORDS + 1, core.waiting(venue) as u64);
        }
    }
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    let power = 63 - (ns | 1 << SUB_BITS).leading_zeros();
    let sub = (ns >> (power - SUB_BITS)) as usize;
    // Below 8 ns `sub` is the number itself; above, its highest bit selects a further row of buckets.
    let row = ((power - SUB_BITS) as usize) << SUB_BITS;
    (row + sub).min(BUCKETS - 1)
}

/// Returns the first nanosecond of a bucket; for the index behind the last bucket, the last bucket's end.
pub fn bucket_from(bucket: usize) -> u64 {
    let (row, sub) = ((bucket >> SUB_BITS) as u32, (bucket & ((1 << SUB_BITS) - 1)) as u64);
    if row == 0 { sub } else { (sub + (1 << SUB_BITS)) << (row - 1) }
}

/// Reader of the counters of an OMS, across restarts of the OMS.
pub struct MeterReader {
    path: LogPath,
    reader: Option<CountersReader>,
}

/// Values of the counters at a moment.
#[derive(Debug, Clone, Default)]
pub struct MeterReading {
    /// The epoch of the running start; another start begins at zero again.
    pub epoch: u64,
    /// The process that counts; `None` if it is dead.
    pub pid: Option<u32>,
    /// The hops, in the order of [`HOPS`].
    pub hops: Vec<HopHistogram>,
    /// Denied requests by the code of the denial; 0 collects codes without a counter of their own.
    pub denials: Vec<(u16, u64)>,
    /// Sent reports by the code of their kind.
    pub reports: Vec<(u8, u64)>,
    /// Notices to the operator, by kind.
    pub notices: Vec<(String, u64)>,
    /// Levels by name.
    pub gauges: BTreeMap<String, u64>,
    /// The venues.
    pub venues: Vec<VenueReading>,
}

/// A hop's histogram.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HopHistogram {
    /// Requests by bucket; [`bucket_from`] returns a bucket's nanoseconds.
    pub buckets: Vec<u64>,
    /// The sum of their nanoseconds.
    pub sum_ns: u64,
}

/// Counters of a venue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VenueReading {
    /// The venue's number.
    pub venue: u16,
    /// Whether the venue accepts requests.
    pub is_up: bool,
    /// Requests that wait for the venue.
    pub waiting: u64,
}

impl MeterReader {
    /// Returns a reader for the OMS with this name, which need not run yet.
    pub fn for_oms(name: &str) -> Result<Self, LogOpenError> {
        Ok(Self { path: OmsMeter::place(name)?, reader: None })
    }

    /// Reads the current counters; an error if there are none, neither of a running nor of a killed OMS.
    pub fn read(&mut self) -> Result<MeterReading, LogOpenError> {
        if self.reader.as_ref().is_none_or(|reader| !reader.is_current()) {
            self.reader = None;
            self.reader = Some(CountersReader::open(&self.path)?);
        }
        Ok(self.reader.as_ref().map(MeterReading::of).unwrap_or_default())
    }
}

impl MeterReading {
    fn of(reader: &CountersReader) -> Self {
        let mut reading = Self { epoch: reader.incarnation(), pid: reader.writer(), ..Self::default() };
        for (name, words) in reader.runs() {
            let first = words.first().copied().unwrap_or(0);
            let by_code = words.iter().enumerate().filter(|(_, count)| **count > 0);
            match name.split_once('.') {
                None if name == "denials" => reading.denials = by_code.map(|(code, n)| (code as u16, *n)).collect(),
                None if name == "reports" => reading.reports = by_code.map(|(code, n)| (code as u8, *n)).collect(),
                Some(("hop", _)) => {
                    let (buckets, rest) = words.split_at(words.len().min(BUCKETS));
                    let sum_ns = rest.first().copied().unwrap_or(0);
                    reading.hops.push(HopHistogram { buckets: buckets.to_vec(), sum_ns });
                }
                Some(("notice", kind)) => reading.notices.push((kind.to_owned(), first)),
                Some(("level", name)) => drop(reading.gauges.insert(name.to_owned(), first)),
                Some(("venue", number)) => reading.venues.extend(number.parse().ok().map(|venue| {
                    let waiting = words.get(1).copied().unwrap_or(0);
                    VenueReading { venue, is_up: first == 1, waiting }
                })),
                // Counters of a later version.
                _ => {}
            }
        }
        reading
    }

    /// Returns a level; zero if this OMS does not count it.
    pub fn gauge(&self, name: &str) -> u64 {
        self.gauges.get(name).copied().unwrap_or(0)
    }

    /// Returns the number of requests that have left, or were denied: each counts once.
    pub fn requests(&self) -> u64 {
        self.hops.first().map_or(0, HopHistogram::count)
    }
}

impl HopHistogram {
    /// Returns the number of requests.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the difference to an earlier reading of the same start.
    pub fn since(&self, earlier: &Self) -> Self {
        let before = earlier.buckets.iter().chain(std::iter::repeat(&0));
        let buckets = self.buckets.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect();
        Self { buckets, sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns) }
    }

    /// Returns the nanoseconds below which this share of the requests lies: the middle of a bucket. `None` without
    /// requests.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut below = 0;
        let bucket = self.buckets.iter().position(|requests| {
            below += requests;
            below >= rank
        })?;
        let (from, to) = (bucket_from(bucket), bucket_from(bucket + 1));
        Some(from + (to - from) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_an_eighth_wide() {
        for ns in (0..100_000).chain((17..34).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1])) {
            let bucket = bucket_of(ns).min(BUCKETS - 2);
            let (from, to) = (bucket_from(bucket), bucket_from(bucket + 1));
            assert!(from <= ns && (ns < to || ns >= 1 << 33), "{ns} is not in {from} to {to}");
            assert!(to - from == 1 || (to - from) * 8 <= from, "{from} to {to} is too wide");
        }
        assert_eq!(bucket_from(BUCKETS), 1 << 34);
        assert_eq!((bucket_of((1 << 34) - 1), bucket_of(1 << 34), bucket_of(u64::MAX)), (255, 255, 255));
    }

    #[test]
    fn a_quantile_is_close_to_the_truth() {
        let mut hop = HopHistogram { buckets: vec![0; BUCKETS], sum_ns: 0 };
        assert_eq!(hop.quantile(0.5), None);
        (1..=10_000_u64).for_each(|ns| hop.buckets[bucket_of(ns * 100)] += 1);
        for (share, truth) in [(0.0, 100.0), (0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let quantile = hop.quantile(share).expect("the histogram has requests") as f64;
            assert!((quantile / truth - 1.0).abs() <= 0.0626, "{share}: {quantile} instead of {truth}");
        }
    }
}
