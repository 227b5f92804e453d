//! Silent venues, and the time that an OMS needs to detect them.
//!
//! ```text
//!   silent ── time ──> every order with an outstanding answer is in doubt ── venue responds ── time ──> state known
//!   a lost fill without an outstanding answer ── client cancels ──> rejected, in doubt, queried ──> state known
//! ```

use tickpath_market::OrderId;
use tickpath_oms_core::{OrderView, QueryStatus, RecordKind};

use crate::plan::Dice;
use crate::rule::{RuleCheck, broken};
use crate::silence::Silence;
use crate::world::{SECOND, World};

/// Passes after which a silent venue's orders are in doubt, however many they are.
const DOUBT_PASSES: usize = 32;
/// Passes that are longer than the longest pause between two questions: 32 s.
const ANSWER_PASSES: usize = 16;
/// Simulated time of one pass: longer than a venue's answer may take.
const PASS_NS: u64 = 4 * SECOND;
/// Turns in which an idle OMS checks for answers at least once.
const CHECK_TURNS: u64 = 40;
/// Attempts of the operator to query orders without an outstanding answer: its lane may be full.
const QUESTIONS: usize = 8;

impl World {
    /// Silences a venue or ends its silence, if the OMS expects answers.
    pub fn fall_silent(&mut self, dice: &mut Dice) {
        if self.host.config.trading.expectations.is_empty() || !dice.one_in(2) {
            return;
        }
        let at = dice.place(self.lines.len());
        let silence = &mut self.lines[at].silence;
        *silence = match silence.take() {
            Some(_) => None,
            None => Some(Silence::draw(dice)),
        };
        let is_silent = silence.is_some();
        self.tally.count(if is_silent { "venues silent" } else { "venues that speak again" });
        self.log_event(|| format!("      venue {at} is silent: {is_silent}"));
    }

    /// Returns whether any venue is silent.
    pub fn is_silent(&self) -> bool {
        self.lines.iter().any(|line| line.silence.is_some())
    }

    /// Advances the time until each order that waits for a silent venue is in doubt. Then the venues respond again, and
    /// each order ends as at its venue, without an operator.
    pub fn outlast_silence(&mut self) -> RuleCheck {
        if self.host.config.trading.expectations.is_empty() {
            return Ok(());
        }
        if self.is_silent() {
            self.await_doubts()?;
            self.lines.iter_mut().for_each(|line| line.silence = None);
            self.tally.count("silences outlasted");
        }
        self.await_answers()?;
        self.cancel_with_lost_fills()?;
        let Some(oms) = self.host.sequencer() else { return Ok(()) };
        self.oracle.check_silent_losses(oms.core())
    }

    fn await_doubts(&mut self) -> RuleCheck {
        for _ in 0..DOUBT_PASSES {
            if !self.is_answer_outstanding(true) {
                return Ok(());
            }
            self.pass()?;
        }
        broken("a silent venue's orders are in doubt", "a request has no answer, and its order is not in doubt")
    }

    fn await_answers(&mut self) -> RuleCheck {
        for _ in 0..ANSWER_PASSES {
            if !self.is_answer_outstanding(false) {
                return Ok(());
            }
            self.pass()?;
        }
        // Orders that their venue has forgotten stay in doubt.
        Ok(())
    }

    /// Advances the time while an idle OMS checks for answers.
    fn pass(&mut self) -> RuleCheck {
        self.host.clock.advance(PASS_NS);
        self.turns(CHECK_TURNS, 0)?;
        self.quiesce()
    }

    /// Returns whether an answer of a venue is outstanding; with `to_requests_alone`, answers to questions do not
    /// count.
    fn is_answer_outstanding(&mut self, to_requests_alone: bool) -> bool {
        let Some(oms) = self.host.sequencer() else { return false };
        let (core, mut from) = (oms.core(), 0);
        loop {
            let (found, next) = core.next_unanswered(from, u32::MAX);
            let Some(found) = found else { return false };
            if core.is_up(found.venue) && (found.request != 0 || !to_requests_alone) {
                return true;
            }
            from = next;
        }
    }

    /// Cancels, by their clients, the resting orders with a lost fill: no answer is outstanding for such a fill, so the
    /// loss shows only on a later request. An operator queries the orders whose cancel the OMS has denied.
    fn cancel_with_lost_fills(&mut self) -> RuleCheck {
        let misheard = self.orders_with_lost_fills();
        if misheard.is_empty() {
            return Ok(());
        }
        self.tally.add("orders of which a silent venue had more to report", misheard.len() as u64);
        self.oracle.silent_losses.forget_cancels();
        for (_, view) in &misheard {
            let client = usize::from(view.session);
            let cancel = self.clients[client].cancel_of(view);
            self.send(client, &cancel);
        }
        self.quiesce()?;
        self.await_answers()?;
        let still = self.orders_with_lost_fills();
        if let Some((_, view)) = still.iter().find(|(name, _)| self.oracle.silent_losses.is_canceled(*name)) {
            return broken("an order whose cancel is refused is asked for", format!("{view:?}"));
        }
        for _ in 0..QUESTIONS {
            let rest = self.orders_with_lost_fills();
            if rest.is_empty() {
                return Ok(());
            }
            self.tally.add("questions after orders whose cancel was denied", rest.len() as u64);
            for (_, OrderView { id: OrderId(order), .. }) in rest {
                self.operator.send(
                    &self.host.clock,
                    RecordKind::QueryStatus,
                    &QueryStatus { order, ..QueryStatus::default() },
                );
            }
            self.quiesce()?;
            self.await_answers()?;
        }
        Ok(())
    }

    fn orders_with_lost_fills(&mut self) -> Vec<(u64, OrderView)> {
        let Some(oms) = self.host.sequencer() else { return Vec::new() };
        self.oracle.orders_with_lost_fills(oms.core())
    }
}
