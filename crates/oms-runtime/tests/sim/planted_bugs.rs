//! Bugs of the world, planted to check that the simulation finds them.

use std::fs;

use tickpath_clock::Clock;
use tickpath_log::{Config as LogConfig, LogOwner, Next, Reader, ReaderStart, Registration, Writer, owner};
use tickpath_oms_core::{Instrument, RecordKind};
use tickpath_oms_runtime::{LaneKind, LanesConfig};
use zerocopy::{FromBytes, IntoBytes};

use crate::clock::SimClock;
use crate::plan::Dice;
use crate::trading_config::VENUES;

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedBug {
    /// A gateway sends each order twice.
    SentTwice,
    /// An order reaches the venue past the OMS.
    PastTheOms,
    /// Fills are dropped without a notification.
    DroppedFill,
    /// Fills are reported with a smaller quantity.
    SmallerFill,
    /// Reports of one venue arrive on the lane of another.
    WrongLane,
    /// Clients receive reports on the orders of others.
    ReportToAnother,
    /// Clients receive reports on orders that the OMS does not have.
    InventedReport,
    /// A venue confirms requests on its line that never arrived.
    FalseProof,
    /// A line leaves out a requested report.
    SkippedReport,
    /// Yesterday's empty lane lies where today's was, with a forged owner.
    ForgedLane,
    /// The journal is cut between two records while the OMS is down.
    CutJournal,
    /// The disk loses data that it reported as synced.
    DishonestDisk,
    /// The symbols swap their numbers in the journal while the OMS is down, past its refusal.
    RenamedInJournal,
}

impl PlantedBug {
    pub const ALL: [Self; 13] = [
        Self::SentTwice,
        Self::PastTheOms,
        Self::DroppedFill,
        Self::SmallerFill,
        Self::WrongLane,
        Self::ReportToAnother,
        Self::InventedReport,
        Self::FalseProof,
        Self::SkippedReport,
        Self::ForgedLane,
        Self::CutJournal,
        Self::DishonestDisk,
        Self::RenamedInJournal,
    ];
}

/// Replaces the lanes to the venues by empty lanes with the same owner; no process may have them open.
pub fn forge_lanes(lanes: &LanesConfig, clock: &SimClock) {
    for venue in VENUES {
        let lane = lanes.lane(LaneKind::VenueRequests(venue)).expect("a good name");
        let Ok(real) = owner(&lane.path) else { continue };
        lane.path.remove().expect("the lane can be removed");
        make(&LogConfig { owner: real, first_sequence: real.base, ..lane }, clock);
    }
}

/// Drops the last records of the journal; no process may have it open.
pub fn cut_journal(journal: &LogConfig, clock: &SimClock, dice: &mut Dice) {
    let Ok(mut reader) = Reader::open(&journal.path, ReaderStart::Oldest, Registration::Unregistered) else { return };
    let mut records = Vec::new();
    while let Ok(Next::Message(record)) = reader.next() {
        records.push((record.stamp, record.kind, record.payload.to_vec()));
    }
    drop(reader);
    let kept = records.len() - dice.place(records.len() / 4 + 1);
    fs::remove_dir_all(journal.path.dir()).expect("the journal can be removed");
    let mut writer = make(&LogConfig { owner: LogOwner::default(), ..journal.clone() }, clock);
    for (stamp, kind, payload) in &records[..kept] {
        writer.publish(*stamp, *kind, payload).expect("a journal takes all");
    }
}

/// Swaps the names of the two symbols in the journal's first log, which no process may have open. Snapshots are
/// removed, because they were made of the old records; a journal with a second log stays as it is.
pub fn rename_in_journal(journal: &LogConfig, clock: &SimClock) {
    let Ok(mut reader) = Reader::open(&journal.path, ReaderStart::Oldest, Registration::Unregistered) else { return };
    if reader.first_sequence() > 0 {
        return;
    }
    let mut records = Vec::new();
    while let Ok(Next::Message(record)) = reader.next() {
        let mut payload = record.payload.to_vec();
        if record.kind == RecordKind::Instrument.code()
            && let Ok(instrument) = Instrument::read_from_bytes(&payload)
        {
            let other = VENUES.len() as u32 - 1 - instrument.symbol.0;
            let name = format!("SYMBOL{other}").parse().expect("a good name");
            payload = instrument.with_name(name).as_bytes().to_vec();
        }
        records.push((record.stamp, record.kind, payload));
    }
    drop(reader);
    for entry in fs::read_dir(journal.path.dir()).expect("the journal can be read") {
        let path = entry.expect("the journal can be read").path();
        if path.is_file() {
            fs::remove_file(path).expect("the journal can be removed");
        }
    }
    let mut writer = make(&LogConfig { owner: LogOwner::default(), ..journal.clone() }, clock);
    for (stamp, kind, payload) in &records {
        writer.publish(*stamp, *kind, payload).expect("a journal takes all");
    }
}

fn make(config: &LogConfig, clock: &SimClock) -> Writer {
    Writer::open(config, clock.calibration()).expect("the log can be made")
}
