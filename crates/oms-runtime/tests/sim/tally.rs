//! Counts of all events: a fault that never occurs proves nothing.

use std::collections::BTreeMap;

use tickpath_oms_runtime::Notice;

use crate::crash_counts::CrashCounts;

/// Counts by name, and results by kind of end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    counts: BTreeMap<&'static str, u64>,
    pub ends: CrashCounts,
}

/// Events that must occur at least once in a whole run.
const MUST: &[&str] = &[
    "seeds",
    "starts",
    "settled and checked",
    "orders sent",
    "conditional orders sent",
    "other triggers sent",
    "orders fired",
    "orders refused for now",
    "tries lost with the power",
    "orders armed over a start",
    "orders that may have fired before a start",
    "kills at a tick",
    "cancels sent",
    "cancels by order id sent",
    "replaces sent",
    "status requests sent",
    "mass cancels sent",
    "bursts",
    "requests denied",
    "reports received",
    "gaps in a client's reports",
    "fills",
    "kill switches turned",
    "operator's questions",
    "rights changed",
    "limits changed",
    "symbols renumbered",
    "renumbered symbols refused",
    "operator's resolutions",
    "days ended",
    "days ended by an admin",
    "days ended before those of the venues",
    "days ended over a start",
    "days refused for lack of room",
    "kills in a day's end",
    "rolls of the history cut short",
    "rolls of the journal cut short",
    "power lost in a day's end",
    "venues silent",
    "silences outlasted",
    "requests lost in silence",
    "reports lost in silence",
    "orders of which a silent venue had more to report",
    "reports swapped",
    "reports doubled",
    "connections lost",
    "lines cut",
    "lines away for good",
    "lines back after all",
    "venues killed",
    "sockets full",
    "venues that knew what they had",
    "venues that did not",
    "requests lost on a line",
    "requests that lines gave back",
    "reports lost on a line",
    "reports asked for again",
    "requests that wait for a line",
    "requests lost on the wire",
    "reports lost on the wire",
    "fills busted or corrected",
    "kills between turns",
    "kills in a turn",
    "kills in a start",
    "kills in a stop",
    "orderly stops",
    "gateways killed",
    "clients killed",
    "disks failed",
    "commits",
    "power lost",
    "power lost with a torn tail",
    "power lost with all that was not synced",
    "power lost in pieces",
    "orders lost with the power",
    "reboots with fresh lanes",
    "reboots with stale lanes",
    "clock stepped",
    "lanes full",
    "venues' lanes full",
    "requests refused: no reader",
    "unknown orders at rest",
    "notice: the tail is lost",
    "notice: a lane is lost",
    "notice: a doubt",
    "notice: messages are gone",
    "notice: requests had not left",
    "notice: a venue is down",
    "notice: a venue is up",
    "notice: a line is down",
    "notice: a line is up",
    "notice: a line is given up",
    "notice: the disk has failed",
    "notice: a venue is silent",
    "notice: a venue does not work an open order",
];

impl Tally {
    pub fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    pub fn add(&mut self, what: &'static str, times: u64) {
        *self.counts.entry(what).or_default() += times;
    }

    pub fn notice(&mut self, notice: &Notice) {
        self.count(match notice {
            Notice::TailLost { .. } => "notice: the tail is lost",
            Notice::LaneLost { .. } => "notice: a lane is lost",
            Notice::Doubt { .. } => "notice: a doubt",
            Notice::Missed { .. } => "notice: messages are gone",
            Notice::Quarantined { .. } => "notice: a lane is set aside",
            Notice::Returned { .. } => "notice: requests had not left",
            Notice::VenueDown(_) => "notice: a venue is down",
            Notice::VenueUp(_) => "notice: a venue is up",
            Notice::DiskFailed(_) => "notice: the disk has failed",
            Notice::NotArchived(_) => "notice: a day was not archived",
            Notice::SnapshotFailed(_) => "notice: a snapshot failed",
            Notice::LineDown { .. } => "notice: a line is down",
            Notice::LineUp(_) => "notice: a line is up",
            Notice::HistoryLost(_) => "notice: there is no history",
            Notice::LineGivenUp { .. } => "notice: a line is given up",
            Notice::VenueSilent { .. } => "notice: a venue is silent",
            Notice::RefusedOpen { .. } => "notice: a venue does not work an open order",
            Notice::UnknownOrders { .. } => "notice: a venue reports too many unknown orders",
            Notice::DayEnded { .. } => "notice: a day has ended by the calendar",
            Notice::DayNotEnded { .. } => "notice: a day could not end by the calendar",
            Notice::LanesRemoved { .. } => "notice: lanes were removed",
        });
    }

    pub fn merge(&mut self, other: &Self) {
        other.counts.iter().for_each(|(what, times)| self.add(what, *times));
        self.ends.merge(&other.ends);
    }

    pub fn get(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Returns the required events that never occurred.
    pub fn missing(&self) -> Vec<&'static str> {
        MUST.iter().copied().filter(|what| self.get(what) == 0).collect()
    }

    pub fn print(&self) {
        for (what, times) in &self.counts {
            eprintln!("{times:>10}  {what}");
        }
    }
}
