//! The mistakes in the configuration files, file by file.

use std::fmt;
use std::path::Path;

use tickpath_settings::SettingsError;

/// Errors of the configuration files, file by file.
#[derive(Debug)]
pub struct ConfigErrors {
    /// Error of each file that has mistakes or cannot be read.
    pub list: Vec<SettingsError>,
}

impl ConfigErrors {
    pub(super) fn read_if_named<T: Default>(
        &mut self,
        file: &Path,
        read: impl FnOnce(&Path) -> Result<T, SettingsError>,
    ) -> T {
        if file.as_os_str().is_empty() { T::default() } else { self.collect(read(file)) }
    }

    pub(super) fn collect<T: Default>(&mut self, read: Result<T, SettingsError>) -> T {
        read.map_err(|fault| self.list.push(fault)).unwrap_or_default()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.list.iter().map(count).sum();
        let (noun, which) = if count == 1 { ("mistake", "it") } else { ("mistakes", "them") };
        write!(f, "{count} {noun}; correct {which}; until then the OMS uses none of these files")?;
        self.list.iter().try_for_each(|fault| write!(f, "\n{fault}"))
    }
}

impl std::error::Error for ConfigErrors {}

fn count(fault: &SettingsError) -> usize {
    match fault {
        SettingsError::Invalid(mistakes) => mistakes.list.len(),
        SettingsError::Missing { .. } | SettingsError::Unreadable { .. } => 1,
    }
}
