//! `bench path`.

use std::path::PathBuf;

use clap::Args;
use tickpath_clock::{Priority, Wait};
use tickpath_compare::in_turn;
use tickpath_harness::{Lab, host};
use tickpath_lab_path::path::{self, Ticks};
use tickpath_oms::Layout;
use tickpath_result::ResultFile;

use super::measure::{compare_turns, usage};
use crate::args::{ARRIVALS, Cpus, Output, Usage, Warm, are_targets, arrivals, bus_url, is_file, positive, seconds};

#[derive(Debug, Args)]
pub struct PathArgs {
    /// What carries the ticks: shm://, file:///FOLDER, redis://HOST:PORT; may be repeated, and then they take turns
    #[arg(long, value_name = "URL", default_value = "shm://", value_parser = bus_url)]
    pub target: Vec<String>,
    /// A recording of LOCAL_NS JSON lines, gzip or plain; ticks are made up without one
    #[arg(long, value_name = "FILE")]
    pub ticks: Option<PathBuf>,
    /// Ticks a second; the recording's own times if not given and there is one
    #[arg(long, value_name = "R", value_parser = positive)]
    pub rate: Option<f64>,
    /// When ticks are due: steady, or poisson, as independent senders make them, from --seed; needs a rate
    #[arg(long, value_name = "steady|poisson", default_value = "steady", value_parser = ARRIVALS)]
    pub arrivals: String,
    /// How much faster than the recording's own times
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive, requires = "ticks", conflicts_with = "rate")]
    pub speed: f64,
    /// How long a run publishes at its rate, in seconds
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "count", requires = "rate")]
    pub duration: Option<f64>,
    /// Ticks of a run; the recording is looped for as many
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub count: u64,
    /// Which thread does what
    #[arg(long, value_name = "inline|split|mutex", value_delimiter = ',', default_value = "inline")]
    pub layout: Vec<Layout>,
    /// How the strategy waits for ticks
    #[arg(long, value_name = "busy|yield|block|adaptive", value_delimiter = ',', default_value = "busy")]
    pub wait: Vec<Wait>,
    /// Scheduling priority: normal, or fifo:1 to fifo:99
    #[arg(long, value_name = "fifo:N", default_value = "normal")]
    pub priority: Priority,
    /// What made-up ticks depend on, and the times of --arrivals poisson
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How often to run everything, in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub warm: Warm,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub output: Output,
}

pub fn run(lab: &Lab<'_>, args: &PathArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.two()?;
    is_file(&args.ticks)?;
    are_targets(&args.target)?;
    result.host = host::floor(lab, cpus)?;
    // Made-up ticks have no times worth keeping.
    let rate = args.rate.or(args.ticks.is_none().then_some(20_000.0));
    if args.arrivals != ARRIVALS[0] && rate.is_none() {
        return Err(Usage(format!(
            "--arrivals {} needs a rate, for the recording has its own times; add --rate",
            args.arrivals
        ))
        .into());
    }
    let timed = args.duration.zip(rate).map(|(seconds, rate)| (seconds * rate).max(1.0) as u64);
    let count = timed.unwrap_or(args.count);
    let arrivals = arrivals(&args.arrivals, args.seed);
    let mut turns = Vec::new();
    for repeat in 1..=args.repeat {
        for &layout in &args.layout {
            for wait in in_turn(repeat, args.wait.iter().copied()) {
                for target in in_turn(repeat, &args.target) {
                    let file = args.ticks.clone();
                    turns.push(path::Settings {
                        target: target.clone(),
                        layout,
                        wait,
                        cpus,
                        venue_cpu: args.cpus.third(),
                        generator_wait: None,
                        priority: args.priority,
                        ticks: Ticks { file, seed: args.seed, rate, arrivals, speed: args.speed, count },
                        repeat,
                    });
                }
            }
        }
    }
    lab.progress.plan(turns.len(), turns.iter().map(path::Settings::seconds).sum());
    for settings in &turns {
        result.runs.push(path::run(lab, settings).map_err(usage)?);
    }
    compare_turns(result, &["tick_to_order"]);
    Ok(())
}
