//! The client that trades: our own, or a process in another language that speaks the protocol of `docs/clients.md`.

use serde::Serialize;
use tickpath_lab_harness::{Child, Lab, LabError, ProcessRole};
use tickpath_lab_result::Run;
use tickpath_lab_tools::python::Python;
use tickpath_lab_tools::scripts::Library;

/// The client that has a session with an OMS.
#[derive(Debug, Clone)]
pub enum TradingClient {
    /// Our own client.
    Rust,
    /// The package `tickpath`, in this Python interpreter.
    Python(Python),
}

/// The module that all scripts import.
const COMMON: (&str, &str) = ("bench_client.py", include_str!("python/bench_client.py"));

impl TradingClient {
    /// The name of our own client on the command line and in results.
    pub const RUST_NAME: &'static str = "rust";

    /// The names of all clients.
    pub const NAMES: [&'static str; 2] = [Self::RUST_NAME, Library::Tickpath.client()];

    /// Returns the client of this name, made ready.
    pub fn of(name: &str, lab: &Lab<'_>) -> Result<Self, LabError> {
        match name {
            Self::RUST_NAME => Ok(Self::Rust),
            _ => Ok(Self::Python(Library::Tickpath.python(lab)?)),
        }
    }

    /// Returns the client's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rust => Self::RUST_NAME,
            Self::Python(_) => Library::Tickpath.client(),
        }
    }

    /// Starts a process that plays this role: ours, or a script that receives the same settings.
    pub(crate) fn spawn<R: ProcessRole>(
        &self,
        lab: &Lab<'_>,
        role: &R,
        script: (&str, &str),
    ) -> Result<Child, LabError> {
        match self {
            Self::Rust => lab.spawn(role),
            Self::Python(python) => spawn_script(python, lab, R::NAME, script, role),
        }
    }

    pub(crate) fn describe_client(&self, run: &mut Run) {
        run.client = self.name().to_owned();
        if let Self::Python(python) = self {
            Library::Tickpath.describe_client(python, run);
        }
    }
}

/// Starts a process that runs this script with the common module; `role` is its name in errors.
pub(crate) fn spawn_script(
    python: &Python,
    lab: &Lab<'_>,
    role: &'static str,
    script: (&str, &str),
    settings: &impl Serialize,
) -> Result<Child, LabError> {
    python.spawn(lab, role, &[script, COMMON], settings)
}
