//! What a client's process is told, and what it tells.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One client: what its process is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetGetRole {
    /// Which one.
    pub client: String,
    /// The server.
    pub url: String,
    /// Workers that take turns.
    pub workers: u64,
    /// What the keys begin with.
    pub keys: String,
    /// Pairs of all workers together.
    pub count: u64,
    /// Its CPU.
    pub cpu: Option<usize>,
    /// How long it waits for an answer.
    pub silence_s: f64,
    /// Where its samples go.
    pub out: PathBuf,
}

impl SetGetRole {
    /// A key and the value that it is set to.
    pub(super) fn pair(&self, number: u64) -> (String, String) {
        (format!("{}:{number}", self.keys), format!("value:{number}"))
    }
}

/// What it tells at its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Until each connection has answered a PING.
    pub connect_ns: u64,
    /// From then on, until the last pair ended.
    pub elapsed_ns: u64,
    pub pairs: u64,
    /// Keys that did not hold what was set.
    pub mismatched: u64,
}
