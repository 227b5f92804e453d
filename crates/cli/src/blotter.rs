//! `tickpath blotter`: orders, fills and profit of a day. All but the files and the terminal is in the crate `blotter`.

use std::collections::BTreeMap;
use std::path::Path;

use tickpath_oms_blotter::BlotterError;
use tickpath_oms_blotter::command::{self, BlotterArgs};
use tickpath_oms_server::settings::Users;

use crate::args::CliUsageError;
use crate::oms_files::PartialSettings;
use crate::outcome::CliOutcome;
use crate::print::{print_note, print_text};

pub fn run(args: &BlotterArgs) -> anyhow::Result<CliOutcome> {
    let (dir, users) = match &args.dir {
        Some(dir) => (dir.clone(), BTreeMap::new()),
        None => {
            let known = PartialSettings::read(&args.config);
            (known.journal()?, users(&known.users_file))
        }
    };
    let journal = crate::log::log_arguments::parse_journal(&dir)?;
    let mut warn = |text: &str| print_note(&format!("tickpath: {text}"));
    match command::run(args, &journal, users, &mut |text| print_text(text).map_err(Into::into), &mut warn) {
        Ok(()) => Ok(CliOutcome::Success),
        Err(error) if error.is_usage() => Err(CliUsageError(error.to_string()).into()),
        Err(BlotterError::Output(error)) => Err(anyhow::anyhow!(error)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the names of users by session; empty if the file cannot be read.
fn users(file: &Path) -> BTreeMap<u16, String> {
    let users = Users::read(file).map(|users| users.list).unwrap_or_else(|error| {
        print_note(&format!("tickpath: {error}; the blotter names no users"));
        Vec::new()
    });
    users.iter().flat_map(|user| user.sessions.iter().map(|&session| (session, user.name.clone()))).collect()
}
