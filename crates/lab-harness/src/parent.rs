//! The child's side of its pipes: commands from its parent, and replies, a line each.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Message of a child to its parent.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChildMessage<T> {
    Ready,
    Result(T),
    Error(String),
}

/// Result of a timed wait for a parent's command.
pub enum ParentMessage {
    /// A line came.
    Line(String),
    /// No line came in time.
    Timeout,
    /// The parent is gone, or has asked this process to stop.
    Closed,
}

/// Child's connection to its parent: receives commands, and sends replies.
pub struct Parent {
    lines: Receiver<String>,
    stop: Arc<AtomicBool>,
    out: RefCell<Box<dyn Write + Send>>,
}

impl Parent {
    /// Connects to the parent by standard input and output. The stop flag is set when the input ends.
    pub fn listen() -> Self {
        Self::over(BufReader::new(std::io::stdin()), std::io::stdout())
    }

    /// Connects to the parent as [`Self::listen`] does, by any two streams.
    pub(crate) fn over(input: impl BufRead + Send + 'static, out: impl Write + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, lines) = channel();
        let ended = stop.clone();
        std::thread::spawn(move || {
            for line in input.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
            ended.store(true, Ordering::Release);
        });
        Self { lines, stop, out: RefCell::new(Box::new(out)) }
    }

    /// Returns the flag that is set when the parent is gone or has asked this process to stop.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Waits for the parent's next line. Returns none if the parent is gone.
    pub fn receive(&self) -> Option<String> {
        self.lines.recv().ok()
    }

    /// Waits for the parent's next line, at most `ns` nanoseconds.
    pub fn receive_timeout(&self, ns: u64) -> ParentMessage {
        match self.lines.recv_timeout(Duration::from_nanos(ns)) {
            Ok(line) => ParentMessage::Line(line),
            Err(RecvTimeoutError::Timeout) => ParentMessage::Timeout,
            Err(RecvTimeoutError::Disconnected) => ParentMessage::Closed,
        }
    }

    /// Takes a waiting line of the parent. Returns true if there was one, or if the parent is gone.
    pub(crate) fn has_message(&self) -> bool {
        !matches!(self.lines.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty))
    }

    /// Reports that this process is ready.
    pub fn ready(&self) {
        self.send(&ChildMessage::<()>::Ready);
    }

    /// Sends a result.
    pub fn result(&self, result: &impl Serialize) {
        self.send(&ChildMessage::Result(result));
    }

    /// Reports the reason why no result follows.
    pub fn error(&self, what: &str) {
        self.send(&ChildMessage::<()>::Error(what.to_owned()));
    }

    fn send<T: Serialize>(&self, message: &ChildMessage<T>) {
        let line = serde_json::to_string(message).expect("plain data");
        let mut out = self.out.borrow_mut();
        // A parent that is gone needs no reply.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
