//! Settings of `clients`: the clients, the server, its distance and the duration.

use super::client::{ClientRuntime, SetGetClient};
use crate::address::BenchAddress;
use tickpath_lab_harness::LabError;
use tickpath_lab_harness::proxy::MAX_RTT_MS;
use tickpath_lab_result::ResultFile;

/// Settings of `clients`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server's URL; a scratch server if there is none.
    pub target: Option<String>,
    /// The clients that take part.
    pub clients: Vec<SetGetClient>,
    /// Whether each client was named: then a missing Go is an error, and no client is left out.
    pub all_needed: bool,
    /// Added round trips in milliseconds, over TCP; if there are none, the round trips of the machine itself, over TCP
    /// and over a Unix socket.
    pub rtts_ms: Vec<f64>,
    /// The number of pairs of a repetition.
    pub count: u64,
    /// The number of repetitions.
    pub repeat: u32,
    /// Approximate max wait of a repetition for a far server, which reduces its number of pairs.
    pub seconds: f64,
    /// The clients' CPU and a scratch server's CPU.
    pub cpus: [usize; 2],
    /// The proxy's CPU; the server's CPU if there is none.
    pub proxy_cpu: Option<usize>,
}

impl Settings {
    /// Refuses impossible settings before anything is measured.
    pub fn check(&self) -> Result<(), LabError> {
        let wrong = |what: String| Err(LabError::Setting(what));
        if let Some(bad) = self.rtts_ms.iter().find(|rtt| !(0.0..=MAX_RTT_MS).contains(*rtt)) {
            return wrong(format!("--rtt {bad} is not possible; use 0 to {MAX_RTT_MS} milliseconds"));
        }
        if self.clients.is_empty() || self.count == 0 || self.repeat == 0 {
            return wrong("clients, pairs and repetitions start at 1".to_owned());
        }
        if !(self.seconds > 0.0 && self.seconds.is_finite()) {
            return wrong(format!("--duration {} is not possible; use a number of seconds above zero", self.seconds));
        }
        let Some(target) = &self.target else { return Ok(()) };
        let address = BenchAddress::parse(target)?;
        if !self.rtts_ms.is_empty() && address.socket().is_some() {
            return wrong("--rtt puts a distance between over TCP; give --target redis://HOST:PORT".to_owned());
        }
        Ok(())
    }

    /// Returns the settings without the clients that need Go; the result reports those clients and the reason.
    pub(super) fn without_go(&self, why: &str, result: &mut ResultFile) -> Self {
        let is_go = |client: &&SetGetClient| matches!(client.runtime, ClientRuntime::Go(_));
        let left_out: Vec<&str> = self.clients.iter().filter(is_go).map(|client| client.name).collect();
        result.findings.push(format!("left out: {}: {why}", left_out.join(", ")));
        Self { clients: self.clients.iter().filter(|client| !is_go(client)).copied().collect(), ..self.clone() }
    }
}
