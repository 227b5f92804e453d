//! Lookup of the instrument that a command names: in the running OMS, not in a file beside the command.
//!
//! A table that was edited but not reloaded, or that belongs to another host, may give the name to another number. So
//! the OMS lists its instruments after the logon; the table decides only if the OMS is too old to list them.

use tickpath_market::{SymbolId, VenueId};
use tickpath_oms_client::Client;

use crate::oms_files::{ListedInstrument, PartialSettings};
use tickpath_cli_terminal::args::CliUsageError;

/// Max names that an error message lists.
const MAX_NAMES: usize = 20;

pub struct Instruments<'a> {
    settings: &'a PartialSettings,
    /// The instruments; none if neither the OMS nor a table lists any.
    list: Option<Vec<ListedInstrument>>,
    /// Set if the list comes from the OMS.
    is_live: bool,
}

impl<'a> Instruments<'a> {
    /// Requests the list from the OMS, and waits at most `wait` seconds for it.
    pub fn request(client: &mut Client, settings: &'a PartialSettings, wait: u32) -> anyhow::Result<Self> {
        let rows = client.instruments(wait.saturating_mul(1000))?;
        let is_live = rows.is_some();
        let listed = rows.map(|rows| {
            let row = |row: tickpath_oms_protocol::InstrumentRow| ListedInstrument {
                name: row.name().to_owned(),
                symbol: SymbolId(row.symbol),
                venue: Some(VenueId(row.venue)),
            };
            rows.into_iter().map(row).collect()
        });
        Ok(Self { settings, list: listed.or_else(|| settings.instruments()), is_live })
    }

    /// Returns the instruments of the table, for calls that send nothing to an OMS.
    pub fn from_table(settings: &'a PartialSettings) -> Self {
        Self { settings, list: settings.instruments(), is_live: false }
    }

    pub fn name(&self, symbol: SymbolId) -> Option<String> {
        self.list.iter().flatten().find(|listed| listed.symbol == symbol).map(|listed| listed.name.clone())
    }

    /// Returns the number of the instrument with this name or number, as [`Self::find`].
    pub fn number(&self, name: &str) -> Result<SymbolId, CliUsageError> {
        self.find(name).map(|listed| listed.symbol)
    }

    /// Returns the instrument with this name or number: if any name consists of digits alone, only by name.
    pub fn find(&self, name: &str) -> Result<ListedInstrument, CliUsageError> {
        let all = || self.list.iter().flatten();
        if let Some(found) = all().find(|listed| listed.name == name) {
            return Ok(found.clone());
        }
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let has_such_names = all().any(|listed| is_number(&listed.name));
        if let Some(number) = name.parse::<u16>().ok().filter(|_| !has_such_names) {
            let symbol = SymbolId(number.into());
            let venue = all().find(|listed| listed.symbol == symbol).and_then(|listed| listed.venue);
            return Ok(ListedInstrument { name: name.to_owned(), symbol, venue });
        }
        let Some(list) = &self.list else {
            let instead = "the instrument's number in place of its name";
            return Err(self.settings.missing_part(&format!("the number of '{name}'"), instead));
        };
        let names: Vec<&str> = list.iter().take(MAX_NAMES).map(|listed| &*listed.name).collect();
        let more = list.len() - names.len();
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (of, remedy) = match self.is_live {
            true => ("the running OMS".to_owned(), ", or load a table that has it with `tickpath oms reload`"),
            false => (self.settings.instruments_file.display().to_string(), ""),
        };
        let names = names.join(", ");
        Err(CliUsageError(format!("'{name}' is no instrument of {of}; use one of {names}{rest}{remedy}")))
    }
}
