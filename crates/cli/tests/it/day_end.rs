//! The end of a day under a real OMS that is killed at each of its file operations, and on a disk that is nearly full.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::desk::Desk;
use crate::logs::{Running, open_descriptors, set_descriptors, until};
use crate::program::Ran;

/// System calls on files, as strace names them: the process is killed before each call of each of them, because strace
/// counts the calls separately.
const FILE_OPERATIONS: [&str; 21] = [
    "openat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "msync",
    "pwrite64",
    "write",
    "statx",
    "newfstatat",
    "fstat",
    "linkat",
    "symlinkat",
];

/// Upper bound for the operations of one kind in a day's end, a snapshot or a start.
const MAX_OPERATIONS: u64 = 2_000;

/// Days whose logs stay: those that a start needs, even without its newest snapshot. More would fill the disk, and
/// slow down a day's end, which looks for each.
const KEPT_DAYS: usize = 6;

/// Free disk space beside a log and its history, in bytes: enough to trade, too little for the next day's logs.
const LEFT_BYTES: u64 = 6 << 20;

#[test]
fn a_kill_at_any_file_operation_of_a_days_end_loses_nothing() {
    let mut days = Days::new();
    let killed = each_operation(1, |operation| days.kill_at(operation, Thread::Core));
    assert!(killed.total > 25, "a day's end has more file operations than {killed:?}: was the right thread traced?");
    assert!(killed.of("renameat") > 0 && killed.of("fsync") > 0, "{killed:?}");
    days.check_order();
}

#[test]
fn a_kill_at_any_file_operation_of_a_snapshot_loses_nothing() {
    let mut days = Days::new();
    let killed = each_operation(1, |operation| days.kill_at(operation, Thread::Snapshots));
    assert!(killed.of("rename") >= 2 && killed.of("fsync") >= 2, "was the right thread traced? {killed:?}");
    days.check_order();
}

#[test]
fn an_oms_killed_at_any_file_operation_of_its_start_starts_again() {
    let mut days = Days::new();
    // A start has some hundreds of operations; only the long tests kill at each of them.
    let step = if std::env::var_os("TICKPATH_SOAK").is_some() { 1 } else { 9 };
    let killed = each_operation(step, |operation| days.kill_start_at(operation));
    assert!(killed.total * step > 50, "a start has more file operations than {killed:?}");
    days.check_order();
}

#[test]
fn an_error_of_any_file_operation_of_a_days_end_loses_nothing() {
    let mut days = Days::new();
    let is_long = std::env::var_os("TICKPATH_SOAK").is_some();
    let (step, errors) = if is_long { (1, &["EIO", "ENOSPC", "EMFILE"][..]) } else { (5, &["EIO"][..]) };
    for error in errors {
        let failed = each_operation(step, |operation| days.fail_at(operation, error));
        assert!(failed.total * step > 50 && failed.of("renameat") > 0, "a day's end has more than {failed:?}");
    }
    days.check_order();
}

#[test]
fn a_day_does_not_end_on_a_disk_without_room_and_trading_continues() {
    let desk = Desk::new();
    let disk = SmallDisk::mount(&desk.path().join("journal"), "160m");
    let exchange = desk.exchange();
    let oms = disk.oms(&desk);
    exchange.await_words("serving the OMS");
    let ran = desk.order("new BTCUSDT buy 1 60000 --tif gtc --session 2 --id 7");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    disk.fill(LEFT_BYTES);
    let end_day = || desk.tickpath("oms day-end --day 20250102 --config @/oms.toml");
    let refused = end_day();
    assert!(
        refused.code == Some(1) && refused.err.contains("the day has not ended: its roll needs"),
        "{}{}",
        refused.out,
        refused.err
    );
    let ran = desk.order("new BTCUSDT buy 1 60000.5 --session 2 --id 8");
    assert!(ran.out.contains("new new"), "trading goes on: {}{}", ran.out, ran.err);
    // A refused day's end leaves nothing behind, even after a kill.
    drop(oms);
    let oms = disk.oms(&desk);
    exchange.await_words("serving the OMS");
    assert_eq!(end_day().code, Some(1));
    disk.empty();
    let ran = end_day();
    assert!(ran.out.contains("day 20250102 has ended"), "{}{}", ran.out, ran.err);
    drop(oms);
    let _oms = disk.oms(&desk);
    exchange.await_words("serving the OMS");
    let ran = desk.order("cancel 7 --session 2");
    assert!(ran.out.contains("canceled canceled"), "the GTC order lives on: {}{}", ran.out, ran.err);
}

