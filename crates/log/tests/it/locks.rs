//! Ownership of a log while processes are forked, killed, become other programs, and close files of others.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tickpath_clock::{Calibration, sleep_ns};
use tickpath_log::{
    Config, LogOpenError, LogPath, OverflowPolicy, QueueDelivery, QueuePuller, Reader, ReaderStart, Registration,
    Writer, mandatory_reader, writer,
};

use crate::fork::in_a_fork;
use crate::process::{ChildProcess, ROLE, print_number, this_program};
use crate::{ScratchLog, tiny};

/// Forks of a test run, and of a long one (`TICKPATH_SOAK`).
const FORKS: usize = 200;
const SOAK_FORKS: usize = 10_000;

/// Longest life of a child in seconds, if no parent ends it.
const MAX_SECONDS: u64 = 100;

/// A fork inherits and keeps all open files of the killed process.
#[test]
fn a_killed_process_is_dead_while_its_fork_lives() {
    let scratch = lane();
    let mut us = scratch.writer();
    for _ in 0..5 {
        let mut child = ChildProcess::start("reading parent", scratch.place(), OverflowPolicy::Fail);
        let (pid, fork) = (number(&mut child), ForkedChild::read_from(&mut child));
        assert_eq!(mandatory_reader(scratch.place()).map(u64::from), Some(pid));
        assert_eq!(us.readers(), 2);
        child.kill();
        assert_eq!(mandatory_reader(scratch.place()), None);
        let reader =
            Reader::open(scratch.place(), ReaderStart::Cursor, Registration::Mandatory).expect("that one is dead");
        drop((us, reader));
        us = scratch.writer();
        assert_eq!(us.readers(), 0, "those of the killed one are buried");
        drop(us);

        let mut child = ChildProcess::start("writing parent", scratch.place(), OverflowPolicy::Fail);
        let (pid, other) = (number(&mut child), ForkedChild::read_from(&mut child));
        assert_eq!(refused(&scratch), Some(pid));
        child.kill();
        us = scratch.writer();
        assert!(fork.lives() && other.lives());
    }
}

/// The same process id, but the new program has released everything.
#[test]
fn a_process_after_exec_is_dead_while_its_fork_lives() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let mut child = ChildProcess::start("changing parent", scratch.place(), OverflowPolicy::Fail);
    let (pid, fork) = (number(&mut child), ForkedChild::read_from(&mut child));
    assert_eq!(number(&mut child), pid, "it is another program now");
    assert_eq!(writer(scratch.place()), None);
    assert_eq!(refused(&scratch), None);
    assert!(fork.lives());
}

/// As a process that copies the folder does, or another copy of this library in the process.
#[test]
fn closing_a_lock_file_frees_no_lock() {
    let scratch = lane();
    let us = scratch.writer();
    let reader = Reader::open(scratch.place(), ReaderStart::Now, Registration::Mandatory).expect("it is there");
    let close = || {
        for name in ["writer.lock", "readers.lock"] {
            drop(File::open(scratch.place().dir().join(name)).expect("it is there"));
        }
    };
    close();
    let pid = u64::from(std::process::id());
    let mut other = ChildProcess::start("asker", scratch.place(), OverflowPolicy::Fail);
    assert_eq!([(); 3].map(|()| number(&mut other)), [pid; 3], "the writer, the reader, and the refusal");
    drop(us);
    let recorder = scratch.reader(ReaderStart::Now);
    close();
    let mut other = ChildProcess::start("asker", scratch.place(), OverflowPolicy::Fail);
    assert_eq!([(); 4].map(|()| number(&mut other)), [0, pid, 0, 2], "a live holder is not freed");
    drop((reader, recorder));
    let mut other = ChildProcess::start("asker", scratch.place(), OverflowPolicy::Fail);
    assert_eq!([(); 4].map(|()| number(&mut other)), [0; 4]);
}

#[test]
fn a_fork_releases_no_lock_of_its_parent() {
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let (mut us, mut reader) = (Some(scratch.writer()), Some(scratch.reader(ReaderStart::Now)));
    let pid = Some(std::process::id());
    assert!(in_a_fork(|| {
        let is_known = writer(scratch.place()) == pid;
        drop((us.take(), reader.take()));
        is_known && writer(scratch.place()) == pid && refused(&scratch) == pid.map(u64::from)
    }));
    let mut other = ChildProcess::start("asker", scratch.place(), OverflowPolicy::Fail);
    assert_eq!(Some(number(&mut other)), pid.map(u64::from));
    // Without another writer, the query succeeds as a writer of its own.
    drop(other);
    drop((us, reader));
    assert_eq!(refused(&scratch), None);
}

