//! Reports of unknown orders: entered elsewhere, lost with the tail of a journal, or dropped at the end of a day.
//!
//! Each report is kept, as an input of the journal and in the snapshot, until an admin enters its order. The report is
//! then applied as if it arrived now, and the order goes by an [alias](crate::aliases) at its venue. A report whose
//! order is never entered is listed, and dropped after five ends of days.

use std::collections::BTreeMap;

use tickpath_market::{ExecutionReport, VenueId};
use tickpath_oms_slots::{SnapshotError, SnapshotReader, SnapshotWriter};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::ReportRecord;

/// Max reports kept at once; further reports are counted, but not kept.
pub(crate) const MAX_REPORTS: usize = 1 << 16;
/// Number of day ends after which a kept report is dropped.
const MAX_DAYS: u32 = 5;

/// Report of an unknown order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownOrderReport {
    /// The journal sequence of the report.
    pub sequence: u64,
    /// The report as the venue sent it.
    pub record: ReportRecord,
}

#[derive(Default)]
pub(crate) struct UnknownOrderReports {
    reports: BTreeMap<ReportKey, RetainedReport>,
}

/// Identity of a report: venue, id that the order was sent under, venue order id, sequence, execution id, type, status.
type ReportKey = (VenueId, u64, u64, u64, u64, u8, u8);

/// Kept report, also the form in a snapshot.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RetainedReport {
    sequence: u64,
    days: u32,
    reserved: u32,
    record: ReportRecord,
}

impl UnknownOrderReports {
    /// Returns all kept reports, oldest first.
    pub(crate) fn list(&self) -> Vec<UnknownOrderReport> {
        let each = |kept: &RetainedReport| UnknownOrderReport { sequence: kept.sequence, record: kept.record };
        let mut list: Vec<UnknownOrderReport> = self.reports.values().map(each).collect();
        list.sort_unstable_by_key(|report| report.sequence);
        list
    }

    pub(crate) fn len(&self) -> usize {
        self.reports.len()
    }

    /// Keeps a report with its journal sequence, if there is room.
    pub(crate) fn insert(&mut self, sequence: u64, record: &ReportRecord) {
        if self.reports.len() < MAX_REPORTS {
            self.reports.insert(key(record), RetainedReport { sequence, days: 0, reserved: 0, record: *record });
        }
    }

    /// Drops a kept report whose order is known now.
    pub(crate) fn remove(&mut self, record: &ReportRecord) {
        self.reports.remove(&key(record));
    }

    /// Returns the reports kept under these ids, oldest first; one of them may reveal the id the order was sent under.
    pub(crate) fn find_by_order(&self, venue: VenueId, sent_as: u64, own: u64) -> Vec<ReportRecord> {
        let of_venue = || self.reports.values().filter(|kept| kept.record.source == venue);
        let is_own = |report: &ExecutionReport| own != 0 && report.venue_order_id.0 == own;
        let reported = of_venue().map(|kept| &kept.record.report).filter(|report| is_own(report));
        let mut ids = std::iter::once(sent_as).chain(reported.map(|report| report.order_id.0));
        let sent_as = ids.find(|&id| id != 0).unwrap_or(0);
        let matches = |kept: &&RetainedReport| {
            let report = &kept.record.report;
            (sent_as != 0 && report.order_id.0 == sent_as) || is_own(report)
        };
        let mut found: Vec<&RetainedReport> = of_venue().filter(matches).collect();
        found.sort_unstable_by_key(|kept| kept.sequence);
        found.into_iter().map(|kept| kept.record).collect()
    }

    /// Drops the reports that were kept through [`MAX_DAYS`] ends of days.
    pub(crate) fn end_day(&mut self) {
        self.reports.retain(|_, kept| {
            kept.days += 1;
            kept.days < MAX_DAYS
        });
    }

    pub(crate) fn save(&self, save: &mut SnapshotWriter<'_>) {
        save.write_list(&self.reports.values().copied().collect::<Vec<_>>());
    }

    pub(crate) fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        self.reports = load.read_list::<RetainedReport>()?.into_iter().map(|kept| (key(&kept.record), kept)).collect();
        Ok(())
    }
}

fn key(record: &ReportRecord) -> ReportKey {
    let report = &record.report;
    (
        record.source,
        report.order_id.0,
        report.venue_order_id.0,
        report.venue_sequence,
        report.exec_id.0,
        report.exec_type,
        report.status,
    )
}