#[test]
fn a_day_does_not_end_without_descriptors_and_trading_continues() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    let end_day = || desk.tickpath("oms day-end --day 20250102 --config @/oms.toml");
    // Room for the command's connection and the reserve of the acceptors, and not for a roll.
    set_descriptors(&oms, open_descriptors(&oms) + 8);
    let refused = end_day();
    assert!(
        refused.code == Some(1) && refused.err.contains("its roll needs 32 free file descriptors"),
        "{}{}",
        refused.out,
        refused.err
    );
    let ran = desk.order("new BTCUSDT buy 1 60000 --tif gtc --session 2 --id 7");
    assert!(ran.out.contains("new new"), "trading goes on: {}{}", ran.out, ran.err);
    set_descriptors(&oms, 1024);
    let ran = end_day();
    assert!(ran.out.contains("day 20250102 has ended"), "{}{}", ran.out, ran.err);
    let ran = desk.order("cancel 7 --session 2");
    assert!(ran.out.contains("canceled canceled"), "the GTC order lives on: {}{}", ran.out, ran.err);
}

#[test]
fn a_day_ends_under_a_umask_with_group_write() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let start = || {
        let mut command = Command::new("sh");
        let call = desk.line("oms --config @/oms.toml");
        command.args(["-c", &format!("umask 002 && exec {} {call}", env!("CARGO_BIN_EXE_tickpath"))]);
        let oms = Running::of(command);
        oms.await_words(": ready");
        oms
    };
    let oms = start();
    exchange.await_words("serving the OMS");
    assert_eq!(desk.order("new BTCUSDT buy 1 60000 --tif gtc --session 2 --id 7").code, Some(0));
    let end_day = |day: u32| desk.tickpath(&format!("oms day-end --day {day} --config @/oms.toml"));
    let ran = end_day(20_250_101);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    drop(oms);
    let _oms = start();
    let ran = end_day(20_250_102);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(desk.tickpath("orders --config @/oms.toml").out.contains("1 open"));
}

/// A call of one of the file operations, counted from 1.
#[derive(Clone, Copy, Debug)]
struct Operation {
    call: &'static str,
    number: u64,
}

impl Operation {
    /// Returns the option that makes strace kill before the operation.
    fn kill(self) -> String {
        format!("inject={}:signal=SIGKILL:when={}", self.call, self.number)
    }

    /// Returns the option that makes strace fail the operation.
    fn fail(self, error: &str) -> String {
        format!("inject={}:error={error}:when={}", self.call, self.number)
    }
}

/// Number of operations at which the process was killed.
#[derive(Debug, Default)]
struct Killed {
    total: usize,
    calls: Vec<(&'static str, usize)>,
}

impl Killed {
    fn of(&self, call: &str) -> usize {
        self.calls.iter().find(|(name, _)| *name == call).map_or(0, |(_, count)| *count)
    }
}

/// Kills at every `step`-th operation, one kind after the other, until no operation has that number.
fn each_operation(step: usize, mut kill: impl FnMut(Operation) -> bool) -> Killed {
    let mut killed = Killed::default();
    for call in FILE_OPERATIONS {
        let numbers = (1..MAX_OPERATIONS).step_by(step);
        let count = numbers.take_while(|&number| kill(Operation { call, number })).count();
        assert!((count * step) < MAX_OPERATIONS as usize - step, "{call} has no end");
        killed.total += count;
        killed.calls.push((call, count));
    }
    killed
}

/// The thread whose operations are traced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    Core,
    Snapshots,
}

/// A desk with a good-till-canceled order, whose days end one after the other.
struct Days {
    desk: Desk,
    _exchange: Running,
    oms: Option<Running>,
    /// Number of days that were asked to end.
    days: u32,
}

impl Days {
    fn new() -> Self {
        let desk = Desk::new();
        let exchange = desk.exchange();
        let oms = desk.oms();
        exchange.await_words("serving the OMS");
        let ran = desk.order("new BTCUSDT buy 1 60000 --tif gtc --session 2 --id 7");
        assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
        Self { desk, _exchange: exchange, oms: Some(oms), days: 0 }
    }

