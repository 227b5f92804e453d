//! The files of an OMS, read, or refused in a sentence.

use std::path::Path;

use tickpath_server::settings::{Faults, Settings};
use tickpath_settings::SettingsError;

use crate::args::Usage;

/// The whole file of an OMS, with the files that it names.
pub fn read(file: &Path) -> anyhow::Result<Settings> {
    Settings::read(file).map_err(|faults| refuse(file, &faults)).map_err(Into::into)
}

/// What a client needs of the file: where the OMS listens, and what it trades.
pub fn read_for_client(file: &Path) -> Result<Settings, Usage> {
    Settings::read_for_client(file).map_err(|faults| refuse(file, &faults))
}

fn refuse(file: &Path, faults: &Faults) -> Usage {
    let is_missing =
        |fault: &SettingsError| matches!(fault, SettingsError::Missing { file: missing } if missing == file);
    let no_file = faults.list.iter().any(is_missing);
    Usage(if no_file { missing(file) } else { faults.to_string() })
}

/// What is said of a file that is not there.
pub fn missing(file: &Path) -> String {
    format!(
        "{}: there is no such file; name one by --config, or have `tickpath oms init` write a first one",
        file.display()
    )
}
