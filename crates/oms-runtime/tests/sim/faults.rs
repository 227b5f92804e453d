//! Kills, power losses, and the recovery from them.

use tickpath_market::{OrderId, VenueId};
use tickpath_oms_runtime::{LaneKind, OmsError};

use crate::client::is_current;
use crate::crash_counts::CrashKind;
use crate::disk::WriteFate;
use crate::plan::{Act, Dice};
use crate::planted_bugs::{self, PlantedBug};
use crate::remote::RemoteSession;
use crate::rule::{BrokenRule, RuleCheck, broken};
use crate::step_context::StepContext;
use crate::trading_config::VENUES;
use crate::world::{World, around};

impl World {
    pub fn kill_oms(&mut self, dice: &mut Dice) {
        if !self.host.kill() {
            return;
        }
        self.tally.count("kills between turns");
        self.ended(CrashKind::BetweenTurns);
        match self.plant {
            Some(PlantedBug::ForgedLane) => {
                self.lines.iter_mut().for_each(|line| line.lanes = None);
                planted_bugs::forge_lanes(&self.host.config.lanes, &self.host.clock);
            }
            Some(PlantedBug::RenamedInJournal) => {
                planted_bugs::rename_in_journal(&self.host.config.journal, &self.host.clock)
            }
            Some(PlantedBug::CutJournal) => {
                planted_bugs::cut_journal(&self.host.config.journal, &self.host.clock, dice)
            }
            _ => {}
        }
    }

    /// Kills the OMS in a turn that has work to do.
    pub fn kill_in_turn(&mut self, dice: &mut Dice) -> RuleCheck {
        if dice.one_in(3) {
            return self.tick(dice.below(VENUES.len() as u64) as u32, 95 + dice.below(11) as i64, 1 + dice.below(3));
        }
        self.ask([Act::Order, Act::Cancel, Act::MassCancel][dice.place(3)], dice);
        let at = dice.place(self.lines.len());
        self.lines[at].deliver(3, around!(self));
        self.turns(1, 1 + dice.below(9))
    }

    pub fn kill_in_start(&mut self, reading: u64) -> RuleCheck {
        self.host.kill();
        self.start(reading)?;
        if !self.host.is_up() {
            self.tally.count("kills in a start");
            self.ended(CrashKind::InStart);
            self.log_event(|| format!("      killed at reading {reading}"));
        }
        Ok(())
    }

    pub fn stop(&mut self, dice: &mut Dice) -> RuleCheck {
        let kill_at = dice.below(4);
        if !self.host.is_up() {
            return Ok(());
        }
        let stopped = self.host.call(kill_at, |oms| oms.stop());
        let is_killed = !self.host.is_up();
        self.count_notices(stopped)?;
        self.tally.count(if is_killed { "kills in a stop" } else { "orderly stops" });
        if is_killed {
            self.ended(CrashKind::InStop);
        }
        self.host.kill();
        Ok(())
    }

    pub fn kill_gateway(&mut self, dice: &mut Dice) -> RuleCheck {
        let at = dice.place(self.lines.len());
        if self.lines[at].lanes.take().is_some() {
            self.tally.count("gateways killed");
            self.lines[at].cut(dice, around!(self))?;
        }
        Ok(())
    }

    pub fn lose_power(&mut self, dice: &mut Dice) -> RuleCheck {
        self.host.kill();
        for client in &mut self.clients {
            client.lanes = None;
            client.remote.iter_mut().for_each(RemoteSession::power_lost);
        }
        self.operator.control = None;
        for line in &mut self.lines {
            line.lanes = None;
            match line.by {
                Some(_) => line.leave_lines(around!(self))?,
                None => line.cut(dice, around!(self))?,
            }
        }
        let fate = self.host.lose_power(dice);
        self.oracle.power_lost();
        self.ended(CrashKind::of_power(fate));
        self.is_after_power = true;
        self.tally.count("power lost");
        self.tally.count(match fate {
            WriteFate::Kept => "power lost, and nothing else",
            WriteFate::Gone => "power lost with all that was not synced",
            WriteFate::InPieces => "power lost in pieces",
            WriteFate::Torn => "power lost with a torn tail",
        });
        let is_stale = dice.one_in(2) && self.host.put_lanes_back();
        self.tally.count(if is_stale { "reboots with stale lanes" } else { "reboots with fresh lanes" });
        self.log_event(|| format!("      {fate:?}, stale lanes: {is_stale}"));
        Ok(())
    }

    /// Records an end of the OMS; a crash after a power loss counts as the power loss, which may have caused the
    /// losses.
    pub fn ended(&mut self, end: CrashKind) {
        if !self.is_after_power {
            self.end = Some(end);
        }
    }

