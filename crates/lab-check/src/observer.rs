//! Observation from another process of when the kernel ended the sends of a thread.
//!
//! ```text
//!   the OMS's thread   T1 ····· send ┃ stopped      ┃ ····· T2
//!   the observer                     └ reads the clock
//! ```
//!
//! The kernel stops the thread at the end of each system call until the observer has read the clock: a stamp that the
//! thread takes after its send has returned is later than the observer's, whatever the host does.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_lab_harness::samples::save;
use tickpath_lab_harness::{LabError, Parent, ProcessRole};

/// An observer of a thread until the thread has ended. Its first result is an error if tracing is not allowed, its
/// last one confirms that all is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ObserverRole {
    /// Id of the observed thread.
    pub thread: u32,
    /// File for the start and end of each of the thread's sends.
    pub out: PathBuf,
}

impl ProcessRole for ObserverRole {
    const NAME: &'static str = "observer";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        parent.ready();
        let begun = calls::TracedThread::of(self.thread);
        parent.result(&begun.as_ref().err());
        if let Ok(watched) = begun {
            save(&self.out, &watched.sends()?)?;
            parent.result(&());
        }
        Ok(())
    }
}

#[cfg(target_arch = "x86_64")]
mod calls {
    use nix::libc;
    use nix::sys::ptrace;
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use nix::unistd::Pid;
    use tickpath_clock::{Clock, HostClock};
    use tickpath_lab_harness::LabError;

    /// System calls that write to a socket.
    const SENDS: [i64; 4] = [libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_write, libc::SYS_writev];

    /// A thread that is stopped at each of its system calls.
    pub struct TracedThread(Pid);

    impl TracedThread {
        /// Begins to trace this thread. Returns an error with the operation that the kernel does not allow.
        pub fn of(thread: u32) -> Result<Self, String> {
            let thread = Pid::from_raw(thread as i32);
            let begin = ptrace::seize(thread, ptrace::Options::PTRACE_O_TRACESYSGOOD)
                .and_then(|()| ptrace::interrupt(thread))
                .and_then(|()| waitpid(thread, Some(WaitPidFlag::__WALL)))
                .and_then(|_| ptrace::syscall(thread, None));
            begin.map(|()| Self(thread)).map_err(|e| format!("the kernel does not permit tracing system calls: {e}"))
        }

        /// Returns the start and end of each send, in ticks, until the thread has ended.
        pub fn sends(self) -> Result<Vec<[u64; 2]>, LabError> {
            let Self(thread) = self;
            let clock = HostClock::get()?;
            let (mut begun, mut sends) = (None, Vec::new());
            loop {
                let signal = match waitpid(thread, Some(WaitPidFlag::__WALL)).map_err(LabError::other)? {
                    WaitStatus::PtraceSyscall(_) => {
                        let now = clock.ticks();
                        let registers = match ptrace::getregs(thread) {
                            // The thread was killed meanwhile.
                            Err(nix::Error::ESRCH) => return Ok(sends),
                            registers => registers.map_err(LabError::other)?,
                        };
                        let is_entry = registers.rax as i64 == -i64::from(libc::ENOSYS);
                        let is_send = SENDS.contains(&(registers.orig_rax as i64));
                        match begun.take() {
                            Some(begun) if is_send && !is_entry => sends.push([begun, now]),
                            _ => begun = (is_send && is_entry).then_some(now),
                        }
                        None
                    }
                    WaitStatus::Stopped(_, signal) => Some(signal),
                    WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Ok(sends),
                    _ => None,
                };
                match ptrace::syscall(thread, signal) {
                    // The thread has ended meanwhile.
                    Err(nix::Error::ESRCH) => return Ok(sends),
                    went_on => went_on.map_err(LabError::other)?,
                }
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod calls {
    use tickpath_lab_harness::LabError;

    /// A stand-in on other processors.
    pub struct TracedThread;

    impl TracedThread {
        /// Always returns an error.
        pub fn of(_thread: u32) -> Result<Self, String> {
            Err("system calls are watched on x86-64 alone".to_owned())
        }

        /// Returns no sends.
        pub fn sends(self) -> Result<Vec<[u64; 2]>, LabError> {
            Ok(Vec::new())
        }
    }
}
