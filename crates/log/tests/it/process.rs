//! This program as a child process, to be killed.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use tickpath_log::{LogPath, OverflowPolicy};

pub const ROLE: &str = "TICKPATH_TEST_ROLE";
pub const PLACE: &str = "TICKPATH_TEST_PLACE";
pub const POLICY: &str = "TICKPATH_TEST_POLICY";

/// Sends a number to the parent, on a line of its own whatever the test harness has written before.
pub fn print_number(number: u64) {
    let mut out = std::io::stdout().lock();
    let printed = write!(out, "\nack {number}\n").and_then(|()| out.flush());
    printed.expect("the parent listens");
}

/// A child that can be killed.
pub struct ChildProcess {
    child: Child,
    /// Output of the child.
    pub lines: ChildOutput,
}

/// Returns a command that starts this program anew, in the emulator that `make test-aarch64` names.
pub fn this_program() -> Command {
    let program = std::env::current_exe().expect("this program has a path");
    let emulator = std::env::var("TICKPATH_EMULATOR").unwrap_or_default();
    let mut words = emulator.split_whitespace().map(OsString::from).chain([program.into()]);
    let mut command = Command::new(words.next().expect("the program is one"));
    command.args(words);
    command
}

impl ChildProcess {
    /// Starts this program anew, for one role on one log.
    pub fn start(role: &str, place: &LogPath, policy: OverflowPolicy) -> Self {
        Self::start_with(role, place, policy, &[])
    }

    /// Starts the child with more variables in its environment.
    pub fn start_with(role: &str, place: &LogPath, policy: OverflowPolicy, environment: &[(&str, &str)]) -> Self {
        let mut child = this_program()
            .args(["child_main", "--exact", "--nocapture"])
            .env(ROLE, role)
            .env(PLACE, place.to_string())
            .env(POLICY, policy.name())
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let lines = ChildOutput(BufReader::new(child.stdout.take().expect("it is a pipe")));
        Self { child, lines }
    }

    /// Waits until the child ends by itself.
    pub fn end(&mut self) -> std::process::ExitStatus {
        self.child.wait().expect("it ends")
    }

    /// Kills the child, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // The child may be dead already; after a failed test it is not.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The numbers that a child sends.
pub struct ChildOutput(BufReader<ChildStdout>);

impl ChildOutput {
    /// Returns the next number; none at the end. A line that was cut off by the kill does not count.
    pub fn next_number(&mut self) -> Option<u64> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).expect("the pipe can be read") == 0 {
                return None;
            }
            if let Some(number) = line.strip_suffix('\n').and_then(|line| line.strip_prefix("ack ")) {
                return Some(number.parse().expect("a number"));
            }
        }
    }

    /// Reads so many numbers; returns the last.
    pub fn skip(&mut self, count: u64) -> Option<u64> {
        (0..count).map_while(|_| self.next_number()).last()
    }

    /// Reads to the end; returns the last number.
    pub fn last_number(&mut self) -> Option<u64> {
        std::iter::from_fn(|| self.next_number()).last()
    }
}
