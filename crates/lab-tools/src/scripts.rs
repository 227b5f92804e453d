//! Shared parts of scripts in Python: the library that carries their messages, and their interpreter.

use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::Run;

use crate::python::Python;

/// Module for scripts that counts reconnects of redis-py.
pub const RECONNECTS: (&str, &str) = ("reconnects.py", include_str!("python/reconnects.py"));

/// The library of a script's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Our own package.
    Tickpath,
    /// The usual package.
    RedisPy,
}

impl Library {
    /// Returns the name of its client in results and on the command line.
    pub const fn client(self) -> &'static str {
        match self {
            Self::Tickpath => "python",
            Self::RedisPy => "redis-py",
        }
    }

    /// Returns an interpreter that has the library.
    pub fn python(self, lab: &Lab<'_>) -> Result<Python, LabError> {
        match self {
            Self::Tickpath => Python::with_tickpath(),
            Self::RedisPy => Python::prepare(lab.progress),
        }
    }

    /// Records in a run the scripts' library and runtime.
    pub fn describe_client(self, python: &Python, run: &mut Run) {
        let (name, package) = match self {
            Self::Tickpath => ("tickpath", "tickpath"),
            Self::RedisPy => ("redis-py", "redis"),
        };
        let version = python.version_of(package);
        run.software.client = Some(name.to_owned());
        run.software.client_version = version.map(str::to_owned);
        run.software.runtime = Some(python.runtime.clone());
        run.notes.extend(another_version(python).filter(|_| self == Self::Tickpath));
    }
}

/// Returns a sentence if the package `tickpath` has another version than this command.
pub fn another_version(python: &Python) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    let version = python.version_of("tickpath").filter(|version| *version != own)?;
    Some(format!(
        "the package tickpath is {version} and this command {own}: the package is measured; run pip install . in the \
         checkout of this command to make them equal"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_connection_counts_as_one_reconnect() {
        const USED: &str = "
class Connection:
    def on_connect(self):
        pass

first, second = Connection(), Connection()
told = []
for connection in (first, second, first):
    connected(connection)
    told.append(reconnects())
print(told)
";
        let script = format!("{}{USED}", RECONNECTS.1);
        let ran = std::process::Command::new("python3").args(["-I", "-c", &script]).output().expect("there is Python");
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(out.trim(), "[0, 0, 1]", "{err}");
    }
}
