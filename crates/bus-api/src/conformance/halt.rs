//! Servers that hang: stopped where they stand, and let go on.

use std::process::Command;

use super::message::until;

/// Stops a process; returns when each of its threads stands still, for the signal only asks for that.
pub fn halt(pid: u32) {
    signal(pid, "-STOP");
    until(|| {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process lives");
        // A thread that has just ended needs none.
        let states = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("stat")).ok());
        states.into_iter().all(|state| state.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
    });
}

/// Lets it go on.
pub fn go_on(pid: u32) {
    signal(pid, "-CONT");
}

fn signal(pid: u32, signal: &str) {
    let sent = Command::new("kill").arg(signal).arg(pid.to_string()).status().expect("kill is there");
    assert!(sent.success(), "kill {signal} {pid}");
}
