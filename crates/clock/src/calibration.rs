//! The calibration of the clock: shared by all processes of a user, and by all users who start after root.
//!
//! ```text
//!   tickpath-clock-0      root's ──copied by the first process of user 1000──> tickpath-clock-1000
//!   tickpath-clock-1000   read by each process of user 1000, whatever other files appear later
//! ```
//!
//! Any user may make files in `/dev/shm`, and the meaning of ticks depends on the calibration. So a process reads its
//! own user's file, and trusts it if that user or root owns it and no other user can write to it. Another user's file
//! in its place is rejected with an error. A file once linked is never replaced within a boot: two processes of a user
//! never have two calibrations.
//!
//! Two users who start without root measure a calibration each, as does a process that starts after the file was
//! removed. The counter is the same: differences of its stamps are exact in ticks, and in nanoseconds as accurate as
//! the measurement. Users whose nanoseconds must agree exactly run any Tickpath program as root first, whose
//! calibration both copy. Design: `docs/design/calibration.md`.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::clock_source::ClockSource;
use crate::counter;

const MAGIC: [u8; 8] = *b"TICKCLK1";

/// Time for which the first process of a boot measures the counter's rate, in nanoseconds: 20 ns of uncertainty at
/// each end of 200 ms is 0.2 parts in a million, 0.7 ms an hour, and the same for every process.
const MEASURE_NS: u64 = 200_000_000;

/// Attempts to lock a stale file, and the pause between two attempts.
const LOCK_TRIES: usize = 100;
const LOCK_PAUSE_NS: u64 = 10_000_000;

/// The relation of ticks to nanoseconds and to UTC: a flat struct, the same bytes in shared memory and in a log's
/// header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Calibration {
    magic: [u8; 8],
    /// The boot in which this calibration was made: the counter starts anew with each boot.
    pub boot_id: [u8; 16],
    /// The counter at the moment of calibration.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC` at the moment of calibration, in nanoseconds.
    pub monotonic_ns: u64,
    /// UTC at the moment of calibration, in nanoseconds since the Unix epoch.
    pub utc_ns: u64,
    /// Ticks per second.
    pub ticks_per_second: u64,
    source: u32,
    reserved: u32,
}

/// Reasons why the clock is not available.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The host's calibration file cannot be made or read.
    #[error("cannot use the clock file {0}: {1}; this user must be able to read and make it")]
    File(PathBuf, io::Error),
    /// Another user has made the file, or can change it; the text names the owner, or the users who can change it.
    #[error("the clock file {0} is not used: {1}; have it removed, as root if it is not yours")]
    Distrusted(PathBuf, String),
    /// The file holds something else.
    #[error("{0} is no clock calibration of this boot; remove it while no Tickpath process runs")]
    Foreign(PathBuf),
}

impl Calibration {
    /// Returns the calibration of a clock whose tick is a nanosecond since the Unix epoch: for tests, and for times
    /// that are in nanoseconds already.
    pub fn nanoseconds() -> Self {
        Self {
            magic: MAGIC,
            boot_id: [0; 16],
            ticks: 0,
            monotonic_ns: 0,
            utc_ns: 0,
            ticks_per_second: 1_000_000_000,
            source: ClockSource::Simulated as u32,
            reserved: 0,
        }
    }

    /// Returns the counter that the ticks come from.
    pub fn source(&self) -> Option<ClockSource> {
        ClockSource::from_code(self.source)
    }

