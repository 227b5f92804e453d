//! One calibration for the whole host.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::counter;

const MAGIC: [u8; 8] = *b"TICKCLK1";

/// How long the first process of a boot measures the counter's rate: 20 ns of uncertainty at each end of 200 ms is
/// 0.2 parts in a million, 0.7 ms an hour, and the same for every process.
const MEASURE_NS: u64 = 200_000_000;

/// Which counter the ticks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Source {
    /// The invariant time stamp counter of the processor.
    Tsc = 1,
    /// `CLOCK_MONOTONIC`, one tick a nanosecond: slower to read.
    Os = 2,
    /// A [`crate::SimulatedClock`].
    Simulated = 3,
}

impl Source {
    /// The source with this code, if there is one.
    pub fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Tsc),
            2 => Some(Self::Os),
            3 => Some(Self::Simulated),
            _ => None,
        }
    }

    /// A word for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Os => "os",
            Self::Simulated => "simulated",
        }
    }
}

/// How ticks relate to nanoseconds and to UTC: a flat struct, the same bytes in shared memory and in a log's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Calibration {
    magic: [u8; 8],
    /// The boot that this belongs to: the counter starts anew with each.
    pub boot_id: [u8; 16],
    /// The counter at the moment of calibration.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC` at that moment, in nanoseconds.
    pub monotonic_ns: u64,
    /// UTC at that moment, nanoseconds since the Unix epoch.
    pub utc_ns: u64,
    /// Ticks in a second.
    pub ticks_per_second: u64,
    source: u32,
    reserved: u32,
}

/// Why there is no clock.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The host's calibration file cannot be made or read.
    #[error("cannot use the host's clock file {path}: {reason}; it must be readable for all who share a path")]
    File {
        /// Where it lies.
        path: PathBuf,
        /// What the operating system says.
        reason: io::Error,
    },
    /// The file holds something else.
    #[error("{path} is no clock calibration of this boot; remove it while no Tickpath process runs")]
    Foreign {
        /// Where it lies.
        path: PathBuf,
    },
}

impl Calibration {
    /// A clock whose tick is a nanosecond since the Unix epoch: for tests, and for what is in nanoseconds already.
    pub fn nanoseconds() -> Self {
        Self {
            magic: MAGIC,
            boot_id: [0; 16],
            ticks: 0,
            monotonic_ns: 0,
            utc_ns: 0,
            ticks_per_second: 1_000_000_000,
            source: Source::Simulated as u32,
            reserved: 0,
        }
    }

    /// Which counter the ticks are.
    pub fn source(&self) -> Option<Source> {
        Source::from_code(self.source)
    }

    /// True if stamps of the two can be subtracted: same boot, same counter, same rate.
    pub fn agrees_with(&self, other: &Self) -> bool {
        (self.boot_id, self.source, self.ticks_per_second) == (other.boot_id, other.source, other.ticks_per_second)
    }

    /// True if the bytes can be a calibration at all.
    pub fn is_sound(&self) -> bool {
        self.magic == MAGIC && self.source().is_some() && (1_000_000..=100_000_000_000).contains(&self.ticks_per_second)
    }

    /// Nanoseconds from one tick count to another; negative if the second is the earlier one.
    #[inline]
    pub fn ns_between(&self, from: u64, to: u64) -> i64 {
        self.ns(to.wrapping_sub(from) as i64)
    }

    /// A difference of ticks in nanoseconds, rounded toward zero.
    #[inline]
    pub fn ns(&self, ticks: i64) -> i64 {
        // Below nine thousand million ticks (some seconds) the product fits 64 bits, and the division is ten times faster.
        const FITS: u64 = i64::MAX as u64 / 1_000_000_000;
        if ticks.unsigned_abs() <= FITS {
            return ticks * 1_000_000_000 / self.ticks_per_second as i64;
        }
        (i128::from(ticks) * 1_000_000_000 / i128::from(self.ticks_per_second)) as i64
    }

