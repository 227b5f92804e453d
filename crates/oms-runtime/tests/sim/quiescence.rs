//! Coming to rest: every process is up, all messages arrive, and then all counts must agree.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_market::{Condition, OrdStatus, OrderId, Quantity, Request, Trigger};
use tickpath_oms_core::{Config as CoreConfig, Core, Input, Output, QueryStatus, RecordKind, Resolve};
use tickpath_oms_runtime::journal;

use crate::lines::SimVenueLines;
use crate::rule::{BrokenRule, RuleCheck, broken};
use crate::step_context::StepContext;
use crate::tally::Tally;
use crate::trading_config::{SESSIONS, VENUES};
use crate::world::{SECOND, World, around};

/// Max rounds: a world that is busy then never comes to rest.
const MAX_ROUNDS: usize = 1_000;
/// Rounds without work, with time passing, that count as rest.
const QUIET_ROUNDS: usize = 3;
/// Turns in which an OMS checks for lines that are away.
const CHECK_TURNS: u64 = 40;

impl World {
    /// Lets all messages arrive, and checks the OMS against the oracle. Then the operator resolves the orders that stay
    /// unknown, and the check is repeated.
    pub fn settle(&mut self) -> RuleCheck {
        self.quiesce()?;
        self.outlast_silence()?;
        self.check()?;
        let unknown = self.unknown();
        for order in &unknown {
            self.operator.send(
                &self.host.clock,
                RecordKind::QueryStatus,
                &QueryStatus { order: order.0, ..QueryStatus::default() },
            );
        }
        self.quiesce()?;
        let asked = unknown.len();
        let unknown = self.unknown();
        let explained = asked.saturating_sub(unknown.len());
        self.tally.add("unknown until the operator asked", explained as u64);
        if explained > 0 {
            return broken("the venue is asked for unknown orders", format!("{explained} orders were not asked for"));
        }
        self.resolve(&unknown);
        self.quiesce()?;
        self.check()?;
        self.check_replays()?;
        self.oracle.silent_losses.clear();
        self.tally.count("settled and checked");
        Ok(())
    }

    /// Lets all messages arrive; then the lines that are still away are given up, and the rest is reached again.
    pub fn quiesce(&mut self) -> RuleCheck {
        for _ in 0..MAX_ROUNDS {
            self.await_quiet()?;
            if !self.host.sequencer().is_some_and(|oms| oms.awaits_lines()) {
                return Ok(());
            }
            self.host.clock.advance(SECOND);
            self.turns(CHECK_TURNS, 0)?;
        }
        broken("all comes to rest", "a line that is away is still waited for")
    }

    fn await_quiet(&mut self) -> RuleCheck {
        let mut quiet = 0;
        for _ in 0..MAX_ROUNDS {
            quiet = if self.round()? == 0 { quiet + 1 } else { 0 };
            if quiet > QUIET_ROUNDS {
                return Ok(());
            }
        }
        // More orders are in doubt than a slow line can query in one pause between two questions.
        if self.is_silent() && self.awaits_answers_only() {
            self.tally.count("silent venues asked without a pause");
            return Ok(());
        }
        let waits = self.host.sequencer().map_or(0, |oms| oms.queued());
        broken("all comes to rest", format!("the world does not: {waits} requests wait"))
    }

    /// Returns whether the next request to leave is a question, at each venue with waiting requests.
    fn awaits_answers_only(&mut self) -> bool {
        let Some(oms) = self.host.sequencer() else { return false };
        let mut next = VENUES.iter().filter_map(|venue| oms.core().next_waiting(*venue));
        next.all(|(_, request)| matches!(request, Request::Status(_)))
    }

    fn round(&mut self) -> Result<usize, BrokenRule> {
        let mut done = 0;
        if self.host.has_bad_disk() {
            self.host.kill();
        }
        if !self.host.is_up() {
            self.start(0)?;
            done += 1;
        }
        self.join_all()?;
        self.report_losses()?;
        self.host.commit();
        let polled = self.host.poll(0);
        done += self.count_notices(polled)?.unwrap_or(0);
        for lines in self.lines.iter_mut().filter_map(|line| line.by.as_mut()) {
            lines.set_down(false);
            lines.set_full(false);
        }
        for line in &mut self.lines {
            done += line.forward(usize::MAX) + line.take(usize::MAX, around!(self))?;
        }
        for at in 0..self.lines.len() {
            done += self.lines[at].deliver(usize::MAX, around!(self));
        }
        for client in &mut self.clients {
            done += client.receive(around!(self))?;
        }
        if done == 0 {
            self.host.clock.advance(SECOND / 2);
            // A line reconnects after a while, and after a while gives up the requests that wait for it.
            let is_restless = self.lines.iter().any(|line| line.by.as_ref().is_some_and(SimVenueLines::is_restless));
            let waits = self.host.terms.is_some() && self.host.sequencer().is_some_and(|oms| oms.queued() > 0);
            done += usize::from(is_restless || waits);
        }
        Ok(done)
    }

