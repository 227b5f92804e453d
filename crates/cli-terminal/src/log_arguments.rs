//! Parsing of the log or topic that a command names, and opening it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tickpath_bus::{Policy, StartPosition, list_logs};
use tickpath_log::{LogOpenError, LogPath, LogPathError, Reader, ReaderStart, Registration};
use tickpath_relay::{RelayError, TargetConfig};

use crate::args::{CliUsageError, policy, seconds};

/// Treatment of messages of other programs, for the long help of `record` and `bridge`.
pub const FOREIGN_MESSAGES: &str = "\
Messages of Tickpath's publishers keep their stamp and kind. Messages of other programs are taken whole, with the \
kind of --foreign-kind and their time of arrival: an entry of a Redis stream as a JSON object of its fields, text; a \
message of NATS without headers. With ?jetstream a topic NAME is the stream tickpath-topic-NAME, which its first \
publisher makes.";

/// Parses the path of a folder, or a `file://` URL.
pub fn folder(text: &str) -> Result<PathBuf, String> {
    match text.split_once("://") {
        None => Ok(PathBuf::from(text)),
        Some(("file", path)) if path.starts_with('/') => Ok(PathBuf::from(path)),
        Some(_) => Err("use the path of a folder, or file:///FOLDER".to_owned()),
    }
}

/// Configuration of the topic that a command publishes.
#[derive(Debug, Clone, Args)]
pub struct OpeningArgs {
    /// Policy of a full topic: overwrite, fail or keep; default: keep on redis://…?streams and kafka://, else overwrite
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub policy: Option<Policy>,
    /// Capacity of the topic in bytes, at which it is full or drops old messages; a message can have an eighth of it,
    /// all of it with 'keep'
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(32_768..=1 << 30))]
    pub capacity: u64,
    /// Max age of a message in a topic that overwrites, in seconds, 0.1 to 86400, on the transports redis://…?streams,
    /// nats://…?jetstream and kafka://
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub max_age: Option<f64>,
}

impl OpeningArgs {
    /// Returns the settings in the form of the relay.
    pub fn opening(&self) -> TargetConfig {
        let max_age_ns = self.max_age.map(|seconds| (seconds * 1e9) as u64);
        TargetConfig { policy: self.policy, capacity_bytes: self.capacity as usize, max_age_ns }
    }
}

/// Returns the place of a log by its URL, or by its folder.
pub fn parse_log(log: &str) -> anyhow::Result<LogPath> {
    let place = parse_target(log)?;
    if !log.contains("://") && place.dir().is_file() {
        anyhow::bail!(
            "'{log}' is a file; name the folder of a log, or import a file of market data first: tickpath log import \
             FILE FOLDER"
        );
    }
    Ok(place)
}

/// Returns the place of a log that is to be written; the log's creation reports a file that is in the way.
pub fn parse_target(log: &str) -> anyhow::Result<LogPath> {
    if log.contains("://") {
        return Ok(log.parse().map_err(|error: LogPathError| {
            CliUsageError(match error {
                LogPathError::Scheme(_) => format!("{error}; write one of these, or a folder"),
                _ => error.to_string(),
            })
        })?);
    }
    let dir = std::path::absolute(log).with_context(|| format!("'{log}' is no path"))?;
    Ok(LogPath::folder(dir))
}

/// Returns the place of a log that must exist already.
pub fn parse_existing(log: &str) -> anyhow::Result<LogPath> {
    let place = parse_log(log)?;
    let opened = Reader::open(&place, ReaderStart::Now, Registration::Unregistered);
    if !matches!(opened, Err(LogOpenError::NotFound(_))) || !tickpath_oms_journal::journal::logs(&place)?.is_empty() {
        return Ok(place);
    }
    match list_nearby(&place) {
        Some(topics) => anyhow::bail!("'{log}' is no log; name one of the logs in that place: {topics}"),
        None if place.dir().is_dir() => {
            anyhow::bail!("'{log}' is a folder without a log; name the folder of a log or of a journal")
        }
        None => Ok(place),
    }
}

/// Returns the logs in a folder, or those whose names begin with a prefix, as text; none if there are none.
fn list_nearby(place: &LogPath) -> Option<String> {
    const MAX_LISTED: usize = 8;
    let found = list_logs(place);
    let names: Vec<String> = found.iter().take(MAX_LISTED).map(ToString::to_string).collect();
    let more = if found.len() > MAX_LISTED { " and more" } else { "" };
    (!names.is_empty()).then(|| names.join(", ") + more)
}

/// Returns the message that a command prints once while it waits for a log.
pub fn waiting_note(place: &LogPath) -> String {
    let others = list_nearby(place).map(|topics| format!("; logs there now: {topics}"));
    format!("{place} does not exist yet; waiting for its first writer{}", others.unwrap_or_default())
}

/// Parses the start of a subscription: now, oldest or a sequence number.
pub fn start(text: &str) -> Result<StartPosition, String> {
    match text {
        "now" => Ok(StartPosition::Now),
        "oldest" => Ok(StartPosition::Oldest),
        _ => text.parse().map(StartPosition::Sequence).map_err(|_| "use now, oldest or a sequence number".to_owned()),
    }
}

/// Turns an error about the command's arguments into bad usage.
pub fn as_usage_error(error: RelayError) -> anyhow::Error {
    if error.is_usage() { CliUsageError(error.to_string()).into() } else { error.into() }
}

/// Returns the place of the journal in a folder; `log ls` prints it as file:///PATH.
pub fn parse_journal(dir: &Path) -> anyhow::Result<LogPath> {
    let place = parse_log(&dir.to_string_lossy())?;
    if tickpath_oms_journal::journal::logs(&place)?.is_empty() {
        return Err(LogOpenError::NotFound(place).into());
    }
    Ok(place)
}
