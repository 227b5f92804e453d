//! `tickpath log`: looks into logs and journals, records topics, replays recordings, and carries topics between buses.

pub mod bridge;
pub mod cat;
mod fields;
pub mod record;
pub mod replay;
mod watch;

pub use fields::word;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tickpath_bus::Policy;
use tickpath_log::{Next, OpenError, Place, PlaceError, Reader, Registration, Start};
use tickpath_orders::{Config, Core, RecordKind};
use tickpath_relay::{Opening, RelayError, read_gap};
use tickpath_result::rfc3339;

use crate::Outcome;
use crate::args::{LogCommand, Output, Usage};
use crate::bench::{finish, new_result};
use crate::report::say;

/// How the topic is opened that a command publishes.
#[derive(Debug, Clone, Args)]
pub struct OpeningArgs {
    /// What a full topic does: overwrite, fail, keep. The transport's usual way if not given
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub policy: Option<Policy>,
    /// Bytes that a topic on shm:// or file:// holds; a message can have an eighth of it, all of it with 'keep'
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(32_768..=1 << 30))]
    pub capacity: u64,
}

impl OpeningArgs {
    fn opening(&self) -> Opening {
        Opening { policy: self.policy, capacity_bytes: self.capacity as usize }
    }
}

pub fn run(command: &LogCommand) -> anyhow::Result<Outcome> {
    match command {
        LogCommand::Ls { log: None } => list(),
        LogCommand::Ls { log: Some(log) } => describe(&place(log)?),
        LogCommand::Cat(args) => cat::run(args),
        LogCommand::Verify { log } => verify(&place(log)?),
        LogCommand::Analyse { dir, output } => analyse(dir, output),
        LogCommand::Snapshot { dir } => snapshot(dir),
        LogCommand::Record(args) => record::run(args),
        LogCommand::Replay(args) => replay::run(args),
        LogCommand::Bridge(args) => return bridge::run(args),
    }?;
    Ok(Outcome::Good)
}

/// A log by its URL, or by its folder.
fn place(log: &str) -> anyhow::Result<Place> {
    if log.contains("://") {
        return Ok(log.parse().map_err(|error: PlaceError| Usage(error.to_string()))?);
    }
    let dir = std::path::absolute(log).with_context(|| format!("'{log}' is no path"))?;
    if dir.is_file() {
        anyhow::bail!("'{log}' cannot be used: it is a file; name the folder that a log lies in");
    }
    Ok(Place::folder(dir))
}

/// A moment, nanoseconds since the Unix epoch, as people read it and to the last digit.
fn moment(utc_ns: u64) -> String {
    let seconds = rfc3339(utc_ns);
    format!("{}.{:09}Z", seconds.trim_end_matches('Z'), utc_ns % 1_000_000_000)
}

/// With which message a subscription begins.
fn start(text: &str) -> Result<tickpath_bus::Start, String> {
    match text {
        "now" => Ok(tickpath_bus::Start::Now),
        "oldest" => Ok(tickpath_bus::Start::Oldest),
        number => match number.parse() {
            Ok(sequence) => Ok(tickpath_bus::Start::Sequence(sequence)),
            Err(_) => Err("use now, oldest or a sequence number".to_owned()),
        },
    }
}

fn policy(text: &str) -> Result<Policy, String> {
    let found = Policy::ALL.into_iter().find(|policy| policy.name() == text);
    found.ok_or_else(|| "use overwrite, fail or keep".to_owned())
}

/// A call that makes no sense is bad usage.
fn refused(error: RelayError) -> anyhow::Error {
    if error.is_usage() { Usage(error.to_string()).into() } else { error.into() }
}

fn list() -> anyhow::Result<()> {
    let topics = Place::all_in_shared_memory().context("cannot list shared memory")?;
    if topics.is_empty() {
        say("no topics in shared memory\n");
    }
    for topic in topics {
        let place = Place::shared_memory(&topic)?;
        // It may have gone since, or belong to somebody else: the others are still worth listing.
        if let Err(error) = describe(&place) {
            say(&format!("{place}  {error}\n"));
        }
    }
    Ok(())
}