    /// A length of time in ticks.
    #[inline]
    pub fn ticks_of_ns(&self, ns: u64) -> u64 {
        (u128::from(ns) * u128::from(self.ticks_per_second) / 1_000_000_000) as u64
    }

    /// A stamp as UTC, nanoseconds since the Unix epoch.
    pub fn utc_ns_of(&self, ticks: u64) -> u64 {
        self.utc_ns.wrapping_add_signed(self.ns_between(self.ticks, ticks))
    }

    /// Measures the counter against the operating system's clock.
    fn measure(boot_id: [u8; 16]) -> Self {
        let source = if counter::has_invariant_tsc() { Source::Tsc } else { Source::Os };
        let (ticks, monotonic_ns) = read_both();
        let ticks_per_second = match source {
            Source::Tsc => {
                crate::sleep_ns(MEASURE_NS);
                let (later_ticks, later_ns) = read_both();
                (u128::from(later_ticks - ticks) * 1_000_000_000 / u128::from(later_ns - monotonic_ns)) as u64
            }
            Source::Os | Source::Simulated => 1_000_000_000,
        };
        let ticks = if source == Source::Tsc { ticks } else { monotonic_ns };
        let utc_ns = utc_ns() - (counter::monotonic_ns() - monotonic_ns);
        Self {
            magic: MAGIC,
            boot_id,
            ticks,
            monotonic_ns,
            utc_ns,
            ticks_per_second,
            source: source as u32,
            reserved: 0,
        }
    }
}

/// The counter and the operating system's clock at one moment: the tightest of some tries.
fn read_both() -> (u64, u64) {
    let once = || {
        let before = counter::tsc();
        let ns = counter::monotonic_ns();
        let after = counter::tsc();
        // Where a move to another core has set it back, the width is huge, and the try loses.
        let width = after.wrapping_sub(before);
        (width, before.wrapping_add(width / 2), ns)
    };
    let (_, ticks, ns) = (0..200).map(|_| once()).min().expect("200 tries");
    (ticks, ns)
}

/// UTC now, nanoseconds since the Unix epoch, from the operating system: for dates, never for differences.
pub fn utc_ns() -> u64 {
    counter::os_clock_ns(libc::CLOCK_REALTIME)
}

/// Reads the host's calibration, or measures and publishes it. Whoever links the file first wins; all use that one.
pub(crate) fn host_calibration(path: &Path) -> Result<Calibration, CalibrationError> {
    let fail = |reason| CalibrationError::File { path: path.to_owned(), reason };
    let boot_id = boot_id().map_err(fail)?;
    for _ in 0..3 {
        match read_calibration(path) {
            Ok(Some(found)) if found.boot_id == boot_id && found.is_sound() => return Ok(found),
            // Left by an earlier boot or by something else: only its owner may replace it.
            Ok(_) => remove_stale(path, boot_id).map_err(|_| CalibrationError::Foreign { path: path.to_owned() })?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(fail(e)),
        }
        publish(path, &Calibration::measure(boot_id)).map_err(fail)?;
    }
    Err(CalibrationError::Foreign { path: path.to_owned() })
}

/// None if the file does not hold a whole calibration, or belongs to neither root nor this user.
fn read_calibration(path: &Path) -> io::Result<Option<Calibration>> {
    let mut file = File::open(path)?;
    let mut bytes = [0u8; size_of::<Calibration>()];
    if file.read_exact(&mut bytes).is_err() {
        return Ok(None);
    }
    // SAFETY: geteuid has no preconditions.
    let me = unsafe { libc::geteuid() };
    let owner = file.metadata()?.uid();
    // What another user wrote is only a rate; it is checked for soundness, and root's and ours need no more.
    let found = Calibration::read_from_bytes(&bytes).expect("the size is right");
    Ok((owner == 0 || owner == me || found.is_sound()).then_some(found))
}