    /// Ends another day, and kills the OMS before this file operation of a thread. Returns false if there is none of
    /// that number.
    fn kill_at(&mut self, operation: Operation, thread: Thread) -> bool {
        let mut oms = self.fresh_day(operation);
        let tracer = Tracer::attach(thread.of(oms.id()), operation.call, &operation.kill());
        let ran = self.end_day();
        let is_killed = match thread {
            Thread::Core if ran.code == Some(0) => false,
            Thread::Core => {
                until(|| oms.has_ended(), || format!("the kill at {operation:?}: {}{}", ran.out, ran.err));
                true
            }
            Thread::Snapshots => {
                let mut is_made = false;
                until(
                    || {
                        is_made = tracer.has_seen_a_snapshot();
                        is_made || oms.has_ended()
                    },
                    || format!("a snapshot, or the kill at {operation:?}"),
                );
                !is_made
            }
        };
        drop(tracer);
        drop(oms);
        self.start(&format!("{operation:?} of the day's end"));
        is_killed
    }

    /// Ends another day, while this file operation of the core's thread fails. Returns false if there is none of that
    /// number.
    fn fail_at(&mut self, operation: Operation, error: &str) -> bool {
        let mut oms = self.fresh_day(operation);
        let tracer = Tracer::attach(oms.id(), operation.call, &operation.fail(error));
        let ran = self.end_day();
        let has_failed = tracer.has_injected();
        assert!(has_failed || ran.code == Some(0), "{operation:?}: {}{}", ran.out, ran.err);
        drop(tracer);
        let text = oms.err();
        if oms.has_ended() {
            let last = text.lines().last().unwrap_or_default();
            assert!(last.contains("error") && !text.contains("panicked"), "{error} at {operation:?}: {text}");
        }
        drop(oms);
        self.start(&format!("{error} of {operation:?} of the day's end"));
        has_failed
    }

    /// Returns the OMS of a day that begins behind a snapshot, so that no earlier one is searched for.
    fn fresh_day(&mut self, operation: Operation) -> Running {
        let before = self.snapshot();
        let ran = self.end_day();
        assert_eq!(ran.code, Some(0), "{operation:?}: {}{}", ran.out, ran.err);
        until(|| self.snapshot() != before, || "a snapshot".to_owned());
        self.forget_days();
        self.oms.take().expect("it runs")
    }

    /// Sends the command to end the next day.
    fn end_day(&mut self) -> Ran {
        let day = 20_000_101 + self.days / 336 * 10_000 + self.days / 28 % 12 * 100 + self.days % 28;
        self.days += 1;
        self.desk.tickpath(&format!("oms day-end --day {day} --config @/oms.toml"))
    }

    /// Starts another OMS, and kills it before this file operation. Returns false if it was ready before.
    fn kill_start_at(&mut self, operation: Operation) -> bool {
        drop(self.oms.take());
        let mut command = Command::new("strace");
        let trace = format!("trace={}", operation.call);
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &operation.kill()]);
        command.arg(env!("CARGO_BIN_EXE_tickpath")).args(self.desk.line("oms --config @/oms.toml").split(' '));
        command.process_group(0);
        let mut oms = Running::of(command);
        until(|| oms.has_ended() || oms.err().contains(": ready"), || "a start, or the kill".to_owned());
        let is_killed = !oms.err().contains(": ready");
        oms.kill_group();
        self.start(&format!("{operation:?} of a start"));
        is_killed
    }

    /// Starts the OMS on the files as they are.
    fn start(&mut self, behind: &str) {
        let start = || Running::start(&self.desk.line("oms --config @/oms.toml"));
        let mut oms = start();
        until(
            || {
                // A process killed by strace may hold its locks for a moment longer than strace lives.
                if oms.has_ended() && oms.err().contains("is an OMS on the journal") {
                    oms = start();
                }
                oms.has_ended() || oms.err().contains(": ready")
            },
            || "a start".to_owned(),
        );
        assert!(oms.err().contains(": ready"), "killed at {behind}, the next start says: {}", oms.err());
        let open = self.desk.tickpath("orders --config @/oms.toml").out;
        assert!(open.contains("1 open"), "killed at {behind}: {open}");
        self.oms = Some(oms);
    }

    /// Removes the logs of all but the newest days, which a snapshot replaces.
    fn forget_days(&self) {
        for folder in ["journal/archive", "journal/reports/archive"] {
            let Ok(days) = fs::read_dir(self.desk.path().join(folder)) else { continue };
            let mut days: Vec<PathBuf> = days.flatten().map(|day| day.path()).collect();
            days.sort();
            for day in days.iter().rev().skip(KEPT_DAYS) {
                fs::remove_dir_all(day).expect("it is ours");
            }
        }
    }

    /// Returns device and inode of the newest snapshot.
    fn snapshot(&self) -> Option<(u64, u64)> {
        fs::metadata(self.desk.path().join("journal/snapshot")).ok().map(|file| (file.dev(), file.ino()))
    }

    /// Checks that the order still works here and at its venue.
    fn check_order(&self) {
        let ran = self.desk.order("cancel 7 --session 2");
        assert!(ran.out.contains("canceled canceled"), "{}{}", ran.out, ran.err);
    }
}

