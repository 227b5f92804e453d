//! Counts of each kind of end, and of the reported orders that were lost by it.

use std::collections::BTreeMap;

use crate::disk::Fate;

/// Kind of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
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
pub struct Kept {
    pub told: u64,
    pub lost: u64,
}

/// Count of one kind of end, with the orders kept, by durability level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    pub times: u64,
    pub os: Kept,
    pub disk: Kept,
}

/// Results by kind of end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends(BTreeMap<End, Row>);

/// Orders that clients know of and that the OMS must keep, at each durability level.
#[derive(Debug, Clone, Copy)]
pub struct AtStake {
    pub os: u64,
    pub disk: u64,
}

impl End {
    /// Returns the power loss with this fate of the disk.
    pub fn of_power(fate: Fate) -> Self {
        match fate {
            Fate::Kept => Self::PowerAllKept,
            Fate::Gone => Self::PowerSyncedKept,
            Fate::InPieces => Self::PowerInPieces,
            Fate::Torn => Self::PowerTorn,
        }
    }

    /// Returns the description for the page.
    pub fn words(self) -> &'static str {
        match self {
            Self::BetweenTurns => "the OMS, between two turns",
            Self::InTurn => "the OMS, at any look at the clock in a turn: between journal, core, venue and client",
            Self::InStart => "the OMS, at any look at the clock while it starts: a second crash during recovery",
            Self::InStop => "the OMS, while it stops",
            Self::InRoll => {
                "the OMS, while a day ends: at any look at the clock, and between any two file operations of the roll"
            }
            Self::PowerAllKept => "the host; the disk kept what was not synced, too",
            Self::PowerSyncedKept => "the host; the disk kept what was synced",
            Self::PowerInPieces => "the host; of the rest the disk kept any sectors",
            Self::PowerTorn => "the host; the rest ends in the middle of a record",
        }
    }
}

impl Ends {
    /// Records that the OMS is up again.
    pub fn survived(&mut self, end: End, before: AtStake, after: AtStake) {
        let row = self.0.entry(end).or_default();
        row.times += 1;
        for (told, before, after) in [(&mut row.os, before.os, after.os), (&mut row.disk, before.disk, after.disk)] {
            told.told += before;
            told.lost += before.saturating_sub(after);
        }
    }

    /// Returns each kind of end with its row.
    pub fn rows(&self) -> impl Iterator<Item = (&End, &Row)> {
        self.0.iter()
    }

    /// Adds the results of other seeds.
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
