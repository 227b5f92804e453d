//! Rules that hold at any time, and rules that hold at rest.

use tickpath_market::{AccountId, Condition, OrdStatus, OrderId, Side, SymbolId};
use tickpath_oms_core::{Core, OrderView};

use crate::oracle::{Oracle, VenueOrderState};
use crate::rule::{RuleCheck, broken};
use crate::tally::Tally;
use crate::trading_config::{SESSIONS, VENUES, account_of, is_for_disk};

impl Oracle {
    /// Checks, at any time, that reported orders exist in the OMS as they were reported.
    pub fn check_reported(&self, core: &Core) -> RuleCheck {
        for (&id, reported) in &self.reported {
            let view = core.order(OrderId(id));
            let is_excused =
                self.lost.contains(&id) || self.forgotten.contains(&id) || (reported.is_over && self.has_day_ended);
            let Some(view) = view else {
                if is_excused {
                    continue;
                }
                return broken(
                    "a reported order exists",
                    format!("session {} has a report of {id:x}", reported.session),
                );
            };
            let client = view.client_order_id.0;
            if view.session != reported.session || reported.client.is_some_and(|known| known != client) {
                return broken("an id is one order", format!("{id:x} is {client} of {}: {reported:?}", view.session));
            }
        }
        Ok(())
    }

    /// Checks, at any time, that the open and filled quantity at the venues lies within the exposure in the OMS.
    pub fn check_exposure(&self, core: &Core, is_at_rest: bool) -> RuleCheck {
        if self.is_amending && !is_at_rest {
            return Ok(());
        }
        for session in 0..SESSIONS {
            let may_miss_busts = self.truths.values().any(|truth| truth.session == session && truth.amendment_lost);
            if !is_at_rest && (may_miss_busts || (self.is_uncertain && !is_for_disk(session))) {
                continue;
            }
            for symbol in (0..VENUES.len() as u32).map(SymbolId) {
                self.check_position(core, account_of(session), symbol)?;
            }
        }
        Ok(())
    }

    /// Checks the position by the symbol's name, whatever its number was: a position that moves to another symbol is
    /// missing.
    fn check_position(&self, core: &Core, account: AccountId, symbol: SymbolId) -> RuleCheck {
        let Some(&name) = self.names.get(&symbol) else { return Ok(()) };
        if self.blurred.contains(&(account, name)) {
            return Ok(());
        }
        let (mut net, mut buys, mut sells) = (0_i128, 0_i128, 0_i128);
        for (id, truth) in &self.truths {
            let is_lost = self.lost.contains(&self.retries.order(*id)) || self.given_up.contains(id);
            if (truth.account, truth.name) != (account, name) || is_lost {
                continue;
            }
            // A lost try counts in its order as of its sending: the venue's later reports name an id that the OMS does
            // not know, so they are reports of a foreign order.
            let max = if self.lost.contains(id) { truth.quantity } else { i64::MAX };
            let filled = truth.cumulative.min(max);
            let (filled, open) = (i128::from(filled), i128::from(truth.leaves.min(max - filled)));
            match truth.side {
                Side::Buy => (net, buys) = (net + filled, buys + open),
                Side::Sell => (net, sells) = (net - filled, sells + open),
            }
        }
        let view = core.position(account, symbol);
        let reaches_up = net + buys <= view.net + view.working_buy;
        let reaches_down = net - sells >= view.net - view.working_sell;
        if reaches_up && reaches_down {
            return Ok(());
        }
        let what =
            format!("account {account}, {name}, number {symbol}: really {net} +{buys} -{sells}, counted {view:?}");
        broken("exposure is never understated", what)
    }

    /// Checks, at rest, that no order is armed whose trigger the market has reached.
    fn check_armed(&self, core: &Core) -> RuleCheck {
        let price = |condition: &Condition| self.prices.get(&(condition.symbol.0, condition.price_type)).copied();
        match core.armed_orders().find(|armed| armed.trigger.fires(price)) {
            Some(armed) => broken("a trigger that holds has fired", format!("{armed:?} at {:?}", self.prices)),
            None => Ok(()),
        }
    }

