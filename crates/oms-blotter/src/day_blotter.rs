//! The replay of a journal over a day, and its progress.

use tickpath_log::LogPath;
use tickpath_oms_core::{Config, Core, Input};
use tickpath_oms_journal::JournalError;
use tickpath_oms_journal::journal::{self, Replay};

use crate::BlotterError;
use crate::day::{DayChoice, TradingDay};
use crate::day_rows::{AppliedInput, DayRows};

/// A day of a journal, with all its rows.
pub struct DayBlotter {
    day: TradingDay,
    replay: Replay,
    pub(crate) core: Core,
    pub(crate) rows: DayRows,
    /// First replayed record, if the day begins before it.
    from: Option<u64>,
    /// Record after the end of a day, if that was the last input: the next input begins another day.
    ended: Option<u64>,
}

/// Result of [`DayBlotter::step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlotterStep {
    /// No input: the journal ends here for now.
    Nothing,
    /// An input.
    Input,
    /// The end of a day, as 20261128.
    DayEnd(u32),
}

impl DayBlotter {
    /// Reads a journal to the end of a day, or to the journal's end.
    pub fn open(journal: &LogPath, which: DayChoice) -> Result<Self, BlotterError> {
        let day = which.find(journal)?;
        let (replay, core) = begin(journal, &day)?;
        let rows = DayRows::new(journal, &core);
        let from = Some(replay.sequence()).filter(|&from| from > day.first);
        let mut blotter = Self { day, replay, core, rows, from, ended: None };
        let before = day.end.unwrap_or(u64::MAX);
        while blotter.replay.sequence() < before && blotter.step()? != BlotterStep::Nothing {}
        // A lost page would be mistaken for the end.
        blotter.replay.check_end().or_else(|error| if day.end.is_some() { Ok(()) } else { Err(error) })?;
        if day.end.is_none() {
            blotter.next_day();
        }
        blotter.rows.take_changed();
        Ok(blotter)
    }

    /// Applies the next input.
    pub fn step(&mut self) -> Result<BlotterStep, BlotterError> {
        let mut found = None;
        self.replay.step(&mut self.core, |at, input, outputs| found = Some((at, *input, outputs.to_vec())))?;
        let Some((at, input, outputs)) = found else { return Ok(BlotterStep::Nothing) };
        self.next_day();
        let utc_ns = self.replay.calibration().utc_ns_of(at.stamp);
        self.rows.apply(&self.core, &AppliedInput { at, utc_ns, input, outputs });
        let Input::DayEnd(end) = input else { return Ok(BlotterStep::Input) };
        self.ended = Some(at.sequence + 1);
        Ok(BlotterStep::DayEnd(end.day))
    }

    /// Returns the day.
    pub fn day(&self) -> TradingDay {
        self.day
    }

    /// Returns the first replayed record, if the day's records before it are gone from the archive. A snapshot replaces
    /// them: open orders and positions are then those at the snapshot.
    pub fn replayed_from(&self) -> Option<u64> {
        self.from
    }

    /// Returns the number of the next record.
    pub fn next_record(&self) -> u64 {
        self.replay.sequence()
    }

    /// Begins another day if a day has ended.
    fn next_day(&mut self) {
        let Some(next) = self.ended.take() else { return };
        self.rows.begin_day(&self.core);
        if self.day.end.is_none() && next > self.day.first {
            (self.day.first, self.from) = (next, None);
        }
    }
}

/// Begins a replay no later than the day, with known costs where possible: from a snapshot with flat positions only,
/// else from the journal's beginning, else from any snapshot.
fn begin(journal: &LogPath, day: &TradingDay) -> Result<(Replay, Core), BlotterError> {
    let (replay, core) = journal::follow(journal)?;
    let is_flat = core.positions().all(|(_, _, position)| position.net == 0);
    if replay.sequence() <= day.first && is_flat {
        return Ok((replay, core));
    }
    match Replay::open(journal) {
        Ok(whole) => return Ok((whole, Core::new(Config::default()))),
        Err(JournalError::ArchiveGone { .. } | JournalError::CoreVersion { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let upto = replay.sequence();
    if day.end.is_some_and(|before| before <= upto) {
        return Err(BlotterError::RecordsGone { journal: journal.clone(), upto, first: day.first });
    }
    Ok((replay, core))
}