    /// Returns true if stamps of the two can be subtracted: same boot and same counter. Two measurements of a
    /// counter's rate differ by a thousandth at most, because the kernel adjusts its clock by at most half of that.
    /// Two measurements arise when the file was removed between them, or for two users.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let difference = self.ticks_per_second.abs_diff(other.ticks_per_second);
        difference <= self.ticks_per_second / 1000 && (self.boot_id, self.source) == (other.boot_id, other.source)
    }

    /// Returns true if the bytes can be a calibration at all.
    pub fn is_sound(&self) -> bool {
        self.magic == MAGIC && self.source().is_some() && (1_000_000..=100_000_000_000).contains(&self.ticks_per_second)
    }

    /// Returns the nanoseconds from one tick count to another; negative if the second is earlier.
    #[inline]
    pub fn ns_between(&self, from: u64, to: u64) -> i64 {
        self.ns(to.wrapping_sub(from) as i64)
    }

    /// Converts a difference of ticks to nanoseconds, rounded toward zero.
    #[inline]
    pub fn ns(&self, ticks: i64) -> i64 {
        // Below nine thousand million ticks (some seconds) the product fits 64 bits: the division is ten times faster.
        const FITS: u64 = i64::MAX as u64 / 1_000_000_000;
        if ticks.unsigned_abs() <= FITS {
            return ticks * 1_000_000_000 / self.ticks_per_second as i64;
        }
        (i128::from(ticks) * 1_000_000_000 / i128::from(self.ticks_per_second)) as i64
    }

    /// Converts a length of time to ticks.
    #[inline]
    pub fn ticks_of_ns(&self, ns: u64) -> u64 {
        (u128::from(ns) * u128::from(self.ticks_per_second) / 1_000_000_000) as u64
    }

    /// Converts a stamp to UTC, in nanoseconds since the Unix epoch.
    pub fn utc_ns_of(&self, ticks: u64) -> u64 {
        self.utc_ns.wrapping_add_signed(self.ns_between(self.ticks, ticks))
    }

    /// Converts a time in UTC, in nanoseconds since the Unix epoch, to a stamp; also a time before the counter began.
    pub fn ticks_of_utc_ns(&self, utc_ns: u64) -> u64 {
        let ticks = self.ticks_of_ns(utc_ns.abs_diff(self.utc_ns));
        if utc_ns < self.utc_ns { self.ticks.wrapping_sub(ticks) } else { self.ticks.wrapping_add(ticks) }
    }

    /// Measures the counter against the operating system's clock.
    fn measure(boot_id: [u8; 16]) -> Self {
        let source = counter::invariant_source().unwrap_or(ClockSource::Os);
        let (ticks, monotonic_ns) = read_both();
        let ticks_per_second = match source {
            ClockSource::Tsc | ClockSource::VirtualCounter => {
                crate::sleep_ns(MEASURE_NS);
                let (later_ticks, later_ns) = read_both();
                (u128::from(later_ticks - ticks) * 1_000_000_000 / u128::from(later_ns - monotonic_ns)) as u64
            }
            ClockSource::Os | ClockSource::Simulated => 1_000_000_000,
        };
        let ticks = if source.is_counter() { ticks } else { monotonic_ns };
        let utc_ns = utc_ns() - (counter::monotonic_ns() - monotonic_ns);
        let source = source as u32;
        Self { boot_id, ticks, monotonic_ns, utc_ns, ticks_per_second, source, ..Self::nanoseconds() }
    }
}

/// Reads the counter and the operating system's clock at the same moment: the attempt with the smallest uncertainty
/// counts.
fn read_both() -> (u64, u64) {
    let once = || {
        let before = counter::ticks();
        let ns = counter::monotonic_ns();
        let after = counter::ticks();
        // After a move to another core with a smaller count the width is huge, and this attempt loses.
        let width = after.wrapping_sub(before);
        (width, before.wrapping_add(width / 2), ns)
    };
    let (_, ticks, ns) = (0..200).map(|_| once()).min().expect("200 tries");
    (ticks, ns)
}

/// Returns the current UTC time in nanoseconds since the Unix epoch, from the operating system: for dates, never for
/// differences.
pub fn utc_ns() -> u64 {
    counter::os_clock_ns(libc::CLOCK_REALTIME)
}

