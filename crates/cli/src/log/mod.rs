//! `tickpath log`: looks into logs and journals, records topics, imports, exports and replays recordings, and carries
//! topics between buses.

pub mod bridge;
pub mod cat;
pub mod export;
pub mod import;
pub mod record;
mod remove;
pub mod replay;

use std::path::{Path, PathBuf};

use anyhow::Context;
use tickpath_bus::Gap;
use tickpath_log::{LogOpenError, LogPath, Next, ProcessId, Reader, ReaderStart, Registration};
use tickpath_oms_core::{Config, Core, RecordKind};

use crate::bench::measure::{finish, new_result, verdict};
use crate::command::LogCommand;
use tickpath_cli_terminal::args::OutputArgs;
use tickpath_cli_terminal::log_arguments::{parse_existing, parse_journal, parse_log};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{Printer, print_text};

pub fn run(command: &LogCommand) -> anyhow::Result<CliOutcome> {
    match command {
        LogCommand::Ls { log: None } => list(),
        LogCommand::Ls { log: Some(log) } => describe(&parse_existing(log)?),
        LogCommand::Rm { log } => remove::run(&parse_existing(log)?),
        LogCommand::Cat(args) => cat::run(args),
        LogCommand::Verify { log } => verify(&parse_existing(log)?),
        LogCommand::Analyse { dir, output } => return analyse(dir, output),
        LogCommand::Snapshot { dir } => snapshot(dir),
        LogCommand::Record(args) => record::run(args),
        LogCommand::Import(args) => return import::run(args),
        LogCommand::Export(args) => export::run(args),
        LogCommand::Replay(args) => replay::run(args),
        LogCommand::Bridge(args) => return bridge::run(args),
    }?;
    Ok(CliOutcome::Success)
}

fn list() -> anyhow::Result<()> {
    let topics = LogPath::all_in_shared_memory().context("cannot list shared memory")?;
    if topics.is_empty() {
        print_text("no topics in shared memory\n")?;
    }
    for topic in topics {
        let place = LogPath::shared_memory(&topic)?;
        // The topic may be gone by now, or belong to another user: the others are still listed.
        if let Err(error) = describe(&place) {
            print_text(&format!("{place}  {error}\n"))?;
        }
    }
    Ok(())
}

fn describe(place: &LogPath) -> anyhow::Result<()> {
    let log = Reader::open(place, ReaderStart::Now, Registration::Unregistered)?;
    let oldest = Reader::open(place, ReaderStart::Oldest, Registration::Unregistered)?;
    let writer = log.writer().map_or("no writer".to_owned(), |pid| ProcessId(pid).with_role("writer"));
    print_text(&format!("{place}  {}  {}..{}  {writer}\n", log.policy(), oldest.sequence(), log.sequence()))?;
    for reader in log.readers() {
        let behind = log.sequence().saturating_sub(reader.cursor);
        // The mandatory reader of a lane keeps its cursor while its process is away.
        let reader_name = if reader.away { "away".to_owned() } else { ProcessId(reader.pid).with_role("reader") };
        print_text(&format!("  {reader_name}  at {}  {behind} behind\n", reader.cursor))?;
    }
    Ok(())
}

fn verify(place: &LogPath) -> anyhow::Result<()> {
    let mut printer = Printer::default();
    let done = verify_all(place, &mut printer);
    printer.end(done)
}

fn verify_all(place: &LogPath, printer: &mut Printer) -> anyhow::Result<()> {
    let mut is_journal = false;
    // Ended days of a journal are logs of their own.
    let logs = tickpath_oms_runtime::journal::logs(place)?;
    for log in if logs.is_empty() { std::slice::from_ref(place) } else { &logs } {
        is_journal |= verify_log(log, printer)?;
    }
    if is_journal {
        let mut core = Core::new(Config { expected_orders: 0, key: 0 });
        let replayed = tickpath_oms_runtime::journal::replay(place, &mut core, |_, _| {})?;
        printer.print(&format!(
            "journal: {} inputs replayed to {} outputs, {}\n",
            replayed.inputs,
            replayed.outputs,
            match replayed.digests {
                0 => "no digests to compare".to_owned(),
                digests => format!("{digests} digests agree"),
            }
        ));
        for (path, next) in tickpath_oms_runtime::snapshot::list(place)? {
            let path = path.display();
            printer.print(&match next {
                Some(next) => format!("{path}: valid for all before record {next}\n"),
                None => format!("{path}: damaged, or made from other records; no OMS reads it. Remove it\n"),
            });
        }
    }
    Ok(())
}

/// Returns whether a folder holds a log that does not begin as a journal does.
fn is_other_log(dir: &Path) -> bool {
    let log = Reader::open(&LogPath::folder(dir), ReaderStart::Oldest, Registration::Unregistered);
    log.is_ok_and(
        |mut log| matches!(log.next(), Ok(Next::Message(message)) if message.kind != RecordKind::JournalStart.code()),
    )
}

/// Reads a log to its end; returns whether it begins as a journal does.
fn verify_log(place: &LogPath, printer: &mut Printer) -> anyhow::Result<bool> {
    let mut log = Reader::open(place, ReaderStart::Oldest, Registration::Unregistered)?;
    let (mut messages, mut bytes, mut gaps, mut is_journal) = (0u64, 0u64, 0u64, false);
    loop {
        match log.next()? {
            Next::Message(message) if Gap::decode(message.kind, message.payload).is_some() => gaps += 1,
            Next::Message(message) => {
                is_journal |= messages == 0 && message.kind == RecordKind::JournalStart.code();
                messages += 1;
                bytes += message.payload.len() as u64;
            }
            Next::Gap(_) => gaps += 1,
            Next::Empty => break,
        }
    }
    log.check_end()?;
    let lost = match gaps {
        0 => String::new(),
        gaps => format!(", {gaps} gaps in which messages were lost: see tickpath log cat"),
    };
    printer.print(&format!("{place}: {messages} messages, {bytes} bytes, all whole{lost}\n"));
    Ok(is_journal)
}

fn snapshot(dir: &Path) -> anyhow::Result<()> {
    let made = tickpath_oms_runtime::snapshot::make(&parse_journal(dir)?)?;
    let (file, next) = (made.path.display(), made.next);
    print_text(&match made.replayed {
        0 => format!("{file}: unchanged, because the journal has no record from {next} on\n"),
        inputs => {
            format!("{file}: all before record {next}, {} bytes; {inputs} inputs were replayed for it\n", made.bytes)
        }
    })
}

fn analyse(dir: &Path, output: &OutputArgs) -> anyhow::Result<CliOutcome> {
    let dir: PathBuf = parse_log(&dir.to_string_lossy())?.dir().to_owned();
    if !dir.is_dir() {
        return Err(LogOpenError::NotFound(LogPath::folder(dir)).into());
    }
    let runs = tickpath_lab_path::analyse::runs(&dir).map_err(|error| match is_other_log(&dir) {
        true => anyhow::anyhow!("{}: this log is no order journal; print it with `tickpath log cat`", dir.display()),
        false => error.into(),
    })?;
    let mut result = new_result("orders");
    result.host = tickpath_lab_harness::host::facts(&tickpath_clock::HostClock::get()?);
    result.runs = runs;
    finish(&result, output)?;
    Ok(verdict(&result))
}
