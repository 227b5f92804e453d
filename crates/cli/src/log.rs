//! `tickpath log`: looks into logs and journals.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tickpath_log::{Message, Next, OpenError, Place, Reader, Registration, Start};
use tickpath_market::{CancelOrder, ExecutionReport, Kind, NewOrder, OrderDenied, ReplaceOrder, TopOfBook, Trade};
use tickpath_orders::{Config, Core, Input, RecordKind};
use zerocopy::FromBytes;

use crate::Outcome;
use crate::args::{LogCommand, Output};
use crate::bench::{finish, new_result};
use crate::report::say;

/// How long a following `cat` waits before it looks again.
const LOOK_NS: u64 = 10_000_000;

pub fn run(command: &LogCommand) -> anyhow::Result<Outcome> {
    match command {
        LogCommand::Ls { log: None } => list(),
        LogCommand::Ls { log: Some(log) } => describe(&place(log)?),
        LogCommand::Cat { log, from, count, follow } => cat(&place(log)?, *from, *count, *follow),
        LogCommand::Verify { log } => verify(&place(log)?),
        LogCommand::Analyse { dir, output } => analyse(dir, output),
    }?;
    Ok(Outcome::Good)
}

/// A log by its URL, or by its folder.
fn place(log: &str) -> anyhow::Result<Place> {
    if log.contains("://") {
        return Ok(log.parse()?);
    }
    let dir = std::path::absolute(log).with_context(|| format!("'{log}' is no path"))?;
    Ok(Place::folder(dir))
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
            say(&format!(
                "{place}  {error}
"
            ));
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
        say(&format!("  reader {}  at {}  {behind} behind\n", reader.pid, reader.cursor));
    }
    Ok(())
}

fn cat(place: &Place, from: Option<u64>, count: Option<u64>, follow: bool) -> anyhow::Result<()> {
    let start = from.map_or(Start::Oldest, Start::Sequence);
    let mut log = Reader::open(place, start, Registration::Unregistered)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        match log.next()? {
            Next::Message(message) => {
                left -= 1;
                if writeln!(out, "{}", line(&message)).is_err() {
                    // The reader of our output has seen enough.
                    return Ok(());
                }
            }
            Next::Gap(missed) => writeln!(out, "-- {missed} messages missed")?,
            Next::Empty if follow => {
                out.flush()?;
                tickpath_clock::sleep_ns(LOOK_NS);
            }
            Next::Empty => break,
        }
    }
    Ok(out.flush()?)
}

/// One message as one line.
fn line(message: &Message<'_>) -> String {
    let Message { sequence, stamp, kind, payload } = *message;
    format!("{sequence} {stamp} {}", content(kind, payload))
}

fn content(kind: u8, payload: &[u8]) -> String {
    fn flat<T: FromBytes + std::fmt::Debug>(payload: &[u8]) -> Option<String> {
        T::read_from_bytes(payload).ok().map(|message| format!("{message:?}"))
    }
    let known = match Kind::from_code(kind) {
        Some(Kind::TopOfBook) => flat::<TopOfBook>(payload),
        Some(Kind::Trade) => flat::<Trade>(payload),
        Some(Kind::NewOrder) => flat::<NewOrder>(payload),
        Some(Kind::CancelOrder) => flat::<CancelOrder>(payload),
        Some(Kind::ReplaceOrder) => flat::<ReplaceOrder>(payload),
        Some(Kind::ExecutionReport) => flat::<ExecutionReport>(payload),
        Some(Kind::OrderDenied) => flat::<OrderDenied>(payload),
        None => match Input::read(kind, payload) {
            Ok(Some(input)) => Some(format!("{input:?}")),
            Ok(None) => RecordKind::from_code(kind).map(|kind| format!("{kind:?} {}", hex(payload))),
            Err(_) => None,
        },
    };
    known.unwrap_or_else(|| format!("kind {kind}, {} bytes: {}", payload.len(), hex(payload)))
}

fn hex(bytes: &[u8]) -> String {
    const MOST: usize = 64;
    let shown: String = bytes.iter().take(MOST).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > MOST { format!("{shown}…") } else { shown }
}

fn verify(place: &Place) -> anyhow::Result<()> {
    let mut log = Reader::open(place, Start::Oldest, Registration::Unregistered)?;
    let (mut messages, mut bytes, mut is_journal) = (0u64, 0u64, false);
    loop {
        match log.next()? {
            Next::Message(message) => {
                is_journal |= message.sequence == 0 && message.kind == RecordKind::Start.code();
                messages += 1;
                bytes += message.payload.len() as u64;
            }
            Next::Gap(_) => {}
            Next::Empty => break,
        }
    }
    log.check_end()?;
    say(&format!("{place}: {messages} messages, {bytes} bytes, all whole\n"));
    if is_journal {
        let mut core = Core::new(Config { expected_orders: 0 });
        let replayed = tickpath_oms::journal::replay(place, &mut core, |_, _| {})?;
        say(&format!(
            "journal: {} inputs replayed to {} outputs, {} digests agree\n",
            replayed.inputs, replayed.outputs, replayed.digests
        ));
    }
    Ok(())
}

fn analyse(dir: &Path, output: &Output) -> anyhow::Result<()> {
    let dir: PathBuf = std::path::absolute(dir).context("no path")?;
    if !dir.is_dir() {
        return Err(OpenError::NotFound(Place::folder(dir)).into());
    }
    let (runs, _) = tickpath_lab::analyse::runs(&dir)?;
    let mut result = new_result("orders");
    result.host = tickpath_lab::host::facts(&tickpath_clock::HostClock::get()?);
    result.runs = runs;
    finish(&result, output)
}
