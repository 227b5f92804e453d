//! The stage for a lie, and the findings of one.

use std::cell::OnceCell;

use tickpath_lab_bus::pubsub::Settings;
use tickpath_lab_harness::{Lab, LabError};
use tickpath_lab_result::ResultFile;
use tickpath_lab_tools::redis::{ScratchServer, ServerSettings};

/// A planted lie, and the instrument's report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultReport {
    /// Description of the planted fault.
    pub planted: String,
    /// Report of the instrument.
    pub reported: String,
    /// Set if the report matches the planted fault.
    pub is_detected: bool,
}

/// The lab and the CPUs on which lies are planted.
pub struct CheckContext<'a> {
    /// The lab.
    pub lab: &'a Lab<'a>,
    /// CPUs of publisher and subscriber.
    pub cpus: [usize; 2],
    /// Runs of this build, measured once for all lies about builds.
    runs: OnceCell<Vec<ResultFile>>,
}

/// Messages a second, and their total.
pub(crate) const RATE: f64 = 2_000.0;
pub(crate) const COUNT: u64 = 4_000;

impl<'a> CheckContext<'a> {
    /// Makes a stage without runs.
    pub fn new(lab: &'a Lab<'a>, cpus: [usize; 2]) -> Self {
        Self { lab, cpus, runs: OnceCell::new() }
    }

    pub(crate) fn runs(
        &self,
        measure: fn(&Self) -> Result<Vec<ResultFile>, LabError>,
    ) -> Result<&[ResultFile], LabError> {
        if let Some(runs) = self.runs.get() {
            return Ok(runs);
        }
        let runs = measure(self)?;
        Ok(self.runs.get_or_init(|| runs))
    }

    /// Starts a server for a single lie, because some lies kill it.
    pub(crate) fn server(&self) -> Result<ScratchServer, LabError> {
        let settings = ServerSettings { cpu: Some(self.cpus[0]), ..ServerSettings::default() };
        ScratchServer::require(self.lab, &settings, "")
    }

    pub(crate) fn settings(&self, target: &str) -> Settings {
        Settings { rate: Some(RATE), count: COUNT, ..Settings::new(target, self.cpus) }
    }
}

/// Returns the first of some tries that can be judged, or the last try.
pub(crate) fn retry_until_judgeable<T>(
    mut act: impl FnMut() -> Result<T, LabError>,
    can_be_judged: impl Fn(&T) -> bool,
) -> Result<T, LabError> {
    const TRIES: u32 = 4;
    let mut tried = act()?;
    for _ in 1..TRIES {
        if can_be_judged(&tried) {
            break;
        }
        tried = act()?;
    }
    Ok(tried)
}

pub(crate) fn ms(ns: Option<u64>) -> String {
    ns.map_or_else(|| "unknown".to_owned(), |ns| format!("{:.1} ms", ns as f64 / 1e6))
}
