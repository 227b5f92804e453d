//! The reconciliation of a connect: the open orders at OKX, and the fills since the last connection was alive.

use std::collections::HashSet;

use crate::connect_check::{CheckFailure, ConnectCheck};
use crate::fill_row::{FillRow, sort_by_time};
use crate::order_ledger::OrderLedger;
use crate::order_update::OrderUpdate;
use crate::page_walk::PageWalk;
use crate::signed_rest::{RestFailure, SignedRest};

/// Lists that a connect reads.
#[derive(Debug)]
pub(crate) struct Reconciliation {
    /// Checks before the lists; none once they are done.
    checks: Option<ConnectCheck>,
    open_orders: PageWalk<OrderUpdate>,
    /// None if no time is known from which fills can be missing: then the OMS asks for each of its open orders.
    fills: Option<PageWalk<FillRow>>,
    found: Option<Vec<OrderUpdate>>,
    /// Orders whose rows have arrived meanwhile: their states in the list may be older.
    changed: HashSet<u64>,
}

impl Reconciliation {
    /// Begins with these checks, and reads the lists; `since_ns` is OKX's time from which fills can be missing.
    pub fn begin(checks: ConnectCheck, since_ns: Option<u64>) -> Self {
        let fills = since_ns.map(PageWalk::of_fills_since);
        Self {
            checks: Some(checks),
            open_orders: PageWalk::of_open_orders(),
            fills,
            found: None,
            changed: HashSet::new(),
        }
    }

    /// Returns the number of pages that have arrived of the lists that are not complete.
    pub fn pages(&self) -> usize {
        self.open_orders.pages() + self.fills.as_ref().map_or(0, PageWalk::pages)
    }

    /// Notes that a row about an order has arrived.
    pub fn note_change(&mut self, order: u64) {
        self.changed.insert(order);
    }

    /// Takes the next step. Returns the open orders once all is read, and reports the fills that were missed.
    pub fn advance(
        &mut self,
        rest: &mut SignedRest,
        ledger: &mut OrderLedger,
    ) -> Result<Option<Vec<OrderUpdate>>, String> {
        let done = match &mut self.checks {
            None => self.step(rest, ledger),
            Some(checks) => match checks.advance(rest, &ledger.instruments) {
                Ok(is_done) => {
                    self.checks.take_if(|_| is_done);
                    Ok(None)
                }
                Err(CheckFailure::Wrong(sentence)) => return Err(sentence),
                Err(CheckFailure::Rest(failure)) => Err(failure),
            },
        };
        done.or_else(|failure| match &failure {
            RestFailure::Passing(_) => rest.give_up(&failure).map_or(Ok(None), Err),
            RestFailure::Refused { text, .. } => Err(format!("OKX refuses to list the orders: {text}")),
            RestFailure::Absent => Err("OKX has no list of the orders; check the address of REST".to_owned()),
        })
    }

    fn step(
        &mut self,
        rest: &mut SignedRest,
        ledger: &mut OrderLedger,
    ) -> Result<Option<Vec<OrderUpdate>>, RestFailure> {
        if self.found.is_none() {
            self.found = self.open_orders.advance(rest, ledger)?;
            return Ok(None);
        }
        if let Some(walk) = &mut self.fills {
            let Some(mut fills) = walk.advance(rest, ledger)? else { return Ok(None) };
            self.fills = None;
            sort_by_time(&mut fills);
            for row in &fills {
                ledger.apply_fill(row, None, None);
            }
        }
        let mut found = self.found.take();
        if let Some(found) = &mut found {
            found.retain(|state| !self.changed.contains(&state.order));
        }
        Ok(found)
    }
}
