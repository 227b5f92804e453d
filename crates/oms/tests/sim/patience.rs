//! Silent venues, and the time that an OMS needs to notice them.
//!
//! ```text
//!   silent ── time ──> every order whose venue owes an answer is in doubt ── the venue speaks again ── time ──> known again
//!   a lost fill that no answer is owed for ── the client cancels ──> refused, in doubt, asked for ──> known again
//! ```

use tickpath_market::OrderId;
use tickpath_orders::{Inquire, OrderView, RecordKind};

use crate::plan::Dice;
use crate::rule::{Checked, broken};
use crate::silence::Silence;
use crate::world::{SECOND, World};

/// Passes of time after which a silent venue's orders are in doubt, however many they are.
const DOUBT_PASSES: usize = 32;
/// Passes of time that are longer than the longest pause between two questions: 32 s.
const ANSWER_PASSES: usize = 16;
/// Simulated time of one pass: longer than a venue may take to answer.
const PASS_NS: u64 = 4 * SECOND;
/// Turns in which an idle OMS looks for answers at least once.
const LOOKS: u64 = 40;
/// Times that the operator asks for orders of which nobody is owed an answer: its lane may be full.
const QUESTIONS: usize = 8;

impl World {
    /// A venue falls silent or speaks again, where the OMS expects answers.
    pub fn fall_silent(&mut self, dice: &mut Dice) {
        if self.host.config.desk.watch.is_empty() || !dice.one_in(2) {
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
        self.tell(|| format!("      venue {at} is silent: {is_silent}"));
    }

    /// Returns whether any venue is silent.
    pub fn is_silent(&self) -> bool {
        self.lines.iter().any(|line| line.silence.is_some())
    }

    /// Lets time pass until each order that waits for a silent venue is in doubt; then the venues speak again, and each order
    /// ends as its venue has it, without an operator.
    pub fn outlast_silence(&mut self) -> Checked {
        if self.host.config.desk.watch.is_empty() {
            return Ok(());
        }
        if self.is_silent() {
            self.await_doubts()?;
            self.lines.iter_mut().for_each(|line| line.silence = None);
            self.tally.count("silences outlasted");
        }
        self.await_answers()?;
        self.cancel_misheard()?;
        let Some(oms) = self.host.sequencer() else { return Ok(()) };
        self.oracle.check_unheard(oms.core())
    }

    fn await_doubts(&mut self) -> Checked {
        for _ in 0..DOUBT_PASSES {
            if !self.is_owed(true) {
                return Ok(());
            }
            self.pass()?;
        }
        broken("a silent venue's orders are in doubt", "a request has no answer, and its order is not in doubt")
    }

    fn await_answers(&mut self) -> Checked {
        for _ in 0..ANSWER_PASSES {
            if !self.is_owed(false) {
                return Ok(());
            }
            self.pass()?;
        }
        // Orders that their venue has forgotten stay in doubt.
        Ok(())
    }

    /// Lets time pass in which an idle OMS looks for answers.
    fn pass(&mut self) -> Checked {
        self.host.clock.advance(PASS_NS);
        self.turns(LOOKS, 0)?;
        self.calm()
    }

    /// Returns whether a venue owes an answer; with `to_requests_alone`, one to another request than a question.
    fn is_owed(&mut self, to_requests_alone: bool) -> bool {
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

    /// A fill of a resting order is owed to nobody, so its loss shows only when something is asked of the order: clients
    /// cancel such orders. An operator asks for those whose cancel the OMS has denied.
    fn cancel_misheard(&mut self) -> Checked {
        let misheard = self.misheard();
        if misheard.is_empty() {
            return Ok(());
        }
        self.tally.add("orders of which a silent venue had more to report", misheard.len() as u64);
        self.oracle.unheard.forget_cancels();
        for (_, view) in &misheard {
            let client = usize::from(view.session);
            let cancel = self.clients[client].cancel_of(view);
            self.send(client, &cancel);
        }
        self.calm()?;
        self.await_answers()?;
        let still = self.misheard();
        if let Some((_, view)) = still.iter().find(|(name, _)| self.oracle.unheard.is_canceled(*name)) {
            return broken("an order whose cancel is refused is asked for", format!("{view:?}"));
        }
        for _ in 0..QUESTIONS {
            let rest = self.misheard();
            if rest.is_empty() {
                return Ok(());
            }
            self.tally.add("questions after orders whose cancel was denied", rest.len() as u64);
            for (_, OrderView { id: OrderId(order), .. }) in rest {
                self.operator.say(&self.host.clock, RecordKind::Inquire, &Inquire { order, ..Inquire::default() });
            }
            self.calm()?;
            self.await_answers()?;
        }
        Ok(())
    }

    fn misheard(&mut self) -> Vec<(u64, OrderView)> {
        let Some(oms) = self.host.sequencer() else { return Vec::new() };
        self.oracle.misheard(oms.core())
    }
}
