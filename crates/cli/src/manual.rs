//! Man pages and shell completions, made from the same definitions as the help.

use std::path::PathBuf;

use clap::Command;

use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::print_text;

#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Prints the completion script of a shell.
pub fn print_completions(args: &CompletionsArgs, mut command: Command) -> anyhow::Result<CliOutcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tickpath", &mut script);
    print_text(&String::from_utf8(script)?)?;
    Ok(CliOutcome::Success)
}

#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Folder of the pages, created if it does not exist
    folder: PathBuf,
}

/// Writes one page a command, and prints how many.
pub fn write_man_pages(args: &ManArgs, command: Command) -> anyhow::Result<CliOutcome> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder)).map_err(|error| {
        anyhow::anyhow!("cannot write man pages to {}: {error}; name a folder that can be written", folder.display())
    })?;
    let pages = std::fs::read_dir(folder)?.filter_map(Result::ok);
    let written = pages.filter(|page| page.path().extension().is_some_and(|section| section == "1")).count();
    print_text(&format!("{written} man pages are in {}\n", folder.display()))?;
    Ok(CliOutcome::Success)
}
