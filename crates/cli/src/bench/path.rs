//! `tickpath bench path`: from a tick to an order at a venue.

use std::path::PathBuf;

use clap::Args;
use tickpath_clock::{Priority, Wait};
use tickpath_lab_compare::{compare_turns, in_turn};
use tickpath_lab_exchange::{ExchangeClient, ViaExchange};
use tickpath_lab_harness::{Lab, host, keep_runs};
use tickpath_lab_path::TradingClient;
use tickpath_lab_path::path::{self, TickSource};
use tickpath_lab_result::ResultFile;
use tickpath_oms_runtime::Layout;

use super::measure::as_usage_error;
use tickpath_cli_terminal::args::{
    ARRIVALS, CpuArgs, OutputArgs, WarmUpArgs, arrivals, bail_usage, bus_url, check_recording, check_targets, positive,
    seconds,
};

/// Defaults for the ticks of a run and for generated ticks a second; lower ones where a strategy in another language
/// takes part, so that it keeps up.
const DEFAULT_TICKS: (u64, f64) = (100_000, 20_000.0);
const DEFAULT_TICKS_OTHERS: (u64, f64) = (10_000, 1_000.0);

#[derive(Debug, Args)]
pub struct PathArgs {
    /// Transport of the ticks: shm://, file:///FOLDER, redis://HOST:PORT; may be repeated, and then the transports take
    /// turns
    #[arg(long, value_name = "URL", default_value = "shm://", value_parser = bus_url)]
    pub target: Vec<String>,
    /// Language of the strategy: rust, or python with the package tickpath. May be a list, and then the clients take
    /// turns. With any client but rust, each is a process of its own, which logs on to its OMS over shared memory. With
    /// --via: rust, or ccxt, which is a watcher and a strategy with each --target between them
    #[arg(long, value_name = "CLIENT", value_delimiter = ',', default_value = TradingClient::RUST_NAME, value_parser = CLIENTS)]
    pub client: Vec<String>,
    /// Exchange at both ends of the path, simulated on the loopback: its market data and its orders by its own protocols,
    /// over TLS
    #[arg(long, value_name = "okx|binance", value_parser = ViaExchange::NAMES, conflicts_with_all = ["ticks", "speed", "layout", "wait", "arrivals"])]
    pub via: Option<String>,
    /// A recording, plain or gzip: a line is a time in nanoseconds and a JSON message; default: generated ticks
    #[arg(long, value_name = "FILE")]
    pub ticks: Option<PathBuf>,
    /// Ticks a second; default: the recording's own times, or 20000 generated ticks, and 1000 with any client but rust
    #[arg(long, value_name = "R", value_parser = positive)]
    pub rate: Option<f64>,
    /// Arrival process of the ticks: steady, or poisson from --seed, as of independent senders; needs a rate
    #[arg(long, value_name = "steady|poisson", default_value = "steady", value_parser = ARRIVALS)]
    pub arrivals: String,
    /// Speed as a multiple of the recording's own times
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive, requires = "ticks", conflicts_with = "rate")]
    pub speed: f64,
    /// Time for which a run publishes at its rate, in seconds
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "count", requires = "rate")]
    pub duration: Option<f64>,
    /// Ticks of a run; the recording is looped to reach it. Default: 100000, and 10000 with any client but rust
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub count: Option<u64>,
    /// Layout of the threads; default: inline, and with any client but rust split, the only possible one
    #[arg(long, value_name = "inline|split|mutex", value_delimiter = ',')]
    pub layout: Vec<Layout>,
    /// How the trading strategy waits for ticks
    #[arg(long, value_name = "busy|yield|block|adaptive", value_delimiter = ',', default_value = "busy")]
    pub wait: Vec<Wait>,
    /// Scheduling priority: normal, or fifo:1 to fifo:99
    #[arg(long, value_name = "fifo:N", default_value = "normal")]
    pub priority: Priority,
    /// Seed of generated ticks, and of the times of --arrivals poisson
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of repetitions, in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub warm: WarmUpArgs,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// All clients: those of our own venue, and that of an exchange.
const CLIENTS: [&str; 3] = [TradingClient::NAMES[0], TradingClient::NAMES[1], ExchangeClient::CCXT_NAME];

pub fn run(lab: &Lab<'_>, args: &PathArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    if let Some(via) = &args.via {
        return super::exchange_path::run(lab, args, via, result);
    }
    if args.client.iter().any(|client| client == ExchangeClient::CCXT_NAME) {
        bail_usage!("--client {} trades at an exchange; add --via okx or --via binance", ExchangeClient::CCXT_NAME);
    }
    let cpus = args.cpus.bench_cpus()?;
    check_recording(&args.ticks)?;
    check_targets(&args.target)?;
    let is_outside = args.client.iter().any(|client| client != TradingClient::RUST_NAME);
    let layouts = path::layouts(&args.layout, is_outside).map_err(as_usage_error)?;
    let sides = sides(lab, args, is_outside)?;
    result.host = host::measure_host_floor(lab, cpus)?;
    let (count, rate) = if is_outside { DEFAULT_TICKS_OTHERS } else { DEFAULT_TICKS };
    // The times of generated ticks are not worth keeping.
    let rate = args.rate.or(args.ticks.is_none().then_some(rate));
    if args.arrivals != ARRIVALS[0] && rate.is_none() {
        bail_usage!("--arrivals {} needs a rate, because the recording has its own times; add --rate", args.arrivals);
    }
    let timed = args.duration.zip(rate).map(|(seconds, rate)| (seconds * rate).max(1.0) as u64);
    let count = timed.or(args.count).unwrap_or(count);
    let arrivals = arrivals(&args.arrivals, args.seed);
    let mut turns = Vec::new();
    for repeat in 1..=args.repeat {
        for &layout in &layouts {
            for wait in in_turn(repeat, args.wait.iter().copied()) {
                for (outside, target) in in_turn(repeat, sides.clone()) {
                    let file = args.ticks.clone();
                    turns.push(path::Settings {
                        target,
                        external_client: outside,
                        layout,
                        wait,
                        cpus,
                        venue_cpu: args.cpus.venue_cpu(),
                        generator_wait: None,
                        priority: args.priority,
                        ticks: TickSource { file, seed: args.seed, rate, arrivals, speed: args.speed, count },
                        repeat,
                    });
                }
            }
        }
    }
    lab.progress.plan(turns.len(), turns.iter().map(path::Settings::seconds).sum());
    for settings in &turns {
        keep_runs(result, path::run(lab, settings).map(|run| vec![run])).map_err(as_usage_error)?;
    }
    result.comparisons.extend(compare_turns(&result.runs, &["tick_to_order"]));
    Ok(())
}

/// Returns the sides that take turns: each client, prepared, with each target. Only our own client runs its strategy
/// in the OMS's process.
fn sides(lab: &Lab<'_>, args: &PathArgs, is_outside: bool) -> anyhow::Result<Vec<(Option<TradingClient>, String)>> {
    let mut sides = Vec::new();
    for name in &args.client {
        let client = is_outside.then(|| TradingClient::of(name, lab)).transpose().map_err(as_usage_error)?;
        sides.extend(args.target.iter().map(|target| (client.clone(), target.clone())));
    }
    Ok(sides)
}