/// Reads this user's calibration, or publishes one: root's, if there is one, else a measured one. If several processes
/// start at once, the first to link the file wins, and all use its calibration.
pub(crate) fn host_calibration(base: &Path, user: u32) -> Result<Calibration, CalibrationError> {
    let path = &of_user(base, user);
    let fail = |reason| CalibrationError::File(path.clone(), reason);
    let boot_id = boot_id().map_err(fail)?;
    for _ in 0..3 {
        match read_file(path, user).map_err(fail)? {
            CalibrationFile::Valid(found) if found.boot_id == boot_id => return Ok(found),
            CalibrationFile::Missing => {}
            // A file left by an earlier boot, or by another program.
            CalibrationFile::Valid(_) | CalibrationFile::Invalid => {
                let removed = remove_stale(path, user, boot_id);
                removed.map_err(|_| CalibrationError::Foreign(path.clone()))?;
            }
            CalibrationFile::Untrusted(why) => return Err(CalibrationError::Distrusted(path.clone(), why)),
        }
        let others = [base.to_owned(), of_user(base, ROOT)];
        let found = others.iter().find_map(|path| trusted_calibration(path, user, boot_id));
        publish(path, &found.unwrap_or_else(|| Calibration::measure(boot_id))).map_err(fail)?;
    }
    Err(CalibrationError::Foreign(path.clone()))
}

const ROOT: u32 = 0;

fn of_user(base: &Path, user: u32) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    path.push(format!("-{user}"));
    path.into()
}

/// Returns the calibration from a file made by root or an older program of this user; none if it must not be used.
fn trusted_calibration(path: &Path, user: u32, boot_id: [u8; 16]) -> Option<Calibration> {
    match read_file(path, user) {
        Ok(CalibrationFile::Valid(found)) if found.boot_id == boot_id => Some(found),
        _ => None,
    }
}

enum CalibrationFile {
    Missing,
    /// A calibration, possibly of another boot.
    Valid(Calibration),
    /// A file of a trusted user that holds no calibration.
    Invalid,
    /// A file that another user has made or can change, with the reason for distrust.
    Untrusted(String),
}

/// Reads a file without following a link, and without waiting for the other end of a pipe.
fn read_file(path: &Path, user: u32) -> io::Result<CalibrationFile> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(CalibrationFile::Missing),
        // A file that cannot be opened is judged by its metadata.
        Err(e) => {
            let why = fs::symlink_metadata(path).ok().and_then(|found| distrust(&found, user));
            return why.map(CalibrationFile::Untrusted).ok_or(e);
        }
    };
    if let Some(why) = distrust(&file.metadata()?, user) {
        return Ok(CalibrationFile::Untrusted(why));
    }
    let mut bytes = [0u8; size_of::<Calibration>()];
    if file.read_exact(&mut bytes).is_err() {
        return Ok(CalibrationFile::Invalid);
    }
    let found = Calibration::read_from_bytes(&bytes).expect("the size is right");
    Ok(if found.is_sound() { CalibrationFile::Valid(found) } else { CalibrationFile::Invalid })
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// Returns the reason to distrust a file; none if it belongs to this user or to root, and no other user can write to
/// it.
fn distrust(file: &Metadata, user: u32) -> Option<String> {
    let owner = file.uid();
    if file.is_symlink() {
        return Some("it is a symbolic link".to_owned());
    }
    if !file.is_file() {
        return Some("it is no regular file".to_owned());
    }
    if ![ROOT, user].contains(&owner) {
        return Some(format!("it belongs to user {owner}, and this program runs as user {user}"));
    }
    (file.mode() & 0o022 != 0).then(|| "other users can write to it".to_owned())
}

/// Removes the file only under its lock, and only if it is still stale: another process may have replaced it by now.
fn remove_stale(path: &Path, user: u32, boot_id: [u8; 16]) -> io::Result<()> {
    let remove = || {
        let found = open(path)?;
        lock(&found)?;
        let is_same = fs::symlink_metadata(path)?.ino() == found.metadata()?.ino();
        let is_new = matches!(read_file(path, user)?, CalibrationFile::Valid(now) if now.boot_id == boot_id);
        if is_same && !is_new { fs::remove_file(path) } else { Ok(()) }
    };
    ignore_error(io::ErrorKind::NotFound, remove())
}

