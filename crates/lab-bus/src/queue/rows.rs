//! What the processes of a run wrote down.

use std::path::{Path, PathBuf};

use super::settings::Settings;
use tickpath_harness::samples::load;
use tickpath_harness::{Lab, LabError};

/// What the processes wrote down, in ticks of one clock.
pub(super) struct Rows {
    /// Of each push: called, returned.
    pub pushes: Vec<[u64; 2]>,
    pub pullers: Vec<PullerRows>,
    /// Messages of a push; the last one may have fewer.
    pub batch: u64,
    /// Messages of all pushes.
    pub sent: u64,
}

/// What one puller wrote down.
pub(super) struct PullerRows {
    /// Of each pull that gave something: called, returned, messages.
    pub pulls: Vec<[u64; 3]>,
    /// The messages' numbers, in the order in which they came.
    pub numbers: Vec<[u64; 1]>,
}

impl Rows {
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

    /// From the first push called to the last one returned; none if nothing was pushed.
    pub fn pushing(&self) -> Option<(u64, u64)> {
        Some((self.pushes.first()?[0], self.pushes.last()?[1]))
    }

    /// When the last push was called.
    pub fn last_call(&self) -> Option<u64> {
        self.pushes.last().map(|push| push[0])
    }

    /// When the last message was there; none if none came.
    pub fn last_pop(&self) -> Option<u64> {
        self.pullers.iter().filter_map(|puller| puller.pulls.last()).map(|pull| pull[1]).max()
    }

    /// When each push returned, and its messages.
    pub fn pushed(&self) -> impl Iterator<Item = (u64, u64)> {
        let messages = move |first: u64| self.batch.min(self.sent.saturating_sub(first));
        (0..).zip(&self.pushes).map(move |(index, push)| (push[1], messages(index * self.batch)))
    }

    /// Messages that were there at a moment.
    pub fn pulled_until(&self, moment: u64) -> u64 {
        let pulls = self.pullers.iter().flat_map(|puller| &puller.pulls);
        pulls.filter(|pull| pull[1] <= moment).map(|pull| pull[2]).sum()
    }
}

impl PullerRows {
    /// When each pull returned, and its messages.
    pub fn pulled(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pulls.iter().map(|pull| (pull[1], pull[2]))
    }
}

/// Where the pusher writes down its calls.
pub(super) fn pusher_file(lab: &Lab<'_>) -> PathBuf {
    lab.folder().join("queue-pusher")
}

/// Where a puller writes down its calls; beside it lie the numbers.
pub(super) fn puller_file(lab: &Lab<'_>, index: usize) -> PathBuf {
    lab.folder().join(format!("queue-puller{index}"))
}

/// Where it writes down the numbers of its messages.
pub(super) fn numbers_file(puller_file: &Path) -> PathBuf {
    puller_file.with_extension("numbers")
}
