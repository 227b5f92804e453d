//! The binary as a user calls it, with a time limit.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use tickpath_clock::sleep_ns;

/// Checks for the end of a call, and the pause between two: a limit of ten minutes, the longest of all waits. The
/// first call that needs Python's packages fetches them, for which the program itself allows six minutes.
pub const LOOKS: u64 = 30_000;
pub const PAUSE_NS: u64 = 20_000_000;

/// Result of a call.
pub struct Ran {
    /// Exit code; none if the process was killed.
    pub code: Option<i32>,
    /// Text on standard output.
    pub out: String,
    /// Text on standard error, without a wait for another test's bench.
    pub err: String,
}

/// Calls the binary with the words of a line, which are separated by single spaces.
pub fn tickpath(line: &str) -> Ran {
    tickpath_with(&line.split(' ').collect::<Vec<_>>())
}

/// Calls the binary with words that may hold spaces.
pub fn tickpath_with(words: &[&str]) -> Ran {
    tickpath_into(words, Stdio::piped(), Stdio::piped())
}

/// Calls the binary with these outputs; text that goes to a pipe is returned.
pub fn tickpath_into(words: &[&str], out: Stdio, err: Stdio) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(words).env_remove("COLUMNS").env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut child = command.spawn().expect("the binary starts");
    let (out, err) = (child.stdout.take().map(listen), child.stderr.take().map(listen));
    let code = end(&mut child);
    let text = |output: Option<JoinHandle<String>>| {
        output.map(|output| output.join().expect("a listener does not panic")).unwrap_or_default()
    };
    Ran { code, out: text(out), err: without_waits(text(err).as_bytes()) }
}

/// Waits for the end, and kills the process at the time limit.
fn end(child: &mut Child) -> Option<i32> {
    for _ in 0..LOOKS {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            return status.code();
        }
        sleep_ns(PAUSE_NS);
    }
    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours").code()
}

fn listen(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        pipe.read_to_end(&mut text).expect("the pipe can be read");
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Returns the standard error of a command, without its wait for another test's bench.
pub fn without_waits(err: &[u8]) -> String {
    let output = String::from_utf8_lossy(err);
    output
        .lines()
        .filter(|line| !line.contains("waiting until it ends, because two benches disturb each other"))
        .fold(String::new(), |text, line| text + line + "\n")
}