/// Locks a file within a bounded time: any user who may read the file can hold its lock for ever.
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => crate::sleep_ns(LOCK_PAUSE_NS),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn publish(path: &Path, calibration: &Calibration) -> io::Result<()> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    // A process in another container may have the same process id.
    let moment = counter::monotonic_ns();
    let draft = path.with_extension(format!("{}-{number}-{moment}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&draft)?;
    file.write_all(calibration.as_bytes())?;
    let linked = fs::hard_link(&draft, path);
    fs::remove_file(&draft)?;
    ignore_error(io::ErrorKind::AlreadyExists, linked)
}

fn ignore_error(kind: io::ErrorKind, outcome: io::Result<()>) -> io::Result<()> {
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
    use std::os::unix::fs::PermissionsExt;
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
        fn times_and_stamps_invert_also_before_the_counter_began(
            utc_ns in 900_000_000_000_000_000u64..2_500_000_000_000_000_000,
            ticks: u32,
            rate in 1_000_000_000u64..5_000_000_000,
        ) {
            let c = Calibration { utc_ns: 1_700_000_000_000_000_000, ticks: u64::from(ticks), ..at_rate(rate) };
            prop_assert!(c.utc_ns_of(c.ticks_of_utc_ns(utc_ns)).abs_diff(utc_ns) <= 1);
        }

        #[test]
        fn differences_are_antisymmetric(a: u32, b: u32, rate in 1_000_000u64..100_000_000_000) {
            let c = at_rate(rate);
            let (a, b) = (u64::from(a), u64::from(b));
            prop_assert_eq!(c.ns_between(a, b), -c.ns_between(b, a));
        }
    }

    /// A user that is neither this user nor root.
    const STRANGER: u32 = 65_534;

    /// A folder for the calibrations of a test, removed at its end.
    struct CalibrationFixture {
        folder: PathBuf,
        base: PathBuf,
        user: u32,
    }

    impl CalibrationFixture {
        fn new(test: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("tickpath-clock-{test}-{}", std::process::id()));
            fs::create_dir(&folder).unwrap();
            let user = fs::metadata(&folder).unwrap().uid();
            Self { base: folder.join("clock"), folder, user }
        }

        fn calibration(&self) -> Result<Calibration, CalibrationError> {
            host_calibration(&self.base, self.user)
        }

        fn own(&self) -> PathBuf {
            of_user(&self.base, self.user)
        }

        /// Writes a calibration of this boot with a rate that no processor has.
        fn planted(&self, path: &Path) -> Calibration {
            let planted = Calibration { boot_id: boot_id().unwrap(), ..at_rate(1_234_567) };
            fs::write(path, planted.as_bytes()).unwrap();
            planted
        }

        fn refusal(&self) -> String {
            match self.calibration() {
                Err(refused @ CalibrationError::Distrusted(..)) => refused.to_string(),
                other => panic!("{other:?}"),
            }
        }
    }

    impl Drop for CalibrationFixture {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    /// Returns the result of `ask`; panics if it takes longer than 60 s.
    fn bounded<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(ask()));
        receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("a start must not wait for another user")
    }

    fn make_pipe(path: &Path) {
        let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the path is a text that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0);
    }

    #[test]
    fn the_first_calibration_wins() {
        let scene = CalibrationFixture::new("first");
        let first = scene.calibration().unwrap();
        assert_eq!(scene.calibration().unwrap(), first);
        assert!(first.is_sound());
        remove_stale(&scene.own(), scene.user, first.boot_id).unwrap();
        assert_eq!(scene.calibration().unwrap(), first, "a good file is not removed");
    }

    #[test]
    fn processes_that_race_get_one_calibration() {
        for stale in [None, Some(b"something else")] {
            let scene = CalibrationFixture::new("race");
            stale.inspect(|bytes| fs::write(scene.own(), bytes).unwrap());
            let start = Barrier::new(8);
            let calibrate = || {
                start.wait();
                scene.calibration().unwrap()
            };
            let found: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(calibrate)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(found[0].is_sound() && found.iter().all(|each| *each == found[0]), "{found:?}");
        }
    }

    #[test]
    fn the_calibration_of_another_user_is_not_trusted() {
        let scene = CalibrationFixture::new("stranger");
        let planted = scene.planted(&scene.base);
        if std::os::unix::fs::chown(&scene.base, Some(STRANGER), None).is_err() {
            // Only root can act as another user; a file of this user is trusted.
            assert_eq!(scene.calibration().unwrap(), planted);
            return;
        }
        let measured = scene.calibration().unwrap();
        assert_ne!(measured.ticks_per_second, planted.ticks_per_second);
        fs::remove_file(scene.own()).unwrap();
        scene.planted(&scene.own());
        std::os::unix::fs::chown(scene.own(), Some(STRANGER), None).unwrap();
        let refusal = scene.refusal();
        assert!(refusal.contains(&format!("belongs to user {STRANGER}")) && refusal.contains("removed"), "{refusal}");
    }

    #[test]
    fn a_calibration_that_others_can_change_is_not_trusted() {
        let scene = CalibrationFixture::new("writable");
        scene.planted(&scene.own());
        for mode in [0o666, 0o664, 0o622] {
            fs::set_permissions(scene.own(), fs::Permissions::from_mode(mode)).unwrap();
            let refusal = scene.refusal();
            assert!(refusal.contains("other users can write to it"), "{mode:o}: {refusal}");
        }
        fs::remove_file(scene.own()).unwrap();
        let elsewhere = scene.folder.join("elsewhere");
        scene.planted(&elsewhere);
        std::os::unix::fs::symlink(&elsewhere, scene.own()).unwrap();
        assert!(scene.refusal().contains("it is a symbolic link"));
    }

    #[test]
    fn a_pipe_instead_of_a_calibration_blocks_no_start() {
        let scene = CalibrationFixture::new("pipe");
        let (base, user) = (scene.base.clone(), scene.user);
        make_pipe(&scene.base);
        assert!(bounded(move || host_calibration(&base, user)).is_ok_and(|found| found.is_sound()));
        fs::remove_file(scene.own()).unwrap();
        make_pipe(&scene.own());
        let base = scene.base.clone();
        match bounded(move || host_calibration(&base, user)) {
            Err(refused @ CalibrationError::Distrusted(..)) => {
                assert!(refused.to_string().contains("it is no regular file"), "{refused}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn users_that_start_after_root_copy_its_calibration() {
        let scene = CalibrationFixture::new("root");
        // A file of this user in root's place, which this user trusts as much as root's.
        let roots = scene.planted(&of_user(&scene.base, ROOT));
        assert_eq!(scene.calibration().unwrap(), roots);
        if scene.user != ROOT {
            fs::write(of_user(&scene.base, ROOT), Calibration { ticks: 7, ..roots }.as_bytes()).unwrap();
            assert_eq!(scene.calibration().unwrap(), roots, "a user keeps its first calibration");
        }
        // Another user: the file is root's, or belongs to a user whose clock is not trusted.
        let other_file = of_user(&scene.base, STRANGER);
        let found = trusted_calibration(&of_user(&scene.base, ROOT), STRANGER, roots.boot_id);
        assert_eq!(found.is_some(), scene.user == ROOT);
        assert!(!other_file.exists(), "reading creates no file");
    }

    #[test]
    fn a_foreign_lock_on_a_stale_calibration_blocks_no_start() {
        let scene = CalibrationFixture::new("locked");
        fs::write(scene.own(), b"something else").unwrap();
        let held = File::open(scene.own()).unwrap();
        held.lock().unwrap();
        let (base, user) = (scene.base.clone(), scene.user);
        let refused = bounded(move || host_calibration(&base, user));
        assert!(matches!(refused, Err(CalibrationError::Foreign(..))), "{refused:?}");
        drop(held);
        assert!(scene.calibration().unwrap().is_sound());
    }

    #[test]
    fn calibrations_of_two_boots_do_not_agree() {
        let this = Calibration::nanoseconds();
        assert!(this.agrees_with(&this));
        assert!(!this.agrees_with(&Calibration { boot_id: [1; 16], ..this }));
        assert!(this.agrees_with(&at_rate(1_000_000_900)), "measured twice");
        assert!(!this.agrees_with(&at_rate(2_000_000_000)));
    }
}
