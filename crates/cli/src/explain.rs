//! `tickpath explain`: the time of one message by stage, for this broker or exchange and client, and the gain of each
//! change.

use clap::Args;
use tickpath_lab_explain::{self as explain, ExplainSubject, ExplainedClient, GAINS, Gain, Settings, is_redis};

use crate::bench::measure::{as_usage_error, measure};
use tickpath_cli_terminal::args::{CpuArgs, OutputArgs, bail_usage, bus_url, check_target, seconds};
use tickpath_cli_terminal::outcome::CliOutcome;

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// URL of the server: redis://[USER:PASSWORD@]HOST:PORT[/DATABASE] or redis+unix:///SOCKET for every client; for
    /// the client rust also redis://…?streams, nats://, amqp:// and kafka://, or shm://. The command changes no setting
    /// of it
    #[arg(value_name = "URL", value_parser = bus_url)]
    pub url: Option<String>,
    /// Client whose message is explained; default: redis-py on redis://, elsewhere rust, which is Tickpath's own bus
    #[arg(long, value_name = "redis-py|redis-py-asyncio|rust", conflicts_with_all = ["command", "case"])]
    pub client: Option<ExplainedClient>,
    /// Number of runs of the command, one after the other; up to five more runs without stamps measure their cost
    #[arg(long, value_name = "N", default_value_t = 19, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Command that runs from before the first run until after the last: the command line of a subscriber, or of a
    /// client that waits with blpop
    #[arg(long = "with", value_name = "CMD", requires = "command")]
    pub companion: Option<String>,
    /// Time limit of one run of the command, in seconds
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub timeout: f64,
    /// Explain a published case instead: one publish a process from Python, to a spinning subscriber, on a scratch
    /// server
    #[arg(long, value_name = "NAME", value_parser = ["one-publish-per-process"], conflicts_with_all = ["url", "command"])]
    pub case: Option<String>,
    /// Messages of the steady run, 1,000 a second
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(20..=1_000_000))]
    pub count: u64,
    /// Approximate time for the messages of all runs, in seconds; with less time there are fewer messages. The start of
    /// processes and servers comes on top
    #[arg(long, value_name = "S", default_value_t = 100.0, value_parser = seconds)]
    pub seconds: f64,
    /// Changes to try: all possible ones, none, or a list of warm-connection, listen, no-sleep, hiredis, uvloop,
    /// unix-socket, no-persistence, aof-everysec, aof-always, one-core, cores-apart, busy-reader, import-tickpath,
    /// rust, nats, log
    #[arg(long, value_name = "all|none|LIST", default_value = "all", value_parser = gains)]
    pub gains: SelectedGains,
    #[command(flatten)]
    pub cpus: CpuArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// A command that publishes with redis-py, or pushes to a list, or trades at an exchange with ccxt or python-okx, and
    /// exits; its scripts are not changed
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
            bail_usage!(
                "there is nothing to explain; name a server (redis://HOST:PORT, nats://HOST:PORT, …), a command behind \
                 --, or --case one-publish-per-process"
            );
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
        list => {
            let gains = list.split(',').map(|name| name.parse::<Gain>().map_err(|e| e.to_string()));
            gains.collect::<Result<_, _>>().map(SelectedGains)
        }
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
