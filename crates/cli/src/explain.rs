//! `tickpath explain`: the time of one message by stage, for this broker and client, and the gain of each change.

use clap::Args;
use tickpath_lab_explain::{self as explain, ExplainSubject, ExplainedClient, GAINS, Gain, Settings, is_redis};

use crate::args::{CliUsageError, CpuArgs, OutputArgs, bus_url, check_target, seconds};
use crate::bench::measure::{as_usage_error, measure};
use crate::outcome::CliOutcome;

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The server: redis://[USER:PASSWORD@]HOST:PORT[/DATABASE] or redis+unix:///SOCKET for every client; for our own bus
    /// also redis://…?streams, nats://, amqp:// and kafka://, or shm://. Nothing of it is changed
    #[arg(value_name = "URL", value_parser = bus_url)]
    pub url: Option<String>,
    /// The client whose message is explained: redis-py on redis://, elsewhere rust, our own bus, if not given
    #[arg(long, value_name = "redis-py|redis-py-asyncio|rust", conflicts_with_all = ["command", "case"])]
    pub client: Option<ExplainedClient>,
    /// Run the command so often, one after the other; then up to five times without the stamps, for what they cost
    #[arg(long, value_name = "N", default_value_t = 19, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Command that runs beside, from before the first run until after the last: the command line of a subscriber, or of
    /// a client that waits by blpop
    #[arg(long = "with", value_name = "CMD", requires = "command")]
    pub companion: Option<String>,
    /// How long one run of the command may take, in seconds
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub timeout: f64,
    /// Explain a published case instead: one publish a process from Python, to a subscriber that spins, on a scratch server
    #[arg(long, value_name = "NAME", value_parser = ["one-publish-per-process"], conflicts_with_all = ["url", "command"])]
    pub case: Option<String>,
    /// Messages of the steady run, 1,000 a second
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(20..=1_000_000))]
    pub count: u64,
    /// About how long the messages of all of it may take, in seconds; less time, fewer messages. Starting processes and
    /// servers comes on top
    #[arg(long, value_name = "S", default_value_t = 100.0, value_parser = seconds)]
    pub seconds: f64,
    /// The changes to try: all that are possible here, none, or of warm-connection, listen, no-sleep, hiredis, uvloop,
    /// unix-socket, no-persistence, aof-everysec, aof-always, one-core, cores-apart, busy-reader, import-tickpath, rust,
    /// nats, log
    #[arg(long, value_name = "all|none|LIST", default_value = "all", value_parser = gains)]
    pub gains: SelectedGains,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// A command that publishes with redis-py, or pushes to a list, and ends; its scripts stay as they are
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// Value of `--gains`: the changes to try.
#[derive(Debug, Clone)]
pub struct SelectedGains(Vec<Gain>);

pub fn run(args: &ExplainArgs) -> anyhow::Result<CliOutcome> {
    let settings = settings(args)?;
    settings.check().map_err(as_usage_error)?;
    measure(explain::WORKLOAD, &args.output, |lab, result| explain::run(lab, &settings, result).map_err(as_usage_error))
}

fn settings(args: &ExplainArgs) -> anyhow::Result<Settings> {
    let subject = match (&args.case, args.command.is_empty(), &args.url) {
        (Some(_), ..) => ExplainSubject::OnePublishPerProcess,
        (None, false, _) => {
            ExplainSubject::Scripts { command: args.command.clone(), companion: args.companion.clone() }
        }
        (None, true, Some(url)) => match args.client {
            None | Some(ExplainedClient::Rust) if !is_redis(url) => {
                check_target(url)?;
                ExplainSubject::Bus(url.clone())
            }
            client => ExplainSubject::Client(client.unwrap_or(ExplainedClient::RedisPy)),
        },
        (None, true, None) => {
            return Err(CliUsageError(
                "there is nothing to explain; name a server (redis://HOST:PORT, nats://HOST:PORT, …), a command behind --, or \
                 --case one-publish-per-process"
                    .to_owned(),
            )
            .into());
        }
    };
    Ok(Settings {
        url: args.url.clone(),
        subject,
        repeat: args.repeat,
        count: args.count,
        seconds: args.seconds,
        timeout_s: args.timeout,
        gains: args.gains.0.clone(),
        cpus: args.cpus.bench_cpus()?,
    })
}

fn gains(text: &str) -> Result<SelectedGains, String> {
    match text {
        "all" => Ok(SelectedGains(GAINS.map(|(gain, _)| gain).to_vec())),
        "none" => Ok(SelectedGains(Vec::new())),
        list => list
            .split(',')
            .map(|name| name.parse::<Gain>().map_err(|e| e.to_string()))
            .collect::<Result<_, _>>()
            .map(SelectedGains),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_all_none_or_a_list() {
        for (text, count) in
            [("all", Some(GAINS.len())), ("none", Some(0)), ("hiredis,unix-socket", Some(2)), ("x", None)]
        {
            assert_eq!(gains(text).ok().map(|gains| gains.0.len()), count, "{text}");
        }
    }
}
