//! Counts of each kind of end, and of the reported orders that were lost by it.

use std::collections::BTreeMap;

use crate::disk::WriteFate;

/// Kind of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrashKind {
    BetweenTurns,
    InTurn,
    InStart,
    InStop,
    InRoll,
    PowerAllKept,
    PowerSyncedKept,
    PowerInPieces,
    PowerTorn,
}

/// Orders that were reported to clients, and the lost ones among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptOrders {
    pub reported: u64,
    pub lost: u64,
}

/// Count of one kind of end, with the orders kept, by durability level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CrashRow {
    pub times: u64,
    pub os: KeptOrders,
    pub disk: KeptOrders,
}

/// Results by kind of end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrashCounts(BTreeMap<CrashKind, CrashRow>);

/// Orders that clients know of and that the OMS must keep, at each durability level.
#[derive(Debug, Clone, Copy)]
pub struct DurableOrders {
    pub os: u64,
    pub disk: u64,
}

impl CrashKind {
    /// Returns the power loss with this fate of the disk.
    pub fn of_power(fate: WriteFate) -> Self {
        match fate {
            WriteFate::Kept => Self::PowerAllKept,
            WriteFate::Gone => Self::PowerSyncedKept,
            WriteFate::InPieces => Self::PowerInPieces,
            WriteFate::Torn => Self::PowerTorn,
        }
    }

    /// Returns the description for the page.
    pub fn description(self) -> &'static str {
        match self {
            Self::BetweenTurns => "the OMS, between two turns",
            Self::InTurn => "the OMS, at any clock read in a turn: between journal, core, venue and client",
            Self::InStart => "the OMS, at any clock read of a start: a second crash during recovery",
            Self::InStop => "the OMS, while it stops",
            Self::InRoll => {
                "the OMS, while a day ends: at any clock read, and between any two file operations of the roll"
            }
            Self::PowerAllKept => "the host; the disk kept unsynced data, too",
            Self::PowerSyncedKept => "the host; the disk kept only synced data",
            Self::PowerInPieces => "the host; of unsynced data the disk kept arbitrary sectors",
            Self::PowerTorn => "the host; unsynced data ends in the middle of a record",
        }
    }
}

impl CrashCounts {
    /// Records that the OMS is up again.
    pub fn survived(&mut self, end: CrashKind, before: DurableOrders, after: DurableOrders) {
        let row = self.0.entry(end).or_default();
        row.times += 1;
        for (level, before, after) in [(&mut row.os, before.os, after.os), (&mut row.disk, before.disk, after.disk)] {
            level.reported += before;
            level.lost += before.saturating_sub(after);
        }
    }

    /// Returns each kind of end with its row.
    pub fn rows(&self) -> impl Iterator<Item = (&CrashKind, &CrashRow)> {
        self.0.iter()
    }

    /// Adds the results of other seeds.
    pub fn merge(&mut self, other: &Self) {
        for (end, row) in &other.0 {
            let sum = self.0.entry(*end).or_default();
            sum.times += row.times;
            for (sum, part) in [(&mut sum.os, row.os), (&mut sum.disk, row.disk)] {
                sum.reported += part.reported;
                sum.lost += part.lost;
            }
        }
    }
}
