//! The strategy's side: our own process, or two processes in Python with ccxt at both ends.

use tickpath_lab_harness::LabError;
use tickpath_lab_result::Run;
use tickpath_lab_tools::python::Python;

/// The client of the exchange.
#[derive(Debug, Clone)]
pub enum ExchangeClient {
    /// Our own: feed, strategy, OMS and line in a process.
    Rust,
    /// ccxt at both ends.
    Scripts(ScriptStack),
}

/// A watcher and a strategy in Python, and the bus between them.
#[derive(Debug, Clone)]
pub struct ScriptStack {
    /// URL of the bus.
    pub(crate) url: String,
    pub(crate) python: Python,
}

impl ExchangeClient {
    /// Name of our own client.
    pub const RUST_NAME: &'static str = "rust";
    /// Name of ccxt, on the command line.
    pub const CCXT_NAME: &'static str = "ccxt";

    /// Returns ccxt with this bus between its two processes.
    pub fn ccxt(url: &str) -> Result<Self, LabError> {
        let needed: &[&str] = if is_redis(url) { &["ccxt", "redis"] } else { &["ccxt", "tickpath"] };
        Ok(Self::Scripts(ScriptStack { url: url.to_owned(), python: Python::with_packages(needed)? }))
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rust => Self::RUST_NAME,
            Self::Scripts(stack) if is_redis(&stack.url) => "ccxt, redis-py",
            Self::Scripts(_) => "ccxt, tickpath",
        }
    }

    pub(crate) fn describe(&self, run: &mut Run) {
        run.client = self.name().to_owned();
        let Self::Scripts(stack) = self else { return };
        run.software.client = Some("ccxt".to_owned());
        run.software.client_version = stack.python.version_of("ccxt").map(str::to_owned);
        run.software.runtime = Some(stack.python.runtime.clone());
    }
}

/// Returns whether a bus is Redis.
pub(crate) fn is_redis(url: &str) -> bool {
    url.starts_with("redis")
}
