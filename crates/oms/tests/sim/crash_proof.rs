//! The page that says what survives: what ended, how often, and what of all that clients had been told was gone then.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::desk::is_for_disk;
use crate::disk::Fate;
use crate::oracle::{Oracle, Told};
use crate::tally::Tally;

/// What ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    BetweenTurns,
    InTurn,
    InStart,
    InStop,
    PowerAllKept,
    PowerSyncedKept,
    PowerInPieces,
    PowerTorn,
}

/// Orders that clients had been told of, and how many of them were gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Kept {
    told: u64,
    lost: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Row {
    times: u64,
    os: Kept,
    disk: Kept,
}

/// What was at stake, by what ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends(BTreeMap<End, Row>);

/// Orders that clients know of and that the OMS should, at each level.
#[derive(Debug, Clone, Copy)]
pub struct AtStake {
    os: u64,
    disk: u64,
}

impl End {
    pub fn of_power(fate: Fate) -> Self {
        match fate {
            Fate::Kept => Self::PowerAllKept,
            Fate::Gone => Self::PowerSyncedKept,
            Fate::InPieces => Self::PowerInPieces,
            Fate::Torn => Self::PowerTorn,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::BetweenTurns => "the OMS, between two turns",
            Self::InTurn => "the OMS, at any look at the clock in a turn: between journal, core, venue and client",
            Self::InStart => "the OMS, at any look at the clock while it starts: a second crash during recovery",
            Self::InStop => "the OMS, while it stops",
            Self::PowerAllKept => "the host; the disk kept what was not synced, too",
            Self::PowerSyncedKept => "the host; the disk kept what was synced",
            Self::PowerInPieces => "the host; of the rest the disk kept any sectors",
            Self::PowerTorn => "the host; the rest ends in the middle of a record",
        }
    }
}

impl AtStake {
    pub fn of(oracle: &Oracle) -> Self {
        let is_known = |id: &u64| !oracle.lost.contains(id) && !oracle.forgotten.contains(id);
        // Of an order that is over and never traded there is nothing to lose.
        let is_alive = |(id, told): &(&u64, &Told)| is_known(id) && !told.is_over;
        let known = || oracle.told.iter().filter(is_alive).map(|(_, told)| told.session);
        Self {
            os: known().filter(|&session| !is_for_disk(session)).count() as u64,
            disk: known().filter(|&session| is_for_disk(session)).count() as u64,
        }
    }
}

impl Ends {
    /// An OMS is up again.
    pub fn survived(&mut self, end: End, before: AtStake, after: AtStake) {
        let row = self.0.entry(end).or_default();
        row.times += 1;
        for (told, before, after) in [(&mut row.os, before.os, after.os), (&mut row.disk, before.disk, after.disk)] {
            told.told += before;
            told.lost += before.saturating_sub(after);
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (end, row) in &other.0 {
            let sum = self.0.entry(*end).or_default();
            sum.times += row.times;
            for (sum, part) in [(&mut sum.os, row.os), (&mut sum.disk, row.disk)] {
                sum.told += part.told;
                sum.lost += part.lost;
            }
        }
    }
}

/// The page, of so many seeds none of which has failed.
pub fn page(tally: &Tally, seeds: u64) -> String {
    let mut page = String::from(
        "# What survives a crash\n\n\
         Made by `make crash-proof`, which runs the simulation ([crates/oms/tests/sim](../crates/oms/tests/sim)) and \
         writes this page\nonly if no seed fails. What ends there is ended at every moment that the OMS reads its \
         clock, on real journals and lanes; a process\nthat is killed by a real SIGKILL is in the tests beside it. The world goes on \
         through days that end and snapshots that are made at\nany time, also of a journal that then loses its tail. In every second \
         world one of two venues is\nreached by two or three lines, the other one by lanes.\n\n\
         A session asks for a level. At `os` nothing of its orders leaves before the operating system has them: they \
         survive the end\nof any process. At `disk` nothing leaves before they are on the disk: they survive the loss of \
         power.\n\n",
    );
    let _ = writeln!(
        page,
        "Seeds: {seeds}. Orders that clients had been told of and that were not over, and how many of them were gone:\n"
    );
    page.push_str(
        "| what ended | how often | told at `os` | gone | told at `disk` | gone |\n|---|--:|--:|--:|--:|--:|\n",
    );
    for (end, Row { times, os, disk }) in &tally.ends.0 {
        let words = end.words();
        let _ = writeln!(page, "| {words} | {times} | {} | {} | {} | {} |", os.told, os.lost, disk.told, disk.lost);
    }
    let count = |what| tally.get(what);
    let _ = write!(
        page,
        "\nIn all of these, and through {} losses of a connection, {} kills of gateways, {} failed disks and {} steps of \
         the clock,\nand with {} lines to venues cut, {} gone for good, and {} kills of a venue that is reached by lines:\n\n\
         * of {} requests that reached a venue none came twice, and none was invented;\n\
         * each of {} fills was known to the OMS, or its order was held in doubt and asked for; no exposure was understated;\n\
         * {} times, in the middle of a plan and at its end, all came to rest; each time two replays agreed with the OMS to the byte.\n\n\
         An order that is gone is one that the session's level allows to go: at `os` the tail of the journal that the \
         power took.\nThe venue may work it. Its id is never used again: its reports change nothing and are counted as strangers, an alarm at which\nthe desk asks its venue.\n\
         What is gone may be a later try of an order that is known: that is in doubt then, and counted as it was asked for.\n",
        count("connections lost"),
        count("gateways killed"),
        count("disks failed"),
        count("clock stepped"),
        count("lines cut"),
        count("lines away for good"),
        count("venues killed"),
        count("requests arrived"),
        count("fills"),
        count("settled and checked"),
    );
    page
}
