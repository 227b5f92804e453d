//! A running call of the binary: a test can wait for words on its standard error, and end it by Ctrl-C.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tickpath_clock::sleep_ns;

use crate::program::{LOOKS, PAUSE_NS, Ran};

/// A running call; killed when it is dropped.
pub struct Running {
    child: Child,
    err: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

impl Running {
    /// Calls the binary with the words of a line, which are separated by single spaces.
    pub fn start(line: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
        command.args(line.split(' '));
        Self::of(command)
    }

    /// Runs a command that runs the binary.
    pub fn of(mut command: Command) -> Self {
        command.env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let err = Arc::new(Mutex::new(String::new()));
        let heard = err.clone();
        let pipe = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let listener = std::thread::spawn(move || {
            for line in pipe.lines().map_while(Result::ok) {
                let mut heard = heard.lock().expect("nobody panics with it");
                heard.push_str(&line);
                heard.push('\n');
            }
        });
        Self { child, err, listener: Some(listener) }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        let has_ended = self.child.try_wait().expect("the child is ours").is_some();
        // Its whole standard error is then read.
        if has_ended && let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        has_ended
    }

    /// Kills the process group that the process leads.
    pub fn kill_group(mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            // A group whose processes have all ended is gone.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }

    /// Returns the standard error so far.
    pub fn err(&self) -> String {
        self.err.lock().expect("nobody panics with it").clone()
    }

    /// Waits until the words are on standard error.
    pub fn await_words(&self, words: &str) {
        until(|| self.err().contains(words), || format!("'{words}' on standard error, which says: {}", self.err()));
    }

    /// Sends Ctrl-C, and waits for the end.
    pub fn interrupt(self) -> Ran {
        self.signal("-INT");
        self.end()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status().expect("install kill (apt-get install procps)");
        assert!(status.success(), "the process was there");
    }

    /// Waits for the end.
    pub fn end(mut self) -> Ran {
        let mut status = None;
        until(
            || {
                status = self.child.try_wait().expect("the child is ours");
                status.is_some()
            },
            || "the end of the call".to_owned(),
        );
        let out = self.child.stdout.take().map(read).unwrap_or_default();
        self.listener.take().expect("it listens").join().expect("a listener does not panic");
        Ran { code: status.and_then(|status| status.code()), out, err: self.err() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the condition holds, as long as a call may take.
pub fn until(mut is_so: impl FnMut() -> bool, what: impl Fn() -> String) {
    for _ in 0..LOOKS {
        if is_so() {
            return;
        }
        sleep_ns(PAUSE_NS);
    }
    panic!("it never came to {}", what());
}

/// Reads standard output, which holds a line or two that a pipe keeps until the end.
fn read(mut pipe: ChildStdout) -> String {
    let mut output = String::new();
    pipe.read_to_string(&mut output).expect("it is text");
    output
}

/// Counts the descriptors that a process has open.
pub fn open_descriptors(running: &Running) -> usize {
    fs::read_dir(format!("/proc/{}/fd", running.id())).expect("the process is ours").count()
}

/// Sets the limit of the descriptors of a process.
pub fn set_descriptors(running: &Running, limit: usize) {
    let nofile = format!("--nofile={limit}:");
    let ran = Command::new("prlimit").args(["--pid", &running.id().to_string(), &nofile]).status();
    assert!(ran.expect("there is prlimit; install it with: apt-get install util-linux").success());
}
