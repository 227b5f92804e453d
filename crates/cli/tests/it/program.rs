//! The binary as a user calls it, with a bound on how long it may take.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use tickpath_clock::sleep_ns;

/// The longest that one call may take, ten minutes: looks at its end, and the pause between two. Nothing else is awaited
/// longer. The first call that needs Python's packages fetches them, for which the program itself allows six.
pub const LOOKS: u64 = 30_000;
pub const PAUSE_NS: u64 = 20_000_000;

/// What one call came to.
pub struct Ran {
    /// Its exit code; none if it was killed.
    pub code: Option<i32>,
    /// What it said on standard output.
    pub out: String,
    /// Its standard error, but for a wait for another test's bench.
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

/// Calls the binary with its outputs going there; what goes to a pipe is heard.
pub fn tickpath_into(words: &[&str], out: Stdio, err: Stdio) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(words).env_remove("COLUMNS").env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut child = command.spawn().expect("the binary starts");
    let (out, err) = (child.stdout.take().map(listen), child.stderr.take().map(listen));
    let code = end(&mut child);
    let text = |said: Option<JoinHandle<String>>| {
        said.map(|said| said.join().expect("a listener does not panic")).unwrap_or_default()
    };
    Ran { code, out: text(out), err: without_waits(text(err).as_bytes()) }
}

/// Waits for the end, and kills what does not come to one.
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
        let mut said = Vec::new();
        pipe.read_to_end(&mut said).expect("the pipe can be read");
        String::from_utf8_lossy(&said).into_owned()
    })
}

/// The words of a command, but for its wait until another test's bench has ended.
pub fn without_waits(err: &[u8]) -> String {
    let said = String::from_utf8_lossy(err);
    said.lines()
        .filter(|line| !line.contains("waiting for its end, for two would measure each other"))
        .fold(String::new(), |text, line| text + line + "\n")
}
