//! Servers that hang: stopped, and resumed later.

use std::process::Command;

use super::message::wait_until;

/// Stops a process; returns only when all its threads are stopped, because the signal is asynchronous.
pub fn suspend_process(pid: u32) {
    signal(pid, "-STOP");
    wait_until(|| {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process lives");
        // Skips a thread that has just ended.
        let states = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("stat")).ok());
        states.into_iter().all(|state| state.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
    });
}

/// Resumes a stopped process.
pub fn resume_process(pid: u32) {
    signal(pid, "-CONT");
}

fn signal(pid: u32, signal: &str) {
    let sent = Command::new("kill").arg(signal).arg(pid.to_string()).status().expect("kill is there");
    assert!(sent.success(), "kill {signal} {pid}");
}
