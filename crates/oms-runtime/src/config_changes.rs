//! Changes of the definitions by a desk: at a start, and while the OMS runs.

use tickpath_clock::Clock;
use tickpath_oms_core::{Grant, Input, SessionRules};
use tickpath_oms_journal::JournalError;

use crate::OmsError;
use crate::commit::AckLevel;
use crate::config::TradingDefinitions;
use crate::identity::{self, IdentityConflicts};
use crate::outbound::Outbound;
use crate::sequencer::Sequencer;

impl<C: Clock> Sequencer<C> {
    /// Replaces the definitions by those of a desk: journals the differences only, and returns their number. A removed
    /// right denies the next order; a session's durability level rises at once, but falls only at the next start,
    /// because held outputs keep their place. A desk that gives a number another meaning while something bears the
    /// number is refused as a whole with [`OmsError::IdentityConflicts`].
    #[cold]
    pub fn replace_definitions(&mut self, desk: &TradingDefinitions) -> Result<usize, OmsError> {
        self.check_definitions(desk)?;
        desk.sessions.iter().for_each(|session| raise_level(&mut self.levels, session.session, session.level));
        if self.commit.is_none() && !self.disk_failed {
            self.start_commit()?;
        }
        let changes = self.journal_changes(desk)?;
        if changes > 0 && !self.disk_failed {
            // The next records find their memory ready, as after a start.
            match self.journal.sync().and_then(|()| self.journal.reserve()) {
                Err(JournalError::Disk(e)) => self.fail_disk(&e.to_string()).map(drop)?,
                synced => synced?,
            }
        }
        Ok(changes)
    }

    /// Journals a desk's differences, as [`Self::replace_definitions`] and a start do. The caller syncs them before anything leaves
    /// under them: after a power loss, the definitions limit what may have left.
    pub(crate) fn journal_changes(&mut self, desk: &TradingDefinitions) -> Result<usize, OmsError> {
        let names = self.definitions.new_names(&desk.names);
        let changes = self.definitions.changes(definitions(desk));
        for name in &names {
            self.journal.name(self.clock.ticks(), name)?;
            self.definitions.note_name(*name);
        }
        for change in &changes {
            self.clear_prices(change);
            self.apply_and_release(self.clock.ticks(), change)?;
            self.definitions.note(change);
        }
        self.answers.set_expectations(&desk.expectations);
        if let Some(lines) = &self.line_shared {
            lines.validity.set(&desk.accounts, self.clock.calibration());
        }
        Ok(names.len() + changes.len())
    }

    /// Checks that every number of the desk keeps its meaning, or that nothing bears it.
    fn check_definitions(&self, desk: &TradingDefinitions) -> Result<(), IdentityConflicts> {
        identity::check(&self.core, &self.definitions, desk, |session| self.has_reports(session))
    }

    /// Returns whether a session was ever sent a report: its lane and the history number them from the first report on.
    fn has_reports(&self, session: u16) -> bool {
        let place = usize::from(session);
        let by_lane = self.sessions.get(place).and_then(Outbound::log).map_or(0, tickpath_log::Writer::sequence);
        let by_front =
            self.history.as_ref().and_then(|history| history.next_numbers().get(place)).copied().unwrap_or(0);
        by_lane > 0 || by_front > 0
    }

    /// Clears the prices of a symbol whose number has another meaning now, until its market sends new ones: the old
    /// prices belong to another symbol.
    fn clear_prices(&mut self, change: &Input) {
        let Input::Instrument(instrument) = change else { return };
        let is_another = |was| identity::changes_meaning(was, instrument);
        if self.definitions.instrument(instrument.symbol).is_some_and(is_another)
            && let Some(reference) = self.reference_prices.get_mut(instrument.symbol.0 as usize)
        {
            *reference = Default::default();
        }
    }
}

/// Raises the durability level of a session's requests, and never lowers it.
pub(crate) fn raise_level(levels: &mut Vec<AckLevel>, session: u16, level: AckLevel) {
    let place = usize::from(session);
    if levels.len() <= place {
        levels.resize(place + 1, AckLevel::Os);
    }
    if level == AckLevel::Disk {
        levels[place] = level;
    }
}

/// Returns a desk as the inputs that define it.
fn definitions(desk: &TradingDefinitions) -> Vec<Input> {
    let mut inputs: Vec<Input> = desk.instruments.iter().copied().map(Input::Instrument).collect();
    inputs.extend(desk.accounts.iter().copied().map(Input::Account));
    inputs.extend(desk.venues.iter().copied().map(Input::Venue));
    inputs.extend(desk.symbols.iter().copied().map(Input::SymbolLimits));
    inputs.extend(desk.firm.map(Input::Firm));
    inputs.extend(desk.rejects.iter().copied().map(Input::Reject));
    for rules in &desk.sessions {
        let session = rules.session;
        inputs.push(Input::Session(SessionRules {
            session,
            cancel_on_disconnect: u8::from(rules.cancel_on_disconnect),
            level: rules.level as u8,
            withheld: rules.withheld,
            max_order_quantity: rules.limits.max_order_quantity,
            max_notional: rules.limits.max_notional.0.to_le_bytes(),
            rate_limit: rules.limits.rate_limit,
            rate_window_ns: rules.limits.rate_window_ns,
            ..SessionRules::default()
        }));
        let grants = rules.accounts.iter().map(|&account| Input::Grant(Grant { account, session, reserved: 0 }));
        inputs.extend(grants);
    }
    inputs
}
