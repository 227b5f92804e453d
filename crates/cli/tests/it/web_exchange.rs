//! `tickpath exchange --as` as a process, with the facts that it prints.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::logs::until;

/// A simulated exchange with the protocols of a real one; killed when it is dropped.
pub struct WebExchange {
    child: Child,
    facts: Vec<(String, String)>,
}

impl WebExchange {
    /// Calls the binary with the words of a line, and waits until the exchange serves.
    pub fn start(line: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
        command.args(line.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let printed = Arc::new(Mutex::new(Vec::new()));
        let (lines, out) = (printed.clone(), BufReader::new(child.stdout.take().expect("it is a pipe")));
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                lines.lock().expect("no thread panics with it").push(line);
            }
        });
        let snapshot = || printed.lock().expect("no thread panics with it").clone();
        until(|| snapshot().iter().any(|line| line.starts_with("ready ")), || format!("'ready', but {:?}", snapshot()));
        let fact = |line: String| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.trim().to_owned()));
        Self { child, facts: snapshot().into_iter().filter_map(fact).collect() }
    }

    /// Returns the values of the facts with this name.
    pub fn facts(&self, name: &str) -> Vec<&str> {
        self.facts.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the value of the first fact with this name.
    pub fn fact(&self, name: &str) -> &str {
        self.facts(name).first().unwrap_or_else(|| panic!("no {name} in {:?}", self.facts))
    }

    /// Returns the address at which it listens, as `IP:PORT`.
    pub fn address(&self) -> &str {
        self.fact("rest").split_once("://").expect("it is a URL").1
    }

    /// Writes the credentials of the first account to a file that its owner alone may use.
    pub fn write_credentials(&self, file: &Path) {
        let lines = ["key", "secret", "passphrase"].map(|name| format!("{name} = \"{}\"\n", self.fact(name)));
        fs::write(file, lines.concat()).expect("the folder is ours");
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    }

    /// Sends Ctrl-C, and returns the exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-INT", &pid]).status().expect("install kill (apt-get install procps)");
        assert!(status.success(), "the process was there");
        let mut ended = None;
        let is_over = || {
            ended = self.child.try_wait().expect("the child is ours");
            ended.is_some()
        };
        until(is_over, || "the end of the exchange".to_owned());
        ended.and_then(|status| status.code())
    }
}

impl Drop for WebExchange {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