    fn check(&mut self) -> RuleCheck {
        let Some(oms) = self.host.sequencer() else { return broken("the OMS keeps running", "it is away") };
        if oms.queued() > 0 || oms.held() > 0 {
            return broken("all comes to rest", format!("{} requests wait, {} are held", oms.queued(), oms.held()));
        }
        let mut remotes = self.clients.iter().filter_map(|client| client.remote.as_ref());
        remotes.try_for_each(|remote| remote.check(oms))?;
        let core = oms.core();
        self.oracle.check_reported(core)?;
        self.oracle.check_at_rest(core, &mut self.tally)?;
        self.oracle.check_exposure(core, true)?;
        let counts = core.counts();
        let is_strange = counts.unknown_order_reports > 0 && !self.oracle.had_unknown_orders();
        if counts.mismatched + counts.malformed > 0 || is_strange {
            return broken("reports are understood", format!("{counts:?}"));
        }
        self.tally.add("contradictions", u64::from(counts.contradictions > 0));
        self.oracle.rest();
        Ok(())
    }

    /// Checks that two replays, with differently laid out indices, reach the state of the OMS.
    fn check_replays(&mut self) -> RuleCheck {
        let place = self.host.config.journal.path.clone();
        let Some(oms) = self.host.sequencer() else { return Ok(()) };
        let digest = oms.core().digest();
        for key in [7, 0x1234_5678_9abc_def0] {
            let mut core = Core::new(CoreConfig { expected_orders: 64, key });
            let (mut numbers, mut checked, mut fired) = ([0; SESSIONS as usize], Ok(()), FiredOrders::default());
            let replayed = journal::replay(&place, &mut core, |input, outputs| {
                fired.note(input, outputs);
                let all = outputs.iter().filter(|output| !matches!(output, Output::Venue { .. }));
                for output in all {
                    let session = usize::from(output.session());
                    let number = numbers[session];
                    numbers[session] += 1;
                    if let (Some(remote), Ok(())) = (&self.clients[session].remote, &checked) {
                        checked = remote.check_received(number, output);
                    }
                }
            });
            if let Err(e) = replayed {
                return broken("replays agree", e.to_string());
            }
            checked?;
            fired.check(&mut self.tally)?;
            if core.digest() != digest {
                return broken("replays agree", format!("{:?}, and the OMS has {digest:?}", core.digest()));
            }
        }
        Ok(())
    }

    fn unknown(&mut self) -> Vec<OrderId> {
        let Some(oms) = self.host.sequencer() else { return Vec::new() };
        oms.core().open_orders().filter(|order| order.status == OrdStatus::Unknown).map(|order| order.id).collect()
    }

    /// Resolves orders as an operator does who has asked the venue by telephone.
    fn resolve(&mut self, orders: &[OrderId]) {
        for order in orders {
            let truth = self.oracle.state_at_venue(order.0);
            let (status, cumulative) = match truth {
                None => (OrdStatus::Rejected, 0),
                Some(truth) if truth.leaves > 0 => (OrdStatus::New, truth.cumulative),
                Some(truth) => (truth.status, truth.cumulative),
            };
            let mut resolve = Resolve {
                order: order.0,
                cumulative_quantity: Quantity(cumulative),
                status: status.code(),
                ..Resolve::default()
            };
            resolve.reason[0] = b'?';
            if self.operator.send(&self.host.clock, RecordKind::Resolve, &resolve) {
                self.tally.count("operator's resolutions");
            }
        }
    }
}

/// Triggers and line returns in the journal.
#[derive(Default)]
struct FiredOrders {
    triggers: BTreeMap<u64, Trigger>,
    fired: BTreeSet<u64>,
    wrong: Option<(&'static str, String)>,
    /// Requests that lines returned.
    given_back: u64,
}

impl FiredOrders {
    fn note(&mut self, input: &Input, outputs: &[Output]) {
        let armed = outputs.iter().find_map(|output| match output {
            Output::Report { report, .. } if report.status == OrdStatus::Armed.code() => Some(report.order_id.0),
            _ => None,
        });
        match (input, armed) {
            (Input::Request { request: Request::Conditional(new), .. }, Some(id)) => {
                self.triggers.insert(id, new.trigger);
            }
            (Input::Request { request: Request::ReplaceConditional(to), .. }, Some(id)) => {
                self.triggers.insert(id, to.trigger);
            }
            (Input::UnsentRequest(returned), _) => self.given_back += u64::from(returned.place != 0),
            (Input::TriggerFired(fired), _) => {
                let reached = |condition: Condition| {
                    (condition.symbol, condition.price_type) == (fired.symbol, fired.price_type)
                        && condition.holds(fired.price)
                };
                if !self.triggers.get(&fired.order).is_some_and(|trigger| trigger.conditions().any(reached)) {
                    self.wrong = Some(("nothing fires before its price", format!("{fired:?}")));
                }
                if !self.fired.insert(fired.order) || outputs.is_empty() {
                    self.wrong = Some(("an order fires once", format!("{fired:?}")));
                }
            }
            _ => {}
        }
    }

    fn check(self, tally: &mut Tally) -> RuleCheck {
        tally.add("orders fired", self.fired.len() as u64);
        tally.add("requests that lines gave back", self.given_back);
        self.wrong.map_or(Ok(()), |(rule, what)| broken(rule, what))
    }
}

const _: () = assert!(VENUES.len() == 2, "a report that comes on the wrong lane comes on the other one");
