//! Which instrument a command names: as the running OMS has it, not as a file beside the command says.
//!
//! A table that was edited and not taken by the OMS, or that is another host's, may give the name to another number. So
//! the OMS lists its instruments after the logon; only one that is too old to do so leaves the table to decide.

use tickpath_client::Client;
use tickpath_market::{Symbol, SymbolId, VenueId};

use crate::args::Usage;
use crate::desk::{Known, Listed};

/// Names that a refusal lists.
const MAX_NAMES: usize = 20;

/// The instruments of an OMS.
pub struct Instruments<'a> {
    known: &'a Known,
    /// None if neither the OMS nor a table lists any.
    list: Option<Vec<Listed>>,
    /// Whether the OMS has listed them.
    is_live: bool,
}

impl<'a> Instruments<'a> {
    /// Asks the OMS, and waits for its answer so many seconds at most.
    pub fn of(client: &mut Client, known: &'a Known, wait: u32) -> anyhow::Result<Self> {
        let rows = client.instruments(wait.saturating_mul(1000))?;
        let is_live = rows.is_some();
        let listed = rows.map(|rows| {
            let row = |row: tickpath_session::InstrumentRow| Listed {
                name: Symbol(row.name).as_str().to_owned(),
                symbol: SymbolId(row.symbol),
                venue: Some(VenueId(row.venue)),
            };
            rows.into_iter().map(row).collect()
        });
        Ok(Self { known, list: listed.or_else(|| known.instruments()), is_live })
    }

    /// The instruments of the table, where nothing is sent to an OMS.
    pub fn of_table(known: &'a Known) -> Self {
        Self { known, list: known.instruments(), is_live: false }
    }

    /// Returns the name of an instrument.
    pub fn name(&self, symbol: SymbolId) -> Option<String> {
        self.list.iter().flatten().find(|listed| listed.symbol == symbol).map(|listed| listed.name.clone())
    }

    /// Returns the instrument with this name, or with this number: where a name is digits alone, only by name.
    pub fn find(&self, name: &str) -> Result<Listed, Usage> {
        let all = || self.list.iter().flatten();
        if let Some(found) = all().find(|listed| listed.name == name) {
            return Ok(found.clone());
        }
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let has_such_names = all().any(|listed| is_number(&listed.name));
        if let Some(number) = name.parse::<u16>().ok().filter(|_| !has_such_names) {
            let symbol = SymbolId(number.into());
            let venue = all().find(|listed| listed.symbol == symbol).and_then(|listed| listed.venue);
            return Ok(Listed { name: name.to_owned(), symbol, venue });
        }
        let Some(list) = &self.list else {
            let instead = "the instrument's number in place of its name";
            return Err(self.known.lacks(&format!("the number of '{name}'"), instead));
        };
        let names: Vec<&str> = list.iter().take(MAX_NAMES).map(|listed| &*listed.name).collect();
        let more = list.len() - names.len();
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (of, remedy) = match self.is_live {
            true => ("the running OMS".to_owned(), ", or `tickpath oms reload` a table that has it"),
            false => (self.known.instruments_file.display().to_string(), ""),
        };
        let names = names.join(", ");
        Err(Usage(format!("'{name}' is no instrument of {of}; use one of {names}{rest}{remedy}")))
    }
}
