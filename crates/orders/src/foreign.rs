//! Reports of orders that are not known here: entered elsewhere, or lost with the end of a journal, or forgotten.
//!
//! Each is kept, as an input of the journal and in the snapshot, until an admin enters its order; then it is taken as if it
//! came now. From then on the venue's name of that order is known here, and what it says and what it is told goes by it.
//! What is never joined is listed, and forgotten after some days.

use std::collections::BTreeMap;

use tickpath_market::{ClientOrderId, ExecutionReport, VenueId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::core::{At, Core};
use crate::order::{ENTERED, Order};
use crate::reports::Said;
use crate::snapshot::{Load, Save, SnapshotError};
use crate::state::Phase;
use crate::{OrderView, Outputs, ReportRecord};

/// Reports that are kept at once; what comes above it is counted as a stranger, and not kept.
const MOST: usize = 1 << 16;
/// Ends of days after which a report that was not joined is forgotten.
const DAYS: u32 = 5;

/// A report of an order that is not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// The journal sequence of the report.
    pub sequence: u64,
    /// As the venue said it.
    pub record: ReportRecord,
}

/// What is known of foreign orders.
#[derive(Default)]
pub(crate) struct Foreigners {
    kept: BTreeMap<Key, Kept>,
    /// The orders here, by what their venues call them.
    ours: BTreeMap<Name, u64>,
    /// What venues call the orders here.
    theirs: BTreeMap<u64, u64>,
}

/// What tells a report from another one: venue, its two names of the order, number, execution, type, status.
type Key = (u16, u64, u64, u64, u64, u8, u8);

/// How a venue calls an order: by what it was sent as, or by the venue's own id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    venue: u16,
    is_venues_own: bool,
    id: u64,
}

/// A kept report, also in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Kept {
    sequence: u64,
    days: u32,
    reserved: u32,
    record: ReportRecord,
}

/// A [`Name`] and its order in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedName {
    id: u64,
    order: u64,
    venue: u16,
    is_venues_own: u16,
    reserved: u32,
}

impl Core {
    /// The reports of orders that are not known here, oldest first.
    pub fn foreign(&self) -> Vec<Foreign> {
        let each = |kept: &Kept| Foreign { sequence: kept.sequence, record: kept.record };
        let mut list: Vec<Foreign> = self.foreign.kept.values().map(each).collect();
        list.sort_unstable_by_key(|foreign| foreign.sequence);
        list
    }

    /// How many there are.
    pub fn foreign_count(&self) -> usize {
        self.foreign.kept.len()
    }

    /// Takes a report that names no order by our id: of one that was entered by hand, or it is kept.
    #[cold]
    pub(crate) fn stranger(&mut self, at: At, said: Said, record: &ReportRecord, out: &mut Outputs) {
        let known = self.foreign.ours(record.source.0, &record.report).filter(|&id| self.is_sent(id));
        if let Some(id) = known {
            return self.report(at, &named(record, id), out);
        }
        self.counts.strangers += 1;
        // The answer to a question after an order that is forgotten says nothing of any order.
        let says_something = !matches!(said, Said::Nothing | Said::Refused) && record.report.side != 0;
        if says_something && self.foreign.kept.len() < MOST {
            let kept = Kept { sequence: at.sequence, days: 0, reserved: 0, record: *record };
            self.foreign.kept.insert(key(record), kept);
        }
    }

    /// Takes what was kept of an order that is known now.
    pub(crate) fn join_foreign(&mut self, at: At, order: &Order, records: Vec<ReportRecord>, out: &mut Outputs) {
        for record in records {
            self.foreign.kept.remove(&key(&record));
            self.report(at, &named(&record, order.id), out);
        }
    }

    /// What the venue of an order calls it.
    #[inline]
    pub(crate) fn venues_name(&self, slot: u32, order: &Order) -> ClientOrderId {
        if order.marks & ENTERED == 0 {
            return self.again.venue_id(slot, order);
        }
        ClientOrderId(self.foreign.theirs.get(&order.id).copied().unwrap_or(order.id))
    }

    /// The order that something which was said to a venue names.
    pub(crate) fn find_said(&self, venue: u16, name: u64) -> Option<u32> {
        let entered = || self.foreign.ours.get(&Name { venue, is_venues_own: false, id: name });
        let own = self.find_order(name).filter(|&slot| self.orders.get(slot).phase != Phase::Denied);
        own.or_else(|| self.find_order(*entered()?))
    }

