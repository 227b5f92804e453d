//! The end of a day: by the operator's lane or by an admin command, on a full disk, beside silent venues, and
//! interrupted by kills and power losses.

use tickpath_clock::Clock;
use tickpath_oms_core::{DayEnd, RecordKind};
use tickpath_oms_runtime::{CommandError, OmsError, Sequencer};
use zerocopy::IntoBytes;

use crate::clock::SimClock;
use crate::crash_counts::CrashKind;
use crate::plan::Dice;
use crate::remote::RemoteSession;
use crate::roll;
use crate::rule::{RuleCheck, broken};
use crate::step_context::StepContext;
use crate::trading_config::VENUES;
use crate::world::{World, around};

impl World {
    /// Ends the day. The venues' day ends before it or continues after it; the reports of its end may be lost silently.
    pub fn end_day(&mut self, dice: &mut Dice) -> RuleCheck {
        self.settle()?;
        let is_early = dice.one_in(3);
        self.fall_silent(dice);
        if self.is_silent() {
            // Resting orders are filled, and some of the fills are never reported.
            let middle = if dice.one_in(2) { 90 } else { 110 };
            self.tick(dice.below(VENUES.len() as u64) as u32, middle, 0)?;
        }
        if is_early {
            self.tally.count("days ended before those of the venues");
        } else {
            for line in &mut self.lines {
                line.end_day(around!(self));
            }
        }
        // A rest with its checks ends a silence.
        if self.is_silent() {
            self.quiesce()?
        } else {
            self.settle()?
        }
        if dice.one_in(4) {
            self.refuse_day(dice)?;
        }
        match dice.one_in(3) {
            true => self.end_day_by_lane()?,
            false => self.end_day_by_command(dice)?,
        }
        self.settle()
    }

    fn end_day_by_lane(&mut self) -> RuleCheck {
        let day = DayEnd { day: 20_260_202, ..DayEnd::default() };
        if self.operator.send(&self.host.clock, RecordKind::DayEnd, &day) {
            self.tally.count("days ended");
        }
        self.turns(8, 0)?;
        self.note_day()
    }

    /// Ends the day by an admin command. The OMS is killed at a clock reading in it, or between two file operations of
    /// the roll, or the host loses power there.
    fn end_day_by_command(&mut self, dice: &mut Dice) -> RuleCheck {
        let kill_at = if dice.one_in(3) { 1 + dice.below(4) } else { 0 };
        let (first, days) = (self.host.first_record(), self.host.journaled()?.days);
        let ended = self.host.call(kill_at, command);
        let steps = match self.count_notices(ended)? {
            Some(Err(why)) => return broken("a day ends that may end", why.to_string()),
            Some(Ok(())) => {
                self.tally.count("days ended by an admin");
                if dice.one_in(3) {
                    return self.note_day();
                }
                self.host.undo_roll(first, dice)
            }
            None => 0,
        };
        self.tally.count("kills in a day's end");
        self.tally.add("rolls of the history cut short", u64::from((1..=roll::STEPS).contains(&steps)));
        self.tally.add("rolls of the journal cut short", u64::from(steps > roll::STEPS));
        self.log_event(|| format!("      killed in the day's end, at reading {kill_at}, {steps} steps undone"));
        self.days_before = Some(days);
        self.ended(CrashKind::InRoll);
        self.clients.iter_mut().filter_map(|client| client.remote.as_mut()).for_each(RemoteSession::cut);
        if dice.one_in(3) {
            self.tally.count("power lost in a day's end");
            self.lose_power(dice)?;
        }
        Ok(())
    }

    /// Ends the day on a disk without room for the roll: the day does not end, and nothing changes.
    fn refuse_day(&mut self, dice: &mut Dice) -> RuleCheck {
        let Some(before) = self.host.sequencer().map(|oms| oms.records()) else { return Ok(()) };
        self.host.fill_disk(dice.one_in(2));
        let refused = self.host.call(0, command);
        let leftovers = self.host.free_disk();
        let refused = self.count_notices(refused)?;
        let after = self.host.sequencer().map(|oms| oms.records());
        self.tally.count("days refused for lack of room");
        match refused {
            Some(Err(CommandError::NoRoom { .. })) if after == Some(before) && leftovers == 0 => Ok(()),
            refused => {
                let what = format!(
                    "{refused:?}, records {before} and {after:?}, {leftovers} files are left: the disk was full"
                );
                broken("a day without room for its roll does not end", what)
            }
        }
    }

    fn note_day(&mut self) -> RuleCheck {
        match self.host.sequencer() {
            Some(oms) => self.oracle.note_forgotten(oms.core()),
            None => Ok(()),
        }
    }
}

/// Issues an admin command to end the day. Returns the refusal if the command is refused.
fn command(oms: &mut Sequencer<SimClock>) -> Result<Result<(), CommandError>, OmsError> {
    let now = oms.clock().ticks();
    let ended = oms.accept_command(now, RecordKind::DayEnd.code(), DayEnd::default().as_bytes())?;
    Ok(ended.map(drop))
}
