//! Read-only queries: orders, positions, venues and counts, and the open orders as a list in pages. A page costs the
//! core's thread the same for any number of open orders.

use tickpath_market::{AccountId, ClientOrderId, OrderId, Request, SymbolId, VenueId};

use crate::core::Core;
use crate::counts::CoreCounts;
use crate::order::Order;
use crate::unknown_reports::UnknownOrderReport;
use crate::{Digest, Instrument, OrderView, PositionView};

/// Max open orders that one page visits, whether or not the user may see them.
const MAX_VISITED: usize = 1024;
/// Max slots that one page searches for open orders, at 8192 slots per kilobyte of bits.
const MAX_SEARCHED_SLOTS: u32 = 1 << 18;

/// Page of the open orders, by ascending id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPage {
    /// The orders.
    pub orders: Vec<OrderView>,
    /// The order after which the next page begins; none on the last page.
    pub next: Option<OrderId>,
    /// Number of open orders that the page visited, at most 1024.
    pub visited: usize,
}

impl Core {
    /// Returns an order by the core's id. A request denied on arrival has no view: only its client id is kept.
    pub fn order(&self, id: OrderId) -> Option<OrderView> {
        self.orders.find(id.0).map(|slot| self.orders.get(slot).view())
    }

    /// Returns the symbol of an order by its session's own id.
    pub fn symbol_of(&self, session: u16, original: ClientOrderId) -> Option<SymbolId> {
        self.orders.find_by_client(session, original.0).map(|slot| self.orders.get(slot).symbol)
    }

    /// Returns an order by its session's own id.
    pub fn order_of(&self, session: u16, original: ClientOrderId) -> Option<OrderView> {
        self.orders.find_by_client(session, original.0).map(|slot| self.orders.get(slot).view())
    }

    /// Returns an order by the id under which it was sent to the venue.
    pub fn order_by_venue_id(&self, venue: VenueId, sent_as: u64) -> Option<OrderView> {
        self.find_by_venue_id(venue, sent_as, 0).map(|slot| self.orders.get(slot).view())
    }

    /// Returns the open orders, by ascending id.
    pub fn open_orders(&self) -> impl Iterator<Item = OrderView> + '_ {
        self.orders.open_orders().map(Order::view)
    }

    /// Returns all orders in memory, open or done, by ascending id.
    pub fn all_orders(&self) -> impl Iterator<Item = OrderView> + '_ {
        self.orders.iter().map(Order::view)
    }

    /// Returns the next page of the open orders whose accounts `sees` accepts: at most `limit` after the order `after`,
    /// or from the first one. A page may hold fewer orders, or none, without being the last.
    ///
    /// An order keeps its place in the list while other orders come and go, even over the end of a day.
    pub fn open_page(&self, after: Option<OrderId>, limit: usize, sees: impl Fn(AccountId) -> bool) -> OpenPage {
        let (end, limit) = (self.orders.len(), limit.max(1));
        let mut from = after.map_or(0, |order| self.orders.slot_after(order.0));
        let until = from.saturating_add(MAX_SEARCHED_SLOTS).min(end);
        let (mut orders, mut visited, mut latest) = (Vec::with_capacity(limit.min(MAX_VISITED)), 0, None);
        while orders.len() < limit && visited < MAX_VISITED {
            let Some(slot) = self.orders.next_open(from, until) else {
                from = until;
                break;
            };
            (from, visited) = (slot + 1, visited + 1);
            let order = self.orders.get(slot);
            // Consecutive orders often have the same account.
            let is_seen = match latest {
                Some((account, is_seen)) if account == order.account => is_seen,
                _ => sees(order.account),
            };
            latest = Some((order.account, is_seen));
            if is_seen {
                orders.push(order.view());
            }
        }
        let next = (from < end).then(|| from.checked_sub(1)).flatten().map(|slot| OrderId(self.orders.get(slot).id));
        OpenPage { orders, next, visited }
    }

    /// Returns the number of orders, groups and accounts that mass cancels have visited since this core was created:
    /// the cost of those cancels. The count is no part of the state.
    pub fn mass_cancel_visits(&self) -> u64 {
        self.orders.open.visited
    }

    /// Returns the number of orders, cancels, replaces, fills and denied ids in memory: memory grows with their sum.
    pub fn item_count(&self) -> u64 {
        self.orders.item_count()
    }

    /// Returns the digest of all outputs so far.
    pub fn digest(&self) -> Digest {
        self.output_digest.0
    }

    /// Returns an instrument, if it is defined.
    pub fn instrument(&self, symbol: SymbolId) -> Option<&Instrument> {
        self.trading.instrument_of(symbol)
    }

    /// Returns the position of an account in a symbol; flat if the account never traded the symbol.
    pub fn position(&self, account: AccountId, symbol: SymbolId) -> PositionView {
        self.positions.find(account, symbol).map(|slot| *self.positions.get(slot)).unwrap_or_default()
    }

    /// Returns the positions per account and symbol, in the order of their creation.
    pub fn positions(&self) -> impl Iterator<Item = (AccountId, SymbolId, PositionView)> + '_ {
        self.positions.iter()
    }

    /// Returns the kept reports of unknown orders, oldest first.
    pub fn unknown_order_reports(&self) -> Vec<UnknownOrderReport> {
        self.unknown_reports.list()
    }

    /// Returns the number of kept reports of unknown orders.
    pub fn unknown_order_report_count(&self) -> usize {
        self.unknown_reports.len()
    }

    /// Returns the kill switches that are on: scope, coded as in [`KillSwitch::scope`](crate::KillSwitch::scope), and
    /// target.
    pub fn kills(&self) -> impl Iterator<Item = (u8, u32)> + '_ {
        self.trading.kills()
    }

    /// Returns the order counts by state and the alarm counts.
    pub fn counts(&self) -> CoreCounts {
        self.counts
    }

    /// Returns the epoch of the last start; zero before the first.
    pub fn epoch(&self) -> u64 {
        self.ids.epoch
    }

    /// Returns the number of requests that wait for a venue.
    pub fn waiting(&self, venue: VenueId) -> usize {
        self.venues.find(venue).map_or(0, |venue| venue.waiting.len())
    }

    /// Returns whether a venue can be reached, by the latest [`VenueConnection`](crate::VenueConnection) record.
    pub fn is_up(&self, venue: VenueId) -> bool {
        self.venues.find(venue).is_none_or(|venue| venue.is_up)
    }

    /// Returns the next request to leave for a venue, with its order's id; none if nothing waits or the venue is down.
    pub fn next_waiting(&self, venue: VenueId) -> Option<(OrderId, Request)> {
        let waiting = self.venues.front(venue)?;
        Some((OrderId(self.orders.get(waiting.order).id), waiting.request))
    }

    /// Returns the tick from which the next waiting request's age counts; none if nothing waits or the venue is down.
    pub fn waiting_since(&self, venue: VenueId) -> Option<u64> {
        self.venues.front(venue).map(|waiting| waiting.sent)
    }

    /// Returns whether any venue is down or has requests waiting for it.
    #[inline]
    pub fn has_blocked_venue(&self) -> bool {
        self.venues.iter().any(|venue| !venue.sends_at_once())
    }

    /// Converts ticks to nanoseconds at the rate of the last boot.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        self.clock.ns(ticks)
    }

    /// Returns the durability level of a session.
    pub fn durability_level(&self, session: u16) -> u8 {
        self.trading.rules(session).level
    }
}
