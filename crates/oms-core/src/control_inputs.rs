//! Inputs about the OMS itself: definitions, starts, connections and kill switches.

use tickpath_market::{AccountId, SymbolId, VenueId};
use tickpath_oms_records::{Boot, KILL_DISK, KillSwitch, SessionConnection, VenueConnection};

use crate::admin_command::cancel_filter;
use crate::core::{At, Core};
use crate::open_orders::CancelFilter;
use crate::order::IN_DOUBT;
use crate::trading_config::ID_LIMIT;
use crate::venue_table::VENUE_LIMIT;
use crate::{AccountLimits, DefinitionEnd, Input, Instrument, Outputs, RecordKind, SymbolLimits, VenueRules};

impl Core {
    /// Applies an input that is neither a request nor a report, and counts it as ignored if it is refused.
    pub(crate) fn apply_control(&mut self, at: At, input: &Input, out: &mut Outputs) {
        let is_accepted = match input {
            Input::Boot(boot) => self.boot(at, boot),
            Input::Instrument(instrument) => self.define_instrument(instrument),
            Input::Account(limits) => self.define_account(limits),
            Input::Venue(rules) => self.venues.define(rules),
            Input::Session(rules) => self.trading.define_session(rules),
            Input::Reject(rule) => self.retries.define(rule),
            Input::Grant(grant) => self.trading.grant(grant),
            Input::SymbolLimits(limits) => self.limit_symbol(limits),
            Input::Firm(limits) => {
                self.trading.limit_firm(limits);
                true
            }
            Input::DefinitionEnd(ended) => self.end_definition(ended),
            Input::Kill(kill) => self.kill(at, kill, out),
            Input::VenueConnection(connection) => self.apply_venue_connection(at, connection, out),
            Input::SessionConnection(connection) => self.apply_session_connection(at, connection, out),
            Input::UnsentRequest(unsent) => self.requeue_unsent(unsent, out),
            Input::Release(release) => self.release_next(at, release, out),
            Input::MessageLoss(loss) => self.apply_loss(at, loss, out),
            Input::Resolve(resolve) => self.resolve(resolve, out),
            Input::QueryStatus(query) => {
                self.orders.find(query.order).is_some_and(|slot| self.query_status(at, slot, out))
            }
            Input::Reconcile(reconcile) => self.query_all_statuses(at, reconcile, out),
            Input::CancelScope(cancel) => self.cancel_scope(at, cancel, out),
            Input::EnterOrder(enter) => self.enter_order(at, enter, out),
            Input::EnterFill(enter) => self.enter_fill(at, enter, out),
            Input::EnterPosition(enter) => self.enter_position(enter),
            Input::GapTimer(_) => self.check_gaps(at, out),
            Input::ExpiryTimer(_) => self.end_due_orders(at, out),
            Input::DayEnd(_) => self.end_day(out),
            Input::TriggerFired(fired) => self.apply_trigger(at, fired, out),
            // Only journal readers use it.
            Input::ReportDetail(_) => true,
            Input::Request { .. } | Input::Report(_) => false,
        };
        self.counts.ignored += u64::from(!is_accepted);
    }

    /// Applies a start of the OMS. After another boot of the host, stamps cannot be compared with earlier ones.
    fn boot(&mut self, at: At, boot: &Boot) -> bool {
        if boot.ticks_per_second == 0 || !self.ids.begin_epoch(boot.epoch) {
            return false;
        }
        let is_another_boot = self.clock.start(boot, at.stamp);
        self.trading.kill(&KillSwitch { scope: KILL_DISK, on: 0, ..KillSwitch::default() });
        if is_another_boot {
            self.trading.close_windows();
            self.gaps.iter_mut().for_each(|gap| gap.since = 0);
            self.mark_waiting_sent();
            self.doubt_armed_orders();
            self.mark_possible_retries();
        }
        true
    }

    /// Defines an instrument. Another contract size changes the value of open orders, so all values are computed anew.
    fn define_instrument(&mut self, instrument: &Instrument) -> bool {
        let before = self.trading.contract_size(instrument.symbol);
        let is_accepted = self.trading.define_instrument(instrument);
        if is_accepted && before != self.trading.contract_size(instrument.symbol) {
            self.recount(false);
        }
        is_accepted
    }

    /// Sets an account's limits, and rebuilds the self-match book if self-match prevention was turned on or off.
    fn define_account(&mut self, limits: &AccountLimits) -> bool {
        let before = self.trading.prevents_self_match(limits.account);
        let is_accepted = self.trading.define_account(limits);
        if before != self.trading.prevents_self_match(limits.account) {
            self.rebuild_self_match();
        }
        is_accepted
    }

    fn limit_symbol(&mut self, limits: &SymbolLimits) -> bool {
        let fits = limits.account.0 < ID_LIMIT && limits.symbol.0 < ID_LIMIT;
        if fits {
            self.positions.set_limits(limits);
            self.trading.has_optional_limits = true;
        }
        fits
    }

    fn end_definition(&mut self, ended: &DefinitionEnd) -> bool {
        match RecordKind::from_code(ended.kind) {
            Some(RecordKind::Instrument) => self.trading.end_instrument(ended.id),
            Some(RecordKind::Account) => self.trading.end_account(ended.id),
            Some(RecordKind::Venue) => {
                u16::try_from(ended.id).is_ok_and(|venue| self.venues.define(&VenueRules::of(VenueId(venue))))
            }
            Some(RecordKind::Reject) => self.retries.remove_rule(ended.id, ended.session),
            Some(RecordKind::Session) => self.trading.end_session(ended.session),
            Some(RecordKind::Grant) => self.trading.end_grant(ended.session, ended.id),
            Some(RecordKind::SymbolLimits) => {
                self.positions.end_limits(AccountId(ended.session.into()), SymbolId(ended.id))
            }
            Some(RecordKind::Firm) => self.trading.end_firm(),
            _ => false,
        }
    }

    fn kill(&mut self, at: At, kill: &KillSwitch, out: &mut Outputs) -> bool {
        // No command declares a failed disk sound.
        let is_accepted = (kill.scope != KILL_DISK || kill.on != 0) && self.trading.kill(kill);
        if is_accepted && kill.scope == KILL_DISK {
            self.refuse_waiting(out);
            self.deny_all_armed(out);
        }
        if is_accepted && kill.on != 0 && kill.cancel != 0 {
            self.cancel_all(at, None, out, cancel_filter(kill.scope, kill.target));
        }
        is_accepted
    }

    /// Notes whether a venue can be reached. A venue that is back is asked for each order that is or was put in doubt.
    fn apply_venue_connection(&mut self, at: At, connection: &VenueConnection, out: &mut Outputs) -> bool {
        if connection.venue.0 >= VENUE_LIMIT {
            return false;
        }
        let venue = self.venues.get(connection.venue);
        let was_up = std::mem::replace(&mut venue.is_up, connection.up != 0);
        if !was_up && connection.up != 0 {
            self.for_each_open(connection.venue, |core, slot| {
                let order = core.orders.get(slot);
                if order.phase.is_unknown() || order.marks & IN_DOUBT != 0 {
                    core.query_status(at, slot, out);
                }
            });
        }
        true
    }

    fn apply_session_connection(&mut self, at: At, connection: &SessionConnection, out: &mut Outputs) -> bool {
        if connection.up == 0 && self.trading.rules(connection.session).cancel_on_disconnect != 0 {
            self.cancel_all(at, None, out, CancelFilter::Session(connection.session.into()));
        }
        true
    }
}