/// Threads of a forked process stay with the parent at any point of their work, as do all locks that they hold.
#[test]
fn a_fork_opens_logs_whatever_its_parents_threads_did() {
    let forks = if std::env::var_os("TICKPATH_SOAK").is_some() { SOAK_FORKS } else { FORKS };
    let is_over = AtomicBool::new(false);
    let open = |scratch: &ScratchLog| {
        let mut writer = Writer::open_queue(&scratch.config, &Calibration::nanoseconds()).ok()?;
        let puller = QueuePuller::open(scratch.place(), QueueDelivery::AtLeastOnce).ok()?;
        let reader = Reader::open(scratch.place(), ReaderStart::Now, Registration::Registered).ok()?;
        writer.publish(0, 16, b"x").ok().map(|_| drop((puller, reader)))
    };
    let theirs = [(); 3].map(|()| ScratchLog::shared(OverflowPolicy::Fail, 2));
    let own = ScratchLog::shared(OverflowPolicy::Fail, 2);
    let bad = thread::scope(|scope| {
        let (open, is_over) = (&open, &is_over);
        for scratch in &theirs {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = scratch.place().remove();
                    assert!(open(scratch).is_some());
                }
            });
        }
        let bad = (0..forks).find(|_| {
            let _ = own.place().remove();
            !in_a_fork(|| open(&own).is_some())
        });
        is_over.store(true, Ordering::Relaxed);
        bad
    });
    assert_eq!(bad, None, "a fork has failed, or was ended because it hung");
}

/// Runs the role of a child.
pub fn child(role: &str, place: &LogPath) {
    let pid = u64::from(std::process::id());
    match role {
        "reading parent" => {
            let ours = [Registration::Mandatory, Registration::Registered]
                .map(|registration| Reader::open(place, ReaderStart::Now, registration).expect("the parent writes"));
            print_number(pid);
            print_number(fork_one());
            linger();
            drop(ours);
        }
        "writing parent" | "changing parent" => {
            let ours = Writer::open(&config(place), &Calibration::nanoseconds()).expect("there is no writer");
            print_number(pid);
            print_number(fork_one());
            if role == "changing parent" {
                let arguments = ["child_main", "--exact", "--nocapture"];
                let failed = this_program().args(arguments).env(ROLE, "changed").exec();
                panic!("it is this program still: {failed}");
            }
            linger();
            drop(ours);
        }
        "changed" => {
            print_number(pid);
            linger();
        }
        "asker" => {
            print_number(writer(place).map_or(0, u64::from));
            print_number(mandatory_reader(place).map_or(0, u64::from));
            match Writer::open(&config(place), &Calibration::nanoseconds()) {
                Ok(ours) => {
                    print_number(0);
                    print_number(ours.readers() as u64);
                }
                Err(LogOpenError::HasWriter { pid, .. }) => print_number(pid.into()),
                Err(e) => panic!("{e}"),
            }
        }
        role => panic!("no role '{role}'"),
    }
}

/// Makes a log with a mandatory reader.
fn lane() -> ScratchLog {
    let mut scratch = ScratchLog::shared(OverflowPolicy::Fail, 2);
    scratch.config.mandatory = true;
    scratch
}

/// Returns a child's configuration: without a mandatory reader the log is taken as it is.
fn config(place: &LogPath) -> Config {
    tiny(place.clone(), OverflowPolicy::Fail, 2)
}

fn number(child: &mut ChildProcess) -> u64 {
    child.lines.next_number().expect("it has something to say")
}

/// Returns the process that holds the writer; none if a writer can be opened.
fn refused(scratch: &ScratchLog) -> Option<u64> {
    match Writer::open(&scratch.config, &Calibration::nanoseconds()) {
        Ok(_) => None,
        Err(LogOpenError::HasWriter { pid, .. }) => Some(pid.into()),
        Err(e) => panic!("{e}"),
    }
}

/// Sleeps until it is killed.
fn linger() {
    sleep_ns(MAX_SECONDS * 1_000_000_000);
}

/// Forks a process that does nothing; returns its id.
fn fork_one() -> u64 {
    // SAFETY: the fork waits for a signal that ends it, and does nothing else.
    let fork = unsafe { libc::fork() };
    if fork == 0 {
        // SAFETY: as above.
        unsafe {
            libc::alarm(MAX_SECONDS as u32);
            loop {
                libc::pause();
            }
        }
    }
    u64::try_from(fork).unwrap_or_else(|_| panic!("no fork: {}", std::io::Error::last_os_error()))
}

/// A child's fork, killed when it is dropped.
struct ForkedChild(libc::pid_t);

impl ForkedChild {
    fn read_from(child: &mut ChildProcess) -> Self {
        Self(number(child) as libc::pid_t)
    }

    fn lives(&self) -> bool {
        // SAFETY: it sends nothing.
        unsafe { libc::kill(self.0, 0) == 0 }
    }
}

impl Drop for ForkedChild {
    fn drop(&mut self) {
        // SAFETY: the signal goes to a process of this test, which no thread waits for.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}
