//! `tickpath bench queue`: every target in one interleaved run, one by one, pipelined, and by the hundred; or one side
//! alone, for containers.

use anyhow::ensure;
use clap::Args;
use tickpath_bus::{DeliveryGuarantee, connect};
use tickpath_clock::Wait;
use tickpath_lab_bus::queue::{
    self, MIN_RECORD_BYTES, PullVariant, PushVariant, QueueClient, QueuePlan, QueueSharing, RedisPy, Settings,
    StandaloneSettings, compare_rates, is_list, pull_standalone, push_standalone,
};
use tickpath_lab_compare::in_turn;
use tickpath_lab_harness::{Lab, host, targets};
use tickpath_lab_result::{ResultFile, Run};
use tickpath_lab_tools::redis::{ScratchServer, ServerSettings};

use super::measure::as_usage_error;
use tickpath_cli_terminal::args::{
    CliUsageError, CpuArgs, OutputArgs, SendRate, bail_usage, bus_url, check_targets, one_of, rate, seconds,
};
use tickpath_cli_terminal::print::{Printer, print_note};

/// Messages pushed and pulled at a time: one by one; as published, in a pipeline that one puller cannot keep up with;
/// and in batches that one puller keeps up with.
const PAIRS: [(usize, usize); 3] = [(1, 1), (5, 1), (100, 100)];

/// Seconds to start and check the processes of a run, and to measure the host's floor before all runs.
const PROCESS_S: f64 = 0.8;
const FLOOR_S: f64 = 2.0;

/// Default for the largest number of messages of a run.
const MAX_DEFAULT_COUNT: u64 = 200_000;

