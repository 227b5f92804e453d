//! Settings that a client's process receives, and its result.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Role of a client's process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetGetRole {
    /// The client's name.
    pub client: String,
    /// The server's URL.
    pub url: String,
    /// The number of workers, which take turns.
    pub workers: u64,
    /// The prefix of the keys.
    pub keys: String,
    /// The number of pairs of all workers together.
    pub count: u64,
    /// The process's CPU.
    pub cpu: Option<usize>,
    /// Max wait for an answer.
    pub silence_s: f64,
    /// The file of its samples.
    pub out: PathBuf,
}

impl SetGetRole {
    /// Returns a key and the value that it is set to.
    pub(super) fn pair(&self, number: u64) -> (String, String) {
        (format!("{}:{number}", self.keys), format!("value:{number}"))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SetGetResult {
    /// Time until each connection has answered a PING.
    pub connect_ns: u64,
    /// Time from then until the last pair ended.
    pub elapsed_ns: u64,
    pub pairs: u64,
    /// Keys that did not hold the value that was set.
    pub mismatched: u64,
}
