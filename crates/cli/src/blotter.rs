//! `tickpath blotter`: orders, fills and profit of a day. All but the files and the terminal is in the crate `blotter`.

use std::collections::BTreeMap;
use std::path::Path;

use tickpath_oms_blotter::BlotterError;
use tickpath_oms_blotter::command::{self, BlotterArgs};
use tickpath_oms_runtime::calendar::is_date;
use tickpath_oms_server::settings::Users;

use crate::oms_files::{PartialSettings, session_owners};
use tickpath_cli_terminal::args::{CliUsageError, bail_usage};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{print_note, print_text};

pub fn run(args: &BlotterArgs) -> anyhow::Result<CliOutcome> {
    if let Some(day) = args.day.filter(|&day| !is_date(day)) {
        bail_usage!("--day {day} is no day; write the day like 20261122");
    }
    let (dir, users) = match &args.dir {
        Some(dir) => (dir.clone(), BTreeMap::new()),
        None => {
            let settings = PartialSettings::read(&args.config);
            (settings.journal("it as DIR")?, read_owners(&settings.users_file))
        }
    };
    let journal = tickpath_cli_terminal::log_arguments::parse_journal(&dir)?;
    let mut warn = |text: &str| print_note(&format!("tickpath: {text}"));
    match command::run(args, &journal, users, &mut |text| print_text(text).map_err(Into::into), &mut warn) {
        Ok(()) => Ok(CliOutcome::Success),
        Err(error) if error.is_usage() => Err(CliUsageError(error.to_string()).into()),
        Err(BlotterError::Output(error)) => Err(anyhow::anyhow!(error)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the names of users by session; none if the file cannot be read.
fn read_owners(file: &Path) -> BTreeMap<u16, String> {
    Users::read(file).map(|users| session_owners(&users)).unwrap_or_else(|error| {
        print_note(&format!("tickpath: {error}; the blotter prints sessions without the names of their users"));
        BTreeMap::new()
    })
}
