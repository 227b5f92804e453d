//! Settings of a run, and the names of its files.

use std::path::PathBuf;

use tickpath_clock::Priority;
use tickpath_lab_harness::LabError;

use crate::client::ExchangeClient;
use crate::protocol::ViaExchange;

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The exchange.
    pub via: ViaExchange,
    /// The strategy's side.
    pub client: ExchangeClient,
    /// The generator's and the system's CPU.
    pub cpus: [usize; 2],
    /// Ticks a second.
    pub rate: f64,
    /// The number of ticks.
    pub count: u64,
    /// The priority of the trader's thread.
    pub priority: Priority,
    /// The number of this repetition.
    pub repeat: u32,
}

impl Settings {
    /// Estimates the duration of a run.
    pub fn seconds(&self) -> f64 {
        /// Seconds to start and end the processes.
        const SETUP_S: f64 = 5.0;
        SETUP_S + self.count as f64 / self.rate
    }

    pub(crate) fn check(&self) -> Result<(), LabError> {
        let (via, max) = (self.via, self.via.max_rate());
        let wrong = |what: String| Err(LabError::Setting(what));
        if !(self.rate > 0.0 && self.rate <= max) {
            return wrong(format!(
                "{via} takes no more than {max} orders a second of this account; use --rate {max} or less"
            ));
        }
        if self.count == 0 || self.count > 100_000 {
            return wrong("--via takes --count 1 to 100000 ticks".to_owned());
        }
        if self.cpus[0] == self.cpus[1] {
            return wrong("exchange and trader would both spin on one CPU; name two with --cpus".to_owned());
        }
        Ok(())
    }
}

/// Names of a run's files.
pub(crate) struct RunFiles {
    pub name: String,
    pub folder: PathBuf,
}

impl RunFiles {
    /// Returns a file of the run.
    pub fn of(&self, what: &str) -> PathBuf {
        self.folder.join(format!("{}.{what}", self.name))
    }
}
