//! The runtimes of clients: this program, a Python interpreter, a Go program.

use std::collections::BTreeMap;

use tickpath_clock::{Calibration, Clock};
use tickpath_lab_harness::{Child, Lab, LabError};
use tickpath_lab_result::Software;
use tickpath_lab_tools::go::{Go, GoError};
use tickpath_lab_tools::python::Python;

use super::client::{ClientRuntime, SetGetClient};
use super::role::SetGetRole;
use super::rust;

/// Prepared runtimes of the selected clients.
pub(super) struct Runtimes {
    python: Option<Python>,
    /// Programs by the name of their source.
    go: BTreeMap<&'static str, Go>,
}

impl Runtimes {
    /// Prepares missing runtimes. Without Go there are no Go clients; the second value then holds the error.
    pub fn prepare(lab: &Lab<'_>, clients: &[SetGetClient]) -> Result<(Self, Option<GoError>), LabError> {
        let has_python = clients.iter().any(|client| matches!(client.runtime, ClientRuntime::Python { .. }));
        let python = has_python.then(|| Python::prepare(lab.progress)).transpose()?;
        let sources = clients.iter().filter_map(|client| match client.runtime {
            ClientRuntime::Go(source) => Some((source.0, source)),
            _ => None,
        });
        let built = |(name, source)| Go::prepare(lab.progress, source).map(|go| (name, go));
        let sources: BTreeMap<_, _> = sources.collect();
        let (go, missing) = match sources.into_iter().map(built).collect() {
            Ok(go) => (go, None),
            Err(missing) => (BTreeMap::new(), Some(missing)),
        };
        Ok((Self { python, go }, missing))
    }

    pub fn spawn(&self, lab: &Lab<'_>, client: SetGetClient, role: &SetGetRole) -> Result<Child, LabError> {
        match client.runtime {
            ClientRuntime::Python { source, .. } => {
                self.python.as_ref().map(|python| python.spawn(lab, client.name, &[source], role))
            }
            ClientRuntime::Go((source, _)) => self.go.get(source).map(|go| go.spawn(client.name, role.cpu, role)),
            ClientRuntime::Rust { .. } => None,
        }
        .unwrap_or_else(|| lab.spawn(role))
    }

    pub fn calibration(client: SetGetClient, lab: &Lab<'_>) -> Calibration {
        match client.runtime {
            ClientRuntime::Rust { .. } => *lab.clock.calibration(),
            ClientRuntime::Python { .. } | ClientRuntime::Go(_) => Calibration::nanoseconds(),
        }
    }

    pub fn add_software(&self, client: SetGetClient, software: &mut Software) {
        software.client = Some(client.library.to_owned());
        let (version, runtime) = match client.runtime {
            ClientRuntime::Rust { runtime, .. } => (rust::VERSION.to_owned(), runtime.map(str::to_owned)),
            ClientRuntime::Go((source, _)) => {
                (Go::library_version().to_owned(), self.go.get(source).map(|go| go.runtime.clone()))
            }
            ClientRuntime::Python { hiredis, event_loop, .. } => {
                let version =
                    |package| self.python.as_ref().and_then(|python| python.version_of(package)).unwrap_or("?");
                let library = version("redis");
                let text = match hiredis {
                    true => format!("{library} with hiredis {}", version("hiredis")),
                    false => format!("{library} without hiredis"),
                };
                let runtime = self.python.as_ref().map(|python| match event_loop {
                    Some(package) => format!("{}, {package} {}", python.runtime, version(package)),
                    None => python.runtime.clone(),
                });
                (text, runtime)
            }
        };
        software.client_version = Some(version);
        software.runtime = runtime;
    }
}
