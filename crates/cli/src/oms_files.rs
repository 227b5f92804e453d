//! The files of an OMS: read as a whole with all mistakes reported, or as far as a command to a running OMS can.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tickpath_clock::utc_day;
use tickpath_market::{SymbolId, VenueId};
use tickpath_oms_runtime::calendar::Calendar;
use tickpath_oms_server::settings::{Settings, Users, list_instruments, take_calendar};
use tickpath_settings::{SettingsError, parse, read_text};

use tickpath_cli_terminal::args::CliUsageError;

/// Reads the whole file of an OMS, and the files that it names.
pub fn read(file: &Path) -> anyhow::Result<Settings> {
    Settings::read(file).map_err(|e| CliUsageError(mistakes_text(file, &e.list, &e, "oms")).into())
}

/// The parts of an OMS's file that a command to a running OMS may need. Mistakes elsewhere in the file do not matter.
#[derive(Debug, Clone, Default)]
pub struct PartialSettings {
    /// Path of the OMS's file.
    pub file: PathBuf,
    /// Name of the OMS; empty if it cannot be read, as are the paths below.
    pub name: String,
    pub journal: PathBuf,
    pub users_file: PathBuf,
    pub venues: Vec<(VenueId, String)>,
    unix: Option<PathBuf>,
    tcp: Option<SocketAddr>,
    /// Certificate, if the TCP address is encrypted.
    certificate: Option<PathBuf>,
    calendar: Option<Calendar>,
    pub instruments_file: PathBuf,
}

/// An instrument with the fields that a request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedInstrument {
    pub name: String,
    /// Number of the instrument.
    pub symbol: SymbolId,
    /// Venue of the instrument, if the OMS's file has that venue.
    pub venue: Option<VenueId>,
}

impl PartialSettings {
    /// Reads the file as far as possible. A missing part is an error only once it is needed.
    pub fn read(file: &Path) -> Self {
        let mut settings = Self { file: file.to_owned(), ..Self::default() };
        let Ok(text) = read_text(file) else { return settings };
        let path = |path: Option<PathBuf>| path.unwrap_or_default();
        // Mistakes in the file are reported by `missing_part`, where a part is missing.
        let _ = parse(&text, file, |top| {
            settings.name = top.text("name").unwrap_or_default();
            settings.journal = path(top.path("journal").and_then(|journal| std::path::absolute(journal).ok()));
            settings.users_file = path(top.path("users"));
            settings.instruments_file = path(top.path("instruments"));
            top.section("listen", |listen| (settings.unix, settings.tcp) = (listen.path("unix"), listen.parsed("tcp")));
            settings.certificate = top.section_if("tls", |tls| path(tls.path("certificate")));
            settings.calendar = top.section_if("day", take_calendar).flatten();
            let venues =
                top.sections("venue", |venue| Some((venue.number("number", 0..=u16::MAX)?, venue.text("name")?)));
            settings.venues = venues.into_iter().flatten().map(|(number, name)| (VenueId(number), name)).collect();
        });
        settings
    }

    /// Returns the trading day at this time, as 20261122: in the time zone of the calendar, or else in UTC.
    pub fn day(&self, utc_ns: u64) -> u32 {
        self.calendar.as_ref().map_or_else(|| utc_day(utc_ns), |calendar| calendar.today(utc_ns))
    }

    /// Returns the address of the OMS, as the file has it.
    pub fn url(&self) -> anyhow::Result<String> {
        Ok(match (&self.unix, self.tcp, &self.certificate) {
            (Some(path), ..) => format!("unix://{}", std::path::absolute(path)?.display()),
            (None, Some(address), Some(file)) if !file.as_os_str().is_empty() => {
                format!("tls://{address}?ca={}", std::path::absolute(file)?.display())
            }
            (None, Some(address), None) => format!("tcp://{address}"),
            (None, ..) => return Err(self.missing_part("the address of the OMS", "--oms URL").into()),
        })
    }

    /// Returns the folder of the journal; `instead` is the argument that replaces the file's entry.
    pub fn journal(&self, instead: &str) -> Result<PathBuf, CliUsageError> {
        match self.journal.as_os_str().is_empty() {
            false => Ok(self.journal.clone()),
            true => Err(self.missing_part("the folder of the journal", instead)),
        }
    }

    /// Returns the rows of the table of instruments that have a name and a number, and skips the others; none if there
    /// is no table.
    pub fn instruments(&self) -> Option<Vec<ListedInstrument>> {
        let listed = |(name, number, venue): (String, u16, Option<String>)| {
            let venue = venue.and_then(|venue| self.venue(&venue));
            ListedInstrument { name, symbol: SymbolId(number.into()), venue }
        };
        Some(list_instruments(&self.instruments_file)?.into_iter().map(listed).collect())
    }

    /// Returns the number of the venue with this name or number.
    pub fn venue(&self, cell: &str) -> Option<VenueId> {
        let is_meant = |(number, name): &&(VenueId, String)| name == cell || number.to_string() == cell;
        self.venues.iter().find(is_meant).map(|(number, _)| *number)
    }

    /// Returns the error for a missing part of the file: the part, the option that replaces it, and the mistakes in
    /// the file.
    pub fn missing_part(&self, what: &str, instead: &str) -> CliUsageError {
        let file = self.file.display();
        let why = match Settings::read_for_client(&self.file) {
            Err(e) => mistakes_text(&self.file, &e.list, &e, "oms"),
            Ok(_) => format!("{file} has no such entry"),
        };
        CliUsageError(format!("{what} is not known; give {instead}, or correct the file of the OMS: {why}"))
    }
}

/// Returns the text of the mistakes of a file and the files that it names; for a missing file the command that writes a
/// first one: `tickpath PROGRAM init`.
pub fn mistakes_text(file: &Path, mistakes: &[SettingsError], all: &impl Display, program: &str) -> String {
    let is_missing = |one: &SettingsError| matches!(one, SettingsError::Missing { file: missing } if missing == file);
    if !mistakes.iter().any(is_missing) {
        return all.to_string();
    }
    let remedy = format!("name one with --config, or write a first one with `tickpath {program} init`");
    format!("{}: there is no such file; {remedy}", file.display())
}

/// Returns the names of users by session.
pub fn session_owners(users: &Users) -> BTreeMap<u16, String> {
    users.list.iter().flat_map(|user| user.sessions.iter().map(|&session| (session, user.name.clone()))).collect()
}
