//! Parsing of the log or topic that a command names, and opening it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tickpath_bus::{Policy, within};
use tickpath_log::{OpenError, Place, PlaceError, Reader, Registration, Start};
use tickpath_relay::{Opening, RelayError};

use crate::args::{Usage, policy, seconds};

/// Parses the path of a folder, or a `file://` URL.
pub fn folder(text: &str) -> Result<PathBuf, String> {
    match text.split_once("://") {
        None => Ok(PathBuf::from(text)),
        Some(("file", path)) if path.starts_with('/') => Ok(PathBuf::from(path)),
        Some(_) => Err("use the path of a folder, or file:///FOLDER".to_owned()),
    }
}

/// How the topic is opened that a command publishes.
#[derive(Debug, Clone, Args)]
pub struct OpeningArgs {
    /// Policy of a full topic: overwrite, fail, keep. If not given, keep on redis://…?streams and kafka://, else overwrite
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub policy: Option<Policy>,
    /// Bytes that a topic holds before it is full, or lets old messages go; a message can have an eighth of it, all of it
    /// with 'keep'
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(32_768..=1 << 30))]
    pub capacity: u64,
    /// Seconds, 0.1 to 86400, after which a topic that overwrites lets a message go, where the transport can:
    /// redis://…?streams, nats://…?jetstream, kafka://
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub max_age: Option<f64>,
}

impl OpeningArgs {
    /// Returns the settings in the form of the relay.
    pub fn opening(&self) -> Opening {
        let max_age_ns = self.max_age.map(|seconds| (seconds * 1e9) as u64);
        Opening { policy: self.policy, capacity_bytes: self.capacity as usize, max_age_ns }
    }
}

/// Returns the place of a log by its URL, or by its folder.
pub fn place(log: &str) -> anyhow::Result<Place> {
    let place = target(log)?;
    if !log.contains("://") && place.dir().is_file() {
        anyhow::bail!(
            "'{log}' cannot be used: it is a file; name the folder that a log lies in, or make a recording of a file of market \
             data first: tickpath log import FILE FOLDER"
        );
    }
    Ok(place)
}

/// Returns the place of a log that is to be written: whatever is in the way there is reported when it is made.
pub fn target(log: &str) -> anyhow::Result<Place> {
    if log.contains("://") {
        return Ok(log.parse().map_err(|error: PlaceError| Usage(error.to_string()))?);
    }
    let dir = std::path::absolute(log).with_context(|| format!("'{log}' is no path"))?;
    Ok(Place::folder(dir))
}

/// Returns the place of a log that must exist already.
pub fn existing(log: &str) -> anyhow::Result<Place> {
    let place = place(log)?;
    let opened = Reader::open(&place, Start::Now, Registration::Unregistered);
    if !matches!(opened, Err(OpenError::NotFound(_))) || !tickpath_oms_runtime::journal::logs(&place)?.is_empty() {
        return Ok(place);
    }
    match others(&place) {
        Some(topics) => anyhow::bail!("'{log}' is no log itself; name one of those that lie there: {topics}"),
        None if place.dir().is_dir() => {
            anyhow::bail!("'{log}' is a folder in which no log lies; name the folder of a log or of a journal")
        }
        None => Ok(place),
    }
}

/// Returns the logs in a folder, or those whose names begin with a prefix, as text; none if there are none.
fn others(place: &Place) -> Option<String> {
    const MOST: usize = 8;
    let found = within(place);
    let told: Vec<String> = found.iter().take(MOST).map(ToString::to_string).collect();
    let more = if found.len() > MOST { " and more" } else { "" };
    (!told.is_empty()).then(|| told.join(", ") + more)
}

/// Returns the message that a command prints once while it waits for a log.
pub fn awaited(place: &Place) -> String {
    let others = others(place).map(|topics| format!("; what lies there now: {topics}"));
    format!("{place} is not there yet; waiting for its first writer{}", others.unwrap_or_default())
}

/// Parses the start of a subscription: now, oldest or a sequence number.
pub fn start(text: &str) -> Result<tickpath_bus::Start, String> {
    match text {
        "now" => Ok(tickpath_bus::Start::Now),
        "oldest" => Ok(tickpath_bus::Start::Oldest),
        number => match number.parse() {
            Ok(sequence) => Ok(tickpath_bus::Start::Sequence(sequence)),
            Err(_) => Err("use now, oldest or a sequence number".to_owned()),
        },
    }
}

/// Turns an error about the command's arguments into bad usage.
pub fn refused(error: RelayError) -> anyhow::Error {
    if error.is_usage() { Usage(error.to_string()).into() } else { error.into() }
}

/// Returns the place of the journal in a folder; `log ls` prints it as file:///PATH.
pub fn journal(dir: &Path) -> anyhow::Result<Place> {
    let place = place(&dir.to_string_lossy())?;
    if tickpath_oms_runtime::journal::logs(&place)?.is_empty() {
        return Err(OpenError::NotFound(place).into());
    }
    Ok(place)
}
