//! The table of lies.

use tickpath_lab_harness::LabError;

use crate::stage::{Finding, Stage};
use crate::{builds, early, figures, machine, messages, orders, workloads};

/// A lie, and the function that plants it.
#[derive(Debug, Clone, Copy)]
pub struct Lie {
    /// Name on the command line.
    pub name: &'static str,
    /// Transport, or variant of it; empty if there is only one.
    pub target: &'static str,
    plant: fn(&Stage<'_>) -> Result<Finding, LabError>,
}

/// All lies, in the order of the table.
pub const LIES: &[Lie] = &[
    Lie { name: "nothing", target: "log", plant: |stage| messages::nothing(stage, ON_LOG) },
    Lie { name: "nothing", target: "redis", plant: |stage| messages::nothing(stage, ON_REDIS) },
    Lie { name: "nothing", target: "orders", plant: orders::nothing },
    Lie { name: "dropped", target: "log", plant: |stage| messages::dropped(stage, ON_LOG) },
    Lie { name: "dropped", target: "redis", plant: |stage| messages::dropped(stage, ON_REDIS) },
    Lie { name: "dropped", target: "path", plant: workloads::dropped_ticks },
    Lie { name: "dropped", target: "queue", plant: workloads::dropped_pushes },
    Lie { name: "dropped", target: "round trip", plant: workloads::dropped_answer },
    Lie { name: "doubled", target: "log", plant: |stage| messages::doubled(stage, ON_LOG) },
    Lie { name: "doubled", target: "redis", plant: |stage| messages::doubled(stage, ON_REDIS) },
    Lie { name: "swapped", target: "log", plant: |stage| messages::swapped(stage, ON_LOG) },
    Lie { name: "swapped", target: "redis", plant: |stage| messages::swapped(stage, ON_REDIS) },
    Lie { name: "doubled", target: "wire", plant: messages::doubled_on_the_wire },
    Lie { name: "swapped", target: "wire", plant: messages::swapped_on_the_wire },
    Lie { name: "late", target: "log", plant: |stage| messages::late(stage, ON_LOG) },
    Lie { name: "late", target: "redis", plant: |stage| messages::late(stage, ON_REDIS) },
    Lie { name: "stalled", target: "log", plant: |stage| messages::stalled(stage, ON_LOG) },
    Lie { name: "stalled", target: "redis", plant: messages::server_stalled },
    Lie { name: "unanswered", target: "orders", plant: orders::unanswered },
    Lie { name: "cut", target: "redis", plant: messages::cut },
    Lie { name: "gone", target: "redis", plant: messages::gone },
    Lie { name: "killed", target: "log", plant: messages::killed },
    Lie { name: "starved-publisher", target: "log", plant: machine::starved_publisher },
    Lie { name: "starved-subscriber", target: "log", plant: machine::starved_subscriber },
    Lie { name: "starved-oms", target: "orders", plant: orders::starved_oms },
    Lie { name: "quota", target: "log", plant: machine::quota },
    Lie { name: "all-stopped", target: "redis", plant: machine::all_stopped },
    Lie { name: "server-stopped", target: "redis", plant: machine::server_stopped },
    Lie { name: "oms-stopped", target: "orders", plant: orders::oms_stopped },
    Lie { name: "venue-stopped", target: "orders", plant: orders::venue_stopped },
    Lie { name: "early", target: "t2", plant: early::early },
    Lie { name: "counter", target: "ahead", plant: figures::counter_ahead },
    Lie { name: "counter", target: "back", plant: figures::counter_back },
    Lie { name: "few-samples", target: "", plant: figures::few_samples },
    Lie { name: "identical", target: "in turn", plant: builds::identical_in_turn },
    Lie { name: "identical", target: "ratios", plant: builds::identical_ratios },
    Lie { name: "identical", target: "files", plant: builds::identical_files },
    Lie { name: "slower-tail", target: "", plant: builds::slower_tail },
];

const ON_LOG: bool = true;
const ON_REDIS: bool = false;

impl Lie {
    /// Returns the lie's name for people.
    pub fn title(&self) -> String {
        if self.target.is_empty() { self.name.to_owned() } else { format!("{} ({})", self.name, self.target) }
    }

    /// Returns whether nothing is planted: a report is then a false alarm.
    pub fn plants_nothing(&self) -> bool {
        ["nothing", "identical"].contains(&self.name)
    }

    /// Plants the lie, and returns the instrument's report.
    pub fn plant(&self, stage: &Stage<'_>) -> Result<Finding, LabError> {
        (self.plant)(stage)
    }
}
