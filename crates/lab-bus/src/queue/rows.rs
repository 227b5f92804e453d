//! The rows that the processes of a run record.

use std::path::{Path, PathBuf};

use super::settings::Settings;
use tickpath_lab_harness::samples::load;
use tickpath_lab_harness::{Lab, LabError};

/// Recorded rows of all processes, in ticks of the same clock.
pub(super) struct RecordedRows {
    /// Each push: called, returned.
    pub pushes: Vec<[u64; 2]>,
    pub pullers: Vec<PullerRows>,
    /// Messages per push; the last push may have fewer.
    pub batch: u64,
    /// Messages of all pushes.
    pub sent: u64,
}

/// Recorded rows of a puller.
pub(super) struct PullerRows {
    /// Each pull that returned messages: called, returned, messages.
    pub pulls: Vec<[u64; 3]>,
    /// The messages' numbers, in order of arrival.
    pub numbers: Vec<[u64; 1]>,
}

impl RecordedRows {
    pub fn load(lab: &Lab<'_>, settings: &Settings, sent: u64) -> Result<Self, LabError> {
        let puller = |index: usize| -> Result<PullerRows, LabError> {
            let file = puller_file(lab, index);
            Ok(PullerRows { pulls: load::<3>(&file)?, numbers: load::<1>(&numbers_file(&file))? })
        };
        Ok(Self {
            pushes: load::<2>(&pusher_file(lab))?,
            pullers: (0..settings.pullers).map(puller).collect::<Result<Vec<_>, _>>()?,
            batch: settings.pipeline as u64,
            sent,
        })
    }

    /// Returns the times of the first push's call and the last push's return; `None` if nothing was pushed.
    pub fn push_interval(&self) -> Option<(u64, u64)> {
        Some((self.pushes.first()?[0], self.pushes.last()?[1]))
    }

    pub fn last_call(&self) -> Option<u64> {
        self.pushes.last().map(|push| push[0])
    }

    /// Returns the arrival time of the last message; `None` if none arrived.
    pub fn last_pop(&self) -> Option<u64> {
        self.pullers.iter().filter_map(|puller| puller.pulls.last()).map(|pull| pull[1]).max()
    }

    /// Returns each push's return time and number of messages.
    pub fn push_counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let messages = move |first: u64| self.batch.min(self.sent.saturating_sub(first));
        (0..).zip(&self.pushes).map(move |(index, push)| (push[1], messages(index * self.batch)))
    }

    /// Returns the number of messages that were pulled by `moment`.
    pub fn pulled_until(&self, moment: u64) -> u64 {
        let pulls = self.pullers.iter().flat_map(|puller| &puller.pulls);
        pulls.filter(|pull| pull[1] <= moment).map(|pull| pull[2]).sum()
    }
}

impl PullerRows {
    /// Returns each pull's return time and number of messages.
    pub fn pull_counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pulls.iter().map(|pull| (pull[1], pull[2]))
    }
}

pub(super) fn pusher_file(lab: &Lab<'_>) -> PathBuf {
    lab.folder().join("queue-pusher")
}

/// Returns the file of a puller's calls; the file of the numbers is beside it.
pub(super) fn puller_file(lab: &Lab<'_>, index: usize) -> PathBuf {
    lab.folder().join(format!("queue-puller{index}"))
}

pub(super) fn numbers_file(puller_file: &Path) -> PathBuf {
    puller_file.with_extension("numbers")
}
