//! The processes of a run: spawned, started, asked for their results, ended with the run.
//!
//! A child is this same program with the hidden command `child`, and its role as JSON in the environment. It writes a
//! line of JSON when it is ready and a line for each result; it reads `go`, `stop` and other commands from its standard
//! input, and stops when that closes, so that no process outlives a killed bench. Measurements between threads use
//! children that are threads of this process, on pipes of the same kind.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::LabError;
use crate::interruption::interruption;
use crate::parent::{ChildMessage, Parent};
use crate::role::{self, ProcessRole, RoleEntry};

/// Timeout in seconds for a child to get ready, or to answer beyond the expected time.
const ANSWER_TIMEOUT_S: u64 = 60;

/// Spawned process of a role, or a thread in its place.
pub struct Child {
    process: Option<std::process::Child>,
    stdin: Option<Box<dyn Write + Send>>,
    lines: Receiver<String>,
    role: &'static str,
    /// Whether the child was spawned after a Ctrl-C, to finish the run, and so is not stopped by that Ctrl-C.
    is_cleanup: bool,
}

impl Child {
    pub(crate) fn spawn<R: ProcessRole>(program: &Path, role: &R) -> Result<Self, LabError> {
        let mut command = Command::new(program);
        command.arg("child").arg(std::process::id().to_string()).env(role::VARIABLE, role::role_message(role));
        // A process group of its own, so that a Ctrl-C reaches the parent alone, which stops its children.
        command.stderr(Stdio::inherit()).process_group(0);
        Self::of(command, R::NAME)
    }

    /// Plays a role in a thread of this process.
    pub(crate) fn thread<R: ProcessRole>(role: &R) -> Result<Self, LabError> {
        let pipe = || std::io::pipe().map_err(|e| LabError::Failed(format!("no pipe can be made: {e}")));
        let ((input, stdin), (stdout, out)) = (pipe()?, pipe()?);
        let (given, playable) = (role::role_message(role), RoleEntry::of::<R>());
        std::thread::spawn(move || {
            let parent = Parent::over(BufReader::new(input), out);
            // The pipe reports its error to the parent.
            let _ = role::run_role(&given, [&playable], &parent);
        });
        Self::connect(None, Some(Box::new(stdin)), stdout, R::NAME)
    }

    /// Spawns any program with the protocol of our own children; `role` is its name in errors.
    pub fn of(mut command: Command, role: &'static str) -> Result<Self, LabError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let program = Path::new(command.get_program()).to_owned();
        let mut process = command.spawn().map_err(|e| LabError::file(&program, e))?;
        let stdin = process.stdin.take().map(|stdin| Box::new(stdin) as Box<dyn Write + Send>);
        let stdout = process.stdout.take().expect("piped");
        Self::connect(Some(process), stdin, stdout, role)
    }

    /// Waits until a child on these pipes is ready.
    fn connect(
        process: Option<std::process::Child>,
        stdin: Option<Box<dyn Write + Send>>,
        stdout: impl Read + Send + 'static,
        role: &'static str,
    ) -> Result<Self, LabError> {
        let (sender, lines) = channel();
        let stdout = BufReader::new(stdout);
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let is_of_the_end = interruption().load(Ordering::Relaxed);
        let mut child = Self { process, stdin, lines, role, is_cleanup: is_of_the_end };
        match child.receive::<()>(ANSWER_TIMEOUT_S)? {
            ChildMessage::Ready => Ok(child),
            ChildMessage::Result(()) => Err(child.failed("it sent a result before it was ready".to_owned())),
            ChildMessage::Error(what) => Err(child.failed(what)),
        }
    }

    /// Returns the child's process id, which for a thread is this process's own.
    pub fn id(&self) -> u32 {
        self.process.as_ref().map_or_else(std::process::id, std::process::Child::id)
    }

    /// Sends a line to the child.
    pub fn send(&mut self, line: &str) -> Result<(), LabError> {
        let result = self.stdin.as_mut().map_or(Ok(()), |stdin| writeln!(stdin, "{line}"));
        result.map_err(|e| self.failed(e.to_string()))
    }

    /// Waits for the child's next result, at most `seconds` and a minute more.
    pub fn result<T: DeserializeOwned>(&mut self, seconds: f64) -> Result<T, LabError> {
        match self.receive(seconds as u64 + ANSWER_TIMEOUT_S)? {
            ChildMessage::Result(result) => Ok(result),
            ChildMessage::Ready => Err(self.failed("it reported 'ready' twice".to_owned())),
            ChildMessage::Error(what) => Err(self.failed(what)),
        }
    }

    /// Stops the child by closing its input. Returns its last result.
    pub fn stop<T: DeserializeOwned>(mut self) -> Result<T, LabError> {
        drop(self.stdin.take());
        self.result(0.0)
    }

    /// Kills the child, even in the middle of its work; a thread cannot be killed.
    pub fn kill(mut self) {
        // Errors mean that the process has ended already.
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    fn receive<T: DeserializeOwned>(&mut self, seconds: u64) -> Result<ChildMessage<T>, LabError> {
        match self.next_line(seconds) {
            Ok(line) => {
                serde_json::from_str(&line).map_err(|e| self.failed(format!("unexpected output '{line}' ({e})")))
            }
            Err(RecvTimeoutError::Timeout) => Err(LabError::Silent { role: self.role.to_owned(), seconds }),
            Err(RecvTimeoutError::Disconnected) => {
                let ended = self.process.as_mut().map(std::process::Child::wait);
                let ended = ended.map_or("a thread".to_owned(), |ended| {
                    ended.map_or_else(|e| e.to_string(), |status| status.to_string())
                });
                Err(self.failed(format!("it ended without a result ({ended})")))
            }
        }
    }

    /// Waits for the child's next line. After a Ctrl-C it stops the child, which then returns its result so far.
    fn next_line(&mut self, seconds: u64) -> Result<String, RecvTimeoutError> {
        const CHECK_INTERVAL: Duration = Duration::from_millis(100);
        let mut left = Duration::from_secs(seconds);
        loop {
            if !self.is_cleanup && interruption().load(Ordering::Relaxed) {
                drop(self.stdin.take());
            }
            match self.lines.recv_timeout(left.min(CHECK_INTERVAL)) {
                Err(RecvTimeoutError::Timeout) if left > CHECK_INTERVAL => left -= CHECK_INTERVAL,
                message => return message,
            }
        }
    }

    fn failed(&self, what: String) -> LabError {
        LabError::Child { role: self.role.to_owned(), what }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let Some(process) = &mut self.process else { return };
        // The process may have ended by itself; it is reaped either way.
        if !matches!(process.try_wait(), Ok(Some(_))) {
            let _ = process.kill();
        }
        let _ = process.wait();
    }
}
