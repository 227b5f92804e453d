//! `tickpath bench`: one module per workload.

pub mod clients;
mod exchange_path;
pub mod host;
pub mod measure;
pub mod orders;
pub mod path;
pub mod pipeline;
pub mod pubsub;
pub mod queue;

use tickpath_lab_harness::RoleEntry;

use crate::command::Workload;
use measure::measure;
use tickpath_cli_terminal::outcome::CliOutcome;

/// Roles of all workloads' processes; each new workload adds a line.
pub const ROLES: [&[RoleEntry]; 6] = [
    tickpath_lab_harness::ROLES,
    tickpath_lab_bus::ROLES,
    tickpath_lab_exchange::ROLES,
    tickpath_lab_path::ROLES,
    tickpath_lab_redis::ROLES,
    tickpath_lab_check::ROLES,
];

pub fn run(workload: &Workload) -> anyhow::Result<CliOutcome> {
    match workload {
        Workload::Host(args) => measure("host", &args.output, |lab, result| host::run(lab, args, result)),
        Workload::Pubsub(args) => measure("pubsub", &args.output, |lab, result| {
            args.warm.apply(lab, result, |lab, result| pubsub::run(lab, args, result))
        }),
        Workload::Queue(args) => measure("queue", &args.output, |lab, result| queue::run(lab, args, result)),
        Workload::Pipeline(args) => measure("pipeline", &args.output, |lab, result| pipeline::run(lab, args, result)),
        Workload::Clients(args) => measure("clients", &args.output, |lab, result| clients::run(lab, args, result)),
        Workload::Path(args) => measure("path", &args.output, |lab, result| {
            args.warm.apply(lab, result, |lab, result| path::run(lab, args, result))
        }),
        Workload::Orders(args) => measure("orders", &args.output, |lab, result| {
            args.warm.apply(lab, result, |lab, result| orders::run(lab, args, result))
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::ROLES;

    #[test]
    fn no_two_roles_have_the_same_name() {
        let names: Vec<&str> = ROLES.into_iter().flatten().map(|role| role.name()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}
