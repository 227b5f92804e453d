//! `tickpath bench host`: the floor of this host.

use clap::Args;
use tickpath_lab_harness::{Lab, StabilityCheck, host};
use tickpath_lab_result::ResultFile;

use tickpath_cli_terminal::args::{CpuArgs, OutputArgs, seconds};

#[derive(Debug, Args)]
pub struct HostArgs {
    /// Length of a measurement with a spinning thread, in seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = seconds)]
    pub duration: f64,
    /// Number of measurements
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

pub fn run(lab: &Lab<'_>, args: &HostArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let settings = host::Settings { seconds: args.duration, cpus: args.cpus.bench_cpus()? };
    lab.progress.plan(args.repeat as usize, f64::from(args.repeat) * (args.duration + 2.3));
    for repeat in 1..=args.repeat {
        let around = StabilityCheck::begin(lab, settings.cpus)?;
        let (host, mut run) = host::run(lab, &settings)?;
        host::wake_ups(lab, settings.cpus, &mut run)?;
        around.end(lab, std::slice::from_mut(&mut run))?;
        result.host = host;
        run.repeat = repeat;
        result.runs.push(run);
    }
    Ok(())
}
