//! Jobs that ask the exchange for orders. A few are in flight at once, the others wait in their order.

use serde_json::Value;

use crate::job_query::{JobProgress, JobQuery};
use crate::list_job::ListJob;
use crate::message::Refusal;
use crate::order_job::{JobTime, OrderJob};
use crate::orders::LineOrders;

/// Max jobs that ask at once.
const MAX_ASKING: usize = 16;
/// Max jobs that wait; a status request beyond it is not taken.
const MAX_JOBS: usize = 8192;

/// Jobs of a connection, the oldest first.
#[derive(Default)]
pub(crate) struct StatusJobs {
    list: Vec<StatusJob>,
    next_id: u64,
}

/// A job.
pub(crate) struct StatusJob {
    pub(crate) id: u64,
    /// Number of the status request that it answers.
    pub(crate) number: Option<u64>,
    kind: JobKind,
    is_asking: bool,
    /// No query leaves before these ticks.
    not_before: u64,
}

/// Object of a job.
pub(crate) enum JobKind {
    Order(Box<OrderJob>),
    List(Box<ListJob>),
}

impl StatusJobs {
    /// Drops all jobs: the connection is lost.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }

    /// Returns whether one more job may wait.
    pub(crate) fn has_room(&self) -> bool {
        self.list.len() < MAX_JOBS
    }

    /// Returns whether there is no job.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a job, with the number of the status request that it answers.
    pub(crate) fn add(&mut self, number: Option<u64>, kind: JobKind) {
        self.next_id += 1;
        self.list.push(StatusJob { id: self.next_id, number, kind, is_asking: false, not_before: 0 });
    }

    /// Returns the jobs that may ask now: id, place of the instrument, query. `waits` names orders whose requests are
    /// still in flight.
    pub(crate) fn due(
        &self,
        orders: &LineOrders,
        now: u64,
        waits: impl Fn(u64) -> bool,
    ) -> Vec<(u64, usize, JobQuery)> {
        let free = MAX_ASKING.saturating_sub(self.list.iter().filter(|job| job.is_asking).count());
        let may_ask = |job: &&StatusJob| {
            let waits = matches!(&job.kind, JobKind::Order(order) if waits(order.order()));
            !job.is_asking && now >= job.not_before && !waits
        };
        let due = self.list.iter().filter(may_ask).take(free);
        due.map(|job| match &job.kind {
            JobKind::Order(order) => (job.id, order.instrument(), order.query(orders)),
            JobKind::List(list) => (job.id, list.instrument(), list.query()),
        })
        .collect()
    }

    /// Notes that the query of a job is sent.
    pub(crate) fn note_asking(&mut self, id: u64) {
        if let Some(job) = self.list.iter_mut().find(|job| job.id == id) {
            job.is_asking = true;
        }
    }

    /// Returns the status request that a job answers.
    pub(crate) fn number(&self, id: u64) -> Option<u64> {
        self.list.iter().find(|job| job.id == id)?.number
    }

    /// Passes the answer to its job; a pause ends `pause` ticks later.
    pub(crate) fn handle(
        &mut self,
        id: u64,
        outcome: &Result<Value, Refusal>,
        orders: &mut LineOrders,
        (time, pause): (JobTime, u64),
    ) -> Result<(), String> {
        let Some(place) = self.list.iter().position(|job| job.id == id) else { return Ok(()) };
        let job = &mut self.list[place];
        job.is_asking = false;
        let progress = match &mut job.kind {
            JobKind::Order(order) => order.handle(outcome, orders, time)?,
            JobKind::List(list) => list.handle(outcome, orders)?,
        };
        match progress {
            JobProgress::Continue => {}
            JobProgress::Pause => job.not_before = time.now + pause,
            JobProgress::Done => drop(self.list.remove(place)),
        }
        Ok(())
    }
}
