//! The table of lies.

use tickpath_lab_harness::LabError;

use crate::context::{CheckContext, FaultReport};
use crate::{builds, early, figures, machine, messages, orders, workloads};

/// A lie, and the function that plants it.
#[derive(Debug, Clone, Copy)]
pub struct PlantedFault {
    /// Name on the command line.
    pub name: &'static str,
    /// Transport, or variant of it; empty if there is only one.
    pub target: &'static str,
    plant: fn(&CheckContext<'_>) -> Result<FaultReport, LabError>,
}

/// All lies, in the order of the table.
pub const PLANTED_FAULTS: &[PlantedFault] = &[
    PlantedFault { name: "nothing", target: "log", plant: |stage| messages::no_fault(stage, ON_LOG) },
    PlantedFault { name: "nothing", target: "redis", plant: |stage| messages::no_fault(stage, ON_REDIS) },
    PlantedFault { name: "nothing", target: "orders", plant: orders::no_fault },
    PlantedFault { name: "dropped", target: "log", plant: |stage| messages::dropped(stage, ON_LOG) },
    PlantedFault { name: "dropped", target: "redis", plant: |stage| messages::dropped(stage, ON_REDIS) },
    PlantedFault { name: "dropped", target: "path", plant: workloads::dropped_ticks },
    PlantedFault { name: "dropped", target: "queue", plant: workloads::dropped_pushes },
    PlantedFault { name: "dropped", target: "round trip", plant: workloads::dropped_answer },
    PlantedFault { name: "doubled", target: "log", plant: |stage| messages::duplicated(stage, ON_LOG) },
    PlantedFault { name: "doubled", target: "redis", plant: |stage| messages::duplicated(stage, ON_REDIS) },
    PlantedFault { name: "swapped", target: "log", plant: |stage| messages::swapped(stage, ON_LOG) },
    PlantedFault { name: "swapped", target: "redis", plant: |stage| messages::swapped(stage, ON_REDIS) },
    PlantedFault { name: "doubled", target: "wire", plant: messages::duplicated_on_wire },
    PlantedFault { name: "swapped", target: "wire", plant: messages::swapped_on_wire },
    PlantedFault { name: "late", target: "log", plant: |stage| messages::delayed(stage, ON_LOG) },
    PlantedFault { name: "late", target: "redis", plant: |stage| messages::delayed(stage, ON_REDIS) },
    PlantedFault { name: "stalled", target: "log", plant: |stage| messages::stalled(stage, ON_LOG) },
    PlantedFault { name: "stalled", target: "redis", plant: messages::server_stalled },
    PlantedFault { name: "unanswered", target: "orders", plant: orders::unanswered },
    PlantedFault { name: "cut", target: "redis", plant: messages::connection_closed },
    PlantedFault { name: "gone", target: "redis", plant: messages::server_killed },
    PlantedFault { name: "killed", target: "log", plant: messages::process_killed },
    PlantedFault { name: "starved-publisher", target: "log", plant: machine::starved_publisher },
    PlantedFault { name: "starved-subscriber", target: "log", plant: machine::starved_subscriber },
    PlantedFault { name: "starved-oms", target: "orders", plant: orders::starved_oms },
    PlantedFault { name: "quota", target: "log", plant: machine::quota },
    PlantedFault { name: "all-stopped", target: "redis", plant: machine::all_stopped },
    PlantedFault { name: "server-stopped", target: "redis", plant: machine::server_stopped },
    PlantedFault { name: "oms-stopped", target: "orders", plant: orders::oms_stopped },
    PlantedFault { name: "venue-stopped", target: "orders", plant: orders::venue_stopped },
    PlantedFault { name: "early", target: "t2", plant: early::early_stamp },
    PlantedFault { name: "counter", target: "ahead", plant: figures::counter_ahead },
    PlantedFault { name: "counter", target: "back", plant: figures::counter_back },
    PlantedFault { name: "few-samples", target: "", plant: figures::few_samples },
    PlantedFault { name: "identical", target: "in turn", plant: builds::identical_in_turn },
    PlantedFault { name: "identical", target: "ratios", plant: builds::identical_ratios },
    PlantedFault { name: "identical", target: "files", plant: builds::identical_files },
    PlantedFault { name: "slower-tail", target: "", plant: builds::slower_tail },
];

const ON_LOG: bool = true;
const ON_REDIS: bool = false;

impl PlantedFault {
    /// Returns the lie's name for people.
    pub fn title(&self) -> String {
        if self.target.is_empty() { self.name.to_owned() } else { format!("{} ({})", self.name, self.target) }
    }

    /// Returns whether nothing is planted: a report is then a false alarm.
    pub fn plants_nothing(&self) -> bool {
        ["nothing", "identical"].contains(&self.name)
    }

    /// Plants the lie, and returns the instrument's report.
    pub fn plant(&self, stage: &CheckContext<'_>) -> Result<FaultReport, LabError> {
        (self.plant)(stage)
    }
}