    /// Returns, at rest without a silent venue, the orders whose reports a venue has lost and whose state in the OMS is
    /// wrong, by their names at the venue.
    pub fn orders_with_lost_fills(&self, core: &Core) -> Vec<(u64, OrderView)> {
        let names = self.silent_losses.names().filter(|name| !self.retries.is_over(*name));
        let misheard = names.filter_map(|name| {
            let (truth, view) = (self.truths.get(&name)?, core.order(OrderId(self.retries.order(name)))?);
            let is_believed = view.leaves.0 > 0 && !matches!(view.status, OrdStatus::Unknown | OrdStatus::Armed);
            let differs = (view.cumulative.0, view.leaves.0) != (truth.cumulative, truth.leaves);
            (is_believed && differs).then_some((name, view))
        });
        misheard.collect()
    }

    /// Checks, at rest without a silent venue, that an order with a lost request or report has its venue's state,
    /// without an operator's help.
    pub fn check_silent_losses(&self, core: &Core) -> RuleCheck {
        for name in self.silent_losses.names() {
            let order = self.retries.order(name);
            let was_tried_again = order != name || self.retries.is_over(name);
            let is_gone =
                self.lost.contains(&order) || self.forgotten.contains(&order) || self.given_up.contains(&name);
            let was_amended = self.truths.get(&name).is_some_and(|truth| truth.was_amended);
            if was_tried_again || is_gone || was_amended || self.silent_losses.may_stay_in_doubt(name) {
                continue;
            }
            match core.order(OrderId(order)) {
                Some(view) if view.status == OrdStatus::Unknown => {
                    let truth = self.truths.get(&name);
                    return broken("a venue that answers ends the doubt", format!("{view:?}, and really {truth:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks, at rest, that the OMS knows the venue's state of each order, or knows that it is in doubt.
    pub fn check_at_rest(&mut self, core: &Core, tally: &mut Tally) -> RuleCheck {
        let accounted: Vec<u64> = self.truths.keys().copied().collect();
        for id in accounted {
            let order = self.retries.order(id);
            if self.lost.contains(&order) || self.forgotten.contains(&order) || self.given_up.contains(&id) {
                continue;
            }
            let Some(view) = core.order(OrderId(order)) else {
                return broken("every fill is known or in doubt", format!("order {id:x} is not known"));
            };
            if self.lost.contains(&id) && view.status != OrdStatus::Unknown {
                return broken(
                    "an order that may have been retried is in doubt",
                    format!("try {id:x} is lost: {view:?}"),
                );
            }
            if self.retries.is_over(id) {
                continue;
            }
            let truth = self.truths.get_mut(&id).expect("it was listed");
            check_order(&view, truth, tally)?;
        }
        self.check_armed(core)?;
        for view in core.open_orders() {
            let is_at_venue = self.truths.contains_key(&view.id.0);
            if !is_at_venue && !matches!(view.status, OrdStatus::Unknown | OrdStatus::Armed) {
                return broken("a lost order is in doubt", format!("no venue has heard of {view:?}"));
            }
        }
        Ok(())
    }
}

fn check_order(view: &OrderView, truth: &mut VenueOrderState, tally: &mut Tally) -> RuleCheck {
    if view.status == OrdStatus::Unknown {
        tally.count("unknown orders at rest");
        return Ok(());
    }
    if view.status == OrdStatus::Expired && truth.status != OrdStatus::Expired {
        return broken("expiry is booked when its venue has confirmed it", format!("{view:?}, and really {truth:?}"));
    }
    let is_live = view.leaves.0 > 0;
    if view.cumulative.0 != truth.cumulative {
        if !is_live && truth.amendment_lost {
            // A finished order is never put in doubt: only the venue's end of day would reveal the bust.
            tally.count("lost busts of done orders");
            truth.cumulative = view.cumulative.0;
        } else if !is_live && view.cumulative.0 < truth.cumulative && view.venue_sequence >= truth.sequence {
            // The order's end was received and a fill was not: it still counts as exposure, which has its own check.
            tally.count("ended orders that miss fills");
        } else {
            return broken("every fill is known or in doubt", format!("{view:?}, and really {truth:?}"));
        }
    }
    if view.leaves.0 != truth.leaves {
        return broken("a working order is known or in doubt", format!("{view:?}, and really {truth:?}"));
    }
    Ok(())
}
