//! Pauses and kills processes by signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use tickpath_clock::sleep_ns;

use crate::LabError;

/// Periodic pause of processes, which all resume when this value is dropped.
pub struct PauseCycle {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl PauseCycle {
    /// Starts a cycle in which the processes run for `moving_ns`, then all pause at once for `still_ns`.
    pub fn start(ids: &[u32], still_ns: u64, moving_ns: u64) -> Result<Self, LabError> {
        let pids = ids.iter().map(|&id| pid(id)).collect::<Result<Vec<Pid>, LabError>>()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let thread = std::thread::spawn(move || {
            // Ignores errors: a process may have ended meanwhile.
            let tell = |signal| {
                for &pid in &pids {
                    let _ = kill_process(pid, signal);
                }
            };
            let mut times = 0;
            while !ends.load(Ordering::Relaxed) {
                sleep_ns(moving_ns);
                tell(Signal::STOP);
                sleep_ns(still_ns);
                tell(Signal::CONT);
                times += 1;
            }
            times
        });
        Ok(Self { is_over, thread: Some(thread) })
    }

    /// Ends the pauses. Returns their number.
    pub fn end(mut self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(0)
    }
}

impl Drop for PauseCycle {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Kills a process.
pub fn kill(id: u32) -> Result<(), LabError> {
    send_signal(id, Signal::KILL, "be killed")
}

/// Pauses a process until [`resume`] resumes it.
pub fn pause(id: u32) -> Result<(), LabError> {
    send_signal(id, Signal::STOP, "be stopped")
}

/// Resumes a paused process.
pub fn resume(id: u32) -> Result<(), LabError> {
    send_signal(id, Signal::CONT, "go on")
}

fn send_signal(id: u32, signal: Signal, what: &str) -> Result<(), LabError> {
    kill_process(pid(id)?, signal).map_err(|e| LabError::Failed(format!("process {id} cannot {what}: {e}")))
}

/// Converts a process id to the system's type.
fn pid(id: u32) -> Result<Pid, LabError> {
    let found = i32::try_from(id).ok().and_then(Pid::from_raw);
    found.ok_or_else(|| LabError::Failed(format!("{id} is no process id")))
}