    /// The order that its venue was told of by this name.
    pub fn order_said(&self, venue: VenueId, name: u64) -> Option<OrderView> {
        self.find_said(venue.0, name).map(|slot| self.orders.get(slot).view())
    }

    /// Whether there is such an order, and it was ever sent.
    fn is_sent(&self, id: u64) -> bool {
        self.find_order(id).is_some_and(|slot| self.orders.get(slot).phase != Phase::Denied)
    }
}

impl Foreigners {
    /// The order here that a venue's report names.
    fn ours(&self, venue: u16, report: &ExecutionReport) -> Option<u64> {
        let names = names(venue, report.order_id.0, report.venue_order_id.0);
        names.into_iter().flatten().find_map(|name| self.ours.get(&name)).copied()
    }

    /// Whether an order here goes by one of these names.
    pub(crate) fn is_taken(&self, venue: u16, sent_as: u64, own: u64) -> bool {
        names(venue, sent_as, own).into_iter().flatten().any(|name| self.ours.contains_key(&name))
    }

    /// An order here goes by these names from now on.
    pub(crate) fn name(&mut self, order: u64, venue: u16, sent_as: u64, own: u64) {
        self.ours.extend(names(venue, sent_as, own).into_iter().flatten().map(|name| (name, order)));
        if sent_as != 0 {
            self.theirs.insert(order, sent_as);
        }
    }

    /// What is kept under these names, oldest first.
    pub(crate) fn find(&self, venue: u16, sent_as: u64, own: u64) -> Vec<ReportRecord> {
        let is_meant = |kept: &&Kept| {
            let report = &kept.record.report;
            let is_named =
                (sent_as != 0 && report.order_id.0 == sent_as) || (own != 0 && report.venue_order_id.0 == own);
            kept.record.source.0 == venue && is_named
        };
        let mut found: Vec<&Kept> = self.kept.values().filter(is_meant).collect();
        found.sort_unstable_by_key(|kept| kept.sequence);
        found.into_iter().map(|kept| kept.record).collect()
    }

    /// A day has ended: names of orders that are forgotten go, and what was kept for too long.
    pub(crate) fn end_day(&mut self, is_known: impl Fn(u64) -> bool) {
        self.ours.retain(|_, order| is_known(*order));
        self.theirs.retain(|order, _| is_known(*order));
        self.kept.retain(|_, kept| {
            kept.days += 1;
            kept.days < DAYS
        });
    }

    pub(crate) fn save(&self, save: &mut Save<'_>) {
        save.list(&self.kept.values().copied().collect::<Vec<_>>());
        let name = |(name, &order): (&Name, &u64)| SavedName {
            id: name.id,
            order,
            venue: name.venue,
            is_venues_own: name.is_venues_own.into(),
            reserved: 0,
        };
        save.list(&self.ours.iter().map(name).collect::<Vec<_>>());
    }

    pub(crate) fn load(&mut self, load: &mut Load<'_>) -> Result<(), SnapshotError> {
        self.kept = load.list::<Kept>()?.into_iter().map(|kept| (key(&kept.record), kept)).collect();
        for saved in load.list::<SavedName>()? {
            let is_venues_own = saved.is_venues_own != 0;
            self.ours.insert(Name { venue: saved.venue, is_venues_own, id: saved.id }, saved.order);
            if !is_venues_own {
                self.theirs.insert(saved.order, saved.id);
            }
        }
        Ok(())
    }
}

/// The names that a venue has for an order: what it was sent as, and its own id; zero is none.
fn names(venue: u16, sent_as: u64, own: u64) -> [Option<Name>; 2] {
    let name = |is_venues_own, id| (id != 0).then_some(Name { venue, is_venues_own, id });
    [name(false, sent_as), name(true, own)]
}

/// A report under our id of its order.
fn named(record: &ReportRecord, id: u64) -> ReportRecord {
    let order_id = tickpath_market::OrderId(id);
    ReportRecord { report: ExecutionReport { order_id, ..record.report }, ..*record }
}

fn key(record: &ReportRecord) -> Key {
    let report = &record.report;
    (
        record.source.0,
        report.order_id.0,
        report.venue_order_id.0,
        report.venue_sequence,
        report.exec_id.0,
        report.exec_type,
        report.status,
    )
}