    /// Starts the OMS if it is down.
    pub fn start(&mut self, kill_at: u64) -> RuleCheck {
        if self.host.is_up() {
            return Ok(());
        }
        for line in &mut self.lines {
            line.leave_lines(around!(self))?;
        }
        let mut started = self.host.start(kill_at);
        for _ in 0..2 {
            match started {
                Err(OmsError::Open(tickpath_log::LogOpenError::HasReader { .. })) => {
                    // A gateway reads a lane that the journal never named. It is stopped, as the refusal demands.
                    self.tally.count("starts refused until a gateway was stopped");
                    self.lines.iter_mut().for_each(|line| line.lanes = None);
                }
                Err(OmsError::IdentityConflicts(_)) => {
                    // The symbols get their old numbers, as the refusal demands.
                    self.tally.count("starts refused with renumbered symbols");
                    self.host.renumber();
                }
                _ => break,
            }
            started = self.host.start(kill_at);
        }
        self.count_notices(started)?;
        if self.host.is_up() { self.started() } else { Ok(()) }
    }

    fn started(&mut self) -> RuleCheck {
        self.tally.count("starts");
        self.oracle.note_names(&self.host.config.trading.instruments);
        let Some(oms) = self.host.sequencer() else { return Ok(()) };
        oms.expect_market_data();
        let (armed, doubted) = (oms.core().armed_orders().count() as u64, oms.core().armed_upper_bound() as u64);
        self.tally.add("orders armed over a start", armed);
        self.tally.add("orders that may have fired before a start", doubted - armed);
        self.oracle.prices.clear();
        for symbol in 0..VENUES.len() as u32 {
            self.tick(symbol, 100, 0)?;
        }
        let Some(oms) = self.host.sequencer() else { return Ok(()) };
        let epoch = OrderId::new(oms.core().epoch(), 0).0;
        for rules in &self.host.config.trading.sessions {
            self.oracle.note_right(rules.session, !rules.accounts.is_empty(), epoch);
        }
        let before = self.oracle.durable_orders();
        let (is_after_power, days_before) = (std::mem::take(&mut self.is_after_power), self.days_before.take());
        let mut has_day_ended = false;
        if is_after_power || days_before.is_some() {
            let journaled = self.host.journaled()?;
            let Some(oms) = self.host.sequencer() else { return Ok(()) };
            if is_after_power {
                self.oracle.note_lost(oms.core(), &journaled.orders, &mut self.tally)?;
            }
            has_day_ended = days_before.is_some_and(|days| journaled.days > days);
        }
        if let Some(end) = self.end.take() {
            self.tally.ends.survived(end, before, self.oracle.durable_orders());
        }
        // Orders that ended with the day were removed by its end, and not by the kill.
        if let (true, Some(oms)) = (has_day_ended, self.host.sequencer()) {
            self.tally.count("days ended over a start");
            self.oracle.note_forgotten(oms.core())?;
        }
        // A start syncs the journal that it found.
        self.oracle.is_disk_bad(false);
        let next_request = self.host.next_request.clone();
        let Some(oms) = self.host.sequencer() else { return Ok(()) };
        for client in &mut self.clients {
            let next = next_request.get(usize::from(client.session)).copied().unwrap_or(0);
            client.remote.as_mut().map_or(Ok(()), |remote| remote.log_in(oms, next))?;
        }
        self.leave_old_lanes();
        Ok(())
    }

    /// Closes the lanes of every process whose lane was replaced.
    fn leave_old_lanes(&mut self) {
        let lanes = &self.host.config.lanes;
        for client in &mut self.clients {
            let session = client.session;
            client.lanes.take_if(|joined| {
                !is_current(lanes, LaneKind::Requests(session), joined.requests.owner())
                    || !is_current(lanes, LaneKind::Reports(session), joined.reports.owner())
            });
        }
        for line in &mut self.lines {
            let venue: VenueId = line.id;
            line.lanes.take_if(|joined| {
                !is_current(lanes, LaneKind::VenueRequests(venue), joined.requests.owner())
                    || !is_current(lanes, LaneKind::VenueReports(venue), joined.reports.owner())
            });
        }
        self.operator.control.take_if(|joined| !is_current(lanes, LaneKind::Control, joined.owner()));
    }

    /// Rejoins every process that is away; once the OMS is up, nothing may prevent that.
    pub fn join_all(&mut self) -> RuleCheck {
        self.try_join()?.or_else(|e| broken("a reconnecting client is accepted", e.to_string()))
    }

    /// Joins all processes that are away. The inner error is a clock mismatch; every other error breaks a rule.
    fn try_join(&mut self) -> Result<Result<(), tickpath_log::LogOpenError>, BrokenRule> {
        let (lanes, clock) = (&self.host.config.lanes, &self.host.clock);
        let clients = self.clients.iter_mut().map(|client| client.join(lanes, clock));
        let lines = self.lines.iter_mut().map(|line| line.join(lanes, clock));
        let mut joined = clients.chain(lines).chain([self.operator.join(lanes, clock)]);
        match joined.try_for_each(|joined| joined) {
            Err(e) if !matches!(e, tickpath_log::LogOpenError::Clock { .. }) => {
                broken("a reconnecting client is accepted", e.to_string())
            }
            joined => Ok(joined),
        }
    }
}