fn describe(place: &Place) -> anyhow::Result<()> {
    let log = Reader::open(place, Start::Now, Registration::Unregistered)?;
    let oldest = Reader::open(place, Start::Oldest, Registration::Unregistered)?;
    let writer = log.writer().map_or("no writer".to_owned(), |pid| format!("writer {pid}"));
    say(&format!("{place}  {}  {}..{}  {writer}\n", log.policy(), oldest.sequence(), log.sequence()));
    for reader in log.readers() {
        let behind = log.sequence().saturating_sub(reader.cursor);
        // The one reader that a lane names keeps its place while it is away.
        let who = if reader.away { "away".to_owned() } else { format!("reader {}", reader.pid) };
        say(&format!("  {who}  at {}  {behind} behind\n", reader.cursor));
    }
    Ok(())
}

fn verify(place: &Place) -> anyhow::Result<()> {
    let mut is_journal = false;
    // Days of a journal that have ended are logs of their own.
    let logs = tickpath_oms::journal::logs(place)?;
    for log in if logs.is_empty() { std::slice::from_ref(place) } else { &logs } {
        is_journal |= verify_log(log)?;
    }
    if is_journal {
        let mut core = Core::new(Config { expected_orders: 0, key: 0 });
        let replayed = tickpath_oms::journal::replay(place, &mut core, |_, _| {})?;
        say(&format!(
            "journal: {} inputs replayed to {} outputs, {} digests agree\n",
            replayed.inputs, replayed.outputs, replayed.digests
        ));
        for (path, next) in tickpath_oms::snapshot::look(place)? {
            let path = path.display();
            match next {
                Some(next) => say(&format!("{path}: good for all before record {next}\n")),
                None => say(&format!("{path}: damaged, or made of other records; no start uses it. Remove it\n")),
            }
        }
    }
    Ok(())
}

/// Reads one log; whether it begins as a journal does.
fn verify_log(place: &Place) -> anyhow::Result<bool> {
    let mut log = Reader::open(place, Start::Oldest, Registration::Unregistered)?;
    let (mut messages, mut bytes, mut gaps, mut is_journal) = (0u64, 0u64, 0u64, false);
    loop {
        match log.next()? {
            Next::Message(message) if read_gap(message.kind, message.payload).is_some() => gaps += 1,
            Next::Message(message) => {
                is_journal |= messages == 0 && message.kind == RecordKind::Start.code();
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
    say(&format!("{place}: {messages} messages, {bytes} bytes, all whole{lost}\n"));
    Ok(is_journal)
}

fn snapshot(dir: &Path) -> anyhow::Result<()> {
    let made = tickpath_oms::snapshot::make(&journal(dir)?)?;
    if made.replayed == 0 {
        say(&format!("{}: nothing new since record {}; it stays as it is\n", made.path.display(), made.next));
        return Ok(());
    }
    say(&format!(
        "{}: all before record {}, {} bytes; {} inputs were replayed for it\n",
        made.path.display(),
        made.next,
        made.bytes,
        made.replayed
    ));
    Ok(())
}

/// The journal in a folder, which `log ls` writes as file:///PATH.
pub fn journal(dir: &Path) -> anyhow::Result<Place> {
    let place = place(&dir.to_string_lossy())?;
    if tickpath_oms::journal::logs(&place)?.is_empty() {
        return Err(OpenError::NotFound(place).into());
    }
    Ok(place)
}

fn analyse(dir: &Path, output: &Output) -> anyhow::Result<()> {
    let dir: PathBuf = place(&dir.to_string_lossy())?.dir().to_owned();
    if !dir.is_dir() {
        return Err(OpenError::NotFound(Place::folder(dir)).into());
    }
    let (runs, _) = tickpath_lab::analyse::runs(&dir)?;
    let mut result = new_result("orders");
    result.host = tickpath_harness::host::facts(&tickpath_clock::HostClock::get()?);
    result.runs = runs;
    finish(&result, output)
}
