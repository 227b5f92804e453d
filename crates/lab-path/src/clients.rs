//! Whose code trades: ours, or another's, in a process that speaks as `docs/clients.md` says.

use serde::Serialize;
use tickpath_harness::{Child, Lab, LabError, Role};
use tickpath_result::Run;
use tickpath_scratch::python::Python;
use tickpath_scratch::scripts::Library;

/// Whose code has a session with an OMS.
#[derive(Debug, Clone)]
pub enum Client {
    /// Ours.
    Rust,
    /// The package `tickpath`, in this Python.
    Python(Python),
}

/// What the scripts have in common.
const COMMON: (&str, &str) = ("bench_client.py", include_str!("python/bench_client.py"));

impl Client {
    /// Ours, on the command line and in results.
    pub const OURS: &'static str = "rust";

    /// All of them.
    pub const NAMES: [&'static str; 2] = [Self::OURS, Library::Tickpath.client()];

    /// The one of this name, made ready.
    pub fn of(name: &str, lab: &Lab<'_>) -> Result<Self, LabError> {
        match name {
            Self::OURS => Ok(Self::Rust),
            _ => Ok(Self::Python(Library::Tickpath.python(lab)?)),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rust => Self::OURS,
            Self::Python(_) => Library::Tickpath.client(),
        }
    }

    /// Starts a process that plays this role: of ours, or of another's, which is told the same.
    pub(crate) fn spawn<R: Role>(&self, lab: &Lab<'_>, role: &R, script: (&str, &str)) -> Result<Child, LabError> {
        match self {
            Self::Rust => lab.spawn(role),
            Self::Python(python) => spawn_script(python, lab, R::NAME, script, role),
        }
    }

    /// Says of a run whose code it was, and what that ran on.
    pub(crate) fn tell(&self, run: &mut Run) {
        run.client = self.name().to_owned();
        if let Self::Python(python) = self {
            Library::Tickpath.tell(python, run);
        }
    }
}

/// Starts a process that runs this script, with what all of them have in common; `role` is what it is called in errors.
pub(crate) fn spawn_script(
    python: &Python,
    lab: &Lab<'_>,
    role: &'static str,
    script: (&str, &str),
    settings: &impl Serialize,
) -> Result<Child, LabError> {
    python.spawn(lab, role, &[script, COMMON], settings)
}