impl Thread {
    /// Returns the id of this thread of a process.
    fn of(self, process: u32) -> u32 {
        if self == Self::Core {
            return process;
        }
        let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it runs").flatten();
        let is_it =
            |path: &PathBuf| fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "oms-snapshot");
        let found = tasks.map(|task| task.path()).find(is_it).expect("an OMS has a thread for snapshots");
        found.file_name().and_then(|id| id.to_str()?.parse().ok()).expect("its id")
    }
}

/// A strace that kills a thread's process before a system call, or makes that call fail.
struct Tracer {
    child: Child,
    log: tempfile::NamedTempFile,
}

impl Tracer {
    fn attach(thread: u32, call: &str, inject: &str) -> Self {
        let log = tempfile::NamedTempFile::new().expect("a temporary file");
        // The calls in which the thread waits are traced, too.
        let trace = format!("trace=rename,futex,{call}");
        let mut child = Command::new("strace")
            .args(["-p", &thread.to_string(), "-e", &trace, "-e", inject, "-o"])
            .arg(log.path())
            .stderr(Stdio::piped())
            .spawn()
            .expect("install strace (apt-get install strace)");
        let mut text = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let mut line = String::new();
        text.read_line(&mut line).expect("strace says that it is there");
        assert!(line.contains("attached"), "strace cannot trace thread {thread}: {line}");
        // Read to the end, so that strace never waits for its reader.
        std::thread::spawn(move || drop(std::io::copy(&mut text, &mut std::io::sink())));
        Self { child, log }
    }

    /// Returns whether the call was made to fail.
    fn has_injected(&self) -> bool {
        fs::read_to_string(self.log.path()).unwrap_or_default().contains("(INJECTED)")
    }

    /// Returns whether the thread has renamed a snapshot into place, and waits for the next request.
    fn has_seen_a_snapshot(&self) -> bool {
        let log = fs::read_to_string(self.log.path()).unwrap_or_default();
        let is_waiting = log.lines().last().is_some_and(|line| line.starts_with("futex(") && !line.contains(" = "));
        let is_named = |line: &str| line.starts_with("rename(") && line.contains("snapshot.new\", ");
        is_waiting && log.lines().any(is_named)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file system in memory, in a mount namespace of its own, which ends with this value.
struct SmallDisk {
    holder: Child,
    folder: PathBuf,
}

impl SmallDisk {
    fn mount(folder: &Path, size: &str) -> Self {
        fs::create_dir_all(folder).expect("the folder is ours");
        let script =
            format!("mount -t tmpfs -o size={size},mode=0700 tmpfs '{}' && echo ready && exec cat", folder.display());
        let mut unshare = Command::new("unshare");
        unshare.arg("--mount");
        if !rustix::process::geteuid().is_root() {
            unshare.arg("--map-root-user");
        }
        let mut holder = unshare
            .args(["sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("install unshare (apt-get install util-linux)");
        let mut line = String::new();
        BufReader::new(holder.stdout.take().expect("it is a pipe")).read_line(&mut line).expect("it is text");
        assert_eq!(line, "ready\n", "a mount namespace of its own is needed for this test");
        Self { holder, folder: folder.to_owned() }
    }

    /// Starts an OMS of this desk on this disk.
    fn oms(&self, desk: &Desk) -> Running {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string()]);
        command.arg(env!("CARGO_BIN_EXE_tickpath")).args(desk.line("oms --config @/oms.toml").split(' '));
        let oms = Running::of(command);
        oms.await_words(": ready");
        oms
    }

    /// Runs a shell script with this disk, in its folder.
    fn run(&self, script: &str) {
        let script = format!("cd '{}' && {script}", self.folder.display());
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string(), "sh", "-ec", &script]);
        assert!(command.status().expect("install nsenter (apt-get install util-linux)").success(), "{script}");
    }

    /// Fills the disk up to so many bytes.
    fn fill(&self, left: u64) {
        self.run(&format!("fallocate -l $(( $(stat -f -c '%a * %S' .) - {left} )) filler"));
    }

    fn empty(&self) {
        self.run("rm filler");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
