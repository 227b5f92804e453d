//! `tickpath log rm`: removes a log that no living process uses.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Context;
use tickpath_log::{LogOwner, LogPath, Next, ProcessId, Reader, ReaderStart, Registration};
use tickpath_oms_core::RecordKind;

use tickpath_cli_terminal::print::print_text;

pub fn run(place: &LogPath) -> anyhow::Result<()> {
    let log = Reader::open(place, ReaderStart::Now, Registration::Unregistered)?;
    let mut oldest = Reader::open(place, ReaderStart::Oldest, Registration::Unregistered)?;
    let messages = log.sequence().saturating_sub(oldest.sequence());
    let is_journal =
        matches!(oldest.next(), Ok(Next::Message(message)) if message.kind == RecordKind::JournalStart.code());
    if log.owner() != LogOwner::default() || is_journal {
        anyhow::bail!("{place} belongs to an OMS; remove the whole folder of its journal if no program needs it");
    }
    let users: Vec<String> = other_processes(&log).iter().map(|pid| ProcessId(*pid).to_string()).collect();
    if !users.is_empty() {
        anyhow::bail!("{place} is in use by {}; end that process first", users.join(" and "));
    }
    place.remove().with_context(|| format!("{place} is removed only in part; look at the rest in its folder"))?;
    print_text(&format!("{place}: removed, with {messages} messages\n"))
}

/// Returns the other processes that write the log, are registered to read it, or have it mapped, as far as this user
/// may see.
fn other_processes(log: &Reader) -> BTreeSet<u32> {
    let registered = log.readers().into_iter().filter(|reader| !reader.away).map(|reader| reader.pid);
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let data = log.path().dir().join("data");
    let data = data.canonicalize().unwrap_or(data).display().to_string();
    let has_mapped = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.lines().any(|line| line.ends_with(&data)))
    };
    let mut users: BTreeSet<u32> = pids.filter(has_mapped).chain(log.writer()).chain(registered).collect();
    users.remove(&std::process::id());
    users
}
