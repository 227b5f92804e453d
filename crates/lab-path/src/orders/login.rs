//! Logging a client in to an OMS, and reading its reports.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_oms_client::{Client, Config, Since};

use super::route::receive_socket;
use tickpath_lab_harness::LabError;

/// Max time without reports; after it none will arrive.
pub(super) const REPORT_TIMEOUT_NS: i64 = 30_000_000_000;

/// The OMS to log in to, and the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchLogin {
    /// `unix:///PATH` or `tcp://HOST:PORT`.
    pub url: String,
    /// The user.
    pub user: String,
    /// The file whose first line is the password.
    pub password_file: PathBuf,
    /// The session's number; any free session if there is none.
    pub session: Option<u16>,
}

/// Logs in once, without reconnecting: a reconnect would hide the loss of a connection.
pub(crate) fn log_in(login: &BenchLogin, since: Since) -> Result<Box<Client>, LabError> {
    let BenchLogin { url, user, password_file, session } = login;
    let text = std::fs::read_to_string(password_file).map_err(|e| LabError::file(password_file, e))?;
    let password = text.lines().next().unwrap_or_default();
    let config =
        Config { session: *session, since, reconnect: false, ..Config::new(url.as_str(), user.as_str(), password) };
    Client::connect(config).map(Box::new).map_err(|e| LabError::Failed(e.to_string()))
}

/// Reads once; returns the number of reports.
pub(super) fn receive_reports(client: &mut Client) -> Result<u64, LabError> {
    receive_socket(client, |_, _| {}).map(|(received, _)| received as u64)
}

/// Returns the number of reports that a client gets before it is live.
pub(super) fn replayed_reports(client: &Client) -> u64 {
    client.welcome().live_report.saturating_sub(client.welcome().next_report)
}
