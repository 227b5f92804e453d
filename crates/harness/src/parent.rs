//! The child's side of its wires: what its parent says, and saying things to it, a line each.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a child says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said<T> {
    Ready,
    Result(T),
    Error(String),
}

/// What a parent has said within some time.
pub enum Heard {
    /// This line.
    Line(String),
    /// Nothing.
    Nothing,
    /// It is gone, or wants this process to stop.
    Gone,
}

/// The child's side: what its parent says, and saying things to it.
pub struct Parent {
    lines: Receiver<String>,
    stop: Arc<AtomicBool>,
    out: RefCell<Box<dyn Write + Send>>,
}

impl Parent {
    /// Listens on standard input; `stop` is set when that ends.
    pub fn listen() -> Self {
        Self::over(BufReader::new(std::io::stdin()), std::io::stdout())
    }

    /// The same on any two wires.
    pub(crate) fn over(input: impl BufRead + Send + 'static, out: impl Write + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (said, lines) = channel();
        let ended = stop.clone();
        std::thread::spawn(move || {
            for line in input.lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    break;
                }
            }
            ended.store(true, Ordering::Release);
        });
        Self { lines, stop, out: RefCell::new(Box::new(out)) }
    }

    /// Set when the parent wants this process to stop, or is gone.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// The parent's next line; none when it is gone.
    pub fn hear(&self) -> Option<String> {
        self.lines.recv().ok()
    }

    /// The parent's next line, waited for at most so long.
    pub fn hear_within(&self, ns: u64) -> Heard {
        match self.lines.recv_timeout(Duration::from_nanos(ns)) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::Gone,
        }
    }

    /// True if the parent has said a line since, or is gone.
    pub(crate) fn has_spoken(&self) -> bool {
        !matches!(self.lines.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty))
    }

    /// Says that this process is ready.
    pub fn ready(&self) {
        self.say(&Said::<()>::Ready);
    }

    /// Gives a result.
    pub fn result(&self, result: &impl Serialize) {
        self.say(&Said::Result(result));
    }

    /// Says why there will be none.
    pub fn error(&self, what: &str) {
        self.say(&Said::<()>::Error(what.to_owned()));
    }

    fn say<T: Serialize>(&self, said: &Said<T>) {
        let line = serde_json::to_string(said).expect("plain data");
        let mut out = self.out.borrow_mut();
        // A parent that is gone needs no answer.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