/// Removes the file only while nobody else does, and only if it is stale still: somebody may have put a new one there.
fn remove_stale(path: &Path, boot_id: [u8; 16]) -> io::Result<()> {
    let remove = || {
        let found = File::open(path)?;
        found.lock()?;
        let is_there = fs::metadata(path)?.ino() == found.metadata()?.ino();
        let is_new = read_calibration(path)?.is_some_and(|now| now.boot_id == boot_id && now.is_sound());
        if is_there && !is_new { fs::remove_file(path) } else { Ok(()) }
    };
    unless(io::ErrorKind::NotFound, remove())
}

fn publish(path: &Path, calibration: &Calibration) -> io::Result<()> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    // A process in another container may have this id, too.
    let moment = counter::monotonic_ns();
    let draft = path.with_extension(format!("{}-{number}-{moment}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&draft)?;
    file.write_all(calibration.as_bytes())?;
    let linked = fs::hard_link(&draft, path);
    fs::remove_file(&draft)?;
    unless(io::ErrorKind::AlreadyExists, linked)
}

/// Takes a failure of one kind for a success.
fn unless(kind: io::ErrorKind, outcome: io::Result<()>) -> io::Result<()> {
    outcome.or_else(|e| if e.kind() == kind { Ok(()) } else { Err(e) })
}

fn boot_id() -> io::Result<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let id = u128::from_str_radix(&digits, 16).map_err(io::Error::other)?;
    Ok(id.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Barrier;

    fn at_rate(ticks_per_second: u64) -> Calibration {
        Calibration { ticks_per_second, ..Calibration::nanoseconds() }
    }

    proptest! {
        #[test]
        fn nanoseconds_and_ticks_invert(ns in 0u64..1_000_000_000_000_000, rate in 1_000_000u64..100_000_000_000) {
            let c = at_rate(rate);
            let back = c.ns(c.ticks_of_ns(ns) as i64);
            let tick_ns = (1_000_000_000 / rate + 1) as i64;
            prop_assert!((back - ns as i64).abs() <= tick_ns, "{ns} came back as {back}");
        }

        #[test]
        fn differences_are_antisymmetric(a: u32, b: u32, rate in 1_000_000u64..100_000_000_000) {
            let c = at_rate(rate);
            let (a, b) = (u64::from(a), u64::from(b));
            prop_assert_eq!(c.ns_between(a, b), -c.ns_between(b, a));
        }
    }

    #[test]
    fn the_first_calibration_wins() {
        let path = std::env::temp_dir().join(format!("tickpath-clock-test-{}", std::process::id()));
        let first = host_calibration(&path).unwrap();
        let again = host_calibration(&path).unwrap();
        assert_eq!(first, again);
        assert!(first.is_sound());
        remove_stale(&path, first.boot_id).unwrap();
        assert_eq!(host_calibration(&path).unwrap(), first, "a good file is not removed");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn all_who_come_first_get_one_calibration() {
        let path = std::env::temp_dir().join(format!("tickpath-clock-race-{}", std::process::id()));
        for stale in [None, Some(b"something else")] {
            stale.inspect(|bytes| fs::write(&path, bytes).unwrap());
            let start = Barrier::new(8);
            let come = || {
                start.wait();
                host_calibration(&path).unwrap()
            };
            let found: Vec<_> = std::thread::scope(|scope| {
                let comers: Vec<_> = (0..8).map(|_| scope.spawn(come)).collect();
                comers.into_iter().map(|comer| comer.join().unwrap()).collect()
            });
            assert!(found[0].is_sound() && found.iter().all(|each| *each == found[0]), "{found:?}");
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn another_boot_does_not_agree() {
        let here = Calibration::nanoseconds();
        assert!(here.agrees_with(&here));
        assert!(!here.agrees_with(&Calibration { boot_id: [1; 16], ..here }));
        assert!(!here.agrees_with(&at_rate(2_000_000_000)));
    }
}
