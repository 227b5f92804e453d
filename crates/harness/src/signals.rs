//! Processes that stand still for a while, again and again, or end at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use tickpath_clock::sleep_ns;

use crate::LabError;

/// Stops processes and lets them go on; when this value ends, all go on.
pub struct Stopping {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Stopping {
    /// All of them at once for `still_ns`, then none for `moving_ns`, and so on.
    pub fn of(ids: &[u32], still_ns: u64, moving_ns: u64) -> Result<Self, LabError> {
        let pids = ids.iter().map(|&id| pid(id)).collect::<Result<Vec<Pid>, LabError>>()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let thread = std::thread::spawn(move || {
            // Whoever has ended meanwhile stands still for ever.
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

    /// How often they stood still.
    pub fn end(mut self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(0)
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Kills a process.
pub fn kill(id: u32) -> Result<(), LabError> {
    tell(id, Signal::KILL, "be killed")
}

/// Stops a process until it is told to go on.
pub fn stop(id: u32) -> Result<(), LabError> {
    tell(id, Signal::STOP, "be stopped")
}

/// Lets a process go on that was stopped.
pub fn go_on(id: u32) -> Result<(), LabError> {
    tell(id, Signal::CONT, "go on")
}

fn tell(id: u32, signal: Signal, what: &str) -> Result<(), LabError> {
    kill_process(pid(id)?, signal).map_err(|e| LabError::Failed(format!("process {id} cannot {what}: {e}")))
}

/// A process id as the system takes it.
fn pid(id: u32) -> Result<Pid, LabError> {
    let found = i32::try_from(id).ok().and_then(Pid::from_raw);
    found.ok_or_else(|| LabError::Failed(format!("{id} is no process id")))
}
