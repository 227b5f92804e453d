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
    /// Returns the number of ticks of which the strategy answers the first by an order, so that the exchange takes all.
    pub fn ticks_per_order(&self) -> u64 {
        (self.rate / self.via.max_orders_per_s()).ceil().max(1.0) as u64
    }

    /// Returns the number of orders of a run.
    pub fn orders(&self) -> u64 {
        self.count.div_ceil(self.ticks_per_order())
    }

    /// Estimates the duration of a run.
    pub fn seconds(&self) -> f64 {
        /// Seconds to start and end the processes.
        const SETUP_S: f64 = 5.0;
        SETUP_S + self.count as f64 / self.rate
    }

    pub(crate) fn check(&self) -> Result<(), LabError> {
        let wrong = |what: String| Err(LabError::Setting(what));
        let max = self.via.max_ticks_per_s();
        if !(self.rate > 0.0 && self.rate <= max) {
            return wrong(format!("--via {} takes --rate 0.001 to {max} ticks a second", self.via));
        }
        if self.count == 0 || self.count > 1_000_000 {
            return wrong("--via takes --count 1 to 1000000 ticks".to_owned());
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
