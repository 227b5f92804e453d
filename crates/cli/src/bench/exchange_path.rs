//! `tickpath bench path --via`: the path between the protocols of an exchange.

use tickpath_lab_compare::{compare_turns, in_turn};
use tickpath_lab_exchange::{ExchangeClient, Settings, ViaExchange};
use tickpath_lab_harness::{Lab, host, keep_runs};
use tickpath_lab_path::TradingClient;
use tickpath_lab_result::ResultFile;

use super::measure::as_usage_error;
use super::path::PathArgs;
use tickpath_cli_terminal::args::{bail_usage, check_targets};

/// Seconds of a run without a count.
const DEFAULT_S: f64 = 20.0;
/// Ticks a second without a rate: as a busy instrument has them.
const DEFAULT_RATE: f64 = 40.0;

/// Runs our own client, and ccxt with each transport in its middle, in turn.
pub fn run(lab: &Lab<'_>, args: &PathArgs, via: &str, result: &mut ResultFile) -> anyhow::Result<()> {
    let via: ViaExchange = via.parse().map_err(anyhow::Error::msg)?;
    let cpus = args.cpus.bench_cpus()?;
    check_targets(&args.target)?;
    let clients = clients(args)?;
    let rate = args.rate.unwrap_or(DEFAULT_RATE);
    let count = args.count.unwrap_or((args.duration.unwrap_or(DEFAULT_S) * rate).max(1.0) as u64);
    result.host = host::measure_host_floor(lab, cpus)?;
    let mut turns = Vec::new();
    for repeat in 1..=args.repeat {
        for client in in_turn(repeat, clients.clone()) {
            turns.push(Settings { via, client, cpus, rate, count, priority: args.priority, repeat });
        }
    }
    lab.progress.plan(turns.len(), turns.iter().map(Settings::seconds).sum());
    for settings in &turns {
        let ran = tickpath_lab_exchange::run(lab, settings).map(|run| vec![run]);
        keep_runs(result, ran).map_err(as_usage_error)?;
    }
    result.comparisons.extend(compare_turns(&result.runs, &["packet_to_packet"]));
    Ok(())
}

fn clients(args: &PathArgs) -> anyhow::Result<Vec<ExchangeClient>> {
    let mut clients = Vec::new();
    for name in &args.client {
        match name.as_str() {
            TradingClient::RUST_NAME => clients.push(ExchangeClient::Rust),
            ExchangeClient::CCXT_NAME => {
                for target in &args.target {
                    clients.push(ExchangeClient::ccxt(target).map_err(as_usage_error)?);
                }
            }
            other => bail_usage!("--client {other} trades at our own venue; with --via use rust or ccxt"),
        }
    }
    Ok(clients)
}
