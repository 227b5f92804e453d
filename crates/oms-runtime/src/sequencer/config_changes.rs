//! Changes of the definitions by a trading configuration: at a start, and while the OMS runs.

use tickpath_clock::Clock;
use tickpath_oms_core::{Grant, Input, SessionRules};
use tickpath_oms_journal::JournalError;
use tickpath_oms_journal::identity::{self, IdentityConflicts};

use super::Sequencer;
use crate::OmsError;
use crate::config::TradingDefinitions;

impl<C: Clock> Sequencer<C> {
    /// Replaces the definitions by those of a trading configuration: journals the differences only, and returns their
    /// number. A removed right denies the next order; a session's durability level rises at once, but falls only at the
    /// next start, because held outputs keep their place. A configuration that gives a number another meaning while
    /// something bears the number is refused as a whole with [`OmsError::IdentityConflicts`].
    #[cold]
    pub fn replace_definitions(&mut self, wanted: &TradingDefinitions) -> Result<usize, OmsError> {
        self.check_definitions(wanted)?;
        self.release.durability.raise_levels(&wanted.sessions);
        self.start_commit()?;
        let changes = self.journal_changes(wanted)?;
        if changes > 0 && !self.has_disk_failed() {
            // The next records find their memory ready, as after a start.
            match self.journal.sync().and_then(|()| self.journal.reserve()) {
                Err(JournalError::Disk(e)) => self.fail_disk(&e.to_string()).map(drop)?,
                synced => synced?,
            }
        }
        Ok(changes)
    }

    /// Journals a configuration's differences, as [`Self::replace_definitions`] and a start do. The caller syncs them
    /// before anything leaves under them: after a power loss, the definitions limit what may have left.
    pub(crate) fn journal_changes(&mut self, wanted: &TradingDefinitions) -> Result<usize, OmsError> {
        let names = self.definitions.new_names(&wanted.names);
        let changes = self.definitions.changes(definitions(wanted));
        for name in &names {
            self.journal.name(self.clock.ticks(), name)?;
            self.definitions.note_name(*name);
        }
        for change in &changes {
            self.clear_prices(change);
            self.apply_and_release(self.clock.ticks(), change)?;
            self.definitions.note(change);
        }
        self.unanswered.expectations.clone_from(&wanted.expectations);
        self.release.venues.set_max_ages(&wanted.accounts, self.clock.calibration());
        Ok(names.len() + changes.len())
    }

    /// Starts the commit thread, if a session asks for the disk level.
    pub(crate) fn start_commit(&mut self) -> Result<(), OmsError> {
        self.release.durability.start_commit(self.journal.log(), &self.clock)
    }

    /// Checks that every number of the configuration keeps its meaning, or that nothing bears it.
    fn check_definitions(&self, wanted: &TradingDefinitions) -> Result<(), IdentityConflicts> {
        identity::check(&self.core, &self.definitions, wanted.identities(), |session| self.release.has_reports(session))
    }

    /// Clears the prices of a symbol whose number has another meaning from this change on.
    fn clear_prices(&mut self, change: &Input) {
        let Input::Instrument(instrument) = change else { return };
        let is_another = |was| identity::changes_meaning(was, instrument);
        if self.definitions.instrument(instrument.symbol).is_some_and(is_another) {
            self.market.clear(instrument.symbol);
        }
    }
}

/// Returns a trading configuration as the inputs that define it.
fn definitions(wanted: &TradingDefinitions) -> Vec<Input> {
    let mut inputs: Vec<Input> = wanted.instruments.iter().copied().map(Input::Instrument).collect();
    inputs.extend(wanted.accounts.iter().copied().map(Input::Account));
    inputs.extend(wanted.venues.iter().copied().map(Input::Venue));
    inputs.extend(wanted.symbols.iter().copied().map(Input::SymbolLimits));
    inputs.extend(wanted.firm.map(Input::Firm));
    inputs.extend(wanted.rejects.iter().copied().map(Input::Reject));
    for rules in &wanted.sessions {
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