#[derive(Debug, Clone, Args)]
pub struct QueueArgs {
    /// Transport of the messages: shm://, file:///FOLDER, redis://HOST:PORT[?streams], nats://HOST:PORT[?jetstream],
    /// amqp://HOST:PORT, kafka://HOST:PORT; may be repeated. Default: shm:// and the brokers that scripts/brokers has
    /// started, or a scratch redis-server
    #[arg(long, value_name = "URL", value_parser = bus_url)]
    pub target: Vec<String>,
    /// Client that pushes and pulls; redis-py over Redis lists only
    #[arg(long, value_name = "rust|redis-py", default_value = "rust", value_parser = ["rust", "redis-py"])]
    pub client: String,
    /// Messages of a run; default: 200000, or as many as a slower target takes in --duration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    pub count: Option<u64>,
    /// Approximate length of a run on a slow target, or at a rate, in seconds. A log takes its 200000 messages in any
    /// case; the start of the processes, the probe of the target's speed, and the host's floor come on top
    #[arg(long, value_name = "S", default_value_t = queue::DEFAULT_S, value_parser = seconds, conflicts_with = "count")]
    pub duration: f64,
    /// Bytes of a message, 108 to 16777216: a JSON record
    #[arg(long, value_name = "BYTES", default_value_t = 200, value_parser = record_size)]
    pub size: usize,
    /// Pullers, each a process; may be a list
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub pullers: Vec<u32>,
    /// Messages that are pushed together; may be a list. Default without --pull: 1 with 1, 5 with 1, 100 with 100
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub pipeline: Vec<u32>,
    /// Messages that a puller requests at once; may be a list
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub pull: Vec<u32>,
    /// Whether each puller has its own queue, which the pusher serves in turn, or all pullers share one queue
    #[arg(long, value_name = "each|shared", default_value = "each", value_parser = keys)]
    pub keys: QueueSharing,
    /// Delivery of a message whose puller dies: at-most-once or at-least-once; default: that of the transport
    #[arg(long, value_name = "DELIVERY", value_parser = delivery)]
    pub delivery: Option<DeliveryGuarantee>,
    /// Messages a second, or max
    #[arg(long, value_name = "R|max", default_value = "max", value_parser = rate)]
    pub rate: SendRate,
    /// Wait strategy of pullers for messages, and of the pusher for a message's time or for room
    #[arg(long, value_name = "busy|yield|block|adaptive", default_value = "block")]
    pub wait: Wait,
    /// Push of redis-py: push (LPUSH), push-ltrim (LPUSH and LTRIM)
    #[arg(long, value_name = "VARIANT", value_parser = push_variant)]
    pub push_variant: Option<PushVariant>,
    /// Pull of redis-py: published (BRPOP and GET), brpop, count (RPOP of many); may be a list. Default: published
    /// where one message is pulled at a time, else count
    #[arg(long, value_name = "VARIANT", value_delimiter = ',', value_parser = pull_variant)]
    pub pull_variant: Vec<PullVariant>,
    /// Make redis-py's pipelines transactions, which is the default of redis-py itself
    #[arg(long)]
    pub transaction: bool,
    /// Settings of a published experiment, and then settings with which one puller keeps up: queue-200k (redis-py,
    /// 200,000 messages and 500,000)
    #[arg(long, value_name = "NAME", value_parser = ["queue-200k"], conflicts_with_all = ["client", "count", "pullers", "pipeline", "pull", "keys", "rate", "push_variant", "pull_variant", "transaction", "role"])]
    pub preset: Option<String>,
    /// Seed of the generated records
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of repetitions, in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Run one side alone on one target, which prints its rate each second; the other side is another process
    #[arg(long, value_name = "pusher|puller", value_parser = ["pusher", "puller"], requires = "queue", conflicts_with_all = ["rate", "pullers", "keys", "duration", "repeat", "cpus", "json", "html"])]
    pub role: Option<String>,
    /// Queue of that side, which is not removed at the end
    #[arg(long, value_name = "NAME", requires = "role")]
    pub queue: Option<String>,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

pub fn run(lab: &Lab<'_>, args: &QueueArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let is_python = args.push_variant.is_some() || !args.pull_variant.is_empty() || args.transaction;
    if is_python && args.client != "redis-py" {
        bail_usage!(
            "--push-variant, --pull-variant and --transaction need --client redis-py; add it, or leave them out"
        );
    }
    match (args.role.as_deref(), args.queue.as_deref()) {
        (Some(role), Some(queue)) => run_one_side(args, role, queue),
        _ => measure(lab, args, result),
    }
}

/// Runs one side; the other side is another process.
fn run_one_side(args: &QueueArgs, role: &str, queue: &str) -> anyhow::Result<()> {
    let [target] = &args.target[..] else {
        bail_usage!("--role works on one target; name it with --target URL");
    };
    if args.client != "rust" {
        bail_usage!("--role runs the rust client; leave --client out");
    }
    check_targets(&args.target)?;
    let first = |list: &[u32]| list.first().map_or(1, |number| *number as usize);
    let alone = StandaloneSettings {
        target: target.clone(),
        queue: queue.to_owned(),
        count: args.count.unwrap_or(MAX_DEFAULT_COUNT),
        size: args.size,
        pipeline: first(&args.pipeline),
        pull: first(&args.pull),
        delivery: args.delivery,
        wait: args.wait,
        seed: args.seed,
    };
    let side = if role == "pusher" { push_standalone } else { pull_standalone };
    let mut printer = Printer::default();
    let done = side(&alone, &mut |line| printer.print(&format!("{line}\n"))).map_err(as_usage_error);
    printer.end(done)
}

/// Runs every case that the options ask for; targets are the innermost loop, so that they take turns.
fn measure(lab: &Lab<'_>, args: &QueueArgs, result: &mut ResultFile) -> anyhow::Result<()> {
    let cpus = cpus(&args.cpus)?;
    check_targets(&args.target)?;
    let (targets, server) = targets_of(lab, args)?;
    let mut cases =
        if args.preset.is_some() { published_cases(args, &targets, &cpus) } else { cases(args, &targets, &cpus)? };
    let seconds: f64 = cases.iter().map(|case| case.settings.estimated_seconds(args.duration) + PROCESS_S).sum();
    lab.progress.plan(cases.len() * args.repeat as usize, FLOOR_S + f64::from(args.repeat) * seconds);
    result.host = host::measure_host_floor(lab, [cpus[0], cpus[1]])?;
    for repeat in 1..=args.repeat {
        for case in in_turn(repeat, &mut cases) {
            let plan = match case.plan.take() {
                Some(plan) => plan,
                None => queue::plan_count(lab, &case.settings, args.duration).map_err(as_usage_error)?,
            };
            let settings = Settings { repeat, count: plan.count, ..case.settings.clone() };
            let before = result.runs.len();
            let done = queue::run(lab, &settings, &mut result.runs);
            for run in &mut result.runs[before..] {
                run.notes.extend(plan.note.clone());
                record_server(run, server.as_ref());
                args.preset.iter().for_each(|name| run.params.set("preset", name.as_str()));
            }
            done.map_err(as_usage_error)?;
            case.plan = Some(plan);
        }
    }
    result.comparisons.extend(compare_rates(&result.runs));
    Ok(())
}

/// One combination of settings, and its number of messages once that is known.
struct QueueBenchCase {
    settings: Settings,
    plan: Option<QueuePlan>,
}

/// Returns the runs of the published experiment, in its order, and one more in which one puller keeps up, because it
/// pulls a hundred messages at a time.
fn published_cases(args: &QueueArgs, targets: &[String], cpus: &[usize]) -> Vec<QueueBenchCase> {
    use PullVariant::{Count, Published};
    use PushVariant::{Push, PushLtrim};
    let runs = [
        (PushLtrim, 1, false, Published, 1, 1, 200_000),
        (Push, 1, false, Published, 1, 1, 200_000),
        (Push, 1, false, Published, 1, 5, 200_000),
        (Push, 5, false, Published, 1, 1, 200_000),
        (Push, 2_000, true, Published, 1, 1, 200_000),
        (Push, 2_000, true, Published, 1, 5, 500_000),
        (Push, 5, false, Count, 100, 1, 200_000),
        (Push, 2_000, true, Count, 100, 1, 200_000),
    ];
    let target = targets.iter().find(|target| is_list(target)).unwrap_or(&targets[0]);
    let case = |(push, pipeline, transaction, variant, pull, pullers, count)| {
        let client = QueueClient::RedisPy(RedisPy { push, pull: variant, transaction });
        let settings = Settings { client, count, pullers, pipeline, pull, ..base(args, target, cpus) };
        QueueBenchCase { settings, plan: Some(QueuePlan { count, note: None }) }
    };
    runs.into_iter().map(case).collect()
}

/// Returns the product of all lists of options.
fn cases(args: &QueueArgs, targets: &[String], cpus: &[usize]) -> Result<Vec<QueueBenchCase>, CliUsageError> {
    let mut cases = Vec::new();
    for &pullers in &args.pullers {
        for (pipeline, pull) in batch_sizes(args) {
            for client in clients(args, pull) {
                for target in targets {
                    let pullers = pullers as usize;
                    let settings = Settings { client, pullers, pipeline, pull, ..base(args, target, cpus) };
                    let plan = args.count.map(|count| QueuePlan { count, note: None });
                    cases.push(QueueBenchCase { settings, plan });
                }
            }
        }
    }
    if cases.is_empty() {
        bail_usage!("--pull-variant: published and brpop pull one at a time; use --pull 1, or --pull-variant count");
    }
    Ok(cases)
}

/// Returns the settings that all cases share; `--preset` leaves their options at the defaults.
fn base(args: &QueueArgs, target: &str, cpus: &[usize]) -> Settings {
    Settings {
        target: target.to_owned(),
        client: QueueClient::Rust,
        count: args.count.unwrap_or(MAX_DEFAULT_COUNT),
        size: args.size,
        pullers: 1,
        pipeline: 1,
        pull: 1,
        keys: args.keys,
        delivery: args.delivery,
        rate: args.rate.per_second(),
        wait: args.wait,
        seed: args.seed,
        cpus: cpus.to_vec(),
        repeat: 1,
    }
}

fn batch_sizes(args: &QueueArgs) -> Vec<(usize, usize)> {
    if args.pipeline.is_empty() && args.pull.is_empty() {
        return PAIRS.to_vec();
    }
    let or_one = |list: &[u32]| if list.is_empty() { vec![1] } else { list.to_vec() };
    let pulls = or_one(&args.pull);
    let with_each = |pushed: u32| pulls.iter().map(move |&pulled| (pushed as usize, pulled as usize));
    or_one(&args.pipeline).into_iter().flat_map(with_each).collect()
}

/// Returns the clients that can pull so many messages at a time.
fn clients(args: &QueueArgs, pull: usize) -> Vec<QueueClient> {
    if args.client == "rust" {
        return vec![QueueClient::Rust];
    }
    let usual = if pull == 1 { PullVariant::Published } else { PullVariant::Count };
    let variants = if args.pull_variant.is_empty() { vec![usual] } else { args.pull_variant.clone() };
    let push = args.push_variant.unwrap_or(PushVariant::Push);
    let client = |variant| QueueClient::RedisPy(RedisPy { push, pull: variant, transaction: args.transaction });
    variants.into_iter().filter(|variant| variant.supports_limit(pull)).map(client).collect()
}

/// Returns the targets of `--target`; or the log and the brokers of the environment, with a scratch Redis server if
/// none of them is Redis.
fn targets_of(lab: &Lab<'_>, args: &QueueArgs) -> anyhow::Result<(Vec<String>, Option<ScratchServer>)> {
    if !args.target.is_empty() {
        return Ok((args.target.clone(), None));
    }
    let mut all = targets::all();
    let has_list = all.iter().any(|target| is_list(target));
    let server = match has_list {
        true => None,
        false => ScratchServer::start(lab.folder(), &ServerSettings::default(), &lab.clock)?,
    };
    // Placed behind the log, which the other targets are compared with.
    if let Some(server) = &server {
        all.insert(1, server.url());
    }
    if !args.output.quiet {
        let missing = targets::missing().filter(|_| server.is_none());
        let scratch = server.as_ref().map(|server| {
            let version = &server.version;
            format!("a scratch redis-server {version} takes part; for other brokers: scripts/brokers run -- COMMAND")
        });
        missing.iter().chain(&scratch).for_each(|what| print_note(&format!("tickpath: {what}")));
    }
    if args.client == "redis-py" || args.preset.is_some() {
        all.retain(|target| is_list(target));
    }
    if let Some(wanted) = args.delivery {
        all.retain(|target| connect(target).is_ok_and(|c| c.queue_capabilities().deliveries.contains(&wanted)));
    }
    ensure!(
        !all.is_empty(),
        "no target can do this; name one with --target, or install a server with: apt-get install redis-server"
    );
    Ok((all, server))
}

/// Returns the pusher's CPU and those of the pullers: the CPUs of `--cpus`, or all.
fn cpus(cpus: &CpuArgs) -> Result<Vec<usize>, CliUsageError> {
    let two = cpus.bench_cpus()?;
    let all = if cpus.cpus.is_empty() { tickpath_clock::cpus() } else { cpus.cpus.clone() };
    Ok(if all.len() > 2 { all } else { two.to_vec() })
}

/// Writes the name and version of a scratch server into its run.
fn record_server(run: &mut Run, server: Option<&ScratchServer>) {
    if let Some(server) = server.filter(|server| server.url() == run.target) {
        run.software.server = Some("redis".to_owned());
        run.software.server_version = Some(server.version.clone());
    }
}

fn record_size(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|_| "not a whole number".to_owned())?;
    let possible = MIN_RECORD_BYTES..=16 << 20;
    if possible.contains(&number) { Ok(number) } else { Err(format!("use {MIN_RECORD_BYTES} to 16777216 bytes")) }
}

fn keys(text: &str) -> Result<QueueSharing, String> {
    one_of(text, &QueueSharing::ALL.map(|keys| (keys.name(), keys)))
}

fn delivery(text: &str) -> Result<DeliveryGuarantee, String> {
    one_of(text, &DeliveryGuarantee::ALL.map(|delivery| (delivery.name(), delivery)))
}

fn push_variant(text: &str) -> Result<PushVariant, String> {
    one_of(text, &PushVariant::ALL.map(|variant| (variant.name(), variant)))
}

fn pull_variant(text: &str) -> Result<PullVariant, String> {
    one_of(text, &PullVariant::ALL.map(|variant| (variant.name(), variant)))
}
