//! `tickpath bench clients`: SET and GET of the same keys through every client, near and far.

use clap::{Args, value_parser};
use tickpath_lab_harness::{Lab, host};
use tickpath_lab_redis::clients::{self, SetGetClient, Settings};
use tickpath_lab_result::ResultFile;

use super::measure::as_usage_error;
use tickpath_cli_terminal::args::{CpuArgs, OutputArgs, bus_url, check_targets, rtt, seconds};

const PUBLISHED_CLIENTS: [SetGetClient; 4] = [
    SetGetClient::REDIS_PY,
    SetGetClient::REDIS_PY_PIPELINE,
    SetGetClient::REDIS_PY_ASYNCIO,
    SetGetClient::REDIS_PY_UVLOOP,
];

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Without options: 11 clients (asyncio and uvloop with 1, 10 and 100 workers) over TCP and over a Unix \
                  socket to a scratch redis-server, five times 20,000 pairs each: about 5 minutes on two processors."
)]
pub struct ClientsArgs {
    /// URL of the server: redis://[USER:PASSWORD@]HOST:PORT[/DATABASE] or redis+unix:///SOCKET; default: a scratch
    /// server
    #[arg(long, value_name = "URL", value_parser = bus_url)]
    pub target: Option<String>,
    /// Clients to measure: redis-py, redis-py-pipeline, redis-py-pure, redis-py-pipeline-pure, redis-py-asyncio,
    /// redis-py-uvloop, rust-blocking, rust-pipeline, rust-async, go-redis, go-redis-pipeline; may be a list. Default:
    /// all, with the Go clients only if Go is installed
    #[arg(long, value_name = "CLIENT", value_delimiter = ',')]
    pub client: Vec<SetGetClient>,
    /// Round-trip time that a delaying proxy adds, in milliseconds, 0 to 2000; may be a list. Only over TCP
    #[arg(long, value_name = "MS", value_delimiter = ',', value_parser = rtt)]
    pub rtt: Vec<f64>,
    /// Pairs of a repetition: SET, GET and comparison of a key
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = value_parser!(u64).range(1..=10_000_000))]
    pub count: u64,
    /// Max time that a repetition waits for a far server, in seconds; the repetition then has fewer pairs
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = seconds)]
    pub duration: f64,
    /// Settings of a published experiment: set-get-20k (20,000 pairs, five times, near and 0.25 ms away)
    #[arg(long, value_name = "NAME", value_parser = ["set-get-20k"], conflicts_with_all = ["client", "rtt", "count", "repeat"])]
    pub preset: Option<String>,
    /// Number of repetitions, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

pub fn run(lab: &Lab<'_>, args: &ClientsArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = args.cpus.bench_cpus()?;
    let clients = if args.client.is_empty() { SetGetClient::all().collect() } else { args.client.clone() };
    let published = args.preset.is_some();
    let settings = Settings {
        target: args.target.clone(),
        clients: if published { PUBLISHED_CLIENTS.to_vec() } else { clients },
        all_needed: published || !args.client.is_empty(),
        rtts_ms: if published { vec![0.0, 0.25] } else { args.rtt.clone() },
        count: args.count,
        repeat: args.repeat,
        seconds: args.duration,
        cpus,
        proxy_cpu: args.cpus.venue_cpu(),
    };
    settings.check().map_err(as_usage_error)?;
    check_targets(args.target.as_slice())?;
    result.host = host::measure_host_floor(lab, cpus)?;
    let done = clients::run(lab, &settings, result).map_err(as_usage_error);
    if let Some(name) = &args.preset {
        result.runs.iter_mut().for_each(|run| run.params.set("preset", name.as_str()));
    }
    done
}
