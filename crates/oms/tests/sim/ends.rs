//! What ended, how often, and what of all that clients had been told was gone then.

use std::collections::BTreeMap;

use crate::disk::Fate;

/// What ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    BetweenTurns,
    InTurn,
    InStart,
    InStop,
    InDayEnd,
    PowerAllKept,
    PowerSyncedKept,
    PowerInPieces,
    PowerTorn,
}

/// Orders that clients had been told of, and how many of them were gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    pub told: u64,
    pub lost: u64,
}

/// How often one thing ended, and what was kept, by level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    pub times: u64,
    pub os: Kept,
    pub disk: Kept,
}

/// What was at stake, by what ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends(BTreeMap<End, Row>);

/// Orders that clients know of and that the OMS should, at each level.
#[derive(Debug, Clone, Copy)]
pub struct AtStake {
    pub os: u64,
    pub disk: u64,
}

impl End {
    /// A loss of power, by what the disk kept.
    pub fn of_power(fate: Fate) -> Self {
        match fate {
            Fate::Kept => Self::PowerAllKept,
            Fate::Gone => Self::PowerSyncedKept,
            Fate::InPieces => Self::PowerInPieces,
            Fate::Torn => Self::PowerTorn,
        }
    }

    /// What the page says of it.
    pub fn words(self) -> &'static str {
        match self {
            Self::BetweenTurns => "the OMS, between two turns",
            Self::InTurn => "the OMS, at any look at the clock in a turn: between journal, core, venue and client",
            Self::InStart => "the OMS, at any look at the clock while it starts: a second crash during recovery",
            Self::InStop => "the OMS, while it stops",
            Self::InDayEnd => {
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
    /// An OMS is up again.
    pub fn survived(&mut self, end: End, before: AtStake, after: AtStake) {
        let row = self.0.entry(end).or_default();
        row.times += 1;
        for (told, before, after) in [(&mut row.os, before.os, after.os), (&mut row.disk, before.disk, after.disk)] {
            told.told += before;
            told.lost += before.saturating_sub(after);
        }
    }

    /// Each thing that ended.
    pub fn rows(&self) -> impl Iterator<Item = (&End, &Row)> {
        self.0.iter()
    }

    /// Adds what other seeds have met.
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
